package capture

import (
	"errors"
	"io"
)

// Merged reads several captures as one, ordered by time. Frames of one file
// keep their order even where their times do not; numbers count over all.
type Merged struct {
	files  []*File
	heads  []Frame // the next frame of each file, not yet handed out
	loaded []bool  // heads[i] is filled in
	last   int     // the file whose frame was handed out last, -1 for none
	count  int64
	broken error
}

// OpenAll opens captures to be read as one. When some cannot be opened, it
// reads the others; the error then joins theirs, and Merged is nil only when
// none is left.
func OpenAll(paths []string) (*Merged, error) {
	m := &Merged{last: -1}
	var failed error
	for _, path := range paths {
		f, err := Open(path)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		m.files = append(m.files, f)
	}
	if len(m.files) == 0 {
		return nil, failed
	}
	m.heads = make([]Frame, len(m.files))
	m.loaded = make([]bool, len(m.files))
	for i := range m.files {
		m.load(i)
	}
	return m, failed
}

// Merge reads files that are already open as one.
func Merge(files ...*File) *Merged {
	m := &Merged{files: files, heads: make([]Frame, len(files)), loaded: make([]bool, len(files)), last: -1}
	for i := range files {
		m.load(i)
	}
	return m
}

// load reads the next frame of file i.
func (m *Merged) load(i int) {
	err := m.files[i].Next(&m.heads[i])
	m.loaded[i] = err == nil
	if err != nil && err != io.EOF {
		m.broken = errors.Join(m.broken, err)
	}
}

// Next hands out the earliest frame. At the end it returns io.EOF, or what
// broke when a file did; the other files have then been read to their ends.
func (m *Merged) Next(f *Frame) error {
	if m.last >= 0 { // only now: its bytes were valid until here
		m.load(m.last)
		m.last = -1
	}
	for i := range m.heads {
		if m.loaded[i] && (m.last < 0 || m.heads[i].Time < m.heads[m.last].Time) {
			m.last = i
		}
	}
	if m.last < 0 {
		if m.broken != nil {
			return m.broken
		}
		return io.EOF
	}
	m.count++
	*f = m.heads[m.last]
	f.Number = m.count
	return nil
}

// Progress adds up what the files tell; total is 0 when one does not know.
func (m *Merged) Progress() (read, total int64) {
	for _, f := range m.files {
		r, t := f.Progress()
		if t == 0 {
			return 0, 0
		}
		read, total = read+r, total+t
	}
	return read, total
}

// Dropped adds up what the files admit to have lost.
func (m *Merged) Dropped() (n uint64) {
	for _, f := range m.files {
		n += f.Dropped()
	}
	return n
}

// Close closes all files.
func (m *Merged) Close() error {
	var err error
	for _, f := range m.files {
		err = errors.Join(err, f.Close())
	}
	return err
}
