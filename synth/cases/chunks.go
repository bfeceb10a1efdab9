package cases

import (
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/synth"
)

// Rules about chunks and memory (RFC 8166 s.3.4, s.4.3).

// at4 returns a segment of 4096 bytes of a handle that begins by bytes after another.
func at4(s rpcrdma.Segment, by uint64) rpcrdma.Segment {
	s.Offset += by
	return s
}

// overlapping sends two READs that are outstanding at the same time, whose Write chunks have one
// handle. The second begins by bytes after the first.
func overlapping(by uint64) script {
	return func(c *conn) {
		a, b := read(), wholeRead.Offer(at4(mem, by))
		a.XID, b.XID = 71, 72
		c.RPC(null, nullReply)
		c.Client.Call(a)
		send(c.Client, b)
		for _, call := range []synth.Call{a, b} {
			r := readReply().To(call)
			c.Server.Push(r)
			c.Server.Reply(r)
		}
		c.Client.Ack()
	}
}

// pulls returns a script that sends a Call, a Read of the first n bytes of its only Read chunk, and
// the Reply, and then another RPC.
func pulls(call synth.Call, reply synth.Reply, n int) script {
	return func(c *conn) {
		call := numbered(call)
		send(c.Client, call)
		if n > 0 {
			c.Server.Read(call.Reads[0].Handle, call.Reads[0].Offset, data(n))
		}
		answer(c.Server, reply.To(call))
		rpc(c)
	}
}

// atomic sends a READ. Before its Reply, the server does a FetchAdd on a handle.
func atomic(handle uint32) script {
	return func(c *conn) {
		call := numbered(read())
		send(c.Client, call)
		c.Server.FetchAdd(handle, mem.Offset, 1, 0)
		r := readReply().To(call)
		fulfil(c, r)
		rpc(c)
	}
}

