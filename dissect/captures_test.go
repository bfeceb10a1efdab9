package dissect_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

const captures = "../testdata/captures/"

// open opens a capture of testdata.
func open(t testing.TB, name string) *capture.File {
	t.Helper()
	return testkit.Open(t, captures+name)
}

// read dissects a capture.
func read(t testing.TB, name string, h dissect.Handler, o dissect.Options) *record.Summary {
	t.Helper()
	d := dissect.New(h, o)
	s, err := d.Run(context.Background(), open(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// short returns the names of the short captures that match, or with -all of all of them.
func short(t testing.TB, pattern string) (names []string) {
	t.Helper()
	var paths []string
	for _, name := range testkit.Glob(t, captures+pattern) {
		paths = append(paths, captures+name)
	}
	for _, path := range testkit.Short(t, paths) {
		names = append(names, filepath.Base(path))
	}
	return names
}
