package analyze

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Operation sums up the requests of one operation or procedure: what clients asked for once, even if they sent the Call again.
type Operation struct {
	Name      string    `json:"operation" doc:"Name of the operation of NFSv4 that the requests were sent for, or of the procedure; the requests of mounting, unmounting and recovery are one row." secret:"no"`
	Requests  int64     `json:"requests" doc:"Number of requests."`
	Failed    int64     `json:"failed" doc:"Number of requests that were answered with an error: an RDMA_ERROR, or an RPC or NFS error status."`
	NoReply   int64     `json:"no_reply" doc:"Number of requests without a Reply in the capture."`
	Bytes     int64     `json:"bytes" doc:"Number of bytes of files that the requests read or wrote."`
	SumNS     int64     `json:"total_ns" doc:"Sum of the latencies, in nanoseconds."`
	StalledNS int64     `json:"stalled_ns" doc:"Part of total_ns for which the requests stalled, in nanoseconds."`
	Latency   Quantiles `json:"latency" doc:"Distribution of the latencies."`
	Phases    PhaseSums `json:"phases" doc:"Parts that total_ns is made of."`

	latencies durations
}

// Mounting is the name of the row for mounting, unmounting and recovery.
const Mounting = "mount/session"

// Merge returns the sum of operations, with a name.
func Merge(name string, list []*Operation) *Operation {
	sum := &Operation{Name: name}
	for _, o := range list {
		sum.Requests += o.Requests
		sum.Failed += o.Failed
		sum.NoReply += o.NoReply
		sum.Bytes += o.Bytes
		sum.SumNS += o.SumNS
		sum.StalledNS += o.StalledNS
		sum.Phases.sum(&o.Phases)
		sum.latencies.merge(&o.latencies)
		sum.Latency.mergeBounds(&o.Latency)
	}
	sum.Latency = sum.Latency.withBounds(sum.latencies.quantiles())
	return sum
}

// sum adds the phases of other transactions.
func (s *PhaseSums) sum(o *PhaseSums) {
	s.ToReadNS += o.ToReadNS
	s.ReadNS += o.ReadNS
	s.ToWriteNS += o.ToWriteNS
	s.WriteNS += o.WriteNS
	s.ToReplyNS += o.ToReplyNS
	s.WaitNS += o.WaitNS
}

// requests sums up requests by operation.
type requests struct {
	grouping[Operation]
	exact    exactLimit
	attempts record.Attempts[*Operation]
}

func newRequests() requests {
	return requests{
		exact: exactLimit{most: maxExact}, attempts: record.Attempts[*Operation]{},
		grouping: newGrouping(func(name string, _ []string) *Operation { return &Operation{Name: name} }),
	}
}

// operationName returns the name of the row for a transaction.
func operationName(r *record.Transaction) string {
	switch {
	case r.OfMounting():
		return Mounting
	case r.Operation.Known() || r.ProcedureName.Known():
		return r.Operation.Or(r.ProcedureName.Or(""))
	case !r.Program.Known():
		return record.NotDecoded
	}
	return r.ProgramProcedure()
}

// add adds an attempt. The first one counts as a request.
func (q *requests) add(r *record.Transaction) {
	o := q.row(append(q.group[:0], operationName(r)))
	if r.Attempt <= 1 {
		o.Requests++
	}
	if at, n := q.attempts.Add(r.Request, r.Attempt, r.Status, o); n != 0 {
		at.NoReply += n
	}
	if r.Failed() {
		o.Failed++
	}
	read, written := r.FileBytes()
	o.Bytes += read + written
	latency, known := r.LatencyNS.Get()
	if !known {
		return
	}
	p := r.Phases.Or(record.Phases{})
	o.SumNS += latency
	o.StalledNS += p.WaitNS
	o.Phases.add(p)
	o.Latency.bound(r)
	q.exact.add(&o.latencies, latency, func(yield func(string, *durations) bool) {
		for _, o := range q.rows {
			if !yield(o.Name, &o.latencies) {
				return
			}
		}
	})
}

// list returns the rows, those with the largest sums of latencies first.
func (q *requests) list() []*Operation {
	rows := slices.Collect(maps.Values(q.rows))
	for _, o := range rows {
		o.Latency = o.Latency.withBounds(o.latencies.quantiles())
	}
	slices.SortFunc(rows, func(a, b *Operation) int {
		return cmp.Or(cmp.Compare(b.SumNS, a.SumNS), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// Course is how many requests began in each of many intervals of the same length.
type Course struct {
	From     record.Time `json:"from" doc:"Start of the first interval: the time of the first packet, or of --from."`
	BucketNS int64       `json:"interval_ns" doc:"Length of an interval, in nanoseconds."`
	Requests []int64     `json:"requests" doc:"Number of requests whose first Call was sent in each interval, up to the last one with any."`
}

// maxBuckets is the number of intervals of a Course, and firstBucket the shortest length.
const (
	maxBuckets  = 1 << 11
	firstBucket = 1 << 16 // 66 microseconds
)

// add counts a request. The intervals become longer so that all of them suffice.
func (c *Course) add(at record.Time) {
	if c.BucketNS == 0 {
		c.BucketNS = firstBucket
	}
	since := max(0, at.Sub(c.From))
	for since/c.BucketNS >= maxBuckets {
		n := (len(c.Requests) + 1) / 2
		for i := range n {
			sum := c.Requests[2*i]
			if 2*i+1 < len(c.Requests) {
				sum += c.Requests[2*i+1]
			}
			c.Requests[i] = sum
		}
		c.Requests, c.BucketNS = c.Requests[:n], 2*c.BucketNS
	}
	i := int(since / c.BucketNS)
	for len(c.Requests) <= i {
		c.Requests = append(c.Requests, 0)
	}
	c.Requests[i]++
}
