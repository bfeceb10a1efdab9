package analyze

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// made is the number of requests that transaction made.
var made int64

// transaction returns a record. The times are in milliseconds; without a Reply, reply is 0.
func transaction(call, reply int64, granted uint32, edit func(*record.Transaction)) *record.Transaction {
	size := record.Some[int64](100)
	made++
	r := &record.Transaction{
		Request: made, Attempt: 1,
		Program: record.Some[uint32](100003), Version: record.Some[uint32](3), ProgramName: record.Some("NFS"), ProcedureName: record.Some("READ"),
		Status: record.Complete, Call: &record.Message{Time: record.Time(call * 1e6), Credits: record.Some[uint32](32), Form: record.Short, PayloadBytes: size},
	}
	if reply == 0 {
		r.Status = record.NoReply
	} else {
		r.LatencyNS = record.Some((reply - call) * 1e6)
		r.Reply = &record.Message{Time: record.Time(reply * 1e6), Credits: record.Some(granted), Form: record.Short, PayloadBytes: size}
	}
	if edit != nil {
		edit(r)
	}
	return r
}

// TestCredits: outstanding Calls, granted credits and the time in which all credits were in
// use, with Replies out of order and a Call without Reply.
func TestCredits(t *testing.T) {
	var c CreditTimeline
	c.Add(transaction(0, 1, 2, nil))
	c.Add(transaction(2, 6, 2, nil))
	c.Add(transaction(3, 5, 2, nil)) // two in flight from 3 to 5
	c.Add(transaction(7, 8, 4, nil))
	c.Add(transaction(9, 0, 0, nil))
	got := c.Finish(withCredits(10e6), record.Forward)
	if got.PeakInFlight != record.Some(2) || got.CreditLimitReached != record.Some(1) || got.CreditLimitReachedNS != record.Some[int64](2e6) || fmt.Sprint(got.Requested) != "[32]" {
		t.Errorf("peak %v, limit reached %v times for %v ns, requested %v", got.PeakInFlight, got.CreditLimitReached, got.CreditLimitReachedNS, got.Requested)
	}
	points := ""
	for _, p := range got.Points {
		points += fmt.Sprintf("%d:%d ", p.Time/1e6, p.InFlight.Or(-1))
	}
	if points != "0:1 1:0 2:1 3:2 5:1 6:0 7:1 8:0 9:1 10:0 " {
		t.Errorf("points %s", points)
	}
	if len(got.Grants) != 2 || got.Grants[0].Granted != 2 || got.Grants[1] != (Grant{Time: 8e6, Granted: 4}) {
		t.Errorf("grants %v", got.Grants)
	}
}

// withCredits returns the record of a connection whose outstanding Calls are known, with the time of its last packet.
func withCredits(last record.Time) *record.Connection {
	use := record.Credits{PeakInFlight: record.Some(1)}
	return &record.Connection{Last: last, Credits: record.Some(record.CreditPair{Forward: use, Backward: use})}
}

// TestUncounted: if the record of a connection does not say how many Calls were outstanding in a direction, its timeline
// does not either; it still lists requests and grants.
func TestUnwithCredits(t *testing.T) {
	for _, direction := range []record.Direction{record.Forward, record.Backward} {
		var timeline CreditTimeline
		timeline.Add(transaction(0, 1, 2, nil))
		timeline.Add(transaction(2, 0, 0, nil))
		c := withCredits(10e6)
		pair := c.Credits.Or(record.CreditPair{})
		if direction == record.Forward {
			pair.Forward.PeakInFlight = record.Opt[int]{}
		} else {
			pair.Backward.PeakInFlight = record.Opt[int]{}
		}
		c.Credits = record.Some(pair)
		got := timeline.Finish(c, direction)
		if got.PeakInFlight.Known() || got.CreditLimitReached.Known() || got.CreditLimitReachedNS.Known() || len(got.Points) != 4 || got.Points[1].InFlight.Known() {
			t.Errorf("%s: the peak is %v, the limit was reached %v for %v ns, and the points are %v; want all unknown at four points", direction, got.PeakInFlight, got.CreditLimitReached, got.CreditLimitReachedNS, got.Points)
		}
		if len(got.Grants) != 1 || got.Points[1].Granted != record.Some[uint32](2) || len(got.Requested) != 1 {
			t.Errorf("%s: grants %v, requested %v, %+v", direction, got.Grants, got.Requested, got.Points)
		}
	}
}

