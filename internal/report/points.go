package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/render"
)

// This file renders what happened between several capture points.

// capturePoints renders the capture points, what happened to packets between them, and where the time of RPCs passed.
func (v *page) capturePoints() {
	if len(v.about.Points) < 2 {
		return
	}
	v.part("points", "section", section{
		ID: "points", Name: "Capture points",
		Text:   "The captures contain the same packets at several points. Each packet counts once, and all times are those of the first point's clock.",
		Charts: v.courses(), Tables: []table{clocks(v.about.Points), directions(v), places(&v.ends), splits(v.slow)},
		Commands: []string{v.run("network", "FILE"), v.run("network", "FILE", "--lost"), v.run("FILE", "--top", fmt.Sprint(slowest), "-e", "xid,latency_ns,"+strings.Join(splitFields, ","))},
	})
}

// clocks returns the table of the capture points.
func clocks(list []*record.Point) table {
	t := table{ID: "point-table", Caption: "Capture points", Columns: []column{
		{"Point", "Name of the capture point", false},
		{"Address", "Address of the host at the capture point", false},
		{"Packets", "Number of frames that were captured at the point", true},
		{"Clock ahead", "Time by which the clock is ahead of the clock of the first point, at the first packet of this point", true},
		{"Error", "Largest error of that time", true},
		{"Drift", "Microseconds that the clock gains in a second; a dash if the captures show no drift", true},
		{"Steps", "Jumps of the clock", true},
	}}
	for _, p := range list {
		drift := cell{Text: unknown}
		if ppm, known := p.DriftPPM.Get(); known {
			drift = cell{Text: fmt.Sprintf("%+.1f ppm", ppm)}
		}
		var steps []string
		for _, s := range p.Steps {
			steps = append(steps, fmt.Sprintf("%s at packet %d", signed(s.NS), s.Packet))
		}
		offset := cell{Text: unknown}
		if ns, known := p.OffsetNS.Get(); known {
			offset = number(ns, signed(ns))
		}
		jumps := count(int64(len(steps)))
		if steps != nil {
			jumps.Text += ": " + strings.Join(steps, ", ")
		}
		t.Rows = append(t.Rows, []cell{{Text: render.Clean(p.Name), Head: true}, text(p.Address), count(p.Packets), offset, known(p.ErrorNS), drift, jumps})
	}
	return t
}

// signed returns a duration with its sign.
func signed(ns int64) string {
	if ns < 0 {
		return "-" + render.Duration(-ns)
	}
	return render.Duration(ns)
}

// directions returns the table of what happened to the packets of each direction.
func directions(v *page) table {
	list := v.about.Network
	return drawn("network-table", "Packets between the capture points, by direction", sheet(v, "network", list, func(theme *render.Theme) error {
		return render.Network(render.Screen{Out: io.Discard, Theme: theme}, v.start, nil, list)
	}), "FROM: Capture point that the packets passed first", "TO", "PACKETS", "LOST", "NOT CAPTURED", "UNKNOWN", "REORDERED", "DAMAGED", "DUPLICATED", "MIRROR COPIES", "SHORTEST", "P50", "P90", "P99", "WORST")
}

