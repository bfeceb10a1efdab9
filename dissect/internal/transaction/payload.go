package transaction

import (
	"encoding/hex"

	"github.com/rdmadump/rdmadump/dissect/internal/memory"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// Payload streams: the RPC header, and the operations of NFSv4.

// callRPC records the RPC header of a Call, and returns the arguments if it decodes them, and nil
// otherwise. payload is the inline part of its Payload stream.
func (t *Table) callRPC(x *txn, rpc *oncrpc.Header, payload []byte) *rpcBody {
	r, p := &x.rec, &x.procedure
	*p = procedure{true, record.SomeIf(rpc.Credential.Flavor, rpc.Length >= 28), rpc.RPCVersion, rpc.Program, rpc.Version, rpc.Procedure}
	x.identity = t.machines.identify(rpc.Credential)
	g, guarded := rpc.Credential.GSS()
	x.gss, x.control, x.gssProcedure = g.Service, g.Control(), record.SomeIf(g.Procedure, guarded)
	if !x.isCompound() {
		t.files.note(x, rpc, payload, nil)
		if p.program != nfs.ProgramNFS || nfs.ProcedureName(p.program, p.version, p.procedure) != "READ" {
			return nil
		}
		b := t.readArguments(x, rpc, payload)
		x.noteAsked(b)
		return b
	}
	x.cs.nfs4 = true
	b := t.readArguments(x, rpc, payload)
	if b.bytes == nil {
		return b
	}
	x.named = b.message.AppendNames(x.named[:0])
	x.namedAll = b.message.Named
	x.charge(nameCost * int64(len(x.named)))
	if len(x.named) > 0 || b.message.Named {
		r.Operations = x.named
		r.Minor = record.Some(b.message.MinorVersion)
	}
	x.noteOwner(b)
	x.noteAsked(b)
	t.files.note(x, rpc, payload, b)
	return b
}

// noteOwner records the owner and the verifier with which an NFSv4 client names itself, if the Call does that.
func (x *txn) noteOwner(b *rpcBody) {
	if len(b.holes) > 0 { // Offsets are not those in the Payload stream.
		return
	}
	if owner, verifier, known := b.message.ClientOwner(b.bytes); known {
		x.charge(int64(2 * len(owner)))
		x.owner = &clientOwner{hex.EncodeToString(owner), record.Hex64(verifier)}
	}
}

// noteAsked records how many bytes of files the READs of a Call ask for.
func (x *txn) noteAsked(b *rpcBody) {
	if b.bytes == nil { // The message is that of another Call.
		return
	}
	asked := int64(0)
	for i := range b.message.Ops {
		if o := &b.message.Ops[i]; o.Name == "READ" || o.Name == "READ_PLUS" {
			asked += max(o.MaxResult, 0)
		}
	}
	x.bytesAsked = record.SomeIf(asked, asked > 0)
}

// noteData records what results say of the data of files: how many bytes READ and WRITE moved, the verifier, and whether a COPY goes on; and what the
// server reports about the session.
func (x *txn) noteData(reply *message, body []byte) {
	h := reply.header
	p := &x.procedure
	x.writeVerifier, x.bytesRead, x.bytesWritten = record.Opt[record.Hex64]{}, record.Opt[int64]{}, record.Opt[int64]{}
	x.sequenceFlags, x.copyPromised = 0, false
	if !p.known || p.program != nfs.ProgramNFS {
		return
	}
	reads, writes, commits, copies := false, false, false, false
	if x.isCompound() {
		if reply.captured() {
			x.sequenceFlags = nfs.SequenceFlags(body)
		}
		for _, name := range x.named {
			reads, writes, commits = reads || name == "READ" || name == "READ_PLUS", writes || name == "WRITE", commits || name == "COMMIT"
			copies = copies || name == "COPY"
		}
	} else {
		name := nfs.ProcedureName(p.program, p.version, p.procedure)
		reads, writes, commits = name == "READ", name == "WRITE", name == "COMMIT"
	}
	if !reads && !writes && !commits && !copies {
		return
	}
	m := x.cs.table.readResults(p.program, p.version, p.procedure, h, body)
	if read, written := m.Moved(body); m.Complete || read+written > 0 {
		x.bytesRead, x.bytesWritten = record.SomeIf(read, reads), record.SomeIf(written, writes)
	}
	if h.WriteEnds != nil { // Offsets are not those in the Payload stream.
		return
	}
	verifier, known := uint64(0), false
	if x.isCompound() {
		verifier, known = m.WriteVerifier(body)
		x.copyPromised = copies && m.CopyPromised(body)
	} else if p.version == 3 {
		verifier, known = nfs.WriteVerifier3(p.procedure, body)
	}
	x.writeVerifier = record.SomeIf(record.Hex64(verifier), known)
}

// clientOwner is how an NFSv4 client names itself.
type clientOwner struct {
	owner    string
	verifier record.Hex64
}

// fill fills in the name in a record, unless o is nil.
func (o *clientOwner) fill(r *record.Transaction) {
	if o != nil {
		r.ClientOwner, r.BootVerifier = record.Some(o.owner), record.Some(o.verifier)
	}
}

// identity is what an AUTH_SYS credential says about the caller.
type identity struct {
	known    bool
	uid, gid uint32
	machine  string
}

// machines is a cache of machine names, so that most Calls need no new string.
type machines [16]string

// of returns a name as a string.
func (m *machines) of(name []byte) string {
	n := len(name)
	if n == 0 {
		return ""
	}
	last := &m[(n+int(name[n-1]))%len(m)]
	if *last != string(name) {
		*last = string(name)
	}
	return *last
}

// identify returns the identity in a credential.
func (m *machines) identify(c oncrpc.Auth) identity {
	s, known := c.Caller()
	if !known {
		return identity{}
	}
	return identity{known, s.UID, s.GID, m.of(s.Machine)}
}

// fill fills in the identity in a record.
func (i *identity) fill(r *record.Transaction) {
	if i.known {
		r.UID, r.GID, r.Machine = record.Some(i.uid), record.Some(i.gid), record.Some(i.machine)
	}
}

// named returns a name, or unknown if it is empty.
func named(s string) record.Opt[string] { return record.SomeIf(s, s != "") }

// isCompound reports whether the procedure is a COMPOUND.
func (x *txn) isCompound() bool { return x.procedure.isCompound() }

// isCompound reports whether the procedure is known to be a COMPOUND.
func (p *procedure) isCompound() bool {
	return p.known && nfs.IsCompound(p.program, p.version, p.procedure)
}

// longCall decodes the RPC header in a Position Zero Read chunk after that has moved.
func (t *Table) longCall(x *txn) {
	if x.procedure.known || x.call.Form != record.Long || x.rec.Call == nil {
		return
	}
	t.scratch = x.memory.Gather(t.scratch[:0], memory.ReadChunk, 0)
	rpc := &t.longRPC // t.rpc may contain the header of the Reply
	err := rpc.Decode(t.scratch)
	defer t.mapLong(x, memory.ReadChunk)
	var arguments *rpcBody
	if err == nil && rpc.Type == oncrpc.Call {
		arguments = t.callRPC(x, rpc, t.scratch)
	}
	checkLongCall(x, rpc, err, t.scratch, arguments)
}

// replyRPC records the RPC header of a Reply, and returns its Payload stream.
func (t *Table) replyRPC(x *txn, m *message) (r results) {
	payload, rpc, err := m.payload, m.rpc, m.rpcErr
	r.whole = m.captured()
	if m.header.Proc == rpcrdma.NoMsg {
		t.scratch = x.memory.Gather(t.scratch[:0], memory.ReplyChunk, 0)
		payload = t.scratch
		err = rpc.Decode(payload)
		t.mapLong(x, memory.ReplyChunk)
		r.whole = len(payload) > 0 && int64(len(payload)) == rpcrdma.Length(m.header.Reply)
		checkLong(x.checker(m.Last).attributedTo(m.side), rpc, err, r.whole, oncrpc.Reply)
	}
	if r.payload = payload; err != nil {
		return r
	}
	if r.rpc = rpc; rpc.Type != oncrpc.Reply {
		return r
	}
	x.rpcStatus = record.Some(rpc.Status())
	if !rpc.Succeeded() {
		return r
	}
	if x.gss == 0 && rpc.Verifier.Flavor == oncrpc.AuthRPCSECGSS { // The credential of the Call, which says how results are protected, is truncated.
		return r
	}
	body, ok := x.gss.Plain(payload[rpc.Length:])
	if !ok {
		return r
	}
	x.noteData(m, body)
	t.files.answer(x, m.header, body)
	p := &x.procedure
	switch {
	case m.plain && readRendezvous(x, body):
	case x.isCompound() || !p.known && x.cs.nfs4:
		t.compoundReply(x, m.header, body)
		noteSessionReply(x.cs, x, body)
	case p.program != nfs.ProgramMount && p.hasStatus() && len(body) >= 4:
		x.setStatus(p.version, be.Uint32(body))
	}
	return r
}

// showsOutcome reports whether a Reply shows whether the RPC succeeded. A Reply that was captured whole shows what any capture
// can show, even if it is encrypted, unless its version is unknown.
func showsOutcome(x *txn, m *message) bool {
	whole := m.captured() && !m.unknownVersion()
	if whole && m.header.Proc == rpcrdma.NoMsg {
		whole = int64(len(m.results.payload)) == rpcrdma.Length(m.header.Reply)
	}
	status, known := x.rpcStatus.Get()
	return whole || x.nfsStatus.Known() || known && (status != "SUCCESS" || x.procedure.known && !x.procedure.hasStatus())
}

// hasStatus reports whether the results of the procedure begin with a status.
func (p *procedure) hasStatus() bool {
	switch p.program {
	case nfs.ProgramNFS, nfs.ProgramNFSACL:
		return p.procedure != 0 && (p.version < 4 || p.isCompound())
	case nfs.ProgramMount:
		return p.procedure == nfs.ProcedureMount
	}
	return p.isCompound()
}

// assumed returns the procedure of a Reply without Call on a connection with NFSv4: a COMPOUND, or a CB_COMPOUND of the server.
func (x *txn) assumed() procedure {
	if x.cs.direction(x.side) == record.Backward {
		return procedure{known: true, program: nfs.ProgramCallback, version: 1, procedure: nfs.ProcedureCompound}
	}
	return procedure{known: true, program: nfs.ProgramNFS, version: 4, procedure: nfs.ProcedureCompound}
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
	p := x.assumed()
	m := t.readResults(p.program, p.version, p.procedure, h, body)
	if m.Named && m.Count > 0 {
		x.setStatus(4, m.Status)
		x.named = m.AppendNames(x.named[:0])
		x.rec.Operations = x.named
	}
}

func (x *txn) setStatus(version, status uint32) {
	x.nfsStatus = record.Some(nfs.StatusName(version, status))
}
