package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/queue"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// The life of an operation, on either transport.

// maxSend is the maximum number of bytes that are kept of one Send. Further bytes are
// only counted. READ and WRITE of NFS over TCP move up to 4 MiB in one record.
const maxSend = 8 << 20

// operations makes operations of requests and responses, and reports their events.
type operations struct {
	tracker  *Tracker
	contents *contents

	buffers  buffers
	unused   queue.FreeList[Operation]
	sentOnly bool         // what is being accepted was sent, and did not come to its receiver
	gone     []*Operation // freed while the current packet was taken, which may still refer to them
	number   int64        // of the latest operation
	bursts   int64        // number of bursts so far

	finished record.RDMAOperation // the latest record
}

// operate starts an operation of a flow, with the sequence numbers r.
func (ops *operations) operate(f *flow, kind Kind, r order.Run, at record.Stamp) *Operation {
	f.seq++
	ops.number++
	o := ops.unused.Take()
	if o == nil {
		o = new(Operation)
	} else {
		r := o.response
		*o = Operation{} // a statement of its own, so that the compiler clears it in place
		if r != nil && cap(r.seen) <= 16 {
			*r = response{}
			o.response = r
		}
	}
	o.Number, o.Seq, o.Side, o.Kind, o.First, o.Last, o.conn, o.from = ops.number, f.seq, f.side, kind, at, at, f.conn, r.From
	if f.paths != nil {
		var first sentAt
		first, o.sentSeen = f.firstSent(r.From, at)
		if o.First, o.notDelivered = first.at, ops.sentOnly; first.hurt && kind == Send && !ops.sentOnly {
			o.disorder = &disorder{damaged: first.at, gone: first.gone}
			for i := range f.paths.losses {
				if l := &f.paths.losses[i]; l.seq == r.From && l.At.Time >= first.at.Time {
					o.disorder.damaged = l.At
					break
				}
			}
		}
	}
	f.conn.share.Charge(opCost)
	ops.watch(o)
	ops.enter(f, r, o)
	return o
}

// enter assigns sequence numbers of a flow to an operation, and forgets the oldest
// finished operations.
func (ops *operations) enter(f *flow, r order.Run, o *Operation) {
	if last := f.ops.last(); last != nil && last.op == o && last.To == r.From {
		last.To = r.To
		return
	}
	f.ops.add(entry{r, o})
	f.conn.share.Charge(entryCost)
	for n := f.ops.len(); n > keepFinished && (n > maxEntries || f.ops.entries[f.ops.head].op.finished(f.side)); n-- {
		if n > maxEntries {
			ops.tracker.budget.Note(budget.Operations)
		}
		ops.forgetOldest(f)
	}
}

// finished reports whether nothing more is expected of an operation on the flow of a
// side.
func (o *Operation) finished(s Side) bool {
	return o.done && (o.acked || o.Kind == Read || o.Side != s)
}

// forgetOldest removes the oldest entry of a flow's ledger.
func (ops *operations) forgetOldest(f *flow) {
	o := f.ops.pop()
	f.conn.share.Charge(-entryCost)
	if o.ledgers > 0 {
		return
	}
	if !o.done && o.Kind == Read {
		ops.abandon(o)
	}
	ops.releaseOperation(o)
}

// releaseOperation frees an operation that is in no ledger.
func (ops *operations) releaseOperation(o *Operation) {
	ops.pass(o)
	c := o.conn
	for _, f := range c.flows {
		if f == nil {
			continue
		}
		if f.send == o {
			f.send = nil
		}
		if f.write == o {
			f.write = nil
		}
	}
	c.share.Charge(-opCost)
	if o.Kind == Read {
		c.share.Charge(-spanCost * int64(o.spans))
	}
	ops.gone = append(ops.gone, o)
}

// forgetAll frees the operations of a flow whose connection is finished.
func (ops *operations) forgetAll(f *flow) {
	f.send, f.write = nil, nil
	for f.ops.len() > 0 {
		if o := f.ops.pop(); o.ledgers == 0 {
			ops.gone = append(ops.gone, o)
		}
	}
}

// maxUnused is the maximum number of operations whose storage is kept for the next ones.
const maxUnused = 1 << 10

// reclaim keeps the operations that were freed, for reuse. No packet refers to them any more.
func (ops *operations) reclaim() {
	for i, o := range ops.gone {
		ops.unused.Keep(o, maxUnused)
		ops.gone[i] = nil
	}
	ops.gone = ops.gone[:0]
}

// abandon ends a Read whose response was not captured to its end.
func (ops *operations) abandon(o *Operation) {
	o.done = true
	c := o.conn
	if o.count == 0 || len(o.seen) == 0 || c.setup.IWARP {
		c.follower.Operation(Event{What: Abandoned, Op: o})
		return
	}
	missing := int64(o.count) - o.seen.Total()
	if c.follower.Operation(Event{What: Abandoned, Op: o}) != Open && missing > 0 { // the requester went on without them
		ops.countMissing(c, o.Side.Other(), missing, o.First.Time, c.last.Time)
		c.Report(ruleLost, Where{At: c.last}, "%d response packets of the RDMA Read with PSN %d are not in the capture", missing, o.from)
	}
}

