package browse

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/index"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// Overview sums up the records of a capture while they are read, for the list 0. The index must pass its records to Handler
// and, if packets are still being captured, call Tick.
type Overview struct {
	collector *analyze.Collector
	wanted    atomic.Bool // the overview so far is shown
	drawn     time.Time   // when it was made

	mu  sync.Mutex
	now *summary // so far; nil if it was not asked for
}

// summary is an overview, and the summary of the capture that it is drawn with.
type summary struct {
	*analyze.Overview
	of  *record.Summary
	err error
}

// NewOverview returns an Overview without records.
func NewOverview() *Overview { return &Overview{collector: analyze.NewCollector()} }

// Handler returns a handler that adds records. Its functions do not return errors.
func (o *Overview) Handler() dissect.Handler {
	return adding(o.collector, func(*record.Transaction) (bool, error) { return true, nil })
}

// adding returns a handler that adds records to a Collector, and of RPCs those that are selected.
func adding(c *analyze.Collector, selects func(*record.Transaction) (bool, error)) dissect.Handler {
	return dissect.Handler{
		Begin: c.Begin,
		Transaction: func(r *record.Transaction) error {
			hit, err := selects(r)
			if hit {
				c.Transaction(r)
			} else {
				c.UnselectedRPC(r)
			}
			return err
		},
		Connection: func(r *record.Connection) error { c.Connection(r); return nil },
		Operation:  func(r *record.RDMAOperation) error { c.Operation(r); return nil },
		Finding:    func(r *record.Finding) error { c.Finding(r); return nil },
	}
}

// Tick makes the overview so far, if it is shown. The goroutine that adds records calls it.
func (o *Overview) Tick(d *dissect.Dissector) {
	if !o.wanted.Load() || time.Since(o.drawn) < again {
		return
	}
	o.wanted.Store(false)
	of := d.Summary()
	now := &summary{Overview: o.collector.SoFar(of, d.Open), of: of}
	o.drawn = time.Now()
	o.mu.Lock()
	o.now = now
	o.mu.Unlock()
}

// soFar returns the overview so far, or nil if there is none.
func (o *Overview) soFar() *summary {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now
}

// overview is the screen with the overview of the capture, or of the RPCs that the filter of the list selects.
type overview struct {
	pane
	whole  *summary // of the whole capture; nil until all of it was read
	other  *summary // of the RPCs that filter selects; nil if it is not there yet
	filter string   // for which other is
	drawn  *summary
	lines  []render.OverviewLine

	making  *job[*summary]
	madeFor string // filter of making; empty for the whole capture
}

// newOverview returns the screen of the overview.
func newOverview(m *Model) *overview {
	o := &overview{}
	o.name = "overview"
	o.tick = o.take
	o.pane.drawn = func(width int) []string { return o.text(m, width) }
	o.on = func(m *Model, k string) bool {
		if k != "enter" && k != "l" && k != "right" {
			return false
		}
		if o.cursor < int64(len(o.lines)) {
			m.follows(o.lines[o.cursor].Command)
		}
		return true
	}
	return o
}

func (o *overview) footer() []string {
	return []string{"Enter shows what the line is about", "& filter", "/ search", "y copy"}
}

func (o *overview) busy() bool { return o.making != nil }

// take starts to make the overview, and takes it when it is there.
func (o *overview) take(m *Model) {
	made := m.options.Overview
	if made == nil {
		return
	}
	if made.wanted.Store(!m.state.Done && m.top() == screen(o)); !m.state.Done {
		if now := made.soFar(); now != o.drawn && now != nil {
			o.drawn = now
			o.redraw()
		}
		return
	}
	filter := m.list.filter
	if filter != o.filter {
		o.filter, o.other = filter, nil
		o.redraw()
	}
	if o.making != nil {
		result, ended := o.making.get()
		switch {
		case o.madeFor != "" && o.madeFor != filter:
			o.making.stop()
		case !ended:
			return
		case o.madeFor == "":
			o.whole = result
		default:
			o.other = result
		}
		o.making = nil
	}
	want := &o.whole
	if filter != "" {
		want = &o.other
	}
	if *want != o.drawn {
		o.drawn = *want
		o.redraw()
	}
	if *want == nil && m.top() == screen(o) {
		o.make(m)
	}
}

// make starts to make the overview. That of selected RPCs needs one more pass over the capture.
func (o *overview) make(m *Model) {
	made, of, options, filter := m.options.Overview, m.state.Summary, m.options, o.filter
	o.madeFor = filter
	switch {
	case of == nil:
	case filter == "":
		o.making = start(m, func(context.Context, func(*summary)) *summary {
			made.collector.Network(options.network())
			return &summary{Overview: made.collector.Finish(of), of: of}
		})
	case options.Open != nil:
		o.making = start(m, func(ctx context.Context, _ func(*summary)) *summary { return selectedOverview(ctx, options, filter) })
	}
}

// network returns what happened to the packets between the capture points.
func (o *Options) network() ([]*record.Point, []*record.Network) {
	if o.Network == nil {
		return nil, nil
	}
	return o.Network()
}

