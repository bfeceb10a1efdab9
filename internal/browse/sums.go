package browse

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/index"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// sums is a screen with sums of the RPCs that the filter of the list selects.
type sums struct {
	pane
	m       *Model
	work    func(s *sums)            // starts to sum up
	take    func(s *sums)            // takes the result
	command func(file string) string // returns the command line that shows the same, without rdmadump
	selects func() string            // returns a filter in addition to that of the list; nil for none
	running func() bool
	stop    func()        // ends the work
	read    *atomic.Int64 // number of RPCs that were summed up or left out
	of      int64         // number of RPCs that were there when the work started; -1 before
	begun   time.Time
	sorter
	arranged
	kind    *source               // fields of the rows, and the orders that they can have
	usual   string                // describes the order that they have if the user chose none; empty if they tell
	groupBy func(by string) error // groups by other fields; nil for sums that cannot
	when    func() string         // returns the time of the row with the cursor; nil if rows have none
	hidden  []string              // headings of the columns that do not fit
	wanted  *scroll               // position when the work ends; nil for the one that it has
}

// arranged are rows in an order.
type arranged struct {
	rows  []any
	order []int64 // indexes of rows; nil for the order that they have
	path  string  // field by which they are sorted; empty for none
	down  bool    // the largest value is first
}

// count returns the number of rows.
func (a *arranged) count() int { return len(a.rows) }

// at returns the index of the row in a line, or -1 if there is none.
func (a *arranged) at(line int64) int {
	switch {
	case line < 0 || line >= int64(len(a.rows)):
		return -1
	case a.order == nil:
		return int(line)
	}
	return int(a.order[line])
}

// line returns the line of a row.
func (a *arranged) line(row int) int64 {
	if a.order == nil {
		return int64(row)
	}
	return int64(slices.Index(a.order, int64(row)))
}

// shownRows returns the first rows in their order.
func shownRows[T any](a *arranged, most int) (rows []T) {
	for i := range min(a.count(), most) {
		rows = append(rows, a.rows[a.at(int64(i))].(T))
	}
	return rows
}

// arrange puts rows in the order that the user chose last.
func (s *sums) arrange() func(ctx context.Context, rows []any, pass func(ordering)) arranged {
	if s.by < 0 {
		return func(_ context.Context, rows []any, _ func(ordering)) arranged { return arranged{rows: rows} }
	}
	src, x := *s.kind, s.m.options.Index
	by, down := src.orders[s.by], s.descending
	return func(ctx context.Context, rows []any, pass func(ordering)) arranged {
		src.get = func(_ *index.Reader, n int64) (any, error) { return rows[n], nil }
		work := sorting{source: &src, x: x, by: by, descending: down, pass: pass}
		for n := range rows {
			work.numbers = append(work.numbers, int64(n))
		}
		order, err := work.sorted(ctx)
		if err != nil {
			return arranged{rows: rows}
		}
		return arranged{rows, order, by.path, down}
	}
}

// setOrder sorts by another column; by is -1 for the order of the sums.
func (s *sums) setOrder(by int, descending bool) {
	s.by, s.descending, s.wanted = by, descending, nil
	s.cursor, s.top = 0, 0
	s.sort()
}

// sort starts to sort the rows, unless they have the order that the user chose.
func (s *sums) sort() {
	s.sorting.stop()
	if s.sorting = nil; s.by < 0 {
		s.order, s.path = nil, ""
		s.redraw()
		return
	}
	if s.path == s.kind.orders[s.by].path && s.down == s.descending {
		return
	}
	rows, arrange := s.rows, s.arrange()
	s.sorting = start(s.m, func(ctx context.Context, pass func(ordering)) ordering {
		return ordering{numbers: arrange(ctx, rows, pass).order}
	})
}

// takeSorted takes the sorted rows when they are there.
func (s *sums) takeSorted() {
	if s.sorting == nil {
		return
	}
	if sorted, ended := s.sorting.get(); ended {
		if s.sorting = nil; len(sorted.numbers) == len(s.rows) {
			s.order, s.path, s.down = sorted.numbers, s.kind.orders[s.by].path, s.descending
		}
		s.redraw()
	}
}

