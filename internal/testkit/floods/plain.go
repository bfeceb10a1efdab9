package floods

import "github.com/rdmadump/rdmadump/synth"

// nfs are the options of a connection to the port of NFS.
var nfs = synth.Options{Client: A, Server: synth.End{Addr: B.Addr, Port: 2049}, ManualAck: true}

// message returns a Call of NFS, or its Reply.
func message(xid int, reply bool) synth.XDR {
	if reply {
		return synth.Reply{XID: uint32(xid) + 1}.Message()
	}
	return synth.Call{XID: uint32(xid) + 1, Procedure: 1}.Message()
}

// plain are the floods of RPC over TCP and UDP, and of TCP connections that do not carry it.
var plain = []Flood{
	{"TCP handshakes", func(w *synth.Wire, n int) int {
		for range n / 3 {
			w.IWARP(Pair).Open()
		}
		return 0
	}},
	{"refused TCP connections", func(w *synth.Wire, n int) int {
		for range n / 2 {
			c := w.IWARP(nfs)
			c.Client.TCP(2, nil)
			c.Server.RST()
		}
		return 0
	}},
	{"TCP connections with a Call", func(w *synth.Wire, n int) int {
		for i := range n / 4 {
			c := w.IWARP(nfs)
			c.Open()
			c.Client.Records(message(i, false))
		}
		return 0
	}},
	{"TCP connections with a Call, without handshake", func(w *synth.Wire, n int) int {
		for i := range n {
			w.IWARP(nfs).Client.Records(message(i, false))
		}
		return 0
	}},
	{"open Calls, TCP", func(w *synth.Wire, n int) int {
		c := w.IWARP(nfs)
		c.Open()
		for i := range n {
			c.Client.Records(message(i, false))
		}
		return 0
	}},
	{"Calls of one XID, TCP", func(w *synth.Wire, n int) int {
		c := w.IWARP(nfs)
		c.Open()
		for range n {
			c.Client.Records(message(7, false))
		}
		return 0
	}},
	{"Replies without Call, TCP", func(w *synth.Wire, n int) int {
		c := w.IWARP(nfs)
		c.Open()
		c.Client.Records(message(0, false))
		for i := range n {
			c.Server.Records(message(i, true))
		}
		return 0
	}},
	{"empty fragments, TCP", func(w *synth.Wire, n int) int {
		c := w.IWARP(nfs)
		c.Open()
		record := synth.Record(message(0, false), 20)
		c.Client.Stream(record[:24]) // the first fragment
		var empty []byte
		for range 256 {
			empty = append(empty, 0, 0, 0, 0)
		}
		for range n {
			c.Client.Stream(empty)
		}
		return 0
	}},
	{"records that never end, TCP", func(w *synth.Wire, n int) int {
		c := w.IWARP(nfs)
		c.Open()
		c.Client.Stream(synth.Record(synth.Call{XID: 1, Args: synth.XDR{}.Opaque(make([]byte, 1<<20))}.Message())[:2000])
		for range n {
			c.Client.Stream(make([]byte, 100))
		}
		return 0
	}},
	{"segments before a gap, TCP", func(w *synth.Wire, n int) int {
		c := w.IWARP(nfs)
		c.Open()
		c.Client.Records(message(0, false))
		c.Client.Sequence += 1000
		for i := range n {
			c.Client.Records(message(i, false))
		}
		return 0
	}},
	{"UDP ports with a Call", func(w *synth.Wire, n int) int {
		for i := range n {
			w.IWARP(nfs).Client.Datagram(message(i, false))
		}
		return 0
	}},
	{"RPCs, UDP", func(w *synth.Wire, n int) int {
		c := w.IWARP(nfs)
		for i := range n / 2 {
			c.Client.Datagram(message(i, false))
			c.Server.Datagram(message(i, true))
		}
		return 0
	}},
}
