package report

import (
	"cmp"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/render"
)

// Heights of the rows of a chart.
const (
	slotHigh  = 7 // of one RPC in flight, if there are many
	slotsHigh = 48
	slotMost  = 16
	chartHigh = 48
	heatHigh  = 4 // of one step of latency
	heatSteps = 7 // number of shades
)

// intervals renders the rates.
func (v *page) intervals() error {
	rows, err := v.rates.Rows(v.summary.Last.Or(v.start))
	if err != nil {
		return err
	}
	t := drawn("rate-table", "Intervals", sheet(v, "rates", rows, func(theme *render.Theme) error { return render.Rates(io.Discard, theme, 0, v.start, rows) }),
		"TIME=Start: Start of the interval, in seconds since the start of the capture", "RPCS=RPCs", "ERRORS", "NO REPLY", "TO SERVER", "TO CLIENT", "DATA PER S", "P50", "P99", "WORST", "IN FLIGHT", "CREDITS")
	t.dropEmpty("No reply")
	rpcs, errors, up, down := make([]int, len(rows)), make([]int, len(rows)), make([]int, len(rows)), make([]int, len(rows))
	for i, r := range rows {
		rpcs[i], errors[i], up[i], down[i] = r.RPCs, r.Errors, int(r.BytesToServer), int(r.BytesToClient)
	}
	every := v.rates.Every()
	x := v.wholeTime()
	c := &chart{ID: "rates", From: x.from.Sub(v.start), To: x.to.Sub(v.start), Ticks: ticksOf(x, v.start), Wide: columnsWide, Zero: clock(v.start)}
	bars := func(name, what string, values, over []int, most int, show func(n int64) string) {
		paths := make([]path, 2)
		paths[0].area(spread(x, rows, values), most, chartHigh, nil)
		classes, marks := []string{"flight", "failed"}, []legend{{"flight", what}}
		if over != nil {
			paths[1].area(spread(x, rows, over), most, chartHigh, nil)
			marks = append(marks, legend{"failed", "failed"})
		}
		c.Strips = append(c.Strips, strip{
			Name: name, Title: name + " over time", Desc: fmt.Sprintf("At most %s in one interval of %v; the full height is %s.", show(int64(largest(values))), every, show(int64(most))),
			Height: chartHigh, Shapes: shapesOf(classes, paths), Scale: show(int64(most)), Marks: marks,
		})
	}
	bars("RPCs", "RPCs of each interval", rpcs, errors, largest(rpcs), func(n int64) string { return record.Plural(n, "RPC") })
	both := max(largest(up), largest(down)) // the directions have the same scale
	bars("To server", "bytes that clients sent", up, nil, both, render.Size)
	bars("To client", "bytes that servers sent", down, nil, both, render.Size)
	if s, any := heatMap(x, rows); any {
		c.Strips = append(c.Strips, s)
	}
	v.part("rates", "rates", struct {
		Chart   *chart
		Table   table
		Every   string
		Command string
	}{c, t, every.String(), v.run("stats", "FILE", "--every", every.String())})
	return v.err
}

// largest returns the largest value, or 0 if there is none.
func largest(values []int) (most int) {
	for _, n := range values {
		most = max(most, n)
	}
	return most
}

// wholeTime returns the axis of the pictures of the whole capture, which readers compare.
func (v *page) wholeTime() axis { return axis{v.start, max(v.summary.Last.Or(v.start), v.start+1)} }

// spread gives the value of each interval the columns of its time. A column of several intervals has the largest value.
func spread(x axis, rows []*analyze.Rate, values []int) []int {
	columns := make([]int, columnsWide)
	for i, r := range rows {
		for at := x.column(r.Start); at <= x.column(r.End-1); at++ {
			columns[at] = max(columns[at], values[i])
		}
	}
	return columns
}

