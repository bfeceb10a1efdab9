package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/command"
)

// explosive is a reader that panics.
type explosive struct{}

func (explosive) Read([]byte) (int, error) { panic("no more bytes") }

// TestPanic: when rdmadump fails, it has shown all records so far, names the packet, says what to
// report, and exits with a status that no capture and no wrong usage causes.
func TestPanic(t *testing.T) {
	sample, err := os.ReadFile("../../samples/rocev2-callback41.pcap")
	if err != nil {
		t.Fatal(err)
	}
	// each reads a capture as the views do, and calls see for every packet.
	each := func(ctx context.Context, r io.Reader, out io.Writer, see func(number int64)) error {
		f, err := capture.NewFile("x", r)
		if err != nil {
			return err
		}
		defer f.Close()
		w := bufio.NewWriter(out)
		var number int64
		box := command.BoxOf(ctx)
		box.Packet, box.Flush = func() int64 { return number }, w.Flush
		var b capture.Batch
		for {
			if err := f.ReadBatch(context.Background(), &b); err != nil {
				return err
			}
			for i := range b.Frames {
				number = b.Frames[i].Number
				see(number)
				fmt.Fprintln(w, "packet", number)
			}
		}
	}
	for _, c := range []struct {
		name   string
		run    func(ctx context.Context, out io.Writer) error
		stdout string
		stderr []string
	}{
		{"in a packet", func(ctx context.Context, out io.Writer) error {
			return each(ctx, bytes.NewReader(sample), out, func(number int64) {
				if number == 3 {
					_ = sample[len(sample)+int(number)]
				}
			})
		}, "packet 1\npacket 2\n", []string{
			"rdmadump: failed at packet 3: runtime error: index out of range", "https://github.com/rdmadump/rdmadump/issues",
			"(editcap -r CAPTURE part.pcapng 1-3)", "crash_test.go:",
		}},
		{"while reading ahead", func(ctx context.Context, out io.Writer) error {
			return each(ctx, io.MultiReader(bytes.NewReader(sample[:200]), explosive{}), out, func(int64) {})
		}, "packet 1\n", []string{"rdmadump: failed at packet 1: no more bytes\n", "explosive"}},
		{"elsewhere, handed on as an error", func(context.Context, io.Writer) error {
			return fmt.Errorf("drawing: %w", &capture.Panic{Value: "elsewhere", Stack: []byte("its stack\n")})
		}, "", []string{"rdmadump: failed: elsewhere\n", "if you may share them, the capture.\n", "\nits stack\n"}},
		{"with what a packet says", func(context.Context, io.Writer) error { panic("\x1b[2J\n") }, "", []string{`rdmadump: failed: \x1b[2J\x0a` + "\n"}},
		{"again while flushing", func(ctx context.Context, _ io.Writer) error {
			command.BoxOf(ctx).Flush = func() error { panic("twice") }
			command.BoxOf(ctx).Packet = func() int64 { panic("thrice") }
			panic("once")
		}, "", []string{"rdmadump: failed: once; the last records could not be written\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			root := newRoot(&stdout, &stderr)
			root.AddCommand(&cobra.Command{Use: "explode", RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), &stdout) }})
			root.SetArgs([]string{"explode"})
			if code := execute(t.Context(), root, &stderr); code != command.ExitFailed {
				t.Errorf("exit status %d", code)
			}
			if stdout.String() != c.stdout {
				t.Errorf("standard output %q, want %q", stdout.String(), c.stdout)
			}
			for _, want := range append(c.stderr, "This is a bug in rdmadump", "\nrdmadump "+command.Version()+", go") {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("no %q in\n%s", want, stderr.String())
				}
			}
		})
	}
}
