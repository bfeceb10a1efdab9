package live

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	reader "github.com/parquet-go/parquet-go"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/export/parquet"
)

// state is the state of a run.
type state record.Summary

func (s state) Summary() *record.Summary        { return (*record.Summary)(&s) }
func (s state) Open(func(r *record.Connection)) {}

// rows returns the rows of all files of a table, each as text.
func rows[R any](t *testing.T, folder, table string) (list []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, parquet.Version, table, "*", "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		all, err := reader.ReadFile[R](path)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			list = append(list, fmt.Sprintf("%+v", r))
		}
	}
	slices.Sort(list)
	return list
}

// TestNotWritten: if files cannot be written, such as on a full disk, live ends with an error that says so, and the files before stay whole.
func TestNotWritten(t *testing.T) {
	folder := t.TempDir()
	partition, _ := parquet.ParsePartition([]string{"host=a"})
	w := &tables{Writer: parquet.New(folder, partition, parquet.Capture{}, false), every: time.Hour, began: make(chan struct{})}
	if err := errors.Join(w.Begin(&capture.Frame{Time: 1e9}), w.Handler().Begin(1e9)); err != nil {
		t.Fatal(err)
	}
	close(w.began)
	now := state{First: record.Some[record.Time](1e9)}
	step := func(id int64) error {
		now.Packets, now.Last, w.due = now.Packets+10, record.Some(record.Time(id)*1e9), time.Unix(1, 0)
		err := w.Handler().Transaction(&record.Transaction{ID: id, Status: record.Complete, Call: &record.Message{Time: now.Last.Or(0)}})
		return errors.Join(err, w.Tick(now))
	}
	if err := step(1); err != nil {
		t.Fatal(err)
	}
	at, saved := filepath.Join(folder, parquet.Version), filepath.Join(folder, "saved")
	if err := errors.Join(os.Rename(at, saved), os.WriteFile(at, nil, 0o644)); err != nil { // has the effect of a full disk
		t.Fatal(err)
	}
	if err := step(2); err == nil || !strings.HasPrefix(err.Error(), "--export: ") {
		t.Errorf("files that cannot be written: %v", err)
	}
	if err := errors.Join(os.Remove(at), os.Rename(saved, at), w.End(now.Summary())); err != nil {
		t.Error(err)
	}
	type transaction struct {
		ID int64 `parquet:"id"`
	}
	if got := rows[transaction](t, folder, "transactions"); !slices.Equal(got, []string{"{ID:1}"}) {
		t.Errorf("the RPCs are %q", got)
	}
}

// TestClockSetBack: if the clock is set back, the table rates has the intervals of the new time.
func TestClockSetBack(t *testing.T) {
	folder := t.TempDir()
	partition, _ := parquet.ParsePartition([]string{"host=a"})
	w := &tables{Writer: parquet.New(folder, partition, parquet.Capture{}, false), every: time.Hour, began: make(chan struct{})}
	if err := errors.Join(w.Begin(&capture.Frame{Time: 7200e9}), w.Handler().Begin(7200e9)); err != nil {
		t.Fatal(err)
	}
	close(w.began)
	now := state{First: record.Some[record.Time](7200e9)}
	for i := range 100 {
		at := record.Time(7200+i) * 1e9
		if i >= 50 {
			at -= 3600e9
		}
		now.Packets, now.Last = now.Packets+10, record.Some(at)
		w.clock = time.Time{}
		err := errors.Join(w.Tick(now), w.Handler().Transaction(&record.Transaction{Call: &record.Message{Time: at}, Reply: &record.Message{Time: at, LastTime: at}, LatencyNS: record.Some[int64](1)}))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(now.Summary()); err != nil {
		t.Fatal(err)
	}
	type rate struct {
		Start int64 `parquet:"time,timestamp(nanosecond)"`
		RPCs  int64 `parquet:"requests"`
	}
	var want []string
	for _, start := range []int{3650, 3660, 3670, 3680, 3690, 7200, 7210, 7220, 7230, 7240} {
		want = append(want, fmt.Sprintf("{Start:%d000000000 RPCs:10}", start))
	}
	if got := rows[rate](t, folder, "rates"); !slices.Equal(got, want) {
		t.Errorf("the rates are %q, want %q", got, want)
	}
}
