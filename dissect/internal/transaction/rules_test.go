package transaction_test

import (
	"fmt"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
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
		{"a Read chunk at the end of the RPC header", "read-position-invalid", removes(36), 1, "a Read chunk is at Position 36, where no data item begins, inside the RPC header"},
		{"a Read chunk after the RPC header", "read-position-invalid", removes(40), 1, "a Read chunk is at Position 40, where no data item begins"},
		{"a Read chunk at a tag", "reduced-ineligible-item", removes(44), 1, "a Read chunk at Position 44 contains tag of COMPOUND, which may not be reduced"},
	} {
		look.Both(t, synth.Options{}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
			c.Connect()
			test.does(c)
			n, all, says := 0, "", ""
			for _, f := range look.At(w).Findings {
				if all += fmt.Sprintf("\n%s: %s", f.Rule, f.Message); f.Rule == test.rule {
					n, says = n+1, f.Message
				}
			}
			if n != test.want || test.says != "" && says != test.says {
				t.Errorf("%s: %d findings, want %d; the last one says %q, want %q; all:%s", test.name, n, test.want, says, test.says, all)
			}
		})
	}
}
