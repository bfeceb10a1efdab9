package dissect_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

// recordsOf returns the transactions, connections, findings and RDMA operations of a list of frames, as JSON.
func recordsOf(t *testing.T, frames []capture.Frame) (text string, s *record.Summary) {
	t.Helper()
	var b strings.Builder
	put := func(r any) error {
		b.Write(render.AppendJSON(nil, r))
		b.WriteByte('\n')
		return nil
	}
	d := dissect.New(dissect.Handler{
		Transaction: func(r *record.Transaction) error { return put(r) }, Connection: func(r *record.Connection) error { return put(r) },
		Finding: func(r *record.Finding) error { return put(r) }, Operation: func(r *record.RDMAOperation) error { return put(r) },
	}, dissect.Options{Files: true})
	for i := range frames {
		if err := d.Frame(&frames[i]); err != nil {
			t.Fatal(err)
		}
	}
	s, err := d.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), s
}

// TestTunneledCaptures checks that a capture in any tunnel, and in tunnels of tunnels, has the records that it has without one.
func TestTunneledCaptures(t *testing.T) {
	for _, name := range []string{"rocev2-callback41.pcap.zst", "lab-iwarpdata3.pcap.zst", "derived-rocev1-callback41.pcap.zst"} {
		frames, _ := testkit.Frames(t, filepath.Join(captures, name))
		frames = frames[:min(len(frames), 600)]
		want, plain := recordsOf(t, frames)
		if len(want) < 5000 {
			t.Fatalf("%s has only %d bytes of records", name, len(want))
		}
		wrapped, twice := make([]capture.Frame, len(frames)), make([]capture.Frame, len(frames))
		for i := range testkit.Tunnels {
			tunnel, outer := &testkit.Tunnels[i], &testkit.Tunnels[(i+3)%len(testkit.Tunnels)]
			for j := range frames {
				wrapped[j] = tunnel.Frame(&frames[j])
				twice[j] = outer.Frame(&wrapped[j])
			}
			for _, form := range [][]capture.Frame{wrapped, twice} {
				got, s := recordsOf(t, form)
				if got != want {
					t.Errorf("%s in %s: other records: %s", name, tunnel.Name, firstDifference(strings.Split(want, "\n"), strings.Split(got, "\n")))
				}
				if s.RDMA != plain.RDMA || s.Malformed != plain.Malformed || s.Truncated != plain.Truncated || s.ICRCBad != plain.ICRCBad {
					t.Errorf("%s in %s: %d packets of RDMA, %d malformed, %d truncated; without it %d, %d, %d", name, tunnel.Name, s.RDMA, s.Malformed, s.Truncated, plain.RDMA, plain.Malformed, plain.Truncated)
				}
			}
		}
	}
}

// TestTunnelsTshark checks that tshark finds the same packets of the InfiniBand transport in each tunnel.
func TestTunnelsTshark(t *testing.T) {
	tshark := testkit.Tshark(t)
	frames, _ := testkit.Frames(t, filepath.Join(captures, "rocev2-callback41.pcap.zst"))
	for i := range testkit.Tunnels {
		tunnel := &testkit.Tunnels[i]
		wrapped := make([]capture.Frame, len(frames))
		for j := range frames {
			wrapped[j] = tunnel.Frame(&frames[j])
		}
		path := filepath.Join(t.TempDir(), "tunnel.pcapng")
		if err := os.WriteFile(path, testkit.Pcapng(wrapped, 9), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"-r", path, "-T", "fields", "-e", "frame.number", "-e", "infiniband.bth.destqp", "-e", "infiniband.bth.psn", "-Y", "infiniband"}
		if tunnel.Tshark != "" {
			args = append(args, "-d", tunnel.Tshark)
		}
		out, err := exec.Command(tshark, args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSpace(string(out)), "\n")
		var got []string
		d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
			if p.Transport != "" {
				values := values(p).values
				got = append(got, fmt.Sprintf("%d\t0x%06x\t%d", p.Number, values["bth.dest_qpn"][0], values["bth.psn"][0]))
			}
			return nil
		}}, dissect.Options{})
		for j := range wrapped {
			wrapped[j].Number = int64(j + 1)
			if err := d.Frame(&wrapped[j]); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) < 200 || len(got) != len(want) {
			t.Errorf("%s: %d packets, tshark has %d", tunnel.Name, len(got), len(want))
			continue
		}
		for j := range got {
			if got[j] != want[j] {
				t.Errorf("%s: %q, tshark says %q", tunnel.Name, got[j], want[j])
				break
			}
		}
	}
}
