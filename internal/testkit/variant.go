package testkit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/synth"
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
	var w synth.Wire
	for frame, err := range capture.All(t.Context(), f) {
		if broken := (*capture.BrokenError)(nil); errors.As(err, &broken) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		kept := &synth.Frame{Time: frame.Time, LinkType: uint16(frame.LinkType), Length: frame.Length, Data: bytes.Clone(frame.Data)}
		w.Frames = append(w.Frames, slices.Repeat([]*synth.Frame{kept}, v.Times(frame))...)
	}
	file, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.WritePcap(file), file.Close()); err != nil {
		t.Fatalf("%s: %v", from, err)
	}
	return len(w.Frames)
}
