package transaction

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/internal/evidence"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Reporting: whether a capture proves that a rule was broken, and when. Each rule says which gaps
// of the capture prevent its findings, and how long a finding waits; see package evidence. All
// findings about messages go through report.

// violation is a rule that seems to be broken.
type violation struct {
	rule   *rule.Rule
	x      *txn // nil if it is about no transaction
	where  rdma.Where
	memory target // if not zero, the finding is reported only if this memory is still not exposed when it is decided
}

// pending is a violation that waits until the capture proves it.
type pending struct {
	rule   *rule.Rule
	where  rdma.Where
	tag    rdma.Tag // of the transaction, 0 for none
	text   string
	until  evidence.Until // Now: when no passing gap is left
	needs  evidence.Needs // without Closing: if the connection ends later, that excuses nothing
	next   rdma.Side      // for Next: the side whose message decides it
	send   int64          // for Delivered: number of the Send
	memory target
}

// The maximum number of findings that wait on one connection, and the cost of each in bytes of the
// budget.
const (
	maxPending  = 64
	pendingCost = 512
)

// gaps returns the gaps of a side.
func (cs *connState) gaps(s rdma.Side) evidence.Gap {
	g := cs.conn.Gaps(s)
	if !cs.receivedPrivate(s) {
		g |= evidence.NoPrivateData
	}
	if cs.incompleteLists[s] > 0 || cs.halfRead[s] {
		g |= evidence.HalfRead
	}
	if cs.truncatedRetransmit {
		g |= evidence.TruncatedAgain
	}
	if cs.table.unordered {
		g |= evidence.Unordered
	}
	if cs.checks.xidReused {
		g |= evidence.XIDReused
	}
	return g
}

// sides returns the gaps as a rule needs them. If neither side is at fault, the gaps of both sides
// count for both.
func (cs *connState) sides(fault record.Opt[rdma.Side]) evidence.Sides {
	own, known := fault.Get()
	if !known {
		both := cs.gaps(0) | cs.gaps(1)
		return evidence.Sides{Own: both, Other: both}
	}
	return evidence.Sides{Own: cs.gaps(own), Other: cs.gaps(own.Other())}
}

// proves reports whether no gap prevents a finding of a rule now. fault is the side at fault.
func (cs *connState) proves(r *rule.Rule, fault rdma.Side) bool {
	return r.Needs.Blocks(cs.sides(record.Some(fault))) == 0
}

// report reports that a rule was broken, at the time that the rule says, if the capture proves it.
func (cs *connState) report(v violation, format string, args ...any) {
	r := v.rule
	until, needs := r.Until, r.Needs
	if until == evidence.Delivered || until == evidence.Answered {
		if cs.unverifiedSend != 0 && r.Severity == record.Error {
			until = evidence.Delivered
			needs.Connection |= evidence.TruncatedAgain | evidence.Missing | evidence.Evicted
		} else if until == evidence.Delivered {
			until = evidence.Now
		}
	}
	gap := needs.Blocks(cs.sides(v.where.AtFault))
	switch {
	case gap.Lasting() != 0:
		cs.table.notJudged(r, gap.Lasting(), v.where.At)
		return
	case until == evidence.Now && gap == 0:
		cs.addFinding(r, v.x, v.where, format, args...)
		return
	}
	if len(cs.pending) >= maxPending { // more, if two connections became one
		cs.table.notJudged(r, evidence.Evicted, v.where.At)
		return
	}
	p := pending{rule: r, where: v.where, text: fmt.Sprintf(format, args...), until: until, needs: needs.Without(evidence.Closing), memory: v.memory, send: cs.unverifiedSend}
	if v.x != nil {
		p.tag = v.x.tag(partCall)
		v.x.pendingFindings++
		p.where.XID, p.where.Transaction, p.where.Operation = record.Some(uint32(v.x.rec.XID)), v.x.rec.ID, v.x.operation()
	}
	p.next = v.where.AtFault.Or(0).Other()
	cs.pending = append(cs.pending, p)
	cs.share.Charge(pendingCost)
}

// moment is the time at which pending findings are decided.
type moment uint8

const (
	beforeMessage moment = iota // a message is complete, but not decoded yet
	afterMessage                // the message is decoded: it may have exposed memory
	acknowledged                // a Send was acknowledged
	atEnd                       // the connection is over
)

