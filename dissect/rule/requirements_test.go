package rule_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/rule"
)

// TestRequirements: docs/requirements.md names only rules that exist, and its states are explained.
func TestRequirements(t *testing.T) {
	text, err := os.ReadFile("../../docs/requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	word := regexp.MustCompile(`[a-z]+(-[a-z]+)+`)
	ids, rows := 0, 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 5 || strings.HasPrefix(cells[0], "---") || strings.TrimSpace(cells[0]) == "#" {
			continue
		}
		rows++
		for _, id := range word.FindAllString(cells[len(cells)-3], -1) {
			if ids++; rule.Find(id) == nil {
				t.Errorf("there is no rule %s: %s", id, line)
			}
		}
		state, _, _ := strings.Cut(strings.TrimLeft(cells[len(cells)-1], " "), " ")
		switch strings.TrimRight(state, ":,;") {
		case "right", "shown", "partly", "missing":
		default:
			t.Errorf("unknown state %q: %s", state, line)
		}
	}
	if rows < 224 || ids < 224 {
		t.Errorf("only %d rows with %d rules", rows, ids)
	}
}
