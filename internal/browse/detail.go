package browse

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/contrast"
	"github.com/rdmadump/rdmadump/internal/index"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// rowWithID returns a visitor of rows that sets n to the number of the row with this transaction number.
func rowWithID(id int64, n *int64) func(int64, *index.Row) bool {
	return func(i int64, r *index.Row) bool {
		if r.ID == id {
			*n = i
		}
		return *n < 0
	}
}

// ladder shows the ladder diagram of an RPC.
type ladder struct {
	pane
	n       int64 // number in the list of RPCs
	rpc     *record.Transaction
	lines   []render.LadderLine
	closer  *job[closer]
	packets []*record.Packet // nil until they are read
	decoded map[int][]render.LadderLine
	err     error
	opener  *opener
	placed  bool // the cursor is where it starts
	opening bool // the packets are shown as soon as they are read
}

// closer is the result of a second pass: drawings with decoded arguments, by width, and packets.
type closer struct {
	decoded map[int][]render.LadderLine
	packets []*record.Packet
	err     error
}

// opener is the record of a list whose screen is shown. With n and N, the next record of the list and the one before are.
type opener struct {
	list    *list
	n       int64 // number of the record
	explain bool  // the rules of findings are shown, not their RPCs
}

// part says which record of its list this is.
func (o *opener) part() part {
	return part{text: fmt.Sprintf("%s %d of %d", o.list.one, o.list.cursor+1, o.list.count())}
}

// next moves the cursor of the list to the next record, or to the one before, and returns that. It returns nil and says why
// if there is none.
func (o *opener) next(m *Model, back bool) any {
	if !o.list.place(o.n) {
		m.say("the list does not show this " + o.list.one)
		return nil
	}
	before := o.list.cursor
	if o.list.move(map[bool]int64{true: -1, false: 1}[back], o.list.count()); o.list.cursor == before {
		m.say(fmt.Sprintf("there are no more %s in the list", o.list.name))
		return nil
	}
	_, r := o.list.current()
	return r
}

// mostPackets is the number of packets of an RPC that are kept to be shown.
const mostPackets = 2000

// newLadder returns the screen of an RPC.
func newLadder(m *Model, n int64) *ladder {
	l := &ladder{n: n, opener: &opener{list: m.list, n: n}}
	l.rpc, l.err = m.reader.Transaction(n)
	l.keys = []string{"Enter packets", "n N next, previous RPC", "Space mark", "s save"}
	l.tick = l.take
	l.on = l.act
	l.drawn = func(width int) []string { return l.drawLines(m, width) }
	l.copies = func() string { return strip(strings.Join(l.text, "\n")) + "\n" }
	if l.rpc == nil {
		l.name = "this RPC is not kept any more"
		if l.err != nil {
			l.name = clean(l.err.Error())
		}
		return l
	}
	l.name = fmt.Sprintf("RPC %d of %d", l.rpc.ID, m.state.To)
	l.read(m)
	return l
}

// drawLines draws the ladder for a width.
func (l *ladder) drawLines(m *Model, width int) (text []string) {
	if l.rpc == nil {
		return []string{l.name}
	}
	if l.lines = l.decoded[min(width, widestLadder)]; l.lines == nil {
		l.lines = render.LadderLines(m.theme, width, l.rpc)
	}
	for i := range l.lines {
		text = append(text, l.lines[i].Text)
		if !l.placed && l.lines[i].Event { // The cursor starts at the first packet.
			l.placed, l.cursor = true, int64(i)
		}
	}
	l.pinned = max(slices.IndexFunc(l.lines, func(x render.LadderLine) bool { return x.Event })-1, 0) // the heading of the packets
	return text
}

// widestLadder is the width beyond which ladders do not become wider.
const widestLadder = 132

// read starts a second pass that reads the decoded arguments and results, and the packets.
func (l *ladder) read(m *Model) {
	if m.options.Open == nil {
		return
	}
	rpc, options, open, look := l.rpc, m.options.Dissect, m.options.Open, m.theme
	first, last := packetsOf(rpc)
	width := max(m.width-gutter, 20)
	l.closer = start(m, func(ctx context.Context, _ func(closer)) (c closer) {
		source, err := open(ctx)
		if err != nil {
			c.err = err
			return c
		}
		defer source.Close()
		wanted, until := map[record.PacketRef]bool{}, record.Time(0)
		for i := range rpc.Timeline {
			e := &rpc.Timeline[i]
			until, wanted[e.First()] = max(until, e.Time), true
		}
		look := index.Closer{
			ID: rpc.ID, XIDs: []record.Hex32{rpc.XID}, First: first, Last: last, Until: until,
			Transaction: func(r *record.Transaction) {
				width = min(width, widestLadder)
				c.decoded = map[int][]render.LadderLine{width: render.LadderLines(look, width, r)}
			},
			Packet: func(p *record.Packet) {
				id, known := p.Transaction.Get()
				if (known && id == rpc.ID || p.In(wanted)) && len(c.packets) < mostPackets {
					c.packets = append(c.packets, p.Clone())
				}
			},
		}
		options.Live = false
		c.err = look.Look(ctx, source, options)
		return c
	})
}

