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
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rdmadump/rdmadump/dissect/field"
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

	pages = sync.OnceValue(func() *template.Template {
		return template.Must(template.New("").Funcs(template.FuncMap{
			"css": func() template.CSS { return template.CSS(style) }, "prose": prose,
		}).Parse(pageSource))
	})
)

// page is what the template shows.
type page struct {
	About
	Policy     template.HTMLAttr
	Title      string
	Sub        string // what the capture is, in a line
	Hidden     bool   // pseudonyms replace names
	Problems   []problemView
	Timeline   *timeline // nil without RPCs
	Operations *table    // nil without RPCs
	Ladders    []ladderView
	Points     *table // of several capture points; nil for one
	Conns      *table
	Findings   []ruleView
	Undecided  string      // what the capture does not decide
	LeftOut    []string    // sentences about what the page leaves out
	Numbers    [][2]string // about the capture and the command
	NoRPCs     string      // why there is none; empty if there are some

	from   *Report
	places map[string]bool // anchors that links can lead to
	err    error           // the first one of drawing
}

// problemView is a problem, as overview shows it.
type problemView struct {
	Class, Word, Place, Headline, Effect, Evidence, Command string
	Rank                                                    int    // 0 if it has none
	Link                                                    string // anchor of the place with more; empty if there is none
}

// ladderView is a ladder diagram.
type ladderView struct{ ID, Title, Why, Began, Text, Command string }

// ruleView is a rule with findings.
type ruleView struct {
	ID, Rule, Class, Title, First, Section, Quote, From, Link, Command string
	Counts                                                             []countView // by severity
	Text, Causes                                                       []string
}

// countView is a number of findings of a severity.
type countView struct {
	Severity record.Severity
	Count    int64
	Text     string
}

// classes are the classes of the severities.
var classes = map[record.Severity]string{record.Error: "bad", record.Warning: "warn", record.Note: "note"}

// page makes the page.
func (p *Report) page(s *record.Summary, a About) (*page, error) {
	p.overview.Network(a.Points, a.Network)
	p.diagnosis.Network(a.Network)
	slices.SortFunc(p.connections, func(a, b *record.Connection) int { return cmp.Compare(a.ID, b.ID) })
	worst := slices.DeleteFunc(p.diagnosis.Problems(s), func(r *record.Problem) bool { return !r.Shown() })
	story := render.Story{Overview: p.overview.Finish(s), Problems: worst, Summary: s, Window: p.selects.Overlaps != nil}
	v := &page{About: a, Policy: policy(), Hidden: p.hide != nil, from: p, places: map[string]bool{}}
	v.title()
	v.Sub = render.Title(story)
	v.numbers(s, story.Overview)
	rows := p.table.Rows()
	if len(rows) == 0 {
		v.NoRPCs = "The capture has no RPCs."
		if a.Selected != "" {
			v.NoRPCs = "No RPC is selected."
		}
	} else {
		v.operations(rows)
		v.drawLadders(worst)
		v.drawTimeline(s, worst)
	}
	v.drawPoints()
	v.drawConnections()
	v.findings()
	v.problems(story)
	var text bytes.Buffer
	v.note(render.Undecided(render.Screen{Out: &text, Theme: theme(), Width: ladderWidth}, story, nil, render.Captures{Typed: a.Typed}))
	v.Undecided = strings.Trim(text.String(), "\n")
	return v, v.err
}

// note keeps the first error.
func (v *page) note(err error) {
	if v.err == nil {
		v.err = err
	}
}

// omit adds a sentence about what the page leaves out.
func (v *page) omit(n int64, what string, command ...string) {
	if n > 0 {
		v.LeftOut = append(v.LeftOut, fmt.Sprintf("%s: %s", record.Plural(n, what), v.Run(command...)))
	}
}

