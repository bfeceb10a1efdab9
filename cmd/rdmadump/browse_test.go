package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/synth"
)

// waitLimit is how long a test waits for what a program shows in a terminal.
const waitLimit = 20 * time.Second

// session is a program that runs in a terminal of tmux.
type session struct {
	t      *testing.T
	socket string
}

// newSession runs a command line in a terminal of this size. It skips the test without tmux.
func newSession(t *testing.T, width, height int, environment []string, line string) *session {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed, so browse is not tested in a terminal: ", err)
	}
	folder, err := os.MkdirTemp("", "tmux") // The path of a socket must be short.
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t, filepath.Join(folder, "s")}
	t.Cleanup(func() {
		exec.Command("tmux", "-S", s.socket, "kill-server").Run()
		os.RemoveAll(folder)
	})
	cmd := exec.Command("tmux", "-S", s.socket, "-u", "-f", os.DevNull, "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height),
		"env "+strings.Join(environment, " ")+" sh -c '"+line+"; echo \"ended $?\"; sleep 60'")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("tmux does not work here, so browse is not tested in a terminal: %v: %s", err, out)
	}
	return s
}

// tmux runs a command of tmux and returns its output.
func (s *session) tmux(args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// keys presses keys by the names of tmux.
func (s *session) keys(keys ...string) {
	s.t.Helper()
	s.tmux(append([]string{"send-keys"}, keys...)...)
}

// wait waits until the screen matches a pattern and returns the screen.
func (s *session) wait(pattern string) (screen string) {
	s.t.Helper()
	want := regexp.MustCompile(pattern)
	for end := time.Now().Add(waitLimit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if screen = s.tmux("capture-pane", "-p", "-J"); want.MatchString(screen) {
			return screen
		}
	}
	s.t.Fatalf("the screen does not match %s:\n%s", pattern, screen)
	return screen
}

// TestBrowseInTerminal browses captures in a real terminal.
func TestBrowseInTerminal(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "rdmadump")
	itself(t, program)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sample := filepath.Join(root, "samples/rocev2-callback41.pcap")
	t.Run("keys", func(t *testing.T) {
		s := newSession(t, 100, 30, []string{"TERM=screen-256color", "LANG=C.UTF-8"}, program+" browse "+sample)
		s.wait(`1 Problems[\s\S]*\? keys`)
		s.keys("2")
		s.wait(`2 RPCs 64[\s\S]*> +1 +6\.781997[\s\S]*\? keys`)
		s.keys("j", "Enter")
		s.wait(`EXCHANGE_ID verifier[\s\S]*0x3ea94e54 of connection 0  Enter: its packet`)
		s.keys("Enter")
		s.wait(`packet 30, 1 of 6`)
		s.keys("Escape")
		s.wait(`0x3ea94e54 of connection 0  Enter: its packet`)
		s.keys("Escape")
		s.wait(`RPC 2 of 64`)
		s.keys(":")
		s.keys("-l", "latency > 5ms")
		s.keys("Enter")
		s.wait(`RPC 1 of 12 with latency > 5ms`)
		s.tmux("resize-window", "-x", "60", "-y", "12")
		s.wait(`(?m)^RPC 1 of 12.{0,50}$`)
		s.tmux("resize-window", "-x", "20", "-y", "5")
		s.wait(`have 40`)
		s.tmux("resize-window", "-x", "120", "-y", "40")
		s.wait(`RPC 1 of 12`)
		s.keys("y")
		s.wait(`to the clipboard: rdmadump .*-Y 'latency > 5ms'`)
		s.keys("q")
		s.wait(`ended 0`)
	})
	t.Run("esc and signals", func(t *testing.T) {
		s := newSession(t, 80, 24, []string{"TERM=xterm", "LANG=C"}, program+" browse "+sample)
		s.wait(`\? keys`)
		s.keys("Escape")
		s.wait(`q quits`)
		s.keys("C-c")
		s.wait(`ended 0`)
	})
	t.Run("suspended", func(t *testing.T) {
		s := newSession(t, 80, 24, []string{"TERM=xterm", "LANG=C"}, program+" browse "+sample)
		s.wait(`\? keys`)
		s.keys("C-z") // This shell has no job control.
		s.wait(`there is no shell that could continue browse`)
		s.keys("C-c")
		s.wait(`ended 0`)
		s = newSession(t, 80, 24, []string{"TERM=xterm", "LANG=C"}, "sh -i")
		s.keys("-l", program+" browse "+sample)
		s.keys("Enter")
		s.wait(`\? keys`)
		s.keys("C-z")
		s.wait(`Stopped|Suspended`)
		s.keys("-l", "fg; echo it ended $?") // What is typed after q may be read by browse, which has not ended yet.
		s.keys("Enter")
		s.wait(`\? keys`)
		s.keys("q")
		s.wait(`it ended 0`)
	})
	t.Run("damaged", func(t *testing.T) {
		s := newSession(t, 80, 24, []string{"TERM=vt220", "NO_COLOR=1"}, program+" browse "+filepath.Join(root, "testdata/captures/derived-cut-callback41.pcap.zst"))
		s.wait(`zst incomplete\n[\s\S]*broken at byte 39932`)
		s.keys("q")
		s.wait(`is\s+truncated\s+at\s+byte[\s\S]*ended 3`)
	})
	t.Run("standard input", func(t *testing.T) {
		s := newSession(t, 80, 24, []string{"TERM=xterm"}, program+" browse - < "+sample)
		s.keys("2")
		s.wait(`RPC 1 of 64`)
		s.keys("Enter")
		s.wait(`0x3da94e54 of connection 0`)
		s.keys("Enter")
		s.wait(`a pipe cannot be read twice`)
		s.keys("q")
		s.wait(`ended 0`)
	})
	t.Run("records", func(t *testing.T) {
		records := filepath.Join(t.TempDir(), "records.json")
		s := newSession(t, 80, 24, []string{"TERM=xterm"}, program+" -q -o json "+sample+" > "+records+"; "+program+" browse "+records)
		s.wait(`\? keys`)
		s.keys("2", "Enter")
		s.wait(`0x3da94e54 of connection 0`)
		s.keys("Enter")
		s.wait(`records have no packets`)
		s.keys("q")
		s.wait(`ended 0`)
	})
	t.Run("pipe", func(t *testing.T) {
		saved := filepath.Join(t.TempDir(), "saved.pcapng")
		s := newSession(t, 80, 24, []string{"TERM=xterm"}, "(cat "+sample+"; sleep 3) | "+program+" browse - -w "+saved)
		s.wait(`live`)
		s.keys("2", "g", "Enter")
		s.wait(`0x3da94e54 of connection 0  Enter: its packet`)
		s.keys("Enter")
		s.wait(`packet 26, 1 of 4`)
		s.keys("q")
		s.wait(`ended 0`)
	})
	t.Run("follow", func(t *testing.T) {
		growing := filepath.Join(t.TempDir(), "growing.pcap")
		data, err := os.ReadFile(sample)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(growing, data[:len(data)/2], 0o666); err != nil {
			t.Fatal(err)
		}
		s := newSession(t, 80, 24, []string{"TERM=xterm"}, program+" browse --follow "+growing)
		s.wait(`live`)
		s.keys("2", "g", "j", "j")
		s.wait(`> +3 +6\.886120[\s\S]*RPC 3 of [1-5]\d,`)
		f, err := os.OpenFile(growing, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(data[len(data)/2:]); err != nil {
			t.Fatal(err)
		}
		s.wait(`> +3 +6\.886120[\s\S]*RPC 3 of 64,`)
		s.keys("Enter")
		s.wait(`0x3fa94e54 of connection 0  Enter: its packet`)
		s.keys("Enter")
		s.wait(`packet \d+, 1 of`)
		s.keys("q")
		s.wait(`ended 0`)
	})
	t.Run("dumb", func(t *testing.T) {
		s := newSession(t, 80, 24, []string{"TERM=dumb"}, program+" browse "+sample)
		s.wait(`TERM\s+is\s+"dumb";\s+set\s+TERM[\s\S]*ended 2`)
	})
}

// TestLiveInTerminal: the tables of live views are shown in place while packets arrive, and once more, for
// good, at the end.
func TestLiveInTerminal(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "rdmadump")
	itself(t, program)
	data, err := os.ReadFile("../../samples/rocev2-callback41.pcap")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ view, first, then, end string }{
		{"stats", `NFS4 OPEN +\d `, `NFS4 CREATE_SESSION +2 `, `NFS4 CREATE_SESSION +2 `},
		{"overview", `so far +46 RPCs, all answered`, `so far +64 RPCs, all answered`, `OK +64 RPCs, all answered[\s\S]*\nCB_RECALL +3 `},
		{"connections", `20049 +27 `, `20049 +37 `, `client closed`},
		{"rates", `TIME +RPCS`, `TIME +RPCS`, `TIME +RPCS`},
		{"files", `/deleg`, `/deleg1 +9 `, `/deleg1 +9 `},
	} {
		t.Run(test.view, func(t *testing.T) {
			t.Parallel()
			growing := filepath.Join(t.TempDir(), "growing.pcap")
			if err := os.WriteFile(growing, data[:len(data)*3/4], 0o666); err != nil {
				t.Fatal(err)
			}
			s := newSession(t, 110, 50, []string{"TERM=xterm"}, "trap : INT; echo earlier; "+program+" live --follow "+growing+" --view "+test.view)
			screen := s.wait(`(?m)^\d+ packets after [\d.]+s, \d connections?; Ctrl-C ends the capture\n[\s\S]*(` + test.first + `)`)
			if strings.Contains(screen, "earlier") {
				t.Errorf("the table is not on a screen of its own:\n%s", screen)
			}
			f, err := os.OpenFile(growing, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.Write(data[len(data)*3/4:]); err != nil {
				t.Fatal(err)
			}
			s.wait(`(?m)^322 packets after [\s\S]*(` + test.then + `)`)
			s.tmux("resize-window", "-x", "60", "-y", "12")
			s.wait(`^322 packets after .{10,42}\n`)
			s.tmux("resize-window", "-x", "110", "-y", "100")
			s.keys("C-c")
			s.wait(`earlier[\s\S]*(` + test.end + `)[\s\S]*ended 0`)
		})
	}
}

