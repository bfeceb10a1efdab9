package rdma

import (
	"net/netip"

	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/link"
)

// TCP, as far as it carries iWARP. A connection is followed from its MPA request
// or reply on; without those, from the first segment whose bytes read as FPDUs
// with a right CRC. Other TCP traffic costs a look at a few bytes of each
// segment, and no memory.

// TCP is a segment, and when it was seen.
type TCP struct {
	link.TCP
	At record.Stamp
}

// streamKey names one direction of a TCP connection.
type streamKey struct {
	src, dst         netip.Addr
	srcPort, dstPort uint16
}

func (k streamKey) reversed() streamKey { return streamKey{k.dst, k.src, k.dstPort, k.srcPort} }

// stream is one direction of a TCP connection that carries iWARP.
type stream struct {
	key       streamKey
	next      uint32 // the sequence number of the next byte
	known     bool   // next is
	ackedTo   uint32 // the other end has received everything before it
	acked     bool
	handshake bool   // its MPA frame is yet to come, or incomplete
	markers   bool   // in what this side sends
	resync    bool   // bytes are missing: look for the start of an FPDU
	skip      int    // bytes of an FPDU that was cut are still to come
	position  int    // bytes since the FPDUs began, modulo MarkerEvery
	partial   []byte // an FPDU, or MPA frame, as far as it is there
	from      uint32 // sequence number of partial
	fin       bool
}

// decoders is what streams are taken apart with, used again for each.
type decoders struct {
	mpa      iwarp.MPA
	segment  iwarp.Segment
	unmarked []byte
	fpdus    []iwarp.Noted
}

// oddSums is how many wrong checksums of a sender are taken for damage: where more
// of them are wrong than right, something on the way to the capture does that.
const oddSums = 8

// Segment takes a TCP segment. It is false when that carries no iWARP.
func (t *Tracker) Segment(s *TCP) bool {
	t.now, t.happened = s.At, Happened{}
	t.iwarp.fpdus = t.iwarp.fpdus[:0]
	key := streamKey{s.Src, s.Dst, s.SrcPort, s.DstPort}
	h := t.streams[key]
	isMPA := iwarp.IsMPA(s.Payload)
	if h == nil && !isMPA && !t.mayBegin(key, s) {
		return false
	}
	if right, known := s.Checksum(); known {
		var from *Host
		if h != nil {
			from = h.src
		} else {
			from = t.hosts.get(&Address{IP: s.Src})
		}
		from.judged = true
		bad := !right && !s.Unfinished() // unless it was captured before it was summed up
		if right && s.Length > 0 {
			from.tcpGood++
		} else if bad {
			from.tcpBad++
		}
		if bad && (from.tcpBad <= oddSums || from.tcpGood >= from.tcpBad) { // the receiver drops it
			if t.mark(nil, record.BadChecksum); h != nil {
				h.conn.record.Packets++
				t.happened.Conn = h.conn
			}
			t.BadChecksum++
			return h != nil
		}
	}
	if isMPA && (h == nil || h.conn.closing || h.stream.known && !h.stream.handshake && octets.delta(s.Seq, h.stream.next) > 0) {
		h = t.opens(key, s)
	} else if h == nil {
		h = t.guess(key, s)
	}
	if h == nil {
		return false
	}
	t.belongs(h.conn, IWARP)
	h.heard(s.Length > 0)
	t.take(h, s)
	return true
}

// opens starts a connection, or completes it with its other direction, from an
// MPA frame.
func (t *Tracker) opens(key streamKey, s *TCP) *half {
	if string(s.Payload[:len(iwarp.ReplyKey)]) == iwarp.ReplyKey {
		if back := t.streams[key.reversed()]; back != nil && !back.conn.closing && back.conn.halves[1] == nil {
			return t.attachStream(back.conn, 1, key)
		}
		return t.attachStream(t.serves(t.announced(), key.reversed()), 1, key)
	}
	return t.attachStream(t.serves(t.announced(), key), 0, key)
}

// serves notes which ports a connection's sides have; key is the direction that
// the client sends in.
func (t *Tracker) serves(c *Conn, key streamKey) *Conn {
	c.client = 0
	c.ports[0], c.ports[1] = record.Some(key.srcPort), record.Some(key.dstPort)
	c.service = c.ports[1]
	c.record.Transport = IWARP
	return c
}

