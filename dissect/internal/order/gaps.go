package order

import "slices"

// Gaps reports which sequence numbers before the next request the capture has: those from a first one on,
// except for some ranges.
type Gaps struct {
	from uint32
	list []gap // in order
}

// gap is a range of sequence numbers that the capture lacks. counted is set if they were counted as not captured.
type gap struct {
	Run
	counted bool
}

// maxGaps is the maximum number of gaps. With more of them, the first two become one.
const maxGaps = 32

// gapCost is the memory of a gap, in bytes.
const gapCost = 12

// Bytes returns the memory of the gaps.
func (g *Gaps) Bytes() int64 { return gapCost * int64(cap(g.list)) }

// Begin notes the first sequence number that can be captured.
func (g *Gaps) Begin(seq uint32) { g.from, g.list = seq, g.list[:0] }

// Forget forgets what is known about sequence numbers that are so far before next that they are about to be used again.
func (g *Gaps) Forget(c Circle, next uint32) {
	if far := int32(1) << (c - 3); c.Delta(next, g.from) > 2*far {
		g.Begin(c.Add(next, -uint32(far)))
	}
}

// Missing notes that sequence numbers before the next request were counted as not captured.
func (g *Gaps) Missing(r Run) { g.insert(len(g.list), gap{r, true}) }

// lacks reports whether a sequence number of r is in a gap.
func (g *Gaps) lacks(c Circle, r Run) bool { return g.find(c, r) >= 0 }

// Has reports whether the capture had r before: it neither begins after it, nor has a gap there.
func (g *Gaps) Has(c Circle, r Run) bool { return c.Delta(r.From, g.from) >= 0 && !g.lacks(c, r) }

// find returns the index of the first gap that has a sequence number of r, -1 if there is none.
func (g *Gaps) find(c Circle, r Run) int {
	return slices.IndexFunc(g.list, func(gap gap) bool { return c.Delta(r.From, gap.To) < 0 && c.Delta(r.To, gap.From) > 0 })
}

// insert adds a gap at an index.
func (g *Gaps) insert(i int, added gap) {
	if len(g.list) == maxGaps {
		a, b := g.list[0], g.list[1]
		g.list[1] = gap{Run{a.From, b.To}, a.counted || b.counted}
		g.list = slices.Delete(g.list, 0, 1)
		i = max(i-1, 0)
	}
	g.list = slices.Insert(g.list, i, added)
}

// fill notes that sequence numbers were captured late that are in the gap at an index.
func (g *Gaps) fill(c Circle, i int, r Run) {
	old := g.list[i]
	g.list = slices.Delete(g.list, i, i+1)
	if c.Delta(old.To, r.To) > 0 {
		g.insert(i, gap{Run{r.To, old.To}, old.counted})
	}
	if c.Delta(r.From, old.From) > 0 {
		g.insert(min(i, len(g.list)), gap{Run{old.From, r.From}, old.counted})
	}
}

// Late takes the sequence numbers of a request that come before the next one. It reports whether they may be those
// of the first copy that was sent: the capture lacks them, or begins after them and shows no acknowledgement of them.
// Counted is set if they were counted as not captured. Read is set for a Read Request: its operation stays unknown, so
// that responses with these sequence numbers are no second copies.
func (g *Gaps) Late(c Circle, r Run, acked, read bool) (late, counted bool) {
	i := g.find(c, r)
	before := i < 0 && c.Delta(r.From, g.from) < 0 && !acked
	late, counted = i >= 0 || before, i >= 0 && g.list[i].counted
	switch {
	case read:
	case i >= 0:
		g.fill(c, i, r)
	case before:
		if c.Delta(r.To, g.from) < 0 {
			g.insert(0, gap{Run: Run{r.To, g.from}})
		}
		g.from = r.From
	}
	return late, counted
}
