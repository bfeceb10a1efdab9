package transaction

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Findings: a check reports a violation, and decide says whether the capture proves it: at once, when something is captured that it
// waits for, or when its RPC or its connection is over. What a rule needs, and what it waits for, is in its row of package rule.

// violation is a rule that seems to be broken.
type violation struct {
	rule   *rule.Rule
	x      *txn // nil if it is about no transaction
	where  rdma.Where
	memory target // if not zero, the finding is reported only if this memory is still not exposed when it is decided
}

// finding is a violation that is not decided.
type finding struct {
	violation          // without its transaction once it waits
	tag       rdma.Tag // of its transaction, 0 for none
	after     int64    // id of the latest transaction when it was found: memory that an earlier one exposes is no excuse
	text      string   // its sentence, once it waits
	needs     rule.Needs
	send      int64       // number of the Send that shows it while it is not known whether it was delivered as captured, else 0
	next      rdma.Side   // for Next: the side whose message decides it
	heard     bool        // there was such a message
	answer    answerShows // for Answered and FellBack
}

// answerShows is what a later packet shows of a finding.
type answerShows uint8

const (
	nothingYet answerShows = iota
	violated
	notViolated
	neither // the answer was captured only in part
)

// shown is what the capture shows when a finding is decided.
type shown struct {
	rule.Sides
	over       bool // no more packet is waited for
	newVersion bool // both sides use a version that this program does not know
	excused    bool // a Call was captured after what it allows
}

// verdict is the decision about a finding.
type verdict uint8

const (
	wait verdict = iota
	tell
	drop // because of a gap, or because nothing was wrong
)

// answerUnseen are the gaps because of which the capture may lack the answer to a Call.
const answerUnseen = rule.HalfRead | rule.Missing | rule.Awaited | rule.Silent | rule.Evicted | rule.Unordered

// decide says what becomes of a finding, and because of which gap it is dropped, if any.
func (f *finding) decide(s shown) (verdict, rule.Gap) {
	until, gap := f.rule.Until, f.needs.Blocks(s.Sides)
	switch {
	case gap.Lasting() != 0:
		return drop, gap.Lasting()
	case s.over && gap != 0:
		return drop, gap
	case f.answer == notViolated || until == rule.Answered && s.newVersion || s.excused:
		return drop, 0
	case f.answer == neither:
		return drop, rule.HalfRead
	case s.over && f.send != 0:
		return drop, rule.Awaited
	case f.send != 0 || gap != 0:
		return wait, 0
	case f.answer == violated:
		return tell, 0
	case s.over && until == rule.Answered && s.Other&answerUnseen != 0:
		return drop, s.Other & answerUnseen
	case s.over || until == rule.Next && f.heard:
		return tell, 0
	case until == rule.Next || until == rule.Answered || until == rule.FellBack:
		return wait, 0
	}
	return tell, 0
}

// maxFindings is the maximum number of findings that wait on one connection, and findingCost the cost of each in bytes of the budget.
const (
	maxFindings = 64
	findingCost = 512
)

// report reports that a rule was broken, when the capture proves it.
func (cs *connState) report(v violation, format string, args ...any) {
	f := finding{violation: v, needs: v.rule.Needs, after: cs.table.last, next: v.where.AtFault.Or(0).Other()}
	if send := cs.doubts.unverifiedSend; send != 0 && v.rule.Until != rule.Now && v.rule.Until != rule.Next && v.rule.Severity != record.Note {
		f.send = send
		f.needs.Connection |= rule.TruncatedAgain | rule.Missing | rule.Evicted
	}
	what, gap := f.decide(shown{Sides: cs.sides(v.where.AtFault)})
	if what == wait && len(cs.findings) >= maxFindings { // more, if two connections became one
		what, gap = drop, rule.Evicted
	}
	switch what {
	case drop:
		cs.table.notJudged(v.rule, gap, v.where.At)
	case tell:
		cs.addFinding(v.rule, v.x, v.where, format, args...)
	case wait:
		if x := v.x; x != nil {
			f.tag, f.where.XID, f.where.Transaction, f.where.Operation = x.tag(partCall), record.Some(uint32(x.rec.XID)), x.rec.ID, x.operation()
		}
		f.x, f.text, f.needs = nil, fmt.Sprintf(format, args...), f.needs.Without(rule.Closing) // a connection that ends later excuses nothing
		cs.findings = append(cs.findings, f)
		cs.share.Charge(findingCost)
	}
}

// everything is the tag of all transactions.
const everything = ^rdma.Tag(0)

