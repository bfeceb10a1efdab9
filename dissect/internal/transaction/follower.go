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
type follower struct {
	table *Table

	upper     string // "" while nobody knows
	undecided bool   // the upper layer is to be found out from the Sends
	isRPC     bool
	nfs4      bool  // NFSv4 was seen on it
	shaken    bool  // something was sent again, or refused, that the capture has cut
	strangers int32 // Sends that were no RPC-over-RDMA, while undecided

	private        [2]*record.PrivateData // by side; nil for nothing usable
	told           [2]bool                // it is in the capture, whole
	invalidateTold bool                   // that it invalidates without leave was reported

	open         [2]openCalls          // by side of the caller
	calls        list                  // the same, by age
	settled      list                  // those that have ended, and may still change
	unclear      [2]int32              // open Calls whose lists are not known to their end
	exposed      [2]exposure           // memory, by side of its owner
	requested    [2]record.Opt[uint32] // credits, by side of the caller
	granted      [2]record.Opt[uint32]
	peak         [2]int32
	traffic      *traffic // nil before its first RPC
	seldom       *seldom  // nil where there is nothing of that
	transactions int64
	judged       judged
	pending      []pending // findings that wait until they are proved
	halfRead     [2]bool   // a message of a side was not captured up to its XID
	doubted      int64     // number of the Send at hand, if it cannot be trusted; else 0
	conn         *rdma.Conn
}

// traffic is who is at what, as far as others may have to wait for it.
type traffic struct {
	busy   [2]busy   // what each side is sending
	credit [2]credit // by side of the caller
}

// onWire is its traffic.
func (f *follower) onWire() *traffic {
	if f.traffic == nil { // written to before it is read, as all that floods make
		f.traffic = &traffic{busy: [2]busy{{txn: noTxn}, {txn: noTxn}}}
	}
	return f.traffic
}

// seldom is what few connections have.
type seldom struct {
	keepers   queue.Queue[rdma.Tag] // transactions that hold chunk data
	died      int64                 // Calls that had no Reply when it ended
	diedXIDs  []record.Hex32
	errors    [2]*recent // XIDs of the RDMA_ERRORs that a side sent, nil when it sent none
	refused   [2]uint64  // number of a Send that was refused before it was whole
	refusedAt [2]record.Stamp
	early     []rdma.Where // backward Calls that came before it was clear whether they might
	unmatched [2]*recent   // by side of the caller: XIDs of Replies whose Calls were not captured before them
}

// rare is its seldom, to be added to.
func (f *follower) rare() *seldom {
	if f.seldom == nil {
		f.seldom = new(seldom)
	}
	return f.seldom
}

// replyFirst notes a Reply to a side whose Call was not captured before it.
func (f *follower) replyFirst(side rdma.Side, xid uint32) {
	s := f.rare()
	if s.unmatched[side] == nil {
		s.unmatched[side] = new(recent)
	}
	s.unmatched[side].add(xid)
}

// dies notes that a Call got no Reply for good, for the connection's record.
func (f *follower) dies(x *txn) {
	if !f.conn.Wanted() {
		return
	}
	s := f.rare()
	if s.died++; len(s.diedXIDs) < maxDied {
		s.diedXIDs = append(s.diedXIDs, x.rec.XID)
	}
}

// maxDied bounds how many XIDs are listed of Calls that died with a connection.
const maxDied = 32

// list is transactions by age.
type list struct{ first, last *txn }

func (f *follower) link(l *list, x *txn) {
	x.prev, x.next = l.last, nil
	if l.last != nil {
		l.last.next = x
	} else {
		l.first = x
	}
	l.last = x
}

func (f *follower) unlink(l *list, x *txn) {
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
	return &follower{table: t, conn: c, undecided: true}
}

// ServerPort says whether a port is one that is served.
func (t *Table) ServerPort(port uint16) bool { return serviceUpperLayers[port] != "" }

// is settles which upper layer a connection carries.
func (f *follower) is(upper string) {
	f.upper = upper
	f.isRPC, f.undecided = upper == upperRPC, upper == ""
	f.conn.WantSends(f.isRPC || f.undecided)
}

