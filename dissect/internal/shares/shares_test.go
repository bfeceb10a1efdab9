package shares

import (
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

const ms = 1_000_000

// at is a time in milliseconds after the Call.
func at(after int64) record.Time { return record.Time(1e9 + after*ms) }

// rpc is an RPC that took 100 ms: RDMA Reads from 20 to 50 ms, an RDMA Write from 80 to 90 ms, and the Reply.
func rpc(change func(r *RPC)) *RPC {
	r := &RPC{
		Call:  &record.Message{Time: at(0), LastTime: at(0), Packet: 1, Delivery: record.DeliveryCertain, Delivered: record.Some(at(0))},
		Reply: &record.Message{Time: at(100), LastTime: at(100), Packet: 9}, Turn: new(Turn), Latency: 100 * ms, Place: record.PlaceUnknown,
		Certain: true, Complete: true, Whole: true,
		Timeline: []record.Event{
			{Time: at(2), Packet: 2, Event: record.EventAck, Of: record.EventCall, From: record.Responder},
			{Time: at(20), Event: record.EventRead, From: record.Responder},
			{Time: at(25), Event: record.EventRead, From: record.Responder},
			{Time: at(40), Event: record.EventReadDone, From: record.Requester},
			{Time: at(50), Event: record.EventReadDone, From: record.Requester},
			{Time: at(80), Event: record.EventWriteFirst, From: record.Responder},
			{Time: at(90), Event: record.EventWriteLast, From: record.Responder},
			{Time: at(100), Event: record.EventReply, From: record.Responder},
		},
	}
	change(r)
	return r
}

// short removes the RDMA Reads and Writes.
func short(r *RPC) { r.Timeline = append(r.Timeline[:1:1], r.Timeline[7]) }

// served notes that the other side had a Call that came later, and then sent the first packet for the RPC.
func served(r *RPC, after int64) { r.Turn.After = Served{At: at(after), Packet: 5, XID: 7} }

// TestShares: the bounds of each side, in milliseconds, and the proofs.
func TestShares(t *testing.T) {
	type bounds [2]int64
	all := bounds{0, 100}
	for name, c := range map[string]struct {
		change                  func(r *RPC)
		client, server, network bounds
		proofs                  []record.ProofKind
	}{
		"anywhere":      {func(*RPC) {}, bounds{0, 30}, bounds{0, 70}, all, []record.ProofKind{record.ProofCallAck}},
		"at the server": {func(r *RPC) { r.Place = record.AtServer }, bounds{0, 30}, bounds{50, 70}, bounds{0, 50}, []record.ProofKind{record.ProofPosition}},
		"at the client": {func(r *RPC) {
			r.Place = record.AtClient
			r.Turn.Answered(at(20), at(33))
			r.Turn.ReadEnd = at(40)
			r.Turn.Answered(at(25), at(41)) // while the other one was answered
		}, bounds{13, 30}, bounds{0, 70}, bounds{0, 87}, []record.ProofKind{record.ProofPosition, record.ProofCallAck}},
		"a Call of the server": {func(r *RPC) { r.Place, r.Backward = record.AtClient, true }, bounds{0, 30}, bounds{50, 70}, bounds{0, 50}, []record.ProofKind{record.ProofPosition}},
		"retransmitted by the server": {func(r *RPC) {
			r.Place = record.AtServer
			r.Timeline = slices.Insert(r.Timeline, 3, record.Event{Time: at(30), Event: record.EventRetransmit, Of: record.EventRead, From: record.Responder})
		}, bounds{0, 30}, bounds{0, 70}, all, nil},
		"packets are missing":   {func(r *RPC) { r.Place, r.Complete = record.AtServer, false }, bounds{0, 30}, bounds{0, 70}, all, nil},
		"two latencies":         {func(r *RPC) { r.Place, r.Certain = record.AtServer, false }, bounds{0, 30}, bounds{0, 70}, all, nil},
		"delivered, perhaps":    {func(r *RPC) { r.Place, r.Call.Delivery = record.AtServer, record.DeliveryUncertain }, bounds{0, 30}, bounds{0, 70}, all, nil},
		"a Read without an end": {func(r *RPC) { r.Place, r.Timeline = record.AtServer, slices.Delete(r.Timeline, 4, 5) }, all, all, all, nil},
		"part of a timeline":    {func(r *RPC) { r.Place, r.Whole = record.AtServer, false }, all, all, all, nil},
		"only a Reply":          {short, bounds{0, 0}, bounds{0, 100}, all, []record.ProofKind{record.ProofCallAck}},
		"the Reply was retransmitted": {func(r *RPC) {
			short(r)
			r.Place, r.Reply.FirstSent = record.AtServer, record.Some(at(40))
			r.Timeline = append(r.Timeline, record.Event{Time: at(100), Event: record.EventRetransmit, Of: record.EventReply, From: record.Responder})
		}, bounds{0, 0}, bounds{40, 40}, bounds{0, 60}, []record.ProofKind{record.ProofPosition}},
		"a later Call was answered first":       {func(r *RPC) { short(r); served(r, 70) }, bounds{0, 0}, bounds{68, 100}, bounds{0, 32}, []record.ProofKind{record.ProofCallAck, record.ProofLaterCall}},
		"a later Call before the ACK":           {func(r *RPC) { short(r); served(r, 1) }, bounds{0, 0}, bounds{0, 100}, all, []record.ProofKind{record.ProofCallAck}},
		"a later Call, and packets are missing": {func(r *RPC) { short(r); served(r, 70); r.Complete = false }, bounds{0, 0}, bounds{0, 100}, all, []record.ProofKind{record.ProofCallAck}},
		"a timestamp": {func(r *RPC) {
			short(r)
			r.Turn.First, r.Turn.WayBack = record.Stamp{Time: at(100), Packet: 9}, 30*ms
		}, bounds{0, 0}, bounds{68, 100}, bounds{0, 32}, []record.ProofKind{record.ProofCallAck, record.ProofTimestamp}},
		"a timestamp of a late packet": {func(r *RPC) {
			short(r)
			r.Turn.First, r.Turn.WayBack = record.Stamp{Time: at(100), Packet: 9}, 99*ms
		}, bounds{0, 0}, bounds{0, 100}, all, []record.ProofKind{record.ProofCallAck}},
		"a timestamp of an earlier packet": {func(r *RPC) {
			short(r)
			r.Turn.First, r.Turn.WayBack = record.Stamp{Time: at(99), Packet: 8}, 30*ms
		}, bounds{0, 0}, bounds{0, 100}, all, []record.ProofKind{record.ProofCallAck}},
		"a Call that was delivered after it was captured, at the server": {func(r *RPC) {
			short(r)
			r.Place, r.Call.Delivered = record.AtServer, record.Some(at(6))
		}, bounds{0, 0}, bounds{94, 94}, bounds{0, 6}, []record.ProofKind{record.ProofPosition}},
		"the same, at the client": {func(r *RPC) {
			short(r)
			r.Place, r.Call.Delivered = record.AtClient, record.Some(at(6))
		}, bounds{0, 0}, bounds{0, 100}, all, []record.ProofKind{record.ProofPosition, record.ProofCallAck}},
		"a Read when the Reply is sent": {func(r *RPC) {
			short(r)
			r.Place, r.Timeline = record.AtServer, slices.Insert(r.Timeline, 1, record.Event{Time: at(100), Event: record.EventRead, From: record.Responder})
		}, all, all, all, nil},
		"a Write while a Read is open": {func(r *RPC) {
			r.Place = record.AtServer
			r.Timeline = slices.Insert(r.Timeline, 3, record.Event{Time: at(30), Event: record.EventWriteFirst, From: record.Responder})
		}, bounds{0, 30}, bounds{50, 70}, bounds{0, 50}, []record.ProofKind{record.ProofPosition}},
		"the client retransmits the Call": {func(r *RPC) {
			short(r)
			r.Place = record.AtServer
			r.Timeline = slices.Insert(r.Timeline, 1, record.Event{Time: at(30), Event: record.EventRetransmit, Of: record.EventCall, From: record.Requester})
		}, bounds{0, 0}, bounds{100, 100}, bounds{0, 0}, []record.ProofKind{record.ProofPosition}},
		"the server retransmits the Reply and an ACK": {func(r *RPC) {
			short(r)
			r.Place = record.AtServer
			r.Timeline = append(r.Timeline, record.Event{Time: at(110), Event: record.EventRetransmit, Of: record.EventReply, From: record.Responder},
				record.Event{Time: at(111), Event: record.EventRetransmit, Of: record.EventAck, From: record.Responder})
		}, bounds{0, 0}, bounds{100, 100}, bounds{0, 0}, []record.ProofKind{record.ProofPosition}},
		"a gap in what the server sent": {func(r *RPC) {
			short(r)
			r.Place = record.AtServer
			r.Timeline = slices.Insert(r.Timeline, 1, record.Event{Time: at(30), Event: record.EventOutOfOrder, From: record.Responder})
		}, bounds{0, 0}, bounds{0, 100}, all, nil},
		"a Read was requested again after its end": { // which was 60 ms after the Call, until 70 ms
			func(r *RPC) {
				r.Place = record.AtServer
				r.Timeline[4].Event = record.EventReadAgain
				r.Timeline = slices.Insert(r.Timeline, 5, record.Event{Time: at(60), Event: record.EventRetransmit, Of: record.EventRead, From: record.Responder},
					record.Event{Time: at(70), Event: record.EventReadDone, From: record.Requester})
			}, bounds{0, 40}, bounds{0, 60}, all, nil,
		},
		"no latency": {func(r *RPC) {
			short(r)
			r.Latency, r.Reply.LastTime, r.Reply.Time, r.Timeline = 0, at(0), at(0), nil
		}, bounds{0, 0}, bounds{0, 0}, bounds{0, 0}, nil},
		"both ends": {func(r *RPC) {
			r.Split = record.Some(record.Split{ClientNS: 10 * ms, ServerNS: 20 * ms, RequestNetworkNS: 30 * ms, ReplyNetworkNS: 40 * ms})
		}, bounds{10, 10}, bounds{20, 20}, bounds{70, 70}, []record.ProofKind{record.ProofBothEnds}},
		"a timer": {func(r *RPC) {
			short(r)
			r.Waits = []record.Wait{{From: at(10), To: at(90), NS: 80 * ms, Reason: record.RetransmitTimeout, Event: record.EventReply}}
		}, bounds{0, 0}, bounds{0, 100}, all, []record.ProofKind{record.ProofCallAck, record.ProofRetransmit}},
		"a Call of the server, at the server": {func(r *RPC) { r.Place, r.Backward = record.AtServer, true }, bounds{0, 30}, bounds{0, 70}, all, []record.ProofKind{record.ProofPosition, record.ProofCallAck}},
		"half of it lost": {func(r *RPC) {
			short(r)
			r.Waits = []record.Wait{{From: at(10), To: at(60), NS: 50 * ms, Reason: record.RetransmitNak, Event: record.EventCall}}
		}, bounds{0, 0}, bounds{0, 100}, all, []record.ProofKind{record.ProofCallAck, record.ProofRetransmit}},
		"less than half of it lost": {func(r *RPC) {
			short(r)
			r.Waits = []record.Wait{{From: at(10), To: at(59), NS: 49 * ms, Reason: record.RetransmitNak, Event: record.EventCall}}
		}, bounds{0, 0}, bounds{0, 100}, all, []record.ProofKind{record.ProofCallAck}},
		"lost, and packets are missing": {func(r *RPC) {
			short(r)
			r.Complete = false
			r.Waits = []record.Wait{{From: at(10), To: at(90), NS: 80 * ms, Reason: record.RetransmitGap, Event: record.EventCall}}
		}, bounds{0, 0}, bounds{0, 100}, all, []record.ProofKind{record.ProofCallAck}},
		"the client asked for the Reply again": {func(r *RPC) {
			short(r)
			r.Place = record.AtServer
			r.Timeline = slices.Insert(r.Timeline, 1, record.Event{Time: at(30), Event: record.EventNak, Of: record.EventReply, From: record.Requester})
		}, bounds{0, 0}, bounds{0, 100}, all, nil},
		"a lost ACK": {func(r *RPC) {
			short(r)
			r.Place = record.AtServer
			r.Timeline = slices.Insert(r.Timeline, 1, record.Event{Time: at(30), Event: record.EventLost, Of: record.EventAck, From: record.Responder})
		}, bounds{0, 0}, bounds{100, 100}, bounds{0, 0}, []record.ProofKind{record.ProofPosition}},
		"a lost end of the Read responses": {func(r *RPC) {
			r.Place = record.AtServer
			r.Timeline = slices.Insert(r.Timeline, 4, record.Event{Time: at(45), Event: record.EventLost, Of: record.EventReadDone, From: record.Requester})
		}, bounds{0, 30}, bounds{0, 70}, all, nil},
		"a timer of the Call": {func(r *RPC) { // only its ACK may have been lost
			short(r)
			r.Waits = []record.Wait{{From: at(10), To: at(90), NS: 80 * ms, Reason: record.RetransmitTimeout, Event: record.EventCall}}
		}, bounds{0, 0}, bounds{0, 100}, all, []record.ProofKind{record.ProofCallAck}},
	} {
		s := new(Divider).Divide(*rpc(c.change))
		for side, got := range map[string][2]bounds{
			"client":  {{s.ClientNS.Min / ms, s.ClientNS.Max / ms}, c.client},
			"server":  {{s.ServerNS.Min / ms, s.ServerNS.Max / ms}, c.server},
			"network": {{s.NetworkNS.Min / ms, s.NetworkNS.Max / ms}, c.network},
		} {
			if got[0] != got[1] {
				t.Errorf("%s: the %s took %v ms, want %v", name, side, got[0], got[1])
			}
		}
		var proofs []record.ProofKind
		for _, p := range s.Proofs {
			proofs = append(proofs, p.Proof)
		}
		if !slices.Equal(proofs, c.proofs) {
			t.Errorf("%s: the proofs are %v, want %v", name, proofs, c.proofs)
		}
	}
}

// TestWays: the longest times of the ways, and the time without progress, in milliseconds.
func TestWays(t *testing.T) {
	wait := func(from, to int64, why record.WaitReason) record.Wait {
		return record.Wait{From: at(from), To: at(to), NS: (to - from) * ms, Reason: why}
	}
	for name, c := range map[string]struct {
		change                            func(r *RPC)
		toServer, toClient, busy, stalled int64
	}{
		// The Call was acknowledged after 2 ms. Responses to the Reads may have been on their way while they were open, for 30 ms, and until
		// the server went on, for another 30 ms.
		"with Reads":             {func(*RPC) {}, 62, 100, 0, 0},
		"with a Read at the end": {func(r *RPC) { r.Timeline = append(r.Timeline[:5:5], r.Timeline[7]) }, 82, 100, 0, 0},
		"only a Reply":           {short, 2, 100, 0, 0},
		"without an ACK":         {func(r *RPC) { short(r); r.Timeline = r.Timeline[1:] }, 100, 100, 0, 0},
		"an ACK of the Reply":    {func(r *RPC) { short(r); r.Timeline[0].Of = record.EventReply }, 100, 100, 0, 0},
		"an ACK of the client":   {func(r *RPC) { short(r); r.Timeline[0].From = record.Requester }, 100, 100, 0, 0},
		"an ACK before the Call": {func(r *RPC) { short(r); r.Timeline[0].Time = at(-1) }, 100, 100, 0, 0},
		"an ACK after the Reply": {func(r *RPC) {
			short(r)
			r.Timeline = append(r.Timeline[1:], record.Event{Time: at(101), Event: record.EventAck, Of: record.EventCall, From: record.Responder})
		}, 100, 100, 0, 0},
		"a later Call":  {func(r *RPC) { short(r); served(r, 70) }, 2, 32, 0, 0},
		"at the server": {func(r *RPC) { r.Place = record.AtServer }, 30, 50, 0, 0},
		"a Call of several packets, at the server": {func(r *RPC) {
			r.Place, r.Call.LastTime, r.Call.Delivered = record.AtServer, at(5), record.Some(at(5))
		}, 35, 55, 0, 0},
		"both ends": {func(r *RPC) {
			r.Split = record.Some(record.Split{ClientNS: 10 * ms, ServerNS: 20 * ms, RequestNetworkNS: 30 * ms, ReplyNetworkNS: 40 * ms})
		}, 30, 40, 0, 0},
		"waits": {func(r *RPC) {
			r.Waits = []record.Wait{wait(10, 20, record.HeadOfLine), wait(15, 25, record.HeadOfLine), wait(60, 70, record.RetransmitGap), wait(95, 120, record.CreditLimit)}
		}, 62, 100, 15, 15},
		"a wait before the Call": {func(r *RPC) { r.Waits = []record.Wait{wait(-20, 5, record.CreditLimit)} }, 62, 100, 0, 5},
	} {
		s := new(Divider).Divide(*rpc(c.change))
		got := [...]int64{s.ToServerNS.Max / ms, s.ToClientNS.Max / ms, s.BusyNS / ms, s.StalledNS / ms}
		if want := [...]int64{c.toServer, c.toClient, c.busy, c.stalled}; got != want {
			t.Errorf("%s: to the server, to the client, busy, stalled: %v, want %v", name, got, want)
		}
	}
}

// TestProofs: what each proof names, and for what point the shares are.
func TestProofs(t *testing.T) {
	var v Divider
	for name, c := range map[string]struct {
		change func(r *RPC)
		point  record.Place
		want   []record.Proof
	}{
		"at the client": {func(r *RPC) {
			short(r)
			served(r, 70)
			r.Place, r.How = record.AtClient, "option"
			r.Call.Time = at(-1)
			r.Turn.First, r.Turn.WayBack = record.Stamp{Time: at(100), Packet: 9}, 20*ms
		}, record.AtClient, []record.Proof{
			{Proof: record.ProofPosition, How: "option"},
			{Proof: record.ProofCallAck, Packet: record.Some[int64](2), NS: record.Some[int64](3 * ms)},
			{Proof: record.ProofLaterCall, Packet: record.Some[int64](5), XID: record.Some[record.Hex32](7), NS: record.Some[int64](71 * ms)},
			{Proof: record.ProofTimestamp, Packet: record.Some[int64](9), NS: record.Some[int64](20 * ms)},
		}},
		"a timestamp that shows no more": {func(r *RPC) {
			short(r)
			served(r, 70)
			r.Turn.First, r.Turn.WayBack = record.Stamp{Time: at(100), Packet: 9}, 30*ms
		}, record.PlaceUnknown, []record.Proof{
			{Proof: record.ProofCallAck, Packet: record.Some[int64](2), NS: record.Some[int64](2 * ms)},
			{Proof: record.ProofLaterCall, Packet: record.Some[int64](5), XID: record.Some[record.Hex32](7), NS: record.Some[int64](70 * ms)},
		}},
		"two ACKs": {func(r *RPC) {
			short(r)
			r.Timeline = slices.Insert(r.Timeline, 1, r.Timeline[0])
		}, record.PlaceUnknown, []record.Proof{{Proof: record.ProofCallAck, Packet: record.Some[int64](2), NS: record.Some[int64](2 * ms)}}},
		"an ACK with the Reply": {func(r *RPC) {
			short(r)
			r.Timeline[0].Time = at(100)
		}, record.PlaceUnknown, []record.Proof{{Proof: record.ProofCallAck, Packet: record.Some[int64](2), NS: record.Some[int64](100 * ms)}}},
		"a later Call when the Reply was sent": {func(r *RPC) { short(r); served(r, 100) }, record.PlaceUnknown, []record.Proof{
			{Proof: record.ProofCallAck, Packet: record.Some[int64](2), NS: record.Some[int64](2 * ms)},
			{Proof: record.ProofLaterCall, Packet: record.Some[int64](5), XID: record.Some[record.Hex32](7), NS: record.Some[int64](100 * ms)},
		}},
		"a Read without an end": {func(r *RPC) { r.Place, r.Timeline = record.AtServer, slices.Delete(r.Timeline, 4, 5) }, record.PlaceUnknown, nil},
		"both ends":             {func(r *RPC) { r.Split = record.Some(record.Split{}) }, record.AtBothEnds, []record.Proof{{Proof: record.ProofBothEnds}}},
		"a loss": {func(r *RPC) {
			short(r)
			r.Place, r.Waits = record.AtServer, []record.Wait{{From: at(10), To: at(70), NS: 60 * ms, Reason: record.RetransmitGap}}
		}, record.AtServer, []record.Proof{{Proof: record.ProofPosition}, {Proof: record.ProofRetransmit, NS: record.Some[int64](60 * ms)}}},
	} {
		if s := v.Divide(*rpc(c.change)); s.Point != c.point || !slices.Equal(s.Proofs, c.want) {
			t.Errorf("%s: at %v, the proofs are %+v, want %+v", name, s.Point, s.Proofs, c.want)
		}
	}
	v.Divide(*rpc(func(*RPC) {}))
	if n := testing.AllocsPerRun(10, func() {
		v.Divide(RPC{Call: v.rpc.Call, Reply: v.rpc.Reply, Turn: v.rpc.Turn, Timeline: v.rpc.Timeline, Whole: true})
	}); n != 0 {
		t.Errorf("a division needs %v allocations, although its lists are used again", n)
	}
}

// TestServed: the latest Call counts, and only if the capture has it.
func TestServed(t *testing.T) {
	var s Served
	for _, call := range []record.Message{{Packet: 3, LastTime: 30}, {Packet: 2, LastTime: 20}, {LastTime: 40}, {Packet: 4, LastTime: 30}} {
		s.Take(&call, record.Hex32(call.Packet))
	}
	if want := (Served{At: 30, Packet: 3, XID: 3}); s != want {
		t.Errorf("the latest Call is %+v, want %+v", s, want)
	}
	var u Turn
	u.Answered(10, 13)
	u.ReadEnd = 20
	u.Answered(19, 25) // while another one was answered
	u.Answered(20, 24)
	u.Answered(30, 29)
	if u.answers != 7 {
		t.Errorf("the responses took %d, want 7", u.answers)
	}
}
