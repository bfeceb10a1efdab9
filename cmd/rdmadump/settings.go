package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// settings holds what the flags mean to one view. It does not change after it is made.
type settings struct {
	values

	view     *view
	json     bool
	report   string        // sarif or junit; empty for neither
	filter   *query.Filter // for the view's records; nil for none
	summed   *query.Filter // for the transactions that stats sums up; nil for none
	jq       *gojq.Code
	program  string // source of jq
	columns  *render.Columns
	heading  string // first line of the output of columns
	order    order
	xids     []record.Hex32
	ports    []dissect.Port // what TCP and UDP ports carry
	from, to moment
	by       grouping
	failOn   record.Severity
	ignored  map[string]bool
	known    baseline
	accepted *laterFile // of --write-baseline, if it is open already
	rpc      bool       // records contain decoded arguments and results
	decode   bool       // arguments and results are decoded, for rpc, for packet trees or for a filter
	decoded  bool       // fields of the decoded arguments and results are used
	files    bool       // file handles are resolved
	ladder   bool       // transactions are drawn as ladder diagrams
	notes    []string   // messages about the flags for standard error
	atPoints []string   // names of the capture points; nil if there is only one
}

// order is the order in which records are shown.
type order struct {
	path       string // field to sort by; empty for the order in which records come
	descending bool
	top        int // number of records to keep; 0 keeps all
}

// parse converts the flags for a view. Whole reports whether the input has an end, at which
// records can be sorted.
func (f *flags) parse(v *view, whole bool) (*settings, error) {
	if f.every != 0 && v.takes("every") {
		v = ratesView
	}
	if f.lost && v.name == "network" && (len(f.fields) > 0 || f.output == "csv") {
		v = lostView
	}
	if f.by != "" && (v.name == "rdma" || v.name == "stats" && f.every == 0 && onlyOfOperations(f.by)) {
		if v = operationSumsView; len(f.xids) > 0 {
			return nil, errors.New("RDMA operations cannot be summed up by --by with --xid; -Y 'transaction == N' selects those of an RPC")
		}
	}
	s := &settings{
		values: f.values, view: v, json: f.output == "json", program: f.jq, failOn: record.Severity(f.failOn),
		rpc:    f.rpc || slices.ContainsFunc(append([]string{f.filter, f.sort}, f.fields...), namesRPC),
		decode: f.tree || f.rpc,
	}
	for _, c := range choices {
		if v.takes(c.flag) {
			if v.onePage && c.flag == "output" && f.output == "csv" {
				return nil, fmt.Errorf("-o csv: %s has no table; use -o json, or -o csv with a view that has one, such as rdmadump stats -o csv", v.name)
			}
			if err := oneOf(c.as, c.value(f), c.values(v)...); err != nil {
				return nil, err
			}
		}
	}
	if v.takes("width") {
		if err := s.look.check(v); err != nil {
			return nil, err
		}
	}
	if v.takes("by") {
		var err error
		parse := parseGrouping
		if v == operationSumsView {
			parse = parseOperationGrouping
		}
		if s.by, err = parse(cmp.Or(f.by, analyze.ByOperation)); err != nil {
			return nil, err
		}
		s.by.given = f.by != ""
	}
	if err := s.parseKnown(f); err != nil {
		return nil, err
	}
	var err error
	if s.ports, err = parsePorts(f.decodeAs); err != nil {
		return nil, err
	}
	if f.output == "sarif" || f.output == "junit" {
		s.report = f.output
	}
	if f.count < 0 {
		return nil, fmt.Errorf("-c %d: must not be negative", f.count)
	}
	if f.top < 0 {
		return nil, fmt.Errorf("--top %d: must not be negative", f.top)
	}
	for _, conn := range f.conns {
		if conn < 0 {
			return nil, fmt.Errorf("--conn %d: must not be negative; connections are counted from 0", conn)
		}
	}
	for _, word := range f.xids {
		xid, err := record.ParseHex32(strings.TrimSpace(word))
		if err != nil {
			return nil, fmt.Errorf("--xid %s: must be a 32-bit number, such as 0x4cc9dbf7", word)
		}
		s.xids = append(s.xids, xid)
	}
	for _, limit := range []struct {
		flag, value string
		to          *moment
	}{{"--from", f.from, &s.from}, {"--to", f.to, &s.to}} {
		var err error
		if *limit.to, err = parseMoment(limit.value); err != nil {
			return nil, fmt.Errorf("%s %s: must be a time as in RFC 3339, such as 2026-11-21T04:55:00Z, or seconds since the start of the capture, such as 2.5 or 90s", limit.flag, limit.value)
		}
	}
	if err := s.parseFilter(f.filter); err != nil {
		return nil, err
	}
	if f.jq != "" {
		s.json = true
		program, err := gojq.Parse(f.jq)
		if err == nil {
			s.jq, err = gojq.Compile(program)
		}
		if end := (*gojq.ParseError)(nil); errors.As(err, &end) && end.Token == "" && end.Offset >= len(f.jq) {
			return nil, fmt.Errorf("--jq %s: the jq program is incomplete", f.jq)
		} else if err != nil {
			return nil, fmt.Errorf("--jq %s: %w", f.jq, err)
		}
		if v.takes("field") { // The records of other views have fields of their own.
			s.notes = append(s.notes, query.OnlyInFilters(f.jq, v.fields)...)
		}
	}
	if err := s.parseColumns(f); err != nil {
		return nil, err
	}
	if s.bytes && s.json {
		return nil, fmt.Errorf("-x only applies to text output, because JSON does not contain the bytes of packets")
	}
	if err := s.parseOrder(f, whole); err != nil {
		return nil, err
	}
	s.decoded = slices.ContainsFunc(s.paths(f), query.Decoded)
	s.decode = s.decode || s.decoded
	s.files = v.name == "files" || v.name == "report" || v.name == "overview" && s.json || slices.ContainsFunc(append(s.paths(f), s.look.columns...), namesFile) ||
		v.name == "transactions" && s.columns == nil && (s.json || s.look.wide || s.filter != nil)
	s.ladder = v.name == "transactions" && len(s.xids) > 0 && !s.json && s.columns == nil
	return s, nil
}

