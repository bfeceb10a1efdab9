package capture

import "encoding/binary"

// order is the byte order of a file. The readers ask it several times a frame, which
// [binary.ByteOrder], an interface, makes calls of.
type order uint8

const (
	unknownOrder order = iota
	littleEndian
	bigEndian
)

// Uint16 reads the first two bytes.
func (o order) Uint16(b []byte) uint16 {
	if o == bigEndian {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

// Uint32 reads the first four.
func (o order) Uint32(b []byte) uint32 {
	if o == bigEndian {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

// Uint64 reads the first eight.
func (o order) Uint64(b []byte) uint64 {
	if o == bigEndian {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}
