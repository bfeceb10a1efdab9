package nfs

import (
	"encoding/binary"
	"slices"
)

var be = binary.BigEndian

// Hole is a data item that was taken out of a stream and travelled in a chunk.
type Hole struct {
	// Position is where the item belongs in the unreduced stream, bytes from
	// the start of what is walked; negative when only the protocol knows (Write
	// chunks): the next item that may travel so is then the one, and the walk
	// notes its position here.
	Position int64
	Length   int64 // bytes, without XDR round-up; 0 of a Write chunk that was not used
}

// Stream is a cursor over a piece of XDR from which data items may have been
// taken out. Bounds are checked at every step: after a step that failed, failed
// stays set and everything reads as zero.
type Stream struct {
	data   []byte // what is there, reduced
	at     int
	moved  int64 // bytes, rounded up, of the holes passed
	holes  []Hole
	next   int  // the hole that is looked for
	sealed bool // inside of an opaque: nothing was taken out of it

	failed bool
	reason reason
	need   int64 // bytes that the step needed, or the word that nothing is known for
	field  *item // the innermost one that failed
}

// reason says why a walk stopped.
type reason uint8

const (
	truncated reason = iota // fewer bytes are left than the step needs
	malformed               // a word has a value that the protocol does not know
)

// NewStream walks data, with holes in the order of the chunk lists.
func NewStream(data []byte, holes []Hole) Stream { return Stream{data: data, holes: holes} }

// position is where the cursor stands in the unreduced stream.
func (s *Stream) position() int64 { return int64(s.at) + s.moved }

// left is how many bytes are there behind the cursor.
func (s *Stream) left() int64 { return int64(len(s.data) - s.at) }

// skip passes n bytes.
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

// flag passes the word that says whether optional-data follows.
func (s *Stream) flag() bool {
	v := s.word()
	if v > 1 {
		s.at -= 4
		s.fail(malformed, int64(v))
	}
	return v == 1 && !s.failed
}

// count passes the count of an array whose elements take at least so many bytes
// each: one that needs more than is left fails before anything is done for it.
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

// opaque passes a counted array of bytes, which may be a hole: then hole is the
// index of that, and -1 otherwise. n is the count of bytes, which end, with their
// padding, at the cursor. reducible says that a Write chunk can carry the item.
func (s *Stream) opaque(reducible bool) (n int64, hole int) {
	n = int64(s.word())
	if reducible && s.next < len(s.holes) && !s.sealed {
		if h := &s.holes[s.next]; h.Position < 0 && h.Length == 0 {
			s.next++ // the chunk was not used, so that the item is here
			s.skip((n + 3) &^ 3)
			return n, -1
		}
	}
	if n == 0 {
		return 0, -1
	}
	padded := (n + 3) &^ 3
	if s.next < len(s.holes) && s.takeHole(padded, reducible) {
		return n, s.next - 1
	}
	s.skip(padded)
	return n, -1
}

// takeHole takes the next hole if it is what the cursor stands before.
func (s *Stream) takeHole(padded int64, reducible bool) bool {
	if s.sealed {
		return false
	}
	at := s.position()
	for s.next < len(s.holes)-1 && s.holes[s.next].Position >= 0 && s.holes[s.next].Position < at {
		s.next++ // no item begins there
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

// over passes what steps describe, and makes no values of it in m.
func (s *Stream) over(steps []step, m *Message) {
	for i := range steps {
		st := &steps[i]
		switch st.shape {
		case fixed:
			if s.skip(st.size); st.bound && !s.failed {
				m.bounds(number(s.behind(st.size)))
			}
		case variable:
			at := s.position()
			if n, hole := s.opaque(st.item.travels()); !s.failed {
				m.item(st.item, n, hole, at, -1)
			}
		case bitmap:
			s.skip(int64(s.word()) * 4)
		case union:
			s.overUnion(st, m)
		case optional:
			if s.flag() {
				s.over(st.inner, m)
			}
		case array:
			for n := s.count(st.least); n > 0 && !s.failed; n-- {
				s.over(st.inner, m)
			}
		case list:
			for s.flag() {
				s.over(st.inner, m)
			}
		}
		if s.failed {
			return
		}
	}
}

func (s *Stream) overUnion(st *step, m *Message) {
	v := s.word()
	if s.failed {
		return
	}
	for i := range st.arms {
		a := &st.arms[i]
		if a.values == nil || slices.Contains(a.values, v) {
			s.over(a.steps, m)
			return
		}
	}
	s.at -= 4
	s.fail(malformed, int64(v))
}

// number is what stands in 4 or 8 bytes.
func number(data []byte) uint64 {
	if len(data) == 8 {
		return be.Uint64(data)
	}
	return uint64(be.Uint32(data))
}

// walk passes what items describe, and makes values of them in m.
func (s *Stream) walk(items []item, m *Message) {
	for i := range items {
		it := &items[i]
		if s.pass(it, m); s.failed {
			if s.field == nil {
				s.field = it
			}
			return
		}
	}
}

func (s *Stream) pass(it *item, m *Message) {
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
		if n, hole := s.opaque(it.travels()); !s.failed {
			m.variable(it, n, hole, at)
		}
	case bitmap:
		words := s.count(4)
		if s.skip(words * 4); !s.failed {
			m.add(Value{Name: it.name, Kind: it.kind, Bytes: s.behind(words * 4), At: at, Len: s.position() - at, item: it})
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

// behind are the n bytes that end at the cursor.
func (s *Stream) behind(n int64) []byte { return s.data[s.at-int(n) : s.at : s.at] }
