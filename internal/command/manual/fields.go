package manual

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// NewSchema returns the command that prints the JSON Schema of a record type.
func NewSchema(stdout io.Writer) *cobra.Command {
	var types []string
	if entries, err := render.Schemas.ReadDir("schema"); err == nil {
		for _, e := range entries {
			types = append(types, strings.TrimSuffix(e.Name(), ".json"))
		}
	}
	return &cobra.Command{
		Use: "schema TYPE", Short: "Print the JSON Schema of a record type",
		Long: `schema prints the JSON Schema of the records of a type, which is the value of their
field type. The types are
` + paragraph(strings.Join(types, ", ")+".") + `

check writes records of the type finding, interfaces those of the type interface,
connections --timeline also credits and handles, and every view ends with a summary.
The other types have the name of their view.`,
		Args: cobra.ExactArgs(1), ValidArgs: types,
		RunE: func(_ *cobra.Command, args []string) error {
			b, err := render.Schemas.ReadFile("schema/" + args[0] + ".json")
			if err != nil {
				return fmt.Errorf("unknown record type %s (want %s)", args[0], command.List(types, "or"))
			}
			_, err = stdout.Write(b)
			return err
		},
	}
}

// FieldLists lists the fields of every record type, by the view that shows the records.
var FieldLists = []struct {
	View   string
	Fields query.Fields
}{
	{"transactions", query.Transactions},
	{"connections", query.Connections},
	{"packets", query.Packets},
	{"rdma", render.OperationFields},
	{"tasks", render.TaskFields},
	{"network", render.NetworkFields},
	{"check", query.Findings},
	{"stats", flags.ViewNamed("stats").Fields},
	{"files", flags.ViewNamed("files").Fields},
	{"rates", flags.RatesView.Fields},
	{"rdma-stats", flags.OperationSumsView.Fields},
	{"compare", flags.CompareView.Fields},
	{"problems", render.ProblemFields},
	{"overview", query.New[analyze.Overview]("overviews")},
	{"summary", query.New[record.Summary]("summaries")},
	{"credits", query.New[analyze.Credits]("credits")},
	{"handles", query.New[analyze.Handles]("handles")},
	{"points", query.New[record.Point]("points")},
	{"lost-packets", flags.LostView.Fields},
}

// fieldRecord is the JSON record that describes a field.
type fieldRecord struct {
	Type      string   `json:"type"`
	View      string   `json:"view"`
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	List      bool     `json:"list"`
	Values    []string `json:"values"`
	Meaning   string   `json:"meaning"`
	Wireshark []string `json:"wireshark"`
	Aliases   []string `json:"aliases"`
	InJSON    bool     `json:"in_json"`
}

// NewFields returns the command that lists the fields of records.
func NewFields(stdout io.Writer) *cobra.Command {
	var views []string
	for _, l := range FieldLists {
		views = append(views, l.View)
	}
	var output string
	cmd := &cobra.Command{
		Use: "fields [VIEW]", Short: "List the fields that -Y, -e, --sort and --jq accept",
		Long: `fields lists the field names that -Y, -e, --sort and --jq accept: every field of the
records of a view, with its type, its meaning and its names in Wireshark. Without a
view it lists the fields of all views. The views are
` + paragraph(strings.Join(views, ", ")+".") + `

A path such as waits.ns leads through a list, so that a record can have several
values; the type then says so (duration list). In JSON, each element of the list is
an object: {"waits": [{"ns": 5000000, ...}, ...]}. "Also" gives other names, which
-Y, -e and --sort accept.

rdmadump schema prints the same fields as a JSON Schema; it calls the records of a
view by the value of their field type: transaction, connection, packet, finding (of
the view check), stats, summary, credits and handles.`,
		Example: `  rdmadump fields                         list every field of every view
  rdmadump fields packets | grep psn      list the fields of packets about PSNs
  rdmadump fields transactions -o json | jq -r .name`,
		Args: cobra.MaximumNArgs(1), ValidArgs: views,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := command.OneOf("-o", output, "text", "json"); err != nil {
				return err
			}
			found := false
			for _, l := range FieldLists {
				if len(args) > 0 && args[0] != l.View && args[0] != l.Fields.Of() && strings.TrimSuffix(l.Fields.Of(), "s") != args[0] {
					continue
				}
				found = true
				if err := listFields(stdout, l.View, l.Fields, output == "json", len(args) == 0); err != nil {
					return err
				}
			}
			if !found {
				return fmt.Errorf("unknown view %s (want %s)", strconv.Quote(args[0]), command.List(views, "or"))
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "write this `format`: text or json (one field per line)")
	return cmd
}

// paragraph breaks a text of a help page into lines.
func paragraph(text string) string { return strings.Join(render.Wrap(text, 84), "\n") }

// listFields writes the fields of one record type.
func listFields(w io.Writer, view string, fields query.Fields, asJSON, titled bool) error {
	if !asJSON {
		width := command.TerminalWidth(w)
		theme := render.NewTheme(width > 0 && os.Getenv("NO_COLOR") == "")
		if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= flags.Narrowest {
			width = n
		}
		if titled {
			fmt.Fprintf(w, "%s\n", strings.ToUpper(view))
		}
		err := render.Fields(w, theme, width, fields.List())
		if titled {
			fmt.Fprintln(w)
		}
		return err
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, f := range fields.List() {
		err := e.Encode(fieldRecord{
			"field", view, f.Path, f.Type, f.List, nonNil(f.Values), f.Doc, nonNil(f.Wireshark()), nonNil(f.Aliases), !f.Drawn,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// nonNil returns list, or an empty list instead of nil, which JSON would show as null.
func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