// parseColumns determines the fields to print, if not whole records are printed.
func (s *settings) parseColumns(f *flags) (err error) {
	names, csv := f.fields, f.output == "csv"
	switch {
	case len(names) > 0 && s.json:
		return fmt.Errorf("-e only applies to text and CSV; use --jq with -o json")
	case csv && s.json:
		return fmt.Errorf("--jq works on JSON and cannot be combined with -o csv")
	case csv && (s.timeline || s.tree || s.bytes):
		return fmt.Errorf("-o csv writes the rows of a table and no drawings, trees or bytes")
	case csv && len(names) == 0:
		names = render.CSVFields(s.view.fields.Of())
	case len(names) == 0:
		return nil
	}
	if s.columns, err = render.NewColumns(names, s.view.fields); err != nil {
		return fmt.Errorf("-e: %w", err)
	}
	if csv {
		s.heading = s.columns.CSV()
	}
	return nil
}

// paths returns the fields that filters, columns or the order use.
func (s *settings) paths(f *flags) (paths []string) {
	for _, filter := range []*query.Filter{s.filter, s.summed} {
		if filter != nil {
			paths = append(paths, filter.Paths()...)
		}
	}
	names := f.fields
	if s.heading != "" && len(names) == 0 {
		names = render.CSVFields(s.view.fields.Of())
	}
	for _, name := range names {
		if path, err := query.Resolve(name, s.view.fields); err == nil {
			paths = append(paths, path)
		}
	}
	paths = append(paths, s.by.paths...)
	return append(paths, s.order.path)
}

// showsFiles reports whether the view shows or uses the files of transactions. The table of transactions shows them if
// it is asked for, or if it has a width, because resolving handles takes time.
func (s *settings) showsFiles(width int) bool {
	return s.files || s.view.name == "transactions" && s.columns == nil && width > 0
}

// namesFile reports whether a field or column of transactions is about the file that they acted on.
func namesFile(path string) bool {
	return strings.EqualFold(path, "file") || strings.HasPrefix(path, "file_")
}

// namesRPC reports whether an expression or a field name refers to decoded arguments or
// results.
func namesRPC(s string) bool {
	return strings.Contains(s, "rpc.call.") || strings.Contains(s, "rpc.reply.")
}

