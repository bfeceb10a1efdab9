package rocev2

import (
	"fmt"

	"github.com/google/gopacket"
)

// IETHLen is the length of an IETH in bytes.
const IETHLen = 4

// IETH is the Invalidate Extended Transport Header (IBTA volume 1, section 9.3.7).
//
//	offset width
//	0      32 bits R_Key that the receiver invalidates
//
// DecodeFromBytes returns an error that wraps [ErrTruncated] for fewer than 4 bytes.
type IETH struct {
	BaseLayer
	RKey uint32 // handle to invalidate
}

// LayerType returns LayerTypeIETH.
func (r *IETH) LayerType() gopacket.LayerType { return LayerTypeIETH }

// CanDecode returns LayerTypeIETH.
func (r *IETH) CanDecode() gopacket.LayerClass { return LayerTypeIETH }

// NextLayerType returns gopacket.LayerTypePayload.
func (r *IETH) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// header decodes the 4 bytes. The caller has checked the length.
func (r *IETH) header(data []byte) {
	r.Contents = data[:IETHLen]
	r.RKey = be.Uint32(data[0:])
}

// put encodes the header into the first IETHLen bytes of data.
func (r *IETH) put(data []byte) {
	be.PutUint32(data[0:], r.RKey)
}

// DecodeFromBytes decodes the header. Payload holds the bytes after the header.
func (r *IETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	return decodeExtended(r, "IETH", IETHLen, data, df)
}

// SerializeTo prepends the header to buf.
func (r *IETH) SerializeTo(buf gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	return serializeExtended(r, IETHLen, buf)
}

// String returns a one-line description.
func (r *IETH) String() string {
	return fmt.Sprintf("IETH invalidate R_Key 0x%08x", r.RKey)
}
