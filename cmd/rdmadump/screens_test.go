package main

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/rocev2"
	"github.com/rdmadump/rdmadump/synth"
)

// The screens that tell what happened, at several widths, and the commands that they print.

// screenOf returns the lines that a command writes, and its exit status.
func screenOf(t *testing.T, args ...string) ([]string, int) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), append(args, "--ascii", "--color", "never"), &out, &errs)
	if code == command.ExitFailed || code == command.ExitUsage {
		t.Errorf("%q: exit status %d: %s", args, code, &errs)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), code
}

// printedCommands returns the commands that lines of a screen suggest.
func printedCommands(lines []string) (list []string) {
	for _, line := range lines {
		if _, typed, found := strings.Cut(line, "rdmadump "); found {
			list = append(list, typed)
		}
	}
	return list
}

// storyScreens returns captures of each sort that an overview may be about, by what they are: the arguments that name them.
func storyScreens(t *testing.T) map[string][]string {
	stories, ends := "../../testdata/stories/", "../../testdata/ends/"
	plain := func(w *synth.Wire, _ *synth.Conn) {
		c := w.IWARP(synth.Options{Client: synth.End{Port: 900}, Server: synth.End{Port: 2049}})
		c.Open()
		for i := range uint32(40) {
			call := synth.Getattr3()
			call.XID = 100 + i
			reply := synth.Getattr3Reply()
			reply.XID = 100 + i
			c.Client.Records(call.Message())
			w.Advance(time.Duration(1+1500*(i/39)) * time.Millisecond)
			c.Server.Records(reply.Message())
		}
		c.Client.FIN()
		c.Server.FIN()
	}
	empty := filepath.Join(t.TempDir(), "empty.pcap")
	if err := os.WriteFile(empty, testkit.Pcapng(nil, 9), 0o600); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.pcap")
	whole, err := os.ReadFile("../../samples/rocev2-callback41.pcap")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	one, _ := testkit.Frames(t, "../../testdata/captures/rocev2-nfs41.pcap.zst")
	oneWay := filepath.Join(t.TempDir(), "oneway.pcapng")
	kept := []capture.Frame{}
	for _, f := range one {
		if fromClient(&f) {
			kept = append(kept, f)
		}
	}
	if err := os.WriteFile(oneWay, testkit.Pcapng(kept, 9), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string][]string{
		"several captures":  {"../../samples/rocev2-callback41.pcap", "../../samples/rocev2-lostlink41.pcap.zst"},
		"several clients":   {made(t, oneOfThree)},
		"two clients":       {stories + "unopened/s05-grace2/server.pcap.zst"},
		"both ends":         {ends + "roce-oneway41-client.pcap.zst", ends + "roce-oneway41-server.pcap.zst"},
		"three points":      {ends + "roce-burst41-client.pcap.zst", ends + "roce-burst41-server.pcap.zst", ends + "roce-burst41-switch.pcap.zst"},
		"nothing wrong":     {"../../samples/rocev2-callback41.pcap"},
		"one direction":     {oneWay},
		"RPC over TCP only": {made(t, plain)},
		"NVMe-oF only":      {"../../testdata/other/rocev2-nvmeloss.pcap.zst"},
		"UD only": {made(t, func(_ *synth.Wire, c *synth.Conn) {
			for range 3 {
				c.Client.Send([]byte("a datagram"), synth.Over(rocev2.UD))
			}
		})},
		"an empty file":       {empty},
		"cut in the middle":   {cut},
		"cut, with a problem": {"../../testdata/captures/derived-cut-callback41.pcap.zst"},
		"many errors":         {"../../samples/rocev2-errors.pcap"},
		"three restarts":      {stories + "rec/s02-killed3/client.pcap.zst"},
		"long headlines":      {stories + "rec/s10-bursts/client.pcap.zst"},
		"a client restarted":  {stories + "unopened/s03-clientreboot/server.pcap.zst"},
		"a server is gone":    {stories + "rec/s30-gone/client.pcap.zst"},
		"an outage":           {"../../samples/rocev2-lostlink41.pcap.zst"},
		"a time":              {"../../samples/rocev2-lostlink41.pcap.zst", "--from", "25", "--to", "50"},
		"a time of nothing":   {"../../samples/rocev2-lostlink41.pcap.zst", "--from", "60", "--to", "61"},
		"no connection": {made(t, func(w *synth.Wire, c *synth.Conn) {
			sent := c.REQ()
			for range 4 {
				w.Advance(4 * time.Second)
				w.Retransmit(sent)
			}
		})},
		"connections refused": {made(t, func(w *synth.Wire, _ *synth.Conn) {
			for range 3 {
				c := w.IWARP(synth.Options{})
				w.Drop(c.Open()[1:]...)
				c.Server.RST()
				w.Advance(time.Second)
			}
		})},
		"no mount": {stories + "rec/s14-refused/client.pcap.zst"},
	}
}

