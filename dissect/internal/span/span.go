// Package span holds sets of ranges: which bytes, or packets, were seen.
package span

// Set is a set of byte (or packet) ranges, sorted, disjoint and not adjacent.
// In-order traffic keeps it at one range, so that adding is one comparison.
type Set []Span

// Span is [Lo, Hi).
type Span struct{ Lo, Hi int64 }

// Max bounds the ranges that one set remembers: what would be one more is not
// counted. It also bounds what adding one costs.
const Max = 1024

// Add adds [lo, hi) and returns how much of it is new.
func (s *Set) Add(lo, hi int64) (fresh int64) {
	if hi <= lo {
		return 0
	}
	if n := len(*s); n > 0 && (*s)[n-1].Hi == lo {
		(*s)[n-1].Hi = hi
		return hi - lo
	}
	fresh = hi - lo
	i := 0
	for i < len(*s) && (*s)[i].Hi < lo {
		i++
	}
	j := i
	for ; j < len(*s) && (*s)[j].Lo <= hi; j++ {
		r := (*s)[j]
		fresh -= max(0, min(hi, r.Hi)-max(lo, r.Lo))
		lo, hi = min(lo, r.Lo), max(hi, r.Hi)
	}
	if i == j {
		if len(*s) >= Max {
			return 0
		}
		*s = append(*s, Span{})
		copy((*s)[i+1:], (*s)[i:])
		(*s)[i] = Span{lo, hi}
		return fresh
	}
	(*s)[i] = Span{lo, hi}
	*s = append((*s)[:i+1], (*s)[j:]...)
	return fresh
}

// Prefix is how much is there from 0 without a hole.
func (s Set) Prefix() int64 {
	if len(s) == 0 || s[0].Lo > 0 {
		return 0
	}
	return s[0].Hi
}

// Total is how much is there.
func (s Set) Total() (n int64) {
	for _, r := range s {
		n += r.Hi - r.Lo
	}
	return n
}

// Remove takes [lo, hi) out.
func (s *Set) Remove(lo, hi int64) {
	if hi <= lo {
		return
	}
	kept := (*s)[:0]
	var tail Span // the rest of a range that is split in two
	for _, r := range *s {
		switch {
		case r.Hi <= lo || r.Lo >= hi:
			kept = append(kept, r)
		case r.Lo < lo && r.Hi > hi: // only one range can hold all of it
			kept = append(kept, Span{r.Lo, lo})
			tail = Span{hi, r.Hi}
		case r.Lo < lo:
			kept = append(kept, Span{r.Lo, lo})
		case r.Hi > hi:
			kept = append(kept, Span{hi, r.Hi})
		}
	}
	*s = kept
	if tail.Hi > 0 {
		s.Add(tail.Lo, tail.Hi)
	}
}

// Last is the range that ends last; it is empty when there is none.
func (s Set) Last() Span {
	if len(s) == 0 {
		return Span{}
	}
	return s[len(s)-1]
}
