package analyze

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Throughput sums up the file data that READ and WRITE moved.
type Throughput struct {
	BytesRead         int64              `json:"bytes_read" doc:"Number of bytes of files that READs returned. If too little of the results was captured, it is that of the data in chunks, with padding."`
	BytesWritten      int64              `json:"bytes_written" doc:"Number of bytes of files that WRITEs wrote. If too little of the results was captured, it is that of the data in chunks, with padding."`
	MeanBytesPerS     int64              `json:"mean_bytes_per_s" doc:"Mean number of these bytes in a second, from the first Call of these READs and WRITEs to their last Reply."`
	PeakBytesPerS     int64              `json:"peak_bytes_per_s" doc:"Number of bytes in the second with the most bytes, by the time of the Reply; seconds count from the first packet of the capture, as in rates."`
	PeakAt            record.Time        `json:"peak_at" doc:"Start of this second."`
	BusiestClient     record.Opt[string] `json:"busiest_client" doc:"Address of the client whose READs and WRITEs moved the most bytes; null if it is not known." secret:"address"`
	BusiestBytes      int64              `json:"busiest_client_bytes" doc:"Number of bytes of this client."`
	AllCreditsInUseNS int64              `json:"all_credits_in_use_ns" doc:"Time in which all credits of a connection were in use, if the next Call came within 100 ms after a Reply had freed one, in nanoseconds: such a Call may have waited for the credit."`

	SpanNS          int64     `json:"span_ns" doc:"Time from the first Call of these READs and WRITEs to their last Reply, in nanoseconds."`
	LatencyNS       int64     `json:"total_ns" doc:"Sum of the latencies of these READs and WRITEs, in nanoseconds."`
	Phases          PhaseSums `json:"phases" doc:"Parts that total_ns is made of."`
	Shares          ShareSums `json:"shares" doc:"Parts of total_ns that each host and the network took, as far as the capture proves it."`
	RetransmittedNS int64     `json:"retransmitted_ns" doc:"Part of total_ns for which these READs and WRITEs stalled until a retransmission, in nanoseconds."`
}

// The limits of what is remembered at once.
const (
	maxSeconds = 1 << 12
	maxClients = 1 << 12
)

// throughput collects a Throughput.
type throughput struct {
	Throughput
	begin       record.Time // of the capture
	begun       bool
	first, last record.Time
	seconds     map[int64]int64 // bytes by second since begin
	clients     map[string]int64
}

// add adds a transaction. Its bytes count in the second of its Reply.
func (t *throughput) add(r *record.Transaction) {
	read, written := r.FileBytes()
	if read+written == 0 {
		return
	}
	if t.seconds == nil {
		t.seconds, t.clients, t.first = map[int64]int64{}, map[string]int64{}, r.Start()
		if !t.begun {
			t.begin, t.begun = t.first, true
		}
	}
	t.BytesRead += read
	t.BytesWritten += written
	t.time(r)
	t.first, t.last = min(t.first, r.Start()), max(t.last, r.Reply.Time)
	t.seconds[int64(r.Reply.Time-t.begin)/1e9] += read + written
	if len(t.seconds) > maxSeconds {
		t.fold(false)
	}
	client := r.Client.Or("")
	if _, known := t.clients[client]; client != "" && (known || len(t.clients) < maxClients) {
		t.clients[client] += read + written
	}
}

// time adds the latency of a READ or WRITE, and its parts.
func (t *throughput) time(r *record.Transaction) {
	latency, known := r.LatencyNS.Get()
	if !known {
		return
	}
	t.LatencyNS += latency
	t.Phases.add(r.Phases.Or(record.Phases{}))
	t.Shares.add(r)
	t.RetransmittedNS += record.Waited(r.Waits, r.Sent(), r.End(), func(w *record.Wait) bool {
		return strings.HasPrefix(string(w.Reason), "retransmit") || w.Reason == record.NewConnection
	})
}

// fold compares the seconds with the busiest one so far, and forgets all but the latest ones, or all.
func (t *throughput) fold(all bool) {
	seconds := slices.Sorted(maps.Keys(t.seconds))
	if !all {
		seconds = seconds[:len(seconds)/2]
	}
	for _, second := range seconds {
		if n := t.seconds[second]; n > t.PeakBytesPerS {
			t.PeakBytesPerS, t.PeakAt = n, t.begin+record.Time(second*1e9)
		}
		if !all {
			delete(t.seconds, second)
		}
	}
}

// finish returns the sums; they may go on growing afterwards.
func (t *throughput) finish(creditsNS int64) record.Opt[Throughput] {
	if t.BytesRead+t.BytesWritten == 0 {
		return record.Opt[Throughput]{}
	}
	now := *t
	now.fold(true)
	now.AllCreditsInUseNS = creditsNS
	now.SpanNS = max(0, now.last.Sub(now.first))
	if span := now.SpanNS; span > 0 {
		now.MeanBytesPerS = int64(float64(now.BytesRead+now.BytesWritten) / (float64(span) / 1e9))
	}
	busiest := slices.SortedFunc(maps.Keys(now.clients), func(a, b string) int {
		return cmp.Or(cmp.Compare(now.clients[b], now.clients[a]), cmp.Compare(a, b))
	})
	if len(busiest) > 0 {
		now.BusiestClient, now.BusiestBytes = record.Some(busiest[0]), now.clients[busiest[0]]
	}
	return record.Some(now.Throughput)
}
