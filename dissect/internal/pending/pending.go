// Package pending keeps the findings of a connection that wait until the capture proves them. Each rule
// says which gaps of the capture prevent its findings, and how long a finding waits; see package
// evidence. This package knows neither messages nor transactions: it asks a [Connection] what the
// capture shows.
package pending

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/evidence"
	"github.com/rdmadump/rdmadump/dissect/internal/memory"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Finding is a rule that seems to be broken.
type Finding struct {
	Rule   *rule.Rule
	Where  rdma.Where
	Tag    rdma.Tag      // of its transaction, 0 for none
	Memory memory.Target // if not zero, it is reported only if no Call has exposed this memory when it is decided
	After  int64         // id of the latest transaction when it was found: Memory that an earlier one exposes is no excuse
	Text   string        // the sentence of the finding, once it waits

	until evidence.Until // Now: when no passing gap is left
	needs evidence.Needs // without Closing: if the connection ends later, that excuses nothing
	next  rdma.Side      // for Next: the side whose message decides it
	send  int64          // for Delivered: number of the Send
}

// Connection is what the capture shows of a connection, now.
type Connection interface {
	// Sides returns the gaps of the capture as a rule needs them, if a side is at fault.
	Sides(fault record.Opt[rdma.Side]) evidence.Sides
	// UsesNewVersion reports whether both sides use a version that this program does not know.
	UsesNewVersion() bool
	// IsOutstanding reports whether the transaction of a tag has no Reply yet.
	IsOutstanding(tag rdma.Tag) bool
	// Excuses reports whether a Call of a side that came after a finding shows that there was no
	// violation: it has the XID of the finding, or exposes its memory.
	Excuses(f *Finding, side rdma.Side) bool
	// Decided takes a finding that no longer waits. The gap is why it was dropped.
	Decided(f *Finding, v Verdict, gap evidence.Gap)
}

// Verdict is the decision about a finding.
type Verdict uint8

// The verdicts.
const (
	Waiting Verdict = iota
	Proved          // it is reported
	Excused         // there was no violation
	Dropped         // the capture cannot prove it
)

// Moment is the time at which findings are decided.
type Moment uint8

// The moments.
const (
	BeforeMessage Moment = iota // a message is complete, but not decoded yet
	AfterMessage                // the message is decoded: it may have exposed memory
	Acknowledged                // a Send was acknowledged
	AtEnd                       // the connection is over
)

// most is the maximum number of findings that wait on one connection, and Cost the cost of each in bytes
// of the budget.
const (
	most = 64
	Cost = 512
)

// Findings are the findings of a connection that wait, in their order.
type Findings struct{ list []Finding }

// Len returns the number of findings that wait.
func (fs *Findings) Len() int { return len(fs.list) }

// Concern reports whether a finding about the transaction of a tag waits.
func (fs *Findings) Concern(tag rdma.Tag) bool {
	return slices.ContainsFunc(fs.list, func(f Finding) bool { return f.Tag == tag })
}

// Check decides about a new finding. Send is the number of the Send that shows it if the Send cannot be
// verified, and 0 otherwise. If the verdict is Waiting, the caller completes the finding, and keeps it.
func (fs *Findings) Check(f *Finding, send int64, c Connection) (Verdict, evidence.Gap) {
	r := f.Rule
	f.until, f.needs, f.send, f.next = r.Until, r.Needs, send, f.Where.AtFault.Or(0).Other()
	switch doubted := send != 0 && r.Severity != record.Note; {
	case r.Until == evidence.Now || r.Until == evidence.Next:
	case doubted:
		f.until = evidence.Delivered
		f.needs.Connection |= evidence.TruncatedAgain | evidence.Missing | evidence.Evicted
	case r.Until == evidence.Delivered:
		f.until = evidence.Now
	}
	gap := f.needs.Blocks(c.Sides(f.Where.AtFault))
	switch {
	case gap.Lasting() != 0:
		return Dropped, gap.Lasting()
	case f.until == evidence.Now && gap == 0:
		return Proved, 0
	case len(fs.list) >= most: // more, if two connections became one
		return Dropped, evidence.Evicted
	}
	return Waiting, 0
}

// Keep adds a finding that waits, after [Findings.Check].
func (fs *Findings) Keep(f Finding) {
	f.needs = f.needs.Without(evidence.Closing)
	fs.list = append(fs.list, f)
}

// Accessed notes that memory was accessed before any Call that follows: none excuses the findings about it.
func (fs *Findings) Accessed(m memory.Target) {
	for i := range fs.list {
		if fs.list[i].Memory == m {
			fs.list[i].Memory = memory.Target{}
		}
	}
}

