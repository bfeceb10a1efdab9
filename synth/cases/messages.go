package cases

import (
	"bytes"
	"encoding/binary"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/synth"
)

// Rules about the headers of RPC-over-RDMA (RFC 8166 s.4) and of RPC.

// sends returns a script in which the client sends b, which is acknowledged.
func sends(b []byte) script {
	return func(c *conn) { c.Client.Send(b); c.Server.Ack() }
}

// header returns the first words of a Call's header, followed by the given words.
func header(words ...uint32) []byte { return synth.XDR{}.Word(0x1234, 1, 32, 0).Word(words...).Bytes }

// versionThree returns a script that sends Calls of version 3, which get Replies of another
// version. If that is 3, too, both sides use a version that RFC 8166 does not know.
func versionThree(vers uint32) script { return versions(3, vers) }

// versions returns a script that sends Calls of a version, which get Replies of another.
func versions(asked, vers uint32) script {
	return func(c *conn) {
		for xid := uint32(0x44); xid < 0x47; xid++ {
			send(c.Client, synth.Call{XID: xid, Vers: asked, Credits: synth.Zero, Writes: [][]rpcrdma.Segment{{mem}}})
			c.Server.Write(0xa1, mem.Offset, data(100))
			answer(c.Server, synth.Reply{XID: xid, Vers: vers, Credits: synth.Zero, Invalidate: 0xa1})
		}
	}
}

// backOf returns a script in which the server sends a Call of a version.
func backOf(vers uint32) script {
	return func(c *conn) {
		backchannel(c)
		call := cbNull
		call.Vers = vers
		c.Server.Call(call)
	}
}

// rpcOf returns a Call with an RPC message of these words.
func rpcOf(words ...uint32) synth.Call {
	x := synth.XDR{}.Word(words...)
	return synth.Call{XID: words[0], RPC: &x}
}

// longReplyOf sends an exchange whose Long Reply is an RPC message of these words.
func longReplyOf(words ...uint32) script {
	call, x := listing, synth.XDR{}.Word(words...)
	call.XID = words[0]
	return does(call, synth.Reply{XID: words[0], RPC: &x}.Long())
}

// authSys returns an AUTH_SYS credential with a machine name of some bytes and a number of groups.
func authSys(name, groups int) oncrpc.Auth {
	body := synth.XDR{}.Word(1).Opaque(data(name)).Word(0, 0, uint32(groups)).Word(make([]uint32, groups)...)
	return oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: body.Bytes}
}

// shortened returns a credential without its last word.
func shortened(a oncrpc.Auth) oncrpc.Auth {
	a.Body = a.Body[:len(a.Body)-4]
	return a
}

// lengthened returns a credential with a word more.
func lengthened(a oncrpc.Auth) oncrpc.Auth {
	a.Body = append(a.Body, 0, 0, 0, 0)
	return a
}

// mismatch returns a PROG_MISMATCH that lists versions.
func mismatch(low, high uint32) synth.Reply {
	return synth.Reply{Accept: 2, Results: synth.XDR{}.Word(low, high)}
}

// unverified sends a Call with a credential of RPCSEC_GSS. Its Reply has no verifier.
func unverified(reply synth.Reply) script {
	return func(c *conn) { exchange(c, synth.Call{XID: 9, Cred: synth.GSS(1, 1)}, reply) }
}

// probes sends a Call of each version. The server supports version 1, and 2 if only that is sent.
func probes(all ...uint32) script {
	return func(c *conn) {
		for i, vers := range all {
			xid := uint32(0x70 + i)
			send(c.Client, synth.Call{XID: xid, Vers: vers})
			if reply := synth.ErrVers(1, 1); vers != 1 && all[len(all)-1] == 1 {
				reply.XID, reply.Vers = xid, vers
				c.Server.Reply(reply)
			} else {
				c.Server.Reply(synth.Reply{XID: xid, Vers: vers})
			}
			c.Client.Ack()
		}
	}
}

// listed sends a Call of version 8, which gets an ERR_VERS that lists the versions 1 to 3, and then one of another version, which gets one
// that lists version 1.
func listed(next uint32) script {
	return func(c *conn) {
		for i, vers := range [...]uint32{8, next, 1} {
			call := synth.Call{XID: uint32(0x70 + i), Vers: vers}
			reply := nullReply
			if vers != 1 {
				reply = errVers(vers, 1, uint32(3-2*i))
			}
			c.RPC(call, reply)
		}
	}
}

// directed returns a script that sends a Call of version 2 with an rdma_direction.
func directed(call []byte, direction uint32) script {
	return func(c *conn) {
		rpc(c)
		call := bytes.Clone(call)
		binary.BigEndian.PutUint32(call[16:], direction)
		c.Client.Send(call)
		c.Server.Ack()
	}
}

