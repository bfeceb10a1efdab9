package flags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// Selection says what of the capture an overview sums up, or nothing if it sums up all of it.
func (s *Settings) Selection() string {
	var flags []string
	for _, f := range []struct {
		name string
		set  bool
	}{{"--conn", len(s.Conns) > 0}, {"--xid", len(s.XIDs) > 0}, {"--from", s.From.Set}, {"--to", s.To.Set}} {
		if f.set {
			flags = append(flags, f.name)
		}
	}
	var parts []string
	if flags != nil {
		parts = append(parts, "RPCs and findings by "+command.List(flags, "and"))
	}
	if s.Filter != nil {
		parts = append(parts, "RPCs by -Y")
	}
	if parts == nil {
		return ""
	}
	packets := "whole connections"
	if s.From.Set || s.To.Set {
		packets = "this time"
	}
	return "selected: " + strings.Join(parts, ", ") + "; packets are those of " + packets
}

// Settings holds what the flags mean to one view. It does not change after it is made.
type Settings struct {
	plain

	View     *View
	JSON     bool
	Explain  bool          // overview lists what the capture does not decide, too
	Report   string        // sarif, junit or markdown; empty for none of them
	Filter   *query.Filter // for the view's records; nil for none
	Summed   *query.Filter // for the transactions that stats sums up; nil for none
	JQ       *gojq.Code
	Program  string // source of jq
	Columns  *render.Columns
	Heading  string // first line of the output of columns
	Order    Order
	XIDs     []record.Hex32
	ports    []dissect.Port // what TCP and UDP ports carry
	Tunnels  []dissect.Tunnel
	at       record.Position
	Hosts    *record.Hosts // names of --hosts; nil without the flag
	From, To moment
	By       Grouping
	FailOn   record.Severity
	Ignored  map[string]bool
	Known    baseline
	RPC      bool           // records contain decoded arguments and results
	Decode   bool           // arguments and results are decoded, for rpc, for packet trees or for a filter
	Decoded  bool           // fields of the decoded arguments and results are used
	Files    bool           // file handles are resolved
	Unused   dissect.Fields // of transactions
	Ladder   bool           // transactions are drawn as ladder diagrams
	Notes    []string       // messages about the flags for standard error
	AtPoints []string       // names of the capture points; nil if there is only one
}

// Order is the order in which records are shown.
type Order struct {
	Path       string // field to sort by; empty for the order in which records come
	Descending bool
	Top        int // number of records to keep; 0 keeps all
}

// failsOn has the severities of --fail-on that views have without it.
var failsOn = map[string]string{"check": "error"}

// Parse converts the flags for a view. Whole reports whether the input has an end, at which
// records can be sorted. It reads the files that flags name, until ctx ends.
func (f *Typed) Parse(ctx context.Context, v *View, whole bool) (*Settings, error) {
	v = f.shownBy(v)
	s := &Settings{
		plain: f.plain, View: v, JSON: f.output == "json", Explain: f.Explain != "", Program: f.jq, FailOn: record.Severity(cmp.Or(f.failOn, failsOn[v.Name])),
		RPC:    f.rpc || slices.ContainsFunc(append([]string{f.Filter, f.sort}, f.fields...), namesRPC),
		Decode: f.Tree || f.rpc,
	}
	if slices.Contains([]string{"sarif", "junit", "markdown"}, f.output) {
		s.Report = f.output
	}
	for _, parse := range []func() error{
		func() error { return s.parseValues(f) },
		func() error { return s.parseKnown(ctx, f) },
		func() (err error) { s.ports, s.Tunnels, err = parsePorts(f.decodeAs); return err },
		func() (err error) { s.at, err = parseAt(f.at); return err },
		func() (err error) { s.Hosts, err = parseHosts(ctx, f.hosts); return err },
		func() error { return s.parseSelection(f) },
		func() error { return s.parseFilter(f.Filter) },
		func() error { return s.parseJQ(f.jq) },
		func() error { return s.parseColumns(f) },
		func() error { return s.parseOrder(f, whole) },
	} {
		if err := parse(); err != nil {
			return nil, err
		}
	}
	s.Decoded = slices.ContainsFunc(s.paths(f), query.Decoded)
	s.Decode = s.Decode || s.Decoded
	s.Files = v.Name == "files" || v.Name == "tasks" || v.Name == "report" || v.diagnoses || slices.ContainsFunc(append(s.paths(f), s.Look.Columns...), namesFile) ||
		v.Name == "transactions" && s.Columns == nil && (s.JSON || s.Look.wide || s.Filter != nil)
	for fields, names := range costly {
		if s.unused(f, names...) {
			s.Unused |= fields
		}
	}
	s.Ladder = v.Name == "transactions" && len(s.XIDs) > 0 && !s.JSON && s.Columns == nil
	return s, nil
}

