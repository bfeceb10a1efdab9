package cases

import (
	"time"

	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/synth"
)

// Rules about answers (RFC 8166 s.4.5), the backward direction, and version 2.

// unrefused sends a broken Call that the server does not answer with RDMA_ERROR, although the
// connection stays in use. refused sends one that the server answers with by.
func unrefused(call synth.Call) script { return inTurn(rpc, calls(call), rpc) }

func refused(call synth.Call, by synth.Reply) script {
	return func(c *conn) {
		rpc(c)
		call.XID = 77
		c.Client.Call(call)
		answer(c.Server, by)
		rpc(c)
	}
}

// errVers returns an RDMA_ERROR whose header repeats the rejected version, and that gives the supported ones. errChunk
// returns one whose code says nothing about versions.
func errVers(vers, low, high uint32) synth.Reply {
	by := synth.ErrVers(low, high)
	by.Vers = vers
	return by
}

func errChunk(vers uint32) synth.Reply {
	return synth.Reply{Vers: vers, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}
}

var (
	version3 = synth.Call{Vers: 3}
	otherXID = synth.Call{XID: 0x70, RPCXID: 0x71}

	version3Refused = refused(version3, errVers(3, 1, 1))
)

// padRefused is a Call of version 1 that the server refuses, as if it used only version 2.
func padRefused(c *conn) { exchange(c, synth.Call{XID: 77, Proc: rpcrdma.MsgP}, synth.ErrVers(2, 2)) }

// refusesUsed lets the server answer a Call of version 2, and then refuse a Call.
func refusesUsed(call synth.Call, by synth.Reply) script {
	return inTurn(version2RPC, refused(call, by))
}

// unknownVersionBack returns a script in which the server sends a Call of version 3, and
// the client rejects it with an ERR_VERS that lists the versions 1 to high.
func unknownVersionBack(high uint32) script {
	return func(c *conn) {
		backchannel(c)
		call := cb99
		call.Vers = 3
		send(c.Server, call)
		answer(c.Client, errVers(3, 1, high).To(call))
	}
}

// rejectsReply sends an RPC whose Reply the client rejects with by.
func rejectsReply(reply, by synth.Reply) script {
	return func(c *conn) {
		rpc(c)
		exchange(c, synth.Call{XID: 77}, reply)
		by.XID = 77
		answer(c.Client, by)
		rpc(c)
	}
}

// backInstead returns a script in which the server sends a Call with another rdma_proc than RDMA_MSG, and the client
// answers with by, or not at all if by has no procedure.
func backInstead(proc rpcrdma.Proc, by synth.Reply) script {
	return func(c *conn) {
		backchannel(c)
		call := cb99
		call.Proc, by.XID = proc, call.XID
		if proc > rpcrdma.Error { // synth has no layout for it
			call.Tail = call.Message().Inline()
		}
		send(c.Server, call)
		if by.Proc != 0 {
			answer(c.Client, by)
		}
		c.Wire.Advance(2 * time.Second)
		rpc(c)
	}
}

// unasked is a Reply that answers no Call, answersAgain a second one to the Call with XID 5, and clientRefuses an RDMA_ERROR
// of the client about its own Call with XID 9.
func unasked(c *conn) { c.Server.Reply(synth.Reply{XID: 0x999}) }

func answersAgain(c *conn) { c.Server.Reply(reply5) }

func clientRefuses(c *conn) {
	c.Client.Reply(synth.Reply{XID: 9, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk})
}

