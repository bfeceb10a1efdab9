package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
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

// verdictOf returns the verdict of overview on a capture.
func verdictOf(t *testing.T, path string) analyze.Verdict {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"overview", "-q", "--jq", `select(.type == "overview")`, path}, &out, &errs); code != command.ExitOK {
		t.Fatalf("%s: exit status %d: %s", path, code, &errs)
	}
	var o analyze.Overview
	if err := json.NewDecoder(&out).Decode(&o); err != nil {
		t.Fatal(err)
	}
	if (o.Verdict.Where == analyze.Clear) != (len(o.Verdict.Evidence) == 0) {
		t.Errorf("%s: evidence %v for %s", path, o.Verdict.Evidence, o.Verdict.Where)
	}
	for _, e := range o.Verdict.Evidence { // Each command works, and shows something.
		var out, errs bytes.Buffer
		args := shellWords(strings.ReplaceAll(e.Command, "FILE", path))
		if code := run(t.Context(), args, &out, &errs); code != command.ExitOK && code != command.ExitFound || out.Len() == 0 {
			t.Errorf("%s: %s: exit status %d, %d bytes: %s", path, e.Command, code, out.Len(), &errs)
		}
	}
	return o.Verdict
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

// TestVerdicts: the verdict says what is known about each capture.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name  string
		where analyze.Place
		text  string
	}{
		{"rocev2-callback41.pcap.zst", analyze.Unproven, "no fault proven: up to 87% of the total latency (596.58ms of 690.04ms) is the server's, or the network's; no packet lost, repeated or refused"},
		{"rocev2-data42.pcap.zst", analyze.Clear, "107 RPCs, all answered; 814 packets, each once and in order, none refused or damaged; longest latency 102.98ms"},
		{"rocev2-nfs41.pcap.zst", analyze.Unproven, "no fault proven: up to 92% of the total latency (1.213s of 1.322s) is the server's, or the network's; 2 of 319 RPCs failed (2 NFS4ERR_NOENT); no packet lost, repeated or refused"},
		{"lab-slowserver41.pcap.zst", analyze.Unproven, "no fault proven: "},
		{"../other/rocev2-nvmeloss.pcap.zst", analyze.InNetwork, "5 NAKs, 1 damaged, 4 out of order; 10 RDMA operations of nvme stalled for 5.057s in total"},
		{"rocev2-storm41.pcap.zst", analyze.InNetwork, "53 NAKs, 43 damaged, 73 out of order; RPCs stalled for 88% of the total latency (at most 12.491s) until a retransmission. no packet from 192.168.77.1 was captured between 12.57s and 13.71s, although 15 packets of 192.168.77.2 needed an answer; the network lost packets, or the server sent none. 10 latencies are upper bounds"},
		{"rocev2-loss42.pcap.zst", analyze.InNetwork, "155 out of order; RPCs stalled for 30% of the total latency (at most 2.006s) until a retransmission"},
		{"../other/rocev2-reboot41.pcap.zst", analyze.InServer, "the server 192.168.77.1 restarted between 21.67s and 35.01s (NFS4ERR_BADSESSION in packet 366): 4 connections rejected, another one accepted 3.076s to 6.146s after each rejection; it was last heard of at 21.16s (packet 325); the last RPC that it answered before was NFS4 CLOSE, XID 0x6d45ec10; 1 RPC was in flight; afterwards it answered with 3 NFS4ERR_BADSESSION, 1 NFS4ERR_BAD_STATEID, 1 NFS4ERR_GRACE, 1 NFS4ERR_STALE_CLIENTID. 1 connection ended (retransmissions never acknowledged) with 1 Call in flight"},
		{"lab-iwarploss41.pcap.zst", analyze.InNetwork, "58 out of order"},
		{"iwarp-nfs41.pcap.zst", analyze.Unproven, "no fault proven: 13 of 2153 packets retransmitted; RPCs stalled for 15% of the total latency (at most 2.200s) until a retransmission"},
		{"rocev2-errors.pcap.zst", analyze.InClient, "13 violations of the protocol"},
		{"rocev2-chimera-overrun42.pcap.zst", analyze.InServer, "11 violations of the protocol (rdma-outside-exposed-memory): RDMA Write of 131072 bytes"},
		{"rocev2-chimera-noreplychunk3.pcap.zst", analyze.InServer, "60 violations of the protocol"},
		{"lab-inline16.pcap.zst", analyze.InConfiguration, "few credits: all 4 credits of connection 2"},
		{"lab-retries42.pcap.zst", analyze.Unproven, "Replies did not reach the client, which retransmitted 4 Calls that the server had executed: the server or the network"},
	} {
		if v := verdictOf(t, "../../testdata/captures/"+c.name); v.Where != c.where || !strings.Contains(v.Text, c.text) {
			t.Errorf("%s: %s: %s, want %s: %s", c.name, v.Where, v.Text, c.where, c.text)
		}
	}
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
	if err := w.WritePcapng(f, synth.Pcapng{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestVerdictsMade: verdicts about what no available capture shows.
func TestVerdictsMade(t *testing.T) {
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
		name  string
		do    func(w *synth.Wire, c *synth.Conn)
		where analyze.Place
		text  string
	}{
		{"a late server", late, analyze.Unproven, "no fault proven: 3 RPCs answered more than 1s after the server had the Call, the slowest NFS3 GETATTR after 1.500s: the server, or the way back; up to 100% of the total latency"},
		{"a server that seems late because of a clock of whole seconds", func(w *synth.Wire, c *synth.Conn) {
			late(w, c)
			for _, f := range w.Frames {
				f.Time -= f.Time % 1e9
			}
		}, analyze.Unproven, "no fault proven: up to 100% of the total latency"},
		{"a violation, and Replies that were not captured", func(w *synth.Wire, c *synth.Conn) {
			c.Connect()
			c.RPC(synth.Getattr3(), synth.Reply{Credits: synth.Zero, Results: synth.Getattr3Reply().Results})
			for range 3 {
				w.Drop(c.Client.RPC(synth.Getattr3(), synth.Getattr3Reply())[1:3]...)
			}
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			c.Disconnect(c.Client)
		}, analyze.InServer, "1 violation of the protocol (credits-granted-zero): the Reply grants 0 credits"},
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
		}, analyze.Unproven, "no fault proven: up to 100% of the total latency"},
		{"a late server in an incomplete capture", func(w *synth.Wire, c *synth.Conn) {
			late(w, c)
			w.Drop(w.Frames[7])
		}, analyze.Unproven, "1 packet not captured, between 0.00s and 3.00s; no fault proven: up to 100% of the total latency (3.000s of 3.000s) is the server's, or the network's; 1 Reply without a Call in the capture"},
		{"no answer to a connection request", func(w *synth.Wire, c *synth.Conn) {
			frames := c.Connect()
			w.Drop(frames[1:]...)
			w.Retransmit(frames[0])
		}, analyze.Unproven, "1 connection request without an answer in the capture; the server or the network"},
		{"a rejected connection", func(_ *synth.Wire, c *synth.Conn) { c.Reject() }, analyze.InServer, "1 connection rejected: consumer reject; none accepted afterwards"},
		{"a rejection because of lost messages", func(_ *synth.Wire, c *synth.Conn) {
			c.REQ()
			c.Server.REJ(10)
		}, analyze.Unproven, "1 connection rejected: stale connection, which follows from the loss of earlier messages; none accepted afterwards"},
		{"a minor version that is refused, and another one that is not", func(_ *synth.Wire, c *synth.Conn) {
			c.Connect()
			c.Client.RPC(synth.Compound(synth.XDR{}.Word(42)), synth.CompoundFailed(10021))
			for range 3 {
				c.Client.RPC(synth.Getattr3(), synth.Getattr3Reply())
			}
			c.Disconnect(c.Client)
		}, analyze.Unproven, "no fault proven: 1 of 4 RPCs failed (1 NFS4ERR_MINOR_VERS_MISMATCH)"},
		{"a session that is not destroyed", func(_ *synth.Wire, c *synth.Conn) {
			c.Connect()
			c.Client.RPC(synth.Compound(synth.XDR{}.Word(57)), synth.CompoundFailed(10074)) // NFS4ERR_CLIENTID_BUSY
			c.Disconnect(c.Client)
		}, analyze.Unproven, "no fault proven: 1 of 1 RPC failed (1 NFS4ERR_CLIENTID_BUSY)"},
		{"files that do not exist", func(_ *synth.Wire, c *synth.Conn) {
			c.Connect()
			c.Client.RPC(synth.Getattr3(), synth.Getattr3Reply())
			c.Client.RPC(synth.Getattr3(), synth.Reply{Results: synth.XDR{}.Word(2)})
			c.Disconnect(c.Client)
		}, analyze.Clear, "2 RPCs, all answered; 1 of 2 RPCs failed (1 NFS3ERR_NOENT); "},
		{"files that are gone", func(_ *synth.Wire, c *synth.Conn) {
			c.Connect()
			for range 5 {
				c.Client.RPC(synth.Getattr3(), synth.Reply{Results: synth.XDR{}.Word(70)})
			}
			c.Disconnect(c.Client)
		}, analyze.Unproven, "no fault proven: 5 of 5 RPCs failed (5 NFS3ERR_STALE)"},
		{"a refused mount", func(_ *synth.Wire, c *synth.Conn) {
			c.Connect()
			c.Client.RPC(synth.Compound(synth.XDR{}.Word(42)), synth.CompoundFailed(10021))
			c.Disconnect(c.Client)
		}, analyze.InServer, "refused with NFS4ERR_MINOR_VERS_MISMATCH: the server does not serve the minor version that the client asks for"},
	} {
		if v := verdictOf(t, made(t, c.do)); v.Where != c.where || !strings.Contains(v.Text, c.text) {
			t.Errorf("%s: %s: %s, want %s: %s", c.name, v.Where, v.Text, c.where, c.text)
		}
	}
}

