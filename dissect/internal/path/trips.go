package path

import (
	"math/bits"

	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// The limits of the state: requests without an answer, the latest round trips, and the buckets of their
// distribution, 8 for each power of two up to 17 s.
const (
	mostOpen   = 16
	mostRecent = 64
	fine       = 3 // bits of a time below its first one that select its bucket
	buckets    = (35 - fine) << fine
	tripsCost  = 2560 // bytes of the budget
)

// RoundTrips measures the time from requests to their answers, at the capture point: a packet that was captured once, and
// the first response with exactly its sequence number.
type RoundTrips struct {
	circle    order.Circle
	open      [mostOpen]request // a ring, the oldest at from
	from, n   int
	recent    [mostRecent]trip // a ring, the latest before next
	next      int
	count     int64
	min, max  int64
	maxPacket int64
	spread    [buckets]uint32
}

// request is a request without an answer. Its time is 0 if it was retransmitted.
type request struct {
	seq uint32
	at  record.Time
}

// trip is a round trip that ended at a time.
type trip struct {
	at record.Time
	ns int64
}

func (r *RoundTrips) sent(seq uint32, at record.Time) {
	if r.n == mostOpen { // the oldest is not measured
		r.from, r.n = (r.from+1)%mostOpen, r.n-1
	}
	r.open[(r.from+r.n)%mostOpen] = request{seq, at}
	r.n++
}

func (r *RoundTrips) again(seq uint32) {
	for i := range r.n {
		if q := &r.open[(r.from+i)%mostOpen]; q.seq == seq {
			q.at = 0
		}
	}
}

func (r *RoundTrips) answered(seq uint32, at record.Stamp) (ns int64, measured bool) {
	for r.n > 0 {
		q := r.open[r.from]
		delta := r.circle.Delta(q.seq, seq)
		if delta > 0 {
			return 0, false
		}
		r.from, r.n = (r.from+1)%mostOpen, r.n-1
		if delta == 0 {
			if ns = int64(at.Time - q.at); q.at == 0 || ns < 0 {
				return 0, false
			}
			r.add(ns, at)
			return ns, true
		}
	}
	return 0, false
}

// add adds a round trip.
func (r *RoundTrips) add(ns int64, at record.Stamp) {
	if r.count == 0 || ns < r.min {
		r.min = ns
	}
	if r.count == 0 || ns > r.max {
		r.max, r.maxPacket = ns, at.Packet
	}
	r.count++
	r.spread[bucketOf(ns)]++
	r.recent[r.next] = trip{at.Time, ns}
	r.next = (r.next + 1) % mostRecent
}

// bucketOf returns the bucket of a round trip.
func bucketOf(ns int64) int {
	shift := max(bits.Len64(uint64(ns))-fine-1, 0)
	return min(shift<<fine+int(ns>>shift), buckets-1)
}

// below returns the upper end of a bucket.
func below(bucket int) int64 {
	shift := max(bucket>>fine-1, 0)
	return int64(bucket-shift<<fine+1)<<shift - 1
}

// Record returns the distribution of the round trips. It is unknown if there are none.
func (r *RoundTrips) Record() (t record.Opt[record.RoundTrips]) {
	if r == nil || r.count == 0 {
		return t
	}
	return record.Some(record.RoundTrips{Count: r.count, MinNS: r.min, P50NS: r.quantile(50), P99NS: r.quantile(99), MaxNS: r.max, MaxPacket: r.maxPacket})
}

// quantile returns a time that at least a percentage of the round trips did not exceed.
func (r *RoundTrips) quantile(percent int64) int64 {
	rest := (r.count*percent + 99) / 100
	for i, n := range r.spread {
		if rest -= int64(n); rest <= 0 {
			return max(r.min, min(below(i), r.max))
		}
	}
	return r.max
}

// Between returns the latest round trips that ended from a time on, up to another one.
func (r *RoundTrips) Between(from, to record.Time) (t record.Opt[record.RecentTrips]) {
	if r == nil {
		return t
	}
	var v record.RecentTrips
	last := record.Time(0)
	for _, s := range r.recent[:min(r.count, mostRecent)] {
		if s.at < from || s.at > to {
			continue
		}
		if v.Count == 0 || s.ns < v.MinNS {
			v.MinNS = s.ns
		}
		v.Count, v.MaxNS, last = v.Count+1, max(v.MaxNS, s.ns), max(last, s.at)
	}
	v.LastBeforeEndNS = int64(to - last)
	return record.SomeIf(v, v.Count > 0)
}

// fewTrips is the number of round trips to each side that are compared, and nearer how many times shorter they are to the side
// that is nearer.
const (
	fewTrips = 20
	nearer   = 3
)

// Nearer returns the side to which round trips are much shorter: both the shortest one and a tenth of them.
func Nearer(toServer, toClient *RoundTrips) (side record.Opt[record.End]) {
	if toServer == nil || toClient == nil || toServer.count < fewTrips || toClient.count < fewTrips {
		return side
	}
	isNearer := func(a, b *RoundTrips) bool { return a.min*nearer <= b.min && a.quantile(10)*nearer <= b.quantile(10) }
	switch {
	case isNearer(toServer, toClient):
		return record.Some(record.Server)
	case isNearer(toClient, toServer):
		return record.Some(record.Client)
	}
	return side
}
