package report

import (
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/render"
)

// table is a table of the page.
type table struct {
	Columns []column
	Rows    [][]cell
}

// column is the heading of a column.
type column struct {
	Name, Explain string
	Number        bool
}

// cell is a cell of a table.
type cell struct {
	Text  string
	Value string // number that Text stands for, as in JSON; empty if there is none
	ID    string // anchor; empty if nothing leads here
	Bars  *bars  // a picture instead of Text
}

// tableOf returns a table of the page with columns of a table that rdmadump prints in text. A pick is the heading there, and after an
// equals sign the heading here if it is not the same in small letters. The first column names the rows.
func tableOf[R any](v *page, of string, records []R, draw func(*render.Theme) error, picks ...string) *table {
	s, err := render.SheetOf(of, records, draw)
	v.note(err)
	t := &table{Rows: make([][]cell, len(s.Rows))}
	for _, pick := range picks {
		name, heading, other := strings.Cut(pick, "=")
		if !other {
			heading = name[:1] + strings.ToLower(name[1:])
		}
		at := slices.IndexFunc(s.Columns, func(c render.SheetColumn) bool { return c.Name == name })
		if at < 0 {
			panic("report: no table has the column " + name)
		}
		t.Columns = append(t.Columns, column{heading, s.Columns[at].Explain, s.Columns[at].Number})
		for i, row := range s.Rows {
			t.Rows[i] = append(t.Rows[i], cell{Text: render.Clean(row[at].Text), Value: row[at].Value})
		}
	}
	return t
}
