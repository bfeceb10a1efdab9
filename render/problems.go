package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/shell"
)

// The list of problems, as all screens draw it.

// Captures names the captures that a screen is about.
type Captures struct {
	Title string // for people
	Typed string // quoted for a shell, for the commands that show more
}

// Command returns a command of this program for the files.
func (f Captures) Command(args []string) string {
	words := []string{"rdmadump"}
	for _, arg := range args {
		words = append(words, shell.Word(arg))
	}
	return strings.Join(append(words, f.Typed), " ")
}

// Next writes the command that shows more than a screen does, and before it what it shows, if the command does not say that.
func Next(to Screen, what string, args []string, files Captures) error {
	var b strings.Builder
	line := textLine{about: args, command: true, parts: []part{{cmp.Or(what, shows(args)), ink{}}}}
	line.write(&b, to.Theme, 0, files)
	_, err := io.WriteString(to.Out, b.String())
	return err
}

// shows returns what a command of this program shows, in front of the command.
func shows(args []string) string {
	if len(args) == 0 {
		return "more: "
	}
	for _, c := range [...]struct{ has, text string }{ // words of the command; the first that fits
		{"packets", "packets"},
		{"--xid", "draw the RPC"},
		{"--explain", "what the rule means"},
		{"check", "findings"},
		{"--timeline", "draw credits and handles"},
		{"connections", "connections"},
		{"--lost", "lost packets"},
		{"--every", "sums per interval"},
		{"--by", "sums by " + args[len(args)-1]},
		{"stats", "sums of RPCs"},
		{"rdma --top", "slowest RDMA operations"},
		{"rdma", "RDMA operations"},
		{"overview", "problems and sums"},
		{"-Y", "RPCs"},
		{"--top", "slowest RPCs"},
	} {
		if !slices.ContainsFunc(strings.Fields(c.has), func(word string) bool { return !slices.Contains(args, word) }) {
			return c.text + ": "
		}
	}
	return "more: "
}

// part is a piece of a line in one ink.
type part struct {
	text string
	ink  ink
}

// textLine is a line of a screen. A line that does not fit is shortened, except a command.
type textLine struct {
	parts   []part
	about   []string // arguments of the command that shows more about the line; nil for none
	command bool     // the line is this command
}

// SeverityWord returns the word for the severity of a problem.
func SeverityWord(s record.Severity) string { return severityWords[s] }

// severityWords are the severities as problems have them.
var severityWords = map[record.Severity]string{record.Error: "ERROR", record.Warning: "WARN", record.Note: "note"}

// indent is the width of the rank and the severity before a headline.
const indent = "         "

// PlaceText returns the places of a problem, as its headline begins: those that the capture does not exclude.
func PlaceText(p *record.Problem, ends bool) string {
	switch {
	case ends && slices.Equal(p.Places, []record.ProblemPlace{record.InClient, record.InNetwork}):
		return "client or its link: "
	case slices.Equal(p.Places, []record.ProblemPlace{record.InClient, record.InNetwork, record.InServer}):
		return "place unknown: "
	}
	return p.Place() + ": "
}

// depth says how much of a problem is drawn.
type depth int

// The depths.
const (
	headline depth = iota // one line
	effects               // and the effect and the command
	evidence              // and the evidence
)

// problem returns the lines of a problem. Ends tells that the capture has both ends, and wide that the evidence is on the line of the
// effect.
func (t *Theme) problem(p *record.Problem, to depth, ends, wide bool) []textLine {
	head := fmt.Sprintf("%d %-6s ", p.Rank, severityWords[p.Severity])
	if p.Severity == record.Note {
		head = "  note   "
	}
	lines := []textLine{{about: p.Command, parts: []part{{head, t.severity(p.Severity)}, {PlaceText(p, ends), t.key}, {p.Headline, ink{}}}}}
	if to == headline {
		return lines
	}
	add := func(text string, shade ink) {
		if text != "" {
			lines = append(lines, textLine{about: p.Command, parts: []part{{indent, ink{}}, {text, shade}}})
		}
	}
	shown := ""
	if to == evidence {
		shown = EvidenceText(p)
	}
	if effect := EffectText(p); wide && effect != "" && shown != "" {
		add(effect+"; "+shown, ink{})
	} else {
		add(effect, ink{})
		add(shown, t.dim)
	}
	if p.Command != nil {
		lines = append(lines, textLine{about: p.Command, command: true, parts: []part{{indent + shows(p.Command), t.dim}}})
	}
	return lines
}

