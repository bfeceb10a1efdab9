package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recordedEnds returns the captures at both ends of a wire with a name.
func recordedEnds(name string) []string {
	return []string{"../../testdata/ends/" + name + "-client.pcap.zst", "../../testdata/ends/" + name + "-server.pcap.zst"}
}

// TestOneEndProves: what the capture at one end proves, captures at both ends prove, too: which RPCs have no Reply, which are
// retransmitted on a new connection, and which timers expired. The sums of what was lost, and of
// what nothing shows to be lost by the network and not by the capture, are those that the switch of the lab reported. While nothing
// passed the switch, the server had nothing to send, so that its capture does not show whether it was down.
func TestOneEndProves(t *testing.T) {
	for _, c := range []struct {
		name                            string
		lost                            [2]string // by direction: lost + unknown
		noReply, timeouts, lost2, again int
	}{
		{"roce-outage41", [2]string{"18 + 4", "2 + 1"}, 3, 8, 2, 3},
		{"roce-oneway41", [2]string{"2 + 1", "43 + 7"}, 2, 24, 2, 2}, // each end's own capture shows 12 of its timers
		{"iw-twosided", [2]string{"6 + 0", "4 + 0"}, 0, 1, 0, 0},
	} {
		proven := func(files ...string) map[string]int {
			n := map[string]int{}
			for _, r := range recordsOf(t, append([]string{"check"}, files...)...) {
				if rule := value(r, "rule"); rule == "retransmission-timeout" || rule == "connection-lost" {
					n[rule]++
					n[rule+" "+value(r, "xid")]++
				}
			}
			for _, r := range recordsOf(t, files...) {
				if value(r, "status") == "no_reply" {
					n["no_reply"]++
					n["no_reply "+value(r, "xid")]++
				}
				if value(r, "retransmit_of") != "" {
					n["again"]++
					n["again "+value(r, "xid")]++
				}
			}
			return n
		}
		files := recordedEnds(c.name)
		both := proven(files...)
		for _, f := range files {
			for what, n := range proven(f) {
				if both[what] < n {
					t.Errorf("%s: %s: %d with both ends, %d with %s", c.name, what, both[what], n, f)
				}
			}
		}
		if both["no_reply"] != c.noReply || both["retransmission-timeout"] != c.timeouts || both["connection-lost"] != c.lost2 || both["again"] != c.again {
			t.Errorf("%s: with both ends, these are proven: %v; want %d without Reply, %d timeouts, %d lost connections, %d repeated RPCs", c.name, both, c.noReply, c.timeouts, c.lost2, c.again)
		}
		var lost []string
		for _, r := range recordsOf(t, append([]string{"network"}, files...)...) {
			if r["type"] == "network" {
				lost = append(lost, value(r, "lost")+" + "+value(r, "unknown"))
			}
		}
		if fmt.Sprint(lost) != fmt.Sprint(c.lost) {
			t.Errorf("%s: %q packets lost and unknown, want %q", c.name, lost, c.lost)
		}
	}
}

// TestFirstSent: the latency of a Call that was retransmitted on a new connection begins with its first copy, as the
// client's kernel measured it, and its parts say in which direction the network lost packets.
func TestFirstSent(t *testing.T) {
	for _, c := range []struct {
		name, xid string
		ms        float64 // measured by the kernel
		part      string  // in which most of the time passed
	}{
		{"roce-outage41", "0x63cd5c81", 10140, "request_network_ns"},
		{"roce-outage41", "0x64cd5c81", 10044, "request_network_ns"},
		{"roce-outage41", "0x228f8906", 13431, "request_network_ns"},
		{"roce-oneway41", "0x98041106", 8297, "reply_network_ns"},
		{"roce-oneway41", "0x65c4a9df", 8048, "reply_network_ns"},
	} {
		first := map[string]any{}
		found := false
		records := recordsOf(t, append(recordedEnds(c.name), "--xid", c.xid)...) // The RPC without a Reply may end last.
		slices.SortStableFunc(records, func(a, b map[string]any) int { return cmp.Compare(value(b, "status"), value(a, "status")) })
		for _, r := range records {
			if r["type"] != "transaction" {
				continue
			}
			if value(r, "status") == "no_reply" {
				first = r
				continue
			}
			found = true
			ms := func(path string) float64 {
				var ns float64
				fmt.Sscan(value(r, path), &ns)
				return ns / 1e6
			}
			latency := ms("latency_ns")
			if math.Abs(latency-c.ms) > 6 {
				t.Errorf("%s: latency %.1f ms, the kernel measured %.0f", c.xid, latency, c.ms)
			}
			if part := ms("split." + c.part); part < latency*0.99 || part > latency {
				t.Errorf("%s: %.1f ms of %.1f in %s", c.xid, part, latency, c.part)
			}
			if value(r, "retransmit_of") != value(first, "id") || value(r, "call.first_sent") != value(first, "call.time") {
				t.Errorf("%s: retransmits %s, first sent %s; the first one is %s, of %s", c.xid, value(r, "retransmit_of"), value(r, "call.first_sent"), value(first, "id"), value(first, "call.time"))
			}
			if w := r["waits"].([]any)[0].(map[string]any); w["reason"] != "new_connection" {
				t.Errorf("%s: waited for %v", c.xid, w["reason"])
			}
		}
		if !found {
			t.Errorf("%s: not found", c.xid)
		}
	}
}

