package rocev2

import "fmt"

// FETHLen is the length of a FETH in bytes.
const FETHLen = 4

// FETH is the FLUSH Extended Transport Header (IBTA volume 1, annex A19).
//
//	offset width
//	0      26 bits reserved
//	3.2    2       SEL, selectivity level: 0 memory range, 1 memory region
//	3.4    4       PLT, placement type: bit 0 global visibility, bit 1 persistence
//
// Decode returns an error that wraps [ErrTruncated] for fewer than 4 bytes.
type FETH struct {
	Flags uint32 // the whole word: PLT in b3..0, SEL in b5..4
}

func (*FETH) layout() layout { return layout{LayerTypeFETH, FETHLen} }

func (r *FETH) decode(data []byte) {
	r.Flags = be.Uint32(data[0:])
}

func (r *FETH) encode(data []byte) {
	be.PutUint32(data[0:], r.Flags)
}

// String returns a one-line description.
func (r *FETH) String() string {
	return fmt.Sprintf("FETH flags 0x%08x", r.Flags)
}
