package rdma

import (
	"net/netip"

	"github.com/rdmadump/rdmadump/dissect/internal/order"

	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/link"
)

// TCP streams that carry iWARP. A connection is followed from its MPA request or reply
// on, or, without these, from the first segment that consists of FPDUs with a correct
// CRC. For other TCP traffic, a few bytes of each segment are inspected, and no memory
// is used.

// tcpStreams takes the segments of TCP streams that carry iWARP, in the order of their
// bytes. fpdu.go has the part that decodes FPDUs.
type tcpStreams struct {
	tracker     *Tracker
	connections *connections
	contents    *contents

	streams map[streamKey]*flow
	records *recordStreams
	iwarp   decoders
}

// Segment takes a TCP segment, and returns the verdict on it. It returns false if the
// segment carries neither iWARP nor RPC.
func (t *Tracker) Segment(s *TCP) (verdict PacketVerdict, known bool) {
	cur := currentPacket{at: s.At}
	t.now = s.At
	t.pool.reclaim()
	if s.Path.Copy {
		cur.mark(nil, record.Duplicated)
	}
	known = t.tcp.segment(s, &cur)
	if s.Path.Joined {
		if f := t.tcp.streams[streamKey{s.Src, s.Dst, s.SrcPort, s.DstPort}]; f != nil {
			f.reportLost()
		}
	}
	cur.FPDUs, cur.Records = t.tcp.iwarp.fpdus, t.tcp.records.shown
	return cur.PacketVerdict, known
}

// TCP is a segment and its time.
type TCP struct {
	link.TCP
	At   record.Stamp
	Path Path // with several capture points
}

// streamKey identifies one direction of a TCP connection.
type streamKey struct {
	src, dst         netip.Addr
	srcPort, dstPort uint16
}

func (k streamKey) reversed() streamKey { return streamKey{k.dst, k.src, k.dstPort, k.srcPort} }

// stream is one direction of a TCP connection that carries iWARP, or RPC.
type stream struct {
	flow      *flow
	key       streamKey
	next      uint32 // the sequence number of the next byte
	known     bool   // next is known
	ackedTo   uint32 // the other side has received all bytes before it
	acked     bool
	handshake bool   // the MPA frame is not complete yet
	markers   bool   // this side sends markers
	resync    bool   // bytes are missing, so the start of an FPDU has to be found
	rest      int    // remaining bytes of an FPDU that was truncated
	position  int    // bytes since the FPDUs began, modulo MarkerEvery
	partial   []byte // the bytes so far of an incomplete FPDU or MPA frame
	from      uint32 // sequence number of partial
	fin       bool
	window    *window // segments that came early; nil before the first
	gaps      order.Gaps
	records   *records // RPC over TCP; nil for iWARP
}

// decoders are the decoders and buffers that all streams share.
type decoders struct {
	mpa      iwarp.MPA
	segment  iwarp.Segment
	unmarked []byte
	fpdus    []iwarp.Noted
}

// maxBadChecksums is the number of wrong checksums of a sender that are taken for
// damage. If it is exceeded, and more checksums are wrong than right, the capture is
// taken to contain checksums that the adapter had not filled in.
const maxBadChecksums = 8

