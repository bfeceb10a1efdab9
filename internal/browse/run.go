package browse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Terminal is the terminal of Run.
type Terminal struct {
	In, Out *os.File
	Environ []string
}

// Run shows the Model in a terminal until the user quits or ctx, which is that of the Model, ends. The terminal is restored also after
// a panic, which Run passes on. The caller ends ctx if the process gets a signal; Run itself takes SIGQUIT, which would leave the
// terminal as it is.
func Run(ctx context.Context, m *Model, on Terminal) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGQUIT)
	defer stop()
	t := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(on.In), tea.WithOutput(&output{File: on.Out, ctx: ctx}), tea.WithEnvironment(on.Environ),
		tea.WithoutCatchPanics(), tea.WithoutSignalHandler(), tea.WithFPS(60)) // With its own signal handler, the program would wait for ever if ctx ends first.
	defer func() {
		if v := recover(); v != nil {
			t.ReleaseTerminal() // RestoreTerminal would take it again
			t.Kill()
			panic(v)
		}
	}()
	_, err := t.Run()
	if m.panic != nil {
		panic(m.panic)
	}
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, tea.ErrInterrupted) {
		err = context.Cause(ctx)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the terminal cannot be used: %w", err)
	}
	return nil
}

// output is a terminal whose writes end some time after ctx, also if nobody reads what the terminal shows: package tea
// waits for its last write before it ends.
type output struct {
	*os.File
	ctx   context.Context
	stuck error // of an earlier write that did not end
}

// stuckAfter is the time after which Write does not wait any longer for the terminal if the program has to end.
const stuckAfter = time.Second

// Write writes to the terminal.
func (o *output) Write(b []byte) (int, error) {
	if o.stuck != nil {
		return 0, o.stuck
	}
	b = bytes.Clone(b) // The caller uses b again after Write has returned.
	type result struct {
		n   int
		err error
	}
	written := make(chan result, 1)
	go func() {
		n, err := o.File.Write(b)
		written <- result{n, err}
	}()
	select {
	case r := <-written:
		return r.n, r.err
	case <-o.ctx.Done():
	}
	select {
	case r := <-written:
		return r.n, r.err
	case <-time.After(stuckAfter):
		o.stuck = os.ErrDeadlineExceeded
		return 0, o.stuck
	}
}

// suspension stops the process until it is continued. Package tea restores the terminal before, and takes it again after
// that. Its own command waits for ever if the shell has no job control: then nothing stops or continues the process.
type suspension struct{ ctx context.Context }

// resumed is the message that comes after a suspension, with the reason if the process could not be suspended.
type resumed struct{ err error }

// The standard files of a suspension are not needed.
func (*suspension) SetStdin(io.Reader)  {}
func (*suspension) SetStdout(io.Writer) {}
func (*suspension) SetStderr(io.Writer) {}
