package dissect

import (
	"errors"
	"slices"
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// message is a whole Send.
type message struct {
	data       []byte // what was captured, from its start
	length     int    // bytes on the wire
	whole      bool   // length is known: no packet of it was lost
	invalidate *uint32
	first      stamp
	last       stamp
	psn        uint32 // of its last packet
}

// chunkKind says in which list of a Call a segment stands.
type chunkKind uint8

const (
	readChunk chunkKind = iota
	writeChunk
	replyChunk
)

var chunkNames = [...]string{"read", "write", "reply"}

// segment is a piece of memory that a Call exposes, for as long as it does.
type segment struct {
	txn          *txn
	next         *segment // exposed under the same handle, earlier
	kind         chunkKind
	chunk, index int
	handle       uint32
	length       uint32
	offset       uint64
	position     uint32 // Read chunks
	returned     uint32
	moved        spans
	data         []byte // what moved, when somebody wants it
	keep         bool
}

// segmentRef refers to a segment that may be gone by the time it is used.
type segmentRef struct {
	segment *segment
	id      int64
}

func (s *segment) ref() segmentRef {
	if s == nil {
		return segmentRef{}
	}
	return segmentRef{s, s.txn.rec.ID}
}

// txnRef refers to a transaction that may be gone by the time it is used.
type txnRef struct {
	txn *txn
	id  int64
}

func (t *txn) ref() txnRef { return txnRef{t, t.rec.ID} }

// get is the transaction, nil when it has ended.
func (r txnRef) get() *txn {
	if r.txn == nil || r.txn.rec.ID != r.id {
		return nil
	}
	return r.txn
}

// get is the segment, nil when its transaction has ended.
func (r segmentRef) get() *segment {
	if r.segment == nil || r.segment.txn.rec.ID != r.id {
		return nil
	}
	return r.segment
}

// The limits of what is kept of one transaction.
const (
	maxLong   = 1 << 20 // bytes of one chunk's data
	maxEvents = 4096
)

// maxKept bounds the chunk data kept of all transactions together.
const maxKept = 24 << 20

// txn is a transaction under way, and then its record.
type txn struct {
	rec      Transaction
	conn     *conn
	side     int // the caller's
	segments []segment
	kept     int // bytes of chunk data held
	ended    stamp
	emitted  bool
	dropped  int  // events beyond maxEvents
	writes   int  // Write chunks, segments or not
	hasReply bool // a Reply chunk

	gss       oncrpc.Service
	callBody  []byte // copies of the inline Payload streams, for Rebuild
	reply     []byte
	holes     []nfs.Hole
	replyBody int // where results begin in the Reply's Payload stream

	call, answer                           Message
	header, send, headerReply, sendReply   int
	payload, payloadReply                  int64
	program, version, procedure            uint32
	programName, procedureName, credential string
	rpcStatus, nfsStatus, rdmaError        string
	rdmaRange                              VersionRange
	latency, repeats                       int64
	operation                              string
	phases                                 Phases
	phaseNS                                [5]int64
	invalidation                           Invalidation
	invalidChunk                           string
	invalidIndex, invalidSegment           int
	readSegs                               []Segment
	writeSegs                              []WriteSegment
	replyChunk                             WriteChunk
	operations                             nfs.Compound
	eventNumbers                           []eventNumbers
}

// eventNumbers is what the optional fields of an event point at.
type eventNumbers struct {
	handle         Hex32
	offset         Hex64
	bytes, packets int64
	last           int64
}

func (d *Dissector) newTxn(c *conn, side int, xid uint32) *txn {
	var t *txn
	if n := len(d.free); n > 0 {
		t, d.free = d.free[n-1], d.free[:n-1]
	} else {
		t = new(txn)
	}
	rec := Transaction{
		Type: "transaction", Connection: c.id, XID: Hex32(xid), Direction: c.direction(side),
		ReadChunks: t.rec.ReadChunks[:0], WriteChunks: t.rec.WriteChunks[:0], NotInvalidated: t.rec.NotInvalidated[:0],
		Timeline: t.rec.Timeline[:0], Findings: t.rec.Findings[:0],
	}
	if rec.Findings == nil {
		rec.Findings = []string{}
	}
	*t = txn{
		rec: rec, conn: c, side: side, segments: t.segments[:0], callBody: t.callBody[:0], reply: t.reply[:0], holes: t.holes[:0],
		readSegs: t.readSegs[:0], writeSegs: t.writeSegs[:0], operations: nfs.Compound{Operations: t.operations.Operations[:0]},
		eventNumbers: t.eventNumbers[:0], replyChunk: WriteChunk{t.replyChunk.Segments[:0]},
	}
	d.lastTxn++
	t.rec.ID = d.lastTxn
	c.record.Transactions++
	return t
}

// event appends a step to the timeline.
func (d *Dissector) event(t *txn, e Event, n eventNumbers) {
	if len(t.rec.Timeline) >= maxEvents {
		if t.dropped++; t.dropped == 1 {
			d.limit("events of a transaction")
		}
		return
	}
	t.rec.Timeline = append(t.rec.Timeline, e)
	t.eventNumbers = append(t.eventNumbers, n)
}

// message takes a whole Send: an RPC-over-RDMA message, or somebody else's
// business.
func (d *Dissector) message(f *flow, m *message) {
	c := f.conn
	if !c.isRPC {
		if !c.undecided || !d.recognise(f, m) {
			return
		}
	}
	h := &d.header
	err := h.Decode(m.data)
	if h.Length < 4 {
		d.find(ruleHeaderTruncated, c, nil, nil, m.first, "Send of %d bytes is too short for an XID", m.length)
		return
	}
	rpc := &d.rpc
	*rpc = oncrpc.Header{}
	rpcErr := oncrpc.ErrTruncated
	var payload []byte
	inline := err == nil && h.Vers == rpcrdma.Version && (h.Proc == rpcrdma.Msg || h.Proc == rpcrdma.MsgP)
	if inline {
		payload = m.data[h.Length:]
		if h.Proc == rpcrdma.Msg {
			rpcErr = rpc.Decode(payload)
		}
	}
	if c.client < 0 {
		c.client = d.guessClient(f, h, rpc, inline)
	}
	if d.isCall(f, h, rpc, inline && rpc.Length >= 8, err) {
		d.call(f, m, h, err, rpc, rpcErr, payload)
	} else {
		d.reply(f, m, h, err, rpc, rpcErr, payload)
	}
}

// recognise decides whether the Sends of a connection are RPC-over-RDMA: when
// neither service ID nor private data told.
func (d *Dissector) recognise(f *flow, m *message) bool {
	c := f.conn
	if looksLikeRPC(&d.header, &d.rpc, m) {
		c.isRPC, c.undecided, c.record.UpperLayer = true, false, upperRPC
		return true
	}
	if c.strangers++; c.strangers >= 64 {
		c.undecided = false
	}
	return false
}

// looksLikeRPC is strict: every word that can be wrong has to be right.
func looksLikeRPC(h *rpcrdma.Header, rpc *oncrpc.Header, m *message) bool {
	if err := h.Decode(m.data); err != nil || h.Vers != rpcrdma.Version || h.XID == 0 || h.Credits > 1<<16 {
		return false
	}
	switch h.Proc {
	case rpcrdma.Msg:
		err := rpc.Decode(m.data[h.Length:])
		if err != nil && !(errors.Is(err, oncrpc.ErrTruncated) && len(m.data) < m.length) || rpc.Length < 12 || rpc.XID != h.XID {
			return false
		}
		return rpc.Type == oncrpc.Reply || rpc.RPCVersion == 2
	case rpcrdma.NoMsg:
		return h.HasChunks() && m.length == h.Length
	case rpcrdma.Error:
		return m.length == h.Length
	}
	return false
}

// guessClient says which side is the client when the handshake was missed: the
// one whose Calls are not to a callback program, and who exposes memory.
func (d *Dissector) guessClient(f *flow, h *rpcrdma.Header, rpc *oncrpc.Header, inline bool) int {
	switch {
	case !inline:
		if len(h.Reads) > 0 {
			return f.side
		}
		if h.Proc == rpcrdma.NoMsg && h.HasReply {
			return other(f.side)
		}
		return -1
	case rpc.Type == oncrpc.Call && rpc.Length >= 16:
		if nfs.IsCallback(rpc.Program) {
			return other(f.side)
		}
		return f.side
	case rpc.Type == oncrpc.Reply && h.HasChunks():
		return other(f.side)
	}
	return -1
}

// isCall says whether a message is a Call. The RPC header tells; where there is
// none, an open Call of the other side with this XID makes it a Reply; and else
// the client calls.
func (d *Dissector) isCall(f *flow, h *rpcrdma.Header, rpc *oncrpc.Header, hasRPC bool, err error) bool {
	c := f.conn
	if hasRPC {
		return rpc.Type == oncrpc.Call
	}
	if h.Length >= rpcrdma.FixedLen && h.Proc == rpcrdma.Error {
		return false
	}
	if err == nil && h.Proc == rpcrdma.NoMsg && len(h.Reads) > 0 {
		return true
	}
	if c.open[other(f.side)][h.XID] != nil {
		return false
	}
	return f.side == c.client || c.client < 0
}

// call starts a transaction.
func (d *Dissector) call(f *flow, m *message, h *rpcrdma.Header, err error, rpc *oncrpc.Header, rpcErr error, payload []byte) {
	c, side := f.conn, f.side
	if old := c.open[side][h.XID]; old != nil {
		if h.Proc == rpcrdma.Done && h.Vers == rpcrdma.Version {
			d.find(ruleDone, c, old, &h.XID, m.first, "RDMA_DONE must not be sent")
			return
		}
		d.find(ruleDuplicateXID, c, old, &h.XID, m.first, "a Call with this XID is still without a Reply")
		d.end(old, StatusNoReply, m.first)
	}
	if len(c.open[side]) >= maxOpen {
		for _, victim := range c.open[side] {
			d.limit("open transactions of a connection")
			d.end(victim, StatusNoReply, m.first)
			break
		}
	}
	t := d.newTxn(c, side, h.XID)
	c.open[side][h.XID] = t
	t.rec.RetransmitOf = d.repeats(t)
	d.fillMessage(&t.call, m, h, err, &t.header, &t.send)
	t.rec.Call = &t.call
	if h.Length >= 12 {
		c.requested[side] = keep(&c.storage.credits[side], h.Credits)
	}
	c.peak[side] = max(c.peak[side], len(c.open[side]))
	d.expose(t, h)
	d.event(t, Event{Time: m.first.time, Packet: m.first.packet, Event: EventCall, From: "requester"},
		eventNumbers{bytes: int64(m.length), last: m.last.packet, packets: -1})
	f.awaiting = appendBounded(f.awaiting, pending{m.psn, t.ref(), EventCall})

	long := false
	if len(h.Reads) > 0 && h.Reads[0].Position == 0 {
		long = true
	}
	switch t.call.Form = "short"; {
	case long:
		t.call.Form = "long"
	case len(h.Reads) > 0:
		t.call.Form = "chunked"
	}
	if err == nil && m.whole {
		t.payload = int64(m.length - h.Length)
		t.call.PayloadBytes = &t.payload
		for i := range t.segments {
			if s := &t.segments[i]; s.kind == readChunk && s.index == 0 {
				size := int64(0)
				for j := i; j < len(t.segments) && t.segments[j].kind == readChunk && t.segments[j].chunk == s.chunk; j++ {
					size += int64(t.segments[j].length)
				}
				if s.position != 0 {
					size = (size + 3) &^ 3
				}
				t.payload += size
			}
		}
	}
	if payload != nil {
		if d.options.Rebuild {
			t.callBody = append(t.callBody, payload...)
		}
		if rpcErr == nil || rpc.Length >= 24 {
			d.callRPC(t, rpc, payload)
		}
	}
	d.checkCall(f, t, m, h, err, rpc, rpcErr)
}

// keep stores v where a pointer may stay.
func keep(at *uint32, v uint32) *uint32 {
	*at = v
	return at
}

func appendBounded(list []pending, p pending) []pending {
	if len(list) >= maxAwaiting {
		list = append(list[:0], list[maxAwaiting/2:]...)
	}
	return append(list, p)
}

// fillMessage fills in one side of the record.
func (d *Dissector) fillMessage(to *Message, m *message, h *rpcrdma.Header, err error, header, send *int) {
	*to = Message{
		Time: m.first.time, Packet: m.first.packet, LastPacket: m.last.packet, lastTime: m.last.time,
		RDMAVers: h.Vers, RDMAProc: h.Proc.String(), Credits: h.Credits,
	}
	if err == nil && h.Length >= rpcrdma.FixedLen {
		*header = h.Length
		to.HeaderBytes = header
	}
	if m.whole {
		*send = m.length
		to.SendBytes = send
	}
}

// expose notes the memory that a Call exposes.
func (d *Dissector) expose(t *txn, h *rpcrdma.Header) {
	chunk, index := -1, 0
	total := len(h.Reads) + len(h.Writes) + len(h.Reply)
	if cap(t.segments) < total {
		t.segments = make([]segment, 0, total)
	}
	for i, r := range h.Reads {
		if i == 0 || r.Position != h.Reads[i-1].Position {
			chunk, index = chunk+1, 0
		}
		d.addSegment(t, readChunk, chunk, index, r.Segment).position = r.Position
		index++
	}
	for i := range h.WriteEnds {
		for j, s := range h.WriteChunk(i) {
			d.addSegment(t, writeChunk, i, j, s)
		}
	}
	for j, s := range h.Reply {
		d.addSegment(t, replyChunk, 0, j, s)
	}
	t.writes, t.hasReply = len(h.WriteEnds), h.HasReply
	for i := range t.segments {
		s := &t.segments[i]
		s.keep = d.options.Rebuild || s.kind == replyChunk || s.kind == readChunk && s.position == 0
		s.next = t.conn.exposed[t.side][s.handle]
		t.conn.exposed[t.side][s.handle] = s
	}
}

// addSegment appends a segment; t.segments has room for it.
func (d *Dissector) addSegment(t *txn, kind chunkKind, chunk, index int, from rpcrdma.Segment) *segment {
	n := len(t.segments)
	t.segments = t.segments[:n+1]
	s := &t.segments[n]
	*s = segment{
		txn: t, kind: kind, chunk: chunk, index: index, handle: from.Handle, length: from.Length, offset: from.Offset,
		moved: s.moved[:0], data: s.data[:0],
	}
	return s
}

// unexpose forgets the memory that a Call exposed.
func (t *txn) unexpose() {
	table := t.conn.exposed[t.side]
	for i := range t.segments {
		s := &t.segments[i]
		head := table[s.handle]
		if head == s {
			if s.next == nil {
				delete(table, s.handle)
			} else {
				table[s.handle] = s.next
			}
			continue
		}
		for ; head != nil; head = head.next {
			if head.next == s {
				head.next = s.next
				break
			}
		}
	}
}

// find exposed memory of a side by handle; the range picks one where several
// are exposed under the same handle.
func (c *conn) memory(side int, handle uint32, offset uint64, length uint32) *segment {
	var near *segment
	for s := c.exposed[side][handle]; s != nil; s = s.next {
		if offset >= s.offset && offset-s.offset <= uint64(s.length) && uint64(length) <= uint64(s.length)-(offset-s.offset) {
			return s
		}
		near = s
	}
	return near
}

// moved notes that n bytes, of which data was captured, went to or came from a
// segment.
func (d *Dissector) moved(s *segment, offset uint64, data []byte, n int) {
	if offset < s.offset || offset-s.offset > uint64(s.length) {
		return
	}
	at := int64(offset - s.offset)
	end := min(at+int64(n), int64(s.length))
	s.moved.add(at, end)
	if !s.keep || len(data) < n || end > maxLong {
		return
	}
	if need := int(end) - len(s.data); need > 0 {
		if d.kept+need > maxKept {
			d.limit("chunk data kept")
			s.keep = false
			return
		}
		d.kept += need
		s.txn.kept += need
		s.data = slices.Grow(s.data, need)[:end]
	}
	copy(s.data[at:end], data)
}

// callRPC notes what the RPC header of a Call says; payload is the Payload
// stream as far as it is in one piece.
func (d *Dissector) callRPC(t *txn, rpc *oncrpc.Header, payload []byte) {
	r := &t.rec
	t.program, t.version, t.procedure = rpc.Program, rpc.Version, rpc.Procedure
	r.Program, r.Version, r.Procedure = &t.program, &t.version, &t.procedure
	if t.programName = nfs.ProgramName(t.program); t.programName != "" {
		r.ProgramName = &t.programName
	}
	if t.procedureName = nfs.ProcedureName(t.program, t.version, t.procedure); t.procedureName != "" {
		r.ProcedureName = &t.procedureName
	}
	t.credential = rpc.Credential.Flavor.String()
	r.Credential = &t.credential
	if !t.isCompound() {
		return
	}
	t.conn.nfs4 = true
	body, gss := payload[rpc.Length:], 0
	if g, ok := rpc.Credential.GSS(); ok {
		if t.gss = g.Service; t.gss == oncrpc.ServicePrivacy {
			return
		}
		if t.gss == oncrpc.ServiceIntegrity {
			gss = 8 // length and sequence number stand before the arguments
		}
	}
	if len(body) < gss {
		return
	}
	t.holes = t.holes[:0]
	for i := range t.segments {
		s := &t.segments[i]
		if s.kind != readChunk || s.position == 0 {
			continue
		}
		if s.index == 0 {
			t.holes = append(t.holes, nfs.Hole{Position: int64(s.position) - int64(rpc.Length) - int64(gss)})
		}
		t.holes[len(t.holes)-1].Length += int64(s.length)
	}
	t.operations.Arguments(nfs.NewStream(body[gss:], t.holes), nfs.IsCallback(t.program))
	r.Operations = t.operations.Operations
}

// isCompound says whether the procedure is a COMPOUND.
func (t *txn) isCompound() bool {
	return t.procedure == 1 && (t.program == nfs.ProgramNFS && t.version == 4 || nfs.IsCallback(t.program))
}

// longCall reads the RPC header out of a Position Zero Read chunk, once that has
// moved.
func (d *Dissector) longCall(t *txn) {
	if t.rec.Program != nil || t.call.Form != "long" {
		return
	}
	d.scratch = t.gather(d.scratch[:0], readChunk, 0, false)
	if d.rpc.Decode(d.scratch) == nil && d.rpc.Type == oncrpc.Call {
		d.callRPC(t, &d.rpc, d.scratch)
	}
}

// gather appends the data of one chunk, as far as it is there without a hole.
func (t *txn) gather(to []byte, kind chunkKind, chunk int, returned bool) []byte {
	for i := range t.segments {
		s := &t.segments[i]
		if s.kind != kind || s.chunk != chunk {
			continue
		}
		want := int64(s.length)
		if returned {
			want = min(want, int64(s.returned))
		}
		have := min(want, s.moved.prefix(), int64(len(s.data)))
		to = append(to, s.data[:have]...)
		if have < want {
			break
		}
	}
	return to
}

// reply completes a transaction.
func (d *Dissector) reply(f *flow, m *message, h *rpcrdma.Header, err error, rpc *oncrpc.Header, rpcErr error, payload []byte) {
	c, side := f.conn, other(f.side)
	t := c.open[side][h.XID]
	orphan := t == nil
	if orphan {
		t = d.newTxn(c, side, h.XID)
		t.rec.ReadChunks, t.rec.WriteChunks, t.rec.NotInvalidated = nil, nil, nil
	} else {
		d.longCall(t)
	}
	d.fillMessage(&t.answer, m, h, err, &t.headerReply, &t.sendReply)
	t.rec.Reply = &t.answer
	if h.Length >= 12 {
		c.granted[side] = keep(&c.storage.credits[2+side], h.Credits)
	}
	d.event(t, Event{Time: m.last.time, Packet: m.last.packet, Event: EventReply, From: "responder"},
		eventNumbers{bytes: int64(m.length), packets: -1, last: -1})

	status := StatusComplete
	t.answer.Form = "short"
	switch {
	case h.Proc == rpcrdma.Error && h.Length >= rpcrdma.FixedLen:
		status = StatusRDMAError
		t.rdmaError = h.Err.String()
		t.rec.RDMAError = &t.rdmaError
		if h.Err == rpcrdma.ErrVers && err == nil {
			t.rdmaRange = VersionRange{h.VersLow, h.VersHigh}
			t.rec.RDMAErrorRange = &t.rdmaRange
		}
	case err == nil:
		d.returned(f, t, m, h, orphan)
		d.replyRPC(t, m, h, rpc, rpcErr, payload)
	}
	if orphan {
		status = StatusNoCall
	} else {
		t.latency = int64(m.last.time - t.call.Time)
		t.rec.LatencyNS = &t.latency
	}
	d.invalidate(f, t, m)
	d.checkReply(f, t, m, h, err, rpc, rpcErr, orphan)
	f.awaiting = appendBounded(f.awaiting, pending{m.psn, t.ref(), EventReply})
	d.end(t, status, m.last)
}

// returned notes the lengths that a Reply reports, and works out its form.
func (d *Dissector) returned(f *flow, t *txn, m *message, h *rpcrdma.Header, orphan bool) {
	sizes := int64(0) // of the Write chunks, rounded up
	for i := range h.WriteEnds {
		size := int64(0)
		for _, s := range h.WriteChunk(i) {
			size += int64(s.Length)
		}
		sizes += (size + 3) &^ 3
	}
	long := int64(0)
	for _, s := range h.Reply {
		long += int64(s.Length)
	}
	if !orphan {
		at := 0
		for i := range t.segments {
			s := &t.segments[i]
			var from []rpcrdma.Segment
			switch s.kind {
			case readChunk:
				continue
			case writeChunk:
				if s.chunk < len(h.WriteEnds) {
					from = h.WriteChunk(s.chunk)
				}
			case replyChunk:
				from = h.Reply
			}
			if s.index < len(from) {
				s.returned = from[s.index].Length
			}
			at++
		}
	}
	switch {
	case h.Proc == rpcrdma.NoMsg:
		t.answer.Form = "long"
		t.payloadReply = long + sizes
	case sizes > 0:
		t.answer.Form = "chunked"
		t.payloadReply = int64(m.length-h.Length) + sizes
	default:
		t.payloadReply = int64(m.length - h.Length)
	}
	if m.whole {
		t.answer.PayloadBytes = &t.payloadReply
	}
}

// replyRPC notes what the RPC header of a Reply says.
func (d *Dissector) replyRPC(t *txn, m *message, h *rpcrdma.Header, rpc *oncrpc.Header, rpcErr error, payload []byte) {
	if h.Proc == rpcrdma.NoMsg {
		d.scratch = t.gather(d.scratch[:0], replyChunk, 0, true)
		payload = d.scratch
		rpcErr = rpc.Decode(payload)
	}
	if d.options.Rebuild {
		t.reply = append(t.reply, payload...)
	}
	if rpcErr != nil || rpc.Type != oncrpc.Reply {
		return
	}
	t.rpcStatus = rpc.Status()
	t.rec.RPCStatus = &t.rpcStatus
	if !rpc.Succeeded() {
		return
	}
	body := payload[rpc.Length:]
	t.replyBody = rpc.Length
	t.holes = t.holes[:0]
	switch t.gss {
	case oncrpc.ServicePrivacy:
		return
	case oncrpc.ServiceIntegrity:
		if len(body) < 8 {
			return
		}
		body, t.replyBody = body[8:], t.replyBody+8 // length and sequence number
	}
	switch {
	case t.isCompound() || t.rec.Program == nil && t.conn.nfs4:
		d.compoundReply(t, h, body)
	case (t.program == nfs.ProgramNFS && t.version < 4 || t.program == nfs.ProgramNFSACL) && t.procedure != 0 && len(body) >= 4:
		d.setStatus(t, t.version, be.Uint32(body))
	}
}

func (d *Dissector) compoundReply(t *txn, h *rpcrdma.Header, body []byte) {
	for i := range h.WriteEnds {
		size := int64(0)
		for _, s := range h.WriteChunk(i) {
			size += int64(s.Length)
		}
		if size > 0 {
			t.holes = append(t.holes, nfs.Hole{Position: -1, Length: size})
		}
	}
	d.compound.Results(nfs.NewStream(body, t.holes), nfs.IsCallback(t.program))
	switch {
	case t.rec.Program != nil:
		if d.compound.HasStatus {
			d.setStatus(t, 4, d.compound.Status)
		}
	case d.compound.Complete && d.compound.Count > 0: // a Reply without Call that reads as one
		d.setStatus(t, 4, d.compound.Status)
		t.operations.Operations = append(t.operations.Operations[:0], d.compound.Operations...)
		t.rec.Operations = t.operations.Operations
	}
}

func (d *Dissector) setStatus(t *txn, version, status uint32) {
	t.nfsStatus = nfs.StatusName(version, status)
	t.rec.NFSStatus = &t.nfsStatus
}

// invalidate notes what a Send With Invalidate kills.
func (d *Dissector) invalidate(f *flow, t *txn, m *message) {
	if m.invalidate == nil {
		return
	}
	handle := *m.invalidate
	t.invalidation = Invalidation{Handle: Hex32(handle), Packet: m.last.packet}
	t.rec.Invalidation = &t.invalidation
	for i := range t.segments {
		if s := &t.segments[i]; s.handle == handle {
			t.invalidChunk, t.invalidIndex, t.invalidSegment = chunkNames[s.kind], s.chunk, s.index
			t.invalidation.Chunk, t.invalidation.Index, t.invalidation.Segment = &t.invalidChunk, &t.invalidIndex, &t.invalidSegment
			break
		}
	}
	d.event(t, Event{Time: m.last.time, Packet: m.last.packet, Event: EventInvalidate, From: "responder"},
		eventNumbers{handle: Hex32(handle), bytes: -1, packets: -1, last: -1})
}

// end takes a transaction off the books. Its record goes out when the Reply is
// acknowledged, or soon after.
func (d *Dissector) end(t *txn, status string, at stamp) {
	t.rec.Status = status
	if t.conn.open[t.side][uint32(t.rec.XID)] == t {
		delete(t.conn.open[t.side], uint32(t.rec.XID))
	}
	d.longCall(t)
	t.unexpose()
	t.ended = at
	if status == StatusNoReply {
		d.remember(t)
		d.emit(t)
		d.release(t)
		return
	}
	d.ending.push(t)
}

// takeBack makes a transaction one whose Reply did not arrive. The timeline
// keeps what was sent.
func (t *txn) takeBack() {
	r := &t.rec
	if r.Status = StatusNoReply; r.Call == nil {
		r.Status = StatusNoCall
		return
	}
	r.Reply, r.Invalidation, r.LatencyNS, r.RPCStatus, r.NFSStatus, r.RDMAError, r.RDMAErrorRange = nil, nil, nil, nil, nil, nil, nil
}

// remember keeps the XID of a Call that got no Reply, to know its
// retransmission on another connection.
func (d *Dissector) remember(t *txn) {
	if len(d.unanswered) >= maxUnanswered {
		clear(d.unanswered)
	}
	d.unanswered[d.unansweredKey(t)] = t.rec.ID
}

const maxUnanswered = 1 << 14

type unansweredKey struct {
	caller, responder address
	xid               uint32
}

func (d *Dissector) unansweredKey(t *txn) unansweredKey {
	caller, _, _ := t.conn.sideAddress(t.side)
	responder, _, _ := t.conn.sideAddress(other(t.side))
	return unansweredKey{caller, responder, uint32(t.rec.XID)}
}

// repeats is the id of the transaction that a new Call retransmits, nil for
// none.
func (d *Dissector) repeats(t *txn) *int64 {
	if len(d.unanswered) == 0 {
		return nil
	}
	k := d.unansweredKey(t)
	id, known := d.unanswered[k]
	if !known {
		return nil
	}
	delete(d.unanswered, k)
	t.repeats = id
	return &t.repeats
}

// emit completes the record and hands it out.
func (d *Dissector) emit(t *txn) {
	if t.emitted {
		return
	}
	t.emitted = true
	r := &t.rec
	r.Direction = t.conn.direction(t.side)
	if r.Call != nil {
		t.chunks()
	}
	t.events()
	t.phase()
	if t.operation = nfs.Principal(r.Operations); t.operation != "" {
		r.Operation = &t.operation
	}
	d.summary.Transactions[r.Status]++
	if d.handler.Payload != nil && d.options.Rebuild {
		d.rebuild(t)
	}
	if d.handler.Transaction != nil {
		d.handler.Transaction(r)
	}
}

// release gives the storage of a transaction back.
func (d *Dissector) release(t *txn) {
	d.kept -= t.kept
	t.rec.ID = 0
	if t.kept > 1<<16 || cap(t.rec.Timeline) > 256 { // do not hoard what one large transaction needed
		return
	}
	d.free = append(d.free, t)
}

// chunks fills in the chunk lists and what was left to invalidate.
func (t *txn) chunks() {
	r := &t.rec
	reads, writes := 0, 0
	for i := range t.segments {
		if t.segments[i].kind == readChunk {
			reads++
		} else {
			writes++
		}
	}
	t.readSegs, t.writeSegs = slices.Grow(t.readSegs[:0], reads), slices.Grow(t.writeSegs[:0], writes)
	if r.ReadChunks = r.ReadChunks[:0]; r.ReadChunks == nil {
		r.ReadChunks = []ReadChunk{}
	}
	if r.WriteChunks = r.WriteChunks[:0]; r.WriteChunks == nil {
		r.WriteChunks = []WriteChunk{}
	}
	if r.NotInvalidated = r.NotInvalidated[:0]; r.NotInvalidated == nil {
		r.NotInvalidated = []Hex32{}
	}
	for range t.writes { // a chunk may have no segments
		r.WriteChunks = append(r.WriteChunks, WriteChunk{Segments: t.writeSegs[:0]})
	}
	reply := len(t.segments)
	for i := range t.segments {
		s := &t.segments[i]
		if !(r.Invalidation != nil && uint32(r.Invalidation.Handle) == s.handle) && !slices.Contains(r.NotInvalidated, Hex32(s.handle)) {
			r.NotInvalidated = append(r.NotInvalidated, Hex32(s.handle))
		}
		if s.kind == readChunk {
			t.readSegs = append(t.readSegs, Segment{Hex32(s.handle), s.length, Hex64(s.offset), s.moved.total()})
			n := len(t.readSegs)
			if s.index == 0 {
				r.ReadChunks = append(r.ReadChunks, ReadChunk{Position: s.position, Segments: t.readSegs[n-1:]})
			}
			last := &r.ReadChunks[len(r.ReadChunks)-1]
			last.Segments = last.Segments[:s.index+1]
			continue
		}
		w := WriteSegment{Hex32(s.handle), s.length, Hex64(s.offset), nil, s.moved.total()}
		if r.Reply != nil && r.Status == StatusComplete {
			w.ReturnedLength = &s.returned
		}
		t.writeSegs = append(t.writeSegs, w)
		n := len(t.writeSegs)
		if s.kind == replyChunk {
			reply = min(reply, n-1)
			continue
		}
		last := &r.WriteChunks[s.chunk]
		if s.index == 0 {
			last.Segments = t.writeSegs[n-1 : n-1]
		}
		last.Segments = last.Segments[:s.index+1]
	}
	r.ReplyChunk = nil
	if t.hasReply {
		t.replyChunk.Segments = t.writeSegs[min(reply, len(t.writeSegs)):]
		r.ReplyChunk = &t.replyChunk
	}
}

// events sorts the timeline by packet and points the optional fields at their
// numbers.
func (t *txn) events() {
	for i := range t.rec.Timeline {
		e, n := &t.rec.Timeline[i], &t.eventNumbers[i]
		switch e.Event {
		case EventRead, EventReadDone, EventWriteFirst, EventWriteLast:
			e.Handle, e.Offset = &n.handle, &n.offset
		case EventInvalidate:
			e.Handle = &n.handle
		}
		if n.bytes >= 0 {
			e.Bytes = &n.bytes
		}
		if n.packets > 0 {
			e.Packets = &n.packets
		}
		if n.last > 0 {
			e.LastPacket = &n.last
		}
	}
	slices.SortStableFunc(t.rec.Timeline, func(a, b Event) int { return int(a.Packet - b.Packet) })
}

// phase splits the latency by the timeline. Each phase begins where the one
// before it ended, so that they add up even where Reads and Writes overlap.
func (t *txn) phase() {
	r := &t.rec
	if r.LatencyNS == nil {
		return
	}
	var first, last [2]*Time // of Reads and Writes
	for i := range r.Timeline {
		e := &r.Timeline[i]
		switch e.Event {
		case EventRead, EventWriteFirst:
			if kind := oneIf(e.Event == EventWriteFirst); first[kind] == nil {
				first[kind] = &e.Time
			}
		case EventReadDone, EventWriteLast:
			kind := oneIf(e.Event == EventWriteLast)
			if last[kind] == nil || e.Time > *last[kind] {
				last[kind] = &e.Time
			}
		}
	}
	at, n := t.call.Time, 0
	step := func(end *Time, to **int64) {
		if end != nil {
			t.phaseNS[n] = int64(max(*end, at) - at)
			at = max(*end, at)
			*to = &t.phaseNS[n]
		}
		n++
	}
	t.phases = Phases{}
	step(first[0], &t.phases.ToReadNS)
	step(last[0], &t.phases.ReadNS)
	step(first[1], &t.phases.ToWriteNS)
	step(last[1], &t.phases.WriteNS)
	step(&t.answer.lastTime, &t.phases.ToReplyNS)
	r.Phases = &t.phases
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

func itoa(v int64) string { return strconv.FormatInt(v, 10) }
