package dissect

import (
	"slices"

	"github.com/rdmadump/rdmadump/rocev2"
)

// Reliable connections: PSNs, retransmission, loss. What a receiver accepts is
// requests in the order of their PSNs, each once; what it makes of them are the
// operations: Sends, RDMA Writes, RDMA Reads. Nothing above sees a packet twice,
// early or not at all without being told.

// maxJump is how far PSNs of one connection can be apart: what is farther away
// belongs to another, which uses the queue pair's number again.
const maxJump = 1 << 20

// request takes a packet that its sender numbered itself: Send, Write, Read
// Request, Atomic.
func (d *Dissector) request(f *flow, p *rocev2.Packet, at stamp) {
	if !f.started {
		f.started = true
		if delta := rocev2.PSNDelta(p.PSN, f.expect); !f.announced || delta < 0 || delta > fitWindow {
			f.expect = p.PSN
		}
	}
	delta := rocev2.PSNDelta(p.PSN, f.expect)
	if f.loose && delta > 0 {
		d.settle(f, p.PSN)
		delta = rocev2.PSNDelta(p.PSN, f.expect)
	}
	switch {
	case delta == 0:
		d.accept(f, p, at)
		d.drain(f)
	case delta < 0:
		d.duplicate(f, p, at)
	default:
		d.hold(f, p, at)
	}
}

// settle finds the expected PSN after an RDMA Read whose responses could not be
// counted, the path MTU being unknown: the next request tells.
func (d *Dissector) settle(f *flow, psn uint32) {
	f.loose = false
	r := f.reads[len(f.reads)-1]
	if r.holds(psn-1&rocev2.PSNMask, f.conn.mtu) {
		r.count = uint32(rocev2.PSNDelta(psn, r.psn))
		f.expect = psn
	}
}

// duplicate takes a request whose PSN has passed: a retransmission.
func (d *Dissector) duplicate(f *flow, p *rocev2.Packet, at stamp) {
	c := f.conn
	c.record.Retransmitted++
	kind := p.Opcode.Info().Kind
	var t *txn
	of := ""
	switch kind {
	case rocev2.KindReadRequest:
		// Repeated, or resumed in its middle: the same read either way, whose
		// responses keep their PSNs (IBTA volume 1, section 9.4.4).
		of = EventRead
		if r := f.findRead(p.PSN); r != nil {
			t = txnOf(r.segment)
		}
	case rocev2.KindSend:
		for _, w := range f.awaiting {
			if d := rocev2.PSNDelta(w.psn, p.PSN); d >= 0 && d < int32(maxSend/256) {
				t, of = w.txn.get(), w.what
				break
			}
		}
	case rocev2.KindWrite:
		of = "write"
		t = txnOf(f.write.segment)
	}
	d.retransmitted(f, t, of, at)
}

// retransmitted notes on a transaction that a packet of it was sent again.
func (d *Dissector) retransmitted(f *flow, t *txn, of string, at stamp) {
	if t == nil {
		return
	}
	t.rec.Retransmitted++
	if n := len(t.rec.Timeline); n > 0 { // runs of them are one event
		if last := &t.rec.Timeline[n-1]; last.Event == EventRetransmit && last.Of == of && last.From == t.role(f.side) {
			t.eventNumbers[n-1].packets++
			t.eventNumbers[n-1].last = at.packet
			return
		}
	}
	d.event(t, Event{Time: at.time, Packet: at.packet, Event: EventRetransmit, From: t.role(f.side), Of: of}, eventNumbers{bytes: -1, packets: 1, last: at.packet})
}

// role is "requester" or "responder", whichever a side is in the transaction.
func (t *txn) role(side int) string {
	if side == t.side {
		return "requester"
	}
	return "responder"
}

func txnOf(r segmentRef) *txn {
	if s := r.get(); s != nil {
		return s.txn
	}
	return nil
}

