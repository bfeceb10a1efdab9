// Package capture reads packets: pcap and pcapng files, plain, gzip or zstd,
// one or several merged by time, from a path or standard input; and a live
// interface. Package link finds what RDMA traffic a frame carries.
//
// Frames come in batches, and a batch's bytes are valid until it is released;
// whoever keeps any longer copies them. Several batches may be in use at once,
// so that one goroutine reads while another dissects. Reading allocates nothing
// per batch.
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
	"iter"
	"time"
)

// MaxFrame bounds a record's captured bytes, as libpcap and Wireshark do: a
// length beyond it is damage, not data.
const MaxFrame = 262144

// Frame is one captured frame.
type Frame struct {
	Number   int64    // counts from 1 over all files
	Time     int64    // nanoseconds since 1970 UTC, of the years 1678 to 2262
	LinkType LinkType // of the interface that captured it
	From     *Origin  // the interface as its file describes it; nil when it does not
	Length   int      // bytes on the wire; Data may hold fewer
	Data     []byte   // valid until its batch is released
}

// Origin is an interface as a file describes it: one of a pcapng file, or all of
// a pcap file.
type Origin struct {
	LinkType    LinkType
	Snap        uint32 // bytes that frames were cut to; 0: they were not
	Name        string // as it stands in the file, which may be anything
	Description string
	Digits      uint8 // times are whole units of 10^-Digits seconds, but for finer ones, which are 9
}

// Timestamp is the frame's time as a time.Time in UTC.
func (f *Frame) Timestamp() time.Time { return time.Unix(0, f.Time).UTC() }

// Source yields frames in order.
type Source interface {
	// ReadBatch releases b and fills it with the frames that are at hand: one
	// at least, for which it waits, and never more than a few hundred. It
	// returns io.EOF at the end and when ctx ends, and a *BrokenError when the
	// input cannot be read on; b is empty then, and all that could be read was in
	// the batches before. One goroutine at a time may call it.
	ReadBatch(ctx context.Context, b *Batch) error
}

// All hands out the frames of a source one by one, to its end or ctx's; an error
// that is not io.EOF comes last, with a nil frame. A frame is good until the next.
func All(ctx context.Context, s Source) iter.Seq2[*Frame, error] {
	return func(yield func(*Frame, error) bool) {
		var b Batch
		defer b.Release()
		for {
			if err := s.ReadBatch(ctx, &b); err != nil {
				if err != io.EOF {
					yield(nil, err)
				}
				return
			}
			for i := range b.Frames {
				if !yield(&b.Frames[i], nil) {
					return
				}
			}
		}
	}
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
