package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// onlyFrames writes the frames of a capture that have this Ethernet type and, unless it is 0, this IPv4 protocol.
func onlyFrames(t *testing.T, path string, etherType uint16, protocol byte) string {
	t.Helper()
	frames, _ := testkit.Frames(t, path)
	var kept []capture.Frame
	for _, f := range frames {
		if len(f.Data) > 23 && uint16(f.Data[12])<<8|uint16(f.Data[13]) == etherType && (protocol == 0 || f.Data[23] == protocol) {
			kept = append(kept, f)
		}
	}
	if len(kept) == 0 {
		t.Fatalf("%s has no such frame", path)
	}
	file := filepath.Join(t.TempDir(), "only.pcapng")
	if err := os.WriteFile(file, testkit.Pcapng(kept, 9), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestMessages: messages say what is wrong and what to do, and bytes of file names do not reach a terminal.
func TestMessages(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "b\x1b[2Jx\r.txt")
	if err := os.WriteFile(odd, []byte("hello, world, and a bit more of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	sample := "../../samples/rocev2-callback41.pcap"
	arp := onlyFrames(t, sample, 0x0806, 0)
	tcp := onlyFrames(t, "../../testdata/captures/lab-loss3.pcap.zst", 0x0800, 6)
	late := filepath.Join(t.TempDir(), "late.pcapng")
	first, _ := testkit.Frames(t, sample)
	if err := os.WriteFile(late, testkit.Pcapng([]capture.Frame{{Time: -1, LinkType: 1, Data: first[0].Data}, {Time: -1, LinkType: 1, Data: first[1].Data}}, 9), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string // on standard output or standard error
	}{
		{[]string{odd}, command.ExitUsage, `/b\x1b[2Jx\x0d.txt: the input starts with 68656c6c, which is not pcap`},
		{[]string{odd, sample}, command.ExitUsage, `/b\x1b[2Jx\x0d.txt: the input starts with`},
		{[]string{odd + ".missing"}, command.ExitUsage, `/b\x1b[2Jx\x0d.txt.missing: no such file or directory`},
		{[]string{"report", sample, "-w", odd + "/x.html"}, command.ExitUsage, `x\x0d.txt: not a directory`},
		{[]string{"report", sample, "-w", "/nonexistent/x.html"}, command.ExitUsage, "-w /nonexistent/x.html: cannot create a file in /nonexistent: no such file or directory"},
		{[]string{"stats", "--every", "0", sample}, command.ExitUsage, "--every 0: a duration is a number with a unit, such as 1s or 200ms, and must be longer than 0"},
		{[]string{"stats", "--every", "5", sample}, command.ExitUsage, "--every 5: a duration is a number with a unit"},
		{[]string{"packets", late}, command.ExitOK, "/late.pcapng: the time of packet 1 is after the year 2262; it and the times of 1 further packet are shown as the last time that fits, so durations and rates"},
		{[]string{arp}, command.ExitOK, "4 packets; neither RDMA nor RPC that rdmadump knows (4 packets of ARP): rdmadump packets "},
		{[]string{"check", arp}, command.ExitUsage, "the capture contains neither RDMA nor RPC that rdmadump knows (4 packets of ARP), so nothing was checked"},
		{[]string{"check", "-q", tcp}, command.ExitOK, ""},
		{[]string{"overview", "-q", tcp}, command.ExitOK, "15.8 s, 12 RPCs, RPC over TCP, 192.168.77.2 > 192.168.77.1\n\n  OK     12 RPCs, all answered"},
		{[]string{"compare", "-q", "../../testdata/captures/rocev2-chimera-overrun42.pcap.zst", "../../testdata/captures/rocev2-loss42.pcap.zst", "-Y", `name contains client_to_server`, "-e", "before.values"}, command.ExitOK, "1024\n"},
	} {
		var out bytes.Buffer
		code := run(t.Context(), c.args, &out, &out)
		if code != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("%q: exit status %d, want %d with %q:\n%s", c.args, code, c.code, c.says, &out)
		}
		if strings.ContainsAny(out.String(), "\x1b\r") {
			t.Errorf("%q: control characters in %q", c.args, &out)
		}
		if c.args[0] == "compare" && out.String() != "1024\n" {
			t.Errorf("%q: a connection without thresholds counts as a threshold: %s", c.args, &out)
		}
	}
}

// TestWidth: no row of a table is wider than the terminal, also if a number is longer than those from which the table
// learned its widths.
func TestWidth(t *testing.T) {
	for _, capture := range []string{"iwarp-nfs41.pcap.zst", "rocev2-nfs41.pcap.zst", "lab-loss3.pcap.zst", "rocev2-storm41.pcap.zst"} {
		for _, view := range []string{"transactions", "connections", "packets", "rdma", "stats", "files", "check", "stats --every 1s", "rdma --by kind,side"} {
			for _, width := range []int{80, 120} {
				var out bytes.Buffer
				args := append(strings.Fields(view), "-q", "--width", strconv.Itoa(width), "../../testdata/captures/"+capture)
				run(t.Context(), args, &out, io.Discard)
				checkWidth(t, args, out.String(), width)
			}
		}
	}
	for _, args := range [][]string{
		append([]string{"network"}, bothEnds...), append([]string{"network", "--lost"}, bothEnds...), append([]string{"common"}, bothEnds...), append([]string{"overview"}, bothEnds...),
		{"common", "../../samples/rocev2-slowwrite42.pcap.zst"},
		{"common", "../../samples/rocev2-errors.pcap"},
		{"overview", "../../samples/rocev2-errors.pcap"},
		{"compare", "../../testdata/captures/rocev2-nfs41.pcap.zst", "../../testdata/captures/rocev2-loss42.pcap.zst"},
	} {
		for _, width := range []int{80, 140} {
			var out bytes.Buffer
			run(t.Context(), append(args, "-q", "--width", strconv.Itoa(width)), &out, io.Discard)
			checkWidth(t, args, out.String(), width)
		}
	}
}

// checkWidth fails the test if a line is wider than the terminal. Commands are not wrapped, so that they can be copied.
func checkWidth(t *testing.T, args []string, out string, width int) {
	t.Helper()
	for line := range strings.Lines(out) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width && !strings.Contains(line, ": rdmadump ") {
			t.Errorf("%q with %d columns: %d characters: %s", args, width, n, line)
			break
		}
	}
}

// TestTunnelMessages: fields of tunnels are shown, and tunnels that are not opened are named.
func TestTunnelMessages(t *testing.T) {
	const inner = "020000000001 020000000002 0800 45000030 00010000 4011 66ba 0a000001 0a000002 c000 12b7 001c 0000 04 00 ffff 00 000011 00 000005 00000000 00000000"
	const outer = "02000000000a 02000000000b 0800 45000080 00010000 40"
	write := func(name, frame string) string {
		path := filepath.Join(t.TempDir(), name)
		data := testkit.Unhex(t, frame)
		frames := []capture.Frame{{LinkType: capture.LinkEthernet, Data: data, Length: len(data), Time: 1e18}}
		if err := os.WriteFile(path, testkit.Pcapng(frames, 9), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	erspan := write("erspan.pcap", outer+"2f0000 c6336401 c6336402 100088be 00000007 10640405 00000012"+inner)
	gre := write("gre.pcap", outer+"2f0000 c6336401 c6336402 00008949"+inner)
	vxlan := write("vxlan.pcap", outer+"110000 c6336401 c6336402 c000 2119 006c 0000 08000000 00000100"+inner)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"overview", "-q", erspan}, "over RoCEv2, 10.0.0.1 > 10.0.0.2\n"},
		{[]string{"packets", "-q", "-V", erspan}, "Session ID: 5\n"},
		{[]string{"packets", "-q", erspan, "-e", "erspan.spanid", "-e", "gre_sequence.number", "-e", "bth.psn"}, "5\t7\t5\n"},
		{[]string{"packets", "-q", gre}, "GRE with protocol 0x8949"},
		{[]string{"overview", "-q", gre}, "no RPC and no connection; 1 packet of GRE with protocol 0x8949, which rdmadump does not decode"},
		{[]string{gre}, "1 packet; neither RDMA nor RPC that rdmadump knows (1 packet of GRE with protocol 0x8949, which rdmadump does not decode): rdmadump packets "},
		{[]string{"overview", "-q", vxlan}, "1 packet of VXLAN on UDP port 8473 (--decode-as udp.port==8473,vxlan)"},
		{[]string{"overview", "-q", "--decode-as", "udp.port==8473,vxlan", vxlan}, "over RoCEv2, 10.0.0.1 > 10.0.0.2\n"},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), c.args, &out, &out); code != command.ExitOK || !strings.Contains(out.String(), c.says) {
			t.Errorf("%q: exit status %d, want %q:\n%s", c.args, code, c.says, &out)
		}
	}
}

