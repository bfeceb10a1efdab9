// Package browse shows the records of a capture in a terminal: problems, RPCs, connections, files and operations, the ladder of an RPC
// and its packets. It draws with package render, so that everything looks as on the command line.
//
// A [Model] is a program of package tea. What one pass reads is kept by a [Reading]; what that does not keep, decoded arguments and
// packets, is read in a second pass (see details.go).
package browse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/render"
)

// Options describe what a Model shows.
type Options struct {
	Reading *Reading
	Name    string      // of the capture, for the first line
	Typed   string      // names of the captures, quoted for a shell, for command lines that show the same
	Look    render.Look // of the drawings
	// Open opens the capture once more, to show packets, and decoded arguments and results. It is nil if the capture cannot be opened
	// again; Closed then says why.
	Open    func(ctx context.Context) (Source, error)
	Closed  string
	Dissect dissect.Options // of the first pass
	Live    bool            // packets are still being captured
	Filter  string          // of the RPCs that are listed at first
}

// Source is a capture that is read once more.
type Source interface {
	capture.Source
	Close() error
}

// screen is what the Model shows between its first line and its last two.
type screen interface {
	refresh() tea.Cmd                             // takes what was read since
	busy() bool                                   // whether it changes without a key
	view(width, height int) string                // draws it
	key(k tea.KeyPressMsg) (cmd tea.Cmd, is bool) // takes a key, if it is one of this screen
	wheel(by int64)
	click(row int64) (again bool)
	where() string       // where one is, and what Enter does
	commandLine() string // which shows the same, without rdmadump
	find(text string, back bool) tea.Cmd
	setFilter(expression string) (tea.Cmd, error)
	help() []key.Binding
	restyle()
}

// Model is the state of the terminal. It is a [tea.Model].
type Model struct {
	options       Options
	theme         *render.Theme
	colours       bool
	width, height int
	ctx           context.Context
	state         state

	tabs  [5]screen
	tab   int
	stack []screen // above the tab

	prompt   *prompt
	searched string             // what n and N look for
	message  string             // instead of the keys, until the next key
	reading  context.CancelFunc // ends the second pass that a key has started; nil for none
	ticking  bool
	begun    time.Time
	panic    *capture.Panic // of a command
}

// The tabs.
const (
	tabProblems = iota
	tabRPCs
	tabConnections
	tabFiles
	tabOperations
)

// prompt is a line that the user types.
type prompt struct {
	textinput.Model
	done func(text string) (tea.Cmd, error)
}

// The smallest screen.
const (
	leastWidth  = 40
	leastHeight = 8
)

// New returns a Model for a screen of 80 columns and 24 lines. Ctx ends its commands.
func New(ctx context.Context, o Options) *Model {
	theme := render.NewLook(o.Look).WithHidden(func([]string) {}) // There is no --wide.
	m := &Model{options: o, theme: theme, colours: o.Look.Colour, width: 80, height: 24, ctx: ctx, begun: time.Now()}
	m.tabs = [...]screen{newProblemList(m), newList(m, rpcs), newList(m, connections), newFiles(m), newOperations(m)}
	return m
}

// Init begins to look at what is read.
func (m *Model) Init() tea.Cmd {
	var filtering tea.Cmd
	if m.options.Filter != "" {
		m.tab = tabRPCs
		filtering = m.filter(m.tabs[tabRPCs], m.options.Filter)
	}
	return tea.Batch(m.take(), filtering)
}

// top returns the screen that is shown.
func (m *Model) top() screen {
	if n := len(m.stack); n > 0 {
		return m.stack[n-1]
	}
	return m.tabs[m.tab]
}

// push shows a screen above the others, which has its own search.
func (m *Model) push(s screen) { m.stack, m.searched = append(m.stack, s), "" }

// show shows a tab.
func (m *Model) show(tab int) {
	m.leave()
	m.tab, m.stack, m.searched = tab, nil, ""
}

