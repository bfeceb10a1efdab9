package browse

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/table"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/shell"
	"github.com/rdmadump/rdmadump/render"
)

// kind is what the records of a list are, and what can be done with them.
type kind struct {
	name, one string // in messages
	command   string // that lists the same
	opens     string // what Enter does
	fields    query.Fields
	orders    []string // fields by which the list can be sorted
	records   func(*Reading) *store
	draw      func(t *render.Text, r any) error
	enter     func(m *Model, r any) tea.Cmd
}

var rpcs = kind{
	name: "RPCs", one: "RPC", opens: "its ladder", fields: query.Transactions,
	orders:  []string{"latency_ns", "operation", "connection", "status"},
	records: func(r *Reading) *store { return r.rpcs },
	draw:    func(t *render.Text, r any) error { return t.Transaction(r.(*record.Transaction)) },
	enter:   func(m *Model, r any) tea.Cmd { return m.openLadder(r.(*record.Transaction)) },
}

var connections = kind{
	name: "connections", one: "connection", command: "connections", opens: "what its sides agreed on", fields: query.Connections,
	orders:  []string{"attempts", "packets", "retransmitted"},
	records: func(r *Reading) *store { return r.connections },
	draw:    func(t *render.Text, r any) error { return t.Connection(r.(*record.Connection)) },
	enter:   func(m *Model, r any) tea.Cmd { return m.openConnection(r.(*record.Connection)) },
}

// list is a screen with the records of a kind, as many as there are so far. Only those on the screen are read and drawn.
type list struct {
	scroll
	kind
	m       *Model
	read    *reader
	table   table.Model
	numbers []int64 // of the records in their order; nil for all, in the order in which the store has them
	from    int64   // number of the first record, if numbers is nil

	filter, by string // by: the field by which the list is sorted; empty for the usual order
	selecting  *job
	sorting    *job
	finding    *job
	err        error
	follow     bool // the cursor was on the last row, and stays there while there are more

	drawn      *rows
	width      int   // of drawn
	sampleSize int64 // number of rows from which drawn has the widths of columns
}

func newList(m *Model, k kind) *list {
	l := &list{m: m, kind: k, read: k.records(m.options.Reading).reader(), follow: m.options.Live}
	l.table = table.New(table.WithFocused(true), table.WithStyles(table.Styles{Header: m.ink(lipgloss.NewStyle().Bold(true)), Selected: m.ink(lipgloss.NewStyle().Reverse(true))}))
	return l
}

// at returns the number of the record in a row.
func (l *list) at(row int64) int64 {
	if l.numbers != nil {
		return l.numbers[row]
	}
	return l.from + row
}

// current returns the record with the cursor, or nil.
func (l *list) current() any {
	if l.count == 0 {
		return nil
	}
	r, err := l.read.get(l.at(l.cursor))
	if err != nil {
		l.err = err
	}
	return r
}

// refresh takes the records that were read since.
func (l *list) refresh() tea.Cmd {
	from, to := l.read.bounds()
	last := l.follow && l.cursor >= l.count-1
	if l.filter == "" && l.by == "" {
		if gone := from - l.from; l.numbers == nil && gone > 0 {
			l.cursor, l.top = l.cursor-gone, l.top-gone // The cursor stays on its record.
		}
		if l.from, l.count = from, to-from; l.numbers != nil {
			l.count = int64(len(l.numbers))
		}
	} else if i, _ := slices.BinarySearch(l.numbers, from); l.by == "" && i > 0 {
		l.numbers = slices.Clone(l.numbers[i:])
		l.cursor, l.top, l.count = l.cursor-int64(i), l.top-int64(i), int64(len(l.numbers))
	}
	if last {
		l.cursor = l.count - 1
	}
	l.fit()
	if l.sampleSize < sampleRows && l.count > l.sampleSize {
		l.drawn = nil // More rows tell the widths of columns.
	}
	if l.selecting != nil && !l.selecting.stopped && l.selecting.ended && !l.m.state.Done {
		l.selecting.ended = false
		return l.selecting.run()
	}
	return nil
}

// usual puts the records into their usual order: RPCs as their Calls are numbered, when the capture was read.
func (l *list) usual() {
	l.numbers, l.by, l.sorting = nil, "", nil
	if l.kind.name == rpcs.name && l.m.state.Done && !l.m.options.Live {
		l.numbers = l.m.options.Reading.order()
	}
}

func (l *list) busy() bool {
	return l.selecting.running() || l.sorting.running() || l.finding.running() || l.selecting != nil && !l.m.state.Done
}

