package transaction

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/credits"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/internal/sent"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Waits: the times in which a transaction made no progress, if the capture shows the reason. If it
// shows none, the side whose turn it was may have been working.

// waitFrom is the shortest pause that counts as a wait.
const waitFrom = record.Time(1e6)

// maxWaits is the maximum number of waits of one transaction.
const maxWaits = 64

// busy is a run of packets of one side: each followed the packet before at once, or is of the same RDMA Write, Read response
// or message, of which the rest must be sent before anything else.
type busy struct {
	from, last record.Stamp
	packets    int
	txn        int64        // transaction of the last packet
	xid        record.Hex32 // its XID
	repeated   record.Stamp // the latest retransmission
}

// noTxn is the id of no transaction.
const noTxn = -1

// busyFrom is the number of packets that make a run a transfer.
const busyFrom = 8

// noteActivity records that a side sent a packet of a transaction. If the transaction made no
// progress during that side's transfer for another transaction, and continues immediately after the
// transfer, it waited for the transfer. Inside is true if an earlier packet of the same transfer was noted.
func noteActivity(cs *connState, x *txn, s rdma.Side, at record.Stamp, inside bool) {
	b, active := &cs.wireActivity().busy[s], x.progress.active
	stoodStill := active.Packet != 0 && at.Time-active.Time >= waitFrom
	followsTransfer := b.txn != x.rec.ID && b.packets >= busyFrom && at.Time-b.last.Time < waitFrom
	if stoodStill && followsTransfer {
		if from := max(b.from.Time, active.Time); b.last.Time-from >= waitFrom {
			x.wait(record.Wait{
				From: from, To: at.Time, Reason: record.HeadOfLine, Waiting: cs.link.Setup().End(s), BlockingTransaction: record.Some(b.txn), BlockingXID: record.Some(b.xid),
				Packets: packetList(cs, active.Packet, b.last.Packet, at.Packet),
			})
			noteHeldUp(x, cs.link.LossesBefore(s, sent.Before{Since: from, Until: at.Time, Most: mostLosses}), s)
		}
	}
	cs.wireActivity().noteSend(s, x, at, inside)
	x.progress.seen(at)
}

// noteSend records that a side sent a packet of a transaction.
func (w *wireActivity) noteSend(s rdma.Side, x *txn, at record.Stamp, inside bool) {
	b := &w.busy[s]
	other, paused := b.txn != x.rec.ID, at.Time-b.last.Time >= waitFrom
	if other && b.packets < busyFrom || paused && (other || !inside) || at.Time < b.last.Time {
		b.from, b.packets = at, 0
	}
	b.last, b.txn, b.xid = at, x.rec.ID, x.rec.XID
	b.packets++
}

// answeredReads are the latest RDMA Read of a side whose response is complete, and the latest one of another transaction.
type answeredReads struct{ latest, other answeredRead }

// answeredRead is the end of the response to an RDMA Read.
type answeredRead struct {
	at  record.Stamp
	txn int64 // 0 for none
	xid record.Hex32
}

// note notes the end of the response to an RDMA Read of a transaction, and the time in which it stood behind those of others:
// a side answers RDMA Reads in the order of their requests.
func (r *answeredReads) note(x *txn, o *rdma.Operation) {
	if r.latest.txn != x.rec.ID {
		r.other = r.latest
	}
	r.latest = answeredRead{o.Last, x.rec.ID, x.rec.XID}
	x.noteBehind(o.First, &r.other)
}

// behind is the time in which responses to RDMA Reads of a transaction stood behind those of others.
type behind struct {
	record.BehindReads
	until   record.Time
	longest int64 // the time behind the one that is named
}

// noteBehind notes when an RDMA Read was requested, and the end of the latest response to one of another transaction.
func (x *txn) noteBehind(requested record.Stamp, before *answeredRead) {
	if before.txn == 0 || before.at.Time <= requested.Time {
		return
	}
	b := x.behind
	if b == nil {
		b = new(behind)
		b.From = requested.Time
		x.behind = b
		x.charge(behindCost)
	}
	if n := int64(before.at.Time - max(requested.Time, b.until)); n > 0 {
		b.NS += n
		b.until = before.at.Time
		if n > b.longest {
			b.longest, b.Transaction, b.XID = n, before.txn, before.xid
		}
	}
}

// behindCost is the memory of a behind that is charged to the budget.
const behindCost = 64

