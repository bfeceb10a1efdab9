package rdma_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/internal/testkit/floods"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/rocev2"
	"github.com/rdmadump/rdmadump/synth"
)

// events returns a timeline as text.
func events(timeline []record.Event) string {
	var b strings.Builder
	for i := range timeline {
		e := &timeline[i]
		fmt.Fprintf(&b, "\n  %v packet %d: %s of %s", e.Time, e.Packet, e.Event, e.Of)
	}
	return b.String()
}

// states returns the XIDs and statuses of the transactions, in order.
func states(s *look.Seen) string {
	var all []string
	for _, t := range s.Transactions {
		all = append(all, fmt.Sprintf("%x %s", uint32(t.XID), t.Status))
	}
	return strings.Join(all, ", ")
}

// dangling returns a description of a record that names a connection without a record, or "" if
// there is none.
func dangling(s *look.Seen) string {
	ids := map[int]bool{}
	for _, c := range s.Connections {
		if ids[c.ID] {
			return fmt.Sprintf("connection %d twice", c.ID)
		}
		ids[c.ID] = true
	}
	for _, t := range s.Transactions {
		if !ids[t.Connection] {
			return fmt.Sprintf("transaction %d is of connection %d", t.ID, t.Connection)
		}
	}
	for _, f := range s.Findings {
		if id, known := f.Connection.Get(); known && !ids[id] {
			return fmt.Sprintf("finding %s is of connection %d", f.Rule, id)
		}
	}
	for _, p := range s.Packets {
		if id, known := p.Connection.Get(); known && !ids[id] {
			return fmt.Sprintf("packet %d is of connection %d", p.Number, id)
		}
	}
	if s.Summary.Connections != len(ids) {
		return fmt.Sprintf("the summary says %d connections, there are %d records", s.Summary.Connections, len(ids))
	}
	return ""
}

// moved returns the bytes that moved in the segments of a transaction, as "reads/writes/reply".
func moved(t *record.Transaction) string {
	var all []string
	for chunk, s := range t.Segments() {
		all = append(all, fmt.Sprintf("%s %d", chunk, s.MovedBytes))
	}
	return strings.Join(all, ", ")
}

// tells compares the findings, the transactions, and the bytes that moved in the first one, with
// the expected ones. No record may name a connection without a record.
func tells(t *testing.T, s *look.Seen, rules, statuses string) {
	t.Helper()
	if got := s.Rules(); got != rules {
		t.Errorf("findings %q, want %q", got, rules)
		for _, f := range s.Findings {
			t.Log(f.Packet, f.Message)
		}
	}
	if got := states(s); got != statuses {
		t.Errorf("transactions %q, want %q", got, statuses)
	}
	if what := dangling(s); what != "" {
		t.Error(what)
	}
}

// TestOneKeySpaceATransport: a queue pair number and TCP ports may be the same number; traffic of
// one transport is not taken for that of the other.
func TestOneKeySpaceATransport(t *testing.T) {
	const xid = 0x77
	call := func() synth.Call { c := synth.Getattr3(); c.XID = xid; return c }
	a, b := floods.A, floods.B
	a.Port, b.Port, b.QPN, a.QPN = 22, 80, 22<<16|80&0xffff, 80
	rows := map[string]func(w *synth.Wire){
		"TCP between ports that spell a QPN": func(w *synth.Wire) {
			r, i := w.RoCE(synth.Options{Client: a, Server: b}), w.IWARP(synth.Options{Client: a, Server: b})
			r.Client.Call(call())
			i.Client.Call(call())
			r.Server.Reply(synth.Getattr3Reply())
			i.Server.Reply(synth.Getattr3Reply())
		},
		"half an iWARP connection, and a RoCE Send with its XID": func(w *synth.Wire) {
			i, r := w.IWARP(synth.Options{Client: a, Server: b}), w.RoCE(synth.Options{Client: b, Server: a})
			i.Client.Call(call())
			r.Client.Call(call())
			r.Client.Ack()
			reply := synth.Getattr3Reply()
			reply.XID = xid
			r.Client.Reply(reply)
			i.Client.Call(synth.Null())
		},
		"half a RoCE connection, and an iWARP Send with its XID": func(w *synth.Wire) {
			r, i := w.RoCE(synth.Options{Client: a, Server: b}), w.IWARP(synth.Options{Client: b, Server: a})
			r.Client.Call(call())
			i.Client.Call(call())
			reply := synth.Getattr3Reply()
			reply.XID = xid
			i.Client.Reply(reply)
			r.Client.Call(synth.Null())
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			row(w)
			s := look.At(w)
			if what := dangling(s); what != "" {
				t.Error(what)
			}
			transports := map[string]bool{}
			for _, c := range s.Connections {
				transports[c.Transport] = true
			}
			if len(transports) != 2 {
				t.Errorf("connections of %v", transports)
			}
		})
	}
}

// TestMarkerInLength: with MPA markers, a gap may put a marker in the place of the length of an
// FPDU.
func TestMarkerInLength(t *testing.T) {
	for missing := range 600 {
		w := synth.New()
		c := w.IWARP(synth.Options{Markers: true, ManualAck: true})
		c.Connect()
		for range 4 {
			c.Client.Call(synth.Null())
			c.Server.Reply(synth.NullReply())
		}
		c.Client.Sequence += uint32(missing)
		c.Server.Sequence += uint32(missing)
		for range 20 {
			c.Client.Call(synth.Null())
			c.Server.Ack()
			c.Server.Reply(synth.NullReply())
			c.Client.Ack()
		}
		s := look.At(w)
		if what := dangling(s); what != "" {
			t.Fatalf("%d bytes missing: %s", missing, what)
		}
		if len(s.Transactions) < 4 {
			t.Fatalf("%d bytes missing: %s", missing, states(s))
		}
	}
}

