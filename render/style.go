package render

import (
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Theme is the look of text output: what to emphasise, and how. Colours are the
// terminal's own sixteen, so that they suit a light and a dark background.
type Theme struct {
	header, good, warn, bad, dim, key ink
}

// ink is what a style puts before and after a text. A lipgloss style is
// rendered once and not for each cell: a table has many.
type ink struct{ before, after string }

// NewTheme makes the look for an output that does or does not take colour.
func NewTheme(w io.Writer, colour bool) *Theme {
	r := lipgloss.NewRenderer(w)
	r.SetColorProfile(termenv.Ascii)
	if colour {
		r.SetColorProfile(termenv.ANSI)
	}
	style := func(s lipgloss.Style) ink {
		before, after, _ := strings.Cut(s.Render("x"), "x")
		return ink{before, after}
	}
	plain := r.NewStyle()
	return &Theme{
		header: style(plain.Bold(true).Underline(true)),
		good:   style(plain.Foreground(lipgloss.Color("2"))),
		warn:   style(plain.Foreground(lipgloss.Color("3"))),
		bad:    style(plain.Foreground(lipgloss.Color("1")).Bold(true)),
		dim:    style(plain.Faint(true)),
		key:    style(plain.Bold(true)),
	}
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
