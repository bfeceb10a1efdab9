package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/rocev2"
)

// Which connection a packet belongs to. A packet says only which queue pair it
// goes to: the sender's is known from the handshake, or by watching both ways. A
// half that nobody announced begins a connection of its own, without an id, until
// the other half is found or it is clear that there will be none.

// alone is the halves of one route that have no other direction, and how to find
// the one that a packet fits without a look at all of them.
type unpaired struct {
	flows  []*flow
	byPSN  map[uint32]*flow // chains, by neighbourhood; nil while there are few
	cursor int
}

// search is what a half that is alone is listed under.
type search struct {
	unpaired   *unpaired // nil once it is not
	prev, next *flow     // of the chain in alone.byPSN
	place      uint32    // there
	index      int32     // in alone.halves
	tries      int32
	listed     bool // in a chain
}

// fitWindow is how far apart PSNs may be to belong together: small enough that
// two connections between the same ends, which start at random, are told apart.
const (
	fitShift  = 12
	fitWindow = 1 << fitShift
)

// The places of chains: a half is listed where its next request is expected, or,
// when only acknowledgements of it were seen, where those are.
const onlyAcks = 1 << 31

// lookAt bounds how many halves are looked at for one packet.
const lookAt = 8

// attach makes a direction of a connection. One that used the same key before is
// over.
func (t *Tracker) attach(c *Conn, side Side, e ends, qpn uint32) *flow {
	r := t.routes.take(e)
	key := queueKey{r, qpn}
	if old := t.queues[key]; old != nil && old.conn != c {
		t.endReused(old.conn)
	} else if old != nil {
		t.drop(old)
	}
	if old := c.flows[side]; old != nil { // it names another queue pair now
		t.drop(old)
	}
	f := &flow{conn: c, side: side, src: e.src, dst: e.dst, route: r, qpn: qpn, placement: t.newPlacement()}
	e.src.Hold()
	e.dst.Hold()
	c.flows[side] = f
	c.share.Charge(flowCost)
	t.queues[key] = f
	t.updatePairing(c)
	return f
}

// drop forgets a half of a connection that goes on without it.
func (t *Tracker) drop(f *flow) {
	t.removeFlow(f)
	for f.ops.len() > 0 {
		t.forgetOldest(f)
	}
	for !f.window.empty() {
		t.unhold(f, f.window.earliest())
		f.window.remove(1)
	}
	t.dropBuffer(f)
	f.conn.share.Charge(-flowCost)
	f.conn.flows[f.side] = nil
}

// replace ends a connection whose queue pair is used again.
func (t *Tracker) endReused(c *Conn) {
	t.close(c, Ending{How: record.EndReused, At: t.now})
	t.finish(c)
}

// pair lists the half of a connection that is alone, or decides one that has both.
func (t *Tracker) updatePairing(c *Conn) {
	for side, f := range c.flows {
		if f == nil {
			continue
		}
		if c.flows[1-side] != nil {
			t.removeUnpaired(f)
		} else if f.unpaired == nil {
			a := &f.route.unpaired
			f.unpaired, f.index = a, int32(len(a.flows))
			a.flows = append(a.flows, f)
			if len(a.flows) > lookAt && a.byPSN == nil { // no more can all be looked at
				a.byPSN = map[uint32]*flow{}
				for _, f := range a.flows {
					t.indexUnpaired(f)
				}
			}
		}
	}
	if c.flows[0] != nil && c.flows[1] != nil {
		t.assignID(c)
	}
}

// detach takes a half out of the look-up tables.
func (t *Tracker) removeFlow(f *flow) {
	if f.stream != nil {
		if t.streams[f.stream.key] == f {
			delete(t.streams, f.stream.key)
		}
	} else if key := (queueKey{f.route, f.qpn}); t.queues[key] == f {
		delete(t.queues, key)
	}
	t.removeUnpaired(f)
	f.src.LetGo()
	f.dst.LetGo()
	if f.route != nil {
		t.routes.leave(f.route)
	}
}

