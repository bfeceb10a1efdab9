// Package cases is a table of made-up connections: for every rule of rdmadump,
// connections that break it, each way to break it once, and beside each a twin
// that does not. They test the rules, and whatever else reads such traffic: the
// command in synth/cmd/cases writes them as pcap files.
//
// To add a case, add its row to the file of its group.
package cases

import (
	"bytes"
	"slices"

	"github.com/rdmadump/rdmadump/synth"
)

// Case is a connection that breaks a rule, and its twin.
type Case struct {
	Rule      string // its id
	Name      string // the way to break it
	Blames    string // who is accused: client, server, or nobody
	Severity  string // error, warning, note, where it is not the rule's own
	Transport string // RoCE, iWARP; either when empty
	Options   synth.Options
	HalfOpen  bool // the functions make the connection themselves
	Broken    func(w *synth.Wire, c *synth.Conn)
	Healthy   func(w *synth.Wire, c *synth.Conn)
}

// The transports.
const (
	RoCE  = "RoCE"
	IWARP = "iWARP"
)

// Sides.
const (
	client = "client"
	server = "server"
)

// All are the cases, group by group.
func All() []Case {
	return slices.Concat(private, credits, headers, chunks, binding, answers, backward, version2, transport)
}

// Wire makes the case, broken or healthy, over a transport.
func (c Case) Wire(transport string, broken bool) *synth.Wire {
	w := synth.New()
	open := w.RoCE
	if transport == IWARP {
		open = w.IWARP
	}
	conn := open(c.Options)
	if !c.HalfOpen {
		conn.Connect()
	}
	if broken {
		c.Broken(w, conn)
	} else {
		c.Healthy(w, conn)
	}
	return w
}

// On says whether the case is one of a transport.
func (c Case) On(transport string) bool { return c.Transport == "" || c.Transport == transport }

// What the cases are made of.

type wire = synth.Wire

type conn = synth.Conn

var (
	mem  = synth.Mem(0xa1, 4096)
	mem2 = synth.Mem(0xa2, 4096)
)

func data(n int) []byte { return bytes.Repeat([]byte("rdmadump"), n/8+1)[:n] }

// rpc is a healthy exchange of nothing.
func rpc(_ *wire, c *conn) { c.RPC(synth.Null(), synth.NullReply()) }

// read is a READ of NFSv3 with a Write chunk.
func read() synth.Call { return synth.Read3(0, 4096).Offer(mem) }

func readReply() synth.Reply { return synth.Read3Reply(data(4096)) }

// write is a WRITE of NFSv3 with its data in a Read chunk.
func write() synth.Call { return synth.Write3(0, data(4096)).Reduce(0xa1) }

func writeReply() synth.Reply { return synth.Write3Reply(4096) }

// goes is an exchange whose Reply is as it stands, not filled in.
func goes(c *conn, call synth.Call, reply synth.Reply) {
	c.Client.Call(call)
	c.Server.Ack()
	c.Server.Pull(call)
	c.Server.Push(reply)
	c.Server.Reply(reply)
	c.Client.Ack()
}

// whole is one as [synth.Conn.RPC] makes it, but for what edit does to the Reply.
func whole(call synth.Call, reply synth.Reply, edit func(r *synth.Reply)) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		call := call
		call.XID = 77
		r := reply.To(call)
		edit(&r)
		goes(c, call, r)
	}
}

// calls is a Call alone, acknowledged.
func calls(call synth.Call) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		c.Client.Call(call)
		c.Server.Ack()
	}
}

// does is a healthy exchange.
func does(call synth.Call, reply synth.Reply) func(*wire, *conn) {
	return func(_ *wire, c *conn) { c.RPC(call, reply) }
}
