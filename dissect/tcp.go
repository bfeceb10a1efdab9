package dissect

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/iwarp"
)

// TCP, as far as it carries iWARP. A connection is followed from its MPA request
// or reply on; without those, from the first segment whose bytes read as FPDUs
// with a right CRC. Other TCP traffic costs a look at a few bytes of each
// segment, and no memory.

// tcpSegment is a decoded TCP header (RFC 9293 s.3.1) and its payload.
type tcpSegment struct {
	seq, ack uint32
	flags    uint8
	payload  []byte // what was captured
	length   int    // on the wire
	offset   int    // of payload in the frame
}

// The TCP flags that matter.
const (
	tcpFIN = 0x01
	tcpSYN = 0x02
	tcpRST = 0x04
	tcpACK = 0x10
)

// parseTCP reads a TCP header; false when it is cut or lies.
func (d *Dissector) parseTCP() (s tcpSegment, ok bool) {
	data, length := d.link.Transport, d.link.Length
	if len(data) < 20 {
		return s, false
	}
	size := int(data[12]>>4) * 4
	if size < 20 || size > len(data) || size > length {
		return s, false
	}
	return tcpSegment{
		seq: be.Uint32(data[4:]), ack: be.Uint32(data[8:]), flags: data[13],
		payload: data[size:], length: length - size, offset: d.link.Offset + size,
	}, true
}

// iwarpStream is one direction of a TCP connection that carries iWARP.
type iwarpStream struct {
	next      uint32 // the sequence number of the next byte
	known     bool   // next is
	ackOf     uint32 // the last acknowledgement that this side sent
	hasAck    bool
	handshake bool // its MPA frame is yet to come, or incomplete
	markers   bool // in what this side sends
	resync    bool // bytes are missing: look for the start of an FPDU
	skip      int  // bytes of an FPDU that was cut are still to come
	position  int  // bytes since the FPDUs began, modulo MarkerEvery
	partial   []byte
	held      []heldSegment // by sequence number
	heldBytes int
	fin       bool
}

// heldSegment is a copy of a segment that waits for those before it.
type heldSegment struct {
	seq    uint32
	stamp  stamp
	data   []byte // what was captured
	length int    // on the wire
}

// seqDelta is a-b on the circle of TCP sequence numbers.
func seqDelta(a, b uint32) int32 { return int32(a - b) }

// tcp takes a TCP segment and returns its connection, nil when it carries no
// iWARP.
func (d *Dissector) tcp(at stamp) *conn {
	s, ok := d.parseTCP()
	if !ok {
		return nil
	}
	l := &d.link
	key := flowKey{address{ip: l.Src}, address{ip: l.Dst}, uint32(l.SrcPort)<<16 | uint32(l.DstPort)}
	slot := &d.recent[(l.SrcPort^l.DstPort*3)&7]
	f := *slot
	if f == nil || f.key != key {
		if f = d.flows[key]; f != nil {
			*slot = f
		}
	}
	if iwarp.IsMPA(s.payload) && (f == nil || f.iwarp.known && !f.iwarp.handshake && seqDelta(s.seq, f.iwarp.next) > 0 || f.conn.closed) {
		f = d.openIWARP(key, s.payload, at)
	}
	if f == nil {
		if f = d.guessIWARP(key, &s, at); f == nil {
			return nil
		}
	}
	c := f.conn
	d.count(c, at)
	d.segment(f, &s, at)
	return c
}

// reversed is the key of the other direction of a TCP connection, whose ports
// stand in for queue pairs.
func (k flowKey) reversed() flowKey { return flowKey{k.dst, k.src, k.qpn<<16 | k.qpn>>16} }

