package analyze

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// OperationStats sums up the RDMA operations of one group, such as those of one kind.
type OperationStats struct {
	Type          string    `json:"type" doc:"The record's type, always \"rdma_stats\"." values:"rdma_stats"`
	GroupBy       string    `json:"group_by" doc:"Names of the fields of RDMA operations that they are grouped by, with commas between them."`
	Name          string    `json:"name" doc:"Values of these fields; \"others\" sums up everything after the first 1024 groups."`
	Group         []string  `json:"group" doc:"Values of these fields, in the same order; null for \"others\"."`
	Count         int64     `json:"count" doc:"Number of RDMA operations."`
	Bytes         int64     `json:"bytes" doc:"Number of bytes that they moved."`
	Retransmitted int64     `json:"retransmitted" doc:"Number of retransmitted packets."`
	Stalled       int64     `json:"stalled" doc:"Number of RDMA operations that stalled at least once."`
	StalledNS     int64     `json:"stalled_ns" doc:"Sum of all stalls, in nanoseconds."`
	TotalNS       int64     `json:"total_ns" doc:"Sum of the times to the acknowledgement, in nanoseconds."`
	Latency       Quantiles `json:"latency" doc:"Distribution of the time from the first packet to the acknowledgement."`

	latencies durations
}

// OperationTable sums up RDMA operations by the values of fields.
type OperationTable struct {
	grouping[OperationStats]
	values func(values []string, r *record.RDMAOperation) []string
	exact  int
}

// NewOperationTable returns an empty table. Values appends those of an operation; by says what they
// are.
func NewOperationTable(by string, values func(values []string, r *record.RDMAOperation) []string) *OperationTable {
	return &OperationTable{values: values, grouping: newGrouping(func(name string, group []string) *OperationStats {
		return &OperationStats{Type: "rdma_stats", GroupBy: by, Name: name, Group: group}
	})}
}

// Add adds an operation. It does not keep r.
func (t *OperationTable) Add(r *record.RDMAOperation) {
	s := t.row(t.values(t.group[:0], r))
	s.Count++
	s.Bytes += r.Bytes
	s.Retransmitted += r.Retransmitted
	if r.StalledNS > 0 {
		s.Stalled++
		s.StalledNS += r.StalledNS
	}
	ns, known := r.LatencyNS.Get()
	if !known {
		return
	}
	s.TotalNS += ns
	before := len(s.latencies.exact)
	s.latencies.add(ns)
	if t.exact += len(s.latencies.exact) - before; t.exact > maxExact {
		t.exact -= len(s.latencies.exact)
		s.latencies.coarsen()
	}
}