var answers = []Case{
	neither("rdma-error", "a chunk", does(null, chunkError), rpc),
	neither("rdma-error", "a version, and no fallback",
		func(c *conn) {
			rpc(c)
			c.Client.Call(synth.Call{XID: 0x70, Vers: 3})
			answer(c.Server, errVers(3, 1, 1).To(synth.Call{XID: 0x70}))
		},
		probes(3, 1)).as("error"),
	neither("rdma-error", "a version, and the fallback", version3Refused, rpc).as("note"),
	neither("rdma-error", "a version although the sender was told", probes(3, 3, 1), probes(3, 1)).as("error"),
	neither("rdma-error", "a version that is listed", refused(version3, errVers(3, 1, 3)), probes(3, 1)).as("error"),
	neither("rdma-error", "from a requester, about a Reply", inTurn(does(synth.Call{XID: 9}, nullReply), clientRefuses), rpc),

	server("error-not-answered", "another version", unrefused(version3), version3Refused),
	server("error-not-answered", "version 0",
		unrefused(synth.Call{Vers: synth.Zero}), refused(synth.Call{Vers: synth.Zero}, errVers(synth.Zero, 1, 1))),
	server("error-not-answered", "version 0, answered with a Reply", refused(synth.Call{Vers: synth.Zero}, synth.Reply{Vers: 1}), rpc),
	server("error-not-answered", "an RDMA_NOMSG without chunks", unrefused(noMsg), refused(noMsg, chunkError)),
	server("error-not-answered", "another procedure", unrefused(procedure99), refused(procedure99, chunkError)),
	server("error-not-answered", "a truncated list",
		func(c *conn) { rpc(c); c.Client.Send(read().Bytes()[:40]); c.Server.Ack(); rpc(c) }, refused(procedure99, chunkError)),
	server("error-not-answered", "while the client waits",
		inTurn(rpc, calls(version3), after(3*time.Second), disconnects),
		inTurn(rpc, calls(version3), after(3*time.Second), serverDisconnects)), // which it may do instead of answering
	server("error-not-answered", "answered with a Reply", refused(version3, synth.Reply{}), rpc),
	server("error-not-answered", "the XID of another RPC", unrefused(otherXID), refused(otherXID, chunkError)),
	server("error-not-answered", "the XID of another RPC, although the responder may go by rdma_xid",
		unrefused(otherXID), refused(otherXID, synth.Reply{})),
	server("error-not-answered", "the XID of another RPC, and the connection is closed",
		unrefused(otherXID), inTurn(rpc, calls(otherXID), serverDisconnects)),
	server("error-not-answered", "a version that both sides use", versionThree(1), versionThree(3)),
	server("error-not-answered", "an RDMA_MSGP", unrefused(msgP), refused(msgP, chunkError)).as("warning"),
	client("error-not-answered", "an unknown procedure of the server's Call",
		backInstead(99, synth.Reply{}), backInstead(99, chunkError)),
	client("error-not-answered", "an RDMA_MSGP of the server",
		backInstead(rpcrdma.MsgP, synth.Reply{}), backInstead(rpcrdma.MsgP, chunkError)).as("warning"),
	server("reply-without-call", "an RDMA_DONE of the server is no Reply",
		inTurn(rpc, unasked), func(c *conn) { rpc(c); c.Server.Reply(synth.Reply{XID: 0x999, Proc: rpcrdma.Done}) }),
	server("reply-without-call", "an unknown procedure of the server is no Reply", inTurn(rpc, unasked), backInstead(99, synth.Reply{})),
	server("error-not-answered", "an RDMA_DONE",
		unrefused(synth.Call{XID: 1, Proc: rpcrdma.Done}), refused(done, chunkError)).as("warning"),
	server("error-wrong-code", "ERR_CHUNK for a version", refused(version3, errChunk(3)), refused(version3, errVers(3, 1, 2))),
	server("error-wrong-code", "ERR_CHUNK for a version that the server does not use",
		refused(synth.Call{Vers: 2, Proc: 9}, errChunk(2)), refusesUsed(synth.Call{Vers: 2, Proc: 9}, errChunk(2))),
	server("error-wrong-code", "ERR_VERS for a version that the server uses",
		refusesUsed(asVersion2, errVers(2, 1, 1)), refused(asVersion2, errVers(2, 1, 1))),
	server("error-wrong-code", "a range without version 2, which the server uses",
		refusesUsed(version3, errVers(3, 1, 1)), refusesUsed(version3, errVers(3, 1, 2))),
	server("error-wrong-code", "a range without version 2, which the server uses later",
		inTurn(version3Refused, version2RPC), inTurn(refused(version3, errVers(3, 1, 2)), version2RPC)),
	server("error-wrong-code", "ERR_VERS for a chunk", refused(procedure99, synth.ErrVers(1, 1)), refused(procedure99, chunkError)),
	server("error-wrong-code", "a range with the refused version",
		refused(version3, errVers(3, 1, 4)), refused(version3, errVers(3, 1, 2))),
	server("error-wrong-code", "a range without the version that the server uses", refused(version3, errVers(3, 4, 9)), version3Refused),
	server("error-wrong-code", "a range of version 0 only", refused(version3, errVers(3, 0, 0)), version3Refused),
	server("error-wrong-code", "a range without the version that the server uses later",
		inTurn(padRefused, rpc), inTurn(padRefused, disconnects)),
	client("error-wrong-code", "ERR_CHUNK for the version of a Reply",
		rejectsReply(synth.Reply{Vers: 5}, errChunk(5)), rejectsReply(synth.Reply{Vers: 5}, errVers(5, 1, 1))),
	client("error-wrong-code", "ERR_VERS for a Reply of version 1",
		rejectsReply(synth.Reply{Proc: 99}, synth.ErrVers(2, 2)), rejectsReply(synth.Reply{Proc: 99}, chunkError)),
	client("error-wrong-version", "1 for a Reply of version 5",
		rejectsReply(synth.Reply{Vers: 5}, synth.ErrVers(1, 1)), rejectsReply(synth.Reply{Vers: 5}, errVers(5, 1, 1))),
	server("error-wrong-version", "3 for a Call with an unknown procedure",
		refused(procedure99, errChunk(3)), refused(procedure99, chunkError)),
	server("error-unknown-xid", "an unknown XID, while a Call has to be rejected",
		refused(procedure99, synth.Reply{XID: 78, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}), refused(procedure99, chunkError)),
	server("error-wrong-code", "low above high", refused(version3, errVers(3, 2, 1)), version3Refused),
	server("error-wrong-version", "1 for 3", refused(version3, synth.ErrVers(1, 1)), version3Refused),
	server("error-unknown-xid", "an unknown XID",
		func(c *conn) { rpc(c); r := chunkError; r.XID = 0x999; c.Server.Reply(r) }, refused(done, chunkError)),
	client("error-answered", "back and forth", inTurn(does(synth.Call{XID: 9}, chunkError), clientRefuses), does(null, chunkError)),
	server("call-not-answered", "31 s",
		inTurn(rpc, calls(synth.Call{XID: 500}), after(31*time.Second), rpc),
		inTurn(rpc, calls(synth.Call{XID: 500}), after(29*time.Second), rpc)),
	// The server may have discarded it.
	neither("call-not-answered", "31 s, RPCSEC_GSS",
		inTurn(rpc, calls(synth.Call{XID: 500, Cred: synth.GSS(1, 1)}), after(31*time.Second), rpc), rpc),
	neither("rpc-rejected", "with a chunk", does(write(), synth.Reply{Accept: 4}), writes),
	// A NULL Call asks for that.
	neither("rpc-rejected", "an unknown program", does(getattr, synth.Reply{Accept: 1}), does(null, synth.Reply{Accept: 1})),
	// A NULL Call whose procedure was not captured asks for that, too.
	neither("rpc-rejected", "an unknown version, in a truncated capture",
		does(getattr, mismatch(2, 4)),
		func(c *conn) {
			for _, f := range c.RPC(null, mismatch(2, 4))[:1] {
				f.Truncate(14 + 20 + 8 + 12 + 28 + 20)
			}
		}).on(RoCE),
	neither("rpc-rejected", "an unknown version", does(getattr, mismatch(2, 4)), does(null, mismatch(2, 4))),
	server("rpc-rejected", "GARBAGE_ARGS in a Long Reply", does(listing, synth.Reply{Accept: 4}.Long()), lists),
	neither("rpc-rejected", "denied", does(null, synth.Reply{Deny: []uint32{1, 1}}), rpc),
	server("reply-without-call", "an unknown XID", inTurn(rpc, unasked), rpc),
	server("reply-without-call", "a second Reply",
		inTurn(rpc5, answersAgain),
		func(c *conn) { // the connection ended before the Reply
			rpc(c)
			c.Client.Call(call5)
			c.Disconnect(c.Client)
		}),
	server("reply-without-call", "an RDMA_ERROR that cannot be decoded does not end the RPC",
		inTurn(does(call5, chunkError), answersAgain),
		func(c *conn) {
			c.Client.Call(call5)
			answer(c.Server, synth.Reply{XID: 5, Proc: rpcrdma.Error, Err: 7})
			answer(c.Server, reply5)
		}),
	server("reply-without-call", "a Call of the server of an unknown version is no Reply",
		inTurn(backchannel, unasked), unknownVersionBack(1)),
	server("reply-without-call", "a message that is too short for its lists may be no Reply",
		inTurn(backchannel, unasked), func(c *conn) { backchannel(c); c.Server.Send(header()[:16]) }),
	client("error-wrong-code", "a range with the rejected version of the server's Call", unknownVersionBack(4), unknownVersionBack(1)),
	server("reply-without-call", "after a callback that was retransmitted", inTurn(calledBackAgain, unasked), calledBackAgain),
	client("credit-limit-exceeded", "after a callback that was retransmitted",
		inTurn(calledBackAgain, many(10, 8)), inTurn(calledBackAgain, many(8, 8))),
	client("xid-in-use", "twice at once",
		func(c *conn) {
			granted(32, 32)(c)
			c.Client.Call(call5)
			send(c.Client, call5)
		},
		inTurn(rpc5, rpc5)),
}

