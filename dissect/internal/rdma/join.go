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
type alone struct {
	halves []*half
	byPSN  map[uint32]*half // chains, by neighbourhood; nil while there are few
	cursor int
}

// search is what a half that is alone is listed under.
type search struct {
	alone      *alone // nil once it is not
	prev, next *half  // of the chain in alone.byPSN
	place      uint32 // there
	index      int32  // in alone.halves
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
func (t *Tracker) attach(c *Conn, side Side, e ends, qpn uint32) *half {
	r := t.routes.take(e)
	key := queueKey{r, qpn}
	if old := t.queues[key]; old != nil && old.conn != c {
		t.replace(old.conn)
	} else if old != nil {
		t.drop(old)
	}
	if old := c.halves[side]; old != nil { // it names another queue pair now
		t.drop(old)
	}
	h := &half{conn: c, side: side, src: e.src, dst: e.dst, route: r, qpn: qpn, lane: t.newLane()}
	e.src.Hold()
	e.dst.Hold()
	c.halves[side] = h
	c.share.Charge(halfCost)
	t.queues[key] = h
	t.pair(c)
	return h
}

// drop forgets a half of a connection that goes on without it.
func (t *Tracker) drop(h *half) {
	t.detach(h)
	for h.ops.len() > 0 {
		t.forget(h)
	}
	for !h.window.empty() {
		t.unhold(h, h.window.earliest())
		h.window.remove(1)
	}
	t.dropBuffer(h)
	h.conn.share.Charge(-halfCost)
	h.conn.halves[h.side] = nil
}

// replace ends a connection whose queue pair is used again.
func (t *Tracker) replace(c *Conn) {
	t.close(c, Ending{How: record.EndReused, At: t.now})
	t.retire(c)
}

// pair lists the half of a connection that is alone, or decides one that has both.
func (t *Tracker) pair(c *Conn) {
	for side, h := range c.halves {
		if h == nil {
			continue
		}
		if c.halves[1-side] != nil {
			t.unlist(h)
		} else if h.alone == nil {
			a := &h.route.alone
			h.alone, h.index = a, int32(len(a.halves))
			a.halves = append(a.halves, h)
			if len(a.halves) > lookAt && a.byPSN == nil { // no more can all be looked at
				a.byPSN = map[uint32]*half{}
				for _, h := range a.halves {
					t.seek(h)
				}
			}
		}
	}
	if c.halves[0] != nil && c.halves[1] != nil {
		t.decide(c)
	}
}

// detach takes a half out of the look-up tables.
func (t *Tracker) detach(h *half) {
	if h.stream != nil {
		if t.streams[h.stream.key] == h {
			delete(t.streams, h.stream.key)
		}
	} else if key := (queueKey{h.route, h.qpn}); t.queues[key] == h {
		delete(t.queues, key)
	}
	t.unlist(h)
	h.src.LetGo()
	h.dst.LetGo()
	if h.route != nil {
		t.routes.leave(h.route)
	}
}

// unlist takes a half out of the list of those that are alone.
func (t *Tracker) unlist(h *half) {
	a := h.alone
	if a == nil {
		return
	}
	a.unchain(h)
	last := a.halves[len(a.halves)-1]
	a.halves[h.index], last.index = last, h.index
	a.halves[len(a.halves)-1] = nil
	if a.halves = a.halves[:len(a.halves)-1]; len(a.halves) == 0 {
		*a = alone{halves: a.halves}
	}
	h.search = search{}
}

func (a *alone) unchain(h *half) {
	if !h.listed {
		return
	}
	if h.prev != nil {
		h.prev.next = h.next
	} else if h.next != nil {
		a.byPSN[h.place] = h.next
	} else {
		delete(a.byPSN, h.place)
	}
	if h.next != nil {
		h.next.prev = h.prev
	}
	h.prev, h.next, h.listed = nil, nil, false
}

// seek keeps a half that is alone where it can be found.
func (t *Tracker) seek(h *half) {
	a := h.alone
	if a == nil || a.byPSN == nil {
		return
	}
	var place uint32
	switch {
	case h.started:
		place = h.expect >> fitShift
	case h.acksSeen:
		place = h.lastAck>>fitShift | onlyAcks
	default:
		return
	}
	if h.listed && h.place == place {
		return
	}
	a.unchain(h)
	h.place, h.listed = place, true
	if head := a.byPSN[place]; head != nil {
		h.next, head.prev = head, h
	}
	a.byPSN[place] = h
}

// toward is the half that goes a datagram's way to a queue pair, nil for none; e gets
// the datagram's ends, as far as they are remembered.
func (t *Tracker) toward(d *Datagram, qpn uint32, e *ends) *half {
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
func (t *Tracker) half(h *half, d *Datagram, e *ends) *half {
	if h == nil {
		return t.begin(d, e)
	}
	if h.started && d.Packet.Opcode.Info().Request && h.reused(d.Packet.PSN) {
		t.replace(h.conn)
		return t.begin(d, e)
	}
	if h.alone == nil {
		return h
	}
	if h.tries++; h.tries > decideAtMost && h.tries&63 != 0 {
		return h
	}
	if across := t.across(h.route.back, h, d); across != nil && !(across.conn.decided && h.conn.decided) {
		t.join(across, h)
	}
	return h
}

// begin makes the half of a packet that belongs to none.
func (t *Tracker) begin(d *Datagram, e *ends) *half {
	t.endsOf(d, e)
	if across := t.across(t.routes.across(*e), nil, d); across != nil {
		return t.attach(across.conn, across.side.Other(), *e, d.Packet.DestQPN)
	}
	c := t.connect()
	h := t.attach(c, 0, *e, d.Packet.DestQPN)
	t.undecided.Push(c)
	return h
}

// reused says that a request cannot belong to the connection that its queue
// pair's number stood for.
func (h *half) reused(psn uint32) bool {
	delta := psns.delta(psn, h.expect)
	if h.conn.closing {
		return delta > 64 || delta < -1<<16
	}
	return delta > maxJump || delta < -maxJump
}

// across finds the other direction of a packet whose own has none: among the
// halves between the same two ends that are alone as well, the one whose PSNs,
// XIDs or handles fit. What it costs does not depend on how many there are. back is
// the packet's route the other way, nil when nothing goes that.
func (t *Tracker) across(back *route, h *half, d *Datagram) *half {
	if back == nil || len(back.halves) == 0 {
		return nil
	}
	a := &back.alone
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
		for across := a.byPSN[place]; across != nil && n < lookAt; across, n = across.next, n+1 {
			if across != h && t.fits(across, p, info) {
				return across
			}
		}
	}
	for range min(lookAt, len(a.halves)) {
		a.cursor++
		across := a.halves[a.cursor%len(a.halves)]
		if across != h && t.fits(across, p, info) {
			return across
		}
	}
	return nil
}

// fits says whether a packet that goes one way shows that it belongs with the
// half that goes the other way.
func (t *Tracker) fits(across *half, p *rocev2.Packet, info *rocev2.OpcodeInfo) bool {
	c := across.conn
	if c.closing {
		return false
	}
	switch info.Kind {
	case rocev2.KindAcknowledge, rocev2.KindReadResponse, rocev2.KindAtomicAck:
		if !across.started {
			return false
		}
		if delta := psns.delta(p.PSN, across.expect); delta < 0 && delta > -fitWindow {
			return true
		}
		return info.Kind == rocev2.KindReadResponse && across.ops.at(psns, p.PSN) != nil
	case rocev2.KindSend:
		if info.First && len(p.Payload) >= 4 && c.follower.Knows(across.side, Send, be.Uint32(p.Payload), 0, 0) {
			return true
		}
	case rocev2.KindReadRequest, rocev2.KindWrite:
		kind := Write
		if info.Kind == rocev2.KindReadRequest {
			kind = Read
		}
		if p.Headers&rocev2.HasRETH != 0 && c.follower.Knows(across.side, kind, p.RETH.RKey, p.RETH.VirtualAddress, p.RETH.DMALength) {
			return true
		}
	}
	// Acknowledgements that came before the first request did.
	if !across.acksSeen {
		return false
	}
	delta := psns.delta(p.PSN, across.lastAck)
	return delta > 0 && delta < fitWindow
}

// join makes one connection of two halves.
func (t *Tracker) join(across, h *half) {
	c, old := across.conn, h.conn
	if old.decided || old.handshake && !c.handshake { // the one that has an id, or says more, stays
		across, h = h, across
		c, old = old, c
	}
	from, to := h.side, across.side.Other()
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
	old.halves[from] = nil
	bytes := old.share.Bytes() - connCost
	t.unlist(h)
	t.unlink(old)
	c.share.Charge(bytes)
	h.conn, h.side = c, to
	c.poor = c.poor || old.poor
	c.marked, c.cnps = c.marked+old.marked, c.cnps+old.cnps
	if old.hearsay[from] {
		c.hearsay[to] = true
	}
	c.halves[to] = h
	for i := h.ops.head; i < len(h.ops.entries); i++ {
		h.ops.entries[i].op.Side, h.ops.entries[i].op.conn = to, c
	}
	if t.happened.Conn == old {
		t.happened.Conn = c
	}
	t.pair(c)
}
