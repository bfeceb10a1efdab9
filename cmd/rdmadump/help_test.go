package main

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/command/manual"
	"github.com/rdmadump/rdmadump/internal/query"
)

// verbs are the words that descriptions of commands and flags begin with, in the imperative.
// To use another verb, add it.
var verbs = []string{
	"accept", "add", "analyze", "browse", "capture", "compare", "complete", "convert", "derive", "do", "draw", "exit", "explain", "fit", "generate", "give", "group", "hand", "limit", "list", "print", "read", "refuse", "replace", "report", "run", "save",
	"say", "select", "serve", "show", "sort", "stop", "sum", "summarize", "take", "use", "write",
}

// TestHelp: every command has a description that begins with a verb, and is in one group of
// commands.
func TestHelp(t *testing.T) {
	root := newRoot(io.Discard, io.Discard)
	var listed []string
	for _, group := range manual.CommandGroups {
		listed = append(listed, group.Commands...)
	}
	for _, topic := range manual.Topics {
		listed = append(listed, topic.Name)
	}
	var names []string
	for _, cmd := range root.Commands() {
		if !cmd.Hidden { // Wireshark calls it, and nobody else
			names = append(names, cmd.Name())
		}
	}
	slices.Sort(listed)
	slices.Sort(names)
	if !slices.Equal(listed, names) {
		t.Errorf("help lists %q, but the commands are %q", listed, names)
	}
	manual.EachCommand(root, func(cmd *cobra.Command) {
		first, size := utf8.DecodeRuneInString(cmd.Short)
		if !unicode.IsUpper(first) || !beginsWithVerb(string(unicode.ToLower(first))+cmd.Short[min(size, len(cmd.Short)):]) || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: %q is not an imperative sentence without a period", cmd.CommandPath(), cmd.Short)
		}
		if !strings.Contains(string(manual.Usage(cmd, 0)), "  -h, --help") && cmd.Runnable() {
			t.Errorf("the help of %s does not list its flags", cmd.CommandPath())
		}
	})
}

// condition says with which other flag, or in which views, a flag is used.
var condition = regexp.MustCompile(`^(with [^:]+|check( and problems)?): `)

// TestFlagUsage: the description of every flag begins with a verb, and its placeholder is a
// noun.
func TestFlagUsage(t *testing.T) {
	// The flags of completion are cobra's.
	manual.EachCommand(newRoot(io.Discard, io.Discard), func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			placeholder, usage := pflag.UnquoteUsage(f)
			name := cmd.CommandPath() + " --" + f.Name
			switch {
			case f.Name == "no-descriptions":
				return
			case !beginsWithVerb(condition.ReplaceAllString(usage, "")) || strings.HasSuffix(usage, "."):
				t.Errorf("%s: %q is not an imperative sentence without a period", name, usage)
			case f.Value.Type() == "bool":
			case !strings.Contains(f.Usage, "`"):
				t.Errorf("%s: %q has no placeholder in back quotes", name, f.Usage)
			case placeholder == f.DefValue || slices.Contains([]string{"N", "string", "int", "long"}, placeholder):
				t.Errorf("%s: the placeholder %q is not a noun that says what the value is", name, placeholder)
			}
		})
	})
}

func beginsWithVerb(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	return slices.Contains(verbs, word)
}

// TestManual: each command has a man page with its flags below the headings that its help
// has.
func TestManual(t *testing.T) {
	root, folder := newRoot(io.Discard, io.Discard), t.TempDir()
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600")
	if err := manual.WriteManual(root, folder); err != nil {
		t.Fatal(err)
	}
	pages := 0
	manual.EachCommand(root, func(cmd *cobra.Command) {
		if !cmd.IsAvailableCommand() && cmd != root {
			return
		}
		pages++
		text, err := os.ReadFile(filepath.Join(folder, manual.Dashed(cmd)+".1"))
		if err != nil {
			t.Fatal(err)
		}
		page := strings.NewReplacer(`\-`, "-", `\fB`, "", `\fP`, "", `\fI`, "").Replace(string(text))
		for group, set := range flags.Grouped(cmd) {
			if set.HasFlags() != strings.Contains(page, ".SS "+flags.GroupTitles[group]+"\n") {
				t.Errorf("%s: heading %s", manual.Dashed(cmd), flags.GroupTitles[group])
			}
			set.VisitAll(func(f *pflag.Flag) {
				if !strings.Contains(page, "--"+f.Name) {
					t.Errorf("%s: --%s is missing", manual.Dashed(cmd), f.Name)
				}
			})
		}
		if !strings.Contains(page, "Jan 2026") {
			t.Errorf("%s has no date", manual.Dashed(cmd))
		}
	})
	if pages < 15 {
		t.Errorf("only %d pages", pages)
	}
}

// TestFilterExamples: every example of the help on filters compiles with the fields of its view.
func TestFilterExamples(t *testing.T) {
	_, examples, _ := strings.Cut(manual.FilterManual, "\n# EXAMPLES\n")
	examples, _, _ = strings.Cut(examples, "\n# ")
	found := regexp.MustCompile(`(?m)^    rdmadump (?:([a-z]+) )?nfs\.pcap -Y '([^']+)'$`).FindAllStringSubmatch(examples, -1)
	if lines := strings.Count(examples, "    rdmadump "); len(found) != lines || lines == 0 {
		t.Fatalf("%d of %d examples have the form of a command with -Y", len(found), lines)
	}
	for _, example := range found {
		view := cmp.Or(example[1], "transactions")
		compiled := false
		for _, l := range manual.FieldLists {
			if l.View != view {
				continue
			}
			compiled = true
			if _, err := query.Compile(example[2], l.Fields); err != nil {
				t.Errorf("an example of the help on filters, for %s, does not compile: %s: %v", view, example[2], err)
			}
		}
		if !compiled {
			t.Errorf("there are no fields of %s", view)
		}
	}
}
