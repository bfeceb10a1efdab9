// Package rocev2 holds the wire formats of the InfiniBand transport as RoCEv2,
// RoCEv1 and native InfiniBand links carry them: LRH, GRH, BTH and its extended
// headers, MADs, the connection manager's messages, and the invariant CRC.
//
// Every format is a [gopacket] layer with DecodeFromBytes and SerializeTo, so
// that any gopacket program can use the package on its own. Importing
// rocev2/register, too, makes gopacket recognise UDP port 4791 and EtherType
// 0x8915. A program that reads many packets uses [Packet], which decodes a BTH
// and all extended headers in one call and allocates nothing.
//
// All fields are big-endian unless said otherwise. Nothing here copies: slices
// in a decoded layer alias the bytes that it was decoded from, and live as long
// as those do.
//
// To add an extended header: give it a bit in [Headers], a file like reth.go
// with struct, DecodeFromBytes, SerializeTo and String, a place in
// [Packet.Decode] and [Packet.SerializeTo], and name it in the opcode table.
package rocev2

import (
	"errors"
	"fmt"

	"github.com/google/gopacket"
)

// UDPPort is the UDP destination port of RoCEv2 (IBTA annex A17).
const UDPPort = 4791

// EtherTypeRoCEv1 is the EtherType of RoCEv1 (IBTA annex A16).
const EtherTypeRoCEv1 = 0x8915

// ErrTruncated is wrapped by every decode error that ran out of bytes.
var ErrTruncated = errors.New("truncated")

// short reports that what needs more bytes than there are.
func short(what string, need, have int) error {
	return fmt.Errorf("rocev2: %s needs %d bytes, %d left: %w", what, need, have, ErrTruncated)
}

// layerType registers one layer of this package with gopacket. Numbers below
// 2000 are looked up in an array; this block of them belongs to the package.
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

// BaseLayer is the bytes of a layer, and those that it carries: that of
// gopacket/layers, without the tables which that package makes when a program
// starts.
type BaseLayer struct {
	Contents []byte // of the layer itself
	Payload  []byte // what follows it
}

// LayerContents are the bytes of the layer itself.
func (b *BaseLayer) LayerContents() []byte { return b.Contents }

// LayerPayload is what follows it.
func (b *BaseLayer) LayerPayload() []byte { return b.Payload }

// decoder is what every layer here offers.
type decoder interface {
	gopacket.Layer
	gopacket.DecodingLayer
}

// layerDecoder lets gopacket.NewPacket decode a layer on its own.
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

// decodeBTH adds the BTH, the extended headers that its opcode asks for, and
// hands the payload on.
func decodeBTH(data []byte, b gopacket.PacketBuilder) error {
	p := new(Packet)
	if err := p.DecodeFromBytes(data, b); err != nil {
		return err
	}
	b.AddLayer(&p.BTH)
	rest := data[BTHLen : len(data)-ICRCLen-int(p.PadCount)]
	p.BTH.Payload = rest
	for have := p.Headers; have != 0; have &= have - 1 { // again, for the payload that each has here
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

// cut proves that a header of size bytes is there and splits data into it and
// what follows.
func cut(base *BaseLayer, what string, size int, data []byte, df gopacket.DecodeFeedback) error {
	if len(data) < size {
		df.SetTruncated()
		return short(what, size, len(data))
	}
	base.Contents, base.Payload = data[:size], data[size:]
	return nil
}
