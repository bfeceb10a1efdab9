package capture_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
)

// TestSeries checks which files are a ring, and which of its files are missing.
func TestSeries(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string // in the order of their times; a name with ~ overlaps with the file before
		want  string
	}{
		{"dumpcap", []string{"a/r_00001_20261121050951.pcap", "a/r_00002_20261121050958.pcap", "a/r_00003_20261121050959.pcap"}, "[0 1 2] missing []"},
		{"tcpdump -C", []string{"r.pcap", "r.pcap1", "r.pcap2"}, "[0 1 2] missing []"},
		{"a ring that started again", []string{"r3", "r4", "r0", "r1"}, "[0 1 2 3] missing []"},
		{"a missing file", []string{"r_00003_5.pcap", "r_00004_6.pcap", "r_00006_9.pcap", "r_00007_9.pcap"}, "[0 1 2 3] missing [{1 2 1}]"},
		{"many missing files", []string{"r1", "r2", "r3", "r13"}, "[0 1 2 3] missing [{2 3 9}]"},
		{"names of times", []string{"r-1000.pcap", "r-1060.pcap", "r-1120.pcap"}, "[0 1 2] missing []"},
		{"times at the end of an hour", []string{"r-0958", "r-0959", "r-1000", "r-1001"}, "[0 1 2 3] missing []"},
		{"times at the end of a month", []string{"r-20261129", "r-20261130", "r-20261201"}, "[0 1 2] missing []"},
		{"many missing files, and a number that ends as a month begins", []string{"r_00030", "r_00031", "r_00101", "r_00102"}, "[0 1 2 3] missing [{1 2 69}]"},
		{"a missing file before an hour", []string{"r-0957", "r-0958", "r-1000", "r-1001"}, "[0 1 2 3] missing [{1 2 1}]"},
		{"numbers that may be times", []string{"r-0030", "r-0031", "r-0101", "r-0102"}, "[0 1 2 3] missing [{1 2 29}]"},
		{"numbers that are no times", []string{"r-0058", "r-0059", "r-0060", "r-0100"}, "[0 1 2 3] missing [{2 3 39}]"},
		{"a ring that begins at another number", []string{"r_00412", "r_00413", "r_00415"}, "[0 1 2] missing [{1 2 1}]"},
		{"times at the end of a year", []string{"r-20261231235958", "r-20261231235959", "r-20270101000000"}, "[0 1 2] missing []"},
		{"times at the end of a February", []string{"r-20270227", "r-20270228", "r-20270301"}, "[0 1 2] missing []"},
		{"a missing day", []string{"r-20270227", "r-20270228", "r-20270302"}, "[0 1 2] missing [{1 2 1}]"},
		{"numbers after times", []string{"r-0520", "r-05201", "r-05202", "r-0521", "r-05211", "r-05212"}, "[0 1 2 3 4 5] missing []"},
		{"times in another order than numbers", []string{"r1", "r2", "r3", "r5", "r4", "r6", "r7", "r8", "r11"}, "[0 1 2 3 4 5 6 7 8] missing [{7 8 2}]"},
		{"two files with distant numbers", []string{"r1", "r9"}, "[0 1] missing []"},
		{"older files are compressed", []string{"r1.gz", "r2.zst", "r3", "r4", "r6"}, "[0 1 2 3 4] missing [{3 4 1}]"},
		{"points with numbers", []string{"client1.pcap", "client2.pcap~"}, ""},
		{"other names", []string{"client.pcap", "server.pcap"}, ""},
		{"two folders", []string{"a/r1", "b/r2"}, ""},
		{"two rings", []string{"c1", "s1~", "c2", "s2~", "c3", "s3~"}, "[0 2 4] missing [][1 3 5] missing []"},
	} {
		spans := map[string]capture.Span{}
		var paths []string
		for i, name := range c.files {
			s := capture.Span{First: int64(i) * 10e9, Last: int64(i)*10e9 + 9e9}
			if n := len(name) - 1; name[n] == '~' {
				name = name[:n]
				s.First -= 10e9
				s.Last -= 9e9
			}
			paths = append(paths, name)
			spans[name] = s
		}
		got := ""
		for _, s := range capture.SeriesOf(paths, func(path string) (capture.Span, bool) { return spans[path], true }) {
			got += fmt.Sprint(s.Files, " missing ", s.Missing)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		slices.Reverse(paths)
		reversed := capture.SeriesOf(paths, func(path string) (capture.Span, bool) { return spans[path], true })
		if (got == "") != (len(reversed) == 0) {
			t.Errorf("%s: in another order %v, want %s", c.name, reversed, got)
		}
	}
	if list := capture.SeriesOf([]string{"r1", "r2"}, func(string) (capture.Span, bool) { return capture.Span{}, false }); list != nil {
		t.Errorf("%v of files whose times are not known, want none", list)
	}
}

