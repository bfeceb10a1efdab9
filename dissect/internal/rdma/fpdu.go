package rdma

import (
	"fmt"
	"hash/crc32"

	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
)

// iWARP: MPA frames and FPDUs in a TCP stream, and the operations that their DDP
// segments make.

// mpa is the framing of iWARP: a stream begins with an MPA frame, and consists of FPDUs after it.
type mpa struct {
	stream *stream
	shared *decoders

	handshake bool   // the MPA frame is not complete yet
	asks      bool   // this side requested markers
	wantsCRC  bool   // this side requested CRCs
	ignored   bool   // neither side requested CRCs, so this side's mean nothing (RFC 5044 s.4.4)
	markers   bool   // this side sends markers
	resync    bool   // bytes are missing, so the start of an FPDU has to be found
	rest      int    // remaining bytes of an FPDU that was truncated
	position  int    // bytes since the FPDUs began, modulo MarkerEvery
	partial   []byte // the bytes so far of an incomplete FPDU or MPA frame
	from      uint32 // sequence number of partial
}

func (m *mpa) flow() *flow   { return m.stream.flow }
func (m *mpa) opening() bool { return m.handshake }
func (m *mpa) given() bool   { return false }
func (m *mpa) end(*TCP)      {}

// of sets the stream.
func (m *mpa) of(w *stream) { m.stream = w }

// advance moves the position of the next FPDU by n bytes.
func (m *mpa) advance(n int) { m.position = (m.position + n) % iwarp.MarkerEvery }

// fpduHead is the number of bytes that are copied of an FPDU with tagged data: its headers. Of the others, of which Sends have RPC-over-RDMA
// and RPC headers of any length, all is copied.
const fpduHead = 64

// noteFPDU keeps an FPDU of the current segment if KeepFPDUs is set.
func (m *mpa) noteFPDU(plain []byte, ulpdu, offset int, crc iwarp.CRCResult) {
	if m.flow().conn.tracker.KeepFPDUs {
		m.shared.note(plain, ulpdu, offset, crc)
	}
}

// note keeps an FPDU of the current segment.
func (d *decoders) note(plain []byte, ulpdu, offset int, crc iwarp.CRCResult) {
	n := d.fpdus
	if len(n) < cap(n) {
		n = n[:len(n)+1]
	} else {
		n = append(n, iwarp.Noted{})
	}
	last := &n[len(n)-1]
	if len(plain) > fpduHead && plain[iwarp.LengthLen]&iwarp.TaggedBit != 0 {
		plain = plain[:fpduHead]
	}
	last.Head = append(last.Head[:0], plain...)
	last.Offset, last.ULPDU, last.CRC = offset, ulpdu, crc
	d.fpdus = n
}

// early keeps the complete FPDUs of a segment that has to wait for earlier ones, if it begins
// with an FPDU. It returns their sequence numbers.
func (m *mpa) early(s *TCP) order.Run {
	shown, data, offset := order.Run{From: s.Seq, To: s.Seq}, s.Payload, s.Offset
	if !m.flow().conn.tracker.KeepFPDUs || m.markers || !plausibleFPDU(data, true) {
		return shown
	}
	for size := fpduSize(data, false, 0); size > 0 && size <= len(data); size = fpduSize(data, false, 0) {
		crc := iwarp.CheckCRC(data[:size])
		if crc == iwarp.CRCBad { // its start is uncertain
			break
		}
		m.noteFPDU(data[:size], int(be.Uint16(data)), offset, crc)
		data, offset = data[size:], within(offset, size)
		shown.To += uint32(size)
	}
	return shown
}

// within returns the offset n bytes after an offset in the frame, and -1 for -1. Data
// that is not contiguous in the frame has the offset -1.
func within(offset, n int) int {
	if offset < 0 {
		return -1
	}
	return offset + n
}