// segment takes a TCP segment. It returns false if the segment carries no iWARP.
func (ts *tcpStreams) segment(s *TCP, cur *currentPacket) bool {
	ts.iwarp.fpdus, ts.records.shown = ts.iwarp.fpdus[:0], ts.records.shown[:0]
	key := streamKey{s.Src, s.Dst, s.SrcPort, s.DstPort}
	f := ts.streams[key]
	isMPA := iwarp.IsMPA(s.Payload)
	if f == nil && !isMPA && !ts.records.mayCarry(key, s) && !ts.mayStartStream(key, s) {
		return s.Flags&(link.TCPSYN|link.TCPRST) != 0 && ts.records.handshake(key, s, cur)
	}
	if f != nil && f.stream.records != nil && ts.records.outlived(f, s) {
		f = nil
		ts.records.opened.note(key, s)
		return false
	}
	if f != nil && f.stream.records != nil && f.stream.records.given {
		f.conn.took(f.conn.setup.Transport, cur)
		return true
	}
	if right, known := s.Checksum(); known {
		var from *Host
		if f != nil {
			from = f.src
		} else {
			from = ts.connections.hosts.get(&Address{IP: s.Src})
		}
		from.known = true
		bad := !right && !s.Unfinished() // an unfinished checksum is filled in after the capture point
		if right && s.Length > 0 {
			from.tcpGood++
		} else if bad {
			from.tcpBad++
		}
		if bad && (from.tcpBad <= maxBadChecksums || from.tcpGood >= from.tcpBad) { // the receiver drops the segment
			if cur.mark(nil, record.BadChecksum); f != nil {
				f.conn.countPacket()
				cur.belongs(f.conn)
			}
			ts.tracker.BadChecksum++
			return f != nil
		}
	}
	if isMPA && (f == nil || f.conn.closing || f.stream.known && !f.stream.handshake && order.Octets.Delta(s.Seq, f.stream.next) > 0) {
		f = ts.openStream(key, s)
	} else if f == nil {
		if f = ts.records.recognize(key, s); f == nil {
			f = ts.recognizeStream(key, s)
		}
	}
	if f == nil {
		return false
	}
	f.conn.took(f.conn.setup.Transport, cur)
	f.notePacket(s.Length > 0)
	ts.takeSegment(f, s, cur)
	return true
}

// openStream starts a connection with an MPA frame, or completes the connection of the
// other direction.
func (ts *tcpStreams) openStream(key streamKey, s *TCP) *flow {
	if string(s.Payload[:len(iwarp.ReplyKey)]) == iwarp.ReplyKey {
		if back := ts.streams[key.reversed()]; back != nil && !back.conn.closing && back.conn.flows[1] == nil {
			f := ts.attachStream(back.conn, 1, key)
			if h, known := ts.records.opened.find(key.reversed()); known {
				h.setKey(f.conn)
			}
			return f
		}
		return ts.attachStream(ts.connections.open(key.reversed().setup(IWARP, true)), 1, key)
	}
	return ts.attachStream(ts.connections.open(key.setup(IWARP, true)), 0, key)
}

// setup returns the setup of a connection whose client sends in the direction of the key.
func (k streamKey) setup(transport string, handshake bool) Setup {
	ports := [2]record.Opt[uint16]{record.Some(k.srcPort), record.Some(k.dstPort)}
	return Setup{
		Transport: transport, IWARP: transport == IWARP, RPC: transport != IWARP, Handshake: handshake,
		Client: record.Some(Side(0)), Service: ports[1], ports: ports,
	}
}

func (ts *tcpStreams) attachStream(c *Conn, side Side, key streamKey) *flow {
	if old := ts.streams[key]; old != nil && old.conn != c {
		old.conn.reuse()
	} else if old != nil {
		c.drop(old)
	}
	f := c.addFlow(side, ts.connections.hosts.ends(&Address{IP: key.src}, &Address{IP: key.dst}), ledger{circle: order.Octets, ordered: true})
	f.overStream(key, ts.contents.newStreamOffsets())
	ts.streams[key] = f
	if c.flows[side.Other()] != nil {
		c.identify()
	}
	return f
}

// mayStartStream reports whether a segment of an unknown stream may carry iWARP. It
// rejects most segments of other protocols quickly.
func (ts *tcpStreams) mayStartStream(key streamKey, s *TCP) bool {
	if len(s.Payload) < iwarp.FPDULen(iwarp.TaggedLen) || len(s.Payload) < s.Length {
		return false
	}
	if back := ts.streams[key.reversed()]; back != nil {
		return true
	}
	return plausibleFPDU(s.Payload, false)
}

