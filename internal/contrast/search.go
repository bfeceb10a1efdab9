package contrast

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
)

// These limits decide what is reported. They are in bits where chance is concerned: 10 bits are a chance of 1 in 1,024.
const (
	least         = 10.0 // how unlikely a fact must be by chance, after its price
	leastBad      = 3    // bad subjects of which a fact must be true
	leastShare    = 0.3  // share of the bad ones that are not yet explained
	leastLift     = 3.0  // how much larger the share of bad ones must be among the subjects of a fact than among the rest
	leastDistance = 0.5  // between the share of the bad ones and the share of the others of which a fact is true
	leastPure     = 2.0 / 3
	pairGain      = 3.0  // by how much a pair must exceed the better of its facts
	nearBits      = 7.0  // how much worse a fact may be that is reported as nearly the same
	nearShare     = 0.75 // share of the subjects that it has in common with the reported one
	mostUnknown   = 0.1  // share of subjects whose answer may be unknown
	bases         = 40   // facts that are combined with others
	maxCuts       = 512
	maxAmong      = 4
	draws         = 199 // random sets of bursts
	burstMargin   = 3.0 // by how much a fact must exceed all of them
)

// candidate is a fact that may separate the bad subjects from the others.
type candidate struct {
	column int // -1 for times
	form   form
	values []int32 // numbers of values of the column
	from   int64   // of an interval
	to     int64
	hits   int // bad subjects of which it is true
	spared int // others of which it is true
	raw    float64
	price  float64
	and    *candidate // the other fact of a pair
}

func (c *candidate) score() float64 { return c.raw - c.price }

// labels are the subjects of one search, by their places in the order of time.
type labels struct{ bad, other []int32 }

func (l labels) len() int { return len(l.bad) + len(l.other) }

// ranked has what thresholds need to know about the numbers of a column.
type ranked struct {
	sorted    []int32 // values in ascending order
	low, high []int32 // smallest and largest rank of each entry; -1 for none
	cuts      []int32 // ranks that are asked about
}

// search looks for the facts that separate two sets of the same rows.
type search struct {
	fields  query.Fields // of the records, for filters
	columns []*column
	rows    []*row // in the order of time
	ranks   []ranked
	asked   []bool          // by column
	timely  bool            // it is asked when subjects were sent, too
	copies  bool            // most subjects that are retransmissions are those of bad ones
	counts  [ofTime + 1]int // columns that are asked about, by class
	logs    *factorials

	hitsOf, sparedOf []int32 // counters, by entry
	byValue          [2][]int32
}

// newSearch returns a search over rows in the order of time.
func (c *Collector) newSearch(rows []*row) *search {
	columns := c.columns
	s := &search{timely: true, fields: c.fields, columns: columns, rows: rows, logs: &c.logs, ranks: make([]ranked, len(columns)), asked: make([]bool, len(columns))}
	entries, values := 0, 0
	for i, c := range columns {
		entries, values = max(entries, len(c.entries)), max(values, len(c.values))
		if c.asks&asksMore != 0 {
			s.ranks[i] = rank(c)
		}
	}
	s.hitsOf, s.sparedOf = make([]int32, entries), make([]int32, entries)
	s.byValue = [2][]int32{make([]int32, values+1), make([]int32, values+1)}
	return s
}

// rank orders the numbers of a column.
func rank(c *column) (r ranked) {
	for i, v := range c.values {
		if v.kind != numeric {
			return ranked{}
		}
		r.sorted = append(r.sorted, int32(i))
	}
	slices.SortFunc(r.sorted, func(a, b int32) int { return cmp.Compare(c.values[a].number, c.values[b].number) })
	place := make([]int32, len(r.sorted))
	for at, v := range r.sorted {
		place[v] = int32(at)
	}
	r.low, r.high = make([]int32, len(c.entries)), make([]int32, len(c.entries))
	for i, e := range c.entries {
		r.low[i], r.high[i] = -1, -1
		for _, v := range e.values {
			if r.low[i] < 0 || place[v] < r.low[i] {
				r.low[i] = place[v]
			}
			r.high[i] = max(r.high[i], place[v])
		}
	}
	n := len(r.sorted)
	for i := range min(n, maxCuts) {
		r.cuts = append(r.cuts, int32(i*n/min(n, maxCuts)))
	}
	return r
}

