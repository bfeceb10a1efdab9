package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/shell"
	"github.com/rdmadump/rdmadump/render"
)

var (
	//go:embed page.html
	pageSource string
	//go:embed style.css
	style string
	//go:embed script.js
	script string

	pages = sync.OnceValue(func() *template.Template {
		return template.Must(template.New("page").Funcs(template.FuncMap{
			"css": func() template.CSS { return template.CSS(style) }, "js": func() template.JS { return template.JS(script) }, "prose": prose,
		}).Parse(pageSource))
	})
)

// piece is a part of a text: words, or code.
type piece struct {
	Text string
	Code bool
}

// prose splits a text of a rule's page at the marks of code.
func prose(text string) (list []piece) {
	for i, part := range strings.Split(text, "`") {
		if part != "" {
			list = append(list, piece{part, i%2 == 1})
		}
	}
	return list
}

// policy is the Content-Security-Policy of the page. It allows the style and the script of the page
// and nothing else: no network, no other script, no frame.
func policy() template.HTMLAttr {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return template.HTMLAttr(`content="default-src 'none'; script-src ` + hash(script) + `; style-src ` + hash(style) + `; base-uri 'none'; form-action 'none'"`)
}

// column is the heading of a column.
type column struct {
	Name, Explain string
	Number        bool
}

// cell is a cell of a table.
type cell struct {
	Text    string
	Value   string // number that Text stands for, as in JSON; empty if there is none
	Link    string // anchor
	Class   string
	Head    bool // it names the row
	Picture *picture
}

// number returns a cell with a number.
func number(n int64, text string) cell { return cell{Text: text, Value: fmt.Sprint(n)} }

// table is a table.
type table struct {
	ID, Caption string
	Columns     []column
	Rows        [][]cell
	Zero        string // time of day that times in the table are counted from; empty for a table without times
}

// picture is a small picture in a cell.
type picture struct {
	Title  string
	Width  int
	Height int
	Shapes []shape
}

// chart is a picture over time: several rows with one axis.
type chart struct {
	ID       string
	From, To int64 // nanoseconds since the start of the capture, for the script
	Ticks    []tick
	Strips   []strip
	Commands []string
	Wide     int
	Zero     string // time of day at 0s
}

// cardView is what the page shows of a connection.
type cardView struct {
	ID, Title string
	Facts     [][2]string
	Chart     *chart
	Notes     []string
}

// ladderView is a ladder diagram.
type ladderView struct {
	ID, Title, Why, Text, Command string
	Began                         string // time of day of the first packet
}

// ruleView is a rule with findings.
type ruleView struct {
	ID, Rule, Class, Title, Section, Message, Quote, From, Fault, Link, Command string
	Counts                                                                      []cell // by severity
	Text, Causes                                                                []string
	Packet, XID, Conn                                                           string
}

// head is the head of the page.
type head struct {
	About
	Policy               template.HTMLAttr
	Title, Command, Span string
	Numbers              [][2]string
	Problems             []problemView
	LeftOut              []string
	Contains             string
	Sections             [][2]string // anchors and names
}

// page is the page in progress. Parts have been rendered; they are written in the order of names.
type page struct {
	*Report
	about   About
	summary *record.Summary
	o       *analyze.Overview
	worst   []*record.Problem // problems, the worst first
	left    int64             // bytes
	parts   map[string][]byte
	leftOut []string
	ladders map[int64]bool // transactions with ladder diagrams
	known   map[int]bool   // connections that have a place on the page
	err     error
}

// order lists the parts of the page after the head.
var order = []string{"before", "points", "findings", "mounts", "operations", "clients", "files", "rates", "connections", "cards", "ladders", "rpcs", "guide", "records", "data"}

// sections are the sections of the page, by their anchors. A page has only those that the capture has something for.
var sections = [][2]string{
	{"problems", "Problems"},
	{"before", "Compared with before"},
	{"points", "Capture points"},
	{"findings", "Findings"},
	{"mounts", "Mounts"},
	{"operations", "Operations"},
	{"callers", "Callers"},
	{"files", "Files"},
	{"rates", "Rates"},
	{"connections", "Connections"},
	{"ladders", "Ladder diagrams"},
	{"rpcs", "RPCs"},
	{"guide", "How to read this"},
}

