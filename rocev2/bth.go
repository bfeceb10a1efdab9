package rocev2

import (
	"encoding/binary"
	"fmt"
)

// be is the byte order of all fields except the CRCs.
var be = binary.BigEndian

// BTHLen, ICRCLen and VCRCLen are lengths in bytes.
const (
	BTHLen  = 12
	ICRCLen = 4
	VCRCLen = 2
)

// PSNMask is the largest packet sequence number. PSNs have 24 bits and wrap around.
const PSNMask = 0xffffff

// BTH is the Base Transport Header (IBTA volume 1, section 9.2). It is the first header of every
// transport packet. Its opcode says which headers follow.
//
//	offset width
//	0      8 bits  opcode
//	1      1       SE: the receiver should raise an event
//	1.1    1       MigReq
//	1.2    2       PadCnt: 0-3 bytes of pad before the ICRC
//	1.4    4       TVer: 0
//	2      16      P_Key
//	4      1       FECN (RoCEv2; masked in the ICRC with the rest of the byte)
//	4.1    1       BECN
//	4.2    6       reserved
//	5      24      destination QPN
//	8      1       AckReq
//	8.1    7       reserved
//	9      24      PSN
//
// The layer of gopacket is [Packet], because the opcode says what follows.
type BTH struct {
	Opcode         Opcode
	SolicitedEvent bool
	MigReq         bool
	PadCount       uint8 // bytes, 0-3
	TVer           uint8
	PKey           uint16
	FECN, BECN     bool
	Reserved6      uint8  // the other bits of byte 4
	DestQPN        uint32 // 24 bits
	AckReq         bool
	Reserved7      uint8  // the other bits of byte 8
	PSN            uint32 // 24 bits
	Pad            []byte // the pad bytes; nil if they were not captured; shorter than PadCount if there is no payload to pad
	ICRC           uint32 // as stored, least significant byte first
}

// decode decodes the 12 bytes. The caller has checked the length.
func (b *BTH) decode(data []byte) {
	_ = data[BTHLen-1]
	b.Opcode = Opcode(data[0])
	b.SolicitedEvent = data[1]&0x80 != 0
	b.MigReq = data[1]&0x40 != 0
	b.PadCount = data[1] >> 4 & 3
	b.TVer = data[1] & 0x0f
	b.PKey = be.Uint16(data[2:])
	b.FECN = data[4]&0x80 != 0
	b.BECN = data[4]&0x40 != 0
	b.Reserved6 = data[4] & 0x3f
	b.DestQPN = be.Uint32(data[4:]) & 0xffffff
	b.AckReq = data[8]&0x80 != 0
	b.Reserved7 = data[8] & 0x7f
	b.PSN = be.Uint32(data[8:]) & PSNMask
}

// encode encodes the 12 bytes.
func (b *BTH) encode(data []byte) {
	data[0] = uint8(b.Opcode)
	data[1] = bit(b.SolicitedEvent, 7) | bit(b.MigReq, 6) | b.PadCount&3<<4 | b.TVer&0x0f
	be.PutUint16(data[2:], b.PKey)
	be.PutUint32(data[4:], b.DestQPN&0xffffff)
	data[4] = bit(b.FECN, 7) | bit(b.BECN, 6) | b.Reserved6&0x3f
	be.PutUint32(data[8:], b.PSN&PSNMask)
	data[8] = bit(b.AckReq, 7) | b.Reserved7&0x7f
}

// String returns a one-line description.
func (b *BTH) String() string {
	return fmt.Sprintf("%v QPN 0x%06x PSN %d", b.Opcode, b.DestQPN, b.PSN)
}

// bit returns a byte with v as bit n.
func bit(v bool, n uint) uint8 {
	if v {
		return 1 << n
	}
	return 0
}

// PSNDelta returns a-b modulo 2^24 as a signed number. It is negative if a precedes b.
func PSNDelta(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }
