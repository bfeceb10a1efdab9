package dissect

import (
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// Payload streams: what the RPC header says, and of NFSv4 the operations.

// callRPC notes what the RPC header of a Call says; payload is the Payload
// stream as far as it is in one piece.
func (d *Dissector) callRPC(t *txn, rpc *oncrpc.Header, payload []byte) {
	r := &t.rec
	t.program, t.version, t.procedure = rpc.Program, rpc.Version, rpc.Procedure
	r.Program, r.Version, r.Procedure = &t.program, &t.version, &t.procedure
	if t.programName = nfs.ProgramName(t.program); t.programName != "" {
		r.ProgramName = &t.programName
	}
	if t.procedureName = nfs.ProcedureName(t.program, t.version, t.procedure); t.procedureName != "" {
		r.ProcedureName = &t.procedureName
	}
	t.credential = rpc.Credential.Flavor.String()
	r.Credential = &t.credential
	if !t.isCompound() {
		return
	}
	t.conn.nfs4 = true
	g, _ := rpc.Credential.GSS()
	t.gss = g.Service
	body, ok := t.gss.Plain(payload[rpc.Length:])
	if !ok {
		return
	}
	t.holes = t.holes[:0]
	for i := range t.segments {
		s := &t.segments[i]
		if s.kind != readChunk || s.position == 0 {
			continue
		}
		if s.index == 0 {
			t.holes = append(t.holes, nfs.Hole{Position: int64(s.position) - int64(len(payload)-len(body))})
		}
		t.holes[len(t.holes)-1].Length += int64(s.length)
	}
	t.operations.Arguments(nfs.NewStream(body, t.holes), nfs.IsCallback(t.program))
	r.Operations = t.operations.Operations
}

// isCompound says whether the procedure is a COMPOUND.
func (t *txn) isCompound() bool {
	return nfs.IsCompound(t.program, t.version, t.procedure)
}

// longCall reads the RPC header out of a Position Zero Read chunk, once that has
// moved.
func (d *Dissector) longCall(t *txn) {
	if t.rec.Program != nil || t.call.Form != "long" {
		return
	}
	d.scratch = t.gather(d.scratch[:0], readChunk, 0, false)
	if rpc := &d.longRPC; rpc.Decode(d.scratch) == nil && rpc.Type == oncrpc.Call { // d.rpc may be the Reply's
		d.callRPC(t, rpc, d.scratch)
	}
}

// replyRPC notes what the RPC header of a Reply says.
func (d *Dissector) replyRPC(t *txn, m *message, h *rpcrdma.Header, rpc *oncrpc.Header, rpcErr error, payload []byte) {
	if h.Proc == rpcrdma.NoMsg {
		d.scratch = t.gather(d.scratch[:0], replyChunk, 0, true)
		payload = d.scratch
		rpcErr = rpc.Decode(payload)
	}
	if d.options.Rebuild {
		t.reply = append(t.reply, payload...)
	}
	if rpcErr != nil || rpc.Type != oncrpc.Reply {
		return
	}
	t.rpcStatus = rpc.Status()
	t.rec.RPCStatus = &t.rpcStatus
	if !rpc.Succeeded() {
		return
	}
	t.replyBody = rpc.Length
	t.holes = t.holes[:0]
	body, ok := t.gss.Plain(payload[rpc.Length:])
	if !ok {
		return
	}
	t.replyBody = len(payload) - len(body)
	switch {
	case t.isCompound() || t.rec.Program == nil && t.conn.nfs4:
		d.compoundReply(t, h, body)
	case (t.program == nfs.ProgramNFS && t.version < 4 || t.program == nfs.ProgramNFSACL) && t.procedure != 0 && len(body) >= 4:
		d.setStatus(t, t.version, be.Uint32(body))
	}
}

func (d *Dissector) compoundReply(t *txn, h *rpcrdma.Header, body []byte) {
	for i := range h.WriteEnds {
		size := int64(0)
		for _, s := range h.WriteChunk(i) {
			size += int64(s.Length)
		}
		if size > 0 {
			t.holes = append(t.holes, nfs.Hole{Position: -1, Length: size})
		}
	}
	d.compound.Results(nfs.NewStream(body, t.holes), nfs.IsCallback(t.program))
	switch {
	case t.rec.Program != nil:
		if d.compound.HasStatus {
			d.setStatus(t, 4, d.compound.Status)
		}
	case d.compound.Complete && d.compound.Count > 0: // a Reply without Call that reads as one
		d.setStatus(t, 4, d.compound.Status)
		t.operations.Operations = append(t.operations.Operations[:0], d.compound.Operations...)
		t.rec.Operations = t.operations.Operations
	}
}

func (d *Dissector) setStatus(t *txn, version, status uint32) {
	t.nfsStatus = nfs.StatusName(version, status)
	t.rec.NFSStatus = &t.nfsStatus
}
