package transaction

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Events of operations: their end, acknowledgement, retransmission and refusal.

// kindOf returns the kind of timeline event for an operation of a transaction.
func kindOf(o *rdma.Operation, part int) record.EventKind {
	switch {
	case part == partCall:
		return record.EventCall
	case part == partReply:
		return record.EventReply
	case o.Kind == rdma.Read:
		return record.EventRead
	}
	return record.EventWrite
}

// moved records the end of an RDMA Read or Write.
func (cs *connState) moved(o *rdma.Operation) {
	if o.Kind == rdma.Read && cs.link.Setup().IWARP { // the owner's Read Response comes before its next Call in the stream
		accessed := target{Handle: o.Handle, Offset: o.Offset, Length: uint32(o.Length)}
		for i := range cs.findings { // no Call that follows excuses them
			if f := &cs.findings[i]; f.memory == accessed {
				f.memory = target{}
			}
		}
	}
	x, part := cs.table.tagged(o.Tag)
	if x == nil || o.Kind == rdma.Atomic {
		return
	}
	noteReordered(cs, x, o, record.EventWrite)
	if part < len(x.memory.Segments) {
		cs.exposed[x.side].Reaches(&x.memory.Segments[part], o.Offset+uint64(o.Length))
	}
	what, from := record.EventWriteLast, o.Side
	if o.Kind == rdma.Read {
		what, from = record.EventReadDone, o.Side.Other()
		x.checks.memory.openReads--
		x.turn.ReadEnd = o.Last.Time
		cs.wireActivity().reads[o.Side].note(x, o)
	}
	e := x.event(o.Last, what, x.role(from))
	e.Handle, e.Offset = record.Some(record.Hex32(o.Handle)), record.Some(record.Hex64(o.Offset))
	e.Bytes, e.Packets = record.Some(o.Bytes), record.SomeIf(o.Packets, o.Packets > 0)
}

// noteReordered records a packet of an operation that was captured before a packet that it has to
// follow.
func noteReordered(cs *connState, x *txn, o *rdma.Operation, of record.EventKind) {
	early, filled := o.Disorder()
	if early.Packet == 0 {
		return
	}
	from := x.role(o.Side)
	if o.Kind == rdma.Read { // the packet belongs to the response
		of, from = record.EventReadDone, x.role(o.Side.Other())
	}
	e := x.event(early, record.EventOutOfOrder, from)
	e.Of, e.LastPacket = of, record.SomeIf(filled.Packet, filled.Packet != 0)
}

// Operation takes an event of an operation.
func (cs *connState) Operation(e rdma.Event) rdma.Standing {
	switch e.What {
	case rdma.Began:
		cs.began(e.Op)
	case rdma.Done:
		cs.done(e.Op)
	case rdma.Acked:
		cs.acknowledged(e.Op, e.At)
	case rdma.Retransmitted:
		cs.retransmitted(e)
	case rdma.Damaged:
		noteDamaged(cs, e)
	case rdma.Lost:
		noteLostPacket(cs, e)
	case rdma.DamagedNak:
		noteDamagedNak(cs, e)
	case rdma.Arrived:
		if x, part := cs.table.tagged(e.Op.Tag); x != nil && !(part == partCall && x.call.Delivered.Known()) {
			x.delivered(e.Op, part)
		}
	}
	switch x, _ := cs.table.tagged(e.Op.Tag); {
	case x == nil || x.state == emitted:
		return rdma.Unassigned
	case x.state == outstanding:
		return rdma.Open
	}
	return rdma.Ended
}

// acknowledged records on its transaction that a Send was acknowledged.
func (cs *connState) acknowledged(o *rdma.Operation, at record.Stamp) {
	if trustIn(o) != trusted {
		cs.sendDelivered(o.Number, !o.Bad || !cs.fillsICRC(o.Side))
	}
	cs.settle(0, nil)
	noteShortDelivered(cs, o)
	noteUnowedDelivered(cs, o)
	x, part := cs.table.tagged(o.Tag)
	if x == nil {
		return
	}
	x.delivered(o, part)
	if o.Kind != rdma.Send {
		return
	}
	noteGrantDelivered(cs, o, at)
	x.progress.seen(at)
	x.event(at, record.EventAck, x.role(o.Side.Other())).Of = kindOf(o, part)
}

