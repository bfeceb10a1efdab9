package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/internal/queue"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// How the requests of a flow become operations, on either transport.

// maxSend is the maximum number of bytes that are kept of one Send. Further bytes are
// only counted. READ and WRITE of NFS over TCP move up to 4 MiB in one record.
const maxSend = 8 << 20

// assembly is the Send and the Write of a flow that are not complete yet.
type assembly struct {
	send      *Operation // nil if none is being reassembled
	write     *Operation // nil if there is none
	buffer    []byte     // captured bytes of the Send, from its start
	truncated bool       // buffer ends before the Send does: bytes are missing, and nothing is stored after them
}

// add adds bytes to the Send, of which size were sent and data was captured. Nothing is stored if it
// is not wanted.
func (a *assembly) add(data []byte, size int, wanted bool, b *queue.Buffers) {
	if a.truncated = a.truncated || len(a.buffer)+len(data) > maxSend || !wanted; a.truncated {
		return
	}
	a.buffer = b.Add(a.buffer, data)
	a.truncated = len(data) < size
}

// endSend ends the Send, and returns it.
func (a *assembly) endSend() (o *Operation) {
	o, a.send = a.send, nil
	return o
}

// forget forgets an operation that is not complete.
func (a *assembly) forget(o *Operation) {
	if a.send == o {
		a.send = nil
	}
	if a.write == o {
		a.write = nil
	}
}

// free frees the storage of the Send.
func (a *assembly) free(b *queue.Buffers) {
	b.Back(a.buffer)
	a.buffer = nil
}

// operate starts an operation of the flow, with the sequence numbers r.
func (f *flow) operate(kind Kind, r order.Run, at record.Stamp) *Operation {
	f.seq++
	o, number := f.conn.tracker.pool.take()
	o.begin(f, kind, number, r.From, at)
	if s := f.sent; s != nil {
		first, seen := s.First(r.From, at)
		o.First, o.sentSeen, o.notDelivered = first.At, seen, s.Only()
		if first.Hurt && kind == Send && !s.Only() {
			o.damagedFirst(s.FirstLoss(r.From, first.At), first.Gone)
		}
	}
	f.conn.holds(opCost)
	o.watch()
	f.enter(r, o)
	return o
}

// enter assigns sequence numbers of the flow to an operation, and forgets the oldest
// finished operations.
func (f *flow) enter(r order.Run, o *Operation) {
	if !f.ops.enter(r, o) {
		return
	}
	for n := f.ops.len(); n > keepFinished && (n > maxEntries || f.ops.oldest().finished(f.side)); n-- {
		if n > maxEntries {
			f.conn.tracker.budget.Note(budget.Operations)
		}
		f.forgetOldest()
	}
}

// forgetOldest removes the oldest entry of the flow's ledger.
func (f *flow) forgetOldest() {
	o := f.ops.pop()
	if o.ledgers > 0 {
		return
	}
	if !o.done && o.Kind == Read {
		o.abandon()
	}
	o.release()
}