// again is the time after which sums are made anew while the capture is still being read.
const again = time.Second

func (s *sums) update(m *Model) {
	s.takeSorted()
	if s.running != nil && !s.running() {
		s.running = nil
		s.take(s)
		s.redraw()
		s.sort()
		if s.wanted != nil {
			s.scroll, s.wanted = *s.wanted, nil
		}
	}
	if s.running == nil && s.of != m.state.To && (s.of < 0 || m.state.Done || time.Since(s.begun) > again) {
		s.of, s.begun, s.read = m.state.To, time.Now(), new(atomic.Int64)
		s.work(s)
	}
}

func (s *sums) busy() bool { return s.running != nil || s.sorting != nil }

// key takes the keys that sort, and those of the screen.
func (s *sums) key(m *Model, k string) bool {
	switch k {
	case "<", ">", "z":
		heading := ""
		if len(s.text) > 0 {
			heading = s.text[0]
		}
		if !s.sorter.key(s.kind, k, heading, s.setOrder) {
			m.say(sortsFirst)
		}
		return true
	}
	taken := s.pane.key(m, k)
	if last := int64(len(s.rows)) - 1; last >= 0 { // The lines below the rows explain them.
		s.cursor = min(s.cursor, last)
	}
	return taken
}

// status says what is summed up.
func (s *sums) status() (parts []part) {
	if s.m.list.filter != "" {
		parts = append(parts, part{"& " + clean(s.m.list.filter), withoutEnd})
	}
	if s.when != nil {
		parts = append(parts, part{text: s.when()})
	}
	if s.names != nil && s.cursor > 0 { // Columns may be too narrow for the whole name.
		parts = append(parts, part{s.names(s.cursor), withoutBeginning})
	} else {
		name := part{text: s.name}
		if s.by < 0 && s.usual != "" && s.arranged.count() > 0 {
			name = part{s.name + ", " + s.usual, withoutEnd}
		}
		parts = append(parts, name)
	}
	parts = append(parts, s.sorter.status(s.kind)...)
	if s.running != nil {
		parts = append(parts, part{text: fmt.Sprintf("summing up, %d%%", s.read.Load()*100/max(s.of-s.m.state.From, 1))})
	}
	return append(parts, hidden(s.hidden)...)
}

// tables returns the theme of the table, which notes the columns that do not fit.
func (s *sums) tables() *render.Theme {
	s.hidden = nil
	return s.m.tables.WithHidden(func(names []string) { s.hidden = names })
}

// restartSums makes the sums anew, because the filter has changed.
func (m *Model) restartSums() {
	for _, t := range m.tabs {
		if s, is := t.(*sums); is {
			if s.running != nil {
				s.stop()
			}
			s.running, s.of, s.cursor, s.wanted = nil, -1, 0, nil
		}
	}
}

// selection are the RPCs so far that a filter selects.
type selection struct {
	*index.Index
	filter string
	read   *atomic.Int64 // takes the number of RPCs that the filter was applied to
}

// selection returns the RPCs that the filter of the list selects.
func (s *sums) selection() selection {
	return selection{s.m.options.Index, s.m.list.filter, s.read}
}

// connections calls visit for all connections.
func (s selection) connections(ctx context.Context, visit func(c *record.Connection) error) (failed error) {
	r := s.Reader()
	defer r.Close()
	err := r.EachConnection(ctx, 0, math.MaxInt64, func(_ int64, c *record.Connection) bool {
		failed = visit(c)
		return failed == nil
	})
	return cmp.Or(failed, err)
}

