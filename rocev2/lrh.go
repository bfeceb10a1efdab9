package rocev2

import (
	"fmt"

	"github.com/google/gopacket"
)

// LRHLen is the length of an LRH in bytes.
const LRHLen = 8

// The values of [LRH.LNH], which says what follows the LRH.
const (
	LNHRaw    = 0 // RWH, raw packet
	LNHIPv6   = 1 // raw IPv6
	LNHLocal  = 2 // BTH
	LNHGlobal = 3 // GRH, then BTH
)

// LRH is the Local Route Header of native InfiniBand (IBTA volume 1, section
// 7.7).
//
//	offset width
//	0      4 bits  VL
//	0.4    4       LVer
//	1      4       SL
//	1.4    2       reserved
//	1.6    2       LNH
//	2      16      DLID
//	4      5       reserved
//	4.5    11      packet length in words of 4 bytes, LRH through ICRC
//	6      16      SLID
//
// Decode returns an error that wraps [ErrTruncated] for fewer than 8 bytes.
type LRH struct {
	VL        uint8
	LVer      uint8
	SL        uint8
	Reserved2 uint8
	LNH       uint8
	DLID      uint16
	Reserved5 uint8
	Words     uint16 // 11 bits, words of 4 bytes
	SLID      uint16
}

// next returns LayerTypeGRH or LayerTypeBTH according to the LNH, or
// gopacket.LayerTypePayload for raw packets.
func (l *LRH) next() gopacket.LayerType {
	switch l.LNH {
	case LNHLocal:
		return LayerTypeBTH
	case LNHGlobal:
		return LayerTypeGRH
	}
	return gopacket.LayerTypePayload
}

func (*LRH) layout() layout { return layout{LayerTypeLRH, LRHLen} }

func (l *LRH) decode(data []byte) {
	l.VL, l.LVer = data[0]>>4, data[0]&15
	l.SL, l.Reserved2, l.LNH = data[1]>>4, data[1]>>2&3, data[1]&3
	l.DLID = be.Uint16(data[2:])
	l.Reserved5, l.Words = data[4]>>3, be.Uint16(data[4:])&0x7ff
	l.SLID = be.Uint16(data[6:])
}

// payload returns the bytes after the header. If the packet length shows where the ICRC ends, they
// end there, without the VCRC, which belongs to the link.
func (l *LRH) payload(data []byte) []byte {
	if end := int(l.Words) * 4; end >= LRHLen && end < len(data) {
		return data[LRHLen:end]
	}
	return data[LRHLen:]
}

func (l *LRH) encode(data []byte) {
	data[0] = l.VL<<4 | l.LVer&15
	data[1] = l.SL<<4 | l.Reserved2&3<<2 | l.LNH&3
	be.PutUint16(data[2:], l.DLID)
	be.PutUint16(data[4:], uint16(l.Reserved5)<<11|l.Words&0x7ff)
	be.PutUint16(data[6:], l.SLID)
}

// fix computes the length from the number of bytes after the header, which must end with the ICRC.
func (l *LRH) fix(payload int) {
	l.Words = uint16((payload + LRHLen) / 4)
}

// String returns a one-line description.
func (l *LRH) String() string {
	return fmt.Sprintf("LRH LID %d > %d, SL %d, %d words", l.SLID, l.DLID, l.SL, l.Words)
}
