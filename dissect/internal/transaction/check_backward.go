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

// backchannelGrant is the state of the client's permission for Calls of the server: whether it has
// made the connection a backchannel.
type backchannelGrant uint8

const (
	noBackchannel        backchannelGrant = iota
	backchannelRequested                  // a CREATE_SESSION that may grant it is outstanding
	backchannelGranted
	backchannelUnreadable // a Call that may have granted it could not be read
)

// checkBackward checks the form of a message in the backward direction.
func checkBackward(c checker, m *message) {
	h := m.header
	if c.cs.direction(c.x.side) != backward || !c.cs.conn.Setup().Handshake {
		return
	}
	if m.err == nil && h.HasChunks() {
		c.report(rule.BackwardWithChunks, "a message in the backward direction has chunks")
	}
	if h.Understood() && h.Proc != rpcrdma.Msg && h.Proc != rpcrdma.Error {
		c.report(rule.BackwardNotMsg, "a message in the backward direction is %v, but it must be RDMA_MSG", h.Proc)
	}
}

// checkBackwardCall checks whether the client allowed a Call of the server, and records which
// permission a Call of the client requests.
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

// noteBackchannelRequest records that a Call of the client makes the connection a backchannel, or
// asks for that.
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

// noteBackchannelReply records whether the server's Reply to CREATE_SESSION grants the backchannel.
// body contains the results.
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
