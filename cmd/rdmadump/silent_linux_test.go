package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// silentTerminal returns a terminal that shows nothing and answers nothing, and its other end.
func silentTerminal(t *testing.T) (terminal, other *os.File) {
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
	return terminal, other
}

// TestSilentTerminal: no command asks the terminal a question before it shows anything, because one
// that does not answer would delay it: libraries for terminals do that, even if a command does not
// use them.
func TestSilentTerminal(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "rdmadump")
	itself(t, program)
	sample, err := filepath.Abs("../../samples/rocev2-callback41.pcap")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"version"}, {sample}, {"overview", sample}, {"help"}} {
		terminal, other := silentTerminal(t)
		cmd := exec.Command(program, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
		cmd.Env = append(os.Environ(), "TERM=xterm-256color")
		var out bytes.Buffer
		read := make(chan struct{})
		go func() {
			defer close(read)
			io.Copy(&out, other)
		}()
		if err := cmd.Run(); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		time.Sleep(50 * time.Millisecond)
		terminal.Close()
		<-read
		for _, question := range []string{"\x1b]1", "\x1b[6n", "\x1b[c", "\x1b[>"} {
			if bytes.Contains(out.Bytes(), []byte(question)) {
				t.Errorf("%q asks the terminal %q", args, question)
			}
		}
		if out.Len() == 0 {
			t.Errorf("%q shows nothing", args)
		}
	}
}
