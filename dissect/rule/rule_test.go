package rule_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// TestTable: ids are kebab-case and unique, and no cell is empty.
func TestTable(t *testing.T) {
	kebab := regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, r := range rule.All {
		if !kebab.MatchString(r.ID) || seen[r.ID] {
			t.Errorf("%q is no id, or there twice", r.ID)
		}
		if !slices.Contains(record.Severities[:], r.Severity) || r.Section == "" {
			t.Errorf("%s: %+v", r.ID, *r)
		}
		seen[r.ID] = true
	}
	if len(rule.All) < 37 {
		t.Errorf("%d rules", len(rule.All))
	}
}

// TestRenamed verifies that each old id belongs to no rule and each new id to one.
func TestRenamed(t *testing.T) {
	if len(rule.Renamed) == 0 {
		t.Error("the table of renamed rules is empty")
	}
	for old, now := range rule.Renamed {
		if rule.Find(old) != nil {
			t.Errorf("%s is still the id of a rule", old)
		}
		if rule.Find(now) == nil {
			t.Errorf("%s was renamed to %s, which is the id of no rule", old, now)
		}
	}
}

var update = flag.Bool("update", false, "write docs/rules anew")

// TestPages: every rule is explained, and docs/rules is what the table says.
func TestPages(t *testing.T) {
	const dir = "../../docs/rules"
	names := map[string]bool{}
	for _, r := range rule.All {
		if r.Title == "" || r.Text == "" || len(r.Causes) == 0 || len(r.Next) == 0 {
			t.Errorf("%s is not explained", r.ID)
		}
		path := filepath.Join(dir, r.ID+".md")
		names[r.ID+".md"] = true
		if *update {
			if err := os.WriteFile(path, []byte(r.Markdown()), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(path); err != nil || string(have) != r.Markdown() {
			t.Errorf("%s is not what the table says (go test ./dissect/rule -update writes it anew): %v", path, err)
		}
	}
	have, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range have {
		if !names[f.Name()] {
			t.Errorf("%s is of no rule", f.Name())
		}
	}
}
