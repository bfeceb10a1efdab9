package cases

import (
	"time"

	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/rocev2"
	"github.com/rdmadump/rdmadump/synth"
)

// Rules about the transport.

// refusedWrite sends an RDMA Write that the client's adapter rejects.
func refusedWrite(c *conn) {
	c.Client.Call(read())
	c.Server.Write(0xa1, mem.Offset, data(4096))
	c.Client.Refuse()
}

var transport = []Case{
	neither("remote-error-nak", "an RDMA Write", refusedWrite, reads).on(RoCE),
	neither("terminate", "an RDMA Write", refusedWrite, reads).on(IWARP),
	server("remote-error-nak", "an RDMA Write to an invalidated handle", refusedAfter(0xa1), reads).on(RoCE),
	server("terminate", "an RDMA Write to an invalidated handle", refusedAfter(0xa1), reads).on(IWARP),
	client("terminate-bits-reversed", "as siw writes it",
		func(c *conn) {
			c.Client.Call(read())
			c.Server.Write(0xa1, mem.Offset, data(4096))
			c.Client.Segment(terminate())
		},
		refusedWrite).on(IWARP),
	neither("reply-not-delivered", "after an RDMA Write",
		func(c *conn) {
			call := numbered(read())
			r := readReply().To(call)
			c.Client.Call(call)
			psn := c.Server.NextPSN
			c.Server.Push(r)
			c.Server.Reply(r)
			c.Client.Packet(rocev2.Packet{BTH: rocev2.BTH{Opcode: 0x11, PSN: psn}, AETH: rocev2.AETH{Syndrome: 0x62}, Headers: rocev2.HasAETH}, nil)
		},
		reads).on(RoCE),
	neither("connection-rejected", "by the server", func(c *conn) { c.Another(synth.Options{}).Reject() }, rpc),
	neither("connection-lost", "a Call that was open",
		inTurn(rpc, calls(null), serverDisconnects),
		func(c *conn) { // its Reply arrives while the connection is closing
			rpc(c)
			send(c.Client, call5)
			if c.IWARP() {
				c.Server.Reply(reply5)
				c.Disconnect(c.Client)
			} else {
				c.Client.DREQ()
				c.Server.Reply(reply5)
				c.Server.DREP()
			}
		}),
	neither("mpa-crc-bad", "a bit", func(c *conn) { rpc(c); c.Client.Call(null)[0].Corrupt(-1) }, rpc).on(IWARP),
	neither("mpa-framing", "not an FPDU", inTurn(rpc, func(c *conn) { c.Client.FPDU([]byte{0xc1, 0x40, 0, 0}) }), rpc).on(IWARP),
	neither("icrc-bad", "a bit of a packet that is sent again",
		func(c *conn) {
			call := c.Client.Call(null)
			c.Wire.Retransmit(call...)
			call[0].Corrupt(-1)
			c.Server.Reply(nullReply)
		},
		func(c *conn) { rpc(c); c.Wire.Last().Corrupt(-1) }).on(RoCE), // nothing shows that it was dropped
	neither("icrc-bad", "a bit of a packet that a NAK asks for",
		func(c *conn) {
			rpc(c)
			call := c.Client.Call(null)
			call[0].Corrupt(-1)
			c.Server.Nak(rocev2.NakPSNSequenceError, synth.AtPSN(c.Client.NextPSN-1))
			c.Wire.Retransmit(call...)
		},
		func(c *conn) {
			rpc(c)
			c.Client.Call(null)[0].Corrupt(-1)
			c.Server.Ack()
		}).on(RoCE),
	neither("path-mtu-unused", "1024 of 4096",
		func(c *conn) {
			c.REQ(func(m *rocev2.REQ) { m.PathMTU = 5 })
			c.REP()
			c.RTU()
			reads(c)
		},
		func(c *conn) { c.Connect(); reads(c) }).on(RoCE).unconnected(),
	server("unfilled-packet", "of a Write", writesInParts(512), writesInParts(1024)).on(RoCE),
	// All packets of the connection are smaller than the REQ allows.
	client("unfilled-packet", "of a Read response", inTurn(writes, readsInParts(1000)), readsInParts(512)).on(RoCE),
	neither("congestion", "notification packets", inTurn(reads, func(c *conn) { c.Client.CNP() }), reads).on(RoCE),
	neither("congestion", "marks of a switch",
		func(c *conn) { c.Server.TOS = 3; reads(c) }, func(c *conn) { c.Server.TOS = 2; reads(c) }).on(RoCE),
	neither("retransmission-timeout", "a Call", retransmits(2500*time.Millisecond), retransmits(time.Second)).on(RoCE),
	neither("retransmission-timeout", "a Call, of which the first copy was lost before the capture",
		lostFirst(2500*time.Millisecond, false), lostFirst(50*time.Millisecond, false)),
	neither("retransmission-timeout", "a Call that was acknowledged, of which the capture lacks the first copy",
		lostFirst(2500*time.Millisecond, true), lostFirst(50*time.Millisecond, true)).on(RoCE),
	server("returned-bytes-not-seen", "after a timeout for a Call whose first copy was lost before the capture",
		inTurn(lostFirst(2500*time.Millisecond, true), pulls(read(), readReply(), 0)),
		inTurn(lostFirst(2500*time.Millisecond, true), reads)),
	neither("capture-incomplete", "a Call", func(c *conn) { rpc(c); c.Wire.Drop(c.Client.Call(null)...); c.Server.Ack() }, rpc).on(RoCE),
}

// writesInParts sends a READ with RDMA Writes of 2048 bytes, the first in packets of the path MTU, 1024 bytes, and the
// second in packets of a size.
func writesInParts(size int) script {
	return func(c *conn) {
		call := numbered(read())
		send(c.Client, call)
		c.Server.Write(0xa1, mem.Offset, data(2048))
		c.Server.Write(0xa1, mem.Offset+2048, data(2048), synth.PacketSize(size))
		answer(c.Server, readReply().To(call))
	}
}

// readsInParts sends a WRITE whose RDMA Read is answered in packets of a size.
func readsInParts(size int) script {
	return func(c *conn) {
		call := numbered(write())
		c.Client.Call(call)
		c.Server.Pull(call, synth.PacketSize(size))
		answer(c.Server, writeReply())
	}
}

// retransmits sends a Call that is retransmitted after a while.
func retransmits(after time.Duration) script {
	return func(c *conn) {
		rpc(c)
		call := c.Client.Call(call5)
		c.Wire.Advance(after)
		c.Wire.Retransmit(call...)
		answer(c.Server, reply5)
	}
}

// lostFirst sends two Calls, of which the capture lacks the first. The server may acknowledge them. After a while, the client
// retransmits both.
func lostFirst(after time.Duration, acknowledged bool) script {
	return func(c *conn) {
		rpc(c)
		rpc(c)
		c.Options.ManualAck = true
		first, second := c.Client.Call(call5), c.Client.Call(synth.Call{XID: 6})
		c.Wire.Drop(first...)
		if acknowledged {
			c.Server.Ack()
		}
		c.Wire.Advance(after)
		c.Wire.Retransmit(first...)
		c.Wire.Retransmit(second...)
		c.Server.Ack()
		c.Options.ManualAck = false
		for xid := uint32(5); xid < 7; xid++ {
			answer(c.Server, synth.Reply{XID: xid})
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