// leave ends the second pass for the screen that is left.
func (m *Model) leave() {
	if m.reading != nil {
		m.reading()
		m.reading = nil
	}
}

// ink returns a style, or none without colours.
func (m *Model) ink(s lipgloss.Style) lipgloss.Style {
	if m.colours {
		return s
	}
	return lipgloss.NewStyle()
}

// ticked is the message that it is time to look at what was read.
type ticked struct{}

// The times between two looks: at first, so that the first rows appear at once, and later.
const (
	firstTick = 15 * time.Millisecond
	nextTick  = 150 * time.Millisecond
)

// take takes what was read since, and returns the command that waits for more.
func (m *Model) take() tea.Cmd {
	done := m.state.Done
	m.state = m.options.Reading.now()
	var commands []tea.Cmd
	if m.state.Done && !done {
		for _, s := range append(m.tabs[:], m.stack...) {
			switch s := s.(type) {
			case *list:
				if s.filter == "" {
					s.usual()
				}
			case *pane:
				if s.again != nil {
					s.again()
				}
				s.restyle()
			}
		}
	}
	for _, s := range append(m.tabs[:], m.stack...) {
		if _, sums := s.(*pane); !sums || s == m.top() { // Sums are made anew only while they are looked at.
			commands = append(commands, s.refresh())
		}
	}
	if !m.state.Done && !m.ticking {
		m.ticking = true
		every := nextTick
		if time.Since(m.begun) < 300*time.Millisecond {
			every = firstTick
		}
		commands = append(commands, tea.Tick(every, func(time.Time) tea.Msg { return ticked{} }))
	}
	return tea.Batch(commands...)
}

// Update takes a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case ticked:
		m.ticking = false
		return m, m.take()
	case sliced:
		if msg.of.stopped {
			return m, nil
		}
		msg.of.ended = !msg.more
		command := msg.of.found()
		if msg.more {
			command = tea.Batch(command, msg.of.run())
		}
		return m, command
	case looked:
		if msg.of.Err() != nil {
			return m, nil
		}
		m.leave()
		m.message = ""
		return m, msg.show()
	case failed:
		m.panic = msg.panic
		return m, tea.Quit
	case resumed:
		if msg.err != nil {
			m.message = render.Clean(msg.err.Error())
		}
	case tea.PasteMsg:
		if m.prompt != nil {
			m.prompt.Model, _ = m.prompt.Update(msg)
		}
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			m.top().wheel(-3)
		case tea.MouseWheelDown:
			m.top().wheel(3)
		}
	case tea.MouseClickMsg:
		return m, m.click(msg.X, msg.Y)
	case tea.KeyPressMsg:
		return m, m.key(msg)
	}
	return m, nil
}

// key takes a key.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	switch {
	case key.Matches(k, keys.force):
		return tea.Quit
	case key.Matches(k, keys.suspend):
		return tea.Exec(&suspension{ctx: m.ctx}, func(err error) tea.Msg { return resumed{err} })
	case m.prompt != nil:
		return m.promptKey(k)
	}
	m.message = ""
	if l, is := m.top().(*list); is && l.finding.running() {
		if l.finding.stop(); key.Matches(k, keys.cancel) {
			return nil
		}
	}
	if command, is := m.top().key(k); is {
		return command
	}
	switch {
	case key.Matches(k, keys.number):
		m.show(int(k.String()[0] - '1'))
	case key.Matches(k, keys.tab):
		m.show((m.tab + 1) % len(m.tabs))
	case key.Matches(k, keys.back):
		if n := len(m.stack); n > 0 {
			m.leave()
			m.stack = m.stack[:n-1]
		} else if l, is := m.top().(*list); is && l.filter != "" {
			return m.filter(l, "")
		} else {
			m.message = "q quits"
		}
	case key.Matches(k, keys.quit):
		return tea.Quit
	case key.Matches(k, keys.help):
		m.push(newHelp(m, m.top()))
	case key.Matches(k, keys.search):
		m.ask("/", "", func(text string) (tea.Cmd, error) {
			if m.searched = text; text == "" {
				return nil, nil
			}
			return m.top().find(text, false), nil
		})
	case key.Matches(k, keys.next, keys.previous):
		if m.searched == "" {
			m.message = "/ searches first"
			return nil
		}
		return m.top().find(m.searched, key.Matches(k, keys.previous))
	case key.Matches(k, keys.filter):
		before := ""
		switch s := m.top().(type) {
		case *list:
			before = s.filter
		case *pane:
			before = s.filter
		}
		m.ask(":", before, m.top().setFilter)
	case key.Matches(k, keys.copy):
		if text := m.top().commandLine(); text != "" {
			text = "rdmadump " + strings.TrimSpace(text)
			m.message = "to the clipboard: " + text
			return tea.SetClipboard(text)
		}
		m.message = "no command line shows this screen"
	default:
		m.message = "? lists the keys"
	}
	return nil
}

