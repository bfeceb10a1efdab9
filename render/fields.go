package render

import (
	"io"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/internal/query"
)

var fieldColumns = []column{
	{name: "FIELD", doc: "Name of the field in JSON, and for -Y, -e, --sort and --jq."},
	{name: "TYPE", doc: "Type of the value; list means that the field is in a list, so that a record can have several values of it."},
	{name: "WIRESHARK", doc: "Names of the field in Wireshark, which filters also accept."},
	{
		name: "MEANING", flex: true, wrap: true, min: 30,
		doc: "Description of the field, its values, and the other names that -Y, -e and --sort accept for it.",
	},
}

// widestNames is the largest width of the column of Wireshark's names. Names that it, or a narrow terminal, has no space for
// follow the meaning of the field.
const widestNames = 40

// Fields lists the fields of a type of record, one in each row: name, type, Wireshark's
// names, meaning, values and other names.
func Fields(w io.Writer, theme *Theme, width int, list []query.Field) error {
	t := newTable(w, theme, width, fieldColumns)
	room := widestNames
	if width > 0 { // The names and types of fields are never shortened, and leave this space.
		path, kind := 0, 0
		for i := range list {
			path, kind = max(path, len(list[i].Path)), max(kind, len(list[i].Kind()))
		}
		room = max(min(room, width-path-kind-len("  ")), 0)
	}
	for i := range list {
		f := &list[i]
		kind := f.Kind()
		names, text := f.Wireshark(), meaning(f)
		switch {
		case len(strings.Join(names, ", ")) <= room:
		case len(names[0]) <= room:
			text += " In Wireshark also: " + strings.Join(names[1:], ", ") + "."
			names = names[:1]
		default:
			text += " In Wireshark: " + strings.Join(names, ", ") + "."
			names = nil
		}
		if err := t.row([]cell{
			{text: f.Path, ink: theme.key},
			{text: kind},
			{text: strings.Join(names, ", ")},
			{text: text},
		}); err != nil {
			return err
		}
	}
	return t.flush()
}

// meaning returns the description of a field, its values and its other names.
func meaning(f *query.Field) string {
	text := f.Doc
	if text != "" && !strings.HasSuffix(text, ".") {
		text += "."
	}
	if f.Values != nil && !strings.Contains(text, f.Values[0]) {
		text += " One of: " + strings.Join(f.Values, ", ") + "."
	}
	wireshark := f.Wireshark()
	var others []string
	for _, alias := range f.Aliases {
		if !slices.Contains(wireshark, alias) {
			others = append(others, alias)
		}
	}
	if len(others) > 0 {
		text += " Also: " + strings.Join(others, ", ") + "."
	}
	if f.Drawn {
		text += " Only for filters and columns, not in JSON."
	}
	return text
}