// parts with another name than the anchor of their section
var partOf = map[string]string{"problems": "head", "callers": "clients"}

// minor is the number of bytes that are kept free for the head, which is written last.
const minor = 64 << 10

// page renders the page: first what it always contains, then as much of the rest as there is space for.
func (p *Report) page(s *record.Summary, a About) (*page, error) {
	if a.MaxSize <= 0 {
		a.MaxSize = DefaultMaxSize
	}
	a.MaxSize = max(a.MaxSize, LeastMaxSize)
	p.overview.Network(a.Points, a.Network)
	p.diagnosis.Network(a.Network)
	v := &page{Report: p, about: a, summary: s, o: p.overview.Finish(s), worst: p.diagnosis.Problems(s), parts: map[string][]byte{}, ladders: map[int64]bool{}}
	v.left = a.MaxSize - minor - int64(len(style)+len(script))
	drawn := v.chooseLadders()
	slices.SortFunc(v.all, func(a, b *record.Connection) int { return cmp.Compare(a.ID, b.ID) })
	v.known = map[int]bool{}
	for _, c := range append(v.busiest(), v.all[:min(len(v.all), maxConnections)]...) {
		v.known[c.ID] = true
	}
	v.comparison()
	v.capturePoints()
	v.findings()
	v.mounts()
	any := len(v.rows.list) > 0
	if any {
		v.operations()
		v.callers()
		v.filesTable()
		if err := v.intervals(); err != nil {
			return nil, err
		}
	}
	v.connections()
	v.part("guide", "guide", v.guide())
	if any {
		v.drawLadders(drawn)
	}
	v.drawCards()
	v.embed(drawn)
	if any {
		v.rpcs()
	} else {
		v.noRPCs()
	}
	v.part("head", "head", v.head())
	return v, v.err
}

// noRPCs says that there are no RPCs, and so no tables and pictures of them. Connections of other upper layers have
// RDMA operations.
func (v *page) noRPCs() {
	s := section{ID: "rpcs", Name: "RPCs", Text: "The capture has no RPCs, so this page has no operations, callers, files, rates and ladder diagrams."}
	if v.about.Selected != "" {
		s.Text = "No RPC is selected, so this page has no operations, callers, files, rates and ladder diagrams."
	}
	var layers []string
	for _, c := range v.all {
		if c.UpperLayer != "" && !slices.Contains(layers, c.UpperLayer) {
			layers = append(layers, c.UpperLayer)
		}
	}
	s.Commands = []string{v.run("FILE")}
	if slices.Sort(layers); len(layers) > 0 && v.about.Records == "" {
		s.Text += " Its connections carry " + strings.Join(layers, " and ") + "; the second command lists their RDMA operations."
		s.Commands = append(s.Commands, v.run("rdma", "FILE"))
	}
	v.part("rpcs", "norpcs", s)
}

// render renders a template.
func (v *page) render(name string, data any) []byte {
	var b bytes.Buffer
	if err := pages().ExecuteTemplate(&b, name, data); err != nil && v.err == nil {
		v.err = err
	}
	return b.Bytes()
}

// part adds a part that the page always contains.
func (v *page) part(part, name string, data any) {
	b := v.render(name, data)
	v.left -= int64(len(b))
	v.parts[part] = append(v.parts[part], b...)
}

// fit adds a part if there is space for it, and reports whether there is.
func (v *page) fit(part, name string, data any) bool {
	b := v.render(name, data)
	if int64(len(b)) > v.left {
		return false
	}
	v.left -= int64(len(b))
	v.parts[part] = append(v.parts[part], b...)
	return true
}

// write writes the parts.
func (v *page) write(w io.Writer) error {
	for _, name := range append([]string{"head"}, order...) {
		if _, err := w.Write(v.parts[name]); err != nil {
			return err
		}
	}
	_, err := w.Write(v.render("end", nil))
	return err
}

