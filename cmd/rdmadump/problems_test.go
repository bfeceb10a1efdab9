package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// problemsOf returns the errors and warnings that overview has of captures, each as its kind and its places, the worst first. Each command that
// it suggests works, and shows something.
func problemsOf(t *testing.T, args ...string) string {
	t.Helper()
	var list []string
	for _, p := range recordsOf(t, append([]string{"overview"}, args...)...) {
		if p["type"] != "problem" || p["severity"] == "note" {
			continue
		}
		var places, words []string
		for _, place := range p["places"].([]any) {
			places = append(places, place.(string))
		}
		for _, word := range p["command"].([]any) {
			words = append(words, word.(string))
		}
		list = append(list, value(p, "id")+" "+strings.Join(places, "/"))
		var out, errs bytes.Buffer
		if code := run(t.Context(), append(words, args...), &out, &errs); code != command.ExitOK && code != command.ExitFound || out.Len() == 0 {
			t.Errorf("%s: %q: exit status %d, %d bytes: %s", args, words, code, out.Len(), &errs)
		}
	}
	return strings.Join(list, ", ")
}

// shellWords splits a command line whose quoted words have no quotes in them.
func shellWords(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// made writes the capture of a synthetic connection.
func made(t *testing.T, do func(w *synth.Wire, c *synth.Conn)) string {
	t.Helper()
	w := synth.New()
	c := w.RoCE(synth.Options{})
	do(w, c)
	path := filepath.Join(t.TempDir(), "made.pcapng")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := w.WritePcapng(f); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestProblemsMade: problems that no available capture shows.
func TestProblemsMade(t *testing.T) {
	late := func(w *synth.Wire, c *synth.Conn) {
		c.Connect()
		for range 3 {
			c.Client.Call(synth.Getattr3())
			c.Server.Ack()
			w.Advance(1500 * time.Millisecond)
			c.Server.Reply(synth.Getattr3Reply())
			c.Client.Ack()
		}
		c.Disconnect(c.Client)
	}
	for _, c := range []struct {
		name string
		do   func(w *synth.Wire, c *synth.Conn)
		want string
	}{
		{"a late server", late, "slow-rpc network/server"},
		{"a server that seems late because of a clock of whole seconds", func(w *synth.Wire, c *synth.Conn) {
			late(w, c)
			for _, f := range w.Frames {
				f.Time -= f.Time % 1e9
			}
		}, "slow-rpc network/server"},
		{"a violation, and Replies that were not captured", func(w *synth.Wire, c *synth.Conn) {
			c.Connect()
			c.RPC(synth.Getattr3(), synth.Reply{Credits: synth.Zero, Results: synth.Getattr3Reply().Results})
			for range 3 {
				w.Drop(c.Client.RPC(synth.Getattr3(), synth.Getattr3Reply())[1:3]...)
			}
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			c.Disconnect(c.Client)
		}, "protocol-violation server"},
		{"more Calls than credits, because Replies are missing", func(w *synth.Wire, c *synth.Conn) {
			reply := synth.Getattr3Reply()
			reply.Credits = 4
			c.RPC(synth.Getattr3(), reply)
			for range 4 {
				c.Client.Call(synth.Getattr3())
			}
			for range 20 {
				c.Client.Call(synth.Getattr3())
				w.Advance(5 * time.Millisecond)
				c.Server.Reply(reply)
				c.Client.Ack()
			}
		}, ""},
		{"a late server in an incomplete capture", func(w *synth.Wire, c *synth.Conn) {
			late(w, c)
			w.Drop(w.Frames[7])
		}, "slow-rpc network/server, capture-gap capture"},
		{"no answer to a connection request", func(w *synth.Wire, c *synth.Conn) {
			frames := c.Connect()
			w.Drop(frames[1:]...)
			w.Retransmit(frames[0])
		}, ""},
		{"a rejected connection", func(_ *synth.Wire, c *synth.Conn) { c.Reject() }, "mount-failed server"},
		{"a rejection because of lost messages", func(_ *synth.Wire, c *synth.Conn) {
			c.REQ()
			c.Server.REJ(10)
		}, ""},
		{"a minor version that is refused, and another one that is not", func(_ *synth.Wire, c *synth.Conn) {
			c.Connect()
			c.Client.RPC(synth.Compound(synth.XDR{}.Word(42)), synth.CompoundFailed(10021))
			for range 3 {
				c.Client.RPC(synth.Getattr3(), synth.Getattr3Reply())
			}
			c.Disconnect(c.Client)
		}, ""},
		{"a session that is not destroyed", func(_ *synth.Wire, c *synth.Conn) {
			c.Connect()
			c.Client.RPC(synth.Compound(synth.XDR{}.Word(57)), synth.CompoundFailed(10074)) // NFS4ERR_CLIENTID_BUSY
			c.Disconnect(c.Client)
		}, ""},
		{"files that do not exist", func(_ *synth.Wire, c *synth.Conn) {
			c.Connect()
			c.Client.RPC(synth.Getattr3(), synth.Getattr3Reply())
			c.Client.RPC(synth.Getattr3(), synth.Reply{Results: synth.XDR{}.Word(2)})
			c.Disconnect(c.Client)
		}, ""},
		{"files that are gone", func(_ *synth.Wire, c *synth.Conn) {
			c.Connect()
			for range 5 {
				c.Client.RPC(synth.Getattr3(), synth.Reply{Results: synth.XDR{}.Word(70)})
			}
			c.Disconnect(c.Client)
		}, "rpc-failed server"},
		{"a refused mount", func(_ *synth.Wire, c *synth.Conn) {
			c.Connect()
			c.Client.RPC(synth.Compound(synth.XDR{}.Word(42)), synth.CompoundFailed(10021))
			c.Disconnect(c.Client)
		}, "mount-failed server"},
	} {
		if got := problemsOf(t, made(t, c.do)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestSignalsOfIntervals: the intervals of stats have the signals of congestion that the overview counts. They are not known by group, and
// of records that do not have the packets.
func TestSignalsOfIntervals(t *testing.T) {
	path := made(t, func(w *synth.Wire, c *synth.Conn) {
		pause := []byte{0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0x08, 0x01, 0x01, 0, 1 << 3, 17 + 8: 0xff, 59: 0}
		c.Connect()
		for i := range 4 {
			c.Client.TOS, c.Server.TOS = 3, 2
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			if i < 2 {
				c.Server.CNP()
				w.Other(synth.LinkEthernet, pause)
			}
			w.Advance(time.Second)
		}
		c.Disconnect(c.Client)
	})
	lines := filepath.Join(t.TempDir(), "lines.json")
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"export", "--format", "records", "-q", path, "-w", lines}, &out, &errs); code != command.ExitOK {
		t.Fatalf("exit status %d: %s", code, &errs)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{path}, "[[2,1,1],[2,1,1],[2,0,0],[2,0,0],[0,0,0]]"},
		{[]string{path, "--conn", "0"}, "[[2,1,1],[2,1,1],[2,0,0],[2,0,0],[0,0,0]]"},
		{[]string{path, "--conn", "7"}, "[[0,0,1],[0,0,1],[0,0,0],[0,0,0],[0,0,0]]"},
		{[]string{path, "--from", "1"}, "[[2,1,1],[2,0,0],[2,0,0],[0,0,0]]"},
		{[]string{path, "--by", "client"}, "[[null,null,null],[null,null,null],[null,null,null],[null,null,null],[null,null,null]]"},
		{[]string{lines}, "[[null,null,null],[null,null,null],[null,null,null],[null,null,null],[null,null,null]]"},
	} {
		var out, errs bytes.Buffer
		run(t.Context(), append([]string{"stats", "-q", "--every", "1s", "-o", "json", "--jq", "[.ce_marks,.cnps,.pauses]"}, c.args...), &out, &errs)
		if got := "[" + strings.ReplaceAll(strings.TrimSpace(out.String()), "\n", ",") + "]"; got != c.want {
			t.Errorf("%v: %s, want %s: %s", c.args, got, c.want, &errs)
		}
	}
	out.Reset()
	run(t.Context(), []string{"overview", "-q", "-o", "json", "--jq", "select(.type == \"overview\") | [.health.ce_marks,.health.cnps,.health.pauses]", path}, &out, &errs)
	if got := strings.TrimSpace(out.String()); got != "[8,2,2]" {
		t.Errorf("the overview counts %s, want [8,2,2]", got)
	}
}

// TestSumsOfMeanwhile: what RPCs met on their connection is the same in each form of stats, which computes it only if it is shown or used.
func TestSumsOfMeanwhile(t *testing.T) {
	path := made(t, func(w *synth.Wire, c *synth.Conn) {
		c.Connect()
		for i := range 4 {
			c.Client.TOS, c.Server.TOS = 2, 3
			c.Client.Call(synth.Getattr3())
			c.Server.Ack()
			w.Advance(time.Duration(i) * time.Millisecond)
			c.Server.Reply(synth.Getattr3Reply())
			c.Client.Ack()
			w.Advance(time.Second)
		}
		c.Disconnect(c.Client)
	})
	for _, c := range []struct{ args, want string }{
		{"--every 1s -o json --jq .congested", "1 1 1 1 0"},
		{"--every 1s -e congested", "1 1 1 1 0"},
		{"--every 1s --by client,server -o csv -e congested", "congested 1 1 1 1 0"},
		{"--every 1s --columns congested", "CONGESTED 1 1 1 1 0"},
		{"--every 1s --by client,server -e round_trips.min_ns,round_trips.max_ns", "1000 1000 1000 1000 1000 1000 1000 1000"},
		{"-e congested", "4"},
		{"-o json --jq .congested", "4"},
		{"-o csv -e congested", "congested 4"},
		{"-Y congested>3 -e rpcs", "4"},
	} {
		var out, errs bytes.Buffer
		run(t.Context(), append(strings.Fields("stats -q "+c.args), path), &out, &errs)
		if got := strings.Join(strings.Fields(out.String()), " "); got != c.want {
			t.Errorf("%s: %s, want %s: %s", c.args, got, c.want, &errs)
		}
	}
}

// partOf writes the frames of a capture that a function wants, by their position and the last byte of their IPv4 source
// address.
func partOf(t *testing.T, path string, wanted func(i int, source byte) bool) string {
	t.Helper()
	frames, _ := testkit.Frames(t, path)
	to := filepath.Join(t.TempDir(), "part.pcapng")
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := capture.NewWriter(out)
	if err := w.Begin(""); err != nil {
		t.Fatal(err)
	}
	const source = 14 + 15 // in an Ethernet frame
	for i := range frames {
		if f := &frames[i]; len(f.Data) > source && wanted(i, f.Data[source]) {
			if err := w.Write(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestProblemsOfParts: a part of a healthy capture has no trouble, a capture of one direction says so first, and what a hole
// may contain is not missing.
func TestProblemsOfParts(t *testing.T) {
	for _, c := range []struct {
		name, capture string
		wanted        func(i int, source byte) bool
		want          string
	}{
		{"a middle", "rocev2-nfs41", func(i int, _ byte) bool { return i >= 800 && i < 1600 }, ""},
		{"the client", "rocev2-nfs41", func(_ int, source byte) bool { return source == 2 }, "capture-gap capture"},
		{"the server", "rocev2-nfs41", func(_ int, source byte) bool { return source == 1 }, "capture-gap capture"},
		{"the server of a bad network", "rocev2-storm41", func(_ int, source byte) bool { return source == 1 }, "capture-gap capture, corruption network, retransmission network"},
		{"a hole", "rocev2-nfs41", func(i int, _ byte) bool { return i < 900 || i >= 1500 }, "capture-gap capture"},
	} {
		if got := problemsOf(t, partOf(t, "../../testdata/captures/"+c.capture+".pcap.zst", c.wanted)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestProblemsOfDisorder: what the order of the packets in the file seems to show is not attributed to the network.
func TestProblemsOfDisorder(t *testing.T) {
	for _, name := range []string{"rocev2-nfs41", "rocev2-loss42"} {
		frames, _ := testkit.Frames(t, "../../testdata/captures/"+name+".pcap.zst")
		for i := 10; i+20 < len(frames); i += 20 { // a packet comes some packets later
			f := frames[i]
			copy(frames[i:], frames[i+1:i+8])
			frames[i+7] = f
		}
		path := filepath.Join(t.TempDir(), "disorder.pcapng")
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := capture.NewWriter(out)
		if err := w.Begin(""); err != nil {
			t.Fatal(err)
		}
		for i := range frames {
			if err := w.Write(&frames[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Finish(), out.Close()); err != nil {
			t.Fatal(err)
		}
		if got := problemsOf(t, path); got != "capture-gap capture" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestHealthOfWindow: with --from and --to, the numbers are those of the packets of that time, each as often as packets lists
// it.
func TestHealthOfWindow(t *testing.T) {
	const path = "../../testdata/captures/rocev2-storm41.pcap.zst"
	total := int64(0)
	for _, window := range [][]string{{"--to", "7.9999995"}, {"--from", "8", "--to", "9.9999995"}, {"--from", "10"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), append([]string{"overview", "-q", "--jq", `select(.type == "overview")`, path}, window...), &out, &errs); code != command.ExitOK {
			t.Fatalf("%v: exit status %d: %s", window, code, &errs)
		}
		var o analyze.Overview
		if err := json.NewDecoder(&out).Decode(&o); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		args := append([]string{"packets", "-q", "-e", "number", "-Y", "marks == retransmitted", path}, window...)
		if code := run(t.Context(), args, &out, &errs); code != command.ExitOK {
			t.Fatalf("%v: exit status %d: %s", args, code, &errs)
		}
		marked := int64(bytes.Count(out.Bytes(), []byte("\n")))
		if o.Health.Retransmitted != marked {
			t.Errorf("%v: %d packets are retransmitted, and %d are marked", window, o.Health.Retransmitted, marked)
		}
		total += marked
	}
	if n := value(overviewOf(t, path), "health.retransmitted"); n != fmt.Sprint(total) || total == 0 {
		t.Errorf("%d packets of all windows are retransmitted, %s of the whole capture", total, n)
	}
}
