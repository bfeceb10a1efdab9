package link

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// TCP is a decoded TCP header (RFC 9293 s.3.1) and its payload.
type TCP struct {
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Flags            uint8
	Header           []byte // whole, options included
	Payload          []byte // what was captured
	Length           int    // of the payload on the wire
	Offset           int    // of the payload in the frame
}

// The TCP flags that matter.
const (
	TCPFIN = 0x01
	TCPSYN = 0x02
	TCPRST = 0x04
	TCPPSH = 0x08
	TCPACK = 0x10
)

// Decode reads a segment of which data was captured and length bytes were on the
// wire; offset is where data stands in the frame. It is false when the header is
// cut or lies.
func (s *TCP) Decode(data []byte, length, offset int) bool {
	if len(data) < 20 {
		return false
	}
	size := int(data[12]>>4) * 4
	if size < 20 || size > len(data) || size > length {
		return false
	}
	s.SrcPort, s.DstPort = binary.BigEndian.Uint16(data), binary.BigEndian.Uint16(data[2:])
	s.Seq, s.Ack, s.Flags = binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:]), data[13]
	s.Header, s.Payload, s.Length, s.Offset = data[:size], data[size:min(len(data), length)], length-size, offset+size
	return true
}

// Checksum says whether the checksum of a segment is right; known is false when
// it was cut.
func (s *TCP) Checksum() (right, known bool) {
	if len(s.Payload) < s.Length {
		return false, false
	}
	src, dst := s.Src.As16(), s.Dst.As16()
	a, b := src[:], dst[:]
	if s.Src.Is4() {
		a, b = a[12:], b[12:]
	}
	sum := AddWords(AddWords(0, a), b)
	sum = AddWords(AddWords(sum, s.Header), s.Payload)
	sum += 6 + uint64(len(s.Header)+s.Length) // protocol and length
	return Fold(sum) == 0xffff, true
}

// Unfinished says that a checksum is one that the adapter was to fill in: none, or
// that of the pseudo-header only, as a capture on the sender's own host has it.
func (s *TCP) Unfinished() bool {
	stated := binary.BigEndian.Uint16(s.Header[16:])
	src, dst := s.Src.As16(), s.Dst.As16()
	a, b := src[:], dst[:]
	if s.Src.Is4() {
		a, b = a[12:], b[12:]
	}
	sum := AddWords(AddWords(6, a), b)
	return stated == 0 || stated == Fold(sum) || stated == Fold(sum+uint64(len(s.Header)+s.Length))
}

// Fold makes the 16 bits of an internet checksum (RFC 1071) of a sum.
func Fold(sum uint64) uint16 {
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// AddWords adds 16-bit words up, big-endian, for [Fold]; b is taken to start at an
// even place.
func AddWords(sum uint64, b []byte) uint64 {
	var wide, carry uint64
	for ; len(b) >= 8; b = b[8:] {
		wide, carry = bits.Add64(wide, binary.BigEndian.Uint64(b), carry)
	}
	sum += carry + wide>>48 + wide>>32&0xffff + wide>>16&0xffff + wide&0xffff
	for ; len(b) >= 2; b = b[2:] {
		sum += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint64(b[0]) << 8
	}
	return sum
}