// TestWriteOfSmallPackets: the place of data in a Write follows from its packets, and not from
// the path MTU of the handshake.
func TestWriteOfSmallPackets(t *testing.T) {
	for _, size := range []int{256, 1024, 4096} {
		look.Both(t, synth.Options{MTU: 4096}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
			c.Connect()
			call := synth.Read3(0, 10000).Offer(synth.Mem(0xa1, 10000))
			c.Client.Call(call)
			c.Server.Ack()
			c.Server.Write(0xa1, call.Writes[0][0].Offset, make([]byte, 10000), synth.PacketSize(size))
			c.Server.Reply(synth.Read3Reply(make([]byte, 10000)).Invalidating(0xa1).To(call))
			c.Client.Ack()
			s := look.At(w)
			rules := ""
			if size < 4096 && strings.Contains(t.Name(), "RoCE") {
				rules = "path-mtu-unused"
			}
			tells(t, s, rules, "1 complete")
			if got := moved(s.Transactions[0]); got != "write 10000" {
				t.Errorf("packets of %d: moved %s", size, got)
			}
		})
	}
}

// TestWriteOverSegments: one Write may cover adjacent segments with the same handle.
func TestWriteOverSegments(t *testing.T) {
	for _, n := range []int{2, 3, 20, 40} { // These segments share the handle.
		for _, at := range []int{0, 1, 4095} { // A second Write of the same data begins there.
			look.Both(t, synth.Options{MTU: 1024}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
				c.Connect()
				var list []rpcrdma.Segment
				for i := range n {
					list = append(list, rpcrdma.Segment{Handle: 0xa1, Length: 4096, Offset: 0x10000 + uint64(i)*4096})
				}
				call := synth.Read3(0, uint32(n)*4096).Offer(list...)
				c.Client.Call(call)
				c.Server.Ack()
				if at > 0 {
					c.Server.Write(0xa1, 0x10000, make([]byte, at))
				}
				c.Server.Write(0xa1, 0x10000+uint64(at), make([]byte, n*4096-at))
				c.Server.Reply(synth.Read3Reply(make([]byte, n*4096)).Invalidating(0xa1).To(call))
				c.Client.Ack()
				s := look.At(w)
				tells(t, s, "", "1 complete")
				if got, want := moved(s.Transactions[0]), strings.TrimSuffix(strings.Repeat("write 4096, ", n), ", "); got != want {
					t.Errorf("%d segments, second Write at %d: moved %s", n, at, got)
				}
			})
		}
	}
}

// TestResponsesOutOfOrder: an RDMA Read over several segments fills all of them if its responses
// arrive in any order.
func TestResponsesOutOfOrder(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{MTU: 1024, ManualAck: true})
	c.Connect()
	data := make([]byte, 8192)
	call := synth.Write3(0, data).Reduce(0xa1)
	first := call.Reads[0]
	first.Length = 4096
	second := first
	second.Offset += 4096
	call.Reads = append(call.Reads[:0], first, second)
	c.Client.Call(call)
	r := c.Server.ReadRequest(0xa1, first.Offset, 8192)
	r.RespondPackets(data, 0, 2)
	r.RespondPackets(data, 4, 8)
	r.RespondPackets(data, 2, 4)
	c.Server.Reply(synth.Write3Reply(8192).Invalidating(0xa1))
	s := look.At(w)
	tells(t, s, "", "1 complete")
	if got := moved(s.Transactions[0]); got != "read 4096, read 4096" {
		t.Errorf("moved %s", got)
	}
}

// TestUnreliable: on an unreliable connection (UC), nothing is retransmitted, missing packets are
// lost, and late packets are out of order.
func TestUnreliable(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{ManualAck: true})
	c.Connect()
	var sends [][]*synth.Frame
	for range 5 {
		sends = append(sends, c.Client.Send(synth.Call{Program: 100003, Version: 3, XID: uint32(len(sends)) + 1}.Bytes(), synth.Over(rocev2.UC)))
	}
	w.Drop(sends[1]...)
	w.Swap(sends[3][0], sends[4][0])
	s := look.At(w)
	tells(t, s, "capture-incomplete capture-incomplete", "1 no_reply, 3 no_reply, 5 no_reply")
	if x := s.Connections[0]; x.NotCaptured != 2 || x.OutOfOrder != 1 || x.Retransmitted != 0 {
		t.Errorf("%d lost, %d out of order, %d again", x.NotCaptured, x.OutOfOrder, x.Retransmitted)
	}
}

// TestReorderedRequests: RoCE requests that arrive out of order are processed in the order of
// their PSNs, and none is lost.
func TestReorderedRequests(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{ManualAck: true, MTU: 1024})
	c.Connect()
	c.RPC(synth.Null(), synth.NullReply())
	data := make([]byte, 8192)
	call := synth.Read3(0, 8192).Offer(synth.Mem(0xa1, 8192))
	c.Client.Call(call)
	writes := c.Server.Write(0xa1, call.Writes[0][0].Offset, data)
	reply := c.Server.Reply(synth.Read3Reply(data).Invalidating(0xa1).To(call))
	w.Swap(writes[1], writes[6])
	w.Swap(writes[3], reply[0])
	c.Client.Ack()
	s := look.At(w)
	tells(t, s, "", "1 complete, 2 complete")
	if got, x := moved(s.Transactions[1]), s.Connections[0]; got != "write 8192" || x.NotCaptured != 0 || x.OutOfOrder == 0 || x.Retransmitted != 0 {
		t.Errorf("moved %s, %d lost, %d out of order, %d again", got, x.NotCaptured, x.OutOfOrder, x.Retransmitted)
	}
}

