package transaction_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
)

// rebuilt holds the rebuilt streams of one transaction.
type rebuilt struct {
	record      *record.Transaction
	call, reply *record.Payload
}

// rebuild dissects synthetic frames.
func rebuild(w *synth.Wire, o dissect.Options) (all []rebuilt) {
	o.Rebuild = true
	keep := func(p *record.Payload) *record.Payload {
		if p == nil {
			return nil
		}
		return &record.Payload{Data: slices.Clone(p.Data), Holes: slices.Clone(p.Holes)}
	}
	look.Pour(w.Frames, dissect.Handler{Payload: func(r *record.Transaction, call, reply *record.Payload) error {
		all = append(all, rebuilt{r.Clone(), keep(call), keep(reply)})
		return nil
	}}, o)
	return all
}

// TestRebuildHoles: bytes that are missing from the capture leave holes, which are counted, and
// all other bytes are in their places.
func TestRebuildHoles(t *testing.T) {
	mem := synth.Mem(0xa1, 8192)
	for name, test := range map[string]struct {
		act            func(w *synth.Wire, c *synth.Conn) (call, reply []byte) // returns the streams that were sent
		call, reply    []record.Hole
		lostCall, lost int64 // missing bytes according to the record
	}{
		"whole": {act: func(_ *synth.Wire, c *synth.Conn) ([]byte, []byte) {
			call, reply := synth.Read3(0, 5000).Offer(mem), synth.Read3Reply(look.Pattern(5000))
			c.RPC(call, reply)
			return streams(call, reply)
		}},
		// The second READ was answered inline, so its chunk is unused.
		"unused chunk": {act: func(_ *synth.Wire, c *synth.Conn) ([]byte, []byte) {
			call := synth.Compound(synth.OpPutFH(), synth.OpRead(0, 8), synth.OpRead(0, 4000), synth.OpGetAttr()).Offer(synth.Mem(0xb1, 8)).Offer(mem)
			reply := synth.CompoundReply(synth.ResPutFH(), synth.ResRead([]byte("inline!!")), synth.ResRead(look.Pattern(4000)), synth.ResGetAttr())
			call.XID, reply.XID = 1, 1
			made, got := streams(call, reply)
			c.Client.Call(call)
			c.Server.Ack()
			c.Server.Write(mem.Handle, mem.Offset, look.Pattern(4000))
			answer := reply
			answer.Results = synth.CompoundReply(synth.ResPutFH(), inlineRead([]byte("inline!!")), synth.ResRead(look.Pattern(4000)), synth.ResGetAttr()).Results
			answer = answer.To(call)
			answer.Writes[0][0].Length, answer.Writes[1][0].Length = 0, 4000
			c.Server.Reply(answer)
			c.Client.Ack()
			return made, got
		}},
		// The segments of a Read chunk need not be adjacent in the Read list.
		"interleaved Read chunks": {act: func(_ *synth.Wire, c *synth.Conn) ([]byte, []byte) {
			call := synth.Compound(synth.OpPutFH(), synth.OpWrite(0, look.Pattern(4000)), synth.OpWrite(4000, look.Pattern(3001)[1:])).Reduce(0xa1, 0xa2)
			call.Reads = slices.Concat(synth.ReadChunk(call.Reads[0].Position, synth.Mem(0xa1, 1500)), call.Reads[1:], synth.ReadChunk(call.Reads[0].Position, synth.Mem(0xa3, 2500)))
			reply := synth.CompoundReply(synth.ResPutFH(), synth.ResWrite(4000), synth.ResWrite(3000))
			c.RPC(call, reply)
			return streams(call, reply)
		}},
		// A Position Zero Read chunk may follow a Read chunk of a data item.
		"Position Zero last": {act: func(_ *synth.Wire, c *synth.Conn) ([]byte, []byte) {
			call, reply := synth.Write3(0, look.Pattern(3000)).Reduce(0xa2).Long(0xa1), synth.Write3Reply(3000)
			slices.Reverse(call.Reads)
			c.RPC(call, reply)
			return streams(call, reply)
		}},
		"READ_PLUS": {act: func(_ *synth.Wire, c *synth.Conn) ([]byte, []byte) {
			call := synth.Compound4(2, synth.OpPutFH(), synth.OpReadPlus(0, 4000)).Offer(mem)
			reply := synth.CompoundReply(synth.ResPutFH(), synth.ResReadPlus(0, look.Pattern(3998)))
			c.RPC(call, reply)
			return streams(call, reply)
		}},
		"version 2, Long Call and Long Reply": {act: func(_ *synth.Wire, c *synth.Conn) ([]byte, []byte) {
			call := synth.Compound(synth.OpPutFH(), synth.OpReadDir(4096)).Long(0xa2).OfferReply(mem)
			call.Vers = 2
			reply := synth.CompoundReply(synth.ResPutFH(), synth.ResReadDir("one", "two")).Long()
			c.RPC(call, reply)
			return streams(call, reply)
		}},
		// There are a Position Zero Read chunk and a Reply chunk, with integrity, so nothing is
		// reduced.
		"RPCSEC_GSS integrity": {act: func(_ *synth.Wire, c *synth.Conn) ([]byte, []byte) {
			call := synth.Compound(synth.OpPutFH(), synth.OpWrite(0, look.Pattern(3000)))
			call.Cred = synth.GSS(oncrpc.ServiceIntegrity, 9)
			call.Args = synth.XDR{}.Word(3000, 9).Append(plain(call.Args))
			call = call.Long(0xc1).OfferReply(mem)
			reply := synth.CompoundReply(synth.ResPutFH(), synth.ResWrite(3000))
			reply.Results = synth.XDR{}.Word(80, 9).Append(plain(reply.Results))
			c.RPC(call, reply.Long())
			return streams(call, reply.To(call))
		}},
		"Call was not seen": {act: func(w *synth.Wire, c *synth.Conn) ([]byte, []byte) {
			call, reply := synth.Read3(0, 4999).Offer(mem), synth.Read3Reply(look.Pattern(4999))
			c.RPC(synth.Null(), synth.NullReply())
			w.Drop(c.Client.Call(call)...)
			c.Server.Push(reply.To(call))
			c.Server.Reply(reply.To(call))
			_, got := streams(call, reply)
			binary.BigEndian.PutUint32(got, 2)
			return nil, got
		}, reply: []record.Hole{{From: readData, To: readData + 4999, Item: true}}, lost: 4999},
		"RoCE Write packet lost": {act: func(w *synth.Wire, c *synth.Conn) ([]byte, []byte) {
			call, reply := synth.Read3(0, 5000).Offer(mem), synth.Read3Reply(look.Pattern(5000))
			c.Client.Call(call)
			c.Server.Ack()
			w.Drop(c.Server.Push(reply.To(call))[1:3]...)
			c.Server.Reply(reply.To(call))
			c.Client.Ack()
			return streams(call, reply)
		}, reply: []record.Hole{{From: readData + 1024, To: readData + 3072, Item: true}}, lost: 2048},
		"RoCE Read response lost": {act: func(w *synth.Wire, c *synth.Conn) ([]byte, []byte) {
			call, reply := synth.Write3(0, look.Pattern(2501)).Reduce(0xa2), synth.Write3Reply(2501)
			c.Client.Call(call)
			c.Server.Ack()
			frames := c.Server.Pull(call)
			w.Drop(frames[len(frames)-1])
			c.Server.Reply(reply.To(call))
			c.Client.Ack()
			return streams(call, reply)
		}, call: []record.Hole{{From: writeData + 2048, To: writeData + 2501, Item: true}}, lostCall: 453},
		"RoCE cut": {act: func(w *synth.Wire, c *synth.Conn) ([]byte, []byte) {
			call, reply := synth.Read3(0, 3000).Offer(mem), synth.Read3Reply(look.Pattern(3000))
			c.RPC(call, reply)
			w.Truncate(220) // 42 bytes up to UDP, 12 of BTH, 16 of RETH, 48 of RPC-over-RDMA
			return streams(call, reply)
		}, reply: []record.Hole{ // A Write Only or First also has a RETH.
			{From: readData + 150, To: readData + 1024, Item: true},
			{From: readData + 1024 + 166, To: readData + 2048, Item: true},
			{From: readData + 2048 + 166, To: readData + 3000, Item: true},
		}, lost: 874 + 858 + 786},
		"RoCE Send cut": {act: func(w *synth.Wire, c *synth.Conn) ([]byte, []byte) {
			call, reply := synth.Write3(0, look.Pattern(500)), synth.Write3Reply(500)
			c.RPC(call, reply)
			w.Truncate(200) // 118 bytes of RPC are left
			return streams(call, reply)
		}, call: []record.Hole{{From: 118, To: writeData + 500}}, lostCall: writeData + 500 - 118},
	} {
		for transport, open := range look.Transports {
			if strings.HasPrefix(name, "RoCE") && transport != "RoCE" {
				continue
			}
			t.Run(name+" "+transport, func(t *testing.T) {
				w := synth.New()
				c := open(w, synth.Options{})
				c.Connect()
				call, reply := test.act(w, c)
				all := rebuild(w, dissect.Options{})
				got := all[len(all)-1]
				hold(t, "Call", got.call, call, test.call)
				hold(t, "Reply", got.reply, reply, test.reply)
				if c := got.record.Call; c != nil && c.MissingBytes != record.Some(test.lostCall) {
					t.Errorf("missing bytes of the Call: %v, want %d", c.MissingBytes, test.lostCall)
				}
				if m := got.record.Reply.MissingBytes; m != record.Some(test.lost) {
					t.Errorf("missing bytes of the Reply: %v, want %d", m, test.lost)
				}
			})
		}
	}
}

