package rdma

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/rocev2"
)

// InfiniBand's transport: PSNs, retransmission, loss. What a receiver accepts is
// requests in the order of their PSNs, each once; what it makes of them are
// operations.

// maxJump is how far PSNs of one connection can be apart: what is farther away
// belongs to another, which uses the queue pair's number again.
const maxJump = 1 << 20

// Datagram is a packet of InfiniBand's transport.
type Datagram struct {
	Packet         *rocev2.Packet
	Raw            []byte // what was captured of it, BTH first
	Length         int    // of it on the wire
	Src, Dst       Address
	Transport      string
	ICRC           rocev2.ICRCResult
	Congested      bool   // a switch marked it
	Identification uint16 // of the IPv4 header; 0 if there is none
	At             record.Stamp
	print          uint32 // its ICRC, which tells copies of a packet from others; 0 if it was not captured
}

// Ready fills in what follows from the addresses and the packet. A datagram may be
// made anywhere; Tracker takes those that are ready.
func (d *Datagram) Ready() {
	d.print = printOf(d.Packet, d.Raw, d.Length)
}

// printOf returns the ICRC of a packet, which tells copies of it from other
// packets, or 0 if it was not captured.
func printOf(p *rocev2.Packet, raw []byte, length int) uint32 {
	if !p.HasICRC || length < rocev2.ICRCLen || length > len(raw) {
		return 0
	}
	return be.Uint32(raw[length-rocev2.ICRCLen:])
}

// request takes a packet that its sender numbered itself: Send, Write, Read
// Request, Atomic.
func (t *Tracker) request(h *half, d *Datagram) {
	p := d.Packet
	if !h.started {
		h.started = true
		h.late = !h.announced || p.PSN != h.expect
		if delta := psns.delta(p.PSN, h.expect); !h.announced || delta < 0 || delta > fitWindow {
			h.expect = p.PSN
		}
		h.receiver = receiver{h.expect, true}
		if h.ackedEarly && psns.delta(h.earlyAck, p.PSN) >= 0 && psns.delta(h.earlyAck, p.PSN) < maxJump {
			t.unordered = true // its acknowledgement came first
		}
	}
	delta := psns.delta(p.PSN, h.expect)
	if h.loose && delta > 0 {
		t.settle(h, p.PSN)
		delta = psns.delta(p.PSN, h.expect)
	}
	switch {
	case delta == 0:
		if h.hasAck && psns.delta(h.acked, p.PSN) >= 0 { // its acknowledgement came first
			t.unordered = true
		}
		turn := h.receiver.arrives(p.PSN)
		t.accept(h, p, d.At)
		h.sentLast(p.PSN, turn, d.At, d.print)
		if turn == inOrder {
			h.receiver.next = h.expect
		}
		t.drain(h)
	case delta < 0:
		if o := h.ops.at(psns, p.PSN); o != nil && p.Headers&rocev2.HasRETH != 0 && o.Kind == Read {
			o.Again = int64(p.RETH.DMALength)
		}
		t.passed(h, d)
	default:
		t.hold(h, d)
	}
	h.signals.requested, h.signals.sent = d.At.Time, copySignal{p.PSN, d.print, d.At.Time}
}

// sentLast notes a first copy of a packet on the operation that it ends, if it
// ends one.
func (h *half) sentLast(psn uint32, turn arrival, at record.Stamp, print uint32) {
	if last := h.ops.last(); last != nil && last.op.Side == h.side && (last.op.Kind == Read && last.from == psn || psns.delta(last.to, psn) == 1) {
		last.op.copies.note(turn, at, print)
	}
}

// settle finds the expected PSN after an RDMA Read whose responses could not be
// counted, the path MTU being unknown: the next request tells.
func (t *Tracker) settle(h *half, psn uint32) {
	h.loose = false
	last := h.ops.last()
	if n := psns.delta(psn, last.op.from); n > 0 && uint32(n) <= last.op.most(h.conn.mtu) {
		h.extend(last, uint32(n))
	}
}

// extend notes how many PSNs the Read that came last takes.
func (h *half) extend(last *entry, n uint32) {
	last.op.count = n
	last.to = psns.add(last.from, n)
	h.expect = last.to
	h.loose = false
}

// most is how many PSNs a Read can take.
func (o *Operation) most(mtu int) uint32 {
	if o.count != 0 {
		return o.count
	}
	if mtu == 0 {
		mtu = 256
	}
	return min(packetsFor(uint32(o.Length), mtu), maxJump)
}