// ask sets which columns are asked about. A field that is the same for all rows is no question.
func (s *search) ask(wanted func(*column) bool) {
	s.counts = [ofTime + 1]int{}
	for i, c := range s.columns {
		s.asked[i] = len(c.entries) > 2 || len(c.entries) == 2 && s.varies(i)
		if s.asked[i] = s.asked[i] && wanted(c); s.asked[i] {
			s.counts[c.about]++
		}
	}
}

// varies reports whether a column has more than one answer.
func (s *search) varies(column int) bool {
	for _, r := range s.rows {
		if s.columns[column].answer(r, column) != s.columns[column].answer(s.rows[0], column) {
			return true
		}
	}
	return false
}

// base returns the price of asking about a field.
func (s *search) base(a about) float64 {
	n := math.Log2(float64(max(s.counts[a], 1)))
	return [...]float64{ofCall: 2, ofDetail: 3, ofHandling: 4, ofOutcome: 6, ofTime: 3}[a] + n
}

// singles passes all facts about one field to visit, with the numbers of subjects for which they are true.
func (s *search) singles(l labels, visit func(candidate)) {
	for i := range s.columns {
		if s.asked[i] {
			s.column(i, l, visit)
		}
	}
}

// column passes the facts about one column to visit.
func (s *search) column(i int, l labels, visit func(candidate)) {
	c := s.columns[i]
	bad, other := s.hitsOf[:len(c.entries)], s.sparedOf[:len(c.entries)]
	clear(bad)
	clear(other)
	for _, at := range l.bad {
		bad[c.answer(s.rows[at], i)]++
	}
	for _, at := range l.other {
		other[c.answer(s.rows[at], i)]++
	}
	unknowns := [2]int32{}
	for e := range c.entries {
		if c.entries[e].unknown {
			unknowns[0] += bad[e]
			unknowns[1] += other[e]
		}
	}
	if float64(unknowns[0]) > mostUnknown*float64(len(l.bad)) || float64(unknowns[1]) > mostUnknown*float64(len(l.other)) {
		return
	}
	base, certain := s.base(c.about), unknowns[0]+unknowns[1] == 0
	pass := func(f form, hits, spared int, price float64, values ...int32) {
		if hits >= leastBad || hits == len(l.bad) && hits > 0 {
			visit(candidate{column: i, form: f, values: values, hits: hits, spared: spared, raw: s.logs.bits(hits, spared, len(l.bad), len(l.other)), price: base + price})
		}
	}
	if c.asks&asksPresence != 0 {
		absent := [2]int{int(bad[0]), int(other[0])}
		pass(isPresent, len(l.bad)-absent[0]-int(unknowns[0]), len(l.other)-absent[1]-int(unknowns[1]), 2)
		if c.lacks != "" || c.about == ofCall {
			pass(isAbsent, absent[0], absent[1], 2)
		}
	}
	if c.asks&(asksValue|asksNot|asksSet) != 0 {
		s.values(c, l, certain, pass)
	}
	if c.asks&asksMore != 0 {
		s.thresholds(i, pass)
	}
}

// values passes the facts about single values, and about sets of values, to pass.
func (s *search) values(c *column, l labels, certain bool, pass func(f form, hits, spared int, price float64, values ...int32)) {
	hits, spared := s.byValue[0][:len(c.values)], s.byValue[1][:len(c.values)]
	clear(hits)
	clear(spared)
	for e := range c.entries {
		if s.hitsOf[e]|s.sparedOf[e] == 0 {
			continue
		}
		for _, v := range c.entries[e].values {
			hits[v] += s.hitsOf[e]
			spared[v] += s.sparedOf[e]
		}
	}
	price := 2 + math.Log2(2*float64(len(c.values)))
	var most []int32
	for v := range hits {
		if c.asks&asksValue != 0 {
			pass(isValue, int(hits[v]), int(spared[v]), price, int32(v))
		}
		if c.asks&asksNot != 0 && certain {
			pass(isNotValue, len(l.bad)-int(hits[v]), len(l.other)-int(spared[v]), price, int32(v))
		}
		if c.asks&asksSet != 0 && hits[v] > 0 {
			most = append(most, int32(v))
		}
	}
	slices.SortFunc(most, func(a, b int32) int {
		// Of two values, the one with the larger share of bad subjects comes first.
		return cmp.Or(cmp.Compare(int64(hits[b])*int64(hits[a]+spared[a]), int64(hits[a])*int64(hits[b]+spared[b])), cmp.Compare(hits[b], hits[a]), cmp.Compare(a, b))
	})
	sum := [2]int{}
	for k, v := range most[:min(len(most), maxAmong)] {
		sum[0] += int(hits[v])
		sum[1] += int(spared[v])
		if k > 0 {
			price := 3 + math.Log2(maxAmong-1) + s.logs.choose(len(c.values), k+1)
			pass(isAmong, sum[0], sum[1], price, slices.Clone(most[:k+1])...)
		}
	}
}