// recognizeStream recognizes a stream without a captured handshake by its framing: the
// segment has to consist of FPDUs with a correct CRC. Which side is the client is
// decided later; until then, the server is the side with a known port, or with the
// lower one.
func (ts *tcpStreams) recognizeStream(key streamKey, s *TCP) *flow {
	if back := ts.streams[key.reversed()]; back != nil && !back.conn.closing {
		side := back.side.Other()
		if back.conn.flows[side] == nil && plausibleFPDU(s.Payload, true) {
			f := ts.attachStream(back.conn, side, key)
			f.stream.handshake = false
			return f
		}
		return nil
	}
	if !plausibleFPDU(s.Payload, false) {
		return nil
	}
	side := Side(0)
	asks := key
	isServer := ts.tracker.upper.ServerPort
	if isServer(key.srcPort) || key.srcPort < key.dstPort && !isServer(key.dstPort) {
		side, asks = 1, key.reversed()
	}
	setup := asks.setup(IWARP, false)
	if !isServer(asks.dstPort) {
		setup.Client = record.Opt[Side]{}
	}
	c := ts.connections.open(setup)
	c.identify() // The ports say which segments are its other direction.
	return ts.attachStream(c, side, key)
}

// plausibleFPDU reports whether data begins with a complete FPDU that has a correct
// CRC. If CRCs are off, their field is zero; then all of data has to consist of such
// FPDUs. If the connection is not known to be iWARP, the first of them has to be
// untagged, because an untagged header has more bits that can be checked.
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

// takeSegment processes a segment of a known stream.
func (ts *tcpStreams) takeSegment(f *flow, s *TCP, cur *currentPacket) {
	c, w := f.conn, f.stream
	if s.Flags&link.TCPACK != 0 {
		if peer := f.peer(); peer != nil && peer.stream.known {
			pureACK := s.Length == 0 // it has no other purpose
			ts.acknowledgedTCP(peer, s.Ack, pureACK, cur)
			if pureACK {
				cur.mark(peer.ops.at(s.Ack-1), 0)
			}
		}
	}
	if s.Length > 0 {
		r := order.Run{From: s.Seq, To: s.Seq + uint32(s.Length)}
		again := s.Path.Joined && f.noteSent(r, s.Path) && order.Octets.Delta(s.Seq, w.next) >= 0
		cur.Offset = f.offsets.requests(order.Octets, s.Seq)
		ts.takeData(f, s, cur)
		if f.settleAbsent(); again && cur.Mark&record.Retransmitted == 0 {
			f.sentAgain(r, false, cur)
		}
		if !s.Path.Copy {
			f.noteRequested(s.At)
		}
		if cur.Op == nil {
			ts.attributePartial(f, cur)
		}
	}
	switch {
	case s.Flags&link.TCPRST != 0:
		c.close(Ending{How: record.EndReset, By: record.Some(f.side), At: s.At})
		c.bothClosed()
	case s.Flags&link.TCPFIN != 0:
		w.fin = true
		ts.records.noteCut(f, s)
		peer := f.peer()
		c.closedByFIN(f.side, peer == nil || peer.stream.fin, s.At)
	}
}

// attributePartial finds the operation of an FPDU of which a segment brought only a
// part.
func (ts *tcpStreams) attributePartial(f *flow, cur *currentPacket) {
	w, s := f.stream, &ts.iwarp.segment
	if w.markers || len(w.partial) < iwarp.LengthLen || s.Decode(w.partial[iwarp.LengthLen:]) != nil {
		return
	}
	switch {
	case s.Tagged && s.Opcode == iwarp.Write && f.parts.write != nil && f.parts.write.Handle == s.STag:
		cur.mark(f.parts.write, 0)
	case s.Tagged && s.Opcode == iwarp.Write:
		cur.Tag = f.conn.follower.Owner(f.side.Other(), Name{Kind: Write, Handle: s.STag, Offset: s.Offset})
	case s.Tagged && s.Opcode == iwarp.ReadResponse:
		if peer := f.peer(); peer != nil {
			cur.mark(peer.readOfSink(fragment{Segment: s}), 0)
		}
	case s.Opcode.IsSend() && s.Offset > 0:
		cur.mark(f.parts.send, 0)
	}
}

func (ts *tcpStreams) takeData(f *flow, s *TCP, cur *currentPacket) {
	c, w := f.conn, f.stream
	if !w.known {
		w.known, w.next = true, s.Seq
		f.lateStart = !w.handshake
		w.gaps.Begin(s.Seq)
	}
	w.gaps.Forget(order.Octets, w.next)
	data, delta := s.Payload, order.Octets.Delta(s.Seq, w.next)
	switch {
	case delta <= -int32(s.Length): // all of it was captured before
		if ts.takeLate(f, order.Run{From: s.Seq, To: s.Seq + uint32(s.Length)}, cur) {
			return
		}
		if !s.Path.Copy {
			f.noteRetry(s.Seq, w.acked && order.Octets.Delta(s.Seq, w.ackedTo) >= 0, s.At)
		}
		f.noteResentSegment(s, cur)
		return
	case delta < 0: // a part of it was captured before
		if !ts.takeLate(f, order.Run{From: s.Seq, To: w.next}, cur) {
			f.noteResentSegment(s, cur)
		}
		skip := min(int(-delta), len(data))
		ts.deliver(f, data[skip:], s.Offset+skip, s.Length+int(delta), cur)
	case delta == 0:
		if w.acked && order.Octets.Delta(w.ackedTo, s.Seq) > 0 { // the acknowledgement came first
			c.disorder()
		}
		if !w.window.Empty() {
			f.isLate()
			c.record.outOfOrder()
			cur.mark(nil, record.OutOfOrder)
		}
		ts.deliver(f, data, s.Offset, s.Length, cur)
	default:
		ts.holdSegment(f, s, cur)
		return
	}
	ts.drainSegments(f, cur)
}

// takeLate takes bytes that come before the next one. It reports whether the segment may be the first one that was sent
// with them, so that nothing shows that it was retransmitted.
func (ts *tcpStreams) takeLate(f *flow, r order.Run, cur *currentPacket) bool {
	late, counted := f.stream.gaps.Late(order.Octets, r, f.isAcked(r.From), false)
	if counted {
		f.isLate()
		f.conn.record.outOfOrder()
		f.conn.disorder()
		cur.mark(nil, record.Late)
	}
	return late
}

// holdSegment keeps a copy of a segment that came before one that it has to follow.
func (ts *tcpStreams) holdSegment(f *flow, s *TCP, cur *currentPacket) {
	cur.mark(nil, record.AfterGap)
	w := f.stream
	if w.window == nil {
		w.window = new(window)
	}
	i, found := w.window.Find(order.Octets, s.Seq)
	if found {
		item := w.window.At(i)
		if !s.Path.Copy {
			f.noteHeldRetransmission(item, cur, nil)
		}
		if len(s.Payload) > len(item.data) { // the longer copy is kept
			grown := int64(len(s.Payload) - len(item.data))
			w.window.Grow(i, int(grown))
			f.conn.share.Charge(grown)
			item.data, item.length = ts.tracker.buffers.add(item.data[:0], s.Payload), s.Length
		}
	} else {
		cur.shown = ts.noteHeldFPDUs(f, s)
		copied := held{stamp: s.At, data: ts.tracker.buffers.add(nil, s.Payload), length: s.Length, shown: cur.shown}
		w.window.Insert(i, order.Request{PSN: s.Seq, At: s.At}, len(copied.data), copied)
		f.conn.share.Charge(int64(len(copied.data)) + heldCost)
	}
	for !w.window.Empty() && (w.window.Full() || w.acked && order.Octets.Delta(w.ackedTo, w.window.Seq(0)) > 0) {
		ts.skipSegments(f, cur)
	}
}

// drainSegments takes held segments that are now in order. The current packet may be one of
// them.
func (ts *tcpStreams) drainSegments(f *flow, cur *currentPacket) {
	w := f.stream
	if w.window.Empty() {
		return
	}
	taken, own := 0, currentPacket{}
	for ; taken < w.window.Len(); taken++ {
		seq := w.window.Seq(taken)
		item := w.window.At(taken)
		delta := order.Octets.Delta(seq, w.next)
		if delta > 0 {
			break
		}
		if skip := int(-delta); skip < item.length {
			ts.deliver(f, item.data[min(skip, len(item.data)):], -1, item.length-skip, cur.accepting(item, &own))
		}
		f.reportHeldRetransmissions(f.ops.at(seq), item)
		f.unhold(item)
	}
	w.window.Remove(taken)
}

