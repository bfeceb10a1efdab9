package transaction

import (
	"cmp"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/queue"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/rocev2"
)

// serviceUpperLayers tells an upper layer by the TCP-space port of its service
// ID (IANA's service names).
var serviceUpperLayers = map[uint16]string{20049: upperRPC, 4420: "nvme", 3260: "iser", 5445: "smbdirect", 445: "smbdirect"}

const (
	upperRPC     = "rpcrdma"
	upperUnknown = "unknown"
)

// follower is what RPC made of one connection.
type connState struct {
	table *Table

	upper               string // "" while nobody knows
	undecided           bool   // the upper layer is to be found out from the Sends
	isRPC               bool
	nfs4                bool  // NFSv4 was seen on it
	truncatedRetransmit bool  // something was sent again, or refused, that the capture has cut
	nonRPCSends         int32 // Sends that were no RPC-over-RDMA, while undecided

	private              [2]*record.PrivateData // by side; nil for nothing usable
	privateDataSeen      [2]bool                // it is in the capture, whole
	invalidationReported bool                   // that it invalidates without leave was reported

	open            [2]openCalls          // by side of the caller
	calls           list                  // the same, by age
	finished        list                  // those that have ended, and may still change
	incompleteLists [2]int32              // open Calls whose lists are not known to their end
	exposed         [2]exposure           // memory, by side of its owner
	requested       [2]record.Opt[uint32] // credits, by side of the caller
	granted         [2]record.Opt[uint32]
	peak            [2]int32
	wire            *wireActivity // nil before its first RPC
	rareState       *rareState    // nil where there is nothing of that
	transactions    int64
	checks          connChecks
	pending         []pending // findings that wait until they are proved
	halfRead        [2]bool   // a message of a side was not captured up to its XID
	unverifiedSend  int64     // number of the Send at hand, if it cannot be trusted; else 0
	conn            *rdma.Conn
}

// traffic is who is at what, as far as others may have to wait for it.
type wireActivity struct {
	busy   [2]busy   // what each side is sending
	credit [2]credit // by side of the caller
}

// onWire is its traffic.
func (cs *connState) wireActivity() *wireActivity {
	if cs.wire == nil { // written to before it is read, as all that floods make
		cs.wire = &wireActivity{busy: [2]busy{{txn: noTxn}, {txn: noTxn}}}
	}
	return cs.wire
}

// seldom is what few connections have.
type rareState struct {
	txnsWithChunkData    queue.Queue[rdma.Tag] // transactions that hold chunk data
	lostCalls            int64                 // Calls that had no Reply when it ended
	lostXIDs             []record.Hex32
	errors               [2]*recent // XIDs of the RDMA_ERRORs that a side sent, nil when it sent none
	refused              [2]uint64  // number of a Send that was refused before it was whole
	refusedAt            [2]record.Stamp
	pendingBackwardCalls []rdma.Where // backward Calls that came before it was clear whether they might
	unmatched            [2]*recent   // by side of the caller: XIDs of Replies whose Calls were not captured before them
}

// rare is its seldom, to be added to.
func (cs *connState) rare() *rareState {
	if cs.rareState == nil {
		cs.rareState = new(rareState)
	}
	return cs.rareState
}

// replyFirst notes a Reply to a side whose Call was not captured before it.
func noteReplyBeforeCall(cs *connState, side rdma.Side, xid uint32) {
	s := cs.rare()
	if s.unmatched[side] == nil {
		s.unmatched[side] = new(recent)
	}
	s.unmatched[side].add(xid)
}

// dies notes that a Call got no Reply for good, for the connection's record.
func (cs *connState) noteLostCall(x *txn) {
	if !cs.conn.Wanted() {
		return
	}
	s := cs.rare()
	if s.lostCalls++; len(s.lostXIDs) < maxLostXIDs {
		s.lostXIDs = append(s.lostXIDs, x.rec.XID)
	}
}

// maxDied bounds how many XIDs are listed of Calls that died with a connection.
const maxLostXIDs = 32

// list is transactions by age.
type list struct{ first, last *txn }

func linkTxn(cs *connState, l *list, x *txn) {
	x.prev, x.next = l.last, nil
	if l.last != nil {
		l.last.next = x
	} else {
		l.first = x
	}
	l.last = x
}

