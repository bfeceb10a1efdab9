package contrast

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Verdict says what the comparison of a set with the others showed.
type Verdict string

// The verdicts.
const (
	Separated Verdict = "separated"
	Nothing   Verdict = "nothing"
	TooFew    Verdict = "too_few"
	All       Verdict = "all"
	None      Verdict = "none"
)

// Values returns all verdicts.
func (Verdict) Values() []string { return record.Words(Separated, Nothing, TooFew, All, None) }

// Subject is what a set consists of.
type Subject string

// The subjects.
const (
	OfRPCs        Subject = "rpc"
	OfConnections Subject = "connection"
)

// Values returns all subjects.
func (Subject) Values() []string { return record.Words(OfRPCs, OfConnections) }

// Set is what the RPCs of a set have in common that the others do not have.
type Set struct {
	Type        string                `json:"type" doc:"The record's type, always \"common\"." values:"common"`
	Set         Kind                  `json:"set" doc:"What the RPCs of the set are: no_reply (without a Reply), status (with one error status), slow, finding (with a finding of one rule), filter (those that -Y selects); of connections ended (in one way other than by a disconnect) or retransmitted (with retransmitted packets)."`
	Subject     Subject               `json:"subject" doc:"What is compared: RPCs (rpc) or connections (connection). Where other fields say RPCs, they are about these."`
	Name        record.Opt[string]    `json:"name" doc:"The status, or the id of the rule; null for other sets." secret:"no"`
	Title       string                `json:"title" doc:"Description of the set, such as without a Reply." secret:"content"`
	Filter      string                `json:"filter" doc:"Filter that selects the RPCs of the set." secret:"filter"`
	Bad         int64                 `json:"bad" doc:"Number of RPCs in the set."`
	Others      int64                 `json:"others" doc:"Number of other RPCs that could have been in the set, with which it is compared."`
	NotAsked    int64                 `json:"not_asked" doc:"Number of RPCs that could not have been in the set, such as those without a latency if the set has slow ones."`
	NotAskedWhy record.Opt[string]    `json:"not_asked_why" doc:"What these RPCs lack, such as no Reply; null if there are none." secret:"no"`
	NotAskedBy  []NotAsked            `json:"not_asked_by" doc:"The same number by what the RPCs lack."`
	Slow        record.Opt[Latencies] `json:"slow" doc:"What makes RPCs of the set slow; null for other sets."`
	Requests    record.Opt[int64]     `json:"requests" doc:"Number of different requests in the set: retransmissions on later connections are RPCs of their own, and are counted once here. Null if not all RPCs were compared."`
	MayHave     record.Opt[int64]     `json:"may_have_reply" doc:"Number of RPCs without a Reply for which the capture may lack the Reply, because it lacks packets of their connections or hosts; null for other sets, and if RPCs were read from JSON."`
	Verdict     Verdict               `json:"verdict" doc:"Result: separated (at least one fact separates the set from the others), nothing (no fact does, although one could have been found), too_few (too few RPCs to find one), all (there are no others), none (the set is empty)."`
	Detectable  record.Opt[int64]     `json:"detectable" doc:"Number of RPCs of the set for which a fact had to be true, and for no other RPC, so that it would have been found; null if no fact could have been found."`
	Facts       []Fact                `json:"facts" doc:"Facts that separate the set from the others; a later one is about the RPCs that the earlier ones do not explain."`
	OfCalls     []Fact                `json:"of_calls" doc:"The fact about what the Calls asked, or none, if the first fact is about how they were handled."`
	Rules       []Relative            `json:"rules" doc:"Rules of check of which all RPCs of the set have a finding and none of the others has, if findings are not compared because the set is defined by how RPCs ended."`
	Asked       []string              `json:"asked" doc:"Fields that were compared." secret:"no"`
	Unexplained int64                 `json:"unexplained" doc:"Number of RPCs of the set that no fact explains."`
	Hints       []Fact                `json:"hints" doc:"Facts that come nearest to separating the set, if none does, or if none does of those about what the Calls asked; chance may explain them."`
	Bursts      record.Opt[Bursts]    `json:"bursts" doc:"Bursts in which the RPCs of the set come; null if they come one by one."`
	Period      record.Opt[int64]     `json:"period" doc:"Distance at which the RPCs of the set come among those compared, such as 3 if every third one is in the set, at least for some time; null if they do not come at a regular distance."`
	Sampled     record.Opt[Sampled]   `json:"sampled" doc:"Numbers of RPCs that were compared, if not all were; the numbers of facts are exact nevertheless, except in overview."`

	target     *target
	showsLimit bool   // the title does not say above which latency RPCs are slow
	exact      bool   // numbers are of all RPCs
	once       bool   // facts separate the set even if each request counts once
	scope      string // filter for the RPCs that could be in the set; empty for all
}

