// Package analyze sums transaction records up: credits of a connection over
// time, exposed handles over time, and figures per procedure. What it makes are
// records, too.
package analyze

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect"
)

// Quantiles are of a set of durations, in nanoseconds; null without any.
type Quantiles struct {
	P50 *int64 `json:"p50_ns"`
	P90 *int64 `json:"p90_ns"`
	P99 *int64 `json:"p99_ns"`
	Max *int64 `json:"max_ns"`
}

// quantiles sorts the durations and takes the nearest ranks.
func quantiles(d []int64) (q Quantiles) {
	if len(d) == 0 {
		return q
	}
	slices.Sort(d)
	rank := func(percent int) *int64 {
		v := d[max(0, (len(d)*percent+99)/100-1)]
		return &v
	}
	return Quantiles{rank(50), rank(90), rank(99), rank(100)}
}

// share is part of whole; nil of nothing.
func share(part, whole int) *float64 {
	if whole == 0 {
		return nil
	}
	v := float64(part) / float64(whole)
	return &v
}

// interval is when a transaction was in flight: to the Reply's last packet, or
// to the end of the connection when there is none.
func interval(r *dissect.Transaction, end dissect.Time) (from, to dissect.Time) {
	from, to = r.Call.Time, end
	if r.LatencyNS != nil {
		to = from + dissect.Time(*r.LatencyNS)
	}
	return from, to
}

// maxKept bounds how many transactions of a connection a timeline remembers.
const maxKept = 1 << 20