// TestTroubleOfClients: if a capture has several clients, check and the verdict say which of them the trouble belongs to.
func TestTroubleOfClients(t *testing.T) {
	path := made(t, func(w *synth.Wire, c *synth.Conn) {
		one := c.Another(synth.Options{Client: synth.End{Addr: netip.MustParseAddr("10.1.0.7")}})
		two := c.Another(synth.Options{Client: synth.End{Addr: netip.MustParseAddr("10.1.0.8")}})
		zero := synth.Reply{Credits: synth.Zero, Results: synth.Getattr3Reply().Results}
		for i, x := range []*synth.Conn{one, two, two} {
			if i < 2 {
				x.Connect()
			}
			call := x.Client.Call(synth.Getattr3())
			w.Advance(600 * time.Millisecond)
			w.Retransmit(call...)
			x.Server.Ack()
			x.Server.Reply(zero)
			x.Client.Ack()
		}
		one.Disconnect(one.Client)
		two.Disconnect(two.Client)
	})
	const sentence = "By client, the most affected first: 10.1.0.8 has 2 of 3 retransmissions and 1.200s of 1.800s of stalls; 10.1.0.7 has 1 of 3 retransmissions and 600.00ms of 1.800s of stalls"
	if v := verdictOf(t, path); !strings.HasSuffix(v.Text, ". "+sentence) {
		t.Errorf("verdict %q, want %q at its end", v.Text, sentence)
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{sentence, "2 more findings of this rule, the last in packet 20; all of server 10.2.0.1"}},
		{[]string{"--conn", "0"}, []string{"!" + sentence, "!10.1.0"}},
		{[]string{"-Y", "severity == error"}, []string{"!" + sentence}},
	} {
		var out, errs bytes.Buffer
		run(t.Context(), append(append([]string{"check"}, c.args...), path), &out, &errs)
		for _, text := range c.want {
			if want, not := strings.CutPrefix(text, "!"); strings.Contains(out.String(), want) == not {
				t.Errorf("check %q: want %q, got %s", c.args, text, &out)
			}
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
		run(t.Context(), append([]string{"stats", "-q", "--every", "1s", "-o", "json", "--jq", "[.ce,.cnp,.pauses]"}, c.args...), &out, &errs)
		if got := "[" + strings.ReplaceAll(strings.TrimSpace(out.String()), "\n", ",") + "]"; got != c.want {
			t.Errorf("%v: %s, want %s: %s", c.args, got, c.want, &errs)
		}
	}
	out.Reset()
	run(t.Context(), []string{"overview", "-q", "-o", "json", "--jq", "select(.type == \"overview\") | [.health.congestion_marks,.health.cnps,.health.pauses]", path}, &out, &errs)
	if got := strings.TrimSpace(out.String()); got != "[8,2,2]" {
		t.Errorf("the overview counts %s, want [8,2,2]", got)
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

// TestVerdictsOfParts: a part of a healthy capture has no trouble, a capture of one direction says so first, and what a hole
// may contain is not missing.
func TestVerdictsOfParts(t *testing.T) {
	for _, c := range []struct {
		name, capture string
		wanted        func(i int, source byte) bool
		where         analyze.Place
		text          string // how the verdict begins
	}{
		{"a middle", "rocev2-nfs41", func(i int, _ byte) bool { return i >= 800 && i < 1600 }, analyze.Unproven, "no fault proven: up to 100% of the total latency (509.17ms of 509.17ms) is the server's, or the network's; 1 of 172 RPCs failed (1 NFS4ERR_NOENT); 1 RPC without a Reply up to the end of the capture; the handshake of 1 connection and the end of 1 connection are not in the capture"},
		{"the client", "rocev2-nfs41", func(_ int, source byte) bool { return source == 2 }, analyze.Unproven, "only the packets of 192.168.77.2 are in the capture; no fault proven"},
		{"the server", "rocev2-nfs41", func(_ int, source byte) bool { return source == 1 }, analyze.Unproven, "only the packets of 192.168.77.1 are in the capture; no fault proven"},
		{"the server of a bad network", "rocev2-storm41", func(_ int, source byte) bool { return source == 1 }, analyze.InNetwork, "only the packets of 192.168.77.1 are in the capture; "},
		{"a hole", "rocev2-nfs41", func(i int, _ byte) bool { return i < 900 || i >= 1500 }, analyze.Unproven, "300 packets not captured, between 10.83s and 18.21s; no fault proven: up to 90% of the total latency (892.37ms of 1.002s) is the server's, or the network's; 2 of 191 RPCs failed (2 NFS4ERR_NOENT); 1 RPC whose Reply may not have been captured"},
	} {
		if v := verdictOf(t, partOf(t, "../../testdata/captures/"+c.capture+".pcap.zst", c.wanted)); v.Where != c.where || !strings.HasPrefix(v.Text, c.text) || len(v.Silences) > 0 {
			t.Errorf("%s: %s: %s, silences %v, want %s: %s", c.name, v.Where, v.Text, v.Silences, c.where, c.text)
		}
	}
}

// TestVerdictOfDisorder: what the order of the packets in the file seems to show is not attributed to the network.
func TestVerdictOfDisorder(t *testing.T) {
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
		v := verdictOf(t, path)
		const want = "the packets are not in the order of their times ("
		if v.Where != analyze.Unproven || !strings.HasPrefix(v.Text, want) || strings.Contains(v.Text, "retransmitted") || strings.Contains(v.Text, "missing") {
			t.Errorf("%s: %s: %s", name, v.Where, v.Text)
		}
	}
}

// TestVerdictOfWindow: with --from and --to, the numbers are those of the packets of that time, each as often as packets lists
// it.
func TestVerdictOfWindow(t *testing.T) {
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
		if n := o.Verdict.Counts.Retransmitted; n != marked || n != o.Health.Retransmitted {
			t.Errorf("%v: verdict %d, health %d, %d packets are marked", window, n, o.Health.Retransmitted, marked)
		}
		total += marked
	}
	if v := verdictOf(t, path); v.Counts.Retransmitted != total || total == 0 {
		t.Errorf("%d packets of all windows are retransmitted, %d of the whole capture", total, v.Counts.Retransmitted)
	}
}