func (t *Tracker) attachStream(c *Conn, side Side, key streamKey) *half {
	if old := t.streams[key]; old != nil && old.conn != c {
		t.replace(old.conn)
	} else if old != nil {
		t.drop(old)
	}
	h := &half{conn: c}
	e := t.hosts.ends(&Address{IP: key.src}, &Address{IP: key.dst})
	h.side, h.src, h.dst, h.lane = side, e.src, e.dst, t.newLane()
	e.src.Hold()
	e.dst.Hold()
	h.stream = &stream{key: key, handshake: c.handshake}
	c.halves[side] = h
	c.share.Charge(halfCost)
	t.streams[key] = h
	if c.halves[side.Other()] != nil {
		t.decide(c)
	}
	return h
}

// mayBegin is a first look at a segment of a stream that is not known: most are of
// other protocols.
func (t *Tracker) mayBegin(key streamKey, s *TCP) bool {
	if len(s.Payload) < iwarp.FPDULen(iwarp.TaggedLen) || len(s.Payload) < s.Length {
		return false
	}
	if back := t.streams[key.reversed()]; back != nil {
		return true
	}
	return plausibleFPDU(s.Payload, false)
}

// guess recognises a stream whose handshake was missed by its framing: the
// segment has to be made of FPDUs, with a CRC that is right. The side that calls
// is found out later; the server is first taken to be the one with the port that
// is known, or the lower.
func (t *Tracker) guess(key streamKey, s *TCP) *half {
	if back := t.streams[key.reversed()]; back != nil && !back.conn.closing {
		side := back.side.Other()
		if back.conn.halves[side] == nil && plausibleFPDU(s.Payload, true) {
			h := t.attachStream(back.conn, side, key)
			h.stream.handshake = false
			return h
		}
		return nil
	}
	if !plausibleFPDU(s.Payload, false) {
		return nil
	}
	c := t.connect()
	t.undecided.Push(c)
	side := Side(0)
	asks := key
	serves := t.upper.ServerPort
	if serves(key.srcPort) || key.srcPort < key.dstPort && !serves(key.dstPort) {
		side, asks = 1, key.reversed()
	}
	t.serves(c, asks)
	if !serves(asks.dstPort) {
		c.client = -1
	}
	return t.attachStream(c, side, key)
}

// plausibleFPDU says whether data starts with a whole FPDU whose CRC is right.
// Where CRCs are off, their field is zero: the data has then to be made of such
// FPDUs from end to end, and, of a connection that is not known to be iWARP, to
// begin with an untagged one, which has more bits that can be wrong.
func plausibleFPDU(data []byte, known bool) bool {
	for first := true; len(data) > 0; first = false {
		if len(data) < iwarp.FPDULen(iwarp.TaggedLen) {
			return false
		}
		ulpdu := int(be.Uint16(data))
		size := iwarp.FPDULen(ulpdu)
		var s iwarp.Segment
		if size > len(data) || ulpdu < iwarp.TaggedLen || s.Decode(data[iwarp.LengthLen:iwarp.LengthLen+ulpdu]) != nil || !s.Plausible() {
			return false
		}
		switch iwarp.CheckCRC(data[:size]) {
		case iwarp.CRCBad:
			return false
		case iwarp.CRCOk:
			return true
		}
		if first && !known && s.Tagged {
			return false
		}
		data = data[size:]
	}
	return true
}

// take puts a segment in its place in the stream.
func (t *Tracker) take(h *half, s *TCP) {
	c, w := h.conn, h.stream
	if s.Flags&link.TCPACK != 0 {
		if peer := h.peer(); peer != nil && peer.stream.known {
			alone := s.Length == 0 // it says nothing else
			t.acknowledgedTCP(peer, s.Ack, s.At, alone)
			if alone {
				t.mark(peer.ops.at(octets, s.Ack-1), 0)
			}
		}
	}
	if s.Length > 0 {
		t.happened.Place = h.lane.requests(octets, s.Seq)
		t.takeData(h, s)
		h.signals.requested = s.At.Time
		if t.happened.Op == nil {
			t.partOf(h)
		}
	}
	switch {
	case s.Flags&link.TCPRST != 0:
		t.close(c, Ending{How: record.EndReset, By: record.Some(h.side), At: s.At})
		t.isOver(c)
	case s.Flags&link.TCPFIN != 0:
		w.fin = true
		if peer := h.peer(); peer == nil || peer.stream.fin {
			t.close(c, Ending{How: record.EndDisconnect, By: c.finished(h), At: s.At})
			t.isOver(c)
		} else if !c.fin.Known() {
			c.fin = record.Some(h.side)
		}
	}
}