// TestLostBothWays: a Call that never came to the server was not delivered. A Call that came, and whose Reply, ACKs and
// RDMA Writes were lost, was delivered, and what was lost is not called a Call. Of
// the last copies, nothing shows that the capture does not lack them.
func TestLostBothWays(t *testing.T) {
	count := func(name, xid string) (first map[string]any, lost map[string]int) {
		lost = map[string]int{}
		for _, r := range recordsOf(t, append(recordedEnds(name), "--xid", xid)...) {
			if r["type"] != "transaction" || value(r, "status") != "no_reply" {
				continue
			}
			first = r
			for _, e := range r["timeline"].([]any) {
				if e := e.(map[string]any); e["event"] == "lost" {
					lost[fmt.Sprint(e["from"], " ", e["of"])]++
				}
			}
		}
		return first, lost
	}
	r, lost := count("roce-outage41", "0x228f8906")
	if value(r, "call.delivery") != "not_delivered" || value(r, "reply") != "" || fmt.Sprint(lost) != "map[requester call:6]" || value(r, "retransmitted") != "6" {
		t.Errorf("delivery %s, %v lost, retransmitted %s", value(r, "call.delivery"), lost, value(r, "retransmitted"))
	}
	r, lost = count("roce-oneway41", "0x98041106")
	if value(r, "call.delivered") == "" || value(r, "reply.delivery") != "not_delivered" || value(r, "reply_lost") != "true" || lost["responder reply"] != 6 || lost["responder write"] != 6 || lost["requester call"]+lost["responder call"] != 0 || lost["responder ack"] == 0 {
		t.Errorf("Call delivered %s, Reply %s, %v lost", value(r, "call.delivered"), value(r, "reply.delivery"), lost)
	}
}

// TestLostSegments: the ladder of an RPC over iWARP names the segments that were lost, and the timer that expired.
func TestLostSegments(t *testing.T) {
	for xid, want := range map[string]string{
		"0x1eef82e6": "Call lost on the way",
		"0xf1d4acd1": "Read response lost on the way",
	} {
		var out bytes.Buffer
		run(t.Context(), append(recordedEnds("iw-twosided"), "-q", "--xid", xid), &out, io.Discard)
		text := strings.Join(strings.Fields(out.String()), " ")
		if !strings.Contains(text, want) || strings.Contains(text, "no retransmission, NAK or loss") {
			t.Errorf("%s: %q is not in\n%s", xid, want, text)
		}
	}
}

// TestLostXIDs: network --lost names the RPC of each lost Call, also if no copy of it came to the server. Of the
// last copy of a Call, nothing shows that it was not the capture that lost it.
func TestLostXIDs(t *testing.T) {
	count := map[string]int{}
	for _, r := range recordsOf(t, append([]string{"network", "--lost"}, recordedEnds("roce-outage41")...)...) {
		if r["type"] == "lost_packet" {
			count[value(r, "xid")]++
		}
	}
	for xid, n := range map[string]int{"0x63cd5c81": 1, "0x64cd5c81": 1, "0x228f8906": 6} {
		if count[xid] != n {
			t.Errorf("%d lost packets of %s, want %d", count[xid], xid, n)
		}
	}
}

