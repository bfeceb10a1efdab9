package transaction

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/memory"
	"github.com/rdmadump/rdmadump/dissect/internal/shares"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// The record of a transaction.

// storage holds the lists of the record that is being handed out.
type storage struct {
	reads    []record.ReadChunk
	writes   []record.WriteChunk
	readSegs []record.Segment
	segs     []record.WriteSegment
	handles  []record.Hex32
	reply    record.WriteChunk
	divider  shares.Divider
}

// newStorage returns storage for a typical record.
func newStorage() storage {
	const usual = 64
	return storage{
		reads: make([]record.ReadChunk, 0, usual), writes: make([]record.WriteChunk, 0, usual), readSegs: make([]record.Segment, 0, usual),
		segs: make([]record.WriteSegment, 0, usual), handles: make([]record.Hex32, 0, usual),
	}
}

// emit hands out a transaction.
func (t *Table) emit(x *txn) {
	if x.state == emitted {
		return
	}
	t.due = 0
	cs := x.cs
	cs.settle(x.tag(partCall), nil)
	connection := cs.link.Decide()
	cs.finished.remove(x)
	x.settleDelivery()
	t.forgetCall(x)
	x.countMissing()
	t.Ended[slices.Index(record.Statuses[:], x.rec.Status)]++
	if x.rec.Attempt == 1 {
		t.Requests++
	}
	_, unanswered := t.attempts.Add(x.rec.Request, x.rec.Attempt, x.rec.Status, struct{}{})
	t.Unanswered += unanswered
	t.mapItems(x)
	if t.Transaction != nil || t.Payload != nil || x.chain != nil {
		r := t.makeRecord(x, connection)
		t.noteTaskRecord(x, r)
		if t.Payload != nil && x.isRebuilt() {
			t.Payload(r, t.rebuild.call(x), t.rebuild.reply(x))
			t.rebuild.trim()
		}
		if t.Transaction != nil {
			t.Transaction(r)
		}
	}
	x.memory.Release(&t.transfers)
	x.charge(-x.charged)
	x.enter(emitted)
	x.trim()
	if t.files != nil {
		t.files.release(x)
	}
	if cap(t.scratch) > 1<<20 { // free memory that a large chunk needed
		t.scratch = nil
	}
	if b := &t.body; cap(b.holes) > 1<<12 {
		b.holes = nil
	}
}

