package rdma

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/internal/cause"
	"github.com/rdmadump/rdmadump/dissect/internal/order"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/rocev2"
)

// InfiniBand's transport: PSNs, retransmission, loss. A receiver accepts requests in
// the order of their PSNs, each once; package order has that order. The facts that it reports
// make operations.

// Datagram is a packet of InfiniBand's transport.
type Datagram struct {
	Packet         *rocev2.Packet
	Raw            []byte // captured bytes, from the BTH on
	Length         int    // on the wire
	Src, Dst       Address
	Transport      string
	ICRC           rocev2.ICRCResult
	Congested      bool   // a switch set a congestion mark
	Class          uint8  // traffic class
	Identification uint16 // of the IPv4 header; 0 if there is none
	At             record.Stamp
	Path           Path   // with several capture points
	print          uint32 // its ICRC, which distinguishes packets with equal PSNs; 0 if it was not captured
}

// Ready computes the fields that depend on the packet only. Any goroutine may call it,
// before the datagram is passed to the tracker.
func (d *Datagram) Ready() {
	d.print = printOf(d.Packet, d.Raw, d.Length)
}

// printOf returns the ICRC of a packet, which distinguishes copies of it from other
// packets, or 0 if it was not captured.
func printOf(p *rocev2.Packet, raw []byte, length int) uint32 {
	if !p.HasICRC || length < rocev2.ICRCLen || length > len(raw) {
		return 0
	}
	return be.Uint32(raw[length-rocev2.ICRCLen:])
}

// request takes a packet that its sender numbered itself: Send, Write, Read Request,
// Atomic.
func (f *flow) request(d *Datagram, cur *currentPacket) {
	psn := d.Packet.PSN
	f.qp.sends(psn)
	if !d.Path.Joined {
		f.askedFor(d.Packet, d.At.Time)
	}
	f.carry(d, orderOf(d.Packet, d.At), &d.Path, cur)
	if !d.Path.Copy {
		f.cause.Sent = cause.Request{Seq: psn, Print: d.print, At: d.At.Time}
	}
}

// askedFor notes a request that asks for a response, to measure its round trip.
func (f *flow) askedFor(p *rocev2.Packet, at record.Time) {
	kind := p.Opcode.Info().Kind
	switch asks := p.AckReq || kind == rocev2.KindReadRequest || kind == rocev2.KindAtomic; {
	case !asks:
	case f.order.IsNew(p.PSN):
		f.way.Sent(order.PSNs, p.PSN, at)
	default:
		f.way.SentAgain(p.PSN)
	}
}

// orderOf returns what the order of requests depends on.
func orderOf(p *rocev2.Packet, at record.Stamp) order.Request {
	return order.Request{PSN: p.PSN, Read: p.Opcode.Info().Kind == rocev2.KindReadRequest, Size: p.RETH.DMALength, At: at}
}

// accept takes the request of the current packet, which is next. Only on a reliable connection, and if a copy came to the
// receiver, it may be one of several copies.
func (d *Datagram) accept(f *flow, fact *order.Fact[held], cur *currentPacket) {
	if f.sent.Only() || d.Packet.Opcode.Transport() != rocev2.RC {
		f.take(d.Packet, fact, cur)
		return
	}
	psn, turn := fact.From, f.ops.receiver.takes(fact.Run)
	f.conn.tracker.Why.receives(f, psn, turn)
	f.cause.New(psn, f.sent.Time(d.At))
	f.take(d.Packet, fact, cur)
	f.ops.sentLast(psn, turn, d.At, d.print, f.sent.Arrived())
}

// acceptHeld takes a request that waited, and is next now.
func (q *queuePair) acceptHeld(fact *order.Fact[held], cur, taking *currentPacket) {
	f, item, t := q.flow, fact.Item, q.flow.conn.tracker
	if !item.early {
		taking.after, taking.open = cur.at, cur.open
	}
	p := t.held.take()
	defer t.held.back()
	if p.Decode(item.data, item.length) != nil {
		return
	}
	from, at, print := fact.From, item.stamp, printOf(p, item.data, item.length)
	f.take(p, fact, taking)
	f.ops.sentLast(from, ahead, at, print, false)
}

