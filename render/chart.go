package render

import (
	"cmp"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/claim"
	"github.com/rdmadump/rdmadump/internal/query"
)

// chartMargin is the width of the labels on the left of all charts, so that charts of one
// connection have the same axis.
const chartMargin = 17

// CreditChart draws the credits of one direction over time: Calls in flight as columns, and
// the granted credits as a line. The scale is interrupted if the grant is far above the peak
// of Calls in flight.
func CreditChart(on Screen, c *analyze.Credits, axis Axis) error {
	w, theme := on.Out, on.Theme
	var b strings.Builder
	peak, known := c.PeakInFlight.Get()
	b.WriteString(theme.key.of("credits"+map[record.Direction]string{record.Backward: " of callbacks"}[c.Direction]) + ": ")
	if known {
		fmt.Fprintf(&b, "at most %s", record.Plural(int64(peak), "Call")+" in flight")
	} else {
		b.WriteString("Calls in flight cannot be counted (packets missing or out of order)")
	}
	if len(c.Points) == 0 {
		_, err := fmt.Fprintf(w, "%s, no Calls\n\n", b.String())
		return err
	}
	fmt.Fprintf(&b, ", %s credits requested", list(c.Requested))
	if known {
		fmt.Fprintf(&b, "%s\n", reached(c))
		drawCredits(&b, on, c, axis)
	} else {
		b.WriteByte('\n')
	}
	for i, g := range c.Grants[:min(len(c.Grants), shownGrants)] {
		word := "changes to"
		if i == 0 {
			word = "is"
		}
		fmt.Fprintf(&b, "  grant %s %d at %s, packet %s\n", word, g.Granted, theme.moment(axis, g.Time), numbered(g.Packet, g.Point))
	}
	if n := len(c.Grants) - shownGrants; n > 0 {
		fmt.Fprintf(&b, "  ... and %s\n", record.Plural(int64(n), "more change"))
	}
	_, err := fmt.Fprintf(w, "%s\n", b.String())
	return err
}

// shownGrants is the number of changes of a grant that a chart lists.
const shownGrants = 3

