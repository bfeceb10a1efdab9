package dissect

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/iwarp"
)

// iWARP: MPA frames and FPDUs out of a TCP stream, and the operations that their
// DDP segments make. Above, nobody knows which transport it was.

// within is n bytes on from an offset in the frame, and -1 from -1: what does not
// stand in the frame in one piece has no offset there.
func within(offset, n int) int {
	if offset < 0 {
		return -1
	}
	return offset + n
}

// fpdus takes the next bytes of a stream, of which data was captured and length
// were sent; offset is where they stand in the frame, -1 when they do not.
func (d *Dissector) fpdus(f *flow, data []byte, offset, length int, at stamp) {
	w := f.iwarp
	end := w.next + uint32(length)
	if w.handshake {
		n := d.mpa(f, data, at)
		if n < 0 { // more is needed
			w.next = end
			if len(data) < length {
				w.handshake = false
				d.gap(f, end, 0, at)
			}
			return
		}
		data = data[n:]
		w.next += uint32(n)
		length -= n
		offset = within(offset, n)
		if length <= 0 {
			w.next = end
			return
		}
	}
	start := w.next + uint32(w.skip) // the sequence number of data[0]
	if w.skip > 0 {                  // the rest of an FPDU that was cut
		n := min(w.skip, length)
		w.skip -= n
		data = data[min(n, len(data)):]
		start = w.next + uint32(n)
		w.position = (w.position + n) % iwarp.MarkerEvery
		offset = within(offset, n)
	}
	cut := int(seqDelta(end, start)) > len(data)
	if w.resync && len(data) > 0 {
		if !plausibleFPDU(data, true) && !(cut && plausibleHeader(data)) {
			w.position = (w.position + int(seqDelta(end, start))) % iwarp.MarkerEvery
			w.next = end
			return
		}
		w.resync = false
	}
	for len(data) > 0 {
		if len(w.partial) == 0 {
			size := fpduSize(data, w.markers, w.position)
			if size > 0 && size <= len(data) { // whole in this segment: no copy
				d.fpdu(f, data[:size], offset, start+uint32(size), at)
				data, start = data[size:], start+uint32(size)
				offset = within(offset, size)
				w.position = (w.position + size) % iwarp.MarkerEvery
				continue
			}
		}
		// An FPDU that spans segments is put together.
		size := fpduSize(w.partial, w.markers, w.position)
		take := len(data)
		if size > 0 {
			take = min(take, size-len(w.partial))
		} else { // its length is not known yet: byte by byte until it is
			take = 1
		}
		w.partial = append(w.partial, data[:take]...)
		data, start = data[take:], start+uint32(take)
		offset = within(offset, take)
		if size = fpduSize(w.partial, w.markers, w.position); size > 0 && len(w.partial) >= size {
			whole := w.partial[:size]
			d.fpdu(f, whole, -1, start, at)
			w.position = (w.position + size) % iwarp.MarkerEvery
			w.partial = w.partial[:0]
		}
	}
	w.next = end
	if missing := int(seqDelta(end, start)); missing > 0 {
		d.cutSegment(f, start, end, at)
	}
}

// cutSegment copes with a segment of which the capture has only the beginning,
// up to from: an FPDU that it starts is read as far as it goes, and the stream
// taken up again behind it.
func (d *Dissector) cutSegment(f *flow, from, end uint32, at stamp) {
	w := f.iwarp
	missing := int(seqDelta(end, from))
	size := fpduSize(w.partial, w.markers, w.position)
	behind := size - len(w.partial) - missing // bytes of the FPDU in further segments
	var s iwarp.Segment
	if size > 0 && !w.markers && s.Decode(w.partial[iwarp.LengthLen:]) == nil && s.Plausible() {
		d.noteFPDU(w.partial, int(be.Uint16(w.partial)), -1, iwarp.CRCOff)
		d.ddp(f, &s, max(int(be.Uint16(w.partial))-s.HeaderLength, 0), from+uint32(size-len(w.partial)), at)
	}
	w.position = (w.position + len(w.partial) + missing) % iwarp.MarkerEvery
	w.partial = w.partial[:0]
	w.skip, w.resync = max(behind, 0), size == 0 || behind < 0
}

// plausibleHeader is what can be said of an FPDU that was cut.
func plausibleHeader(data []byte) bool {
	var s iwarp.Segment
	return len(data) > iwarp.LengthLen && s.Decode(data[iwarp.LengthLen:]) == nil && s.Plausible() && int(be.Uint16(data)) >= s.HeaderLength
}

