package browse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

// deafTerminal returns a terminal whose other end, where keys are written, nobody reads.
func deafTerminal(t *testing.T) (terminal, other *os.File) {
	t.Helper()
	terminal, other = testkit.Terminal(t)
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	return terminal, other
}

// pseudoTerminal returns a terminal, and what a program has written to it so far.
func pseudoTerminal(t *testing.T) (terminal, keys *os.File, written func() string) {
	t.Helper()
	terminal, other := deafTerminal(t)
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

// settings returns the settings of a terminal.
func settings(t *testing.T, terminal *os.File) *unix.Termios {
	t.Helper()
	is, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// restored fails the test if the settings of a terminal are not those from before.
func restored(t *testing.T, terminal *os.File, before *unix.Termios) {
	t.Helper()
	if after := settings(t, terminal); *after != *before {
		t.Errorf("the terminal's settings are\n%+v\nwant\n%+v", after, before)
	}
}

// takenBack fails the test if the terminal still shows the other screen, hides the cursor or brackets what is pasted.
func takenBack(t *testing.T, written func() string) {
	t.Helper()
	open := ""
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		text := written()
		open = ""
		for _, pair := range [][2]string{{"\x1b[?1049h", "\x1b[?1049l"}, {"\x1b[?25l", "\x1b[?25h"}, {"\x1b[?2004h", "\x1b[?2004l"}} {
			if strings.LastIndex(text, pair[0]) > strings.LastIndex(text, pair[1]) {
				open = fmt.Sprintf("%q is not taken back: %q", pair[0], text[max(len(text)-200, 0):])
			}
		}
		if open == "" {
			return
		}
	}
	t.Error(open)
}

// ends is what Run returns or panics with.
type ends struct {
	err      error
	panicked any
}

// running shows a capture in a terminal. The Model is made anew for each context.
func running(ctx context.Context, m *Model, terminal *os.File) chan ends {
	ended := make(chan ends, 1)
	go func() {
		var e ends
		defer func() {
			e.panicked = recover()
			ended <- e
		}()
		e.err = Run(ctx, m, Terminal{terminal, terminal, []string{"TERM=xterm"}})
	}()
	return ended
}

var colours = render.Look{Colour: true, Unicode: true}

// TestSignals: each signal that ends a program ends Run, at any time, with the terminal as it was.
func TestSignals(t *testing.T) {
	o := options(t, sample, colours)
	for i := range 52 {
		ending := []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}[i%4]
		terminal, keys, written := pseudoTerminal(t)
		before := settings(t, terminal)
		ctx, stop := signal.NotifyContext(context.Background(), ending) // SIGQUIT comes to Run, too, when it has begun.
		ended := running(ctx, New(ctx, o), terminal)
		time.Sleep(time.Duration(i) * time.Millisecond)
		io.WriteString(keys, "j\r")
		if err := syscall.Kill(os.Getpid(), ending.(syscall.Signal)); err != nil {
			t.Fatal(err)
		}
		select {
		case e := <-ended:
			if e.err != nil || e.panicked != nil {
				t.Errorf("after %v, Run returns %v and panics with %v", ending, e.err, e.panicked)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("Run does not end after %v, which came after %d ms", ending, i)
		}
		stop()
		restored(t, terminal, before)
		takenBack(t, written)
	}
}

// TestQuit: SIGQUIT ends Run also if nobody else takes it.
func TestQuit(t *testing.T) {
	terminal, _, written := pseudoTerminal(t)
	before := settings(t, terminal)
	ended := running(context.Background(), New(context.Background(), options(t, sample, colours)), terminal)
	for end := time.Now().Add(20 * time.Second); !strings.Contains(written(), "1049h"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing is shown")
		}
	}
	syscall.Kill(os.Getpid(), syscall.SIGQUIT)
	select {
	case e := <-ended:
		if e.err != nil || e.panicked != nil {
			t.Errorf("Run returns %v and panics with %v", e.err, e.panicked)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Run does not end")
	}
	restored(t, terminal, before)
	takenBack(t, written)
}

// TestDeafTerminal: if nobody reads what the terminal shows, Run ends, too.
func TestDeafTerminal(t *testing.T) {
	terminal, keys := deafTerminal(t)
	before := settings(t, terminal)
	full, err := os.OpenFile(terminal.Name(), os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	ctx, cancel := context.WithCancel(context.Background())
	ended := running(ctx, New(ctx, options(t, sample, colours)), terminal)
	for end := time.Now().Add(20 * time.Second); *settings(t, terminal) == *before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("Run does not take the terminal")
		}
	}
	for refused := 0; refused < 5; { // The terminal may take more a moment later.
		switch _, err = unix.Write(int(full.Fd()), make([]byte, 64)); {
		case err == nil:
			refused = 0
		case errors.Is(err, unix.EAGAIN):
			refused++
			time.Sleep(10 * time.Millisecond)
		default:
			t.Fatal(err)
		}
	}
	io.WriteString(keys, "2")
	time.Sleep(100 * time.Millisecond) // Until then, the screen that the key asks for is being written.
	cancel()
	select {
	case e := <-ended:
		if e.err != nil || e.panicked != nil {
			t.Errorf("Run returns %v and panics with %v", e.err, e.panicked)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Run waits for the terminal")
	}
	restored(t, terminal, before)
}

// failing is a screen that panics.
type failing struct{ *pane }

func (failing) key(tea.KeyPressMsg) (tea.Cmd, bool) { panic("on purpose") }

// TestCrash: after a panic, also of a command, the terminal is as it was before, and Run passes the panic on.
func TestCrash(t *testing.T) {
	for _, inCommand := range []bool{false, true} {
		m := New(context.Background(), options(t, sample, colours))
		if inCommand {
			m.push(newPane(m, "fails", func(int) []line {
				return []line{{text: "x", opens: "x", enter: func() tea.Cmd { return guarded(func() tea.Msg { panic("on purpose") }) }}}
			}))
		} else {
			m.push(failing{newPane(m, "fails", func(int) []line { return nil })})
		}
		terminal, keys, written := pseudoTerminal(t)
		before := settings(t, terminal)
		ended := running(context.Background(), m, terminal)
		for end := time.Now().Add(20 * time.Second); !strings.Contains(written(), "fails"); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("nothing is shown: %q", written())
			}
		}
		io.WriteString(keys, "\r")
		select {
		case e := <-ended:
			if first, is := e.panicked.(*capture.Panic); is {
				e.panicked = first.Value
			}
			if e.panicked != "on purpose" {
				t.Errorf("Run passes on %v", e.panicked)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("Run does not end")
		}
		restored(t, terminal, before)
		takenBack(t, written)
	}
}