// heatMap returns the map of latencies over time: a darker cell stands for more RPCs. The shades are
// on a logarithmic scale, so that a single slow RPC among many is visible.
func heatMap(x axis, rows []*analyze.Rate) (s strip, any bool) {
	from, to, most := analyze.LatencySteps, 0, uint32(0)
	for _, r := range rows {
		steps := r.Steps()
		if steps == nil {
			continue
		}
		for i, n := range steps {
			if n > 0 {
				from, to, most = min(from, i), max(to, i+1), max(most, n)
			}
		}
	}
	if to <= from {
		return s, false
	}
	height := (to - from) * heatHigh
	paths, classes := make([]path, heatSteps), make([]string, heatSteps)
	for i := range classes {
		classes[i] = fmt.Sprintf("h%d", i+1)
	}
	scale := bits.Len32(most)
	for _, r := range rows {
		steps := r.Steps()
		if steps == nil {
			continue
		}
		left, right := x.column(r.Start), x.column(r.End-1)+1
		for step, n := range steps {
			if n > 0 {
				paths[(bits.Len32(n)*heatSteps-1)/scale].box(left, height-(step-from+1)*heatHigh, right-left, heatHigh)
			}
		}
	}
	low, high := render.Duration(analyze.StepStart(from)), render.Duration(analyze.StepStart(to))
	return strip{
		Name: "Latency", Title: "Heat map of latencies over time", Desc: fmt.Sprintf("Latencies from %s at the bottom to %s at the top, on a logarithmic scale; at most %s in one cell.", low, high, record.Plural(int64(most), "RPC")),
		Height: height, Shapes: shapesOf(classes, paths), Scale: low + " to " + high, Marks: []legend{{"h1", "few RPCs"}, {"h7", "many RPCs"}},
	}, true
}

// maxDrawn is the number of connections that have pictures.
const maxDrawn = 24

// busiest returns the connections with the most RPCs.
func (v *page) busiest() []*record.Connection {
	list := slices.Clone(v.all)
	slices.SortStableFunc(list, func(a, b *record.Connection) int { return cmp.Compare(b.Transactions, a.Transactions) })
	return list[:min(len(list), maxDrawn)]
}

// drawCards renders the cards of connections: those with the most RPCs first, while there is space.
func (v *page) drawCards() {
	type drawn struct {
		id   int
		html []byte
	}
	var cards []drawn
	left := len(v.all) + v.others
	for _, c := range v.busiest() {
		b := v.render("card", v.cardOf(c))
		if int64(len(b)) > v.left {
			continue
		}
		v.left -= int64(len(b))
		cards = append(cards, drawn{c.ID, b})
		left--
	}
	slices.SortFunc(cards, func(a, b drawn) int { return cmp.Compare(a.id, b.id) })
	for _, c := range cards {
		v.parts["cards"] = append(v.parts["cards"], c.html...)
	}
	if left > 0 {
		v.omit("%s have no picture: the page has those of the %d with the most RPCs, as far as there is space. %s draws another.", record.Plural(int64(left), "connection"), len(cards), v.run("connections", "FILE", "--conn", "N", "--timeline"))
	}
	var others []ladderView // links lead to them
	for _, c := range v.all {
		if v.known[c.ID] && !slices.ContainsFunc(cards, func(d drawn) bool { return d.id == c.ID }) {
			others = append(others, ladderView{ID: connAnchor(c.ID), Title: fmt.Sprintf("Connection %d", c.ID), Command: v.run("connections", "FILE", "--conn", fmt.Sprint(c.ID), "--timeline")})
		}
	}
	v.part("cards", "endcards", others)
}

// cardOf returns the card of a connection.
func (v *page) cardOf(c *record.Connection) *cardView {
	view := &cardView{ID: connAnchor(c.ID), Title: fmt.Sprintf("Connection %d: %s to %s", c.ID, endpoint(c.Client), endpoint(c.Server))}
	row := func(name, format string, args ...any) {
		view.Facts = append(view.Facts, [2]string{name, fmt.Sprintf(format, args...)})
	}
	row("Transport", "%s, %s", c.Transport, c.UpperLayer)
	row("Handshake", "%s", c.Handshake)
	for _, side := range []struct {
		name string
		data *record.PrivateData
	}{{"Client announces", c.PrivateData.Client}, {"Server announces", c.PrivateData.Server}} {
		if d := side.data; d != nil {
			row(side.name, "version %d, send %d B, receive %d B, remote invalidation %s", d.Version, d.SendSize, d.ReceiveSize, map[bool]string{true: "yes", false: "no"}[d.RemoteInvalidation])
		} else if render.NoTimeline(c) == "" {
			row(side.name, "no RPC-over-RDMA private data")
		}
	}
	if limits, isRPC := c.InlineThreshold.Get(); isRPC {
		row("Inline thresholds", "%d B to the server, %d B to the client (%s)", limits.ClientToServer, limits.ServerToClient, strings.ReplaceAll(limits.Source, "_", " "))
	}
	if mtu, known := c.PathMTU.Get(); known {
		row("Path MTU", "%d B", mtu)
	}
	row("Health", "%s: %d retransmitted, %d out of order, %s, %s, %d not captured", record.Plural(c.Packets, "packet"), c.Retransmitted, c.OutOfOrder, record.Plural(c.Naks, "NAK"), record.Plural(c.RNRNaks, "RNR NAK"), c.NotCaptured)
	end := "open at the end of the capture"
	if e, ended := c.Ended.Get(); ended {
		end = render.EndingText(e.How, e.By)
		if e.OutstandingCalls > 0 {
			end += ", with " + record.CallsAtEnd(e.OutstandingCalls, e.NotAccepted)
		}
	}
	row("End", "%s", end)
	if data := v.cards[c.ID]; data != nil && len(data.spans)+len(data.flows) > 0 {
		v.draw(view, c, data)
	}
	return view
}