// XIDsOf returns the XIDs that a value of --xid may stand for: one, or two if it is a decimal number that may also be a hexadecimal one.
func XIDsOf(word string) (list []record.Hex32) {
	word = strings.TrimSpace(word)
	xid, err := record.ParseHex32(word)
	other, bad := record.ParseHex32("0x" + word) // Other programs write XIDs without 0x.
	if err == nil {
		list = append(list, xid)
	}
	if bad == nil && (err != nil || other != xid && len(word) == 8) {
		list = append(list, other)
	}
	return list
}

// These say how an XID, and a place of --at, can be typed.
const (
	xidForms   = "must be a 32-bit number, such as 0x4cc9dbf7"
	placeForms = "must be client, server, between, or the address of a host"
)

// parseAt converts the value of --at.
func parseAt(text string) (at record.Position, err error) {
	switch place := record.Place(text); place {
	case "":
	case record.AtClient, record.AtServer, record.Between:
		at.Place = place
	default:
		if at.Address, err = netip.ParseAddr(text); err != nil {
			return at, fmt.Errorf("--at %s: %s", render.Clean(text), placeForms)
		}
		at.Address = at.Address.Unmap()
	}
	return at, nil
}

// shownBy returns the view that shows what the flags ask of a view for.
func (f *Typed) shownBy(v *View) *View {
	if f.Every != 0 && v.takes("every") {
		v = RatesView
	}
	if f.Lost && v.Name == "network" && (len(f.fields) > 0 || f.output == "csv") {
		v = LostView
	}
	if len(f.by) > 0 && v.Name == "rdma" {
		v = OperationSumsView
	}
	return v
}

// parseValues verifies the flags that have few values, and determines the look and what --by names.
func (s *Settings) parseValues(f *Typed) error {
	for _, r := range viewFlags(f) {
		if r.values == nil || !s.View.takes(r.name) {
			continue
		}
		value := *r.sets.(*string)
		if value == "" && r.byDefault == nil {
			continue
		}
		if s.View.onePage && r.name == "output" && f.output == "csv" {
			return fmt.Errorf("-o csv: %s has no table; use -o json, or -o csv with a view that has one, such as rdmadump stats -o csv", s.View.Name)
		}
		if err := command.OneOf(r.shown(), value, r.values(s.View)...); err != nil {
			return err
		}
	}
	if s.View.takes("by") {
		var err error
		parse := ParseGrouping
		if s.View == OperationSumsView {
			parse = parseOperationGrouping
		}
		if s.By, err = parse(cmp.Or(strings.Join(f.by, ","), analyze.ByOperation)); err != nil {
			return err
		}
		s.By.Given = len(f.by) > 0
		for _, list := range [][]string{s.Look.Columns, f.fields} {
			for i := range list {
				list[i] = s.grouped(list[i])
			}
		}
	}
	if s.View.takes("width") {
		return s.Look.check(s.View)
	}
	return nil
}

