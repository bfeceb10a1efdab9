package cases

import (
	"time"

	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/rocev2"
	"github.com/rdmadump/rdmadump/synth"
)

// Rules about the transport.

// refusedWrite sends an RDMA Write that the client's adapter rejects.
func refusedWrite(_ *wire, c *conn) {
	c.Client.Call(read())
	c.Server.Write(0xa1, mem.Offset, data(4096))
	c.Client.Refuse()
}

var transport = []Case{
	{
		Rule: "remote-error-nak", Name: "an RDMA Write", Transport: RoCE,
		Broken: refusedWrite, Healthy: does(read(), readReply()),
	},
	{
		Rule: "terminate", Name: "an RDMA Write", Transport: IWARP,
		Broken: refusedWrite, Healthy: does(read(), readReply()),
	},
	{Rule: "remote-error-nak", Name: "an RDMA Write to an invalidated handle", AtFault: server, Transport: RoCE, Broken: refusedAfter(0xa1), Healthy: does(read(), readReply())},
	{Rule: "terminate", Name: "an RDMA Write to an invalidated handle", AtFault: server, Transport: IWARP, Broken: refusedAfter(0xa1), Healthy: does(read(), readReply())},
	{
		Rule: "terminate-bits-reversed", Name: "as siw writes it", AtFault: client, Transport: IWARP,
		Broken: func(_ *wire, c *conn) {
			c.Client.Call(read())
			c.Server.Write(0xa1, mem.Offset, data(4096))
			c.Client.Segment(terminate())
		},
		Healthy: refusedWrite,
	},
	{
		Rule: "reply-not-delivered", Name: "after an RDMA Write", Transport: RoCE,
		Broken: func(_ *wire, c *conn) {
			call := read()
			call.XID = 77
			r := readReply().To(call)
			c.Client.Call(call)
			psn := c.Server.NextPSN
			c.Server.Push(r)
			c.Server.Reply(r)
			c.Client.Packet(rocev2.Packet{BTH: rocev2.BTH{Opcode: 0x11, PSN: psn}, AETH: rocev2.AETH{Syndrome: 0x62}, Headers: rocev2.HasAETH}, nil)
		}, Healthy: does(read(), readReply()),
	},
	{Rule: "connection-rejected", Name: "by the server", Broken: func(_ *wire, c *conn) { c.Another(synth.Options{}).Reject() }, Healthy: rpc},
	{
		Rule: "connection-lost", Name: "a Call that was open",
		Broken: func(_ *wire, c *conn) {
			rpc(nil, c)
			c.Client.Call(synth.Null())
			c.Server.Ack()
			c.Disconnect(c.Server)
		},
		Healthy: func(_ *wire, c *conn) { // its Reply arrives while the connection is closing
			rpc(nil, c)
			c.Client.Call(synth.Call{XID: 5})
			c.Server.Ack()
			if c.IWARP() {
				c.Server.Reply(synth.Reply{XID: 5})
				c.Disconnect(c.Client)
			} else {
				c.Client.DREQ()
				c.Server.Reply(synth.Reply{XID: 5})
				c.Server.DREP()
			}
		},
	},
	{Rule: "mpa-crc-bad", Name: "a bit", Transport: IWARP, Broken: func(_ *wire, c *conn) { rpc(nil, c); c.Client.Call(synth.Null())[0].Corrupt(-1) }, Healthy: rpc},
	{
		Rule: "mpa-framing", Name: "not an FPDU", Transport: IWARP,
		Broken: func(_ *wire, c *conn) {
			rpc(nil, c)
			c.Client.FPDU([]byte{0xc1, 0x40, 0, 0})
		}, Healthy: rpc,
	},
	{
		Rule: "icrc-bad", Name: "a bit of a packet that is sent again", Transport: RoCE,
		Broken: func(w *wire, c *conn) {
			call := c.Client.Call(synth.Null())
			w.Retransmit(call...)
			call[0].Corrupt(-1)
			c.Server.Reply(synth.NullReply())
		},
		Healthy: func(w *wire, c *conn) { rpc(w, c); w.Last().Corrupt(-1) }, // nothing shows that it was dropped
	},
	{
		Rule: "icrc-bad", Name: "a bit of a packet that a NAK asks for", Transport: RoCE,
		Broken: func(w *wire, c *conn) {
			rpc(w, c)
			call := c.Client.Call(synth.Null())
			call[0].Corrupt(-1)
			c.Server.Nak(rocev2.NakPSNSequenceError, synth.AtPSN(c.Client.NextPSN-1))
			w.Retransmit(call...)
		},
		Healthy: func(w *wire, c *conn) {
			rpc(w, c)
			c.Client.Call(synth.Null())[0].Corrupt(-1)
			c.Server.Ack()
		},
	},
	{
		Rule: "path-mtu-unused", Name: "1024 of 4096", Transport: RoCE, HalfOpen: true,
		Broken: func(_ *wire, c *conn) {
			c.REQ(func(m *rocev2.REQ) { m.PathMTU = 5 })
			c.REP()
			c.RTU()
			c.RPC(read(), readReply())
		},
		Healthy: func(_ *wire, c *conn) { c.Connect(); c.RPC(read(), readReply()) },
	},
	{
		Rule: "unfilled-packet", Name: "of a Write", AtFault: server, Transport: RoCE,
		Broken: func(_ *wire, c *conn) { writeInParts(c, synth.PacketSize(512)) }, Healthy: func(_ *wire, c *conn) { writeInParts(c) },
	},
	{
		Rule: "unfilled-packet", Name: "of a Read response", AtFault: client, Transport: RoCE,
		Broken: func(_ *wire, c *conn) {
			c.RPC(write(), writeReply())
			call := write()
			call.XID = 77
			c.Client.Call(call)
			c.Server.Pull(call, synth.PacketSize(1000))
			c.Server.Reply(writeReply())
			c.Client.Ack()
		},
		Healthy: func(_ *wire, c *conn) { // all packets of the connection are smaller than the REQ allows
			call := write()
			call.XID = 77
			c.Client.Call(call)
			c.Server.Pull(call, synth.PacketSize(512))
			c.Server.Reply(writeReply())
			c.Client.Ack()
		},
	},
	{Rule: "congestion", Name: "notification packets", Transport: RoCE, Broken: func(_ *wire, c *conn) { c.RPC(read(), readReply()); c.Client.CNP() }, Healthy: does(read(), readReply())},
	{
		Rule: "congestion", Name: "marks of a switch", Transport: RoCE,
		Broken:  func(_ *wire, c *conn) { c.Server.TOS = 3; c.RPC(read(), readReply()) },
		Healthy: func(_ *wire, c *conn) { c.Server.TOS = 2; c.RPC(read(), readReply()) },
	},
	{Rule: "retransmission-timeout", Name: "a Call", Transport: RoCE, Broken: retransmits(2500 * time.Millisecond), Healthy: retransmits(time.Second)},
	{Rule: "retransmission-timeout", Name: "a Call, of which the first copy was lost before the capture", Broken: lostFirst(2500*time.Millisecond, false), Healthy: lostFirst(50*time.Millisecond, false)},
	{Rule: "retransmission-timeout", Name: "a Call that was acknowledged, of which the capture lacks the first copy", Transport: RoCE, Broken: lostFirst(2500*time.Millisecond, true), Healthy: lostFirst(50*time.Millisecond, true)},
	{
		Rule: "returned-bytes-not-seen", Name: "after a timeout for a Call whose first copy was lost before the capture", AtFault: server,
		Broken: func(w *wire, c *conn) {
			lostFirst(2500*time.Millisecond, true)(w, c)
			call := read()
			call.XID = 77
			c.Client.Call(call)
			c.Server.Ack()
			c.Server.Reply(readReply().To(call))
			c.Client.Ack()
			rpc(w, c)
		},
		Healthy: func(w *wire, c *conn) { lostFirst(2500*time.Millisecond, true)(w, c); c.RPC(read(), readReply()) },
	},
	{
		Rule: "capture-incomplete", Name: "a Call", Transport: RoCE,
		Broken: func(w *wire, c *conn) { rpc(nil, c); w.Drop(c.Client.Call(synth.Null())...); c.Server.Ack() }, Healthy: rpc,
	},
}

