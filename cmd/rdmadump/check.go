package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/render"
)

// baseline is the set of findings that are not reported because they are known. Each is
// the id of a rule and an operation, separated by a tab. A baseline file has one per line.
type baseline map[string]bool

// parseKnown parses --ignore and reads the file of --baseline.
func (s *settings) parseKnown(f *flags) error {
	s.ignored = map[string]bool{}
	for _, id := range f.ignore {
		if _, err := findRule("--ignore", id); err != nil {
			return err
		}
		s.ignored[id] = true
	}
	if f.baseline == "" {
		return nil
	}
	file, err := os.Open(f.baseline)
	if err != nil {
		return fmt.Errorf("--baseline %s: %w", f.baseline, cause(err))
	}
	defer file.Close()
	s.known = baseline{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, _, _ := strings.Cut(line, "\t")
		if rule.Find(id) == nil {
			return fmt.Errorf("--baseline %s: unknown rule %.40q; --write-baseline writes such files, and rdmadump check --rules lists all rules", f.baseline, printable(id))
		}
		s.known[line] = true
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("--baseline %s: not a file that --write-baseline wrote (%w)", f.baseline, cause(err))
	}
	return nil
}

// cause returns an error of a file without the name of the system call and the path, which
// messages give as they were typed.
func cause(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// refuseInput returns an error if the file at path, the value of a flag, is one of the
// captures that are read, or the file that an output goes to, because writing it
// would destroy the capture or the output.
func refuseInput(flag, path string, captures []string, outputs ...io.Writer) error {
	out, err := os.Stat(path)
	if err != nil {
		return nil // The file does not exist, so it is not a capture.
	}
	is := func(f *os.File) bool {
		info, err := f.Stat()
		return err == nil && info.Mode().IsRegular() && os.SameFile(info, out)
	}
	for _, name := range captures {
		in, err := os.Stat(name)
		if name == "-" && is(os.Stdin) || name != "-" && err == nil && os.SameFile(in, out) {
			return fmt.Errorf("%s %s: this file is one of the captures that are read; choose another name", flag, printable(path))
		}
	}
	for _, w := range outputs {
		if f, isFile := w.(*os.File); isFile && is(f) {
			return fmt.Errorf("%s %s: standard output or standard error goes to this file; choose another name", flag, printable(path))
		}
	}
	return nil
}

// sameFile reports whether two paths name the same file, which need not exist yet.
func sameFile(a, b string) bool {
	x, failed := os.Stat(a)
	y, err := os.Stat(b)
	if failed == nil || err == nil {
		return failed == nil && err == nil && os.SameFile(x, y)
	}
	return filepath.Base(a) == filepath.Base(b) && sameFolder(filepath.Dir(a), filepath.Dir(b))
}

// sameFolder reports whether two paths name the same folder, which exists.
func sameFolder(a, b string) bool {
	x, failed := os.Stat(a)
	y, err := os.Stat(b)
	return failed == nil && err == nil && os.SameFile(x, y)
}

// laterFile is a file that a flag names to be written. It is opened early, and what it contains remains until begin is
// called.
type laterFile struct {
	*os.File
	flag    string
	created bool // it did not exist
	begun   bool
}

// openLater opens the file that a flag names to be written, or creates it.
func openLater(flag, path string) (*laterFile, error) {
	created := true
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		created = false
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, printable(path), cause(err))
	}
	return &laterFile{File: f, flag: flag, created: created}, nil
}

// begin empties the file.
func (l *laterFile) begin() error {
	if l.begun = true; !regular(l.File) {
		return nil
	}
	if err := l.Truncate(0); err != nil {
		return fmt.Errorf("%s %s: %w", l.flag, printable(l.Name()), cause(err))
	}
	return nil
}

// Close closes the file. It removes the file if it did not exist and nothing was written.
func (l *laterFile) Close() error {
	err := l.File.Close()
	if l.created && !l.begun {
		os.Remove(l.Name())
	}
	return err
}

// findRule returns the rule with this id; flag is the flag that the id was given to.
func findRule(flag, id string) (*rule.Rule, error) {
	if r := rule.Find(id); r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("%s %s: unknown rule; see rdmadump check --rules", flag, id)
}