// clientAddress returns the address of a client.
func clientAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, 0, byte(11 + i)}) }

// oneOfThree plays three clients of one server, of which one is never answered.
func oneOfThree(w *synth.Wire, _ *synth.Conn) {
	var list []*synth.Conn
	for i := range 3 {
		c := w.RoCE(synth.Options{Client: synth.End{Addr: clientAddress(i)}})
		c.Connect()
		list = append(list, c)
	}
	for i := range 200 {
		for n, c := range list {
			switch {
			case n < 2 || i < 100:
				c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			case i < 103:
				c.Client.Call(synth.Getattr3())
				c.Server.Ack()
			}
		}
		w.Advance(100 * time.Millisecond)
	}
}

// TestScreens: an overview has at most 24 lines, none is longer than the screen but for commands, which are whole, and from 100 columns on no headline
// is cut.
func TestScreens(t *testing.T) {
	for name, args := range storyScreens(t) {
		for _, width := range []int{80, 100, 160} {
			lines, _ := screenOf(t, append([]string{"overview", "-q", "--width", strconv.Itoa(width)}, args...)...)
			what := fmt.Sprintf("%s, %d columns", name, width)
			if len(lines) > 24 {
				t.Errorf("%s: %d lines", what, len(lines))
			}
			for _, line := range lines {
				_, typed, is := strings.Cut(line, "rdmadump ")
				if width >= 100 && strings.HasSuffix(line, "~") && (strings.Contains(line, " ERROR ") || strings.Contains(line, " WARN ")) {
					t.Errorf("%s: a headline is cut: %s", what, line)
				}
				if n := utf8.RuneCountInString(line); n > width && !is {
					t.Errorf("%s: %d columns: %s", what, n, line)
				}
				if is && !strings.HasSuffix(typed, filepath.Base(args[0])) && !strings.Contains(typed, args[0]) && !strings.HasSuffix(typed, "FILE...") && !strings.Contains(typed, filepath.Dir(args[0])) {
					t.Errorf("%s: the command is not whole: %s", what, line)
				}
			}
			if testing.Verbose() {
				t.Logf("%s\n%s", what, strings.Join(lines, "\n"))
			}
		}
	}
}

// TestScreensStandStill: a table of sums has the same columns, in the same order, for every capture of a kind, and is not wider than the screen.
func TestScreensStandStill(t *testing.T) {
	list := storyScreens(t)
	for _, path := range testkit.Short(t, allCaptures(t)) {
		list[path] = []string{path}
	}
	heading := regexp.MustCompile(`^ *[A-Z][A-Z0-9 /]*[A-Z0-9]( [0-9.]+ [a-z]+ \.\. [0-9.]+ [a-z]+)?$`) // with the scale of LATENCY and LATENCY MAP
	heads := map[string]string{}
	for name, args := range list {
		rpcs := len(recordsOf(t, append([]string{"connections", "-Y", "protocol == rpc or protocol == rpcrdma"}, args...)...)) > 0
		for _, screen := range []string{"stats", "stats --every 1s", "connections", "files", "rdma --top 5", "rdma --by kind"} {
			for _, width := range []int{80, 100, 140} {
				lines, _ := screenOf(t, slices.Concat(strings.Fields(screen), []string{"-q", "--width", strconv.Itoa(width)}, args)...)
				if !heading.MatchString(lines[0]) {
					continue // nothing to show
				}
				key := fmt.Sprintf("%s, %d columns, RPCs: %t, at points: %t", screen, width, rpcs, name == "both ends" || name == "three points")
				head := strings.Join(strings.Fields(heading.ReplaceAllStringFunc(lines[0], func(s string) string {
					before, _, _ := strings.Cut(s, " .. ")
					return strings.TrimRight(before, "0123456789. abcdefghijklmnopqrstuvwxyz")
				})), " ")
				if first, known := heads[key]; known && first != head {
					t.Errorf("%s: %s:\n%s\nothers have\n%s", name, key, head, first)
				}
				heads[key] = head
				for _, line := range lines {
					if n := utf8.RuneCountInString(line); n > width {
						t.Errorf("%s: %s: %d columns: %s", name, key, n, line)
					}
				}
			}
		}
	}
	if len(heads) < 20 {
		t.Errorf("only %d screens", len(heads))
	}
}

