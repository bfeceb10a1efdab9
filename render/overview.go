package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
)

// Screen is an output for drawings.
type Screen struct {
	Out   io.Writer
	Theme *Theme
	Width int // of the terminal, 0 if there is none

	Height int // of a chart, in lines; 0 for the default
}

// Story is what an overview draws.
type Story struct {
	*analyze.Overview
	Problems []*record.Problem // by rank
	Summary  *record.Summary   // of the whole capture
	Window   bool              // it is about a part of the capture's time
	Live     bool              // the capture goes on
}

// Overview draws the problems and the sums of a capture on one screen: at most [OverviewHeight] lines.
func Overview(to Screen, s Story, files Captures) error {
	var b strings.Builder
	v := newOverview(to.Theme, to.Width, s, files)
	for i := range v.lines {
		v.lines[i].write(&b, to.Theme, v.width, files)
	}
	_, err := io.WriteString(to.Out, b.String())
	return err
}

// OverviewMarkdown writes the same for summaries of jobs, issues and other pages: how many problems there are of each severity, all of them whole,
// because pages are wider than terminals, and the sums in a part that opens.
func OverviewMarkdown(to io.Writer, s Story, files Captures) error {
	const whole = 1 << 10
	theme := NewTheme(false)
	v := newOverview(theme, wholeOverview, s, files)
	counts := map[record.Severity]int64{}
	for _, p := range append(v.problems, v.notes...) {
		counts[p.Severity]++
	}
	var head []string
	for _, severity := range record.Severities {
		if n := counts[severity]; n > 0 {
			head = append(head, record.Plural(n, string(severity)))
		}
	}
	if len(v.problems) == 0 {
		head = append([]string{"no problems"}, head...)
	}
	blocks, fence := [2]string{}, "```"
	for i, draw := range [...][]func(){{v.title, func() { v.row() }, v.trouble}, {v.operations, v.time, v.traffic, v.setup, v.timeline}} {
		v.lines, v.room = nil, room{operations: 6, brief: len(v.problems), whole: few, evidence: few, notes: len(v.notes), feet: 1}
		for _, draw := range draw {
			draw()
		}
		var b strings.Builder
		for l := range v.lines {
			v.lines[l].write(&b, theme, whole, files)
		}
		for blocks[i] = strings.TrimRight(b.String(), "\n"); strings.Contains(blocks[i], fence); {
			fence += "`"
		}
	}
	text := fmt.Sprintf("**%s**\n\n%[2]s text\n%[3]s\n%[2]s\n", strings.Join(head, ", "), fence, blocks[0])
	if blocks[1] != "" {
		text += fmt.Sprintf("\n<details><summary>Operations, time and traffic</summary>\n\n%[1]s text\n%[2]s\n%[1]s\n\n</details>\n", fence, blocks[1])
	}
	_, err := io.WriteString(to, text)
	return err
}

// OverviewHeight is the maximum number of lines of an overview.
const OverviewHeight = 24

// The widths from which an overview has more columns, and lines with two parts; below the first it has fewer.
const (
	wholeOverview = 100
	wideOverview  = 160
	overviewLabel = 10 // width of the labels on the left
)

// room says how much of the parts that may be shortened is drawn.
type room struct{ operations, brief, whole, evidence, notes, feet int }

// less takes from the part that a reader misses least, and returns false if nothing is left to take.
func (r *room) less() bool {
	for _, part := range []struct {
		n     *int
		least int
	}{{&r.operations, 2}, {&r.brief, 0}, {&r.evidence, 1}, {&r.feet, 0}, {&r.whole, 2}, {&r.notes, 0}, {&r.operations, 1}, {&r.whole, 1}} {
		if *part.n > part.least {
			*part.n--
			return true
		}
	}
	return false
}

// overview is the drawing in progress.
type overview struct {
	Story
	theme    *Theme
	width    int
	files    Captures
	room     room
	problems []*record.Problem // errors and warnings
	notes    []*record.Problem
	lines    []textLine
}

