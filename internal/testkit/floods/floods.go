// Package floods makes captures with a large number of one thing, for example of connections
// or of segments. Tests and benchmarks of several packages check that the cost per packet does
// not grow with that number.
package floods

import (
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/rocev2"
	"github.com/rdmadump/rdmadump/synth"
)

// The two hosts of most floods, and the options of a connection between them.
var (
	A    = synth.End{Addr: netip.MustParseAddr("10.0.0.1")}
	B    = synth.End{Addr: netip.MustParseAddr("10.0.0.2")}
	Pair = synth.Options{Client: A, Server: B, ManualAck: true}
)

// RoCE returns an established RoCEv2 connection.
func RoCE(w *synth.Wire) *synth.Conn {
	c := w.RoCE(synth.Options{ManualAck: true})
	c.Connect()
	return c
}

// IWARP returns an established iWARP connection.
func IWARP(w *synth.Wire) *synth.Conn {
	c := w.IWARP(synth.Options{ManualAck: true})
	c.Connect()
	return c
}

// Segments returns n segments. handle returns the handle of each.
func Segments(n int, handle func(int) uint32) []rpcrdma.Segment {
	s := make([]rpcrdma.Segment, n)
	for i := range s {
		s[i] = rpcrdma.Segment{Handle: handle(i), Length: 4096, Offset: uint64(i) * 8192}
	}
	return s
}

// oneHandle is a handle function for Segments that gives all segments the same handle.
func oneHandle(int) uint32 { return 0xa1 }

// OwnHandle is a handle function for Segments that gives each segment another handle.
func OwnHandle(i int) uint32 { return uint32(i) + 1 }

// offering returns a Call with a Write chunk.
func offering(xid uint32, s []rpcrdma.Segment) synth.Call {
	return synth.Call{XID: xid, Procedure: 6, Writes: [][]rpcrdma.Segment{s}}
}

// opRead is the operation READ of NFSv4, and delay the status NFS4ERR_DELAY.
const (
	opRead = 25
	delay  = 10008
)

// read4 is a READ of NFSv4.
func read4(offset uint64) synth.Call {
	return synth.Compound4(0, synth.OpPutFH(), synth.OpRead(offset, 8))
}

// perCall is the maximum number of segments in a Call of a flood. A Send with more segments
// would be too long to be decoded.
const perCall = 40000

// Flood is a kind of traffic whose cost per packet, or per segment, must not depend on its
// amount.
type Flood struct {
	Name      string
	make      maker
	bySegment bool
}

// maker makes about n packets, or n segments.
type maker func(w *synth.Wire, n int)

// Frames returns about n packets of a flood, or a few Calls with n segments in total.
// segments is the number of segments, or 0 if the flood is measured in packets.
func (f *Flood) Frames(n int) (frames []*synth.Frame, segments int) {
	w := synth.New()
	if f.make(w, n); f.bySegment {
		segments = n
	}
	return w.Frames, segments
}

// row is a row of a table of floods.
type row struct {
	name string
	make maker
}

// All are the floods.
var All = func() (all []Flood) {
	for _, r := range slices.Concat(rdma, plain) {
		all = append(all, Flood{r.name, r.make, false})
	}
	for _, r := range segmented {
		all = append(all, Flood{r.name, r.make, true})
	}
	return all
}()

// on returns a maker with an established connection.
func on(open func(*synth.Wire) *synth.Conn, do func(c *synth.Conn, n int)) maker {
	return func(w *synth.Wire, n int) { do(open(w), n) }
}

// each returns a maker that does something on an established connection for each n packets.
func each(open func(*synth.Wire) *synth.Conn, packets int, do func(c *synth.Conn, i int)) maker {
	return on(open, func(c *synth.Conn, n int) {
		for i := range n / packets {
			do(c, i)
		}
	})
}

