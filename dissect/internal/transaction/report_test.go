package transaction

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// all needs gaps of each side to be absent.
var all = rule.Needs{Own: rule.Missing | rule.Awaited, Other: rule.Late | rule.Awaited, Connection: rule.Evicted | rule.Closing}

// TestDecide: the verdict on a finding, by what its rule waits for, what was captured, and the gaps of the capture.
func TestDecide(t *testing.T) {
	const awaited = rule.Awaited
	gaps := func(own, other rule.Gap) shown { return shown{Sides: rule.Sides{Own: own, Other: other}} }
	over := func(s shown) shown { s.over = true; return s }
	excused, newVersion := shown{excused: true}, shown{newVersion: true}
	for _, test := range []struct {
		name  string
		until rule.Until
		f     finding
		shown shown
		want  verdict
		gap   rule.Gap
	}{
		{"now", rule.Now, finding{}, shown{}, tell, 0},
		{"now, a passing gap", rule.Now, finding{}, gaps(awaited, 0), wait, 0},
		{"now, a passing gap of the other side", rule.Now, finding{}, gaps(0, awaited), wait, 0},
		{"now, a passing gap stays to the end", rule.Now, finding{}, over(gaps(awaited, 0)), drop, awaited},
		{"now, at the end", rule.Now, finding{}, over(shown{}), tell, 0},
		{"now, a lasting gap", rule.Now, finding{}, gaps(rule.Missing, 0), drop, rule.Missing},
		{"now, both gaps", rule.Now, finding{}, gaps(rule.Missing|awaited, 0), drop, rule.Missing},
		{"now, a gap of the side that does not matter", rule.Now, finding{}, gaps(rule.Late, rule.Missing), tell, 0},
		{"now, a gap of the connection", rule.Now, finding{}, gaps(0, rule.Evicted), drop, rule.Evicted},
		{"now, the connection is closing", rule.Now, finding{}, gaps(0, rule.Closing), drop, rule.Closing},
		{"delivered", rule.Delivered, finding{}, shown{}, tell, 0},
		{"delivered, a passing gap", rule.Delivered, finding{}, gaps(awaited, 0), wait, 0},
		{"delivered, an unverified Send", rule.Delivered, finding{send: 3}, shown{}, wait, 0},
		{"delivered, an unverified Send and a lasting gap", rule.Delivered, finding{send: 3}, gaps(rule.Missing, 0), drop, rule.Missing},
		{"delivered, an unverified Send to the end", rule.Delivered, finding{send: 3}, over(shown{}), drop, awaited},
		{"delivered, otherwise than captured", rule.Delivered, finding{send: 3, answer: notViolated}, shown{}, drop, 0},
		{"next", rule.Next, finding{}, shown{}, wait, 0},
		{"next, a lasting gap", rule.Next, finding{}, gaps(0, rule.Late), drop, rule.Late},
		{"next, it came", rule.Next, finding{heard: true}, shown{}, tell, 0},
		{"next, it came, a passing gap", rule.Next, finding{heard: true}, gaps(awaited, 0), wait, 0},
		{"next, it came, a lasting gap", rule.Next, finding{heard: true}, gaps(0, rule.Late), drop, rule.Late},
		{"next, it came, a gap that does not matter", rule.Next, finding{heard: true}, gaps(rule.Late, rule.Missing), tell, 0},
		{"next, a Call that excuses it came", rule.Next, finding{heard: true}, excused, drop, 0},
		{"next, a Call that excuses it came before", rule.Next, finding{}, excused, drop, 0},
		{"next, never", rule.Next, finding{}, over(shown{}), tell, 0},
		{"next, never, a passing gap", rule.Next, finding{}, over(gaps(0, awaited)), drop, awaited},
		{"next, never, a message may not be captured", rule.Next, finding{}, over(gaps(0, rule.Silent)), tell, 0},
		{"next, both use the version", rule.Next, finding{heard: true}, newVersion, tell, 0},
		{"answered, not yet", rule.Answered, finding{}, shown{}, wait, 0},
		{"answered, a message came", rule.Answered, finding{heard: true}, shown{}, wait, 0},
		{"answered", rule.Answered, finding{answer: violated}, shown{}, tell, 0},
		{"answered, an answer may not be captured", rule.Answered, finding{answer: violated}, gaps(0, rule.Silent), tell, 0},
		{"answered, in part", rule.Answered, finding{answer: neither}, shown{}, drop, rule.HalfRead},
		{"answered, an unverified Send", rule.Answered, finding{answer: violated, send: 3}, shown{}, wait, 0},
		{"answered, both use the version", rule.Answered, finding{answer: violated}, newVersion, drop, 0},
		{"answered, an unverified Send, both use the version", rule.Answered, finding{send: 3}, newVersion, drop, 0},
		{"answered, never", rule.Answered, finding{}, over(shown{}), tell, 0},
		{"answered, never, an answer may not be captured", rule.Answered, finding{}, over(gaps(0, rule.Silent)), drop, rule.Silent},
		{"answered, never, an unverified Send", rule.Answered, finding{send: 3}, over(shown{}), drop, awaited},
		{"fell back, not yet", rule.FellBack, finding{heard: true}, shown{}, wait, 0},
		{"fell back, both use the version", rule.FellBack, finding{}, newVersion, wait, 0},
		{"fell back", rule.FellBack, finding{answer: violated}, shown{}, tell, 0},
		{"fell back, never", rule.FellBack, finding{}, over(gaps(0, rule.Silent)), tell, 0},
	} {
		f := test.f
		f.rule, f.needs = &rule.Rule{Until: test.until}, all
		if v, gap := f.decide(test.shown); v != test.want || gap != test.gap {
			t.Errorf("%s: %d because of %q, want %d because of %q", test.name, v, gap.Name(), test.want, test.gap.Name())
		}
	}
}

