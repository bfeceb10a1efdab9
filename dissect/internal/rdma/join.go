package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/rocev2"
)

// The connection of a packet. A packet contains only its destination queue pair: the
// sender's is known from the handshake, or by watching both directions. A flow without
// a handshake starts a connection of its own. If flows in the opposite direction have no
// partner yet, the connection has no ID until one of them is found to belong to it, or the
// time to wait for that is over.

// unpaired contains the flows of one route whose other direction is not known, and an
// index to find the flow that a packet fits without comparing all of them.
type unpaired struct {
	flows  []*flow
	byPSN  map[uint32]*flow // chains by range of PSNs; nil while there are few flows
	cursor int
}

// search is the position of an unpaired flow in the index.
type search struct {
	unpaired   *unpaired // nil if the flow is not unpaired
	prev, next *flow     // neighbors in the chain of unpaired.byPSN
	place      uint32    // key of that chain
	index      int32     // in unpaired.flows
	tries      int32
	listed     bool // it is in a chain
}

// fitShift divides PSNs into ranges as long as order.Near.
const fitShift = 12

// onlyAcks marks the keys of chains of flows of which only acknowledgements were
// captured. Such a flow is listed by its latest acknowledged PSN, other flows by their
// expected PSN.
const onlyAcks = 1 << 31

// lookAt is the maximum number of flows that are compared with one packet.
const lookAt = 8

// attach adds a flow to a connection. An older connection with the same queue pair
// ends.
func (cs *connections) attach(c *Conn, side Side, e ends, qpn uint32) *flow {
	r := cs.routes.take(e)
	key := queueKey{r, qpn}
	if old := cs.queues[key]; old != nil && old.conn != c {
		old.conn.reuse()
	} else if old != nil {
		c.drop(old)
	}
	if old := c.flows[side]; old != nil { // the side uses another queue pair now
		c.drop(old)
	}
	f := c.addFlow(side, e, ledger{circle: order.PSNs})
	f.overQueuePair(r, qpn, cs.contents.newStreamOffsets())
	cs.queues[key] = f
	c.pair()
	return f
}

// pair lists the flow of a connection that has only one, or assigns an ID to a
// connection that has both.
func (c *Conn) pair() {
	for side, f := range c.flows {
		switch {
		case f == nil:
		case c.flows[1-side] != nil:
			f.qp.unpaired.remove(f)
		case f.qp.unpaired == nil:
			f.qp.route.unpaired.add(f)
		}
	}
	if c.flows[0] != nil && c.flows[1] != nil {
		c.identify()
		c.flows[0].acknowledgedAlone()
		c.flows[1].acknowledgedAlone()
	}
}

// removeFlow removes a flow from the tables.
func (cs *connections) removeFlow(f *flow) {
	f.unlist()
	for i := range cs.latest {
		if cs.latest[i].flow == f {
			cs.latest[i] = foundFlow{}
		}
	}
	f.src.LetGo()
	f.dst.LetGo()
}

// add adds a flow.
func (a *unpaired) add(f *flow) {
	f.qp.search.enter(a)
	a.flows = append(a.flows, f)
	if len(a.flows) > lookAt && a.byPSN == nil { // too many to compare all of them
		a.byPSN = map[uint32]*flow{}
		for _, f := range a.flows {
			a.update(f)
		}
	}
}

// remove removes a flow. It does nothing if a is nil.
func (a *unpaired) remove(f *flow) {
	if a == nil {
		return
	}
	a.unchain(&f.qp.search)
	last := a.flows[len(a.flows)-1]
	a.flows[f.qp.index] = last
	last.qp.search.move(f.qp.index)
	a.flows[len(a.flows)-1] = nil
	if a.flows = a.flows[:len(a.flows)-1]; len(a.flows) == 0 {
		*a = unpaired{flows: a.flows}
	}
	f.qp.search.leave()
}

