package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/analyze"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/query"
	"github.com/rdmadump/rdmadump/render"
)

// fieldLists are the fields of every kind of record, by the view that shows it.
var fieldLists = []struct {
	view   string
	fields query.Fields
}{
	{"transactions", query.Transactions},
	{"connections", query.Connections},
	{"packets", query.Packets},
	{"check", query.Findings},
	{"stats", viewNamed("stats").fields},
	{"summary", query.New[record.Summary]("summaries")},
	{"credits", query.New[analyze.Credits]("credits")},
	{"handles", query.New[analyze.Handles]("handles")},
}

// fieldRecord is a field as JSON.
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

// newFields lists the fields of records.
func newFields(stdout io.Writer) *cobra.Command {
	var views []string
	for _, l := range fieldLists {
		views = append(views, l.view)
	}
	var output string
	cmd := &cobra.Command{
		Use: "fields [VIEW]", Short: "List every field: type, meaning, Wireshark's name; of one view: " + strings.Join(views, ", "),
		Long: `fields lists what -Y, -e, --sort and --jq can name: every field of the records of
a view, with its type, its meaning and what Wireshark calls it. Without a view it
lists all.`,
		Example: `  rdmadump fields                         every field of every view
  rdmadump fields packets | grep psn      those of packets that are about PSNs
  rdmadump fields transactions -o json | jq -r .name`,
		Args: cobra.MaximumNArgs(1), ValidArgs: views,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := oneOf("-o", output, "text", "json"); err != nil {
				return err
			}
			found := false
			for _, l := range fieldLists {
				if len(args) > 0 && args[0] != l.view && args[0] != l.fields.Of() && strings.TrimSuffix(l.fields.Of(), "s") != args[0] {
					continue
				}
				found = true
				if err := listFields(stdout, l.view, l.fields, output == "json", len(args) == 0); err != nil {
					return err
				}
			}
			if !found {
				return fmt.Errorf("there is no view %s; there are %s", strconv.Quote(args[0]), strings.Join(views, ", "))
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "`text` or json (one field a line)")
	return cmd
}

func listFields(w io.Writer, view string, fields query.Fields, asJSON, titled bool) error {
	if !asJSON {
		width := terminalWidth(w)
		if titled {
			fmt.Fprintf(w, "%s\n", strings.ToUpper(view))
		}
		theme := render.NewTheme(w, width > 0 && os.Getenv("NO_COLOR") == "")
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

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
