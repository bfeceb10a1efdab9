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

	more  = synth.Inline(8192, 8192, true)
	large = does(write3(3900), writeReply())

	longTarget  = synth.Readlink3Reply(string(data(1500)))
	invalidated = does(read(), readReply().Invalidating(0xa1))
)

// edited returns private data with one byte changed.
func edited(at int, v byte) []byte {
	b := synth.Inline(4096, 4096, true)
	b[at] = v
	return b
}

// twice returns a script that opens a second connection with other options, because the
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
func sharedHandle(call synth.Call) script {
	return func(c *conn) {
		granted(32, 32)(c)
		a, b := call, call
		a.XID, b.XID, b.InvHandle = 71, 72, 0
		b.Writes = [][]rpcrdma.Segment{{synth.Mem(0xa1, 8192)}}
		c.Client.Call(a)
		send(c.Client, b)
		for i, call := range []synth.Call{a, b} {
			r := readReply().To(call)
			if i == 0 {
				r.Invalidate = 0xa1
			}
			fulfil(c, r)
		}
	}
}

// strays sends a READ, and before its Reply a message that answers no outstanding Call. The server then writes the data.
func strays(stray synth.Reply) script {
	return func(c *conn) {
		granted(32, 32)(c)
		c.RPC(call5, nullReply)
		call := read()
		call.XID = 72
		send(c.Client, call)
		stray.XID = 5
		answer(c.Server, stray)
		r := readReply().To(call)
		fulfil(c, r)
		rpc(c)
	}
}

// strayThenMany sends n Calls at once after a handle that another open Call exposes was invalidated and used, when the
// client knows that two credits are granted.
func strayThenMany(n int) script {
	return inTurn(strays(synth.Reply{Invalidate: 0xa1}), granted(32, 2), after(10*time.Millisecond), many(n, 32))
}

// refusedAfter sends two READs with one handle. The Reply to the first invalidates a handle, and then the client refuses
// the RDMA Write of the second.
func refusedAfter(handle uint32) script {
	return func(c *conn) {
		granted(32, 32)(c)
		a, b := read(), read()
		a.XID, b.XID = 71, 72
		a.Writes = [][]rpcrdma.Segment{{mem2}}
		c.Client.Call(a)
		send(c.Client, b)
		r := readReply().To(a)
		c.Server.Push(r)
		r.Invalidate = handle
		answer(c.Server, r)
		c.Server.Write(0xa1, mem.Offset, data(4096))
		c.Client.Refuse()
	}
}

// asked connects with a REQ that announces 1024 bytes. If it is changed, it is retransmitted with 4096 bytes, so that it is
// unknown which of them counts. Then the server sends 3000 bytes.
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
		c.RPC(synth.Read3(0, 3000), read3Reply(3000))
	}
}

