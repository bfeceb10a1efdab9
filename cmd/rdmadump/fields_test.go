package main

import (
	"fmt"
	"io"
	"io/fs"
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

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command/manual"
	"github.com/rdmadump/rdmadump/internal/diagnose"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// documented returns the fields of every record type, by the view or the name of the type.
func documented() map[string][]query.Field {
	all := map[string][]query.Field{
		"overview":   query.New[analyze.Overview]("overviews").List(),
		"interfaces": query.New[capture.Interface]("interfaces").List(),
	}
	for _, l := range manual.FieldLists {
		all[l.View] = l.Fields.List()
	}
	return all
}

// byteCount matches the names of fields that count bytes.
var byteCount = regexp.MustCompile(`^captured$|(^|[._])(bytes|length|size)$`)

// inTable matches the descriptions of the fields of headers, such as "BTH: Pad count.".
var inTable = regexp.MustCompile(`^[A-Z][A-Za-z0-9_, -]*: [A-Z]`)

// TestFieldDocs: the description of every field makes sense without its name. It is a
// sentence that ends with a period, does not begin with a pronoun or preposition, and gives
// the unit of a duration or a number of bytes.
func TestFieldDocs(t *testing.T) {
	inHeader := map[string]bool{} // Package header describes these itself.
	for _, x := range header.Extras {
		inHeader[strings.TrimPrefix(x.Object+"."+x.Name, ".")] = true
	}
	n := 0
	for view, list := range documented() {
		for i := range list {
			f := &list[i]
			if view == "packets" && inHeader[f.Path] {
				continue
			}
			n++
			name := view + " " + f.Path
			first, _ := utf8.DecodeRuneInString(f.Doc)
			word, _, _ := strings.Cut(f.Doc, " ")
			switch {
			case !unicode.IsUpper(first) && !unicode.IsDigit(first):
				t.Errorf("%s: %q does not begin with a capital", name, f.Doc)
			case !strings.HasSuffix(f.Doc, "."):
				t.Errorf("%s: %q does not end with a period", name, f.Doc)
			case inTable.MatchString(f.Doc):
			case len(strings.Fields(f.Doc)) < 3:
				t.Errorf("%s: %q is too short", name, f.Doc)
			case regexp.MustCompile(`^(?:Of|That|Which|Who|How),?$`).MatchString(word):
				t.Errorf("%s: %q begins with %q", name, f.Doc, word)
			case f.Type == "duration" && !strings.Contains(f.Doc, "nanoseconds"):
				t.Errorf("%s: %q does not say that the unit is nanoseconds", name, f.Doc)
			case f.Type == "number" && !query.InTables(f.Path) && byteCount.MatchString(f.Path) && !regexp.MustCompile(`\bbytes?\b`).MatchString(f.Doc):
				t.Errorf("%s: %q does not say that the unit is bytes", name, f.Doc)
			}
		}
	}
	if n < 1000 {
		t.Errorf("only %d fields", n)
	}
}

// TestFieldDocsEverywhere: schemas, man pages and completion give the same descriptions as
// rdmadump fields.
func TestFieldDocsEverywhere(t *testing.T) {
	schemas := map[string]string{}
	for view, kind := range map[string]string{
		"transactions": "transaction", "connections": "connection", "check": "finding", "stats": "stats", "files": "file", "summary": "summary", "credits": "credits", "handles": "handles", "interfaces": "interface",
	} {
		text, err := fs.ReadFile(render.Schemas, "schema/"+kind+".json")
		if err != nil {
			t.Fatal(err)
		}
		schemas[view] = string(text)
	}
	folder := t.TempDir()
	if err := manual.WriteManual(newRoot(io.Discard, io.Discard), folder); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(folder, "rdmadump-filter.7"))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.NewReplacer(`\-`, "-", `\(aq`, "'").Replace(string(written))
	for view, list := range documented() {
		for i := range list {
			f := &list[i]
			if schema := schemas[view]; schema != "" && !f.Drawn && f.Path != "type" && !strings.Contains(schema, strings.ReplaceAll(f.Doc, `"`, `\"`)) {
				t.Errorf("the schema of %s does not say %q (%s)", view, f.Doc, f.Path)
			}
			if view == "transactions" && !strings.Contains(page, f.Doc) {
				t.Errorf("rdmadump-filter(7) does not say %q (%s)", f.Doc, f.Path)
			}
		}
	}
}

// namesFile has all names that version 1 promises: programs of users have them.
const namesFile = "testdata/names"

// newMetric matches what makes a metric.
var newMetric = regexp.MustCompile(`(?:vec|one|gauge)\("(\w+)"|Name: "(\w+)"`)

// TestNamesStay: no name of a command, flag, field, value, rule, problem or metric goes. The flag -update adds new ones to the file.
func TestNamesStay(t *testing.T) {
	var now []string
	add := func(words ...string) { now = append(now, strings.Join(words, " ")) }
	manual.EachCommand(newRoot(io.Discard, io.Discard), func(cmd *cobra.Command) {
		add("command", cmd.CommandPath())
		cmd.Flags().VisitAll(func(f *pflag.Flag) { add("flag", cmd.CommandPath(), "--"+f.Name) })
	})
	for view, list := range documented() {
		for i := range list {
			f := &list[i]
			add("field", view, f.Path)
			if view != "packets" && !query.InTables(f.Path) {
				for _, value := range f.Values {
					add("value", view, f.Path, value)
				}
			}
		}
	}
	for i := range rule.All {
		add("rule", rule.All[i].ID)
	}
	for _, id := range diagnose.IDs() {
		add("problem", id)
	}
	source, err := os.ReadFile("../../internal/metrics/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range newMetric.FindAllStringSubmatch(string(source), -1) {
		add("metric", "rdmadump_"+m[1]+m[2])
	}
	file, err := os.ReadFile(namesFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	promised := strings.Fields(strings.ReplaceAll(string(file), " ", "\x00"))
	for i, name := range promised {
		if promised[i] = strings.ReplaceAll(name, "\x00", " "); !slices.Contains(now, promised[i]) {
			t.Errorf("%s is gone, and users' programs have it: put it back, or remove it from %s with a new major version of rdmadump and of the $id of the schemas", promised[i], namesFile)
		}
	}
	all := slices.Compact(slices.Sorted(slices.Values(append(now, promised...))))
	if *update {
		err = os.WriteFile(namesFile, []byte(strings.Join(all, "\n")+"\n"), 0o644)
	} else if len(all) > len(promised) {
		err = fmt.Errorf("%s lacks %d names, which version 1 will promise; the flag -update adds them", namesFile, len(all)-len(promised))
	}
	if err != nil {
		t.Error(err)
	}
}
