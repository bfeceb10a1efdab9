package extract

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"syscall"

	"github.com/rdmadump/rdmadump/dissect/files"
)

// file is the data of one NFS file. It is in the staging folder until the whole
// capture has been read, because its name may come after its data.
type file struct {
	number int64 // its name in the staging folder
	node   *files.File
	seen   spans // bytes that were read or written; the others are holes
	data   spans // bytes of seen that are data in the staging folder; the others are zeros
	size   int64
	open   *os.File
}

// DefaultMaxSize is the default of [Extractor.MaxSize]: 8 TiB, a size that common file
// systems accept.
const DefaultMaxSize = 1 << 43

// add records that the bytes [from, to) were read or written.
func (f *file) add(from, to int64) {
	f.size = max(f.size, to)
	f.seen.add(from, to)
}

// resize records that the file was truncated or extended to size.
func (f *file) resize(size int64) {
	f.seen.remove(size, math.MaxInt64)
	f.data.remove(size, math.MaxInt64)
	f.seen.add(f.size, size) // an extended file has zeros there
	f.size = size
}

// holes returns the number of ranges that were neither read nor written.
func (f *file) holes() (n int) {
	at := int64(0)
	for _, s := range f.seen.list {
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
	data   map[*files.File]*file
	open   []*file
	// taken has the highest number that was appended to a name, by the name. A name
	// that many files want is not tried again from the beginning.
	taken map[string]int
	// refused counts the ranges that the file system does not accept, because it limits
	// the size of files.
	refused int64
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
func (s *staging) of(n *files.File) *file {
	f := s.data[n]
	if f == nil {
		f = &file{number: int64(len(s.files)), node: n}
		s.files, s.data[n] = append(s.files, f), f
		n.Hold()
	}
	return f
}

// merge assigns the data of an NFS file to another one, because both are the same, unless the other has data
// already.
func (s *staging) merge(from, to *files.File) {
	if f := s.data[from]; f != nil && s.data[to] == nil {
		f.node, s.data[to] = to, f
		delete(s.data, from)
		to.Hold()
	}
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
func (s *staging) write(n *files.File, at int64, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	f := s.of(n)
	h, err := s.handle(f)
	if err == nil {
		_, err = h.WriteAt(data, at)
	}
	if err != nil {
		return s.failed(err, fmt.Sprintf("%d bytes at %d of %s", len(data), at, label(n.Handle())))
	}
	to := at + int64(len(data))
	f.add(at, to)
	f.data.add(at, to)
	return nil
}

// failed returns the error that ends the extraction because of err. It returns nil and
// counts the range if only the size of the file is the problem.
func (s *staging) failed(err error, what string) error {
	if errors.Is(err, syscall.EFBIG) {
		s.refused++
		return nil
	}
	return fmt.Errorf("extract: %s: %w", what, err)
}

// zero makes the bytes [from, to) of the file of n zeros. It writes at most as many
// bytes as it replaces data: the rest of the range is a hole on disk already.
func (s *staging) zero(n *files.File, from, to int64) error {
	f := s.of(n)
	h, err := s.handle(f)
	if err == nil && to > f.size {
		err = h.Truncate(to)
	}
	if end := min(to, f.size); err == nil && from < end {
		err = f.erase(h, from, end)
	}
	if err != nil {
		return s.failed(err, fmt.Sprintf("a hole at %d of %s", from, label(n.Handle())))
	}
	f.add(from, to)
	return nil
}

// erase replaces the data in the bytes [from, to) of a file by zeros.
func (f *file) erase(h *os.File, from, to int64) error {
	if f.data.full {
		// Not all data is in f.data. If the file system cannot punch holes either, the
		// rest of the data remains; the record of the file says that it is scattered.
		if punch(h, from, to) == nil {
			f.data.remove(from, to)
			return nil
		}
	}
	zeros := make([]byte, 1<<16)
	for _, r := range f.data.within(from, to) {
		for at := r.from; at < r.to; {
			n, err := h.WriteAt(zeros[:min(int64(len(zeros)), r.to-at)], at)
			if err != nil {
				return err
			}
			at += int64(n)
		}
	}
	f.data.remove(from, to)
	return nil
}

// resize truncates or extends the file of n, if n has one.
func (s *staging) resize(n *files.File, size int64) error {
	if s.data[n] == nil {
		return nil // it was neither read nor written so far
	}
	f := s.of(n)
	h, err := s.handle(f)
	if err == nil {
		err = h.Truncate(size)
	}
	if err != nil {
		return s.failed(err, fmt.Sprintf("%s to %d bytes", label(n.Handle()), size))
	}
	f.resize(size)
	return nil
}

// place moves f from the staging folder to the path that elements make, and
// returns that path. If the path exists already, place appends a number to it;
// existing files are never touched.
func (s *staging) place(f *file, elements []string) (string, error) {
	if len(elements) == 0 {
		elements = []string{label(f.node.Handle())}
	}
	folder := path.Join(elements[:len(elements)-1]...)
	if folder != "" {
		if err := s.root.MkdirAll(folder, 0o755); err != nil {
			return "", err
		}
	}
	wanted := path.Join(elements...)
	for i := s.taken[wanted] + 1; ; i++ {
		name := wanted
		if i > 1 {
			name += "~" + strconv.Itoa(i)
		}
		// An empty file reserves the name, so that the rename cannot replace another file.
		h, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			s.taken[wanted] = i
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
			err = s.setSize(f, h)
		}
		if err != nil {
			return fmt.Errorf("extract: %s: %w", label(f.node.Handle()), err)
		}
	}
	for _, f := range s.open {
		if err := f.open.Close(); err != nil {
			return fmt.Errorf("extract: %s: %w", label(f.node.Handle()), err)
		}
		f.open = nil
	}
	s.open = nil
	return nil
}

// setSize sets the size of a file, which may be larger than its data because some of
// the data was not captured. If the file system does not accept the size, the file
// keeps that of its data.
func (s *staging) setSize(f *file, h *os.File) error {
	err := h.Truncate(f.size)
	if !errors.Is(err, syscall.EFBIG) {
		return err
	}
	s.refused++
	info, err := h.Stat()
	if err == nil {
		f.size = info.Size()
	}
	return err
}

// away removes the staging folder.
func (s *staging) away() error {
	for _, f := range s.open {
		f.open.Close()
	}
	return s.root.RemoveAll(s.folder)
}