// part is the part of a Send in a packet or DDP segment.
type part struct {
	first, last bool
	data        []byte // captured bytes
	size        int    // bytes on the wire
	cut         bool   // the capture truncated the packet, or lacks its checksum
	bad         bool   // its ICRC is bad, and it was accepted
	invalidates record.Opt[uint32]
	order.Run   // its sequence numbers
}

// sendPart adds a part to a Send.
func (ops *operations) sendPart(f *flow, p part, cur *currentPacket) {
	if p.first {
		ops.breakSend(f)
		f.send = ops.operate(f, Send, p.Run, cur.at)
		f.buffer, f.sendTruncated = f.buffer[:0], false
		if len(p.data) >= 4 {
			f.send.Word = record.Some(be.Uint32(p.data))
		}
	}
	o := f.send
	if o == nil {
		return // its beginning was not captured
	}
	ops.countPacket(o, cur)
	o.notDelivered = o.notDelivered || ops.sentOnly
	if !p.first {
		ops.enter(f, p.Run, o)
	}
	data := p.data
	if !(p.first && p.last) { // a Send in one packet is not copied
		if !f.sendTruncated {
			if len(f.buffer)+len(data) > maxSend || !f.conn.wantSends {
				f.sendTruncated = true
			} else {
				had := cap(f.buffer)
				f.buffer = ops.buffers.add(f.buffer, data)
				f.conn.share.Charge(int64(cap(f.buffer) - had))
				f.sendTruncated = len(data) < p.size
			}
		}
		data = f.buffer
	}
	ops.contents.notePayload(o, uint64(o.Length), p.size)
	o.Length += int64(p.size)
	o.Bytes += int64(p.size)
	o.Cut, o.Bad = o.Cut || p.cut || len(p.data) < p.size, o.Bad || p.bad
	if p.last {
		if f.ordered() && f.paths != nil {
			o.copies.seen = f.paths.last.Arrived
		}
		o.Invalidates = p.invalidates
		if p.first {
			f.takeDamaged(o, p)
		}
		ops.endSend(f, data)
		if o.Damaged().Packet != 0 && f.paths == nil {
			ops.resent(f, o, p.Run, cur)
		}
	}
}

// endSend ends the Send that is being reassembled.
func (ops *operations) endSend(f *flow, data []byte) {
	o := f.send
	f.send = nil
	o.done, o.Payload = true, data
	f.conn.follower.Operation(Event{What: Done, Op: o})
	o.Payload = nil
	o.noteTag()
	if f.refused != nil && o.Tag != 0 { // sent before the sender received the refusal
		f.refused.Op = o
		f.conn.follower.Refused(f.refused)
		f.refused.Op = nil
	}
	if cap(f.buffer) > keepBuffer {
		ops.dropBuffer(f)
	}
}

// keepBuffer is the number of bytes of its buffer that a flow keeps for its next Send.
const keepBuffer = 1 << 14

func (ops *operations) dropBuffer(f *flow) {
	f.conn.share.Charge(-int64(cap(f.buffer)))
	ops.buffers.back(f.buffer)
	f.buffer = nil
}

// breakSend ends a Send whose rest is missing. Its captured beginning is decoded.
func (ops *operations) breakSend(f *flow) {
	if f.send != nil {
		f.send.Broken = true
		ops.endSend(f, f.buffer)
	}
}

// countPacket counts a packet of an operation.
func (ops *operations) countPacket(o *Operation, cur *currentPacket) {
	o.Packets++
	if o.Kind != Send || o.Last.Before(cur.at) { // the last packet of a Send is the one that completed it
		o.Last = cur.at
	}
	if cur.after.Packet != 0 && o.disorder == nil {
		o.disorder = &disorder{early: cur.at, filled: cur.after}
	}
}

// target is the memory that a request names.
type target struct {
	handle uint32
	offset uint64
	length uint32
}

// writeBegins starts an RDMA Write. If announced is false, the length of the memory is
// only that of the first segment.
func (ops *operations) writeBegins(f *flow, m target, announced bool, r order.Run, at record.Stamp) {
	ops.breakWrite(f)
	o := ops.operate(f, Write, r, at)
	f.conn.setup.usesMemory(f.side)
	o.Handle, o.Offset, o.Length, o.Announced = m.handle, m.offset, int64(m.length), announced
	f.write = o
	f.conn.follower.Operation(Event{What: Began, Op: o})
}

// breakWrite ends an RDMA Write whose rest is missing.
func (ops *operations) breakWrite(f *flow) {
	if f.write != nil {
		f.write.Broken, f.write.done = true, true
		f.write = nil
	}
}

// writePart adds a packet or DDP segment to the RDMA Write in progress; size is the
// number of bytes that data had on the wire.
func (ops *operations) writePart(f *flow, offset uint64, data []byte, size int, last bool) {
	o := f.write
	ops.contents.notePayload(o, offset, size)
	o.Bytes += int64(size)
	if !o.Announced {
		o.Length = max(o.Length, o.Bytes)
	}
	if o.Tag != 0 && f.refused == nil {
		f.conn.follower.Moved(o, offset, data, size)
	}
	if last {
		f.write, o.done = nil, true
		f.conn.follower.Operation(Event{What: Done, Op: o})
		o.noteTag()
	}
}

