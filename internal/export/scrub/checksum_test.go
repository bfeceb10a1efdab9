package scrub

import (
	"bytes"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/rocev2"
	"github.com/rdmadump/rdmadump/synth"
)

// clone returns copies of frames.
func clone(frames []capture.Frame) []capture.Frame {
	frames = slices.Clone(frames)
	for i := range frames {
		frames[i].Data = slices.Clone(frames[i].Data)
	}
	return frames
}

// checked is a checksum of a frame.
type checked struct {
	name   string
	frames []capture.Frame
	nth    int // index of the frame
	at     int // offset of the checksum
	width  int
	// right returns the correct value in the byte order of the frame.
	right func(frame []byte) []byte
}

// word returns the bytes of a checksum of 16 bits.
func word(sum uint16) []byte { return be.AppendUint16(nil, sum) }

// withChecksums returns captures with one checksum of each kind.
func withChecksums(t *testing.T) []checked {
	t.Helper()
	roce, _ := testkit.Frames(t, "../../../samples/rocev2-callback41.pcap")
	send := slices.IndexFunc(roce, func(f capture.Frame) bool { return len(f.Data) > 100 && f.Data[42] == 4 }) // RC Send Only
	end := len(roce[send].Data) - rocev2.ICRCLen
	icrc := func(b []byte) []byte {
		var c rocev2.ICRC
		sum, _ := c.RoCEv2(b[14:34], b[34:42], b[42:end])
		return le.AppendUint32(nil, sum)
	}
	udp := func(b []byte) []byte {
		return word(^link.Fold(link.AddWords(link.AddWords(link.AddWords(17+uint64(len(b)-34), b[26:34]), b[34:40]), b[42:])))
	}
	native, _ := testkit.Frames(t, "../../../testdata/captures/derived-ib-callback41.pcap.zst")
	last := len(native[40].Data)
	vcrc := func(b []byte) []byte { return le.AppendUint16(nil, rocev2.VCRC(b[:last-2])) }

	w := synth.New()
	c := w.IWARP(synth.Options{})
	c.Connect()
	c.RPC(synth.Write3(0, make([]byte, 100)), synth.Write3Reply(100))
	wire := framesOf(w)
	fpdu := slices.IndexFunc(wire, func(f capture.Frame) bool { return len(f.Data) > 14+20+20+100 && f.Number > 5 })
	segment := 14 + 20 + int(wire[fpdu].Data[14+20+12]>>4)*4
	crcAt := len(wire[fpdu].Data) - iwarp.CRCLen
	crc := func(b []byte) []byte { return le.AppendUint32(nil, crc32.Checksum(b[segment:crcAt], iwarp.Castagnoli)) }
	tcp := func(b []byte) []byte {
		return word(^link.Fold(link.AddWords(link.AddWords(link.AddWords(6+uint64(len(b)-34), b[26:34]), b[34:50]), b[52:])))
	}
	ip := func(b []byte) []byte { return word(^link.Fold(link.AddWords(link.AddWords(0, b[14:24]), b[26:34]))) }
	return []checked{
		{"ICRC", roce, send, end, 4, icrc},
		{"UDP", roce, send, 40, 2, udp},
		{"IP", roce, send, 24, 2, ip},
		{"VCRC", native, 40, last - 2, 2, vcrc},
		{"MPA", wire, fpdu, crcAt, 4, crc},
		{"TCP", wire, fpdu, 50, 2, tcp},
	}
}

// TestWrongChecksums verifies that a wrong checksum becomes a wrong checksum that tells
// nothing about the original frame: it depends on the key, and neither on the right
// value nor on the addresses. A checksum of 0 remains 0, and a right one is right.
func TestWrongChecksums(t *testing.T) {
	for _, c := range withChecksums(t) {
		t.Run(c.name, func(t *testing.T) {
			// with scrubs the capture with a value for the checksum, and returns the scrubbed
			// value and the right value of the scrubbed frame.
			with := func(value []byte, key string, change func(frame []byte)) (got, right []byte) {
				t.Helper()
				frames := clone(c.frames)
				b := frames[c.nth].Data
				copy(b[c.at:], value)
				if change != nil {
					change(b)
				}
				if c.name == "MPA" { // the TCP checksum covers the CRC
					copy(b[50:], word(^link.Fold(link.AddWords(link.AddWords(link.AddWords(6+uint64(len(b)-34), b[26:34]), b[34:50]), b[52:]))))
				}
				out, _ := scrubbed(t, frames, []byte(key))
				b = out[c.nth].Data
				return b[c.at : c.at+c.width], c.right(b)
			}
			original := c.frames[c.nth].Data
			correct := c.right(original)
			if c.name != "UDP" && !bytes.Equal(original[c.at:c.at+c.width], correct) {
				t.Fatalf("the original has %x, the right value is %x", original[c.at:c.at+c.width], correct)
			}
			if got, right := with(correct, "a", nil); !bytes.Equal(got, right) {
				t.Errorf("a right checksum becomes %x, right would be %x", got, right)
			}
			if got, _ := with(make([]byte, c.width), "a", nil); !zero(got) {
				t.Errorf("a checksum of 0 becomes %x", got)
			}
			bad := slices.Clone(correct)
			bad[0] ^= 0x5a
			got, right := with(bad, "a", nil)
			difference := func(a, b []byte) []byte {
				d := slices.Clone(a)
				for i := range d {
					d[i] ^= b[i]
				}
				return d
			}
			if bytes.Equal(got, right) || zero(got) || bytes.Equal(difference(got, right), difference(bad, correct)) || bytes.Equal(got, bad) {
				t.Errorf("a wrong checksum becomes %x; right would be %x; it was %x, right was %x", got, right, bad, correct)
			}
			if again, _ := with(bad, "a", nil); !bytes.Equal(got, again) {
				t.Errorf("with the same key, a wrong checksum becomes %x and %x", got, again)
			}
			if other, _ := with(bad, "b", nil); bytes.Equal(got, other) {
				t.Errorf("with two keys, a wrong checksum becomes %x", got)
			}
			if c.name == "VCRC" || c.name == "MPA" { // no addresses are near them
				return
			}
			moved, right := with(bad, "a", func(b []byte) {
				b[29]++ // the last byte of the source address
				if c.name != "IP" {
					copy(b[24:], word(^link.Fold(link.AddWords(link.AddWords(0, b[14:24]), b[26:34]))))
				}
				if bytes.Equal(c.right(b), bad) {
					t.Fatal("the checksum is right for the other address")
				}
			})
			if !bytes.Equal(moved, got) || bytes.Equal(moved, right) {
				t.Errorf("with another address, a wrong checksum becomes %x, and %x with the original one", moved, got)
			}
		})
	}
}

// TestUncheckable verifies that no checksum of the original is kept if it cannot be
// verified, because the packet is truncated or the headers are not known.
func TestUncheckable(t *testing.T) {
	all := withChecksums(t)
	for _, c := range all {
		if c.name != "TCP" && c.name != "UDP" {
			continue
		}
		for _, snap := range []int{c.at + 2, c.at + 4, c.at + 12, len(c.frames[c.nth].Data) - 1} {
			frames := clone(c.frames)
			b := frames[c.nth].Data
			copy(b[c.at:], []byte{0xab, 0xcd})
			frames[c.nth].Data = b[:min(snap, len(b))]
			out, _ := scrubbed(t, frames, secret)
			if got := out[c.nth].Data[c.at : c.at+2]; got[0] == 0xab && got[1] == 0xcd {
				t.Errorf("%s truncated to %d bytes: the checksum becomes %x", c.name, snap, got)
			}
		}
	}
}