// thresholds passes the facts about the size of a number to pass.
func (s *search) thresholds(i int, pass func(f form, hits, spared int, price float64, values ...int32)) {
	c, r := s.columns[i], &s.ranks[i]
	if len(r.sorted) < 2 {
		return
	}
	price := 2 + math.Log2(2*float64(len(r.cuts)))
	for _, f := range [2]form{isMore, isAtMost} {
		hits, spared := s.byValue[0][:len(r.sorted)], s.byValue[1][:len(r.sorted)]
		clear(hits)
		clear(spared)
		of := r.high
		if f == isAtMost {
			of = r.low
		}
		for e := range c.entries {
			if at := of[e]; at >= 0 {
				hits[at] += s.hitsOf[e]
				spared[at] += s.sparedOf[e]
			}
		}
		if f == isAtMost { // up to each rank
			for at := 1; at < len(hits); at++ {
				hits[at] += hits[at-1]
				spared[at] += spared[at-1]
			}
			for _, cut := range r.cuts {
				if int(cut) < len(r.sorted)-1 {
					pass(f, int(hits[cut]), int(spared[cut]), price, r.sorted[cut])
				}
			}
			continue
		}
		for at := len(hits) - 2; at >= 0; at-- { // from each rank on
			hits[at] += hits[at+1]
			spared[at] += spared[at+1]
		}
		for _, cut := range r.cuts {
			if int(cut) < len(r.sorted)-1 {
				pass(f, int(hits[cut+1]), int(spared[cut+1]), price, r.sorted[cut])
			}
		}
	}
}

// fewForAll is the number of bad subjects up to which all intervals between them are tried.
const fewForAll = 128

// times passes the facts about when subjects were sent to visit.
func (s *search) times(l labels, visit func(candidate)) {
	bad, n := l.bad, len(l.bad)
	if n < 2 {
		return
	}
	at := func(i int) int64 { return s.rows[bad[i]].time }
	price := s.timePrice(n)
	pass := func(f form, from, to int) { // from the bad subject with one number to the one with another
		c := candidate{column: -1, form: f, from: at(from), to: at(to), price: price}
		first, last := int64(math.MinInt64), int64(math.MaxInt64)
		if f != isUntil {
			first = c.from
		}
		if f != isFrom {
			last = c.to
		}
		c.hits, c.spared = s.within(l.bad, first, last), s.within(l.other, first, last)
		if c.hits >= leastBad || c.hits == n {
			c.raw = s.logs.bits(c.hits, c.spared, n, len(l.other))
			visit(c)
		}
	}
	if n <= fewForAll {
		for i := range n {
			for j := i + 1; j < n; j++ {
				pass(isBetween, i, j)
			}
			pass(isFrom, i, n-1)
			pass(isUntil, 0, i)
		}
		return
	}
	// Otherwise those intervals are tried that have the most bad subjects, if each other one in them counts as much as some.
	for _, weight := range []float64{0.125, 0.25, 0.5, 1, 2, 4, 16} {
		weight *= float64(n) / float64(max(len(l.other), 1))
		best, sum, begin := [2]int{0, 0}, 0.0, 0
		most, others := 0.0, 0
		for i := range n {
			upTo := s.before(l.other, at(i))
			if sum -= weight * float64(upTo-others); sum < 0 {
				sum, begin = 0, i
			}
			others = upTo
			if sum++; sum > most {
				most, best = sum, [2]int{begin, i}
			}
		}
		pass(isBetween, best[0], best[1])
		pass(isFrom, best[0], n-1)
		pass(isUntil, 0, best[1])
	}
}

// timePrice returns the price of asking for an interval between two of n subjects.
func (s *search) timePrice(n int) float64 { return 4 + math.Log2(float64(n)*float64(n+1)/2) }

// before returns how many of some subjects were sent before a time, and within how many between two times.
func (s *search) before(of []int32, t int64) int {
	n, _ := slices.BinarySearchFunc(of, t, func(at int32, t int64) int { return cmp.Compare(s.rows[at].time, t) })
	return n
}

func (s *search) within(of []int32, first, last int64) int {
	if last == math.MaxInt64 {
		return len(of) - s.before(of, first)
	}
	return s.before(of, last+1) - s.before(of, first)
}

