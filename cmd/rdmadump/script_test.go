package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/internal/testkit"
)

// browserScript returns the function that runs a script of test/browser, which controls Chromium, with more arguments. The
// function returns the lines of the script's output. The test is skipped if it is not to run, or if a program or the
// package that the script needs is missing.
func browserScript(t *testing.T, script, needs string) func(limit time.Duration, args ...string) [][]byte {
	t.Helper()
	if !testkit.All() {
		t.Skip("make hostile runs this test")
	}
	const folder = "../../test/browser"
	node, missing := exec.LookPath("node")
	browser, too := exec.LookPath("chromium")
	if _, err := os.Stat(filepath.Join(folder, "node_modules", needs)); missing != nil || too != nil || err != nil {
		t.Skip("chromium, node or test/browser/node_modules is missing: apt-get install chromium npm, and npm ci in test/browser")
	}
	return func(limit time.Duration, args ...string) [][]byte {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		cmd := exec.CommandContext(ctx, node, append([]string{script, browser}, args...)...)
		cmd.Dir = folder
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %.2000s", err, &errs)
		}
		if errs.Len() > 0 {
			t.Logf("%s: %.2000s", script, &errs)
		}
		return slices.Collect(bytes.Lines(out))
	}
}
