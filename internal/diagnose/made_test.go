package diagnose

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// Captures that are made: the kinds alone, in pairs, cut, and without a direction, and chains of requests that were put off.

// stage is where scenes play: a wire, and hosts of their own for each scene.
type stage struct {
	*synth.Wire
	slot, sequence uint32
	shared         bool // all scenes have the same server
}

// server returns the address of the scene's server.
func (s *stage) server() netip.Addr {
	if s.shared {
		return netip.AddrFrom4([4]byte{10, 2, 0, 1})
	}
	return netip.AddrFrom4([4]byte{10, 2, byte(s.slot), 1})
}

// refuseOwn lets a client refuse an access to the memory of its Call, and close the connection.
func (s *stage) refuseOwn() {
	c := s.connect()
	call := synth.Write3(0, make([]byte, 4096)).Reduce(0xa1)
	c.Client.Call(call)
	c.Server.Ack()
	c.Server.ReadRequest(0xa1, call.Reads[0].Offset, 4096)
	c.Client.Refuse()
	c.Disconnect(c.Client)
	s.Advance(time.Second)
}

// overrun lets a server write to memory that its client has not exposed, and refuses.
func (s *stage) overrun(c *synth.Conn) {
	c.Client.Call(synth.Read3(0, 4096).Offer(synth.Mem(0xa1, 4096)))
	c.Server.Ack()
	s.Advance(time.Millisecond)
	c.Server.Write(0xb2, 0, make([]byte, 4096))
	c.Client.Refuse()
	c.Disconnect(c.Client)
}

// connect returns a connection of the scene's hosts, established and used.
func (s *stage) connect() *synth.Conn {
	c := s.conn()
	c.Connect()
	s.healthy(c, 4)
	return c
}

// conn returns a connection of the scene's hosts that is not established.
func (s *stage) conn() *synth.Conn {
	return s.RoCE(synth.Options{
		Client: synth.End{Addr: netip.AddrFrom4([4]byte{10, 1, byte(s.slot), 1})}, Server: synth.End{Addr: s.server()},
	})
}

// healthy plays RPCs that take 1 ms.
func (s *stage) healthy(c *synth.Conn, n int) {
	for range n {
		s.rpc(c, synth.Getattr3(), synth.Getattr3Reply(), time.Millisecond)
	}
}

// rpc plays an RPC that takes a time.
func (s *stage) rpc(c *synth.Conn, call synth.Call, reply synth.Reply, takes time.Duration) {
	c.Client.Call(call)
	c.Server.Ack()
	s.Advance(takes)
	c.Server.Reply(reply)
	c.Client.Ack()
	s.Advance(time.Millisecond)
}

// probe plays Calls of some versions, of which the server knows version 1.
func (s *stage) probe(all ...uint32) {
	c := s.connect()
	for _, vers := range all {
		reply := synth.NullReply()
		if vers != 1 {
			reply = synth.ErrVers(1, 1)
		}
		s.rpc(c, synth.Call{Vers: vers, XID: 0x5000 + vers}, reply.To(synth.Call{Vers: vers, XID: 0x5000 + vers}), time.Millisecond)
	}
	c.Disconnect(c.Client)
}

// read4 plays a READ of NFSv4.1 at an offset, whose SEQUENCE or READ fails with a status unless that is 0.
func (s *stage) read4(c *synth.Conn, offset uint64, status uint32) {
	s.sequence++
	call := synth.Compound(synth.OpSequence(s.sequence), synth.OpPutFH(), synth.OpRead(offset, 4))
	reply := synth.CompoundReply(synth.ResSequence(s.sequence), synth.ResPutFH(), synth.ResRead([]byte("data")))
	switch {
	case slices.Contains(ofSequence, status):
		reply = synth.CompoundFailed(status, synth.ResFailed(53, status))
	case status != 0:
		reply = synth.CompoundFailed(status, synth.ResSequence(s.sequence), synth.ResPutFH(), synth.ResFailed(25, status))
	}
	s.rpc(c, call, reply, time.Millisecond)
}

// iwarp returns an iWARP connection of the scene's hosts that is not established.
func (s *stage) iwarp() *synth.Conn {
	return s.IWARP(synth.Options{
		Client: synth.End{Addr: netip.AddrFrom4([4]byte{10, 1, byte(s.slot), 1})}, Server: synth.End{Addr: s.server()},
	})
}

// pulled plays a WRITE whose data the server reads, and which comes a number of times.
func (s *stage) pulled(c *synth.Conn, times int) {
	call := synth.Write3(0, make([]byte, 200<<10)).Reduce(0xa1)
	c.Client.Call(call)
	c.Server.Ack()
	data := c.Server.Pull(call)
	for range times - 1 {
		s.Advance(5 * time.Millisecond)
		s.Retransmit(data...)
	}
	c.Server.Reply(synth.Write3Reply(200 << 10))
	c.Client.Ack()
	s.healthy(c, 4)
	c.Disconnect(c.Client)
}

// backchannel returns a connection with a session that has a backchannel.
func (s *stage) backchannel() *synth.Conn {
	c := s.connect()
	s.rpc(c, synth.Compound(synth.OpCreateSession(synth.ConnBackChannel)), synth.CompoundReply(synth.ResCreateSession(synth.ConnBackChannel)), time.Millisecond)
	return c
}

// recalled plays a request for a file whose delegation another client returns after a time.
func (s *stage) recalled(after time.Duration) {
	c := s.connect()
	s.read4(c, 0, 0)
	holder := s.RoCE(synth.Options{
		Client: synth.End{Addr: netip.AddrFrom4([4]byte{10, 1, byte(s.slot), 2})}, Server: synth.End{Addr: s.server()},
	})
	holder.Connect()
	s.rpc(holder, synth.Compound(synth.OpCreateSession(synth.ConnBackChannel)), synth.CompoundReply(synth.ResCreateSession(synth.ConnBackChannel)), time.Millisecond)
	s.read4(holder, 0, 0)
	s.sequence++
	write := synth.Compound(synth.OpSequence(s.sequence), synth.OpPutFH(), synth.OpWrite(0, []byte("data")))
	done := synth.CompoundReply(synth.ResSequence(s.sequence), synth.ResPutFH(), synth.ResWrite(4))
	c.Client.Call(write)
	c.Server.Ack()
	s.Advance(time.Millisecond)
	holder.Server.RPC(synth.CBCompound(synth.OpCBSequence(s.sequence), synth.OpCBRecall()), synth.CompoundReply(synth.ResCBSequence(s.sequence), synth.ResCBRecall()))
	s.Advance(after)
	s.sequence++
	back := synth.Compound(synth.OpSequence(s.sequence), synth.OpPutFH(), synth.XDR{}.Word(8, 0).Fixed(make([]byte, 12)))
	s.rpc(holder, back, synth.CompoundReply(synth.ResSequence(s.sequence), synth.ResPutFH(), synth.XDR{}.Word(8, 0)), time.Millisecond)
	c.Server.Reply(done)
	c.Client.Ack()
	c.Disconnect(c.Client)
	holder.Disconnect(holder.Client)
}

// putOff plays a READ that is answered with a status for 2 s.
func (s *stage) putOff(status uint32) {
	c := s.connect()
	for range 5 {
		s.read4(c, 0, status)
		s.Advance(400 * time.Millisecond)
	}
	s.read4(c, 0, 0)
	c.Disconnect(c.Client)
}

// crowd plays many READs, of which as many are under way as the server grants credits, or 8.
func (s *stage) crowd(credits uint32) {
	c := s.conn()
	c.Connect()
	granted := func(xid uint32) synth.Reply {
		reply := synth.Getattr3Reply()
		reply.XID, reply.Credits = xid, credits
		return reply
	}
	var open []uint32
	next := 0x5550000 + s.slot<<8
	s.rpc(c, synth.Getattr3(), granted(0), time.Millisecond)
	for range 60 {
		if len(open) == int(min(credits, 8)) {
			s.Advance(5 * time.Millisecond)
			c.Server.Reply(granted(open[0]))
			c.Client.Ack()
			open = open[1:]
		}
		next++
		call := synth.Getattr3()
		call.XID = next
		c.Client.Call(call)
		c.Server.Ack()
		open = append(open, next)
	}
	for _, xid := range open {
		c.Server.Reply(granted(xid))
		c.Client.Ack()
	}
	c.Disconnect(c.Client)
}

