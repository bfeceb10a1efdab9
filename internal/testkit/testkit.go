// Package testkit is what the tests of several packages need.
package testkit

import (
	"encoding/hex"
	"io"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
)

// Unhex reads hex digits, which spaces may set apart.
func Unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Frames reads all frames of a capture into memory; size is their bytes.
func Frames(t testing.TB, path string) (frames []capture.Frame, size int64) {
	t.Helper()
	f, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var frame capture.Frame
	for {
		if err := f.Next(&frame); err == io.EOF {
			return frames, size
		} else if err != nil {
			t.Fatal(err)
		}
		frame.Data = append([]byte(nil), frame.Data...)
		frames, size = append(frames, frame), size+int64(len(frame.Data))
	}
}
