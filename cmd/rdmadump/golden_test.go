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
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the golden files and the printed output in the pages")

// goldenFolder has one file per capture: a txtar archive, compressed with zstd,
// with a section for each variant and view. CONTRIBUTING.md says how git shows
// the differences.
const goldenFolder = "testdata/golden"

// goldenViews are command lines, without the capture. Listings of packets keep
// only their first lines as text, because all of them would be 400 MB; the rest
// is there as a checksum. A lines of 0 keeps everything.
var goldenViews = []struct {
	name, args string
	lines      int
}{
	{"transactions.json", "transactions -o json", 0},
	{"transactions.txt", "transactions", 0},
	{"ladder.txt", "transactions --xid", 0}, // of the slowest
	{"overview.txt", "overview", 0},
	{"connections.json", "connections -o json", 0},
	{"connections.txt", "connections", 0},
	{"timeline.txt", "connections --timeline", 0},
	{"check.json", "check -o json", 0},
	{"check.txt", "check", 0},
	{"stats.json", "stats -o json", 0},
	{"stats.txt", "stats", 0},
	{"files.json", "files -o json", 0},
	{"files.txt", "files", 0},
	{"packets.json", "packets -o json", 300},
	{"packets.txt", "packets", 300},
	{"fields.json", "packets -V -o json", 60},
	{"fields.txt", "packets -V", 4000},
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

// TestGolden compares every view of every capture, as recorded and in its
// variants, with the golden files. The variants of long captures are compared
// only with -all.
func TestGolden(t *testing.T) {
	var paths []string
	for _, pattern := range []string{"../../testdata/captures/*.zst", "../../samples/*.pcap*"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no captures %s: %v", pattern, err)
		}
		paths = append(paths, found...)
	}
	names := map[string]bool{}
	for _, path := range paths {
		name := goldenName(path)
		if names[name] {
			t.Fatalf("two captures have the golden file %s", name)
		}
		names[name] = true
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			want := readGolden(t, name)
			variants := testkit.Variants
			if !*update && len(testkit.Short(t, []string{path})) == 0 {
				variants = variants[:1]
				want.Files = slices.DeleteFunc(want.Files, func(f txtar.File) bool { return !strings.HasPrefix(f.Name, variants[0].Name+"/") })
			}
			got := txtar.Parse(txtar.Format(goldenArchive(t, path, variants)))
			if *update {
				writeGolden(t, name, got)
				return
			}
			compareGolden(t, want, got)
			if t.Failed() {
				t.Log("If the change is intended, make golden accepts it; make golden-diff shows all of it.")
			}
		})
	}
	stored, err := os.ReadDir(goldenFolder)
	if err != nil && !*update {
		t.Fatal(err)
	}
	for _, file := range stored {
		if !names[file.Name()] {
			t.Errorf("%s/%s belongs to no capture", goldenFolder, file.Name())
		}
	}
}

// goldenName returns the name of a capture's golden file.
func goldenName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	if filepath.Base(filepath.Dir(path)) == "samples" { // Some samples have the name of a capture.
		name = "sample-" + name
	}
	return name + ".txtar.zst"
}

// goldenArchive runs every view of variants of a capture.
func goldenArchive(t *testing.T, path string, variants []testkit.Variant) *txtar.Archive {
	t.Helper()
	archive := &txtar.Archive{Comment: []byte("Every view of " + filepath.Base(path) + " and of its variants.\n")}
	for _, v := range variants {
		file := filepath.Join(t.TempDir(), "variant.pcap")
		packets := v.Write(t, path, file)
		if v.Name == "whole" {
			file = path // in the capture's own format, compressed or damaged
		}
		for _, view := range goldenViews {
			if v.Name != "whole" && !slices.Contains(variantViews, view.name) {
				continue
			}
			shown, status := showGolden(t, view.name, strings.Fields(view.args), file, packets)
			shown = firstLines(shown, view.lines)
			if status != command.ExitOK {
				shown = fmt.Appendf(shown, "exit status %d\n", status)
			}
			archive.Files = append(archive.Files, txtar.File{Name: v.Name + "/" + view.name, Data: shown})
		}
	}
	return archive
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

// readGolden returns the archive of a capture. With -update it may be missing.
func readGolden(t *testing.T, name string) *txtar.Archive {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(goldenFolder, name))
	if *update {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	text, err := decoder.DecodeAll(packed, nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return txtar.Parse(text)
}

// writeGolden writes the archive of a capture, unless the stored one already
// says the same.
func writeGolden(t *testing.T, name string, archive *txtar.Archive) {
	t.Helper()
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	if err := os.MkdirAll(goldenFolder, 0o755); err != nil {
		t.Fatal(err)
	}
	packed := encoder.EncodeAll(txtar.Format(archive), nil)
	if err := os.WriteFile(filepath.Join(goldenFolder, name), packed, 0o644); err != nil {
		t.Fatal(err)
	}
}
