package cases

import (
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/synth"
)

// Rules about chunks and memory (RFC 8166 s.3.4, s.4.3).

var (
	listing      = synth.Readdir3(4096).OfferReply(mem)
	listingReply = synth.Readdir3Reply("a", "b").Long()
)

// at4 returns a segment of 4096 bytes of a handle that begins by bytes after another.
func at4(s rpcrdma.Segment, by uint64) rpcrdma.Segment {
	s.Offset += by
	return s
}

// overlapping sends two READs that are outstanding at the same time, whose Write chunks have one
// handle. The second begins by bytes after the first.
func overlapping(c *conn, by uint64) {
	a, b := read(), synth.Read3(0, 4096).Offer(at4(mem, by))
	a.XID, b.XID = 71, 72
	c.RPC(synth.Null(), synth.NullReply())
	c.Client.Call(a)
	c.Client.Call(b)
	c.Server.Ack()
	for _, call := range []synth.Call{a, b} {
		r := readReply().To(call)
		c.Server.Push(r)
		c.Server.Reply(r)
	}
	c.Client.Ack()
}

// pulls returns a function that sends a Call, a Read of the first n bytes of its only Read chunk, and
// the Reply, and then another RPC.
func pulls(call synth.Call, reply synth.Reply, n int) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		call := call
		call.XID = 77
		c.Client.Call(call)
		c.Server.Ack()
		if n > 0 {
			c.Server.Read(call.Reads[0].Handle, call.Reads[0].Offset, data(n))
		}
		c.Server.Reply(reply.To(call))
		c.Client.Ack()
		rpc(nil, c)
	}
}

// atomic sends a READ. Before its Reply, the server does a FetchAdd on a handle.
func atomic(handle uint32) func(*wire, *conn) {
	return func(_ *wire, c *conn) {
		call := read()
		call.XID = 77
		c.Client.Call(call)
		c.Server.Ack()
		c.Server.FetchAdd(handle, mem.Offset, 1, 0)
		r := readReply().To(call)
		c.Server.Push(r)
		c.Server.Reply(r)
		c.Client.Ack()
		rpc(nil, c)
	}
}