func chunk(handles ...record.Hex32) []record.ReadChunk {
	var c record.ReadChunk
	for _, h := range handles {
		c.Segments = append(c.Segments, record.Segment{Handle: h, Length: 10, MovedBytes: 10})
	}
	return []record.ReadChunk{c}
}

// TestHandles: the side that ended each exposure, local invalidations, and reused handles.
func TestHandles(t *testing.T) {
	var h HandleTimeline
	h.Add(transaction(0, 4, 1, func(r *record.Transaction) {
		r.ReadChunks, r.Invalidation = chunk(1), record.Some(record.Invalidation{Handle: 1})
	}))
	h.Add(transaction(10, 12, 1, func(r *record.Transaction) {
		r.ReadChunks, r.Invalidation, r.NotInvalidated = chunk(1, 2), record.Some(record.Invalidation{Handle: 1}), []record.Hex32{2}
	}))
	h.Add(transaction(20, 21, 1, func(r *record.Transaction) { r.ReadChunks, r.NotInvalidated = chunk(3, 3), []record.Hex32{3} }))
	h.Add(transaction(30, 0, 0, func(r *record.Transaction) { r.ReadChunks = chunk(4) }))
	h.Add(transaction(31, 32, 1, nil)) // exposes nothing
	got := h.Finish(0, 50e6)
	summary := fmt.Sprint(got.ExposureCount, got.Distinct, got.ChunkReplies, got.InvalidatingReplies, got.LocalInvExtra, got.LocalInvNoRemote, got.Reused, got.NeverInvalidated)
	if summary != "5 4 3 2 1 1 1 1" {
		t.Errorf("exposures, handles, Replies with chunks, invalidating, local extra, local without remote, reused, never: %s", summary)
	}
	if got.RemoteShare.Or(-1) != 0.4 || got.ReuseInterval.P50.Or(-1) != 6e6 || got.Exposure.P50.Or(-1) != 2e6 || got.Exposure.Max.Or(-1) != 20e6 {
		t.Errorf("remote %v, reused after %v, exposed for %v, longest %v", got.RemoteShare, got.ReuseInterval.P50, got.Exposure.P50, got.Exposure.Max)
	}
	if got.Exposures[3].MovedBytes != 20 {
		t.Errorf("two segments under one handle moved %d bytes", got.Exposures[3].MovedBytes)
	}
}

// TestStats: counts, errors, quantiles, bytes by form, and the RPCs that would have needed no
// chunks.
func TestStats(t *testing.T) {
	table := NewTable(ByOperation)
	for i := range 100 {
		table.Add(transaction(0, int64(i+1), 1, nil))
	}
	table.Add(transaction(0, 1, 1, func(r *record.Transaction) { r.NFSStatus = record.Some("NFS3ERR_IO") }))
	table.Add(transaction(0, 0, 0, nil))
	table.Add(transaction(0, 200, 1, func(r *record.Transaction) {
		r.ReplyChunk = &record.WriteChunk{Segments: []record.WriteSegment{{Length: 9000}}}
		r.Reply.Form = record.Long
	}))
	rows := table.Rows()
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	s := rows[0]
	if s.Name != "NFS3 READ" || s.Requests != 103 || s.Complete != 102 || s.Errors != 1 || s.NoReply != 1 || s.ExplicitRDMA != 1 {
		t.Errorf("%s has %d RPCs, %d complete, %d errors, %d without a Reply, %d with explicit RDMA; want NFS3 READ with 103, 102, 1, 1, 1", s.Name, s.Requests, s.Complete, s.Errors, s.NoReply, s.ExplicitRDMA)
	}
	if l := s.Latency; l.P50.Or(-1) != 50e6 || l.P90.Or(-1) != 91e6 || l.P99.Or(-1) != 100e6 || l.Max.Or(-1) != 200e6 {
		t.Errorf("p50 %v, p90 %v, p99 %v, max %v", l.P50, l.P90, l.P99, l.Max)
	}
	if s.FitsInlineAt["8192"] != 0 || s.FitsInlineAt["16384"] != 1 || s.ReplyBytes != (Forms{Short: 10100, Long: 100}) {
		t.Errorf("inline at %v, Replies %+v", s.FitsInlineAt, s.ReplyBytes)
	}
	if q := quantiles(nil); q.P50.Known() {
		t.Error("a quantile of nothing")
	}
}

