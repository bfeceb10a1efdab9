package transaction

import (
	"fmt"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/internal/memory"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Exposed memory: the rules about the segments of a Call, and about Read chunks that nobody reads.

// checkExposed reports memory that a Call exposes although an outstanding Call, or an earlier segment
// of the Call, exposes it too. It marks all Calls that share memory.
func checkExposed(c checker) {
	x := c.x
	if x.memory.Incomplete {
		return
	}
	for i := range x.memory.Segments {
		s := &x.memory.Segments[i]
		n := 0
		for other := s.Earlier(); other != nil && n < lookAt; other, n = other.Earlier(), n+1 {
			if !s.Overlaps(other) {
				continue
			}
			if !x.checks.memory.shared {
				c.exposedTwice(s, other)
			}
			x.checks.memory.share()
			other.Owner.checks.memory.share()
		}
	}
}

// exposedTwice reports that two segments expose the same memory.
func (c checker) exposedTwice(s, other *segment) {
	r, owner := rule.MemoryExposedTwice, fmt.Sprintf("the Call in flight with XID 0x%08x", uint32(other.Owner.rec.XID))
	how := ""
	switch {
	case isPersistent(c, s.Handle):
		if !c.cs.checks.persistentReported.First() {
			return
		}
		r, how = rule.PersistentlyExposed, "; the handle is registered persistently, because an earlier Call exposed it and it was not invalidated"
	case other.Owner == c.x:
		r, owner = rule.ExposedTwiceInCall, "another segment of this Call"
	}
	c.report(r, "the %d bytes of handle 0x%08x at 0x%016x overlap %d bytes at 0x%016x, which %s exposes%s", s.Length, s.Handle, s.Offset, other.Length, other.Offset, owner, how)
}

// isPersistent reports whether a handle is registered persistently: whether a recent Call that has
// ended exposed it, and its Reply did not invalidate it.
func isPersistent(c checker, handle uint32) bool {
	n := 0
	for x := c.cs.finished.last; x != nil && n < lookAt; x, n = x.prev, n+1 {
		if i, invalidates := x.invalidation.Get(); x.side == c.x.side && x.memory.Exposes(handle) && !(invalidates && uint32(i.Handle) == handle) {
			return true
		}
	}
	return false
}

// checkEmptySegments reports a segment without bytes. It exposes nothing, so it harms nobody.
func checkEmptySegments(c checker) {
	if c.x.memory.Incomplete || c.x.checks.header.broken == rule.NoMsgWithoutChunk { // of an empty chunk, that says more
		return
	}
	for i := range c.x.memory.Segments {
		if s := &c.x.memory.Segments[i]; s.Length == 0 && c.cs.table.emptySegment.First() {
			c.report(rule.EmptySegment, "harmless, and reported once for each capture: segment %d of %s has handle 0x%08x, but no bytes", s.Index, chunkOf(s), s.Handle)
		}
	}
}

// chunkOf returns the name of the chunk that contains a segment.
func chunkOf(s *segment) string {
	if s.Kind == memory.ReadChunk {
		return fmt.Sprintf("the Read chunk at Position %d", s.Position)
	}
	return chunkName(s.Kind, int(s.Chunk))
}

// checkAllRead reports a Reply that says that the RPC succeeded although a Read chunk of its Call was
// not read to its end. The responder may leave the XDR round-up at the end of a chunk. It may also
// answer a retransmitted Call from memory. A Read that is not complete yet is checked by
// checkLateRead.
func checkAllRead(c checker) {
	x := c.x
	broken := x.checks.header.callBroke
	if x.rec.Call == nil || x.rec.RetransmitOf != 0 || x.checks.memory.openReads > 0 || x.checks.memory.shared || broken != nil && broken.Severity == record.Error {
		return
	}
	for i := range x.memory.Segments {
		s := &x.memory.Segments[i]
		if s.Kind != memory.ReadChunk || s.Index != 0 || !provesReading(x, s.Position) {
			continue
		}
		length, moved, known := x.memory.Read(int(s.Chunk))
		if !known {
			return
		}
		if unread := length - moved; unread > 3 || unread > 0 && s.Position == 0 {
			if moved == 0 { // the responder may have the Reply from an earlier connection, which the capture lacks
				c = c.unattributed()
			}
			c.report(rule.ReadChunkNotRead, "the Reply says that the RPC succeeded, but the responder read only %d of the %d bytes in the Read chunk at Position %d", moved, length, s.Position)
			return
		}
	}
}

// provesReading reports whether the Reply proves that the responder had the Read chunk at a Position:
// the whole Call is at Position 0, and without the other chunks a Call cannot succeed.
func provesReading(x *txn, position uint32) bool {
	if x.rpcStatus != record.Some("SUCCESS") {
		return false
	}
	status, known := x.nfsStatus.Get()
	return position == 0 || known && strings.HasSuffix(status, "_OK")
}
