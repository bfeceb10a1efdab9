package rdma

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Both transports number their data on a circle, of 24 bits (PSNs) or of 32 bits (bytes
// of TCP). A packet is an item of length 1 on the first circle, and a segment is an
// item of its own length on the second.

// circle is the number of bits of a sequence number.
type circle uint8

const (
	psns   circle = 24
	octets circle = 32
)

// delta returns how far a is ahead of b. The result is negative if a is before b.
func (c circle) delta(a, b uint32) int32 {
	return int32((a-b)<<(32-c)) >> (32 - c)
}

// add returns a + n on the circle.
func (c circle) add(a, n uint32) uint32 { return (a + n) << (32 - c) >> (32 - c) }

// gaps are the ranges of sequence numbers, before the next request, that the capture lacks, in order.
type gaps []gap

// gap is a range of sequence numbers that the capture lacks. counted is set if they were counted as not captured.
type gap struct {
	run
	counted bool
}

// maxGaps is the maximum number of gaps of a flow. With more of them, the first two become one.
const maxGaps = 32

// gapCost is the memory of a gap that is charged to the budget.
const gapCost = 12

// find returns the index of the first gap that has a sequence number of r, -1 if there is none.
func (g gaps) find(c circle, r run) int {
	return slices.IndexFunc(g, func(gap gap) bool { return c.delta(r.from, gap.to) < 0 && c.delta(r.to, gap.from) > 0 })
}

// noteGap notes sequence numbers of a flow that were not captured, as the gap at an index.
func (f *flow) noteGap(i int, g gap) {
	if len(f.gaps) == maxGaps {
		f.gaps[1].from, f.gaps[1].counted = f.gaps[0].from, f.gaps[0].counted || f.gaps[1].counted
		f.gaps = slices.Delete(f.gaps, 0, 1)
		i = max(i-1, 0)
	}
	had := cap(f.gaps)
	f.gaps = slices.Insert(f.gaps, i, g)
	f.conn.share.Charge(gapCost * int64(cap(f.gaps)-had))
}

// fillGap notes that sequence numbers of a flow were captured late that are in the gap at an index.
func (f *flow) fillGap(c circle, i int, r run) {
	g := f.gaps[i]
	f.gaps = slices.Delete(f.gaps, i, i+1)
	if c.delta(g.to, r.to) > 0 {
		f.noteGap(i, gap{run{r.to, g.to}, g.counted})
	}
	if c.delta(r.from, g.from) > 0 {
		f.noteGap(min(i, len(f.gaps)), gap{run{g.from, r.from}, g.counted})
	}
}

// begin notes the first sequence number of a flow that can be captured.
func (f *flow) begin(seq uint32) { f.from, f.gaps = seq, f.gaps[:0] }

// forget forgets what is known about sequence numbers that are so far before next that they are about to be used again.
func (f *flow) forget(c circle, next uint32) {
	if far := int32(1) << (c - 3); c.delta(next, f.from) > 2*far {
		f.begin(c.add(next, -uint32(far)))
	}
}

// comesLate takes the sequence numbers of a request that come before the next one. It reports whether they may be those
// of the first copy that was sent: the capture lacks them, or begins after them and shows no acknowledgement of them.
// Counted is set if they were counted as not captured. Read is set for a Read Request: its operation stays unknown, so
// that responses with these sequence numbers are no second copies.
func (f *flow) comesLate(c circle, r run, read bool) (late, counted bool) {
	i := f.gaps.find(c, r)
	before := i < 0 && c.delta(r.from, f.from) < 0 && !f.isAcked(r.from)
	late, counted = i >= 0 || before, i >= 0 && f.gaps[i].counted
	switch {
	case read:
	case i >= 0:
		f.fillGap(c, i, r)
	case before:
		if c.delta(r.to, f.from) < 0 {
			f.noteGap(0, gap{run: run{r.to, f.from}})
		}
		f.from = r.from
	}
	return late, counted
}

// Limits of the items in a window. They also limit the cost of
// inserting an item.
const (
	maxHeld      = 1024
	maxHeldBytes = 4 << 20
)

// held is a copy of an item that waits for earlier ones.
type held struct {
	stamp   record.Stamp
	data    []byte // captured bytes
	length  int    // bytes on the wire
	badICRC bool
	shown   run          // iWARP: sequence numbers of its FPDUs that were noted when it came
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

// window holds items that came early, in order.
type window struct {
	order []place // by sequence number
	items []held  // at the indexes in order
	free  []int32
	bytes int
}

type place struct {
	seq  uint32
	item int32
}

// empty reports whether no item is held. The window may be nil.
func (w *window) empty() bool { return w == nil || len(w.order) == 0 }

// at returns the item at an index of the order.
func (w *window) at(i int) *held { return &w.items[w.order[i].item] }

// held returns the window of a flow, and creates it if necessary.
func (f *flow) held() *window {
	if f.window == nil {
		f.window = new(window)
	}
	return f.window
}

// first returns the sequence number of the earliest item.
func (w *window) first() uint32 { return w.order[0].seq }

// earliest returns the earliest item.
func (w *window) earliest() *held { return w.at(0) }

// find returns the index of an item, or the index at which it would be inserted.
func (w *window) find(c circle, seq uint32) (i int, found bool) {
	if n := len(w.order); n > 0 && c.delta(seq, w.order[n-1].seq) > 0 {
		return n, false
	}
	return slices.BinarySearchFunc(w.order, seq, func(p place, seq uint32) int { return int(c.delta(p.seq, seq)) })
}

// insert adds an item at index i. The window owns the data of the item.
func (w *window) insert(i int, seq uint32, h held) {
	var n int32
	if last := len(w.free); last > 0 {
		n, w.free = w.free[last-1], w.free[:last-1]
		w.items[n] = h
	} else {
		n = int32(len(w.items))
		w.items = append(w.items, h)
	}
	w.order = slices.Insert(w.order, i, place{seq, n})
	w.bytes += len(h.data)
}

// remove removes the earliest n items. The caller then owns their data.
func (w *window) remove(n int) {
	for _, p := range w.order[:n] {
		w.bytes -= len(w.items[p.item].data)
		w.items[p.item] = held{}
		w.free = append(w.free, p.item)
	}
	w.order = slices.Delete(w.order, 0, n)
	if cap(w.items) > 64 && len(w.order)*8 < cap(w.items) { // free the memory that a burst needed
		kept := window{bytes: w.bytes}
		for i, p := range w.order {
			kept.order, kept.items = append(kept.order, place{p.seq, int32(i)}), append(kept.items, w.items[p.item])
		}
		*w = kept
	}
}

// full reports whether the window has exceeded its limits.
func (w *window) full() bool { return len(w.order) > maxHeld || w.bytes > maxHeldBytes }

// noteHeldRetransmission counts a retransmission of a request or segment that is held.
// Its operation is not known before it is accepted. b is nil for a segment.
func (ops *operations) noteHeldRetransmission(f *flow, i int, cur *currentPacket, b *Burst) {
	item := f.window.at(i)
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
	f.conn.share.Charge(heldCopyCost)
}

// reportHeldRetransmissions reports the retransmissions of a request or segment that
// was held until now.
func (ops *operations) reportHeldRetransmissions(f *flow, o *Operation, item *held) {
	for i := range item.copies {
		again := &item.copies[i]
		b := &again.burst
		if b.Number == 0 {
			b = nil
		}
		if again.nak {
			ops.damagedNak(f, o, again.at)
			continue
		}
		if again.damaged {
			ops.damaged(f, o, again.at, b)
			continue
		}
		if again.gone {
			ops.resentInVain(f, o, b, &currentPacket{at: again.at})
			continue
		}
		ops.retransmitted(f, o, b, &currentPacket{at: again.at})
		item.repeats--
	}
	for ; item.repeats > 0; item.repeats-- {
		ops.retransmitted(f, o, nil, &currentPacket{at: item.again})
	}
	if item.again.Packet != 0 && o != nil {
		o.copies.note(ahead, item.again, 0)
	}
}

// unhold releases the buffer of a held item, and its share of the budget.
func (ops *operations) unhold(f *flow, item *held) {
	f.conn.share.Charge(-int64(len(item.data)) - heldCost - heldCopyCost*int64(len(item.copies)))
	ops.buffers.back(item.data)
}
