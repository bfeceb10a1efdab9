package transaction

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Waits: when a transaction stood still, and what the capture shows of the reason.
// Nothing is said where it shows none: then whoever was to act next was at work.

// waitFrom is the shortest pause that is a wait.
const waitFrom = record.Time(1e6)

// maxWaits bounds how many waits of one transaction are kept.
const maxWaits = 64

// busy is a run of packets that one side sent, none of them of another
// transaction but those that followed at once.
type busy struct {
	from, last record.Stamp
	packets    int
	txn        int64        // whose packet the last was
	repeated   record.Stamp // the latest retransmission
}

// noTxn is the id of none.
const noTxn = -1

// busyFrom is how many packets keep the wire busy: fewer are no transfer.
const busyFrom = 8

// touch notes that a packet of a transaction was seen, which a side sent. Where the
// transaction stood still while that side was at a transfer of another, and it
// went on right behind that, it waited for it.
func noteActivity(cs *connState, x *txn, s rdma.Side, at record.Stamp) {
	b := &cs.wireActivity().busy[s]
	if x.active.Packet != 0 && at.Time-x.active.Time >= waitFrom && b.txn != x.rec.ID && b.packets >= busyFrom && at.Time-b.last.Time < waitFrom {
		if from := max(b.from.Time, x.active.Time); b.last.Time-from >= waitFrom {
			x.wait(record.Wait{
				From: from, To: at.Time, Reason: record.HeadOfLine, Waiting: cs.conn.End(s), BlockingTransaction: record.Some(b.txn),
				Packets: packetList(cs, x.active.Packet, b.last.Packet, at.Packet),
			})
		}
	}
	noteSend(cs, s, x.rec.ID, at)
	x.active = at
}

// sends notes that a side sent a packet of a transaction.
func noteSend(cs *connState, s rdma.Side, id int64, at record.Stamp) {
	b := &cs.wireActivity().busy[s]
	if b.txn != id && (b.packets < busyFrom || at.Time-b.last.Time >= waitFrom) || at.Time < b.last.Time {
		b.from, b.packets = at, 0
	}
	b.last, b.txn = at, id
	b.packets++
}

// retransmission is a packet of a transaction that was sent again.
type retransmission struct {
	by    rdma.Side
	at    record.Stamp
	of    record.EventKind
	burst *rdma.Burst // nil for a response
}

// again notes that a packet of a transaction was retransmitted: if the transaction
// made no progress before, that is what it waited for. A response that comes again
// was requested again, and waits for nothing.
func noteRetransmit(cs *connState, x *txn, o *rdma.Operation, r retransmission) {
	from, at := x.active, r.at
	if r.burst != nil && from.Packet != 0 && r.of != record.EventReadDone && at.Time-from.Time >= waitFrom {
		shown, asked := from.Packet, r.burst.Nak.Packet != 0
		if asked {
			shown = r.burst.Nak.Packet
		}
		w := record.Wait{
			From: from.Time, To: at.Time, Reason: r.burst.Cause, Waiting: cs.conn.End(r.by), Event: r.of, Bytes: record.SomeIf(o.Again, o.Again > 0),
			Packets: packetList(cs, shown, at.Packet, 0),
		}
		if id, _, known := cs.table.Of(r.burst.First); known && id != x.rec.ID {
			w.BlockingTransaction = record.Some(id)
		}
		if early, filled := o.Disorder(); early.Packet != 0 && filled.Packet != 0 && !x.waitedFor(early.Packet) {
			w.OutOfOrderPacket, w.GapFilledBy = record.Some(early.Packet), record.Some(filled.Packet)
			if !asked { // else the NAK shows it
				w.Packets = packetList(cs, early.Packet, filled.Packet, at.Packet)
			}
		}
		x.wait(w)
	}
	noteSend(cs, r.by, x.rec.ID, at)
	if o.Side != r.by { // a response: its requester is busy with the retransmissions, too
		noteSend(cs, o.Side, x.rec.ID, at)
	}
	cs.wireActivity().busy[r.by].repeated = at
	x.active = at
}