// Fact is something that is true of RPCs of a set and false of others.
type Fact struct {
	Text     string              `json:"text" doc:"The fact, as a phrase whose subject is RPCs." secret:"content"`
	Filter   string              `json:"filter" doc:"Filter that selects the RPCs of which the fact is true." secret:"filter"`
	Fields   []string            `json:"fields" doc:"Fields that the fact is about." secret:"no"`
	About    string              `json:"about" doc:"What the fact is about: call (what the Call asked), handling (how the transport and the responder handled the RPC), outcome (how it ended), time (when the Call was sent, or its place among others)." values:"call,handling,outcome,time"`
	Bad      int64               `json:"bad" doc:"Number of RPCs of the set of which the fact is true."`
	OfBad    int64               `json:"of_bad" doc:"Number of RPCs of the set that no earlier fact explains."`
	Others   int64               `json:"others" doc:"Number of other RPCs of which the fact is true."`
	OfOthers int64               `json:"of_others" doc:"Number of other RPCs of which no earlier fact is true."`
	Chance   record.Opt[float64] `json:"chance" doc:"Largest probability with which chance shows as much, in any of the questions that were asked; null for times of RPCs that come in bursts, because chance is not a measure for them."`
	Same     []Relative          `json:"same" doc:"Other facts that are true of the same RPCs."`
	Nearly   []Relative          `json:"nearly" doc:"Other facts that are true of nearly the same RPCs."`

	phrase phrase
	plain  string // filter for the fact, which may select RPCs that are not compared, too
	ids    []int64
	runs   int64 // number of bursts, if the subjects come in bursts
	asGood int64 // number of the random sets of as many bursts that show as much
	asked  bool  // a fact about what the Calls asked is true of the same RPCs
}

// RPCs returns the numbers of the RPCs that were compared and of which the fact is true.
func (f *Fact) RPCs() []int64 { return f.ids }

// Relative is a fact that is true of the same RPCs as another one, or of nearly the same.
type Relative struct {
	Text   string `json:"text" doc:"The fact, as a phrase whose subject is RPCs." secret:"content"`
	Filter string `json:"filter" doc:"Filter that selects the RPCs of which the fact is true." secret:"filter"`
	Bad    int64  `json:"bad" doc:"Number of RPCs of the set of which the fact is true."`
	Others int64  `json:"others" doc:"Number of other RPCs of which the fact is true."`

	phrase phrase
	plain  string
}

// Rows returns the set once for each of its facts, with only this fact, and the set itself if it has none.
func (s *Set) Rows() (rows []*Set) {
	if len(s.Facts) == 0 {
		return []*Set{s}
	}
	for i := range s.Facts {
		row := *s
		row.Facts = s.Facts[i : i+1]
		rows = append(rows, &row)
	}
	return rows
}

// NotAsked says why RPCs are not compared with a set.
type NotAsked struct {
	Why   string `json:"why" doc:"What the RPCs lack, such as no Reply." secret:"no"`
	Count int64  `json:"count" doc:"Number of these RPCs."`
}

// Latencies say above which latency RPCs are slow, and how long RPCs took.
type Latencies struct {
	Limits       []Limit           `json:"limits" doc:"Latencies above which RPCs are slow, of operations that have such RPCs."`
	LeastNS      record.Opt[int64] `json:"least_ns" doc:"Smallest latency of the RPCs of the set, in nanoseconds; null if there are none."`
	OthersMostNS record.Opt[int64] `json:"others_most_ns" doc:"Largest latency of the others, in nanoseconds; null if there are none."`
}

// Limit is the latency above which RPCs are slow.
type Limit struct {
	Name record.Opt[string] `json:"name" doc:"The operation, or the procedure of another program than NFS; null if the limit is for all RPCs."`
	NS   int64              `json:"ns" doc:"The latency, in nanoseconds."`
}

// Bursts says that RPCs do not come independently of each other.
type Bursts struct {
	Runs       int64 `json:"runs" doc:"Number of runs of RPCs of the set, in the order of their Calls among those compared."`
	RandomSets int64 `json:"random_sets" doc:"Number of random sets with runs of the same lengths that were compared with the others, too; 0 if no fact had to be compared with them."`
	AsGood     int64 `json:"as_good" doc:"Number of these sets that a fact separates as well as the best fact separates this one."`
}

// Sampled says how many RPCs were compared.
type Sampled struct {
	Bad    int64 `json:"bad" doc:"Number of RPCs of the set that were compared."`
	Others int64 `json:"others" doc:"Number of others that were compared."`
}

