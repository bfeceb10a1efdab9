package pending

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/internal/evidence"
	"github.com/rdmadump/rdmadump/dissect/internal/memory"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// shown is a connection of which a test says what the capture shows. It lists the decisions.
type shown struct {
	gaps        [2]evidence.Gap
	newVersion  bool
	outstanding bool
	excuses     bool
	asked       []rdma.Side // sides whose Calls were asked for an excuse
	decided     []string
	told        []Finding // that were decided
}

func (s *shown) Sides(fault record.Opt[rdma.Side]) evidence.Sides {
	own, known := fault.Get()
	if !known {
		both := s.gaps[0] | s.gaps[1]
		return evidence.Sides{Own: both, Other: both}
	}
	return evidence.Sides{Own: s.gaps[own], Other: s.gaps[own.Other()]}
}

func (s *shown) UsesNewVersion() bool          { return s.newVersion }
func (s *shown) IsOutstanding(t rdma.Tag) bool { return s.outstanding }

func (s *shown) Excuses(f *Finding, side rdma.Side) bool {
	s.asked = append(s.asked, side)
	return s.excuses
}

func (s *shown) Decided(f *Finding, v Verdict, gap evidence.Gap) {
	s.decided, s.told = append(s.decided, fmt.Sprint(verdicts[v], " ", gap.Name())), append(s.told, *f)
}

var verdicts = [...]string{"waiting", "proved", "excused", "dropped"}

// made returns a rule of an error.
func made(until evidence.Until, needs evidence.Needs) *rule.Rule {
	return &rule.Rule{ID: "test", Severity: record.Error, Until: until, Needs: needs}
}

// of returns a finding for which side 0 is at fault.
func of(r *rule.Rule) Finding {
	return Finding{Rule: r, Where: rdma.Where{AtFault: record.Some[rdma.Side](0)}, Tag: 7}
}

// all needs every gap of each side to be absent.
var all = evidence.Needs{Own: evidence.Missing | evidence.Awaited, Other: evidence.Late | evidence.Awaited, Connection: evidence.Evicted | evidence.Closing}