// waitedFor says that a wait was put down to a packet that came early: what the next
// is for shows somewhere else.
func (x *txn) waitedFor(early int64) bool {
	return slices.ContainsFunc(x.rec.Waits, func(w record.Wait) bool { return w.OutOfOrderPacket.Or(0) == early })
}

// heldBackBy returns the id of the transaction whose packets kept a side busy until
// it sent a Call, or 0: the Call follows a retransmission, or the end of a transfer,
// within a time in which nothing else was decided. What the host had posted, and
// when, the capture does not show.
func heldBackBy(cs *connState, s rdma.Side, at record.Stamp) int64 {
	b := &cs.wireActivity().busy[s]
	if b.txn == noTxn || at.Time-b.last.Time >= waitFrom {
		return 0
	}
	if b.packets >= busyFrom || b.repeated.Packet != 0 && at.Time-b.repeated.Time < waitFrom {
		return b.txn
	}
	return 0
}

// outOfCredits notes that a Call could not be sent before a Reply freed a credit:
// all were in use, and it is the first after that.
func noteCreditWait(cs *connState, x *txn, m *message) {
	c := &cs.wireActivity().credit[m.side]
	if c.freed.Packet == 0 || m.First.Time-c.freed.Time >= creditLag || c.freed.Time-c.full.Time < waitFrom {
		return
	}
	x.wait(record.Wait{
		From: c.full.Time, To: c.freed.Time, Reason: record.CreditLimit, Waiting: cs.conn.End(m.side),
		Packets: packetList(cs, c.full.Packet, c.freed.Packet, m.First.Packet),
	})
}

// creditLag is how soon after a credit is free a Call has to follow to have waited
// for it.
const creditLag = record.Time(100e6)

// credit is when all credits of a side were in use, and when the first of them was
// free again.
type credit struct{ full, freed record.Stamp }

// calls notes that a Call of a side is in flight.
func noteCallSent(cs *connState, m *message) {
	c := &cs.wireActivity().credit[m.side]
	c.freed = record.Stamp{}
	if limit, known := cs.granted[m.side].Get(); known && limit > 1 && len(cs.open[m.side]) >= int(limit) {
		c.full = m.First
	} else {
		c.full = record.Stamp{}
	}
}

// replySeen notes that a Reply to a side has freed a credit.
func noteCreditFreed(cs *connState, s rdma.Side, at record.Stamp) {
	if c := &cs.wireActivity().credit[s]; c.full.Packet != 0 && c.freed.Packet == 0 {
		c.freed = at
	}
}

// wait appends a wait.
func (x *txn) wait(w record.Wait) {
	w.NS = int64(w.To - w.From)
	if len(x.rec.Waits) < maxWaits && w.NS > 0 {
		x.rec.Waits = append(x.rec.Waits, w)
		x.charge(waitCost)
	}
}

// evidence lists the packets that show a wait, each once.
func packetList(cs *connState, numbers ...int64) []int64 {
	t := cs.table
	if len(t.evidence)+len(numbers) > cap(t.evidence) { // lists that were handed out stay as they are
		t.evidence = make([]int64, 0, evidenceBlock)
	}
	from := len(t.evidence)
	for _, p := range numbers {
		if n := len(t.evidence); p != 0 && (n == from || t.evidence[n-1] != p) {
			t.evidence = append(t.evidence, p)
		}
	}
	return t.evidence[from:len(t.evidence):len(t.evidence)]
}

// evidenceBlock is how many numbers are allocated at once.
const evidenceBlock = 256

// waited is how much of [from, to) the transaction waited; waits may overlap.
func (x *txn) waited(from, to record.Time) (ns int64) {
	at := from
	for { // from one wait to the next, by their beginnings
		next, end := to, to
		for i := range x.rec.Waits {
			w := &x.rec.Waits[i]
			if w.To > at && w.From < to && max(w.From, at) < next {
				next, end = max(w.From, at), min(w.To, to)
			}
		}
		if next >= to {
			return ns
		}
		ns += int64(end - next)
		at = end
	}
}
