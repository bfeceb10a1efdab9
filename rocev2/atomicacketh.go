package rocev2

import (
	"fmt"

	"github.com/google/gopacket"
)

// AtomicAckETHLen is the length of a AtomicAckETH in bytes.
const AtomicAckETHLen = 8

// AtomicAckETH is the Atomic ACK Extended Transport Header (IBTA volume 1, section 9.3.5.3).
//
//	offset width
//	0      64 bits what the remote memory held before
//
// Fewer than 8 bytes are [ErrTruncated].
type AtomicAckETH struct {
	BaseLayer
	Original uint64 // value before the operation
}

// LayerType is LayerTypeAtomicAckETH.
func (r *AtomicAckETH) LayerType() gopacket.LayerType { return LayerTypeAtomicAckETH }

// CanDecode is LayerTypeAtomicAckETH.
func (r *AtomicAckETH) CanDecode() gopacket.LayerClass { return LayerTypeAtomicAckETH }

// NextLayerType is the payload.
func (r *AtomicAckETH) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// header reads the 8 bytes; the caller has proven that they are there.
func (r *AtomicAckETH) header(data []byte) {
	r.Contents = data[:AtomicAckETHLen]
	r.Original = be.Uint64(data[0:])
}

// DecodeFromBytes reads the header; Payload is what follows it.
func (r *AtomicAckETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := cut(&r.BaseLayer, "AtomicAckETH", AtomicAckETHLen, data, df); err != nil {
		return err
	}
	r.header(data)
	return nil
}

// SerializeTo prepends the header.
func (r *AtomicAckETH) SerializeTo(buf gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	data, err := buf.PrependBytes(AtomicAckETHLen)
	if err != nil {
		return err
	}
	be.PutUint64(data[0:], r.Original)
	return nil
}

// String is one line for people.
func (r *AtomicAckETH) String() string {
	return fmt.Sprintf("AtomicAckETH original 0x%016x", r.Original)
}
