package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
)

// stream reads ahead in a goroutine, into blocks that it shares with batches. When the reader moves
// on to the next block, the unread rest of the last block is copied in front of the new block's
// data, so that peek always returns contiguous bytes. If the rest is longer than the space there, both are
// copied to a block of their own.
//
// The goroutine only writes after the end of the last block's data, and peek only reads before that
// end. So small pieces of input are available at once, and several of them share a block.
type stream struct {
	block  *block // block that is being read; nil before the first
	at     int    // start of the unread bytes in block
	have   int    // end of the bytes in block, as far as the reading side knows
	offset int64  // offset of at in the input
	hold   bool   // return errNotYet instead of waiting or moving on to another block

	ctx context.Context // ends waiting

	pool    *pool
	arrived chan struct{} // signals that data arrived or end was set
	space   chan struct{} // signals that a block was removed from queue
	done    chan struct{} // closed when the caller no longer needs data
	close   func()

	mu    sync.Mutex
	queue []*block // blocks after block; the last one is being filled
	end   error    // error that follows the data of all blocks, nil while reading
}

const (
	maxPeek = MaxFrame + 1<<16 + 12 // length of a pcapng block
	ahead   = 2                     // maximum number of blocks in queue
)

// errNotYet means that the record has not arrived completely.
var errNotYet = errors.New("the record has not arrived yet")

// newPool returns a pool of blocks for a stream. The unread rest of a block always fits in front of the data of the next one.
func newPool() *pool { return &pool{headroom: MaxFrame + 80<<10, read: 256 << 10} }

// size returns the size of a block in bytes.
func (p *pool) size() int { return p.headroom + p.read }

// newStream reads the reader that open returns, into blocks of a pool. The reading goroutine calls open, because open may
// wait for the first bytes, and closes the reader.
func newStream(ctx context.Context, p *pool, open func() (io.ReadCloser, error)) *stream {
	s := &stream{
		ctx: ctx, pool: p,
		arrived: make(chan struct{}, 1), space: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.close = sync.OnceFunc(func() { close(s.done) })
	go s.readAhead(open)
	return s
}

// readAhead fills blocks until the input ends or the stream is closed.
func (s *stream) readAhead(open func() (io.ReadCloser, error)) {
	defer func() {
		if v := recover(); v != nil {
			s.filled(nil, 0, &Panic{Value: v, Stack: debug.Stack()})
		}
	}()
	r, err := open()
	if err != nil {
		s.filled(nil, 0, err)
		return
	}
	defer r.Close()
	var b *block
	for emptyReads := 0; ; {
		if b == nil || len(b.buf)-b.end < s.pool.read/4 { // Otherwise reads would become short.
			if b = s.begin(); b == nil {
				return
			}
		}
		n, err := r.Read(b.buf[b.end:])
		if emptyReads++; n > 0 {
			emptyReads = 0
		} else if emptyReads > 100 && err == nil {
			err = io.ErrNoProgress
		}
		s.filled(b, n, err)
		if err != nil {
			return
		}
		select {
		case <-s.done:
			return
		default:
		}
	}
}

// begin queues an empty block as soon as the queue has space for it. It returns nil if the stream
// is closed.
func (s *stream) begin() *block {
	b := s.pool.get()
	b.start, b.end = s.pool.headroom, s.pool.headroom
	for {
		s.mu.Lock()
		if len(s.queue) < ahead {
			s.queue = append(s.queue, b)
			s.mu.Unlock()
			return b
		}
		s.mu.Unlock()
		select {
		case <-s.space:
		case <-s.done:
			return nil
		}
	}
}

// filled records that b has n more bytes, and the reader's error.
func (s *stream) filled(b *block, n int, err error) {
	s.mu.Lock()
	if n > 0 {
		b.end += n
	}
	s.end = err
	s.mu.Unlock()
	signal(s.arrived)
}

// signal wakes the goroutine that waits for c, now or later.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// recycle returns the blocks to the pool, if nothing writes to them any more. Nothing can be read afterwards.
func (s *stream) recycle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		return
	}
	if s.block != nil {
		s.block.release()
	}
	for _, b := range s.queue {
		b.release()
	}
	s.block, s.queue, s.at, s.have = nil, nil, 0, 0
}