// calledBackAgain lets the server call the client, send the same Call again after a minute, and get a
// Reply to each.
func calledBackAgain(c *conn) {
	backchannel(c)
	call, reply := recall, recallReply
	call.XID, reply.XID = 0x99, 0x99
	send(c.Server, call)
	c.Wire.Advance(time.Minute)
	send(c.Server, call)
	answer(c.Client, reply)
	answer(c.Client, reply)
	rpc(c)
}

// backchannel creates a session whose Calls the server may send.
func backchannel(c *conn) { session(synth.ConnBackChannel)(c) }

// session creates a session on a connection, with the flags that the server grants.
func session(flags uint32) script {
	return does(synth.Compound(synth.OpCreateSession(synth.ConnBackChannel)), synth.CompoundReply(synth.ResCreateSession(flags)))
}

// back sends a healthy session, and then an exchange that the server starts.
func back(call synth.Call, reply synth.Reply) script {
	return inTurn(backchannel, doesBack(call, reply))
}

// doesBack returns a script that sends an exchange that the server starts.
func doesBack(call synth.Call, reply synth.Reply) script {
	return func(c *conn) { c.Server.RPC(call, reply) }
}

var (
	called     = back(cbNull, nullReply)
	calledBare = doesBack(cbNull, nullReply)
)

