package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command/manual"
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
