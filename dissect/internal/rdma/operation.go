package rdma

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/internal/queue"
	"github.com/rdmadump/rdmadump/dissect/internal/span"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// The life of an operation, on either transport. assembly.go makes operations.

// pool numbers operations, and keeps the storage of those that are forgotten for the next ones.
type pool struct {
	unused queue.FreeList[Operation]
	gone   []*Operation // freed while the current packet was taken, which may still refer to them
	number int64        // of the latest operation
}

// take returns an empty operation, and its number.
func (p *pool) take() (o *Operation, number int64) {
	p.number++
	if o = p.unused.Take(); o == nil {
		return new(Operation), p.number
	}
	o.clear()
	return o, p.number
}

// free takes an operation that is not used any more, except for the current packet.
func (p *pool) free(o *Operation) { p.gone = append(p.gone, o) }

// maxUnused is the maximum number of operations whose storage is kept for the next ones.
const maxUnused = 1 << 10

// reclaim keeps the operations that were freed, for reuse. No packet refers to them any more.
func (p *pool) reclaim() {
	for i, o := range p.gone {
		p.unused.Keep(o, maxUnused)
		p.gone[i] = nil
	}
	p.gone = p.gone[:0]
}

// clear makes an operation that was used before empty.
func (o *Operation) clear() {
	r := o.response
	*o = Operation{} // a statement of its own, so that the compiler clears it in place
	if r != nil && cap(r.seen) <= 16 {
		r.clear()
		o.response = r
	}
}

// begin starts an empty operation of a flow, with the number and the first sequence number that are given.
func (o *Operation) begin(f *flow, kind Kind, number int64, from uint32, at record.Stamp) {
	o.Number, o.Seq, o.Side, o.Kind, o.First, o.Last, o.conn, o.from = number, f.seq, f.side, kind, at, at, f.conn, from
}

// countPacket counts a packet of the operation.
func (o *Operation) countPacket(cur *currentPacket) {
	o.Packets++
	if o.Kind != Send || o.Last.Before(cur.at) { // the last packet of a Send is the one that completed it
		o.Last = cur.at
	}
	if cur.after.Packet != 0 && o.disorder == nil {
		if o.disorder = (&disorder{early: cur.at}); !cur.open {
			o.disorder.filled = cur.after
		}
	}
}

// finished reports whether nothing more is expected of the operation on the flow of a
// side.
func (o *Operation) finished(s Side) bool {
	return o.done && (o.acked || o.Kind == Read || o.Side != s)
}

// growing reports whether more packets of a request are expected.
func (o *Operation) growing() bool { return !o.done && (o.Kind == Send || o.Kind == Write) }

// starts notes the first captured bytes of a Send, and the traffic class of their packet.
func (o *Operation) starts(data []byte, class uint8) {
	o.class = class
	if len(data) >= 4 {
		o.Word = record.Some(be.Uint32(data))
	}
}

// grow adds a part to a Send. The part did not come to its receiver if only is set.
func (o *Operation) grow(p *part, only bool) {
	o.notDelivered = o.notDelivered || only
	o.Length += int64(p.size)
	o.Bytes += int64(p.size)
	o.Cut, o.Bad = o.Cut || p.cut || len(p.data) < p.size, o.Bad || p.bad
	if p.last {
		o.Invalidates = p.invalidates
	}
}

// complete ends the operation. Payload has the captured bytes of a Send.
func (o *Operation) complete(payload []byte) {
	o.done, o.Payload = true, payload
	o.conn.follower.Operation(Event{What: Done, Op: o})
	o.Payload = nil
	o.noteTag()
}

// answer ends an Atomic, whose response was captured.
func (o *Operation) answer(cur *currentPacket) {
	o.countPacket(cur)
	o.done, o.Bytes = true, o.Length
	o.conn.follower.Operation(Event{What: Done, Op: o})
}

// covered notes that the other side has received the operation.
func (o *Operation) covered(at record.Stamp) {
	o.noteAcked(at)
	if o.acked = true; o.Tag != 0 {
		o.conn.follower.Operation(Event{What: Acked, Op: o, At: at})
	}
}

// Acknowledged reports whether the other side has acknowledged the operation.
func (o *Operation) Acknowledged() bool { return o.acked }

// write adds a packet or DDP segment to a Write; size is the number of bytes that data had on the wire. A receiver that
// has refused a request takes nothing after it.
func (o *Operation) write(offset uint64, data []byte, size int, refused bool) {
	o.conn.tracker.contents.notePayload(o, offset, size)
	o.Bytes += int64(size)
	if !o.Announced {
		o.Length = max(o.Length, o.Bytes)
	}
	if o.Tag != 0 && !refused {
		o.conn.follower.Moved(o, offset, data, size)
	}
}