// writeInParts sends a READ with RDMA Writes of 2048 bytes, the first with the path MTU and the second
// as options say.
func writeInParts(c *conn, options ...synth.Option) {
	call := read()
	call.XID = 77
	c.Client.Call(call)
	c.Server.Ack()
	c.Server.Write(0xa1, mem.Offset, data(2048))
	c.Server.Write(0xa1, mem.Offset+2048, data(2048), options...)
	c.Server.Reply(readReply().To(call))
	c.Client.Ack()
}

// retransmits sends a Call that is retransmitted after a while.
func retransmits(after time.Duration) func(*wire, *conn) {
	return func(w *wire, c *conn) {
		rpc(nil, c)
		call := c.Client.Call(synth.Call{XID: 5})
		w.Advance(after)
		w.Retransmit(call...)
		c.Server.Reply(synth.Reply{XID: 5})
		c.Client.Ack()
	}
}

// lostFirst sends two Calls, of which the capture lacks the first. The server may acknowledge them. After a while, the client
// retransmits both.
func lostFirst(after time.Duration, acknowledged bool) func(*wire, *conn) {
	return func(w *wire, c *conn) {
		rpc(nil, c)
		rpc(nil, c)
		c.Options.ManualAck = true
		first, second := c.Client.Call(synth.Call{XID: 5}), c.Client.Call(synth.Call{XID: 6})
		w.Drop(first...)
		if acknowledged {
			c.Server.Ack()
		}
		w.Advance(after)
		w.Retransmit(first...)
		w.Retransmit(second...)
		c.Server.Ack()
		c.Options.ManualAck = false
		for xid := uint32(5); xid < 7; xid++ {
			c.Server.Reply(synth.Reply{XID: xid})
			c.Client.Ack()
		}
	}
}

// terminate returns a Terminate, "invalid STag", of an RDMA Write, with the bits of each byte
// of its control word reversed.
func terminate() iwarp.Segment {
	quoted := synth.XDR{}.Word(0x0010c140).Bytes // length of the segment, DDP and RDMAP control
	quoted = append(quoted, synth.XDR{}.Word(mem.Handle).Hyper(mem.Offset).Bytes...)
	return iwarp.Segment{Last: true, Opcode: iwarp.Terminate, Queue: 2, Sequence: 1, Payload: append([]byte{0x10, 0, 0x03, 0}, quoted...)}
}
