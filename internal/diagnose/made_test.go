package diagnose

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// Captures that are made: the kinds alone, in pairs, cut, and without a direction, and chains of requests that were put off.

// stage is where scenes play: a wire, and hosts of their own for each scene.
type stage struct {
	*synth.Wire
	slot, sequence uint32
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
		Client: synth.End{Addr: netip.AddrFrom4([4]byte{10, 1, byte(s.slot), 1})}, Server: synth.End{Addr: netip.AddrFrom4([4]byte{10, 2, byte(s.slot), 1})},
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

// ofSequence has the statuses with which SEQUENCE fails.
var ofSequence = []uint32{10052, 10078, 10055, 10063, 10076, 10068}

// scene is trouble that one kind has to find: worst is its severity, and "" means that nothing may be worse than a note. With it, other problems worse
// than notes may be of the kinds also, and if the capture is cut, of the kinds cut.
type scene struct {
	kind      string
	worst     record.Severity
	place     string
	also, cut []string
	play      func(*stage)
}

var scenes = []scene{
	{"healthy", "", "", nil, nil, func(s *stage) {
		c := s.connect()
		s.healthy(c, 20)
		c.Disconnect(c.Client)
	}},
	{"server-gone", record.Error, "server", nil, []string{"connection-lost"}, func(s *stage) {
		c := s.connect()
		c.Disconnect(c.Server)
		for range 5 {
			s.Advance(time.Second)
			s.conn().Reject()
		}
	}},
	{"server-gone", record.Error, "server", nil, []string{"unanswered"}, func(s *stage) { // the end of the connection is not captured
		c := s.connect()
		c.Client.Call(synth.Getattr3())
		c.Server.Ack()
		for range 5 {
			s.Advance(time.Second)
			s.conn().Reject()
		}
	}},
	{"healthy", "", "", nil, nil, func(s *stage) { // twin: accepted in the end
		c := s.connect()
		c.Disconnect(c.Server)
		s.Advance(time.Second)
		s.conn().Reject()
		s.Advance(time.Second)
		s.healthy(s.connect(), 4)
	}},
	{"mount-failed", record.Error, "server", nil, nil, func(s *stage) {
		c := s.conn()
		c.Connect()
		s.rpc(c, synth.Null(), synth.NullReply(), time.Millisecond)
		s.rpc(c, synth.Compound(synth.OpCreateSession(0)), synth.CompoundFailed(10021, synth.ResFailed(43, 10021)), time.Millisecond)
		c.Disconnect(c.Client)
	}},
	{"healthy", "", "", nil, []string{"mount-failed"}, func(s *stage) { // twin: another version is mounted
		c := s.conn()
		c.Connect()
		s.rpc(c, synth.Compound(synth.OpCreateSession(0)), synth.CompoundFailed(10021, synth.ResFailed(43, 10021)), time.Millisecond)
		s.healthy(c, 4)
		c.Disconnect(c.Client)
	}},
	{"client-restarted", record.Error, "client", nil, nil, func(s *stage) {
		s.exchange(s.connect(), 1)
		s.Advance(20 * time.Second)
		s.exchange(s.connect(), 2)
	}},
	{"healthy", "", "", nil, nil, func(s *stage) { // twin: the same verifier after a pause
		s.exchange(s.connect(), 1)
		s.Advance(20 * time.Second)
		s.exchange(s.connect(), 1)
	}},
	{"client-restarted", record.Error, "client", nil, []string{"connection-lost", "unanswered"}, func(s *stage) { // it had closed a connection long before
		c := s.connect()
		s.exchange(c, 1)
		c.Disconnect(c.Client)
		s.Advance(time.Second)
		s.healthy(s.connect(), 4)
		s.Advance(20 * time.Second)
		s.exchange(s.connect(), 2)
	}},
	{"healthy", "", "", nil, []string{"client-restarted"}, func(s *stage) { // twin: it closed its last connection
		s.exchange(s.connect(), 1)
		c := s.connect()
		c.Disconnect(c.Client)
		s.Advance(20 * time.Second)
		s.exchange(s.connect(), 2)
	}},
	{"mount-failed", record.Error, "config server", nil, nil, func(s *stage) { // the export is not there
		c := s.conn()
		c.Connect()
		lookup := synth.Compound(synth.OpPutRootFH(), synth.OpLookup("nothere"))
		s.rpc(c, lookup, synth.CompoundFailed(2, synth.ResPutRootFH(), synth.ResFailed(15, 2)), time.Millisecond)
		s.rpc(c, synth.Compound(synth.XDR{}.Word(57).Hyper(0x1234)), synth.CompoundReply(synth.XDR{}.Word(57, 0)), time.Millisecond)
		c.Disconnect(c.Client)
	}},
	{"healthy", "", "", nil, nil, func(s *stage) { // twin: a name that is not there, before it is unmounted
		c := s.connect()
		s.read4(c, 0, 0)
		lookup := synth.Compound(synth.OpPutRootFH(), synth.OpLookup("nothere"))
		s.rpc(c, lookup, synth.CompoundFailed(2, synth.ResPutRootFH(), synth.ResFailed(15, 2)), time.Millisecond)
		s.rpc(c, synth.Compound(synth.XDR{}.Word(57).Hyper(0x1234)), synth.CompoundReply(synth.XDR{}.Word(57, 0)), time.Millisecond)
		c.Disconnect(c.Client)
	}},
	{"outage", record.Error, "network server", nil, []string{"unanswered", "retransmission"}, func(s *stage) { // a single Call, sent again and again
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
	{"retransmission", record.Warning, "network", nil, []string{"unanswered"}, func(s *stage) { // twin: once
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
	{"client-gave-up", record.Warning, "client", nil, []string{"unanswered", "connection-lost", "protocol-violation"}, func(s *stage) {
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
	{"inline-overrun", record.Error, "server", []string{"protocol-violation"}, nil, func(s *stage) {
		c := s.connect()
		c.Client.Call(synth.Readdir3(8000))
		c.Server.Ack()
		s.Advance(time.Millisecond)
		c.Server.Reply(synth.Readdir3Reply(slices.Repeat([]string{"a name of thirty-two characters.."}, 120)...))
		c.Client.Nak(3)
		c.Disconnect(c.Client)
		s.Advance(2 * time.Second)
	}},
	{"healthy", "", "", nil, nil, func(s *stage) { // twin: a Reply that fits
		c := s.connect()
		s.rpc(c, synth.Readdir3(4000), synth.Readdir3Reply("a", "b"), time.Millisecond)
		c.Disconnect(c.Client)
	}},
	{"memory-violation", record.Error, "server", nil, []string{"unanswered", "connection-lost", "protocol-violation"}, func(s *stage) {
		c := s.connect()
		c.Client.Call(synth.Read3(0, 4096).Offer(synth.Mem(0xa1, 4096)))
		c.Server.Ack()
		s.Advance(time.Millisecond)
		c.Server.Write(0xb2, 0, make([]byte, 4096))
		c.Client.Refuse()
		c.Disconnect(c.Client)
		s.Advance(2 * time.Second)
	}},
	{"healthy", "", "", nil, nil, func(s *stage) { // twin: memory that was exposed
		c := s.connect()
		c.RPC(synth.Read3(0, 4096).Offer(synth.Mem(0xa1, 4096)), synth.Read3Reply(make([]byte, 4096)).Invalidating(0xa1))
		c.Disconnect(c.Client)
	}},
	{"no-receive-buffer", record.Error, "server", nil, []string{"unanswered"}, func(s *stage) {
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
	{"rdma-error", record.Error, "client", nil, []string{"unanswered", "protocol-violation"}, func(s *stage) {
		c := s.connect()
		c.Client.Send([]byte{0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 1})
		c.Server.Ack()
		c.Server.Reply(synth.Reply{XID: 9, Proc: 4, Err: 2})
		c.Client.Ack()
		c.Disconnect(c.Client)
	}},
	{"outage", record.Error, "network server", []string{"retransmission"}, []string{"unanswered", "retransmission", "slow-rpc"}, func(s *stage) {
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
	{"outage", record.Error, "network server", nil, []string{"unanswered", "slow-rpc"}, func(s *stage) { // without a packet that is sent again
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
	{"slow-rpc", record.Warning, "network server", nil, []string{"unanswered"}, func(s *stage) { // twin: a single RPC
		c := s.connect()
		s.rpc(c, synth.Getattr3(), synth.Getattr3Reply(), 8*time.Second)
		c.Disconnect(c.Client)
	}},
	{"healthy", "", "", nil, nil, func(s *stage) { // twin: below 1 s, and few
		c := s.connect()
		s.rpc(c, synth.Getattr3(), synth.Getattr3Reply(), 300*time.Millisecond)
		s.healthy(c, 40)
		c.Disconnect(c.Client)
	}},
	{"retransmission", record.Warning, "network", nil, []string{"unanswered"}, func(s *stage) {
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
	{"connection-lost", record.Error, "server", nil, []string{"unanswered"}, func(s *stage) {
		c := s.connect()
		c.Client.Call(synth.Getattr3())
		c.Server.Ack()
		s.Advance(time.Second)
		c.Disconnect(c.Server)
		s.Advance(2 * time.Second)
		s.healthy(s.connect(), 2)
	}},
	{"unanswered", record.Error, "network server", nil, []string{"slow-rpc"}, func(s *stage) {
		c := s.connect()
		c.Client.Call(synth.Getattr3())
		c.Server.Ack()
		s.Advance(20 * time.Second)
		s.healthy(s.connect(), 2)
		s.Advance(2 * time.Second)
		s.healthy(s.connect(), 2)
	}},
	{"rpc-failed", record.Warning, "server", nil, nil, func(s *stage) {
		c := s.connect()
		s.rpc(c, synth.Read3(0, 16), synth.Failed(5, 0), time.Millisecond)
		c.Disconnect(c.Client)
	}},
	{"healthy", "", "", nil, nil, func(s *stage) { // twin: a status that is no fault
		c := s.connect()
		s.rpc(c, synth.Read3(0, 16), synth.Failed(13, 0), time.Millisecond)
		c.Disconnect(c.Client)
	}},
	{"protocol-violation", record.Warning, "server", nil, nil, func(s *stage) {
		c := s.connect()
		reply := synth.Getattr3Reply()
		call := synth.Getattr3().OfferReply(synth.Mem(0xa1, 4096))
		c.Client.Call(call)
		c.Server.Ack()
		c.Server.Reply(reply)
		c.Client.Ack()
		c.Disconnect(c.Client)
	}},
	{"promise-broken", record.Warning, "client network server", nil, nil, func(s *stage) {
		c := s.connect()
		for range 5 {
			s.flagged(c, 1)
			s.Advance(time.Second)
		}
	}},
	{"healthy", "", "", nil, []string{"promise-broken"}, func(s *stage) { // twin: the flag goes away
		c := s.connect()
		for i := range uint32(6) {
			s.flagged(c, b2u(i < 3))
			s.Advance(time.Second)
		}
	}},
	{"corruption", record.Warning, "network", []string{"retransmission"}, []string{"unanswered"}, func(s *stage) {
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
	{"path-slower", record.Warning, "network server", []string{"slow-rpc"}, []string{"slow-rpc"}, func(s *stage) {
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
	{"healthy", "", "", nil, nil, func(s *stage) { // twin: the server is slower, not the path
		c := s.connect()
		for i := range 90 {
			s.rpc(c, synth.Getattr3(), synth.Getattr3Reply(), time.Duration(1+30*b2u(i >= 30 && i < 60))*time.Millisecond)
			s.Advance(100 * time.Millisecond)
		}
	}},
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

// TestMade: each scene is told by its kind alone.
func TestMade(t *testing.T) {
	for i, sc := range scenes {
		t.Run(fmt.Sprintf("%d-%s", i, sc.kind), func(t *testing.T) {
			c, list := diagnose(t, testkit.Source(t, play(sc)))
			ids, texts := grave(list)
			checkClaims(t, c, list)
			if sc.worst == "" {
				if len(ids) > 0 {
					t.Errorf("problems of healthy hosts:\n%s", strings.Join(texts, "\n"))
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

// TestMadeInPairs: of two scenes one after another, both are told, and nothing else.
func TestMadeInPairs(t *testing.T) {
	n := 0
	for i, a := range scenes {
		for _, b := range scenes[i+1:] {
			if a.worst == "" || b.worst == "" {
				continue
			}
			n++
			_, list := diagnose(t, testkit.Source(t, play(a, b)))
			ids, texts := grave(list)
			allowed := slices.Concat([]string{a.kind, b.kind}, a.also, b.also)
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
				t.Errorf("%s, %s:\n%s", sc.kind, how, strings.Join(texts, "\n"))
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
					if _, texts := grave(list); len(texts) > 1 {
						t.Errorf("%s: %s", what, texts)
					}
				}
			}
		}
	}
}