// run returns a command of rdmadump. FILE stands for the captures. The selection of the page follows
// unless the command has an expression of its own.
func (v *page) run(args ...string) string {
	words := []string{"rdmadump"}
	own := slices.Contains(args, "-Y")
	for _, arg := range args {
		if arg == "FILE" {
			words = append(words, v.about.Typed)
		} else {
			words = append(words, quoted(arg))
		}
	}
	if !own {
		words = append(words, v.about.Selection...)
	}
	return render.Clean(strings.Join(words, " "))
}

// flag matches the arguments that are flags.
var flag = regexp.MustCompile(`^--?[A-Za-z][-a-z]*$`)

// quoted returns an argument for a shell.
func quoted(arg string) string {
	if flag.MatchString(arg) {
		return arg
	}
	return shell.File(arg)
}

// maxMounts is the number of mounts that the head of the page lists.
const maxMounts = 8

// head returns the head of the page.
func (v *page) head() head {
	s := v.summary
	h := head{
		About: v.about, Policy: policy(), Problems: v.problems(),
		Contains: "It contains addresses, paths, user numbers and names of machines; --redact replaces them.",
	}
	h.LeftOut = v.leftOut
	if v.hide != nil {
		h.Contains = "Pseudonyms replace the addresses, paths, user numbers and names of machines in it."
	}
	for _, s := range sections {
		if part := cmp.Or(partOf[s[0]], s[0]); part == "head" || v.parts[part] != nil {
			h.Sections = append(h.Sections, s)
		}
	}
	words := []string{"rdmadump"}
	for _, arg := range v.about.Command {
		words = append(words, quoted(arg))
	}
	h.Command = render.Clean(strings.Join(words, " "))
	var names []string
	for i := range h.Files {
		h.Files[i].Name = render.Clean(h.Files[i].Name)
		if base := filepath.Base(h.Files[i].Name); !slices.Contains(names, base) {
			names = append(names, base)
		} else {
			names = append(names, h.Files[i].Name)
		}
	}
	h.Title = "Report of " + strings.Join(names, ", ")
	row := func(name, format string, args ...any) {
		h.Numbers = append(h.Numbers, [2]string{name, fmt.Sprintf(format, args...)})
	}
	if first, known := s.First.Get(); known {
		last := s.Last.Or(first)
		row("Time", "%s to %s (%s)", clock(first), clock(last), render.Duration(last.Sub(first)))
	}
	for _, m := range v.o.Mounted[:min(len(v.o.Mounted), maxMounts)] {
		row("Mounted", "%s", render.Clean(render.MountText(&m)))
	}
	if n := len(v.o.Mounted); n > maxMounts {
		row("Mounted", "and %s of client, server and version", render.MorePairs(n, maxMounts))
	}
	row("Packets", "%d, of which %d carry RDMA", s.Packets, s.RDMA)
	row("Bytes on the wire", "%d", s.Bytes)
	if v.about.LinkTypes != nil {
		row("Link type", "%s", strings.Join(v.about.LinkTypes, ", "))
	}
	if v.about.Records != "" {
		row("Input", "%s", v.about.Records)
	}
	total := int64(0)
	for _, n := range s.Transactions {
		total += n
	}
	row("RPCs", "%d", total)
	row("Connections", "%d", s.Connections)
	var found []string
	for _, severity := range record.Severities {
		found = append(found, record.Plural(s.Findings[severity], string(severity)))
	}
	row("Findings", "%s", strings.Join(found, ", "))
	if v.about.Selected != "" {
		row("Selected", "%s", render.Clean(v.about.Selected))
	}
	complete := "The capture was read completely."
	if v.about.Error != "" {
		complete = render.Clean(v.about.Error)
	}
	row("Completeness", "%s %s truncated, %s not captured.", complete, record.Plural(s.Truncated, "packet"), record.Plural(s.NotCaptured, "packet"))
	return h
}

