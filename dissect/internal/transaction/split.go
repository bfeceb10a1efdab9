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
}

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
		if p := onPath(x); len(p.reads) <= maxSplitReads {
			p.reads = append(p.reads, t)
			x.charge(pathTimesCost)
		}
	case o.Kind == rdma.Write && o.SentSeen():
		if p := onPath(x); p.firstWrite == 0 || o.First.Time < p.firstWrite {
			p.firstWrite = o.First.Time
		}
	}
}

// splitOf divides the latency by the ends at which the time passed. A cursor runs from the Call to the end of the Reply.
func splitOf(x *txn) (s record.Opt[record.Split]) {
	p := x.path
	t1, delivered := x.call.Delivered.Get()
	if p == nil || !p.callSeen || !p.answerSeen || !delivered || !x.latency.Known() || len(p.reads) > maxSplitReads {
		return s
	}
	slices.SortStableFunc(p.reads, func(a, b *rdma.ReadTimes) int { return cmp.Compare(a.Requested, b.Requested) })
	t0, t2, t3 := x.call.Time, x.answer.Time, x.answer.LastTime
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
