package capture

import (
	"errors"
	"io"
)

// Merged reads several captures as one, ordered by time. Frames of one file
// keep their order even where their times do not; numbers count over all.
type Merged struct {
	inputs []input
	heap   []int // the inputs that have frames, the one with the earliest first
	empty  int   // the input whose batch was used up and not filled again, -1 for none
	count  int64
	fills  int64
	broken error
	single single
}

// input is one file, and its frames that are not handed out yet.
type input struct {
	file  *File
	batch Batch
	at    int   // the next frame in batch
	fill  int64 // of which batch of Merged's holds batch, too
}

// OpenAll opens captures to be read as one. When some cannot be opened, it
// reads the others; the error then joins theirs, and Merged is nil only when
// none is left.
func OpenAll(paths []string) (*Merged, error) {
	var files []*File
	var failed error
	for _, path := range paths {
		f, err := Open(path)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, failed
	}
	return Merge(files...), failed
}

// Merge reads files that are already open as one.
func Merge(files ...*File) *Merged {
	m := &Merged{inputs: make([]input, len(files)), empty: -1}
	for i, f := range files {
		m.inputs[i].file = f
		if len(files) > 1 {
			m.load(i)
		}
	}
	return m
}

// load reads the next frames of file i, and puts it where it belongs.
func (m *Merged) load(i int) {
	in := &m.inputs[i]
	in.at = 0
	if err := in.file.ReadBatch(&in.batch); err != nil {
		if err != io.EOF {
			m.broken = errors.Join(m.broken, err)
		}
		return
	}
	m.heap = append(m.heap, i)
	for at := len(m.heap) - 1; at > 0 && m.before(at, (at-1)/2); at = (at - 1) / 2 {
		m.heap[at], m.heap[(at-1)/2] = m.heap[(at-1)/2], m.heap[at]
	}
}

// before orders the heap: by time, and by the order of the files where that is
// the same.
func (m *Merged) before(a, b int) bool {
	a, b = m.heap[a], m.heap[b]
	x, y := m.inputs[a].head().Time, m.inputs[b].head().Time
	return x < y || x == y && a < b
}

func (in *input) head() *Frame { return &in.batch.Frames[in.at] }

// sink puts the first of the heap where it belongs, after it has changed.
func (m *Merged) sink() {
	for at := 0; ; {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(m.heap); child++ {
			if m.before(child, least) {
				least = child
			}
		}
		if least == at {
			return
		}
		m.heap[at], m.heap[least] = m.heap[least], m.heap[at]
		at = least
	}
}

// ReadBatch hands out the earliest frames, without a copy. At the end it returns
// io.EOF, or what broke when a file did; the other files have then been read to
// their ends. See [Source].
func (m *Merged) ReadBatch(b *Batch) error {
	if len(m.inputs) == 1 {
		return m.inputs[0].file.ReadBatch(b)
	}
	b.begin()
	if m.empty >= 0 {
		i := m.empty
		m.empty = -1
		m.load(i)
	}
	m.fills++
	for len(b.Frames) < maxBatch && len(m.heap) > 0 && m.empty < 0 {
		i := m.heap[0]
		in := &m.inputs[i]
		if in.fill != m.fills {
			in.fill = m.fills
			for _, h := range in.batch.held {
				b.hold(h)
			}
		}
		m.count++
		b.Frames = append(b.Frames, *in.head())
		b.Frames[len(b.Frames)-1].Number = m.count
		if in.at++; in.at == len(in.batch.Frames) {
			// Its next frames may come before the others', and may have to be
			// waited for: the batch ends here.
			m.empty = i
			last := len(m.heap) - 1
			m.heap[0], m.heap = m.heap[last], m.heap[:last]
		}
		m.sink()
	}
	switch {
	case len(b.Frames) > 0:
		return nil
	case m.broken != nil:
		return m.broken
	}
	return io.EOF
}

// Next hands out the earliest frame. See [Source].
func (m *Merged) Next(f *Frame) error { return m.single.next(m, f) }

// Progress adds up what the files tell; total is 0 when one does not know.
func (m *Merged) Progress() (read, total int64) {
	for i := range m.inputs {
		r, t := m.inputs[i].file.Progress()
		if t == 0 {
			return 0, 0
		}
		read, total = read+r, total+t
	}
	return read, total
}

// Dropped adds up what the files admit to have lost.
func (m *Merged) Dropped() (n uint64) {
	for i := range m.inputs {
		n += m.inputs[i].file.Dropped()
	}
	return n
}

// Close closes all files.
func (m *Merged) Close() error {
	var err error
	for i := range m.inputs {
		err = errors.Join(err, m.inputs[i].file.Close())
	}
	return err
}
