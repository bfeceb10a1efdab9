package transaction

import (
	"hash/maphash"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// The end of a transaction: with its Reply, or without it when its connection ends, its XID is used
// again, or memory is short. Its record then waits for the packets that can still change it.

// maxSettling is the maximum number of ended transactions that wait for later packets.
const maxSettling = 1 << 12

// end ends a transaction. Its record is handed out when no later packet can change it.
func (t *Table) end(x *txn, status record.Status) {
	cs := x.cs
	x.rec.Status = status
	if x.state == outstanding {
		cs.open[x.side].remove(x)
		cs.calls.remove(x)
		if x.checks.credits.isDone {
			cs.checks.credits[x.side].End()
		}
		if x.checks.session.asks {
			cs.checks.asking--
		}
		if x.memory.Incomplete {
			cs.incompleteLists[x.side]--
		}
	}
	if x.answered != &noAnswer {
		x.enter(awaitingDelivery)
	} else {
		x.enter(unanswered)
	}
	t.longCall(x)
	t.files.end(x)
	x.memory.Hide(&cs.exposed[x.side])
	x.ended = t.Clock
	cs.finished.add(x)
	t.settling.Push(x)
	t.endTask(x, status)
}

// Expire hands out the transactions that have waited long enough.
func (t *Table) Expire() {
	t.expireTasks()
	if t.Clock <= t.due && t.settling.Len() < maxSettling {
		return
	}
	for t.settling.Len() > 0 {
		x := t.settling.First()
		if x.state != emitted {
			wait, since := t.options.Linger, x.ended
			if x.state.mayBeRetransmitted() {
				wait = max(wait, x.cs.link.Setup().ResponseWithin)
				since = min(max(since, x.cs.doubts.retransmittedAt[x.side.Other()]), since+longestUndecided)
			}
			if t.Clock-since <= wait && t.settling.Len() < maxSettling {
				t.due = x.ended + t.options.Linger
				return
			}
			if !x.cs.link.Setup().ID.Known() && t.settling.Len() < maxSettling {
				return
			}
			t.emit(x)
		}
		t.settling.Pop()
		t.release(x)
	}
}

// longestUndecided is the time by which the wait for the delivery of a Reply is extended at most
// while its sender retransmits: seven retransmissions, with a timer of 4 s.
const longestUndecided = record.Time(30e9)

// Drain hands out all transactions that have ended.
func (t *Table) Drain() {
	for ; t.settling.Len() > 0; t.settling.Pop() {
		x := t.settling.First()
		t.emit(x)
		t.release(x)
	}
}

// callKey identifies a Call across connections.
type callKey struct {
	hostPair
	xid uint32
}

// pastCall is a Call that got no Reply, or whose Reply was not acknowledged.
type pastCall struct {
	id         int64
	request    int64
	retryOf    int64
	attempt    int
	connection int
	chain      *chain
	form       callForm
	bytes      record.Opt[int]   // of the Send
	payload    record.Opt[int64] // bytes of the Payload stream
	procedure  procedure
	arguments  arguments
	earlier    earlier
}

// arguments identifies the captured arguments of a Call that follow its RPC header, or the part of them by which a server
// recognizes the RPC.
type arguments struct {
	known bool
	slot  bool // they are the session, and which use of which slot it is, which is unique
	bytes int
	sum   uint64
}

// argumentsOf returns the arguments of a Call that a retransmission has, too. A client encodes a Call anew when it retransmits
// it: protection by RPCSEC_GSS changes, and so may the data of a file, and what a COMPOUND says about the slots of its session.
// Which slot it uses, and how often the slot was used before, stays.
func (t *Table) argumentsOf(x *txn, m *message) arguments {
	if m.rpcErr != nil || !m.captured() || m.rpc.Credential.Flavor == oncrpc.AuthRPCSECGSS {
		return arguments{}
	}
	data, slot := m.payload[m.rpc.Length:], false
	if b := m.arguments; b != nil {
		data = b.message.SlotUse(b.bytes)
		if slot = data != nil; !slot && b.message.MinorVersion == 0 && x.wants.key.arguments != 0 { // in no session
			return arguments{true, false, len(t.tasks.same), x.wants.key.arguments}
		}
	}
	if data == nil || nfs.WritesData(m.rpc.Program, m.rpc.Version, m.rpc.Procedure) {
		return arguments{}
	}
	return arguments{true, slot, len(data), maphash.Bytes(t.seed, data)}
}

// differ reports whether the arguments cannot be those of one RPC: with other chunks, other parts of them follow the header.
func (a *arguments) differ(o *arguments) bool {
	return a.known && o.known && a.bytes == o.bytes && a.sum != o.sum
}

// same reports whether the arguments are known to be those of one RPC.
func (a *arguments) same(o *arguments) bool { return a.known && o.known && a.bytes > 0 && *a == *o }

// callForm is how a Call was sent. A retransmission on a new connection may have other chunks.
type callForm uint8

const (
	otherForm  callForm = iota // no RDMA_MSG and no RDMA_NOMSG, or a header that is not known
	inlineForm                 // the Send contains the whole Call, and there are no chunks
	chunkForm                  // the Call has chunks
)

// formOf returns the form of a Call with a header.
func formOf(h *rpcrdma.Header) callForm {
	switch {
	case !h.Understood() || h.Proc != rpcrdma.Msg && h.Proc != rpcrdma.NoMsg:
		return otherForm
	case len(h.Reads) > 0 || len(h.WriteEnds) > 0 || h.HasReply:
		return chunkForm
	}
	return inlineForm
}

// mayBe reports whether a Call may be a retransmission of the past one. Other RPCs may have its
// XID, because a client may number the RPCs of each connection anew, but a retransmission has the same procedure, the
// same arguments, a Payload stream of the same length, and without chunks a Send of the same length.
func (p *pastCall) mayBe(x *txn) bool {
	before, size := p.payload.Get()
	now, sized := x.call.PayloadBytes.Get()
	switch {
	case p.form == otherForm || x.form == otherForm || size && sized && before != now:
		return false
	case p.procedure.known && x.procedure.known && !p.procedure.equal(&x.procedure):
		return false
	case p.arguments.differ(&x.arguments):
		return false
	case p.form == inlineForm && x.form == inlineForm:
		return p.bytes == x.call.SendBytes
	}
	return p.procedure.known == x.procedure.known || size && sized
}

// maxUnanswered is the maximum number of unanswered Calls that are remembered.
const maxUnanswered = 1 << 14

func (x *txn) callKeyOf() callKey { return callKey{x.hosts(), uint32(x.rec.XID)} }

// past returns what is remembered of a Call.
func (x *txn) past() pastCall {
	k := &x.rec
	return pastCall{
		k.ID, k.Request, k.RetryOf, k.Attempt, x.cs.link.Setup().ID.Or(0), x.chain, x.form, x.call.SendBytes, x.call.PayloadBytes, x.procedure, x.arguments,
		soFar(x),
	}
}

// forgetCall forgets a Call whose record is handed out, or remembers it if its requester may send it again, because it has no Reply.
func (t *Table) forgetCall(x *txn) {
	if t.calls[x.callKey] != x {
		return
	}
	delete(t.calls, x.callKey)
	if x.rec.Status != record.NoReply {
		x.callKey.release()
		return
	}
	if len(t.unanswered) >= maxUnanswered {
		for k := range t.unanswered {
			k.release()
		}
		clear(t.unanswered)
	}
	if _, known := t.unanswered[x.callKey]; known {
		x.callKey.release()
	}
	t.unanswered[x.callKey] = x.past()
}

// findEarlier finds the earlier attempt of the request that a new Call is another attempt of, if there is one, and remembers the Call.
func (t *Table) findEarlier(x *txn) {
	k := x.callKeyOf()
	old := t.calls[k]
	x.callKey, t.calls[k] = k, x
	if old == nil {
		k.hold()
	}
	switch {
	case old != nil && old.mayComeAgain(x):
		before := old.past()
		if old.cs != x.cs {
			old.repeatedElsewhere = true
		}
		t.follow(x, &before)
		old.chain = x.chain
	case old == nil && len(t.unanswered) > 0:
		before, known := t.unanswered[k]
		if known && before.mayBe(x) && (x.cs.link.Setup().ID.Or(0) != before.connection || before.arguments.same(&x.arguments)) && before.identifies(x) {
			delete(t.unanswered, k)
			k.release()
			t.follow(x, &before)
		}
	}
}

// follow makes a Call another attempt of the request of an earlier one.
func (t *Table) follow(x *txn, before *pastCall) {
	r := &x.rec
	r.RetransmitOf, r.Request, r.Attempt, r.RetryOf = before.id, before.request, before.attempt+1, before.retryOf
	x.cs.messages.again++
	continueFrom(x, &before.earlier)
	t.anotherAttempt(x, before.chain, before)
}

// mayComeAgain reports whether a Call with the XID of an earlier one, whose record was not handed out, is another attempt of its request. After a
// Reply that was delivered, only the end of the connection makes a client send a Call again.
func (x *txn) mayComeAgain(again *txn) bool {
	before, same := x.past(), x.arguments.same(&again.arguments)
	switch {
	case x.rec.Status == record.RDMAError, !before.mayBe(again), !before.identifies(again):
		return false
	case x.state == accepted:
		return same && (x.arguments.slot || x.cs.closing)
	case x.state == awaitingDelivery:
		return same || x.cs.closing && x.cs != again.cs
	}
	return same || x.cs != again.cs
}

// identifies reports whether the XID identifies the request. Some servers begin at XID 0 on every connection, so that of callbacks the arguments
// have to be the same, too.
func (p *pastCall) identifies(x *txn) bool {
	callback := x.cs.direction(x.side) == record.Backward || p.procedure.known && nfs.IsCallback(p.procedure.program)
	return !callback || p.arguments.same(&x.arguments)
}
