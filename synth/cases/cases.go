// Package cases is a table of synthetic connections. For every rule of rdmadump, it has
// connections that violate the rule, one for each way to violate it. Each has a healthy
// twin, which is as similar as possible but does not violate the rule. The cases test the
// rules, and other programs that read such traffic can use them too: the command in
// synth/cmd/cases writes them as pcap files.
//
// To add a case, add its row to the file of its group.
package cases

import (
	"bytes"
	"slices"
	"time"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/synth"
)

// Case is a connection that violates a rule, and its healthy twin.
type Case struct {
	Rule      string // id of the rule
	Name      string // how the connection violates the rule
	AtFault   string // the side at fault: client, server, or "" for neither
	Severity  string // error, warning or note, if it differs from the severity of the rule
	Transport string // RoCE or IWARP; "" for both
	Options   synth.Options
	HalfOpen  bool // the functions establish the connection themselves
	Broken    func(c *synth.Conn)
	Healthy   func(c *synth.Conn)
}

// The transports.
const (
	RoCE  = "RoCE"
	IWARP = "iWARP"
)

// client, server and neither return the row of a table, named after the side at fault: a rule, how the connection violates
// it, the violation, and the healthy twin.
func client(rule, name string, broken, healthy script) Case {
	return Case{Rule: rule, Name: name, AtFault: "client", Broken: broken, Healthy: healthy}
}

func server(rule, name string, broken, healthy script) Case {
	return Case{Rule: rule, Name: name, AtFault: "server", Broken: broken, Healthy: healthy}
}

func neither(rule, name string, broken, healthy script) Case {
	return Case{Rule: rule, Name: name, Broken: broken, Healthy: healthy}
}

// as returns the case with another severity than that of the rule.
func (c Case) as(severity string) Case {
	c.Severity = severity
	return c
}

// on returns the case for one transport only.
func (c Case) on(transport string) Case {
	c.Transport = transport
	return c
}

func (c Case) with(o synth.Options) Case {
	c.Options = o
	return c
}

func (c Case) unconnected() Case {
	c.HalfOpen = true
	return c
}

// All returns the cases, group by group.
func All() []Case {
	return slices.Concat(private, credits, headers, chunks, binding, answers, backward, version2, transport, plain)
}

// Wire returns the frames of the case, broken or healthy, over a transport.
func (c Case) Wire(transport string, broken bool) *synth.Wire {
	w := synth.New()
	c.Play(w, transport, broken)
	return w
}

// Play adds the frames of the case, broken or healthy, to a Wire.
func (c Case) Play(w *synth.Wire, transport string, broken bool) {
	open := w.RoCE
	if transport == IWARP {
		open = w.IWARP
	}
	conn := open(c.Options)
	if !c.HalfOpen {
		conn.Connect()
	}
	if broken {
		c.Broken(conn)
	} else {
		c.Healthy(conn)
	}
}

// On reports whether the case applies to a transport.
func (c Case) On(transport string) bool { return c.Transport == "" || c.Transport == transport }

// The building blocks of the cases.

type conn = synth.Conn

// script sends what a connection carries.
type script = func(c *conn)

var (
	mem  = synth.Mem(0xa1, 4096)
	mem2 = synth.Mem(0xa2, 4096)
)

func data(n int) []byte { return bytes.Repeat([]byte("rdmadump"), n/8+1)[:n] }

// rpc sends a healthy NULL Call and its Reply.
func rpc(c *conn) { c.RPC(null, nullReply) }

// read returns a READ of NFSv3 with a Write chunk.
func read() synth.Call { return wholeRead.Offer(mem) }

func readReply() synth.Reply { return read3Reply(4096) }

// write returns a WRITE of NFSv3 with its data in a Read chunk.
func write() synth.Call { return write3(4096).Reduce(0xa1) }

func writeReply() synth.Reply { return synth.Write3Reply(4096) }

// read3Reply returns the Reply to a READ with n bytes, and write3 a WRITE of n bytes.
func read3Reply(n int) synth.Reply { return synth.Read3Reply(data(n)) }

func write3(n int) synth.Call { return synth.Write3(0, data(n)) }

// onFile returns a COMPOUND whose operations act on a file, and fileReply the Reply to it.
func onFile(operations ...synth.XDR) synth.Call {
	return synth.Compound(append([]synth.XDR{synth.OpPutFH()}, operations...)...)
}

func fileReply(results ...synth.XDR) synth.Reply {
	return synth.CompoundReply(append([]synth.XDR{synth.ResPutFH()}, results...)...)
}

