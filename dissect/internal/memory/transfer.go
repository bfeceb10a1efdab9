package memory

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/queue"
	"github.com/rdmadump/rdmadump/dissect/internal/span"
)

// The bytes that move into and out of a segment.

// MaxLong is the maximum number of bytes of one segment that are kept: enough for an RPC message
// without data. For whole Payload streams, the maximum is MaxItem.
const (
	MaxLong = 1 << 20
	MaxItem = 16 << 20
)

// Transfer records the bytes that moved in one segment.
type Transfer struct {
	moved     span.Set
	firstSpan [1]span.Span // initial storage of moved
	data      []byte       // the bytes that moved, if they are kept
	missing   span.Set     // ranges that moved, but are not in data
	truncated int64        // number of bytes that moved in truncated packets
}

// noTransfer is shared by all segments in which nothing moved. It is never written to.
var noTransfer Transfer

// Moved returns the number of bytes that moved.
func (t *Transfer) Moved() int64 { return t.moved.Total() }

// Truncated returns how many of the bytes that moved were not captured, because packets were truncated.
func (t *Transfer) Truncated() int64 { return t.truncated }

// Full reports whether more ranges moved than can be remembered, so that not all that moved is known.
func (t *Transfer) Full() bool { return len(t.moved) == span.Max }

// End returns the offset after the last byte that moved, and false if nothing did.
func (t *Transfer) End() (offset int64, known bool) {
	if len(t.moved) == 0 {
		return 0, false
	}
	return t.moved[len(t.moved)-1].Hi, true
}

// Prefix returns the first n bytes of the segment, or fewer if not all of them are kept.
func (t *Transfer) Prefix(n int64) []byte {
	have := min(n, t.moved.Prefix(), int64(len(t.data)))
	if len(t.missing) > 0 {
		have = min(have, t.missing[0].Lo)
	}
	return t.data[:have]
}

// Kept returns the ranges of bytes that are kept, in the storage of ranges, and the bytes from offset 0 on.
func (t *Transfer) Kept(ranges span.Set) (span.Set, []byte) {
	ranges = append(ranges[:0], t.moved...)
	for _, l := range t.missing {
		ranges.Remove(l.Lo, l.Hi)
	}
	return ranges, t.data
}

// Cost is what the record of a transfer takes in addition.
type Cost struct {
	Ranges int   // number of ranges
	Bytes  int64 // bytes of data
	Lost   bool  // a range could not be remembered
}

// Transfers are transfers whose storage is used again.
type Transfers struct{ unused queue.FreeList[Transfer] }

// The maximum number of transfers whose storage is used again, and the maximum number of bytes of data of each.
const (
	maxTransfers    = 64
	maxTransferData = 1 << 16
)

// Transferred returns the transfer of a segment for reading.
func (s *Segment[T]) Transferred() *Transfer {
	if s.transfer == nil {
		return &noTransfer
	}
	return s.transfer
}

// Keep keeps the data that moves from now on, up to an offset. With offset 0, no data is kept any longer.
func (s *Segment[T]) Keep(upTo int64) {
	if s.keep = upTo; upTo == 0 && s.transfer != nil {
		s.transfer.data = nil
	}
}

// Keeps reports whether the data that moves is kept.
func (s *Segment[T]) Keeps() bool { return s.keep > 0 }

// Move records n bytes that moved from an offset on, of which data was captured. All of them are in the segment.
func (s *Segment[T]) Move(storage *Transfers, offset uint64, data []byte, n int) (c Cost) {
	if s.transfer == nil {
		if s.transfer = storage.unused.Take(); s.transfer == nil {
			s.transfer = new(Transfer)
		}
		s.transfer.moved = s.transfer.firstSpan[:0]
	}
	at, t := int64(offset-s.Offset), s.transfer
	end := at + int64(n)
	had := len(t.moved)
	fresh := t.moved.Add(at, end)
	t.truncated += max(fresh-int64(len(data)), 0)
	c.Lost = fresh == 0 && had >= span.Max
	if had > 0 {
		c.Ranges = max(len(t.moved)-had, 0)
	}
	if s.keep == 0 {
		return c
	}
	captured := at + int64(len(data))
	if captured > s.keep {
		captured = at
	}
	c.Ranges += s.miss(captured, end)
	if captured == at {
		return c
	}
	if need := captured - int64(len(t.data)); need > 0 {
		was := len(t.data)
		t.data = slices.Grow(t.data, int(need))[:captured]
		if at > int64(was) {
			clear(t.data[was:at])
		}
		c.Bytes = need + need/4 // the storage grows in steps
	}
	copy(t.data[at:captured], data)
	if len(t.missing) > 0 {
		t.missing.Remove(at, captured)
	}
	return c
}

// miss records a range that moved, but whose bytes are not in data. It returns by how many ranges the record grew.
func (s *Segment[T]) miss(lo, hi int64) int {
	if lo == hi {
		return 0
	}
	t := s.transfer
	had := len(t.missing)
	t.missing.Add(lo, hi)
	if len(t.missing) == span.Max { // more ranges than can be remembered, so data is not reliable
		s.Keep(0)
	}
	return max(len(t.missing)-had, 0)
}

// Unmove removes the bytes [from, to) of memory from those that moved.
func (s *Segment[T]) Unmove(from, to uint64) {
	if s.transfer == nil || to <= s.Offset || from >= s.Offset+uint64(s.Length) || to < from {
		return
	}
	s.transfer.moved.Remove(int64(max(from, s.Offset)-s.Offset), int64(min(to-s.Offset, uint64(s.Length))))
}

// Release ends the transfer of a segment.
func (s *Segment[T]) Release(storage *Transfers) {
	t := s.transfer
	if t == nil {
		return
	}
	s.transfer = nil
	data := t.data[:0]
	if cap(data) > maxTransferData {
		data = nil
	}
	*t = Transfer{data: data}
	storage.unused.Keep(t, maxTransfers)
}
