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
