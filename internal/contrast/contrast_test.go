package contrast

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth/cases"
)

// collected returns a collector that has taken the RPCs of a capture.
func collected(t testing.TB, path string, o Options) *Collector {
	t.Helper()
	file, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c := NewCollector(o)
	d := dissect.New(dissect.Handler{
		Begin:       func(at record.Time) error { c.Begin(at); return nil },
		Transaction: c.unlessConnections, Connection: c.ifConnections,
	}, dissect.Options{Decode: true, Files: true})
	if _, err := d.Run(t.Context(), file); err != nil {
		t.Logf("%s: %v", path, err) // One of them is damaged at its end.
	}
	return c
}

// unlessConnections takes an RPC, and ifConnections a connection.
func (c *Collector) unlessConnections(r *record.Transaction) error {
	if c.options.Connections {
		return nil
	}
	return c.Add(r)
}

func (c *Collector) ifConnections(r *record.Connection) error {
	if !c.options.Connections {
		return nil
	}
	return c.AddConnection(r)
}

// captures returns the paths of captures whose names match a pattern.
func captures(t testing.TB, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob("../../testdata/" + pattern)
	if err != nil || len(list) == 0 {
		t.Fatalf("no capture matches %s: %v", pattern, err)
	}
	return list
}

// planted compares the RPCs that bad selects, by their place in the order of time, with the others.
func (c *Collector) planted(bad func(i int, r *row) bool) *Set {
	c.targets, c.byKey = nil, map[string]int{}
	at := c.target(ByRule, "planted", "id < 0", "")
	rows := c.sorted()
	for i, r := range rows {
		r.facets.member, r.sets = nil, nil
		if bad(i, r) {
			r.facets.member, r.sets = []int{at}, []int{at}
			c.targets[at].held.seen++
			c.targets[at].held.rows = append(c.targets[at].held.rows, r)
		}
	}
	return c.compare(c.newSearch(rows), at)
}

// text returns the report of a set.
func text(s *Set) string {
	lines := []string{s.Head()}
	for _, l := range s.Lines() {
		lines = append(lines, strings.Repeat("  ", l.Depth)+l.Text+l.Filter)
	}
	return strings.Join(lines, "\n")
}

// healthy returns collectors of captures with enough RPCs.
func healthy(t testing.TB) (list []*Collector) {
	for _, path := range captures(t, "captures/*.pcap*.zst") {
		if c := collected(t, path, Options{}); c.total >= 60 {
			list = append(list, c)
		}
	}
	return list
}

// TestRandomSets: of random sets, nothing is reported, and of random bursts nothing but when they were sent, or where they are
// on a connection. At most 1% may be reported otherwise.
func TestRandomSets(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	list := healthy(t)
	const sets, most = 2000, 20
	said, bursts := 0, 0
	for i := range sets {
		c := list[i%len(list)]
		n := int(c.total)
		bad := map[int]bool{}
		for size := 3 + random.IntN(n/3); len(bad) < size; {
			bad[random.IntN(n)] = true
		}
		if s := c.planted(func(i int, _ *row) bool { return bad[i] }); len(s.Facts) > 0 {
			said++
			t.Logf("a random set: %s", text(s))
		}
		var runs []int
		for range 2 + random.IntN(8) {
			runs = append(runs, 1+random.IntN(min(8, n/20)))
		}
		order := shuffled(runs, n, random)
		s := c.planted(func(i int, _ *row) bool { return order[i] })
		if slices.ContainsFunc(s.Facts, func(f Fact) bool { return f.About != "time" }) {
			bursts++
			t.Logf("bursts of %v: %s", runs, text(s))
		}
	}
	t.Logf("something is reported of %d of %d random sets, and something other than a time of %d of %d random bursts", said, sets, bursts, sets)
	if said > most || bursts > most {
		t.Errorf("something is reported of %d random sets and %d random bursts; at most %d of %d are expected", said, bursts, most, sets)
	}
}