// makeRecord returns the record of x, which is valid until the next call.
func (t *Table) makeRecord(x *txn, connection int) *record.Transaction {
	cs, k, r := x.cs, &x.rec, &t.record
	t.explainWaits(x)
	x.endWaits()
	if x.rec.disordered {
		slices.SortStableFunc(k.Timeline, func(a, b record.Event) int { return compareEvents(&a, &b) })
	}
	*r = record.Transaction{} // a statement of its own, so that the compiler clears it in place
	r.Type, r.ID, r.Connection, r.XID = "transaction", k.ID, connection, k.XID
	r.Direction, r.Status, r.Call = cs.direction(x.side), k.Status, k.Call
	r.Operations, r.Operation, r.MinorVersion = k.Operations, named(nfs.PrincipalOperation(k.Operations)), k.Minor
	r.RPCStatus, r.NFSStatus = x.rpcStatus, x.nfsStatus
	r.RDMAError, r.RDMAErrorRange = x.rdmaError, x.rdmaErrorRange
	r.Invalidation, r.Malformed = x.invalidation, k.Malformed
	r.Timeline, r.Waits, r.Findings = k.Timeline, k.Waits, k.Findings
	r.LatencyNS, r.LatencyMinNS, r.Phases = x.latency, x.latencyMin, x.phases()
	r.LatencyMinPacket = record.SomeIf(x.minPacket, x.minPacket != 0)
	r.ReplyLost = x.state == lost || slices.Contains(k.Findings, rule.ReplyNotDelivered.ID)
	r.HeldBackBy = record.SomeIf(k.HeldBackBy, k.HeldBackBy != 0)
	if x.behind != nil {
		r.BehindReads = record.Some(x.behind.BehindReads)
	}
	r.FillWaits()
	r.Split = splitOf(x)
	r.Shares = x.divide(r.Split)
	if x.latency.Known() && x.rec.Call != nil {
		r.Meanwhile = x.meanwhile
	}
	r.Request, r.Attempt, r.Try, r.FirstTry = k.Request, k.Attempt, k.Try, k.FirstTry
	r.RetryOf = record.SomeIf(k.RetryOf, k.RetryOf != 0)
	r.RetransmitOf = record.SomeIf(k.RetransmitOf, k.RetransmitOf != 0)
	if r.ReplyLost && slices.Contains(k.Findings, rule.InlineThresholdExceeded.ID) {
		r.ReplyLimit = record.Some(int64(inlineThreshold(cs, x.side.Other())))
	}
	if x.state.hasReply() || x.state == lost {
		r.Reply = &x.answer
	}
	x.procedure.fill(r)
	x.identity.fill(r)
	x.owner.fill(r)
	r.WriteVerifier, r.BytesRead, r.BytesWritten = x.writeVerifier, x.bytesRead, x.bytesWritten
	r.BytesAsked, r.SequenceFlags, r.CopyPromised = x.bytesAsked, record.Hex32(x.sequenceFlags), x.copyPromised
	x.files.fill(r)
	if p := &x.procedure; p.known && p.program == nfs.ProgramNFS && p.version < 4 {
		r.Operation = r.ProcedureName
	}
	setup := cs.link.Setup()
	client := setup.Opener()
	r.RetransmittedFrom = record.FromPair{FromClient: int64(k.Retransmitted[client]), FromServer: int64(k.Retransmitted[client.Other()])}
	r.Retransmitted = int(r.RetransmittedFrom.FromClient + r.RetransmittedFrom.FromServer)
	r.GSS = x.gssOf()
	r.Client, r.Server, r.Transport = cs.link.Host(client).Known(), cs.link.Host(client.Other()).Known(), setup.Transport
	r.Key = setup.Key
	if v := x.rendezvous; v != nil {
		r.Mapping, r.MountPath = v.mapping, v.path
	}
	if r.Call != nil && !setup.RPC {
		t.chunks(x)
	}
	return r
}

// gssProcedures are the names of the procedures of RPCSEC_GSS in records (RFC 2203 s.5).
var gssProcedures = [...]string{"data", "init", "continue_init", "destroy"}

// gssOf returns what the RPCSEC_GSS credential of the Call says.
func (x *txn) gssOf() (r record.Opt[record.GSS]) {
	procedure, known := x.gssProcedure.Get()
	if !known {
		return r
	}
	g := record.GSS{Procedure: "unknown"}
	if int64(procedure) < int64(len(gssProcedures)) {
		g.Procedure = gssProcedures[procedure]
	}
	if s := x.gss; procedure == 0 && s >= oncrpc.ServiceNone && s <= oncrpc.ServicePrivacy {
		g.Service = record.Some(s.String())
	}
	return record.Some(g)
}

// compareEvents orders events by their packets. That a packet is a retransmission comes before what
// it completed.
func compareEvents(a, b *record.Event) int {
	order := cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Packet, b.Packet))
	switch again := a.Event == record.EventRetransmit; {
	case order != 0 || again == (b.Event == record.EventRetransmit):
		return order
	case again:
		return -1
	}
	return 1
}

