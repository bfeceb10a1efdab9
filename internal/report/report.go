// Package report writes a report about a capture: one HTML page for a ticket. It has the problems, one timeline, the operations, the
// ladder diagrams of the RPCs that the problems name, the connections, the findings, and what was not judged. The page needs no other
// file, no network and no script, and contains no payload.
//
// A Report collects the records of one pass over the capture. Its memory is bounded, and so is the page, which says what it leaves out.
package report

import (
	"io"
	"slices"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/claim"
	"github.com/rdmadump/rdmadump/internal/diagnose"
	"github.com/rdmadump/rdmadump/internal/query"
)

// These limits bound the memory of a Report, and the size of the page.
const (
	intervals      = 240     // of the timeline
	maxMarks       = 1 << 16 // stalls, and retransmissions, of the timeline
	maxSlow        = 64      // RPCs that are kept for ladder diagrams, the slowest
	maxFailed      = 32      // and the first ones without a Reply, or with another outcome than ok
	maxConnections = 200
	maxOperations  = 100
	maxProblems    = 50
	maxLadders     = 12
)

// File is one of the captures.
type File struct {
	Name   string
	Size   int64  // in bytes
	SHA256 string // in hexadecimal; empty if it is unknown
}

// About says what the page is about, for its parts about the capture and for the commands on it.
type About struct {
	Version   string   // of the program
	Command   []string // arguments of the command line, without the output
	Files     []File
	LinkTypes []string
	Typed     string   // names of the captures, quoted for a shell
	Selection []string // arguments that select RPCs, quoted for a shell
	Selected  string   // sentence about the selection; empty for the whole capture
	Records   string   // sentence about an input that is not a capture; empty otherwise
	Error     string   // why the capture could not be read completely; empty if it was

	Points  []*record.Point   // capture points, if there are several
	Network []*record.Network // what happened between them
}

// Selector selects the records that the page is about. Functions that are nil select everything.
type Selector struct {
	Transaction func(*record.Transaction) bool
	Connection  func(*record.Connection) bool
	Operation   func(*record.RDMAOperation) bool // of any upper layer
	Finding     func(*record.Finding) bool
	Overlaps    func(from, to record.Time) bool // whether a span of time is selected; nil for the whole capture
}

// Report collects the records of a capture.
type Report struct {
	selects Selector
	hide    record.Pseudonyms // nil to show everything
	Hosts   *record.Hosts     // names that the page shows instead of addresses; nil for none
	start   record.Time

	overview  *analyze.Collector
	diagnosis diagnose.Collector
	table     *analyze.Table
	rates     *analyze.Rates

	stalls   []span        // times in which an RPC made no progress
	repeats  []record.Time // of packets that were sent again
	unmarked int64         // stalls and repeats beyond the limit

	slow   []*record.Transaction // the slowest first
	failed []*record.Transaction // the first ones

	connections []*record.Connection
	more        int // connections beyond the limit
	rules       map[string]*ruleSum
}

// span is a time.
type span struct{ from, to record.Time }

// ruleSum is what a Report keeps of the findings of one rule.
type ruleSum struct {
	first   *record.Finding
	counts  map[record.Severity]int64
	example *record.Transaction // an RPC with a finding: that of the first finding if possible; nil if there is none
}

// New returns an empty Report. It shows pseudonyms unless hide is nil.
func New(selects Selector, hide record.Pseudonyms) *Report {
	p := &Report{
		selects: selects, hide: hide, overview: analyze.NewCollector(), table: analyze.NewTable(analyze.ByOperation),
		rates: analyze.NewFittingRates(intervals), rules: map[string]*ruleSum{},
	}
	p.overview.Only(selects.Overlaps)
	p.diagnosis.Only(selects.Overlaps)
	return p
}

// Handler returns the functions that collect records.
func (p *Report) Handler() dissect.Handler {
	task := func(r *record.Task) error {
		p.diagnosis.Task(r)
		return nil
	}
	return dissect.Handler{Begin: p.begin, Transaction: p.transaction, Task: task, Connection: p.connection, Operation: p.operation, Finding: p.finding}
}

// hidden returns a record, with pseudonyms if the page has these, before a Report collects anything of it, so that no
// part of the page can contain what they replace. No message of a finding contains addresses or names.
func hidden[T any](p *Report, r *T) *T {
	if p.hide == nil {
		return record.Named(r, p.Hosts)
	}
	return record.Hidden(r, p.hide)
}