// passed takes a request whose PSN has passed: a retransmission, or one that was
// given up as lost.
func (t *Tracker) passed(h *half, d *Datagram) {
	psn, at := d.Packet.PSN, d.At
	if h.gapFrom != h.gapTo && psns.delta(psn, h.gapFrom) >= 0 && psns.delta(psn, h.gapTo) < 0 {
		h.conn.record.OutOfOrder++
		t.unordered = true
		t.mark(nil, record.Late)
		return
	}
	h.stalls(psns, psn, !h.hasAck || psns.delta(psn, h.acked) > 0, at)
	o, to := t.copyOf(h, d)
	if o != nil && o.Kind == Write {
		offset := int64(uint32(psns.delta(psn, o.from))) * int64(o.size)
		t.moves(o, o.Offset+uint64(offset), min(int64(o.size), o.Length-offset))
	}
	var b *Burst
	if !h.signals.networkCopy(d) {
		b = t.resends(h, psns, run{psn, to}, o, at)
	}
	t.repeated(h, o, at, b)
}

// copyOf notes a further copy of a request. It returns the operation that it
// belongs to, nil if that is not known, and the PSN that follows it.
func (t *Tracker) copyOf(h *half, d *Datagram) (o *Operation, to uint32) {
	psn := d.Packet.PSN
	to = psns.add(psn, 1)
	turn := h.receiver.arrives(psn)
	if i := h.ops.find(psns, psn); i >= 0 {
		e := &h.ops.entries[i]
		o = e.op
		isRead := o.Kind == Read
		if isRead {
			to = e.to
		}
		if isRead || psns.delta(e.to, psn) == 1 {
			if o.copies.networkCopy(d) {
				return o, to
			}
			o.copies.note(turn, d.At, d.print)
		}
	}
	if turn == inOrder {
		h.receiver.next = to
	}
	return o, to
}

// hold keeps a copy of a request that came before one it has to wait for.
func (t *Tracker) hold(h *half, d *Datagram) {
	psn := d.Packet.PSN
	t.mark(h.ops.at(psns, psn), record.AfterGap)
	i, found := h.held().find(psns, psn)
	if found {
		t.heldAgain(h, i, d.At)
		if b := t.resends(h, psns, run{psn, psns.add(psn, 1)}, nil, d.At); b.At == d.At {
			h.window.items[h.window.order[i].item].burst = *b
		}
		return
	}
	copied := held{stamp: d.At, data: t.buffers.add(nil, d.Raw), length: d.Length}
	h.window.insert(i, psn, copied)
	h.conn.share.Charge(int64(len(copied.data)) + heldCost)
	if h.hasAck && psns.delta(h.acked, h.window.first()) >= -1 {
		t.skipGap(h)
	}
	for h.window.full() {
		t.skipGap(h)
	}
}

// heldAgain counts a repeat of what is held: whose it is shows later.
func (t *Tracker) heldAgain(h *half, i int, at record.Stamp) {
	again := &h.window.items[h.window.order[i].item]
	again.repeats++
	again.again = at
	t.mark(nil, record.Retransmitted)
}

// repeatsOf books the repeats of what was held.
func (t *Tracker) repeatsOf(h *half, o *Operation, item *held) {
	marked := t.happened
	for ; item.repeats > 0; item.repeats-- {
		if b := &item.burst; b.Number != 0 {
			t.repeated(h, o, b.At, b)
			b.Number = 0
			continue
		}
		t.repeated(h, o, item.again, nil)
	}
	if item.again.Packet != 0 && o != nil {
		o.copies.note(ahead, item.again, 0)
	}
	t.happened = marked // they are none of the packet at hand
}

// drain accepts held requests whose turn has come.
func (t *Tracker) drain(h *half) {
	if h.window.empty() {
		return
	}
	h.conn.record.OutOfOrder++ // what filled the gap came after what was held
	t.mark(nil, record.OutOfOrder)
	t.acceptHeld(h)
}

