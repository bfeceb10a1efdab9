// Package diagnose tells what went wrong in a capture: a list of problems, the worst first, each with what it cost, where it comes from and
// what proves it. A problem is a view of facts that other packages have proven; this one decides which of them belong together.
//
// A Collector takes records and keeps a summary of bounded size (facts.go). Then the kinds of problems run in the order of the
// table in kinds.go, which is the order of causes: each claims what it explains (claim.go), so that a later kind sees only what is
// left. At last the problems are ranked by their harm (rank.go).
//
// To add a kind, add a row to the table, a function that finds it, its page in docs/problems, and two captures to the tests: one for which it
// speaks, and a twin for which it must not.
package diagnose

import (
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Collector collects the facts about a capture. The zero value is empty.
type Collector struct {
	f        facts
	overlaps func(from, to record.Time) bool // of the window; nil for the whole capture
	endless  bool                            // the oldest facts make room for new ones
}

// Endless says that the capture goes on: of too many facts, the latest are kept.
func (c *Collector) Endless() { c.endless = true }

// room returns a list with room for another fact, and whether it has it. An endless capture forgets the older half of a full list.
func room[T any](c *Collector, list []T, most int) ([]T, bool) {
	if c.endless && len(list) >= most {
		list = slices.Delete(list, 0, most/2)
	}
	return list, len(list) < most
}

// Only says which span of time the problems are about: overlaps reports whether another one overlaps it.
func (c *Collector) Only(overlaps func(from, to record.Time) bool) { c.overlaps = overlaps }

// Transaction adds an RPC. It does not keep r.
func (c *Collector) Transaction(r *record.Transaction) {
	f := &c.f
	f.totals.add(r)
	f.worked(r)
	f.clients(r)
	f.recalled(r)
	f.state(r)
	f.answered(r)
	f.tripsAround(r)
	f.promised(r)
	if !remarkable(r) {
		return
	}
	var fits bool
	if f.rpcs, fits = room(c, f.rpcs, maxRPCs); !fits {
		f.droppedRPCs++
		return
	}
	f.rpcs = append(f.rpcs, newRPC(r))
}

// answered notes when a server answered.
func (f *facts) answered(r *record.Transaction) {
	if r.Reply == nil || r.Direction == record.Backward {
		return
	}
	a := entry(&f.answers, pairOf(r), maxAnswers)
	if a == nil {
		return
	}
	if a.seconds == nil {
		a.from = r.Start()
	}
	if a.add(r.Reply.Time); r.LatencyNS.Or(0) >= muteFor {
		for i := range r.Timeline {
			if e := &r.Timeline[i]; e.From == record.Responder {
				a.add(e.Time)
			}
		}
	}
}

// Task adds a task. It does not keep r.
func (c *Collector) Task(r *record.Task) {
	f := &c.f
	if outcome, known := r.Outcome.Get(); known && len(f.outcomes) < maxRPCs {
		if f.outcomes == nil {
			f.outcomes = map[int64]record.Outcome{}
		}
		f.outcomes[r.Request] = outcome
	}
}

// remarkable reports whether something happened to an RPC that a problem may have to explain.
func remarkable(r *record.Transaction) bool {
	if r.Status != record.Complete || r.LatencyNS.Or(0) >= slow || r.RetransmitOf.Known() || r.RetryOf.Known() || r.Failed() || r.LatencyMinNS.Known() || len(r.Findings) > 0 {
		return true
	}
	return slices.ContainsFunc(r.Waits, func(w record.Wait) bool { return w.Reason != record.HeadOfLine })
}

// add adds an RPC to the sums.
func (t *totals) add(r *record.Transaction) {
	if r.Attempt <= 1 {
		if t.requests++; r.Direction == record.Backward || r.Transport == "TCP" || r.Transport == "UDP" {
			t.others++
		}
	}
	latency, known := r.LatencyNS.Get()
	if !known {
		return
	}
	t.latency += latency
	if forFiles(r) {
		t.files++
	}
}

// forFiles reports whether a transaction is an answered request for files.
func forFiles(r *record.Transaction) bool {
	return r.LatencyNS.Known() && !r.OfMounting() && r.Direction == record.Forward && r.Status == record.Complete && r.ProgramName.Or("") == "NFS"
}

// longestWork is the longest time for an answer that is told from longer ones: ten hours, in nanoseconds.
const longestWork = 1 << 45

// worked notes how long a server took for an answered request for files without stalls.
func (f *facts) worked(r *record.Transaction) {
	p := r.Phases.Or(record.Phases{})
	if !forFiles(r) || p.WaitNS != 0 {
		return
	}
	h := entry(&f.work, r.Server.Or(""), maxAnswers)
	if h == nil {
		return
	}
	if h.TotalCount() == 0 {
		*h = *hdrhistogram.New(1, longestWork, 2)
	}
	h.RecordValue(min(max(p.ToReadNS.Or(0)+p.ToWriteNS.Or(0)+p.ToReplyNS.Or(0), 0), longestWork)) // it fails only for a value out of range
}

// recalled notes that a server asked for a delegation or layout, and that a client returned one.
func (f *facts) recalled(r *record.Transaction) {
	if r.Call == nil {
		return
	}
	switch operation := r.Operation.Or(""); {
	case operation == "CB_RECALL" && len(f.recalls) < maxFindings && (r.File.Known() || r.FileHandle.Known()):
		f.recalls = append(f.recalls, recalled{
			pair: pairOf(r), file: r.File.Or(""), handle: r.FileHandle.Or(""), at: r.Call.Time, packet: r.Call.First(),
		})
	case operation == "DELEGRETURN" && r.Succeeded():
		for i := range f.recalls {
			if x := &f.recalls[i]; x.returned == 0 && r.Call.Time >= x.at && (x.handle != "" && x.handle == r.FileHandle.Or("") || x.file != "" && x.file == r.File.Or("")) {
				x.returned, x.back = r.Call.Time, r.Call.First()
				return
			}
		}
	}
}

// clients notes what shows that a client mounted, left or restarted.
func (f *facts) clients(r *record.Transaction) {
	if r.Direction == record.Backward || r.Call == nil {
		return
	}
	if f.calledLast == nil {
		f.calledLast = map[int]record.Time{}
	}
	hosts, at := pairOf(r), r.Call.Time
	if last, had := f.calledLast[r.Connection]; (had || len(f.calledLast) < maxConnections) && at > last {
		f.calledLast[r.Connection] = at
	}
	if r.Succeeded() && r.ProgramName.Or("") == "NFS" && !r.OfMounting() {
		if m := entry(&f.mounts, hosts, maxConnections); m != nil {
			m.latest, m.used = max(m.latest, at), m.used || !looks[r.Operation.Or(r.ProcedureName.Or(""))]
		}
	}
	if verifier, known := r.BootVerifier.Get(); known && len(f.boots) < maxFindings {
		f.boots = append(f.boots, boot{hosts, r.ClientOwner.Or(""), verifier, r.Connection, at, r.Call.First()})
	}
	if len(f.leaves) < maxFindings && slices.ContainsFunc(r.Operations, func(name string) bool { return name == "DESTROY_SESSION" || name == "DESTROY_CLIENTID" }) {
		f.leaves = append(f.leaves, leave{hosts, at})
	}
}

// state notes what a restart of the server could explain.
func (f *facts) state(r *record.Transaction) {
	if r.Direction == record.Backward || r.Reply == nil {
		return
	}
	value, wrote := r.WriteVerifier.Get()
	status := r.NFSStatus.Or("")
	if !wrote && !stateStatuses[status] {
		return
	}
	s := entry(&f.servers, r.Server.Or(""), maxFindings)
	if s == nil {
		return
	}
	if stateStatuses[status] && len(s.lost) < maxFindings {
		s.lost = append(s.lost, stateLost{r.Reply.Time, status, r.Reply.First(), r.Client.Or("")})
	}
	if !wrote {
		return
	}
	i := slices.IndexFunc(s.verifiers, func(v verifier) bool { return v.value == value })
	if i < 0 && len(s.verifiers) < 64 {
		s.verifiers = append(s.verifiers, verifier{value, r.Reply.Time, r.Reply.Time, r.Reply.First()})
	} else if i >= 0 {
		v := &s.verifiers[i]
		v.last = max(v.last, r.Reply.Time)
		if r.Reply.Time < v.first {
			v.first, v.packet = r.Reply.Time, r.Reply.First()
		}
	}
}

// Connection adds a connection. It does not keep r.
func (c *Collector) Connection(r *record.Connection) {
	var fits bool
	if c.f.connections, fits = room(c, c.f.connections, maxConnections); !fits {
		c.f.droppedConnections++
		return
	}
	hosts := pair{r.Client.Address.Or(""), r.Server.Address.Or("")}
	c.f.connections = append(c.f.connections, &connection{Connection: *r.Clone(), pair: hosts, accept: r.Established.Known()})
}

// Finding adds a finding. It does not keep r.
func (c *Collector) Finding(r *record.Finding) {
	if r.Severity == record.Note {
		c.f.note(r)
		return
	}
	var fits bool
	if c.f.findings, fits = room(c, c.f.findings, maxFindings); !fits {
		c.f.droppedFindings++
		return
	}
	c.f.findings = append(c.f.findings, &finding{Finding: *r.Clone()})
}

// note counts a note.
func (f *facts) note(r *record.Finding) {
	for _, n := range f.notes {
		if n.first.Rule == r.Rule && n.first.AtFault == r.AtFault {
			n.count++
			return
		}
	}
	f.notes = append(f.notes, &note{finding{Finding: *r.Clone()}, 1})
}

// Operation adds an RDMA operation of another upper layer. It does not keep r.
func (c *Collector) Operation(r *record.RDMAOperation) {
	if r.Transaction.Known() {
		return
	}
	for i := range r.Waits {
		var fits bool
		if c.f.stalls, fits = room(c, c.f.stalls, maxStalls); !fits {
			return
		}
		w := &r.Waits[i]
		c.f.stalls = append(c.f.stalls, &stall{wait: newWait(w, w.NS), connection: r.Connection, operation: r.Kind, side: r.Side})
	}
}

// Network adds what happened to packets between capture points.
func (c *Collector) Network(list []*record.Network) { c.f.network = list }

// shownFor is the capture time for which a problem that is over is told while the capture goes on.
const shownFor = record.Time(60e9)

// SoFar returns the problems of what was added so far that go on, or ended in the last minute before the latest packet of the summary, with the
// connections that open passes to its argument. The Collector goes on afterwards.
func (c *Collector) SoFar(s *record.Summary, open func(func(*record.Connection))) []*record.Problem {
	now, since := *c, s.Last.Or(0)-shownFor
	now.f.rpcs, now.f.findings, now.f.connections, now.f.stalls = copies(c.f.rpcs), copies(c.f.findings), copies(c.f.connections), copies(c.f.stalls)
	for _, r := range now.f.rpcs {
		r.waits = slices.Clone(r.waits)
	}
	now.overlaps = func(from, to record.Time) bool { return to >= since && (c.overlaps == nil || c.overlaps(from, to)) }
	open(func(r *record.Connection) { now.Connection(r) })
	return now.Problems(s)
}

// copies returns copies of facts, whose claims change nothing.
func copies[T any](list []*T) []*T {
	all := make([]T, len(list))
	to := make([]*T, len(list), len(list)+16)
	for i, x := range list {
		all[i] = *x
		to[i] = &all[i]
	}
	return to
}

// Problems returns the problems of all records that were added, the worst first. The summary may be nil. It must be called once, at the end.
func (c *Collector) Problems(s *record.Summary) []*record.Problem {
	if s == nil {
		s = &record.Summary{RDMA: 1}
	}
	f := &c.f
	f.summary, f.first, f.last = s, s.First.Or(0), s.Last.Or(0)
	f.fill()
	d := &diagnosis{facts: f, overlaps: c.overlaps}
	for i := range kinds {
		if d.kind = &kinds[i]; d.unordered && d.kind.needs == ordered {
			continue
		}
		d.kind.find(d)
	}
	return d.ranked()
}
