package cases

import (
	"time"

	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/rocev2"

	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/synth"
)

// Rules about private data, remote invalidation (RFC 8797), and credits.

func privately(client, server []byte) synth.Options {
	return synth.Options{Client: synth.End{PrivateData: client}, Server: synth.End{PrivateData: server}}
}

var (
	yes = synth.Inline(4096, 4096, true)
	no  = synth.Inline(4096, 4096, false)
)

// edited returns private data with one byte changed.
func edited(at int, v byte) []byte {
	b := synth.Inline(4096, 4096, true)
	b[at] = v
	return b
}

// twice returns a function that opens a second connection with other options, because the
// options of a case apply to the healthy twin too.
func twice(o synth.Options, act script) script {
	return func(c *conn) {
		second := c.Another(o)
		second.Connect()
		act(second)
	}
}

// sharedHandle sends two READs that expose the same handle. The Reply to the first invalidates it, and
// then the second is answered.
func sharedHandle(c *conn, call synth.Call) {
	granted(c, 32, 32)
	a, b := call, call
	a.XID, b.XID, b.InvHandle = 71, 72, 0
	b.Writes = [][]rpcrdma.Segment{{synth.Mem(0xa1, 8192)}}
	c.Client.Call(a)
	c.Client.Call(b)
	c.Server.Ack()
	for i, call := range []synth.Call{a, b} {
		r := readReply().To(call)
		if i == 0 {
			r.Invalidate = 0xa1
		}
		c.Server.Push(r)
		c.Server.Reply(r)
		c.Client.Ack()
	}
}

// strays sends a READ, and before its Reply a message that answers no outstanding Call. The server then writes the data.
func strays(stray synth.Reply) script {
	return func(c *conn) {
		granted(c, 32, 32)
		c.RPC(synth.Call{XID: 5}, synth.NullReply())
		call := read()
		call.XID = 72
		c.Client.Call(call)
		c.Server.Ack()
		stray.XID = 5
		c.Server.Reply(stray)
		c.Client.Ack()
		r := readReply().To(call)
		c.Server.Push(r)
		c.Server.Reply(r)
		c.Client.Ack()
		rpc(c)
	}
}

// strayThenMany sends n Calls at once after a handle that another open Call exposes was invalidated and used, when the
// client knows that two credits are granted.
func strayThenMany(n int) script {
	return func(c *conn) {
		strays(synth.Reply{Invalidate: 0xa1})(c)
		granted(c, 32, 2)
		c.Wire.Advance(10 * time.Millisecond)
		many(c, n, 32)
	}
}

// refusedAfter sends two READs with one handle. The Reply to the first invalidates a handle, and then the client refuses
// the RDMA Write of the second.
func refusedAfter(handle uint32) script {
	return func(c *conn) {
		granted(c, 32, 32)
		a, b := read(), read()
		a.XID, b.XID = 71, 72
		a.Writes = [][]rpcrdma.Segment{{mem2}}
		c.Client.Call(a)
		c.Client.Call(b)
		c.Server.Ack()
		r := readReply().To(a)
		c.Server.Push(r)
		r.Invalidate = handle
		c.Server.Reply(r)
		c.Client.Ack()
		c.Server.Write(0xa1, mem.Offset, data(4096))
		c.Client.Refuse()
	}
}

// asked connects with a REQ that announces 1024 bytes. If it is changed, it is retransmitted with 4096 bytes, so that it is unknown which of them counts. Then the server
// sends 4096 bytes.
func asked(changed bool) script {
	return func(c *conn) {
		private := c.Client.PrivateData
		c.Client.PrivateData = synth.Inline(1024, 1024, true)
		c.REQ()
		if changed {
			c.Client.PrivateData = private
		}
		c.REQ()
		c.REP()
		c.RTU()
		c.RPC(synth.Read3(0, 3000), synth.Read3Reply(data(3000)))
	}
}

