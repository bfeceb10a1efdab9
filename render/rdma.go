package render

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
)

var operationColumns = []column{
	{name: "ID", fields: "id", right: true, at: 100, usual: 5, doc: "Number of the RDMA operation, in the order of first packets."},
	{
		name: "TIME", fields: "sent", right: true, usual: 11, moment: true,
		doc: "Time of the operation's first packet; the flag --time selects the format.",
	},
	{name: "CONN", fields: "connection", right: true},
	{name: "KIND", fields: "kind", usual: 10, doc: "Kind of the operation: Send, RDMA Write, RDMA Read or Atomic."},
	{
		name: "BY", fields: "side", usual: 6,
		doc: "The side that issued the operation: the sender of a Send, the writer of an RDMA Write, the reader of an RDMA Read. The client is the end that opened the connection.",
	},
	{
		name: "HANDLE", fields: "handle", at: 100, usual: 10,
		doc: "Handle (R_key or STag) of the memory of the other side; empty for a Send.",
	},
	{name: "OFFSET", fields: "offset", at: 180, usual: 18, doc: "Offset in that memory; empty for a Send."},
	{
		name: "BYTES", fields: "bytes", cell: cellOf(bytesOf), right: true, usual: 7,
		doc: "Number of bytes that the operation moved, each counted once; if it moved none, also how many it asked for.",
	},
	{
		name: "DELIVERED AFTER", fields: "delivered", cell: cellOf(deliveredAfter), right: true, at: 140, usual: 8, foot: "until the receiver had all of it",
		signs: []sign{{"-", "= one packet"}, {"?", "= not captured"}},
		doc:   "Time from the first packet until the receiver accepted the operation; - if both are the same packet of one capture, so that the time on the way is unknown, and ? if the capture does not show the delivery.",
	},
	{
		name: "LATENCY", fields: "acknowledged latency=latency_ns", right: true, usual: 8, foot: untilAcknowledged,
		signs: []sign{{"?", "= not captured"}, {boundMark, "at most: an earlier ACK may be missing"}},
		doc:   "Time from the first packet to the acknowledgement, or to the last packet of the response; ? if the capture does not show it.",
	},
	{
		name: "REPEATED", fields: "retransmitted", right: true, at: 140, foot: repeatedFoot,
		doc: "Number of retransmitted packets of the operation and of its response, each counted as often as it was retransmitted, so that the number can be larger than that of the packets.",
	},
	{
		name: "STALL", fields: "stalled_ns", right: true, usual: 8, foot: "part of LATENCY, waits >= 1 ms for retransmissions",
		doc: "Sum of the times, of 1 ms or longer, in which the operation made no progress until it was retransmitted; empty if there were none. Of an RDMA Read, only retransmitted requests end a stall, and not the responses to them.",
	},
	{
		name: "RPC ID", fields: "transaction", right: true, at: 120, usual: 6,
		doc: "Number of the RPC that the operation belongs to; empty if it belongs to none.",
	},
	{
		name: "STATUS", fields: "status", usual: 10,
		doc: "What the capture shows of the end of the operation: complete, incomplete (a part is missing), refused, or not_acknowledged (it was retransmitted, and never acknowledged).",
	},
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
	latency := known(r.LatencyNS, "?", field.Brief)
	if r.AtMost {
		latency = t.theme.atMost() + latency
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
		cell{text: deliveredAfter(r)},
		cell{text: latency},
		t.theme.number(r.Retransmitted),
		t.theme.time(r.StalledNS).in(t.theme.warn),
		cell{text: known(r.Transaction, "", func(id int64) string { return strconv.FormatInt(id, 10) }), ink: t.theme.dim},
		cell{text: status, ink: shade},
	)
	return t.row(operationColumns)
}

// deliveredAfter returns how long it took until the receiver had all of it.
func deliveredAfter(r *record.RDMAOperation) string {
	return known(r.Delivered, "?", func(at record.Time) string {
		if at == r.Sent { // The capture shows one packet, at one point.
			return "-"
		}
		return field.Brief(at.Sub(r.Sent))
	})
}

// bytesOf returns how many bytes an operation moved, and how many its request asked for if it moved fewer.
func bytesOf(r *record.RDMAOperation) string {
	if asked, known := r.Requested.Get(); known && r.Bytes < asked {
		return Size(r.Bytes) + " of " + Size(asked)
	}
	return Size(r.Bytes)
}

// untilAcknowledged explains latencies of RDMA operations.
const untilAcknowledged = "until the ACK, which may be delayed, or the last response packet"

var operationSumColumns = slices.Concat([]column{
	{name: "NAME", fields: "name", cell: cellOf(sumOf), flex: true, min: 12},
	{name: "COUNT", fields: "count", right: true, doc: "Number of RDMA operations."},
	{name: "BYTES", fields: "bytes", right: true, doc: "Number of bytes that they moved."},
	{name: "REPEATED", fields: "retransmitted", right: true, at: 100, foot: repeatedFoot, doc: "Number of retransmitted packets."},
	{
		name: "STALLED OPS", fields: "stalled", right: true, foot: "those that waited for a retransmission",
		doc: "Number of RDMA operations that stalled until a retransmission.",
	},
	{name: "STALL TIME", fields: "stalled_ns", right: true, foot: "sum over RDMA operations", doc: "Sum of all stalls."},
}, alike(
	"latency, "+untilAcknowledged, []sign{tooFew},
	column{name: "P50", fields: "latency.p50_ns", right: true, doc: "Median of the time to the acknowledgement."},
	column{name: "P90", fields: "latency.p90_ns", right: true, doc: "90th percentile of the time to the acknowledgement."},
	column{name: "P99", fields: "latency.p99_ns", right: true, at: 100, doc: "99th percentile of the time to the acknowledgement."},
	column{name: "WORST", fields: "latency.max_ns", right: true, doc: "Longest time to the acknowledgement."},
))

// sumOf returns the values that the operations of a row have in common, with kinds as the table of operations has them.
func sumOf(r *analyze.OperationStats) string {
	kind := slices.Index(strings.Split(r.GroupBy, ","), "kind")
	if kind < 0 || kind >= len(r.Group) {
		return r.Name
	}
	group := slices.Clone(r.Group)
	group[kind] = operationNames[record.OperationKind(group[kind])]
	return strings.Join(group, ", ")
}

// OperationSums writes a table of the sums of RDMA operations.
func OperationSums(w io.Writer, theme *Theme, width int, rows []*analyze.OperationStats) error {
	columns := slices.Clone(operationSumColumns)
	if len(rows) > 0 {
		columns[0].title = GroupHeading(rows[0].GroupBy)
	}
	t := newTable(w, theme, width, columns)
	t.by = cmp.Or(t.by, "BYTES")
	for _, r := range rows {
		p50, p90, p99, worst := theme.quantiles(&r.Latency)
		err := t.row([]cell{
			{text: clean(sumOf(r)), ink: theme.key},
			theme.number(r.Count), theme.bytes(r.Bytes), theme.number(r.Retransmitted), theme.number(r.Stalled),
			theme.time(r.StalledNS).in(theme.warn), p50, p90, p99, worst,
		})
		if err != nil {
			return err
		}
	}
	return t.end()
}