// These are the positions of the data of READ3resok and WRITE3args in a Payload stream of synth.
const (
	readData  = 24 + 20
	writeData = 40 + 20 + 20
)

// inlineRead is a result of READ whose data cannot be reduced.
func inlineRead(data []byte) synth.XDR {
	return synth.XDR{}.Word(25, 0).Bool(true).Opaque(data)
}

// plain is XDR without items that can be reduced.
func plain(x synth.XDR) synth.XDR { return synth.XDR{}.Fixed(x.Whole()) }

// streams returns the Payload streams of a Call and its Reply. A Call without an XID gets the XID
// 1.
func streams(call synth.Call, reply synth.Reply) (made, got []byte) {
	if call.XID == 0 {
		call.XID = 1
	}
	reply.XID = call.XID
	return call.Message().Whole(), reply.Message().Whole()
}

// hold compares a stream, which has zeros in its holes, with the stream that was sent.
func hold(t *testing.T, what string, got *record.Payload, sent []byte, holes []record.Hole) {
	t.Helper()
	if sent == nil {
		if got != nil {
			t.Errorf("%s: %d bytes, none was seen", what, len(got.Data))
		}
		return
	}
	if got == nil {
		t.Errorf("%s: not rebuilt", what)
		return
	}
	want := slices.Clone(sent)
	for _, h := range holes {
		clear(want[h.From:h.To])
	}
	if !slices.Equal(got.Holes, holes) || !bytes.Equal(got.Data, want) {
		t.Errorf("%s: holes %v, want %v\n got %x\nwant %x", what, got.Holes, holes, got.Data, want)
	}
}

