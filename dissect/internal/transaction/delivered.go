package transaction

import (
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Delivery: a transaction ends with the copy of the Reply that the requester accepted, which need
// not be the first copy.

// accepted records in a message when its receiver accepted it.
func noteAccepted(m *record.Message, d rdma.Delivery) {
	m.Delivered, m.Delivery = record.Some(d.At.Time), record.DeliveryUncertain
	if d.Certain {
		m.Delivery = record.DeliveryCertain
	}
}

// delivered records that the delivery of an operation is known.
func (x *txn) delivered(o *rdma.Operation, part int) {
	d, known := o.Delivered()
	if !known || x.state == emitted {
		return
	}
	switch {
	case part == partCall:
		noteAccepted(&x.call, d)
	case part == partReply:
		x.answerDelivered(o, d)
	case o.Kind == rdma.Write && d.At.Packet != o.Last.Packet:
		x.moveEvents(o.Last.Packet, d.At, record.EventWriteLast)
	}
}

// answerDelivered ends a transaction at the copy of its Reply that was accepted.
func (x *txn) answerDelivered(o *rdma.Operation, d rdma.Delivery) {
	a := &x.answer
	if x.state != awaitingDelivery || o.Last.Packet != a.LastPacket { // an RDMA_ERROR that was discarded
		return
	}
	x.enter(accepted)
	noteAccepted(a, d)
	if first := a.LastPacket; d.At.Packet != first {
		a.FirstSent = record.Some(a.Time)
		if a.Packet == first {
			a.Packet, a.Time = d.At.Packet, d.At.Time
		}
		a.LastPacket = d.At.Packet
		x.moveEvents(first, d.At, record.EventReply, record.EventInvalidate)
		if i, known := x.invalidation.Get(); known {
			i.Packet = d.At.Packet
			x.invalidation = record.Some(i)
		}
	}
	a.LastTime = d.At.Time
	if x.latency.Known() {
		x.latency = record.Some(int64(d.At.Time - x.call.Time))
		x.latencyMin = record.SomeIf(int64(d.Earliest.Time-x.call.Time), !d.Certain)
	}
}

// moveEvents moves events of a packet to the copy of it that was accepted.
func (x *txn) moveEvents(from int64, to record.Stamp, kinds ...record.EventKind) {
	for i := range x.rec.Timeline {
		e := &x.rec.Timeline[i]
		for _, kind := range kinds {
			if e.Packet == from && e.Event == kind {
				e.Packet, e.Time = to.Packet, to.Time
			}
		}
	}
}

// settleDelivery decides about a Reply that was not acknowledged while its transaction waited. If
// the connection ended, and the capture is complete, the Reply was not delivered.
func (x *txn) settleDelivery() {
	if x.state != awaitingDelivery {
		return
	}
	x.enter(accepted)
	cs := x.cs
	waited := cs.table.Clock-x.ended > cs.table.options.Linger
	if !waited || !cs.conn.Closing() || !cs.conn.Complete() || !cs.conn.Acknowledges(x.side.Other()) || x.rec.Call == nil {
		return
	}
	answer := x.answer
	x.retractReply(lost)
	x.answer = answer
	x.answer.Delivery = record.DeliveryNotDelivered
	cs.noteLostCall(x)
}
