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
type leave uint8

const (
	noLeave leave = iota
	asked         // a CREATE_SESSION is under way that may give it
	given
	hidden // what the client said cannot be read
)

// checkBackward holds a message of the backward direction against its form.
func (f *follower) checkBackward(c checker, m *message) {
	h := m.header
	if f.direction(c.x.side) != backward || !f.conn.Handshake() {
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
func (f *follower) checkBackwardCall(c checker, m *message) {
	j := &f.judged
	if f.direction(m.side) != backward {
		f.asksForCalls(c.x, m)
		return
	}
	switch j.leave {
	case noLeave:
		c.report(rule.BackwardUnexpected, "%s", unexpected)
	case asked:
		if s := f.rare(); len(s.early) < 16 {
			s.early = append(s.early, c.where())
		}
	}
}

const unexpected = "the server sent a Call although the client did not make this connection a backchannel: it was neither granted in CREATE_SESSION nor bound with BIND_CONN_TO_SESSION"

// asksForCalls notes what a Call of the client gives leave for.
func (f *follower) asksForCalls(x *txn, m *message) {
	j := &f.judged
	if j.leave == given || j.leave == hidden {
		return
	}
	switch {
	case slices.Contains(x.rec.Operations, "BIND_CONN_TO_SESSION"):
		j.leave = given
	case slices.Contains(x.rec.Operations, "CREATE_SESSION"):
		j.leave = asked
	case x.isCompound() && !x.namedAll, !x.procedure.known && (!m.captured() || m.header.Proc == rpcrdma.NoMsg):
		j.leave = hidden
	}
}

// grantsCalls notes what the server answers to a CREATE_SESSION; body is its
// results.
func (f *follower) grantsCalls(x *txn, body []byte) {
	j := &f.judged
	if j.leave != asked || !slices.Contains(x.rec.Operations, "CREATE_SESSION") {
		return
	}
	j.leave = noLeave
	m := &f.table.session
	m.Reply(x.procedure.program, x.procedure.version, x.procedure.procedure, nfs.NewStream(body, nil))
	for i := range m.Ops {
		if m.Ops[i].Name != "CREATE_SESSION" {
			continue
		}
		if flags := m.Find(i, "flags"); flags != nil && flags.Uint&2 != 0 {
			j.leave = given
		}
	}
	if !m.Complete && j.leave == noLeave {
		j.leave = hidden
	}
	s := f.seldom
	if s == nil {
		return
	}
	if j.leave == noLeave {
		for _, b := range s.early {
			f.report(violation{rule: rule.BackwardUnexpected, where: b}, "%s", unexpected)
		}
	}
	s.early = s.early[:0]
}