var private = []Case{
	client("private-data-unusable", "version 2", twice(privately(edited(4, 2), yes), rpc), rpc),
	server("private-data-unusable", "truncated", twice(privately(yes, yes[:7]), rpc), rpc).on(IWARP),
	client("private-data-reserved-bits", "a bit of the client's", twice(privately(edited(5, 0x03), yes), rpc), rpc),
	server("private-data-reserved-bits", "all of the server's", twice(privately(yes, edited(5, 0xff)), rpc), rpc),

	client("inline-threshold-exceeded", "a Call", does(write3(4096), writeReply()), large),
	server("inline-threshold-exceeded", "a Reply", does(wholeRead, read3Reply(4096)), does(synth.Read3(0, 3900), read3Reply(3900))),
	client("inline-threshold-exceeded", "a Call, the server having sent no private data",
		does(write3(1024), writeReply()), does(write3(800), writeReply())).with(privately(yes, synth.NoPrivateData())),
	// What two sides of a newer version agreed on is not known.
	server("inline-threshold-exceeded", "private data of version 2",
		twice(privately(edited(4, 2), yes), does(synth.Readlink3(), longTarget)),
		twice(privately(edited(4, 2), edited(4, 2)), does(synth.Readlink3(), longTarget))),
	server("inline-threshold-exceeded", "a Call of the server",
		back(synth.CBCompound(synth.OpCBSequence(1), synth.OpLookup(string(data(5000)))), synth.CompoundReply(synth.ResCBSequence(1))),
		back(synth.CBCompound(synth.OpCBSequence(1)), synth.CompoundReply(synth.ResCBSequence(1)))),
	server("inline-threshold-exceeded", "the REQ was retransmitted as it was", asked(false), asked(true)).on(RoCE).unconnected(),
	client("inline-threshold-exceeded", "new settings after a reconnect",
		inTurn(large, disconnects, twice(privately(synth.Inline(1024, 1024, true), yes), large)),
		inTurn(large, disconnects, twice(privately(more, more), does(write3(7000), writeReply())))),

	server("invalidation-not-negotiated", "the client said no", invalidated, reads).with(privately(no, yes)),
	server("invalidation-not-negotiated", "the client sent no private data",
		invalidated, reads).with(privately(synth.NoPrivateData(), yes)),
	neither("invalidation-not-negotiated", "the server itself said no", invalidated, reads).as("note").with(privately(yes, no)),

	server("invalidated-unexposed-handle", "an unknown handle", does(read(), readReply().Invalidating(0xb7)), invalidated),
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
		inTurn(invalidated, invalidated)),
	server("invalidated-unexposed-handle", "of two Calls of version 2, one of which asks for it",
		sharedHandle(read()), sharedHandle(draft(0xa1))),
	server("invalidated-handle-used", "after a Call of version 2 asked for the invalidation",
		inTurn(does(draft(0xa1), readReply().Invalidating(0xa1)), serverWrites(mem.Offset, 100)), sharedHandle(draft(0xa1))),
	server("invalidated-unexposed-handle", "of another open Call, by a second Reply",
		strays(synth.Reply{Invalidate: 0xa1}), strays(synth.Reply{})),
	server("invalidated-unexposed-handle", "of another open Call, by an RDMA_ERROR without a Call",
		strays(chunkError.Invalidating(0xa1)), strays(chunkError)),
	server("invalidated-handle-used", "which another open Call still exposes",
		strays(synth.Reply{Invalidate: 0xa1}), strays(synth.Reply{})),
	server("invalidated-handle-used", "which another open Call still exposes, and the Write is refused",
		refusedAfter(0xa1), refusedAfter(0xa2)),
	client("credit-limit-exceeded", "after the use of a handle that another open Call exposes", strayThenMany(3), strayThenMany(2)),
	server("invalidated-unexposed-handle", "by an RDMA_ERROR", does(read(), chunkError.Invalidating(0xb7)), reads),
	client("invalidation-on-call", "a Call",
		func(c *conn) {
			c.Client.Call(null, synth.Invalidate(0xb7))
			c.Server.Reply(nullReply)
		},
		rpc),
	server("invalidated-handle-used", "a Write", inTurn(invalidated, serverWrites(mem.Offset, 100)), inTurn(invalidated, invalidated)),
	server("invalidated-handle-used", "a Read",
		inTurn(does(write(), writeReply().Invalidating(0xa1)), serverReads(mem.Offset, 100)),
		does(write(), writeReply().Invalidating(0xa1))),
	server("invalidated-handle-used", "a second invalidation",
		inTurn(rpc, invalidated, does(null, nullReply.Invalidating(0xa1))), inTurn(invalidated, rpc)),
}

// granted sends an exchange that requests and grants credits.
func granted(ask, grant uint32) script {
	return does(synth.Call{Credits: ask}, synth.Reply{Credits: grant})
}

// many sends n Calls without waiting, and then their Replies.
func many(n int, credits uint32) script {
	return func(c *conn) {
		for i := range n {
			c.Client.Call(synth.Call{XID: uint32(1000 + i), Credits: credits})
		}
		c.Server.Ack()
		for i := range n {
			c.Server.Reply(synth.Reply{XID: uint32(1000 + i), Credits: 2})
		}
		c.Client.Ack()
	}
}

// raised sends n Calls at once after a Reply that raises the grant from 1 to 4, and the server has no receive buffer for
// the last of them.
func raised(n int) script {
	return func(c *conn) {
		granted(32, 1)(c)
		granted(32, 4)(c)
		for range n {
			c.Client.Call(null)
		}
		c.Server.NotReady()
	}
}

// lowered sends n Calls at once, right after the Reply that lowers the grant from 8 to 2. The server has no receive buffer
// for the last of them at first.
func lowered(n int) script {
	return func(c *conn) {
		granted(32, 8)(c)
		granted(32, 2)(c)
		for i := range n {
			c.Client.Call(synth.Call{XID: uint32(1000 + i)})
		}
		last := c.Wire.Last()
		c.Server.NotReady()
		c.Wire.Advance(time.Millisecond)
		c.Wire.Retransmit(last)
		c.Server.Ack()
		for i := range n {
			answer(c.Server, synth.Reply{XID: uint32(1000 + i), Credits: 2})
		}
		rpc(c)
		rpc(c)
	}
}

// stray is a Reply of the server that answers no Call, and strayBack one of the client.
func stray(c *conn) { answer(c.Server, synth.Reply{XID: 0x5757}) }

func strayBack(c *conn) { answer(c.Client, synth.Reply{XID: 0x5757}) }

// unready sends a Call for which the other side has no receive buffer, unreadyBack one of the server, and unreadyReply the
// Reply to the client's Call.
func unready(call synth.Call) script {
	return func(c *conn) {
		c.Client.Call(call)
		c.Server.NotReady()
	}
}

func unreadyBack(c *conn) {
	c.Server.Call(cbNull)
	c.Client.NotReady()
}

func unreadyReply(c *conn) {
	c.Server.Reply(nullReply)
	c.Client.NotReady()
}