// again plays a SYMLINK whose connection the server closes, and that is sent again on another one and answered there.
func (s *stage) again(reply synth.Reply) {
	c := s.connect()
	call := synth.Symlink3("a", "b")
	call.XID = 0x6660000 + s.slot
	c.Client.Call(call)
	c.Server.Ack()
	s.Advance(time.Second)
	c.Disconnect(c.Server)
	s.Advance(time.Second)
	c = s.connect()
	s.rpc(c, call, reply, time.Millisecond)
	s.healthy(c, 2)
}

// acknowledged plays RPCs whose Replies the client acknowledges after a time.
func (s *stage) acknowledged(after time.Duration) {
	c := s.conn()
	c.Connect()
	for range 40 {
		c.Client.Call(synth.Getattr3())
		s.Advance(time.Millisecond)
		c.Server.Ack()
		c.Server.Reply(synth.Getattr3Reply())
		s.Advance(after)
		c.Client.Ack()
		s.Advance(time.Millisecond)
	}
	c.Disconnect(c.Client)
}

// ofSequence has the statuses with which SEQUENCE fails.
var ofSequence = []uint32{10052, 10078, 10055, 10063, 10076, 10068}

// scene is trouble that one kind has to find, or looks like trouble that another kind finds: worst is its severity, and "" means that nothing may be
// worse than a note. With it, other problems worse than notes may be of the kinds also, and if the capture is cut, of the kinds cut.
type scene struct {
	kind      string // "" for healthy hosts
	worst     record.Severity
	place     string
	not       string // kind whose twin it is: that must not speak
	also, cut []string
	play      func(*stage)
}

// harmful reports whether something is worse than a note.
func (s *scene) harmful() bool { return s.worst != "" && s.worst != record.Note }

