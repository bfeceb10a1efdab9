package render

import (
	"io"
	"slices"
)

// column is a column of a table.
type column struct {
	name  string
	right bool // numbers
	flex  bool // takes what width is left
	min   int  // columns of the terminal that a flexible one needs
	rank  int  // columns of the highest rank go first when the terminal is narrow
	usual int  // width to expect in a live table, which cannot wait for rows to learn from
}

// cell is one field of a row.
type cell struct {
	text  string
	ink   ink
	short string // for when text does not fit
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
	sample  [][]cell
	drawn   bool
	live    bool
	line    []byte
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
	heads := make([]cell, len(t.columns))
	for i, c := range t.columns {
		heads[i] = cell{text: c.name, ink: t.theme.header}
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

// layOut gives each column the width of its widest cell, leaves columns out
// until the rest fits, and gives the flexible one what is left.
func (t *table) layOut() {
	t.widths = make([]int, len(t.columns))
	flex := -1
	for i, c := range t.columns {
		t.widths[i] = len(c.name)
		if t.live {
			t.widths[i] = max(t.widths[i], c.usual)
		}
		for _, cells := range t.sample {
			t.widths[i] = max(t.widths[i], len(cells[i].text))
		}
		if c.flex {
			flex = i
		}
	}
	if t.width == 0 {
		return
	}
	for {
		need, worst := -1, -1
		for i, c := range t.columns {
			if t.widths[i] == 0 {
				continue
			}
			if need++; i == flex {
				need += min(t.widths[i], c.min)
			} else {
				need += t.widths[i]
			}
			if c.rank > 0 && (worst < 0 || c.rank >= t.columns[worst].rank) {
				worst = i
			}
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

// write writes one row.
func (t *table) write(cells []cell) error {
	b := t.line[:0]
	pending := 0 // spaces that a further cell would need before it
	for i, c := range t.columns {
		width := t.widths[i]
		if width == 0 {
			continue
		}
		text := cells[i].text
		if len(text) > width && t.width > 0 {
			if cells[i].short != "" {
				text = cells[i].short
			}
			if len(text) > width {
				text = text[:max(width-1, 0)] + "~"
			}
		}
		pad := max(width-len(text), 0)
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
	t.line = append(b, '\n')
	_, err := t.w.Write(t.line)
	return err
}