// newOverview draws an overview. If it does not fit, it has fewer operations, then less of the problems.
func newOverview(theme *Theme, width int, s Story, files Captures) *overview {
	if width <= 0 {
		width = wholeOverview
	}
	v := &overview{Story: s, theme: theme, width: width, files: files, room: room{operations: 6, brief: 3, whole: 3, evidence: 3, notes: 3, feet: 1}}
	for _, p := range s.Problems {
		switch {
		case !p.Shown(): // only with --explain
		case p.Severity == record.Note:
			v.notes = append(v.notes, p)
		default:
			v.problems = append(v.problems, p)
		}
	}
	for v.draw(); len(v.lines) > OverviewHeight && v.room.less(); v.draw() {
	}
	return v
}

// draw draws all sections.
func (v *overview) draw() {
	v.lines = nil
	v.title()
	v.row()
	v.trouble()
	v.row()
	v.operations()
	v.time()
	v.traffic()
	v.setup()
	v.timeline()
	for len(v.lines) > 0 && v.lines[len(v.lines)-1].parts == nil {
		v.lines = v.lines[:len(v.lines)-1]
	}
}

// row adds a line.
func (v *overview) row(parts ...part) { v.lines = append(v.lines, textLine{parts: parts}) }

// labeled adds a line with a label that shows what several words say, unless there are none. About are the arguments of the command that
// shows more.
func (v *overview) labeled(label string, words []string, about ...string) {
	if len(words) > 0 {
		v.lines = append(v.lines, textLine{about: about, parts: []part{{fmt.Sprintf("%-*s", overviewLabel, label), v.theme.key}, {strings.Join(words, ", "), ink{}}}})
	}
}

// about says how long the capture is, how many RPCs it has, and what carried them.
func (v *overview) about() string {
	words := []string{}
	if first, known := v.Summary.First.Get(); known {
		words = append(words, field.Brief(max(0, v.Summary.Last.Or(first).Sub(first))))
	}
	if v.RPCs.Requests > 0 {
		words = append(words, field.Count(v.RPCs.Requests)+" "+record.Noun(v.RPCs.Requests, "RPC")+inAttempts(v.RPCs.Requests, v.RPCs.Attempts))
	}
	if carried := v.protocols(); carried != "" {
		words = append(words, carried)
	}
	return strings.Join(words, ", ")
}

// Title returns the first line of an overview without the name of the capture: how long it is, how many RPCs it has, what carried them, and between whom.
func Title(s Story) string {
	v := newOverview(NewTheme(false), wholeOverview, s, Captures{})
	if ends := v.ends(); ends != "" {
		return clean(v.about() + ", " + ends)
	}
	return clean(v.about())
}

// title says what the capture is: file, duration, RPCs, protocols, client and server.
func (v *overview) title() {
	name, text, ends := v.files.Title+"  ", v.about(), v.ends()
	switch {
	case ends == "":
	case wide(name)+wide(text)+2+wide(ends) > v.width:
		v.row(part{name, v.theme.key}, part{text, ink{}})
		v.row(part{ends, ink{}})
		text = ""
	default:
		text += ", " + ends
	}
	if text != "" || ends == "" {
		v.row(part{name, v.theme.key}, part{text, ink{}})
	}
	if v.Selected != "" {
		v.row(part{v.Selected, v.theme.warn})
	}
}

// few is the number of names that a list on one line has.
const few = 3

