package flags

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/render"
)

// Drawing returns the look of drawings on a terminal.
func (l *appearance) Drawing(stdout io.Writer) render.Look {
	return render.Look{
		Colour: l.Colored(stdout), Unicode: l.ascii == "false" || l.ascii == "auto" && command.Utf8Terminal(),
		Times: render.Times(l.time),
	}
}

// appearance holds the flags about the layout of the output.
type appearance struct {
	width   int
	wide    bool
	Columns []string
	ascii   string // "auto", "true", "false"
	time    string
	color   string // "auto", "always", "never"
}

// Colored reports whether an output has colors.
func (l *appearance) Colored(w io.Writer) bool { return command.Colored(l.color, w) }

// Narrowest is the smallest supported width, in columns.
const Narrowest = 20

// check returns an error for a wrong width or an unknown column.
func (l *appearance) check(v *View) error {
	if err := render.CheckColumns(v.Fields.Of(), l.Columns); err != nil {
		return fmt.Errorf("--columns: %w", err)
	}
	if l.width < 0 || l.width > 0 && l.width < Narrowest {
		return fmt.Errorf("--width %d: must be at least %d", l.width, Narrowest)
	}
	return nil
}

// Of returns the theme, the width and the height of an output. The width is 0 if lines are
// not shortened.
func (l *appearance) Of(stdout io.Writer) (theme *render.Theme, width, height int) {
	width, height = command.TerminalSize(stdout)
	terminal := width > 0
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= Narrowest {
		width = n
	}
	if l.width > 0 {
		width = l.width
	}
	if width > 0 { // A terminal may be too narrow to draw anything.
		width = max(width, Narrowest)
	}
	if l.wide {
		width = 0
	}
	theme = render.NewLook(render.Look{
		Colour: l.Colored(stdout), Unicode: l.ascii == "false" || l.ascii == "auto" && terminal && command.Utf8Terminal(),
		Legend: terminal, Whole: l.wide, Times: render.Times(l.time), Columns: l.Columns,
	})
	return theme, width, height
}

// Safe returns stdout, or a writer that replaces what is not ASCII if stdout is a terminal without UTF-8, for which the
// bytes of UTF-8 characters may be control characters.
func (l *appearance) Safe(stdout io.Writer) io.Writer {
	if command.TerminalWidth(stdout) > 0 && l.ascii != "false" && !command.Utf8Locale() {
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