// Join adds the findings of another connection; moved maps its sides to the sides of this connection.
func (fs *Findings) Join(o *Findings, moved func(rdma.Side) rdma.Side) {
	for _, f := range o.list {
		f.next = moved(f.next)
		if side, known := f.Where.AtFault.Get(); known {
			f.Where.AtFault = record.Some(moved(side))
		}
		fs.list = append(fs.list, f)
	}
}

// Decide decides the findings that wait for a message of a side, or all findings at the end.
func (fs *Findings) Decide(side rdma.Side, now Moment, c Connection) {
	fs.settle(c, func(f *Finding) (Verdict, evidence.Gap) { return f.decide(side, now, c) })
}

// decide decides a finding, when a message of a side was captured, or at the end.
func (f *Finding) decide(side rdma.Side, now Moment, c Connection) (Verdict, evidence.Gap) {
	end, mayFollow := now == AtEnd, f.Memory != memory.Target{} || f.Rule.CallMayFollow
	gap := f.needs.Blocks(c.Sides(f.Where.AtFault))
	switch {
	case gap.Lasting() != 0 || end && gap != 0:
		return Dropped, gap
	case f.Rule.Until == evidence.Answered && c.UsesNewVersion():
		return Excused, 0
	case f.Rule.Until == evidence.Answered && end && c.Sides(f.Where.AtFault).Other&answerUnseen != 0:
		return Dropped, c.Sides(f.Where.AtFault).Other & answerUnseen
	case f.Rule.Until == evidence.Answered && !end && (now != AfterMessage || c.IsOutstanding(f.Tag)):
		return Waiting, 0
	case f.Rule.Until == evidence.FellBack && !end:
		return Waiting, 0
	case f.until == evidence.Delivered && end:
		return Dropped, evidence.Awaited
	case f.until == evidence.Delivered:
		return Waiting, 0
	case f.until == evidence.Now && gap == 0: // the passing gap is closed
		return Proved, 0
	case f.until == evidence.Now && !end, now == Acknowledged:
		return Waiting, 0
	case mayFollow && f.next == side && now == BeforeMessage:
		return Waiting, 0
	case mayFollow && c.Excuses(f, f.next): // the Call was captured late, or it was retransmitted
		return Excused, 0
	case gap == 0 && (f.next == side || end):
		return Proved, 0
	}
	return Waiting, 0
}

// DecideSend decides the findings about a Send. Delivered is true if the Send was delivered as captured.
func (fs *Findings) DecideSend(number int64, delivered bool, c Connection) {
	fs.settle(c, func(f *Finding) (Verdict, evidence.Gap) {
		if f.until != evidence.Delivered || f.send != number {
			return Waiting, 0
		}
		if gap := f.needs.Blocks(c.Sides(f.Where.AtFault)); gap != 0 {
			return Dropped, gap
		}
		switch {
		case !delivered:
			return Excused, 0
		case f.Rule.Until != evidence.Delivered:
			f.until = f.Rule.Until
			return Waiting, 0
		}
		return Proved, 0
	})
}

// DecideAnswered decides the findings of a rule about a transaction that has got its Reply, or about any if tag is 0. Known is set if the
// version of the message that shows it was captured. If this message shows that nothing is wrong with what was done, as is the rule of the finding, and neither side
// is at fault; otherwise as is nil.
func (fs *Findings) DecideAnswered(r, as *rule.Rule, tag rdma.Tag, known bool, c Connection) {
	fs.settle(c, func(f *Finding) (Verdict, evidence.Gap) {
		switch {
		case f.Rule != r || tag != 0 && f.Tag != tag:
			return Waiting, 0
		case f.Rule.Until == evidence.Answered && c.UsesNewVersion():
			return Excused, 0
		case !known:
			return Dropped, evidence.HalfRead
		}
		if as != nil {
			f.Rule, f.Where.AtFault = as, record.Opt[rdma.Side]{}
		}
		if f.until == evidence.Delivered {
			return Waiting, 0
		}
		return Proved, 0
	})
}

// answerUnseen are the gaps because of which the capture may lack the answer to a Call.
const answerUnseen = evidence.HalfRead | evidence.Missing | evidence.Awaited | evidence.Silent | evidence.Evicted | evidence.Unordered

// settle asks for the verdict on each finding, in their order, and keeps those that wait.
func (fs *Findings) settle(c Connection, ask func(*Finding) (Verdict, evidence.Gap)) {
	if len(fs.list) == 0 {
		return
	}
	kept := fs.list[:0]
	for i := range fs.list {
		f := &fs.list[i]
		v, gap := ask(f)
		if v == Waiting {
			kept = append(kept, *f)
			continue
		}
		c.Decided(f, v, gap)
	}
	clear(fs.list[len(kept):])
	if fs.list = kept; len(kept) == 0 {
		fs.list = nil
	}
}
