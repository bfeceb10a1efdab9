package transaction

import (
	"cmp"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/credits"
	"github.com/rdmadump/rdmadump/dissect/internal/path"
	"github.com/rdmadump/rdmadump/dissect/internal/queue"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/internal/shares"
	"github.com/rdmadump/rdmadump/dissect/internal/upper"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// connState is the RPC state of one connection. It implements rdma.Follower. Each part knows how it becomes that of two
// connections that are one (join).
type connState struct {
	table *Table
	link  rdma.Link
	share *budget.Share // of the connection

	upper   upper.Recognizer
	closing bool // a side has begun to end the connection
	nfs4    bool // NFSv4 was seen on it

	agreed    negotiation // what the sides announced when they opened the connection
	doubts    doubts      // what was captured of messages, and cannot be trusted
	messages  messages    // when there were some
	granting  [2]granting // credits, by side of the caller
	checks    connChecks
	findings  []finding     // that wait until the capture proves them
	wire      *wireActivity // nil before its first RPC
	rareState *rareState    // nil until it is needed

	open            [2]openCalls // by side of the caller
	calls           list         // the same Calls by age
	finished        list         // ended transactions that may still receive an ACK, a NAK or a retransmission
	incompleteLists [2]int32     // number of open Calls whose chunk lists are not completely known
	exposed         [2]exposure  // memory, by side of its owner
}

// doubts are reasons not to trust, or not to miss, messages of a connection.
type doubts struct {
	truncatedRetransmit bool           // a truncated packet was retransmitted or refused, so the captured copy may not be the one that was delivered
	halfRead            [2]bool        // a message of a side was captured without its XID
	guessed             [2]bool        // of a message of a side it is not known whether it is a Call
	retransmittedAt     [2]record.Time // on the table's clock: the latest retransmission of a side
	unverifiedSend      int64          // number of the current Send if it cannot be verified, else 0
}

// notRead notes that messages of both sides may not have been read.
func (d *doubts) notRead(may bool) {
	d.halfRead = [2]bool{d.halfRead[0] || may, d.halfRead[1] || may}
}

// join merges the doubts of another connection; moved maps its sides to the sides of this connection.
func (d *doubts) join(o *doubts, moved func(rdma.Side) rdma.Side) {
	d.truncatedRetransmit = d.truncatedRetransmit || o.truncatedRetransmit
	for s := range rdma.Side(2) {
		at := moved(s)
		d.halfRead[at], d.guessed[at] = d.halfRead[at] || o.halfRead[s], d.guessed[at] || o.guessed[s]
		d.retransmittedAt[at] = max(d.retransmittedAt[at], o.retransmittedAt[s])
	}
}

// messages are the transactions of a connection, and the first and the latest of their messages.
type messages struct {
	transactions int64
	again        int64        // how many of these are not the first attempt of their request
	first, last  record.Stamp // the packet of the first one is 0 before there is one
}

// begins counts a transaction.
func (m *messages) begins() { m.transactions++ }

// note records the time of a Call or Reply.
func (m *messages) note(at record.Stamp) {
	if m.first.Packet == 0 {
		m.first = at
	}
	m.last = at
}

// join merges the messages of another connection.
func (m *messages) join(o *messages) {
	m.transactions, m.again = m.transactions+o.transactions, m.again+o.again
	if m.first.Packet == 0 || o.first.Packet != 0 && o.first.Time < m.first.Time {
		m.first = o.first
	}
	if m.last.Packet == 0 || o.last.Time > m.last.Time {
		m.last = o.last
	}
}

// granting are the credits of the Calls of a side.
type granting struct {
	requested, granted record.Opt[uint32]
	peak               credits.Peak
}

// request notes the credits that a Call requests, and grant those that a Reply grants.
func (g *granting) request(n uint32) { g.requested = record.Some(n) }
func (g *granting) grant(n uint32)   { g.granted = record.Some(n) }

// join merges the credits of another connection.
func (g *granting) join(o *granting) {
	g.requested, g.granted = either(g.requested, o.requested), either(g.granted, o.granted)
	g.peak.Join(o.peak)
}

// wireActivity records which transaction each side is transmitting, to attribute head-of-line
// waiting.
type wireActivity struct {
	busy   [2]busy          // by sending side
	credit [2]credit        // by side of the caller
	served [2]shares.Served // by sending side
	reads  [2]answeredReads // by side that reads
}

// wireActivity returns the activity of the connection, allocating it if needed.
func (cs *connState) wireActivity() *wireActivity {
	if cs.wire == nil { // the first access is a write, so that floods of connections do not fault each page twice
		cs.wire = &wireActivity{busy: [2]busy{{txn: noTxn}, {txn: noTxn}}}
	}
	return cs.wire
}

// rareState is allocated on first use, because most connections never need it.
type rareState struct {
	txnsWithChunkData    queue.Queue[rdma.Tag] // transactions that hold chunk data
	lostCalls            int64                 // Calls that were never answered
	notAccepted          int64                 // Calls of lostCalls whose Reply was not accepted
	lostXIDs             []record.Hex32
	errors               [2]*queue.Recent // XIDs of the RDMA_ERRORs that a side sent; nil if it sent none
	unowed               [2]unowed        // by sender
	told                 [2]versionsTold  // by side
	reusedXID            uint32           // XID that was reused while a Call with it was outstanding,
	reusedLeft           int              // and the number of these Calls that are not answered
	refused              [2]uint64        // Seq of a Send that was refused before it was complete
	refusedAt            [2]record.Stamp
	pendingBackwardCalls []backwardCall   // Calls of the server that wait for the Reply to CREATE_SESSION
	short                [2]*shortMessage // by sender; nil if it sent none
	repeated             [2]*queue.Recent // by side of the caller: XIDs of Calls that were retransmitted while they were outstanding
	unmatched            [2]*queue.Recent // by side of the caller: XIDs of Replies whose Calls were not captured before them
}

// rare returns the rare state of the connection, allocating it if needed.
func (cs *connState) rare() *rareState {
	if cs.rareState == nil {
		cs.rareState = new(rareState)
	}
	return cs.rareState
}

// noteReplyBeforeCall records a Reply to a side whose Call was not captured before it.
func noteReplyBeforeCall(cs *connState, side rdma.Side, xid uint32) {
	if !wasRepeated(cs, side, xid) {
		noteXID(&cs.rare().unmatched[side], xid)
	}
}

// noteLostCall records in the connection's record that a Call was never answered, or that its Reply was not accepted.
func noteLostCall(cs *connState, x *txn) {
	if !cs.table.options.Connections {
		return
	}
	s := cs.rare()
	if s.lostCalls++; len(s.lostXIDs) < maxLostXIDs {
		s.lostXIDs = append(s.lostXIDs, x.rec.XID)
	}
	if x.state == lost || x.state == retracted {
		s.notAccepted++
	}
}

// maxLostXIDs is the maximum number of XIDs that are listed for a connection.
const maxLostXIDs = 32

// list is a list of transactions by age.
type list struct{ first, last *txn }

// add appends the youngest transaction.
func (l *list) add(x *txn) {
	x.prev, x.next = l.last, nil
	if l.last != nil {
		l.last.next = x
	} else {
		l.first = x
	}
	l.last = x
}

// remove removes a transaction of the list.
func (l *list) remove(x *txn) {
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		l.first = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	} else {
		l.last = x.prev
	}
	x.prev, x.next = nil, nil
}

