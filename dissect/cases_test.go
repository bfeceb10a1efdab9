package dissect_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
	"github.com/rdmadump/rdmadump/synth/cases"
)

// findings returns the findings of a synthetic wire.
func findings(t testing.TB, w *synth.Wire) (all []record.Finding) {
	d := dissect.New(dissect.Handler{Finding: func(f *record.Finding) error { all = append(all, *f); return nil }}, dissect.Options{})
	for f := range testkit.Made(w.Frames) {
		d.Frame(f)
	}
	d.Finish()
	return all
}

// untabled maps the rules that no single connection can violate to the test that covers them
// instead.
var untabled = map[string]string{
	"memory-limit-reached": "TestMemoryLimitReached",
	"changed-on-path":      "TestChangedOnPath",
}

// repeated maps cases that violate their rule several times to the number of violations, each of which is reported. All
// others violate it once.
var repeated = map[string]int{
	"rdma-version/3, which the server answers with version 1":       3, // three Calls
	"rdma-version/0, which both sides use":                          3,
	"rdma-error/a version although the sender was told":             2, // each Call is refused
	"error-not-answered/a version that both sides use":              3,
	"credit-limit-exceeded/after a callback that was retransmitted": 2, // two Calls above the limit
}

// reports returns how often a rule is reported of a side.
func reports(c *cases.Case, all []record.Finding) (n int) {
	for _, f := range all {
		if f.Rule == c.Rule && string(f.AtFault.Or("")) == c.AtFault {
			n++
		}
	}
	return n
}

// caught reports whether the findings are those that a broken case must have.
func caught(c *cases.Case, all []record.Finding) bool {
	return slices.ContainsFunc(all, func(f record.Finding) bool {
		severity := string(f.Severity)
		if c.Severity == "" {
			severity = string(rule.Find(c.Rule).Severity)
		} else if c.Severity != severity {
			return false
		}
		return f.Rule == c.Rule && string(f.Severity) == severity && string(f.AtFault.Or("")) == c.AtFault && f.Section != ""
	})
}

// TestCases: each rule is reported once for every case that violates it, over each transport, with the
// right side at fault, and is not reported for the twin of the case that obeys it.
func TestCases(t *testing.T) {
	tabled := map[string]bool{}
	for _, c := range cases.All() {
		tabled[c.Rule] = true
		for _, transport := range []string{cases.RoCE, cases.IWARP} {
			if !c.On(transport) {
				continue
			}
			t.Run(transport+"/"+c.Rule+"/"+c.Name, func(t *testing.T) {
				if rule.Find(c.Rule) == nil {
					t.Fatal("there is no such rule")
				}
				broken := findings(t, c.Wire(transport, true))
				if !caught(&c, broken) {
					t.Errorf("broken, at fault %q:%s", c.AtFault, lines(broken))
				}
				if n, want := reports(&c, broken), cmp.Or(repeated[c.Rule+"/"+c.Name], 1); n != want {
					t.Errorf("broken: reported %d times, want %d:%s", n, want, lines(broken))
				}
				healthy := findings(t, c.Wire(transport, false))
				if slices.ContainsFunc(healthy, func(f record.Finding) bool {
					return f.Rule == c.Rule && (c.Severity == "" || c.Severity == string(f.Severity))
				}) {
					t.Errorf("healthy:%s", lines(healthy))
				}
			})
		}
	}
	for _, r := range rule.All {
		if !tabled[r.ID] && untabled[r.ID] == "" {
			t.Errorf("%s has no case", r.ID)
		}
	}
}

// TestClaims: each requirement of docs/requirements.md with the state right names a case of a rule that it names, or a
// test, and its cases exist on RoCEv2 and iWARP, unless the state says on which of them.
func TestClaims(t *testing.T) {
	page, err := os.ReadFile("../docs/requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	transports := map[string][]string{} // by rule and name of the case
	for _, c := range cases.All() {
		for _, transport := range []string{cases.RoCE, cases.IWARP} {
			if c.On(transport) {
				transports[c.Rule+": "+c.Name] = append(transports[c.Rule+": "+c.Name], transport)
			}
		}
	}
	id, tests, claims := regexp.MustCompile(`[a-z]+(-[a-z]+)+`), testNames(t), 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		last := len(cells) - 1
		if last < 4 || !strings.HasPrefix(strings.TrimSpace(cells[last]), "right") {
			continue
		}
		claims++
		on := map[string]bool{}
		for entry := range strings.SplitSeq(cells[last-1], "/") {
			entry = strings.TrimSpace(entry)
			names := []string{entry}
			for _, r := range id.FindAllString(cells[last-2], -1) {
				names = append(names, r+": "+entry)
			}
			known := tests[entry]
			for _, name := range names {
				for _, transport := range transports[name] {
					known, on[transport] = true, true
				}
			}
			if tests[entry] {
				on[cases.RoCE], on[cases.IWARP] = true, true
			}
			if !known {
				t.Errorf("there is no case or test %q: %s", entry, line)
			}
		}
		for transport, name := range map[string]string{cases.RoCE: "RoCEv2", cases.IWARP: "iWARP"} {
			other := map[string]string{"RoCEv2": "on iWARP", "iWARP": "on RoCEv2"}[name]
			if said := strings.Contains(cells[last], "right, "+other); on[transport] == said {
				t.Errorf("cases on %s: %t, but the state is%s: %s", name, on[transport], cells[last], line)
			}
		}
	}
	if claims < 200 {
		t.Errorf("only %d requirements are said to be right", claims)
	}
}