// TestJudge: the verdict on a new finding, by the moment at which it is decided, and the gaps of the capture.
func TestJudge(t *testing.T) {
	const unverified = 9
	for _, test := range []struct {
		name     string
		until    evidence.Until
		severity record.Severity
		send     int64
		gaps     [2]evidence.Gap
		want     Verdict
		gap      evidence.Gap
	}{
		{"now, no gap", evidence.Now, record.Error, 0, [2]evidence.Gap{}, Proved, 0},
		{"now, a passing gap", evidence.Now, record.Error, 0, [2]evidence.Gap{evidence.Awaited, 0}, Waiting, 0},
		{"now, a passing gap of the other side", evidence.Now, record.Error, 0, [2]evidence.Gap{0, evidence.Awaited}, Waiting, 0},
		{"now, a lasting gap", evidence.Now, record.Error, 0, [2]evidence.Gap{evidence.Missing, 0}, Dropped, evidence.Missing},
		{"now, both gaps", evidence.Now, record.Error, 0, [2]evidence.Gap{evidence.Missing | evidence.Awaited, 0}, Dropped, evidence.Missing},
		{"now, a gap of the side that does not matter", evidence.Now, record.Error, 0, [2]evidence.Gap{evidence.Late, evidence.Missing}, Proved, 0},
		{"now, a gap of the connection", evidence.Now, record.Error, 0, [2]evidence.Gap{0, evidence.Evicted}, Dropped, evidence.Evicted},
		{"now, the connection is closing", evidence.Now, record.Error, 0, [2]evidence.Gap{0, evidence.Closing}, Dropped, evidence.Closing},
		{"now, an unverified Send", evidence.Now, record.Error, unverified, [2]evidence.Gap{}, Proved, 0},
		{"delivered, no gap", evidence.Delivered, record.Error, 0, [2]evidence.Gap{}, Proved, 0},
		{"delivered, an unverified Send", evidence.Delivered, record.Error, unverified, [2]evidence.Gap{}, Waiting, 0},
		{"delivered, an unverified Send, only a note", evidence.Delivered, record.Note, unverified, [2]evidence.Gap{}, Proved, 0},
		{"delivered, an unverified Send that was truncated and sent again", evidence.Delivered, record.Error, unverified, [2]evidence.Gap{evidence.TruncatedAgain, 0}, Dropped, evidence.TruncatedAgain},
		{"delivered, an unverified Send and a missing packet of the other side", evidence.Delivered, record.Error, unverified, [2]evidence.Gap{0, evidence.Missing}, Dropped, evidence.Missing},
		{"delivered, a truncated packet was sent again", evidence.Delivered, record.Error, 0, [2]evidence.Gap{evidence.TruncatedAgain, 0}, Proved, 0},
		{"delivered, a passing gap", evidence.Delivered, record.Error, 0, [2]evidence.Gap{evidence.Awaited, 0}, Waiting, 0},
		{"next, no gap", evidence.Next, record.Error, 0, [2]evidence.Gap{}, Waiting, 0},
		{"next, an unverified Send that was sent again", evidence.Next, record.Error, unverified, [2]evidence.Gap{evidence.TruncatedAgain, 0}, Waiting, 0},
		{"next, a lasting gap", evidence.Next, record.Error, 0, [2]evidence.Gap{0, evidence.Late}, Dropped, evidence.Late},
		{"answered, no gap", evidence.Answered, record.Error, 0, [2]evidence.Gap{}, Waiting, 0},
		{"answered, an unverified Send and a missing packet of the other side", evidence.Answered, record.Error, unverified, [2]evidence.Gap{0, evidence.Missing}, Dropped, evidence.Missing},
		{"answered, a missing packet of the other side", evidence.Answered, record.Error, 0, [2]evidence.Gap{0, evidence.Missing}, Waiting, 0},
	} {
		r := made(test.until, all)
		r.Severity = test.severity
		f, fs := of(r), Findings{}
		if v, gap := fs.Check(&f, test.send, &shown{gaps: test.gaps}); v != test.want || gap != test.gap {
			t.Errorf("%s: %s because of %q, want %s because of %q", test.name, verdicts[v], gap.Name(), verdicts[test.want], test.gap.Name())
		}
		if fs.Len() != 0 {
			t.Errorf("%s: it is kept", test.name)
		}
	}
}

// TestMost: the findings that wait are limited, but those that need not wait are not.
func TestMost(t *testing.T) {
	fs, c := Findings{}, &shown{}
	for n := range most + 1 {
		f := of(made(evidence.Next, all))
		v, gap := fs.Check(&f, 0, c)
		if (v == Waiting) != (n < most) || (gap == evidence.Evicted) != (n == most) {
			t.Fatalf("finding %d is %s, %q", n, verdicts[v], gap.Name())
		}
		if v == Waiting {
			fs.Keep(f)
		}
	}
	if f := of(made(evidence.Now, all)); fs.Len() != most {
		t.Errorf("%d wait", fs.Len())
	} else if v, _ := fs.Check(&f, 0, c); v != Proved {
		t.Errorf("a finding that need not wait is %s", verdicts[v])
	}
}

