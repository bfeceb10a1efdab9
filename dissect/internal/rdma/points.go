package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Packets of captures at several points: each packet is taken once, when it came to its receiver. When it left its
// sender, and whether it was lost on the way, is known instead of inferred.

// Path is what a capture at several points shows of a packet.
type Path struct {
	Joined  bool         // there are several points
	Sent    record.Stamp // when it left its sender; the packet number is 0 if that was not captured
	Arrived bool         // the packet was captured when it came to its receiver
	Lost    bool         // it did not come to its receiver, or came damaged
	Gone    bool         // nothing of it came to its receiver
	Early   bool         // it was captured only before it came to its receiver, so that it comes before packets that arrived sooner
	Copy    bool         // the network made this copy of a packet that its sender sent once
}

// Mark returns the marks of a packet that did not come to its receiver unharmed, or that the network made.
func (p *Path) Mark() (m record.Marks) {
	switch {
	case p.Gone:
		m = record.LostOnPath
	case p.Lost:
		m = record.DamagedOnPath
	}
	if p.Copy {
		m |= record.Duplicated
	}
	return m
}

// sentAt is a packet of a flow that left its sender and that its receiver has not accepted yet.
type sentAt struct {
	order.Run
	at   record.Stamp
	lost bool // a copy of it was lost or damaged
	gone bool // the first copy was lost
	hurt bool // the first copy was lost or damaged
}

// maxSentAt limits the number of these packets of a flow. Operations that begin with further ones begin when they
// came to the receiver.
const maxSentAt = 1024

// paths are the packets of a flow that its receiver has not accepted yet.
type paths struct {
	sent     []sentAt
	top      uint32 // the highest sequence number at which one of them begins
	last     Path   // of the current packet
	lost     []lostMessage
	sentOnly bool    // what is being accepted was sent, and did not come to its receiver
	absent   *window // requests that left their sender, and of which no copy has come to the receiver; nil before the first
	losses   []Loss  // requests of the flow, and responses to them
	open     int     // number of losses that are not reported
}

// lostMessage is a datagram that did not come to its receiver.
type lostMessage struct {
	xid uint32
	at  record.Stamp // when it left its sender
}

// maxLostMessages limits the number of lost datagrams of a flow that are kept.
const maxLostMessages = 64

// noteSent notes when a packet left its sender. It reports whether an earlier copy of it was lost.
func (f *flow) noteSent(r order.Run, p Path) (again bool) {
	if f.paths == nil {
		f.paths = new(paths)
		f.conn.share.Charge(pathsCost)
	}
	w := f.paths
	if w.last = p; p.Copy {
		return false
	}
	newer := len(w.sent) > 0 && f.ops.circle.Delta(r.From, w.top) > 0
	for i := 0; i < len(w.sent) && !newer; i++ {
		if s := &w.sent[i]; s.From == r.From {
			again = s.lost
			s.lost = s.lost || p.Lost
			return again
		}
	}
	if p.Sent.Packet == 0 {
		return false
	}
	if len(w.sent) >= maxSentAt {
		w.sent = w.sent[:copy(w.sent, w.sent[maxSentAt/2:])]
	}
	if newer || len(w.sent) == 0 {
		w.top = r.From
	}
	had := cap(w.sent)
	w.sent = append(w.sent, sentAt{Run: r, at: p.Sent, lost: p.Lost, hurt: p.Lost, gone: p.Gone})
	f.conn.share.Charge(int64(cap(w.sent)-had) * sentAtCost)
	return false
}

// The memory of these packets that is charged to the budget.
const (
	pathsCost  = 160
	sentAtCost = 56
)

// firstSent returns the packet with a sequence number, with the time at which it first left its sender, and whether that
// was captured. If not, the time is that at which the packet was captured. The packets before it are forgotten.
func (f *flow) firstSent(seq uint32, captured record.Stamp) (first sentAt, seen bool) {
	c := f.ops.circle
	first.at = captured
	kept := f.paths.sent[:0]
	for _, s := range f.paths.sent {
		switch {
		case c.Delta(seq, s.From) >= 0 && c.Delta(seq, s.To) < 0:
			if !seen || s.at.Time < first.at.Time {
				first, seen = s, true
			}
		case c.Delta(s.From, seq) < 0:
			continue
		}
		kept = append(kept, s)
	}
	f.paths.sent = kept
	return first, seen
}