// inTurn returns a maker that does something n times on n/200 connections without a handshake, one after the other.
func inTurn(do func(c *synth.Conn, i int)) maker {
	return func(w *synth.Wire, n int) {
		conns := make([]*synth.Conn, max(n/200, 1))
		for i := range conns {
			conns[i] = w.RoCE(Pair)
		}
		for i := range n {
			do(conns[i%len(conns)], i)
		}
	}
}

// answered returns a maker of Calls with n segments in total, each of which gets a Reply.
func answered(call func(segments int) synth.Call) maker {
	return on(RoCE, func(c *synth.Conn, n int) {
		for i := 0; i < n; i += perCall {
			call := call(min(n, perCall))
			call.XID = uint32(i) + 1
			c.Client.Call(call)
			c.Server.Reply(synth.NullReply().To(call))
		}
	})
}

// rdma are the floods of RDMA.
var rdma = []row{
	{"QPs without handshake", func(w *synth.Wire, n int) {
		for range n {
			w.RoCE(Pair).Client.Call(synth.Null())
		}
	}},
	{"QPs without handshake, no Call", func(w *synth.Wire, n int) {
		for range n {
			w.RoCE(Pair).Client.Send(make([]byte, 64))
		}
	}},
	{"QPs without handshake, both ways", func(w *synth.Wire, n int) {
		conns := make([]*synth.Conn, n/2)
		for i := range conns {
			conns[i] = w.RoCE(Pair)
			conns[i].Client.Call(synth.Null())
		}
		for _, c := range conns {
			c.Server.Ack()
		}
	}},
	{"CM REQs", func(w *synth.Wire, n int) {
		for range n {
			w.RoCE(Pair).REQ()
		}
	}},
	{"REPs for one REQ", func(w *synth.Wire, n int) {
		c := w.RoCE(Pair)
		c.REQ()
		for i := range n {
			c.REP(func(m *rocev2.REP) { m.LocalCommID, m.LocalQPN = uint32(i)+1000, uint32(i)+1000 })
		}
	}},
	{"DREQs, DREPs and REJs", each(RoCE, 1, func(c *synth.Conn, i int) {
		switch i % 3 {
		case 0:
			c.Client.DREQ()
		case 1:
			c.Server.DREP()
		case 2:
			c.Server.REJ(28)
		}
	})},
	{"MPA requests", func(w *synth.Wire, n int) {
		for range n {
			w.IWARP(Pair).MPARequest()
		}
	}},
	{"one-way QPs, 200 packets each", inTurn(func(c *synth.Conn, _ int) { c.Client.Call(synth.Null()) })},
	{"one-way QPs, 200 RDMA Writes each", inTurn(func(c *synth.Conn, i int) { c.Server.Write(0xa1, uint64(i)*64, make([]byte, 64)) })},
	{"open Calls", each(RoCE, 1, func(c *synth.Conn, _ int) { c.Client.Call(synth.Null()) })},
	{"open Calls, iWARP", each(IWARP, 1, func(c *synth.Conn, _ int) { c.Client.Call(synth.Null()) })},
	{"open Calls of one XID", each(RoCE, 1, func(c *synth.Conn, _ int) {
		call := synth.Null()
		call.XID = 7
		c.Client.Call(call)
	})},
	{"requests that the server puts off", each(RoCE, 2, func(c *synth.Conn, i int) {
		c.RPC(read4(uint64(i)), synth.CompoundFailed(delay, synth.ResPutFH(), synth.ResFailed(opRead, delay)))
	})},
	{"one request that the server puts off", each(RoCE, 2, func(c *synth.Conn, _ int) {
		c.RPC(read4(0), synth.CompoundFailed(delay, synth.ResPutFH(), synth.ResFailed(opRead, delay)))
	})},
	{"requests again on other connections, with one XID", func(w *synth.Wire, n int) {
		call := read4(0)
		call.XID = 7
		conns := make([]*synth.Conn, 16)
		for i := range conns {
			conns[i] = RoCE(w)
		}
		for i := range n {
			conns[i%len(conns)].Client.Call(call)
		}
	}},
	{"Replies without Call", each(RoCE, 1, func(c *synth.Conn, i int) {
		reply := synth.NullReply()
		reply.XID = uint32(i) + 1
		c.Server.Reply(reply)
	})},
	{"Writes to segments of one handle", on(RoCE, func(c *synth.Conn, n int) {
		c.Client.Call(offering(1, Segments(min(n, perCall), oneHandle)))
		for i := range n {
			c.Server.Write(0xa1, uint64(i%perCall)*8192, []byte("data"))
		}
	})},
	{"Writes to no segment of one handle", on(RoCE, func(c *synth.Conn, n int) {
		c.Client.Call(offering(1, Segments(min(n, perCall), oneHandle)))
		for i := range n {
			c.Server.Write(0xa1, uint64(i%perCall)*8192+5000, []byte("data"))
		}
	})},
	{"Writes over empty segments, iWARP", on(IWARP, func(c *synth.Conn, n int) {
		s := Segments(min(n, perCall), oneHandle)
		for i := range s[1:] {
			s[i+1].Offset, s[i+1].Length = s[0].Offset+4096, 0
		}
		s[0].Length = 4096
		c.Client.Call(offering(1, s))
		for range n / 2 {
			c.Server.Write(0xa1, 0, make([]byte, 4097), synth.PacketSize(4096))
		}
	})},
	{"Writes all over one segment", on(RoCE, func(c *synth.Conn, n int) {
		call := offering(1, []rpcrdma.Segment{{Handle: 0xa1, Length: 1 << 30}})
		c.Client.Call(call)
		for i := range n {
			c.Server.Write(0xa1, uint64(i*7919%n)*8, []byte("data"))
		}
	})},
	{"Terminates after large Calls", on(IWARP, func(c *synth.Conn, n int) {
		for i := range 100 {
			c.Client.Call(offering(uint32(i)+1, Segments(400, oneHandle)))
		}
		for i := range 5000 {
			c.Server.Write(0xa1, uint64(i%400)*8192, []byte("data"))
		}
		for range n {
			c.Client.Terminate(iwarp.TerminateHeader{Layer: 1, Type: 1, Code: 0, HasDDP: true, DDP: iwarp.Segment{Tagged: true, STag: 0xa2, Opcode: iwarp.Write}})
		}
	})},
	{"NAKs after large Calls", on(RoCE, func(c *synth.Conn, n int) {
		for i := range 100 {
			c.Client.Call(offering(uint32(i)+1, Segments(400, oneHandle)))
		}
		for i := range 5000 {
			c.Server.Write(0xa1, uint64(i%400)*8192, []byte("data"))
		}
		for i := range n {
			c.Client.Nak(rocev2.NakRemoteAccessError, synth.AtPSN((c.Server.NextPSN-1-uint32(i%4000))&rocev2.PSNMask))
		}
	})},
	{"TCP flows after holes", func(w *synth.Wire, n int) {
		for range max(n/20, 1) {
			c := w.IWARP(synth.Options{ManualAck: true})
			c.MPARequest()
			c.MPAReply()
			c.Client.Sequence += 1000
			for range 18 {
				c.Client.Call(synth.Null())
			}
		}
	}},
	{"one TCP flow, every other segment lost", each(IWARP, 1, func(c *synth.Conn, _ int) {
		c.Client.Call(synth.Null())
		c.Client.Sequence += 100
	})},
	{"TCP segments backwards", on(IWARP, func(c *synth.Conn, n int) {
		c.Client.Sequence += uint32(n) * 100
		for range n {
			c.Client.Sequence -= 100
			c.Client.Stream(make([]byte, 100))
			c.Client.Sequence -= 100
		}
	})},
	{"TCP bytes that are no FPDUs", on(IWARP, func(c *synth.Conn, n int) {
		junk := make([]byte, 1400)
		r := rand.New(rand.NewPCG(1, 1))
		for range n {
			for i := range junk {
				junk[i] = byte(r.Uint32())
			}
			c.Client.Stream(junk)
		}
	})},
	{"unfinished iWARP Sends", func(w *synth.Wire, n int) {
		for range max(n/20, 1) {
			c := w.IWARP(synth.Options{ManualAck: true})
			c.MPARequest()
			c.MPAReply()
			for i := range 18 {
				c.Client.Segment(iwarp.Segment{Opcode: iwarp.Send, Queue: 0, Sequence: 1, Offset: uint64(i) * 1000, Payload: make([]byte, 1000)})
			}
		}
	}},
	{"PSNs backwards", on(RoCE, func(c *synth.Conn, n int) {
		psn := c.Client.NextPSN
		for i := range n {
			c.Client.NextPSN = (psn + uint32(n-i)) & rocev2.PSNMask
			c.Client.Call(synth.Null())
		}
	})},
	{"PSNs in disorder", on(RoCE, func(c *synth.Conn, n int) {
		psn := c.Client.NextPSN
		r := rand.New(rand.NewPCG(1, 1))
		for i := range n {
			c.Client.NextPSN = (psn + uint32(i) + r.Uint32N(1000)) & rocev2.PSNMask
			c.Client.Call(synth.Null())
		}
	})},
	{"every other packet lost, UC", each(RoCE, 1, func(c *synth.Conn, _ int) {
		c.Client.Send([]byte("12345678"), synth.Over(rocev2.UC))
		c.Client.NextPSN++
	})},
	{"duplicates", on(RoCE, func(c *synth.Conn, n int) {
		f := c.Client.Call(synth.Null())
		for range n {
			c.Wire.Retransmit(f...)
		}
	})},
	{"duplicates of what waits", on(RoCE, func(c *synth.Conn, n int) {
		c.Client.NextPSN += 10
		f := c.Client.Call(synth.Null())
		for range n {
			c.Wire.Retransmit(f...)
		}
	})},
	{"duplicates of old operations", on(RoCE, func(c *synth.Conn, n int) {
		c.Client.Call(offering(1, Segments(400, oneHandle)))
		var old []*synth.Frame
		for i := range 3000 {
			old = append(old, c.Server.Write(0xa1, uint64(i%400)*8192, []byte("data"))...)
		}
		for i := range n {
			c.Wire.Retransmit(old[i*131%len(old)])
		}
	})},
	{"Read requests without response", on(RoCE, func(c *synth.Conn, n int) {
		c.Client.Call(synth.Write3(0, make([]byte, 4096)).Reduce(0xa1))
		for range n {
			c.Server.ReadRequest(0xa1, 0, 4096)
		}
	})},
	{"Read requests without response, iWARP", on(IWARP, func(c *synth.Conn, n int) {
		c.Client.Call(synth.Write3(0, make([]byte, 4096)).Reduce(0xa1))
		for range n / 2 {
			c.Server.ReadRequest(0xa1, 0, 4096)
		}
		for range n / 2 {
			c.Client.Segment(iwarp.Segment{Tagged: true, Opcode: iwarp.ReadResponse, STag: 0xffff, Payload: []byte("data")})
		}
	})},
	{"Read responses without a request", on(RoCE, func(c *synth.Conn, n int) {
		r := c.Server.ReadRequest(0xa1, 0, 1<<20)
		data := make([]byte, 1<<20)
		for i := range n {
			r.RespondPackets(data, i*7919%250, i*7919%250+1)
		}
	})},
	{"Replies that NAKs take back, connection after connection", func(w *synth.Wire, n int) {
		for range n / 8 {
			c := w.RoCE(Pair)
			c.Connect()
			call := synth.Getattr3()
			call.XID = 9
			c.Client.Call(call)
			c.Server.Reply(synth.Getattr3Reply())
			c.Client.Refuse()
		}
	}},
	{"chunks that claim what never moves", each(RoCE, 1, func(c *synth.Conn, i int) {
		call := synth.Write3(0, make([]byte, 8)).Reduce(uint32(i) + 1)
		call.XID, call.Reads[0].Length = uint32(i)+1, 60<<20
		c.Client.Call(call)
	})},
	{"senders", func(w *synth.Wire, n int) {
		for i := range n {
			o := Pair
			o.Client.Addr = netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)})
			w.RoCE(o).Client.Call(synth.Null())
		}
	}},
	{"healthy RPCs", func(w *synth.Wire, n int) {
		c := w.RoCE(synth.Options{})
		c.Connect()
		for i := 0; i < n; i += 5 {
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
		}
	}},
}

