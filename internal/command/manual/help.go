package manual

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/render"
)

// CommandGroups are the headings below which rdmadump --help lists the commands.
var CommandGroups = []struct {
	title    string
	Commands []string
}{
	{"Show a capture", []string{"transactions", "overview", "problems", "packets", "rdma", "tasks", "connections", "files", "stats", "network", "compare", "check", "browse"}},
	{"Write files", []string{"report", "export", "extract"}},
	{"Capture live traffic", []string{"live", "interfaces"}},
	{"Reference", []string{"fields", "schema", "man", "completion", "version", "help"}},
}

// Topics are the help topics: pages that belong to no command.
var Topics = []struct {
	Name, short string
	Page        func() string // in Markdown
}{
	{"columns", "Explain the headings and symbols of tables, ladder diagrams and timelines", func() string { return columnsPage(render.Explanations()) }},
	{"filter", "Explain the expressions of -Y", func() string { return FilterManual + "\nThe command **rdmadump fields** lists all fields.\n" }},
}

// AddHelp adds the help topics to root, and gives it and all commands below it their help
// texts. Help is laid out for the terminal that stdout is; if stdout is none, lines have
// any length.
func AddHelp(root *cobra.Command, stdout io.Writer) {
	for _, topic := range Topics {
		cmd := &cobra.Command{Use: topic.Name, Short: topic.short}
		cmd.SetHelpFunc(func(*cobra.Command, []string) {
			io.WriteString(stdout, pageText(topic.Page(), command.TerminalWidth(stdout)))
		})
		root.AddCommand(cmd)
	}
	EachCommand(root, func(cmd *cobra.Command) {
		cmd.Flags().SortFlags = false
		cmd.InitDefaultHelpFlag()
		cmd.Flags().Lookup("help").Usage = "show this help"
		if cmd.Name() == "help" && cmd.Parent() == root {
			cmd.Use, cmd.Short, cmd.Long = "help [COMMAND | TOPIC]", "Show the help of a command, or a help topic", ""
			cmd.ValidArgsFunction = completeHelp
		}
	})
	root.InitDefaultVersionFlag()
	root.Flags().Lookup("version").Usage = "print the version"
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := cmd.OutOrStderr().Write(Usage(cmd, command.TerminalWidth(stdout)))
		return err
	})
}

// completeHelp offers the names of commands and help topics.
func completeHelp(help *cobra.Command, args []string, typed string) (names []cobra.Completion, d cobra.ShellCompDirective) {
	cmd, _, err := help.Root().Find(args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, c := range cmd.Commands() {
		if strings.HasPrefix(c.Name(), typed) {
			names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// EachCommand calls visit for a command and all commands below it.
func EachCommand(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		EachCommand(c, visit)
	}
}

// Usage returns the part of a command's help that follows its description. Lines are at
// most width columns wide; 0 means any length.
func Usage(cmd *cobra.Command, width int) []byte {
	var b bytes.Buffer
	b.WriteString("Usage:\n")
	if cmd.Runnable() {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	names := func(title string, commands []*cobra.Command) {
		if len(commands) > 0 {
			fmt.Fprintf(&b, "\n%s:\n", title)
		}
		for _, c := range commands {
			fmt.Fprintf(&b, "  %-*s %s\n", c.NamePadding(), c.Name(), c.Short)
		}
	}
	for _, group := range CommandGroups {
		names(group.title, commandsNamed(cmd, group.Commands))
	}
	if cmd.HasParent() {
		names("Commands", cmd.Commands())
	}
	names("Help topics (rdmadump help TOPIC)", slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return !c.IsAdditionalHelpTopicCommand() }))
	for group, set := range flags.Grouped(cmd) {
		if set.HasFlags() {
			fmt.Fprintf(&b, "\n%s:\n%s", flags.GroupTitles[group], optional(set.FlagUsagesWrapped(width)))
		}
	}
	return b.Bytes()
}

// optional writes the flag --ascii, whose value is optional, as the help texts of other programs
// do. The columns stay aligned.
func optional(usages string) string {
	return strings.Replace(usages, `--ascii when[="true"]`, `--ascii[=when]       `, 1)
}

// commandsNamed returns the commands of root with these names, in the order of the names.
func commandsNamed(root *cobra.Command, names []string) (commands []*cobra.Command) {
	for _, name := range names {
		for _, c := range root.Commands() {
			if !root.HasParent() && c.Name() == name {
				commands = append(commands, c)
			}
		}
	}
	return commands
}

// columnsPage returns the help topic on headings and symbols, in Markdown.
func columnsPage(all []render.Explanation) string {
	var b strings.Builder
	b.WriteString(columnsManual)
	view := ""
	for _, e := range all {
		if e.View != view {
			view = e.View
			fmt.Fprintf(&b, "\n# %s\n\n", strings.ToUpper(view))
		}
		fmt.Fprintf(&b, "**%s**\n: %s\n\n", escapeMarkdown(e.Name), escapeMarkdown(e.Meaning))
	}
	return b.String()
}