// drawCredits draws the chart itself, with its axis and its legend.
func drawCredits(b *strings.Builder, on Screen, c *analyze.Credits, axis Axis) {
	theme, peak := on.Theme, c.PeakInFlight.Or(0)
	width, height := chartSize(on.Width, on.Height)
	plot := width - chartMargin - 1
	axis = axis.orSpan(c.Points[0].Time, c.Points[len(c.Points)-1].Time)
	columns := sample(c, plot, axis)
	limit := 0
	for _, x := range columns {
		limit = max(limit, x.granted)
	}
	rows := min(height, max(peak, 1))
	top, broken := max(peak, limit), false
	if limit > 4*max(peak, 1) {
		top, broken = max(peak, 1), true
	} else {
		rows = min(height, top)
	}
	g := theme.glyphs
	label := func(v int) string { return fmt.Sprintf("%*d %s", chartMargin-1, v, g.side) }
	if broken {
		b.WriteString(theme.dim.of(label(limit)))
		line := ""
		for _, x := range columns {
			line += map[bool]string{true: g.granted, false: " "}[x.granted > 0]
		}
		b.WriteString(theme.granted.of(strings.TrimRight(line, " ")) + "\n" + strings.Repeat(" ", chartMargin) + "~\n")
	}
	previous := -1
	levels := len(g.levels) - 1
	marked := !theme.unicode || theme.bad.before == "" // A colour cannot show that all credits were in use.
	for row := rows; row >= 1; row-- {
		value := (top*row + rows - 1) / rows
		floor := top * (row - 1) / rows // a larger value reaches this row
		if value == previous {
			b.WriteString(theme.dim.of(strings.Repeat(" ", chartMargin) + g.side))
		} else {
			b.WriteString(theme.dim.of(label(value)))
		}
		previous = value
		var line inked
		for _, x := range columns {
			full := x.granted > 0 && x.inFlight >= x.granted
			switch {
			case x.inFlight > floor && full && marked:
				line.add("@", theme.bad)
			case x.inFlight > floor:
				// filled part of this row, in steps of the levels
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
	theme.ticks(b, chartMargin, plot, axis)
	full := theme.flight.of(g.levels[levels]) + theme.dim.of(" most Calls in flight  ")
	if c.CreditLimitReached.Or(0) > 0 {
		full += theme.bad.of(map[bool]string{true: "@", false: g.levels[levels]}[marked]) + theme.dim.of(" all credits in use  ")
	}
	b.WriteString(full + theme.granted.of(g.granted) + theme.dim.of(" granted credits") + "\n")
}

// NoTimeline says why a connection has no timeline of credits and handles. It is empty for connections that may
// carry RPC-over-RDMA.
func NoTimeline(c *record.Connection) string {
	switch c.UpperLayer {
	case "rpcrdma", "unknown", "":
		return ""
	case "rpc":
		return "RPC over " + c.Transport + " has neither credits nor handles, so there is no timeline."
	}
	return "The connection carries " + c.UpperLayer + " and not RPC-over-RDMA, so it has no timeline of credits and handles."
}

// endingDetail says how a connection ended, which side ended it, and in which packet.
func endingDetail(e *record.Ended) string {
	text := EndingText(e.How, e.By)
	if reason, known := e.Reason.Get(); known {
		text += ", reason: " + clean(reason)
	}
	if n, known := e.Retransmissions.Get(); known {
		text += ", after " + record.Plural(n, "unacknowledged retransmission")
	}
	if packet, known := e.Packet.Get(); known {
		text += ", packet " + numbered(packet, e.Point)
	}
	return text
}

// orSpan returns the axis, or one from from to to if the axis spans no time.
func (a Axis) orSpan(from, to record.Time) Axis {
	if a.From >= a.To {
		a.From, a.To = from, to
	}
	return a
}

// moment returns a time for a sentence.
func (t *Theme) moment(a Axis, at record.Time) string {
	c := clock{form: t.times, start: record.Some(a.Start)}
	if c.form == Delta {
		c.form = Relative
	}
	text := string(c.append(nil, at))
	if c.form == Relative || c.form == "" {
		return Seconds(at.Sub(a.Start), 3) + " s"
	}
	return text
}

// both returns the seconds since the start of the capture, and the date and time.
func (t *Theme) both(a Axis, at record.Time) string {
	text := when(at)
	if t.times == UTC || t.times == Local || t.times == Epoch {
		text = t.moment(a, at)
	}
	return Seconds(at.Sub(a.Start), 3) + " s, " + text
}

// inked builds a line in several inks, with as few escape sequences as possible.
type inked struct {
	b      strings.Builder
	last   ink
	spaces int // spaces that are written only if text follows
}

// add appends text.
func (l *inked) add(s string, look ink) {
	if s == " " {
		l.spaces++
		return
	}
	if l.spaces > 0 {
		l.change(ink{})
		l.b.WriteString(strings.Repeat(" ", l.spaces))
		l.spaces = 0
	}
	l.change(look)
	l.b.WriteString(s)
}

// change switches to another ink.
func (l *inked) change(look ink) {
	if look != l.last {
		l.b.WriteString(l.last.after + look.before)
		l.last = look
	}
}

// String returns the line without spaces at its end.
func (l *inked) String() string {
	l.change(ink{})
	return l.b.String()
}

// chartSize returns the size of a chart within sensible limits: 80 by 10 without a terminal.
func chartSize(width, height int) (int, int) {
	if width <= 0 {
		width = 80
	}
	if height <= 0 {
		height = 10
	}
	return max(min(width, 200), 40), max(min(height, 24), 4)
}

// reached says how often all credits were in use, and for how long, if they were.
func reached(c *analyze.Credits) string {
	n := c.CreditLimitReached.Or(0)
	if n == 0 {
		return ""
	}
	times := "once"
	if n > 1 {
		times = fmt.Sprintf("%d times", n)
	}
	return fmt.Sprintf("; all in use %s, for %s", times, Duration(c.CreditLimitReachedNS.Or(0)))
}

// list returns a list of numbers, shortened after five.
func list(values []uint32) string {
	if len(values) > 5 {
		return fmt.Sprintf("%v and %d other values", values[:5], len(values)-5)
	}
	return strings.Trim(fmt.Sprint(values), "[]")
}

// scale maps times to the columns of a drawing. A time outside of its span is in the first or
// the last column.
type scale struct {
	from    record.Time
	span    uint64 // nanoseconds
	columns int
}

func newScale(from, to record.Time, columns int) scale {
	return scale{from, uint64(max(to, from)) - uint64(from), columns}
}

// column returns the column of a time.
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

// creditColumn contains the values of one column of the chart.
type creditColumn struct{ inFlight, granted int }

// sample returns, for each of n columns, the largest number of outstanding Calls and the
// smallest number of granted credits.
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
			x.inFlight = max(x.inFlight, p.InFlight.Or(0))
			if granted, known := p.Granted.Get(); known && (x.granted == 0 || int(granted) < x.granted) {
				x.granted = int(granted)
			}
		}
	}
	return columns
}

