package main

import (
	"bytes"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/internal/testkit"
)

// TestCores: the output does not depend on the number of cores. The test is not parallel, because
// it sets the number of cores of the whole process.
func TestCores(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/captures/*.zst")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	views := append(slices.Clone(goldenViews), struct {
		name, args string
		lines      int
	}{"common.json", "common -o json", 0})
	for _, path := range testkit.Short(t, paths) {
		for _, view := range views {
			args := append(strings.Fields(view.args), path)
			switch view.name {
			case "ladder.txt":
				continue
			case "fields.json", "fields.txt":
				args = append(args, "-c", fieldsSome)
			}
			runtime.GOMAXPROCS(1)
			one, status := runGolden(args...)
			runtime.GOMAXPROCS(4)
			if four, other := runGolden(args...); !bytes.Equal(one, four) || status != other || len(one) == 0 && view.name != "check.txt" && !strings.HasPrefix(view.name, "files") {
				t.Errorf("rdmadump %s: %d bytes and status %d on one core, %d and %d on four", strings.Join(args, " "), len(one), status, len(four), other)
			}
		}
	}
}
