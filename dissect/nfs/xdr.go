package nfs

import (
	"encoding/binary"
	"slices"
)

var be = binary.BigEndian

// Hole is a data item that was removed from a stream and transferred in a chunk.
type Hole struct {
	// Position is the offset of the item in the unreduced stream, in bytes from the
	// start of the decoded data. It is negative if only the protocol determines it
	// (Write chunks): then the hole is the next item that may be reduced, and
	// decoding stores its position here.
	Position int64
	Length   int64 // bytes, without XDR round-up; 0 for a Write chunk that was not used
}

// Stream is a cursor over a piece of XDR from which data items may have been
// removed. Bounds are checked at every step. After a step failed, failed stays set
// and all reads return zero.
type Stream struct {
	data   []byte // the reduced stream
	at     int
	moved  int64 // total length of the holes before the cursor: bytes, each rounded up
	holes  []Hole
	next   int  // index of the next hole
	inline uint // bit n is set if the nth item that may be reduced is in the stream, although a hole is left
	sealed bool // the cursor is inside of an opaque, which cannot contain holes

	failed bool
	reason reason
	need   int64 // truncated: bytes that the step needed; malformed: the invalid word
	pad    int64 // truncated: how many of these are XDR padding
	field  *item // the innermost item that failed
}

// reason is the cause of a failure.
type reason uint8

const (
	truncated reason = iota // fewer bytes are left than the step needs
	malformed               // a word has a value that the protocol does not define
)

// NewStream returns a Stream at the start of data. The holes must be in the order of
// the chunk lists.
func NewStream(data []byte, holes []Hole) Stream { return Stream{data: data, holes: holes} }

// position returns the offset of the cursor in the unreduced stream.
func (s *Stream) position() int64 { return int64(s.at) + s.moved }

// left returns the number of bytes after the cursor.
func (s *Stream) left() int64 { return int64(len(s.data) - s.at) }

// skip skips n bytes.
func (s *Stream) skip(n int64) {
	if s.failed || n < 0 || n > int64(len(s.data)-s.at) {
		s.fail(truncated, n)
		return
	}
	s.at += int(n)
}

func (s *Stream) fail(why reason, need int64) {
	if !s.failed {
		s.failed, s.reason, s.need = true, why, need
	}
}

func (s *Stream) word() uint32 {
	if s.failed || len(s.data)-s.at < 4 {
		s.fail(truncated, 4)
		return 0
	}
	v := be.Uint32(s.data[s.at:])
	s.at += 4
	return v
}

// flag reads the word that precedes optional-data, and reports whether data follows.
func (s *Stream) flag() bool {
	v := s.word()
	if v > 1 {
		s.at -= 4
		s.fail(malformed, int64(v))
	}
	return v == 1 && !s.failed
}

// count reads the count of an array whose elements have at least least bytes each. A
// count that needs more bytes than are left fails before memory is allocated for it.
func (s *Stream) count(least int64) int64 {
	n := int64(s.word())
	if n > s.left()/least {
		s.fail(truncated, n*least)
	}
	if s.failed {
		return 0
	}
	return n
}

// opaque skips a counted array of bytes. n is its count; the array and its padding end
// at the cursor. If it was reduced, hole is the index of its hole, else -1. reducible
// means that a Write chunk can carry the item.
func (s *Stream) opaque(reducible bool) (n int64, hole int) {
	n = int64(s.word())
	if reducible && s.next < len(s.holes) && !s.sealed {
		stays := s.inline&1 != 0
		s.inline >>= 1
		if h := &s.holes[s.next]; h.Position < 0 && (stays || h.Length == 0) {
			if !stays {
				s.next++ // the chunk was not used, so the item is in the stream
			}
			s.skip((n + 3) &^ 3)
			return n, -1
		}
	}
	padded := (n + 3) &^ 3
	if s.next < len(s.holes) && s.takeHole(padded, reducible && n > 0) {
		return n, s.next - 1
	}
	if s.skip(padded); s.failed {
		s.pad = padded - n
	}
	return n, -1
}

