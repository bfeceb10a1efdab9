package analyze

import (
	"fmt"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
)

// transaction makes a record: times in milliseconds, reply 0 for none.
func transaction(call, reply int64, granted uint32, edit func(*dissect.Transaction)) *dissect.Transaction {
	program, version, name := uint32(100003), uint32(3), "NFS"
	procedure, size := "READ", int64(100)
	r := &dissect.Transaction{
		Program: &program, Version: &version, ProgramName: &name, ProcedureName: &procedure, Status: dissect.StatusComplete,
		Call: &dissect.Message{Time: dissect.Time(call * 1e6), Credits: 32, Form: "short", PayloadBytes: &size},
	}
	if reply == 0 {
		r.Status = dissect.StatusNoReply
	} else {
		latency := (reply - call) * 1e6
		r.LatencyNS = &latency
		r.Reply = &dissect.Message{Time: dissect.Time(reply * 1e6), Credits: granted, Form: "short", PayloadBytes: &size}
	}
	if edit != nil {
		edit(r)
	}
	return r
}

// TestCredits: in flight, limit and time at the limit, with Replies out of
// order and one missing.
func TestCredits(t *testing.T) {
	var c CreditTimeline
	c.Add(transaction(0, 1, 2, nil))
	c.Add(transaction(2, 6, 2, nil))
	c.Add(transaction(3, 5, 2, nil)) // two in flight from 3 to 5
	c.Add(transaction(7, 8, 4, nil))
	c.Add(transaction(9, 0, 0, nil))
	got := c.Finish(0, dissect.Forward, 10e6)
	if got.PeakInFlight != 2 || got.LimitReached != 1 || got.LimitNS != 2e6 || fmt.Sprint(got.Requested) != "[32]" {
		t.Errorf("peak %d, limit reached %d times for %d ns, asked for %v", got.PeakInFlight, got.LimitReached, got.LimitNS, got.Requested)
	}
	points := ""
	for _, p := range got.Points {
		points += fmt.Sprintf("%d:%d ", p.Time/1e6, p.InFlight)
	}
	if points != "0:1 1:0 2:1 3:2 5:1 6:0 7:1 8:0 9:1 " {
		t.Errorf("points %s", points)
	}
	if len(got.Grants) != 2 || got.Grants[0].Granted != 2 || got.Grants[1] != (Grant{Time: 8e6, Granted: 4}) {
		t.Errorf("grants %v", got.Grants)
	}
}

func chunk(handles ...dissect.Hex32) []dissect.ReadChunk {
	var c dissect.ReadChunk
	for _, h := range handles {
		c.Segments = append(c.Segments, dissect.Segment{Handle: h, Length: 10, MovedBytes: 10})
	}
	return []dissect.ReadChunk{c}
}

// TestHandles: who ended each exposure, what was left, what came again.
func TestHandles(t *testing.T) {
	var h HandleTimeline
	h.Add(transaction(0, 4, 1, func(r *dissect.Transaction) {
		r.ReadChunks, r.Invalidation = chunk(1), &dissect.Invalidation{Handle: 1}
	}))
	h.Add(transaction(10, 12, 1, func(r *dissect.Transaction) {
		r.ReadChunks, r.Invalidation, r.NotInvalidated = chunk(1, 2), &dissect.Invalidation{Handle: 1}, []dissect.Hex32{2}
	}))
	h.Add(transaction(20, 21, 1, func(r *dissect.Transaction) { r.ReadChunks, r.NotInvalidated = chunk(3, 3), []dissect.Hex32{3} }))
	h.Add(transaction(30, 0, 0, func(r *dissect.Transaction) { r.ReadChunks = chunk(4) }))
	h.Add(transaction(31, 32, 1, nil)) // exposes nothing
	got := h.Finish(0, 50e6)
	summary := fmt.Sprint(got.Exposures, got.Distinct, got.ChunkReplies, got.InvalidatingReplies, got.LeftOver, got.LeftAll, got.Reused, got.NeverInvalidated)
	if summary != "5 4 3 2 1 1 1 1" {
		t.Errorf("exposures, handles, Replies with chunks, invalidating, left over, left all, reused, never: %s", summary)
	}
	if *got.RemoteShare != 0.4 || *got.ReuseAfter.P50 != 6e6 || *got.Exposed.P50 != 2e6 || *got.Exposed.Max != 20e6 {
		t.Errorf("remote %v, reused after %d, exposed %d, longest %d", *got.RemoteShare, *got.ReuseAfter.P50, *got.Exposed.P50, *got.Exposed.Max)
	}
	if got.Bars[3].MovedBytes != 20 {
		t.Errorf("two segments under one handle moved %d bytes", got.Bars[3].MovedBytes)
	}
}

// TestStats: counts, errors, quantiles, bytes by form, and who would have
// needed no chunks.
func TestStats(t *testing.T) {
	table := NewTable(ByOperation)
	for i := range 100 {
		table.Add(transaction(0, int64(i+1), 1, nil))
	}
	failed := "NFS3ERR_IO"
	table.Add(transaction(0, 1, 1, func(r *dissect.Transaction) { r.NFSStatus = &failed }))
	table.Add(transaction(0, 0, 0, nil))
	table.Add(transaction(0, 200, 1, func(r *dissect.Transaction) {
		r.ReplyChunk = &dissect.WriteChunk{Segments: []dissect.WriteSegment{{Length: 9000}}}
		r.Reply.Form = "long"
	}))
	rows := table.Rows()
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	s := rows[0]
	if s.Name != "NFS3 READ" || s.Count != 103 || s.Complete != 102 || s.Errors != 2 || s.ExplicitRDMA != 1 {
		t.Errorf("%+v", s)
	}
	if *s.Latency.P50 != 50e6 || *s.Latency.P90 != 91e6 || *s.Latency.P99 != 100e6 || *s.Latency.Max != 200e6 {
		t.Errorf("p50 %d, p90 %d, p99 %d, max %d", *s.Latency.P50, *s.Latency.P90, *s.Latency.P99, *s.Latency.Max)
	}
	if s.InlineAt["8192"] != 0 || s.InlineAt["16384"] != 1 || s.ReplyBytes != (Forms{Short: 10100, Long: 100}) {
		t.Errorf("inline at %v, Replies %+v", s.InlineAt, s.ReplyBytes)
	}
	if q := quantiles(nil); q.P50 != nil {
		t.Error("a quantile of nothing")
	}
}