// TestSeriesWithEmptyFiles: files without frames belong to a series, and none of them is missing.
func TestSeriesWithEmptyFiles(t *testing.T) {
	dir := t.TempDir()
	full := pcap(binary.LittleEndian, 0xa1b23c4d, 1, sample...)
	empty := pcap(binary.LittleEndian, 0xa1b23c4d, 1)
	for _, c := range []struct {
		name  string
		files string // for each number from 0: f is a file with frames, e an empty one, z a compressed empty one, - a missing one, x no capture
		want  string
	}{
		{"none is missing", "fefeef", "[0 2 5 1 3 4] missing []"},
		{"one is missing", "f-fefeeff", "[0 1 3 6 7 2 4 5] missing [{0 1 1}]"},
		{"one is missing next to empty ones", "ffe-eff", "[0 1 4 5 2 3] missing [{2 3 1}]"},
		{"compressed", "fz-ff", "[0 2 3 1] missing [{1 2 1}]"},
		{"empty ones at both ends", "efffe", "[1 2 3 0 4] missing []"},
		{"only empty ones", "eee", ""},
		{"with something else", "fexf", ""},
	} {
		var paths []string
		spans := map[string]capture.Span{}
		for i, kind := range c.files {
			if kind == '-' {
				continue
			}
			path := filepath.Join(dir, fmt.Sprintf("cap_%05d_%d.pcap", i, 20261121052009+int64(i)/3))
			data := map[rune][]byte{'f': full, 'e': empty, 'z': zstandard(empty), 'x': []byte("hello, world, this is no capture")}[kind]
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if paths = append(paths, path); kind == 'f' {
				spans[path] = capture.Span{First: int64(i) * 10e9, Last: int64(i)*10e9 + 9e9}
			}
		}
		got := ""
		for _, s := range capture.SeriesOf(paths, func(path string) (capture.Span, bool) { s, known := spans[path]; return s, known }) {
			got += fmt.Sprint(s.Files, " missing ", s.Missing)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestOneSeries checks which compressed files are taken for the files of one program. Not all are read to see when they end: files
// of other hosts, whose names differ in their numbers, too, are recognized all the same.
func TestOneSeries(t *testing.T) {
	at := func(first, last int64) []byte {
		return zstandard(pcap(binary.LittleEndian, 0xa1b23c4d, 1, frame{uint32(first), 0, "first", 60}, frame{uint32(last), 0, "last", 60}))
	}
	for _, c := range []struct {
		name string
		file func(i int) (name string, first, last int64) // of 40 files
		want bool
	}{
		{"a ring", func(i int) (string, int64, int64) {
			return fmt.Sprintf("r_%05d.pcap.zst", i), int64(i) * 10, int64(i)*10 + 10
		}, true},
		{"a ring that started again", func(i int) (string, int64, int64) {
			return fmt.Sprintf("r.pcap%d.zst", (i+17)%40), int64(i) * 10, int64(i)*10 + 9
		}, true},
		{"hosts that were captured at the same time", func(i int) (string, int64, int64) { return fmt.Sprintf("host%d.pcap.zst", i), int64(i), 100 }, false},
		{"two hosts", func(i int) (string, int64, int64) {
			return fmt.Sprintf("host%d_%05d.pcap.zst", i%2, i/2), int64(i / 2 * 10), int64(i/2*10) + 9
		}, false},
		{"two hosts with one common time", func(i int) (string, int64, int64) {
			if i < 22 {
				return fmt.Sprintf("host1_%05d.pcap.zst", i), int64(i) * 10, int64(i)*10 + 9
			}
			return fmt.Sprintf("host2_%05d.pcap.zst", i-22), int64(i)*10 - 5, int64(i)*10 + 4
		}, false},
	} {
		dir := t.TempDir()
		var paths []string
		for i := range 40 {
			name, first, last := c.file(i)
			paths = append(paths, filepath.Join(dir, name))
			if err := os.WriteFile(paths[i], at(1e9+first, 1e9+last), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		slices.Reverse(paths)
		m, err := capture.OpenAll(paths)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.OneSeries(t.Context()); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		m.Close()
	}
}

// TestIn checks that a folder stands for the captures in it, whatever their names are.
func TestIn(t *testing.T) {
	dir := t.TempDir()
	raw := pcap(binary.LittleEndian, 0xa1b23c4d, 1, sample...)
	for name, data := range map[string][]byte{
		"b.pcap": raw, "a.cap1": raw, "deep/c.zst": zstandard(raw), "deep/log.zst": zstandard([]byte("hello, world")), "notes.txt": []byte("hello"),
		"x.json": []byte("{}\n{}\n"), "empty": nil, ".hidden.pcap": raw, ".git/d.pcap": raw,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	paths, err := capture.In(dir)
	want := []string{filepath.Join(dir, "a.cap1"), filepath.Join(dir, "b.pcap"), filepath.Join(dir, "deep", "c.zst")}
	if err != nil || !slices.Equal(paths, want) {
		t.Errorf("%q, error %v; want %q", paths, err, want)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	if paths, err := capture.In(link); err != nil || len(paths) != 3 || paths[0] != filepath.Join(link, "a.cap1") {
		t.Errorf("%q, error %v of a link to the folder", paths, err)
	}
	if paths, err := capture.In(filepath.Join(dir, ".git", "..", "none")); err == nil {
		t.Errorf("%q of a folder that does not exist, want an error", paths)
	}
	if paths, err := capture.In(t.TempDir()); !errors.Is(err, capture.ErrFormat) {
		t.Errorf("%q, error %v of an empty folder, want an error", paths, err)
	}
}

// TestInUnreadable checks that a folder below that cannot be read is named, and that the other captures are returned.
func TestInUnreadable(t *testing.T) {
	dir := t.TempDir()
	raw := pcap(binary.LittleEndian, 0xa1b23c4d, 1, sample...)
	for _, name := range []string{"a.pcap", "closed/b.pcap", "open/c.pcap"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	closed := filepath.Join(dir, "closed")
	walk := func(root string, visit fs.WalkDirFunc) error { // As the superuser, tests can read all folders.
		return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if strings.TrimSuffix(path, "/") == closed {
				return visit(path, e, &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission})
			}
			return visit(path, e, err)
		})
	}
	paths, err := capture.InWalk(dir, walk)
	if want := []string{filepath.Join(dir, "a.pcap"), filepath.Join(dir, "open", "c.pcap")}; !slices.Equal(paths, want) {
		t.Errorf("%q, want %q", paths, want)
	}
	if want := closed + ": the folder cannot be read: permission denied"; err == nil || err.Error() != want || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error %v, want %s", err, want)
	}
	if paths, err := capture.InWalk(closed, walk); paths != nil || err == nil {
		t.Errorf("%q, error %v of a folder that cannot be read", paths, err)
	}
}
