package capture_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/rdmadump/rdmadump/capture"
)

// compressors lists the compressors of a pipe. Each flushes every write.
var compressors = []struct {
	name string
	open func(w io.Writer) flusher
}{
	{"plain", func(w io.Writer) flusher { return plainWriter{w} }},
	{"gzip", func(w io.Writer) flusher { return gzip.NewWriter(w) }},
	{"zstd", func(w io.Writer) flusher { z, _ := zstd.NewWriter(w); return z }},
}

type flusher interface {
	io.WriteCloser
	Flush() error
}

type plainWriter struct{ io.Writer }

func (plainWriter) Flush() error { return nil }
func (plainWriter) Close() error { return nil }

// TestPipe checks that frames that arrived on a pipe are returned at once, compressed or not.
func TestPipe(t *testing.T) {
	for _, c := range compressors {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			in, out := io.Pipe()
			raw := pcap(binary.LittleEndian, 0xa1b2c3d4, 1, sample...)
			go func() {
				w := c.open(out)
				for _, part := range [][]byte{raw[:10], raw[10:45], raw[45:50], raw[50:]} {
					time.Sleep(30 * time.Millisecond)
					w.Write(part)
					w.Flush()
				}
				time.Sleep(30 * time.Millisecond)
				w.Close()
				out.Close()
			}()
			f, err := capture.NewPipe(ctx, c.name, in)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if lines, err := listUntil(ctx, f); len(lines) != len(sample) || err != nil || ctx.Err() != nil {
				t.Errorf("%d frames, error %v, %v", len(lines), err, ctx.Err())
			}
		})
	}
}

// TestPipeEnds checks that the end of the context ends a read that is waiting, inside of a record
// or before one.
func TestPipeEnds(t *testing.T) {
	for _, c := range compressors {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			in, out := io.Pipe()
			go func() {
				w := c.open(out)
				w.Write(pcap(binary.LittleEndian, 0xa1b2c3d4, 1, sample...)[:50])
				w.Flush()
			}()
			f, err := capture.NewPipe(ctx, c.name, in)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if lines, err := listUntil(ctx, f); len(lines) != 1 || err != nil {
				t.Errorf("%d frames, error %v", len(lines), err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	in, _ := io.Pipe()
	if _, err := capture.NewPipe(ctx, "emptyReads", in); err == nil {
		t.Error("a emptyReads pipe was opened")
	}
}

// TestCloseEndsReading checks that Close ends the reading goroutine and its decompressor while the
// goroutine is idle, waiting for space, or reading.
func TestCloseEndsReading(t *testing.T) {
	raw := pcapOf(500, 4200)
	inputs := [][]byte{raw, gzipped(raw), zstandard(raw), raw[:24]}
	before := runtime.NumGoroutine()
	for range 20 {
		for _, data := range inputs {
			f, err := capture.NewFile("x", bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			var b capture.Batch
			f.ReadBatch(context.Background(), &b)
			f.Close()
		}
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// TestReadAheadPanics checks that a panic of the reading goroutine is raised again in the goroutine
// that reads frames, with the original stack.
func TestReadAheadPanics(t *testing.T) {
	f, err := capture.NewFile("x", io.MultiReader(bytes.NewReader(pcapOf(3, 100)), explosive{}))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b capture.Batch
	if err := f.ReadBatch(context.Background(), &b); err != nil || len(b.Frames) != 3 {
		t.Fatalf("%d frames, error %v", len(b.Frames), err)
	}
	defer func() {
		p, ok := recover().(*capture.Panic)
		if !ok || p.Value != "boom" || !bytes.Contains(p.Stack, []byte("explosive")) {
			t.Errorf("recovered %v", p)
		}
	}()
	f.ReadBatch(context.Background(), &b)
	t.Error("no panic")
}

type explosive struct{}

func (explosive) Read([]byte) (int, error) { panic("boom") }
