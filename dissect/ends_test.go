package dissect_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

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

// TestNeverDelivered: with two capture points, a Call of which no copy comes to the server before the connection ends is
// outstanding, and a Reply of which no copy comes to the client is not delivered.
func TestNeverDelivered(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	c.Client.Call(synth.Null())
	c.Server.Reply(synth.NullReply())
	c.Client.Call(synth.Null())
	begin := len(w.Frames)
	reply := c.Server.Reply(synth.NullReply())
	w.Advance(600 * time.Millisecond)
	w.Retransmit(reply...)
	lost := map[int]bool{}
	for i := begin; i < len(w.Frames); i++ {
		lost[i] = true
	}
	begin = len(w.Frames)
	call := c.Client.Call(synth.Null())
	for range 3 {
		w.Advance(600 * time.Millisecond)
		w.Retransmit(call...)
	}
	for i := begin; i < len(w.Frames); i++ {
		lost[i] = true
	}
	c.Disconnect(c.Client)
	var got []record.Transaction
	var rules []string
	d := dissect.New(dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			got = append(got, *r.Clone())
			return nil
		},
		Finding: func(f *record.Finding) error {
			rules = append(rules, f.Rule)
			return nil
		},
	}, dissect.Options{Points: []string{"client.pcap", "server.pcap"}})
	client, first := [4]byte{}, true
	for i, f := range w.Frames {
		from := [4]byte(f.Data[26:30])
		if first {
			client, first = from, false
		}
		point := 1
		if from == client {
			point = 0
		}
		at, n := f.Time, int64(i+1)
		v := &capture.Seen{Point: point, Sent: at, SentPoint: point, SentNumber: n, ArrivedPoint: 1 - point, Fate: capture.FateLost}
		if !lost[i] {
			at += 1e5
			v.Fate, v.Point, v.Arrived, v.ArrivedNumber = capture.FateDelivered, 1-point, at, n
		}
		if err := d.Frame(&capture.Frame{Time: at, Number: n, LinkType: 1, Length: f.Length, Data: f.Data, Seen: v}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Finish(); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 {
		t.Fatalf("%d transactions, want 3", len(got))
	}
	slices.SortFunc(got, func(a, b record.Transaction) int { return int(a.ID - b.ID) })
	for i, want := range []struct {
		status record.Status
		lost   bool
		events int
	}{{record.Complete, false, 0}, {record.NoReply, true, 2}, {record.NoReply, false, 4}} {
		r, n := &got[i], 0
		for _, e := range r.Timeline {
			if e.Event == record.EventLost {
				n++
			}
		}
		if r.Status != want.status || r.ReplyLost != want.lost || n != want.events {
			t.Errorf("transaction %d: %s, reply_lost %v, %d packets lost; want %s, %v, %d", i, r.Status, r.ReplyLost, n, want.status, want.lost, want.events)
		}
	}
	if got[2].Retransmitted != 3 || !slices.Contains(rules, "connection-lost") {
		t.Errorf("%d retransmissions, findings %q", got[2].Retransmitted, rules)
	}
}
