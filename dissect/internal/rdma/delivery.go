package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/rocev2"
)

// Delivery: which captured copy of a request its receiver accepted.
//
// A capture holds what was sent past the capture point. A receiver of a reliable
// connection accepts requests in the order of their sequence numbers, each once;
// a copy that came out of order, or with a bad checksum, it drops. Responses tell
// how far it had come when it sent them. From both follows, once a response covers
// an operation, which copy of the operation's last packet was accepted.

// receiver is how far the receiver of a half's requests has come, as far as the
// capture shows.
type receiver struct {
	next  uint32 // the PSN that it expects next
	known bool
}

// arrival says what the receiver does with a copy of a request.
type arrival uint8

const (
	inOrder arrival = iota // it is the one that the receiver expects
	ahead                  // an earlier request is still missing at the receiver
	behind                 // the receiver has it already: a retransmission
)

// arrives returns what the receiver does with a request.
func (r *receiver) arrives(psn uint32) arrival {
	switch delta := psns.delta(psn, r.next); {
	case delta == 0:
		return inOrder
	case delta > 0:
		return ahead
	}
	return behind
}

// copies are the captured copies of the packet that ends an operation. A stamp
// without a packet number means that there was none.
type copies struct {
	accepted  record.Stamp // it came in order
	early     record.Stamp // the latest that came ahead of its turn
	again     record.Stamp // the latest that came after one in order
	newest    record.Stamp // the latest of all
	print     uint32       // ICRC of the latest
	decided   bool
	delivered Delivery
}

// Delivery says when an operation's last packet was accepted by its receiver.
type Delivery struct {
	At       record.Stamp // the copy that was accepted
	Earliest record.Stamp // the first copy that may have been accepted; At, if there is no doubt
	Certain  bool         // it is known which copy it was
}

// Delivered returns when the operation was accepted by its receiver, and whether
// the capture tells.
func (o *Operation) Delivered() (d Delivery, known bool) {
	return o.copies.delivered, o.copies.decided
}

// note notes a copy of the packet that ends an operation.
func (c *copies) note(a arrival, at record.Stamp, print uint32) {
	switch a {
	case inOrder:
		c.accepted = at
	case ahead:
		c.early = at
	default:
		c.again = at
	}
	c.newest, c.print = at, print
}

// networkCopy reports whether a packet is a copy of the one before that the
// network made: the same bytes, with the same IP identification, or, if there is
// none, so soon that no sender retransmits.
func (c *copies) networkCopy(d *Datagram) bool {
	return c.newest.Packet != 0 && d.print != 0 && c.print == d.print && (d.Identification != 0 || d.At.Time-c.newest.Time <= copyWithin)
}

// copyWithin is how soon after a packet the network delivers its second copy.
const copyWithin = record.Time(5e6)

// rollBack notes that the receiver refused what it got from a PSN on: it expects
// that PSN again.
func (t *Tracker) rollBack(f *flow, psn uint32) {
	if !f.receiver.known {
		return
	}
	if psns.delta(psn, f.receiver.next) < 0 {
		for i := len(f.ops.entries) - 1; i >= f.ops.head; i-- {
			e := &f.ops.entries[i]
			if psns.delta(psns.add(e.to, psns.add(0, rocev2.PSNMask)), psn) < 0 { // its last PSN
				break
			}
			if c := &e.op.copies; e.op.Side == f.side && !c.decided {
				if c.accepted.Packet != 0 {
					c.early = c.accepted
				}
				c.accepted, c.again = record.Stamp{}, record.Stamp{}
			}
		}
	}
	f.receiver.next = psn
}

// covers decides which copies of the entries [lo, hi) of a half's ledger were
// accepted: all of them were before a response that was sent at that time. It goes
// from the newest back, because each was accepted before the next.
func (t *Tracker) decideCopies(f *flow, lo, hi int, at record.Stamp) {
	bound := at
	for i := hi - 1; i >= lo; i-- {
		o := f.ops.entries[i].op
		if c := &o.copies; o.Side == f.side && !c.decided {
			if f.stream != nil && c.accepted.Packet == 0 { // TCP delivers in order: with this packet the operation was whole
				c.accepted = o.Last
			}
			c.decide(o.Last, bound)
			bound = c.delivered.At
		}
	}
	for i := lo; i < hi; i++ {
		o := f.ops.entries[i].op
		c := &o.copies
		if o.Side != f.side || !c.decided || c.delivered.At.Packet == 0 {
			continue
		}
		if c.delivered.At.Time < f.accepted { // it reached its owner only when those before it had
			c.delivered.At.Time = f.accepted
		}
		f.accepted = c.delivered.At.Time
	}
}

// decide picks the copy that was accepted, of those before a bound; last is the
// packet with which the capture completed the operation.
func (c *copies) decide(last, bound record.Stamp) {
	first := c.accepted
	certain := first.Packet != 0
	switch {
	case certain:
	case c.again.Packet != 0:
		first = c.again
	case c.early.Packet != 0:
		first = c.early
	default:
		first = last
	}
	d := Delivery{At: first, Earliest: first, Certain: certain}
	if again := c.again; again.Packet > first.Packet && again.Packet < bound.Packet {
		d.At, d.Certain = again, false
	} else if first.Packet >= bound.Packet && c.early.Packet != 0 && c.early.Packet < bound.Packet {
		d.At, d.Earliest, d.Certain = c.early, c.early, false
	}
	c.delivered, c.decided = d, true
}

// Accepted notes that the upper layer of a side has shown that it has received
// the operation with this Seq, and so all before it: it answered, or used the
// memory that the operation exposed.
// It returns when that operation was accepted, and whether the capture tells.
func (c *Conn) Accepted(s Side, seq uint64, at record.Stamp) (d Delivery, known bool) {
	f := c.flows[s]
	if f == nil {
		return d, false
	}
	l := &f.ops
	hi := l.unacked
	for hi < len(l.entries) && l.entries[hi].op.Seq <= seq {
		hi++
	}
	c.tracker.decideCopies(f, l.unacked, hi, at)
	if hi == l.unacked || l.entries[hi-1].op.Seq != seq {
		return d, false
	}
	return l.entries[hi-1].op.Delivered()
}

// DecidesWithin returns how long after an operation a response to it can still
// come, on the clock of the capture.
func (c *Conn) DecidesWithin() record.Time {
	const longest = record.Time(4e9)
	if t, known := c.timer(); known && t > 0 {
		return min(4*t, longest)
	}
	return longest
}

// Acknowledges reports whether the capture has acknowledgements of what a side
// sent.
func (c *Conn) Acknowledges(s Side) bool {
	f := c.flows[s]
	return f != nil && (f.hasAck || f.stream != nil && f.stream.acked)
}