// hold keeps a copy of a request that came before one it has to wait for.
func (d *Dissector) hold(f *flow, p *rocev2.Packet, at stamp) {
	c := f.conn
	i, found := slices.BinarySearchFunc(f.held, p.PSN, func(h heldPacket, psn uint32) int { return int(rocev2.PSNDelta(h.psn, psn)) })
	if found {
		c.record.Retransmitted++
		return
	}
	h := heldPacket{psn: p.PSN, stamp: at, length: d.link.Length}
	if n := len(d.buffers); n > 0 {
		h.data, d.buffers = d.buffers[n-1], d.buffers[:n-1]
	}
	h.data = append(h.data[:0], d.link.Transport...)
	f.held = slices.Insert(f.held, i, h)
	f.heldBytes += len(h.data)
	if f.hasAck && rocev2.PSNDelta(f.acked, f.held[0].psn) >= -1 {
		d.skipGap(f)
	}
	for len(f.held) > maxHeld || f.heldBytes > maxHeldBytes {
		d.skipGap(f)
	}
}

// drain accepts held requests whose turn has come.
func (d *Dissector) drain(f *flow) {
	if len(f.held) == 0 {
		return
	}
	f.conn.record.OutOfOrder++ // what filled the gap came after what was held
	d.acceptHeld(f)
}

func (d *Dissector) acceptHeld(f *flow) {
	taken := 0
	for _, h := range f.held {
		if delta := rocev2.PSNDelta(h.psn, f.expect); delta > 0 && !f.loose {
			break
		} else if delta >= 0 {
			if d.late.Decode(h.data, h.length) == nil {
				if f.loose {
					d.settle(f, h.psn)
				}
				d.accept(f, &d.late, h.stamp)
			}
		}
		f.heldBytes -= len(h.data)
		if len(d.buffers) < maxHeld {
			d.buffers = append(d.buffers, h.data)
		}
		taken++
	}
	f.held = slices.Delete(f.held, 0, taken)
}

// skipGap gives up on the requests before the first that is held: the capture
// has missed them.
func (d *Dissector) skipGap(f *flow) {
	if len(f.held) == 0 {
		return
	}
	d.lost(f, f.held[0].psn, f.held[0].stamp)
	d.acceptHeld(f)
}

// lost moves the expected PSN forward over packets that nobody saw.
func (d *Dissector) lost(f *flow, psn uint32, at stamp) {
	c := f.conn
	n := rocev2.PSNDelta(psn, f.expect)
	if n <= 0 {
		return
	}
	if first := rocev2.PSNDelta(f.orphanPSN, f.expect); f.orphans > 0 && first >= 0 && first+f.orphans <= n {
		n -= f.orphans - 1 // the PSNs of one RDMA Read Request, whose responses are there
	}
	f.orphans = 0
	c.record.Lost += int64(n)
	d.summary.Lost += int64(n)
	d.find(ruleLost, c, nil, nil, at, "%d packets with PSN %d to %d are not in the capture", n, f.expect, (psn-1)&rocev2.PSNMask)
	f.expect = psn
	f.loose = false
	d.breakSend(f, at)
}

// breakSend ends a Send whose rest is lost: what is there of it is read.
func (d *Dissector) breakSend(f *flow, at stamp) {
	if f.send.active {
		f.send.active = false
		d.message(f, &message{data: f.send.buffer, length: f.send.length, first: f.send.first, last: at, psn: f.expect})
	}
}

// accept takes the request that is next.
func (d *Dissector) accept(f *flow, p *rocev2.Packet, at stamp) {
	info := p.Opcode.Info()
	f.expect = (p.PSN + 1) & rocev2.PSNMask
	if !info.Last && p.PayloadLength > 0 {
		f.conn.learnMTU(p.PayloadLength)
	}
	switch info.Kind {
	case rocev2.KindSend:
		d.sendPacket(f, p, info, at)
	case rocev2.KindWrite:
		d.writePacket(f, p, info, at)
	case rocev2.KindReadRequest:
		d.readRequest(f, p, at)
	}
}

