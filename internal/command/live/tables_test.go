package live

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
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

// TestAllTables: live writes the rows of all tables that export writes.
func TestAllTables(t *testing.T) {
	partition, _ := parquet.ParsePartition([]string{"host=a"})
	w := &tables{Writer: parquet.New(t.TempDir(), partition, parquet.Capture{}, false)}
	export, live := reflect.ValueOf(w.Writer.Handler()), reflect.ValueOf(w.Handler())
	for i := range export.NumField() {
		if export.Field(i).IsZero() != live.Field(i).IsZero() {
			t.Errorf("%s: only one of export and live takes it", export.Type().Field(i).Name)
		}
	}
}

// TestNotWritten: if files cannot be written, such as on a full disk, live goes on, the files before stay whole, and the next ones say
// what is missing.
func TestNotWritten(t *testing.T) {
	for _, end := range []string{"written", "lost"} {
		folder := t.TempDir()
		var said []string
		partition, _ := parquet.ParsePartition([]string{"host=a"})
		w := &tables{
			Writer: parquet.New(folder, partition, parquet.Capture{}, false), every: time.Hour, began: make(chan struct{}),
			say: func(format string, args ...any) { said = append(said, format) },
		}
		now := state{First: record.Some[record.Time](1e9)}
		call := func(id int64) {
			now.Packets, now.Last = now.Packets+10, record.Some(record.Time(id)*1e9)
			err := w.Handler().Transaction(&record.Transaction{ID: id, Status: record.Complete, Call: &record.Message{Time: now.Last.Or(0)}})
			if err != nil {
				t.Fatal(err)
			}
		}
		tick := func() {
			w.due = time.Unix(1, 0)
			if err := w.Tick(now); err != nil {
				t.Fatal(err)
			}
		}
		full := func(yes bool) { // a file in the place of the folder has the effect of a full disk
			at, saved := filepath.Join(folder, parquet.Version), filepath.Join(folder, "saved")
			var err error
			if yes {
				err = errors.Join(os.Rename(at, saved), os.WriteFile(at, nil, 0o644))
			} else {
				err = errors.Join(os.Remove(at), os.Rename(saved, at))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Begin(&capture.Frame{Time: 1e9}), w.Handler().Begin(1e9)); err != nil {
			t.Fatal(err)
		}
		close(w.began)
		call(1)
		tick()
		call(2)
		full(true)
		tick() // the file with 2 is lost
		call(3)
		tick()
		if !w.Lost() || len(said) != 1 {
			t.Errorf("after two failures, rows are lost: %t; messages: %q", w.Lost(), said)
		}
		call(4)
		wanted := []string{"1", "5", "6"}
		if end == "written" {
			full(false)
			tick()
			call(5)
			tick()
			call(6)
		}
		err := w.End(now.Summary())
		if end == "lost" {
			if err == nil {
				t.Error("files that cannot be written at the end are no error")
			}
			full(false)
			wanted = wanted[:1]
		} else if err != nil {
			t.Fatal(err)
		}
		type transaction struct {
			ID int64 `parquet:"id"`
		}
		type gap struct {
			Kind    string `parquet:"kind"`
			From    int64  `parquet:"from,optional,timestamp(nanosecond)"`
			To      int64  `parquet:"to,optional,timestamp(nanosecond)"`
			Packets int64  `parquet:"packets,optional"`
		}
		type sum struct {
			Packets int64 `parquet:"packets"`
		}
		type rate struct {
			Start int64 `parquet:"time,timestamp(nanosecond)"`
			RPCs  int64 `parquet:"requests"`
		}
		var ids []string
		for _, id := range wanted {
			ids = append(ids, "{ID:"+id+"}")
		}
		if got := rows[transaction](t, folder, "transactions"); !slices.Equal(got, ids) {
			t.Errorf("%s: the RPCs are %q, want %q", end, got, ids)
		}
		gaps, sums, rates := []string{"{Kind:not_written From:1000000000 To:4000000000 Packets:30}"}, []string{"{Packets:10}", "{Packets:10}", "{Packets:40}"}, []string{"{Start:1000000000 RPCs:4}"} // an interval is lost if it ended in a lost file
		if end == "lost" {
			gaps, sums, rates = nil, sums[:1], nil // the interval of 10 s is not over at the first roll
		} else if len(said) != 2 {
			t.Errorf("the messages are %q", said)
		}
		if got := rows[gap](t, folder, "gaps"); !slices.Equal(got, gaps) {
			t.Errorf("%s: the gaps are %q, want %q", end, got, gaps)
		}
		if got := rows[sum](t, folder, "captures"); !slices.Equal(got, sums) {
			t.Errorf("%s: the sums are %q, want %q", end, got, sums)
		}
		if got := rows[rate](t, folder, "rates"); !slices.Equal(got, rates) {
			t.Errorf("%s: the rates are %q, want %q", end, got, rates)
		}
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