// TestStandardError: standard error has one line at most unless an input is damaged, and none if the output goes to a file and the line
// would only say that all is well.
func TestStandardError(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/captures/*.zst")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	silent := 0
	for _, path := range testkit.Short(t, paths) {
		for _, view := range []string{"transactions", "overview", "problems", "packets", "rdma", "tasks", "connections", "files", "stats", "check", "export"} {
			var out, said bytes.Buffer
			code := run(t.Context(), []string{view, path, "--width", "100"}, &out, &said)
			if view == "export" {
				said.Reset()
				code = run(t.Context(), []string{view, path, "--format", "trace", "-w", filepath.Join(t.TempDir(), "trace.json")}, &out, &said)
			}
			lines := strings.Count(said.String(), "\n")
			if lines > 1 && code != command.ExitBroken {
				t.Errorf("%s %s: exit status %d, and standard error has %d lines:\n%s", view, path, code, lines, &said)
			}
			if lines == 0 {
				silent++
			} else if onlyScope.MatchString(said.String()) && view != "export" {
				t.Errorf("%s %s says that all is well: %s", view, path, &said)
			}
		}
	}
	if silent == 0 {
		t.Error("no command was silent")
	}
}

// onlyScope matches a summary in which nothing is wrong.
var onlyScope = regexp.MustCompile(`^[0-9,]+ (RPCs?|packets?(, [0-9,]+ of RDMA)?)(, no RPC)?\n$`)
