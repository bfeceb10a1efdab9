//go:build unix

package extract_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rdmadump/rdmadump/internal/extract"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// onDisk extracts a wire with a maximum file size (0 for the default). It returns the
// record and the number of bytes on disk of each file, by path, and the report.
func onDisk(t *testing.T, w *synth.Wire, most int64) (files map[string]extract.File, bytes map[string]int64, report extract.Report) {
	t.Helper()
	folder := t.TempDir()
	files, report = extractedTo(t, testkit.Source(t, w), folder, most)
	bytes = map[string]int64{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(folder, path)
		if bytes[name] = info.Sys().(*syscall.Stat_t).Blocks * 512; info.Size() != files[name].Size {
			t.Errorf("%s has %d bytes, but its record says %d", name, info.Size(), files[name].Size)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, bytes, report
}

// hole returns a READ_PLUS whose results are a hole of length bytes.
func hole(name string, offset, length uint64) (synth.Call, synth.Reply) {
	result := synth.XDR{}.Word(68, 0, 1, 1, 1).Hyper(offset, length)
	return synth.Compound(synth.OpPutRootFH(), synth.OpLookup(name), synth.OpReadPlus(offset, 1<<32-1)),
		synth.CompoundReply(synth.ResPutRootFH(), synth.ResLookup(), result)
}

// TestHoleBomb verifies that a few packets cannot fill a disk: neither data at a
// large offset, nor the holes of READ_PLUS, nor a size make extract write more than
// the data in the capture.
func TestHoleBomb(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	const far = 1<<39 - 4
	c.RPC(compound("far", far, []byte("data")))
	for i := range uint64(100) {
		c.RPC(hole("far", i<<32, 1<<32))
	}
	for i := range uint64(100) {
		c.RPC(hole("holes", i<<32, 1<<32))
	}
	files, bytes, report := onDisk(t, w, 0)
	if f := files["far"]; f.Size != far+4 || f.Data != 100*(1<<32-1)+4 || f.Holes != 100 || bytes["far"] > 1<<20 {
		t.Errorf("far: %+v, %d bytes on disk", f, bytes["far"])
	}
	if f := files["holes"]; f.Size != 99<<32+1<<32-1 || bytes["holes"] > 1<<20 {
		t.Errorf("holes: %+v, %d bytes on disk", f, bytes["holes"])
	}
	if report.TooFar != 0 || report.Files != 2 {
		t.Errorf("the report is %q; want two files, and nothing too far", report.String())
	}
}

// TestScatteredHole verifies that a hole also replaces data in ranges that are not
// tracked because the file has too many.
func TestScatteredHole(t *testing.T) {
	const ranges = 1<<16 + 32
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	writeScattered(c, "dust", ranges)
	c.RPC(hole("dust", 10, 2*ranges))
	files, there, _ := extracted(t, testkit.Source(t, w), t.TempDir())
	if data := there["dust"]; strings.Count(data, "x") != 5 || len(data) != 2*ranges+10 || !files["dust"].Scattered {
		t.Errorf("%d bytes of data are left of %d, %+v", strings.Count(data, "x"), len(data), files["dust"])
	}
}

// TestMaxSize verifies that data, holes and sizes beyond the maximum size are left out
// and counted.
func TestMaxSize(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	c.RPC(compound("fits", 1000, []byte("to the end")))
	c.RPC(compound("fits", 1001, []byte("and beyond")))
	c.RPC(compound("fits", 1<<62, []byte("far")))
	c.RPC(hole("fits", 2000, 100))
	c.RPC(compound("beyond", 2000, []byte("nothing else")))
	files, _, report := onDisk(t, w, 1010)
	if f := files["fits"]; f.Size != 1010 || f.Data != 10 || f.Error.Known() {
		t.Errorf("the file has %d bytes, %d of them data, error %q; want 1010, 10 and none", f.Size, f.Data, f.Error.Or(""))
	}
	if want := (extract.Report{Files: 1, Holes: 1000, TooFar: 4}); report != want {
		t.Errorf("the report is %q, want %q", report.String(), want.String())
	}
	if s := report.String(); !strings.Contains(s, "; 4 ranges left out because of the maximum file size") {
		t.Errorf("the report does not count the ranges beyond the maximum: %q", s)
	}
}
