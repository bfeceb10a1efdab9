package diagnose

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// diagnosis is the search for problems.
type diagnosis struct {
	*facts
	overlaps  func(from, to record.Time) bool // of the window; nil for the whole capture
	kind      *kind                           // whose function runs
	problems  []*problem
	gap       *problem          // what the capture lacks; nil if it is complete
	unordered bool              // the packets are not in the order of their times
	early     bool              // a Reply comes before its Call
	outages   map[string][]span // times in which a server, or the path to it, was away, as earlier kinds found them
}

// isAway notes that a server, or the path to it, was away for a time.
func (d *diagnosis) isAway(server string, away span) {
	if d.outages == nil {
		d.outages = map[string][]span{}
	}
	d.outages[server] = append(d.outages[server], away)
}

// wasAway reports whether a server, or the path to it, was away at a time.
func (d *diagnosis) wasAway(server string, in span) bool {
	return slices.ContainsFunc(d.outages[server], in.touches)
}

// span is a time.
type span struct{ from, to record.Time }

// ns returns the length of the time.
func (s span) ns() int64 { return s.to.Sub(s.from) }

// touches reports whether two times overlap.
func (s span) touches(o span) bool { return s.from <= o.to && o.from <= s.to }

// claim says which problem explains something. Every finding of severity error or warning, every end of a connection with Calls in flight, every request
// that failed or was not answered, and every wait and latency of at least 100 ms has one. The first claim holds.
type claim struct{ by *problem }

// free reports whether nothing has claimed it.
func (c *claim) free() bool { return c.by == nil }

// take claims it for a problem unless another has it, and reports whether the problem has it.
func (c *claim) take(p *problem) bool {
	if c.by == nil {
		c.by = p
	}
	return c.by == p
}

// problem is a problem that is being put together.
type problem struct {
	record.Problem
	kind     *kind
	blocked  []span         // times in which a task waited for it
	rpcs     map[*rpc]int64 // that it is about, with the time that it cost each
	tasks    map[*task]bool
	lost     int64 // tasks that never ended well
	conns    map[int]int64
	hosts    [2]map[string]bool // clients, servers
	rules    map[string]int64
	causedBy *problem
	after    harm // of what it caused
	beside   []*problem
	longer   int64 // for its rank, if no task is known to have waited for it: the time for which it went on, at most, in nanoseconds
	doubtful bool  // nothing of it counts for its rank
}

// begin begins a problem of the kind whose function runs. It is one from now on.
func (d *diagnosis) begin(severity record.Severity, places ...record.ProblemPlace) *problem {
	slices.Sort(places)
	p := &problem{kind: d.kind, rpcs: map[*rpc]int64{}, tasks: map[*task]bool{}, conns: map[int]int64{}, hosts: [2]map[string]bool{{}, {}}, rules: map[string]int64{}}
	p.Type, p.ID, p.Severity, p.Places = "problem", d.kind.id, severity, slices.Compact(places)
	d.problems = append(d.problems, p)
	return p
}

// proof adds a packet that proves the problem, unless it has three.
func (p *problem) proof(at record.PacketRef, fact string) {
	if at.Known() && len(p.Evidence) < 3 && !slices.ContainsFunc(p.Evidence, func(e record.ProblemFact) bool { return e.Packet == at.Packet && e.Point == at.Point }) {
		p.Evidence = append(p.Evidence, record.ProblemFact{Packet: at.Packet, Point: at.Point, Fact: fact})
	}
}

// during extends the time of the problem.
func (p *problem) during(from, to record.Time) {
	if from > 0 {
		p.From = record.Some(min(from, p.From.Or(from)))
	}
	if to > 0 {
		p.To = record.Some(max(to, p.To.Or(to)))
	}
}

// about names hosts that the problem is about.
func (p *problem) about(hosts pair) {
	for i, name := range [...]string{hosts.client, hosts.server} {
		if name != "" {
			p.hosts[i][name] = true
		}
	}
}

// blocks says that a task waited for the problem for a time.
func (p *problem) blocks(from, to record.Time) { p.blocked = append(p.blocked, span{from, to}) }

// waited says that the task of an attempt, if it has one, waited for the problem.
func (p *problem) waited(r *rpc) {
	if r.of != nil {
		p.tasks[r.of] = true
	}
}

// waits claims what is left of the waits of an attempt.
func (p *problem) waits(r *rpc) {
	for i := range r.waits {
		r.waits[i].by.take(p)
	}
}

// task claims all tries of a task: what became of them, and their waits.
func (p *problem) task(t *task) {
	if p.tasks[t] {
		return
	}
	mine := false
	for _, last := range t.tries {
		for r := last; r != nil; r = r.before {
			mine = p.all(r) || mine
		}
	}
	if !mine {
		return
	}
	p.tasks[t] = true
	ns := t.blocked()
	p.blocks(t.from, t.from+record.Time(ns))
	p.rpcs[t.tries[0]] = max(p.rpcs[t.tries[0]], ns)
	end := t.tries[len(t.tries)-1]
	if (end.unanswered() || end.failed() && !ordinary[end.failure]) && !t.gaveUp && !end.mounting && !t.open {
		p.lost++
	}
	p.during(t.from, t.to)
	p.Ongoing = p.Ongoing || t.open
}