// bySeverity returns the rules with findings, the most severe first.
func (v *page) bySeverity() (list []*ruleSum) {
	for _, sum := range v.rules {
		if sum.first != nil {
			list = append(list, sum)
		}
	}
	slices.SortFunc(list, func(a, b *ruleSum) int {
		return cmp.Or(cmp.Compare(a.first.Severity.Rank(), b.first.Severity.Rank()), cmp.Compare(b.total(), a.total()), cmp.Compare(a.rule, b.rule))
	})
	return list
}

// findings renders the findings by rule.
func (v *page) findings() {
	var list []ruleView
	for _, sum := range v.bySeverity() {
		f := sum.first
		view := ruleView{ID: ruleAnchor(sum.rule), Rule: sum.rule, Class: severityClasses[f.Severity], Message: render.Clean(f.Message), Command: v.run("check", "FILE", "-Y", "rule == "+sum.rule)}
		for _, severity := range record.Severities {
			if n := sum.counts[severity]; n > 0 {
				view.Counts = append(view.Counts, cell{Text: record.Plural(n, string(severity)), Value: fmt.Sprint(n), Class: string(severity)})
			}
		}
		if r := rule.Find(sum.rule); r != nil {
			page := r.Page()
			view.Title, view.Section, view.Quote, view.From, view.Causes = page.Title, r.Section, page.Quote, page.From, page.Causes
			view.Text = strings.Split(page.Text, "\n\n")
		}
		if at, known := f.Packet.Get(); known {
			view.Packet = fmt.Sprint(at)
		}
		if xid, known := f.XID.Get(); known {
			view.XID = xid.String()
		}
		if conn, known := f.Connection.Get(); known {
			if view.Conn = fmt.Sprint(conn); v.known[conn] {
				view.Link = connAnchor(conn)
			}
		}
		view.Fault = string(f.AtFault.Or(""))
		if sum.example != nil {
			view.Link = rpcAnchor(sum.example.ID)
		}
		list = append(list, view)
	}
	v.part("findings", "findings", list)
}

// maxOperations is the number of rows of the table of operations.
const maxOperations = 100

// histogramSteps is the number of steps of a latency histogram.
const histogramSteps = 32

// operations renders the table of operations.
func (v *page) operations() {
	rows := v.table.Rows()
	of := len(rows)
	low, high := analyze.LatencyRange(rows)
	if n := len(rows) - maxOperations; n > 0 {
		v.omit("The table of operations shows the %d with the largest sums of latencies; %s are left out. %s lists them.", maxOperations, record.Plural(int64(n), "operation"), v.run("stats", "FILE"))
		rows = rows[:maxOperations]
	}
	t := drawn("operation-table", part("Operations, by the sum of their latencies", len(rows), of), statsSheet(v, rows),
		"NAME=Operation: Program and operation", "RPCS=RPCs", "ERRORS", "NO REPLY", "RETRANSMITTED", "CALL BYTES", "REPLY BYTES", "P50", "P90", "P99", "WORST")
	t.dropEmpty("No reply")
	t.insertSum(func(i int) cell { return total(rows[i].Latency, rows[i].TotalNS) })
	t.append(column{"Phases", "Parts of the sum", false}, func(i int) cell { return phaseCell(rows[i]) })
	t.append(column{"Latencies", "Number of RPCs by latency, from " + render.Duration(low) + " to " + render.Duration(high) + " on a logarithmic scale", false},
		func(i int) cell { return histogramCell(rows[i], low, high) })
	v.part("operations", "operations", struct {
		Table   table
		Command string
		Phases  []legend
	}{t, v.run("stats", "FILE"), phaseLegend})
}

// known returns the cell of a duration that may be unknown.
func known(ns record.Opt[int64]) cell {
	if n, known := ns.Get(); known {
		return number(n, render.Duration(n))
	}
	return cell{Text: "-"}
}

// quantile returns the cell of a percentile. The mark "<=" says that it is an upper bound, and "~" that it is an
// estimate.
func quantile(q analyze.Quantiles, ns record.Opt[int64]) cell {
	c := longest(q, ns)
	if q.Estimated && !strings.HasPrefix(c.Text, render.AtMost) {
		c.Text = "~" + c.Text
	}
	return c
}