// draw adds the pictures of a connection.
func (v *page) draw(view *cardView, c *record.Connection, data *card) {
	data.lengthen(v.rates.Every())
	x := axis{c.First, max(c.Last, c.First+1)}
	chart := &chart{ID: connAnchor(c.ID), From: x.from.Sub(v.start), To: x.to.Sub(v.start), Ticks: ticksOf(x, v.start), Wide: columnsWide, Zero: clock(v.start)}
	view.Chart = chart
	conn := fmt.Sprint(c.ID)
	chart.Commands = []string{v.run("FILE", "--conn", conn), v.run("connections", "FILE", "--conn", conn, "--timeline"), v.run("stats", "FILE", "--conn", conn, "--every", data.every.String())}
	end := c.EndOfCalls()
	v.drawSpans(view, x, end, data)
	v.drawMarks(view, x, c, data)
	forward, backward := data.forward.Finish(c, record.Forward), data.backward.Finish(c, record.Backward)
	if render.NoTimeline(c) == "" {
		v.drawCredits(view, x, forward, "Credits")
		if len(backward.Points) > 0 {
			v.drawCredits(view, x, backward, "Credits, backward")
		}
		v.drawHandles(view, x, data.handles.Finish(c.ID, end))
	}
	v.drawFlows(view, x, data)
	if n := max(data.leftOut, int64(forward.Evicted+backward.Evicted)); n > 0 {
		view.Notes = append(view.Notes, fmt.Sprintf("%d RPCs are not drawn, because the capture has too many.", n))
	}
	if data.notMarked > 0 {
		view.Notes = append(view.Notes, fmt.Sprintf("%d retransmissions, NAKs and stalls are not drawn, because the capture has too many.", data.notMarked))
	}
}

// spanClasses are the classes of the kinds.
var spanClasses = []string{"", "flight", "found", "failed", "stall"}

// drawSpans adds the RPCs in flight; end is the end of those without a Reply.
func (v *page) drawSpans(view *cardView, x axis, end record.Time, data *card) {
	var columns [maxSlots][]kind
	mark := func(slot int, from, to record.Time, k kind) {
		for at := x.column(from); at <= x.column(to); at++ {
			columns[slot][at] = max(columns[slot][at], k)
		}
	}
	counts := [stalled + 1]int64{}
	used, none := slots(data.spans, end, func(slot int, s *span, to record.Time) {
		if columns[slot] == nil {
			columns[slot] = make([]kind, columnsWide)
		}
		mark(slot, s.from, to, s.kind)
		counts[s.kind]++
		for _, w := range s.stalls {
			mark(slot, max(w.from, s.from), min(w.to, to), stalled)
		}
		if len(s.stalls) > 0 {
			counts[stalled]++
		}
	})
	if used == 0 {
		return
	}
	high := min(max(slotsHigh/used, slotHigh), slotMost)
	paths := make([]path, len(spanClasses))
	for slot := range used {
		runs(paths, columns[slot], slot*high, high-1)
	}
	s := strip{
		ID: "spans", Name: "RPCs in flight", Title: "RPCs in flight over time", Height: used * high, Scale: record.Plural(int64(used), "RPC") + " at once", Shapes: shapesOf(spanClasses, paths),
		Desc: fmt.Sprintf("Each bar is an RPC, from its Call to its Reply: %d without a problem, %d with findings, %d with another outcome than ok, %d that stalled.", counts[inFlight], counts[found], counts[failed], counts[stalled]),
	}
	for k, text := range []string{"", "RPC", "with findings", "failed", "stalled"} {
		if k > 0 && (k == 1 || counts[k] > 0) {
			s.Marks = append(s.Marks, legend{spanClasses[k], text})
		}
	}
	if none > 0 {
		view.Notes = append(view.Notes, fmt.Sprintf("More than %d RPCs were in flight at once; %d of them have no bar.", maxSlots, none))
	}
	view.Chart.Strips = append(view.Chart.Strips, s)
}