// fpduSize is how many bytes the FPDU at the start of data takes in the stream,
// markers and all; 0 when its length is not there yet. Position is where it
// starts, modulo the distance of markers.
func fpduSize(data []byte, markers bool, position int) int {
	head := 0
	if markers && position == 0 {
		head = iwarp.MarkerLen
	}
	if len(data) < head+iwarp.LengthLen {
		return 0
	}
	size := iwarp.FPDULen(int(be.Uint16(data[head:])))
	if !markers {
		return size
	}
	at := head
	for room := (iwarp.MarkerEvery - (position+head)%iwarp.MarkerEvery); size > room; room = iwarp.MarkerEvery - iwarp.MarkerLen {
		at += room + iwarp.MarkerLen
		size -= room
	}
	return at + size
}

// withoutMarkers takes the markers out of a raw FPDU.
func withoutMarkers(to, raw []byte, position int) []byte {
	for len(raw) > 0 {
		if position == 0 {
			raw = raw[min(iwarp.MarkerLen, len(raw)):]
			position = iwarp.MarkerLen
			continue
		}
		n := min(iwarp.MarkerEvery-position, len(raw))
		to = append(to, raw[:n]...)
		raw, position = raw[n:], (position+n)%iwarp.MarkerEvery
	}
	return to
}

// mpa reads an MPA request or reply at the start of a stream. It returns how
// many bytes that took, or -1 when more are needed.
func (d *Dissector) mpa(f *flow, data []byte, at stamp) int {
	c, w := f.conn, f.iwarp
	before := len(w.partial)
	if before > 0 {
		w.partial = append(w.partial, data...)
		data = w.partial
	}
	m := &d.mpaFrame
	if err := m.Decode(data); err != nil {
		if len(data) < iwarp.MPALen+512 && iwarp.IsMPA(data) {
			if before == 0 {
				w.partial = append(w.partial[:0], data...)
			}
			return -1
		}
		w.handshake, w.partial = false, w.partial[:0]
		return 0
	}
	w.handshake = false
	d.privateData(c, f.side, m.PrivateData, at)
	d.decideUpperLayer(c)
	if f.side == 0 {
		c.clientMarkers = m.Markers
	} else {
		w.markers = c.clientMarkers // whoever asked for markers gets them
		if peer := f.peer(); peer != nil {
			peer.iwarp.markers = m.Markers
		}
		if m.Reject {
			d.find(ruleRejected, c, nil, nil, at, "the connection was rejected in the MPA reply")
			d.close(c, "rejected", at)
		} else {
			d.establish(c, at)
		}
	}
	w.partial = w.partial[:0]
	return m.Length - before
}

// fpdu takes one whole FPDU, raw; end is the sequence number behind it.
func (d *Dissector) fpdu(f *flow, raw []byte, offset int, end uint32, at stamp) {
	w := f.iwarp
	plain := raw
	if w.markers {
		d.unmarked = withoutMarkers(d.unmarked[:0], raw, w.position)
		plain, offset = d.unmarked, -1
	}
	crc := iwarp.CheckCRC(raw)
	ulpdu := plain[iwarp.LengthLen : iwarp.LengthLen+int(be.Uint16(plain))]
	d.noteFPDU(plain, len(ulpdu), offset, crc)
	if crc == iwarp.CRCBad {
		d.summary.ICRCBad++
		d.find(ruleMPACRC, f.conn, nil, nil, at, "FPDU of %d bytes has a bad CRC", len(raw))
		return
	}
	s := &d.ddpSegment
	if err := s.Decode(ulpdu); err != nil {
		d.find(ruleMPAFraming, f.conn, nil, nil, at, "%v", err)
		return
	}
	d.ddp(f, s, len(s.Payload), end, at)
}

// ddp makes operations of a DDP segment whose payload was size bytes on the
// wire.
func (d *Dissector) ddp(f *flow, s *iwarp.Segment, size int, end uint32, at stamp) {
	switch {
	case s.Tagged && s.Opcode == iwarp.Write:
		d.taggedWrite(f, s, size, at)
	case s.Tagged && s.Opcode == iwarp.ReadResponse:
		d.taggedResponse(f, s, size, at)
	case s.Opcode.IsSend():
		d.untaggedSend(f, s, size, end, at)
	case s.Opcode == iwarp.ReadRequest:
		var r iwarp.ReadRequestHeader
		if r.Decode(s.Payload) == nil {
			d.untaggedRead(f, &r, at)
		}
	case s.Opcode == iwarp.Terminate:
		d.terminate(f, s.Payload, at)
	}
}

// untaggedSend takes a DDP segment of a Send.
func (d *Dissector) untaggedSend(f *flow, s *iwarp.Segment, size int, end uint32, at stamp) {
	if s.Offset != 0 && s.Offset != uint64(f.send.length) {
		return // its beginning is lost
	}
	var invalidate *uint32
	if s.Opcode.Invalidates() {
		invalidate = &s.STag
	}
	d.sendPart(f, s.Offset == 0, s.Last, s.Payload, size, invalidate, end, at)
}