// predicate returns a random fact about one field that is true of some of the RPCs.
func predicate(s *search, random *rand.Rand) (c candidate, holds func(*row) bool, n int) {
	for {
		c.column = random.IntN(len(s.columns))
		col := s.columns[c.column]
		if !s.asked[c.column] || len(col.values) == 0 {
			continue
		}
		c.values = []int32{int32(random.IntN(len(col.values)))}
		c.form = isValue
		if col.asks&asksPresence != 0 && (col.asks&asksValue == 0 || random.IntN(2) == 0) {
			c.form = isPresent
		} else if col.asks&asksMore != 0 && (col.asks&asksValue == 0 || random.IntN(2) == 0) {
			if len(s.ranks[c.column].sorted) < 2 {
				continue
			}
			c.form = []form{isMore, isAtMost}[random.IntN(2)]
		}
		holds, n = s.holds(&c), 0
		for _, r := range s.rows {
			if holds(r) {
				n++
			}
		}
		if n >= 8 && n <= len(s.rows)/2 {
			return c, holds, n
		}
	}
}

// TestPlanted: if a fact decides which RPCs are bad, the first sentence is this fact, or another one that is true of the same RPCs.
func TestPlanted(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	exact, wrong, noisy, all := 0, 0, 0, 0
	for _, c := range healthy(t) {
		rows := c.sorted()
		s := c.newSearch(rows)
		s.ask(func(col *column) bool { return (col.about == ofCall || col.about == ofDetail) && !col.replies })
		for range 6 {
			p, holds, n := predicate(s, random)
			all++
			set := c.planted(func(_ int, r *row) bool { return holds(r) })
			what := fmt.Sprintf("%d that %s", n, s.columns[p.column].filter(p.form, []value{s.columns[p.column].values[p.values[0]]}))
			switch {
			case len(set.Facts) > 0 && set.Facts[0].Bad == int64(n) && set.Facts[0].Others == 0:
				exact++
			case len(set.Facts) > 0:
				wrong++
				t.Logf("%s: %s", what, text(set))
			default:
				t.Logf("%s: %s", what, text(set))
			}
			// One of five RPCs is spared, and one of fifty others is bad, too.
			set = c.planted(func(_ int, r *row) bool {
				return holds(r) == (random.IntN(100) < map[bool]int{true: 80, false: 98}[holds(r)])
			})
			if len(set.Facts) > 0 {
				noisy++
			}
		}
	}
	t.Logf("of %d facts, %d are reported exactly and %d otherwise; with noise, something is reported of %d", all, exact, wrong, noisy)
	if exact*10 < all*9 || wrong*100 > all*3 || noisy*2 < all {
		t.Errorf("of %d facts, %d are reported exactly, %d otherwise, and with noise %d", all, exact, wrong, noisy)
	}
}

// TestPairs: two facts that decide together which RPCs are bad are found, such as one or two operations during an interval.
func TestPairs(t *testing.T) {
	random := rand.New(rand.NewPCG(41, 42))
	exact, silent, all := 0, 0, 0
	for _, c := range healthy(t) {
		rows := c.sorted()
		for range 4 {
			names := map[int32]bool{}
			for range 1 + random.IntN(2) {
				if of := c.columns[0].entries[rows[random.IntN(len(rows))].entries[0]]; len(of.values) > 0 {
					names[of.values[0]] = true
				}
			}
			from := random.IntN(len(rows) / 2)
			to := from + len(rows)/4 + random.IntN(len(rows)/4)
			n := 0
			holds := func(i int, r *row) bool {
				of := c.columns[0].entries[r.entries[0]].values
				return i >= from && i < to && len(of) > 0 && names[of[0]]
			}
			for i, r := range rows {
				if holds(i, r) {
					n++
				}
			}
			if n < 10 || n > (to-from)*2/3 {
				continue
			}
			all++
			switch s := c.planted(holds); {
			case len(s.Facts) == 0:
				silent++
				t.Logf("%d to %d: %s", from, to, text(s))
			case s.Facts[0].Bad == int64(n) && s.Facts[0].Others == 0:
				exact++
			default:
				t.Logf("%d to %d: %s", from, to, text(s))
			}
		}
	}
	t.Logf("of %d operations during an interval, %d are reported exactly, and nothing is reported of %d", all, exact, silent)
	if all < 30 || exact*10 < all*7 {
		t.Errorf("of %d operations during an interval, only %d are reported exactly", all, exact)
	}
}

