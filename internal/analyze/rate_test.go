package analyze

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// rated returns the intervals of some transactions in a capture that starts at 0 and ends at a time
// in milliseconds.
func rated(t *testing.T, every time.Duration, by string, end int64, list ...*record.Transaction) []*Rate {
	t.Helper()
	var values func([]string, *record.Transaction) []string
	if by == "connection" {
		values = func(v []string, r *record.Transaction) []string { return append(v, fmt.Sprint(r.Connection)) }
	}
	sums, err := NewRates(every, by, values)
	if err != nil {
		t.Fatal(err)
	}
	sums.Begin(0)
	for _, r := range list {
		if err := sums.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := sums.Connection(&record.Connection{ID: 0, Last: record.Time(end * 1e6)}); err != nil {
		t.Fatal(err)
	}
	rows, err := sums.Rows(record.Time(end * 1e6))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestRates: an RPC belongs to the interval of its Reply, or of its Call if it has none. In flight
// is a Call until its Reply, or until the end of its connection.
func TestRates(t *testing.T) {
	failed := func(r *record.Transaction) { r.Status = record.NoReply }
	rows := rated(t, 100*time.Millisecond, "", 450,
		transaction(10, 20, 8, nil),    // in the first interval
		transaction(50, 150, 16, nil),  // from the first to the second
		transaction(110, 120, 32, nil), // while the one before is in flight
		transaction(310, 0, 0, failed), // never answered
	)
	var got []string
	for _, r := range rows {
		level, _ := r.InFlight.Get()
		got = append(got, fmt.Sprintf("%d-%d: %d rpcs, %d errors, %d without a Reply, p50 %d ms, %.2f/%d in flight, credits %v, %d and %d bytes",
			r.Start/1e6, r.End/1e6, r.RPCs, r.Errors, r.NoReply, r.Latency.P50.Or(0)/1e6, level.Mean, level.Peak, r.Credits.Or(-1), r.BytesToServer, r.BytesToClient))
	}
	want := []string{
		"0-100: 1 rpcs, 0 errors, 0 without a Reply, p50 10 ms, 0.60/1 in flight, credits 8, 100 and 100 bytes",
		"100-200: 2 rpcs, 0 errors, 0 without a Reply, p50 10 ms, 0.60/2 in flight, credits 16, 200 and 200 bytes",
		"200-300: 0 rpcs, 0 errors, 0 without a Reply, p50 0 ms, 0.00/0 in flight, credits -1, 0 and 0 bytes",
		"300-400: 1 rpcs, 0 errors, 1 without a Reply, p50 0 ms, 0.90/1 in flight, credits -1, 100 and 0 bytes",
		"400-500: 0 rpcs, 0 errors, 0 without a Reply, p50 0 ms, 0.50/1 in flight, credits -1, 0 and 0 bytes",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// TestRatesOfGroups: every group has all intervals, and they add up to what one group has.
func TestRatesOfGroups(t *testing.T) {
	other := func(r *record.Transaction) { r.Connection = 1 }
	rows := rated(t, time.Second, "connection", 2500, transaction(10, 20, 8, nil), transaction(1500, 1600, 8, other), transaction(1700, 1701, 8, nil))
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%d %s %d", r.Start/1e9, r.Name, r.RPCs))
	}
	if want := []string{"0 0 1", "0 1 0", "1 0 1", "1 1 1", "2 0 0", "2 1 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRatesLimits: a length that is not positive, and more intervals than the limit, are errors; a
// clock that is set back is none.
func TestRatesLimits(t *testing.T) {
	for _, every := range []time.Duration{0, -time.Second, time.Nanosecond} {
		if _, err := NewRates(every, "", nil); err == nil {
			t.Errorf("no error for intervals of %v", every)
		}
	}
	sums, _ := NewRates(time.Millisecond, "", nil)
	sums.Begin(record.Time(1e9))
	if err := sums.Add(transaction(10, 20, 8, nil)); err != nil {
		t.Error(err)
	}
	if err := sums.Add(transaction(maxIntervals+2000, maxIntervals+2001, 8, nil)); !errors.Is(err, errTooManyIntervals) {
		t.Errorf("error %v for too many intervals", err)
	}
	if rows, err := sums.Rows(record.Time(1e9)); err != nil || len(rows) != 1 || rows[0].RPCs != 1 {
		t.Errorf("%d rows, error %v", len(rows), err)
	}
}

// TestFittingRates: intervals that become longer while transactions are added have the same sums as
// intervals that have had that length from the beginning.
func TestFittingRates(t *testing.T) {
	var list []*record.Transaction
	for i := range int64(500) {
		from := i * i % 7001
		list = append(list, transaction(from, from+1+i%90, uint32(8+i%3), nil))
	}
	sums := NewFittingRates(20)
	sums.Begin(0)
	for _, r := range list {
		if err := sums.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := sums.Rows(9000 * 1e6)
	if err != nil {
		t.Fatal(err)
	}
	if sums.Every() != time.Second || len(rows) != 10 {
		t.Fatalf("%d intervals of %v, want 10 of 1s", len(rows), sums.Every())
	}
	fixed := rated(t, time.Second, "", 9000, list...)
	for i, r := range rows {
		got, want := *r, *fixed[i]
		got.latencies, want.latencies = durations{}, durations{}
		got.creditsAt, want.creditsAt = 0, 0
		if !reflect.DeepEqual(got, want) {
			t.Errorf("interval %d: %+v, want %+v", i, &got, &want)
		}
	}
}

// TestFittingTimes: any time has an interval.
func TestFittingTimes(t *testing.T) {
	for _, most := range []int{0, 2, 240} {
		sums := NewFittingRates(most)
		sums.Begin(-1 << 62)
		for _, at := range []int64{0, 1 << 40, math.MaxInt64} {
			if err := sums.Add(&record.Transaction{Call: &record.Message{Time: record.Time(at)}, Status: record.NoReply}); err != nil {
				t.Error(err)
			}
		}
		rows, err := sums.Rows(math.MaxInt64)
		if err != nil || len(rows) > max(most, 2) {
			t.Errorf("%d intervals, error %v; want at most %d", len(rows), err, max(most, 2))
		}
	}
}

// TestRateOfBytes: the data of READs and WRITEs counts in the interval of their Replies, and per second.
func TestRateOfBytes(t *testing.T) {
	read := func(r *record.Transaction) {
		r.Operation = record.Some("READ")
		r.WriteChunks = []record.WriteChunk{{Segments: []record.WriteSegment{{Length: 8192, ReturnedLength: record.Some[uint32](4096)}}}}
	}
	written := func(r *record.Transaction) {
		r.Operation = record.Some("WRITE")
		r.ReadChunks = []record.ReadChunk{{Position: 180, Segments: []record.Segment{{Length: 1000}}}}
	}
	rows := rated(t, 500*time.Millisecond, "", 990, transaction(10, 400, 8, read), transaction(20, 450, 8, written), transaction(450, 600, 8, written))
	for i, want := range [][3]int64{{4096, 1000, 2 * 5096}, {0, 1000, 2000}} {
		if got := [3]int64{rows[i].BytesRead, rows[i].BytesWritten, rows[i].BytesPerS}; got != want {
			t.Errorf("interval %d: %d bytes read, %d written, %d per second; want %d", i, got[0], got[1], got[2], want)
		}
	}
}

// TestSetBack: if the clock of a live capture is set back, the RPCs after that count in intervals of the new time, and none count in the
// interval of the old time until the clock reaches it again.
func TestSetBack(t *testing.T) {
	const second = record.Time(1e9)
	rates, err := NewRates(time.Second, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	rates.Unattended()
	rates.Begin(7200 * second)
	var got []string
	show := func(rows []*Rate) {
		for _, r := range rows {
			got = append(got, fmt.Sprint(int64(r.Start/second), ":", r.RPCs, " ", r.Latency.Estimated))
		}
	}
	for i := range 20 {
		now := (7200 + record.Time(i)) * second
		if i >= 10 {
			now -= 3600 * second
		}
		call := &record.Transaction{Call: &record.Message{Time: now}, Reply: &record.Message{Time: now + 1000, LastTime: now + 1000}, LatencyNS: record.Some[int64](1000)}
		if err := rates.Add(call); err != nil {
			t.Fatal(err)
		}
		show(rates.SetBack(now))
		show(rates.Take(now))
	}
	show(rates.SetBack(3618 * second)) // not more than an interval
	show(rates.Take(3700 * second))
	want := []string{}
	for i := range 10 {
		want = append(want, fmt.Sprint(7200+i, ":1 false"))
	}
	want[9] = "7209:2 false" // the first one before the new time is known
	for i := range 9 {
		want = append(want, fmt.Sprint(3611+i-1, ":", min(i, 1), " false"))
	}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("the intervals are %q, want %q", got, want)
	}
}

// TestRatesOfAttempts: a request is counted where its first attempt was, and not as unanswered once another attempt was answered; the bytes
// and the latency of each attempt stay in the interval of its own Reply.
func TestRatesOfAttempts(t *testing.T) {
	attempt := func(n int, from, to int64) *record.Transaction {
		r := &record.Transaction{
			ID: int64(n), Request: 1, Attempt: n, Status: record.NoReply, Direction: record.Forward,
			Call: &record.Message{Time: record.Time(from * 1e6), PayloadBytes: record.Some[int64](100)},
		}
		if to > 0 {
			r.Status, r.Reply, r.LatencyNS = record.Complete, &record.Message{Time: record.Time(to * 1e6), LastTime: record.Time(to * 1e6)}, record.Some((to-from)*1e6)
		}
		return r
	}
	rows := rated(t, 10*time.Millisecond, "", 40, attempt(1, 5, 0), attempt(2, 15, 35))
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%d/%d %d %d %d", r.RPCs, r.Attempts, r.NoReply, r.BytesToServer, r.Latency.Max.Or(0)))
	}
	if want := []string{"1/1 0 100 0", "0/0 0 0 0", "0/0 0 0 0", "0/1 0 100 20000000", "0/0 0 0 0"}; !slices.Equal(got, want) {
		t.Errorf("intervals %q, want %q", got, want)
	}
}