// packetsOf returns the first and the last packet of an RPC.
func packetsOf(r *record.Transaction) (first, last int64) {
	for i := range r.Timeline {
		e := &r.Timeline[i]
		if first == 0 || e.Packet < first {
			first = e.Packet
		}
		last = max(last, e.Packet, e.LastPacket.Or(0))
	}
	for _, message := range []*record.Message{r.Call, r.Reply} {
		if message != nil {
			first, last = min(first, message.Packet), max(last, message.LastPacket)
		}
	}
	return first, last
}

// take takes the result of the second pass.
func (l *ladder) take(m *Model) {
	if l.closer == nil {
		return
	}
	c, ended := l.closer.get()
	if !ended {
		return
	}
	l.closer = nil
	if c.err != nil && len(c.packets) == 0 {
		l.err = c.err
	}
	l.packets, l.decoded = c.packets, c.decoded
	l.redraw()
	if opening := l.opening; opening && m.top() == screen(l) {
		m.message = ""
		l.open(m)
	}
	l.opening = false
}

// restyle makes the ladder draw itself with another theme. Decoded arguments and results have to be read once more for that.
func (l *ladder) restyle(m *Model) {
	if l.redraw(); l.decoded != nil {
		l.decoded = nil
		l.read(m)
	}
}

func (l *ladder) busy() bool { return l.closer != nil }

// status says which RPC this is, and what is still being read.
func (l *ladder) status() []part {
	parts := []part{{text: l.name}}
	if l.opener.list.name == findings.name {
		parts = append(parts, l.opener.part())
	}
	if l.closer != nil {
		parts = append(parts, part{"reading its packets, and decoded arguments and results", withoutEnd})
	}
	return parts
}

// act takes the keys of the ladder.
func (l *ladder) act(m *Model, k string) bool {
	switch k {
	case "n", "N", "]", "[":
		l.opener.neighbour(m, k == "N" || k == "[")
	case "enter", "l", "right":
		l.open(m)
	case "space":
		if m.list.marked[l.n] {
			delete(m.list.marked, l.n)
			m.say("not marked any more")
		} else {
			m.list.marked[l.n] = true
			m.say("marked")
		}
	case "U":
		clear(m.list.marked)
		m.say("no RPC is marked any more")
	default:
		return false
	}
	return true
}

// neighbour shows the next record of the list from which the screen was opened, or the one before.
func (o *opener) neighbour(m *Model, back bool) {
	r := o.next(m, back)
	replace := func(s screen) {
		if l, is := m.top().(*ladder); is {
			l.closer.stop()
		}
		m.pop()
		m.push(s)
	}
	switch r := r.(type) {
	case *record.Transaction:
		replace(newLadder(m, o.list.at(o.list.cursor)))
	case *record.Finding:
		following := &opener{o.list, o.list.at(o.list.cursor), o.explain}
		if o.explain {
			replace(newFinding(m, r, following))
		} else {
			m.openFinding(following, r, replace)
		}
	}
}

// open shows the packets of the line with the cursor.
func (l *ladder) open(m *Model) {
	switch {
	case l.rpc == nil:
	case m.options.Open == nil:
		m.say(m.options.Closed)
	case l.closer != nil:
		l.opening = true
		m.say("the packets are still being read, and are shown then")
	case len(l.packets) == 0 && l.err != nil:
		m.fail(l.err)
	case len(l.packets) == 0:
		m.say("the packets of this RPC were not found")
	default:
		line := render.LadderLine{}
		if l.cursor < int64(len(l.lines)) {
			line = l.lines[l.cursor]
		}
		at := slices.IndexFunc(l.packets, func(p *record.Packet) bool { return p.Is(line.First) })
		if at < 0 && line.Event {
			m.say(fmt.Sprintf("packet %s is not among the packets of this RPC that were read (%d)", ofPoint(line.First), len(l.packets)))
			return
		}
		m.push(newPacket(m, l.packets, max(at, 0)))
	}
}

