package rdma

import (
	"net/netip"

	"github.com/rdmadump/rdmadump/dissect/internal/order"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// RPC over UDP. Each datagram is a Send that contains one RPC message (RFC 5531 s.11 needs
// no record marking for it). A pair of addresses and ports is a connection without a
// handshake, which ends when it was idle for a time.

// UDP is a datagram with its time. BadChecksum is set if its receiver drops it.
type UDP struct {
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
	Payload          []byte // captured bytes
	Length           int    // bytes on the wire
	BadChecksum      bool
	Class            uint8 // traffic class
	At               record.Stamp
	Path             Path // with several capture points
}

// datagrams takes UDP datagrams that carry RPC.
type datagrams struct {
	tracker     *Tracker
	connections *connections

	flows map[streamKey]*flow
	idle  timerQueue // all connections, by the time at which they were last looked at
}

// idleUDP is the time on the tracker's clock after which a UDP connection without packets
// is finished.
const idleUDP = record.Time(120e9)

// datagramFlow is the half of a UDP connection.
type datagramFlow struct {
	flow *flow
	key  streamKey
	next uint32 // number of the next datagram
}

// UDP lacks sequence numbers and acknowledgements. A capture cannot prove that it has all
// datagrams, so awaited is always true.

func (d *datagramFlow) announcedFirst() bool                                { return false }
func (d *datagramFlow) awaited() bool                                       { return true }
func (d *datagramFlow) destination() (none record.Opt[record.Hex24])        { return none }
func (d *datagramFlow) begins(*order.Fact[held])                            {}
func (d *datagramFlow) misses(*order.Fact[held])                            {}
func (d *datagramFlow) acceptHeld(_ *order.Fact[held], _, _ *currentPacket) {}
func (d *datagramFlow) acceptSent()                                         {}
func (d *datagramFlow) flush()                                              {}
func (d *datagramFlow) evict() bool                                         { return false }

func (d *datagramFlow) unlist() {
	if t := d.flow.conn.tracker; t.udp.flows[d.key] == d.flow {
		delete(t.udp.flows, d.key)
	}
}

// Datagram takes a UDP datagram, and returns the verdict on it. It returns false if the
// datagram carries no RPC.
func (t *Tracker) Datagram(d *UDP) (verdict *PacketVerdict, rpc bool) {
	cur := t.begin(d.At, d.Class)
	rpc = t.udp.take(d, cur)
	t.settle(cur)
	return &cur.PacketVerdict, rpc
}

func (us *datagrams) take(d *UDP, cur *currentPacket) bool {
	kind, ok := oncrpc.Plausible(d.Payload, d.Length, len(d.Payload) < d.Length)
	if !ok {
		return false
	}
	f := us.of(d, kind)
	if f == nil {
		return false
	}
	f.conn.took(UDPTransport, cur)
	f.notePacket(false)
	if d.BadChecksum {
		us.tracker.BadChecksum++
		cur.mark(nil, record.BadChecksum)
		return true
	}
	w := f.half.(*datagramFlow)
	n := w.next
	w.next++
	var lost record.Stamp // an earlier copy of a Reply
	if d.Path.Joined {
		if d.Path.Copy {
			cur.mark(nil, record.Duplicated)
			return true
		}
		if f.noteSent(order.Run{From: n, To: n + 1}, d.Path); d.Path.Sent.Packet != 0 && len(d.Payload) >= 4 {
			if first := f.sent.Message(be.Uint32(d.Payload)); first != d.Path.Sent {
				lost = first
			}
		}
	}
	cur.Offset = f.offsets.requests(order.Octets, n)
	us.tracker.contents.beginPayloadPacket(cur.Offset)
	f.sendPart(part{first: true, last: true, data: d.Payload, size: d.Length, cut: len(d.Payload) < d.Length, Run: order.Run{From: n, To: n + 1}}, cur)
	us.tracker.contents.reportPayload()
	f.offsets.advance(order.Octets, n)
	if e := f.ops.last(); e != nil {
		cur.mark(e.op, 0)
	}
	if e := f.ops.last(); d.Path.Joined && e != nil {
		if lost.Packet != 0 {
			f.lost(e.op, &Loss{At: lost})
		}
		if d.Path.Lost {
			f.lost(e.op, &Loss{At: d.Path.Harmed(d.At), Damaged: !d.Path.Gone, BadChecksum: d.Path.BadChecksum})
		}
		us.arrived(f, d)
	}
	for f.ops.len() > keepDatagrams { // nothing more happens to them
		f.forgetOldest()
	}
	return true
}

// of returns the flow of a datagram, which it may start; nil if there is none.
func (us *datagrams) of(d *UDP, kind oncrpc.MessageType) *flow {
	key := streamKey{d.Src, d.Dst, d.SrcPort, d.DstPort}
	if f := us.flows[key]; f != nil {
		return f
	}
	return us.start(key, kind, d)
}

// keepDatagrams is the number of the latest datagrams of a flow that are kept.
const keepDatagrams = 4

// start starts the flow of a datagram, and its connection if the other direction is not known.
func (us *datagrams) start(key streamKey, kind oncrpc.MessageType, d *UDP) *flow {
	if back := us.flows[key.reversed()]; back != nil {
		if back.conn.flows[back.side.Other()] != nil {
			return nil // a host that sends to itself, from and to one port
		}
		return us.attach(back.conn, back.side.Other(), key)
	}
	ports := us.tracker.portOf(true, key)
	if ports == OtherPort || d.BadChecksum || kind == oncrpc.Reply && ports != RPCPort {
		return nil
	}
	side, asks := us.tracker.sideOf(key, true, kind), key
	if side == 1 {
		asks = key.reversed()
	}
	c := us.connections.open(asks.setup(UDPTransport, false))
	c.identify()
	us.idle.Push(c)
	return us.attach(c, side, key)
}

func (us *datagrams) attach(c *Conn, side Side, key streamKey) *flow {
	f := c.addFlow(side, us.connections.hosts.ends(&Address{IP: key.src}, &Address{IP: key.dst}), ledger{circle: order.Octets})
	f.overDatagrams(key)
	us.flows[key] = f
	return f
}

// idleAtMost is the number of forgotten connections in the queue that make it worthwhile to
// remove them.
const idleAtMost = 1024

// expire finishes the connections that were idle. It also removes connections from the queue
// that were forgotten before their time.
func (us *datagrams) expire() {
	if us.idle.Len() > 2*len(us.flows)+idleAtMost {
		for range us.idle.Len() {
			us.requeue()
		}
	}
	for us.idle.Len() > 0 {
		c := us.idle.First()
		switch clock := us.tracker.Clock; {
		case !c.retired && clock-c.since < idleUDP:
			return
		case !c.retired && clock-c.touched < idleUDP:
			c.since = c.touched
			us.requeue()
		default:
			us.idle.Pop()
			c.finish()
		}
	}
}

// requeue puts the first connection of the queue to its end, unless it is forgotten.
func (us *datagrams) requeue() {
	c := us.idle.First()
	if us.idle.Pop(); !c.retired {
		us.idle.Push(c)
	}
}

// PortKind is what a port is used for.
type PortKind uint8

// The kinds of ports.
const (
	UnknownPort PortKind = iota
	RPCPort              // a server's port for RPC
	OtherPort            // the user said that it does not carry RPC
)

// portOf returns what the ports of a packet say about it.
func (t *Tracker) portOf(udp bool, key streamKey) PortKind {
	return max(t.upper.RPCPort(udp, key.srcPort), t.upper.RPCPort(udp, key.dstPort))
}

// sideOf returns the side that is likely to be the sender of a message, if the handshake was
// not captured. Side 0 is the client, which sends Calls, unless they come from the port of a
// server, as the callbacks of NFSv4.1 do.
func (t *Tracker) sideOf(key streamKey, udp bool, kind oncrpc.MessageType) Side {
	from, to := t.upper.RPCPort(udp, key.srcPort), t.upper.RPCPort(udp, key.dstPort)
	backward := from == RPCPort && to != RPCPort && kind == oncrpc.Call || to == RPCPort && from != RPCPort && kind == oncrpc.Reply
	if (kind == oncrpc.Call) != backward {
		return 0
	}
	return 1
}
