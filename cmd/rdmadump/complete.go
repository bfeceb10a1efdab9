package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/command/export"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/command/live"
	"github.com/rdmadump/rdmadump/internal/command/show"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

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
	for _, c := range flags.Choices {
		complete(c.Flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return c.Values(viewOf(cmd)), cobra.ShellCompDirectiveNoFileComp
		})
	}
	fields := viewOf(cmd).Fields
	words("columns", render.Headings(fields.Of())...)
	complete("by", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return append(slices.Clone(flags.GroupKinds), query.Transactions.Names()...), cobra.ShellCompDirectiveNoFileComp
	})
	complete("format", func(*cobra.Command, []string, string) (formats []string, d cobra.ShellCompDirective) {
		for i := range export.Exporters {
			formats = append(formats, cobra.CompletionWithDesc(export.Exporters[i].Format, export.Exporters[i].Description))
		}
		return formats, cobra.ShellCompDirectiveNoFileComp
	})
	complete("interface", func(*cobra.Command, []string, string) (names []string, d cobra.ShellCompDirective) {
		list, _ := capture.Interfaces(live.Sysfs)
		for _, i := range list {
			names = append(names, i.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	words("view", live.LiveNames()...)
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
func viewOf(cmd *cobra.Command) *flags.View {
	name := cmd.Name()
	if chosen := cmd.Flags().Lookup("view"); chosen != nil {
		name = chosen.Value.String()
	}
	if v := flags.ViewNamed(name); v != nil {
		return v
	}
	return flags.Views[0]
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
			return show.ErrEnough
		}
		return nil
	}), dissect.Options{})
	d.Run(ctx, source)
	return offers
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