// mostFacts is the number of facts that are reported for a set.
const mostFacts = 3

// same is the largest number of facts that are reported as true of the same RPCs, and nearly of those of nearly the same.
const (
	mostSame   = 4
	mostNearly = 2
	mostHints  = 3
)

// Sets returns the comparison of each set with the others, the largest set first. Sets of nearly the same RPCs are compared
// once.
func (c *Collector) Sets() (list []*Set) {
	c.Again()
	if len(c.targets) == 0 {
		return nil
	}
	rows := c.sorted()
	s := c.newSearch(rows)
	order := make([]int, len(c.targets))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c.targets[b].held.seen, c.targets[a].held.seen) })
	var shown []map[*row]bool
	for _, i := range order {
		members := map[*row]bool{}
		for _, r := range c.targets[i].held.rows {
			members[r] = true
		}
		if slices.ContainsFunc(shown, func(other map[*row]bool) bool { return alike(members, other) }) {
			continue
		}
		shown = append(shown, members)
		list = append(list, c.compare(s, i))
	}
	return list
}

// alike reports whether two sets have nearly the same members.
func alike(a, b map[*row]bool) bool {
	both := 0
	for r := range a {
		if b[r] {
			both++
		}
	}
	return float64(both) > 0.9*float64(len(a)+len(b)-both)
}

// compare compares a set with the others.
func (c *Collector) compare(s *search, target int) *Set {
	t := c.targets[target]
	set := &Set{Type: "common", Set: t.kind, Subject: OfRPCs, Name: record.SomeIf(t.name, t.name != ""), Title: c.title(t), Filter: c.withCall(t.filter), Bad: t.held.seen, Facts: []Fact{}, OfCalls: []Fact{}, Hints: []Fact{}, Rules: []Relative{}, Asked: []string{}, exact: !c.Sampled(), scope: c.scopes[t.scope].text}
	if c.options.Connections {
		set.Subject = OfConnections
	}
	var l labels
	sampled, could := 0, 0
	for i, r := range s.rows {
		member := slices.Contains(r.facets.member, target)
		within := r.facets.scopes&(1<<t.scope) != 0
		if r.sampled {
			sampled++
		}
		if r.sampled && (member || within && r.facets.against) {
			could++
		}
		switch {
		case member && slices.Contains(r.sets, target):
			l.bad = append(l.bad, int32(i))
		case !member && within && r.facets.against && r.sampled:
			l.other = append(l.other, int32(i))
		}
	}
	if set.exact {
		set.Others = int64(len(l.other))
	} else {
		set.Others = max(int64(math.Round(float64(c.total)*float64(could)/float64(max(sampled, 1))))-set.Bad, int64(len(l.other)))
		set.Sampled = record.Some(Sampled{int64(len(l.bad)), int64(len(l.other))})
	}
	set.target = t
	c.notAsked(set, max(0, c.total+c.without-set.Bad-set.Others))
	c.slowness(set, t, l, s.rows)
	switch {
	case len(l.bad) == 0:
		set.Verdict = None
		return set
	case len(l.other) == 0:
		set.Verdict, set.Unexplained = All, set.Bad
		return set
	}
	r := reporter{c: c, search: s, set: set, target: t, l: l, weights: weights{float64(set.Bad) / float64(len(l.bad)), float64(set.Others) / float64(len(l.other))}}
	r.copies()
	if t.kind == NoReply && c.endsKnown {
		n := 0
		for _, at := range l.bad {
			if c.mayHaveReply(s.rows[at]) {
				n++
			}
		}
		set.MayHave = record.Some(int64(math.Round(float64(n) * r.weights.bad)))
	}
	r.report()
	return set
}

// notAsked sets the number of subjects that are not compared with a set, and what they lack.
func (c *Collector) notAsked(set *Set, n int64) {
	t := set.target
	set.NotAsked, set.NotAskedBy, set.NotAskedWhy = n, []NotAsked{}, record.Opt[string]{}
	if n == 0 {
		return
	}
	within := c.scopes[t.scope].text
	var list []NotAsked
	if c.without > 0 {
		list = append(list, NotAsked{"no Call in the capture", min(c.without, n)})
	}
	answered := within == answeredScope || strings.HasPrefix(within, latencyScope)
	if n > c.without && answered && c.unreplied > 0 {
		list = append(list, NotAsked{"no Reply", min(c.unreplied, n-c.without)})
	}
	rest := n
	for _, one := range list {
		rest -= one.Count
	}
	if rest > 0 {
		var why []string
		switch {
		case t.kind == Slow && within != latencyScope:
			why = append(why, "no latency, an unknown procedure, or one with fewer than "+strconv.Itoa(leastLatencies)+" latencies")
		case within == latencyScope:
			why = append(why, "no latency")
		case within != "" && !answered:
			why = append(why, "nothing that the rule can be checked on")
		}
		if c.options.Against.Filter != nil {
			why = append(why, "not selected by --against")
		}
		list = append(list, NotAsked{strings.Join(why, ", or "), rest})
	}
	var why []string
	for _, one := range list {
		why = append(why, one.Why)
	}
	set.NotAskedBy, set.NotAskedWhy = list, record.Some(strings.Join(why, ", or "))
}