// longest returns the cell of a maximum, which is never an estimate.
func longest(q analyze.Quantiles, ns record.Opt[int64]) cell {
	c := known(ns)
	if n, known := ns.Get(); known && q.AtMost(n) {
		c.Text = render.AtMost + c.Text
	}
	return c
}

// total returns the cell of the sum of latencies.
func total(q analyze.Quantiles, ns int64) cell {
	c := number(ns, render.Duration(ns))
	if q.UpperBounds > 0 {
		c.Text = render.AtMost + c.Text
	}
	return c
}

// latencyCell returns the cell of the latency of a transaction.
func latencyCell(r *record.Transaction) cell {
	c := known(r.LatencyNS)
	c.Text = render.Latency(r)
	return c
}

// phaseLegend explains the parts of a bar of phases.
var phaseLegend = func() (list []legend) {
	for i := range record.PhaseCount {
		list = append(list, legend{fmt.Sprintf("p%d", i), i.String()})
	}
	return list
}()

// barWidth is the width of a bar in a table.
const barWidth = 100

// phaseCell returns the bar of the phases of an operation.
func phaseCell(s *analyze.Stats) cell {
	parts := s.Phases.List()
	if s.TotalNS <= 0 {
		return cell{Text: "-"}
	}
	paths := make([]path, len(parts))
	classes := make([]string, len(parts))
	var words []string
	sum, from := int64(0), 0
	for i, ns := range parts {
		classes[i] = phaseLegend[i].Class
		if ns <= 0 {
			continue
		}
		sum += ns
		to := min(int(float64(sum)/float64(s.TotalNS)*barWidth+0.5), barWidth)
		if to > from {
			paths[i].box(from, 0, to-from, 14)
		}
		from = max(from, to)
		words = append(words, percent(ns, s.TotalNS)+" "+phaseLegend[i].Text)
	}
	return cell{Picture: &picture{render.Clean(s.Name) + ": " + strings.Join(words, ", "), barWidth, 14, shapesOf(classes, paths)}}
}

// histogramCell returns the histogram of an operation's latencies.
func histogramCell(s *analyze.Stats, low, high int64) cell {
	counts := s.Histogram(low, high, histogramSteps)
	most := slices.Max(counts)
	if most == 0 {
		return cell{Text: "-"}
	}
	paths := make([]path, 1)
	for i, n := range counts {
		if h := scaled(n, most, 24); h > 0 {
			paths[0].box(i*4, 24-h, 3, h)
		}
	}
	return cell{Picture: &picture{fmt.Sprintf("%s: histogram of latencies, at most %d in one of %d steps", render.Clean(s.Name), most, histogramSteps), histogramSteps * 4, 24, shapesOf([]string{"hist"}, paths)}}
}

// callers renders the table of callers.
func (v *page) callers() {
	rows := v.clients.Rows()
	of := len(rows)
	if n := len(rows) - maxClients; n > 0 {
		v.omit("The table of callers shows the %d with the largest sums of latencies; %s are left out.", maxClients, record.Plural(int64(n), "caller"))
		rows = rows[:maxClients]
	}
	t := drawn("caller-table", part("Callers, by the sum of their latencies", len(rows), of), statsSheet(v, rows), "RPCS=RPCs", "ERRORS", "NO REPLY", "P50", "P99", "WORST")
	t.dropEmpty("No reply")
	for at, c := range []column{
		{"Client", "Address of the client", false},
		{"Machine", "Name of the machine in the credential", false},
		{"UID", "Number of the user in the credential", true},
		{"Principal", "Name of the RPCSEC_GSS principal", false},
	} {
		t.insert(at, c, func(i int) cell {
			group := []string{analyze.Others, unknown, unknown, unknown}
			if rows[i].Group != nil {
				group = rows[i].Group
			}
			return cell{Text: render.Clean(group[at]), Head: at == 0}
		})
	}
	for i := range t.Rows {
		t.Rows[i][4].Head = false // RPCS
	}
	t.insertSum(func(i int) cell { return total(rows[i].Latency, rows[i].TotalNS) })
	v.part("clients", "callers", struct {
		Table   table
		Command string
	}{t, v.run("stats", "FILE", "--by", callerFields)})
}