// taggedWrite follows an RDMA Write: segments to one STag, up to the last.
func (d *Dissector) taggedWrite(f *flow, s *iwarp.Segment, size int, at stamp) {
	if !f.write.active {
		f.write = writeState{active: true, handle: s.STag, offset: s.Offset, first: at}
		d.writeStarts(f, uint32(size), -1, at)
	}
	d.writePart(f, s.Offset, s.Payload, size, s.Last, at)
}

// untaggedRead starts an RDMA Read.
func (d *Dissector) untaggedRead(f *flow, h *iwarp.ReadRequestHeader, at stamp) {
	r := d.readStarts(f, h.SourceSTag, h.SourceOffset, h.Size, at)
	r.sink, r.sinkAt = h.SinkSTag, h.SinkOffset
}

// taggedResponse takes data that a Read asked for: it goes to the sink that the
// request named.
func (d *Dissector) taggedResponse(f *flow, s *iwarp.Segment, size int, at stamp) {
	asker := f.peer()
	if asker == nil {
		return
	}
	i := slices.IndexFunc(asker.reads, func(r *read) bool {
		return r.sink == s.STag && s.Offset >= r.sinkAt && s.Offset-r.sinkAt+uint64(size) <= uint64(r.length)
	})
	if i < 0 {
		return
	}
	r := asker.reads[i]
	at0 := s.Offset - r.sinkAt
	r.moved += r.seen.add(int64(at0), int64(at0)+int64(size))
	r.packets++
	memory := r.segment.get()
	if memory != nil {
		d.moved(memory, r.offset+at0, s.Payload, size)
	}
	if r.moved < int64(r.length) {
		return
	}
	if memory != nil {
		d.rdma(f, memory, EventReadDone, at, r.handle, r.offset, r.moved, r.packets)
	}
	d.dropRead(asker, i)
}

// terminate takes a Terminate: the connection is over, and what it blames was
// never done.
func (d *Dissector) terminate(f *flow, payload []byte, at stamp) {
	c := f.conn
	var h iwarp.TerminateHeader
	if h.Decode(payload) != nil {
		return
	}
	reason := h.String()
	var blamed *segment
	of := "write"
	if h.HasDDP {
		switch {
		case h.HasRDMAP:
			of = EventRead
			blamed = c.memory(f.side, h.Read.SourceSTag, h.Read.SourceOffset, h.Read.Size)
		case h.DDP.Tagged:
			blamed = c.memory(f.side, h.DDP.STag, h.DDP.Offset, 0)
		}
	}
	var t *txn
	if blamed != nil {
		t = blamed.txn
	}
	asker := f.peer()
	if t == nil && asker != nil && h.HasDDP && h.DDP.Opcode.IsSend() && len(c.open[asker.side]) == 1 {
		for _, only := range c.open[asker.side] {
			t, of = only, EventCall
		}
	}
	if t == nil && asker != nil { // the memory of a transaction that has its Reply is exposed no more
		t = d.recentTarget(c, f.side, &h)
	}
	d.find(ruleTerminate, c, t, nil, at, "Terminate: %s", reason)
	if h.Swapped {
		d.find(ruleTerminateBits, c, nil, nil, at, "the Terminate's control word has the bits of each byte in reverse (Linux's siw writes it so); it is read as meant")
	}
	if t != nil {
		d.event(t, Event{Time: at.time, Packet: at.packet, Event: EventNak, From: t.role(f.side), Of: of, Reason: reason}, eventNumbers{bytes: -1})
		if t.rec.Reply != nil && !t.emitted && t.side == f.side {
			d.find(ruleReplyRefused, c, t, nil, at, "the Reply in packet %d came behind what the Terminate refuses, and was never received", t.answer.LastPacket)
			t.takeBack()
		}
	}
	if c.storage.reason == "" {
		c.storage.reason = "terminate: " + reason
		c.record.CloseReason = &c.storage.reason
	}
}

// recentTarget finds the transaction, already answered, whose memory a Terminate
// blames.
func (d *Dissector) recentTarget(c *conn, owner int, h *iwarp.TerminateHeader) *txn {
	if !h.HasDDP {
		return nil
	}
	stag := h.DDP.STag
	if h.HasRDMAP {
		stag = h.Read.SourceSTag
	}
	for _, t := range d.ending.all() {
		if t.conn != c || t.side != owner {
			continue
		}
		for i := range t.segments {
			if t.segments[i].handle == stag {
				return t
			}
		}
	}
	return nil
}
