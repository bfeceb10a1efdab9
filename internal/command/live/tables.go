package live

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/internal/command/show"
	"github.com/rdmadump/rdmadump/internal/export/parquet"
)

// minimumRoll is the shortest time after which files of tables are completed. The names of files have whole seconds.
const minimumRoll = time.Second

// clockEvery is the time after which it is looked again whether the clock of the capture was set back.
const clockEvery = time.Second

// tables writes Parquet tables of live traffic.
type tables struct {
	*parquet.Writer
	every   time.Duration
	due     time.Time     // when the files are completed; zero before the first packet
	packets int64         // number of packets when the files were completed last
	clock   time.Time     // when the clock of the capture is looked at again
	began   chan struct{} // closed at the first packet
	ended   bool          // nothing more is written
}

// tables returns the tables that --export asks for, or nil.
func (l *liveFlags) tables(cmd *cobra.Command, set *flags.Settings, name string) (*tables, error) {
	if l.Export == "" {
		if cmd.Flags().Changed("export") {
			return nil, errors.New("--export: the name of the folder is empty")
		}
		for _, flag := range []string{"roll", "partition", "replace"} {
			if cmd.Flags().Changed(flag) {
				return nil, fmt.Errorf("--%s: this is about the tables of --export; name their folder with it", flag)
			}
		}
		return nil, nil
	}
	if l.Roll < minimumRoll {
		return nil, fmt.Errorf("--roll %v: the shortest time is %v", l.Roll, minimumRoll)
	}
	partition, err := parquet.ParsePartition(l.Partition)
	if err != nil {
		return nil, fmt.Errorf("--partition: %w", err)
	}
	if len(partition) == 0 {
		partition = parquet.ByName(name)
	}
	of := parquet.Capture{Files: []string{name}, Program: command.Version(), At: set.Dissection().At, Memory: int64(set.Memory) / 8}
	of.Host, _ = os.Hostname()
	t := &tables{Writer: parquet.New(l.Export, partition, of, l.Replace), every: l.Roll, began: make(chan struct{})}
	if set.Filter != nil {
		t.Wants = func(r *record.Transaction) bool { return set.Filter.Match(r) }
	}
	return t, nil
}

// of returns the source with whose first packet the tables begin.
func (t *tables) of(source input.Source) input.Source {
	return &input.First{Source: source, Begin: func(first *capture.Frame) error {
		if err := t.Begin(first); err != nil {
			return t.failed(err)
		}
		close(t.began)
		return nil
	}}
}

// Handler returns what writes the rows of records.
func (t *tables) Handler() dissect.Handler {
	h := t.Writer.Handler()
	return dissect.Handler{
		Begin: h.Begin, Transaction: failing(t, h.Transaction), Connection: failing(t, h.Connection), Finding: failing(t, h.Finding),
		Operation: failing(t, h.Operation), Task: failing(t, h.Task), Signal: failing(t, h.Signal),
	}
}

// failing returns a handler whose error ends the tables.
func failing[R any](t *tables, handle func(R) error) func(R) error {
	return func(r R) error { return t.failed(handle(r)) }
}

// Tick completes the files if their time is over.
func (t *tables) Tick(state show.State) error {
	now := time.Now()
	select {
	case <-t.began:
	default:
		return nil
	}
	if now.After(t.clock) {
		t.clock = now.Add(clockEvery)
		if last, known := state.Summary().Last.Get(); known {
			if err := t.Clock(last); err != nil {
				return t.failed(err)
			}
		}
	}
	switch {
	case t.due.IsZero():
		t.due = now.Add(t.every)
	case now.Before(t.due):
	default:
		t.due = now.Add(t.every)
		if s := state.Summary(); s.Packets > t.packets { // otherwise the files would have no rows
			t.packets = s.Packets
			return t.failed(t.Roll(s, now))
		}
	}
	return nil
}

// End completes the files.
func (t *tables) End(s *record.Summary) error {
	select {
	case <-t.began:
	default:
		return nil // nothing was captured
	}
	if t.ended {
		return nil
	}
	if s == nil {
		s = new(record.Summary)
	}
	if err := t.Finish(s, nil, nil); err != nil {
		return t.failed(err)
	}
	return t.failed(t.Close())
}

// failed returns an error of the tables, with the flag, and removes what is not complete.
func (t *tables) failed(err error) error {
	if err == nil {
		return nil
	}
	t.ended = true
	t.Abandon()
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("--export: %w; with an interface or a pipe, live continues as the user who called sudo, or as nobody, who must be allowed to write to the folder", err)
	}
	return fmt.Errorf("--export: %w", err)
}
