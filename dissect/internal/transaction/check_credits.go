package transaction

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Credits and receive buffers (RFC 8166 s.3.3).

// creditRules is what the rules about credits remember of a transaction.
type creditRules struct {
	isDone    bool   // the message is itself an RDMA_DONE
	overGrant bool   // its Call may have exceeded the granted credits, or none were granted in its direction
	calls     uint32 // number of Calls that were outstanding with it
}

// done notes that the message is an RDMA_DONE, which uses no credit.
func (r *creditRules) done() { r.isDone = true }

// use notes that the Call uses one of a number of credits, and whether that may exceed the granted ones.
func (r *creditRules) use(calls int, over bool) { r.calls, r.overGrant = uint32(calls), over }

// showsCalls reports whether the capture has all Calls of a side, and all Replies to them: nothing was found missing
// after they were counted. When a connection ends, one side closes it, and then is silent; that hides no Call.
func showsCalls(cs *connState, s rdma.Side) bool {
	gaps := cs.sides(record.Some(s))
	const calls = rule.Missing | rule.Evicted | rule.Late
	return (rule.CreditLimitExceeded.Needs.Without(rule.Closing|rule.Silent).Blocks(gaps) | gaps.Own&calls).Lasting() == 0
}

// creditsUsed returns the number of Calls of a side that use a credit, and the number of credits. The capture proves both if
// [rule.CreditLimitExceeded] is proven: no Reply is missing.
func creditsUsed(cs *connState, s rdma.Side, at record.Time) (calls int, limit record.Opt[uint32]) {
	a := &cs.checks.credits[s]
	a.Learn(at)
	n, known := a.Limit(cs.link.Setup().Handshake)
	return len(cs.open[s]) - a.Dones(), record.SomeIf(n, known)
}

// checkCredits compares the number of outstanding Calls with the granted credits.
func checkCredits(c checker, m *message) {
	h := m.header
	a := &c.cs.checks.credits[m.side]
	if h.Proc == rpcrdma.Done && m.err == nil {
		c.x.checks.credits.done()
		a.Begin()
		noteUnowed(c.cs, m)
		return
	}
	noteBuffersPosted(c.cs, c.x, true)
	if m.unknownVersion() {
		c.x.checks.credits.use(0, true) // what it may send is unknown
		noteUnowed(c.cs, m)
		return
	}
	n, credits := creditsUsed(c.cs, m.side, m.First.Time)
	limit, known := credits.Get()
	lasting := rule.CreditLimitExceeded.Needs.Blocks(c.cs.sides(record.Some(m.side))).Lasting() // a finding waits while other gaps last
	none := c.cs.direction(m.side) == backward && !a.Grant().Known() && c.cs.checks.backchannel != backchannelGranted
	over := none || !known || uint32(n) > limit
	c.x.checks.credits.use(n, over || lasting != 0)
	if over {
		noteUnowed(c.cs, m)
	}
	if known && uint32(n) > limit {
		switch grant, granted := a.Grant().Get(); {
		case !granted:
			c.report(rule.CreditLimitExceeded, "%d Calls are in flight, but before the first Reply only one is allowed%s", n, canceledHint(c.cs, m))
		case grant > limit:
			c.report(rule.CreditLimitExceeded, "%d Calls are in flight, but %s %s granted and the requester asked for only %d%s", n, record.Plural(grant, "credit"), record.Are(grant), limit, canceledHint(c.cs, m))
		default:
			c.report(rule.CreditLimitExceeded, "%d Calls are in flight, but only %s %s granted%s", n, record.Plural(grant, "credit"), record.Are(grant), canceledHint(c.cs, m))
		}
	}
	a.Request(h.Credits)
}

// canceledHint returns a hint if the oldest outstanding Call of the sender of m has waited for long: its
// RPC may have been canceled, and its credit is still in use.
func canceledHint(cs *connState, m *message) string {
	n := 0
	for x := cs.calls.first; x != nil && n < lookAt; x, n = x.next, n+1 {
		if x.side != m.side {
			continue
		}
		if age := m.First.Time - x.call.Time; age >= patience {
			return fmt.Sprintf("; the Call with XID 0x%08x has been in flight for %s: if its RPC was canceled, for example because its process was killed, the requester still has to count it", uint32(x.rec.XID), field.Duration(int64(age)))
		}
		break
	}
	return ""
}

// noteGrant records the credits that a Reply or an RDMA_ERROR grants.
func noteGrant(cs *connState, m *message) {
	if m.header.Credits == 0 || m.unknownVersion() {
		return // it was reported, and the meaning of 0 is undefined
	}
	cs.checks.credits[m.side.Other()].Take(m.header.Credits, m.Seq)
}

// noteUnreadGrant records that a Reply was captured without its credits, which may have raised the grant.
func noteUnreadGrant(cs *connState, m *message) {
	cs.checks.credits[m.side.Other()].Lose()
}

// noteGrantDelivered records that a Send was delivered to the other side no later than at.
func noteGrantDelivered(cs *connState, o *rdma.Operation, at record.Stamp) {
	cs.checks.credits[o.Side.Other()].Deliver(o.Seq, o.Last.Time, at.Time)
}

// checkNotReady checks whether a receiver that had no receive buffer had to have one.
func checkNotReady(cs *connState, r *rdma.Refusal, x *txn, part int) {
	if r.Kind != rdma.Send || !r.NotReady || r.Later || cs.closing || !cs.upper.IsRPC() {
		return
	}
	if x == nil {
		noteRefusedEarly(cs, r)
		return
	}
	reportNotReady(cs, x, part, r.Op != nil, rdma.Where{At: r.At, AtFault: record.Some(r.By)})
}

