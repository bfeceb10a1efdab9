// Package report writes a report about a capture: one HTML page with pictures, tables and ladder
// diagrams. The page needs no other file, no network and no script: a script of the page itself only
// adds zooming, hovering, filtering and the table of all RPCs. It contains no payload.
//
// A Report collects the records of one pass over the capture. Its memory is bounded, and the page
// says what it leaves out.
package report

import (
	"io"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/claim"
	"github.com/rdmadump/rdmadump/internal/diagnose"
)

// DefaultMaxSize is the default size of a page, in bytes. Many programs that keep tickets accept no
// more than 10 MB.
const DefaultMaxSize = 8 << 20

// LeastMaxSize is the smallest size that a page can be limited to, in bytes: it has space for
// everything that a page always contains.
const LeastMaxSize = 1 << 20

// These limits bound the memory of a Report. Those of things that may be very many are in proportion
// to the memory limit, so that each kind takes at most a fifth of it.
const (
	rowShare      = 256  // bytes of the memory limit for each RPC
	exposureShare = 1024 // for each exposed handle
	markShare     = 512  // for each stall, retransmission or NAK
	cardShare     = 1 << 16
	maxNames      = 1 << 12 // operations, and outcomes
	maxClients    = 100     // rows of the table of callers
	intervals     = 240     // of the rates
	slowest       = 10
)

// File is one of the captures.
type File struct {
	Name   string
	Size   int64  // in bytes
	SHA256 string // in hexadecimal; empty if it is unknown
}

// About says what the page is about, for its head and for the commands on it.
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
	MaxSize   int64    // of the page, in bytes

	Points  []*record.Point   // capture points, if there are several
	Network []*record.Network // what happened between them

	Before *Earlier // capture to compare with; nil if there is none
}

// Selector selects the records that the page is about. Functions that are nil select everything.
type Selector struct {
	Transaction func(*record.Transaction) (bool, error) // for all tables
	Drawn       func(*record.Transaction) bool          // for the pictures of connections
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
	clients   *analyze.Table
	files     *analyze.Files
	named     *analyze.Table // the files that records name, which do not say what RPCs did to them
	ends      analyze.Ends
	before    *analyze.Side // nil without a comparison
	after     *analyze.Side
	rates     *analyze.Rates
	rows      rowList
	cards     map[int]*card
	all       []*record.Connection
	others    int // connections without a card or a row

	handlesLeft, creditsLeft, spansLeft, marksLeft int // of the limits

	maxCards int

	slow     []*record.Transaction // the slowest first
	found    []*record.Finding     // the first ones
	rules    map[string]*ruleSum
	severity map[record.Severity]int64
}

// ruleSum is what a Report keeps of the findings of one rule.
type ruleSum struct {
	rule    string
	first   *record.Finding
	counts  map[record.Severity]int64
	example *record.Transaction // an RPC with a finding; nil if there is none
	exact   bool                // it is that of the first finding
}

// filesShare is the part of the memory limit that the table of files may use, as for the command files.
const filesShare = 8

