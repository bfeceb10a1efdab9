package rdma

import (
	"cmp"
	"slices"
	"time"

	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Delivery: which captured copy of a request its receiver accepted.
//
// A capture contains the packets that passed the capture point. A receiver of a
// reliable connection accepts requests in the order of their sequence numbers, each
// once. It drops a copy that comes out of order or has a bad checksum. Each response
// shows which requests the receiver had accepted when it sent the response. When a
// response covers an operation, both facts together show which copy of the operation's
// last packet was accepted.

// receiver is the progress of the receiver of a flow's requests, as far as the capture
// shows it.
type receiver struct {
	next  uint32 // the PSN that the receiver expects next
	known bool
}

// arrival is what the receiver does with a copy of a request.
type arrival uint8

const (
	inOrder arrival = iota // accepts it: the receiver expects this PSN
	ahead                  // drops it: an earlier request is missing
	behind                 // drops it as a retransmission: the receiver has accepted this PSN already
	arrivals
)

// takes returns what the receiver does with a request, which takes the PSNs up to another one, and moves it on if it accepts it.
func (r *receiver) takes(request order.Run) arrival {
	switch delta := order.PSNs.Delta(request.From, r.next); {
	case delta == 0:
		r.next = request.To
		return inOrder
	case delta > 0:
		return ahead
	}
	return behind
}

// copies are the captured copies of the packet that ends an operation. A stamp without
// a packet number means that there was no such copy.
type copies struct {
	at        [arrivals]record.Stamp // the latest copy of each kind
	newest    record.Stamp           // the latest copy
	print     uint32                 // ICRC of the latest copy
	decided   bool
	final     bool // delivered was compared with the delivery of the operations before, and does not change any more
	moved     bool // they were delivered later than the copy was captured, and delivered has their time
	seen      bool // the copy in order was captured when it came to its receiver
	delivered Delivery
}

// Delivery is the time at which an operation's last packet was accepted by its
// receiver.
type Delivery struct {
	At       record.Stamp // the copy that was accepted
	Earliest record.Stamp // the first copy that may have been accepted; equal to At if it is certain. Without a packet number, that copy was not captured, and was accepted after this time
	Certain  bool         // it is known which copy was accepted
}

// Delivered returns when the operation was accepted by its receiver, and whether the
// capture shows it.
func (o *Operation) Delivered() (d Delivery, known bool) {
	return o.copies.delivered, o.copies.decided
}

// note adds a copy of the packet that ends an operation.
func (c *copies) note(a arrival, at record.Stamp, print uint32) {
	c.at[a], c.newest, c.print = at, at, print
}

// came notes that the only copy came to its receiver, which does not acknowledge it.
func (c *copies) came(at record.Stamp) {
	c.at[inOrder], c.seen, c.decided = at, true, true
	c.delivered = Delivery{At: at, Earliest: at, Certain: true}
}

// complete notes the packet that completed the operation as the copy in order.
func (c *copies) complete(at record.Stamp) { c.at[inOrder] = at }

// refused notes that the receiver refused what it had accepted in order. With several capture points, sent is the time at
// which its NAK left it, otherwise 0: it returns false if the receiver accepted the request after that.
func (c *copies) refused(sent record.Time) bool {
	if sent != 0 && c.at[inOrder].Packet != 0 && c.at[inOrder].Time > sent {
		return false
	}
	if c.at[inOrder].Packet != 0 {
		c.at[ahead] = c.at[inOrder]
	}
	c.at[inOrder], c.at[behind] = record.Stamp{}, record.Stamp{}
	return true
}

// begin notes the first request of the capture.
func (r *receiver) begin(psn uint32) { *r = receiver{psn, true} }

// acceptedTo notes that the receiver has accepted all requests before a PSN.
func (r *receiver) acceptedTo(psn uint32) {
	if r.known && order.PSNs.Delta(psn, r.next) > 0 {
		r.next = psn
	}
}

// rollBack notes that the receiver refused the requests from a PSN on, and expects that
// PSN. With several capture points, sent is the time at which its NAK left it, otherwise 0:
// what it accepted after that is not refused.
func (l *ledger) rollBack(psn uint32, sent record.Time) {
	if !l.receiver.known {
		return
	}
	if order.PSNs.Delta(psn, l.receiver.next) < 0 {
		for i := len(l.entries) - 1; i >= l.head; i-- {
			e := &l.entries[i]
			if order.PSNs.Delta(e.To, psn) <= 0 { // it ends before this PSN
				break
			}
			if c := &e.op.copies; e.op.Side == l.side && !c.decided && !c.refused(sent) {
				return
			}
		}
	}
	l.receiver.next = psn
}

// sentLast notes the first copy of a packet for the operation that it ends, if it ends
// one. Seen is set if that copy was captured when it came to its receiver.
func (l *ledger) sentLast(psn uint32, turn arrival, at record.Stamp, print uint32, seen bool) {
	if last := l.last(); last != nil && last.op.Side == l.side && (last.op.Kind == Read && last.From == psn || order.PSNs.Delta(last.To, psn) == 1) {
		last.op.copies.note(turn, at, print)
		last.op.copies.seen = turn == inOrder && seen
	}
}

// copied notes a further copy of a request. It returns the operation that the copy belongs to, nil if the operation is not known, the
// PSN that follows the request, what the receiver does with the copy, and whether only the network can have made it.
func (l *ledger) copied(d *Datagram) (o *Operation, to uint32, turn arrival, network bool) {
	psn := d.Packet.PSN
	to = order.PSNs.Add(psn, 1)
	i := l.find(psn)
	isLast := false
	if i >= 0 {
		o, isLast = l.entries[i].op, l.entries[i].To == to
		if o.Kind == Read {
			to, isLast = l.entries[i].To, true
		}
	}
	turn = l.receiver.takes(order.Run{From: psn, To: to})
	if isLast {
		switch {
		case d.Path.Joined: // a copy that the network made is accepted, too, if it comes in order
			if d.Path.Copy && turn == behind {
				return o, to, turn, false
			}
		case turn != inOrder && d.duplicates(o.copies.print, o.copies.newest.Time):
			return o, to, turn, true
		}
		o.copies.note(turn, d.At, d.print)
		o.copies.seen = turn == inOrder && d.Path.Arrived || turn != inOrder && o.copies.seen
	}
	return o, to, turn, false
}

// copiedTo notes a retransmission of the bytes from one sequence number to another for the operations that end in it.
func (l *ledger) copiedTo(from, to uint32, at record.Stamp) {
	for i := l.find(from); i >= 0 && i < len(l.entries) && l.circle.Delta(l.entries[i].To, to) <= 0; i++ {
		l.entries[i].op.copies.note(behind, at, 0)
	}
}

// decideCopies decides which copies of the entries [lo, hi) were
// accepted. All of them were accepted before a response that was sent at that time. It
// begins with the newest, because each operation was accepted before a copy of the next one that
// came in order. Entries that an earlier call decided do not change.
func (l *ledger) decideCopies(lo, hi int, at record.Stamp) {
	bound := at
	for i := hi - 1; i >= lo; i-- {
		o := l.entries[i].op
		if c := &o.copies; o.Side == l.side && !c.decided {
			if l.ordered && c.at[inOrder].Packet == 0 { // TCP delivers in order: this packet completed the operation
				c.complete(o.Last)
			}
			if c.decide(o.Last, bound) {
				bound = c.delivered.At
			}
		}
	}
	before := l.deliveredBefore(lo)
	for i := lo; i < hi; i++ {
		o := l.entries[i].op
		c := &o.copies
		if o.Side != l.side || !c.decided || c.delivered.At.Packet == 0 {
			continue
		}
		d := &c.delivered
		if !c.final { // if its copies were captured sooner than those of the operations before it, it was delivered only after these
			c.final = true
			if d.At.Before(before.At) {
				d.At.Time, c.moved = before.At.Time, true
			}
			if d.Earliest.Before(before.Earliest) {
				d.Earliest.Time, c.moved = before.Earliest.Time, true
			}
		}
		before.advance(d)
	}
}

// deliveredBefore returns the latest delivery of the operations before an entry.
func (l *ledger) deliveredBefore(i int) (d Delivery) {
	for i--; i >= l.head; i-- {
		if o := l.entries[i].op; o.Side == l.side && o.copies.final {
			if d.advance(&o.copies.delivered); !o.copies.moved {
				break
			}
		}
	}
	return d
}

// advance takes what is later in another delivery.
func (d *Delivery) advance(other *Delivery) {
	if d.At.Before(other.At) {
		d.At = other.At
	}
	if d.Earliest.Before(other.Earliest) {
		d.Earliest = other.Earliest
	}
}

// slowAck is longer than a receiver takes to acknowledge a request that it accepted. If a copy came to the receiver's capture
// point, and the receiver did not acknowledge it in this time, then the host or its adapter may have dropped it.
const slowAck = 50 * time.Millisecond

// decide selects the copy that was accepted, from the copies before bound, and reports whether it
// came in order. last is the packet with which the capture completed the operation.
func (c *copies) decide(last, bound record.Stamp) (ordered bool) {
	first := c.at[inOrder]
	certain := first.Packet != 0
	ordered = true
	switch {
	case certain:
	case c.at[behind].Packet != 0:
		first = c.at[behind]
	case c.at[ahead].Packet != 0:
		first, ordered = c.at[ahead], false
	default:
		first = last
	}
	d := Delivery{At: first, Earliest: first, Certain: certain}
	if !certain && c.at[behind].Packet != 0 { // the receiver had accepted it before, so another copy was not captured
		d.Earliest = record.Stamp{}
	}
	doubtful := !c.seen || time.Duration(c.at[behind].Time.Sub(first.Time)) > slowAck
	if again := c.at[behind]; doubtful && again.Packet != 0 && first.Before(again) && again.Before(bound) {
		d.At, d.Certain = again, false
	} else if !first.Before(bound) && c.at[ahead].Packet != 0 && c.at[ahead].Before(bound) {
		d.At, d.Earliest, d.Certain = c.at[ahead], c.at[ahead], false
	}
	c.delivered, c.decided = d, true
	return ordered
}

// Accepted notes that the upper layer of a side has shown that it received the
// operation with this Seq, and so all earlier ones: it answered, or used the memory
// that the operation exposed. Accepted returns when the operation was accepted, and
// whether the capture shows it.
func (c *Conn) Accepted(s Side, seq uint64, at record.Stamp) (d Delivery, known bool) {
	f := c.flows[s]
	if f == nil {
		return d, false
	}
	return f.ops.acceptedUpTo(seq, at)
}

// acceptedUpTo does what [Conn.Accepted] says.
func (l *ledger) acceptedUpTo(seq uint64, at record.Stamp) (d Delivery, known bool) {
	hi := l.unacked
	for hi < len(l.entries) && l.entries[hi].op.Seq <= seq {
		hi++
	}
	l.decideCopies(l.unacked, hi, at)
	if hi == l.unacked || l.entries[hi-1].op.Seq != seq {
		return d, false
	}
	return l.entries[hi-1].op.Delivered()
}

// Unanswered returns a request of a side that its receiver did not acknowledge, and the latest copy of it that the receiver may
// have accepted: none if its NAK refused them all. The operation is nil if the request was acknowledged, or is not known any more.
func (c *Conn) Unanswered(s Side, seq uint64) (o *Operation, latest record.Stamp) {
	f := c.flows[s]
	if f == nil || f.qp == nil {
		return nil, latest
	}
	waiting := f.ops.entries[f.ops.unacked:]
	i, found := slices.BinarySearchFunc(waiting, seq, func(e entry, seq uint64) int { return cmp.Compare(e.op.Seq, seq) })
	if !found {
		return nil, latest
	}
	o = waiting[i].op
	nak := f.cause.LastNak()
	switch copies := &o.copies; {
	case copies.at[behind].Packet != 0:
		latest = copies.at[behind]
	case copies.at[inOrder].Packet != 0:
		latest = copies.at[inOrder]
	case nak.At.Packet == 0 || f.order.IsAcked(nak.Seq) || order.PSNs.Delta(waiting[i].From, nak.Seq) < 0:
		latest = o.Last
	}
	return o, latest
}

// Follows reports whether the data of a Read that is being taken was sent after its sender had received a part of the
// request with a tag. It is false if the data does not show that: only TCP segments acknowledge what came before them.
func (o *Operation) Follows(tag Tag) bool {
	f := o.conn.flows[o.Side.Other()]
	if f == nil || f.stream == nil || f.peer() == nil {
		return false
	}
	acked, known := f.stream.acks.Get()
	requests := f.peer().ops.all()
	i := slices.IndexFunc(requests, func(e entry) bool { return e.op.Tag == tag })
	return known && i >= 0 && order.Octets.Delta(acked, requests[i].From) > 0
}

// Acknowledges reports whether the capture contains acknowledgements of the requests of
// a side.
func (c *Conn) Acknowledges(s Side) bool {
	f := c.flows[s]
	return f != nil && f.order.Acknowledged()
}
