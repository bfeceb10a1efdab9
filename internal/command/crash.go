package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/render"
)

// BlackBox gives access to the state of a command after rdmadump itself has failed. A command
// that reads packets fills in the box of its context.
type BlackBox struct {
	Packet func() int64 // returns the number of the packet that is being dissected, or 0
	Flush  func() error // writes the records that are complete
}

// BlackBoxKey is the key of the box in a context.
type BlackBoxKey struct{}

// BoxOf returns the box of the command that runs in ctx, or an unused box if there is none.
func BoxOf(ctx context.Context) *BlackBox {
	if box, ok := ctx.Value(BlackBoxKey{}).(*BlackBox); ok {
		return box
	}
	return new(BlackBox)
}

// Report prints a message for a panic with the value v that says what to report, and returns the
// exit status. The panic of another goroutine is a *capture.Panic with its value and stack.
func (b *BlackBox) Report(w io.Writer, version string, v any, stack []byte) int {
	var flushed string
	if b.Flush != nil {
		if err := b.attempt(func() error { return b.Flush() }); err != nil {
			flushed = "; the last records could not be written"
		}
	}
	var number int64
	if b.Packet != nil {
		b.attempt(func() error { number = b.Packet(); return nil })
	}
	if err, ok := v.(error); ok {
		if first := (*capture.Panic)(nil); errors.As(err, &first) {
			v, stack = first.Value, first.Stack
		}
	}
	where, packets := "", "the capture"
	if number > 0 {
		where = fmt.Sprintf(" at packet %d", number)
		packets = fmt.Sprintf("the packets before it (editcap -r CAPTURE part.pcapng %d-%d)", max(number-1000, 1), number)
	}
	fmt.Fprintf(w, `rdmadump: failed%s: %s%s
This is a bug in rdmadump, whatever the capture contains. Please report it at
https://github.com/rdmadump/rdmadump/issues with the command line, all of these
lines and, if you may share them, %s.

rdmadump %s, %s, %s/%s
%s`, where, render.Clean(fmt.Sprint(v)), flushed, packets, version, runtime.Version(), runtime.GOOS, runtime.GOARCH, stack)
	return ExitFailed
}

// attempt calls a function and returns a panic in it as an error.
func (b *BlackBox) attempt(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	return f()
}