// TestDeliveredBeforeReply: in every recording, at one end, at both ends, and with the switch between them, a Call is delivered
// before its Reply is first sent. At both ends, a delivery that is certain is the arrival of a copy of the Call.
func TestDeliveredBeforeReply(t *testing.T) {
	singles, err := filepath.Glob("../../testdata/*/*.pcap*.zst")
	if err != nil || len(singles) < 40 {
		t.Fatal(singles, err)
	}
	inputs := [][]string{bothEnds, {"../../testdata/captures/ends-twoclock42-client.pcap.zst", "../../testdata/ends/twoclock42-server.pcap.zst"}}
	for _, file := range singles {
		inputs = append(inputs, []string{file})
	}
	for _, name := range []string{"roce-outage41", "roce-oneway41", "iw-twosided"} {
		inputs = append(inputs, recordedEnds(name))
	}
	for _, name := range []string{"roce-linkdown3", "roce-burst41", "roce-reorder42"} {
		ends := recordedEnds(name)
		between := strings.Replace(ends[0], "-client", "-switch", 1)
		inputs = append(inputs, ends, []string{ends[0], between, ends[1]}, []string{ends[0], between}, []string{between, ends[1]})
	}
	compared := 0
	for _, files := range inputs {
		both := len(files) > 1 && strings.HasSuffix(files[len(files)-1], "-server.pcap.zst") && strings.HasSuffix(files[0], "-client.pcap.zst")
		arrivals := map[string]bool{} // transactions, and times at which their packets came to the server
		if both {
			for _, r := range recordsOf(t, append([]string{"packets", "-Y", "transaction"}, files...)...) {
				seen, _ := r["seen"].([]any)
				for _, at := range seen {
					arrivals[value(r, "transaction")+" "+value(at.(map[string]any), "time")] = true
				}
			}
		}
		for _, r := range recordsOf(t, files...) {
			sent, delivered := cmp.Or(value(r, "reply.first_sent"), value(r, "reply.time")), value(r, "call.delivered")
			if sent == "" || delivered == "" {
				continue
			}
			if compared++; delivered > sent { // as text, the times are in order
				t.Errorf("%q: the Call of %s was delivered at %s, and its Reply sent at %s", files, value(r, "xid"), delivered, sent)
			}
			if both && value(r, "call.delivery") == "certain" && !arrivals[value(r, "id")+" "+delivered] {
				t.Errorf("%q: no packet of %s was captured at %s, when its Call was delivered", files, value(r, "xid"), delivered)
			}
		}
	}
	if compared < 10_000 {
		t.Errorf("%d Calls were compared", compared)
	}
}

// TestSentOnce: what its sender sent once is not retransmitted, however many copies the network made of it, with and without a
// point between the ends. The counts are those of the senders' own captures, and of the switch.
func TestSentOnce(t *testing.T) {
	for _, c := range []struct {
		name                      string
		retransmitted, duplicated int
		wait                      string
	}{
		{"roce-reorder42", 249, 79, "retransmit_nak"},
		{"roce-burst41", 159, 30, "retransmit_timeout"},
	} {
		ends := recordedEnds(c.name)
		type packet struct{ to, qpn, psn, kind string }
		of := func(r map[string]any) packet {
			kind := value(r, "bth.opcode_name")
			if strings.Contains(kind, "Response") { // of an RDMA Read, which may be requested again from another packet on
				kind = "Response"
			}
			return packet{value(r, "dst"), value(r, "bth.dest_qpn"), value(r, "bth.psn"), kind}
		}
		sent := map[packet]int{}
		for i, from := range []string{"192.168.77.2", "192.168.77.1"} {
			for _, r := range recordsOf(t, "packets", ends[i], "-Y", "src == "+from) {
				sent[of(r)]++
			}
		}
		between := strings.Replace(ends[0], "-client", "-switch", 1)
		for _, files := range [][]string{ends, {ends[0], between, ends[1]}} {
			retransmitted, duplicated, again := 0, 0, map[packet]int{}
			for _, r := range recordsOf(t, append([]string{"packets", "-Y", "marks in {retransmitted, duplicated}"}, files...)...) {
				marks := fmt.Sprint(r["marks"])
				if strings.Contains(marks, "duplicated") {
					duplicated++
				}
				if !strings.Contains(marks, "retransmitted") {
					continue
				}
				retransmitted++
				again[of(r)]++
				// A Read is requested again from a packet on that is not the first one, which has a PSN of its own.
				if p := of(r); sent[p] < 2 && p.kind != "RC RDMA READ Request" {
					t.Errorf("%s with %d points: packet %s of %s is said to be retransmitted, and was sent %d times: %+v", c.name, len(files), value(r, "number"), value(r, "point"), sent[p], p)
				}
			}
			if retransmitted != c.retransmitted || duplicated != c.duplicated {
				t.Errorf("%s with %d points: %d packets retransmitted and %d duplicated, want %d and %d", c.name, len(files), retransmitted, duplicated, c.retransmitted, c.duplicated)
			}
			for p, n := range sent {
				if p.kind == "Response" && again[p] != n-1 {
					t.Errorf("%s with %d points: %d copies of a response are retransmitted, and its sender sent %d: %+v", c.name, len(files), again[p], n, p)
				}
			}
			reasons := map[string]int{}
			for _, r := range recordsOf(t, files...) {
				waits, _ := r["waits"].([]any)
				for _, w := range waits {
					reasons[value(w.(map[string]any), "reason")]++
				}
			}
			if reasons["retransmit_unknown"] > 0 || reasons[c.wait] == 0 {
				t.Errorf("%s with %d points: RPCs waited for %v", c.name, len(files), reasons)
			}
		}
	}
}

