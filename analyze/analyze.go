// Package analyze sums transaction records up: credits of a connection over
// time, exposed handles over time, and figures per procedure. What it makes are
// records, too.
package analyze

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Quantiles are of a set of durations, in nanoseconds; null without any.
type Quantiles struct {
	P50 record.Opt[int64] `json:"p50_ns" doc:"half took no longer"`
	P90 record.Opt[int64] `json:"p90_ns" doc:"90 of 100 took no longer"`
	P99 record.Opt[int64] `json:"p99_ns" doc:"99 of 100 took no longer"`
	Max record.Opt[int64] `json:"max_ns" doc:"the longest"`
}

// quantiles sorts the durations and takes the nearest ranks.
func quantiles(d []int64) (q Quantiles) {
	if len(d) == 0 {
		return q
	}
	slices.Sort(d)
	rank := func(percent int) record.Opt[int64] { return record.Some(d[max(0, (len(d)*percent+99)/100-1)]) }
	return Quantiles{rank(50), rank(90), rank(99), rank(100)}
}

// share is part of whole; unknown of nothing.
func share(part, whole int) record.Opt[float64] {
	return record.SomeIf(float64(part)/float64(max(whole, 1)), whole != 0)
}

// interval is when a transaction was in flight: to the Reply's last packet, or
// to the end of the connection when there is none.
func interval(r *record.Transaction, end record.Time) (from, to record.Time) {
	from, to = r.Call.Time, end
	if latency, known := r.LatencyNS.Get(); known {
		to = from + record.Time(latency)
	}
	return from, to
}

// maxKept bounds how many transactions of a connection a timeline remembers.
const maxKept = 1 << 20
