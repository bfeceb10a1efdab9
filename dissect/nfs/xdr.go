package nfs

import "encoding/binary"

var be = binary.BigEndian

// Hole is a data item that was taken out of a stream and travelled in a chunk.
type Hole struct {
	// Position is where the item belongs in the unreduced stream, bytes from
	// the start of what is walked; negative when only the protocol knows (Write
	// chunks): the next item that may travel so is then the one, and the walk
	// notes its position here.
	Position int64
	Length   int64 // bytes, without XDR round-up
}

// Stream is a cursor over a piece of XDR from which data items may have been
// taken out. Bounds are checked at every step: after a step that failed, failed
// stays set and everything reads as zero.
type Stream struct {
	data   []byte // what is there, reduced
	at     int
	moved  int64 // bytes, rounded up, of the holes passed
	holes  []Hole
	failed bool
}

// NewStream walks data, with holes in the order of the chunk lists.
func NewStream(data []byte, holes []Hole) Stream { return Stream{data: data, holes: holes} }

// position is where the cursor stands in the unreduced stream.
func (s *Stream) position() int64 { return int64(s.at) + s.moved }

// skip passes n bytes.
func (s *Stream) skip(n int64) {
	if s.failed || n < 0 || n > int64(len(s.data)-s.at) {
		s.failed = true
		return
	}
	s.at += int(n)
}

func (s *Stream) word() uint32 {
	s.skip(4)
	if s.failed {
		return 0
	}
	return be.Uint32(s.data[s.at-4:])
}

// opaque passes a counted array of bytes, which may be a hole; reducible says
// that the protocol allows it to travel in a Write chunk.
func (s *Stream) opaque(reducible bool) {
	n := int64(s.word())
	if s.failed || n == 0 {
		return
	}
	padded := (n + 3) &^ 3
	if len(s.holes) > 0 {
		if h := s.holes[0]; h.Position == s.position() || h.Position < 0 && reducible {
			s.holes[0].Position = s.position()
			s.holes = s.holes[1:]
			s.moved += padded
			return
		}
	}
	s.skip(padded)
}

// layout passes what a description lists, one letter an item:
//
//	w  32 bits              l  64 bits (verifiers, offsets, client IDs)
//	s  stateid, session ID, device ID: 16 bytes
//	o  opaque or string     D  opaque that may travel in a Write chunk
//	b  bitmap               F  attributes: bitmap and opaque
//	c  change_info: 20 bytes
//	t  nfstime: 12 bytes
//	[  ]  counted array of what stands between
//	?  ]  the same, as optional-data: 0 or 1 of it
func (s *Stream) layout(items string) {
	for i := 0; i < len(items) && !s.failed; i++ {
		switch items[i] {
		case 'w':
			s.skip(4)
		case 'l':
			s.skip(8)
		case 's':
			s.skip(16)
		case 't':
			s.skip(12)
		case 'c':
			s.skip(20)
		case 'o':
			s.opaque(false)
		case 'D':
			s.opaque(true)
		case 'b':
			s.skip(int64(s.word()) * 4)
		case 'F':
			s.skip(int64(s.word()) * 4)
			s.opaque(false)
		case '[', '?':
			inner := items[i+1 : closing(items, i)]
			count := s.word()
			if items[i] == '?' && count > 1 {
				s.failed = true
			}
			for ; count > 0 && !s.failed; count-- {
				s.layout(inner)
			}
			i += len(inner) + 1
		}
	}
}

// closing is the index of the bracket that closes the one at i.
func closing(items string, i int) int {
	for depth := 0; i < len(items); i++ {
		switch items[i] {
		case '[', '?':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(items)
}
