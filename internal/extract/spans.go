package extract

import "slices"

// span is the range [from, to) of a file, in bytes.
type span struct{ from, to int64 }

// maxSpans limits the number of ranges of one set.
const maxSpans = 1 << 16

// spans is a set of bytes of a file. Its ranges are sorted, and they neither overlap
// nor touch.
type spans struct {
	list []span
	full bool // the set has maxSpans ranges and lacks some that were added
}

// at returns the index of the first range that ends at or after an offset.
func (s *spans) at(offset int64) int {
	i, _ := slices.BinarySearchFunc(s.list, offset, func(s span, offset int64) int {
		if s.to < offset {
			return -1
		}
		return 1
	})
	return i
}

// add adds the bytes [from, to), unless this needs more ranges than maxSpans.
func (s *spans) add(from, to int64) {
	if to <= from {
		return
	}
	i := s.at(from)
	j := i
	for ; j < len(s.list) && s.list[j].from <= to; j++ {
		from, to = min(from, s.list[j].from), max(to, s.list[j].to)
	}
	if i == j && len(s.list) >= maxSpans {
		s.full = true
		return
	}
	s.list = slices.Replace(s.list, i, j, span{from, to})
}

// remove removes the bytes [from, to). If this needs more ranges than maxSpans, it
// also removes the rest of the range that contains them.
func (s *spans) remove(from, to int64) {
	i := s.at(from)
	j := i
	var rest [2]span
	kept := rest[:0]
	for ; j < len(s.list) && s.list[j].from < to; j++ {
		if r := s.list[j]; r.from < from {
			kept = append(kept, span{r.from, min(r.to, from)})
		}
		if r := s.list[j]; r.to > to {
			kept = append(kept, span{max(r.from, to), r.to})
		}
	}
	if len(kept) > j-i && len(s.list) >= maxSpans {
		kept, s.full = kept[:1], true
	}
	s.list = slices.Replace(s.list, i, j, kept...)
}

// within returns the parts of the ranges that are in [from, to).
func (s *spans) within(from, to int64) (parts []span) {
	for i := s.at(from); i < len(s.list) && s.list[i].from < to; i++ {
		if r := (span{max(s.list[i].from, from), min(s.list[i].to, to)}); r.from < r.to {
			parts = append(parts, r)
		}
	}
	return parts
}

// total returns the number of bytes in the set.
func (s *spans) total() (n int64) {
	for _, r := range s.list {
		n += r.to - r.from
	}
	return n
}
