package cases

import (
	"time"

	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/synth"
)

// Rules about answers (RFC 8166 s.4.5), the backward direction, and version 2.

// unrefused sends a broken Call that the server does not answer with RDMA_ERROR, although the
// connection stays in use. refused sends one that the server answers with by.
func unrefused(call synth.Call) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		rpc(nil, c)
		c.Client.Call(call)
		c.Server.Ack()
		rpc(nil, c)
	}
}

func refused(call synth.Call, by synth.Reply) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		rpc(nil, c)
		call.XID = 77
		c.Client.Call(call)
		c.Server.Reply(by)
		c.Client.Ack()
		rpc(nil, c)
	}
}

// refusal returns an RDMA_ERROR whose header repeats the rejected version 3, and that gives the
// supported versions.
func refusal(low, high uint32) synth.Reply {
	return synth.Reply{Vers: 3, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: low, High: high}
}

// refusesUsed lets the server answer a Call of version 2, and then refuse a Call.
func refusesUsed(call synth.Call, by synth.Reply) func(*wire, *conn) {
	return func(w *wire, c *conn) {
		c.RPC(synth.Call{Vers: 2}, synth.NullReply())
		refused(call, by)(w, c)
	}
}

// unknownVersionBack returns a function in which the server sends a Call of version 3, and
// the client rejects it with an ERR_VERS that lists the versions 1 to high.
func unknownVersionBack(high uint32) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		session(c, synth.ConnBackChannel)
		call := synth.CBNull()
		call.XID, call.Vers = 0x99, 3
		c.Server.Call(call)
		c.Client.Ack()
		by := refusal(1, high)
		by.XID = call.XID
		c.Client.Reply(by)
		c.Server.Ack()
	}
}

// rejectsReply sends an RPC whose Reply the client rejects with by.
func rejectsReply(reply, by synth.Reply) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		rpc(nil, c)
		exchange(c, synth.Call{XID: 77}, reply)
		by.XID = 77
		c.Client.Reply(by)
		c.Server.Ack()
		rpc(nil, c)
	}
}

// backInstead returns a function in which the server sends a Call with another rdma_proc than RDMA_MSG, and the client
// answers with by, or not at all if by has no procedure.
func backInstead(proc rpcrdma.Proc, by synth.Reply) func(*wire, *conn) {
	return func(w *wire, c *conn) {
		session(c, synth.ConnBackChannel)
		call := synth.CBNull()
		call.XID, call.Proc, by.XID = 0x99, proc, 0x99
		if proc > rpcrdma.Error { // synth has no layout for it
			call.Tail = call.Message().Inline()
		}
		c.Server.Call(call)
		c.Client.Ack()
		if by.Proc != 0 {
			c.Client.Reply(by)
			c.Server.Ack()
		}
		w.Advance(2 * time.Second)
		rpc(nil, c)
	}
}