// decide decides the findings that wait for a message of a side, or all findings at the end.
func (cs *connState) decide(side rdma.Side, now moment) {
	if len(cs.pending) == 0 {
		return
	}
	cs.settle(func(p *pending) (verdict, evidence.Gap) {
		end := now == atEnd
		gap := p.needs.Blocks(cs.sides(p.where.AtFault))
		switch {
		case gap.Lasting() != 0 || end && gap != 0:
			return dropped, gap
		case p.rule.Until == evidence.Answered && cs.checks.usedVersion != 0: // the other side knows the version
			return excused, 0
		case p.rule.Until == evidence.Answered && !end && (now != afterMessage || isOutstanding(cs, p.tag)):
			return waiting, 0
		case p.until == evidence.Delivered:
			if end {
				return dropped, evidence.Awaited
			}
			return waiting, 0
		case p.until == evidence.Now && gap == 0: // the passing gap is closed
			return proved, 0
		case p.until == evidence.Now && !end, now == acknowledged:
			return waiting, 0
		case (p.memory != target{} || p.rule.CallMayFollow) && p.next == side && now == beforeMessage:
			return waiting, 0
		case p.rule.CallMayFollow && cs.open[p.next].has(p.where.XID): // the Call was captured after its answer
			cs.table.unordered = true
			return excused, 0
		case p.memory != target{} && exposesAll(cs, p.next, p.memory): // the Call was late, or retransmitted
			cs.table.unordered = true
			return excused, 0
		case gap == 0 && (p.next == side || end):
			return proved, 0
		}
		return waiting, 0
	})
}

// isOutstanding reports whether the transaction of a tag has no Reply yet.
func isOutstanding(cs *connState, tag rdma.Tag) bool {
	x, _ := cs.table.tagged(tag)
	return x != nil && x.state == outstanding
}

// decideSend decides the findings about a Send. delivered is true if the Send was delivered as
// captured.
func (cs *connState) decideSend(number int64, delivered bool) {
	if len(cs.pending) == 0 {
		return
	}
	cs.settle(func(p *pending) (verdict, evidence.Gap) {
		if p.until != evidence.Delivered || p.send != number {
			return waiting, 0
		}
		if gap := p.needs.Blocks(cs.sides(p.where.AtFault)); gap != 0 {
			return dropped, gap
		}
		switch {
		case !delivered:
			return excused, 0
		case p.rule.Until == evidence.Answered:
			p.until = evidence.Answered
			return waiting, 0
		}
		return proved, 0
	})
}

// verdict is the decision about a pending finding.
type verdict uint8

const (
	waiting verdict = iota
	proved          // it is reported
	excused         // there was no violation
	dropped         // the capture cannot prove it
)

// settle asks for the verdict on each pending finding, in their order.
func (cs *connState) settle(ask func(*pending) (verdict, evidence.Gap)) {
	kept := cs.pending[:0]
	for i := range cs.pending {
		p := &cs.pending[i]
		v, gap := ask(p)
		if v == waiting {
			kept = append(kept, *p)
			continue
		}
		x, _ := cs.table.tagged(p.tag)
		if x != nil {
			x.pendingFindings--
		}
		switch v {
		case proved:
			cs.addFinding(p.rule, x, p.where, "%s", p.text)
		case dropped:
			cs.table.notJudged(p.rule, gap, p.where.At)
		}
		cs.share.Charge(-pendingCost)
	}
	clear(cs.pending[len(kept):])
	if cs.pending = kept; len(kept) == 0 {
		cs.pending = nil
	}
}

// addFinding reports a finding and records it on the transaction. x may be nil.
func (cs *connState) addFinding(r *rule.Rule, x *txn, where rdma.Where, format string, args ...any) {
	if x != nil {
		x.found(r)
		if x.checks.callBroke == nil && x.answered == &noAnswer && where.AtFault == record.Some(x.side) {
			x.checks.callBroke = r
		}
	}
	cs.conn.Report(r, where, format, args...)
}

// notJudged counts a violation that the capture does not prove because of a gap.
func (t *Table) notJudged(r *rule.Rule, gap evidence.Gap, at record.Stamp) {
	name := gap.Name()
	for i := range t.NotJudged {
		if n := &t.NotJudged[i]; n.Rule == r.ID && n.Gap == name {
			n.Count++
			return
		}
	}
	t.NotJudged = append(t.NotJudged, record.NotJudged{Rule: r.ID, Gap: name, Count: 1, Packet: record.SomeIf(at.Packet, at.Packet != 0)})
}

// noteCopyInDoubt records that an operation was retransmitted or refused. If the capture truncated
// it, the captured copy need not be the one that was delivered.
func noteCopyInDoubt(cs *connState, o *rdma.Operation) {
	if trustIn(o) != trusted {
		cs.truncatedRetransmit = cs.truncatedRetransmit || o.Cut
		cs.decideSend(o.Number, false)
	}
}
