// Package disk keeps data in a temporary file that does not fit into memory: blobs, sorted runs, and
// tables of records with a fixed length that are sorted on disk. The memory that it takes
// does not depend on the amount of data.
package disk

import (
	"fmt"
	"io"
)

// Raw is a temporary file, usually an [os.File]. It is empty at first, and only
// the File writes to it.
type Raw interface {
	io.Writer
	io.ReaderAt
}

const (
	pageSize = 1 << 14
	maxPages = 1 << 9 // pages in the cache
	bufferOf = 1 << 18
)

// File is a temporary file that is only appended to. The first error of reading or
// writing it is kept, and ends all further work. A File is not safe for concurrent use.
type File struct {
	raw     Raw
	err     error
	buffer  []byte // bytes that were appended and are not in raw yet
	written int64  // bytes in raw

	pages map[int64]*page
	ring  []*page // all pages of the cache
	hand  int     // next page of ring that may be evicted
	last  *page   // the page that was used last
}

// page is a part of the file in the cache.
type page struct {
	number int64
	data   []byte
	used   bool // since the hand was here
}

// NewFile returns a File that keeps its data in raw, which belongs to the caller.
func NewFile(raw Raw) *File { return &File{raw: raw, pages: map[int64]*page{}} }

// Err returns the first error of reading or writing the file.
func (f *File) Err() error { return f.err }

// Size returns the length of the file in bytes.
func (f *File) Size() int64 { return f.written + int64(len(f.buffer)) }

// Append appends b to the file and returns its offset.
func (f *File) Append(b []byte) (offset int64) {
	offset = f.Size()
	if f.buffer = append(f.buffer, b...); len(f.buffer) >= bufferOf {
		f.Flush()
	}
	return offset
}

// Flush writes the buffer to the temporary file and returns the first error.
func (f *File) Flush() error {
	if f.err == nil && len(f.buffer) > 0 {
		_, err := f.raw.Write(f.buffer)
		f.fail(err)
	}
	f.written += int64(len(f.buffer))
	f.buffer = f.buffer[:0]
	return f.err
}

// fail keeps the first error.
func (f *File) fail(err error) {
	if f.err == nil && err != nil {
		f.err = fmt.Errorf("temporary file: %w", err)
	}
}

// Read reads the bytes at an offset into b, which are zeros after an error.
func (f *File) Read(b []byte, offset int64) {
	if offset < 0 || offset+int64(len(b)) > f.Size() {
		f.fail(fmt.Errorf("%d bytes at %d of %d: %w", len(b), offset, f.Size(), io.ErrUnexpectedEOF))
	}
	if offset+int64(len(b)) > f.written {
		f.Flush()
	}
	if f.err != nil {
		clear(b)
		return
	}
	if len(b) > pageSize {
		f.readRaw(b, offset)
		return
	}
	for len(b) > 0 {
		p := f.page(offset / pageSize)
		at := int(offset % pageSize)
		if at >= len(p.data) { // the page was read before the file had these bytes
			f.load(p)
		}
		n := copy(b, p.data[min(at, len(p.data)):])
		if n == 0 {
			clear(b)
			return
		}
		b, offset = b[n:], offset+int64(n)
	}
}

// readRaw reads bytes of the temporary file without the cache.
func (f *File) readRaw(b []byte, offset int64) {
	if n, err := f.raw.ReadAt(b, offset); n < len(b) {
		f.fail(err)
		clear(b)
	}
}

// page returns a page of the file.
func (f *File) page(number int64) *page {
	if f.last != nil && f.last.number == number {
		return f.last
	}
	p := f.pages[number]
	if p == nil {
		p = f.free()
		p.number = number
		f.pages[number] = p
		f.load(p)
	}
	p.used, f.last = true, p
	return p
}

// load reads a page, as far as it has been written.
func (f *File) load(p *page) {
	start := p.number * pageSize
	p.data = p.data[:min(pageSize, max(f.written-start, 0))]
	f.readRaw(p.data, start)
}

// free returns a page that holds nothing, and evicts one if the cache is full.
func (f *File) free() *page {
	if len(f.ring) < maxPages {
		p := &page{data: make([]byte, 0, pageSize)}
		f.ring = append(f.ring, p)
		return p
	}
	for {
		p := f.ring[f.hand]
		f.hand = (f.hand + 1) % len(f.ring)
		if !p.used {
			delete(f.pages, p.number)
			return p
		}
		p.used = false
	}
}