// Follow returns the state of a new connection, whose tag is its place in the table.
func (t *Table) Follow(l rdma.Link, share *budget.Share) rdma.Follower {
	cs := &connState{table: t, link: l, share: share, upper: t.protocols.New()}
	if n := len(t.freeConns); n > 0 {
		l.SetTag(t.freeConns[n-1])
		t.freeConns = t.freeConns[:n-1]
		t.conns[l.Tag()-1] = cs
	} else {
		t.conns = append(t.conns, cs)
		l.SetTag(rdma.Tag(len(t.conns)))
	}
	return cs
}

// forget removes the state of a connection from the table.
func (t *Table) forget(l rdma.Link) {
	t.conns[l.Tag()-1] = nil
	t.freeConns = append(t.freeConns, l.Tag())
	l.SetTag(0)
}

// stateOf returns the state of a connection, nil if it is forgotten.
func (t *Table) stateOf(l rdma.Link) *connState {
	if l.Tag() == 0 {
		return nil
	}
	return t.conns[l.Tag()-1]
}

// ServerPort reports whether a port belongs to a known upper layer.
func (t *Table) ServerPort(port uint16) bool { return upper.ServerPort(port) }

// recognized has the bytes of Sends collected as long as they are needed, after the protocol was recognized, or the search
// for it is over.
func (cs *connState) recognized() { cs.link.WantSends(cs.upper.IsRPC() || cs.upper.Searches()) }

