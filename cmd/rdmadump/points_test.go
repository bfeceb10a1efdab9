package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// TestLostPackets: each slow RPC of a pair of captures names the packets that were lost or damaged and made it slow, with
// the capture point whose numbers they have.
func TestLostPackets(t *testing.T) {
	const client, server = "ends-stormall42-client.pcap.zst", "ends-stormall42-server.pcap.zst"
	want := map[string]struct {
		events []string // of the timeline
		waits  []string
		said   string
	}{
		"0x3e2c34fc": {
			[]string{"lost write 1218 " + server, "bad_icrc write 1235 " + server},
			[]string{"write 1218 " + server, "write 1235 " + server},
			"Lost on the way: RDMA Write, packet 1218 of " + server + ". Damaged on the way: RDMA Write, packet 1235 of " + server + ".",
		},
		"0xc02599c4": {
			[]string{"bad_icrc call 430 " + server, "lost write 444 " + server},
			[]string{"call 430 " + server, "write 444 " + server},
			"Lost on the way: RDMA Write, packet 444 of " + server + ". Damaged on the way: Call, packet 430 of " + server + ".",
		},
		"0xc52599c4": {
			[]string{"bad_icrc read_request 510 " + server + ": damaged on the way"},
			[]string{"read_request 510 " + server},
			"Damaged on the way: RDMA Read, packet 510 of " + server + ".",
		},
		"0xb22599c4": { // an ACK that was damaged, to that of another protocol, made nothing slow
			[]string{"bad_icrc ack 151 " + server + ": damaged on the way", "bad_icrc read_done 162 " + server},
			[]string{"read_done 162 " + server},
			"Damaged on the way: Read response, packet 162 of " + server + ".",
		},
		"0x372c34fc": {
			[]string{"lost call 1162 " + client},
			[]string{"call 1162 " + client},
			"in packet 1165 of " + server + ", when its timer expired: no packet of this RPC followed packet 1162 of " + client + " until then. Lost on the way: Call, packet 1162 of " + client + ".",
		},
		"0x212699c4": {nil, nil, "82.65 ms of 102.45 ms passed in the network on the way to the server (seen at both ends); none of its packets was lost."},
		"0x322c34fc": {nil, nil, "The server took 480.28 ms of 500.47 ms (seen at both ends)."},
	}
	found := 0
	for _, r := range recordsOf(t, bothEnds...) {
		xid, _ := r["xid"].(string)
		w, is := want[xid]
		if r["type"] != "transaction" || !is {
			continue
		}
		found++
		var events, waits []string
		for _, e := range r["timeline"].([]any) {
			if e := e.(map[string]any); e["event"] == "lost" || e["event"] == "bad_icrc" {
				event := fmt.Sprint(e["event"], " ", e["of"], " ", e["packet"], " ", e["point"])
				if reason, known := e["reason"]; known {
					event += fmt.Sprint(": ", reason)
				}
				events = append(events, event)
			}
		}
		for _, x := range r["waits"].([]any) {
			list, _ := x.(map[string]any)["lost"].([]any)
			for _, l := range list {
				l := l.(map[string]any)
				waits = append(waits, fmt.Sprint(l["event"], " ", l["packet"], " ", l["point"]))
				if l["xid"] != xid {
					t.Errorf("%s: the XID of a lost packet is %v", xid, l["xid"])
				}
			}
		}
		if !slices.Equal(events, w.events) || !slices.Equal(waits, w.waits) {
			t.Errorf("%s: events %q and lost packets of waits %q; want %q and %q", xid, events, waits, w.events, w.waits)
		}
		var out bytes.Buffer
		run(t.Context(), append([]string{"-q", "--xid", xid}, bothEnds...), &out, io.Discard)
		for _, e := range w.events { // each has a row with its packet
			word, packet := "lost on the way", strings.Fields(e)[2]
			if _, reason, known := strings.Cut(e, ": "); known {
				word = reason
			} else if strings.HasPrefix(e, "bad_icrc") {
				word = "bad ICRC"
			}
			if row := regexp.MustCompile(`(?m)^.* ` + packet + ` .*` + word); !row.MatchString(out.String()) {
				t.Errorf("%s: the ladder has no row of packet %s with %q:\n%s", xid, packet, word, out.String())
			}
		}
		for _, missing := range []string{"Call with a bad ICRC"} {
			if xid == "0x372c34fc" && strings.Contains(out.String(), missing) {
				t.Errorf("%s: a lost Call is shown as damaged:\n%s", xid, out.String())
			}
		}
	}
	if found != len(want) {
		t.Errorf("%d of the transactions were found, want %d", found, len(want))
	}
}