// drawMarks adds the retransmissions and NAKs.
func (v *page) drawMarks(view *cardView, x axis, c *record.Connection, data *card) {
	if len(data.marks) == 0 {
		return
	}
	columns := make([]kind, columnsWide)
	naks := 0
	for _, m := range data.marks {
		k := inFlight
		if m.nak {
			k = found
			naks++
		}
		at := x.column(m.at)
		columns[at] = max(columns[at], k)
	}
	paths := make([]path, 3)
	for i, k := range columns {
		if k != nothing {
			paths[k].box(i, 0, 1, 12)
		}
	}
	s := strip{
		Name: "Retransmissions", Title: "Retransmissions over time", Height: 12, Shapes: shapesOf([]string{"", "retransmission", "nak"}, paths),
		Marks: []legend{{"retransmission", "retransmission"}},
	}
	parts := []string{record.Plural(int64(len(data.marks)-naks), "retransmission") + ", each of one or more packets"}
	if naks > 0 {
		s.Name, s.Title, s.Marks = "Retransmissions and NAKs", "Retransmissions and NAKs over time", append(s.Marks, legend{"nak", "NAK"})
		parts = append(parts, record.Plural(int64(naks), "NAK"))
	}
	s.Desc = "The timelines of the RPCs have " + strings.Join(parts, ", and ") + "."
	if n := c.Naks + c.RNRNaks; n > int64(naks) && data.notMarked == 0 {
		s.Desc += fmt.Sprintf(" The connection has %s; those that are in no timeline are not drawn.", record.Plural(n, "NAK"))
	}
	view.Chart.Strips = append(view.Chart.Strips, s)
}

// drawCredits adds the credits of one direction.
func (v *page) drawCredits(view *cardView, x axis, c *analyze.Credits, name string) {
	peak, proven := c.PeakInFlight.Get()
	if len(c.Points) == 0 || !proven {
		return
	}
	used, granted := make([]int, columnsWide), make([]int, columnsWide)
	for i := range granted {
		granted[i] = -1
	}
	top := 0
	last := x.column(c.Points[len(c.Points)-1].Time)
	for i, p := range c.Points {
		to := last
		if i+1 < len(c.Points) {
			to = x.column(c.Points[i+1].Time)
		}
		if i+1 == len(c.Points) && p.InFlight.Or(0) > 0 {
			to = columnsWide - 1
		}
		for at := x.column(p.Time); at <= to; at++ {
			used[at] = max(used[at], p.InFlight.Or(0))
			if n, known := p.Granted.Get(); known && (granted[at] < 0 || int(n) < granted[at]) {
				granted[at] = int(n)
				top = max(top, int(n))
			}
		}
	}
	scale, marks := max(peak, top), []legend{{"flight", "Calls in flight"}}
	if c.CreditLimitReached.Or(0) > 0 {
		marks = append(marks, legend{"full", "all credits in use"})
	}
	paths := make([]path, 3)
	grants := fmt.Sprintf("granted up to %d", top)
	switch {
	case top == 0:
		grants = "the capture does not show how many were granted"
	case top > 4*max(peak, 1):
		scale = max(peak, 1) // the line would be far above
		grants += ", which is above the picture"
	default:
		paths[2].line(granted, scale, chartHigh)
		marks = append(marks, legend{"granted", "granted credits"})
	}
	full := func(i int) bool { return granted[i] > 0 && used[i] >= granted[i] }
	paths[0].area(used, scale, chartHigh, func(i int) bool { return !full(i) })
	paths[1].area(used, scale, chartHigh, full)
	reached := "They were never all in use."
	if c.CreditLimitReached.Or(0) > 0 {
		reached = fmt.Sprintf("All were in use %s, for %s.", record.Plural(int64(c.CreditLimitReached.Or(0)), "time"), render.Duration(c.CreditLimitReachedNS.Or(0)))
	}
	view.Chart.Strips = append(view.Chart.Strips, strip{
		Name: name, Title: name + " over time", Height: chartHigh, Shapes: shapesOf([]string{"flight", "full", "granted"}, paths), Scale: record.Plural(int64(scale), "credit"), Marks: marks,
		Desc: fmt.Sprintf("At most %s in flight; %s. %s", record.Plural(int64(peak), "Call"), grants, reached),
	})
}

