package extract_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/internal/extract"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

const captures = "../../testdata/captures/"

// extracted extracts a source below a folder. It returns the record of each file
// and the contents of all files in the folder, both by path.
func extracted(t testing.TB, source capture.Source, folder string) (files map[string]extract.File, there map[string]string, report extract.Report) {
	t.Helper()
	files, report = extractedTo(t, source, folder, 0)
	there = map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		there[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, there, report
}

// extractedTo extracts a source below a folder, with a maximum file size (0 for the
// default). It returns the record of each file, by path.
func extractedTo(t testing.TB, source capture.Source, folder string, most int64) (files map[string]extract.File, report extract.Report) {
	t.Helper()
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	e, err := extract.New(root)
	if err != nil {
		t.Fatal(err)
	}
	if most > 0 {
		e.MaxSize = most
	}
	if _, err := dissect.New(e.Handler(), dissect.Options{Rebuild: true}).Run(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	files = map[string]extract.File{}
	if err := e.Finish(func(f *extract.File) { files[f.Path] = *f }); err != nil {
		t.Fatal(err)
	}
	return files, e.Report
}

// TestKnownData verifies that the files are those that the client wrote and read,
// on both transports, with NFSv4.2 and NFSv3.
func TestKnownData(t *testing.T) {
	list, err := os.ReadFile(captures + "rocev2-data42.md5")
	if err != nil {
		t.Fatal(err)
	}
	for name, under := range map[string]string{
		"rocev2-data42.pcap.zst": "",
		// MOUNT, which shows the path of the root, used a TCP connection.
		"lab-iwarpdata3.pcap.zst": "export/",
	} {
		files, there, report := extracted(t, testkit.Open(t, captures+name), t.TempDir())
		for line := range strings.Lines(string(list)) {
			f := strings.Fields(line)
			data, got := there[under+f[1]]
			if sum := md5.Sum([]byte(data)); !got || hex.EncodeToString(sum[:]) != f[0] {
				t.Errorf("%s: %s has %d bytes with md5 %x, want %s", name, f[1], len(data), sum, f[0])
			}
			r := files[under+f[1]]
			if r.Size != int64(len(data)) || r.Data != r.Size || r.Holes != 0 || !r.Named || r.Renamed || r.Error.Known() {
				t.Errorf("%s: %+v, of %d bytes", name, r, len(data))
			}
		}
		if want := (extract.Report{Files: 6}); report != want || len(there) != 6 {
			t.Errorf("%s: %+v, %d files", name, report, len(there))
		}
	}
}

// compound returns a COMPOUND that looks a name up below the root and writes to it.
func compound(name string, offset uint64, data []byte) (synth.Call, synth.Reply) {
	return synth.Compound(synth.OpPutRootFH(), synth.OpLookup(name), synth.OpWrite(offset, data)),
		synth.CompoundReply(synth.ResPutRootFH(), synth.ResLookup(), synth.ResWrite(uint32(len(data))))
}

// TestNames verifies that no name in a packet leads out of the folder, that
// existing files are not touched, and that file names have no control characters.
func TestNames(t *testing.T) {
	outside := t.TempDir()
	folder := filepath.Join(outside, "folder")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"victim": "safe", "folder/taken": "mine", "folder/taken~2": "mine too"} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	os.Symlink("../victim", filepath.Join(folder, "link"))
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	long := strings.Repeat("x", 300)
	want := map[string]string{"taken": "mine", "taken~2": "mine too", "taken~3": "taken", "link~2": "link", "link": "safe"}
	for name, path := range map[string]string{
		"plain": "plain", "..": "%2E%2E", ".": "%2E", "../victim": "..%2Fvictim", "/etc/passwd": "%2Fetc%2Fpasswd",
		"esc\x1b[31m": "esc%1B[31m", "nul\x00": "nul%00", "\xff\xfe": "%FF%FE", "a\\b": "a%5Cb", "\u202egnp": "%E2%80%AEgnp",
		"ünïcödé": "ünïcödé", ".rdmadump-1": "%2Erdmadump-1", ".RDMADUMP-1": "%2ERDMADUMP-1", "a\u2028b": "a%E2%80%A8b", "taken": "taken~3", "link": "link~2", long: "",
	} {
		call, reply := compound(name, 0, []byte(name))
		c.RPC(call, reply)
		if path != "" {
			want[path] = name
		}
	}
	_, there, report := extracted(t, testkit.Source(t, w), folder)
	for path, data := range want {
		if there[path] != data {
			t.Errorf("%q holds %q, want %q", path, there[path], data)
		}
	}
	for path := range there {
		if _, known := want[path]; !known && !strings.HasPrefix(path, long[:200]) {
			t.Errorf("%q is there", path)
		}
	}
	if report.Files != 17 {
		t.Errorf("%+v, want 17 files", report)
	}
	if data, err := os.ReadFile(filepath.Join(outside, "victim")); string(data) != "safe" {
		t.Errorf("the victim holds %q, %v", data, err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 2 {
		t.Errorf("files outside of the folder: %v", entries)
	}
}

// TestHoles verifies that ranges that were neither read nor written, and data that
// was not captured, read as zeros and are reported, and that a WRITE counts only
// as far as its Reply says.
func TestHoles(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	write := func(name string, offset uint64, data string, written uint32) {
		call, reply := compound(name, offset, []byte(data))
		reply.Results = synth.CompoundReply(synth.ResPutRootFH(), synth.ResLookup(), synth.ResWrite(written)).Results
		c.RPC(call, reply)
	}
	write("gaps", 0, "abcd", 4)
	write("gaps", 8, "ijkl", 4)
	write("gaps", 16, "qrst", 2)
	write("far", 1<<62, "no file has that", 16)
	call, reply := compound("failed", 0, []byte("nothing"))
	c.RPC(call, synth.CompoundFailed(28, synth.ResPutRootFH(), synth.ResLookup(), synth.ResFailed(38, 28)))
	_ = reply
	// The capture lacks one packet of this READ.
	data := bytes.Repeat([]byte("0123456789abcdef"), 256)
	read := synth.Compound(synth.OpPutRootFH(), synth.OpLookup("lost"), synth.OpRead(0, 4096)).Offer(synth.Mem(0xa1, 4096))
	answer := synth.CompoundReply(synth.ResPutRootFH(), synth.ResLookup(), synth.ResRead(data)).To(read)
	c.Client.Call(read)
	w.Drop(c.Server.Push(answer)[1])
	c.Server.Reply(answer)
	c.Client.Ack()
	// The capture has no data of this READ.
	none := synth.Compound(synth.OpPutRootFH(), synth.OpLookup("none"), synth.OpRead(0, 1000)).Offer(synth.Mem(0xa2, 1000))
	answer = synth.CompoundReply(synth.ResPutRootFH(), synth.ResLookup(), synth.ResRead(data[:1000])).To(none)
	c.Client.Call(none)
	w.Drop(c.Server.Push(answer)[0])
	c.Server.Reply(answer)
	c.Client.Ack()
	files, there, report := extracted(t, testkit.Source(t, w), t.TempDir())
	clear(data[1024:2048])
	if there["gaps"] != "abcd\x00\x00\x00\x00ijkl\x00\x00\x00\x00qr" || there["lost"] != string(data) || there["none"] != string(make([]byte, 1000)) || len(there) != 3 {
		t.Errorf("the files are %q; want zeros for the gaps, all of lost, and none as zeros", there)
	}
	if n := files["none"]; n.Size != 1000 || n.Data != 0 || n.Holes != 1 || n.HoleBytes != 1000 {
		t.Errorf("none: %+v", n)
	}
	if g := files["gaps"]; g.Size != 18 || g.Data != 10 || g.Holes != 2 || g.HoleBytes != 8 {
		t.Errorf("gaps: %+v", g)
	}
	if l := files["lost"]; l.Size != 4096 || l.Data != 3072 || l.Holes != 1 || l.HoleBytes != 1024 {
		t.Errorf("lost: %+v", l)
	}
	if want := (extract.Report{Files: 3, Holes: 2032, Missing: 2, TooFar: 1}); report != want {
		t.Errorf("the report is %q, want %q", report.String(), want.String())
	}
}

// writeScattered writes single bytes to a file, with a hole of one byte after each, until
// it has at least this many ranges.
func writeScattered(c *synth.Conn, name string, ranges int) {
	for at := 0; at < ranges; {
		calls, replies := []synth.XDR{synth.OpPutRootFH(), synth.OpLookup(name)}, []synth.XDR{synth.ResPutRootFH(), synth.ResLookup()}
		for range 12 {
			calls, replies = append(calls, synth.OpWrite(uint64(2*at), []byte("x"))), append(replies, synth.ResWrite(1))
			at++
		}
		c.RPC(synth.Compound(calls...), synth.CompoundReply(replies...))
	}
}

// TestScattered verifies that all data of a file with more ranges than are tracked
// is written, and that its record and the report say that the holes are an upper
// bound.
func TestScattered(t *testing.T) {
	const ranges = 1<<16 + 3
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	writeScattered(c, "dust", ranges)
	files, there, report := extracted(t, testkit.Source(t, w), t.TempDir())
	size := int64(len(there["dust"]))
	if n := strings.Count(there["dust"], "x"); int64(n) != (size+1)/2 || n < ranges {
		t.Errorf("%d bytes of data of %d", n, size)
	}
	f := files["dust"]
	if !f.Scattered || f.Data != 1<<16 || f.HoleBytes != size-1<<16 || report.Scattered != 1 {
		t.Errorf("the file is scattered: %t, with %d bytes of data and %d of holes, and the report counts %d; want true, 65536, %d and 1", f.Scattered, f.Data, f.HoleBytes, report.Scattered, size-1<<16)
	}
	if s := report.String(); !strings.Contains(s, "; 1 file with so many ranges") {
		t.Errorf("the report does not count the scattered file: %q", s)
	}
}

// TestManyFiles extracts more files than may be open at once.
func TestManyFiles(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	for round := range 2 {
		for i := range 200 {
			call, reply := compound(fmt.Sprint("file", i), uint64(round)*4, []byte("data"))
			c.RPC(call, reply)
		}
	}
	_, there, _ := extracted(t, testkit.Source(t, w), t.TempDir())
	if len(there) != 200 || there["file0"] != "datadata" || there["file199"] != "datadata" {
		t.Errorf("%d files, %q, %q", len(there), there["file0"], there["file199"])
	}
}

// opened returns a COMPOUND that looks a name up and gets its file handle.
func opened(name, handle string) (synth.Call, synth.Reply) {
	return synth.Compound(synth.OpPutRootFH(), synth.OpLookup(name), synth.XDR{}.Word(10)),
		synth.CompoundReply(synth.ResPutRootFH(), synth.ResLookup(), synth.XDR{}.Word(10, 0).String(handle))
}

// written returns a COMPOUND that writes data to the file with a handle.
func written(handle string, data string) (synth.Call, synth.Reply) {
	return synth.Compound(synth.XDR{}.Word(22).String(handle), synth.OpWrite(0, []byte(data))),
		synth.CompoundReply(synth.ResPutFH(), synth.ResWrite(uint32(len(data))))
}

// renamed returns a COMPOUND that renames a file below the root.
func renamed(from, to string) (synth.Call, synth.Reply) {
	return synth.Compound(synth.OpPutRootFH(), synth.XDR{}.Word(32), synth.OpPutRootFH(), synth.XDR{}.Word(29).String(from).String(to)),
		synth.CompoundReply(synth.ResPutRootFH(), synth.XDR{}.Word(32, 0), synth.ResPutRootFH(), synth.XDR{}.Word(29, 0, 1).Hyper(1, 2).Word(1).Hyper(1, 2))
}

// TestSameName verifies that two files that had the same name one after the other
// become two files, and that a file keeps all of its data if its handle is learned
// after it was written.
func TestSameName(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	c.RPC(opened("a", "handle 1"))
	c.RPC(written("handle 1", "first"))
	c.RPC(opened("a", "handle 2"))
	c.RPC(written("handle 2", "the second"))
	c.RPC(written("handle 1", "FIRST"))
	c.RPC(compound("b", 0, []byte("one")))
	c.RPC(opened("b", "handle 3"))
	c.RPC(compound("b", 3, []byte("two")))
	files, there, _ := extracted(t, testkit.Source(t, w), t.TempDir())
	want := map[string]string{"a": "FIRST", "a~2": "the second", "b": "onetwo"}
	if !maps.Equal(there, want) {
		t.Errorf("%q, want %q", there, want)
	}
	for path, handle := range map[string]string{"a": "handle 1", "a~2": "handle 2", "b": "handle 3"} {
		if got := files[path].Handle.Or(""); got != hex.EncodeToString([]byte(handle)) || !files[path].Named {
			t.Errorf("%s has the handle %s, and its name is known: %t; want that of %q, and true", path, got, files[path].Named, handle)
		}
	}
}

// TestReplaced replaces a file many times by another one, as editors and mail servers
// do: each version becomes a file, and giving names takes linear time.
func TestReplaced(t *testing.T) {
	const versions = 3000
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	for i := range versions {
		handle := fmt.Sprint("handle ", i)
		c.RPC(opened("b", handle))
		c.RPC(written(handle, fmt.Sprint("version ", i)))
		c.RPC(renamed("b", "a"))
	}
	files, there, report := extracted(t, testkit.Source(t, w), t.TempDir())
	if len(there) != versions || report.Files != versions {
		t.Fatalf("%d files, %+v", len(there), report)
	}
	for i := range versions {
		path := "a"
		if i > 0 {
			path = fmt.Sprint("a~", i+1)
		}
		if there[path] != fmt.Sprint("version ", i) || files[path].Error.Known() || files[path].Renamed != (i > 0) {
			t.Fatalf("%s has the content %q, renamed %t, error %q; want version %d", path, there[path], files[path].Renamed, files[path].Error.Or(""), i)
		}
	}
}