// TestStatsSplit: stats sums up where the time of the RPCs passed, as text, JSON and CSV. Without several points, it does
// not.
func TestStatsSplit(t *testing.T) {
	sums := map[string][5]int64{}
	fields := []string{"client_ns", "request_network_ns", "server_ns", "reply_network_ns", "server_send_ns"}
	number := func(v any) int64 {
		text, _ := v.(json.Number)
		n, err := text.Int64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, r := range recordsOf(t, bothEnds...) {
		split, is := r["split"].(map[string]any)
		if r["type"] != "transaction" || !is {
			continue
		}
		name := fmt.Sprint("NFS4 ", r["operation"])
		s := sums[name]
		for i, f := range fields {
			s[i] += number(split[f])
		}
		sums[name] = s
	}
	found := 0
	for _, r := range recordsOf(t, append([]string{"stats"}, bothEnds...)...) {
		want, is := sums[fmt.Sprint(r["name"])]
		if !is {
			continue
		}
		found++
		split := r["split"].(map[string]any)
		for i, f := range fields {
			if got := number(split[f]); got != want[i] {
				t.Errorf("%v: %s is %d, want %d", r["name"], f, got, want[i])
			}
		}
		if n := number(split["transactions"]); n == 0 || n > number(r["attempts"]) {
			t.Errorf("%v: %d transactions", r["name"], n)
		}
	}
	if found < 5 {
		t.Errorf("%d operations", found)
	}
	text := func(args ...string) string {
		var out bytes.Buffer
		run(t.Context(), append([]string{"stats", "-q"}, args...), &out, io.Discard)
		return out.String()
	}
	read := sums["NFS4 READ"]
	all := read[0] + read[1] + read[2] + read[3]
	share := fmt.Sprintf("%d%%/%d%%/%d%%", (read[0]*100+all/2)/all, ((read[1]+read[3])*100+all/2)/all, (read[2]*100+all/2)/all)
	if both := text(append(bothEnds, "--width", "300")...); !strings.Contains(both, "CLIENT/NETWORK/SERVER") || !strings.Contains(both, share) {
		t.Errorf("the table does not show %s:\n%s", share, both)
	}
	if one := text(bothEnds[0], "--width", "300"); strings.Contains(one, "CLIENT/NETWORK/SERVER") {
		t.Errorf("the table of one point has the column:\n%s", one)
	}
	heading, rows, _ := strings.Cut(text(append(bothEnds, "-o", "csv")...), "\n")
	if !strings.Contains(heading, ",split.client_ns,split.request_network_ns,split.server_ns,split.reply_network_ns,") ||
		!strings.Contains(rows, fmt.Sprintf(",%d,%d,%d,%d,", read[0], read[1], read[2], read[3])) {
		t.Errorf("CSV is %s\n%s", heading, rows)
	}
}

// TestLadderPoints: the ladder of captures at two points shows the packet of each Call and Reply in the column of the
// capture that has it.
func TestLadderPoints(t *testing.T) {
	for _, files := range [][]string{bothEnds, recordedEnds("roce-outage41")} {
		rows := 0
		for _, r := range recordsOf(t, files...) {
			if r["type"] != "transaction" || r["reply"] == nil || rows > 40 {
				continue
			}
			var out bytes.Buffer
			run(t.Context(), append([]string{"-q", "--conn", value(r, "connection"), "--xid", value(r, "xid")}, files...), &out, io.Discard)
			ladder := out.String()[strings.Index(out.String(), "      TIME "):]
			head, _, _ := strings.Cut(ladder, "\n")
			for _, e := range r["timeline"].([]any) {
				e := e.(map[string]any)
				name := map[string]string{"call": "Call", "reply": "Reply"}[fmt.Sprint(e["event"])]
				column := "client"
				if strings.Contains(fmt.Sprint(e["point"]), "-server") {
					column = "server"
				}
				end := strings.Index(head, column) + len(column)
				for line := range strings.Lines(ladder) {
					if name == "" || !strings.Contains(line, name+" RDMA_") && !strings.Contains(line, name+" retransmitted, RDMA_") {
						continue
					}
					rows++
					words := strings.Fields("no number " + line[len("      TIME"):end])
					if got := words[len(words)-1]; got != fmt.Sprint(e["packet"]) && !strings.HasSuffix(got, fmt.Sprint("-", e["packet"])) {
						t.Errorf("%v: the %s is packet %v of %v, and its line is\n%s", r["xid"], name, e["packet"], e["point"], line)
					}
				}
			}
		}
		if rows < 20 {
			t.Errorf("%d lines of Calls and Replies were compared", rows)
		}
	}
}

// TestDamageOfCall: a Call that was damaged on the way was dropped because of the checksum of its transport. If no checksum shows the
// damage, because the headers are not those of its connection any more, none is named.
func TestDamageOfCall(t *testing.T) {
	for _, c := range []struct {
		recording string
		client    int64 // number of the lost Call at the client
		later     int64 // by how much the clock of the server is ahead, in nanoseconds
		xid       string
		at        int // which byte is damaged
		want      string
	}{
		{"iw-twosided", 2493, 756_170_000, "0x1eef82e6", 120, "Call with a bad TCP checksum, dropped by its receiver,"},
		{"iw-twosided", 2493, 756_170_000, "0x1eef82e6", 12, "Call damaged on the way, dropped by its receiver,"}, // EtherType
		{"roce-burst41", 878, 205_700_000, "0x278ca522", 120, " Call, bad ICRC: dropped by its receiver "},
		{"roce-burst41", 878, 205_700_000, "0x278ca522", 12, "Call damaged on the way, dropped by its receiver,"},
	} {
		files := recordedEnds(c.recording)
		frames, _ := testkit.Frames(t, files[1])
		sent, _ := testkit.Frames(t, files[0])
		call := sent[c.client-1]
		call.Data = bytes.Clone(call.Data)
		call.Data[c.at] ^= 4
		call.Time += c.later + 300_000
		i := slices.IndexFunc(frames, func(f capture.Frame) bool { return f.Time > call.Time })
		files[1] = filepath.Join(t.TempDir(), "server.pcapng")
		if err := os.WriteFile(files[1], testkit.Pcapng(slices.Insert(frames, i, call), 9), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		run(t.Context(), append([]string{"-q", "--width", "200", "--xid", c.xid}, files...), &out, io.Discard)
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%s, byte %d: want %q in\n%s", c.recording, c.at, c.want, &out)
		}
	}
}

// TestMarksOnPath: packets that were lost between two points have another mark than those that arrived damaged. The
// numbers are those of the switch between the points. It lost packets 566, 910 and 1502 of the client, too, of which the captures show
// only that one lacks them: no side missed them.
func TestMarksOnPath(t *testing.T) {
	for mark, want := range map[string][]string{
		"lost_on_path":    {"110 client", "444 server", "1162 client", "1218 server", "1380 server"},
		"damaged_on_path": {"151 server", "510 server", "801 client", "1128 client", "1235 server"},
	} {
		var out bytes.Buffer
		run(t.Context(), append([]string{"packets", "-q", "-e", "number", "-e", "point", "-Y", "marks == " + mark}, bothEnds...), &out, io.Discard)
		got := strings.NewReplacer("\tends-stormall42-", " ", ".pcap.zst", "").Replace(out.String())
		if lines := strings.Split(strings.TrimSpace(got), "\n"); !slices.Equal(lines, want) {
			t.Errorf("%s: %q, want %q", mark, lines, want)
		}
	}
}

// TestStallsAtPoints: a stall of an RDMA operation begins after its first packet, also if that packet was lost between the points and
// a later copy was delivered.
func TestStallsAtPoints(t *testing.T) {
	stalled := 0
	for _, files := range [][]string{bothEnds, recordedEnds("roce-outage41"), recordedEnds("roce-burst41")} {
		for _, r := range recordsOf(t, append([]string{"rdma", "-Y", "stalled_ns > 0"}, files...)...) {
			for _, w := range r["waits"].([]any) {
				stalled++
				if w := w.(map[string]any); fmt.Sprint(w["from"]) < value(r, "sent") {
					t.Errorf("operation %v of %s was sent at %v and stalled from %v on", r["id"], files[0], r["sent"], w["from"])
				}
			}
		}
	}
	if stalled < 20 {
		t.Errorf("%d stalls", stalled)
	}
}
