package transaction

import (
	"maps"
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/internal/memory"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Chunks, the memory that they expose, and its invalidation (RFC 8166 s.3.4, RFC 8797 s.4.1).

// memoryRules is what the rules about memory remember of a transaction.
type memoryRules struct {
	openReads int32              // RDMA Reads of its memory that are not complete
	shared    bool               // another segment exposes the same bytes, so it is unknown which of them an operation is for
	lateRead  rule.Once          // Reads were incomplete at its Reply
	exceeds   rule.Once          // an operation exceeds its memory
	inv       record.Opt[uint32] // rdma_inv_handle of its Call
	handles   handles
}

// share notes that another segment exposes the same bytes.
func (r *memoryRules) share() { r.shared = true }

// want notes the rdma_inv_handle of the Call.
func (r *memoryRules) want(handle uint32) { r.inv = record.Some(handle) }

// checkChunks compares the chunk lists of a Reply with those of its Call.
func checkChunks(c checker, h *rpcrdma.Header) {
	x := c.x
	if c.hasNoChunks(h) && !h.HasChunks() { // whatever its Call has
		return
	}
	copied := true
	if len(h.WriteEnds) != x.memory.Writes {
		copied = false
		c.report(rule.WriteListNotCopied, "the Call offered %d Write chunks, but the Reply returns %d", x.memory.Writes, len(h.WriteEnds))
	} else {
		for i := range h.WriteEnds {
			if !c.checkCopied(rule.WriteListNotCopied, memory.WriteChunk, i, h.WriteChunk(i)) {
				copied = false
				break
			}
		}
	}
	if h.HasReply != x.memory.ReplyChunk {
		copied = false
		if x.memory.ReplyChunk {
			c.report(rule.ReplyChunkNotCopied, "the Call offered a Reply chunk, but the Reply returns none")
		} else {
			c.report(rule.ReplyChunkNotCopied, "the Reply returns a Reply chunk, but the Call offered none")
		}
	} else if h.HasReply && !c.checkCopied(rule.ReplyChunkNotCopied, memory.ReplyChunk, 0, h.Reply) {
		copied = false
	}
	if used := rpcrdma.Length(h.Reply); used > 0 && h.Proc == rpcrdma.Msg && x.memory.ReplyChunk {
		c.report(rule.UnusedReplyChunkLength, "the Reply is an RDMA_MSG, so the Reply chunk is unused, but the Reply returns %d bytes in it", used)
	}
	if !copied {
		return
	}
	short := (*segment)(nil) // first segment of the current chunk that returns fewer bytes than it has
	outOfOrder := false
	for i := range x.memory.Segments {
		s := &x.memory.Segments[i]
		returned, known := s.Returned.Get()
		if !known {
			continue
		}
		if s.Index == 0 {
			short = nil
		}
		if short != nil && returned > 0 && !outOfOrder {
			outOfOrder = true
			c.report(rule.FilledOutOfOrder, "segment 0x%08x returns %d bytes, although segment 0x%08x before it in the chunk was filled with only %d of %d bytes", s.Handle, returned, short.Handle, short.Returned.Or(0), short.Length)
		}
		if returned < s.Length && short == nil {
			short = s
		}
		if returned > s.Length {
			c.report(rule.ReturnedTooLong, "segment 0x%08x has %d bytes, but the Reply returns %d", s.Handle, s.Length, returned)
		}
		if moved := s.Transferred().Moved(); moved < int64(min(returned, s.Length)) && !x.checks.memory.shared {
			c.report(rule.ReturnedNotSeen, "the Reply returns %[2]d bytes in segment 0x%08[1]x, but the capture shows RDMA Writes of only %[3]d bytes there", s.Handle, returned, moved)
		}
	}
}

// checkCopied reports whether a chunk of a Reply equals that of the Call except for its lengths. If
// it does not, checkCopied adds a finding.
func (c checker) checkCopied(r *rule.Rule, kind memory.Kind, chunk int, back []rpcrdma.Segment) bool {
	segments := c.x.memory.Chunk(kind, chunk)
	for i := range min(len(segments), len(back)) {
		if s, b := &segments[i], &back[i]; b.Handle != s.Handle || b.Offset != s.Offset {
			c.report(r, "segment %d of %s is 0x%08x at 0x%016x in the Call, but 0x%08x at 0x%016x in the Reply", i, chunkName(kind, chunk), s.Handle, s.Offset, b.Handle, b.Offset)
			return false
		}
	}
	if len(segments) != len(back) {
		c.report(r, "%s has %d segments in the Call, but %d in the Reply", chunkName(kind, chunk), len(segments), len(back))
		return false
	}
	return true
}

// chunkName returns the name of a Write chunk or of the Reply chunk.
func chunkName(kind memory.Kind, chunk int) string {
	if kind == memory.ReplyChunk {
		return "the Reply chunk"
	}
	return "Write chunk " + strconv.Itoa(chunk)
}

// checkInvalidation checks a Send With Invalidate: whether it was negotiated, and whether the Call
// exposed the handle.
func checkInvalidation(c checker, m *message, withoutCall bool) {
	handle, invalidates := m.Invalidates.Get()
	if !invalidates {
		return
	}
	x := c.x
	if !m.header.IsDraft {
		checkNegotiated(c, handle)
	}
	other := otherOwner(c.cs, x, handle)
	if other != nil && x.checks.memory.inv == record.Some(handle) {
		return // the requester asked for it in rdma_inv_handle, so it answers for the other Call
	}
	if other != nil && c.cs.link.Setup().Overtaken == record.Some(m.side) { // the requester may have sent the other Call after it had this message
		c.cs.link.Disorder()
	}
	switch i, _ := x.invalidation.Get(); {
	case x.memory.Incomplete:
	case !withoutCall && !i.Chunk.Known() && x.rec.Call != nil:
		c.report(rule.InvalidatedUnexposedHandle, "Send With Invalidate of handle 0x%08x, which this Call did not expose", handle)
	case withoutCall && other != nil:
		c.report(rule.InvalidatedForeignHandle, "Send With Invalidate of handle 0x%08x, which the Call in flight with XID 0x%08x exposes, in a message that answers no Call in flight", handle, uint32(other.rec.XID))
	case other != nil:
		c.report(rule.InvalidatedForeignHandle, "Send With Invalidate of handle 0x%08x, which the Call in flight with XID 0x%08x also exposes", handle, uint32(other.rec.XID))
	}
	noteInvalidated(c, m)
}

// otherOwner returns another outstanding Call that exposes a handle, or nil.
func otherOwner(cs *connState, x *txn, handle uint32) *txn {
	n := 0
	for s := cs.exposed[x.side].Latest(handle); s != nil && n < lookAt; s, n = s.Earlier(), n+1 {
		if s.Owner != x && s.Owner.state == outstanding {
			return s.Owner
		}
	}
	return nil
}

// maxInvalidatedHandles is the maximum number of invalidated handles that are remembered for a
// side.
const maxInvalidatedHandles = 1 << 14

// noteInvalidated records that a Send invalidates a handle, and reports a handle that is invalid
// already.
func noteInvalidated(c checker, m *message) {
	handle := m.Invalidates.Or(0)
	owner := m.side.Other()
	if c.cs.checks.invalidatedHandles[owner].has(handle) {
		c.report(rule.InvalidatedHandleUsed, "Send With Invalidate of handle 0x%08x, which was already invalidated and has not been exposed since", handle)
	}
	c.cs.checks.invalidatedHandles[owner].add(handle)
}

// invalidated contains the handles of a side that were invalidated and not exposed since, and the first operation that used each
// of them in spite of that.
type invalidated struct {
	handles map[uint32]struct{}
	used    map[uint32]record.Stamp
}

// has reports whether a handle is invalid.
func (i *invalidated) has(handle uint32) bool {
	_, is := i.handles[handle]
	return is
}

// add adds a handle.
func (i *invalidated) add(handle uint32) {
	if i.handles == nil || len(i.handles) >= maxInvalidatedHandles {
		*i = invalidated{handles: map[uint32]struct{}{}}
	}
	delete(i.used, handle)
	i.handles[handle] = struct{}{}
}

// expose removes a handle.
func (i *invalidated) expose(handle uint32) {
	delete(i.handles, handle)
	delete(i.used, handle)
}

// join adds the handles of another connection.
func (i *invalidated) join(o *invalidated) {
	if i.handles == nil {
		*i = *o
		return
	}
	maps.Copy(i.handles, o.handles)
	for handle, at := range o.used {
		i.use(handle, at)
	}
}

// use notes an operation that uses a handle, and reports whether the handle is invalid.
func (i *invalidated) use(handle uint32, at record.Stamp) bool {
	if !i.has(handle) {
		return false
	}
	if _, again := i.used[handle]; !again {
		if i.used == nil {
			i.used = map[uint32]record.Stamp{}
		}
		i.used[handle] = at
	}
	return true
}

// refusesInvalid reports whether a fatal refusal is about an RDMA operation that used an invalidated handle, so that its
// sender is at fault.
func refusesInvalid(cs *connState, r *rdma.Refusal) bool {
	handle, named := r.Handle.Get()
	used, was := cs.checks.invalidatedHandles[r.By].used[handle]
	return named && was && (r.Op == nil || !r.Op.First.Before(used)) &&
		rule.InvalidatedHandleUsed.Needs.Without(rule.Closing).Blocks(cs.sides(record.Some(r.By.Other()))) == 0
}

// noteExposed records that the handles of a Call are exposed, and so are valid again.
func noteExposed(cs *connState, x *txn) {
	invalid := &cs.checks.invalidatedHandles[x.side]
	if len(invalid.handles) == 0 {
		return
	}
	for i := range x.memory.Segments {
		invalid.expose(x.memory.Segments[i].Handle)
	}
}

// checkNegotiated checks whether both sides announced support for remote invalidation. If only the
// requester did, nothing can fail, so the finding is only a note.
func checkNegotiated(c checker, handle uint32) {
	if remoteInvalidation(c.cs).Or(true) || !c.cs.agreed.invalidationReported.First() {
		return
	}
	if supportsInvalidation(c.cs, c.x.side) {
		if c.cs.table.unannounced.First() {
			c.unattributed().report(rule.InvalidationUnannounced, "Usual for Linux servers: Send With Invalidate of 0x%08x, although only the requester set the R bit in its private data", handle)
		}
		return
	}
	c.report(rule.InvalidationNegotiated, "Send With Invalidate of 0x%08x, although the requester did not set the R bit in its private data, and so need not support it", handle)
}

// checkTarget compares the first packet of an RDMA Read or Write with the exposed memory. s is the
// segment that it names, or nil. checkTarget returns the segment that the operation is meant for.
func checkTarget(cs *connState, o *rdma.Operation, m target, s *segment, exact bool) *segment {
	owner := o.Side.Other()
	where := rdma.Where{At: o.First, AtFault: record.Some(o.Side)}
	var x *txn
	if s != nil {
		x = s.Owner
		where.XID, where.Transaction = record.Some(uint32(x.rec.XID)), x.rec.ID
	}
	if cs.checks.invalidatedHandles[owner].use(o.Handle, o.First) {
		cs.report(violation{rule.InvalidatedHandleUsed, x, where, m}, "%v of %d bytes at 0x%016x uses handle 0x%08x, which was already invalidated and has not been exposed since", o.Kind, m.Length, m.Offset, m.Handle)
	}
	switch {
	case s == nil && !exact:
		cs.report(violation{rule.OutsideExposedMemory, nil, where, m}, "%v of %d bytes at 0x%016x uses handle 0x%08x, which no Call in flight exposes", o.Kind, m.Length, m.Offset, m.Handle)
	case s != nil && !exact && !x.memory.Reaches(s, m):
		if !o.Announced {
			x.checks.memory.exceeds.First() // what follows of the operation is no second finding
		}
		cs.report(violation{rule.OutsideExposedMemory, x, where, m}, "%v of %d bytes at 0x%016x exceeds the memory of handle 0x%08x, which has %d bytes at 0x%016x", o.Kind, m.Length, m.Offset, m.Handle, s.Length, s.Offset)
	case s != nil:
		if right := matchingSegment(cs, o, m, s, exact); mayAccess(o.Kind, s) || right != s {
			return right
		}
		cs.report(violation{rule: rule.WrongDirection, x: x, where: where}, "%v of handle 0x%08x, which the Call offers in its %s", o.Kind, m.Handle, listNames[s.Kind])
	}
	return s
}

// exposedSince reports whether a Call of a side that came after a transaction exposes a whole range of memory.
func exposedSince(cs *connState, s rdma.Side, m target, after int64) bool {
	n := 0
	for have := cs.exposed[s].Latest(m.Handle); have != nil; have, n = have.Earlier(), n+1 {
		if n == lookAt || have.Owner.rec.ID > after && have.Holds(m) { // too many segments have the handle to search them all
			return true
		}
	}
	return false
}

var listNames = [...]string{"Read list, only for RDMA Reads", "Write list, only for RDMA Writes", "Reply chunk, only for RDMA Writes"}

// mayAccess reports whether operations of a kind may access the list of a segment.
func mayAccess(k rdma.Kind, s *segment) bool {
	return k != rdma.Atomic && (k == rdma.Read) == (s.Kind == memory.ReadChunk)
}

// matchingSegment returns the segment that an operation is meant for if several segments share a
// handle and memory: the one that is offered for this kind of operation.
func matchingSegment(cs *connState, o *rdma.Operation, m target, s *segment, exact bool) *segment {
	if s == nil || !exact || mayAccess(o.Kind, s) {
		return s
	}
	n := 0
	for other := cs.exposed[o.Side.Other()].Latest(m.Handle); other != nil && n < lookAt; other, n = other.Earlier(), n+1 {
		if mayAccess(o.Kind, other) && other.Holds(m) {
			return other
		}
	}
	return s
}

// checkLateRead reports a Reply that was sent before an RDMA Read of its Call was complete. That the data was captured after
// the Reply proves nothing, because a capture may show one direction later than the other one. The requester's TCP
// segment with the data proves it if it acknowledges the Reply, and so does the responder if it requests the data again
// after the Reply.
func checkLateRead(cs *connState, o *rdma.Operation, x *txn) {
	if o.Kind != rdma.Read || x.state == outstanding || !x.rec.Status.Replied() || x.checks.memory.shared || o.Last.Time < x.answer.LastTime {
		return
	}
	if early, _ := o.Disorder(); early.Packet != 0 { // the requester drops such a response, so its packets were captured in another order
		return
	}
	reply := record.Stamp{Time: x.answer.LastTime, Packet: x.answer.LastPacket}
	if !o.Follows(x.tag(partReply)) && !reply.Before(o.RequestedAgain()) || !x.checks.memory.lateRead.First() {
		return
	}
	c := x.checker(reply).attributedTo(x.side.Other())
	c.report(rule.ReplyBeforeReads, "the Reply was sent before the RDMA Read of handle 0x%08x, which packet %s began, had received all data", o.Handle, record.PacketText(o.First.Packet))
}

// checkPrivate checks the private data of a side.
func checkPrivate(cs *connState, s rdma.Side, p rpcrdma.PrivateData, at record.Stamp) {
	if p.Reserved != 0 {
		cs.report(violation{rule: rule.PrivateDataReserved, where: rdma.Where{At: at, AtFault: record.Some(s)}}, "the reserved bits 0x%02x of the private data are set", p.Reserved<<1)
	}
}

// checkSize compares the length of a Send with the inline threshold.
func checkSize(c checker, m *message) {
	if limit := int64(inlineThreshold(c.cs, m.side)); c.cs.negotiated() && m.whole && m.Length > limit && !m.unknownVersion() {
		c.report(rule.InlineThresholdExceeded, "a Send has %d bytes, but the inline threshold is %d", m.Length, limit)
	}
}

// checkExceeds reports, once, that an operation without an announced length continues after the end
// of the memory in which it began. checkTarget has reported one that began outside of it.
func checkExceeds(cs *connState, x *txn, s *segment, o *rdma.Operation) {
	if o.Announced || x.state != outstanding || !x.checks.memory.exceeds.First() {
		return
	}
	x.checker(o.Last).attributedTo(o.Side).report(rule.OutsideExposedMemory, "%v from 0x%016x on exceeds the memory of handle 0x%08x, which has %d bytes at 0x%016x", o.Kind, o.Offset, s.Handle, s.Length, s.Offset)
}