// TestReuseByPSN: if the PSNs of a queue pair suddenly jump, it belongs to another connection.
func TestReuseByPSN(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	for range 3 {
		c.RPC(synth.Getattr3(), synth.Getattr3Reply())
	}
	c.Client.NextPSN ^= 1 << 23
	c.Server.NextPSN ^= 1 << 23
	for range 2 {
		c.RPC(synth.Getattr3(), synth.Getattr3Reply())
	}
	s := look.At(w)
	tells(t, s, "", "1 complete, 2 complete, 3 complete, 4 complete, 5 complete")
	if len(s.Connections) != 2 || s.Connections[0].State() != string(record.EndReused) {
		t.Errorf("%d connections, the first ended by %v", len(s.Connections), s.Connections[0].State())
	}
}

// TestWritesAfterLoss: packets that are missing from the capture cause no error against a side.
func TestWritesAfterLoss(t *testing.T) {
	look.Both(t, synth.Options{MTU: 1024, ManualAck: true}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		c.Connect()
		call := synth.Read3(0, 8192).Offer(synth.Mem(0xa1, 8192))
		missed := c.Client.Call(synth.Read3(0, 8192).Offer(synth.Mem(0xb1, 8192)))
		c.Client.Call(call)
		c.Server.Ack() // The ACK shows that the packet was delivered.
		writes := c.Server.Write(0xb1, synth.Mem(0xb1, 1).Offset, make([]byte, 8192))
		c.Server.Write(0xa1, call.Writes[0][0].Offset, make([]byte, 8192))
		c.Client.Ack()
		c.Server.Reply(synth.Read3Reply(make([]byte, 8192)).Invalidating(0xa1).To(call))
		c.Client.Ack()
		w.Drop(missed...)
		w.Drop(writes[2])
		s := look.At(w)
		for _, f := range s.Findings {
			if f.Severity == record.Error {
				t.Errorf("packets are missing from the capture, but there is an error: %s: %s", f.Rule, f.Message)
			}
		}
		if got := moved(s.Transactions[0]); got != "write 8192" {
			t.Errorf("moved %s", got)
		}
	})
}

// TestRefusedWrite: a refused Write has moved the data before the refused packet, and the ladder
// of its transaction is in the order of time.
func TestRefusedWrite(t *testing.T) {
	refused := func(acknowledged bool) *look.Seen {
		w := synth.New()
		c := w.RoCE(synth.Options{MTU: 1024, ManualAck: true})
		c.Connect()
		call := synth.Read3(0, 8192).Offer(synth.Mem(0xa1, 8192))
		c.Client.Call(call)
		c.Server.Ack()
		first := c.Server.NextPSN
		c.Server.Write(0xa1, call.Writes[0][0].Offset, make([]byte, 8192))
		c.Server.Reply(synth.Read3Reply(make([]byte, 8192)).Invalidating(0xa1).To(call))
		if acknowledged {
			c.Client.Ack()
		}
		c.Client.Nak(rocev2.NakRemoteAccessError, synth.AtPSN(first+3))
		return look.At(w)
	}
	s := refused(false)
	tells(t, s, "remote-error-nak reply-not-delivered", "1 no_reply")
	if got := moved(s.Transactions[0]); got != "write 3072" {
		t.Errorf("moved %s, want the 3072 bytes before the packet that is refused", got)
	}
	ordered(t, s.Transactions[0])
	t.Run("a late copy, after the Reply was acknowledged", func(t *testing.T) {
		tells(t, refused(true), "remote-error-nak", "1 complete")
	})
	t.Run("at its first packet", func(t *testing.T) {
		s := lookAt(t, "rocev2-chimera-overrun42.pcap")
		for _, x := range s.Transactions {
			ordered(t, x)
			if x.XID == 0x882052db {
				if got := moved(x); strings.Trim(got, "wrdite0ply, ") != "" {
					t.Errorf("0x882052db: moved %s", got)
				}
			}
		}
	})
}

func ordered(t *testing.T, x *record.Transaction) {
	t.Helper()
	if !slices.IsSortedFunc(x.Timeline, func(a, b record.Event) int { return int(a.Time - b.Time) }) {
		t.Errorf("the timeline of %v runs backwards: %s", x.XID, events(x.Timeline))
	}
}