// segmented are the floods of RDMA that are measured in segments.
var segmented = []row{
	{"segments of one handle, one Call", on(RoCE, func(c *synth.Conn, n int) {
		c.Client.Call(offering(1, Segments(min(n, perCall), oneHandle)))
		for i := perCall; i < n; i += perCall {
			c.Client.Call(offering(uint32(i), Segments(perCall, oneHandle)))
		}
	})},
	{"segments of one handle, 240 a Call", on(RoCE, func(c *synth.Conn, n int) {
		for i := 0; i < n; i += 240 {
			c.Client.Call(offering(uint32(i)+1, Segments(240, oneHandle)))
		}
	})},
	{"segments of one handle and offset", on(RoCE, func(c *synth.Conn, n int) {
		s := Segments(240, oneHandle)
		for i := range s {
			s[i].Offset = 0
		}
		for i := 0; i < n; i += 240 {
			c.Client.Call(offering(uint32(i)+1, s))
		}
	})},
	{"distinct handles, one Call", answered(func(n int) synth.Call { return offering(0, Segments(n, OwnHandle)) })},
	{"Read chunks, one Call", answered(func(n int) (call synth.Call) {
		call.Procedure = 7
		for j := range n {
			call.Reads = append(call.Reads, synth.ReadChunk(uint32(j)*4, rpcrdma.Segment{Handle: 1})...)
		}
		return call
	})},
	{"Write chunks, one Call", answered(func(n int) (call synth.Call) {
		call.Procedure = 6
		for _, s := range Segments(n, OwnHandle) {
			call.Writes = append(call.Writes, []rpcrdma.Segment{s})
		}
		return call
	})},
	{"empty Write chunks, one Call", answered(func(n int) synth.Call {
		return synth.Call{Procedure: 6, Writes: make([][]rpcrdma.Segment, n)}
	})},
	{"reduced items with their pads left, one Call", func(w *synth.Wire, n int) {
		for i := 0; i < n; i += perCall {
			RoCE(w).Client.Call(Hashes(min(n, perCall), 3, 0))
		}
	}},
	{"reduced items that may not be, one Call", func(w *synth.Wire, n int) {
		for i := 0; i < n; i += perCall {
			RoCE(w).Client.Call(Hashes(min(n, perCall), 0, 4))
		}
	}},
}

// Hashes returns a Call of EXCHANGE_ID with n hash algorithms, whose names have one byte and
// are in Read chunks although they are not DDP-eligible. After each name, pad bytes of its
// XDR pad remain, and more bytes follow after the last name.
func Hashes(n, pad, more int) synth.Call {
	rpc := synth.XDR{}.Word(7, uint32(oncrpc.Call), 2, 100003, 4, 1, 0, 0, 0, 0).Word(0, 1, 1, 42, 0, 0, 0, 0, 2, 0, 0, uint32(n))
	at := len(rpc.Bytes)
	call := synth.Call{XID: 7}
	for i := range n {
		rpc.Bytes = append(append(rpc.Bytes, 0, 0, 0, 1), make([]byte, pad)...)
		call.Reads = append(call.Reads, synth.ReadChunk(uint32(at+8*i+4), synth.Mem(uint32(0x1000+i), 1))...)
	}
	rpc.Bytes = append(rpc.Bytes, make([]byte, 16+more)...)
	call.RPC = &rpc
	return call
}
