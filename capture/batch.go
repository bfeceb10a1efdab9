package capture

import (
	"sync"
	"sync/atomic"
)

// maxBatch is how many frames a batch holds at most: enough that what a batch
// costs is nothing beside them, few enough that they stay in the cache.
const maxBatch = 256

// Batch is a run of frames. The zero value is ready to be filled. A Batch that
// is filled again and again allocates nothing; batches in flight need one Batch
// each.
type Batch struct {
	// Frames are in order, as [Source] hands them out. The slice and the bytes
	// of the frames are valid until Release, or until the batch is filled again,
	// also beyond the source's Close.
	Frames []Frame

	held []*block // that the bytes are in
}

// Release gives the bytes of the batch back to the source, which reads the next
// into the same place. It may be called by another goroutine than the one that
// fills batches, and again without harm.
func (b *Batch) Release() {
	for i, h := range b.held {
		h.release()
		b.held[i] = nil
	}
	b.held, b.Frames = b.held[:0], b.Frames[:0]
}

// begin empties the batch, and makes room for the most that it may hold.
func (b *Batch) begin() {
	b.Release()
	if cap(b.Frames) < maxBatch {
		b.Frames = make([]Frame, 0, maxBatch)
	}
}

// hold keeps a block until the batch is released.
func (b *Batch) hold(h *block) {
	h.uses.Add(1)
	b.held = append(b.held, h)
}

// block is a piece of memory that frames lie in: of the stream that it belongs
// to, and of each batch that has frames in it. When the last lets go, it goes
// back to the pool.
type block struct {
	buf  []byte
	end  int // of what was read; the stream's lock guards it
	uses atomic.Int32
	pool *pool
}

func (b *block) release() {
	if b.uses.Add(-1) == 0 {
		b.pool.put(b)
	}
}

// pool keeps blocks of one size for their next use.
type pool struct {
	size int
	mu   sync.Mutex
	free []*block
}

// maxFree is how many blocks a pool keeps: more are needed only while batches
// pile up.
const maxFree = 8

// get lends a block, of one user.
func (p *pool) get() *block {
	p.mu.Lock()
	var b *block
	if last := len(p.free) - 1; last >= 0 {
		b, p.free = p.free[last], p.free[:last]
	}
	p.mu.Unlock()
	if b == nil {
		b = &block{buf: make([]byte, p.size), pool: p}
	}
	b.uses.Store(1)
	return b
}

func (p *pool) put(b *block) {
	if poison != nil {
		poison(b.buf)
	}
	p.mu.Lock()
	if len(p.free) < maxFree {
		p.free = append(p.free, b)
	}
	p.mu.Unlock()
}

// poison overwrites what was released, in tests.
var poison func([]byte)