// backWithout returns a script in which the server sends a Call with chunks, and the Reply has none, as it must not.
func backWithout(call synth.Call) script {
	return func(c *conn) {
		backchannel(c)
		send(c.Server, call)
		answer(c.Client, recallReply)
	}
}

var (
	recall      = synth.CBCompound(synth.OpCBSequence(1), synth.OpCBRecall())
	recallReply = synth.CompoundReply(synth.ResCBSequence(1), synth.ResCBRecall())
	cb99        = synth.Call{XID: 0x99, Program: recall.Program, Version: 1}
	recalled    = back(recall, recallReply)

	destroy      = synth.Compound(synth.OpDestroySession())
	destroyReply = synth.CompoundReply(synth.ResDestroySession())
)

// destroyed returns a script in which the client destroys its session, in a COMPOUND with other operations before, and the
// server sends a Call.
func destroyed(call synth.Call, before ...synth.XDR) script {
	return func(c *conn) {
		backchannel(c)
		results := []synth.XDR{synth.ResDestroySession()}
		if len(before) > 0 {
			results = []synth.XDR{synth.ResSequence(1), synth.ResDestroySession()}
		}
		c.RPC(synth.Compound(append(before, synth.OpDestroySession())...), synth.CompoundReply(results...))
		c.Server.RPC(call, recallReply)
	}
}

