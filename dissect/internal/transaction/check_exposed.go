package transaction

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Exposed memory: the rules about the segments of a Call, before anything moves.

// checkExposed reports memory that a Call exposes although an outstanding Call, or an earlier segment
// of the Call, exposes it too. It marks all Calls that share memory.
func checkExposed(c checker) {
	x := c.x
	for i := range x.segments {
		s := &x.segments[i]
		n := 0
		for other := s.next; other != nil && n < lookAt; other, n = other.next, n+1 {
			if !s.overlaps(other) {
				continue
			}
			if !x.checks.sharesMemory {
				c.exposedTwice(s, other)
			}
			x.checks.sharesMemory, other.txn.checks.sharesMemory = true, true
		}
	}
}

// exposedTwice reports that two segments expose the same memory.
func (c checker) exposedTwice(s, other *segment) {
	r, owner := rule.MemoryExposedTwice, fmt.Sprintf("the outstanding Call with XID 0x%08x", uint32(other.txn.rec.XID))
	how := ""
	switch {
	case isPersistent(c, s.handle):
		if c.cs.checks.persistentReported {
			return
		}
		c.cs.checks.persistentReported = true
		r, how = rule.PersistentlyExposed, "; the handle is registered persistently, because an earlier Call exposed it and it was not invalidated"
	case other.txn == c.x:
		r, owner = rule.ExposedTwiceInCall, "another segment of this Call"
	}
	c.report(r, "the %d bytes of handle 0x%08x at 0x%016x overlap %d bytes at 0x%016x, which %s exposes%s", s.length, s.handle, s.offset, other.length, other.offset, owner, how)
}

// overlaps reports whether two segments of one handle have a byte in common.
func (s *segment) overlaps(other *segment) bool {
	return s.length > 0 && other.length > 0 && (other.offset-s.offset < uint64(s.length) || s.offset-other.offset < uint64(other.length))
}

// isPersistent reports whether a handle is registered persistently: whether a recent Call that has
// ended exposed it, and its Reply did not invalidate it.
func isPersistent(c checker, handle uint32) bool {
	n := 0
	for x := c.cs.finished.last; x != nil && n < lookAt; x, n = x.prev, n+1 {
		if i, invalidates := x.invalidation.Get(); x.side == c.x.side && x.exposes(handle) && !(invalidates && uint32(i.Handle) == handle) {
			return true
		}
	}
	return false
}