// acceptHeld accepts held requests, up to the first that has to wait. What they
// are is not what the packet at hand is, unless it is one of them.
func (t *Tracker) acceptHeld(h *half) {
	if h.window.empty() {
		return
	}
	taken := 0
	for ; taken < len(h.window.order); taken++ {
		psn := h.window.order[taken].seq
		item := &h.window.items[h.window.order[taken].item]
		marked := t.happened
		if delta := psns.delta(psn, h.expect); delta > 0 && !h.loose {
			break
		} else if delta >= 0 && t.late.Decode(item.data, item.length) == nil {
			if h.loose {
				t.settle(h, psn)
			}
			t.early = item.stamp
			t.accept(h, &t.late, item.stamp)
			t.early = record.Stamp{}
			h.sentLast(psn, ahead, item.stamp, printOf(&t.late, item.data, item.length))
		}
		t.repeatsOf(h, h.ops.at(psns, psn), item)
		if item.stamp != t.now {
			t.happened = marked
		}
		t.unhold(h, item)
	}
	h.window.remove(taken)
}

// unhold gives back what one held item costs.
func (t *Tracker) unhold(h *half, item *held) {
	h.conn.share.Charge(-int64(len(item.data)) - heldCost)
	t.buffers.back(item.data)
}

// skipGap gives up on the requests before the first that is held: the capture
// has missed them.
func (t *Tracker) skipGap(h *half) {
	if h.window.empty() {
		return
	}
	t.missed(h, h.window.first(), h.window.earliest().stamp)
	t.acceptHeld(h)
}

// missed moves the expected PSN forward over packets that nobody saw.
func (t *Tracker) missed(h *half, psn uint32, at record.Stamp) {
	c := h.conn
	n := psns.delta(psn, h.expect)
	if n <= 0 {
		return
	}
	if first := psns.delta(h.orphanPSN, h.expect); h.orphans > 0 && first >= 0 && first+h.orphans <= n {
		n -= h.orphans - 1 // the PSNs of one RDMA Read Request, whose responses are there
	}
	h.orphans = 0
	t.lose(c, h.side, int64(n))
	c.Report(ruleLost, Where{At: at}, "%d packets with PSN %d to %d are not in the capture", n, h.expect, (psn-1)&rocev2.PSNMask)
	h.gapFrom, h.gapTo = h.expect, psn
	h.expect = psn
	h.loose = false
	t.breakSend(h)
}

// accept takes the request that is next.
func (t *Tracker) accept(h *half, p *rocev2.Packet, at record.Stamp) {
	info := p.Opcode.Info()
	h.expect = psns.add(p.PSN, 1)
	if !info.Last && p.PayloadLength > 0 {
		t.learnMTU(h.conn, p.PayloadLength)
	}
	if h.lane != nil {
		h.lane.advance(psns, p.PSN)
		t.carriesPacket(h.lane.requests(psns, p.PSN))
	}
	switch info.Kind {
	case rocev2.KindSend:
		whole := part{first: info.First, last: info.Last, data: p.Payload, size: p.PayloadLength, cut: !p.HasICRC, bad: t.believed(), run: run{p.PSN, h.expect}}
		if p.Headers&rocev2.HasIETH != 0 {
			whole.invalidates = record.Some(p.IETH.RKey)
		}
		t.sendPart(h, whole, at)
		if last := h.ops.last(); last != nil && last.op.Kind == Send {
			t.mark(last.op, 0)
		}
	case rocev2.KindWrite:
		t.writePacket(h, p, at)
	case rocev2.KindReadRequest:
		t.readRequest(h, p, at)
	case rocev2.KindAtomic:
		t.breakWrite(h)
		o := t.operate(h, Atomic, run{p.PSN, h.expect}, at)
		o.Handle, o.Offset, o.Length, o.Announced, o.Packets, o.count = p.AtomicETH.RKey, p.AtomicETH.VirtualAddress, 8, true, 1, 1
		h.conn.follower.Began(o)
		t.mark(o, 0)
	}
	t.carriesNoMore()
}

// maxLearned bounds how often packets can teach another path MTU.
const maxLearned = 8

// learnMTU takes the path MTU from a packet that is no last one: it is full. What
// the handshake says is only the most that it can be.
func (t *Tracker) learnMTU(c *Conn, n int) {
	if n == c.mtu || n < 256 || n > 4096 || n&(n-1) != 0 || c.learned == maxLearned {
		return
	}
	if n < c.asked && !c.mtuTold {
		c.mtuTold = true
		c.Report(rule.PathMTUUnused, Where{At: t.now}, "full packets carry %d bytes, although the REQ asked for a path MTU of %d", n, c.asked)
	}
	c.mtu = n
	c.learned++
	for _, h := range c.halves { // reads can now be counted, or counted right
		if h == nil || h.stream != nil {
			continue
		}
		for i := h.ops.head; i < len(h.ops.entries); i++ {
			if e := &h.ops.entries[i]; e.op.Kind == Read && !e.op.done && i+1 < len(h.ops.entries) {
				e.op.count = max(1, uint32(psns.delta(h.ops.entries[i+1].from, e.from))) // as the next request shows
				e.to = psns.add(e.from, e.op.count)
			}
		}
		if last := h.ops.last(); last != nil && last.op.Kind == Read && !last.op.done {
			if after := psns.add(last.from, max(last.op.count, 1)); h.loose || after == h.expect {
				h.extend(last, packetsFor(uint32(last.op.Length), n))
				t.acceptHeld(h)
			}
		}
	}
}

