package analyze

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Stats sums up the transactions of one group, such as those of one operation.
type Stats struct {
	Type          string                `json:"type" doc:"The record's type, always \"stats\"." values:"stats"`
	GroupBy       string                `json:"group_by" doc:"What the transactions are grouped by: program, procedure, operation, or the names of fields of transactions, with commas between them."`
	Name          string                `json:"name" doc:"Name of the group: of the program, procedure or operation, or the values of the fields; \"others\" sums up the groups for which the memory limit leaves no space."`
	Group         []string              `json:"group" doc:"Values of what group_by names, in the same order; null for \"others\"."`
	Requests      int64                 `json:"requests" doc:"Number of requests: of what clients asked for once. A request counts in the group of its first attempt."`
	Attempts      int64                 `json:"attempts" doc:"Number of transactions: of Calls of these requests, which a client sends again on another connection if their Reply does not come."`
	Complete      int                   `json:"complete" doc:"Number of transactions with both a Call and a Reply."`
	Errors        int                   `json:"failed" doc:"Number of transactions that failed: the Call was answered with RDMA_ERROR, or the Reply has an RPC or NFS error status."`
	NoReply       int64                 `json:"no_reply" doc:"Number of requests without a Reply (status no_reply of all attempts); they do not count as errors, because it may have been sent later, or not captured."`
	Retransmitted int                   `json:"retransmitted" doc:"Number of retransmitted packets."`
	Bytes         int64                 `json:"bytes" doc:"Number of bytes in the Payload streams of Calls and Replies."`
	CallBytes     Forms                 `json:"call_bytes" doc:"Bytes in the Payload streams of Calls, by form."`
	ReplyBytes    Forms                 `json:"reply_bytes" doc:"Bytes in the Payload streams of Replies, by form."`
	Latency       Quantiles             `json:"latency" doc:"Distribution of the time from the first packet of the Call to the last packet of the Reply."`
	TotalNS       int64                 `json:"total_ns" doc:"Sum of all latencies, in nanoseconds."`
	Phases        PhaseSums             `json:"phases" doc:"Parts that the sum of all latencies is made of."`
	Split         record.Opt[SplitSums] `json:"split,omitzero" doc:"Places at which the latencies passed, summed up; present only with several capture points, and if a transaction was captured at both ends completely."`
	Shares        ShareSums             `json:"shares" doc:"Parts of the sum of all latencies that each side took, as far as the capture proves it."`
	Congested     int                   `json:"congested" doc:"Number of RPCs during which there were signals of congestion on their connection: a packet that a switch had marked (CE), a congestion notification packet (CNP), or a frame that paused a link."`
	ExplicitRDMA  int                   `json:"explicit_rdma" doc:"Number of RPCs that used chunks."`
	FitsInlineAt  map[string]int        `json:"fits_inline_at" doc:"Number of RPCs with chunks that would have needed none, by inline threshold in bytes: their Call and their largest possible Reply, which is the one that fills the chunks that the Call offers, fit into it."`

	latencies durations
	timed     int                  // number of transactions with a latency
	inlineAt  [len(thresholds)]int // number of RPCs for each of thresholds
}

// Forms counts bytes by the form of the message that carried them.
type Forms struct {
	Short   int64 `json:"short" doc:"Number of bytes in messages that a Send carried completely."`
	Chunked int64 `json:"chunked" doc:"Number of bytes in messages with reduced data items."`
	Long    int64 `json:"long" doc:"Number of bytes in messages that travelled in a chunk of their own."`
}

// Total returns the number of bytes in messages of any form.
func (f Forms) Total() int64 { return f.Short + f.Chunked + f.Long }

// add adds the Payload stream of a message, which may be nil.
func (f *Forms) add(m *record.Message) {
	if m == nil {
		return
	}
	switch size := m.PayloadBytes.Or(0); m.Form {
	case record.Short:
		f.Short += size
	case record.Chunked:
		f.Chunked += size
	case record.Long:
		f.Long += size
	}
}

// PhaseSums contains the sums of the phases of all latencies, in nanoseconds.
type PhaseSums struct {
	ToReadNS  int64 `json:"to_read_ns" doc:"Sum of the times from Calls to their first RDMA Reads, in nanoseconds."`
	ReadNS    int64 `json:"read_ns" doc:"Sum of the times that RDMA Reads took, in nanoseconds."`
	ToWriteNS int64 `json:"to_write_ns" doc:"Sum of the times from Calls, or their last Read responses, to their first RDMA Writes, in nanoseconds."`
	WriteNS   int64 `json:"write_ns" doc:"Sum of the times that RDMA Writes took, in nanoseconds."`
	ToReplyNS int64 `json:"to_reply_ns" doc:"Sum of the times from the previous phase to the Replies, in nanoseconds."`
	WaitNS    int64 `json:"stalled_ns" doc:"Sum of the times in which transactions stalled, in nanoseconds; no other phase includes it."`
}

