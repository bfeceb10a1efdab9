package cases

import (
	"bytes"
	"encoding/binary"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/synth"
)

// Rules about the headers of RPC-over-RDMA (RFC 8166 s.4) and of RPC.

// sends returns a function in which the client sends b, which is acknowledged.
func sends(b []byte) func(*wire, *conn) {
	return func(_ *wire, c *conn) { c.Client.Send(b); c.Server.Ack() }
}

// header returns the first words of a Call's header, followed by the given words.
func header(words ...uint32) []byte { return synth.XDR{}.Word(0x1234, 1, 32, 0).Word(words...).Bytes }

var long = synth.Symlink3("name", "target").Long(0xa1)

// versionThree returns a function that sends Calls of version 3, which get Replies of another
// version. If that is 3, too, both sides use a version that RFC 8166 does not know.
func versionThree(vers uint32) func(*wire, *conn) { return versions(3, vers) }

// versions returns a function that sends Calls of a version, which get Replies of another.
func versions(asked, vers uint32) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		for xid := uint32(0x44); xid < 0x47; xid++ {
			c.Client.Call(synth.Call{XID: xid, Vers: asked, Credits: synth.Zero, Writes: [][]rpcrdma.Segment{{mem}}})
			c.Server.Ack()
			c.Server.Write(0xa1, mem.Offset, data(100))
			c.Server.Reply(synth.Reply{XID: xid, Vers: vers, Credits: synth.Zero, Invalidate: 0xa1})
			c.Client.Ack()
		}
	}
}

// backOf returns a function in which the server sends a Call of a version.
func backOf(vers uint32) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		session(c, synth.ConnBackChannel)
		call := synth.CBNull()
		call.Vers = vers
		c.Server.Call(call)
	}
}

// rpcOf returns a Call with an RPC message of these words.
func rpcOf(words ...uint32) synth.Call {
	x := synth.XDR{}.Word(words...)
	return synth.Call{XID: words[0], RPC: &x}
}

// authSys returns an AUTH_SYS credential with a machine name of some bytes and a number of groups.
func authSys(name, groups int) oncrpc.Auth {
	return oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: synth.XDR{}.Word(1).Opaque(data(name)).Word(0, 0, uint32(groups)).Word(make([]uint32, groups)...).Bytes}
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

// probes sends a Call of each version. The server supports version 1, and 2 if only that is sent.
func probes(all ...uint32) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		for i, vers := range all {
			xid := uint32(0x70 + i)
			c.Client.Call(synth.Call{XID: xid, Vers: vers})
			c.Server.Ack()
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
func listed(next uint32) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		for i, vers := range [...]uint32{8, next, 1} {
			call := synth.Call{XID: uint32(0x70 + i), Vers: vers}
			reply := synth.NullReply()
			if vers != 1 {
				reply = synth.Reply{Vers: vers, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: 1, High: uint32(3 - 2*i)}
			}
			c.RPC(call, reply)
		}
	}
}

// directed returns a function that sends a Call of version 2 with an rdma_direction.
func directed(call []byte, direction uint32) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		rpc(nil, c)
		call := bytes.Clone(call)
		binary.BigEndian.PutUint32(call[16:], direction)
		c.Client.Send(call)
		c.Server.Ack()
	}
}

// answersDirected sends the Reply to a Call of version 2 with an rdma_direction.
func answersDirected(c *conn, direction uint32) {
	c.Client.Call(synth.Call{XID: 0x77, Vers: 2})
	c.Server.Ack()
	reply := synth.Reply{XID: 0x77, Vers: 2}.Bytes()
	binary.BigEndian.PutUint32(reply[16:], direction)
	c.Server.Send(reply)
	c.Client.Ack()
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
	args := synth.Write3(0, data(4096)).Args
	auth := func(x synth.XDR, a oncrpc.Auth) synth.XDR { return x.Word(uint32(a.Flavor)).Opaque(a.Body) }
	x := auth(auth(synth.XDR{}.Word(7, kind, rpcVersion, 100003, 3, 7), cred), verf)
	call := synth.Call{XID: 7, RPC: new(synth.XDR)}
	*call.RPC = x.Append(args)
	call.RPC.Items[0].Reduced = true
	call.Reads = synth.ReadChunk(call.RPC.Position(0), synth.Mem(0xa1, 4096))
	return call
}

