package transaction

import (
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// message is a decoded Send.
type message struct {
	*rdma.Operation
	side    rdma.Side // the sender
	data    []byte    // its captured bytes, from the first on
	whole   bool      // no packet of it is missing
	header  *rpcrdma.Header
	err     error // error of the RPC-over-RDMA header
	rpc     *oncrpc.Header
	rpcErr  error
	inline  bool   // an RPC message follows the header
	guessed bool   // the capture lacks what would show whether it is a Call
	plain   bool   // it is RPC over TCP or UDP, without an RPC-over-RDMA header
	payload []byte // the RPC message that follows the header

	arguments *rpcBody // of a Call; nil if they are not decoded
	results   results  // of a Reply
}

// captured reports whether the whole Send was captured.
func (m *message) captured() bool { return m.whole && int64(len(m.data)) == m.Length }

// known reports whether the end of the header is known. In other versions, only the four fixed
// words and RDMA_ERROR are known.
func (m *message) known() bool {
	h := m.header
	return m.plain || m.err == nil && h.Length >= rpcrdma.FixedLen && (h.Understood() || h.Proc == rpcrdma.Error)
}

// unknownVersion reports whether a message has a version whose document this program does not know.
// Nothing is attributed to a side that only that document could say.
func (m *message) unknownVersion() bool {
	h := m.header
	return !m.plain && h.Length >= rpcrdma.FixedLen && !h.Understood() && h.Proc != rpcrdma.Error
}

// done takes a complete Send, or the end of an RDMA operation.
func (cs *connState) done(o *rdma.Operation) {
	switch {
	case o.Kind != rdma.Send:
		cs.moved(o)
	case trustIn(o) != trusted:
		cs.table.doubtDestroyed()
		cs.doubts.unverifiedSend = o.Number
		cs.message(o)
		cs.doubts.unverifiedSend = 0
	default:
		cs.message(o)
	}
}

// message takes a Send, which may be an RPC-over-RDMA message.
func (cs *connState) message(o *rdma.Operation) {
	cs.lookUpService()
	defer cs.settle(0, func(f *finding) { f.heard = f.heard || f.next == o.Side })
	if cs.link.Setup().RPC {
		cs.plainMessage(o)
		return
	}
	t := cs.table
	m := message{Operation: o, side: o.Side, data: o.Payload, whole: !o.Broken, header: &t.header, rpc: &t.rpc}
	if !cs.upper.IsRPC() && !cs.recognize(&m) {
		o.Word = record.Opt[uint32]{} // it is not an XID
		return
	}
	m.decode()
	h := m.header
	noteShort(cs, &m)
	if h.Length < 4 {
		if !m.captured() {
			cs.checks.backchannel = backchannelUnreadable // the message may have asked for a backchannel
			cs.doubts.halfRead[m.side] = true
		} else {
			noteUnowed(cs, &m)
			cs.report(violation{rule: rule.HeaderTruncated, where: rdma.Where{At: o.First, AtFault: record.Some(m.side)}}, "%s", tooShortText(cs, o))
		}
		return
	}
	if !cs.link.Setup().Client.Known() {
		guessClient(cs, &m)
	}
	if isCall(cs, &m) {
		cs.call(&m)
	} else {
		cs.reply(&m)
	}
	if t.options.Tree && m.whole && !t.Undescribed {
		t.keepSend(&m)
	}
	t.mapMessage(&m)
}

// decode decodes the RPC-over-RDMA header and the RPC header.
func (m *message) decode() {
	h := m.header
	m.err = h.Decode(m.data)
	if m.inline = m.err == nil && h.Understood() && (h.Proc == rpcrdma.Msg || h.Proc == rpcrdma.MsgP); m.inline {
		m.payload = m.data[h.Length:]
	}
	if m.inline && h.Proc == rpcrdma.Msg {
		m.rpcErr = m.rpc.Decode(m.payload)
		if h.IsDraft && m.rpc.XID != h.XID {
			if _, found := m.findRPC(); found { // another layout of version 2, in which the RPC message is elsewhere
				h.Forget()
				m.inline, m.payload = false, nil
			}
		}
	}
	if !m.inline || h.Proc != rpcrdma.Msg {
		*m.rpc, m.rpcErr = oncrpc.Header{}, oncrpc.ErrTruncated
	}
}

// recognize reports whether a Send shows that the connection carries RPC-over-RDMA, if neither service nor private data
// showed it.
func (cs *connState) recognize(m *message) bool {
	if !cs.upper.Searches() || !cs.upper.Message(m.data, m.Length) {
		return false
	}
	cs.recognized()
	if !cs.upper.IsRPC() {
		return false
	}
	cs.doubts.notRead(cs.upper.Unread()) // They may have been messages, too.
	return true
}

// guessClient determines which side is the client if the handshake was not captured: the side that
// exposes memory and sends Calls to other programs than callback programs.
func guessClient(cs *connState, m *message) {
	h, rpc := m.header, m.rpc
	switch {
	case !m.inline:
		if len(h.Reads) > 0 {
			cs.link.SetClient(m.side)
		} else if h.Proc == rpcrdma.NoMsg && h.HasReply {
			cs.link.SetClient(m.side.Other())
		}
	case rpc.Type == oncrpc.Call && rpc.Length >= 16:
		if nfs.IsCallback(rpc.Program) {
			cs.link.SetClient(m.side.Other())
		} else {
			cs.link.SetClient(m.side)
		}
	case rpc.Type == oncrpc.Reply && h.HasChunks():
		cs.link.SetClient(m.side.Other())
	}
}

// isCall reports whether a message is a Call. The type in the RPC header decides. Without a type that
// is defined, a message is a Reply if the other side has an outstanding Call with its XID, and
// otherwise a Call if the client sent it. It notes if that is a guess, because the message was truncated.
func isCall(cs *connState, m *message) bool {
	h := m.header
	if m.inline && m.rpc.Length >= 8 && m.rpc.Type <= oncrpc.Reply {
		return m.rpc.Type == oncrpc.Call
	}
	if h.Length >= rpcrdma.FixedLen && h.Proc == rpcrdma.Error {
		return false
	}
	switch answers := cs.open[m.side.Other()][h.XID] != nil; {
	case !h.IsDraft:
	case h.Proc == rpcrdma.NoMsg && positionZero(h): // whatever rdma_direction says: only Calls have Read lists
		return true
	case h.Proc == rpcrdma.NoMsg && h.HasReply && answers && len(h.Reads) == 0:
		return false
	default:
		return h.Direction == 0
	}
	if !h.Understood() || h.Proc == rpcrdma.MsgP || h.Proc > rpcrdma.Error {
		if call, found := m.findRPC(); found {
			return call
		}
	}
	client, known := cs.link.Setup().Client.Get()
	answers := cs.open[m.side.Other()][h.XID] != nil
	if m.err == nil && h.Proc == rpcrdma.NoMsg && len(h.Reads) > 0 && (!answers || m.side == client && known && positionZero(h)) {
		m.guess(m.side != client && known && !answers && !positionZero(h))
		return true
	}
	if answers {
		return false
	}
	mayAnswer := wasRepeated(cs, m.side.Other(), h.XID) || cs.doubts.guessed[m.side.Other()] && cs.answered(m.side, h.XID)
	shown := cs.proves(rule.ReplyWithoutCall, m.side) && !mayAnswer // it is no Reply
	m.guess(mayAnswer && m.side == client || !m.captured() && (!shown || m.side != client || !known))
	if m.guessed && m.side != client && known {
		cs.doubts.guessed[m.side] = true
		return shown && cs.checks.backchannel != noBackchannel && answeredBefore(cs, m.side.Other(), h.XID) == nil
	}
	return m.side == client && !mayAnswer || !known
}

// guess notes whether it is a guess that the message is a Call, or none.
func (m *message) guess(is bool) { m.guessed = is }

// maxUnknownHeader is the number of bytes in which findRPC looks for the RPC message.
const maxUnknownHeader = 1 << 10

// findRPC looks for the RPC message that follows a header of an unknown version or procedure. The RPC message
// begins with the XID of the header, and then is a Call or a Reply.
func (m *message) findRPC() (call, found bool) {
	data := m.data[:min(len(m.data), maxUnknownHeader)]
	for at := rpcrdma.FixedLen; at+12 <= len(data); at += 4 {
		words := data[at:]
		if be.Uint32(words) != m.header.XID {
			continue
		}
		switch kind, next := oncrpc.MessageType(be.Uint32(words[4:])), be.Uint32(words[8:]); {
		case kind == oncrpc.Call && next == 2: // the RPC version
			return true, true
		case kind == oncrpc.Reply && next <= 1: // accepted or denied
			return false, true
		}
	}
	return false, false
}

// call starts a transaction.
func (cs *connState) call(m *message) {
	t, h, side := cs.table, m.header, m.side
	if old := cs.open[side][h.XID]; old != nil {
		if m.plain && mayRepeat(old, m) {
			noteSentAgain(old, m, record.EventCall)
			return
		}
		c := old.checker(m.First).attributedTo(side)
		if h.Proc == rpcrdma.Done && h.Vers == rpcrdma.Version {
			old.checks.header.doneSent = true
			noteUnowed(cs, m)
			c.report(rule.RDMADone, "the message is RDMA_DONE, which must not be sent")
			m.Tag = old.tag(partCall)
			return
		}
		checkReuse(c, m)
		if !m.plain {
			noteUnowed(cs, m)
		}
		t.end(old, record.NoReply)
	}
	if cs.answered(side, h.XID) { // its Reply was captured first
		cs.link.Disorder()
	}
	x := t.begin(cs, side, h.XID)
	x.enter(outstanding)
	x.checks.trust, x.checks.guessed = trustIn(m.Operation), m.guessed
	cs.open[side].add(x)
	cs.calls.add(x)
	m.Tag = x.tag(partCall)
	m.fill(&x.call)
	first, last := m.First, m.Last
	damaged := m.Damaged()
	if damaged.Packet != 0 { // the requester sent its Call then
		if first, last = damaged, damaged; cs.link.SeveralPoints() { // it may have been captured when it came
			first, last = m.First, m.First
		}
		x.call.Time, x.call.Packet, x.call.LastPacket, x.call.LastTime = first.Time, first.Packet, last.Packet, last.Time
	}
	x.rec.Call = &x.call
	x.cs.messages.note(first)
	x.callSeq = m.Seq
	x.begins()
	x.form = formOf(h)
	if h.Length >= 12 {
		cs.granting[side].request(h.Credits)
	}
	if calls, peak := int32(len(cs.open[side])), &cs.granting[side].peak; peak.Exceeded(calls) { // a single one is certainly outstanding: it has just been sent
		peak.Count(calls, calls == 1 || cs.proves(rule.CreditLimitExceeded, side))
	}
	cs.expose(x, m)
	if x.memory.Incomplete {
		cs.incompleteLists[side]++
	}
	if damaged.Packet == 0 {
		if !m.plain {
			noteCreditWait(cs, x, m)
		}
		x.rec.HeldBackBy = cs.wireActivity().heldBackBy(side, first)
		noteActivity(cs, x, side, last, false)
	} else {
		noteDamagedFirst(x, m.Operation, record.EventCall, record.Requester)
	}
	if !m.plain {
		noteCallSent(cs, m)
	}
	noteReordered(cs, x, m.Operation, record.EventCall)
	e := x.event(first, record.EventCall, record.Requester)
	e.Bytes, e.LastPacket = record.Some(m.Length), record.Some(last.Packet)
	x.call.Form = record.Short
	switch {
	case positionZero(h):
		x.call.Form = record.Long
	case len(h.Reads) > 0:
		x.call.Form = record.Chunked
	}
	if m.whole && m.known() {
		x.call.PayloadBytes = record.Some(m.Length - int64(h.Length) + x.memory.ReadBytes())
	}
	x.keepInline(&x.inCall, m)
	if m.payload != nil {
		readable := m.payload
		if m.rpcErr != nil { // the offset of the arguments is unknown
			readable = readable[:m.rpc.Length]
		}
		if m.rpcErr == nil || m.rpc.Length >= 24 {
			m.arguments = t.callRPC(x, m.rpc, readable)
		}
		t.keepNames(x)
	}
	if m.plain && m.rpcErr == nil {
		noteRendezvous(x, m)
	}
	if t.options.Tasks || m.arguments != nil && m.arguments.message.MinorVersion == 0 { // then it is a part of what identifies the request, too
		x.wants = t.whatIsAsked(x, m)
	}
	x.arguments = t.argumentsOf(x, m)
	t.findEarlier(x)
	t.noteTask(x)
	checkCall(cs, x, m)
}

// fill fills in the Call or the Reply of a record.
func (m *message) fill(to *record.Message) {
	h := m.header
	*to = record.Message{} // a statement of its own, so that the compiler clears it in place
	to.Time, to.Packet, to.LastPacket, to.LastTime = m.First.Time, m.First.Packet, m.Last.Packet, m.Last.Time
	if to.Delivery = record.DeliveryUnknown; m.NotDelivered() {
		to.Delivery = record.DeliveryNotDelivered
	}
	to.SendBytes = record.SomeIf(int(m.Length), m.whole)
	to.DSCP = m.DSCP()
	if m.plain {
		return
	}
	to.RDMAVers, to.Credits = record.SomeIf(h.Vers, h.Length >= 8), record.SomeIf(h.Credits, h.Length >= 12)
	if h.Length >= rpcrdma.FixedLen {
		to.RDMAProc = record.Some(h.Proc.String())
	}
	to.HeaderBytes = record.SomeIf(h.Length, m.known())
}

// reply completes a transaction.
func (cs *connState) reply(m *message) {
	if m.plain && answersAgain(cs, m) {
		return
	}
	if !m.plain && (answersDone(cs, m) || discardsError(cs, m) || answersNothing(cs, m)) {
		noteUnowed(cs, m)
		return
	}
	t, h, side := cs.table, m.header, m.side.Other()
	x := cs.open[side][h.XID]
	withoutCall := x == nil
	if withoutCall {
		if !m.plain {
			noteUnowed(cs, m)
		}
		noteReplyBeforeCall(cs, side, h.XID)
		cs.granting[side].peak.Count(int32(len(cs.open[side]))+1, false)
		x = t.begin(cs, side, h.XID)
		x.checks.guess(m.guessed)
	} else {
		t.longCall(x)
	}
	m.Tag = x.tag(partReply)
	if t.options.Shown {
		t.noteGuarded(x)
	}
	if !withoutCall {
		cs.wireActivity().noteCreditFreed(side, m.Last, len(cs.open[side])-1-cs.checks.credits[side].Dones())
		x.noteServed(m.Operation)
	}
	damaged := m.Damaged()
	if damaged.Packet == 0 {
		noteActivity(cs, x, m.side, m.Last, false)
	} else {
		noteDamagedFirst(x, m.Operation, record.EventReply, record.Responder)
	}
	noteReordered(cs, x, m.Operation, record.EventReply)
	addAnswer(x)
	cs.messages.note(m.Last)
	m.fill(&x.answer)
	x.seq = m.Seq
	x.answer.FirstSent = record.SomeIf(damaged.Time, damaged.Packet != 0)
	if d, known := callAccepted(cs, x, m); known && !withoutCall {
		noteAccepted(&x.call, d)
	}
	if h.Length >= 12 && !m.guessed {
		cs.granting[side].grant(h.Credits)
	}
	x.event(m.Last, record.EventReply, record.Responder).Bytes = record.Some(m.Length)
	status := record.Complete
	x.answer.Form = record.Short
	switch {
	case h.Proc == rpcrdma.Error && h.Length >= rpcrdma.FixedLen:
		status = record.RDMAError
		x.rdmaError = record.SomeIf(h.Err.String(), h.Length > rpcrdma.FixedLen)
		if h.Err == rpcrdma.ErrVers && m.err == nil {
			x.rdmaErrorRange = record.Some(record.VersionRange{Low: h.VersLow, High: h.VersHigh})
		}
	case m.known():
		x.returned(m)
		x.keepInline(&x.inReply, m)
		m.results = t.replyRPC(x, m)
	}
	if status == record.Complete && !showsOutcome(x, m) {
		status = record.Answered
	}
	if withoutCall {
		status = record.NoCall
	} else {
		x.latency = since(firstSent(x).Time, m.Last.Time)
		x.lasts(m.Last.Time)
	}
	x.invalidate(m)
	checkReply(cs, x, m, withoutCall)
	if withoutCall {
		noteReused(cs, h.XID)
	}
	if m.NotDelivered() && !withoutCall { // The requester still waits for it. The Call ends with the connection.
		return
	}
	t.end(x, status)
}

// returned records the lengths that a Reply returns, and determines its form.
func (x *txn) returned(m *message) {
	h := m.header
	sizes := int64(0) // of the Write chunks, with XDR pads
	for i := range h.WriteEnds {
		size := rpcrdma.Length(h.WriteChunk(i))
		sizes += (size + 3) &^ 3
		x.sizes = append(x.sizes, size)
		x.charge(sizeCost)
	}
	x.memory.Returns(h)
	bytes := m.Length - int64(h.Length) + sizes
	switch {
	case h.Proc == rpcrdma.NoMsg:
		x.answer.Form = record.Long
		bytes = rpcrdma.Length(h.Reply) + sizes
	case sizes > 0:
		x.answer.Form = record.Chunked
	}
	x.answer.PayloadBytes = record.SomeIf(bytes, m.whole)
}

// invalidate records the handle that a Send With Invalidate invalidates.
func (x *txn) invalidate(m *message) {
	handle, does := m.Invalidates.Get()
	if !does {
		return
	}
	i := record.Invalidation{Handle: record.Hex32(handle), Packet: m.Last.Packet}
	if s := x.memory.Handle(handle); s != nil {
		i.Chunk, i.Index, i.Segment = record.Some(s.Kind.Name()), record.Some(int(s.Chunk)), record.Some(int(s.Index))
	}
	x.invalidation = record.Some(i)
	x.event(m.Last, record.EventInvalidate, record.Responder).Handle = record.Some(i.Handle)
}