// ofPoint returns a packet number, with its capture point if there are several.
func ofPoint(p record.PacketRef) string {
	text := fmt.Sprint(p.Packet)
	if p.Point != "" {
		text += " of " + clean(p.Point)
	}
	return text
}

// newConnection returns the screen of a connection: its parameters, and its credits and handles over
// time.
func newConnection(m *Model, r any) *pane {
	c := r.(*record.Connection)
	p := &pane{name: fmt.Sprintf("connection %d", c.ID), connection: record.Some(c.ID), keys: []string{"Enter its RPCs"}}
	var charts *timelines
	reading := timelinesOf(m, c)
	p.tick = func(*Model) {
		if reading != nil {
			if t, ended := reading.get(); ended {
				charts, reading = t, nil
				p.redraw()
			}
		}
	}
	p.waits = func() bool { return reading != nil }
	p.drawn = func(width int) []string {
		var b bytes.Buffer
		start := m.state.Start.Or(c.First)
		if err := render.ConnectionDetail(render.Screen{Out: &b, Theme: m.theme, Width: width}, c, start); err != nil {
			return []string{err.Error()}
		}
		if why := render.NoTimeline(c); why != "" {
			return append(append(split(b.String()), ""), render.Wrap(why, width)...)
		}
		if charts == nil {
			return append(split(b.String()), "", "reading its RPCs, to draw credits and handles")
		}
		height := max(m.height/3, 4)
		axis := render.Axis{Start: start, From: c.First, To: c.Last}
		for _, credits := range []*analyze.Credits{charts.forward, charts.backward} {
			if len(credits.Points) > 0 || credits == charts.forward {
				render.CreditChart(render.Screen{Out: &b, Theme: m.theme, Width: width, Height: height}, credits, axis)
			}
		}
		render.HandleChart(render.Screen{Out: &b, Theme: m.theme, Width: width, Height: height * 2}, charts.handles, axis)
		return split(b.String())
	}
	p.on = func(m *Model, k string) bool {
		if k != "enter" && k != "l" && k != "right" {
			return false
		}
		m.showRPCs(fmt.Sprintf("connection == %d", c.ID), fmt.Sprintf("connection %d", c.ID))
		return true
	}
	return p
}

// origin is the screen from which a list was opened, and what goBack restores of it.
type origin struct {
	name   string
	tab    int
	stack  []screen
	filter string
	rpc    int64  // number of the RPC with the cursor
	scroll scroll // of the tab
	axis   axis   // of the sums by time
	outer  []axis
	other  *list  // the list that was opened, if it has no RPCs; nil for others
	before string // filter of other
}

// leave remembers the screen that is shown now: q, h and Esc then go back to it. name is what the key line calls it.
func (m *Model) leave(name string) {
	from := origin{name: name, tab: m.tab, stack: m.stack, filter: m.list.filter, rpc: -1, axis: m.rates.axis, outer: m.rates.outer}
	if n, r := m.list.current(); r != nil {
		from.rpc = n
	}
	if s, is := m.tabs[m.tab].(*sums); is {
		from.scroll = s.scroll
	}
	m.origin = append(m.origin, from)
}

// showRPCs lists the RPCs that a filter selects, until goBack returns to the screen that is shown now and to its filter.
func (m *Model) showRPCs(filter, name string) {
	m.leave(name)
	if err := m.list.setFilter(filter); err != nil {
		m.origin = m.origin[:len(m.origin)-1]
		m.fail(err)
		return
	}
	m.restartSums()
	m.tab, m.stack = tabRPCs, nil
}

// showTab shows a tab, with a filter if it is a list, until goBack returns to the screen that is shown now.
func (m *Model) showTab(tab int, filter, name string) {
	m.leave(name)
	if l, is := m.tabs[tab].(*list); is {
		from := &m.origin[len(m.origin)-1]
		if from.other, from.before = l, l.filter; l.filter != filter {
			if err := l.setFilter(filter); err != nil {
				m.origin = m.origin[:len(m.origin)-1]
				m.fail(err)
				return
			}
		}
	}
	m.tab, m.stack = tab, nil
}

// goBack returns to the screen from which the list was opened.
func (m *Model) goBack() {
	from := m.origin[len(m.origin)-1]
	m.origin = m.origin[:len(m.origin)-1]
	if l := from.other; l != nil && l.filter != from.before {
		l.setFilter(from.before) // It was right before.
	}
	if m.list.filter != from.filter {
		if err := m.list.setFilter(from.filter); err != nil {
			m.fail(err)
			return
		}
		m.restartSums()
	}
	m.list.wanted, m.rates.axis, m.rates.outer = from.rpc, from.axis, from.outer
	m.tab, m.stack = from.tab, from.stack
	if s, is := m.tabs[m.tab].(*sums); is {
		s.wanted = &from.scroll
	}
}

