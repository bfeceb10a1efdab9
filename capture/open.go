package capture

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxZstdWindow limits the memory that a zstd input can request, in bytes.
const maxZstdWindow = 32 << 20

// File reads one capture: pcap or pcapng, plain or compressed with gzip or zstd. The format is
// recognised by content. Reading and decompression run in a separate goroutine, ahead of the
// caller.
type File struct {
	name   string
	reader interface{ next(*Frame) error }
	stream *stream
	before int64 // number of frames in the files that this file continues
	frames int64
	beyond Beyond // Name is not set
	closer io.Closer
	raw    *counter
	size   int64 // size of the file in bytes, 0 if unknown
	packed atomic.Bool
	drops  atomic.Uint64
	failed error
}

// counter counts the bytes that were read, for Progress.
type counter struct {
	r io.Reader
	n atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// Open opens one capture; "-" means standard input. The error wraps [ErrFormat] if the content is
// not a capture; it is a [TextError] if the content is text, and the caller closes that.
func Open(path string) (*File, error) {
	if path == "-" {
		return NewFile("standard input", os.Stdin)
	}
	return openAs(path, path, newPool())
}

// openAs is like Open, but messages show the file under name, and files that are read one after the other may share a pool.
func openAs(path, name string, p *pool) (*File, error) {
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
	file, err := newPipe(name, f, p)
	if text := (*TextError)(nil); errors.As(err, &text) {
		text.Path, text.text.closer = path, f
		return nil, err
	}
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

// errText is the error of detect for text.
var errText = errors.New("text")

// NewFile reads a capture from r. Messages contain name. Another goroutine reads r until the end of
// r or until Close is called.
func NewFile(name string, r io.Reader) (*File, error) {
	return NewPipe(context.Background(), name, r)
}

// NewPipe is like NewFile for an input that is still being written: it waits for the first bytes
// until ctx ends.
func NewPipe(ctx context.Context, name string, r io.Reader) (*File, error) {
	return newPipeUntil(ctx, name, r, newPool())
}

// newPipe is like NewFile with a pool.
func newPipe(name string, r io.Reader, p *pool) (*File, error) {
	return newPipeUntil(context.Background(), name, r, p)
}

func newPipeUntil(ctx context.Context, name string, r io.Reader, p *pool) (*File, error) {
	f := &File{name: name, raw: &counter{r: r}}
	f.stream = newStream(ctx, p, func() (io.ReadCloser, error) { return decompress(f.raw, &f.packed) })
	if err := f.detect(); err == errText {
		return nil, &TextError{Name: name, Path: "-", text: f}
	} else if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// detect selects the reader by the first bytes after decompression.
func (f *File) detect() error {
	magic, err := f.stream.peek(4)
	if err != nil {
		switch {
		case len(magic) == 0 && err == io.EOF:
			return fmt.Errorf("the input is empty: %w", ErrFormat)
		case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
			return &shortError{len(magic)}
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
	case f.packed.Load() && (isGzip(magic) || isZstd(magic)):
		return fmt.Errorf("the input is compressed twice; decompress it once: %w", ErrFormat)
	case magic[0] == '{', magic[0] == '<': // JSON, or a page of rdmadump report
		return errText
	}
	return fmt.Errorf("the input starts with %x, which is not pcap, pcapng, gzip or zstd: %w", magic, ErrFormat)
}

// shortError is the error for an input that ends before its format is known.
type shortError struct{ have int }

// Error returns the message.
func (e *shortError) Error() string {
	return fmt.Sprintf("the input has only %d bytes: %v", e.have, ErrFormat)
}

// Unwrap says that the input is no capture, and that it may become one if more is written.
func (e *shortError) Unwrap() []error { return []error{ErrFormat, io.ErrUnexpectedEOF} }

func isGzip(magic []byte) bool { return magic[0] == 0x1f && magic[1] == 0x8b }

// isZstd recognises the magic number of a zstd frame and of a skippable frame, which may precede
// it.
func isZstd(magic []byte) bool {
	m := binary.LittleEndian.Uint32(magic)
	return m == 0xfd2fb528 || m&^15 == 0x184d2a50
}

// packedRead is the buffer size of decompressors in bytes.
const packedRead = 64 << 10

// decompress returns a reader that decompresses r if the first bytes are those of gzip or zstd.
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
	var u *unpacker
	switch {
	case isGzip(magic[:]):
		u = gzips.get()
	case isZstd(magic[:]):
		u = zstds.get()
	default:
		return io.NopCloser(r), nil
	}
	packed.Store(true)
	u.buffer.Reset(r)
	if err := u.Reset(u.buffer); err != nil {
		return nil, fmt.Errorf("%s: %w", u.format, err)
	}
	return u, nil
}

// unpackers are unpackers of a format that no file uses. A ring has many compressed files, which are read one after the other. A few
// are kept when the garbage is collected, because a new one causes much of it.
type unpackers struct {
	few  chan *unpacker
	rest sync.Pool
}

func (p *unpackers) get() *unpacker {
	select {
	case u := <-p.few:
		return u
	default:
		return p.rest.Get().(*unpacker)
	}
}

func (p *unpackers) put(u *unpacker) {
	select {
	case p.few <- u:
	default:
		p.rest.Put(u)
	}
}

var (
	gzips = unpackers{few: make(chan *unpacker, 2), rest: sync.Pool{New: func() any { return newUnpacker("gzip", new(gzip.Reader)) }}}
	zstds = unpackers{few: make(chan *unpacker, 2), rest: sync.Pool{New: func() any {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil { // an option is wrong
			panic(err)
		}
		return newUnpacker("zstd", z)
	}}}
)

// decompressor is the decompressor of a format.
type decompressor interface {
	io.Reader
	Reset(io.Reader) error
}

// unpacker is a decompressor with its buffer.
type unpacker struct {
	decompressor
	format string
	buffer *bufio.Reader
}

func newUnpacker(format string, d decompressor) *unpacker {
	return &unpacker{d, format, bufio.NewReaderSize(nil, packedRead)}
}

// Read returns decompressed bytes. Members of gzip data, or frames of zstd data, may follow each other; other bytes after them are an error.
func (u *unpacker) Read(p []byte) (int, error) {
	for {
		n, err := u.decompressor.Read(p)
		if err == io.EOF && u.format == "gzip" {
			var more []byte
			switch more, err = u.buffer.Peek(2); {
			case len(more) == 0: // err is io.EOF, or the error of reading
			case !bytes.HasPrefix([]byte{0x1f, 0x8b}, more):
				err = gzip.ErrHeader
			default:
				err = u.Reset(u.buffer)
			}
		}
		if err == gzip.ErrHeader || err == zstd.ErrMagicMismatch {
			err = fmt.Errorf("what follows the %s data is no %[1]s data", u.format)
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// Reset begins to decompress what r returns: one member of gzip data, or all frames of zstd data.
func (u *unpacker) Reset(r io.Reader) error {
	err := u.decompressor.Reset(r)
	if z, is := u.decompressor.(*gzip.Reader); is && err == nil {
		z.Multistream(false)
	}
	return err
}

// Close keeps the unpacker for another file.
func (u *unpacker) Close() error {
	u.buffer.Reset(nil)
	if z, is := u.decompressor.(*zstd.Decoder); is {
		z.Reset(nil)
		zstds.put(u)
	} else {
		gzips.put(u)
	}
	return nil
}

// ReadBatch returns the frames that are available, without copying them. See [Source].
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
			if err == errNotYet {
				break
			}
			f.fail(err)
			break
		}
		f.frames++
		if frame.Time == math.MinInt64 || frame.Time == math.MaxInt64 {
			if f.beyond.Frames++; f.beyond.Frames == 1 {
				f.beyond.Number, f.beyond.Time = f.frames, frame.Time
			}
		}
		frame.Number = f.before + f.frames
		b.Frames = b.Frames[:n+1]
	}
	if r, is := f.reader.(*pcapngReader); is {
		f.drops.Store(r.drops)
	}
	if len(b.Frames) == 0 {
		return f.failed
	}
	b.hold(f.stream.block)
	return nil
}

// fail stores the reason why there are no more frames.
func (f *File) fail(err error) {
	if f.stream.ctx.Err() != nil { // the caller ended reading, perhaps in the middle of a record
		err = io.EOF
	}
	if f.failed = err; err != io.EOF {
		f.failed = &BrokenError{Name: f.name, Offset: f.stream.offset, Frames: f.frames, Err: err}
	}
}

// Interfaces returns the number of interfaces that the file describes before its first packet. It must
// be called before the first frame is read.
func (f *File) Interfaces() int {
	if r, is := f.reader.(*pcapngReader); is {
		return r.interfacesAhead()
	}
	return 1
}

// Progress returns the number of bytes that were read and the size of the file. The total is 0 if
// the size is unknown.
func (f *File) Progress() (read, total int64) { return f.raw.n.Load(), f.size }

// Dropped returns the number of packets that the part of a pcapng file that was read says were dropped, in the statistics of its interfaces and in
// its packets. It may be called while another goroutine reads.
func (f *File) Dropped() uint64 { return f.drops.Load() }

// Beyond describes the times of a pcapng file that do not fit in [Frame.Time]: their frames have the nearest time that fits.
type Beyond struct {
	Name   string
	Number int64 // of the first such frame in the file
	Time   int64 // that it has
	Frames int64 // number of such frames
}

// Close ends reading and closes the file that Open opened. Batches stay valid.
func (f *File) Close() error {
	f.stream.close()
	if f.closer != nil {
		return f.closer.Close()
	}
	return nil
}
