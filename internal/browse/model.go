// Package browse shows the records of a capture in a terminal: lists that can be searched, filtered
// and sorted, the ladder diagram of an RPC, and its packets. It draws with package render, so that
// everything looks as on the command line.
//
// A [Model] holds the state of the screen and knows nothing about terminals: it takes keys by their
// names and returns lines. [Run] connects it with a terminal.
package browse

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/index"
	"github.com/rdmadump/rdmadump/render"
)

// Options describe what a Model shows.
type Options struct {
	Index *index.Index
	Name  string      // of the capture, for the first line
	Typed string      // names of the captures, quoted for a shell, for command lines that show the same
	Look  render.Look // of the drawings
	// Open opens the capture once more, to show packets, decoded arguments and results, and to save
	// packets. It is nil if the capture cannot be opened again; Closed then says why.
	Open   func(ctx context.Context) (Source, error)
	Closed string
	// Dissect are the options of the first pass.
	Dissect dissect.Options
	// SavePackets writes the packets of RPCs, by their transaction numbers, to a pcapng file. It is nil
	// if the capture cannot be opened again.
	SavePackets func(ctx context.Context, path string, ids map[int64]bool) (string, error)
	// Create creates a file for Save.
	Create func(path string) (io.WriteCloser, error)
	Live   bool // packets are still being captured
	// Overview sums up the records of the index. It is nil for none.
	Overview *Overview
	// Group returns an empty table that groups RPCs by fields, with commas between them, as --by of stats does. It is nil if
	// RPCs can only be grouped by operation.
	Group func(by string) (*analyze.Table, error)
	// Time returns the time that a user typed, of a capture that begins and ends at these times and whose times are shown in a form.
	// It is nil if times cannot be typed.
	Time func(typed string, first, last record.Time, shown render.Times) (record.Time, error)
	// Window returns the first and the last time of the RPCs that are listed at first. It is nil for all RPCs.
	Window func(start record.Time) (from, to record.Time)
	// Network returns what happened to the packets between the capture points. It is nil if there is only one.
	Network func() ([]*record.Point, []*record.Network)
}

// Source is a capture that is read once more.
type Source interface {
	capture.Source
	Close() error
}

// screen is what the Model shows below its first lines.
type screen interface {
	title() string
	footer() []string // names the keys that work here, the most important first
	update(m *Model)
	draw(m *Model, width, height int) []string
	key(m *Model, k string) bool
}

// Model is the state of the screen. It is for one goroutine.
type Model struct {
	options Options
	theme   *render.Theme
	tables  *render.Theme // of tables
	wide    bool          // tables show the columns for special questions, too
	inks
	width, height int
	ctx           context.Context
	cancel        context.CancelFunc
	jobs          sync.WaitGroup
	reader        *index.Reader
	state         index.State

	tabs   []screen
	tab    int
	stack  []screen // screens above the tab
	origin []origin // where the lists of RPCs were opened from, the latest last
	list   *list    // of RPCs
	rates  *rates
	prompt *prompt
	before string          // first key of two, such as y
	follow bool            // the cursor stays on the last record
	folds  map[string]bool // whether the user folded a header of packets, by the names of the header and of those that contain it
	hidden bool            // lists have no preview of the record with the cursor

	message string // in the last line, until the next key
	bad     bool
	quit    bool
	saving  *job[string]
	looking *job[func()] // what a key has started and the next key ends

	// Clipboard is what the user copied and the caller has to pass to the terminal.
	Clipboard string
	copied    []string

	mu     sync.Mutex
	failed *capture.Panic // of a job
	past   map[string][]string
}

// The smallest screen.
const (
	leastWidth  = 40
	leastHeight = 8
)

// The lists, by their keys.
const (
	tabOverview = iota
	tabRPCs
	tabConnections
	tabFindings
	tabStats
	tabFiles
	tabRates
	tabPackets
)

