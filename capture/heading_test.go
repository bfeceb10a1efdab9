package capture_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// TestHeads: a Linux cooked header reports that the frame was received, or that it was sent; other frames have what their file reports.
func TestHeads(t *testing.T) {
	cooked := func(kind byte) []byte { return []byte{0, kind, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0} }
	cooked2 := func(kind byte) []byte { return []byte{8, 0, 0, 0, 0, 0, 0, 1, 0, 1, kind, 6} }
	for _, c := range []struct {
		frame capture.Frame
		want  capture.Heading
	}{
		{capture.Frame{LinkType: capture.LinkSLL, Data: cooked(0)}, capture.Received},
		{capture.Frame{LinkType: capture.LinkSLL, Data: cooked(4)}, capture.Sent},
		{capture.Frame{LinkType: capture.LinkSLL, Data: cooked(1)}, capture.HeadingUnknown}, // broadcast
		{capture.Frame{LinkType: capture.LinkSLL, Data: []byte{1, 4}}, capture.HeadingUnknown},
		{capture.Frame{LinkType: capture.LinkSLL, Data: []byte{0}}, capture.HeadingUnknown},
		{capture.Frame{LinkType: capture.LinkSLL2, Data: cooked2(3)}, capture.Received},
		{capture.Frame{LinkType: capture.LinkSLL2, Data: cooked2(4)}, capture.Sent},
		{capture.Frame{LinkType: capture.LinkSLL2, Data: cooked2(4)[:10]}, capture.HeadingUnknown},
		{capture.Frame{LinkType: capture.LinkEthernet, Data: cooked2(4), Heading: capture.Received}, capture.Received},
	} {
		if got := c.frame.Heads(); got != c.want {
			t.Errorf("%v %x: %d, want %d", c.frame.LinkType, c.frame.Data, got, c.want)
		}
	}
}

// TestFlags: the options of a pcapng packet block report that the frame was received, or that it was sent.
func TestFlags(t *testing.T) {
	var file bytes.Buffer
	words := func(list ...uint32) {
		for _, w := range list {
			file.Write(binary.LittleEndian.AppendUint32(nil, w))
		}
	}
	words(0x0a0d0d0a, 28, 0x1a2b3c4d, 1, 0xffffffff, 0xffffffff, 28) // section
	words(1, 20, 1, 0, 20)                                           // interface: Ethernet
	flags := []uint32{1, 2, 0, 0xfffffffe}
	for _, f := range flags {
		words(6, 48, 0, 0, 0, 4, 4, 0xdddddddd, 4<<16|2, f, 0, 48)
	}
	words(6, 36, 0, 0, 0, 4, 4, 0xdddddddd, 36) // without options
	path := filepath.Join(t.TempDir(), "flags.pcapng")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	frames, _ := testkit.Frames(t, path)
	want := []capture.Heading{capture.Received, capture.Sent, capture.HeadingUnknown, capture.Sent, capture.HeadingUnknown}
	if len(frames) != len(want) {
		t.Fatalf("%d frames, want %d", len(frames), len(want))
	}
	for i := range frames {
		if got := frames[i].Heads(); got != want[i] {
			t.Errorf("frame %d: %d, want %d", i+1, got, want[i])
		}
	}
}