// partOf says whose the FPDU is that a segment brought a part of.
func (t *Tracker) partOf(h *half) {
	w, s := h.stream, &t.iwarp.segment
	if w.markers || len(w.partial) < iwarp.LengthLen || s.Decode(w.partial[iwarp.LengthLen:]) != nil {
		return
	}
	switch {
	case s.Tagged && s.Opcode == iwarp.Write && h.write != nil && h.write.Handle == s.STag:
		t.mark(h.write, 0)
	case s.Tagged && s.Opcode == iwarp.Write:
		t.happened.Tag = h.conn.follower.Whose(h.side.Other(), s.STag, s.Offset)
	case s.Tagged && s.Opcode == iwarp.ReadResponse:
		if peer := h.peer(); peer != nil {
			t.mark(peer.sinks(fragment{Segment: s}), 0)
		}
	case s.Opcode.IsSend() && s.Offset > 0:
		t.mark(h.send, 0)
	}
}

// finished is the side that ended its stream first; h is the one that did last.
func (c *Conn) finished(h *half) record.Opt[Side] {
	if c.fin.Known() {
		return c.fin
	}
	return record.Some(h.side)
}

func (t *Tracker) takeData(h *half, s *TCP) {
	c, w := h.conn, h.stream
	if !w.known {
		w.known, w.next = true, s.Seq
		h.late = !w.handshake
	}
	data, delta := s.Payload, octets.delta(s.Seq, w.next)
	switch {
	case delta <= -int32(s.Length): // all of it was seen
		h.stalls(octets, s.Seq, w.acked && octets.delta(s.Seq, w.ackedTo) >= 0, s.At)
		t.resent(h, s)
		return
	case delta < 0: // it overlaps what was seen
		t.resent(h, s)
		skip := min(int(-delta), len(data))
		t.feed(h, data[skip:], s.Offset+skip, s.Length+int(delta), s.At)
	case delta == 0:
		if w.acked && octets.delta(w.ackedTo, s.Seq) > 0 { // its acknowledgement came first
			t.unordered = true
		}
		if !h.window.empty() {
			c.record.OutOfOrder++
			t.mark(nil, record.OutOfOrder)
		}
		t.feed(h, data, s.Offset, s.Length, s.At)
	default:
		t.holdSegment(h, s)
		return
	}
	t.drainSegments(h)
}

// resent notes a segment that was retransmitted, on the operations that end in it.
func (t *Tracker) resent(h *half, s *TCP) {
	end := octets.add(s.Seq, uint32(s.Length))
	for i := h.ops.find(octets, s.Seq); i >= 0 && i < len(h.ops.entries) && octets.delta(h.ops.entries[i].to, end) <= 0; i++ {
		h.ops.entries[i].op.copies.note(behind, s.At, 0)
	}
	o := h.ops.at(octets, s.Seq)
	t.repeated(h, o, s.At, t.resends(h, octets, run{s.Seq, end}, o, s.At))
}

// holdSegment keeps a copy of a segment that came before one it has to wait for.
func (t *Tracker) holdSegment(h *half, s *TCP) {
	t.mark(nil, record.AfterGap)
	i, found := h.held().find(octets, s.Seq)
	if found {
		t.heldAgain(h, i, s.At)
		item := &h.window.items[h.window.order[i].item]
		if len(s.Payload) > len(item.data) { // the longer copy wins
			grown := int64(len(s.Payload) - len(item.data))
			h.window.bytes += int(grown)
			h.conn.share.Charge(grown)
			item.data, item.length = t.buffers.add(item.data[:0], s.Payload), s.Length
		}
	} else {
		copied := held{stamp: s.At, data: t.buffers.add(nil, s.Payload), length: s.Length}
		h.window.insert(i, s.Seq, copied)
		h.conn.share.Charge(int64(len(copied.data)) + heldCost)
	}
	w := h.stream
	for !h.window.empty() && (h.window.full() || w.acked && octets.delta(w.ackedTo, h.window.first()) > 0) {
		t.skipSegments(h)
	}
}

// drainSegments takes held segments whose turn has come. What they are is not what
// the packet at hand is, unless it is one of them.
func (t *Tracker) drainSegments(h *half) {
	if h.window.empty() {
		return
	}
	w := h.stream
	taken := 0
	for ; taken < len(h.window.order); taken++ {
		seq := h.window.order[taken].seq
		item := &h.window.items[h.window.order[taken].item]
		delta := octets.delta(seq, w.next)
		if delta > 0 {
			break
		}
		marked := t.happened
		if skip := int(-delta); skip < item.length {
			t.feed(h, item.data[min(skip, len(item.data)):], -1, item.length-skip, item.stamp)
		}
		t.repeatsOf(h, h.ops.at(octets, seq), item)
		if item.stamp != t.now {
			t.happened = marked
		}
		t.unhold(h, item)
	}
	h.window.remove(taken)
}

// skipSegments gives up on the bytes before the first segment that is held: the
// capture has missed them.
func (t *Tracker) skipSegments(h *half) {
	if h.window.empty() {
		return
	}
	w, at := h.stream, h.window.earliest().stamp
	seq := h.window.first()
	if missing := octets.delta(seq, w.next); missing > 0 {
		t.lose(h.conn, h.side, 1)
		h.conn.Report(ruleLost, Where{At: at}, "%d bytes of the TCP stream from sequence number %d are not in the capture", missing, w.next)
		t.gap(h, seq, int(missing))
	}
	t.drainSegments(h)
}

// gap moves over bytes that are missing.
func (t *Tracker) gap(h *half, next uint32, missing int) {
	w := h.stream
	t.carriesPartial(h, len(w.partial))
	t.carriesNoMore()
	w.next, w.resync, w.skip, w.partial = next, true, 0, w.partial[:0]
	w.position = (w.position + missing) % iwarp.MarkerEvery
	t.breakSend(h)
	t.breakWrite(h)
}

// acknowledgedTCP notes that the other side's TCP has received everything before
// ack. That does not mean that its RDMAP has: a Reply may still be refused by a
// Terminate. A segment that is about that alone is a packet of what it acknowledges.
func (t *Tracker) acknowledgedTCP(h *half, ack uint32, at record.Stamp, alone bool) {
	w := h.stream
	if w.acked && octets.delta(ack, w.ackedTo) <= 0 {
		if alone && ack == w.ackedTo {
			h.signals.dupAcks++
		}
		return
	}
	w.acked, w.ackedTo = true, ack
	h.stall = stall{}
	h.signals.progress, h.signals.dupAcks = at.Time, 0
	l, covered := &h.ops, h.ops.unacked
	for covered < len(l.entries) && octets.delta(ack, l.entries[covered].to) >= 0 && l.entries[covered].op != h.send && l.entries[covered].op != h.write {
		covered++
	}
	t.covers(h, l.unacked, covered, at)
	for ; l.unacked < covered; l.unacked++ {
		e := &l.entries[l.unacked]
		if e.op.Side == h.side {
			if t.acked(e.op, at, false); alone {
				t.mark(e.op, 0)
			}
		}
	}
	if !h.window.empty() && octets.delta(ack, h.window.first()) > 0 {
		t.skipSegments(h)
	}
}

// keepPartial appends to the FPDU that is put together.
func (t *Tracker) keepPartial(h *half, data []byte) {
	w := h.stream
	had := cap(w.partial)
	w.partial = t.buffers.add(w.partial, data)
	h.conn.share.Charge(int64(cap(w.partial) - had))
}

// dropPartial forgets the FPDU that is put together.
func (t *Tracker) dropPartial(h *half) {
	w := h.stream
	h.conn.share.Charge(-int64(cap(w.partial)))
	if len(w.partial) > 0 {
		t.carriesPartial(h, len(w.partial))
		t.carriesNoMore()
		w.resync = true
		w.position = (w.position + len(w.partial)) % iwarp.MarkerEvery
	}
	t.buffers.back(w.partial)
	w.partial = nil
}
