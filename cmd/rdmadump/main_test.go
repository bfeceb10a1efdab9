package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rdmadump/rdmadump/internal/command"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"rdmadump":        func() { os.Exit(Main()) },
		"rdmadump-extcap": func() { os.Exit(Main()) },
		"replay":          func() { os.Exit(replay(os.Args[1:])) },
		"resident":        func() { os.Exit(resident(os.Args[1:])) },
	})
}

// itself copies the program of this test to a path whose last element is a command of TestMain. The
// copy behaves as that command, so that a test of processes needs no other build.
func itself(t *testing.T, path string) {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	// A child that another test starts meanwhile would have the file open for writing until its exec, and the file could not be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestScript runs the commands in testdata/script.
func TestScript(t *testing.T) {
	captures, err := filepath.Abs("../../testdata/captures")
	if err != nil {
		t.Fatal(err)
	}
	samples, err := filepath.Abs("../../samples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("CAPTURES", captures)
			e.Setenv("SAMPLES", samples)
			e.Setenv("ROOT", filepath.Dir(samples))
			namespace := fmt.Sprintf("rdmadump%d%s", os.Getpid(), filepath.Base(e.WorkDir)) // Scripts run in parallel.
			e.Setenv("NS", namespace)
			e.Defer(func() { exec.Command("ip", "netns", "del", namespace).Run() })
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "netns" {
				return false, fmt.Errorf("unknown condition %s", name)
			}
			probe := fmt.Sprintf("rdmadumpprobe%d", os.Getpid())
			defer exec.Command("ip", "netns", "del", probe).Run()
			return exec.Command("ip", "netns", "add", probe).Run() == nil &&
				exec.Command("ip", "-n", probe, "link", "add", "probe0", "type", "veth", "peer", "name", "probe1").Run() == nil, nil
		},
	})
}

// TestLivePipe: records are written while packets arrive from a pipe that is still open.
func TestLivePipe(t *testing.T) {
	if _, err := exec.LookPath("rdmadump"); err == nil {
		t.Log("rdmadump is installed; the one under test is used")
	}
	sample, err := os.ReadFile("../../samples/rocev2-callback41.pcap")
	if err != nil {
		t.Fatal(err)
	}
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = stdin }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	code := make(chan int)
	go func() {
		code <- run(ctx, []string{"live", "-", "-o", "json"}, written, os.Stderr)
		written.Close()
	}()
	lines := make(chan string, 100)
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- scanner.Text()
		}
		close(lines)
	}()
	next := func(want string) {
		t.Helper()
		select {
		case line := <-lines:
			if !strings.Contains(line, want) {
				t.Errorf("got %s, want a record with %s", line, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("no record with %s while the pipe is open", want)
		}
	}
	// These are the ends of the frame with the Reply and of the frame with its acknowledgement,
	// frames 28 and 29.
	ends := recordEnds(sample)
	feed.Write(sample[:ends[27]])
	next(`"xid":"0x3da94e54"`) // The acknowledgement is missing, so the record comes after a short wait.
	feed.Write(sample[ends[27]:ends[34]])
	next(`"xid":"0x3ea94e54"`)
	cancel() // This has the effect of Ctrl-C while the pipe is open.
	next(`"type":"summary"`)
	if got := <-code; got != command.ExitOK {
		t.Errorf("exit status %d", got)
	}
}

// recordEnds returns the offsets at which the records of a pcap file end.
func recordEnds(file []byte) (ends []int) {
	for at := 24; at < len(file); {
		at += 16 + int(binary.LittleEndian.Uint32(file[at+8:]))
		ends = append(ends, at)
	}
	return ends
}
