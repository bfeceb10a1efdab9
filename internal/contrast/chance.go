package contrast

import (
	"math"
	"math/rand/v2"
)

// factorials has the binary logarithms of factorials. It grows when it is asked for larger ones.
type factorials []float64

// of returns log2(n!).
func (f *factorials) of(n int) float64 {
	for len(*f) <= n {
		last := 0.0
		if k := len(*f); k > 0 {
			last = (*f)[k-1] + math.Log2(float64(max(k, 1)))
		}
		*f = append(*f, last)
	}
	return (*f)[n]
}

// choose returns log2 of the number of ways to choose k of n.
func (f *factorials) choose(n, k int) float64 { return f.of(n) - f.of(k) - f.of(n-k) }

// bits returns how unlikely it is by chance that a fact which is true of hits bad and spared other subjects is true of so
// many bad ones: minus log2 of the probability that of hits+spared subjects, drawn at random from bad and other ones, at
// least hits are bad (Fisher's exact test, one-sided). The sum of the terms is bounded by a geometric series.
func (f *factorials) bits(hits, spared, bad, others int) float64 {
	drawn := hits + spared
	if hits == 0 || drawn == 0 {
		return 0
	}
	f.of(bad + others)
	next := float64(bad-hits) * float64(spared) / (float64(hits+1) * float64(others-spared+1))
	if next >= 1 {
		return 0
	}
	first := f.choose(bad, hits) + f.choose(others, spared) - f.choose(bad+others, drawn)
	return max(0, -first+math.Log2(1-next))
}

// runsOf returns the lengths of the runs of bad subjects in the order of time.
func runsOf(order []bool) (runs []int) {
	length := 0
	for _, bad := range order {
		switch {
		case bad:
			length++
		case length > 0:
			runs, length = append(runs, length), 0
		}
	}
	if length > 0 {
		runs = append(runs, length)
	}
	return runs
}

// bursty reports whether the bad subjects come in fewer runs than chance makes (Wald and Wolfowitz).
func bursty(order []bool, runs []int) bool {
	bad := 0.0
	for _, n := range runs {
		bad += float64(n)
	}
	n := float64(len(order))
	if bad < 2 || n-bad < 2 {
		return false
	}
	// Of the runs of either kind, those of bad subjects are counted: their number has this mean and variance.
	mean := bad * (n - bad + 1) / n
	variance := mean * (bad - 1) * (n - bad) / (n * (n - 1))
	return variance > 0 && float64(len(runs))-mean < -2*math.Sqrt(variance)
}

// These limits decide whether bad subjects come at a regular distance.
const (
	leastPeriodic = 8   // bad subjects that are followed by another one at this distance
	mostPeriod    = 32  // the largest distance
	regular       = 0.9 // share of the bad subjects that are followed so
	mostFrequent  = 0.6 // share of bad subjects, above which any distance is followed so
)

// periodOf returns the distance at which bad subjects come in the order of time, or 0 if it is not regular.
func periodOf(order []bool) int {
	bad := 0
	for _, is := range order {
		if is {
			bad++
		}
	}
	if float64(bad) > mostFrequent*float64(len(order)) {
		return 0
	}
	for distance := 2; distance <= mostPeriod; distance++ {
		followed, all := 0, 0
		for i := 0; i+distance < len(order); i++ {
			if order[i] {
				if all++; order[i+distance] {
					followed++
				}
			}
		}
		if followed >= leastPeriodic && float64(followed) >= regular*float64(all) {
			return distance
		}
	}
	return 0
}

// shuffled returns an order with runs of the same lengths at random places.
func shuffled(runs []int, n int, random *rand.Rand) []bool {
	lengths := make([]int, len(runs))
	bad := 0
	for i, at := range random.Perm(len(runs)) {
		lengths[i] = runs[at]
		bad += runs[at]
	}
	// Between two runs there is at least one other subject. The rest is distributed over all gaps: of the n-bad other subjects
	// and the runs that follow one each, the places of the runs are chosen.
	free := n - bad - (len(runs) - 1)
	places := chosen(free+len(runs), len(runs), random)
	order, at, before := make([]bool, n), 0, 0
	for i, place := range places {
		at += place - before
		before = place + 1
		for range lengths[i] {
			order[at] = true
			at++
		}
		at++
	}
	return order
}

// chosen returns k different numbers below n in ascending order.
func chosen(n, k int, random *rand.Rand) (list []int) {
	for i := range n {
		if random.IntN(n-i) < k-len(list) {
			list = append(list, i)
		}
	}
	return list
}
