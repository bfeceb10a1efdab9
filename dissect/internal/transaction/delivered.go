package transaction

import (
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
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
	case part == partCall && x.state.hasReply() && (record.Stamp{Time: x.answer.LastTime, Packet: x.answer.LastPacket}).Before(d.At): // a later copy; the Reply shows that an earlier one was accepted
	case part == partCall:
		noteAccepted(&x.call, d)
		if o.SeenAtBoth() {
			onPath(x).seenAtBoth(true)
		}
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
	if o.SeenAtBoth() {
		onPath(x).seenAtBoth(false)
	}
	x.endsWith(d)
}

// endsWith ends a transaction at a copy of its Reply.
func (x *txn) endsWith(d rdma.Delivery) {
	a := &x.answer
	noteAccepted(a, d)
	if first := a.LastPacket; d.At.Packet != first {
		a.FirstSent = record.Some(a.FirstSent.Or(a.Time))
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
		sent := firstSent(x).Time
		x.latency = since(sent, d.At.Time)
		least := since(sent, d.Earliest.Time)
		if d.Earliest.Packet == 0 { // a copy that was not captured may have been accepted at any time
			least = record.Some(max(0, d.Earliest.Time.Sub(sent)))
		}
		x.latencyMin = record.SomeIf(least.Or(0), x.latency.Known() && least.Known() && d.Earliest != d.At)
		if x.latencyMin.Known() && d.Earliest.Packet != d.At.Packet {
			x.minPacket = d.Earliest.Packet
		}
	}
}

// since returns the time between two packets, the later one in the capture last. It
// is unknown if the clock of the capture was set back between them.
func since(from, to record.Time) record.Opt[int64] {
	ns := to.Sub(from)
	return record.SomeIf(ns, ns >= 0)
}

// moveEvents moves events of a packet to the copy of it that was accepted.
func (x *txn) moveEvents(from int64, to record.Stamp, kinds ...record.EventKind) {
	for i := range x.rec.Timeline {
		e := &x.rec.Timeline[i]
		for _, kind := range kinds {
			if e.Packet == from && e.Event == kind {
				x.rec.move(e, to)
			}
		}
	}
}

// settleDelivery decides about a Reply that was not acknowledged while its transaction waited. The
// Reply was not delivered if the requester sent its Call again on another connection, which no requester
// does that has the Reply, or if the Reply was retransmitted until the connection ended. A missing
// acknowledgement does not prove anything by itself, because the capture may lack it.
func (x *txn) settleDelivery() {
	if x.state != awaitingDelivery {
		return
	}
	x.enter(accepted)
	cs := x.cs
	if x.answer.Delivery == record.DeliveryNotDelivered { // as captures at both ends show
		loseReply(x)
		return
	}
	waited := cs.table.Clock-x.ended > cs.table.options.Linger
	const unknown = rule.Missing | rule.Awaited | rule.Unordered | rule.Silent
	gaveUp := waited && x.progress.replyAgain && cs.closing && cs.gaps(x.side)&unknown == 0 && cs.link.Acknowledges(x.side.Other())
	repeated := x.repeatedElsewhere && cs.gaps(x.side)&rule.Unordered == 0
	if !gaveUp && !repeated || x.rec.Call == nil {
		x.endsUnanswered()
		return
	}
	loseReply(x)
	noteLostCall(cs, x)
}

// endsUnanswered ends a transaction whose Reply was not acknowledged with the latest copy that the requester may have accepted.
func (x *txn) endsUnanswered() {
	a := &x.answer
	switch o, at := x.cs.link.Unanswered(x.side.Other(), x.seq); {
	case o == nil || o.Tag != x.tag(partReply) || at.Packet == a.LastPacket:
	case at.Packet == 0: // it refused them
		x.latency = record.Opt[int64]{}
	default:
		x.endsWith(rdma.Delivery{At: at, Earliest: record.Stamp{Time: a.LastTime, Packet: a.LastPacket}})
	}
}

// loseReply makes x a transaction whose Reply was lost.
func loseReply(x *txn) {
	answer := x.answer
	x.retractReply(lost)
	x.answer = answer
	x.answer.Delivery = record.DeliveryNotDelivered
}