// New returns an empty Report. It shows pseudonyms unless hide is nil. Memory is the memory limit, in bytes.
func New(selects Selector, hide record.Pseudonyms, memory int64) *Report {
	share := func(bytes int64) int { return int(min(max(memory/bytes, 16), 1<<22)) }
	p := &Report{
		selects: selects, hide: hide, overview: analyze.NewCollector(), table: analyze.NewTable(analyze.ByOperation),
		clients: analyze.NewTableOf(callerFields, caller), files: analyze.NewFiles(memory / filesShare), named: analyze.NewTableOf(fileField, file), rates: analyze.NewFittingRates(intervals),
		cards: map[int]*card{}, handlesLeft: share(exposureShare), creditsLeft: share(rowShare), spansLeft: share(rowShare), marksLeft: share(markShare),
		maxCards: share(cardShare), rows: rowList{most: share(rowShare)}, rules: map[string]*ruleSum{}, severity: map[record.Severity]int64{},
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
	if p.hide == nil {
		return record.Named(r, p.Hosts)
	}
	r = hidden(p, r)
	if r.Cause.Known() {
		r.Cause = claim.Of(r)
	}
	return r
}

// begin sets the time of the capture's first packet.
func (p *Report) begin(at record.Time) error {
	p.start = at
	p.rates.Begin(at)
	return p.overview.Begin(at)
}

// transaction adds a transaction.
func (p *Report) transaction(r *record.Transaction) error {
	if p.selects.Drawn == nil || p.selects.Drawn(r) {
		if c := p.card(r.Connection); c != nil {
			c.add(p, r)
		}
	}
	if p.selects.Transaction != nil {
		if wanted, err := p.selects.Transaction(r); err != nil || !wanted {
			return err
		}
	}
	r = p.hiddenRPC(r)
	p.overview.Transaction(r)
	p.diagnosis.Transaction(r)
	p.table.Add(r)
	p.clients.Add(r)
	p.files.Add(r)
	if r.FileUses == nil && r.FileText() != "" {
		p.named.Add(r)
	}
	p.ends.Add(r)
	if p.after != nil {
		p.after.Transaction(r)
	}
	if err := p.rates.Add(r); err != nil {
		return err
	}
	p.rows.add(r)
	p.keepSlow(r)
	for _, id := range r.Findings {
		p.ruleOf(id).offer(r)
	}
	return nil
}

// connection adds a connection, after its transactions.
func (p *Report) connection(r *record.Connection) error {
	if err := p.rates.Connection(r); err != nil {
		return err
	}
	if p.selects.Connection != nil && !p.selects.Connection(r) {
		delete(p.cards, r.ID)
		return nil
	}
	r = hidden(p, r)
	p.overview.Connection(r)
	p.diagnosis.Connection(r)
	if p.after != nil {
		p.after.Connection(r)
	}
	if len(p.all) >= p.maxCards {
		p.others++
		delete(p.cards, r.ID)
		return nil
	}
	p.all = append(p.all, r.Clone())
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
	p.keep(r)
	p.severity[r.Severity]++
	s := p.ruleOf(r.Rule)
	if s.first == nil {
		s.first = r.Clone()
	}
	s.counts[r.Severity]++
	return nil
}

// total returns the number of findings.
func (s *ruleSum) total() (n int64) {
	for _, count := range s.counts {
		n += count
	}
	return n
}

// ruleOf returns the sum of a rule.
func (p *Report) ruleOf(id string) *ruleSum {
	s := p.rules[id]
	if s == nil {
		s = &ruleSum{rule: id, counts: map[record.Severity]int64{}}
		p.rules[id] = s
	}
	return s
}

// offer takes a transaction as the example of a rule: that of the first finding if possible.
func (s *ruleSum) offer(r *record.Transaction) {
	if s.exact {
		return
	}
	s.exact = s.first != nil && s.first.Transaction == record.Some(r.ID)
	if s.exact || s.example == nil {
		s.example = r.Clone()
	}
}

// keepSlow keeps a transaction if it is one of the slowest. Of equal latencies, the first stay.
func (p *Report) keepSlow(r *record.Transaction) {
	latency, known := r.LatencyNS.Get()
	if !known {
		return
	}
	at := len(p.slow)
	for at > 0 && p.slow[at-1].LatencyNS.Or(0) < latency {
		at--
	}
	if at >= slowest {
		return
	}
	p.slow = append(p.slow, nil)
	copy(p.slow[at+1:], p.slow[at:])
	p.slow[at] = r.Clone()
	p.slow = p.slow[:min(len(p.slow), slowest)]
}

// Write writes the page. The Report must not be used afterwards.
func (p *Report) Write(w io.Writer, s *record.Summary, a About) error {
	v, err := p.page(s, a)
	if err != nil {
		return err
	}
	return v.write(w)
}
