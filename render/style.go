package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Look describes the abilities of an output, and the choices of its user.
type Look struct {
	Colour  bool // whether to use the terminal's own sixteen colours, which suit its background
	Unicode bool // whether to draw with box lines, block and braille characters instead of ASCII
	Legend  bool // whether to explain the marks of a table below it
	Whole   bool // whether lines of a ladder are not shortened
	Times   Times

	Columns []string // headings of the columns that tables show; empty for as many as fit
}

// Theme is the look of text output: its colours, and the characters of drawings.
type Theme struct {
	header, good, warn, bad, dim, key ink
	exposed, moved, flight, granted   ink // of drawings
	unicode, legend, whole            bool
	times                             Times
	hidden                            func(names []string) // takes the names of hidden columns; see WithHidden
	columns                           []string
	by                                string // see SortedBy
	glyphs                            *glyphs
	sheet                             func(columns []column, cells []cell) // takes the rows of tables instead of the output; see SheetOf
}

// glyphs are the characters of drawings.
type glyphs struct {
	axis, tick, corner, side string
	shortened                string   // at the end of shortened text
	levels                   []string // of a column in a chart, from empty to full
	granted                  string
	line, double             string          // of arrows
	right, left              string          // heads of arrows
	lost                     string          // in place of the head of an arrow of what did not arrive
	pause                    string          // on both sides of a wait in a ladder
	marks                    map[byte]string // of the handle bars next to a ladder
	shades                   []string        // of a bar of several parts, one after the other
}

var asciiGlyphs = &glyphs{
	axis: "-", tick: "+", corner: "+", side: "|", shortened: "~", levels: []string{" ", "#"}, granted: "-", line: "-", double: "=", right: ">", left: "<", lost: "x", pause: ":", shades: strings.Split("#=+.", ""),
}

var unicodeGlyphs = &glyphs{
	axis: "─", tick: "┴", corner: "└", side: "│", shortened: "…", levels: strings.Split(" ▁▂▃▄▅▆▇█", ""), granted: "╌", line: "─", double: "═", right: "▶", left: "◀", lost: "✕", pause: "┊",
	shades: strings.Split("█▓▒░", ""),
	marks:  map[byte]string{'+': "┬", '|': "│", '#': "█", 'x': "✕", 'o': "○", '?': "?"},
}

// ink is the escape sequences before and after a text in some style. A lipgloss style is
// rendered once, and not for each cell, because a table has many cells.
type ink struct{ before, after string }

// of returns a text in the ink.
func (i ink) of(text string) string { return i.before + text + i.after }

// NewTheme returns the look for an output with ASCII characters, with colours or without.
func NewTheme(colour bool) *Theme { return NewLook(Look{Colour: colour}) }

// NewLook returns the theme for an output. It does not query the terminal, because a
// terminal that does not answer would delay the output.
func NewLook(look Look) *Theme {
	style := func(s lipgloss.Style) ink {
		if !look.Colour {
			return ink{}
		}
		before, after, _ := strings.Cut(s.Render("x"), "x")
		return ink{before, after}
	}
	plain := lipgloss.NewStyle()
	t := &Theme{
		header:  style(plain.Bold(true).Underline(true)),
		good:    style(plain.Foreground(lipgloss.Green)),
		warn:    style(plain.Foreground(lipgloss.Yellow)),
		bad:     style(plain.Foreground(lipgloss.Red).Bold(true)),
		dim:     style(plain.Faint(true)),
		key:     style(plain.Bold(true)),
		exposed: style(plain.Foreground(lipgloss.Cyan)),
		moved:   style(plain.Foreground(lipgloss.Blue)),
		flight:  style(plain.Foreground(lipgloss.Blue)),
		granted: style(plain.Foreground(lipgloss.Yellow)),
		unicode: look.Unicode,
		legend:  look.Legend,
		whole:   look.Whole,
		times:   look.Times,
		columns: look.Columns,
		glyphs:  asciiGlyphs,
	}
	if look.Unicode {
		t.glyphs = unicodeGlyphs
	}
	return t
}

// Unicode reports whether drawings use other characters than ASCII.
func (t *Theme) Unicode() bool { return t.unicode }

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

// Width returns the number of terminal columns that a text without escape sequences takes.
func Width(s string) int { return wide(s) }

// wide returns the number of terminal columns that a text takes.
func wide(s string) (columns int) {
	for _, r := range s {
		columns += RuneWidth(r)
	}
	return columns
}

// RuneWidth returns the number of terminal columns that a character takes: two for most characters of East Asia, and
// none for those that are drawn over the character before them.
func RuneWidth(r rune) int {
	switch {
	case r < 0x300, r >= 0x2010 && r < 0x2028, r >= 0x2500 && r <= 0x25cb, r >= 0x2800 && r <= 0x28ff: // among them those that this package draws
		return 1
	}
	return lipgloss.Width(string(r))
}

// start returns the index after the characters of a text that fit into a number of columns.
func start[T string | []byte](s T, columns int) int {
	i := 0
	for i < len(s) {
		r, size := firstRune(s[i:])
		if columns -= RuneWidth(r); columns < 0 {
			break
		}
		i += size
	}
	return i
}

// firstRune returns the first character of a text, and its length in bytes.
func firstRune[T string | []byte](s T) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	var b [utf8.UTFMax]byte
	return utf8.DecodeRune(b[:copy(b[:], s)])
}

// Clean makes text from a capture safe for a terminal. Printable characters stay as they are, in UTF-8. Every byte of
// all other characters is replaced by an escape such as \x1b: control characters, characters that change the direction
// of text or that are invisible, and bytes that are not UTF-8.
func Clean(s string) string { return clean(s) }

// ASCII returns a text with an escape such as \xc3 for each byte that is not ASCII.
func ASCII(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf {
			fmt.Fprintf(&b, `\x%02x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// clean returns the text that Clean returns.
func clean(s string) string {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return string(appendClean(nil, s))
		}
	}
	return s
}

// appendClean appends the text that Clean returns.
func appendClean[T string | []byte](b []byte, s T) []byte {
	const set = "0123456789abcdef"
	for i := 0; i < len(s); {
		plain := i
		for i < len(s) && s[i] >= 0x20 && s[i] < 0x7f {
			i++
		}
		if b = append(b, s[plain:i]...); i == len(s) {
			break
		}
		r, size := firstRune(s[i:])
		whole := unicode.IsPrint(r) && (r != utf8.RuneError || size > 1)
		for end := i + size; i < end; i++ {
			if c := s[i]; whole {
				b = append(b, c)
			} else {
				b = append(b, '\\', 'x', set[c>>4], set[c&15])
			}
		}
	}
	return b
}