// setFilter selects records by an expression; an empty one selects all. The cursor stays on its record if that is selected.
func (l *list) setFilter(expression string) (tea.Cmd, error) {
	var f *query.Filter
	if expression = strings.TrimSpace(expression); expression != "" {
		var err error
		if f, err = query.Compile(expression, l.fields); err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(f.Paths(), func(p string) bool { return query.Decoded(p) || p == "rpc" || strings.HasPrefix(p, "rpc.") }); i >= 0 {
			return nil, fmt.Errorf("%s needs decoded arguments, which browse does not keep: rdmadump FILE -Y has them", f.Paths()[i])
		}
	}
	l.selecting.stop()
	l.sorting.stop()
	l.filter, l.selecting, l.err, l.cursor, l.top, l.drawn = expression, nil, nil, 0, 0, nil
	if l.usual(); f == nil {
		return l.refresh(), nil
	}
	read, order := l.kind.records(l.m.options.Reading).reader(), l.numbers
	matched, next := []int64{}, int64(0)
	from, _ := read.bounds()
	end := func() int64 {
		if order != nil {
			return int64(len(order))
		}
		_, to := read.bounds()
		return to
	}
	if order == nil {
		next = from
	}
	l.numbers, l.count = matched, 0
	var failure error
	j := &job{}
	j.slice = visiting(&next, end, func(n int64) bool {
		if order != nil {
			n = order[n]
		}
		r, err := read.get(n)
		if err == nil && r != nil && f.Match(r) {
			matched = append(matched, n)
		}
		failure = err
		return err == nil
	})
	j.found = func() tea.Cmd {
		l.numbers, l.count, l.err = matched, int64(len(matched)), failure
		return l.refresh()
	}
	l.selecting = j
	return j.run(), nil
}

// sortNext sorts by the next field: after the last one, the usual order comes again.
func (l *list) sortNext() tea.Cmd {
	if !l.m.state.Done && l.m.options.Live || l.selecting.running() {
		l.m.message = "rows that still come cannot be sorted"
		return nil
	}
	next := append(slices.Clone(l.orders), "")[slices.Index(l.orders, l.by)+1]
	if l.by == "" {
		next = l.orders[0]
	}
	l.sorting.stop()
	if next == "" {
		filter := l.filter
		l.by = ""
		command, _ := l.setFilter(filter) // It was right before.
		return command
	}
	type keyed struct {
		n   int64
		key any
	}
	read, numbers, at := l.kind.records(l.m.options.Reading).reader(), l.numbers, int64(0)
	if numbers == nil {
		for n := l.from; n < l.from+l.count; n++ {
			numbers = append(numbers, n)
		}
	}
	all := make([]keyed, 0, len(numbers))
	j := &job{}
	j.slice = func() bool {
		more := visiting(&at, func() int64 { return int64(len(numbers)) }, func(i int64) bool {
			if r, err := read.get(numbers[i]); err == nil && r != nil {
				all = append(all, keyed{numbers[i], query.SortKey(l.fields, r, next)})
			}
			return true
		})()
		if !more {
			largest := l.descends(next)
			slices.SortStableFunc(all, func(a, b keyed) int {
				switch {
				case a.key == nil || b.key == nil: // Unknown values are last.
					return boolInt(a.key == nil) - boolInt(b.key == nil)
				case largest:
					return query.Order(b.key, a.key)
				}
				return query.Order(a.key, b.key)
			})
		}
		return more
	}
	j.found = func() tea.Cmd {
		if !j.ended {
			return nil
		}
		l.numbers = make([]int64, len(all))
		for i := range all {
			l.numbers[i] = all[i].n
		}
		l.by, l.count, l.cursor, l.top, l.drawn = next, int64(len(all)), 0, 0, nil
		return nil
	}
	l.sorting = j
	return j.run()
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// find moves the cursor to the next row whose text contains a text, or to the previous one.
func (l *list) find(text string, back bool) tea.Cmd {
	l.finding.stop()
	read, step, n := l.kind.records(l.m.options.Reading).reader(), int64(0), l.count
	numbers, from, cursor := l.numbers, l.from, l.cursor
	drawn, hit := l.rowsOf(read, l.width), int64(-1)
	j := &job{}
	j.slice = visiting(&step, func() int64 { return n }, func(i int64) bool {
		at := (cursor + i + 1) % n
		if back {
			at = (cursor - i - 1 + n) % n
		}
		number := from + at
		if numbers != nil {
			number = numbers[at]
		}
		if contains(ansi.Strip(l.row(drawn, read, number)), text) {
			hit = at
		}
		return hit < 0
	})
	j.found = func() tea.Cmd {
		switch {
		case hit >= 0:
			l.cursor = hit
			l.m.message = ""
			l.fit()
		case j.ended:
			l.m.message = "no row contains " + render.Clean(text)
		default:
			l.m.message = fmt.Sprintf("searching, %d of %d rows; Esc ends it", step, n)
		}
		return nil
	}
	l.finding = j
	return j.run()
}

// contains reports whether a text contains another, whatever the case of letters is.
func contains(s, text string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(text))
}

