package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"unicode"

	"github.com/rdmadump/rdmadump/capture"
)

// blackBox is what is left to ask when rdmadump itself fails. A command that
// reads packets fills in the box of its context.
type blackBox struct {
	packet func() int64 // the number of the packet that is being dissected, 0 for none
	flush  func() error // writes the records that are done
}

type blackBoxKey struct{}

// boxOf is the box of the command that runs in ctx; of none, it is one that nobody
// opens.
func boxOf(ctx context.Context) *blackBox {
	if box, ok := ctx.Value(blackBoxKey{}).(*blackBox); ok {
		return box
	}
	return new(blackBox)
}

// report says what to report of a panic with value v, and is the exit status. The
// panic of another goroutine is a *capture.Panic, from wherever it was caught.
func (b *blackBox) report(w io.Writer, version string, v any, stack []byte) int {
	var flushed string
	if b.flush != nil {
		if err := b.attempt(func() error { return b.flush() }); err != nil {
			flushed = "; the last records could not be written"
		}
	}
	var number int64
	if b.packet != nil {
		b.attempt(func() error { number = b.packet(); return nil })
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
This is a bug of rdmadump, whatever the capture holds. Please report it at
https://github.com/rdmadump/rdmadump/issues with the command line, these lines to
their end and, if others may see them, %s.

rdmadump %s, %s, %s/%s
%s`, where, printable(fmt.Sprint(v)), flushed, packets, version, runtime.Version(), runtime.GOOS, runtime.GOARCH, stack)
	return exitFailed
}

// attempt calls what may panic once more.
func (b *blackBox) attempt(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	return f()
}

// printable has no control characters, since a panic may quote what was in a
// packet.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '.'
		}
		return r
	}, s)
}
