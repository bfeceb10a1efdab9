package transaction

import (
	"fmt"
	"time"

	"github.com/rdmadump/rdmadump/dissect/internal/evidence"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Credits and receive buffers (RFC 8166 s.3.3).

// allowance limits the number of Calls that a side may have outstanding.
type allowance struct {
	asked record.Opt[uint32] // credits that the last Call but the current one requested
	grant record.Opt[uint32] // the current grant
	lower record.Opt[uint32] // a lower grant that may not have reached the side yet
	by    uint64             // Seq of the Send that carries the lower grant
	binds record.Time        // time from which the side must know the lower grant; 0 while unknown
	dones int                // number of open transactions that are RDMA_DONEs
	// unread is set if the latest Reply was captured without its credits, so the grant is unknown until the next Reply.
	unread bool
}

// creditRules is what the rules about credits remember of a transaction.
type creditRules struct {
	isDone    bool   // the message is itself an RDMA_DONE
	overGrant bool   // its Call may have exceeded the granted credits
	calls     uint32 // number of Calls that were outstanding with it
}

// done notes that the message is an RDMA_DONE, which uses no credit.
func (r *creditRules) done() { r.isDone = true }

// use notes that the Call uses one of a number of credits, and whether that may exceed the granted ones.
func (r *creditRules) use(calls int, over bool) { r.calls, r.overGrant = uint32(calls), over }

// limit returns the number of Calls that may be outstanding, and false if the capture does not show
// it.
func (a *allowance) limit(handshake bool) (n uint32, known bool) {
	grant, granted := a.grant.Get()
	switch {
	case granted:
		return max(1, min(grant, a.asked.Or(grant))), true
	case handshake && !a.unread:
		return 1, true // until the first Reply (RFC 8166 s.3.3.3)
	}
	return 0, false
}

// request notes the credits that a Call requested.
func (a *allowance) request(credits uint32) { a.asked = record.Some(max(credits, 1)) }

// begin and end count an open transaction that is an RDMA_DONE.
func (a *allowance) begin() { a.dones++ }
func (a *allowance) end()   { a.dones-- }

// take takes the credits that the Send with a Seq grants. A higher grant is valid at
// once, a lower one when it has reached the requester.
func (a *allowance) take(grant uint32, seq uint64) {
	a.unread = false
	now, known := a.grant.Get()
	switch {
	case !known || grant >= now:
		a.grant, a.lower = record.Some(grant), record.Opt[uint32]{}
	case a.lower != record.Some(grant):
		a.lower, a.by, a.binds = record.Some(grant), seq, 0
	}
}

// lose notes a Reply that was captured without its credits, which may have raised the grant.
func (a *allowance) lose() {
	a.grant, a.lower, a.unread = record.Opt[uint32]{}, record.Opt[uint32]{}, true
}

// deliver notes that a Send that was sent at a time was delivered to the side no later than at.
func (a *allowance) deliver(seq uint64, sent, at record.Time) {
	if a.lower.Known() && seq >= a.by && a.binds == 0 {
		a.binds = at + max(at-sent, leastRoundTrip)
	}
}

// join takes over what is known of another connection.
func (a *allowance) join(b *allowance) {
	a.asked, a.grant, a.lower = either(a.asked, b.asked), either(a.grant, b.grant), either(a.lower, b.lower)
	a.by, a.binds = max(a.by, b.by), max(a.binds, b.binds)
	a.dones, a.unread = a.dones+b.dones, a.unread || b.unread
}

// promises reports whether no grant that the capture shows, in force or on its way, is below a number of Calls.
func (a *allowance) promises(calls uint32) bool {
	return calls <= max(1, min(a.grant.Or(calls), a.lower.Or(calls)))
}

// peak is the largest number of Calls of a side that were outstanding at once.
type peak struct {
	proven   int32 // where the capture proves that none of them was answered before
	doubtful int32 // where a Reply may be missing
}

// count notes how many Calls are outstanding.
func (p *peak) count(calls int32, proven bool) {
	if proven {
		p.proven = max(p.proven, calls)
	} else {
		p.doubtful = max(p.doubtful, calls)
	}
}

// join adds what was counted on another connection.
func (p *peak) join(o peak) {
	p.proven, p.doubtful = max(p.proven, o.proven), max(p.doubtful, o.doubtful)
}

// showsCalls reports whether the capture has all Calls of a side, and all Replies to them: nothing was found missing
// after they were counted. When a connection ends, one side closes it, and then is silent; that hides no Call.
func showsCalls(cs *connState, s rdma.Side) bool {
	gaps := cs.sides(record.Some(s))
	const calls = evidence.Missing | evidence.Evicted | evidence.Late
	return (rule.CreditLimitExceeded.Needs.Without(evidence.Closing|evidence.Silent).Blocks(gaps) | gaps.Own&calls).Lasting() == 0
}

// creditsUsed returns the number of Calls of a side that use a credit, and the number of credits if the capture proves
// both: that no Reply is missing, and what the Replies granted.
func creditsUsed(cs *connState, s rdma.Side, at record.Time) (calls int, limit record.Opt[uint32], proven bool) {
	a := &cs.checks.credits[s]
	a.learns(at)
	n, known := a.limit(cs.conn.Setup().Handshake)
	return len(cs.open[s]) - a.dones, record.SomeIf(n, known), known && cs.proves(rule.CreditLimitExceeded, s)
}

// checkCredits compares the number of outstanding Calls with the granted credits.
func checkCredits(c checker, m *message) {
	h := m.header
	a := &c.cs.checks.credits[m.side]
	if h.Proc == rpcrdma.Done && m.err == nil {
		c.x.checks.credits.done()
		a.begin()
		return
	}
	if m.unknownVersion() {
		c.x.checks.credits.use(0, true) // what it may send is unknown
		return
	}
	n, credits, _ := creditsUsed(c.cs, m.side, m.First.Time)
	limit, known := credits.Get()
	lasting := rule.CreditLimitExceeded.Needs.Blocks(c.cs.sides(record.Some(m.side))).Lasting() // a finding waits while other gaps last
	c.x.checks.credits.use(n, !known || lasting != 0 || uint32(n) > limit)
	if known && uint32(n) > limit {
		switch grant, granted := a.grant.Get(); {
		case !granted:
			c.report(rule.CreditLimitExceeded, "%d Calls are outstanding, but before the first Reply only one is allowed%s", n, canceledHint(c.cs, m))
		case grant > limit:
			c.report(rule.CreditLimitExceeded, "%d Calls are outstanding, but %d credits are granted and the requester asked for only %d%s", n, grant, limit, canceledHint(c.cs, m))
		default:
			c.report(rule.CreditLimitExceeded, "%d Calls are outstanding, but only %d credits are granted%s", n, grant, canceledHint(c.cs, m))
		}
	}
	a.request(h.Credits)
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
			return fmt.Sprintf("; the Call with XID 0x%08x has been outstanding for %v: if its RPC was canceled, for example because its process was killed, the requester still has to count it", uint32(x.rec.XID), time.Duration(age).Round(time.Millisecond))
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
	cs.checks.credits[m.side.Other()].take(m.header.Credits, m.Seq)
}

// noteUnreadGrant records that a Reply was captured without its credits, which may have raised the grant.
func noteUnreadGrant(cs *connState, m *message) {
	cs.checks.credits[m.side.Other()].lose()
}

// learns makes a lower grant the current one if the side must know it when it sends a Call. The
// side must know it one round trip after the grant was delivered. An acknowledgement by its adapter
// or its TCP does not show that the side has read the Reply.
func (a *allowance) learns(at record.Time) {
	if lower, known := a.lower.Get(); known && a.binds != 0 && at >= a.binds {
		a.grant, a.lower = record.Some(lower), record.Opt[uint32]{}
	}
}

// noteGrantDelivered records that a Send was delivered to the other side no later than at.
func noteGrantDelivered(cs *connState, o *rdma.Operation, at record.Stamp) {
	cs.checks.credits[o.Side.Other()].deliver(o.Seq, o.Last.Time, at.Time)
}

// leastRoundTrip is the shortest time in which a requester has to learn of a lower grant.
const leastRoundTrip = record.Time(1e6)

// checkNotReady checks whether a receiver that had no receive buffer had to have one.
func checkNotReady(cs *connState, r *rdma.Refusal, x *txn, part int) {
	if r.Kind != rdma.Send || !r.NotReady || r.Later || cs.closing || !cs.isRPC {
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
	switch used := &x.checks.credits; {
	case isCall && named && isFirstRequest(cs, x) && used.calls == 1:
		c.report(rule.FirstNotPosted, "this side had no receive buffer for the first Call of the connection, for which it always has to have one")
	case isCall && !used.overGrant && cs.checks.credits[x.side].promises(used.calls):
		c.report(rule.ReceiveNotPosted, "this side had no receive buffer for a Call, although the Call is within the credits that it granted")
	case !isCall && x.rec.Call != nil:
		c.report(rule.ReceiveNotPosted, "this side had no receive buffer for the Reply to its own Call")
	}
}

// isFirstRequest reports whether the handshake shows that a Call was the first request of its side, so that no unseen
// packet of this side came before it.
func isFirstRequest(cs *connState, x *txn) bool {
	gaps := evidence.Late | evidence.NoHandshake
	if cs.conn.Setup().IWARP { // operations have no numbers there
		gaps |= evidence.Missing
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
	if !r.Fatal || r.Later || !r.TooLong || o == nil || o.Kind != rdma.Send || !cs.negotiated() || !cs.isRPC || o.Broken || !o.Whole() {
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