// unlist takes a half out of the list of those that are alone.
func (t *Tracker) removeUnpaired(f *flow) {
	a := f.unpaired
	if a == nil {
		return
	}
	a.removeFromChain(f)
	last := a.flows[len(a.flows)-1]
	a.flows[f.index], last.index = last, f.index
	a.flows[len(a.flows)-1] = nil
	if a.flows = a.flows[:len(a.flows)-1]; len(a.flows) == 0 {
		*a = unpaired{flows: a.flows}
	}
	f.search = search{}
}

func (a *unpaired) removeFromChain(f *flow) {
	if !f.listed {
		return
	}
	if f.prev != nil {
		f.prev.next = f.next
	} else if f.next != nil {
		a.byPSN[f.place] = f.next
	} else {
		delete(a.byPSN, f.place)
	}
	if f.next != nil {
		f.next.prev = f.prev
	}
	f.prev, f.next, f.listed = nil, nil, false
}

// seek keeps a half that is alone where it can be found.
func (t *Tracker) indexUnpaired(f *flow) {
	a := f.unpaired
	if a == nil || a.byPSN == nil {
		return
	}
	var place uint32
	switch {
	case f.started:
		place = f.expect >> fitShift
	case f.acksSeen:
		place = f.lastAck>>fitShift | onlyAcks
	default:
		return
	}
	if f.listed && f.place == place {
		return
	}
	a.removeFromChain(f)
	f.place, f.listed = place, true
	if head := a.byPSN[place]; head != nil {
		f.next, head.prev = head, f
	}
	a.byPSN[place] = f
}

// toward is the half that goes a datagram's way to a queue pair, nil for none; e gets
// the datagram's ends, as far as they are remembered.
func (t *Tracker) toward(d *Datagram, qpn uint32, e *ends) *flow {
	*e = ends{t.hosts.find(&d.Src), t.hosts.find(&d.Dst)}
	if e.src == nil || e.dst == nil {
		return nil
	}
	if r := t.routes.find(*e); r != nil {
		return t.queues[queueKey{r, qpn}]
	}
	return nil
}

// half finds the direction that a packet belongs to, h when that is known. One
// that nobody announced starts a connection, or joins one that was seen in the
// other direction. e are the packet's ends, as far as they are known.
func (t *Tracker) flowOf(f *flow, d *Datagram, e *ends) *flow {
	if f == nil {
		return t.startFlow(d, e)
	}
	if f.started && d.Packet.Opcode.Info().Request && f.isReused(d.Packet.PSN) {
		t.endReused(f.conn)
		return t.startFlow(d, e)
	}
	if f.unpaired == nil {
		return f
	}
	if f.tries++; f.tries > decideAtMost && f.tries&63 != 0 {
		return f
	}
	if other := t.peerOf(f.route.back, f, d); other != nil && !(other.conn.decided && f.conn.decided) {
		t.join(other, f)
	}
	return f
}

// begin makes the half of a packet that belongs to none.
func (t *Tracker) startFlow(d *Datagram, e *ends) *flow {
	t.endsOf(d, e)
	if other := t.peerOf(t.routes.reverse(*e), nil, d); other != nil {
		return t.attach(other.conn, other.side.Other(), *e, d.Packet.DestQPN)
	}
	c := t.newConn()
	f := t.attach(c, 0, *e, d.Packet.DestQPN)
	t.undecided.Push(c)
	return f
}

// reused says that a request cannot belong to the connection that its queue
// pair's number stood for.
func (f *flow) isReused(psn uint32) bool {
	delta := psns.delta(psn, f.expect)
	if f.conn.closing {
		return delta > 64 || delta < -1<<16
	}
	return delta > maxJump || delta < -maxJump
}

