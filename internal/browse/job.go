package browse

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/index"
	"github.com/rdmadump/rdmadump/internal/query"
)

// pause is the time that a job waits for more records.
const pause = 30 * time.Millisecond

// job is work in a goroutine of its own, with a result that the Model takes when it is there.
type job[T any] struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the work has ended
	mu     sync.Mutex
	result T
	ended  bool
}

// start starts a job. Work may pass intermediate results.
func start[T any](m *Model, work func(ctx context.Context, pass func(T)) T) *job[T] {
	ctx, cancel := context.WithCancel(m.ctx)
	j := &job[T]{cancel: cancel, done: make(chan struct{})}
	m.jobs.Go(func() {
		defer close(j.done)
		defer m.recovered()
		result := work(ctx, func(result T) {
			j.mu.Lock()
			j.result = result
			j.mu.Unlock()
		})
		j.mu.Lock()
		j.result, j.ended = result, true
		j.mu.Unlock()
	})
	return j
}

// get returns the latest result, and whether the job has ended.
func (j *job[T]) get() (result T, ended bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.result, j.ended
}

// stop ends a job whose result is not needed any more. The job may be nil.
func (j *job[T]) stop() {
	if j != nil {
		j.cancel()
	}
}

// patience is the time that a key waits for a result before the screen is drawn without it.
const patience = 5 * time.Millisecond

// later does work that may take longer than a frame: it looks at all rows. The work returns a function
// that shows its result. What says what the work is. The next key ends it.
func (m *Model) later(what string, work func(ctx context.Context, r *index.Reader) (show func())) {
	x := m.options.Index
	m.looking.stop()
	m.looking = start(m, func(ctx context.Context, _ func(func())) func() {
		r := x.Reader()
		defer r.Close()
		return work(ctx, r)
	})
	m.say(what + "; any key ends it")
	select {
	case <-m.looking.done:
	case <-time.After(patience):
	}
	m.takeLooking()
}

// takeLooking shows the result of later, if it is there.
func (m *Model) takeLooking() {
	if m.looking == nil {
		return
	}
	if show, ended := m.looking.get(); ended {
		m.looking, m.message = nil, ""
		show()
	}
}

// matches are the records of a list that a filter selects.
type matches struct {
	numbers []int64
	dropped int64 // number of records that were selected and are not kept any more
	seen    int64 // number of records that the filter was applied to
	err     error
}

// selected returns the numbers of the records that a filter selects, if it was applied to all of them. It returns nil for all
// records, if there is no filter, or no match, or if it cannot be known yet because the capture is still being read.
func selected(ctx context.Context, found *job[matches], done bool) []int64 {
	if found == nil || !done {
		return nil
	}
	select {
	case <-found.done:
	case <-ctx.Done():
	}
	all, _ := found.get()
	if len(all.numbers) == 0 {
		return nil
	}
	return all.numbers
}

// rowPaths are the fields that can be set in a record from its row, without reading the record.
var rowPaths = []string{"id", "xid", "connection", "latency_ns", "operation", "time", "direction"}

// fromRow sets the fields rowPaths of a record from its row.
func fromRow(r *record.Transaction, row *index.Row, names []string) {
	r.ID, r.XID, r.Connection = row.ID, row.XID, int(row.Connection)
	r.Call.Time, r.Direction = row.Time, record.Forward
	if row.Marks&index.Backward != 0 {
		r.Direction = record.Backward
	}
	r.LatencyNS, r.Operation = record.Opt[int64]{}, record.Opt[string]{}
	if row.LatencyNS != index.Unknown {
		r.LatencyNS = record.Some(row.LatencyNS)
	}
	if name := names[row.Operation]; name != "" {
		r.Operation = record.Some(name)
	}
}

// matcher applies a filter to the records of a list.
type matcher struct {
	*source
	filter *query.Filter
	reader *index.Reader
}

// each calls visit for the records of a span with the verdict of the filter, until visit returns false. It
// reads only the rows of RPCs if they are enough for the filter.
func (m *matcher) each(ctx context.Context, span [2]int64, visit func(n int64, hit bool) bool) error {
	f, r := m.filter, m.reader
	var failed error
	verdict := func(n int64, rec any) bool {
		hit, err := f.Match(rec)
		if err != nil {
			failed = err
			return false
		}
		return visit(n, hit)
	}
	var err error
	if m.fields == query.Transactions && !slices.ContainsFunc(f.Paths(), func(path string) bool { return !slices.Contains(rowPaths, path) }) {
		small := &record.Transaction{Call: &record.Message{}}
		names := r.Names()
		err = r.Rows(ctx, span[0], span[1], func(n int64, row *index.Row) bool {
			if int(row.Operation) >= len(names) {
				names = r.Names()
			}
			if row.Marks&index.Unnamed == 0 {
				fromRow(small, row, names)
				return verdict(n, small)
			}
			rec, err := m.get(r, n)
			if err != nil || rec == nil {
				failed = err
				return err == nil
			}
			return verdict(n, rec)
		})
	} else {
		err = m.source.each(ctx, r, span, verdict)
	}
	if failed != nil {
		return failed
	}
	return err
}

// filtered returns a job that selects the records of a list, until all of the capture was read.
func filtered(m *Model, src *source, expression string) *job[matches] {
	x := m.options.Index
	return start(m, func(ctx context.Context, pass func(matches)) (found matches) {
		f, err := query.Compile(expression, src.fields)
		if err != nil {
			found.err = err
			return found
		}
		r := x.Reader()
		defer r.Close()
		match := matcher{src, f, r}
		next := int64(0)
		found.err = eachUntilDone(ctx, x, func(s index.State) error {
			from, to := src.bounds(s)
			next = max(next, from)
			if gone, _ := slices.BinarySearch(found.numbers, from); gone > 0 {
				found.numbers, found.dropped = slices.Clone(found.numbers[gone:]), found.dropped+int64(gone)
			}
			err := match.each(ctx, [2]int64{next, to}, func(n int64, hit bool) bool {
				if found.seen++; hit {
					found.numbers = append(found.numbers, n)
				}
				if found.seen%4096 == 0 {
					pass(found)
				}
				next = n + 1
				return true
			})
			pass(found)
			return err
		})
		return found
	})
}

// eachUntilDone calls visit with the state of an index whenever there may be more records, and for
// the last time when all of them are there.
func eachUntilDone(ctx context.Context, x *index.Index, visit func(index.State) error) error {
	for {
		s := x.State()
		if err := visit(s); err != nil || s.Done {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
