package transaction

import (
	"errors"
	"maps"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// The backward direction (draft-cel-nfsv4-rpcrdma-bidirection).

const backward = record.Backward

// backchannelGrant is the state of the client's permission for Calls of the server: whether it has
// made the connection a backchannel.
type backchannelGrant uint8

const (
	noBackchannel        backchannelGrant = iota
	backchannelRequested                  // a CREATE_SESSION that may grant it is outstanding
	backchannelGranted
	backchannelUnreadable // a Call that may have granted it could not be read, or is of a program with other ways to do that
)

// sessionRules is what the rules about the backward direction remember of a transaction.
type sessionRules struct {
	asks     bool       // its Call asks for a backchannel
	destroys *sessionID // session that its Call destroys; nil for none
}

// checkBackward checks the form of a message in the backward direction.
func checkBackward(c checker, m *message) {
	h := m.header
	if !c.hasNoChunks(h) {
		return
	}
	if m.err == nil && h.HasChunks() {
		c.report(rule.BackwardWithChunks, "a message in the backward direction has chunks")
	}
	if h.Proc != rpcrdma.Msg && h.Proc != rpcrdma.Error {
		c.report(rule.BackwardNotMsg, "a message in the backward direction is %v, but it must be RDMA_MSG", h.Proc)
	}
}

// hasNoChunks reports whether a message must have no chunks: in the backward direction, of version 1.
func (c checker) hasNoChunks(h *rpcrdma.Header) bool {
	return c.cs.direction(c.x.side) == backward && c.cs.link.Setup().Handshake && h.Vers == rpcrdma.Version
}

// checkBackwardCall checks whether the client allowed a Call of the server, and records which
// permission a Call of the client requests.
func checkBackwardCall(c checker, m *message) {
	j := &c.cs.checks
	if c.cs.direction(m.side) != backward {
		noteBackchannelRequest(c.cs, c.x, m)
		if ops := c.x.rec.Operations; len(ops) > 0 && ops[len(ops)-1] == "DESTROY_SESSION" {
			if id, known := sessionOf(m.arguments, len(ops)-1); known {
				c.x.checks.session.destroys = &id
			}
		}
		return
	}
	id, _ := sessionOf(m.arguments, 0)
	switch p := &c.x.procedure; {
	case c.cs.table.sessions[id].destroyed.Known() && c.cs.table.sessions[id].destroyed == c.cs.link.Setup().ID:
		c.report(rule.BackwardUnexpected, "the server sent a Call of a session that does not exist anymore: its Reply to DESTROY_SESSION came before")
	case !p.known || nfs.ProgramName(p.program) == "": // how its client allows Calls is unknown
	case j.backchannel == noBackchannel:
		c.report(rule.BackwardUnexpected, "%s", unexpected)
	case j.backchannel == backchannelRequested:
		if s := c.cs.rare(); len(s.pendingBackwardCalls) < 16 {
			where := c.where()
			where.Operation = c.x.operation()
			s.pendingBackwardCalls = append(s.pendingBackwardCalls, backwardCall{where, c.x.tag(partCall)})
		}
	}
}

// backwardCall is a Call of the server that came while it was not known whether the client allows it.
type backwardCall struct {
	where rdma.Where
	tag   rdma.Tag // of its transaction
}

const unexpected = "the server sent a Call although the client did not make this connection a backchannel: it was neither granted in CREATE_SESSION nor bound with BIND_CONN_TO_SESSION"

// noteBackchannelRequest records that a Call of the client makes the connection a backchannel, or
// asks for that.
func noteBackchannelRequest(cs *connState, x *txn, m *message) {
	j := &cs.checks
	if j.backchannel == backchannelGranted || j.backchannel == backchannelUnreadable {
		return
	}
	switch {
	case asksForBackchannel(x):
		j.backchannel = backchannelRequested
		x.checks.session.asks = true
		j.asking++
	case x.procedure.known && nfs.ProgramName(x.procedure.program) == "":
		j.backchannel = backchannelUnreadable
	case x.isCompound() && !x.namedAll, !x.procedure.known && (!m.captured() || m.header.Proc == rpcrdma.NoMsg || m.unknownVersion()):
		j.backchannel = backchannelUnreadable
	}
}

// asksForBackchannel reports whether a Call may make its connection a backchannel.
func asksForBackchannel(x *txn) bool {
	return slices.ContainsFunc(x.rec.Operations, func(name string) bool { return name == "CREATE_SESSION" || name == "BIND_CONN_TO_SESSION" })
}

// noteSessionReply records what the server's Reply to CREATE_SESSION or BIND_CONN_TO_SESSION grants:
// the backchannel, and the size of Replies. body contains the results. After DESTROY_SESSION, the session is no more.
func noteSessionReply(cs *connState, x *txn, body []byte) {
	if id := x.checks.session.destroys; id != nil && x.nfsStatus == record.Some("NFS4_OK") {
		cs.table.addSession(*id, session{destroyed: cs.link.Setup().ID})
		cs.table.destroyed = true
	}
	if !asksForBackchannel(x) {
		return
	}
	m := &cs.table.session
	m.Reply(x.procedure.program, x.procedure.version, x.procedure.procedure, nfs.NewStream(body, nil))
	noteResponseSize(cs.table, m)
	j := &cs.checks
	if j.backchannel != backchannelRequested {
		return
	}
	switch {
	case grantsBackchannel(m):
		j.backchannel = backchannelGranted
	case !m.Complete:
		j.backchannel = backchannelUnreadable
	case j.asking <= 1: // only x asks
		j.backchannel = noBackchannel
	}
	s := cs.rareState
	if s == nil || j.backchannel == backchannelRequested {
		return
	}
	if j.backchannel == noBackchannel {
		for _, b := range s.pendingBackwardCalls {
			x, _ := cs.table.tagged(b.tag)
			cs.report(violation{rule: rule.BackwardUnexpected, x: x, where: b.where}, "%s", unexpected)
		}
	}
	s.pendingBackwardCalls = s.pendingBackwardCalls[:0]
}

// grantsBackchannel reports whether the results of a COMPOUND make the connection a backchannel: by
// the flag CREATE_SESSION4_FLAG_CONN_BACK_CHAN, or by the directions CDFS4_BACK and CDFS4_BOTH.
func grantsBackchannel(m *nfs.Message) bool {
	for i := range m.Ops {
		switch m.Ops[i].Name {
		case "CREATE_SESSION":
			if flags := m.Find(i, "flags"); flags != nil && flags.Uint&2 != 0 {
				return true
			}
		case "BIND_CONN_TO_SESSION":
			if direction := m.Find(i, "dir"); direction != nil && (direction.Uint == 2 || direction.Uint == 3) {
				return true
			}
		}
	}
	return false
}

// sessionID is the sessionid4 of NFSv4.1.
type sessionID [16]byte

// session is a session that was created or destroyed.
type session struct {
	responseSize uint32          // ca_maxresponsesize of the fore channel; 0 if unknown
	destroyed    record.Opt[int] // connection on which it was destroyed
}

// maxSessions is the maximum number of sessions that are remembered.
const maxSessions = 1 << 10

// addSession remembers a session.
func (t *Table) addSession(id sessionID, s session) {
	if t.sessions == nil || len(t.sessions) == maxSessions {
		t.sessions = map[sessionID]session{}
	}
	t.sessions[id] = s
}

// doubtDestroyed forgets the sessions that were destroyed: a message that was captured only in part may create one of them again.
func (t *Table) doubtDestroyed() {
	if t.destroyed {
		maps.DeleteFunc(t.sessions, func(_ sessionID, s session) bool { return s.destroyed.Known() })
		t.destroyed = false
	}
}

// noteResponseSize records the ca_maxresponsesize of a session that was created.
func noteResponseSize(t *Table, m *nfs.Message) {
	for i := range m.Ops {
		if m.Ops[i].Name != "CREATE_SESSION" {
			continue
		}
		id, size := m.Find(i, "sessionid"), m.Find(i, "maxresponsesize") // the first is that of the fore channel
		if id != nil && size != nil && len(id.Bytes) == len(sessionID{}) {
			t.addSession(sessionID(id.Bytes), session{responseSize: uint32(size.Uint)})
		}
	}
}

// sessionOf returns the session with which the arguments of an operation begin, if it is one that is about a session. b may be nil.
func sessionOf(b *rpcBody, op int) (id sessionID, known bool) {
	if b == nil || op >= len(b.message.Ops) {
		return id, false
	}
	switch o := &b.message.Ops[op]; o.Name {
	case "SEQUENCE", "CB_SEQUENCE", "DESTROY_SESSION":
		if at := o.At + 4; at+int64(len(id)) <= int64(len(b.bytes)) { // after the number of the operation
			return sessionID(b.bytes[at:]), true
		}
	}
	return id, false
}

// responseSize returns the largest Reply that the session of the decoded Call admits, if the capture
// shows it.
func (c checker) responseSize() (size uint32, inSession, known bool) {
	b := c.body
	if len(b.message.Ops) == 0 || b.message.Ops[0].Name != "SEQUENCE" {
		return 0, false, false
	}
	id, _ := sessionOf(b, 0)
	size = c.cs.table.sessions[id].responseSize
	return size, true, size > 0
}

// shortMessage is a message in the backward direction that is too short for its headers. Its receiver
// has to close the connection.
type shortMessage struct {
	at        record.Stamp
	seq       uint64 // of its Send
	xid       record.Opt[uint32]
	bytes     int64
	delivered bool // its receiver acknowledged it
	wentOn    int  // number of messages that its receiver sent or acknowledged after that
}

// goOn notes that the receiver of the message sent another one, if the message was delivered before.
func (s *shortMessage) goOn() {
	if s.delivered {
		s.wentOn++
	}
}

// deliver notes that a Send of the same sender was acknowledged, which may be the message or a later one.
func (s *shortMessage) deliver(seq uint64) {
	if seq < s.seq {
		return
	}
	if s.delivered = true; seq > s.seq {
		s.wentOn++
	}
}

// noteShort notes the first short message of a side in the backward direction, and that its receiver
// sent another message.
func noteShort(cs *connState, m *message) {
	if s := cs.rareState; s != nil {
		if short := s.short[m.side.Other()]; short != nil {
			short.goOn()
		}
	}
	if !isShortBackward(cs, m) {
		return
	}
	if s := cs.rare(); s.short[m.side] == nil {
		s.short[m.side] = &shortMessage{at: m.Last, seq: m.Seq, bytes: m.Length, xid: record.SomeIf(m.header.XID, m.header.Length >= 4)}
	}
}

// noteShortDelivered notes that a Send was acknowledged, which may be a short message or a later one.
func noteShortDelivered(cs *connState, o *rdma.Operation) {
	if cs.rareState == nil {
		return
	}
	if short := cs.rareState.short[o.Side]; short != nil {
		short.deliver(o.Seq)
	}
}

// isShortBackward reports whether a message is too short for its headers, and in the backward
// direction: a Call of the server, or the Reply to one.
func isShortBackward(cs *connState, m *message) bool {
	h := m.header
	setup := cs.link.Setup()
	client, known := setup.Client.Get()
	truncated := errors.Is(m.err, rpcrdma.ErrTruncated) || m.inline && errors.Is(m.rpcErr, oncrpc.ErrTruncated)
	if !truncated || !m.captured() || !known || !setup.Handshake {
		return false
	}
	typed := m.inline && m.rpc.Length >= 8 // the type of the RPC message is known
	switch {
	case m.side == client:
		return h.Length >= 4 && cs.open[client.Other()][h.XID] != nil && !(typed && m.rpc.Type == oncrpc.Call)
	case typed:
		return m.rpc.Type == oncrpc.Call
	case h.Length >= 4:
		return cs.checks.backchannel == backchannelGranted && cs.open[client][h.XID] == nil && (h.Length < rpcrdma.FixedLen || h.Proc != rpcrdma.Error)
	}
	return cs.checks.backchannel == backchannelGranted && len(cs.open[client]) == 0
}

// checkShortMessages reports a receiver that went on with a connection after a message that is too
// short: it took a later message and sent one, or let a second pass.
func checkShortMessages(cs *connState, end record.Stamp, how *rdma.Ending) {
	if cs.rareState == nil {
		return
	}
	for side, short := range cs.rareState.short {
		if short == nil {
			continue
		}
		sender := rdma.Side(side)
		receiver := sender.Other()
		if how != nil {
			end = how.At
		}
		waited := end.Time - short.at.Time
		if how != nil && how.By != record.Some(sender) && waited < patience { // the receiver closed it, or may have
			continue
		}
		if short.delivered && (short.wentOn >= 2 || waited >= patience) {
			where := rdma.Where{At: short.at, AtFault: record.Some(receiver), XID: short.xid}
			cs.report(violation{rule: rule.ShortMessageDropped, where: where}, "this side dropped a message of %d bytes, which is too short for its headers, and went on with the connection", short.bytes)
		}
	}
}
