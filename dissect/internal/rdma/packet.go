package rdma

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/rocev2"
)

// InfiniBand's transport: PSNs, retransmission, loss. A receiver accepts requests in
// the order of their PSNs, each once, and makes operations of them.

// maxJump is the maximum distance of the PSNs of one connection. A PSN farther away
// belongs to another connection that reuses the number of the queue pair.
const maxJump = 1 << 20

// infiniband takes the packets of InfiniBand's transport, in the order of their PSNs.
type infiniband struct {
	tracker    *Tracker
	operations *operations
	contents   *contents

	held rocev2.Packet // a held packet, decoded again
}

// Datagram is a packet of InfiniBand's transport.
type Datagram struct {
	Packet         *rocev2.Packet
	Raw            []byte // captured bytes, from the BTH on
	Length         int    // on the wire
	Src, Dst       Address
	Transport      string
	ICRC           rocev2.ICRCResult
	Congested      bool   // a switch set a congestion mark
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
func (ib *infiniband) request(f *flow, d *Datagram, cur *currentPacket) {
	p := d.Packet
	ib.start(f, p.PSN)
	again := d.Path.Joined && f.noteSent(psnRun(p.PSN), d.Path)
	delta := psns.delta(p.PSN, f.qp.expect)
	if f.qp.psnLowerBound && delta > 0 {
		ib.learnPSN(f, p.PSN)
		delta = psns.delta(p.PSN, f.qp.expect)
	}
	switch {
	case delta == 0:
		if f.qp.hasAck && psns.delta(f.qp.acked, p.PSN) >= 0 { // the acknowledgement came first
			ib.tracker.unordered = true
		}
		turn := f.qp.receiver.arrives(p.PSN)
		f.burst.followedBy(psns, p.PSN, d.At.Time-f.signals.requested)
		ib.accept(f, p, cur)
		f.sentLast(p.PSN, turn, d.At, d.print)
		if turn == inOrder {
			f.qp.receiver.next = f.qp.expect
		}
		ib.drain(f, cur)
	case delta < 0:
		if o := f.ops.at(psns, p.PSN); o != nil && p.Headers&rocev2.HasRETH != 0 && o.Kind == Read {
			o.Again, o.again = int64(p.RETH.DMALength), d.At
			o.requestedAgain(p.PSN)
		}
		ib.takeOldRequest(f, d, cur)
	default:
		ib.holdRequest(f, d, cur)
	}
	ib.operations.settleAbsent(f)
	f.reportLost()
	if again && delta >= 0 && cur.Mark&record.Retransmitted == 0 {
		ib.operations.sentAgain(f, psnRun(p.PSN), false, cur)
	}
	f.signals.requested, f.signals.sent = d.At.Time, sentRequest{p.PSN, d.print, d.At.Time}
}

// start notes the PSN of the first request of a flow that was captured.
func (ib *infiniband) start(f *flow, psn uint32) {
	if f.qp.started {
		return
	}
	f.qp.started = true
	f.lateStart = !f.qp.announced || psn != f.qp.expect
	if delta := psns.delta(psn, f.qp.expect); !f.qp.announced || delta < 0 || delta > fitWindow {
		f.qp.expect = psn
	}
	f.begin(f.qp.expect)
	f.qp.receiver = receiver{f.qp.expect, true}
	if f.qp.ackedEarly && psns.delta(f.qp.earlyAck, psn) >= 0 && psns.delta(f.qp.earlyAck, psn) < maxJump {
		ib.tracker.unordered = true // the acknowledgement came first
	}
}

// sentLast notes the first copy of a packet for the operation that it ends, if it ends
// one.
func (f *flow) sentLast(psn uint32, turn arrival, at record.Stamp, print uint32) {
	if last := f.ops.last(); last != nil && last.op.Side == f.side && (last.op.Kind == Read && last.from == psn || psns.delta(last.to, psn) == 1) {
		last.op.copies.note(turn, at, print)
		last.op.copies.seen = turn == inOrder && f.paths != nil && f.paths.last.Arrived
	}
}

// learnPSN sets the expected PSN after an RDMA Read with an unknown number of
// responses, because the path MTU was not known. The PSN of the next request shows the
// number.
func (ib *infiniband) learnPSN(f *flow, psn uint32) {
	f.qp.psnLowerBound = false
	last := f.ops.last()
	if n := psns.delta(psn, last.op.from); n > 0 && uint32(n) <= last.op.most(f.conn.mtu) {
		f.extend(last, uint32(n))
	}
}

// extend sets the number of PSNs of the latest operation, a Read.
func (f *flow) extend(last *entry, n uint32) {
	last.op.count = n
	last.to = psns.add(last.from, n)
	f.qp.expect = last.to
	f.qp.psnLowerBound = false
}

// most returns the maximum number of PSNs of a Read.
func (o *Operation) most(mtu int) uint32 {
	if o.count != 0 {
		return o.count
	}
	if mtu == 0 {
		mtu = 256
	}
	return min(packetsFor(uint32(o.Length), mtu), maxJump)
}

// holdRequest keeps a copy of a request that came before one that it has to follow.
func (ib *infiniband) holdRequest(f *flow, d *Datagram, cur *currentPacket) {
	psn := d.Packet.PSN
	cur.mark(f.ops.at(psns, psn), record.AfterGap)
	i, found := f.held().find(psns, psn)
	if found {
		if first := f.window.at(i); kindOf(d.Packet.Opcode) != kindOf(rocev2.Opcode(first.data[0])) {
			return // it is no copy of the request
		}
		ib.operations.noteHeldRetransmission(f, i, cur, ib.operations.burstOf(f, psns, psnRun(psn), nil, d.At))
		return
	}
	copied := held{stamp: d.At, badICRC: cur.acceptedBadICRC(), data: ib.operations.buffers.add(nil, d.Raw), length: d.Length}
	f.window.insert(i, psn, copied)
	f.conn.share.Charge(int64(len(copied.data)) + heldCost)
	if f.qp.hasAck && psns.delta(f.qp.acked, f.window.first()) >= -1 {
		ib.skipGap(f, cur)
	}
	for f.window.full() {
		ib.skipGap(f, cur)
	}
}

// drain accepts held requests that are now in order.
func (ib *infiniband) drain(f *flow, cur *currentPacket) {
	if f.window.empty() {
		return
	}
	f.conn.record.OutOfOrder++ // the current packet came after the held ones
	cur.mark(nil, record.OutOfOrder)
	ib.acceptHeld(f, cur)
}

// acceptHeld accepts held requests up to the next gap. The current packet may be one of them.
func (ib *infiniband) acceptHeld(f *flow, cur *currentPacket) {
	if f.window.empty() {
		return
	}
	taken, own := 0, currentPacket{}
	for ; taken < len(f.window.order); taken++ {
		psn := f.window.order[taken].seq
		item := f.window.at(taken)
		if delta := psns.delta(psn, f.qp.expect); delta > 0 && !f.qp.psnLowerBound {
			break
		} else if delta >= 0 && ib.held.Decode(item.data, item.length) == nil {
			if f.qp.psnLowerBound {
				ib.learnPSN(f, psn)
			}
			taking := cur.accepting(item, &own)
			taking.after = cur.at
			ib.accept(f, &ib.held, taking)
			f.sentLast(psn, ahead, item.stamp, printOf(&ib.held, item.data, item.length))
		}
		ib.operations.reportHeldRetransmissions(f, f.ops.at(psns, psn), item)
		ib.operations.unhold(f, item)
	}
	f.window.remove(taken)
}

// skipGap counts the requests before the first held request as not captured, and
// accepts the held ones.
func (ib *infiniband) skipGap(f *flow, cur *currentPacket) {
	if f.window.empty() {
		return
	}
	ib.skipTo(f, f.window.first(), f.window.earliest().stamp)
	ib.acceptHeld(f, cur)
}

// skipTo moves the expected PSN forward over packets that were not captured.
func (ib *infiniband) skipTo(f *flow, psn uint32, at record.Stamp) {
	c := f.conn
	n := psns.delta(psn, f.qp.expect)
	if n <= 0 {
		return
	}
	if first := psns.delta(f.qp.unmatchedPSN, f.qp.expect); f.qp.unmatchedResponses > 0 && first >= 0 && first+f.qp.unmatchedResponses <= n {
		n -= f.qp.unmatchedResponses - 1 // the PSNs of one RDMA Read Request whose responses were captured
	}
	f.qp.unmatchedResponses = 0
	ib.operations.countMissing(c, f.side, int64(n))
	last := (psn - 1) & rocev2.PSNMask
	switch all := psns.delta(psn, f.qp.expect); {
	case all == 1:
		c.Report(ruleLost, Where{At: at}, "the packet with PSN %d is not in the capture", last)
	case n == all:
		c.Report(ruleLost, Where{At: at}, "%d packets with PSN %d to %d are not in the capture", n, f.qp.expect, last)
	default: // the responses to a Read have its other PSNs
		c.Report(ruleLost, Where{At: at}, "%d of the packets with PSN %d to %d are not in the capture", n, f.qp.expect, last)
	}
	f.noteGap(len(f.gaps), gap{run{f.qp.expect, psn}, true})
	f.qp.expect = psn
	f.qp.psnLowerBound = false
	ib.operations.breakSend(f)
}

// accept takes the request that is next in order.
func (ib *infiniband) accept(f *flow, p *rocev2.Packet, cur *currentPacket) {
	info := p.Opcode.Info()
	f.qp.expect = psns.add(p.PSN, 1)
	f.forget(psns, f.qp.expect)
	if !info.Last {
		ib.notePayload(f, p.PayloadLength, cur)
	}
	if f.offsets != nil {
		f.offsets.advance(psns, p.PSN)
		ib.contents.beginPayloadPacket(f.offsets.requests(psns, p.PSN))
	}
	switch info.Kind {
	case rocev2.KindSend:
		whole := part{first: info.First, last: info.Last, data: p.Payload, size: p.PayloadLength, cut: !p.HasICRC, bad: cur.acceptedBadICRC(), run: run{p.PSN, f.qp.expect}}
		if p.Headers&rocev2.HasIETH != 0 {
			whole.invalidates = record.Some(p.IETH.RKey)
		}
		ib.operations.sendPart(f, whole, cur)
		if last := f.ops.last(); last != nil && last.op.Kind == Send {
			cur.mark(last.op, 0)
		}
	case rocev2.KindWrite:
		ib.writePacket(f, p, cur)
	case rocev2.KindReadRequest:
		ib.readRequest(f, p, cur)
	case rocev2.KindAtomic:
		ib.operations.breakWrite(f)
		o := ib.operations.operate(f, Atomic, run{p.PSN, f.qp.expect}, cur.at)
		o.Handle, o.Offset, o.Length, o.Announced, o.Packets, o.count = p.AtomicETH.RKey, p.AtomicETH.VirtualAddress, 8, true, 1, 1
		f.conn.follower.Operation(Event{What: Began, Op: o})
		cur.mark(o, 0)
	}
	ib.contents.reportPayload()
}

// notePayload takes the length of the payload of a packet that is not the last of its message, and
// so has to be filled.
func (ib *infiniband) notePayload(f *flow, n int, cur *currentPacket) {
	if c := f.conn; n < f.qp.full && !c.unfilledReported {
		c.unfilledReported = true
		c.Report(rule.UnfilledPacket, Where{At: cur.at, AtFault: record.Some(f.side)}, "a packet that is not the last of its message carries %d bytes, although such packets of this side carry up to %d", n, f.qp.full)
	}
	f.qp.full = max(f.qp.full, n)
	if n > 0 {
		ib.learnMTU(f.conn, n, cur)
	}
}

// maxLearned is the maximum number of times that packets change the path MTU.
const maxLearned = 8

// learnMTU derives the path MTU from a packet that is not the last of its message, and
// therefore full. The path MTU of the handshake is only an upper limit.
func (ib *infiniband) learnMTU(c *Conn, n int, cur *currentPacket) {
	if n == c.mtu || n < 256 || n > 4096 || n&(n-1) != 0 || c.learned == maxLearned {
		return
	}
	if n < c.asked && !c.mtuReported {
		c.mtuReported = true
		c.Report(rule.PathMTUUnused, Where{At: cur.at}, "full packets carry %d bytes, although the REQ asked for a path MTU of %d", n, c.asked)
	}
	c.mtu = n
	c.learned++
	for _, f := range c.flows { // the PSNs of Reads can now be counted
		if f == nil {
			continue
		}
		for i := f.ops.head; i < len(f.ops.entries); i++ {
			if e := &f.ops.entries[i]; e.op.Kind == Read && !e.op.done && i+1 < len(f.ops.entries) {
				e.op.count = max(1, uint32(psns.delta(f.ops.entries[i+1].from, e.from))) // as the next request shows
				e.to = psns.add(e.from, e.op.count)
			}
		}
		if last := f.ops.last(); last != nil && last.op.Kind == Read && !last.op.done {
			if after := psns.add(last.from, max(last.op.count, 1)); f.qp.psnLowerBound || after == f.qp.expect {
				f.extend(last, packetsFor(uint32(last.op.Length), n))
				ib.acceptHeld(f, cur)
			}
		}
	}
}

// writePacket takes a packet of an RDMA Write. A packet that is not the first belongs
// to the current Write if its PSN is within that Write; packets lost before it do not
// matter. Its offset follows from the size of the Write's own packets, which may be
// smaller than the path MTU of the handshake.
func (ib *infiniband) writePacket(f *flow, p *rocev2.Packet, cur *currentPacket) {
	info := p.Opcode.Info()
	if info.First {
		ib.operations.writeBegins(f, target{p.RETH.RKey, p.RETH.VirtualAddress, p.RETH.DMALength}, true, run{p.PSN, f.qp.expect}, cur.at)
		f.write.size = int32(p.PayloadLength)
	}
	o := f.write
	if o == nil {
		return
	}
	offset := int64(uint32(psns.delta(p.PSN, o.from))) * int64(o.size)
	if offset > 0 && offset+int64(p.PayloadLength) > o.Length {
		ib.operations.breakWrite(f) // it belongs to another Write, whose first packet was not captured
		return
	}
	ib.operations.countPacket(o, cur)
	o.Cut = o.Cut || !p.HasICRC
	if !info.First {
		ib.operations.enter(f, run{p.PSN, f.qp.expect}, o)
	}
	cur.mark(o, 0)
	cur.noteBytes(o, o.Offset+uint64(offset), int64(p.PayloadLength))
	ib.operations.writePart(f, o.Offset+uint64(offset), p.Payload, p.PayloadLength, info.Last)
}

// readRequest takes an RDMA Read Request.
func (ib *infiniband) readRequest(f *flow, p *rocev2.Packet, cur *currentPacket) {
	count := uint32(0)
	switch {
	case p.RETH.DMALength <= 256:
		count = 1
	case f.conn.mtu != 0:
		count = min(packetsFor(p.RETH.DMALength, f.conn.mtu), maxJump)
	}
	to := psns.add(p.PSN, max(count, 1))
	o := ib.operations.readBegins(f, target{p.RETH.RKey, p.RETH.VirtualAddress, p.RETH.DMALength}, run{p.PSN, to}, cur.at)
	o.count = count
	f.qp.psnLowerBound = count == 0
	f.qp.expect = to
	cur.mark(o, 0)
	cur.noteBytes(o, o.Offset, o.Length)
}

// response takes a packet that carries the PSN of a request of the other side: an
// acknowledgement or a response.
func (ib *infiniband) response(f *flow, d *Datagram, cur *currentPacket) {
	p, info := d.Packet, d.Packet.Opcode.Info()
	asker := f.peer()
	if asker == nil {
		f.qp.acksSeen, f.qp.lastAck = true, p.PSN
		ib.countRefusal(f, p, cur)
		return
	}
	before := (p.PSN - 1) & rocev2.PSNMask
	if info.Kind == rocev2.KindReadResponse {
		if !info.Last {
			ib.notePayload(f, p.PayloadLength, cur)
		}
		ib.acknowledged(asker, before, cur)
		ib.readResponse(f, asker, p, cur)
		return
	}
	syndrome := p.AETH.Syndrome
	switch {
	case info.Kind == rocev2.KindAtomicAck:
		asker.signals.answered(p.PSN)
		ib.acknowledged(asker, p.PSN, cur)
		if o := asker.ops.at(psns, p.PSN); o != nil && o.Kind == Atomic && !o.done {
			ib.operations.countPacket(o, cur)
			o.done, o.Bytes = true, o.Length
			f.conn.follower.Operation(Event{What: Done, Op: o})
			cur.mark(o, 0)
		}
	case syndrome.IsAck():
		cur.mark(asker.ops.at(psns, p.PSN), 0)
		ib.acknowledged(asker, p.PSN, cur)
		cur.mark(asker.ops.at(psns, p.PSN), 0) // the request may have been held until now
	case syndrome.IsRNR():
		f.conn.record.RNRNaks++
		ib.acknowledged(asker, before, cur)
		ib.nak(f, asker, d, cur)
	case syndrome.IsNak():
		f.conn.record.Naks++
		ib.acknowledged(asker, before, cur)
		ib.nak(f, asker, d, cur)
	}
}

// countRefusal counts a NAK whose request was not captured.
func (ib *infiniband) countRefusal(f *flow, p *rocev2.Packet, cur *currentPacket) {
	switch s := p.AETH.Syndrome; {
	case p.Opcode.Info().Kind != rocev2.KindAcknowledge:
		return
	case s.IsRNR():
		f.conn.record.RNRNaks++
	case s.IsNak():
		f.conn.record.Naks++
	default:
		return
	}
	cur.mark(nil, record.Refused)
}

// acknowledged notes that the receiver of the flow's requests accepted every PSN up to
// psn.
func (ib *infiniband) acknowledged(f *flow, psn uint32, cur *currentPacket) {
	if !f.qp.started {
		f.qp.ackedEarly, f.qp.earlyAck = true, psn
	}
	if !f.qp.started || f.qp.hasAck && psns.delta(psn, f.qp.acked) <= 0 || psns.delta(psn, f.qp.expect) > maxJump {
		return
	}
	f.qp.acked, f.qp.hasAck = psn, true
	f.retries = retries{}
	f.signals.progress = cur.at.Time
	if f.qp.receiver.known && psns.delta(psn, f.qp.receiver.next) >= 0 {
		f.qp.receiver.next = psns.add(psn, 1)
	}
	if !f.window.empty() && psns.delta(psn, f.window.first()) >= -1 {
		ib.skipGap(f, cur)
	}
	ib.operations.covered(f, psns, psns.add(psn, 1), cur)
}

// nak takes a NAK: it finds the refused operation, and ends the connection if the NAK
// is fatal.
func (ib *infiniband) nak(f, asker *flow, d *Datagram, cur *currentPacket) {
	p, at := d.Packet, d.At
	c, syndrome := f.conn, p.AETH.Syndrome
	if old := asker.qp.hasAck && psns.delta(p.PSN, asker.qp.acked) <= 0; !old && asker.signals.refused(p.PSN, syndrome.IsRNR(), d) {
		ib.rollBack(asker, p.PSN, d.Path.Sent.Time)
	}
	r := Refusal{Op: asker.ops.at(psns, p.PSN), By: f.side, At: at, Reason: "RNR", NotReady: syndrome.IsRNR()}
	cur.mark(r.Op, record.Refused)
	if o := r.Op; o != nil {
		r.Kind, r.Handle, r.Offset, r.Length = o.Kind, record.SomeIf(o.Handle, o.Kind != Send), o.Offset, uint32(o.Length)
		r.Taken = int64(uint32(psns.delta(p.PSN, o.from))) * int64(o.size)
	}
	if syndrome.IsNak() {
		r.Reason = syndrome.NakName()
		r.Fatal = syndrome.Code() != rocev2.NakPSNSequenceError
		r.TooLong = syndrome.Code() == rocev2.NakInvalidRequest || syndrome.Code() == rocev2.NakRemoteOperationError
	}
	if r.Fatal {
		r.Text = fmt.Sprintf("NAK of PSN %d: %s", p.PSN, r.Reason)
		c.ends(Ending{How: record.EndNak, By: record.Some(f.side), At: at, Reason: r.Reason})
	}
	ib.operations.refuse(asker, &r, psns, p.PSN)
	if r.Fatal && asker.refused == nil {
		asker.refused = &Refusal{Later: true, Fatal: true, By: r.By, At: at, Reason: r.Reason, Text: r.Text}
	}
}

// readResponse takes a packet of the response to a Read of the other side.
func (ib *infiniband) readResponse(f, asker *flow, p *rocev2.Packet, cur *currentPacket) {
	c, at := f.conn, cur.at
	o := asker.ops.at(psns, p.PSN)
	if o == nil && asker.qp.psnLowerBound { // its number of PSNs is not known yet
		if last := asker.ops.last(); last.op.Kind == Read {
			if n := psns.delta(p.PSN, last.from); n >= 0 && uint32(n) < last.op.most(c.mtu) {
				o = last.op
			}
		}
	}
	if o == nil {
		if asker.qp.hasResponse(p.PSN) {
			ib.operations.retransmitted(f, nil, nil, cur)
		}
		return
	}
	if o.Kind != Read {
		return
	}
	cur.mark(o, 0)
	asker.signals.answered(p.PSN)
	index := int64(psns.delta(p.PSN, o.from))
	if index > 0 && c.mtu == 0 {
		return
	}
	cur.noteBytes(o, o.Offset+uint64(index*int64(c.mtu)), int64(p.PayloadLength))
	if ib.operations.markSeen(o, index, index+1) == 0 {
		ib.operations.retransmitted(f, o, nil, cur)
		return
	}
	if asker.qp.hasAck && psns.delta(asker.qp.acked, p.PSN) > 0 && o.Again == 0 { // a later request was acknowledged first, and the requester did not ask again
		ib.tracker.unordered = true
	}
	if index+1 < o.seen.Last().Hi {
		c.record.OutOfOrder++
		cur.mark(o, record.OutOfOrder)
	}
	switch {
	case index == o.taken:
		if o.taken++; o.disorder != nil && o.taken == o.disorder.index {
			o.disorder.filled = at
		}
	case index > o.taken:
		if cur.mark(o, record.AfterGap); o.disorder == nil {
			o.disorder = &disorder{early: at, index: index}
		}
	}
	ib.operations.countPacket(o, cur)
	offset := index * int64(c.mtu)
	if offset+int64(p.PayloadLength) > o.Length || o.done {
		return // more than the request asked for
	}
	ib.contents.beginPayloadPacket(asker.offsets.responses(p.PSN))
	ib.operations.readPart(o, offset, p.Payload, p.PayloadLength)
	ib.contents.reportPayload()
	if last := asker.ops.last(); o.done && asker.qp.psnLowerBound && o == last.op { // the number of its PSNs is now known
		asker.extend(last, uint32(o.Packets))
	}
}

// hasResponse takes a response to a Read Request that belongs to no known operation, and reports whether the capture has
// an earlier copy of it: the request was captured, and its operation is complete and forgotten, or the response is
// one of the latest that belong to a request that was not captured.
func (q *queuePair) hasResponse(psn uint32) bool {
	if q.started && psns.delta(psn, q.expect) < 0 && psns.delta(psn, q.flow.from) >= 0 && q.flow.gaps.find(psns, psnRun(psn)) < 0 {
		return true
	}
	after := psns.delta(psn, q.unmatchedPSN)
	if q.unmatchedResponses > 0 && after >= 0 && after < q.unmatchedResponses {
		return true
	}
	if q.unmatchedResponses > 0 && after == q.unmatchedResponses {
		q.unmatchedResponses++
	} else {
		q.unmatchedResponses, q.unmatchedPSN = 1, psn
	}
	return false
}

// unreliable takes a packet of an unreliable connection: it has no retransmissions, and
// missing packets are not captured or lost.
func (ib *infiniband) unreliable(f *flow, p *rocev2.Packet, cur *currentPacket) {
	if f.qp.started && psns.delta(p.PSN, f.qp.expect) < 0 {
		f.conn.record.OutOfOrder++
		cur.mark(nil, record.OutOfOrder)
		return
	}
	if f.qp.started {
		ib.skipTo(f, p.PSN, cur.at)
	}
	f.qp.started = true
	ib.accept(f, p, cur)
}
