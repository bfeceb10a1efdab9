package browse

import (
	"context"
	"slices"
	"sync"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/diagnose"
)

// Reading takes the records of a capture while one pass reads it, and keeps what the screens show. One goroutine adds records.
type Reading struct {
	space             *space
	rpcs, connections *store
	keep              int64

	mu         sync.Mutex
	ids        []int64 // of the RPCs, in the order in which they ended, from the first that is kept on
	files      *analyze.Files
	operations *analyze.Table
	diagnosis  diagnose.Collector
	Network    func() []*record.Network // returns, at the end, what happened between several capture points; nil for one
	problems   []*record.Problem        // nil until the summary is known
	state      state
	progress   func() (read, total int64)
}

// state says how far a Reading is.
type state struct {
	Start       record.Opt[record.Time] // time of the first packet; unknown before it was read
	Done        bool                    // all of the capture was read, or reading it failed
	Summary     *record.Summary         // nil until Done, and for records without a summary
	Err         error                   // that ended reading early, or made records get lost
	Read, Total int64                   // bytes of the input; Total is 0 if it is unknown
}

// The memory of a Reading, in bytes, if the caller does not say it, and that of the table of files.
const (
	usualMemory = 64 << 20
	filesMemory = 32 << 20
)

// NewReading returns a Reading that keeps at most this number of bytes of records in memory, and the others in a temporary file; 0 is
// 64 MiB. Keep is the number of RPCs to keep, the newest ones; 0 keeps all.
func NewReading(memory, keep int64) *Reading {
	if memory == 0 {
		memory = usualMemory
	}
	s := &space{limit: memory}
	return &Reading{
		space: s, rpcs: newStore(s), connections: newStore(s), keep: keep,
		files: analyze.NewFiles(filesMemory), operations: analyze.NewTable(analyze.ByOperation),
	}
}

// Handler returns a handler that adds records.
func (r *Reading) Handler() dissect.Handler {
	return dissect.Handler{
		Begin: func(first record.Time) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.state.Start = record.Some(first)
			return nil
		},
		Transaction: func(t *record.Transaction) error {
			r.rpcs.add(t)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ids = append(r.ids, t.ID)
			r.files.Add(t)
			r.operations.Add(t)
			r.diagnosis.Transaction(t)
			if n := int64(len(r.ids)); r.keep > 0 && n > r.keep+4096 {
				before, to := r.rpcs.bounds()
				r.rpcs.forget(to - r.keep)
				after, _ := r.rpcs.bounds()
				r.ids = slices.Clone(r.ids[after-before:])
			}
			return nil
		},
		Task: func(t *record.Task) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.diagnosis.Task(t)
			return nil
		},
		Connection: func(c *record.Connection) error {
			r.connections.add(c)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.diagnosis.Connection(c)
			return nil
		},
		Operation: func(o *record.RDMAOperation) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.diagnosis.Operation(o)
			return nil
		},
		Finding: func(f *record.Finding) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.diagnosis.Finding(f)
			return nil
		},
	}
}

// Run dissects a capture and adds its records. It returns when the capture ends, or cannot be read further, or ctx ends.
func (r *Reading) Run(ctx context.Context, source capture.Source, o dissect.Options) {
	if s, ok := source.(interface{ Progress() (int64, int64) }); ok {
		r.mu.Lock()
		r.progress = s.Progress
		r.mu.Unlock()
	}
	r.Finish(dissect.New(r.Handler(), o).Run(ctx, source))
}

// Finish notes that all records were added. Err is the error that ended reading early, or nil.
func (r *Reading) Finish(summary *record.Summary, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Summary, r.state.Err, r.state.Done = summary, err, true
	if summary != nil {
		if !r.state.Start.Known() {
			r.state.Start = summary.First
		}
	}
	if r.Network != nil {
		r.diagnosis.Network(r.Network())
	}
	r.problems = slices.DeleteFunc(r.diagnosis.Problems(summary), func(p *record.Problem) bool { return !p.Shown() })
}

// found returns the problems, the worst first. They are not known before the end.
func (r *Reading) found() (list []*record.Problem, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problems, r.problems != nil
}

// now returns how far the Reading is.
func (r *Reading) now() state {
	r.mu.Lock()
	s, progress := r.state, r.progress
	r.mu.Unlock()
	if progress != nil {
		s.Read, s.Total = progress()
	}
	if r.space.mu.Lock(); s.Err == nil {
		s.Err = r.space.failed
	}
	r.space.mu.Unlock()
	return s
}

// Err returns the error that ended reading early.
func (r *Reading) Err() error { return r.now().Err }

// order returns the positions of the RPCs in the order of their numbers, or nil if that is the order in which they ended.
func (r *Reading) order() (numbers []int64) {
	from, _ := r.rpcs.bounds()
	r.mu.Lock()
	ids := slices.Clone(r.ids)
	r.mu.Unlock()
	if slices.IsSorted(ids) {
		return nil
	}
	for i := range ids {
		numbers = append(numbers, from+int64(i))
	}
	slices.SortFunc(numbers, func(a, b int64) int { return int(ids[a-from] - ids[b-from]) })
	return numbers
}

// position returns the position of the RPC with a number, or -1 if it is not kept.
func (r *Reading) position(id int64) int64 {
	from, _ := r.rpcs.bounds()
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.ids, id); i >= 0 {
		return from + int64(i)
	}
	return -1
}

// fileRows and operationRows return the sums so far, as their views list them.
func (r *Reading) fileRows() []*analyze.File {
	r.mu.Lock()
	defer r.mu.Unlock()
	return clones(r.files.Rows())
}

func (r *Reading) operationRows() []*analyze.Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return clones(r.operations.Rows())
}

// clones returns copies of rows, which change while the capture is read.
func clones[T any](rows []*T) []*T {
	for i, row := range rows {
		c := *row
		rows[i] = &c
	}
	return rows
}

// Close removes the temporary file. Nothing may be read afterwards.
func (r *Reading) Close() { r.space.close() }