// each calls visit for the RPCs.
func (s selection) each(ctx context.Context, visit func(r *record.Transaction) error) error {
	x, filter := s.Index, s.filter
	var f *query.Filter
	if filter != "" {
		var err error
		if f, err = query.Compile(filter, query.Transactions); err != nil {
			return err
		}
	}
	r := x.Reader()
	defer r.Close()
	from, to := x.Bounds()
	var failed error
	err := r.Each(ctx, from, to, func(_ int64, t *record.Transaction) bool {
		s.read.Add(1)
		if f != nil {
			hit, err := f.Match(t)
			if failed = err; err != nil || !hit {
				return err == nil
			}
		}
		failed = visit(t)
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return err
}

// newSums returns a screen whose rows have the fields of a source.
func newSums(m *Model, kind *source) *sums {
	return &sums{m: m, of: -1, sorter: sorter{by: -1}, kind: kind}
}

// anyOf returns rows of any type.
func anyOf[T any](rows []T) (list []any) {
	for _, r := range rows {
		list = append(list, r)
	}
	return list
}

// groupings are what b groups the RPCs of list 4 by, one after the other.
var groupings = []string{analyze.ByOperation, "client", "server", "file", "directory", "size"}

// newStats returns the screen with the sums of each operation, or of other groups.
func newStats(m *Model) *sums {
	var running *job[arranged]
	s := newSums(m, operationSums)
	s.keys, s.fixed, s.by = []string{"Enter its RPCs", "b by " + groupings[1], "& filter"}, 1, -1
	group := ""
	s.groupBy = func(by string) error {
		if _, err := m.group(by); err != nil {
			return err
		}
		next := groupings[(slices.Index(groupings, by)+1)%len(groupings)]
		group, s.name, s.keys[1] = by, "sums by "+strings.ReplaceAll(by, ",", ", "), "b by "+next
		if s.running != nil {
			s.stop()
		}
		s.running, s.of, s.cursor, s.arranged = nil, -1, 0, arranged{}
		s.work = func(s *sums) {
			selected, arrange := s.selection(), s.arrange()
			running = start(m, func(ctx context.Context, _ func(arranged)) arranged {
				table, _ := m.group(by) // A job that was stopped may still be using an earlier one.
				selected.each(ctx, func(r *record.Transaction) error {
					table.Add(r)
					return nil
				})
				return arrange(ctx, anyOf(table.Rows()), nil)
			})
			s.running, s.stop = func() bool { _, ended := running.get(); return !ended }, running.stop
		}
		s.redraw()
		return nil
	}
	s.groupBy(analyze.ByOperation) // It is always possible.
	s.command = func(file string) string {
		if group == analyze.ByOperation {
			return "stats " + file
		}
		return "stats " + file + " --by " + group
	}
	s.take = func(s *sums) { s.arranged, _ = running.get() }
	s.drawn = func(width int) []string {
		if s.arranged.count() == 0 {
			return []string{"", "no RPCs so far"}
		}
		var b bytes.Buffer
		if err := render.Stats(&b, s.tables(), width, shownRows[*analyze.Stats](&s.arranged, s.arranged.count())); err != nil {
			return []string{err.Error()}
		}
		return split(b.String())
	}
	s.on = func(m *Model, k string) bool {
		switch k {
		case "b", "B":
			at, n := slices.Index(groupings, group), len(groupings)
			if k == "B" {
				at += n - 2
			}
			if err := s.groupBy(groupings[(at+1+n)%n]); err != nil {
				m.fail(err)
			}
			return true
		case "enter", "l", "right":
		default:
			return false
		}
		if i := s.at(s.cursor); i >= 0 {
			if filter := groupFilter(s.rows[i].(*analyze.Stats)); filter == "" {
				m.say("no filter selects these RPCs")
			} else {
				m.showRPCs(both(m.list.filter, filter), "stats")
			}
		}
		return true
	}
	return s
}

// group returns an empty table that groups RPCs as --by of stats does.
func (m *Model) group(by string) (*analyze.Table, error) {
	switch {
	case by == analyze.ByOperation:
		return analyze.NewTable(by), nil
	case m.options.Group == nil:
		return nil, errors.New("RPCs can only be grouped by operation here")
	}
	return m.options.Group(by)
}

// groupFilter returns the filter that selects the RPCs of a row of stats, or nothing if there is none.
func groupFilter(s *analyze.Stats) string {
	if s.GroupBy == analyze.ByOperation {
		return filterOf(s.Name)
	}
	paths, filter := strings.Split(s.GroupBy, ","), ""
	if len(paths) != len(s.Group) {
		return ""
	}
	for i, value := range s.Group {
		one := ""
		if paths[i] == analyze.ByOperation {
			one = filterOf(value)
		} else {
			one = fieldFilter(paths[i], value)
		}
		if one == "" {
			return ""
		}
		if filter != "" {
			filter += " and "
		}
		filter += one
	}
	return filter
}

// fieldFilter returns the filter that selects the RPCs of which a table shows a value for a field, or nothing if there is none.
func fieldFilter(path, value string) string {
	if path == "size" { // --by has a short name for the field.
		path = "size_class"
	}
	f := query.Transactions.Field(path)
	switch {
	case f == nil || f.List || strings.Contains(value, `\`): // Some characters are shown by their numbers.
		return ""
	case value == "-" && path == "file":
		return "file == null and file_handle == null"
	case value == "-":
		return path + " == null"
	case path == "file" && !strings.Contains(value, "/"): // perhaps only a part of a handle
		return ""
	case f.Type == "text" || f.Type == "address" || f.Type == "bytes":
		value = strconv.Quote(value)
	}
	if filter := path + " == " + value; compiles(filter) {
		return filter
	}
	return ""
}

// both returns a filter for what two filters select.
func both(a, b string) string {
	if a == "" || a == b {
		return b
	}
	return "(" + a + ") and " + b
}

// These are the forms of the names of operations.
var (
	namedOperation = regexp.MustCompile(`^([A-Z_]+)(\d+) (.+)$`)
	plainProcedure = regexp.MustCompile(`^(?:([A-Z_]+)(\d+)|program (\d+) v(\d+)) procedure (\d+)$`)
	safeWord       = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
)

// filterOf returns the filter that selects the RPCs of a row of stats, or nothing if there is none.
func filterOf(name string) string {
	if name == analyze.NotDecoded {
		return "program == null"
	}
	if f := plainProcedure.FindStringSubmatch(name); f != nil {
		if f[1] != "" {
			return fmt.Sprintf("program_name == %q and version == %s and procedure == %s", f[1], f[2], f[5])
		}
		return fmt.Sprintf("program == %s and version == %s and procedure == %s", f[3], f[4], f[5])
	}
	f := namedOperation.FindStringSubmatch(name)
	if f == nil || !safeWord.MatchString(f[3]) {
		return ""
	}
	program := fmt.Sprintf("program_name == %q and version == %s", f[1], f[2])
	if f[1] == "NFS" && f[2] == "4" { // The operations of a Reply without a Call are known, too.
		program = "(" + program + ` or program == null and direction == "forward")`
	}
	// Only names that the language knows can be compared, because others are probably mistyped.
	var either []string
	for _, test := range []string{"operation == %q", "operation == null and procedure_name == %q"} {
		if test = fmt.Sprintf(test, f[3]); compiles(test) {
			either = append(either, test)
		}
	}
	switch len(either) {
	case 0:
		return ""
	case 1:
		return program + " and " + either[0]
	}
	return program + " and (" + strings.Join(either, " or ") + ")"
}

// compiles reports whether an expression is right.
func compiles(expression string) bool {
	_, err := query.Compile(expression, query.Transactions)
	return err == nil
}

// rates is the state of the screen with the sums of each interval of time.
type rates struct {
	axis
	outer []axis // what was shown before + zoomed, the latest last
	rows  []*analyze.Rate
	shown time.Duration // length of the intervals of rows
	err   error
	at    record.Opt[record.Time] // time at which the cursor is to be
}

// axis is a part of the capture in intervals.
type axis struct {
	every    time.Duration
	from, to record.Time // to is 0 for all of the capture in as many intervals as suit the screen
}

// intervals is the number of intervals that the whole capture is divided into.
const intervals = 60

// steps are the lengths of intervals, in their order.
var steps = func() (steps []time.Duration) {
	for d := time.Microsecond; d < 100*time.Hour; d *= 10 {
		steps = append(steps, d, 2*d, 5*d)
	}
	return steps
}()

// step returns the shortest length with which a span of time has at most the given number of intervals.
func step(span time.Duration, most int) time.Duration {
	for _, d := range steps {
		if span <= d*time.Duration(most) {
			return d
		}
	}
	return steps[len(steps)-1]
}

// newRates returns the screen with the sums of each interval. It is an axis of time that can be zoomed.
func newRates(m *Model) *sums {
	z := &rates{}
	m.rates = z
	type result struct {
		arranged
		every time.Duration
		err   error
	}
	var running *job[result]
	s := newSums(m, intervalSums)
	s.name, s.keys, s.fixed = "sums by time", []string{"Enter its RPCs", "+ - zoom", "& filter"}, 1
	s.command = func(file string) string { return fmt.Sprintf("stats %s --every %v", file, z.shown) }
	s.selects = func() string {
		if z.to == 0 {
			return ""
		}
		return fmt.Sprintf("end_time >= %s and end_time < %s", z.from, z.to)
	}
	s.work = func(s *sums) {
		chosen, arrange, zoom, state, found := s.selection(), s.arrange(), *z, m.state, m.list.found
		running = start(m, func(ctx context.Context, _ func(result)) result {
			if state.From == state.To {
				return result{}
			}
			begin, end := span(ctx, chosen.Index, selected(ctx, found, state.Done))
			if state.Summary != nil {
				end = state.Summary.Last.Or(end)
			}
			if zoom.to > 0 {
				begin, end = zoom.from, zoom.to
			}
			every := zoom.every
			if zoom.to == 0 {
				every = step(time.Duration(max(end.Sub(begin), 1)), intervals)
				begin -= max(begin-state.Start.Or(begin), 0) % record.Time(every) // The intervals are those of stats --every.
			}
			t, err := analyze.NewRates(every, "", nil)
			if err != nil {
				return result{err: err}
			}
			t.Begin(begin)
			err = chosen.each(ctx, func(r *record.Transaction) error {
				if at := r.End(); zoom.to > 0 && (at < begin || at >= end) {
					return nil
				}
				return t.Add(r)
			})
			if err == nil { // A Call without a Reply is in flight until its connection closes.
				err = chosen.connections(ctx, func(c *record.Connection) error {
					until := *c
					until.Last = min(c.Last, end)
					return t.Connection(&until)
				})
			}
			if err != nil {
				return result{err: err}
			}
			rows, err := t.Rows(end)
			return result{arrange(ctx, anyOf(rows), nil), every, err}
		})
		s.running, s.stop = func() bool { _, ended := running.get(); return !ended }, running.stop
	}
	s.take = func(s *sums) {
		r, _ := running.get()
		s.arranged, z.shown, z.err = r.arranged, r.every, r.err
		z.rows = nil
		for _, row := range r.rows {
			z.rows = append(z.rows, row.(*analyze.Rate))
		}
		if at, known := z.at.Get(); known { // The cursor stays at its time.
			z.at = record.Opt[record.Time]{}
			line := s.line(max(slices.IndexFunc(z.rows, func(r *analyze.Rate) bool { return at < r.End }), 0))
			s.wanted = &scroll{line, line - int64(s.height/2)} // in the middle of the screen
		}
		if s.name = "sums by time"; z.shown > 0 {
			s.name = fmt.Sprintf("intervals of %v", z.shown)
		}
	}
	s.drawn = func(width int) []string {
		if z.err != nil {
			return []string{clean(z.err.Error())}
		}
		if len(z.rows) == 0 {
			return []string{"", "no RPCs so far"}
		}
		var b bytes.Buffer
		rows := shownRows[*analyze.Rate](&s.arranged, len(z.rows))
		if err := render.Rates(&b, s.tables(), width, m.state.Start.Or(z.rows[0].Start), rows); err != nil {
			return []string{err.Error()}
		}
		return split(b.String())
	}
	s.when = func() string {
		if i := s.at(s.cursor); i >= 0 {
			return z.rows[i].Start.String()[:len("2006-01-02T15:04:05.000000")] + "Z"
		}
		return "no interval"
	}
	s.on = func(m *Model, k string) bool {
		i := s.at(s.cursor)
		if k == "0" && len(z.outer) == 0 {
			return false // It is the key of the overview.
		}
		switch k {
		case "+", "=", "-", "0":
			if i >= 0 {
				z.at = record.Some(z.rows[i].Start)
			}
			if !z.zoom(k, i) {
				z.at = record.Opt[record.Time]{}
				m.say(map[bool]string{true: "these intervals cannot be shorter", false: "this is all of the capture"}[k == "+" || k == "="])
				return true
			}
			s.of = -1
		case "enter", "l", "right":
			if i >= 0 {
				m.showRPCs(both(m.list.filter, z.filter(i)), "rates")
			}
		default:
			return false
		}
		return true
	}
	return s
}

// filter returns a filter for the RPCs of an interval. The first one of a capture also counts RPCs from
// before its start, which a clock that was set back causes.
func (z *rates) filter(i int) string {
	before := fmt.Sprintf("end_time < %s", z.rows[i].End)
	if i == 0 && z.to == 0 {
		return before
	}
	return fmt.Sprintf("end_time >= %s and ", z.rows[i].Start) + before
}

// zoom takes the keys that change the part of the capture that is shown: + shows the interval with an index and its
// neighbours in shorter intervals, - goes back to what was shown before, and 0 shows all. It reports false if the key changes
// nothing.
func (z *rates) zoom(k string, i int) bool {
	n := len(z.outer)
	switch {
	case k == "-" && n > 0:
		z.axis, z.outer = z.outer[n-1], z.outer[:n-1]
	case k == "0" && n > 0:
		z.axis, z.outer = z.outer[0], nil
	case k == "-" || k == "0" || i < 0:
		return false
	default:
		inner := z.around(z.rows[i])
		if inner == z.axis {
			return false
		}
		z.axis, z.outer = inner, append(slices.Clip(z.outer), z.axis)
	}
	return true
}

// around returns an interval and its neighbours, in shorter intervals.
func (z *rates) around(r *analyze.Rate) axis {
	length := record.Time(z.shown)
	from, to := r.Start-2*length, r.End+2*length
	if len(z.rows) > 0 {
		from, to = max(from, z.rows[0].Start), min(to, z.rows[len(z.rows)-1].End)
	}
	every := step(time.Duration(to-from), intervals)
	if every >= z.shown {
		from, to = r.Start, r.End
		every = step(time.Duration(to-from), intervals)
	}
	return axis{every, from, to}
}

// span returns the time of the first Call of the RPCs with some numbers, and the time of the last Reply so far; all RPCs if
// numbers is nil.
func span(ctx context.Context, x *index.Index, numbers []int64) (first, last record.Time) {
	r := x.Reader()
	defer r.Close()
	first = math.MaxInt64
	add := func(_ int64, row *index.Row) bool {
		first, last = min(first, row.Time), max(last, row.Time+record.Time(max(row.LatencyNS, 0)))
		return ctx.Err() == nil
	}
	if numbers == nil {
		from, to := x.Bounds()
		r.Rows(ctx, from, to, add)
	}
	for _, n := range numbers {
		if row, known := r.Row(n); known && !add(n, &row) {
			break
		}
	}
	return min(first, last), last
}

// text returns what the screen copies.
func (s *sums) content() string { return strip(strings.Join(s.text, "\n")) + "\n" }

// footer leaves out the key back, because the screen is a tab.
func (s *sums) footer() []string {
	return append(slices.Clone(s.keys), "/ search", "< > sort", "y copy")
}
