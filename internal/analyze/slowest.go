package analyze

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Slow is one of the transactions with the longest latency.
type Slow struct {
	Transaction *record.Transaction `json:"transaction" doc:"The transaction record."`
	Count       int                 `json:"count" doc:"Number of answered transactions of this RPC, which a client sent on several connections with the same XID, that were among the slowest when they were read; there may be more of them. The record is that of the slowest."`
}

// slowest is the number of transactions that an overview lists as slow.
const slowest = 5

// mounting has the operations and procedures with which a client mounts and unmounts. They wait for what the server
// does only then, so they would hide the reads and writes among the slowest.
var mounting = map[string]bool{
	"EXCHANGE_ID": true, "CREATE_SESSION": true, "DESTROY_SESSION": true, "DESTROY_CLIENTID": true, "RECLAIM_COMPLETE": true, "SECINFO_NO_NAME": true,
	"BIND_CONN_TO_SESSION": true, "SETCLIENTID": true, "SETCLIENTID_CONFIRM": true, "NULL": true, "FSINFO": true, "PATHCONF": true, "SECINFO": true, "CB_NULL": true,
}

// ofMounting reports whether a transaction belongs to mounting or unmounting.
func ofMounting(r *record.Transaction) bool {
	program := r.ProgramName.Or("")
	return program == "MOUNT" || program == "PORTMAP" || mounting[r.Operation.Or(r.ProcedureName.Or(""))]
}

// mostRanges is the number of the slow transactions whose latency is only an upper bound.
const mostRanges = 2

// slowLists are the slowest transactions: those with a latency that the capture proves, and those with an upper bound.
type slowLists struct{ proven, ranges []Slow }

// add adds a transaction.
func (l *slowLists) add(r *record.Transaction) {
	if r.LatencyMinNS.Known() {
		l.ranges = keepSlow(l.ranges, r, mostRanges)
	} else {
		l.proven = keepSlow(l.proven, r, slowest)
	}
}

// all returns the transactions with a proven latency, and then those that may have been slower than the last of these.
func (l *slowLists) all() []Slow {
	list := slices.Clone(l.proven)
	for _, s := range l.ranges {
		if n := len(l.proven); n < slowest || s.Transaction.LatencyNS.Or(0) > l.proven[n-1].Transaction.LatencyNS.Or(0) {
			list = append(list, s)
		}
	}
	return list
}

// slow keeps the transactions with the longest latency.
func (c *Collector) slow(r *record.Transaction) {
	if !r.LatencyNS.Known() {
		return
	}
	if ofMounting(r) {
		c.slowestMounting.add(r)
	} else {
		c.slowest.add(r)
	}
}

// keepSlow adds a transaction to a list of at most most transactions, the slowest first. A transaction with the XID of another in the list counts as
// the same RPC, which was sent on several connections, and the slower of the two stays.
func keepSlow(list []Slow, r *record.Transaction, most int) []Slow {
	latency, count := r.LatencyNS.Or(0), 1
	if len(list) == most && latency <= list[most-1].Transaction.LatencyNS.Or(0) {
		return list
	}
	if at := slices.IndexFunc(list, func(s Slow) bool { return sameRPC(s.Transaction, r) }); at >= 0 {
		if list[at].Count++; latency <= list[at].Transaction.LatencyNS.Or(0) {
			return list
		}
		count = list[at].Count
		list = slices.Delete(list, at, at+1)
	}
	at, _ := slices.BinarySearchFunc(list, latency, func(s Slow, ns int64) int { return cmp.Compare(ns, s.Transaction.LatencyNS.Or(0)) })
	for at < len(list) && list[at].Transaction.LatencyNS.Or(0) == latency { // of equal latencies the first transaction stays first
		at++
	}
	list = slices.Insert(list, at, Slow{r.Clone(), count})
	return list[:min(len(list), most)]
}

// sameRPC reports whether two transactions have the same XID and ends, and ask for the same.
func sameRPC(a, b *record.Transaction) bool {
	return a.XID == b.XID && a.Direction == b.Direction && a.Client == b.Client && a.Server == b.Server && a.Program == b.Program &&
		a.Procedure == b.Procedure && a.Operation == b.Operation
}

// StatusCount counts the transactions that ended with one error status.
type StatusCount struct {
	Status string `json:"status" doc:"RPC or NFS status, as in the field rpc_status or nfs_status of transactions."`
	Count  int64  `json:"count" doc:"Number of transactions with this status."`
}

// maxStatuses limits the number of statuses, because a hostile capture can contain any number of them.
const maxStatuses = 64

// failed counts the status of a transaction that failed.
func (c *Collector) failed(r *record.Transaction) {
	status := r.NFSStatus.Or("")
	if r.RPCFailed() {
		status = r.RPCStatus.Or("")
	}
	if c.statuses[status] > 0 || len(c.statuses) < maxStatuses {
		c.statuses[status]++
	}
}

// statusCounts returns the statuses, the most frequent first.
func (c *Collector) statusCounts() (list []StatusCount) {
	for status, n := range c.statuses {
		list = append(list, StatusCount{status, n})
	}
	slices.SortFunc(list, func(a, b StatusCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Status, b.Status))
	})
	return list
}
