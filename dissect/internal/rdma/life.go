package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/record"
)

// The records of operations. They are made only if the tracker has a handler for them.

// life is what the record of an operation says, besides the operation itself.
type life struct {
	acked       record.Stamp
	active      record.Stamp // the latest packet of the operation, including retransmissions
	asked       record.Stamp // the latest retransmission of the request
	answered    record.Stamp // the latest retransmitted packet of the response
	burst       int64        // number of the latest burst that is counted
	again       [2]int64     // retransmitted packets: of the request, and of the response
	waits       []record.Wait
	transaction record.Opt[int64]
	refused     bool
	passed      bool // the record was passed on
}

// Limits of records.
const (
	maxStalls        = 64               // of one operation
	maxWaitingRecord = 1024             // of a connection without an ID
	stallFrom        = record.Time(1e6) // the shortest pause that counts as a stall
)

// watch starts the record of an operation. A message of RPC over TCP or UDP is no RDMA operation.
func (o *Operation) watch() {
	if t := o.conn.tracker; t.Operation != nil && !o.conn.setup.RPC && (t.Wanted == nil || t.Wanted(o.conn)) {
		o.life = new(life)
		o.conn.holds(lifeCost)
	}
}

// noteTag notes the transaction that an operation belongs to, while it is known.
func (o *Operation) noteTag() {
	if l := o.life; l != nil && o.Tag != 0 && !l.transaction.Known() {
		if of := o.conn.tracker.TransactionOf; of != nil {
			l.transaction = of(o.Tag)
		}
	}
}

// noteAcked notes the packet that acknowledges an operation.
func (o *Operation) noteAcked(at record.Stamp) {
	if o.life != nil {
		o.noteTag()
		o.life.acked = at
	}
}

// noteRefused notes that an operation was refused, and that the connection ends with that.
func (o *Operation) noteRefused(r *Refusal) {
	if o != nil && o.life != nil && r.Fatal {
		o.life.refused = true
	}
}

// noteRetransmitted notes a retransmitted packet of an operation, or of its response. The operation
// waited for the first retransmission of each burst, if it made no progress before. A retransmitted
// response waits for nothing, because it was requested.
func (o *Operation) noteRetransmitted(by Side, b *Burst, at record.Stamp) {
	l := o.life
	if l == nil {
		return
	}
	from := l.active
	if from.Before(o.Last) {
		from = o.Last
	}
	if from.Packet == at.Packet { // the first copy was damaged or lost, and this is the second
		if from = o.Damaged(); from.Packet == 0 {
			from = o.First
		}
	}
	if l.repeat(b, by == o.Side, at) && at.Time-from.Time >= stallFrom && len(l.waits) < maxStalls {
		l.waits = append(l.waits, o.stall(b, from, at))
		o.conn.holds(stallCost)
	}
}

// repeat notes a retransmitted packet of the operation, or of its response. It reports whether the packet is the
// first one of a burst of requests.
func (l *life) repeat(b *Burst, request bool, at record.Stamp) (first bool) {
	l.active = at
	if request {
		l.again[0]++
		l.asked = at
	} else {
		l.again[1]++
		l.answered = at
	}
	if b == nil || b.Number == l.burst {
		return false
	}
	l.burst = b.Number
	return request
}

// stall returns the time that the operation waited for the first retransmission of a burst, from a packet on.
func (o *Operation) stall(b *Burst, from, at record.Stamp) record.Wait {
	packets := []int64{from.Packet}
	if b.Nak.Packet != 0 {
		packets[0] = b.Nak.Packet
	}
	return record.Wait{
		From: from.Time, To: at.Time, NS: int64(at.Time - from.Time), Reason: b.Cause, Waiting: o.conn.setup.End(o.Side),
		Event:   map[Kind]record.EventKind{Read: record.EventRead, Write: record.EventWrite}[o.Kind],
		Packets: append(packets, at.Packet), NakPacket: record.SomeIf(b.Nak.Packet, b.Nak.Packet != 0),
	}
}

// kindsOfRecords has the kinds of operations in records.
var kindsOfRecords = [...]record.OperationKind{Send: record.SendOperation, Write: record.WriteOperation, Read: record.ReadOperation, Atomic: record.AtomicOperation}

// pass passes the record of the operation on, once.
func (o *Operation) pass() {
	l := o.life
	if l == nil || l.passed {
		return
	}
	o.noteTag()
	l.passed = true
	o.conn.holds(-lifeCost - stallCost*int64(len(l.waits)))
	o.conn.passOperation(o.makeRecord(), o.Side)
}

// passOperation passes the record of an operation of a side on. If the connection has no ID, the record waits for it.
func (c *Conn) passOperation(r *record.RDMAOperation, s Side) {
	if c.setup.ID.Known() {
		c.tracker.Operation(r)
		return
	}
	if len(c.records) < maxWaitingRecord {
		c.records = append(c.records, waitingRecord{r.Clone(), s})
	}
}