// listed joins the first names of a list, and says how many more there are.
func listed(names []string) string {
	text := strings.Join(names[:min(len(names), few)], ", ")
	switch n := len(names); {
	case n > few:
		text += fmt.Sprintf(" and %d more", n-few)
	case n > 1:
		text = strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return text
}

// unique returns the different values that of has for the members of a list, those that come first in front.
func unique[T any](list []T, of func(*T) string) (values []string) {
	for i := range list {
		if value := of(&list[i]); value != "" && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	return values
}

// upperLayers are the names of upper layers for people.
var upperLayers = map[string]string{"rpcrdma": "RPC-over-RDMA", "rpc": "RPC", "nvme": "NVMe-oF", "iser": "iSER", "smbdirect": "SMB Direct", "ipoib": "IPoIB", "unknown": "unknown protocol"}

// upperLayer returns the name of an upper layer for people.
func upperLayer(name string) string {
	if known := upperLayers[name]; known != "" {
		return known
	}
	return name
}

// main returns the groups that the title is about: those with RPC-over-RDMA, or else with RPCs, or else all.
func (v *overview) main() []analyze.Group {
	for _, of := range []func(g analyze.Group) bool{
		func(g analyze.Group) bool { return g.Transactions > 0 && g.UpperLayer == "rpcrdma" },
		func(g analyze.Group) bool { return g.Transactions > 0 },
	} {
		if list := slices.DeleteFunc(slices.Clone(v.Groups), func(g analyze.Group) bool { return !of(g) }); len(list) > 0 {
			return list
		}
	}
	return v.Groups
}

// protocols returns the versions of NFS, or else what the connections carry, and over which transport.
func (v *overview) protocols() string {
	over := unique(v.main(), func(g *analyze.Group) string { return g.Transport })
	if len(over) == 0 {
		return ""
	}
	versions := unique(v.Mounted, func(m *analyze.Mounted) string { return m.NFSVersion })
	carried := "NFS " + listed(versions)
	if len(versions) == 0 {
		carried = listed(unique(v.main(), func(g *analyze.Group) string { return upperLayer(g.UpperLayer) }))
	}
	return carried + " over " + listed(over)
}

// ends returns the client and the server, or how many there are.
func (v *overview) ends() string {
	groups := v.main()
	clients := unique(groups, func(g *analyze.Group) string { return g.Client.Or("?") })
	servers := unique(groups, func(g *analyze.Group) string { return g.Server.Or("?") })
	one := func(list []string, noun string) string {
		if len(list) == 1 {
			return list[0]
		}
		return MorePairsThan(len(groups)) + record.Plural(int64(len(list)), noun)
	}
	if len(groups) == 0 {
		return ""
	}
	return one(clients, "client") + " > " + one(servers, "server")
}

// MorePairsThan returns a mark before a number that was counted in n pairs of hosts, if there may be more than an overview knows.
func MorePairsThan(n int) string {
	if n == analyze.MaxPairs {
		return ">= "
	}
	return ""
}

// trouble writes the problems, or that there are none, and notes.
func (v *overview) trouble() {
	ends := len(v.Points) > 1
	drawn := 0
	for i, p := range v.problems {
		to := headline
		switch {
		case i < min(v.room.whole, v.room.evidence):
			to = evidence
		case i < v.room.whole:
			to = effects
		case i >= v.room.whole+v.room.brief && i >= few:
			continue
		}
		drawn++
		v.lines = append(v.lines, v.theme.problem(p, to, ends, v.width >= wideOverview)...)
	}
	if more := len(v.problems) - drawn; more > 0 {
		v.lines = append(v.lines, textLine{about: []string{"problems"}, command: true, parts: []part{{fmt.Sprintf("%s+ %d more: ", indent, more), v.theme.dim}}})
	}
	if len(v.problems) == 0 {
		v.ok()
	}
	if v.empty() {
		return
	}
	for _, p := range v.notes[:min(len(v.notes), v.room.notes)] {
		v.lines = append(v.lines, v.theme.problem(p, headline, ends, false)...)
	}
}

// ok says that there is no problem, and of what.
func (v *overview) ok() {
	if v.empty() {
		v.row(part{"  no packet of a connection in this time", ink{}})
		if first, known := v.Summary.First.Get(); known {
			v.row(part{"  the capture is from " + when(first) + " to " + when(v.Summary.Last.Or(first)), ink{}})
		}
		return
	}
	text, is := Calm(v.theme, v.Story)
	word := "  "
	shade := v.theme.good
	switch {
	case v.Live:
		word, shade = "  so far ", v.theme.dim // what is wrong may not have ended yet
	case is:
		word = "  OK     "
	}
	v.row(part{word, shade}, part{text, ink{}})
}

// Calm returns what a capture without problems shows: how many RPCs, and how long they took. It is not OK if there is nothing that could
// have a problem.
func Calm(theme *Theme, s Story) (text string, ok bool) {
	switch n := s.RPCs.Requests; {
	case n > 0:
		text = field.Count(n) + " " + record.Noun(n, "RPC") + ", all answered"
		if s.RPCs.Unanswered > 0 {
			text = field.Count(n) + " " + record.Noun(n, "RPC") + ", " + field.Count(s.RPCs.Unanswered) + " without Reply"
		}
		all := analyze.Merge("", s.Operations)
		if all.Latency.Count() == 0 {
			return text, true
		}
		text += "; "
		if all.Latency.Count() >= leastP50 {
			text += "p50 " + theme.quantile(&all.Latency, all.Latency.P50) + ", "
		}
		slowest := slices.MaxFunc(s.Operations, func(a, b *analyze.Operation) int { return cmp.Compare(a.Latency.Max.Or(-1), b.Latency.Max.Or(-1)) })
		return text + "worst " + theme.quantile(&all.Latency, all.Latency.Max) + " (" + slowest.Name + ")", true
	case s.Connections > 0:
		return "no RPC; " + record.Plural(int64(s.Connections), "connection"), true
	}
	text = "no RPC and no connection"
	if list := analyze.Contents(s.Summary); list != "" {
		text += "; " + list
	}
	return text, false
}

// empty reports whether the time that the overview is about has nothing of any connection.
func (v *overview) empty() bool { return v.Window && v.Health.Packets == 0 && v.RPCs.Attempts == 0 }

// when returns a time of the capture, with two decimals.
func when(at record.Time) string {
	return time.Unix(0, int64(at)).UTC().Format("2006-01-02T15:04:05.00Z")
}

// The numbers of latencies from which a table has their percentiles.
const (
	leastP50 = 3
	leastP90 = 10
	leastP99 = 100
)

// atMost returns the mark before an upper bound.
func (t *Theme) atMost() string {
	if t.unicode {
		return "≤ "
	}
	return AtMost + " "
}

// quantile returns a quantile of latencies.
func (t *Theme) quantile(q *analyze.Quantiles, ns record.Opt[int64]) string {
	n, known := ns.Get()
	switch {
	case !known:
		return ""
	case q.AtMost(n):
		return t.atMost() + field.Brief(n)
	}
	return field.Brief(n)
}

// quantiles returns the median, the 90th and the 99th percentile of latencies, of which there must be enough, and the longest.
func (t *Theme) quantiles(q *analyze.Quantiles) (p50, p90, p99, worst cell) {
	from := func(least int, ns record.Opt[int64]) cell {
		if q.Count() < least {
			return cell{}
		}
		text := t.quantile(q, ns)
		if q.Estimated && !q.AtMost(ns.Or(0)) {
			text = "~" + text
		}
		return cell{text: text}
	}
	return from(leastP50, q.P50), from(leastP90, q.P90), from(leastP99, q.P99), cell{text: t.quantile(q, q.Max)}
}

// sum returns the sum of latencies, which is an upper bound if one of them is.
func (t *Theme) sum(q *analyze.Quantiles, ns int64) cell {
	c := t.time(ns)
	if q.UpperBounds > 0 {
		c.text = t.atMost() + c.text
	}
	return c
}

// none is what a table has for no bytes, no time and no share. What is not known, or has too few samples, is empty.
const none = "0"

// number returns a number, and briefly a number of bytes or a time in nanoseconds.
func (t *Theme) number(n int64) cell { return t.amount(n, whole) }
func (t *Theme) bytes(n int64) cell  { return t.amount(n, field.Size) }
func (t *Theme) time(ns int64) cell  { return t.amount(ns, field.Brief) }

func (t *Theme) amount(n int64, text func(int64) string) cell {
	if n == 0 && t.sheet == nil {
		return cell{text: none, ink: t.dim}
	}
	return cell{text: text(n)}
}

// operationCell is a column of the table of operations.
type operationCell struct {
	heading string
	width   int
	text    func(v *overview, o *analyze.Operation) string
	least   int // width of the screen from which it is there
}

// fromSamples returns a percentile of enough latencies.
func fromSamples(least int, of func(*analyze.Quantiles) record.Opt[int64]) func(*overview, *analyze.Operation) string {
	return func(v *overview, o *analyze.Operation) string {
		if o.Latency.Count() < least {
			return ""
		}
		return v.theme.quantile(&o.Latency, of(&o.Latency))
	}
}

// counted returns a number of requests.
func counted(of func(*analyze.Operation) int64) func(*overview, *analyze.Operation) string {
	return func(v *overview, o *analyze.Operation) string {
		if n := of(o); n > 0 {
			return field.Count(n)
		}
		return none
	}
}

// operationCells are the columns of the table of operations, after the name.
var operationCells = []operationCell{
	{"RPCS", 7, counted(func(o *analyze.Operation) int64 { return o.Requests }), 0},
	{"FAILED", 8, counted(func(o *analyze.Operation) int64 { return o.Failed }), 0},
	{"NO REPLY", 10, counted(func(o *analyze.Operation) int64 { return o.NoReply }), 0},
	{"P50", 10, fromSamples(leastP50, func(q *analyze.Quantiles) record.Opt[int64] { return q.P50 }), 0},
	{"P90", 10, fromSamples(leastP90, func(q *analyze.Quantiles) record.Opt[int64] { return q.P90 }), wholeOverview},
	{"P99", 10, fromSamples(leastP99, func(q *analyze.Quantiles) record.Opt[int64] { return q.P99 }), wideOverview},
	{"WORST", 10, fromSamples(1, func(q *analyze.Quantiles) record.Opt[int64] { return q.Max }), 0},
	{"SUM", 10, func(v *overview, o *analyze.Operation) string {
		switch {
		case o.Latency.Count() == 0:
			return ""
		case o.Latency.UpperBounds > 0:
			return v.theme.atMost() + field.Brief(o.SumNS)
		}
		return field.Brief(o.SumNS)
	}, 0},
	{"STALLED", 9, func(v *overview, o *analyze.Operation) string {
		if o.StalledNS <= 0 || o.SumNS <= 0 {
			return none
		}
		return percentOf(o.StalledNS, o.SumNS)
	}, 0},
	{"BYTES", 10, func(v *overview, o *analyze.Operation) string {
		if o.Bytes == 0 {
			return none
		}
		return field.Size(o.Bytes)
	}, wideOverview},
}

// percentOf returns a share in percent, which is not 0 if there is any.
func percentOf(part, whole int64) string {
	if part*200 < whole {
		return "<1%"
	}
	return fmt.Sprintf("%.0f%%", float64(part)*100/float64(whole))
}

// operationWidth is the width of the names of operations, and phaseCells that of the bars of their phases.
const (
	operationWidth = 15
	phaseCells     = 16
)

// operations writes the table of operations.
func (v *overview) operations() {
	rows := v.Operations
	if len(rows) == 0 {
		return
	}
	if n := v.room.operations; len(rows) > n {
		rest := rows[n-1:]
		rows = append(slices.Clone(rows[:n-1]), analyze.Merge(fmt.Sprintf("%d others", len(rest)), rest))
	}
	about := []string{"stats"}
	head := fmt.Sprintf("%-*s", operationWidth, "OPERATION")
	for _, c := range operationCells {
		if v.width >= c.least {
			head += fmt.Sprintf("%*s", c.width, c.heading)
		}
	}
	if v.width >= wideOverview {
		head += "  PHASES"
	}
	v.lines = append(v.lines, textLine{about: about, parts: []part{{head, v.theme.dim}}})
	for _, o := range rows {
		name := v.theme.fit(clean(o.Name), operationWidth)
		parts := []part{{name + strings.Repeat(" ", operationWidth-wide(name)), v.theme.key}}
		for _, c := range operationCells {
			if v.width < c.least {
				continue
			}
			text, shade := c.text(v, o), ink{}
			switch {
			case text == none:
				shade = v.theme.dim
			case c.heading == "FAILED" || c.heading == "NO REPLY" || c.heading == "STALLED":
				shade = v.theme.warn
			}
			parts = append(parts, part{strings.Repeat(" ", max(1, c.width-wide(text))) + text, shade})
		}
		if v.width >= wideOverview {
			parts = append(append(parts, part{"  ", ink{}}), v.phaseBar(o)...)
		}
		v.lines = append(v.lines, textLine{about: about, parts: parts})
	}
	all := analyze.Merge("", v.Operations)
	var feet []string
	if all.StalledNS > 0 {
		feet = append(feet, "STALLED: waits for retransmissions, credits, other RPCs")
	}
	if all.NoReply > 0 && v.Health.NotCaptured > 0 {
		feet = append(feet, "NO REPLY: or not captured")
	}
	if all.Latency.UpperBounds > 0 {
		feet = append(feet, strings.TrimSpace(v.theme.atMost())+" "+bounded.meaning)
	}
	for len(feet) > 1 && wide(strings.Join(feet, "; ")) > v.width {
		feet = feet[:len(feet)-1]
	}
	if v.room.feet > 0 && feet != nil {
		v.row(part{strings.Join(feet, "; "), v.theme.dim})
	}
}

// overviewPhase is a part of a sum of latencies.
type overviewPhase struct {
	words string
	ns    int64
	ink   ink
}

// phases returns the parts of a sum of latencies: those of the same kind are one.
func (v *overview) phases(s *analyze.PhaseSums, total int64) []overviewPhase {
	list := []overviewPhase{
		{"waiting for Reply", s.ToReplyNS, v.theme.good},
		{"in RDMA transfers", s.ReadNS + s.WriteNS, v.theme.moved},
		{"stalled", s.WaitNS, v.theme.warn},
		{"before RDMA transfers", s.ToReadNS + s.ToWriteNS, v.theme.exposed},
	}
	for _, p := range list {
		total -= p.ns
	}
	return append(list, overviewPhase{"other", max(total, 0), v.theme.dim})
}

// phaseBar draws what the sum of the latencies of an operation is made of.
func (v *overview) phaseBar(o *analyze.Operation) (parts []part) {
	passed, drawn := int64(0), 0
	for i, p := range v.phases(&o.Phases, o.SumNS) {
		passed += p.ns
		to := int(min(passed, o.SumNS) * phaseCells / max(o.SumNS, 1))
		parts = append(parts, part{strings.Repeat(v.theme.glyphs.shades[min(i, len(v.theme.glyphs.shades)-1)], max(0, to-drawn)), p.ink})
		drawn = max(drawn, to)
	}
	return parts
}

// time writes where the latencies went, and which side took how much of them.
func (v *overview) time() {
	t := &v.Time
	if t.TotalNS <= 0 {
		return
	}
	list := v.phases(&t.Phases, t.TotalNS)
	var sums []int64
	for _, p := range list {
		sums = append(sums, p.ns)
	}
	type share struct {
		percent int64
		words   string
	}
	var shares []share
	for i, percent := range analyze.Percents(sums) {
		if percent > 0 {
			shares = append(shares, share{percent, list[i].words})
		}
	}
	slices.SortStableFunc(shares, func(a, b share) int { return int(b.percent - a.percent) })
	total := field.Brief(t.TotalNS)
	if t.UpperBounds > 0 {
		total = v.theme.atMost() + total
	}
	words := []string{total + " over RPCs = "}
	for i, s := range shares {
		if text := fmt.Sprintf("%d%% %s", s.percent, s.words); i == 0 {
			words[0] += text
		} else if overviewLabel+wide(strings.Join(words, ", "))+2+len(text) <= v.width {
			words = append(words, text)
		}
	}
	v.labeled("SUM", words, "stats")
	words = nil
	percents, tells := t.Shares.Percents(t.Shares.TotalNS), false
	for i, x := range t.Shares.Sides() {
		p := percents[i]
		tells = tells || p.Min > 0 || p.Max <= 90
		switch {
		case p.Min == 0 && p.Max >= 100:
		case p.Min == p.Max:
			words = append(words, fmt.Sprintf("%s %d%%", x.Side, p.Max))
		case p.Min == 0:
			words = append(words, fmt.Sprintf("%s %s%d%%", x.Side, v.theme.atMost(), p.Max))
		default:
			words = append(words, fmt.Sprintf("%s %d to %d%%", x.Side, p.Min, p.Max))
		}
	}
	if tells { // "client <= 99%" alone reads as if it accused
		side, percent, _ := strings.Cut(words[0], " ")
		words[0] = side + " took " + percent + " of SUM"
		switch {
		case len(words) == 1 && side == "client":
			words = append(words, "server or network the rest")
		case len(v.Points) < 2 && len(words) == 2 && !strings.HasPrefix(words[1], "network"):
			words = append(words, "with the network's time in both")
		}
		v.labeled("side", words, "stats", "--wide")
	}
}

// traffic writes what passed, and what went wrong with packets.
func (v *overview) traffic() {
	h := &v.Health
	if h.Packets == 0 && h.Damaged == 0 {
		return
	}
	text := ""
	if t, known := v.Throughput.Get(); known {
		text = field.Size(t.BytesRead) + " read, " + field.Size(t.BytesWritten) + " written; "
	}
	lost := int64(0)
	for _, n := range v.Network {
		lost += n.Lost
	}
	words := []string{text + field.Count(h.Packets) + " " + record.Noun(h.Packets, "packet")}
	alone := min(h.Damaged, v.Summary.SelectedDamaged.Or(v.Summary.ICRCBadUnassigned)) // no problem is about them
	for _, c := range []struct {
		n     int64
		words string
	}{
		{h.Retransmitted, "repeated"},
		{lost, "lost"},
		{h.NotCaptured, "missing"},
		{h.OutOfOrder, "out of order"},
		{h.Damaged - alone, "damaged"},
		{alone, "of no connection"},
		{h.Naks, record.Noun(h.Naks, "NAK")},
		{h.RNRNaks, record.Noun(h.RNRNaks, "RNR NAK")},
		{h.CongestionMarks, "marked (CE)"},
		{h.CNPs, record.Noun(h.CNPs, "CNP")},
		{h.Pauses, record.Noun(h.Pauses, "pause")},
	} {
		if c.n > 0 {
			words = append(words, field.Count(c.n)+" "+c.words)
		}
	}
	v.labeled("traffic", words, "connections")
	for i := range v.Traffic[:min(len(v.Traffic), few)] {
		v.other(&v.Traffic[i])
	}
}

// other writes what the connections of another upper layer than RPC did.
func (v *overview) other(t *analyze.Traffic) {
	label, words := upperLayer(t.UpperLayer), []string{record.Plural(int64(t.Connections), "connection")}
	if len(label) >= overviewLabel {
		label, words[0] = "other", label+", "+words[0]
	}
	if t.Stalled > 0 {
		words = append(words, fmt.Sprintf("%s RDMA operations stalled, worst %s", field.Count(t.Stalled), field.Brief(t.LongestNS)))
	}
	for _, k := range t.Kinds[:min(len(t.Kinds), few)] {
		done := fmt.Sprintf("%s %s of the %s (%s", field.Count(k.Count), record.Noun(k.Count, operationNames[k.Kind]), k.Side, field.Size(k.Bytes))
		if k.Bytes < k.Asked { // they come first
			words = slices.Insert(words, 1, done+" of "+field.Size(k.Asked)+")")
		} else {
			words = append(words, done+")")
		}
	}
	v.labeled(label, words, "rdma")
}

// setup writes what clients and servers agreed on.
func (v *overview) setup() {
	if v.width < wholeOverview || v.RPCs.Requests == 0 {
		return
	}
	connections := 0
	for _, g := range v.main() {
		connections += g.Connections
	}
	words := []string{record.Plural(int64(connections), "connection")}
	inline := unique(v.Mounted, func(m *analyze.Mounted) string {
		t, known := m.InlineThresholds.Get()
		if !known {
			return ""
		}
		return fmt.Sprintf("%d/%d", t.ClientToServer, t.ServerToClient)
	})
	mtu := unique(v.Mounted, func(m *analyze.Mounted) string {
		if n := m.MTU.Or(0); n > 0 {
			return fmt.Sprint(n)
		}
		return ""
	})
	security := unique(v.Mounted, func(m *analyze.Mounted) string {
		if m.Security == "AUTH_SYS" {
			return ""
		}
		return m.Security
	})
	if len(inline) > 0 {
		words[0] += "; inline " + listed(inline) + " B"
	}
	if c, known := v.used(); known {
		words = append(words, fmt.Sprintf("at most %d of %d credits used", c.Peak, c.Granted.Or(0)))
	}
	if len(mtu) > 0 {
		words = append(words, "MTU "+listed(mtu)+" B")
	}
	v.labeled("setup", append(words, security...), "connections", "--wide")
}

// used returns the connection that used the largest part of its credits, if it is known.
func (v *overview) used() (analyze.CreditUse, bool) {
	if len(v.Credits) > 0 {
		return v.Credits[0], true
	}
	return v.CreditsEnough.Get()
}

// timeline draws how many requests began over time, and below them the ranks of the problems while they lasted.
func (v *overview) timeline() {
	first, known := v.Summary.First.Get()
	last := v.Summary.Last.Or(first)
	c := &v.Timeline
	if !known || len(c.Requests) == 0 {
		return
	}
	begins := max(first, c.From)
	last = max(last, begins)
	plot := max(min(v.width, wideOverview)-overviewLabel-25, 20)
	scale := newScale(begins, last, plot)
	columns := make([]int64, plot)
	for i, n := range c.Requests {
		columns[scale.column(min(c.From+record.Time(int64(i)*c.BucketNS+c.BucketNS/2), last))] += n
	}
	most := max(1, slices.Max(columns))
	levels := v.theme.levels()
	side := v.theme.glyphs.side
	frame := func(label, inside, right string, shade ink) {
		v.row(part{fmt.Sprintf("%-*s", overviewLabel, label), v.theme.key}, part{side, v.theme.dim}, part{inside, shade}, part{side, v.theme.dim}, part{right, v.theme.dim})
	}
	text := ""
	for _, n := range columns {
		level := 0
		if n > 0 {
			level = max(1, int(n*int64(len(levels)-1)/most))
		}
		text += levels[level]
	}
	frame("RPCs", text, fmt.Sprintf(" %s = %s in %s", levels[len(levels)-1], field.Count(most), field.Brief(max(1, last.Sub(begins)/int64(plot)))), v.theme.flight)
	marks := []byte(strings.Repeat(" ", plot))
	for i := min(len(v.problems), 9) - 1; i >= 0; i-- {
		from, known := v.problems[i].From.Get()
		to := max(v.problems[i].To.Or(from), from)
		if !known || to < begins || from > last {
			continue
		}
		for at := scale.column(max(from, begins)); at <= scale.column(min(to, last)); at++ {
			marks[at] = byte('1' + i)
		}
	}
	if strings.Trim(string(marks), " ") != "" {
		frame("problem", string(marks), "", v.theme.bad)
	}
	from, to := field.Brief(begins.Sub(first)), field.Brief(last.Sub(first))
	if begins == first {
		from = "0 s"
	}
	v.row(part{strings.Repeat(" ", overviewLabel) + from + strings.Repeat(" ", max(1, plot+2-len(from)-len(to))) + to + v.theme.scale("  "), v.theme.dim})
}
