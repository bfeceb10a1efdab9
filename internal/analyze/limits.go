package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// What limited the rate of READs and WRITEs, as far as the capture proves it: each sentence names a share, and what it is a share of.

// inFlight collects when at least one RPC was in flight.
type inFlight struct {
	spans   outages
	late    bool                  // an RPC began in a time that was summed up already
	open    map[int][]record.Time // Calls without a Reply, by connection
	opened  int
	unknown bool
}

// add adds a transaction: from its Call to its Reply or, without a Reply, until its connection begins to close.
func (f *inFlight) add(r *record.Transaction) {
	switch {
	case r.Call == nil || r.Direction == record.Backward:
	case r.LatencyNS.Known():
		f.span(r.Sent(), r.End())
	case r.Status != record.NoReply || f.opened == maxPending: // The time of the Reply is not known, or there are too many.
		f.unknown = true
	default:
		if f.open == nil {
			f.open = map[int][]record.Time{}
		}
		f.opened++
		f.open[r.Connection] = append(f.open[r.Connection], r.Sent())
	}
}

// span adds the time of an RPC.
func (f *inFlight) span(from, to record.Time) {
	f.late = f.late || f.spans.finished > 0 && from < f.spans.since
	f.spans.add(from, to)
}

// connection ends the Calls of a connection that have no Reply.
func (f *inFlight) connection(r *record.Connection) {
	for _, from := range f.open[r.ID] {
		f.span(from, r.EndOfCalls())
		f.opened--
	}
	delete(f.open, r.ID)
}

// within returns for how long at least one RPC was in flight between two times. It is unknown if too much was summed up before.
func (f *inFlight) within(first, last record.Time) record.Opt[int64] {
	ns := f.spans.finished
	if f.late || f.unknown || f.opened > 0 || ns > 0 && (f.spans.since > last || f.spans.began < first) {
		return record.Opt[int64]{}
	}
	for _, s := range f.spans.spans {
		ns += max(0, min(s.to, last).Sub(max(s.from, first)))
	}
	return record.Some(ns)
}

// complete reports whether the capture has every Call and Reply in its time, so that a time without any is proven.
func (c *Collector) complete(s *record.Summary) bool {
	h := &c.o.Health
	return s != nil && !c.live && h.NotCaptured == 0 && c.o.RPCs.NoCall == 0 && s.CaptureDrops == 0 && len(s.Absences) == 0 && s.OnlyFrom() == "" && s.TimeBackwards == 0 &&
		!s.InputError.Known() && s.Malformed == 0
}

// least is the smallest share that is named, in percent.
const leastNamed = 5

// limits returns sentences about what limited the rate of READs and WRITEs, in the order in which the capture proves them. Selected
// tells that the overview is about a part of the capture, whose connections have no figures of their own.
func (o *Overview) limits(selected bool) (list []string) {
	list = []string{}
	t, known := o.Throughput.Get()
	if !known {
		return list
	}
	if len(o.Credits) > 0 && !selected {
		if text := o.Credits[0].limit(); text != "" {
			list = append(list, text)
		}
	}
	span := t.SpanNS
	open, proven := t.InFlightNS.Get()
	switch idle := span - open; {
	case span <= 0:
	case !proven:
		list = append(list, "for how long no RPC was in flight is not proven: the capture may lack packets, or their times")
	case 100*idle >= leastNamed*span:
		which := "no RPC was in flight (the clients asked for nothing)"
		if selected {
			which = "none of the selected RPCs was in flight"
		}
		list = append(list, fmt.Sprintf("for %s of the %s from the first READ or WRITE to the last, %s", percentOf(idle, span), field.Duration(span), which))
	}
	if text := t.passed(); text != "" {
		list = append(list, text)
	}
	return list
}

// percentOf returns a share in percent.
func percentOf(part, of int64) string {
	return fmt.Sprintf("%.0f%%", float64(part)*100/float64(max(of, 1)))
}

// limit says for how long a connection used all its credits, and is empty if that was a small part of its time.
func (c *CreditUse) limit() string {
	u, known := c.Usage.Get()
	if !known || 100*u.AllInUseNS < leastNamed*u.InFlightNS {
		return ""
	}
	return fmt.Sprintf("%s that the server granted to connection %d %s in use for %s of the %s in which it had Calls in flight", record.Every(c.Granted.Or(0), "credit"), c.Connection, record.Were(c.Granted.Or(0)), percentOf(u.AllInUseNS, u.InFlightNS), field.Duration(u.InFlightNS))
}

// passed says where the latency of READs and WRITEs passed.
func (t *Throughput) passed() string {
	if t.LatencyNS <= 0 {
		return ""
	}
	p := &t.Phases
	type part struct {
		ns    int64
		words string
	}
	parts := []part{
		{p.ToReadNS + p.ToWriteNS + p.ToReplyNS, "waiting for the server's next RDMA Read, RDMA Write or Reply"},
		{p.ReadNS + p.WriteNS, "while RDMA Reads and RDMA Writes moved data"},
		{t.RetransmittedNS, "stalled until a retransmission"},
		{max(0, p.WaitNS-t.RetransmittedNS), "stalled for other reasons"},
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.ns, a.ns) })
	var words []string
	rest := t.LatencyNS
	for _, x := range parts {
		if 100*x.ns >= leastNamed*t.LatencyNS {
			words = append(words, percentOf(x.ns, t.LatencyNS)+" "+x.words)
			rest -= x.ns
		}
	}
	if words == nil {
		return ""
	}
	if 100*rest >= t.LatencyNS {
		words = append(words, percentOf(rest, t.LatencyNS)+" otherwise")
	}
	return fmt.Sprintf("the latencies of READs and WRITEs add up to %s: %s%s", field.Duration(t.LatencyNS), strings.Join(words, ", "), t.ofServer())
}

// ofServer says how much of the latencies the server took, or that this is not proven.
func (t *Throughput) ofServer() string {
	x := t.Shares.Percents(t.Shares.LatencyNS)[0]
	if x.Min < leastNamed {
		return "; how much of these latencies the server took, and how much the network, is not proven"
	}
	return "; it is proven that " + percents(x) + " of these latencies passed at the server"
}
