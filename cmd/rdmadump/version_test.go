package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/rdmadump/rdmadump/internal/command"
)

func TestVersion(t *testing.T) {
	b := command.Build{Type: "version", Go: "go1.26.8", Platform: "linux/amd64"}
	b.Read(&debug.BuildInfo{
		Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "vcs", Value: "git"},
			{Key: "vcs.revision", Value: "0123456789abcdef"},
			{Key: "vcs.time", Value: "2026-11-21T14:00:00Z"},
			{Key: "vcs.modified", Value: "true"},
		},
	})
	want := "rdmadump v1.2.3\ncommit 0123456789abcdef of 2026-11-21T14:00:00Z, with uncommitted changes\ngo1.26.8 linux/amd64"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b = command.Build{Version: "(devel)", Go: "go1.26.8", Platform: "linux/amd64"}
	b.Read(&debug.BuildInfo{}) // This is a build without version information.
	if got, want := b.String(), "rdmadump (devel)\ngo1.26.8 linux/amd64"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	var out bytes.Buffer
	if code := run(context.Background(), []string{"version", "-o", "json"}, &out, io.Discard); code != command.ExitOK {
		t.Fatalf("exit status %d", code)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got["type"] != "version" || got["go"] != runtime.Version() || got["platform"] != runtime.GOOS+"/"+runtime.GOARCH || got["version"] != command.Version() {
		t.Errorf("got %v", got)
	}
}
