package analyze

import (
	"cmp"
	"math"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// SplitSums sums up the places at which the latencies of transactions passed; see [record.Split].
type SplitSums struct {
	Transactions     int64 `json:"transactions" doc:"Number of transactions that were captured at both ends completely, which the other sums are about."`
	ClientNS         int64 `json:"client_ns" doc:"Sum of the times that callers took to respond to RDMA Reads, in nanoseconds."`
	RequestNetworkNS int64 `json:"request_network_ns" doc:"Sum of the times in the network on the way from callers to the other sides, in nanoseconds, with the times until lost packets were retransmitted."`
	ServerNS         int64 `json:"server_ns" doc:"Sum of the times at the sides that executed the Calls, in nanoseconds."`
	ReplyNetworkNS   int64 `json:"reply_network_ns" doc:"Sum of the times in the network on the way to callers, in nanoseconds, with the times until lost packets were retransmitted."`
	ServerSendNS     int64 `json:"server_send_ns" doc:"Part of server_ns from the first RDMA Write to the Reply, in nanoseconds."`
}

// add adds the split of a transaction.
func (s *SplitSums) add(p record.Split) {
	s.Transactions++
	s.ClientNS += p.ClientNS
	s.RequestNetworkNS += p.RequestNetworkNS
	s.ServerNS += p.ServerNS
	s.ReplyNetworkNS += p.ReplyNetworkNS
	s.ServerSendNS += p.ServerSendNS
}

// ShareSums sums up how much of the latencies of transactions each side took; see [record.Shares].
type ShareSums struct {
	RPCs      int64         `json:"rpcs" doc:"Number of RPCs with a latency, which the sums are about."`
	Exact     int64         `json:"exact" doc:"Number of these RPCs of which the capture proves what each side took, up to a hundredth of the latency."`
	TotalNS   int64         `json:"total_ns" doc:"Sum of their latencies, in nanoseconds."`
	ClientNS  record.Bounds `json:"client_ns" doc:"Time that callers took to respond to RDMA Reads, in nanoseconds; the least is without the longest time for which a link may have been paused."`
	ServerNS  record.Bounds `json:"server_ns" doc:"Time that the sides that executed the Calls took, in nanoseconds; the least is without the longest time for which a link may have been paused."`
	NetworkNS record.Bounds `json:"network_ns" doc:"Time that the network took, in nanoseconds."`
}

// exactPart is the part of a latency that the bounds of an exact share may differ by.
const exactPart = 100

// add adds the shares of a transaction. If they are not known, each side may have taken the whole latency.
func (s *ShareSums) add(r *record.Transaction) {
	latency, known := r.LatencyNS.Get()
	if !known {
		return
	}
	all := record.Bounds{Max: latency}
	shares := r.Shares.Or(record.Shares{ClientNS: all, ServerNS: all, NetworkNS: all})
	s.sum(latency, longestPause(r), &shares)
}

// addHosts adds the shares of a transaction to those of the hosts: the server sends the Calls of the backward direction.
func (s *ShareSums) addHosts(r *record.Transaction) {
	if shares, known := r.Shares.Get(); known && r.Direction == record.Backward && r.LatencyNS.Known() {
		shares.ClientNS, shares.ServerNS = shares.ServerNS, shares.ClientNS
		s.sum(r.LatencyNS.Or(0), longestPause(r), &shares)
		return
	}
	s.add(r)
}

// sum adds shares of a latency. A host cannot send while its link is paused, so that the longest time for which one was paused is no proven time of a host.
func (s *ShareSums) sum(latency, paused int64, shares *record.Shares) {
	s.RPCs++
	s.TotalNS += latency
	shares.ClientNS.Min, shares.ServerNS.Min = max(0, shares.ClientNS.Min-paused), max(0, shares.ServerNS.Min-paused)
	exact := true
	for _, b := range [...]record.Bounds{shares.ClientNS, shares.ServerNS, shares.NetworkNS} {
		exact = exact && b.Max-b.Min <= latency/exactPart
	}
	if exact {
		s.Exact++
	}
	for _, side := range [...]struct {
		sum *record.Bounds
		of  record.Bounds
	}{{&s.ClientNS, shares.ClientNS}, {&s.ServerNS, shares.ServerNS}, {&s.NetworkNS, shares.NetworkNS}} {
		side.sum.Min += side.of.Min
		side.sum.Max += side.of.Max
	}
}

// longestPause returns the longest time for which a link may have been paused while a transaction lasted.
func longestPause(r *record.Transaction) int64 {
	return r.Meanwhile.Or(record.Meanwhile{}).PausedNS.Or(record.Bounds{}).Max
}

// SideShare is what a side took of latencies.
type SideShare struct {
	Side record.Side
	NS   record.Bounds
}

// Sides returns what each side took: the server, the client and the network.
func (s *ShareSums) Sides() [3]SideShare {
	return [...]SideShare{{record.SideServer, s.ServerNS}, {record.SideClient, s.ClientNS}, {record.SideNetwork, s.NetworkNS}}
}

// Percents returns what each side took in percent of a sum of latencies, in the order of Sides: its share if the shares of all
// transactions are known exactly, and otherwise the least rounded down and the most rounded up.
func (s *ShareSums) Percents(total int64) (percents [3]record.Bounds) {
	if s.RPCs > 0 && s.Exact == s.RPCs && s.TotalNS == total {
		for i, share := range Percents([]int64{s.ServerNS.Min, s.ClientNS.Min, s.NetworkNS.Min}) {
			percents[i] = record.Bounds{Min: share, Max: share}
		}
		return percents
	}
	for i, x := range s.Sides() {
		percents[i].Min = int64(math.Floor(float64(x.NS.Min) * 100 / float64(max(total, 1))))
		percents[i].Max = int64(math.Ceil(float64(x.NS.Max) * 100 / float64(max(total, 1))))
	}
	return percents
}

// Percents returns the shares of a sum, in percent. They add up to 100: those with the largest
// remainders are rounded up.
func Percents(parts []int64) []int64 {
	total := int64(0)
	for _, n := range parts {
		total += n
	}
	shares := make([]int64, len(parts))
	if total <= 0 {
		return shares
	}
	left := int64(100)
	order := make([]int, len(parts))
	remainder := func(i int) float64 { return float64(parts[i])*100/float64(total) - float64(shares[i]) }
	for i, n := range parts {
		order[i] = i
		shares[i] = int64(float64(n) * 100 / float64(total))
		left -= shares[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainder(b), remainder(a)) })
	for i := int64(0); i < left && i < int64(len(order)); i++ {
		shares[order[i]]++
	}
	return shares
}