// TestRebuildBudget: data that is not kept because of the memory limit is a hole, and is not
// invented.
func TestRebuildBudget(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	sent := map[record.Hex32][]byte{}
	var replies []synth.Reply
	for xid := uint32(1); xid <= 8; xid++ { // All are outstanding at once, so that all data has to be kept.
		call := synth.Read3(0, 100000).Offer(synth.Mem(0xa0+xid, 100000))
		reply := synth.Read3Reply(look.Pattern(100000)).To(call)
		call.XID, reply.XID = xid, xid
		_, sent[record.Hex32(xid)] = streams(call, reply)
		c.Client.Call(call)
		c.Server.Push(reply)
		replies = append(replies, reply)
	}
	for _, r := range replies {
		c.Server.Reply(r)
	}
	c.Client.Ack()
	whole, holes := 0, 0
	for _, got := range rebuild(w, dissect.Options{Memory: 2 << 20}) {
		want := slices.Clone(sent[got.record.XID])
		for _, h := range got.reply.Holes {
			clear(want[h.From:h.To])
		}
		if !bytes.Equal(got.reply.Data, want) {
			t.Errorf("%v: not what was sent", got.record.XID)
		}
		if len(got.reply.Holes) > 0 {
			holes++
		} else {
			whole++
		}
		if got.record.Reply.MissingBytes != record.Some[int64](0) {
			t.Errorf("%v: missing %v: the capture has all", got.record.XID, got.record.Reply.MissingBytes)
		}
	}
	if whole == 0 || holes == 0 || whole+holes != 8 {
		t.Errorf("%d whole, %d with holes; 512 KiB have room for some of 8", whole, holes)
	}
}

// TestOldestIsEvicted: at the memory limit, the oldest RPC that has ended goes, and a Call that waits for its Reply stays.
func TestOldestIsEvicted(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	c.RPC(synth.Null(), synth.NullReply())
	c.Client.Call(synth.Call{XID: 0x7001})
	c.Server.Ack()
	for range 500 {
		c.RPC(synth.Null(), synth.NullReply())
	}
	c.Server.Reply(synth.Reply{XID: 0x7001})
	c.Client.Ack()
	s := look.With(w, dissect.Options{Memory: 512 << 10})
	evicted := slices.ContainsFunc(s.Findings, func(f *record.Finding) bool { return f.Rule == "memory-limit-reached" })
	i := slices.IndexFunc(s.Transactions, func(r *record.Transaction) bool { return r.XID == 0x7001 && r.Status == record.Complete })
	if !evicted || i < 0 {
		t.Errorf("of %d RPCs, the one that is answered last is %d, the limit is reached: %t", len(s.Transactions), i, evicted)
	}
}

// observed has the names that were transferred in chunks of their own.
type observed []string

func (*observed) Payload(*wiremap.Payload) {}

func (o *observed) Message(m *wiremap.Message) {
	if m.Item {
		*o = append(*o, string(m.Payload))
	}
}

// TestNamesInChunks: an observer gets the names in chunks of their own, and nothing of chunks without bytes.
func TestNamesInChunks(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	mem := synth.Mem(0xa1, 100)
	c.RPC(synth.Readlink3().Offer(mem), synth.Readlink3Reply("target"))
	unused := synth.Readlink3().Offer(mem)
	unused.XID = 0x7001
	c.Client.Call(unused)
	reply := synth.Readlink3Reply("inline").To(synth.Readlink3())
	reply.XID, reply.Writes = unused.XID, [][]rpcrdma.Segment{{{Handle: mem.Handle, Offset: mem.Offset}}}
	c.Server.Reply(reply)
	c.Client.Ack()
	c.RPC(synth.Symlink3("name", "of a link").Reduce(0xa2), synth.Symlink3Reply())
	var got observed
	look.Pour(w.Frames, dissect.Handler{Observer: &got}, dissect.Options{})
	if want := (observed{"target", "of a link"}); !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
}