// across finds the other direction of a packet whose own has none: among the
// halves between the same two ends that are alone as well, the one whose PSNs,
// XIDs or handles fit. What it costs does not depend on how many there are. back is
// the packet's route the other way, nil when nothing goes that.
func (t *Tracker) peerOf(back *route, f *flow, d *Datagram) *flow {
	if back == nil || len(back.flows) == 0 {
		return nil
	}
	a := &back.unpaired
	p := d.Packet
	info := p.Opcode.Info()
	near := p.PSN >> fitShift
	const places = 1<<24>>fitShift - 1
	chains := [2]uint32{near, (near + 1) & places} // the next request is expected behind what is acknowledged
	if info.Request {
		chains = [2]uint32{near | onlyAcks, (near-1)&places | onlyAcks}
	}
	for _, place := range chains {
		n := 0
		for other := a.byPSN[place]; other != nil && n < lookAt; other, n = other.next, n+1 {
			if other != f && t.fits(other, p, info) {
				return other
			}
		}
	}
	for range min(lookAt, len(a.flows)) {
		a.cursor++
		other := a.flows[a.cursor%len(a.flows)]
		if other != f && t.fits(other, p, info) {
			return other
		}
	}
	return nil
}

// fits says whether a packet that goes one way shows that it belongs with the
// half that goes the other way.
func (t *Tracker) fits(other *flow, p *rocev2.Packet, info *rocev2.OpcodeInfo) bool {
	c := other.conn
	if c.closing {
		return false
	}
	switch info.Kind {
	case rocev2.KindAcknowledge, rocev2.KindReadResponse, rocev2.KindAtomicAck:
		if !other.started {
			return false
		}
		if delta := psns.delta(p.PSN, other.expect); delta < 0 && delta > -fitWindow {
			return true
		}
		return info.Kind == rocev2.KindReadResponse && other.ops.at(psns, p.PSN) != nil
	case rocev2.KindSend:
		if info.First && len(p.Payload) >= 4 && c.follower.Knows(other.side, Send, be.Uint32(p.Payload), 0, 0) {
			return true
		}
	case rocev2.KindReadRequest, rocev2.KindWrite:
		kind := Write
		if info.Kind == rocev2.KindReadRequest {
			kind = Read
		}
		if p.Headers&rocev2.HasRETH != 0 && c.follower.Knows(other.side, kind, p.RETH.RKey, p.RETH.VirtualAddress, p.RETH.DMALength) {
			return true
		}
	}
	// Acknowledgements that came before the first request did.
	if !other.acksSeen {
		return false
	}
	delta := psns.delta(p.PSN, other.lastAck)
	return delta > 0 && delta < fitWindow
}

// join makes one connection of two halves.
func (t *Tracker) join(other, f *flow) {
	c, old := other.conn, f.conn
	if old.decided || old.handshake && !c.handshake { // the one that has an id, or says more, stays
		other, f = f, other
		c, old = old, c
	}
	from, to := f.side, other.side.Other()
	r, o := &c.record, &old.record
	r.Packets += o.Packets
	r.Retransmitted += o.Retransmitted
	r.RetransmittedOfNone += o.RetransmittedOfNone
	r.OutOfOrder += o.OutOfOrder
	r.Lost += o.Lost
	r.Naks += o.Naks
	r.RNRNaks += o.RNRNaks
	r.First, r.Last = min(r.First, o.First), max(r.Last, o.Last)
	if c.mtu == 0 {
		c.mtu = old.mtu
	}
	if c.client < 0 && old.client >= 0 {
		c.client = int8(to)
		if Side(old.client) != from {
			c.client = int8(to.Other())
		}
	}
	c.wantSends = c.wantSends || old.wantSends
	c.waiting = append(c.waiting, old.waiting...)
	c.follower.Join(old.follower, from, to)
	old.flows[from] = nil
	bytes := old.share.Bytes() - connCost
	t.removeUnpaired(f)
	t.unlink(old)
	c.share.Charge(bytes)
	f.conn, f.side = c, to
	c.evicted = c.evicted || old.evicted
	c.marked, c.cnps = c.marked+old.marked, c.cnps+old.cnps
	if old.privateDataBadICRC[from] {
		c.privateDataBadICRC[to] = true
	}
	c.flows[to] = f
	for i := f.ops.head; i < len(f.ops.entries); i++ {
		f.ops.entries[i].op.Side, f.ops.entries[i].op.conn = to, c
	}
	if t.verdict.Conn == old {
		t.verdict.Conn = c
	}
	t.updatePairing(c)
}
