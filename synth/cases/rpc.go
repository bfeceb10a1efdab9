package cases

import "github.com/rdmadump/rdmadump/synth"

// plainly returns a function that opens a TCP connection and exchanges one RPC over it, and then does
// the rest.
func plainly(rest func(c *conn)) script {
	return func(c *conn) {
		c.Open()
		c.Client.Records(synth.Call{XID: 1}.Message())
		c.Server.Records(synth.Reply{XID: 1}.Message())
		c.Client.Ack()
		rest(c)
	}
}

// calling returns a Call of NFS over TCP.
func calling(xid, procedure uint32) synth.XDR {
	return synth.Call{XID: xid, Procedure: procedure, Args: synth.XDR{}.Opaque([]byte("handle12"))}.Message()
}

// answering returns a Reply over TCP.
func answering(xid uint32) synth.XDR {
	return synth.Reply{XID: xid, Results: synth.XDR{}.Word(5, 0)}.Message()
}

// ordinary exchanges an RPC that violates nothing.
func ordinary(c *conn) {
	c.Client.Records(calling(2, 1))
	c.Server.Records(answering(2))
	c.Client.Ack()
}

// overTCP returns the cases as those of connections that carry NFS over TCP.
func overTCP(all ...Case) []Case {
	for i := range all {
		all[i].Transport, all[i].HalfOpen, all[i].Options.Server.Port = IWARP, true, 2049
	}
	return all
}

var plain = overTCP(
	client("rpc-record-truncated", "inside the header",
		plainly(func(c *conn) {
			c.Client.Stream(synth.Record(synth.XDR{}.Word(2, 0, 2, 100003, 3)))
			c.Server.Ack()
		}),
		plainly(ordinary)),
	server("rpc-record-truncated", "by the end of the stream",
		plainly(func(c *conn) {
			c.Client.Records(calling(2, 1))
			reply := synth.Record(answering(2))
			c.Server.Stream(reply[:len(reply)-4])
			c.Client.Ack()
			c.Disconnect(c.Server)
		}),
		plainly(func(c *conn) {
			ordinary(c)
			c.Disconnect(c.Server)
		})).as("warning"),
	client("rpc-header-malformed", "over TCP: a credential that is too long",
		plainly(func(c *conn) {
			c.Client.Stream(synth.Record(synth.XDR{}.Word(3, 0, 2, 100003, 3, 1, 1).Opaque(make([]byte, 404)).Word(0, 0)))
			c.Server.Ack()
		}),
		plainly(ordinary)),
	client("rpc-header-malformed", "over TCP: another version of RPC",
		plainly(func(c *conn) {
			c.Client.Records(synth.XDR{}.Word(2, 0, 3, 100003, 3, 0, 0, 0, 0, 0))
			c.Server.Records(synth.Reply{XID: 2, Deny: []uint32{0, 2, 2}}.Message())
			c.Client.Ack()
		}),
		plainly(ordinary)),
	server("rpc-header-malformed", "over TCP: an undefined reply state",
		plainly(func(c *conn) {
			c.Client.Records(calling(2, 1))
			c.Server.Records(synth.XDR{}.Word(2, 1, 2, 0, 0, 0))
			c.Client.Ack()
		}),
		plainly(ordinary)),
	server("rpc-header-malformed", "over TCP: an undefined accept state",
		plainly(func(c *conn) {
			c.Client.Records(calling(2, 1))
			c.Server.Records(synth.Reply{XID: 2, Accept: 7}.Message())
			c.Client.Ack()
		}),
		plainly(ordinary)),
	server("reply-without-call", "over TCP",
		plainly(func(c *conn) {
			c.Server.Records(answering(7))
			c.Client.Ack()
			ordinary(c)
		}),
		plainly(func(c *conn) { // the Call begins with an empty fragment
			c.Client.Stream(synth.Record(calling(2, 1), 0))
			c.Server.Records(answering(2))
			c.Client.Ack()
		})),
	client("xid-in-use", "over TCP: another procedure",
		plainly(func(c *conn) {
			c.Client.Records(calling(2, 1), calling(2, 4))
			c.Server.Records(answering(2))
			c.Client.Ack()
		}),
		plainly(func(c *conn) { // the client retransmits the Call, as RPC permits
			c.Client.Records(calling(2, 1), calling(2, 1))
			c.Server.Records(answering(2), answering(2))
			c.Client.Ack()
		})),
	neither("rpc-rejected", "over TCP",
		plainly(func(c *conn) {
			c.Client.Records(calling(2, 1))
			c.Server.Records(synth.Reply{XID: 2, Accept: 4}.Message())
			c.Client.Ack()
		}),
		plainly(ordinary)),
	neither("connection-rejected", "a TCP connection to the port of NFS",
		func(c *conn) {
			c.Client.TCP(2, nil)
			c.Server.RST()
		},
		plainly(ordinary)),
)
