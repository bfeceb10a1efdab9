package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/internal/sent"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Packets of captures at several points: each packet is taken once, when it came to its receiver. When it left its
// sender, and whether it was lost on the way, is known instead of inferred.

// Path is what a capture at several points shows of a packet.
type Path = sent.Path

// sender returns what the sender of the flow did.
func (f *flow) sender() *sent.Sender {
	if f.sent == nil {
		f.sent = sent.New(f.ops.circle)
	}
	return f.sent
}

// noteSent notes when a packet left its sender. It reports whether an earlier copy of it was lost.
func (f *flow) noteSent(r order.Run, p Path) (again bool) { return f.sender().Sent(r, p) }

// noteRequested notes that the sender of a flow was not idle.
func (f *flow) noteRequested(at record.Stamp) {
	if f.sent == nil {
		f.cause.Busy = at.Time
		return
	}
	f.cause.Busy = max(f.cause.Busy, f.sent.Time(at))
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

// ReadTimes are the times of an RDMA Read at both ends, with several capture points.
type ReadTimes = sent.ReadTimes

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
// copy of the last packet that was accepted, which is known, when it came to its receiver.
func (o *Operation) SeenAtBoth() bool {
	return o.sentSeen && o.copies.seen && o.copies.delivered.Certain
}

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
	t.Deliver(o.copies.at[inOrder].Time)
	t.Respond(&d.Path)
	if !lost {
		t.Arrive(int64(order.PSNs.Delta(d.Packet.PSN, o.from)), d.Packet.Opcode.Info().Last, d.Path.Arrived, d.At.Time)
	}
}

// readTimes returns the times of a new Read of the flow, whose request was captured; nil without several capture points.
func (f *flow) readTimes(o *Operation, at record.Stamp) *ReadTimes {
	switch {
	case f.sent == nil:
		return nil
	case f.ops.ordered:
		return &ReadTimes{Requested: o.First.Time, Delivered: at.Time, OneSided: !o.sentSeen || !f.sent.Arrived()}
	}
	return &ReadTimes{Requested: o.First.Time, OneSided: !o.sentSeen}
}

// noteStreamResponse notes a part of the response to a Read in a TCP stream, which arrives in order.
func (f *flow) noteStreamResponse(o *Operation, from uint32, now record.Stamp) {
	t := o.times
	if t == nil || f.sent == nil {
		return
	}
	first, seen := f.sent.First(from, now)
	t.ArriveInOrder(first.At.Time, now.Time, seen, f.sent.Arrived())
}

// LostSegment takes a TCP segment that did not come to its receiver. Its bytes come later.
func (t *Tracker) LostSegment(s *TCP) {
	if f := t.tcp.streams[streamKey{s.Src, s.Dst, s.SrcPort, s.DstPort}]; f != nil && s.Length > 0 && !s.Path.Copy {
		f.stream.missed(s)
		f.conn.settle()
	}
}

// LostDatagram takes a UDP datagram that did not come to its receiver, and returns the verdict on it. It returns false
// if the datagram carries no RPC. A Call is outstanding although it was lost.
func (t *Tracker) LostDatagram(d *UDP) (verdict *PacketVerdict, rpc bool) {
	kind, ok := oncrpc.Plausible(d.Payload, d.Length, len(d.Payload) < d.Length)
	if !d.Path.Copy && (!ok || kind == oncrpc.Call) {
		verdict, rpc = t.Datagram(d)
		verdict.Mark |= d.Path.Mark()
		return verdict, rpc
	}
	cur := t.begin(d.At, 0)
	if d.Path.Copy {
		return &cur.PacketVerdict, false
	}
	if f := t.udp.of(d, kind); f != nil && d.Path.Sent.Packet != 0 {
		f.conn.took(UDPTransport, cur)
		f.sender().LoseMessage(be.Uint32(d.Payload), d.Path.Sent)
		t.settle(cur)
		rpc = true
	}
	cur.Mark |= d.Path.Mark()
	return &cur.PacketVerdict, rpc
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
