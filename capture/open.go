package capture

import (
	"bufio"
	"bytes"
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
// content. Reading and decompression run ahead in a goroutine of their own.
type File struct {
	name   string
	reader interface{ next(*Frame) error }
	stream *stream
	before int64 // frames of the files that this one goes on from
	frames int64
	closer io.Closer
	raw    *counter
	size   int64 // of the file, 0 when unknown
	failed error
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
	return openAs(path, path)
}

// openAs is Open of a file that has another name in messages.
func openAs(path, name string) (*File, error) {
	if path == "-" {
		return Open(path)
	}
	f, err := os.Open(path)
	if err != nil {
		var pathErr *os.PathError
		if errors.As(err, &pathErr) {
			return nil, fmt.Errorf("%s: %w", name, pathErr.Err)
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("%s: is a directory: %w", name, ErrFormat)
	}
	file, err := NewFile(name, f)
	if err != nil {
		f.Close()
		return nil, err
	}
	file.closer = f
	if info != nil && info.Mode().IsRegular() {
		file.size = info.Size()
	}
	return file, nil
}

// NewFile reads a capture from r; name is for messages. R is read by another
// goroutine, until its end or Close.
func NewFile(name string, r io.Reader) (*File, error) {
	return NewPipe(context.Background(), name, r)
}

// NewPipe is NewFile for what is still being written: until ctx ends, it waits
// for the first bytes.
func NewPipe(ctx context.Context, name string, r io.Reader) (*File, error) {
	f := &File{name: name, raw: &counter{r: r}}
	var packed atomic.Bool
	f.stream = newStream(ctx, func() (io.ReadCloser, error) { return decompress(f.raw, &packed) })
	if err := f.detect(&packed); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// detect looks at the first bytes, decompressed if need be.
func (f *File) detect(packed *atomic.Bool) error {
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
	switch {
	case pcapOrder(magic) != unknownOrder:
		r, err := newPcapReader(f.stream)
		f.reader = r
		return err
	case binary.LittleEndian.Uint32(magic) == blockSection:
		r, err := newPcapngReader(f.stream)
		f.reader = r
		return err
	case packed.Load() && (isGzip(magic) || isZstd(magic)):
		return fmt.Errorf("compressed twice; decompress it once: %w", ErrFormat)
	}
	return fmt.Errorf("starts with %x, which is neither pcap, pcapng, gzip nor zstd: %w", magic, ErrFormat)
}

func isGzip(magic []byte) bool { return magic[0] == 0x1f && magic[1] == 0x8b }

// isZstd knows a frame, and a skippable frame before one.
func isZstd(magic []byte) bool {
	m := binary.LittleEndian.Uint32(magic)
	return m == 0xfd2fb528 || m&^15 == 0x184d2a50
}

// packedRead is what decompressors read at once.
const packedRead = 64 << 10

// decompress puts a decompressor in front when the first bytes ask for one.
func decompress(r io.Reader, packed *atomic.Bool) (io.ReadCloser, error) {
	var magic [4]byte
	n, err := io.ReadFull(r, magic[:])
	switch {
	case err == io.ErrUnexpectedEOF || err == io.EOF:
		return io.NopCloser(bytes.NewReader(magic[:n])), nil
	case err != nil:
		return nil, err
	}
	r = io.MultiReader(bytes.NewReader(magic[:]), r)
	switch {
	case isGzip(magic[:]):
		packed.Store(true)
		z, err := gzip.NewReader(bufio.NewReaderSize(r, packedRead))
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		return z, nil
	case isZstd(magic[:]):
		packed.Store(true)
		z, err := zstd.NewReader(bufio.NewReaderSize(r, packedRead),
			zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(r), nil
}

// ReadBatch reads the frames that are at hand, without a copy. See [Source].
func (f *File) ReadBatch(ctx context.Context, b *Batch) error {
	f.stream.ctx = ctx
	if b.begin(); ctx.Err() != nil {
		return io.EOF
	}
	for f.failed == nil && len(b.Frames) < maxBatch {
		n := len(b.Frames)
		f.stream.hold = n > 0
		frame := &b.Frames[:n+1][n]
		if err := f.reader.next(frame); err != nil {
			if err == errLater {
				break
			}
			f.fail(err)
			break
		}
		f.frames++
		frame.Number = f.before + f.frames
		b.Frames = b.Frames[:n+1]
	}
	if len(b.Frames) == 0 {
		return f.failed
	}
	b.hold(f.stream.block)
	return nil
}

// fail notes why there are no more frames.
func (f *File) fail(err error) {
	if f.stream.ctx.Err() != nil { // told to stop, in the middle of a record or not
		err = io.EOF
	}
	if f.failed = err; err != io.EOF {
		f.failed = &BrokenError{Name: f.name, Offset: f.stream.offset, Frames: f.frames, Err: err}
	}
}

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

// Close ends reading, and closes what Open opened. Batches stay valid.
func (f *File) Close() error {
	f.stream.close()
	if f.closer != nil {
		return f.closer.Close()
	}
	return nil
}
