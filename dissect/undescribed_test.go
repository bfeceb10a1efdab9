package dissect

import (
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestUndescribed: the Sends in packets that are not shown are not kept for their trees, because the memory
// limit does not include them.
func TestUndescribed(t *testing.T) {
	source, err := capture.Open("../samples/rocev2-callback41.pcap")
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	d := New(Handler{Packet: func(*record.Packet) error { return nil }}, Options{Tree: true, First: 1, Last: 1})
	if _, err := d.Run(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	if n := len(d.table.CompletedSends()); n > 0 {
		t.Errorf("%d Sends are kept", n)
	}
}