// shownBy is a connection of which a test says which gaps it has. It lists what is reported.
type shownBy struct {
	rdma.Link
	lacks      [2]rule.Gap
	told       []rdma.Where
	rules      []*rule.Rule
	disordered bool
	setup      rdma.Setup
}

func (l *shownBy) Gaps(s rdma.Side) rule.Gap { return l.lacks[s] }
func (l *shownBy) Disorder()                 { l.disordered = true }
func (l *shownBy) Setup() *rdma.Setup        { return &l.setup }

func (l *shownBy) Report(r *rule.Rule, where rdma.Where, format string, args ...any) {
	l.told, l.rules = append(l.told, where), append(l.rules, r)
}

// judged is a connection, whose findings a test looks at.
type judged struct {
	connState
	shownBy
}

func judge(gaps ...rule.Gap) *judged {
	j := new(judged)
	copy(j.lacks[:], gaps)
	j.table, j.link, j.share = new(Table), &j.shownBy, new(budget.Share)
	budget.New(1<<20).Open(j.share, nil)
	return j
}

// breaks reports that side 0 broke a rule in a Send, which cannot be verified if it has a number.
func (j *judged) breaks(until rule.Until, severity record.Severity, send int64, memory target) *rule.Rule {
	r := &rule.Rule{ID: "test", Severity: severity, Until: until, Needs: all}
	j.doubts.unverifiedSend = send
	j.report(violation{rule: r, where: rdma.Where{AtFault: record.Some[rdma.Side](0)}, memory: memory}, "text")
	j.doubts.unverifiedSend = 0
	return r
}

// outcome returns what became of the finding that a test reported.
func (j *judged) outcome() string {
	switch n := j.table.NotJudged; {
	case len(n) > 0:
		return "dropped " + n[0].Gap
	case len(j.told) > 0:
		return "told"
	case len(j.findings) > 0:
		return "waits"
	}
	return "excused"
}

