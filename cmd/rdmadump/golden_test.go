package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the golden files and the printed output in the pages")

// goldenFolder has the views of goldenCaptures as text that is read in reviews: a
// txtar archive per capture, with a section for each view.
const goldenFolder = "testdata/golden"

// goldenCaptures are the captures whose views are stored as text.
var goldenCaptures = []string{
	"iwarp-nfs41", "lab-iwarperrors", "lab-krb5", "lab-slowserver41", "rocev2-callback41", "rocev2-errors", "rocev2-loss42", "rocev2-mixed",
	"rocev2-nfs3", "sample-rocev2-lostlink41", "sample-rocev2-slowwrite42",
}

// digestFile stores the views of all other captures and variants: a line has the
// capture, the variant and view, and the start of the SHA-256 of the output.
const digestFile = "testdata/digests"

// goldenViews are command lines, without the capture. The golden file keeps the
// first lines of a view and a checksum of the others. A lines of 0 keeps all.
var goldenViews = []struct {
	name, args string
	lines      int
}{
	{"transactions.json", "transactions -o json", 12},
	{"transactions.txt", "transactions", 60},
	{"ladder.txt", "transactions --xid", 0}, // of the slowest
	{"overview.txt", "overview", 0},
	{"connections.json", "connections -o json", 40},
	{"connections.txt", "connections", 0},
	{"timeline.txt", "connections --timeline", 0},
	{"check.json", "check -o json", 40},
	{"check.txt", "check", 60},
	{"stats.json", "stats -o json", 0},
	{"stats.txt", "stats", 0},
	{"files.json", "files -o json", 20},
	{"files.txt", "files", 60},
	{"packets.json", "packets -o json", 25},
	{"packets.txt", "packets", 100},
	{"fields.json", "packets -V -o json", 8},
	{"fields.txt", "packets -V", 250},
}

// In captures with more packets than fieldsAll, the fields of only the first
// fieldsSome are drawn: all of them would take most of the test's time.
const (
	fieldsAll  = 3000
	fieldsSome = "500"
)

// variantViews are the views that are compared for the variants of a capture:
// the other views draw the same records.
var variantViews = []string{"transactions.json", "connections.json", "check.json", "packets.json", "check.txt"}

// TestGolden compares the views of goldenCaptures with their golden files.
func TestGolden(t *testing.T) {
	paths := map[string]string{}
	for _, path := range allCaptures(t) {
		paths[captureName(path)] = path
	}
	for _, name := range goldenCaptures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := paths[name]
			got := &txtar.Archive{Comment: []byte("Views of " + filepath.Base(path) + ".\n")}
			for view, shown := range showViews(t, path, testkit.Variants[0]) {
				got.Files = append(got.Files, txtar.File{Name: goldenViews[view].name, Data: firstLines(shown, goldenViews[view].lines)})
			}
			file := filepath.Join(goldenFolder, name+".txtar")
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, want, txtar.Parse(txtar.Format(got)))
			if t.Failed() {
				t.Log("If the change is intended, make golden accepts it; scripts/same OLD NEW shows the difference between two builds.")
			}
		})
	}
	stored, err := filepath.Glob(goldenFolder + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stored {
		if !slices.Contains(goldenCaptures, strings.TrimSuffix(filepath.Base(file), ".txtar")) {
			t.Errorf("%s belongs to no capture of goldenCaptures", file)
		}
	}
}

// TestDigests compares the views of every other capture, and of the variants of
// all, with digestFile. The variants of long captures are compared only with
// -all.
func TestDigests(t *testing.T) {
	stored := readDigests(t)
	var mutex sync.Mutex
	shown := map[string]string{}
	compared := map[string]bool{} // captures and variants
	names := map[string]bool{}
	t.Run("captures", func(t *testing.T) {
		for _, path := range allCaptures(t) {
			name := captureName(path)
			if names[name] {
				t.Fatalf("two captures have the name %s", name)
			}
			names[name] = true
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				long := len(testkit.Short(t, []string{path})) == 0
				for i, v := range testkit.Variants {
					if i == 0 && slices.Contains(goldenCaptures, name) || i > 0 && long && !*update {
						continue
					}
					digests := map[string]string{}
					for view, output := range showViews(t, path, v) {
						digests[name+" "+v.Name+"/"+goldenViews[view].name] = fmt.Sprintf("%.6x", sha256.Sum256(output))
					}
					mutex.Lock()
					maps.Copy(shown, digests)
					compared[name+" "+v.Name] = true
					mutex.Unlock()
				}
			})
		}
	})
	for key, want := range stored {
		capture, _, _ := strings.Cut(key, " ")
		variant, view, _ := strings.Cut(key, "/")
		switch got, known := shown[key]; {
		case compared[variant] && !known, !names[capture]:
			if *update {
				delete(stored, key)
			} else {
				t.Errorf("%s is only in %s", key, digestFile)
			}
		case known && got != want && !*update:
			t.Errorf("%s: %s shows something else (digest %s, want %s)", variant, view, got, want)
		}
	}
	for key := range shown {
		if _, known := stored[key]; !known && !*update {
			t.Errorf("%s is not in %s", key, digestFile)
		}
	}
	if *update {
		maps.Copy(stored, shown)
		var text strings.Builder
		for _, key := range slices.Sorted(maps.Keys(stored)) {
			text.WriteString(key + " " + stored[key] + "\n")
		}
		if err := os.WriteFile(digestFile, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if t.Failed() {
		t.Log("scripts/same OLD NEW shows the difference, with builds from before and after the change. If it is intended, make golden accepts it.")
	}
}

// readDigests returns the lines of digestFile: capture, variant and view, and
// digest. With -update the file may be missing.
func readDigests(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(digestFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for line := range strings.Lines(string(text)) {
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			t.Fatalf("%s: %q has no digest", digestFile, line)
		}
		digests[line[:at]] = strings.TrimSpace(line[at:])
	}
	return digests
}

// captureName returns the name of a capture in goldenFolder and digestFile.
func captureName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	if filepath.Base(filepath.Dir(path)) == "samples" { // Some samples have the name of a capture.
		name = "sample-" + name
	}
	return name
}