var credits = []Case{
	client("credit-limit-exceeded", "before the first Reply", many(2, 32), many(1, 32)),
	client("credit-limit-exceeded", "more than granted", inTurn(granted(32, 2), many(3, 32)), inTurn(granted(32, 2), many(2, 32))),
	client("credit-limit-exceeded", "more than asked for", inTurn(granted(2, 32), many(3, 2)), inTurn(granted(2, 32), many(2, 2))),
	client("credit-limit-exceeded", "a lower grant that has arrived",
		inTurn(granted(32, 8), granted(32, 1), after(10*time.Millisecond), many(2, 32)),
		func(c *conn) { // the Calls were sent before the lower grant arrived
			granted(32, 8)(c)
			send(c.Client, synth.Call{XID: 500})
			c.Options.ManualAck = true
			c.Server.Reply(synth.Reply{XID: 500, Credits: 1})
			c.Client.Call(synth.Call{XID: 501})
			c.Client.Call(synth.Call{XID: 502})
			c.Client.Ack()
			c.Server.Ack()
			c.Options.ManualAck = false
			c.Server.Reply(synth.Reply{XID: 501, Credits: 1})
			answer(c.Server, synth.Reply{XID: 502, Credits: 1})
		}),
	server("credit-limit-exceeded", "by Calls of the server",
		func(c *conn) {
			backchannel(c)
			c.Server.Call(cbNull)
			c.Server.Call(cbNull)
		},
		called),
	server("credits-granted-zero", "a Reply", does(null, synth.Reply{Credits: synth.Zero}), rpc),
	server("credits-granted-zero", "an RDMA_ERROR",
		does(null, synth.Reply{Credits: synth.Zero, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}), rpc),
	client("credits-granted-zero", "a Reply of the client", back(cbNull, synth.Reply{Credits: synth.Zero}), called),
	client("credits-requested-zero", "the client", does(synth.Call{Credits: synth.Zero}, nullReply), rpc),
	server("credits-requested-zero", "the server",
		func(c *conn) {
			backchannel(c)
			call := cbNull
			call.Credits = synth.Zero
			c.Server.RPC(call, nullReply)
		},
		called).as("error"),
	// RNR is allowed for Calls beyond the grant.
	server("receive-not-posted", "for a Call within the grant", inTurn(rpc, unready(null)), inTurn(granted(32, 1), rpc)),
	server("receive-not-posted", "for the first Call of the connection",
		unready(null),
		func(c *conn) { // the second Call before the first Reply
			c.Client.Call(null)
			unready(null)(c)
		}),
	server("receive-not-posted", "for a Call within a grant that is being lowered", lowered(2), lowered(3)).on(RoCE),
	server("receive-not-posted", "for a Call within a raised grant", raised(2), raised(5)),
	client("receive-not-posted", "for a Call of the server", inTurn(called, unreadyBack), called),
	client("receive-not-posted", "for the first Call of the server", inTurn(backchannel, unreadyBack), inTurn(session(0), unreadyBack)),
	client("receive-not-posted", "for a Call of the server, on a bare connection",
		func(c *conn) { // its Reply grants credits
			c.Server.RPC(cbNull, nullReply)
			unreadyBack(c)
		},
		unreadyBack),
	server("receive-not-posted", "for a Call after an RDMA_DONE",
		inTurn(granted(32, 1), calls(done), granted(32, 1), unready(null)), inTurn(granted(32, 1), calls(done), unready(null))),
	server("receive-not-posted", "for a Call after a stray Reply",
		inTurn(granted(32, 1), strayBack, granted(32, 1), unready(null)), inTurn(granted(32, 1), strayBack, unready(null))),
	client("receive-not-posted", "for a Reply after a stray one",
		inTurn(rpc, stray, calls(null), unreadyReply), inTurn(rpc, calls(null), stray, unreadyReply)),
	client("receive-not-posted", "for a Reply after a Call of the server",
		inTurn(backchannel, calls(synth.Call{XID: 70}), callsBack(cbNull), unreadyReply),
		inTurn(rpc, calls(synth.Call{XID: 70}), callsBack(cbNull), unreadyReply)),
	client("receive-not-posted", "for a Reply",
		func(c *conn) {
			rpc(c)
			c.Client.Call(null)
			unreadyReply(c)
		},
		rpc),
	server("receive-too-small", "within the stated size", tooLong(2000), does(write3(2000), synth.Write3Reply(2000))),
	// The server accepts 4096 bytes, but the client said that it sends 1024 at most.
	server("receive-too-small", "within the negotiated limit",
		tooLong(800), tooLong(2000)).with(privately(synth.Inline(1024, 1024, true), yes)),
	server("receive-too-small", "within 1024 bytes, no size stated",
		tooLong(800), does(write3(800), synth.Write3Reply(800))).with(privately(yes, synth.NoPrivateData())),
}

// tooLong sends a WRITE of n bytes, which the server refuses as longer than its buffer: with a NAK, "invalid request", or a
// Terminate.
func tooLong(n int) script {
	return func(c *conn) {
		c.Client.Call(write3(n))
		if c.IWARP() {
			c.Server.Terminate(iwarp.TerminateHeader{Layer: 1, Type: 2, Code: 5, HasLength: true, HasDDP: true})
			return
		}
		c.Server.Nak(rocev2.NakInvalidRequest)
	}
}