// release frees an operation that is in no ledger.
func (o *Operation) release() {
	o.pass()
	c := o.conn
	for f := range c.known {
		f.parts.forget(o)
	}
	c.holds(-opCost)
	if o.Kind == Read {
		c.holds(-spanCost * int64(o.spans))
	}
	c.tracker.pool.free(o)
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
func (f *flow) sendPart(p part, cur *currentPacket) {
	if p.first {
		f.breakSend()
		f.parts.send = f.operate(Send, p.Run, cur.at)
		f.parts.buffer, f.parts.truncated = f.parts.buffer[:0], false
		f.parts.send.starts(p.data, cur.class)
	}
	o, t := f.parts.send, f.conn.tracker
	if o == nil {
		return // its beginning was not captured
	}
	o.countPacket(cur)
	if !p.first {
		f.enter(p.Run, o)
	}
	data := p.data
	if !(p.first && p.last) { // a Send in one packet is not copied
		f.parts.add(data, p.size, f.conn.wantSends, t.buffers)
		data = f.parts.buffer
	}
	t.contents.notePayload(o, uint64(o.Length), p.size)
	o.grow(&p, f.sent.Only())
	if !p.last {
		return
	}
	if f.ops.ordered && f.sent != nil {
		o.copies.seen = f.sent.Arrived()
	}
	if p.first && f.qp != nil {
		if at, damaged := f.qp.takeDamaged(p); damaged {
			o.damagedFirst(at, false)
		}
	}
	f.endSend(data)
	if o.Damaged().Packet != 0 && f.sent == nil {
		var b *Burst
		if cur.after.Packet == 0 { // otherwise it came out of order, and the events before it, which show the reason, have passed
			b = f.burstOf(p.Run, o, cur.at)
		}
		f.retransmitted(o, b, cur)
	}
}

// endSend ends the Send that is being reassembled, of which data was captured.
func (f *flow) endSend(data []byte) {
	o := f.parts.endSend()
	o.complete(data)
	f.ended(o)
}

// ended reports that a Send was refused if it was sent before its sender received the refusal of an earlier one.
func (f *flow) ended(o *Operation) {
	if f.refused != nil && o.Tag != 0 {
		o.noteRefused(f.refused)
		f.conn.follower.Refused(f.refused.about(o))
	}
	if cap(f.parts.buffer) > keepBuffer {
		f.dropBuffer()
	}
}

// keepBuffer is the number of bytes of its buffer that a flow keeps for its next Send.
const keepBuffer = 1 << 14

// dropBuffer frees the storage of the Send that is being reassembled.
func (f *flow) dropBuffer() {
	f.parts.free(f.conn.tracker.buffers)
}

// breakSend ends a Send whose rest is missing. Its captured beginning is decoded.
func (f *flow) breakSend() {
	if o := f.parts.endSend(); o != nil {
		o.Broken = true
		o.complete(f.parts.buffer)
		f.ended(o)
	}
}

// target is the memory that a request names.
type target struct {
	handle uint32
	offset uint64
	length uint32
}

// names starts an operation that names memory, and reports it.
func (f *flow) names(kind Kind, m target, announced bool, r order.Run, at record.Stamp) *Operation {
	f.breakWrite()
	o := f.operate(kind, r, at)
	if kind == Read {
		o.request(f.readTimes(o, at))
	}
	o.Handle, o.Offset, o.Length, o.Announced = m.handle, m.offset, int64(m.length), announced
	if kind != Atomic {
		f.conn.setup.usesMemory(f.side)
	}
	switch kind {
	case Write:
		f.parts.write = o
	case Atomic:
		o.Packets, o.count = 1, 1
	}
	f.conn.follower.Operation(Event{What: Began, Op: o})
	return o
}

// breakWrite ends an RDMA Write whose rest is missing.
func (f *flow) breakWrite() {
	if o := f.parts.write; o != nil {
		o.Broken, o.done = true, true
		f.parts.write = nil
	}
}

// writePart adds a packet or DDP segment to the RDMA Write in progress; size is the
// number of bytes that data had on the wire.
func (f *flow) writePart(offset uint64, data []byte, size int, last bool) {
	o := f.parts.write
	o.write(offset, data, size, f.refused != nil)
	if last {
		f.parts.write = nil
		o.complete(nil)
	}
}

// covered notes that the other side has received all operations before the sequence number
// next, as the current packet shows.
func (f *flow) covered(next uint32, cur *currentPacket) {
	f.ops.covered(next, cur.acceptedBefore(), func(o *Operation) {
		if o.covered(cur.at); cur.bare { // it has no other purpose
			cur.mark(o, 0)
		}
	})
}

// refuse reports a refusal, and then all operations of the flow after the refused one, which has a sequence number:
// a receiver that refuses a request accepts no request after it (IBTA volume 1, section
// 9.9.3). What it acknowledged before, it had accepted: then it refuses a late copy of a request.
//
// The first fatal refusal ends the connection. After maxRefusals of them, operations
// are not searched any more.
func (f *flow) refuse(r *Refusal, seq uint32) {
	follower := f.conn.follower
	if !r.Fatal {
		follower.Refused(r)
		return
	}
	if f.refusals >= maxRefusals {
		return
	}
	f.refusals++
	r.Op.noteRefused(r)
	follower.Refused(r)
	if r.Op == nil && f.ops.circle == order.Octets {
		return // the operations after it are not known
	}
	later := &Refusal{Later: true, Fatal: true, By: r.By, At: r.At, Reason: r.Reason, Text: r.Text}
	for _, e := range f.ops.all() {
		if e.op == r.Op || e.op.Tag == 0 || e.op.acked || f.ops.circle.Delta(e.From, seq) < 0 && f.ops.circle.Delta(e.To, seq) <= 0 || e.op.Side != f.side {
			continue
		}
		e.op.noteRefused(later)
		follower.Refused(later.about(e.op))
	}
}

// about returns the refusal for another operation.
func (r Refusal) about(o *Operation) *Refusal {
	r.Op = o
	return &r
}

// maxRefusals is the maximum number of fatal refusals of one direction that are
// reported.
const maxRefusals = 16
