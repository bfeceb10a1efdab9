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
// Decode returns an error that wraps [ErrTruncated] for fewer than 40 bytes.
type GRH struct {
	Version        uint8
	TrafficClass   uint8
	FlowLabel      uint32 // 20 bits
	PayloadLength  uint16 // bytes
	NextHeader     uint8
	HopLimit       uint8
	SourceGID      netip.Addr
	DestinationGID netip.Addr
}

// next returns LayerTypeBTH, or gopacket.LayerTypePayload if the next header is not a BTH.
func (g *GRH) next() gopacket.LayerType {
	if g.NextHeader == NextHeaderIBA {
		return LayerTypeBTH
	}
	return gopacket.LayerTypePayload
}

func (*GRH) layout() layout { return layout{LayerTypeGRH, GRHLen} }

func (g *GRH) decode(data []byte) {
	word := be.Uint32(data)
	g.Version, g.TrafficClass, g.FlowLabel = uint8(word>>28), uint8(word>>20), word&0xfffff
	g.PayloadLength = be.Uint16(data[4:])
	g.NextHeader, g.HopLimit = data[6], data[7]
	g.SourceGID = netip.AddrFrom16([16]byte(data[8:24]))
	g.DestinationGID = netip.AddrFrom16([16]byte(data[24:40]))
}

// payload returns the bytes after the header, up to the payload length.
func (g *GRH) payload(data []byte) []byte {
	if end := GRHLen + int(g.PayloadLength); end < len(data) {
		return data[GRHLen:end]
	}
	return data[GRHLen:]
}

func (g *GRH) encode(data []byte) {
	be.PutUint32(data, uint32(g.Version)<<28|uint32(g.TrafficClass)<<20|g.FlowLabel&0xfffff)
	be.PutUint16(data[4:], g.PayloadLength)
	data[6], data[7] = g.NextHeader, g.HopLimit
	source, destination := g.SourceGID.As16(), g.DestinationGID.As16()
	copy(data[8:], source[:])
	copy(data[24:], destination[:])
}

// fix computes the length from the number of bytes after the header, which must end with the ICRC.
func (g *GRH) fix(payload int) {
	g.PayloadLength = uint16(payload)
}

// String returns a one-line description.
func (g *GRH) String() string { return fmt.Sprintf("GRH %v > %v", g.SourceGID, g.DestinationGID) }