// retransmitted records on a transaction that a packet of it was retransmitted.
func (cs *connState) retransmitted(happened rdma.Event) {
	o, by, at := happened.Op, happened.By, happened.At
	noteCopyInDoubt(cs, o)
	if by == o.Side {
		cs.doubts.retransmittedAt[by] = cs.table.Clock
	}
	x, part := cs.table.tagged(o.Tag)
	checkBurst(cs, x, happened)
	if x == nil || x.state == emitted {
		return
	}
	x.rec.Retransmitted[by]++
	if part == partReply && at.Packet != o.Last.Packet { // not if only a damaged copy came before it
		x.progress.replyAgain = true
	}
	of := kindOf(o, part)
	if o.Kind == rdma.Read && by != o.Side {
		of = record.EventReadDone
	}
	paused := at.Time-x.progress.active.Time >= waitFrom
	noteRetransmit(cs, x, happened, of)
	if of == record.EventReadDone && o.Again > 0 {
		x.readDoneAt(o, at)
	}
	if happened.Gone { // an event of its own says so
		return
	}
	from := x.role(by)
	if n := len(x.rec.Timeline); n > 0 && !paused { // successive retransmissions are one event
		if last := &x.rec.Timeline[n-1]; last.Event == record.EventRetransmit && last.Of == of && last.From == from {
			last.Packets = record.Some(last.Packets.Or(0) + 1)
			last.LastPacket = record.Some(at.Packet)
			return
		}
	}
	e := x.event(at, record.EventRetransmit, from)
	e.Of, e.Packets, e.LastPacket = of, record.Some[int64](1), record.Some(at.Packet)
}

// noteDamaged records on a transaction that a request of it was retransmitted, and damaged on the way.
func noteDamaged(cs *connState, happened rdma.Event) {
	x, part := cs.table.tagged(happened.Op.Tag)
	if x == nil || x.state == emitted {
		return
	}
	of := kindOf(happened.Op, part)
	noteRetransmit(cs, x, happened, of)
	if findDamaged(x, happened.At.Packet) == nil {
		x.event(happened.At, record.EventDamaged, x.role(happened.By)).Of = of
	}
}

// noteDamagedFirst records that the first copy of a Call or Reply was damaged or lost on the way. The
// retransmission of it is an event of its own, which follows.
func noteDamagedFirst(x *txn, o *rdma.Operation, of record.EventKind, from record.Role) {
	at, kind := o.Damaged(), record.EventDamaged
	if o.FirstLost() {
		kind = record.EventLost
	}
	if findDamaged(x, at.Packet) == nil {
		x.event(at, kind, from).Of = of
	}
	x.progress.seenLate(at)
}

// noteLostPacket records on a transaction that a packet of it was lost or damaged between capture points. That a request
// was damaged is known already if the capture at its receiver shows it.
func noteLostPacket(cs *connState, happened rdma.Event) {
	x, part := cs.table.tagged(happened.Op.Tag)
	if x == nil || x.state == emitted {
		return
	}
	l := happened.Loss
	kind, reason := record.EventLost, ""
	if l.Damaged {
		kind, reason = record.EventDamaged, damageOf(cs.link.Setup(), l)
	}
	e := findDamaged(x, happened.At.Packet)
	if e == nil {
		e = x.event(happened.At, kind, x.role(happened.By))
		e.Of = lostKind(happened.Op, part, happened.By, l)
	}
	e.Event, e.Reason = kind, reason
}

// damageOf returns what shows that a packet was damaged. It is empty for an ICRC.
func damageOf(s *rdma.Setup, l *rdma.Loss) string {
	switch {
	case !l.BadChecksum:
		return "damaged on the way"
	case s.IWARP || s.Transport == rdma.TCPTransport:
		return "bad TCP checksum"
	case s.RPC:
		return "bad UDP checksum"
	}
	return ""
}

