package browse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// scroll is the position in a list of lines: the line with the cursor, and the first one on the
// screen.
type scroll struct {
	cursor, top int64
}

// move moves the cursor by a number of lines in a list of n.
func (s *scroll) move(by, n int64) { s.cursor = min(max(s.cursor+by, 0), max(n-1, 0)) }

// show scrolls so that the cursor is among the height lines on the screen.
func (s *scroll) show(n int64, height int) {
	h := int64(max(height, 1))
	s.move(0, n)
	s.top = min(max(s.top, s.cursor-h+1), s.cursor)
	s.top = max(min(s.top, n-h), 0)
}

// key moves the cursor in a list of n lines, of which height are on the screen. It reports false for
// keys that do not move it.
func (s *scroll) key(k string, n int64, height int) bool {
	page := int64(max(height-1, 1))
	switch k {
	case "j", "down":
		s.move(1, n)
	case "k", "up":
		s.move(-1, n)
	case "ctrl+d":
		s.move(page/2, n)
	case "ctrl+u":
		s.move(-page/2, n)
	case "ctrl+f", "pgdown":
		s.move(page, n)
	case "ctrl+b", "pgup":
		s.move(-page, n)
	case "g", "home":
		s.cursor = 0
	case "G", "end":
		s.cursor = max(n-1, 0)
	default:
		return false
	}
	return true
}

// pane is a screen of text that can be scrolled.
type pane struct {
	scroll
	name   string
	text   []string
	fixed  int                      // number of lines at the top that do not scroll
	pinned int                      // line that stays at the top when it would scroll away; 0 for none
	drawn  func(width int) []string // draws the text for a width; nil for text that fits any width
	width  int                      // for which text is drawn
	height int
	keys   []string                      // for the last line
	on     func(m *Model, k string) bool // takes further keys; nil for none
	tick   func(m *Model)                // is called now and then; nil for none
	waits  func() bool                   // reports whether tick may change the text; nil for never
	copies func() string                 // what y copies; nil for the text
	names  func(line int64) string       // whole name of a line that may be shortened; nil for none
	search string                        // text that was searched last

	connection record.Opt[int] // that the text is about
}

// find moves to the next line that contains a text, or to the previous one. An empty text stands for the one before.
func (p *pane) find(m *Model, text string, back bool) {
	if text != "" {
		p.search = text
	}
	n, step := p.count(), int64(1)
	if back {
		step = -1
	}
	if p.search == "" || n == 0 {
		m.say("/ searches first")
		return
	}
	for i := int64(1); i <= n; i++ {
		at := ((p.cursor+i*step)%n + n) % n
		line := strip(p.text[len(p.text)-int(n)+int(at)])
		if p.names != nil {
			line += " " + p.names(at)
		}
		if contains(line, p.search) {
			if at == p.cursor {
				m.say("this is the only line that contains " + clean(p.search))
			}
			p.cursor = at
			return
		}
	}
	m.say("no line contains " + clean(p.search))
}

func (p *pane) busy() bool { return p.waits != nil && p.waits() }

// redraw makes the pane draw its text anew.
func (p *pane) redraw() { p.width = -1 }

// restyle makes the pane draw its text with another theme.
func (p *pane) restyle(*Model) { p.redraw() }

func (p *pane) title() string { return p.name }

func (p *pane) footer() []string { return append(slices.Clone(p.keys), "y copy", "q back") }

func (p *pane) update(m *Model) {
	if p.tick != nil {
		p.tick(m)
	}
}

func (p *pane) draw(m *Model, width, height int) (lines []string) {
	if p.drawn != nil && p.width != width {
		p.text, p.width = p.drawn(max(width-gutter, 20)), width
	}
	fixed := min(p.fixed, len(p.text))
	mark := "~"
	if m.theme.Unicode() {
		mark = "…"
	}
	whole := func(line string) string { // A line that is shortened has a mark at its end.
		if wide(line) > width-gutter {
			return clip(line, width-gutter-1) + mark
		}
		return line
	}
	for _, line := range p.text[:fixed] {
		lines = append(lines, "  "+whole(line))
	}
	p.height = height - fixed
	n := p.count()
	if p.show(n, p.height); p.pinned > 0 && p.top > int64(p.pinned) {
		lines = append(lines, "  "+whole(p.text[fixed+p.pinned]))
		p.height--
		p.show(n, p.height)
	}
	for i := p.top; i < min(p.top+int64(p.height), n); i++ {
		lines = append(lines, m.selected(whole(p.text[fixed+int(i)]), i == p.cursor, false, width))
	}
	return lines
}

// extent says which lines are on the screen, if they are not all.
func (p *pane) extent() []string {
	if n, height := p.count(), int64(p.height); n > height {
		return []string{fmt.Sprintf("lines %d to %d of %d", p.top+1, min(p.top+height, n), n)}
	}
	return nil
}

// count returns the number of lines that scroll.
func (p *pane) count() int64 { return int64(max(len(p.text)-p.fixed, 0)) }

func (p *pane) key(m *Model, k string) bool {
	if p.on != nil && p.on(m, k) {
		return true
	}
	return p.scroll.key(k, p.count(), p.height)
}

// content returns what y copies.
func (p *pane) content() string {
	if p.copies != nil {
		return p.copies()
	}
	return strip(strings.Join(p.text, "\n")) + "\n"
}

// gutter is the number of columns before each line of a list, with the marks of the line.
const gutter = 2

// selected returns a line after its gutter. The line of the cursor has the mark > and, if there are
// colors, the whole line is reversed; a line that the user marked has a *.
func (m inks) selected(line string, cursor, marked bool, width int) string {
	marks := []byte("  ")
	if marked {
		marks[1] = '*'
	}
	if !cursor {
		return string(marks) + line
	}
	marks[0] = '>'
	if !m.colors {
		return string(marks) + line
	}
	return reverse + pad(string(marks)+strip(line), width) + plain
}