func unlinkTxn(cs *connState, l *list, x *txn) {
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

// Follow returns the state of a new connection.
func (t *Table) Follow(c *rdma.Conn) rdma.Follower {
	return &connState{table: t, conn: c, undecided: true}
}

// ServerPort says whether a port is one that is served.
func (t *Table) ServerPort(port uint16) bool { return serviceUpperLayers[port] != "" }

// is settles which upper layer a connection carries.
func (cs *connState) setUpperLayer(upper string) {
	cs.upper = upper
	cs.isRPC, cs.undecided = upper == upperRPC, upper == ""
	cs.conn.WantSends(cs.isRPC || cs.undecided)
}

// lookUpService decides the upper layer by the service ID: by its port, or as the connected mode of IP
// over InfiniBand.
func (cs *connState) lookUpService() {
	if id, known := cs.conn.ServiceID().Get(); known && cs.upper == "" && cs.undecided && rocev2.IsIPoIB(uint64(id)) {
		cs.setUpperLayer("ipoib")
	}
	if port, known := cs.conn.Service(); known && cs.upper == "" && cs.undecided {
		if upper := serviceUpperLayers[port]; upper != "" {
			cs.setUpperLayer(upper)
		}
	}
}

// Private notes what a side says of itself (RFC 8797).
func (cs *connState) Private(s rdma.Side, data []byte, at record.Stamp) {
	cs.lookUpService()
	cs.privateDataSeen[s] = true
	found, ok, err := rpcrdma.FindPrivateData(data)
	switch {
	case ok:
		cs.private[s] = &record.PrivateData{
			Offset: found.Offset, Version: found.Version, RemoteInvalidation: found.RemoteInvalidation, SendSize: found.SendSize, ReceiveSize: found.ReceiveSize,
		}
		checkPrivate(cs, s, found, at)
		if cs.upper == "" {
			cs.setUpperLayer(upperRPC)
		}
	case err != nil:
		cs.report(violation{rule: rule.PrivateDataUnusable, where: rdma.Where{At: at, Blames: record.Some(s)}}, "%v; the default inline thresholds apply", err)
	}
}

// direction is that of Calls sent by a side.
func (cs *connState) direction(s rdma.Side) record.Direction {
	if client, known := cs.conn.Client(); known && s != client {
		return record.Backward
	}
	return record.Forward
}

// thresholds are the inline thresholds in force.
func thresholds(cs *connState) record.InlineThresholds {
	client, _ := cs.conn.Client()
	t := record.InlineThresholds{ClientToServer: inlineThreshold(cs, client), ServerToClient: inlineThreshold(cs, client.Other()), Source: "private_data"}
	if cs.stated(0) == nil || cs.stated(1) == nil {
		t.Source = "default"
	}
	return t
}

// negotiated says that the handshake is in the capture, private data and all:
// only then is it known what was agreed to.
func (cs *connState) negotiated() bool {
	return cs.conn.Handshake() && cs.privateDataSeen[0] && cs.privateDataSeen[1] && !cs.conn.Hearsay(0) && !cs.conn.Hearsay(1)
}

// stated is what a side said of itself, nil where nobody knows of anything.
func (cs *connState) stated(s rdma.Side) *record.PrivateData {
	if cs.conn.Hearsay(s) {
		return nil
	}
	return cs.private[s]
}

// remoteInvalidation says whether both sides agreed to it.
func remoteInvalidation(cs *connState) record.Opt[bool] {
	if !cs.negotiated() {
		return record.Opt[bool]{}
	}
	return record.Some(supportsInvalidation(cs, 0) && supportsInvalidation(cs, 1))
}

// invalidates says whether a side stated that it supports remote invalidation.
func supportsInvalidation(cs *connState, s rdma.Side) bool {
	p := cs.stated(s)
	return p != nil && p.RemoteInvalidation
}

// Knows says whether a Call with this XID is open, or this is exposed memory.
func (cs *connState) Knows(s rdma.Side, k rdma.Kind, xidOrHandle uint32, offset uint64, length uint32) bool {
	if k == rdma.Send {
		return cs.isRPC && cs.open[s][xidOrHandle] != nil
	}
	x, exact := cs.exposed[s].find(target{xidOrHandle, offset, length})
	return x != nil && exact
}

// Whose is the tag of what exposes memory.
func (cs *connState) Whose(s rdma.Side, handle uint32, offset uint64) rdma.Tag {
	if x, exact := cs.exposed[s].find(target{handle, offset, 0}); x != nil && exact {
		return x.txn.tag(int(x.number))
	}
	return 0
}

// Join takes over what another follower had, whose side from is now to.
func (cs *connState) Join(other rdma.Follower, from, to rdma.Side) {
	o := other.(*connState)
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
			linkTxn(cs, l.to, x)
			x = next
		}
	}
	for s := range rdma.Side(2) {
		at := moved(s)
		for _, x := range o.open[s] {
			cs.open[at].add(x)
		}
		cs.exposed[at].join(&o.exposed[s])
		cs.incompleteLists[at] += o.incompleteLists[s]
		cs.requested[at], cs.granted[at] = either(cs.requested[at], o.requested[s]), either(cs.granted[at], o.granted[s])
		cs.peak[at] = max(cs.peak[at], o.peak[s])
		cs.privateDataSeen[at], cs.halfRead[at] = cs.privateDataSeen[at] || o.privateDataSeen[s], cs.halfRead[at] || o.halfRead[s]
		cs.private[at] = cmp.Or(cs.private[at], o.private[s])
	}
	cs.checks.join(&o.checks, moved)
	if from := o.rareState; from != nil {
		to := cs.rare()
		for ; from.txnsWithChunkData.Len() > 0; from.txnsWithChunkData.Pop() {
			to.txnsWithChunkData.Push(from.txnsWithChunkData.First())
		}
		for s := range rdma.Side(2) {
			to.errors[moved(s)] = cmp.Or(to.errors[moved(s)], from.errors[s])
		}
	}
	cs.transactions += o.transactions
	for _, p := range o.pending {
		p.next = moved(p.next)
		if side, known := p.where.Blames.Get(); known {
			p.where.Blames = record.Some(moved(side))
		}
		cs.pending = append(cs.pending, p)
	}
	cs.truncatedRetransmit, cs.invalidationReported = cs.truncatedRetransmit || o.truncatedRetransmit, cs.invalidationReported || o.invalidationReported
	cs.nfs4 = cs.nfs4 || o.nfs4
	cs.nonRPCSends += o.nonRPCSends
	if o.isRPC && !cs.isRPC {
		cs.setUpperLayer(upperRPC)
	} else if cs.upper == "" && o.upper != "" {
		cs.setUpperLayer(o.upper)
	}
}