// learnMTU takes the path MTU from a packet that is no last one: it is full.
func (c *conn) learnMTU(n int) {
	if c.mtu == 0 && n >= 256 && n <= 4096 && n&(n-1) == 0 {
		c.mtu = n
		for _, f := range c.flows { // reads of unknown extent can now be counted
			if f == nil {
				continue
			}
			for _, r := range f.reads {
				if r.count == 0 {
					r.count = packetsFor(r.length, n)
				}
			}
			if f.loose {
				r := f.reads[len(f.reads)-1]
				f.loose, f.expect = false, (r.psn+r.count)&rocev2.PSNMask
			}
		}
	}
}

// sendPacket takes a packet of a Send.
func (d *Dissector) sendPacket(f *flow, p *rocev2.Packet, info *rocev2.OpcodeInfo, at stamp) {
	var invalidate *uint32
	if p.Headers&rocev2.HasIETH != 0 {
		invalidate = &p.IETH.RKey
	}
	d.sendPart(f, info.First, info.Last, p.Payload, p.PayloadLength, invalidate, p.PSN, at)
}

// sendPart puts a Send together from its packets, or its DDP segments, of either
// transport; size is how many bytes data had on the wire.
func (d *Dissector) sendPart(f *flow, first, last bool, data []byte, size int, invalidate *uint32, psn uint32, at stamp) {
	s := &f.send
	if first {
		d.breakSend(f, at)
		*s = sendState{active: true, first: at, buffer: s.buffer[:0]}
	}
	if !s.active {
		return // its beginning is lost
	}
	if whole := first && last; !whole { // no copy of what is whole in one packet
		if !s.cut {
			if len(s.buffer)+len(data) > maxSend || !f.conn.isRPC && !f.conn.undecided {
				s.cut = true
			} else {
				s.buffer = append(s.buffer, data...)
				s.cut = len(data) < size
			}
		}
		data = s.buffer
	}
	s.length += size
	if !last {
		return
	}
	s.active = false
	d.sent = message{data: data, length: s.length, whole: true, invalidate: invalidate, first: s.first, last: at, psn: psn}
	d.message(f, &d.sent)
}

// writePacket follows an RDMA Write. A packet that is not the first belongs to
// the current Write when its PSN lies within that: packets lost before it do
// not matter.
func (d *Dissector) writePacket(f *flow, p *rocev2.Packet, info *rocev2.OpcodeInfo, at stamp) {
	w := &f.write
	if info.First {
		*w = writeState{
			active: true, psn: p.PSN, handle: p.RETH.RKey, offset: p.RETH.VirtualAddress, length: p.RETH.DMALength, first: at,
		}
		d.writeStarts(f, w.length, int64(w.length), at)
	}
	if !w.active {
		return
	}
	index := uint64(uint32(rocev2.PSNDelta(p.PSN, w.psn)))
	at0 := index * uint64(f.conn.mtu)
	if index > 0 && (f.conn.mtu == 0 || at0+uint64(p.PayloadLength) > uint64(w.length)) {
		w.active = false // of another Write, whose beginning is lost
		return
	}
	d.writePart(f, w.offset+at0, p.Payload, p.PayloadLength, info.Last, at)
}

// writeStarts finds the memory that the RDMA Write in f.write fills from its
// offset on, of which reach bytes are known of; bytes is how many it will be, -1
// where the wire does not tell yet.
func (d *Dissector) writeStarts(f *flow, reach uint32, bytes int64, at stamp) {
	w := &f.write
	s := d.target(f, w.handle, w.offset, reach, at, "RDMA Write")
	w.segment = s.ref()
	if s != nil {
		d.rdma(f, s, EventWriteFirst, at, w.handle, w.offset, bytes, 0)
	}
}

// writePart takes a packet, or DDP segment, of the RDMA Write in f.write; size is
// how many bytes data had on the wire.
func (d *Dissector) writePart(f *flow, offset uint64, data []byte, size int, last bool, at stamp) {
	w := &f.write
	w.packets++
	w.moved += int64(size)
	w.active = !last
	s := w.segment.get()
	if s == nil {
		return
	}
	d.moved(s, offset, data, size)
	if last {
		d.rdma(f, s, EventWriteLast, at, w.handle, w.offset, w.moved, w.packets)
	}
}

