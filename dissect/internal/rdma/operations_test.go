package rdma_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
)

// TestOperations: the records of RDMA operations agree with those of their connections and RPCs.
func TestOperations(t *testing.T) {
	for _, name := range testkit.Glob(t, captures+"*.zst") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			byPacket := map[int64]*record.RDMAOperation{}
			seen := map[int64]bool{}
			again := map[int]int64{}
			var calls []*record.Transaction
			_, err := dissect.New(dissect.Handler{
				Operation: func(r *record.RDMAOperation) error {
					if seen[r.ID] || r.ID == 0 {
						t.Errorf("operation %d comes twice", r.ID)
					}
					seen[r.ID] = true
					again[r.Connection] += r.Retransmitted
					if r.Kind == record.SendOperation {
						byPacket[r.Packet] = r.Clone()
					}
					at, delivered := r.Delivered.Get()
					acked, is := r.Acknowledged.Get()
					stalled := int64(0)
					for i := range r.Waits {
						stalled += r.Waits[i].NS
					}
					switch {
					case r.LastPacket < r.Packet || r.Packets < 0 || r.Bytes < 0 || r.Requested.Or(r.Bytes) < r.Bytes && r.Kind != record.AtomicOperation,
						r.Status != record.OperationIncomplete && r.Kind != record.AtomicOperation && r.Bytes != r.Requested.Or(r.Bytes) && r.Status != record.OperationRefused,
						(r.Kind == record.SendOperation) == r.Handle.Known(), stalled != r.StalledNS, stalled > 0 && r.Retransmitted == 0:
						t.Errorf("it contradicts itself: %+v", r)
					case delivered && is && acked < at && name != "derived-cut-callback41.pcap.zst":
						t.Errorf("acknowledged before it was delivered: %+v", r)
					}
					return nil
				},
				Transaction: func(r *record.Transaction) error {
					if r.Call != nil && r.Transport != "TCP" && r.Transport != "UDP" {
						calls = append(calls, r.Clone())
					}
					return nil
				},
				Connection: func(r *record.Connection) error {
					if sum := again[r.ID]; sum > r.Retransmitted {
						t.Errorf("connection %d: %d retransmitted packets of operations, %d in total", r.ID, sum, r.Retransmitted)
					}
					delete(again, r.ID)
					return nil
				},
			}, dissect.Options{}).Run(context.Background(), testkit.Open(t, captures+name))
			if err != nil && name != "derived-cut-callback41.pcap.zst" {
				t.Fatal(err)
			}
			if len(again) > 0 {
				t.Errorf("operations came after their connections: %v", again)
			}
			for _, r := range calls {
				o := byPacket[r.Call.Packet]
				switch {
				case o == nil || o.Transaction.Or(0) != r.ID:
					t.Errorf("no operation for the Call of transaction %d: %+v", r.ID, o)
				case r.Call.Delivery == record.DeliveryCertain && o.Delivered.Known() && o.Delivered != r.Call.Delivered:
					t.Errorf("transaction %d: delivered %v, the operation %v", r.ID, r.Call.Delivered, o.Delivered)
				}
			}
		})
	}
}

// TestAtMost: the latency of an operation is an upper bound if packets are missing between it and its acknowledgement, not if its first
// packet shows that they are missing.
func TestAtMost(t *testing.T) {
	look.Both(t, synth.Options{ManualAck: true}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		c.Connect()
		c.Client.Call(synth.Call{XID: 1})
		c.Server.Ack()
		c.Client.Call(synth.Call{XID: 2})
		w.Drop(c.Client.Call(synth.Call{XID: 3})...)
		c.Client.Call(synth.Call{XID: 4})
		c.Server.Ack()
		var got []bool
		for _, r := range look.At(w).Operations {
			got = append(got, r.AtMost)
		}
		if want := []bool{false, true, false}; !slices.Equal(got, want) {
			t.Errorf("at most: %t, want %t", got, want)
		}
	})
}

// payloads is an observer that keeps the stream, position and size of each payload behind the handshake.
type payloads []string

func (l *payloads) Payload(p *wiremap.Payload) {
	if !p.MPA {
		*l = append(*l, fmt.Sprintf("%d:%d+%d", p.StreamID, p.At, p.Count))
	}
}

func (l *payloads) Message(*wiremap.Message) {}