// lookAt dissects a capture.
func lookAt(t *testing.T, name string) *look.Seen {
	t.Helper()
	s, d := look.Collect(dissect.Options{})
	var err error
	if s.Summary, err = d.Run(t.Context(), open(t, name+".zst")); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRetransmittedOnTheNextConnection: a Call whose Reply was refused is retransmitted on the
// next connection, and on the one after it.
func TestRetransmittedOnTheNextConnection(t *testing.T) {
	look.Both(t, synth.Options{ManualAck: true}, func(t *testing.T, w *synth.Wire, first *synth.Conn) {
		o := first.Options
		const n = 30
		for i := range n {
			c := first
			if i > 0 {
				o.Client = synth.End{Addr: first.Client.Addr}
				o.Server = synth.End{Addr: first.Server.Addr, Port: first.Server.Port}
				c = look.Transports[map[bool]string{true: "iWARP", false: "RoCE"}[t.Name() == "TestRetransmittedOnTheNextConnection/iWARP"]](w, o)
			}
			c.Connect()
			call := synth.Read3(0, 4096).Offer(synth.Mem(0xa1, 4096)).OfferReply(synth.Mem(0xa2, 4096))
			call.XID = 0x99
			c.Client.Call(call)
			c.Server.Ack()
			reply := synth.Read3Reply(make([]byte, 4096)).To(call)
			c.Server.Push(reply)
			c.Client.Refuse()
			c.Server.Reply(reply)
			w.Swap(w.Frames[len(w.Frames)-1], w.Frames[len(w.Frames)-2]) // The Reply was still on its way.
			w.Advance(1e7)
		}
		s := look.At(w)
		if len(s.Transactions) != n {
			t.Fatalf("%d transactions", len(s.Transactions))
		}
		for i, x := range s.Transactions {
			if id, known := x.RetransmitOf.Get(); known != (i > 0) || known && id != s.Transactions[i-1].ID {
				t.Errorf("transaction %d: retransmit_of %v", i, x.RetransmitOf)
			}
			if x.ReplyChunk != nil && x.ReplyChunk.Segments[0].ReturnedLength.Known() {
				t.Errorf("transaction %d has a returned length", i)
			}
		}
	})
	t.Run("noreplychunk3", func(t *testing.T) {
		s := lookAt(t, "rocev2-chimera-noreplychunk3.pcap")
		byXID, chains := map[record.Hex32]int64{}, 0
		for _, x := range s.Transactions {
			id, known := x.RetransmitOf.Get()
			before, again := byXID[x.XID]
			if again {
				chains++
				if !known || id != before {
					t.Errorf("transaction %d (%v): retransmit_of %v, want %d", x.ID, x.XID, x.RetransmitOf, before)
				}
			}
			byXID[x.XID] = x.ID
			if x.ReplyChunk == nil || x.Reply != nil {
				continue
			}
			for _, g := range x.ReplyChunk.Segments {
				if g.ReturnedLength.Known() {
					t.Errorf("transaction %d: returned_length %v without a Reply", x.ID, g.ReturnedLength)
				}
			}
		}
		if chains < 29 {
			t.Errorf("%d repeats of Calls, want 29", chains)
		}
	})
}

// TestReturnedLengthIsUnknown: if a Reply contains no Reply chunk, the returned length is unknown
// and not 0.
func TestReturnedLengthIsUnknown(t *testing.T) {
	look.Both(t, synth.Options{}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		c.Connect()
		call := synth.Getattr3().OfferReply(synth.Mem(0xa1, 4096))
		c.Client.Call(call)
		reply := synth.Getattr3Reply().To(call)
		reply.ReplyChunk = nil
		c.Server.Reply(reply)
		s := look.At(w)
		if x := s.Transactions[0]; x.ReplyChunk == nil || x.ReplyChunk.Segments[0].ReturnedLength.Known() {
			t.Errorf("Reply chunk %+v", x.ReplyChunk)
		}
	})
}

// TestRejected: a rejection cites the document of its transport, and no value counts as
// negotiated.
func TestRejected(t *testing.T) {
	look.Both(t, synth.Options{}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		c.Reject()
		s := look.At(w)
		if len(s.Findings) != 1 {
			t.Fatalf("findings %s", s.Rules())
		}
		want := map[bool]string{true: "RFC 5044 s.7.1", false: "IBTA"}[s.Connections[0].Transport == "iWARP"]
		if f := s.Findings[0]; !strings.HasPrefix(f.Section, want) || !strings.HasPrefix(f.Rule, "connection-rejected") {
			t.Errorf("%s cites %s, want %s", f.Rule, f.Section, want)
		}
		if v := s.Connections[0].RemoteInvalidation; v.Known() {
			t.Errorf("remote invalidation %v", v)
		}
	})
}

// TestSections: a finding cites a document of its transport.
func TestSections(t *testing.T) {
	want := map[string]string{
		"RoCEv2": "retransmission-timeout: IBTA vol. 1 s.9.7.6.1.3, capture-incomplete: IBTA vol. 1 s.9.7, " +
			"remote-error-nak: IBTA vol. 1 s.9.7.5, reply-not-delivered: IBTA vol. 1 s.9.9.3",
		"iWARP": "retransmission-timeout: RFC 6298 s.5, capture-incomplete: RFC 9293 s.3.4, " +
			"terminate: RFC 5040 s.4.8, reply-not-delivered: RFC 5040 s.4.8",
	}
	look.Both(t, synth.Options{}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		call := c.Client.Call(synth.Getattr3())
		w.Advance(500 * time.Millisecond)
		w.Retransmit(call...)
		c.Server.Reply(synth.Getattr3Reply())
		kept := len(w.Frames)
		c.Client.Call(synth.Null())
		w.Frames = w.Frames[:kept] // The packet is missing from the capture.
		c.Server.Ack()
		c.RPC(synth.Null(), synth.NullReply())
		c.Client.Call(synth.Null())
		c.Server.Reply(synth.NullReply())
		c.Client.Refuse()
		s := look.At(w)
		var got []string
		for _, f := range s.Findings {
			if f.Rule != "connection-lost" {
				got = append(got, f.Rule+": "+f.Section)
			}
		}
		if transport := s.Connections[0].Transport; strings.Join(got, ", ") != want[transport] {
			t.Errorf("%s: %q, want %q", transport, got, want[transport])
		}
	})
}

// TestMessageInDisorder: if the packets of a message are out of order in the capture, its last
// packet is the one that completed it.
func TestMessageInDisorder(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{MTU: 256})
	c.Connect()
	c.RPC(synth.Null(), synth.NullReply())
	begin := len(w.Frames)
	c.Client.Call(synth.Write3(0, make([]byte, 400)))
	n := len(w.Frames) - begin
	c.Server.Ack()
	f := w.Frames[begin : begin+n]
	slices.Reverse(f)
	for i := range f[:n/2] { // The times stay in order.
		f[i].Time, f[n-1-i].Time = f[n-1-i].Time, f[i].Time
	}
	s := look.At(w)
	call := s.Transactions[len(s.Transactions)-1].Call
	last := f[n-1]
	if n != 2 || call == nil || call.Packet != int64(begin+n) || call.LastPacket != call.Packet || call.Time != record.Time(last.Time) || call.LastTime != call.Time {
		t.Errorf("a Call of %d packets behind packet %d: %+v", n, begin, call)
	}
}

