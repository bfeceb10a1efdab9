package browse

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/render"
)

// pseudoTerminal returns a terminal, and what a program has written to it so far.
func pseudoTerminal(t *testing.T) (terminal, keys *os.File, written func() string) {
	t.Helper()
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there are no pseudo-terminals: ", err)
	}
	t.Cleanup(func() { other.Close() })
	if err := unix.IoctlSetPointerInt(int(other.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skip("there are no pseudo-terminals: ", err)
	}
	n, err := unix.IoctlGetInt(int(other.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skip("there are no pseudo-terminals: ", err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no pseudo-terminals: ", err)
	}
	t.Cleanup(func() { terminal.Close() })
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var text strings.Builder
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := other.Read(b)
			mu.Lock()
			text.Write(b[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return terminal, other, func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}

// failing is a screen that panics.
type failing struct{ pane }

func (*failing) key(*Model, string) bool { panic("on purpose") }

// TestCrash: after a panic, also of a job, the terminal is as it was before, and Run passes the panic on.
func TestCrash(t *testing.T) {
	for _, test := range []struct {
		name string
		fail func(m *Model)
	}{
		{"screen", func(m *Model) { m.push(&failing{pane{name: "fails"}}) }},
		{"job", func(m *Model) {
			m.push(&pane{name: "waits", waits: func() bool { return true }})
			start(m, func(ctx context.Context, _ func(int)) int {
				time.Sleep(300 * time.Millisecond)
				panic("on purpose")
			})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := modelOf(t, sample, render.Look{Colour: render.Colours16, Unicode: true})
			terminal, keys, written := pseudoTerminal(t)
			before, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			test.fail(m)
			panicked := make(chan any)
			go func() {
				defer func() { panicked <- recover() }()
				Run(context.Background(), m, Terminal{terminal, terminal, []string{"TERM=xterm"}})
			}()
			for end := time.Now().Add(20 * time.Second); !strings.Contains(written(), "1049h") || !strings.Contains(written(), "RPCs"); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("nothing is shown: %q", written())
				}
			}
			io.WriteString(keys, "j")
			select {
			case v := <-panicked:
				if first, is := v.(*capture.Panic); is {
					v = first.Value
				}
				if v != "on purpose" {
					t.Errorf("Run passes on %v", v)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("Run does not end")
			}
			time.Sleep(50 * time.Millisecond)
			text := written()
			for _, pair := range [][2]string{{"\x1b[?1049h", "\x1b[?1049l"}, {"\x1b[?25l", "\x1b[?25h"}, {"\x1b[?2004h", "\x1b[?2004l"}} {
				if strings.LastIndex(text, pair[0]) > strings.LastIndex(text, pair[1]) {
					t.Errorf("%q is not taken back: %q", pair[0], text[max(len(text)-200, 0):])
				}
			}
			after, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			if *after != *before {
				t.Errorf("the terminal's settings are\n%+v\nwant\n%+v", after, before)
			}
		})
	}
}
