package render

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Colour is the number of colours that an output supports.
type Colour int

// These are the supported numbers of colours.
const (
	NoColour   Colour = Colour(termenv.Ascii)
	Colours16  Colour = Colour(termenv.ANSI)
	Colours256 Colour = Colour(termenv.ANSI256)
	TrueColour Colour = Colour(termenv.TrueColor)
)

// Look describes the abilities of an output, and the choices of its user.
type Look struct {
	Colour  Colour
	Light   bool // whether the background is light
	Unicode bool // whether to draw with box lines, block and braille characters instead of ASCII
	Legend  bool // whether to explain the marks of a table below it
	Whole   bool // whether lines of a ladder are not shortened
	Times   Times

	Notes   io.Writer // receives the names of hidden columns; nil for the output itself
	Columns []string  // headings of the columns that tables show; empty for as many as fit
}

// Theme is the look of text output: its colours, and the characters of drawings.
type Theme struct {
	header, good, warn, bad, dim, key ink
	exposed, moved, flight, granted   ink // of drawings
	unicode, legend, whole            bool
	times                             Times
	notes                             io.Writer
	columns                           []string
	glyphs                            *glyphs
}

// glyphs are the characters of drawings.
type glyphs struct {
	axis, tick, corner, side string
	shortened                string   // at the end of shortened text
	levels                   []string // of a column in a chart, from empty to full
	granted                  string
	line, double             string          // of arrows
	right, left              string          // heads of arrows
	pause                    string          // on both sides of a wait in a ladder
	marks                    map[byte]string // of the handle bars next to a ladder
	shades                   []string        // of a bar of several parts, one after the other
}

var asciiGlyphs = &glyphs{
	axis: "-", tick: "+", corner: "+", side: "|", shortened: "~", levels: []string{" ", "#"}, granted: "-", line: "-", double: "=", right: ">", left: "<", pause: ":", shades: strings.Split("#=+.", ""),
}

var unicodeGlyphs = &glyphs{
	axis: "─", tick: "┴", corner: "└", side: "│", shortened: "…", levels: strings.Split(" ▁▂▃▄▅▆▇█", ""), granted: "╌", line: "─", double: "═", right: "▶", left: "◀", pause: "┊",
	shades: strings.Split("█▓▒░", ""),
	marks:  map[byte]string{'+': "┬", '|': "│", '#': "█", 'x': "✕", 'o': "○", '?': "?"},
}

// ink is the escape sequences before and after a text in some style. A lipgloss style is
// rendered once, and not for each cell, because a table has many cells.
type ink struct{ before, after string }

// NewTheme returns the look for an output with ASCII characters and, if colour is set, the
// terminal's own sixteen colours.
func NewTheme(w io.Writer, colour bool) *Theme {
	look := Look{}
	if colour {
		look.Colour = Colours16
	} else {
		look.Colour = NoColour
	}
	return NewLook(w, look)
}

// NewLook returns the theme for an output. It does not query the terminal, because a
// terminal that does not answer would delay the output.
func NewLook(w io.Writer, look Look) *Theme {
	r := lipgloss.NewRenderer(w)
	r.SetColorProfile(termenv.Profile(look.Colour))
	r.SetHasDarkBackground(!look.Light)
	style := func(s lipgloss.Style) ink {
		before, after, _ := strings.Cut(s.Render("x"), "x")
		return ink{before, after}
	}
	// With sixteen colours, the terminal's own colours are used, which suit its background.
	// With more, the colours depend on whether the background is dark or light.
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
		legend:  look.Legend,
		whole:   look.Whole,
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

// severity returns the ink for findings of a severity.
func (t *Theme) severity(s record.Severity) ink {
	switch s {
	case record.Error:
		return t.bad
	case record.Warning:
		return t.warn
	}
	return t.dim
}

// wide returns the number of terminal columns that a text takes. All characters that this
// package draws take one column.
func wide(s string) int { return utf8.RuneCountInString(s) }

// clean makes text from a capture safe for a terminal: it replaces all bytes that are not
// printable ASCII by escapes such as \x1b.
func clean(s string) string {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return string(appendClean(nil, s))
		}
	}
	return s
}

// appendClean appends the text that clean returns.
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
