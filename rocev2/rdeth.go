package rocev2

import (
	"fmt"

	"github.com/google/gopacket"
)

// RDETHLen is the length of an RDETH in bytes.
const RDETHLen = 4

// RDETH is the Reliable Datagram Extended Transport Header (IBTA volume 1, section 9.3.1).
//
//	offset width
//	0      8 bits  reserved
//	1      24      end-to-end context
//
// DecodeFromBytes returns an error that wraps [ErrTruncated] for fewer than 4 bytes.
type RDETH struct {
	BaseLayer
	Reserved8 uint8
	EEContext uint32 // 24 bits
}

// LayerType returns LayerTypeRDETH.
func (d *RDETH) LayerType() gopacket.LayerType { return LayerTypeRDETH }

// CanDecode returns LayerTypeRDETH.
func (d *RDETH) CanDecode() gopacket.LayerClass { return LayerTypeRDETH }

// NextLayerType returns gopacket.LayerTypePayload.
func (d *RDETH) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// header decodes the 4 bytes. The caller has checked the length.
func (d *RDETH) header(data []byte) {
	d.Contents = data[:RDETHLen]
	d.Reserved8 = data[0]
	d.EEContext = be.Uint32(data) & 0xffffff
}

// put encodes the header into the first RDETHLen bytes of data.
func (d *RDETH) put(data []byte) {
	be.PutUint32(data, uint32(d.Reserved8)<<24|d.EEContext&0xffffff)
}

// DecodeFromBytes decodes the header. Payload holds the bytes after the header.
func (d *RDETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	return decodeExtended(d, "RDETH", RDETHLen, data, df)
}

// SerializeTo prepends the header to buf.
func (d *RDETH) SerializeTo(buf gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	return serializeExtended(d, RDETHLen, buf)
}

// String returns a one-line description.
func (d *RDETH) String() string { return fmt.Sprintf("RDETH EE context 0x%06x", d.EEContext) }
