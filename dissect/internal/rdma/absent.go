package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/rocev2"
)

// With several capture points, it is known that a copy of a request left its sender, and that its receiver did not get
// it. The sender waits for its acknowledgement, retransmits it when a timer expires, and stops at last, as if the capture
// were its own. If a later copy comes to the receiver, the operation begins with that copy, and what was sent
// before is known from the flow's paths. If none comes before the connection ends, the operation was sent and never
// delivered.

// SeveralPoints reports whether the packets of a connection were captured at several points.
func SeveralPoints(c *Conn) bool {
	for _, f := range c.flows {
		if f != nil && f.paths != nil {
			return true
		}
	}
	return false
}

// missedRequest takes a request that its receiver did not get, or dropped because of a bad ICRC.
func (ib *infiniband) missedRequest(f *flow, d *Datagram, cur *currentPacket) {
	psn, p := d.Packet.PSN, d.Path
	if p.Sent.Packet == 0 {
		ib.damagedRequest(f, d)
		return
	}
	if p.Lost { // the sender's copy, which is not damaged
		ib.start(f, psn)
	}
	p.Lost = true
	r := psnRun(psn)
	again := f.noteSent(r, p)
	f.noteLoss(Loss{At: p.harmed(d.At), By: f.side, Damaged: !p.Gone, seq: psn})
	switch delta := psns.delta(psn, f.qp.expect); {
	case !f.qp.started || delta > fitWindow || delta < -fitWindow:
	case delta < 0:
		ib.resentOld(f, d, cur)
	default:
		ib.keepAbsent(f, d, again, cur)
	}
	f.signals.requested = d.At.Time
	f.reportLost()
}

// resentOld takes a retransmission that was lost or damaged. An earlier copy of the request came to its receiver.
func (ib *infiniband) resentOld(f *flow, d *Datagram, cur *currentPacket) {
	psn := d.Packet.PSN
	if f.gaps.find(psns, psnRun(psn)) >= 0 {
		return // nothing is known of the copies before it
	}
	f.noteRetry(psns, psn, !f.isAcked(psn), d.At)
	r, o := psnRun(psn), f.ops.at(psns, psn)
	if i := f.ops.find(psns, psn); o != nil && o.Kind == Read {
		r.to = f.ops.entries[i].to
	}
	ib.operations.resentInVain(f, o, ib.operations.burstOf(f, psns, r, o, d.At), cur)
}

// resentInVain counts and reports a retransmission that was lost or damaged.
func (ops *operations) resentInVain(f *flow, o *Operation, b *Burst, cur *currentPacket) {
	ops.noteRetransmission(f, o, cur, Event{What: Retransmitted, Op: o, By: f.side, At: cur.at, Burst: b, Gone: true})
}

// keepAbsent keeps a request of which no copy has come to the receiver in order, and notes its retransmissions.
func (ib *infiniband) keepAbsent(f *flow, d *Datagram, again bool, cur *currentPacket) {
	psn := d.Packet.PSN
	if again || f.isHeld(psns, psn) {
		ib.operations.sentAgain(f, psnRun(psn), true, cur)
	}
	if d.Path.Lost { // otherwise the captured copy is damaged
		f.keepAbsent(psns, psn, held{stamp: d.At, data: ib.operations.buffers.add(nil, d.Raw), length: d.Length})
	}
}

// isHeld reports whether a request came before one that it has to follow, and waits for that.
func (f *flow) isHeld(c circle, seq uint32) (held bool) {
	if f.window != nil {
		_, held = f.window.find(c, seq)
	}
	return held
}

// keepAbsent keeps a request of which no copy has come to the receiver. The flow owns the data of the item.
func (f *flow) keepAbsent(c circle, seq uint32, item held) {
	w := f.paths.absent
	if w == nil {
		w = new(window)
		f.paths.absent = w
	}
	if i, kept := w.find(c, seq); !kept && !w.full() {
		w.insert(i, seq, item)
		f.conn.share.Charge(int64(len(item.data)) + heldCost)
		return
	}
	f.conn.tracker.operations.buffers.back(item.data)
}

// sentAgain notes the retransmission of a request whose earlier copies did not come to the receiver in order. Gone is set
// if this copy was lost or damaged, too.
func (ops *operations) sentAgain(f *flow, r run, gone bool, cur *currentPacket) {
	c := f.circle()
	f.noteRetry(c, r.from, !f.isAcked(r.from), cur.at)
	o := f.ops.at(c, r.from)
	b := ops.burstOf(f, c, r, o, cur.at)
	for _, w := range []*window{f.window, f.paths.absent} {
		if w == nil || o != nil {
			continue
		}
		if i, kept := w.find(c, r.from); kept {
			w.at(i).keep(f, heldCopy{at: cur.at, gone: gone}, b)
			cur.mark(nil, record.Retransmitted)
			return
		}
	}
	if gone {
		ops.resentInVain(f, o, b, cur)
		return
	}
	ops.retransmitted(f, o, b, cur)
}

// isAcked reports whether a sequence number of the flow was acknowledged.
func (f *flow) isAcked(seq uint32) bool {
	if f.qp != nil {
		return f.qp.hasAck && psns.delta(f.qp.acked, seq) >= 0
	}
	return f.stream.acked && octets.delta(f.stream.ackedTo, seq) > 0
}

