package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rdmadump": func() { os.Exit(Main()) }})
}

// TestScript runs the command as its users do; see testdata/script.
func TestScript(t *testing.T) {
	captures, err := filepath.Abs("../../testdata/captures")
	if err != nil {
		t.Fatal(err)
	}
	samples, err := filepath.Abs("../../samples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("CAPTURES", captures)
			e.Setenv("SAMPLES", samples)
			return nil
		},
	})
}
