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
	return synth.Call{XID: xid, Program: 100003, Version: 3, Procedure: 6, Writes: [][]rpcrdma.Segment{s}}
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
	Name string
	make func(w *synth.Wire, n int) (segments int)
}

// Frames returns about n packets of a flood, or a few Calls with n segments in total.
// segments is the number of segments, or 0 if the flood is measured in packets.
func (f *Flood) Frames(n int) (frames []*synth.Frame, segments int) {
	w := synth.New()
	segments = f.make(w, n)
	return w.Frames, segments
}

// All are the floods.
var All = slices.Concat(rdma, plain)

// rdma are the floods of RDMA.
var rdma = []Flood{
	{"QPs without handshake", func(w *synth.Wire, n int) int {
		for range n {
			w.RoCE(Pair).Client.Call(synth.Null())
		}
		return 0
	}},
	{"QPs without handshake, no Call", func(w *synth.Wire, n int) int {
		for range n {
			w.RoCE(Pair).Client.Send(make([]byte, 64))
		}
		return 0
	}},
	{"QPs without handshake, both ways", func(w *synth.Wire, n int) int {
		conns := make([]*synth.Conn, n/2)
		for i := range conns {
			conns[i] = w.RoCE(Pair)
			conns[i].Client.Call(synth.Null())
		}
		for _, c := range conns {
			c.Server.Ack()
		}
		return 0
	}},
	{"CM REQs", func(w *synth.Wire, n int) int {
		for range n {
			w.RoCE(Pair).REQ()
		}
		return 0
	}},
	{"REPs for one REQ", func(w *synth.Wire, n int) int {
		c := w.RoCE(Pair)
		c.REQ()
		for i := range n {
			c.REP(func(m *rocev2.REP) { m.LocalCommID, m.LocalQPN = uint32(i)+1000, uint32(i)+1000 })
		}
		return 0
	}},
	{"DREQs, DREPs and REJs", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		for i := range n {
			switch i % 3 {
			case 0:
				c.Client.DREQ()
			case 1:
				c.Server.DREP()
			case 2:
				c.Server.REJ(28)
			}
		}
		return 0
	}},
	{"MPA requests", func(w *synth.Wire, n int) int {
		for range n {
			w.IWARP(Pair).MPARequest()
		}
		return 0
	}},
	{"one-way QPs, 200 packets each", func(w *synth.Wire, n int) int {
		conns := make([]*synth.Conn, max(n/200, 1))
		for i := range conns {
			conns[i] = w.RoCE(Pair)
		}
		for i := range n {
			conns[i%len(conns)].Client.Call(synth.Null())
		}
		return 0
	}},
	{"one-way QPs, 200 RDMA Writes each", func(w *synth.Wire, n int) int {
		conns := make([]*synth.Conn, max(n/200, 1))
		for i := range conns {
			conns[i] = w.RoCE(Pair)
		}
		for i := range n {
			conns[i%len(conns)].Server.Write(0xa1, uint64(i)*64, make([]byte, 64))
		}
		return 0
	}},
	{"open Calls", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		for range n {
			c.Client.Call(synth.Null())
		}
		return 0
	}},
	{"open Calls, iWARP", func(w *synth.Wire, n int) int {
		c := IWARP(w)
		for range n {
			c.Client.Call(synth.Null())
		}
		return 0
	}},
	{"open Calls of one XID", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		for range n {
			call := synth.Null()
			call.XID = 7
			c.Client.Call(call)
		}
		return 0
	}},
	{"requests that the server puts off", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		for i := range n / 2 {
			c.RPC(read4(uint64(i)), synth.CompoundFailed(delay, synth.ResPutFH(), synth.ResFailed(opRead, delay)))
		}
		return 0
	}},
	{"one request that the server puts off", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		for range n / 2 {
			c.RPC(read4(0), synth.CompoundFailed(delay, synth.ResPutFH(), synth.ResFailed(opRead, delay)))
		}
		return 0
	}},
	{"requests again on other connections, with one XID", func(w *synth.Wire, n int) int {
		call := read4(0)
		call.XID = 7
		conns := make([]*synth.Conn, 16)
		for i := range conns {
			conns[i] = RoCE(w)
		}
		for i := range n {
			conns[i%len(conns)].Client.Call(call)
		}
		return 0
	}},
	{"Replies without Call", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		for i := range n {
			reply := synth.NullReply()
			reply.XID = uint32(i) + 1
			c.Server.Reply(reply)
		}
		return 0
	}},
	{"segments of one handle, one Call", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		c.Client.Call(offering(1, Segments(min(n, perCall), oneHandle)))
		for i := perCall; i < n; i += perCall {
			c.Client.Call(offering(uint32(i), Segments(perCall, oneHandle)))
		}
		return n
	}},
	{"segments of one handle, 240 a Call", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		for i := 0; i < n; i += 240 {
			c.Client.Call(offering(uint32(i)+1, Segments(240, oneHandle)))
		}
		return n
	}},
	{"segments of one handle and offset", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		s := Segments(240, oneHandle)
		for i := range s {
			s[i].Offset = 0
		}
		for i := 0; i < n; i += 240 {
			c.Client.Call(offering(uint32(i)+1, s))
		}
		return n
	}},
	{"distinct handles, one Call", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		for i := 0; i < n; i += perCall {
			call := offering(uint32(i)+1, Segments(min(n, perCall), OwnHandle))
			c.Client.Call(call)
			c.Server.Reply(synth.NullReply().To(call))
		}
		return n
	}},
	{"Read chunks, one Call", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		for i := 0; i < n; i += perCall {
			call := synth.Call{XID: uint32(i) + 1, Program: 100003, Version: 3, Procedure: 7}
			for j := range min(n, perCall) {
				call.Reads = append(call.Reads, synth.ReadChunk(uint32(j)*4, rpcrdma.Segment{Handle: 1})...)
			}
			c.Client.Call(call)
			c.Server.Reply(synth.NullReply().To(call))
		}
		return n
	}},
	{"Write chunks, one Call", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		for i := 0; i < n; i += perCall {
			call := synth.Call{XID: uint32(i) + 1, Program: 100003, Version: 3, Procedure: 6}
			for _, s := range Segments(min(n, perCall), OwnHandle) {
				call.Writes = append(call.Writes, []rpcrdma.Segment{s})
			}
			c.Client.Call(call)
			c.Server.Reply(synth.NullReply().To(call))
		}
		return n
	}},
	{"empty Write chunks, one Call", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		for i := 0; i < n; i += perCall {
			call := synth.Call{XID: uint32(i) + 1, Program: 100003, Version: 3, Procedure: 6, Writes: make([][]rpcrdma.Segment, min(n, perCall))}
			c.Client.Call(call)
			c.Server.Reply(synth.NullReply().To(call))
		}
		return n
	}},
	{"Writes to segments of one handle", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		c.Client.Call(offering(1, Segments(min(n, perCall), oneHandle)))
		for i := range n {
			c.Server.Write(0xa1, uint64(i%perCall)*8192, []byte("data"))
		}
		return 0
	}},
	{"Writes to no segment of one handle", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		c.Client.Call(offering(1, Segments(min(n, perCall), oneHandle)))
		for i := range n {
			c.Server.Write(0xa1, uint64(i%perCall)*8192+5000, []byte("data"))
		}
		return 0
	}},
	{"Writes over empty segments, iWARP", func(w *synth.Wire, n int) int {
		c := IWARP(w)
		s := Segments(min(n, perCall), oneHandle)
		for i := range s[1:] {
			s[i+1].Offset, s[i+1].Length = s[0].Offset+4096, 0
		}
		s[0].Length = 4096
		c.Client.Call(offering(1, s))
		for range n / 2 {
			c.Server.Write(0xa1, 0, make([]byte, 4097), synth.PacketSize(4096))
		}
		return 0
	}},
	{"Writes all over one segment", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		call := offering(1, []rpcrdma.Segment{{Handle: 0xa1, Length: 1 << 30}})
		c.Client.Call(call)
		for i := range n {
			c.Server.Write(0xa1, uint64(i*7919%n)*8, []byte("data"))
		}
		return 0
	}},
	{"Terminates after large Calls", func(w *synth.Wire, n int) int {
		c := IWARP(w)
		for i := range 100 {
			c.Client.Call(offering(uint32(i)+1, Segments(400, oneHandle)))
		}
		for i := range 5000 {
			c.Server.Write(0xa1, uint64(i%400)*8192, []byte("data"))
		}
		for range n {
			c.Client.Terminate(iwarp.TerminateHeader{Layer: 1, Type: 1, Code: 0, HasDDP: true, DDP: iwarp.Segment{Tagged: true, STag: 0xa2, Opcode: iwarp.Write}})
		}
		return 0
	}},
	{"NAKs after large Calls", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		for i := range 100 {
			c.Client.Call(offering(uint32(i)+1, Segments(400, oneHandle)))
		}
		for i := range 5000 {
			c.Server.Write(0xa1, uint64(i%400)*8192, []byte("data"))
		}
		for i := range n {
			c.Client.Nak(rocev2.NakRemoteAccessError, synth.AtPSN((c.Server.NextPSN-1-uint32(i%4000))&rocev2.PSNMask))
		}
		return 0
	}},
	{"TCP flows after holes", func(w *synth.Wire, n int) int {
		for range max(n/20, 1) {
			c := w.IWARP(synth.Options{ManualAck: true})
			c.MPARequest()
			c.MPAReply()
			c.Client.Sequence += 1000
			for range 18 {
				c.Client.Call(synth.Null())
			}
		}
		return 0
	}},
	{"one TCP flow, every other segment lost", func(w *synth.Wire, n int) int {
		c := IWARP(w)
		for range n {
			c.Client.Call(synth.Null())
			c.Client.Sequence += 100
		}
		return 0
	}},
	{"TCP segments backwards", func(w *synth.Wire, n int) int {
		c := IWARP(w)
		c.Client.Sequence += uint32(n) * 100
		for range n {
			c.Client.Sequence -= 100
			c.Client.Stream(make([]byte, 100))
			c.Client.Sequence -= 100
		}
		return 0
	}},
	{"TCP bytes that are no FPDUs", func(w *synth.Wire, n int) int {
		c := IWARP(w)
		junk := make([]byte, 1400)
		r := rand.New(rand.NewPCG(1, 1))
		for range n {
			for i := range junk {
				junk[i] = byte(r.Uint32())
			}
			c.Client.Stream(junk)
		}
		return 0
	}},
	{"unfinished iWARP Sends", func(w *synth.Wire, n int) int {
		for range max(n/20, 1) {
			c := w.IWARP(synth.Options{ManualAck: true})
			c.MPARequest()
			c.MPAReply()
			for i := range 18 {
				c.Client.Segment(iwarp.Segment{Opcode: iwarp.Send, Queue: 0, Sequence: 1, Offset: uint64(i) * 1000, Payload: make([]byte, 1000)})
			}
		}
		return 0
	}},
	{"PSNs backwards", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		psn := c.Client.NextPSN
		for i := range n {
			c.Client.NextPSN = (psn + uint32(n-i)) & rocev2.PSNMask
			c.Client.Call(synth.Null())
		}
		return 0
	}},
	{"PSNs in disorder", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		psn := c.Client.NextPSN
		r := rand.New(rand.NewPCG(1, 1))
		for i := range n {
			c.Client.NextPSN = (psn + uint32(i) + r.Uint32N(1000)) & rocev2.PSNMask
			c.Client.Call(synth.Null())
		}
		return 0
	}},
	{"every other packet lost, UC", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		for range n {
			c.Client.Send([]byte("12345678"), synth.Over(rocev2.UC))
			c.Client.NextPSN++
		}
		return 0
	}},
	{"duplicates", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		f := c.Client.Call(synth.Null())
		for range n {
			w.Retransmit(f...)
		}
		return 0
	}},
	{"duplicates of what waits", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		c.Client.NextPSN += 10
		f := c.Client.Call(synth.Null())
		for range n {
			w.Retransmit(f...)
		}
		return 0
	}},
	{"duplicates of old operations", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		c.Client.Call(offering(1, Segments(400, oneHandle)))
		var old []*synth.Frame
		for i := range 3000 {
			old = append(old, c.Server.Write(0xa1, uint64(i%400)*8192, []byte("data"))...)
		}
		for i := range n {
			w.Retransmit(old[i*131%len(old)])
		}
		return 0
	}},
	{"Read requests without response", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		c.Client.Call(synth.Write3(0, make([]byte, 4096)).Reduce(0xa1))
		for range n {
			c.Server.ReadRequest(0xa1, 0, 4096)
		}
		return 0
	}},
	{"Read requests without response, iWARP", func(w *synth.Wire, n int) int {
		c := IWARP(w)
		c.Client.Call(synth.Write3(0, make([]byte, 4096)).Reduce(0xa1))
		for range n / 2 {
			c.Server.ReadRequest(0xa1, 0, 4096)
		}
		for range n / 2 {
			c.Client.Segment(iwarp.Segment{Tagged: true, Opcode: iwarp.ReadResponse, STag: 0xffff, Payload: []byte("data")})
		}
		return 0
	}},
	{"Read responses without a request", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		r := c.Server.ReadRequest(0xa1, 0, 1<<20)
		data := make([]byte, 1<<20)
		for i := range n {
			r.RespondPackets(data, i*7919%250, i*7919%250+1)
		}
		return 0
	}},
	{"Replies that NAKs take back, connection after connection", func(w *synth.Wire, n int) int {
		for range n / 8 {
			c := w.RoCE(Pair)
			c.Connect()
			call := synth.Getattr3()
			call.XID = 9
			c.Client.Call(call)
			c.Server.Reply(synth.Getattr3Reply())
			c.Client.Refuse()
		}
		return 0
	}},
	{"reduced items with their pads left, one Call", func(w *synth.Wire, n int) int {
		for i := 0; i < n; i += perCall {
			RoCE(w).Client.Call(Hashes(min(n, perCall), 3, 0))
		}
		return n
	}},
	{"reduced items that may not be, one Call", func(w *synth.Wire, n int) int {
		for i := 0; i < n; i += perCall {
			RoCE(w).Client.Call(Hashes(min(n, perCall), 0, 4))
		}
		return n
	}},
	{"chunks that claim what never moves", func(w *synth.Wire, n int) int {
		c := RoCE(w)
		for i := range n {
			call := synth.Write3(0, make([]byte, 8)).Reduce(uint32(i) + 1)
			call.XID, call.Reads[0].Length = uint32(i)+1, 60<<20
			c.Client.Call(call)
		}
		return 0
	}},
	{"senders", func(w *synth.Wire, n int) int {
		for i := range n {
			o := Pair
			o.Client.Addr = netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)})
			w.RoCE(o).Client.Call(synth.Null())
		}
		return 0
	}},
	{"healthy RPCs", func(w *synth.Wire, n int) int {
		c := w.RoCE(synth.Options{})
		c.Connect()
		for i := 0; i < n; i += 5 {
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
		}
		return 0
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
