package rocev2

import (
	"encoding/binary"
	"fmt"

	"github.com/google/gopacket"
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
// DecodeFromBytes needs the whole transport packet, including the ICRC. Payload holds the bytes
// between the BTH and the pad. If the packet is too short for BTH, pad and ICRC, the error wraps
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
	Reserved6      uint8  // the other bits of byte 4
	DestQPN        uint32 // 24 bits
	AckReq         bool
	Reserved7      uint8  // the other bits of byte 8
	PSN            uint32 // 24 bits
	Pad            []byte // the pad bytes; nil if they were not captured; shorter than PadCount if there is no payload to pad
	ICRC           uint32 // as stored, least significant byte first
}

// LayerType returns LayerTypeBTH.
func (b *BTH) LayerType() gopacket.LayerType { return LayerTypeBTH }

// CanDecode returns LayerTypeBTH.
func (b *BTH) CanDecode() gopacket.LayerClass { return LayerTypeBTH }

// NextLayerType returns gopacket.LayerTypePayload. To decode extended headers, use [Packet].
func (b *BTH) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// header decodes the 12 bytes. The caller has checked the length.
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

// DecodeFromBytes decodes a whole transport packet, from the BTH to the ICRC.
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

// put encodes the 12 bytes.
func (b *BTH) put(data []byte) {
	data[0] = uint8(b.Opcode)
	data[1] = bit(b.SolicitedEvent, 7) | bit(b.MigReq, 6) | b.PadCount&3<<4 | b.TVer&0x0f
	be.PutUint16(data[2:], b.PKey)
	be.PutUint32(data[4:], b.DestQPN&0xffffff)
	data[4] = bit(b.FECN, 7) | bit(b.BECN, 6) | b.Reserved6&0x3f
	be.PutUint32(data[8:], b.PSN&PSNMask)
	data[8] = bit(b.AckReq, 7) | b.Reserved7&0x7f
}

// SerializeTo prepends the BTH to the payload in buf, and appends pad and ICRC. With FixLengths it
// computes the pad. It writes the ICRC of the struct, because the ICRC also covers the IP and UDP
// headers; [FixICRC] computes the ICRC of the finished packet.
func (b *BTH) SerializeTo(buf gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if opts.FixLengths {
		b.PadCount = uint8(-len(buf.Bytes()) & 3)
		b.Pad = make([]byte, b.PadCount)
	}
	if stray := !b.Opcode.Info().hasPayload() && len(b.Pad) < int(b.PadCount); len(b.Pad) != int(b.PadCount) && !stray {
		return fmt.Errorf("rocev2: the pad count of the BTH is %d, but Pad has %d bytes", b.PadCount, len(b.Pad))
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