// skipSegments counts the bytes before the first held segment as not captured, and
// takes the held segments.
func (ts *tcpStreams) skipSegments(f *flow, cur *currentPacket) {
	w := f.stream
	if w.window.Empty() {
		return
	}
	seq, at := w.window.First()
	if missing := order.Octets.Delta(seq, w.next); missing > 0 {
		ts.skipMissing(f, seq, missing, at)
	}
	ts.drainSegments(f, cur)
}

// skipMissing counts the bytes of a stream before a sequence number as not captured.
func (ts *tcpStreams) skipMissing(f *flow, seq uint32, missing int32, at record.Stamp) {
	f.conn.countMissing(f.side, 1, f.taken, at.Time)
	f.conn.Report(ruleLost, Where{At: at}, "%d bytes of the TCP stream from sequence number %d are not in the capture", missing, f.stream.next)
	f.stream.gaps.Missing(order.Run{From: f.stream.next, To: seq})
	f.settle(f.stream.gaps.Bytes())
	ts.skipBytes(f, seq, int(missing))
}

// skipBytes moves the stream past missing bytes.
func (ts *tcpStreams) skipBytes(f *flow, next uint32, missing int) {
	w := f.stream
	if w.records != nil {
		ts.records.skip(f, next, missing)
		return
	}
	ts.contents.beginPayloadPartial(f, len(w.partial))
	ts.contents.reportPayload()
	w.next, w.resync, w.rest, w.partial = next, true, 0, w.partial[:0]
	w.position = (w.position + missing) % iwarp.MarkerEvery
	f.breakSend()
	f.breakWrite()
}

// acknowledgedTCP notes that the receiver's TCP has received all bytes before ack. Its
// RDMAP may still refuse them with a Terminate, for example a Reply. If pureACK is
// true, the segment has no other purpose, and is a packet of the operations that it
// acknowledges.
func (ts *tcpStreams) acknowledgedTCP(f *flow, ack uint32, pureACK bool, cur *currentPacket) {
	w := f.stream
	if w.acked && order.Octets.Delta(ack, w.ackedTo) <= 0 {
		if pureACK && ack == w.ackedTo {
			f.signals.dupAcks++
		}
		return
	}
	w.acked, w.ackedTo = true, ack
	f.retries = retries{}
	f.signals.progress, f.signals.dupAcks = cur.at.Time, 0
	first := f.ops.unacked
	f.covered(ack, cur.at)
	for _, e := range f.ops.entries[min(first, f.ops.unacked):f.ops.unacked] {
		if pureACK && e.op.Side == f.side {
			cur.mark(e.op, 0)
		}
	}
	if !w.window.Empty() && order.Octets.Delta(ack, w.window.Seq(0)) > 0 {
		ts.skipSegments(f, cur)
	}
}

// keepPartial appends bytes to the incomplete FPDU.
func (ts *tcpStreams) keepPartial(f *flow, data []byte) {
	w := f.stream
	had := cap(w.partial)
	w.partial = ts.tracker.buffers.add(w.partial, data)
	f.conn.share.Charge(int64(cap(w.partial) - had))
}

// dropPartial frees the incomplete FPDU.
func (ts *tcpStreams) dropPartial(f *flow) {
	w := f.stream
	f.conn.share.Charge(-int64(cap(w.partial)))
	if len(w.partial) > 0 {
		ts.contents.beginPayloadPartial(f, len(w.partial))
		ts.contents.reportPayload()
		w.resync = true
		w.position = (w.position + len(w.partial)) % iwarp.MarkerEvery
	}
	ts.tracker.buffers.back(w.partial)
	w.partial = nil
}