// holds returns a function that reports whether a fact is true of a row.
func (s *search) holds(c *candidate) func(r *row) bool {
	var one func(r *row) bool
	if c.column < 0 {
		one = func(r *row) bool {
			return (c.form == isUntil || r.time >= c.from) && (c.form == isFrom || r.time <= c.to)
		}
	} else {
		col := s.columns[c.column]
		truths := make([]bool, len(col.entries))
		for e := range truths {
			truths[e] = s.trueOf(c, e)
		}
		one = func(r *row) bool { return truths[col.answer(r, c.column)] }
	}
	if c.and == nil {
		return one
	}
	other := s.holds(c.and)
	return func(r *row) bool { return one(r) && other(r) }
}

// trueOf reports whether a fact is true of an entry of its column.
func (s *search) trueOf(c *candidate, e int) bool {
	col := s.columns[c.column]
	entry := &col.entries[e]
	has := func(v int32) bool { return slices.Contains(entry.values, v) }
	if entry.unknown {
		return false
	}
	switch c.form {
	case isValue, isAmong:
		return slices.ContainsFunc(c.values, has)
	case isNotValue:
		return !has(c.values[0])
	case isPresent:
		return len(entry.values) > 0
	case isAbsent:
		return len(entry.values) == 0
	}
	limit := col.values[c.values[0]].number
	return slices.ContainsFunc(entry.values, func(v int32) bool { return (col.values[v].number > limit) == (c.form == isMore) })
}

// plainFilter returns the filter for a fact.
func (s *search) plainFilter(c *candidate) string {
	text := ""
	if c.column < 0 {
		text = s.timeQuestion().filter(c.form, []value{textValue(timeText(record.Time(c.from))), textValue(timeText(record.Time(c.to)))})
		if c.form == isUntil {
			text = s.timeQuestion().filter(c.form, []value{textValue(timeText(record.Time(c.to)))})
		}
	} else {
		text = s.columns[c.column].filter(c.form, s.valuesOf(c))
	}
	if c.and != nil {
		return join(s.plainFilter(c.and), text)
	}
	return text
}

// timeQuestion returns the question about when subjects began.
func (s *search) timeQuestion() *question {
	if s.fields == query.Connections {
		return &question{path: "first", about: ofTime}
	}
	return &question{path: "time", about: ofTime}
}

func (s *search) valuesOf(c *candidate) (list []value) {
	for _, v := range c.values {
		list = append(list, s.columns[c.column].values[v])
	}
	return list
}

// usable reports whether filters accept the fact. Records that were read from JSON may have names that no filter knows.
func (s *search) usable(c *candidate) bool {
	_, err := query.Compile(s.plainFilter(c), s.fields)
	return err == nil
}

// restrict returns the subjects of which a fact is true, or false.
func (s *search) restrict(l labels, c *candidate, to bool) (r labels) {
	holds := s.holds(c)
	for _, at := range l.bad {
		if holds(s.rows[at]) == to {
			r.bad = append(r.bad, at)
		}
	}
	for _, at := range l.other {
		if holds(s.rows[at]) == to {
			r.other = append(r.other, at)
		}
	}
	return r
}

// aboutOf returns the class of a fact: that of time, if any part is one.
func (s *search) aboutOf(c *candidate) about {
	a := ofTime
	if c.column >= 0 {
		a = s.columns[c.column].about
	}
	if c.and != nil {
		a = max(a, s.aboutOf(c.and))
	}
	return a
}

// rankOf returns the order in which facts about the same subjects are preferred.
func (s *search) rankOf(c *candidate) int {
	n := 200 // times
	if c.column >= 0 {
		n = 2 * s.columns[c.column].rank
	}
	switch c.form {
	case isNotValue, isAbsent:
		n += 500
	case isMore, isAtMost:
		n++
	}
	if c.and != nil {
		n += 1000 + s.rankOf(c.and)
	}
	return n
}

// weights has the numbers of subjects that each subject of the sample represents.
type weights struct{ bad, other float64 }

// separates reports whether a fact is worth reporting, apart from chance.
func (c *candidate) separates(l labels, w weights) bool {
	bad, others := float64(len(l.bad)), float64(len(l.other))
	hits, spared := float64(c.hits), float64(c.spared)
	if c.hits < leastBad || hits < leastShare*bad || others == 0 {
		return false
	}
	// The share of bad ones among the subjects of the fact, and among the rest.
	in := hits * w.bad / (hits*w.bad + spared*w.other)
	out := 0.0
	if bad > hits || others > spared {
		out = (bad - hits) * w.bad / ((bad-hits)*w.bad + (others-spared)*w.other)
	}
	return in >= leastLift*out && (hits/bad-spared/others >= leastDistance || in >= leastPure)
}