var scenes = []scene{
	{"", "", "", "", nil, nil, func(s *stage) {
		c := s.connect()
		s.healthy(c, 20)
		c.Disconnect(c.Client)
	}},
	{"server-gone", record.Error, "server", "", nil, []string{"connection-lost"}, func(s *stage) {
		c := s.connect()
		c.Disconnect(c.Server)
		for range 5 {
			s.Advance(time.Second)
			s.conn().Reject()
		}
	}},
	{"server-gone", record.Error, "server", "", nil, []string{"unanswered"}, func(s *stage) { // the end of the connection is not captured
		c := s.connect()
		c.Client.Call(synth.Getattr3())
		c.Server.Ack()
		for range 5 {
			s.Advance(time.Second)
			s.conn().Reject()
		}
	}},
	{"", "", "", "server-gone", nil, nil, func(s *stage) { // twin: accepted in the end
		c := s.connect()
		c.Disconnect(c.Server)
		s.Advance(time.Second)
		s.conn().Reject()
		s.Advance(time.Second)
		s.healthy(s.connect(), 4)
	}},
	{"mount-failed", record.Error, "server", "", nil, nil, func(s *stage) {
		c := s.conn()
		c.Connect()
		s.rpc(c, synth.Null(), synth.NullReply(), time.Millisecond)
		s.rpc(c, synth.Compound(synth.OpCreateSession(0)), synth.CompoundFailed(10021, synth.ResFailed(43, 10021)), time.Millisecond)
		c.Disconnect(c.Client)
	}},
	{"", "", "", "mount-failed", nil, []string{"mount-failed"}, func(s *stage) { // twin: another version is mounted
		c := s.conn()
		c.Connect()
		s.rpc(c, synth.Compound(synth.OpCreateSession(0)), synth.CompoundFailed(10021, synth.ResFailed(43, 10021)), time.Millisecond)
		s.healthy(c, 4)
		c.Disconnect(c.Client)
	}},
	{"client-restarted", record.Error, "client", "", nil, nil, func(s *stage) {
		s.exchange(s.connect(), 1)
		s.Advance(20 * time.Second)
		s.exchange(s.connect(), 2)
	}},
	{"", "", "", "client-restarted", nil, nil, func(s *stage) { // twin: the same verifier after a pause
		s.exchange(s.connect(), 1)
		s.Advance(20 * time.Second)
		s.exchange(s.connect(), 1)
	}},
	{"client-restarted", record.Error, "client", "", nil, []string{"connection-lost", "unanswered"}, func(s *stage) { // it had closed a connection long before
		c := s.connect()
		s.exchange(c, 1)
		c.Disconnect(c.Client)
		s.Advance(time.Second)
		s.healthy(s.connect(), 4)
		s.Advance(20 * time.Second)
		s.exchange(s.connect(), 2)
	}},
	{"", "", "", "client-restarted", nil, []string{"client-restarted"}, func(s *stage) { // twin: it closed its last connection
		s.exchange(s.connect(), 1)
		c := s.connect()
		c.Disconnect(c.Client)
		s.Advance(20 * time.Second)
		s.exchange(s.connect(), 2)
	}},
	{"mount-failed", record.Error, "config server", "", nil, nil, func(s *stage) { // the export is not there
		c := s.conn()
		c.Connect()
		lookup := synth.Compound(synth.OpPutRootFH(), synth.OpLookup("nothere"))
		s.rpc(c, lookup, synth.CompoundFailed(2, synth.ResPutRootFH(), synth.ResFailed(15, 2)), time.Millisecond)
		s.rpc(c, synth.Compound(synth.XDR{}.Word(57).Hyper(0x1234)), synth.CompoundReply(synth.XDR{}.Word(57, 0)), time.Millisecond)
		c.Disconnect(c.Client)
	}},
	{"", "", "", "mount-failed", nil, nil, func(s *stage) { // twin: a name that is not there, before it is unmounted
		c := s.connect()
		s.read4(c, 0, 0)
		lookup := synth.Compound(synth.OpPutRootFH(), synth.OpLookup("nothere"))
		s.rpc(c, lookup, synth.CompoundFailed(2, synth.ResPutRootFH(), synth.ResFailed(15, 2)), time.Millisecond)
		s.rpc(c, synth.Compound(synth.XDR{}.Word(57).Hyper(0x1234)), synth.CompoundReply(synth.XDR{}.Word(57, 0)), time.Millisecond)
		c.Disconnect(c.Client)
	}},
	{"outage", record.Error, "network server", "", nil, []string{"retransmission"}, func(s *stage) { // RDMA operations of no RPC
		c := s.conn()
		c.Server.Port = 4420
		c.Client.PrivateData, c.Server.PrivateData = synth.NoPrivateData(), synth.NoPrivateData()
		c.Connect()
		c.Client.Write(0x1234, 0, make([]byte, 1024))
		c.Server.Ack()
		sent := c.Client.Write(0x1234, 0, make([]byte, 1024))
		for range 6 {
			s.Advance(2 * time.Second)
			s.Retransmit(sent...)
		}
	}},
	{"mount-failed", record.Error, "network server", "", nil, nil, func(s *stage) { // a request is sent again and again
		sent := s.conn().REQ()
		for range 4 {
			s.Advance(4 * time.Second)
			s.Retransmit(sent)
		}
	}},
	{"mount-failed", record.Error, "network server", "", nil, nil, func(s *stage) { // the TCP handshake is not answered
		sent := s.iwarp().Open()
		s.Drop(sent[1:]...)
		for i := range 4 {
			s.Advance(time.Second << i)
			s.Retransmit(sent[0])
		}
	}},
	{"mount-failed", record.Error, "server", "", nil, nil, func(s *stage) { // nothing listens
		for range 3 {
			c := s.iwarp()
			s.Drop(c.Open()[1:]...)
			c.Server.RST()
			s.Advance(time.Second)
		}
	}},
	{"mount-failed", record.Error, "client server", "", nil, nil, func(s *stage) { // the server knows the queue pair
		for range 5 {
			c := s.conn()
			c.REQ()
			c.Server.REJ(10)
			s.Advance(time.Second)
		}
	}},
	{"", "", "", "mount-failed", nil, []string{"mount-failed"}, func(s *stage) { // twin: answered late
		c := s.conn()
		sent := c.REQ()
		for range 3 {
			s.Advance(4 * time.Second)
			s.Retransmit(sent)
		}
		c.REP()
		c.RTU()
		s.healthy(c, 4)
	}},
	{"", "", "", "mount-failed", nil, nil, func(s *stage) { // twin: the capture ends soon after the requests
		s.healthy(s.connect(), 4)
		sent := s.RoCE(synth.Options{Client: synth.End{Addr: netip.AddrFrom4([4]byte{10, 1, byte(s.slot), 9})}, Server: synth.End{Addr: s.server()}}).REQ()
		s.Advance(500 * time.Millisecond)
		s.Retransmit(sent)
		s.Retransmit(sent)
	}},
	{"outage", record.Error, "network server", "", nil, []string{"unanswered", "retransmission"}, func(s *stage) { // a single Call, sent again and again
		c := s.connect()
		sent := c.Client.Call(synth.Getattr3())
		for range 6 {
			s.Advance(2 * time.Second)
			s.Retransmit(sent...)
		}
		c.Server.Ack()
		c.Server.Reply(synth.Getattr3Reply())
		c.Client.Ack()
		s.healthy(c, 2)
		c.Disconnect(c.Client)
	}},
	{"retransmission", record.Warning, "network", "outage", nil, []string{"unanswered"}, func(s *stage) { // twin: once
		c := s.connect()
		sent := c.Client.Call(synth.Getattr3())
		s.Advance(2 * time.Second)
		s.Retransmit(sent...)
		c.Server.Ack()
		c.Server.Reply(synth.Getattr3Reply())
		c.Client.Ack()
		s.healthy(c, 2)
		c.Disconnect(c.Client)
	}},
	{"client-gave-up", record.Warning, "client", "", nil, []string{"unanswered", "connection-lost", "protocol-violation", "terminate"}, func(s *stage) {
		c := s.connect()
		call := synth.Write3(0, make([]byte, 4096)).Reduce(0xa1)
		c.Client.Call(call)
		c.Server.Ack()
		s.Advance(time.Second)
		c.Server.ReadRequest(0xa1, call.Reads[0].Offset, 4096)
		c.Client.Refuse()
		c.Disconnect(c.Client)
		s.Advance(time.Second)
	}},
	{"inline-overrun", record.Error, "server", "", []string{"protocol-violation"}, []string{"terminate"}, func(s *stage) {
		c := s.connect()
		c.Client.Call(synth.Readdir3(8000))
		c.Server.Ack()
		s.Advance(time.Millisecond)
		c.Server.Reply(synth.Readdir3Reply(slices.Repeat([]string{"a name of thirty-two characters.."}, 120)...))
		c.Client.Nak(3)
		c.Disconnect(c.Client)
		s.Advance(2 * time.Second)
	}},
	{"", "", "", "inline-overrun", nil, nil, func(s *stage) { // twin: a Reply that fits
		c := s.connect()
		s.rpc(c, synth.Readdir3(4000), synth.Readdir3Reply("a", "b"), time.Millisecond)
		c.Disconnect(c.Client)
	}},
	{"memory-violation", record.Error, "server", "", nil, []string{"unanswered", "connection-lost", "protocol-violation"}, func(s *stage) {
		s.overrun(s.connect())
		s.Advance(2 * time.Second)
	}},
	{"", "", "", "memory-violation", nil, nil, func(s *stage) { // twin: memory that was exposed
		c := s.connect()
		c.RPC(synth.Read3(0, 4096).Offer(synth.Mem(0xa1, 4096)), synth.Read3Reply(make([]byte, 4096)).Invalidating(0xa1))
		c.Disconnect(c.Client)
	}},
	{"no-receive-buffer", record.Error, "server", "", nil, []string{"unanswered"}, func(s *stage) {
		c := s.connect()
		sent := c.Client.Call(synth.Getattr3())
		c.Server.NotReady()
		s.Advance(20 * time.Millisecond)
		s.Retransmit(sent...)
		c.Server.Ack()
		s.Advance(time.Millisecond)
		c.Server.Reply(synth.Getattr3Reply())
		c.Client.Ack()
		c.Disconnect(c.Client)
	}},
	{"rdma-error", record.Error, "client", "", nil, []string{"unanswered", "protocol-violation"}, func(s *stage) {
		c := s.connect()
		c.Client.Send([]byte{0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 1})
		c.Server.Ack()
		c.Server.Reply(synth.Reply{XID: 9, Proc: 4, Err: 2})
		c.Client.Ack()
		c.Disconnect(c.Client)
	}},
	{"outage", record.Error, "network server", "", []string{"retransmission"}, []string{"unanswered", "retransmission", "slow-rpc"}, func(s *stage) {
		c := s.connect()
		a, b := synth.Getattr3(), synth.Read3(0, 16)
		a.XID, b.XID = 0x77770001+s.slot<<8, 0x77770002+s.slot<<8
		sent := slices.Concat(c.Client.Call(a), c.Client.Call(b))
		for range 6 {
			s.Advance(2 * time.Second)
			s.Retransmit(sent...)
		}
		c.Server.Ack()
		ra, rb := synth.Getattr3Reply(), synth.Read3Reply(make([]byte, 16))
		ra.XID, rb.XID = a.XID, b.XID
		c.Server.Reply(ra)
		c.Server.Reply(rb)
		c.Client.Ack()
		s.healthy(c, 2)
		c.Disconnect(c.Client)
	}},
	{"outage", record.Error, "network server", "", nil, []string{"unanswered", "slow-rpc"}, func(s *stage) { // without a packet that is sent again
		c := s.connect()
		a, b := synth.Getattr3(), synth.Read3(0, 16)
		a.XID, b.XID = 0x77770001+s.slot<<8, 0x77770002+s.slot<<8
		c.Client.Call(a)
		c.Client.Call(b)
		c.Server.Ack()
		s.Advance(8 * time.Second)
		ra, rb := synth.Getattr3Reply(), synth.Read3Reply(make([]byte, 16))
		ra.XID, rb.XID = a.XID, b.XID
		c.Server.Reply(ra)
		c.Server.Reply(rb)
		c.Client.Ack()
		c.Disconnect(c.Client)
	}},
	{"slow-rpc", record.Warning, "network server", "outage", nil, []string{"unanswered"}, func(s *stage) { // twin: a single RPC
		c := s.connect()
		s.rpc(c, synth.Getattr3(), synth.Getattr3Reply(), 8*time.Second)
		c.Disconnect(c.Client)
	}},
	{"", "", "", "outage", nil, nil, func(s *stage) { // twin: below 1 s, and few
		c := s.connect()
		s.rpc(c, synth.Getattr3(), synth.Getattr3Reply(), 300*time.Millisecond)
		s.healthy(c, 40)
		c.Disconnect(c.Client)
	}},
	{"retransmission", record.Warning, "network", "", nil, []string{"unanswered"}, func(s *stage) {
		c := s.connect()
		sent := c.Client.Call(synth.Getattr3())
		s.Advance(500 * time.Millisecond)
		s.Retransmit(sent...)
		c.Server.Ack()
		c.Server.Reply(synth.Getattr3Reply())
		c.Client.Ack()
		s.healthy(c, 2)
		c.Disconnect(c.Client)
	}},
	{"connection-lost", record.Error, "server", "", nil, []string{"unanswered"}, func(s *stage) {
		c := s.connect()
		c.Client.Call(synth.Getattr3())
		c.Server.Ack()
		s.Advance(time.Second)
		c.Disconnect(c.Server)
		s.Advance(2 * time.Second)
		s.healthy(s.connect(), 2)
	}},
	{"unanswered", record.Error, "network server", "", nil, []string{"slow-rpc"}, func(s *stage) {
		c := s.connect()
		c.Client.Call(synth.Getattr3())
		c.Server.Ack()
		s.Advance(20 * time.Second)
		s.healthy(s.connect(), 2)
		s.Advance(2 * time.Second)
		s.healthy(s.connect(), 2)
	}},
	{"rpc-failed", record.Warning, "server", "", nil, nil, func(s *stage) {
		c := s.connect()
		s.rpc(c, synth.Read3(0, 16), synth.Failed(5, 0), time.Millisecond)
		c.Disconnect(c.Client)
	}},
	{"put-off", record.Note, "server", "rpc-failed", nil, nil, func(s *stage) { // twin: asked to try again
		c := s.connect()
		s.read4(c, 0, 10008)
		s.read4(c, 0, 0)
		c.Disconnect(c.Client)
	}},
	{"rpc-failed", record.Note, "rpc", "", nil, nil, func(s *stage) { // a status that is no fault
		c := s.connect()
		s.rpc(c, synth.Read3(0, 16), synth.Failed(13, 0), time.Millisecond)
		c.Disconnect(c.Client)
	}},
	{"rpc-failed", record.Note, "rpc", "", nil, nil, func(s *stage) { // the client cannot execute a callback
		c := s.backchannel()
		c.Server.RPC(synth.CBCompound(synth.OpCBSequence(1)), synth.CompoundFailed(10006, synth.ResFailed(11, 10006)))
		c.Disconnect(c.Client)
	}},
	{"unanswered", record.Error, "client network", "", nil, []string{"connection-lost"}, func(s *stage) { // a callback
		c := s.backchannel()
		c.Server.Call(synth.CBCompound(synth.OpCBSequence(1), synth.OpCBRecall()))
		c.Client.Ack()
		s.Advance(20 * time.Second)
		s.read4(c, 0, 0)
		s.Advance(20 * time.Second)
		s.read4(c, 0, 0)
	}},
	{"connection-lost", record.Warning, "server", "", nil, []string{"unanswered"}, func(s *stage) { // with a callback in flight
		c := s.backchannel()
		c.Server.Call(synth.CBCompound(synth.OpCBSequence(1), synth.OpCBRecall()))
		c.Client.Ack()
		s.Advance(5 * time.Millisecond)
		c.Disconnect(c.Server)
	}},
	{"unanswered", record.Note, "server", "connection-lost", nil, nil, func(s *stage) { // twin: it needed no Reply
		c := s.backchannel()
		c.Server.Call(synth.CBNull())
		c.Client.Ack()
		s.Advance(5 * time.Millisecond)
		c.Disconnect(c.Server)
	}},
	{"protocol-violation", record.Warning, "server", "", nil, nil, func(s *stage) {
		c := s.connect()
		reply := synth.Getattr3Reply()
		call := synth.Getattr3().OfferReply(synth.Mem(0xa1, 4096))
		c.Client.Call(call)
		c.Server.Ack()
		c.Server.Reply(reply)
		c.Client.Ack()
		c.Disconnect(c.Client)
	}},
	{"promise-broken", record.Warning, "client network server", "", nil, nil, func(s *stage) {
		c := s.connect()
		for range 5 {
			s.flagged(c, 1)
			s.Advance(time.Second)
		}
	}},
	{"", "", "", "promise-broken", nil, nil, func(s *stage) { // twin: for a moment after mounting
		c := s.connect()
		for i := range uint32(12) {
			s.flagged(c, b2u(i < 3))
			s.Advance(100 * time.Millisecond)
		}
	}},
	{"promise-broken", record.Note, "client network server", "", nil, []string{"promise-broken"}, func(s *stage) { // the flag goes away
		c := s.connect()
		for i := range uint32(6) {
			s.flagged(c, b2u(i < 3))
			s.Advance(time.Second)
		}
	}},
	{"corruption", record.Warning, "network", "", []string{"retransmission"}, []string{"unanswered"}, func(s *stage) {
		c := s.connect()
		for range 6 {
			sent := c.Client.Call(synth.Getattr3())
			sent[0].Corrupt(8 * (len(sent[0].Data) - 12))
			s.Advance(500 * time.Millisecond)
			again := s.Retransmit(sent...)
			again[0].Corrupt(8 * (len(again[0].Data) - 12))
			c.Server.Ack()
			c.Server.Reply(synth.Getattr3Reply())
			c.Client.Ack()
		}
		c.Disconnect(c.Client)
	}},
	{"path-slower", record.Warning, "network server", "", []string{"slow-rpc"}, []string{"slow-rpc"}, func(s *stage) {
		c := s.conn()
		c.Connect()
		for i := range 90 {
			c.Client.Call(synth.Getattr3())
			if s.Advance(time.Millisecond); i >= 30 && i < 80 {
				s.Advance(30 * time.Millisecond)
			}
			c.Server.Ack()
			c.Server.Reply(synth.Getattr3Reply())
			c.Client.Ack()
			s.Advance(100 * time.Millisecond)
		}
	}},
	{"path-slower", record.Warning, "network server", "", []string{"slow-rpc"}, []string{"slow-rpc"}, func(s *stage) { // to the end
		c := s.conn()
		c.Connect()
		for i := range 80 {
			c.Client.Call(synth.Getattr3())
			if s.Advance(time.Millisecond); i >= 30 {
				s.Advance(30 * time.Millisecond)
			}
			c.Server.Ack()
			c.Server.Reply(synth.Getattr3Reply())
			c.Client.Ack()
			s.Advance(100 * time.Millisecond)
		}
	}},
	{"", "", "", "path-slower", nil, nil, func(s *stage) { // twin: the server is slower, not the path
		c := s.connect()
		for i := range 90 {
			s.rpc(c, synth.Getattr3(), synth.Getattr3Reply(), time.Duration(1+30*b2u(i >= 30 && i < 60))*time.Millisecond)
			s.Advance(100 * time.Millisecond)
		}
	}},
	{"capture-gap", record.Warning, "capture", "", nil, nil, func(s *stage) {
		c := s.connect()
		for i := range 60 {
			if sent := c.Client.RPC(synth.Getattr3(), synth.Getattr3Reply()); i%5 == 2 {
				s.Drop(sent...)
			}
			s.Advance(time.Millisecond)
		}
		c.Disconnect(c.Client)
	}},
	{"", "", "", "capture-gap", nil, nil, func(s *stage) { // twin: it begins in the middle of a connection, and another one ends in it
		c := s.conn()
		s.Drop(c.Connect()...)
		s.healthy(c, 30)
		s.healthy(s.connect(), 4)
	}},
	{"server-restarted", record.Error, "server", "", nil, []string{"connection-lost", "unanswered", "server-gone"}, func(s *stage) {
		c := s.connect()
		s.read4(c, 0, 0)
		s.restart(c)
	}},
	{"server-restarted", record.Error, "server", "retransmission", nil, []string{"outage", "connection-lost", "unanswered", "server-gone", "retransmission"}, func(s *stage) { // twin: sent again while the server is down
		c := s.connect()
		s.read4(c, 0, 0)
		s.down(c)
		s.conn().Reject()
		s.Advance(3 * time.Second)
		c = s.connect()
		s.read4(c, 0, 10052)
		s.read4(c, 0, 0)
	}},
	{"server-gone", record.Error, "server", "retransmission", nil, []string{"outage", "connection-lost", "unanswered", "retransmission"}, func(s *stage) { // twin: the same, for good
		s.down(s.connect())
		for range 3 {
			s.conn().Reject()
			s.Advance(time.Second)
		}
	}},
	{"", "", "", "server-restarted", nil, []string{"server-gone"}, func(s *stage) { // twin: it closed the connection, and knows the client's state afterwards
		c := s.connect()
		s.read4(c, 0, 0)
		c.Disconnect(c.Server)
		s.Advance(3 * time.Second)
		s.conn().Reject()
		s.Advance(3 * time.Second)
		c = s.connect()
		s.read4(c, 0, 0)
	}},
	{"client-gave-up", record.Warning, "client", "", nil, []string{"unanswered", "connection-lost", "protocol-violation", "terminate"}, func(s *stage) { // at once, and it goes on
		s.refuseOwn()
		s.connect()
	}},
	{"terminate", record.Error, "client", "client-gave-up", nil, []string{"unanswered", "protocol-violation", "connection-lost"}, func(s *stage) { // twin: it refuses a Call's memory at once
		s.refuseOwn()
	}},
	{"slow-rpc", record.Warning, "network server", "client-gave-up", nil, []string{"unanswered"}, func(s *stage) { // twin: it gets its Reply late and unmounts
		c := s.connect()
		call := synth.Write3(0, make([]byte, 4096)).Reduce(0xa1)
		c.Client.Call(call)
		c.Server.Ack()
		s.Advance(2 * time.Second)
		c.Server.Pull(call)
		c.Server.Reply(synth.Write3Reply(4096))
		c.Client.Ack()
		s.Advance(time.Millisecond)
		c.Disconnect(c.Client)
	}},
	{"protocol-violation", record.Warning, "client", "no-receive-buffer", nil, []string{"unanswered"}, func(s *stage) { // twin: the Calls are more than it granted
		c := s.connect()
		reply := synth.Getattr3Reply()
		reply.Credits = 2
		s.rpc(c, synth.Getattr3(), reply, time.Millisecond)
		first := 0x7770000 + s.slot<<8
		call := func(n uint32) []*synth.Frame {
			call := synth.Getattr3()
			call.XID = first + n
			return c.Client.Call(call)
		}
		for n := range uint32(2) {
			call(n)
			c.Server.Ack()
		}
		sent := call(2)
		c.Server.NotReady()
		s.Advance(2 * time.Millisecond)
		s.Retransmit(sent...)
		c.Server.Ack()
		for i := range uint32(3) {
			reply := synth.Getattr3Reply()
			reply.XID, reply.Credits = first+i, 32
			c.Server.Reply(reply)
			c.Client.Ack()
		}
		s.healthy(c, 4)
		c.Disconnect(c.Client)
	}},
	{"", "", "", "rdma-error", nil, nil, func(s *stage) { // twin: the RPC layer has no such program
		c := s.connect()
		acl := synth.Call{Program: 100227, Version: 3}
		s.rpc(c, acl, synth.Reply{Accept: 1}, time.Millisecond)
		s.healthy(c, 4)
		c.Disconnect(c.Client)
	}},
	{"terminate", record.Error, "client server", "", nil, []string{"unanswered", "connection-lost", "protocol-violation"}, func(s *stage) {
		c := s.iwarp()
		c.Connect()
		s.healthy(c, 4)
		c.Client.Call(synth.Getattr3())
		s.Advance(time.Millisecond)
		c.Server.Terminate(iwarp.TerminateHeader{})
		c.Disconnect(c.Server)
		s.Advance(2 * time.Second)
		s.healthy(s.connect(), 2)
	}},
	{"", "", "", "terminate", nil, nil, func(s *stage) { // twin: closed in order
		c := s.iwarp()
		c.Connect()
		s.healthy(c, 4)
		c.Disconnect(c.Server)
		s.Advance(2 * time.Second)
		s.healthy(s.connect(), 2)
	}},
	{"", "", "", "outage", nil, nil, func(s *stage) { // twin: nobody asks
		c := s.connect()
		s.Advance(time.Minute)
		s.healthy(c, 4)
		c.Disconnect(c.Client)
	}},
	{"retransmission-storm", record.Warning, "network", "", []string{"retransmission"}, []string{"unanswered", "retransmission", "slow-rpc"}, func(s *stage) {
		s.pulled(s.connect(), 5)
	}},
	{"", "", "", "retransmission-storm", nil, []string{"unanswered"}, func(s *stage) { // twin: each packet once
		s.pulled(s.connect(), 1)
	}},
	{"", "", "", "retransmission", nil, nil, func(s *stage) { // twin: the same Send, as a new packet
		c := s.connect()
		for range 4 {
			c.Client.Call(synth.Getattr3())
			c.Server.Ack()
			c.Server.Reply(synth.Getattr3Reply())
			c.Client.Ack()
		}
		c.Disconnect(c.Client)
	}},
	{"", "", "", "corruption", nil, nil, func(s *stage) { // twin: the adapter adds the checksums behind the capture point
		from := len(s.Frames)
		c := s.connect()
		s.healthy(c, 20)
		c.Disconnect(c.Client)
		for _, f := range s.Frames[from:] {
			if f.From == c.Client {
				copy(f.Data[len(f.Data)-4:], []byte{0, 0, 0, 0})
			}
		}
	}},
	{"", "", "", "connection-lost", nil, nil, func(s *stage) { // twin: nothing is in flight
		c := s.connect()
		s.Advance(time.Second)
		c.Disconnect(c.Server)
		s.Advance(2 * time.Second)
		s.healthy(s.connect(), 2)
	}},
	{"recall", record.Warning, "client", "", nil, []string{"slow-rpc", "unanswered"}, func(s *stage) {
		s.recalled(3 * time.Second)
	}},
	{"", "", "", "recall", nil, []string{"unanswered"}, func(s *stage) { // twin: returned at once
		s.recalled(2 * time.Millisecond)
	}},
	{"unanswered", record.Error, "network server", "recall", nil, []string{"connection-lost"}, func(s *stage) { // twin: a Call that was never answered, of long before
		c := s.connect()
		s.sequence++
		c.Client.Call(synth.Compound(synth.OpSequence(s.sequence), synth.OpPutFH(), synth.OpRead(0, 4)))
		c.Server.Ack()
		s.Advance(20 * time.Second)
		s.recalled(2 * time.Millisecond)
	}},
	{"grace-period", record.Warning, "server", "put-off", nil, nil, func(s *stage) { s.putOff(10013) }}, // and twin of the other
	{"put-off", record.Warning, "server", "grace-period", nil, nil, func(s *stage) { s.putOff(10008) }},
	{"", "", "", "put-off", nil, nil, func(s *stage) { s.putOff(2) }},      // twin: asked again for a name that is not there
	{"", "", "", "grace-period", nil, nil, func(s *stage) { s.putOff(2) }}, // the same
	{"credits", record.Warning, "config", "", nil, []string{"unanswered", "slow-rpc"}, func(s *stage) { s.crowd(4) }},
	{"", "", "", "credits", nil, []string{"unanswered", "slow-rpc"}, func(s *stage) { s.crowd(64) }}, // twin: more credits than Calls
	{"congestion", record.Note, "network", "", nil, nil, func(s *stage) {
		c := s.connect()
		c.Client.TOS = 3
		s.healthy(c, 10)
	}},
	{"", "", "", "congestion", nil, nil, func(s *stage) { // twin: packets that may be marked, and are not
		c := s.connect()
		c.Client.TOS = 2
		s.healthy(c, 10)
	}},
	{"executed-twice", record.Note, "server", "", []string{"connection-lost"}, []string{"unanswered"}, func(s *stage) { s.again(synth.Failed(17, 0, 0)) }},
	{"", "", "", "executed-twice", nil, nil, func(s *stage) { // twin: the name was there before
		c := s.connect()
		s.rpc(c, synth.Symlink3("a", "b"), synth.Failed(17, 0, 0), time.Millisecond)
	}},
	{"connection-lost", record.Error, "server", "executed-twice", nil, []string{"unanswered"}, func(s *stage) { s.again(synth.Symlink3Reply()) }}, // twin: executed now
	{"slow-rpc", record.Warning, "network server", "unanswered", nil, []string{"unanswered"}, func(s *stage) { // twin: late
		c := s.connect()
		s.rpc(c, synth.Getattr3(), synth.Getattr3Reply(), 20*time.Second)
		s.healthy(c, 4)
	}},
	{"", "", "", "slow-rpc", nil, nil, func(s *stage) { // twin: below 100 ms
		c := s.connect()
		s.rpc(c, synth.Getattr3(), synth.Getattr3Reply(), 90*time.Millisecond)
		c.Disconnect(c.Client)
	}},
	{"", "", "", "protocol-violation", nil, nil, func(s *stage) { // twin: it returns the Reply chunk
		c := s.connect()
		call := synth.Getattr3().OfferReply(synth.Mem(0xa1, 4096))
		s.rpc(c, call, synth.Getattr3Reply().To(call), time.Millisecond)
		c.Disconnect(c.Client)
	}},
	{"slow-server", record.Note, "server", "", nil, nil, func(s *stage) {
		c := s.conn()
		c.Connect()
		for range 40 {
			s.rpc(c, synth.Getattr3(), synth.Getattr3Reply(), 20*time.Millisecond)
		}
		c.Disconnect(c.Client)
	}},
	{"", "", "", "slow-server", nil, nil, func(s *stage) { // twin: the path is long
		c := s.conn()
		c.Connect()
		for range 40 {
			c.Client.Call(synth.Getattr3())
			s.Advance(20 * time.Millisecond)
			c.Server.Ack()
			c.Server.Reply(synth.Getattr3Reply())
			c.Client.Ack()
		}
		c.Disconnect(c.Client)
	}},
	{"slow-client", record.Note, "client", "", nil, nil, func(s *stage) { s.acknowledged(42 * time.Millisecond) }},
	{"", "", "", "slow-client", nil, nil, func(s *stage) { s.acknowledged(time.Millisecond) }}, // twin: as fast as the server
	{record.Quirk, record.Note, "server", "", nil, []string{"mount-failed"}, func(s *stage) {
		c := s.conn()
		c.Reject()
		s.Advance(time.Second)
		s.healthy(s.connect(), 4)
	}},
	{"", "", "", record.Quirk, nil, nil, func(s *stage) { s.healthy(s.connect(), 4) }}, // twin: accepted at once
}

