package rocev2

import (
	"fmt"

	"github.com/google/gopacket"
)

// ImmDtLen is the length of an ImmDt in bytes.
const ImmDtLen = 4

// ImmDt is the Immediate Data header (IBTA volume 1, section 9.3.6).
//
//	offset width
//	0      32 bits immediate data, opaque
//
// DecodeFromBytes returns an error that wraps [ErrTruncated] for fewer than 4 bytes.
type ImmDt struct {
	BaseLayer
	Immediate uint32 // opaque to the transport
}

// LayerType returns LayerTypeImmDt.
func (r *ImmDt) LayerType() gopacket.LayerType { return LayerTypeImmDt }

// CanDecode returns LayerTypeImmDt.
func (r *ImmDt) CanDecode() gopacket.LayerClass { return LayerTypeImmDt }

// NextLayerType returns gopacket.LayerTypePayload.
func (r *ImmDt) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// header decodes the 4 bytes. The caller has checked the length.
func (r *ImmDt) header(data []byte) {
	r.Contents = data[:ImmDtLen]
	r.Immediate = be.Uint32(data[0:])
}

// put encodes the header into the first ImmDtLen bytes of data.
func (r *ImmDt) put(data []byte) {
	be.PutUint32(data[0:], r.Immediate)
}

// DecodeFromBytes decodes the header. Payload holds the bytes after the header.
func (r *ImmDt) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	return decodeExtended(r, "ImmDt", ImmDtLen, data, df)
}

// SerializeTo prepends the header to buf.
func (r *ImmDt) SerializeTo(buf gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	return serializeExtended(r, ImmDtLen, buf)
}

// String returns a one-line description.
func (r *ImmDt) String() string {
	return fmt.Sprintf("ImmDt immediate 0x%08x", r.Immediate)
}