// slowness sets above which latencies the RPCs of a set are slow, and how long they and the others took.
func (c *Collector) slowness(set *Set, t *target, l labels, rows []*row) {
	limits := c.options.limits
	if t.kind != Slow || len(limits) == 0 {
		return
	}
	var slow Latencies
	of, all := limits[""]
	set.showsLimit = c.options.Slow.NS == 0
	names := map[string]bool{}
	for _, at := range l.bad {
		name, ns, _ := c.latencyOf(rows[at])
		names[name] = true
		slow.LeastNS = record.Some(min(ns, slow.LeastNS.Or(ns)))
	}
	for _, at := range l.other {
		_, ns, _ := c.latencyOf(rows[at])
		slow.OthersMostNS = record.Some(max(ns, slow.OthersMostNS.Or(ns)))
	}
	if all {
		slow.Limits = []Limit{{NS: of.ns}}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if limit, has := limits[name]; has && !all {
			slow.Limits = append(slow.Limits, Limit{record.Some(name), limit.ns})
		}
	}
	if slow.Limits != nil {
		set.Slow = record.Some(slow)
	}
}

// reporter makes the report of one set.
type reporter struct {
	*search
	c       *Collector
	set     *Set
	target  *target
	l       labels
	weights weights
	found   []*candidate
	origins map[int64]int64 // of RPCs that are retransmissions: the request that was sent first
}

// copies finds out which RPCs of the set are retransmissions of one another.
func (r *reporter) copies() {
	r.origins = map[int64]int64{}
	byID := map[int64]int64{}
	for _, one := range r.rows {
		if one.of != 0 {
			byID[one.id] = one.of
		}
	}
	bad := map[int64]bool{}
	for _, at := range r.l.bad {
		bad[r.rows[at].id] = true
	}
	again := 0
	for _, at := range r.l.bad {
		if bad[byID[r.rows[at].id]] {
			again++
		}
	}
	for id := range byID {
		origin := id
		for of := byID[id]; of != 0 && of < origin; of = byID[of] { // An RPC is a retransmission of an earlier one.
			origin = of
		}
		r.origins[id] = origin
	}
	r.search.copies = 2*again > len(r.l.bad)
	if r.set.exact && r.set.Subject == OfRPCs {
		r.set.Requests = record.Some(int64(r.different(r.l.bad, func(*row) bool { return true })))
	}
}

// different returns the number of different requests among some RPCs of which a fact is true.
func (r *reporter) different(of []int32, holds func(*row) bool) int {
	seen := map[int64]bool{}
	for _, at := range of {
		if one := r.rows[at]; holds(one) {
			seen[cmp.Or(r.origins[one.id], one.id)] = true
		}
	}
	return len(seen)
}

// separatesOnce reports whether a fact would be reported if each request counted once.
func (r *reporter) separatesOnce(c *candidate) bool {
	all, of := func(*row) bool { return true }, r.holds(c)
	raw := r.logs.bits(r.different(r.l.bad, of), r.different(r.l.other, of), r.different(r.l.bad, all), r.different(r.l.other, all))
	return raw-c.price >= least
}

// report fills in the facts of the set.
func (r *reporter) report() {
	r.ask(func(col *column) bool { return r.wanted(col) })
	seen := map[string]bool{"time": true}
	if r.timely = r.c.options.Fields == nil || slices.Contains(r.c.options.Fields, "time"); r.timely {
		r.set.Asked = append(r.set.Asked, "time")
	}
	for i, col := range r.columns {
		if r.asked[i] && !seen[col.path] {
			seen[col.path] = true
			r.set.Asked = append(r.set.Asked, col.path)
		}
	}
	r.rules()
	detectable := r.detectable(r.l)
	r.set.Detectable = record.SomeIf(int64(detectable), detectable > 0)
	l := r.l
	for len(r.set.Facts) < mostFacts && len(l.bad) > 0 {
		seen := r.look(l, r.weights)
		best := seen.best()
		if len(r.set.Facts) == 0 {
			r.noteBursts(seen, best)
			r.set.Period = record.SomeIf(int64(seen.period), seen.period > 0)
		}
		if best == nil {
			if len(r.set.Facts) == 0 && len(r.set.Hints) == 0 { // Bursts may have one.
				r.hint(seen)
			}
			break
		}
		r.set.Facts = append(r.set.Facts, r.tell(seen, best))
		r.set.once = r.set.once || r.separatesOnce(best)
		r.found = append(r.found, best)
		if len(r.found) == 1 && r.set.onlyHandling() {
			r.ofCalls()
		}
		l = r.restrict(l, best, false)
	}
	r.set.Unexplained = int64(math.Round(float64(len(l.bad)) * r.weights.bad))
	switch {
	case len(r.set.Facts) > 0:
		r.set.Verdict = Separated
	case detectable == 0:
		r.set.Verdict = TooFew
	default:
		r.set.Verdict = Nothing
	}
}

