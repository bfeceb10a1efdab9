package rocev2

import "fmt"

// IETHLen is the length of an IETH in bytes.
const IETHLen = 4

// IETH is the Invalidate Extended Transport Header (IBTA volume 1, section 9.3.7).
//
//	offset width
//	0      32 bits R_Key that the receiver invalidates
//
// Decode returns an error that wraps [ErrTruncated] for fewer than 4 bytes.
type IETH struct {
	RKey uint32 // handle to invalidate
}

func (*IETH) layout() layout { return layout{LayerTypeIETH, IETHLen} }

func (r *IETH) decode(data []byte) {
	r.RKey = be.Uint32(data[0:])
}

func (r *IETH) encode(data []byte) {
	be.PutUint32(data[0:], r.RKey)
}

// String returns a one-line description.
func (r *IETH) String() string {
	return fmt.Sprintf("IETH invalidate R_Key 0x%08x", r.RKey)
}