// TestRepeatedCalls: the capture at the client and both captures give the same latency, and the same time until the Call was
// retransmitted on a new connection.
func TestRepeatedCalls(t *testing.T) {
	for name, least := range map[string]int{"roce-burst41": 8, "roce-outage41": 3, "roce-oneway41": 2} {
		repeated := func(files ...string) map[string]string {
			list := map[string]string{}
			for _, r := range recordsOf(t, append([]string{"-Y", "retransmit_of != null"}, files...)...) {
				text := value(r, "latency_ns") + " ns, first sent at " + value(r, "call.first_sent")
				for _, w := range r["waits"].([]any) {
					if w := w.(map[string]any); w["reason"] == "new_connection" {
						text += ", repeated after " + value(w, "ns")
					}
				}
				list[value(r, "xid")+" "+value(r, "call.time")] = text
			}
			return list
		}
		ends := recordedEnds(name)
		one, both := repeated(ends[0]), repeated(ends...)
		if !maps.Equal(one, both) || len(one) < least {
			t.Errorf("%s: at the client %v, at both ends %v", name, one, both)
		}
	}
}

// TestPlacesOfOutages: captures at both ends show that packets were lost on the way, or that they waited for a machine that stood still.
func TestPlacesOfOutages(t *testing.T) {
	story := func(name string, server ...string) (files []string) {
		for _, file := range append([]string{"client"}, server...) {
			files = append(files, "../../testdata/stories/"+name+"/"+file+".pcap.zst")
		}
		return files
	}
	for _, c := range []struct {
		files          []string
		places         string // of the outage; empty if none is told
		lost, answered string // of both directions
	}{
		{story("last/s17-iwcut10", "server"), "[network]", "9", "0"},
		{story("last/s19-cut10v3", "server"), "[network]", "16", "0"},
		{story("last/s29-cut3", "server"), "[network]", "20", "0"},
		{story("unopened/s11-cut10", "server"), "[network]", "7", "0"},
		{recordedEnds("roce-outage41"), "[network]", "18", "2"},
		{recordedEnds("roce-oneway41"), "[network]", "2", "43"},
		{story("unopened/s01-frozen40", "server"), "[network server]", "0", "0"},
		{story("unopened/s31-iwfrozen", "server"), "", "0", "0"},
		{story("rec/s02-killed3", "server", "server2", "server3", "server4"), "", "0", "0"}, // The machine was down between its files.
	} {
		var lost []string
		for _, r := range recordsOf(t, append([]string{"network"}, c.files...)...) {
			if r["type"] == "network" {
				lost = append(lost, value(r, "lost"))
			}
		}
		places := ""
		for _, r := range recordsOf(t, append([]string{"problems"}, c.files...)...) {
			if r["id"] == "outage" {
				places = fmt.Sprint(r["places"])
			}
		}
		if places != c.places || !slices.Equal(lost, []string{c.lost, c.answered}) {
			t.Errorf("%s: an outage of %s, %s packets lost; want %s, %s and %s", filepath.Dir(c.files[0]), places, lost, c.places, c.lost, c.answered)
		}
	}
}

// TestWaitsOverTCP: RPCs over iWARP wait for the segments that were lost, and selective acknowledgements show why they were
// retransmitted. What was repaired before, and what came after the RPC was over, made none of them wait.
func TestWaitsOverTCP(t *testing.T) {
	var got []string
	for _, r := range recordsOf(t, recordedEnds("iw-twosided")...) {
		waits, _ := r["waits"].([]any)
		for _, w := range waits {
			w := w.(map[string]any)
			text := value(r, "xid") + " " + value(w, "reason")
			lost, _ := w["lost"].([]any)
			for _, l := range lost {
				l := l.(map[string]any)
				text += ", packet " + value(l, "packet") + " of " + value(l, "point") + " of " + value(l, "xid")
			}
			got = append(got, text)
		}
	}
	slices.Sort(got)
	if want := []string{
		"0x05d5acd1 retransmit_gap, packet 1829 of iw-twosided-server.pcap.zst of 0x05d5acd1",
		"0x1eef82e6 retransmit_timeout, packet 2493 of iw-twosided-client.pcap.zst of 0x1eef82e6",
		"0xf6d4acd1 retransmit_gap, packet 1238 of iw-twosided-server.pcap.zst of 0xf6d4acd1",
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
