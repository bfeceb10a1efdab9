package manual

import (
	"strings"
	"testing"
)

// TestPageText: help topics are laid out for a width.
func TestPageText(t *testing.T) {
	page := "x 7\n===\n\n# NAME\n\nx\n\n# DESCRIPTION\n\n**one** two three four\nfive six.\n\nmore\n\nWord\n: *meaning* of it\nin two lines\n\n    code  here\n\n# NEXT\n\n\\_a\\*\n"
	want := "DESCRIPTION\n  one two three four\n  five six.\n\n  more\n\n  Word\n      meaning of it in\n      two lines\n    code  here\n\nNEXT\n  _a*\n"
	if got := PageText(page, 22); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, topic := range Topics {
		for line := range strings.Lines(PageText(topic.Page(), 60)) {
			if len(line) > 61 && !strings.HasPrefix(line, "    ") {
				t.Errorf("%s: %q is longer than 60 columns", topic.Name, line)
			}
			if strings.Contains(line, "**") || strings.Contains(line, `\`) {
				t.Errorf("%s: %q has marks of Markdown", topic.Name, line)
			}
		}
	}
}
