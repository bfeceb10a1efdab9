package render

import (
	"io"
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
)

var operationColumns = []column{
	{name: "#", fields: "id", right: true, rank: 6, usual: 5},
	{name: "TIME", fields: "sent", right: true, usual: 11},
	{name: "CONN", fields: "connection", right: true, rank: 1},
	{name: "KIND", fields: "kind", usual: 10},
	{name: "ISSUED BY", former: "REQUESTED BY,FROM,SIDE", fields: "side", usual: 6},
	{name: "HANDLE", fields: "handle", rank: 5, usual: 10},
	{name: "OFFSET", fields: "offset", rank: 7, usual: 18},
	{name: "BYTES", fields: "bytes", right: true, usual: 7},
	{
		name: "DELIVERED AFTER", former: "TO DELIVERY", fields: "delivered=delivered", right: true, rank: 4, usual: 8, foot: "DELIVERED AFTER: time from the first packet until the receiver had accepted all of it, of an RDMA Read the response",
		signs: []sign{{"-", "if both are one packet, so that the time on the way is not known"}, {"?", "if the capture does not show it"}},
	},
	{
		name: "ACKED AFTER", former: "TO ACK", fields: "acknowledged acked-after=latency_ns to-ack=latency_ns", right: true, usual: 8, foot: "ACKED AFTER: time from the first packet to the acknowledgement, or to the last packet of the response",
		signs: []sign{{"?", "if the capture does not show it"}},
	},
	{
		name: "RETRANSMITTED", former: "RETR", fields: "retransmitted", right: true, rank: 2, quiet: true, some: true,
		foot: "RETRANSMITTED: packets of the operation and of its response, each as often as it was retransmitted",
	},
	{
		name: "STALL TIME", former: "STALLED", fields: "stalled_ns", right: true, quiet: true, some: true, usual: 8, foot: "STALL TIME: time without progress until the operation was retransmitted, of 1ms or longer",
		signs: []sign{{"", "if packets were retransmitted without such a stall"}},
	},
	{name: "RPC", fields: "transaction", right: true, rank: 3, usual: 5, foot: "RPC: id of the RPC; rdmadump FILE -Y 'id == RPC' lists it"},
	{name: "STATUS", fields: "status", usual: 10},
}

// operationNames are the names of the kinds of operations in tables.
var operationNames = map[record.OperationKind]string{
	record.SendOperation: "Send", record.WriteOperation: "RDMA Write", record.ReadOperation: "RDMA Read", record.AtomicOperation: "Atomic",
}

// Operation writes a row of the table of RDMA operations.
func (t *Text) Operation(r *record.RDMAOperation) error {
	status, shade := string(r.Status), t.theme.good
	switch r.Status {
	case record.OperationIncomplete:
		shade = t.theme.dim
	case record.OperationRefused, record.OperationUnacknowledged:
		shade = t.theme.bad
	}
	t.cells = append(t.cells[:0],
		cell{text: strconv.FormatInt(r.ID, 10), ink: t.theme.dim},
		cell{text: t.at(r.Sent)},
		cell{text: strconv.Itoa(r.Connection)},
		cell{text: operationNames[r.Kind], ink: t.theme.key},
		cell{text: string(r.Side)},
		cell{text: known(r.Handle, "", record.Hex32.String)},
		cell{text: known(r.Offset, "", record.Hex64.String)},
		cell{text: bytesOf(r)},
		cell{text: known(r.Delivered, "?", func(at record.Time) string {
			if at == r.Sent { // The capture shows one packet, at one point.
				return "-"
			}
			return Duration(at.Sub(r.Sent))
		})},
		cell{text: known(r.LatencyNS, "?", Duration)},
		cell{text: moved(r.Retransmitted)},
		cell{text: stall(r.StalledNS), ink: t.theme.warn},
		cell{text: known(r.Transaction, "", func(id int64) string { return strconv.FormatInt(id, 10) }), ink: t.theme.dim},
		cell{text: status, ink: shade},
	)
	return t.row(operationColumns)
}

// bytesOf returns how many bytes an operation moved, and how many its request asked for if it moved none of them.
func bytesOf(r *record.RDMAOperation) string {
	if asked, known := r.Requested.Get(); known && r.Bytes == 0 && asked > 0 {
		return "0 of " + Bytes(asked)
	}
	return Bytes(r.Bytes)
}

// stall returns the length of a stall, or nothing for none.
func stall(ns int64) string {
	if ns == 0 {
		return ""
	}
	return Duration(ns)
}

var operationSumColumns = []column{
	{name: "NAME", fields: "name", flex: true, min: 12},
	{name: "COUNT", fields: "count", right: true},
	{name: "BYTES", fields: "bytes", right: true},
	{name: "RETRANSMITTED", former: "RETR", fields: "retransmitted", right: true, quiet: true, some: true},
	{name: "STALLED", fields: "stalled", right: true, quiet: true, some: true, foot: "STALLED: number of operations that made no progress until a retransmission"},
	{name: "STALL TIME", fields: "stalled_ns", right: true, quiet: true, some: true},
	{name: "P50", fields: "latency.p50_ns", right: true, rank: 2, foot: "P50, P90, P99, WORST: time to the acknowledgement"},
	{name: "P90", fields: "latency.p90_ns", right: true, rank: 3},
	{name: "P99", fields: "latency.p99_ns", right: true, rank: 1},
	{name: "WORST", fields: "latency.max_ns", right: true},
}

// OperationSums writes a table of the sums of RDMA operations.
func OperationSums(w io.Writer, theme *Theme, width int, rows []*analyze.OperationStats) error {
	t := newTable(w, theme, width, operationSumColumns)
	for _, r := range rows {
		err := t.row([]cell{
			{text: clean(r.Name), ink: theme.key},
			{text: strconv.FormatInt(r.Count, 10)},
			{text: Bytes(r.Bytes)},
			{text: moved(r.Retransmitted)},
			{text: moved(r.Stalled)},
			{text: stall(r.StalledNS), ink: theme.warn},
			{text: about(&r.Latency, r.Latency.P50)},
			{text: about(&r.Latency, r.Latency.P90)},
			{text: about(&r.Latency, r.Latency.P99)},
			{text: quantile(r.Latency.Max)},
		})
		if err != nil {
			return err
		}
	}
	return t.end(0)
}