// ask asks for a line of text.
func (m *Model) ask(mark, text string, done func(string) (tea.Cmd, error)) {
	p := &prompt{Model: textinput.New(), done: done}
	p.Prompt = mark
	still := p.Styles()
	still.Cursor.Blink = false
	p.SetStyles(still)
	p.SetValue(text)
	p.Focus()
	m.prompt = p
}

// promptKey takes a key while a line is typed.
func (m *Model) promptKey(k tea.KeyPressMsg) tea.Cmd {
	p := m.prompt
	switch {
	case key.Matches(k, keys.cancel):
		m.prompt, m.message = nil, ""
	case key.Matches(k, keys.ok):
		command, err := p.done(p.Value())
		if err != nil { // The line stays, to be mended.
			first, _, _ := strings.Cut(err.Error(), "\n")
			m.message = render.Clean(first)
			return nil
		}
		m.prompt = nil
		return command
	default:
		m.message = ""
		var command tea.Cmd
		p.Model, command = p.Update(k)
		return command
	}
	return nil
}

// filter filters a screen, or says why the expression is wrong.
func (m *Model) filter(s screen, expression string) tea.Cmd {
	command, err := s.setFilter(expression)
	if err != nil {
		m.message = render.Clean(err.Error())
	}
	return command
}

// showRPCs lists the RPCs that a filter selects, above the screen that they belong to, to which esc returns.
func (m *Model) showRPCs(filter string) tea.Cmd {
	l := newList(m, rpcs)
	m.push(l)
	return m.filter(l, filter)
}

// click takes a click: on a tab, or on a row, which is opened if it had the cursor.
func (m *Model) click(x, y int) tea.Cmd {
	if y == 0 {
		at := 0
		for i, name := range m.tabNames() {
			if at += ansi.StringWidth(name) + 1; x < at {
				m.show(i)
				return nil
			}
		}
		return nil
	}
	row := int64(y - 1)
	switch s := m.top().(type) {
	case *list:
		row-- // its heading
	case *pane:
		row -= int64(s.fixed)
	}
	if m.top().click(row) {
		command, _ := m.top().key(tea.KeyPressMsg{Code: tea.KeyEnter})
		return command
	}
	return nil
}

// tabNames returns the names of the tabs, with the numbers of rows if there is space.
func (m *Model) tabNames() (names []string) {
	_, rpcs := m.options.Reading.rpcs.bounds()
	_, connections := m.options.Reading.connections.bounds()
	for i, name := range [...]string{"Problems", "RPCs", "Connections", "Files", "Operations"} {
		if m.width < 76 && i != m.tab {
			name = name[:4]
		}
		name = fmt.Sprintf("%d %s", i+1, name)
		switch {
		case m.width < 100:
		case i == tabRPCs:
			name += fmt.Sprintf(" %d", rpcs)
		case i == tabConnections:
			name += fmt.Sprintf(" %d", connections)
		}
		if i == m.tab && !m.colours {
			names = append(names, "["+name+"]")
		} else {
			names = append(names, " "+name+" ")
		}
	}
	return names
}