// b2u returns 1 for true.
func b2u(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// exchange plays an EXCHANGE_ID with a verifier.
func (s *stage) exchange(c *synth.Conn, verifier uint64) {
	call := synth.Compound(synth.XDR{}.Word(42).Hyper(verifier).String("a client's owner").Word(0, 0, 0))
	result := synth.XDR{}.Word(42, 0).Hyper(0x1234).Word(1, 0, 0).Hyper(1).String("a server's owner").String("scope").Word(0)
	s.rpc(c, call, synth.CompoundReply(result), time.Millisecond)
}

// flagged plays a SEQUENCE whose results have status flags.
func (s *stage) flagged(c *synth.Conn, flags uint32) {
	s.sequence++
	result := synth.XDR{}.Word(53, 0).Fixed([]byte("a session's name")).Word(s.sequence, 0, 7, 7, flags)
	s.rpc(c, synth.Compound(synth.OpSequence(s.sequence), synth.OpPutRootFH()), synth.CompoundReply(result, synth.ResPutRootFH()), time.Millisecond)
}

// play returns a wire on which scenes have played, one after another, each with hosts of its own, and a while after.
func play(list ...scene) *synth.Wire {
	w := synth.New()
	for i, sc := range list {
		sc.play(&stage{Wire: w, slot: uint32(i)})
		w.Advance(3 * time.Second)
	}
	c := w.RoCE(synth.Options{Client: synth.End{Addr: netip.MustParseAddr("10.3.0.1")}, Server: synth.End{Addr: netip.MustParseAddr("10.3.0.2")}})
	c.Connect()
	c.RPC(synth.Getattr3(), synth.Getattr3Reply())
	return w
}

// grave returns the problems that are worse than notes, as texts.
func grave(list []*record.Problem) (ids, texts []string) {
	for _, p := range list {
		if p.Severity != record.Note {
			ids = append(ids, p.ID)
			texts = append(texts, fmt.Sprintf("%s %s %v: %s; %s", p.Severity, p.ID, p.Places, p.Headline, p.Effect))
		}
	}
	return ids, texts
}

// TestEachKindHasATwin: for each kind there is a scene in which it speaks, and one that looks alike, in which it does not.
func TestEachKindHasATwin(t *testing.T) {
	for _, id := range IDs() {
		if !slices.ContainsFunc(scenes, func(s scene) bool { return s.kind == id }) || !slices.ContainsFunc(scenes, func(s scene) bool { return s.not == id }) {
			t.Errorf("%s has no scene, or no twin", id)
		}
	}
}

// TestMade: each scene is told by its kind alone.
func TestMade(t *testing.T) {
	for i, sc := range scenes {
		t.Run(fmt.Sprintf("%d-%s-%s", i, sc.kind, sc.not), func(t *testing.T) {
			c, list := diagnose(t, testkit.Source(t, play(sc)))
			ids, texts := grave(list)
			checkClaims(t, c, list)
			for _, p := range list {
				if p.ID == sc.not {
					t.Errorf("the twin has the problem: %s: %s; %s", p.ID, p.Headline, p.Effect)
				}
			}
			if !sc.harmful() {
				if slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(sc.also, id) }) {
					t.Errorf("problems of healthy hosts:\n%s", strings.Join(texts, "\n"))
				}
				if sc.kind != "" && !slices.ContainsFunc(list, func(p *record.Problem) bool { return p.ID == sc.kind && places(p) == sc.place }) {
					t.Errorf("no note %s %s: %d problems", sc.kind, sc.place, len(list))
					for _, p := range list {
						t.Log(p.ID, p.Places, p.Headline, p.Effect)
					}
				}
				return
			}
			if len(ids) == 0 || ids[0] != sc.kind || list[0].Severity != sc.worst || first(list) != sc.kind+" "+sc.place {
				for _, p := range list {
					t.Log(p.ID, p.Headline, p.Effect)
				}
				t.Fatalf("want %s %s %s, got %q\n%s", sc.worst, sc.kind, sc.place, first(list), strings.Join(texts, "\n"))
			}
			for _, id := range ids[1:] {
				if id != sc.kind && !slices.Contains(sc.also, id) {
					t.Errorf("another problem:\n%s", strings.Join(texts, "\n"))
				}
			}
		})
	}
}

