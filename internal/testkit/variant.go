package testkit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/link"
)

// Variant is a way to degrade a capture: each frame is written as often as Times returns.
type Variant struct {
	Name  string
	Times func(*capture.Frame) int
}

// Variants are typical defects of captures: it started after the handshake, it is from a
// mirror port that sees each frame twice, or the capturing machine was too slow.
var Variants = []Variant{
	{"whole", func(*capture.Frame) int { return 1 }},
	{"no-handshake", func(f *capture.Frame) int {
		if Handshake(f) {
			return 0
		}
		return 1
	}},
	{"doubled", func(*capture.Frame) int { return 2 }},
	{"holes", func(f *capture.Frame) int {
		if f.Number%13 == 0 {
			return 0
		}
		return 1
	}},
}

// Handshake reports whether a frame sets up or ends a connection: a datagram to QP 1, a TCP
// segment with SYN, or an MPA Request or Reply (RFC 5044 s.7.1). It looks at the bytes of the
// transport header itself, because the result must not depend on the parsers under test.
func Handshake(f *capture.Frame) bool {
	var l link.Decoder
	carries := l.Decode(f)
	b := l.Transport
	switch carries {
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
		return len(b) >= 8 && binary.BigEndian.Uint32(b[4:])&0xffffff == 1
	case link.CarriesTCP:
		if len(b) < 20 {
			return false
		}
		payload := b[min(int(b[12]>>4)*4, len(b)):]
		return b[13]&2 != 0 || bytes.HasPrefix(payload, []byte("MPA ID Re"))
	}
	return false
}

// Write writes the variant of a capture as an uncompressed pcap file, and returns the number
// of its frames. Of a truncated capture it writes the frames before the damage.
func (v *Variant) Write(t testing.TB, from, to string) (frames int) {
	t.Helper()
	f, err := capture.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []byte
	var linkType capture.LinkType
	le := binary.LittleEndian
	for frame, err := range capture.All(t.Context(), f) {
		if broken := (*capture.BrokenError)(nil); errors.As(err, &broken) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if out == nil {
			linkType = frame.LinkType
			out = le.AppendUint32(nil, 0xa1b23c4d) // magic number of files with nanoseconds
			out = le.AppendUint16(le.AppendUint16(out, 2), 4)
			out = append(out, make([]byte, 8)...)
			out = le.AppendUint32(le.AppendUint32(out, capture.MaxFrame), uint32(linkType))
		}
		if frame.LinkType != linkType {
			t.Fatalf("%s: frame %d is of %v, those before of %v; a pcap file has one", from, frame.Number, frame.LinkType, linkType)
		}
		for range v.Times(frame) {
			out = le.AppendUint32(out, uint32(frame.Time/1e9))
			out = le.AppendUint32(out, uint32(frame.Time%1e9))
			out = le.AppendUint32(out, uint32(len(frame.Data)))
			out = le.AppendUint32(out, uint32(frame.Length))
			out = append(out, frame.Data...)
			frames++
		}
	}
	if err := os.WriteFile(to, out, 0o600); err != nil {
		t.Fatal(err)
	}
	return frames
}
