package render

import (
	"cmp"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/analyze"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// chartMargin is what stands left of the plot in all charts, so that they can
// share an axis.
const chartMargin = 17

// CreditChart draws the credits of one direction over time: Calls in flight as
// columns, the granted limit as a line. The scale breaks where the limit is far
// above what is used.
func CreditChart(on Screen, c *analyze.Credits, axis Axis) error {
	w, theme := on.Out, on.Theme
	width, height := chartSize(on.Width, on.Height)
	var b strings.Builder
	fmt.Fprintf(&b, "%scredits, %s%s: %d in flight at most", theme.key.before, c.Direction, theme.key.after, c.PeakInFlight)
	if len(c.Points) == 0 {
		_, err := fmt.Fprintf(w, "%s, no Calls\n\n", b.String())
		return err
	}
	plot := width - chartMargin - 1
	axis = axis.of(c.Points[0].Time, c.Points[len(c.Points)-1].Time)
	columns := sample(c, plot, axis)
	limit := 0
	for _, x := range columns {
		limit = max(limit, x.granted)
	}
	rows := min(height, max(c.PeakInFlight, 1))
	top, broken := max(c.PeakInFlight, limit), false
	if limit > 4*max(c.PeakInFlight, 1) {
		top, broken = max(c.PeakInFlight, 1), true
	} else {
		rows = min(height, top)
	}
	fmt.Fprintf(&b, ", asked for %s; %s\n", list(c.Requested), reached(c))
	g := theme.glyphs
	label := func(v int) string { return fmt.Sprintf("%*d %s", chartMargin-1, v, g.side) }
	if broken {
		b.WriteString(theme.dim.before + label(limit) + theme.dim.after + theme.granted.before)
		line := ""
		for _, x := range columns {
			line += map[bool]string{true: g.granted, false: " "}[x.granted > 0]
		}
		b.WriteString(strings.TrimRight(line, " ") + theme.granted.after + "\n" + strings.Repeat(" ", chartMargin) + ":\n")
	}
	previous := -1
	levels := len(g.levels) - 1
	for row := rows; row >= 1; row-- {
		value := (top*row + rows - 1) / rows
		floor := top * (row - 1) / rows // what has to be exceeded to reach this row
		b.WriteString(theme.dim.before)
		if value == previous {
			b.WriteString(strings.Repeat(" ", chartMargin) + g.side)
		} else {
			b.WriteString(label(value))
		}
		b.WriteString(theme.dim.after)
		previous = value
		var line inked
		for _, x := range columns {
			full := x.granted > 0 && x.inFlight >= x.granted
			switch {
			case x.inFlight > floor && full && !theme.unicode:
				line.add("@", theme.bad)
			case x.inFlight > floor:
				// how much of this row is filled, in steps of the levels
				part := min((x.inFlight*rows-top*(row-1))*levels/max(top, 1), levels)
				look := theme.flight
				if full {
					look = theme.bad
				}
				line.add(g.levels[max(part, 1)], look)
			case !broken && x.granted > floor && x.granted <= value:
				line.add(g.granted, theme.granted)
			default:
				line.add(" ", ink{})
			}
		}
		b.WriteString(line.String() + "\n")
	}
	theme.ticks(&b, chartMargin, plot, axis)
	legend := "# Calls in flight  @ as many as granted  - granted"
	if theme.unicode {
		legend = theme.flight.before + "█" + theme.flight.after + theme.dim.before + " Calls in flight  " + theme.dim.after + theme.bad.before + "█" + theme.bad.after + theme.dim.before +
			" as many as granted  " + theme.dim.after + theme.granted.before + "╌" + theme.granted.after + theme.dim.before + " granted"
		fmt.Fprintf(&b, "%s%s\n", legend, theme.dim.after)
	} else {
		fmt.Fprintf(&b, "%s%s%s\n", theme.dim.before, legend, theme.dim.after)
	}
	for i, g := range c.Grants[:min(len(c.Grants), 8)] {
		word := "changes to"
		if i == 0 {
			word = "is"
		}
		fmt.Fprintf(&b, "  grant %s %d at %s, packet %d\n", word, g.Granted, theme.moment(axis, g.Time), g.Packet)
	}
	if n := len(c.Grants) - 8; n > 0 {
		fmt.Fprintf(&b, "  ... and %s\n", plural(int64(n), "more change"))
	}
	_, err := fmt.Fprintf(w, "%s\n", b.String())
	return err
}

// ending says how a connection ended: who, how, in which packet.
func ending(e *record.Ended) string {
	text := strings.ReplaceAll(string(e.How), "_", " ")
	if by, known := e.By.Get(); known {
		text = "by the " + string(by) + ": " + text
	}
	if reason, known := e.Reason.Get(); known {
		text += " (" + clean(reason) + ")"
	}
	if n, known := e.Retransmissions.Get(); known {
		text += fmt.Sprintf(", after %s that nobody acknowledged", plural(n, "repeat"))
	}
	if packet, known := e.Packet.Get(); known {
		text += fmt.Sprintf(", packet %d", packet)
	}
	return text
}

// died lists the Calls that had no Reply when a connection ended.
func died(e *record.Ended) string {
	text := strconv.FormatInt(e.OutstandingCalls, 10)
	for i, xid := range e.XIDs {
		if i == 8 {
			return text + ", ..."
		}
		text += map[bool]string{true: ": ", false: ", "}[i == 0] + xid.String()
	}
	return text
}

// of is the axis, or where it spans nothing, one of what is drawn.
func (a Axis) of(from, to record.Time) Axis {
	if a.From >= a.To {
		a.From, a.To = from, to
	}
	return a
}

// moment is a time in a sentence.
func (t *Theme) moment(a Axis, at record.Time) string {
	c := clock{form: t.times, start: record.Some(a.Start)}
	if c.form == Delta {
		c.form = Relative
	}
	text := string(c.append(nil, at))
	if c.form == Relative || c.form == "" {
		return seconds(at.Sub(a.Start)) + "s"
	}
	return text
}

// both is a time of day and where it stands in the capture.
func (t *Theme) both(a Axis, at record.Time) string {
	if t.times == UTC || t.times == Local || t.times == Epoch {
		return fmt.Sprintf("%s, %ss after the start", t.moment(a, at), seconds(at.Sub(a.Start)))
	}
	return fmt.Sprintf("%s, %ss after the start", at, seconds(at.Sub(a.Start)))
}

// inked is a line in several inks, with few changes between them.
type inked struct {
	b    strings.Builder
	last ink
	rest int // blanks that nothing may follow
}

func (l *inked) add(s string, look ink) {
	if s == " " {
		l.rest++
		return
	}
	if l.rest > 0 {
		l.change(ink{})
		l.b.WriteString(strings.Repeat(" ", l.rest))
		l.rest = 0
	}
	l.change(look)
	l.b.WriteString(s)
}

func (l *inked) change(look ink) {
	if look != l.last {
		l.b.WriteString(l.last.after + look.before)
		l.last = look
	}
}

// String is the line, without blanks at its end.
func (l *inked) String() string {
	l.change(ink{})
	return l.b.String()
}

// chartSize is how large a chart gets: 80 by 10 without a terminal.
func chartSize(width, height int) (int, int) {
	if width <= 0 {
		width = 80
	}
	if height <= 0 {
		height = 10
	}
	return max(min(width, 200), 40), max(min(height, 24), 4)
}

func reached(c *analyze.Credits) string {
	if c.CreditLimitReached == 0 {
		return "limit not reached"
	}
	times := "once"
	if c.CreditLimitReached > 1 {
		times = fmt.Sprintf("%d times", c.CreditLimitReached)
	}
	return fmt.Sprintf("limit reached %s, for %s", times, Duration(c.CreditLimitReachedNS))
}

func list(values []uint32) string {
	if len(values) > 5 {
		return fmt.Sprintf("%v and %d other values", values[:5], len(values)-5)
	}
	return strings.Trim(fmt.Sprint(values), "[]")
}

func seconds(ns int64) string { return fmt.Sprintf("%.3f", float64(ns)/1e9) }

// scale spreads a span of time over the columns of a drawing. It takes any times:
// what is outside of the span falls into the first or the last column.
type scale struct {
	from    record.Time
	span    uint64 // nanoseconds
	columns int
}

func newScale(from, to record.Time, columns int) scale {
	return scale{from, uint64(max(to, from)) - uint64(from), columns}
}

// column is where a time stands.
func (s scale) column(t record.Time) int {
	if t <= s.from {
		return 0
	}
	since := uint64(t) - uint64(s.from)
	if since >= s.span {
		return s.columns - 1
	}
	high, low := bits.Mul64(since, uint64(s.columns))
	column, _ := bits.Div64(high, low, s.span) // less than columns, since since is less than span
	return int(column)
}

// creditColumn is what a column of the chart shows.
type creditColumn struct{ inFlight, granted int }

// sample works the points out for so many columns: the most that were in flight
// in each, and the least limit.
func sample(c *analyze.Credits, n int, axis Axis) []creditColumn {
	columns := make([]creditColumn, n)
	last := c.Points[len(c.Points)-1].Time
	time := newScale(axis.From, axis.To, n)
	for i, p := range c.Points {
		end := time.column(last)
		if i+1 < len(c.Points) {
			end = time.column(c.Points[i+1].Time)
		}
		for column := time.column(p.Time); column <= end; column++ {
			x := &columns[column]
			x.inFlight = max(x.inFlight, p.InFlight)
			if granted, known := p.Granted.Get(); known && (x.granted == 0 || int(granted) < x.granted) {
				x.granted = int(granted)
			}
		}
	}
	return columns
}

// HandleChart draws the exposures of a connection's handles as bars over time,
// those of the handles that were exposed longest, and the figures below.
func HandleChart(on Screen, h *analyze.Handles, axis Axis) error {
	w, theme := on.Out, on.Theme
	width, height := chartSize(on.Width, on.Height)
	var b strings.Builder
	fmt.Fprintf(&b, "%shandles%s: %s of %s\n", theme.key.before, theme.key.after, plural(int64(h.ExposureCount), "exposure"), plural(int64(h.Distinct), "handle"))
	if len(h.Exposures) == 0 {
		_, err := fmt.Fprintf(w, "%s\n", b.String())
		return err
	}
	from, to := h.Exposures[0].From, h.Exposures[0].To
	total := map[record.Hex32]float64{} // a sum of spans may be more than an integer holds
	uses := map[record.Hex32]int{}
	var order []record.Hex32
	for _, x := range h.Exposures {
		from, to = min(from, x.From), max(to, x.To)
		if uses[x.Handle]++; uses[x.Handle] == 1 {
			order = append(order, x.Handle)
		}
		total[x.Handle] += float64(x.To.Sub(x.From))
	}
	shown := slices.Clone(order)
	slices.SortStableFunc(shown, func(a, b record.Hex32) int { return cmp.Compare(total[b], total[a]) })
	shown = shown[:min(len(shown), height)]
	plot := width - chartMargin - 1
	axis = axis.of(from, to)
	for _, handle := range order {
		if !slices.Contains(shown, handle) {
			continue
		}
		bar := newBar(plot, axis)
		for i := range h.Exposures {
			if x := &h.Exposures[i]; x.Handle == handle {
				bar.add(x)
			}
		}
		fmt.Fprintf(&b, "%v %s%5s %s%s%s\n", handle, theme.dim.before, fmt.Sprintf("x%d", uses[handle]), theme.glyphs.side, theme.dim.after, bar.draw(theme))
	}
	theme.ticks(&b, chartMargin, plot, axis)
	if n := len(order) - len(shown); n > 0 {
		fmt.Fprintf(&b, "%s%s exposed for less time and not drawn%s\n", theme.dim.before, plural(int64(n), "handle"), theme.dim.after)
	}
	if theme.unicode {
		fmt.Fprintf(&b, "%s⠶%s%s exposed  %s%s⣿%s%s moved  ended by: %s✕ responder  ○ requester  ? no Reply%s\n", theme.exposed.before, theme.exposed.after, theme.dim.before, theme.dim.after,
			theme.moved.before, theme.moved.after, theme.dim.before, "", theme.dim.after)
	} else {
		fmt.Fprintf(&b, "%s= exposed # moved  ended by: x responder  o requester  ? no Reply%s\n", theme.dim.before, theme.dim.after)
	}
	figures(&b, h)
	_, err := fmt.Fprintf(w, "%s\n", b.String())
	return err
}

var endMarks = map[string]byte{analyze.ByResponder: 'x', analyze.ByRequester: 'o', analyze.ByNobody: '?'}

// bar is the life of a handle over time: two parts to a column, as braille has.
type bar struct {
	parts []byte // 0, '=' exposed, '#' moved
	ends  []byte // of each column, 0 or how an exposure ended in it
	time  scale
}

func newBar(columns int, axis Axis) *bar {
	return &bar{make([]byte, 2*columns), make([]byte, columns), newScale(axis.From, axis.To, 2*columns)}
}

// add draws an exposure.
func (l *bar) add(x *analyze.Exposure) {
	last := l.time.column(x.To)
	for i := l.time.column(x.From); i <= last; i++ {
		l.parts[i] = max(l.parts[i], 1)
	}
	if from, moved := x.MovedFrom.Get(); moved {
		for i := l.time.column(from); i <= l.time.column(min(x.MovedTo.Or(from), x.To)); i++ {
			l.parts[i] = 2
		}
	}
	l.ends[last/2] = endMarks[x.EndedBy]
}

// Dots of the left and the right half of a braille character: of what was
// exposed, and of what moved.
var brailleDots = [2][3]rune{{0, 0x06, 0x47}, {0, 0x30, 0xb8}}

// draw is the line.
func (l *bar) draw(theme *Theme) string {
	var line inked
	for i, end := range l.ends {
		left, right := l.parts[2*i], l.parts[2*i+1]
		look := theme.exposed
		if max(left, right) > 1 {
			look = theme.moved
		}
		switch {
		case end != 0 && theme.unicode:
			if end == '?' {
				look = theme.bad
			}
			line.add(theme.glyphs.marks[end], look)
		case end != 0:
			line.add(string(end), ink{})
		case left == 0 && right == 0:
			line.add(" ", ink{})
		case theme.unicode:
			line.add(string(0x2800+brailleDots[0][left]+brailleDots[1][right]), look)
		default:
			line.add(" =#"[max(left, right):max(left, right)+1], ink{})
		}
	}
	return line.String()
}

// figures writes the numbers that matter.
func figures(b *strings.Builder, h *analyze.Handles) {
	row := func(name, value string) { fmt.Fprintf(b, "  %-46s %s\n", name, value) }
	row("exposed for (p50, p99, longest)", fmt.Sprintf("%s, %s, %s", quantile(h.Exposure.P50), quantile(h.Exposure.P99), quantile(h.Exposure.Max)))
	row("invalidated by the responder", percent(h.RemoteShare)+" of exposures")
	row("Replies with chunks that invalidated one", fmt.Sprintf("%d of %d (%s)", h.InvalidatingReplies, h.ChunkReplies, percent(h.InvalidatingShare)))
	row("left over, since one Send invalidates one", fmt.Sprint(h.LocalInvExtra))
	row("left by Replies that invalidated none", fmt.Sprint(h.LocalInvNoRemote))
	again := fmt.Sprint(h.Reused)
	if h.Reused > 0 {
		again += fmt.Sprintf(", after %s (p50)", quantile(h.ReuseInterval.P50))
	}
	row("exposed again", again)
	row("never invalidated, as far as was seen", fmt.Sprint(h.NeverInvalidated))
}

func quantile(ns record.Opt[int64]) string { return known(ns, "-", Duration) }

// about is a quantile, with a mark where it is an estimate.
func about(q analyze.Quantiles, ns record.Opt[int64]) string {
	if q.Estimated {
		return "~" + quantile(ns)
	}
	return quantile(ns)
}

func percent(v record.Opt[float64]) string {
	return known(v, "-", func(v float64) string { return fmt.Sprintf("%.0f%%", v*100) })
}

var statsColumns = []column{
	{name: "NAME", flex: true, min: 22},
	{name: "COUNT", right: true},
	{name: "ERR", right: true},
	{name: "RETR", right: true, rank: 6},
	{name: "CALL BYTES", right: true, rank: 1},
	{name: "SHORT/CHUNKED/LONG", rank: 9},
	{name: "REPLY BYTES", right: true, rank: 1},
	{name: "SHORT/CHUNKED/LONG", rank: 9},
	{name: "P50", right: true},
	{name: "P90", right: true, rank: 4},
	{name: "P99", right: true},
	{name: "WORST", right: true, rank: 2},
	{name: "HISTOGRAM", rank: 5},
	{name: "READ/WRITE/WAIT/SERVER", rank: 3},
	{name: "WITH CHUNKS", right: true, rank: 7},
	{name: "FIT 64K", right: true, rank: 8},
}

// Stats writes the table of sums.
func Stats(w io.Writer, theme *Theme, width int, rows []*analyze.Stats) error {
	low, high := analyze.LatencyRange(rows)
	columns := slices.Clone(statsColumns)
	if high > 0 {
		i := slices.IndexFunc(columns, func(c column) bool { return c.name == "HISTOGRAM" })
		columns[i].scale = Duration(low) + ".." + Duration(high)
	}
	t := newTable(w, theme, width, columns)
	for _, s := range rows {
		if err := t.row([]cell{
			{text: clean(s.Name), ink: theme.key},
			{text: fmt.Sprint(s.Count)},
			{text: fmt.Sprint(s.Errors)},
			{text: fmt.Sprint(s.Retransmitted)},
			{text: Bytes(s.CallBytes.Total())},
			{text: forms(s.CallBytes)},
			{text: Bytes(s.ReplyBytes.Total())},
			{text: forms(s.ReplyBytes)},
			{text: about(s.Latency, s.Latency.P50)},
			{text: about(s.Latency, s.Latency.P90)},
			{text: about(s.Latency, s.Latency.P99)},
			{text: quantile(s.Latency.Max)},
			{text: theme.histogram(s.Histogram(low, high, histogramCells)), ink: theme.flight},
			{text: phaseShares(s)},
			{text: fmt.Sprint(s.ExplicitRDMA)},
			{text: inlineShare(s)},
		}); err != nil {
			return err
		}
	}
	return t.flush()
}

// histogramCells is how many cells the histogram of a row has.
const histogramCells = 16

// histogram draws counts, a character each: nothing for none, and something for
// the least.
func (t *Theme) histogram(counts []int) string {
	levels := t.glyphs.levels
	if !t.unicode {
		levels = asciiLevels
	}
	most := 1
	for _, n := range counts {
		most = max(most, n)
	}
	var b strings.Builder
	for _, n := range counts {
		level := (n*(len(levels)-1) + most - 1) / most
		b.WriteString(levels[level])
	}
	return strings.TrimRight(b.String(), " ")
}

var asciiLevels = strings.Split(" .:-=+*%#", "")

func forms(f analyze.Forms) string {
	return Bytes(f.Short) + "/" + Bytes(f.Chunked) + "/" + Bytes(f.Long)
}

// phaseShares is which part of the time RDMA Reads, RDMA Writes, waits and all the
// rest took.
func phaseShares(s *analyze.Stats) string {
	if s.TotalNS == 0 {
		return "-"
	}
	part := func(ns int64) int64 { return (ns*100 + s.TotalNS/2) / s.TotalNS }
	rest := s.Phases.ToReadNS + s.Phases.ToWriteNS + s.Phases.ToReplyNS
	return fmt.Sprintf("%d%%/%d%%/%d%%/%d%%", part(s.Phases.ReadNS), part(s.Phases.WriteNS), part(s.Phases.WaitNS), part(rest))
}

// inlineShare is the share of RPCs that used RDMA and would not have at an
// inline threshold of 64 KiB.
func inlineShare(s *analyze.Stats) string {
	if s.ExplicitRDMA == 0 {
		return "-"
	}
	return fmt.Sprintf("%d%%", s.FitsInlineAt["65536"]*100/s.ExplicitRDMA)
}

// ConnectionDetail draws everything of one connection, a line a fact.
func ConnectionDetail(w io.Writer, theme *Theme, c *record.Connection, start record.Time) error {
	axis := Axis{Start: start}

	var b strings.Builder
	fmt.Fprintf(&b, "%sconnection %d%s  %s  %s\n", theme.key.before, c.ID, theme.key.after, c.Transport, c.UpperLayer)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-20s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("client", "%s", endpoint(c.Client))
	row("server", "%s", endpoint(c.Server))
	if pair := qpns(c); pair != "" {
		row("queue pairs", "%s", pair)
	}
	row("handshake", "%s", c.Handshake)
	if at, known := c.Established.Get(); known {
		row("established", "%s", theme.both(axis, at))
	}
	if at, known := c.Closed.Get(); known {
		row("closed", "%s", theme.both(axis, at))
	}
	if end, ended := c.Ended.Get(); ended {
		row("ended", "%s", ending(&end))
		if end.OutstandingCalls > 0 {
			row("Calls that died", "%s", died(&end))
		}
	}
	for _, side := range []struct {
		name string
		p    *record.PrivateData
	}{{"client says", c.PrivateData.Client}, {"server says", c.PrivateData.Server}} {
		if side.p == nil {
			row(side.name, "no RPC-over-RDMA private data")
			continue
		}
		row(side.name, "v%d, send %d, receive %d, invalidation %s, offset %d",
			side.p.Version, side.p.SendSize, side.p.ReceiveSize, yesNo(side.p.RemoteInvalidation), side.p.Offset)
	}
	row("inline thresholds", "%d to the server, %d to the client (%s)", c.InlineThreshold.ClientToServer, c.InlineThreshold.ServerToClient,
		strings.ReplaceAll(c.InlineThreshold.Source, "_", " "))
	row("remote invalidation", "%s", known(c.RemoteInvalidation, "?", yesNo))
	if mtu, known := c.PathMTU.Get(); known {
		row("path MTU", "%d", mtu)
	}
	row("transactions", "%d", c.Transactions)
	row("packets", "%d", c.Packets)
	row("health", "%d retransmitted, %d out of order, %d lost, %s, %d RNR", c.Retransmitted, c.OutOfOrder, c.NotCaptured, plural(c.Naks, "NAK"), c.RNRNaks)
	_, err := fmt.Fprintf(w, "%s\n", b.String())
	return err
}
