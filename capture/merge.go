package capture

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
)

// Merged reads several captures as one, ordered by time. Frames of one file
// keep their order even where their times do not; numbers count over all.
type Merged struct {
	inputs   []*input
	heap     []int // the inputs that have frames, the one with the earliest first
	empty    int   // the input whose batch was used up and not filled again, -1 for none
	count    int64
	fills    int64
	repeated []string
	broken   error

	mu sync.Mutex // of what Progress looks at while another goroutine reads
}

// input is one file, and its frames that are not handed out yet.
type input struct {
	file  *File // nil when it is not open: not yet again, or no more
	batch Batch
	at    int   // the next frame in batch
	fill  int64 // of which batch of Merged's holds batch, too

	path       string
	name       string // in messages
	first      int64  // the time of its first frame, while it is not open yet
	read, size int64  // while it is not open
	dropped    uint64
}

// manyFiles is how many files are kept open from the start on. Of more, as a ring
// of captures has them, each is opened for its first frame, closed, and opened
// again when it is its turn.
const manyFiles = 4

// OpenAll opens captures to be read as one. A file that is named again is left
// out, see [Merged.Repeated]. When some cannot be opened, it reads the others; the
// error then joins theirs, and Merged is nil only when none is left.
func OpenAll(paths []string) (*Merged, error) { return OpenAllAs(paths, nil) }

// OpenAllAs is OpenAll of files of which some have other names in messages: those
// in names, by their paths.
func OpenAllAs(paths []string, names map[string]string) (*Merged, error) {
	m := &Merged{empty: -1}
	if len(paths) == 0 {
		return nil, errors.New("capture: no file to open")
	}
	var failed error
	var seen []os.FileInfo
	for _, path := range paths {
		name := path
		if other, is := names[path]; is {
			name = other
		}
		stat := func() (os.FileInfo, error) { return os.Stat(path) }
		if path == "-" {
			stat = os.Stdin.Stat
		}
		info, err := stat()
		if err == nil && slices.ContainsFunc(seen, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
			m.repeated = append(m.repeated, name)
			continue
		}
		f, err := openAs(path, name)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if info != nil {
			seen = append(seen, info)
		}
		m.inputs = append(m.inputs, &input{file: f, path: path, name: name})
		if len(paths) > manyFiles {
			m.load(context.Background(), len(m.inputs)-1, f.size > 0)
		}
	}
	switch {
	case len(m.inputs) == 0:
		return nil, failed
	case len(paths) <= manyFiles && len(m.inputs) > 1:
		for i := range m.inputs {
			m.load(context.Background(), i, false)
		}
	}
	return m, failed
}

// Merge reads files that are already open as one.
func Merge(files ...*File) *Merged {
	m := &Merged{empty: -1}
	for i, f := range files {
		m.inputs = append(m.inputs, &input{file: f})
		if len(files) > 1 {
			m.load(context.Background(), i, false)
		}
	}
	return m
}

// Repeated are the names of files that had been named before, and are read once.
func (m *Merged) Repeated() []string { return m.repeated }

// load reads the next frames of file i, and puts it where it belongs. A file that
// is for later is closed again.
func (m *Merged) load(ctx context.Context, i int, later bool) {
	in := m.inputs[i]
	in.at = 0
	err := m.open(in)
	if err == nil {
		err = in.file.ReadBatch(ctx, &in.batch)
	}
	switch {
	case err == nil && later:
		in.first = in.head().Time
		in.batch.Release()
		m.close(in)
		in.read = 0
	case err != nil:
		if err != io.EOF {
			m.broken = errors.Join(m.broken, err)
		}
		m.close(in)
		return
	}
	m.heap = append(m.heap, i)
	for at := len(m.heap) - 1; at > 0 && m.before(at, (at-1)/2); at = (at - 1) / 2 {
		m.heap[at], m.heap[(at-1)/2] = m.heap[(at-1)/2], m.heap[at]
	}
}

func (m *Merged) open(in *input) error {
	if in.file != nil {
		return nil
	}
	f, err := openAs(in.path, in.name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	in.file = f
	m.mu.Unlock()
	return nil
}

// close notes what the file had to say; its frames stay.
func (m *Merged) close(in *input) error {
	if in.file == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	in.read, in.size = in.file.Progress()
	in.dropped = in.file.Dropped()
	err := in.file.Close()
	in.file = nil
	return err
}

// before orders the heap: by time, and by the order of the files where that is
// the same.
func (m *Merged) before(a, b int) bool {
	a, b = m.heap[a], m.heap[b]
	x, y := m.inputs[a].time(), m.inputs[b].time()
	return x < y || x == y && a < b
}

// time is that of the next frame.
func (in *input) time() int64 {
	if len(in.batch.Frames) == 0 {
		return in.first
	}
	return in.head().Time
}

func (in *input) head() *Frame { return &in.batch.Frames[in.at] }

// pop takes the first off the heap.
func (m *Merged) pop() {
	last := len(m.heap) - 1
	m.heap[0], m.heap = m.heap[last], m.heap[:last]
	m.sink()
}

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
func (m *Merged) ReadBatch(ctx context.Context, b *Batch) error {
	if len(m.inputs) == 1 && len(m.inputs[0].batch.Frames) == 0 && m.inputs[0].file != nil {
		return m.inputs[0].file.ReadBatch(ctx, b)
	}
	if b.begin(); ctx.Err() != nil {
		return io.EOF
	}
	if m.empty >= 0 {
		i := m.empty
		m.empty = -1
		m.load(ctx, i, false)
	}
	m.fills++
	for len(b.Frames) < maxBatch && len(m.heap) > 0 && m.empty < 0 {
		i := m.heap[0]
		in := m.inputs[i]
		if len(in.batch.Frames) == 0 { // it is its turn
			m.pop()
			m.load(ctx, i, false)
			continue
		}
		if in.fill != m.fills {
			in.fill = m.fills
			for _, h := range in.batch.held {
				b.hold(h)
			}
		}
		m.count++
		b.Frames = append(b.Frames, *in.head())
		b.Frames[len(b.Frames)-1].Number = m.count
		if in.at++; in.at < len(in.batch.Frames) {
			m.sink()
			continue
		}
		// Its next frames may come before the others', and may have to be waited
		// for: the batch ends here.
		m.empty = i
		m.pop()
	}
	switch {
	case len(b.Frames) > 0:
		return nil
	case m.broken != nil:
		return m.broken
	}
	return io.EOF
}

// Progress adds up what the files tell; total is 0 when one does not know. It may
// be called while another goroutine reads.
func (m *Merged) Progress() (read, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, in := range m.inputs {
		r, t := in.read, in.size
		if in.file != nil {
			r, t = in.file.Progress()
		}
		if t == 0 {
			return 0, 0
		}
		read, total = read+r, total+t
	}
	return read, total
}

// Dropped adds up what the files admit to have lost, when reading is over.
func (m *Merged) Dropped() (n uint64) {
	for _, in := range m.inputs {
		if n += in.dropped; in.file != nil {
			n += in.file.Dropped()
		}
	}
	return n
}

// Close closes all files.
func (m *Merged) Close() error {
	var err error
	for _, in := range m.inputs {
		err = errors.Join(err, m.close(in))
	}
	return err
}