// takeHole consumes the next hole if it is at the cursor.
func (s *Stream) takeHole(padded int64, reducible bool) bool {
	if s.sealed {
		return false
	}
	at := s.position()
	for s.next < len(s.holes)-1 && s.holes[s.next].Position >= 0 && s.holes[s.next].Position < at {
		s.next++ // no item begins at the hole's position
	}
	h := &s.holes[s.next]
	if h.Position != at && (h.Position >= 0 || !reducible) {
		return false
	}
	h.Position = at
	s.next++
	s.moved += padded
	return true
}

// skipSteps skips the data that steps describe, without adding values to m.
func (s *Stream) skipSteps(steps []step, m *Message) {
	for i := range steps {
		st := &steps[i]
		switch st.shape {
		case fixed:
			if s.skip(st.size); st.bound && !s.failed {
				m.bounds(number(s.preceding(st.size)))
			}
		case variable:
			at := s.position()
			if n, hole := s.opaque(st.item.mayBeReduced()); !s.failed {
				m.item(st.item, n, hole, at, -1)
			}
		case bitmap:
			s.skip(int64(s.word()) * 4)
		case union:
			s.skipUnion(st, m)
		case optional:
			if s.flag() {
				s.skipSteps(st.inner, m)
			}
		case array:
			for n := s.count(st.least); n > 0 && !s.failed; n-- {
				s.skipSteps(st.inner, m)
			}
		case list:
			for s.flag() {
				s.skipSteps(st.inner, m)
			}
		}
		if s.failed {
			return
		}
	}
}

func (s *Stream) skipUnion(st *step, m *Message) {
	v := s.word()
	if s.failed {
		return
	}
	for i := range st.arms {
		a := &st.arms[i]
		if a.values == nil || slices.Contains(a.values, v) {
			s.skipSteps(a.steps, m)
			return
		}
	}
	s.at -= 4
	s.fail(malformed, int64(v))
}

// number returns the big-endian number in 4 or 8 bytes.
func number(data []byte) uint64 {
	if len(data) == 8 {
		return be.Uint64(data)
	}
	return uint64(be.Uint32(data))
}

// walk decodes the items and adds their values to m.
func (s *Stream) walk(items []item, m *Message) {
	for i := range items {
		it := &items[i]
		if s.item(it, m); s.failed {
			if s.field == nil {
				s.field = it
			}
			return
		}
	}
}

func (s *Stream) item(it *item, m *Message) {
	at := s.position()
	switch it.shape {
	case fixed:
		if s.skip(it.size); s.failed {
			return
		}
		data := s.data[s.at-int(it.size) : s.at : s.at]
		m.fixed(it, data, at)
		if it.arms == nil {
			return
		}
		v := be.Uint32(data)
		items, known := it.arm(v)
		if !known {
			s.at -= 4
			s.fail(malformed, int64(v))
			return
		}
		s.walk(items, m)
	case variable:
		if n, hole := s.opaque(it.mayBeReduced()); !s.failed {
			m.variable(it, n, hole, at)
		}
	case bitmap:
		words := s.count(4)
		if s.skip(words * 4); !s.failed {
			m.add(Value{Name: it.name, Kind: it.kind, Bytes: s.preceding(words * 4), At: at, Len: s.position() - at, item: it})
		}
	case attributes4:
		m.attributes(it)
	case group:
		g := m.open(it, Group)
		s.walk(it.inner, m)
		m.close(g, 0)
	case optional:
		if s.flag() {
			s.walk(it.inner, m)
		}
	case array:
		g, n := m.open(it, List), s.count(it.inner[0].least)
		for i := int64(0); i < n && !s.failed; i++ {
			m.element(it, i)
		}
		m.close(g, n)
	case list:
		g, n := m.open(it, List), int64(0)
		for ; s.flag(); n++ {
			m.element(it, n)
		}
		m.close(g, n)
	}
}

// preceding returns the n bytes before the cursor.
func (s *Stream) preceding(n int64) []byte { return s.data[s.at-int(n) : s.at : s.at] }
