package rdma

import (
	"math/bits"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/order"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/rocev2"
)

// What counts as a retransmission, on both transports: a request whose sequence number its sender
// used before, unless the network duplicated the packet, or the capture shows it a second time.
// Package cause decides why it was retransmitted, and delivery.go which copy was accepted.

// takeOldRequest takes a request with a PSN below the expected one: it is a
// retransmission, or was counted as not captured before.
func (f *flow) takeOldRequest(d *Datagram, cur *currentPacket) {
	psn, at := d.Packet.PSN, d.At
	o, to, turn, network := f.ops.copied(d)
	f.conn.tracker.Why.receives(f, psn, turn)
	if network && d.Identification != 0 {
		cur.mark(o, record.Duplicated)
		return
	}
	if d.Path.Copy {
		cur.mark(o, 0)
		return
	}
	f.cause.Retry(psn, f.order.IsAcked(psn), at)
	if o != nil && o.Kind == Write {
		offset := int64(uint32(order.PSNs.Delta(psn, o.from))) * int64(o.size)
		cur.noteBytes(o, o.Offset+uint64(offset), min(int64(o.size), o.Length-offset))
	}
	var b *Burst
	if !f.networkCopy(d) {
		b = f.burstOf(order.Run{From: psn, To: to}, o, at)
	}
	f.retransmitted(o, b, cur)
}

// isRepeat implements [taken].
func (d *Datagram) isRepeat(f *flow, _ *order.Fact[held], cur *currentPacket) bool {
	if d.Packet.Opcode.Transport() != rocev2.RC || !f.wasIdle(d.Path, d.At) {
		return false
	}
	psn := d.Packet.PSN
	o := f.ops.at(psn)
	b := f.burstOf(order.One(psn), o, d.At)
	if o == nil { // it was counted as not captured
		f.conn.follower.Operation(Event{What: Retransmitted, Op: &Operation{Side: f.side, Kind: kindOf(d.Packet.Opcode), conn: f.conn}, By: f.side, At: cur.at, Burst: b})
	}
	f.retransmitted(o, b, cur)
	return true
}

// wasIdle reports whether the sender of a packet was idle for as long as its timer before it sent the packet. If the packet was
// captured when it left its sender, then so were its earlier copies, and no idle time has to show that there were any.
func (f *flow) wasIdle(p Path, at record.Stamp) bool {
	return !p.LeftSender() && f.cause.Expired(p.FirstSeen(at.Time), f.timer())
}

// damagedRequest takes a request with a bad ICRC, which its receiver drops. It shows that
// its sender was not idle and, if the request was sent before, a retransmission. The
// opcode has to be that of the operation, because the damage may be in the PSN, and the operation must
// not be acknowledged, because no sender retransmits it then.
func (f *flow) damagedRequest(d *Datagram) {
	psn := d.Packet.PSN
	if !f.isNear(psn) {
		f.qp.keepDamaged(d)
		return
	}
	o := f.ops.at(psn)
	item := f.waiting().Item(order.PSNs, psn)
	switch {
	case o != nil && o.Side == f.side && o.Kind == kindOf(d.Packet.Opcode) && !o.acked:
		f.damaged(o, d.At, f.burstOf(order.One(psn), o, d.At))
	case item != nil:
		item.keep(f, heldCopy{at: d.At, damaged: true}, f.burstOf(order.One(psn), nil, d.At))
	default:
		f.qp.keepDamaged(d)
	}
	f.noteRequested(d.At)
}

// isNear reports whether a PSN is near that of the next request, so that it is not damaged.
func (f *flow) isNear(psn uint32) bool {
	delta := order.PSNs.Delta(psn, f.order.Expected())
	return f.order.Begun() && delta <= order.Near && delta >= -order.Near
}

// damagedResponse takes a response with a bad ICRC, which its receiver drops. If it is a NAK, the
// receiver does not learn that it has to retransmit.
func (f *flow) damagedResponse(d *Datagram) {
	p, asker := d.Packet, f.peer()
	if asker == nil || p.Opcode.Info().Kind != rocev2.KindAcknowledge || !p.AETH.Syndrome.IsNak() && !p.AETH.Syndrome.IsRNR() {
		return
	}
	if o := asker.ops.at(p.PSN); o != nil {
		asker.damagedNak(o, d.At)
	} else if item := asker.waiting().Item(order.PSNs, p.PSN); item != nil {
		item.keep(asker, heldCopy{at: d.At, nak: true}, nil)
	}
}

// damagedNak reports a NAK of an operation that its receiver, the sender of f, drops; o is nil if
// the operation is not known.
func (f *flow) damagedNak(o *Operation, at record.Stamp) {
	if o != nil && o.Side == f.side {
		f.conn.follower.Operation(Event{What: DamagedNak, Op: o, By: f.side.Other(), At: at})
	}
}

// damagedSend is a Send in one packet that has a bad ICRC, so that its receiver drops it. Any part
// of the packet may be damaged, and its contents prove nothing.
type damagedSend struct {
	at   record.Stamp
	psn  uint32
	next uint32 // the PSN that the receiver expected
	size int    // bytes of the payload
}

