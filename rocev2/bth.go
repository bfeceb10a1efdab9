package rocev2

import (
	"encoding/binary"
	"fmt"

	"github.com/google/gopacket"
)

// be is the byte order of everything here but the CRCs.
var be = binary.BigEndian

// BTHLen, ICRCLen and VCRCLen are lengths in bytes.
const (
	BTHLen  = 12
	ICRCLen = 4
	VCRCLen = 2
)

// PSNMask is the range of a packet sequence number: 24 bits, which wrap.
const PSNMask = 0xffffff

// BTH is the Base Transport Header (IBTA volume 1, section 9.2). It stands
// first in every packet; the opcode says what follows.
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
// Decoding takes the whole transport packet, ICRC included: Payload is what
// lies between the BTH and the pad. A packet too short for BTH, pad and ICRC is
// [ErrTruncated].
type BTH struct {
	BaseLayer
	Opcode         Opcode
	SolicitedEvent bool
	MigReq         bool
	PadCount       uint8 // bytes, 0-3
	TVer           uint8
	PKey           uint16
	FECN, BECN     bool
	Reserved6      uint8  // the rest of byte 4
	DestQPN        uint32 // 24 bits
	AckReq         bool
	Reserved7      uint8  // the rest of byte 8
	PSN            uint32 // 24 bits
	Pad            []byte // the pad bytes, nil when cut off
	ICRC           uint32 // as stored, least significant byte first
}

// LayerType is LayerTypeBTH.
func (b *BTH) LayerType() gopacket.LayerType { return LayerTypeBTH }

// CanDecode is LayerTypeBTH.
func (b *BTH) CanDecode() gopacket.LayerClass { return LayerTypeBTH }

// NextLayerType is the payload; use [Packet] to decode extended headers.
func (b *BTH) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// header reads the twelve bytes; the caller has proven that they are there.
func (b *BTH) header(data []byte) {
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

// DecodeFromBytes reads a whole transport packet, BTH through ICRC.
func (b *BTH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if len(data) < BTHLen+ICRCLen {
		df.SetTruncated()
		return short("BTH and ICRC", BTHLen+ICRCLen, len(data))
	}
	b.header(data)
	end := len(data) - ICRCLen
	pad := end - int(b.PadCount)
	if pad < BTHLen {
		return short("BTH with its pad", BTHLen+int(b.PadCount), end)
	}
	b.Contents, b.Payload, b.Pad = data[:BTHLen], data[BTHLen:pad], data[pad:end]
	b.ICRC = binary.LittleEndian.Uint32(data[end:])
	return nil
}

// put writes the twelve bytes.
func (b *BTH) put(data []byte) {
	data[0] = uint8(b.Opcode)
	data[1] = bit(b.SolicitedEvent, 7) | bit(b.MigReq, 6) | b.PadCount&3<<4 | b.TVer&0x0f
	be.PutUint16(data[2:], b.PKey)
	be.PutUint32(data[4:], b.DestQPN&0xffffff)
	data[4] = bit(b.FECN, 7) | bit(b.BECN, 6) | b.Reserved6&0x3f
	be.PutUint32(data[8:], b.PSN&PSNMask)
	data[8] = bit(b.AckReq, 7) | b.Reserved7&0x7f
}

// SerializeTo prepends the BTH to what buf holds, the payload, and appends pad
// and ICRC. With FixLengths the pad is worked out anew. The ICRC is written as
// it stands in the struct: it covers the headers below, so that only [FixICRC]
// on the finished packet can compute it.
func (b *BTH) SerializeTo(buf gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if opts.FixLengths {
		b.PadCount = uint8(-len(buf.Bytes()) & 3)
		b.Pad = make([]byte, b.PadCount)
	}
	if len(b.Pad) != int(b.PadCount) {
		return fmt.Errorf("rocev2: BTH says %d bytes of pad, Pad holds %d", b.PadCount, len(b.Pad))
	}
	tail, err := buf.AppendBytes(len(b.Pad) + ICRCLen)
	if err != nil {
		return err
	}
	copy(tail, b.Pad)
	binary.LittleEndian.PutUint32(tail[len(b.Pad):], b.ICRC)
	head, err := buf.PrependBytes(BTHLen)
	if err != nil {
		return err
	}
	b.put(head)
	return nil
}

// String is one line for people.
func (b *BTH) String() string {
	return fmt.Sprintf("%v QPN 0x%06x PSN %d", b.Opcode, b.DestQPN, b.PSN)
}

// bit is v at position n of a byte.
func bit(v bool, n uint) uint8 {
	if v {
		return 1 << n
	}
	return 0
}

// PSNDelta is a-b on the circle of PSNs: negative when a is behind b.
func PSNDelta(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }
