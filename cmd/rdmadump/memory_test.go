package main

import (
	"bytes"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// hogs lists captures of a few megabytes, compressed, whose state would take all memory without a
// limit.
var hogs = []struct {
	name string
	make func(w *synth.Wire)
}{
	{"unfinished iWARP Sends", func(w *synth.Wire) {
		for range 2000 {
			c := w.IWARP(synth.Options{ManualAck: true})
			c.MPARequest()
			c.MPAReply()
			for i := range 50 {
				c.Client.Segment(iwarp.Segment{Opcode: iwarp.Send, Sequence: 1, Offset: uint64(i) * 16000, Payload: make([]byte, 16000)})
			}
		}
	}},
	{"TCP flows after holes", func(w *synth.Wire) {
		for range 500 {
			c := w.IWARP(synth.Options{ManualAck: true})
			c.MPARequest()
			c.MPAReply()
			c.Client.Sequence += 1000
			for range 400 {
				c.Client.Stream(make([]byte, 9000))
			}
		}
	}},
	{"unanswered Calls", func(w *synth.Wire) {
		for range 70000 / 64 {
			c := w.RoCE(synth.Options{ManualAck: true})
			c.Connect()
			for range 64 {
				c.Client.Call(synth.Call{Program: 100003, Version: 3, Procedure: 6, Writes: [][]rpcrdma.Segment{manySegments(40)}})
			}
		}
	}},
	{"large chunk lists", func(w *synth.Wire) {
		c := w.RoCE(synth.Options{ManualAck: true, MTU: 4096})
		c.Connect()
		for range 200 {
			c.Client.Call(synth.Call{Program: 100003, Version: 3, Procedure: 6, Writes: [][]rpcrdma.Segment{manySegments(40000)}})
		}
	}},
	{"one large chunk list, and Replies to it", func(w *synth.Wire) {
		c := w.RoCE(synth.Options{ManualAck: true, MTU: 4096})
		c.Connect()
		for range 100 {
			call := synth.Call{Program: 100003, Version: 3, Procedure: 6, Writes: [][]rpcrdma.Segment{manySegments(40000)}}
			c.Client.Call(call)
			c.Server.Reply(synth.NullReply().To(call))
		}
	}},
	{"chunks without segments", func(w *synth.Wire) {
		c := w.RoCE(synth.Options{ManualAck: true, MTU: 4096})
		c.Connect()
		for range 90 {
			c.Client.Call(synth.Call{Program: 100003, Version: 3, Procedure: 6, Writes: make([][]rpcrdma.Segment, 100000)})
		}
	}},
	{"connections", func(w *synth.Wire) {
		for range 150000 {
			w.RoCE(synth.Options{}).REQ()
		}
	}},
	{"queue pairs without handshake", func(w *synth.Wire) {
		o := synth.Options{Client: synth.End{Addr: netip.MustParseAddr("10.0.0.1")}, Server: synth.End{Addr: netip.MustParseAddr("10.0.0.2")}}
		for range 200000 {
			w.RoCE(o).Client.Call(synth.Null())
		}
	}},
	{"addresses", func(w *synth.Wire) {
		for i := range 200000 {
			c := w.RoCE(synth.Options{Client: synth.End{Addr: netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)})}})
			c.Client.Call(synth.Null())
		}
	}},
	{"pieces of what moved", func(w *synth.Wire) {
		c := w.RoCE(synth.Options{ManualAck: true, MTU: 4096})
		c.Connect()
		for h := range uint32(400) {
			c.Client.Call(synth.Call{Program: 100003, Version: 3, Procedure: 6, Writes: [][]rpcrdma.Segment{{{Handle: h, Length: 1 << 20}}}})
			for i := range uint64(500) {
				c.Server.Write(h, i*16, []byte("data"))
			}
		}
	}},
	{"Reply chunks", func(w *synth.Wire) {
		for range 400 {
			c := w.RoCE(synth.Options{ManualAck: true, MTU: 4096})
			c.Connect()
			for h := range uint32(8) {
				c.Client.Call(synth.Call{Program: 100003, Version: 3, Procedure: 6, ReplyChunk: []rpcrdma.Segment{{Handle: h, Length: 1 << 20}}})
				c.Server.Write(h, 0, make([]byte, 200000))
			}
		}
	}},
	{"events", func(w *synth.Wire) {
		for range 60 {
			c := w.RoCE(synth.Options{ManualAck: true, MTU: 4096})
			c.Connect()
			for x := range uint32(4) {
				c.Client.Call(synth.Call{XID: x + 1, Program: 100003, Version: 3, Procedure: 6, Writes: [][]rpcrdma.Segment{{{Handle: x, Length: 1 << 20}}}})
				for range 2000 {
					c.Server.Write(x, 0, []byte("data"))
				}
			}
		}
	}},
	{"Calls with events, and Calls after them", func(w *synth.Wire) {
		c := w.RoCE(synth.Options{ManualAck: true, MTU: 4096})
		c.Connect()
		const n = 20000
		for x := range uint32(n) {
			c.Client.Call(synth.Call{XID: x + 1, Program: 100003, Version: 3, Procedure: 6, Writes: [][]rpcrdma.Segment{{{Handle: x, Length: 1 << 20}}}})
		}
		for x := range uint32(n) {
			for range 15 {
				c.Server.Write(x, 0, []byte("data"))
			}
			c.Server.Reply(synth.Reply{XID: x + 1})
		}
		for x := range uint32(n) {
			c.Client.Call(synth.Call{XID: x + 1 + n, Program: 100003, Version: 3, Procedure: 6, Writes: [][]rpcrdma.Segment{{{Handle: x, Length: 1 << 20}}}})
		}
	}},
}