// List returns the sums of all phases.
func (s *PhaseSums) List() [record.PhaseCount]int64 {
	return [record.PhaseCount]int64{s.ToReadNS, s.ReadNS, s.ToWriteNS, s.WriteNS, s.ToReplyNS, s.WaitNS}
}

// add adds the phases of a transaction.
func (s *PhaseSums) add(p record.Phases) {
	s.ToReadNS += p.ToReadNS.Or(0)
	s.ReadNS += p.ReadNS.Or(0)
	s.ToWriteNS += p.ToWriteNS.Or(0)
	s.WriteNS += p.WriteNS.Or(0)
	s.ToReplyNS += p.ToReplyNS.Or(0)
	s.WaitNS += p.WaitNS
}

// thresholds lists the inline thresholds that FitsInlineAt reports. They are between the usual
// threshold and the largest one of RFC 8797.
var thresholds = [...]int{8192, 16384, 65536, 262144}

// These values are the supported groupings.
const (
	ByProgram   = "program"
	ByProcedure = "procedure"
	ByOperation = "operation"
)

// Table sums up transactions by program, procedure or operation, or by other values.
type Table struct {
	grouping[Stats]
	by       string
	values   func(values []string, r *record.Transaction) []string // nil for the three kinds
	recent   [32]recentRow                                         // cache of rows that were found recently
	exact    exactLimit
	attempts record.Attempts[*Stats]
}

// statsCost is the memory for a row in bytes, without its name and latencies.
const statsCost = 1200

// Limit allows the table more rows than usual, as many as fit into a number of bytes.
func (t *Table) Limit(bytes int64) {
	t.maxRows, t.maxBytes = max(maxRows, int(bytes/statsCost)), max(maxKeyBytes, bytes/8)
}

// NewTable returns an empty table with one of the supported groupings.
func NewTable(by string) *Table {
	return &Table{by: by, exact: exactLimit{most: maxExact}, attempts: record.Attempts[*Stats]{}, grouping: newGrouping(func(name string, group []string) *Stats {
		return &Stats{Type: "stats", GroupBy: by, Name: name, Group: group, FitsInlineAt: map[string]int{}}
	})}
}

// NewTableOf returns an empty table that groups by any values. Values appends those of a
// transaction; by says what they are.
func NewTableOf(by string, values func(values []string, r *record.Transaction) []string) *Table {
	t := NewTable(by)
	t.values = values
	return t
}

// latency adds a latency to a row.
func (t *Table) latency(s *Stats, ns int64) {
	s.TotalNS += ns
	t.exact.add(&s.latencies, ns, func(yield func(string, *durations) bool) {
		for _, s := range t.rows {
			if !yield(s.Name, &s.latencies) {
				return
			}
		}
	})
}

// Name returns the name of the row for a transaction. If the Call is not in the capture, only
// a COMPOUND has operations, because its Reply names them.
func Name(r *record.Transaction, by string) string {
	operation, known := r.Operation.Get()
	switch {
	case !r.Program.Known() && by == ByOperation && known && r.Direction == record.Forward:
		return "NFS4 " + operation
	case !r.Program.Known():
		return record.NotDecoded
	case by == ByProgram:
		return r.ProgramVersion()
	case by == ByOperation && known:
		return r.ProgramVersion() + " " + operation
	}
	return r.ProgramProcedure()
}

// recentRow is a row, and the kind of RPC that it was found for.
type recentRow struct {
	row *Stats
	kind
}

// kind contains the members of a transaction that determine its name.
type kind struct {
	program, version, procedure           record.Opt[uint32]
	programName, procedureName, operation record.Opt[string]
	direction                             record.Direction
}

// find returns the row for a transaction. It caches rows, because most transactions are of
// few kinds and their names take time to build.
func (t *Table) find(r *record.Transaction) *Stats {
	if t.values != nil {
		return t.row(t.values(t.group[:0], r))
	}
	slot := r.Procedure.Or(0)
	if operation := r.Operation.Or(""); operation != "" {
		slot += uint32(len(operation)) + 3*uint32(operation[0])
	}
	k := kind{r.Program, r.Version, r.Procedure, r.ProgramName, r.ProcedureName, r.Operation, r.Direction}
	l := &t.recent[slot%uint32(len(t.recent))]
	if l.row == nil || l.kind != k {
		*l = recentRow{t.row([]string{Name(r, t.by)}), k}
	}
	return l.row
}

// Add adds a transaction. It does not keep r.
func (t *Table) Add(r *record.Transaction) {
	s := t.find(r)
	s.Attempts++
	if r.Attempt <= 1 {
		s.Requests++
	}
	if at, n := t.attempts.Add(r.Request, r.Attempt, r.Status, s); n != 0 {
		at.NoReply += n
	}
	s.Retransmitted += r.Retransmitted
	s.CallBytes.add(r.Call)
	s.ReplyBytes.add(r.Reply)
	s.Bytes = s.CallBytes.Total() + s.ReplyBytes.Total()
	if r.Status.Replied() {
		s.Complete++
	}
	if r.Failed() {
		s.Errors++
	}
	if latency, known := r.LatencyNS.Get(); known {
		s.timed++
		t.latency(s, latency)
		s.Latency.bound(r)
	}
	s.Shares.add(r)
	if m := r.Meanwhile.Or(record.Meanwhile{}); m.Congested() {
		s.Congested++
	}
	s.Phases.add(r.Phases.Or(record.Phases{}))
	if split, known := r.Split.Get(); known {
		sums := s.Split.Or(SplitSums{})
		sums.add(split)
		s.Split = record.Some(sums)
	}
	if need := inlineNeed(r); need > 0 {
		s.ExplicitRDMA++
		for i, threshold := range thresholds {
			if need <= int64(threshold) {
				s.inlineAt[i]++
			}
		}
	}
}

