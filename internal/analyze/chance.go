package analyze

import (
	"maps"
	"math"
	"slices"
	"sort"
)

// samples are two sets of durations, pooled and sorted: those before a change and those after it.
type samples struct {
	before, after *durations
	runs          []run
	n             int // number of durations of both sets
}

// run is durations with the same value.
type run struct {
	ns   int64
	upTo int // number of durations up to here, including these
}

// pool returns two sets of durations, pooled.
func pool(before, after *durations) *samples {
	s := &samples{before: before, after: after}
	counts := map[int64]int{}
	for _, d := range []*durations{before, after} {
		d.each(func(ns int64, n int) { counts[ns] += n })
	}
	for _, ns := range slices.Sorted(maps.Keys(counts)) {
		s.n += counts[ns]
		s.runs = append(s.runs, run{ns, s.n})
	}
	return s
}

// at returns the duration with a rank, counted from 1.
func (s *samples) at(rank int) int64 {
	i, _ := slices.BinarySearchFunc(s.runs, rank, func(r run, rank int) int { return r.upTo - rank })
	return s.runs[i].ns
}

// upTo returns the number of durations that are at most ns.
func (s *samples) upTo(ns int64) int {
	i := sort.Search(len(s.runs), func(i int) bool { return s.runs[i].ns > ns })
	if i == 0 {
		return 0
	}
	return s.runs[i-1].upTo
}

// rankOf returns the nearest rank of a percentile of n values, counted from 1.
func rankOf(n, percent int) int { return max(1, (n*percent+99)/100) }

// chance returns the probability that a percentile of two sets differs at least as much as it does
// here, if it is chance which durations are in which set: the p-value of an exact permutation test.
//
// The test considers all ways to divide the pooled durations into two sets with as many durations
// as they have. It needs no random numbers: r is the rank that the percentile of the first set has
// among all durations, s that of the second set. The distribution of r is negative hypergeometric.
// If r is given, the durations on either side of r are divided by chance, so that the distribution
// of s is hypergeometric.
func (s *samples) chance(percent int) float64 {
	m, n := s.before.count(), s.after.count()
	k, j := rankOf(m, percent), rankOf(n, percent)
	d := s.before.rank(k) - s.after.rank(j)
	if d < 0 {
		d = -d
	}
	if d == 0 || m == 0 || n == 0 {
		return 1
	}
	// farther returns the probability that the percentile of the second set is at least d away from that of the first, which has rank r.
	farther := func(r int) float64 {
		here, others := s.at(r), r-k // the durations of the second set that have a lower rank
		if others >= j {             // the second percentile is before the first
			return tail(min(s.upTo(here-d), r-1), r-1, others, j)
		}
		y := s.upTo(here + d - 1)
		if y <= r {
			return 1
		}
		return 1 - tail(y-r, s.n-r, n-others, j-others)
	}
	total := 0.0
	all := logChoose(s.n, m)
	// visit adds the probability of r, and reports whether it matters.
	visit := func(r int) bool {
		p := math.Exp(logChoose(r-1, k-1) + logChoose(s.n-r, m-k) - all)
		if p < 1e-15 {
			return false
		}
		total += p * farther(r)
		return true
	}
	// The most probable rank is near the same percentile of all durations; the probabilities fall
	// on both sides of it.
	middle := min(max(int(float64(k-1)/float64(max(m-1, 1))*float64(s.n-1))+1, k), k+n)
	for r := middle; r <= k+n && visit(r); r++ {
	}
	for r := middle - 1; r >= k && visit(r); r-- {
	}
	return min(total, 1)
}

// tail returns the probability that at least want of draws objects are marked, if they are drawn
// from all objects, of which some are marked: the upper tail of the hypergeometric distribution.
func tail(draws, all, marked, want int) float64 {
	low, high := max(0, draws+marked-all), min(draws, marked)
	switch {
	case want <= low:
		return 1
	case want > high:
		return 0
	}
	first := func(x int) float64 {
		return math.Exp(logChoose(marked, x) + logChoose(all-marked, draws-x) - logChoose(all, draws))
	}
	mean := float64(draws) * float64(marked) / float64(all)
	sum := 0.0
	if float64(want) > mean {
		p := first(want)
		for x := want; x <= high && p > 1e-18; x++ {
			sum += p
			p *= float64(marked-x) * float64(draws-x) / (float64(x+1) * float64(all-marked-draws+x+1))
		}
		return min(sum, 1)
	}
	p := first(want - 1)
	for x := want - 1; x >= low && p > 1e-18; x-- {
		sum += p
		p *= float64(x) * float64(all-marked-draws+x) / (float64(marked-x+1) * float64(draws-x+1))
	}
	return max(1-sum, 0)
}

// logChoose returns the logarithm of the number of ways to choose k of n objects. It is minus
// infinity if there is none.
func logChoose(n, k int) float64 {
	if k < 0 || k > n {
		return math.Inf(-1)
	}
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
