package transaction

import (
	"github.com/rdmadump/rdmadump/dissect/internal/credits"
	"github.com/rdmadump/rdmadump/dissect/internal/memory"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// The rules: each group of rules has a file, check_*.go. A rule reports a finding only if the
// capture proves it.

// checker reports the rules that a message of a transaction breaks.
type checker struct { // small enough to be passed in registers
	cs      *connState
	x       *txn
	at      record.Stamp
	atFault record.Opt[rdma.Side]
	body    *rpcBody // the arguments or results that are checked; nil if they are not decoded
}

func (c checker) report(r *rule.Rule, format string, args ...any) {
	where := c.where()
	where.Operation = c.x.operation()
	if call := c.x.checks.trust; r.Severity == record.Error && call != trusted {
		if c.cs.doubts.truncatedRetransmit || !c.cs.link.Complete() || call == badICRC && c.cs.fillsICRC(c.x.side) {
			c.cs.table.notJudged(r, rule.TruncatedAgain, c.at)
			return
		}
	}
	c.cs.report(violation{rule: r, x: c.x, where: where}, format, args...)
}

// reportUnconditionally reports a finding that a packet proves by itself, even if the Call cannot
// be trusted.
func (c checker) reportUnconditionally(r *rule.Rule, format string, args ...any) {
	where := c.where()
	where.Operation = c.x.operation()
	c.cs.addFinding(r, c.x, where, format, args...)
}

// checker returns a checker for the transaction that attributes findings to neither side.
func (x *txn) checker(at record.Stamp) checker { return checker{cs: x.cs, x: x, at: at} }

// where returns the packet, the transaction and the side at fault for a finding.
func (c checker) where() rdma.Where {
	where := c.x.where(c.at)
	where.AtFault = c.atFault
	return where
}

// operation returns the name of the RPC, such as "NFS4 READ", or "" if the procedure is unknown.
func (x *txn) operation() string {
	if !x.procedure.known {
		return ""
	}
	var r record.Transaction
	x.procedure.fill(&r)
	if principal := nfs.PrincipalOperation(x.rec.Operations); principal != "" {
		return r.ProgramVersion() + " " + principal
	}
	return r.ProgramProcedure()
}

// unattributed returns a checker that attributes findings to neither side.
func (c checker) unattributed() checker {
	c.atFault = record.Opt[rdma.Side]{}
	return c
}

// attributedTo returns a checker that attributes findings to a side.
func (c checker) attributedTo(s rdma.Side) checker {
	c.atFault = record.Some(s)
	return c
}

// connChecks is the state that the rules keep for a connection.
type connChecks struct {
	credits            [2]credits.Allowance       // by side of the caller
	invalidatedHandles [2]invalidated             // by side of their owner
	backchannel        backchannelGrant           // whether the server may send Calls
	asking             int                        // number of outstanding Calls that ask for a backchannel
	persistentReported rule.Once                  // memory that is registered persistently and exposed twice was reported
	usedVersion        record.Opt[uint32]         // a version that this program does not know and both sides use
	versionUse         [2]versionUse              // by side
	xidReused          bool                       // an XID was reused while a Call with it was outstanding, so it is unknown which Calls and memory are current
	answered           [2]record.Opt[record.Time] // time of the last Reply to a side
	newestAnswered     [2]int64                   // id of the latest transaction of a side that was answered
	invalidation       *invalidationStats         // nil before a Call exposes memory
}

// join merges the state of another connection; moved maps its sides to the sides of this
// connection.
func (j *connChecks) join(o *connChecks, moved func(rdma.Side) rdma.Side) {
	j.xidReused = j.xidReused || o.xidReused
	j.asking += o.asking
	j.usedVersion = either(j.usedVersion, o.usedVersion)
	j.persistentReported = j.persistentReported || o.persistentReported
	j.backchannel = max(j.backchannel, o.backchannel)
	for s := range rdma.Side(2) {
		at := moved(s)
		j.credits[at].Join(&o.credits[s])
		j.versionUse[at].join(o.versionUse[s])
		j.invalidatedHandles[at].join(&o.invalidatedHandles[s])
		j.answered[at] = either(j.answered[at], o.answered[s])
		j.newestAnswered[at] = max(j.newestAnswered[at], o.newestAnswered[s])
	}
	switch {
	case j.invalidation == nil:
		j.invalidation = o.invalidation
	case o.invalidation != nil:
		j.invalidation.figures.MixedDirectionCalls += o.invalidation.figures.MixedDirectionCalls
		j.invalidation.figures.MixedRegistrationCalls += o.invalidation.figures.MixedRegistrationCalls
		for _, handle := range o.invalidation.recent {
			j.invalidation.noteHandle(handle)
		}
	}
}

// trust is the degree of certainty that the captured copy of a Call is the copy that was delivered.
type trust uint8

const (
	trusted       trust = iota
	truncatedCopy       // the capture truncated it, so its checksum cannot be verified
	badICRC             // its ICRC is bad: the receiver drops it, unless the sender does not compute ICRCs
)

// trustIn returns how far the captured copy of a Send can be trusted.
func trustIn(o *rdma.Operation) trust {
	switch {
	case o.Bad:
		return badICRC
	case o.Cut:
		return truncatedCopy
	}
	return trusted
}

// txnChecks is what the rules remember of a transaction. Each group of rules writes only its own part.
type txnChecks struct {
	header  headerRules
	credits creditRules
	session sessionRules
	memory  memoryRules
	binding bindingRules
	trust   trust // whether its Call can be trusted
	guessed bool  // the capture lacks what would show whether its first message is a Call
}

// guess notes whether it is a guess that the first message is a Call, or none.
func (c *txnChecks) guess(is bool) { c.guessed = is }

// checkMessage checks the rules that apply to Calls and Replies.
func checkMessage(cs *connState, x *txn, m *message) {
	c := x.checker(m.First).attributedTo(m.side)
	checkHeader(c, m)
	if m.header.Length < rpcrdma.FixedLen {
		return
	}
	checkSize(c, m)
	checkBackward(c, m)
}

// checkCall checks a Call.
func checkCall(cs *connState, x *txn, m *message) {
	if m.plain {
		checkPlainHeader(cs, x, m)
		return
	}
	noteVersionUse(cs, m)
	if !m.guessed {
		checkMessage(cs, x, m)
	}
	if m.guessed || m.header.Length < rpcrdma.FixedLen {
		if cs.direction(m.side) != backward {
			noteBackchannelRequest(cs, x, m)
		}
		return
	}
	c := x.checker(m.First).attributedTo(m.side)
	checkCallHeader(c, m)
	checkCredits(c, m)
	checkRefusedEarly(c, m)
	checkBackwardCall(c, m)
	checkInvHandle(c, m)
	checkExposed(c)
	checkEmptySegments(c)
	if x.memory.ReplyChunk && !x.memory.Incomplete && len(x.memory.Chunk(memory.ReplyChunk, 0)) == 0 {
		c.report(rule.ReducedIneligible, "the Reply chunk of the Call has no segments, so it cannot contain a Reply")
	}
	countHandles(cs, x)
	x.checks.binding.begin()
	if m.payload != nil && m.captured() && m.rpcErr == nil && m.header.Proc == rpcrdma.Msg {
		checkArguments(c, m.rpc, m.payload, m.arguments)
	} else if m.payload != nil && m.captured() && m.header.Proc == rpcrdma.Msg {
		checkHeaderHoles(c, m.payload)
	}
}

// checkReply checks a Reply and compares it with its Call.
func checkReply(cs *connState, x *txn, m *message, withoutCall bool) {
	if m.plain {
		checkPlainReply(cs, x, m, withoutCall)
		return
	}
	noteVersionUse(cs, m)
	if m.guessed {
		noteUnreadGrant(cs, m)
		return
	}
	noteVersion(cs, x, m)
	checkMessage(cs, x, m)
	h := m.header
	if h.Length < rpcrdma.FixedLen {
		noteUnreadGrant(cs, m)
		return
	}
	c := x.checker(m.Last).attributedTo(m.side)
	checkRefusedEarly(c, m)
	if h.Credits == 0 && !m.unknownVersion() {
		c.report(rule.CreditsGrantedZero, "the Reply grants 0 credits, so the requester may not send another Call")
	}
	noteGrant(cs, m)
	if len(h.Reads) > 0 && m.err == nil {
		c.report(rule.ReplyWithReadList, "the Reply has a Read list of %d segments", len(h.Reads))
	}
	if !m.unknownVersion() {
		checkInvalidation(c, m, withoutCall)
	}
	if h.Proc == rpcrdma.Error {
		checkError(c, m, withoutCall)
		return
	}
	if withoutCall && (wasRepeated(cs, m.side.Other(), h.XID) || cs.doubts.guessed[m.side.Other()] && cs.answered(m.side, h.XID)) {
		return
	}
	if withoutCall && (m.err != nil || h.Proc == rpcrdma.Done || h.Proc > rpcrdma.Error) {
		return // it was reported, and is no Reply, or may be none
	}
	if withoutCall {
		c.report(rule.ReplyWithoutCall, "no Call in flight has this XID")
		return
	}
	noteAnswered(cs, x, m)
	checkAnswered(c, h)
	if m.err == nil && h.Understood() && (h.Proc == rpcrdma.Msg || h.Proc == rpcrdma.NoMsg) && !x.memory.Incomplete {
		checkChunks(c, h)
		checkAllRead(c)
		checkResults(c, m)
	}
	checkFits(c, m)
	checkInvReply(c, m)
	countInvalidation(cs, x, m)
}