// TestDecide: each moment of a rule with each event that may decide its finding, for each gap.
func TestDecide(t *testing.T) {
	const (
		faulty, other rdma.Side = 0, 1
		awaited                 = evidence.Awaited
	)
	mayFollow := func(r *rule.Rule) *rule.Rule { r.CallMayFollow = true; return r }
	exposed := memory.Target{Handle: 5}
	for _, test := range []struct {
		name   string
		rule   *rule.Rule
		memory memory.Target
		send   int64
		first  evidence.Gap // of the side at fault, when the finding is made
		side   rdma.Side
		now    Moment
		then   shown // when it is decided
		want   string
		asked  int // how many times for an excuse
	}{
		{"now, the gap closes", made(evidence.Now, all), memory.Target{}, 0, awaited, faulty, BeforeMessage, shown{}, "proved ", 0},
		{"now, the gap closes with an ACK", made(evidence.Now, all), memory.Target{}, 0, awaited, faulty, Acknowledged, shown{}, "proved ", 0},
		{"now, the gap stays", made(evidence.Now, all), memory.Target{}, 0, awaited, other, AfterMessage, shown{gaps: [2]evidence.Gap{awaited, 0}}, "", 0},
		{"now, the gap stays to the end", made(evidence.Now, all), memory.Target{}, 0, awaited, other, AtEnd, shown{gaps: [2]evidence.Gap{awaited, 0}}, "dropped awaited", 0},
		{"now, the gap closes at the end", made(evidence.Now, all), memory.Target{}, 0, awaited, other, AtEnd, shown{}, "proved ", 0},
		{"now, the gap becomes a lasting one", made(evidence.Now, all), memory.Target{}, 0, awaited, faulty, AfterMessage, shown{gaps: [2]evidence.Gap{evidence.Missing, 0}}, "dropped missing", 0},
		{"now, the connection closes meanwhile", made(evidence.Now, all), memory.Target{}, 0, awaited, faulty, AfterMessage, shown{gaps: [2]evidence.Gap{evidence.Closing, evidence.Closing}}, "proved ", 0},
		{"delivered, another message", made(evidence.Delivered, all), memory.Target{}, 3, 0, other, AfterMessage, shown{}, "", 0},
		{"delivered, an ACK of another Send", made(evidence.Delivered, all), memory.Target{}, 3, 0, other, Acknowledged, shown{}, "", 0},
		{"delivered, never", made(evidence.Delivered, all), memory.Target{}, 3, 0, other, AtEnd, shown{}, "dropped awaited", 0},
		{"delivered, a packet turns out to be missing", made(evidence.Delivered, all), memory.Target{}, 3, 0, other, AfterMessage, shown{gaps: [2]evidence.Gap{0, evidence.Missing}}, "dropped missing", 0},
		{"next, of the other side", made(evidence.Next, all), memory.Target{}, 0, 0, other, BeforeMessage, shown{}, "proved ", 0},
		{"next, of the same side", made(evidence.Next, all), memory.Target{}, 0, 0, faulty, BeforeMessage, shown{}, "", 0},
		{"next, an ACK", made(evidence.Next, all), memory.Target{}, 0, 0, other, Acknowledged, shown{}, "", 0},
		{"next, with a passing gap", made(evidence.Next, all), memory.Target{}, 0, 0, other, AfterMessage, shown{gaps: [2]evidence.Gap{awaited, 0}}, "", 0},
		{"next, with a lasting gap", made(evidence.Next, all), memory.Target{}, 0, 0, other, AfterMessage, shown{gaps: [2]evidence.Gap{0, evidence.Late}}, "dropped late", 0},
		{"next, with a gap that does not matter", made(evidence.Next, all), memory.Target{}, 0, 0, other, AfterMessage, shown{gaps: [2]evidence.Gap{evidence.Late, evidence.Missing}}, "proved ", 0},
		{"next, never", made(evidence.Next, all), memory.Target{}, 0, 0, faulty, AtEnd, shown{}, "proved ", 0},
		{"next, never, with a passing gap", made(evidence.Next, all), memory.Target{}, 0, 0, faulty, AtEnd, shown{gaps: [2]evidence.Gap{0, awaited}}, "dropped awaited", 0},
		{"next, the Call may follow, before the message", mayFollow(made(evidence.Next, all)), memory.Target{}, 0, 0, other, BeforeMessage, shown{excuses: true}, "", 0},
		{"next, the Call follows", mayFollow(made(evidence.Next, all)), memory.Target{}, 0, 0, other, AfterMessage, shown{excuses: true}, "excused ", 1},
		{"next, another message follows", mayFollow(made(evidence.Next, all)), memory.Target{}, 0, 0, other, AfterMessage, shown{}, "proved ", 1},
		{"next, the Call has come, before a message of the same side", mayFollow(made(evidence.Next, all)), memory.Target{}, 0, 0, faulty, BeforeMessage, shown{excuses: true}, "excused ", 1},
		{"next, no Call may follow", made(evidence.Next, all), memory.Target{}, 0, 0, other, AfterMessage, shown{excuses: true}, "proved ", 0},
		{"next, the memory is exposed later", made(evidence.Next, all), exposed, 0, 0, other, AfterMessage, shown{excuses: true}, "excused ", 1},
		{"next, the memory, before the message", made(evidence.Next, all), exposed, 0, 0, other, BeforeMessage, shown{excuses: true}, "", 0},
		{"next, the memory is never exposed", made(evidence.Next, all), exposed, 0, 0, other, AfterMessage, shown{}, "proved ", 1},
		{"next, the memory, at the end", made(evidence.Next, all), exposed, 0, 0, faulty, AtEnd, shown{}, "proved ", 1},
		{"answered, while it is outstanding", made(evidence.Answered, all), memory.Target{}, 0, 0, other, AfterMessage, shown{outstanding: true}, "", 0},
		{"answered, before the message", made(evidence.Answered, all), memory.Target{}, 0, 0, other, BeforeMessage, shown{}, "", 0},
		{"answered, with an ACK", made(evidence.Answered, all), memory.Target{}, 0, 0, other, Acknowledged, shown{}, "", 0},
		{"answered", made(evidence.Answered, all), memory.Target{}, 0, 0, other, AfterMessage, shown{}, "proved ", 0},
		{"answered, by a message of the same side", made(evidence.Answered, all), memory.Target{}, 0, 0, faulty, AfterMessage, shown{}, "", 0},
		{"answered, never", made(evidence.Answered, all), memory.Target{}, 0, 0, faulty, AtEnd, shown{outstanding: true}, "proved ", 0},
		{"answered, never, but the answer may not be captured", made(evidence.Answered, all), memory.Target{}, 0, 0, faulty, AtEnd, shown{gaps: [2]evidence.Gap{0, evidence.Silent}}, "dropped silent", 0},
		{"answered, while an answer may not be captured", made(evidence.Answered, all), memory.Target{}, 0, 0, other, AfterMessage, shown{gaps: [2]evidence.Gap{0, evidence.Silent}}, "proved ", 0},
		{"next, never, but a message may not be captured", made(evidence.Next, all), memory.Target{}, 0, 0, faulty, AtEnd, shown{gaps: [2]evidence.Gap{0, evidence.Silent}}, "proved ", 0},
		{"answered, never, an unverified Send", made(evidence.Answered, all), memory.Target{}, 3, 0, faulty, AtEnd, shown{outstanding: true}, "dropped awaited", 0},
		{"answered, an unverified Send", made(evidence.Answered, all), memory.Target{}, 3, 0, other, AfterMessage, shown{}, "", 0},
		{"answered, both use the version", made(evidence.Answered, all), memory.Target{}, 0, 0, faulty, BeforeMessage, shown{newVersion: true, outstanding: true}, "excused ", 0},
		{"next, both use the version", made(evidence.Next, all), memory.Target{}, 0, 0, other, AfterMessage, shown{newVersion: true}, "proved ", 0},
	} {
		fs, f := Findings{}, of(test.rule)
		f.Memory = test.memory
		if v, _ := fs.Check(&f, test.send, &shown{gaps: [2]evidence.Gap{test.first, 0}}); v != Waiting {
			t.Fatalf("%s: at once %s", test.name, verdicts[v])
		}
		fs.Keep(f)
		fs.Decide(test.side, test.now, &test.then)
		got := ""
		if len(test.then.decided) > 0 {
			got = test.then.decided[0]
		}
		if got != test.want || (fs.Len() == 0) != (got != "") || fs.Concern(7) != (got == "") {
			t.Errorf("%s: %q, want %q; %d wait", test.name, got, test.want, fs.Len())
		}
		if len(test.then.asked) != test.asked || test.asked > 0 && test.then.asked[0] != other {
			t.Errorf("%s: asked for an excuse by the sides %v, want %d times by side 1", test.name, test.then.asked, test.asked)
		}
	}
}

