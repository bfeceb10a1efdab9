package browse

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rdmadump/rdmadump/index"
	"github.com/rdmadump/rdmadump/query"
)

// pause is the time that a job waits for more records.
const pause = 30 * time.Millisecond

// job is work in a goroutine of its own, with a result that the Model takes when it is there.
type job[T any] struct {
	cancel context.CancelFunc
	mu     sync.Mutex
	result T
	ended  bool
}

// start starts a job. Work may pass intermediate results.
func start[T any](m *Model, work func(ctx context.Context, pass func(T)) T) *job[T] {
	ctx, cancel := context.WithCancel(m.ctx)
	j := &job[T]{cancel: cancel}
	m.jobs.Go(func() {
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

// matches are the records of a list that a filter selects.
type matches struct {
	numbers []int64
	dropped int64 // number of records that were selected and are not kept any more
	seen    int64 // number of records that the filter was applied to
	err     error
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
		next := int64(0)
		found.err = eachUntilDone(ctx, x, func(s index.State) error {
			from, to := src.bounds(s)
			next = max(next, from)
			if gone, _ := slices.BinarySearch(found.numbers, from); gone > 0 {
				found.numbers, found.dropped = slices.Clone(found.numbers[gone:]), found.dropped+int64(gone)
			}
			var failed error
			err := src.each(ctx, r, [2]int64{next, to}, func(n int64, rec any) bool {
				hit, err := f.Match(rec)
				if err != nil {
					failed = err
					return false
				}
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
			if failed != nil {
				return failed
			}
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
