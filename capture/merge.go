package capture

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"sync"
)

// Merged reads several captures as one, ordered by time. Frames of one file keep their order even
// if their times are not in order. Frame numbers count across all files.
type Merged struct {
	inputs   []*input
	pool     *pool // of the blocks of all files
	opened   int   // number of open files
	spare    []Frame
	kept     int64 // bytes of the frames that closed files keep
	heap     []int // indexes of the inputs that have frames, as a heap: the input with the earliest frame is first
	empty    int   // index of the input whose batch is used up and must be refilled, -1 if there is none
	count    int64
	fills    int64
	repeated []string
	numbered bool // frames keep the numbers that they have in their files
	broken   error

	mu sync.Mutex // guards the fields that Progress reads from another goroutine
}

// input is one file and its frames that were not returned yet.
type input struct {
	file  *File // nil while the file is closed: before its turn, or after its end
	batch Batch
	at    int   // index of the next frame in batch
	fill  int64 // number of the Merged batch that already holds the blocks of batch

	path       string
	name       string // name for messages
	part       *Part  // nil if all frames of the file are read, unchanged
	first      int64  // time of the next frame, while the file is not open
	span       Span   // if it is known
	began      int64  // time of the first frame of the file
	last       int64  // time of the last frame that was read
	started    bool   // began is set
	skip       int64  // number of frames that were returned before the file was closed
	kept       int64  // bytes of the frames that it keeps while it is closed
	resume     int64  // offset of the next frame in a plain pcap file then; 0 if it is not known
	read, size int64  // progress, while the file is not open
	dropped    uint64
	beyond     Beyond
}

// manyFiles is the largest number of files that are all kept open. If there are more, as in a ring
// of capture files, each file is opened for the time of its first frame, closed, and opened again
// when its frames are due.
const manyFiles = 4

// maxOpen limits the number of files that are open at once, because each takes some hundred kilobytes of memory, and a compressed one
// its window, too; but to open a compressed file again means to unpack it from its beginning. If the times of more files overlap, the one
// whose next frames have to be read last is closed until then. It keeps at most about keepBytes of the frames that were read already, and
// less if the files that are closed together keep nearly keepAll, but keepLeast at least.
const (
	maxOpen   = 64
	keepBytes = 64 << 10
	keepLeast = 4 << 10
	keepAll   = 16 << 20

	frameBytes = 160 // size of a Frame
)

// OpenAll opens several captures and merges them by time. A file that is named twice is read once,
// see [Merged.Repeated]. If some of the files cannot be opened, OpenAll returns a Merged that reads
// the others, together with the joined errors. Merged is nil only if no file could be opened.
func OpenAll(paths []string) (*Merged, error) { return OpenAllAs(paths, nil) }

