package transaction

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// What one side does may break a rule only because the capture has missed what the
// other side sent just before. That shows when the other side sends its next
// message: until then it is a suspicion.

// And what stands in a packet that the capture has cut may be the wire's doing: its
// checksum cannot be told. That shows when the packet is acknowledged, or sent again.
// Where any such was sent again, or packets are missing, nobody can tell which of what
// has come to the other end as it stands in the capture: nothing is said of it.

// unproven says that nothing can be told of what the capture has cut.
func (f *follower) unproven() bool { return f.shaken || !f.conn.Complete() }

// suspicion is a finding that waits.
type suspicion struct {
	rule   *rule.Rule
	where  rdma.Where
	tag    rdma.Tag // of the transaction that it is about, 0 for none
	text   string
	missed rdma.Side // whose packets may be missing
	memory target    // of that side, which was not exposed; zero for other findings
	number int64     // of the Send that may have been dropped; see doubt
}

// maxSuspicions bounds how many wait at once on one connection; what is more is
// most likely true, and reported at once.
const (
	maxSuspicions = 64
	suspicionCost = 512
)

// suspect reports that a rule was broken, unless it turns out that packets of a
// side are missing. x may be nil.
func (f *follower) suspect(r *rule.Rule, x *txn, missed rdma.Side, where rdma.Where, format string, args ...any) {
	tag := rdma.Tag(0)
	if x != nil {
		where.XID, where.Operation = record.Some(uint32(x.rec.XID)), x.operation()
		tag = x.tag(partCall)
	}
	if f.shaken {
		return
	}
	if len(f.suspicions) == maxSuspicions {
		f.tell(r, x, where, format, args...)
		return
	}
	f.suspicions = append(f.suspicions, suspicion{rule: r, where: where, tag: tag, text: fmt.Sprintf(format, args...), missed: missed})
	f.suspected[missed]++
	f.conn.Share().Charge(suspicionCost)
}

// suspectTouch is suspect of an operation whose memory was not exposed.
func (f *follower) suspectTouch(r *rule.Rule, x *txn, m target, where rdma.Where, format string, args ...any) {
	n := len(f.suspicions)
	f.suspect(r, x, where.Blames.Or(0).Other(), where, format, args...)
	if len(f.suspicions) > n {
		f.suspicions[n].memory = m
	}
}

// moment is when suspicions are decided.
type moment uint8

const (
	beforeMessage moment = iota // a message has come, and is not read yet
	behindMessage               // it has been: what it exposed may be what was missing
	atEnd
)

// settleSuspicions decides those about missing packets of a side, of which a
// message was put together just now; or all, at the end.
func (f *follower) settleSuspicions(side rdma.Side, now moment) {
	if len(f.suspicions) == 0 {
		return
	}
	dismiss := f.conn.Lost() > 0 || f.judged.reused || f.shaken
	end := now == atEnd
	if !dismiss && !end && f.suspected[side] == 0 {
		return
	}
	complete := f.conn.Complete()
	kept := f.suspicions[:0]
	for i := range f.suspicions {
		s := &f.suspicions[i]
		switch {
		case dismiss || end && !complete:
		case s.memory != target{} && s.missed == side && now == beforeMessage:
			kept = append(kept, *s)
			continue
		case s.memory != target{} && f.exposes(s.missed, s.memory): // late, or sent again
		case complete && (s.missed == side || end):
			f.confirm(s)
		default:
			kept = append(kept, *s)
			continue
		}
		f.suspected[s.missed]--
	}
	f.conn.Share().Charge(-suspicionCost * int64(len(f.suspicions)-len(kept)))
	clear(f.suspicions[len(kept):])
	if f.suspicions = kept; len(kept) == 0 {
		f.suspicions = nil
	}
}

// tell reports what broke a rule, and notes it on the transaction that did; x may be nil.
func (f *follower) tell(r *rule.Rule, x *txn, where rdma.Where, format string, args ...any) {
	if x != nil {
		x.found(r)
	}
	f.conn.Report(r, where, format, args...)
}

// confirm tells what was a suspicion.
func (f *follower) confirm(s *suspicion) {
	x, _ := f.table.tagged(s.tag)
	f.tell(s.rule, x, s.where, "%s", s.text)
}

// say tells what the Send at hand shows; an error not before it is clear that the Send
// has come as it stands in the capture.
func (f *follower) say(r *rule.Rule, x *txn, where rdma.Where, format string, args ...any) {
	switch {
	case f.doubted == 0 || r.Severity != record.Error:
		f.tell(r, x, where, format, args...)
	case !f.unproven():
		f.doubt(r, x, where, fmt.Sprintf(format, args...))
	}
}

// distrusts notes that an operation was sent again, or refused: what the capture has of
// it need not be what has come.
func (f *follower) distrusts(o *rdma.Operation) {
	if trustIn(o) != trusted {
		f.shaken = f.shaken || o.Cut
		f.settleDoubts(o.Number, false)
	}
}

// doubt keeps a finding about the Send at hand until that is acknowledged; x may be
// nil. What is more than can be kept is left unsaid.
func (f *follower) doubt(r *rule.Rule, x *txn, where rdma.Where, text string) {
	to := f.rare()
	if len(to.doubts) == maxSuspicions {
		return
	}
	tag := rdma.Tag(0)
	if x != nil {
		tag = x.tag(partCall)
	}
	to.doubts = append(to.doubts, suspicion{rule: r, where: where, tag: tag, text: text, number: f.doubted})
	f.conn.Share().Charge(suspicionCost)
}

// settleDoubts decides those about a Send: it has arrived as it stands in the capture,
// or it was dropped.
func (f *follower) settleDoubts(number int64, arrived bool) {
	if f.seldom == nil || len(f.seldom.doubts) == 0 {
		return
	}
	all := f.seldom.doubts
	kept := all[:0]
	for i := range all {
		s := &all[i]
		if s.number != number {
			kept = append(kept, *s)
			continue
		}
		f.conn.Share().Charge(-suspicionCost)
		if arrived && !f.unproven() {
			f.confirm(s)
		}
	}
	clear(all[len(kept):])
	f.seldom.doubts = kept
}
