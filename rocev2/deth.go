package rocev2

import "fmt"

// DETHLen is the length of a DETH in bytes.
const DETHLen = 8

// DETH is the Datagram Extended Transport Header (IBTA volume 1, section 9.3.2).
//
//	offset width
//	0      32 bits Q_Key
//	4      8       reserved
//	5      24      source QPN
//
// Decode returns an error that wraps [ErrTruncated] for fewer than 8 bytes.
type DETH struct {
	QKey      uint32
	Reserved8 uint8
	SourceQPN uint32 // 24 bits
}

func (*DETH) layout() layout { return layout{LayerTypeDETH, DETHLen} }

func (d *DETH) decode(data []byte) {
	d.QKey = be.Uint32(data)
	d.Reserved8 = data[4]
	d.SourceQPN = be.Uint32(data[4:]) & 0xffffff
}

func (d *DETH) encode(data []byte) {
	be.PutUint32(data, d.QKey)
	be.PutUint32(data[4:], uint32(d.Reserved8)<<24|d.SourceQPN&0xffffff)
}

// String returns a one-line description.
func (d *DETH) String() string {
	return fmt.Sprintf("DETH Q_Key 0x%08x source QPN 0x%06x", d.QKey, d.SourceQPN)
}
