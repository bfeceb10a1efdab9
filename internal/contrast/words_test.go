package contrast

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// fact returns a fact about all of some RPCs.
func fact(bad, ofBad, others, ofOthers int64, phrases ...string) Fact {
	return Fact{About: "call", Bad: bad, OfBad: ofBad, Others: others, OfOthers: ofOthers, phrase: phrases, Filter: "filter", plain: "fact", Text: strings.Join(phrases, " and ")}
}

// TestSentences: each sentence that reports consist of is written as it is listed here.
func TestSentences(t *testing.T) {
	set := func(verdict Verdict, change func(s *Set)) *Set {
		s := &Set{Set: NoReply, Subject: OfRPCs, Title: "without a Reply", Filter: "set", Bad: 12, Others: 74, Verdict: verdict, exact: true, once: true}
		if change != nil {
			change(s)
		}
		return s
	}
	missing := sentences(t)
	read := fact(12, 12, 0, 74, "are READ")
	stalled := fact(10, 12, 6, 74, "waited: retransmit_timeout")
	stalled.About = ofHandling.words()
	same := fact(12, 12, 0, 74, "are READ")
	same.Same = []Relative{{Text: "offer a Write chunk"}, {Text: "act on /a"}}
	same.runs, same.asGood = 2, 3
	nearly := fact(11, 12, 0, 74, "are READ", "do not repeat an earlier RPC")
	nearly.Nearly = []Relative{{Bad: 12, Others: 1, phrase: phrase{"were sent at 20.046s or later"}, Filter: "near"}}
	hint := fact(4, 4, 4, 62, "offer a Read chunk")
	hint.Chance = record.Some(0.025)
	only := fact(1, 1, 0, 28, "are CLONE")
	other := fact(1, 1, 0, 28, "have a Call of 252 bytes")
	certain := fact(12, 12, 3, 74, "are READ")
	certain.Chance = record.Some(1e-5)
	bursts := fact(12, 12, 3, 74, "are READ")
	bursts.runs, bursts.asGood = 2, 1
	for _, tc := range []struct {
		name string
		set  *Set
		want string
	}{
		{"no RPC", set(None, func(s *Set) { s.Bad, s.Others = 0, 86 }), "0 of 86 RPCs: without a Reply\n  no RPC is one of these"},
		{"all RPCs", set(All, func(s *Set) { s.Bad, s.Others = 102, 0 }), "102 of 102 RPCs: without a Reply\n  all 102 RPCs of which this can be said: there are no others to compare them with"},
		{"the only RPC", set(All, func(s *Set) { s.Bad, s.Others = 1, 0 }), "1 of 1 RPC: without a Reply\n  it is the only RPC of which this can be said: there are no others to compare it with"},
		{"not compared", set(Nothing, func(s *Set) { s.NotAsked, s.NotAskedWhy = 33, record.Some("no Reply") }), "12 of 86 RPCs: without a Reply (33 other RPCs are not compared: no Reply)\n  they have nothing in common that the others do not have: the 12 look like the other 74\n    no fact is true of a larger share of them than of the others\n  set"},
		{"one is not compared", set(None, func(s *Set) { s.NotAsked, s.NotAskedWhy = 1, record.Some("no Reply") }), "12 of 86 RPCs: without a Reply (1 other RPC is not compared: no Reply)\n  no RPC is one of these"},
		{"clear", set(Separated, func(s *Set) { s.Facts = []Fact{read} }), "12 of 86 RPCs: without a Reply\n  all 12 are READ; none of the 74 others is\n  filter"},
		{"the same RPCs, in bursts", set(Separated, func(s *Set) { s.Facts = []Fact{same} }), "12 of 86 RPCs: without a Reply\n  all 12 are READ; none of the 74 others is\n    the same RPCs offer a Write chunk; act on /a: this capture cannot tell which matters\n    they come in 2 bursts; of 199 sets of RPCs in bursts of the same lengths at places picked at random, 3 have a fact that separates them from the rest as well, or nearly\n  filter"},
		{"two facts, nearly the same RPCs, and one more", set(Separated, func(s *Set) { s.Facts, s.Unexplained = []Fact{nearly}, 1 }), "12 of 86 RPCs: without a Reply\n  11 of the 12 are READ and do not repeat an earlier RPC; none of the 74 others does\n  filter\n    or all 12 were sent at 20.046s or later; 1 of the 74 others was, too: nearly the same RPCs\n    near\n  1 more: too few to tell\n  (set) and (not (fact))"},
		{"a second fact", set(Separated, func(s *Set) {
			s.Facts, s.Unexplained = []Fact{fact(4, 12, 0, 74, "are READ"), fact(5, 8, 2, 74, "came from a")}, 3
		}), "12 of 86 RPCs: without a Reply\n  4 of the 12 are READ; none of the 74 others is\n  filter\n  5 of the 8 that remain came from a; 2 of the 74 others did, too\n  filter\n  the 3 that remain have nothing in common that the others do not have\n  ((set) and (not (fact))) and (not (fact))"},
		{"handling first", set(Separated, func(s *Set) {
			s.Facts, s.OfCalls = []Fact{stalled}, []Fact{fact(9, 12, 20, 74, "are WRITE")}
		}), "12 of 86 RPCs: without a Reply\n  10 of the 12 waited: retransmit_timeout; 6 of the 74 others did, too\n  filter\n  of what was asked: 9 of the 12 are WRITE; 20 of the 74 others are, too\n  filter"},
		{"only handling", set(Separated, func(s *Set) { s.Facts, s.Detectable, s.Hints = []Fact{stalled}, record.Some(int64(5)), []Fact{hint} }), "12 of 86 RPCs: without a Reply\n  10 of the 12 waited: retransmit_timeout; 6 of the 74 others did, too\n  filter\n  the Calls of the 12 asked for nothing in common that the others do not have: not operation, file, user, size, chunks, connection or time (a fact would show if it were true of 5 of the 12 and of no other)\n    nearest fact, not exact and only a hint: all 4 offer a Read chunk; 4 of the 62 others do, too (of sets of as many RPCs picked at random, at most 1 in 40 has a fact that separates it from the rest as well)"},
		{"weak", set(TooFew, func(s *Set) { s.Bad, s.Others, s.Hints = 1, 28, []Fact{only, other} }), "1 of 29 RPCs: without a Reply\n  1 of 29: proves little. Only this RPC is CLONE, and only this one has a Call of 252 bytes (sets of as many RPCs picked at random often have a fact that separates them from the rest as well)\n  set"},
		{"too few", set(TooFew, func(s *Set) { s.Bad, s.Others, s.Hints = 4, 62, []Fact{hint} }), "4 of 66 RPCs: without a Reply\n  4 of 66: too few to tell what separates them\n    nearest fact, not exact and only a hint: all 4 offer a Read chunk; 4 of the 62 others do, too (of sets of as many RPCs picked at random, at most 1 in 40 has a fact that separates it from the rest as well)\n  set"},
		{"bursts", set(Nothing, func(s *Set) {
			s.Hints, s.Bursts = []Fact{bursts}, record.Some(Bursts{Runs: 2, RandomSets: draws, AsGood: 1})
		}), "12 of 86 RPCs: without a Reply\n  they have nothing in common for certain that the others do not have, because they come in 2 bursts\n    nearest fact, not exact and only a hint: all 12 are READ; 3 of the 74 others are, too (of 199 sets of RPCs in bursts of the same lengths at places picked at random, 1 has a fact that separates it from the rest as well, or nearly)\n  set"},
		{"too few, but exact", set(TooFew, func(s *Set) { s.Bad, s.Others, s.Hints = 3, 62, []Fact{fact(3, 3, 0, 62, "are READ")} }), "3 of 65 RPCs: without a Reply\n  3 of 65: too few to tell what separates them\n    nearest fact, only a hint: all 3 are READ; none of the 62 others is (sets of as many RPCs picked at random often have a fact that separates them from the rest as well)\n  set"},
		{"one that is not the only one", set(TooFew, func(s *Set) {
			s.Bad, s.Others, s.Hints, s.MayHave = 1, 28, []Fact{fact(1, 1, 2, 28, "are CLONE")}, record.Some(int64(1))
		}), "1 of 29 RPCs: without a Reply\n  it may have a Reply: the capture lacks packets of its connection or hosts\n  1 of 29: too few to tell what separates them\n    nearest fact, not exact and only a hint: it is CLONE; 2 of the 28 others are, too (sets of as many RPCs picked at random often have a fact that separates them from the rest as well)\n  set"},
		{"not compared, for two reasons", set(None, func(s *Set) {
			s.NotAsked, s.NotAskedWhy, s.NotAskedBy = 6, record.Some("both"), []NotAsked{{"no Call in the capture", 1}, {"no Reply", 5}}
		}), "12 of 86 RPCs: without a Reply (6 other RPCs are not compared: 1 with no Call in the capture, 5 with no Reply)\n  no RPC is one of these"},
		{"slow", set(None, func(s *Set) {
			s.Slow = record.Some(Latencies{[]Limit{{NS: 10e6}}, record.Some[int64](11555000), record.Some[int64](7929000)})
		}), "12 of 86 RPCs: without a Reply\n  they took 11.55ms or more, and the others at most 7.93ms\n  no RPC is one of these"},
		{"slow by as much as tables do not show", set(None, func(s *Set) {
			s.Slow = record.Some(Latencies{[]Limit{{NS: 10e6}}, record.Some[int64](10001000), record.Some[int64](9999000)})
		}), "12 of 86 RPCs: without a Reply\n  they took 10.001ms or more, and the others at most 10.00ms\n  no RPC is one of these"},
		{"slower than a percentile", set(None, func(s *Set) {
			s.showsLimit, s.Slow = true, record.Some(Latencies{[]Limit{{NS: 950}}, record.Some[int64](11555000), record.Some[int64](950)})
		}), "12 of 86 RPCs: without a Reply\n  the limit is 950ns: they took 11.55ms or more, and the others at most 950ns\n  no RPC is one of these"},
		{"slow for their operation", set(None, func(s *Set) {
			s.Slow = record.Some(Latencies{Limits: []Limit{{record.Some("READ"), 12345000}, {record.Some("MOUNT3 MNT"), 2500}}})
		}), "12 of 86 RPCs: without a Reply\n  the limits are 12.345ms for READ, 2.5us for \"MOUNT3 MNT\"\n  no RPC is one of these"},
		{"a rhythm", set(Nothing, func(s *Set) { s.Hints, s.Period = []Fact{certain}, record.Some(int64(3)) }), "12 of 86 RPCs: without a Reply\n  they have nothing in common for certain that the others do not have, because every 3rd RPC is one of them\n    nearest fact, not exact and only a hint: all 12 are READ; 3 of the 74 others are, too (of sets of as many RPCs picked at random, at most 1 in 100000 has a fact that separates it from the rest as well)\n  set"},
		{"a rhythm that may not matter", set(Separated, func(s *Set) { s.Facts, s.Period = []Fact{read}, record.Some(int64(3)) }), "12 of 86 RPCs: without a Reply\n  every 3rd RPC is one of them, at least for some time: whether this rhythm matters, this capture cannot tell\n  all 12 are READ; none of the 74 others is\n  filter"},
		{"retransmissions of one request, and an incomplete capture", set(Separated, func(s *Set) {
			s.Facts, s.Requests, s.MayHave, s.once = []Fact{read}, record.Some(int64(1)), record.Some(int64(3)), false
		}), "12 of 86 RPCs: without a Reply\n  3 of the 12 may have a Reply: the capture lacks packets of their connections or hosts\n  the 12 are 1 request and 11 retransmissions on later connections: a single request proves little\n  all 12 are READ; none of the 74 others is\n  filter"},
		{"retransmissions of few requests", set(Separated, func(s *Set) { s.Facts, s.Requests, s.once = []Fact{read}, record.Some(int64(3)), false }), "12 of 86 RPCs: without a Reply\n  the 12 are 3 requests and 9 retransmissions on later connections: the requests by themselves are too few to tell\n  all 12 are READ; none of the 74 others is\n  filter"},
		{"retransmissions of many requests", set(Separated, func(s *Set) { s.Facts, s.Requests = []Fact{read}, record.Some(int64(11)) }), "12 of 86 RPCs: without a Reply\n  the 12 are 11 requests and 1 retransmission on later connections\n  all 12 are READ; none of the 74 others is\n  filter"},
		{"a sample", set(Separated, func(s *Set) { s.Facts, s.Sampled = []Fact{read}, record.Some(Sampled{12, 70}) }), "12 of 86 RPCs: without a Reply\n  all 12 are READ; none of the 74 others is\n  filter\n  found in a sample of 12 of them and 70 others; the numbers are those of all RPCs"},
		{"two RPCs", set(TooFew, func(s *Set) { s.Bad, s.Others, s.Hints = 2, 62, []Fact{fact(2, 2, 4, 62, "offer a Read chunk")} }), "2 of 64 RPCs: without a Reply\n  2 of 64: too few to tell what separates them\n    nearest fact, not exact and only a hint: both offer a Read chunk; 4 of the 62 others do, too (sets of as many RPCs picked at random often have a fact that separates them from the rest as well)\n  set"},
		{"findings of a rule", set(Separated, func(s *Set) {
			s.Facts, s.Rules = []Fact{read}, []Relative{{Text: "have a finding of rdma-error", Filter: "rule"}}
		}), "12 of 86 RPCs: without a Reply\n  all 12 are READ; none of the 74 others is\n  filter\n  check has a finding of rdma-error for all 12, and for none of the 74 others\n  rule"},
		{"one finding of a rule", set(TooFew, func(s *Set) {
			s.Bad, s.Others, s.Rules = 1, 28, []Relative{{Text: "have a finding of rdma-error", Filter: "rule"}}
		}), "1 of 29 RPCs: without a Reply\n  1 of 29: too few to tell what separates them\n    no fact is true of a larger share of them than of the others\n  set\n  check has a finding of rdma-error for it, and for none of the 28 others\n  rule"},
		{"connections", set(TooFew, func(s *Set) { s.Subject, s.Title, s.Bad, s.Others = OfConnections, "ended by rejected", 2, 9 }), "2 of 11 connections: ended by rejected\n  2 of 11: too few to tell what separates them\n    no fact is true of a larger share of them than of the others\n  set"},
	} {
		if got := text(tc.set); got != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.name, got, tc.want)
		}
		for name, of := range missing {
			if of.MatchString(tc.want) {
				delete(missing, name)
			}
		}
	}
	short, _ := set(Nothing, nil).Sentence()
	if want := "the 12 RPCs without a Reply have nothing in common that the 74 others do not have"; short != want {
		t.Errorf("in short: %s", short)
	}
	delete(missing, "overviewNothing")
	for name := range missing {
		t.Errorf("no case has the sentence %s", name)
	}
}

// sentences returns an expression for each sentence of this package, by the names of their constants.
func sentences(t *testing.T) map[string]*regexp.Regexp {
	file, err := parser.ParseFile(token.NewFileSet(), "words.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]*regexp.Regexp{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || len(spec.Values) != 1 {
			return true
		}
		if of, named := spec.Type.(*ast.Ident); named && of.Name == "sentence" {
			format, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			pattern := strings.NewReplacer("%d", "[0-9]+", "%s", ".*", `%\.0f`, "[0-9]+").Replace(regexp.QuoteMeta(format))
			list[spec.Names[0].Name] = regexp.MustCompile(pattern)
		}
		return true
	})
	if len(list) < 20 {
		t.Fatalf("only %d sentences", len(list))
	}
	return list
}
