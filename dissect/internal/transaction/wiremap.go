package transaction

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/memory"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
)

// Decoded messages, for callers that rewrite packets.

// mapMessage passes a decoded Send to the observer.
func (t *Table) mapMessage(m *message) {
	if t.Message == nil {
		return
	}
	h, s := m.header, &t.mapped
	*s = wiremap.Message{Send: m.Number, Holes: s.Holes[:0], Segments: s.Segments[:0]}
	if m.plain {
		s.Payload, s.RPC = m.data, true
	} else {
		end := h.Length
		if m.err != nil {
			end += 4 // findings quote the invalid word
		}
		end, found := m.findPayload(min(end, len(m.data)))
		s.Header, s.Payload, s.RPC = m.data[:end], m.data[end:], found || m.inline && h.Proc == rpcrdma.Msg
	}
	x, part := t.tagged(m.Tag)
	s.Reply = part == partReply
	t.mapRPC(x, s)
}

// findPayload returns the offset of the RPC message in m.data, if the first n bytes were decoded as
// a header that claims more entries than it has. The RPC message begins with the XID of the header,
// and with words that only an RPC message has there.
func (m *message) findPayload(n int) (at int, found bool) {
	if m.err == nil && (m.rpcErr == nil || m.header.Proc != rpcrdma.Msg) || m.header.Proc > rpcrdma.MsgP {
		return n, false
	}
	for at := rpcrdma.FixedLen; at+16 <= len(m.data) && at < n; at += 4 {
		words, likely := m.data[at:], 0
		same, kind := be.Uint32(words) == m.header.XID && m.header.XID != 0, be.Uint32(words[4:])
		for _, is := range []bool{same, kind == 0, be.Uint32(words[8:]) == 2, nfs.ProgramName(be.Uint32(words[12:])) != ""} {
			if is {
				likely++
			}
		}
		if likely >= 3 || same && kind == 1 && be.Uint32(words[8:]) <= 1 {
			return at, true
		}
	}
	return n - m.overclaimed(n), false
}

// overclaimed returns how many of the n bytes of a header were decoded as segments of a chunk that
// claims more segments than the header has, except for its first segment. Those bytes may be
// anything.
func (m *message) overclaimed(n int) int {
	h, chunk := m.header, m.header.Reply
	if !m.captured() || m.err == nil {
		return 0
	}
	if ends := len(h.WriteEnds); ends > 0 && !h.HasReply {
		chunk = h.WriteChunk(ends - 1)
	}
	segments := len(chunk) * rpcrdma.SegmentLen
	if count := h.Length - segments - 4; segments == 0 || count < rpcrdma.FixedLen || int64(be.Uint32(m.data[count:])) <= int64(len(chunk)) {
		return 0
	}
	return n - h.Length + segments - rpcrdma.SegmentLen
}

// mapLong passes the Long message in t.scratch to the observer.
func (t *Table) mapLong(x *txn, kind memory.Kind) {
	if t.Message == nil {
		return
	}
	s := &t.mapped
	*s = wiremap.Message{Payload: t.scratch, RPC: true, Reply: kind == memory.ReplyChunk, Holes: s.Holes[:0], Segments: s.Segments[:0]}
	mapSegments(s, x.memory.Chunk(kind, 0))
	t.mapRPC(x, s)
}

// mapSegments fills in the memory through which a stream was transferred. whole is true if the
// stream contains the whole chunk.
func mapSegments(s *wiremap.Message, segments []segment) (whole bool) {
	left, missing := int64(len(s.Payload)), int64(0)
	for i := range segments {
		p := &segments[i]
		want := p.Carries()
		n := min(want, left)
		left, missing = left-n, missing+want-n
		if n > 0 {
			s.Segments = append(s.Segments, wiremap.Segment{Handle: p.Handle, Offset: p.Offset, Length: n})
		}
	}
	return missing == 0
}

// mayName lists the procedures and operations whose names may be in chunks of their own.
var mayName = [...]string{"READLINK", "SYMLINK", "CREATE"}

// keepNames keeps the data of an RPC that may transfer names.
func (t *Table) keepNames(x *txn) {
	if t.Message == nil {
		return
	}
	procedure := x.procedure.name()
	names := func(name string) bool { return slices.Contains(mayName[:], name) }
	if !names(procedure) && !slices.ContainsFunc(x.rec.Operations, names) {
		return
	}
	x.memory.Keep(mostKept(x), true)
}

// mapItems passes to the observer the names that were transferred completely in chunks of their own.
func (t *Table) mapItems(x *txn) {
	if t.Message == nil {
		return
	}
	for i := range x.memory.Segments {
		p, s := &x.memory.Segments[i], &t.mapped
		if !p.Keeps() || p.Index != 0 || p.Kind == memory.ReplyChunk || p.Kind == memory.ReadChunk && p.Position == 0 {
			continue
		}
		segments := x.memory.Chunk(p.Kind, int(p.Chunk))
		t.scratch = x.memory.Gather(t.scratch[:0], p.Kind, int(p.Chunk))
		*s = wiremap.Message{
			Item: true, Reply: p.Kind == memory.WriteChunk, Transaction: record.Some(x.rec.ID), Payload: t.scratch, Position: int64(p.Position), Hole: int(p.Chunk),
			Holes: s.Holes[:0], Segments: s.Segments[:0],
		}
		if mapSegments(s, segments) && len(t.scratch) > 0 {
			t.Message(s)
		}
	}
}

// mapRPC fills in the known facts about a message, and passes it to the observer.
func (t *Table) mapRPC(x *txn, s *wiremap.Message) {
	if x != nil {
		p := x.procedure
		if s.Known = p.known; !p.known {
			p = x.assumed()
		}
		s.Transaction, s.NFS4 = record.Some(x.rec.ID), x.cs.nfs4
		s.Program, s.Version, s.Procedure, s.Service = p.program, p.version, p.procedure, uint32(x.gss)
		if !s.Reply {
			s.Holes = x.memory.Holes(s.Holes)
		} else {
			for _, n := range x.sizes {
				s.Holes = append(s.Holes, nfs.Hole{Position: -1, Length: n})
			}
		}
	}
	t.Message(s)
}
