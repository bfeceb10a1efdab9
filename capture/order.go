package capture

import "encoding/binary"

// order is the byte order of a file. The readers use it several times per frame. [binary.ByteOrder]
// is an interface, so its methods could not be inlined.
type order uint8

const (
	unknownOrder order = iota
	littleEndian
	bigEndian
)

// Uint16 decodes the first two bytes of b.
func (o order) Uint16(b []byte) uint16 {
	if o == bigEndian {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

// Uint32 decodes the first four bytes of b.
func (o order) Uint32(b []byte) uint32 {
	if o == bigEndian {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

// Uint64 decodes the first eight bytes of b.
func (o order) Uint64(b []byte) uint64 {
	if o == bigEndian {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}