// timelines are the credits and handles of a connection over time.
type timelines struct {
	forward, backward *analyze.Credits
	handles           *analyze.Handles
}

// timelinesOf returns a job that sums up the RPCs of a connection.
func timelinesOf(m *Model, c *record.Connection) *job[*timelines] {
	x := m.options.Index
	return start(m, func(ctx context.Context, _ func(*timelines)) *timelines {
		var forward, backward analyze.CreditTimeline
		var handles analyze.HandleTimeline
		r := x.Reader()
		defer r.Close()
		from, to := x.Bounds()
		r.Rows(ctx, from, to, func(n int64, row *index.Row) bool {
			if row.Connection != uint32(c.ID) {
				return true
			}
			t, err := r.Transaction(n)
			if err != nil || t == nil {
				return err == nil
			}
			if t.Direction == record.Backward {
				backward.Add(t)
			} else {
				forward.Add(t)
			}
			handles.Add(t)
			return true
		})
		end := c.EndOfCalls()
		return &timelines{forward.Finish(c, record.Forward), backward.Finish(c, record.Backward), handles.Finish(c.ID, end)}
	})
}

// openFinding shows the RPC of a finding and, if it has none, the finding and its rule. Show puts the screen in its place.
func (m *Model) openFinding(o *opener, f *record.Finding, show func(screen)) {
	id, known := f.Transaction.Get()
	if !known {
		show(newFinding(m, f, o))
		return
	}
	from, to := m.state.From, m.state.To
	m.later("looking for its RPC", func(ctx context.Context, r *index.Reader) func() {
		n := int64(-1)
		r.Rows(ctx, from, to, rowWithID(id, &n))
		return func() {
			if n < 0 {
				show(newFinding(m, f, o))
				return
			}
			l := newLadder(m, n)
			l.opener, l.keys[1] = o, "n N next, previous finding"
			show(l)
		}
	})
}

// newFinding returns the screen of a finding: its message, and the explanation of its rule.
func newFinding(m *Model, f *record.Finding, o *opener) *pane {
	p := &pane{name: "finding " + f.Rule, keys: []string{"n N next, previous finding"}}
	p.on = func(m *Model, k string) bool {
		forth, back := k == "n" || k == "]", k == "N" || k == "["
		if p.search != "" || !forth && !back {
			return false
		}
		o.neighbour(m, back)
		return true
	}
	p.drawn = func(width int) []string {
		var b bytes.Buffer
		t := render.NewText(&b, m.theme, width)
		t.Start(m.state.Start.Or(f.Time.Or(0)))
		if err := t.Finding(&render.FindingGroup{First: *f, Count: 1}); err != nil {
			return []string{err.Error()}
		}
		lines := split(b.String())
		if r := rule.Find(f.Rule); r != nil {
			page := r.Page()
			lines = append(lines, "")
			for _, line := range render.Wrap(page.Title, width) {
				lines = append(lines, m.styled(bold, line))
			}
			for _, text := range strings.Split(page.Text, "\n\n") {
				lines = append(append(lines, ""), render.Wrap(strings.ReplaceAll(text, "`", ""), width)...)
			}
			if len(page.Causes) > 0 {
				lines = append(lines, "", "Usual causes:")
			}
			for _, cause := range page.Causes {
				for i, line := range render.Wrap(strings.ReplaceAll(cause, "`", ""), width-2) {
					lines = append(lines, map[bool]string{true: "- ", false: "  "}[i == 0]+line)
				}
			}
			if page.Quote != "" {
				lines = append(append(lines, "", page.From+":"), render.Wrap(page.Quote, width)...)
			}
		}
		return lines
	}
	return p
}

// nextProblem moves to the next RPC, or the previous one, that failed or has findings.
func (m *Model) nextProblem(back bool) {
	l := m.list
	if len(m.stack) > 0 || m.tab != tabRPCs {
		m.say("e works in the list of RPCs")
		return
	}
	step := int64(1)
	if back {
		step = -1
	}
	shown, cursor := l.shown(), l.cursor
	m.later("looking for a problem", func(ctx context.Context, r *index.Reader) func() {
		found := int64(-1)
		for i := cursor + step; i >= 0 && i < shown.count(); i += step {
			if i%4096 == 0 && ctx.Err() != nil {
				break
			}
			if row, known := r.Row(shown.at(i)); known && row.Marks&(index.Failed|index.HasFindings) != 0 {
				found = shown.at(i)
				break
			}
		}
		return func() {
			if found < 0 || !l.place(found) {
				m.say(map[bool]string{false: "no later RPC failed or has findings", true: "no earlier RPC failed or has findings"}[back])
			} else {
				m.follow = false
			}
		}
	})
}