// showViews yields the index in goldenViews and the output of each view of a
// variant of a capture.
func showViews(t *testing.T, path string, v testkit.Variant) iter.Seq2[int, []byte] {
	t.Helper()
	file := filepath.Join(t.TempDir(), "variant.pcap")
	packets := v.Write(t, path, file)
	if v.Name == "whole" {
		file = path // in the capture's own format, compressed or damaged
	}
	return func(yield func(int, []byte) bool) {
		for i, view := range goldenViews {
			if v.Name != "whole" && !slices.Contains(variantViews, view.name) {
				continue
			}
			shown, status := showGolden(t, view.name, strings.Fields(view.args), file, packets)
			if strings.HasSuffix(view.name, ".txt") {
				for _, sentence := range unproven(string(shown)) {
					t.Errorf("%s: no proof for %q", view.name, sentence)
				}
			}
			if status != command.ExitOK {
				shown = fmt.Appendf(shown, "exit status %d\n", status)
			}
			if !yield(i, shown) {
				return
			}
		}
	}
}

// firstLines returns the first lines of shown and the checksum of the others.
func firstLines(shown []byte, lines int) []byte {
	if lines == 0 {
		return shown
	}
	end := 0
	for range lines {
		n := bytes.IndexByte(shown[end:], '\n')
		if n < 0 {
			return shown
		}
		end += n + 1
	}
	rest := shown[end:]
	if len(rest) == 0 {
		return shown
	}
	return fmt.Appendf(slices.Clip(shown[:end]), "... and %d lines with SHA-256 %x\n", bytes.Count(rest, []byte("\n")), sha256.Sum256(rest))
}

// compareGolden reports the first differences of each section.
func compareGolden(t *testing.T, want, got *txtar.Archive) {
	t.Helper()
	old := map[string][]byte{}
	for _, f := range want.Files {
		old[f.Name] = f.Data
	}
	for _, f := range got.Files {
		before, known := old[f.Name]
		delete(old, f.Name)
		if !known {
			t.Errorf("%s is not in the golden file", f.Name)
		} else if !bytes.Equal(before, f.Data) {
			t.Errorf("%s differs:\n%s", f.Name, firstDifferences(before, f.Data))
		}
	}
	for name := range old {
		t.Errorf("%s is only in the golden file", name)
	}
}

// firstDifferences returns the first lines of the difference between two texts.
func firstDifferences(before, after []byte) string {
	const lines, width = 40, 300
	var out strings.Builder
	shown := 0
	for line := range strings.Lines(string(diff.Diff("before", before, "after", after))) {
		if shown++; shown > lines {
			out.WriteString("...\n")
			break
		}
		if line = strings.TrimSuffix(line, "\n"); len(line) > width {
			line = line[:width] + "..."
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// showGolden runs one view. If there is no transaction to draw a ladder of, it
// returns nothing.
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
			return nil, command.ExitOK
		}
		args = append(args, record.XID)
	case "fields.json", "fields.txt":
		if packets > fieldsAll {
			args = append(args, "-c", fieldsSome)
		}
	}
	shown, status = runGolden(append(args, file)...)
	// Commands that overview suggests name the file; where the test runs must not
	// matter.
	shown = bytes.ReplaceAll(shown, []byte(file), []byte("CAPTURE"))
	return shown, status
}

func runGolden(args ...string) (shown []byte, status int) {
	var out bytes.Buffer
	status = run(context.Background(), args, &out, io.Discard)
	return out.Bytes(), status
}