// readBegins starts an RDMA Read that a flow requests.
func (ops *operations) readBegins(f *flow, m target, r order.Run, at record.Stamp) *Operation {
	ops.breakWrite(f)
	o := ops.operate(f, Read, r, at)
	f.conn.setup.usesMemory(f.side)
	if o.response == nil {
		o.response = new(response)
	}
	o.seen = o.initial[:0]
	if o.times = nil; f.paths != nil {
		o.times = &ReadTimes{Requested: o.First.Time, OneSided: !o.sentSeen}
		if f.ordered() {
			o.times.Delivered, o.times.OneSided = at.Time, o.times.OneSided || !f.paths.last.Arrived
		}
	}
	o.Handle, o.Offset, o.Length, o.Announced = m.handle, m.offset, int64(m.length), true
	f.conn.follower.Operation(Event{What: Began, Op: o})
	return o
}

// readPart adds new data to a Read, at an offset in the Read.
func (ops *operations) readPart(o *Operation, offset int64, data []byte, size int) {
	ops.contents.notePayload(o, o.Offset+uint64(offset), size)
	o.Bytes += int64(size)
	if o.Tag != 0 {
		o.conn.follower.Moved(o, o.Offset+uint64(offset), data, size)
	}
	if o.Bytes >= o.Length {
		o.done = true
		o.conn.follower.Operation(Event{What: Done, Op: o})
		o.noteTag()
	}
}

// covered reports that the other side has received all operations before the sequence number
// next.
func (ops *operations) covered(f *flow, c order.Circle, next uint32, cur *currentPacket) {
	l, end := &f.ops, f.ops.unacked
	for end < len(l.entries) && c.Delta(next, l.entries[end].To) >= 0 && l.entries[end].op != f.send && l.entries[end].op != f.write {
		end++
	}
	ops.decideCopies(f, l.unacked, end, cur.at)
	for ; l.unacked < end; l.unacked++ {
		o := l.entries[l.unacked].op
		if o.Side != f.side || o.acked { // a response to the other side's Read
			continue
		}
		o.noteAcked(cur.at)
		if o.acked = true; o.Tag != 0 {
			o.conn.follower.Operation(Event{What: Acked, Op: o, At: cur.at})
		}
	}
}

// refuse reports a refusal, and then all operations of the flow after the refused one:
// a receiver that refuses a request accepts no request after it (IBTA volume 1, section
// 9.9.3).
//
// The first fatal refusal ends the connection. After maxRefusals of them, operations
// are not searched any more.
func (ops *operations) refuse(asker *flow, r *Refusal, c order.Circle, seq uint32) {
	follower := asker.conn.follower
	if !r.Fatal {
		follower.Refused(r)
		return
	}
	if asker.refusals >= maxRefusals {
		return
	}
	asker.refusals++
	r.Op.noteRefused(r)
	follower.Refused(r)
	if r.Op == nil && c == order.Octets {
		return // the operations after it are not known
	}
	later := Refusal{Later: true, Fatal: true, By: r.By, At: r.At, Reason: r.Reason, Text: r.Text}
	for i := asker.ops.head; i < len(asker.ops.entries); i++ {
		e := &asker.ops.entries[i]
		if e.op == r.Op || e.op.Tag == 0 || c.Delta(e.From, seq) < 0 && c.Delta(e.To, seq) <= 0 || e.op.Side != asker.side {
			continue
		}
		later.Op = e.op
		follower.Refused(&later)
	}
}

// maxRefusals is the maximum number of fatal refusals of one direction that are
// reported.
const maxRefusals = 16

// countMissing counts packets of a side that are missing from the capture. They passed after the first time, and before the
// packet at the second one.
func (ops *operations) countMissing(c *Conn, s Side, n int64, from, to record.Time) {
	f := c.flows[s]
	if f != nil {
		f.missing = true
	}
	if f != nil && ops.tracker.Missing != nil {
		if from == 0 { // nothing of this side was captured before
			from = c.record.first
		}
		ops.tracker.Missing(f.src.Address, f.dst.Address, n, min(from, to), to)
	}
	c.record.lost(n)
	ops.tracker.Lost += n
}

// markSeen adds the range from lo to hi to the captured part of a Read's response, and
// returns the number of new packets or bytes. The budget counts ranges that the set
// cannot remember.
func (ops *operations) markSeen(o *Operation, lo, hi int64) (fresh int64) {
	had := len(o.seen)
	if fresh = o.seen.Add(lo, hi); fresh == 0 && had >= maxSpans {
		ops.tracker.budget.Note(budget.Spans)
	}
	if more := len(o.seen) - max(had, len(o.initial)); more > 0 {
		o.conn.share.Charge(spanCost * int64(more))
		o.spans += int32(more)
	}
	return fresh
}