// TestTouchBeforeCall: a Write that is in the capture before the Call that exposes its memory
// causes no error. A Write to memory that no Call exposes does.
func TestTouchBeforeCall(t *testing.T) {
	for handle, want := range map[uint32]string{0xa1: "", 0xa2: "rdma-outside-exposed-memory"} {
		look.Both(t, synth.Options{}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
			c.Connect()
			c.RPC(synth.Null(), synth.NullReply())
			open := synth.Read3(0, 4096).Offer(synth.Mem(0xb1, 4096))
			open.XID = 7
			c.Client.Call(open)
			call := synth.Read3(0, 4096).Offer(synth.Mem(0xa1, 4096))
			call.XID = 8
			c.Server.Write(handle, call.Writes[0][0].Offset, make([]byte, 64))
			c.Client.Call(call)
			c.Server.Ack()
			if s := look.At(w); s.Rules() != want {
				t.Errorf("a Write to 0x%x: findings %q, want %q", handle, s.Rules(), want)
			}
		})
	}
}

// TestMarkersBehindLoss: if segments of a stream with markers are missing, or the reply that
// announces markers, the starts of FPDUs are a guess, which causes no error against a side.
func TestMarkersBehindLoss(t *testing.T) {
	for lost := 4; lost < 60; lost++ { // The request for markers is in the capture.
		w := synth.New()
		c := w.IWARP(synth.Options{Markers: true, MTU: 300, ManualAck: true})
		c.Connect()
		for i := range uint32(20) {
			call := synth.Write3(0, bytes.Repeat([]byte{0x55}, 400))
			call.XID = i + 100
			c.Client.Call(call)
			c.Server.Reply(synth.Write3Reply(400).To(call))
		}
		w.Frames = slices.Delete(w.Frames, lost, lost+1)
		for _, f := range look.At(w).Findings {
			if f.Severity == record.Error {
				t.Errorf("without frame %d: %s: %s", lost+1, f.Rule, f.Message)
			}
		}
	}
}

// TestHandshakeOverSegments: an MPA request or reply that TCP divides is one, and FPDUs begin after it.
func TestHandshakeOverSegments(t *testing.T) {
	for _, size := range []int{16, 20, 27, 1400} {
		w := synth.New()
		c := w.IWARP(synth.Options{})
		c.Open()
		c.Client.Cork()
		c.MPARequest()
		c.Client.Uncork(size)
		c.Server.Cork()
		c.MPAReply()
		c.Server.Uncork(size)
		c.RPC(synth.Null(), synth.NullReply())
		s := look.At(w)
		tells(t, s, "", "1 complete")
		if r := s.Connections[0]; r.Handshake != "seen" || r.NotCaptured != 0 || len(s.Connections) != 1 {
			t.Errorf("segments of %d bytes: handshake %s, %d not captured, %d connections", size, r.Handshake, r.NotCaptured, len(s.Connections))
		}
	}
}

// TestCRCs: a wrong CRC is an error if either side asked for CRCs in the handshake.
func TestCRCs(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for asks, want := range map[[2]bool]string{{}: "", {true, false}: "mpa-crc-bad", {false, true}: "mpa-crc-bad", {true, true}: "mpa-crc-bad"} {
			w := synth.New()
			c := w.IWARP(synth.Options{Markers: markers})
			c.Open()
			c.MPARequest(func(m *iwarp.MPA) { m.CRC = asks[0] })
			c.MPAReply(func(m *iwarp.MPA) { m.CRC = asks[1] })
			c.RPC(synth.Null(), synth.NullReply())
			from := c.Client.Sequence
			call := c.Client.Call(synth.Null())[0]
			w.Drop(call)
			wrong := slices.Clone(call.Data[len(call.Data)-int(c.Client.Sequence-from):])
			wrong[len(wrong)-1] ^= 1
			c.Client.Sequence = from
			c.Client.Stream(wrong)
			if s := look.At(w); s.Rules() != want {
				t.Errorf("asked for CRCs: %t, markers %t: findings %q, want %q", asks, markers, s.Rules(), want)
			}
		}
	}
}

// TestTruncatedSegments: FPDUs are found again after one that the capture truncated, also if it goes on in the next segment.
func TestTruncatedSegments(t *testing.T) {
	for _, size := range []int{200, 300, 400, 1400} {
		w := synth.New()
		c := w.IWARP(synth.Options{ManualAck: true})
		c.Connect()
		c.RPC(synth.Call{XID: 1}, synth.NullReply())
		call := synth.Write3(0, make([]byte, 400))
		call.XID = 2
		c.Client.Cork()
		c.Client.Call(call)
		c.Client.Uncork(size)[0].Truncate(150)
		c.Client.Call(synth.Call{XID: 3})
		c.Server.Ack()
		s, xids := look.At(w), []record.Hex32(nil)
		for _, r := range s.Transactions {
			xids = append(xids, r.XID)
		}
		if slices.Sort(xids); !slices.Equal(xids, []record.Hex32{1, 2, 3}) || s.Summary.ICRCBad != 0 || s.Connections[0].NotCaptured != 0 {
			t.Errorf("segments of %d bytes: XIDs %v, %d bad CRCs, %d not captured", size, xids, s.Summary.ICRCBad, s.Connections[0].NotCaptured)
		}
	}
}

// TestMissingEnd: what the end of a stream lacks is counted once, also if another connection uses its ports again.
func TestMissingEnd(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := synth.New()
		c := overTCP(w)
		c.Open()
		c.Client.Records(plainCall(1))
		c.Server.Records(plainReply(1))
		c.Client.Records(plainCall(2))
		w.Drop(w.Last())
		c.Server.Ack()
		if again {
			next := c.Options
			next.Client.Seq, next.Server.Seq = 7, 8
			c = c.Another(next)
			c.Open()
			c.Client.Records(plainCall(3))
		}
		s := look.At(w)
		if n := s.Connections[0].NotCaptured; n != 1 || len(s.Connections) != map[bool]int{false: 1, true: 2}[again] || s.Rules() != "capture-incomplete" || s.Summary.NotCaptured != 1 {
			t.Errorf("again: %t: %d connections, %d segments are missing, %d in total, findings %s", again, len(s.Connections), n, s.Summary.NotCaptured, s.Rules())
		}
	}
}