// round is one search: what was found, before anything is reported.
type round struct {
	labels
	*search
	weights weights
	singles []candidate // all with a positive score, the best first
	pairs   []candidate
	runs    []int // of bad subjects; nil unless they come in bursts
	period  int   // distance at which they come in the order of time; 0 if it is not regular
	drawn   []float64
}

// look searches for facts about some subjects.
func (s *search) look(l labels, w weights) *round {
	r := &round{labels: l, search: s, weights: w}
	take := func(c candidate) {
		if c.score() > 0 {
			r.singles = append(r.singles, c)
		}
	}
	s.singles(l, take)
	s.times(l, take)
	r.sort(r.singles)
	order := s.order(l)
	if runs := runsOf(order); bursty(order, runs) {
		r.runs = runs
	} else {
		r.period = periodOf(order)
	}
	r.combine()
	return r
}

// order returns which subjects are bad, in the order of time.
func (s *search) order(l labels) []bool {
	order := make([]bool, 0, l.len())
	for i, j := 0, 0; i < len(l.bad) || j < len(l.other); {
		bad := j == len(l.other) || i < len(l.bad) && l.bad[i] < l.other[j]
		if order = append(order, bad); bad {
			i++
		} else {
			j++
		}
	}
	return order
}

func (r *round) sort(list []candidate) {
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score(), a.score()), cmp.Compare(r.rankOf(&a), r.rankOf(&b)))
	})
}

// combine looks for pairs of facts.
func (r *round) combine() {
	var starts []*candidate
	seen := map[[3]int]bool{}
	for i := range r.singles {
		c := &r.singles[i]
		if c.spared == 0 && c.hits == len(r.bad) && r.wantsTime(c) {
			return // nothing is left to separate
		}
		// Of facts about the same numbers of subjects in one column, or of times, one is enough.
		if key := [3]int{c.column, c.hits, c.spared}; len(starts) < bases && !seen[key] && c.spared > 0 && r.wantsTime(c) {
			seen[key] = true
			starts = append(starts, c)
		}
	}
	for _, first := range starts {
		inner := r.restrict(r.labels, first, true)
		if len(inner.other) == 0 {
			continue
		}
		take := func(c candidate) {
			if c.column == first.column || c.hits < leastBad || r.samePath(&c, first) {
				return
			}
			c.raw = r.logs.bits(c.hits, c.spared, len(r.bad), len(r.other))
			c.price += first.price + 2
			if c.column < 0 || first.column < 0 { // The interval that fits best is chosen for each other fact.
				c.price += pairGain
			}
			one := *first
			c.and = &one
			if c.score() >= least && c.score() >= first.score()+pairGain {
				r.pairs = append(r.pairs, c)
			}
		}
		r.search.singles(inner, take)
		if first.column >= 0 && r.timely {
			r.times(inner, take)
		}
	}
	r.sort(r.pairs)
	r.pairs = r.pairs[:min(len(r.pairs), 4*bases)]
}

// samePath reports whether two facts are about the same field.
func (s *search) samePath(a, b *candidate) bool {
	return a.column >= 0 && b.column >= 0 && s.columns[a.column].path == s.columns[b.column].path
}

// best returns the fact to report: the one with the highest score of those that separate, or nil. A pair must exceed every
// fact by itself.
func (r *round) best() *candidate {
	one, pair := r.first(r.singles), r.first(r.pairs)
	if pair != nil && (one == nil || pair.score() >= one.score()+pairGain) {
		return pair
	}
	return one
}

// first returns the first fact of a list that separates, and that chance and bursts do not explain.
func (r *round) first(list []candidate) *candidate {
	for i := range list {
		c := &list[i]
		if c.score() < least {
			return nil
		}
		if c.separates(r.labels, r.weights) && r.wantsTime(c) && !r.consequence(c) && r.notByBursts(c) && r.notByRhythm(c) && r.usable(c) {
			return c
		}
	}
	return nil
}

// wantsTime reports whether a fact is not only about a time, or times are asked about. They are looked for in any case: that
// the subjects of another fact are those of an interval is worth knowing.
func (r *round) wantsTime(c *candidate) bool { return r.timely || c.column >= 0 }