// request starts the response to a Read.
func (o *Operation) request(times *ReadTimes) {
	if o.response == nil {
		o.response = new(response)
	}
	o.response.begin(times)
}

// read adds data to a Read, at an offset in the Read. Fresh is the number of bytes that were not captured before.
func (o *Operation) read(offset int64, data []byte, size int, fresh int64) {
	o.conn.tracker.contents.notePayload(o, o.Offset+uint64(offset), size)
	o.Bytes += fresh
	if o.Tag != 0 {
		o.conn.follower.Moved(o, o.Offset+uint64(offset), data, size)
	}
	if o.Bytes >= o.Length {
		o.complete(nil)
	}
}

// arrive notes that a packet of a Read's response arrived for the first time, with its index in the response. It
// reports whether an earlier packet of the response is missing before it.
func (o *Operation) arrive(index int64, at record.Stamp) (afterGap bool) {
	o.response.latest = max(o.response.latest, index+1)
	switch {
	case index == o.taken:
		if o.response.advance(); o.disorder != nil && o.taken == o.disorder.index {
			o.disorder.filled = at
		}
	case index > o.taken:
		if o.disorder == nil {
			o.disorder = &disorder{early: at, index: index}
		}
		return true
	}
	return false
}

// requestedAgain notes that a requester requested bytes of a Read once more: it has no response from there on. A duplicate
// that the network made of a request does not show when the requester lacked them.
func (o *Operation) requestedAgain(d *Datagram) {
	o.Again = int64(d.Packet.RETH.DMALength)
	if !d.duplicates(o.copies.print, o.copies.newest.Time) {
		o.response.again = d.At
	}
	o.times.Expect(int64(order.PSNs.Delta(d.Packet.PSN, o.from)))
}

// damagedFirst notes an earlier copy of a Send that was damaged, or lost.
func (o *Operation) damagedFirst(at record.Stamp, gone bool) {
	if o.disorder == nil {
		o.disorder = new(disorder)
	}
	o.disorder.damaged, o.disorder.gone = at, o.disorder.gone || gone
}

// abandon ends a Read whose response was not captured to its end.
func (o *Operation) abandon() {
	o.done = true
	c := o.conn
	if o.count == 0 || len(o.seen) == 0 || c.setup.IWARP {
		c.follower.Operation(Event{What: Abandoned, Op: o})
		return
	}
	missing := int64(o.count) - o.seen.Total()
	if c.follower.Operation(Event{What: Abandoned, Op: o}) != Open && missing > 0 { // the requester went on without them
		c.countMissing(o.Side.Other(), missing, o.First.Time, c.last.Time)
		c.Report(ruleLost, Where{At: c.last}, "%s of the RDMA Read with PSN %d %s not in the capture", record.Plural(missing, "response packet"), o.from, record.Are(missing))
	}
}

// hasSeen reports whether a packet of a Read's response was captured.
func (o *Operation) hasSeen(index int64) bool {
	return o.response != nil && slices.ContainsFunc(o.seen, func(s span.Span) bool { return s.Lo <= index && index < s.Hi })
}

// markSeen adds the range from lo to hi to the captured part of a Read's response, and
// returns the number of new packets or bytes. The budget counts ranges that the set
// cannot remember.
func (o *Operation) markSeen(lo, hi int64) (fresh int64) {
	fresh, more, full := o.response.add(lo, hi)
	if full {
		o.conn.tracker.budget.Note(budget.Spans)
	}
	if more > 0 {
		o.conn.holds(spanCost * int64(more))
	}
	return fresh
}

// clear makes a response that was used before empty.
func (r *response) clear() { *r = response{} }

// begin starts the response, of which nothing was captured yet.
func (r *response) begin(times *ReadTimes) { r.seen, r.times = r.initial[:0], times }

// advance notes that the next packet of the response was captured.
func (r *response) advance() {
	for r.taken++; r.early.has(r.taken); {
		r.taken++
	}
}

// comeLater notes a packet that will come to the requester, at an unknown time: no packet before it is missing then.
func (r *response) comeLater(index int64) {
	if index == r.taken {
		r.advance()
		return
	}
	r.early.add(r.taken, index)
}

// add adds the range from lo to hi to the captured part. It returns the number of new packets or bytes, the number of
// spans for which more storage is used, and whether no more spans can be stored.
func (r *response) add(lo, hi int64) (fresh int64, more int, full bool) {
	had := len(r.seen)
	fresh = r.seen.Add(lo, hi)
	more = max(0, len(r.seen)-max(had, len(r.initial)))
	r.spans += int32(more)
	return fresh, more, fresh == 0 && had >= maxSpans
}