// heading returns the first line: the tabs, and what is read.
func (m *Model) heading() string {
	text, tabs := "", m.tabNames()
	for i, name := range tabs {
		if i == m.tab {
			name = m.ink(lipgloss.NewStyle().Reverse(true)).Render(name)
		}
		text += name + " "
	}
	what := render.Clean(m.options.Name)
	switch s := m.state; {
	case s.Err != nil:
		what += " incomplete"
	case s.Done:
	case m.options.Live:
		what += " live"
	case s.Total > 0:
		what += fmt.Sprintf(" %d%%", min(s.Read*100/s.Total, 99))
	default:
		what += " reading"
	}
	if left := m.width - ansi.StringWidth(text); left > 8 {
		text += ansi.TruncateLeft(what, max(ansi.StringWidth(what)-left, 0), "")
	}
	return text
}

// lastLine returns the last line: what is typed, a message, or the keys.
func (m *Model) lastLine() string {
	switch {
	case m.prompt != nil:
		m.prompt.SetWidth(m.width - 3)
		return m.prompt.View()
	case m.message != "":
		return m.ink(lipgloss.NewStyle().Bold(true)).Render(ansi.Truncate(m.message, m.width, "~"))
	}
	view := m.helpView()
	view.SetWidth(m.width)
	shown := append([]key.Binding{}, m.top().help()...)
	if len(m.stack) > 0 {
		shown = append([]key.Binding{keys.back}, shown...)
	}
	for i, b := range shown {
		what := b.Help().Desc
		what, _, _ = strings.Cut(what, ";")
		if words := strings.Fields(what); len(words) > 2 {
			what = words[0]
		}
		b.SetHelp(strings.Fields(b.Help().Key)[0], what)
		shown[i] = b
	}
	return view.ShortHelpView(append(shown, keys.help))
}

// lines returns the screen, with exactly its height of lines.
func (m *Model) lines() []string {
	if m.width < leastWidth || m.height < leastHeight {
		return strings.Split(ansi.Wrap(fmt.Sprintf("the terminal must have %d columns and %d lines", leastWidth, leastHeight), max(m.width, 1), " "), "\n")
	}
	body := m.height - 3
	drawn := strings.Split(m.top().view(m.width, body), "\n")
	lines := append([]string{m.heading()}, drawn[:min(len(drawn), body)]...)
	for len(lines) < m.height-2 {
		lines = append(lines, "")
	}
	where, red := ansi.Truncate(m.top().where(), m.width, "~"), m.ink(lipgloss.NewStyle().Foreground(lipgloss.Red))
	left := m.width - ansi.StringWidth(where) - 2
	where = m.ink(lipgloss.NewStyle().Faint(true)).Render(where)
	switch err := m.state.Err; {
	case m.prompt != nil && m.message != "": // why what was typed is wrong
		where = red.Render(ansi.Truncate(m.message, m.width, "~"))
	case err != nil && len(m.stack) == 0 && left > 0:
		first, _, _ := strings.Cut(err.Error(), "\n")
		if broken := (*capture.BrokenError)(nil); errors.As(err, &broken) { // which begins with a path
			first = fmt.Sprintf("broken at byte %d: %v", broken.Offset, broken.Err)
		}
		where += "  " + red.Render(ansi.Truncate(render.Clean(first), left, "~"))
	}
	lines = append(lines, where, m.lastLine())
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], m.width, "")
	}
	return lines
}

// View returns the screen.
func (m *Model) View() tea.View {
	text := strings.Join(m.lines(), "\n")
	if !m.theme.Unicode() { // The bytes of UTF-8 characters may be control characters for the terminal.
		text = render.ASCII(text)
	}
	v := tea.NewView(text)
	v.AltScreen, v.MouseMode = true, tea.MouseModeCellMotion
	return v
}
