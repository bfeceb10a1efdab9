package rdma

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/cause"
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/internal/queue"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// connections contains all connections, from the first packet of each until it is
// forgotten. join.go has the part that finds the connection of a packet.
type connections struct {
	tracker    *Tracker
	handshakes *handshakes
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
		c.identify()
	}
	for cs.closing.Len() > 0 && (cs.closing.First().retired || clock-cs.closing.First().since > lingerClose) {
		cs.closing.First().finish()
		cs.closing.Pop()
	}
	for cs.closed.Len() > 0 && (cs.closed.First().retired || clock-cs.closed.First().closedAt > lingerClosed) {
		if c := cs.closed.First(); !c.retired && c.unacknowledged() { // a later connection may show that it did not arrive
			c.stop()
		} else {
			c.finish()
		}
		cs.closed.Pop()
	}
}

// open starts a connection. If its handshake was captured, it has an ID at once.
func (cs *connections) open(s Setup) *Conn {
	s.ResponseWithin, s.First = cmp.Or(s.ResponseWithin, longestResponse), cs.tracker.now.Time
	c := &Conn{tracker: cs.tracker, wantSends: true, since: cs.tracker.Clock, unpaused: cs.tracker.Pauses.Frames, setup: s, record: figures{first: s.First, last: s.First}}
	c.link(&cs.conns)
	cs.live++
	cs.tracker.budget.Open(&c.share, c)
	if c.follower = cs.tracker.upper.Follow(c, &c.share); cs.tracker.Why != nil {
		c.follower = narrator{c.follower, cs.tracker}
	}
	if s.Handshake {
		c.identify()
	}
	c.settle()
	return c
}

// nextID returns the ID of the next connection.
func (cs *connections) nextID() (id int) {
	id = cs.ids
	cs.ids++
	return id
}

// remove removes a connection from all tables. It is finished, or became a part of another one.
func (cs *connections) remove(c *Conn, finished bool) {
	cs.live--
	if finished {
		cs.retired++
	}
	for f := range c.known {
		cs.removeFlow(f)
	}
	for s := range Side(2) {
		cs.handshakes.removeCommID(c, s)
	}
	cs.tracker.budget.Close(&c.share)
}

// endsOf completes the ends of a datagram, and remembers those that are new.
func (cs *connections) endsOf(d *Datagram, e *ends) {
	if e.src == nil || e.dst == nil {
		*e = cs.hosts.ends(&d.Src, &d.Dst)
	}
}

// link adds the connection to the end of a circular list, of which the head is given.
func (c *Conn) link(head *Conn) {
	c.prev, c.next = head.prev, head
	c.prev.next, head.prev = c, c
}

// unlink removes the connection from its list.
func (c *Conn) unlink() { c.prev.next, c.next.prev = c.next, c.prev }

// took notes that the current packet belongs to the connection.
func (c *Conn) took(transport string, cur *currentPacket) {
	t := c.tracker
	cur.Conn = c
	c.setup.Transport = transport
	c.countPacket()
	c.record.last = cur.at.Time
	c.last = cur.at
	if t.Clock-c.touched > touchEvery || c.touched == 0 {
		c.touched = t.Clock
		t.budget.Touch(&c.share)
	}
	if !c.setup.ID.Known() && c.record.counts.Packets >= decideAtMost {
		c.identify()
	}
}

// countPacket counts a packet.
func (c *Conn) countPacket() { c.record.packet(c.setup.ID.Known()) }

// identify assigns the connection its ID, and reports the findings that waited for it.
func (c *Conn) identify() {
	if c.setup.ID.Known() || c.retired {
		return
	}
	t := c.tracker
	c.record.identified(c.last == t.now)
	c.setup.ID = record.Some(t.connections.nextID())
	if t.Finding != nil {
		for _, f := range c.waiting {
			c.hand(f)
		}
	}
	c.waiting = nil
	c.passWaiting()
	c.settle()
}

// establish notes when the connection was established.
func (c *Conn) establish(at record.Stamp) {
	if !c.closing {
		c.record.establish(at.Time)
	}
}

// close notes that the connection ends. Later packets still belong to it, and its record
// follows later.
func (c *Conn) close(e Ending) {
	if c.closing {
		return
	}
	t := c.tracker
	if e.How != record.EndDisconnect || c.setup.RoCE() { // after a FIN, TCP still retransmits
		c.acceptAbsent()
	}
	for _, f := range c.flows {
		if f != nil {
			f.wasAnswered(true)
		}
	}
	c.ends(e)
	c.closing, c.since = true, t.Clock
	c.record.closed = record.Some(e.At.Time)
	c.follower.Closing()
	t.connections.closing.Push(c)
}

// bothClosed notes that both sides of the connection have ended it.
func (c *Conn) bothClosed() {
	if c.closedAt == 0 {
		c.closedAt = c.tracker.Clock
		c.tracker.connections.closed.Push(c)
	}
}

// unacknowledged reports whether a Send was not acknowledged, in a direction of which acknowledgements were captured.
func (c *Conn) unacknowledged() bool {
	return slices.ContainsFunc(c.flows[:], func(f *flow) bool {
		return f != nil && f.order.Acknowledged() && slices.ContainsFunc(f.ops.entries[f.ops.unacked:], func(e entry) bool { return e.op.Kind == Send && e.op.Side == f.side })
	})
}

// closedByFIN notes that a side ended its stream with a FIN, or that both sides have done so. The side is unknown if it is
// not known which one did so first.
func (c *Conn) closedByFIN(by record.Opt[Side], both bool, at record.Stamp) {
	if by.Known() && c.fin.Known() {
		by = c.fin
	}
	if !both {
		c.fin = by
		return
	}
	c.close(Ending{How: record.EndDisconnect, By: by, At: at})
	c.bothClosed()
}

