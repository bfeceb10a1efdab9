package dissect_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/floods"
	"github.com/rdmadump/rdmadump/synth"
)

// unrelated sends a datagram from each of n hosts that send nothing else.
func unrelated(w *synth.Wire, n int) {
	for i := range n {
		o := floods.Pair
		o.Client.Addr = netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)})
		w.RoCE(o).Client.DREP()
	}
}

// TestManyHosts: the number of remembered addresses without state is limited. A host in a current
// packet is not forgotten, and neither is a host with a Call that has no Reply.
func TestManyHosts(t *testing.T) {
	const full = 1 << 14
	run := func(w *synth.Wire) (transactions []*record.Transaction, s *record.Summary) {
		d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
			transactions = append(transactions, r.Clone())
			return nil
		}}, dissect.Options{})
		for f := range testkit.Made(w.Frames) {
			d.Frame(f)
		}
		s, _ = d.Finish()
		return transactions, s
	}
	connections := map[string]func(w *synth.Wire){
		"without handshake": func(w *synth.Wire) {
			c := w.RoCE(synth.Options{})
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
		},
		"from its REP on": func(w *synth.Wire) {
			c := w.RoCE(synth.Options{})
			c.REP()
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
		},
		"iWARP": func(w *synth.Wire) {
			c := w.IWARP(synth.Options{})
			c.Connect()
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
		},
	}
	for name, connect := range connections {
		for n := full - 6; n <= full+2; n++ {
			w := synth.New()
			unrelated(w, n)
			from := len(w.Frames)
			connect(w)
			for _, f := range w.Frames[from:] { // Without an ICRC, nothing is known about their sender.
				if name != "iWARP" {
					f.Data = f.Data[:len(f.Data)-4]
				}
			}
			transactions, s := run(w)
			if len(transactions) != 1 || transactions[0].Status != record.Complete || s.Connections != 1 {
				t.Errorf("%s, after %d hosts: %d connections, transactions %v", name, n, s.Connections, s.Transactions)
			}
		}
	}
	t.Run("retransmitted", func(t *testing.T) {
		w := synth.New()
		for i := range 2 {
			c := w.RoCE(floods.Pair)
			c.Connect()
			call := synth.Getattr3()
			call.XID = 9
			c.Client.Call(call)
			if c.Disconnect(c.Client); i == 0 {
				w.Advance(10e9)
				unrelated(w, full+1000)
			}
		}
		transactions, _ := run(w)
		if len(transactions) != 2 {
			t.Fatalf("%d transactions", len(transactions))
		}
		if of, known := transactions[1].RetransmitOf.Get(); !known || of != transactions[0].ID {
			t.Errorf("retransmit_of %v, want %d", transactions[1].RetransmitOf, transactions[0].ID)
		}
	})
	t.Run("other RPC with the same XID", func(t *testing.T) {
		other := synth.Getattr3()
		other.Procedure = 3
		another := synth.Getattr3()
		another.Args.Bytes = slices.Clone(another.Args.Bytes)
		another.Args.Bytes[len(another.Args.Bytes)-1] ^= 1 // another file
		for i, second := range []synth.Call{synth.Null(), other, another, synth.Read3(0, 4096).Offer(synth.Mem(0xa1, 4096))} {
			w := synth.New()
			for _, call := range []synth.Call{synth.Getattr3(), second} {
				c := w.RoCE(floods.Pair)
				c.Connect()
				call.XID = 9
				c.Client.Call(call)
				c.Disconnect(c.Client)
			}
			if transactions, _ := run(w); len(transactions) != 2 || transactions[1].RetransmitOf.Known() {
				t.Errorf("Call %d: %d transactions, the second retransmits %v", i, len(transactions), transactions[len(transactions)-1].RetransmitOf)
			}
		}
	})
}
