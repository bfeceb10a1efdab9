// Package capture reads packets from pcap and pcapng files (plain, gzip or zstd; one file, or
// several merged by time), from standard input, and from a live network interface. Package link
// finds the RDMA traffic in a frame.
//
// Frames are returned in batches. The bytes of a batch are valid until the batch is released; a
// caller that needs them longer must copy them. Several batches may be in use at the same time, so
// a goroutine can read while another decodes. Reading allocates nothing per batch.
//
// The package has its own readers instead of pcapgo's, for three reasons: they report the offset
// and the contents at which a damaged file becomes unreadable, they return frames without copying
// them, and they accept captures that pcapgo refuses (a record longer than the snapshot length in
// the file header, or interfaces of several link types).
package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// MaxFrame is the maximum number of captured bytes in a record, as in libpcap and Wireshark. A
// larger length means that the file is damaged.
const MaxFrame = 262144

// Frame is one captured frame.
type Frame struct {
	Number   int64    // 1 for the first frame; counts across all files
	Time     int64    // nanoseconds since 1970 UTC; the range is the years 1678 to 2262
	LinkType LinkType // link type of the interface that captured the frame
	Input    uint16   // index of the input that the frame was read from; 0 if there is only one
	From     *Origin  // the interface as described in the file; nil if the file does not describe it
	Seen     *Seen    // where the packet was seen; nil unless there are several capture points
	Heading  Heading  // as the file says; see [Frame.Heads]
	Length   int      // bytes on the wire; Data may be shorter
	Data     []byte   // captured bytes; valid until the batch is released
	Options  []byte   // options of the packet in a pcapng file, in the byte order of Section; valid as long as Data
	Section  *Section // section of the pcapng file; nil for other inputs
}

// Origin is an interface as described in a capture file: one interface of a pcapng file, or the
// only one of a pcap file.
type Origin struct {
	LinkType    LinkType
	Snap        uint32 // snapshot length in bytes; 0 means that frames are not truncated
	Name        string // name as written in the file; it may contain any bytes
	Description string
	// Digits says that times are multiples of 10^-Digits seconds. It is 9 for interfaces with a
	// finer resolution.
	Digits uint8
	Index  int // number of interfaces that the file describes before this one
	// Options has the other options of the description in a pcapng file, for Writer.Interface.
	Options string
}

// Heading reports whether the computer that captured a frame received or sent it.
type Heading uint8

// The headings.
const (
	HeadingUnknown Heading = iota
	Received
	Sent
)

// Heads returns whether the computer that captured the frame received or sent it, as its file or its Linux cooked header says.
func (f *Frame) Heads() Heading {
	at, high := -1, 0 // of the packet type
	switch f.LinkType {
	case LinkSLL:
		at, high = 1, 1
	case LinkSLL2:
		at = 10
	}
	if at < 0 || len(f.Data) <= at || high == 1 && f.Data[0] != 0 {
		return f.Heading
	}
	const toUs, toOther, fromUs = 0, 3, 4
	switch f.Data[at] {
	case toUs, toOther:
		return Received
	case fromUs:
		return Sent
	}
	return f.Heading
}

// Timestamp returns the time of the frame in UTC.
func (f *Frame) Timestamp() time.Time { return time.Unix(0, f.Time).UTC() }

// Source returns frames in order.
type Source interface {
	// ReadBatch releases b and fills it with the frames that are available: at least one, for which
	// it waits, and at most a few hundred. ReadBatch returns io.EOF at the end of the input or when
	// ctx ends, and a *BrokenError if the rest of the input cannot be read. In both cases b is
	// empty, and all readable frames were in the earlier batches. Only one goroutine at a time may
	// call ReadBatch.
	ReadBatch(ctx context.Context, b *Batch) error
}

// All iterates over the frames of s until s or ctx ends. If reading fails with an error other than
// io.EOF, the last iteration has a nil frame and that error. A frame is valid until the next
// iteration.
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

// ErrFormat is wrapped by the error for an input that is not a capture file.
var ErrFormat = errors.New("not a capture file")

// BrokenError describes where and why reading an input failed.
type BrokenError struct {
	Name   string // name of the input
	Offset int64  // offset of the record that could not be read, in decompressed bytes
	Frames int64  // number of frames that were read before the error
	Err    error  // the cause
}

// Error returns a one-line description.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("%s: reading failed at byte %d, after %d packets: %v", e.Name, e.Offset, e.Frames, e.Err)
}

// Unwrap returns the cause.
func (e *BrokenError) Unwrap() error { return e.Err }
