package cases

import (
	"time"

	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/synth"
)

// Rules about answers (RFC 8166 s.4.5), the backward direction, and version 2.

// unrefused sends a broken Call that the server does not answer with RDMA_ERROR, although the
// connection stays in use. refused sends one that the server answers with by.
func unrefused(call synth.Call) script {
	return func(c *conn) {
		rpc(c)
		c.Client.Call(call)
		c.Server.Ack()
		rpc(c)
	}
}

func refused(call synth.Call, by synth.Reply) script {
	return func(c *conn) {
		rpc(c)
		call.XID = 77
		c.Client.Call(call)
		c.Server.Reply(by)
		c.Client.Ack()
		rpc(c)
	}
}

// refusal returns an RDMA_ERROR whose header repeats the rejected version 3, and that gives the
// supported versions.
func refusal(low, high uint32) synth.Reply {
	return synth.Reply{Vers: 3, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: low, High: high}
}

// refusesUsed lets the server answer a Call of version 2, and then refuse a Call.
func refusesUsed(call synth.Call, by synth.Reply) script {
	return func(c *conn) {
		c.RPC(synth.Call{Vers: 2}, synth.NullReply())
		refused(call, by)(c)
	}
}

// unknownVersionBack returns a function in which the server sends a Call of version 3, and
// the client rejects it with an ERR_VERS that lists the versions 1 to high.
func unknownVersionBack(high uint32) script {
	return func(c *conn) {
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
func rejectsReply(reply, by synth.Reply) script {
	return func(c *conn) {
		rpc(c)
		exchange(c, synth.Call{XID: 77}, reply)
		by.XID = 77
		c.Client.Reply(by)
		c.Server.Ack()
		rpc(c)
	}
}

// backInstead returns a function in which the server sends a Call with another rdma_proc than RDMA_MSG, and the client
// answers with by, or not at all if by has no procedure.
func backInstead(proc rpcrdma.Proc, by synth.Reply) script {
	return func(c *conn) {
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
		c.Wire.Advance(2 * time.Second)
		rpc(c)
	}
}

var answers = []Case{
	neither("rdma-error", "a chunk", does(synth.Null(), synth.ErrChunk()), rpc),
	neither("rdma-error", "a version, and no fallback",
		func(c *conn) {
			rpc(c)
			c.Client.Call(synth.Call{XID: 0x70, Vers: 3})
			c.Server.Reply(refusal(1, 1).To(synth.Call{XID: 0x70}))
			c.Client.Ack()
		},
		probes(3, 1)).as("error"),
	neither("rdma-error", "a version, and the fallback", refused(synth.Call{Vers: 3}, refusal(1, 1)), rpc).as("note"),
	neither("rdma-error", "a version although the sender was told", probes(3, 3, 1), probes(3, 1)).as("error"),
	neither("rdma-error", "a version that is listed", refused(synth.Call{Vers: 3}, refusal(1, 3)), probes(3, 1)).as("error"),
	neither("rdma-error", "from a requester, about a Reply",
		func(c *conn) {
			c.RPC(synth.Call{XID: 9}, synth.NullReply())
			r := synth.ErrChunk()
			r.XID = 9
			c.Client.Reply(r)
		},
		rpc),

	server("error-not-answered", "another version", unrefused(synth.Call{Vers: 3}), refused(synth.Call{Vers: 3}, refusal(1, 1))),
	server("error-not-answered", "version 0",
		unrefused(synth.Call{Vers: synth.Zero}),
		refused(synth.Call{Vers: synth.Zero}, synth.Reply{Vers: synth.Zero, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: 1, High: 1})),
	server("error-not-answered", "version 0, answered with a Reply", refused(synth.Call{Vers: synth.Zero}, synth.Reply{Vers: 1}), rpc),
	server("error-not-answered", "an RDMA_NOMSG without chunks",
		unrefused(synth.Call{Proc: rpcrdma.NoMsg}), refused(synth.Call{Proc: rpcrdma.NoMsg}, synth.ErrChunk())),
	server("error-not-answered", "another procedure", unrefused(synth.Call{Proc: 99}), refused(synth.Call{Proc: 99}, synth.ErrChunk())),
	server("error-not-answered", "a truncated list",
		func(c *conn) { rpc(c); c.Client.Send(read().Bytes()[:40]); c.Server.Ack(); rpc(c) },
		refused(synth.Call{Proc: 99}, synth.ErrChunk())),
	server("error-not-answered", "while the client waits",
		func(c *conn) {
			rpc(c)
			c.Client.Call(synth.Call{Vers: 3})
			c.Server.Ack()
			c.Wire.Advance(3 * time.Second)
			c.Disconnect(c.Client)
		},
		func(c *conn) { // the server may close the connection instead of answering
			rpc(c)
			c.Client.Call(synth.Call{Vers: 3})
			c.Server.Ack()
			c.Wire.Advance(3 * time.Second)
			c.Disconnect(c.Server)
		}),
	server("error-not-answered", "answered with a Reply", refused(synth.Call{Vers: 3}, synth.Reply{}), rpc),
	server("error-not-answered", "the XID of another RPC",
		unrefused(synth.Call{XID: 0x70, RPCXID: 0x71}), refused(synth.Call{RPCXID: 0x71}, synth.ErrChunk())),
	server("error-not-answered", "the XID of another RPC, although the responder may go by rdma_xid",
		unrefused(synth.Call{XID: 0x70, RPCXID: 0x71}), refused(synth.Call{RPCXID: 0x71}, synth.Reply{})),
	server("error-not-answered", "the XID of another RPC, and the connection is closed",
		unrefused(synth.Call{XID: 0x70, RPCXID: 0x71}),
		func(c *conn) {
			rpc(c)
			c.Client.Call(synth.Call{XID: 0x70, RPCXID: 0x71})
			c.Server.Ack()
			c.Disconnect(c.Server)
		}),
	server("error-not-answered", "a version that both sides use", versionThree(1), versionThree(3)),
	server("error-not-answered", "an RDMA_MSGP",
		unrefused(synth.Call{Proc: rpcrdma.MsgP}), refused(synth.Call{Proc: rpcrdma.MsgP}, synth.ErrChunk())).as("warning"),
	client("error-not-answered", "an unknown procedure of the server's Call",
		backInstead(99, synth.Reply{}), backInstead(99, synth.ErrChunk())),
	client("error-not-answered", "an RDMA_MSGP of the server",
		backInstead(rpcrdma.MsgP, synth.Reply{}), backInstead(rpcrdma.MsgP, synth.ErrChunk())).as("warning"),
	server("reply-without-call", "an RDMA_DONE of the server is no Reply",
		func(c *conn) { rpc(c); c.Server.Reply(synth.Reply{XID: 0x999}) },
		func(c *conn) { rpc(c); c.Server.Reply(synth.Reply{XID: 0x999, Proc: rpcrdma.Done}) }),
	server("reply-without-call", "an unknown procedure of the server is no Reply",
		func(c *conn) { rpc(c); c.Server.Reply(synth.Reply{XID: 0x999}) }, backInstead(99, synth.Reply{})),
	server("error-not-answered", "an RDMA_DONE",
		unrefused(synth.Call{XID: 1, Proc: rpcrdma.Done}), refused(synth.Call{Proc: rpcrdma.Done}, synth.ErrChunk())).as("warning"),
	server("error-wrong-code", "ERR_CHUNK for a version",
		refused(synth.Call{Vers: 3}, synth.Reply{Vers: 3, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}),
		refused(synth.Call{Vers: 3}, refusal(1, 2))),
	server("error-wrong-code", "ERR_CHUNK for a version that the server does not use",
		refused(synth.Call{Vers: 2, Proc: 9}, synth.Reply{Vers: 2, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}),
		refusesUsed(synth.Call{Vers: 2, Proc: 9}, synth.Reply{Vers: 2, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk})),
	server("error-wrong-code", "ERR_VERS for a version that the server uses",
		refusesUsed(synth.Call{Vers: 2}, synth.Reply{Vers: 2, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: 1, High: 1}),
		refused(synth.Call{Vers: 2}, synth.Reply{Vers: 2, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: 1, High: 1})),
	server("error-wrong-code", "a range without version 2, which the server uses",
		refusesUsed(synth.Call{Vers: 3}, refusal(1, 1)), refusesUsed(synth.Call{Vers: 3}, refusal(1, 2))),
	server("error-wrong-code", "a range without version 2, which the server uses later",
		func(c *conn) {
			refused(synth.Call{Vers: 3}, refusal(1, 1))(c)
			c.RPC(synth.Call{Vers: 2}, synth.NullReply())
		},
		func(c *conn) {
			refused(synth.Call{Vers: 3}, refusal(1, 2))(c)
			c.RPC(synth.Call{Vers: 2}, synth.NullReply())
		}),
	server("error-wrong-code", "ERR_VERS for a chunk",
		refused(synth.Call{Proc: 99}, synth.ErrVers(1, 1)), refused(synth.Call{Proc: 99}, synth.ErrChunk())),
	server("error-wrong-code", "a range with the refused version",
		refused(synth.Call{Vers: 3}, refusal(1, 4)), refused(synth.Call{Vers: 3}, refusal(1, 2))),
	server("error-wrong-code", "a range without the version that the server uses",
		refused(synth.Call{Vers: 3}, refusal(4, 9)), refused(synth.Call{Vers: 3}, refusal(1, 1))),
	server("error-wrong-code", "a range of version 0 only",
		refused(synth.Call{Vers: 3}, refusal(0, 0)), refused(synth.Call{Vers: 3}, refusal(1, 1))),
	server("error-wrong-code", "a range without the version that the server uses later",
		func(c *conn) {
			exchange(c, synth.Call{XID: 77, Proc: rpcrdma.MsgP}, synth.ErrVers(2, 2))
			rpc(c)
		},
		func(c *conn) {
			exchange(c, synth.Call{XID: 77, Proc: rpcrdma.MsgP}, synth.ErrVers(2, 2))
			disconnects(c)
		}),
	client("error-wrong-code", "ERR_CHUNK for the version of a Reply",
		rejectsReply(synth.Reply{Vers: 5}, synth.Reply{Vers: 5, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}),
		rejectsReply(synth.Reply{Vers: 5}, synth.Reply{Vers: 5, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: 1, High: 1})),
	client("error-wrong-code", "ERR_VERS for a Reply of version 1",
		rejectsReply(synth.Reply{Proc: 99}, synth.ErrVers(2, 2)), rejectsReply(synth.Reply{Proc: 99}, synth.ErrChunk())),
	client("error-wrong-version", "1 for a Reply of version 5",
		rejectsReply(synth.Reply{Vers: 5}, synth.ErrVers(1, 1)),
		rejectsReply(synth.Reply{Vers: 5}, synth.Reply{Vers: 5, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: 1, High: 1})),
	server("error-wrong-version", "3 for a Call with an unknown procedure",
		refused(synth.Call{Proc: 99}, synth.Reply{Vers: 3, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}),
		refused(synth.Call{Proc: 99}, synth.ErrChunk())),
	server("error-unknown-xid", "an unknown XID, while a Call has to be rejected",
		refused(synth.Call{Proc: 99}, synth.Reply{XID: 78, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}),
		refused(synth.Call{Proc: 99}, synth.ErrChunk())),
	server("error-wrong-code", "low above high",
		refused(synth.Call{Vers: 3}, refusal(2, 1)), refused(synth.Call{Vers: 3}, refusal(1, 1))),
	server("error-wrong-version", "1 for 3",
		refused(synth.Call{Vers: 3}, synth.ErrVers(1, 1)), refused(synth.Call{Vers: 3}, refusal(1, 1))),
	server("error-unknown-xid", "an unknown XID",
		func(c *conn) { rpc(c); r := synth.ErrChunk(); r.XID = 0x999; c.Server.Reply(r) },
		refused(synth.Call{Proc: rpcrdma.Done}, synth.ErrChunk())),
	client("error-answered", "back and forth",
		func(c *conn) {
			c.RPC(synth.Call{XID: 9}, synth.ErrChunk())
			r := synth.ErrChunk()
			r.XID = 9
			c.Client.Reply(r)
		},
		does(synth.Null(), synth.ErrChunk())),
	server("call-not-answered", "31 s",
		func(c *conn) {
			rpc(c)
			c.Client.Call(synth.Call{XID: 500})
			c.Server.Ack()
			c.Wire.Advance(31 * time.Second)
			rpc(c)
		},
		func(c *conn) {
			rpc(c)
			c.Client.Call(synth.Call{XID: 500})
			c.Server.Ack()
			c.Wire.Advance(29 * time.Second)
			rpc(c)
		}),
	neither("call-not-answered", "31 s, RPCSEC_GSS",
		func(c *conn) {
			rpc(c)
			c.Client.Call(synth.Call{XID: 500, Cred: synth.GSS(1, 1)})
			c.Server.Ack()
			c.Wire.Advance(31 * time.Second)
			rpc(c)
		},
		rpc), // the server may have discarded it
	neither("rpc-rejected", "with a chunk", does(write(), synth.Reply{Accept: 4}), does(write(), writeReply())),
	neither("rpc-rejected", "an unknown program",
		does(synth.Getattr3(), synth.Reply{Accept: 1}), does(synth.Null(), synth.Reply{Accept: 1})), // a NULL Call asks for that
	// A NULL Call whose procedure was not captured asks for that, too.
	neither("rpc-rejected", "an unknown version, in a truncated capture",
		does(synth.Getattr3(), synth.Reply{Accept: 2, Results: synth.XDR{}.Word(2, 4)}),
		func(c *conn) {
			for _, f := range c.RPC(synth.Null(), synth.Reply{Accept: 2, Results: synth.XDR{}.Word(2, 4)})[:1] {
				f.Truncate(14 + 20 + 8 + 12 + 28 + 20)
			}
		}).on(RoCE),
	neither("rpc-rejected", "an unknown version",
		does(synth.Getattr3(), synth.Reply{Accept: 2, Results: synth.XDR{}.Word(2, 4)}),
		does(synth.Null(), synth.Reply{Accept: 2, Results: synth.XDR{}.Word(2, 4)})),
	server("rpc-rejected", "GARBAGE_ARGS in a Long Reply", does(listing, synth.Reply{Accept: 4}.Long()), does(listing, listingReply)),
	neither("rpc-rejected", "denied", does(synth.Null(), synth.Reply{Deny: []uint32{1, 1}}), rpc),
	server("reply-without-call", "an unknown XID", func(c *conn) { rpc(c); c.Server.Reply(synth.Reply{XID: 0x999}) }, rpc),
	server("reply-without-call", "a second Reply",
		func(c *conn) {
			c.RPC(synth.Call{XID: 5}, synth.NullReply())
			c.Server.Reply(synth.Reply{XID: 5})
		},
		func(c *conn) { // the connection ended before the Reply
			rpc(c)
			c.Client.Call(synth.Call{XID: 5})
			c.Disconnect(c.Client)
		}),
	server("reply-without-call", "an RDMA_ERROR that cannot be decoded does not end the RPC",
		func(c *conn) {
			c.RPC(synth.Call{XID: 5}, synth.ErrChunk())
			c.Server.Reply(synth.Reply{XID: 5})
		},
		func(c *conn) {
			c.Client.Call(synth.Call{XID: 5})
			c.Server.Reply(synth.Reply{XID: 5, Proc: rpcrdma.Error, Err: 7})
			c.Client.Ack()
			c.Server.Reply(synth.Reply{XID: 5})
			c.Client.Ack()
		}),
	server("reply-without-call", "a Call of the server of an unknown version is no Reply",
		func(c *conn) { session(c, synth.ConnBackChannel); c.Server.Reply(synth.Reply{XID: 0x999}) }, unknownVersionBack(1)),
	server("reply-without-call", "a message that is too short for its lists may be no Reply",
		func(c *conn) { session(c, synth.ConnBackChannel); c.Server.Reply(synth.Reply{XID: 0x999}) },
		func(c *conn) { session(c, synth.ConnBackChannel); c.Server.Send(header()[:16]) }),
	client("error-wrong-code", "a range with the rejected version of the server's Call", unknownVersionBack(4), unknownVersionBack(1)),
	server("reply-without-call", "after a callback that was retransmitted",
		func(c *conn) { calledBackAgain(c); c.Server.Reply(synth.Reply{XID: 0x999}) }, calledBackAgain),
	client("credit-limit-exceeded", "after a callback that was retransmitted",
		func(c *conn) { calledBackAgain(c); many(c, 10, 8) }, func(c *conn) { calledBackAgain(c); many(c, 8, 8) }),
	client("xid-in-use", "twice at once",
		func(c *conn) {
			granted(c, 32, 32)
			c.Client.Call(synth.Call{XID: 5})
			c.Client.Call(synth.Call{XID: 5})
			c.Server.Ack()
		},
		func(c *conn) {
			c.RPC(synth.Call{XID: 5}, synth.NullReply())
			c.RPC(synth.Call{XID: 5}, synth.NullReply())
		}),
}

// calledBackAgain lets the server call the client, send the same Call again after a minute, and get a
// Reply to each.
func calledBackAgain(c *conn) {
	session(c, synth.ConnBackChannel)
	call, reply := recall, recallReply
	call.XID, reply.XID = 0x99, 0x99
	c.Server.Call(call)
	c.Client.Ack()
	c.Wire.Advance(time.Minute)
	c.Server.Call(call)
	c.Client.Ack()
	c.Client.Reply(reply)
	c.Server.Ack()
	c.Client.Reply(reply)
	c.Server.Ack()
	rpc(c)
}

// session creates a session on a connection, with the flags that the server grants.
func session(c *conn, flags uint32) {
	c.RPC(synth.Compound(synth.OpCreateSession(synth.ConnBackChannel)), synth.CompoundReply(synth.ResCreateSession(flags)))
}

// back sends a healthy session, and then an exchange that the server starts.
func back(call synth.Call, reply synth.Reply) script {
	return func(c *conn) {
		session(c, synth.ConnBackChannel)
		c.Server.RPC(call, reply)
	}
}

// backWithout returns a function in which the server sends a Call with chunks, and the Reply has none, as it must not.
func backWithout(call synth.Call) script {
	return func(c *conn) {
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
func destroyed(call synth.Call, before ...synth.XDR) script {
	return func(c *conn) {
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
func busySession(c *conn) {
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
	server("backward-with-chunks", "a Call", back(recall.Offer(mem), recallReply), back(recall, recallReply)),
	client("backward-with-chunks", "a Reply",
		func(c *conn) {
			session(c, synth.ConnBackChannel)
			c.Server.Call(recall)
			r := recallReply
			r.ReplyChunk = synth.Chunk(mem)
			c.Client.Reply(r)
		},
		back(recall, recallReply)),
	server("backward-with-chunks", "a Call, but of version 1",
		back(recall.Offer(mem), recallReply), back(version2Call(recall.Offer(mem)), recallReply)),
	server("backward-not-msg", "a Long Call, but of version 1",
		back(recall.Long(0xa1), recallReply), back(version2Call(recall.Long(0xa1)), recallReply)),
	server("backward-not-msg", "a Long Call", back(recall.Long(0xa1), recallReply), back(recall, recallReply)),
	client("backward-not-msg", "a Long Reply", back(recall.OfferReply(mem), recallReply.Long()), back(recall, recallReply)),
	server("backward-unexpected", "on a bare connection",
		func(c *conn) { rpc(c); c.Server.RPC(synth.CBNull(), synth.NullReply()) }, back(synth.CBNull(), synth.NullReply())),
	server("backward-unexpected", "next to another program",
		func(c *conn) {
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			c.Server.RPC(synth.CBNull(), synth.NullReply())
		},
		func(c *conn) {
			c.RPC(opened(0x20001234, 1, 1, synth.XDR{}), synth.NullReply())
			c.Server.RPC(synth.CBNull(), synth.NullReply())
		}),
	server("backward-unexpected", "of the callback program",
		func(c *conn) { rpc(c); c.Server.RPC(synth.CBNull(), synth.NullReply()) },
		func(c *conn) {
			rpc(c)
			c.Server.RPC(opened(0x20001235, 1, 0, synth.XDR{}), synth.NullReply())
		}),
	server("backward-unexpected", "the server granted no backchannel",
		func(c *conn) { session(c, 0); c.Server.RPC(synth.CBNull(), synth.NullReply()) },
		func(c *conn) {
			c.RPC(synth.Compound(synth.OpBindConn(3)), synth.CompoundReply(synth.ResBindConn(3)))
			c.Server.RPC(synth.CBNull(), synth.NullReply())
		}),
	server("backward-unexpected", "of a session that was destroyed", destroyed(recall), back(recall, recallReply)),
	server("backward-unexpected", "of a session that was destroyed, in a COMPOUND of it",
		destroyed(recall, synth.OpSequence(1)), destroyed(synth.CBNull(), synth.OpSequence(1))),
	server("backward-unexpected", "of a session that was destroyed, and no other", destroyed(recall), busySession),
	server("backward-unexpected", "after DESTROY_SESSION was answered",
		destroyed(recall),
		func(c *conn) { // the session is destroyed when its Reply is sent
			session(c, synth.ConnBackChannel)
			c.Client.Call(destroy)
			c.Server.RPC(recall, recallReply)
			c.Server.Reply(destroyReply.To(destroy))
			c.Client.Ack()
		}),
	server("backward-unexpected", "of a session that was destroyed and not created again",
		destroyed(recall),
		func(c *conn) {
			session(c, synth.ConnBackChannel)
			c.RPC(destroy, destroyReply)
			session(c, synth.ConnBackChannel)
			c.Server.RPC(recall, recallReply)
		}),
	client("short-message-dropped", "four words", shortBack(12, rpc), shortBack(12, disconnects)),
	client("short-message-dropped", "no RPC message", shortBack(28, rpc), shortBack(28, disconnects)),
	client("short-message-dropped", "half of the RPC message",
		shortBack(60, waits(2*time.Second)), shortBack(60, waits(time.Millisecond))),
	client("short-message-dropped", "no byte at all", shortBack(0, func(c *conn) { rpc(c); rpc(c) }), shortBack(68, rpc)),
	server("short-message-dropped", "a Reply", shortReply(rpc), shortReply(func(c *conn) { c.Disconnect(c.Server) })),
	server("backward-unexpected", "a BIND_CONN_TO_SESSION for the fore channel",
		func(c *conn) { bound(c, 1, synth.CompoundReply(synth.ResBindConn(1))) },
		func(c *conn) { bound(c, 7, synth.CompoundReply(synth.ResBindConn(2))) }),
	server("backward-unexpected", "a BIND_CONN_TO_SESSION that failed",
		func(c *conn) { bound(c, 3, synth.CompoundFailed(10052, synth.ResFailed(41, 10052))) },
		func(c *conn) { bound(c, 3, synth.CompoundReply(synth.ResBindConn(3))) }),
	server("backward-unexpected", "during a second BIND_CONN_TO_SESSION",
		boundTwice(synth.CompoundFailed(10052, synth.ResFailed(41, 10052))), boundTwice(synth.CompoundReply(synth.ResBindConn(3)))),
	server("backward-unexpected", "during a CREATE_SESSION that grants no backchannel",
		func(c *conn) { early(c, 0) }, func(c *conn) { early(c, synth.ConnBackChannel) }),
}

// bound binds the connection to a session, and then the server calls the client.
func bound(c *conn, direction uint32, reply synth.Reply) {
	c.RPC(synth.Compound(synth.OpBindConn(direction)), reply)
	c.Server.RPC(synth.CBNull(), synth.NullReply())
	rpc(c)
}

// boundTwice binds the connection to two sessions at once. The server refuses the first, and answers the
// second after it has called the client.
func boundTwice(second synth.Reply) script {
	return func(c *conn) {
		rpc(c)
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
		rpc(c)
	}
}

// shortBack returns a function in which the server sends the first n bytes of a Call after it was
// granted a backchannel, and the client does something after it has acknowledged them.
func shortBack(n int, after script) script {
	return func(c *conn) {
		session(c, synth.ConnBackChannel)
		call := synth.CBNull()
		call.XID = 0x99
		c.Server.Send(call.Bytes()[:n])
		c.Client.Ack()
		after(c)
	}
}

// shortReply returns a function in which the client sends only a part of its Reply to a Call of the
// server, and another thing happens after that.
func shortReply(after script) script {
	return func(c *conn) {
		session(c, synth.ConnBackChannel)
		call, reply := synth.CBNull(), synth.NullReply()
		call.XID, reply.XID = 0x99, 0x99
		c.Server.Call(call)
		c.Client.Ack()
		c.Client.Send(reply.Bytes()[:40])
		c.Server.Ack()
		after(c)
	}
}

func disconnects(c *conn) { c.Disconnect(c.Client) }

// waits lets the server disconnect, after a while.
func waits(d time.Duration) script {
	return func(c *conn) {
		c.Wire.Advance(d)
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
	client("inv-handle-unknown", "an unknown handle", does(draft(0xb7), readReply()), does(draft(0xa1), readReply().Invalidating(0xa1))),
	server("inv-handle-not-copied", "0",
		whole(draft(0xa1), readReply().Invalidating(0xa1), func(r *synth.Reply) { r.InvHandle = 0 }),
		does(draft(0xa1), readReply().Invalidating(0xa1))),
	server("inv-handle-not-honored", "although the Call allows none",
		does(draft(0), readReply().Invalidating(0xa1)), does(draft(0), readReply())),
	server("inv-handle-not-honored", "another",
		does(draft(0xa1).OfferReply(mem2), readReply().Invalidating(0xa2)),
		does(draft(0xa1).OfferReply(mem2), readReply().Invalidating(0xa1))),
	server("inv-handle-not-honored", "a plain Send",
		does(draft(0xa1), readReply()), does(draft(0xa1), readReply().Invalidating(0xa1))).as("warning"),
}