// target finds the memory of the other side that an operation names, and
// reports one that nobody exposed.
func (d *Dissector) target(f *flow, handle uint32, offset uint64, length uint32, at stamp, what string) *segment {
	c := f.conn
	if !c.isRPC || length == 0 {
		return nil
	}
	s := c.memory(other(f.side), handle, offset, length)
	if s == nil {
		if c.handshake && c.record.Lost == 0 {
			d.find(ruleOutsideExposed, c, nil, nil, at, "%s of %d bytes at 0x%016x names handle 0x%08x, which no open Call exposes", what, length, offset, handle)
		}
		return nil
	}
	if offset < s.offset || offset-s.offset+uint64(length) > uint64(s.length) {
		d.find(ruleOutsideExposed, c, s.txn, nil, at, "%s of %d bytes at 0x%016x exceeds handle 0x%08x, %d bytes at 0x%016x", what, length, offset, handle, s.length, s.offset)
	}
	return s
}

// readStarts notes an RDMA Read that this side asks for.
func (d *Dissector) readStarts(f *flow, handle uint32, offset uint64, length uint32, at stamp) *read {
	if len(f.reads) >= maxReads {
		d.dropRead(f, 0)
		d.limit("RDMA Reads of a connection")
	}
	r := d.newRead()
	r.handle, r.offset, r.length, r.first = handle, offset, length, at
	s := d.target(f, handle, offset, length, at, "RDMA Read")
	r.segment = s.ref()
	if s != nil {
		d.rdma(f, s, EventRead, at, handle, offset, int64(length), 0)
	}
	f.reads = append(f.reads, r)
	return r
}

// readRequest takes an RDMA Read Request.
func (d *Dissector) readRequest(f *flow, p *rocev2.Packet, at stamp) {
	r := d.readStarts(f, p.RETH.RKey, p.RETH.VirtualAddress, p.RETH.DMALength, at)
	r.psn = p.PSN
	switch {
	case r.length <= 256:
		r.count = 1
	case f.conn.mtu != 0:
		r.count = packetsFor(r.length, f.conn.mtu)
	default:
		f.loose = true
		return
	}
	f.expect = (p.PSN + r.count) & rocev2.PSNMask
}

func (d *Dissector) newRead() *read {
	if n := len(d.freeReads); n > 0 {
		r := d.freeReads[n-1]
		d.freeReads = d.freeReads[:n-1]
		*r = read{seen: r.seen[:0]}
		return r
	}
	return new(read)
}

// dropRead forgets a read.
func (d *Dissector) dropRead(f *flow, i int) {
	if i == len(f.reads)-1 {
		f.loose = false
	}
	if len(d.freeReads) < maxReads {
		d.freeReads = append(d.freeReads, f.reads[i])
	}
	f.reads = slices.Delete(f.reads, i, i+1)
}

// findRead is the read that a response's PSN belongs to.
func (f *flow) findRead(psn uint32) *read {
	for _, r := range f.reads {
		if r.holds(psn, f.conn.mtu) {
			return r
		}
	}
	return nil
}

// response takes a packet that carries the PSN of a request of the other side:
// an acknowledgement or a response.
func (d *Dissector) response(f *flow, p *rocev2.Packet, info *rocev2.OpcodeInfo, at stamp) {
	asker := f.peer()
	if asker == nil {
		f.acksSeen, f.lastAck = true, p.PSN
		return
	}
	if info.Kind == rocev2.KindReadResponse {
		if !info.Last && p.PayloadLength > 0 {
			f.conn.learnMTU(p.PayloadLength)
		}
		d.acknowledged(asker, (p.PSN-1)&rocev2.PSNMask, at)
		d.readResponse(f, asker, p, at)
		return
	}
	syndrome := p.AETH.Syndrome
	switch {
	case info.Kind == rocev2.KindAtomicAck || syndrome.IsAck():
		d.acknowledged(asker, p.PSN, at)
	case syndrome.IsRNR():
		f.conn.record.RNRNaks++
		d.acknowledged(asker, (p.PSN-1)&rocev2.PSNMask, at)
		d.nak(f, asker, p, at)
	case syndrome.IsNak():
		f.conn.record.Naks++
		d.acknowledged(asker, (p.PSN-1)&rocev2.PSNMask, at)
		d.nak(f, asker, p, at)
	}
}

