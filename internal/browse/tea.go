package browse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rdmadump/rdmadump/render"
)

// Terminal is the terminal of Run.
type Terminal struct {
	In, Out *os.File
	Environ []string
}

// The times between two calls of Tick: at first, so that the first rows appear at once, and later.
const (
	firstTick = 15 * time.Millisecond
	nextTick  = 100 * time.Millisecond
)

// program connects a Model with package tea.
type program struct {
	*Model
	ticking bool
	since   time.Time
	ctx     context.Context
}

// ticked is the message that calls Tick.
type ticked struct{}

// Run shows the Model in a terminal until the user quits or ctx ends. The terminal is restored also
// after a panic, which Run passes on. The caller ends ctx if the process gets a signal: with a handler for signals of
// its own, package tea would wait for ever if ctx ends first.
func Run(ctx context.Context, m *Model, on Terminal) error {
	p := &program{Model: m, since: time.Now(), ctx: ctx}
	t := tea.NewProgram(p, tea.WithContext(ctx), tea.WithInput(on.In), tea.WithOutput(&output{File: on.Out, ctx: ctx}), tea.WithEnvironment(on.Environ),
		tea.WithoutCatchPanics(), tea.WithoutSignalHandler(), tea.WithFPS(60))
	defer func() {
		if v := recover(); v != nil {
			t.ReleaseTerminal() // RestoreTerminal would take it again
			t.Kill()
			panic(v)
		}
	}()
	_, err := t.Run()
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, tea.ErrInterrupted) {
		err = context.Cause(ctx)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the terminal cannot be used: %w", err)
	}
	return nil
}

// Init starts to tick.
func (p *program) Init() tea.Cmd { return p.tick() }

// tick returns the command for the next tick, if one is needed.
func (p *program) tick() tea.Cmd {
	if p.ticking || !p.Busy() {
		return nil
	}
	p.ticking = true
	every := nextTick
	if time.Since(p.since) < 200*time.Millisecond {
		every = firstTick
	}
	return tea.Tick(every, func(time.Time) tea.Msg { return ticked{} })
}

// Update takes a message.
func (p *program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var command tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		p.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		k := msg.String()
		if k == "ctrl+z" {
			return p, tea.Exec(&suspension{ctx: p.ctx}, func(err error) tea.Msg { return resumed{err} })
		}
		p.since = time.Now() // What the key starts is often done soon.
		p.Key(k)
	case tea.PasteMsg:
		p.Text(msg.Content)
	case resumed:
		if msg.err != nil {
			p.fail(msg.err)
		}
	case ticked:
		p.ticking = false
		p.Tick()
	}
	if p.Clipboard != "" {
		command = tea.SetClipboard(p.Clipboard)
		p.Clipboard = ""
	}
	if p.Quit() {
		return p, tea.Quit
	}
	return p, tea.Batch(command, p.tick())
}

// View returns the screen.
func (p *program) View() tea.View {
	screen := p.Screen()
	if !p.theme.Unicode() { // The bytes of UTF-8 characters may be control characters for the terminal.
		screen = render.ASCII(screen)
	}
	v := tea.NewView(screen)
	v.AltScreen = true
	return v
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