var chunks = []Case{
	{
		Rule: "rdma-outside-exposed-memory", Name: "an unknown handle", AtFault: server,
		Broken:  func(_ *wire, c *conn) { c.Client.Call(read()); c.Server.Write(0xb7, 0, data(100)) },
		Healthy: does(read(), readReply()),
	},
	{
		Rule: "rdma-outside-exposed-memory", Name: "before its start", AtFault: server,
		Broken:  func(_ *wire, c *conn) { c.Client.Call(read()); c.Server.Write(0xa1, mem.Offset-8, data(8)) },
		Healthy: func(_ *wire, c *conn) { c.Client.Call(read()); c.Server.Write(0xa1, mem.Offset+8, data(8)) },
	},
	{
		Rule: "rdma-outside-exposed-memory", Name: "a Write beyond its end", AtFault: server,
		Broken:  func(_ *wire, c *conn) { c.Client.Call(read()); c.Server.Write(0xa1, mem.Offset+4000, data(200)) },
		Healthy: func(_ *wire, c *conn) { c.Client.Call(read()); c.Server.Write(0xa1, mem.Offset+4000, data(96)) },
	},
	{
		Rule: "rdma-outside-exposed-memory", Name: "a Read beyond its end", AtFault: server,
		Broken:  func(_ *wire, c *conn) { c.Client.Call(write()); c.Server.Read(0xa1, mem.Offset, data(5000)) },
		Healthy: does(write(), writeReply()),
	},
	{
		Rule: "rdma-outside-exposed-memory", Name: "after the Reply", AtFault: server,
		Broken: func(_ *wire, c *conn) { c.RPC(read(), readReply()); c.Server.Write(0xa1, mem.Offset, data(100)) },
		Healthy: func(_ *wire, c *conn) { // one RDMA Write across two adjacent segments of one handle
			a, b := synth.Mem(0xa1, 2048), synth.Mem(0xa1, 2048)
			b.Offset += 2048
			call := synth.Read3(0, 4096).Offer(a, b)
			call.XID = 77
			c.Client.Call(call)
			r := readReply().To(call)
			c.Server.Write(0xa1, a.Offset, data(4096))
			c.Server.Reply(r)
			c.Client.Ack()
		},
	},
	{
		Rule: "rdma-outside-exposed-memory", Name: "an RDMA Write of the client", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			rpc(nil, c)
			rpc(nil, c)
			c.Client.Write(0xb7, 0, data(100))
			c.Server.Ack()
			rpc(nil, c)
		},
		Healthy: does(write(), writeReply()),
	},
	{
		Rule: "rdma-outside-exposed-memory", Name: "an RDMA Read of the client", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			rpc(nil, c)
			rpc(nil, c)
			c.Client.Read(0xb7, 0, data(100))
			rpc(nil, c)
		},
		Healthy: does(read(), readReply()),
	},
	{
		Rule: "rdma-wrong-direction", Name: "an RDMA Read of a Write chunk", AtFault: server,
		Broken:  func(_ *wire, c *conn) { c.Client.Call(read()); c.Server.Read(0xa1, mem.Offset, data(100)) },
		Healthy: does(read(), readReply()),
	},
	{
		Rule: "rdma-wrong-direction", Name: "an RDMA Read of a Reply chunk", AtFault: server,
		Broken:  func(_ *wire, c *conn) { c.Client.Call(listing); c.Server.Read(0xa1, mem.Offset, data(100)) },
		Healthy: does(listing, listingReply),
	},
	{
		Rule: "rdma-wrong-direction", Name: "an RDMA Write to a Read chunk", AtFault: server,
		Broken:  func(_ *wire, c *conn) { c.Client.Call(write()); c.Server.Write(0xa1, mem.Offset, data(100)) },
		Healthy: does(write(), writeReply()),
	},
	{
		Rule: "rdma-wrong-direction", Name: "an Atomic on a Write chunk", AtFault: server, Transport: RoCE,
		Broken: atomic(0xa1), Healthy: does(read(), readReply()),
	},
	{
		Rule: "rdma-outside-exposed-memory", Name: "an Atomic on an unknown handle", AtFault: server, Transport: RoCE,
		Broken: atomic(0xb7), Healthy: does(read(), readReply()),
	},
	{
		Rule: "memory-exposed-twice", Name: "by two outstanding Calls", AtFault: client,
		Broken: func(_ *wire, c *conn) { overlapping(c, 0) }, Healthy: func(_ *wire, c *conn) { overlapping(c, 4096) },
	},
	{
		Rule: "memory-exposed-twice", Name: "by two segments of a Call", AtFault: client,
		Broken: does(read().Offer(at4(mem, 4000)), readReply()), Healthy: does(read().Offer(at4(mem, 4096)), readReply()),
	},
	{
		Rule: "memory-exposed-twice", Name: "with a persistent handle", AtFault: client, Severity: "note",
		Broken: func(_ *wire, c *conn) { c.RPC(read(), readReply()); overlapping(c, 0) }, Healthy: func(_ *wire, c *conn) { c.RPC(read(), readReply()); overlapping(c, 4096) },
	},
	{
		Rule: "memory-exposed-twice", Name: "after it was invalidated", AtFault: client,
		Broken: func(_ *wire, c *conn) { c.RPC(read(), readReply().Invalidating(0xa1)); overlapping(c, 2048) },
		Healthy: func(_ *wire, c *conn) { // one after the other
			c.RPC(read(), readReply())
			c.RPC(read(), readReply())
		},
	},
	{
		Rule: "empty-segment", Name: "of a Read chunk", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			call := write()
			call.Reads = append(call.Reads, rpcrdma.ReadSegment{Position: call.Reads[0].Position, Segment: synth.Mem(0xa2, 0)})
			c.RPC(call, writeReply())
		}, Healthy: does(write(), writeReply()),
	},
	{
		Rule: "empty-segment", Name: "of a Write chunk", AtFault: client,
		Broken: does(synth.Read3(0, 4096).Offer(mem, synth.Mem(0xa2, 0)), readReply()), Healthy: does(synth.Read3(0, 4096).Offer(mem, mem2), readReply()),
	}, // a Reply may return an empty segment
	{
		Rule: "read-position-unaligned", Name: "off by one", AtFault: client,
		Broken: func(_ *wire, c *conn) {
			call := write()
			call.Reads[0].Position++
			c.Client.Call(call)
			c.Server.Ack()
		}, Healthy: does(write(), writeReply()),
	},

	{
		Rule: "reply-before-reads-done", Name: "half of the data comes after the Reply", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			call := write()
			c.Client.Call(call)
			r := c.Server.ReadRequest(0xa1, call.Reads[0].Offset, 4096)
			r.RespondPackets(data(4096), 0, 2)
			c.Server.Reply(writeReply())
			if !c.IWARP() { // acknowledgements of InfiniBand do not show what the server had received when it replied
				c.Server.ReadRequest(0xa1, call.Reads[0].Offset+2048, 2048, synth.AtPSN(r.PSN+2))
			}
			r.RespondPackets(data(4096), 2, 4)
		}, Healthy: does(write(), writeReply()),
	},
	{
		Rule: "read-chunk-not-read", Name: "a WRITE",
		Broken: pulls(write(), writeReply(), 0), Healthy: pulls(write(), writeReply(), 4096),
	},
	{
		Rule: "read-chunk-not-read", Name: "the end of a WRITE", AtFault: server,
		Broken: pulls(write(), writeReply(), 4092), Healthy: pulls(sized(synth.Write3(0, data(4093)).Reduce(0xa1), 4096), synth.Write3Reply(4093), 4093),
	}, // the round-up need not be read
	{
		Rule: "read-chunk-not-read", Name: "a Call that was refused",
		Broken: pulls(compound(4096).Reduce(0xa1), compoundReply(4096), 0), Healthy: pulls(write(), synth.Failed(13, 0, 0), 0),
	},
	{
		Rule: "read-chunk-not-read", Name: "a Long Call",
		Broken: pulls(long, synth.Symlink3Reply(), 0), Healthy: does(long, synth.Symlink3Reply()),
	},
	{
		Rule: "read-chunk-not-read", Name: "a Call that was rejected", AtFault: server,
		Broken: pulls(long, synth.Symlink3Reply(), 4), Healthy: pulls(write(), synth.Reply{Accept: 5}, 0),
	},
	{
		Rule: "reply-with-read-list", Name: "an RDMA_MSG", AtFault: server,
		Broken: whole(read(), readReply(), func(r *synth.Reply) { r.Reads = synth.ReadChunk(4, mem2) }), Healthy: does(read(), readReply()),
	},
	{
		Rule: "reply-with-read-list", Name: "an RDMA_NOMSG", AtFault: server,
		Broken: whole(listing, listingReply, func(r *synth.Reply) { r.Reads = synth.ReadChunk(4, mem2) }), Healthy: does(listing, listingReply),
	},

	{
		Rule: "write-list-not-copied", Name: "missing", AtFault: server,
		Broken: whole(read(), readReply(), func(r *synth.Reply) { r.Writes = nil }), Healthy: does(read(), readReply()),
	},
	{
		Rule: "write-list-not-copied", Name: "one chunk more", AtFault: server,
		Broken:  whole(read(), readReply(), func(r *synth.Reply) { r.Writes = append(r.Writes, []rpcrdma.Segment{{Handle: 0xa2}}) }),
		Healthy: does(read().Offer(mem2), readReply()),
	},
	{
		Rule: "write-list-not-copied", Name: "a segment less", AtFault: server,
		Broken:  whole(synth.Read3(0, 4096).Offer(mem, mem2), readReply(), func(r *synth.Reply) { r.Writes[0] = r.Writes[0][:1] }),
		Healthy: does(synth.Read3(0, 4096).Offer(mem, mem2), readReply()),
	},
	{
		Rule: "write-list-not-copied", Name: "another handle", AtFault: server,
		Broken: whole(read(), readReply(), func(r *synth.Reply) { r.Writes[0][0].Handle++ }), Healthy: does(read(), readReply()),
	},
	{
		Rule: "write-list-not-copied", Name: "another offset", AtFault: server,
		Broken: whole(read(), readReply(), func(r *synth.Reply) { r.Writes[0][0].Offset++ }), Healthy: does(read(), readReply()),
	},
	{
		Rule: "reply-chunk-not-copied", Name: "missing", AtFault: server,
		Broken: whole(listing, synth.Readdir3Reply("a"), func(r *synth.Reply) { r.ReplyChunk = nil }), Healthy: does(listing, synth.Readdir3Reply("a")),
	},
	{
		Rule: "reply-chunk-not-copied", Name: "missing, in the forward direction", AtFault: server,
		Broken: whole(listing, synth.Readdir3Reply("a"), func(r *synth.Reply) { r.ReplyChunk = nil }), Healthy: backWithout(recall.OfferReply(mem)),
	},
	{
		Rule: "write-list-not-copied", Name: "missing, in the forward direction", AtFault: server,
		Broken: whole(read(), readReply(), func(r *synth.Reply) { r.Writes = nil }), Healthy: backWithout(recall.Offer(mem)),
	},
	{
		Rule: "reply-chunk-not-copied", Name: "the Call having none", AtFault: server,
		Broken: whole(synth.Readdir3(512), synth.Readdir3Reply("a"), func(r *synth.Reply) { r.ReplyChunk = synth.Chunk(mem) }), Healthy: does(synth.Readdir3(512), synth.Readdir3Reply("a")),
	},
	{
		Rule: "reply-chunk-not-copied", Name: "a segment more", AtFault: server,
		Broken:  whole(listing, listingReply, func(r *synth.Reply) { r.ReplyChunk = append(r.ReplyChunk, rpcrdma.Segment{Handle: 0xa2}) }),
		Healthy: does(synth.Readdir3(4096).OfferReply(mem, mem2), listingReply),
	},
	{
		Rule: "reply-chunk-not-copied", Name: "another handle", AtFault: server,
		Broken: whole(listing, listingReply, func(r *synth.Reply) { r.ReplyChunk[0].Handle++ }), Healthy: does(listing, listingReply),
	},
	{
		Rule: "reply-chunk-not-copied", Name: "another offset", AtFault: server,
		Broken: whole(listing, listingReply, func(r *synth.Reply) { r.ReplyChunk[0].Offset++ }), Healthy: does(listing, listingReply),
	},
	{
		Rule: "returned-length-exceeds-chunk", Name: "a Write chunk", AtFault: server,
		Broken: does(synth.Read3(0, 4096).Offer(synth.Mem(0xa1, 4000)), readReply()), Healthy: does(read(), readReply()),
	},
	{
		Rule: "returned-length-exceeds-chunk", Name: "a Reply chunk", AtFault: server,
		Broken: does(synth.Readdir3(4096).OfferReply(synth.Mem(0xa1, 64)), listingReply), Healthy: does(listing, listingReply),
	},
	{
		Rule: "returned-bytes-not-seen", Name: "none of a Write chunk", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			call := read()
			call.XID = 77
			c.Client.Call(call)
			c.Server.Reply(readReply().To(call))
			c.Client.Ack()
		}, Healthy: does(read(), readReply()),
	},
	{
		Rule: "returned-bytes-not-seen", Name: "the end of a Reply chunk", AtFault: server,
		Broken: func(_ *wire, c *conn) {
			call := listing
			call.XID = 77
			c.Client.Call(call)
			r := listingReply.To(call)
			c.Server.Write(0xa1, mem.Offset, data(16))
			c.Server.Reply(r)
			c.Client.Ack()
		}, Healthy: does(listing, listingReply),
	},
	{
		Rule: "segments-filled-out-of-order", Name: "a Write chunk", AtFault: server,
		Broken: whole(synth.Read3(0, 4096).Offer(mem, mem2), readReply(), func(r *synth.Reply) {
			r.Writes[0][0].Length, r.Writes[0][1].Length = 2048, 2048
		}), Healthy: does(synth.Read3(0, 4096).Offer(synth.Mem(0xa1, 2048), synth.Mem(0xa2, 4096)), readReply()),
	},
	{
		Rule: "segments-filled-out-of-order", Name: "a Reply chunk", AtFault: server,
		Broken: whole(synth.Readdir3(4096).OfferReply(mem, mem2), listingReply, func(r *synth.Reply) {
			r.ReplyChunk[1].Length, r.ReplyChunk[0].Length = r.ReplyChunk[0].Length, 0
		}), Healthy: does(synth.Readdir3(4096).OfferReply(synth.Mem(0xa1, 64), mem2), listingReply),
	},
}