// hiddenRPC returns a transaction as hidden does. The sentence about its cause is made again, from what the pseudonyms have
// replaced: no name that it contained can remain.
func (p *Report) hiddenRPC(r *record.Transaction) *record.Transaction {
	named := hidden(p, r)
	if p.hide != nil && named.Cause.Known() {
		named.Cause = claim.Of(named)
	}
	return named
}

// begin sets the time of the capture's first packet.
func (p *Report) begin(at record.Time) error {
	p.start = at
	p.rates.Begin(at)
	return p.overview.Begin(at)
}

// transaction adds a transaction.
func (p *Report) transaction(r *record.Transaction) error {
	if p.selects.Transaction != nil && !p.selects.Transaction(r) {
		return nil
	}
	r = p.hiddenRPC(r)
	p.overview.Transaction(r)
	p.diagnosis.Transaction(r)
	p.table.Add(r)
	if err := p.rates.Add(r); err != nil {
		return err
	}
	p.mark(r)
	p.keep(r)
	for _, id := range r.Findings {
		if s := p.rule(id); s.example == nil || s.first != nil && s.first.Transaction == record.Some(r.ID) {
			s.example = r.Clone()
		}
	}
	return nil
}

// mark adds the stalls and the retransmissions of a transaction to the timeline.
func (p *Report) mark(r *record.Transaction) {
	for w, ns := range r.Stalls() {
		if len(p.stalls) == maxMarks {
			p.unmarked++
			continue
		}
		p.stalls = append(p.stalls, span{w.From, w.From + record.Time(ns)})
	}
	for i := range r.Timeline {
		if e := &r.Timeline[i]; e.Event != record.EventRetransmit {
			continue
		} else if len(p.repeats) == maxMarks {
			p.unmarked++
		} else {
			p.repeats = append(p.repeats, e.Time)
		}
	}
}

// keep keeps a transaction of which the page may have a ladder diagram: one of the slowest, or of the first that failed. Of equal
// latencies, the first stay.
func (p *Report) keep(r *record.Transaction) {
	if query.Outcome(r) != "ok" && len(p.failed) < maxFailed {
		p.failed = append(p.failed, r.Clone())
	}
	latency, known := r.LatencyNS.Get()
	if !known || len(p.slow) == maxSlow && p.slow[maxSlow-1].LatencyNS.Or(0) >= latency {
		return
	}
	at, _ := slices.BinarySearchFunc(p.slow, latency, func(x *record.Transaction, ns int64) int {
		if x.LatencyNS.Or(0) >= ns {
			return -1
		}
		return 1
	})
	p.slow = slices.Insert(p.slow, at, r.Clone())
	p.slow = p.slow[:min(len(p.slow), maxSlow)]
}

// connection adds a connection, after its transactions.
func (p *Report) connection(r *record.Connection) error {
	if err := p.rates.Connection(r); err != nil {
		return err
	}
	if p.selects.Connection != nil && !p.selects.Connection(r) {
		return nil
	}
	r = hidden(p, r)
	p.overview.Connection(r)
	p.diagnosis.Connection(r)
	if len(p.connections) == maxConnections {
		p.more++
		return nil
	}
	p.connections = append(p.connections, r.Clone())
	return nil
}

// operation adds an RDMA operation.
func (p *Report) operation(r *record.RDMAOperation) error {
	if p.selects.Operation == nil || p.selects.Operation(r) {
		r = hidden(p, r)
		p.overview.Operation(r)
		p.diagnosis.Operation(r)
	}
	return nil
}

// finding adds a finding.
func (p *Report) finding(r *record.Finding) error {
	if p.selects.Finding != nil && !p.selects.Finding(r) {
		return nil
	}
	r = hidden(p, r)
	p.diagnosis.Finding(r)
	s := p.rule(r.Rule)
	if s.first == nil {
		s.first = r.Clone()
	}
	s.counts[r.Severity]++
	return nil
}

// rule returns the sum of a rule.
func (p *Report) rule(id string) *ruleSum {
	s := p.rules[id]
	if s == nil {
		s = &ruleSum{counts: map[record.Severity]int64{}}
		p.rules[id] = s
	}
	return s
}

// Write writes the page. The Report must not be used afterwards.
func (p *Report) Write(w io.Writer, s *record.Summary, a About) error {
	v, err := p.page(s, a)
	if err != nil {
		return err
	}
	return pages().ExecuteTemplate(w, "page", v)
}
