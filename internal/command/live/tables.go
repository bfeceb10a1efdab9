package live

import (
	"cmp"
	"errors"
	"fmt"
	"io"
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

// againAfter is the time after which it is tried again to write files.
const againAfter = 10 * time.Second

// clockEvery is the time after which it is looked again whether the clock of the capture was set back.
const clockEvery = time.Second

// tables writes Parquet tables of live traffic.
type tables struct {
	*parquet.Writer
	every   time.Duration
	due     time.Time     // when the files are completed, or, if they could not be written, when others are begun; zero before the first packet
	packets int64         // number of packets when the files were completed last
	clock   time.Time     // when the clock of the capture is looked at again
	began   chan struct{} // closed at the first packet
	failing bool          // no file was completed since one could not be written
	ended   bool          // nothing more is written
	say     func(format string, args ...any)
}

// tables returns the tables that --export asks for, or nil.
func (l *liveFlags) tables(cmd *cobra.Command, set *flags.Settings, name string, stderr io.Writer) (*tables, error) {
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
	t.say = func(format string, args ...any) { command.Say(stderr, "--export: "+format, args...) }
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
		Begin: h.Begin, Transaction: goesOn(t, h.Transaction), Connection: goesOn(t, h.Connection), Finding: goesOn(t, h.Finding),
		Operation: goesOn(t, h.Operation), Task: goesOn(t, h.Task), Signal: goesOn(t, h.Signal),
	}
}

// goesOn returns a handler that does not fail if files cannot be written.
func goesOn[R any](t *tables, handle func(R) error) func(R) error {
	return func(r R) error { return t.goesOn(handle(r)) }
}

// goesOn abandons the files that it writes if an error says that they cannot be written. It returns any other error.
func (t *tables) goesOn(err error) error {
	if err == nil || !ofFile(err) {
		return t.failed(err)
	}
	t.Lose()
	t.due = time.Now().Add(min(t.every, againAfter))
	if !t.failing {
		t.say("%v; live goes on without the rows since the last complete files, and tries again every %v: the table gaps will say what is missing", err, min(t.every, againAfter))
	}
	t.failing = true
	return nil
}

// ofFile reports whether an error says that a file cannot be written, such as on a full disk. That the file of another process has
// its name is none.
func ofFile(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	return (errors.As(err, &path) || errors.As(err, &link)) && !errors.Is(err, fs.ErrExist)
}

// Tick completes the files if their time is over, or begins others if they could not be written.
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
			if err := t.goesOn(t.Clock(last)); err != nil {
				return err
			}
		}
	}
	switch {
	case t.due.IsZero():
		t.due = now.Add(t.every)
	case now.Before(t.due):
	case t.Lost():
		t.due = now.Add(t.every)
		return t.goesOn(t.Resume(state.Summary(), now))
	default:
		t.due = now.Add(t.every)
		if s := state.Summary(); s.Packets > t.packets { // otherwise the files would have no rows
			if err := t.Roll(s, now); err != nil {
				return t.goesOn(err)
			}
			t.packets = s.Packets
			t.succeeded()
		}
	}
	return nil
}

// succeeded says that files are complete again.
func (t *tables) succeeded() {
	if t.failing {
		t.say("files are written again; the table gaps says what is missing (not_written)")
	}
	t.failing = false
}

// End completes the files. If they cannot be written, others are tried, which say what is missing.
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
	var err error
	if !t.Lost() {
		if err = t.complete(s); err == nil || !ofFile(err) {
			return t.failed(err)
		}
		t.Lose()
	}
	again := t.Resume(s, time.Now())
	if again == nil {
		again = t.complete(s)
	}
	if again == nil {
		t.succeeded()
	}
	return t.failed(cmp.Or(err, again))
}

// complete completes the files at the end.
func (t *tables) complete(s *record.Summary) error {
	if err := t.Finish(s, nil, nil); err != nil {
		return err
	}
	return t.Close()
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