// acknowledged notes that the other side has received everything up to psn.
func (d *Dissector) acknowledged(f *flow, psn uint32, at stamp) {
	if !f.started || f.hasAck && rocev2.PSNDelta(psn, f.acked) <= 0 || rocev2.PSNDelta(psn, f.expect) > maxJump {
		return
	}
	f.acked, f.hasAck = psn, true
	if len(f.held) > 0 && rocev2.PSNDelta(psn, f.held[0].psn) >= -1 {
		d.skipGap(f)
	}
	n := 0
	for ; n < len(f.awaiting) && rocev2.PSNDelta(psn, f.awaiting[n].psn) >= 0; n++ {
		if t := d.noteAck(f, f.awaiting[n], at); t != nil && f.awaiting[n].what == EventReply {
			d.emit(t)
		}
	}
	f.awaiting = slices.Delete(f.awaiting, 0, n)
}

// noteAck notes on its transaction that a Send of this side was acknowledged.
func (d *Dissector) noteAck(f *flow, w pending, at stamp) *txn {
	t := w.txn.get()
	if t != nil {
		d.event(t, Event{Time: at.time, Packet: at.packet, Event: EventAck, From: t.role(other(f.side)), Of: w.what}, eventNumbers{bytes: -1})
	}
	return t
}

// nak notes a NAK: what it refuses, and whether the connection survives it.
func (d *Dissector) nak(f, asker *flow, p *rocev2.Packet, at stamp) {
	c, syndrome := f.conn, p.AETH.Syndrome
	reason := "RNR"
	if syndrome.IsNak() {
		reason = syndrome.NakName()
	}
	t, of := asker.refused(p.PSN)
	if t != nil {
		d.event(t, Event{Time: at.time, Packet: at.packet, Event: EventNak, From: t.role(f.side), Of: of, Reason: reason}, eventNumbers{bytes: -1})
	}
	if syndrome.IsNak() && syndrome.Code() != rocev2.NakPSNSequenceError {
		d.find(ruleRemoteError, c, t, nil, at, "NAK of PSN %d: %s", p.PSN, reason)
		if c.storage.reason == "" {
			c.storage.reason = "nak: " + reason
			c.record.CloseReason = &c.storage.reason
		}
		d.refuse(asker, p.PSN, at)
	}
}

// refuse takes back the Replies that a fatal NAK reaches: a receiver that
// refuses a request takes none after it (IBTA volume 1, section 9.9.3).
func (d *Dissector) refuse(f *flow, psn uint32, at stamp) {
	for _, w := range f.awaiting {
		t := w.txn.get()
		if w.what != EventReply || t == nil || t.emitted || rocev2.PSNDelta(w.psn, psn) < 0 {
			continue
		}
		d.find(ruleReplyRefused, f.conn, t, nil, at, "the Reply in packet %d was never received: the NAK refuses PSN %d and all after it", t.answer.LastPacket, psn)
		t.takeBack()
	}
}

// refused finds which transaction a request with this PSN was for.
func (f *flow) refused(psn uint32) (t *txn, of string) {
	if r := f.findRead(psn); r != nil {
		return txnOf(r.segment), EventRead
	}
	if f.write.segment.segment != nil {
		if delta := rocev2.PSNDelta(psn, f.write.psn); delta >= 0 && uint64(delta) < uint64(f.write.length)/256+1 && delta <= 1<<20 {
			if t := txnOf(f.write.segment); t != nil {
				return t, "write"
			}
		}
	}
	for _, w := range f.awaiting {
		if rocev2.PSNDelta(w.psn, psn) >= 0 {
			return w.txn.get(), w.what
		}
	}
	return nil, ""
}

