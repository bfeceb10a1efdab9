package rocev2

import "fmt"

// RETHLen is the length of a RETH in bytes.
const RETHLen = 16

// RETH is the RDMA Extended Transport Header (IBTA volume 1, section 9.3.3).
//
//	offset width
//	0      64 bits virtual address of the remote buffer, bytes
//	8      32      R_Key
//	12     32      DMA length, bytes
//
// Decode returns an error that wraps [ErrTruncated] for fewer than 16 bytes.
type RETH struct {
	VirtualAddress uint64 // remote address, bytes
	RKey           uint32 // handle of the remote memory
	DMALength      uint32 // bytes of the whole operation
}

func (*RETH) layout() layout { return layout{LayerTypeRETH, RETHLen} }

func (r *RETH) decode(data []byte) {
	r.VirtualAddress = be.Uint64(data[0:])
	r.RKey = be.Uint32(data[8:])
	r.DMALength = be.Uint32(data[12:])
}

func (r *RETH) encode(data []byte) {
	be.PutUint64(data[0:], r.VirtualAddress)
	be.PutUint32(data[8:], r.RKey)
	be.PutUint32(data[12:], r.DMALength)
}

// String returns a one-line description.
func (r *RETH) String() string {
	return fmt.Sprintf("RETH R_Key 0x%08x VA 0x%016x length %d", r.RKey, r.VirtualAddress, r.DMALength)
}