var answers = []Case{
	{Rule: "rdma-error", Name: "a chunk", Broken: does(synth.Null(), synth.ErrChunk()), Healthy: rpc},
	{
		Rule: "rdma-error", Name: "a version, and no fallback", Severity: "error",
		Broken: func(_ *wire, c *conn) {
			rpc(nil, c)
			c.Client.Call(synth.Call{XID: 0x70, Vers: 3})
			c.Server.Reply(refusal(1, 1).To(synth.Call{XID: 0x70}))
			c.Client.Ack()
		}, Healthy: probes(3, 1),
	},
	{Rule: "rdma-error", Name: "a version, and the fallback", Severity: "note", Broken: refused(synth.Call{Vers: 3}, refusal(1, 1)), Healthy: rpc},
	{Rule: "rdma-error", Name: "a version although the sender was told", Severity: "error", Broken: probes(3, 3, 1), Healthy: probes(3, 1)},
	{Rule: "rdma-error", Name: "a version that is listed", Severity: "error", Broken: refused(synth.Call{Vers: 3}, refusal(1, 3)), Healthy: probes(3, 1)},
	{
		Rule: "rdma-error", Name: "from a requester, about a Reply",
		Broken: func(_ *wire, c *conn) {
			c.RPC(synth.Call{XID: 9}, synth.NullReply())
			r := synth.ErrChunk()
			r.XID = 9
			c.Client.Reply(r)
		}, Healthy: rpc,
	},

	{Rule: "error-not-answered", Name: "another version", AtFault: server, Broken: unrefused(synth.Call{Vers: 3}), Healthy: refused(synth.Call{Vers: 3}, refusal(1, 1))},
	{Rule: "error-not-answered", Name: "version 0", AtFault: server, Broken: unrefused(synth.Call{Vers: synth.Zero}), Healthy: refused(synth.Call{Vers: synth.Zero}, synth.Reply{Vers: synth.Zero, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: 1, High: 1})},
	{Rule: "error-not-answered", Name: "version 0, answered with a Reply", AtFault: server, Broken: refused(synth.Call{Vers: synth.Zero}, synth.Reply{Vers: 1}), Healthy: rpc},
	{Rule: "error-not-answered", Name: "an RDMA_NOMSG without chunks", AtFault: server, Broken: unrefused(synth.Call{Proc: rpcrdma.NoMsg}), Healthy: refused(synth.Call{Proc: rpcrdma.NoMsg}, synth.ErrChunk())},
	{Rule: "error-not-answered", Name: "another procedure", AtFault: server, Broken: unrefused(synth.Call{Proc: 99}), Healthy: refused(synth.Call{Proc: 99}, synth.ErrChunk())},
	{
		Rule: "error-not-answered", Name: "a truncated list", AtFault: server,
		Broken: func(w *wire, c *conn) { rpc(nil, c); c.Client.Send(read().Bytes()[:40]); c.Server.Ack(); rpc(nil, c) }, Healthy: refused(synth.Call{Proc: 99}, synth.ErrChunk()),
	},
	{
		Rule: "error-not-answered", Name: "while the client waits", AtFault: server,
		Broken: func(w *wire, c *conn) {
			rpc(nil, c)
			c.Client.Call(synth.Call{Vers: 3})
			c.Server.Ack()
			w.Advance(3 * time.Second)
			c.Disconnect(c.Client)
		},
		Healthy: func(w *wire, c *conn) { // the server may close the connection instead of answering
			rpc(nil, c)
			c.Client.Call(synth.Call{Vers: 3})
			c.Server.Ack()
			w.Advance(3 * time.Second)
			c.Disconnect(c.Server)
		},
	},
	{Rule: "error-not-answered", Name: "answered with a Reply", AtFault: server, Broken: refused(synth.Call{Vers: 3}, synth.Reply{}), Healthy: rpc},
	{Rule: "error-not-answered", Name: "the XID of another RPC", AtFault: server, Broken: unrefused(synth.Call{XID: 0x70, RPCXID: 0x71}), Healthy: refused(synth.Call{RPCXID: 0x71}, synth.ErrChunk())},
	{
		Rule: "error-not-answered", Name: "the XID of another RPC, although the responder may go by rdma_xid", AtFault: server, Broken: unrefused(synth.Call{XID: 0x70, RPCXID: 0x71}),
		Healthy: refused(synth.Call{RPCXID: 0x71}, synth.Reply{}),
	},
	{
		Rule: "error-not-answered", Name: "the XID of another RPC, and the connection is closed", AtFault: server, Broken: unrefused(synth.Call{XID: 0x70, RPCXID: 0x71}),
		Healthy: func(w *wire, c *conn) {
			rpc(nil, c)
			c.Client.Call(synth.Call{XID: 0x70, RPCXID: 0x71})
			c.Server.Ack()
			c.Disconnect(c.Server)
		},
	},
	{Rule: "error-not-answered", Name: "a version that both sides use", AtFault: server, Broken: versionThree(1), Healthy: versionThree(3)},
	{Rule: "error-not-answered", Name: "an RDMA_MSGP", AtFault: server, Severity: "warning", Broken: unrefused(synth.Call{Proc: rpcrdma.MsgP}), Healthy: refused(synth.Call{Proc: rpcrdma.MsgP}, synth.ErrChunk())},
	{Rule: "error-not-answered", Name: "an unknown procedure of the server's Call", AtFault: client, Broken: backInstead(99, synth.Reply{}), Healthy: backInstead(99, synth.ErrChunk())},
	{Rule: "error-not-answered", Name: "an RDMA_MSGP of the server", AtFault: client, Severity: "warning", Broken: backInstead(rpcrdma.MsgP, synth.Reply{}), Healthy: backInstead(rpcrdma.MsgP, synth.ErrChunk())},
	{Rule: "reply-without-call", Name: "an RDMA_DONE of the server is no Reply", AtFault: server, Broken: func(_ *wire, c *conn) { rpc(nil, c); c.Server.Reply(synth.Reply{XID: 0x999}) }, Healthy: func(_ *wire, c *conn) { rpc(nil, c); c.Server.Reply(synth.Reply{XID: 0x999, Proc: rpcrdma.Done}) }},
	{Rule: "reply-without-call", Name: "an unknown procedure of the server is no Reply", AtFault: server, Broken: func(_ *wire, c *conn) { rpc(nil, c); c.Server.Reply(synth.Reply{XID: 0x999}) }, Healthy: backInstead(99, synth.Reply{})},
	{Rule: "error-not-answered", Name: "an RDMA_DONE", AtFault: server, Severity: "warning", Broken: unrefused(synth.Call{XID: 1, Proc: rpcrdma.Done}), Healthy: refused(synth.Call{Proc: rpcrdma.Done}, synth.ErrChunk())},
	{Rule: "error-wrong-code", Name: "ERR_CHUNK for a version", AtFault: server, Broken: refused(synth.Call{Vers: 3}, synth.Reply{Vers: 3, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}), Healthy: refused(synth.Call{Vers: 3}, refusal(1, 2))},
	{
		Rule: "error-wrong-code", Name: "ERR_CHUNK for a version that the server does not use", AtFault: server,
		Broken:  refused(synth.Call{Vers: 2, Proc: 9}, synth.Reply{Vers: 2, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}),
		Healthy: refusesUsed(synth.Call{Vers: 2, Proc: 9}, synth.Reply{Vers: 2, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}),
	},
	{
		Rule: "error-wrong-code", Name: "ERR_VERS for a version that the server uses", AtFault: server,
		Broken:  refusesUsed(synth.Call{Vers: 2}, synth.Reply{Vers: 2, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: 1, High: 1}),
		Healthy: refused(synth.Call{Vers: 2}, synth.Reply{Vers: 2, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: 1, High: 1}),
	},
	{
		Rule: "error-wrong-code", Name: "a range without version 2, which the server uses", AtFault: server,
		Broken: refusesUsed(synth.Call{Vers: 3}, refusal(1, 1)), Healthy: refusesUsed(synth.Call{Vers: 3}, refusal(1, 2)),
	},
	{
		Rule: "error-wrong-code", Name: "a range without version 2, which the server uses later", AtFault: server,
		Broken: func(w *wire, c *conn) {
			refused(synth.Call{Vers: 3}, refusal(1, 1))(w, c)
			c.RPC(synth.Call{Vers: 2}, synth.NullReply())
		},
		Healthy: func(w *wire, c *conn) {
			refused(synth.Call{Vers: 3}, refusal(1, 2))(w, c)
			c.RPC(synth.Call{Vers: 2}, synth.NullReply())
		},
	},
	{Rule: "error-wrong-code", Name: "ERR_VERS for a chunk", AtFault: server, Broken: refused(synth.Call{Proc: 99}, synth.ErrVers(1, 1)), Healthy: refused(synth.Call{Proc: 99}, synth.ErrChunk())},
	{Rule: "error-wrong-code", Name: "a range with the refused version", AtFault: server, Broken: refused(synth.Call{Vers: 3}, refusal(1, 4)), Healthy: refused(synth.Call{Vers: 3}, refusal(1, 2))},
	{Rule: "error-wrong-code", Name: "a range without the version that the server uses", AtFault: server, Broken: refused(synth.Call{Vers: 3}, refusal(4, 9)), Healthy: refused(synth.Call{Vers: 3}, refusal(1, 1))},
	{Rule: "error-wrong-code", Name: "a range of version 0 only", AtFault: server, Broken: refused(synth.Call{Vers: 3}, refusal(0, 0)), Healthy: refused(synth.Call{Vers: 3}, refusal(1, 1))},
	{
		Rule: "error-wrong-code", Name: "a range without the version that the server uses later", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			exchange(c, synth.Call{XID: 77, Proc: rpcrdma.MsgP}, synth.ErrVers(2, 2))
			rpc(nil, c)
		},
		Healthy: func(_ *wire, c *conn) {
			exchange(c, synth.Call{XID: 77, Proc: rpcrdma.MsgP}, synth.ErrVers(2, 2))
			disconnects(nil, c)
		},
	},
	{Rule: "error-wrong-code", Name: "ERR_CHUNK for the version of a Reply", AtFault: client, Broken: rejectsReply(synth.Reply{Vers: 5}, synth.Reply{Vers: 5, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}), Healthy: rejectsReply(synth.Reply{Vers: 5}, synth.Reply{Vers: 5, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: 1, High: 1})},
	{Rule: "error-wrong-code", Name: "ERR_VERS for a Reply of version 1", AtFault: client, Broken: rejectsReply(synth.Reply{Proc: 99}, synth.ErrVers(2, 2)), Healthy: rejectsReply(synth.Reply{Proc: 99}, synth.ErrChunk())},
	{Rule: "error-wrong-version", Name: "1 for a Reply of version 5", AtFault: client, Broken: rejectsReply(synth.Reply{Vers: 5}, synth.ErrVers(1, 1)), Healthy: rejectsReply(synth.Reply{Vers: 5}, synth.Reply{Vers: 5, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: 1, High: 1})},
	{Rule: "error-wrong-version", Name: "3 for a Call with an unknown procedure", AtFault: server, Broken: refused(synth.Call{Proc: 99}, synth.Reply{Vers: 3, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}), Healthy: refused(synth.Call{Proc: 99}, synth.ErrChunk())},
	{Rule: "error-unknown-xid", Name: "an unknown XID, while a Call has to be rejected", AtFault: server, Broken: refused(synth.Call{Proc: 99}, synth.Reply{XID: 78, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}), Healthy: refused(synth.Call{Proc: 99}, synth.ErrChunk())},
	{Rule: "error-wrong-code", Name: "low above high", AtFault: server, Broken: refused(synth.Call{Vers: 3}, refusal(2, 1)), Healthy: refused(synth.Call{Vers: 3}, refusal(1, 1))},
	{Rule: "error-wrong-version", Name: "1 for 3", AtFault: server, Broken: refused(synth.Call{Vers: 3}, synth.ErrVers(1, 1)), Healthy: refused(synth.Call{Vers: 3}, refusal(1, 1))},
	{Rule: "error-unknown-xid", Name: "an unknown XID", AtFault: server, Broken: func(_ *wire, c *conn) { rpc(nil, c); r := synth.ErrChunk(); r.XID = 0x999; c.Server.Reply(r) }, Healthy: refused(synth.Call{Proc: rpcrdma.Done}, synth.ErrChunk())},
	{
		Rule: "error-answered", Name: "back and forth", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			c.RPC(synth.Call{XID: 9}, synth.ErrChunk())
			r := synth.ErrChunk()
			r.XID = 9
			c.Client.Reply(r)
		},
		Healthy: does(synth.Null(), synth.ErrChunk()),
	},
	{
		Rule: "call-not-answered", Name: "31 s", AtFault: server,
		Broken: func(w *wire, c *conn) {
			rpc(nil, c)
			c.Client.Call(synth.Call{XID: 500})
			c.Server.Ack()
			w.Advance(31 * time.Second)
			rpc(nil, c)
		},
		Healthy: func(w *wire, c *conn) {
			rpc(nil, c)
			c.Client.Call(synth.Call{XID: 500})
			c.Server.Ack()
			w.Advance(29 * time.Second)
			rpc(nil, c)
		},
	},
	{
		Rule: "call-not-answered", Name: "31 s, RPCSEC_GSS", // the server may have discarded it
		Broken: func(w *wire, c *conn) {
			rpc(nil, c)
			c.Client.Call(synth.Call{XID: 500, Cred: synth.GSS(1, 1)})
			c.Server.Ack()
			w.Advance(31 * time.Second)
			rpc(nil, c)
		},
		Healthy: rpc,
	},
	{Rule: "rpc-rejected", Name: "with a chunk", Broken: does(write(), synth.Reply{Accept: 4}), Healthy: does(write(), writeReply())},
	{Rule: "rpc-rejected", Name: "an unknown program", Broken: does(synth.Getattr3(), synth.Reply{Accept: 1}), Healthy: does(synth.Null(), synth.Reply{Accept: 1})}, // a NULL Call asks for that
	{ // A NULL Call whose procedure was not captured asks for that, too.
		Rule: "rpc-rejected", Name: "an unknown version, in a truncated capture", Transport: RoCE,
		Broken: does(synth.Getattr3(), synth.Reply{Accept: 2, Results: synth.XDR{}.Word(2, 4)}),
		Healthy: func(_ *synth.Wire, c *synth.Conn) {
			for _, f := range c.RPC(synth.Null(), synth.Reply{Accept: 2, Results: synth.XDR{}.Word(2, 4)})[:1] {
				f.Truncate(14 + 20 + 8 + 12 + 28 + 20)
			}
		},
	},
	{
		Rule: "rpc-rejected", Name: "an unknown version", Broken: does(synth.Getattr3(), synth.Reply{Accept: 2, Results: synth.XDR{}.Word(2, 4)}),
		Healthy: does(synth.Null(), synth.Reply{Accept: 2, Results: synth.XDR{}.Word(2, 4)}),
	},
	{
		Rule: "rpc-rejected", Name: "GARBAGE_ARGS in a Long Reply", AtFault: server,
		Broken: does(listing, synth.Reply{Accept: 4}.Long()), Healthy: does(listing, listingReply),
	},
	{Rule: "rpc-rejected", Name: "denied", Broken: does(synth.Null(), synth.Reply{Deny: []uint32{1, 1}}), Healthy: rpc},
	{Rule: "reply-without-call", Name: "an unknown XID", AtFault: server, Broken: func(_ *wire, c *conn) { rpc(nil, c); c.Server.Reply(synth.Reply{XID: 0x999}) }, Healthy: rpc},
	{
		Rule: "reply-without-call", Name: "a second Reply", AtFault: server, Broken: func(_ *wire, c *conn) {
			c.RPC(synth.Call{XID: 5}, synth.NullReply())
			c.Server.Reply(synth.Reply{XID: 5})
		},
		Healthy: func(_ *wire, c *conn) { // the connection ended before the Reply
			rpc(nil, c)
			c.Client.Call(synth.Call{XID: 5})
			c.Disconnect(c.Client)
		},
	},
	{
		Rule: "reply-without-call", Name: "an RDMA_ERROR that cannot be decoded does not end the RPC", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			c.RPC(synth.Call{XID: 5}, synth.ErrChunk())
			c.Server.Reply(synth.Reply{XID: 5})
		},
		Healthy: func(_ *wire, c *conn) {
			c.Client.Call(synth.Call{XID: 5})
			c.Server.Reply(synth.Reply{XID: 5, Proc: rpcrdma.Error, Err: 7})
			c.Client.Ack()
			c.Server.Reply(synth.Reply{XID: 5})
			c.Client.Ack()
		},
	},
	{
		Rule: "reply-without-call", Name: "a Call of the server of an unknown version is no Reply", AtFault: server,
		Broken:  func(_ *wire, c *conn) { session(c, synth.ConnBackChannel); c.Server.Reply(synth.Reply{XID: 0x999}) },
		Healthy: unknownVersionBack(1),
	},
	{
		Rule: "reply-without-call", Name: "a message that is too short for its lists may be no Reply", AtFault: server,
		Broken:  func(_ *wire, c *conn) { session(c, synth.ConnBackChannel); c.Server.Reply(synth.Reply{XID: 0x999}) },
		Healthy: func(_ *wire, c *conn) { session(c, synth.ConnBackChannel); c.Server.Send(header()[:16]) },
	},
	{
		Rule: "error-wrong-code", Name: "a range with the rejected version of the server's Call", AtFault: client,
		Broken: unknownVersionBack(4), Healthy: unknownVersionBack(1),
	},
	{
		Rule: "reply-without-call", Name: "after a callback that was retransmitted", AtFault: server,
		Broken: func(w *wire, c *conn) { calledBackAgain(w, c); c.Server.Reply(synth.Reply{XID: 0x999}) }, Healthy: calledBackAgain,
	},
	{
		Rule: "credit-limit-exceeded", Name: "after a callback that was retransmitted", AtFault: client,
		Broken: func(w *wire, c *conn) { calledBackAgain(w, c); many(c, 10, 8) }, Healthy: func(w *wire, c *conn) { calledBackAgain(w, c); many(c, 8, 8) },
	},
	{
		Rule: "xid-in-use", Name: "twice at once", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			granted(c, 32, 32)
			c.Client.Call(synth.Call{XID: 5})
			c.Client.Call(synth.Call{XID: 5})
			c.Server.Ack()
		},
		Healthy: func(_ *wire, c *conn) {
			c.RPC(synth.Call{XID: 5}, synth.NullReply())
			c.RPC(synth.Call{XID: 5}, synth.NullReply())
		},
	},
}

