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
// (rotation), Follow continues with the new file.
type Follow struct {
	path   string
	file   *File
	reader *growing
	frames int64 // number of frames in the files before the current one
}

// OpenFollow follows the file at path. The file need not exist yet: ReadBatch waits for it.
func OpenFollow(path string) (*Follow, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: is a directory: %w", path, ErrFormat)
	}
	return &Follow{path: path}, nil
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
		if err == nil {
			return nil
		}
		rotated := f.reader.rotated.Load()
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
		file, err := os.Open(f.path)
		if err == nil {
			f.reader = &growing{path: f.path, file: file}
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
		}
		select {
		case <-ctx.Done():
			return io.EOF
		case <-time.After(followPoll):
		}
	}
}

func (f *Follow) close() {
	f.frames += f.file.frames
	f.file.Close()
	f.reader.file.Close()
	f.file = nil
}

// Dropped returns 0, because a capture file contains its drop counters only at its end.
func (f *Follow) Dropped() uint64 { return 0 }

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
// replaced by another or truncated.
type growing struct {
	path    string
	file    *os.File
	read    int64
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
	now, err := os.Stat(g.path)
	return err == nil && !os.SameFile(mine, now)
}