// writePacket follows an RDMA Write. A packet that is not the first belongs to
// the current Write when its PSN lies within that: packets lost before it do not
// matter. Where it belongs is told by the size of the Write's own packets, which
// may be smaller than the path MTU of the handshake.
func (t *Tracker) writePacket(h *half, p *rocev2.Packet, at record.Stamp) {
	info := p.Opcode.Info()
	if info.First {
		t.writeBegins(h, target{p.RETH.RKey, p.RETH.VirtualAddress, p.RETH.DMALength}, true, run{p.PSN, h.expect}, at)
		h.write.size = int32(p.PayloadLength)
	}
	o := h.write
	if o == nil {
		return
	}
	offset := int64(uint32(psns.delta(p.PSN, o.from))) * int64(o.size)
	if offset > 0 && offset+int64(p.PayloadLength) > o.Length {
		t.breakWrite(h) // of another Write, whose beginning is lost
		return
	}
	t.took(o, at)
	o.Cut = o.Cut || !p.HasICRC
	if !info.First {
		t.enter(h, run{p.PSN, h.expect}, o)
	}
	t.mark(o, 0)
	t.writePart(h, o.Offset+uint64(offset), p.Payload, p.PayloadLength, info.Last)
}

// readRequest takes an RDMA Read Request.
func (t *Tracker) readRequest(h *half, p *rocev2.Packet, at record.Stamp) {
	count := uint32(0)
	switch {
	case p.RETH.DMALength <= 256:
		count = 1
	case h.conn.mtu != 0:
		count = min(packetsFor(p.RETH.DMALength, h.conn.mtu), maxJump)
	}
	to := psns.add(p.PSN, max(count, 1))
	o := t.readBegins(h, target{p.RETH.RKey, p.RETH.VirtualAddress, p.RETH.DMALength}, run{p.PSN, to}, at)
	o.count = count
	h.loose = count == 0
	h.expect = to
	t.mark(o, 0)
	t.moves(o, o.Offset, o.Length)
}

// response takes a packet that carries the PSN of a request of the other side:
// an acknowledgement or a response.
func (t *Tracker) response(h *half, d *Datagram) {
	p, info := d.Packet, d.Packet.Opcode.Info()
	asker := h.peer()
	if asker == nil {
		h.acksSeen, h.lastAck = true, p.PSN
		return
	}
	before := (p.PSN - 1) & rocev2.PSNMask
	if info.Kind == rocev2.KindReadResponse {
		if !info.Last && p.PayloadLength > 0 {
			t.learnMTU(h.conn, p.PayloadLength)
		}
		t.acknowledged(asker, before, d.At)
		t.readResponse(h, asker, p, d.At)
		return
	}
	syndrome := p.AETH.Syndrome
	switch {
	case info.Kind == rocev2.KindAtomicAck:
		asker.signals.answered(p.PSN)
		t.acknowledged(asker, p.PSN, d.At)
		if o := asker.ops.at(psns, p.PSN); o != nil && o.Kind == Atomic && !o.done {
			t.took(o, d.At)
			o.done, o.Bytes = true, o.Length
			h.conn.follower.Done(o)
			t.mark(o, 0)
		}
	case syndrome.IsAck():
		t.mark(asker.ops.at(psns, p.PSN), 0)
		t.acknowledged(asker, p.PSN, d.At)
		t.mark(asker.ops.at(psns, p.PSN), 0) // it may have been held until now
	case syndrome.IsRNR():
		h.conn.record.RNRNaks++
		t.acknowledged(asker, before, d.At)
		t.nak(h, asker, d)
	case syndrome.IsNak():
		h.conn.record.Naks++
		t.acknowledged(asker, before, d.At)
		t.nak(h, asker, d)
	}
}