// calledBackAgain lets the server call the client, send the same Call again after a minute, and get a
// Reply to each.
func calledBackAgain(w *wire, c *conn) {
	session(c, synth.ConnBackChannel)
	call, reply := recall, recallReply
	call.XID, reply.XID = 0x99, 0x99
	c.Server.Call(call)
	c.Client.Ack()
	w.Advance(time.Minute)
	c.Server.Call(call)
	c.Client.Ack()
	c.Client.Reply(reply)
	c.Server.Ack()
	c.Client.Reply(reply)
	c.Server.Ack()
	rpc(w, c)
}

// session creates a session on a connection, with the flags that the server grants.
func session(c *conn, flags uint32) {
	c.RPC(synth.Compound(synth.OpCreateSession(synth.ConnBackChannel)), synth.CompoundReply(synth.ResCreateSession(flags)))
}

// back sends a healthy session, and then an exchange that the server starts.
func back(call synth.Call, reply synth.Reply) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		session(c, synth.ConnBackChannel)
		c.Server.RPC(call, reply)
	}
}

// backWithout returns a function in which the server sends a Call with chunks, and the Reply has none, as it must not.
func backWithout(call synth.Call) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		session(c, synth.ConnBackChannel)
		c.Server.Call(call)
		c.Client.Ack()
		c.Client.Reply(recallReply)
		c.Server.Ack()
	}
}