// TestVersionProbe: a version that is refused is a note once the client uses one that it was told.
func TestVersionProbe(t *testing.T) {
	for want, all := range map[string][]uint32{
		"note [config]: answered ERR_VERS to 1 RPC": {3, 1}, "warning [config]: answered ERR_VERS to 1 RPC": {3},
		"error [client]: sent an unknown rdma_vers once; server answered ERR_VERS": {3, 3, 1},
	} {
		_, list := diagnose(t, testkit.Source(t, play(scene{play: func(s *stage) { s.probe(all...) }})))
		if got := fmt.Sprintf("%s %v: %s", list[0].Severity, list[0].Places, list[0].Headline); got != want || list[0].ID != "rdma-error" {
			t.Errorf("versions %d: %s %s, want %s", all, list[0].ID, got, want)
		}
	}
}

// TestDamagedByCapture: a Reply with a bad ICRC that was acknowledged is one that the capture lacks, whatever became of its connection.
func TestDamagedByCapture(t *testing.T) {
	for _, acked := range []bool{true, false} {
		_, list := diagnose(t, testkit.Source(t, play(scene{play: func(s *stage) {
			c := s.connect()
			c.Client.Call(synth.Getattr3())
			c.Server.Ack()
			s.Advance(time.Millisecond)
			reply := c.Server.Reply(synth.Getattr3Reply())
			if reply[0].Data[len(reply[0].Data)-1] ^= 1; acked { // a bit of the ICRC
				c.Client.Ack()
			}
			s.Advance(500 * time.Millisecond)
			if acked {
				s.healthy(c, 8)
			} else {
				s.Advance(time.Second) // the client waited for the Reply
			}
			c.Disconnect(c.Client)
		}})))
		ids, texts := grave(list)
		if acked && (len(list) != 1 || list[0].ID != "capture-gap" || len(ids) > 0) || !acked && len(ids) == 0 {
			t.Errorf("acknowledged: %t, problems:\n%s", acked, strings.Join(texts, "\n"))
			for _, p := range list {
				t.Log(p.ID, p.Places, p.Headline, p.Effect)
			}
		}
	}
}

