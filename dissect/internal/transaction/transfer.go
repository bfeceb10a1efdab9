package transaction

import (
	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/memory"
)

// The bytes that move into and out of the memory that Calls expose.

// mostKept returns the offset up to which the data in a segment is kept, if any is.
func mostKept(x *txn) int64 {
	if x.isRebuilt() {
		return memory.MaxItem
	}
	return memory.MaxLong
}

// releaseTransfers ends the transfers of a transaction.
func (t *Table) releaseTransfers(x *txn) {
	for i := range x.segments {
		x.segments[i].Release(&t.transfers)
	}
}

// noteTransfer records n bytes that moved in one segment.
func noteTransfer(cs *connState, s *segment, offset uint64, data []byte, n int) {
	x := s.txn
	cost := s.Move(&cs.table.transfers, offset, data, n)
	if cost.Lost {
		cs.table.budget.Note(budget.Spans)
	}
	if cost.Ranges > 0 {
		x.charge(spanCost * int64(cost.Ranges))
	}
	if cost.Bytes > 0 {
		if x.kept == 0 {
			cs.rare().txnsWithChunkData.Push(x.tag(0))
		}
		x.kept += cost.Bytes
		x.charge(cost.Bytes)
	}
}

// dropData frees the chunk data of a transaction.
func (x *txn) dropData() {
	for i := range x.segments {
		x.segments[i].Keep(0)
	}
	x.charge(-x.kept)
	x.kept = 0
}

// gather appends the data of a chunk up to its first hole.
func gather(to []byte, segments []segment) []byte {
	for i := range segments {
		s := &segments[i]
		want := s.carries()
		have := s.Transferred().Prefix(want)
		if to = append(to, have...); int64(len(have)) < want {
			break
		}
	}
	return to
}