// isCopyOf reports whether a Send with a PSN is the damaged one: its size is equal, and its PSN is
// equal or was expected and differs in the one bit that was damaged.
func (d *damagedSend) isCopyOf(psn uint32, size int) bool {
	return d.size == size && (d.psn == psn || d.next == psn && bits.OnesCount32(d.psn^psn) == 1)
}

// maxDamaged is the number of damaged Sends of a queue pair that are kept.
const maxDamaged = 8

// keepDamaged keeps a damaged packet if it is a Send in one packet, and the PSN of one that was expected.
func (q *queuePair) keepDamaged(d *Datagram) {
	p := d.Packet
	q.breaks(p.PSN)
	if info := p.Opcode.Info(); info.Kind != rocev2.KindSend || !info.First || !info.Last {
		return
	}
	if len(q.damaged) == maxDamaged {
		q.damaged = slices.Delete(q.damaged, 0, 1)
	}
	q.damaged = append(q.damaged, damagedSend{at: d.At, psn: p.PSN, next: q.flow.order.Expected(), size: p.PayloadLength})
}

// breaks notes that a request did not come to its receiver, or was damaged, if its PSN was expected.
func (q *queuePair) breaks(psn uint32) {
	if q.flow.order.Begun() && psn == q.flow.order.Expected() {
		q.broken = record.Some(psn)
	}
}

// takeDamaged returns the first damaged copy of a Send in one packet, and false if there is none. It forgets all of them.
func (q *queuePair) takeDamaged(p part) (first record.Stamp, found bool) {
	q.damaged = slices.DeleteFunc(q.damaged, func(d damagedSend) bool {
		is := d.isCopyOf(p.From, p.size)
		if is && !found {
			first, found = d.at, true
		}
		return is
	})
	return first, found
}

// kindOf returns the kind of the operation that a request belongs to.
func kindOf(op rocev2.Opcode) Kind {
	switch op.Info().Kind {
	case rocev2.KindWrite:
		return Write
	case rocev2.KindReadRequest:
		return Read
	case rocev2.KindAtomic:
		return Atomic
	}
	return Send
}

// retransmitted counts and reports a retransmitted packet; o is nil if its operation is
// not known.
func (f *flow) retransmitted(o *Operation, b *Burst, cur *currentPacket) {
	f.noteRetransmission(o, cur, Event{What: Retransmitted, Op: o, By: f.side, At: cur.at, Burst: b})
}

// noteRetransmission counts and reports a retransmission, as an event.
func (f *flow) noteRetransmission(o *Operation, cur *currentPacket, e Event) {
	c := f.conn
	f.repeats()
	c.record.counts.Retransmitted++
	way := &f.way
	way.Again++
	switch e.Burst {
	case nil: // why it was retransmitted is not known, because what came before it has passed
		if e.At.Time-f.again >= separately {
			way.Bursts++
		}
	default:
		if asker := f.peer(); e.Burst.Number != f.burst && (asker == nil || e.Burst.Number != asker.burst) { // a response is repeated with its request
			way.Bursts++
			f.troubledBy(e.Burst, e.At)
		}
		f.burst = e.Burst.Number
	}
	f.again = e.At.Time
	cur.mark(o, record.Retransmitted)
	if o != nil {
		o.noteRetransmitted(f.side, e.Burst, cur.at)
	}
	if o == nil || c.follower.Operation(e) == Unassigned {
		c.record.unassigned++
	}
}

// separately is the time between retransmissions without a known cause that are separate events.
const separately = record.Time(10e6)

// troubledBy notes a burst of retransmissions of the flow. One that a NAK asked for follows the trouble that the NAK is.
func (f *flow) troubledBy(b *Burst, at record.Stamp) {
	if kind, is := troubles[b.Cause]; is {
		f.conn.troubled(trouble{kind, at, f, b.From})
	}
}

var troubles = map[record.WaitReason]record.Trouble{
	record.RetransmitTimeout: record.TroubleTimeout, record.RetransmitGap: record.TroubleGap, record.RetransmitUnknown: record.TroubleUnknown,
}

// damaged reports a retransmitted request that its receiver drops, because its ICRC is bad;
// o is nil if its operation is not known.
func (f *flow) damaged(o *Operation, at record.Stamp, b *Burst) {
	if o != nil {
		f.conn.follower.Operation(Event{What: Damaged, Op: o, By: f.side, At: at, Burst: b})
	}
}

// duplicates reports whether the packet is a duplicate that the network made of an earlier
// packet of the same sender, of which the ICRC and the time are given: it has the same
// bytes and the same IP identification, or, without an identification, comes sooner than
// any sender retransmits.
func (d *Datagram) duplicates(print uint32, at record.Time) bool {
	if d.Path.Joined {
		return d.Path.Copy
	}
	return d.print != 0 && d.print == print && (d.Identification != 0 || d.At.Time-at <= copyWithin)
}

// copyWithin is the maximum time between a packet and a duplicate that the network made
// of it.
const copyWithin = record.Time(5e6)

// exhausted returns a flow whose sender retransmitted without an acknowledgement until it stopped, nil if there is none.
func (c *Conn) exhausted() *flow {
	for f := range c.known {
		if _, _, exhausted := f.cause.Exhausted(); exhausted {
			return f
		}
	}
	return nil
}
