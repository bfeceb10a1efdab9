package transaction

import (
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// Payload streams: what the RPC header says, and of NFSv4 the operations.

// callRPC notes what the RPC header of a Call says; payload is the Payload
// stream as far as it is in one piece.
func (t *Table) callRPC(x *txn, rpc *oncrpc.Header, payload []byte) {
	r, p := &x.rec, &x.procedure
	*p = procedure{true, rpc.Program, rpc.Version, rpc.Procedure}
	r.Program, r.Version, r.Procedure = record.Some(p.program), record.Some(p.version), record.Some(p.procedure)
	r.ProgramName = named(nfs.ProgramName(p.program))
	r.ProcedureName = named(nfs.ProcedureName(p.program, p.version, p.procedure))
	r.Credential = record.Some(rpc.Credential.Flavor.String())
	if !x.isCompound() {
		return
	}
	x.follower.nfs4 = true
	g, _ := rpc.Credential.GSS()
	x.gss = g.Service
	body, ok := x.gss.Plain(payload[rpc.Length:])
	if !ok {
		return
	}
	x.holes = x.holes[:0]
	for i := range x.segments {
		s := &x.segments[i]
		if s.kind != readChunk || s.position == 0 {
			continue
		}
		if s.index == 0 {
			x.holes = append(x.holes, nfs.Hole{Position: int64(s.position) - int64(len(payload)-len(body))})
		}
		x.holes[len(x.holes)-1].Length += int64(s.length)
	}
	x.operations.Arguments(nfs.NewStream(body, x.holes), nfs.IsCallback(p.program))
	r.Operations = x.operations.Operations
}

// named is a name, unknown when it is empty.
func named(s string) record.Opt[string] { return record.SomeIf(s, s != "") }

// isCompound says whether the procedure is a COMPOUND.
func (x *txn) isCompound() bool {
	p := &x.procedure
	return p.known && nfs.IsCompound(p.program, p.version, p.procedure)
}

// longCall reads the RPC header out of a Position Zero Read chunk, once that has
// moved.
func (t *Table) longCall(x *txn) {
	if x.procedure.known || x.call.Form != record.Long || x.rec.Call == nil {
		return
	}
	t.scratch = x.gather(t.scratch[:0], readChunk, 0, false)
	if rpc := &t.longRPC; rpc.Decode(t.scratch) == nil && rpc.Type == oncrpc.Call { // t.rpc may be the Reply's
		t.callRPC(x, rpc, t.scratch)
	}
}

// replyRPC notes what the RPC header of a Reply says.
func (t *Table) replyRPC(x *txn, m *message) {
	payload, rpc, err := m.payload, m.rpc, m.rpcErr
	if m.header.Proc == rpcrdma.NoMsg {
		t.scratch = x.gather(t.scratch[:0], replyChunk, 0, true)
		payload = t.scratch
		err = rpc.Decode(payload)
	}
	if t.options.Rebuild {
		x.reply = append(x.reply, payload...)
		x.charge(int64(len(payload)))
	}
	if err != nil || rpc.Type != oncrpc.Reply {
		return
	}
	x.rec.RPCStatus = record.Some(rpc.Status())
	if !rpc.Succeeded() {
		return
	}
	x.replyBody = rpc.Length
	x.holes = x.holes[:0]
	body, ok := x.gss.Plain(payload[rpc.Length:])
	if !ok {
		return
	}
	x.replyBody = len(payload) - len(body)
	p := &x.procedure
	switch {
	case x.isCompound() || !p.known && x.follower.nfs4:
		t.compoundReply(x, m.header, body)
	case (p.program == nfs.ProgramNFS && p.version < 4 || p.program == nfs.ProgramNFSACL) && p.procedure != 0 && len(body) >= 4:
		x.setStatus(p.version, be.Uint32(body))
	}
}

func (t *Table) compoundReply(x *txn, h *rpcrdma.Header, body []byte) {
	for i := range h.WriteEnds {
		size := int64(0)
		for _, s := range h.WriteChunk(i) {
			size += int64(s.Length)
		}
		if size > 0 {
			x.holes = append(x.holes, nfs.Hole{Position: -1, Length: size})
		}
	}
	c := &t.compound
	c.Results(nfs.NewStream(body, x.holes), nfs.IsCallback(x.procedure.program))
	switch {
	case x.procedure.known:
		if c.HasStatus {
			x.setStatus(4, c.Status)
		}
	case c.Complete && c.Count > 0: // a Reply without Call that reads as one
		x.setStatus(4, c.Status)
		x.operations.Operations = append(x.operations.Operations[:0], c.Operations...)
		x.rec.Operations = x.operations.Operations
	}
}

func (x *txn) setStatus(version, status uint32) {
	x.rec.NFSStatus = record.Some(nfs.StatusName(version, status))
}

// Rebuilding puts a Payload stream together again: what the Send carried, or the
// chunk that carried all of it, and every reduced data item back where it was
// taken out, rounded up to XDR's four bytes. It gives nil for a stream of which
// something is missing.

func (x *txn) rebuildCall() []byte {
	if x.rec.Call == nil || !x.procedure.known {
		return nil
	}
	out := append([]byte(nil), x.callBody...)
	for i := range x.segments {
		s := &x.segments[i]
		if s.kind != readChunk || s.index != 0 {
			continue
		}
		data, whole := x.chunkData(readChunk, int(s.chunk), false)
		if !whole || int64(s.position) > int64(len(out)) {
			return nil
		}
		if s.position == 0 {
			out = data
			continue
		}
		out = insert(out, int(s.position), data)
	}
	return out
}

func (x *txn) rebuildReply() []byte {
	if x.rec.Reply == nil || !x.rec.RPCStatus.Known() {
		return nil
	}
	out := append([]byte(nil), x.reply...)
	hole := 0
	for chunk := range x.writes {
		data, whole := x.chunkData(writeChunk, chunk, true)
		if !whole {
			return nil
		}
		if len(data) == 0 {
			continue
		}
		at := len(out) // outside of COMPOUND, the reducible item comes last
		if hole < len(x.holes) && x.isCompound() {
			if at = int(x.holes[hole].Position) + x.replyBody; x.holes[hole].Position < 0 || at > len(out) {
				return nil
			}
			hole++
		}
		out = insert(out, at, data)
	}
	return out
}

// chunkData is the data of one chunk, and whether all of it was seen.
func (x *txn) chunkData(kind chunkKind, chunk int, returned bool) ([]byte, bool) {
	want := int64(0)
	for i := range x.segments {
		if s := &x.segments[i]; s.kind == kind && int(s.chunk) == chunk {
			if returned {
				want += int64(s.returned.Or(0))
			} else {
				want += int64(s.length)
			}
		}
	}
	data := x.gather(nil, kind, chunk, returned)
	return data, int64(len(data)) == want
}

// insert puts a data item, padded, into a stream.
func insert(stream []byte, at int, item []byte) []byte {
	padded := append(append([]byte(nil), item...), make([]byte, -len(item)&3)...)
	return append(stream[:at:at], append(padded, stream[at:]...)...)
}