var (
	recall      = synth.CBCompound(synth.OpCBSequence(1), synth.OpCBRecall())
	recallReply = synth.CompoundReply(synth.ResCBSequence(1), synth.ResCBRecall())
)

var (
	destroy      = synth.Compound(synth.OpDestroySession())
	destroyReply = synth.CompoundReply(synth.ResDestroySession())
)

// destroyed returns a function in which the client destroys its session, in a COMPOUND with other operations before, and the server sends a Call.
func destroyed(call synth.Call, before ...synth.XDR) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		session(c, synth.ConnBackChannel)
		results := []synth.XDR{synth.ResDestroySession()}
		if len(before) > 0 {
			results = []synth.XDR{synth.ResSequence(1), synth.ResDestroySession()}
		}
		c.RPC(synth.Compound(append(before, synth.OpDestroySession())...), synth.CompoundReply(results...))
		c.Server.RPC(call, recallReply)
	}
}

// busySession refuses to destroy a session that has callbacks in flight (NFS4ERR_BACK_CHAN_BUSY), and sends another.
func busySession(_ *wire, c *conn) {
	session(c, synth.ConnBackChannel)
	c.RPC(destroy, synth.CompoundFailed(10057, synth.ResFailed(44, 10057)))
	c.Server.RPC(recall, recallReply)
}