// rules adds the rules of which all RPCs of the set have a finding, and none of the others, if findings are not asked about. A finding
// that says nothing else than the set is left out.
func (r *reporter) rules() {
	column := slices.IndexFunc(r.columns, func(c *column) bool { return c.path == "findings" })
	ends := r.target.kind == NoReply
	if column < 0 || r.asked[column] || r.c.options.Fields != nil || slices.Contains(r.topics(), ofFindings) {
		return
	}
	for v, value := range r.columns[column].values {
		c := &candidate{column: column, form: isValue, values: []int32{int32(v)}}
		inner := r.restrict(r.l, c, true)
		if len(inner.bad) == len(r.l.bad) && len(inner.other) == 0 && !(ends && slices.Contains(rulesOfEnds, value.text)) && len(r.set.Rules) < mostSame && r.usable(c) {
			r.set.Rules = append(r.set.Rules, r.relative(r.l, c))
		}
	}
	slices.SortFunc(r.set.Rules, func(a, b Relative) int { return cmp.Compare(a.Text, b.Text) })
}

// onlyHandling reports whether the first fact is about how the RPCs were handled, and none about the Calls is true of the same.
func (s *Set) onlyHandling() bool { return s.Facts[0].About == ofHandling.words() && !s.Facts[0].asked }

// ofCalls asks only what the Calls asked.
func (r *reporter) ofCalls() {
	r.ask(func(col *column) bool { return r.wanted(col) && col.about != ofHandling && col.about != ofOutcome })
	found := r.found
	r.found = nil // The fact is about all RPCs of the set.
	seen := r.look(r.l, r.weights)
	if best := seen.best(); best != nil {
		r.set.OfCalls = append(r.set.OfCalls, r.tell(seen, best))
	} else {
		r.hint(seen)
	}
	r.found = found
	r.ask(func(col *column) bool { return r.wanted(col) })
}

// noteBursts records how the set comes in bursts.
func (r *reporter) noteBursts(seen *round, best *candidate) {
	if seen.runs == nil {
		return
	}
	b := Bursts{Runs: int64(len(seen.runs))}
	for i := range seen.singles {
		c := &seen.singles[i]
		if c.score() < least {
			break
		}
		if c.separates(seen.labels, r.weights) && r.aboutOf(c) != ofTime && !r.consequence(c) {
			b.AsGood = int64(seen.asGood(c))
			b.RandomSets = draws
			if best == nil {
				r.set.Hints = append(r.set.Hints, r.tell(seen, c))
			}
			break
		}
	}
	r.set.Bursts = record.Some(b)
}

// hint adds the facts that come nearest: of one or two subjects those that are true of no other, if there are any.
func (r *reporter) hint(seen *round) {
	few := len(seen.bad) < leastBad
	most := func(c *candidate) bool { return c.hits*2 >= len(seen.bad) }
	if few { // Something that few people know, and a time, are true of any few subjects.
		r.hints(seen, func(c *candidate) bool { return c.spared == 0 && isKnown(r.aboutOf(c)) })
		r.hints(seen, func(c *candidate) bool { return isKnown(r.aboutOf(c)) })
	}
	r.hints(seen, most)
	r.hints(seen, func(*candidate) bool { return true })
}

// isKnown reports whether a fact is about what people know of RPCs.
func isKnown(a about) bool { return a == ofCall || a == ofHandling }

