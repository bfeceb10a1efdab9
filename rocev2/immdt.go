package rocev2

import (
	"fmt"

	"github.com/google/gopacket"
)

// ImmDtLen is the length of a ImmDt in bytes.
const ImmDtLen = 4

// ImmDt is the Immediate Data header (IBTA volume 1, section 9.3.6).
//
//	offset width
//	0      32 bits immediate data, opaque
//
// Fewer than 4 bytes are [ErrTruncated].
type ImmDt struct {
	BaseLayer
	Immediate uint32 // opaque to the transport
}

// LayerType is LayerTypeImmDt.
func (r *ImmDt) LayerType() gopacket.LayerType { return LayerTypeImmDt }

// CanDecode is LayerTypeImmDt.
func (r *ImmDt) CanDecode() gopacket.LayerClass { return LayerTypeImmDt }

// NextLayerType is the payload.
func (r *ImmDt) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// header reads the 4 bytes; the caller has proven that they are there.
func (r *ImmDt) header(data []byte) {
	r.Contents = data[:ImmDtLen]
	r.Immediate = be.Uint32(data[0:])
}

// DecodeFromBytes reads the header; Payload is what follows it.
func (r *ImmDt) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := cut(&r.BaseLayer, "ImmDt", ImmDtLen, data, df); err != nil {
		return err
	}
	r.header(data)
	return nil
}

// SerializeTo prepends the header.
func (r *ImmDt) SerializeTo(buf gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	data, err := buf.PrependBytes(ImmDtLen)
	if err != nil {
		return err
	}
	be.PutUint32(data[0:], r.Immediate)
	return nil
}

// String is one line for people.
func (r *ImmDt) String() string {
	return fmt.Sprintf("ImmDt immediate 0x%08x", r.Immediate)
}
