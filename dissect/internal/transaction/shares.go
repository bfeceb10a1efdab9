package transaction

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/internal/shares"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Shares: what package shares needs to know to divide the latency of an RPC.

// place returns where the packets of a connection were captured, and how that is known. It is refuted if packets of that side came
// late. With several points, each end has a place only if Split is known.
func (cs *connState) place() record.PointFacts {
	client, known := cs.link.Setup().Client.Get()
	if !known || cs.link.SeveralPoints() {
		return record.PointFacts{}
	}
	asker, server := cs.link.Host(client), cs.link.Host(client.Other())
	at, how := cs.table.options.Position.Of(asker.IPAddress(), server.IPAddress()), "option"
	if at == record.PlaceUnknown && cs.table.Located != nil && asker != nil && server != nil {
		at, how = cs.table.Located(asker.Address, server.Address), "interface"
	}
	ways := cs.link.Ways()
	switch {
	case at == record.PlaceUnknown:
		return record.PointFacts{}
	case at == record.AtClient && ways.FromClient.IsElsewhere(), at == record.AtServer && ways.FromServer.IsElsewhere():
		return record.PointFacts{Refuted: record.Some(at), How: record.Some(how)}
	}
	return record.PointFacts{At: record.Some(at), How: record.Some(how)}
}

// refute counts a connection whose packets refute a place.
func (t *Table) refute(at record.PointFacts) {
	place, how := at.Refuted.Or(""), at.How.Or("")
	i := slices.IndexFunc(t.Refuted, func(x record.RefutedPosition) bool { return x.Place == place && x.How == how })
	if i < 0 {
		i, t.Refuted = len(t.Refuted), append(t.Refuted, record.RefutedPosition{Place: place, How: how})
	}
	t.Refuted[i].Connections++
}

// copyBefore is the time before the Call in which a copy of its answer may have been sent, for all that is known.
const copyBefore = record.Time(200e6)

// noteServed notes that the side that executes an RPC sent a packet for it. Packets are noted in the order in which they
// were sent. The first of an RPC left its sender after all those that were noted before.
func (x *txn) noteServed(o *rdma.Operation) {
	by := o.Side
	if !x.cs.table.options.Shares || by == x.side || x.turn.Begun {
		return
	}
	latest := &x.cs.wireActivity().served[by]
	x.turn.Begun, x.turn.After = true, *latest
	if ns, known := o.WayBack(x.call.LastTime - copyBefore); known {
		x.turn.First, x.turn.WayBack = o.First, ns
	}
	latest.Take(&x.call, x.rec.XID)
}

// divide returns the shares of the latency of an RPC, whose timeline is in the order of its packets.
func (x *txn) divide(split record.Opt[record.Split]) (r record.Opt[record.Shares]) {
	t := x.cs.table
	latency, known := x.latency.Get()
	if !known || x.rec.Call == nil || !t.options.Shares {
		return r
	}
	place := x.cs.place()
	s := t.storage.divider.Divide(shares.RPC{
		Call: &x.call, Reply: &x.answer, Timeline: x.rec.Timeline, Waits: x.rec.Waits, Split: split, Turn: &x.turn, Latency: latency,
		Place: place.At.Or(record.PlaceUnknown), How: place.How.Or(""), Backward: x.cs.direction(x.side) == record.Backward, Certain: !x.latencyMin.Known(), Complete: x.cs.showsAll(),
		Whole: len(x.rec.Timeline) < maxEvents && firstSent(x).Time == x.call.Time,
	})
	return record.Some(s)
}

// begins and lasts note what happens on the connection from the Call to the Reply.
func (x *txn) begins() {
	if x.cs.table.options.Shares {
		x.signals = x.cs.link.Counts()
	}
}

func (x *txn) lasts(to record.Time) {
	if !x.cs.table.options.Shares {
		return
	}
	ways := x.cs.link.Ways()
	x.meanwhile = ways.Meanwhile(&x.signals, x.cs.link.WayOf(x.side), x.call.Time, to)
}

// showsAll reports whether the capture can prove the least time of a side: packets that are missing may have been sent
// meanwhile, and with an XID that is used twice at a time, a Reply may answer another Call.
func (cs *connState) showsAll() bool { return !cs.link.Lacks() && !cs.checks.xidReused }
