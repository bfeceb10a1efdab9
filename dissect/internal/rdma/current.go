package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// currentPacket is a packet that is being taken, and the verdict on it so far. A packet that was held
// is taken as a packet of its own, so that it does not change the verdict on the packet that made it
// acceptable.
type currentPacket struct {
	PacketVerdict
	at    record.Stamp // when it was captured
	left  record.Stamp // when it left its sender; the packet number is 0 if that was not captured
	shown order.Run    // iWARP: sequence numbers of the FPDUs that were noted when the segment was held
	early bool         // see [Path]
	class uint8        // traffic class
	after record.Stamp // InfiniBand, if it was held: the packet after which it was accepted; otherwise its packet number is 0
	open  bool         // no packet closed the gap before what waits
	fills bool         // it came after one that waits for it
	bare  bool         // TCP: it has no data
	shows bool         // TCP: its selective acknowledgements show a gap
}

// acceptedBefore returns when its sender had accepted what the packet acknowledges, at the latest.
func (cur *currentPacket) acceptedBefore() record.Stamp {
	if cur.left.Packet != 0 {
		return cur.left
	}
	return cur.at
}

// mark adds marks to the verdict. The first operation that is named stays.
func (cur *currentPacket) mark(o *Operation, m record.Marks) {
	if cur.Op == nil {
		cur.Op = o
	}
	cur.Mark |= m
}

// markAfterGap marks a packet that came before an earlier one. One that was captured only when it left its sender may
// have come later.
func (cur *currentPacket) markAfterGap(o *Operation) {
	if cur.early {
		cur.mark(o, 0)
		return
	}
	cur.mark(o, record.AfterGap)
}

// isOvertaken reports whether a packet came after one that waits for it. With several capture points, it has to be known to have been sent
// before that one: what its sender repeats comes late, too.
func isOvertaken(p *Path, w *window) bool {
	for i := 0; !w.Empty() && i < w.Len(); i++ {
		if x := w.At(i); !x.early && (!p.Joined || p.Began() != 0 && p.Began() < x.began) {
			return true
		}
	}
	return false
}

// noteBytes notes the bytes of the operation's memory that the packet moves or requests.
// Several adjacent ranges become one; otherwise the first counts.
func (cur *currentPacket) noteBytes(o *Operation, from uint64, n int64) {
	switch {
	case cur.Op != nil && cur.Op != o || n <= 0:
	case cur.From == cur.To:
		cur.From, cur.To = from, from+uint64(n)
	case cur.To == from:
		cur.To += uint64(n)
	}
}

// acceptedBadICRC reports whether the packet has a bad ICRC and was accepted nevertheless.
func (cur *currentPacket) acceptedBadICRC() bool { return cur.Mark&record.BadICRC != 0 }

// accepting returns the packet to take when a held item is accepted: the current packet if it is the
// item, and otherwise own, which is set to the item.
func (cur *currentPacket) accepting(item *held, own *currentPacket) *currentPacket {
	if item.stamp == cur.at {
		return cur
	}
	*own = currentPacket{at: item.stamp, class: item.class, shown: item.shown}
	if item.badICRC {
		own.mark(nil, record.BadICRC)
	}
	return own
}
