package capture_test

import (
	"testing"

	"github.com/rdmadump/rdmadump/capture"
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
