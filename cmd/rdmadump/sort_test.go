package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// TestSortedRecords: sorted records look like those that are shown directly.
func TestSortedRecords(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/captures/*.zst")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	for _, path := range testkit.Short(t, paths) {
		for _, args := range []string{
			"transactions --sort id", "transactions --sort id -o json", "transactions --sort id -e xid -e timeline.event", "connections -c 1000", "connections -c 1000 -o json",
		} {
			waited, status := runGolden(append(strings.Fields(args), "--sort", "id", path)...)
			if status != command.ExitOK && status != command.ExitBroken || len(waited) == 0 {
				t.Fatalf("%s %s: %d bytes, status %d", args, path, len(waited), status)
			}
			plain, _ := runGolden(append(strings.Fields(strings.Replace(args, "--sort id", "", 1)), path)...)
			a, b := strings.Split(string(waited), "\n"), strings.Split(string(plain), "\n")
			slices.Sort(a)
			slices.Sort(b)
			if !slices.Equal(a, b) {
				t.Errorf("%s %s: other lines when sorted", args, path)
			}
		}
	}
}
