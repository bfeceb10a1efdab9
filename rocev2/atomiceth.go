package rocev2

import "fmt"

// AtomicETHLen is the length of an AtomicETH in bytes.
const AtomicETHLen = 28

// AtomicETH is the Atomic Extended Transport Header (IBTA volume 1, section 9.3.4).
//
//	offset width
//	0      64 bits virtual address
//	8      32      R_Key
//	12     64      swap (CmpSwap) or add (FetchAdd) data
//	20     64      compare data
//
// Decode returns an error that wraps [ErrTruncated] for fewer than 28 bytes.
type AtomicETH struct {
	VirtualAddress uint64 // remote address, bytes
	RKey           uint32 // handle of the remote memory
	SwapAdd        uint64 // swap or add operand
	Compare        uint64 // compare operand
}

func (*AtomicETH) layout() layout { return layout{LayerTypeAtomicETH, AtomicETHLen} }

func (r *AtomicETH) decode(data []byte) {
	r.VirtualAddress = be.Uint64(data[0:])
	r.RKey = be.Uint32(data[8:])
	r.SwapAdd = be.Uint64(data[12:])
	r.Compare = be.Uint64(data[20:])
}

func (r *AtomicETH) encode(data []byte) {
	be.PutUint64(data[0:], r.VirtualAddress)
	be.PutUint32(data[8:], r.RKey)
	be.PutUint64(data[12:], r.SwapAdd)
	be.PutUint64(data[20:], r.Compare)
}

// String returns a one-line description.
func (r *AtomicETH) String() string {
	return fmt.Sprintf("AtomicETH R_Key 0x%08x VA 0x%016x swap/add 0x%016x compare 0x%016x", r.RKey, r.VirtualAddress, r.SwapAdd, r.Compare)
}
