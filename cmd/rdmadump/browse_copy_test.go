package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/browse"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/index"
	"github.com/rdmadump/rdmadump/internal/shell"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

// browsedModel returns the Model of a capture that was read.
func browsedModel(t *testing.T, path string) (*browse.Model, *index.Index) {
	t.Helper()
	source, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	x := index.New(index.Options{})
	x.Run(t.Context(), source, dissect.Options{})
	m := browse.New(browse.Options{Index: x, Name: path, Typed: shell.File(path), Look: render.Look{Colour: render.NoColour}, Closed: "not here"})
	t.Cleanup(func() { m.Close(); x.Close() })
	return m, x
}

// typeKeys presses keys of one character, and waits for what they start.
func typeKeys(t *testing.T, m *browse.Model, keys ...string) {
	t.Helper()
	for _, k := range keys {
		m.Key(k)
		for end := time.Now().Add(time.Minute); m.Busy(); m.Tick() {
			if time.Now().After(end) {
				t.Fatal("background work does not end")
			}
			time.Sleep(time.Millisecond)
		}
	}
	m.Tick()
}

// arguments returns the arguments of a command line that browse copied.
func arguments(t *testing.T, line string) (args []string) {
	t.Helper()
	for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
		args = append(args, strings.Trim(word, "'"))
	}
	if len(args) == 0 || args[0] != "rdmadump" {
		t.Fatalf("the command line is %q", line)
	}
	return args[1:]
}

// listed runs a command line with -o json and returns its transactions.
func listed(t *testing.T, args []string) (ids []int64) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(context.Background(), append(args, "-q", "-o", "json"), &out, &errs); code != command.ExitOK && code != command.ExitBroken {
		t.Fatalf("%q: exit status %d: %s", args, code, errs.String())
	}
	for line := range strings.Lines(out.String()) {
		var r record.Transaction
		if err := json.Unmarshal([]byte(line), &r); err == nil && r.Type == "transaction" {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// TestCopiedCommands: each command line that browse copies shows the same RPCs.
func TestCopiedCommands(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../testdata/captures/*.pcap*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range testkit.Short(t, append(paths, "../../samples/rocev2-errors.pcap")) {
		m, x := browsedModel(t, path)
		_, to := x.Bounds()
		r := x.Reader()
		var ids []int64 // as the list shows them
		for n := range to {
			one, err := r.Transaction(n)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, one.ID)
		}
		slices.Sort(ids)
		typeKeys(t, m, "g") // It returns when the list is in the order of numbers: the first RPC to end need not have the first.
		for n := int64(0); n < to; n += max(to/4, 1) {
			for range n - max(n-max(to/4, 1), 0) {
				m.Key("j")
			}
			typeKeys(t, m, "enter", "y", "c")
			line := m.Clipboard
			if got := listed(t, arguments(t, line)); len(got) != 1 || got[0] != ids[n] {
				t.Errorf("%s shows RPCs %v, want %d", line, got, ids[n])
			}
			m.Key("q")
		}
		r.Close()
		if to == 0 {
			continue
		}
		m.Filter("latency > 1ms")
		typeKeys(t, m, "g", "y", "c")
		got := len(listed(t, arguments(t, m.Clipboard)))
		count := regexp.MustCompile(`& latency > 1ms   (\d+) of \d+, final`).FindStringSubmatch(m.Screen())
		if got > 0 && (count == nil || count[1] != strconv.Itoa(got)) {
			t.Errorf("%s lists %d RPCs, and the screen says\n%s", m.Clipboard, got, m.Screen())
		}
	}
}