// Rows returns the rows, those with the most bytes first.
func (t *OperationTable) Rows() []*OperationStats {
	rows := slices.Collect(maps.Values(t.rows))
	for _, s := range rows {
		s.Latency = s.latencies.quantiles()
	}
	slices.SortFunc(rows, func(a, b *OperationStats) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// Traffic sums up the RDMA operations of the connections of one upper layer other than
// RPC-over-RDMA.
type Traffic struct {
	UpperLayer    string      `json:"upper_layer" doc:"Upper-layer protocol of the connections."`
	Connections   int         `json:"connections" doc:"Number of connections."`
	Packets       int64       `json:"packets" doc:"Number of packets of the connections."`
	Kinds         []KindCount `json:"kinds" doc:"Number of RDMA operations and their bytes, by kind."`
	Retransmitted int64       `json:"retransmitted" doc:"Number of retransmitted packets of the connections."`
	Naks          int64       `json:"naks" doc:"Number of NAKs, not counting RNR NAKs."`
	RNRNaks       int64       `json:"rnr_naks" doc:"Number of receiver-not-ready (RNR) NAKs."`
	Stalled       int64       `json:"stalled" doc:"Number of RDMA operations that stalled until a retransmission."`
	StalledNS     int64       `json:"stalled_ns" doc:"Time in which at least one RDMA operation stalled, in nanoseconds; stalls that overlap count once."`
	TotalNS       int64       `json:"stalled_total_ns" doc:"Sum of the stalls of all RDMA operations, in nanoseconds; stalls that overlap count more than once."`
	LongestNS     int64       `json:"longest_ns" doc:"Longest time for which one RDMA operation stalled, in nanoseconds."`

	stalls outages
}

// KindCount counts the RDMA operations of a kind that a side requested.
type KindCount struct {
	Kind  record.OperationKind `json:"kind" doc:"Kind of the RDMA operations."`
	Side  record.End           `json:"side" doc:"The side that requested them."`
	Count int64                `json:"count" doc:"Number of RDMA operations."`
	Bytes int64                `json:"bytes" doc:"Number of bytes that they moved."`
	Asked int64                `json:"bytes_requested" doc:"Number of bytes that their requests announced, or that they moved if a request does not say it."`
}

// traffic sums up the operations of connections, until the upper layer of each is known.
type traffic struct {
	open map[int]*Traffic // by connection
	all  map[string]*Traffic
}

// maxOpen is the largest number of connections whose operations are summed up at a time.
const maxOpen = 1 << 14

// operation adds an operation.
func (t *traffic) operation(r *record.RDMAOperation) {
	sum := t.open[r.Connection]
	if sum == nil {
		if len(t.open) >= maxOpen {
			return
		}
		sum = &Traffic{}
		t.open[r.Connection] = sum
	}
	sum.count(KindCount{r.Kind, r.Side, 1, r.Bytes, r.Requested.Or(r.Bytes)})
	if r.StalledNS > 0 {
		sum.Stalled++
		sum.TotalNS += r.StalledNS
		sum.LongestNS = max(sum.LongestNS, r.StalledNS)
	}
	for i := range r.Waits {
		sum.stalls.add(r.Waits[i].From, r.Waits[i].To)
	}
}

// count adds operations of a kind.
func (s *Traffic) count(k KindCount) {
	i := slices.IndexFunc(s.Kinds, func(x KindCount) bool { return x.Kind == k.Kind && x.Side == k.Side })
	if i < 0 {
		i, s.Kinds = len(s.Kinds), append(s.Kinds, KindCount{Kind: k.Kind, Side: k.Side})
	}
	s.Kinds[i].Count += k.Count
	s.Kinds[i].Bytes += k.Bytes
	s.Kinds[i].Asked += k.Asked
}

// connection adds a connection after its operations.
func (t *traffic) connection(r *record.Connection) {
	sum := t.open[r.ID]
	delete(t.open, r.ID)
	if r.UpperLayer == "rpcrdma" || r.UpperLayer == "rpc" || sum == nil && r.Packets == 0 {
		return
	}
	all := t.all[r.UpperLayer]
	if all == nil {
		all = &Traffic{UpperLayer: r.UpperLayer, Kinds: []KindCount{}}
		t.all[r.UpperLayer] = all
	}
	all.Connections++
	all.Packets += r.Packets
	all.Retransmitted += r.Retransmitted
	all.Naks += r.Naks
	all.RNRNaks += r.RNRNaks
	if sum == nil {
		return
	}
	for _, k := range sum.Kinds {
		all.count(k)
	}
	all.Stalled += sum.Stalled
	all.StalledNS += sum.stalls.total()
	all.TotalNS += sum.TotalNS
	all.LongestNS = max(all.LongestNS, sum.LongestNS)
}

// finish returns the sums, those with the most packets first.
func (t *traffic) finish() []Traffic {
	list := []Traffic{}
	for _, sum := range t.all {
		slices.SortFunc(sum.Kinds, func(a, b KindCount) int {
			return cmp.Or(cmp.Compare(b.Asked-b.Bytes, a.Asked-a.Bytes), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Side, b.Side))
		})
		list = append(list, *sum)
	}
	slices.SortFunc(list, func(a, b Traffic) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), cmp.Compare(a.UpperLayer, b.UpperLayer))
	})
	return list
}
