package browse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// list is a screen with the records of a source, as many as there are so far.
type list struct {
	scroll
	*source
	m       *Model
	enter   func(n int64, record any)            // shows one record
	preview func(record any, width int) []string // draws the record below the list; nil for nothing
	marked  map[int64]bool
	height  int
	numbers []int64 // of the records in their order; nil if they are all records, in the order in which the index has them
	from    int64   // number of the first record, if numbers is nil
	to      int64   // number of the record after the last

	filter  string
	found   *job[matches] // nil without a filter
	seen    int64
	dropped int64 // number of matches that are not kept any more
	final   bool  // the filter was applied to all records
	err     error

	wanted int64 // number of the record that the cursor goes to when the filter has selected it; -1 for none

	sorter
	ordered int64 // number of records when numbers was sorted

	print  *printer
	fits   int           // width of print
	sample map[int64]any // the records that print has learned from
	cache  map[int64]string

	search  string
	looking *job[lookup]

	pass *packetPass // of the list of packets; nil for others
}

// lookup is the progress of a search.
type lookup struct {
	at   int64 // position of the match; -1 if there is none
	seen int64
	err  error
}

func newList(m *Model, s *source) *list {
	return &list{source: s, m: m, sorter: sorter{by: -1}, wanted: -1, marked: map[int64]bool{}}
}

// shown are the records of a list in their order. It does not change when the list does.
type shown struct {
	numbers  []int64 // nil if they are the records from from to to
	from, to int64
}

// shown returns the records of the list.
func (l *list) shown() shown {
	if l.whole() {
		return shown{from: l.from, to: l.to}
	}
	return shown{numbers: l.numbers[:len(l.numbers):len(l.numbers)], to: int64(len(l.numbers))}
}

// count returns the number of records.
func (s shown) count() int64 { return s.to - s.from }

// at returns the number of the record at a position.
func (s shown) at(position int64) int64 {
	if s.numbers == nil {
		return s.from + position
	}
	return s.numbers[position]
}

// count returns the number of records of the list.
func (l *list) count() int64 { return l.shown().count() }

// whole reports whether the list shows all records in the order in which the index has them.
func (l *list) whole() bool { return l.found == nil && l.by < 0 && l.numbers == nil }

// counts reports whether the list, unless the user sorts it, has the order in which RPCs are numbered, as the command line
// has. It has that order when the capture was read; until then, and in live captures, RPCs come as they end.
func (l *list) counts() bool {
	return l.by < 0 && l.name == rpcs.name && l.m.state.Done && !l.m.options.Live
}

// at returns the number of the record at a position.
func (l *list) at(position int64) int64 { return l.shown().at(position) }

// current returns the record with the cursor.
func (l *list) current() (n int64, record any) {
	if l.count() == 0 {
		return 0, nil
	}
	n = l.at(min(l.cursor, l.count()-1))
	record, l.err = l.get(l.m.reader, n)
	return n, record
}

// update takes what jobs have found since.
func (l *list) update(m *Model) {
	if l.pass != nil {
		l.pass.update(l)
	}
	from, to := l.bounds(m.state)
	gone := from - l.from
	l.from, l.to = from, to
	switch {
	case l.found != nil:
		l.takeMatches()
	case l.by >= 0 || l.counts():
		l.takeOrder()
	case gone > 0: // The cursor stays on its record.
		l.cursor, l.top = max(l.cursor-gone, 0), max(l.top-gone, 0)
	}
	if l.wanted >= 0 && (l.place(l.wanted) || !l.busy()) {
		l.wanted = -1
	}
	if m.follow && l.sorting == nil {
		l.cursor = max(l.count()-1, 0)
	}
	if l.learning() {
		l.print = nil // More rows can tell the widths of columns.
	}
	if l.looking != nil {
		l.takeSearch()
	}
}

