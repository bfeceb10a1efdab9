package points

import (
	"cmp"
	"math"
	"slices"
)

// The offset between two clocks is found from packets that both points captured. The time at the other
// point minus the time at the reference is the offset plus the delay for packets in one direction, and the
// offset minus the delay for packets in the other direction. So the offset, as a line over time, is
// below all differences of the first kind and above all of the second kind. The line in the middle of the
// widest gap is taken. A constant asymmetry of the path cannot be distinguished from an offset, so half of the
// gap is the error.

// pair is a packet that was captured at both points.
type pair struct {
	x      int64 // time at the reference in nanoseconds
	d      int64 // time at the other point minus x
	order  int64 // number of the frame at the other point
	dir    int32
	above  bool // the reference captured it first, so d is the offset plus the delay
	sameID bool // both points have the same IP identification, which is not 0
}

// line is the offset of a clock over time. If a shift and a drift are added to a clock, the line differs by exactly
// these. So the slope is always that with the widest gap. But a slope that the pairs do not prove holds only near the
// pairs: far before and after them, the offset is constant.
type line struct {
	x0, x1     int64   // times of the first and the last pair at the reference
	offset     float64 // offset at x0 in nanoseconds
	slope      float64 // offset per time at the reference
	gap        float64 // between the differences of both directions, in nanoseconds
	drifts     bool    // the pairs prove that the slope is not 0
	error      float64 // the largest difference from the offsets between x0 and x1 that the pairs allow, in nanoseconds
	slopeError float64 // the largest difference from the slopes that the pairs allow
}

// at returns the offset at a time of the reference.
func (l *line) at(x int64) float64 {
	since := float64(x - l.x0)
	if !l.drifts {
		first, last := l.near()
		since = min(max(since, first), last)
	}
	return l.offset + l.slope*since
}

// near returns the times since x0 between which the slope holds although the pairs do not prove it.
func (l *line) near() (first, last float64) {
	length := float64(l.x1 - l.x0)
	return -2 * length, 3 * length
}

// back returns the time at the reference for a time of the other clock.
func (l *line) back(t int64) int64 {
	whole := int64(l.offset)
	since := float64(t-l.x0-whole) - (l.offset - float64(whole)) // since x0, by the other clock
	switch first, last := l.near(); {
	case !l.drifts && since < first*(1+l.slope):
		since -= first * l.slope
	case !l.drifts && since > last*(1+l.slope):
		since -= last * l.slope
	default:
		since /= 1 + l.slope
	}
	return l.x0 + int64(math.Round(since))
}

// segment is a line that holds from a frame on.
type segment struct {
	line
	from  int64 // number of the first frame at the other point
	after int64 // number of a frame there that is certainly before the segment
}

// Limits of the drifts that are considered. Clocks of computers differ by less than usualDrift. Larger drifts are
// considered only if no smaller one explains the times; at maxDrift, the times are not those of two clocks.
const (
	usualDrift = 2e-4
	maxDrift   = 1e-3
)

// fitter finds lines for pairs.
type fitter struct {
	pairs      []pair // by order
	byX        []int  // indexes of pairs, by x
	resolution float64
	flat       bool         // only lines without a slope fit
	some       []int        // buffer: some of the indexes
	skip       map[int]bool // indexes of outliers
	low, high  []vertex     // buffers
}

// vertex is a corner of a hull: a pair, relative to the first one.
type vertex struct {
	x, d  float64
	index int
}

func newFitter(pairs []pair, resolution int64) *fitter {
	f := &fitter{pairs: pairs, resolution: float64(resolution), skip: map[int]bool{}}
	slices.SortStableFunc(f.pairs, func(a, b pair) int { return cmp.Compare(a.order, b.order) })
	f.byX = make([]int, len(pairs))
	for i := range f.byX {
		f.byX[i] = i
	}
	slices.SortStableFunc(f.byX, f.compareX)
	return f
}

func (f *fitter) compareX(a, b int) int { return cmp.Compare(f.pairs[a].x, f.pairs[b].x) }

// hulls sets low to the lower hull of the pairs [lo, hi) whose differences are above the line, and high to
// the upper hull of the others.
func (f *fitter) hulls(lo, hi int) {
	f.low, f.high = f.low[:0], f.high[:0]
	base := &f.pairs[lo]
	order := f.byX
	if 16*(hi-lo) < len(order) {
		f.some = f.some[:0]
		for i := lo; i < hi; i++ {
			f.some = append(f.some, i)
		}
		slices.SortStableFunc(f.some, f.compareX)
		order = f.some
	}
	for _, i := range order {
		if i < lo || i >= hi || f.skip[i] {
			continue
		}
		p := &f.pairs[i]
		v := vertex{float64(p.x - base.x), float64(p.d - base.d), i}
		if p.above {
			f.low = extend(f.low, v, 1)
		} else {
			f.high = extend(f.high, v, -1)
		}
	}
}

