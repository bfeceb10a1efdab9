package link

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"net/netip"
)

// TCP is a decoded TCP header (RFC 9293 s.3.1) with its payload.
type TCP struct {
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Flags            uint8
	Header           []byte // the whole header, including options
	Payload          []byte // captured bytes of the payload
	Length           int    // length of the payload on the wire in bytes
	Offset           int    // offset of the payload in the frame
}

// The TCP flags.
const (
	TCPFIN = 0x01
	TCPSYN = 0x02
	TCPRST = 0x04
	TCPPSH = 0x08
	TCPACK = 0x10
)

// Decode decodes a segment. The argument data holds its captured bytes, length is its length on the
// wire, and offset is the offset of data in the frame. Decode returns false if the header is
// truncated or its length is invalid.
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

// ReportsGap reports whether the segment says by selective acknowledgements that its sender has bytes beyond Ack, so that those at Ack are
// missing there.
func (s *TCP) ReportsGap() bool {
	for from := range s.Selective() {
		if int32(from-s.Ack) > 0 {
			return true
		}
	}
	return false
}

// Selective yields the ranges of selective acknowledgements (RFC 2018). Those before Ack came twice (RFC 2883).
func (s *TCP) Selective() iter.Seq2[uint32, uint32] {
	const nop, sack = 1, 5
	return func(yield func(from, to uint32) bool) {
		for options := s.Header[min(20, len(s.Header)):]; len(options) > 0; {
			if options[0] == nop {
				options = options[1:]
				continue
			}
			if len(options) < 2 || options[1] < 2 || int(options[1]) > len(options) || options[0] == 0 {
				return
			}
			body := options[2:options[1]]
			for ; options[0] == sack && len(body) >= 8; body = body[8:] {
				if !yield(binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:])) {
					return
				}
			}
			options = options[options[1]:]
		}
	}
}

// Checksum reports whether the checksum of a segment is right. If the segment was truncated, known
// is false.
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

// Unfinished reports whether the network adapter was expected to fill in the checksum: it is zero,
// or it covers only the pseudo-header. Captures on the sending host contain such checksums.
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

// Fold returns the 16-bit internet checksum (RFC 1071) of a sum, without inverting it.
func Fold(sum uint64) uint16 {
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// AddWords adds the big-endian 16-bit words of b to sum, for [Fold]. The slice b must start at an
// even offset of the checksummed data.
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