// takeMatches takes the records that the filter has selected so far.
func (l *list) takeMatches() {
	found, ended := l.found.get()
	l.seen, l.final = found.seen, ended
	if l.err = found.err; l.err != nil {
		return
	}
	counts := ended && l.counts()
	if l.by >= 0 || counts {
		if int64(len(found.numbers)) > l.ordered && (ended || l.ordered == 0) && l.sorting == nil {
			if counts {
				l.numbers = found.numbers
			}
			l.sort(found.numbers)
		}
		l.takeSorted()
		return
	}
	l.numbers = found.numbers
	gone := found.dropped - l.dropped // The cursor stays on its record.
	l.cursor, l.top, l.dropped = max(l.cursor-gone, 0), max(l.top-gone, 0), found.dropped
}

// takeOrder sorts all records anew if there are more.
func (l *list) takeOrder() {
	if n := l.to - l.from; l.sorting == nil && n != l.ordered && (l.ordered == 0 || l.m.state.Done || n > l.ordered*5/4) {
		l.sort(nil)
	}
	l.takeSorted()
}

// sort starts to sort records: all of them if numbers is nil.
func (l *list) sort(numbers []int64) {
	work := sorting{source: l.source, x: l.m.options.Index, by: l.orders[max(l.by, 0)], descending: l.by >= 0 && l.descending, numbers: numbers}
	from, to, usual := l.from, l.to, l.by < 0 && numbers == nil
	if l.ordered = int64(len(numbers)); numbers == nil {
		l.ordered = to - from
	}
	l.sorting = start(l.m, func(ctx context.Context, pass func(ordering)) ordering {
		if work.pass = pass; work.numbers == nil {
			work.numbers = make([]int64, 0, to-from)
			for n := from; n < to; n++ {
				work.numbers = append(work.numbers, n)
			}
		}
		out, err := work.sorted(ctx)
		if err != nil {
			out = work.numbers
		}
		if usual && slices.IsSorted(out) {
			out = nil // The index has them in this order.
		}
		return ordering{numbers: out}
	})
}

// takeSorted takes the sorted records when they are there. The cursor stays on its record.
func (l *list) takeSorted() {
	if l.sorting == nil {
		return
	}
	result, ended := l.sorting.get()
	if !ended {
		return
	}
	l.sorting = nil
	if l.count() == 0 || l.cursor == 0 && l.top == 0 {
		l.numbers, l.print = result.numbers, nil
		return
	}
	n := l.at(min(l.cursor, l.count()-1))
	l.numbers = result.numbers
	l.place(n)
}

// place puts the cursor on a record, if the list has it.
func (l *list) place(n int64) bool {
	if l.whole() {
		if n < l.from || n >= l.to {
			return false
		}
		l.cursor = n - l.from
		return true
	}
	if i := slices.Index(l.numbers, n); i >= 0 {
		l.cursor = int64(i)
		return true
	}
	return false
}

// setOrder sorts by another column; by is -1 for the order of the capture.
func (l *list) setOrder(by int, descending bool) {
	n, record := l.current()
	l.sorting.stop()
	l.by, l.descending, l.sorting, l.ordered = by, descending, nil, 0
	if l.numbers = nil; l.found != nil {
		l.takeMatches()
	}
	if by < 0 && record != nil {
		l.place(n)
	} else {
		l.cursor, l.top = 0, 0
	}
	l.print = nil
}

// check returns an error for a filter that cannot be applied. An empty one can.
func (l *list) check(expression string) error {
	if strings.TrimSpace(expression) == "" {
		return nil
	}
	f, err := query.Compile(expression, l.fields)
	if err != nil {
		return err
	}
	for _, path := range f.Paths() {
		if l.pass != nil {
			break // A pass of its own decodes what the filter needs.
		}
		if query.Decoded(path) || path == "rpc" || strings.HasPrefix(path, "rpc.") {
			return fmt.Errorf("%s needs decoded arguments and results, which browse does not keep; rdmadump FILE -Y has them", path)
		}
	}
	return nil
}

