package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/queue"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// connections contains all connections, from the first packet of each until it is
// forgotten. join.go has the part that finds the connection of a packet.
type connections struct {
	tracker    *Tracker
	handshakes *handshakes
	tcp        *tcpStreams
	operations *operations
	contents   *contents

	hosts  hosts
	routes routes
	queues map[queueKey]*flow
	latest [16]foundFlow // InfiniBand: found lately, by a hash of the source and the queue pair

	conns     Conn              // head of the list of all, by age
	ids       int               // number of IDs that are assigned
	retired   int               // number of connections that are finished
	live      int               // number of the others
	undecided timerQueue        // wait for their ID
	closing   timerQueue        // one side began to close them
	closed    timerQueue        // both sides closed them
	finished  record.Connection // storage of the latest record
}

// foundFlow is a flow with what identifies it.
type foundFlow struct {
	flow     *flow // nil for none
	qpn      uint32
	src, dst Address
}

// Times on the tracker's clock for which connections wait.
const (
	lingerClose  = record.Time(5e9)   // a closing connection waits for late packets
	lingerClosed = record.Time(200e6) // a connection that both sides have closed waits for late packets
	decideAfter  = record.Time(1e9)   // a connection without an ID waits for its other direction
	decideAtMost = 256                // number of packets after which it waits no longer
)

// timerQueue is a queue of connections that wait for a time on the tracker's clock, the
// earliest first.
type timerQueue = queue.Queue[*Conn]

// touchEvery is the resolution of the order of last use. It prevents two connections
// that take turns from being moved in the list for every packet.
const touchEvery = record.Time(10e6)

// expire finishes the connections, and assigns the IDs, whose waiting time is over.
func (cs *connections) expire() {
	clock := cs.tracker.Clock
	for cs.undecided.Len() > 0 {
		c := cs.undecided.First()
		if !c.setup.ID.Known() && !c.retired && clock-c.since < decideAfter {
			break
		}
		cs.undecided.Pop()
		cs.assignID(c)
	}
	for cs.closing.Len() > 0 && (cs.closing.First().retired || clock-cs.closing.First().since > lingerClose) {
		cs.finish(cs.closing.First())
		cs.closing.Pop()
	}
	for cs.closed.Len() > 0 && (cs.closed.First().retired || clock-cs.closed.First().closedAt > lingerClosed) {
		cs.finish(cs.closed.First())
		cs.closed.Pop()
	}
}

// endsOf completes the ends of a datagram, and remembers those that are new.
func (cs *connections) endsOf(d *Datagram, e *ends) {
	if e.src == nil || e.dst == nil {
		*e = cs.hosts.ends(&d.Src, &d.Dst)
	}
}

// countFor counts the current packet for its connection.
func (cs *connections) countFor(c *Conn, transport string, cur *currentPacket) {
	cur.Conn = c
	c.setup.Transport = transport
	c.countPacket()
	c.record.Last, c.last = cur.at.Time, cur.at
	if cs.tracker.Clock-c.touched > touchEvery || c.touched == 0 {
		c.touched = cs.tracker.Clock
		cs.tracker.budget.Touch(&c.share)
	}
	if !c.setup.ID.Known() && c.record.Packets >= decideAtMost {
		cs.assignID(c)
	}
}

// newConn starts a connection.
func (cs *connections) newConn() *Conn {
	c := &Conn{tracker: cs.tracker, wantSends: true, since: cs.tracker.Clock, setup: Setup{ResponseWithin: longestResponse}}
	c.record.First, c.record.Last = cs.tracker.now.Time, cs.tracker.now.Time
	c.prev, c.next = cs.conns.prev, &cs.conns
	c.prev.next, c.next.prev = c, c
	cs.live++
	cs.tracker.budget.Open(&c.share, c)
	c.share.Charge(connCost)
	c.follower = cs.tracker.upper.Follow(c, &c.share)
	return c
}

// newAnnouncedConn starts a connection whose handshake was captured.
func (cs *connections) newAnnouncedConn() *Conn {
	c := cs.newConn()
	c.setup.Handshake = true
	cs.assignID(c)
	return c
}

// assignID assigns a connection its ID, and reports the findings that waited for it.
func (cs *connections) assignID(c *Conn) {
	if c.setup.ID.Known() || c.retired {
		return
	}
	if c.last == cs.tracker.now && c.record.BeforePairing > 0 {
		c.record.BeforePairing-- // The current packet is shown with the ID.
	}
	c.setup.ID = record.Some(cs.ids)
	cs.ids++
	if cs.tracker.Finding != nil {
		for _, f := range c.waiting {
			c.hand(f)
		}
	}
	c.share.Charge(-findingCost * int64(len(c.waiting)))
	c.waiting = nil
	c.passWaiting()
}

