package rule

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/docs/rules"
)

var update = flag.Bool("update", false, "rewrite the generated section of the pages in docs/rules")

// TestPages verifies that each rule has a page with all parts, that the generated
// section of the page is current, and that each page belongs to a rule.
func TestPages(t *testing.T) {
	for _, r := range All {
		text := r.file()
		if text == "" {
			t.Errorf("there is no docs/rules/%s.md", r.ID)
			continue
		}
		if current := withGenerated(text, r.generated()); text != current {
			path := filepath.Join("../../docs/rules", r.ID+".md")
			if !*update {
				t.Errorf("%s: the generated section is not current; go test ./dissect/rule -update rewrites it", path)
			} else if err := os.WriteFile(path, []byte(current), 0o666); err != nil {
				t.Fatal(err)
			}
			text = current
		}
		p, err := parsePage(r.ID, text)
		if err != nil {
			t.Errorf("the page of %s cannot be read: %v", r.ID, err)
			continue
		}
		checkPage(t, r.ID, &p)
	}
	names, err := fs.Glob(rules.Pages, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if id, _ := strings.CutSuffix(name, ".md"); Find(id) == nil {
			t.Errorf("docs/rules/%s belongs to no rule", name)
		}
	}
}

// checkPage verifies the form of a page's parts.
func checkPage(t *testing.T, id string, p *Page) {
	if !regexp.MustCompile(`^(A|An|The|No|Packets|Bytes) .{10,75}[^.]$`).MatchString(p.Title) {
		t.Errorf("%s: the title has to be a full clause of at most 80 characters, without a period: %q", id, p.Title)
	}
	if !strings.HasSuffix(p.Text, ".") || strings.Count(p.Text, ". ") < 2 {
		t.Errorf("%s: the text has to say what the finding means, why it matters and what to do: %q", id, p.Text)
	}
	for _, cause := range p.Causes {
		if !regexp.MustCompile(`^[A-Z].*[.)]$`).MatchString(cause) {
			t.Errorf("%s: a cause is not a full sentence: %q", id, cause)
		}
	}
	if command := regexp.MustCompile("`rdmadump [a-z]+ FILE[^`]*`: "); !slices.ContainsFunc(p.Next, command.MatchString) {
		t.Errorf("%s: no command of rdmadump is among the things to look at: %q", id, p.Next)
	}
}

// TestMarkdown verifies what people get to read: all of a page but the comments.
func TestMarkdown(t *testing.T) {
	r := ReceiveNotPosted
	text, p := r.Markdown(), r.Page()
	for _, part := range []string{"# receive-not-posted\n\n**" + r.Title() + "**\n\n", "\n> The responder MUST", p.Causes[0], "\n- Severity: error\n", "\n## Reported only if\n\n- the capture contains the handshake"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
	if strings.Contains(text, "<!--") || strings.Contains(text, "\n\n\n") || !strings.HasSuffix(text, "begun to close the connection\n") {
		t.Errorf("the text has traces of the comments:\n%s", text)
	}
	if text := ErrorNotAnswered.Markdown(); !strings.Contains(text, "- Severity in some cases: warning (source: RFC 8166 s.4.6)\n") {
		t.Errorf("the severity of a variant is not in\n%s", text)
	}
	if text := Congestion.Markdown(); !strings.Contains(text, "other packets may be missing from the capture") {
		t.Errorf("that the rule needs nothing else is not in\n%s", text)
	}
}

// TestMalformedPages verifies that a page that lacks a part is an error.
func TestMalformedPages(t *testing.T) {
	const generated = beginGenerated + "\n\nfacts\n\n" + endGenerated + "\n"
	const good = "# x\n\n**The title**\n\nText of\ntwo lines.\n\nMore.\n\nFrom RFC 1 s.2:\n\n> A\n> quote.\n\n## Usual causes\n\n- one\n- two\n  lines\n\n## What to look at\n\n- `command`\n\n" + generated
	p, err := parsePage("x", good)
	if err != nil || p.Title != "The title" || p.Text != "Text of two lines.\n\nMore." || p.From != "RFC 1 s.2" || p.Quote != "A quote." || !slices.Equal(p.Causes, []string{"one", "two lines"}) || !slices.Equal(p.Next, []string{"`command`"}) {
		t.Fatalf("the page is read as %+v, error %v; want all its parts", p, err)
	}
	for name, change := range map[string][2]string{
		"no heading":           {"# x\n\n", ""},
		"the id of another":    {"# x", "# y"},
		"a title not in bold":  {"**The title**", "The title"},
		"no title":             {"**The title**", "****"},
		"no text":              {"Text of\ntwo lines.\n\nMore.\n\n", ""},
		"no colon":             {"s.2:", "s.2"},
		"a section, no quote":  {"> A\n> quote.\n\n", ""},
		"no causes":            {"## Usual causes\n\n- one\n- two\n  lines\n\n", ""},
		"an empty list":        {"- `command`\n\n", ""},
		"an empty item":        {"- `command`\n", "- \n- `command`\n"},
		"text instead of list": {"- `command`", "`command`"},
		"text after the list":  {"- `command`\n", "- `command`\n\nmore\n"},
		"no generated section": {generated, ""},
		"no end":               {endGenerated + "\n", ""},
		"text after the end":   {endGenerated + "\n", endGenerated + "\n\nmore\n"},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if _, err := parsePage("x", text); text == good || err == nil {
			t.Errorf("a page that is wrong (%s) is read without an error", name)
		}
	}
}