// busySession refuses to destroy a session that has callbacks in flight (NFS4ERR_BACK_CHAN_BUSY), and sends another.
var busySession = inTurn(backchannel, does(destroy, synth.CompoundFailed(10057, synth.ResFailed(44, 10057))), doesBack(recall, recallReply))

// version2Call returns a Call of the version that the remote invalidation draft defines.
func version2Call(call synth.Call) synth.Call {
	call.Vers = 2
	return call
}

var backward = []Case{
	server("backward-with-chunks", "a Call", back(recall.Offer(mem), recallReply), recalled),
	client("backward-with-chunks", "a Reply",
		func(c *conn) {
			backchannel(c)
			c.Server.Call(recall)
			r := recallReply
			r.ReplyChunk = synth.Chunk(mem)
			c.Client.Reply(r)
		},
		recalled),
	server("backward-with-chunks", "a Call, but of version 1",
		back(recall.Offer(mem), recallReply), back(version2Call(recall.Offer(mem)), recallReply)),
	server("backward-not-msg", "a Long Call, but of version 1",
		back(recall.Long(0xa1), recallReply), back(version2Call(recall.Long(0xa1)), recallReply)),
	server("backward-not-msg", "a Long Call", back(recall.Long(0xa1), recallReply), recalled),
	client("backward-not-msg", "a Long Reply", back(recall.OfferReply(mem), recallReply.Long()), recalled),
	server("backward-unexpected", "on a bare connection", inTurn(rpc, calledBare), called),
	server("backward-unexpected", "next to another program",
		inTurn(does(getattr, synth.Getattr3Reply()), calledBare),
		inTurn(does(opened(0x20001234, 1, 1, synth.XDR{}), nullReply), calledBare)),
	server("backward-unexpected", "of the callback program",
		inTurn(rpc, calledBare), inTurn(rpc, doesBack(opened(0x20001235, 1, 0, synth.XDR{}), nullReply))),
	server("backward-unexpected", "the server granted no backchannel",
		inTurn(session(0), calledBare), inTurn(does(synth.Compound(synth.OpBindConn(3)), bound(3)), calledBare)),
	server("backward-unexpected", "of a session that was destroyed", destroyed(recall), recalled),
	server("backward-unexpected", "of a session that was destroyed, in a COMPOUND of it",
		destroyed(recall, synth.OpSequence(1)), destroyed(cbNull, synth.OpSequence(1))),
	server("backward-unexpected", "of a session that was destroyed, and no other", destroyed(recall), busySession),
	server("backward-unexpected", "after DESTROY_SESSION was answered",
		destroyed(recall),
		func(c *conn) { // the session is destroyed when its Reply is sent
			backchannel(c)
			c.Client.Call(destroy)
			c.Server.RPC(recall, recallReply)
			answer(c.Server, destroyReply.To(destroy))
		}),
	server("backward-unexpected", "of a session that was destroyed and not created again",
		destroyed(recall), inTurn(backchannel, does(destroy, destroyReply), recalled)),
	client("short-message-dropped", "four words", inTurn(shortBack(12), rpc), inTurn(shortBack(12), disconnects)),
	client("short-message-dropped", "no RPC message", inTurn(shortBack(28), rpc), inTurn(shortBack(28), disconnects)),
	client("short-message-dropped", "half of the RPC message",
		inTurn(shortBack(60), after(2*time.Second), serverDisconnects),
		inTurn(shortBack(60), after(time.Millisecond), serverDisconnects)),
	client("short-message-dropped", "no byte at all", inTurn(shortBack(0), rpc, rpc), inTurn(shortBack(68), rpc)),
	server("short-message-dropped", "a Reply", inTurn(shortReply, rpc), inTurn(shortReply, serverDisconnects)),
	server("backward-unexpected", "a BIND_CONN_TO_SESSION for the fore channel", binds(1, bound(1)), binds(7, bound(2))),
	server("backward-unexpected", "a BIND_CONN_TO_SESSION that failed", binds(3, unbound), binds(3, bound(3))),
	server("backward-unexpected", "during a second BIND_CONN_TO_SESSION", bindsTwice(unbound), bindsTwice(bound(3))),
	server("backward-unexpected", "during a CREATE_SESSION that grants no backchannel", early(0), early(synth.ConnBackChannel)),
}