// compare shows the ladders of the two marked RPCs side by side.
func (m *Model) compare() {
	var numbers []int64
	for n := range m.list.marked {
		numbers = append(numbers, n)
	}
	if slices.Sort(numbers); len(numbers) != 2 {
		m.say(fmt.Sprintf("d compares two RPCs; %d are marked: Space marks, U unmarks all", len(numbers)))
		return
	}
	var both [2]*record.Transaction
	for i, n := range numbers {
		r, err := m.reader.Transaction(n)
		if r == nil {
			m.say("a marked RPC is not kept any more")
			if err != nil {
				m.fail(err)
			}
			return
		}
		both[i] = r
	}
	m.push(&pane{name: fmt.Sprintf("RPC %d and RPC %d", both[0].ID, both[1].ID), drawn: func(width int) []string {
		return append(append(render.Wrap(render.Difference(both[0], both[1]), width), ""), sideBySide(m.theme, both, width)...)
	}})
}

// contrast shows what the RPCs that the filter selects have in common that the others do not have. Without a filter, it compares
// the RPCs without a Reply, with an error status, slow ones, and those with findings.
func (m *Model) contrast() {
	o := contrast.Options{
		Kinds: []contrast.Kind{contrast.NoReply, contrast.Status, contrast.Slow, contrast.ByRule}, Slow: contrast.Slowness{Times: contrast.UsualSlow}, Rows: maxCompared,
	}
	if filter := m.list.filter; filter != "" {
		f, err := query.Compile(filter, query.Transactions)
		if err != nil {
			m.fail(err)
			return
		}
		o.Kinds, o.Set = []contrast.Kind{contrast.ByFilter}, contrast.Expression{Filter: f, Text: filter}
	}
	from, to, begin := m.state.From, m.state.To, m.state.Start
	m.later("comparing the RPCs with the others", func(ctx context.Context, r *index.Reader) func() {
		c := contrast.NewCollector(o)
		if at, known := begin.Get(); known {
			c.Begin(at)
		}
		var failed error
		err := r.Each(ctx, from, to, func(_ int64, t *record.Transaction) bool {
			failed = c.Add(t)
			return failed == nil
		})
		if err = cmp.Or(failed, err); err != nil {
			return func() { m.fail(err) }
		}
		sets := c.Sets()
		return func() {
			m.push(&pane{name: "what the RPCs have in common", drawn: func(width int) []string {
				var b strings.Builder
				render.Common(render.Screen{Out: &b, Theme: m.theme, Width: width}, sets, m.options.Typed)
				if len(sets) == 0 {
					return []string{"no RPC is without a Reply, failed or slow, and none has a finding"}
				}
				return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
			}})
		}
	})
}

// maxCompared is the number of RPCs that are compared with each other; of more, a sample.
const maxCompared = 4096

// sideBySide draws two ladders, one below the other if they do not fit.
func sideBySide(theme *render.Theme, both [2]*record.Transaction, width int) (text []string) {
	draw := func(r *record.Transaction, width int) (lines []string, widest int) {
		drawn := render.LadderLines(theme, width, r)
		legend := len(drawn)
		for legend > 0 && !drawn[legend-1].Event {
			legend--
		}
		for i, line := range drawn {
			if line.Event {
				widest = max(widest, wide(line.Text))
			}
			if i >= legend && wide(line.Text) > width {
				lines = append(lines, render.Wrap(strip(line.Text), width)...)
			} else {
				lines = append(lines, line.Text)
			}
		}
		return lines, widest
	}
	half := (width - 3) / 2
	left, widest := draw(both[0], half)
	right, other := draw(both[1], half)
	if half < leastLadder || max(widest, other) > half {
		upper, _ := draw(both[0], width)
		lower, _ := draw(both[1], width)
		return append(append(upper, ""), lower...)
	}
	for i := range max(len(left), len(right)) {
		a, b := "", ""
		if i < len(left) {
			a = left[i]
		}
		if i < len(right) {
			b = right[i]
		}
		text = append(text, pad(a, half)+" | "+clip(b, half))
	}
	return text
}

// leastLadder is the width below which two ladders are not drawn side by side.
const leastLadder = 57
