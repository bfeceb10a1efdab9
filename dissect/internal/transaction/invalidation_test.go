package transaction_test

import (
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
)

// TestInvalidationFigures: the figures of a connection tell how its Replies invalidate handles, and
// what the requester has to invalidate itself.
func TestInvalidationFigures(t *testing.T) {
	segment := func(handle uint32) rpcrdma.Segment { return synth.Mem(handle, 4096) }
	read := func(handle uint32) synth.Call { return synth.Read3(0, 4096).Offer(segment(handle)) }
	readReply := synth.Read3Reply(look.Pattern(4096))
	// A WRITE with a Reply chunk has a Read handle and a Write handle.
	write := func(handle, reply uint32) synth.Call {
		return synth.Write3(0, look.Pattern(4096)).Reduce(handle).OfferReply(segment(reply))
	}
	for name, test := range map[string]struct {
		act        func(c *synth.Conn)
		want       record.InvalidationFigures
		left       []int // not_invalidated of each RPC, in the order of their Calls
		persistent int   // sum of persistent_handles
	}{
		"one persistent handle in six RPCs": {
			act: func(c *synth.Conn) {
				for range 6 {
					c.RPC(read(0xa1), readReply)
				}
			},
			want: record.InvalidationFigures{Style: record.InvalidationNone, ChunkReplies: 6, LocalInvalidations: 1},
			left: []int{1, 0, 0, 0, 0, 0}, persistent: 5,
		},
		"six handles in six RPCs": {
			act: func(c *synth.Conn) {
				for i := range uint32(6) {
					c.RPC(read(0xa1+i), readReply)
				}
			},
			want: record.InvalidationFigures{Style: record.InvalidationNone, ChunkReplies: 6, LocalInvalidations: 6},
			left: []int{1, 1, 1, 1, 1, 1},
		},
		"a handle that is invalidated and exposed again": {
			act: func(c *synth.Conn) {
				for range 3 {
					c.RPC(read(0xa1), readReply.Invalidating(0xa1))
				}
			},
			want: record.InvalidationFigures{Style: record.RespondersChoice, HandleChoice: record.Some(record.ChoiceOnly), ChunkReplies: 3, InvalidatingReplies: 3},
			left: []int{0, 0, 0},
		},
		"64 handles, and the first again": {
			act: func(c *synth.Conn) {
				for i := range uint32(65) {
					c.RPC(read(1+i%64), readReply)
				}
			},
			want: record.InvalidationFigures{Style: record.InvalidationNone, ChunkReplies: 65, LocalInvalidations: 64},
			left: append(slices.Repeat([]int{1}, 64), 0), persistent: 1,
		},
		"65 handles, and the first again": {
			act: func(c *synth.Conn) {
				for i := range uint32(66) {
					c.RPC(read(1+i%65), readReply)
				}
			},
			want: record.InvalidationFigures{Style: record.InvalidationNone, ChunkReplies: 66, LocalInvalidations: 66},
			left: slices.Repeat([]int{1}, 66),
		},
		"persistent and dynamic handles in a Call": {
			act: func(c *synth.Conn) {
				c.RPC(read(0xa1), readReply)
				c.RPC(synth.Read3(0, 4096).Offer(segment(0xa1), segment(0xb1)), readReply)
			},
			want: record.InvalidationFigures{Style: record.InvalidationNone, ChunkReplies: 2, LocalInvalidations: 2, MixedRegistrationCalls: 1},
			left: []int{1, 1}, persistent: 1,
		},
		"by the inline Reply to another RPC": {
			act: func(c *synth.Conn) { inlineInvalidates(c, 0xd1) },
			want: record.InvalidationFigures{
				Style: record.RespondersChoice, ChunkReplies: 1, ForeignReadChunkHandles: 1, MultiHandleReplies: 1, LocalInvalidations: 1,
				MixedDirectionCalls: 1,
			},
			left: []int{0, 1, 0},
		},
		"several handles of a Call": {
			act: func(c *synth.Conn) { inlineInvalidates(c, 0xd1, 0xd2) },
			want: record.InvalidationFigures{
				Style: record.RespondersChoice, HandleChoice: record.Some(record.ChoiceLast), ChunkReplies: 1, InvalidatingReplies: 1, ForeignReadChunkHandles: 1,
				MultiHandleReplies: 1, MultiHandleInvalidations: 1, MixedDirectionCalls: 1,
			},
			left: []int{0, 0, 0},
		},
		"a fixed protocol": {
			act: func(c *synth.Conn) {
				c.RPC(read(0xa1), readReply.Invalidating(0xa1))
				c.RPC(write(0xb1, 0xc1), synth.Write3Reply(4096).Invalidating(0xb1))
				c.RPC(write(0xb2, 0xc2), synth.Write3Reply(4096).Invalidating(0xb2))
			},
			want: record.InvalidationFigures{
				Style: record.FixedProtocol, ChunkReplies: 3, InvalidatingReplies: 3, LocalInvalidations: 2, MultiHandleReplies: 2, MixedDirectionCalls: 2,
			},
			left: []int{0, 1, 1},
		},
		"the first handle of a Write chunk": {
			act: func(c *synth.Conn) {
				c.RPC(synth.Read3(0, 4096).Offer(segment(0xa1), segment(0xb1)), readReply.Invalidating(0xa1))
			},
			want: record.InvalidationFigures{
				Style: record.RespondersChoice, HandleChoice: record.Some(record.ChoiceFirst), ChunkReplies: 1, InvalidatingReplies: 1, LocalInvalidations: 1, MultiHandleReplies: 1,
			},
			left: []int{1},
		},
	} {
		for transport, open := range look.Transports {
			t.Run(name+" "+transport, func(t *testing.T) {
				w := synth.New()
				c := open(w, synth.Options{})
				c.Connect()
				test.act(c)
				s := look.At(w)
				if got := s.Connections[0].Invalidation.Or(record.InvalidationFigures{}); got != test.want {
					t.Errorf("figures are %+v, want %+v", got, test.want)
				}
				slices.SortFunc(s.Transactions, func(a, b *record.Transaction) int { return int(a.ID - b.ID) })
				left, persistent := []int{}, 0
				for _, r := range s.Transactions {
					left = append(left, len(r.NotInvalidated))
					persistent += r.PersistentHandles
				}
				if !slices.Equal(left, test.left) || persistent != test.persistent {
					t.Errorf("not invalidated %v, %d persistent handles, want %v, %d", left, persistent, test.left, test.persistent)
				}
			})
		}
	}
}

// inlineInvalidates sends a WRITE with a Read handle and a Write handle. The inline Reply to a NULL
// Call invalidates the Read handle, and the Reply to the WRITE the handles that are given.
func inlineInvalidates(c *synth.Conn, read uint32, own ...uint32) {
	c.RPC(synth.Null(), synth.NullReply())
	call := synth.Write3(0, look.Pattern(4096)).Reduce(read).OfferReply(synth.Mem(0xd2, 4096))
	call.XID = 0x900
	c.Client.Call(call)
	c.Server.Ack()
	c.Server.Pull(call)
	c.Client.Call(synth.Call{XID: 0x901})
	c.Server.Ack()
	c.Server.Reply(synth.Reply{XID: 0x901, Invalidate: read})
	c.Client.Ack()
	reply := synth.Write3Reply(4096).To(call)
	for _, handle := range own {
		reply = reply.Invalidating(handle)
	}
	c.Server.Reply(reply)
	c.Client.Ack()
}
