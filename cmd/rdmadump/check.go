package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/render"
)

// baseline are findings that are known: rule and operation, with a tab between
// them. It is a file of such lines.
type baseline map[string]bool

// parseKnown reads what is not to be reported.
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
		return err
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
		if now := rule.Renamed[id]; now != "" {
			return fmt.Errorf("--baseline %s: the rule %s is now called %s; change the name in the file, or write a new file with --write-baseline", f.baseline, id, now)
		}
		if rule.Find(id) == nil {
			return fmt.Errorf("--baseline %s: there is no rule %.40s; --write-baseline writes such files, and rdmadump check --rules lists all rules", f.baseline, printable(id))
		}
		s.known[line] = true
	}
	return lines.Err()
}

// findRule returns the rule with this id. The error for an old id of a renamed rule
// gives the new one; flag is the flag that the id was given to.
func findRule(flag, id string) (*rule.Rule, error) {
	if r := rule.Find(id); r != nil {
		return r, nil
	}
	if now := rule.Renamed[id]; now != "" {
		return nil, fmt.Errorf("%s %s: this rule is now called %s", flag, id, now)
	}
	return nil, fmt.Errorf("%s %s: there is no such rule; see rdmadump check --rules", flag, id)
}

// oldRuleID returns an error if an expression about rules or findings contains the old
// id of a renamed rule, because such an expression would match nothing. flag is the
// flag that the expression was given to.
func oldRuleID(flag, expression string) error {
	if !strings.Contains(expression, "rule") && !strings.Contains(expression, "findings") {
		return nil
	}
	words := strings.FieldsFunc(expression, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') })
	for _, id := range words {
		if now := rule.Renamed[id]; now != "" {
			return fmt.Errorf("%s %s: the rule %s is now called %s", flag, expression, id, now)
		}
	}
	return nil
}

// judge is what check keeps until all is read.
type judge struct {
	groups      []*render.FindingGroup
	byKey       map[groupKey]*render.FindingGroup
	tally       map[string]*render.RuleCount
	found       map[string]bool // for --write-baseline
	missed      int             // connections whose handshake is not in the capture
	lossy       int             // of which packets are missing
	connections int
	all         []*record.Finding // for a report
}

// groupKey is what findings have in common that are shown once.
type groupKey struct {
	rule     string
	severity record.Severity
	atFault  record.Opt[record.End]
}

// findings is a few lines for each thing that is wrong.
func findings(s *sink) (dissect.Handler, func()) {
	j := &judge{byKey: map[groupKey]*render.FindingGroup{}, tally: map[string]*render.RuleCount{}, found: map[string]bool{}}
	grouped := !s.json && s.columns == nil && s.sorter == nil && s.count == 0 && !s.text.IsLive()
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
				j.all = append(j.all, r.Clone())
			case !grouped:
				if !s.take(r, show) {
					return s.status()
				}
			case !s.matches(r):
				return s.status()
			default:
				j.add(r)
			}
			j.found[line] = true
			j.count(r)
			if r.Severity.Rank() <= s.failOn.Rank() {
				s.errors++
			}
			return s.status()
		},
		Connection: func(r *record.Connection) error {
			if s.wantsConnection(r.ID) {
				j.saw(r)
			}
			return nil
		},
	}
	return h, func() {
		switch {
		case s.report == "sarif":
			s.fail(j.sarif(s.w, s.shown))
		case s.report == "junit":
			s.fail(j.junit(s.w, s.shown))
		case grouped:
			slices.SortStableFunc(j.groups, func(a, b *render.FindingGroup) int {
				return cmp.Compare(a.First.Packet.Or(0), b.First.Packet.Or(0))
			})
			for _, g := range j.groups {
				s.written++
				s.fail(s.text.Finding(g))
			}
			if !s.quiet {
				s.fail(s.text.Verdict(j.counts(), j.unjudged(s.summary)))
			}
		}
		if s.accept != "" {
			s.fail(j.writeBaseline(s.accept))
		}
	}
}

// add puts a finding with its like.
func (j *judge) add(r *record.Finding) {
	key := groupKey{r.Rule, r.Severity, r.AtFault}
	g := j.byKey[key]
	if g == nil {
		g = &render.FindingGroup{First: *r.Clone()}
		j.byKey[key] = g
		j.groups = append(j.groups, g)
	}
	g.Count++
	g.LastPacket = r.Packet
}

// count counts a finding for the table of rules.
func (j *judge) count(r *record.Finding) {
	t := j.tally[r.Rule+string(r.Severity)]
	if t == nil {
		t = &render.RuleCount{Rule: r.Rule, Severity: r.Severity}
		j.tally[r.Rule+string(r.Severity)] = t
	}
	t.Count++
	switch r.AtFault.Or("") {
	case record.Client:
		t.Client++
	case record.Server:
		t.Server++
	}
}

func (j *judge) counts() (all []render.RuleCount) {
	for _, t := range j.tally {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b render.RuleCount) int {
		return cmp.Or(cmp.Compare(a.Severity.Rank(), b.Severity.Rank()), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Rule, b.Rule))
	})
	return all
}

// saw notes what a connection's part of the capture cannot prove.
func (j *judge) saw(r *record.Connection) {
	if r.UpperLayer != "rpcrdma" {
		return
	}
	j.connections++
	if r.Handshake != "seen" {
		j.missed++
	} else if r.NotCaptured > 0 {
		j.lossy++
	}
}

// unjudged says which rules could not be judged, and why.
func (j *judge) unjudged(s *record.Summary) (lines []string) {
	needs := func(gaps ...string) string { return strings.Join(rule.Needing(gaps...), ", ") }
	if j.missed > 0 {
		lines = append(lines, fmt.Sprintf("not judged on %d of %d connections, because their handshake is not in the capture: %s", j.missed, j.connections, needs("no_handshake")))
	}
	if j.lossy > 0 {
		lines = append(lines, fmt.Sprintf("not judged on %d of %d connections after the first packet that is missing from the capture: %s", j.lossy, j.connections, needs("missing")))
	}
	if s != nil && s.Truncated > 0 {
		lines = append(lines, fmt.Sprintf("%d packets are truncated; their missing contents are not judged", s.Truncated))
	}
	if s != nil {
		for _, n := range s.NotJudged {
			lines = append(lines, fmt.Sprintf("%s was not reported %s, because the capture does not prove it (%s)", n.Rule, howOften(n.Count), n.Gap))
		}
	}
	return lines
}

// writeBaseline writes what was found.
func (j *judge) writeBaseline(path string) error {
	var b strings.Builder
	b.WriteString("# Findings that rdmadump check --baseline does not report: rule, operation.\n")
	lines := make([]string, 0, len(j.found))
	for line := range j.found {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	return os.WriteFile(path, []byte(b.String()), 0o666)
}

// explains lists the rules, or says what one means.
func (f *flags) explains(w io.Writer) error {
	if f.explain == "" {
		for _, r := range rule.All {
			if _, err := fmt.Fprintf(w, "%-30s %-8s %s\n", r.ID, r.Severity, r.Title()); err != nil {
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

// howOften returns how often something happened, in words.
func howOften(n int64) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
