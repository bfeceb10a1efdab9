package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/rocev2"
)

// With several capture points, it is known that a copy of a request left its sender, and that its receiver did not get
// it. The sender waits for its acknowledgement, retransmits it when a timer expires, and stops at last, as if the capture
// were its own. If a later copy comes to the receiver, the operation begins with that copy, and what was sent
// before is known from what the flow's sender did. If none comes before the connection ends, the operation was sent and never
// delivered.

// SeveralPoints reports whether the packets of a connection were captured at several points.
func (c *Conn) SeveralPoints() bool {
	for f := range c.known {
		if f.sent != nil {
			return true
		}
	}
	return false
}

// missedRequest takes a request that its receiver did not get, or dropped because of a bad ICRC.
func (f *flow) missedRequest(d *Datagram, cur *currentPacket) {
	psn, p := d.Packet.PSN, d.Path
	if p.Copy {
		return
	}
	if p.Sent.Packet == 0 {
		if f.sent != nil {
			f.sent.Takes(p)
		}
		f.damagedRequest(d)
		return
	}
	if p.Undelivered() { // the sender's copy, which is not damaged
		f.apply(d, f.order.Begin(psn), cur)
	}
	p.Lost = true
	r := order.One(psn)
	again := f.noteSent(r, p)
	f.lose(psn, &p, d.At)
	switch {
	case !f.isNear(psn):
	case order.PSNs.Delta(psn, f.order.Expected()) < 0:
		f.resentOld(d, cur)
	default:
		f.qp.breaks(psn)
		f.requestAbsent(d, again, cur)
	}
	f.noteRequested(d.At)
	f.reportLost()
}

// resentOld takes a retransmission that was lost or damaged. An earlier copy of the request came to its receiver.
func (f *flow) resentOld(d *Datagram, cur *currentPacket) {
	psn := d.Packet.PSN
	if f.order.Lacks(psn) {
		return // nothing is known of the copies before it
	}
	f.cause.Retry(psn, f.order.IsAcked(psn), d.At)
	r, o := order.One(psn), f.ops.at(psn)
	if i := f.ops.find(psn); o != nil && o.Kind == Read {
		r.To = f.ops.entries[i].To
	}
	f.resentInVain(o, f.burstOf(r, o, d.At), cur)
}

// resentInVain counts and reports a retransmission that was lost or damaged.
func (f *flow) resentInVain(o *Operation, b *Burst, cur *currentPacket) {
	f.noteRetransmission(o, cur, Event{What: Retransmitted, Op: o, By: f.side, At: cur.at, Burst: b, Gone: true})
}

// requestAbsent keeps a request of which no copy has come to the receiver in order, and notes its retransmissions.
func (f *flow) requestAbsent(d *Datagram, again bool, cur *currentPacket) {
	psn := d.Packet.PSN
	if again || f.waiting().Item(order.PSNs, psn) != nil {
		f.sentAgain(order.One(psn), true, cur)
	}
	followed := f.waiting().EndsAfter(order.PSNs, psn) || f.absent.EndsAfter(order.PSNs, psn)
	before := !again && f.waiting().Item(order.PSNs, psn) == nil && followed && f.wasIdle(d.Path, d.At)
	if d.Path.Undelivered() { // otherwise the captured copy is damaged
		f.keepAbsent(psn, held{stamp: d.At, class: d.Class, data: f.conn.tracker.buffers.Add(nil, d.Raw), length: d.Length})
	}
	if before { // its first copy was lost before it was captured at any point
		f.sentAgain(order.One(psn), true, cur)
	}
}

// keepAbsent keeps a request of which no copy has come to the receiver. The flow owns the data of the item.
func (f *flow) keepAbsent(seq uint32, item held) {
	c := f.ops.circle
	if f.absent.Item(c, seq) == nil && !f.absent.Full() {
		f.absent = f.absent.With(c, order.Request{PSN: seq, At: item.stamp}, len(item.data), item)
		return
	}
	f.conn.tracker.buffers.Back(item.data)
}

// sentAgain notes the retransmission of a request whose earlier copies did not come to the receiver in order. Gone is set
// if this copy was lost or damaged, too.
func (f *flow) sentAgain(r order.Run, gone bool, cur *currentPacket) {
	c := f.ops.circle
	f.cause.Retry(r.From, f.order.IsAcked(r.From), cur.at)
	o := f.ops.at(r.From)
	b := f.burstOf(r, o, cur.at)
	for _, w := range []*window{f.waiting(), f.absent} {
		if o != nil {
			break
		}
		if item := w.Item(c, r.From); item != nil {
			item.keep(f, heldCopy{at: cur.at, gone: gone}, b)
			cur.mark(nil, record.Retransmitted)
			return
		}
	}
	if gone {
		f.resentInVain(o, b, cur)
		return
	}
	f.retransmitted(o, b, cur)
}

// settleAbsent forgets the requests of which a later copy was accepted. Their retransmissions are now known to be of
// its operation.
func (f *flow) settleAbsent() {
	if f.absent.Empty() {
		return
	}
	c, w, expect := f.ops.circle, f.absent, f.order.Expected()
	n := 0
	for ; n < w.Len() && c.Delta(w.Seq(n), expect) < 0; n++ {
		item, seq := w.At(n), w.Seq(n)
		if f.stream != nil && c.Delta(seq+uint32(item.length), expect) > 0 {
			break
		}
		f.settleHeld(seq, item)
	}
	w.Remove(n)
}

