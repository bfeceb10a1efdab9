package transaction

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// The backward direction (draft-cel-nfsv4-rpcrdma-bidirection).

const backward = record.Backward

// leave is what the client has said of Calls by the server.
type backchannelGrant uint8

const (
	noBackchannel        backchannelGrant = iota
	backchannelRequested                  // a CREATE_SESSION is under way that may give it
	backchannelGranted
	backchannelUnreadable // what the client said cannot be read
)

// checkBackward holds a message of the backward direction against its form.
func checkBackward(c checker, m *message) {
	h := m.header
	if c.cs.direction(c.x.side) != backward || !c.cs.conn.Handshake() {
		return
	}
	if m.err == nil && h.HasChunks() {
		c.report(rule.BackwardWithChunks, "a message in the backward direction has chunks")
	}
	if h.Understood() && h.Proc != rpcrdma.Msg && h.Proc != rpcrdma.Error {
		c.report(rule.BackwardNotMsg, "a message in the backward direction is %v, but it must be RDMA_MSG", h.Proc)
	}
}

// checkBackwardCall holds a Call of the server against what the client has agreed
// to, and notes what a Call of the client asks for.
func checkBackwardCall(c checker, m *message) {
	j := &c.cs.checks
	if c.cs.direction(m.side) != backward {
		noteBackchannelRequest(c.cs, c.x, m)
		return
	}
	switch j.backchannel {
	case noBackchannel:
		c.report(rule.BackwardUnexpected, "%s", unexpected)
	case backchannelRequested:
		if s := c.cs.rare(); len(s.pendingBackwardCalls) < 16 {
			s.pendingBackwardCalls = append(s.pendingBackwardCalls, c.where())
		}
	}
}

const unexpected = "the server sent a Call although the client did not make this connection a backchannel: it was neither granted in CREATE_SESSION nor bound with BIND_CONN_TO_SESSION"

// asksForCalls notes what a Call of the client gives leave for.
func noteBackchannelRequest(cs *connState, x *txn, m *message) {
	j := &cs.checks
	if j.backchannel == backchannelGranted || j.backchannel == backchannelUnreadable {
		return
	}
	switch {
	case slices.Contains(x.rec.Operations, "BIND_CONN_TO_SESSION"):
		j.backchannel = backchannelGranted
	case slices.Contains(x.rec.Operations, "CREATE_SESSION"):
		j.backchannel = backchannelRequested
	case x.isCompound() && !x.namedAll, !x.procedure.known && (!m.captured() || m.header.Proc == rpcrdma.NoMsg):
		j.backchannel = backchannelUnreadable
	}
}

// grantsCalls notes what the server answers to a CREATE_SESSION; body is its
// results.
func noteBackchannelReply(cs *connState, x *txn, body []byte) {
	j := &cs.checks
	if j.backchannel != backchannelRequested || !slices.Contains(x.rec.Operations, "CREATE_SESSION") {
		return
	}
	j.backchannel = noBackchannel
	m := &cs.table.session
	m.Reply(x.procedure.program, x.procedure.version, x.procedure.procedure, nfs.NewStream(body, nil))
	for i := range m.Ops {
		if m.Ops[i].Name != "CREATE_SESSION" {
			continue
		}
		if flags := m.Find(i, "flags"); flags != nil && flags.Uint&2 != 0 {
			j.backchannel = backchannelGranted
		}
	}
	if !m.Complete && j.backchannel == noBackchannel {
		j.backchannel = backchannelUnreadable
	}
	s := cs.rareState
	if s == nil {
		return
	}
	if j.backchannel == noBackchannel {
		for _, b := range s.pendingBackwardCalls {
			cs.report(violation{rule: rule.BackwardUnexpected, where: b}, "%s", unexpected)
		}
	}
	s.pendingBackwardCalls = s.pendingBackwardCalls[:0]
}
