package extract

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
)

// file is the data of one NFS file. It is in the staging folder until the whole
// capture has been read, because its name may come after its data.
type file struct {
	number int64 // its name in the staging folder
	node   *node
	seen   []span // ranges that were read or written: sorted, neither overlapping nor adjacent
	size   int64
	many   bool // the file has more than maxSpans ranges; the others count as holes
	open   *os.File
}

// span is the range [from, to) of a file, in bytes.
type span struct{ from, to int64 }

// maxSpans limits the number of ranges in file.seen.
const maxSpans = 1 << 16

// maxSize limits the offsets at which data is written, in bytes. A capture may
// claim any offset, and no file system accepts all of them.
const maxSize = 1 << 43

// add records that the bytes [from, to) were read or written.
func (f *file) add(from, to int64) {
	if to <= from {
		return
	}
	f.size = max(f.size, to)
	i, _ := slices.BinarySearchFunc(f.seen, from, func(s span, at int64) int {
		if s.to < at {
			return -1
		}
		return 1
	})
	j := i
	for ; j < len(f.seen) && f.seen[j].from <= to; j++ {
		from, to = min(from, f.seen[j].from), max(to, f.seen[j].to)
	}
	if i == j && len(f.seen) >= maxSpans {
		f.many = true
		return
	}
	f.seen = slices.Replace(f.seen, i, j, span{from, to})
}

// cut records that the file was truncated or extended to size.
func (f *file) cut(size int64) {
	for len(f.seen) > 0 && f.seen[len(f.seen)-1].to > size {
		last := &f.seen[len(f.seen)-1]
		if last.from < size {
			last.to = size
			break
		}
		f.seen = f.seen[:len(f.seen)-1]
	}
	if size > f.size {
		f.add(f.size, size) // an extended file has zeros there
	}
	f.size = size
}

// covered returns the number of bytes that were read or written.
func (f *file) covered() (n int64) {
	for _, s := range f.seen {
		n += s.to - s.from
	}
	return n
}

// holes returns the number of ranges that were neither read nor written.
func (f *file) holes() (n int) {
	at := int64(0)
	for _, s := range f.seen {
		if s.from > at {
			n++
		}
		at = s.to
	}
	if at < f.size {
		n++
	}
	return n
}

// ownPrefix begins the name of the staging folder.
const ownPrefix = ".rdmadump-"

// maxOpen limits the number of files that are open at once.
const maxOpen = 64

// staging holds the files until their names are known.
type staging struct {
	root   *os.Root
	folder string
	files  []*file
	open   []*file
}

// begin creates the staging folder.
func (s *staging) begin() error {
	for i := os.Getpid(); ; i++ {
		s.folder = ownPrefix + strconv.Itoa(i)
		if err := s.root.Mkdir(s.folder, 0o700); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// name returns the path of f in the staging folder.
func (s *staging) name(f *file) string { return path.Join(s.folder, strconv.FormatInt(f.number, 10)) }

// of returns the file of a node and creates it if the node has none.
func (s *staging) of(n *node) *file {
	if n.file == nil {
		n.file = &file{number: int64(len(s.files)), node: n}
		s.files = append(s.files, n.file)
	}
	return n.file
}

// handle returns f opened for reading and writing. It closes another file first if
// maxOpen files are open.
func (s *staging) handle(f *file) (*os.File, error) {
	if f.open != nil {
		return f.open, nil
	}
	if len(s.open) == maxOpen {
		oldest := s.open[0]
		s.open = slices.Delete(s.open, 0, 1)
		err := oldest.open.Close()
		if oldest.open = nil; err != nil {
			return nil, err
		}
	}
	h, err := s.root.OpenFile(s.name(f), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	f.open = h
	s.open = append(s.open, f)
	return h, nil
}

// write writes data to the file of n at an offset.
func (s *staging) write(n *node, at int64, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	f := s.of(n)
	h, err := s.handle(f)
	if err == nil {
		_, err = h.WriteAt(data, at)
	}
	if err != nil {
		return fmt.Errorf("extract: %d bytes at %d of %s: %w", len(data), at, label(n.handle), err)
	}
	f.add(at, at+int64(len(data)))
	return nil
}

// zero makes the bytes [from, to) of the file of n zeros.
func (s *staging) zero(n *node, from, to int64) error {
	f := s.of(n)
	h, err := s.handle(f)
	zeros := make([]byte, 1<<16)
	for at := from; at < min(to, f.size) && err == nil; {
		var k int
		k, err = h.WriteAt(zeros[:min(int64(len(zeros)), min(to, f.size)-at)], at)
		at += int64(k)
	}
	if to > f.size && err == nil {
		err = h.Truncate(to)
	}
	if err != nil {
		return fmt.Errorf("extract: a hole at %d of %s: %w", from, label(n.handle), err)
	}
	f.add(from, to)
	return nil
}

// resize truncates or extends the file of n, if n has one.
func (s *staging) resize(n *node, size int64) error {
	if n.file == nil {
		return nil // it was neither read nor written so far
	}
	f := s.of(n)
	h, err := s.handle(f)
	if err == nil {
		err = h.Truncate(size)
	}
	if err != nil {
		return fmt.Errorf("extract: %s to %d bytes: %w", label(n.handle), size, err)
	}
	f.cut(size)
	return nil
}

// place moves f from the staging folder to the path that elements make, and
// returns that path. If the path exists already, place appends a number to it;
// existing files are never touched.
func (s *staging) place(f *file, elements []string) (string, error) {
	if len(elements) == 0 {
		elements = []string{label(f.node.handle)}
	}
	folder := path.Join(elements[:len(elements)-1]...)
	if folder != "" {
		if err := s.root.MkdirAll(folder, 0o755); err != nil {
			return "", err
		}
	}
	wanted := path.Join(elements...)
	for i := 1; ; i++ {
		name := wanted
		if i > 1 {
			name += "~" + strconv.Itoa(i)
		}
		// An empty file reserves the name, so that the rename cannot replace another file.
		h, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) && i < 1000 {
			continue
		}
		if err != nil {
			return "", err
		}
		info, err := h.Stat()
		h.Close()
		if err == nil {
			err = s.root.Chmod(s.name(f), info.Mode().Perm())
		}
		if err == nil {
			err = s.root.Rename(s.name(f), name)
		}
		if err != nil {
			s.root.Remove(name)
		}
		return name, err
	}
}

// end sets the size of every file and closes it.
func (s *staging) end() error {
	for _, f := range s.files {
		h, err := s.handle(f)
		if err == nil {
			err = h.Truncate(f.size)
		}
		if err != nil {
			return fmt.Errorf("extract: %s: %w", label(f.node.handle), err)
		}
	}
	for _, f := range s.open {
		if err := f.open.Close(); err != nil {
			return fmt.Errorf("extract: %s: %w", label(f.node.handle), err)
		}
		f.open = nil
	}
	s.open = nil
	return nil
}

// away removes the staging folder.
func (s *staging) away() error {
	for _, f := range s.open {
		f.open.Close()
	}
	return s.root.RemoveAll(s.folder)
}
