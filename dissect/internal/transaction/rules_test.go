package transaction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
	"github.com/rdmadump/rdmadump/synth/cases"
)

// TestReported: how often rules report at their limits, and what they no longer know or report beyond. The cases of package cases show
// what violates each rule.
func TestReported(t *testing.T) {
	offer := func(c *synth.Conn, xid uint32, s ...rpcrdma.Segment) {
		c.Client.Call(synth.Call{XID: xid, Writes: [][]rpcrdma.Segment{s}})
		c.Server.Ack()
	}
	at := func(i int) rpcrdma.Segment {
		return rpcrdma.Segment{Handle: 0xa1, Offset: uint64(i) << 12, Length: 4096}
	}
	exposes := func(between int) func(c *synth.Conn) { // a segment, others, and the first one again
		return func(c *synth.Conn) {
			c.RPC(synth.Null(), synth.Reply{Credits: 1000})
			for i := range between + 1 {
				offer(c, uint32(0x100+i), at(i))
			}
			offer(c, 0x90, at(0))
		}
	}
	sends := func(bytes int) func(c *synth.Conn) { // 28 bytes are the header, and 40 that of the RPC
		return func(c *synth.Conn) {
			c.RPC(synth.Call{Procedure: 0, Args: synth.XDR{}.Fixed(make([]byte, bytes-68))}, synth.NullReply())
		}
	}
	called := func(n uint32) func(c *synth.Conn) { // by the server, before it refuses a backchannel
		return func(c *synth.Conn) {
			create := synth.Compound(synth.OpCreateSession(synth.ConnBackChannel))
			create.XID = 70
			c.Client.Call(create)
			c.Server.Ack()
			for i := range n {
				call := synth.CBCompound(synth.OpCBSequence(1))
				call.XID = 71 + i
				c.Server.RPC(call, synth.CompoundReply(synth.ResCBSequence(1)))
			}
			c.Server.Reply(synth.CompoundReply(synth.ResCreateSession(0)).To(create))
			c.Client.Ack()
		}
	}
	reuses := func(answered int) func(c *synth.Conn) { // an XID in flight, and writes to memory that is not exposed
		return func(c *synth.Conn) {
			c.RPC(synth.Null(), synth.NullReply())
			for i := range 2 {
				c.Client.Call(synth.Call{XID: 5, Procedure: 0, Args: synth.XDR{}.Word(make([]uint32, i)...)})
				c.Server.Ack()
			}
			for range answered {
				c.Server.Reply(synth.Reply{XID: 5})
				c.Client.Ack()
			}
			c.Server.Write(0xa1, 0, make([]byte, 8))
			c.Client.Ack()
		}
	}
	removes := func(position uint32) func(c *synth.Conn) { // bytes of a COMPOUND, before the data of its WRITE
		return func(c *synth.Conn) {
			call := synth.Compound(synth.OpPutFH(), synth.OpWrite(0, make([]byte, 2000))).Reduce(0xa1)
			call.Reads = append(synth.ReadChunk(position, synth.Mem(0xb1, 8)), call.Reads...)
			c.Client.Call(call)
			c.Server.Ack()
		}
	}
	counted := func(chunk int) func(c *synth.Conn) { // has the count of its data in a Write chunk
		return func(c *synth.Conn) {
			call := synth.Compound(synth.OpPutFH(), synth.OpRead(0, 1001), synth.OpRead(0, 3001)).Offer(synth.Mem(0xa1, 1008)).Offer(synth.Mem(0xa2, 4096))
			call.XID = 70
			r := synth.CompoundReply(synth.ResPutFH(), synth.ResRead(look.Pattern(1001)), synth.ResRead(look.Pattern(3001))).To(call)
			x := &r.Results
			at := x.Items[chunk].At - 4
			x.Items[chunk].At, x.Items[chunk].Data = at, slices.Concat(x.Bytes[at:at+4], x.Items[chunk].Data)
			x.Bytes = slices.Delete(slices.Clone(x.Bytes), at, at+4)
			for i := range x.Items[chunk+1:] {
				x.Items[chunk+1+i].At -= 4
			}
			r.Writes[chunk][0].Length += 4
			c.Client.Call(call)
			c.Server.Ack()
			c.Server.Push(r)
			c.Server.Reply(r)
			c.Client.Ack()
		}
	}
	for _, test := range []struct {
		name, rule string
		does       func(c *synth.Conn)
		want       int
		says       string // the last of them
	}{
		{"a Send as long as the threshold", "inline-threshold-exceeded", sends(4096), 0, ""},
		{"a longer Send", "inline-threshold-exceeded", sends(4100), 1, "a Send has 4100 bytes, but the inline threshold is 4096"},
		{"Calls of the server that wait for a backchannel", "backward-unexpected", called(16), 16, ""},
		{"more Calls of the server", "backward-unexpected", called(17), 16, ""},
		{"memory that the 16th segment before exposes", "memory-exposed-twice", exposes(15), 1, ""},
		{"memory that an earlier segment exposes", "memory-exposed-twice", exposes(16), 0, ""}, // so many are not searched
		{"an XID that is used twice, one Reply", "rdma-outside-exposed-memory", reuses(1), 0, ""},
		{"an XID that is used twice, both Replies", "rdma-outside-exposed-memory", reuses(2), 1, ""},
		{"a count in the first chunk", "chunk-length-mismatch", counted(0), 1, "Write chunk 0 returns 1005 bytes: the count of data is in the chunk, and not in the Send"},
		{"a count in the second chunk", "chunk-length-mismatch", counted(1), 1, "Write chunk 1 returns 3005 bytes: the count of data is in the chunk, and not in the Send"},
		{"a Read chunk at the end of the RPC header", "read-position-invalid", removes(36), 1, "a Read chunk is at Position 36, where no data item begins, inside the RPC header"},
		{"a Read chunk after the RPC header", "read-position-invalid", removes(40), 1, "a Read chunk is at Position 40, where no data item begins"},
		{"a Read chunk at a tag", "reduced-ineligible-item", removes(44), 1, "a Read chunk at Position 44 contains tag of COMPOUND, which may not be reduced"},
	} {
		look.Both(t, synth.Options{}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
			c.Connect()
			test.does(c)
			n, says := 0, ""
			all := look.At(w).Findings
			for _, f := range all {
				if f.Rule == test.rule {
					n, says = n+1, f.Message
				}
			}
			if n != test.want || test.says != "" && says != test.says {
				t.Errorf("%s: %d findings, want %d; the last one says %q, want %q; all:%s", test.name, n, test.want, says, test.says, told(all))
			}
		})
	}
}

