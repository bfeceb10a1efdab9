package cases

import "github.com/rdmadump/rdmadump/synth"

// plainly returns a script that opens a TCP connection and exchanges one RPC over it, and then plays the rest.
func plainly(rest ...script) script {
	first := inTurn(asks(synth.Call{XID: 1}.Message()), replies(synth.Reply{XID: 1}.Message()))
	return inTurn(func(c *conn) { c.Open() }, first, inTurn(rest...))
}

// asks returns a script in which the client sends messages, and replies one in which the server does, each as a record.
func asks(messages ...synth.XDR) script {
	return func(c *conn) { c.Client.Records(messages...) }
}

func replies(messages ...synth.XDR) script {
	return func(c *conn) {
		c.Server.Records(messages...)
		c.Client.Ack()
	}
}

func acknowledges(c *conn) { c.Server.Ack() }

// calling returns a Call of NFS over TCP.
func calling(xid, procedure uint32) synth.XDR {
	return synth.Call{XID: xid, Procedure: procedure, Args: synth.XDR{}.Opaque([]byte("handle12"))}.Message()
}

// answering returns a Reply over TCP.
func answering(xid uint32) synth.XDR {
	return synth.Reply{XID: xid, Results: synth.XDR{}.Word(5, 0)}.Message()
}

// answered returns a script in which an RPC gets this Reply.
func answered(reply synth.XDR) script { return plainly(asks(calling(2, 1)), replies(reply)) }

// ordinary exchanges an RPC that violates nothing.
var ordinary = answered(answering(2))

// overTCP returns the cases as those of connections that carry NFS over TCP.
func overTCP(all ...Case) []Case {
	for i := range all {
		all[i].Transport, all[i].HalfOpen, all[i].Options.Server.Port = IWARP, true, 2049
	}
	return all
}

var plain = overTCP(
	client("rpc-record-truncated", "inside the header",
		plainly(asks(synth.XDR{}.Word(2, 0, 2, 100003, 3)), acknowledges), ordinary),
	server("rpc-record-truncated", "by the end of the stream",
		plainly(asks(calling(2, 1)), func(c *conn) {
			reply := synth.Record(answering(2))
			c.Server.Stream(reply[:len(reply)-4])
			c.Client.Ack()
		}, serverDisconnects),
		inTurn(ordinary, serverDisconnects)).as("warning"),
	client("rpc-header-malformed", "over TCP: a credential that is too long",
		plainly(asks(synth.XDR{}.Word(3, 0, 2, 100003, 3, 1, 1).Opaque(make([]byte, 404)).Word(0, 0)), acknowledges), ordinary),
	client("rpc-header-malformed", "over TCP: another version of RPC",
		plainly(asks(synth.XDR{}.Word(2, 0, 3, 100003, 3, 0, 0, 0, 0, 0)), replies(synth.Reply{XID: 2, Deny: []uint32{0, 2, 2}}.Message())),
		ordinary),
	server("rpc-header-malformed", "over TCP: an undefined reply state", answered(synth.XDR{}.Word(2, 1, 2, 0, 0, 0)), ordinary),
	server("rpc-header-malformed", "over TCP: an undefined accept state", answered(synth.Reply{XID: 2, Accept: 7}.Message()), ordinary),
	server("reply-without-call", "over TCP",
		plainly(replies(answering(7)), asks(calling(2, 1)), replies(answering(2))),
		plainly(func(c *conn) { c.Client.Stream(synth.Record(calling(2, 1), 0)) }, replies(answering(2)))), // an empty fragment first
	client("xid-in-use", "over TCP: another procedure",
		plainly(asks(calling(2, 1), calling(2, 4)), replies(answering(2))),
		// The client retransmits the Call, as RPC permits.
		plainly(asks(calling(2, 1), calling(2, 1)), replies(answering(2), answering(2)))),
	neither("rpc-rejected", "over TCP", answered(synth.Reply{XID: 2, Accept: 4}.Message()), ordinary),
	neither("connection-rejected", "a TCP connection to the port of NFS", func(c *conn) { c.Client.TCP(2, nil); c.Server.RST() }, ordinary),
)
