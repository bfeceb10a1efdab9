package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/muesli/termenv"
	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// appearance holds the flags about the layout of the output.
type appearance struct {
	width      int
	wide       bool
	columns    []string
	ascii      string // "auto", "true", "false"
	time       string
	background string
}

// narrowest is the smallest supported width, in columns.
const narrowest = 20

// check returns an error for a wrong width or an unknown column.
func (l *appearance) check(v *view) error {
	if err := render.CheckColumns(v.fields.Of(), l.columns); err != nil {
		return fmt.Errorf("--columns: %w", err)
	}
	if l.width < 0 || l.width > 0 && l.width < narrowest {
		return fmt.Errorf("--width %d: must be at least %d", l.width, narrowest)
	}
	return nil
}

// of returns the theme, the width and the height of an output. The width is 0 if lines are
// not shortened.
func (l *appearance) of(stdout, notes io.Writer, colored bool) (theme *render.Theme, width, height int) {
	width, height = terminalSize(stdout)
	terminal := width > 0
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= narrowest {
		width = n
	}
	if l.width > 0 {
		width = l.width
	}
	if width > 0 { // A terminal may be too narrow to draw anything.
		width = max(width, narrowest)
	}
	if l.wide {
		width = 0
	}
	theme = render.NewLook(stdout, render.Look{
		Colour: colors(colored), Light: l.light(), Unicode: l.ascii == "false" || l.ascii == "auto" && terminal && utf8Terminal(),
		Legend: terminal, Whole: l.wide, Times: render.Times(l.time), Notes: notes, Columns: l.columns,
	})
	return theme, width, height
}

// colors returns the number of colors that the environment variables promise for the
// terminal. The terminal itself is not queried.
func colors(wanted bool) render.Colour {
	if !wanted {
		return render.NoColour
	}
	if p := termenv.NewOutput(io.Discard, termenv.WithUnsafe()).ColorProfile(); p != termenv.Ascii {
		return render.Colour(p)
	}
	return render.Colours16
}

// light reports whether the background is light. Terminals that set COLORFGBG give the
// background as one of sixteen colors; without it, the background counts as dark.
func (l *appearance) light() bool {
	if l.background != "auto" {
		return l.background == "light"
	}
	fgbg := os.Getenv("COLORFGBG")
	n, err := strconv.Atoi(fgbg[strings.LastIndex(fgbg, ";")+1:])
	return err == nil && n >= 7 && n != 8
}

// utf8Terminal reports whether the terminal can draw block and braille characters: the
// locale uses UTF-8, and the terminal is not the kernel's console.
func utf8Terminal() bool {
	for _, dull := range []string{"", "dumb", "linux", "vt100", "vt220"} {
		if os.Getenv("TERM") == dull {
			return false
		}
	}
	return utf8Locale()
}

// utf8Locale reports whether the locale uses UTF-8.
func utf8Locale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(os.Getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// safe returns stdout, or a writer that replaces what is not ASCII if stdout is a terminal without UTF-8, for which the
// bytes of UTF-8 characters may be control characters.
func (l *appearance) safe(stdout io.Writer) io.Writer {
	if terminalWidth(stdout) > 0 && l.ascii != "false" && !utf8Locale() {
		return asciiOnly{stdout}
	}
	return stdout
}

// asciiOnly writes text with an escape such as \xc3 for each byte that is not ASCII.
type asciiOnly struct{ w io.Writer }

func (a asciiOnly) Write(p []byte) (int, error) {
	if _, err := io.WriteString(a.w, render.ASCII(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// noMatch returns the message that no record matched -Y, with similar values, or "" if one
// did.
func (s *sink) noMatch() string {
	f := s.filter
	if f == nil {
		f = s.summed
	}
	if f == nil || s.written > 0 || s.hits > 0 {
		return ""
	}
	text := fmt.Sprintf("0 of %s match", number(s.seen, "record"))
	for _, hint := range f.Near() {
		text += "; " + hint
	}
	if s.seen > 0 && slices.Contains(f.Paths(), "operations") && s.view.sumsRPCs() {
		text += "; operations are those of NFSv4, and operation is the one that an RPC of any version was sent for"
	}
	return text
}

// noXID returns the message that no record has an XID of --xid, with similar XIDs.
func (s *sink) noXID() string {
	var wanted, values []string
	for _, xid := range s.xids {
		wanted = append(wanted, xid.String())
	}
	for i := range s.near {
		values = append(values, s.near[i].Values()...)
	}
	text := "no RPC with XID " + list(wanted, "or")
	if len(values) > 0 {
		text += "; similar XIDs: " + strings.Join(values, ", ")
	}
	return text
}

// completeFilter completes the last word of an expression of -Y with field names.
func completeFilter(cmd *cobra.Command, fields query.Fields) {
	if cmd.Flags().Lookup("filter") == nil {
		return
	}
	cmd.RegisterFlagCompletionFunc("filter", func(_ *cobra.Command, _ []string, typed string) (offers []cobra.Completion, d cobra.ShellCompDirective) {
		at := strings.LastIndexFunc(typed, func(r rune) bool {
			return r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) + 1
		for _, f := range fields.List() {
			if strings.HasPrefix(f.Path, typed[at:]) {
				offers = append(offers, cobra.CompletionWithDesc(typed[:at]+f.Path, f.Doc))
			}
		}
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}