// peek returns the next n bytes, at most maxPeek, without consuming them. If the input ends first,
// peek returns the bytes that are left and the error, io.EOF or another.
func (s *stream) peek(n int) ([]byte, error) {
	if s.have-s.at >= n {
		return s.block.buf[s.at : s.at+n], nil
	}
	return s.more(n)
}

// more is the slow path of peek, for bytes that the reading side has not seen yet.
func (s *stream) more(n int) ([]byte, error) {
	for s.have-s.at < n {
		s.mu.Lock()
		switch {
		case s.block != nil && s.block.end > s.have:
			s.have = s.block.end
			s.mu.Unlock()
		case s.hold:
			s.mu.Unlock()
			return nil, errNotYet
		case len(s.queue) > 0 && s.have-s.at > s.pool.headroom && s.queue[0].end > s.queue[0].start:
			s.join(s.queue[0])
			s.mu.Unlock()
		case len(s.queue) > 1, len(s.queue) > 0 && (s.end != nil || s.have-s.at <= s.pool.headroom):
			next := s.queue[0]
			s.queue = s.queue[:copy(s.queue, s.queue[1:])]
			end := next.end
			s.mu.Unlock()
			signal(s.space)
			s.nextBlock(next, end)
		case s.end != nil:
			err := s.end
			s.mu.Unlock()
			if p, failed := err.(*Panic); failed {
				panic(p)
			}
			return s.unread(), err
		default:
			s.mu.Unlock()
			if err := s.wait(); err != nil {
				return s.unread(), err
			}
		}
	}
	return s.block.buf[s.at : s.at+n], nil
}

func (s *stream) unread() []byte {
	if s.block == nil {
		return nil
	}
	return s.block.buf[s.at:s.have]
}

// nextBlock moves on to the next block, which holds data up to end. A block whose data were joined with a longer rest than fits in
// front of them is skipped.
func (s *stream) nextBlock(next *block, end int) {
	left := s.unread()
	if len(left) > next.start {
		next.release()
		return
	}
	copy(next.buf[next.start-len(left):], left)
	if s.block != nil {
		s.block.release()
	}
	s.block, s.at, s.have = next, next.start-len(left), end
}

// join moves the unread rest and the data of the next block, which stays in the queue because more is read into it, to a block
// of their own. The caller holds the lock.
func (s *stream) join(next *block) {
	left, more := s.unread(), next.buf[next.start:next.end]
	joined := &block{buf: append(append(make([]byte, 0, len(left)+len(more)), left...), more...), pool: s.pool}
	joined.uses.Store(1)
	joined.end, next.start = len(joined.buf), next.end
	s.block.release()
	s.block, s.at, s.have = joined, 0, joined.end
}

// wait waits until the goroutine has read something.
func (s *stream) wait() error {
	select {
	case <-s.arrived:
	case <-s.ctx.Done():
		return io.EOF
	case <-s.done:
		return os.ErrClosed
	}
	return nil
}

// available reports whether n bytes can be read. Callers that cannot stop in the middle of a block use
// it. The result is always true if the stream may wait.
func (s *stream) available(n int64) bool {
	if !s.hold {
		return true
	}
	if n > maxPeek {
		return false
	}
	_, err := s.peek(int(n))
	return err == nil
}

// discard consumes n bytes that peek returned.
func (s *stream) discard(n int) {
	s.at += n
	s.offset += int64(n)
}

// skip consumes n bytes that need not have been read yet. If the input ends first, the offset does
// not change.
func (s *stream) skip(n int64) error {
	start := s.offset
	for n > 0 {
		step := int(min(n, int64(s.pool.headroom)))
		if got, err := s.peek(step); err != nil {
			s.at, s.offset = s.at+len(got), start
			return err
		}
		s.discard(step)
		n -= int64(step)
	}
	return nil
}

// truncatedAt returns the error for an input that ends inside of the named structure.
func truncatedAt(what string, need, have int, err error) error {
	switch err {
	case errNotYet:
		return err
	case io.EOF, io.ErrUnexpectedEOF:
		return fmt.Errorf("%s needs %d bytes, %d available: %w", what, need, have, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Panic carries a panic of the reading goroutine. The goroutine that reads frames panics with it.
type Panic struct {
	Value any    // value of the original panic
	Stack []byte // stack of the original panic
}

// Error returns the text of the original panic.
func (p *Panic) Error() string { return fmt.Sprint(p.Value) }