// lookUpService decides the upper layer by the service ID: by its port, or as the connected mode of IP
// over InfiniBand.
func (f *follower) lookUpService() {
	if id, known := f.conn.ServiceID().Get(); known && f.upper == "" && f.undecided && rocev2.IsIPoIB(uint64(id)) {
		f.is("ipoib")
	}
	if port, known := f.conn.Service(); known && f.upper == "" && f.undecided {
		if upper := serviceUpperLayers[port]; upper != "" {
			f.is(upper)
		}
	}
}

// Private notes what a side says of itself (RFC 8797).
func (f *follower) Private(s rdma.Side, data []byte, at record.Stamp) {
	f.lookUpService()
	f.told[s] = true
	found, ok, err := rpcrdma.FindPrivateData(data)
	switch {
	case ok:
		f.private[s] = &record.PrivateData{
			Offset: found.Offset, Version: found.Version, RemoteInvalidation: found.RemoteInvalidation, SendSize: found.SendSize, ReceiveSize: found.ReceiveSize,
		}
		f.checkPrivate(s, found, at)
		if f.upper == "" {
			f.is(upperRPC)
		}
	case err != nil:
		f.report(violation{rule: rule.PrivateDataUnusable, where: rdma.Where{At: at, Blames: record.Some(s)}}, "%v; the default inline thresholds apply", err)
	}
}

// direction is that of Calls sent by a side.
func (f *follower) direction(s rdma.Side) record.Direction {
	if client, known := f.conn.Client(); known && s != client {
		return record.Backward
	}
	return record.Forward
}

// thresholds are the inline thresholds in force.
func (f *follower) thresholds() record.InlineThresholds {
	client, _ := f.conn.Client()
	t := record.InlineThresholds{ClientToServer: f.limit(client), ServerToClient: f.limit(client.Other()), Source: "private_data"}
	if f.stated(0) == nil || f.stated(1) == nil {
		t.Source = "default"
	}
	return t
}

// negotiated says that the handshake is in the capture, private data and all:
// only then is it known what was agreed to.
func (f *follower) negotiated() bool {
	return f.conn.Handshake() && f.told[0] && f.told[1] && !f.conn.Hearsay(0) && !f.conn.Hearsay(1)
}

// stated is what a side said of itself, nil where nobody knows of anything.
func (f *follower) stated(s rdma.Side) *record.PrivateData {
	if f.conn.Hearsay(s) {
		return nil
	}
	return f.private[s]
}

// remoteInvalidation says whether both sides agreed to it.
func (f *follower) remoteInvalidation() record.Opt[bool] {
	if !f.negotiated() {
		return record.Opt[bool]{}
	}
	return record.Some(f.invalidates(0) && f.invalidates(1))
}

// invalidates says whether a side stated that it supports remote invalidation.
func (f *follower) invalidates(s rdma.Side) bool {
	p := f.stated(s)
	return p != nil && p.RemoteInvalidation
}

// Knows says whether a Call with this XID is open, or this is exposed memory.
func (f *follower) Knows(s rdma.Side, k rdma.Kind, xidOrHandle uint32, offset uint64, length uint32) bool {
	if k == rdma.Send {
		return f.isRPC && f.open[s][xidOrHandle] != nil
	}
	x, exact := f.exposed[s].find(target{xidOrHandle, offset, length})
	return x != nil && exact
}

// Whose is the tag of what exposes memory.
func (f *follower) Whose(s rdma.Side, handle uint32, offset uint64) rdma.Tag {
	if x, exact := f.exposed[s].find(target{handle, offset, 0}); x != nil && exact {
		return x.txn.tag(int(x.number))
	}
	return 0
}