// omit adds a sentence about what the page leaves out.
func (v *page) omit(format string, args ...any) {
	v.leftOut = append(v.leftOut, fmt.Sprintf(format, args...))
}

// maxConnections is the number of rows of the table of connections.
const maxConnections = 200

// connections renders the table of connections.
func (v *page) connections() {
	if n := len(v.all) - maxConnections + v.others; n > 0 && len(v.all) > maxConnections {
		v.omit("The table of connections shows the first %d; %s are left out. %s lists them.", maxConnections, record.Plural(int64(n), "connection"), v.run("connections", "FILE"))
	}
	shown := v.all[:min(len(v.all), maxConnections)]
	t := drawn("connection-table", part("Connections", len(shown), len(v.all)+v.others), sheet(v, "connections", shown, func(theme *render.Theme) error {
		text := render.NewText(io.Discard, theme, 0)
		for _, c := range shown {
			if err := text.Connection(c); err != nil {
				return err
			}
		}
		return nil
	}), "CONN: Number of the connection", "CLIENT", "SERVER: Address and port of the end that accepted the connection", "TRANSPORT", "PROTOCOL", "RPCS=RPCs", "IN FLIGHT", "PACKETS", "RETRANSMITTED", "OUT OF ORDER", "NOT CAPTURED", "NAKS=NAKs", "RNR NAKS=RNR NAKs", "CLOSED=End")
	for i, c := range shown {
		t.Rows[i][0].Link = connAnchor(c.ID)
	}
	v.part("connections", "connections", struct {
		Table   table
		Command string
	}{t, v.run("connections", "FILE")})
}

// endpoint returns the address and port of one end of a connection.
func endpoint(e record.Endpoint) string {
	text := render.Clean(e.Address.Or("?"))
	if port, known := e.Port.Get(); known {
		if _, err := netip.ParseAddr(text); err == nil && strings.Contains(text, ":") {
			text = "[" + text + "]"
		}
		text += fmt.Sprintf(":%d", port)
	}
	return text
}

// chosen is an RPC with a ladder diagram.
type chosen struct {
	r   *record.Transaction
	why string
}

// chooseLadders returns the RPCs with ladder diagrams, each once: an example of each rule, and the
// slowest.
func (v *page) chooseLadders() (list []chosen) {
	add := func(r *record.Transaction, why string) {
		if at := slices.IndexFunc(list, func(c chosen) bool { return c.r.ID == r.ID }); at >= 0 {
			list[at].why += ", and " + why
			return
		}
		list = append(list, chosen{r, why})
	}
	for _, sum := range v.bySeverity() {
		if sum.example != nil {
			add(sum.example, "example of "+sum.rule)
		}
	}
	for i, r := range v.slow {
		why := fmt.Sprintf("number %d of the slowest", i+1)
		if i == 0 {
			why = "the slowest"
		}
		add(r, why)
	}
	return list
}

// These limits keep ladder diagrams readable.
const (
	ladderWidth = 100
	maxLadder   = 24 << 10 // bytes
)

// clock returns a time as a date and a time of day.
func clock(at record.Time) string {
	return time.Unix(0, int64(at)).UTC().Format("2006-01-02 15:04:05.000000 UTC")
}

// drawLadders renders ladder diagrams while there is space.
func (v *page) drawLadders(list []chosen) {
	// The fonts of readers need not have box characters of the right width, so diagrams are ASCII.
	look := render.NewLook(render.Look{Colour: render.NoColour})
	v.part("ladders", "ladders", v.run("FILE", "--top", fmt.Sprint(slowest)))
	dropped := 0
	for _, c := range list {
		var b bytes.Buffer
		if err := render.Ladder(&b, look, ladderWidth, c.r, true); err != nil && v.err == nil {
			v.err = err
		}
		text := strings.TrimRight(b.String(), "\n")
		if len(text) > maxLadder {
			lines := strings.Split(text[:maxLadder], "\n")
			text = strings.Join(lines[:len(lines)-1], "\n") + "\n... the command shows the rest"
		}
		command := v.run("FILE", "--conn", fmt.Sprint(c.r.Connection), "--xid", c.r.XID.String())
		if v.fit("ladders", "ladder", ladderView{rpcAnchor(c.r.ID), fmt.Sprintf("XID %v, %s", c.r.XID, operation(c.r)), c.why, text, command, clock(c.r.Start())}) {
			v.ladders[c.r.ID] = true
		} else {
			dropped++
			v.part("ladders", "noladder", ladderView{rpcAnchor(c.r.ID), fmt.Sprintf("XID %v, %s", c.r.XID, operation(c.r)), c.why, "", command, ""})
		}
	}
	if dropped > 0 {
		v.omit("%s are left out because of the size of the page.", record.Plural(int64(dropped), "ladder diagram"))
	}
}