// dropping is a capture that says how many packets it dropped.
type dropping struct {
	capture.Source
	dropped uint64
}

func (d dropping) Dropped() uint64 { return d.dropped }

// TestDrops: a Reply that a capture perhaps dropped is no fault of a host, and that the capture dropped packets is said once.
func TestDrops(t *testing.T) {
	for _, dropped := range []uint64{0, 3} {
		_, list := diagnose(t, dropping{testkit.Source(t, play(scene{play: func(s *stage) {
			c := s.connect()
			c.Client.Call(synth.Getattr3())
			c.Server.Ack()
			s.Advance(20 * time.Second)
			c.Disconnect(c.Client)
		}})), dropped})
		told := ""
		for _, p := range list {
			if p.Severity != record.Note || slices.Contains(p.Places, record.InCapture) {
				told += fmt.Sprintf("%v %s; ", p.Places, p.Headline)
			}
		}
		if want := map[uint64]string{0: "[network server] GETATTR never answered; ", 3: "[capture] lacks 3 packets, says it dropped 3 packets; "}[dropped]; told != want {
			t.Errorf("%d packets dropped: %s, want %s", dropped, told, want)
		}
	}
}

// TestSilenceWithDrops: a capture that dropped packets does not show that there were none.
func TestSilenceWithDrops(t *testing.T) {
	for dropped, want := range []string{"no packet from ", "no packet captured from "} {
		_, list := diagnose(t, dropping{testkit.Open(t, root+"samples/rocev2-lostlink41.pcap.zst"), uint64(dropped)})
		if !strings.HasPrefix(list[0].Headline, want) {
			t.Errorf("%d packets dropped: %s, want %s", dropped, list[0].Headline, want)
		}
	}
}