// chunks fills in the chunk lists and the handles that were not invalidated.
func (t *Table) chunks(x *txn) {
	r, to := &t.record, &t.storage
	reads, writes := 0, 0
	for i := range x.memory.Segments {
		if x.memory.Segments[i].Kind == memory.ReadChunk {
			reads++
		} else {
			writes++
		}
	}
	to.readSegs, to.segs = slices.Grow(to.readSegs[:0], reads), slices.Grow(to.segs[:0], writes)
	to.reads, to.writes = to.reads[:0], to.writes[:0]
	for range x.memory.Writes { // a chunk may have no segments
		to.writes = append(to.writes, record.WriteChunk{Segments: to.segs[:0]})
	}
	t.leftOver(x)
	reply := len(x.memory.Segments)
	for i := range x.memory.Segments {
		s := &x.memory.Segments[i]
		if s.Kind == memory.ReadChunk {
			to.readSegs = append(to.readSegs, record.Segment{Handle: record.Hex32(s.Handle), Length: s.Length, Offset: record.Hex64(s.Offset), MovedBytes: s.Transferred().Moved()})
			n := len(to.readSegs)
			if s.Index == 0 {
				to.reads = append(to.reads, record.ReadChunk{Position: s.Position, Segments: to.readSegs[n-1:]})
			}
			last := &to.reads[len(to.reads)-1]
			last.Segments = last.Segments[:s.Index+1]
			continue
		}
		to.segs = append(to.segs, record.WriteSegment{
			Handle: record.Hex32(s.Handle), Length: s.Length, Offset: record.Hex64(s.Offset), MovedBytes: s.Transferred().Moved(),
			ReturnedLength: record.SomeIf(s.Returned.Or(0), s.Returned.Known() && r.Status.Replied()),
		})
		n := len(to.segs)
		if s.Kind == memory.ReplyChunk {
			reply = min(reply, n-1)
			continue
		}
		last := &to.writes[s.Chunk]
		if s.Index == 0 {
			last.Segments = to.segs[n-1 : n-1]
		}
		last.Segments = last.Segments[:s.Index+1]
	}
	if r.ReadChunks = to.reads; r.ReadChunks == nil {
		r.ReadChunks = []record.ReadChunk{}
	}
	if r.WriteChunks = to.writes; r.WriteChunks == nil {
		r.WriteChunks = []record.WriteChunk{}
	}
	if x.memory.ReplyChunk {
		to.reply.Segments = to.segs[min(reply, len(to.segs)):]
		r.ReplyChunk = &to.reply
	}
	if cap(to.segs)+cap(to.readSegs) > 1<<12 { // free memory that a large Call needed
		t.storage = newStorage()
	}
}

// leftOver lists the handles that the Reply did not invalidate, each once.
func (t *Table) leftOver(x *txn) {
	to := &t.storage
	to.handles = to.handles[:0]
	invalidated, known := x.invalidation.Get()
	r := &t.record
	for i := range x.memory.Segments {
		s := &x.memory.Segments[i]
		if s.HandleSeen || s.Persistent || s.Invalidated || known && uint32(invalidated.Handle) == s.Handle {
			continue
		}
		to.handles = append(to.handles, record.Hex32(s.Handle))
	}
	r.PersistentHandles = x.checks.memory.handles.persistent
	if r.NotInvalidated = to.handles; to.handles == nil {
		r.NotInvalidated = []record.Hex32{}
	}
}

// phases divides the latency by the events of the timeline. Each phase begins when the one before
// it ended, so their sum is the latency even if Reads and Writes overlap.
func (x *txn) phases() (p record.Opt[record.Phases]) {
	if !x.latency.Known() {
		return p
	}
	at, waits := firstSent(x).Time, int64(0)
	var phases [record.PhaseStalled]record.Opt[int64]
	for i, end := range record.PhaseEnds(x.rec.Timeline, x.answer.LastTime) {
		if to, known := end.Get(); known {
			waited := x.waited(at, to)
			waits += waited
			phases[i] = record.Some(int64(max(to, at)-at) - waited)
			at = max(to, at)
		}
	}
	return record.Some(record.Phases{
		ToReadNS: phases[record.PhaseToRead], ReadNS: phases[record.PhaseReads], ToWriteNS: phases[record.PhaseToWrite], WriteNS: phases[record.PhaseWrites],
		ToReplyNS: phases[record.PhaseToReply], WaitNS: waits,
	})
}
