// Package rocev2 decodes and encodes the InfiniBand transport of RoCEv2, RoCEv1 and native
// InfiniBand links: LRH, GRH, BTH and its extended headers, MADs, the messages of the connection
// manager, and the invariant CRC.
//
// Every format is a [gopacket] layer with DecodeFromBytes and SerializeTo, so that any gopacket
// program can use the package. Importing rocev2/register makes gopacket recognise UDP port 4791 and
// EtherType 0x8915. A program that reads many packets should use [Packet], which decodes a BTH and
// all extended headers in one call and allocates nothing.
//
// All fields are big-endian unless stated otherwise. The package copies no data: slices in a
// decoded layer alias the decoded bytes and are valid as long as those are.
//
// To add an extended header: give it a bit in [Headers], a file like reth.go with struct,
// DecodeFromBytes, SerializeTo and String, a place in [Packet.Decode] and [Packet.SerializeTo], and
// name it in the opcode table. extended.go has what all of these have in common.
package rocev2

import (
	"errors"
	"fmt"

	"github.com/google/gopacket"
)

// UDPPort is the UDP destination port of RoCEv2 (IBTA annex A17). Some implementations also send
// packets from this port to another port; [Plausible] recognises them.
const UDPPort = 4791

// EtherTypeRoCEv1 is the EtherType of RoCEv1 (IBTA annex A16).
const EtherTypeRoCEv1 = 0x8915

// ErrTruncated is wrapped by every decode error for an input that is too short.
var ErrTruncated = errors.New("truncated")

// short returns the error for a structure that needs more bytes than are available.
func short(what string, need, have int) error {
	return fmt.Errorf("rocev2: %s needs %d bytes, %d left: %w", what, need, have, ErrTruncated)
}

// layerType registers one layer type of this package with gopacket. The numbers are below 2000,
// because gopacket looks those up in an array.
func layerType(index int, name string, decode gopacket.DecodeFunc) gopacket.LayerType {
	return gopacket.RegisterLayerType(1791+index, gopacket.LayerTypeMetadata{Name: name, Decoder: decode})
}

// The layer types of this package.
var (
	LayerTypeBTH          = layerType(0, "BTH", decodeBTH)
	LayerTypeRETH         = layerType(1, "RETH", layerDecoder(func() decoder { return new(RETH) }))
	LayerTypeAETH         = layerType(2, "AETH", layerDecoder(func() decoder { return new(AETH) }))
	LayerTypeImmDt        = layerType(3, "ImmDt", layerDecoder(func() decoder { return new(ImmDt) }))
	LayerTypeIETH         = layerType(4, "IETH", layerDecoder(func() decoder { return new(IETH) }))
	LayerTypeAtomicETH    = layerType(5, "AtomicETH", layerDecoder(func() decoder { return new(AtomicETH) }))
	LayerTypeAtomicAckETH = layerType(6, "AtomicAckETH", layerDecoder(func() decoder { return new(AtomicAckETH) }))
	LayerTypeDETH         = layerType(7, "DETH", layerDecoder(func() decoder { return new(DETH) }))
	LayerTypeRDETH        = layerType(8, "RDETH", layerDecoder(func() decoder { return new(RDETH) }))
	LayerTypeXRCETH       = layerType(9, "XRCETH", layerDecoder(func() decoder { return new(XRCETH) }))
	LayerTypeFETH         = layerType(10, "FETH", layerDecoder(func() decoder { return new(FETH) }))
	LayerTypeLRH          = layerType(11, "LRH", layerDecoder(func() decoder { return new(LRH) }))
	LayerTypeGRH          = layerType(12, "GRH", layerDecoder(func() decoder { return new(GRH) }))
	LayerTypeMAD          = layerType(13, "MAD", layerDecoder(func() decoder { return new(MAD) }))
	LayerTypeIPCM         = layerType(14, "IPCM", layerDecoder(func() decoder { return new(IPCM) }))
	LayerTypeREQ          = layerType(15, "REQ", layerDecoder(func() decoder { return new(REQ) }))
	LayerTypeMRA          = layerType(16, "MRA", layerDecoder(func() decoder { return new(MRA) }))
	LayerTypeREJ          = layerType(17, "REJ", layerDecoder(func() decoder { return new(REJ) }))
	LayerTypeREP          = layerType(18, "REP", layerDecoder(func() decoder { return new(REP) }))
	LayerTypeRTU          = layerType(19, "RTU", layerDecoder(func() decoder { return new(RTU) }))
	LayerTypeDREQ         = layerType(20, "DREQ", layerDecoder(func() decoder { return new(DREQ) }))
	LayerTypeDREP         = layerType(21, "DREP", layerDecoder(func() decoder { return new(DREP) }))
	LayerTypeSIDRREQ      = layerType(22, "SIDR_REQ", layerDecoder(func() decoder { return new(SIDRREQ) }))
	LayerTypeSIDRREP      = layerType(23, "SIDR_REP", layerDecoder(func() decoder { return new(SIDRREP) }))
	LayerTypeLAP          = layerType(24, "LAP", layerDecoder(func() decoder { return new(LAP) }))
	LayerTypeAPR          = layerType(25, "APR", layerDecoder(func() decoder { return new(APR) }))
)

// BaseLayer holds the bytes of a layer and its payload. It replaces BaseLayer of gopacket/layers,
// because importing that package builds large tables at program start.
type BaseLayer struct {
	Contents []byte // bytes of the layer itself
	Payload  []byte // bytes after the layer
}

// LayerContents returns the bytes of the layer itself.
func (b *BaseLayer) LayerContents() []byte { return b.Contents }

// LayerPayload returns the bytes after the layer.
func (b *BaseLayer) LayerPayload() []byte { return b.Payload }

// decoder is the interface of all layers in this package.
type decoder interface {
	gopacket.Layer
	gopacket.DecodingLayer
}

// layerDecoder returns a function with which gopacket.NewPacket decodes the layer.
func layerDecoder(make func() decoder) gopacket.DecodeFunc {
	return func(data []byte, p gopacket.PacketBuilder) error {
		l := make()
		if err := l.DecodeFromBytes(data, p); err != nil {
			return err
		}
		p.AddLayer(l)
		if next := l.NextLayerType(); next != gopacket.LayerTypeZero {
			return p.NextDecoder(next)
		}
		return nil
	}
}

// decodeBTH adds the BTH and its extended headers to the packet, and decodes the payload as the
// next layer.
func decodeBTH(data []byte, b gopacket.PacketBuilder) error {
	p := new(Packet)
	if err := p.DecodeFromBytes(data, b); err != nil {
		return err
	}
	b.AddLayer(&p.BTH)
	rest := data[BTHLen : len(data)-ICRCLen-len(p.Pad)]
	p.BTH.Payload = rest
	for have := p.Headers; have != 0; have &= have - 1 { // decode again, so that each header has its Payload
		l := p.extended(have & -have)
		if err := l.DecodeFromBytes(rest, b); err != nil {
			return err
		}
		rest = l.LayerPayload()
		b.AddLayer(l)
	}
	if len(rest) == 0 {
		return nil
	}
	return b.NextDecoder(p.NextLayerType())
}

// splitHeader checks that data has at least size bytes and splits it into header and payload.
func splitHeader(base *BaseLayer, what string, size int, data []byte, df gopacket.DecodeFeedback) error {
	if len(data) < size {
		df.SetTruncated()
		return short(what, size, len(data))
	}
	base.Contents, base.Payload = data[:size], data[size:]
	return nil
}
