package dissect

import (
	"slices"

	"github.com/rdmadump/rdmadump/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// The transports of connections.
const (
	transportRoCEv2     = "RoCEv2"
	transportRoCEv1     = "RoCEv1"
	transportInfiniBand = "InfiniBand"
	transportIWARP      = "iWARP"
)

func transportName(c link.Carries) string {
	switch c {
	case link.CarriesRoCEv1:
		return transportRoCEv1
	case link.CarriesInfiniBand:
		return transportInfiniBand
	case link.CarriesTCP:
		return transportIWARP
	}
	return transportRoCEv2
}

// transport takes a decoded InfiniBand packet to its connection and returns
// that, nil when it has none.
func (d *Dissector) transport(carries link.Carries, icrc rocev2.ICRCResult) *conn {
	p, l, at := &d.packet, &d.link, d.now
	src, dst := address{l.Src, l.SrcLID}, address{l.Dst, l.DstLID}
	service := p.Opcode.Transport()
	if service == rocev2.UD {
		if p.DestQPN != 1 || icrc == rocev2.ICRCBad {
			return nil // datagrams of others, multicast
		}
		c := d.manage(p, src, dst, at)
		if c != nil {
			c.record.Transport = transportName(carries)
			d.count(c, at)
		}
		return c
	}
	info := p.Opcode.Info()
	if !info.Known || service == rocev2.RD {
		return nil
	}
	f := d.flow(flowKey{src, dst, p.DestQPN}, p, info, at)
	if f == nil {
		return nil
	}
	c := f.conn
	c.record.Transport = transportName(carries)
	d.count(c, at)
	if icrc == rocev2.ICRCBad {
		// The receiver drops it, when ICRCs of this connection are to be
		// trusted: some captures are taken before the adapter fills it in.
		if c.goodICRC {
			d.find(ruleICRC, c, nil, nil, at, "packet with PSN %d has a bad ICRC: the receiver drops it", p.PSN)
			return c
		}
	} else if icrc == rocev2.ICRCOk {
		c.goodICRC = true
	}
	switch {
	case info.Kind == rocev2.KindCongestion:
	case service == rocev2.UC:
		d.unreliable(f, p, at)
	case info.Request:
		if c.handshake && c.record.Established == nil && f.side == 0 {
			d.establish(c, at)
		}
		d.request(f, p, at)
	default:
		d.response(f, p, info, at)
	}
	return c
}

// unreliable takes a packet of an unreliable connection: nothing is repeated,
// what is missing is lost.
func (d *Dissector) unreliable(f *flow, p *rocev2.Packet, at stamp) {
	if f.started && rocev2.PSNDelta(p.PSN, f.expect) < 0 {
		f.conn.record.OutOfOrder++
		return
	}
	if f.started {
		d.lost(f, p.PSN, at)
	}
	f.started = true
	d.accept(f, p, at)
}

func (d *Dissector) count(c *conn, at stamp) {
	c.record.Packets++
	c.record.Last = at.time
}

// newConn starts a connection.
func (d *Dissector) newConn(at stamp) *conn {
	if len(d.live) >= maxConnections {
		d.limit("connections")
		oldest := d.live[0]
		for _, c := range d.live {
			if c.record.Last < oldest.record.Last {
				oldest = c
			}
		}
		d.retire(oldest)
	}
	c := &conn{id: d.conns, client: -1}
	d.conns++
	c.record.First, c.record.Last = at.time, at.time
	for side := range c.open {
		c.open[side], c.exposed[side] = map[uint32]*txn{}, map[uint32]*segment{}
	}
	d.live = append(d.live, c)
	return c
}

// attach makes a direction of a connection. One that used the same key before
// is over.
func (d *Dissector) attach(c *conn, side int, key flowKey, at stamp) *flow {
	if old := d.flows[key]; old != nil && old.conn != c {
		d.close(old.conn, "queue pair used again", at)
		d.forget(old)
	}
	f := &flow{key: key, conn: c, side: side}
	c.flows[side] = f
	d.flows[key] = f
	return f
}

// forget takes a flow out of the look-up tables.
func (d *Dissector) forget(f *flow) {
	if d.flows[f.key] == f {
		delete(d.flows, f.key)
	}
	for i := range d.recent {
		if d.recent[i] == f {
			d.recent[i] = nil
		}
	}
}

// retire hands out the record of a connection and forgets it.
func (d *Dissector) retire(c *conn) {
	if !c.closed {
		d.flush(c, d.now)
	}
	i := slices.Index(d.live, c)
	if i < 0 {
		return
	}
	d.live = slices.Delete(d.live, i, i+1)
	c.closed = true
	for _, f := range c.flows {
		if f != nil {
			d.forget(f)
		}
	}
	for _, id := range []uint32{c.requester, c.responder} {
		for side := range 2 {
			a, _, _ := c.sideAddress(side)
			if key := (commID{a, id}); d.comms[key] == c {
				delete(d.comms, key)
			}
		}
	}
	for _, t := range d.ending.all() { // their records point into the connection
		if t.conn == c {
			d.emit(t)
		}
	}
	d.retired++
	if d.handler.Connection != nil {
		d.handler.Connection(toConnection(c.finish()))
	}
}

// flow finds the direction that a packet belongs to. One that nobody announced
// starts a connection, or joins one that was seen in the other direction.
func (d *Dissector) flow(key flowKey, p *rocev2.Packet, info *rocev2.OpcodeInfo, at stamp) *flow {
	slot := &d.recent[key.qpn&7]
	f := *slot
	if f == nil || f.key != key {
		f = d.flows[key]
		if f == nil {
			return d.join(key, p, info, at)
		}
		*slot = f
	}
	if info.Request && f.started && d.reused(f, p) {
		d.close(f.conn, "queue pair used again", at)
		for _, old := range f.conn.flows {
			if old != nil {
				d.forget(old)
			}
		}
		return d.join(key, p, info, at)
	}
	if f.conn.flows[other(f.side)] == nil {
		if f.tries++; f.tries < 256 || f.tries&63 == 0 {
			return d.join(key, p, info, at)
		}
	}
	return f
}

// reused says that a request cannot belong to the connection that its queue
// pair's number stood for.
func (d *Dissector) reused(f *flow, p *rocev2.Packet) bool {
	delta := rocev2.PSNDelta(p.PSN, f.expect)
	if f.conn.closed {
		return delta > 64 || delta < -1<<16
	}
	return delta > maxJump || delta < -maxJump
}

// join finds the other direction of a flow that has none: among the flows
// between the same two ends that have none either, the one whose PSNs, XIDs or
// handles fit this packet.
func (d *Dissector) join(key flowKey, p *rocev2.Packet, info *rocev2.OpcodeInfo, at stamp) *flow {
	f := d.flows[key]
	for _, candidate := range d.live {
		if candidate.closed || f != nil && candidate == f.conn {
			continue
		}
		for side, across := range candidate.flows {
			if across == nil || candidate.flows[other(side)] != nil || across.key.src != key.dst || across.key.dst != key.src {
				continue
			}
			if !d.fits(across, f, p, info) {
				continue
			}
			if f == nil {
				return d.attach(candidate, other(side), key, at)
			}
			return d.adopt(candidate, other(side), f)
		}
	}
	if f == nil {
		c := d.newConn(at)
		c.undecided = true
		f = d.attach(c, 0, key, at)
	}
	return f
}

// fits says whether a packet that goes one way shows that it belongs with the
// requests that go the other way.
func (d *Dissector) fits(across, f *flow, p *rocev2.Packet, info *rocev2.OpcodeInfo) bool {
	c := across.conn
	switch info.Kind {
	case rocev2.KindAcknowledge, rocev2.KindReadResponse, rocev2.KindAtomicAck:
		if !across.started {
			return false
		}
		if delta := rocev2.PSNDelta(p.PSN, across.expect); delta < 0 && delta > -fitWindow {
			return true
		}
		return across.findRead(p.PSN) != nil
	case rocev2.KindSend:
		if c.isRPC && info.First && len(p.Payload) >= 4 && c.open[across.side][be.Uint32(p.Payload)] != nil {
			return true
		}
	case rocev2.KindReadRequest, rocev2.KindWrite:
		if p.Headers&rocev2.HasRETH != 0 && c.isRPC && c.memory(across.side, p.RETH.RKey, p.RETH.VirtualAddress, p.RETH.DMALength) != nil {
			return true
		}
	}
	// Acknowledgements that came before the first request did.
	return across.acksSeen && rocev2.PSNDelta(p.PSN, across.lastAck) > 0 && rocev2.PSNDelta(p.PSN, across.lastAck) < fitWindow
}

// fitWindow is how far apart PSNs may be to belong together: small enough that
// two connections between the same ends, which start at random, are told apart.
const fitWindow = 1 << 12

// adopt moves a flow that had a connection of its own into another as its other
// direction.
func (d *Dissector) adopt(c *conn, side int, f *flow) *flow {
	old := f.conn
	if old.handshake && !c.handshake { // keep the one that says more
		return d.swap(old, f, c, side)
	}
	c.record.Packets += old.record.Packets
	c.record.Retransmitted += old.record.Retransmitted
	c.record.OutOfOrder += old.record.OutOfOrder
	c.record.Lost += old.record.Lost
	c.record.Transactions += old.record.Transactions
	c.record.First = min(c.record.First, old.record.First)
	if c.mtu == 0 {
		c.mtu = old.mtu
	}
	from := f.side
	for xid, t := range old.open[from] {
		t.conn, t.side = c, side
		c.open[side][xid] = t
	}
	for handle, s := range old.exposed[from] {
		c.exposed[side][handle] = s
	}
	for _, t := range d.ending.all() {
		if t.conn == old {
			t.conn = c
			t.rec.Connection = c.id
			if t.side == from {
				t.side = side
			} else {
				t.side = other(side)
			}
		}
	}
	for _, t := range c.open[side] {
		t.rec.Connection = c.id
	}
	if old.isRPC {
		c.isRPC, c.undecided, c.record.UpperLayer = true, false, upperRPC
	}
	if c.client < 0 && old.client >= 0 {
		if old.client == from {
			c.client = side
		} else {
			c.client = other(side)
		}
	}
	c.peak[side] = max(c.peak[side], old.peak[from])
	c.requested[side], c.granted[other(side)] = orKeep(c.requested[side], old.requested[from]), orKeep(c.granted[other(side)], old.granted[other(from)])
	if i := slices.Index(d.live, old); i >= 0 {
		d.live = slices.Delete(d.live, i, i+1)
	}
	f.conn, f.side = c, side
	c.flows[side] = f
	return f
}

// swap adopts the other way round, and returns the flow that was to be adopted.
func (d *Dissector) swap(old *conn, f *flow, c *conn, side int) *flow {
	d.adopt(old, other(f.side), c.flows[other(side)])
	return f
}

func orKeep(a, b *uint32) *uint32 {
	if a == nil {
		return b
	}
	return a
}