// sentTime returns when the current packet of a flow left its sender, if that was captured, and otherwise when it was
// captured. What was lost comes earlier than what its sender sent before it.
func (f *flow) sentTime(at record.Stamp) record.Time {
	if f.paths != nil && f.paths.last.Sent.Packet != 0 {
		return f.paths.last.Sent.Time
	}
	return at.Time
}

// noteRequested notes that the sender of a flow was not idle.
func (f *flow) noteRequested(at record.Stamp) {
	if f.paths == nil {
		f.cause.Busy(at.Time)
		return
	}
	f.cause.Busy(max(f.cause.LastBusy(), f.sentTime(at)))
}

// lostOnPath takes a packet that did not come to its receiver.
func (t *Tracker) lostOnPath(f *flow, d *Datagram, cur *currentPacket) {
	info := d.Packet.Opcode.Info()
	asker := f
	if !info.Request {
		asker = f.peer()
	}
	if asker != nil {
		cur.mark(asker.ops.at(d.Packet.PSN), d.Path.Mark())
	}
	cur.mark(nil, d.Path.Mark())
	if d.Path.Copy { // its sender did not send it
		return
	}
	if !info.Request {
		f.missedResponse(d, cur)
		f.noteResponse(d, true)
		asker.shownReceived(d)
		return
	}
	f.missedRequest(d, cur)
}

// ReadTimes are the times of an RDMA Read at both ends, with several capture points. Times that are not known are 0.
type ReadTimes struct {
	Requested record.Time // the first copy of the request left the requester
	Delivered record.Time // the request came to the responder
	Responded record.Time // the first response left the responder
	Done      record.Time // the requester had got all responses, in order
	OneSided  bool        // a part of the Read was not captured at both points

	next int64 // index of the response that the requester expects
}

// Times returns the times of a Read at both ends; it is nil without several capture points. The caller may keep it.
func (o *Operation) Times() *ReadTimes {
	if o.Kind != Read || o.response == nil {
		return nil
	}
	return o.times
}

// SentSeen reports whether the first packet of a request was captured when it left its sender.
func (o *Operation) SentSeen() bool { return o.sentSeen }

// SeenAtBoth reports whether the first packet of a request was captured when it left its sender, and the
// copy of the last packet that was accepted when it came to its receiver.
func (o *Operation) SeenAtBoth() bool { return o.sentSeen && o.copies.seen }

// noteResponse notes a response to a Read, which may be lost.
func (f *flow) noteResponse(d *Datagram, lost bool) {
	asker := f.peer()
	if asker == nil {
		return
	}
	o := asker.ops.at(d.Packet.PSN)
	if o == nil || o.Kind != Read || o.times == nil {
		return
	}
	t := o.times
	t.deliver(o.copies.accepted.Time)
	t.respond(&d.Path)
	if lost {
		return
	}
	t.arrive(int64(order.PSNs.Delta(d.Packet.PSN, o.from)), d)
}

// deliver notes when the request came to the responder, if that is not known yet.
func (t *ReadTimes) deliver(at record.Time) {
	if t.Delivered == 0 {
		t.Delivered = at
	}
}

// respond notes that a response left the responder, if that was captured. The packet of which the network made a copy
// left earlier.
func (t *ReadTimes) respond(p *Path) {
	switch sent := p.Sent; {
	case p.Copy:
	case sent.Packet == 0:
		t.OneSided = true
	case t.Responded == 0 || sent.Time < t.Responded:
		t.Responded = sent.Time
	}
}

// arrive notes that the response with an index came to the requester.
func (t *ReadTimes) arrive(index int64, d *Datagram) {
	t.OneSided = t.OneSided || !d.Path.Arrived
	if index == t.next {
		if t.next++; d.Packet.Opcode.Info().Last {
			t.Done = d.At.Time
		}
	}
}