// extend adds a vertex on the right to a hull: a lower hull if sign is 1, an upper one if it is -1.
func extend(hull []vertex, v vertex, sign float64) []vertex {
	for n := len(hull); n > 0; n = len(hull) {
		last := hull[n-1]
		if v.x == last.x && sign*(v.d-last.d) >= 0 {
			return hull
		}
		if v.x != last.x {
			if n == 1 {
				break
			}
			before := hull[n-2]
			if sign*((last.d-before.d)*(v.x-last.x)-(v.d-last.d)*(last.x-before.x)) < 0 {
				break
			}
		}
		hull = hull[:n-1]
	}
	return append(hull, v)
}

// strip returns the gap between the hulls for lines of a slope, and the two vertices that limit it.
func (f *fitter) strip(slope float64) (gap float64, low, high vertex) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range f.low {
		if c := v.d - slope*v.x; c < least {
			least, low = c, v
		}
	}
	for _, v := range f.high {
		if c := v.d - slope*v.x; c > most {
			most, high = c, v
		}
	}
	return least - most, low, high
}

// best returns the slope with the widest gap of the slopes that may fit.
func (f *fitter) best() (slope, gap float64) {
	if f.flat {
		gap, _, _ = f.strip(0)
		return 0, gap
	}
	return f.within(maxDrift)
}

// within returns the slope with the widest gap up to a largest slope. The gap is a concave function of the slope.
func (f *fitter) within(most float64) (slope, gap float64) {
	lo, hi := -most, most
	for range 64 {
		a, b := lo+(hi-lo)/3, hi-(hi-lo)/3
		ga, _, _ := f.strip(a)
		gb, _, _ := f.strip(b)
		if ga < gb {
			lo = a
		} else {
			hi = b
		}
	}
	slope = (lo + hi) / 2
	gap, _, _ = f.strip(slope)
	return slope, gap
}

// fits reports whether a line fits the pairs [lo, hi).
func (f *fitter) fits(lo, hi int) bool {
	f.hulls(lo, hi)
	if len(f.low) == 0 || len(f.high) == 0 {
		return true
	}
	if gap, _, _ := f.strip(0); gap >= -f.resolution {
		return true
	}
	slope, gap := f.best()
	return gap >= -f.resolution && !atLimit(slope)
}

// atLimit reports whether a slope is the largest one that is considered. The pairs would fit a steeper line even better, so
// they are not those of two clocks.
func atLimit(slope float64) bool { return math.Abs(slope) > maxDrift*0.99 }

// line returns the line with the widest gap for the pairs [lo, hi), and whether it fits. Its slope counts as a drift only if no
// flat line fits, and if it is larger than its error: short captures, and packets in a few clumps, fit drifts that are not there.
func (f *fitter) line(lo, hi int) (l line, ok bool) {
	f.hulls(lo, hi)
	if len(f.low) == 0 || len(f.high) == 0 {
		return l, false
	}
	flat, _, _ := f.strip(0)
	largest := usualDrift
	if flat < -f.resolution {
		largest = maxDrift
	}
	slope, gap := f.within(largest)
	base := &f.pairs[lo]
	l = line{x0: base.x, x1: base.x, slope: slope, gap: max(gap, f.resolution)}
	for i := lo; i < hi; i++ {
		if !f.skip[i] {
			l.x1 = max(l.x1, f.pairs[i].x)
		}
	}
	f.center(&l, largest, float64(base.d))
	if largest == usualDrift && l.error > 2*l.gap {
		// The packets are in a few clumps: they fit so many slopes that no slope means anything, and a flat line fits, too.
		l.slope, l.gap = 0, max(flat, f.resolution)
		f.center(&l, largest, float64(base.d))
	}
	l.drifts = flat < -f.resolution && math.Abs(slope) > l.slopeError
	return l, gap >= -f.resolution && !atLimit(slope)
}

// center moves a line of a known slope to the middle between the hulls, and sets its errors.
func (f *fitter) center(l *line, largest, base float64) {
	_, low, high := f.strip(l.slope)
	middle := ((low.d - l.slope*low.x) + (high.d - l.slope*high.x)) / 2
	l.offset = base + middle
	l.error, l.slopeError = f.allowed(largest, l.slope, middle, float64(l.x1-l.x0))
}

