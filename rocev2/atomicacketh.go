package rocev2

import (
	"fmt"

	"github.com/google/gopacket"
)

// AtomicAckETHLen is the length of an AtomicAckETH in bytes.
const AtomicAckETHLen = 8

// AtomicAckETH is the Atomic ACK Extended Transport Header (IBTA volume 1, section 9.3.5.3).
//
//	offset width
//	0      64 bits contents of the remote memory before the operation
//
// DecodeFromBytes returns an error that wraps [ErrTruncated] for fewer than 8 bytes.
type AtomicAckETH struct {
	BaseLayer
	Original uint64 // value before the operation
}

// LayerType returns LayerTypeAtomicAckETH.
func (r *AtomicAckETH) LayerType() gopacket.LayerType { return LayerTypeAtomicAckETH }

// CanDecode returns LayerTypeAtomicAckETH.
func (r *AtomicAckETH) CanDecode() gopacket.LayerClass { return LayerTypeAtomicAckETH }

// NextLayerType returns gopacket.LayerTypePayload.
func (r *AtomicAckETH) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// header decodes the 8 bytes. The caller has checked the length.
func (r *AtomicAckETH) header(data []byte) {
	r.Contents = data[:AtomicAckETHLen]
	r.Original = be.Uint64(data[0:])
}

// put encodes the header into the first AtomicAckETHLen bytes of data.
func (r *AtomicAckETH) put(data []byte) {
	be.PutUint64(data[0:], r.Original)
}

// DecodeFromBytes decodes the header. Payload holds the bytes after the header.
func (r *AtomicAckETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	return decodeExtended(r, "AtomicAckETH", AtomicAckETHLen, data, df)
}

// SerializeTo prepends the header to buf.
func (r *AtomicAckETH) SerializeTo(buf gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	return serializeExtended(r, AtomicAckETHLen, buf)
}

// String returns a one-line description.
func (r *AtomicAckETH) String() string {
	return fmt.Sprintf("AtomicAckETH original 0x%016x", r.Original)
}
