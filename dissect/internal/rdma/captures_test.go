package rdma_test

import (
	"path/filepath"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

const captures = "../../../testdata/captures/"

// open opens a capture of testdata.
func open(t testing.TB, name string) *capture.File {
	t.Helper()
	return testkit.Open(t, captures+name)
}

// glob returns the names of the captures that match.
func glob(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(captures + pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captures %s: %v", pattern, err)
	}
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	return paths
}