// update updates the position of a flow in the index. There is none if a is nil.
func (a *unpaired) update(f *flow) {
	if a == nil || a.byPSN == nil {
		return
	}
	var place uint32
	switch {
	case f.order.Begun():
		place = f.order.Expected() >> fitShift
	case f.qp.acksSeen:
		place = f.qp.lastAck>>fitShift | onlyAcks
	default:
		return
	}
	if f.qp.listed && f.qp.place == place {
		return
	}
	a.unchain(&f.qp.search)
	f.qp.search.lead(f, place, a.byPSN[place])
	a.byPSN[place] = f
}

// unchain removes a flow from its chain, if it is in one.
func (a *unpaired) unchain(s *search) {
	switch {
	case !s.listed:
		return
	case s.prev != nil:
	case s.next != nil:
		a.byPSN[s.place] = s.next
	default:
		delete(a.byPSN, s.place)
	}
	s.unchain()
}

// enter makes the flow the last one of the unpaired ones, move gives it another index, and leave makes it one that is not
// unpaired.
func (s *search) enter(a *unpaired) { s.unpaired, s.index = a, int32(len(a.flows)) }
func (s *search) move(index int32)  { s.index = index }
func (s *search) leave()            { *s = search{} }

// lead puts the flow, which is f, before the head of a chain, which may be nil.
func (s *search) lead(f *flow, place uint32, head *flow) {
	if s.place, s.listed = place, true; head != nil {
		s.next, head.qp.search.prev = head, f
	}
}

// unchain removes the flow from between its neighbors.
func (s *search) unchain() {
	if s.prev != nil {
		s.prev.qp.search.next = s.next
	}
	if s.next != nil {
		s.next.qp.search.prev = s.prev
	}
	s.prev, s.next, s.listed = nil, nil, false
}

// looks reports whether the other direction of the flow is looked for now: for the first packets, and then for some.
func (s *search) looks() bool {
	s.tries++
	return s.tries <= decideAtMost || s.tries&63 == 0
}

// toward returns the flow from a datagram's source to a queue pair, nil if there is
// none. It sets e to the known ends of the datagram.
func (cs *connections) toward(d *Datagram, qpn uint32, e *ends) *flow {
	source := d.Src.IP.As16()
	latest := &cs.latest[(qpn^qpn>>4^uint32(source[15])^uint32(d.Src.LID))%uint32(len(cs.latest))]
	if f := latest.flow; f != nil && latest.qpn == qpn && latest.src == d.Src && latest.dst == d.Dst {
		*e = ends{f.src, f.dst}
		return f
	}
	*e = ends{cs.hosts.find(&d.Src), cs.hosts.find(&d.Dst)}
	if e.src == nil || e.dst == nil {
		return nil
	}
	r := cs.routes.find(*e)
	if r == nil {
		return nil
	}
	f := cs.queues[queueKey{r, qpn}]
	if f != nil {
		*latest = foundFlow{f, qpn, d.Src, d.Dst}
	}
	return f
}

// placement says where a packet belongs.
type placement struct {
	flow  *flow // its flow; nil if it starts one
	other *flow // the flow of the other direction with which that flow makes a connection; nil if none was found now
	ended *Conn // the connection that has ended, because its queue pair is used again; nil if there is none
}

// place finds out where a packet belongs; f is the known flow of its queue
// pair, or nil. It changes nothing but what it remembers to find flows sooner. It completes the known ends of the packet
// if the packet starts a flow.
func (cs *connections) place(f *flow, d *Datagram, e *ends) placement {
	switch {
	case f == nil:
		cs.endsOf(d, e)
		return placement{other: cs.peerOf(cs.routes.reverse(*e), nil, d)}
	case f.order.Begun() && d.Packet.Opcode.Info().Request && f.isReused(d.Packet.PSN):
		return placement{ended: f.conn}
	case f.qp.unpaired == nil || !f.qp.looks():
		return placement{flow: f}
	}
	other := cs.peerOf(f.qp.route.back, f, d)
	if other != nil && other.conn.setup.ID.Known() && f.conn.setup.ID.Known() {
		other = nil
	}
	return placement{flow: f, other: other}
}

