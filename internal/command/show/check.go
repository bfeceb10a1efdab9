package show

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/render"
)

// results collects the findings of check until the whole capture is read.
type results struct {
	groups      []*render.FindingGroup
	byKey       map[groupKey]*render.FindingGroup
	reported    map[string]bool // lines for --write-baseline
	noHandshake int             // connections whose handshake is not in the capture
	incomplete  int             // connections with packets missing from the capture
	connections int
	clients     map[string]bool   // up to two
	all         []*record.Finding // for -o sarif and -o junit
	hosts       *record.Hosts     // names for text; nil if there are none
}

func newResults(s *sink) *results {
	return &results{byKey: map[groupKey]*render.FindingGroup{}, reported: map[string]bool{}, clients: map[string]bool{}, hosts: s.Hosts}
}

// groupKey identifies findings that text output shows as one.
type groupKey struct {
	rule     string
	severity record.Severity
	atFault  record.Opt[record.End]
}

// findings shows the findings: in text output a few lines for each group, at the end.
func findings(s *sink) (dissect.Handler, func()) {
	c := newResults(s)
	s.found = map[record.Severity]int64{}
	inGroups := !s.All && !s.JSON && s.Columns == nil && s.sorter == nil && s.Count == 0 && !s.text.IsLive()
	show := func(r any) error { return s.text.Finding(r.(*record.Finding)) }
	h := dissect.Handler{
		Finding: func(r *record.Finding) error {
			if !s.WantsFinding(r) || s.Ignored[r.Rule] {
				return nil
			}
			line := r.Rule + "\t" + r.Operation.Or("-")
			if s.Known[line] {
				return nil
			}
			switch {
			case s.Report != "":
				if !s.matches(r) {
					return s.status()
				}
				c.all = append(c.all, r.Clone())
			case !inGroups:
				if !s.take(r, show) {
					return s.status()
				}
			case !s.matches(r):
				return s.status()
			default:
				c.add(r)
			}
			c.reported[line] = true
			s.found[r.Severity]++
			if r.Severity.Rank() <= s.FailOn.Rank() {
				s.errors++
			}
			return s.status()
		},
		Connection: func(r *record.Connection) error {
			if s.WantsConnection(r.ID) {
				c.connection(r)
			}
			return nil
		},
	}
	return h, func() {
		switch {
		case s.Report == "sarif":
			s.fail(c.sarif(s.w, s.Shown))
		case s.Report == "junit":
			s.fail(c.junit(s.w, s.Shown, s.FailOn))
		case inGroups:
			c.draw(s)
		case s.All && !s.JSON && s.Columns == nil && !s.Quiet:
			s.release()
			for _, line := range c.unchecked(s.summary) {
				s.fail(render.Labeled(s.w, cmp.Or(s.width, 120), "", line))
			}
		}
		if s.Accept != "" {
			s.fail(c.writeBaseline(s.ctx, s.Accept))
		}
	}
}

// maxFaulty limits the number of hosts for which the findings of a group are counted.
const maxFaulty = 1 << 10

// add adds a finding to its group.
func (c *results) add(r *record.Finding) {
	key := groupKey{r.Rule, r.Severity, r.AtFault}
	g := c.byKey[key]
	if g == nil {
		g = &render.FindingGroup{First: *record.Named(r.Clone(), c.hosts), Hosts: map[string]int64{}}
		c.byKey[key] = g
		c.groups = append(c.groups, g)
	}
	host := r.Client
	if r.AtFault.Or(record.Client) == record.Server {
		host = r.Server
	}
	if name := c.hosts.Shown(host.Or("?")); g.Hosts[name] > 0 || len(g.Hosts) < maxFaulty {
		g.Hosts[name]++
	}
	g.Count++
	g.LastPacket, g.LastPoint, g.LastTime = r.Packet, r.Point, r.Time
}

// draw writes the groups, and what was not checked.
func (c *results) draw(s *sink) {
	if len(c.clients) < 2 {
		for _, g := range c.groups {
			g.Hosts = nil
		}
	}
	s.written += int64(len(c.groups))
	if len(c.groups) == 0 && (s.Quiet || s.Filter != nil || s.summary == nil || s.summary.RDMA+s.summary.RPC == 0 || s.nothing() != nil || s.outside(s.summary) != "") {
		return
	}
	scope := c.scope()
	if s.Quiet {
		scope = ""
	}
	s.fail(render.Findings(s.screen(s.w), c.groups, s.Start, len(rule.All)-len(s.Ignored), scope))
	if len(c.groups) == 0 || s.Quiet || s.width == 0 {
		return
	}
	if s.Typed != "" {
		s.fail(render.Next(s.screen(s.w), "what they cost, and why: ", []string{"problems"}, s.captures()))
	}
	first := &c.groups[0].First // drawn first
	s.more = []string{"check", "--explain", first.Rule}
	if xid, known := first.XID.Get(); known && first.Connection.Known() {
		s.moreIs, s.more = "draw the RPC of the first: ", []string{"--conn", strconv.Itoa(first.Connection.Or(0)), "--xid", xid.String()}
	}
}

