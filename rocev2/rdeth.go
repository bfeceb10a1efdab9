package rocev2

import "fmt"

// RDETHLen is the length of an RDETH in bytes.
const RDETHLen = 4

// RDETH is the Reliable Datagram Extended Transport Header (IBTA volume 1, section 9.3.1).
//
//	offset width
//	0      8 bits  reserved
//	1      24      end-to-end context
//
// Decode returns an error that wraps [ErrTruncated] for fewer than 4 bytes.
type RDETH struct {
	Reserved8 uint8
	EEContext uint32 // 24 bits
}

func (*RDETH) layout() layout { return layout{LayerTypeRDETH, RDETHLen} }

func (d *RDETH) decode(data []byte) {
	d.Reserved8 = data[0]
	d.EEContext = be.Uint32(data) & 0xffffff
}

func (d *RDETH) encode(data []byte) {
	be.PutUint32(data, uint32(d.Reserved8)<<24|d.EEContext&0xffffff)
}

// String returns a one-line description.
func (d *RDETH) String() string { return fmt.Sprintf("RDETH EE context 0x%06x", d.EEContext) }