// noteRetransmit records that a packet of a transaction was retransmitted. If the transaction made
// no progress before, it waited for the retransmission. A retransmitted response waits for nothing,
// because it was requested.
func noteRetransmit(cs *connState, x *txn, r rdma.Event, of record.EventKind) {
	o, from, at := r.Op, x.progress.active, r.At
	first := r.Burst != nil && r.Burst.Number != x.progress.burst // a burst is waited for once
	if first && from.Packet != 0 && of != record.EventReadDone && at.Time-from.Time >= waitFrom {
		shown, asked := from.Packet, r.Burst.Nak.Packet != 0
		if asked {
			shown = r.Burst.Nak.Packet
		}
		w := record.Wait{
			From: from.Time, To: at.Time, Reason: r.Burst.Cause, Waiting: cs.link.Setup().End(r.By), Event: of, Bytes: record.SomeIf(o.Again, o.Again > 0),
			Packets: packetList(cs, shown, at.Packet, 0),
		}
		if id, xid, known := cs.table.Of(rdma.Tag(r.Burst.First)); known && id != x.rec.ID {
			w.BlockingTransaction, w.BlockingXID = record.Some(id), record.Some(xid)
		}
		w.Acknowledged = o.Acknowledged() && o.Kind != rdma.Read && o.Side == r.By && !asked && w.Reason != record.RetransmitGap && !cs.link.SeveralPoints()
		w.BurstPacket = record.Some(r.Burst.At.Packet)
		w.NakPacket = record.SomeIf(r.Burst.Nak.Packet, asked)
		ignored := asked && w.Reason == record.RetransmitTimeout // the NAK already shows the gap
		if early, filled := o.Disorder(); !ignored && early.Packet != 0 && filled.Packet != 0 && !x.waitedFor(early.Packet) {
			w.OutOfOrderPacket, w.GapFilledBy = record.Some(early.Packet), record.Some(filled.Packet)
			if !asked { // otherwise the NAK shows it
				w.Packets = packetList(cs, early.Packet, filled.Packet, at.Packet)
			}
		}
		x.wait(w)
		noteHeldUp(x, cs.link.LossesBefore(r.By, sent.Before{Burst: r.Burst, Since: from.Time, Until: at.Time, Most: mostLosses}), r.By)
	}
	if b := &cs.wireActivity().busy[r.By]; !r.Gone || b.last.Before(at) { // lost ones may be reported late
		cs.wireActivity().noteSend(r.By, x, at, false)
		b.repeated = at
	}
	if r.Gone { // lost ones may be reported late
		x.progress.seenLate(at)
	} else {
		x.progress.seen(at)
	}
	if r.Burst != nil {
		x.progress.burst = r.Burst.Number
	}
}

// endWaits removes waits that began when the RPC was over: the requester had accepted the Reply, at the latest with the copy that
// ends the latency, and its sender retransmitted it because the acknowledgement was late or lost.
func (x *txn) endWaits() {
	if d := x.answer.Delivery; x.latency.Known() && (d == record.DeliveryCertain || d == record.DeliveryUncertain) {
		x.rec.endWaits(x.answer.LastTime)
	}
}

// waitedFor reports whether a wait is already attributed to an early packet. The reason for another
// wait is then shown elsewhere.
func (x *txn) waitedFor(early int64) bool {
	return slices.ContainsFunc(x.rec.Waits, func(w record.Wait) bool { return w.OutOfOrderPacket.Or(0) == early })
}

// heldBackBy returns the id of the transaction whose packets kept a side busy until it sent a Call,
// or 0. The Call follows a retransmission, or the end of a transfer, within waitFrom. The capture
// does not show when the host posted it.
func (w *wireActivity) heldBackBy(s rdma.Side, at record.Stamp) int64 {
	b := &w.busy[s]
	if b.txn == noTxn || at.Time-b.last.Time >= waitFrom {
		return 0
	}
	if b.packets >= busyFrom || b.repeated.Packet != 0 && at.Time-b.repeated.Time < waitFrom {
		return b.txn
	}
	return 0
}

// noteCreditWait records that a Call could not be sent before a Reply freed a credit: all credits
// were in use, and it is the first Call after that Reply. Nothing is said if a Reply may be missing, as in
// [rule.CreditLimitExceeded].
func noteCreditWait(cs *connState, x *txn, m *message) {
	c := &cs.wireActivity().credit[m.side]
	if c.freed.Packet == 0 || m.First.Time-c.freed.Time >= creditLag || c.freed.Time-c.full.Time < waitFrom || !cs.proves(rule.CreditLimitExceeded, m.side) {
		return
	}
	x.wait(record.Wait{
		From: c.full.Time, To: c.freed.Time, Reason: record.CreditLimit, Waiting: cs.link.Setup().End(m.side),
		Packets: packetList(cs, c.full.Packet, c.freed.Packet, m.First.Packet),
	})
}