func either[T any](a, b record.Opt[T]) record.Opt[T] {
	if a.Known() {
		return a
	}
	return b
}

// Closing remembers open Calls: they may be repeated on another connection before
// this one has come to its end.
func (cs *connState) Closing(record.Stamp) {
	for x := cs.calls.first; x != nil; x = x.next {
		cs.table.rememberUnanswered(x)
	}
	for x := cs.finished.first; x != nil; x = x.next {
		if x.awaitsDelivery && cs.conn.Acknowledges(x.side.Other()) { // its Reply may never arrive
			cs.table.rememberUnanswered(x)
		}
	}
}

// Closed ends all Calls that have no Reply, oldest first.
func (cs *connState) Closed(at record.Stamp) {
	cs.decide(0, atEnd)
	checkLost(cs)
	for cs.calls.first != nil {
		cs.noteLostCall(cs.calls.first)
		checkUnanswered(cs, cs.calls.first, at)
		cs.table.end(cs.calls.first, record.NoReply)
	}
}

// Finish hands out the transactions of the connection, and fills in what the
// record says of RPC.
func (cs *connState) Finish(r *record.Connection) {
	for cs.finished.first != nil {
		cs.table.emit(cs.finished.first)
	}
	if r == nil {
		return
	}
	side, _ := cs.conn.Client()
	r.PrivateData = record.PrivateDataPair{Client: cs.stated(side), Server: cs.stated(side.Other())}
	r.InlineThreshold = thresholds(cs)
	r.RemoteInvalidation = remoteInvalidation(cs)
	cs.lookUpService()
	r.UpperLayer = cmp.Or(cs.upper, upperUnknown)
	r.Transactions = cs.transactions
	if end, ended := r.Ended.Get(); ended && cs.rareState != nil {
		end.OutstandingCalls, end.XIDs = cs.rareState.lostCalls, cs.rareState.lostXIDs
		r.Ended = record.Some(end)
	}
	r.Invalidation = cs.checks.invalidation.result()
	r.Credits = record.CreditPair{Forward: creditsOf(cs, side), Backward: creditsOf(cs, side.Other())}
}

// credits are those of a side's Calls.
func creditsOf(cs *connState, s rdma.Side) record.Credits {
	return record.Credits{Requested: cs.requested[s], Granted: cs.granted[s], PeakInFlight: int(cs.peak[s])}
}

// Evict lets go of the oldest of a kind.
func (cs *connState) Evict(k budget.Kind) bool {
	switch k {
	case budget.ChunkData:
		for s := cs.rareState; s != nil && s.txnsWithChunkData.Len() > 0; {
			x, _ := cs.table.tagged(s.txnsWithChunkData.First())
			s.txnsWithChunkData.Pop()
			if x != nil && x.kept > 0 {
				x.dropData()
				return true
			}
		}
	case budget.Calls:
		if cs.finished.first == nil && cs.calls.first != nil {
			cs.table.end(cs.calls.first, record.NoReply)
		}
		if cs.finished.first != nil {
			cs.conn.Decide()
			cs.table.emit(cs.finished.first)
			return true
		}
	}
	return false
}

// Speaks says what a connection carries, for who describes packets.
func CarriesRPC(c *rdma.Conn) (rpc, nfs4 bool) {
	cs, ok := c.Follower().(*connState)
	if !ok {
		return false, false
	}
	return cs.isRPC, cs.nfs4
}