// TestDecideSend: a finding about a Send that could not be verified is decided by what became of this Send.
func TestDecideSend(t *testing.T) {
	for _, test := range []struct {
		name      string
		until     evidence.Until
		send      int64 // that is decided
		delivered bool
		gaps      [2]evidence.Gap
		want      string
		after     string // after a later message of the other side, if it still waits
	}{
		{"delivered", evidence.Delivered, 3, true, [2]evidence.Gap{}, "proved ", ""},
		{"not as captured", evidence.Delivered, 3, false, [2]evidence.Gap{}, "excused ", ""},
		{"another Send", evidence.Delivered, 4, true, [2]evidence.Gap{}, "", ""},
		{"with a gap", evidence.Delivered, 3, true, [2]evidence.Gap{evidence.TruncatedAgain, 0}, "dropped truncated_again", ""},
		{"with a passing gap", evidence.Delivered, 3, true, [2]evidence.Gap{evidence.Awaited, 0}, "dropped awaited", ""},
		{"delivered, and the answer decides", evidence.Answered, 3, true, [2]evidence.Gap{}, "", "proved "},
		{"not as captured, and the answer would decide", evidence.Answered, 3, false, [2]evidence.Gap{}, "excused ", ""},
		{"another Send, and the answer decides", evidence.Answered, 4, true, [2]evidence.Gap{}, "", ""},
	} {
		fs, f, c := Findings{}, of(made(test.until, all)), &shown{}
		if v, _ := fs.Check(&f, 3, c); v != Waiting {
			t.Fatalf("%s: at once %s", test.name, verdicts[v])
		}
		fs.Keep(f)
		c.gaps = test.gaps
		fs.DecideSend(test.send, test.delivered, c)
		if got := first(c.decided); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		if fs.Decide(1, AfterMessage, c); test.want == "" && first(c.decided) != test.after {
			t.Errorf("%s: after a message %q, want %q", test.name, first(c.decided), test.after)
		}
	}
	fs, f, c := Findings{}, of(made(evidence.Next, all)), &shown{}
	fs.Check(&f, 3, c)
	fs.Keep(f)
	if fs.DecideSend(3, true, c); fs.Len() != 1 {
		t.Error("a finding that waits for the next message was decided by its Send")
	}
}