// settleAbsent forgets the requests of which a later copy was accepted. Their retransmissions are now known to be of
// its operation.
func (ops *operations) settleAbsent(f *flow) {
	if f.paths == nil || f.paths.absent.empty() {
		return
	}
	c, w, expect := f.circle(), f.paths.absent, f.expected()
	n := 0
	for ; n < len(w.order) && c.delta(w.order[n].seq, expect) < 0; n++ {
		item := w.at(n)
		if f.stream != nil && c.delta(w.order[n].seq+uint32(item.length), expect) > 0 {
			break
		}
		ops.reportHeldRetransmissions(f, f.ops.at(c, w.order[n].seq), item)
		ops.unhold(f, item)
	}
	w.remove(n)
}

// expected returns the sequence number of the flow's next request.
func (f *flow) expected() uint32 {
	if f.qp != nil {
		return f.qp.expect
	}
	return f.stream.next
}

// acceptAbsent accepts the requests that were sent on a connection and did not come to their receivers, in the order in
// which they were sent: no further copies are expected.
func (ops *operations) acceptAbsent(c *Conn) {
	for {
		var next *flow
		for _, f := range c.flows {
			if f != nil && f.paths != nil && !f.paths.absent.empty() && (next == nil || f.paths.absent.earliest().stamp.Before(next.paths.absent.earliest().stamp)) {
				next = f
			}
		}
		if next == nil {
			return
		}
		next.paths.last = Path{Joined: true}
		first := next.paths.absent.first()
		ops.sentOnly = true
		next.half.acceptSent()
		ops.sentOnly = false
		if ops.settleAbsent(next); !next.paths.absent.empty() && next.paths.absent.first() == first { // it cannot be decoded
			ops.unhold(next, next.paths.absent.earliest())
			next.paths.absent.remove(1)
		}
		next.reportLost()
	}
}

// acceptSent accepts the earliest request of which no copy came to the receiver, and what came before it and waits.
func (q *queuePair) acceptSent() {
	f := q.flow
	ib, w := f.conn.tracker.infiniband, f.paths.absent
	psn, item := w.first(), w.earliest()
	for !f.window.empty() && psns.delta(f.window.first(), psn) < 0 {
		ib.skipGap(f, &currentPacket{at: item.stamp})
	}
	if psns.delta(psn, f.qp.expect) >= 0 && ib.held.Decode(item.data, item.length) == nil {
		ib.skipTo(f, psn, item.stamp)
		ib.accept(f, &ib.held, &currentPacket{at: item.stamp})
	}
	ib.acceptHeld(f, &currentPacket{at: item.stamp})
}

// acceptSent accepts the earliest segment of which no copy came to the receiver, and what came before it and waits.
func (w *stream) acceptSent() {
	f := w.flow
	ts, item, seq := f.conn.tracker.tcp, f.paths.absent.earliest(), f.paths.absent.first()
	cur := &currentPacket{at: item.stamp}
	for !f.window.empty() && octets.delta(f.window.first(), seq) < 0 {
		ts.skipSegments(f, cur)
	}
	if missing := octets.delta(seq, w.next); missing > 0 {
		ts.skipMissing(f, seq, missing, item.stamp)
	}
	if skip := -int(octets.delta(seq, w.next)); skip < item.length {
		ts.deliver(f, item.data[min(skip, len(item.data)):], -1, item.length-skip, cur)
	}
	ts.drainSegments(f, cur)
}

// shownReceived takes a response that was lost on the way to the flow of the requests that it answers. It shows
// nothing to their sender, but it shows that its own sender had got them.
func (ops *operations) shownReceived(f *flow, d *Datagram) {
	if f == nil || !f.qp.started || d.Path.Sent.Packet == 0 {
		return
	}
	last, info := d.Packet.PSN, d.Packet.Opcode.Info()
	if aeth := d.Packet.AETH.Syndrome; info.Kind == rocev2.KindReadResponse || aeth.IsNak() || aeth.IsRNR() {
		last = psns.add(last, 1<<psns-1)
	}
	next := psns.add(last, 1)
	l := &f.ops
	for i := l.unacked; i < len(l.entries) && psns.delta(next, l.entries[i].to) >= 0; i++ {
		o := l.entries[i].op
		if o == f.send || o == f.write {
			return
		}
		if o.Side != f.side || o.acked || o.copies.decided || o.copies.accepted.Packet == 0 {
			continue
		}
		ops.decideCopies(f, i, i+1, record.Stamp{Time: d.At.Time, Packet: d.At.Packet})
		if o.Tag != 0 {
			f.conn.follower.Operation(Event{What: Arrived, Op: o, At: d.At})
		}
	}
}

// missedSegment takes a TCP segment that its receiver did not get.
func (ts *tcpStreams) missedSegment(f *flow, s *TCP) {
	w, r, cur := f.stream, run{s.Seq, s.Seq + uint32(s.Length)}, &currentPacket{at: s.At}
	again := f.noteSent(r, s.Path)
	f.noteLoss(Loss{At: s.Path.harmed(s.At), By: f.side, Damaged: !s.Path.Gone, seq: s.Seq})
	switch {
	case !w.known || w.records != nil && w.records.given:
	case octets.delta(r.to, w.next) <= 0: // an earlier copy came to the receiver
		f.noteRetry(octets, s.Seq, !f.isAcked(s.Seq), s.At)
		o := f.ops.at(octets, s.Seq)
		ts.operations.resentInVain(f, o, ts.operations.burstOf(f, octets, r, o, s.At), cur)
	default:
		if again || f.isHeld(octets, s.Seq) {
			ts.operations.sentAgain(f, r, true, cur)
		}
		f.keepAbsent(octets, s.Seq, held{stamp: s.At, data: ts.operations.buffers.add(nil, s.Payload), length: s.Length})
	}
	f.signals.requested = s.At.Time
	f.reportLost()
}
