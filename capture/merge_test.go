package capture_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
)

// TestSameFileTwice checks that a file that is named twice is read once, even under different
// names, and that Repeated returns it.
func TestSameFileTwice(t *testing.T) {
	dir := t.TempDir()
	one, other := filepath.Join(dir, "one.pcap"), filepath.Join(dir, "other.pcap")
	for path, n := range map[string]int{one: 3, other: 2} {
		if err := os.WriteFile(path, pcapOf(n, 60), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link.pcap")
	if err := os.Symlink("one.pcap", link); err != nil {
		t.Fatal(err)
	}
	m, err := capture.OpenAll([]string{one, other, filepath.Join(dir, ".", "one.pcap"), link})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	lines, err := list(m)
	if want := []string{one, link}; len(lines) != 5 || err != nil || !slices.Equal(m.Repeated(), want) {
		t.Errorf("%d frames, error %v, repeated %q, want %q", len(lines), err, m.Repeated(), want)
	}
}

// TestManyFiles checks that, of a ring of many files, only those whose frames are due are open.
func TestManyFiles(t *testing.T) {
	const files, each = 120, 40
	dir, le := t.TempDir(), binary.LittleEndian
	var paths []string
	for i := range files {
		raw := pcap(le, 0xa1b23c4d, 1)
		for n := range each {
			at := (i*each+n)*10 + n%2*200 // times overlap with those of the next file
			raw = append(raw, pcap(le, 0xa1b23c4d, 1, frame{uint32(at), 0, fmt.Sprint(i), 1})[24:]...)
		}
		raw = append(raw, make([]byte, 9)[:i%2*9]...) // every other file is damaged at its end
		path := filepath.Join(dir, fmt.Sprintf("%03d.pcap.zst", files-i))
		if err := os.WriteFile(path, zstandard(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	before := runtime.NumGoroutine()
	m, err := capture.OpenAll(append(paths, filepath.Join(dir, "missing")))
	if m == nil || err == nil || strings.Count(err.Error(), "\n") != 0 {
		t.Fatal(err)
	}
	defer m.Close()
	_, total := m.Progress()
	var b capture.Batch
	n, most := int64(0), 0
	for err = m.ReadBatch(context.Background(), &b); err == nil; err = m.ReadBatch(context.Background(), &b) {
		for i := range b.Frames {
			if n++; b.Frames[i].Number != n {
				t.Fatalf("frame %d has number %d", n, b.Frames[i].Number)
			}
		}
		most = max(most, runtime.NumGoroutine()-before)
	}
	if n != files*each || strings.Count(err.Error(), "reading failed at byte") != files/2 {
		t.Errorf("%d frames, want %d; error %v", n, files*each, err)
	}
	if read, again := m.Progress(); read != total || again != total || total == 0 {
		t.Errorf("progress %d of %d, %d at first", read, again, total)
	}
	if most > 20 {
		t.Errorf("%d files were being read at once", most)
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}
