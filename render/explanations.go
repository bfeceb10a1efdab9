package render

import "cmp"

// Explanation explains a heading of a table, or a symbol of a table or drawing, in one
// sentence.
type Explanation struct {
	View    string // "transactions", "ladder", ...; "all" for symbols of every view
	Name    string // the heading, or the symbol: first in ASCII and then, if it differs, in Unicode
	Meaning string
}

// Explanations returns the explanations of all headings and symbols, grouped by view.
func Explanations() (list []Explanation) {
	for _, v := range explained {
		for _, c := range v.columns {
			list = append(list, Explanation{v.view, c.name, c.explanation()})
		}
		for _, s := range v.symbols {
			list = append(list, Explanation{v.view, s.text, s.meaning})
		}
	}
	return list
}

// explanation returns what the column shows, in a sentence.
func (c *column) explanation() string { return cmp.Or(c.doc, usualDocs[c.name]) }

// usualDocs explain the columns that several tables have.
var usualDocs = map[string]string{
	"CONN":      "Number of the connection.",
	"NAME":      "Values of the fields that --by names, whose names are the heading.",
	"ATTEMPTS":  "Number of Calls that were sent for these RPCs; RPCS if none was sent again.",
	"FAILED":    "Number of RPCs that were answered with an error: RDMA_ERROR, or a Reply with an RPC or NFS error status.",
	"NO REPLY":  "Number of RPCs without a Reply (status no_reply). They are no errors: the Reply may have been sent later, or not captured.",
	"P50":       "Median of the latency, from 3 latencies on.",
	"P90":       "90th percentile of the latency, from 10 latencies on.",
	"P99":       "99th percentile of the latency, from 100 latencies on.",
	"WORST":     "Longest latency. Here, and before a percentile, <= marks an upper bound: the capture does not prove which copy of a Reply was accepted.",
	"SUM":       "Sum of all latencies; <= if one of them is an upper bound.",
	"CONGESTED": "Number of RPCs during which a packet was marked because of congestion (CE), a host sent a congestion notification packet (CNP), or a link was paused (PFC).",
}

// explained has the views with their tables and with the symbols of their tables and drawings.
var explained = []struct {
	view    string
	columns []column
	symbols []sign
}{
	{"all", nil, []sign{
		{"-", "The value does not exist or is not in the capture; an empty cell of a table of sums is not known, or has too few samples."},
		{"?", "The value is unknown; some tables say below what else the sign means there."},
		{"~ \u2026", "Text was left out here to fit the width of the terminal: the end of a text, the beginning of a path, or the first operations of a COMPOUND."},
		{"KiB MiB", "Numbers of bytes below 10,000 are exact."},
	}},
	{"transactions", transactionColumns, []sign{
		{"!", "The RPC has findings that are warnings or errors, which rdmadump check lists. Rules whose findings may be no more than notes do not count."},
	}},
	{"ladder", nil, []sign{
		{"TIME", "Time of the event, counted from the Call; of a range of packets, that of its first packet."},
		{"PACKET", "Number of the packet that shows the event, or the range of its packets; of an event that took several packets, a single number is that of the last one. With several capture points, each has a column, with its name in a second line."},
		{"a", "Column of the memory that the Call exposed with one handle; the line above the ladder names the handle of each column."},
		{"--> \u2500\u2500\u25b6", "A Send, an acknowledgement, or a packet that was retransmitted or came after a gap; the arrow points to the receiver."},
		{"==> \u2550\u2550\u25b6", "An RDMA Read request, the response to it, or an RDMA Write."},
		{": \u250a", "A stall: the RPC made no progress for this time, for the reason in the line. With \"ends at\", the line also has the end of the stall, if packets came until then that ended it for other RPCs only, or that the receiver did not accept."},
		{"+ \u252c", "The Call exposed the handle at the top of this bar."},
		{"| \u2502", "The handle of this bar is exposed."},
		{"# \u2588", "Data was transferred to or from the memory of this handle."},
		{"x \u2715", "The Reply invalidated this handle remotely, with Send With Invalidate."},
		{"o \u25cb", "The Reply did not invalidate this handle, so the requester has to invalidate it itself (local invalidation)."},
	}},
	{"connections", connectionColumns, nil},
	{"credits", nil, []sign{
		{"# \u2588", "Number of Calls in flight at that time. A Call without a Reply is in flight until its connection begins to close or, if the capture does not show that, until the last packet of the connection."},
		{"@", "Number of Calls in flight at a time when all credits were in use; with Unicode characters and colours, the column is red instead."},
		{"- \u254c", "Number of granted credits at that time."},
	}},
	{"handles", nil, []sign{
		{"= \u2836", "The handle was exposed at that time."},
		{"# \u28ff", "Data was transferred to or from the memory of the handle at that time."},
		{"x \u2715", "A Reply invalidated the handle remotely."},
		{"o \u25cb", "A Reply ended the exposure without remote invalidation, so the requester has to invalidate the handle itself."},
		{"?", "The capture shows no Reply to the Call that exposed the handle."},
	}},
	{"packets", packetColumns, []sign{
		{"SOURCE > DESTINATION", "Addresses of the packet."},
	}},
	{"tasks", taskColumns, nil},
	{"rdma", operationColumns, nil},
	{"rdma-stats", operationSumColumns, nil},
	{"stats", statsColumns, []sign{
		{"~", "The percentile is an estimate within 1 percent, because there were too many latencies to keep all of them."},
	}},
	{"files", filesColumns, []sign{
		{"~", "The percentile is an estimate within 1 percent, because there were too many latencies to keep all of them."},
	}},
	{"rates", ratesColumns, nil},
	{"network", networkColumns, []sign{
		{"longest delay", "Chart of the longest one-way delay of each interval; the number on the right belongs to the darkest character, in all directions."},
		{"lost packets", "Chart of the number of packets that were lost in each interval; the number on the right belongs to the darkest character."},
		{"damaged packets", "Chart of the number of packets of each interval that arrived damaged; the number on the right belongs to the darkest character."},
	}},
	{"compare", compareColumns, []sign{
		{"->", "The value before is on the left, the value after on the right; a single value is the same in both captures."},
		{"*", "The percentile changed by more than chance explains: the p-value of an exact permutation test is below 0.001."},
		{"?", "Whether chance explains the change was not tested, because a capture has fewer than 30 latencies of the group, or one of the two values is an upper bound."},
		{"<=", "The value is an upper bound: the capture does not prove which copy of a Reply was accepted."},
	}},
	{"fields", fieldColumns, nil},
}
