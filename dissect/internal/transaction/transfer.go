package transaction

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/span"
)

// The bytes that move into and out of the memory that Calls expose.

// maxLong is the maximum number of bytes of one segment that are kept: enough for an RPC message
// without data. For Rebuild, the maximum is maxItem.
const (
	maxLong = 1 << 20
	maxItem = 16 << 20
)

// transferState records the bytes that moved in one segment.
type transferState struct {
	moved     span.Set
	firstSpan [1]span.Span // initial storage of moved
	data      []byte       // the bytes that moved, if they are kept
	missing   span.Set     // ranges that moved, but are not in data
	truncated int64        // number of bytes that moved in truncated packets
}

// noTransfer is shared by all segments in which nothing moved. It is never written to.
var noTransfer transferState

// transferred returns the transfer state of a segment for reading.
func (s *segment) transferred() *transferState {
	if s.transfer == nil {
		return &noTransfer
	}
	return s.transfer
}

// ensure returns the transfer state of a segment, and begins it if there is none.
func (t *Table) ensure(s *segment) *transferState {
	if s.transfer == nil {
		if s.transfer = t.transfers.Take(); s.transfer == nil {
			s.transfer = new(transferState)
		}
		s.transfer.moved = s.transfer.firstSpan[:0]
	}
	return s.transfer
}

// The transfer states whose storage is used again: the maximum number of them, and the maximum number
// of bytes of data of each.
const (
	maxTransfers    = 64
	maxTransferData = 1 << 16
)

// releaseTransfers ends the transfer states of a transaction.
func (t *Table) releaseTransfers(x *txn) {
	for i := range x.segments {
		m := x.segments[i].transfer
		if m == nil {
			continue
		}
		x.segments[i].transfer = nil
		data := m.data[:0]
		if cap(data) > maxTransferData {
			data = nil
		}
		*m = transferState{data: data}
		t.transfers.Keep(m, maxTransfers)
	}
}

// noteTransfer records n bytes that moved in one segment.
func noteTransfer(cs *connState, s *segment, offset uint64, data []byte, n int) {
	at := int64(offset - s.offset)
	end := at + int64(n)
	m := cs.table.ensure(s)
	had := len(m.moved)
	fresh := m.moved.Add(at, end)
	m.truncated += max(fresh-int64(len(data)), 0)
	if fresh == 0 && had >= span.Max {
		cs.table.budget.Note(budget.Spans)
	}
	if more := len(m.moved) - had; more > 0 && had > 0 {
		s.txn.charge(spanCost * int64(more))
	}
	if !s.keep {
		return
	}
	limit := int64(maxLong)
	if s.txn.isRebuilt() {
		limit = maxItem
	}
	if end = at + int64(len(data)); end > limit {
		end = at
	}
	s.noteMissing(end, at+int64(n))
	if end == at {
		return
	}
	if need := end - int64(len(m.data)); need > 0 {
		if s.txn.kept == 0 {
			cs.rare().txnsWithChunkData.Push(s.txn.tag(0))
		}
		was := len(m.data)
		m.data = slices.Grow(m.data, int(need))[:end]
		if at > int64(was) {
			clear(m.data[was:at])
		}
		need += need / 4 // the storage grows in steps
		s.txn.kept += need
		s.txn.charge(need)
	}
	copy(m.data[at:end], data)
	if len(m.missing) > 0 {
		m.missing.Remove(at, end)
	}
}

// noteMissing records a range that moved, but whose bytes are not in data.
func (s *segment) noteMissing(lo, hi int64) {
	if lo == hi {
		return
	}
	m := s.transfer
	had := len(m.missing)
	m.missing.Add(lo, hi)
	if more := len(m.missing) - had; more > 0 {
		s.txn.charge(spanCost * int64(more))
	}
	if len(m.missing) == span.Max { // more ranges than can be remembered, so data is not reliable
		s.keep, m.data = false, nil
	}
}

// dropData frees the chunk data of a transaction.
func (x *txn) dropData() {
	for i := range x.segments {
		s := &x.segments[i]
		if s.keep = false; s.transfer != nil {
			s.transfer.data = nil
		}
	}
	x.charge(-x.kept)
	x.kept = 0
}

// gather appends the data of a chunk up to its first hole.
func gather(to []byte, segments []segment) []byte {
	for i := range segments {
		s := &segments[i]
		want, m := s.carries(), s.transferred()
		have := min(want, m.moved.Prefix(), int64(len(m.data)))
		if len(m.missing) > 0 {
			have = min(have, m.missing[0].Lo)
		}
		to = append(to, m.data[:have]...)
		if have < want {
			break
		}
	}
	return to
}
