package rocev2

import (
	"fmt"

	"github.com/google/gopacket"
)

// DETHLen is the length of a DETH in bytes.
const DETHLen = 8

// DETH is the Datagram Extended Transport Header (IBTA volume 1, section 9.3.2).
//
//	offset width
//	0      32 bits Q_Key
//	4      8       reserved
//	5      24      source QPN
//
// DecodeFromBytes returns an error that wraps [ErrTruncated] for fewer than 8 bytes.
type DETH struct {
	BaseLayer
	QKey      uint32
	Reserved8 uint8
	SourceQPN uint32 // 24 bits
}

// LayerType returns LayerTypeDETH.
func (d *DETH) LayerType() gopacket.LayerType { return LayerTypeDETH }

// CanDecode returns LayerTypeDETH.
func (d *DETH) CanDecode() gopacket.LayerClass { return LayerTypeDETH }

// NextLayerType returns gopacket.LayerTypePayload.
func (d *DETH) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// header decodes the 8 bytes. The caller has checked the length.
func (d *DETH) header(data []byte) {
	d.Contents = data[:DETHLen]
	d.QKey = be.Uint32(data)
	d.Reserved8 = data[4]
	d.SourceQPN = be.Uint32(data[4:]) & 0xffffff
}

// put encodes the header into the first DETHLen bytes of data.
func (d *DETH) put(data []byte) {
	be.PutUint32(data, d.QKey)
	be.PutUint32(data[4:], uint32(d.Reserved8)<<24|d.SourceQPN&0xffffff)
}

// DecodeFromBytes decodes the header. Payload holds the bytes after the header.
func (d *DETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	return decodeExtended(d, "DETH", DETHLen, data, df)
}

// SerializeTo prepends the header to buf.
func (d *DETH) SerializeTo(buf gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	return serializeExtended(d, DETHLen, buf)
}

// String returns a one-line description.
func (d *DETH) String() string {
	return fmt.Sprintf("DETH Q_Key 0x%08x source QPN 0x%06x", d.QKey, d.SourceQPN)
}
