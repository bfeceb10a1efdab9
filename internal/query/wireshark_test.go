package query_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// omission is a line of testdata/wireshark-omitted.txt: names of Wireshark's fields that filters do not
// know, as a pattern in which * stands for any characters, and the reason.
type omission struct {
	pattern, reason string
	used            bool
}

func (o *omission) matches(name string) bool {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(o.pattern), `\*`, ".*") + "$").MatchString(name)
}

func omissions(t *testing.T) (all []*omission) {
	f, err := os.Open("testdata/wireshark-omitted.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reason := ""
	for s := bufio.NewScanner(f); s.Scan(); {
		switch line := strings.TrimSpace(s.Text()); {
		case line == "" || strings.HasPrefix(line, "//"):
		case strings.HasPrefix(line, "# "):
			reason = line[2:]
		case reason == "":
			t.Fatalf("no reason before %s", line)
		default:
			all = append(all, &omission{pattern: line, reason: reason})
		}
	}
	return all
}

// wiresharkNames returns the names of all fields of tshark in the protocols that rdmadump decodes.
func wiresharkNames(t *testing.T) (names []string) {
	out, err := exec.Command(testkit.Tshark(t), "-G", "fields").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		parts := strings.Split(line, "\t")
		if parts[0] != "F" {
			continue
		}
		for _, protocol := range []string{"infiniband.", "rpcordma.", "iwarp_mpa.", "iwarp_ddp.", "iwarp_rdma."} {
			if strings.HasPrefix(parts[2], protocol) {
				names = append(names, parts[2])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestWiresharkNames compares the names that filters of packets accept with the list of the installed
// tshark. Each name of tshark's must be known or listed as omitted, with a reason, and each name that
// is known as Wireshark's must exist in tshark.
func TestWiresharkNames(t *testing.T) {
	names, omitted := wiresharkNames(t), omissions(t)
	if len(names) < 600 {
		t.Fatalf("tshark has only %d names", len(names))
	}
	known := 0
	for _, name := range names {
		_, err := query.Resolve(name, query.Packets)
		at := slices.IndexFunc(omitted, func(o *omission) bool { return o.matches(name) })
		switch {
		case err == nil && at >= 0:
			t.Errorf("%s is known, but listed as omitted: %s", name, omitted[at].reason)
		case err == nil:
			known++
		case at < 0:
			t.Errorf("%s is neither known nor listed as omitted", name)
		}
		if at >= 0 {
			omitted[at].used = true
		}
	}
	for _, o := range omitted {
		if !o.used {
			t.Errorf("tshark has no name that matches %s", o.pattern)
		}
	}
	for _, f := range query.Packets.List() {
		for _, name := range f.Wireshark() {
			if protocol, _, _ := strings.Cut(name, "."); slices.Contains([]string{"infiniband", "rpcordma", "iwarp_mpa", "iwarp_ddp", "iwarp_rdma"}, protocol) && !slices.Contains(names, name) {
				t.Errorf("tshark has no field %s, which %s names", name, f.Path)
			}
		}
	}
	t.Logf("%d of %d names are known", known, len(names))
}

// presenceDiffers lists the names that rdmadump has in other packets than tshark, and why.
var presenceDiffers = []struct{ pattern, why string }{
	{"infiniband.cm.req.prim_*gid*", "tshark shows a GID as an IPv4 address if the packet has an IPv4 header; rdmadump has every GID, and those that map an IPv4 address also as that address"},
	{"infiniband.cm.req.prim_flowlabel", "tshark 4.0 reads only the first three of the four bytes: 0x489 from 4899e000, where the upper 20 bits are 0x4899e"},
	{"infiniband.cm.req.prim_pktrate", "tshark 4.0 reads the lower bits of other bytes: 0x8 from 4899e000, where the lower 6 bits are 0"},
	{"infiniband.invariant.crc", "tshark stops where it cannot dissect the payload"},
	{"rpcordma.*", "tshark finds RPC-over-RDMA by a heuristic, which fails on damaged messages and on those of other versions"},
}

// equal reports whether tshark's text is the number n. Text that is no number is not compared.
func equal(n int, text string) bool {
	theirs, err := strconv.ParseUint(text, 0, 64)
	return err != nil || theirs == uint64(n)
}

// TestWiresharkPresence checks that each known name of Wireshark's is in the same packets as in tshark,
// with the same value if that is a number. So a filter that uses the name finds the same packets.
func TestWiresharkPresence(t *testing.T) {
	var names []string
	for _, name := range wiresharkNames(t) {
		if _, err := query.Resolve(name, query.Packets); err == nil {
			names = append(names, name)
		}
	}
	for _, name := range []string{"rocev2-callback41.pcap.zst", "rocev2-errors.pcap.zst", "derived-ib-erf-callback41.pcap.zst", "iwarp-nfs41.pcap.zst", "lab-iwarperrors.pcap.zst"} {
		t.Run(name, func(t *testing.T) {
			plain := filepath.Join(t.TempDir(), "capture")
			frames, _ := testkit.Frames(t, "../../testdata/captures/"+name)
			var file bytes.Buffer
			w := capture.NewWriter(&file)
			for i := range frames {
				if err := w.Write(&frames[i]); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Finish(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(plain, file.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"-r", plain, "-T", "fields"}
			for _, name := range names {
				args = append(args, "-e", name)
			}
			out, err := exec.Command(testkit.Tshark(t), args...).Output()
			if err != nil {
				t.Fatal(err)
			}
			theirs := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
			wrong := map[string]string{}
			packets := 0
			matchAll(t, name, dissect.Handler{Packet: func(p *record.Packet) error {
				columns := strings.Split(theirs[p.Number-1], "\t")
				packets++
				for i, name := range names {
					path, _ := query.Resolve(name, query.Packets)
					ours := query.Packets.Get(p, path)
					if n, isNumber := ours.(int); (ours != nil) != (columns[i] != "") || isNumber && !equal(n, columns[i]) {
						wrong[name] = fmt.Sprintf("packet %d: %v, tshark %q", p.Number, ours, columns[i])
					}
				}
				return nil
			}})
			if packets != len(theirs) {
				t.Errorf("%d packets, tshark has %d", packets, len(theirs))
			}
			for _, name := range names {
				if wrong[name] != "" && !slices.ContainsFunc(presenceDiffers, func(d struct{ pattern, why string }) bool {
					return (&omission{pattern: d.pattern}).matches(name)
				}) {
					t.Errorf("%s differs in %s", name, wrong[name])
				}
			}
		})
	}
}

// TestWiresharkFilters checks filters with Wireshark's names of connection manager messages, of which
// several have fields with the same names in rdmadump, and of parts of fields. tshark finds the same
// numbers of packets.
func TestWiresharkFilters(t *testing.T) {
	const callback = "rocev2-callback41.pcap.zst"
	for _, c := range []struct {
		source string
		want   int
	}{
		{"infiniband.cm.req", 2},
		{"infiniband.cm.req.localqpn == 0x11", 1},
		{"infiniband.cm.rep", 2},
		{"infiniband.cm.rtu.localcommid", 2},
		{"infiniband.cm.drsp.localcommid", 2},
		{"cm.local_comm_id != null", 10},
		{"infiniband.cm.req.serviceid.dport == 20049", 2},
		{`infiniband.cm.req.ip_cm.sip4 == "192.168.77.2"`, 2},
		{"infiniband.cm.req.ip_cm.sip6", 0},
		{"infiniband.aeth.syndrome.opcode == 0", 143},
		{"infiniband.invariant.crc == 0x16b43044", 1},
		{"infiniband.bth and infiniband.aeth", 143},
		{"rpc.msgtyp != 1", 64}, // a field that is absent is not unlike a constant
		{"rpcordma.xid != 3", 128},
		{"nfs.status != 0", 0},
	} {
		if got := count(t, callback, c.source, query.Packets); got != c.want {
			t.Errorf("%d of %s, want %d", got, c.source, c.want)
		}
	}
}