// hints adds, if there are none yet, the facts that come nearest of those that are wanted. Facts about times, and about fields that few people know, are
// wanted only if others do not come as near.
func (r *reporter) hints(seen *round, wanted func(c *candidate) bool) {
	if len(r.set.Hints) > 0 {
		return
	}
	var known, others []candidate
	seen.search.singles(seen.labels, func(c candidate) {
		if !wanted(&c) || c.hits*len(seen.other) <= c.spared*len(seen.bad) || r.consequence(&c) {
			return
		}
		if about := r.aboutOf(&c); isKnown(about) {
			known = append(known, c)
		} else if c.price += pairGain; about != ofTime {
			others = append(others, c)
		}
	})
	most := append(known, others...)
	if most == nil && r.timely {
		seen.search.times(seen.labels, func(c candidate) {
			if wanted(&c) {
				most = append(most, c)
			}
		})
	}
	seen.sort(most)
	used := map[string]bool{}
	for i := range most {
		c := &most[i]
		if path := r.families(c)[0]; r.usable(c) && len(r.set.Hints) < mostHints && !used[path] && (len(r.set.Hints) == 0 || len(seen.bad) < leastBad && c.spared == 0) {
			used[path] = true
			f := r.fact(seen.labels, c)
			if of := r.aboutOf(c); seen.runs == nil || of != ofTime {
				f.Chance = record.Some(math.Min(1, math.Exp2(-c.score())))
			}
			r.set.Hints = append(r.set.Hints, f)
		}
	}
}

// detectable returns for how many bad subjects a fact must be true, and for no other, so that it is reported. It returns 0 if
// even one that is true of all of them would not be.
func (r *reporter) detectable(l labels) int {
	price := 0.0
	for i, col := range r.columns {
		if r.asked[i] && col.about == ofCall && col.asks&asksValue != 0 && len(col.values) <= 64 {
			price = max(price, r.base(ofCall)+2+math.Log2(2*float64(len(col.values))))
		}
	}
	for n := max(leastBad, int(math.Ceil(leastShare*float64(len(l.bad))))); n <= len(l.bad); n++ {
		if r.logs.bits(n, 0, len(l.bad), len(l.other))-price >= least {
			return n
		}
	}
	return 0
}

// follows lists what follows from each topic.
var follows = map[topic][]topic{
	ofStatus:   {ofStatus, ofLatency, ofFindings, ofReply},
	ofLatency:  {ofLatency},
	ofFindings: {ofFindings, ofStatus, ofLatency},
	ofReply:    {ofReply, ofLatency},
	ofStalls:   {ofStalls, ofLatency},
}

// rulesOfEnds are the rules whose findings say that an RPC has no Reply, and rulesOfStalls those that say that it waited.
var (
	rulesOfEnds   = []string{rule.ConnectionLost.ID, rule.CallNotAnswered.ID, rule.ReplyNotDelivered.ID}
	rulesOfStalls = []string{rule.RetransmissionTimeout.ID, rule.ICRCBad.ID}
)

// topics returns what the definition of the set is about.
func (r *reporter) topics() (list []topic) {
	switch r.target.kind {
	case NoReply: // A Call without a Reply is retransmitted, and its sender waits.
		return []topic{ofStatus, ofStalls}
	case Status, Ended:
		return []topic{ofStatus}
	case Retransmitting:
		return []topic{ofStalls}
	case Slow:
		return []topic{ofLatency}
	case ByRule:
		list = []topic{ofFindings}
		if slices.Contains(rulesOfEnds, r.target.name) {
			list = append(list, ofStatus, ofStalls)
		}
		if slices.Contains(rulesOfStalls, r.target.name) {
			list = append(list, ofStalls)
		}
	case ByFilter:
		for _, path := range r.c.options.Set.Paths() {
			for _, col := range r.columns {
				if col.topic != ofNothing && (col.path == path || below(path, col.path) || below(col.path, path)) {
					list = append(list, col.topic)
				}
			}
			if path == "nfs_status" || path == "rpc_status" {
				list = append(list, ofStatus)
			}
		}
	}
	return list
}

// below reports whether a field is below another one, as reply.form is below reply.
func below(path, of string) bool {
	return len(path) > len(of) && path[:len(of)] == of && path[len(of)] == '.'
}

// wanted reports whether a column is asked about.
func (r *reporter) wanted(col *column) bool {
	if r.c.options.Fields != nil {
		return slices.ContainsFunc(r.c.options.Fields, func(f string) bool { return f == col.path || below(col.path, f) })
	}
	if col.replies {
		return false
	}
	if r.c.options.Obvious {
		return true
	}
	if r.target.kind == ByFilter {
		for _, path := range r.c.options.Set.Paths() {
			if path == col.path || below(col.path, path) || below(path, col.path) {
				return false
			}
		}
	}
	for _, of := range r.topics() {
		if slices.Contains(follows[of], col.topic) {
			return false
		}
		if of == ofStatus && col.topic == ofFile && r.target.kind == NoReply {
			return false
		}
	}
	return true
}