// problems lists the problems of the capture, the worst first, or says that there are none.
func (v *page) problems(story render.Story) {
	files := render.Captures{Typed: v.Typed}
	if !slices.ContainsFunc(story.Problems, func(p *record.Problem) bool { return p.Severity != record.Note }) {
		text, good := render.Calm(theme(), story)
		calm := problemView{Class: "note", Headline: render.Clean(text)}
		if good {
			calm.Class, calm.Word = "good", "OK"
		}
		v.Problems = append(v.Problems, calm)
	}
	for _, p := range story.Problems[:min(len(story.Problems), maxProblems)] {
		v.Problems = append(v.Problems, problemView{
			Class: classes[p.Severity], Word: render.SeverityWord(p.Severity), Rank: p.Rank, Place: strings.TrimSpace(render.PlaceText(p, len(v.About.Points) > 1)), Headline: render.Clean(p.Headline),
			Effect: render.Clean(render.EffectText(p)), Evidence: render.EvidenceText(p), Command: render.Clean(files.Command(p.Command)), Link: v.linkOf(p),
		})
	}
	v.omit(int64(len(story.Problems)-maxProblems), "problem", "problems", "FILE")
}

// linkOf returns the anchor of what the page shows about a problem: the ladder of its worst RPC, or its rule, or its worst connection.
func (v *page) linkOf(p *record.Problem) string {
	for _, id := range p.Requests {
		if at := rpcAnchor(id); v.places[at] {
			return at
		}
	}
	for _, id := range p.Rules {
		if at := ruleAnchor(id); v.places[at] {
			return at
		}
	}
	for _, id := range p.Connections {
		if at := connAnchor(id); v.places[at] {
			return at
		}
	}
	return ""
}

// The names of places on the page.
func rpcAnchor(id int64) string   { return "rpc-" + strconv.FormatInt(id, 10) }
func connAnchor(id int) string    { return "conn-" + strconv.Itoa(id) }
func ruleAnchor(id string) string { return "rule-" + id }

// operations makes the table of operations.
func (v *page) operations(rows []*analyze.Stats) {
	v.omit(int64(len(rows)-maxOperations), "operation", "stats", "FILE")
	low, high := analyze.LatencyRange(rows)
	rows = rows[:min(len(rows), maxOperations)]
	v.Operations = tableOf(v, "stats", rows, func(t *render.Theme) error { return render.Stats(io.Discard, t, 0, rows) },
		"NAME=Operation", "RPCS=RPCs", "FAILED", "NO REPLY", "P50", "P90", "P99", "WORST", "STALLED")
	v.Operations.Columns = append(v.Operations.Columns, column{Name: "Latencies", Explain: "RPCs by latency, from " + render.Duration(low) + " to " + render.Duration(high) + ", on a logarithmic scale"})
	for i, s := range rows {
		v.Operations.Rows[i] = append(v.Operations.Rows[i], cell{Bars: histogram(s, low, high)})
	}
}

// ladderWidth is the width of ladder diagrams, in columns.
const ladderWidth = 100

// ofProblem is the number of RPCs of one problem that have ladder diagrams, and slowest that of the slowest RPCs if problems name none.
const (
	ofProblem = 2
	slowest   = 3
)

// theme returns the look of text on the page. The fonts of readers need not have box characters of the right width, so it is ASCII.
func theme() *render.Theme { return render.NewTheme(false) }

// drawLadders draws the RPCs that the problems name, as far as their records are kept, or the slowest; and an example of each rule.
func (v *page) drawLadders(worst []*record.Problem) {
	kept := map[int64]*record.Transaction{}
	for _, r := range slices.Concat(v.from.slow, v.from.failed) {
		kept[r.ID] = r
	}
	ids := slices.Sorted(maps.Keys(v.from.rules))
	for _, id := range ids {
		if r := v.from.rules[id].example; r != nil {
			kept[r.ID] = r
		}
	}
	for _, p := range worst {
		n := 0
		for _, id := range p.Requests {
			if r := kept[id]; r != nil && n < ofProblem {
				n++
				v.ladder(r, fmt.Sprintf("problem %d", p.Rank))
			}
		}
	}
	for i := 0; len(v.Ladders) == 0 && i < min(len(v.from.slow), slowest); i++ {
		v.ladder(v.from.slow[i], "one of the slowest")
	}
	for _, id := range ids {
		if s := v.from.rules[id]; s.example != nil && s.first != nil && s.first.Severity != record.Note {
			v.ladder(s.example, id)
		}
	}
}

