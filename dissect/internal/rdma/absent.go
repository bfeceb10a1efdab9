package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/rocev2"
)

// With several capture points, it is known that a copy of a request left its sender, and that its receiver did not get
// it. The sender waits for its acknowledgement, retransmits it when a timer expires, and stops at last, as if the capture
// were its own. If a later copy comes to the receiver, the operation begins with that copy, and what was sent
// before is known from the flow's paths. If none comes before the connection ends, the operation was sent and never
// delivered.

// SeveralPoints reports whether the packets of a connection were captured at several points.
func (c *Conn) SeveralPoints() bool {
	for _, f := range c.flows {
		if f != nil && f.paths != nil {
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
		if f.paths != nil {
			f.paths.last = p
		}
		f.damagedRequest(d)
		return
	}
	if p.Lost { // the sender's copy, which is not damaged
		f.qp.order.Begin(psn)
		f.apply(d, cur)
	}
	p.Lost = true
	r := order.One(psn)
	again := f.noteSent(r, p)
	f.noteLoss(Loss{At: p.harmed(d.At), By: f.side, Damaged: !p.Gone, seq: psn})
	switch {
	case !f.isNear(psn):
	case order.PSNs.Delta(psn, f.qp.order.Expected()) < 0:
		f.resentOld(d, cur)
	default:
		f.requestAbsent(d, again, cur)
	}
	f.noteRequested(d.At)
	f.reportLost()
}

// resentOld takes a retransmission that was lost or damaged. An earlier copy of the request came to its receiver.
func (f *flow) resentOld(d *Datagram, cur *currentPacket) {
	psn := d.Packet.PSN
	if f.qp.order.Lacks(psn) {
		return // nothing is known of the copies before it
	}
	f.cause.Retry(psn, f.isAcked(psn), d.At)
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
	if d.Path.Lost { // otherwise the captured copy is damaged
		f.keepAbsent(psn, held{stamp: d.At, data: f.conn.tracker.buffers.add(nil, d.Raw), length: d.Length})
	}
}

// keepAbsent keeps a request of which no copy has come to the receiver. The flow owns the data of the item.
func (f *flow) keepAbsent(seq uint32, item held) {
	c := f.ops.circle
	w := f.paths.absent
	if w == nil {
		w = new(window)
		f.paths.absent = w
	}
	if i, kept := w.Find(c, seq); !kept && !w.Full() {
		w.Insert(i, order.Request{PSN: seq, At: item.stamp}, len(item.data), item)
		f.conn.share.Charge(int64(len(item.data)) + heldCost)
		return
	}
	f.conn.tracker.buffers.back(item.data)
}

// sentAgain notes the retransmission of a request whose earlier copies did not come to the receiver in order. Gone is set
// if this copy was lost or damaged, too.
func (f *flow) sentAgain(r order.Run, gone bool, cur *currentPacket) {
	c := f.ops.circle
	f.cause.Retry(r.From, f.isAcked(r.From), cur.at)
	o := f.ops.at(r.From)
	b := f.burstOf(r, o, cur.at)
	for _, w := range []*window{f.waiting(), f.paths.absent} {
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

// isAcked reports whether a sequence number of the flow was acknowledged.
func (f *flow) isAcked(seq uint32) bool {
	if f.qp != nil {
		return f.qp.order.IsAcked(seq)
	}
	return f.stream.order.IsAcked(seq)
}

// settleAbsent forgets the requests of which a later copy was accepted. Their retransmissions are now known to be of
// its operation.
func (f *flow) settleAbsent() {
	if f.paths == nil || f.paths.absent.Empty() {
		return
	}
	c, w, expect := f.ops.circle, f.paths.absent, f.expected()
	n := 0
	for ; n < w.Len() && c.Delta(w.Seq(n), expect) < 0; n++ {
		item, seq := w.At(n), w.Seq(n)
		if f.stream != nil && c.Delta(seq+uint32(item.length), expect) > 0 {
			break
		}
		f.reportHeldRetransmissions(f.ops.at(seq), item)
		f.unhold(item)
	}
	w.Remove(n)
}

// expected returns the sequence number of the flow's next request.
func (f *flow) expected() uint32 {
	if f.qp != nil {
		return f.qp.order.Expected()
	}
	return f.stream.order.Expected()
}

// acceptAbsent accepts the requests that were sent on a connection and did not come to their receivers, in the order in
// which they were sent: no further copies are expected.
func (c *Conn) acceptAbsent() {
	for {
		var next *flow
		for _, f := range c.flows {
			if f != nil && f.paths != nil && !f.paths.absent.Empty() && (next == nil || f.paths.absent.At(0).stamp.Before(next.paths.absent.At(0).stamp)) {
				next = f
			}
		}
		if next == nil {
			return
		}
		first := next.paths.absent.Seq(0)
		next.paths.acceptSent(true)
		next.half.acceptSent()
		next.paths.acceptSent(false)
		if next.settleAbsent(); !next.paths.absent.Empty() && next.paths.absent.Seq(0) == first { // it cannot be decoded
			next.unhold(next.paths.absent.At(0))
			next.paths.absent.Remove(1)
		}
		next.reportLost()
	}
}

// acceptSent notes that what is accepted until the next call was sent, and did not come to its receiver.
func (w *paths) acceptSent(begins bool) {
	if w.sentOnly = begins; begins {
		w.last = Path{Joined: true}
	}
}

// sentOnly reports whether what is being accepted was sent, and did not come to its receiver.
func (f *flow) sentOnly() bool { return f.paths != nil && f.paths.sentOnly }

// seenArriving reports whether the current packet was captured when it came to its receiver.
func (f *flow) seenArriving() bool { return f.paths != nil && f.paths.last.Arrived }

// acceptSent accepts the earliest request of which no copy came to the receiver, and what came before it and waits.
func (q *queuePair) acceptSent() {
	f := q.flow
	w, p := f.paths.absent, &f.conn.tracker.held
	psn, item := w.Seq(0), w.At(0)
	cur := &currentPacket{at: item.stamp}
	for held := f.waiting(); !held.Empty() && order.PSNs.Delta(held.Seq(0), psn) < 0; {
		q.skip(cur)
	}
	if order.PSNs.Delta(psn, q.order.Expected()) >= 0 && p.Decode(item.data, item.length) == nil {
		q.order.Insist(orderOf(p, item.stamp))
	} else {
		q.order.Drain()
	}
	f.apply(&Datagram{Packet: p, At: item.stamp}, cur)
}

// acceptSent accepts the earliest segment of which no copy came to the receiver, and what came before it and waits.
func (w *stream) acceptSent() {
	f := w.flow
	item, seq := f.paths.absent.At(0), f.paths.absent.Seq(0)
	cur := &currentPacket{at: item.stamp}
	for !f.waiting().Empty() && order.Octets.Delta(f.waiting().Seq(0), seq) < 0 {
		w.skip(cur)
	}
	sent := &TCP{At: item.stamp}
	sent.Seq, sent.Length, sent.Payload, sent.Offset = seq, item.length, item.data, -1
	w.order.Insist(sent.request())
	w.apply(sent, cur)
}

// shownReceived takes a response that was lost on the way to the flow of the requests that it answers. It shows
// nothing to their sender, but it shows that its own sender had got them.
func (f *flow) shownReceived(d *Datagram) {
	if f == nil || !f.qp.order.Begun() || d.Path.Sent.Packet == 0 {
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
		if o.Side != l.side || o.acked || o.copies.decided || o.copies.accepted.Packet == 0 {
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
	f.noteLoss(Loss{At: s.Path.harmed(s.At), By: f.side, Damaged: !s.Path.Gone, seq: s.Seq})
	switch {
	case !w.order.Known() || w.frames.given():
	case order.Octets.Delta(r.To, w.order.Expected()) <= 0: // an earlier copy came to the receiver
		f.cause.Retry(s.Seq, f.isAcked(s.Seq), s.At)
		o := f.ops.at(s.Seq)
		f.resentInVain(o, f.burstOf(r, o, s.At), cur)
	default:
		if again || f.waiting().Item(order.Octets, s.Seq) != nil {
			f.sentAgain(r, true, cur)
		}
		f.keepAbsent(s.Seq, held{stamp: s.At, data: f.conn.tracker.buffers.add(nil, s.Payload), length: s.Length})
	}
	f.noteRequested(s.At)
	f.reportLost()
}