// lookUpService recognizes the protocol by its service, if that is known by now.
func (cs *connState) lookUpService() {
	if !cs.upper.Searches() {
		return
	}
	if setup := cs.link.Setup(); cs.upper.Service(setup.RPC, setup.Service.Or(0), setup.ServiceID) {
		cs.recognized()
	}
}

// direction returns the direction of the Calls of a side.
func (cs *connState) direction(s rdma.Side) record.Direction {
	if client, known := cs.link.Setup().Client.Get(); known && s != client {
		return record.Backward
	}
	return record.Forward
}

// Owner returns the tag of the outstanding Call with an XID, or of the segment that exposes memory.
func (cs *connState) Owner(s rdma.Side, n rdma.Name) rdma.Tag {
	if n.Kind == rdma.Send {
		if x := cs.open[s][n.Handle]; x != nil && cs.upper.IsRPC() {
			return x.tag(partCall)
		}
		return 0
	}
	if x, exact := cs.exposed[s].Find(target{Handle: n.Handle, Offset: n.Offset, Length: n.Length}); x != nil && exact {
		return x.Owner.tag(int(x.Number))
	}
	return 0
}

// Join merges the state of another connection, whose side from becomes side to.
func (cs *connState) Join(old rdma.Link, from, to rdma.Side) {
	o := cs.table.stateOf(old)
	cs.table.forget(old)
	moved := func(s rdma.Side) rdma.Side {
		if s == from {
			return to
		}
		return to.Other()
	}
	for _, l := range []struct{ from, to *list }{{&o.calls, &cs.calls}, {&o.finished, &cs.finished}} {
		for x := l.from.first; x != nil; {
			next := x.next
			x.cs, x.side = cs, moved(x.side)
			if again := &x.rec.Retransmitted; from != to {
				again[0], again[1] = again[1], again[0]
			}
			x.signals = path.Counts{} // of one direction, which are not comparable with those of both
			l.to.add(x)
			x = next
		}
	}
	for s := range rdma.Side(2) {
		at := moved(s)
		if cs.answeredFirst(at, o.open[s]) || o.answeredFirst(s, cs.open[at]) {
			cs.link.Disorder()
		}
		for _, x := range o.open[s] {
			cs.open[at].add(x)
		}
		cs.exposed[at].Join(&o.exposed[s])
		cs.incompleteLists[at] += o.incompleteLists[s]
		cs.granting[at].join(&o.granting[s])
	}
	cs.agreed.join(&o.agreed, moved)
	cs.doubts.join(&o.doubts, moved)
	cs.messages.join(&o.messages)
	cs.checks.join(&o.checks, moved)
	if o.rareState != nil {
		cs.rare().join(o.rareState, moved)
	}
	if o.wire != nil {
		cs.wireActivity().join(o.wire, moved)
	}
	cs.closing = cs.closing || o.closing
	for _, f := range o.findings {
		f.next = moved(f.next)
		if side, known := f.where.AtFault.Get(); known {
			f.where.AtFault = record.Some(moved(side))
		}
		cs.findings = append(cs.findings, f)
	}
	cs.nfs4 = cs.nfs4 || o.nfs4
	if cs.upper.Join(&o.upper) {
		cs.recognized()
	}
}