// grouped returns the name of the field with the names of groups for the heading that tables have in place of it, and otherwise the name.
func (s *Settings) grouped(name string) string {
	if s.View.Fields.Has("name") && render.GroupHeading(strings.ReplaceAll(name, ", ", ",")) == render.GroupHeading(s.By.By) {
		return "name"
	}
	return name
}

// parseSelection determines which records the flags select without a filter.
func (s *Settings) parseSelection(f *Typed) error {
	if f.Count < 0 {
		return fmt.Errorf("-c %d: must not be negative", f.Count)
	}
	if f.top < 0 {
		return fmt.Errorf("--top %d: must not be negative", f.top)
	}
	for _, conn := range f.Conns {
		if conn < 0 {
			return fmt.Errorf("--conn %d: must not be negative; connections are counted from 0", conn)
		}
	}
	for _, word := range f.XIDs {
		xids := XIDsOf(word)
		if xids == nil {
			return fmt.Errorf("--xid %s: %s", strings.TrimSpace(word), xidForms)
		}
		s.XIDs = append(s.XIDs, xids...)
	}
	for _, limit := range []struct {
		flag, value string
		to          *moment
	}{{"--from", f.From, &s.From}, {"--to", f.To, &s.To}} {
		var err error
		if *limit.to, err = parseMoment(limit.value); err != nil {
			return fmt.Errorf("%s %s: %s", limit.flag, limit.value, momentForms)
		}
	}
	return nil
}

// parseJQ compiles the program of --jq.
func (s *Settings) parseJQ(source string) error {
	if source == "" {
		return nil
	}
	s.JSON = true
	program, err := gojq.Parse(source)
	if err == nil {
		s.JQ, err = gojq.Compile(program)
	}
	if end := (*gojq.ParseError)(nil); errors.As(err, &end) && end.Token == "" && end.Offset >= len(source) {
		return fmt.Errorf("--jq %s: the jq program is incomplete", source)
	} else if err != nil {
		return fmt.Errorf("--jq %s: %w", source, err)
	}
	if s.View.takes("field") { // The records of other views have fields of their own.
		s.Notes = append(s.Notes, query.OnlyInFilters(source, s.View.Fields)...)
	}
	return nil
}

// parseColumns determines the fields to print, if not whole records are printed.
func (s *Settings) parseColumns(f *Typed) (err error) {
	names, csv := f.fields, f.output == "csv"
	switch {
	case len(names) > 0 && s.JSON:
		return fmt.Errorf("-e only applies to text and CSV; use --jq with -o json")
	case csv && s.JSON:
		return fmt.Errorf("--jq works on JSON and cannot be combined with -o csv")
	case s.Bytes && s.JSON:
		return fmt.Errorf("-x only applies to text output, because JSON does not contain the bytes of packets")
	case csv && (s.Timeline || s.Tree || s.Bytes):
		return fmt.Errorf("-o csv writes the rows of a table and no drawings, trees or bytes")
	case csv && len(names) == 0:
		names = render.CSVFields(s.View.Fields.Of())
	case len(names) == 0:
		return nil
	}
	if s.Columns, err = render.NewColumns(names, s.View.Fields); err != nil {
		return fmt.Errorf("-e: %w", err)
	}
	if keys := s.By.paths; csv && len(f.fields) == 0 && len(keys) > 1 {
		s.Columns.SplitGroups(keys)
	}
	if csv {
		s.Heading = s.Columns.CSV()
	}
	return nil
}

// paths returns the fields that filters, columns or the order use.
func (s *Settings) paths(f *Typed) (paths []string) {
	for _, filter := range []*query.Filter{s.Filter, s.Summed} {
		if filter != nil {
			paths = append(paths, filter.Paths()...)
		}
	}
	names := f.fields
	if s.Heading != "" && len(names) == 0 {
		names = render.CSVFields(s.View.Fields.Of())
	}
	for _, name := range names {
		if path, err := query.Resolve(name, s.View.Fields); err == nil {
			paths = append(paths, path)
		}
	}
	paths = append(paths, s.By.paths...)
	return append(paths, s.Order.Path)
}