// Moment is a value at a time: a round trip in nanoseconds, or a number of packets.
type Moment struct {
	Time record.Time
	N    int64
}

// longestTrip is the largest value that a chart of a path shows: a week, in nanoseconds. Times of damaged captures may be anything.
const longestTrip = 7 * 24 * 3600 * 1e9

// PathChart draws the longest round trips around the RPCs of a connection, and its repeated packets, over time. It draws nothing if there
// are neither.
func PathChart(on Screen, trips, repeats []Moment, axis Axis) error {
	theme := on.Theme
	width, _ := chartSize(on.Width, 0)
	plot := width - chartMargin - 1
	time := newScale(axis.From, axis.To, plot)
	var b strings.Builder
	var scales []string
	row := func(label string, list []Moment, sum bool, text func(int64) string) {
		columns, most := make([]int, plot), 0
		for _, m := range list {
			x, n := &columns[time.column(m.Time)], int(min(max(m.N, 0), longestTrip))
			if sum {
				n = min(n+*x, longestTrip)
			}
			*x = max(*x, n)
			most = max(most, *x)
		}
		if most > 0 {
			fmt.Fprintf(&b, "%*s %s%s\n", chartMargin-1, label, theme.dim.of(theme.glyphs.side), theme.histogram(columns))
			scales = append(scales, theme.full()+" "+text(int64(most)))
		}
	}
	row("worst RTT server", trips, false, field.Brief)
	row("retransmitted", repeats, true, func(n int64) string { return record.Plural(n, "packet") })
	if b.Len() == 0 {
		return nil
	}
	theme.ticks(&b, chartMargin, plot, axis)
	if scales != nil {
		b.WriteString(theme.dim.of(strings.Join(scales, ", or ")+theme.scale("; ")) + "\n")
	}
	_, err := fmt.Fprintf(on.Out, "%s\n", b.String())
	return err
}

// HandleChart draws the exposures of a connection's handles as bars over time, and figures
// below them. If there are too many handles, it draws those that were exposed longest.
func HandleChart(on Screen, h *analyze.Handles, axis Axis) error {
	w, theme := on.Out, on.Theme
	width, height := chartSize(on.Width, on.Height)
	var b strings.Builder
	times := ""
	if h.ExposureCount != h.Distinct {
		times = ", exposed " + field.Count(int64(h.ExposureCount)) + " times (xN)"
	}
	fmt.Fprintf(&b, "%s: %s%s; longest:\n", theme.key.of("handles"), field.Count(int64(h.Distinct)), times)
	if len(h.Exposures) == 0 {
		_, err := fmt.Fprintf(w, "%s\n", b.String())
		return err
	}
	from, to := h.Exposures[0].From, h.Exposures[0].To
	total := map[record.Hex32]float64{} // the sum may exceed an integer
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
	axis = axis.orSpan(from, to)
	ended := map[byte]bool{} // the marks that are drawn
	for _, handle := range order {
		if !slices.Contains(shown, handle) {
			continue
		}
		bar := newBar(plot, axis)
		for i := range h.Exposures {
			if x := &h.Exposures[i]; x.Handle == handle {
				bar.add(x)
				ended[endMarks[x.EndedBy]] = true
			}
		}
		count := ""
		if times != "" {
			count = fmt.Sprintf("x%d", uses[handle])
		}
		fmt.Fprintf(&b, "%v %s%s\n", handle, theme.dim.of(fmt.Sprintf("%5s %s", count, theme.glyphs.side)), bar.draw(theme))
	}
	theme.ticks(&b, chartMargin, plot, axis)
	if theme.unicode {
		b.WriteString(theme.exposed.of("⠶") + theme.dim.of(" exposed  ") + theme.moved.of("⣿") + theme.dim.of(" data moved"))
	} else {
		b.WriteString(theme.dim.of("= exposed  # data moved"))
	}
	for _, m := range []struct {
		end  byte
		text string
	}{{'x', "invalidated remotely"}, {'o', "invalidated locally"}, {'?', "no Reply"}} {
		if ended[m.end] {
			b.WriteString(theme.dim.of("  " + cmp.Or(theme.glyphs.marks[m.end], string(m.end)) + " " + m.text))
		}
	}
	b.WriteString("\n")
	figures(&b, h)
	_, err := fmt.Fprintf(w, "%s\n", b.String())
	return err
}

