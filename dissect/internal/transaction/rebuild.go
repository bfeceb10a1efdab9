package transaction

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/memory"
	"github.com/rdmadump/rdmadump/dissect/internal/span"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// Rebuilding assembles a Payload stream from the Send, or from the chunk that contains all of it,
// and inserts every reduced data item at its Position, with its XDR pad. Missing bytes become
// zeros. A stream of unknown length is not rebuilt.

// maxStream limits the length of a rebuilt stream in bytes, because chunks may claim any length.
const maxStream = 64 << 20

// isRebuilt reports whether the streams of a transaction are to be rebuilt.
func (x *txn) isRebuilt() bool {
	o := &x.cs.table.options
	return o.Rebuild && (len(o.XIDs) == 0 || slices.Contains(o.XIDs, x.rec.XID))
}

// inlineStream is the part of a Payload stream that a Send contains.
type inlineStream struct {
	proc  rpcrdma.Proc
	known bool   // header and length are known
	size  int64  // bytes that were sent
	have  int64  // bytes that were captured
	data  []byte // the captured bytes, for Rebuild
}

// keepInline records the part of a Payload stream that a Send contains.
func (x *txn) keepInline(to *inlineStream, m *message) {
	h := m.header
	to.proc, to.known = h.Proc, m.whole && m.known() && (h.Proc == rpcrdma.Msg || h.Proc == rpcrdma.NoMsg)
	if !to.known || h.Proc == rpcrdma.NoMsg {
		return
	}
	to.size, to.have = m.Length-int64(h.Length), int64(len(m.payload))
	if x.isRebuilt() {
		to.data = append(to.data, m.payload...)
		x.charge(to.have)
	}
}

// countMissing counts the bytes of the Payload streams that are missing from the capture.
func (x *txn) countMissing() {
	call, reply := x.memory.Missing()
	if x.rec.Call == nil { // the Writes went to unknown memory
		for _, n := range x.sizes {
			reply += n
		}
	}
	if c := x.rec.Call; c != nil {
		c.MissingBytes = record.SomeIf(max(call+x.inCall.size-x.inCall.have, 0), c.PayloadBytes.Known())
	}
	if x.state.hasReply() {
		x.answer.MissingBytes = record.SomeIf(max(reply+x.inReply.size-x.inReply.have, 0), x.answer.PayloadBytes.Known())
	}
}

// rebuilder contains the two streams of a transaction and buffers.
type rebuilder struct {
	payloads [2]record.Payload
	base     record.Payload // the stream without its items
	items    []item
	holes    []nfs.Hole
	spans    span.Set
	rpc      oncrpc.Header
	message  nfs.Message
	moved    int64 // bytes of the current stream that moved, captured or not
	unseen   int64 // bytes of the current stream that did not move
}

// item is a chunk that contains a data item, or part of one, and the position at which it is
// inserted.
type item struct {
	position int64 // in the unreduced stream
	chunk    int
	size     int64 // bytes of the item; -1 for all bytes of the chunk
}

// trim frees the memory that a large RPC needed.
func (b *rebuilder) trim() {
	if cap(b.base.Data)+cap(b.payloads[0].Data)+cap(b.payloads[1].Data) > 8<<20 {
		*b = rebuilder{}
	}
}

// call returns the rebuilt Call, or nil if it cannot be rebuilt.
func (b *rebuilder) call(x *txn) *record.Payload {
	if x.rec.Call == nil || !x.inCall.known || x.memory.Incomplete {
		return nil
	}
	b.begin(&x.inCall)
	b.items = b.items[:0]
	long := false
	for i := range x.memory.Segments {
		s := &x.memory.Segments[i]
		switch {
		case s.Kind != memory.ReadChunk || s.Index != 0:
		case s.Position != 0:
			b.items = append(b.items, item{int64(s.Position), int(s.Chunk), -1})
		case x.inCall.proc != rpcrdma.NoMsg || long:
			return nil // a second stream, which is not allowed
		default:
			long = true
			if !b.chunk(&b.base, x.memory.Chunk(memory.ReadChunk, int(s.Chunk)), -1, false) {
				return nil
			}
		}
	}
	if x.inCall.proc == rpcrdma.NoMsg && !long {
		return nil
	}
	return b.join(&b.payloads[0], x, memory.ReadChunk)
}

// reply returns the rebuilt Reply, or nil if it cannot be rebuilt.
func (b *rebuilder) reply(x *txn) *record.Payload {
	if !x.state.hasReply() || !x.inReply.known {
		return nil
	}
	b.begin(&x.inReply)
	if x.inReply.proc == rpcrdma.NoMsg {
		if !x.memory.ReplyChunk || !b.chunk(&b.base, x.memory.Chunk(memory.ReplyChunk, 0), -1, false) {
			return nil
		}
	}
	if !b.place(x) {
		return nil
	}
	return b.join(&b.payloads[1], x, memory.WriteChunk)
}

// begin starts a stream with the part that its Send contains.
func (b *rebuilder) begin(in *inlineStream) {
	b.base.Data, b.base.Holes = append(b.base.Data[:0], in.data...), b.base.Holes[:0]
	b.moved, b.unseen = in.size, 0
	b.hole(&b.base, in.size-int64(len(in.data)), false)
}