var (
	shortListing = synth.Readdir3Reply("a")

	listing      = synth.Readdir3(4096).OfferReply(mem)
	listingReply = synth.Readdir3Reply("a", "b").Long()
	long         = synth.Symlink3("name", "target").Long(0xa1)
)

// Messages.
var (
	null       = synth.Null()
	nullReply  = synth.NullReply()
	cbNull     = synth.CBNull()
	chunkError = synth.ErrChunk()

	call5  = synth.Call{XID: 5}
	reply5 = synth.Reply{XID: 5}

	asVersion2  = synth.Call{Vers: 2}
	procedure99 = synth.Call{Proc: 99}
	noMsg       = synth.Call{Proc: rpcrdma.NoMsg}
	msgP        = synth.Call{Proc: rpcrdma.MsgP}
	done        = synth.Call{Proc: rpcrdma.Done}

	wholeRead    = synth.Read3(0, 4096)
	readSmall    = synth.Read3(0, 512).Offer(mem)
	getattr      = synth.Getattr3()
	symlinkReply = synth.Symlink3Reply()
)

// Healthy exchanges.
var (
	rpc5        = does(call5, nullReply)
	version2RPC = does(asVersion2, nullReply)

	reads    = does(read(), readReply())
	writes   = does(write(), writeReply())
	lists    = does(listing, listingReply)
	symlinks = does(long, symlinkReply)
)

// send sends only a Call, and answer only a Reply. The peer acknowledges them.
func send(by *synth.Side, call synth.Call) {
	by.Call(call)
	by.Peer.Ack()
}

func answer(by *synth.Side, reply synth.Reply) {
	by.Reply(reply)
	by.Peer.Ack()
}

// fulfil sends the RDMA Writes of a Reply, and the Reply.
func fulfil(c *conn, reply synth.Reply) {
	c.Server.Push(reply)
	answer(c.Server, reply)
}

// exchange sends a Call, its RDMA operations and the Reply as given, without [synth.Reply.To].
func exchange(c *conn, call synth.Call, reply synth.Reply) {
	send(c.Client, call)
	c.Server.Pull(call)
	fulfil(c, reply)
}

// does returns a script that sends a healthy exchange.
func does(call synth.Call, reply synth.Reply) script {
	return func(c *conn) { c.RPC(call, reply) }
}

// calls returns a script in which the client sends only a Call, and callsBack one in which the server does.
func calls(call synth.Call) script { return func(c *conn) { send(c.Client, call) } }

func callsBack(call synth.Call) script { return func(c *conn) { send(c.Server, call) } }

// opens returns a script that sends only a Call, which is not acknowledged.
func opens(call synth.Call) script { return func(c *conn) { c.Client.Call(call) } }

// serverWrites returns a script that sends an RDMA Write to the memory of mem, or where mem would be if it were larger, and
// serverReads one that sends an RDMA Read of it.
func serverWrites(offset uint64, n int) script {
	return func(c *conn) { c.Server.Write(mem.Handle, offset, data(n)) }
}

func serverReads(offset uint64, n int) script {
	return func(c *conn) { c.Server.Read(mem.Handle, offset, data(n)) }
}

// trusts returns a script that sends a healthy exchange whose Call has a credential.
func trusts(cred oncrpc.Auth) script { return does(synth.Call{Cred: cred}, nullReply) }

// after returns a script in which time passes.
func after(d time.Duration) script { return func(c *conn) { c.Wire.Advance(d) } }

func disconnects(c *conn) { c.Disconnect(c.Client) }

func serverDisconnects(c *conn) { c.Disconnect(c.Server) }

// whole returns a script that sends a healthy exchange, except that edit changes the Reply.
func whole(call synth.Call, reply synth.Reply, edit func(r *synth.Reply)) script {
	return func(c *conn) {
		call = numbered(call)
		r := reply.To(call)
		edit(&r)
		exchange(c, call, r)
	}
}

// edits returns the row of a case in which the Reply of a healthy exchange is changed.
func edits(rule, name string, call synth.Call, reply synth.Reply, edit func(r *synth.Reply)) Case {
	return server(rule, name, whole(call, reply, edit), does(call, reply))
}

// numbered returns the Call with an XID, which the Reply to it repeats.
func numbered(call synth.Call) synth.Call {
	call.XID = 77
	return call
}

// inTurn returns a script that consists of others.
func inTurn(all ...script) script {
	return func(c *conn) {
		for _, play := range all {
			play(c)
		}
	}
}