// TestAccessed: no Call that follows excuses the findings about memory that was accessed before it.
func TestAccessed(t *testing.T) {
	exposed, others := memory.Target{Handle: 5}, memory.Target{Handle: 6}
	for accessed, want := range map[memory.Target]string{exposed: "proved ", others: "excused "} {
		fs, f, c := Findings{}, of(made(evidence.Next, all)), &shown{excuses: true}
		f.Memory = exposed
		fs.Check(&f, 0, c)
		fs.Keep(f)
		fs.Accessed(accessed)
		if fs.Decide(1, AfterMessage, c); first(c.decided) != want {
			t.Errorf("handle %d: %q, want %q", accessed.Handle, first(c.decided), want)
		}
	}
}

// first returns the first decision, or "".
func first(decided []string) string {
	if len(decided) == 0 {
		return ""
	}
	return decided[0]
}

// TestDecideAnswered: the Reply to a Call decides the findings of one rule about its transaction.
func TestDecideAnswered(t *testing.T) {
	r, another := made(evidence.Answered, all), made(evidence.Answered, all)
	for _, test := range []struct {
		name       string
		rule       *rule.Rule
		tag        rdma.Tag
		send       int64
		newVersion bool
		unknown    bool // the version of the Reply was not captured
		as         *rule.Rule
		want       string
	}{
		{"its own", r, 7, 0, false, false, nil, "proved "},
		{"both sides use the version", r, 7, 0, true, false, nil, "excused "},
		{"the version of the Reply is not known", r, 7, 0, false, true, nil, "dropped half_read"},
		{"of another transaction", r, 8, 0, false, false, nil, ""},
		{"of another rule", another, 7, 0, false, false, nil, ""},
		{"an unverified Send", r, 7, 3, false, false, nil, ""},
		{"the Reply shows that nothing is wrong", r, 7, 0, false, false, another, "proved "},
		{"an unverified Send, both sides use the version", r, 7, 3, true, false, nil, "excused "},
	} {
		fs, f, c := Findings{}, of(test.rule), &shown{}
		f.Tag = test.tag
		fs.Check(&f, test.send, c)
		fs.Keep(f)
		c.newVersion = test.newVersion
		if fs.DecideAnswered(r, test.as, 7, !test.unknown, c); first(c.decided) != test.want {
			t.Errorf("%s: %q, want %q", test.name, first(c.decided), test.want)
		}
		if told := append(c.told, f)[0]; test.as != nil && (told.Rule != test.as || told.Where.AtFault.Known()) || test.as == nil && (told.Rule != test.rule || !told.Where.AtFault.Known()) {
			t.Errorf("%s: decided as %+v", test.name, told)
		}
	}
}