// setFilter selects records; an empty filter selects all. The cursor stays on its record if that is
// selected.
func (l *list) setFilter(expression string) error {
	if err := l.check(expression); err != nil {
		return err
	}
	n, record := l.current()
	l.wanted = -1
	l.found.stop()
	l.sorting.stop()
	l.filter, l.found, l.sorting, l.numbers, l.ordered, l.seen, l.dropped, l.final, l.err = expression, nil, nil, nil, 0, 0, 0, false, nil
	l.cursor, l.top, l.print = 0, 0, nil
	if l.pass != nil {
		l.sample = nil
		err := l.pass.read(expression)
		if expression == "" && err == nil {
			l.pass.goBackTo(l, record)
		}
		return err
	}
	if expression != "" {
		l.found = filtered(l.m, l.source, expression)
	}
	if record != nil && expression == "" {
		l.place(n)
	}
	return nil
}

// busy reports whether the screen may change without a key.
func (l *list) busy() bool {
	return l.learning() || l.pass != nil && l.pass.busy() || l.found != nil && !l.final && l.err == nil || l.sorting != nil || l.looking != nil || l.by >= 0 && l.found == nil && l.ordered != l.to-l.from
}

// status describes the filter and the order.
func (l *list) status() (parts []part) {
	if l.pass != nil {
		parts = l.pass.status(l.filter)
	} else if l.filter != "" {
		parts = append(parts, part{"& " + clean(l.filter), withoutEnd}, part{text: l.counted()})
	} else if n := l.count(); n == 1 {
		parts = append(parts, part{text: "1 " + l.one})
	} else {
		parts = append(parts, part{text: fmt.Sprintf("%d %s", n, l.name)})
	}
	parts = append(parts, l.sorter.status(l.source)...)
	if n := len(l.marked); n > 0 {
		parts = append(parts, part{text: fmt.Sprintf("%d marked", n)})
	}
	if l.looking != nil {
		found, _ := l.looking.get()
		parts = append(parts, part{text: fmt.Sprintf("searching, %d so far; Esc ends it", found.seen)})
	}
	if l.print != nil && l.count() > 0 {
		parts = append(parts, hidden(l.print.hidden)...)
	}
	return parts
}

// counted says how many records the filter selects, and whether the number is final.
func (l *list) counted() string {
	switch {
	case l.err != nil:
		return "failed: " + clean(l.err.Error())
	case !l.final && l.m.state.Done:
		return fmt.Sprintf("%d of %d so far (%d to go)", len(l.numbers), l.seen, l.to-l.from-l.seen)
	case !l.final:
		return fmt.Sprintf("%d of %d so far (reading)", len(l.numbers), l.seen)
	}
	return fmt.Sprintf("%d of %d, final", len(l.numbers), l.seen)
}

// restyle makes the list draw its rows with another theme.
func (l *list) restyle(*Model) { l.print = nil }

// learning reports whether there are more rows that can tell the widths of columns.
func (l *list) learning() bool {
	return l.print != nil && int64(l.print.sample) < min(l.count(), sampleRows)
}

// sampleReads is the number of records that are read for the widths of columns before the screen is drawn.
// In a list that the user sorted or filtered, each is in another block.
const sampleReads = 64

// printer returns the printer of rows for a width.
func (l *list) printer(width int) *printer {
	if l.print != nil && l.fits == width {
		return l.print
	}
	p := newPrinter(l.m, l.source, width)
	before, reads := l.sample, 0
	l.sample = map[int64]any{}
	for i := range min(l.count(), sampleRows) {
		n := l.at(i)
		record, known := before[n]
		if !known {
			if reads++; reads > sampleReads && (l.by >= 0 || l.found != nil) {
				break
			}
			record, _ = l.get(l.m.reader, n)
		}
		l.sample[n] = record
		if record == nil {
			p.sample++ // It is not kept any more.
			continue
		}
		p.learn(record)
	}
	p.start()
	l.print, l.fits, l.cache = p, width, map[int64]string{}
	return p
}

// row returns the row of the record at a position.
func (l *list) row(p *printer, position int64) string {
	n := l.at(position)
	line, known := l.cache[n]
	if !known {
		record, err := l.get(l.m.reader, n)
		switch {
		case err != nil:
			return clean(err.Error())
		case record == nil:
			return "this record is not kept any more"
		}
		if len(l.cache) > 4096 {
			clear(l.cache)
		}
		line = p.line(record)
		l.cache[n] = line
	}
	if l.search != "" {
		line = l.m.lit(line, l.search)
	}
	return line
}