// settle decides the findings that wait, in their order. What was captured is noted on each before, unless note is nil. If over is
// the tag of a transaction, it is over, and so is the connection if it is everything.
func (cs *connState) settle(over rdma.Tag, note func(*finding)) {
	if len(cs.findings) == 0 {
		return
	}
	kept := cs.findings[:0]
	for i := range cs.findings {
		f := &cs.findings[i]
		if note != nil {
			note(f)
		}
		s := shown{
			Sides:      cs.sides(f.where.AtFault),
			over:       over == everything || over == f.tag && over != 0,
			newVersion: cs.checks.usedVersion.Known(),
			excused:    f.rule.CallMayFollow && cs.open[f.next].has(f.where.XID) || f.memory != target{} && exposedSince(cs, f.next, f.memory, f.after),
		}
		switch what, gap := f.decide(s); what {
		case wait:
			kept = append(kept, *f)
			continue
		case tell:
			x, _ := cs.table.tagged(f.tag)
			cs.addFinding(f.rule, x, f.where, "%s", f.text)
		case drop:
			if gap != 0 {
				cs.table.notJudged(f.rule, gap, f.where.At)
			} else if s.excused { // the packets are not in order
				cs.link.Disorder()
			}
		}
		cs.share.Charge(-findingCost)
	}
	clear(cs.findings[len(kept):])
	if cs.findings = kept; len(kept) == 0 {
		cs.findings = nil
	}
}

// sendDelivered notes whether a Send was delivered as captured.
func (cs *connState) sendDelivered(number int64, asCaptured bool) {
	cs.settle(0, func(f *finding) {
		if f.send == number && asCaptured {
			f.send = 0
		} else if f.send == number {
			f.answer = notViolated
		}
	})
}

// answerSeen notes what an answer shows of the findings of a rule about the transaction of a tag, or about any if it is 0. If it shows
// that nothing is wrong with what was done, as is the rule of the finding, and neither side is at fault.
func (cs *connState) answerSeen(r, as *rule.Rule, tag rdma.Tag, shows answerShows) {
	cs.settle(0, func(f *finding) {
		if f.rule != r || tag != 0 && f.tag != tag {
			return
		}
		if f.answer = shows; as != nil && shows == violated {
			f.rule, f.where.AtFault = as, record.Opt[rdma.Side]{}
		}
	})
}

// gaps returns the gaps of a side.
func (cs *connState) gaps(s rdma.Side) rule.Gap {
	g := cs.link.Gaps(s)
	if !cs.receivedPrivate(s) {
		g |= rule.NoPrivateData
	}
	if cs.incompleteLists[s] > 0 || cs.doubts.halfRead[s] || cs.doubts.guessed[s] {
		g |= rule.HalfRead
	}
	if cs.doubts.halfRead[s] {
		g |= rule.NoXID
	}
	if cs.doubts.truncatedRetransmit {
		g |= rule.TruncatedAgain
	}
	if cs.checks.xidReused {
		g |= rule.XIDReused
	}
	return g
}

// sides returns the gaps as a rule needs them. If neither side is at fault, the gaps of both sides
// count for both.
func (cs *connState) sides(fault record.Opt[rdma.Side]) rule.Sides {
	own, known := fault.Get()
	if !known {
		both := cs.gaps(0) | cs.gaps(1)
		return rule.Sides{Own: both, Other: both}
	}
	return rule.Sides{Own: cs.gaps(own), Other: cs.gaps(own.Other())}
}

// proves reports whether no gap prevents a finding of a rule now. fault is the side at fault.
func (cs *connState) proves(r *rule.Rule, fault rdma.Side) bool {
	return r.Needs.Blocks(cs.sides(record.Some(fault))) == 0
}

// addFinding reports a finding and records it on the transaction. x may be nil.
func (cs *connState) addFinding(r *rule.Rule, x *txn, where rdma.Where, format string, args ...any) {
	if x != nil {
		x.rec.found(r, where.AtFault == record.Some(x.side))
		if x.answered == &noAnswer && where.AtFault == record.Some(x.side) {
			x.checks.header.callBreaks(r)
		}
	}
	cs.link.Report(r, where, format, args...)
}

// notJudged counts a violation that the capture does not prove because of a gap.
func (t *Table) notJudged(r *rule.Rule, gap rule.Gap, at record.Stamp) {
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
		cs.doubts.truncatedRetransmit = cs.doubts.truncatedRetransmit || o.Cut
		cs.sendDelivered(o.Number, false)
	}
}