var private = []Case{
	client("private-data-unusable", "version 2", twice(privately(edited(4, 2), yes), rpc), rpc),
	server("private-data-unusable", "truncated", twice(privately(yes, yes[:7]), rpc), rpc).on(IWARP),
	client("private-data-reserved-bits", "a bit of the client's", twice(privately(edited(5, 0x03), yes), rpc), rpc),
	server("private-data-reserved-bits", "all of the server's", twice(privately(yes, edited(5, 0xff)), rpc), rpc),

	client("inline-threshold-exceeded", "a Call",
		does(synth.Write3(0, data(4096)), writeReply()), does(synth.Write3(0, data(3900)), writeReply())),
	server("inline-threshold-exceeded", "a Reply",
		does(synth.Read3(0, 4096), synth.Read3Reply(data(4096))), does(synth.Read3(0, 3900), synth.Read3Reply(data(3900)))),
	client("inline-threshold-exceeded", "a Call, the server having sent no private data",
		does(synth.Write3(0, data(1024)), writeReply()), does(synth.Write3(0, data(800)), writeReply())).with(privately(yes, synth.NoPrivateData())),
	// What two sides of a newer version agreed on is not known.
	server("inline-threshold-exceeded", "private data of version 2",
		twice(privately(edited(4, 2), yes), does(synth.Readlink3(), synth.Readlink3Reply(string(data(1500))))),
		twice(privately(edited(4, 2), edited(4, 2)), does(synth.Readlink3(), synth.Readlink3Reply(string(data(1500)))))),
	server("inline-threshold-exceeded", "a Call of the server",
		func(c *conn) {
			session(c, synth.ConnBackChannel)
			c.Server.RPC(synth.CBCompound(synth.OpCBSequence(1), synth.OpLookup(string(data(5000)))), synth.CompoundReply(synth.ResCBSequence(1)))
		},
		func(c *conn) {
			session(c, synth.ConnBackChannel)
			c.Server.RPC(synth.CBCompound(synth.OpCBSequence(1)), synth.CompoundReply(synth.ResCBSequence(1)))
		}),
	server("inline-threshold-exceeded", "the REQ was retransmitted as it was", asked(false), asked(true)).on(RoCE).unconnected(),
	client("inline-threshold-exceeded", "new settings after a reconnect",
		func(c *conn) {
			c.RPC(synth.Write3(0, data(3900)), writeReply())
			c.Disconnect(c.Client)
			twice(privately(synth.Inline(1024, 1024, true), yes), does(synth.Write3(0, data(3900)), writeReply()))(c)
		},
		func(c *conn) {
			c.RPC(synth.Write3(0, data(3900)), writeReply())
			c.Disconnect(c.Client)
			twice(privately(synth.Inline(8192, 8192, true), synth.Inline(8192, 8192, true)), does(synth.Write3(0, data(7000)), writeReply()))(c)
		}),

	server("invalidation-not-negotiated", "the client said no",
		does(read(), readReply().Invalidating(0xa1)), does(read(), readReply())).with(privately(no, yes)),
	server("invalidation-not-negotiated", "the client sent no private data",
		does(read(), readReply().Invalidating(0xa1)), does(read(), readReply())).with(privately(synth.NoPrivateData(), yes)),
	neither("invalidation-not-negotiated", "the server itself said no",
		does(read(), readReply().Invalidating(0xa1)), does(read(), readReply())).as("note").with(privately(yes, no)),

	server("invalidated-unexposed-handle", "an unknown handle",
		does(read(), readReply().Invalidating(0xb7)), does(read(), readReply().Invalidating(0xa1))),
	server("invalidated-unexposed-handle", "also of another open Call",
		func(c *conn) {
			rpc(c)
			a, b := read(), read()
			a.XID, b.XID = 71, 72
			c.Client.Call(a)
			c.Client.Call(b)
			r := readReply().Invalidating(0xa1).To(a)
			c.Server.Push(r)
			c.Server.Reply(r)
		},
		func(c *conn) {
			c.RPC(read(), readReply().Invalidating(0xa1))
			c.RPC(read(), readReply().Invalidating(0xa1))
		}),
	server("invalidated-unexposed-handle", "of two Calls of version 2, one of which asks for it",
		func(c *conn) { sharedHandle(c, read()) }, func(c *conn) { sharedHandle(c, draft(0xa1)) }),
	server("invalidated-handle-used", "after a Call of version 2 asked for the invalidation",
		func(c *conn) {
			c.RPC(draft(0xa1), readReply().Invalidating(0xa1))
			c.Server.Write(0xa1, mem.Offset, data(100))
		},
		func(c *conn) { sharedHandle(c, draft(0xa1)) }),
	server("invalidated-unexposed-handle", "of another open Call, by a second Reply",
		strays(synth.Reply{Invalidate: 0xa1}), strays(synth.Reply{})),
	server("invalidated-unexposed-handle", "of another open Call, by an RDMA_ERROR without a Call",
		strays(synth.ErrChunk().Invalidating(0xa1)), strays(synth.ErrChunk())),
	server("invalidated-handle-used", "which another open Call still exposes",
		strays(synth.Reply{Invalidate: 0xa1}), strays(synth.Reply{})),
	server("invalidated-handle-used", "which another open Call still exposes, and the Write is refused",
		refusedAfter(0xa1), refusedAfter(0xa2)),
	client("credit-limit-exceeded", "after the use of a handle that another open Call exposes", strayThenMany(3), strayThenMany(2)),
	server("invalidated-unexposed-handle", "by an RDMA_ERROR",
		does(read(), synth.ErrChunk().Invalidating(0xb7)), does(read(), readReply())),
	client("invalidation-on-call", "a Call",
		func(c *conn) {
			c.Client.Call(synth.Null(), synth.Invalidate(0xb7))
			c.Server.Reply(synth.NullReply())
		},
		rpc),
	server("invalidated-handle-used", "a Write",
		func(c *conn) {
			c.RPC(read(), readReply().Invalidating(0xa1))
			c.Server.Write(0xa1, mem.Offset, data(100))
		},
		func(c *conn) {
			c.RPC(read(), readReply().Invalidating(0xa1))
			c.RPC(read(), readReply().Invalidating(0xa1))
		}),
	server("invalidated-handle-used", "a Read",
		func(c *conn) {
			c.RPC(write(), writeReply().Invalidating(0xa1))
			c.Server.Read(0xa1, mem.Offset, data(100))
		},
		does(write(), writeReply().Invalidating(0xa1))),
	server("invalidated-handle-used", "a second invalidation",
		func(c *conn) {
			rpc(c)
			c.RPC(read(), readReply().Invalidating(0xa1))
			c.RPC(synth.Null(), synth.NullReply().Invalidating(0xa1))
		},
		func(c *conn) {
			c.RPC(read(), readReply().Invalidating(0xa1))
			c.RPC(synth.Null(), synth.NullReply())
		}),
}

