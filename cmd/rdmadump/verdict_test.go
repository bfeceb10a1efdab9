package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/synth"
)

// verdictOf returns the verdict of overview on a capture.
func verdictOf(t *testing.T, path string) analyze.Verdict {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"overview", "-q", "-o", "json", path}, &out, &errs); code != command.ExitOK {
		t.Fatalf("%s: exit status %d: %s", path, code, &errs)
	}
	var o analyze.Overview
	if err := json.NewDecoder(&out).Decode(&o); err != nil {
		t.Fatal(err)
	}
	if (o.Verdict.Where == analyze.InNothing) != (len(o.Verdict.Evidence) == 0) {
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
		{"rocev2-callback41.pcap.zst", analyze.InNothing, "no loss"},
		{"rocev2-data42.pcap.zst", analyze.InNothing, "no loss, no error and no long wait seen"},
		{"lab-slowserver41.pcap.zst", analyze.InNothing, "no loss and no error seen; the server had a Call for up to 135.51ms before it answered or moved data (NFS4 OPEN)"},
		{"../other/rocev2-nvmeloss.pcap.zst", analyze.InNetwork, "10 RDMA operations of nvme stalled for 5.057s in total"},
		{"rocev2-storm41.pcap.zst", analyze.InNetwork, "52% of packets retransmitted, 43 bad ICRCs, 73 packets out of order, 53 NAKs; retransmissions stalled RPCs for 88% of their latency; no fault of either end seen"},
		{"rocev2-loss42.pcap.zst", analyze.InNetwork, "66% of packets retransmitted"},
		{"lab-iwarploss41.pcap.zst", analyze.InNetwork, "58 packets out of order"},
		{"iwarp-nfs41.pcap.zst", analyze.InUnknown, "the capture does not show why"},
		{"rocev2-errors.pcap.zst", analyze.InClient, "13 violations of the protocol"},
		{"rocev2-chimera-overrun42.pcap.zst", analyze.InServer, "11 violations of the protocol (rdma-outside-exposed-memory): RDMA Write of 131072 bytes"},
		{"rocev2-chimera-noreplychunk3.pcap.zst", analyze.InServer, "60 violations of the protocol"},
		{"lab-inline16.pcap.zst", analyze.InConfiguration, "few credits: all 4 of connection 2"},
		{"lab-retries42.pcap.zst", analyze.InNetwork, "Replies were lost"},
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
		{"a late server", late, analyze.InServer, "3 RPCs answered after more than 1s although the server had the Call and nothing stalled, the slowest NFS3 GETATTR after 1.5"},
		{"a server that seems late because of a clock of whole seconds", func(w *synth.Wire, c *synth.Conn) {
			late(w, c)
			for _, f := range w.Frames {
				f.Time -= f.Time % 1e9
			}
		}, analyze.InNothing, "no loss"},
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
		}, analyze.InNothing, "no loss"},
		{"a late server in an incomplete capture", func(w *synth.Wire, c *synth.Conn) {
			late(w, c)
			w.Drop(w.Frames[7])
		}, analyze.InNothing, "but the capture is incomplete"},
		{"no answer to a connection request", func(w *synth.Wire, c *synth.Conn) {
			frames := c.Connect()
			w.Drop(frames[1:]...)
			w.Retransmit(frames[0])
		}, analyze.InUnknown, "the server or the network: 1 connection request without an answer in the capture"},
		{"a rejected connection", func(_ *synth.Wire, c *synth.Conn) { c.Reject() }, analyze.InServer, "the server rejected 1 connection"},
		{"a rejection because of lost messages", func(_ *synth.Wire, c *synth.Conn) {
			c.REQ()
			c.Server.REJ(10)
		}, analyze.InUnknown, "the server rejected 1 connection, which follows from the loss of earlier messages"},
		{"a minor version that is refused, and another one that is not", func(_ *synth.Wire, c *synth.Conn) {
			c.Connect()
			c.Client.RPC(synth.Compound(synth.XDR{}.Word(42)), synth.CompoundFailed(10021))
			for range 3 {
				c.Client.RPC(synth.Getattr3(), synth.Getattr3Reply())
			}
			c.Disconnect(c.Client)
		}, analyze.InNothing, "no loss"},
		{"a session that is not destroyed", func(_ *synth.Wire, c *synth.Conn) {
			c.Connect()
			c.Client.RPC(synth.Compound(synth.XDR{}.Word(57)), synth.CompoundFailed(10074)) // NFS4ERR_CLIENTID_BUSY
			c.Disconnect(c.Client)
		}, analyze.InNothing, "no loss"},
		{"files that are gone", func(_ *synth.Wire, c *synth.Conn) {
			c.Connect()
			for range 5 {
				c.Client.RPC(synth.Getattr3(), synth.Reply{Results: synth.XDR{}.Word(70)})
			}
			c.Disconnect(c.Client)
		}, analyze.InUnknown, "5 of 5 RPCs failed with NFS3ERR_STALE"},
		{"a refused mount", func(_ *synth.Wire, c *synth.Conn) {
			c.Connect()
			c.Client.RPC(synth.Compound(synth.XDR{}.Word(42)), synth.CompoundFailed(10021))
			c.Disconnect(c.Client)
		}, analyze.InServer, "refused with NFS4ERR_MINOR_VERS_MISMATCH: the server does not serve the minor version that the client asks for"},
	} {
		if v := verdictOf(t, made(t, c.do)); v.Where != c.where || !strings.Contains(v.Text, c.text) || strings.Contains(v.Text, "failed") != strings.Contains(c.text, "failed") {
			t.Errorf("%s: %s: %s, want %s: %s", c.name, v.Where, v.Text, c.where, c.text)
		}
	}
}
