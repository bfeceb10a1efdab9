package main

import (
	"bytes"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmadump/rdmadump/internal/testkit"
)

// TestSilentTerminal: no command asks the terminal a question, because one that does not answer would delay it: libraries
// for terminals do that, even if a command does not use them.
func TestSilentTerminal(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	program := filepath.Join(folder, "rdmadump")
	itself(t, program)
	sample, err := filepath.Abs("../../samples/rocev2-callback41.pcap")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(folder, "out")
	for _, args := range [][]string{
		{"version"},
		{"help"},
		{"help", "filter"},
		{sample},
		{"overview", sample},
		{"packets", sample},
		{"packets", "-V", sample},
		{"rdma", sample},
		{"connections", sample},
		{"connections", "--timeline", sample},
		{"files", sample},
		{"stats", sample},
		{"stats", "--every", "1s", sample},
		{"compare", sample, sample},
		{"check", sample},
		{"report", "-w", out, sample},
		{"export", "--format", "trace", "-w", out, sample},
		{"completion", "bash"},
		{"-o", "json", sample},
		{"--xid", "0x3ea94e54", sample},
	} {
		shown := silent(t, exec.Command(program, args...))
		for _, question := range []string{"\x1b]1", "\x1b[6n", "\x1b[c", "\x1b[>"} {
			if strings.Contains(shown, question) {
				t.Errorf("%q asks the terminal %q", args, question)
			}
		}
		if shown == "" {
			t.Errorf("%q shows nothing", args)
		}
	}
}

// silent returns what a command writes to a terminal that answers nothing.
func silent(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	terminal, other := testkit.Terminal(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	defer time.AfterFunc(waitLimit, func() { cmd.Process.Kill() }).Stop()
	var out bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(&out, other)
	}()
	if err := cmd.Run(); err != nil {
		t.Errorf("%q with a terminal that answers nothing fails: %v", cmd.Args, err)
	}
	terminal.Close()
	<-read
	return out.String()
}

// TestSilentBrowse: browse shows the problems, and ends, without waiting for a terminal that answers nothing.
func TestSilentBrowse(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "rdmadump")
	itself(t, program)
	const limit = 2 * time.Second // A library that waits for an answer stops after five.
	first, end := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for try := 0; try < 5 && (first > limit || end > limit); try++ {
		terminal, other := testkit.Terminal(t)
		if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "browse", "../../samples/rocev2-callback41.pcap")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
		cmd.Env = append(os.Environ(), "TERM=xterm-256color")
		began := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		terminal.Close()
		stuck := time.AfterFunc(waitLimit, func() { cmd.Process.Kill() }) // Then nothing more can be read, either.
		var shown strings.Builder
		b := make([]byte, 4096)
		for !strings.Contains(shown.String(), "mount/session: 2 RPCs took") {
			n, err := other.Read(b)
			if err != nil {
				t.Fatalf("no problem is shown: %v: %q", err, shown.String())
			}
			shown.Write(b[:n])
		}
		first = min(first, time.Since(began))
		began = time.Now()
		io.WriteString(other, "q")
		go io.Copy(io.Discard, other)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		stuck.Stop()
		end = min(end, time.Since(began))
	}
	if first > limit || end > limit {
		t.Errorf("the problems appear after %v, and browse ends %v after q; want at most %v", first, end, limit)
	}
}
