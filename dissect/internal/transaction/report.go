package transaction

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/internal/evidence"
	"github.com/rdmadump/rdmadump/dissect/internal/pending"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Reporting: findings about messages go through report, which asks package pending whether the capture
// proves them, and when.

// violation is a rule that seems to be broken.
type violation struct {
	rule   *rule.Rule
	x      *txn // nil if it is about no transaction
	where  rdma.Where
	memory target // if not zero, the finding is reported only if this memory is still not exposed when it is decided
}

// gaps returns the gaps of a side.
func (cs *connState) gaps(s rdma.Side) evidence.Gap {
	g := cs.link.Gaps(s)
	if !cs.receivedPrivate(s) {
		g |= evidence.NoPrivateData
	}
	if cs.incompleteLists[s] > 0 || cs.doubts.halfRead[s] || cs.doubts.guessed[s] {
		g |= evidence.HalfRead
	}
	if cs.doubts.halfRead[s] {
		g |= evidence.NoXID
	}
	if cs.doubts.truncatedRetransmit {
		g |= evidence.TruncatedAgain
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
	f := pending.Finding{Rule: v.rule, Where: v.where, Memory: v.memory, After: cs.table.last}
	switch verdict, gap := cs.pending.Check(&f, cs.doubts.unverifiedSend, (*proofs)(cs)); verdict {
	case pending.Dropped:
		cs.table.notJudged(v.rule, gap, v.where.At)
	case pending.Proved:
		cs.addFinding(v.rule, v.x, v.where, format, args...)
	case pending.Waiting:
		if x := v.x; x != nil {
			f.Tag, f.Where.XID, f.Where.Transaction, f.Where.Operation = x.tag(partCall), record.Some(uint32(x.rec.XID)), x.rec.ID, x.operation()
		}
		f.Text = fmt.Sprintf(format, args...)
		cs.pending.Keep(f)
		cs.share.Charge(pending.Cost)
	}
}

// proofs is what the capture shows of a connection, for package pending.
type proofs connState

func (p *proofs) cs() *connState { return (*connState)(p) }

// Sides implements [pending.Connection].
func (p *proofs) Sides(fault record.Opt[rdma.Side]) evidence.Sides { return p.cs().sides(fault) }

// UsesNewVersion implements [pending.Connection].
func (p *proofs) UsesNewVersion() bool { return p.checks.usedVersion.Known() }

// IsOutstanding implements [pending.Connection].
func (p *proofs) IsOutstanding(tag rdma.Tag) bool {
	x, _ := p.table.tagged(tag)
	return x != nil && x.state == outstanding
}

// Excuses implements [pending.Connection]. The Call was captured after what it allows, so the packets are not in order. A
// Call that was captured before allows nothing: the finding holds in spite of it.
func (p *proofs) Excuses(f *pending.Finding, side rdma.Side) bool {
	excused := f.Rule.CallMayFollow && p.open[side].has(f.Where.XID) || f.Memory != target{} && exposedSince(p.cs(), side, f.Memory, f.After)
	if excused {
		p.link.Disorder()
	}
	return excused
}

// Decided implements [pending.Connection].
func (p *proofs) Decided(f *pending.Finding, v pending.Verdict, gap evidence.Gap) {
	switch v {
	case pending.Proved:
		x, _ := p.table.tagged(f.Tag)
		p.cs().addFinding(f.Rule, x, f.Where, "%s", f.Text)
	case pending.Dropped:
		p.table.notJudged(f.Rule, gap, f.Where.At)
	}
	p.share.Charge(-pending.Cost)
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
		cs.doubts.resent(o.Cut)
		cs.pending.DecideSend(o.Number, false, (*proofs)(cs))
	}
}
