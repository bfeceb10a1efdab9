package rocev2

import (
	"fmt"

	"github.com/google/gopacket"
)

// IETHLen is the length of a IETH in bytes.
const IETHLen = 4

// IETH is the Invalidate Extended Transport Header (IBTA volume 1, section 9.3.7).
//
//	offset width
//	0      32 bits R_Key that the receiver invalidates
//
// Fewer than 4 bytes are [ErrTruncated].
type IETH struct {
	BaseLayer
	RKey uint32 // handle to invalidate
}

// LayerType is LayerTypeIETH.
func (r *IETH) LayerType() gopacket.LayerType { return LayerTypeIETH }

// CanDecode is LayerTypeIETH.
func (r *IETH) CanDecode() gopacket.LayerClass { return LayerTypeIETH }

// NextLayerType is the payload.
func (r *IETH) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// header reads the 4 bytes; the caller has proven that they are there.
func (r *IETH) header(data []byte) {
	r.Contents = data[:IETHLen]
	r.RKey = be.Uint32(data[0:])
}

// DecodeFromBytes reads the header; Payload is what follows it.
func (r *IETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := cut(&r.BaseLayer, "IETH", IETHLen, data, df); err != nil {
		return err
	}
	r.header(data)
	return nil
}

// SerializeTo prepends the header.
func (r *IETH) SerializeTo(buf gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	data, err := buf.PrependBytes(IETHLen)
	if err != nil {
		return err
	}
	be.PutUint32(data[0:], r.RKey)
	return nil
}

// String is one line for people.
func (r *IETH) String() string {
	return fmt.Sprintf("IETH invalidate R_Key 0x%08x", r.RKey)
}