// again takes a further copy of a request.
func (d *Datagram) again(f *flow, _ *order.Fact[held], cur *currentPacket) {
	o := f.ops.at(d.Packet.PSN)
	if o != nil && o.Kind != kindOf(d.Packet.Opcode) {
		return // it is no copy of the operation's request
	}
	if o != nil && o.Kind == Read && !d.Path.Copy {
		o.requestedAgain(d)
	}
	f.takeOldRequest(d, cur)
}

// wait keeps a copy of a request that came before one that it has to follow.
func (d *Datagram) wait(f *flow, cur *currentPacket) {
	psn := d.Packet.PSN
	cur.markAfterGap(f.ops.at(psn))
	if first := f.order.Window().Item(order.PSNs, psn); first != nil {
		if !d.Path.Copy && kindOf(d.Packet.Opcode) == kindOf(rocev2.Opcode(first.data[0])) { // otherwise it is no retransmission of the request
			f.noteHeldRetransmission(first, cur, f.burstOf(order.One(psn), nil, d.At))
		}
		return
	}
	copied := held{stamp: d.At, class: d.Class, badICRC: cur.acceptedBadICRC(), early: cur.early, began: d.Path.Began(), data: f.conn.tracker.buffers.Add(nil, d.Raw), length: d.Length}
	f.apply(nil, f.order.Hold(len(copied.data), copied, f.conn.mtu), cur)
}

// misses counts requests as not captured, unless the network may have lost them.
func (q *queuePair) misses(fact *order.Fact[held]) {
	f := q.flow
	if f.lackedAtEnd || f.sent.MayHaveLost() {
		f.missing = true
		f.breakSend()
		return
	}
	c, last := f.conn, (fact.To-1)&rocev2.PSNMask
	c.countMissing(f.side, int64(fact.N), f.taken, fact.At.Time)
	switch all := uint32(order.PSNs.Delta(fact.To, fact.From)); {
	case all == 1:
		c.Report(ruleLost, Where{At: fact.At}, "the packet with PSN %d is not in the capture", last)
	case fact.N == all:
		c.Report(ruleLost, Where{At: fact.At}, "%d packets with PSN %d to %d are not in the capture", fact.N, fact.From, last)
	default: // the responses to a Read have its other PSNs
		c.Report(ruleLost, Where{At: fact.At}, "%d of the packets with PSN %d to %d %s not in the capture", fact.N, fact.From, last, record.Are(fact.N))
	}
	f.breakSend()
}

// take makes the part of an operation that an accepted request is.
func (f *flow) take(p *rocev2.Packet, fact *order.Fact[held], cur *currentPacket) {
	t, info := f.conn.tracker, p.Opcode.Info()
	r := fact.Run
	f.taken = cur.at.Time
	if !info.Last {
		f.notePayload(p.PayloadLength, p.HasICRC, cur)
	}
	if f.offsets != nil {
		f.offsets.advance(order.PSNs, p.PSN)
		t.contents.beginPayloadPacket(f.offsets.requests(order.PSNs, p.PSN))
	}
	switch info.Kind {
	case rocev2.KindSend:
		whole := part{first: info.First, last: info.Last, data: p.Payload, size: p.PayloadLength, cut: !p.HasICRC, bad: cur.acceptedBadICRC(), Run: r}
		if p.Headers&rocev2.HasIETH != 0 {
			whole.invalidates = record.Some(p.IETH.RKey)
		}
		f.sendPart(whole, cur)
		if last := f.ops.last(); last != nil && last.op.Kind == Send {
			cur.mark(last.op, 0)
		}
	case rocev2.KindWrite:
		f.writePacket(p, r, cur)
	case rocev2.KindReadRequest:
		o := f.names(Read, target{p.RETH.RKey, p.RETH.VirtualAddress, p.RETH.DMALength}, true, r, cur.at)
		o.count = fact.N
		cur.mark(o, 0)
		cur.noteBytes(o, o.Offset, o.Length)
	case rocev2.KindAtomic:
		cur.mark(f.names(Atomic, target{p.AtomicETH.RKey, p.AtomicETH.VirtualAddress, 8}, true, r, cur.at), 0)
	}
	t.contents.reportPayload()
}

