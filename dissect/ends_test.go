package dissect_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/synth"
)

// TestLostDatagrams: with two capture points, a lost Call or Reply over UDP is not delivered, and the retransmission
// has the time of the first copy.
func TestLostDatagrams(t *testing.T) {
	w := synth.New()
	c := overTCP(w)
	call, reply := plainCall(7, 1, 0), plainReply(7, 8)
	c.Client.Datagram(call) // lost
	c.Client.Datagram(call)
	c.Server.Datagram(reply) // lost
	c.Client.Datagram(call)
	c.Server.Datagram(reply)
	c.Client.Datagram(plainCall(8, 1, 0)) // lost
	const ms = 1_000_000
	// Client is point 0, Server is point 1. Times in milliseconds.
	sent := []int64{0, 700, 710, 1400, 1410, 2000}
	arrived := []int64{0, 701, 0, 1401, 1412, 0}
	from := []int{0, 0, 1, 0, 1, 0}
	var got []record.Transaction
	d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		got = append(got, *r.Clone())
		return nil
	}}, dissect.Options{Points: []string{"client.pcap", "server.pcap"}})
	for i, f := range w.Frames {
		n := int64(i + 1)
		v := &capture.Seen{Point: from[i], Sent: sent[i] * ms, SentPoint: from[i], SentNumber: n, ArrivedPoint: 1 - from[i], Fate: capture.FateLost}
		at := v.Sent
		if arrived[i] != 0 {
			v.Fate, v.Point, v.Arrived, v.ArrivedNumber = capture.FateDelivered, 1-from[i], arrived[i]*ms, n
			at = v.Arrived
		}
		if err := d.Frame(&capture.Frame{Time: at, Number: n, LinkType: 1, Length: f.Length, Data: f.Data, Seen: v}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Finish(); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 {
		t.Fatalf("%d transactions, want 2", len(got))
	}
	r := got[0]
	s, known := r.Split.Get()
	if r.LatencyNS.Or(0) != 1412*ms || !known || s.RequestNetworkNS != 701*ms || s.ServerNS != 9*ms || s.ReplyNetworkNS != 702*ms {
		t.Errorf("latency %d, split %+v; want 1412 ms = 701 + 9 + 702 ms", r.LatencyNS.Or(0), s)
	}
	var lost []string
	for _, e := range r.Timeline {
		if e.Event == record.EventLost {
			lost = append(lost, fmt.Sprintf("%s, packet %d of %s", e.Of, e.Packet, *e.Point))
		}
	}
	if want := []string{"call, packet 1 of client.pcap", "reply, packet 3 of server.pcap"}; !slices.Equal(lost, want) {
		t.Errorf("lost packets %q, want %q", lost, want)
	}
	if r.Call.Delivery != record.DeliveryCertain || r.Reply.Delivery != record.DeliveryCertain {
		t.Errorf("delivery of the Call %s, of the Reply %s; want certain", r.Call.Delivery, r.Reply.Delivery)
	}
	if r := got[1]; r.Status != record.NoReply || r.Call.Delivered.Known() || r.Call.Delivery == record.DeliveryCertain {
		t.Errorf("lost Call: %s, delivered %v, delivery %s", r.Status, r.Call.Delivered, r.Call.Delivery)
	}
}
