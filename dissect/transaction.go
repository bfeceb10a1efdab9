package dissect

import (
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// Transactions: per connection, per side, per XID.

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
	if err == nil && m.whole && headerKnown(h) {
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

// headerKnown says whether the end of a header is known: of other versions only
// the fixed words are, and errors.
func headerKnown(h *rpcrdma.Header) bool {
	return h.Length >= rpcrdma.FixedLen && (h.Vers == rpcrdma.Version || h.Proc == rpcrdma.Error)
}

// fillMessage fills in one side of the record.
func (d *Dissector) fillMessage(to *Message, m *message, h *rpcrdma.Header, err error, header, send *int) {
	*to = Message{
		Time: m.first.time, Packet: m.first.packet, LastPacket: m.last.packet, lastTime: m.last.time,
		RDMAVers: h.Vers, RDMAProc: h.Proc.String(), Credits: h.Credits,
	}
	if err == nil && headerKnown(h) {
		*header = h.Length
		to.HeaderBytes = header
	}
	if m.whole {
		*send = m.length
		to.SendBytes = send
	}
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
			t.rdmaRange = VersionRange{Low: h.VersLow, High: h.VersHigh}
			t.rec.RDMAErrorRange = &t.rdmaRange
		}
	case err == nil && headerKnown(h):
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

func itoa(v int64) string { return strconv.FormatInt(v, 10) }