// feed takes the next bytes of a stream, which have the sequence numbers r; data was captured of them. offset is their
// position in the frame, or -1.
func (m *mpa) feed(data []byte, offset int, r order.Run, cur *currentPacket) {
	start, end := r.From, r.To // start is the sequence number of data[0]
	if m.handshake {
		n := m.takeHandshake(data, start, cur.at)
		if n < 0 { // the MPA frame is not complete
			if len(data) < int(end-start) {
				m.handshake = false
				m.skip(order.Run{From: end, To: end})
			}
			return
		}
		data, start = data[n:], start+uint32(n)
		m.stream.reach(start)
		offset = within(offset, n)
		if order.Octets.Delta(end, start) <= 0 {
			return
		}
	}
	if m.rest > 0 { // the rest of an FPDU that was truncated
		n := min(m.rest, int(end-start))
		m.rest -= n
		data = data[min(n, len(data)):]
		start += uint32(n)
		m.advance(n)
		offset = within(offset, n)
	}
	cut := int(order.Octets.Delta(end, start)) > len(data)
	if m.resync && len(data) > 0 {
		if !plausibleFPDU(data, true) && !(cut && plausibleHeader(data)) {
			m.advance(int(order.Octets.Delta(end, start)))
			m.flow().missing = true // the contents of the segment are not known
			return
		}
		m.resync = false
	}
	for len(data) > 0 {
		if len(m.partial) == 0 {
			size := fpduSize(data, m.markers, m.position)
			if size > 0 && size <= len(data) { // complete in this segment: not copied
				m.fpdu(data[:size], offset, start, cur)
				data, start = data[size:], start+uint32(size)
				offset = within(offset, size)
				m.advance(size)
				continue
			}
			m.from = start
		}
		// An FPDU that spans segments is reassembled.
		size := fpduSize(m.partial, m.markers, m.position)
		take := len(data)
		if size > 0 {
			take = min(take, size-len(m.partial))
		} else { // byte by byte until its length is known
			take = 1
		}
		m.keep(data[:take])
		data, start = data[take:], start+uint32(take)
		offset = within(offset, take)
		if size = fpduSize(m.partial, m.markers, m.position); size > 0 && len(m.partial) >= size {
			m.fpdu(m.partial[:size], -1, m.from, cur)
			m.advance(size)
			m.partial = m.partial[:0]
		}
	}
	if missing := int(order.Octets.Delta(end, start)); missing > 0 {
		m.stream.reach(end)
		m.truncatedSegment(start, end, cur)
	}
}

// truncatedSegment handles a segment of which the capture has only the beginning, up to
// from. It decodes the captured part of an FPDU that begins in the segment, and
// continues the stream after that FPDU.
func (m *mpa) truncatedSegment(from, end uint32, cur *currentPacket) {
	f := m.flow()
	missing := int(order.Octets.Delta(end, from))
	size := fpduSize(m.partial, m.markers, m.position)
	rest := size - len(m.partial) - missing // bytes of the FPDU in further segments
	m.beginPayloadPartial(max(size, len(m.partial)))
	defer f.conn.tracker.contents.reportPayload()
	var s iwarp.Segment
	if size > 0 && !m.markers && s.Decode(m.partial[iwarp.LengthLen:]) == nil && s.Plausible() {
		ulpdu := int(be.Uint16(m.partial))
		m.noteFPDU(m.partial, ulpdu, -1, iwarp.CRCOff)
		m.flow().ddp(fragment{&s, max(ulpdu-s.HeaderLength, 0), order.Run{From: m.from, To: m.from + uint32(size)}, true}, cur)
	} else {
		f.missing = true // the contents of this FPDU are unknown
	}
	m.advance(len(m.partial) + missing)
	m.partial = m.partial[:0]
	m.rest, m.resync = max(rest, 0), size == 0 || rest < 0
	if rest < 0 { // the missing part contains whole FPDUs
		f.missing = true
	}
}