// ShowsFiles reports whether the view shows or uses the files of transactions. The table of transactions shows them if
// it is asked for, or if it has a width, because resolving handles takes time.
func (s *Settings) ShowsFiles(width int) bool {
	return s.Files || s.View.Name == "transactions" && s.Columns == nil && width > 0
}

// costly has the names of the fields of transactions that are computed only for views that show or use them.
var costly = map[dissect.Fields][]string{dissect.Cause: {"cause"}, dissect.Shares: {"cause", "shares", "meanwhile", "congested", "round_trips"}, dissect.Retries: {"retry_of"}}

// unused reports whether the view neither shows nor uses fields of transactions. It shows all of them unless it lists the fields of -e, or
// sums, which have fields of their own.
func (s *Settings) unused(f *Typed, fields ...string) bool {
	named := func(path string) bool {
		return slices.ContainsFunc(fields, func(field string) bool { return strings.HasPrefix(path, field) })
	}
	switch {
	case slices.ContainsFunc(s.paths(f), named):
		return false
	case s.View.diagnoses:
		return len(fields) == 1 && fields[0] == "cause" // Problems are found by the others.
	case s.View.summed != nil:
		all := s.JSON || s.Look.wide || len(s.Look.Columns) > 0 // Tables show none of them otherwise.
		return s.Columns != nil || !all || !slices.ContainsFunc(render.CSVFields(s.View.Fields.Of()), named)
	}
	return s.View.Fields == query.Transactions && s.Columns != nil
}

// namesFile reports whether a field or column of transactions is about the file that they acted on.
func namesFile(path string) bool {
	return strings.EqualFold(path, "file") || path == "directory" || strings.HasPrefix(path, "file_")
}

// namesRPC reports whether an expression or a field name refers to decoded arguments or
// results.
func namesRPC(s string) bool {
	return strings.Contains(s, "rpc.call.") || strings.Contains(s, "rpc.reply.")
}

// parseFilter compiles -Y. With stats it selects the transactions that are summed up, or
// the rows of the table if it uses fields that only these have.
func (s *Settings) parseFilter(source string) error {
	if source == "" {
		return nil
	}
	var err error
	if s.View.summed == nil {
		s.Filter, err = query.Compile(source, s.View.Fields)
		return err
	}
	if s.Summed, err = query.Compile(source, s.View.summed); err == nil {
		return nil
	}
	var rows error
	if s.Filter, rows = query.Compile(source, s.View.Fields); rows == nil {
		return nil
	}
	ofRPCs, is := errors.AsType[*query.Error](err)
	if ofRows, too := errors.AsType[*query.Error](rows); is && too && ofRPCs.NoField && !ofRows.NoField {
		return rows
	}
	return fmt.Errorf("with %s, a filter may use the fields of transactions or those of %s, but not both: %w", s.View.Name, s.View.Fields.Of(), err)
}

// parseOrder determines the field to sort by, if any.
func (s *Settings) parseOrder(f *Typed, whole bool) error {
	by := f.sort
	switch {
	case by != "":
	case f.top > 0:
		by = s.View.top
	case whole && f.Count == 0 && !f.Timeline:
		by = s.View.order
	}
	if by == "" {
		return nil
	}
	name, descending := strings.CutPrefix(by, "-")
	path, err := query.Resolve(s.grouped(name), s.View.Fields)
	if err != nil {
		return fmt.Errorf("--sort %s: %w%s", by, err, s.View.sortable(name))
	}
	if !query.Sortable(s.View.Fields.Field(path)) {
		return fmt.Errorf("--sort %s: %s is an object and cannot be sorted; use one of its fields, which rdmadump fields %s lists", by, path, s.View.Name)
	}
	s.Order = Order{path, descending, f.top}
	return nil
}

