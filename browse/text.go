package browse

import (
	"strings"
	"unicode/utf8"

	"github.com/rdmadump/rdmadump/render"
)

// Lines on the screen are text with escape sequences for styles, which only package render and this
// package write. render replaces what is not printable in text from a capture, and clean does so for the names of files.

// The escape sequences of styles. They are left out if the terminal is to have no colors.
const (
	plain     = "\x1b[0m"
	bold      = "\x1b[1m"
	dim       = "\x1b[2m"
	underline = "\x1b[4m"
	reverse   = "\x1b[7m"
	red       = "\x1b[31m"
	yellow    = "\x1b[33m"
)

// escapeEnd returns the index after the escape sequence that starts s.
func escapeEnd(s string) int {
	for i := 2; i < len(s); i++ {
		if c := s[i]; c >= 0x40 && c <= 0x7e {
			return i + 1
		}
	}
	return len(s)
}

// strip returns a line without escape sequences.
func strip(s string) string {
	if !strings.Contains(s, "\x1b") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '\x1b' {
			i += escapeEnd(s[i:])
			continue
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// wide returns the number of columns of a line.
func wide(s string) int { return render.Width(strip(s)) }

// clip returns the first columns of a line, and ends its styles.
func clip(s string, width int) string {
	columns, styled := 0, false
	for i := 0; i < len(s); {
		if s[i] == '\x1b' {
			styled = true
			i += escapeEnd(s[i:])
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if columns += render.RuneWidth(r); columns > width {
			if s = s[:i]; styled {
				s += plain
			}
			return s
		}
		i += size
	}
	return s
}

// pad returns a line with exactly this number of columns.
func pad(s string, width int) string {
	s = clip(s, width)
	return s + strings.Repeat(" ", max(width-wide(s), 0))
}

// clean returns a text with an escape such as \x1b for each byte of a character that is not printable.
func clean(s string) string { return render.Clean(s) }

// split returns the lines of an output of package render.
func split(text string) []string {
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}

// inks draw in styles, if the terminal is to have colors.
type inks struct{ colors bool }

// styled returns text in a style, or the text if there are no colors.
func (m inks) styled(style, text string) string {
	if !m.colors || text == "" {
		return text
	}
	return style + text + plain
}
