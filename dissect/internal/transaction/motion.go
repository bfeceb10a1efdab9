package transaction

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/span"
)

// What moved to and from the memory that Calls expose.

// maxLong bounds what is kept of one segment, in bytes: enough for any RPC's
// header and what goes with it. Where all is to be rebuilt, it is maxItem.
const (
	maxLong = 1 << 20
	maxItem = 16 << 20
)

// motion is what moved in one segment.
type motion struct {
	moved span.Set
	room  [1]span.Span // what moved begins in
	data  []byte       // what moved, when somebody wants it
	lacks span.Set     // of what moved, that which data does not have
	cut   int64        // bytes that moved in packets that were cut
}

// still is that of segments in which nothing moved. Nobody writes to it.
var still motion

// went is what moved in a segment, to be read.
func (s *segment) went() *motion {
	if s.motion == nil {
		return &still
	}
	return s.motion
}

// ensure returns the transfer state of a segment, allocating it if needed.
func (s *segment) ensure() *motion {
	if s.motion == nil {
		s.motion = new(motion)
		s.motion.moved = s.motion.room[:0]
	}
	return s.motion
}

// movedIn notes what moved in one segment, which has room for it.
func (f *follower) movedIn(s *segment, offset uint64, data []byte, n int) {
	at := int64(offset - s.offset)
	end := at + int64(n)
	m := s.ensure()
	had := len(m.moved)
	fresh := m.moved.Add(at, end)
	m.cut += max(fresh-int64(len(data)), 0)
	if fresh == 0 && had >= span.Max {
		f.table.budget.Note(budget.Spans)
	}
	if more := len(m.moved) - had; more > 0 && had > 0 {
		s.txn.charge(spanCost * int64(more))
	}
	if !s.keep {
		return
	}
	limit := int64(maxLong)
	if s.txn.rebuilds() {
		limit = maxItem
	}
	if end = at + int64(len(data)); end > limit {
		end = at
	}
	s.lack(end, at+int64(n))
	if end == at {
		return
	}
	if need := end - int64(len(m.data)); need > 0 {
		if s.txn.kept == 0 {
			f.rare().keepers.Push(s.txn.tag(0))
		}
		was, had := len(m.data), cap(m.data)
		m.data = slices.Grow(m.data, int(need))[:end]
		if at > int64(was) {
			clear(m.data[was:at])
		}
		s.txn.kept += int64(cap(m.data) - had)
		s.txn.charge(int64(cap(m.data) - had))
	}
	copy(m.data[at:end], data)
	if len(m.lacks) > 0 {
		m.lacks.Remove(at, end)
	}
}

// lack notes a range that moved and whose bytes are not in data.
func (s *segment) lack(lo, hi int64) {
	if lo == hi {
		return
	}
	m := s.motion
	had := len(m.lacks)
	m.lacks.Add(lo, hi)
	if more := len(m.lacks) - had; more > 0 {
		s.txn.charge(spanCost * int64(more))
	}
	if len(m.lacks) == span.Max { // more than can be remembered: nothing is held for certain
		s.keep, m.data = false, nil
	}
}

// dropData gives up the chunk data of a transaction.
func (x *txn) dropData() {
	for i := range x.segments {
		s := &x.segments[i]
		if s.keep = false; s.motion != nil {
			s.motion.data = nil
		}
	}
	x.charge(-x.kept)
	x.kept = 0
}

// gather appends the data of a chunk, as far as it is there without a hole.
func gather(to []byte, segments []segment) []byte {
	for i := range segments {
		s := &segments[i]
		want, m := s.carries(), s.went()
		have := min(want, m.moved.Prefix(), int64(len(m.data)))
		if len(m.lacks) > 0 {
			have = min(have, m.lacks[0].Lo)
		}
		to = append(to, m.data[:have]...)
		if have < want {
			break
		}
	}
	return to
}