// TestServerAnswersAfterDREQ: packets after the DREQ belong to the closing connection and violate
// no rule.
func TestServerAnswersAfterDREQ(t *testing.T) {
	look.Both(t, synth.Options{ManualAck: true}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		c.Connect()
		var calls []synth.Call
		for i := range 3 {
			call := synth.Read3(0, 4096).Offer(synth.Mem(0xa1+uint32(i), 4096))
			call.XID = uint32(i) + 1
			if i > 0 { // The first Reply grants more than one credit.
				c.Client.Call(call)
			} else {
				c.RPC(call, synth.Read3Reply(make([]byte, 4096)).Invalidating(0xa1))
			}
			calls = append(calls, call)
		}
		if c.Options.MTU == 0 {
			t.Fatal("no MTU")
		}
		end := func(s *synth.Side) {
			if t.Name() == "TestServerAnswersAfterDREQ/iWARP" {
				s.FIN()
			} else {
				s.DREQ()
			}
		}
		end(c.Client)
		for _, call := range calls[1:] {
			c.Server.Write(call.Writes[0][0].Handle, call.Writes[0][0].Offset, make([]byte, 4096))
			c.Server.Reply(synth.Read3Reply(make([]byte, 4096)).Invalidating(call.Writes[0][0].Handle).To(call))
		}
		again := synth.Read3Reply(make([]byte, 4096)).Invalidating(0xa1).To(calls[0])
		c.Server.Write(0xa1, calls[0].Writes[0][0].Offset, make([]byte, 4096))
		c.Server.Reply(again)
		s := look.At(w)
		if len(s.Connections) != 1 || s.Rules() != "" {
			t.Errorf("%d connections, findings %s", len(s.Connections), s.Rules())
			for _, f := range s.Findings {
				t.Log(f.Message)
			}
		}
	})
}

// TestRepeatedWrite: a retransmission or a NAK of a Write that is not the latest belongs to the
// transaction of that Write.
func TestRepeatedWrite(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{MTU: 1024, ManualAck: true})
	c.Connect()
	var calls []synth.Call
	var writes [][]*synth.Frame
	c.RPC(synth.Null(), synth.NullReply())
	for i := range 4 {
		call := synth.Read3(0, 4096).Offer(synth.Mem(0xa1+uint32(i), 4096))
		call.XID = uint32(i) + 0x10
		calls = append(calls, call)
		c.Client.Call(call)
	}
	c.Server.Ack()
	psn := c.Server.NextPSN
	for _, call := range calls {
		writes = append(writes, c.Server.Write(call.Writes[0][0].Handle, call.Writes[0][0].Offset, make([]byte, 4096)))
	}
	w.Retransmit(writes[1][1], writes[1][2], writes[3][0])
	c.Client.Nak(rocev2.NakPSNSequenceError, synth.AtPSN(psn+2*4))
	for _, call := range calls {
		c.Server.Reply(synth.Read3Reply(make([]byte, 4096)).Invalidating(call.Writes[0][0].Handle).To(call))
	}
	c.Client.Ack()
	s := look.At(w)
	tells(t, s, "", "1 complete, 10 complete, 11 complete, 12 complete, 13 complete")
	for i, want := range []int{0, 2, 0, 1} {
		x := s.Transactions[i+1]
		naks := 0
		for _, e := range x.Timeline {
			if e.Event == record.EventNak {
				naks++
			}
		}
		if x.Retransmitted != want || naks != map[bool]int{true: 1}[i == 2] {
			t.Errorf("%v: %d retransmitted, %d NAKs", x.XID, x.Retransmitted, naks)
		}
	}
}

// TestBadICRC: a packet that its receiver drops has no effect, once its sender has shown that it
// fills in ICRCs.
func TestBadICRC(t *testing.T) {
	rpc := func(c *synth.Conn) {
		c.RPC(synth.Write3(0, make([]byte, 3000)).Reduce(0xa1), synth.Write3Reply(3000).Invalidating(0xa1))
	}
	for name, damage := range map[string]func(w *synth.Wire, c *synth.Conn){
		"first packet of a connection": func(w *synth.Wire, c *synth.Conn) {
			f := c.Client.Call(synth.Getattr3())[0]
			w.Swap(f, w.Frames[len(w.Frames)-1])
			f.Corrupt(8 * 100)
		},
		"destination QPN": func(w *synth.Wire, c *synth.Conn) {
			f := *w.Frames[6]
			x := w.Retransmit(&f)[0]
			x.Corrupt(8*(14+20+8+6) + 3)
		},
		"source address": func(w *synth.Wire, c *synth.Conn) {
			f := *w.Frames[6]
			x := w.Retransmit(&f)[0]
			x.Corrupt(8*(14+14) + 3)
		},
		"a DREQ": func(w *synth.Wire, c *synth.Conn) {
			c.Client.DREQ().Corrupt(-1)
			rpc(c)
		},
		"a REQ of the same queue pair": func(w *synth.Wire, c *synth.Conn) {
			w.RoCE(c.Options).REQ().Corrupt(-1)
			rpc(c)
		},
		"a NAK": func(w *synth.Wire, c *synth.Conn) {
			c.Client.Nak(rocev2.NakRemoteAccessError, synth.AtPSN(c.Server.NextPSN-1)).Corrupt(-1)
			rpc(c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			c := w.RoCE(synth.Options{})
			c.Connect()
			rpc(c)
			damage(w, c)
			s := look.At(w)
			if len(s.Connections) != 1 || s.Summary.ICRCBad != 1 || s.Connections[0].Ended.Known() {
				t.Errorf("there are %d connections, %d packets with a bad ICRC, and the first ended: %t; want one that goes on, and one such packet", len(s.Connections), s.Summary.ICRCBad, s.Connections[0].Ended.Known())
			}
			for _, x := range s.Transactions {
				if x.Status != record.Complete || len(x.Findings) > 0 {
					t.Errorf("the RPC %v is %s with the findings %q; want it complete and without any", x.XID, x.Status, x.Findings)
				}
			}
			if got := strings.TrimSpace(strings.ReplaceAll(s.Rules(), "icrc-bad", "")); got != "" {
				t.Errorf("findings %s", got)
			}
		})
	}
}