// bound returns the Reply to BIND_CONN_TO_SESSION with the direction that the server grants, and unbound is one that grants
// none (NFS4ERR_BADSESSION).
func bound(direction uint32) synth.Reply { return synth.CompoundReply(synth.ResBindConn(direction)) }

var unbound = synth.CompoundFailed(10052, synth.ResFailed(41, 10052))

// binds binds the connection to a session, and then the server calls the client.
func binds(direction uint32, reply synth.Reply) script {
	return inTurn(does(synth.Compound(synth.OpBindConn(direction)), reply), calledBare, rpc)
}

// bindsTwice binds the connection to two sessions at once. The server refuses the first, and answers the
// second after it has called the client.
func bindsTwice(second synth.Reply) script {
	return func(c *conn) {
		rpc(c)
		for xid := uint32(70); xid < 72; xid++ {
			call := synth.Compound(synth.OpBindConn(3))
			call.XID = xid
			c.Client.Call(call)
		}
		c.Server.Ack()
		refused := unbound
		refused.XID, second.XID = 70, 71
		answer(c.Server, refused)
		c.Server.RPC(cb99, nullReply)
		answer(c.Server, second)
		rpc(c)
	}
}

// shortBack returns a script in which the server sends the first n bytes of a Call after it was
// granted a backchannel.
func shortBack(n int) script {
	return func(c *conn) {
		backchannel(c)
		c.Server.Send(cb99.Bytes()[:n])
		c.Client.Ack()
	}
}

// shortReply sends only a part of the client's Reply to a Call of the server.
func shortReply(c *conn) {
	backchannel(c)
	send(c.Server, cb99)
	c.Client.Send(synth.Reply{XID: 0x99}.Bytes()[:40])
	c.Server.Ack()
}

// early sends a Call of the server before its Reply to CREATE_SESSION.
func early(flags uint32) script {
	return func(c *conn) {
		call := synth.Compound(synth.OpCreateSession(synth.ConnBackChannel))
		call.XID = 70
		c.Client.Call(call)
		back := cbNull
		back.XID = 71
		c.Server.RPC(back, nullReply)
		answer(c.Server, synth.CompoundReply(synth.ResCreateSession(flags)).To(call))
	}
}

// draft returns a READ of version 2 with an rdma_inv_handle.
func draft(handle uint32) synth.Call {
	call := read()
	call.Vers, call.InvHandle = 2, handle
	return call
}

var version2 = []Case{
	client("inv-handle-unknown", "an unknown handle", does(draft(0xb7), readReply()), does(draft(0xa1), readReply().Invalidating(0xa1))),
	edits("inv-handle-not-copied", "0", draft(0xa1), readReply().Invalidating(0xa1), func(r *synth.Reply) { r.InvHandle = 0 }),
	server("inv-handle-not-honored", "although the Call allows none",
		does(draft(0), readReply().Invalidating(0xa1)), does(draft(0), readReply())),
	server("inv-handle-not-honored", "another",
		does(draft(0xa1).OfferReply(mem2), readReply().Invalidating(0xa2)),
		does(draft(0xa1).OfferReply(mem2), readReply().Invalidating(0xa1))),
	server("inv-handle-not-honored", "a plain Send",
		does(draft(0xa1), readReply()), does(draft(0xa1), readReply().Invalidating(0xa1))).as("warning"),
}