// TestPeriodic: of trouble that comes at a regular distance, nothing is reported that only the rhythm of the workload makes so.
func TestPeriodic(t *testing.T) {
	wrong, all := 0, 0
	for _, c := range healthy(t) {
		for distance := 2; distance <= 12; distance++ {
			for shift := range min(distance, 3) {
				if int(c.total)/distance < 10 {
					continue
				}
				all++
				s := c.planted(func(i int, _ *row) bool { return i%distance == shift })
				for _, f := range s.Facts {
					if f.About != "time" && (f.Bad < f.OfBad || f.Others > 0) {
						wrong++
						t.Logf("every %s: %s", ordinal(int64(distance)), text(s))
						break
					}
				}
			}
		}
	}
	t.Logf("of %d periodic sets, something that is only nearly true is reported of %d", all, wrong)
	if all < 300 || wrong*100 > all {
		t.Errorf("of %d periodic sets, something that is only nearly true is reported of %d", all, wrong)
	}
}

// filtered is a fact with its compiled filter.
type filtered struct {
	*candidate
	*query.Filter
	text string
}

// facts returns facts about every column, and some about times.
func facts(t *testing.T, s *search, r *reporter, random *rand.Rand) (list []*filtered) {
	add := func(one *candidate) {
		f := &filtered{candidate: one, text: r.plainFilter(one)}
		var err error
		if f.Filter, err = query.Compile(f.text, r.c.fields); err != nil {
			t.Fatalf("%s: %v", f.text, err)
		}
		list = append(list, f)
	}
	for i, col := range s.columns {
		if !s.asked[i] {
			continue
		}
		unknowns := slices.ContainsFunc(col.entries, func(e entry) bool { return e.unknown })
		for range 4 {
			var v []int32
			if len(col.values) > 0 {
				v = []int32{int32(random.IntN(len(col.values)))}
			}
			for form, asked := range map[form]bool{
				isValue: col.asks&asksValue != 0, isNotValue: col.asks&asksNot != 0 && !unknowns, isPresent: col.asks&asksPresence != 0, isAbsent: col.asks&asksPresence != 0 && !unknowns,
				isMore: col.asks&asksMore != 0 && len(s.ranks[i].sorted) > 1, isAtMost: col.asks&asksMore != 0 && len(s.ranks[i].sorted) > 1,
			} {
				if asked && (len(v) > 0 || form == isPresent || form == isAbsent) {
					add(&candidate{column: i, form: form, values: v})
				}
			}
		}
	}
	from, to := s.rows[len(s.rows)/4].time, s.rows[len(s.rows)/2].time
	for _, form := range []form{isBetween, isFrom, isUntil} {
		add(&candidate{column: -1, form: form, from: from, to: to, and: list[0].candidate})
	}
	return list
}

// TestFilters: the filter of each fact selects exactly the RPCs, or connections, of which the fact is true.
func TestFilters(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 32))
	compared := 0
	for _, path := range append(captures(t, "captures/rocev2-*.zst"), captures(t, "captures/lab-*.pcap.zst")...) {
		for _, connections := range []bool{false, true} {
			c := collected(t, path, Options{Connections: connections})
			if c.total < 2 {
				continue
			}
			s := c.newSearch(c.sorted())
			s.ask(func(col *column) bool { return !col.replies })
			list := facts(t, s, &reporter{c: c, search: s, set: &Set{exact: true}}, random)
			byID := map[int64]*row{}
			for _, r := range s.rows {
				byID[r.id] = r
			}
			check := func(id int64, r any) error {
				one := byID[id]
				for _, f := range list {
					if one == nil {
						continue
					}
					hit, err := f.Match(r)
					if err != nil {
						t.Fatalf("%s: %v", f.text, err)
					}
					if want := s.holds(f.candidate)(one); hit != want {
						t.Errorf("%s: number %d: %s selects it: %v; the fact is true of it: %v", filepath.Base(path), id, f.text, hit, want)
					}
					compared++
				}
				return nil
			}
			h := dissect.Handler{Transaction: func(r *record.Transaction) error { return check(r.ID, r) }}
			if connections {
				h = dissect.Handler{Connection: func(r *record.Connection) error { return check(int64(r.ID), r) }}
			}
			dissect.New(h, dissect.Options{Decode: true, Files: true}).Run(t.Context(), testkit.Open(t, path))
		}
	}
	if compared < 100_000 {
		t.Errorf("only %d comparisons", compared)
	}
}