// bareHeader is the length of an RPC-over-RDMA header without chunks.
const bareHeader = 28

// inlineNeed returns the inline threshold with which a transaction would have needed no
// chunks. It returns 0 if the transaction had no chunks, or if the threshold is unknown.
func inlineNeed(r *record.Transaction) int64 {
	if r.Call == nil || !r.Call.PayloadBytes.Known() || len(r.ReadChunks) == 0 && len(r.WriteChunks) == 0 && r.ReplyChunk == nil {
		return 0
	}
	written, reply := int64(0), int64(0)
	for chunk, s := range r.Segments() {
		switch chunk {
		case record.WriteList:
			written += int64(s.Length)
		case record.ReplyList:
			reply += int64(s.Length)
		}
	}
	if written > 0 && r.Reply != nil {
		written += int64(r.Reply.SendBytes.Or(0))
	}
	return bareHeader + max(r.Call.PayloadBytes.Or(0), written+reply)
}

// Rows returns the rows, those with the largest sum of latencies first, and those of a group by size from small to large.
func (t *Table) Rows() []*Stats {
	rows := slices.Collect(maps.Values(t.rows))
	for _, s := range rows {
		s.Latency = s.Latency.withBounds(s.latencies.quantiles())
		for i, n := range s.inlineAt {
			if n > 0 {
				s.FitsInlineAt[strconv.Itoa(thresholds[i])] = n
			}
		}
	}
	classes := record.SizeClasses()
	size := func(s *Stats) uint {
		if first, _, _ := strings.Cut(t.by, ","); first != "size" || len(s.Group) == 0 {
			return 0
		}
		return uint(slices.Index(classes, s.Group[0])) // no size is the last
	}
	slices.SortFunc(rows, func(a, b *Stats) int {
		return cmp.Or(cmp.Compare(size(a), size(b)), cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// Total returns the sum of rows, without what only their own row says.
func Total(rows []*Stats) *Stats {
	sum := &Stats{Type: "stats", Name: "all rows", FitsInlineAt: map[string]int{}}
	for _, s := range rows {
		sum.Requests, sum.Attempts, sum.NoReply, sum.Bytes, sum.TotalNS = sum.Requests+s.Requests, sum.Attempts+s.Attempts, sum.NoReply+s.NoReply, sum.Bytes+s.Bytes, sum.TotalNS+s.TotalNS
		sum.Errors, sum.Retransmitted, sum.Congested, sum.ExplicitRDMA = sum.Errors+s.Errors, sum.Retransmitted+s.Retransmitted, sum.Congested+s.Congested, sum.ExplicitRDMA+s.ExplicitRDMA
		sum.Phases.sum(&s.Phases)
		if split, known := s.Split.Get(); known {
			sums := sum.Split.Or(SplitSums{})
			sums.ClientNS, sums.RequestNetworkNS = sums.ClientNS+split.ClientNS, sums.RequestNetworkNS+split.RequestNetworkNS
			sums.ServerNS, sums.ReplyNetworkNS = sums.ServerNS+split.ServerNS, sums.ReplyNetworkNS+split.ReplyNetworkNS
			sum.Split = record.Some(sums)
		}
		sum.latencies.merge(&s.latencies)
		sum.Latency.mergeBounds(&s.Latency)
	}
	sum.Latency = sum.Latency.withBounds(sum.latencies.quantiles())
	return sum
}

// LatencyRange returns the shortest and the longest latency of all rows, in nanoseconds, or
// 0 and 0 if there is none.
func LatencyRange(rows []*Stats) (low, high int64) {
	for _, s := range rows {
		if least, most, ok := s.latencies.ends(); ok {
			if high == 0 || least < low {
				low = least
			}
			high = max(high, most)
		}
	}
	return low, high
}

// Histogram counts the latencies in a number of steps between low and high, in nanoseconds.
// The steps have equal lengths on a logarithmic scale.
func (s *Stats) Histogram(low, high int64, steps int) []int {
	counts := make([]int, steps)
	if high <= 0 || steps < 1 {
		return counts
	}
	low = max(low, 1)
	span := math.Log(float64(max(high, low+1)) / float64(low))
	s.latencies.each(func(ns int64, n int) {
		at := int(math.Log(float64(max(ns, low))/float64(low)) / span * float64(steps))
		counts[min(max(at, 0), steps-1)] += n
	})
	return counts
}