// enter carries out what the placement of a packet says, and returns its flow. A packet without a flow starts a
// connection, or joins one whose other direction is known.
func (cs *connections) enter(p placement, d *Datagram, e *ends) *flow {
	switch {
	case p.ended != nil:
		p.ended.reuse()
		return cs.enter(cs.place(nil, d, e), d, e)
	case p.flow != nil && p.other != nil:
		cs.join(p.other, p.flow)
	case p.flow != nil:
	case p.other != nil:
		return cs.attach(p.other.conn, p.other.side.Other(), *e, d.Packet.DestQPN)
	default:
		return cs.startConn(d, e)
	}
	return p.flow
}

// startConn starts a connection with the flow of a packet.
func (cs *connections) startConn(d *Datagram, e *ends) *flow {
	c := cs.open(Setup{})
	f := cs.attach(c, 0, *e, d.Packet.DestQPN)
	if back := cs.routes.reverse(*e); back == nil || len(back.flows) == 0 {
		c.identify() // The other direction has not begun, so it will join this connection.
	} else {
		cs.undecided.Push(c)
	}
	return f
}

// isReused reports whether a request cannot belong to the connection, because its PSN
// is too far away: another connection reuses the queue pair.
func (f *flow) isReused(psn uint32) bool {
	delta := order.PSNs.Delta(psn, f.order.Expected())
	if f.conn.closing {
		return delta > 64 || delta < -1<<16
	}
	return delta > order.MaxJump || delta < -order.MaxJump
}

// peerOf finds the other direction of a packet whose flow has none: an unpaired flow
// between the same two ends whose PSNs, XIDs or handles fit. The cost does not depend
// on the number of flows. back is the route in the opposite direction, nil if it has no
// flows.
func (cs *connections) peerOf(back *route, f *flow, d *Datagram) *flow {
	if back == nil || len(back.flows) == 0 {
		return nil
	}
	a := &back.unpaired
	p := d.Packet
	info := p.Opcode.Info()
	near := p.PSN >> fitShift
	const places = 1<<24>>fitShift - 1
	chains := [2]uint32{near, (near + 1) & places} // the expected PSN follows the acknowledged one
	if info.Request {
		chains = [2]uint32{near | onlyAcks, (near-1)&places | onlyAcks}
	}
	for _, place := range chains {
		n := 0
		for other := a.byPSN[place]; other != nil && n < lookAt; other, n = other.qp.next, n+1 {
			if other != f && other.fits(p, info) {
				return other
			}
		}
	}
	for range min(lookAt, len(a.flows)) {
		a.cursor++
		other := a.flows[a.cursor%len(a.flows)]
		if other != f && other.fits(p, info) {
			return other
		}
	}
	return nil
}

// fits reports whether a packet shows that it belongs to the same connection as a flow
// in the opposite direction.
func (f *flow) fits(p *rocev2.Packet, info *rocev2.OpcodeInfo) bool {
	c := f.conn
	if c.closing {
		return false
	}
	switch info.Kind {
	case rocev2.KindAcknowledge, rocev2.KindReadResponse, rocev2.KindAtomicAck:
		if !f.order.Begun() {
			return f.mayStart(p.PSN)
		}
		if delta := order.PSNs.Delta(p.PSN, f.order.Expected()); delta < 0 && delta > -order.Near {
			return true
		}
		return info.Kind == rocev2.KindReadResponse && f.ops.at(p.PSN) != nil
	case rocev2.KindSend:
		if info.First && len(p.Payload) >= 4 && c.follower.Owner(f.side, Name{Kind: Send, Handle: be.Uint32(p.Payload)}) != 0 {
			return true
		}
	case rocev2.KindReadRequest, rocev2.KindWrite:
		kind := Write
		if info.Kind == rocev2.KindReadRequest {
			kind = Read
		}
		if p.Headers&rocev2.HasRETH != 0 && c.follower.Owner(f.side, Name{kind, p.RETH.RKey, p.RETH.VirtualAddress, p.RETH.DMALength}) != 0 {
			return true
		}
	}
	// Acknowledgements that were captured before the first request.
	if !f.qp.acksSeen {
		return false
	}
	delta := order.PSNs.Delta(p.PSN, f.qp.lastAck)
	return delta > 0 && delta < order.Near
}