// parseFilter compiles -Y. With stats it selects the transactions that are summed up, or
// the rows of the table if it uses fields that only these have.
func (s *settings) parseFilter(source string) error {
	if source == "" {
		return nil
	}
	if s.view.summed == nil {
		var err error
		s.filter, err = query.Compile(source, s.view.fields)
		return err
	}
	var err error
	if s.summed, err = query.Compile(source, s.view.summed); err == nil {
		return nil
	}
	s.summed = nil
	var rows error
	if s.filter, rows = query.Compile(source, s.view.fields); rows == nil {
		return nil
	}
	return fmt.Errorf("with %s, a filter may use the fields of transactions or those of %s, but not both: %w", s.view.name, s.view.fields.Of(), err)
}

// parseOrder determines the field to sort by, if any.
func (s *settings) parseOrder(f *flags, whole bool) error {
	by := f.sort
	switch {
	case by != "":
	case f.top > 0:
		by = s.view.top
	case whole && f.count == 0 && !f.timeline:
		by = s.view.order
	}
	if by == "" {
		return nil
	}
	name, descending := strings.CutPrefix(by, "-")
	path, err := query.Resolve(name, s.view.fields)
	if err != nil {
		return fmt.Errorf("--sort %s: %w", by, err)
	}
	if !query.Sortable(s.view.fields.Field(path)) {
		return fmt.Errorf("--sort %s: %s is an object and cannot be sorted; use one of its fields, which rdmadump fields %s lists", by, path, s.view.name)
	}
	s.order = order{path, descending, f.top}
	return nil
}

// wants reports whether --conn and --xid select a record.
func (s *settings) wants(conn record.Opt[int], xid record.Opt[record.Hex32]) bool {
	if id, known := conn.Get(); len(s.conns) > 0 && !(known && s.wantsConnection(id)) {
		return false
	}
	id, known := xid.Get()
	return len(s.xids) == 0 || known && slices.Contains(s.xids, id)
}

// wantsConnection reports whether --conn selects a connection.
func (s *settings) wantsConnection(id int) bool {
	return len(s.conns) == 0 || slices.Contains(s.conns, id)
}

// moment is the time of --from or --to.
type moment struct {
	set      bool
	relative bool // at counts from the start of the capture
	at       record.Time
}

// errRange is the error for a time that nanoseconds since 1970 cannot represent.
var errRange = errors.New("out of range")

// parseMoment parses a time of --from or --to: seconds, a duration, or RFC 3339.
func parseMoment(s string) (moment, error) {
	if s == "" {
		return moment{}, nil
	}
	if v, err := strconv.ParseFloat(s, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		if !(math.Abs(v*1e9) < math.MaxInt64) { // Not a number is not smaller either.
			return moment{}, errRange
		}
		return moment{true, true, record.Time(v * 1e9)}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return moment{true, true, record.Time(d)}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if at := time.Unix(0, t.UnixNano()); err == nil && !at.Equal(t) {
		return moment{}, errRange
	}
	return moment{true, false, record.Time(t.UnixNano())}, err
}

// of returns the absolute time of m in a capture that starts at start.
func (m moment) of(start record.Time) record.Time {
	if !m.relative {
		return m.at
	}
	at := start + m.at
	switch {
	case m.at > 0 && at < start:
		return math.MaxInt64
	case m.at < 0 && at > start:
		return math.MinInt64
	}
	return at
}

// times holds --from and --to as times of a capture, once its first frame is known.
type times struct {
	*settings
	start        record.Time // of the capture
	since, until record.Time
}

// begin sets the time of the first frame.
func (t *times) begin(first record.Time) error {
	t.start, t.since, t.until = first, t.from.of(first), t.to.of(first)
	return nil
}

// overlaps reports whether --from and --to select any part of a span of time.
func (t *times) overlaps(first, last record.Time) bool {
	return (!t.from.set || last >= t.since) && (!t.to.set || first <= t.until)
}

// wantsFinding reports whether --conn, --xid, --from and --to select a finding.
func (t *times) wantsFinding(r *record.Finding) bool {
	at, known := r.Time.Get()
	return t.wants(r.Connection, r.XID) && (!known || t.within(at))
}

// within reports whether --from and --to select a time.
func (t *times) within(at record.Time) bool { return t.overlaps(at, at) }
