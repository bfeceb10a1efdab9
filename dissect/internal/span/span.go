// Package span has sets of ranges, for example of the bytes or packets that were seen.
package span

// Set is a set of byte or packet ranges that are sorted, disjoint and not adjacent.
// In-order traffic keeps it at one range, so that Add needs one comparison.
type Set []Span

// Span is the range [Lo, Hi).
type Span struct{ Lo, Hi int64 }

// Max is the maximum number of ranges in a set, which also limits the cost of Add. A
// range that would exceed it is not added.
const Max = 1024

// Add adds [lo, hi) and returns how many bytes or packets of it are new.
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

// Prefix returns the length of the range that starts at 0, or 0 if there is none.
func (s Set) Prefix() int64 {
	if len(s) == 0 || s[0].Lo > 0 {
		return 0
	}
	return s[0].Hi
}

// Total returns the total length of all ranges.
func (s Set) Total() (n int64) {
	for _, r := range s {
		n += r.Hi - r.Lo
	}
	return n
}

// Remove removes [lo, hi), which is empty if hi is not after lo.
func (s *Set) Remove(lo, hi int64) {
	kept := (*s)[:0]
	var tail Span // the upper part of a range that is split in two
	for _, r := range *s {
		switch {
		case r.Hi <= lo || r.Lo >= hi:
			kept = append(kept, r)
		case r.Lo < lo && r.Hi > hi: // at most one range can contain all of [lo, hi)
			kept = append(kept, Span{r.Lo, lo})
			tail = Span{hi, r.Hi}
		case r.Lo < lo:
			kept = append(kept, Span{r.Lo, lo})
		case r.Hi > hi:
			kept = append(kept, Span{hi, r.Hi})
		}
	}
	*s = kept
	s.Add(tail.Lo, tail.Hi)
}