// version2Call returns a Call of the version that the remote invalidation draft defines.
func version2Call(call synth.Call) synth.Call {
	call.Vers = 2
	return call
}

var backward = []Case{
	{Rule: "backward-with-chunks", Name: "a Call", AtFault: server, Broken: back(recall.Offer(mem), recallReply), Healthy: back(recall, recallReply)},
	{
		Rule: "backward-with-chunks", Name: "a Reply", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			session(c, synth.ConnBackChannel)
			c.Server.Call(recall)
			r := recallReply
			r.ReplyChunk = synth.Chunk(mem)
			c.Client.Reply(r)
		}, Healthy: back(recall, recallReply),
	},
	{
		Rule: "backward-with-chunks", Name: "a Call, but of version 1", AtFault: server,
		Broken: back(recall.Offer(mem), recallReply), Healthy: back(version2Call(recall.Offer(mem)), recallReply),
	},
	{
		Rule: "backward-not-msg", Name: "a Long Call, but of version 1", AtFault: server,
		Broken: back(recall.Long(0xa1), recallReply), Healthy: back(version2Call(recall.Long(0xa1)), recallReply),
	},
	{Rule: "backward-not-msg", Name: "a Long Call", AtFault: server, Broken: back(recall.Long(0xa1), recallReply), Healthy: back(recall, recallReply)},
	{Rule: "backward-not-msg", Name: "a Long Reply", AtFault: client, Broken: back(recall.OfferReply(mem), recallReply.Long()), Healthy: back(recall, recallReply)},
	{
		Rule: "backward-unexpected", Name: "on a bare connection", AtFault: server,
		Broken: func(_ *wire, c *conn) { rpc(nil, c); c.Server.RPC(synth.CBNull(), synth.NullReply()) }, Healthy: back(synth.CBNull(), synth.NullReply()),
	},
	{
		Rule: "backward-unexpected", Name: "next to another program", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			c.Server.RPC(synth.CBNull(), synth.NullReply())
		},
		Healthy: func(_ *wire, c *conn) {
			c.RPC(opened(0x20001234, 1, 1, synth.XDR{}), synth.NullReply())
			c.Server.RPC(synth.CBNull(), synth.NullReply())
		},
	},
	{
		Rule: "backward-unexpected", Name: "of the callback program", AtFault: server,
		Broken: func(_ *wire, c *conn) { rpc(nil, c); c.Server.RPC(synth.CBNull(), synth.NullReply()) },
		Healthy: func(_ *wire, c *conn) {
			rpc(nil, c)
			c.Server.RPC(opened(0x20001235, 1, 0, synth.XDR{}), synth.NullReply())
		},
	},
	{
		Rule: "backward-unexpected", Name: "the server granted no backchannel", AtFault: server,
		Broken: func(_ *wire, c *conn) { session(c, 0); c.Server.RPC(synth.CBNull(), synth.NullReply()) },
		Healthy: func(_ *wire, c *conn) {
			c.RPC(synth.Compound(synth.OpBindConn(3)), synth.CompoundReply(synth.ResBindConn(3)))
			c.Server.RPC(synth.CBNull(), synth.NullReply())
		},
	},
	{Rule: "backward-unexpected", Name: "of a session that was destroyed", AtFault: server, Broken: destroyed(recall), Healthy: back(recall, recallReply)},
	{
		Rule: "backward-unexpected", Name: "of a session that was destroyed, in a COMPOUND of it", AtFault: server,
		Broken: destroyed(recall, synth.OpSequence(1)), Healthy: destroyed(synth.CBNull(), synth.OpSequence(1)),
	},
	{Rule: "backward-unexpected", Name: "of a session that was destroyed, and no other", AtFault: server, Broken: destroyed(recall), Healthy: busySession},
	{
		Rule: "backward-unexpected", Name: "after DESTROY_SESSION was answered", AtFault: server, Broken: destroyed(recall),
		Healthy: func(_ *wire, c *conn) { // the session is destroyed when its Reply is sent
			session(c, synth.ConnBackChannel)
			c.Client.Call(destroy)
			c.Server.RPC(recall, recallReply)
			c.Server.Reply(destroyReply.To(destroy))
			c.Client.Ack()
		},
	},
	{
		Rule: "backward-unexpected", Name: "of a session that was destroyed and not created again", AtFault: server, Broken: destroyed(recall),
		Healthy: func(_ *wire, c *conn) {
			session(c, synth.ConnBackChannel)
			c.RPC(destroy, destroyReply)
			session(c, synth.ConnBackChannel)
			c.Server.RPC(recall, recallReply)
		},
	},
	{Rule: "short-message-dropped", Name: "four words", AtFault: client, Broken: shortBack(12, rpc), Healthy: shortBack(12, disconnects)},
	{Rule: "short-message-dropped", Name: "no RPC message", AtFault: client, Broken: shortBack(28, rpc), Healthy: shortBack(28, disconnects)},
	{Rule: "short-message-dropped", Name: "half of the RPC message", AtFault: client, Broken: shortBack(60, waits(2*time.Second)), Healthy: shortBack(60, waits(time.Millisecond))},
	{Rule: "short-message-dropped", Name: "no byte at all", AtFault: client, Broken: shortBack(0, func(w *wire, c *conn) { rpc(w, c); rpc(w, c) }), Healthy: shortBack(68, rpc)},
	{
		Rule: "short-message-dropped", Name: "a Reply", AtFault: server,
		Broken: shortReply(rpc), Healthy: shortReply(func(_ *wire, c *conn) { c.Disconnect(c.Server) }),
	},
	{
		Rule: "backward-unexpected", Name: "a BIND_CONN_TO_SESSION for the fore channel", AtFault: server,
		Broken: func(_ *wire, c *conn) { bound(c, 1, synth.CompoundReply(synth.ResBindConn(1))) }, Healthy: func(_ *wire, c *conn) { bound(c, 7, synth.CompoundReply(synth.ResBindConn(2))) },
	},
	{
		Rule: "backward-unexpected", Name: "a BIND_CONN_TO_SESSION that failed", AtFault: server,
		Broken: func(_ *wire, c *conn) { bound(c, 3, synth.CompoundFailed(10052, synth.ResFailed(41, 10052))) }, Healthy: func(_ *wire, c *conn) { bound(c, 3, synth.CompoundReply(synth.ResBindConn(3))) },
	},
	{
		Rule: "backward-unexpected", Name: "during a second BIND_CONN_TO_SESSION", AtFault: server,
		Broken:  boundTwice(synth.CompoundFailed(10052, synth.ResFailed(41, 10052))),
		Healthy: boundTwice(synth.CompoundReply(synth.ResBindConn(3))),
	},
	{
		Rule: "backward-unexpected", Name: "during a CREATE_SESSION that grants no backchannel", AtFault: server,
		Broken: func(_ *wire, c *conn) { early(c, 0) }, Healthy: func(_ *wire, c *conn) { early(c, synth.ConnBackChannel) },
	},
}

