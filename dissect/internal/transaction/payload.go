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
	*p = procedure{true, rpc.Credential.Flavor, rpc.Program, rpc.Version, rpc.Procedure}
	g, _ := rpc.Credential.GSS()
	x.gss, x.control = g.Service, g.Control()
	if !x.isCompound() {
		return
	}
	x.follower.nfs4 = true
	body, ok := x.gss.Plain(payload[rpc.Length:])
	if !ok {
		return
	}
	t.holes = t.holes[:0]
	for i := range x.segments {
		s := &x.segments[i]
		if s.kind != readChunk || s.position == 0 {
			continue
		}
		if s.index == 0 {
			t.holes = append(t.holes, nfs.Hole{Position: int64(s.position) - int64(len(payload)-len(body))})
		}
		t.holes[len(t.holes)-1].Length += int64(s.length)
	}
	c := &t.asks
	c.Operations = x.named
	c.Arguments(nfs.NewStream(body, t.holes), nfs.IsCallback(p.program))
	x.named, x.namedAll, c.Operations = c.Operations, c.Complete, nil
	x.charge(nameCost * int64(cap(x.named)))
	r.Operations = x.named
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
	t.scratch = gather(t.scratch[:0], x.chunk(readChunk, 0))
	rpc := &t.longRPC // t.rpc may be the Reply's
	err := rpc.Decode(t.scratch)
	defer t.cameIn(x, readChunk)
	if err == nil && rpc.Type == oncrpc.Call {
		t.callRPC(x, rpc, t.scratch)
	}
	x.follower.checkLongCall(x, rpc, err, t.scratch)
}

// replyRPC notes what the RPC header of a Reply says.
func (t *Table) replyRPC(x *txn, m *message) {
	payload, rpc, err := m.payload, m.rpc, m.rpcErr
	if m.header.Proc == rpcrdma.NoMsg {
		t.scratch = gather(t.scratch[:0], x.chunk(replyChunk, 0))
		payload = t.scratch
		err = rpc.Decode(payload)
		t.cameIn(x, replyChunk)
	}
	x.follower.resultsAre(x, m, rpc, err, payload)
	if err != nil || rpc.Type != oncrpc.Reply {
		return
	}
	x.rpcStatus = record.Some(rpc.Status())
	if !rpc.Succeeded() {
		return
	}
	t.holes = t.holes[:0]
	body, ok := x.gss.Plain(payload[rpc.Length:])
	if !ok {
		return
	}
	p := &x.procedure
	switch {
	case x.isCompound() || !p.known && x.follower.nfs4:
		t.compoundReply(x, m.header, body)
		x.follower.grantsCalls(x, body)
	case (p.program == nfs.ProgramNFS && p.version < 4 || p.program == nfs.ProgramNFSACL) && p.procedure != 0 && len(body) >= 4:
		x.setStatus(p.version, be.Uint32(body))
	}
}

func (t *Table) compoundReply(x *txn, h *rpcrdma.Header, body []byte) {
	for i := range h.WriteEnds {
		t.holes = append(t.holes, nfs.Hole{Position: -1, Length: rpcrdma.Length(h.WriteChunk(i))})
	}
	c := &t.compound
	c.Results(nfs.NewStream(body, t.holes), nfs.IsCallback(x.procedure.program))
	switch {
	case x.procedure.known:
		if c.HasStatus {
			x.setStatus(4, c.Status)
		}
	case c.Complete && c.Count > 0: // a Reply without Call that reads as one
		x.setStatus(4, c.Status)
		x.named = append(x.named[:0], c.Operations...)
		x.rec.Operations = x.named
	}
}

func (x *txn) setStatus(version, status uint32) {
	x.nfsStatus = record.Some(nfs.StatusName(version, status))
}