// TestMadeInPairs: of two scenes one after another, both are told, and nothing else.
func TestMadeInPairs(t *testing.T) {
	n := 0
	for i, a := range scenes {
		for _, b := range scenes[i+1:] {
			if !a.harmful() || !b.harmful() {
				continue
			}
			n++
			_, list := diagnose(t, testkit.Source(t, play(a, b)))
			ids, texts := grave(list)
			allowed := slices.Concat([]string{a.kind, b.kind}, a.also, b.also)
			if a.kind == "corruption" && b.kind == "credits" { // a damaged packet may have been a Reply that no Call waited for
				ids = append(ids, "credits")
			}
			if !slices.Contains(ids, a.kind) || !slices.Contains(ids, b.kind) || slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(allowed, id) }) {
				t.Errorf("%s and %s:\n%s", a.kind, b.kind, strings.Join(texts, "\n"))
			}
		}
	}
	t.Logf("%d captures", n)
}

// TestMadeCut: scenes that end early are told by their kind, or by what is left, and accuse nobody else; so are scenes of which the capture has one
// direction.
func TestMadeCut(t *testing.T) {
	n := 0
	for _, sc := range scenes {
		allowed := slices.Concat([]string{sc.kind, "capture-gap"}, sc.also, sc.cut)
		check := func(how string, w *synth.Wire) {
			n++
			_, list := diagnose(t, testkit.Source(t, w))
			if ids, texts := grave(list); slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(allowed, id) }) {
				t.Errorf("%s (twin of %s), %s:\n%s", sc.kind, sc.not, how, strings.Join(texts, "\n"))
			}
		}
		for part := range 10 {
			w := synth.New()
			sc.play(&stage{Wire: w})
			w.Frames = w.Frames[:len(w.Frames)*(part+1)/11]
			check(fmt.Sprintf("cut after %d of 11", part+1), w)
		}
		for _, server := range [...]bool{false, true} {
			w := synth.New()
			sc.play(&stage{Wire: w})
			w.Keep(func(f *synth.Frame) bool { return f.From == nil || (f.From == f.From.Conn.Server) == server })
			check(fmt.Sprintf("one direction, of the server: %v", server), w)
		}
	}
	t.Logf("%d captures", n)
}

// TestMadeChains: a request that the server puts off with each status, once or several times, until it is done, is given up, or the capture ends.
func TestMadeChains(t *testing.T) {
	statuses := map[uint32]string{
		10008: "put-off", 10013: "grace-period", 10058: "put-off", 10052: "put-off", 10078: "put-off", 10022: "put-off", 10055: "put-off", 10023: "put-off",
		10025: "put-off", 10024: "put-off", 10011: "put-off", 10047: "put-off", 10063: "put-off", 10076: "put-off", 10068: "put-off",
	}
	for status, kind := range statuses {
		for _, tries := range [...]int{1, 3} {
			for _, end := range [...]string{"ok", "given up", "open"} {
				for _, pause := range [...]time.Duration{100 * time.Millisecond, 900 * time.Millisecond} {
					w := synth.New()
					s := &stage{Wire: w}
					c := s.connect()
					for range tries {
						s.read4(c, 0, status)
						s.Advance(pause)
					}
					switch end {
					case "ok":
						s.read4(c, 0, 0)
					case "given up":
						s.Advance(400 * time.Second)
					}
					s.healthy(c, 2)
					_, list := diagnose(t, testkit.Source(t, w))
					what := fmt.Sprintf("status %d, %d tries, pause %v, %s", status, tries, pause, end)
					i := slices.IndexFunc(list, func(p *record.Problem) bool { return p.ID == kind })
					if i < 0 {
						t.Errorf("%s: no %s", what, kind)
						continue
					}
					p := list[i]
					blocked := time.Duration(tries) * pause
					if end == "given up" {
						blocked = time.Duration(tries-1) * pause
					}
					if got := time.Duration(p.BlockedNS); got < blocked || got > blocked+50*time.Millisecond {
						t.Errorf("%s: blocked %v, want %v", what, got, blocked)
					}
					if warns := p.Severity != record.Note; warns != (blocked >= time.Second) {
						t.Errorf("%s: %s: %s; %s", what, p.Severity, p.Headline, p.Effect)
					}
					if said := map[string]string{"ok": "ok", "given up": "not tried again", "open": "refused"}[end]; !strings.Contains(p.Effect, said) {
						t.Errorf("%s: %s", what, p.Effect)
					}
					if said := map[bool]string{true: fmt.Sprintf("; %.2f s of it the client's pause", blocked.Seconds())}[end == "ok" && blocked >= time.Second]; !strings.HasSuffix(p.Effect, said) {
						t.Errorf("%s: %s, want%s", what, p.Effect, said)
					}
					if _, texts := grave(list); len(texts) > 1 {
						t.Errorf("%s: %s", what, texts)
					}
				}
			}
		}
	}
}