// arriveInOrder notes a part of the response in a TCP stream, which arrives in order: when it left the responder, whether
// that was captured, and whether it was captured when it came to the requester.
func (t *ReadTimes) arriveInOrder(sent, at record.Time, seen, arrived bool) {
	if t.OneSided = t.OneSided || !seen || !arrived; seen && (t.Responded == 0 || sent < t.Responded) {
		t.Responded = sent
	}
	t.Done = at
}

// expect notes that the requester requested the response from an index on once more.
func (t *ReadTimes) expect(index int64) {
	if t != nil && index < t.next {
		t.next, t.Done = index, 0
	}
}

// readTimes returns the times of a new Read of the flow, whose request was captured; nil without several capture points.
func (f *flow) readTimes(o *Operation, at record.Stamp) *ReadTimes {
	switch {
	case f.paths == nil:
		return nil
	case f.ops.ordered:
		return &ReadTimes{Requested: o.First.Time, Delivered: at.Time, OneSided: !o.sentSeen || !f.paths.last.Arrived}
	}
	return &ReadTimes{Requested: o.First.Time, OneSided: !o.sentSeen}
}

// noteStreamResponse notes a part of the response to a Read in a TCP stream, which arrives in order.
func (f *flow) noteStreamResponse(o *Operation, from uint32, now record.Stamp) {
	t := o.times
	if t == nil || f.paths == nil {
		return
	}
	first, seen := f.firstSent(from, now)
	t.arriveInOrder(first.at.Time, now.Time, seen, f.paths.last.Arrived)
}

// LostSegment takes a TCP segment that did not come to its receiver. Its bytes come later.
func (t *Tracker) LostSegment(s *TCP) {
	if f := t.tcp.streams[streamKey{s.Src, s.Dst, s.SrcPort, s.DstPort}]; f != nil && s.Length > 0 && !s.Path.Copy {
		f.stream.missed(s)
	}
}

// LostDatagram takes a UDP datagram that did not come to its receiver, and returns the verdict on it. It returns false
// if the datagram carries no RPC. A Call is outstanding although it was lost.
func (t *Tracker) LostDatagram(d *UDP) (verdict PacketVerdict, rpc bool) {
	if d.Path.Copy {
		return verdict, false
	}
	if kind, ok := oncrpc.Plausible(d.Payload, d.Length, len(d.Payload) < d.Length); !ok || kind == oncrpc.Call {
		verdict, rpc = t.Datagram(d)
	} else if f := t.udp.of(d, kind); f != nil && d.Path.Sent.Packet != 0 {
		cur := currentPacket{at: d.At}
		f.conn.took(UDPTransport, &cur)
		f.noteLost(lostMessage{be.Uint32(d.Payload), d.Path.Sent})
		verdict, rpc = cur.PacketVerdict, true
	}
	verdict.Mark |= d.Path.Mark()
	return verdict, rpc
}

// noteLost notes a datagram that was lost.
func (f *flow) noteLost(m lostMessage) {
	if f.paths == nil {
		f.paths = new(paths)
		f.conn.share.Charge(pathsCost)
	}
	w := f.paths
	for i := range w.lost {
		if w.lost[i].xid == m.xid {
			return
		}
	}
	if len(w.lost) == maxLostMessages {
		w.lost = w.lost[:copy(w.lost, w.lost[1:])]
	}
	had := cap(w.lost)
	w.lost = append(w.lost, m)
	f.conn.share.Charge(int64(cap(w.lost)-had) * sentAtCost)
}

// sentBefore returns when a message first left its sender: it may have been lost before.
func (w *paths) sentBefore(xid uint32, now record.Stamp) record.Stamp {
	for i, m := range w.lost {
		if m.xid == xid {
			w.lost = append(w.lost[:i], w.lost[i+1:]...)
			return m.at
		}
	}
	return now
}

// arrived notes that a datagram came to its receiver.
func (us *datagrams) arrived(f *flow, d *UDP) {
	e := f.ops.last()
	if e == nil || !d.Path.Arrived {
		return
	}
	e.op.copies.came(d.At)
	f.conn.follower.Operation(Event{What: Arrived, Op: e.op, At: d.At})
}
