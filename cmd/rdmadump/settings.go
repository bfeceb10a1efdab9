package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/query"
	"github.com/rdmadump/rdmadump/render"
)

// settings are what the flags mean to one view. They do not change.
type settings struct {
	view       *view
	json       bool
	report     string // sarif, junit; empty for none
	quiet      bool
	color      string
	filter     *query.Filter // of the view's records, nil for none
	summed     *query.Filter // of the transactions that stats sums up, nil for none
	jq         *gojq.Code
	program    string // of jq
	columns    *render.Columns
	order      order
	count      int64
	xids       []record.Hex32
	conns      []int
	from, to   moment
	memory     int64
	tree       bool
	bytes      bool
	timeline   bool
	by         string
	failOn     record.Severity
	ignored    map[string]bool
	known      baseline
	accept     string
	unanswered time.Duration
	rpc        bool // what Calls ask and Replies say is wanted
	decode     bool // also by value: for packets, and for what -Y asks
	ladder     bool // transactions are drawn
	look       appearance
	notes      []string // about the flags, to be printed on standard error
}

// order is what records are put in order by.
type order struct {
	path       string // of a field; empty for as they come
	descending bool
	top        int // how many are kept, 0 for all
}

// parse turns flags into what they mean to a view; whole says that there is an
// end, at which records can be put in order.
func (f *flags) parse(v *view, whole bool) (*settings, error) {
	s := &settings{
		view: v, json: f.output == "json", quiet: f.quiet, color: f.color, program: f.jq, count: f.count, conns: f.conns,
		memory: int64(f.memory), tree: f.tree, bytes: f.bytes, timeline: f.timeline, by: f.by, look: f.look,
		rpc:    f.rpc || slices.ContainsFunc(append([]string{f.filter, f.sort}, f.fields...), namesRPC),
		decode: f.tree || f.rpc,
		failOn: record.Severity(f.failOn), accept: f.accept, unanswered: f.unanswered,
	}
	for _, c := range choices {
		if v.takes(c.flag) {
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
	if err := s.parseKnown(f); err != nil {
		return nil, err
	}
	if f.output == "sarif" || f.output == "junit" {
		s.report = f.output
	}
	if f.count < 0 || f.top < 0 {
		return nil, fmt.Errorf("-c %d, --top %d: a number of records is not negative", f.count, f.top)
	}
	for _, word := range f.xids {
		xid, err := record.ParseHex32(strings.TrimSpace(word))
		if err != nil {
			return nil, fmt.Errorf("--xid %s: an XID is a number of 32 bits, such as 0x4cc9dbf7", word)
		}
		s.xids = append(s.xids, xid)
	}
	for _, limit := range []struct {
		flag, value string
		to          *moment
	}{{"--from", f.from, &s.from}, {"--to", f.to, &s.to}} {
		var err error
		if *limit.to, err = parseMoment(limit.value); err != nil {
			return nil, fmt.Errorf("%s %s: a time is RFC 3339, such as 2026-11-21T04:55:00Z, or seconds from the start, such as 2.5 or 90s", limit.flag, limit.value)
		}
	}
	if err := cmp.Or(oldRuleID("-Y", f.filter), oldRuleID("--jq", f.jq)); err != nil {
		return nil, err
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
		if err != nil {
			return nil, fmt.Errorf("--jq %s: %w", f.jq, err)
		}
		s.notes = append(s.notes, query.RenamedIn(f.jq, v.fields)...)
	}
	if len(f.fields) > 0 {
		if s.json {
			return nil, fmt.Errorf("-e goes with text; of JSON, --jq picks fields")
		}
		var err error
		if s.columns, err = render.NewColumns(f.fields, v.fields); err != nil {
			return nil, fmt.Errorf("-e: %w", err)
		}
	}
	if s.bytes && s.json {
		return nil, fmt.Errorf("-x goes with text: JSON has no bytes of packets")
	}
	if err := s.parseOrder(f, whole); err != nil {
		return nil, err
	}
	s.decode = s.decode || slices.ContainsFunc(s.paths(f), query.Decoded)
	s.ladder = v.name == "transactions" && len(s.xids) > 0 && !s.json && s.columns == nil
	return s, nil
}

// paths are the fields of records that are looked at, whatever for.
func (s *settings) paths(f *flags) (paths []string) {
	for _, filter := range []*query.Filter{s.filter, s.summed} {
		if filter != nil {
			paths = append(paths, filter.Paths()...)
		}
	}
	for _, name := range f.fields {
		if path, err := query.Resolve(name, s.view.fields); err == nil {
			paths = append(paths, path)
		}
	}
	return append(paths, s.order.path)
}

// namesRPC says whether an expression or field is about what Calls ask and Replies
// say.
func namesRPC(s string) bool {
	return strings.Contains(s, "rpc.call.") || strings.Contains(s, "rpc.reply.")
}

// parseFilter compiles -Y. That of stats is about the transactions that are
// summed up; one that names fields that only rows have is about the rows.
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
	return fmt.Errorf("of stats, an expression picks the transactions to sum up, or the rows, not both: %w", err)
}

// parseOrder works out what to sort by.
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
		return fmt.Errorf("--sort %s: %s is an object, which has no order; sort by one of its fields (rdmadump fields %s lists them)", by, path, s.view.name)
	}
	s.order = order{path, descending, f.top}
	return nil
}

// wants says whether --conn and --xid let a record pass.
func (s *settings) wants(conn record.Opt[int], xid record.Opt[record.Hex32]) bool {
	if id, known := conn.Get(); len(s.conns) > 0 && !(known && s.wantsConnection(id)) {
		return false
	}
	id, known := xid.Get()
	return len(s.xids) == 0 || known && slices.Contains(s.xids, id)
}

// wantsConnection says whether --conn lets a connection pass.
func (s *settings) wantsConnection(id int) bool {
	return len(s.conns) == 0 || slices.Contains(s.conns, id)
}

// moment is a time of --from or --to.
type moment struct {
	set      bool
	relative bool // to the start of the capture
	at       record.Time
}

func parseMoment(s string) (moment, error) {
	if s == "" {
		return moment{}, nil
	}
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		return moment{true, true, record.Time(v * 1e9)}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return moment{true, true, record.Time(d)}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return moment{true, false, record.Time(t.UnixNano())}, err
}

// of is the time that it is in a capture that starts then.
func (m moment) of(start record.Time) record.Time {
	if m.relative {
		return start + m.at
	}
	return m.at
}

// times is what --from and --to leave of a capture, once its first frame is here.
type times struct {
	*settings
	start        record.Time // of the capture
	since, until record.Time
}

// begin takes the time of the first frame.
func (t *times) begin(first record.Time) error {
	t.start, t.since, t.until = first, t.from.of(first), t.to.of(first)
	return nil
}

// overlaps says whether --from and --to leave anything of a span of time.
func (t *times) overlaps(first, last record.Time) bool {
	return (!t.from.set || last >= t.since) && (!t.to.set || first <= t.until)
}

// wantsFinding says whether --conn, --xid, --from and --to let a finding pass.
func (t *times) wantsFinding(r *record.Finding) bool {
	at, known := r.Time.Get()
	return t.wants(r.Connection, r.XID) && (!known || t.within(at))
}

// within says whether --from and --to let a time pass.
func (t *times) within(at record.Time) bool { return t.overlaps(at, at) }
