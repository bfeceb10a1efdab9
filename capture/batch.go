package capture

import (
	"sync"
	"sync/atomic"
)

// maxBatch is the maximum number of frames in a batch. It is large enough to make the cost per
// batch negligible and small enough that the frames stay in the processor's cache.
const maxBatch = 256

// Batch holds a run of frames. The zero value is ready to be filled. Filling the same Batch
// repeatedly allocates nothing. A program that uses several batches at the same time needs one
// Batch for each.
type Batch struct {
	// Frames holds the frames in the order in which [Source] returns them. The slice and the bytes
	// of the frames are valid until Release is called or the batch is filled again, even after the
	// source is closed.
	Frames []Frame

	blocks []*block // the blocks that contain the bytes of Frames
}

// Release returns the memory of the batch to the source, which reuses it for later frames. Release
// may be called from another goroutine than the one that fills batches, and calling it twice is
// harmless.
func (b *Batch) Release() {
	for i, h := range b.blocks {
		h.release()
		b.blocks[i] = nil
	}
	b.blocks, b.Frames = b.blocks[:0], b.Frames[:0]
}

// begin empties the batch and allocates space for maxBatch frames.
func (b *Batch) begin() {
	b.Release()
	if cap(b.Frames) < maxBatch {
		b.Frames = make([]Frame, 0, maxBatch)
	}
}

// hold prevents h from being reused until the batch is released.
func (b *Batch) hold(h *block) {
	h.uses.Add(1)
	b.blocks = append(b.blocks, h)
}

// block is a piece of memory that contains frames. Its users are the stream that reads into it and
// every batch that has frames in it. When the last user releases the block, it goes back to the
// pool.
type block struct {
	buf   []byte
	start int // start of the bytes that were read and not joined with those of another block
	end   int // end of the bytes that were read; guarded by the stream's lock
	uses  atomic.Int32
	pool  *pool
}

func (b *block) release() {
	if b.uses.Add(-1) == 0 {
		b.pool.put(b)
	}
}

// pool keeps released blocks of one size for reuse.
type pool struct {
	headroom int // bytes in front of the data of a block, for the unread rest of the block before it
	read     int // bytes of data

	mu   sync.Mutex
	free []*block
}

// maxFree is the maximum number of unused blocks in a pool. More blocks are in use only if the
// program holds many batches.
const maxFree = 8

// get returns a block that has one user.
func (p *pool) get() *block {
	p.mu.Lock()
	var b *block
	if last := len(p.free) - 1; last >= 0 {
		b, p.free = p.free[last], p.free[:last]
	}
	p.mu.Unlock()
	if b == nil {
		b = &block{buf: make([]byte, p.size()), pool: p}
	}
	b.uses.Store(1)
	return b
}

func (p *pool) put(b *block) {
	if poison != nil {
		poison(b.buf)
	}
	p.mu.Lock()
	if len(p.free) < maxFree && len(b.buf) == p.size() {
		p.free = append(p.free, b)
	}
	p.mu.Unlock()
}

// poison overwrites released memory. It is set in tests only.
var poison func([]byte)
