package rocev2

import (
	"fmt"
	"net/netip"

	"github.com/google/gopacket"
)

// GRHLen is the length of a GRH in bytes.
const GRHLen = 40

// NextHeaderIBA is the GRH's next header for a BTH (IBTA volume 1, section 8.3).
const NextHeaderIBA = 0x1b

// GRH is the Global Route Header (IBTA volume 1, section 8.3). It has the layout of an IPv6 header.
// RoCEv1 packets always have a GRH, native InfiniBand packets have one if the LNH says so, and
// RoCEv2 packets have none.
//
//	offset width
//	0      4 bits  IP version: 6
//	0.4    8       traffic class
//	1.4    20      flow label
//	4      16      payload length in bytes, from after the GRH through the ICRC
//	6      8       next header: 0x1b for a BTH
//	7      8       hop limit
//	8      128     source GID
//	24     128     destination GID
//
// DecodeFromBytes returns an error that wraps [ErrTruncated] for fewer than 40 bytes.
type GRH struct {
	BaseLayer
	Version        uint8
	TrafficClass   uint8
	FlowLabel      uint32 // 20 bits
	PayloadLength  uint16 // bytes
	NextHeader     uint8
	HopLimit       uint8
	SourceGID      netip.Addr
	DestinationGID netip.Addr
}

// LayerType returns LayerTypeGRH.
func (g *GRH) LayerType() gopacket.LayerType { return LayerTypeGRH }

// CanDecode returns LayerTypeGRH.
func (g *GRH) CanDecode() gopacket.LayerClass { return LayerTypeGRH }

// NextLayerType returns LayerTypeBTH, or gopacket.LayerTypePayload if the next header is not a BTH.
func (g *GRH) NextLayerType() gopacket.LayerType {
	if g.NextHeader == NextHeaderIBA {
		return LayerTypeBTH
	}
	return gopacket.LayerTypePayload
}

// DecodeFromBytes decodes the header. Payload ends according to the payload length, or with the
// data if the payload length is too large.
func (g *GRH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := splitHeader(&g.BaseLayer, "GRH", GRHLen, data, df); err != nil {
		return err
	}
	word := be.Uint32(data)
	g.Version, g.TrafficClass, g.FlowLabel = uint8(word>>28), uint8(word>>20), word&0xfffff
	g.PayloadLength = be.Uint16(data[4:])
	g.NextHeader, g.HopLimit = data[6], data[7]
	g.SourceGID = netip.AddrFrom16([16]byte(data[8:24]))
	g.DestinationGID = netip.AddrFrom16([16]byte(data[24:40]))
	if end := GRHLen + int(g.PayloadLength); end < len(data) {
		g.Payload = data[GRHLen:end]
	}
	return nil
}

// SerializeTo prepends the header to buf. With FixLengths it computes the payload length from the
// contents of buf, which must end with the ICRC.
func (g *GRH) SerializeTo(buf gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if opts.FixLengths {
		g.PayloadLength = uint16(len(buf.Bytes()))
	}
	data, err := buf.PrependBytes(GRHLen)
	if err != nil {
		return err
	}
	be.PutUint32(data, uint32(g.Version)<<28|uint32(g.TrafficClass)<<20|g.FlowLabel&0xfffff)
	be.PutUint16(data[4:], g.PayloadLength)
	data[6], data[7] = g.NextHeader, g.HopLimit
	source, destination := g.SourceGID.As16(), g.DestinationGID.As16()
	copy(data[8:], source[:])
	copy(data[24:], destination[:])
	return nil
}

// String returns a one-line description.
func (g *GRH) String() string { return fmt.Sprintf("GRH %v > %v", g.SourceGID, g.DestinationGID) }