// TestIDsNeverDangle: if two half connections are joined late, no record names the one that
// disappears, and its counts are kept.
func TestIDsNeverDangle(t *testing.T) {
	for name, o := range map[string]dissect.Options{"": {}, "little memory": {Memory: 1 << 16}} {
		for _, pause := range []int64{0, 3e9} { // The halves are joined before their ids are final, or too late.
			look.Both(t, synth.Options{}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
				var rest []*synth.Frame
				for i := range 40 {
					c.RPC(synth.Read3(0, 4096).Offer(synth.Mem(uint32(i)+1, 4096)), synth.Read3Reply(make([]byte, 4096)).Invalidating(uint32(i)+1))
				}
				if c.Server.Conn == c && t.Name() == "" {
					c.Server.Nak(rocev2.NakPSNSequenceError)
				}
				// One direction comes first, then the other.
				for _, f := range w.Frames {
					if f.From == c.Server {
						f.Time += pause
						rest = append(rest, f)
					}
				}
				w.Keep(func(f *synth.Frame) bool { return f.From == c.Client })
				w.Frames = append(w.Frames, rest...)
				s := look.With(w, o)
				if what := dangling(s); what != "" {
					t.Errorf("%s, %d ns apart: %s", name, pause, what)
				}
				packets := int64(0)
				for _, c := range s.Connections {
					packets += c.Packets
				}
				if packets != int64(len(w.Frames)) && name == "" && !strings.Contains(t.Name(), "iWARP") {
					t.Errorf("connections have %d packets, of %d", packets, len(w.Frames))
				}
			})
		}
	}
}

// TestJoinedFigures: the counts of a half connection are kept when it is joined to one that has
// an id.
func TestJoinedFigures(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{ManualAck: true})
	c.Server.Send([]byte("12345678"))
	w.Advance(2 * time.Second)
	c.Client.Call(synth.Write3(0, make([]byte, 4096)).Reduce(0xa1).Offer(synth.Mem(0xb1, 4096)))
	call := synth.Write3(0, make([]byte, 4096)).Reduce(0xa2)
	call.XID = 77
	c.Client.Call(call)
	c.Server.Reply(synth.Write3Reply(4096).To(call).Invalidating(0xa2))
	s := look.At(w)
	if len(s.Connections) != 1 {
		t.Errorf("%d connections, want the halves to be one", len(s.Connections))
	}
	got := s.Connections[0].Invalidation.Or(record.InvalidationFigures{})
	want := record.InvalidationFigures{
		Style: record.RespondersChoice, HandleChoice: record.Some(record.ChoiceOnly), ChunkReplies: 1, InvalidatingReplies: 1, MixedDirectionCalls: 1,
	}
	if got != want {
		t.Errorf("figures are %+v, want %+v", got, want)
	}
}

// TestHeldIsNotAtHand: a packet that waited for a lost one, and is processed because a response
// shows the loss, does not determine what the response belongs to.
func TestHeldIsNotAtHand(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{ManualAck: true})
	c.Connect()
	first, second := synth.Getattr3(), synth.Write3(0, make([]byte, 100)).Reduce(0xa1)
	c.Client.Call(first)
	c.Client.Call(second)
	c.Server.NextPSN++ // This packet is missing from the capture.
	c.Server.Reply(synth.Getattr3Reply().To(first))
	response := c.Server.ReadRequest(0xa1, second.Reads[0].Offset, 100).Respond(make([]byte, 100))
	s := look.At(w)
	for _, p := range s.Packets {
		if p.Number == int64(slices.Index(w.Frames, response[0])+1) && (p.RDMAOperation != "RDMA Read" || p.XID.Or(0) != record.Hex32(second.XID)) {
			t.Errorf("the response is %q of XID %v, marks %v", p.RDMAOperation, p.XID, p.Marks)
		}
	}
}

// TestAfterAPause: records after a pause of several seconds wait as long as others: a Reply for
// its acknowledgement, and a half connection for the other half.
func TestAfterAPause(t *testing.T) {
	look.Both(t, synth.Options{ManualAck: true}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		c.Connect()
		call := synth.Getattr3()
		c.Client.Call(call)
		c.Server.Ack()
		w.Advance(3 * time.Second)
		reply := c.Server.Reply(synth.Getattr3Reply().To(call))
		w.Advance(time.Millisecond)
		w.Retransmit(reply...)
		c.Client.Ack()
		s := look.At(w)
		tells(t, s, "", "1 complete")
		x := s.Transactions[0]
		if !slices.ContainsFunc(x.Timeline, func(e record.Event) bool { return e.Event == record.EventAck }) || x.Retransmitted != 1 {
			t.Errorf("%d packets were sent again, want the timeline to say so: %s", x.Retransmitted, events(x.Timeline))
		}
	})
}