// TestOneOfSeveral: a problem of one of several clients, of one server or of several, says which, and names no other host as its client or server.
func TestOneOfSeveral(t *testing.T) {
	n := 0
	for _, sc := range scenes {
		if sc.kind == "" || slices.Contains([]string{"capture-gap", "credits"}, sc.kind) { // they are about no host
			continue
		}
		for _, shared := range [...]bool{false, true} {
			w := synth.New()
			others := func() {
				for slot := range uint32(3) {
					s := &stage{Wire: w, slot: slot, shared: shared}
					s.healthy(s.connect(), 20)
				}
			}
			others()
			sc.play(&stage{Wire: w, slot: 7, shared: shared})
			w.Advance(3 * time.Second)
			others()
			_, list := diagnose(t, testkit.Source(t, w))
			at := slices.IndexFunc(list, func(p *record.Problem) bool { return p.ID == sc.kind })
			if at < 0 {
				if !shared {
					t.Errorf("no %s", sc.kind)
				} else {
					t.Logf("with a server that others use, no %s", sc.kind)
				}
				continue
			}
			n++
			p := list[at]
			only := p.Only.Or("")
			who := strings.Contains(only, "client 10.1.7.1 of") || strings.Contains(only, "clients 10.1.7.1, 10.1.7.2 of") || strings.Contains(only, "client 10.1.7.2 of") || strings.Contains(only, "server 10.2.7.1 of 4")
			if p.ID == "outage" && len(p.Requests) == 0 { // of RDMA without RPC: the clients and servers of RPC are others
				who = p.Client == record.Some("10.1.7.1") && p.Server.Known()
			}
			if !who || p.Client.Known() && !strings.HasPrefix(p.Client.Or(""), "10.1.7.") || !shared && p.Server != record.Some("10.2.7.1") {
				t.Errorf("shared %v, %s: %s: %q, client %v, server %v", shared, p.ID, p.Headline, only, p.Client, p.Server)
			}
		}
	}
	t.Logf("%d problems", n)
}

// down plays a Call that the client sends again until it closes the connection, because the server does not answer.
func (s *stage) down(c *synth.Conn) {
	sent := c.Client.Call(synth.Getattr3())
	for range 4 {
		s.Advance(550 * time.Millisecond)
		s.Retransmit(sent...)
	}
	s.Drop(c.Disconnect(c.Client)[1:]...)
	s.Advance(5 * time.Second)
}

// restart plays a server that restarts with a Call in flight, and returns the client's next connection.
func (s *stage) restart(c *synth.Conn) *synth.Conn {
	c.Client.Call(synth.Getattr3())
	c.Server.Ack()
	c.Disconnect(c.Server)
	s.Advance(3 * time.Second)
	s.conn().Reject()
	s.Advance(3 * time.Second)
	c = s.connect()
	s.read4(c, 0, 10052)
	s.read4(c, 0, 0)
	return c
}

// TestTwice: trouble that comes twice is told twice, or with its number, and nothing else is.
func TestTwice(t *testing.T) {
	for _, pause := range [...]time.Duration{time.Second, 10 * time.Second, 200 * time.Second} {
		w := synth.New()
		s := &stage{Wire: w}
		c := s.connect()
		s.read4(c, 0, 0)
		for range 2 {
			c = s.restart(c)
			s.Advance(pause)
			s.healthy(c, 5)
		}
		c.Disconnect(c.Client)
		_, list := diagnose(t, testkit.Source(t, w))
		if ids, texts := grave(list); !slices.Equal(ids, []string{"server-restarted", "server-restarted"}) {
			t.Errorf("two restarts, %v between:\n%s", pause, strings.Join(texts, "\n"))
		} else if want := "1 operation blocked, 1 connection refused meanwhile"; list[0].Effect != want || list[1].Effect != want { // not those of the recovery
			t.Errorf("effects %q and %q, want %q", list[0].Effect, list[1].Effect, want)
		}
	}
}

// unseen are the problems that a harm of the capture looks like: that a Reply is missing from the end of a connection, or that the clock was set, shows in
// no packet.
var unseen = map[string][]string{"removed": {"connection-lost"}, "a run removed": {"connection-lost"}, "set forward": {"client-gave-up", "recall"}}

// TestMadeHarmed: frames that were captured twice, late or not at all, and a clock that was set, add no problem of a side to those of a scene.
func TestMadeHarmed(t *testing.T) {
	n := 0
	for _, sc := range scenes {
		for seed := range uint64(2) {
			for _, how := range [...]string{"doubled", "removed", "late", "set forward", "a run removed", "set back"} {
				allowed := slices.Concat([]string{sc.kind, "capture-gap"}, sc.also, sc.cut, unseen[how])
				w := play(sc)
				r := rand.New(rand.NewPCG(seed, 3))
				frames := slices.Clone(w.Frames)
				from, until := r.IntN(len(frames)), 0
				until = min(len(frames), from+1+r.IntN(12))
				w.Frames = nil
				for i, f := range frames {
					g := *f
					switch {
					case how == "doubled" && r.IntN(4) == 0:
						w.Frames = append(w.Frames, &g)
						again := g
						again.Time += 3000
						w.Frames = append(w.Frames, &again)
						continue
					case how == "removed" && r.IntN(10) == 0, how == "a run removed" && i >= from && i < until:
						continue
					case how == "late" && r.IntN(10) == 0:
						g.Time += int64(r.IntN(2000000))
					case how == "set forward" && i >= from:
						g.Time += 3600e9
					case how == "set back" && i >= from:
						g.Time -= 2e9
					}
					w.Frames = append(w.Frames, &g)
				}
				if how == "late" || how == "doubled" {
					slices.SortStableFunc(w.Frames, func(a, b *synth.Frame) int { return cmp.Compare(a.Time, b.Time) })
				}
				n++
				_, list := diagnose(t, testkit.Source(t, w))
				for _, p := range list {
					side := slices.Equal(p.Places, []record.ProblemPlace{record.InServer}) || slices.Equal(p.Places, []record.ProblemPlace{record.InClient})
					if p.Severity != record.Note && side && !slices.Contains(allowed, p.ID) {
						t.Errorf("%s (twin of %s), %s (seed %d): %s %s %v: %s; %s", sc.kind, sc.not, how, seed, p.Severity, p.ID, p.Places, p.Headline, p.Effect)
					}
				}
			}
		}
	}
	t.Logf("%d captures", n)
}

// TestInFlightWhenGone: Calls of connections that the client ended with a NAK were not in flight when the server went away soon after.
func TestInFlightWhenGone(t *testing.T) {
	_, list := diagnose(t, testkit.Source(t, play(scene{play: func(s *stage) {
		for range 3 {
			s.overrun(s.connect())
		}
		c := s.connect()
		c.Client.Call(synth.Getattr3())
		c.Server.Ack()
		c.Disconnect(c.Server)
		for range 3 {
			s.Advance(time.Second)
			s.conn().Reject()
		}
	}})))
	var got []string
	for _, p := range list {
		got = append(got, fmt.Sprintf("%s: %s; %s; %d unanswered", p.ID, p.Headline, p.Effect, p.Unanswered))
	}
	want := []string{
		"memory-violation: accessed memory that was not exposed 3 times; 3 connections lost, READ never answered; 3 unanswered",
		"server-gone: closed the connection, then refused all 3 reconnects; no service from 0.04 s to the end of the capture; 1 Call in flight; 1 unanswered",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the problems are %q, want %q", got, want)
	}
}

// TestShown: the next command for a path that became slower shows its round trips over time; a server that is slow is proven by its worst RPC.
func TestShown(t *testing.T) {
	for _, sc := range scenes {
		if sc.kind != "path-slower" && sc.kind != "slow-server" {
			continue
		}
		_, list := diagnose(t, testkit.Source(t, play(scene{play: func(s *stage) {
			sc.play(s)
			s.rpc(s.connect(), synth.Read3(0, 16), synth.Read3Reply(make([]byte, 16)), 200*time.Millisecond)
		}})))
		i := slices.IndexFunc(list, func(p *record.Problem) bool { return p.ID == sc.kind })
		if i < 0 {
			t.Errorf("no %s", sc.kind)
		} else if p := list[i]; sc.kind == "slow-server" && len(p.Evidence) != 2 || sc.kind == "path-slower" && !slices.Equal(p.Command[:3], []string{"stats", "--every", "500ms"}) {
			t.Errorf("%s: %v, %q", sc.kind, p.Evidence, p.Command)
		}
	}
}
