package capture_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

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

// TestManyOpen checks that not all files whose times overlap are open at once, in any format, and that frames come in the same
// order and with the same bytes as if they were.
func TestManyOpen(t *testing.T) {
	const files, each = 160, 400
	dir, le := t.TempDir(), binary.LittleEndian
	var paths, want []string
	for i := range files {
		var frames []frame
		for n := range each {
			data := fmt.Sprintf("%d/%d %s", i, n, strings.Repeat("x", (i*n)%50*20))
			frames = append(frames, frame{uint32(n), uint32(i), data, len(data)})
		}
		path, raw := filepath.Join(dir, fmt.Sprintf("%03d.pcap", i)), pcap(le, 0xa1b23c4d, 1, frames...)
		if i%3 == 1 {
			raw = zstandard(raw)
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	for n := range each {
		for i := range files {
			want = append(want, fmt.Sprintf("%d/%d %s", i, n, strings.Repeat("x", (i*n)%50*20)))
		}
	}
	before := runtime.NumGoroutine()
	m, err := capture.OpenAll(paths)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	n, most := 0, 0
	for f, err := range capture.All(t.Context(), m) {
		if err != nil {
			t.Fatal(err)
		}
		if n < len(want) && string(f.Data) != want[n] {
			t.Fatalf("frame %d is %q, want %q", n+1, f.Data, want[n])
		}
		if n++; n%64 == 0 {
			most = max(most, runtime.NumGoroutine()-before)
		}
	}
	if n != len(want) || most > 110 { // The goroutines of closed files end soon.
		t.Errorf("%d frames, want %d; at most %d files were being read", n, len(want), most)
	}
}

// TestManyLongFrames checks that frames that are longer than the small blocks of many files are returned unchanged, of plain and
// compressed pcap and pcapng files, with released memory overwritten.
func TestManyLongFrames(t *testing.T) {
	defer capture.PoisonReleased()()
	const n = 40
	sizes := []int{60, 9000, capture.MaxFrame, 1, 40000, capture.MaxFrame - 1, 70000, 16384, 65536, 81920, 200000}
	dir := t.TempDir()
	var paths []string
	for i, raw := range [][]byte{pcapOf(n, sizes...), pcapngOf(n, sizes...), pcapOf(n, 60), pcapngOf(n, 1500), pcapOf(n, capture.MaxFrame), zstandard(pcapngOf(n, sizes...))} {
		paths = append(paths, filepath.Join(dir, fmt.Sprint(i)))
		if err := os.WriteFile(paths[i], raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := capture.OpenAll(paths)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	want := [][]int{sizes, sizes, {60}, {1500}, {capture.MaxFrame}, sizes}
	var read [6]int
	for f, err := range capture.All(t.Context(), m) {
		if err != nil {
			t.Fatal(err)
		}
		at := read[f.Input]
		size := want[f.Input][at%len(want[f.Input])]
		if !bytes.Equal(f.Data, pattern(at, size)) || f.Time != int64(at)*1e9 {
			t.Fatalf("frame %d of file %d has %d bytes and time %d, want %d bytes and time %d", at, f.Input, len(f.Data), f.Time, size, int64(at)*1e9)
		}
		read[f.Input]++
	}
	if read != [6]int{n, n, n, n, n, n} {
		t.Errorf("%v frames were read, want %d of each file", read, n)
	}
}

// TestManyOverlapping checks that files that are captured at the same time are read at most a few times each, although not all are
// open at once. Their number says nothing about time: one file more than are open at once means that each is opened again.
func TestManyOverlapping(t *testing.T) {
	const perFile = 240
	dir, le := t.TempDir(), binary.LittleEndian
	var paths []string
	var size int64
	for i := range 400 {
		var frames []frame
		for n := range perFile {
			frames = append(frames, frame{uint32(n), uint32(i), strings.Repeat("x", 500), 500})
		}
		raw := pcap(le, 0xa1b23c4d, 1, frames...)
		size += int64(len(raw))
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("%03d.pcap", i)))
		if err := os.WriteFile(paths[i], raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := bytesRead(t)
	m, err := capture.OpenAll(paths)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	got := 0
	for f, err := range capture.All(t.Context(), m) {
		if err != nil {
			t.Fatal(err)
		}
		if want := int64(got/len(paths))*1e9 + int64(got%len(paths)); f.Time != want {
			t.Fatalf("frame %d has time %d, want %d", got, f.Time, want)
		}
		got++
	}
	if got != perFile*len(paths) {
		t.Errorf("%d frames of %d files, want %d", got, len(paths), perFile*len(paths))
	}
	if read := bytesRead(t) - before; read < size || read > 4*size {
		t.Errorf("%d bytes were read of files of %d bytes, want at most 4 times as many", read, size)
	}
}

// bytesRead returns the number of bytes that this process has read so far, as Linux counts them.
func bytesRead(t *testing.T) int64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/io")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the system does not count what a process reads")
	}
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	if _, err := fmt.Sscanf(string(raw), "rchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSpan checks that the span of a file is that of its first and last frame, and that nothing is known about damaged and
// compressed files.
func TestSpan(t *testing.T) {
	le, be := binary.LittleEndian, binary.BigEndian
	var long []frame
	for i := range 5000 {
		data := strings.Repeat("\x00\x01", i%100+1)
		long = append(long, frame{uint32(i), 7, data, len(data)})
	}
	for _, c := range []struct {
		name        string
		raw         []byte
		first, last int64
		known       bool
	}{
		{"one frame", pcap(le, 0xa1b2c3d4, 1, frame{5, 6, "abc", 3}), 5e9 + 6000, 5e9 + 6000, true},
		{"big-endian", pcap(be, 0xa1b23c4d, 1, frame{5, 6, "abc", 3}, frame{7, 8, "d", 9}), 5e9 + 6, 7e9 + 8, true},
		{"many frames", pcap(le, 0xa1b23c4d, 1, long...), 7, 4999e9 + 7, true},
		{"no frame", pcap(le, 0xa1b23c4d, 1), 0, 0, false},
		{"truncated", pcap(le, 0xa1b23c4d, 1, long...)[:3000], 0, 0, false},
		{"damaged", append(pcap(le, 0xa1b23c4d, 1, long...), 1, 2, 3), 0, 0, false},
		{"compressed", zstandard(pcap(le, 0xa1b23c4d, 1, long...)), 0, 0, false},
		{"text", []byte("hello, this is not a capture at all"), 0, 0, false},
	} {
		path := filepath.Join(t.TempDir(), "capture")
		if err := os.WriteFile(path, c.raw, 0o600); err != nil {
			t.Fatal(err)
		}
		s, known := capture.SpanOf(path)
		if known != c.known || known && (s.First != c.first || s.Last != c.last) {
			t.Errorf("%s: %v, %v; want %d to %d, %v", c.name, s, known, c.first, c.last, c.known)
		}
	}
	pcapng := "../testdata/captures/rocev2-nconnect41.pcapng.zst"
	plain := filepath.Join(t.TempDir(), "plain.pcapng")
	f, err := capture.Open(pcapng)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	first, last := int64(0), int64(0)
	for f, err := range capture.All(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		if first == 0 {
			first = f.Time
		}
		last = f.Time
	}
	packed, err := os.ReadFile(pcapng)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := z.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plain, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, known := capture.SpanOf(plain); !known || s.First != first || s.Last != last {
		t.Errorf("pcapng: %v, %v; want %d to %d", s, known, first, last)
	}
}
