package rocev2

import (
	"fmt"

	"github.com/google/gopacket"
)

// FETHLen is the length of a FETH in bytes.
const FETHLen = 4

// FETH is the FLUSH Extended Transport Header (IBTA volume 1, annex A19).
//
//	offset width
//	0      26 bits reserved
//	3.2    2       SEL, selectivity level: 0 memory range, 1 memory region
//	3.4    4       PLT, placement type: bit 0 global visibility, bit 1 persistence
//
// DecodeFromBytes returns an error that wraps [ErrTruncated] for fewer than 4 bytes.
type FETH struct {
	BaseLayer
	Flags uint32 // the whole word: PLT in b3..0, SEL in b5..4
}

// LayerType returns LayerTypeFETH.
func (r *FETH) LayerType() gopacket.LayerType { return LayerTypeFETH }

// CanDecode returns LayerTypeFETH.
func (r *FETH) CanDecode() gopacket.LayerClass { return LayerTypeFETH }

// NextLayerType returns gopacket.LayerTypePayload.
func (r *FETH) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// header decodes the 4 bytes. The caller has checked the length.
func (r *FETH) header(data []byte) {
	r.Contents = data[:FETHLen]
	r.Flags = be.Uint32(data[0:])
}

// put encodes the header into the first FETHLen bytes of data.
func (r *FETH) put(data []byte) {
	be.PutUint32(data[0:], r.Flags)
}

// DecodeFromBytes decodes the header. Payload holds the bytes after the header.
func (r *FETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	return decodeExtended(r, "FETH", FETHLen, data, df)
}

// SerializeTo prepends the header to buf.
func (r *FETH) SerializeTo(buf gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	return serializeExtended(r, FETHLen, buf)
}

// String returns a one-line description.
func (r *FETH) String() string {
	return fmt.Sprintf("FETH flags 0x%08x", r.Flags)
}