// consequence reports whether a fact follows from the trouble: that an RPC is a retransmission of one that got no Reply, and that
// it is among the first on its connection, which the client opened for it.
func (s *search) consequence(c *candidate) bool {
	for ; c != nil && s.copies; c = c.and {
		if c.column >= 0 && c.form != isAbsent && slices.Contains(ofRetransmissions, s.columns[c.column].path) {
			return true
		}
	}
	return false
}

// ofRetransmissions are the fields of an RPC that differ from those of the RPC that it is a retransmission of.
var ofRetransmissions = []string{"retransmit_of", "connection", "context.first", "context.number_on_connection", "context.connection_age_ns", "context.credits_left"}

// exact reports whether a fact about one value or size is true of all bad subjects and of no other.
func (r *round) exact(c *candidate) bool {
	return c.and == nil && c.form != isAmong && c.hits == len(r.bad) && c.spared == 0
}

// notByRhythm reports whether a fact is more than a rhythm shows: trouble that comes at a regular distance meets the same
// operations again and again if the workload has a rhythm, too, although not only these.
func (r *round) notByRhythm(c *candidate) bool {
	return r.period == 0 || c.and == nil && r.aboutOf(c) == ofTime || float64(c.hits) >= regular*float64(len(r.bad)+c.spared)
}

// notByBursts reports whether a fact is more than bursts at random times show, too. Facts about time are what bursts show. A
// fact that separates all is reported in any case, together with the interval that has the same subjects, and with how many sets
// of random bursts show as much.
func (r *round) notByBursts(c *candidate) bool {
	if r.runs == nil || c.and == nil && r.aboutOf(c) == ofTime || r.exact(c) {
		return true
	}
	if c.and != nil && (c.column < 0) != (c.and.column < 0) {
		return r.withinTime(c)
	}
	if c.and != nil || c.form == isAmong {
		independent := float64(len(r.runs)) / float64(len(r.bad))
		if c.raw*independent-c.price < least {
			return false
		}
	}
	return r.asGood(c) == 0
}

// withinTime reports whether a fact together with an interval is more than bursts show: whether it separates the subjects
// within the interval, where they may come one by one.
func (r *round) withinTime(c *candidate) bool {
	interval, fact := *c, *c.and
	if c.and.column < 0 {
		interval, fact = *c.and, *c
	}
	interval.and, fact.and = nil, nil
	inner := r.restrict(r.labels, &interval, true)
	both := r.restrict(inner, &fact, true)
	hits, spared := len(both.bad), len(both.other)
	raw := r.logs.bits(hits, spared, len(inner.bad), len(inner.other))
	order := r.order(inner)
	if runs := runsOf(order); bursty(order, runs) {
		raw *= float64(len(runs)) / float64(len(inner.bad))
	}
	return raw-r.priceOf(&fact) >= least
}

// priceOf returns the price of a fact about one field, which may be a part of a pair.
func (r *round) priceOf(c *candidate) float64 {
	col := r.columns[c.column]
	price := r.base(col.about) + 2
	switch c.form {
	case isValue, isNotValue:
		price += math.Log2(2 * float64(len(col.values)))
	case isMore, isAtMost:
		price += math.Log2(2 * float64(len(r.ranks[c.column].cuts)))
	case isAmong:
		price += 1 + math.Log2(maxAmong-1) + r.logs.choose(len(col.values), len(c.values))
	}
	return price
}

// asGood returns how many of the random sets with bursts have a fact that is not about time and as good as this, or nearly.
func (r *round) asGood(c *candidate) (n int) {
	if r.drawn == nil {
		r.draw()
	}
	for _, score := range r.drawn {
		if score+burstMargin >= c.score() {
			n++
		}
	}
	return n
}

// draw finds the best fact of each of the random sets that have bursts of the same lengths.
func (r *round) draw() {
	random := rand.New(rand.NewPCG(1, 1)) // The same sets in every run.
	all := make([]int32, 0, r.len())
	all = append(append(all, r.bad...), r.other...)
	slices.Sort(all)
	for range draws {
		var l labels
		for i, bad := range shuffled(r.runs, len(all), random) {
			if bad {
				l.bad = append(l.bad, all[i])
			} else {
				l.other = append(l.other, all[i])
			}
		}
		most := 0.0
		r.search.singles(l, func(c candidate) {
			if c.score() > most && r.aboutOf(&c) != ofTime && c.separates(l, r.weights) {
				most = c.score()
			}
		})
		r.drawn = append(r.drawn, most)
	}
}