// bound binds the connection to a session, and then the server calls the client.
func bound(c *conn, direction uint32, reply synth.Reply) {
	c.RPC(synth.Compound(synth.OpBindConn(direction)), reply)
	c.Server.RPC(synth.CBNull(), synth.NullReply())
	rpc(nil, c)
}

// boundTwice binds the connection to two sessions at once. The server refuses the first, and answers the
// second after it has called the client.
func boundTwice(second synth.Reply) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		rpc(nil, c)
		for xid := uint32(70); xid < 72; xid++ {
			call := synth.Compound(synth.OpBindConn(3))
			call.XID = xid
			c.Client.Call(call)
		}
		c.Server.Ack()
		refused := synth.CompoundFailed(10052, synth.ResFailed(41, 10052))
		refused.XID, second.XID = 70, 71
		c.Server.Reply(refused)
		c.Client.Ack()
		c.Server.RPC(synth.Call{XID: 0x99, Program: recall.Program, Version: 1}, synth.NullReply())
		c.Server.Reply(second)
		c.Client.Ack()
		rpc(nil, c)
	}
}

// shortBack returns a function in which the server sends the first n bytes of a Call after it was
// granted a backchannel, and the client does something after it has acknowledged them.
func shortBack(n int, after func(w *wire, c *conn)) func(*wire, *conn) {
	return func(w *wire, c *conn) {
		session(c, synth.ConnBackChannel)
		call := synth.CBNull()
		call.XID = 0x99
		c.Server.Send(call.Bytes()[:n])
		c.Client.Ack()
		after(w, c)
	}
}