func (l *list) key(k tea.KeyPressMsg) (tea.Cmd, bool) {
	if l.move(k) {
		return nil, true
	}
	switch {
	case key.Matches(k, keys.enter):
		if r := l.current(); r != nil {
			return l.enter(l.m, r), true
		}
	case key.Matches(k, keys.sort):
		return l.sortNext(), true
	default:
		return nil, false
	}
	return nil, true
}

// sampleRows is the number of rows from which the widths of columns are.
const sampleRows = 256

// rows draws records as rows, with the columns that fit a width, as the command line does for the first ones.
type rows struct {
	out     bytes.Buffer
	text    *render.Text
	heading string
	hidden  int // number of columns that do not fit
}

// rowsOf returns what draws the rows of the list. Read is the reader of the goroutine that calls it.
func (l *list) rowsOf(read *reader, width int) *rows {
	w := &rows{}
	w.text = render.NewText(&w.out, l.m.theme.WithHidden(func(names []string) { w.hidden = len(names) }), width-gutter)
	if at, known := l.m.state.Start.Get(); known {
		w.text.Start(at)
	}
	for i := range min(l.count, sampleRows) {
		if r, err := read.get(l.at(i)); err == nil && r != nil {
			l.draw(w.text, r)
		}
	}
	w.text.Flush()
	w.heading, _, _ = strings.Cut(w.out.String(), "\n")
	return w
}

// row returns the row of a record.
func (l *list) row(w *rows, read *reader, number int64) string {
	r, err := read.get(number)
	switch {
	case err != nil:
		return render.Clean(err.Error())
	case r == nil:
		return "this record is not kept any more"
	}
	w.out.Reset()
	l.draw(w.text, r)
	text, _, _ := strings.Cut(w.out.String(), "\n")
	return text
}

// gutter is the width of the mark of the cursor.
const gutter = 2

func (l *list) view(width, height int) string {
	if l.height = int64(height) - 1; l.count == 0 {
		return "\n  " + l.empty()
	}
	l.fit()
	if l.drawn == nil || l.width != width {
		l.drawn, l.width, l.sampleSize = l.rowsOf(l.read, width), width, min(l.count, sampleRows)
	}
	var rows []table.Row
	for i := l.top; i < min(l.top+l.height, l.count); i++ {
		text := l.row(l.drawn, l.read, l.at(i))
		if i == l.cursor {
			text = "> " + ansi.Strip(text)
		} else {
			text = "  " + text
		}
		rows = append(rows, table.Row{text})
	}
	l.table.SetColumns([]table.Column{{Title: "  " + ansi.Strip(l.drawn.heading), Width: width}})
	l.table.SetWidth(width)
	l.table.SetHeight(height)
	l.table.SetRows(rows)
	l.table.SetCursor(int(l.cursor - l.top))
	return l.table.View()
}

func (l *list) empty() string {
	switch {
	case l.err != nil:
		return render.Clean(l.err.Error())
	case l.busy():
		return "no match so far"
	case l.filter != "":
		return "no match; : and Enter show all " + l.name
	case !l.m.state.Done:
		return "reading"
	}
	return "the capture has no " + l.name
}

// where says which row has the cursor, what selects and orders the rows, and what Enter does.
func (l *list) where() string {
	if l.count == 0 {
		return l.name
	}
	text := fmt.Sprintf("%s %d of %d", l.one, l.cursor+1, l.count)
	if l.filter != "" {
		text += " with " + render.Clean(l.filter)
		if l.selecting.running() {
			text += " so far"
		}
	}
	if l.by != "" {
		text += ", sorted by " + l.by
	}
	if l.drawn != nil && l.drawn.hidden > 0 {
		text += ", " + record.Plural(int64(l.drawn.hidden), "column") + " hidden"
	}
	return text + "  Enter: " + l.opens
}

func (l *list) commandLine() string {
	text := l.command + " " + l.m.options.Typed
	if l.filter != "" {
		text += " -Y " + shell.Word(l.filter)
	}
	if l.by != "" {
		if text += " --sort "; l.descends(l.by) {
			text += "-"
		}
		text += l.by
	}
	return text
}

// descends reports whether the largest values of a field come first.
func (l *list) descends(by string) bool {
	return strings.HasSuffix(by, "_ns") || l.kind.name == connections.name
}

func (l *list) help() []key.Binding {
	return []key.Binding{keys.enter, keys.filter, keys.search, keys.next, keys.sort, keys.copy}
}
func (l *list) restyle() { l.drawn = nil }
