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
// Fewer than 4 bytes are [ErrTruncated].
type XRCETH struct {
	BaseLayer
	Reserved8 uint8
	XRCSRQ    uint32 // 24 bits
}

// LayerType is LayerTypeXRCETH.
func (d *XRCETH) LayerType() gopacket.LayerType { return LayerTypeXRCETH }

// CanDecode is LayerTypeXRCETH.
func (d *XRCETH) CanDecode() gopacket.LayerClass { return LayerTypeXRCETH }

// NextLayerType is the payload.
func (d *XRCETH) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// header reads the 4 bytes; the caller has proven that they are there.
func (d *XRCETH) header(data []byte) {
	d.Contents = data[:XRCETHLen]
	d.Reserved8 = data[0]
	d.XRCSRQ = be.Uint32(data) & 0xffffff
}

// DecodeFromBytes reads the header; Payload is what follows it.
func (d *XRCETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := cut(&d.BaseLayer, "XRCETH", XRCETHLen, data, df); err != nil {
		return err
	}
	d.header(data)
	return nil
}

// SerializeTo prepends the header.
func (d *XRCETH) SerializeTo(buf gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	data, err := buf.PrependBytes(XRCETHLen)
	if err != nil {
		return err
	}
	be.PutUint32(data, uint32(d.Reserved8)<<24|d.XRCSRQ&0xffffff)
	return nil
}

// String is one line for people.
func (d *XRCETH) String() string { return fmt.Sprintf("XRCETH SRQ 0x%06x", d.XRCSRQ) }
