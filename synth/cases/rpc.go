package cases

import "github.com/rdmadump/rdmadump/synth"

// nfsTCP are the options of connections that carry NFS over TCP.
var nfsTCP = synth.Options{Server: synth.End{Port: 2049}}

// plainly returns a function that opens a TCP connection and exchanges one RPC over it, and then does
// the rest.
func plainly(rest func(c *conn)) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
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

var plain = []Case{
	{
		Rule: "rpc-record-truncated", Name: "inside the header", AtFault: client, Transport: IWARP, HalfOpen: true, Options: nfsTCP,
		Broken: plainly(func(c *conn) {
			c.Client.Stream(synth.Record(synth.XDR{}.Word(2, 0, 2, 100003, 3)))
			c.Server.Ack()
		}),
		Healthy: plainly(ordinary),
	},
	{
		Rule: "rpc-record-truncated", Name: "by the end of the stream", AtFault: server, Severity: "warning", Transport: IWARP, HalfOpen: true, Options: nfsTCP,
		Broken: plainly(func(c *conn) {
			c.Client.Records(calling(2, 1))
			reply := synth.Record(answering(2))
			c.Server.Stream(reply[:len(reply)-4])
			c.Client.Ack()
			c.Disconnect(c.Server)
		}),
		Healthy: plainly(func(c *conn) {
			ordinary(c)
			c.Disconnect(c.Server)
		}),
	},
	{
		Rule: "rpc-header-malformed", Name: "over TCP: a credential that is too long", AtFault: client, Transport: IWARP, HalfOpen: true, Options: nfsTCP,
		Broken: plainly(func(c *conn) {
			c.Client.Stream(synth.Record(synth.XDR{}.Word(3, 0, 2, 100003, 3, 1, 1).Opaque(make([]byte, 404)).Word(0, 0)))
			c.Server.Ack()
		}),
		Healthy: plainly(ordinary),
	},
	{
		Rule: "rpc-header-malformed", Name: "over TCP: another version of RPC", AtFault: client, Transport: IWARP, HalfOpen: true, Options: nfsTCP,
		Broken: plainly(func(c *conn) {
			c.Client.Records(synth.XDR{}.Word(2, 0, 3, 100003, 3, 0, 0, 0, 0, 0))
			c.Server.Records(synth.Reply{XID: 2, Deny: []uint32{0, 2, 2}}.Message())
			c.Client.Ack()
		}),
		Healthy: plainly(ordinary),
	},
	{
		Rule: "rpc-header-malformed", Name: "over TCP: an undefined reply state", AtFault: server, Transport: IWARP, HalfOpen: true, Options: nfsTCP,
		Broken: plainly(func(c *conn) {
			c.Client.Records(calling(2, 1))
			c.Server.Records(synth.XDR{}.Word(2, 1, 2, 0, 0, 0))
			c.Client.Ack()
		}),
		Healthy: plainly(ordinary),
	},
	{
		Rule: "rpc-header-malformed", Name: "over TCP: an undefined accept state", AtFault: server, Transport: IWARP, HalfOpen: true, Options: nfsTCP,
		Broken: plainly(func(c *conn) {
			c.Client.Records(calling(2, 1))
			c.Server.Records(synth.Reply{XID: 2, Accept: 7}.Message())
			c.Client.Ack()
		}),
		Healthy: plainly(ordinary),
	},
	{
		Rule: "reply-without-call", Name: "over TCP", AtFault: server, Transport: IWARP, HalfOpen: true, Options: nfsTCP,
		Broken: plainly(func(c *conn) {
			c.Server.Records(answering(7))
			c.Client.Ack()
			ordinary(c)
		}),
		Healthy: plainly(func(c *conn) { // the Call begins with an empty fragment
			c.Client.Stream(synth.Record(calling(2, 1), 0))
			c.Server.Records(answering(2))
			c.Client.Ack()
		}),
	},
	{
		Rule: "xid-in-use", Name: "over TCP: another procedure", AtFault: client, Transport: IWARP, HalfOpen: true, Options: nfsTCP,
		Broken: plainly(func(c *conn) {
			c.Client.Records(calling(2, 1), calling(2, 4))
			c.Server.Records(answering(2))
			c.Client.Ack()
		}),
		Healthy: plainly(func(c *conn) { // the client retransmits the Call, as RPC permits
			c.Client.Records(calling(2, 1), calling(2, 1))
			c.Server.Records(answering(2), answering(2))
			c.Client.Ack()
		}),
	},
	{
		Rule: "rpc-rejected", Name: "over TCP", Transport: IWARP, HalfOpen: true, Options: nfsTCP,
		Broken: plainly(func(c *conn) {
			c.Client.Records(calling(2, 1))
			c.Server.Records(synth.Reply{XID: 2, Accept: 4}.Message())
			c.Client.Ack()
		}),
		Healthy: plainly(ordinary),
	},
	{
		Rule: "connection-rejected", Name: "a TCP connection to the port of NFS", Transport: IWARP, HalfOpen: true, Options: nfsTCP,
		Broken: func(_ *wire, c *conn) {
			c.Client.TCP(2, nil)
			c.Server.RST()
		},
		Healthy: plainly(ordinary),
	},
}
