package rocev2

import (
	"fmt"

	"github.com/google/gopacket"
)

// RETHLen is the length of a RETH in bytes.
const RETHLen = 16

// RETH is the RDMA Extended Transport Header (IBTA volume 1, section 9.3.3).
//
//	offset width
//	0      64 bits virtual address of the remote buffer, bytes
//	8      32      R_Key
//	12     32      DMA length, bytes
//
// DecodeFromBytes returns an error that wraps [ErrTruncated] for fewer than 16 bytes.
type RETH struct {
	BaseLayer
	VirtualAddress uint64 // remote address, bytes
	RKey           uint32 // handle of the remote memory
	DMALength      uint32 // bytes of the whole operation
}

// LayerType returns LayerTypeRETH.
func (r *RETH) LayerType() gopacket.LayerType { return LayerTypeRETH }

// CanDecode returns LayerTypeRETH.
func (r *RETH) CanDecode() gopacket.LayerClass { return LayerTypeRETH }

// NextLayerType returns gopacket.LayerTypePayload.
func (r *RETH) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// header decodes the 16 bytes. The caller has checked the length.
func (r *RETH) header(data []byte) {
	r.Contents = data[:RETHLen]
	r.VirtualAddress = be.Uint64(data[0:])
	r.RKey = be.Uint32(data[8:])
	r.DMALength = be.Uint32(data[12:])
}

// put encodes the header into the first RETHLen bytes of data.
func (r *RETH) put(data []byte) {
	be.PutUint64(data[0:], r.VirtualAddress)
	be.PutUint32(data[8:], r.RKey)
	be.PutUint32(data[12:], r.DMALength)
}

// DecodeFromBytes decodes the header. Payload holds the bytes after the header.
func (r *RETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	return decodeExtended(r, "RETH", RETHLen, data, df)
}

// SerializeTo prepends the header to buf.
func (r *RETH) SerializeTo(buf gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	return serializeExtended(r, RETHLen, buf)
}

// String returns a one-line description.
func (r *RETH) String() string {
	return fmt.Sprintf("RETH R_Key 0x%08x VA 0x%016x length %d", r.RKey, r.VirtualAddress, r.DMALength)
}