// attribute finds the operation of an FPDU of which a segment brought only a
// part.
func (m *mpa) attribute(cur *currentPacket) {
	f, s := m.flow(), &m.shared.segment
	if m.markers || len(m.partial) < iwarp.LengthLen || s.Decode(m.partial[iwarp.LengthLen:]) != nil {
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

// skip moves past missing bytes.
func (m *mpa) skip(r order.Run) {
	m.flush()
	m.resync, m.rest, m.partial = true, 0, m.partial[:0]
	m.advance(int(r.To - r.From))
	m.flow().breakSend()
	m.flow().breakWrite()
}

// keep appends bytes to the incomplete FPDU.
func (m *mpa) keep(data []byte) {
	m.partial = m.flow().conn.tracker.buffers.Add(m.partial, data)
}

// flush reports the contents of the incomplete FPDU.
func (m *mpa) flush() {
	m.beginPayloadPartial(len(m.partial))
	m.flow().conn.tracker.contents.reportPayload()
}

// evict frees the incomplete FPDU.
func (m *mpa) evict() bool {
	if cap(m.partial) == 0 {
		return false
	}
	if len(m.partial) > 0 {
		m.flush()
		m.resync = true
		m.advance(len(m.partial))
	}
	m.release()
	return true
}

func (m *mpa) release() {
	m.flow().conn.tracker.buffers.Back(m.partial)
	m.partial = nil
}

// beginPayload starts the content report of a complete FPDU, whose sequence number
// is from.
func (m *mpa) beginPayload(raw, plain []byte, from uint32) {
	f := m.flow()
	f.offsets.advance(order.Octets, from)
	if f.conn.tracker.Payload == nil {
		return
	}
	p := wiremap.Payload{StreamOffset: f.offsets.requests(order.Octets, from), Count: int64(len(raw)), Frame: plain, Markers: m.markers, Position: m.position}
	at := len(raw) - iwarp.CRCLen
	if stored := le.Uint32(raw[at:]); stored != 0 {
		p.HasCRC, p.WrongCRC = true, stored^crc32.Checksum(raw[:at], iwarp.Castagnoli)
	}
	f.conn.tracker.contents.begin(p)
}

// beginPayloadPartial starts the content report of an incomplete FPDU of size bytes.
// The caller may add its operation before it calls reportPayload.
func (m *mpa) beginPayloadPartial(size int) {
	f := m.flow()
	if f.conn.tracker.Payload == nil || len(m.partial) == 0 || iwarp.IsMPA(m.partial) {
		return
	}
	plain := m.partial
	if m.markers {
		plain = m.shared.unmarkPartial(m.partial, m.position)
	}
	f.conn.tracker.contents.begin(wiremap.Payload{StreamOffset: f.offsets.requests(order.Octets, m.from), Count: int64(size), Frame: plain, Markers: m.markers, Position: m.position})
}

// unmarkPartial returns an incomplete FPDU without its markers, valid until the next call.
func (d *decoders) unmarkPartial(raw []byte, position int) []byte {
	d.partial = withoutMarkers(d.partial[:0], raw, position)
	return d.partial
}

// plausibleHeader reports whether data begins with the headers of an FPDU that was
// truncated.
func plausibleHeader(data []byte) bool {
	var s iwarp.Segment
	return len(data) > iwarp.LengthLen && s.Decode(data[iwarp.LengthLen:]) == nil && s.Plausible() && int(be.Uint16(data)) >= s.HeaderLength
}

// fpduSize returns the number of bytes that the FPDU at the start of data takes in the
// stream, with its markers, or 0 if its length field is incomplete. position is the
// offset of the FPDU, modulo the distance of markers.
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

// withoutMarkers appends a raw FPDU without its markers to to.
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

// takeHandshake decodes an MPA request or reply at the start of a stream. It returns the
// number of bytes of data that it used, or -1 if the frame is incomplete. start is the sequence number of data[0].
func (m *mpa) takeHandshake(data []byte, start uint32, at record.Stamp) int {
	f, c := m.flow(), m.flow().conn
	before := len(m.partial)
	if before > 0 {
		m.keep(data)
		data = m.partial
	}
	frame := &m.shared.mpa
	if err := frame.Decode(data); err != nil {
		if len(data) < iwarp.MPALen+512 && iwarp.IsMPA(data) {
			if before == 0 {
				m.keep(data)
			}
			return -1
		}
		m.handshake, m.partial = false, m.partial[:0]
		m.resync = before > 0 // the earlier bytes were discarded
		return 0
	}
	m.handshake = false
	c.tracker.contents.reportPayloadMPA(f.offsets.requests(order.Octets, start-uint32(before)), data[:frame.Length])
	if f.side == 0 || !frame.Reject { // a side that rejects agrees to nothing
		c.follower.Private(f.side, frame.PrivateData, at, false)
	}
	m.asks, m.wantsCRC = frame.Markers, frame.CRC
	if f.side != 0 {
		if peer := f.peer(); peer != nil { // a side that requests markers gets them
			client := peer.stream.frames.(*mpa)
			m.agree(client)
			client.agree(m)
		}
		if frame.Reject {
			c.Report(rule.ConnectionRejected, Where{At: at}, "the MPA reply rejected the connection")
			c.close(Ending{How: record.EndRejected, By: record.Some(f.side), At: at, Reason: "MPA reply"})
		} else {
			c.establish(at)
		}
	}
	m.partial = m.partial[:0]
	return max(frame.Length-before, 0)
}

// agree notes whether the stream has markers and CRCs, as the handshake of both sides shows.
func (m *mpa) agree(peer *mpa) { m.markers, m.ignored = peer.asks, !m.wantsCRC && !peer.wantsCRC }

// reportMisframed reports invalid framing, unless the capture may have caused it. The
// start of an FPDU is uncertain after missing segments of a stream with markers, and in
// a stream whose handshake does not show whether it has markers. In these cases, the
// next start of an FPDU has to be found.
func (m *mpa) reportMisframed(r *rule.Rule, at record.Stamp, format string, args ...any) {
	c := m.flow().conn
	if m.markers && c.record.counts.NotCaptured > 0 || c.setup.Handshake && !c.record.established.Known() {
		m.resync = true
		return
	}
	c.Report(r, Where{At: at}, format, args...)
}

// unmark returns an FPDU without its markers, valid until the next call.
func (d *decoders) unmark(raw []byte, position int) []byte {
	d.unmarked = withoutMarkers(d.unmarked[:0], raw, position)
	return d.unmarked
}

// fpdu takes one complete FPDU, with its markers; from is its sequence number.
func (m *mpa) fpdu(raw []byte, offset int, from uint32, cur *currentPacket) {
	at, contents := cur.at, m.flow().conn.tracker.contents
	plain := raw
	if m.markers {
		plain, offset = m.shared.unmark(raw, m.position), -1
	}
	crc := iwarp.CheckCRC(raw)
	if crc == iwarp.CRCBad && m.ignored {
		crc = iwarp.CRCOff
	}
	m.beginPayload(raw, plain, from)
	defer contents.reportPayload()
	size := int(be.Uint16(plain))
	if iwarp.LengthLen+size > len(plain) { // a marker is in place of its length, because bytes are missing
		m.reportMisframed(rule.MPAFraming, at, "FPDU of %d bytes in %d", size, len(plain))
		m.resync = true
		return
	}
	ulpdu := plain[iwarp.LengthLen : iwarp.LengthLen+size]
	if order.Octets.Delta(from, cur.shown.From) < 0 || order.Octets.Delta(from, cur.shown.To) >= 0 {
		m.noteFPDU(plain, len(ulpdu), offset, crc)
	}
	if crc == iwarp.CRCBad {
		m.flow().conn.tracker.BadCRC++
		cur.mark(nil, record.BadICRC)
		m.reportMisframed(rule.MPACRCBad, at, "FPDU of %d bytes has a bad CRC", len(raw))
		return
	}
	s := &m.shared.segment
	if err := s.Decode(ulpdu); err != nil {
		m.reportMisframed(rule.MPAFraming, at, "%v", err)
		return
	}
	m.flow().ddp(fragment{s, len(s.Payload), order.Run{From: from, To: from + uint32(len(raw))}, false}, cur)
}

// fragment is a DDP segment and its position in the stream.
type fragment struct {
	*iwarp.Segment
	size      int  // bytes of its payload on the wire
	order.Run      // sequence numbers of its FPDU
	cut       bool // the capture has only a part of it, or lacks its CRC
}

// ddp adds a DDP segment to its operation.
func (f *flow) ddp(s fragment, cur *currentPacket) {
	switch {
	case s.Tagged && s.Opcode == iwarp.Write:
		f.taggedWrite(s, cur)
	case s.Tagged && s.Opcode == iwarp.ReadResponse:
		f.taggedResponse(s, cur)
	case s.Opcode.IsSend():
		f.untaggedSend(s, cur)
	case s.Opcode == iwarp.ReadRequest:
		var r iwarp.ReadRequestHeader
		if r.Decode(s.Payload) == nil {
			o := f.names(Read, target{r.SourceSTag, r.SourceOffset, r.Size}, true, s.Run, cur.at)
			o.sink, o.sinkAt = r.SinkSTag, r.SinkOffset
			cur.mark(o, 0)
			cur.noteBytes(o, o.Offset, o.Length)
		}
	case s.Opcode == iwarp.Terminate:
		f.terminate(s.Payload, cur)
	}
}

// untaggedSend takes a DDP segment of a Send.
func (f *flow) untaggedSend(s fragment, cur *currentPacket) {
	if s.Offset != 0 && (f.parts.send == nil || s.Offset != uint64(f.parts.send.Length)) {
		return // its beginning was not captured
	}
	p := part{first: s.Offset == 0, last: s.Last, data: s.Payload, size: s.size, cut: s.cut, Run: s.Run}
	if s.Opcode.Invalidates() {
		p.invalidates = record.Some(s.STag)
	}
	f.sendPart(p, cur)
	if e := f.ops.last(); e != nil {
		if e.op.Kind == Send {
			e.op.msn = s.Sequence
		}
		cur.mark(e.op, 0)
	}
}

// taggedWrite takes a DDP segment of an RDMA Write: successive segments with the same
// STag, up to the last one.
func (f *flow) taggedWrite(s fragment, cur *currentPacket) {
	o := f.parts.write
	if o == nil || o.Handle != s.STag {
		o = f.names(Write, target{s.STag, s.Offset, uint32(s.size)}, false, s.Run, cur.at)
	} else {
		f.enter(s.Run, o)
	}
	cur.mark(o, 0)
	o.countPacket(cur)
	o.Cut = o.Cut || s.cut
	cur.noteBytes(o, s.Offset, int64(s.size))
	f.writePart(s.Offset, s.Payload, s.size, s.Last)
}

// taggedResponse takes a DDP segment with data of a Read. Its destination is the sink
// that the Read Request named.
func (f *flow) taggedResponse(s fragment, cur *currentPacket) {
	asker := f.peer()
	if asker == nil {
		return
	}
	o := asker.readOfSink(s)
	if o == nil {
		return
	}
	f.enter(s.Run, o)
	cur.mark(o, 0)
	o.countPacket(cur)
	offset := int64(s.Offset - o.sinkAt)
	fresh := o.markSeen(offset, offset+int64(s.size))
	f.noteStreamResponse(o, s.From, cur.at)
	if fresh > 0 || s.size == 0 {
		cur.noteBytes(o, o.Offset+uint64(offset), int64(s.size))
		o.read(offset, s.Payload, s.size, fresh)
	}
}

// readOfSink returns the outstanding Read that a response belongs to, nil if there is
// none. Reads are answered in order, so it is one of the oldest.
func (f *flow) readOfSink(s fragment) *Operation {
	l := &f.ops
	for n, i := 0, max(l.head, l.reads); i < len(l.entries) && n < maxReadsAtOnce; i++ {
		o := l.entries[i].op
		if o.Kind != Read || o.done || o.Side != f.side {
			if n == 0 {
				l.reads = i + 1 // all earlier Reads are finished
			}
			continue
		}
		n++
		if o.sink == s.STag && s.Offset >= o.sinkAt && s.Offset-o.sinkAt <= uint64(o.Length) && uint64(s.size) <= uint64(o.Length)-(s.Offset-o.sinkAt) {
			return o
		}
	}
	return nil
}

// maxReadsAtOnce is the maximum number of Reads that are compared with one response.
const maxReadsAtOnce = 128

// terminate takes a Terminate: the connection has ended, and the operation that it
// names was not executed.
func (f *flow) terminate(payload []byte, cur *currentPacket) {
	c, at := f.conn, cur.at
	var m iwarp.TerminateHeader
	if m.Decode(payload) != nil {
		return
	}
	r := Refusal{By: f.side, At: at, Fatal: true, Reason: m.String(), Kind: Write, Text: "Terminate"}
	if m.HasDDP {
		switch {
		case m.HasRDMAP:
			r.Kind, r.Handle, r.Offset, r.Length = Read, record.Some(m.Read.SourceSTag), m.Read.SourceOffset, m.Read.Size
		case m.DDP.Tagged:
			r.Handle, r.Offset = record.Some(m.DDP.STag), m.DDP.Offset
		case m.DDP.Opcode.IsSend():
			r.Kind = Send
		}
	}
	if m.Layer == 1 && m.Type == 2 { // DDP, untagged buffer (RFC 5041 s.8.2)
		r.Kind = Send
		r.NotReady, r.TooLong = m.Code == 2, m.Code == 5
	}
	cur.mark(nil, record.Refused)
	asker := f.peer()
	if asker != nil {
		r.Op = asker.operationNamed(&r)
		if m.HasDDP && r.Kind == Send && m.DDP.Opcode.IsSend() {
			r.Op = asker.sendNumbered(m.DDP.Sequence)
		}
		cur.mark(r.Op, 0)
	}
	if o := r.Op; o != nil {
		least, where := "", "packet "+record.PacketText(o.First.Packet)
		if o.Kind != Read && !o.done {
			least = ">= " // the rest of it follows the Terminate
		}
		if o.Last.Packet != o.First.Packet {
			where = fmt.Sprintf("packets %s to %s", record.PacketText(o.First.Packet), record.PacketText(o.Last.Packet))
		}
		r.Text += fmt.Sprintf(" of the %s's %v of %s%s in %s", c.setup.End(o.Side), o.Kind, least, record.Plural(o.Length, "byte"), where)
	}
	r.Text += ": " + r.Reason
	if m.Swapped {
		c.Report(rule.TerminateBitsReversed, Where{At: at, AtFault: record.Some(f.side)}, "the control word of the Terminate has the bits of each byte in reverse order, as Linux's siw writes it; it was decoded in the intended order")
	}
	c.ends(Ending{How: record.EndTerminate, By: record.Some(f.side), At: at, Reason: r.Reason})
	if asker == nil {
		c.follower.Refused(&r)
		return
	}
	from := uint32(0)
	if r.Op != nil {
		from = r.Op.from
	}
	asker.refuse(&r, from)
}

// operationNamed returns the operation of the flow that a Terminate names, nil if it is
// not known.
func (f *flow) operationNamed(r *Refusal) *Operation {
	handle, known := r.Handle.Get()
	if !known || f.refusals >= maxRefusals {
		return nil
	}
	for i := len(f.ops.entries) - 1; i >= f.ops.head; i-- {
		o := f.ops.entries[i].op
		if o.Side == f.side && o.Kind == r.Kind && o.Handle == handle && r.Offset-o.Offset <= uint64(o.Length) {
			return o
		}
	}
	return nil
}

// sendNumbered returns the Send of the flow with a message sequence number, nil if it
// is not known.
func (f *flow) sendNumbered(msn uint32) *Operation {
	for i := len(f.ops.entries) - 1; i >= f.ops.head; i-- {
		if o := f.ops.entries[i].op; o.Side == f.side && o.Kind == Send && o.msn == msn {
			return o
		}
	}
	return nil
}
