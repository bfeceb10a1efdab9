package main

import (
	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/command/export"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/command/live"
)

// complete registers the completion of the flags of all commands. Cobra keeps what is registered
// for as long as the process runs, so this is done only if a shell asks for completions.
func complete(root *cobra.Command) {
	for _, cmd := range append(root.Commands(), root) {
		flags.Complete(cmd)
		for name, offer := range completions {
			if cmd.Flags().Lookup(name) != nil {
				cmd.RegisterFlagCompletionFunc(name, offer)
			}
		}
	}
}

// completions has the completion of the flags of single commands.
var completions = map[string]cobra.CompletionFunc{
	"view": cobra.FixedCompletions(live.LiveNames(), cobra.ShellCompDirectiveNoFileComp),
	"format": func(*cobra.Command, []string, string) (formats []string, d cobra.ShellCompDirective) {
		for i := range export.Exporters {
			formats = append(formats, cobra.CompletionWithDesc(export.Exporters[i].Format, export.Exporters[i].Description))
		}
		return formats, cobra.ShellCompDirectiveNoFileComp
	},
	"interface": func(*cobra.Command, []string, string) (names []string, d cobra.ShellCompDirective) {
		list, _ := capture.Interfaces(live.Sysfs)
		for _, i := range list {
			names = append(names, i.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	},
}
