// Package rocev2 decodes and encodes the InfiniBand transport of RoCEv2, RoCEv1 and native
// InfiniBand links: LRH, GRH, BTH and its extended headers, MADs, the messages of the connection
// manager, and the invariant CRC.
//
// [Packet] decodes a BTH and all extended headers in one call and allocates nothing. [Decode] and
// [Append] decode and encode a single header or message.
//
// For programs that decode with [gopacket], a Packet is the layer of type LayerTypeBTH, and [Layer]
// makes a layer of any other header: Layer(LayerTypeRETH) of a gopacket.Packet is a *Layer[RETH].
// Importing rocev2/register makes gopacket recognise UDP port 4791 and EtherType 0x8915.
//
// All fields are big-endian unless stated otherwise. The package copies no data: slices in a
// decoded layer alias the decoded bytes and are valid as long as those are.
//
// To add an extended header: give it a bit in [Headers], a file like reth.go with struct, layout,
// decode, encode and String, a layer type, a field of [Packet], and name it in the opcode table.
// layer.go has what all of these have in common.
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
	LayerTypeRETH         = layerType(1, "RETH", decodeLayer[RETH])
	LayerTypeAETH         = layerType(2, "AETH", decodeLayer[AETH])
	LayerTypeImmDt        = layerType(3, "ImmDt", decodeLayer[ImmDt])
	LayerTypeIETH         = layerType(4, "IETH", decodeLayer[IETH])
	LayerTypeAtomicETH    = layerType(5, "AtomicETH", decodeLayer[AtomicETH])
	LayerTypeAtomicAckETH = layerType(6, "AtomicAckETH", decodeLayer[AtomicAckETH])
	LayerTypeDETH         = layerType(7, "DETH", decodeLayer[DETH])
	LayerTypeRDETH        = layerType(8, "RDETH", decodeLayer[RDETH])
	LayerTypeXRCETH       = layerType(9, "XRCETH", decodeLayer[XRCETH])
	LayerTypeFETH         = layerType(10, "FETH", decodeLayer[FETH])
	LayerTypeLRH          = layerType(11, "LRH", decodeLayer[LRH])
	LayerTypeGRH          = layerType(12, "GRH", decodeLayer[GRH])
	LayerTypeMAD          = layerType(13, "MAD", decodeLayer[MAD])
	LayerTypeIPCM         = layerType(14, "IPCM", decodeLayer[IPCM])
	LayerTypeREQ          = layerType(15, "REQ", decodeLayer[REQ])
	LayerTypeMRA          = layerType(16, "MRA", decodeLayer[MRA])
	LayerTypeREJ          = layerType(17, "REJ", decodeLayer[REJ])
	LayerTypeREP          = layerType(18, "REP", decodeLayer[REP])
	LayerTypeRTU          = layerType(19, "RTU", decodeLayer[RTU])
	LayerTypeDREQ         = layerType(20, "DREQ", decodeLayer[DREQ])
	LayerTypeDREP         = layerType(21, "DREP", decodeLayer[DREP])
)
