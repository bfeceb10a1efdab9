package browse

import (
	"context"
	"errors"
	"fmt"
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
}

// ticked is the message that calls Tick.
type ticked struct{}

// Run shows the Model in a terminal until the user quits or ctx ends. The terminal is restored also
// after a panic, which Run passes on.
func Run(ctx context.Context, m *Model, on Terminal) error {
	p := &program{Model: m, since: time.Now()}
	t := tea.NewProgram(p, tea.WithContext(ctx), tea.WithInput(on.In), tea.WithOutput(on.Out), tea.WithEnvironment(on.Environ), tea.WithoutCatchPanics(), tea.WithFPS(60))
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
		p.Resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		k := msg.String()
		if k == "ctrl+z" {
			return p, tea.Suspend
		}
		p.since = time.Now() // What the key starts is often done soon.
		p.Key(k)
	case tea.PasteMsg:
		p.Text(msg.Content)
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
