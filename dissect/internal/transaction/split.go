package transaction

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Split: where the time of an RPC passed, if packets were captured at both ends.

// pathTimes are the times of a transaction at both ends.
type pathTimes struct {
	reads                []*rdma.ReadTimes
	firstWrite           record.Time // the first RDMA Write left the responder; 0 if there was none
	callSeen, answerSeen bool        // the message was captured at both ends
	held                 []heldBy    // packets that were lost before waits ended
	earlier              earlier     // what happened on earlier connections
}

// follow notes what happened to the RPC before its Call was sent on the current connection.
func (p *pathTimes) follow(e earlier, call record.Time) {
	if p.earlier = e; len(e.parts) > 0 { // The Reply was sent, and did not come to the requester.
		p.earlier.parts = append(p.earlier.parts, passed{call, toClient})
	}
}

// read keeps the times of an RDMA Read, and reports whether it did.
func (p *pathTimes) read(t *rdma.ReadTimes) bool {
	if len(p.reads) > maxSplitReads {
		return false
	}
	p.reads = append(p.reads, t)
	return true
}

// write notes when an RDMA Write left the responder.
func (p *pathTimes) write(at record.Time) {
	if p.firstWrite == 0 || at < p.firstWrite {
		p.firstWrite = at
	}
}

// seenAtBoth notes that the Call, or the answer, was captured at both ends.
func (p *pathTimes) seenAtBoth(call bool) {
	p.callSeen, p.answerSeen = p.callSeen || call, p.answerSeen || !call
}

// hold keeps a packet that was lost before a wait ended.
func (p *pathTimes) hold(h heldBy) { p.held = append(p.held, h) }

// earlier is what happened to an RPC before its Call was sent on the current connection.
type earlier struct {
	sent    record.Stamp // the Call was first sent; its packet number is 0 if it was not sent before
	parts   []passed
	unclear bool // where the time passed is not known
}

// passed is a part of the time of an RPC on an earlier connection.
type passed struct {
	until record.Time
	place place
}

// place is where a part of the time of an RPC passed.
type place uint8

const (
	toServer place = iota // in the network
	atServer
	toClient // in the network
)

// firstSent returns when the Call was first sent, perhaps on an earlier connection.
func firstSent(x *txn) record.Stamp {
	if x.path != nil && x.path.earlier.sent.Packet != 0 {
		return x.path.earlier.sent
	}
	return record.Stamp{Time: x.call.Time, Packet: x.call.Packet}
}

// soFar returns what has happened to an RPC whose Call may be retransmitted on another connection.
func soFar(x *txn) (e earlier) {
	if !x.cs.link.SeveralPoints() {
		return earlier{sent: firstSent(x), unclear: true}
	}
	if x.path != nil {
		e = x.path.earlier
		e.parts = slices.Clone(e.parts)
	}
	e.sent = firstSent(x)
	delivered, known := x.call.Delivered.Get()
	switch {
	case known && (x.path == nil || !x.path.callSeen): // when it came is not known
		e.unclear = true
	case known && x.answered != &noAnswer:
		sent := min(x.answer.FirstSent.Or(x.answer.Time), x.answer.Time)
		e.parts = append(e.parts, passed{delivered, toServer}, passed{sent, atServer})
	case known && len(x.path.reads) > 0 && !slices.ContainsFunc(x.path.reads, func(r *rdma.ReadTimes) bool { return r.Delivered != 0 }): // their requests were lost
		e.parts = append(e.parts, passed{delivered, toServer}, passed{x.path.reads[0].Requested, atServer})
	case known, x.call.Delivery != record.DeliveryNotDelivered:
		e.unclear = true
	}
	return e
}

// continueFrom notes that a Call was sent before on an earlier connection.
func continueFrom(x *txn, e *earlier) {
	if e.sent.Packet == 0 || e.sent.Time > x.call.Time {
		return
	}
	p := onPath(x)
	p.follow(*e, x.call.Time)
	x.charge(int64(len(p.earlier.parts)) * passedCost)
	x.call.FirstSent = record.Some(e.sent.Time)
	x.wait(record.Wait{
		From: e.sent.Time, To: x.call.Time, Reason: record.NewConnection, Waiting: x.cs.link.Setup().End(x.side), Event: record.EventCall,
		Packets: packetList(x.cs, e.sent.Packet, x.call.Packet, 0),
	})
}

// passedCost is the memory of a part of the time on an earlier connection that is charged to the budget.
const passedCost = 16

// maxSplitReads limits the number of RDMA Reads of a transaction whose times are kept.
const maxSplitReads = 1024

// pathTimesCost is the memory of the times of an RDMA Read that is charged to the budget.
const pathTimesCost = 96

// onPath returns the times of a transaction, to change them.
func onPath(x *txn) *pathTimes {
	if x.path == nil {
		x.path = new(pathTimes)
		x.charge(pathTimesCost)
	}
	return x.path
}

// notePath notes an RDMA operation that began.
func notePath(x *txn, o *rdma.Operation) {
	switch t := o.Times(); {
	case t != nil:
		if onPath(x).read(t) {
			x.charge(pathTimesCost)
		}
	case o.Kind == rdma.Write && o.SentSeen():
		onPath(x).write(o.First.Time)
	}
}

// splitOf divides the latency by the ends at which the time passed. A cursor runs from the Call to the end of the Reply.
func splitOf(x *txn) (s record.Opt[record.Split]) {
	p := x.path
	t1, delivered := x.call.Delivered.Get()
	if p == nil || !p.callSeen || !p.answerSeen || !delivered || !x.latency.Known() || len(p.reads) > maxSplitReads || p.earlier.unclear {
		return s
	}
	slices.SortStableFunc(p.reads, func(a, b *rdma.ReadTimes) int { return cmp.Compare(a.Requested, b.Requested) })
	t0, t2, t3 := firstSent(x).Time, x.answer.Time, x.answer.LastTime
	if first, again := x.answer.FirstSent.Get(); again {
		t2 = min(t2, first)
	}
	at, v := t0, record.Split{}
	until := func(end record.Time, part *int64) {
		if end = min(end, t3); end > at {
			*part += int64(end - at)
			at = end
		}
	}
	for _, e := range p.earlier.parts {
		until(e.until, []*int64{toServer: &v.RequestNetworkNS, atServer: &v.ServerNS, toClient: &v.ReplyNetworkNS}[e.place])
	}
	until(t1, &v.RequestNetworkNS)
	for _, r := range p.reads {
		if r.OneSided || r.Delivered == 0 || r.Responded == 0 || r.Done == 0 {
			return s
		}
		until(r.Requested, &v.ServerNS)
		until(r.Delivered, &v.ReplyNetworkNS)
		until(max(r.Responded, r.Delivered), &v.ClientNS)
		until(r.Done, &v.RequestNetworkNS)
	}
	if p.firstWrite != 0 {
		begun := max(at, p.firstWrite)
		v.ServerSendNS = max(int64(min(t2, t3)-begun), 0)
	}
	until(t2, &v.ServerNS)
	v.ServerSendNS = min(v.ServerSendNS, v.ServerNS)
	until(t3, &v.ReplyNetworkNS)
	return record.Some(v)
}
