package render

import (
	"slices"
	"strings"
	"testing"
)

// TestExplanations: every column of every table and every mark of a drawing is explained in
// one sentence, once.
func TestExplanations(t *testing.T) {
	explained := map[string]map[string]bool{}
	for _, e := range Explanations() {
		if explained[e.View] == nil {
			explained[e.View] = map[string]bool{}
		}
		if explained[e.View][e.Name] {
			t.Errorf("%s: %s is explained twice", e.View, e.Name)
		}
		explained[e.View][e.Name] = true
		if !strings.HasSuffix(e.Meaning, ".") || len(e.Meaning) < 15 || strings.Contains(e.Meaning, "\n") {
			t.Errorf("%s: %s: not a sentence: %q", e.View, e.Name, e.Meaning)
		}
		if clean(e.Meaning) != e.Meaning {
			t.Errorf("%s: %s: not ASCII: %q", e.View, e.Name, e.Meaning)
		}
	}
	for view, columns := range map[string][]column{
		"transactions": transactionColumns, "connections": connectionColumns, "packets": packetColumns, "stats": statsColumns, "rates": ratesColumns, "files": filesColumns, "compare": compareColumns, "rdma": operationColumns, "rdma-stats": operationSumColumns, "tasks": taskColumns, "network": networkColumns, "fields": fieldColumns,
	} {
		for _, name := range headings(columns) {
			if !explained[view][name] {
				t.Errorf("%s: the column %s is not explained", view, name)
			}
		}
		for name := range explained[view] { // headings are in capital letters
			if name[0] >= 'A' && name[0] <= 'Z' && name != "SOURCE > DESTINATION" && !slices.Contains(headings(columns), name) {
				t.Errorf("%s: there is no column %s", view, name)
			}
		}
	}
	symbols := func(view string, want ...string) {
		names := ""
		for name := range explained[view] {
			names += " " + name + " "
		}
		for _, s := range want {
			if !strings.Contains(names, " "+s+" ") {
				t.Errorf("%s: the symbol %s is not explained", view, s)
			}
		}
	}
	for mark, drawn := range unicodeGlyphs.marks {
		view := "ladder"
		if mark == '?' {
			view = "handles"
		}
		symbols(view, string(rune(mark)), drawn)
	}
	for _, g := range []*glyphs{asciiGlyphs, unicodeGlyphs} {
		symbols("ladder", g.line+g.line+g.right, g.double+g.double+g.right, g.pause)
		symbols("credits", g.granted, g.levels[len(g.levels)-1])
		symbols("all", g.shortened)
	}
	symbols("credits", "@")
	symbols("handles", "=", "#", "x", "o", "?", unicodeGlyphs.marks['x'], unicodeGlyphs.marks['o'], "\u2836", "\u28ff")
	symbols("transactions", "!")
	symbols("stats", "~")
	symbols("files", "~")
	views := []string{"all", "transactions", "ladder", "connections", "credits", "handles", "packets", "rdma", "rdma-stats", "tasks", "stats", "files", "rates", "network", "compare", "check", "fields"}
	for view := range explained {
		if !slices.Contains(views, view) {
			t.Errorf("unexpected view %s", view)
		}
	}
}