// unlink removes a connection from all tables.
func (cs *connections) unlink(c *Conn) {
	c.retired = true
	c.prev.next, c.next.prev = c.next, c.prev
	cs.live--
	for _, f := range c.flows {
		if f != nil {
			cs.removeFlow(f)
		}
	}
	for s := range Side(2) {
		cs.handshakes.removeCommID(c, s)
	}
	cs.tracker.budget.Close(&c.share)
}

// finish passes the record of a connection to Connection, and forgets the connection. A
// connection is finished a while after it was closed (see Tick), when its queue pair or
// port is reused, when it is evicted, and at the end of the capture.
func (cs *connections) finish(c *Conn) {
	if c.retired {
		return
	}
	cs.assignID(c)
	cs.flush(c)
	cs.operations.passAll(c)
	var r *record.Connection // nil if no record is wanted
	if cs.tracker.Connection != nil {
		r = c.makeRecord()
	}
	c.follower.Finish(r)
	cs.unlink(c)
	cs.retired++
	if r != nil {
		cs.tracker.Connection(r)
	}
	for _, f := range c.flows {
		if f == nil {
			continue
		}
		cs.operations.forgetAll(f)
		f.ops = ledger{} // a timer queue may keep the connection for a while
		cs.operations.buffers.back(f.buffer)
		f.buffer = nil
	}
}

// flush ends the operations in progress on a connection, once: no packets follow.
func (cs *connections) flush(c *Conn) {
	if c.flushed {
		return
	}
	c.flushed = true
	cs.operations.acceptAbsent(c)
	for _, f := range c.flows {
		if f == nil {
			continue
		}
		for !f.waiting().Empty() {
			f.skip(&currentPacket{at: cs.tracker.now})
		}
		f.flush()
		cs.operations.breakSend(f)
	}
	for _, f := range c.flows {
		for i := 0; f != nil && i < f.ops.len(); i++ {
			if o := f.ops.entries[f.ops.head+i].op; o.Kind == Read && !o.done && o.Side == f.side {
				cs.operations.abandon(o)
			}
		}
	}
	c.follower.Closed(c.last, c.ending)
	c.reportCongestion()
}

// establish notes when a connection was established.
func (cs *connections) establish(c *Conn, at record.Stamp) {
	if !c.record.Established.Known() && !c.closing {
		c.record.Established = record.Some(at.Time)
	}
}

// close notes that a connection ends. Later packets still belong to it, and its record
// follows later.
func (cs *connections) close(c *Conn, e Ending) {
	if c.closing {
		return
	}
	if e.How != record.EndDisconnect || c.setup.RoCE() { // after a FIN, TCP still retransmits
		cs.operations.acceptAbsent(c)
	}
	c.ends(e)
	c.closing, c.since = true, cs.tracker.Clock
	c.record.Closed = record.Some(e.At.Time)
	c.follower.Closing()
	cs.closing.Push(c)
}

// markClosed notes that both sides of a connection have ended it.
func (cs *connections) markClosed(c *Conn) {
	if c.closedAt == 0 {
		c.closedAt = cs.tracker.Clock
		cs.closed.Push(c)
	}
}

// Evict frees the state of the connection that costs least; see [budget.Owner].
func (c *Conn) Evict() (budget.Kind, bool) {
	t := c.tracker
	c.evicted = true
	if c.follower.Evict(budget.ChunkData) {
		return budget.ChunkData, true
	}
	for _, f := range c.flows {
		if f != nil && !f.waiting().Empty() {
			f.skip(&currentPacket{at: t.now})
			return budget.HeldPackets, true
		}
	}
	for _, f := range c.flows {
		if f != nil && f.paths != nil && !f.paths.absent.Empty() {
			t.operations.acceptAbsent(c)
			return budget.HeldPackets, true
		}
	}
	for _, f := range c.flows {
		if f == nil {
			continue
		}
		if cap(f.buffer) > 0 {
			f.sendTruncated = true
			t.operations.dropBuffer(f)
			return budget.SendData, true
		}
		if f.evict() {
			return budget.SendData, true
		}
	}
	for _, f := range c.flows {
		if f != nil && f.ops.len() > 16 {
			t.operations.forgetOldest(f)
			return budget.Operations, true
		}
	}
	if c.follower.Evict(budget.Calls) {
		return budget.Calls, true
	}
	if c.retired {
		return 0, false
	}
	t.connections.finish(c)
	return budget.Connections, true
}

// Decide assigns the connection its ID before the usual time, and returns the ID.
func (c *Conn) Decide() (id int) {
	c.tracker.connections.assignID(c)
	return c.setup.ID.Or(0)
}