// sortable returns the end of a message that lists the columns of a view by which its records can be sorted, those with similar names first.
func (v *View) sortable(typed string) string {
	var names []string
	for _, name := range render.Headings(v.Fields.Of()) {
		if path, err := query.Resolve(name, v.Fields); err == nil && query.Sortable(v.Fields.Field(path)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; columns: " + strings.Join(query.NearFirst(typed, names), ", ")
}

// Wants reports whether --conn and --xid select a record.
func (s *Settings) Wants(conn record.Opt[int], xid record.Opt[record.Hex32]) bool {
	if id, known := conn.Get(); len(s.Conns) > 0 && !(known && s.WantsConnection(id)) {
		return false
	}
	id, known := xid.Get()
	return len(s.XIDs) == 0 || known && slices.Contains(s.XIDs, id)
}

// WantsTask reports whether --conn and --xid select a task.
func (s *Settings) WantsTask(r *record.Task) bool {
	named := len(s.XIDs) == 0 || slices.ContainsFunc(r.XIDs, func(xid record.Hex32) bool { return slices.Contains(s.XIDs, xid) })
	return named && s.WantsConnection(r.Connection)
}

// WantsConnection reports whether --conn selects a connection.
func (s *Settings) WantsConnection(id int) bool {
	return len(s.Conns) == 0 || slices.Contains(s.Conns, id)
}

// MissingConnection returns an error if a capture has no connection that --conn selects, or nil if its summary is not known.
func (s *Settings) MissingConnection(summary *record.Summary) error {
	if summary == nil || len(s.Conns) == 0 || slices.Min(s.Conns) < summary.Connections {
		return nil
	}
	var words []string
	for _, id := range s.Conns {
		words = append(words, fmt.Sprint(id))
	}
	n := summary.Connections
	has := fmt.Sprintf("the capture has %d connections, numbers 0 to %d", n, n-1)
	switch n {
	case 0:
		has = "the capture has no connections"
	case 1:
		has = "the capture has one connection, number 0"
	}
	return fmt.Errorf("no connection %s (%s)", command.List(words, "or"), has)
}

// Times holds --from and --to as times of a capture, once its first frame is known.
type Times struct {
	*Settings
	Start        record.Time // of the capture
	Since, Until record.Time
}

// Begin sets the time of the first frame. It returns an error if --from is later than --to.
func (t *Times) Begin(first record.Time) error {
	t.Start, t.Since, t.Until = first, t.timeOf(t.From, first), t.endOf(t.To, first)
	if t.From.Set && t.To.Set && t.Since > t.Until {
		return fmt.Errorf("--from %s is later than --to %s", t.Since, t.Until)
	}
	return nil
}

// window returns the function that returns the first and the last time that --from and --to select, or nil without them.
func (s *Settings) window() func(first record.Time) (from, to record.Time) {
	if !s.From.Set && !s.To.Set {
		return nil
	}
	return func(first record.Time) (from, to record.Time) {
		if from = math.MinInt64; s.From.Set {
			from = s.timeOf(s.From, first)
		}
		if to = math.MaxInt64; s.To.Set {
			to = s.endOf(s.To, first)
		}
		return from, to
	}
}

// Overlaps reports whether --from and --to select any part of a span of time.
func (t *Times) Overlaps(first, last record.Time) bool {
	return (!t.From.Set || last >= t.Since) && (!t.To.Set || first <= t.Until)
}

// WantsFinding reports whether --conn, --xid, --from and --to select a finding.
func (t *Times) WantsFinding(r *record.Finding) bool {
	at, known := r.Time.Get()
	return t.Wants(r.Connection, r.XID) && (!known || t.Within(at))
}

// Within reports whether --from and --to select a time.
func (t *Times) Within(at record.Time) bool { return t.Overlaps(at, at) }

// EndOf returns the time at which a transaction ended. Without a Reply it lasts to the end of its connection.
func EndOf(r *record.Transaction) record.Time {
	if r.Reply == nil {
		return math.MaxInt64
	}
	return r.Reply.Time
}
