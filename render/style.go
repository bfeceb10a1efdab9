package render

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Colour is how many colours an output takes.
type Colour int

// The kinds of output.
const (
	NoColour   Colour = Colour(termenv.Ascii)
	Colours16  Colour = Colour(termenv.ANSI)
	Colours256 Colour = Colour(termenv.ANSI256)
	TrueColour Colour = Colour(termenv.TrueColor)
)

// Look is what an output can show, and what is wanted of it.
type Look struct {
	Colour  Colour
	Light   bool // the background is
	Unicode bool // block and braille characters, box lines; ASCII otherwise
	Times   Times

	Notes   io.Writer // who is told which columns of a table are hidden; nil for the output itself
	Columns []string  // headings of the columns that tables show, empty for as many as fit
}

// Theme is the look of text output: what to emphasise, how, and with which
// characters.
type Theme struct {
	header, good, warn, bad, dim, key ink
	exposed, moved, flight, granted   ink // of drawings
	unicode                           bool
	times                             Times
	notes                             io.Writer
	columns                           []string
	glyphs                            *glyphs
}

// glyphs are the characters of drawings.
type glyphs struct {
	axis, tick, corner, side, cut string
	levels                        []string // from nothing to all
	granted                       string
	line, double                  string          // of arrows
	right, left                   string          // their heads
	pause                         string          // beside a line in which nothing happens
	marks                         map[byte]string // of the bars beside a ladder
	shades                        []string        // of a bar of several parts, one after the other
}

var asciiGlyphs = &glyphs{
	axis: "-", tick: "+", corner: "+", side: "|", cut: "~", levels: []string{" ", "#"}, granted: "-", line: "-", double: "=", right: ">", left: "<", pause: ":", shades: strings.Split("#=+.", ""),
}

var unicodeGlyphs = &glyphs{
	axis: "─", tick: "┴", corner: "└", side: "│", cut: "…", levels: strings.Split(" ▁▂▃▄▅▆▇█", ""), granted: "╌", line: "─", double: "═", right: "▶", left: "◀", pause: "┊",
	shades: strings.Split("█▓▒░", ""),
	marks:  map[byte]string{'+': "┬", '|': "│", '#': "█", 'x': "✕", 'o': "○", '?': "?"},
}

// ink is what a style puts before and after a text. A lipgloss style is
// rendered once and not for each cell: a table has many.
type ink struct{ before, after string }

// NewTheme makes the look for an output that does or does not take colour: the
// terminal's own sixteen, and ASCII.
func NewTheme(w io.Writer, colour bool) *Theme {
	look := Look{}
	if colour {
		look.Colour = Colours16
	} else {
		look.Colour = NoColour
	}
	return NewLook(w, look)
}

// NewLook makes the look for an output. The terminal is asked nothing: one that
// does not answer would be waited for.
func NewLook(w io.Writer, look Look) *Theme {
	r := lipgloss.NewRenderer(w)
	r.SetColorProfile(termenv.Profile(look.Colour))
	r.SetHasDarkBackground(!look.Light)
	style := func(s lipgloss.Style) ink {
		before, after, _ := strings.Cut(s.Render("x"), "x")
		return ink{before, after}
	}
	// Of the sixteen colours the terminal's own are used, which suit its
	// background; of more, some for a dark and some for a light one.
	colour := func(ansi, dark256, dark, light256, light string) lipgloss.CompleteAdaptiveColor {
		return lipgloss.CompleteAdaptiveColor{
			Dark:  lipgloss.CompleteColor{ANSI: ansi, ANSI256: dark256, TrueColor: dark},
			Light: lipgloss.CompleteColor{ANSI: ansi, ANSI256: light256, TrueColor: light},
		}
	}
	green := colour("2", "78", "#5fd787", "28", "#007f3f")
	yellow := colour("3", "221", "#ffd75f", "130", "#a05a00")
	red := colour("1", "203", "#ff5f5f", "160", "#c80000")
	blue := colour("4", "75", "#5fafff", "25", "#005faf")
	cyan := colour("6", "80", "#5fd7d7", "30", "#007777")
	grey := colour("8", "245", "#8a8a8a", "242", "#6c6c6c")
	plain := r.NewStyle()
	dim := plain.Faint(true)
	if look.Colour == Colours256 || look.Colour == TrueColour {
		dim = plain.Foreground(grey)
	}
	t := &Theme{
		header:  style(plain.Bold(true).Underline(true)),
		good:    style(plain.Foreground(green)),
		warn:    style(plain.Foreground(yellow)),
		bad:     style(plain.Foreground(red).Bold(true)),
		dim:     style(dim),
		key:     style(plain.Bold(true)),
		exposed: style(plain.Foreground(cyan)),
		moved:   style(plain.Foreground(blue)),
		flight:  style(plain.Foreground(blue)),
		granted: style(plain.Foreground(yellow)),
		unicode: look.Unicode,
		times:   look.Times,
		notes:   look.Notes,
		columns: look.Columns,
		glyphs:  asciiGlyphs,
	}
	if look.Unicode {
		t.glyphs = unicodeGlyphs
	}
	return t
}

// severity is the ink of a finding.
func (t *Theme) severity(s record.Severity) ink {
	switch s {
	case record.Error:
		return t.bad
	case record.Warning:
		return t.warn
	}
	return t.dim
}

// wide is how many columns of a terminal a text takes: all characters that are
// drawn here take one.
func wide(s string) int { return utf8.RuneCountInString(s) }

// clean makes text from outside safe for a terminal: what is not printable
// ASCII becomes an escape.
func clean(s string) string {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return string(appendClean(nil, s))
		}
	}
	return s
}

// appendClean appends text that is safe for a terminal.
func appendClean[T string | []byte](b []byte, s T) []byte {
	const set = "0123456789abcdef"
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			b = append(b, '\\', 'x', set[c>>4], set[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}