// OpenAllAs is like OpenAll, but messages show a file under another name if names has one for its
// path.
func OpenAllAs(paths []string, names map[string]string) (*Merged, error) {
	m := &Merged{empty: -1, pool: poolFor(len(paths))}
	if len(paths) == 0 {
		return nil, errors.New("capture: no file to open")
	}
	var failed error
	seen := map[int64][]os.FileInfo{} // by size
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
		if err == nil && slices.ContainsFunc(seen[info.Size()], func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
			m.repeated = append(m.repeated, name)
			continue
		}
		if info != nil {
			seen[info.Size()] = append(seen[info.Size()], info)
		}
		if len(paths) > manyFiles {
			span, known := SpanOf(path)
			first := span.First
			if !known { // It may be compressed.
				first, known = firstOf(path)
			}
			if known {
				m.inputs = append(m.inputs, &input{path: path, name: name, first: first, span: span, size: info.Size()})
				m.push(len(m.inputs) - 1)
				continue
			}
		}
		f, err := openAs(path, name, m.pool)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		m.inputs = append(m.inputs, &input{file: f, path: path, name: name})
		m.opened++
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

// poolFor returns a pool of blocks for a number of files.
func poolFor(files int) *pool {
	if files > manyFiles {
		return &pool{headroom: 16 << 10, read: 64 << 10} // A rest that is longer than usual frames is joined in a block of its own.
	}
	return newPool()
}

// Merge returns a source that merges already opened files, ordered by time.
func Merge(files ...*File) *Merged {
	m := &Merged{empty: -1, pool: newPool(), opened: len(files)}
	for i, f := range files {
		m.inputs = append(m.inputs, &input{file: f})
		if len(files) > 1 {
			m.load(context.Background(), i, false)
		}
	}
	return m
}

// Paths returns the paths of the files that are read, each once, in the order in which they were named.
func (m *Merged) Paths() (paths []string) {
	for _, in := range m.inputs {
		paths = append(paths, in.path)
	}
	return paths
}

// series returns the series among the files, whose Files are indexes of [Merged.Paths].
func (m *Merged) series() []Series {
	spans := map[string]Span{}
	for _, in := range m.inputs {
		spans[in.path] = in.span
	}
	return SeriesOf(m.Paths(), func(path string) (Span, bool) {
		if s := spans[path]; s != (Span{}) {
			return s, true
		}
		return SpanOf(path)
	})
}

// checks is the number of files of a long series that [Merged.OneSeries] reads to the end if they are compressed.
const checks = 8

// OneSeries reports whether one program wrote all files one after the other. When a compressed file ends is known only after it was
// read. So, before the files were read, only some of those with regular names are read to see whether they end before the next one
// begins, and all whose names do not follow those before them: the same names with other numbers may be those of several hosts.
func (m *Merged) OneSeries(ctx context.Context) bool {
	paths, byPath := m.Paths(), map[string]*input{}
	endless := map[string]bool{} // files whose ends are not known
	for _, in := range m.inputs {
		byPath[in.path] = in
	}
	list := SeriesOf(paths, func(path string) (Span, bool) {
		in := byPath[path]
		if in.span != (Span{}) {
			return in.span, true
		}
		if s, known := SpanOf(path); known {
			return s, true
		}
		endless[path] = true
		return Span{in.began, in.began}, in.started
	})
	if len(list) != 1 || len(list[0].Files) != len(paths) {
		return false
	}
	files := list[0].Files
	numbers := map[int][]uint64{}
	for _, i := range files {
		numbers[i] = numbersIn(paths[i])
	}
	for n, i := range files[:len(files)-1] {
		next := files[n+1]
		follows := slices.EqualFunc(numbers[i], numbers[next], func(a, b uint64) bool { return a <= b })
		if !endless[paths[i]] || !byPath[paths[next]].started || follows && n%max((len(files)-1)/checks, 1) > 0 {
			continue
		}
		span, known := ReadSpan(ctx, paths[i])
		if !known || byPath[paths[next]].began < span.Last-borders {
			return false
		}
		byPath[paths[i]].span = span
	}
	return true
}

// MissingFiles returns which files of a ring are missing, by the numbers in the names of the others.
func (m *Merged) MissingFiles() (list []MissingFiles) {
	for _, s := range m.series() {
		for _, a := range s.Missing {
			list = append(list, MissingFiles{m.inputs[a.After].name, m.inputs[a.Before].name, a.Count})
		}
	}
	return list
}

// MayHavePoints reports whether the capture may be one of several capture points: it has several files, or its only file
// describes several interfaces. It must be called before the first frame is read.
func (m *Merged) MayHavePoints() bool {
	return len(m.inputs) > 1 || len(m.inputs) == 1 && m.inputs[0].file != nil && len(m.inputs[0].batch.Frames) == 0 && m.inputs[0].file.Interfaces() > 1
}

// Repeated returns the names of the files that were named more than once. Each of them is read
// once.
func (m *Merged) Repeated() []string { return m.repeated }

// load reads the next batch of input i and inserts the input into the heap. If later is true, load
// only notes the time of the first frame and closes the file again.
func (m *Merged) load(ctx context.Context, i int, later bool) {
	in := m.inputs[i]
	in.at = 0
	m.kept, in.kept = m.kept-in.kept, 0
	if cap(in.batch.Frames) < maxBatch {
		in.batch.Frames, m.spare = m.spare, nil
	}
	err := m.open(in)
	if err == nil {
		err = in.refill(ctx)
	}
	switch {
	case err == nil && later:
		in.suspend(0)
		m.retire(in)
		in.read = 0
	case err != nil:
		if err != io.EOF {
			m.broken = errors.Join(m.broken, err)
		}
		m.retire(in)
		return
	}
	m.push(i)
	for m.opened > maxOpen && m.pause() {
	}
}

// push inserts an input into the heap.
func (m *Merged) push(i int) {
	if in := m.inputs[i]; !in.started {
		in.began, in.started = in.time(), true
	}
	m.heap = append(m.heap, i)
	for at := len(m.heap) - 1; at > 0 && m.before(at, (at-1)/2); at = (at - 1) / 2 {
		m.heap[at], m.heap[(at-1)/2] = m.heap[(at-1)/2], m.heap[at]
	}
}

// Part selects frames of a file, such as those of one interface.
type Part struct {
	Path string
	Name string // name of the file for messages
	// Take may change the time of a frame. It returns false for a frame that does not belong to the part.
	Take func(*Frame) bool
}

// OpenParts merges parts of files, ordered by the times that [Part.Take] sets. Frames keep the numbers
// that they have in their files, and Input is the index of the part. All parts are opened, or none is.
func OpenParts(ctx context.Context, parts []Part) (*Merged, error) {
	m := &Merged{empty: -1, numbered: true, pool: poolFor(len(parts))}
	for i := range parts {
		p := &parts[i]
		m.inputs = append(m.inputs, &input{path: p.Path, name: p.Name, part: p})
		if err := m.open(m.inputs[i]); err != nil {
			m.Close()
			return nil, err
		}
		m.load(ctx, i, len(parts) > manyFiles)
	}
	return m, nil
}

// refill reads the next batch of the input that has frames of its part, and that were not returned yet.
func (in *input) refill(ctx context.Context) error {
	for {
		err := in.file.ReadBatch(ctx, &in.batch)
		switch {
		case err == io.EOF && in.started && in.part == nil: // Now the span of a compressed file is known, too.
			in.span = Span{in.began, in.last}
		case err == nil && len(in.batch.Frames) > 0:
			in.last = in.batch.Frames[len(in.batch.Frames)-1].Time
		}
		if err != nil || in.part == nil && in.skip == 0 {
			return err
		}
		kept := in.batch.Frames[:0]
		for i := range in.batch.Frames {
			if f := &in.batch.Frames[i]; f.Number > in.skip && (in.part == nil || in.part.Take(f)) {
				kept = append(kept, *f)
			}
		}
		if in.batch.Frames = kept; len(kept) > 0 {
			return nil
		}
	}
}

// suspend returns copies of the next frames of the input, until they have at least a number of bytes. It forgets the others that were
// not returned yet, and notes where they are in the file.
func (in *input) suspend(atLeast int) (kept []Frame) {
	left := in.batch.Frames[in.at:]
	n, bytes := 0, 0
	for ; n < len(left) && in.kept < int64(atLeast); n++ {
		bytes += len(left[n].Data) + len(left[n].Options)
		in.kept = int64(bytes + (n+1)*frameBytes)
	}
	kept = append(make([]Frame, 0, n), left[:n]...)
	data := make([]byte, 0, bytes)
	for i := range kept {
		f, at := &kept[i], len(data)
		data = append(append(data, f.Data...), f.Options...)
		f.Options = data[at+len(f.Data) : len(data) : len(data)]
		f.Data = data[at : at+len(f.Data) : at+len(f.Data)]
	}
	in.first, in.resume, in.fill = left[0].Time, 0, 0
	if n > 0 {
		in.skip = left[n-1].Number
	} else {
		in.skip = left[0].Number - 1
	}
	whole := left[len(left)-1].Number-in.skip == int64(len(left)-n) // No frame after the kept ones was left out.
	if r, plain := in.file.reader.(*pcapReader); plain && whole && in.skip > 0 && !in.file.packed.Load() {
		in.resume = in.file.stream.offset
		for i := range left[n:] {
			in.resume -= int64(r.record + len(left[n+i].Data))
		}
	}
	in.batch.Release()
	return kept
}

// pause closes the file whose frames that were read already end last. It returns false if there is none that can be opened again.
func (m *Merged) pause() bool {
	var latest *input
	end := func(in *input) int64 { return in.batch.Frames[len(in.batch.Frames)-1].Time }
	for _, i := range m.heap {
		in := m.inputs[i]
		if in.file == nil || in.file.size == 0 || len(in.batch.Frames) == 0 {
			continue
		}
		if latest == nil || end(in) > end(latest) {
			latest = in
		}
	}
	if latest == nil {
		return false
	}
	kept := latest.suspend(int(max(keepLeast, min(keepBytes, (keepAll-m.kept)/maxOpen))))
	m.kept += latest.kept
	m.retire(latest)
	latest.batch.Frames, latest.at = kept, 0
	return true
}

// reopen opens the file of an input, at the frame after those that were returned.
func (m *Merged) reopen(in *input) (f *File, err error) {
	if in.resume > 0 {
		return resumed(in.path, in.name, m.pool, in.resume, in.skip)
	}
	return openAs(in.path, in.name, m.pool)
}

func (m *Merged) open(in *input) error {
	if in.file != nil {
		return nil
	}
	f, err := m.reopen(in)
	if err != nil {
		return err
	}
	m.opened++
	m.mu.Lock()
	in.file = f
	m.mu.Unlock()
	return nil
}

// close saves the file's counters and closes the file. The frames in the input's batch stay valid.
func (m *Merged) close(in *input) error {
	if in.file == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	in.read, in.size = in.file.Progress()
	in.dropped, in.beyond = in.file.Dropped(), in.file.beyond
	err := in.file.Close()
	m.opened--
	in.file = nil
	return err
}

// retire closes the file of an input, and keeps its memory for the next one.
func (m *Merged) retire(in *input) {
	if in.file != nil {
		in.file.stream.recycle()
	}
	m.close(in)
	in.batch.Release()
	if m.spare == nil {
		m.spare = in.batch.Frames
	}
	in.batch.Frames = nil
}

// before orders the heap by time. Of inputs with equal times, the one whose file began earlier is first, because a ring continues in
// the next file, and then the one that was given first.
func (m *Merged) before(a, b int) bool {
	a, b = m.heap[a], m.heap[b]
	in, other := m.inputs[a], m.inputs[b]
	if x, y := in.time(), other.time(); x != y {
		return x < y
	}
	if in.began != other.began {
		return in.began < other.began
	}
	return a < b
}

// time returns the time of the input's next frame.
func (in *input) time() int64 {
	if len(in.batch.Frames) == 0 {
		return in.first
	}
	return in.head().Time
}

func (in *input) head() *Frame { return &in.batch.Frames[in.at] }

// pop removes the first element of the heap.
func (m *Merged) pop() {
	last := len(m.heap) - 1
	m.heap[0], m.heap = m.heap[last], m.heap[:last]
	m.sink()
}

// sink restores the order of the heap after its first element has changed.
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

// ReadBatch returns the earliest frames without copying them. At the end it returns io.EOF, or the
// errors of damaged files; the other files have been read to their ends by then. See [Source].
func (m *Merged) ReadBatch(ctx context.Context, b *Batch) error {
	if len(m.inputs) == 1 && len(m.inputs[0].batch.Frames) == 0 && m.inputs[0].file != nil && m.inputs[0].part == nil {
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
		if len(in.batch.Frames) == 0 { // the file was closed and its frames are due now
			m.pop()
			m.load(ctx, i, false)
			continue
		}
		if in.fill != m.fills {
			in.fill = m.fills
			for _, h := range in.batch.blocks {
				b.hold(h)
			}
		}
		m.count++
		b.Frames = append(b.Frames, *in.head())
		f := &b.Frames[len(b.Frames)-1]
		if f.Input = uint16(min(i, math.MaxUint16)); !m.numbered {
			f.Number = m.count
		}
		if in.at++; in.at < len(in.batch.Frames) {
			m.sink()
			continue
		}
		// The next frames of this input may be earlier than those of the others, and reading them
		// may block. So the batch ends here.
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

// Progress returns the sums over all files. The total is 0 if the size of one file is unknown.
// Progress may be called while another goroutine reads.
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

// Dropped returns the number of packets that the files report as dropped. The count is complete
// when all files were read.
func (m *Merged) Dropped() (n uint64) {
	for _, in := range m.inputs {
		if n += in.dropped; in.file != nil {
			n += in.file.Dropped()
		}
	}
	return n
}

// Beyond describes the files with times that do not fit in [Frame.Time]. It is complete when all files were read.
func (m *Merged) Beyond() (list []Beyond) {
	for _, in := range m.inputs {
		b := in.beyond
		if in.file != nil {
			b = in.file.beyond
		}
		if b.Name = in.name; b.Frames > 0 && !slices.ContainsFunc(list, func(other Beyond) bool { return other.Name == b.Name }) {
			list = append(list, b)
		}
	}
	return list
}

// Close closes all files.
func (m *Merged) Close() error {
	var err error
	for _, in := range m.inputs {
		err = errors.Join(err, m.close(in))
	}
	return err
}
