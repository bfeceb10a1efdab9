package rocev2

import "fmt"

// ImmDtLen is the length of an ImmDt in bytes.
const ImmDtLen = 4

// ImmDt is the Immediate Data header (IBTA volume 1, section 9.3.6).
//
//	offset width
//	0      32 bits immediate data, opaque
//
// Decode returns an error that wraps [ErrTruncated] for fewer than 4 bytes.
type ImmDt struct {
	Immediate uint32 // opaque to the transport
}

func (*ImmDt) layout() layout { return layout{LayerTypeImmDt, ImmDtLen} }

func (r *ImmDt) decode(data []byte) {
	r.Immediate = be.Uint32(data[0:])
}

func (r *ImmDt) encode(data []byte) {
	be.PutUint32(data[0:], r.Immediate)
}

// String returns a one-line description.
func (r *ImmDt) String() string {
	return fmt.Sprintf("ImmDt immediate 0x%08x", r.Immediate)
}
