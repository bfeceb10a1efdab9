package rocev2

import (
	"fmt"

	"github.com/google/gopacket"
)

// XRCETHLen is the length of an XRCETH in bytes.
const XRCETHLen = 4

// XRCETH is the XRC Extended Transport Header (IBTA volume 1, annex A14).
//
//	offset width
//	0      8 bits  reserved
//	1      24      XRC shared receive queue
//
// DecodeFromBytes returns an error that wraps [ErrTruncated] for fewer than 4 bytes.
type XRCETH struct {
	BaseLayer
	Reserved8 uint8
	XRCSRQ    uint32 // 24 bits
}

// LayerType returns LayerTypeXRCETH.
func (d *XRCETH) LayerType() gopacket.LayerType { return LayerTypeXRCETH }

// CanDecode returns LayerTypeXRCETH.
func (d *XRCETH) CanDecode() gopacket.LayerClass { return LayerTypeXRCETH }

// NextLayerType returns gopacket.LayerTypePayload.
func (d *XRCETH) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// header decodes the 4 bytes. The caller has checked the length.
func (d *XRCETH) header(data []byte) {
	d.Contents = data[:XRCETHLen]
	d.Reserved8 = data[0]
	d.XRCSRQ = be.Uint32(data) & 0xffffff
}

// put encodes the header into the first XRCETHLen bytes of data.
func (d *XRCETH) put(data []byte) {
	be.PutUint32(data, uint32(d.Reserved8)<<24|d.XRCSRQ&0xffffff)
}

// DecodeFromBytes decodes the header. Payload holds the bytes after the header.
func (d *XRCETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	return decodeExtended(d, "XRCETH", XRCETHLen, data, df)
}

// SerializeTo prepends the header to buf.
func (d *XRCETH) SerializeTo(buf gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	return serializeExtended(d, XRCETHLen, buf)
}

// String returns a one-line description.
func (d *XRCETH) String() string { return fmt.Sprintf("XRCETH SRQ 0x%06x", d.XRCSRQ) }