// reportNotReady reports that a side had no receive buffer for a part of a transaction, its Call or its Reply. The refusal
// named the Send, or the part is the only one that it can be about as far as the capture shows.
func reportNotReady(cs *connState, x *txn, part int, named bool, where rdma.Where) {
	by, isCall := where.AtFault.Or(0), part == partCall
	message := &x.answer
	if isCall {
		message = &x.call
	}
	if size, _ := receiveSize(cs, by); int64(message.SendBytes.Or(0)) > size {
		return // some adapters report a Send that is too long in this way
	}
	c := x.checker(where.At).attributedTo(by)
	var taken unowed // the buffers that other messages took
	if cs.rareState != nil {
		taken = cs.rareState.unowed[by.Other()]
	}
	switch used := &x.checks.credits; {
	case isCall && taken.call != 0 || !isCall && taken.reply != 0:
	case isCall && named && isFirstRequest(cs, x) && used.calls == 1 && cs.direction(x.side) != backward:
		c.report(rule.FirstNotPosted, "this side had no receive buffer for the first Call of the connection, for which it always has to have one")
	case isCall && !used.overGrant && cs.checks.credits[x.side].Promises(used.calls):
		c.report(rule.ReceiveNotPosted, "this side had no receive buffer for a Call, although the Call is within the credits that it granted")
	case !isCall && x.rec.Call != nil:
		c.report(rule.ReceiveNotPosted, "this side had no receive buffer for the Reply to its own Call")
	}
}

// unowed is the number (Seq) of the latest Send of a side for which the other side need not have had a receive buffer. It may
// have taken the one that was meant for an expected message, and no document says when that has to be posted again.
type unowed struct {
	call, reply uint64 // 0 if the receiver has the buffers for the Calls, and for the Replies, that it has to expect
	delivered   bool
}

// noteUnowed notes a message that its receiver need not have had a buffer for.
func noteUnowed(cs *connState, m *message) {
	cs.rare().unowed[m.side] = unowed{call: m.Seq, reply: m.Seq}
}

// noteUnowedDelivered notes that a Send was acknowledged, which may be such a message or a later one.
func noteUnowedDelivered(cs *connState, o *rdma.Operation) {
	if s := cs.rareState; s != nil && o.Seq >= s.unowed[o.Side].call {
		s.unowed[o.Side].delivered = true
	}
}

// noteBuffersPosted notes that a side has the buffers again: those for Replies when it sends its only Call after the message was
// delivered, and those for Calls when it grants credits in the Reply to it or to a later Call (RFC 8166 s.3.3.1).
func noteBuffersPosted(cs *connState, x *txn, isCall bool) {
	s := cs.rareState
	if s == nil {
		return
	}
	if from := &s.unowed[x.side.Other()]; isCall && from.delivered && len(cs.open[x.side]) == 1 {
		from.reply = 0
	}
	if from := &s.unowed[x.side]; !isCall && x.callSeq >= from.call {
		from.call = 0
	}
}

// isFirstRequest reports whether the handshake shows that a Call was the first request of its side, so that no unseen
// packet of this side came before it.
func isFirstRequest(cs *connState, x *txn) bool {
	gaps := rule.Late | rule.NoHandshake
	if cs.link.Setup().IWARP { // operations have no numbers there
		gaps |= rule.Missing
	}
	return x.callSeq == 1 && cs.gaps(x.side)&gaps == 0
}

// noteRefusedEarly records that a Send was refused before all of its packets were sent.
// checkRefusedEarly completes the check when the Send is complete.
func noteRefusedEarly(cs *connState, r *rdma.Refusal) {
	if r.Op != nil && r.Op.Kind == rdma.Send {
		s := cs.rare()
		s.refused[r.Op.Side], s.refusedAt[r.Op.Side] = r.Op.Seq, r.At
	}
}

// checkRefusedEarly completes the check that noteRefusedEarly started.
func checkRefusedEarly(c checker, m *message) {
	s := c.cs.rareState
	if s == nil || s.refused[m.side] != m.Seq || m.Seq == 0 {
		return
	}
	s.refused[m.side] = 0
	part := partReply
	if m.side == c.x.side {
		part = partCall
	}
	reportNotReady(c.cs, c.x, part, true, rdma.Where{At: s.refusedAt[m.side], AtFault: record.Some(m.side.Other())})
}

// checkTooSmall compares a Send that the receiver rejected as too long with the size that the
// receiver announced.
func checkTooSmall(cs *connState, r *rdma.Refusal, x *txn) {
	o := r.Op
	if !r.Fatal || r.Later || !r.TooLong || o == nil || o.Kind != rdma.Send || !cs.negotiated() || !cs.upper.IsRPC() || o.Broken || !o.Whole() {
		return
	}
	size, stated := receiveSize(cs, r.By)
	if o.Length > size || o.Length > int64(inlineThreshold(cs, o.Side)) {
		return // the sender exceeded the inline threshold: see checkSize
	}
	how := "the default, because it announced no size"
	if stated {
		how = "which it announced"
	}
	const text = "the receiver rejected a Send of %d bytes (%s), although it has to accept %d bytes, %s"
	if x != nil {
		x.checker(r.At).attributedTo(r.By).report(rule.ReceiveTooSmall, text, o.Length, r.Reason, size, how)
		return
	}
	cs.report(violation{rule: rule.ReceiveTooSmall, where: rdma.Where{At: r.At, AtFault: record.Some(r.By)}}, text, o.Length, r.Reason, size, how)
}