// waitingRecord is the record of an operation of a connection without an ID.
type waitingRecord struct {
	*record.RDMAOperation
	side Side
}

// passWaiting passes the records on that wait for the ID of a connection.
func (c *Conn) passWaiting() {
	for _, r := range c.records {
		c.fillEnds(r.RDMAOperation, r.side)
		c.tracker.Operation(r.RDMAOperation)
	}
	c.records = nil
}

// fillEnds fills in what depends on the ends of the connection.
func (c *Conn) fillEnds(r *record.RDMAOperation, s Side) {
	client := c.setup.Opener()
	if again := &r.RetransmittedFrom; r.Side != c.setup.End(s) {
		*again = record.FromPair{FromClient: again.FromServer, FromServer: again.FromClient}
	}
	r.Connection, r.Key, r.Side = c.setup.ID.Or(0), c.setup.Key, c.setup.End(s)
	r.Client, r.Server = c.Host(client).Known(), c.Host(client.Other()).Known()
	for i := range r.Waits { // a side waits only for its own operations
		r.Waits[i].Waiting = r.Side
	}
}

// makeRecord makes the record of the operation. The record is valid until the next call.
func (o *Operation) makeRecord() *record.RDMAOperation {
	l, r := o.life, &o.conn.tracker.finished
	first, last := o.First, o.Last
	if last.Before(first) { // The first packet came after others.
		first, last = last, first
	}
	if damaged := o.Damaged(); damaged.Packet != 0 { // It was sent then.
		first = damaged
	}
	*r = record.RDMAOperation{
		Type: "rdma_operation", ID: o.Number, Side: record.Client, Kind: kindsOfRecords[o.Kind], Status: record.OperationComplete, Bytes: o.Bytes, Packets: o.Packets,
		Packet: first.Packet, LastPacket: last.Packet, Sent: first.Time, Retransmitted: l.again[0] + l.again[1], RetransmittedFrom: record.FromPair{FromClient: l.again[0], FromServer: l.again[1]}, Waits: l.waits, Transaction: l.transaction,
	}
	o.conn.fillEnds(r, o.Side)
	if r.Waits == nil {
		r.Waits = []record.Wait{} // an operation without stalls has an empty list
	}
	for i := range r.Waits {
		r.StalledNS += r.Waits[i].NS
	}
	switch responded := o.Kind == Read || o.Kind == Atomic; {
	case l.refused:
		r.Status = record.OperationRefused
	case o.Broken || !o.done && !(o.Kind == Atomic && o.acked) || o.Kind != Send && o.Announced && o.Bytes < o.Length && o.Kind != Atomic:
		r.Status = record.OperationIncomplete
	case !responded && l.again[0] > 0 && l.acked.Packet == 0 && !o.acked && o.conn.Acknowledges(o.Side):
		r.Status = record.OperationUnacknowledged
	case responded:
		at := l.acked
		if o.Kind == Read {
			at = o.responded()
		}
		if at.Packet != 0 {
			r.Delivered, r.Acknowledged = record.Some(at.Time), record.Some(at.Time)
		}
	}
	if d, known := o.Delivered(); known && o.Kind != Read && o.Kind != Atomic {
		r.Delivered = record.Some(d.At.Time)
	}
	if l.acked.Packet != 0 && o.Kind != Read {
		r.Acknowledged = record.Some(l.acked.Time)
	}
	if at, known := r.Acknowledged.Get(); known {
		r.LatencyNS, r.AtMost = record.Some(int64(at-first.Time)), o.conn.gap[0] < at && first.Time < o.conn.gap[1]
	}
	if o.Kind != Send {
		r.Handle, r.Offset = record.Some(record.Hex32(o.Handle)), record.Some(record.Hex64(o.Offset))
		r.Requested = record.SomeIf(o.Length, o.Announced)
	}
	if handle, known := o.Invalidates.Get(); known {
		r.Invalidates = record.Some(record.Hex32(handle))
	}
	return r
}

// responded returns the packet that completed the response to a Read at the requester. If the
// requester asked again after the capture had the whole response, it had not received all of it.
func (o *Operation) responded() record.Stamp {
	l := o.life
	switch {
	case l.asked.Before(o.Last):
		return o.Last
	case l.asked.Before(l.answered):
		return l.answered
	}
	return record.Stamp{}
}

// passOperations passes on the records of the connection's operations, in the order of their first packets.
func (c *Conn) passOperations() {
	if c.tracker.Operation == nil {
		return
	}
	var next [2]int
	for {
		var first *Operation
		var of int
		for i, f := range c.flows {
			if f == nil {
				continue
			}
			for all := f.ops.all(); next[i] < len(all); next[i]++ {
				if o := all[next[i]].op; o.life != nil && !o.life.passed {
					if first == nil || o.Number < first.Number {
						first, of = o, i
					}
					break
				}
			}
		}
		if first == nil {
			return
		}
		next[of]++
		first.pass()
	}
}
