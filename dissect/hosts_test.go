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
	t.Run("the same XID", func(t *testing.T) {
		with := func(call synth.Call, at int, b byte) synth.Call { // changes a byte of the arguments, counted from their end
			call.Args.Bytes = slices.Clone(call.Args.Bytes)
			call.Args.Bytes[len(call.Args.Bytes)-at] ^= b
			return call
		}
		inSession := synth.Compound(synth.OpSequence(1), synth.OpPutFH())
		write := synth.Write3(0, []byte("the data"))
		other := synth.Getattr3()
		other.Procedure = 3
		size := len(synth.OpPutFH().Bytes)
		for name, c := range map[string]struct {
			first, second synth.Call
			repeats       bool
		}{
			"repeated":                        {synth.Getattr3(), synth.Getattr3(), true},
			"without arguments":               {synth.Getattr3(), synth.Null(), false},
			"another procedure":               {synth.Getattr3(), other, false},
			"another file":                    {synth.Getattr3(), with(synth.Getattr3(), 1, 1), false},
			"with chunks":                     {synth.Getattr3(), synth.Read3(0, 4096).Offer(synth.Mem(0xa1, 4096)), false},
			"data that was changed":           {write, with(write, 1, 1), true},
			"in a session":                    {inSession, inSession, true},
			"with other slots in the session": {inSession, with(inSession, size+5, 3), true},
			"a later use of the slot":         {inSession, synth.Compound(synth.OpSequence(2), synth.OpPutFH()), false},
		} {
			w := synth.New()
			for _, call := range []synth.Call{c.first, c.second} {
				conn := w.RoCE(floods.Pair)
				conn.Connect()
				call.XID = 9
				conn.Client.Call(call)
				conn.Disconnect(conn.Client)
			}
			if transactions, _ := run(w); len(transactions) != 2 || transactions[1].RetransmitOf.Known() != c.repeats {
				t.Errorf("%s: %d transactions, the second retransmits %v", name, len(transactions), transactions[len(transactions)-1].RetransmitOf)
			}
		}
	})
}
