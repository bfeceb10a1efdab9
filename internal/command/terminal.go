package command

import (
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// Utf8Terminal reports whether the terminal can draw block and braille characters: the
// locale uses UTF-8, and the terminal is not the kernel's console.
func Utf8Terminal() bool {
	for _, dull := range []string{"", "dumb", "linux", "vt100", "vt220"} {
		if os.Getenv("TERM") == dull {
			return false
		}
	}
	return Utf8Locale()
}

// Utf8Locale reports whether the locale uses UTF-8.
func Utf8Locale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(os.Getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// TerminalSize returns the width and height of w in columns and lines, or 0 if w is not a
// terminal.
func TerminalSize(w io.Writer) (width, height int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, 0
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 80, 24
	}
	return width, height
}

// TerminalWidth returns the width of w in columns, or 0 if w is not a terminal.
func TerminalWidth(w io.Writer) int {
	width, _ := TerminalSize(w)
	return width
}

// proseWidth returns the width of sentences on w: $COLUMNS, or else that of the terminal, which is 0 if there is none.
func proseWidth(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return TerminalWidth(w)
}

// Colored reports whether to write colors to w, according to --color.
func Colored(color string, w io.Writer) bool {
	switch color {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && TerminalWidth(w) > 0
}