// answersDirected sends the Reply to a Call of version 2 with an rdma_direction.
func answersDirected(direction uint32) script {
	return func(c *conn) {
		send(c.Client, synth.Call{XID: 0x77, Vers: 2})
		reply := synth.Reply{XID: 0x77, Vers: 2}.Bytes()
		binary.BigEndian.PutUint32(reply[16:], direction)
		c.Server.Send(reply)
		c.Client.Ack()
	}
}

// longOf returns a Long Call of a version.
func longOf(vers uint32) synth.Call {
	call := long
	call.XID, call.Vers = 0x78, vers
	return call
}

// flavored returns a credential or verifier of AUTH_SHORT.
func flavored(size int) oncrpc.Auth { return oncrpc.Auth{Flavor: 2, Body: data(size)} }

// headed returns a WRITE with its data in a Read chunk, and with an RPC header of its own.
func headed(rpcVersion, kind uint32, cred, verf oncrpc.Auth) synth.Call {
	args := write3(4096).Args
	auth := func(x synth.XDR, a oncrpc.Auth) synth.XDR { return x.Word(uint32(a.Flavor)).Opaque(a.Body) }
	x := auth(auth(synth.XDR{}.Word(7, kind, rpcVersion, 100003, 3, 7), cred), verf)
	call := synth.Call{XID: 7, RPC: new(synth.XDR)}
	*call.RPC = x.Append(args)
	call.RPC.Items[0].Reduced = true
	call.Reads = synth.ReadChunk(call.RPC.Position(0), synth.Mem(0xa1, 4096))
	return call
}

