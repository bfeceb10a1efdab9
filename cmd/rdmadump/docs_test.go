package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestDocs runs the commands of the pages in docs: those in blocks marked sh. A
// program that is not installed is passed over.
func TestDocs(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages in docs", err)
	}
	sample, err := filepath.Abs("../../testdata/captures/rocev2-data42.pcap.zst")
	if err != nil {
		t.Fatal(err)
	}
	scripts, commands := t.TempDir(), 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var script strings.Builder
		script.WriteString("cp $SAMPLE nfs.pcap\n")
		shell := false
		for line := range strings.Lines(string(text)) {
			line = strings.TrimRight(line, "\n")
			switch {
			case strings.HasPrefix(line, "```"):
				shell = line == "```sh"
			case shell && line != "":
				for _, program := range []string{"tshark", "jq", "md5sum"} {
					if strings.Contains(line, program+" ") {
						script.WriteString("[exec:" + program + "] ")
					}
				}
				script.WriteString("exec sh -ec '" + strings.ReplaceAll(line, "'", "''") + "'\n")
				commands++
			}
		}
		name := strings.TrimSuffix(filepath.Base(page), ".md") + ".txt"
		if err := os.WriteFile(filepath.Join(scripts, name), []byte(script.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if commands < 10 {
		t.Errorf("%d commands in %v", commands, pages)
	}
	testscript.Run(t, testscript.Params{Dir: scripts, Setup: func(e *testscript.Env) error {
		e.Setenv("SAMPLE", sample)
		return nil
	}})
}
