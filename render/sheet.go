package render

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
)

// Sheet is a table as values, for writers of other formats than text. A column whose heading has several names with
// slashes between them, such as CREDITS REQUESTED/GRANTED, becomes several columns.
type Sheet struct {
	Columns []SheetColumn
	Rows    [][]SheetCell
}

// SheetColumn is a column of a Sheet.
type SheetColumn struct {
	Name    string // heading of the table
	Explain string // what the heading means
	Number  bool

	number func(record any) string // returns the number that a cell stands for
}

// SheetCell is a field of a row.
type SheetCell struct {
	Text  string
	Value string // the number that Text stands for, as in JSON; empty if there is none
}

// sheetFields has the fields of the records whose tables become sheets.
var sheetFields = map[string]query.Fields{
	"transactions": query.Transactions, "connections": query.Connections, "stats": StatsFields, "rates": RateFields, "files": FileFields, "network": NetworkFields,
}

// SheetOf returns the table of records, which are named in the plural, such as "stats". Draw draws the table, with a row
// for each record.
func SheetOf[R any](of string, records []R, draw func(theme *Theme) error) (*Sheet, error) {
	s := &Sheet{}
	if len(records) == 0 { // nothing is drawn for them
		s.head(of, tableColumns[of])
		return s, nil
	}
	theme := NewTheme(false)
	theme.sheet = func(columns []column, cells []cell) {
		if s.Columns == nil {
			s.head(of, columns)
		}
		s.add(records[len(s.Rows)], columns, cells)
	}
	return s, draw(theme)
}

// head makes the columns.
func (s *Sheet) head(of string, columns []column) {
	fields := sheetFields[of]
	for i := range columns {
		c := &columns[i]
		names, list := strings.Split(c.name, "/"), c.columnFields()
		for j, name := range names {
			own := SheetColumn{Name: name, Explain: c.explanation(), Number: c.right, number: func(any) string { return "" }}
			switch at := slices.IndexFunc(list, func(f columnField) bool { return f.name == nameOf(name) }); {
			case c.total != nil:
				own.number = func(r any) string { return numberText(c.total(r)) }
			case len(names) > 1 && len(list) == len(names):
				own.number = func(r any) string { return numberText(fields.Raw(r, list[j].path)) }
			case at >= 0:
				own.number = func(r any) string { return numberText(fields.Raw(r, list[at].path)) }
			}
			s.Columns = append(s.Columns, own)
		}
	}
}

// add adds the row of a record.
func (s *Sheet) add(r any, columns []column, cells []cell) {
	row := make([]SheetCell, 0, len(s.Columns))
	for i := range columns {
		texts := []string{cells[i].text}
		if n := strings.Count(columns[i].name, "/") + 1; n > 1 {
			if texts = strings.Split(cells[i].text, "/"); len(texts) != n { // the cell has no text for each
				texts = slices.Repeat([]string{cells[i].text}, n)
			}
		}
		for _, text := range texts {
			row = append(row, SheetCell{text, s.Columns[len(row)].number(r)})
		}
	}
	s.Rows = append(s.Rows, row)
}

// numberText returns a number as in JSON; for a time, the nanoseconds since 1970. It returns nothing for other values.
func numberText(v any) string {
	if _, is := v.(record.Time); !is {
		if _, named := v.(encoding.TextMarshaler); named { // such as an XID: it is no amount
			return ""
		}
	}
	switch n := reflect.ValueOf(v); {
	case n.CanInt():
		return fmt.Sprint(n.Int())
	case n.CanUint():
		return fmt.Sprint(n.Uint())
	case n.CanFloat():
		return fmt.Sprint(n.Float())
	}
	return ""
}