// Join takes over what another follower had, whose side from is now to.
func (f *follower) Join(other rdma.Follower, from, to rdma.Side) {
	o := other.(*follower)
	moved := func(s rdma.Side) rdma.Side {
		if s == from {
			return to
		}
		return to.Other()
	}
	for _, l := range []struct{ from, to *list }{{&o.calls, &f.calls}, {&o.settled, &f.settled}} {
		for x := l.from.first; x != nil; {
			next := x.next
			x.follower, x.side = f, moved(x.side)
			f.link(l.to, x)
			x = next
		}
	}
	for s := range rdma.Side(2) {
		at := moved(s)
		for _, x := range o.open[s] {
			f.open[at].add(x)
		}
		f.exposed[at].join(&o.exposed[s])
		f.unclear[at] += o.unclear[s]
		f.requested[at], f.granted[at] = either(f.requested[at], o.requested[s]), either(f.granted[at], o.granted[s])
		f.peak[at] = max(f.peak[at], o.peak[s])
		f.told[at], f.halfRead[at] = f.told[at] || o.told[s], f.halfRead[at] || o.halfRead[s]
		f.private[at] = cmp.Or(f.private[at], o.private[s])
	}
	f.judged.join(&o.judged, moved)
	if from := o.seldom; from != nil {
		to := f.rare()
		for ; from.keepers.Len() > 0; from.keepers.Pop() {
			to.keepers.Push(from.keepers.First())
		}
		for s := range rdma.Side(2) {
			to.errors[moved(s)] = cmp.Or(to.errors[moved(s)], from.errors[s])
		}
	}
	f.transactions += o.transactions
	for _, p := range o.pending {
		p.next = moved(p.next)
		if side, known := p.where.Blames.Get(); known {
			p.where.Blames = record.Some(moved(side))
		}
		f.pending = append(f.pending, p)
	}
	f.shaken, f.invalidateTold = f.shaken || o.shaken, f.invalidateTold || o.invalidateTold
	f.nfs4 = f.nfs4 || o.nfs4
	f.strangers += o.strangers
	if o.isRPC && !f.isRPC {
		f.is(upperRPC)
	} else if f.upper == "" && o.upper != "" {
		f.is(o.upper)
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
func (f *follower) Closing(record.Stamp) {
	for x := f.calls.first; x != nil; x = x.next {
		f.table.remember(x)
	}
	for x := f.settled.first; x != nil; x = x.next {
		if x.awaits && f.conn.Acknowledges(x.side.Other()) { // its Reply may never arrive
			f.table.remember(x)
		}
	}
}

// Closed ends all Calls that have no Reply, oldest first.
func (f *follower) Closed(at record.Stamp) {
	f.decide(0, atEnd)
	f.checkLost()
	for f.calls.first != nil {
		f.dies(f.calls.first)
		f.unanswered(f.calls.first, at)
		f.table.end(f.calls.first, record.NoReply)
	}
}

// Finish hands out the transactions of the connection, and fills in what the
// record says of RPC.
func (f *follower) Finish(r *record.Connection) {
	for f.settled.first != nil {
		f.table.emit(f.settled.first)
	}
	if r == nil {
		return
	}
	side, _ := f.conn.Client()
	r.PrivateData = record.PrivateDataPair{Client: f.stated(side), Server: f.stated(side.Other())}
	r.InlineThreshold = f.thresholds()
	r.RemoteInvalidation = f.remoteInvalidation()
	f.lookUpService()
	r.UpperLayer = cmp.Or(f.upper, upperUnknown)
	r.Transactions = f.transactions
	if end, ended := r.Ended.Get(); ended && f.seldom != nil {
		end.OutstandingCalls, end.XIDs = f.seldom.died, f.seldom.diedXIDs
		r.Ended = record.Some(end)
	}
	r.Invalidation = f.judged.style.result()
	r.Credits = record.CreditPair{Forward: f.credits(side), Backward: f.credits(side.Other())}
}

// credits are those of a side's Calls.
func (f *follower) credits(s rdma.Side) record.Credits {
	return record.Credits{Requested: f.requested[s], Granted: f.granted[s], PeakInFlight: int(f.peak[s])}
}

// Evict lets go of the oldest of a kind.
func (f *follower) Evict(k budget.Kind) bool {
	switch k {
	case budget.ChunkData:
		for s := f.seldom; s != nil && s.keepers.Len() > 0; {
			x, _ := f.table.tagged(s.keepers.First())
			s.keepers.Pop()
			if x != nil && x.kept > 0 {
				x.dropData()
				return true
			}
		}
	case budget.Calls:
		if f.settled.first == nil && f.calls.first != nil {
			f.table.end(f.calls.first, record.NoReply)
		}
		if f.settled.first != nil {
			f.conn.Decide()
			f.table.emit(f.settled.first)
			return true
		}
	}
	return false
}

// Speaks says what a connection carries, for who describes packets.
func Speaks(c *rdma.Conn) (rpc, nfs4 bool) {
	f, ok := c.Follower().(*follower)
	if !ok {
		return false, false
	}
	return f.isRPC, f.nfs4
}
