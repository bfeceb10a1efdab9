package transaction

import (
	"github.com/rdmadump/rdmadump/dissect/internal/evidence"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// The rules: each group of them has a file, check_*.go. A rule only speaks when
// the capture proves it.

// checker reports what a message of a transaction breaks.
type checker struct { // small enough to be passed in registers
	cs      *connState
	x       *txn
	at      record.Stamp
	atFault record.Opt[rdma.Side]
}

func (c checker) report(r *rule.Rule, format string, args ...any) {
	where := c.where()
	where.Operation = c.x.operation()
	if call := c.x.checks.callTrust; r.Severity == record.Error && call != trusted {
		if c.cs.truncatedRetransmit || !c.cs.conn.Complete() || call == badICRC && c.cs.conn.Fills(c.x.side) {
			c.cs.notJudged(r, evidence.TruncatedAgain, c.at)
			return
		}
	}
	c.cs.report(violation{rule: r, x: c.x, where: where}, format, args...)
}

// state reports what a packet shows that is whole, whatever the Call said.
func (c checker) reportUnconditionally(r *rule.Rule, format string, args ...any) {
	where := c.where()
	where.Operation = c.x.operation()
	c.cs.addFinding(r, c.x, where, format, args...)
}

// checks is the checker of a transaction, with nobody to blame.
func (x *txn) checker(at record.Stamp) checker { return checker{cs: x.cs, x: x, at: at} }

// where is what a finding says of it.
func (c checker) where() rdma.Where {
	where := c.x.where(c.at)
	where.Blames = c.atFault
	return where
}

// operation is what the RPC is, as far as that is known: "NFS4 READ".
func (x *txn) operation() string {
	if !x.procedure.known {
		return ""
	}
	var r record.Transaction
	x.procedure.fill(&r)
	if principal := nfs.Principal(x.rec.Operations); principal != "" {
		return r.ProgramVersion() + " " + principal
	}
	return r.ProgramProcedure()
}

// nobody is the checker with nobody to blame.
func (c checker) unattributed() checker {
	c.atFault = record.Opt[rdma.Side]{}
	return c
}

// blaming is the checker with that side to blame.
func (c checker) attributedTo(s rdma.Side) checker {
	c.atFault = record.Some(s)
	return c
}

// judged is what the rules know of a connection.
type connChecks struct {
	credits            [2]allowance // by side of the caller
	invalidatedHandles [2]map[uint32]struct{}
	backchannel        backchannelGrant           // of the server, to call
	version1Answered   bool                       // version 1 was answered on it
	xidReused          bool                       // an XID was used again while it was in flight: what is open, and exposed, is not known
	answered           [2]record.Opt[record.Time] // last Reply to a side
	newestAnswered     [2]int64                   // id of the latest transaction of a side that was answered
	invalidation       *invalidationStats         // nil before a Call exposes anything
}

// join takes over what was known of another connection, whose sides are moved.
func (j *connChecks) join(o *connChecks, moved func(rdma.Side) rdma.Side) {
	j.xidReused, j.version1Answered = j.xidReused || o.xidReused, j.version1Answered || o.version1Answered
	for s := range rdma.Side(2) {
		at := moved(s)
		a, b := &j.credits[at], &o.credits[s]
		a.asked, a.grant = either(a.asked, b.asked), either(a.grant, b.grant)
		a.dones += b.dones
	}
	switch {
	case j.invalidation == nil:
		j.invalidation = o.invalidation
	case o.invalidation != nil:
		j.invalidation.figures.MixedDirectionCalls += o.invalidation.figures.MixedDirectionCalls
	}
}

// trust is what can be told of whether a Call has come as it stands in the capture.
type trust uint8

const (
	trusted       trust = iota
	truncatedCopy       // the capture has cut it: the wire may have corrupted it
	badICRC             // its ICRC is bad: its receiver drops it, if its sender fills them in
)

// trustIn is what can be told of a Send.
func trustIn(o *rdma.Operation) trust {
	switch {
	case o.Bad:
		return badICRC
	case o.Cut:
		return truncatedCopy
	}
	return trusted
}

// judgement is what the rules know of a transaction.
type txnChecks struct {
	broken           *rule.Rule         // what makes the responder answer RDMA_ERROR
	callBroke        *rule.Rule         // first rule that the requester broke before the Reply
	doneSent         bool               // the requester sent RDMA_DONE for it
	isDone           bool               // an RDMA_DONE itself
	lateReadReported bool               // Reads that were under way at its Reply were reported
	exceedsReported  bool               // an operation that goes on behind its memory was reported
	ineligible       bool               // its Call holds what must not be reduced
	overGrant        bool               // its Call was more than was granted, or nobody knows
	longReported     bool               // its Long Call was judged
	callTrust        trust              // in its Call
	reducible        int8               // results that may be reduced; -1 when that is not known
	maxReply         int64              // the most that the Reply's inline part can be, 0 when that is not known
	inv              record.Opt[uint32] // rdma_inv_handle of its Call
	handles          handles
}

// check holds what Calls and Replies have in common against the rules.
func checkMessage(cs *connState, x *txn, m *message) {
	c := x.checker(m.First).attributedTo(m.side)
	checkHeader(c, m)
	if m.header.Length < rpcrdma.FixedLen {
		return
	}
	checkSize(c, m)
	checkBackward(c, m)
}

// checkCall holds a Call against the rules.
func checkCall(cs *connState, x *txn, m *message) {
	checkMessage(cs, x, m)
	if m.header.Length < rpcrdma.FixedLen {
		return
	}
	c := x.checker(m.First).attributedTo(m.side)
	checkCallHeader(c, m)
	checkCredits(c, m)
	checkRefusedEarly(c, m)
	checkBackwardCall(c, m)
	checkInvHandle(c, m)
	countHandles(cs, x)
	x.checks.reducible = -1
	if m.payload != nil && m.captured() && m.rpcErr == nil && m.header.Proc == rpcrdma.Msg {
		checkArguments(c, m.rpc, m.payload)
	} else if m.payload != nil && m.captured() && m.header.Proc == rpcrdma.Msg {
		checkHeaderHoles(c, m.payload)
	}
}

// checkReply holds a Reply against the rules, and against its Call.
func checkReply(cs *connState, x *txn, m *message, orphan bool) {
	checkMessage(cs, x, m)
	h := m.header
	if h.Length < rpcrdma.FixedLen {
		return
	}
	c := x.checker(m.Last).attributedTo(m.side)
	checkRefusedEarly(c, m)
	if h.Credits == 0 {
		c.report(rule.CreditsGrantedZero, "the Reply grants 0 credits, so the requester may not send another Call")
	}
	noteGrant(cs, m)
	if len(h.Reads) > 0 && m.err == nil {
		c.report(rule.ReplyWithReadList, "the Reply has a Read list of %d segments", len(h.Reads))
	}
	checkInvalidation(c, m, orphan)
	if h.Proc == rpcrdma.Error {
		checkError(c, m, orphan)
		return
	}
	if orphan {
		c.report(rule.ReplyWithoutCall, "no outstanding Call has this XID")
		return
	}
	noteAnswered(cs, x, m)
	checkAnswered(c)
	if m.err == nil && h.Understood() && (h.Proc == rpcrdma.Msg || h.Proc == rpcrdma.NoMsg) && !x.listsIncomplete {
		checkChunks(c, h)
		checkResults(c, m)
	}
	checkFits(c, m)
	checkInvReply(c, m)
	countInvalidation(cs, x, m)
}