// granted sends an exchange that requests and grants credits.
func granted(c *conn, ask, grant uint32) {
	c.RPC(synth.Call{Credits: ask}, synth.Reply{Credits: grant})
}

// many sends n Calls without waiting, and then their Replies.
func many(c *conn, n int, credits uint32) {
	for i := range n {
		c.Client.Call(synth.Call{XID: uint32(1000 + i), Credits: credits})
	}
	c.Server.Ack()
	for i := range n {
		c.Server.Reply(synth.Reply{XID: uint32(1000 + i), Credits: 2})
	}
	c.Client.Ack()
}

// raised sends n Calls at once after a Reply that raises the grant from 1 to 4, and the server has no receive buffer for
// the last of them.
func raised(n int) script {
	return func(c *conn) {
		granted(c, 32, 1)
		granted(c, 32, 4)
		for range n {
			c.Client.Call(synth.Null())
		}
		c.Server.NotReady()
	}
}

// lowered sends n Calls at once, right after the Reply that lowers the grant from 8 to 2. The server has no receive buffer
// for the last of them at first.
func lowered(n int) script {
	return func(c *conn) {
		granted(c, 32, 8)
		granted(c, 32, 2)
		for i := range n {
			c.Client.Call(synth.Call{XID: uint32(1000 + i)})
		}
		last := c.Wire.Last()
		c.Server.NotReady()
		c.Wire.Advance(time.Millisecond)
		c.Wire.Retransmit(last)
		c.Server.Ack()
		for i := range n {
			c.Server.Reply(synth.Reply{XID: uint32(1000 + i), Credits: 2})
			c.Client.Ack()
		}
		rpc(c)
		rpc(c)
	}
}

// send sends only a Call, which is acknowledged.
func send(by *synth.Side, call synth.Call) {
	by.Call(call)
	by.Peer.Ack()
}

