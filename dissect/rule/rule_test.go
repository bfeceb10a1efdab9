package rule_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// TestTable verifies that ids are in kebab case and unique, and that no cell is empty.
func TestTable(t *testing.T) {
	kebab := regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, r := range rule.All {
		if !kebab.MatchString(r.ID) || seen[r.ID] {
			t.Errorf("%q is not an id, or is in the table twice", r.ID)
		}
		if !slices.Contains(record.Severities[:], r.Severity) || r.Section == "" {
			t.Errorf("%s has the severity %q and the section %q; want a known severity, and a section", r.ID, r.Severity, r.Section)
		}
		seen[r.ID] = true
	}
	if len(rule.All) < 37 {
		t.Errorf("%d rules", len(rule.All))
	}
}
