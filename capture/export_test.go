package capture

// PoisonReleased has released memory overwritten, so that a frame that is
// read after its release shows.
func PoisonReleased() (undo func()) {
	poison = func(b []byte) {
		for i := range b {
			b[i] = 0xdb
		}
	}
	return func() { poison = nil }
}

// The bounds of a batch and of the pool of blocks.
const (
	MaxBatch = maxBatch
	MaxFree  = maxFree
)
