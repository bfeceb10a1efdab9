package analyze

import "github.com/rdmadump/rdmadump/dissect/record"

// Ends sums up where the time of transactions passed, if there are captures at both ends.
type Ends struct {
	Transactions int64 `json:"transactions" doc:"Number of transactions that were captured at both ends completely."`
	ClientNS     int64 `json:"client_ns" doc:"Time at callers, in nanoseconds."`
	NetworkNS    int64 `json:"network_ns" doc:"Time in the network in both directions, in nanoseconds, with the time until lost packets were retransmitted."`
	ServerNS     int64 `json:"server_ns" doc:"Time at the sides that executed the Calls, in nanoseconds."`
}

// Add adds a transaction.
func (e *Ends) Add(r *record.Transaction) {
	if s, known := r.Split.Get(); known {
		e.Transactions++
		e.ClientNS += s.ClientNS
		e.NetworkNS += s.RequestNetworkNS + s.ReplyNetworkNS
		e.ServerNS += s.ServerNS
	}
}

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
	ClientMinNS  int64 `json:"client_min_ns" doc:"Least time that callers took to respond to RDMA Reads, in nanoseconds."`
	ClientMaxNS  int64 `json:"client_max_ns" doc:"Most time that callers took to respond to RDMA Reads, in nanoseconds."`
	ServerMinNS  int64 `json:"server_min_ns" doc:"Least time that the sides that executed the Calls took, in nanoseconds."`
	ServerMaxNS  int64 `json:"server_max_ns" doc:"Most time that the sides that executed the Calls took, in nanoseconds."`
	NetworkMinNS int64 `json:"network_min_ns" doc:"Least time that the network took, in nanoseconds."`
	NetworkMaxNS int64 `json:"network_max_ns" doc:"Most time that the network took, in nanoseconds."`
}

// add adds the shares of a transaction, if it has any.
func (s *ShareSums) add(r *record.Transaction) {
	shares, known := r.Shares.Get()
	if !known {
		return
	}
	s.ClientMinNS += shares.ClientNS.Min
	s.ClientMaxNS += shares.ClientNS.Max
	s.ServerMinNS += shares.ServerNS.Min
	s.ServerMaxNS += shares.ServerNS.Max
	s.NetworkMinNS += shares.NetworkNS.Min
	s.NetworkMaxNS += shares.NetworkNS.Max
}

// isCongested reports whether there were signals of congestion while a transaction lasted.
func isCongested(r *record.Transaction) bool {
	m, known := r.Meanwhile.Get()
	return known && m.Congested()
}
