package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// column is a column of a table.
type column struct {
	name  string
	scale string // range of values that the heading shows after the name
	right bool   // numbers
	flex  bool   // takes what width is left
	wrap  bool   // its text goes on in further lines, or below where there is little room; the last column
	min   int    // columns of the terminal that a flexible one needs
	rank  int    // columns of the highest rank go first when the terminal is narrow
	usual int    // width to expect in a live table, which cannot wait for rows to learn from
	quiet bool   // goes last when it says something: it says so when something is wrong
}

// cell is one field of a row.
type cell struct {
	text  string
	ink   ink
	short string // for when text does not fit; says that it is
}

// sampleRows is how many rows a table holds back to learn its widths. Those
// that follow are written as they come, so that a table of any length takes no
// memory; lipgloss's own table, which needs them all at once, lays out 37,000
// rows a second (measured), this one some millions.
const sampleRows = 256

// table writes rows in columns that fit the width of a terminal.
type table struct {
	w       io.Writer
	theme   *Theme
	width   int // of the terminal, 0 for none: nothing is cut
	columns []column
	widths  []int // 0: the column is left out
	order   []int // which columns, from left to right
	below   bool  // the column that wraps stands below its row
	sample  [][]cell
	drawn   bool
	live    bool
	line    []byte
	late    []string // what hidden columns said after they were hidden
	boring  []string // what all cells of a hidden column say
}

func newTable(w io.Writer, theme *Theme, width int, columns []column) *table {
	return &table{w: w, theme: theme, width: width, columns: columns}
}

// row adds a row. Its cells are kept only while widths are being learnt.
func (t *table) row(cells []cell) error {
	if t.drawn {
		return t.write(cells)
	}
	t.sample = append(t.sample, slices.Clone(cells))
	if len(t.sample) >= sampleRows {
		return t.flush()
	}
	return nil
}

// flush writes what is held back.
func (t *table) flush() error {
	if t.drawn || len(t.sample) == 0 {
		return nil
	}
	t.drawn = true
	t.layOut()
	if err := t.note(); err != nil {
		return err
	}
	heads := make([]cell, len(t.columns))
	for i, c := range t.columns {
		heads[i] = cell{text: c.heading(), ink: t.theme.header}
	}
	if err := t.write(heads); err != nil {
		return err
	}
	for _, cells := range t.sample {
		if err := t.write(cells); err != nil {
			return err
		}
	}
	t.sample = nil
	return nil
}

// finish says of which hidden columns more could have been said.
func (t *table) finish() error {
	if len(t.late) == 0 {
		return nil
	}
	w := t.theme.notes
	if w == nil {
		w = t.w
	}
	_, err := fmt.Fprintf(w, "%shidden, but not the same in all rows: %s (--wide shows them)%s\n", t.theme.dim.before, strings.Join(t.late, ", "), t.theme.dim.after)
	return err
}

// note says what is hidden.
func (t *table) note() error {
	var hidden []string
	for i, c := range t.columns {
		if t.widths[i] == 0 && len(t.theme.columns) == 0 {
			hidden = append(hidden, c.name)
		}
	}
	if len(hidden) == 0 {
		return nil
	}
	w := t.theme.notes
	if w == nil {
		w = t.w
	}
	noun := "column"
	if len(hidden) > 1 {
		noun = "columns"
	}
	lines := wrap(fmt.Sprintf("%d %s hidden: %s (--wide shows all, --columns picks)", len(hidden), noun, strings.Join(hidden, ", ")), max(t.width, 40))
	_, err := fmt.Fprintf(w, "%s%s%s\n", t.theme.dim.before, strings.Join(lines, "\n"), t.theme.dim.after)
	return err
}

// same says what all cells of a column say, and whether they all do.
func (t *table) same(i int) (text string, same bool) {
	for n, cells := range t.sample {
		if n == 0 {
			text = cells[i].text
		} else if cells[i].text != text {
			return "", false
		}
	}
	return text, len(t.sample) > 1 || nothing(text)
}

// nothing says whether a cell says nothing: zeros, dashes, blanks.
func nothing(text string) bool { return strings.Trim(text, "0/-?% ") == "" }

