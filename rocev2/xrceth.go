package rocev2

import "fmt"

// XRCETHLen is the length of an XRCETH in bytes.
const XRCETHLen = 4

// XRCETH is the XRC Extended Transport Header (IBTA volume 1, annex A14).
//
//	offset width
//	0      8 bits  reserved
//	1      24      XRC shared receive queue
//
// Decode returns an error that wraps [ErrTruncated] for fewer than 4 bytes.
type XRCETH struct {
	Reserved8 uint8
	XRCSRQ    uint32 // 24 bits
}

func (*XRCETH) layout() layout { return layout{LayerTypeXRCETH, XRCETHLen} }

func (d *XRCETH) decode(data []byte) {
	d.Reserved8 = data[0]
	d.XRCSRQ = be.Uint32(data) & 0xffffff
}

func (d *XRCETH) encode(data []byte) {
	be.PutUint32(data, uint32(d.Reserved8)<<24|d.XRCSRQ&0xffffff)
}

// String returns a one-line description.
func (d *XRCETH) String() string { return fmt.Sprintf("XRCETH SRQ 0x%06x", d.XRCSRQ) }
