package transaction

import (
	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/memory"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Exposed memory: connections expose the regions of a Call, and find those that an RDMA operation names.

type (
	segment  = memory.Segment[txn]
	exposure = memory.Exposure[txn]
	target   = memory.Target // the range of memory that an operation names
)

// lookAt is the maximum number of objects of one kind that are searched.
const lookAt = memory.LookAt

// mostKept returns the offset up to which the data in a segment is kept, if any is.
func mostKept(x *txn) int64 {
	if x.isRebuilt() {
		return memory.MaxItem
	}
	return memory.MaxLong
}

// expose records the memory that a Call exposes.
func (cs *connState) expose(x *txn, m *message) {
	x.memory.List(x, m.header, !m.known())
	if n := len(x.memory.Segments); n > 0 {
		x.charge(segmentCost * int64(n))
	}
	noteExposed(cs, x)
	x.memory.Keep(mostKept(x), x.isRebuilt())
	x.memory.Expose(&cs.exposed[x.side])
}

// began finds the memory that an RDMA operation names.
func (cs *connState) began(o *rdma.Operation) {
	if !cs.upper.IsRPC() || o.Length == 0 {
		return
	}
	owner := o.Side.Other()
	m := target{Handle: o.Handle, Offset: o.Offset, Length: uint32(o.Length)}
	s, exact := cs.exposed[owner].Find(m)
	if s = checkTarget(cs, o, m, s, exact); s == nil || o.Kind == rdma.Atomic {
		return
	}
	x := s.Owner
	o.Tag = x.tag(int(s.Number))
	noteActivity(cs, x, o.Side, o.First, false)
	x.noteServed(o)
	notePath(x, o)
	what := record.EventWriteFirst
	if o.Kind == rdma.Read {
		what = record.EventRead
		x.checks.memory.openReads++
	}
	e := x.event(o.First, what, x.role(o.Side))
	e.Handle, e.Offset = record.Some(record.Hex32(o.Handle)), record.Some(record.Hex64(o.Offset))
	e.Bytes = record.SomeIf(o.Length, o.Announced)
}

// Moved records that n bytes, of which data was captured, moved into or out of exposed memory.
func (cs *connState) Moved(o *rdma.Operation, offset uint64, data []byte, n int) {
	x, part := cs.table.tagged(o.Tag)
	if x == nil || part >= len(x.memory.Segments) {
		return
	}
	from := o.Side
	if o.Kind == rdma.Read {
		from = from.Other()
	}
	first := o.Bytes == int64(n)
	noteActivity(cs, x, from, o.Last, !first)
	if o.Kind == rdma.Read && first {
		x.turn.Answered(o.First.Time, o.Last.Time)
	}
	checkLateRead(cs, o, x)
	s := x.memory.Start(&x.memory.Segments[part], offset)
	for n > 0 {
		in, fit := x.memory.Find(s, offset, n)
		if in != s {
			s = in
			o.Tag = x.tag(int(s.Number))
		}
		if fit == 0 {
			checkExceeds(cs, x, s, o)
			return
		}
		noteTransfer(cs, s, offset, data[:min(len(data), fit)], fit)
		offset, n, data = offset+uint64(fit), n-fit, data[min(len(data), fit):]
	}
}

// noteTransfer records n bytes that moved in one segment.
func noteTransfer(cs *connState, s *segment, offset uint64, data []byte, n int) {
	x := s.Owner
	cost, first := x.memory.Move(&cs.table.transfers, s, offset, data, n)
	if cost.Lost {
		cs.table.budget.Note(budget.Spans)
	}
	if first {
		cs.rare().txnsWithChunkData.Push(x.tag(0))
	}
	if bytes := spanCost*int64(cost.Ranges) + cost.Bytes; bytes > 0 {
		x.charge(bytes)
	}
}
