package flags

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/rdmadump/rdmadump/internal/query"
)

// TestTable: each flag is in the table once, some view takes it, and it sets what Typed has.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for i := range table {
		r := &table[i]
		if seen[r.name] || r.short != "" && seen[r.short] {
			t.Errorf("--%s or -%s is in the table twice", r.name, r.short)
		}
		if seen[r.name], seen[r.short] = true, true; !isViewFlag(r.name) {
			t.Errorf("no view takes --%s", r.name)
		}
		var s pflag.FlagSet
		if r.define(&s, nil); s.Lookup(r.name) == nil || s.Lookup(r.name).Shorthand != r.short {
			t.Errorf("--%s is not defined", r.name)
		}
	}
	if len(table) < 30 {
		t.Errorf("only %d flags", len(table))
	}
}

// TestTakers: who takes a flag is said by names of commands that exist.
func TestTakers(t *testing.T) {
	known := append(LiveNames()[:len(Views)], CompareView.Name, BrowseView.Name, ReportView.Name, ExportView(query.Packets).Name, ExtractView.Name)
	for i := range table {
		r := &table[i]
		takers := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return !r.takers(name) })
		if other := r.takers("no such command"); other && len(takers) == 0 || !other && len(takers) == len(known) {
			t.Errorf("--%s: only and but name commands that do not exist, or all that do; these take it: %q", r.name, takers)
		}
		for name := range r.refusal {
			if !slices.Contains(known, name) || r.takers(name) {
				t.Errorf("--%s: %s has a message for a flag that it takes, or does not exist", r.name, name)
			}
		}
	}
}

// TestCommandTable: a command has one row for each of its own flags, none of which views give it, too.
func TestCommandTable(t *testing.T) {
	commands := []string{"live", "browse", "report", "export", "extract", "compare"}
	taken := map[string]bool{}
	for i := range commandTable {
		r := &commandTable[i]
		takers := slices.DeleteFunc(slices.Clone(commands), func(name string) bool { return !r.takers(name) })
		if len(takers) == 0 || r.takers("no such command") {
			t.Errorf("--%s: these commands take it: %q", r.name, takers)
		}
		for _, name := range takers {
			if taken[name+" "+r.name] {
				t.Errorf("%s has two rows for --%s", name, r.name)
			}
			taken[name+" "+r.name] = true
			if view := rowOf(r.name); view != nil && view.takers(name) {
				t.Errorf("%s has --%s of its own, and that of views", name, r.name)
			}
		}
		var s pflag.FlagSet
		if r.define(&s, nil); s.Lookup(r.name) == nil || s.Lookup(r.name).Shorthand != r.short || s.Lookup(r.name).Usage != r.doc {
			t.Errorf("--%s is not defined as its row says", r.name)
		}
	}
	if len(taken) < 20 {
		t.Errorf("the commands have %d flags of their own, want more than 20: %v", len(taken), taken)
	}
}

// TestWords: no part of the value of a flag with several words is ignored.
func TestWords(t *testing.T) {
	n := 0
	for _, r := range commandFlags(new(Typed)) {
		var s pflag.FlagSet
		r.define(&s, nil)
		f := s.Lookup(r.name)
		if f.Value.Type() != "stringSlice" {
			continue
		}
		n++
		if err := f.Value.Set("a=1,b=2\nc=3"); err == nil {
			t.Errorf("--%s with two lines is %q", f.Name, f.Value)
		}
		if err := f.Value.Set(`a=1,"b=2,3"`); err != nil || !slices.Equal(f.Value.(pflag.SliceValue).GetSlice(), []string{"a=1", "b=2,3"}) {
			t.Errorf("--%s is %q, %v", f.Name, f.Value, err)
		}
	}
	if n < 2 {
		t.Errorf("%d flags have several words, want at least the two --partition", n)
	}
}
