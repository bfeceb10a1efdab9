// Package testkit has functions that the tests of several packages share.
package testkit

import (
	"bytes"
	"context"
	"encoding/hex"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/synth"
)

// Unhex decodes hex digits. It ignores spaces between them.
func Unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Frames reads all frames of a capture into memory. size is the total of their captured
// bytes.
func Frames(t testing.TB, path string) (frames []capture.Frame, size int64) {
	t.Helper()
	f, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for frame, err := range capture.All(context.Background(), f) {
		if err != nil {
			t.Fatal(err)
		}
		kept := *frame
		kept.Data = append([]byte(nil), frame.Data...)
		frames, size = append(frames, kept), size+int64(len(kept.Data))
	}
	return frames, size
}

// Open opens a capture and closes it at the end of the test.
func Open(t testing.TB, path string) *capture.File {
	t.Helper()
	f, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Glob returns the names of the captures that match a pattern of paths.
func Glob(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captures %s: %v", pattern, err)
	}
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	return paths
}

// Decompressed returns the bytes of a compressed capture.
func Decompressed(t testing.TB, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := r.DecodeAll(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Source returns the frames of a Wire as a capture file.
func Source(t testing.TB, w *synth.Wire) *capture.File {
	t.Helper()
	var b bytes.Buffer
	if err := w.WritePcap(&b); err != nil {
		t.Fatal(err)
	}
	f, err := capture.NewFile("wire", &b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Made returns synthetic frames as the frames of a capture. A frame is valid until the next
// one is returned.
func Made(frames []*synth.Frame) iter.Seq[*capture.Frame] {
	return func(yield func(*capture.Frame) bool) {
		var f capture.Frame
		for i, x := range frames {
			f = capture.Frame{Number: int64(i + 1), Time: x.Time, LinkType: capture.LinkType(x.LinkType), Length: x.Length, Data: x.Data}
			if !yield(&f) {
				return
			}
		}
	}
}

// Tshark returns the path of tshark. If tshark is not installed, it skips the test, or fails
// it if the environment variable CI is set.
func Tshark(t testing.TB) (path string) {
	t.Helper()
	path, err := exec.LookPath("tshark")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("tshark must be installed if CI is set (.ci/run installs it)")
		}
		t.Skip("tshark is not installed; on Debian: apt-get install tshark")
	}
	return path
}