// notePayload takes the length of the payload of a packet that is not the last of its message, and
// so has to be filled. If the capture truncated the packet, it may be a damaged one.
func (f *flow) notePayload(n int, whole bool, cur *currentPacket) {
	if n < f.qp.full && !whole {
		return
	}
	if c := f.conn; n < f.qp.full && c.reported.unfilled.First() {
		c.Report(rule.UnfilledPacket, Where{At: cur.at, AtFault: record.Some(f.side)}, "a packet that is not the last of its message carries %d bytes, although such packets of this side carry up to %d", n, f.qp.full)
	}
	f.qp.full = max(f.qp.full, n)
	if n > 0 {
		f.conn.learnMTU(n, cur)
	}
}

// maxLearned is the maximum number of times that packets change the path MTU.
const maxLearned = 8

// learnMTU derives the path MTU from a packet that is not the last of its message, and
// therefore full. The path MTU of the handshake is only an upper limit.
func (c *Conn) learnMTU(n int, cur *currentPacket) {
	if n == c.mtu || n < 256 || n > 4096 || n&(n-1) != 0 || c.learned == maxLearned {
		return
	}
	if n < c.asked && c.reported.mtu.First() {
		c.Report(rule.PathMTUUnused, Where{At: cur.at}, "full packets carry %d bytes, although the REQ asked for a path MTU of %d", n, c.asked)
	}
	c.mtu = n
	c.learned++
	for f := range c.known {
		f.countReads(n, cur)
	}
}

// countReads counts the PSNs of Reads, as the path MTU n shows.
func (f *flow) countReads(n int, cur *currentPacket) {
	for i, all := 0, f.ops.all(); i+1 < len(all); i++ {
		if e := &all[i]; e.op.Kind == Read && !e.op.done {
			e.extend(max(1, uint32(order.PSNs.Delta(all[i+1].From, e.From)))) // as the next request shows
		}
	}
	last := f.ops.last()
	if last == nil || last.op.Kind != Read || last.op.done {
		return
	}
	if q := &f.order; q.AtLeast() || order.PSNs.Add(last.From, max(last.op.count, 1)) == q.Expected() {
		last.extend(order.Packets(uint32(last.op.Length), n))
		q.Extend(last.From, last.op.count)
		f.drain(cur)
	}
}

// writePacket takes a packet of an RDMA Write. A packet that is not the first belongs
// to the current Write if its PSN is within that Write; packets lost before it do not
// matter. Its offset follows from the size of the Write's own packets, which may be
// smaller than the path MTU of the handshake.
func (f *flow) writePacket(p *rocev2.Packet, r order.Run, cur *currentPacket) {
	info := p.Opcode.Info()
	if info.First {
		f.names(Write, target{p.RETH.RKey, p.RETH.VirtualAddress, p.RETH.DMALength}, true, r, cur.at).size = int32(p.PayloadLength)
	}
	o := f.parts.write
	if o == nil {
		return
	}
	offset := int64(uint32(order.PSNs.Delta(p.PSN, o.from))) * int64(o.size)
	if offset > 0 && offset+int64(p.PayloadLength) > o.Length {
		f.breakWrite() // it belongs to another Write, whose first packet was not captured
		return
	}
	o.countPacket(cur)
	o.Cut = o.Cut || !p.HasICRC
	if !info.First {
		f.enter(r, o)
	}
	cur.mark(o, 0)
	cur.noteBytes(o, o.Offset+uint64(offset), int64(p.PayloadLength))
	f.writePart(o.Offset+uint64(offset), p.Payload, p.PayloadLength, info.Last)
}