// TestLiveOutage: while a capture comes from a pipe, a server that stops is a problem that goes on, and is told for a minute after the server came
// back.
func TestLiveOutage(t *testing.T) {
	t.Parallel()
	program, pipe := filepath.Join(t.TempDir(), "rdmadump"), filepath.Join(t.TempDir(), "pipe")
	itself(t, program)
	if out, err := exec.Command("mkfifo", pipe).CombinedOutput(); err != nil {
		t.Skipf("there are no named pipes: %v: %s", err, out)
	}
	s := newSession(t, 110, 50, []string{"TERM=xterm"}, "trap : INT; "+program+" live - --view overview <"+pipe)
	f, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := synth.New()
	sent := 0
	play := func() { // what was captured since
		var b bytes.Buffer
		if err := w.WritePcapng(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(b.Bytes()[sent:]); err != nil {
			t.Fatal(err)
		}
		sent = b.Len()
	}
	answered := func(c *synth.Conn, seconds int) {
		for range seconds {
			c.Client.Call(synth.Getattr3())
			c.Server.Ack()
			w.Advance(time.Millisecond)
			c.Server.Reply(synth.Getattr3Reply())
			c.Client.Ack()
			w.Advance(time.Second)
		}
	}
	c := w.RoCE(synth.Options{})
	c.Connect()
	answered(c, 5)
	play()
	s.wait(`so far +5 RPCs, all answered`)
	first, second := synth.Getattr3(), synth.Read3(0, 16)
	first.XID, second.XID = 0x77770001, 0x77770002
	calls := append(c.Client.Call(first), c.Client.Call(second)...)
	for range 7 { // no answer, until the client closes the connection
		w.Advance(time.Second)
		w.Retransmit(calls...)
	}
	c.Client.DREQ()
	w.Advance(3 * time.Second)
	again := c.Another(synth.Options{})
	again.REQ()
	w.Advance(time.Second)
	again.REQ()
	w.Advance(time.Second)
	play()
	s.wait(`1 ERROR +network or server: no packet from 10\.2\.0\.1 for [\d.]+ s, to the end`)
	again = c.Another(synth.Options{})
	again.Connect()
	again.Client.Call(first)
	again.Client.Call(second)
	again.Server.Ack()
	reply, data := synth.Getattr3Reply(), synth.Read3Reply(make([]byte, 16))
	reply.XID, data.XID = first.XID, second.XID
	again.Server.Reply(reply)
	again.Server.Reply(data)
	again.Client.Ack()
	answered(again, 10)
	play()
	s.wait(`1 ERROR +network or server: no packet from 10\.2\.0\.1 for [\d.]+ s, came back`)
	answered(again, 60)
	play()
	if screen := s.wait(`so far +77 RPCs, all answered`); strings.Contains(screen, "ERROR") {
		t.Errorf("a minute after the server came back:\n%s", screen)
	}
	s.keys("C-c")
	s.wait(`1 ERROR[\s\S]*came back[\s\S]*ended 0`)
}
