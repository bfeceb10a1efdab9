package browse

import (
	"slices"
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

// part is a part of a line.
type part struct {
	text string
	way  way
}

// way is how a part that does not fit is shortened. Most parts have numbers, and are not.
type way int

const (
	whole way = iota
	withoutEnd
	withoutBeginning
	withoutEndFirst // before others
)

const (
	between   = "   " // what is between the parts of a line
	leastPart = 12    // width to which a part may be shortened
)

// fitting returns parts as a line of at most width columns. If they do not fit, those that may be shortened are, and then
// the last ones are left out, so that no number loses digits.
func fitting(parts []part, width int) string {
	over := -len(between) - width
	for _, p := range parts {
		over += wide(p.text) + len(between)
	}
	texts := make([]string, len(parts))
	var order []int // in which parts are shortened
	for i, p := range parts {
		if texts[i] = p.text; p.way == withoutEndFirst {
			order = slices.Insert(order, 0, i)
		} else {
			order = append(order, i)
		}
	}
	for _, i := range order {
		p := parts[i]
		if over <= 0 || p.way == whole || wide(p.text) <= leastPart {
			continue
		}
		before := wide(p.text)
		if texts[i] = ending(p.text, max(before-over, leastPart)); p.way == withoutBeginning {
			texts[i] = beginning(p.text, max(before-over, leastPart))
		}
		over -= before - wide(texts[i])
	}
	for n := len(texts); over > 0 && n > 1; n = len(texts) {
		over -= wide(texts[n-1]) + len(between)
		texts = texts[:n-1]
	}
	return ending(strings.Join(texts, between), width)
}

// shortest returns the first of some texts that leaves the parts of a line their space, or the last one if it leaves space for parts that
// are shortened. Otherwise it returns nothing.
func shortest(parts []part, texts []string, width int) string {
	full, least := 0, 0
	for _, p := range parts {
		n := wide(p.text) + len(between)
		if full += n; p.way != whole {
			n = min(n, leastPart+len(between))
		}
		least += n
	}
	for _, text := range texts {
		if full+wide(text) <= width {
			return text
		}
	}
	if n := len(texts); n > 0 && least+wide(texts[n-1]) <= width {
		return texts[n-1]
	}
	return ""
}

// ending returns a text of at most width columns. A text that is wider ends with dots instead of its last words.
func ending(s string, width int) string {
	if wide(s) <= width {
		return s
	}
	return dotted(s, width)
}

// dotted returns a text with dots at its end, with at most width columns. The last words of a text that is too wide are left
// out.
func dotted(s string, width int) string {
	if wide(s) > width-3 {
		s = clip(s, max(width-3, 0))
		if at := strings.LastIndexByte(s, ' '); at > len(s)/2 { // A number is not to lose digits.
			if s = s[:at+1]; strings.Contains(s, "\x1b") {
				s += plain
			}
		}
	}
	return s + "..."
}

// beginning is like ending, but leaves out the beginning of a text.
func beginning(s string, width int) string {
	if wide(s) <= width {
		return s
	}
	for wide(s) > max(width-3, 0) {
		_, size := utf8.DecodeRuneInString(s)
		s = s[size:]
	}
	return "..." + s
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

// wrapped returns a text in as many lines as it needs, up to a number of them.
func (m inks) wrapped(style, text string, width, most int) (lines []string) {
	lines = []string{text}
	if wide(text) > width {
		lines = render.Wrap(text, width)
	}
	if most = max(most, 1); len(lines) > most {
		lines = lines[:most]
		lines[most-1] = dotted(lines[most-1]+" ", width)
	}
	if style != "" {
		for i := range lines {
			lines[i] = m.styled(style, lines[i])
		}
	}
	return lines
}
