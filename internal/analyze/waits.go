package analyze

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// waitTable sums up waits by their reason.
type waitTable map[record.WaitReason]*waitSum

// waitSum sums up the waits with one reason.
type waitSum struct {
	rpcs, count int64
	ns          int64 // sum over all RPCs
	outages     outages
}

// add adds the waits of a transaction, and reports whether there are any. If waits of the
// transaction overlap, the sums count the time of the overlap once, for the wait that began
// first; so the sums of all reasons add up to the time that transactions spent in waits.
func (t waitTable) add(r *record.Transaction) (waited bool) {
	waits := r.Waits
	byBegin := func(a, b record.Wait) int { return cmp.Compare(a.From, b.From) }
	if !slices.IsSortedFunc(waits, byBegin) {
		waits = slices.Clone(waits)
		slices.SortStableFunc(waits, byBegin)
	}
	var counted record.Time // end of the time that the sums include
	for i := range waits {
		w := &waits[i]
		ns := r.Waited(w)
		if ns == 0 {
			continue
		}
		from, to := w.From, w.From+record.Time(ns)
		if waited {
			from = max(from, counted)
		}
		counted = max(to, from)
		waited = true
		sum := t[w.Reason]
		if sum == nil {
			sum = &waitSum{}
			t[w.Reason] = sum
		}
		sum.count++
		sum.ns += max(to.Sub(from), 0)
		sum.outages.add(w.From, to)
		sameReason := func(x record.Wait) bool { return x.Reason == w.Reason && r.Waited(&x) > 0 }
		if slices.IndexFunc(waits, sameReason) == i { // the first wait of this RPC with this reason
			sum.rpcs++
		}
	}
	return waited
}

// counts returns the sums, the longest first.
func (t waitTable) counts() (list []WaitCount) {
	for reason, sum := range t {
		list = append(list, WaitCount{Reason: reason, RPCs: sum.rpcs, Count: sum.count, TotalNS: sum.ns, NS: sum.outages.total()})
	}
	slices.SortFunc(list, func(a, b WaitCount) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}

// outages measures the time in which at least one of many RPCs waited. It merges waits
// that overlap, because one interruption of a connection delays all RPCs in flight and
// must not be counted once for each of them.
type outages struct {
	spans    []span      // disjoint, in order
	finished int64       // length of the earlier spans that were removed, in nanoseconds
	since    record.Time // end of the last removed span; earlier time is not counted anymore
}

// span is the time from its first moment to its last.
type span struct{ from, to record.Time }

// maxSpans limits the memory of outages. If there are more spans, the oldest half is
// replaced by its length.
const maxSpans = 4096

// add adds one wait.
func (o *outages) add(from, to record.Time) {
	if o.finished > 0 {
		from = max(from, o.since)
	}
	if to <= from {
		return
	}
	first, _ := slices.BinarySearchFunc(o.spans, from, func(s span, t record.Time) int { return cmp.Compare(s.to, t) })
	last := first
	for last < len(o.spans) && o.spans[last].from <= to {
		from, to = min(from, o.spans[last].from), max(to, o.spans[last].to)
		last++
	}
	o.spans = slices.Replace(o.spans, first, last, span{from, to})
	if len(o.spans) > maxSpans {
		for _, s := range o.spans[:maxSpans/2] {
			o.finished += s.to.Sub(s.from)
			o.since = s.to
		}
		o.spans = slices.Delete(o.spans, 0, maxSpans/2)
	}
}

// total returns the time in which at least one RPC waited, in nanoseconds.
func (o *outages) total() int64 {
	ns := o.finished
	for _, s := range o.spans {
		ns += s.to.Sub(s.from)
	}
	return ns
}
