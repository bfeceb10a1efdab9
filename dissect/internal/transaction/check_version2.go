package transaction

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/memory"
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
	x.checks.memory.want(h.InvHandle)
	x.call.InvHandle = record.Some(record.Hex32(h.InvHandle))
	if h.InvHandle == 0 || slices.ContainsFunc(x.memory.Segments, func(s segment) bool { return s.Handle == h.InvHandle }) {
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
	wanted, known := x.checks.memory.inv.Get()
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
	persistent           int // of these, the handles that are registered persistently
	foreign              int // of these, the handles that the Reply to another RPC invalidated
	first, last, largest uint32
	mixed                bool // there are Read and Write handles
}

// invalidationStats counts how Replies invalidate handles.
type invalidationStats struct {
	figures              record.InvalidationFigures
	choices              int64 // Replies that invalidate one of several handles
	first, last, largest int64 // of these Replies, the handle that they invalidate
	reads                int64 // of these Replies, those that invalidate a Read handle of a Call that also has Write handles
	singleAll            int64 // Replies to Calls with one handle only
	singleInvalidated    int64 // of these, the Replies that invalidate it
	named, honored       int64 // version 2: Calls with an rdma_inv_handle; Replies that invalidate that handle
	recent               [recentHandles]uint32
	next                 int // index in recent of the oldest handle
}

// recentHandles is the number of exposures after which a handle is taken to be registered anew: the
// key of a memory region that is registered for each RPC comes round after 256 registrations.
const recentHandles = 64

// noteHandle records that a handle is exposed, and reports whether it was exposed recently and not
// invalidated since, so that it is registered persistently.
func (st *invalidationStats) noteHandle(handle uint32) (persistent bool) {
	if handle == 0 || slices.Contains(st.recent[:], handle) {
		return handle != 0
	}
	st.recent[st.next] = handle
	st.next = (st.next + 1) % recentHandles
	return false
}

// forget records that a handle was invalidated.
func (st *invalidationStats) forget(handle uint32) {
	if i := slices.Index(st.recent[:], handle); i >= 0 {
		st.recent[i] = 0
	}
}

// countHandles records which handles a Call exposes.
func countHandles(cs *connState, x *txn) {
	if len(x.memory.Segments) == 0 || x.memory.Incomplete {
		return
	}
	if cs.checks.invalidation == nil {
		cs.checks.invalidation = new(invalidationStats)
	}
	v, st := &x.checks.memory.handles, cs.checks.invalidation
	most := int64(0)
	reads, writes := false, false
	for i := range x.memory.Segments {
		s := &x.memory.Segments[i]
		reads, writes = reads || s.Kind == memory.ReadChunk, writes || s.Kind != memory.ReadChunk
		if !s.HandleSeen {
			v.count++
			if st.noteHandle(s.Handle) {
				s.Persist()
				v.persistent++
			}
		}
		if s.Total > most {
			v.largest, most = s.Handle, s.Total
		}
	}
	v.first, v.last, v.mixed = x.memory.Segments[0].Handle, x.memory.Segments[len(x.memory.Segments)-1].Handle, reads && writes
	if v.mixed {
		st.figures.MixedDirectionCalls++
	}
	if v.persistent > 0 && v.persistent < v.count {
		st.figures.MixedRegistrationCalls++
	}
}

// countForeign counts a Reply that invalidates a handle of another RPC (draft-cel-nfsv4-reminv-design
// s.4.6).
func countForeign(cs *connState, x *txn, handle uint32) {
	n, isRead := 0, false
	for s := cs.exposed[x.side].Latest(handle); s != nil && n < lookAt; s, n = s.Earlier(), n+1 {
		if s.Owner == x || s.HandleSeen {
			continue
		}
		isRead = isRead || s.Kind == memory.ReadChunk
		if s.Invalidate() {
			s.Owner.checks.memory.handles.foreign++
		}
	}
	if isRead {
		cs.checks.invalidation.figures.ForeignReadChunkHandles++
	}
}

// countInvalidation counts how a Reply invalidates.
func countInvalidation(cs *connState, x *txn, m *message) {
	v, st := &x.checks.memory.handles, cs.checks.invalidation
	if st == nil || x.rec.Call == nil {
		return
	}
	handle, invalidates := m.Invalidates.Get()
	own := invalidates && x.memory.Exposes(handle)
	if invalidates {
		st.forget(handle)
	}
	if invalidates && !own {
		countForeign(cs, x, handle)
	}
	if v.count == 0 {
		return
	}
	g := &st.figures
	g.ChunkReplies++
	left := v.count - v.persistent - v.foreign
	if invalidates {
		g.InvalidatingReplies++
	}
	if wanted, known := x.checks.memory.inv.Get(); known && wanted != 0 {
		if st.named++; invalidates && handle == wanted {
			st.honored++
		}
	}
	switch {
	case v.count == 1:
		if st.singleAll++; own {
			st.singleInvalidated++
		}
	case own:
		st.choices++
		for _, is := range []struct {
			n    *int64
			here bool
		}{{&st.first, handle == v.first}, {&st.last, handle == v.last}, {&st.largest, handle == v.largest}, {&st.reads, v.mixed && x.memory.Reads(handle)}} {
			if is.here {
				*is.n++
			}
		}
	}
	if own {
		left--
		if v.foreign > 0 {
			g.MultiHandleInvalidations++
		}
	} else if v.foreign > 1 {
		g.MultiHandleInvalidations++
	}
	g.LocalInvalidations += int64(max(left, 0))
	if v.count-v.persistent > 1 {
		g.MultiHandleReplies++
	}
}

// isFixed reports whether all Replies invalidate the handle that a fixed protocol selects: the only
// handle of a Call, or the Read handle if the Call has Write handles, too
// (draft-cel-nfsv4-reminv-design s.4.3).
func (st *invalidationStats) isFixed() bool {
	return st.reads > 0 && st.reads == st.choices && st.choices+st.singleAll == st.figures.ChunkReplies && st.singleInvalidated == st.singleAll
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
	case st.isFixed():
		g.Style = record.FixedProtocol
	case g.InvalidatingReplies > 0 || g.ForeignReadChunkHandles > 0:
		g.Style = record.RespondersChoice
	}
	switch {
	case g.Style != record.RespondersChoice || g.InvalidatingReplies == 0:
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
