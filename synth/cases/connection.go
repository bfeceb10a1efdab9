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
func twice(o synth.Options, act func(*wire, *conn)) func(*wire, *conn) {
	return func(w *wire, c *conn) {
		second := c.Another(o)
		second.Connect()
		act(w, second)
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
func strays(stray synth.Reply) func(*wire, *conn) {
	return func(w *wire, c *conn) {
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
		rpc(w, c)
	}
}

// strayThenMany sends n Calls at once after a handle that another open Call exposes was invalidated and used, when the
// client knows that two credits are granted.
func strayThenMany(n int) func(*wire, *conn) {
	return func(w *wire, c *conn) {
		strays(synth.Reply{Invalidate: 0xa1})(w, c)
		granted(c, 32, 2)
		w.Advance(10 * time.Millisecond)
		many(c, n, 32)
	}
}

// refusedAfter sends two READs with one handle. The Reply to the first invalidates a handle, and then the client refuses
// the RDMA Write of the second.
func refusedAfter(handle uint32) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
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
func asked(changed bool) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
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
	{Rule: "private-data-unusable", Name: "version 2", AtFault: client, Broken: twice(privately(edited(4, 2), yes), rpc), Healthy: rpc},
	{Rule: "private-data-unusable", Name: "truncated", AtFault: server, Transport: IWARP, Broken: twice(privately(yes, yes[:7]), rpc), Healthy: rpc},
	{Rule: "private-data-reserved-bits", Name: "a bit of the client's", AtFault: client, Broken: twice(privately(edited(5, 0x03), yes), rpc), Healthy: rpc},
	{Rule: "private-data-reserved-bits", Name: "all of the server's", AtFault: server, Broken: twice(privately(yes, edited(5, 0xff)), rpc), Healthy: rpc},

	{
		Rule: "inline-threshold-exceeded", Name: "a Call", AtFault: client,
		Broken: does(synth.Write3(0, data(4096)), writeReply()), Healthy: does(synth.Write3(0, data(3900)), writeReply()),
	},
	{
		Rule: "inline-threshold-exceeded", Name: "a Reply", AtFault: server,
		Broken: does(synth.Read3(0, 4096), synth.Read3Reply(data(4096))), Healthy: does(synth.Read3(0, 3900), synth.Read3Reply(data(3900))),
	},
	{
		Rule: "inline-threshold-exceeded", Name: "a Call, the server having sent no private data", AtFault: client, Options: privately(yes, synth.NoPrivateData()),
		Broken: does(synth.Write3(0, data(1024)), writeReply()), Healthy: does(synth.Write3(0, data(800)), writeReply()),
	},
	{ // What two sides of a newer version agreed on is not known.
		Rule: "inline-threshold-exceeded", Name: "private data of version 2", AtFault: server,
		Broken:  twice(privately(edited(4, 2), yes), does(synth.Readlink3(), synth.Readlink3Reply(string(data(1500))))),
		Healthy: twice(privately(edited(4, 2), edited(4, 2)), does(synth.Readlink3(), synth.Readlink3Reply(string(data(1500))))),
	},
	{
		Rule: "inline-threshold-exceeded", Name: "a Call of the server", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			session(c, synth.ConnBackChannel)
			c.Server.RPC(synth.CBCompound(synth.OpCBSequence(1), synth.OpLookup(string(data(5000)))), synth.CompoundReply(synth.ResCBSequence(1)))
		},
		Healthy: func(_ *wire, c *conn) {
			session(c, synth.ConnBackChannel)
			c.Server.RPC(synth.CBCompound(synth.OpCBSequence(1)), synth.CompoundReply(synth.ResCBSequence(1)))
		},
	},
	{
		Rule: "inline-threshold-exceeded", Name: "the REQ was retransmitted as it was", AtFault: server, Transport: RoCE, HalfOpen: true,
		Broken: asked(false), Healthy: asked(true),
	},
	{
		Rule: "inline-threshold-exceeded", Name: "new settings after a reconnect", AtFault: client,
		Broken: func(w *wire, c *conn) {
			c.RPC(synth.Write3(0, data(3900)), writeReply())
			c.Disconnect(c.Client)
			twice(privately(synth.Inline(1024, 1024, true), yes), does(synth.Write3(0, data(3900)), writeReply()))(w, c)
		},
		Healthy: func(w *wire, c *conn) {
			c.RPC(synth.Write3(0, data(3900)), writeReply())
			c.Disconnect(c.Client)
			twice(privately(synth.Inline(8192, 8192, true), synth.Inline(8192, 8192, true)), does(synth.Write3(0, data(7000)), writeReply()))(w, c)
		},
	},

	{
		Rule: "invalidation-not-negotiated", Name: "the client said no", AtFault: server, Options: privately(no, yes),
		Broken: does(read(), readReply().Invalidating(0xa1)), Healthy: does(read(), readReply()),
	},
	{
		Rule: "invalidation-not-negotiated", Name: "the client sent no private data", AtFault: server, Options: privately(synth.NoPrivateData(), yes),
		Broken: does(read(), readReply().Invalidating(0xa1)), Healthy: does(read(), readReply()),
	},
	{
		Rule: "invalidation-not-negotiated", Name: "the server itself said no", Severity: "note", Options: privately(yes, no),
		Broken: does(read(), readReply().Invalidating(0xa1)), Healthy: does(read(), readReply()),
	},

	{Rule: "invalidated-unexposed-handle", Name: "an unknown handle", AtFault: server, Broken: does(read(), readReply().Invalidating(0xb7)), Healthy: does(read(), readReply().Invalidating(0xa1))},
	{
		Rule: "invalidated-unexposed-handle", Name: "also of another open Call", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			rpc(nil, c)
			a, b := read(), read()
			a.XID, b.XID = 71, 72
			c.Client.Call(a)
			c.Client.Call(b)
			r := readReply().Invalidating(0xa1).To(a)
			c.Server.Push(r)
			c.Server.Reply(r)
		},
		Healthy: func(_ *wire, c *conn) {
			c.RPC(read(), readReply().Invalidating(0xa1))
			c.RPC(read(), readReply().Invalidating(0xa1))
		},
	},
	{
		Rule: "invalidated-unexposed-handle", Name: "of two Calls of version 2, one of which asks for it", AtFault: server,
		Broken: func(_ *wire, c *conn) { sharedHandle(c, read()) }, Healthy: func(_ *wire, c *conn) { sharedHandle(c, draft(0xa1)) },
	},
	{
		Rule: "invalidated-handle-used", Name: "after a Call of version 2 asked for the invalidation", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			c.RPC(draft(0xa1), readReply().Invalidating(0xa1))
			c.Server.Write(0xa1, mem.Offset, data(100))
		},
		Healthy: func(_ *wire, c *conn) { sharedHandle(c, draft(0xa1)) },
	},
	{
		Rule: "invalidated-unexposed-handle", Name: "of another open Call, by a second Reply", AtFault: server,
		Broken: strays(synth.Reply{Invalidate: 0xa1}), Healthy: strays(synth.Reply{}),
	},
	{
		Rule: "invalidated-unexposed-handle", Name: "of another open Call, by an RDMA_ERROR without a Call", AtFault: server,
		Broken: strays(synth.ErrChunk().Invalidating(0xa1)), Healthy: strays(synth.ErrChunk()),
	},
	{
		Rule: "invalidated-handle-used", Name: "which another open Call still exposes", AtFault: server,
		Broken: strays(synth.Reply{Invalidate: 0xa1}), Healthy: strays(synth.Reply{}),
	},
	{
		Rule: "invalidated-handle-used", Name: "which another open Call still exposes, and the Write is refused", AtFault: server,
		Broken: refusedAfter(0xa1), Healthy: refusedAfter(0xa2),
	},
	{
		Rule: "credit-limit-exceeded", Name: "after the use of a handle that another open Call exposes", AtFault: client,
		Broken: strayThenMany(3), Healthy: strayThenMany(2),
	},
	{
		Rule: "invalidated-unexposed-handle", Name: "by an RDMA_ERROR", AtFault: server,
		Broken: does(read(), synth.ErrChunk().Invalidating(0xb7)), Healthy: does(read(), readReply()),
	},
	{
		Rule: "invalidation-on-call", Name: "a Call", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			c.Client.Call(synth.Null(), synth.Invalidate(0xb7))
			c.Server.Reply(synth.NullReply())
		}, Healthy: rpc,
	},
	{
		Rule: "invalidated-handle-used", Name: "a Write", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			c.RPC(read(), readReply().Invalidating(0xa1))
			c.Server.Write(0xa1, mem.Offset, data(100))
		},
		Healthy: func(_ *wire, c *conn) {
			c.RPC(read(), readReply().Invalidating(0xa1))
			c.RPC(read(), readReply().Invalidating(0xa1))
		},
	},
	{
		Rule: "invalidated-handle-used", Name: "a Read", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			c.RPC(write(), writeReply().Invalidating(0xa1))
			c.Server.Read(0xa1, mem.Offset, data(100))
		},
		Healthy: does(write(), writeReply().Invalidating(0xa1)),
	},
	{
		Rule: "invalidated-handle-used", Name: "a second invalidation", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			rpc(nil, c)
			c.RPC(read(), readReply().Invalidating(0xa1))
			c.RPC(synth.Null(), synth.NullReply().Invalidating(0xa1))
		},
		Healthy: func(_ *wire, c *conn) {
			c.RPC(read(), readReply().Invalidating(0xa1))
			c.RPC(synth.Null(), synth.NullReply())
		},
	},
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
func raised(n int) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
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
func lowered(n int) func(*wire, *conn) {
	return func(w *wire, c *conn) {
		granted(c, 32, 8)
		granted(c, 32, 2)
		for i := range n {
			c.Client.Call(synth.Call{XID: uint32(1000 + i)})
		}
		last := w.Last()
		c.Server.NotReady()
		w.Advance(time.Millisecond)
		w.Retransmit(last)
		c.Server.Ack()
		for i := range n {
			c.Server.Reply(synth.Reply{XID: uint32(1000 + i), Credits: 2})
			c.Client.Ack()
		}
		rpc(w, c)
		rpc(w, c)
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
	{
		Rule: "credit-limit-exceeded", Name: "before the first Reply", AtFault: client,
		Broken: func(_ *wire, c *conn) { many(c, 2, 32) }, Healthy: func(_ *wire, c *conn) { many(c, 1, 32) },
	},
	{
		Rule: "credit-limit-exceeded", Name: "more than granted", AtFault: client,
		Broken:  func(_ *wire, c *conn) { granted(c, 32, 2); many(c, 3, 32) },
		Healthy: func(_ *wire, c *conn) { granted(c, 32, 2); many(c, 2, 32) },
	},
	{
		Rule: "credit-limit-exceeded", Name: "more than asked for", AtFault: client,
		Broken:  func(_ *wire, c *conn) { granted(c, 2, 32); many(c, 3, 2) },
		Healthy: func(_ *wire, c *conn) { granted(c, 2, 32); many(c, 2, 2) },
	},
	{
		Rule: "credit-limit-exceeded", Name: "a lower grant that has arrived", AtFault: client,
		Broken: func(w *wire, c *conn) {
			granted(c, 32, 8)
			granted(c, 32, 1)
			w.Advance(10 * time.Millisecond)
			many(c, 2, 32)
		},
		Healthy: func(_ *wire, c *conn) { // the Calls were sent before the lower grant arrived
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
		},
	},
	{
		Rule: "credit-limit-exceeded", Name: "by Calls of the server", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			session(c, synth.ConnBackChannel)
			c.Server.Call(synth.CBNull())
			c.Server.Call(synth.CBNull())
		},
		Healthy: func(_ *wire, c *conn) {
			session(c, synth.ConnBackChannel)
			c.Server.RPC(synth.CBNull(), synth.NullReply())
		},
	},
	{Rule: "credits-granted-zero", Name: "a Reply", AtFault: server, Broken: does(synth.Null(), synth.Reply{Credits: synth.Zero}), Healthy: rpc},
	{
		Rule: "credits-granted-zero", Name: "an RDMA_ERROR", AtFault: server,
		Broken:  does(synth.Null(), synth.Reply{Credits: synth.Zero, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}),
		Healthy: does(synth.Null(), synth.NullReply()),
	},
	{
		Rule: "credits-granted-zero", Name: "a Reply of the client", AtFault: client,
		Broken: back(synth.CBNull(), synth.Reply{Credits: synth.Zero}), Healthy: back(synth.CBNull(), synth.NullReply()),
	},
	{Rule: "credits-requested-zero", Name: "the client", AtFault: client, Broken: does(synth.Call{Credits: synth.Zero}, synth.NullReply()), Healthy: rpc},
	{
		Rule: "credits-requested-zero", Name: "the server", AtFault: server, Severity: "error",
		Broken: func(_ *wire, c *conn) {
			session(c, synth.ConnBackChannel)
			call := synth.CBNull()
			call.Credits = synth.Zero
			c.Server.RPC(call, synth.NullReply())
		},
		Healthy: func(_ *wire, c *conn) {
			session(c, synth.ConnBackChannel)
			c.Server.RPC(synth.CBNull(), synth.NullReply())
		},
	},
	{
		Rule: "receive-not-posted", Name: "for a Call within the grant", AtFault: server,
		Broken: func(_ *wire, c *conn) { rpc(nil, c); c.Client.Call(synth.Null()); c.Server.NotReady() },
		Healthy: func(_ *wire, c *conn) { // RNR is allowed for Calls beyond the grant
			granted(c, 32, 1)
			rpc(nil, c)
		},
	},
	{
		Rule: "receive-not-posted", Name: "for the first Call of the connection", AtFault: server,
		Broken: func(_ *wire, c *conn) { c.Client.Call(synth.Null()); c.Server.NotReady() },
		Healthy: func(_ *wire, c *conn) { // the second Call before the first Reply
			c.Client.Call(synth.Null())
			c.Client.Call(synth.Null())
			c.Server.NotReady()
		},
	},
	{
		Rule: "receive-not-posted", Name: "for a Call within a grant that is being lowered", AtFault: server, Transport: RoCE,
		Broken: lowered(2), Healthy: lowered(3),
	},
	{
		Rule: "receive-not-posted", Name: "for a Call within a raised grant", AtFault: server,
		Broken: raised(2), Healthy: raised(5),
	},
	{
		Rule: "receive-not-posted", Name: "for a Call of the server", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			session(c, synth.ConnBackChannel)
			c.Server.RPC(synth.CBNull(), synth.NullReply())
			c.Server.Call(synth.CBNull())
			c.Client.NotReady()
		},
		Healthy: back(synth.CBNull(), synth.NullReply()),
	},
	{
		Rule: "receive-not-posted", Name: "for the first Call of the server", AtFault: client,
		Broken:  func(_ *wire, c *conn) { session(c, synth.ConnBackChannel); unready(c.Server, synth.CBNull()) },
		Healthy: func(_ *wire, c *conn) { session(c, 0); unready(c.Server, synth.CBNull()) },
	},
	{
		Rule: "receive-not-posted", Name: "for a Call of the server, on a bare connection", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			c.Server.RPC(synth.CBNull(), synth.NullReply())
			unready(c.Server, synth.CBNull())
		}, // its Reply grants credits
		Healthy: func(_ *wire, c *conn) { unready(c.Server, synth.CBNull()) },
	},
	{
		Rule: "receive-not-posted", Name: "for a Call after an RDMA_DONE", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			granted(c, 32, 1)
			send(c.Client, synth.Call{Proc: rpcrdma.Done})
			granted(c, 32, 1)
			unready(c.Client, synth.Null())
		},
		Healthy: func(_ *wire, c *conn) {
			granted(c, 32, 1)
			send(c.Client, synth.Call{Proc: rpcrdma.Done})
			unready(c.Client, synth.Null())
		},
	},
	{
		Rule: "receive-not-posted", Name: "for a Call after a stray Reply", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			granted(c, 32, 1)
			stray(c.Client)
			granted(c, 32, 1)
			unready(c.Client, synth.Null())
		},
		Healthy: func(_ *wire, c *conn) { granted(c, 32, 1); stray(c.Client); unready(c.Client, synth.Null()) },
	},
	{
		Rule: "receive-not-posted", Name: "for a Reply after a stray one", AtFault: client,
		Broken:  func(_ *wire, c *conn) { rpc(nil, c); stray(c.Server); send(c.Client, synth.Null()); unreadyReply(c) },
		Healthy: func(_ *wire, c *conn) { rpc(nil, c); send(c.Client, synth.Null()); stray(c.Server); unreadyReply(c) },
	},
	{
		Rule: "receive-not-posted", Name: "for a Reply after a Call of the server", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			session(c, synth.ConnBackChannel)
			send(c.Client, synth.Call{XID: 70})
			send(c.Server, synth.CBNull())
			unreadyReply(c)
		},
		Healthy: func(_ *wire, c *conn) {
			rpc(nil, c)
			send(c.Client, synth.Call{XID: 70})
			send(c.Server, synth.CBNull())
			unreadyReply(c)
		},
	},
	{
		Rule: "receive-not-posted", Name: "for a Reply", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			rpc(nil, c)
			c.Client.Call(synth.Null())
			c.Server.Reply(synth.NullReply())
			c.Client.NotReady()
		},
		Healthy: rpc,
	},
	{
		Rule: "receive-too-small", Name: "within the stated size", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			c.Client.Call(synth.Write3(0, data(2000)))
			tooLong(c.Server)
		},
		Healthy: does(synth.Write3(0, data(2000)), synth.Write3Reply(2000)),
	},
	{
		Rule: "receive-too-small", Name: "within the negotiated limit", AtFault: server, Options: privately(synth.Inline(1024, 1024, true), yes),
		Broken: func(_ *wire, c *conn) {
			c.Client.Call(synth.Write3(0, data(800)))
			tooLong(c.Server)
		},
		Healthy: func(_ *wire, c *conn) { // the server accepts 4096 bytes, but the client said that it sends 1024 at most
			c.Client.Call(synth.Write3(0, data(2000)))
			tooLong(c.Server)
		},
	},
	{
		Rule: "receive-too-small", Name: "within 1024 bytes, no size stated", AtFault: server, Options: privately(yes, synth.NoPrivateData()),
		Broken: func(_ *wire, c *conn) {
			c.Client.Call(synth.Write3(0, data(800)))
			tooLong(c.Server)
		},
		Healthy: does(synth.Write3(0, data(800)), synth.Write3Reply(800)),
	},
}

// tooLong refuses the last Send of the peer as longer than its buffer: with a NAK, "invalid request", or a Terminate.
func tooLong(s *synth.Side) {
	if s.Conn.IWARP() {
		s.Terminate(iwarp.TerminateHeader{Layer: 1, Type: 2, Code: 5, HasLength: true, HasDDP: true})
		return
	}
	s.Nak(rocev2.NakInvalidRequest)
}
