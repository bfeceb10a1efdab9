// Package capture reads packets: pcap and pcapng files, plain, gzip or zstd,
// one or several merged by time, from a path or standard input. [Link] finds
// what RDMA traffic a frame carries.
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

// stream is a buffered reader that lends its buffer out.
type stream struct {
	r      io.Reader
	buf    []byte
	at     int   // start of what is unread in buf
	have   int   // end of it
	offset int64 // of buf[at] in the input
	err    error // what the reader said last
}

// streamBuffer holds a few hundred frames, so that a read is rare.
const streamBuffer = 1 << 20

func newStream(r io.Reader) *stream { return &stream{r: r, buf: make([]byte, streamBuffer)} }

// peek lends the next n bytes without consuming them. When the input ends
// first, it lends what there is together with the reason, io.EOF or another.
func (s *stream) peek(n int) ([]byte, error) {
	for s.have-s.at < n {
		if s.err != nil {
			return s.buf[s.at:s.have], s.err
		}
		if s.at > 0 && s.at+n > len(s.buf) {
			s.have = copy(s.buf, s.buf[s.at:s.have])
			s.at = 0
		}
		if n > len(s.buf) {
			grown := make([]byte, n)
			s.have = copy(grown, s.buf[s.at:s.have])
			s.buf, s.at = grown, 0
		}
		var got int
		got, s.err = s.r.Read(s.buf[s.have:])
		s.have += got
	}
	return s.buf[s.at : s.at+n], nil
}

// discard consumes n bytes that peek has lent.
func (s *stream) discard(n int) {
	s.at += n
	s.offset += int64(n)
	if s.at == s.have {
		s.at, s.have = 0, 0
	}
}

// skip consumes n bytes, read or not.
func (s *stream) skip(n int64) error {
	for n > 0 {
		step := int(min(n, int64(len(s.buf))))
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