// tell returns a fact with those that are true of the same subjects, or nearly.
func (r *reporter) tell(seen *round, c *candidate) Fact {
	chosen, same, nearly := r.relatives(seen, c)
	f := r.fact(seen.labels, chosen)
	of := r.holds(chosen)
	for _, one := range append(slices.Clone(seen.bad), seen.other...) {
		if of(r.rows[one]) {
			f.ids = append(f.ids, r.rows[one].id)
		}
	}
	if timely := r.aboutOf(chosen) == ofTime; c.raw-c.price > 0 && (seen.runs == nil || !timely) {
		chance := math.Exp2(-c.score())
		if seen.runs != nil {
			f.runs, f.asGood = int64(len(seen.runs)), int64(seen.asGood(c))
			chance = max(chance, float64(f.asGood+1)/(draws+1))
		}
		f.Chance = record.Some(chance)
	}
	for _, other := range same {
		f.asked = f.asked || r.aboutOf(other) != ofHandling && r.aboutOf(other) != ofOutcome
		f.Same = append(f.Same, r.relative(seen.labels, other))
	}
	for _, other := range nearly {
		f.Nearly = append(f.Nearly, r.relative(seen.labels, other))
	}
	return f
}

// relatives returns the fact to report, which of those about the same subjects is the one with the lowest rank, the others of
// them, and facts that are true of nearly the same subjects.
func (r *reporter) relatives(seen *round, c *candidate) (chosen *candidate, same, nearly []*candidate) {
	of := seen.members(c)
	chosen = c
	var near []*candidate
	for _, list := range [][]candidate{seen.singles, seen.pairs} {
		for i := range list {
			other := &list[i]
			if other.score() < 0 {
				break
			}
			if seen.consequence(other) {
				continue
			}
			alike := other.hits == c.hits && other.spared == c.spared
			if alike && (other.and == nil) == (c.and == nil) && slices.Equal(seen.members(other), of) {
				same = append(same, other)
			} else if !alike && other.score() >= c.score()-nearBits && len(near) < 400 {
				near = append(near, other)
			}
		}
	}
	slices.SortStableFunc(same, func(a, b *candidate) int { return cmp.Compare(r.rankOf(a), r.rankOf(b)) })
	for _, other := range same {
		if !r.usable(other) {
			continue
		}
		if other.form != isAmong && other.and == nil || seen.notByBursts(other) { // Of several values or facts, some fit any burst.
			chosen = other
			break
		}
	}
	used := r.families(chosen)
	fresh := func(other *candidate) bool {
		for _, path := range r.families(other) {
			if slices.Contains(used, path) {
				return false
			}
		}
		return !(slices.Contains(used, "operation") && other.column >= 0 && r.columns[other.column].path[:min(4, len(r.columns[other.column].path))] == "nfs.")
	}
	distinct, most := same[:0:0], mostSame
	interval := slices.IndexFunc(same, func(other *candidate) bool { return other.column < 0 && other.and == nil })
	if interval >= 0 && same[interval] != chosen { // When the subjects came is always of interest.
		distinct, most = append(distinct, same[interval]), mostSame-1
		used = append(used, r.families(same[interval])...)
	}
	for _, other := range same {
		if other == chosen || !r.usable(other) {
			continue
		}
		isFresh := fresh(other) && most > 0
		if isFresh {
			distinct, most = append(distinct, other), most-1
		}
		if isFresh || other.and == nil { // What is about a part of a field that is used is no news either.
			used = append(used, r.families(other)...)
		}
	}
	slices.SortStableFunc(distinct, func(a, b *candidate) int { return cmp.Compare(r.rankOf(a), r.rankOf(b)) })
	for _, other := range near {
		if other == chosen || len(nearly) == mostNearly || !fresh(other) || !r.usable(other) || !other.separates(seen.labels, r.weights) {
			continue
		}
		if share(seen.members(other), of) >= nearShare {
			nearly = append(nearly, other)
			used = append(used, r.families(other)...)
		}
	}
	return chosen, distinct, nearly
}

// members returns of which subjects of a round a fact is true.
func (r *round) members(c *candidate) (list []bool) {
	holds := r.holds(c)
	for _, of := range [][]int32{r.bad, r.other} {
		for _, at := range of {
			list = append(list, holds(r.rows[at]))
		}
	}
	return list
}

// share returns the share of the members of either list that both have.
func share(a, b []bool) float64 {
	both, either := 0, 0
	for i := range a {
		if a[i] && b[i] {
			both++
		}
		if a[i] || b[i] {
			either++
		}
	}
	return float64(both) / float64(max(either, 1))
}

// pathsOf returns the fields that a fact is about.
func (r *reporter) pathsOf(c *candidate) (list []string) {
	for ; c != nil; c = c.and {
		if c.column < 0 {
			list = append(list, "time")
		} else {
			list = append(list, r.columns[c.column].path)
		}
	}
	return list
}

