package flags

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/diagnose"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// Complete registers the completion of the flags of a command. Cobra keeps what is registered for as long as the process
// runs, so this is done only if a shell asks for completions.
func Complete(cmd *cobra.Command) {
	shown := viewOf(cmd)
	for _, r := range commandTable {
		if r.takers(cmd.Name()) {
			r.completed(cmd, shown)
		}
	}
	for _, r := range table {
		r.completed(cmd, shown)
	}
}

// completed registers the completion of the flag, if the command has it. The first registration of a flag counts.
func (r *row) completed(cmd *cobra.Command, shown *View) {
	switch {
	case cmd.Flags().Lookup(r.name) == nil:
	case r.complete != nil:
		cmd.RegisterFlagCompletionFunc(r.name, r.complete(shown))
	case r.values != nil:
		cmd.RegisterFlagCompletionFunc(r.name, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return r.values(viewOf(cmd)), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// viewOf returns the view that a command shows: the view with the name of the command, or
// the one that --view gives to live.
func viewOf(cmd *cobra.Command) *View {
	name := cmd.Name()
	if chosen := cmd.Flags().Lookup("view"); chosen != nil {
		name = chosen.Value.String()
	}
	if v := ViewNamed(name); v != nil {
		return v
	}
	return Views[0]
}

// offered returns a completion function that offers the words that words returns. The lists are long, so they are made only when
// they are needed.
func offered(words func() []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	}
}

func offerFields(v *View) cobra.CompletionFunc { return offered(v.Fields.Names) }

func offerHeadings(v *View) cobra.CompletionFunc {
	return offered(func() []string { return render.Headings(v.Fields.Of()) })
}

func offerGroups(*View) cobra.CompletionFunc {
	return offered(func() []string {
		return append(append(slices.Clone(groupKinds), bySize), query.Transactions.Names()...)
	})
}

// offerRules offers the ids of all rules.
func offerRules(v *View) cobra.CompletionFunc {
	if v != nil && v.Name == "problems" {
		return offered(diagnose.IDs)
	}
	return offered(func() (ids []string) {
		for _, r := range rule.All {
			ids = append(ids, r.ID)
		}
		return ids
	})
}

// offerPaths completes the last word of an expression of -Y with field names.
func offerPaths(v *View) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) (offers []cobra.Completion, d cobra.ShellCompDirective) {
		at := strings.LastIndexFunc(typed, func(r rune) bool {
			return r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) + 1
		for _, f := range v.Fields.List() {
			if strings.HasPrefix(f.Path, typed[at:]) {
				offers = append(offers, cobra.CompletionWithDesc(typed[:at]+f.Path, f.Doc))
			}
		}
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}
