package rdma_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
)

// overTCP is a connection of NFS over TCP.
func overTCP(w *synth.Wire) *synth.Conn {
	return w.IWARP(synth.Options{Client: synth.End{Port: 900}, Server: synth.End{Port: 2049}})
}

// plainCall returns a GETATTR of NFS version 3, and plainReply its Reply.
func plainCall(xid uint32) synth.XDR {
	return synth.Call{XID: xid, Procedure: 1, Cred: synth.AuthSys(1, 2), Args: synth.XDR{}.Opaque([]byte("handle12")).Opaque(nil)}.Message()
}

func plainReply(xid uint32) synth.XDR {
	return synth.Reply{XID: xid, Results: synth.XDR{}.Word(0).Opaque([]byte("yyyyyyyy"))}.Message()
}

// TestLostDatagrams: with two capture points, a lost Call or Reply over UDP is not delivered, and the retransmission
// has the time of the first copy.
func TestLostDatagrams(t *testing.T) {
	w := synth.New()
	c := overTCP(w)
	call, reply := plainCall(7), plainReply(7)
	c.Client.Datagram(call) // lost
	c.Client.Datagram(call)
	c.Server.Datagram(reply) // lost
	c.Client.Datagram(call)
	c.Server.Datagram(reply)
	c.Client.Datagram(plainCall(8)) // lost
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

// TestUnfinishedRecord: a FIN inside an RPC record is a finding against its sender; one behind a record, and a RST, are none.
func TestUnfinishedRecord(t *testing.T) {
	for _, x := range []struct {
		lacks   int  // bytes of the Call
		missing bool // the segment before the end is not in the capture
		end     func(*synth.Side) *synth.Frame
		want    string
	}{
		{0, false, (*synth.Side).FIN, ""},
		{40, true, (*synth.Side).FIN, ""},
		{1, false, (*synth.Side).FIN, "the client ended its stream inside an RPC record, of which 1 byte is missing"},
		{40, false, (*synth.Side).FIN, "the client ended its stream inside an RPC record, of which 40 bytes are missing"},
		{40, false, (*synth.Side).RST, ""},
	} {
		w := synth.New()
		c := overTCP(w)
		c.Open()
		record := synth.Record(plainCall(1))
		cut := len(record) - x.lacks
		c.Client.Stream(record[:cut-20])
		c.Client.Stream(record[cut-20 : cut])
		if x.missing {
			w.Drop(w.Last())
		}
		x.end(c.Client)
		got := ""
		for _, f := range look.At(w).Findings {
			got += f.Message
		}
		if got != x.want {
			t.Errorf("without %d bytes: %q, want %q", x.lacks, got, x.want)
		}
	}
}

// TestIdleDatagrams: a pair of ports of UDP was another connection if it had no datagram for 120 s.
func TestIdleDatagrams(t *testing.T) {
	for _, x := range []struct {
		pauses []int   // before each RPC, in steps of 50 s
		want   []int64 // packets of the connections
	}{
		{[]int{0, 2, 2}, []int64{6}},
		{[]int{0, 3}, []int64{2, 2}},
		{[]int{0, 2, 3, 2}, []int64{4, 4}},
	} {
		w := synth.New()
		c := overTCP(w)
		for i, pause := range x.pauses {
			for range pause {
				w.Advance(50 * time.Second)
				w.Other(synth.LinkEthernet, pauseFrame(9, 3, 0))
			}
			c.Client.Datagram(plainCall(uint32(i)))
			c.Server.Datagram(plainReply(uint32(i)))
		}
		var got []int64
		for _, r := range look.At(w).Connections {
			got = append(got, r.Packets)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("pauses %v: connections have %d packets, want %d", x.pauses, got, x.want)
		}
	}
}

// TestFirstDatagram: the client is the sender of Calls, whichever datagram is the first one.
func TestFirstDatagram(t *testing.T) {
	for _, first := range []bool{true, false} {
		w := synth.New()
		c := overTCP(w)
		if first {
			c.Client.Datagram(plainCall(1))
		}
		c.Server.Datagram(plainReply(1))
		c.Client.Datagram(plainCall(2))
		s := look.At(w)
		if r := s.Connections[0]; len(s.Connections) != 1 || r.Client.Port.Or(0) != 900 || r.Server.Port.Or(0) != 2049 {
			t.Errorf("a Call first: %t: %d connections, from port %v to %v", first, len(s.Connections), r.Client.Port, r.Server.Port)
		}
	}
}

// overTransports are connections that are open and can carry RPCs, each with a way to break them.
var overTransports = map[string]func(w *synth.Wire) (side func(client bool) sender, abort func()){
	"RoCE": func(w *synth.Wire) (func(bool) sender, func()) {
		c := w.RoCE(synth.Options{})
		c.Connect()
		return messages(c), func() { c.Disconnect(c.Client) }
	},
	"iWARP": func(w *synth.Wire) (func(bool) sender, func()) {
		c := w.IWARP(synth.Options{})
		c.Connect()
		return messages(c), func() { c.Client.RST() }
	},
	"TCP": func(w *synth.Wire) (func(bool) sender, func()) {
		c := overTCP(w)
		c.Open()
		xid := map[bool]uint32{}
		return func(client bool) sender {
			return func() {
				if xid[client]++; client {
					c.Client.Records(plainCall(xid[client]))
				} else {
					c.Server.Records(plainReply(xid[client]))
				}
			}
		}, func() { c.Client.RST() }
	},
}

// sender sends the next Call or Reply.
type sender func()

// messages returns the senders of a connection with RDMA.
func messages(c *synth.Conn) func(client bool) sender {
	return func(client bool) sender {
		return func() {
			if client {
				c.Client.Call(synth.Null())
			} else {
				c.Server.Reply(synth.NullReply())
			}
		}
	}
}

// TestNeverDelivered: with two capture points, a Call of which no copy comes to the server before the connection ends is
// outstanding, and a Reply of which no copy comes to the client is not delivered. A Call whose first copies were lost has
// the time of the first one, and the timers of all of them expired.
func TestNeverDelivered(t *testing.T) {
	for name, open := range overTransports {
		w := synth.New()
		side, abort := open(w)
		call, reply := side(true), side(false)
		lost := map[*synth.Frame]bool{}
		repeated := func(send sender, times, arrives int) {
			send()
			first := w.Last()
			lost[first] = arrives > 0
			for i := range times {
				w.Advance(2200 * time.Millisecond)
				again := w.Retransmit(first)
				lost[again[0]] = i+1 < arrives
			}
		}
		const never = 100
		call() // without ACKs, the split of RoCE is not known
		reply()
		repeated(call, 2, 2) // the third copy comes to the server
		reply()
		call()
		repeated(reply, 1, never)
		repeated(call, 3, never)
		w.Advance(10 * time.Millisecond)
		abort()
		both := look.AtBothEnds(t, w, lost)
		got := both.Transactions
		if len(got) != 4 {
			t.Errorf("%s: %d transactions, want 4", name, len(got))
			continue
		}
		for i, want := range []struct {
			status        record.Status
			lost          bool
			events        int
			retransmitted int
			call          record.Delivery
		}{
			{record.Complete, false, 0, 0, record.DeliveryCertain},
			{record.Complete, false, 2, 2, record.DeliveryCertain},
			{record.NoReply, true, 2, 1, record.DeliveryCertain},
			{record.NoReply, false, 4, 3, record.DeliveryNotDelivered},
		} {
			r, n := got[i], 0
			for _, e := range r.Timeline {
				if e.Event == record.EventLost {
					n++
				}
			}
			if r.Status != want.status || r.ReplyLost != want.lost || n != want.events || r.Retransmitted != want.retransmitted || r.Call.Delivery != want.call {
				t.Errorf("%s: transaction %d: %s, reply_lost %v, %d packets lost, %d retransmitted, Call %s; want %+v", name, i, r.Status, r.ReplyLost, n, r.Retransmitted, r.Call.Delivery, want)
			}
		}
		s, known := got[1].Split.Get()
		if latency := got[1].LatencyNS.Or(0); latency < 4400e6 || latency > 4405e6 || name != "RoCE" && !known || known && s.RequestNetworkNS < 4400e6 || s.RequestNetworkNS > 4401e6 {
			t.Errorf("%s: latency %d, split %+v; want 4.4 s in the network to the server", name, latency, s)
		}
		count := map[string]int{}
		for _, f := range both.Findings {
			count[f.Rule]++
		}
		if count["retransmission-timeout"] != 6 || count["connection-lost"] != 1 || count["capture-incomplete"] != 0 {
			t.Errorf("%s: findings %v", name, count)
		}
	}
}

// TestWaitsBeforeNeverDelivered: a Call that came to the server after a packet that neither capture has may have come in order. Only
// a later Call of which no copy came to the server was not delivered, and what came after it.
func TestWaitsBeforeNeverDelivered(t *testing.T) {
	for name, open := range overTransports {
		w := synth.New()
		side, abort := open(w)
		call, reply := side(true), side(false)
		call()
		reply()
		call()
		w.Drop(w.Last())
		call()
		call()
		lost := map[*synth.Frame]bool{w.Last(): true}
		call()
		w.Advance(10 * time.Millisecond)
		abort()
		var said []record.Delivery
		got := look.AtBothEnds(t, w, lost).Transactions
		for i := range got {
			said = append(said, got[i].Call.Delivery)
		}
		want := []record.Delivery{record.DeliveryCertain, record.DeliveryUnknown, record.DeliveryNotDelivered, record.DeliveryNotDelivered}
		if !slices.Equal(said, want) {
			t.Errorf("%s: delivery of the Calls %v, want %v", name, said, want)
		}
	}
}

// TestPathMTUOfNeverDelivered: a Call that is longer than a packet, and of which no copy came to the server, shows the path MTU, and so how many
// packets answer an RDMA Read. The Reply after that Read came to the client.
func TestPathMTUOfNeverDelivered(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{MTU: 4096})
	c.Connect()
	c.Options.MTU = 1024 // less than the handshake says
	c.Client.Call(synth.Null())
	c.Server.Reply(synth.NullReply())
	c.Client.Call(synth.Call{Reads: synth.ReadChunk(0, synth.Mem(0xa1, 3*1024)), Proc: rpcrdma.NoMsg})
	c.Server.ReadRequest(0xa1, 0, 3*1024)
	c.Server.Reply(synth.NullReply())
	sent := len(w.Frames)
	c.Client.Call(synth.Call{Args: synth.XDR{}.Data(make([]byte, 1500))})
	lost := map[*synth.Frame]bool{}
	for _, f := range w.Frames[sent:] {
		lost[f] = true
	}
	got := look.AtBothEnds(t, w, lost).Transactions
	var said []string
	for i := range got {
		text := fmt.Sprintf("Call %s", got[i].Call.Delivery)
		if got[i].Reply != nil {
			text += fmt.Sprintf(", Reply %s", got[i].Reply.Delivery)
		}
		said = append(said, text)
	}
	if want := []string{"Call certain, Reply unknown", "Call certain, Reply unknown", "Call not_delivered"}; !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}

