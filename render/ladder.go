package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/claim"
	"github.com/rdmadump/rdmadump/internal/query"
)

// ladderBars is the number of handles that get a bar of their own next to the ladder.
const ladderBars = 8

// ladderFold is the number of similar lines in a row that are drawn before the others are
// replaced by one line.
const ladderFold = 3

// rung is one line of a ladder.
type rung struct {
	at      record.Time
	first   record.PacketRef // packets of the line; no packet for none
	last    record.PacketRef // of the same capture point
	toRight bool
	double  bool // an RDMA Read or Write instead of a Send
	text    string
	short   string // replaces text if text does not fit; empty to shorten text
	least   string // replaces short if short does not fit; empty for none
	ink     ink
	pause   bool           // a wait: nothing is sent
	lost    bool           // it did not arrive
	kind    string         // similar lines have the same kind; never folded if empty
	marks   map[int]byte   // marks to draw in the handle bars, by index in handle
	handle  []record.Hex32 // handles that the line is about
	below   []string       // lines below this line
}

// widestLadder is the largest width of a ladder, in columns.
const widestLadder = 132

// leastArrow is the least width of the arrows of a ladder, in columns.
const leastArrow = 32

// Ladder draws one transaction as a ladder diagram: the requester is on the left, the
// responder on the right, and time runs down. Each line is one event. A bar on the right
// shows each handle that the Call exposed. Unless all is set, it has at most ladderHeight lines.
func Ladder(w io.Writer, theme *Theme, width int, r *record.Transaction, all bool) error {
	var b strings.Builder
	for _, line := range ladderLines(theme, width, r, all) {
		b.WriteString(line.Text + "\n")
	}
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

// LadderLine is a line of a ladder diagram, and the packets that it is about.
type LadderLine struct {
	Text        string
	First, Last record.PacketRef // no packets in lines above and below the diagram
	Event       bool             // the line shows these numbers, and is not a wait or a part of what the line above shows
}

// Difference says how much longer the second of two RPCs took, and in which parts of its latency.
func Difference(a, b *record.Transaction) string {
	earlier, later := fmt.Sprintf("RPC %d (%s)", a.ID, a.XID), fmt.Sprintf("RPC %d (%s)", b.ID, b.XID)
	switch known := [2]bool{a.LatencyNS.Known(), b.LatencyNS.Known()}; known {
	case [2]bool{}:
		return "Neither " + earlier + " nor " + later + " has a latency that could be compared."
	case [2]bool{false, true}:
		return earlier + " has no latency that could be compared."
	case [2]bool{true, false}:
		return later + " has no latency that could be compared."
	}
	d := b.LatencyNS.Or(0) - a.LatencyNS.Or(0)
	text := later + " took as long as " + earlier
	switch {
	case d > 0:
		text = fmt.Sprintf("%s took %s longer than %s", later, Duration(d), earlier)
	case d < 0:
		text = fmt.Sprintf("%s took %s less than %s", later, Duration(-d), earlier)
	}
	var parts []Phase
	before := Phases(a)
	for i, p := range Phases(b) {
		if p.NS -= before[i].NS; p.NS != 0 {
			parts = append(parts, p)
		}
	}
	slices.SortStableFunc(parts, func(a, b Phase) int { return cmp.Compare(max(b.NS, -b.NS), max(a.NS, -a.NS)) })
	for i, p := range parts {
		text += map[bool]string{true: ": ", false: ", "}[i == 0] + p.Name + " "
		if p.NS > 0 {
			text += "+"
		}
		text += Duration(p.NS)
	}
	for _, r := range []*record.Transaction{a, b} {
		if r.LatencyMinNS.Known() {
			text += fmt.Sprintf("; the latency of RPC %d is uncertain, and its largest value is compared", r.ID)
		}
	}
	return text + "."
}

// LadderLines returns all lines of a ladder, for callers that show the packets of a line.
func LadderLines(theme *Theme, width int, r *record.Transaction) []LadderLine {
	return ladderLines(theme, width, r, true)
}

func ladderLines(theme *Theme, width int, r *record.Transaction, all bool) (lines []LadderLine) {
	width = theme.ladderWidth(width)
	bars := r.Exposures(lastTime(r))
	add := func(g *rung, texts ...string) {
		for i, text := range texts {
			lines = append(lines, LadderLine{Text: text, First: g.first, Last: g.last, Event: i == 0 && g.numbers() != ""})
		}
	}
	add(&rung{}, heading(theme, width, r, all)...)
	rungs := foldRungs(makeRungs(theme, r, bars))
	columns := numberColumns(theme, rungs)
	numbers := columns.width()
	shown := min(len(bars), ladderBars)
	barsWidth := 0
	if shown > 0 {
		barsWidth = shown*2 + 1
	}
	stamp, stamps := theme.ladderTimes(r)
	arrow := max(width-stamps-1-numbers-1-barsWidth-1, leastArrow)
	left, right := "client", "server"
	if r.Direction == record.Backward {
		left, right = right, left
	}
	if len(columns) > 1 {
		add(&rung{}, theme.dim.of(fmt.Sprintf("%*s %s", stamps, "", columns.cells(func(numberColumn) string { return packetHead }))))
	}
	sides := left + strings.Repeat(" ", max(0, arrow-len(left)-len(right))) + right
	add(&rung{}, theme.dim.of(fmt.Sprintf("%*s %s %-*s%s", stamps, "TIME", columns.head(), arrow, sides, barHeads(shown))))
	below := slices.Concat(arrowLegend(theme, width, rungs, len(columns) > 1), legend(theme, width, r, bars, rungs, all), checked(theme, width, r, all))
	open := make([]bool, shown)
	first, last := 0, 0 // rungs that are left out
	if !all {
		first, last = leftOut(rungs, ladderHeight-len(lines)-len(below)-1)
	}
	for i := range rungs {
		g := &rungs[i]
		bar := theme.barCells(g, bars[:shown], open)
		if i == first && i < last {
			text := fmt.Sprintf("%*s %s", stamps+numbers+1, "", theme.dim.of(theme.fit(foldText(rungs[first:last]), arrow)))
			add(&rung{}, text)
		}
		if i >= first && i < last {
			continue
		}
		texts := []string{fmt.Sprintf("%*s %s %s%s", stamps, stamp(g.at), columns.row(g), g.ink.of(theme.arrowLine(g, arrow)), bar)}
		for _, line := range g.below {
			if !theme.whole {
				line = theme.fit(line, arrow-3)
			}
			line = strings.Repeat(" ", stamps+numbers+5) + line
			line += strings.Repeat(" ", max(stamps+numbers+2+arrow-wide(line), 0)) + theme.barCells(&rung{}, bars[:shown], open)
			texts = append(texts, strings.TrimRight(line, " "))
		}
		add(g, texts...)
	}
	add(&rung{}, below...)
	return lines
}

// ladderHeight is the maximum number of lines of a ladder that is not drawn whole: with the empty line and the command that follow, a command prints 60.
const ladderHeight = 58

// leftOut returns which rungs are left out, so that the others have at most most lines: as many at the beginning as at the end. It returns
// 0 and 0 if all fit.
func leftOut(rungs []rung, most int) (first, last int) {
	lines := 0
	for i := range rungs {
		lines += 1 + len(rungs[i].below)
	}
	if lines <= most {
		return 0, 0
	}
	last = len(rungs)
	for used, grown := 0, true; grown && first < last; {
		grown = false
		for _, i := range [...]int{first, last - 1} {
			n := 1 + len(rungs[i].below)
			if first >= last || used+n > most {
				continue
			}
			if used, grown = used+n, true; i == first {
				first++
			} else {
				last--
			}
		}
	}
	return first, last
}

// foldText says what rungs that are left out are: how many of each kind, the most frequent first.
func foldText(rungs []rung) string {
	counts, names := map[string]int64{}, []string{}
	for i := range rungs {
		name, _, _ := strings.Cut(clean(rungs[i].text), ",")
		if rungs[i].pause {
			name = "stall"
		}
		if counts[name]++; counts[name] == 1 {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	text := record.Plural(int64(len(rungs)), "line") + " left out, --all draws them: "
	for i, name := range names[:min(len(names), few)] {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%dx %s", counts[name], name)
	}
	return text
}

// arrowLegend explains the lines of the arrows that are drawn, and, if there are several capture points, whose time a line has.
func arrowLegend(theme *Theme, width int, rungs []rung, points bool) (lines []string) {
	var parts []string
	if slices.ContainsFunc(rungs, func(g rung) bool { return g.lost }) {
		parts = append(parts, theme.glyphs.line+theme.glyphs.lost+" lost on the way")
	}
	if points {
		parts = append(parts, "TIME, PACKET: at the receiver; at the sender of what begins there, or was lost")
	}
	if line := strings.Join(parts, "  "); len(parts) > 1 && wide(line) <= width {
		parts = []string{line}
	}
	for _, part := range parts {
		lines = append(lines, theme.dim.of(theme.fit(part, width)))
	}
	return lines
}

// ladderWidth returns the width of a ladder on a screen of this width, which is 0 if there is no screen.
func (t *Theme) ladderWidth(width int) int {
	switch {
	case t.whole:
		return widestLadder
	case width <= 0:
		return 100
	}
	return min(width, widestLadder)
}

// packetHead is the heading of columns with packet numbers.
const packetHead = "PACKET"

// numberColumn is a column with packet numbers. With several capture points, each has one, and the name of the point below the heading.
type numberColumn struct {
	point, name string
	width       int
}

type numberColumnList []numberColumn

// widestPoint is the maximum width of the name of a capture point above a column.
const widestPoint = 14

// numberColumns returns the columns for the packet numbers of a ladder.
func numberColumns(theme *Theme, rungs []rung) (list numberColumnList) {
	for i := range rungs {
		g := &rungs[i]
		at := slices.IndexFunc(list, func(c numberColumn) bool { return c.point == g.first.Point })
		if g.numbers() == "" {
			continue
		}
		if at < 0 {
			at = len(list)
			list = append(list, numberColumn{g.first.Point, packetHead, len(packetHead)})
		}
		list[at].width = max(list[at].width, len(g.numbers()))
	}
	if list == nil {
		list = numberColumnList{{name: packetHead, width: len(packetHead)}}
	}
	slices.SortFunc(list, func(a, b numberColumn) int { return cmp.Compare(a.point, b.point) })
	if len(list) > 1 {
		var points []string
		for _, c := range list {
			points = append(points, c.point)
		}
		short := record.ShortNames(points)
		for i := range list {
			c := &list[i]
			c.name = theme.fit(clean(short(c.point)), widestPoint)
			c.width = max(c.width, wide(c.name))
		}
	}
	return list
}

// width returns the width of all columns.
func (l numberColumnList) width() int {
	n := len(l) - 1
	for _, c := range l {
		n += c.width
	}
	return n
}

func (l numberColumnList) head() string {
	return l.cells(func(c numberColumn) string { return c.name })
}

// row returns the packet numbers of a line, in the column of their capture point.
func (l numberColumnList) row(g *rung) string {
	return l.cells(func(c numberColumn) string {
		if c.point != g.first.Point {
			return ""
		}
		return g.numbers()
	})
}

func (l numberColumnList) cells(text func(numberColumn) string) string {
	var cells []string
	for _, c := range l {
		cells = append(cells, strings.Repeat(" ", max(c.width-wide(text(c)), 0))+text(c))
	}
	return strings.Join(cells, " ")
}

// span sets the first and the last packet of a line, if both have numbers of the capture that the line is about.
func (g *rung) span(first, last record.PacketRef) {
	if first != last && first.Point == g.first.Point && last.Point == g.first.Point {
		g.first, g.last = first, last
	}
}

// numbers returns the packet numbers of a line, such as "104" or "104-231". It returns nothing for a wait.
func (g *rung) numbers() string {
	switch {
	case g.pause || !g.first.Known():
		return ""
	case g.last != g.first:
		return fmt.Sprintf("%d-%d", g.first.Packet, g.last.Packet)
	}
	return strconv.FormatInt(g.first.Packet, 10)
}

// ladderTimes returns a function that formats the times of a ladder, and their width. By
// default times count from the Call; with Delta, from the previous line.
func (t *Theme) ladderTimes(r *record.Transaction) (stamp func(record.Time) string, width int) {
	previous := r.Start()
	switch t.times {
	case Delta:
		return func(at record.Time) string {
			d := at.Sub(previous)
			previous = at
			return Duration(d)
		}, 10
	case UTC, Local, Epoch:
		c := clock{form: t.times}
		return func(at record.Time) string { return string(c.append(nil, at)) }, c.width()
	}
	return func(at record.Time) string { return Duration(at.Sub(previous)) }, 10
}

// pauseEnd says at which time of a ladder a wait ended. It returns nothing if the times are differences to the previous
// line.
func (t *Theme) pauseEnd(r *record.Transaction, to record.Time) string {
	if t.times == Delta {
		return ""
	}
	stamp, _ := t.ladderTimes(r)
	text := stamp(to)
	if _, time, dated := strings.Cut(text, " "); dated && t.times != Relative && t.times != "" {
		text = time
	}
	return " (ends at " + strings.TrimSpace(text) + ")"
}

// lastTime returns the time of the last event of a transaction.
func lastTime(r *record.Transaction) record.Time {
	if n := len(r.Timeline); n > 0 {
		return r.Timeline[n-1].Time
	}
	return r.Start()
}

// heading returns the lines above a ladder: the RPC and its outcome, what took most of its latency and who, and the parts of the latency.
// With all, the sentences are whole.
func heading(theme *Theme, width int, r *record.Transaction, all bool) (lines []string) {
	add := func(label string, shade ink, text string) {
		if text == "" {
			return
		}
		wrapped := []string{theme.fit(text, width-overviewLabel)}
		if all || label == "time" {
			wrapped = Wrap(text, max(width-overviewLabel, narrowest))
		}
		for _, line := range wrapped {
			lines = append(lines, theme.key.of(fmt.Sprintf("%-*s", overviewLabel, label))+shade.of(line))
			label = ""
		}
	}
	word, shade := status(theme, r)
	if which, malformed := r.Malformed.Get(); malformed {
		word, shade = strings.ToUpper(which[:1])+which[1:]+" does not decode; "+word, theme.bad
	}
	if latency, known := r.LatencyNS.Get(); known {
		word += " after "
		if r.LatencyMinNS.Known() {
			word += theme.atMost()
		}
		word += Duration(latency)
	}
	about := fmt.Sprintf("   %v, connection %d", r.XID, r.Connection)
	if r.Direction == record.Backward {
		about += ", backward"
	}
	if repeats := query.Repeats(r); repeats != "" {
		about += ", " + repeats
	}
	what := query.Deed(r)
	if r.ProgramName.Or("") == "NFS" {
		what = strings.TrimPrefix(what, r.ProgramVersion()+" ")
	}
	if file, known := r.File.Get(); known {
		what += " " + endOf(clean(file), 40, theme.glyphs.shortened)
	}
	if read, written := r.FileBytes(); read+written > 0 {
		what += " " + Size(read+written)
	}
	what = theme.fit(what, max(width-wide(about)-wide(word)-3, narrowest))
	if line := what + about + "   " + word; wide(line) <= width {
		lines = append(lines, theme.key.of(what)+about+"   "+shade.of(word))
	} else {
		lines = append(lines, theme.key.of(what)+theme.fit(about, max(width-wide(what), 1)), shade.of(word))
	}
	cause := r.Cause.Or(record.Cause{})
	side := string(cause.Side.Or("cause"))
	if sentences := claim.Lines(r); all {
		for _, sentence := range sentences {
			add(side, theme.warn, clean(sentence))
			side = ""
		}
	} else if len(sentences) > 0 {
		text := clean(sentences[len(sentences)-1])
		if brief := claim.Brief(r); wide(text) > width-overviewLabel && brief != "" {
			text = clean(brief) + otherStalls(r)
		}
		add(side, theme.warn, text)
	} else if r.Status == record.NoReply {
		add(side, theme.warn, refusal(r))
	}
	parts := cmp.Or(places(r), phaseText(r))
	if r.LatencyMinNS.Known() && parts != "" {
		parts = theme.atMost() + parts
	}
	add("time", ink{}, parts)
	return lines
}

// refusal says what ended an RPC without a Reply of which there is no sentence.
func refusal(r *record.Transaction) string {
	for _, e := range slices.Backward(r.Timeline) {
		if e.Event == record.EventNak {
			caller, other := r.Sides()
			by := map[bool]record.End{true: caller, false: other}[e.From == record.Requester]
			return fmt.Sprintf("%s refused the %s (NAK: %s)", by, e.Of.Title(), e.Reason)
		}
	}
	return withoutReply(r)
}

// checked returns the lines that name the rules with findings and, with all, the RPCs that have those of its timeouts.
func checked(theme *Theme, width int, r *record.Transaction, all bool) (lines []string) {
	width = max(width-overviewLabel, narrowest)
	text, more := packed(r.Findings, width), []string(nil)
	if elsewhere := reportedElsewhere(r); all && elsewhere != "" {
		more = Wrap(elsewhere, width)
	}
	for i, line := range slices.Concat(text, more) {
		label := map[bool]string{true: "check"}[i == 0 && len(text) > 0]
		lines = append(lines, theme.key.of(fmt.Sprintf("%-*s", overviewLabel, label))+theme.bad.of(line))
	}
	return lines
}

// otherStalls says how long an RPC stalled, if its cause is only the longest of several stalls. It returns nothing for other RPCs.
func otherStalls(r *record.Transaction) string {
	c, n := r.Cause.Or(record.Cause{}), int64(0)
	for range r.Stalls() {
		n++
	}
	rest := r.Phases.Or(record.Phases{}).WaitNS - c.NS
	if n < 2 || rest <= 0 || !strings.HasPrefix(c.ID, "stalled-") && c.ID != "busy" && c.ID != "receiver" {
		return ""
	}
	return fmt.Sprintf("; %s more in %s", Duration(rest), record.Plural(n-1, "other stall"))
}

// phaseText returns the shares of the parts of a latency, in the order of time; those of stalls are the last.
func phaseText(r *record.Transaction) string {
	var sums []int64
	list := Phases(r)
	for _, p := range list {
		sums = append(sums, p.NS)
	}
	var words []string
	for i, percent := range analyze.Percents(sums) {
		if percent > 0 {
			words = append(words, fmt.Sprintf("%d%% %s", percent, list[i].Name))
		}
	}
	return strings.Join(words, ", ")
}

// reportedElsewhere names the RPCs that have the findings of this RPC's timeouts. A timeout that stalls several RPCs has
// one finding, for the RPC whose packet was retransmitted first.
func reportedElsewhere(r *record.Transaction) string {
	var xids []string
	for i := range r.Waits {
		w := &r.Waits[i]
		if xid, known := w.BlockingXID.Get(); known && w.Reason == record.RetransmitTimeout && !slices.Contains(xids, xid.String()) {
			xids = append(xids, xid.String())
		}
	}
	switch n := len(xids); n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("The timeout has its finding (%s) at XID %s, whose packet was retransmitted first.", rule.RetransmissionTimeout.ID, xids[0])
	default:
		return fmt.Sprintf("The timeouts have their findings (%s) at XID %s and %s, whose packets were retransmitted first.", rule.RetransmissionTimeout.ID, strings.Join(xids[:n-1], ", "), xids[n-1])
	}
}

// places returns the parts of the latency by the places at which it passed, or nothing without captures at both ends.
func places(r *record.Transaction) string {
	s, known := r.Split.Get()
	if !known {
		return ""
	}
	caller, other := r.Sides()
	var parts []string
	for _, p := range []struct {
		place string
		side  record.End
		ns    int64
	}{{"network to", other, s.RequestNetworkNS}, {"at", other, s.ServerNS}, {"network to", caller, s.ReplyNetworkNS}, {"at", caller, s.ClientNS}} {
		if p.ns > 0 {
			parts = append(parts, fmt.Sprintf("%s the %s %s", p.place, p.side, Duration(p.ns)))
		}
	}
	return strings.Join(parts, ", ")
}

// Phase is a part of the latency of an RPC.
type Phase struct {
	Name string // such as "until Reply"
	NS   int64  // 0 if the RPC has no such part, and for a Write of one packet
}

// shortPhases are the names of the phases where all of them are in one line.
var shortPhases = [record.PhaseCount]string{"until first RDMA Read", "in RDMA Reads", "until first RDMA Write", "in RDMA Writes", "until Reply", "stalled"}

// Phases returns all parts that a latency can have, with their lengths in this RPC.
func Phases(r *record.Transaction) (list []Phase) {
	p := r.Phases.Or(record.Phases{})
	for i, ns := range p.List() {
		list = append(list, Phase{shortPhases[i], ns.Or(0)})
	}
	return list
}

// makeRungs returns a rung for each event of a transaction, in the order of time.
func makeRungs(theme *Theme, r *record.Transaction, bars []record.Exposure) []rung {
	var rungs []rung
	transfers := r.Transfers()
	began := map[*record.Event]*record.Event{} // the first event of a transfer, by its last one
	for _, t := range transfers {
		if t.Last != nil {
			began[t.Last] = t.First
		}
	}
	again := map[place]bool{}        // Reads whose responses were requested again
	moved := map[record.Hex32]bool{} // handles whose memory was read or written
	for _, x := range bars {
		moved[x.Handle] = moved[x.Handle] || x.MovedBytes > 0
	}
	for i := range r.Timeline {
		e := &r.Timeline[i]
		if inLineOfMessage(r, e) {
			continue
		}
		g := rung{at: e.Time, first: e.First(), last: e.First(), toRight: e.From == record.Requester, kind: string(e.Event) + string(e.From)}
		handle, size := e.Handle.Or(0), Size(e.Bytes.Or(0))
		switch e.Event {
		case record.EventCall:
			g.text, g.ink, g.kind = messageText(messageName("Call", r.Call, r.Timeline), r.Call), theme.key, ""
			g.lost = slices.ContainsFunc(r.Timeline, func(e record.Event) bool { return isLost(r.Call, &e, record.EventCall) })
			g.span(r.Call.First(), r.Call.Last())
			g.below = operationLines(r.Decoded.Call)
			for _, x := range bars {
				g.mark(x.Handle, '+')
			}
		case record.EventReply:
			m := r.Reply
			g.text, g.ink, g.kind = undelivered(r, e), theme.bad, ""
			if m != nil {
				g.text, g.ink, g.below = messageText(messageName("Reply", m, r.Timeline), m), theme.key, operationLines(r.Decoded.Reply)
				g.span(m.First(), m.Last())
			}
			if at := slices.IndexFunc(r.Timeline, func(e record.Event) bool {
				return e.Event == record.EventInvalidate && m != nil && e.First() == m.Last()
			}); at >= 0 {
				g.text = strings.Replace(g.text, ", Send ", ", Send With Invalidate ", 1)
				g.mark(r.Timeline[at].Handle.Or(0), 'x')
				g.markAll(r.NotInvalidated, 'o')
			}
			if !r.Invalidation.Known() && m != nil {
				g.markAll(r.NotInvalidated, 'o')
			}
		case record.EventInvalidate:
			if r.Reply != nil && e.First() == r.Reply.Last() {
				continue // the line of the Reply says it
			}
			g.text, g.ink, g.kind = fmt.Sprintf("Send With Invalidate %v", handle), theme.key, ""
			g.mark(handle, 'x')
			g.markAll(r.NotInvalidated, 'o')
		case record.EventRead:
			g.text, g.double = fmt.Sprintf("RDMA Read of %s %v", size, handle), true
			g.mark(handle, '|')
		case record.EventReadDone:
			g.text, g.double = fmt.Sprintf("RDMA Read response, %s from %v, %s", size, handle, packets(e)), true
			g.short = fmt.Sprintf("Read response, %s, %s", size, packets(e))
			if again[place{handle, e.Offset.Or(0)}] { // The line of these packets says how many there were.
				g.text = fmt.Sprintf("RDMA Read complete, %s from %v", size, handle)
				g.short = fmt.Sprintf("Read complete, %s", size)
			}
			g.toRight = true // the response goes in the opposite direction of the request
			g.mark(handle, '#')
		case record.EventWriteFirst:
			continue // The last packet says how much was written.
		case record.EventWriteLast:
			g.text, g.double = fmt.Sprintf("RDMA Write of %s %v, %s", size, handle, packets(e)), true
			if first := began[e]; first != nil && disturbed(r.Timeline, first, e) {
				rungs = append(rungs, rung{at: first.Time, first: first.First(), last: first.First(), double: true, text: fmt.Sprintf("RDMA Write of %s %v begins", size, handle)})
			} else if first != nil {
				g.at = first.Time
				g.span(first.First(), e.First())
			}
			if moved[handle] {
				g.mark(handle, '#')
			}
		case record.EventAck:
			g.text, g.ink = "ACK of the "+e.Of.Title(), theme.dim
		case record.EventNak:
			g.text, g.ink, g.kind = fmt.Sprintf("NAK of the %s: %s", e.Of.Title(), e.Reason), theme.bad, ""
		case record.EventRetransmit:
			g.text, g.ink = fmt.Sprintf("%s retransmitted, %s", e.Of.Title(), packets(e)), theme.warn
			g.span(e.First(), e.Last())
		case record.EventReadAgain:
			again[place{handle, e.Offset.Or(0)}] = true
			again := fmt.Sprintf("the last %s later requested again", size)
			if done := endOfRead(transfers, e); done != nil && done.Bytes == e.Bytes {
				again = fmt.Sprintf("all %s later requested again", size)
			}
			g.text, g.double, g.ink = fmt.Sprintf("RDMA Read response from %v, %s, %s", handle, packets(e), again), true, theme.warn
			g.short = fmt.Sprintf("Read response, %s, %s", packets(e), again)
			g.least = fmt.Sprintf("Response, %s, %s", packets(e), strings.TrimPrefix(again, "the "))
			g.toRight = true
		case record.EventDamaged:
			what := e.Of.Title()
			if (e.Of == record.EventCall || e.Of == record.EventReply) && !isFirstCopy(r, e) { // of others, the first copy is not known
				what += " retransmitted"
			}
			damage := damageOf(e)
			g.text, g.short, g.ink = what+", "+damage+": dropped by its receiver", what+", "+damage, theme.warn
		case record.EventLost:
			g.text, g.ink, g.kind, g.lost = e.Of.Title()+" lost on the way", theme.bad, "", true
		case record.EventOutOfOrder:
			g.text, g.ink, g.kind = e.Of.Title()+" after a gap", theme.warn, ""
			g.short = g.text
			if filled, known := e.LastPacket.Get(); known {
				g.text = fmt.Sprintf("%s, earlier packets missing until %s", e.Of.Title(), numbered(filled, record.PointName(e.LastPoint)))
			}
		}
		rungs = append(rungs, g)
	}
	for _, t := range transfers {
		if first := t.First; t.Last == nil && t.IsWrite() { // its last packet is not in the capture
			rungs = append(rungs, rung{
				at: first.Time, first: first.First(), last: first.First(), double: true, ink: theme.warn,
				text: fmt.Sprintf("RDMA Write to %v, unfinished", first.Handle.Or(0)),
			})
		}
	}
	rungs = withFirstCopy(rungs, theme, r)
	slices.SortStableFunc(rungs, func(a, b rung) int { return cmp.Compare(a.at, b.at) })
	return withPauses(rungs, theme, r)
}

// undelivered says that a Reply was not delivered, how long it is, and which limit it exceeds.
func undelivered(r *record.Transaction, e *record.Event) string {
	text := "Reply"
	n := e.Bytes.Or(0)
	if n > 0 {
		text += " of " + Size(n)
	}
	if limit, known := r.ReplyLimit.Get(); known && n > limit {
		text += ", inline limit " + Size(limit)
	}
	return text + ", not delivered"
}

// inLineOfMessage reports whether the line of the Call or of the Reply says what the event is about.
func inLineOfMessage(r *record.Transaction, e *record.Event) bool {
	switch e.Event {
	case record.EventRetransmit:
		return isCopyOf(r.Reply, e, record.EventReply)
	case record.EventDamaged:
		return isCopyOf(r.Call, e, record.EventCall)
	case record.EventLost:
		return isLost(r.Call, e, record.EventCall)
	case record.EventOutOfOrder:
		return isCopyOf(r.Call, e, record.EventCall) || isCopyOf(r.Reply, e, record.EventReply)
	}
	return false
}

// withFirstCopy adds a rung for the first copy of a Reply, if a later copy is the Reply of the transaction and no event
// is about the first.
func withFirstCopy(rungs []rung, theme *Theme, r *record.Transaction) []rung {
	m := r.Reply
	if m == nil || !m.FirstSent.Known() || slices.ContainsFunc(rungs, func(g rung) bool { return g.at == m.FirstSent.Or(0) }) {
		return rungs
	}
	g := rung{at: m.FirstSent.Or(0), text: firstCopyText(m), ink: theme.warn}
	if packet, known := r.LatencyMinPacket.Get(); known && int64(g.at-r.Sent()) == r.LatencyMinNS.Or(-1) {
		g.first = record.PacketRef{Packet: packet, Point: r.LatencyMinPoint}
		g.last = g.first
	}
	return append(rungs, g)
}

// firstCopyText describes the first copy of a Reply of which a later copy was, or may have been,
// accepted.
func firstCopyText(m *record.Message) string {
	if m.Delivery == record.DeliveryCertain {
		return "Reply: this copy was not accepted"
	}
	return "Reply: first copy, which may be the accepted one"
}

// endOfRead returns the event that ends the Read of which e is an earlier response, or nil if there is
// none.
func endOfRead(transfers []record.Transfer, e *record.Event) *record.Event {
	for _, t := range transfers {
		if done := t.Last; done != nil && !t.IsWrite() && done.Handle == e.Handle && done.Offset == e.Offset {
			return done
		}
	}
	return nil
}

// place is where an RDMA Read reads from.
type place struct {
	handle record.Hex32
	offset record.Hex64
}

// disturbed reports whether packets were retransmitted, rejected or out of order between the first
// and the last packet of a Write, which then are lines of their own.
func disturbed(timeline []record.Event, first, last *record.Event) bool {
	return slices.ContainsFunc(timeline, func(e record.Event) bool {
		switch e.Event {
		case record.EventRetransmit, record.EventNak, record.EventOutOfOrder, record.EventDamaged, record.EventLost:
			return e.Time >= first.Time && e.Time <= last.Time
		}
		return false
	})
}

// isCopyOf reports whether a packet is the copy of a Call or Reply that was delivered.
func isCopyOf(m *record.Message, e *record.Event, of record.EventKind) bool {
	switch {
	case m == nil || e.Of != of:
		return false
	case e.Event != record.EventRetransmit:
		return e.Packet == m.Packet
	}
	first, last := m.First(), m.Last()
	is := e.First() == first || first.Point != last.Point && e.First() == last // the sender's capture has the first copy, and the receiver's this one
	return is && m.FirstSent.Known() && e.LastPacket.Or(e.Packet) == e.Packet
}

// isLost reports whether an event is the loss of all of a Call or Reply. That of one of its packets has a line of its own.
func isLost(m *record.Message, e *record.Event, of record.EventKind) bool {
	return e.Event == record.EventLost && isCopyOf(m, e, of) && m.First() == m.Last()
}

// isFirstCopy reports whether a damaged packet is the first copy of a Call or a Reply.
func isFirstCopy(r *record.Transaction, e *record.Event) bool {
	if e.Of == record.EventCall {
		first := slices.IndexFunc(r.Timeline, func(o record.Event) bool {
			return o.Of == record.EventCall && (o.Event == record.EventRetransmit || o.Event == record.EventLost || o.Event == record.EventDamaged)
		})
		return &r.Timeline[first] == e
	}
	return r.Reply != nil && e.Of == record.EventReply && e.Time == r.Reply.FirstSent.Or(0)
}

// messageName returns the name of a Call or a Reply. The name tells a retransmission, and a packet
// that came after a gap, if that copy was delivered.
func messageName(name string, m *record.Message, timeline []record.Event) string {
	if m.FirstSent.Known() {
		return name + " retransmitted,"
	}
	of := map[string]record.EventKind{"Call": record.EventCall, "Reply": record.EventReply}[name]
	if slices.ContainsFunc(timeline, func(e record.Event) bool { return e.Event == record.EventOutOfOrder && isCopyOf(m, &e, of) }) {
		return name + " after a gap,"
	}
	if slices.ContainsFunc(timeline, func(e record.Event) bool { return isLost(m, &e, of) }) {
		return name + " lost on the way,"
	}
	if i := slices.IndexFunc(timeline, func(e record.Event) bool { return e.Event == record.EventDamaged && isCopyOf(m, &e, of) }); i >= 0 {
		damage := damageOf(&timeline[i])
		if strings.HasPrefix(damage, "bad ") {
			damage = "with a " + damage
		}
		return name + " " + damage + ", dropped by its receiver,"
	}
	return name
}

// damageOf says what shows that a packet was damaged.
func damageOf(e *record.Event) string { return Clean(cmp.Or(e.Reason, "bad ICRC")) }

// withPauses inserts the waits.
func withPauses(rungs []rung, theme *Theme, r *record.Transaction) []rung {
	busy := int64(0) // in stalls that say which RPC came first
	for wait, ns := range r.Stalls() {
		if wait.Reason == record.HeadOfLine {
			busy += ns
		}
		at := slices.IndexFunc(rungs, func(g rung) bool { return g.at > wait.From && !g.pause || g.at >= wait.To })
		if at < 0 {
			at = len(rungs)
		}
		to := ""
		if slices.ContainsFunc(rungs, func(g rung) bool { return !g.pause && g.at > wait.From && g.at < wait.To }) {
			to = theme.pauseEnd(r, wait.To)
		}
		text, short, least := pauseText(r, wait, to)
		rungs = slices.Insert(rungs, at, rung{at: wait.From, first: wait.First(), last: wait.First(), pause: true, ink: theme.warn, text: text, short: short, least: least})
	}
	if b, known := r.BehindReads.Get(); known && b.NS-busy >= max(busy, 1e6) {
		least := fmt.Sprintf("%s behind RDMA Reads of %v", Duration(b.NS), b.XID)
		short := fmt.Sprintf("%s behind RDMA Reads of other RPCs: XID %v", Duration(b.NS), b.XID)
		at := slices.IndexFunc(rungs, func(g rung) bool { return g.at > b.From })
		rungs = slices.Insert(rungs, max(at, 0), rung{at: b.From, pause: true, ink: theme.warn, text: "... " + short + " ...", short: short, least: least})
	}
	return rungs
}

// mark sets the mark of a handle's bar in this line.
func (g *rung) mark(handle record.Hex32, c byte) {
	if g.marks == nil {
		g.marks = map[int]byte{}
	}
	g.marks[len(g.handle)] = c
	g.handle = append(g.handle, handle)
}

// markAll marks the bars of handles.
func (g *rung) markAll(handles []record.Hex32, c byte) {
	for _, handle := range handles {
		g.mark(handle, c)
	}
}

// packets returns the number of packets of an event.
func packets(e *record.Event) string {
	return record.Plural(e.Packets.Or(1), "packet")
}

// messageText describes a Call or a Reply.
func messageText(name string, m *record.Message) string {
	proc, overRDMA := m.RDMAProc.Get()
	if !overRDMA {
		if n, known := m.SendBytes.Get(); known {
			return fmt.Sprintf("%s %s", name, Size(int64(n)))
		}
		return name
	}
	s := fmt.Sprintf("%s %s %s", name, proc, m.Form)
	if n, known := m.SendBytes.Get(); known {
		s += fmt.Sprintf(", Send %s", Size(int64(n)))
	}
	if n, known := m.PayloadBytes.Get(); known {
		s += fmt.Sprintf(", RPC %s", Size(n))
	}
	if handle, known := m.InvHandle.Get(); known {
		s += fmt.Sprintf(", rdma_inv_handle %v", handle)
	}
	return s
}

// foldRungs replaces long runs of similar lines by the first few, and one line with the number
// of the others.
func foldRungs(rungs []rung) []rung {
	var out []rung
	for i := 0; i < len(rungs); {
		j := i
		for j < len(rungs) && rungs[j].kind != "" && rungs[j].kind == rungs[i].kind {
			j++
		}
		if j-i <= ladderFold+1 {
			j = max(j, i+1)
			out = append(out, rungs[i:j]...)
			i = j
			continue
		}
		out = append(out, rungs[i:i+ladderFold]...)
		folded := rungs[i+ladderFold]
		folded.text = fmt.Sprintf("... %d more such lines, the last in %s", j-i-ladderFold, rungs[j-1].numbers())
		folded.marks, folded.handle = nil, nil
		for _, g := range rungs[i+ladderFold : j] {
			for n, handle := range g.handle {
				folded.mark(handle, g.marks[n])
			}
		}
		out = append(out, folded)
		i = j
	}
	return out
}

// fitting returns the text of a line, or the short text if the text is wider than width.
func (g *rung) fitting(width int) string {
	text := clean(g.text)
	for _, shorter := range []string{g.short, g.least} {
		if wide(text) > width && shorter != "" {
			text = clean(shorter)
		}
	}
	return text
}

// arrowLine draws an arrow with text in it.
func (t *Theme) arrowLine(g *rung, width int) string {
	c := t.glyphs
	if g.pause {
		text := t.fit(g.fitting(width-4), width-2)
		left := (width - 2 - wide(text)) / 2
		return c.pause + strings.Repeat(" ", left) + text + strings.Repeat(" ", width-2-wide(text)-left) + c.pause
	}
	line := c.line
	if g.double {
		line = c.double
	}
	toRight, toLeft := c.right, c.left
	if g.lost {
		toRight, toLeft = c.lost, c.lost
	}
	text := t.fit(g.fitting(width-8), width-8)
	left := max((width-wide(text)-5)/2, 1)
	right := max(width-wide(text)-5-left, 1)
	if g.toRight {
		return c.side + strings.Repeat(line, left) + " " + text + " " + strings.Repeat(line, right) + toRight + c.side
	}
	return c.side + toLeft + strings.Repeat(line, left) + " " + text + " " + strings.Repeat(line, right) + c.side
}

// barHeads returns the letters above the bars, if there are several.
func barHeads(n int) string {
	var b strings.Builder
	if n == 1 {
		return ""
	}
	for i := range n {
		b.WriteByte(' ')
		b.WriteByte(byte('a' + i))
	}
	return b.String()
}

// barCells draws the handle bars of one line: the mark of an event, or a line if the handle
// is exposed. It updates open, which records the exposed handles.
func (t *Theme) barCells(g *rung, bars []record.Exposure, open []bool) string {
	var line inked
	for i := range bars {
		c := byte(' ')
		if open[i] {
			c = '|'
		}
		for n, handle := range g.handle {
			if handle == bars[i].Handle {
				c = g.marks[n]
				open[i] = c != 'x' && c != 'o'
			}
		}
		line.add(" ", ink{})
		look := ink{}
		if t.unicode && c != ' ' {
			look = t.exposed
			if c == '#' {
				look = t.moved
			}
		}
		line.add(t.mark(c), look)
	}
	return line.String()
}

// mark returns the character that a mark is drawn with.
func (t *Theme) mark(c byte) string {
	if drawn := t.glyphs.marks[c]; drawn != "" {
		return drawn
	}
	return string(rune(c))
}

// meanings are the marks of handle bars, in the order in which a legend explains them.
var meanings = []struct {
	mark byte
	text string
}{{'+', "exposed"}, {'#', "data moved"}, {'x', "invalidated remotely"}, {'o', "needs local invalidation"}}

// legend explains the marks that are drawn and lists the handles. Handles of one kind share a line, which says how many bytes were
// transferred and how the exposures ended. Without all, a line names the handles that have a bar.
func legend(theme *Theme, width int, r *record.Transaction, bars []record.Exposure, rungs []rung, all bool) (lines []string) {
	if len(bars) == 0 {
		return nil
	}
	var marks []string
	for _, m := range meanings {
		drawn := func(g rung) bool {
			for i, handle := range g.handle {
				if g.marks[i] == m.mark && slices.ContainsFunc(bars[:min(len(bars), ladderBars)], func(x record.Exposure) bool { return x.Handle == handle }) {
					return true
				}
			}
			return false
		}
		if slices.ContainsFunc(rungs, drawn) {
			text := theme.mark(m.mark) + " " + m.text
			if m.mark == '+' {
				text = theme.mark('+') + " " + theme.mark('|') + " " + m.text
			}
			marks = append(marks, text)
		}
	}
	if marks != nil {
		lines = append(lines, theme.dim.of(strings.Join(marks, "  ")))
	}
	for i := 0; i < len(bars); {
		first, j, moved := bars[i], i, int64(0)
		var names, handles []string
		for ; j < len(bars) && bars[j].Chunk == first.Chunk && bars[j].EndedBy == first.EndedBy && bars[j].To == first.To; j++ {
			if moved += bars[j].MovedBytes; j < ladderBars {
				names = append(names, string(rune('a'+j)))
			}
			if j < ladderBars || all {
				handles = append(handles, bars[j].Handle.String())
			}
		}
		if more := j - i - len(handles); more > 0 {
			handles = append(handles, fmt.Sprintf("and %d more", more))
		}
		end := map[string]string{
			record.ByResponder: "invalidated remotely", record.ByRequester: "needs local invalidation", record.ByNobody: withoutReply(r),
		}[first.EndedBy]
		exposed := Duration(first.To.Sub(first.From))
		if first.EndedBy == record.ByNobody {
			exposed = "at least " + exposed
		}
		kind := chunkName(first.Chunk)
		if n := j - i; n > 1 {
			kind = fmt.Sprintf("%s, %d handles", kind, n)
		}
		text := fmt.Sprintf("%s, %s moved, exposed for %s, %s: %s", kind, Size(moved), exposed, end, strings.Join(handles, " "))
		name := strings.Join(names, "")
		if len(bars) == 1 {
			names, name = nil, ""
		}
		for _, line := range wrapped(text, width-len(name)-3) {
			lines = append(lines, "  "+fmt.Sprintf("%-*s", len(names), name)+" "+line)
			name = ""
		}
		i = j
	}
	return lines
}

// chunkName returns the name of a kind of chunk, such as "Read chunk".
func chunkName(c record.Chunk) string {
	if c == "" {
		return "chunk"
	}
	return strings.ToUpper(string(c[:1])) + string(c[1:]) + " chunk"
}

// withoutReply says why a transaction has no Reply, as far as the capture shows it. If it shows a fatal
// NAK, the connection ended with that.
func withoutReply(r *record.Transaction) string {
	switch {
	case r.Reply != nil || slices.ContainsFunc(r.Timeline, func(e record.Event) bool { return e.Event == record.EventReply }):
		return "Reply not delivered"
	case slices.Contains(r.Findings, rule.RemoteErrorNak.ID) || slices.Contains(r.Findings, rule.Terminate.ID):
		for i := len(r.Timeline) - 1; i >= 0; i-- {
			if e := &r.Timeline[i]; e.Event == record.EventNak {
				return e.Of.Title() + " rejected"
			}
		}
	}
	return "no Reply in the capture"
}

// narrowest is the least width that text is wrapped to, unless the output is narrower.
const narrowest = 20

// Wrap breaks text at spaces into lines of at most width columns. It also breaks words that
// are longer than a line. It treats a width below 1 as 1.
func Wrap(text string, width int) (lines []string) {
	width = max(width, 1)
	line := ""
	for _, word := range strings.Fields(text) {
		for wide(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			_, first := firstRune(word)
			n := max(start(word, width), first)
			lines, word = append(lines, word[:n]), word[n:]
		}
		if line != "" && wide(line)+1+wide(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// Folded returns a text in lines of at most width columns; lines after the first begin with two spaces. It returns the text
// unchanged if it fits, or if the width is unknown or too small to read.
func Folded(text string, width int) string {
	if width < narrowest || wide(text) <= width {
		return text
	}
	return strings.Join(Wrap(text, width-2), "\n  ")
}