func manySegments(n int) []rpcrdma.Segment {
	s := make([]rpcrdma.Segment, n)
	for i := range s {
		s[i] = rpcrdma.Segment{Handle: uint32(i) + 1, Length: 4096, Offset: uint64(i) * 8192}
	}
	return s
}

// writeHog writes a capture as a compressed pcapng file without keeping it in memory.
func writeHog(t *testing.T, file string, hog func(*synth.Wire)) {
	t.Helper()
	to, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	head := testkit.Pcapng([]capture.Frame{{LinkType: 1}}, 9)
	z.Write(head[:len(head)-32])
	w := synth.New()
	w.Sink = func(f *synth.Frame) {
		block := testkit.Pcapng([]capture.Frame{{Time: f.Time, LinkType: 1, Data: f.Data, Length: f.Length}}, 9)
		z.Write(block[len(head)-32:])
	}
	hog(w)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
}

var withHogs = flag.Bool("hogs", false, "measure the memory that crafted captures take")

// allowed is the limit of resident memory, which includes more than --memory (256 MiB by
// default).
const allowed = (256 + 150) << 20

// TestMemory: no view exceeds the limit of resident memory, for any capture. The captures that
// are made to take memory need minutes, and are tested with -hogs.
func TestMemory(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"rdmadump", "resident"} {
		itself(t, filepath.Join(dir, name))
	}
	views := strings.Split(os.Getenv("RDMADUMP_MEMORY_VIEWS"), ";")
	if views[0] == "" {
		views = []string{"transactions", "connections --timeline", "packets -V", "check", "stats", "files"}
	}
	t.Run("honest", func(t *testing.T) {
		file := "../../testdata/captures/rocev2-loss42.pcap.zst"
		for _, view := range views {
			resident, _, _, errs := residentOf(t, dir, append(strings.Fields(view), "-q", file))
			t.Logf("%-22s %4d MiB", view, resident>>20)
			if resident > 64<<20 {
				t.Errorf("%s: %d MiB resident\n%s", view, resident>>20, errs)
			}
		}
	})
	t.Run("rings", func(t *testing.T) {
		for _, packed := range []bool{false, true} {
			files := ring(t, "rocev2-loss42.pcap.zst", "nfs", 20, packed)
			if len(files) < 300 {
				t.Fatalf("%d files, want at least 300", len(files))
			}
			for _, view := range []string{"transactions", "overview"} {
				resident, _, status, errs := residentOf(t, dir, append(strings.Fields(view), "-q", filepath.Dir(files[0])))
				t.Logf("%-22s %4d MiB  %d files (compressed: %v)", view, resident>>20, len(files), packed)
				if resident > 80<<20 || status != command.ExitOK {
					t.Errorf("%s of %d files (compressed: %v): %d MiB resident, exit status %d\n%s", view, len(files), packed, resident>>20, status, errs)
				}
			}
		}
	})
	if !*withHogs {
		return
	}
	t.Run("files of the same time", func(t *testing.T) {
		const limit = (16 + 150) << 20
		frames, _ := testkit.Frames(t, "../../testdata/captures/rocev2-loss42.pcap.zst")
		files, folder := make([][]capture.Frame, 2000), t.TempDir()
		for i := range 8 * len(frames) { // eight times, so that files have more packets than are kept of each
			f := frames[i%len(frames)]
			f.Time += int64(i/len(frames)) * 3600e9
			files[i%len(files)] = append(files[i%len(files)], f)
		}
		z, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, list := range files {
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%05d.pcapng.zst", i)), z.EncodeAll(testkit.Pcapng(list, 9), nil), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		resident, took, status, errs := residentOf(t, dir, []string{"overview", "-q", "--memory", "16MiB", folder})
		t.Logf("%4d MiB  %5.1f s  %d files", resident>>20, took, len(files))
		if resident > limit || status > command.ExitFound {
			t.Errorf("%d MiB resident, %d are allowed; exit status %d\n%s", resident>>20, limit>>20, status, errs)
		}
	})
	for _, hog := range hogs {
		t.Run(hog.name, func(t *testing.T) {
			file := filepath.Join(dir, "hog.pcapng.zst")
			writeHog(t, file, hog.make)
			info, _ := os.Stat(file)
			for _, view := range views {
				resident, took, status, errs := residentOf(t, dir, append(strings.Fields(view), "-q", file))
				t.Logf("%-22s %4d MiB  %5.1f s  exit %d  (%d KiB of capture)", view, resident>>20, took, status, info.Size()>>10)
				if resident > allowed || status > command.ExitFound {
					t.Errorf("%s: %d MiB resident, %d are allowed; exit status %d\n%s", view, resident>>20, allowed>>20, status, errs)
				}
			}
		})
	}
}

// residentOf runs rdmadump and returns its maximum resident memory and its processor time. The
// system attributes to a process also the memory of its parent. The test may be large, and so it
// starts a small process, which starts rdmadump.
func residentOf(t *testing.T, dir string, args []string) (bytesMost int64, seconds float64, status int, errs string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(dir, "resident"), append([]string{filepath.Join(dir, "rdmadump")}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if _, err := fmt.Sscan(string(out), &bytesMost, &seconds, &status); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return bytesMost, seconds, status, stderr.String()
}

// resident runs a command and prints its maximum resident memory, its processor time and its exit
// status.
func resident(args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return command.ExitFailed
	}
	state := cmd.ProcessState
	fmt.Println(residentMost(state), (state.UserTime() + state.SystemTime()).Seconds(), state.ExitCode())
	return command.ExitOK
}