// says reports whether a fact is about one value, which is this text.
func (r *reporter) says(c *candidate, text string) bool {
	values := r.valuesOf(c)
	return len(values) == 1 && values[0].text == text
}

// families returns what the fields of a fact are parts of: of facts about parts of one list of chunks, one is enough.
func (r *reporter) families(c *candidate) []string {
	list := r.pathsOf(c)
	if c.column >= 0 {
		switch path := r.columns[c.column].path; {
		case path == "waits.reason" && r.says(c, string(record.NewConnection)): // It is a retransmission.
			list = append(list, "retransmit_of")
		case path == "findings" && slices.ContainsFunc(rulesOfStalls, func(id string) bool { return r.says(c, id) }):
			list = append(list, "waits")
		}
	}
	for i, path := range list {
		path = strings.TrimSuffix(path, ".reason")
		if list, _, part := strings.Cut(path, "."); part && strings.HasSuffix(list, "chunks") || list == "reply_chunk" {
			path = list
		}
		list[i] = path
	}
	return list
}

// fact returns the record of a fact.
func (r *reporter) fact(l labels, c *candidate) Fact {
	inner := r.restrict(l, c, true)
	f := Fact{
		Fields: r.pathsOf(c), About: r.aboutOf(c).words(), phrase: r.phraseOf(c),
		Same: []Relative{}, Nearly: []Relative{},
		Bad: int64(len(inner.bad)), OfBad: int64(len(l.bad)), Others: int64(len(inner.other)), OfOthers: int64(len(l.other)),
	}
	f.Text, f.Filter, f.plain = f.phrase.plural(), r.filterOf(c), r.plainFilter(c)
	return f
}

// relative returns the record of a fact that is true of the same subjects as another one, or of nearly the same.
func (r *reporter) relative(l labels, c *candidate) Relative {
	f := r.fact(l, c)
	return Relative{Text: f.Text, Filter: f.Filter, Bad: f.Bad, Others: f.Others, phrase: f.phrase, plain: f.plain}
}

// filterOf returns the filter that selects exactly the subjects of a fact: those of its scope that no earlier fact has.
func (r *reporter) filterOf(c *candidate) string {
	text := r.plainFilter(c)
	of := r.holds(c)
	outside, earlier := false, false
	for _, one := range r.rows {
		if !of(one) {
			continue
		}
		member := slices.ContainsFunc(one.facets.member, func(i int) bool { return r.c.targets[i] == r.target })
		outside = outside || !member && (one.facets.scopes&(1<<r.target.scope) == 0 || !one.facets.against)
		for _, before := range r.found {
			earlier = earlier || r.holds(before)(one)
		}
	}
	if earlier || !r.set.exact {
		for _, before := range r.found {
			text = join(text, "not ("+r.plainFilter(before)+")")
		}
	}
	scope := r.c.scopes[r.target.scope].text
	if against := r.c.options.Against; against.Filter != nil {
		others := "(" + against.Text + ")"
		if scope != "" {
			others = join(scope, against.Text)
		}
		scope = "(" + r.target.filter + ") or (" + others + ")"
	}
	if scope != "" && (outside || !r.set.exact) {
		text = join(text, scope)
	}
	return r.c.withCall(text)
}

// withCall returns a filter that selects no RPC whose Call the capture lacks.
func (c *Collector) withCall(filter string) string {
	if c.without == 0 {
		return filter
	}
	return join(filter, "call != null")
}

// join returns the filter for what two filters select.
func join(a, b string) string { return "(" + a + ") and (" + b + ")" }

// phraseOf returns what a fact says.
func (r *reporter) phraseOf(c *candidate) phrase {
	var p phrase
	if c.and != nil {
		if c.and.column < 0 { // The time comes last.
			own := *c
			own.and = nil
			return append(r.phraseOf(&own), r.phraseOf(c.and)...)
		}
		p = r.phraseOf(c.and)
	}
	if c.column >= 0 {
		return append(p, r.columns[c.column].phrase(c.form, r.valuesOf(c)))
	}
	verb := "were sent "
	if r.c.options.Connections {
		verb = "came "
	}
	from, to := seconds(record.Time(c.from), r.c.start, 3), seconds(record.Time(c.to), r.c.start, 3)
	if from == to {
		from, to = seconds(record.Time(c.from), r.c.start, 6), seconds(record.Time(c.to), r.c.start, 6)
	}
	switch c.form {
	case isFrom:
		return append(p, verb+"at "+from+" or later")
	case isUntil:
		return append(p, verb+"at "+to+" or earlier")
	}
	return append(p, verb+"between "+from+" and "+to)
}
