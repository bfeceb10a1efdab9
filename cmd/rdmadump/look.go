package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/muesli/termenv"
	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/query"
	"github.com/rdmadump/rdmadump/render"
)

// appearance is how output is to look, as the flags have it.
type appearance struct {
	width      int
	wide       bool
	columns    []string
	ascii      string // "auto", "true", "false"
	time       string
	background string
}

// narrowest is the least width, columns, that is drawn for.
const narrowest = 20

// check checks what is no matter of a few values.
func (l *appearance) check(v *view) error {
	if err := render.CheckColumns(v.fields.Of(), l.columns); err != nil {
		return fmt.Errorf("--columns: %w", err)
	}
	if l.width < 0 || l.width > 0 && l.width < narrowest {
		return fmt.Errorf("--width %d: it is %d at least", l.width, narrowest)
	}
	return nil
}

// of is the theme, width and height of an output; width is 0 where lines are to
// be whole.
func (l *appearance) of(stdout, notes io.Writer, coloured bool) (theme *render.Theme, width, height int) {
	width, height = terminalSize(stdout)
	terminal := width > 0
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= narrowest {
		width = n
	}
	if l.width > 0 {
		width = l.width
	}
	if width > 0 { // a terminal can be narrower than anything can be drawn
		width = max(width, narrowest)
	}
	if l.wide {
		width = 0
	}
	theme = render.NewLook(stdout, render.Look{
		Colour: colours(coloured), Light: l.light(), Unicode: l.ascii == "false" || l.ascii == "auto" && terminal && utf8Terminal(),
		Legend: terminal, Times: render.Times(l.time), Notes: notes, Columns: l.columns,
	})
	return theme, width, height
}

// colours is how many colours the terminal says it has. It is not asked, but its
// names in the environment are read.
func colours(wanted bool) render.Colour {
	if !wanted {
		return render.NoColour
	}
	if p := termenv.NewOutput(io.Discard, termenv.WithUnsafe()).ColorProfile(); p != termenv.Ascii {
		return render.Colour(p)
	}
	return render.Colours16
}

// light says whether the background is light, as far as can be known: terminals
// that set COLORFGBG say which of the sixteen colours it is.
func (l *appearance) light() bool {
	if l.background != "auto" {
		return l.background == "light"
	}
	fgbg := os.Getenv("COLORFGBG")
	n, err := strconv.Atoi(fgbg[strings.LastIndex(fgbg, ";")+1:])
	return err == nil && n >= 7 && n != 8
}

// utf8Terminal says whether the terminal draws block and braille characters: its
// locale is UTF-8, and it is not the kernel's console.
func utf8Terminal() bool {
	for _, dull := range []string{"", "dumb", "linux", "vt100", "vt220"} {
		if os.Getenv("TERM") == dull {
			return false
		}
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(os.Getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// noMatch says that no record matched -Y, and which values came near; nothing
// where one did.
func (s *sink) noMatch() string {
	f := s.filter
	if f == nil {
		f = s.summed
	}
	if f == nil || s.written > 0 || s.hits > 0 {
		return ""
	}
	text := fmt.Sprintf("0 of %d match", s.seen)
	for _, hint := range f.Near() {
		text += "; " + hint
	}
	return text
}

// nearXIDs are the XIDs nearest to those that were asked for, to end a sentence.
func (s *sink) nearXIDs() string {
	var values []string
	for i := range s.near {
		values = append(values, s.near[i].Values()...)
	}
	if len(values) == 0 {
		return ""
	}
	return "; near it: " + strings.Join(values, ", ")
}

// completeFilter completes the last word of an expression with the names of
// fields.
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