// answeredFirst reports whether a Reply to one of the Calls of a side was captured before the Call.
func (cs *connState) answeredFirst(s rdma.Side, calls openCalls) bool {
	for xid := range calls {
		if cs.answered(s, xid) {
			return true
		}
	}
	return false
}

// answered reports whether a message of the other side with an XID seemed to answer a Call of a side that the capture does
// not have before it.
func (cs *connState) answered(s rdma.Side, xid uint32) bool {
	return cs.rareState != nil && cs.rareState.unmatched[s].Has(xid)
}

// join merges the state of another connection; moved maps its sides to the sides of this connection.
func (s *rareState) join(o *rareState, moved func(rdma.Side) rdma.Side) {
	for ; o.txnsWithChunkData.Len() > 0; o.txnsWithChunkData.Pop() {
		s.txnsWithChunkData.Push(o.txnsWithChunkData.First())
	}
	for from := range rdma.Side(2) {
		at := moved(from)
		s.errors[at] = cmp.Or(s.errors[at], o.errors[from])
		s.repeated[at] = cmp.Or(s.repeated[at], o.repeated[from])
		s.unmatched[at] = cmp.Or(s.unmatched[at], o.unmatched[from])
		s.short[at] = cmp.Or(s.short[at], o.short[from])
		s.told[at] = cmp.Or(s.told[at], o.told[from])
		s.unowed[at] = cmp.Or(s.unowed[at], o.unowed[from])
		if s.refused[at] == 0 {
			s.refused[at], s.refusedAt[at] = o.refused[from], o.refusedAt[from]
		}
	}
	for _, b := range o.pendingBackwardCalls {
		if side, known := b.where.AtFault.Get(); known {
			b.where.AtFault = record.Some(moved(side))
		}
		s.pendingBackwardCalls = append(s.pendingBackwardCalls, b)
	}
	s.reusedXID, s.reusedLeft = cmp.Or(s.reusedXID, o.reusedXID), cmp.Or(s.reusedLeft, o.reusedLeft)
	s.lostCalls += o.lostCalls
	s.notAccepted += o.notAccepted
	s.lostXIDs = append(s.lostXIDs, o.lostXIDs...)
}

// join merges the activity of another connection. Of each side, the latest activity counts.
func (w *wireActivity) join(o *wireActivity, moved func(rdma.Side) rdma.Side) {
	for from := range rdma.Side(2) {
		at := moved(from)
		if w.busy[at].last.Before(o.busy[from].last) {
			w.busy[at] = o.busy[from]
		}
		w.credit[at].join(&o.credit[from])
		if w.served[at].At < o.served[from].At {
			w.served[at] = o.served[from]
		}
		if w.reads[at].latest.at.Before(o.reads[from].latest.at) {
			w.reads[at] = o.reads[from]
		}
	}
}

func either[T any](a, b record.Opt[T]) record.Opt[T] {
	if a.Known() {
		return a
	}
	return b
}

// Closing notes that the connection is about to end.
func (cs *connState) Closing() { cs.closing = true }

// Closed ends all Calls without Reply, oldest first.
func (cs *connState) Closed(at record.Stamp, how *rdma.Ending) {
	cs.settle(everything, nil)
	checkShortMessages(cs, at, how)
	checkLost(cs, how)
	for cs.calls.first != nil {
		noteLostCall(cs, cs.calls.first)
		checkUnanswered(cs, cs.calls.first, at, how)
		cs.table.end(cs.calls.first, record.NoReply)
	}
	cs.settle(everything, nil) // what the end itself has shown does not wait, either
}