// told returns findings, one on a line.
func told(all []*record.Finding) (text string) {
	for _, f := range all {
		text += fmt.Sprintf("\n  %s %s %q %s", f.Severity, f.Rule, f.AtFault.Or(""), f.Message)
	}
	return text
}

// TestChunksAreNumbered: a finding names the chunk that it is about, also beyond the tenth.
func TestChunksAreNumbered(t *testing.T) {
	for name, open := range look.Transports {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			c := open(w, synth.Options{})
			c.Connect()
			call := synth.Null()
			call.XID = 77
			for i := range uint32(13) {
				call = call.Offer(rpcrdma.Segment{Handle: 0xa0 + i, Length: 16, Offset: 0x1000})
			}
			reply := synth.NullReply().To(call)
			reply.Writes[12] = []rpcrdma.Segment{{Handle: 0xff, Length: 0, Offset: 0x1000}}
			c.Client.Call(call)
			c.Server.Reply(reply)
			const want = "segment 0 of Write chunk 12 is 0x000000ac at 0x0000000000001000 in the Call, but 0x000000ff at 0x0000000000001000 in the Reply"
			if all := look.At(w).Findings; !slices.ContainsFunc(all, func(f *record.Finding) bool { return f.Rule == "write-list-not-copied" && f.Message == want }) {
				t.Errorf("findings%s\nwant one that says %q", told(all), want)
			}
		})
	}
}

// TestUnknownVersion: if both sides use a version that this program does not know, no side is
// reported as at fault for anything, because only the document of that version could say what is
// wrong.
func TestUnknownVersion(t *testing.T) {
	for _, c := range cases.All() {
		if c.Rule != "error-not-answered" || c.Name != "a version that both sides use" {
			continue
		}
		for _, transport := range []string{cases.RoCE, cases.IWARP} {
			if all := look.At(c.Wire(transport, false)).Findings; len(all) > 0 {
				t.Errorf("over %s, both sides use an unknown version, but one is accused: %s", transport, told(all))
			}
		}
		return
	}
	t.Error("there is no such case")
}

// TestCanceledRPC: a finding about too many Calls names the oldest if it has been outstanding for long,
// because its RPC may have been canceled.
func TestCanceledRPC(t *testing.T) {
	for wait, want := range map[time.Duration]bool{5 * time.Second: true, time.Millisecond: false} {
		for name, open := range look.Transports {
			w := synth.New()
			c := open(w, synth.Options{})
			c.Connect()
			c.RPC(synth.Null(), synth.Reply{Credits: 1})
			c.Client.Call(synth.Call{XID: 0x77})
			c.Server.Ack()
			w.Advance(wait)
			c.Client.Call(synth.Call{XID: 0x78})
			c.Server.Reply(synth.Reply{XID: 0x78, Credits: 1})
			hint := false
			for _, f := range look.At(w).Findings {
				hint = hint || f.Rule == "credit-limit-exceeded" && strings.Contains(f.Message, "the Call with XID 0x00000077 has been in flight for 5.000 s")
			}
			if hint != want {
				t.Errorf("%s, after %v: hint %t, want %t", name, wait, hint, want)
			}
		}
	}
}

// TestErrorMessages: the finding about an RDMA_ERROR refers only to rules that the Call broke.
func TestErrorMessages(t *testing.T) {
	noInvalidation := synth.Options{Client: synth.End{PrivateData: synth.Inline(4096, 4096, false)}}
	call := synth.Read3(0, 4096).Offer(synth.Mem(0xa1, 4096))
	unaligned := synth.Write3(0, []byte("12345678")).Reduce(0xa1)
	unaligned.Reads[0].Position++
	for _, c := range []struct {
		name  string
		call  synth.Call
		reply synth.Reply
		want  string
	}{
		{"the RDMA_ERROR invalidates a handle", call, synth.ErrChunk().Invalidating(0xa1), "the responder rejected the Call with ERR_CHUNK: a Call with chunks in which the capture shows no error"},
		{"the Call has a Position that is no multiple of 4", unaligned, synth.ErrChunk(), "the responder rejected the Call with ERR_CHUNK: consequence of the finding read-position-unaligned"},
	} {
		w := synth.New()
		conn := w.RoCE(noInvalidation)
		conn.Connect()
		conn.RPC(c.call, c.reply)
		all := look.At(w).Findings
		if !slices.ContainsFunc(all, func(f *record.Finding) bool { return f.Rule == "rdma-error" && f.Message == c.want }) {
			t.Errorf("%s: no finding %q in%s", c.name, c.want, told(all))
		}
	}
}