// results collects the findings of check until the whole capture is read.
type results struct {
	groups      []*render.FindingGroup
	byKey       map[groupKey]*render.FindingGroup
	counts      map[string]*render.RuleCount // by rule and severity
	reported    map[string]bool              // lines for --write-baseline
	noHandshake int                          // connections whose handshake is not in the capture
	incomplete  int                          // connections with packets missing from the capture
	connections int
	timeouts    timeouts
	all         []*record.Finding // for -o sarif and -o junit
}

// groupKey identifies findings that text output shows as one.
type groupKey struct {
	rule     string
	severity record.Severity
	atFault  record.Opt[record.End]
}

// findings shows the findings: in text output a few lines for each group, at the end.
func findings(s *sink) (dissect.Handler, func()) {
	c := &results{byKey: map[groupKey]*render.FindingGroup{}, counts: map[string]*render.RuleCount{}, reported: map[string]bool{}}
	s.found = map[record.Severity]int64{}
	inGroups := !s.json && s.columns == nil && s.sorter == nil && s.count == 0 && !s.text.IsLive()
	show := func(r any) error { return s.text.Finding(&render.FindingGroup{First: *r.(*record.Finding), Count: 1}) }
	h := dissect.Handler{
		Finding: func(r *record.Finding) error {
			if !s.wantsFinding(r) || s.ignored[r.Rule] {
				return nil
			}
			line := r.Rule + "\t" + r.Operation.Or("-")
			if s.known[line] {
				return nil
			}
			switch {
			case s.report != "":
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
			c.count(r)
			s.found[r.Severity]++
			if r.Severity.Rank() <= s.failOn.Rank() {
				s.errors++
			}
			return s.status()
		},
		Connection: func(r *record.Connection) error {
			if s.wantsConnection(r.ID) {
				c.connection(r)
			}
			return nil
		},
	}
	if inGroups && s.report == "" && !s.quiet && s.filter == nil {
		h.Transaction = func(r *record.Transaction) error {
			if s.asked(r) {
				c.timeouts.add(r)
			}
			return s.status()
		}
	}
	return h, func() {
		switch {
		case s.report == "sarif":
			s.fail(c.sarif(s.w, s.shown))
		case s.report == "junit":
			s.fail(c.junit(s.w, s.shown))
		case inGroups:
			slices.SortStableFunc(c.groups, func(a, b *render.FindingGroup) int {
				return cmp.Compare(a.First.Packet.Or(0), b.First.Packet.Or(0))
			})
			for _, g := range c.groups {
				s.written++
				s.fail(s.text.Finding(g))
			}
			if !s.quiet {
				s.fail(s.text.Verdict(c.byRule(), append(c.timeouts.lines(), c.unchecked(s.summary)...)))
			}
		}
		if s.accept != "" {
			s.fail(c.writeBaseline(s.accept, s.accepted))
		}
	}
}

// timeouts counts the retransmission timeouts that stalled RPCs. A timeout has one finding, and may stall many RPCs.
type timeouts struct {
	rpcs   int64
	bursts map[int64]bool // first packets that were retransmitted
}

// maxTimeouts limits the number of timeouts that are counted.
const maxTimeouts = 1 << 16

// add adds the timeouts that stalled an RPC.
func (t *timeouts) add(r *record.Transaction) {
	stalled := false
	for i := range r.Waits {
		w := &r.Waits[i]
		if w.Reason != record.RetransmitTimeout {
			continue
		}
		stalled = true
		if packet, known := w.BurstPacket.Get(); known && len(t.bursts) < maxTimeouts {
			if t.bursts == nil {
				t.bursts = map[int64]bool{}
			}
			t.bursts[packet] = true
		}
	}
	if stalled {
		t.rpcs++
	}
}

// lines says how many RPCs the timeouts stalled, if they stalled more RPCs than the findings name.
func (t *timeouts) lines() []string {
	n := int64(len(t.bursts))
	if t.rpcs <= n || n == 0 || n == maxTimeouts {
		return nil
	}
	return []string{fmt.Sprintf("%s stalled %s; a finding names only the RPC whose packet was retransmitted first", number(n, "retransmission timeout"), number(t.rpcs, "RPC"))}
}

// add adds a finding to its group.
func (c *results) add(r *record.Finding) {
	key := groupKey{r.Rule, r.Severity, r.AtFault}
	g := c.byKey[key]
	if g == nil {
		g = &render.FindingGroup{First: *r.Clone()}
		c.byKey[key] = g
		c.groups = append(c.groups, g)
	}
	g.Count++
	g.LastPacket, g.LastPoint = r.Packet, r.Point
}

// count counts a finding for the table of rules.
func (c *results) count(r *record.Finding) {
	t := c.counts[r.Rule+string(r.Severity)]
	if t == nil {
		t = &render.RuleCount{Rule: r.Rule, Severity: r.Severity}
		c.counts[r.Rule+string(r.Severity)] = t
	}
	t.Count++
	switch r.AtFault.Or("") {
	case record.Client:
		t.Client++
	case record.Server:
		t.Server++
	}
}

// byRule returns the rows of the table of rules: the most severe first, then the most
// frequent.
func (c *results) byRule() (all []render.RuleCount) {
	for _, t := range c.counts {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b render.RuleCount) int {
		return cmp.Or(cmp.Compare(a.Severity.Rank(), b.Severity.Rank()), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Rule, b.Rule))
	})
	return all
}

