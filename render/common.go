package render

import (
	"io"
	"strings"

	"github.com/rdmadump/rdmadump/internal/contrast"
	"github.com/rdmadump/rdmadump/internal/shell"
)

// setColumns has the fields that -o csv prints of sets, of which there is no table.
var setColumns = []column{{
	fields: "set name title filter bad others not_asked not_asked_why verdict unexplained facts.text facts.filter facts.bad facts.of_bad facts.others facts.of_others facts.chance",
}}

// Common draws what sets of RPCs have in common. The commands that it suggests contain file, which must be quoted for a shell:
// see [Shell].
func Common(to Screen, sets []*contrast.Set, file string) error {
	if to.Width <= 0 {
		to.Width = 120
	}
	var b strings.Builder
	for i, s := range sets {
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, line := range Wrap(clean(s.Head()), to.Width) {
			b.WriteString(to.Theme.key.of(line) + "\n")
		}
		for _, l := range s.Lines() {
			indent := strings.Repeat("  ", l.Depth)
			if l.Filter != "" { // A command is not wrapped, so that it can be copied.
				command := file
				if s.Subject == contrast.OfConnections {
					command = "connections " + file
				}
				b.WriteString(indent + to.Theme.dim.of(to.Theme.glyphs.right+" rdmadump "+command+" -Y "+shell.File(l.Filter)) + "\n")
				continue
			}
			for j, line := range Wrap(clean(l.Text), to.Width-len(indent)-2) {
				if j == 1 {
					indent += "  "
				}
				b.WriteString(indent + line + "\n")
			}
		}
	}
	_, err := io.WriteString(to.Out, b.String())
	return err
}