// courses returns a picture of the delays and losses of each direction over time.
func (v *page) courses() []*chart {
	x := v.wholeTime()
	c := &chart{ID: "network", From: 0, To: x.to.Sub(x.from), Ticks: ticksOf(x, v.start), Wide: columnsWide, Zero: clock(v.start)}
	var all record.NetworkInterval // the largest values, so that the directions have the same scale
	for _, n := range v.about.Network {
		for _, i := range n.Course {
			all.MaxNS, all.Lost, all.Corrupted = record.Some(max(all.MaxNS.Or(0), i.MaxNS.Or(0))), max(all.Lost, i.Lost), max(all.Corrupted, i.Corrupted)
		}
	}
	most := all.MaxNS.Or(0)
	for _, n := range v.about.Network {
		if len(n.Course) < 2 {
			continue
		}
		longest, median := make([]int, columnsWide), make([]int, columnsWide)
		lost, damaged := make([]int, columnsWide), make([]int, columnsWide)
		own := int64(0)
		width := n.Course[1].Start.Sub(n.Course[0].Start)
		for i := range n.Course {
			s := &n.Course[i]
			for at := x.column(s.Start); at <= x.column(s.Start+record.Time(width)-1); at++ {
				longest[at], median[at] = max(longest[at], int(s.MaxNS.Or(0))), max(median[at], int(s.P50NS.Or(0)))
				lost[at], damaged[at] = max(lost[at], int(s.Lost)), max(damaged[at], int(s.Corrupted))
			}
			own = max(own, s.MaxNS.Or(0))
		}
		name := render.Clean(n.From) + " to " + render.Clean(n.To)
		paths := make([]path, 2)
		paths[0].area(longest, int(most), chartHigh, nil)
		paths[1].area(median, int(most), chartHigh, nil)
		c.Strips = append(c.Strips, strip{
			Name: "Delay, " + name, Title: "One-way delays over time, " + name, Height: chartHigh, Shapes: shapesOf([]string{"exposed", "always"}, paths), Scale: render.Duration(most),
			Desc:  fmt.Sprintf("The longest and the median delay in each interval of %v; the longest of all is %s, and the full height is %s.", time.Duration(width), render.Duration(own), render.Duration(most)),
			Marks: []legend{{"exposed", "longest"}, {"always", "median"}},
		})
		for _, of := range []struct {
			what    string
			values  []int
			most, n int64
			class   string
		}{{"lost", lost, all.Lost, n.Lost, "failed"}, {"damaged", damaged, all.Corrupted, n.Corrupted, "found"}} {
			if of.most == 0 {
				continue
			}
			drops := make([]path, 1)
			drops[0].area(of.values, int(of.most), chartHigh/2, nil)
			c.Strips = append(c.Strips, strip{
				Name: strings.ToUpper(of.what[:1]) + of.what[1:] + ", " + name, Title: "Packets " + of.what + " over time, " + name, Height: chartHigh / 2, Shapes: shapesOf([]string{of.class}, drops), Scale: record.Plural(of.most, "packet"),
				Desc: fmt.Sprintf("%s %s, at most %d in one interval; the full height is %d.", record.Plural(of.n, "packet"), of.what, largest(of.values), of.most), Marks: []legend{{of.class, "packets " + of.what}},
			})
		}
	}
	if c.Strips == nil {
		return nil
	}
	return []*chart{c}
}

// places returns the table of where the latency of all RPCs passed.
func places(sums *analyze.Ends) table {
	t := table{ID: "place-table", Caption: fmt.Sprintf("Where the latencies of the %s that were captured at both ends passed", record.Plural(sums.Transactions, "RPC")), Columns: []column{
		{"Place", "Place at which the time passed", false},
		{"Sum", "Sum over all RPCs", true},
		{"Share", "Share of the sum of the latencies", true},
	}}
	all := sums.ClientNS + sums.NetworkNS + sums.ServerNS
	for _, p := range []struct {
		name string
		ns   int64
	}{{"client", sums.ClientNS}, {"network", sums.NetworkNS}, {"server", sums.ServerNS}} {
		if sums.Transactions > 0 {
			t.Rows = append(t.Rows, []cell{{Text: p.name, Head: true}, number(p.ns, render.Duration(p.ns)), {Text: percent(p.ns, all)}})
		}
	}
	return t
}

// splitFields are the fields of the table of splits.
var splitFields = []string{"split.client_ns", "split.request_network_ns", "split.server_ns", "split.server_send_ns", "split.reply_network_ns"}

// splits returns the table of where the latency of the slowest RPCs passed.
func splits(list []*record.Transaction) table {
	t := table{ID: "split-table", Caption: fmt.Sprintf("Where the latencies of the %s passed", record.Plural(int64(len(list)), "slowest RPC")), Columns: []column{
		{"XID", "Transaction ID", false},
		{"Operation", "Program and operation", false},
		{"Latency", "Time from the Call to the Reply", true},
		{"Client", "Time that the caller's host took to respond to RDMA Reads", true},
		{"Request", "Time that the Call and the responses to RDMA Reads took to the other side", true},
		{"Server", "Time that passed at the side that executed the Call", true},
		{"Sending", "Part of that time from the first RDMA Write to the Reply", true},
		{"Reply", "Time that the Reply and the requests of RDMA Reads took to the caller", true},
	}}
	split := false
	for _, r := range list {
		row := []cell{{Text: r.XID.String(), Link: rpcAnchor(r.ID), Head: true}, {Text: operation(r)}, latencyCell(r)}
		s, is := r.Split.Get()
		split = split || is
		for _, ns := range []int64{s.ClientNS, s.RequestNetworkNS, s.ServerNS, s.ServerSendNS, s.ReplyNetworkNS} {
			row = append(row, known(record.SomeIf(ns, is)))
		}
		t.Rows = append(t.Rows, row)
	}
	if !split {
		t.Rows = nil
	}
	return t
}