// lostKind returns what a packet that was lost belongs to. A side sent it, unless it is the response to a packet of that side.
func lostKind(o *rdma.Operation, part int, by rdma.Side, l *rdma.Loss) record.EventKind {
	switch {
	case l.Nak:
		return record.EventNak
	case l.Ack:
		return record.EventAck
	case o.Kind == rdma.Read && (l.Response || by != o.Side):
		return record.EventReadDone
	}
	return kindOf(o, part)
}

// findDamaged returns the event of a packet that was damaged or lost, or nil.
func findDamaged(x *txn, packet int64) *record.Event {
	list := x.rec.Timeline
	for i := len(list) - 1; i >= 0 && len(list)-i <= recentEvents; i-- {
		if e := &list[i]; (e.Event == record.EventDamaged || e.Event == record.EventLost) && e.Packet == packet {
			return e
		}
	}
	return nil
}

// noteDamagedNak records on a transaction that a NAK of it was damaged on the way.
func noteDamagedNak(cs *connState, happened rdma.Event) {
	if x, _ := cs.table.tagged(happened.Op.Tag); x != nil && x.state != emitted && findDamaged(x, happened.At.Packet) == nil {
		x.event(happened.At, record.EventDamaged, x.role(happened.By)).Of = record.EventNak
	}
}

// recentEvents is the number of events that are searched for the end of a Read.
const recentEvents = 256

// readDoneAt moves the end of a Read to a retransmitted packet of its response, if the requester
// asked for it again after the end of the first copy. What comes after the Reply was not needed any
// more. The first copy becomes an event of its own, with the number of bytes that were requested again.
func (x *txn) readDoneAt(o *rdma.Operation, at record.Stamp) {
	if x.state.hasReply() {
		return
	}
	for i := len(x.rec.Timeline) - 1; i >= 0 && len(x.rec.Timeline)-i <= recentEvents; i-- {
		e := &x.rec.Timeline[i]
		if e.Event != record.EventReadDone || e.Offset.Or(0) != record.Hex64(o.Offset) || e.Handle.Or(0) != record.Hex32(o.Handle) {
			continue
		}
		if !o.Last.Before(o.RequestedAgain()) {
			return
		}
		if first := *e; first.Packet == o.Last.Packet {
			first.Event, first.Bytes = record.EventReadAgain, record.Some(min(o.Again, o.Length))
			x.rec.move(e, at)
			insertEvent(x, i, first)
			return
		}
		x.rec.move(e, at)
		return
	}
}

// Changed reports that the network changed a segment of an operation.
func (cs *connState) Changed(o *rdma.Operation, at record.Stamp) {
	const text = "what this TCP segment carries is not what was sent, although its checksum is right: both were changed between the capture points"
	if o != nil {
		if x, _ := cs.table.tagged(o.Tag); x != nil {
			x.checker(at).report(rule.ChangedOnPath, text)
			return
		}
	}
	cs.report(violation{rule: rule.ChangedOnPath, where: rdma.Where{At: at}}, text)
}

