package render

import (
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
)

var ratesColumns = slices.Concat([]column{
	{
		name: "TIME", fields: "start end", right: true, foot: "start of the interval", moment: true,
		doc: "Start of the interval; the flag --time selects the format.",
	},
	{name: "NAME", fields: "name", flex: true, min: 12},
	{
		name: "RPCS", fields: "requests", right: true, foot: "at the Reply or, without one, the Call",
		doc: "Number of RPCs whose first Call was answered in the interval; one without a Reply counts in the interval of its Call.",
	},
	attemptsColumn("Number of Calls that were answered in the interval, or sent in it if they have no Reply."),
	{name: "FAILED", fields: "failed", right: true, foot: failedFoot},
	{name: "NO REPLY", fields: "no_reply", right: true},
	{
		name: "REPEATED", fields: "retransmitted", right: true, at: 140, foot: repeatedFoot,
		doc: "Number of retransmitted packets of the RPCs that the row counts; the packets may be in other intervals.",
	},
	{name: "CONGESTED", fields: "congested", right: true, wide: true},
	{
		name: "CE", fields: "ce_marks", right: true, at: 200,
		doc: "Number of packets of the interval that a switch marked because of congestion.",
	},
	{
		name: "CNP", fields: "cnps", right: true, at: 200,
		doc: "Number of congestion notification packets of the interval, with which receivers of marked packets ask for a lower rate.",
	},
	{
		name: "PAUSES", fields: "pauses", right: true, at: 200,
		doc: "Number of frames of the interval that paused a link (PFC, or pause frames of Ethernet).",
	},
	{
		name: "RTT SERVER", fields: "shortest=round_trips.min_ns longest=round_trips.max_ns", cell: cellOf(tripsOf), right: true, wide: true,
		doc: "Shortest and longest round trip from clients to servers around the RPCs of the interval, as the capture point shows them; with --by client,server, of each pair of hosts over time.",
	},
	{
		name: "TO SERVER", fields: "bytes_to_server", right: true, at: 180,
		doc: "Number of bytes in the Payload streams that clients sent: Calls, and Replies of callbacks, with the data items in chunks.",
	},
	{
		name: "TO CLIENT", fields: "bytes_to_client", right: true, at: 180,
		doc: "Number of bytes in the Payload streams that servers sent: Replies, and Calls of callbacks, with the data items in chunks.",
	},
	{
		name: "DATA PER S", fields: "bytes_per_s bytes_read bytes_written", right: true, foot: "file data of READ and WRITE",
		doc: "Mean number of bytes of files that READs and WRITEs moved in a second of the interval, in both directions. TO SERVER and TO CLIENT also count the rest of Calls and Replies, and are not divided by the length of the interval.",
	},
}, alike(
	latencyFoot, latencySigns,
	column{name: "P50", fields: "latency.p50_ns", right: true},
	column{name: "P90", fields: "latency.p90_ns", right: true, at: 180},
	column{name: "P99", fields: "latency.p99_ns", right: true, at: 200},
	column{name: "WORST", fields: "latency.max_ns", right: true},
), []column{
	{
		name: "IN FLIGHT", fields: "mean=in_flight.mean peak=in_flight.peak", cell: cellOf(inFlight), right: true, at: 100, foot: "mean/most Calls without their Reply yet",
		doc: "Mean and largest number of Calls that were in flight at one time of the interval. A Call without a Reply is in flight until its connection begins to close or, if the capture does not show that, until the last packet of the connection.",
	},
	{name: "CREDITS", fields: "credits", right: true, at: 180, doc: "Number of credits that the last Reply of the interval granted."},
	{name: "RPCS BAR", at: 80, doc: "The number of RPCs as a bar; the longest bar is that of the busiest interval."},
	{
		name: "LATENCY MAP", at: 140, foot: "short on the left, logarithmic; darker = more RPCs",
		doc: "Heat map of the latencies: one row for each interval, from short to long latencies on a logarithmic scale, with darker characters for more RPCs. The heading has the lower limit of the first column, and the longest latency.",
	},
})

// The numbers of characters of a bar, and of the latencies of an interval.
const (
	rateCells = 16
	heatCells = 24
)