// creditLag is the time within which a Call has to follow a freed credit to have waited for it.
const creditLag = record.Time(100e6)

// credit records when all credits of a side were in use, when the first of them was free, and for how long all were in use.
type credit struct {
	full, freed record.Stamp
	usage       credits.Usage
}

// join merges the credits of another connection; the later time at which all were in use counts.
func (c *credit) join(o *credit) {
	c.usage.Join(&o.usage)
	if c.full.Before(o.full) {
		c.full, c.freed = o.full, o.freed
	}
}

// noteCallSent records that a side has one more outstanding Call.
func noteCallSent(cs *connState, m *message) {
	c := &cs.wireActivity().credit[m.side]
	c.freed = record.Stamp{}
	calls, limit := creditsUsed(cs, m.side, m.First.Time)
	granted := limit.Or(0) // without a grant, the one Call before the first Reply uses no credit
	if !cs.checks.credits[m.side].Grant().Known() {
		granted = 0
	}
	c.usage.Sent(m.First.Time, calls, int(granted))
	if limit.Or(0) > 1 && calls >= int(limit.Or(0)) && cs.proves(rule.CreditLimitExceeded, m.side) {
		c.full = m.First
	} else {
		c.full = record.Stamp{}
	}
}

// noteCreditFreed records that a Reply to a side has freed a credit. Calls is the number of Calls that are still in flight.
func (w *wireActivity) noteCreditFreed(s rdma.Side, at record.Stamp, calls int) {
	c := &w.credit[s]
	c.usage.Answered(at.Time, calls)
	if c.full.Packet != 0 && c.freed.Packet == 0 {
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

// packetList returns the packet numbers without successive equal ones and zeros.
func packetList(cs *connState, numbers ...int64) []int64 {
	t := cs.table
	if len(t.evidence)+len(numbers) > cap(t.evidence) { // lists that were handed out do not change
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

// evidenceBlock is the number of packet numbers that are allocated at once.
const evidenceBlock = 256

// waited returns how many nanoseconds of [from, to) the transaction waited.
func (x *txn) waited(from, to record.Time) int64 {
	return record.Waited(x.rec.Waits, from, to, func(*record.Wait) bool { return true })
}

// heldBy is a packet that was lost or damaged between capture points before a wait ended.
type heldBy struct {
	wait int // index of the wait
	side rdma.Side
	loss rdma.Loss
}

// mostLosses limits the number of lost packets of a wait.
const mostLosses = 64

// heldByCost is the memory of such a packet that is charged to the budget.
const heldByCost = 64

// noteHeldUp notes the losses that may have caused the latest wait, in which a side waited.
func noteHeldUp(x *txn, losses []rdma.Loss, s rdma.Side) {
	n := len(x.rec.Waits)
	if n == 0 || len(losses) == 0 {
		return
	}
	p := onPath(x)
	if len(p.held)+len(losses) > maxHeld {
		return
	}
	for i := range losses {
		p.hold(heldBy{n - 1, s, losses[i]})
	}
	x.charge(int64(len(losses)) * heldByCost)
}

// maxHeld limits the number of lost packets of all waits of a transaction.
const maxHeld = 256

// explainWaits adds the lost packets to the waits of a transaction that they explain. A packet of another transaction
// explains a wait only if it comes before those of this one, or if the sender was busy with that transaction.
func (t *Table) explainWaits(x *txn) {
	if x.path == nil {
		return
	}
	for i := range x.path.held {
		h := &x.path.held[i]
		if h.wait >= len(x.rec.Waits) {
			continue
		}
		w := &x.rec.Waits[h.wait]
		l := record.LostRef{Packet: h.loss.At.Packet, Time: h.loss.At.Time, Damaged: h.loss.Damaged}
		own := false
		if o := x.cs.link.LostOperation(h.side, &h.loss); o != nil {
			if other, part := t.tagged(o.Tag); other != nil {
				l.XID, own = record.Some(other.rec.XID), other == x
				l.Event = lostKind(o, part, h.side, &h.loss)
			}
		}
		switch {
		case own:
		case w.Reason == record.HeadOfLine && l.XID != w.BlockingXID, h.loss.Later:
			continue
		}
		if l.Event == "" && h.loss.Nak {
			l.Event = record.EventNak
		}
		w.Lost = append(w.Lost, l)
	}
	x.path.held = nil
}
