package manual

import (
	"strings"
	"testing"
)

// TestPageText: help topics are laid out for a width.
func TestPageText(t *testing.T) {
	page := "# NAME\n\nx\n\n# DESCRIPTION\n\n**one** two three four\nfive six.\n\nmore\n\nWord\n: *meaning* of it\nin two lines\n\n    code  here\n\n# NEXT\n\n\\_a\\*\n"
	want := "DESCRIPTION\n  one two three four\n  five six.\n\n  more\n\n  Word\n      meaning of it in\n      two lines\n    code  here\n\nNEXT\n  _a*\n"
	if got := pageText(page, 22); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, topic := range Topics {
		for line := range strings.Lines(pageText(topic.Page(), 60)) {
			if len(line) > 61 && !strings.HasPrefix(line, "    ") {
				t.Errorf("%s: %q is longer than 60 columns", topic.Name, line)
			}
			if strings.Contains(line, "**") || strings.Contains(line, `\`) {
				t.Errorf("%s: %q has marks of Markdown", topic.Name, line)
			}
		}
	}
}

// TestManPage: a page has the macros of man(7), and no character of its text is taken for a request or printed as another.
func TestManPage(t *testing.T) {
	page := "# NAME\nx-y - does\n\n# DESCRIPTION\nWith **-Y** *'a'*, a\\_b\nand \\*.\n\n.dots ~ ^ `\n\n  x --one '*' \\n\n\n  .two\n\n" +
		"## More\n**--flag** *value*\n: Its meaning.\n\nEnd.\n"
	want := ".nh\n.TH \"X\\-Y\" \"1\" \"Jan 2026\" \"rdmadump\" \"User Commands\"\n.SH NAME\nx\\-y \\- does\n.SH DESCRIPTION\n" +
		"With \\fB\\-Y\\fP \\fI\\(aqa\\(aq\\fP, a_b and *.\n.PP\n\\&.dots \\(ti \\(ha \\(ga\n.PP\n.EX\n  x \\-\\-one \\(aq*\\(aq \\en\n.EE\n.PP\n.EX\n  .two\n.EE\n" +
		".SS More\n.TP\n\\fB\\-\\-flag\\fP \\fIvalue\\fP\nIts meaning.\n.PP\nEnd.\n"
	if got := string(manPage("x-y", 1, "Jan 2026", page)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