// TestTimelines: the timeline of a connection has at most 60 lines, and says nothing of credits that were never all in use.
func TestTimelines(t *testing.T) {
	most := 0
	for _, path := range testkit.Few(allCaptures(t)) {
		lines, _ := screenOf(t, "connections", "--timeline", "-q", "--width", "80", path)
		n := 0
		for _, line := range append(lines, "connection 0") {
			if strings.HasPrefix(line, "connection ") {
				if most = max(most, n); n > 60 {
					t.Errorf("%s: a connection has %d lines", path, n)
				}
				n = 0
			}
			n++
		}
	}
	if most < 30 {
		t.Errorf("the longest timeline has %d lines", most)
	}
}

// TestProblemOfOneClient: the first four lines of an overview name the one of several clients that has the problem, and the record does.
func TestProblemOfOneClient(t *testing.T) {
	path := made(t, oneOfThree)
	for _, width := range []string{"80", "100", "160"} {
		lines, _ := screenOf(t, "overview", "-q", "--width", width, path)
		want := "client " + clientAddress(2).String() + " of 3"
		if first := strings.Join(lines[:4], "\n"); !strings.Contains(first, want) {
			t.Errorf("%s columns: no %q:\n%s", width, want, first)
		}
	}
	for _, p := range recordsOf(t, "problems", path) {
		if p["severity"] != "note" && (value(p, "client") != clientAddress(2).String() || !strings.Contains(value(p, "only"), clientAddress(2).String())) {
			t.Errorf("%s: client %v, only %v", p["id"], p["client"], p["only"])
		}
	}
}

// TestPrintedCommands: each command that a screen prints works and shows something. Those of overview and problems print at most 60 lines.
func TestPrintedCommands(t *testing.T) {
	list := storyScreens(t)
	for _, path := range testkit.Short(t, allCaptures(t)) {
		list[path] = []string{path}
	}
	n := 0
	done := map[string]bool{}
	screens := []string{
		"stats", "stats --every 1s", "connections", "connections --timeline", "files", "rdma --top 3", "rdma --by kind", "tasks", "check", "network", "--top 3",
		"--top 3 -Y|latency > 1ms",
	}
	for name, args := range storyScreens(t) {
		for _, screen := range screens {
			if name == "an empty file" {
				continue
			}
			words, filter, _ := strings.Cut(screen, "|")
			typed := strings.Fields(words)
			if filter != "" {
				typed = append(typed, filter)
			}
			lines, _ := screenOf(t, slices.Concat(typed, []string{"--width", "160"}, args)...)
			for _, next := range printedCommands(lines) {
				if done[next] {
					continue
				}
				done[next] = true
				n++
				shown, code := screenOf(t, append(shellWords(next), "--width", "100")...)
				if code != command.ExitOK && code != command.ExitFound && code != command.ExitBroken || len(shown) < 2 {
					t.Errorf("%s, %s: exit status %d of %s, %d lines", name, screen, code, next, len(shown))
				}
			}
		}
	}
	for name, args := range list {
		var suggested []string
		broken := command.ExitOK
		for _, screen := range []string{"overview", "problems"} {
			lines, code := screenOf(t, append([]string{screen, "-q", "--width", "160"}, args...)...)
			suggested, broken = append(suggested, printedCommands(lines)...), max(broken, code)
		}
		for _, typed := range suggested {
			if done[typed] {
				continue
			}
			done[typed] = true
			n++
			words := shellWords(typed)
			if words[len(words)-1] == "FILE..." {
				words = append(words[:len(words)-1], args...)
			}
			lines, code := screenOf(t, append(words, "--width", "100")...)
			if code != command.ExitOK && !(words[0] == "check" && code == command.ExitFound) && code != broken {
				t.Errorf("%s: exit status %d of %s", name, code, typed)
			}
			text := strings.TrimSpace(strings.Join(lines, ""))
			if len(lines) > 60 || len(lines) < 2 || len(text) < 40 {
				t.Errorf("%s: %s prints %d lines:\n%.400s", name, typed, len(lines), strings.Join(lines, "\n"))
			}
		}
	}
	if n < 140 {
		t.Errorf("only %d commands", n)
	}
	t.Logf("%d commands", n)
}
