package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// ring writes the frames of a capture as a ring of files with n frames each, and returns their paths.
func ring(t *testing.T, capture, name string, n int, packed bool) (paths []string) {
	t.Helper()
	frames, _ := testkit.Frames(t, "../../testdata/captures/"+capture)
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for part := range slices.Chunk(frames, n) {
		path := filepath.Join(dir, fmt.Sprintf("%s_%05d.pcapng", name, len(paths)))
		raw := testkit.Pcapng(part, 9)
		if packed {
			raw = z.EncodeAll(raw, nil)
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// TestRings: a capture has the same records as one file, as a ring of plain or compressed files in any order, and as a folder; and so
// have the captures of both ends. The lossy captures have packets that were retransmitted in another file, which is no reason to take
// two files for two capture points.
func TestRings(t *testing.T) {
	records := func(ends bool, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if ends { // The clock of each file is compared on its own, so that times differ by less than a microsecond.
			args = append([]string{"-e", "xid", "-e", "status", "-e", "call.delivery", "-e", "reply.delivery", "-e", "operation", "-e", "call.form"}, args...)
		} else {
			args = append([]string{"-o", "json"}, args...)
		}
		if code := run(t.Context(), append([]string{"-q"}, args...), &out, &errs); code != command.ExitOK {
			t.Fatalf("%q: exit status %d: %s", args, code, &errs)
		}
		// The names of points are those of their files, and packets of later files have other numbers.
		pattern := `,?"[a-z_]*point":"[^"]*"|,"summary".*|"(packet|[a-z_]+_packet)":\d+`
		return regexp.MustCompile(pattern).ReplaceAllString(out.String(), "")
	}
	for _, c := range []struct {
		captures []string
		each     int
	}{
		{[]string{"rocev2-loss42.pcap.zst"}, 150},
		{[]string{"rocev2-callback41.pcap.zst"}, 7},
		{[]string{"lab-iwarploss41.pcap.zst"}, 100},
		{[]string{"ends-stormall42-client.pcap.zst", "ends-stormall42-server.pcap.zst"}, 700},
	} {
		var whole []string
		for _, name := range c.captures {
			whole = append(whole, "../../testdata/captures/"+name)
		}
		want := records(len(whole) > 1, whole...)
		if strings.Count(want, "\n") < 50 {
			t.Fatalf("%q have only %d records", c.captures, strings.Count(want, "\n"))
		}
		for _, packed := range []bool{false, true} {
			var files, folders []string
			for i, name := range c.captures {
				list := ring(t, name, []string{"end-a", "end-b"}[i], c.each, packed)
				files = append(files, list...)
				folders = append(folders, filepath.Dir(list[0]))
			}
			if len(c.captures) == 1 {
				slices.Reverse(files)
			}
			for _, args := range [][]string{files, folders} {
				if got := records(len(whole) > 1, args...); got != want {
					a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
					for i := range a {
						other := b[min(i, len(b)-1)]
						if a[i] == other {
							continue
						}
						at := 0
						for at < min(len(a[i]), len(other)) && a[i][at] == other[at] {
							at++
						}
						t.Errorf("%q in %d files (compressed: %v): record %d has ...%.200s, want ...%.200s", c.captures, len(files), packed, i, other[max(at-60, 0):], a[i][max(at-60, 0):])
						break
					}
				}
			}
		}
	}
}

// TestNamesWithoutOrder: a capture that was divided into files has the same records as one file, whatever the names are. Packets that were
// retransmitted are in two files then, which is no reason to take these for two capture points, or to leave one out.
func TestNamesWithoutOrder(t *testing.T) {
	for name, each := range map[string]int{"rocev2-loss42.pcap.zst": 90, "lab-loss3.pcap.zst": 145, "rocev2-storm41.pcap.zst": 40} {
		records := func(args ...string) string {
			var out, errs bytes.Buffer
			if code := run(t.Context(), append([]string{"-q", "-o", "json"}, args...), &out, &errs); code != command.ExitOK {
				t.Fatalf("%q: exit status %d: %s", args, code, &errs)
			}
			return out.String()
		}
		want := records("../../testdata/captures/" + name)
		folder := ""
		for i, path := range ring(t, name, "part", each, false) {
			folder = filepath.Dir(path)
			letters := fmt.Sprintf("%c%c%c.pcapng", 'a'+i*7%26, 'a'+i*11%26, 'a'+i/26%26)
			if err := os.Rename(path, filepath.Join(folder, letters)); err != nil {
				t.Fatal(err)
			}
		}
		got := records(folder)
		if want, got = want[:strings.LastIndex(want, `{"type":"summary"`)], got[:strings.LastIndex(got, `{"type":"summary"`)]; got != want || len(want) < 10000 {
			t.Errorf("%s: the records of the files (%d bytes) are not those of the capture (%d bytes)", name, len(got), len(want))
		}
	}
}

// TestMissingFile: a file that is missing in a ring is named first.
func TestMissingFile(t *testing.T) {
	for name, packed := range map[string]bool{"plain": false, "compressed": true} {
		t.Run(name, func(t *testing.T) {
			paths := ring(t, "rocev2-callback41.pcap.zst", "nfs", 60, packed)
			if len(paths) < 4 {
				t.Fatalf("%d files, want at least 4", len(paths))
			}
			var out, errs bytes.Buffer
			if run(t.Context(), []string{"overview", "-q", filepath.Dir(paths[0])}, &out, &errs); strings.Contains(out.String(), "missing") {
				t.Errorf("a whole ring lacks files: %s", &out)
			}
			os.Remove(paths[2])
			out.Reset()
			if run(t.Context(), []string{"overview", "-q", filepath.Dir(paths[0])}, &out, &errs); !strings.Contains(out.String(), "\n1 WARN   capture: lacks 1 file of the series\n") {
				t.Errorf("the missing file is not said first: %s", &out)
			}
		})
	}
}