// ladder draws an RPC, unless it is drawn already or there are enough.
func (v *page) ladder(r *record.Transaction, why string) {
	at := slices.IndexFunc(v.Ladders, func(l ladderView) bool { return l.ID == rpcAnchor(r.ID) })
	switch {
	case at >= 0:
		v.Ladders[at].Why += ", " + why
	case len(v.Ladders) < maxLadders:
		var b bytes.Buffer
		v.note(render.Ladder(&b, theme(), ladderWidth, r, false))
		v.places[rpcAnchor(r.ID)] = true
		v.Ladders = append(v.Ladders, ladderView{
			ID: rpcAnchor(r.ID), Title: fmt.Sprintf("XID %v, %s", r.XID, render.Clean(analyze.Name(r, analyze.ByOperation))), Why: why, Began: clock(r.Start()),
			Text: strings.TrimRight(b.String(), "\n"), Command: v.Run("FILE", "--conn", strconv.Itoa(r.Connection), "--xid", r.XID.String()),
		})
	}
}

// drawPoints makes the table of what happened to packets between several capture points.
func (v *page) drawPoints() {
	list := v.Network
	if len(v.About.Points) < 2 {
		return
	}
	v.Points = tableOf(v, "network", list, func(t *render.Theme) error {
		return render.Network(render.Screen{Out: io.Discard, Theme: t}, v.from.start, nil, list)
	}, "FROM", "TO", "PACKETS", "LOST", "NOT CAPTURED", "UNKNOWN", "REORDERED", "DAMAGED", "DUPLICATED", "P50", "P99", "WORST")
}

// drawConnections makes the table of connections.
func (v *page) drawConnections() {
	list := v.from.connections
	v.omit(int64(v.from.more), "connection", "connections", "FILE")
	v.Conns = tableOf(v, "connections", list, func(t *render.Theme) error {
		text := render.NewText(io.Discard, t, 0)
		for _, c := range list {
			if err := text.Connection(c); err != nil {
				return err
			}
		}
		return nil
	}, "CONN", "CLIENT", "SERVER", "TRANSPORT", "PROTOCOL", "RPCS=RPCs", "CREDITS USED", "PACKETS", "REPEATED", "NOT CAPTURED", "NAKS=NAKs", "CLOSED=End")
	for i, c := range list {
		at := connAnchor(c.ID)
		v.Conns.Rows[i][0].ID, v.places[at] = at, true
	}
}

// findings lists the rules with findings, the most severe first.
func (v *page) findings() {
	ids := slices.DeleteFunc(slices.Collect(maps.Keys(v.from.rules)), func(id string) bool { return v.from.rules[id].first == nil })
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(v.from.rules[a].first.Severity.Rank(), v.from.rules[b].first.Severity.Rank()), cmp.Compare(a, b))
	})
	for _, id := range ids {
		sum := v.from.rules[id]
		f := sum.first
		view := ruleView{ID: ruleAnchor(id), Rule: id, Class: classes[f.Severity], First: render.Clean(f.Message), Command: v.Run("check", "FILE", "--all", "-Y", "rule == "+id)}
		for _, severity := range record.Severities {
			if n := sum.counts[severity]; n > 0 {
				view.Counts = append(view.Counts, countView{severity, n, record.Plural(n, string(severity))})
			}
		}
		if r := rule.Find(id); r != nil {
			text := r.Page()
			view.Title, view.Section, view.Quote, view.From, view.Causes = text.Title, r.Section, text.Quote, text.From, text.Causes
			view.Text = strings.Split(text.Text, "\n\n")
		}
		about := func(format string, v any) { view.First += fmt.Sprintf(format, v) }
		if at, known := f.Packet.Get(); known {
			about("; packet %d", at)
		}
		if xid, known := f.XID.Get(); known {
			about(", XID %v", xid)
		}
		if side, known := f.AtFault.Get(); known {
			view.First += ", at fault: " + string(side)
		}
		if conn, known := f.Connection.Get(); known {
			about(", connection %d", conn)
			if at := connAnchor(conn); v.places[at] {
				view.Link = at
			}
		}
		if sum.example != nil && v.places[rpcAnchor(sum.example.ID)] {
			view.Link = rpcAnchor(sum.example.ID)
		}
		v.Findings, v.places[view.ID] = append(v.Findings, view), true
	}
}