// New returns a Model for a screen of 80 columns and 24 lines.
func New(o Options) *Model {
	m := &Model{options: o, theme: theme(o.Look), tables: theme(o.Look), inks: inks{o.Look.Colour != render.NoColour}, width: 80, height: 24, reader: o.Index.Reader(), past: map[string][]string{}, folds: map[string]bool{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.list = newList(m, rpcs)
	m.list.enter = func(n int64, _ any) { m.push(newLadder(m, n)) }
	m.list.preview = m.previewRPC
	conns := newList(m, connections)
	conns.enter = func(_ int64, r any) { m.push(newConnection(m, r)) }
	found := newList(m, findings)
	found.enter = func(n int64, r any) { m.openFinding(&opener{list: found, n: n}, r.(*record.Finding), m.push) }
	found.preview = m.previewFinding
	m.tabs = []screen{newOverview(m), m.list, conns, found, newStats(m), newFiles(m), newRates(m), newPackets(m)}
	m.tab = tabRPCs
	m.Tick()
	return m
}

// Close ends all background work.
func (m *Model) Close() {
	m.cancel()
	m.jobs.Wait()
	m.reader.Close()
}

// recovered keeps the panic of a job for the goroutine that owns the Model.
func (m *Model) recovered() {
	if v := recover(); v != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.failed == nil {
			m.failed = &capture.Panic{Value: v, Stack: debug.Stack()}
		}
	}
}

// Filter selects RPCs by an expression in the language of -Y.
func (m *Model) Filter(expression string) {
	if err := m.list.setFilter(expression); err != nil {
		m.fail(err)
	}
}

// resize sets the size of the screen.
func (m *Model) resize(width, height int) { m.width, m.height = width, height }

// top returns the screen that is shown.
func (m *Model) top() screen {
	if n := len(m.stack); n > 0 {
		return m.stack[n-1]
	}
	return m.tabs[m.tab]
}

func (m *Model) push(s screen) {
	m.stack = append(m.stack, s)
	s.update(m)
}

// pop returns to the screen below.
func (m *Model) pop() {
	m.stack = m.stack[:len(m.stack)-1]
	m.top().update(m)
}

// say shows a message until the next key.
func (m *Model) say(text string) { m.message, m.bad = text, false }

// fail shows an error until the next key.
func (m *Model) fail(err error) {
	first, _, _ := strings.Cut(err.Error(), "\n")
	m.message, m.bad = clean(first), true
}

// Tick takes what happened since the last call: more records, and results of background work. It
// panics with the panic of a job, as a *capture.Panic.
func (m *Model) Tick() {
	m.mu.Lock()
	failed := m.failed
	m.mu.Unlock()
	if failed != nil {
		panic(failed)
	}
	m.state = m.options.Index.State()
	m.openWindow()
	for _, s := range m.tabs {
		if l, is := s.(*list); is {
			l.update(m)
		}
	}
	for _, s := range m.stack {
		s.update(m)
	}
	if len(m.stack) == 0 {
		m.top().update(m)
	}
	m.takeLooking()
	if m.saving != nil {
		if text, ended := m.saving.get(); ended {
			m.saving = nil
			m.say(text)
		}
	}
}

// Busy reports whether the screen may change without a key, so that Tick has to be called now and
// then.
func (m *Model) Busy() bool {
	if !m.state.Done || m.saving != nil || m.looking != nil {
		return true
	}
	for _, s := range m.tabs {
		if l, is := s.(*list); is && l.busy() {
			return true
		}
	}
	for _, s := range append([]screen{m.top()}, m.stack...) {
		if b, is := s.(interface{ busy() bool }); is && b.busy() {
			return true
		}
	}
	return false
}

// Quit reports whether the user has quit.
func (m *Model) Quit() bool { return m.quit }

// Printed returns what the user asked to be printed after the end.
func (m *Model) Printed() string { return strings.Join(m.copied, "") }

// Key takes a key by the name that package tea gives it, such as "j", "enter" or "ctrl+d".
func (m *Model) Key(k string) {
	m.message, m.bad = "", false
	if k == "ctrl+c" {
		m.quit = true
		return
	}
	if m.looking != nil {
		m.looking.stop()
		if m.looking = nil; k == "esc" {
			return
		}
	}
	if m.prompt != nil {
		m.prompt.key(m, k)
		return
	}
	if before := m.before; before != "" {
		if m.before = ""; k != "esc" {
			m.second(before, k)
		}
		return
	}
	if m.top().key(m, k) {
		m.top().update(m)
		return
	}
	m.common(k)
	m.top().update(m)
}

// Text takes text that was pasted.
func (m *Model) Text(s string) {
	if m.prompt != nil {
		m.prompt.insert(s)
	}
}

// common takes the keys that mean the same on every screen.
func (m *Model) common(k string) {
	switch k {
	case "0", "1", "2", "3", "4", "5", "6", "7":
		m.tab, m.stack = int(k[0]-'0'), nil
		if l := m.searched(); l != nil && l.pass != nil {
			l.pass.again(l)
		}
	case "tab":
		m.tab, m.stack = (m.tab+1)%len(m.tabs), nil
	case "q", "h", "left":
		switch {
		case len(m.stack) > 0:
			m.pop()
		case len(m.origin) > 0:
			m.goBack()
		case k == "q":
			m.quit = true
		}
	case "esc":
		switch {
		case len(m.stack) > 0:
			m.pop()
		case len(m.origin) > 0:
			m.goBack()
		default:
			m.say("q quits")
		}
	case "Q":
		m.quit = true
	case "Z", "y":
		m.before = k
	case "Y":
		if len(m.copied) == 0 {
			m.say("y copies first; Y then prints the copied text when browse ends")
		} else {
			m.quit = true
		}
	case "?", "f1":
		m.push(newHelp())
	case "/":
		if l := m.searched(); l != nil {
			m.prompt = newPrompt("search", "/", "", func(text string) error { l.find(text, false); return nil })
		} else if s, is := m.top().(searchable); is {
			m.prompt = newPrompt("search", "/", "", func(text string) error { s.find(m, text, false); return nil })
		}
	case "&", "f", "f7":
		m.promptFilter()
	case "s", "f2":
		choice{m}.promptSave()
	case ":":
		m.prompt = newPrompt("command", ":", "", m.command)
	case "\\":
		m.hidden = !m.hidden
	case "t":
		m.nextTimes()
	case "w":
		m.wide = !m.wide
		m.restyle()
		m.say(map[bool]string{true: "all columns, as many as fit", false: "the usual columns"}[m.wide])
	case "F":
		m.follow = !m.follow
		m.say(map[bool]string{true: "the cursor stays on the newest record; F ends that", false: "the cursor stays on its record"}[m.follow])
	case "e", "E":
		m.nextProblem(k == "E")
	case "d":
		m.compare()
	case "c":
		m.contrast()
	case "n", "N":
		if s, is := m.top().(searchable); is {
			s.find(m, "", k == "N")
		}
	case "<", ">", "z":
		m.say("lists can be sorted, other screens cannot")
	default:
		if len(k) == 1 {
			m.say("? lists the keys")
		}
	}
}

// nextTimes shows all times in the next format: seconds since the start of the capture, UTC, or the time of this computer.
func (m *Model) nextTimes() {
	look := &m.options.Look
	switch look.Times {
	case render.UTC:
		look.Times = render.Local
		m.say("times of day in the zone of this computer, " + time.Unix(0, int64(m.state.Start.Or(0))).Format("MST"))
	case render.Local:
		look.Times = render.Relative
		m.say("seconds since the first packet")
	default:
		look.Times = render.UTC
		m.say("times of day, UTC")
	}
	m.restyle()
}

// restyle draws all screens anew after a change of the look.
func (m *Model) restyle() {
	look := m.options.Look
	m.theme = theme(look)
	look.Whole = m.wide
	m.tables = theme(look)
	all := append(slices.Clone(m.tabs), m.stack...)
	for _, from := range m.origin {
		all = append(all, from.stack...)
	}
	for _, s := range all {
		if s, is := s.(interface{ restyle(m *Model) }); is {
			s.restyle(m)
		}
	}
}

// searchable is a screen whose text / searches.
type searchable interface {
	find(m *Model, text string, back bool)
}

// searched returns the list that / searches; nil if there is none.
func (m *Model) searched() *list {
	l, _ := m.top().(*list)
	return l
}

// second takes the second of two keys.
func (m *Model) second(before, k string) {
	switch {
	case before == "Z" && k == "Z":
		m.quit = true
	case before == "y":
		choice{m}.copy(k)
	case before == "z":
		if p, is := m.top().(*packet); is {
			p.foldAll(k)
		}
	}
}

// Lines returns the screen, a string for each of its lines. No line is wider than the screen.
func (m *Model) Lines() (lines []string) {
	if m.width < leastWidth || m.height < leastHeight {
		for _, line := range render.Wrap(fmt.Sprintf("the terminal must have at least %d columns and %d lines", leastWidth, leastHeight), max(m.width, 1)) {
			lines = append(lines, clip(line, m.width))
		}
		return lines[:min(len(lines), max(m.height, 0))]
	}
	body := m.height - 3
	drawn := m.top().draw(m, m.width, body)
	heading, below := m.heading()
	lines = append(lines, heading, m.status(below))
	lines = append(lines, drawn[:min(len(drawn), body)]...)
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	last := m.lastLines()
	lines = append(lines[:m.height-len(last)], last...)
	for i := range lines {
		lines[i] = clip(lines[i], m.width)
	}
	return lines
}

// Screen returns Lines as one text.
func (m *Model) Screen() string { return strings.Join(m.Lines(), "\n") }

// heading returns the first line: the tabs, the name of the capture, and what is being read. The last belongs at the end of the second
// line if there is no space for it next to the names of the tabs.
func (m *Model) heading() (line, below string) {
	s := &m.state
	names := []string{
		"overview", fmt.Sprintf("%d RPCs", s.To-s.From), fmt.Sprintf("%d conns", s.Connections), fmt.Sprintf("%d findings", s.Findings), "stats", "files", "rates", "packets",
	}
	state := m.reading()
	if state != "" {
		state = " " + state
	}
	tabs, named := m.tabNames(names, m.width-len(state)-1)
	if !named && state != "" {
		if whole, fit := m.tabNames(names, m.width); fit {
			tabs, below, state = whole, m.styled(bold, state[1:]), ""
		}
	}
	left := m.width - wide(tabs) - len(state) - 1
	line = tabs
	if left >= 8 {
		line += " " + beginning(clean(m.options.Name), left)
	}
	return pad(line, m.width-len(state)) + m.styled(bold, state), below
}

// tabNames returns the names of the tabs. If they need more than width columns, there is less space between them; then the
// names of other tabs than the current one have no numbers of records, except that of findings; then these tabs are only keys, and
// named is false.
func (m *Model) tabNames(names []string, width int) (text string, named bool) {
	whole := func(name string) string { return ":" + name }
	for i, form := range []struct {
		other string // format of a tab that is not the current one
		short func(string) string
	}{
		{" %d%s ", whole},
		{"%d%s", whole},
		{"%d%s", func(name string) string {
			if strings.HasSuffix(name, " findings") {
				return ":" + name
			}
			return ":" + name[strings.LastIndexByte(name, ' ')+1:]
		}},
		{"%d%s", func(string) string { return "" }},
	} {
		named = i < 3
		var tabs []string
		for i, name := range names {
			if i == m.tab {
				tabs = append(tabs, m.styled(bold, fmt.Sprintf("[%d:%s]", i, name)))
			} else {
				tabs = append(tabs, fmt.Sprintf(form.other, i, form.short(name)))
			}
		}
		if text = strings.Join(tabs, " "); form.other[0] == ' ' {
			text = strings.Join(tabs, "")
		}
		if text = strings.TrimRight(text, " "); wide(text) <= width {
			break
		}
	}
	return text, named
}

// reading says how far the capture is read, and where its records are.
func (m *Model) reading() string {
	s := &m.state
	var parts []string
	switch {
	case s.SpillErr != nil:
		parts = append(parts, "records are missing")
	case s.Spilled > 0:
		parts = append(parts, render.Size(s.Spilled)+" in a temporary file")
	}
	switch {
	case s.Done && s.Err != nil:
		parts = append(parts, "damaged")
	case s.Done:
	case m.options.Live:
		parts = append(parts, "live")
	case s.Total > 0:
		parts = append(parts, fmt.Sprintf("reading %d%%", min(s.Read*100/s.Total, 99)))
	default:
		parts = append(parts, "reading")
	}
	return strings.Join(parts, ", ")
}

// status returns the second line. It ends with a text, or, if that is empty, with what of the screen's text is shown.
func (m *Model) status(right string) string {
	parts := []part{{text: m.top().title()}}
	if s, is := m.top().(interface{ status() []part }); is {
		parts = s.status()
	}
	if s, is := m.top().(interface{ extent() []string }); is && right == "" {
		right = m.styled(dim, shortest(parts, s.extent(), m.width))
	}
	width := m.width
	if right != "" {
		width -= wide(right) + len(between)
	}
	damaged := m.state.Done && m.state.Err != nil && len(m.stack) == 0
	if damaged { // Why is worth more than the columns that do not fit.
		parts = slices.DeleteFunc(parts, func(p part) bool { return p.way == withoutEndFirst })
	}
	text := fitting(parts, width)
	left := width - wide(text) - len(between)
	if text = m.styled(dim, text); damaged && left >= leastPart {
		first, _, _ := strings.Cut(m.state.Err.Error(), "\n")
		text += between + m.styled(red, ending(clean(strings.TrimPrefix(first, m.options.Name+": ")), left))
	}
	if right != "" {
		text = pad(text, m.width-wide(right)) + right
	}
	return text
}

// lastLines returns the last lines: what is being typed, a message, or the keys. Usually it is one line.
func (m *Model) lastLines() []string {
	switch {
	case m.prompt != nil:
		return m.prompt.lines(m)
	case m.before == "y":
		return m.wrapped("", "copy: r row  x XID  j JSON  l text of the ladder  f filter  c command line that shows it", m.width, m.height/3)
	case m.before == "z":
		return m.wrapped("", "fields: a fold or open  o open  c fold  R open all  M fold all", m.width, m.height/3)
	case m.bad:
		return m.wrapped(red, m.message, m.width, m.height/3)
	case m.message != "":
		return m.wrapped(yellow, m.message, m.width, m.height/3)
	case m.saving != nil:
		return []string{"saving"}
	}
	return []string{m.styled(dim, m.footer())}
}

// footer returns the keys that work here, as many as fit.
func (m *Model) footer() string {
	text := "? keys"
	keys := m.top().footer()
	switch n := len(m.origin); {
	case len(m.stack) > 0:
	case n > 0:
		keys = append(keys, "q back to "+m.origin[n-1].name)
	default:
		keys = append(keys, "q quit")
	}
	last := keys[len(keys)-1]
	text = last + "  " + text
	for i := len(keys) - 2; i >= 0; i-- {
		total := len(text)
		for _, k := range keys[:i+1] {
			total += len(k) + 2
		}
		if total <= m.width {
			return strings.Join(keys[:i+1], "  ") + "  " + text
		}
	}
	return text
}