// stray sends a Reply that answers no Call.
func stray(by *synth.Side) {
	by.Reply(synth.Reply{XID: 0x5757})
	by.Peer.Ack()
}

// unready sends a Call for which the other side has no receive buffer, and unreadyReply the Reply to the client's Call.
func unready(by *synth.Side, call synth.Call) {
	by.Call(call)
	by.Peer.NotReady()
}

func unreadyReply(c *conn) {
	c.Server.Reply(synth.NullReply())
	c.Client.NotReady()
}

var credits = []Case{
	client("credit-limit-exceeded", "before the first Reply", func(c *conn) { many(c, 2, 32) }, func(c *conn) { many(c, 1, 32) }),
	client("credit-limit-exceeded", "more than granted",
		func(c *conn) { granted(c, 32, 2); many(c, 3, 32) }, func(c *conn) { granted(c, 32, 2); many(c, 2, 32) }),
	client("credit-limit-exceeded", "more than asked for",
		func(c *conn) { granted(c, 2, 32); many(c, 3, 2) }, func(c *conn) { granted(c, 2, 32); many(c, 2, 2) }),
	client("credit-limit-exceeded", "a lower grant that has arrived",
		func(c *conn) {
			granted(c, 32, 8)
			granted(c, 32, 1)
			c.Wire.Advance(10 * time.Millisecond)
			many(c, 2, 32)
		},
		func(c *conn) { // the Calls were sent before the lower grant arrived
			granted(c, 32, 8)
			c.Client.Call(synth.Call{XID: 500})
			c.Server.Ack()
			c.Options.ManualAck = true
			c.Server.Reply(synth.Reply{XID: 500, Credits: 1})
			c.Client.Call(synth.Call{XID: 501})
			c.Client.Call(synth.Call{XID: 502})
			c.Client.Ack()
			c.Server.Ack()
			c.Options.ManualAck = false
			c.Server.Reply(synth.Reply{XID: 501, Credits: 1})
			c.Server.Reply(synth.Reply{XID: 502, Credits: 1})
			c.Client.Ack()
		}),
	server("credit-limit-exceeded", "by Calls of the server",
		func(c *conn) {
			session(c, synth.ConnBackChannel)
			c.Server.Call(synth.CBNull())
			c.Server.Call(synth.CBNull())
		},
		func(c *conn) {
			session(c, synth.ConnBackChannel)
			c.Server.RPC(synth.CBNull(), synth.NullReply())
		}),
	server("credits-granted-zero", "a Reply", does(synth.Null(), synth.Reply{Credits: synth.Zero}), rpc),
	server("credits-granted-zero", "an RDMA_ERROR",
		does(synth.Null(), synth.Reply{Credits: synth.Zero, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}),
		does(synth.Null(), synth.NullReply())),
	client("credits-granted-zero", "a Reply of the client",
		back(synth.CBNull(), synth.Reply{Credits: synth.Zero}), back(synth.CBNull(), synth.NullReply())),
	client("credits-requested-zero", "the client", does(synth.Call{Credits: synth.Zero}, synth.NullReply()), rpc),
	server("credits-requested-zero", "the server",
		func(c *conn) {
			session(c, synth.ConnBackChannel)
			call := synth.CBNull()
			call.Credits = synth.Zero
			c.Server.RPC(call, synth.NullReply())
		},
		func(c *conn) {
			session(c, synth.ConnBackChannel)
			c.Server.RPC(synth.CBNull(), synth.NullReply())
		}).as("error"),
	server("receive-not-posted", "for a Call within the grant",
		func(c *conn) { rpc(c); c.Client.Call(synth.Null()); c.Server.NotReady() },
		func(c *conn) { // RNR is allowed for Calls beyond the grant
			granted(c, 32, 1)
			rpc(c)
		}),
	server("receive-not-posted", "for the first Call of the connection",
		func(c *conn) { c.Client.Call(synth.Null()); c.Server.NotReady() },
		func(c *conn) { // the second Call before the first Reply
			c.Client.Call(synth.Null())
			c.Client.Call(synth.Null())
			c.Server.NotReady()
		}),
	server("receive-not-posted", "for a Call within a grant that is being lowered", lowered(2), lowered(3)).on(RoCE),
	server("receive-not-posted", "for a Call within a raised grant", raised(2), raised(5)),
	client("receive-not-posted", "for a Call of the server",
		func(c *conn) {
			session(c, synth.ConnBackChannel)
			c.Server.RPC(synth.CBNull(), synth.NullReply())
			c.Server.Call(synth.CBNull())
			c.Client.NotReady()
		},
		back(synth.CBNull(), synth.NullReply())),
	client("receive-not-posted", "for the first Call of the server",
		func(c *conn) { session(c, synth.ConnBackChannel); unready(c.Server, synth.CBNull()) },
		func(c *conn) { session(c, 0); unready(c.Server, synth.CBNull()) }),
	client("receive-not-posted", "for a Call of the server, on a bare connection",
		func(c *conn) {
			c.Server.RPC(synth.CBNull(), synth.NullReply())
			unready(c.Server, synth.CBNull())
		},
		func(c *conn) { unready(c.Server, synth.CBNull()) }), // its Reply grants credits
	server("receive-not-posted", "for a Call after an RDMA_DONE",
		func(c *conn) {
			granted(c, 32, 1)
			send(c.Client, synth.Call{Proc: rpcrdma.Done})
			granted(c, 32, 1)
			unready(c.Client, synth.Null())
		},
		func(c *conn) {
			granted(c, 32, 1)
			send(c.Client, synth.Call{Proc: rpcrdma.Done})
			unready(c.Client, synth.Null())
		}),
	server("receive-not-posted", "for a Call after a stray Reply",
		func(c *conn) {
			granted(c, 32, 1)
			stray(c.Client)
			granted(c, 32, 1)
			unready(c.Client, synth.Null())
		},
		func(c *conn) { granted(c, 32, 1); stray(c.Client); unready(c.Client, synth.Null()) }),
	client("receive-not-posted", "for a Reply after a stray one",
		func(c *conn) { rpc(c); stray(c.Server); send(c.Client, synth.Null()); unreadyReply(c) },
		func(c *conn) { rpc(c); send(c.Client, synth.Null()); stray(c.Server); unreadyReply(c) }),
	client("receive-not-posted", "for a Reply after a Call of the server",
		func(c *conn) {
			session(c, synth.ConnBackChannel)
			send(c.Client, synth.Call{XID: 70})
			send(c.Server, synth.CBNull())
			unreadyReply(c)
		},
		func(c *conn) {
			rpc(c)
			send(c.Client, synth.Call{XID: 70})
			send(c.Server, synth.CBNull())
			unreadyReply(c)
		}),
	client("receive-not-posted", "for a Reply",
		func(c *conn) {
			rpc(c)
			c.Client.Call(synth.Null())
			c.Server.Reply(synth.NullReply())
			c.Client.NotReady()
		},
		rpc),
	server("receive-too-small", "within the stated size",
		func(c *conn) {
			c.Client.Call(synth.Write3(0, data(2000)))
			tooLong(c.Server)
		},
		does(synth.Write3(0, data(2000)), synth.Write3Reply(2000))),
	server("receive-too-small", "within the negotiated limit",
		func(c *conn) {
			c.Client.Call(synth.Write3(0, data(800)))
			tooLong(c.Server)
		},
		func(c *conn) { // the server accepts 4096 bytes, but the client said that it sends 1024 at most
			c.Client.Call(synth.Write3(0, data(2000)))
			tooLong(c.Server)
		}).with(privately(synth.Inline(1024, 1024, true), yes)),
	server("receive-too-small", "within 1024 bytes, no size stated",
		func(c *conn) {
			c.Client.Call(synth.Write3(0, data(800)))
			tooLong(c.Server)
		},
		does(synth.Write3(0, data(800)), synth.Write3Reply(800))).with(privately(yes, synth.NoPrivateData())),
}

// tooLong refuses the last Send of the peer as longer than its buffer: with a NAK, "invalid request", or a Terminate.
func tooLong(s *synth.Side) {
	if s.Conn.IWARP() {
		s.Terminate(iwarp.TerminateHeader{Layer: 1, Type: 2, Code: 5, HasLength: true, HasDDP: true})
		return
	}
	s.Nak(rocev2.NakInvalidRequest)
}
