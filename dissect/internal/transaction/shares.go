package transaction

import (
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/internal/shares"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Shares: what package shares needs to know to divide the latency of an RPC.

// fewLate is the number of packets of a host that came late to a point and prove that the point is not at this host: a host
// sends in order, and a single packet may be an accident of the capture.
const fewLate = 2

// place returns where the packets of a connection were captured.
func (cs *connState) place() record.Place {
	if rdma.SeveralPoints(cs.conn) {
		return record.PlaceUnknown // each end has a point only if Split is known
	}
	p, setup := cs.table.options.Position, cs.conn.Setup()
	at := p.Place
	client, known := setup.Client.Get()
	if p.Address.IsValid() {
		switch at = record.Between; {
		case cs.conn.Host(client).At(p.Address):
			at = record.AtClient
		case cs.conn.Host(client.Other()).At(p.Address):
			at = record.AtServer
		}
	}
	side := client
	switch {
	case at == "" || !known:
		return record.PlaceUnknown
	case at == record.Between:
		return at
	case at == record.AtServer:
		side = client.Other()
	}
	if rdma.LateFrom(cs.conn, side) >= fewLate {
		return record.PlaceUnknown
	}
	return at
}

// noteServed notes that the side that executes an RPC sent a packet for it. Packets are noted in the order in which they
// were sent. The first of an RPC left its sender after all those that were noted before.
func (x *txn) noteServed(by rdma.Side) {
	if by == x.side || x.turn.Begun() {
		return
	}
	latest := &x.cs.wireActivity().served[by]
	x.turn.Begins(*latest)
	latest.Take(&x.call, x.rec.XID)
}

// divide returns the shares of the latency of an RPC, whose timeline is in the order of its packets.
func (x *txn) divide(split record.Opt[record.Split]) (r record.Opt[record.Shares]) {
	t := x.cs.table
	latency, known := x.latency.Get()
	if !known || x.rec.Call == nil {
		return r
	}
	s := (&shares.RPC{
		Call: &x.call, Reply: &x.answer, Timeline: x.rec.Timeline, Waits: x.rec.Waits, Split: split, Turn: &x.turn, Latency: latency,
		Place: x.cs.place(), Backward: x.cs.direction(x.side) == record.Backward, Certain: !x.latencyMin.Known(), Complete: x.cs.showsAll(),
		Whole: len(x.rec.Timeline) < maxEvents && firstSent(x).Time == x.call.Time,
	}).Divide(t.storage.proofs[:0])
	t.storage.keep(s.Proofs)
	return record.Some(s)
}

// keep keeps the storage of a list of proofs.
func (s *storage) keep(proofs []record.Proof) { s.proofs = proofs }

// showsAll reports whether the capture can prove the least time of a side: packets that are missing may have been sent
// meanwhile, and with an XID that is used twice at a time, a Reply may answer another Call.
func (cs *connState) showsAll() bool { return !rdma.Lacks(cs.conn) && !cs.checks.xidReused }