// drawHandles adds the handles that are exposed.
func (v *page) drawHandles(view *cardView, x axis, h *analyze.Handles) {
	if len(h.Exposures) == 0 {
		return
	}
	columns := levels(x, func(put func(from, to record.Time)) {
		for i := range h.Exposures {
			put(h.Exposures[i].From, h.Exposures[i].To)
		}
	})
	least, most, peak := make([]int, columnsWide), make([]int, columnsWide), 0
	for i, c := range columns {
		least[i], most[i], peak = c.least, c.most, max(peak, c.most)
	}
	paths := make([]path, 2)
	paths[0].area(most, peak, chartHigh, nil)
	paths[1].area(least, peak, chartHigh, nil)
	share := "unknown"
	if s, known := h.RemoteShare.Get(); known {
		share = fmt.Sprintf("%.0f%%", s*100)
	}
	longest := "-"
	if ns, known := h.Exposure.Max.Get(); known {
		longest = render.Duration(ns)
	}
	view.Chart.Strips = append(view.Chart.Strips, strip{
		Name: "Exposed handles", Title: "Exposed handles over time", Height: chartHigh, Shapes: shapesOf([]string{"exposed", "always"}, paths), Scale: record.Plural(int64(peak), "handle"),
		Desc: fmt.Sprintf("%s of %s, at most %d at once, the longest for %s; the responder invalidated %s of them remotely, and %d belong to Calls without a Reply.",
			record.Plural(int64(h.ExposureCount), "exposure"), record.Plural(int64(h.Distinct), "handle"), peak, longest, share, h.NeverInvalidated),
		Marks: []legend{{"exposed", "at most"}, {"always", "at least"}},
	})
	if h.Evicted > 0 {
		view.Notes = append(view.Notes, fmt.Sprintf("%d exposures are not drawn, because the capture has too many.", h.Evicted))
	}
}

// drawFlows adds the bytes per second in both directions.
func (v *page) drawFlows(view *cardView, x axis, data *card) {
	toServer, toClient, most := make([]int, columnsWide), make([]int, columnsWide), int64(0)
	var server, client int64
	for i, f := range data.flows {
		server, client, most = server+f.toServer, client+f.toClient, max(most, f.toServer, f.toClient)
		from := v.start + record.Time(i)*record.Time(data.every)
		to := from + record.Time(data.every)
		if to <= x.from || from >= x.to {
			continue
		}
		for at := x.column(from); at <= x.column(to-1); at++ {
			toServer[at], toClient[at] = max(toServer[at], int(f.toServer)), max(toClient[at], int(f.toClient))
		}
	}
	if most == 0 {
		return
	}
	rate := func(n int64) string { return render.Size(int64(float64(n)/data.every.Seconds())) + "/s" }
	for _, d := range []struct {
		name   string
		values []int
		total  int64
	}{{"To server", toServer, server}, {"To client", toClient, client}} {
		paths := make([]path, 1)
		paths[0].area(d.values, int(most), chartHigh, nil)
		view.Chart.Strips = append(view.Chart.Strips, strip{
			Name: d.name, Title: d.name + ", bytes per second", Height: chartHigh, Shapes: shapesOf([]string{"moved"}, paths), Scale: rate(most),
			Desc:  fmt.Sprintf("%s of RPC messages in total, in intervals of %v; the full height is %s.", render.Size(d.total), data.every, rate(most)),
			Marks: []legend{{"moved", "bytes per second"}},
		})
	}
}
