package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// newMan returns the command that writes the man pages, from the descriptions of the
// commands.
func newMan(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write the man pages to a folder", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writeManual(root, args[0])
		},
	}
}

// newSchema returns the command that prints the JSON Schema of a record type.
func newSchema(stdout io.Writer) *cobra.Command {
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
				return fmt.Errorf("unknown record type %s (want %s)", args[0], list(types, "or"))
			}
			_, err = stdout.Write(b)
			return err
		},
	}
}

// The time for which completion may read a capture, and the number of values that it offers.
const (
	completionTime = time.Second
	completionMost = 200
)

// complete registers the completion of the flags of all commands. Cobra keeps what is registered
// for as long as the process runs, so this is done only if a shell asks for completions.
func complete(root *cobra.Command) {
	for _, cmd := range append(root.Commands(), root) {
		completions(cmd)
	}
}

// completions registers the completion of a command's flags, such as the XIDs and
// connections of the captures on the command line, and the fields of the view.
func completions(cmd *cobra.Command) {
	complete := func(flag string, f cobra.CompletionFunc) {
		if cmd.Flags().Lookup(flag) != nil {
			cmd.RegisterFlagCompletionFunc(flag, f)
		}
	}
	words := func(flag string, list ...string) {
		complete(flag, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
	}
	complete("xid", func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return look(cmd.Context(), args, func(offer func(string) error) dissect.Handler {
			return dissect.Handler{Transaction: func(r *record.Transaction) error {
				if xid := r.XID.String(); strings.HasPrefix(xid, prefix) {
					return offer(xid + "\t" + render.Procedure(r))
				}
				return nil
			}}
		}), cobra.ShellCompDirectiveNoFileComp
	})
	complete("conn", func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return look(cmd.Context(), args, func(offer func(string) error) dissect.Handler {
			return dissect.Handler{Connection: func(r *record.Connection) error {
				if id := fmt.Sprint(r.ID); strings.HasPrefix(id, prefix) {
					return offer(id + "\t" + r.UpperLayer)
				}
				return nil
			}}
		}), cobra.ShellCompDirectiveNoFileComp
	})
	for _, c := range choices {
		complete(c.flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return c.values(viewOf(cmd)), cobra.ShellCompDirectiveNoFileComp
		})
	}
	fields := viewOf(cmd).fields
	words("columns", render.Headings(fields.Of())...)
	complete("by", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return append(slices.Clone(groupKinds), query.Transactions.Names()...), cobra.ShellCompDirectiveNoFileComp
	})
	complete("format", func(*cobra.Command, []string, string) (formats []string, d cobra.ShellCompDirective) {
		for i := range exporters {
			formats = append(formats, cobra.CompletionWithDesc(exporters[i].format, exporters[i].description))
		}
		return formats, cobra.ShellCompDirectiveNoFileComp
	})
	complete("interface", func(*cobra.Command, []string, string) (names []string, d cobra.ShellCompDirective) {
		list, _ := capture.Interfaces(sysfs)
		for _, i := range list {
			names = append(names, i.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	words("view", liveNames()...)
	words("ignore", ruleIDs()...)
	words("explain", ruleIDs()...)
	completeFilter(cmd, fields)
	for _, flag := range []string{"sort", "field"} { // The list is long, so it is made only when it is needed.
		complete(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return fields.Names(), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// viewOf returns the view that a command shows: the view with the name of the command, or
// the one that --view gives to live.
func viewOf(cmd *cobra.Command) *view {
	name := cmd.Name()
	if chosen := cmd.Flags().Lookup("view"); chosen != nil {
		name = chosen.Value.String()
	}
	if v := viewNamed(name); v != nil {
		return v
	}
	return views[0]
}

// ruleIDs returns the ids of all rules.
func ruleIDs() (ids []string) {
	for _, r := range rule.All {
		ids = append(ids, r.ID)
	}
	return ids
}

// look reads captures for a short time and returns the values that the handler offers.
func look(ctx context.Context, paths []string, handler func(offer func(string) error) dissect.Handler) (offers []string) {
	if len(paths) == 0 {
		return nil
	}
	source, _ := capture.OpenAll(paths)
	if source == nil {
		return nil
	}
	defer source.Close()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	seen := map[string]bool{}
	d := dissect.New(handler(func(s string) error {
		if !seen[s] {
			seen[s] = true
			offers = append(offers, s)
		}
		if len(offers) == completionMost {
			return errEnough
		}
		return nil
	}), dissect.Options{})
	d.Run(ctx, source)
	return offers
}