// layOut gives each column the width of its widest cell, leaves columns out
// until the rest fits, and gives the flexible one what is left. Those that say
// the same in every row go first, then those of the highest rank; those that
// say that something is wrong, last.
func (t *table) layOut() {
	t.widths = make([]int, len(t.columns))
	t.boring = make([]string, len(t.columns))
	ranks := make([]int, len(t.columns))
	flex := -1
	for i, c := range t.columns {
		t.order = append(t.order, i)
		t.widths[i] = len(c.heading())
		if t.live {
			t.widths[i] = max(t.widths[i], c.usual)
		}
		for _, cells := range t.sample {
			t.widths[i] = max(t.widths[i], wide(cells[i].text))
		}
		if c.flex {
			flex = i
		}
		ranks[i] = 2 * c.rank
		text, same := t.same(i)
		t.boring[i] = text
		switch {
		case c.rank > 0 && nothing(text) && same:
			ranks[i] += 2000
		case c.rank > 0 && same:
			ranks[i] += 1000
		case c.quiet:
			ranks[i] = 1
		}
	}
	t.choose()
	if t.width == 0 {
		return
	}
	for {
		need, worst := -1, -1
		for i, c := range t.columns {
			if t.widths[i] == 0 || t.below && c.wrap {
				continue
			}
			if need++; i == flex {
				need += min(t.widths[i], c.min)
			} else {
				need += t.widths[i]
			}
			if ranks[i] > 0 && len(t.theme.columns) == 0 && (worst < 0 || ranks[i] >= ranks[worst]) {
				worst = i
			}
		}
		if need > t.width && flex >= 0 && t.columns[flex].wrap { // below, rather than without
			t.below = true
			flex = -1
			continue
		}
		if need <= t.width || worst < 0 {
			if flex >= 0 {
				t.widths[flex] = min(t.widths[flex], max(t.columns[flex].min, t.width-need+min(t.widths[flex], t.columns[flex].min)))
			}
			return
		}
		t.widths[worst] = 0
	}
}

// choose leaves the columns that were asked for, in their order.
func (t *table) choose() {
	if len(t.theme.columns) == 0 {
		return
	}
	t.order = nil
	for _, name := range t.theme.columns {
		for i, c := range t.columns {
			if c.called(name) && !slices.Contains(t.order, i) {
				t.order = append(t.order, i)
			}
		}
	}
	for i := range t.columns {
		if !slices.Contains(t.order, i) {
			t.widths[i] = 0
		}
	}
}

// heading returns the text at the top of the column.
func (c *column) heading() string {
	if c.scale == "" {
		return c.name
	}
	return c.name + " " + c.scale
}

// called says whether a name is that of the column, or a part of it.
func (c *column) called(name string) bool {
	return strings.EqualFold(name, c.name) || slices.ContainsFunc(strings.Split(c.name, "/"), func(part string) bool { return strings.EqualFold(name, part) })
}

// headings are the names of columns.
func headings(columns []column) (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// write writes one row.
func (t *table) write(cells []cell) error {
	b := t.line[:0]
	pending, at := 0, 0 // spaces that a further cell would need before it; where it would stand
	var rest []string   // further lines of the cell that wraps
	indent, over := 0, 0
	for _, i := range t.order {
		c := &t.columns[i]
		width := t.widths[i]
		if width == 0 {
			t.missed(i, cells[i].text)
			continue
		}
		text := cells[i].text
		if c.flex { // makes room for numbers that need more than those that were learnt from
			least := min(width, c.min)
			width, over = max(width-over, least), max(over-(width-least), 0)
		}
		if c.wrap && t.width > 0 {
			if t.below {
				if text != c.heading() {
					rest, indent = wrap(text, max(t.width-4, 20)), 4
				}
				continue
			}
			if lines := wrap(text, width); len(lines) > 1 {
				text, rest, indent = lines[0], lines[1:], at
			}
		}
		switch {
		case t.width == 0 || wide(text) <= width:
		case c.right: // a number that is cut is another one
			over += wide(text) - width
		default:
			if cells[i].short != "" {
				text = cells[i].short
			}
			text = t.theme.fit(text, width)
		}
		pad := max(width-wide(text), 0)
		at += width + 1
		if c.right {
			pending, pad = pending+pad, 0
		}
		if text != "" {
			for ; pending > 0; pending-- {
				b = append(b, ' ')
			}
			b = append(b, cells[i].ink.before...)
			b = append(b, text...)
			b = append(b, cells[i].ink.after...)
		}
		pending += pad + 1
	}
	b = append(b, '\n')
	for _, line := range rest {
		b = append(b, strings.Repeat(" ", indent)...)
		b = append(append(b, line...), '\n')
	}
	t.line = b
	_, err := t.w.Write(b)
	return err
}

// missed notes that a hidden column says something else than it did.
func (t *table) missed(i int, text string) {
	if len(t.theme.columns) == 0 && len(t.sample) == 0 && text != t.boring[i] && t.columns[i].quiet && !slices.Contains(t.late, t.columns[i].name) {
		t.late = append(t.late, t.columns[i].name)
	}
}

// fit shortens text to a width, with a mark.
func (t *Theme) fit(text string, width int) string {
	if wide(text) <= width {
		return text
	}
	end := 0
	for range max(width-1, 0) {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return text[:end] + t.glyphs.cut
}
