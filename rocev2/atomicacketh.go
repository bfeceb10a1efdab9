package rocev2

import "fmt"

// AtomicAckETHLen is the length of an AtomicAckETH in bytes.
const AtomicAckETHLen = 8

// AtomicAckETH is the Atomic ACK Extended Transport Header (IBTA volume 1, section 9.3.5.3).
//
//	offset width
//	0      64 bits contents of the remote memory before the operation
//
// Decode returns an error that wraps [ErrTruncated] for fewer than 8 bytes.
type AtomicAckETH struct {
	Original uint64 // value before the operation
}

func (*AtomicAckETH) layout() layout { return layout{LayerTypeAtomicAckETH, AtomicAckETHLen} }

func (r *AtomicAckETH) decode(data []byte) {
	r.Original = be.Uint64(data[0:])
}

func (r *AtomicAckETH) encode(data []byte) {
	be.PutUint64(data[0:], r.Original)
}

// String returns a one-line description.
func (r *AtomicAckETH) String() string {
	return fmt.Sprintf("AtomicAckETH original 0x%016x", r.Original)
}