// openIWARP starts a connection, or completes it with its other direction, from
// an MPA frame.
func (d *Dissector) openIWARP(key flowKey, payload []byte, at stamp) *flow {
	reply := string(payload[:len(iwarp.ReplyKey)]) == iwarp.ReplyKey
	side := 0
	if reply {
		side = 1
		if f := d.flows[key.reversed()]; f != nil && !f.conn.closed && f.conn.flows[1] == nil {
			return d.attachIWARP(f.conn, 1, key, at)
		}
	}
	c := d.newIWARP(key, side, at)
	c.handshake = true
	return d.attachIWARP(c, side, key, at)
}

// newIWARP starts a connection, of which key is the direction that side sends.
func (d *Dissector) newIWARP(key flowKey, side int, at stamp) *conn {
	c := d.newConn(at)
	c.client = 0
	c.record.Transport = transportIWARP
	client, server := uint16(key.qpn>>16), uint16(key.qpn)
	if side == 1 {
		client, server = server, client
	}
	c.storage.ports = [2]uint16{client, server}
	c.record.Client.Port, c.record.Server.Port = &c.storage.ports[0], &c.storage.ports[1]
	c.record.UpperLayer = serviceUpperLayers[server]
	d.decideUpperLayer(c)
	return c
}

func (d *Dissector) attachIWARP(c *conn, side int, key flowKey, at stamp) *flow {
	f := d.attach(c, side, key, at)
	f.iwarp = &iwarpStream{handshake: c.handshake}
	return f
}