// testNames returns the names of the tests of this package and of those below it.
func testNames(t *testing.T) map[string]bool {
	names, function := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, pattern := range []string{"*_test.go", "*/*_test.go", "internal/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range function.FindAllSubmatch(source, -1) {
				names[string(match[1])] = true
			}
		}
	}
	return names
}

// TestMuted: without any one of the rules, a case is not recognized.
func TestMuted(t *testing.T) {
	missed := map[string]bool{}
	for _, c := range cases.All() {
		for _, transport := range []string{cases.RoCE, cases.IWARP} {
			if !c.On(transport) || missed[c.Rule] {
				continue
			}
			all := findings(t, c.Wire(transport, true))
			rest := slices.DeleteFunc(slices.Clone(all), func(f record.Finding) bool { return f.Rule == c.Rule })
			missed[c.Rule] = caught(&c, all) && !caught(&c, rest)
		}
	}
	for _, r := range rule.All {
		if !missed[r.ID] && untabled[r.ID] == "" {
			t.Errorf("nobody would miss %s", r.ID)
		}
	}
}

// TestFindingTransaction: a finding about an RPC has the id of its transaction, on the same connection and
// with the same XID, and that transaction lists the rule.
func TestFindingTransaction(t *testing.T) {
	for _, c := range cases.All() {
		for _, transport := range []string{cases.RoCE, cases.IWARP} {
			if !c.On(transport) {
				continue
			}
			var all []record.Finding
			byID := map[int64]*record.Transaction{}
			d := dissect.New(dissect.Handler{
				Finding:     func(f *record.Finding) error { all = append(all, *f); return nil },
				Transaction: func(r *record.Transaction) error { byID[r.ID] = r.Clone(); return nil },
			}, dissect.Options{})
			for f := range testkit.Made(c.Wire(transport, true).Frames) {
				d.Frame(f)
			}
			d.Finish()
			for _, f := range all {
				id, known := f.Transaction.Get()
				xid, named := f.XID.Get()
				if known != named && f.Rule != rule.ShortMessageDropped.ID { // a short message starts no transaction
					t.Errorf("%s/%s/%s: %s has XID %v and transaction %v", transport, c.Rule, c.Name, f.Rule, f.XID, f.Transaction)
				}
				if !known {
					continue
				}
				r := byID[id]
				if r == nil || r.XID != xid || r.Connection != f.Connection.Or(0) || !slices.Contains(r.Findings, f.Rule) {
					t.Errorf("%s/%s/%s: %s with XID %v names transaction %d, which is %+v", transport, c.Rule, c.Name, f.Rule, xid, id, r)
				}
			}
		}
	}
}

// lines returns findings, one on a line.
func lines(all []record.Finding) string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "\n  %s %s %q %s", f.Severity, f.Rule, f.AtFault.Or(""), f.Message)
	}
	if len(all) == 0 {
		return " nothing"
	}
	return b.String()
}

// TestMemoryLimitReached: if the memory limit is reached, that is reported, and no side is
// reported as at fault because of the evicted state. With enough memory, nothing is reported.
func TestMemoryLimitReached(t *testing.T) {
	for memory, want := range map[int64]bool{1 << 15: true, 1 << 28: false} {
		w := synth.New()
		for range 40 {
			c := w.RoCE(synth.Options{})
			c.Connect()
			c.RPC(synth.Null(), synth.NullReply())
			c.Client.Call(synth.Null())
			c.Server.Ack()
		}
		said := false
		d := dissect.New(dissect.Handler{Finding: func(f *record.Finding) error {
			said = said || f.Rule == "memory-limit-reached"
			if f.Severity == record.Error {
				t.Errorf("the memory limit was reached, but there is an error: %s: %s", f.Rule, f.Message)
			}
			return nil
		}}, dissect.Options{Memory: memory})
		for f := range testkit.Made(w.Frames) {
			if err := d.Frame(f); err != nil {
				t.Fatal(err)
			}
		}
		d.Finish()
		if said != want {
			t.Errorf("%d bytes of memory: memory-limit-reached %t", memory, said)
		}
	}
}