// staticRows is the number of RPCs that the page lists without a script.
const staticRows = 500

// rpcs renders the table of RPCs, and packs all RPCs for the script.
func (v *page) rpcs() {
	t := drawn("rpc-table", "", sheet[*record.Transaction](v, "transactions", nil, nil), "#: Number of the RPC, counted from 1",
		"TIME: Time of the Call since the start of the capture, in seconds", "CONN", "XID=XID: Transaction ID", "DIR", "PROCEDURE=Operation: Program and operation", "CALL BYTES", "REPLY BYTES", "LATENCY", "STATUS")
	t.Zero = clock(v.start)
	t.append(column{"Findings", "Rules of the findings", false}, nil)
	rows := v.rows.choose(staticRows)
	for i := range rows {
		t.Rows = append(t.Rows, v.cells(&rows[i]))
	}
	total := int64(len(v.rows.list)) + v.rows.leftOut
	view := struct {
		Table   table
		Command string
		Total   int64
		Shown   int
	}{t, v.run("FILE"), total, len(rows)}
	for len(view.Table.Rows) > 0 {
		view.Shown = len(view.Table.Rows)
		view.Table.Caption = fmt.Sprintf("RPCs: %d of %d, first those with findings and failures, then the slowest", view.Shown, total)
		if v.fit("rpcs", "rpcs", view) {
			break
		}
		view.Table.Rows = view.Table.Rows[:len(view.Table.Rows)/2]
	}
	if v.parts["rpcs"] == nil {
		v.part("rpcs", "rpcs", view)
	}
	if packed := v.pack(); packed > 0 && int64(packed) < total {
		v.omit("The table of all RPCs, which needs a script, has %d of %d: first those with findings and failures, then the slowest.", packed, total)
	} else if packed == 0 && total > int64(view.Shown) {
		v.omit("The table of RPCs has %d of %d.", view.Shown, total)
	}
}

// packSample is the number of rows from which the size of all is estimated.
const packSample = 20_000

// pack adds the data for the script: as many RPCs as there is space for. It returns their number.
func (v *page) pack() int {
	const around = 64 // bytes of the element
	n := len(v.rows.list)
	if n > packSample { // A sample tells how many rows have space, so that few are packed in vain.
		data, err := v.rows.pack(slices.Clone(v.rows.list[:packSample]), v.start) // neighbours take the least space
		if err != nil && v.err == nil {
			v.err = err
		}
		if most := int(float64(v.left) / float64(len(data)+1) * packSample * 1.05); most < n {
			n = most
		}
	}
	for n > 0 {
		rows := slices.Clone(v.rows.list)
		if n < len(rows) {
			rows = v.rows.choose(n)
		}
		data, err := v.rows.pack(rows, v.start)
		if err != nil && v.err == nil {
			v.err = err
		}
		if size := int64(len(data) + around); size <= v.left {
			v.left -= size
			v.parts["data"] = []byte(`<script type="application/octet-stream" id="rows">` + data + "</script>\n") // base64 only
			return n
		} else if n = int(float64(n) * float64(v.left) / float64(size) * 0.95); v.left <= around {
			return 0
		}
	}
	return 0
}

// guide returns what the last part of the page needs.
func (v *page) guide() any {
	return struct{ Records bool }{v.hide == nil}
}