// guessIWARP recognises a stream whose handshake was missed by its framing: the
// segment has to be made of FPDUs, with a CRC that is right. The side that calls
// is found out later; the server is first taken to be the one with the port that
// is known, or the lower.
func (d *Dissector) guessIWARP(key flowKey, s *tcpSegment, at stamp) *flow {
	if len(s.payload) < iwarp.FPDULen(iwarp.TaggedLen) || len(s.payload) < s.length {
		return nil
	}
	if back := d.flows[key.reversed()]; back != nil && back.iwarp != nil && !back.conn.closed {
		side := other(back.side)
		if back.conn.flows[side] == nil && plausibleFPDU(s.payload, true) {
			f := d.attachIWARP(back.conn, side, key, at)
			f.iwarp.handshake = false
			return f
		}
		return nil
	}
	if !plausibleFPDU(s.payload, false) {
		return nil
	}
	client, server := uint16(key.qpn>>16), uint16(key.qpn)
	side := 0
	if _, known := serviceUpperLayers[client]; known || client < server && serviceUpperLayers[server] == "" {
		side = 1
	}
	c := d.newIWARP(key, side, at)
	if c.record.UpperLayer == "" {
		c.client = -1
		c.undecided = true
	}
	return d.attachIWARP(c, side, key, at)
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

// segment puts a segment in its place in the stream.
func (d *Dissector) segment(f *flow, s *tcpSegment, at stamp) {
	c, w := f.conn, f.iwarp
	if s.flags&tcpACK != 0 {
		w.ackOf, w.hasAck = s.ack, true
		if peer := f.peer(); peer != nil && peer.iwarp.known {
			d.acknowledgedTCP(peer, s.ack, at)
		}
	}
	if s.length > 0 {
		d.segmentData(f, s, at)
	}
	switch {
	case s.flags&tcpRST != 0:
		d.close(c, "reset", at)
	case s.flags&tcpFIN != 0:
		w.fin = true
		if peer := f.peer(); peer == nil || peer.iwarp.fin {
			d.close(c, "disconnect", at)
		}
	}
}

func (d *Dissector) segmentData(f *flow, s *tcpSegment, at stamp) {
	c, w := f.conn, f.iwarp
	if !w.known {
		w.known, w.next = true, s.seq
	}
	data, seq := s.payload, s.seq
	delta := seqDelta(seq, w.next)
	switch {
	case delta <= -int32(s.length): // all of it was seen
		c.record.Retransmitted++
		return
	case delta < 0: // it overlaps what was seen
		c.record.Retransmitted++
		skip := min(int(-delta), len(data))
		data = data[skip:]
		d.fpdus(f, data, s.offset+skip, int(int32(s.length)+delta), at)
	case delta == 0:
		if len(w.held) > 0 {
			c.record.OutOfOrder++
		}
		d.fpdus(f, data, s.offset, s.length, at)
	default:
		d.holdSegment(f, seq, data, s.length, at)
		return
	}
	d.drainSegments(f)
}

// holdSegment keeps a copy of a segment that came before one it has to wait
// for.
func (d *Dissector) holdSegment(f *flow, seq uint32, data []byte, length int, at stamp) {
	w := f.iwarp
	i, found := slices.BinarySearchFunc(w.held, seq, func(h heldSegment, seq uint32) int { return int(seqDelta(h.seq, seq)) })
	if found {
		f.conn.record.Retransmitted++
		if len(data) <= len(w.held[i].data) {
			return
		}
		w.heldBytes -= len(w.held[i].data)
		w.held = slices.Delete(w.held, i, i+1)
	}
	h := heldSegment{seq: seq, stamp: at, length: length}
	if n := len(d.buffers); n > 0 {
		h.data, d.buffers = d.buffers[n-1], d.buffers[:n-1]
	}
	h.data = append(h.data[:0], data...)
	w.held = slices.Insert(w.held, i, h)
	w.heldBytes += len(h.data)
	peer := f.peer()
	for len(w.held) > 0 && (len(w.held) > maxHeld || w.heldBytes > maxHeldBytes ||
		peer != nil && peer.iwarp.hasAck && seqDelta(peer.iwarp.ackOf, w.held[0].seq) > 0) {
		d.skipSegments(f)
	}
}

// drainSegments takes held segments whose turn has come.
func (d *Dissector) drainSegments(f *flow) {
	w := f.iwarp
	taken := 0
	for _, h := range w.held {
		delta := seqDelta(h.seq, w.next)
		if delta > 0 {
			break
		}
		if skip := int(-delta); skip < h.length {
			d.fpdus(f, h.data[min(skip, len(h.data)):], -1, h.length-skip, h.stamp)
		}
		w.heldBytes -= len(h.data)
		if len(d.buffers) < maxHeld {
			d.buffers = append(d.buffers, h.data)
		}
		taken++
	}
	w.held = slices.Delete(w.held, 0, taken)
}

// skipSegments gives up on the bytes before the first segment that is held: the
// capture has missed them.
func (d *Dissector) skipSegments(f *flow) {
	w := f.iwarp
	if len(w.held) == 0 {
		return
	}
	h := w.held[0]
	missing := seqDelta(h.seq, w.next)
	f.conn.record.Lost++
	d.summary.Lost++
	d.find(ruleLost, f.conn, nil, nil, h.stamp, "%d bytes of the TCP stream from sequence number %d are not in the capture", missing, w.next)
	d.gap(f, h.seq, int(missing), h.stamp)
	d.drainSegments(f)
}

// gap moves over bytes that are missing.
func (d *Dissector) gap(f *flow, next uint32, missing int, at stamp) {
	w := f.iwarp
	w.next, w.resync, w.skip, w.partial = next, true, 0, w.partial[:0]
	w.position = (w.position + missing) % iwarp.MarkerEvery
	d.breakSend(f, at)
	f.write.active = false
}

// acknowledgedTCP notes that the other side's TCP has received everything before
// ack. That does not mean that its RDMAP has: a Reply may still be refused by a
// Terminate, and is not handed out for this.
func (d *Dissector) acknowledgedTCP(f *flow, ack uint32, at stamp) {
	n := 0
	for ; n < len(f.awaiting) && seqDelta(ack, f.awaiting[n].psn) >= 0; n++ {
		d.noteAck(f, f.awaiting[n], at)
	}
	f.awaiting = slices.Delete(f.awaiting, 0, n)
	if w := f.iwarp; len(w.held) > 0 && seqDelta(ack, w.held[0].seq) > 0 {
		d.skipSegments(f)
	}
}
