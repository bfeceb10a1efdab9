package rocev2

import (
	"fmt"

	"github.com/google/gopacket"
)

// AtomicETHLen is the length of an AtomicETH in bytes.
const AtomicETHLen = 28

// AtomicETH is the Atomic Extended Transport Header (IBTA volume 1, section 9.3.4).
//
//	offset width
//	0      64 bits virtual address
//	8      32      R_Key
//	12     64      swap (CmpSwap) or add (FetchAdd) data
//	20     64      compare data
//
// DecodeFromBytes returns an error that wraps [ErrTruncated] for fewer than 28 bytes.
type AtomicETH struct {
	BaseLayer
	VirtualAddress uint64 // remote address, bytes
	RKey           uint32 // handle of the remote memory
	SwapAdd        uint64 // swap or add operand
	Compare        uint64 // compare operand
}

// LayerType returns LayerTypeAtomicETH.
func (r *AtomicETH) LayerType() gopacket.LayerType { return LayerTypeAtomicETH }

// CanDecode returns LayerTypeAtomicETH.
func (r *AtomicETH) CanDecode() gopacket.LayerClass { return LayerTypeAtomicETH }

// NextLayerType returns gopacket.LayerTypePayload.
func (r *AtomicETH) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// header decodes the 28 bytes. The caller has checked the length.
func (r *AtomicETH) header(data []byte) {
	r.Contents = data[:AtomicETHLen]
	r.VirtualAddress = be.Uint64(data[0:])
	r.RKey = be.Uint32(data[8:])
	r.SwapAdd = be.Uint64(data[12:])
	r.Compare = be.Uint64(data[20:])
}

// put encodes the header into the first AtomicETHLen bytes of data.
func (r *AtomicETH) put(data []byte) {
	be.PutUint64(data[0:], r.VirtualAddress)
	be.PutUint32(data[8:], r.RKey)
	be.PutUint64(data[12:], r.SwapAdd)
	be.PutUint64(data[20:], r.Compare)
}

// DecodeFromBytes decodes the header. Payload holds the bytes after the header.
func (r *AtomicETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	return decodeExtended(r, "AtomicETH", AtomicETHLen, data, df)
}

// SerializeTo prepends the header to buf.
func (r *AtomicETH) SerializeTo(buf gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	return serializeExtended(r, AtomicETHLen, buf)
}

// String returns a one-line description.
func (r *AtomicETH) String() string {
	return fmt.Sprintf("AtomicETH R_Key 0x%08x VA 0x%016x swap/add 0x%016x compare 0x%016x", r.RKey, r.VirtualAddress, r.SwapAdd, r.Compare)
}