// hole appends n zeros.
func (b *rebuilder) hole(to *record.Payload, n int64, item bool) {
	if n <= 0 {
		return
	}
	at := int64(len(to.Data))
	if last := len(to.Holes) - 1; last >= 0 && to.Holes[last].To == at && to.Holes[last].Item == item {
		to.Holes[last].To += n
	} else {
		to.Holes = append(to.Holes, record.Hole{From: at, To: at + n, Item: item})
	}
	to.Data = append(to.Data, make([]byte, n)...)
}

// maxUnseen is the number of bytes by which the bytes that never moved may exceed those that did,
// because chunks may claim any length.
const maxUnseen = 1 << 20

// counts records how many of n bytes moved, and reports whether enough of the stream moved to
// rebuild it.
func (b *rebuilder) counts(n, moved int64) bool {
	moved = min(n, moved)
	b.moved += moved
	b.unseen += n - moved
	return b.unseen <= b.moved+maxUnseen
}

// chunk appends the first size bytes of a chunk, or all of it if size is negative. It reports false
// if the stream would be too long.
func (b *rebuilder) chunk(to *record.Payload, segments []segment, size int64, item bool) bool {
	left := size
	for i := range segments {
		s := &segments[i]
		want := s.Carries()
		if size >= 0 {
			want = min(want, left)
			left -= want
		}
		if int64(len(to.Data))+want > maxStream || !b.counts(want, s.Transferred().Moved()) {
			return false
		}
		b.segment(to, s, want, item)
	}
	if size >= 0 {
		if int64(len(to.Data))+left > maxStream || !b.counts(left, 0) {
			return false
		}
		b.hole(to, left, item) // the chunk has fewer bytes than the item
	}
	return true
}

// segment appends the first n bytes of a segment.
func (b *rebuilder) segment(to *record.Payload, s *segment, n int64, item bool) {
	var data []byte
	b.spans, data = s.Transferred().Kept(b.spans)
	at := int64(0)
	for _, have := range b.spans {
		lo, hi := min(have.Lo, n), min(have.Hi, n, int64(len(data)))
		if hi <= lo {
			continue
		}
		b.hole(to, lo-at, item)
		to.Data = append(to.Data, data[lo:hi]...)
		at = hi
	}
	b.hole(to, n-at, item)
}

// place finds the positions of the items in Write chunks, which only the decoder of the results
// knows.
func (b *rebuilder) place(x *txn) bool {
	b.items, b.holes = b.items[:0], b.holes[:0]
	used, total := 0, int64(0)
	for _, n := range x.sizes {
		b.holes = append(b.holes, nfs.Hole{Position: -1, Length: n})
		if total += n; n > 0 {
			used++
		}
	}
	if used == 0 {
		return true
	}
	if total > maxStream {
		return false
	}
	found := 0
	readable := b.base.Data[:b.base.Readable()]
	if b.rpc.Decode(readable) == nil && b.rpc.Succeeded() {
		if body, plain := x.gss.Plain(readable[b.rpc.Length:]); plain {
			p := x.procedure
			if !p.known && x.cs.nfs4 {
				p = x.assumed()
			}
			b.message.Results(p.program, p.version, p.procedure, body, b.holes, len(readable) == len(b.base.Data))
			for _, i := range b.message.Items {
				if i.Reduced {
					b.items = append(b.items, item{i.Position + int64(len(readable)-len(body)), i.Hole, i.Length})
					found++
				}
			}
		}
	}
	if found == used {
		return true
	}
	if int64(len(readable)) == int64(len(b.base.Data)) && (used > 1 || found > 0 || nfs.ProgramName(x.procedure.program) != "") {
		return false // the results are complete, but have no place for the items
	}
	// The item belongs after the bytes that can be decoded, or is of an unknown program, whose data
	// usually comes last.
	at := int64(len(b.base.Data))
	for _, i := range b.items {
		at += (i.size + 3) &^ 3
	}
	next := 0 // index in the items that were found, which are in the order of their chunks
	for chunk, n := range x.sizes {
		if next < found && b.items[next].chunk == chunk {
			next++
			continue
		}
		if n == 0 {
			continue
		}
		b.items = append(b.items, item{at, chunk, n})
		at += (n + 3) &^ 3
	}
	return true
}

// join inserts the items into the base.
func (b *rebuilder) join(to *record.Payload, x *txn, kind memory.Kind) *record.Payload {
	to.Data, to.Holes = to.Data[:0], to.Holes[:0]
	slices.SortStableFunc(b.items, func(a, c item) int { return cmp.Compare(a.position, c.position) })
	at, hole := int64(0), 0
	take := func(n int64) { // takes n bytes of the base
		shift := int64(len(to.Data)) - at
		to.Data = append(to.Data, b.base.Data[at:at+n]...)
		for at += n; hole < len(b.base.Holes); hole++ {
			h := b.base.Holes[hole]
			if h.From >= at {
				break
			}
			end := min(h.To, at)
			to.Holes = append(to.Holes, record.Hole{From: h.From + shift, To: end + shift, Item: h.Item})
			if end < h.To {
				b.base.Holes[hole].From = end
				break
			}
		}
	}
	for _, i := range b.items {
		n := i.position - int64(len(to.Data))
		if n < 0 || n > int64(len(b.base.Data))-at {
			return nil // in another item, or after the end
		}
		take(n)
		start := len(to.Data)
		if !b.chunk(to, x.memory.Chunk(kind, i.chunk), i.size, true) {
			return nil
		}
		to.Data = append(to.Data, make([]byte, (start-len(to.Data))&3)...)
	}
	take(int64(len(b.base.Data)) - at)
	return to
}