// TestTrailer: an Ethernet trailer or FCS is not payload. The tests of package link have more
// cases.
func TestTrailerIsNoPayload(t *testing.T) {
	look.Both(t, synth.Options{}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		c.Connect()
		c.RPC(synth.Write3(0, make([]byte, 1000)).Reduce(0xa1), synth.Write3Reply(1000).Invalidating(0xa1))
		plain := look.At(w)
		for _, f := range w.Frames {
			f.Data = append(slices.Clone(f.Data), 1, 2, 3, 4)
			f.Length += 4
		}
		s := look.At(w)
		tells(t, s, "", "1 complete")
		if s.Summary.ICRCBad != 0 || fmt.Sprintf("%+v", *s.Transactions[0].Call) != fmt.Sprintf("%+v", *plain.Transactions[0].Call) {
			t.Errorf("%d bad CRCs; %+v", s.Summary.ICRCBad, s.Transactions[0].Call)
		}
	})
}

// TestWraps: numbers near the end of their range wrap correctly.
func TestWraps(t *testing.T) {
	t.Run("an RDMA Read of 2^32-1 bytes", func(t *testing.T) {
		w := synth.New()
		c := w.RoCE(synth.Options{ManualAck: true})
		c.Connect()
		call := synth.Write3(0, make([]byte, 4096)).Reduce(0xa1)
		call.Reads[0].Length = math.MaxUint32
		c.Client.Call(call)
		r := c.Server.ReadRequest(0xa1, call.Reads[0].Offset, math.MaxUint32)
		r.RespondPackets(make([]byte, 1<<16), 0, 4)
		c.Client.Ack()
		s := look.At(w)
		if x := s.Transactions[0]; moved(x) != fmt.Sprintf("read %d", 4*c.Options.MTU) || s.Connections[0].OutOfOrder != 0 || s.Connections[0].Retransmitted != 0 {
			t.Errorf("moved %s, %d out of order, %d again", moved(x), s.Connections[0].OutOfOrder, s.Connections[0].Retransmitted)
		}
	})
	look.Both(t, synth.Options{}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		c.Connect()
		top := rpcrdma.Segment{Handle: 0xa1, Length: 4096, Offset: math.MaxUint64 - 4095}
		call := synth.Read3(0, 4096).Offer(top)
		c.Client.Call(call)
		c.Server.Write(0xa1, top.Offset, make([]byte, 4096))
		c.Server.Write(0xa1, math.MaxUint64-2047, make([]byte, 4096)) // This is beyond the end of the address space.
		c.Server.Write(0xa1, 0, make([]byte, 16))
		s := look.At(w)
		if got := moved(s.Transactions[0]); got != "write 4096" {
			t.Errorf("moved %s", got)
		}
		if got := s.Rules(); got != "rdma-outside-exposed-memory rdma-outside-exposed-memory" {
			t.Errorf("findings %q", got)
		}
	})
}

// TestLimits: every limit can be reached, always with the same result, and is reported once and
// in the summary. State that is not evicted is unchanged.
func TestLimits(t *testing.T) {
	rows := []struct {
		kind   string
		memory int64
		make   func(w *synth.Wire)
	}{
		{"chunk_data", 1 << 20, func(w *synth.Wire) {
			c := floods.RoCE(w)
			for h := range uint32(8) {
				call := synth.Readdir3(100000).OfferReply(synth.Mem(h+1, 100000))
				c.Client.Call(call)
				c.Server.Write(h+1, call.ReplyChunk[0].Offset, make([]byte, 100000))
			}
		}},
		{"held_packets", 1 << 20, func(w *synth.Wire) {
			c := floods.RoCE(w)
			c.Client.NextPSN += 5
			for range 100 {
				c.Client.Send(make([]byte, 4096), synth.PacketSize(4096))
			}
		}},
		{"send_data", 1 << 20, func(w *synth.Wire) {
			c := floods.RoCE(w)
			c.Client.Send(make([]byte, 600000))
		}},
		{"operations", 1 << 20, func(w *synth.Wire) {
			c := floods.RoCE(w)
			for range 2000 {
				c.Server.Write(1, 0, []byte("data"))
			}
		}},
		{"calls", 1 << 20, func(w *synth.Wire) {
			c := floods.RoCE(w)
			for range 200 {
				c.RPC(synth.Null(), synth.NullReply())
			}
			for range 200 {
				c.Client.Call(synth.Null())
			}
		}},
		{"connections", 1 << 20, func(w *synth.Wire) {
			for range 300 {
				w.RoCE(floods.Pair).REQ()
			}
		}},
		{"ranges", 0, func(w *synth.Wire) {
			c := floods.RoCE(w)
			call := synth.Read3(0, 1<<20).Offer(synth.Mem(0xa1, 1<<20))
			c.Client.Call(call)
			for i := range 1100 {
				c.Server.Write(0xa1, call.Writes[0][0].Offset+uint64(i)*100, []byte("data"))
			}
		}},
		{"events", 0, func(w *synth.Wire) {
			c := floods.RoCE(w)
			call := synth.Read3(0, 1<<20).Offer(synth.Mem(0xa1, 1<<20))
			c.Client.Call(call)
			for range 2100 {
				c.Server.Write(0xa1, call.Writes[0][0].Offset, []byte("data"))
			}
		}},
	}
	for _, row := range rows {
		t.Run(row.kind, func(t *testing.T) {
			var before string
			for range 3 {
				w := synth.New()
				row.make(w)
				o := dissect.Options{Memory: row.memory}
				s := look.With(w, o)
				if s.Summary.Evicted[row.kind] == 0 {
					t.Fatalf("limits reached: %v", s.Summary.Evicted)
				}
				told := 0
				for _, f := range s.Findings {
					if f.Rule == "memory-limit-reached" {
						told++
					}
				}
				if told != len(s.Summary.Evicted) {
					t.Errorf("%d findings for %v", told, s.Summary.Evicted)
				}
				if what := dangling(s); what != "" {
					t.Error(what)
				}
				all := fmt.Sprintf("%v %s %s", s.Summary.Evicted, states(s), s.Rules())
				if before != "" && all != before {
					t.Errorf("another time it is\n%s, not\n%s", all, before)
				}
				before = all
			}
		})
	}
}
