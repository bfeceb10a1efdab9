package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// followPoll is the interval at which a growing file is checked for new data.
const followPoll = 20 * time.Millisecond

// Follow reads a capture file that is still being written. When the file is replaced or truncated
// (rotation), Follow continues with the new file. If the writer continues with another file of a
// ring, as tcpdump -C does, so does Follow.
type Follow struct {
	name   string // as it was asked for
	path   string // of the current file: the name, or the name with a number
	file   *File
	reader *growing
	frames int64  // number of frames in the files before the current one
	before uint64 // packets that those files say were dropped
	drops  atomic.Uint64
}

// OpenFollow follows the file at path, or the ring of files whose names are path and a number. No
// file need exist yet: ReadBatch waits for it. Of a ring, it first reads the oldest file.
func OpenFollow(path string) (*Follow, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: is a directory: %w", path, ErrFormat)
	}
	return &Follow{name: path, path: path}, nil
}

// ReadBatch waits for frames. See [Source].
func (f *Follow) ReadBatch(ctx context.Context, b *Batch) error {
	b.Release()
	for {
		if ctx.Err() != nil {
			return io.EOF
		}
		if f.file == nil {
			if err := f.open(ctx); err != nil {
				return err
			}
			continue
		}
		err := f.file.ReadBatch(ctx, b)
		f.drops.Store(f.before + f.file.Dropped())
		if err == nil {
			return nil
		}
		rotated := f.reader.rotated.Load()
		if rotated && f.reader.next != "" { // Without rotated, a goroutine may still be reading.
			f.path = f.reader.next
		}
		f.close()
		if ctx.Err() != nil {
			return io.EOF
		}
		if err != io.EOF && !rotated {
			return err
		}
	}
}

// open waits until the file exists and has a capture header.
func (f *Follow) open(ctx context.Context) error {
	for {
		if f.path == f.name {
			f.path = Ring(f.name)
		}
		file, err := openUntil(ctx, f.path)
		if ctx.Err() != nil {
			if err == nil {
				file.Close()
			}
			return io.EOF
		}
		if err == nil {
			f.reader = &growing{name: f.name, path: f.path, file: file}
			f.file, err = NewPipe(ctx, f.path, f.reader)
			switch {
			case err == nil:
				f.file.before = f.frames
				return nil
			case ctx.Err() != nil:
				file.Close()
				return io.EOF
			case !f.reader.rotated.Load():
				file.Close()
				return err
			}
			file.Close()
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		} else {
			f.path = f.name
		}
		select {
		case <-ctx.Done():
			return io.EOF
		case <-time.After(followPoll):
		}
	}
}

// openUntil opens a file and returns an error if ctx ends first: to open a FIFO that no
// process writes to takes until one does.
func openUntil(ctx context.Context, path string) (*os.File, error) {
	var file *os.File
	var err error
	opened, abandoned := make(chan struct{}), make(chan struct{})
	go func() {
		file, err = os.Open(path)
		select {
		case opened <- struct{}{}:
		case <-abandoned:
			if err == nil {
				file.Close()
			}
		}
	}()
	select {
	case <-opened:
		return file, err
	case <-ctx.Done():
		close(abandoned)
		return nil, ctx.Err()
	}
}

func (f *Follow) close() {
	f.frames += f.file.frames
	f.before = f.drops.Load()
	f.file.Close()
	f.reader.file.Close()
	f.file = nil
}

// Dropped returns the number of packets that the files say were dropped; see [File.Dropped].
func (f *Follow) Dropped() uint64 { return f.drops.Load() }

// Progress returns 0, 0, because the size of a growing file is unknown.
func (f *Follow) Progress() (read, total int64) { return 0, 0 }

// Close closes the file.
func (f *Follow) Close() error {
	if f.file != nil {
		f.close()
	}
	return nil
}

// growing reads a file that is still being written. It reports io.EOF only after the file was
// replaced by another or truncated, or the writer began the next file of a ring.
type growing struct {
	name    string // of the ring
	path    string
	file    *os.File
	read    int64
	next    string    // file of the ring that follows; set before rotated
	checked time.Time // when the next file was last searched
	rotated atomic.Bool
}

func (g *growing) Read(p []byte) (int, error) {
	for {
		n, err := g.file.Read(p)
		g.read += int64(n)
		if n > 0 || err != nil && err != io.EOF {
			return n, err
		}
		if g.replaced() {
			if n, _ := g.file.Read(p); n > 0 { // data that was written between the last read and the check
				g.read += int64(n)
				return n, nil
			}
			g.rotated.Store(true)
			return 0, io.EOF
		}
		time.Sleep(followPoll)
	}
}

// replaced reports whether path now names another file, or the file was truncated.
func (g *growing) replaced() bool {
	mine, err := g.file.Stat()
	if err != nil {
		return true
	}
	if mine.Size() < g.read {
		return true
	}
	if now, err := os.Stat(g.path); err == nil && !os.SameFile(mine, now) {
		return true
	}
	if time.Since(g.checked) > ringPoll {
		g.checked = time.Now()
		g.next = after(g.name, mine)
	}
	return g.next != ""
}