// EffectText returns whom a problem concerns, if the capture has others, and what it cost.
func EffectText(p *record.Problem) string {
	only := p.Only.Or("")
	if only != "" && p.Effect != "" {
		only += "; "
	}
	return only + p.Effect
}

// shownEvidence is the number of packets that a screen shows of a problem.
const shownEvidence = 3

// EvidenceText returns the packets that show a problem.
func EvidenceText(p *record.Problem) string {
	var list []string
	for _, e := range p.Evidence[:min(len(p.Evidence), shownEvidence)] {
		list = append(list, strings.TrimSpace(numbered(e.Packet, e.Point)+" "+clean(e.Fact)))
	}
	if list == nil {
		return ""
	}
	return record.Noun(len(list), "packet") + " " + strings.Join(list, ", ")
}

// write writes a line of at most width columns.
func (l *textLine) write(b *strings.Builder, t *Theme, width int, files Captures) {
	if l.command {
		fmt.Fprintf(b, "%s\n", t.dim.of(l.parts[0].text+files.Command(l.about)))
		return
	}
	total := 0
	for i := range l.parts {
		l.parts[i].text = clean(l.parts[i].text)
		total += wide(l.parts[i].text)
	}
	left, line := width, inked{}
	if total > width {
		left--
	}
	for _, p := range l.parts {
		n := start(p.text, left)
		if n < len(p.text) {
			n = wholeNumber(p.text, n)
		}
		if n > 0 {
			line.add(p.text[:n], p.ink)
		}
		if left -= wide(p.text[:n]); n < len(p.text) {
			break
		}
	}
	if total > width {
		line.add(t.glyphs.shortened, t.dim)
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// wholeNumber returns where to cut a text before a position so that no number is cut: what is left of one would be another number.
func wholeNumber(text string, at int) int {
	word := strings.LastIndexByte(text[:at], ' ') + 1
	if text[at] == ' ' || !strings.ContainsAny(text[word:at], "0123456789") {
		return at
	}
	return word
}

// Problems draws a list of problems whole.
func Problems(to Screen, list []*record.Problem, files Captures) error {
	if to.Width <= 0 {
		to.Width = 100
	}
	var b strings.Builder
	for _, p := range list {
		for _, line := range to.Theme.problem(p, evidence, false, false) {
			line.write(&b, to.Theme, to.Width, files)
		}
	}
	_, err := io.WriteString(to.Out, b.String())
	return err
}

// Undecided writes what a capture does not decide, below its overview: the notes that are not on the screen, problems of which it does not
// say the place, and why; and the rules that were not checked, of which each line of unchecked has some.
func Undecided(to Screen, s Story, unchecked []string, files Captures) error {
	if to.Width <= 0 {
		to.Width = wholeOverview
	}
	var b strings.Builder
	b.WriteByte('\n')
	line := func(parts ...part) {
		l := textLine{parts: parts}
		l.write(&b, to.Theme, to.Width, files)
	}
	drawn := newOverview(to.Theme, to.Width, s, files)
	for _, p := range drawn.notes[min(drawn.room.notes, len(drawn.notes)):] {
		for _, l := range to.Theme.problem(p, headline, len(s.Points) > 1, false) {
			l.write(&b, to.Theme, to.Width, files)
		}
	}
	for _, p := range s.Problems {
		if !p.Shown() {
			for _, l := range to.Theme.problem(p, headline, len(s.Points) > 1, false) {
				l.write(&b, to.Theme, to.Width, files)
			}
		}
	}
	alternatives := slices.ContainsFunc(s.Problems, func(p *record.Problem) bool { return len(p.Places) > 1 })
	if alternatives && len(s.Points) < 2 {
		line(part{"place     ", to.Theme.key}, part{"capture at the other end, too, or say --at client or --at server", ink{}})
	}
	for _, text := range analyze.Unopened(s.Summary) {
		line(part{"capture   ", to.Theme.key}, part{text, ink{}})
	}
	if n := s.Time.UpperBounds; n > 0 {
		line(part{"latency   ", to.Theme.key}, part{record.Plural(n, "latency") + " at most: which copy of a Reply was accepted is not in the capture", ink{}})
	}
	for i, text := range unchecked {
		label := "rules     "
		if i > 0 {
			label = "          "
		}
		for _, wrapped := range Wrap(clean(text), max(to.Width-overviewLabel, narrowest)) {
			line(part{label, to.Theme.key}, part{wrapped, ink{}})
			label = "          "
		}
	}
	_, err := io.WriteString(to.Out, b.String())
	return err
}