// all claims an attempt with all that is left of it, and reports whether something was left.
func (p *problem) all(r *rpc) bool {
	free := r.outcome.free() || r.slowly.free()
	mine := r.outcome.take(p)
	mine = r.slowly.take(p) || mine
	p.waits(r)
	if mine && free {
		p.note(r, 0)
		if p == r.outcome.by && r.again == nil {
			switch {
			case r.unanswered():
				p.Unanswered++
			case r.failed() && !putOff[r.failure]:
				p.Failed++
			}
		}
	}
	return mine && free
}

// everything claims all attempts and the ends of all connections.
func (p *problem) everything(d *diagnosis) {
	for _, r := range d.rpcs {
		p.all(r)
	}
	for _, c := range d.connections {
		p.ends(d, c)
	}
}

// isAbout reports whether the problem is about a connection.
func (p *problem) isAbout(connection int) bool {
	_, is := p.conns[connection]
	return is
}

// isAbsence reports whether there is a problem, and it says that a host was away.
func (p *problem) isAbsence() bool {
	return p != nil && (p.ID == "outage" || p.ID == "server-restarted" || p.ID == "server-gone")
}

// calls returns the number of Calls without a Reply that the problem explains.
func (p *problem) calls() (n int64) {
	for r := range p.rpcs {
		if r.outcome.by == p && r.unanswered() {
			n++
		}
	}
	return n
}

// note says that the problem is about an attempt, which it cost so much time.
func (p *problem) note(r *rpc, ns int64) {
	p.rpcs[r] += ns
	p.conns[r.connection] += ns
	p.about(r.pair)
}

// stalled claims a wait of an RPC, and the latency if the wait is most of it.
func (p *problem) stalled(r *rpc, w *wait) bool {
	if !w.by.free() {
		return false
	}
	w.by.take(p)
	ns := w.ns
	if r.least >= 0 {
		ns = min(ns, r.least)
	}
	p.blocks(w.From, w.From+record.Time(ns))
	p.note(r, ns)
	p.waited(r)
	p.during(w.From, w.From+record.Time(w.ns))
	if r.latency < 0 || 2*stalledFor(r, p) >= r.latency || r.latency-stalledFor(r, p) < slow {
		r.slowly.take(p)
	}
	return true
}

// stalledFor returns how long the waits of an RPC that a problem explains took, in nanoseconds; waits that overlap count once.
func stalledFor(r *rpc, p *problem) int64 {
	var list []span
	for i := range r.waits {
		if w := &r.waits[i]; w.by.by == p {
			list = append(list, span{w.From, w.From + record.Time(w.ns)})
		}
	}
	return union(list)
}

// ends claims the end of a connection, and the findings about it.
func (p *problem) ends(d *diagnosis, c *connection) {
	if !c.by.take(p) {
		return
	}
	p.conns[c.ID] += 0
	p.about(c.pair)
	for _, f := range d.findings {
		if f.on(c) && aboutEnd[f.Rule] {
			p.finding(f)
		}
	}
}

// aboutEnd has the rules of findings that say nothing but that a connection ended.
var aboutEnd = map[string]bool{"connection-lost": true, "connection-rejected": true}

// finding claims a finding.
func (p *problem) finding(f *finding) bool {
	if !f.by.free() || !f.by.take(p) {
		return false
	}
	p.rules[f.Rule]++
	if c, known := f.Connection.Get(); known {
		p.conns[c] += 0
	}
	p.about(pair{f.Client.Or(""), f.Server.Or("")})
	p.during(f.Time.Or(0), f.Time.Or(0))
	return true
}

// ref returns the packet of a finding.
func (f *finding) ref() record.PacketRef {
	return record.PacketRef{Packet: f.Packet.Or(0), Point: f.Point}
}

// on reports whether the finding is about a connection.
func (f *finding) on(c *connection) bool { return f.Connection == record.Some(c.ID) }

// inFlight returns the attempts on a connection that got no Reply that was delivered.
func (d *diagnosis) inFlight(connection int) (list []*rpc) {
	for _, r := range d.rpcs {
		if r.connection == connection && r.unanswered() {
			list = append(list, r)
		}
	}
	return list
}

// lose claims the end of a connection and the RPCs that were in flight then.
func (p *problem) lose(d *diagnosis, c *connection) {
	p.ends(d, c)
	for _, r := range d.inFlight(c.ID) {
		if r.outcome.free() {
			p.tasksOf(r)
		}
	}
}

// union returns the length of the union of times, in nanoseconds.
func union(list []span) (ns int64) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	end := record.Time(-1 << 63)
	for _, s := range list {
		if s.to > max(s.from, end) {
			ns += s.to.Sub(max(s.from, end))
			end = s.to
		}
	}
	return ns
}

// wallTime returns the length of times that may overlap.
func wallTime(list []span) string {
	ns := union(list)
	text, sum := field.Brief(ns), int64(0)
	for _, s := range list {
		sum += s.to.Sub(s.from)
	}
	if sum > ns {
		text += " (overlaps counted once)"
	}
	return text
}

// byCount returns the keys of a map, those with the largest values first.
func byCount(counts map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
}

// sortedKeys returns the pairs of hosts of a map in order.
func sortedKeys[T any](all map[pair]T) []pair {
	return slices.SortedFunc(maps.Keys(all), func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.server, b.server))
	})
}