// TestConnectionKeys: both ends give each connection the same key, connections have different ones, and nothing has the key of a
// connection whose handshake was not captured.
func TestConnectionKeys(t *testing.T) {
	keys := func(path string, from int) (found map[record.Hex64]int64, without int) {
		frames, _ := testkit.Frames(t, path)
		found = map[record.Hex64]int64{} // RPCs by the key of their connection
		d := dissect.New(dissect.Handler{
			Connection: func(r *record.Connection) error {
				if key, known := r.Key.Get(); known != (r.Handshake == "seen" && r.Transport != "UDP") {
					t.Errorf("%s: connection %d: handshake %s, key %v", path, r.ID, r.Handshake, r.Key)
				} else if _, had := found[key]; known && !had && r.Transactions > 0 {
					t.Errorf("%s: connection %d has a key that none of its %d RPCs had", path, r.ID, r.Transactions)
				} else if !known {
					without++
				}
				return nil
			},
			Transaction: func(r *record.Transaction) error {
				if key, known := r.Key.Get(); known {
					found[key]++
				}
				return nil
			},
		}, dissect.Options{})
		for i := range frames[from:] {
			if err := d.Frame(&frames[from+i]); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.Finish(); err != nil {
			t.Fatal(err)
		}
		return found, without
	}
	for _, pair := range []string{"iw-twosided", "roce-oneway41", "roce-outage41"} {
		path := "../../../testdata/ends/" + pair
		client, _ := keys(path+"-client.pcap.zst", 0)
		server, _ := keys(path+"-server.pcap.zst", 0)
		if len(client) < 4 || !slices.Equal(slices.Sorted(maps.Keys(client)), slices.Sorted(maps.Keys(server))) {
			t.Errorf("%s: the client's capture has these RPCs by key: %v; the server's has %v", pair, client, server)
		}
		if late, without := keys(path+"-client.pcap.zst", 400); without == 0 {
			t.Errorf("%s: each connection has a key without the first 400 frames: %v", pair, late)
		}
	}
}

// TestChangedOnPath: a TCP segment that the network changed is reported with its RPC. A finding about its contents is attributed to the
// sender only if the segment was not changed.
func TestChangedOnPath(t *testing.T) {
	for _, changed := range []bool{false, true} {
		w := synth.New()
		c := w.IWARP(synth.Options{})
		c.Connect()
		c.RPC(synth.Null(), synth.NullReply())
		c.Client.Call(synth.Call{XID: 9})
		first := len(w.Frames)
		c.Server.Reply(synth.Reply{XID: 9, Proc: rpcrdma.Error, Err: 7})
		found := map[string]string{} // the side at fault, by rule
		d := dissect.New(dissect.Handler{Finding: func(f *record.Finding) error {
			found[f.Rule] = fmt.Sprint(f.AtFault.Or("nobody"), " ", f.XID.Or(0), " ", f.Packet.Or(0))
			return nil
		}}, dissect.Options{Points: []string{"client.pcap", "server.pcap"}})
		for i, f := range w.Frames {
			at, n := f.Time, int64(i+1)
			v := &capture.Seen{Point: 1, Sent: at, SentNumber: n, ArrivedPoint: 1, Arrived: at + 1e5, ArrivedNumber: n + 100, Fate: capture.FateDelivered}
			v.Changed = changed && i == first
			if err := d.Frame(&capture.Frame{Time: at + 1e5, Number: n + 100, LinkType: 1, Length: f.Length, Data: f.Data, Seen: v}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.Finish(); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"header-malformed": fmt.Sprintf("server 0x00000009 %d", first+1)}
		if changed {
			arrived := fmt.Sprintf("nobody 0x00000009 %d", first+101)
			want = map[string]string{"header-malformed": arrived, "changed-on-path": arrived}
		}
		for rule, text := range want {
			if found[rule] != text {
				t.Errorf("changed %t: %s is attributed to %q, want %q: %v", changed, rule, found[rule], text, found)
			}
		}
		if _, reported := found["changed-on-path"]; reported != changed {
			t.Errorf("changed %t: %v", changed, found)
		}
	}
}
