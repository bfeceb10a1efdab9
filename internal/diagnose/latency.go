package diagnose

import (
	"fmt"
	"maps"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// credits finds Calls that waited for a credit.
func credits(d *diagnosis) {
	type waited struct {
		r *rpc
		w *wait
	}
	var list []waited
	for _, r := range d.rpcs {
		for i := range r.waits {
			if w := &r.waits[i]; w.Reason == record.CreditLimit && w.by.free() {
				list = append(list, waited{r, w})
			}
		}
	}
	least, granted := 0, uint32(0)
	for _, c := range d.connections {
		use := c.Credits.Or(record.CreditPair{}).Forward
		n, known := use.Granted.Get()
		if known && use.PeakInFlight.Or(0) >= int(n) && n > 0 && (granted == 0 || n < granted) {
			granted, least = n, least+1
		}
	}
	if len(list) == 0 && (granted == 0 || granted > 8) {
		return
	}
	p := d.begin(record.Note, record.InConfig)
	for _, x := range list {
		if x.w.by.take(p) {
			p.blocks(x.w.From, x.w.To)
			p.note(x.r, x.w.NS)
			p.waited(x.r)
			p.during(x.w.From, x.w.To)
		}
	}
	ns := union(p.blocked)
	if ns >= slow && len(list) >= 3 {
		p.Severity = record.Warning
	}
	p.Headline = fmt.Sprintf("at most %s at a time (credits)", number(granted, "request"))
	if granted == 0 {
		p.Headline = "all credits were in use"
	}
	if len(list) > 0 {
		p.Headline += fmt.Sprintf("; %s waited %s", number(len(list), "Call"), wallTime(p.blocked))
	}
	if p.Command = []string{"connections"}; len(list) > 0 {
		p.Command = ladder(p.worst())
	}
}

// slowServer finds servers that take long for everything.
func slowServer(d *diagnosis) {
	for _, server := range slices.Sorted(maps.Keys(d.work)) {
		d.slow(server, d.work[server])
	}
}

// slow makes a problem of a server that takes long for everything, by what it took for each request.
func (d *diagnosis) slow(server string, h *hdrhistogram.Histogram) {
	trip, count := int64(0), int64(0)
	for _, c := range d.connections {
		if t, known := c.Path.RoundTrips.ToServer.Get(); known && t.Count > count && c.ofRPC() && c.server == server {
			trip, count = t.P50NS, t.Count
		}
	}
	median := h.ValueAtQuantile(50)
	if h.TotalCount() < 30 || count == 0 || median < 10e6 || median < 8*trip {
		return
	}
	p := d.begin(record.Note, record.InServer)
	p.Headline = fmt.Sprintf("takes %s for an RPC (median), round trips %s", field.Brief(median), field.Brief(trip))
	p.Effect = fmt.Sprintf("%s without stalls, transfers not counted", number(h.TotalCount(), "RPC"))
	for _, r := range d.rpcs {
		if r.server == server && !r.mounting && !r.backward && r.latency >= slow && r.slowly.free() {
			p.latency(r)
		}
	}
	if union(p.blocked) >= 1e9 {
		p.Severity = record.Warning
	}
	if r := p.worst(); r != nil {
		p.Effect += fmt.Sprintf(", worst %s took %s", r.name(), atMost(r))
		p.proof(r.call, "Call of the worst")
		p.proof(r.reply, "Reply")
	}
	p.about(pair{server: server})
	p.Command = []string{"stats"}
}

// slowRPC finds RPCs that took long, for no reason that an earlier kind has: those for files, and those of mounting and recovery.
func slowRPC(d *diagnosis) {
	var files, mounts []*rpc
	for _, r := range d.rpcs {
		left := false
		for i := range r.waits {
			left = left || r.waits[i].by.free() && r.waits[i].ns >= slow
		}
		switch {
		case (r.latency < slow || !r.slowly.free()) && !left:
		case r.mounting:
			mounts = append(mounts, r)
		default:
			files = append(files, r)
		}
	}
	d.slowRPCs(files, "")
	d.slowRPCs(mounts, "mount/session: ")
}

// slowRPCs makes a problem of slow RPCs. It is a warning if somebody waited at least 1 s for one of them, or at least 1 s together for many: a tenth of
// all RPCs for files.
func (d *diagnosis) slowRPCs(list []*rpc, prefix string) {
	if len(list) == 0 {
		return
	}
	p := d.begin(record.Note, record.InNetwork, record.InServer)
	server, client, network := true, true, true // the capture proves that it took most of each
	backward, long := true, false
	for _, r := range list {
		p.latency(r)
		long = long || r.least >= 1e9 && !noTask[r.operation]
		server = server && 2*r.serverMin >= r.latency
		client = client && 2*r.clientMin >= r.latency
		network = network && r.point == record.AtBothEnds && 2*r.networkMin >= r.latency // one point does not tell it from adapters
		backward = backward && r.backward
	}
	switch {
	case server && !backward, client && backward:
		p.Places = []record.ProblemPlace{record.InServer}
	case client:
		p.Places = []record.ProblemPlace{record.InClient}
	case network:
		p.Places = []record.ProblemPlace{record.InNetwork}
	case backward:
		p.Places = []record.ProblemPlace{record.InClient, record.InNetwork}
	case slices.ContainsFunc(list, func(r *rpc) bool { return 2*r.clientMax >= r.latency || r.serverMax == 0 }):
		p.Places = []record.ProblemPlace{record.InClient, record.InNetwork, record.InServer}
	}
	if long || prefix == "" && int64(len(list))*10 >= d.totals.files && union(p.blocked) >= 1e9 {
		p.Severity = record.Warning
	}
	worst := p.worst()
	p.Headline = fmt.Sprintf("%s%s took %s", prefix, worst.name(), atMost(worst))
	if n := int64(len(list)); n > 1 {
		p.Headline = fmt.Sprintf("%s%s took >= 100 ms; worst %s %s", prefix, number(n, "RPC"), atMost(worst), worst.name())
	}
	p.proof(worst.call, "Call")
	p.proof(worst.reply, "Reply")
	p.Command = ladder(worst)
}

// latency claims the latency of an attempt, and what is left of its waits.
func (p *problem) latency(r *rpc) {
	r.slowly.take(p)
	p.waits(r)
	ns := max(r.least, 0)
	p.note(r, ns)
	p.waited(r)
	if !noTask[r.operation] {
		p.blocks(r.sent, r.sent+record.Time(ns))
	}
	p.during(r.sent, r.sent+record.Time(max(r.latency, 0)))
}

// atMost returns the latency of an attempt, with a sign if it is an upper bound.
func atMost(r *rpc) string {
	if r.least < r.latency {
		return "<= " + field.Brief(r.latency)
	}
	return field.Brief(r.latency)
}

// slowClient finds clients that acknowledge late.
func slowClient(d *diagnosis) {
	if len(d.problems) > 0 {
		return
	}
	for _, c := range d.connections {
		client, known := c.Path.RoundTrips.ToClient.Get()
		server, too := c.Path.RoundTrips.ToServer.Get()
		if !known || !too || client.Count < 20 || server.Count < 20 || client.P50NS < 10e6 || client.P50NS < 5*server.P50NS {
			continue
		}
		p := d.begin(record.Note, record.InClient)
		p.Headline = fmt.Sprintf("acknowledges Replies after %s (server: %s)", field.Brief(client.P50NS), field.Brief(server.P50NS))
		p.conns[c.ID] = 1
		p.about(c.pair)
		return
	}
}
