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
func served(r *RPC, after int64) { r.Turn.Begins(Served{At: at(after), Packet: 5, XID: 7}) }

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
			r.Turn.Ends(at(40))
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
			r.Turn.Takes(record.Stamp{Time: at(100), Packet: 9}, 30*ms)
		}, bounds{0, 0}, bounds{68, 100}, bounds{0, 32}, []record.ProofKind{record.ProofCallAck, record.ProofTimestamp}},
		"a timestamp of a late packet": {func(r *RPC) {
			short(r)
			r.Turn.Takes(record.Stamp{Time: at(100), Packet: 9}, 99*ms)
		}, bounds{0, 0}, bounds{0, 100}, all, []record.ProofKind{record.ProofCallAck}},
		"both ends": {func(r *RPC) {
			r.Split = record.Some(record.Split{ClientNS: 10 * ms, ServerNS: 20 * ms, RequestNetworkNS: 30 * ms, ReplyNetworkNS: 40 * ms})
		}, bounds{10, 10}, bounds{20, 20}, bounds{70, 70}, []record.ProofKind{record.ProofBothEnds}},
		"a timer": {func(r *RPC) {
			short(r)
			r.Waits = []record.Wait{{From: at(10), To: at(90), NS: 80 * ms, Reason: record.RetransmitTimeout, Event: record.EventReply}}
		}, bounds{0, 0}, bounds{0, 100}, all, []record.ProofKind{record.ProofCallAck, record.ProofRetransmit}},
		"a timer of the Call": {func(r *RPC) { // only its ACK may have been lost
			short(r)
			r.Waits = []record.Wait{{From: at(10), To: at(90), NS: 80 * ms, Reason: record.RetransmitTimeout, Event: record.EventCall}}
		}, bounds{0, 0}, bounds{0, 100}, all, []record.ProofKind{record.ProofCallAck}},
	} {
		s := rpc(c.change).Divide(nil)
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