// shortReply returns a function in which the client sends only a part of its Reply to a Call of the
// server, and another thing happens after that.
func shortReply(after func(w *wire, c *conn)) func(*wire, *conn) {
	return func(w *wire, c *conn) {
		session(c, synth.ConnBackChannel)
		call, reply := synth.CBNull(), synth.NullReply()
		call.XID, reply.XID = 0x99, 0x99
		c.Server.Call(call)
		c.Client.Ack()
		c.Client.Send(reply.Bytes()[:40])
		c.Server.Ack()
		after(w, c)
	}
}

func disconnects(_ *wire, c *conn) { c.Disconnect(c.Client) }

// waits lets the server disconnect, after a while.
func waits(d time.Duration) func(*wire, *conn) {
	return func(w *wire, c *conn) {
		w.Advance(d)
		c.Disconnect(c.Server)
	}
}

// early sends a Call of the server before its Reply to CREATE_SESSION.
func early(c *conn, flags uint32) {
	call := synth.Compound(synth.OpCreateSession(synth.ConnBackChannel))
	call.XID = 70
	c.Client.Call(call)
	back := synth.CBNull()
	back.XID = 71
	c.Server.RPC(back, synth.NullReply())
	reply := synth.CompoundReply(synth.ResCreateSession(flags))
	reply.XID = 70
	c.Server.Reply(reply)
	c.Client.Ack()
}