// TestUnverified: a finding about a Send that cannot be verified is decided by what became of this Send.
func TestUnverified(t *testing.T) {
	const failure, note = record.Error, record.Note
	for _, test := range []struct {
		name      string
		until     rule.Until
		severity  record.Severity
		first     [2]rule.Gap // when it is reported
		at        string
		send      int64 // whose fate becomes known
		delivered bool
		then      [2]rule.Gap
		want      string
	}{
		{"delivered", rule.Delivered, failure, [2]rule.Gap{}, "waits", 3, true, [2]rule.Gap{}, "told"},
		{"not as captured", rule.Delivered, failure, [2]rule.Gap{}, "waits", 3, false, [2]rule.Gap{}, "excused"},
		{"another Send", rule.Delivered, failure, [2]rule.Gap{}, "waits", 4, true, [2]rule.Gap{}, "waits"},
		{"another Send, not as captured", rule.Delivered, failure, [2]rule.Gap{}, "waits", 4, false, [2]rule.Gap{}, "waits"},
		{"with a gap", rule.Delivered, failure, [2]rule.Gap{}, "waits", 3, true, [2]rule.Gap{rule.TruncatedAgain, 0}, "dropped truncated_again"},
		{"with a passing gap", rule.Delivered, failure, [2]rule.Gap{}, "waits", 3, true, [2]rule.Gap{rule.Awaited, 0}, "waits"},
		{"the connection closes meanwhile", rule.Delivered, failure, [2]rule.Gap{}, "waits", 3, true, [2]rule.Gap{rule.Closing, rule.Closing}, "told"},
		{"and the answer decides", rule.Answered, failure, [2]rule.Gap{}, "waits", 3, true, [2]rule.Gap{}, "waits"},
		{"not as captured, and the answer would decide", rule.Answered, failure, [2]rule.Gap{}, "waits", 3, false, [2]rule.Gap{}, "excused"},
		{"only a note", rule.Delivered, note, [2]rule.Gap{}, "told", 0, true, [2]rule.Gap{}, "told"},
		{"now", rule.Now, failure, [2]rule.Gap{}, "told", 0, true, [2]rule.Gap{}, "told"},
		{"now, a gap of a Send", rule.Now, failure, [2]rule.Gap{rule.TruncatedAgain, rule.Missing}, "told", 0, true, [2]rule.Gap{}, "told"},
		{"the next message decides", rule.Next, failure, [2]rule.Gap{rule.TruncatedAgain, 0}, "waits", 3, false, [2]rule.Gap{}, "waits"},
		{"truncated and sent again", rule.Delivered, failure, [2]rule.Gap{rule.TruncatedAgain, 0}, "dropped truncated_again", 3, true, [2]rule.Gap{}, "dropped truncated_again"},
		{"a missing packet of the other side", rule.Delivered, failure, [2]rule.Gap{0, rule.Missing}, "dropped missing", 3, true, [2]rule.Gap{}, "dropped missing"},
	} {
		j := judge(test.first[:]...)
		j.breaks(test.until, test.severity, 3, target{})
		at := j.outcome()
		j.lacks = test.then
		if j.sendDelivered(test.send, test.delivered); at != test.at || j.outcome() != test.want {
			t.Errorf("%s: %q, then %q; want %q, then %q", test.name, at, j.outcome(), test.at, test.want)
		}
	}
	j := judge(rule.TruncatedAgain, 0)
	if j.breaks(rule.Delivered, failure, 0, target{}); j.outcome() != "told" {
		t.Errorf("a Send that can be verified: %s", j.outcome())
	}
}

// TestAnswerSeen: the Reply to a Call decides the findings of one rule about its transaction.
func TestAnswerSeen(t *testing.T) {
	another := &rule.Rule{ID: "another", Until: rule.Answered}
	for _, test := range []struct {
		name  string
		own   bool
		tag   rdma.Tag
		shows answerShows
		as    *rule.Rule
		want  string
	}{
		{"its own", true, 7, violated, nil, "told"},
		{"of any transaction", true, 0, violated, nil, "told"},
		{"of another transaction", true, 8, violated, nil, "waits"},
		{"of another rule", false, 7, violated, nil, "waits"},
		{"the version of the Reply is not known", true, 7, neither, another, "dropped half_read"},
		{"the Reply shows that nothing is wrong", true, 7, violated, another, "told"},
	} {
		j := judge()
		r := j.breaks(rule.Answered, record.Error, 0, target{})
		j.findings[0].tag = 7
		about := r
		if !test.own {
			about = another
		}
		j.answerSeen(about, test.as, test.tag, test.shows)
		if got := j.outcome(); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		if j.outcome() == "told" && ((j.rules[0] == another) != (test.as != nil) || j.told[0].AtFault.Known() != (test.as == nil)) {
			t.Errorf("%s: told of %s, at fault %v", test.name, j.rules[0].ID, j.told[0].AtFault)
		}
	}
}

