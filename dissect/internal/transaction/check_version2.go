package transaction

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Version 2 of the remote invalidation draft (draft-cel-nfsv4-reminv-design s.5.3), and the styles
// of invalidation that the draft distinguishes.

// checkInvHandle compares the rdma_inv_handle of a Call with its chunk lists.
func checkInvHandle(c checker, m *message) {
	h, x := m.header, c.x
	if !h.IsDraft {
		return
	}
	x.checks.inv = record.Some(h.InvHandle)
	x.call.InvHandle = record.Some(record.Hex32(h.InvHandle))
	if h.InvHandle == 0 || slices.ContainsFunc(x.segments, func(s segment) bool { return s.handle == h.InvHandle }) {
		return
	}
	c.report(rule.InvHandleUnknown, "rdma_inv_handle is 0x%08x, which is not in the Call's chunk lists", h.InvHandle)
}

// checkInvReply compares a Reply with the rdma_inv_handle of its Call.
func checkInvReply(c checker, m *message) {
	h, x := m.header, c.x
	if h.IsDraft {
		x.answer.InvHandle = record.Some(record.Hex32(h.InvHandle))
	}
	wanted, known := x.checks.inv.Get()
	if !known {
		return
	}
	if h.IsDraft && h.InvHandle != wanted {
		c.report(rule.InvHandleNotCopied, "rdma_inv_handle is 0x%08x, but in the Call it is 0x%08x", h.InvHandle, wanted)
	}
	switch handle, invalidates := m.Invalidates.Get(); {
	case invalidates && wanted == 0:
		c.report(rule.InvHandleNotHonored, "Send With Invalidate of 0x%08x, although rdma_inv_handle of the Call is 0, which allows none", handle)
	case invalidates && handle != wanted:
		c.report(rule.InvHandleNotHonored, "Send With Invalidate of 0x%08x, although rdma_inv_handle of the Call is 0x%08x", handle, wanted)
	case !invalidates && wanted != 0:
		c.report(rule.InvHandleUnused, "the Reply invalidates no handle, although the Call asks for the invalidation of 0x%08x in rdma_inv_handle", wanted)
	}
}

// handles describes the handles that a Call exposes, as far as invalidation needs it.
type handles struct {
	count                int // number of different handles
	first, last, largest uint32
	mixed                bool // there are Read and Write handles
}

// invalidationStats counts how Replies invalidate handles.
type invalidationStats struct {
	figures              record.InvalidationFigures
	choices              int64 // Replies that invalidate one of several handles
	first, last, largest int64 // of these Replies, the handle that they invalidate
	singleAll            int64 // Replies to Calls with one handle only
	named, honored       int64 // version 2: Calls with an rdma_inv_handle; Replies that invalidate that handle
}

// countHandles records which handles a Call exposes.
func countHandles(cs *connState, x *txn) {
	if len(x.segments) == 0 || x.listsIncomplete {
		return
	}
	v := &x.checks.handles
	most := int64(0)
	reads, writes := false, false
	for i := range x.segments {
		s := &x.segments[i]
		reads, writes = reads || s.kind == readChunk, writes || s.kind != readChunk
		if s.total = int64(s.length); s.handleSeen {
			s.total += s.next.total
		} else {
			v.count++
		}
		if s.total > most {
			v.largest, most = s.handle, s.total
		}
	}
	if cs.checks.invalidation == nil {
		cs.checks.invalidation = new(invalidationStats)
	}
	v.first, v.last, v.mixed = x.segments[0].handle, x.segments[len(x.segments)-1].handle, reads && writes
	if v.mixed {
		cs.checks.invalidation.figures.MixedDirectionCalls++
	}
}

// countInvalidation counts how a Reply invalidates.
func countInvalidation(cs *connState, x *txn, m *message) {
	v, st := &x.checks.handles, cs.checks.invalidation
	if v.count == 0 || x.rec.Call == nil {
		return
	}
	g := &st.figures
	g.ChunkReplies++
	left := v.count
	handle, invalidates := m.Invalidates.Get()
	own := invalidates && x.exposes(handle)
	if v.count == 1 {
		st.singleAll++
	}
	if invalidates {
		g.InvalidatingReplies++
	}
	if wanted, known := x.checks.inv.Get(); known && wanted != 0 {
		if st.named++; invalidates && handle == wanted {
			st.honored++
		}
	}
	switch {
	case invalidates && !own:
		if s := cs.exposed[x.side].byHandle[handle]; s != nil && s.kind == readChunk {
			g.ForeignReadChunkHandles++
		}
	case own && v.count == 1:
	case own:
		st.choices++
		for _, is := range []struct {
			n    *int64
			here bool
		}{{&st.first, handle == v.first}, {&st.last, handle == v.last}, {&st.largest, handle == v.largest}} {
			if is.here {
				*is.n++
			}
		}
	}
	if own {
		left--
	}
	g.LocalInvalidations += int64(left)
	if v.count > 1 {
		g.MultiHandleReplies++
	}
}

// result returns the figures for the record of the connection.
func (st *invalidationStats) result() record.InvalidationFigures {
	if st == nil {
		return record.InvalidationFigures{Style: record.InvalidationNone}
	}
	g := st.figures
	g.Style = record.InvalidationNone
	switch {
	case st.named > 0 && g.InvalidatingReplies > 0 && st.honored == g.InvalidatingReplies:
		g.Style = record.RequestersChoice
	case g.InvalidatingReplies > 0:
		g.Style = record.RespondersChoice
	}
	switch {
	case g.Style != record.RespondersChoice:
	case st.choices == 0 && st.singleAll < g.ChunkReplies:
		g.HandleChoice = record.Some(record.ChoiceSingle)
	case st.choices == 0:
		g.HandleChoice = record.Some(record.ChoiceOnly)
	case st.first == st.choices:
		g.HandleChoice = record.Some(record.ChoiceFirst)
	case st.last == st.choices:
		g.HandleChoice = record.Some(record.ChoiceLast)
	case st.largest == st.choices:
		g.HandleChoice = record.Some(record.ChoiceLargest)
	default:
		g.HandleChoice = record.Some(record.ChoiceMixed)
	}
	return g
}
