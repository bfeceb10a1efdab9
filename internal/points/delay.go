package points

import (
	"math/bits"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// histogram counts durations. Its memory does not depend on their number. Quantiles are exact for up to a few thousand durations, and
// otherwise off by less than 1%.
type histogram struct {
	exact    []int64
	steps    *hdrhistogram.Histogram // nil while exact has all durations
	n        int64
	min, max int64
}

const (
	exactDurations = 4096
	longestStep    = 1 << 45 // nanoseconds: ten hours
)

func (h *histogram) add(ns int64) {
	ns = max(ns, 0)
	if h.n == 0 {
		h.min = ns
	}
	h.n, h.min, h.max = h.n+1, min(h.min, ns), max(h.max, ns)
	if h.steps != nil {
		h.steps.RecordValue(min(ns, longestStep)) // it fails only for a value out of range
	} else if h.exact = append(h.exact, ns); h.n == exactDurations {
		h.steps = hdrhistogram.New(1, longestStep, 2)
		for _, ns := range h.exact {
			h.steps.RecordValue(min(ns, longestStep))
		}
		h.exact = nil
	}
}

// quantile returns the duration that a part of all durations does not exceed.
func (h *histogram) quantile(part float64) int64 {
	switch {
	case h.n == 0:
		return 0
	case h.steps != nil:
		return min(max(h.steps.ValueAtQuantile(100*part), h.min), h.max)
	}
	slices.Sort(h.exact)
	return h.exact[min(int64(part*float64(h.n)), h.n-1)]
}

// Interval is the traffic between two points in an interval of time.
type Interval struct {
	Start   int64 // on the reference clock
	Packets int64 // that were sent
	Lost    int64
	Damaged int64
	Delay   Delay
}

// Delay is a distribution of one-way delays, in nanoseconds.
type Delay struct {
	Count                   int64
	Min, P50, P90, P99, Max int64
}

func (h *histogram) delay() Delay {
	return Delay{h.n, h.min, h.quantile(0.5), h.quantile(0.9), h.quantile(0.99), h.max}
}

// course is the traffic between two points over time. If the capture gets longer, intervals are joined, so
// that their number is limited.
type course struct {
	start, width int64
	intervals    []slot
}

// slot is one interval of a course.
type slot struct {
	packets, lost, damaged, delays int64
	least, most, sum               int64
	quick                          [slotBuckets]int32 // delays by powers of two
}

const (
	maxIntervals = 64
	firstWidth   = 1e6 // nanoseconds
	slotBuckets  = 48
)

// at returns the interval of a time.
func (c *course) at(t int64) *slot {
	if c.width == 0 {
		c.start, c.width = t, firstWidth
	}
	i := max(t-c.start, 0) / c.width
	for i >= maxIntervals {
		c.widen()
		i = max(t-c.start, 0) / c.width
	}
	for int64(len(c.intervals)) <= i {
		c.intervals = append(c.intervals, slot{})
	}
	return &c.intervals[i]
}

// widen joins each two intervals.
func (c *course) widen() {
	c.width *= 2
	n := (len(c.intervals) + 1) / 2
	for i := range n {
		s := c.intervals[2*i]
		if 2*i+1 < len(c.intervals) {
			o := &c.intervals[2*i+1]
			if o.delays > 0 && (s.delays == 0 || o.least < s.least) {
				s.least = o.least
			}
			s.most = max(s.most, o.most)
			s.packets, s.lost, s.damaged, s.delays, s.sum = s.packets+o.packets, s.lost+o.lost, s.damaged+o.damaged, s.delays+o.delays, s.sum+o.sum
			for j, v := range o.quick {
				s.quick[j] += v
			}
		}
		c.intervals[i] = s
	}
	clear(c.intervals[n:])
	c.intervals = c.intervals[:n]
}

func (s *slot) delay(ns int64) {
	ns = max(ns, 0)
	if s.delays == 0 || ns < s.least {
		s.least = ns
	}
	s.most = max(s.most, ns)
	s.delays++
	s.sum += ns
	s.quick[min(bits.Len64(uint64(ns)), slotBuckets-1)]++
}

// Intervals returns the intervals.
func (c *course) list() (list []Interval) {
	for i := range c.intervals {
		s := &c.intervals[i]
		list = append(list, Interval{
			Start: c.start + int64(i)*c.width, Packets: s.packets, Lost: s.lost, Damaged: s.damaged,
			Delay: Delay{Count: s.delays, Min: s.least, P50: s.quantile(0.5), P90: s.quantile(0.9), P99: s.quantile(0.99), Max: s.most},
		})
	}
	return list
}

// quantile returns about the delay that a part of the delays does not exceed.
func (s *slot) quantile(part float64) int64 {
	rank := int64(part * float64(s.delays))
	for i, n := range s.quick {
		if rank -= int64(n); rank < 0 {
			return min(max(int64(3)<<max(i-2, 0)*min(int64(i), 1), s.least), s.most)
		}
	}
	return s.most
}

// QuietTime is a time in which the capture of a point has no frame at all. A host that is down receives nothing, and captures
// nothing: what is lost in such a time is not known to be lost on the way.
type QuietTime struct{ From, To, Lost int64 }

// quiet has the times in which the capture of a point has no frame.
type quiet struct {
	last  int64 // time of the latest frame; 0 before the first
	times []QuietTime
}

const (
	leastQuiet = 1e9 // nanoseconds
	maxQuiet   = 64
)

// Quiet returns the times in which the capture of the point that the packets come to has no frame, if packets were lost in them.
func (h *Hop) Quiet() (list []QuietTime) {
	for _, t := range h.quiet.times {
		if t.Lost = h.lostIn[t.From]; t.Lost > 0 {
			list = append(list, t)
		}
	}
	return list
}

// hear notes a frame of a point.
func (m *matcher) hear(point int, at int64) {
	q := &m.quiet[point]
	if q.last != 0 && at-q.last >= leastQuiet && len(q.times) < maxQuiet {
		q.times = append(q.times, QuietTime{From: q.last, To: at})
	}
	q.last = max(q.last, at)
}

// mayWake reports whether a packet that was not captured until a time may still come to the next point, because that has had no frame since, or
// has again for less than the window of the matcher: a machine that stands still takes what was sent to it when it goes on.
func (m *matcher) mayWake(e *entry, until int64) bool {
	h := e.path.hops[e.hop]
	if q, at := h.quiet, e.time+min(e.path.longest, leastQuiet); q.last != 0 && until <= m.now && m.ring.len() <= m.limit && m.covered(h.To, e.time, 0) {
		return q.last < at || slices.ContainsFunc(q.times, func(t QuietTime) bool { return t.From < at && e.time < t.To && until <= t.To })
	}
	return false
}

// lostInQuiet counts a lost packet if the other point captured nothing when it would have come there, at most margin later.
func (m *matcher) lostInQuiet(h *Hop, at, margin int64) {
	q, from := h.quiet, int64(0)
	margin = min(margin, leastQuiet)
	if at+margin > q.last && m.now-q.last >= leastQuiet { // The time has not ended.
		from = q.last
	}
	for _, t := range q.times {
		if at+margin > t.From && at < t.To {
			from = t.From
		}
	}
	if from == 0 {
		return
	}
	if h.lostIn == nil {
		h.lostIn = map[int64]int64{}
	}
	h.lostIn[from]++
}
