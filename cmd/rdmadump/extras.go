package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/query"
	"github.com/rdmadump/rdmadump/render"
)

// newMan writes man pages out of the commands themselves.
func newMan(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write the man pages into a folder", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root.DisableAutoGenTag = true
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "RDMADUMP", Section: "1", Source: "rdmadump", Manual: "User Commands"}, args[0]); err != nil {
				return err
			}
			return writeFilterPage(args[0])
		},
	}
}

// newSchema prints the JSON Schema of a record type.
func newSchema(o *options) *cobra.Command {
	var types []string
	if entries, err := render.Schemas.ReadDir("schema"); err == nil {
		for _, e := range entries {
			types = append(types, strings.TrimSuffix(e.Name(), ".json"))
		}
	}
	return &cobra.Command{
		Use: "schema TYPE", Short: "Print the JSON Schema of a record: " + strings.Join(types, ", "), Args: cobra.ExactArgs(1), ValidArgs: types,
		RunE: func(_ *cobra.Command, args []string) error {
			b, err := render.Schemas.ReadFile("schema/" + args[0] + ".json")
			if err != nil {
				return fmt.Errorf("no record type %s; there are %s", args[0], strings.Join(types, ", "))
			}
			_, err = o.stdout.Write(b)
			return err
		},
	}
}

// How long completion may look into a capture, and how much it offers.
const (
	completionTime = time.Second
	completionMost = 200
)

// completions completes XIDs and connections of the captures named, and fields.
func (o *options) completions(root *cobra.Command) {
	root.RegisterFlagCompletionFunc("xid", func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return look(args, func(offer func(string)) dissect.Handler {
			return dissect.Handler{Transaction: func(r *record.Transaction) {
				if xid := r.XID.String(); strings.HasPrefix(xid, prefix) {
					offer(xid + "\t" + render.Procedure(r))
				}
			}}
		}), cobra.ShellCompDirectiveNoFileComp
	})
	root.RegisterFlagCompletionFunc("conn", func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return look(args, func(offer func(string)) dissect.Handler {
			return dissect.Handler{Connection: func(r *record.Connection) {
				if id := fmt.Sprint(r.ID); strings.HasPrefix(id, prefix) {
					offer(id + "\t" + r.UpperLayer)
				}
			}}
		}), cobra.ShellCompDirectiveNoFileComp
	})
	words := func(list ...string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
	}
	root.RegisterFlagCompletionFunc("output", words("text", "json"))
	root.RegisterFlagCompletionFunc("color", words("auto", "always", "never"))
	for _, cmd := range append(root.Commands(), root) {
		fields := query.Transactions
		if v := viewNamed(cmd.Name()); v != nil {
			fields = v.fields
		}
		cmd.RegisterFlagCompletionFunc("sort", words(fields.Names()...))
		cmd.RegisterFlagCompletionFunc("field", words(fields.Names()...))
		if cmd.Name() == "stats" {
			cmd.RegisterFlagCompletionFunc("by", words("program", "procedure", "operation"))
		}
	}
}

// look reads captures for a moment, to offer what is in them.
func look(paths []string, handler func(offer func(string)) dissect.Handler) (offers []string) {
	if len(paths) == 0 {
		return nil
	}
	source, _ := capture.OpenAll(paths)
	if source == nil {
		return nil
	}
	defer source.Close()
	seen := map[string]bool{}
	d := dissect.New(handler(func(s string) {
		if !seen[s] && len(offers) < completionMost {
			seen[s] = true
			offers = append(offers, s)
		}
	}), dissect.Options{})
	var f capture.Frame
	for began := time.Now(); time.Since(began) < completionTime && source.Next(&f) == nil; {
		d.Frame(&f)
	}
	d.Finish()
	return offers
}