// draft returns a READ of version 2 with an rdma_inv_handle.
func draft(handle uint32) synth.Call {
	call := read()
	call.Vers, call.InvHandle = 2, handle
	return call
}

var version2 = []Case{
	{Rule: "inv-handle-unknown", Name: "an unknown handle", AtFault: client, Broken: does(draft(0xb7), readReply()), Healthy: does(draft(0xa1), readReply().Invalidating(0xa1))},
	{Rule: "inv-handle-not-copied", Name: "0", AtFault: server, Broken: whole(draft(0xa1), readReply().Invalidating(0xa1), func(r *synth.Reply) { r.InvHandle = 0 }), Healthy: does(draft(0xa1), readReply().Invalidating(0xa1))},
	{Rule: "inv-handle-not-honored", Name: "although the Call allows none", AtFault: server, Broken: does(draft(0), readReply().Invalidating(0xa1)), Healthy: does(draft(0), readReply())},
	{Rule: "inv-handle-not-honored", Name: "another", AtFault: server, Broken: does(draft(0xa1).OfferReply(mem2), readReply().Invalidating(0xa2)), Healthy: does(draft(0xa1).OfferReply(mem2), readReply().Invalidating(0xa1))},
	{Rule: "inv-handle-not-honored", Name: "a plain Send", AtFault: server, Severity: "warning", Broken: does(draft(0xa1), readReply()), Healthy: does(draft(0xa1), readReply().Invalidating(0xa1))},
}