// acceptAbsent accepts the requests that were sent on a connection and did not come to their receivers, in the order in
// which they were sent: no further copies are expected.
func (c *Conn) acceptAbsent() {
	for {
		var next *flow
		for f := range c.known {
			if !f.absent.Empty() && (next == nil || f.absent.At(0).stamp.Before(next.absent.At(0).stamp)) {
				next = f
			}
		}
		if next == nil {
			return
		}
		first := next.absent.Seq(0)
		next.skipTo(first, &currentPacket{at: next.absent.At(0).stamp, open: true})
		next.sent.AcceptOnly(true)
		next.half.acceptSent()
		next.sent.AcceptOnly(false)
		if next.settleAbsent(); !next.absent.Empty() && next.absent.Seq(0) == first { // it cannot be decoded
			next.unhold(next.absent.At(0))
			next.absent.Remove(1)
		}
		next.reportLost()
	}
}

// skipTo takes the requests before a sequence number that came to the receiver, and wait for packets that are missing from the
// capture. Whether the receiver lacked these is not known.
func (f *flow) skipTo(seq uint32, cur *currentPacket) {
	f.sent.Takes(Path{Joined: true})
	for held := f.waiting(); !held.Empty() && f.ops.circle.Delta(held.Seq(0), seq) < 0; {
		f.skip(cur)
	}
}

// acceptSent accepts the earliest request of which no copy came to the receiver.
func (q *queuePair) acceptSent() {
	f := q.flow
	w, p := f.absent, f.conn.tracker.held.take()
	defer f.conn.tracker.held.back()
	psn, item := w.Seq(0), w.At(0)
	cur := &currentPacket{at: item.stamp, class: item.class, open: true}
	if order.PSNs.Delta(psn, q.flow.order.Expected()) < 0 || p.Decode(item.data, item.length) != nil {
		f.drain(cur)
		return
	}
	d := &Datagram{Packet: p, At: item.stamp, Path: Path{Joined: true}}
	f.apply(d, q.flow.order.Insist(orderOf(p, item.stamp), f.conn.mtu), cur)
}

// acceptSent accepts the earliest segment of which no copy came to the receiver.
func (w *stream) acceptSent() {
	f := w.flow
	item, seq := f.absent.At(0), f.absent.Seq(0)
	cur := &currentPacket{at: item.stamp, class: item.class}
	sent := &TCP{At: item.stamp}
	sent.Seq, sent.Length, sent.Payload, sent.Offset = seq, item.length, item.data, -1
	f.apply(sent, f.order.Insist(sent.request(), 0), cur)
}

// shownReceived takes a response that was lost on the way to the flow of the requests that it answers. It shows
// nothing to their sender, but it shows that its own sender had got them.
func (f *flow) shownReceived(d *Datagram) {
	if f == nil || !f.order.Begun() || d.Path.Sent.Packet == 0 {
		return
	}
	last, info := d.Packet.PSN, d.Packet.Opcode.Info()
	if aeth := d.Packet.AETH.Syndrome; info.Kind == rocev2.KindReadResponse || aeth.IsNak() || aeth.IsRNR() {
		last = order.PSNs.Add(last, 1<<order.PSNs-1)
	}
	next := order.PSNs.Add(last, 1)
	f.ops.received(next, d.At, func(o *Operation) {
		if o.Tag != 0 {
			f.conn.follower.Operation(Event{What: Arrived, Op: o, At: d.At})
		}
	})
}

// received decides which copies of the requests before the sequence number next were delivered, because a response that
// was lost covers them. It passes those of which a copy came in order, and nothing was decided before, to yield.
func (l *ledger) received(next uint32, at record.Stamp, yield func(*Operation)) {
	for i := l.unacked; i < len(l.entries) && l.circle.Delta(next, l.entries[i].To) >= 0; i++ {
		o := l.entries[i].op
		if o.growing() {
			return
		}
		if o.Side != l.side || o.acked || o.copies.decided || o.copies.at[inOrder].Packet == 0 {
			continue
		}
		l.decideCopies(i, i+1, at)
		yield(o)
	}
}

// missed takes a TCP segment that its receiver did not get.
func (w *stream) missed(s *TCP) {
	f, r, cur := w.flow, s.run(), &currentPacket{at: s.At}
	again := f.noteSent(r, s.Path)
	f.lose(s.Seq, &s.Path, s.At)
	switch {
	case !w.flow.order.Known() || w.frames.given():
	case order.Octets.Delta(r.To, w.flow.order.Expected()) <= 0: // an earlier copy came to the receiver
		f.cause.Retry(s.Seq, f.order.IsAcked(s.Seq), s.At)
		o := f.ops.at(s.Seq)
		f.resentInVain(o, f.burstOf(r, o, s.At), cur)
	default:
		if again || f.waiting().Item(order.Octets, s.Seq) != nil {
			f.sentAgain(r, true, cur)
		}
		f.keepAbsent(s.Seq, held{stamp: s.At, class: s.Class, data: f.conn.tracker.buffers.Add(nil, s.Payload), length: s.Length})
	}
	f.noteRequested(s.At)
	f.reportLost()
}