var endMarks = map[string]byte{record.ByResponder: 'x', record.ByRequester: 'o', record.ByNobody: '?'}

// bar shows the exposures of a handle over time. Each column has two parts, like a braille
// character.
type bar struct {
	parts []byte // 0 not exposed, 1 exposed, 2 data moved
	ends  []byte // for each column the mark of the exposure that ended in it, or 0
	time  scale
}

// newBar returns an empty bar.
func newBar(columns int, axis Axis) *bar {
	return &bar{make([]byte, 2*columns), make([]byte, columns), newScale(axis.From, axis.To, 2*columns)}
}

// add adds an exposure.
func (l *bar) add(x *record.Exposure) {
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

// brailleDots contains the dots of the left and the right half of a braille character, for
// each value of a part.
var brailleDots = [2][3]rune{{0, 0x06, 0x47}, {0, 0x30, 0xb8}}

// draw returns the bar as a line.
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

// figures writes the figures of a connection's handles.
func figures(b *strings.Builder, h *analyze.Handles) {
	row := func(name, value string) { fmt.Fprintf(b, "  %-50s %s\n", name, value) }
	row("exposed for", fmt.Sprintf("p50 %s, worst %s", quantile(h.Exposure.P50), quantile(h.Exposure.Max)))
	row("invalidated remotely", percent(h.RemoteShare)+" of exposures")
	row("Send With Invalidate", fmt.Sprintf("%d of %d Calls with chunks", h.InvalidatingReplies, h.ChunkReplies))
	for _, x := range [...]struct {
		name, after string
		n           int
	}{
		{"invalidated by the client, not by the Reply", "", h.LocalInvExtra + h.LocalInvNoRemote},
		{"exposed again", fmt.Sprintf(", after p50 %s", quantile(h.ReuseInterval.P50)), h.Reused},
		{"handles of Calls without a Reply", "", h.NeverInvalidated},
	} {
		if x.n > 0 {
			row(x.name, fmt.Sprint(x.n)+x.after)
		}
	}
}

// quantile returns a duration, or "-" if there is none.
func quantile(ns record.Opt[int64]) string { return known(ns, "-", field.Brief) }

// end writes the remaining rows, and below them what the columns mean.
func (t *table) end() error {
	if err := t.flush(); err != nil || !t.drawn {
		return err
	}
	_, err := io.WriteString(t.w, t.feet())
	return err
}

// percent returns a ratio as a percentage, or "-" if there is none.
func percent(v record.Opt[float64]) string {
	return known(v, "-", func(v float64) string { return fmt.Sprintf("%.0f%%", v*100) })
}

// attemptsColumn has the number of attempts of the RPCs of a row; doc is for a table that counts others than those of RPCS.
func attemptsColumn(doc string) column {
	return column{name: "ATTEMPTS", fields: "attempts", right: true, at: 100, foot: "Calls, with those sent again", doc: doc}
}

// inAttempts says how many attempts a number of RPCs had, or nothing if each had one.
func inAttempts(rpcs, n int64) string {
	if n == rpcs {
		return ""
	}
	return " in " + field.Count(n) + " " + record.Noun(n, "attempt")
}

var statsColumns = slices.Concat([]column{
	{
		name: "NAME", fields: "name", flex: true, min: 20,
		doc: "Values of what --by names, which is the heading, usually OPERATION; others sums up all groups beyond the first 1024. With --by cause, none stands for RPCs that no sentence is about, because their latency is under 1 ms, or they have no latency and no stall.",
	},
	{name: "RPCS", fields: "rpcs=requests", right: true, doc: "Number of RPCs: of what clients asked for once."},
	attemptsColumn(""),
	{name: "FAILED", fields: "failed", right: true, foot: failedFoot},
	{name: "NO REPLY", fields: "no_reply", right: true},
	{
		name: "REPEATED", fields: "retransmitted", right: true, at: 140, foot: repeatedFoot,
		doc: "Number of packets of these RPCs that were retransmitted.",
	},
}, alike(
	sumFoot, latencySigns,
	column{name: "P50", fields: "latency.p50_ns", right: true},
	column{name: "P90", fields: "latency.p90_ns", right: true, at: 120},
	column{name: "P99", fields: "latency.p99_ns", right: true, at: 140},
	column{name: "WORST", fields: "latency.max_ns", right: true},
	column{name: "SUM", fields: "total_ns", right: true},
), []column{
	{
		name: "STALLED", fields: "phases.stalled_ns", cell: cellOf(stalledShare), right: true, foot: "part of SUM waiting for retransmissions, credits, other RPCs",
		doc: "Share of the sum of all latencies in which RPCs were stalled: they made no progress, and the capture shows why.",
	},
	{
		name: "BYTES", fields: "bytes", right: true, at: 100, foot: "of Calls and Replies, " + bytesFoot,
		doc: "Number of bytes in the Payload streams of all Calls and Replies, including the data items in chunks.",
	},
	{
		name: "CALL BYTES", fields: "call_bytes", total: func(r any) any { return int(r.(*analyze.Stats).CallBytes.Total()) }, right: true, wide: true,
		doc: "Number of bytes in the Payload streams of all Calls. Shown only with --wide or --columns.",
	},
	{
		name: "CALL BYTES SHORT/CHUNKED/LONG", fields: "call_bytes.short call_bytes.chunked call_bytes.long", cell: cellOf(func(s *analyze.Stats) string { return forms(s.CallBytes) }), wide: true,
		doc: "The bytes of CALL BYTES by the form of the Call: short, chunked and long. Shown only with --wide or --columns.",
	},
	{
		name: "REPLY BYTES", fields: "reply_bytes", total: func(r any) any { return int(r.(*analyze.Stats).ReplyBytes.Total()) }, right: true, wide: true,
		doc: "Number of bytes in the Payload streams of all Replies. Shown only with --wide or --columns.",
	},
	{
		name: "REPLY BYTES SHORT/CHUNKED/LONG", fields: "reply_bytes.short reply_bytes.chunked reply_bytes.long", cell: cellOf(func(s *analyze.Stats) string { return forms(s.ReplyBytes) }), wide: true,
		doc: "The bytes of REPLY BYTES by the form of the Reply: short, chunked and long. Shown only with --wide or --columns.",
	},
	{
		name: "CLIENT/NETWORK/SERVER", fields: "split.client_ns split.request_network_ns split.server_ns split.reply_network_ns", cell: cellOf(placeShares), at: 140, some: true, foot: "of latencies seen at both ends",
		doc: "Shares of the latency of the RPCs that were captured at both ends: at the side that sent the Call, in the network in both directions, and at the side that executed it. Without captures at both ends, the column is not shown.",
	},
	{
		name: "LATENCY", at: 180,
		doc: "Histogram: distribution of the latency on a logarithmic scale. The heading has the range: the shortest and the longest latency of all rows.",
	},
	{
		name: "PROVEN CLIENT/NETWORK/SERVER/REST", fields: "shares.client_ns.min shares.network_ns.min shares.server_ns.min shares.server_ns.max", cell: cellOf(provenShares), wide: true,
		doc: "Shares of the total latency that provably passed at the client, in the network and at the server, and the rest, which one capture cannot assign; empty without any proof. Shown only with --wide or --columns.",
	},
	{name: "CONGESTED", fields: "congested", right: true, wide: true},
	{
		name: "IN READS/IN WRITES/STALLED/REST", fields: "read=phases.read_ns write=phases.write_ns stall=phases.stalled_ns wait=phases.stalled_ns", cell: cellOf(phaseShares), wide: true,
		doc: "Shares of the total latency: in RDMA Reads, in RDMA Writes, stalled, and the rest: waiting for the first RDMA Read or RDMA Write, and until the Reply. In the rest only the server, or the network, can make progress; one capture does not show which of the two took it. Shown only with --wide or --columns.",
	},
	{
		name: "RPCS WITH CHUNKS", fields: "explicit_rdma", right: true, wide: true,
		doc: "Number of RPCs that used chunks. Shown only with --wide or --columns.",
	},
	{
		name: "WOULD FIT 64K", fields: "fits_inline_at", total: func(r any) any { return r.(*analyze.Stats).FitsInlineAt["65536"] }, right: true, wide: true,
		doc: "Number of the RPCs with chunks whose Call and largest possible Reply fit into 64 KiB, so that they would have needed no chunks with this inline threshold. The largest possible Reply is the one that fills the chunks that the Call offers. Shown only with --wide or --columns.",
	},
})

// These explain columns of tables of sums.
const (
	failedFoot  = "answered with an RPC or NFS error"
	latencyFoot = "latency, Call to Reply"
	sumFoot     = latencyFoot + "; SUM over RPCs"
)

var (
	tooFew       = sign{"", "= too few samples"}
	latencySigns = []sign{tooFew, bounded}
)

// Stats writes the table of statistics.
func Stats(w io.Writer, theme *Theme, width int, rows []*analyze.Stats) error {
	low, high := analyze.LatencyRange(rows)
	columns := slices.Clone(statsColumns)
	if high > 0 {
		i := slices.IndexFunc(columns, func(c column) bool { return c.name == "LATENCY" })
		columns[i].scale = field.Brief(low) + " .. " + field.Brief(high)
	}
	if len(rows) > 0 {
		columns[0].title = GroupHeading(rows[0].GroupBy)
	}
	cause := -1 // which value of a group is the id of a cause
	if len(rows) > 0 {
		cause = slices.Index(strings.Split(rows[0].GroupBy, ","), "cause.id")
	}
	if cause >= 0 {
		columns[0].foot, columns[0].meaning = causeFoot, claim.Meaning
	}
	t := newTable(w, theme, width, columns)
	if len(rows) > 0 && !strings.HasPrefix(rows[0].GroupBy, "size") {
		t.by = cmp.Or(t.by, "SUM")
	}
	total := analyze.Total(rows)
	if len(rows) > 1 && width > 0 {
		rows = append(slices.Clip(rows), total)
	}
	for _, s := range rows {
		if cause >= 0 && cause < len(s.Group) {
			t.explain(0, s.Group[cause])
		}
		p50, p90, p99, worst := theme.quantiles(&s.Latency)
		stalled := theme.number(0)
		if share := stalledShare(s); share != "" {
			stalled = cell{text: share, ink: theme.warn}
		}
		if err := t.row([]cell{
			{text: clean(s.Name), ink: theme.key},
			theme.number(s.Requests),
			theme.number(s.Attempts),
			theme.number(int64(s.Errors)),
			theme.number(int64(s.NoReply)),
			theme.number(int64(s.Retransmitted)),
			p50, p90, p99, worst, theme.sum(&s.Latency, s.TotalNS),
			stalled,
			theme.bytes(s.Bytes),
			{text: Size(s.CallBytes.Total())},
			{text: forms(s.CallBytes)},
			{text: Size(s.ReplyBytes.Total())},
			{text: forms(s.ReplyBytes)},
			{text: placeShares(s)},
			{text: theme.histogram(s.Histogram(low, high, histogramCells)), ink: theme.flight},
			{text: provenShares(s)},
			theme.number(int64(s.Congested)).in(theme.warn),
			{text: phaseShares(s)},
			{text: fmt.Sprint(s.ExplicitRDMA)},
			theme.number(int64(s.FitsInlineAt["65536"])),
		}); err != nil {
			return err
		}
	}
	return t.end()
}

// histogramCells is the number of characters of a histogram.
const histogramCells = 16

// levels are the characters of charts that are one line high, from empty to full.
func (t *Theme) levels() []string {
	if t.unicode {
		return t.glyphs.levels
	}
	return asciiLevels
}

// full says what the largest value of a chart is drawn as.
func (t *Theme) full() string { return t.levels()[len(t.levels())-1] + " =" }

// scale returns the characters of a chart in their order after some text, or nothing if they show it themselves.
func (t *Theme) scale(after string) string {
	if t.unicode {
		return ""
	}
	return after + "low " + strings.Join(asciiLevels[1:], "") + " high"
}

// histogram draws each count as one character. Only a count of 0 is drawn as a space.
func (t *Theme) histogram(counts []int) string {
	levels := t.levels()
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

// asciiLevels are the levels of charts without Unicode. A point is none of them: it is a number, 0.
var asciiLevels = strings.Split(" ,:-=+*%#", "")

// forms returns the number of bytes by form.
func forms(f analyze.Forms) string {
	return Size(f.Short) + "/" + Size(f.Chunked) + "/" + Size(f.Long)
}

// cellOf makes a function for column.cell.
func cellOf[T any](text func(T) string) func(any) any {
	return func(r any) any { return text(r.(T)) }
}

// shareOf returns parts of a time as percentages of it, with slashes between them.
func shareOf(all int64, parts ...int64) string {
	var texts []string
	for _, ns := range parts {
		texts = append(texts, fmt.Sprintf("%d%%", (ns*100+all/2)/all))
	}
	return strings.Join(texts, "/")
}

// phaseShares returns the percentages of the time that passed in RDMA Reads, in RDMA Writes and in waits, and of the
// rest, which is the server's or the network's.
func phaseShares(s *analyze.Stats) string {
	if s.TotalNS == 0 {
		return "-"
	}
	return shareOf(s.TotalNS, s.Phases.ReadNS, s.Phases.WriteNS, s.Phases.WaitNS, s.Phases.ToReadNS+s.Phases.ToWriteNS+s.Phases.ToReplyNS)
}

// placeShares returns the percentages of the time that passed at the client, in the network, and at the server, or
// nothing without captures at both ends.
func placeShares(s *analyze.Stats) string {
	p, known := s.Split.Get()
	network := p.RequestNetworkNS + p.ReplyNetworkNS
	all := p.ClientNS + network + p.ServerNS
	if !known || all == 0 {
		return ""
	}
	return shareOf(all, p.ClientNS, network, p.ServerNS)
}

// provenShares returns the percentages of the time that provably passed at the client, in the network and at the server, and
// of the rest, or nothing if no part is proven.
func provenShares(s *analyze.Stats) string {
	p := &s.Shares
	proven := p.ClientNS.Min + p.NetworkNS.Min + p.ServerNS.Min
	if s.TotalNS == 0 || proven == 0 {
		return ""
	}
	return shareOf(s.TotalNS, p.ClientNS.Min, p.NetworkNS.Min, p.ServerNS.Min, s.TotalNS-proven)
}

// stalledShare returns the percentage of the latency in which RPCs were stalled, or nothing if they were not.
func stalledShare(s *analyze.Stats) string {
	if s.TotalNS == 0 || s.Phases.WaitNS == 0 {
		return ""
	}
	return shareOf(s.TotalNS, s.Phases.WaitNS)
}

// some returns a number, or nothing if it is 0.
func some(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// ConnectionDetail writes all facts about one connection, one on each line.
func ConnectionDetail(to Screen, c *record.Connection, start record.Time) error {
	theme := to.Theme
	axis := Axis{Start: start}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s\n", theme.key.of(fmt.Sprintf("connection %d", c.ID)), c.Transport, c.UpperLayer)
	row := func(name, format string, args ...any) {
		for _, line := range wrapped(fmt.Sprintf(format, args...), to.Width-24) {
			fmt.Fprintf(&b, "  %-21s %s\n", name, line)
			name = ""
		}
	}
	row("client", "%s", endpoint(c.Client))
	row("server", "%s", endpoint(c.Server))
	if pair := query.QPNs(c); pair != "" {
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
		row("ended", "%s", endingDetail(&end))
		if end.OutstandingCalls > 0 {
			text := record.CallsAtEnd(end.OutstandingCalls, end.NotAccepted)
			if list := outstanding(end.OutstandingCalls, end.XIDs); list != "" {
				text += ": " + list
			}
			row("unfinished", "%s", text)
		}
	}
	for _, side := range []struct {
		name string
		p    *record.PrivateData
	}{{"client announces", c.PrivateData.Client}, {"server announces", c.PrivateData.Server}} {
		if side.p == nil {
			if NoTimeline(c) == "" {
				row(side.name, "no RPC-over-RDMA private data")
			}
			continue
		}
		at := ""
		if side.p.Offset > 0 {
			at = fmt.Sprintf(", at byte %d", side.p.Offset)
		}
		row(side.name, "version %d, send %d B, receive %d B, invalidation %s%s", side.p.Version, side.p.SendSize, side.p.ReceiveSize, yesNo(side.p.RemoteInvalidation), at)
	}
	if limits, known := c.InlineThreshold.Get(); known {
		row("inline thresholds", "%d B to server, %d B to client (%s)", limits.ClientToServer, limits.ServerToClient, strings.ReplaceAll(limits.Source, "_", " "))
	}
	if mtu, known := c.PathMTU.Get(); known {
		row("path MTU", "%d B", mtu)
	}
	row("RPCs", "%d%s", c.RPCs, inAttempts(c.RPCs, c.Transactions))
	from := func(n int64, of record.FromPair) string { // a number of packets, and of each side's if they are known
		text := field.Count(n)
		if n > 0 && of.FromClient+of.FromServer == n {
			text += fmt.Sprintf(" (client %s, server %s)", field.Count(of.FromClient), field.Count(of.FromServer))
		}
		return text
	}
	row("packets", "%s", field.Count(c.Packets))
	if c.Retransmitted > 0 {
		row("retransmitted", "%s, %s of all", from(c.Retransmitted, c.Path.Repeated), percentOf(c.Retransmitted, c.Packets))
	}
	if n := c.OutOfOrder; n > 0 {
		row("out of order", "%s", from(n, c.Path.Late))
	}
	if c.Naks+c.RNRNaks > 0 {
		row("NAKs", "%d, RNR NAKs %d (receiver not ready)", c.Naks, c.RNRNaks)
	}
	pathDetail(&c.Path, row)
	if c.NotCaptured > 0 { // a property of the capture, not of the network
		row("capture", "%s", theme.dim.of(record.Plural(c.NotCaptured, "packet")+" not captured"))
	}
	_, err := fmt.Fprintf(to.Out, "%s\n", b.String())
	return err
}

// pathDetail writes what the packets of a connection show about their way.
func pathDetail(p *record.ConnectionPath, row func(name, format string, args ...any)) {
	if at, known := p.Point.At.Get(); known {
		row("capture point", "%s", map[record.Place]string{
			record.AtClient: "the client", record.AtServer: "the server", record.Between: "neither host", record.AtBothEnds: "both ends",
		}[at])
	}
	for _, end := range p.Point.NotAt {
		row("capture point", "not at the %s: its packets came out of order", end)
	}
	for _, way := range []struct {
		name  string
		trips record.Opt[record.RoundTrips]
	}{{"round trips to server", p.RoundTrips.ToServer}, {"round trips to client", p.RoundTrips.ToClient}} {
		if t, measured := way.trips.Get(); measured {
			row(way.name, "p50 %s, worst %s (packet %d), of %d", field.Brief(t.P50NS), field.Brief(t.MaxNS), t.MaxPacket, t.Count)
		}
	}
	n := &p.Congestion
	if n.CEToClient+n.CEToServer+n.CNPFromClient+n.CNPFromServer > 0 {
		row("congestion", "%s to the server and %d to the client marked (CE); %s of the client and %d of the server",
			record.Plural(n.CEToServer, "packet"), n.CEToClient, record.Plural(n.CNPFromClient, "CNP"), n.CNPFromServer)
	}
	if n.PauseFrames > 0 {
		row("pauses", "%s paused a link meanwhile (PFC)", record.Plural(n.PauseFrames, "frame"))
	}
}