// readResponse takes one packet of the data that a read asked for.
func (d *Dissector) readResponse(f, asker *flow, p *rocev2.Packet, at stamp) {
	c := f.conn
	r := asker.findRead(p.PSN)
	if r == nil {
		switch {
		case asker.started && rocev2.PSNDelta(p.PSN, asker.expect) < 0:
			c.record.Retransmitted++
		case asker.orphans > 0 && rocev2.PSNDelta(p.PSN, asker.orphanPSN) == asker.orphans:
			asker.orphans++
		default:
			asker.orphans, asker.orphanPSN = 1, p.PSN
		}
		return
	}
	index := int64(rocev2.PSNDelta(p.PSN, r.psn))
	if index > 0 && c.mtu == 0 {
		return
	}
	if r.seen.add(index, index+1) == 0 {
		c.record.Retransmitted++
		d.retransmitted(f, txnOf(r.segment), EventReadDone, at)
		return
	}
	if last := r.seen[len(r.seen)-1]; index+1 < last.hi {
		c.record.OutOfOrder++
	}
	r.packets++
	offset := uint64(index) * uint64(c.mtu)
	if offset+uint64(p.PayloadLength) > uint64(r.length) {
		return // more than was asked for
	}
	r.moved += int64(p.PayloadLength)
	s := r.segment.get()
	if s != nil {
		d.moved(s, r.offset+offset, p.Payload, p.PayloadLength)
	}
	if r.moved < int64(r.length) {
		return
	}
	if s != nil {
		d.rdma(f, s, EventReadDone, at, r.handle, r.offset, r.moved, r.packets)
	}
	if asker.loose && r == asker.reads[len(asker.reads)-1] { // now its extent is known
		asker.loose, asker.expect = false, (r.psn+uint32(r.packets))&rocev2.PSNMask
	}
	d.dropRead(asker, slices.Index(asker.reads, r))
}

// flush ends what a closed connection has under way: nothing more will come.
func (d *Dissector) flush(c *conn, at stamp) {
	for _, f := range c.flows {
		if f == nil {
			continue
		}
		for f.iwarp != nil && len(f.iwarp.held) > 0 {
			d.skipSegments(f)
		}
		for len(f.held) > 0 {
			d.skipGap(f)
		}
		if f.started && f.hasAck {
			d.lost(f, (f.acked+1)&rocev2.PSNMask, at)
		}
		d.breakSend(f, at)
		for len(f.reads) > 0 {
			d.missedResponses(f, f.reads[0], at)
			d.dropRead(f, 0)
		}
	}
	for side := range c.open {
		d.endAll(c, side, at)
	}
}

// missedResponses counts what the capture missed of a read whose requester went
// on: had it missed them too, it would have asked again.
func (d *Dissector) missedResponses(f *flow, r *read, at stamp) {
	if r.count == 0 || len(r.seen) == 0 {
		return
	}
	if missing := int64(r.count) - r.seen.total(); missing > 0 && r.segment.get() == nil {
		f.conn.record.Lost += missing
		d.summary.Lost += missing
		d.find(ruleLost, f.conn, nil, nil, at, "%d responses of the RDMA Read with PSN %d are not in the capture", missing, r.psn)
	}
}

// endAll ends all Calls of a side that have no Reply, oldest first.
func (d *Dissector) endAll(c *conn, side int, at stamp) {
	d.closing = d.closing[:0]
	for _, t := range c.open[side] {
		d.closing = append(d.closing, t)
	}
	slices.SortFunc(d.closing, func(a, b *txn) int { return int(a.rec.ID - b.rec.ID) })
	for _, t := range d.closing {
		d.end(t, StatusNoReply, at)
	}
}
