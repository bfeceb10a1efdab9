package cases

import (
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/synth"
)

// Private data, remote invalidation (RFC 8797), and credits.

func privately(client, server []byte) synth.Options {
	return synth.Options{Client: synth.End{PrivateData: client}, Server: synth.End{PrivateData: server}}
}

var (
	yes = synth.Inline(4096, 4096, true)
	no  = synth.Inline(4096, 4096, false)
)

// edited is private data with a byte changed.
func edited(at int, v byte) []byte {
	b := synth.Inline(4096, 4096, true)
	b[at] = v
	return b
}

// twice makes a second connection with other private data, for what its twin must
// not be.
func twice(o synth.Options, act func(*wire, *conn)) func(*wire, *conn) {
	return func(w *wire, c *conn) {
		again := c.Another(o)
		again.Connect()
		act(w, again)
	}
}

var private = []Case{
	{Rule: "private-data-unusable", Name: "version 2", Blames: client, Broken: twice(privately(edited(4, 2), yes), rpc), Healthy: rpc},
	{Rule: "private-data-unusable", Name: "cut short", Blames: server, Transport: IWARP, Broken: twice(privately(yes, yes[:7]), rpc), Healthy: rpc},
	{Rule: "private-data-reserved-bits", Name: "a bit of the client's", Blames: client, Broken: twice(privately(edited(5, 0x03), yes), rpc), Healthy: rpc},
	{Rule: "private-data-reserved-bits", Name: "all of the server's", Blames: server, Broken: twice(privately(yes, edited(5, 0xff)), rpc), Healthy: rpc},

	{
		Rule: "inline-threshold-exceeded", Name: "a Call", Blames: client,
		Broken: does(synth.Write3(0, data(4096)), writeReply()), Healthy: does(synth.Write3(0, data(3900)), writeReply()),
	},
	{
		Rule: "inline-threshold-exceeded", Name: "a Reply", Blames: server,
		Broken: does(synth.Read3(0, 4096), synth.Read3Reply(data(4096))), Healthy: does(synth.Read3(0, 3900), synth.Read3Reply(data(3900))),
	},
	{
		Rule: "inline-threshold-exceeded", Name: "a Call, where the server said nothing", Blames: client, Options: privately(yes, synth.NoPrivateData()),
		Broken: does(synth.Write3(0, data(1024)), writeReply()), Healthy: does(synth.Write3(0, data(800)), writeReply()),
	},
	{
		Rule: "inline-threshold-exceeded", Name: "a Call of the server", Blames: server,
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
		Rule: "inline-threshold-exceeded", Name: "new settings after a reconnect", Blames: client,
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
		Rule: "invalidation-not-negotiated", Name: "the client said no", Blames: server, Options: privately(no, yes),
		Broken: does(read(), readReply().Invalidating(0xa1)), Healthy: does(read(), readReply()),
	},
	{
		Rule: "invalidation-not-negotiated", Name: "the client said nothing", Blames: server, Options: privately(synth.NoPrivateData(), yes),
		Broken: does(read(), readReply().Invalidating(0xa1)), Healthy: does(read(), readReply()),
	},
	{
		Rule: "invalidation-not-negotiated", Name: "the server itself said no", Blames: server, Severity: "warning", Options: privately(yes, no),
		Broken: does(read(), readReply().Invalidating(0xa1)), Healthy: does(read(), readReply()),
	},

	{Rule: "invalidated-unexposed-handle", Name: "nobody's", Blames: server, Broken: does(read(), readReply().Invalidating(0xb7)), Healthy: does(read(), readReply().Invalidating(0xa1))},
	{
		Rule: "invalidated-unexposed-handle", Name: "of another open Call as well", Blames: server,
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
		Rule: "invalidated-unexposed-handle", Name: "by an RDMA_ERROR", Blames: server,
		Broken: does(read(), synth.ErrChunk().Invalidating(0xb7)), Healthy: does(read(), readReply()),
	},
	{
		Rule: "invalidation-on-call", Name: "a Call", Blames: client,
		Broken: func(_ *wire, c *conn) {
			c.Client.Call(synth.Null(), synth.Invalidate(0xb7))
			c.Server.Reply(synth.NullReply())
		}, Healthy: rpc,
	},
	{
		Rule: "invalidated-handle-used", Name: "a Write", Blames: server,
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
		Rule: "invalidated-handle-used", Name: "a Read", Blames: server,
		Broken: func(_ *wire, c *conn) {
			c.RPC(write(), writeReply().Invalidating(0xa1))
			c.Server.Read(0xa1, mem.Offset, data(100))
		},
		Healthy: does(write(), writeReply().Invalidating(0xa1)),
	},
	{
		Rule: "invalidated-handle-used", Name: "a second invalidation", Blames: server,
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

// granted is a connection on which so many credits are asked for and granted.
func granted(c *conn, ask, grant uint32) {
	c.RPC(synth.Call{Credits: ask}, synth.Reply{Credits: grant})
}

// many are n Calls that wait, answered one after the other.
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

var credits = []Case{
	{
		Rule: "credit-limit-exceeded", Name: "before the first Reply", Blames: client,
		Broken: func(_ *wire, c *conn) { many(c, 2, 32) }, Healthy: func(_ *wire, c *conn) { many(c, 1, 32) },
	},
	{
		Rule: "credit-limit-exceeded", Name: "more than granted", Blames: client,
		Broken:  func(_ *wire, c *conn) { granted(c, 32, 2); many(c, 3, 32) },
		Healthy: func(_ *wire, c *conn) { granted(c, 32, 2); many(c, 2, 32) },
	},
	{
		Rule: "credit-limit-exceeded", Name: "more than asked for", Blames: client,
		Broken:  func(_ *wire, c *conn) { granted(c, 2, 32); many(c, 3, 2) },
		Healthy: func(_ *wire, c *conn) { granted(c, 2, 32); many(c, 2, 2) },
	},
	{
		Rule: "credit-limit-exceeded", Name: "a lower grant that has arrived", Blames: client,
		Broken: func(_ *wire, c *conn) { granted(c, 32, 8); granted(c, 32, 1); many(c, 2, 32) },
		Healthy: func(_ *wire, c *conn) { // the Calls crossed it
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
		Rule: "credit-limit-exceeded", Name: "of the server's Calls", Blames: server,
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
	{Rule: "credits-granted-zero", Name: "a Reply", Blames: server, Broken: does(synth.Null(), synth.Reply{Credits: synth.Zero}), Healthy: rpc},
	{
		Rule: "credits-granted-zero", Name: "an RDMA_ERROR", Blames: server,
		Broken:  does(synth.Null(), synth.Reply{Credits: synth.Zero, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}),
		Healthy: does(synth.Null(), synth.NullReply()),
	},
	{Rule: "credits-requested-zero", Name: "the client", Blames: client, Broken: does(synth.Call{Credits: synth.Zero}, synth.NullReply()), Healthy: rpc},
	{
		Rule: "credits-requested-zero", Name: "the server", Blames: server, Severity: "error",
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
		Rule: "receive-not-posted", Name: "for a Call within the grant", Blames: server,
		Broken: func(_ *wire, c *conn) { rpc(nil, c); c.Client.Call(synth.Null()); c.Server.NotReady() },
		Healthy: func(_ *wire, c *conn) { // more than was granted
			granted(c, 32, 1)
			rpc(nil, c)
		},
	},
	{
		Rule: "receive-not-posted", Name: "for a Reply", Blames: client,
		Broken: func(_ *wire, c *conn) {
			rpc(nil, c)
			c.Client.Call(synth.Null())
			c.Server.Reply(synth.NullReply())
			c.Client.NotReady()
		},
		Healthy: rpc,
	},
	{
		Rule: "receive-too-small", Name: "within what was stated", Blames: server, Transport: RoCE,
		Broken: func(_ *wire, c *conn) {
			c.Client.Call(synth.Write3(0, data(2000)))
			c.Server.Nak(1)
		},
		Healthy: does(synth.Write3(0, data(2000)), synth.Write3Reply(2000)),
	},
	{
		Rule: "receive-too-small", Name: "within 1024, nothing being stated", Blames: server, Transport: RoCE, Options: privately(yes, synth.NoPrivateData()),
		Broken: func(_ *wire, c *conn) {
			c.Client.Call(synth.Write3(0, data(800)))
			c.Server.Nak(1)
		},
		Healthy: does(synth.Write3(0, data(800)), synth.Write3Reply(800)),
	},
}
