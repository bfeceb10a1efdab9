package floods

import "github.com/rdmadump/rdmadump/synth"

// nfs are the options of a connection to the port of NFS.
var nfs = synth.Options{Client: A, Server: synth.End{Addr: B.Addr, Port: 2049}, ManualAck: true}

// overTCP returns an open TCP connection.
func overTCP(w *synth.Wire) *synth.Conn {
	c := w.IWARP(nfs)
	c.Open()
	return c
}

// message returns a Call of NFS, or its Reply.
func message(xid int, reply bool) synth.XDR {
	if reply {
		return synth.Reply{XID: uint32(xid) + 1}.Message()
	}
	return synth.Call{XID: uint32(xid) + 1, Procedure: 1}.Message()
}

// plain are the floods of RPC over TCP and UDP, and of TCP connections that do not carry it.
var plain = []row{
	{"TCP handshakes", func(w *synth.Wire, n int) {
		for range n / 3 {
			w.IWARP(Pair).Open()
		}
	}},
	{"refused TCP connections", func(w *synth.Wire, n int) {
		for range n / 2 {
			c := w.IWARP(nfs)
			c.Client.TCP(2, nil)
			c.Server.RST()
		}
	}},
	{"TCP connections with a Call", func(w *synth.Wire, n int) {
		for i := range n / 4 {
			c := w.IWARP(nfs)
			c.Open()
			c.Client.Records(message(i, false))
		}
	}},
	{"TCP connections with a Call, without handshake", func(w *synth.Wire, n int) {
		for i := range n {
			w.IWARP(nfs).Client.Records(message(i, false))
		}
	}},
	{"open Calls, TCP", each(overTCP, 1, func(c *synth.Conn, i int) { c.Client.Records(message(i, false)) })},
	{"Calls of one XID, TCP", each(overTCP, 1, func(c *synth.Conn, _ int) { c.Client.Records(message(7, false)) })},
	{"Replies without Call, TCP", on(overTCP, func(c *synth.Conn, n int) {
		c.Client.Records(message(0, false))
		for i := range n {
			c.Server.Records(message(i, true))
		}
	})},
	{"empty fragments, TCP", on(overTCP, func(c *synth.Conn, n int) {
		record := synth.Record(message(0, false), 20)
		c.Client.Stream(record[:24]) // the first fragment
		var empty []byte
		for range 256 {
			empty = append(empty, 0, 0, 0, 0)
		}
		for range n {
			c.Client.Stream(empty)
		}
	})},
	{"records that never end, TCP", on(overTCP, func(c *synth.Conn, n int) {
		c.Client.Stream(synth.Record(synth.Call{XID: 1, Args: synth.XDR{}.Opaque(make([]byte, 1<<20))}.Message())[:2000])
		for range n {
			c.Client.Stream(make([]byte, 100))
		}
	})},
	{"segments before a gap, TCP", on(overTCP, func(c *synth.Conn, n int) {
		c.Client.Records(message(0, false))
		c.Client.Sequence += 1000
		for i := range n {
			c.Client.Records(message(i, false))
		}
	})},
	{"UDP ports with a Call", func(w *synth.Wire, n int) {
		for i := range n {
			w.IWARP(nfs).Client.Datagram(message(i, false))
		}
	}},
	{"RPCs, UDP", func(w *synth.Wire, n int) {
		c := w.IWARP(nfs)
		for i := range n / 2 {
			c.Client.Datagram(message(i, false))
			c.Server.Datagram(message(i, true))
		}
	}},
}
