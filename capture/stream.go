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

// stream reads ahead, in a goroutine, into blocks that it lends out. What is
// left of one block when the next is taken up is copied in front of that, so
// that whoever peeks always gets one piece.
//
// The goroutine writes behind the end of the last block, whoever peeks reads
// before it: what arrives in small pieces is handed out at once and still fills
// a block.
type stream struct {
	block  *block // lent out; nil before the first
	at     int    // start of what is unread in it
	have   int    // end of what was read into it, as far as seen here
	offset int64  // of at in the input
	hold   bool   // neither wait nor leave the block: errLater instead

	ctx context.Context // ends waiting

	pool    *pool
	arrived chan struct{} // there is more, or end is set
	room    chan struct{} // a block was taken out of queue
	done    chan struct{} // nobody wants any more
	close   func()

	mu    sync.Mutex
	queue []*block // behind block, the last one being filled
	end   error    // what comes behind all of them, when not nil
}

const (
	readSize = 256 << 10             // asked of the reader at once
	minRead  = 64 << 10              // with less room, the next block is begun
	headroom = MaxFrame + 80<<10     // more than any peek asks for
	maxPeek  = MaxFrame + 1<<16 + 12 // a pcapng block
	ahead    = 2                     // blocks that wait or are being filled
)

// errLater says that a record is not at hand yet.
var errLater = errors.New("later")

// newStream reads what open makes of the input; open is called by the goroutine
// that reads, since it may wait for the first bytes, and what it returns is
// closed by it, if it can be.
func newStream(ctx context.Context, open func() (io.ReadCloser, error)) *stream {
	s := &stream{
		ctx: ctx, pool: &pool{size: headroom + readSize},
		arrived: make(chan struct{}, 1), room: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.close = sync.OnceFunc(func() { close(s.done) })
	go s.readAhead(open)
	return s
}

// readAhead fills blocks until the input or the interest ends.
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
	for silent := 0; ; {
		if b == nil || len(b.buf)-b.end < minRead {
			if b = s.begin(); b == nil {
				return
			}
		}
		n, err := r.Read(b.buf[b.end:])
		if silent++; n > 0 {
			silent = 0
		} else if silent > 100 && err == nil {
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

// begin queues an empty block, when there is room for it, and nil when nobody
// wants it any more.
func (s *stream) begin() *block {
	b := s.pool.get()
	b.end = headroom
	for {
		s.mu.Lock()
		if len(s.queue) < ahead {
			s.queue = append(s.queue, b)
			s.mu.Unlock()
			return b
		}
		s.mu.Unlock()
		select {
		case <-s.room:
		case <-s.done:
			return nil
		}
	}
}

// filled says that b has n bytes more, and what the reader said beside.
func (s *stream) filled(b *block, n int, err error) {
	s.mu.Lock()
	if n > 0 {
		b.end += n
	}
	s.end = err
	s.mu.Unlock()
	signal(s.arrived)
}

// signal wakes whoever waits for c, or will.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// peek lends the next n bytes, at most maxPeek, without consuming them. When
// the input ends first, it lends what there is together with the reason, io.EOF
// or another.
func (s *stream) peek(n int) ([]byte, error) {
	if s.have-s.at >= n {
		return s.block.buf[s.at : s.at+n], nil
	}
	return s.more(n)
}

// more is peek for bytes that are not in sight yet.
func (s *stream) more(n int) ([]byte, error) {
	for s.have-s.at < n {
		s.mu.Lock()
		switch {
		case s.block != nil && s.block.end > s.have:
			s.have = s.block.end
			s.mu.Unlock()
		case s.hold:
			s.mu.Unlock()
			return nil, errLater
		case len(s.queue) > 0:
			next := s.queue[0]
			s.queue = s.queue[:copy(s.queue, s.queue[1:])]
			end := next.end
			s.mu.Unlock()
			signal(s.room)
			s.takeUp(next, end)
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

// takeUp goes on with the next block, which has been read into up to end.
func (s *stream) takeUp(next *block, end int) {
	left := s.unread()
	copy(next.buf[headroom-len(left):], left)
	if s.block != nil {
		s.block.release()
	}
	s.block, s.at, s.have = next, headroom-len(left), end
}

// wait waits for the reader.
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

// atHand says whether n bytes can be had, for those who must not begin what they
// cannot end: always, unless there is only what is at hand.
func (s *stream) atHand(n int64) bool {
	if !s.hold {
		return true
	}
	if n > maxPeek {
		return false
	}
	_, err := s.peek(int(n))
	return err == nil
}

// discard consumes n bytes that peek has lent.
func (s *stream) discard(n int) {
	s.at += n
	s.offset += int64(n)
}

// skip consumes n bytes, read or not. When the input ends before, it has
// consumed nothing that an offset would tell of.
func (s *stream) skip(n int64) error {
	start := s.offset
	for n > 0 {
		step := int(min(n, readSize))
		if got, err := s.peek(step); err != nil {
			s.at, s.offset = s.at+len(got), start
			return err
		}
		s.discard(step)
		n -= int64(step)
	}
	return nil
}

// cutShort words the end of an input inside of something.
func cutShort(what string, need, have int, err error) error {
	switch err {
	case errLater:
		return err
	case io.EOF, io.ErrUnexpectedEOF:
		return fmt.Errorf("%s needs %d bytes, the input ends after %d: %w", what, need, have, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Panic is a panic of a goroutine of this package's, which panics again with it
// where frames are read.
type Panic struct {
	Value any    // what it panicked with first
	Stack []byte // where that was
}

// Error is the first panic's text.
func (p *Panic) Error() string { return fmt.Sprint(p.Value) }