// reuse ends the connection, because another one uses its queue pair or port. It is finished at the end of the packet, but
// what its packets began comes before what that packet begins.
func (c *Conn) reuse() {
	c.close(Ending{How: record.EndReused, At: c.tracker.now})
	c.identify()
	c.stop()
	c.tracker.leave(c)
}

// stop takes what waits for packets that will not come any more.
func (c *Conn) stop() {
	c.acceptAbsent()
	for f := range c.known {
		if !f.stopped {
			f.stop()
		}
	}
}

// stop takes the packets of the flow that wait for earlier ones, and ends the Send in progress, once.
func (f *flow) stop() {
	f.stopped = true
	f.lackedAtEnd = f.lackedByReceiver()
	for !f.waiting().Empty() {
		f.skip(&currentPacket{at: f.conn.tracker.now, open: true})
	}
	f.flush()
	f.breakSend()
}

// flush ends the operations in progress on the connection, once: no packets follow.
func (c *Conn) flush() {
	if c.flushed {
		return
	}
	c.flushed = true
	c.stop()
	for f := range c.known {
		for _, e := range f.ops.all() {
			if o := e.op; o.Kind == Read && !o.done && o.Side == f.side {
				o.abandon()
			}
		}
	}
	c.follower.Closed(c.last, c.ending)
	c.follower = closed{c.follower}
	c.reportCongestion()
}

// closed is the follower of a connection on which no more events follow: it gets none.
type closed struct{ Follower }

// OnLateEvent, if not nil, is called if a follower was to get an event after Closed. Tests set it, because no capture may
// cause that.
var OnLateEvent func()

func (closed) late() {
	if OnLateEvent != nil {
		OnLateEvent()
	}
}

func (c closed) Private(Side, []byte, record.Stamp, bool) { c.late() }
func (c closed) Moved(*Operation, uint64, []byte, int)    { c.late() }
func (c closed) Refused(*Refusal)                         { c.late() }
func (c closed) Closing()                                 { c.late() }
func (c closed) Closed(record.Stamp, *Ending)             { c.late() }

func (c closed) Operation(Event) Standing {
	c.late()
	return Unassigned
}

// finish passes the record of the connection to [Tracker.Connection], and forgets the connection. A
// connection is finished a while after it was closed (see Tick), at the end of the packet that uses its queue pair or
// port again, when it is evicted, and at the end of the capture.
func (c *Conn) finish() {
	if c.retired {
		return
	}
	t := c.tracker
	c.identify()
	c.flush()
	c.passOperations()
	var r *record.Connection // nil if no record is wanted
	if t.Connection != nil {
		r = c.makeRecord()
	}
	c.follower.Finish(r)
	if c.tracker.Retired != nil {
		c.tracker.Retired(c.retiring())
	}
	c.retire(true)
	if r != nil {
		t.Connection(r)
	}
	for f := range c.known {
		f.release()
	}
}

// retire removes the connection from all tables: it is finished, or became a part of another one.
func (c *Conn) retire(finished bool) {
	c.retired = true
	c.unlink()
	c.tracker.connections.remove(c, finished)
}

// addFlow adds a flow to the connection. The ledger says how its sequence numbers work.
func (c *Conn) addFlow(side Side, e ends, l ledger) *flow {
	l.side = side
	f := &flow{conn: c, side: side, src: e.src, dst: e.dst, ops: l, order: order.Order[held]{Circle: l.circle}, cause: cause.NewSender(l.circle, &c.tracker.bursts)}
	e.src.Hold()
	e.dst.Hold()
	c.flows[side] = f
	return f
}

// drop forgets a flow of the connection, which continues without it.
func (c *Conn) drop(f *flow) {
	t := c.tracker
	t.connections.removeFlow(f)
	for f.ops.len() > 0 {
		f.forgetOldest()
	}
	for w := f.waiting(); !w.Empty(); w.Remove(1) {
		f.unhold(w.At(0))
	}
	f.dropBuffer()
	c.flows[f.side] = nil
}

// Evict frees the state of the connection that costs least; see [budget.Owner].
func (c *Conn) Evict() (budget.Kind, bool) {
	kind, evicted := c.evictCheapest()
	c.settle()
	return kind, evicted
}

// evictCheapest frees the state of the connection that costs least.
func (c *Conn) evictCheapest() (budget.Kind, bool) {
	t := c.tracker
	c.evicted = true
	if c.follower.Evict(budget.ChunkData) {
		return budget.ChunkData, true
	}
	for f := range c.known {
		if !f.waiting().Empty() {
			f.skip(&currentPacket{at: t.now, open: true})
			return budget.HeldPackets, true
		}
	}
	for f := range c.known {
		if !f.absent.Empty() {
			c.acceptAbsent()
			return budget.HeldPackets, true
		}
	}
	for f := range c.known {
		if cap(f.parts.buffer) > 0 {
			f.parts.truncated = true
			f.dropBuffer()
			return budget.SendData, true
		}
		if f.evict() {
			return budget.SendData, true
		}
	}
	for f := range c.known {
		if f.ops.len() > 16 {
			f.forgetOldest()
			return budget.Operations, true
		}
	}
	if c.follower.Evict(budget.Calls) {
		return budget.Calls, true
	}
	if c.retired {
		return 0, false
	}
	c.finish()
	return budget.Connections, true
}

// Decide assigns the connection its ID before the usual time, and returns the ID.
func (c *Conn) Decide() (id int) {
	c.identify()
	return c.setup.ID.Or(0)
}
