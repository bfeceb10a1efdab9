package transaction

import (
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// Payload streams: the RPC header, and the operations of NFSv4.

// callRPC records the RPC header of a Call. payload is the inline part of its Payload stream.
func (t *Table) callRPC(x *txn, rpc *oncrpc.Header, payload []byte) {
	r, p := &x.rec, &x.procedure
	*p = procedure{true, rpc.Credential.Flavor, rpc.Program, rpc.Version, rpc.Procedure}
	g, _ := rpc.Credential.GSS()
	x.gss, x.control = g.Service, g.Control()
	b := &t.binding
	if b.of = nil; !x.isCompound() {
		return
	}
	x.cs.nfs4 = true
	if !b.readCall(x, rpc, payload) {
		return
	}
	x.named = b.message.AppendNames(x.named[:0])
	x.namedAll = b.message.Named
	x.charge(nameCost * int64(cap(x.named)))
	r.Operations = x.named
}

// named returns a name, or unknown if it is empty.
func named(s string) record.Opt[string] { return record.SomeIf(s, s != "") }

// isCompound reports whether the procedure is a COMPOUND.
func (x *txn) isCompound() bool {
	p := &x.procedure
	return p.known && nfs.IsCompound(p.program, p.version, p.procedure)
}

// longCall decodes the RPC header in a Position Zero Read chunk after that has moved.
func (t *Table) longCall(x *txn) {
	if x.procedure.known || x.call.Form != record.Long || x.rec.Call == nil {
		return
	}
	t.scratch = gather(t.scratch[:0], x.chunk(readChunk, 0))
	rpc := &t.longRPC // t.rpc may contain the header of the Reply
	err := rpc.Decode(t.scratch)
	defer t.mapLong(x, readChunk)
	if err == nil && rpc.Type == oncrpc.Call {
		t.callRPC(x, rpc, t.scratch)
	}
	checkLongCall(x.cs, x, rpc, err, t.scratch)
}

// replyRPC records the RPC header of a Reply.
func (t *Table) replyRPC(x *txn, m *message) {
	payload, rpc, err := m.payload, m.rpc, m.rpcErr
	if m.header.Proc == rpcrdma.NoMsg {
		t.scratch = gather(t.scratch[:0], x.chunk(replyChunk, 0))
		payload = t.scratch
		err = rpc.Decode(payload)
		t.mapLong(x, replyChunk)
	}
	noteResults(x, m, rpc, err, payload)
	if err != nil || rpc.Type != oncrpc.Reply {
		return
	}
	x.rpcStatus = record.Some(rpc.Status())
	if !rpc.Succeeded() {
		return
	}
	body, ok := x.gss.Plain(payload[rpc.Length:])
	if !ok {
		return
	}
	p := &x.procedure
	switch {
	case x.isCompound() || !p.known && x.cs.nfs4:
		t.compoundReply(x, m.header, body)
		noteSessionReply(x.cs, x, body)
	case (p.program == nfs.ProgramNFS && p.version < 4 || p.program == nfs.ProgramNFSACL) && p.procedure != 0 && len(body) >= 4:
		x.setStatus(p.version, be.Uint32(body))
	}
}

// compoundReply records the results of a COMPOUND. The operations are known from the Call. Without
// a Call, the Reply is decoded as a COMPOUND if possible.
func (t *Table) compoundReply(x *txn, h *rpcrdma.Header, body []byte) {
	if x.procedure.known {
		if len(body) >= 4 {
			x.setStatus(4, be.Uint32(body))
		}
		return
	}
	m := t.binding.readReply(h, body)
	if m.Named && m.Count > 0 {
		x.setStatus(4, m.Status)
		x.named = m.AppendNames(x.named[:0])
		x.rec.Operations = x.named
	}
}

func (x *txn) setStatus(version, status uint32) {
	x.nfsStatus = record.Some(nfs.StatusName(version, status))
}