// mayStart reports whether an acknowledgement has one of the first PSNs of a flow of which only the handshake was captured.
func (f *flow) mayStart(psn uint32) bool {
	first, known := f.order.Expected(), f.qp.announced
	if !known && f.side == 1 {
		first, known = f.conn.starting.Get()
	}
	after := order.PSNs.Delta(psn, first)
	return known && after >= 0 && after < maxFirst
}

// maxFirst is the number of PSNs of which one is in the first acknowledgement. PSNs begin anywhere, so that another
// connection hardly has one of them.
const maxFirst = 64

// join makes one connection of two that have one flow each. The connection with an ID or a handshake stays.
func (cs *connections) join(other, f *flow) {
	if old := f.conn; old.setup.ID.Known() || old.setup.Handshake && !other.conn.setup.Handshake {
		other, f = f, other
	}
	c := other.conn
	c.join(f, other.side.Other())
	c.pair()
}

// join takes over a flow as that of a side, and the connection of the flow, which has no other flow and no ID.
func (c *Conn) join(f *flow, to Side) {
	old, from := f.conn, f.side
	moved := func(s Side) Side {
		if s == from {
			return to
		}
		return to.Other()
	}
	c.record.join(&old.record)
	if c.trouble.at.Before(old.trouble.at) {
		c.trouble = old.trouble
	}
	if c.mtu == 0 {
		c.mtu = old.mtu
	}
	if client, known := old.setup.Client.Get(); known && !c.setup.Client.Known() {
		c.setup.Client = record.Some(moved(client))
	}
	if client, known := old.setup.likely.Get(); known && !c.setup.likely.Known() {
		c.setup.likely = record.Some(moved(client))
	}
	c.wantSends, c.reported.unfilled = c.wantSends || old.wantSends, c.reported.unfilled || old.reported.unfilled
	c.waiting = append(c.waiting, old.waiting...)
	for _, r := range old.records {
		c.records = append(c.records, waitingRecord{r.RDMAOperation, moved(r.side)})
	}
	if c.setup.ID.Known() {
		c.passWaiting()
	}
	c.follower.Join(old, from, to)
	old.flows[from] = nil
	bytes := old.share.Bytes()
	old.retire(false)
	c.takeOver(bytes, old.charged)
	c.holds(old.operations)
	c.evicted = c.evicted || old.evicted
	if old.unordered {
		c.tracker.unordered--
		c.Disorder()
	}
	c.flows[to] = f
	f.move(c, to)
	if old.closing && !c.closing {
		c.joinClosing(old, moved)
	}
}

// acknowledgedAlone passes the latest acknowledgement that the side sent before the other direction was known, if that
// acknowledges requests that were captured later, or will be: the packets are not in the order in which they were sent.
func (f *flow) acknowledgedAlone() {
	if !f.qp.acksSeen {
		return
	}
	asker, acked := f.peer(), f.qp.lastAck
	switch o := asker.ops.at(acked); {
	case !asker.order.Begun():
		asker.order.Acknowledge(order.PSNs.Add(acked, 1), 0)
	case o != nil && f.qp.lastAckAt.Before(o.First):
		f.conn.Disorder()
	case order.PSNs.Delta(acked, asker.order.Expected()) >= 0:
		asker.apply(nil, asker.order.Acknowledge(order.PSNs.Add(acked, 1), asker.conn.mtu), &currentPacket{at: f.qp.lastAckAt})
	}
}

// move makes the flow one of another connection.
func (f *flow) move(c *Conn, s Side) {
	f.conn, f.side = c, s
	f.ops.move(c, s)
}

// joinClosing notes that the connection is closing because another one was that became a part of it.
func (c *Conn) joinClosing(old *Conn, moved func(Side) Side) {
	e := *old.ending
	if by, known := e.By.Get(); known {
		e.By = record.Some(moved(by))
	}
	c.close(e)
	if old.closedAt != 0 {
		c.bothClosed()
	}
}
