package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/rocev2"
)

// Requests and segments that wait for earlier ones; package order has their order.

// window holds them, by sequence number.
type window = order.Window[held]

// decoded are packets that waited, decoded again, one for each that is being taken. Taking one may show the path MTU, and so
// that packets of the other direction do not wait any more.
type decoded struct {
	packets []*rocev2.Packet
	used    int
}

// take returns storage for a packet, until back is called.
func (d *decoded) take() *rocev2.Packet {
	if d.used == len(d.packets) {
		d.packets = append(d.packets, new(rocev2.Packet))
	}
	d.used++
	return d.packets[d.used-1]
}

func (d *decoded) back() { d.used-- }

// held is a copy of an item that waits for earlier ones.
type held struct {
	stamp   record.Stamp
	data    []byte // captured bytes
	length  int    // bytes on the wire
	badICRC bool
	early   bool         // see [Path]
	began   record.Time  // see [sent.Path.Began]
	class   uint8        // traffic class
	shown   order.Run    // iWARP: sequence numbers of its FPDUs that were noted when it came
	copies  []heldCopy   // the first retransmissions while it was held
	repeats int32        // number of all of them that a receiver could accept
	again   record.Stamp // the latest of these
}

// heldCopy is a retransmission of a held item.
type heldCopy struct {
	at      record.Stamp
	burst   Burst // Number 0 for none
	damaged bool  // it has a bad ICRC, so its receiver drops it
	gone    bool  // with several capture points: it was lost or damaged on the way
	nak     bool  // it is a NAK of the item, with a bad ICRC
}

// maxHeldCopies is the maximum number of retransmissions of a held item whose bursts are kept.
const maxHeldCopies = 8

// noteHeldRetransmission counts a retransmission of a request or segment that is held.
// Its operation is not known before it is accepted. b is nil for a segment.
func (f *flow) noteHeldRetransmission(item *held, cur *currentPacket, b *Burst) {
	item.repeats++
	item.again = cur.at
	item.keep(f, heldCopy{at: cur.at}, b)
	cur.mark(nil, record.Retransmitted)
}

// keep keeps a retransmission and its burst.
func (h *held) keep(f *flow, again heldCopy, b *Burst) {
	if len(h.copies) == maxHeldCopies {
		return
	}
	if b != nil {
		again.burst = *b
	}
	h.copies = append(h.copies, again)
	f.heldCopies++
}

// settleHeld reports the retransmissions of a request or segment that was held until now, and releases it.
func (f *flow) settleHeld(seq uint32, item *held) {
	o, repeats := f.ops.at(seq), item.repeats
	for i := range item.copies {
		again := &item.copies[i]
		b := &again.burst
		if b.Number == 0 {
			b = nil
		}
		switch {
		case again.nak:
			f.damagedNak(o, again.at)
		case again.damaged:
			f.damaged(o, again.at, b)
		case again.gone:
			f.resentInVain(o, b, &currentPacket{at: again.at})
		default:
			f.retransmitted(o, b, &currentPacket{at: again.at})
			repeats--
		}
	}
	for ; repeats > 0; repeats-- {
		f.retransmitted(o, nil, &currentPacket{at: item.again})
	}
	if item.again.Packet != 0 && o != nil {
		o.copies.note(ahead, item.again, 0)
	}
	f.unhold(item)
}

// unhold releases the buffer of a held item.
func (f *flow) unhold(item *held) {
	f.heldCopies += int64(-len(item.copies))
	f.conn.tracker.buffers.Back(item.data)
}
