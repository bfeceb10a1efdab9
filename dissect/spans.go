package dissect

// spans is a set of byte (or packet) ranges, sorted, disjoint and not adjacent.
// In-order traffic keeps it at one range, so that adding is one comparison.
type spans []span

type span struct{ lo, hi int64 } // [lo, hi)

// maxSpans bounds the ranges that one set remembers: what would be one more is
// not counted.
const maxSpans = 4096

// add adds [lo, hi) and returns how much of it is new.
func (s *spans) add(lo, hi int64) (fresh int64) {
	if hi <= lo {
		return 0
	}
	if n := len(*s); n > 0 && (*s)[n-1].hi == lo {
		(*s)[n-1].hi = hi
		return hi - lo
	}
	fresh = hi - lo
	i := 0
	for i < len(*s) && (*s)[i].hi < lo {
		i++
	}
	j := i
	for ; j < len(*s) && (*s)[j].lo <= hi; j++ {
		r := (*s)[j]
		fresh -= max(0, min(hi, r.hi)-max(lo, r.lo))
		lo, hi = min(lo, r.lo), max(hi, r.hi)
	}
	if i == j {
		if len(*s) >= maxSpans {
			return 0
		}
		*s = append(*s, span{})
		copy((*s)[i+1:], (*s)[i:])
		(*s)[i] = span{lo, hi}
		return fresh
	}
	(*s)[i] = span{lo, hi}
	*s = append((*s)[:i+1], (*s)[j:]...)
	return fresh
}

// prefix is how much is there from 0 without a hole.
func (s spans) prefix() int64 {
	if len(s) == 0 || s[0].lo > 0 {
		return 0
	}
	return s[0].hi
}

// total is how much is there.
func (s spans) total() (n int64) {
	for _, r := range s {
		n += r.hi - r.lo
	}
	return n
}