var chunks = []Case{
	server("rdma-outside-exposed-memory", "an unknown handle",
		inTurn(opens(read()), func(c *conn) { c.Server.Write(0xb7, 0, data(100)) }), reads),
	server("rdma-outside-exposed-memory", "before its start",
		inTurn(opens(read()), serverWrites(mem.Offset-8, 8)), inTurn(opens(read()), serverWrites(mem.Offset+8, 8))),
	server("rdma-outside-exposed-memory", "a Write beyond its end",
		inTurn(opens(read()), serverWrites(mem.Offset+4000, 200)), inTurn(opens(read()), serverWrites(mem.Offset+4000, 96))),
	server("rdma-outside-exposed-memory", "a Read beyond its end", inTurn(opens(write()), serverReads(mem.Offset, 5000)), writes),
	server("rdma-outside-exposed-memory", "after the Reply",
		inTurn(reads, serverWrites(mem.Offset, 100)),
		func(c *conn) { // one RDMA Write across two adjacent segments of one handle
			a, b := synth.Mem(0xa1, 2048), synth.Mem(0xa1, 2048)
			b.Offset += 2048
			call := numbered(wholeRead.Offer(a, b))
			c.Client.Call(call)
			r := readReply().To(call)
			c.Server.Write(0xa1, a.Offset, data(4096))
			answer(c.Server, r)
		}),
	client("rdma-outside-exposed-memory", "an RDMA Write of the client",
		inTurn(rpc, rpc, func(c *conn) { c.Client.Write(0xb7, 0, data(100)); c.Server.Ack() }, rpc), writes),
	client("rdma-outside-exposed-memory", "an RDMA Read of the client",
		inTurn(rpc, rpc, func(c *conn) { c.Client.Read(0xb7, 0, data(100)) }, rpc), reads),
	server("rdma-wrong-direction", "an RDMA Read of a Write chunk", inTurn(opens(read()), serverReads(mem.Offset, 100)), reads),
	server("rdma-wrong-direction", "an RDMA Read of a Reply chunk", inTurn(opens(listing), serverReads(mem.Offset, 100)), lists),
	server("rdma-wrong-direction", "an RDMA Write to a Read chunk", inTurn(opens(write()), serverWrites(mem.Offset, 100)), writes),
	server("rdma-wrong-direction", "an Atomic on a Write chunk", atomic(0xa1), reads).on(RoCE),
	server("rdma-outside-exposed-memory", "an Atomic on an unknown handle", atomic(0xb7), reads).on(RoCE),
	client("memory-exposed-twice", "by two outstanding Calls", overlapping(0), overlapping(4096)),
	client("memory-exposed-twice", "by two segments of a Call",
		does(read().Offer(at4(mem, 4000)), readReply()), does(read().Offer(at4(mem, 4096)), readReply())),
	client("memory-exposed-twice", "with a persistent handle",
		inTurn(reads, overlapping(0)), inTurn(reads, overlapping(4096))).as("note"),
	client("memory-exposed-twice", "after it was invalidated", inTurn(invalidated, overlapping(2048)), inTurn(reads, reads)),
	client("empty-segment", "of a Read chunk",
		func(c *conn) {
			call := write()
			call.Reads = append(call.Reads, rpcrdma.ReadSegment{Position: call.Reads[0].Position, Segment: synth.Mem(0xa2, 0)})
			c.RPC(call, writeReply())
		},
		writes),
	// A Reply may return an empty segment.
	client("empty-segment", "of a Write chunk",
		does(wholeRead.Offer(mem, synth.Mem(0xa2, 0)), readReply()), does(wholeRead.Offer(mem, mem2), readReply())),
	client("read-position-unaligned", "off by one",
		func(c *conn) {
			call := write()
			call.Reads[0].Position++
			send(c.Client, call)
		},
		writes),

	server("reply-before-reads-done", "half of the data comes after the Reply",
		func(c *conn) {
			call := write()
			c.Client.Call(call)
			r := c.Server.ReadRequest(0xa1, call.Reads[0].Offset, 4096)
			r.RespondPackets(data(4096), 0, 2)
			c.Server.Reply(writeReply())
			if !c.IWARP() { // acknowledgements of InfiniBand do not show what the server had received when it replied
				c.Server.ReadRequest(0xa1, call.Reads[0].Offset+2048, 2048, synth.AtPSN(r.PSN+2))
			}
			r.RespondPackets(data(4096), 2, 4)
		},
		writes),
	neither("read-chunk-not-read", "a WRITE", pulls(write(), writeReply(), 0), pulls(write(), writeReply(), 4096)),
	// The round-up need not be read.
	server("read-chunk-not-read", "the end of a WRITE",
		pulls(write(), writeReply(), 4092), pulls(sized(write3(4093).Reduce(0xa1), 4096), synth.Write3Reply(4093), 4093)),
	neither("read-chunk-not-read", "a Call that was refused",
		pulls(write4(4096).Reduce(0xa1), write4Reply(4096), 0), pulls(write(), synth.Failed(13, 0, 0), 0)),
	neither("read-chunk-not-read", "a Long Call", pulls(long, symlinkReply, 0), symlinks),
	server("read-chunk-not-read", "a Call that was rejected", pulls(long, symlinkReply, 4), pulls(write(), synth.Reply{Accept: 5}, 0)),
	edits("reply-with-read-list", "an RDMA_MSG", read(), readReply(), func(r *synth.Reply) { r.Reads = synth.ReadChunk(4, mem2) }),
	edits("reply-with-read-list", "an RDMA_NOMSG", listing, listingReply, func(r *synth.Reply) { r.Reads = synth.ReadChunk(4, mem2) }),

	edits("write-list-not-copied", "missing", read(), readReply(), func(r *synth.Reply) { r.Writes = nil }),
	server("write-list-not-copied", "one chunk more",
		whole(read(), readReply(), func(r *synth.Reply) { r.Writes = append(r.Writes, []rpcrdma.Segment{{Handle: 0xa2}}) }),
		does(read().Offer(mem2), readReply())),
	edits("write-list-not-copied", "a segment less",
		wholeRead.Offer(mem, mem2), readReply(), func(r *synth.Reply) { r.Writes[0] = r.Writes[0][:1] }),
	edits("write-list-not-copied", "another handle", read(), readReply(), func(r *synth.Reply) { r.Writes[0][0].Handle++ }),
	edits("write-list-not-copied", "another offset", read(), readReply(), func(r *synth.Reply) { r.Writes[0][0].Offset++ }),
	edits("reply-chunk-not-copied", "missing", listing, shortListing, func(r *synth.Reply) { r.ReplyChunk = nil }),
	server("reply-chunk-not-copied", "missing, in the forward direction",
		whole(listing, shortListing, func(r *synth.Reply) { r.ReplyChunk = nil }), backWithout(recall.OfferReply(mem))),
	server("write-list-not-copied", "missing, in the forward direction",
		whole(read(), readReply(), func(r *synth.Reply) { r.Writes = nil }), backWithout(recall.Offer(mem))),
	edits("reply-chunk-not-copied", "the Call having none",
		synth.Readdir3(512), shortListing, func(r *synth.Reply) { r.ReplyChunk = synth.Chunk(mem) }),
	server("reply-chunk-not-copied", "a segment more",
		whole(listing, listingReply, func(r *synth.Reply) { r.ReplyChunk = append(r.ReplyChunk, rpcrdma.Segment{Handle: 0xa2}) }),
		does(synth.Readdir3(4096).OfferReply(mem, mem2), listingReply)),
	edits("reply-chunk-not-copied", "another handle", listing, listingReply, func(r *synth.Reply) { r.ReplyChunk[0].Handle++ }),
	edits("reply-chunk-not-copied", "another offset", listing, listingReply, func(r *synth.Reply) { r.ReplyChunk[0].Offset++ }),
	server("returned-length-exceeds-chunk", "a Write chunk", does(wholeRead.Offer(synth.Mem(0xa1, 4000)), readReply()), reads),
	server("returned-length-exceeds-chunk", "a Reply chunk",
		does(synth.Readdir3(4096).OfferReply(synth.Mem(0xa1, 64)), listingReply), lists),
	server("returned-bytes-not-seen", "none of a Write chunk",
		func(c *conn) {
			call := numbered(read())
			c.Client.Call(call)
			answer(c.Server, readReply().To(call))
		},
		reads),
	server("returned-bytes-not-seen", "the end of a Reply chunk",
		func(c *conn) {
			call := numbered(listing)
			c.Client.Call(call)
			r := listingReply.To(call)
			c.Server.Write(0xa1, mem.Offset, data(16))
			answer(c.Server, r)
		},
		lists),
	server("segments-filled-out-of-order", "a Write chunk",
		whole(wholeRead.Offer(mem, mem2), readReply(), func(r *synth.Reply) {
			r.Writes[0][0].Length, r.Writes[0][1].Length = 2048, 2048
		}),
		does(wholeRead.Offer(synth.Mem(0xa1, 2048), synth.Mem(0xa2, 4096)), readReply())),
	server("segments-filled-out-of-order", "a Reply chunk",
		whole(synth.Readdir3(4096).OfferReply(mem, mem2), listingReply, func(r *synth.Reply) {
			r.ReplyChunk[1].Length, r.ReplyChunk[0].Length = r.ReplyChunk[0].Length, 0
		}),
		does(synth.Readdir3(4096).OfferReply(synth.Mem(0xa1, 64), mem2), listingReply)),
}