// TestPayloads: each packet with a payload and each FPDU is reported once, with its position in its direction, which counts what is missing.
func TestPayloads(t *testing.T) {
	for _, x := range []struct {
		name, roce, iwarp string
		play              func(w *synth.Wire, c *synth.Conn)
	}{
		{"Calls", "3:0+1 3:1+1", "1:28+116 1:144+92", func(w *synth.Wire, c *synth.Conn) { c.Client.Call(synth.Call{XID: 2}) }},
		{"a Reply", "3:0+1 1:0+1", "1:28+116 3:28+76", func(w *synth.Wire, c *synth.Conn) { c.Server.Reply(synth.Reply{XID: 1}) }},
		{"again", "3:0+1", "1:28+116", func(w *synth.Wire, c *synth.Conn) { w.Retransmit(w.Last()) }},
		{"behind a missing one", "3:0+1 3:2+1", "1:28+116 1:236+92", func(w *synth.Wire, c *synth.Conn) {
			w.Drop(c.Client.Call(synth.Call{XID: 2})...)
			c.Client.Call(synth.Call{XID: 3})
			c.Server.Ack()
		}},
		{"a Write", "3:0+1 1:0+1 1:1+1", "1:28+116 3:28+1420 3:1448+620", func(w *synth.Wire, c *synth.Conn) { c.Server.Write(0xa1, 0, make([]byte, 2000)) }},
		{"a Read", "3:0+1 2:0+1 2:1+1", "1:28+116 3:28+52 1:144+1420 1:1564+620", func(w *synth.Wire, c *synth.Conn) { c.Server.Read(0xa1, 0, make([]byte, 2000)) }},
		{"the start of an FPDU", "-", "1:28+116 1:144+50", func(w *synth.Wire, c *synth.Conn) {
			c.Client.Cork()
			c.Client.Call(synth.Call{XID: 2})
			w.Drop(c.Client.Uncork(50)[1:]...)
		}},
		{"the start of one with markers", "-", "1:28+116 5:28+54", func(w *synth.Wire, c *synth.Conn) {
			c = c.Another(synth.Options{Markers: true})
			c.Connect()
			c.Client.Cork()
			c.Client.Call(synth.Call{XID: 2})
			w.Drop(c.Client.Uncork(54)[1:]...)
		}},
	} {
		look.Both(t, synth.Options{ManualAck: true}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
			c.Connect()
			c.Client.Call(synth.Call{XID: 1, Reads: synth.ReadChunk(0, synth.Mem(0xa1, 2000))})
			want := x.roce
			if c.IWARP() {
				want = x.iwarp
			}
			if want == "-" {
				return
			}
			x.play(w, c)
			var got payloads
			d := dissect.New(dissect.Handler{Observer: &got}, dissect.Options{})
			for f := range testkit.Made(w.Frames) {
				d.Frame(f)
			}
			d.Finish()
			if all := strings.Join(got, " "); all != want {
				t.Errorf("%s: %q, want %q", x.name, all, want)
			}
		})
	}
}

// TestStalledCommands: the NVMe commands that took long, as their host measured them, are those
// whose RDMA operations stalled.
func TestStalledCommands(t *testing.T) {
	raw, err := os.ReadFile("../../../testdata/other/rocev2-nvmeloss.commands.json")
	if err != nil {
		t.Fatal(err)
	}
	var truth struct {
		Commands []struct {
			Start   float64 `json:"start"` // seconds on the host's clock
			Latency int64   `json:"latency_us"`
		} `json:"commands"`
	}
	if err := json.Unmarshal(raw, &truth); err != nil {
		t.Fatal(err)
	}
	var slow []int64
	for _, c := range truth.Commands {
		if c.Latency > 100e3 {
			slow = append(slow, c.Latency*1000)
		}
	}
	var stalled []*record.RDMAOperation
	_, err = dissect.New(dissect.Handler{Operation: func(r *record.RDMAOperation) error {
		if r.StalledNS > 100e6 {
			stalled = append(stalled, r.Clone())
		}
		return nil
	}}, dissect.Options{OtherOperations: true}).Run(context.Background(), testkit.Open(t, "../../../testdata/other/rocev2-nvmeloss.pcap.zst"))
	if err != nil {
		t.Fatal(err)
	}
	if len(slow) != 6 {
		t.Fatalf("%d slow commands", len(slow))
	}
	for _, want := range slow { // The operation takes nearly all of the command's time.
		found := false
		for _, r := range stalled {
			ns, known := r.LatencyNS.Get()
			found = found || known && want >= ns && want-ns < 20e6
		}
		if !found {
			t.Errorf("no operation for a command of %d ns", want)
		}
	}
	for _, r := range stalled {
		found := false
		for _, ns := range slow {
			found = found || ns >= r.StalledNS
		}
		if !found {
			t.Errorf("no command stalled as long as %+v", r)
		}
	}
}