// TestOver: a finding is decided with its transaction, or its connection. Findings are decided in their order, and the others keep
// theirs; the storage of the last one is freed.
func TestOver(t *testing.T) {
	j := judge()
	for tag := range rdma.Tag(4) {
		j.breaks(rule.Next, record.Error, 0, target{})
		j.findings[tag].tag, j.findings[tag].where.Transaction = tag%3, int64(tag)
	}
	left := func(over rdma.Tag) string {
		j.settle(over, nil)
		var told []int64
		for _, w := range j.told {
			told = append(told, w.Transaction)
		}
		return fmt.Sprint(told, len(j.findings))
	}
	for _, step := range []struct {
		over rdma.Tag
		want string
	}{{0, "[] 4"}, {1, "[1] 3"}, {2, "[1 2] 2"}, {9, "[1 2] 2"}, {everything, "[1 2 0 3] 0"}} {
		if got := left(step.over); got != step.want {
			t.Errorf("after %d: %s, want %s", step.over, got, step.want)
		}
	}
	if j.findings != nil {
		t.Errorf("the storage is kept: %v", j.findings)
	}
}

// TestMostFindings: the findings that wait are limited, but those that need not wait are not.
func TestMostFindings(t *testing.T) {
	j := judge()
	for range maxFindings + 1 {
		j.breaks(rule.Next, record.Error, 0, target{})
	}
	if n := j.table.NotJudged; len(j.findings) != maxFindings || len(n) != 1 || n[0].Gap != "evicted" || n[0].Count != 1 {
		t.Errorf("%d wait, dropped %+v", len(j.findings), n)
	}
	if j.breaks(rule.Now, record.Error, 0, target{}); len(j.told) != 1 {
		t.Error("a finding that need not wait is not told")
	}
}

// TestJoinFindings: the findings of another connection wait for the same side as before, whatever its number is now.
func TestJoinFindings(t *testing.T) {
	for _, to := range []rdma.Side{0, 1} {
		into, old := judge(), judge()
		old.breaks(rule.Next, record.Error, 0, target{})
		into.table.conns = []*connState{&into.connState, &old.connState}
		into.Join(tagged(2), 0, to)
		if !slices.ContainsFunc(into.findings, func(f finding) bool { return f.next == to.Other() && f.where.AtFault == record.Some(to) }) {
			t.Errorf("side 0 became %d: %+v", to, into.findings)
		}
	}
}

// TestExcused: a Call that has the XID of a finding, and was captured after it, excuses it, and shows that packets are not in order.
func TestExcused(t *testing.T) {
	for _, mayFollow := range []bool{false, true} {
		j := judge()
		r := j.breaks(rule.Next, record.Error, 0, target{})
		r.CallMayFollow = mayFollow
		j.findings[0].where.XID = record.Some[uint32](5)
		x := new(txn)
		x.rec.XID = 5
		j.open[1].add(x)
		j.settle(everything, nil)
		if (j.outcome() == "excused") != mayFollow || j.disordered != mayFollow {
			t.Errorf("the Call may follow: %t; %s, not in order: %t", mayFollow, j.outcome(), j.disordered)
		}
	}
}

// TestAccessed: no Call that follows excuses the findings about memory that was accessed before it, as an RDMA Read over iWARP shows.
func TestAccessed(t *testing.T) {
	exposed := target{Handle: 5, Offset: 6, Length: 7}
	for accessed, excuses := range map[target]bool{exposed: false, {Handle: 6, Offset: 6, Length: 7}: true, {Handle: 5, Offset: 6, Length: 8}: true} {
		for _, iwarp := range []bool{false, true} {
			j := judge()
			j.setup.IWARP = iwarp
			j.breaks(rule.Next, record.Error, 0, exposed)
			j.moved(&rdma.Operation{Kind: rdma.Read, Handle: accessed.Handle, Offset: accessed.Offset, Length: int64(accessed.Length)})
			if may := j.findings[0].memory != (target{}); may != (excuses || !iwarp) {
				t.Errorf("%+v is accessed, iWARP %t: a Call may excuse the finding: %t", accessed, iwarp, may)
			}
		}
	}
}