// title sets the title, and cleans the names of the captures.
func (v *page) title() {
	var names []string
	for i := range v.Files {
		v.Files[i].Name = render.Clean(v.Files[i].Name)
		if base := filepath.Base(v.Files[i].Name); !slices.Contains(names, base) {
			names = append(names, base)
		} else {
			names = append(names, v.Files[i].Name)
		}
	}
	v.Title = "Report of " + strings.Join(names, ", ")
}

// maxMounts is the number of mounts that the page lists.
const maxMounts = 8

// numbers lists what the page says about the capture and the command.
func (v *page) numbers(s *record.Summary, o *analyze.Overview) {
	row := func(name, format string, args ...any) {
		v.Numbers = append(v.Numbers, [2]string{name, fmt.Sprintf(format, args...)})
	}
	if first, known := s.First.Get(); known {
		last := s.Last.Or(first)
		row("Time", "%s to %s (%s)", clock(first), clock(last), render.Duration(last.Sub(first)))
	}
	for _, m := range o.Mounted[:min(len(o.Mounted), maxMounts)] {
		row("Mounted", "%s", render.Clean(render.MountText(&m)))
	}
	if n := len(o.Mounted); n > maxMounts {
		row("Mounted", "and %s of client, server and version", render.MorePairs(n, maxMounts))
	}
	rpcs := field.Count(o.RPCs.Requests)
	if o.RPCs.Attempts > o.RPCs.Requests {
		rpcs += " in " + field.Count(o.RPCs.Attempts) + " attempts"
	}
	row("RPCs", "%s", rpcs)
	row("Packets", "%d, of which %d carry RDMA; %d bytes", s.Packets, s.RDMA, s.Bytes)
	row("Connections", "%d", s.Connections)
	if v.LinkTypes != nil {
		row("Link type", "%s", strings.Join(v.LinkTypes, ", "))
	}
	if v.Records != "" {
		row("Input", "%s", v.Records)
	}
	if v.Selected != "" {
		row("Selected", "%s", render.Clean(v.Selected))
	}
	complete := "The capture was read completely."
	if v.Error != "" {
		complete = render.Clean(v.Error)
	}
	row("Completeness", "%s %s truncated, %s not captured.", complete, record.Plural(s.Truncated, "packet"), record.Plural(s.NotCaptured, "packet"))
	words := []string{"rdmadump"}
	for _, arg := range v.Command {
		words = append(words, quoted(arg))
	}
	row("Command", "%s", render.Clean(strings.Join(words, " ")))
}

// clock returns a time as a date and a time of day.
func clock(at record.Time) string {
	return time.Unix(0, int64(at)).UTC().Format("2006-01-02 15:04:05.000000 UTC")
}

// Run returns a command of rdmadump. FILE stands for the captures. The selection of the page follows
// unless the command has an expression of its own.
func (v *page) Run(args ...string) string {
	words := []string{"rdmadump"}
	for _, arg := range args {
		if arg == "FILE" {
			words = append(words, v.Typed)
		} else {
			words = append(words, quoted(arg))
		}
	}
	if !slices.Contains(args, "-Y") {
		words = append(words, v.Selection...)
	}
	return render.Clean(strings.Join(words, " "))
}

// flag matches the arguments that are flags.
var flag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^--?[A-Za-z][-a-z]*$`) })

// quoted returns an argument for a shell.
func quoted(arg string) string {
	if flag().MatchString(arg) {
		return arg
	}
	return shell.File(arg)
}

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

// policy is the Content-Security-Policy of the page. It allows the style of the page and nothing else: no network, no script, no frame.
func policy() template.HTMLAttr {
	sum := sha256.Sum256([]byte(style))
	return template.HTMLAttr(`content="default-src 'none'; style-src 'sha256-` + base64.StdEncoding.EncodeToString(sum[:]) + `'; base-uri 'none'; form-action 'none'"`)
}
