package rdma

import (
	"math"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// What becomes of operations, on either transport.

// maxSend bounds what is put together of one Send; longer ones are counted, not
// kept.
const maxSend = 1 << 20

// operate starts an operation of a half, that takes sequence numbers [from, to).
func (t *Tracker) operate(h *half, kind Kind, r run, at record.Stamp) *Operation {
	h.seq++
	t.number++
	o := &Operation{Number: t.number, Seq: h.seq, Side: h.side, Kind: kind, First: at, Last: at, conn: h.conn, from: r.from}
	h.conn.share.Charge(opCost)
	t.enter(h, r, o)
	return o
}

// enter notes that sequence numbers of a half belong to an operation, and lets go
// of what is long over.
func (t *Tracker) enter(h *half, r run, o *Operation) {
	if last := h.ops.last(); last != nil && last.op == o && last.to == r.from {
		last.to = r.to
		return
	}
	h.ops.add(entry{r, o})
	h.conn.share.Charge(entryCost)
	for n := h.ops.len(); n > keepOver && (n > maxEntries || h.ops.entries[h.ops.head].op.over(h.side)); n-- {
		if n > maxEntries {
			t.budget.Note(budget.Operations)
		}
		t.forget(h)
	}
}

// over says that nothing more is expected of an operation on the half of a side.
func (o *Operation) over(s Side) bool {
	return o.done && (o.acked || o.Kind == Read || o.Side != s)
}

// forget lets go of the oldest entry of a half.
func (t *Tracker) forget(h *half) {
	o := h.ops.pop()
	h.conn.share.Charge(-entryCost)
	if o.refs > 0 {
		return
	}
	if !o.done && o.Kind == Read {
		t.abandon(o)
	}
	t.release(o)
}

// release lets go of an operation that stands in no ledger.
func (t *Tracker) release(o *Operation) {
	c := o.conn
	for _, h := range c.halves {
		if h == nil {
			continue
		}
		if h.send == o {
			h.send = nil
		}
		if h.write == o {
			h.write = nil
		}
	}
	c.share.Charge(-opCost)
	if o.Kind == Read {
		c.share.Charge(-spanCost * int64(o.spans))
	}
}

// abandon ends a Read whose response was not seen to its end.
func (t *Tracker) abandon(o *Operation) {
	o.done = true
	c := o.conn
	if o.count == 0 || len(o.seen) == 0 || c.IsIWARP() {
		c.follower.Abandoned(o)
		return
	}
	missing := int64(o.count) - o.seen.Total()
	if c.follower.Abandoned(o) && missing > 0 {
		t.lose(c, o.Side.Other(), missing)
		c.Report(ruleLost, Where{At: c.last}, "%d response packets of the RDMA Read with PSN %d are not in the capture", missing, o.from)
	}
}

// part is what a packet, or DDP segment, brings of a Send.
type part struct {
	first, last bool
	data        []byte // what was captured
	size        int    // on the wire
	cut         bool   // the capture has cut the packet, if only its checksum
	bad         bool   // its ICRC is bad, and it was believed
	invalidates record.Opt[uint32]
	run         // its sequence numbers
}

// sendPart puts a Send together.
func (t *Tracker) sendPart(h *half, p part, at record.Stamp) {
	if p.first {
		t.breakSend(h)
		h.send = t.operate(h, Send, p.run, at)
		h.buffer, h.sendCut = h.buffer[:0], false
		if len(p.data) >= 4 {
			h.send.Word = record.Some(be.Uint32(p.data))
		}
	}
	o := h.send
	if o == nil {
		return // its beginning is lost
	}
	t.took(o, at)
	if !p.first {
		t.enter(h, p.run, o)
	}
	data := p.data
	if !(p.first && p.last) { // no copy of what is whole in one packet
		if !h.sendCut {
			if len(h.buffer)+len(data) > maxSend || !h.conn.wantSends {
				h.sendCut = true
			} else {
				had := cap(h.buffer)
				h.buffer = t.buffers.add(h.buffer, data)
				h.conn.share.Charge(int64(cap(h.buffer) - had))
				h.sendCut = len(data) < p.size
			}
		}
		data = h.buffer
	}
	t.carries(o, uint64(o.Length), p.size)
	o.Length += int64(p.size)
	o.Bytes += int64(p.size)
	o.Cut, o.Bad = o.Cut || p.cut || len(p.data) < p.size, o.Bad || p.bad
	if p.last {
		o.Invalidates = p.invalidates
		t.sent(h, data)
	}
}

// sent ends the Send that is being put together.
func (t *Tracker) sent(h *half, data []byte) {
	o := h.send
	h.send = nil
	o.done, o.Payload = true, data
	h.conn.follower.Done(o)
	o.Payload = nil
	if h.refused != nil && o.Tag != 0 { // sent before the sender knew
		h.refused.Op = o
		h.conn.follower.Refused(h.refused)
		h.refused.Op = nil
	}
	if cap(h.buffer) > keepBuffer {
		t.dropBuffer(h)
	}
}

// keepBuffer is how many bytes of buffer a half keeps for its next Send.
const keepBuffer = 1 << 14

func (t *Tracker) dropBuffer(h *half) {
	h.conn.share.Charge(-int64(cap(h.buffer)))
	t.buffers.back(h.buffer)
	h.buffer = nil
}

// breakSend ends a Send whose rest is lost: what is there of it is read.
func (t *Tracker) breakSend(h *half) {
	if h.send != nil {
		h.send.Broken = true
		t.sent(h, h.buffer)
	}
}

// took counts a packet of an operation.
func (t *Tracker) took(o *Operation, at record.Stamp) {
	o.Packets++
	if o.Kind != Send || at.Packet > o.Last.Packet { // of a message, the last is the one that it had to wait for
		o.Last = at
	}
	if t.early.Packet != 0 && o.disorder == nil {
		o.disorder = &disorder{t.early, t.now}
	}
}

// target is the memory that a request names.
type target struct {
	handle uint32
	offset uint64
	length uint32
}

// writeBegins starts an RDMA Write, of which length bytes are known of.
func (t *Tracker) writeBegins(h *half, m target, announced bool, r run, at record.Stamp) {
	t.breakWrite(h)
	o := t.operate(h, Write, r, at)
	o.Handle, o.Offset, o.Length, o.Announced = m.handle, m.offset, int64(m.length), announced
	h.write = o
	h.conn.follower.Began(o)
}

// breakWrite ends an RDMA Write whose rest is lost.
func (t *Tracker) breakWrite(h *half) {
	if h.write != nil {
		h.write.Broken, h.write.done = true, true
		h.write = nil
	}
}

// writePart takes a packet, or DDP segment, of the RDMA Write that is going on;
// size is how many bytes data had on the wire.
func (t *Tracker) writePart(h *half, offset uint64, data []byte, size int, last bool) {
	o := h.write
	t.carries(o, offset, size)
	t.moves(o, offset, int64(size))
	o.Bytes += int64(size)
	if !o.Announced {
		o.Length = max(o.Length, o.Bytes)
	}
	if o.Tag != 0 && h.refused == nil {
		h.conn.follower.Moved(o, offset, data, size)
	}
	if last {
		h.write, o.done = nil, true
		h.conn.follower.Done(o)
	}
}

// readBegins starts an RDMA Read that a half asks for.
func (t *Tracker) readBegins(h *half, m target, r run, at record.Stamp) *Operation {
	t.breakWrite(h)
	o := t.operate(h, Read, r, at)
	o.response = new(response)
	o.seen = o.room[:0]
	o.Handle, o.Offset, o.Length, o.Announced = m.handle, m.offset, int64(m.length), true
	h.conn.follower.Began(o)
	return o
}

// readPart takes new data that a Read asked for, from an offset in it.
func (t *Tracker) readPart(o *Operation, offset int64, data []byte, size int, at record.Stamp) {
	t.carries(o, o.Offset+uint64(offset), size)
	t.moves(o, o.Offset+uint64(offset), int64(size))
	o.Bytes += int64(size)
	if o.Tag != 0 {
		o.conn.follower.Moved(o, o.Offset+uint64(offset), data, size)
	}
	if o.Bytes >= o.Length {
		o.done = true
		o.conn.follower.Done(o)
	}
}

// acked notes that the other side has received an operation.
func (t *Tracker) acked(o *Operation, at record.Stamp, final bool) {
	if o.acked {
		return
	}
	o.acked = true
	if o.Tag != 0 {
		o.conn.follower.Acked(o, at, final)
	}
}

// repeated notes that a packet came again; o is nil when nobody knows of what.
func (t *Tracker) repeated(h *half, o *Operation, at record.Stamp, b *Burst) {
	c := h.conn
	c.record.Retransmitted++
	t.mark(o, record.Retransmitted)
	if o == nil || !c.follower.Repeated(o, h.side, at, b) {
		c.record.RetransmittedOfNone++
	}
}

// refuse tells of a refusal, and then of all operations of the half that came
// behind the one that is refused: a receiver that refuses a request takes none
// after it (IBTA volume 1, section 9.9.3).
//
// The first fatal one ends the connection; what looks at operations is not done
// for a flood of them.
func (t *Tracker) refuse(asker *half, r *Refusal, c circle, seq uint32) {
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
		return // nobody knows what came behind it
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

// maxRefusals bounds how many fatal refusals of one direction are told of.
const maxRefusals = 16

// lose counts packets of a side that are missing from the capture.
func (t *Tracker) lose(c *Conn, s Side, n int64) {
	if h := c.halves[s]; h != nil {
		h.missing = true
	}
	c.record.Lost += n
	t.Lost += n
}

// packetsFor is how many packets carry n bytes: at least one.
func packetsFor(n uint32, mtu int) uint32 {
	return uint32(min(max(1, (uint64(n)+uint64(mtu)-1)/uint64(mtu)), math.MaxInt32))
}