// Finish hands out the transactions of the connection, and fills in the RPC part of its record.
func (cs *connState) Finish(r *record.Connection) {
	for cs.finished.first != nil {
		cs.table.emit(cs.finished.first)
	}
	if at := cs.place(); at.Refuted.Known() {
		cs.table.refute(at)
	}
	cs.table.forget(cs.link)
	if r != nil {
		cs.Describe(r)
	}
}

// Describe fills in the part of a connection's record that is about RPCs.
func (cs *connState) Describe(r *record.Connection) {
	side := cs.link.Setup().Opener()
	cs.lookUpService()
	rejected := r.Ended.Or(record.Ended{}).How == record.EndRejected
	if cs.upper.Is(upper.RPCRDMA) {
		r.PrivateData = record.PrivateDataPair{Client: cs.stated(side), Server: cs.stated(side.Other())}
	}
	if cs.upper.Is(upper.RPCRDMA) && !rejected { // otherwise nothing applies
		r.InlineThreshold, r.RemoteInvalidation = record.Some(thresholds(cs)), remoteInvalidation(cs)
		r.Invalidation = record.Some(cs.checks.invalidation.result())
	}
	if cs.upper.IsRPC() && !rejected {
		r.Credits = record.Some(record.CreditPair{Forward: creditsOf(cs, side, r.EndOfCalls()), Backward: creditsOf(cs, side.Other(), r.EndOfCalls())})
	}
	if at := cs.place(); at.How.Known() {
		r.Path.Point.At, r.Path.Point.How, r.Path.Point.Refuted = at.At, at.How, at.Refuted
	} else if cs.link.SeveralPoints() {
		r.Path.Point.At, r.Path.Point.How = record.Some(record.AtBothEnds), record.Some("both_ends")
		r.Path.Point.NotAt = []record.End{} // Packets of a side come late to the point at the other one.
	}
	r.UpperLayer = cs.upper.Name()
	r.Transactions, r.RPCs = cs.messages.transactions, cs.messages.transactions-cs.messages.again
	if end, ended := r.Ended.Get(); ended && cs.rareState != nil {
		end.OutstandingCalls, end.NotAccepted, end.XIDs = cs.rareState.lostCalls, cs.rareState.notAccepted, cs.rareState.lostXIDs
		r.Ended = record.Some(end)
	}
}

// creditsOf returns the credits of a side's Calls; end is the time until which Calls without a Reply are outstanding.
func creditsOf(cs *connState, s rdma.Side, end record.Time) record.Credits {
	g := &cs.granting[s]
	peak, proven := g.peak.Proven()
	proven = proven && showsCalls(cs, s)
	var usage record.Opt[record.CreditUsage]
	if proven && cs.wire != nil && g.granted.Known() {
		usage = record.Some(cs.wire.credit[s].usage.At(end))
	}
	return record.Credits{Requested: g.requested, Granted: g.granted, PeakInFlight: record.SomeIf(peak, proven), Usage: usage}
}

// Evict frees the oldest state of a kind, and reports whether there was any.
func (cs *connState) Evict(k budget.Kind) bool {
	switch k {
	case budget.ChunkData:
		for s := cs.rareState; s != nil && s.txnsWithChunkData.Len() > 0; {
			x, _ := cs.table.tagged(s.txnsWithChunkData.First())
			s.txnsWithChunkData.Pop()
			if x == nil {
				continue
			}
			if bytes := x.memory.Drop(); bytes > 0 {
				x.charge(-bytes)
				return true
			}
		}
	case budget.Calls:
		if cs.finished.first == nil && cs.calls.first != nil {
			cs.table.end(cs.calls.first, record.NoReply)
		}
		if cs.finished.first != nil {
			cs.table.emit(cs.finished.first)
			return true
		}
	}
	return false
}

// CarriesRPC reports whether a connection carries RPC, over RDMA or not, and whether it carries NFSv4.
func (t *Table) CarriesRPC(l rdma.Link) (rpc, nfs4 bool) {
	if cs := t.stateOf(l); cs != nil {
		return cs.upper.IsRPC(), cs.nfs4
	}
	return false, false
}
