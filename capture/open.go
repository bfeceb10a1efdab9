package capture

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxZstdWindow bounds the memory that a zstd input can ask for.
const maxZstdWindow = 32 << 20

// File reads one capture: pcap or pcapng, plain, gzip or zstd, told apart by
// content.
type File struct {
	name    string
	reader  interface{ next(*Frame) error }
	stream  *stream
	frames  int64
	ctx     context.Context
	idle    func()
	streams []*stream // all that read ahead
	closer  []io.Closer
	raw     *counter
	size    int64 // of the file, 0 when unknown
	failed  error
}

// counter counts what was read, for progress.
type counter struct {
	r io.Reader
	n atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// Open opens one capture; "-" is standard input. An error wraps [ErrFormat]
// when the content is no capture.
func Open(path string) (*File, error) {
	if path == "-" {
		return NewFile("standard input", os.Stdin)
	}
	f, err := os.Open(path)
	if err != nil {
		var pathErr *os.PathError
		if errors.As(err, &pathErr) {
			return nil, fmt.Errorf("%s: %w", path, pathErr.Err)
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("%s: is a directory: %w", path, ErrFormat)
	}
	file, err := NewFile(path, f)
	if err != nil {
		f.Close()
		return nil, err
	}
	file.closer = append(file.closer, f)
	if info != nil && info.Mode().IsRegular() {
		file.size = info.Size()
	}
	return file, nil
}

// NewFile reads a capture from r; name is for messages.
func NewFile(name string, r io.Reader) (*File, error) { return newFile(name, r, nil, nil) }

// NewPipe reads a capture from r as it is written: idle is called while nothing
// arrives, and reading ends when ctx does.
func NewPipe(ctx context.Context, name string, r io.Reader, idle func()) (*File, error) {
	return newFile(name, r, ctx, idle)
}

func newFile(name string, r io.Reader, ctx context.Context, idle func()) (*File, error) {
	f := &File{name: name, raw: &counter{r: r}, ctx: ctx, idle: idle}
	f.setStream(f.raw)
	if err := f.detect(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// detect looks at the first bytes, through compression if need be.
func (f *File) detect() error {
	for depth := 0; ; depth++ {
		magic, err := f.stream.peek(4)
		if err != nil {
			switch {
			case len(magic) == 0 && err == io.EOF:
				return fmt.Errorf("empty, no capture in it: %w", ErrFormat)
			case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
				return fmt.Errorf("only %d bytes, no capture in it: %w", len(magic), ErrFormat)
			}
			return err
		}
		compressed, err := f.decompress(magic, depth)
		if err != nil {
			return err
		}
		if compressed {
			continue
		}
		switch {
		case pcapOrder(magic) != nil:
			r, err := newPcapReader(f.stream)
			f.reader = r
			return err
		case binary.LittleEndian.Uint32(magic) == blockSection:
			r, err := newPcapngReader(f.stream)
			f.reader = r
			return err
		}
		return fmt.Errorf("starts with %x, which is neither pcap, pcapng, gzip nor zstd: %w", magic, ErrFormat)
	}
}

// decompress puts a decompressor in front when the magic number asks for one.
func (f *File) decompress(magic []byte, depth int) (bool, error) {
	isGzip := magic[0] == 0x1f && magic[1] == 0x8b
	isZstd := binary.LittleEndian.Uint32(magic) == 0xfd2fb528 || binary.LittleEndian.Uint32(magic)&^15 == 0x184d2a50
	if !isGzip && !isZstd {
		return false, nil
	}
	if depth > 0 {
		return false, fmt.Errorf("compressed twice; decompress it once: %w", ErrFormat)
	}
	if isGzip {
		r, err := gzip.NewReader(lender{f.stream})
		if err != nil {
			return false, fmt.Errorf("gzip: %w", err)
		}
		f.setStream(r)
		return true, nil
	}
	r, err := zstd.NewReader(lender{f.stream}, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
	if err != nil {
		return false, fmt.Errorf("zstd: %w", err)
	}
	f.setStream(r)
	return true, nil
}

// setStream reads from r from now on.
func (f *File) setStream(r io.Reader) {
	f.stream = newStream(r)
	f.stream.ctx, f.stream.idle = f.ctx, f.idle
	f.streams = append(f.streams, f.stream)
}

// lender reads a stream as an io.Reader, after its peeked bytes.
type lender struct{ s *stream }

func (l lender) Read(p []byte) (int, error) {
	if l.s.at == l.s.have {
		if _, err := l.s.peek(1); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.s.buf[l.s.at:l.s.have])
	l.s.discard(n)
	return n, nil
}

// ReadByte lets decompressors read without a buffer of their own.
func (l lender) ReadByte() (byte, error) {
	var one [1]byte
	_, err := l.Read(one[:])
	return one[0], err
}

// Next reads the next frame. See [Source].
func (f *File) Next(frame *Frame) error {
	if f.failed != nil {
		return f.failed
	}
	at := f.stream.offset
	if err := f.reader.next(frame); err != nil {
		if f.ctx != nil && f.ctx.Err() != nil { // told to stop, in the middle of a record or not
			err = io.EOF
		}
		if f.failed = err; err != io.EOF {
			if f.stream.offset > at {
				at = f.stream.offset
			}
			f.failed = &BrokenError{Name: f.name, Offset: at, Frames: f.frames, Err: err}
		}
		return f.failed
	}
	f.frames++
	frame.Number = f.frames
	return nil
}

// Name is the path, or "standard input".
func (f *File) Name() string { return f.name }

// Progress tells how many bytes were read of how many; total is 0 when nobody
// knows.
func (f *File) Progress() (read, total int64) { return f.raw.n.Load(), f.size }

// Dropped is how many packets the capture itself says it lost (pcapng interface
// statistics).
func (f *File) Dropped() uint64 {
	if r, ok := f.reader.(*pcapngReader); ok {
		return r.drops
	}
	return 0
}

// Close closes what Open opened.
func (f *File) Close() error {
	var err error
	for _, s := range f.streams {
		s.close()
	}
	f.streams = nil
	for _, c := range f.closer {
		err = errors.Join(err, c.Close())
	}
	return err
}