func (l *list) draw(m *Model, width, height int) (lines []string) {
	p := l.printer(max(width-gutter, 20))
	l.height = height - 1
	if l.preview != nil && !m.hidden && height >= leastWithPreview && l.count() > 0 {
		// A short list leaves more lines.
		rows := max(previewLines, height-2-int(min(l.count(), int64(height))))
		l.height -= rows + 1
		defer func() {
			for len(lines) < height-rows-1 {
				lines = append(lines, "")
			}
			lines = append(lines, m.styled(dim, strings.Repeat("-", width)))
			if _, record := l.current(); record != nil {
				lines = append(lines, firstLines(l.preview(record, width-gutter), rows, width)...)
			}
		}()
	}
	n := l.count()
	l.show(n, l.height)
	if n == 0 {
		return append([]string{""}, "  "+l.empty())
	}
	lines = append(lines, "  "+p.heading)
	for i := l.top; i < min(l.top+int64(l.height), n); i++ {
		lines = append(lines, m.selected(l.row(p, i), i == l.cursor, l.marked[l.at(i)], width))
	}
	return lines
}

// A list has this number of lines with the record of the cursor below it, if it has at least
// leastWithPreview lines.
const (
	previewLines     = 4
	leastWithPreview = 19
)

// firstLines returns the first lines of a preview. The last one has dots if there are more.
func firstLines(preview []string, most, width int) (lines []string) {
	for i, line := range preview[:min(len(preview), most)] {
		if line = "  " + line; i == most-1 && len(preview) > most {
			line = dotted(line+" ", width)
		}
		lines = append(lines, line)
	}
	return lines
}

// previewRPC draws what happened to an RPC: the lines above its ladder.
func (m *Model) previewRPC(r any, width int) (lines []string) {
	return render.LadderHeading(m.theme, width, r.(*record.Transaction))
}

// previewFinding draws the message of a finding.
func (m inks) previewFinding(r any, width int) []string {
	f := r.(*record.Finding)
	return append([]string{m.styled(bold, f.Rule) + "  " + f.Section}, render.Wrap(clean(f.Message), width)...)
}

// empty says why the list is empty.
func (l *list) empty() string {
	switch {
	case l.pass != nil:
		return l.pass.empty(l.filter)
	case l.filter != "" && !l.final:
		return "no match so far"
	case l.filter != "":
		return "no match; & and Enter show all " + l.name
	case l.sorting != nil:
		return "sorting"
	case !l.m.state.Done:
		return "reading"
	case l.name == findings.name:
		return "no rule was violated, as far as the capture shows; rdmadump check lists what was not checked"
	case l.name == rpcs.name && l.m.state.Connections > 0:
		return "the capture has no RPCs; 2 shows its connections"
	}
	return "the capture has no " + l.name
}

func (l *list) title() string { return l.name }

func (l *list) footer() (keys []string) {
	if l.pass != nil {
		return []string{"Enter fields", "r its RPC", "& filter", "/ search", "e next with a mark", "y copy"}
	}
	if l.name != rpcs.name {
		if l.name == findings.name {
			return []string{"Enter its RPC", "x explain", "& filter", "/ search", "y copy", "< > sort"}
		}
		return []string{"Enter open", "& filter", "/ search", "y copy", "< > sort"}
	}
	if len(l.marked) == 2 {
		keys = append(keys, "d compare the marked")
	}
	keys = append(keys, "Enter open", "& filter", "/ search", "< > sort")
	if l.by >= 0 {
		keys = append(keys, "z reverse")
	}
	return append(keys, "e problem", "Space mark", "y copy", "s save", "0-7 lists")
}

