// Package analyze summarizes records: an overview of a capture, statistics by operation, and
// the credits and exposed handles of a connection over time. Its results are records, too.
package analyze

import (
	"iter"
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Quantiles describes the distribution of a set of durations, in nanoseconds. They are null
// if the set is empty.
type Quantiles struct {
	P50 record.Opt[int64] `json:"p50_ns" doc:"Median, in nanoseconds."`
	P90 record.Opt[int64] `json:"p90_ns" doc:"90th percentile, in nanoseconds."`
	P99 record.Opt[int64] `json:"p99_ns" doc:"99th percentile, in nanoseconds."`
	Max record.Opt[int64] `json:"max_ns" doc:"Maximum, in nanoseconds."`
	// Estimated is left out of JSON if the percentiles are exact, which they nearly always are.
	Estimated bool `json:"estimated,omitzero" doc:"Present and true if the percentiles are estimates within 1 percent because there were too many values to keep."`
	// UpperBounds is left out of JSON if all values are exact.
	UpperBounds int `json:"upper_bounds,omitzero" doc:"Number of values that are upper bounds, because it is uncertain which copy of a Reply was accepted. The percentiles, and sums, count these values. Present only if there are any."`

	ends  boundEnds // of the UpperBounds
	count int
}

// Count returns the number of values; 0 in a record that was read.
func (q *Quantiles) Count() int { return q.count }

// boundEnds are the ends of latencies of which a capture shows only an upper and a lower bound.
type boundEnds struct{ low, high int64 } // the smallest lower bound and the largest upper bound, in nanoseconds

// AtMost reports whether a quantile with this value is only an upper bound: whether a latency that counts with this
// value, or a larger one, may be shorter than the value.
func (q *Quantiles) AtMost(ns int64) bool {
	return q.UpperBounds > 0 && (q.ends == boundEnds{} || q.ends.low < ns && ns <= q.ends.high) // a record that was read has no ends
}

// bound notes that the latency of a transaction, which is counted elsewhere, is only an upper bound.
func (q *Quantiles) bound(r *record.Transaction) {
	low, uncertain := r.LatencyMinNS.Get()
	if !uncertain {
		return
	}
	high := r.LatencyNS.Or(0)
	if q.UpperBounds++; q.UpperBounds > 1 {
		low, high = min(low, q.ends.low), max(high, q.ends.high)
	}
	q.ends = boundEnds{low, high}
}

// mergeBounds adds the upper bounds that were noted in other.
func (q *Quantiles) mergeBounds(other *Quantiles) {
	switch {
	case other.UpperBounds == 0:
		return
	case q.UpperBounds == 0:
		q.ends = other.ends
	}
	q.UpperBounds += other.UpperBounds
	q.ends = boundEnds{min(q.ends.low, other.ends.low), max(q.ends.high, other.ends.high)}
}

// withBounds returns the quantiles of the same values as q, with the upper bounds that were noted in q.
func (q *Quantiles) withBounds(of Quantiles) Quantiles {
	of.UpperBounds, of.ends = q.UpperBounds, q.ends
	return of
}

// quantiles sorts the durations and returns their nearest ranks.
func quantiles(d []int64) (q Quantiles) {
	if len(d) == 0 {
		return q
	}
	slices.Sort(d)
	rank := func(percent int) record.Opt[int64] { return record.Some(d[rankOf(len(d), percent)-1]) }
	return Quantiles{P50: rank(50), P90: rank(90), P99: rank(99), Max: rank(100), count: len(d)}
}

// durations collects durations for quantiles. It keeps every value or, if there are too many,
// the number of values in each of some thousand steps of 1 percent.
type durations struct {
	dropped bool // there is no memory for them
	exact   []int64
	steps   *hdrhistogram.Histogram
	longest int64
}

// longestStep is the upper end of the steps: ten hours, in nanoseconds.
const longestStep = 1 << 45

// add adds a duration in nanoseconds.
func (d *durations) add(ns int64) {
	switch {
	case d.dropped:
		return
	case d.steps == nil:
		d.exact = append(d.exact, ns)
		return
	}
	d.longest = max(d.longest, ns)
	d.steps.RecordValue(min(max(ns, 0), longestStep)) // it fails only for a value out of range
}

// coarsen replaces the single values by counts.
func (d *durations) coarsen() {
	all := d.exact
	*d = durations{steps: hdrhistogram.New(1, longestStep, 2), longest: math.MinInt64}
	for _, ns := range all {
		d.add(ns)
	}
}

// exactLimit limits the memory for the durations of all rows of a table.
type exactLimit struct {
	most   int // maximum number of single durations
	exact  int // their number
	coarse int // number of rows that have counts instead
}

// maxExact limits the number of single durations, which exact quantiles need, to 16 MB. Beyond
// it, the rows with the most durations keep counts instead, 40 KB each, and if there are maxCoarse
// of these, nothing.
const (
	maxExact  = 1 << 21
	maxCoarse = 1 << 10
)

// add adds a duration to a row. If there are too many single durations, the row with the most of
// them replaces them by counts. rows are all rows, with their names.
func (l *exactLimit) add(d *durations, ns int64, rows iter.Seq2[string, *durations]) {
	before := len(d.exact)
	d.add(ns)
	if l.exact += len(d.exact) - before; l.exact <= l.most {
		return
	}
	most, mostName := d, ""
	for name, other := range rows {
		n, m := len(other.exact), len(most.exact)
		if n > m || n == m && (mostName == "" || name < mostName) { // the same in every run
			most, mostName = other, name
		}
	}
	l.exact -= len(most.exact)
	if l.coarse++; l.coarse > maxCoarse {
		*most = durations{dropped: true}
		return
	}
	most.coarsen()
}

// merge adds the durations of x.
func (d *durations) merge(x *durations) {
	if d.dropped || x.dropped {
		*d = durations{dropped: true}
		return
	}
	if d.steps == nil && x.steps == nil {
		d.exact = append(d.exact, x.exact...)
		return
	}
	for _, list := range []*durations{d, x} {
		if list.steps == nil {
			list.coarsen()
		}
	}
	d.steps.Merge(x.steps)
	d.longest = max(d.longest, x.longest)
}

// quantiles returns the quantiles of all durations.
func (d *durations) quantiles() Quantiles {
	if d.steps == nil {
		return quantiles(d.exact)
	}
	at := func(percent float64) record.Opt[int64] {
		return record.Some(min(d.steps.ValueAtQuantile(percent), d.longest))
	}
	return Quantiles{P50: at(50), P90: at(90), P99: at(99), Max: record.Some(d.longest), Estimated: true, count: d.count()}
}

// count returns the number of durations.
func (d *durations) count() int {
	if d.steps != nil {
		return int(d.steps.TotalCount())
	}
	return len(d.exact)
}

// rank returns the duration with a rank, counted from 1; or the lower end of its step, as each
// does. The quantiles must have been computed, which sorts the durations.
func (d *durations) rank(rank int) int64 {
	if d.steps == nil {
		return d.exact[rank-1]
	}
	for _, step := range d.steps.Distribution() {
		if rank -= int(step.Count); rank <= 0 {
			return step.From
		}
	}
	return d.longest
}

// each calls visit for each value, or for the lower end of each step with the number of values
// in it.
func (d *durations) each(visit func(ns int64, n int)) {
	for _, ns := range d.exact {
		visit(ns, 1)
	}
	if d.steps != nil {
		for _, step := range d.steps.Distribution() {
			if step.Count > 0 {
				visit(step.From, int(step.Count))
			}
		}
	}
}

// ends returns the shortest and the longest duration, and false if there is none.
func (d *durations) ends() (low, high int64, ok bool) {
	low = math.MaxInt64
	d.each(func(ns int64, _ int) { low, high, ok = min(low, ns), max(high, ns), true })
	return low, high, ok
}

// share returns part divided by whole; it is unknown if whole is 0.
func share(part, whole int) record.Opt[float64] {
	return record.SomeIf(float64(part)/float64(max(whole, 1)), whole != 0)
}

// These limits bound the memory of a timeline. The limit of exposures is separate, because
// a Call may have 40,000 of them.
const (
	maxTransactions = 1 << 20
	maxExposures    = 1 << 18
)