// connection notes whether the capture lacks a part of a connection, so that some rules
// cannot be checked there.
func (c *results) connection(r *record.Connection) {
	if client := r.Client.Address.Or(""); len(c.clients) < 2 && client != "" {
		c.clients[client] = true
	}
	if r.UpperLayer != "rpcrdma" {
		return
	}
	c.connections++
	if r.Handshake != "seen" {
		c.noHandshake++
	} else if r.NotCaptured > 0 {
		c.incomplete++
	}
}

// scope says how many rules were not checked everywhere.
func (c *results) scope() string {
	var gaps, reasons []string
	if c.noHandshake > 0 {
		gaps, reasons = append(gaps, "no_handshake"), append(reasons, "handshake missing")
	}
	if c.incomplete > 0 {
		gaps, reasons = append(gaps, "missing"), append(reasons, "packets missing")
	}
	n := len(rule.Needing(gaps...))
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d rules not checked everywhere (%s); --all lists them", n, len(rule.All), strings.Join(reasons, ", "))
}

// unchecked returns lines that name the rules that could not be checked everywhere, and
// the reason. A line also has the possible violations that are not reported for the same reason; for
// other reasons, a violation has a line of its own.
func (c *results) unchecked(s *record.Summary) (lines []string) {
	var possible []record.NotJudged // that no line has
	if s != nil {
		possible = slices.Clone(s.NotJudged)
	}
	notChecked := func(gap, connections string) {
		var list []string
		for _, id := range rule.Needing(gap) {
			if at := slices.IndexFunc(possible, func(n record.NotJudged) bool { return n.Rule == id && n.Gap == gap }); at >= 0 {
				id += fmt.Sprintf(" (%d possible)", possible[at].Count)
				possible = slices.Delete(possible, at, at+1)
			}
			list = append(list, id)
		}
		lines = append(lines, fmt.Sprintf("not checked: %s, on %s: %s", record.Plural(int64(len(list)), "rule"), connections, strings.Join(list, ", ")))
	}
	if c.noHandshake > 0 {
		notChecked("no_handshake", fmt.Sprintf("%d of %s, whose handshakes are not in the capture", c.noHandshake, record.Plural(c.connections, "connection")))
	}
	if c.incomplete > 0 {
		notChecked("missing", fmt.Sprintf("%d of %s, after the first packet that was not captured", c.incomplete, record.Plural(c.connections, "connection")))
	}
	if s != nil && s.Truncated > 0 {
		lines = append(lines, fmt.Sprintf("not checked: the missing contents of %s", record.Plural(s.Truncated, "truncated packet")))
	}
	for _, n := range possible {
		lines = append(lines, notReported(n))
	}
	return lines
}

// writeBaseline writes the reported findings to a baseline file.
func (c *results) writeBaseline(ctx context.Context, path string) error {
	var b strings.Builder
	b.WriteString("# Findings that rdmadump check --baseline does not report: rule, operation.\n")
	lines := make([]string, 0, len(c.reported))
	for line := range c.reported {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	_, err := command.Until(ctx, "--write-baseline "+path, func() (any, error) { return nil, os.WriteFile(path, []byte(b.String()), 0o666) })
	if err != nil {
		return fmt.Errorf("--write-baseline %s: %w", render.Clean(path), command.Cause(err))
	}
	return nil
}

// gapReasons gives the reasons why the capture does not prove a violation, by the name of the
// gap.
var gapReasons = map[string]string{
	"no_handshake":    "the handshake of the connection is not in the capture",
	"no_private_data": "the private data of the handshake is not in the capture",
	"late":            "the capture began after the connection",
	"silent":          "the capture contains the packets of only one side",
	"missing":         "packets were not captured, or were lost",
	"awaited":         "packets that were acknowledged are not in the capture",
	"half_read":       "an outstanding message was not captured completely",
	"no_xid":          "a message was captured without its XID",
	"evicted":         "state of the connection was evicted, because the memory limit was reached",
	"truncated_again": "a truncated packet was retransmitted or rejected",
	"xid_reused":      "an XID was reused while a Call with it was in flight",
	"unordered":       "the packets are not in the order in which they were sent",
	"closing":         "the connection was being closed",
}

// notReported says how many violations of a rule were not reported, and why.
func notReported(n record.NotJudged) string {
	reason := gapReasons[n.Gap]
	if reason == "" {
		reason = "the capture does not prove it (" + n.Gap + ")"
	}
	return fmt.Sprintf("not reported: %d possible %s, because %s", n.Count, n.Rule, reason)
}