// TestManyStats: the memory of a table is bounded for any input, and estimated quantiles are
// marked.
func TestManyStats(t *testing.T) {
	table := NewTable(ByProcedure)
	table.maxRows, table.exact.most = 3, 1000
	for i := range 5000 {
		table.Add(transaction(0, int64(i+1), 1, nil)) // 1 to 5000 ms
	}
	for i := range 10 {
		table.Add(transaction(0, 7, 1, func(r *record.Transaction) { r.ProcedureName = record.Some(fmt.Sprint("P", i)) }))
	}
	table.Add(transaction(0, 0, 0, func(r *record.Transaction) { r.ProcedureName = record.Some("P9") }))
	got := ""
	for _, s := range table.Rows() {
		got += fmt.Sprintf("%s %d %d %t; ", s.Name, s.Requests, s.Latency.Max.Or(0), s.Latency.Estimated)
	}
	if got != "NFS3 READ 5000 5000000000 true; others 9 7000000 false; NFS3 P0 1 7000000 false; NFS3 P1 1 7000000 false; " {
		t.Error(got)
	}
	for _, c := range []struct {
		got  record.Opt[int64]
		want float64
	}{{table.rows["NFS3 READ"].Latency.P50, 2500e6}, {table.rows["NFS3 READ"].Latency.P90, 4500e6}, {table.rows["NFS3 READ"].Latency.P99, 4950e6}} {
		if off := float64(c.got.Or(0))/c.want - 1; off > 0.01 || off < -0.01 {
			t.Errorf("%v is off by %.4f of %v", c.got, off, c.want)
		}
	}
	if table.exact.exact > 1000 || len(table.rows["NFS3 READ"].latencies.exact) != 0 {
		t.Errorf("the table has %d single latencies", table.exact.exact)
	}
}

