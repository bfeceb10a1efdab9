package transaction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/internal/testkit/floods"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
)

// TestWrongItems: if very many data items of a Call are wrong, only some are reported.
func TestWrongItems(t *testing.T) {
	for _, c := range []struct {
		n, pad, more int
		want         string
	}{
		{3, 0, 0, "map[reduced-ineligible-item:3]"},
		{3, 3, 0, "map[reduced-ineligible-item:3 reduced-pad-left:1]"},
		{5000, 0, 0, "map[reduced-ineligible-item:16]"},
		{5000, 0, 4, "map[reduced-ineligible-item:16]"},
		{5000, 3, 0, "map[]"}, // The check stops earlier.
	} {
		w := synth.New()
		conn := floods.RoCE(w)
		conn.Client.Call(floods.Hashes(c.n, c.pad, c.more))
		s := look.At(w)
		got := map[string]int{}
		for _, f := range s.Findings {
			if strings.HasPrefix(f.Rule, "reduced-") {
				got[f.Rule]++
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%d items, %d bytes of pad, %d more: %v, want %s", c.n, c.pad, c.more, got, c.want)
		}
	}
}

// TestReadsGoOn: on iWARP, RDMA Reads are found after any number of operations, and a packet
// belongs to the message that it carries, whatever else it acknowledges.
func TestReadsGoOn(t *testing.T) {
	w := synth.New()
	c := w.IWARP(synth.Options{})
	c.Connect()
	const n = 700
	for i := range n {
		if i%3 == 0 {
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
		}
		c.RPC(synth.Write3(0, make([]byte, 1000+i)).Reduce(uint32(0xa00+i)), synth.Write3Reply(uint32(1000+i)))
	}
	moved := 0
	look.Pour(w.Frames, dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			for _, chunk := range r.ReadChunks {
				for _, s := range chunk.Segments {
					if moved++; s.MovedBytes != int64(s.Length) {
						t.Errorf("%v: %d bytes of %d moved", r.XID, s.MovedBytes, s.Length)
					}
				}
			}
			return nil
		},
		Packet: func(p *record.Packet) error {
			for _, node := range p.Nodes {
				if node.Table == nil || node.Table.Name != "rpcrdma" || len(node.Data) < rpcrdma.FixedLen {
					continue
				}
				xid := record.Hex32(uint32(node.Data[0])<<24 | uint32(node.Data[1])<<16 | uint32(node.Data[2])<<8 | uint32(node.Data[3]))
				if p.XID != record.Some(xid) {
					t.Errorf("packet %d carries XID %v and belongs to %v", p.Number, xid, p.XID)
				}
			}
			return nil
		},
	}, dissect.Options{})
	if moved != n {
		t.Errorf("%d of %d Read chunks", moved, n)
	}
}

// TestHeaderHole: a Read chunk with a Position inside the RPC header removes no bytes from the
// arguments.
func TestHeaderHole(t *testing.T) {
	w := synth.New()
	c := floods.RoCE(w)
	call := synth.Compound(synth.OpPutFH(), synth.OpWrite(0, make([]byte, 2000)), synth.OpGetAttr()).Reduce(0xa1)
	call.Reads = append(synth.ReadChunk(16, synth.Mem(0xb1, 8)), call.Reads...)
	c.Client.Call(call)
	packets, operations := 0, ""
	look.Pour(w.Frames, dissect.Handler{
		Packet: func(p *record.Packet) error {
			for _, content := range p.Messages {
				m := content.(*nfs.Message)
				if packets++; !m.Complete || !strings.HasSuffix(string(p.Summary), "PUTFH+WRITE+GETATTR") {
					t.Errorf("the message of the packet %q is not decoded completely: %v", p.Summary, m.Err)
				}
			}
			return nil
		},
		Transaction: func(r *record.Transaction) error {
			operations += strings.Join(r.Operations, "+")
			return nil
		},
	}, dissect.Options{Tree: true})
	if packets != 1 || operations != "PUTFH+WRITE+GETATTR" {
		t.Errorf("%d Calls, %s", packets, operations)
	}
}

// TestDoubt: an error in a truncated packet may have been caused by the network. It is reported
// when the packet is acknowledged, and not if the packet is retransmitted.
func TestDoubt(t *testing.T) {
	for _, c := range []struct {
		name  string
		after func(w *synth.Wire, c *synth.Conn, sent []*synth.Frame)
		want  int
	}{
		{"acknowledged", func(_ *synth.Wire, c *synth.Conn, _ []*synth.Frame) { c.Server.Ack() }, 1},
		{"sent again", func(w *synth.Wire, c *synth.Conn, sent []*synth.Frame) {
			w.Retransmit(sent...)
			c.Server.Ack()
		}, 0},
		{"never acknowledged", func(*synth.Wire, *synth.Conn, []*synth.Frame) {}, 0},
	} {
		for _, up := range []func(*synth.Wire) *synth.Conn{floods.RoCE, floods.IWARP} {
			w := synth.New()
			conn := up(w)
			sent := conn.Client.Call(synth.Call{XID: 0xabadcafe, Vers: 3, Args: synth.XDR{}.Opaque(make([]byte, 200))})
			c.after(w, conn, sent)
			w.Truncate(140)
			s := look.At(w)
			got := 0
			for _, f := range s.Findings {
				if f.Rule == "rdma-version" {
					got++
				}
			}
			if got != c.want {
				t.Errorf("%s: %d findings, want %d", c.name, got, c.want)
			}
			for _, r := range s.Transactions {
				if slices.Contains(r.Findings, "rdma-version") != (c.want > 0) {
					t.Errorf("%s: the transaction has %v", c.name, r.Findings)
				}
			}
		}
	}
}