// TestOrder: findings are decided in their order, the others keep theirs, and the storage of the last one is freed.
func TestOrder(t *testing.T) {
	fs, c := Findings{}, &shown{}
	for tag := range rdma.Tag(4) {
		f := of(made(evidence.Delivered, all))
		f.Tag = tag + 1
		fs.Check(&f, int64(tag%2)+1, c)
		fs.Keep(f)
	}
	fs.DecideSend(1, true, c)
	tags := []rdma.Tag{}
	for _, f := range fs.list {
		tags = append(tags, f.Tag)
	}
	if !slices.Equal(tags, []rdma.Tag{2, 4}) || len(c.decided) != 2 || fs.Concern(1) || !fs.Concern(4) {
		t.Errorf("%v wait, decided %v", tags, c.decided)
	}
	if fs.DecideSend(2, true, c); fs.list != nil {
		t.Errorf("the storage is kept: %v", fs.list)
	}
}

// TestJoin: the findings of another connection wait for the same side as before, whatever its number is now.
func TestJoin(t *testing.T) {
	same := func(s rdma.Side) rdma.Side { return s }
	for _, moved := range []func(rdma.Side) rdma.Side{same, rdma.Side.Other} {
		for _, fault := range []record.Opt[rdma.Side]{record.Some[rdma.Side](0), record.Some[rdma.Side](1), {}} {
			fs, o, c := Findings{}, Findings{}, &shown{}
			f := of(made(evidence.Next, all))
			f.Where.AtFault = fault
			o.Check(&f, 0, c)
			o.Keep(f)
			fs.Join(&o, moved)
			next := moved(fault.Or(0).Other())
			if fs.Decide(next.Other(), AfterMessage, c); len(c.decided) > 0 {
				t.Errorf("fault %v: a message of side %d decides it", fault, next.Other())
			}
			if at, known := fs.list[0].Where.AtFault.Get(); known != fault.Known() || known && at != next.Other() {
				t.Errorf("fault %v: side %d is at fault", fault, at)
			}
			if fs.Decide(next, AfterMessage, c); first(c.decided) != "proved " {
				t.Errorf("fault %v: a message of side %d decides %q", fault, next, first(c.decided))
			}
		}
	}
}