// allowed returns by how much other lines that are between the hulls, with slopes up to a largest one, differ from a line, at
// its ends, and by how much their slopes do.
func (f *fitter) allowed(largest, slope, middle, length float64) (offset, slopes float64) {
	offset = f.resolution
	for _, end := range []float64{-largest, largest} {
		in, out := slope, end
		for range 40 {
			s := (in + out) / 2
			gap, low, high := f.strip(s)
			if gap < -f.resolution {
				out = s
				continue
			}
			in = s
			for _, x := range []float64{0, length} {
				at := middle + slope*x
				offset = max(offset, low.d+s*(x-low.x)-at, at-high.d-s*(x-high.x))
			}
		}
		slopes = max(slopes, math.Abs(in-slope))
	}
	_, low, high := f.strip(slope)
	return max(offset, (low.d-slope*low.x)-middle, middle-(high.d-slope*high.x)), slopes
}

// drop marks pairs as outliers until a line fits, at most n of them.
func (f *fitter) drop(n int) bool {
	for range n {
		if f.fits(0, len(f.pairs)) {
			return true
		}
		slope, _ := f.best()
		worst, most := -1, math.Inf(-1)
		var candidates []int
		for _, s := range []float64{slope - 1e-9, slope + 1e-9} {
			_, low, high := f.strip(s)
			candidates = append(candidates, low.index, high.index)
		}
		for _, i := range candidates {
			f.skip[i] = true
			if f.hulls(0, len(f.pairs)); len(f.low) > 0 && len(f.high) > 0 {
				if _, gap := f.best(); gap > most {
					worst, most = i, gap
				}
			}
			delete(f.skip, i)
		}
		if worst < 0 {
			return false
		}
		f.skip[worst] = true
	}
	return f.fits(0, len(f.pairs))
}

// maxOutliers limits the number of pairs that are ignored because no line fits them.
const maxOutliers = 8

// attempt is a way to explain the times of two clocks.
type attempt struct {
	flat     bool // without a drift
	outliers int  // pairs that may be ignored
}

// attempts returns the ways to explain the times of n pairs by one line, the simplest first.
func attempts(n int) []attempt {
	few := min(max(n/500, 1), maxOutliers)
	return []attempt{{flat: true}, {}, {flat: true, outliers: few}, {outliers: few}}
}

// whole returns the one line that explains all pairs, or none.
func (f *fitter) whole(a attempt) []segment {
	clear(f.skip)
	f.flat = a.flat
	defer func() { f.flat = false }()
	if f.drop(a.outliers) {
		if l, ok := f.line(0, len(f.pairs)); ok {
			return []segment{{line: l}}
		}
	}
	return nil
}

// segments returns the lines of a clock: one, or several if the clock stepped.
func (f *fitter) segments() []segment {
	for _, a := range attempts(len(f.pairs)) {
		if list := f.whole(a); list != nil {
			return list
		}
	}
	return f.stepped()
}

// stepped returns the lines of a clock that stepped.
func (f *fitter) stepped() []segment {
	n := len(f.pairs)
	clear(f.skip)
	var cuts []int // the indexes at which segments begin
	for lo := 0; lo < n; {
		if cuts = append(cuts, lo); len(cuts) > maxCuts {
			return nil
		}
		lo = f.prefix(lo)
	}
	cuts = f.tidy(cuts)
	var list []segment
	for i, lo := range cuts {
		hi := n
		if i+1 < len(cuts) {
			hi = cuts[i+1]
		}
		if l, ok := f.line(lo, hi); ok {
			list = append(list, segment{line: l, from: f.pairs[lo].order, after: f.pairs[lo].order - 1})
		}
	}
	for i := 1; i < len(list); i++ {
		f.place(&list[i-1], &list[i])
	}
	if len(list) > 0 {
		list[0].from, list[0].after = 0, 0
	}
	return list
}

// maxCuts limits the number of runs of pairs. If there are more, the pairs are not those of two clocks, or the
// wrong direction is assumed to be above the line.
const maxCuts = 128

// prefix returns the end of the longest run of pairs from lo on that a line fits.
func (f *fitter) prefix(lo int) int {
	good, step, n := lo+1, 16, len(f.pairs)
	for good < n && f.fits(lo, min(good+step, n)) {
		good, step = min(good+step, n), step*2
	}
	for bad := min(good+step, n); good+1 < bad; {
		if middle := (good + bad) / 2; f.fits(lo, middle) {
			good = middle
		} else {
			bad = middle
		}
	}
	return good
}

