package render

// Explanation explains a heading of a table, or a symbol of a table or drawing, in one
// sentence.
type Explanation struct {
	View    string // "transactions", "ladder", ...; "all" for symbols of every view
	Name    string // the heading, or the symbol: first in ASCII and then, if it differs, in Unicode
	Meaning string
}

// Explanations returns the explanations of all headings and symbols, grouped by view.
func Explanations() []Explanation { return explanations }

// explanations are in the order of the columns. A test compares them with the tables.
var explanations = []Explanation{
	{"all", "-", "The value does not exist or is not in the capture."},
	{"all", "?", "The value is unknown; some tables say below what else the sign means there."},
	{"all", "~ \u2026", "At the end of a text: the text was shortened to fit the width of the terminal."},
	{"all", "K M", "The number of bytes is in KiB or MiB; numbers below 10,000 are exact."},

	{"transactions", "#", "Number of the transaction, in the order of the Calls; rows are in the order in which transactions were completed, so the numbers and times of rows are not always in order."},
	{"transactions", "TIME", "Time of the Call, or of the Reply if the Call is not in the capture; the flag --time selects the format."},
	{"transactions", "CONN", "Number of the connection."},
	{"transactions", "XID", "Transaction ID of the RPC, which is unique only among the outstanding Calls of a connection and a direction; the flag --conn selects a connection."},
	{"transactions", "DIR", "Direction of the Call: fwd from the client to the server, back from the server to the client (RFC 8167)."},
	{"transactions", "PROCEDURE", "Program, version and procedure, or the operations of a COMPOUND; (not decoded) if the Call could not be decoded."},
	{"transactions", "CALL", "Length of the Call's Payload stream in bytes, including the data items in chunks."},
	{"transactions", "REPLY", "Length of the Reply's Payload stream in bytes, including the data items in chunks."},
	{"transactions", "FORM", "Forms of the Call and the Reply (RFC 8166 s.3.5): short in a Send, chunked with data items in chunks, long completely in a chunk. A question mark is a Call that was not captured, and a dash a missing Reply."},
	{"transactions", "READ", "Number of bytes that the responder fetched from the requester's memory with RDMA Read, such as the data of an NFS WRITE."},
	{"transactions", "WRITE", "Number of bytes that the responder put into the requester's memory with RDMA Write, such as the data of an NFS READ."},
	{"transactions", "CREDITS", "Number of credits that the Call requested, and number that the Reply granted (RFC 8166 s.3.3.1)."},
	{"transactions", "INVALIDATED", "Handle that the Reply invalidated remotely, and the number of handles that the Call exposed if there are several, such as 0x000008ae of 3. The requester has to invalidate the others itself; none of 2: both of them."},
	{"transactions", "LATENCY", "Time from the first packet of the Call to the last packet of the Reply (of the copy that the requester accepted), without the time for which the Call waited for credits before it was sent."},
	{"transactions", "STATUS", "Outcome: ok, no_reply, no_call (the Call is not in the capture), or the RDMA, RPC or NFS error."},
	{"transactions", "!", "The transaction has findings, which rdmadump check lists."},

	{"ladder", "TIME", "Time of the event, counted from the Call; of a range of packets, that of its first packet."},
	{"ladder", "PACKET", "Number of the packet that shows the event, or the range of its packets; of an event that took several packets, a single number is that of the last one."},
	{"ladder", "--> \u2500\u2500\u25b6", "A Send, an acknowledgement, or a packet that was retransmitted or came after a gap; the arrow points to the receiver."},
	{"ladder", "==> \u2550\u2550\u25b6", "An RDMA Read request, the response to it, or an RDMA Write."},
	{"ladder", ": \u250a", "A stall: the RPC made no progress for this time, for the reason in the line."},
	{"ladder", "+ \u252c", "The Call exposed the handle at the top of this bar."},
	{"ladder", "| \u2502", "The handle of this bar is exposed."},
	{"ladder", "# \u2588", "Data was transferred to or from the memory of this handle."},
	{"ladder", "x \u2715", "The Reply invalidated this handle remotely, with Send With Invalidate."},
	{"ladder", "o \u25cb", "The Reply did not invalidate this handle, so the requester has to invalidate it itself (local invalidation)."},

	{"connections", "CONN", "Number of the connection, for the flag --conn."},
	{"connections", "TRANSPORT", "RoCEv2, RoCEv1, InfiniBand or iWARP."},
	{"connections", "CLIENT", "Address and port of the end that opened the connection. For RoCE and InfiniBand, this is the port of the RDMA connection manager (RDMA CM) and not a UDP port."},
	{"connections", "SERVER", "Address and port of the end that accepted the connection, as for CLIENT."},
	{"connections", "QPN", "Queue pair numbers of the client and the server; iWARP has none."},
	{"connections", "UPPER", "Upper-layer protocol: rpcrdma for NFS, nvme, iser, smbdirect or unknown."},
	{"connections", "RPCS", "Number of RPCs on the connection."},
	{"connections", "INLINE", "Inline thresholds in bytes: the longest Send from the client to the server, and from the server to the client. They are 1024 unless the capture contains private data that announce other values."},
	{"connections", "REMOTE-INV", "Whether both sides announced support for remote invalidation (RFC 8797), or which side did; ? if the capture does not contain the handshake. Linux servers do not announce it, and use it nevertheless if the client announces it, so that handles are invalidated remotely although the column does not say yes."},
	{"connections", "IN-FLIGHT", "Largest number of outstanding Calls of the client, and number of credits that the server granted last."},
	{"connections", "PACKETS", "Number of packets of the connection."},
	{"connections", "RETR/OOO/MISSED", "Numbers of packets that were retransmitted, that arrived out of order, and that are missing from the capture although the receiver acknowledged them."},
	{"connections", "NAK/RNR", "Numbers of NAKs, and of receiver-not-ready (RNR) NAKs."},
	{"connections", "CLOSED", "How the connection ended, and the side that ended it; open if the capture does not show an end."},

	{"credits", "# \u2588", "Number of outstanding Calls at that time. A Call without a Reply is outstanding until its connection begins to close or, if the capture does not show that, until the last packet of the connection."},
	{"credits", "@", "Number of outstanding Calls at a time when all credits were in use; with Unicode characters, the column is red instead."},
	{"credits", "- \u254c", "Number of granted credits at that time."},

	{"handles", "= \u2836", "The handle was exposed at that time."},
	{"handles", "# \u28ff", "Data was transferred to or from the memory of the handle at that time."},
	{"handles", "x \u2715", "A Reply invalidated the handle remotely."},
	{"handles", "o \u25cb", "A Reply ended the exposure without remote invalidation, so the requester has to invalidate the handle itself."},
	{"handles", "?", "The capture shows no Reply to the Call that exposed the handle."},

	{"packets", "NUMBER", "Number of the packet in the capture, counted from 1."},
	{"packets", "TIME", "Time of the packet; the flag --time selects the format."},
	{"packets", "SOURCE > DESTINATION", "Addresses of the packet."},
	{"packets", "SOURCE", "Address of the sender."},
	{"packets", "DESTINATION", "Address of the receiver."},
	{"packets", "TRANSPORT", "Protocol that carries the RDMA traffic."},
	{"packets", "LENGTH", "Length of the packet on the wire, in bytes."},
	{"packets", "CONN", "Number of the connection."},
	{"packets", "#", "Number of the transaction that the packet belongs to."},
	{"packets", "XID", "Transaction ID of the RPC that the packet belongs to."},
	{"packets", "OPERATION", "RDMA operation that the packet is part of."},
	{"packets", "QPN", "Number of the destination queue pair."},
	{"packets", "PSN", "Packet sequence number."},
	{"packets", "MARKS", "What is unusual about the packet, such as retransmitted or out_of_order."},
	{"packets", "SUMMARY", "Opcode and most important fields of the packet."},

	{"stats", "NAME", "Values of what --by names, usually the operation; others sums up all groups beyond the first 1024."},
	{"stats", "COUNT", "Number of RPCs."},
	{"stats", "ERR", "Number of RPCs that failed, or whose Call or Reply is missing from the capture: those with another STATUS than ok."},
	{"stats", "RETR", "Number of retransmitted packets."},
	{"stats", "CALL BYTES", "Number of bytes in the Payload streams of all Calls."},
	{"stats", "CALL S/C/L", "The bytes of CALL BYTES by the form of the Call: short, chunked and long."},
	{"stats", "REPLY BYTES", "Number of bytes in the Payload streams of all Replies."},
	{"stats", "REPLY S/C/L", "The bytes of REPLY BYTES by the form of the Reply: short, chunked and long."},
	{"stats", "P50", "Median of the latency."},
	{"stats", "P90", "90th percentile of the latency."},
	{"stats", "P99", "99th percentile of the latency."},
	{"stats", "WORST", "Longest latency."},
	{"stats", "HISTOGRAM", "Distribution of the latency on a logarithmic scale. The heading has the range: the shortest and the longest latency of all rows."},
	{"stats", "READ/WRITE/STALL/SERVER", "Shares of the total latency: in RDMA Reads, in RDMA Writes, stalled, and the rest, which is mostly the server's time: until the first RDMA Read or RDMA Write, and until the Reply."},
	{"stats", "WITH CHUNKS", "Number of RPCs that used chunks."},
	{"stats", "FIT 64K", "Share of the RPCs with chunks whose Call and largest possible Reply fit into 64 KiB, so that they would have needed no chunks with this inline threshold. The largest possible Reply is the one that fills the chunks that the Call offers."},
	{"stats", "~", "The percentile is an estimate within 1 percent, because there were too many latencies to keep all of them."},

	{"rates", "TIME", "Start of the interval; the flag --time selects the format."},
	{"rates", "NAME", "Values of the fields that --by names."},
	{"rates", "RPCS", "Number of RPCs that were answered in the interval; an RPC without a Reply counts in the interval of its Call."},
	{"rates", "ERR", "Number of RPCs that failed: without a Call or Reply in the capture, rejected by RPC, with RDMA_ERROR, or with an NFS error status."},
	{"rates", "RETR", "Number of retransmitted packets of the RPCs that the row counts; the packets may be in other intervals."},
	{"rates", "TO SERVER", "Number of bytes in the Payload streams that clients sent."},
	{"rates", "TO CLIENT", "Number of bytes in the Payload streams that servers sent."},
	{"rates", "P50", "Median of the latency."},
	{"rates", "P99", "99th percentile of the latency."},
	{"rates", "WORST", "Longest latency."},
	{"rates", "IN FLIGHT", "Mean and largest number of Calls that were in flight at one time of the interval. A Call without a Reply is in flight until its connection begins to close or, if the capture does not show that, until the last packet of the connection."},
	{"rates", "CREDITS", "Number of credits that the last Reply of the interval granted."},
	{"rates", "RATE", "The number of RPCs as a bar; the longest bar is that of the busiest interval."},
	{"rates", "LATENCY MAP", "Heat map of the latencies: one row for each interval, from short to long latencies on a logarithmic scale, with darker characters for more RPCs. The heading has the range."},

	{"check", "SEVERITY", "Severity of the findings: error if the protocol was violated, or an RPC failed because of the protocol or the transport; warning for a risk, a recommendation that was not followed, or lost performance; note for what is worth knowing and harms nobody."},
	{"check", "RULE", "Name of the rule, which rdmadump check --explain explains."},
	{"check", "COUNT", "Number of findings."},
	{"check", "CLIENT", "Number of findings that are the client's fault."},
	{"check", "SERVER", "Number of findings that are the server's fault."},
	{"check", "UNATTRIBUTED", "Number of findings that are the fault of neither side, or for which the capture does not prove which side is at fault."},

	{"fields", "FIELD", "Name of the field in JSON, and for -Y, -e, --sort and --jq."},
	{"fields", "TYPE", "Type of the value; list means that the field is in a list, so that a record can have several values of it."},
	{"fields", "WIRESHARK", "Names of the field in Wireshark, which filters also accept."},
	{"fields", "MEANING", "Description of the field, its values, and the other names that -Y, -e and --sort accept for it."},
}