// acknowledged notes that the other side has received everything up to psn.
func (t *Tracker) acknowledged(h *half, psn uint32, at record.Stamp) {
	if !h.started {
		h.ackedEarly, h.earlyAck = true, psn
	}
	if !h.started || h.hasAck && psns.delta(psn, h.acked) <= 0 || psns.delta(psn, h.expect) > maxJump {
		return
	}
	h.acked, h.hasAck = psn, true
	h.stall = stall{}
	h.signals.progress = at.Time
	if h.receiver.known && psns.delta(psn, h.receiver.next) >= 0 {
		h.receiver.next = psns.add(psn, 1)
	}
	if !h.window.empty() && psns.delta(psn, h.window.first()) >= -1 {
		t.skipGap(h)
	}
	l, covered := &h.ops, h.ops.unacked
	for covered < len(l.entries) && psns.delta(psn, l.entries[covered].to) >= -1 && l.entries[covered].op != h.send && l.entries[covered].op != h.write {
		covered++
	}
	t.covers(h, l.unacked, covered, at)
	for ; l.unacked < covered; l.unacked++ {
		t.acked(l.entries[l.unacked].op, at, true)
	}
}

// nak notes a NAK: what it refuses, and whether the connection survives it.
func (t *Tracker) nak(h, asker *half, d *Datagram) {
	p, at := d.Packet, d.At
	c, syndrome := h.conn, p.AETH.Syndrome
	if old := asker.hasAck && psns.delta(p.PSN, asker.acked) <= 0; !old && asker.signals.refused(p.PSN, syndrome.IsRNR(), d) {
		t.rollBack(asker, p.PSN)
	}
	r := Refusal{Op: asker.ops.at(psns, p.PSN), By: h.side, At: at, Reason: "RNR", NotReady: syndrome.IsRNR()}
	t.mark(r.Op, record.Refused)
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
		c.ends(Ending{How: record.EndNak, By: record.Some(h.side), At: at, Reason: r.Reason})
	}
	t.refuse(asker, &r, psns, p.PSN)
	if r.Fatal && asker.refused == nil {
		asker.refused = &Refusal{Later: true, Fatal: true, By: r.By, At: at, Reason: r.Reason, Text: r.Text}
	}
}

// readResponse takes one packet of the data that a Read of the other side asked
// for.
func (t *Tracker) readResponse(h, asker *half, p *rocev2.Packet, at record.Stamp) {
	c := h.conn
	o := asker.ops.at(psns, p.PSN)
	if o == nil && asker.loose { // its extent is not known yet
		if last := asker.ops.last(); last.op.Kind == Read {
			if n := psns.delta(p.PSN, last.from); n >= 0 && uint32(n) < last.op.most(c.mtu) {
				o = last.op
			}
		}
	}
	if o == nil || o.Kind != Read {
		switch {
		case asker.started && psns.delta(p.PSN, asker.expect) < 0:
			t.repeated(h, nil, at, nil)
		case asker.orphans > 0 && psns.delta(p.PSN, asker.orphanPSN) == asker.orphans:
			asker.orphans++
		default:
			asker.orphans, asker.orphanPSN = 1, p.PSN
		}
		return
	}
	t.mark(o, 0)
	asker.signals.answered(p.PSN)
	index := int64(psns.delta(p.PSN, o.from))
	if index > 0 && c.mtu == 0 {
		return
	}
	t.moves(o, o.Offset+uint64(index*int64(c.mtu)), int64(p.PayloadLength))
	if t.saw(o, index, index+1) == 0 {
		t.repeated(h, o, at, nil)
		return
	}
	if index+1 < o.seen.Last().Hi {
		c.record.OutOfOrder++
		t.mark(o, record.OutOfOrder)
	}
	switch {
	case index == o.taken:
		if o.taken++; o.disorder != nil && o.disorder.filled.Packet == 0 {
			o.disorder.filled = at
		}
	case index > o.taken:
		if t.mark(o, record.AfterGap); o.disorder == nil {
			o.disorder = &disorder{early: at}
		}
	}
	t.took(o, at)
	offset := index * int64(c.mtu)
	if offset+int64(p.PayloadLength) > o.Length || o.done {
		return // more than was asked for
	}
	t.carriesPacket(asker.lane.responses(p.PSN))
	t.readPart(o, offset, p.Payload, p.PayloadLength, at)
	t.carriesNoMore()
	if last := asker.ops.last(); o.done && asker.loose && o == last.op { // now its extent is known
		asker.extend(last, uint32(o.Packets))
	}
}