// response takes a packet that carries the PSN of a request of the other side: an
// acknowledgement or a response.
func (f *flow) response(d *Datagram, cur *currentPacket) {
	p, info := d.Packet, d.Packet.Opcode.Info()
	asker := f.peer()
	if asker == nil {
		f.qp.acksSeen, f.qp.lastAck, f.qp.lastAckAt = true, p.PSN, cur.at
		f.countRefusal(p, cur)
		return
	}
	if info.Kind == rocev2.KindReadResponse && !info.Last {
		f.notePayload(p.PayloadLength, p.HasICRC, cur)
	}
	if d.Path.Copy && info.Kind == rocev2.KindAcknowledge { // it says nothing new
		cur.mark(asker.ops.at(p.PSN), 0)
		return
	}
	asker.answer(d, cur)
}

// answer takes a response to a request of the flow.
func (f *flow) answer(d *Datagram, cur *currentPacket) {
	p, info := d.Packet, d.Packet.Opcode.Info()
	before := (p.PSN - 1) & rocev2.PSNMask
	syndrome := p.AETH.Syndrome
	switch {
	case info.Kind == rocev2.KindReadResponse:
		if info.First {
			f.way.Answered(p.PSN, d.At)
		}
		f.acknowledge(before, cur)
		f.readResponse(d, cur)
	case info.Kind == rocev2.KindAtomicAck:
		f.cause.Answered(p.PSN)
		f.acknowledge(p.PSN, cur)
		if o := f.ops.at(p.PSN); o != nil && o.Kind == Atomic && !o.done {
			o.answer(cur)
			cur.mark(o, 0)
		}
	case syndrome.IsAck():
		f.way.Answered(p.PSN, d.At)
		cur.mark(f.ops.at(p.PSN), 0)
		f.acknowledge(p.PSN, cur)
		cur.mark(f.ops.at(p.PSN), 0) // the request may have been held until now
	case syndrome.IsRNR():
		f.conn.record.nak(true)
		f.acknowledge(before, cur)
		f.nak(d, cur)
	case syndrome.IsNak():
		f.conn.record.nak(false)
		f.acknowledge(before, cur)
		f.nak(d, cur)
	}
}

// countRefusal counts a NAK whose request was not captured.
func (f *flow) countRefusal(p *rocev2.Packet, cur *currentPacket) {
	switch s := p.AETH.Syndrome; {
	case p.Opcode.Info().Kind != rocev2.KindAcknowledge:
		return
	case s.IsRNR():
		f.conn.record.nak(true)
	case s.IsNak():
		f.conn.record.nak(false)
	default:
		return
	}
	cur.mark(nil, record.Refused)
}

// acknowledge notes that the receiver of the flow's requests accepted every PSN up to
// psn.
func (f *flow) acknowledge(psn uint32, cur *currentPacket) {
	facts := f.order.Acknowledge(order.PSNs.Add(psn, 1), f.conn.mtu)
	f.qp.trust(psn)
	f.apply(nil, facts, cur)
}

// nak takes a NAK of a request of the flow: it finds the refused operation, and ends the connection if the NAK
// is fatal.
func (f *flow) nak(d *Datagram, cur *currentPacket) {
	p, at := d.Packet, d.At
	c, by, syndrome := f.conn, f.side.Other(), p.AETH.Syndrome
	if !f.order.IsAcked(p.PSN) && f.refusedAt(p.PSN, syndrome.IsRNR(), d) {
		f.ops.rollBack(p.PSN, d.Path.Sent.Time)
	}
	r := Refusal{Op: f.ops.at(p.PSN), By: by, At: at, Reason: "RNR", NotReady: syndrome.IsRNR()}
	cur.mark(r.Op, record.Refused)
	if o := r.Op; o != nil {
		r.Kind, r.Handle, r.Offset, r.Length = o.Kind, record.SomeIf(o.Handle, o.Kind != Send), o.Offset, uint32(o.Length)
		r.Taken = int64(uint32(order.PSNs.Delta(p.PSN, o.from))) * int64(o.size)
	}
	if syndrome.IsNak() && syndrome.Code() == rocev2.NakPSNSequenceError {
		f.qp.lacks(p.PSN)
	}
	if syndrome.IsNak() {
		r.Reason = syndrome.NakName()
		r.Fatal = syndrome.Code() != rocev2.NakPSNSequenceError
		r.TooLong = syndrome.Code() == rocev2.NakInvalidRequest || syndrome.Code() == rocev2.NakRemoteOperationError
	}
	switch {
	case r.NotReady:
		c.troubled(trouble{record.TroubleRNR, at, f, p.PSN})
	case !r.Fatal:
		c.troubled(trouble{record.TroubleNak, at, f, p.PSN})
	default:
		r.Text = fmt.Sprintf("NAK of PSN %d: %s", p.PSN, r.Reason)
		c.ends(Ending{How: record.EndNak, By: record.Some(by), At: at, Reason: r.Reason})
	}
	f.refuse(&r, p.PSN)
	if r.Fatal && f.refused == nil {
		f.refused = &Refusal{Later: true, Fatal: true, By: r.By, At: at, Reason: r.Reason, Text: r.Text}
	}
}

