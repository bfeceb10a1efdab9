package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rdmadump/rdmadump/internal/testkit"
)

var (
	update = flag.Bool("update", false, "write the golden file anew")
	keep   = flag.String("keep", "", "write what every view shows into this `folder`, named in full, to compare two trees")
)

const goldenFile = "testdata/golden.txt"

const goldenHead = `# What every view shows of every capture and its variants; make golden writes it anew.
# capture variant view, SHA-256 (first 64 bits), bytes, lines, exit status
`

// goldenViews are command lines, without the capture.
var goldenViews = []struct{ name, args string }{
	{"transactions.json", "transactions -o json"},
	{"transactions.txt", "transactions"},
	{"ladder.txt", "transactions --xid"}, // of the slowest
	{"connections.json", "connections -o json"},
	{"timeline.txt", "connections --timeline"},
	{"check.json", "check -o json"},
	{"check.txt", "check"},
	{"stats.json", "stats -o json"},
	{"stats.txt", "stats"},
	{"packets.json", "packets -o json"},
	{"packets.txt", "packets"},
	{"fields.json", "packets -V -o json"},
	{"fields.txt", "packets -V"},
}

// Of captures with more packets than fieldsAll, the fields of the first
// fieldsSome are held: all would take most of the test's time, and say nothing
// new.
const (
	fieldsAll  = 3000
	fieldsSome = "500"
)

// variantViews are those that are held of the variants: what the others show is
// drawn from the same records.
var variantViews = []string{"transactions.json", "connections.json", "check.json", "packets.json", "check.txt"}

// TestGolden holds every view of every capture, as it is and in its variants,
// against what it showed before. A change on purpose is looked at first: the
// folders that -keep fills, before and after, are what diff -r wants.
func TestGolden(t *testing.T) {
	var paths []string
	for _, pattern := range []string{"../../testdata/captures/*.zst", "../../samples/*.pcap"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no captures %s: %v", pattern, err)
		}
		paths = append(paths, found...)
	}
	if *keep != "" {
		if err := os.MkdirAll(*keep, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := readGolden(t)
	var mu sync.Mutex
	got := map[string]string{}
	t.Cleanup(func() { // when all that runs in parallel is done
		if *update {
			writeGolden(t, paths, want, got)
		}
	})
	for _, path := range paths {
		for _, v := range testkit.Variants {
			name := filepath.Base(path)
			t.Run(name+"/"+v.Name, func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "variant.pcap")
				packets := v.Write(t, path, file)
				if v.Name == "whole" {
					file = path // compressed or broken, in its own format
				}
				for _, view := range goldenViews {
					if v.Name != "whole" && !slices.Contains(variantViews, view.name) {
						continue
					}
					shown, status := showGolden(t, view.name, strings.Fields(view.args), file, packets)
					key := name + " " + v.Name + " " + view.name
					sum := sha256.Sum256(shown)
					result := fmt.Sprintf("%x %d %d %d", sum[:8], len(shown), bytes.Count(shown, []byte("\n")), status)
					if result != want[key] && !*update {
						t.Errorf("%s: %s, was %s", view.name, result, want[key])
					}
					mu.Lock()
					got[key] = result
					mu.Unlock()
					if *keep != "" {
						if err := os.WriteFile(filepath.Join(*keep, strings.ReplaceAll(key, " ", ".")), shown, 0o600); err != nil {
							t.Fatal(err)
						}
					}
				}
				if t.Failed() {
					t.Log("-keep FOLDER writes what is shown; make golden accepts it")
				}
			})
		}
	}
}

// showGolden runs one view. Where there is no transaction to draw a ladder of,
// it shows nothing.
func showGolden(t *testing.T, name string, args []string, file string, packets int) (shown []byte, status int) {
	switch name {
	case "ladder.txt":
		slowest, _ := runGolden("transactions", "--top", "1", "-o", "json", file)
		line, _, _ := bytes.Cut(slowest, []byte("\n"))
		var record struct{ Type, XID string }
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if record.Type != "transaction" {
			return nil, exitOK
		}
		args = append(args, record.XID)
	case "fields.json", "fields.txt":
		if packets > fieldsAll {
			args = append(args, "-c", fieldsSome)
		}
	}
	return runGolden(append(args, file)...)
}

func runGolden(args ...string) (shown []byte, status int) {
	var out bytes.Buffer
	status = run(context.Background(), args, &out, io.Discard)
	return out.Bytes(), status
}

// readGolden is the golden file: results by capture, variant and view.
func readGolden(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.ReadFile(goldenFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(file)) {
		if f := strings.Fields(line); len(f) == 7 && f[0] != "#" {
			want[strings.Join(f[:3], " ")] = strings.Join(f[3:], " ")
		}
	}
	return want
}

// writeGolden writes the golden file. What did not run this time stays, as long
// as there is a capture of that name.
func writeGolden(t *testing.T, paths []string, want, got map[string]string) {
	t.Helper()
	var lines []string
	for _, path := range paths {
		for _, v := range testkit.Variants {
			for _, view := range goldenViews {
				key := filepath.Base(path) + " " + v.Name + " " + view.name
				result, ran := got[key]
				if !ran {
					result = want[key]
				}
				if result != "" {
					lines = append(lines, key+" "+result+"\n")
				}
			}
		}
	}
	slices.Sort(lines)
	if err := os.WriteFile(goldenFile, []byte(goldenHead+strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}