// TestScopes: each finding is about an RPC in the scope of its rule, on all captures, and on connections that violate the rules.
func TestScopes(t *testing.T) {
	filters, findings := map[string]*query.Filter{}, map[string]int{}
	for _, r := range rule.All {
		if r.Scope() == "" {
			continue
		}
		f, err := query.Compile(r.Scope(), query.Transactions)
		if err != nil {
			t.Fatalf("%s: %v", r.ID, err)
		}
		filters[r.ID] = f
	}
	if len(filters) < 15 {
		t.Fatalf("only %d rules have a scope", len(filters))
	}
	check := func(name string, source capture.Source) {
		dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
			for _, id := range r.Findings {
				f := filters[id]
				if f == nil || r.Call == nil { // An RPC without a Call is not compared.
					continue
				}
				findings[id]++
				if hit, err := f.Match(r); !hit || err != nil {
					t.Errorf("%s: XID %v has a finding of %s, but is not in its scope: %v", name, r.XID, id, err)
				}
			}
			return nil
		}}, dissect.Options{}).Run(t.Context(), source)
	}
	for _, path := range captures(t, "captures/*.pcap*.zst") {
		check(path, testkit.Open(t, path))
	}
	for _, c := range cases.All() {
		for _, transport := range []string{cases.RoCE, cases.IWARP} {
			if c.On(transport) {
				check(c.Name, testkit.Source(t, c.Wire(transport, true)))
			}
		}
	}
	if len(findings) < len(filters)*3/4 {
		t.Errorf("of %d rules with a scope, only %d have findings: %v", len(filters), len(findings), findings)
	}
}

// TestNearest: if nothing separates a set from the others, the report says which fact comes nearest, with its numbers, in all captures.
func TestNearest(t *testing.T) {
	without := 0
	for _, path := range testkit.Short(t, append(captures(t, "captures/*.pcap*.zst"), captures(t, "ends/*.zst")...)) {
		c := collected(t, path, Options{Kinds: []Kind{NoReply, Status, Slow, ByRule}, Slow: Slowness{Times: UsualSlow}})
		for _, s := range c.Sets() {
			if s.Verdict != Nothing && s.Verdict != TooFew {
				continue
			}
			without++
			if len(s.Hints) == 0 {
				t.Errorf("%s: no fact is near: %s", filepath.Base(path), text(s))
			}
			for _, f := range s.Hints {
				if f.Bad*f.OfOthers <= f.Others*f.OfBad {
					t.Errorf("%s: the fact is as frequent among the others: %s", filepath.Base(path), text(s))
				}
			}
		}
	}
	if without < 5 {
		t.Errorf("only %d sets that nothing separates", without)
	}
}

