package capture

import (
	"bytes"
	"io/fs"
)

// PoisonReleased makes the package overwrite released memory, so that reading a frame after its
// release shows wrong bytes.
func PoisonReleased() (undo func()) {
	poison = func(b []byte) {
		for i := range b {
			b[i] = 0xdb
		}
	}
	return func() { poison = nil }
}

// These are the limits of a batch and of the pool of blocks.
const (
	MaxBatch = maxBatch
	MaxFree  = maxFree
)

// SpanIn returns the span of a file's content.
func SpanIn(raw []byte) (Span, bool) { return spanOf(bytes.NewReader(raw), int64(len(raw))) }

// InWalk is [In] with a function that walks through the folder.
func InWalk(folder string, walk func(string, fs.WalkDirFunc) error) ([]string, error) {
	return in(folder, walk)
}