// connection notes whether the capture lacks a part of a connection, so that some rules
// cannot be checked there.
func (c *results) connection(r *record.Connection) {
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
		lines = append(lines, fmt.Sprintf("not checked: %s, on %s: %s", number(int64(len(list)), "rule"), connections, strings.Join(list, ", ")))
	}
	if c.noHandshake > 0 {
		notChecked("no_handshake", fmt.Sprintf("%d of %d connections, whose handshakes are not in the capture", c.noHandshake, c.connections))
	}
	if c.incomplete > 0 {
		notChecked("missing", fmt.Sprintf("%d of %d connections, after the first packet that is missing from the capture", c.incomplete, c.connections))
	}
	if s != nil && s.Truncated > 0 {
		lines = append(lines, fmt.Sprintf("not checked: the missing contents of %s", number(s.Truncated, "truncated packet")))
	}
	for _, n := range possible {
		lines = append(lines, notReported(n))
	}
	return lines
}

// writeBaseline writes the reported findings to a baseline file. The file may be open already.
func (c *results) writeBaseline(path string, f *laterFile) (err error) {
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
	if f == nil {
		err = os.WriteFile(path, []byte(b.String()), 0o666)
	} else if err = f.begin(); err == nil {
		_, err = f.WriteAt([]byte(b.String()), 0)
	}
	if err != nil {
		return fmt.Errorf("--write-baseline %s: %w", printable(path), cause(err))
	}
	return nil
}

// severities lists the severities that findings of a rule can have.
func severities(r *rule.Rule) string {
	var words []string
	for _, s := range r.Severities() {
		words = append(words, string(s))
	}
	return strings.Join(words, ", ")
}

// explains lists the rules, or explains the rule of --explain.
func (f *flags) explains(w io.Writer) error {
	if f.explain == "" {
		for _, r := range rule.All {
			if _, err := fmt.Fprintf(w, "%-30s %-14s %s\n", r.ID, severities(r), r.Title()); err != nil {
				return err
			}
		}
		return nil
	}
	r, err := findRule("--explain", f.explain)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, r.Markdown())
	return err
}

// gapReasons gives the reasons why the capture does not prove a violation, by the name of the
// gap.
var gapReasons = map[string]string{
	"no_handshake":    "the handshake of the connection is not in the capture",
	"no_private_data": "the private data of the handshake is not in the capture",
	"late":            "the capture began after the connection",
	"silent":          "the capture contains the packets of only one side",
	"missing":         "packets are missing from the capture",
	"awaited":         "packets that were acknowledged are not in the capture",
	"half_read":       "an outstanding message was not captured completely",
	"evicted":         "state of the connection was evicted, because the memory limit was reached",
	"truncated_again": "a truncated packet was retransmitted or rejected",
	"xid_reused":      "an XID was reused while a Call with it was outstanding",
	"unordered":       "the packets of the capture are not in the order in which they were sent",
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
