package browse

import (
	"fmt"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/shell"
	"github.com/rdmadump/rdmadump/render"
)

// line is a line of a pane.
type line struct {
	text  string
	opens string         // what Enter opens; empty for nothing
	enter func() tea.Cmd // opens it, or says why it cannot; nil for nothing
	run   string         // the command line that shows the same as this line; empty for that of the pane
}

// pane is a screen with some lines of text, of which some can be opened.
type pane struct {
	scroll
	m      *Model
	name   string
	run    string // the command line that shows the same, without rdmadump and with the names of captures
	draw   func(width int) []line
	fixed  int                     // number of lines that do not scroll, such as headings
	turn   func(back bool) tea.Cmd // shows the next record, or the one before; nil if there is none
	again  func()                  // reads what the pane draws once more, as long as the capture is being read; nil if it does not change
	fields query.Fields            // of the records in its lines; nil if they cannot be filtered
	filter string
	kept   *query.Filter
	beside func(at int64, width, height int) []string // draws what is at the right of, or below, the lines; nil for nothing
	lines  []line
	width  int
	window viewport.Model
	placed bool // the cursor was put on the first line for which Enter does something
}

func newPane(m *Model, name string, draw func(width int) []line) *pane {
	p := &pane{m: m, name: name, draw: draw, window: viewport.New()}
	p.window.StyleLineFunc = func(i int) lipgloss.Style {
		if int64(i) == p.cursor && m.colours {
			return lipgloss.NewStyle().Reverse(true)
		}
		return lipgloss.NewStyle()
	}
	return p
}

// restyle draws the lines anew.
func (p *pane) restyle() { p.width = 0 }

func (p *pane) refresh() tea.Cmd {
	if p.again != nil && !p.m.state.Done {
		p.again()
		p.restyle()
	}
	return nil
}

func (p *pane) busy() bool { return false }

// layOut draws the lines for a width.
func (p *pane) layOut(width int) {
	if p.width == width {
		return
	}
	p.lines, p.width = p.draw(width-gutter), width
	p.fixed = min(p.fixed, len(p.lines))
	p.count = int64(len(p.lines) - p.fixed)
	for i := 0; i < int(p.count) && !p.placed; i++ {
		if p.lines[p.fixed+i].enter != nil {
			p.cursor, p.placed = int64(i), true
		}
	}
}

// at returns the line with the cursor. A key may come before the screen is drawn for the first time.
func (p *pane) at() line {
	if p.width == 0 {
		p.layOut(p.m.width)
	}
	if p.cursor >= p.count {
		return line{}
	}
	return p.lines[p.fixed+int(p.cursor)]
}

func (p *pane) view(width, height int) string {
	own, ownHeight := width, height
	var beside []string
	if p.beside != nil {
		if own = width / 2; own < leastTree {
			own, ownHeight = width, height*3/5
		}
	}
	p.layOut(own)
	p.height = int64(max(ownHeight-p.fixed, 1))
	p.fit()
	text := make([]string, 0, p.count)
	for i := range int(p.count) {
		mark := "  "
		one := p.lines[p.fixed+i].text
		if int64(i) == p.cursor {
			mark, one = "> ", ansi.Strip(one)
		}
		text = append(text, ansi.Truncate(mark+one, own, ""))
	}
	p.window.SetWidth(own)
	p.window.SetHeight(int(p.height))
	p.window.SetContentLines(text)
	p.window.SetYOffset(int(p.top))
	view := p.window.View()
	for i := p.fixed - 1; i >= 0; i-- {
		view = ansi.Truncate("  "+p.lines[i].text, own, "") + "\n" + view
	}
	switch {
	case p.beside == nil:
		return view
	case own < width:
		beside = p.beside(p.cursor, width-own, height)
		return lipgloss.JoinHorizontal(lipgloss.Top, lipgloss.NewStyle().Width(own).Height(height).Render(view), lipgloss.JoinVertical(lipgloss.Left, beside...))
	}
	return lipgloss.JoinVertical(lipgloss.Left, append([]string{view}, p.beside(p.cursor, width, height-ownHeight)...)...)
}

// leastTree is the width below which the bytes of a packet are not at the side of its fields, but below them.
const leastTree = 60

func (p *pane) key(k tea.KeyPressMsg) (tea.Cmd, bool) {
	if p.at(); p.move(k) {
		return nil, true
	}
	switch back := key.Matches(k, keys.previous); {
	case key.Matches(k, keys.enter):
		if open := p.at().enter; open != nil {
			return open(), true
		}
		p.m.message = "nothing is behind this line"
	case p.turn != nil && p.m.searched == "" && (back || key.Matches(k, keys.next)):
		return p.turn(back), true
	default:
		return nil, false
	}
	return nil, true
}

// find moves the cursor to the next line that contains a text, or to the previous one.
func (p *pane) find(text string, back bool) tea.Cmd {
	step := int64(1)
	if p.at(); back {
		step = -1
	}
	for i := int64(1); i <= p.count; i++ {
		at := ((p.cursor+i*step)%p.count + p.count) % p.count
		if contains(ansi.Strip(p.lines[p.fixed+int(at)].text), text) {
			p.cursor = at
			p.fit()
			return nil
		}
	}
	p.m.message = "no line contains " + render.Clean(text)
	return nil
}

// setFilter selects the records that have a line; an empty expression selects all.
func (p *pane) setFilter(expression string) (tea.Cmd, error) {
	if p.fields == nil {
		return nil, fmt.Errorf("the lines of this screen cannot be filtered")
	}
	p.kept = nil
	if expression != "" {
		f, err := query.Compile(expression, p.fields)
		if err != nil {
			return nil, err
		}
		p.kept = f
	}
	p.filter, p.cursor, p.top = expression, 0, 0
	p.restyle()
	return nil, nil
}

// keeps reports whether the filter selects a record.
func (p *pane) keeps(r any) bool { return p.kept == nil || p.kept.Match(r) }

func (p *pane) where() string {
	text := p.name
	if p.filter != "" {
		text += " with " + render.Clean(p.filter)
	}
	if opens := p.at().opens; opens != "" {
		text += "  Enter: " + opens
	}
	return text
}

func (p *pane) commandLine() string {
	if run := p.at().run; run != "" {
		return run
	}
	if p.run == "" || p.filter == "" {
		return p.run
	}
	return p.run + " -Y " + shell.Word(p.filter)
}

func (p *pane) help() []key.Binding {
	list := []key.Binding{keys.enter, keys.search, keys.next, keys.copy}
	if p.fields != nil {
		list = append(list, keys.filter)
	}
	return list
}
