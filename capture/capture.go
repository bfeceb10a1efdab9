// Package capture reads packets: pcap and pcapng files, plain, gzip or zstd,
// one or several merged by time, from a path or standard input; and a live
// interface. Package link finds what RDMA traffic a frame carries.
//
// A frame's bytes are valid until the next frame is read; whoever keeps any
// copies them. Reading allocates nothing per frame.
//
// The readers are the project's own, not pcapgo's: they name the offset at
// which a damaged file breaks and what was read there, hand out frames without
// a copy, and take captures that pcapgo refuses (a record longer than the
// header's snapshot length, interfaces of several link types).
package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// MaxFrame bounds a record's captured bytes, as libpcap and Wireshark do: a
// length beyond it is damage, not data.
const MaxFrame = 262144

// Frame is one captured frame.
type Frame struct {
	Number   int64    // counts from 1 over all files
	Time     int64    // nanoseconds since 1970 UTC
	LinkType LinkType // of the interface that captured it
	Length   int      // bytes on the wire; Data may hold fewer
	Data     []byte   // valid until the next frame is read
}

// Timestamp is the frame's time as a time.Time in UTC.
func (f *Frame) Timestamp() time.Time { return time.Unix(0, f.Time).UTC() }

// Source yields frames in order.
type Source interface {
	// Next fills in the next frame. It returns io.EOF at the end, and a
	// *BrokenError when the input cannot be read on.
	Next(f *Frame) error
}

// ErrFormat is wrapped by errors of inputs that are no capture at all.
var ErrFormat = errors.New("not a capture file")

// BrokenError says where and how an input broke off.
type BrokenError struct {
	Name   string // of the input
	Offset int64  // of the record that could not be read, in decompressed bytes
	Frames int64  // read before it
	Err    error  // what was wrong
}

// Error is one line for people.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("%s: broken at byte %d, after %d packets: %v", e.Name, e.Offset, e.Frames, e.Err)
}

// Unwrap is the cause.
func (e *BrokenError) Unwrap() error { return e.Err }

// stream reads ahead, in a goroutine, and lends its buffers out. What is left
// of one buffer when the next is taken up is copied in front of that, so that
// whoever peeks always gets one piece.
type stream struct {
	buf    []byte
	at     int   // start of what is unread in buf
	have   int   // end of it
	offset int64 // of buf[at] in the input
	err    error // what the reader said last

	full chan filled
	free chan []byte
	done chan struct{}

	ctx  context.Context // ends waiting, when not nil
	idle func()          // called while waiting, when not nil
}

// filled is a buffer with n bytes behind its headroom, or the reader's error.
type filled struct {
	buf []byte
	n   int
	err error
}

const (
	readSize = 256 << 10             // asked of the reader at once
	headroom = MaxFrame + 80<<10     // more than any peek asks for
	buffers  = 3                     // one lent out, one full, one being filled
	maxPeek  = MaxFrame + 1<<16 + 12 // a pcapng block
)

func newStream(r io.Reader) *stream {
	s := &stream{full: make(chan filled, buffers), free: make(chan []byte, buffers), done: make(chan struct{})}
	for range buffers {
		s.free <- nil // made when it is needed: short inputs need one
	}
	go s.readAhead(r)
	return s
}

// readAhead fills buffers until the input or the interest ends.
func (s *stream) readAhead(r io.Reader) {
	for {
		var buf []byte
		select {
		case buf = <-s.free:
		case <-s.done:
			return
		}
		if buf == nil {
			buf = make([]byte, headroom+readSize)
		}
		n, err := r.Read(buf[headroom:])
		s.full <- filled{buf, n, err}
		if err != nil {
			return
		}
	}
}

// close ends reading ahead, as soon as the reader returns.
func (s *stream) close() { close(s.done) }

// peek lends the next n bytes, at most maxPeek, without consuming them. When
// the input ends first, it lends what there is together with the reason, io.EOF
// or another.
func (s *stream) peek(n int) ([]byte, error) {
	for s.have-s.at < n {
		if s.err != nil {
			return s.buf[s.at:s.have], s.err
		}
		next := s.wait()
		s.err = next.err
		if next.buf == nil { // the wait was ended
			return s.buf[s.at:s.have], s.err
		}
		left := s.have - s.at
		copy(next.buf[headroom-left:], s.buf[s.at:s.have])
		if s.buf != nil {
			s.free <- s.buf
		}
		s.buf, s.at, s.have = next.buf, headroom-left, headroom+next.n
	}
	return s.buf[s.at : s.at+n], nil
}

// wait takes up the next buffer.
func (s *stream) wait() filled {
	if s.ctx == nil {
		return <-s.full
	}
	for {
		select {
		case next := <-s.full:
			return next
		case <-s.ctx.Done():
			return filled{err: io.EOF}
		case <-time.After(idleEvery):
			s.idle()
		}
	}
}

// idleEvery is how often a reader that waits lets others do something.
const idleEvery = 25 * time.Millisecond

// discard consumes n bytes that peek has lent.
func (s *stream) discard(n int) {
	s.at += n
	s.offset += int64(n)
}

// skip consumes n bytes, read or not.
func (s *stream) skip(n int64) error {
	for n > 0 {
		step := int(min(n, readSize))
		got, err := s.peek(step)
		if err != nil {
			s.discard(len(got))
			return err
		}
		s.discard(step)
		n -= int64(step)
	}
	return nil
}

// cutShort words the end of an input inside of something.
func cutShort(what string, need, have int, err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%s needs %d bytes, the input ends after %d: %w", what, need, have, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("%s: %w", what, err)
}