// Rates writes a row for each interval of time: sums, a bar with the number of RPCs, and a row of
// a heat map. The heat map has time from top to bottom and latency from left to right; a darker
// character stands for more RPCs. start is the start of the capture.
func Rates(w io.Writer, theme *Theme, width int, start record.Time, rows []*analyze.Rate) error {
	for len(rows) > 0 && rows[0].Idle() { // before the first RPC
		rows = rows[1:]
	}
	most, longest, heat := 1, int64(0), latencyHeat(rows)
	grouped := false
	for _, r := range rows {
		most, longest = max(most, r.RPCs), max(longest, r.Latency.Max.Or(0))
		grouped = grouped || r.GroupBy != ""
	}
	columns := slices.Clone(ratesColumns)
	at := func(name string) int {
		return slices.IndexFunc(columns, func(c column) bool { return c.name == name })
	}
	if heat.to > heat.from {
		columns[at("LATENCY MAP")].scale = field.Brief(analyze.StepStart(heat.from)) + " .. " + field.Brief(min(analyze.StepStart(heat.to), longest))
	}
	if name := at("NAME"); grouped {
		columns[name].title = GroupHeading(rows[0].GroupBy)
	} else {
		columns = slices.Delete(columns, name, name+1)
	}
	t := newTable(w, theme, width, columns)
	c := clock{form: theme.times, start: record.Some(start)}
	for _, r := range rows {
		p50, p90, p99, worst := theme.quantiles(&r.Latency)
		cells := []cell{
			{text: strings.TrimSuffix(string(c.append(nil, r.Start)), ".000000")},
			{text: clean(r.Name), ink: theme.key},
			theme.number(int64(r.RPCs)),
			theme.number(int64(r.Attempts)),
			theme.number(int64(r.Errors)),
			theme.number(int64(r.NoReply)),
			theme.number(int64(r.Retransmitted)),
			theme.number(int64(r.Congested)).in(theme.warn),
			theme.number(r.CE.Or(0)).in(theme.warn),
			theme.number(r.CNP.Or(0)).in(theme.warn),
			theme.number(r.Pauses.Or(0)).in(theme.warn),
			{text: tripsOf(r)},
			theme.bytes(r.BytesToServer),
			theme.bytes(r.BytesToClient),
			theme.bytes(r.BytesPerS),
			p50, p90, p99, worst,
			{text: inFlight(r)},
			{text: known(r.Credits, "", func(n int) string { return fmt.Sprint(n) })},
			{text: theme.bar(r.RPCs, most, rateCells), ink: theme.flight},
			{text: heat.row(theme, r), ink: theme.moved},
		}
		if !grouped {
			cells = slices.Delete(cells, 1, 2)
		}
		if err := t.row(cells); err != nil {
			return err
		}
	}
	return t.end()
}

// bar draws n of most as a bar of at most cells characters. Only 0 has an empty bar.
func (t *Theme) bar(n, most, cells int) string {
	length := (n*cells + most - 1) / most
	fill := "#"
	if t.unicode {
		fill = t.glyphs.levels[len(t.glyphs.levels)-1]
	}
	return strings.Repeat(fill, length)
}

// heat is the scale of a heat map of latencies: the steps that have latencies, and the largest
// number of latencies in one cell.
type heat struct {
	from, to int // steps
	most     uint32
}

// latencyHeat returns the scale for some intervals.
func latencyHeat(rows []*analyze.Rate) heat {
	h := heat{from: analyze.LatencySteps, most: 1}
	for _, r := range rows {
		if steps := r.Steps(); steps != nil {
			for i, n := range steps {
				if n > 0 {
					h.from, h.to = min(h.from, i), max(h.to, i+1)
				}
			}
		}
	}
	for _, r := range rows {
		for _, n := range h.cells(r) {
			h.most = max(h.most, n)
		}
	}
	return h
}

// cells returns the number of latencies in each cell of an interval's row.
func (h heat) cells(r *analyze.Rate) (cells [heatCells]uint32) {
	steps := r.Steps()
	if steps == nil || h.to <= h.from {
		return cells
	}
	for i := h.from; i < h.to; i++ {
		cells[min((i-h.from)*heatCells/max(h.to-h.from, heatCells), heatCells-1)] += steps[i]
	}
	return cells
}

// row draws the row of an interval. Shades are on a logarithmic scale, so that a single slow RPC
// among many is visible.
func (h heat) row(t *Theme, r *analyze.Rate) string {
	shades := t.levels()
	var b strings.Builder
	scale := bits.Len32(h.most)
	for _, n := range h.cells(r) {
		b.WriteString(shades[(bits.Len32(n)*(len(shades)-1)+scale-1)/scale])
	}
	return strings.TrimRight(b.String(), " ")
}

// tripsOf returns the shortest and the longest round trip to the server, or nothing if there is none.
func tripsOf(r *analyze.Rate) string {
	return known(r.RoundTrips, "", func(t analyze.Trips) string { return field.Brief(t.MinNS) + "/" + field.Brief(t.MaxNS) })
}

// inFlight returns the mean and the largest number of Calls that wait for their Replies, a question mark if it is unknown, or nothing if there are none.
func inFlight(r *analyze.Rate) string {
	return known(r.InFlight, "?", func(l analyze.Level) string {
		if l.Peak == 0 {
			return none
		}
		return fmt.Sprintf("%.1f/%d", l.Mean, l.Peak)
	})
}