// fewPairs is a number of pairs that show no step. They are ignored if a line fits the pairs before and
// after them.
const fewPairs = 6

// tidy removes the borders around a few outliers, and those that leave a direction without pairs.
func (f *fitter) tidy(cuts []int) []int {
	end := func(i int) int {
		if i+1 < len(cuts) {
			return cuts[i+1]
		}
		return len(f.pairs)
	}
	for i := 0; i < len(cuts); {
		lo, hi := cuts[i], end(i)
		if _, both := f.line(lo, hi); both && hi-lo >= fewPairs || len(cuts) == 1 {
			i++
			continue
		}
		for j := lo; j < hi; j++ {
			f.skip[j] = true
		}
		cuts = slices.Delete(cuts, i, i+1)
		switch {
		case i == 0:
			cuts[0] = lo
		case i < len(cuts) && f.fits(cuts[i-1], end(i)):
			cuts = slices.Delete(cuts, i, i+1)
			i--
		}
	}
	return cuts
}

// nearStep is the number of pairs before and after a border among which the step is searched.
const nearStep = 256

// place moves the beginning of a segment to the frame at which the clock stepped: the pairs before it have
// shorter delays by the line before, those after it by the line after.
func (f *fitter) place(before, after *segment) {
	cut, _ := slices.BinarySearchFunc(f.pairs, after.from, func(p pair, order int64) int { return cmp.Compare(p.order, order) })
	lo, hi := max(cut-nearStep, 0), min(cut+nearStep, len(f.pairs))
	cost := func(l *line, i int) float64 {
		p := &f.pairs[i]
		delay := float64(p.d) - l.at(p.x)
		if !p.above {
			delay = -delay
		}
		if delay < 0 {
			return -100 * delay
		}
		return delay
	}
	sum := 0.0
	for i := lo; i < hi; i++ {
		sum += cost(&after.line, i)
	}
	least, best := sum, lo
	for i := lo; i < hi; i++ {
		if sum += cost(&before.line, i) - cost(&after.line, i); sum < least {
			least, best = sum, i+1
		}
	}
	if best < len(f.pairs) && best > 0 {
		after.from, after.after = f.pairs[best].order, f.pairs[best-1].order
	}
}

// clusters returns the pairs whose differences are near those of many others. A wrong pair, such as the
// copies of two different transmissions, would destroy the envelope.
func clusters(pairs []pair) []pair {
	if len(pairs) == 0 {
		return nil
	}
	first, last := pairs[0].x, pairs[0].x
	for i := range pairs {
		first, last = min(first, pairs[i].x), max(last, pairs[i].x)
	}
	width := int64(300e6 + math.Min(float64(last-first)*2*maxDrift, 60e9))
	rest := slices.Clone(pairs)
	slices.SortStableFunc(rest, func(a, b pair) int { return cmp.Compare(a.d, b.d) })
	var kept []pair
	for range maxSteps {
		lo, hi := densest(rest, width)
		if hi-lo < max(fewPairs, len(pairs)/100) {
			break
		}
		kept = append(kept, rest[lo:hi]...)
		rest = slices.Delete(rest, lo, hi)
	}
	return kept
}

// maxSteps limits the number of large steps of a clock.
const maxSteps = 8

// densest returns the largest range of pairs whose differences are within width. The pairs are ordered by
// difference.
func densest(pairs []pair, width int64) (lo, hi int) {
	for from, to := 0, 0; to < len(pairs); to++ {
		for pairs[to].d-pairs[from].d > width {
			from++
		}
		if to+1-from > hi-lo {
			lo, hi = from, to+1
		}
	}
	return lo, hi
}

// thin returns at most about n pairs that have the same envelope: the extreme ones of each run of pairs.
func thin(pairs []pair, n int) []pair {
	if len(pairs) <= n {
		return pairs
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(a.order, b.order) })
	var kept []pair
	size := max(len(pairs)*4/n, 4)
	for run := range slices.Chunk(pairs, size) {
		var chosen [4]int
		for i := range chosen {
			chosen[i] = -1
		}
		for i := range run {
			side := 0
			if run[i].above {
				side = 2
			}
			if c := &chosen[side]; *c < 0 || run[i].d < run[*c].d {
				*c = i
			}
			if c := &chosen[side+1]; *c < 0 || run[i].d > run[*c].d {
				*c = i
			}
		}
		slices.Sort(chosen[:])
		for i, c := range chosen {
			if c >= 0 && (i == 0 || c != chosen[i-1]) {
				kept = append(kept, run[c])
			}
		}
	}
	return kept
}