// TestUndelivered: an RPC whose Reply was never accepted is one without a Reply, so statuses are not compared with it, and both sets
// count as many.
func TestUndelivered(t *testing.T) {
	c := NewCollector(Options{Kinds: []Kind{NoReply, Status}})
	for i := range int64(60) {
		r := &record.Transaction{ID: i + 1, Status: record.Complete, NFSStatus: record.Some("NFS4_OK"), Call: &record.Message{Time: record.Time(i) * 1e6}, Reply: &record.Message{}}
		switch i % 10 {
		case 3:
			r.Status, r.NFSStatus = record.NoReply, record.Some("NFS4ERR_IO") // refused by its receiver
		case 4:
			r.Status, r.Reply, r.NFSStatus = record.NoReply, nil, record.Opt[string]{}
		case 5:
			r.NFSStatus = record.Some("NFS4ERR_IO")
		}
		if err := c.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Add(&record.Transaction{ID: 61, Status: record.NoCall}); err != nil {
		t.Fatal(err)
	}
	var heads []string
	for _, s := range c.Sets() {
		heads = append(heads, s.Head())
	}
	want := []string{
		"12 of 60 RPCs: without a Reply (1 other RPC is not compared: no Call in the capture)",
		"6 of 48 RPCs: with the status NFS4ERR_IO (13 other RPCs are not compared: 1 with no Call in the capture, 12 with no Reply)",
	}
	if !slices.Equal(heads, want) {
		t.Errorf("%q, want %q", heads, want)
	}
}

// TestHostile: thousands of values, long names and control characters take little memory, are never in a sentence or a filter
// as they are, and hide no fact.
func TestHostile(t *testing.T) {
	c := NewCollector(Options{Kinds: []Kind{NoReply, Status}, Rows: 512})
	for i := range int64(4000) {
		r := &record.Transaction{
			ID: i + 1, Connection: int(i % 3000), Status: record.Complete, Transport: "RoCEv2", Call: &record.Message{Time: record.Time(i * 1e6), Packet: i + 1}, Reply: &record.Message{Time: record.Time(i*1e6 + 10)},
			Operation: record.Some(fmt.Sprintf("OP%d", i%5)), Machine: record.Some(fmt.Sprintf("\x1b[31m%d\xff", i)), NFSStatus: record.Some(fmt.Sprintf("ERR%d", i)),
			File: record.Some("/" + strings.Repeat("\x07/", 100) + fmt.Sprint(i)), UID: record.Some(uint32(i)),
		}
		if i%5 == 3 {
			r.Status, r.Reply, r.NFSStatus, r.Operation = record.NoReply, nil, record.Opt[string]{}, record.Some("OP\x1b[2J'\"; rm 7")
		}
		if err := c.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.targets) > maxSets || len(c.all.rows) > 512 {
		t.Errorf("%d sets, %d rows", len(c.targets), len(c.all.rows))
	}
	used := 0
	for _, col := range c.columns {
		for _, v := range col.values {
			used += len(v.text) + valueBytes
		}
	}
	if used > 2*512*answerBytes {
		t.Errorf("the values take %d bytes", used)
	}
	sets := c.Sets()
	if sets[0].Set != NoReply || len(sets[0].Facts) == 0 || !strings.HasPrefix(sets[0].Facts[0].Text, `are "OP\x1b[2J'`) {
		t.Errorf("the fact is hidden: %s", text(sets[0]))
	}
	for _, s := range sets {
		if i := strings.IndexFunc(text(s), func(r rune) bool { return r < 0x20 && r != '\n' || r >= 0x7f }); i >= 0 {
			t.Errorf("a control character: %q", text(s))
		}
		for _, f := range s.Facts {
			if _, err := query.Compile(f.Filter, query.Transactions); err != nil {
				t.Errorf("%s: %v", f.Filter, err)
			}
		}
	}
}

// TestExact: a fact that is true of all bad RPCs and of no other is reported whether or not other fields are compared, and says
// which interval and how many random bursts show as much.
func TestExact(t *testing.T) {
	for _, tc := range []struct {
		path   string
		kind   Kind
		fields []string
		want   []string
	}{
		{"captures/rocev2-chimera-noreplychunk3.pcap.zst", NoReply, []string{"operation"}, []string{
			"30 of 130 RPCs: without a Reply",
			"  the 30 are 1 request and 29 retransmissions on later connections: a single request proves little",
			"  all 30 are READDIRPLUS; none of the 100 others is",
			"    the same RPCs were sent between 21.103s and 22.897s: this capture cannot tell which matters",
			"    they come in 1 burst; of 199 sets of RPCs in bursts of the same lengths at places picked at random, 2 have a fact that separates them from the rest as well, or nearly",
			`  operation == READDIRPLUS`,
		}},
		{"captures/rocev2-chimera-noreplychunk3.pcap.zst", NoReply, nil, []string{
			"30 of 130 RPCs: without a Reply",
			"  the 30 are 1 request and 29 retransmissions on later connections: a single request proves little",
			"  all 30 are READDIRPLUS; none of the 100 others is",
			"    the same RPCs offer a Reply chunk; have a Call of 116 bytes; offer memory that does not begin at a page; were sent between 21.103s and 22.897s: this capture cannot tell which matters",
			"    they come in 1 burst; of 199 sets of RPCs in bursts of the same lengths at places picked at random, 2 have a fact that separates them from the rest as well, or nearly",
			`  operation == READDIRPLUS`,
			"  check has a finding of inline-threshold-exceeded for all 30, and for none of the 100 others",
			`  findings == inline-threshold-exceeded`,
			"  check has a finding of remote-error-nak for all 30, and for none of the 100 others",
			`  findings == remote-error-nak`,
			"  check has a finding of reply-chunk-not-copied for all 30, and for none of the 100 others",
			`  findings == reply-chunk-not-copied`,
		}},
		{"captures/rocev2-chimera-overrun42.pcap.zst", Status, []string{"operation"}, []string{
			"10 of 74 RPCs: with the status NFS4ERR_RETRY_UNCACHED_REP (12 other RPCs are not compared: no Reply)",
			"  all 10 are READ; none of the 64 others is",
			"    the same RPCs were sent between 20.046s and 20.866s: this capture cannot tell which matters",
			"    they come in 1 burst; of 199 sets of RPCs in bursts of the same lengths at places picked at random, 1 has a fact that separates it from the rest as well, or nearly",
			`  (operation == READ) and (status != no_reply)`,
		}},
		{"captures/rocev2-chimera-overrun42.pcap.zst", Status, nil, []string{
			"10 of 74 RPCs: with the status NFS4ERR_RETRY_UNCACHED_REP (12 other RPCs are not compared: no Reply)",
			"  all 10 are READ; none of the 64 others is",
			"    the same RPCs offer a Write chunk; repeat an earlier RPC; were sent between 20.046s and 20.866s: this capture cannot tell which matters",
			"    they come in 1 burst; of 199 sets of RPCs in bursts of the same lengths at places picked at random, 1 has a fact that separates it from the rest as well, or nearly",
			`  (operation == READ) and (status != no_reply)`,
			"    or all 10 are the first on their connection; 2 of the 64 others are, too: nearly the same RPCs",
			`    (context.number_on_connection == 1) and (status != no_reply)`,
		}},
	} {
		c := collected(t, "../../testdata/"+tc.path, Options{Kinds: []Kind{tc.kind}, Fields: tc.fields})
		if got := text(c.Sets()[0]); got != strings.Join(tc.want, "\n") {
			t.Errorf("%s with the fields %v:\n%s", tc.path, tc.fields, got)
		}
	}
}

// listed is a filter of a report, and how many RPCs it must select.
type listed struct {
	text        string
	bad, others int64
	filter      *query.Filter
	hits, rest  int64
}

// TestCommands: the filter of each sentence selects exactly the RPCs, or connections, that the sentence counts, whether all are
// compared or a sample, in all captures.
func TestCommands(t *testing.T) {
	paths := captures(t, "captures/*.pcap*.zst")
	for _, pattern := range []string{"ends/*.zst", "other/*.zst", "../samples/*.pcap.zst"} {
		paths = append(paths, captures(t, pattern)...)
	}
	filters, sampled := 0, 0
	for i, path := range testkit.Short(t, paths) {
		for _, o := range []Options{
			{Kinds: []Kind{NoReply, Status, Slow, ByRule}, Slow: Slowness{Times: UsualSlow}},
			{Kinds: []Kind{NoReply, Slow}, Slow: Slowness{Percentile: 0.8}, Rows: 48},
			{Kinds: []Kind{Ended, Retransmitting}, Connections: true},
		} {
			c := collected(t, path, o)
			if again := c.Again(); again != nil {
				c = collected(t, path, again.options)
			}
			sets := c.Sets()
			if c.Sampled() {
				n, err := c.NewRecount(sets)
				if err != nil {
					t.Fatal(err)
				}
				visit(t, path, o.Connections, n.Add, n.AddConnection)
				n.Finish()
				sampled++
			}
			for _, s := range sets {
				filters += s.check(t, fmt.Sprintf("capture %d, %s", i, filepath.Base(path)), path, c)
			}
		}
	}
	if !testing.Short() && (filters < 300 || sampled < 20) {
		t.Errorf("only %d filters, and %d captures of which a sample was compared", filters, sampled)
	}
}

// visit passes the RPCs or the connections of a capture.
func visit(t *testing.T, path string, connections bool, rpc func(*record.Transaction) error, connection func(*record.Connection) error) {
	h := dissect.Handler{Transaction: rpc}
	if connections {
		h = dissect.Handler{Connection: connection}
	}
	dissect.New(h, dissect.Options{Decode: true, Files: true}).Run(t.Context(), testkit.Open(t, path))
}

// check verifies the filters of a set, and returns their number.
func (s *Set) check(t *testing.T, name, path string, c *Collector) int {
	list := []*listed{{text: s.Filter, bad: s.Bad}}
	fact := func(f *Fact) {
		list = append(list, &listed{text: f.Filter, bad: f.Bad, others: f.Others})
		for _, r := range append(slices.Clone(f.Same), f.Nearly...) {
			list = append(list, &listed{text: r.Filter, bad: r.Bad, others: r.Others})
		}
	}
	for i := range s.Facts {
		fact(&s.Facts[i])
	}
	for _, f := range s.apart() {
		fact(f)
	}
	for _, r := range s.Rules {
		list = append(list, &listed{text: r.Filter, bad: s.Bad})
	}
	if len(s.Facts) > 0 {
		list = append(list, &listed{text: s.remaining(), bad: s.Unexplained})
	}
	for _, l := range list {
		var err error
		if l.filter, err = query.Compile(l.text, c.fields); err != nil {
			t.Fatalf("%s: %s: %v", name, l.text, err)
		}
	}
	each := func(r any) error {
		bad := false
		for i, l := range list {
			hit, err := l.filter.Match(r)
			if err != nil {
				t.Fatalf("%s: %s: %v", name, l.text, err)
			}
			if i == 0 {
				bad = hit
			}
			switch {
			case hit && bad:
				l.hits++
			case hit:
				l.rest++
			}
		}
		return nil
	}
	visit(t, path, c.options.Connections, func(r *record.Transaction) error { return each(r) }, func(r *record.Connection) error { return each(r) })
	for _, l := range list {
		if l.hits != l.bad || l.rest != l.others {
			t.Errorf("%s: %s: %s selects %d of the set and %d others; the report has %d and %d", name, s.Title, l.text, l.hits, l.rest, l.bad, l.others)
		}
	}
	return len(list)
}

// TestConnections: a fact about connections that were rejected, or retransmitted, is found with the search for RPCs.
func TestConnections(t *testing.T) {
	c := NewCollector(Options{Kinds: []Kind{Ended, Retransmitting}, Connections: true})
	random := rand.New(rand.NewPCG(7, 8))
	for i := range 60 {
		r := &record.Connection{
			ID: i, First: record.Time(i) * 1e9, Last: record.Time(i)*1e9 + 5e8, Transport: "RoCEv2", UpperLayer: "rpcrdma", Handshake: "seen",
			Client: record.Endpoint{Address: record.Some(fmt.Sprintf("10.0.0.%d", random.IntN(5))), Port: record.Some(uint16(700 + random.IntN(60)))},
			Server: record.Endpoint{Address: record.Some("10.0.1.1"), Port: record.Some(uint16(20049))}, PathMTU: record.Some(1024), Packets: 100,
		}
		if r.Client.Address.Or("") == "10.0.0.3" {
			r.Ended = record.Some(record.Ended{How: record.EndRejected, By: record.Some(record.Server)})
		}
		if random.IntN(4) == 1 {
			r.PathMTU, r.Retransmitted = record.Some(4096), 2
		}
		if err := c.AddConnection(r); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, s := range c.Sets() {
		got = append(got, text(s))
	}
	const want = `14 of 60 connections: with retransmitted packets
  all 14 have a path MTU of 4096 bytes; none of the 46 others does
  path_mtu == 4096

10 of 60 connections: ended by rejected
  all 10 come from 10.0.0.3; none of the 50 others does
  client.address == "10.0.0.3"`
	if strings.Join(got, "\n\n") != want {
		t.Errorf("%s", strings.Join(got, "\n\n"))
	}
}

// TestGrace: that two operations fail during an interval, as in the grace period of a server that was restarted, is found.
func TestGrace(t *testing.T) {
	c := NewCollector(Options{Kinds: []Kind{Status}})
	names := []string{"OPEN", "LOCK", "READ", "WRITE", "GETATTR", "CLOSE"}
	random := rand.New(rand.NewPCG(5, 6))
	for i := range int64(400) {
		at := record.Time(i * 1e8)
		r := &record.Transaction{
			ID: i + 1, Status: record.Complete, Transport: "RoCEv2", Operation: record.Some(names[random.IntN(len(names))]), NFSStatus: record.Some("NFS4_OK"), RPCStatus: record.Some("SUCCESS"),
			Call: &record.Message{Time: at, Packet: 2*i + 1}, Reply: &record.Message{Time: at + 1000, Packet: 2*i + 2},
		}
		if op := r.Operation.Or(""); i >= 100 && i < 250 && (op == "OPEN" || op == "LOCK") {
			r.NFSStatus = record.Some("NFS4ERR_GRACE")
		}
		if err := c.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	c.Begin(0)
	sets := c.Sets()
	if len(sets) != 1 {
		t.Fatalf("%d sets", len(sets))
	}
	const want = `55 of 400 RPCs: with the status NFS4ERR_GRACE
  all 55 are LOCK or OPEN and were sent between 10.100s and 24.600s; none of the 345 others does
  (operation in [LOCK, OPEN]) and (time >= 1970-01-01T00:00:10.100000000Z and time <= 1970-01-01T00:00:24.600000000Z)`
	if got := text(sets[0]); got != want {
		t.Error(got)
	}
}

// TestSlowProcedures: an RPC of a program without operations is slow if it took over 10 times the median of its own procedure, also if
// the capture must be read twice, and if compare says which latencies are long.
func TestSlowProcedures(t *testing.T) {
	var list []*record.Transaction
	add := func(program, procedure uint32, name string, operation bool, ns int64) {
		r := &record.Transaction{
			ID: int64(len(list) + 1), Program: record.Some(program), Version: record.Some[uint32](3), Procedure: record.Some(procedure), LatencyNS: record.Some(ns),
			Status: record.Complete, Call: &record.Message{Time: record.Time(len(list)) * 1e6}, Reply: &record.Message{},
		}
		if name != "" {
			r.ProgramName, r.ProcedureName = record.Some("MOUNT"), record.Some(name)
		}
		if operation {
			r.ProgramName, r.Operation = record.Some("NFS"), record.Some(name)
		}
		list = append(list, r)
	}
	for i := range int64(40) {
		long := int64(1)
		if i%10 == 3 {
			long = 20
		}
		add(100005, 1, "MNT", false, 1e6*long)
		add(100003, 6, "READ", true, 50e6) // of which none is slow
		add(100005, 0, "NULL", false, 50e6)
		add(400000, 7, "", false, 2e6*long)
	}
	add(400000, 8, "", false, 1e9) // one of its kind
	want := `8 of 160 RPCs: slow`
	for _, c := range []struct {
		rows   int
		limits map[string]int64
		want   string
	}{
		{0, nil, want}, {64, nil, want}, {0, map[string]int64{"MOUNT3 MNT": 10e6}, "4 of 40 RPCs: slow"}, {0, map[string]int64{"MOUNT3 MNT": 10e6, "READ": 1e9}, "4 of 80 RPCs: slow"},
	} {
		collector := NewCollector(Options{Kinds: []Kind{Slow}, Explicit: true, Rows: c.rows, Slow: Slowness{Times: UsualSlow, Limits: c.limits, Title: "slow"}})
		take := func() {
			for _, r := range list {
				if err := collector.Add(r); err != nil {
					t.Fatal(err)
				}
			}
		}
		take()
		if again := collector.Again(); again != nil {
			collector = again
			take()
		} else if c.rows > 0 {
			t.Errorf("%d rows: the RPCs are taken once", c.rows)
		}
		sets := collector.Sets()
		if len(sets) != 1 {
			t.Fatalf("%d sets", len(sets))
		}
		n, err := collector.NewRecount(sets)
		for _, r := range list {
			if err == nil {
				err = n.Add(r)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		n.Finish()
		if got := sets[0].Head(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%d rows, limits %v: %q, want %q; the filter is %s", c.rows, c.limits, got, c.want, sets[0].Filter)
		}
	}
}

// TestRulesOfSet: if all RPCs of a set have a finding of a rule, and none of the others has, the report says so, with the filter, also if
// not all RPCs are compared.
func TestRulesOfSet(t *testing.T) {
	for _, c := range []struct {
		rows      int
		exception int // an RPC with a finding that has a Reply
		want      []string
	}{
		{0, 0, []string{"check has a finding of reply-chunk-missing for all 20, and for none of the 180 others", `findings == reply-chunk-missing`}},
		{64, 0, []string{"check has a finding of reply-chunk-missing for all 20, and for none of the 180 others", `findings == reply-chunk-missing`}},
		{0, 6, nil},
		{64, 6, nil},
	} {
		collector, list := NewCollector(Options{Kinds: []Kind{NoReply}, Explicit: true, Rows: c.rows}), []*record.Transaction{}
		for i := range 200 {
			r := &record.Transaction{ID: int64(i + 1), Status: record.Complete, Call: &record.Message{Time: record.Time(i) * 1e6}, Reply: &record.Message{}}
			if i%10 == 0 {
				r.Status, r.Reply = record.NoReply, nil
			}
			if r.Reply == nil || i == c.exception {
				r.Findings = []string{rule.CallNotAnswered.ID, "reply-chunk-missing"}
			}
			list = append(list, r)
			if err := collector.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		sets := collector.Sets()
		n, err := collector.NewRecount(sets)
		for _, r := range list {
			if err == nil {
				err = n.Add(r)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if n.Finish(); len(sets) != 1 {
			t.Fatalf("%d sets", len(sets))
		}
		var got []string
		for _, l := range sets[0].Lines() {
			if strings.HasPrefix(l.Text, "check has") || strings.HasPrefix(l.Filter, "findings") || strings.HasPrefix(l.Filter, "(findings") {
				got = append(got, l.Text+l.Filter)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d rows, exception %d: %q, want %q", c.rows, c.exception, got, c.want)
		}
	}
}
