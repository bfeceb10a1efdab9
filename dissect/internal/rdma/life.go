package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/record"
)

// The records of operations. They are made only if the tracker has a handler for them.

// life is what the record of an operation says, besides the operation itself.
type life struct {
	acked         record.Stamp
	active        record.Stamp // the latest packet of the operation, including retransmissions
	asked         record.Stamp // the latest retransmission of the request
	answered      record.Stamp // the latest retransmitted packet of the response
	burst         int64        // number of the latest burst that is counted
	retransmitted int64
	waits         []record.Wait
	transaction   record.Opt[int64]
	refused       bool
	passed        bool // the record was passed on
}

// Costs and limits of records.
const (
	lifeCost         = 144
	operationCost    = 480
	stallCost        = 160
	maxStalls        = 64               // of one operation
	maxWaitingRecord = 1024             // of a connection without an ID
	stallFrom        = record.Time(1e6) // the shortest pause that counts as a stall
)

// move makes the operation one of a side of another connection.
func (o *Operation) move(c *Conn, s Side) { o.conn, o.Side = c, s }

// watch starts the record of an operation. A message of RPC over TCP or UDP is no RDMA operation.
func (ops *operations) watch(o *Operation) {
	if t := ops.tracker; t.Operation != nil && !o.conn.setup.RPC && (t.Wanted == nil || t.Wanted(o.conn)) {
		o.life = new(life)
		o.conn.share.Charge(lifeCost)
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
	l.retransmitted++
	from := l.active
	if from.Before(o.Last) {
		from = o.Last
	}
	if from.Packet == at.Packet { // the first copy was damaged, and this is the second
		from = o.Damaged()
	}
	l.active = at
	if by == o.Side {
		l.asked = at
	} else {
		l.answered = at
	}
	if b == nil || b.Number == l.burst {
		return
	}
	l.burst = b.Number
	if by != o.Side || at.Time-from.Time < stallFrom || len(l.waits) >= maxStalls {
		return
	}
	of := map[Kind]record.EventKind{Read: record.EventRead, Write: record.EventWrite}[o.Kind]
	packets := []int64{from.Packet}
	if b.Nak.Packet != 0 {
		packets[0] = b.Nak.Packet
	}
	l.waits = append(l.waits, record.Wait{
		From: from.Time, To: at.Time, NS: int64(at.Time - from.Time), Reason: b.Cause, Waiting: o.conn.setup.End(by), Event: of,
		Packets: append(packets, at.Packet), NakPacket: record.SomeIf(b.Nak.Packet, b.Nak.Packet != 0),
	})
	o.conn.share.Charge(stallCost)
}

// kindsOfRecords has the kinds of operations in records.
var kindsOfRecords = [...]record.OperationKind{Send: record.SendOperation, Write: record.WriteOperation, Read: record.ReadOperation, Atomic: record.AtomicOperation}

// pass passes the record of an operation on, once. If the connection has no ID, the record waits for it.
func (ops *operations) pass(o *Operation) {
	l := o.life
	if l == nil || l.passed {
		return
	}
	l.passed = true
	o.noteTag()
	o.conn.share.Charge(-lifeCost - stallCost*int64(len(l.waits)))
	c := o.conn
	r := ops.record(o)
	if c.setup.ID.Known() {
		ops.tracker.Operation(r)
		return
	}
	if len(c.records) < maxWaitingRecord {
		c.records = append(c.records, waitingRecord{r.Clone(), o.Side})
		c.share.Charge(operationCost)
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
	c.share.Charge(-operationCost * int64(len(c.records)))
	c.records = nil
}

// fillEnds fills in what depends on the ends of the connection.
func (c *Conn) fillEnds(r *record.RDMAOperation, s Side) {
	client := c.setup.Opener()
	r.Connection, r.Key, r.Side = c.setup.ID.Or(0), c.setup.Key, c.setup.End(s)
	r.Client, r.Server = c.Host(client).Known(), c.Host(client.Other()).Known()
	for i := range r.Waits { // a side waits only for its own operations
		r.Waits[i].Waiting = r.Side
	}
}

// record makes the record of an operation. The record is valid until the next call.
func (ops *operations) record(o *Operation) *record.RDMAOperation {
	l, r := o.life, &ops.finished
	first, last := o.First, o.Last
	if last.Before(first) { // The first packet came after others.
		first, last = last, first
	}
	if damaged := o.Damaged(); damaged.Packet != 0 { // It was sent then.
		first = damaged
	}
	*r = record.RDMAOperation{
		Type: "rdma_operation", ID: o.Number, Kind: kindsOfRecords[o.Kind], Status: record.OperationComplete, Bytes: o.Bytes, Packets: o.Packets,
		Packet: first.Packet, LastPacket: last.Packet, Sent: first.Time, Retransmitted: l.retransmitted, Waits: l.waits, Transaction: l.transaction,
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
		r.LatencyNS = record.Some(int64(at - first.Time))
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

// passAll passes on the records of a connection's operations, in the order of their first packets.
func (ops *operations) passAll(c *Conn) {
	if ops.tracker.Operation == nil {
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
			for ; next[i] < f.ops.len(); next[i]++ {
				if o := f.ops.entries[f.ops.head+next[i]].op; o.life != nil && !o.life.passed {
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
		ops.pass(first)
	}
}