// TestAttempts checks that sums count requests, and beside them the Calls that were sent for them, in whatever order these end.
func TestAttempts(t *testing.T) {
	attempt := func(id, request int64, number, connection int, status record.Status) *record.Transaction {
		return &record.Transaction{ID: id, Request: request, Attempt: number, Connection: connection, Status: status}
	}
	for _, c := range []struct {
		name string
		by   []*record.Transaction
		want string // requests, attempts and requests without a Reply
		conn string // the same by connection
	}{
		{"once", []*record.Transaction{attempt(1, 1, 1, 0, record.Complete)}, "1 1 0", "1 1 0"},
		{"answered again", []*record.Transaction{attempt(1, 1, 1, 0, record.NoReply), attempt(2, 1, 2, 1, record.Complete)}, "1 2 0", "1 1 0, 0 1 0"},
		{"the second ends first", []*record.Transaction{attempt(2, 1, 2, 1, record.Complete), attempt(1, 1, 1, 0, record.NoReply)}, "1 2 0", "1 1 0, 0 1 0"},
		{"never answered", []*record.Transaction{attempt(1, 1, 1, 0, record.NoReply), attempt(2, 1, 2, 0, record.NoReply), attempt(3, 1, 3, 0, record.NoReply)}, "1 3 1", "1 3 1"},
		{"asked again after a Reply", []*record.Transaction{attempt(1, 1, 1, 0, record.Complete), attempt(2, 1, 2, 1, record.NoReply)}, "1 2 0", "1 1 0, 0 1 0"},
		{"the second without a Reply ends first", []*record.Transaction{attempt(2, 1, 2, 1, record.NoReply), attempt(1, 1, 1, 0, record.NoReply)}, "1 2 1", "1 1 1, 0 1 0"},
		{"two", []*record.Transaction{attempt(1, 1, 1, 0, record.NoReply), attempt(2, 2, 1, 0, record.NoReply), attempt(3, 1, 2, 0, record.Complete)}, "2 3 1", "2 3 1"},
	} {
		sum := func(table *Table) string {
			var rows []string
			for _, r := range c.by {
				table.Add(r)
			}
			all := table.Rows()
			slices.SortFunc(all, func(a, b *Stats) int { return cmp.Compare(a.Name, b.Name) })
			for _, s := range all {
				rows = append(rows, fmt.Sprint(s.Requests, s.Attempts, s.NoReply))
			}
			return strings.Join(rows, ", ")
		}
		if got := sum(NewTable(ByOperation)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		byConn := NewTableOf("conn", func(values []string, r *record.Transaction) []string { return append(values, fmt.Sprint(r.Connection)) })
		if got := sum(byConn); got != c.conn {
			t.Errorf("%s by connection: %s, want %s", c.name, got, c.conn)
		}
	}
}

// TestDurations: durations that no clock can measure are counted, too.
func TestDurations(t *testing.T) {
	for _, all := range [][]int64{{math.MinInt64, math.MinInt64}, {-5, 3}, {math.MaxInt64, 1, 1, 1}} {
		var d durations
		for _, ns := range all {
			d.add(ns)
		}
		d.coarsen()
		if q := d.quantiles(); q.Max.Or(0) != slices.Max(all) || q.P50.Or(1) > q.Max.Or(0) || d.steps.TotalCount() != int64(len(all)) {
			t.Errorf("of the durations %v, %d are counted, the largest is %v and half are at most %v", all, d.steps.TotalCount(), q.Max, q.P50)
		}
	}
}

// TestWaits: RPCs with and without a Reply are summed up apart, and waits of several RPCs
// that overlap are one outage.
func TestWaits(t *testing.T) {
	waits := func(reason record.WaitReason, spans ...int64) func(*record.Transaction) {
		return func(r *record.Transaction) {
			for i := 0; i < len(spans); i += 2 {
				from, to := spans[i]*1e6, spans[i+1]*1e6
				r.Waits = append(r.Waits, record.Wait{From: record.Time(from), To: record.Time(to), NS: to - from, Reason: reason})
			}
		}
	}
	ended := func(how record.Ending) *record.Connection {
		return &record.Connection{ID: 0, Ended: record.Some(record.Ended{How: how, By: record.Some(record.Client), OutstandingCalls: 2})}
	}
	for name, c := range map[string]struct {
		rpcs []*record.Transaction
		end  record.Ending
		want string
	}{
		"no waits": {[]*record.Transaction{transaction(0, 5, 1, nil)}, record.EndDisconnect, "answered 1, 5 ms, []; unanswered 0, stalled 0 for 0 ms, []"},
		"one outage of three answered RPCs": {[]*record.Transaction{
			transaction(0, 20, 1, waits(record.RetransmitGap, 2, 12)), transaction(1, 21, 1, waits(record.RetransmitGap, 4, 14)),
			transaction(2, 22, 1, waits(record.RetransmitGap, 3, 5, 13, 15)),
		}, record.EndDisconnect, "answered 3, 60 ms, [retransmit_gap 3 RPCs 4 waits 13 ms]; unanswered 0, stalled 0 for 0 ms, []"},
		"only the wait before the Reply counts": {
			[]*record.Transaction{transaction(0, 10, 1, waits(record.RetransmitGap, 8, 14))},
			record.EndDisconnect, "answered 1, 10 ms, [retransmit_gap 1 RPCs 1 waits 2 ms]; unanswered 0, stalled 0 for 0 ms, []",
		},
		"an outage without a Reply": {[]*record.Transaction{
			transaction(0, 5, 1, nil), transaction(1, 0, 0, waits(record.RetransmitTimeout, 10, 600, 600, 1200)),
			transaction(2, 0, 0, waits(record.RetransmitTimeout, 12, 1300)), transaction(3, 0, 0, nil),
		}, record.EndRetries, "answered 1, 5 ms, []; unanswered 3, stalled 2 for 1290 ms, [retransmit_timeout 2 RPCs 3 waits 1290 ms]"},
		"a disconnect after waits": {
			[]*record.Transaction{transaction(1, 0, 0, waits(record.RetransmitTimeout, 10, 20))},
			record.EndDisconnect, "answered 0, 0 ms, []; unanswered 1, stalled 1 for 10 ms, [retransmit_timeout 1 RPCs 1 waits 10 ms]",
		},
		"a Reply without its Call": {
			[]*record.Transaction{{Status: record.NoCall, Reply: &record.Message{}}},
			record.EndDisconnect, "answered 0, 0 ms, []; unanswered 0, stalled 0 for 0 ms, []",
		},
	} {
		collector := NewCollector()
		for _, r := range c.rpcs {
			collector.Transaction(r)
		}
		collector.Connection(ended(c.end))
		at := collector.Finish(nil).Time
		words := func(list []WaitCount) string {
			text := ""
			for _, w := range list {
				text += fmt.Sprintf("%s %d RPCs %d waits %d ms", w.Reason, w.RPCs, w.Count, w.NS/1e6)
			}
			return "[" + text + "]"
		}
		u := at.Unanswered
		got := fmt.Sprintf("answered %d, %d ms, %s; unanswered %d, stalled %d for %d ms, %s",
			at.Answered, at.TotalNS/1e6, words(at.Waits), u.RPCs, u.Stalled, u.StalledNS/1e6, words(u.Waits))
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// TestWaitSums: the sums of all reasons add up to the time that RPCs spent in waits.
func TestWaitSums(t *testing.T) {
	wait := func(from, to int64, reason record.WaitReason) record.Wait {
		return record.Wait{From: record.Time(from * 1e6), To: record.Time(to * 1e6), NS: (to - from) * 1e6, Reason: reason}
	}
	collector := NewCollector()
	for range 2 {
		collector.Transaction(transaction(0, 20, 1, func(r *record.Transaction) {
			r.Waits = []record.Wait{
				wait(4, 9, record.RetransmitGap), wait(2, 6, record.RetransmitNak), wait(3, 5, record.RetransmitGap), wait(15, 30, record.RetransmitUnknown),
			}
			r.Phases = record.Some(record.Phases{WaitNS: 12e6})
		}))
	}
	collector.Transaction(transaction(0, 20, 1, nil))
	at := collector.Finish(nil).Time
	sums, total := map[record.WaitReason]int64{}, int64(0)
	for _, w := range at.Waits {
		sums[w.Reason] = w.TotalNS / 1e6
		total += w.TotalNS
	}
	want := map[record.WaitReason]int64{record.RetransmitNak: 8, record.RetransmitGap: 6, record.RetransmitUnknown: 10}
	if !maps.Equal(sums, want) || total != at.Phases.WaitNS {
		t.Errorf("got %v ms, %d in total; want %v, %d in total", sums, total, want, at.Phases.WaitNS)
	}
}

// TestOutages: any order of waits gives the same total, and many waits take little memory.
func TestOutages(t *testing.T) {
	all := []span{{10, 20}, {20, 25}, {40, 50}, {5, 12}, {45, 46}, {60, 60}, {70, 69}}
	for range len(all) {
		all = append(all[1:], all[0])
		var o outages
		for _, s := range all {
			o.add(s.from, s.to)
		}
		if o.total() != 30 || len(o.spans) != 2 {
			t.Errorf("%v: total %d, spans %v", all, o.total(), o.spans)
		}
	}
	var o outages
	for i := range record.Time(100000) {
		o.add(10*i, 10*i+3)
	}
	o.add(0, 5) // long finished
	if o.total() != 300000 || len(o.spans) > maxSpans {
		t.Errorf("total %d, %d spans", o.total(), len(o.spans))
	}
}

// TestGroups: transactions are summed up by any values, and the groups beyond the limit together.
func TestGroups(t *testing.T) {
	table := NewTableOf("connection,status", func(values []string, r *record.Transaction) []string {
		return append(values, strconv.Itoa(r.Connection), string(r.Status))
	})
	table.maxRows = 2
	for i, status := range []record.Status{record.Complete, record.NoReply, record.Complete, record.Complete} {
		table.Add(&record.Transaction{Connection: i / 3, Status: status, LatencyNS: record.SomeIf(int64(i+1), status == record.Complete)})
	}
	var got []string
	for _, s := range table.Rows() {
		got = append(got, fmt.Sprintf("%s: %q %d of %s, %d ns", s.Name, s.Group, s.Requests, s.GroupBy, s.TotalNS))
	}
	want := []string{
		`0, complete: ["0" "complete"] 2 of connection,status, 4 ns`,
		`others: [] 1 of connection,status, 4 ns`,
		`0, no_reply: ["0" "no_reply"] 1 of connection,status, 0 ns`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("groups %q, want %q", got, want)
	}
}

// TestEndOfCalls: a Call without a Reply is outstanding until its connection begins to close or, if
// that is not in the capture, until the last packet, in the credit timeline and in the rates alike.
func TestEndOfCalls(t *testing.T) {
	for name, closed := range map[string]record.Opt[record.Time]{"closed": record.Some[record.Time](20e6), "not seen to close": {}} {
		t.Run(name, func(t *testing.T) {
			c := withCredits(40e6)
			c.Closed = closed
			want := closed.Or(c.Last)
			call := transaction(10, 0, 0, nil)
			var credits CreditTimeline
			credits.Add(call)
			points := credits.Finish(c, record.Forward).Points
			if last := points[len(points)-1]; last.Time != want || last.InFlight != record.Some(0) {
				t.Errorf("%v Calls are outstanding at %d ms", last.InFlight, last.Time/1e6)
			}
			var late CreditTimeline // a Call after the end
			late.Add(transaction(50, 0, 0, func(r *record.Transaction) { r.Call.Packet = 7 }))
			if points := late.Finish(c, record.Forward).Points; points[0].InFlight != record.Some(1) || points[1].InFlight != record.Some(0) {
				t.Errorf("a Call after the end: %+v", points)
			}
			if end := transaction(10, 0, 0, func(r *record.Transaction) { r.ReadChunks = chunk(1) }).Exposures(c.EndOfCalls())[0].To; end != want {
				t.Errorf("the memory is exposed until %d ms", end/1e6)
			}
			rates, err := NewRates(time.Millisecond, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			rates.Begin(0)
			if err := errors.Join(rates.Add(call), rates.Connection(c)); err != nil {
				t.Fatal(err)
			}
			rows, err := rates.Rows(c.Last)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				if inFlight := r.Start >= 10e6 && r.Start < want; (r.InFlight.Or(Level{}).Mean > 0) != inFlight {
					t.Errorf("at %d ms, %+v are in flight", r.Start/1e6, r.InFlight)
				}
			}
		})
	}
}

// TestUpperBounds: the quantiles that a latency with an uncertain end may have changed are upper bounds, and no others.
func TestUpperBounds(t *testing.T) {
	table := NewTable(ByOperation)
	rates, err := NewRates(1000*time.Second, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		r := transaction(0, int64(i+1), 1, nil)
		table.Add(r)
		if err := rates.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	uncertain := transaction(0, 97, 1, func(r *record.Transaction) { r.LatencyMinNS = record.Some[int64](60e6) })
	table.Add(uncertain)
	if err := rates.Add(uncertain); err != nil {
		t.Fatal(err)
	}
	intervals, err := rates.Rows(1e9)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a live view asks again
		for what, q := range map[string]Quantiles{"stats": table.Rows()[0].Latency, "rates": intervals[0].Latency} {
			got := fmt.Sprint(q.UpperBounds, q.AtMost(q.P50.Or(0)), q.AtMost(q.P90.Or(0)), q.AtMost(q.P99.Or(0)), q.AtMost(q.Max.Or(0)))
			if want := "1 false true false false"; got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
	}
	table.Add(transaction(0, 200, 1, func(r *record.Transaction) { r.LatencyMinNS = record.Some[int64](1e6) }))
	q := table.Rows()[0].Latency
	if got := fmt.Sprint(q.UpperBounds, q.AtMost(q.P50.Or(0)), q.AtMost(q.Max.Or(0)), q.AtMost(201e6)); got != "2 true true false" {
		t.Errorf("with two upper bounds, the bounds of the median, the largest and 201 ms are %s; want true, true, false", got)
	}
	if q := (Quantiles{UpperBounds: 1}); !q.AtMost(5) { // as JSON has it, without the ends
		t.Error("quantiles from JSON are not upper bounds")
	}
	c := NewCollector()
	c.Transaction(uncertain)
	c.Transaction(transaction(0, 5, 1, nil))
	if w := c.Finish(nil).Time; w.UpperBounds != 1 || w.Answered != 2 {
		t.Errorf("%d of %d latencies are upper bounds", w.UpperBounds, w.Answered)
	}
}

// TestStatuses: transactions that failed are counted by their outermost status.
func TestStatuses(t *testing.T) {
	c := NewCollector()
	for range 3 {
		c.Transaction(&record.Transaction{Reply: &record.Message{}, Status: record.Complete, RPCStatus: record.Some("SUCCESS"), NFSStatus: record.Some("NFS4ERR_MINOR_VERS_MISMATCH")})
	}
	c.Transaction(&record.Transaction{Reply: &record.Message{}, Status: record.Complete, RPCStatus: record.Some("PROG_MISMATCH")})
	c.Transaction(&record.Transaction{Reply: &record.Message{}, Status: record.Complete, RPCStatus: record.Some("SUCCESS"), NFSStatus: record.Some("NFS4_OK")})
	got := c.Finish(nil).RPCs.Statuses
	want := []StatusCount{{"NFS4ERR_MINOR_VERS_MISMATCH", 3}, {"PROG_MISMATCH", 1}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%v, want %v", got, want)
	}
}
