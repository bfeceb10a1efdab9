package rdma

import (
	"math"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// The life of an operation, on either transport.

// maxSend is the maximum number of bytes that are kept of one Send. Further bytes are
// only counted.
const maxSend = 1 << 20

// operate starts an operation of a flow, with the sequence numbers r.
func (t *Tracker) operate(f *flow, kind Kind, r run, at record.Stamp) *Operation {
	f.seq++
	t.number++
	o := &Operation{Number: t.number, Seq: f.seq, Side: f.side, Kind: kind, First: at, Last: at, conn: f.conn, from: r.from}
	f.conn.share.Charge(opCost)
	t.enter(f, r, o)
	return o
}

// enter assigns sequence numbers of a flow to an operation, and forgets the oldest
// finished operations.
func (t *Tracker) enter(f *flow, r run, o *Operation) {
	if last := f.ops.last(); last != nil && last.op == o && last.to == r.from {
		last.to = r.to
		return
	}
	f.ops.add(entry{r, o})
	f.conn.share.Charge(entryCost)
	for n := f.ops.len(); n > keepFinished && (n > maxEntries || f.ops.entries[f.ops.head].op.finished(f.side)); n-- {
		if n > maxEntries {
			t.budget.Note(budget.Operations)
		}
		t.forgetOldest(f)
	}
}

// finished reports whether nothing more is expected of an operation on the flow of a
// side.
func (o *Operation) finished(s Side) bool {
	return o.done && (o.acked || o.Kind == Read || o.Side != s)
}

// forgetOldest removes the oldest entry of a flow's ledger.
func (t *Tracker) forgetOldest(f *flow) {
	o := f.ops.pop()
	f.conn.share.Charge(-entryCost)
	if o.ledgers > 0 {
		return
	}
	if !o.done && o.Kind == Read {
		t.abandon(o)
	}
	t.releaseOperation(o)
}

// releaseOperation frees an operation that is in no ledger.
func (t *Tracker) releaseOperation(o *Operation) {
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
}

// abandon ends a Read whose response was not captured to its end.
func (t *Tracker) abandon(o *Operation) {
	o.done = true
	c := o.conn
	if o.count == 0 || len(o.seen) == 0 || c.IsIWARP() {
		c.follower.Abandoned(o)
		return
	}
	missing := int64(o.count) - o.seen.Total()
	if c.follower.Abandoned(o) && missing > 0 {
		t.countMissing(c, o.Side.Other(), missing)
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
	run         // its sequence numbers
}

// sendPart adds a part to a Send.
func (t *Tracker) sendPart(f *flow, p part, at record.Stamp) {
	if p.first {
		t.breakSend(f)
		f.send = t.operate(f, Send, p.run, at)
		f.buffer, f.sendTruncated = f.buffer[:0], false
		if len(p.data) >= 4 {
			f.send.Word = record.Some(be.Uint32(p.data))
		}
	}
	o := f.send
	if o == nil {
		return // its beginning was not captured
	}
	t.countPacket(o, at)
	if !p.first {
		t.enter(f, p.run, o)
	}
	data := p.data
	if !(p.first && p.last) { // a Send in one packet is not copied
		if !f.sendTruncated {
			if len(f.buffer)+len(data) > maxSend || !f.conn.wantSends {
				f.sendTruncated = true
			} else {
				had := cap(f.buffer)
				f.buffer = t.buffers.add(f.buffer, data)
				f.conn.share.Charge(int64(cap(f.buffer) - had))
				f.sendTruncated = len(data) < p.size
			}
		}
		data = f.buffer
	}
	t.noteCarried(o, uint64(o.Length), p.size)
	o.Length += int64(p.size)
	o.Bytes += int64(p.size)
	o.Cut, o.Bad = o.Cut || p.cut || len(p.data) < p.size, o.Bad || p.bad
	if p.last {
		o.Invalidates = p.invalidates
		t.endSend(f, data)
	}
}

// endSend ends the Send that is being reassembled.
func (t *Tracker) endSend(f *flow, data []byte) {
	o := f.send
	f.send = nil
	o.done, o.Payload = true, data
	f.conn.follower.Done(o)
	o.Payload = nil
	if f.refused != nil && o.Tag != 0 { // sent before the sender received the refusal
		f.refused.Op = o
		f.conn.follower.Refused(f.refused)
		f.refused.Op = nil
	}
	if cap(f.buffer) > keepBuffer {
		t.dropBuffer(f)
	}
}

// keepBuffer is the number of bytes of its buffer that a flow keeps for its next Send.
const keepBuffer = 1 << 14

func (t *Tracker) dropBuffer(f *flow) {
	f.conn.share.Charge(-int64(cap(f.buffer)))
	t.buffers.back(f.buffer)
	f.buffer = nil
}

// breakSend ends a Send whose rest is missing. Its captured beginning is decoded.
func (t *Tracker) breakSend(f *flow) {
	if f.send != nil {
		f.send.Broken = true
		t.endSend(f, f.buffer)
	}
}

// countPacket counts a packet of an operation.
func (t *Tracker) countPacket(o *Operation, at record.Stamp) {
	o.Packets++
	if o.Kind != Send || at.Packet > o.Last.Packet { // the last packet of a Send is the one that completed it
		o.Last = at
	}
	if t.heldStamp.Packet != 0 && o.disorder == nil {
		o.disorder = &disorder{t.heldStamp, t.now}
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
func (t *Tracker) writeBegins(f *flow, m target, announced bool, r run, at record.Stamp) {
	t.breakWrite(f)
	o := t.operate(f, Write, r, at)
	o.Handle, o.Offset, o.Length, o.Announced = m.handle, m.offset, int64(m.length), announced
	f.write = o
	f.conn.follower.Began(o)
}

// breakWrite ends an RDMA Write whose rest is missing.
func (t *Tracker) breakWrite(f *flow) {
	if f.write != nil {
		f.write.Broken, f.write.done = true, true
		f.write = nil
	}
}

// writePart adds a packet or DDP segment to the RDMA Write in progress; size is the
// number of bytes that data had on the wire.
func (t *Tracker) writePart(f *flow, offset uint64, data []byte, size int, last bool) {
	o := f.write
	t.noteCarried(o, offset, size)
	t.noteBytes(o, offset, int64(size))
	o.Bytes += int64(size)
	if !o.Announced {
		o.Length = max(o.Length, o.Bytes)
	}
	if o.Tag != 0 && f.refused == nil {
		f.conn.follower.Moved(o, offset, data, size)
	}
	if last {
		f.write, o.done = nil, true
		f.conn.follower.Done(o)
	}
}

// readBegins starts an RDMA Read that a flow requests.
func (t *Tracker) readBegins(f *flow, m target, r run, at record.Stamp) *Operation {
	t.breakWrite(f)
	o := t.operate(f, Read, r, at)
	o.response = new(response)
	o.seen = o.room[:0]
	o.Handle, o.Offset, o.Length, o.Announced = m.handle, m.offset, int64(m.length), true
	f.conn.follower.Began(o)
	return o
}

// readPart adds new data to a Read, at an offset in the Read.
func (t *Tracker) readPart(o *Operation, offset int64, data []byte, size int, at record.Stamp) {
	t.noteCarried(o, o.Offset+uint64(offset), size)
	t.noteBytes(o, o.Offset+uint64(offset), int64(size))
	o.Bytes += int64(size)
	if o.Tag != 0 {
		o.conn.follower.Moved(o, o.Offset+uint64(offset), data, size)
	}
	if o.Bytes >= o.Length {
		o.done = true
		o.conn.follower.Done(o)
	}
}

// reportAcked reports that the other side has received an operation.
func (t *Tracker) reportAcked(o *Operation, at record.Stamp, final bool) {
	if o.acked {
		return
	}
	o.acked = true
	if o.Tag != 0 {
		o.conn.follower.Acked(o, at, final)
	}
}

// retransmitted counts and reports a retransmitted packet; o is nil if its operation is
// not known.
func (t *Tracker) retransmitted(f *flow, o *Operation, at record.Stamp, b *Burst) {
	c := f.conn
	c.record.Retransmitted++
	t.mark(o, record.Retransmitted)
	if o == nil || !c.follower.Repeated(o, f.side, at, b) {
		c.record.RetransmittedOfNone++
	}
}

// refuse reports a refusal, and then all operations of the flow after the refused one:
// a receiver that refuses a request accepts no request after it (IBTA volume 1, section
// 9.9.3).
//
// The first fatal refusal ends the connection. After maxRefusals of them, operations
// are not searched any more.
func (t *Tracker) refuse(asker *flow, r *Refusal, c circle, seq uint32) {
	follower := asker.conn.follower
	if !r.Fatal {
		follower.Refused(r)
		return
	}
	if asker.refusals >= maxRefusals {
		return
	}
	asker.refusals++
	follower.Refused(r)
	if r.Op == nil && asker.stream != nil {
		return // the operations after it are not known
	}
	behind := Refusal{Later: true, Fatal: true, By: r.By, At: r.At, Reason: r.Reason, Text: r.Text}
	for i := asker.ops.head; i < len(asker.ops.entries); i++ {
		e := &asker.ops.entries[i]
		if e.op == r.Op || e.op.Tag == 0 || c.delta(e.from, seq) < 0 && c.delta(e.to, seq) <= 0 || e.op.Side != asker.side {
			continue
		}
		behind.Op = e.op
		follower.Refused(&behind)
	}
}

// maxRefusals is the maximum number of fatal refusals of one direction that are
// reported.
const maxRefusals = 16

// countMissing counts packets of a side that are missing from the capture.
func (t *Tracker) countMissing(c *Conn, s Side, n int64) {
	if f := c.flows[s]; f != nil {
		f.missing = true
	}
	c.record.Lost += n
	t.Lost += n
}

// packetsFor returns the number of packets that carry n bytes, at least one.
func packetsFor(n uint32, mtu int) uint32 {
	return uint32(min(max(1, (uint64(n)+uint64(mtu)-1)/uint64(mtu)), math.MaxInt32))
}