var headers = []Case{
	client("header-truncated", "in the four words", sends(header()[:12]), rpc),
	server("header-truncated", "no byte at all", func(c *conn) { c.Client.Call(null); c.Server.Send(nil) }, rpc),
	client("header-truncated", "in a list", sends(read().Bytes()[:40]), reads),
	client("header-truncated", "a count that is too large", sends(header(0, 1, 0x7fffffff, 0xa1, 4096, 0, 0)), reads),
	client("header-malformed", "neither 0 nor 1", sends(header(2, 0, 0)), rpc),
	server("header-malformed", "an undefined error code", does(null, synth.Reply{Proc: rpcrdma.Error, Err: 7}), rpc),
	client("rdma-version", "3", calls(version3), rpc),
	client("rdma-version", "0", calls(synth.Call{Vers: synth.Zero}), rpc),
	client("rdma-version", "0, which both sides use", versions(synth.Zero, synth.Zero), versionThree(3)),
	server("rdma-version", "0, in a Reply", does(synth.Call{}, synth.Reply{Vers: synth.Zero}), rpc),
	server("rdma-version", "in a Call of the server", backOf(9), backOf(1)),
	server("rdma-version", "0, in a Call of the server", backOf(synth.Zero), backOf(1)),
	client("rdma-version", "3, which the server answers with version 1", versionThree(1), versionThree(3)),
	server("rdma-version", "3, in a Reply",
		func(c *conn) {
			rpc(c)
			c.Client.Call(synth.Call{XID: 0x44})
			c.Server.Reply(synth.Reply{XID: 0x44, Vers: 3})
			rpc(c)
		},
		versionThree(3)),
	client("rdma-version", "2, without the layout of the draft", sends(synth.XDR{}.Word(7, 2, 32, 0, 7, 7, 7).Bytes), version2RPC),
	client("rdma-version", "3, refused for the second time", probes(3, 3, 1), probes(1, 1)),
	client("rdma-version", "9, after the versions to 3 were listed", listed(9), listed(3)).as("error"),
	neither("rdma-version", "3, refused", probes(3, 1), probes(1, 1)).as("note"),
	neither("rdma-version", "3, refused although it is listed", refused(version3, errVers(3, 1, 3)), probes(1, 1)).as("note"),
	server("rdma-version", "2, in the Reply to version 1",
		does(synth.Call{}, synth.Reply{Vers: 2}), does(synth.Call{}, synth.Reply{Vers: 1})),
	server("rdma-version", "1, in the Reply to version 2",
		does(asVersion2, synth.Reply{Vers: 1}), does(asVersion2, synth.Reply{Vers: 2})),
	client("header-malformed", "rdma_direction of a Call", directed(asVersion2.Bytes(), 1), directed(asVersion2.Bytes(), 0)),
	client("header-malformed", "rdma_direction of a Long Call", directed(longOf(2).Bytes(), 1), directed(longOf(2).Bytes(), 0)),
	server("header-malformed", "rdma_direction of a Reply", answersDirected(0), answersDirected(1)),
	client("rdma-proc-unknown", "99", calls(procedure99), rpc),
	client("rdma-msgp", "a Call", calls(msgP), rpc),
	client("rdma-done", "after a Reply", inTurn(rpc, calls(synth.Call{XID: 1, Proc: rpcrdma.Done})), rpc),
	server("rdma-done", "of the server",
		func(c *conn) {
			c.Client.Call(call5)
			c.Server.Reply(synth.Reply{XID: 5, Proc: rpcrdma.Done})
			answer(c.Server, reply5)
		},
		rpc),
	server("rdma-proc-unknown", "99, of the server", backInstead(99, chunkError), backOf(1)),
	server("rdma-msgp", "a Call of the server", backInstead(rpcrdma.MsgP, chunkError), backOf(1)),
	client("rdma-done", "for an open Call",
		func(c *conn) {
			c.Client.Call(call5)
			c.Client.Call(synth.Call{XID: 5, Proc: rpcrdma.Done})
			c.Server.Reply(reply5)
		},
		rpc),

	client("xid-mismatch", "a Call", calls(synth.Call{XID: 7, RPCXID: 8}), rpc),
	client("xid-mismatch", "a Call whose Reply returns both XIDs", does(synth.Call{XID: 7, RPCXID: 8}, synth.Reply{RPCXID: 8}), rpc),
	server("xid-mismatch", "a Reply", does(null, synth.Reply{RPCXID: 8}), rpc),
	server("xid-mismatch", "a Call of the server",
		back(synth.Call{XID: 0x98, RPCXID: 0x99, Program: recall.Program, Version: 1}, nullReply), called),
	client("xid-mismatch", "a Reply of the client", back(cbNull, synth.Reply{RPCXID: 8}), called),
	client("rdma-version", "in a Reply of the client", back(cbNull, synth.Reply{Vers: 9}), called),
	client("xid-mismatch", "a Long Call",
		func(c *conn) {
			call := long
			call.XID, call.RPCXID = 7, 8
			c.RPC(call, symlinkReply)
		},
		symlinks),
	server("xid-mismatch", "a Long Reply", does(listing, synth.Reply{RPCXID: 8, Results: listingReply.Results}.Long()), lists),
	client("rpc-header-malformed", "a credential that is too long",
		calls(synth.Call{Cred: oncrpc.Auth{Flavor: 1, Body: data(404)}}), trusts(synth.AuthSys(0, 0))),
	client("rpc-header-malformed", "truncated", opens(rpcOf(7, 0, 2)), rpc),
	client("rpc-header-malformed", "another version of RPC",
		calls(rpcOf(7, 0, 1, 100003, 3, 0, 0, 0, 0, 0)), calls(rpcOf(7, 0, 2, 100003, 3, 0, 0, 0, 0, 0))),
	client("rpc-header-malformed", "another version of RPC, with a Read chunk",
		calls(headed(1, 0, oncrpc.Auth{}, oncrpc.Auth{})), calls(headed(2, 0, oncrpc.Auth{}, oncrpc.Auth{}))),
	client("rpc-header-malformed", "a message that is neither CALL nor REPLY",
		calls(rpcOf(7, 2, 2, 100003, 3, 0, 0, 0, 0, 0)), calls(rpcOf(7, 0, 2, 100003, 3, 0, 0, 0, 0, 0))),
	client("rpc-header-malformed", "neither CALL nor REPLY, with a Read chunk",
		calls(headed(2, 2, oncrpc.Auth{}, oncrpc.Auth{})), calls(headed(2, 0, oncrpc.Auth{}, oncrpc.Auth{}))),
	client("rpc-header-malformed", "a credential that is too long, with a Read chunk",
		calls(headed(2, 0, flavored(404), oncrpc.Auth{})), calls(headed(2, 0, flavored(400), oncrpc.Auth{}))),
	client("rpc-header-malformed", "a verifier that is too long, with a Read chunk",
		calls(headed(2, 0, oncrpc.Auth{}, flavored(404))), calls(headed(2, 0, oncrpc.Auth{}, flavored(400)))),
	client("rpc-header-malformed", "17 groups of AUTH_SYS, with a Read chunk",
		calls(headed(2, 0, authSys(6, 17), oncrpc.Auth{})), calls(headed(2, 0, authSys(6, 16), oncrpc.Auth{}))).as("warning"),
	server("rpc-header-malformed", "an undefined accept state", does(null, synth.Reply{Accept: 7}), does(null, synth.Reply{Accept: 5})),
	server("rpc-header-malformed", "an undefined reject state",
		does(null, synth.Reply{Deny: []uint32{2, 0}}), does(null, synth.Reply{Deny: []uint32{1, 0}})),
	server("rpc-header-malformed", "RPC_MISMATCH for the version that it lists",
		does(null, synth.Reply{Deny: []uint32{0, 2, 2}}), does(null, synth.Reply{Deny: []uint32{0, 3, 3}})),
	server("rpc-header-malformed", "PROG_MISMATCH for the highest version that it lists",
		does(getattr, mismatch(2, 3)), does(getattr, mismatch(2, 4))), // 3 may be disabled
	server("rpc-header-malformed", "PROG_MISMATCH with the lowest version above the highest",
		does(getattr, mismatch(4, 2)), does(getattr, mismatch(4, 4))),
	server("rpc-header-malformed", "SUCCESS without results", does(getattr, nullReply), rpc),
	client("rpc-header-malformed", "AUTH_SYS that ends before its last group",
		trusts(shortened(authSys(6, 16))), trusts(authSys(6, 16))).as("warning"),
	client("rpc-header-malformed", "AUTH_SYS with a word after its last group",
		trusts(lengthened(authSys(6, 2))), trusts(authSys(6, 3))).as("warning"),
	client("rpc-header-malformed", "RPCSEC_GSS that ends before its handle",
		trusts(shortened(synth.GSS(1, 1))), trusts(synth.GSS(1, 1))).as("warning"),
	client("rpc-header-malformed", "an undefined service of RPCSEC_GSS", trusts(synth.GSS(4, 1)), trusts(synth.GSS(3, 1))).as("warning"),
	server("rpc-header-malformed", "a Reply to RPCSEC_GSS without its verifier",
		unverified(synth.Reply{XID: 9}), unverified(synth.Reply{XID: 9, Deny: []uint32{1, 13}})).as("warning"),
	server("rpc-header-malformed", "a Reply to AUTH_SYS with a verifier of RPCSEC_GSS",
		does(synth.Call{Cred: authSys(6, 2)}, synth.Reply{Verf: synth.GSS(1, 1)}),
		does(synth.Call{Cred: authSys(6, 2)}, synth.Reply{Verf: oncrpc.Auth{Flavor: oncrpc.AuthShort, Body: []byte("short")}})).as("warning"),
	client("rpc-header-malformed", "17 groups of AUTH_SYS", trusts(authSys(6, 17)), trusts(authSys(6, 16))).as("warning"),
	client("rpc-header-malformed", "a machine name of 256 bytes", trusts(authSys(256, 0)), trusts(authSys(255, 0))).as("warning"),
	server("rpc-header-malformed", "a CALL in a Long Reply", longReplyOf(7, 0, 2, 100003, 3, 0, 0, 0, 0, 0), lists),
	client("rpc-header-malformed", "a REPLY in a Long Call", does(rpcOf(7, 1, 0, 0, 0, 0).Long(0xa1), nullReply), symlinks),
	server("rpc-header-malformed", "in a Long Reply", longReplyOf(7, 1, 9), lists),

	client("nomsg-without-chunk", "no list at all", calls(noMsg), symlinks),
	client("nomsg-without-chunk", "a Call without a Position Zero Read chunk",
		calls(synth.Call{Proc: rpcrdma.NoMsg, Writes: [][]rpcrdma.Segment{{mem}}}), symlinks),
	client("nomsg-without-chunk", "a Call with a Position Zero Read chunk of no bytes",
		calls(synth.Call{Proc: rpcrdma.NoMsg, Reads: synth.ReadChunk(0, synth.Mem(0xa1, 0))}), symlinks),
	edits("nomsg-without-chunk", "a Reply without a Reply chunk", read(), readReply(), func(r *synth.Reply) { r.Proc = rpcrdma.NoMsg }),
	server("nomsg-without-chunk", "a Reply with an empty one", whole(listing, shortListing.Long(), returnsReply(0)), lists),
	client("nomsg-with-payload", "a Long Call",
		func(c *conn) { call := long; call.Tail = data(20); c.RPC(call, symlinkReply) }, symlinks),
	server("nomsg-with-payload", "a Long Reply", whole(listing, shortListing.Long(), func(r *synth.Reply) { r.Tail = data(4) }), lists),
	server("nomsg-with-payload", "an RDMA_ERROR",
		func(c *conn) {
			r := synth.ErrVers(1, 1)
			r.Tail = data(4)
			c.Client.Call(version3)
			c.Server.Reply(r)
		},
		rpc),
	client("long-call-position", "in an RDMA_MSG", calls(synth.Call{Reads: synth.ReadChunk(0, mem)}), symlinks),
	client("long-call-position", "a segment at no data item",
		func(c *conn) {
			call := long
			call.Reads = append(call.Reads, synth.ReadChunk(48, mem2)...)
			c.RPC(call, symlinkReply)
		},
		does(synth.Symlink3("name", "target").Reduce(0xa1).Long(0xa2), symlinkReply)),
}