// selectedOverview reads the capture once more, and returns the overview of the RPCs that a filter selects.
func selectedOverview(ctx context.Context, o Options, filter string) *summary {
	f, err := query.Compile(filter, query.Transactions)
	if err != nil {
		return &summary{err: err}
	}
	source, err := o.Open(ctx)
	if err != nil {
		return &summary{err: err}
	}
	defer source.Close()
	c, options := analyze.NewCollector(), o.Dissect
	options.Live = false
	of, err := dissect.New(adding(c, func(r *record.Transaction) (bool, error) { return f.Match(r) }), options).Run(ctx, source)
	if of == nil {
		return &summary{err: err}
	}
	c.Network(o.network())
	s := &summary{Overview: c.Finish(of), of: of}
	s.Selected = "selected: RPCs by the filter. Verdict and health count the packets of whole connections. All other packets are those of the whole capture; credits, and the RPCs above, are those of whole connections."
	return s
}

// text draws the overview, or says why there is none.
func (o *overview) text(m *Model, width int) (text []string) {
	o.lines = nil
	s := o.drawn
	switch {
	case s != nil && s.err != nil:
		return []string{"", clean(s.err.Error())}
	case s != nil:
	case m.options.Overview == nil:
		return []string{"", "there is no overview of this input"}
	case !m.state.Done && m.options.Live:
		return []string{"", "the overview follows with the next packets"}
	case !m.state.Done:
		return []string{"", "the overview follows when the capture was read"}
	case m.state.Summary == nil:
		return []string{"", "these records have no summary of the capture; browse the capture to see its overview"}
	case o.filter != "" && m.options.Open == nil:
		return []string{"", "the overview of the RPCs that the filter selects needs the packets once more: " + m.options.Closed, "& and Enter remove the filter"}
	case o.filter != "":
		return []string{"", "reading the capture once more for the RPCs that the filter selects"}
	default:
		return []string{"", "summing up"}
	}
	o.lines = render.OverviewLines(m.theme, width, s.Overview, s.of, "FILE")
	for _, line := range o.lines {
		text = append(text, line.Text)
	}
	return text
}

// status says what is summed up.
func (o *overview) status() (parts []part) {
	if o.filter != "" {
		parts = append(parts, part{"& " + clean(o.filter), withoutEnd})
	}
	return append(parts, part{text: o.name})
}

// These are the forms of the arguments that an overview suggests.
var (
	filterArgument = regexp.MustCompile(` -Y '(.*?)'`)
	connArgument   = regexp.MustCompile(` --conn (\d+)`)
	xidArgument    = regexp.MustCompile(` --xid (0x[0-9a-f]+)`)
	oneRPC         = regexp.MustCompile(`^id == (\d+)$`)
)

// argument returns the value of an argument of a command, and nothing if it has none.
func argument(form *regexp.Regexp, command string) string {
	if found := form.FindStringSubmatch(command); found != nil {
		return found[1]
	}
	return ""
}

// follows shows what a command that the overview suggests shows.
func (m *Model) follows(command string) {
	word, _, _ := strings.Cut(command, " ")
	filter, conn, xid := argument(filterArgument, command), argument(connArgument, command), argument(xidArgument, command)
	switch word {
	case "":
		m.say("no list shows more about this line")
	case "FILE":
		if id, err := strconv.ParseInt(argument(oneRPC, filter), 10, 64); err == nil {
			m.openRPC(id)
			return
		}
		if xid != "" {
			filter = fmt.Sprintf("connection == %s and xid == %s", conn, xid)
		}
		m.showRPCs(both(m.list.filter, filter), "overview")
	case "connections":
		if conn != "" {
			filter = "id == " + conn
		}
		m.showTab(tabConnections, filter, "overview")
	case "check":
		m.showTab(tabFindings, filter, "overview")
	case "packets":
		m.showTab(tabPackets, filter, "overview")
	case "stats":
		tab := tabStats
		if strings.Contains(command, " --every ") {
			tab = tabRates
		}
		m.showTab(tab, "", "overview")
	case "common":
		m.contrast()
	case "network":
		switch {
		case strings.HasSuffix(command, " --lost"):
			m.showTab(tabPackets, lostOrDamaged, "overview")
		case m.options.Network == nil:
			m.sayCommand(command)
		default:
			m.push(newNetwork(m))
		}
	default:
		m.sayCommand(command)
	}
}

// lostOrDamaged is the filter for the packets that were lost or damaged between capture points.
const lostOrDamaged = "marks in {lost_on_path, damaged_on_path, changed_on_path}"

// newNetwork returns the screen with what happened to packets between the capture points, as the command network prints it.
func newNetwork(m *Model) *pane {
	points, list := m.options.network()
	p := &pane{name: "capture points", keys: []string{"Enter the packets that were lost or damaged"}}
	p.drawn = func(width int) []string {
		var b bytes.Buffer
		if err := render.Network(render.Screen{Out: &b, Theme: m.tables, Width: width}, m.state.Start.Or(0), points, list); err != nil {
			return []string{err.Error()}
		}
		return split(b.String())
	}
	p.on = func(m *Model, k string) bool {
		if k == "enter" || k == "l" || k == "right" {
			m.showTab(tabPackets, lostOrDamaged, p.name)
			return true
		}
		return false
	}
	return p
}

// sayCommand says which command shows what browse has no screen for.
func (m *Model) sayCommand(command string) {
	m.say("rdmadump " + strings.ReplaceAll(command, "FILE", m.options.Typed) + " shows this")
}

// openRPC shows the RPC with a transaction number.
func (m *Model) openRPC(id int64) {
	from, to := m.state.From, m.state.To
	m.later("looking for the RPC", func(ctx context.Context, r *index.Reader) func() {
		n := int64(-1)
		r.Rows(ctx, from, to, rowWithID(id, &n))
		return func() {
			if n >= 0 {
				m.push(newLadder(m, n))
			} else {
				m.say("this RPC is not kept any more")
			}
		}
	})
}