func (l *list) key(m *Model, k string) bool {
	if l.scroll.key(k, l.count(), l.height) {
		m.follow, l.wanted = false, -1
		return true
	}
	switch k {
	case "enter", "l", "right":
		if n, record := l.current(); record != nil && l.enter != nil {
			l.enter(n, record)
		}
	case "space":
		if l.count() > 0 {
			n := l.at(l.cursor)
			if l.marked[n] = !l.marked[n]; !l.marked[n] {
				delete(l.marked, n)
			}
		}
	case "x":
		n, r := l.current()
		f, is := r.(*record.Finding)
		if !is {
			return false
		}
		m.push(newFinding(m, f, &opener{l, n, true}))
	case "r":
		_, r := l.current()
		p, is := r.(*record.Packet)
		if !is {
			return false
		}
		m.openRPCOf(p)
	case "e", "E":
		if l.pass == nil {
			return false
		}
		m.nextMarked(l, k == "E")
	case "U":
		clear(l.marked)
	case "<", ">", "z":
		if l.pass != nil {
			m.say("packets are in the order of the capture")
			return true
		}
		if !l.sorter.key(l.source, k, l.printer(max(m.width-gutter, 20)).heading, l.setOrder) {
			m.say(sortsFirst)
		}
	case "n", "N":
		if l.search == "" {
			m.say("/ searches first")
			return true
		}
		l.find(l.search, k == "N")
	case "esc":
		if l.looking == nil {
			return false
		}
		l.looking.stop()
		l.looking = nil
	default:
		return false
	}
	return true
}

// find starts to look for a text in the rows after the cursor, or before it.
func (l *list) find(text string, back bool) {
	if l.search = text; text == "" || l.count() == 0 {
		return
	}
	l.looking.stop()
	records, at := l.shown(), l.cursor
	positions := records.count()
	src, x := l.source, l.m.options.Index
	p := newPrinter(l.m, src, 0)
	l.looking = start(l.m, func(ctx context.Context, pass func(lookup)) lookup {
		found := lookup{at: -1}
		r := x.Reader()
		defer r.Close()
		for i := range min(positions, sampleRows) {
			if record, err := src.get(r, records.at(i)); err == nil && record != nil {
				p.learn(record)
			}
		}
		p.start()
		step := int64(1)
		if back {
			step = -1
		}
		for i := int64(1); i <= positions; i++ {
			if ctx.Err() != nil {
				return found
			}
			position := ((at+i*step)%positions + positions) % positions
			record, err := src.get(r, records.at(position))
			if err != nil {
				found.err = err
				return found
			}
			if record != nil && contains(strip(p.line(record)), text) {
				found.at = position
				return found
			}
			if found.seen++; found.seen%1024 == 0 {
				pass(found)
			}
		}
		return found
	})
}

// takeSearch moves the cursor to the match that was found.
func (l *list) takeSearch() {
	found, ended := l.looking.get()
	if !ended {
		return
	}
	l.looking = nil
	switch {
	case found.err != nil:
		l.m.fail(found.err)
	case found.at < 0:
		l.m.say(fmt.Sprintf("no row contains %s", clean(l.search)))
	default:
		if found.at == l.cursor {
			l.m.say("this is the only row that contains " + clean(l.search))
		}
		l.cursor = min(found.at, max(l.count()-1, 0))
		l.m.follow = false
	}
}

// contains reports whether a line contains a text. Small letters of the text also match capitals.
func contains(line, text string) bool {
	if text == strings.ToLower(text) {
		line = strings.ToLower(line)
	}
	return strings.Contains(line, text)
}

// lit returns a row in which the text of a search is underlined.
func (m inks) lit(line, text string) string {
	line0 := strip(line)
	if !m.colors || !contains(line0, text) {
		return line
	}
	searched := line0
	if text == strings.ToLower(text) {
		searched = strings.ToLower(line0)
	}
	var b strings.Builder
	for {
		i := strings.Index(searched, text)
		if i < 0 {
			b.WriteString(line0)
			return b.String()
		}
		b.WriteString(line0[:i] + bold + underline + line0[i:i+len(text)] + plain)
		line0, searched = line0[i+len(text):], searched[i+len(text):]
	}
}
