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
	f      *follower
	x      *txn
	at     record.Stamp
	blames record.Opt[rdma.Side]
}

func (c checker) report(r *rule.Rule, format string, args ...any) {
	where := c.where()
	where.Operation = c.x.operation()
	if call := c.x.judged.call; r.Severity == record.Error && call != trusted {
		if c.f.shaken || !c.f.conn.Complete() || call == badCall && c.f.conn.Fills(c.x.side) {
			c.f.notJudged(r, evidence.TruncatedAgain, c.at)
			return
		}
	}
	c.f.report(violation{rule: r, x: c.x, where: where}, format, args...)
}

// state reports what a packet shows that is whole, whatever the Call said.
func (c checker) state(r *rule.Rule, format string, args ...any) {
	where := c.where()
	where.Operation = c.x.operation()
	c.f.tell(r, c.x, where, format, args...)
}

// checks is the checker of a transaction, with nobody to blame.
func (x *txn) checks(at record.Stamp) checker { return checker{f: x.follower, x: x, at: at} }

// where is what a finding says of it.
func (c checker) where() rdma.Where {
	where := c.x.where(c.at)
	where.Blames = c.blames
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
func (c checker) nobody() checker {
	c.blames = record.Opt[rdma.Side]{}
	return c
}

// blaming is the checker with that side to blame.
func (c checker) blaming(s rdma.Side) checker {
	c.blames = record.Some(s)
	return c
}

// judged is what the rules know of a connection.
type judged struct {
	credits  [2]allowance // by side of the caller
	dead     [2]map[uint32]struct{}
	leave    leave                      // of the server, to call
	first    bool                       // version 1 was answered on it
	reused   bool                       // an XID was used again while it was in flight: what is open, and exposed, is not known
	answered [2]record.Opt[record.Time] // last Reply to a side
	newest   [2]int64                   // id of the latest transaction of a side that was answered
	style    *styles                    // nil before a Call exposes anything
}

// join takes over what was known of another connection, whose sides are moved.
func (j *judged) join(o *judged, moved func(rdma.Side) rdma.Side) {
	j.reused, j.first = j.reused || o.reused, j.first || o.first
	for s := range rdma.Side(2) {
		at := moved(s)
		a, b := &j.credits[at], &o.credits[s]
		a.asked, a.grant = either(a.asked, b.asked), either(a.grant, b.grant)
		a.noCall += b.noCall
	}
	switch {
	case j.style == nil:
		j.style = o.style
	case o.style != nil:
		j.style.figures.MixedDirectionCalls += o.style.figures.MixedDirectionCalls
	}
}

// trust is what can be told of whether a Call has come as it stands in the capture.
type trust uint8

const (
	trusted trust = iota
	cutCall       // the capture has cut it: the wire may have corrupted it
	badCall       // its ICRC is bad: its receiver drops it, if its sender fills them in
)

// trustIn is what can be told of a Send.
func trustIn(o *rdma.Operation) trust {
	switch {
	case o.Bad:
		return badCall
	case o.Cut:
		return cutCall
	}
	return trusted
}

// judgement is what the rules know of a transaction.
type judgement struct {
	broken     *rule.Rule         // what makes the responder answer RDMA_ERROR
	callBroke  *rule.Rule         // first rule that the requester broke before the Reply
	doneSent   bool               // the requester sent RDMA_DONE for it
	notCall    bool               // an RDMA_DONE itself
	late       bool               // Reads that were under way at its Reply were reported
	exceeds    bool               // an operation that goes on behind its memory was reported
	ineligible bool               // its Call holds what must not be reduced
	overGrant  bool               // its Call was more than was granted, or nobody knows
	longTold   bool               // its Long Call was judged
	call       trust              // in its Call
	reducible  int8               // results that may be reduced; -1 when that is not known
	maxReply   int64              // the most that the Reply's inline part can be, 0 when that is not known
	inv        record.Opt[uint32] // rdma_inv_handle of its Call
	handles    handles
}

// check holds what Calls and Replies have in common against the rules.
func (f *follower) check(x *txn, m *message) {
	c := x.checks(m.First).blaming(m.side)
	f.checkHeader(c, m)
	if m.header.Length < rpcrdma.FixedLen {
		return
	}
	f.checkSize(c, m)
	f.checkBackward(c, m)
}

// checkCall holds a Call against the rules.
func (f *follower) checkCall(x *txn, m *message) {
	f.check(x, m)
	if m.header.Length < rpcrdma.FixedLen {
		return
	}
	c := x.checks(m.First).blaming(m.side)
	f.checkCallHeader(c, m)
	f.checkCredits(c, m)
	f.checkRefusedEarly(c, m)
	f.checkBackwardCall(c, m)
	f.checkInvHandle(c, m)
	f.styleOfCall(x)
	x.judged.reducible = -1
	if m.payload != nil && m.captured() && m.rpcErr == nil && m.header.Proc == rpcrdma.Msg {
		f.checkArguments(c, m.rpc, m.payload)
	} else if m.payload != nil && m.captured() && m.header.Proc == rpcrdma.Msg {
		f.checkHeaderHoles(c, m.payload)
	}
}

// checkReply holds a Reply against the rules, and against its Call.
func (f *follower) checkReply(x *txn, m *message, orphan bool) {
	f.check(x, m)
	h := m.header
	if h.Length < rpcrdma.FixedLen {
		return
	}
	c := x.checks(m.Last).blaming(m.side)
	f.checkRefusedEarly(c, m)
	if h.Credits == 0 {
		c.report(rule.CreditsGrantedZero, "the Reply grants 0 credits, so the requester may not send another Call")
	}
	f.granting(m)
	if len(h.Reads) > 0 && m.err == nil {
		c.report(rule.ReplyWithReadList, "the Reply has a Read list of %d segments", len(h.Reads))
	}
	f.checkInvalidation(c, m, orphan)
	if h.Proc == rpcrdma.Error {
		f.checkError(c, m, orphan)
		return
	}
	if orphan {
		c.report(rule.ReplyWithoutCall, "no outstanding Call has this XID")
		return
	}
	f.answeredAt(x, m)
	f.checkAnswered(c)
	if m.err == nil && h.Understood() && (h.Proc == rpcrdma.Msg || h.Proc == rpcrdma.NoMsg) && !x.cut {
		f.checkChunks(c, h)
		f.checkResults(c, m)
	}
	f.checkFits(c, m)
	f.checkInvReply(c, m)
	f.styleOfReply(x, m)
}
