package analyze

import (
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestLimits: each sentence has a share and what it is a share of. A time without RPCs is said only of a complete capture.
func TestLimits(t *testing.T) {
	const ms = int64(1e6)
	rpc := func(from, to record.Time, p record.Phases) *record.Transaction {
		r := moving("c", "READ", from, to, 1000)
		r.LatencyNS, r.Phases = record.Some(to.Sub(from)), record.Some(p)
		return r
	}
	some := record.Some[int64]
	used := &record.Connection{Credits: record.Some(record.CreditPair{Forward: record.Credits{
		Granted: record.Some[uint32](4), PeakInFlight: record.Some(4), Usage: record.Some(record.CreditUsage{InFlightNS: 1000 * ms, AllInUse: 9, AllInUseNS: 600 * ms, LongestNS: 90 * ms, Followed: 8}),
	}})}
	for _, c := range []struct {
		name    string
		summary record.Summary
		partial bool
		shares  record.Opt[record.Shares]
		want    string
	}{
		{"complete", record.Summary{}, false, record.Opt[record.Shares]{}, "all 4 credits that the server granted to connection 0 were in use for 60% of the 1.000s in which it had Calls in flight; " +
			"for 80% of the 1.000s from the first READ or WRITE to the last, no RPC was in flight (the clients asked for nothing); " +
			"the latencies of READs and WRITEs add up to 200.00ms: 60% waiting for the server's next RDMA Read, RDMA Write or Reply, 40% while RDMA Reads and RDMA Writes moved data; how much of these latencies the server took, and how much the network, is not proven"},
		{"proven", record.Summary{}, false, record.Some(record.Shares{ServerNS: record.Bounds{Min: 50 * ms, Max: 50 * ms}, ClientNS: record.Bounds{Max: 1}, NetworkNS: record.Bounds{Min: 50*ms - 1, Max: 50 * ms}}), "; it is proven that 50% of these latencies passed at the server"},
		{"packets are missing", record.Summary{CaptureDrops: 1}, false, record.Opt[record.Shares]{}, "in flight; for how long no RPC was in flight is not proven: the capture may lack packets, or their times; the latencies of"},
		{"a part", record.Summary{}, true, record.Opt[record.Shares]{}, "for 80% of the 1.000s from the first READ or WRITE to the last, none of the selected RPCs was in flight; the latencies of"},
	} {
		col := NewCollector()
		for _, from := range []record.Time{0, 900e6} {
			r := rpc(from, from+100e6, record.Phases{ToWriteNS: some(50 * ms), WriteNS: some(40 * ms), ToReplyNS: some(10 * ms)})
			r.Shares = c.shares
			col.Transaction(r)
		}
		if c.partial {
			col.Partial()
		}
		col.Connection(used)
		o := col.Finish(&c.summary)
		got := strings.Join(o.Limit, "; ")
		if !strings.Contains(got, c.want) || c.partial && !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
	if o := NewCollector().Finish(&record.Summary{}); len(o.Limit) > 0 {
		t.Errorf("without READs and WRITEs: %v", o.Limit)
	}
}

// TestInFlight: times of RPCs that overlap count once, and a Call without a Reply is in flight until its connection closes.
func TestInFlight(t *testing.T) {
	var f inFlight
	add := func(connection int, from, to record.Time) {
		r := &record.Transaction{Status: record.NoReply, Connection: connection, Call: &record.Message{Time: from}}
		if to > 0 {
			r.Reply, r.LatencyNS = &record.Message{Time: to}, record.Some(to.Sub(from))
		}
		f.add(r)
	}
	add(0, 10, 20)
	add(0, 15, 30)
	add(1, 40, 0)
	if got := f.within(0, 100); got.Known() {
		t.Errorf("%v, although a Call has no Reply and its connection is not over", got)
	}
	f.connection(&record.Connection{ID: 1, Closed: record.Some(record.Time(60)), Last: 70})
	if got := f.within(12, 50); got != record.Some[int64](18+10) {
		t.Errorf("%v, want 28", got)
	}
	for i := range record.Time(2 * maxSpans) {
		add(0, 1000+10*i, 1005+10*i)
	}
	if got, want := f.within(0, 1e9), int64(20+20+5*2*maxSpans); got != record.Some(want) {
		t.Errorf("%v, want %d", got, want)
	}
	if add(0, 5, 9); f.within(0, 1e9).Known() {
		t.Error("an RPC began in a time that was summed up before")
	}
}
