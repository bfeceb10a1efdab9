package rule

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/docs/rules"
)

// Needing returns the ids of the rules whose findings one of these gaps prevents, in
// the order of the table. Gaps are named as in summary.not_judged.
func Needing(gaps ...string) (ids []string) {
	for _, r := range All {
		n := r.Needs
		all := n.Own | n.Other | n.Connection
		if slices.ContainsFunc(gaps, func(name string) bool { return all&Named(name) != 0 }) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// Page is the hand-written part of a rule's file in docs/rules. Line breaks within a
// paragraph or list item are replaced by spaces.
type Page struct {
	Title  string   // a full clause that says what is wrong, without a period
	Text   string   // what it means, why it matters and what to do; an empty line separates paragraphs
	From   string   // the section that Quote is from, such as "RFC 8166 s.3.3.1"; empty if there is no quote
	Quote  string   // the sentence of that section that the rule enforces; may be empty
	Causes []string // what usually causes it
	Next   []string // what to look at; FILE stands for the capture in commands
}

// The headings and comments that separate the parts of a page.
const (
	causesHeading  = "## Usual causes"
	nextHeading    = "## What to look at"
	beginGenerated = "<!-- generated: go test ./dissect/rule -update writes this section -->"
	endGenerated   = "<!-- end of generated text -->"
)

// Page returns the parsed page of the rule. It returns an empty page if there is no
// page or if it is malformed; a test verifies that this happens for no rule.
func (r *Rule) Page() Page {
	p, _ := parsePage(r.ID, r.file())
	return p
}

// Title returns a full clause that says what is wrong.
func (r *Rule) Title() string { return r.Page().Title }

// Markdown returns the rule's page as docs/rules has it, without the comments that mark
// the generated section.
func (r *Rule) Markdown() string {
	text := strings.ReplaceAll(r.file(), beginGenerated+"\n\n", "")
	return strings.ReplaceAll(text, "\n"+endGenerated+"\n", "")
}

// file returns the text of the rule's page, or "" if there is no page.
func (r *Rule) file() string {
	text, err := rules.Pages.ReadFile(r.ID + ".md")
	if err != nil {
		return ""
	}
	return string(text)
}

// generated returns the section of a rule's page that is generated from the tables of
// this package, with the comments around it.
func (r *Rule) generated() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n## Severity and source\n\n- Severity: %s\n- Source: %s\n", beginGenerated, r.Severity, r.Section)
	if r.TCP != "" {
		fmt.Fprintf(&b, "- Source for connections over TCP: %s\n", r.TCP)
	}
	if r.RPC != "" {
		fmt.Fprintf(&b, "- Source for RPC over TCP and UDP, without RDMA: %s\n", r.RPC)
	}
	for _, v := range r.variants {
		if v.Severity == r.Severity && v.Section == r.Section { // it only needs or waits for other things
			continue
		}
		fmt.Fprintf(&b, "- Severity in some cases: %s (source: %s)\n", v.Severity, v.Section)
	}
	b.WriteString("\n## Reported only if\n\n")
	clauses := r.Needs.Necessary("the side at fault", "the other side")
	if r.Until == Delivered {
		clauses = append(clauses, "the Send that shows it has a good checksum, or was acknowledged and never retransmitted")
	}
	if len(clauses) == 0 {
		clauses = []string{"the capture contains the packets that the finding names; other packets may be missing from the capture"}
	}
	for _, clause := range clauses {
		fmt.Fprintf(&b, "- %s\n", clause)
	}
	if when := untilTexts[r.Until]; when != "" {
		fmt.Fprintf(&b, "\n%s\n", when)
	}
	return b.String() + "\n" + endGenerated + "\n"
}

// untilTexts says when a finding is reported, if not at once.
var untilTexts = map[Until]string{
	Next:     "It is reported after the next complete message from the other side, unless a packet has excused it by then.",
	Answered: "It is reported after the answer to the Call, unless the answer excuses it.",
}

// withGenerated returns the page text with section in place of its generated section,
// or with section appended if text has none.
func withGenerated(text, section string) string {
	before, rest, found := strings.Cut(text, beginGenerated)
	if !found {
		return strings.TrimRight(text, "\n") + "\n\n" + section
	}
	_, after, _ := strings.Cut(rest, endGenerated)
	return before + section + strings.TrimLeft(after, "\n")
}

// parsePage parses the page of the rule with this id. A page has these parts, with an
// empty line between them: "# " and the id; the title in bold; paragraphs of text;
// optionally "From SECTION:" and a quote; a list of causes and a list of things to look
// at, both with their heading; and the generated section, whose contents are not parsed.
func parsePage(id, text string) (p Page, err error) {
	text, rest, found := strings.Cut(text, beginGenerated)
	_, after, ended := strings.Cut(rest, endGenerated)
	if !found || !ended || after != "\n" {
		return Page{}, errors.New("the generated section has to be the last part, between its two comments")
	}
	blocks := strings.Split(strings.TrimSpace(text), "\n\n")
	next := func() (block string) {
		if len(blocks) > 0 {
			block, blocks = strings.TrimSpace(blocks[0]), blocks[1:]
		}
		return block
	}
	if heading := next(); heading != "# "+id {
		return Page{}, fmt.Errorf("the first line has to be %q, not %q", "# "+id, heading)
	}
	title := next()
	p.Title = strings.TrimSuffix(strings.TrimPrefix(title, "**"), "**")
	if p.Title == "" || "**"+p.Title+"**" != title || strings.Contains(title, "\n") {
		return Page{}, fmt.Errorf("the title has to be one line in bold (**Title**), not %q", title)
	}
	block := next()
	for ; block != "" && !strings.HasPrefix(block, "## ") && !strings.HasPrefix(block, "From "); block = next() {
		if p.Text != "" {
			p.Text += "\n\n"
		}
		p.Text += unwrap(block)
	}
	if p.Text == "" {
		return Page{}, errors.New("there is no text after the title")
	}
	if from, is := strings.CutPrefix(block, "From "); is {
		quote := next()
		if p.From, is = strings.CutSuffix(from, ":"); !is || !strings.HasPrefix(quote, "> ") {
			return Page{}, fmt.Errorf("%q has to end with a colon and be followed by a quote", block)
		}
		p.Quote = unwrap(strings.ReplaceAll("\n"+quote, "\n> ", "\n"))
		block = next()
	}
	for _, part := range []struct {
		heading string
		to      *[]string
	}{{causesHeading, &p.Causes}, {nextHeading, &p.Next}} {
		if block != part.heading {
			return Page{}, fmt.Errorf("%q has to follow, not %q", part.heading, block)
		}
		if *part.to, err = parseList(next()); err != nil {
			return Page{}, fmt.Errorf("%s: %w", part.heading, err)
		}
		block = next()
	}
	if block != "" {
		return Page{}, fmt.Errorf("only the generated section may follow the list of things to look at, not %q", block)
	}
	return p, nil
}

// parseList returns the items of a Markdown list.
func parseList(block string) ([]string, error) {
	items := strings.Split("\n"+block, "\n- ")
	if len(items) < 2 || items[0] != "" || slices.Contains(items[1:], "") {
		return nil, fmt.Errorf("a list with %q is expected, not %q", "- ", block)
	}
	for i := range items {
		items[i] = unwrap(items[i])
	}
	return items[1:], nil
}

// unwrap returns a paragraph as one line.
func unwrap(s string) string { return strings.Join(strings.Fields(s), " ") }
