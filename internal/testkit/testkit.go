// Package testkit is what the tests of several packages need.
package testkit

import (
	"context"
	"encoding/hex"
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