// readResponse takes a packet of the response to a Read of the flow.
func (f *flow) readResponse(d *Datagram, cur *currentPacket) {
	t, c, p := f.conn.tracker, f.conn, d.Packet
	o := f.readOf(p.PSN)
	if o == nil {
		if f.order.HasResponse(p.PSN) {
			f.peer().retransmitted(nil, nil, cur)
		}
		return
	}
	if o.Kind != Read {
		return
	}
	cur.mark(o, 0)
	f.cause.Answered(p.PSN)
	index := int64(order.PSNs.Delta(p.PSN, o.from))
	if t.Why != nil {
		t.Why.response(f, o, index)
	}
	if index > 0 && c.mtu == 0 {
		return
	}
	cur.noteBytes(o, o.Offset+uint64(index*int64(c.mtu)), int64(p.PayloadLength))
	if o.markSeen(index, index+1) == 0 {
		if cur.Mark&record.Duplicated != 0 {
			return
		}
		f.peer().retransmitted(o, nil, cur)
		return
	}
	if f.lostEarlier(o, d) {
		f.peer().retransmitted(o, nil, cur)
	}
	if f.order.IsAcked(order.PSNs.Add(p.PSN, 1)) && o.Again == 0 { // a later request was acknowledged first, and the requester did not ask again
		c.Disorder()
	}
	if index+1 < o.latest && o.Again == 0 { // otherwise it may be a repeat, whose first copy the capture lacks
		if peer := f.peer(); peer != nil {
			peer.way.Late++
		}
		c.record.counts.OutOfOrder++
		cur.mark(o, record.OutOfOrder)
	}
	if cur.early {
		o.response.comeLater(index)
	} else if o.arrive(index, cur.at) {
		cur.mark(o, record.AfterGap)
	}
	o.countPacket(cur)
	offset := index * int64(c.mtu)
	if offset+int64(p.PayloadLength) > o.Length || o.done {
		return // more than the request asked for
	}
	t.contents.beginPayloadPacket(f.offsets.responses(p.PSN))
	o.read(offset, p.Payload, p.PayloadLength, int64(p.PayloadLength))
	t.contents.reportPayload()
	if last := f.ops.last(); o.done && f.order.AtLeast() && o == last.op { // the number of its PSNs is now known
		last.extend(uint32(o.Packets))
		f.order.Extend(last.From, last.op.count)
	}
}

// readOf returns the operation that a response with a PSN belongs to, nil if it is not known. The PSNs of the latest
// Read may not be counted yet.
func (f *flow) readOf(psn uint32) *Operation {
	if o := f.ops.at(psn); o != nil {
		return o
	}
	if last := f.ops.last(); f.order.AtLeast() && last != nil && last.op.Kind == Read {
		if n := order.PSNs.Delta(psn, last.From); n >= 0 && uint32(n) < order.Most(uint32(last.op.Length), f.conn.mtu) {
			return last.op
		}
	}
	return nil
}

// unreliable takes a packet of an unreliable connection: it has no retransmissions, and
// missing packets are not captured or lost.
func (f *flow) unreliable(d *Datagram, cur *currentPacket) {
	cur.fills = true
	f.apply(d, f.order.TakeOnce(orderOf(d.Packet, cur.at), f.conn.mtu), cur)
}