// Refused records a NAK or Terminate: the refused operation was not executed, and neither were the
// operations after it.
func (cs *connState) Refused(r *rdma.Refusal) {
	if r.Op != nil {
		noteCopyInDoubt(cs, r.Op)
	}
	x, part := cs.refusedTxn(r)
	checkNotReady(cs, r, x, part)
	checkTooSmall(cs, r, x)
	of := record.EventWrite
	switch {
	case r.Op != nil:
		of = kindOf(r.Op, part)
	case r.Kind == rdma.Read:
		of = record.EventRead
	case r.Kind == rdma.Send:
		of = record.EventCall
	}
	if !r.Later {
		if r.Text != "" {
			reportRefusal(cs, r, x)
		}
		if x != nil {
			e := x.event(r.At, record.EventNak, x.role(r.By))
			e.Of, e.Reason = of, r.Reason
		}
	}
	if x == nil {
		return
	}
	if !r.Fatal {
		if r.At.Time-x.progress.active.Time < waitFrom { // otherwise the wait began with the refused packet
			x.progress.seen(r.At)
		}
		return
	}
	if o := r.Op; o != nil && o.Kind == rdma.Write && part < len(x.memory.Segments) {
		from := o.Offset
		if !r.Later {
			from += uint64(r.Taken)
		}
		x.memory.Unwrite(o.Handle, from, o.Offset+uint64(o.Length))
	}
	refusesReply := part == partReply || r.Op == nil && x.side == r.By // its memory was refused, and its Reply came afterwards
	if refusesReply && !x.checks.guessed && x.state.hasReply() && x.rec.Status != record.NoReply {
		x.checker(r.At).reportUnconditionally(rule.ReplyNotDelivered, "the %s cannot have received the Reply in packet %s: it rejected that Reply or an earlier packet (%s), and discards everything from there on", cs.link.Setup().End(r.By), record.PacketText(x.answer.LastPacket), r.Text)
		x.retractReply(retracted)
		noteLostCall(cs, x)
	}
}

// where returns the packet, the XID and the id for a finding about a transaction.
func (x *txn) where(at record.Stamp) rdma.Where {
	return rdma.Where{At: at, XID: record.Some(uint32(x.rec.XID)), Transaction: x.rec.ID}
}

// reportRefusal reports a NAK or Terminate.
func reportRefusal(cs *connState, r *rdma.Refusal, x *txn) {
	broken := rule.RemoteErrorNak
	if cs.link.Setup().IWARP {
		broken = rule.Terminate
	}
	where, text := rdma.Where{At: r.At}, r.Text
	if refusesInvalid(cs, r) {
		where.AtFault = record.Some(r.By.Other())
		text += fmt.Sprintf("; the %s used handle 0x%08x, which was invalidated before and has not been exposed since", cs.link.Setup().End(r.By.Other()), r.Handle.Or(0))
	}
	if x != nil {
		c := x.checker(r.At)
		c.atFault = where.AtFault
		c.reportUnconditionally(broken, "%s", text)
		return
	}
	cs.report(violation{rule: broken, where: where}, "%s", text)
}

// refusedTxn returns the transaction that a refusal is about, or nil if it is unknown.
func (cs *connState) refusedTxn(r *rdma.Refusal) (x *txn, part int) {
	if r.Op != nil {
		if x, part = cs.table.tagged(r.Op.Tag); x != nil || !cs.link.Setup().IWARP {
			return x, part
		}
	}
	handle, named := r.Handle.Get()
	if named {
		if s, _ := cs.exposed[r.By].Find(target{Handle: handle, Offset: r.Offset, Length: r.Length}); s != nil {
			return s.Owner, int(s.Number)
		}
		// The memory of a transaction is no longer exposed after its Reply.
		n := 0
		for x := cs.finished.last; x != nil && n < lookAt; x, n = x.prev, n+1 {
			if x.side == r.By && x.memory.Exposes(handle) {
				return x, partRecent
			}
		}
	}
	if only := cs.open[r.By.Other()].only(); r.Kind == rdma.Send && only != nil && cs.link.Setup().IWARP { // a NAK names its request
		return only, partCall
	}
	return nil, 0
}

// partRecent is some segment of a transaction that has its Reply.
const partRecent = 1<<partBits - 3

// retractReply makes x a transaction whose Reply was not delivered. The timeline keeps the Reply.
func (x *txn) retractReply(to state) {
	r := &x.rec
	if r.Status = record.NoReply; r.Call == nil {
		r.Status = record.NoCall
		return
	}
	x.enter(to)
	x.invalidation, x.latency, x.latencyMin, x.minPacket = record.Opt[record.Invalidation]{}, record.Opt[int64]{}, record.Opt[int64]{}, 0
	x.rpcStatus, x.nfsStatus, x.rdmaError = record.Opt[string]{}, record.Opt[string]{}, record.Opt[string]{}
	x.rdmaErrorRange = record.Opt[record.VersionRange]{}
}