var headers = []Case{
	{Rule: "header-truncated", Name: "in the four words", AtFault: client, Broken: sends(header()[:12]), Healthy: rpc},
	{
		Rule: "header-truncated", Name: "no byte at all", AtFault: server,
		Broken: func(_ *wire, c *conn) { c.Client.Call(synth.Null()); c.Server.Send(nil) }, Healthy: rpc,
	},
	{Rule: "header-truncated", Name: "in a list", AtFault: client, Broken: sends(read().Bytes()[:40]), Healthy: does(read(), readReply())},
	{Rule: "header-truncated", Name: "a count that is too large", AtFault: client, Broken: sends(header(0, 1, 0x7fffffff, 0xa1, 4096, 0, 0)), Healthy: does(read(), readReply())},
	{Rule: "header-malformed", Name: "neither 0 nor 1", AtFault: client, Broken: sends(header(2, 0, 0)), Healthy: rpc},
	{Rule: "header-malformed", Name: "an undefined error code", AtFault: server, Broken: does(synth.Null(), synth.Reply{Proc: rpcrdma.Error, Err: 7}), Healthy: rpc},
	{Rule: "rdma-version", Name: "3", AtFault: client, Broken: calls(synth.Call{Vers: 3}), Healthy: rpc},
	{Rule: "rdma-version", Name: "0", AtFault: client, Broken: calls(synth.Call{Vers: synth.Zero}), Healthy: rpc},
	{Rule: "rdma-version", Name: "0, which both sides use", AtFault: client, Broken: versions(synth.Zero, synth.Zero), Healthy: versionThree(3)},
	{Rule: "rdma-version", Name: "0, in a Reply", AtFault: server, Broken: does(synth.Call{}, synth.Reply{Vers: synth.Zero}), Healthy: rpc},
	{Rule: "rdma-version", Name: "in a Call of the server", AtFault: server, Broken: backOf(9), Healthy: backOf(1)},
	{Rule: "rdma-version", Name: "0, in a Call of the server", AtFault: server, Broken: backOf(synth.Zero), Healthy: backOf(1)},
	{
		Rule: "rdma-version", Name: "3, which the server answers with version 1", AtFault: client,
		Broken: versionThree(1), Healthy: versionThree(3),
	},
	{
		Rule: "rdma-version", Name: "3, in a Reply", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			rpc(nil, c)
			c.Client.Call(synth.Call{XID: 0x44})
			c.Server.Reply(synth.Reply{XID: 0x44, Vers: 3})
			rpc(nil, c)
		},
		Healthy: versionThree(3),
	},
	{
		Rule: "rdma-version", Name: "2, without the layout of the draft", AtFault: client,
		Broken:  func(_ *wire, c *conn) { c.Client.Send(synth.XDR{}.Word(7, 2, 32, 0, 7, 7, 7).Bytes); c.Server.Ack() },
		Healthy: func(_ *wire, c *conn) { c.RPC(synth.Call{Vers: 2}, synth.NullReply()) },
	},
	{
		Rule: "rdma-version", Name: "3, refused for the second time", AtFault: client,
		Broken: probes(3, 3, 1), Healthy: probes(1, 1),
	},
	{
		Rule: "rdma-version", Name: "9, after the versions to 3 were listed", AtFault: client, Severity: "error",
		Broken: listed(9), Healthy: listed(3),
	},
	{Rule: "rdma-version", Name: "3, refused", Severity: "note", Broken: probes(3, 1), Healthy: probes(1, 1)},
	{Rule: "rdma-version", Name: "3, refused although it is listed", Severity: "note", Broken: refused(synth.Call{Vers: 3}, refusal(1, 3)), Healthy: probes(1, 1)},
	{Rule: "rdma-version", Name: "2, in the Reply to version 1", AtFault: server, Broken: does(synth.Call{}, synth.Reply{Vers: 2}), Healthy: does(synth.Call{}, synth.Reply{Vers: 1})},
	{Rule: "rdma-version", Name: "1, in the Reply to version 2", AtFault: server, Broken: does(synth.Call{Vers: 2}, synth.Reply{Vers: 1}), Healthy: does(synth.Call{Vers: 2}, synth.Reply{Vers: 2})},
	{
		Rule: "header-malformed", Name: "rdma_direction of a Call", AtFault: client,
		Broken: directed(synth.Call{Vers: 2}.Bytes(), 1), Healthy: directed(synth.Call{Vers: 2}.Bytes(), 0),
	},
	{
		Rule: "header-malformed", Name: "rdma_direction of a Long Call", AtFault: client,
		Broken: directed(longOf(2).Bytes(), 1), Healthy: directed(longOf(2).Bytes(), 0),
	},
	{
		Rule: "header-malformed", Name: "rdma_direction of a Reply", AtFault: server,
		Broken:  func(_ *wire, c *conn) { answersDirected(c, 0) },
		Healthy: func(_ *wire, c *conn) { answersDirected(c, 1) },
	},
	{Rule: "rdma-proc-unknown", Name: "99", AtFault: client, Broken: calls(synth.Call{Proc: 99}), Healthy: rpc},
	{Rule: "rdma-msgp", Name: "a Call", AtFault: client, Broken: calls(synth.Call{Proc: rpcrdma.MsgP}), Healthy: rpc},
	{
		Rule: "rdma-done", Name: "after a Reply", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			rpc(nil, c)
			c.Client.Call(synth.Call{XID: 1, Proc: rpcrdma.Done})
			c.Server.Ack()
		}, Healthy: rpc,
	},
	{
		Rule: "rdma-done", Name: "of the server", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			c.Client.Call(synth.Call{XID: 5})
			c.Server.Reply(synth.Reply{XID: 5, Proc: rpcrdma.Done})
			c.Server.Reply(synth.Reply{XID: 5})
			c.Client.Ack()
		}, Healthy: rpc,
	},
	{Rule: "rdma-proc-unknown", Name: "99, of the server", AtFault: server, Broken: backInstead(99, synth.ErrChunk()), Healthy: backOf(1)},
	{Rule: "rdma-msgp", Name: "a Call of the server", AtFault: server, Broken: backInstead(rpcrdma.MsgP, synth.ErrChunk()), Healthy: backOf(1)},
	{
		Rule: "rdma-done", Name: "for an open Call", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			c.Client.Call(synth.Call{XID: 5})
			c.Client.Call(synth.Call{XID: 5, Proc: rpcrdma.Done})
			c.Server.Reply(synth.Reply{XID: 5})
		}, Healthy: rpc,
	},

	{Rule: "xid-mismatch", Name: "a Call", AtFault: client, Broken: calls(synth.Call{XID: 7, RPCXID: 8}), Healthy: rpc},
	{Rule: "xid-mismatch", Name: "a Reply", AtFault: server, Broken: does(synth.Null(), synth.Reply{RPCXID: 8}), Healthy: rpc},
	{Rule: "xid-mismatch", Name: "a Call of the server", AtFault: server, Broken: back(synth.Call{XID: 0x98, RPCXID: 0x99, Program: recall.Program, Version: 1}, synth.NullReply()), Healthy: back(synth.CBNull(), synth.NullReply())},
	{Rule: "xid-mismatch", Name: "a Reply of the client", AtFault: client, Broken: back(synth.CBNull(), synth.Reply{RPCXID: 8}), Healthy: back(synth.CBNull(), synth.NullReply())},
	{Rule: "rdma-version", Name: "in a Reply of the client", AtFault: client, Broken: back(synth.CBNull(), synth.Reply{Vers: 9}), Healthy: back(synth.CBNull(), synth.NullReply())},
	{
		Rule: "xid-mismatch", Name: "a Long Call", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			call := long
			call.XID, call.RPCXID = 7, 8
			c.RPC(call, synth.Symlink3Reply())
		}, Healthy: does(long, synth.Symlink3Reply()),
	},
	{
		Rule: "xid-mismatch", Name: "a Long Reply", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			reply := synth.Readdir3Reply("a", "b").Long()
			reply.RPCXID = 8
			c.RPC(synth.Readdir3(4096).OfferReply(mem), reply)
		}, Healthy: does(synth.Readdir3(4096).OfferReply(mem), synth.Readdir3Reply("a", "b").Long()),
	},
	{
		Rule: "rpc-header-malformed", Name: "a credential that is too long", AtFault: client,
		Broken: calls(synth.Call{Cred: oncrpc.Auth{Flavor: 1, Body: data(404)}}), Healthy: does(synth.Call{Cred: synth.AuthSys(0, 0)}, synth.NullReply()),
	},
	{
		Rule: "rpc-header-malformed", Name: "truncated", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			x := synth.XDR{}.Word(7, 0, 2)
			c.Client.Call(synth.Call{XID: 7, RPC: &x})
		}, Healthy: rpc,
	},
	{
		Rule: "rpc-header-malformed", Name: "another version of RPC", AtFault: client,
		Broken: calls(rpcOf(7, 0, 1, 100003, 3, 0, 0, 0, 0, 0)), Healthy: calls(rpcOf(7, 0, 2, 100003, 3, 0, 0, 0, 0, 0)),
	},
	{
		Rule: "rpc-header-malformed", Name: "another version of RPC, with a Read chunk", AtFault: client,
		Broken: calls(headed(1, 0, oncrpc.Auth{}, oncrpc.Auth{})), Healthy: calls(headed(2, 0, oncrpc.Auth{}, oncrpc.Auth{})),
	},
	{
		Rule: "rpc-header-malformed", Name: "a message that is neither CALL nor REPLY", AtFault: client,
		Broken: calls(rpcOf(7, 2, 2, 100003, 3, 0, 0, 0, 0, 0)), Healthy: calls(rpcOf(7, 0, 2, 100003, 3, 0, 0, 0, 0, 0)),
	},
	{
		Rule: "rpc-header-malformed", Name: "neither CALL nor REPLY, with a Read chunk", AtFault: client,
		Broken: calls(headed(2, 2, oncrpc.Auth{}, oncrpc.Auth{})), Healthy: calls(headed(2, 0, oncrpc.Auth{}, oncrpc.Auth{})),
	},
	{
		Rule: "rpc-header-malformed", Name: "a credential that is too long, with a Read chunk", AtFault: client,
		Broken: calls(headed(2, 0, flavored(404), oncrpc.Auth{})), Healthy: calls(headed(2, 0, flavored(400), oncrpc.Auth{})),
	},
	{
		Rule: "rpc-header-malformed", Name: "a verifier that is too long, with a Read chunk", AtFault: client,
		Broken: calls(headed(2, 0, oncrpc.Auth{}, flavored(404))), Healthy: calls(headed(2, 0, oncrpc.Auth{}, flavored(400))),
	},
	{
		Rule: "rpc-header-malformed", Name: "17 groups of AUTH_SYS, with a Read chunk", AtFault: client, Severity: "warning",
		Broken: calls(headed(2, 0, authSys(6, 17), oncrpc.Auth{})), Healthy: calls(headed(2, 0, authSys(6, 16), oncrpc.Auth{})),
	},
	{
		Rule: "rpc-header-malformed", Name: "an undefined accept state", AtFault: server,
		Broken: does(synth.Null(), synth.Reply{Accept: 7}), Healthy: does(synth.Null(), synth.Reply{Accept: 5}),
	},
	{
		Rule: "rpc-header-malformed", Name: "an undefined reject state", AtFault: server,
		Broken: does(synth.Null(), synth.Reply{Deny: []uint32{2, 0}}), Healthy: does(synth.Null(), synth.Reply{Deny: []uint32{1, 0}}),
	},
	{
		Rule: "rpc-header-malformed", Name: "RPC_MISMATCH for the version that it lists", AtFault: server,
		Broken: does(synth.Null(), synth.Reply{Deny: []uint32{0, 2, 2}}), Healthy: does(synth.Null(), synth.Reply{Deny: []uint32{0, 3, 3}}),
	},
	{
		Rule: "rpc-header-malformed", Name: "PROG_MISMATCH for the highest version that it lists", AtFault: server,
		Broken: does(synth.Getattr3(), mismatch(2, 3)), Healthy: does(synth.Getattr3(), mismatch(2, 4)), // 3 may be disabled
	},
	{
		Rule: "rpc-header-malformed", Name: "PROG_MISMATCH with the lowest version above the highest", AtFault: server,
		Broken: does(synth.Getattr3(), mismatch(4, 2)), Healthy: does(synth.Getattr3(), mismatch(4, 4)),
	},
	{
		Rule: "rpc-header-malformed", Name: "SUCCESS without results", AtFault: server,
		Broken: does(synth.Getattr3(), synth.NullReply()), Healthy: does(synth.Null(), synth.NullReply()),
	},
	{
		Rule: "rpc-header-malformed", Name: "AUTH_SYS that ends before its last group", AtFault: client, Severity: "warning",
		Broken: does(synth.Call{Cred: shortened(authSys(6, 16))}, synth.NullReply()), Healthy: does(synth.Call{Cred: authSys(6, 16)}, synth.NullReply()),
	},
	{
		Rule: "rpc-header-malformed", Name: "AUTH_SYS with a word after its last group", AtFault: client, Severity: "warning",
		Broken: does(synth.Call{Cred: lengthened(authSys(6, 2))}, synth.NullReply()), Healthy: does(synth.Call{Cred: authSys(6, 3)}, synth.NullReply()),
	},
	{
		Rule: "rpc-header-malformed", Name: "RPCSEC_GSS that ends before its handle", AtFault: client, Severity: "warning",
		Broken: does(synth.Call{Cred: shortened(synth.GSS(1, 1))}, synth.NullReply()), Healthy: does(synth.Call{Cred: synth.GSS(1, 1)}, synth.NullReply()),
	},
	{
		Rule: "rpc-header-malformed", Name: "an undefined service of RPCSEC_GSS", AtFault: client, Severity: "warning",
		Broken: does(synth.Call{Cred: synth.GSS(4, 1)}, synth.NullReply()), Healthy: does(synth.Call{Cred: synth.GSS(3, 1)}, synth.NullReply()),
	},
	{
		Rule: "rpc-header-malformed", Name: "a Reply to RPCSEC_GSS without its verifier", AtFault: server, Severity: "warning",
		Broken: func(_ *wire, c *conn) { exchange(c, synth.Call{XID: 9, Cred: synth.GSS(1, 1)}, synth.Reply{XID: 9}) },
		Healthy: func(_ *wire, c *conn) {
			exchange(c, synth.Call{XID: 9, Cred: synth.GSS(1, 1)}, synth.Reply{XID: 9, Deny: []uint32{1, 13}})
		},
	},
	{
		Rule: "rpc-header-malformed", Name: "a Reply to AUTH_SYS with a verifier of RPCSEC_GSS", AtFault: server, Severity: "warning",
		Broken:  does(synth.Call{Cred: authSys(6, 2)}, synth.Reply{Verf: synth.GSS(1, 1)}),
		Healthy: does(synth.Call{Cred: authSys(6, 2)}, synth.Reply{Verf: oncrpc.Auth{Flavor: oncrpc.AuthShort, Body: []byte("short")}}),
	},
	{
		Rule: "rpc-header-malformed", Name: "17 groups of AUTH_SYS", AtFault: client, Severity: "warning",
		Broken: does(synth.Call{Cred: authSys(6, 17)}, synth.NullReply()), Healthy: does(synth.Call{Cred: authSys(6, 16)}, synth.NullReply()),
	},
	{
		Rule: "rpc-header-malformed", Name: "a machine name of 256 bytes", AtFault: client, Severity: "warning",
		Broken: does(synth.Call{Cred: authSys(256, 0)}, synth.NullReply()), Healthy: does(synth.Call{Cred: authSys(255, 0)}, synth.NullReply()),
	},
	{
		Rule: "rpc-header-malformed", Name: "a CALL in a Long Reply", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			x := synth.XDR{}.Word(7, 0, 2, 100003, 3, 0, 0, 0, 0, 0)
			call := listing
			call.XID = 7
			c.RPC(call, synth.Reply{XID: 7, RPC: &x}.Long())
		}, Healthy: does(listing, listingReply),
	},
	{
		Rule: "rpc-header-malformed", Name: "a REPLY in a Long Call", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			x := synth.XDR{}.Word(7, 1, 0, 0, 0, 0)
			c.RPC(synth.Call{XID: 7, RPC: &x}.Long(0xa1), synth.NullReply())
		}, Healthy: does(long, synth.Symlink3Reply()),
	},
	{
		Rule: "rpc-header-malformed", Name: "in a Long Reply", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			x := synth.XDR{}.Word(7, 1, 9)
			call := synth.Readdir3(4096).OfferReply(mem)
			call.XID = 7
			c.RPC(call, synth.Reply{XID: 7, RPC: &x}.Long())
		}, Healthy: does(synth.Readdir3(4096).OfferReply(mem), synth.Readdir3Reply("a", "b").Long()),
	},

	{Rule: "nomsg-without-chunk", Name: "no list at all", AtFault: client, Broken: calls(synth.Call{Proc: rpcrdma.NoMsg}), Healthy: does(long, synth.Symlink3Reply())},
	{
		Rule: "nomsg-without-chunk", Name: "a Call without a Position Zero Read chunk", AtFault: client,
		Broken: calls(synth.Call{Proc: rpcrdma.NoMsg, Writes: [][]rpcrdma.Segment{{mem}}}), Healthy: does(long, synth.Symlink3Reply()),
	},
	{
		Rule: "nomsg-without-chunk", Name: "a Call with a Position Zero Read chunk of no bytes", AtFault: client,
		Broken: calls(synth.Call{Proc: rpcrdma.NoMsg, Reads: synth.ReadChunk(0, synth.Mem(0xa1, 0))}), Healthy: does(long, synth.Symlink3Reply()),
	},
	{
		Rule: "nomsg-without-chunk", Name: "a Reply without a Reply chunk", AtFault: server,
		Broken: whole(read(), readReply(), func(r *synth.Reply) { r.Proc = rpcrdma.NoMsg }), Healthy: does(read(), readReply()),
	},
	{
		Rule: "nomsg-without-chunk", Name: "a Reply with an empty one", AtFault: server,
		Broken:  whole(synth.Readdir3(4096).OfferReply(mem), synth.Readdir3Reply("a").Long(), func(r *synth.Reply) { r.ReplyChunk[0].Length = 0 }),
		Healthy: does(synth.Readdir3(4096).OfferReply(mem), synth.Readdir3Reply("a", "b").Long()),
	},
	{
		Rule: "nomsg-with-payload", Name: "a Long Call", AtFault: client,
		Broken: func(_ *wire, c *conn) { call := long; call.Tail = data(20); c.RPC(call, synth.Symlink3Reply()) }, Healthy: does(long, synth.Symlink3Reply()),
	},
	{
		Rule: "nomsg-with-payload", Name: "a Long Reply", AtFault: server,
		Broken:  whole(synth.Readdir3(4096).OfferReply(mem), synth.Readdir3Reply("a").Long(), func(r *synth.Reply) { r.Tail = data(4) }),
		Healthy: does(synth.Readdir3(4096).OfferReply(mem), synth.Readdir3Reply("a", "b").Long()),
	},
	{
		Rule: "nomsg-with-payload", Name: "an RDMA_ERROR", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			r := synth.ErrVers(1, 1)
			r.Tail = data(4)
			c.Client.Call(synth.Call{Vers: 3})
			c.Server.Reply(r)
		},
		Healthy: func(_ *wire, c *conn) { rpc(nil, c) },
	},
	{
		Rule: "long-call-position", Name: "in an RDMA_MSG", AtFault: client,
		Broken:  calls(synth.Call{Reads: synth.ReadChunk(0, mem)}),
		Healthy: does(long, synth.Symlink3Reply()),
	},
	{
		Rule: "long-call-position", Name: "a segment at no data item", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			call := long
			call.Reads = append(call.Reads, synth.ReadChunk(48, mem2)...)
			c.RPC(call, synth.Symlink3Reply())
		},
		Healthy: does(synth.Symlink3("name", "target").Reduce(0xa1).Long(0xa2), synth.Symlink3Reply()),
	},
}
