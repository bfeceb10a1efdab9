package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/claim"
	"github.com/rdmadump/rdmadump/internal/query"
)

// Text draws transactions, connections, findings and summaries for people, one table or
// list for each output.
type Text struct {
	w     io.Writer
	theme *Theme
	width int // of the terminal, 0 if there is none
	table *table
	cells []cell
	clock clock
	kept  keeping

	selected string // how many records are shown, for the summary
	live     bool

	withoutFiles bool // the column FILE is not wanted
	withoutRPCs  bool // no connection carries RPCs
}

// Live prepares for live traffic: rows are written one by one, so columns get their usual
// widths instead of the widths that the first rows need.
func (t *Text) Live() { t.live = true }

// WithoutFiles leaves out the column with the files of transactions, because the output is not to depend on whether
// the records have them.
func (t *Text) WithoutFiles() { t.withoutFiles = true }

// WithoutRPCs shows the upper layers of connections, and packets, in place of RPCs.
func (t *Text) WithoutRPCs() { t.withoutRPCs = true }

// NewText returns a Text that draws on w for a terminal of this width, or without any limit
// of the width if it is 0.
func NewText(w io.Writer, theme *Theme, width int) *Text {
	return &Text{w: w, theme: theme, width: width, clock: clock{form: theme.times}}
}

// Flush writes the rows that were kept to learn the widths of columns.
func (t *Text) Flush() error {
	if t.table == nil {
		return nil
	}
	return t.table.flush()
}

// Start sets the time that relative times count from: that of the capture's first packet.
// Without a call of Start, times count from the first time that is drawn.
func (t *Text) Start(at record.Time) { t.clock.start = record.Some(at) }

// Finish writes the remaining rows and, for people, the lines that explain the columns.
func (t *Text) Finish() error {
	if err := t.Flush(); err != nil || t.table == nil {
		return err
	}
	_, err := io.WriteString(t.w, t.table.feet())
	return err
}

// Late returns the columns that are hidden because of the texts of the first rows, and had other texts in later rows, unless the lines below
// the table say so.
func (t *Text) Late() []string {
	if t.table == nil || t.width > 0 {
		return nil
	}
	return t.table.late
}

// columnsExplained names the command that prints Explanations.
const columnsExplained = "headings: rdmadump help columns"

// at returns a time as text.
func (t *Text) at(at record.Time) string { return string(t.clock.append(nil, at)) }

// Seconds returns a duration, given in nanoseconds, in seconds with some decimals and without a unit.
func Seconds(ns int64, decimals int) string {
	return strconv.FormatFloat(float64(ns)/1e9, 'f', decimals, 64)
}

// Duration and Size return a number as [field.Duration] and [field.Size] do.
func Duration(ns int64) string { return field.Duration(ns) }
func Size(n int64) string      { return field.Size(n) }

var transactionColumns = []column{
	{
		name: "RPC ID", fields: "id", right: true, rank: 2, usual: 6,
		doc: "Number of the RPC or, if the Call was sent again, of the attempt, in the order of the Calls. Rows are in this order, except in live captures, where they are in the order in which RPCs ended, and with --sort and --top.",
	},
	{
		name: "TIME", fields: "call.time", right: true, usual: 11, foot: "of the Call", moment: true,
		doc: "Time of the Call, or of the Reply if the Call is not in the capture, in seconds since the first packet of the capture; the flag --time selects other formats.",
	},
	{name: "CONN", fields: "connection", right: true, rank: 3, differs: true},
	{
		name: "XID", fields: "xid",
		doc: "Transaction ID of the RPC, which is unique only among the Calls in flight of a connection and a direction; the flag --conn selects a connection.",
	},
	{
		name: "DIR", fields: "direction", rank: 7, usual: 4, differs: true, signs: []sign{{"back", "= a Call of the server"}},
		doc: "Direction of the Call: fwd from the client to the server, back from the server to the client (RFC 8167).",
	},
	{
		name: "CLIENT", fields: "client", rank: 4, varied: true,
		doc: "Address of the client. This column is only shown if it has at least two different values; --columns shows it in any case.",
	},
	{
		name: "SERVER", fields: "server", rank: 5, varied: true,
		doc: "Address of the server. This column is shown under the same condition as CLIENT.",
	},
	{
		name: "UID", fields: "uid", right: true, rank: 2, varied: true,
		doc: "User ID in the AUTH_SYS credential of a Call by the client. This column is shown under the same condition as CLIENT.",
	},
	{
		name: "GID", fields: "gid", right: true, rank: 9, varied: true,
		doc: "Group ID in the AUTH_SYS credential of a Call by the client. This column is shown under the same condition as CLIENT.",
	},
	{
		name: "MACHINE", fields: "machine", rank: 6, varied: true,
		doc: "Machine name in the AUTH_SYS credential of a Call by the client. This column is shown under the same condition as CLIENT.",
	},
	{
		name: "PRINCIPAL", fields: "principal", rank: 2, varied: true,
		doc: "Name of the RPCSEC_GSS principal that made the Call, if the capture shows it. This column is shown under the same condition as CLIENT.",
	},
	{
		name: "PROCEDURE", fields: "program_name version procedure_name operation operations", flex: true, min: 21, usual: 25,
		doc: "Program, version and procedure, or the operation that a COMPOUND was sent for; (GSS init) and (GSS destroy) set up and end an RPCSEC_GSS context, (krb5p) is encrypted, and (not decoded) is a Call that could not be decoded. Without a terminal and with --wide, all operations follow.",
	},
	{
		name: "FILE", fields: "file file_from", rank: 1, usual: 24, some: true, foot: pathFoot, signs: pathSigns,
		doc: "Path of the file or directory that the RPC acted on, after the RPC; fh: and a number is the short form of a file handle whose path the capture does not show. On a terminal, only the end of a long path is shown. Without a terminal, this column is only shown with -Y, --columns or --wide.",
	},
	{
		name: "CALL BYTES", fields: "call.payload_bytes", right: true, rank: 4, differs: true, foot: bytesFoot, signs: bytesSigns,
		doc: "Length of the Call's Payload stream in bytes, including the data items in chunks.",
	},
	{
		name: "REPLY BYTES", fields: "reply.payload_bytes", right: true, rank: 5, differs: true, foot: bytesFoot, signs: bytesSigns,
		doc: "Length of the Reply's Payload stream in bytes, including the data items in chunks.",
	},
	{
		name: "FORM", fields: "call.form reply.form", rank: 5, usual: 15, differs: true, foot: "Call/Reply: short (in a Send), chunked (its data in chunks), long (all of it in a chunk)",
		signs: []sign{{"?", "= not in the capture"}, {"-", "= no RPC message"}},
		doc:   "Forms of the Call and the Reply (RFC 8166 s.3.5): short in a Send, chunked with data items in chunks, long completely in a chunk. A question mark is a Call that was not captured, and a dash a missing Reply.",
	},
	{
		name: "RDMA READ", fields: "rdma-read=rdma_read_bytes", right: true, rank: 6, differs: true,
		doc: "Number of bytes that the responder fetched from the requester's memory with RDMA Read, such as the data of an NFS WRITE.",
	},
	{
		name: "RDMA WRITE", fields: "rdma-write=rdma_write_bytes", right: true, rank: 6, differs: true,
		doc: "Number of bytes that the responder put into the requester's memory with RDMA Write, such as the data of an NFS READ.",
	},
	{
		name: "CREDITS REQUESTED/GRANTED", fields: "call.credits reply.credits", right: true, wide: true,
		doc: "Number of credits that the Call requested, and number that the Reply granted (RFC 8166 s.3.3.1). Shown only with --wide or --columns.",
	},
	{
		name: "INVALIDATED", fields: "invalidation.handle", wide: true,
		doc: "Handle that the Reply invalidated remotely. Shown only with --wide or --columns.",
	},
	{
		name: "NOT INVALIDATED", fields: "not_invalidated", right: true, wide: true,
		doc: "Number of handles of the Call that the Reply did not invalidate, so that the requester has to invalidate them itself. Shown only with --wide or --columns.",
	},
	{
		name: "LATENCY", fields: "latency_ns", right: true, usual: 8, signs: []sign{bounded, {"-", "= Call or Reply missing"}},
		doc: "Time from the first packet of the Call to the last packet of the Reply (of the copy that the requester accepted), without the time for which the Call waited for credits before it was sent. <= marks an upper bound: the capture does not prove which copy of the Reply was accepted.",
	},
	{
		name: "CAUSE", fields: "cause.id cause.text", rank: 10, some: true, differs: true, foot: causeFoot, meaning: claim.Meaning,
		doc: "Id of the sentence about where most of the latency, or a large part of it, passed; docs/causes.md explains each, and a line below the table says in a few words what those of the table mean. The ladder diagram has the sentence.",
	},
	{
		name: "REPEATS", fields: "request attempt retry_of", some: true, signs: []sign{{"of #", "2nd of #N = Call of RPC ID N sent again"}, {"try", "try = new Call for the same after DELAY, GRACE or a lost session"}},
		doc: "What the RPC repeats: 2nd of #33 is the second attempt of the request that began with RPC 33, and 5th try after 9.2 s the fifth RPC that asks for the same, that long after the first was sent, after the server had put it off or the session was lost (retry of #33 in records that were read back).",
	},
	{
		name: "STATUS", fields: "status nfs_status findings", signs: []sign{{"!", "= findings of rdmadump check"}},
		doc: "Outcome: ok, no_reply, no_call (the Call is not in the capture), the RDMA, RPC or NFS error, or malformed (no error status, but a finding proves that the Call or the Reply cannot be decoded).",
	},
}

// These explain columns with paths, and with lengths of Calls and Replies.
const (
	pathFoot  = "path on the server"
	bytesFoot = "with the data in chunks"
)

var (
	pathSigns  = []sign{{shortMark, "= beginning left out"}, {"fh:", "= hash of the handle, path unknown"}}
	bytesSigns = []sign{{"-", "= not captured, or not decoded"}}
)

// causeFoot explains the ids of causes.
const causeFoot = "where much of the latency passed:"

var directions = map[record.Direction]string{record.Forward: "fwd", record.Backward: "back"}

// Transaction writes a row of the table of transactions.
func (t *Text) Transaction(r *record.Transaction) error {
	status, shade := status(t.theme, r)
	if slices.ContainsFunc(r.Findings, isProblem) {
		status += " !"
	}
	read, written := query.Moved(r)
	procedure := query.Procedure(r)
	if t.width > 0 {
		procedure = query.Deed(r)
	}
	t.cells = append(t.cells[:0],
		cell{text: strconv.FormatInt(r.ID, 10), ink: t.theme.dim},
		cell{text: t.at(r.Start())},
		cell{text: strconv.Itoa(r.Connection)},
		cell{text: r.XID.String(), ink: t.theme.key},
		cell{text: directions[r.Direction]},
		cell{text: r.Client.Or("")},
		cell{text: r.Server.Or("")},
		caller(r, r.UID, number),
		caller(r, r.GID, number),
		caller(r, r.Machine, clean),
		caller(r, r.Principal, clean),
		cell{text: procedure},
		cell{text: t.path(r)},
		cell{text: payload(r.Call)},
		cell{text: payload(r.Reply)},
		cell{text: query.Forms(r)},
		cell{text: moved(read)},
		cell{text: moved(written)},
		cell{text: query.Credits(r)},
		cell{text: known(r.Invalidation, "", func(i record.Invalidation) string { return i.Handle.String() }), ink: t.theme.dim},
		cell{text: some(int64(len(r.NotInvalidated)))},
		cell{text: strings.Replace(Latency(r), AtMost+" ", t.theme.atMost(), 1)},
		cell{text: r.Cause.Or(record.Cause{}).ID, ink: t.theme.dim},
		cell{text: query.Repeats(r), ink: t.theme.warn},
		cell{text: status, ink: shade},
	)
	return t.row(transactionColumns)
}

// isProblem reports whether findings of a rule are part of a problem. Those that may be no more than notes are not: a Linux server invalidates
// a handle in each mount.
func isProblem(id string) bool {
	r := rule.Find(id)
	return r != nil && !slices.Contains(r.Severities(), record.Note)
}

// caller returns the cell of a fact about the client's user. It is empty for the Calls of a server.
func caller[T any](r *record.Transaction, fact record.Opt[T], text func(T) string) (c cell) {
	if r.Direction == record.Forward {
		c.text = known(fact, "", text)
	}
	return c
}

// path returns the path of a transaction's file as the table shows it: on a terminal, the end of a long one.
func (t *Text) path(r *record.Transaction) string {
	switch {
	case t.withoutFiles:
		return ""
	case t.width == 0:
		return clean(r.FileText())
	}
	return endOf(clean(r.FileText()), min(max(t.width/6, 12), 40), t.theme.glyphs.shortened)
}

// row writes t.cells as a row of the table with these columns.
func (t *Text) row(columns []column) error {
	if t.kept.on {
		t.keep(columns)
		return nil
	}
	if t.table == nil {
		t.table = newTable(t.w, t.theme, t.width, columns)
		t.table.live = t.live
	}
	return t.table.row(t.cells)
}

// known returns the text of a value, or the text unknown if there is no value.
func known[T any](o record.Opt[T], unknown string, text func(T) string) string {
	if v, known := o.Get(); known {
		return text(v)
	}
	return unknown
}

// payload returns the length of a message's Payload stream, or "-" if it is unknown.
func payload(m *record.Message) string {
	if m == nil {
		return "-"
	}
	return known(m.PayloadBytes, "-", Size)
}

// moved returns a number of bytes, or nothing for 0.
func moved(n int64) string {
	if n == 0 {
		return ""
	}
	return Size(n)
}

// AtMost is the mark before a time that is only an upper bound.
const AtMost = "<="

// Latency returns the latency of a transaction, or "-" if it has none. If it is uncertain which copy of the Reply was
// accepted, it is the upper bound.
func Latency(r *record.Transaction) string {
	if ns, known := r.LatencyNS.Get(); known && r.LatencyMinNS.Known() {
		return AtMost + " " + field.Brief(ns)
	}
	return known(r.LatencyNS, "-", field.Brief)
}

// status returns how a transaction ended, and the ink for it.
func status(theme *Theme, r *record.Transaction) (string, ink) {
	word := query.Outcome(r)
	switch {
	case word == "ok":
		return word, theme.good
	case r.Status == record.Complete && r.RPCFailed(), r.Status == record.RDMAError && r.RDMAError.Known():
		return word, theme.bad
	}
	return word, theme.warn
}

var connectionColumns = []column{
	{
		name: "CONN", fields: "id", right: true, signs: []sign{{"x", "= connections that are alike (--all lists each)"}},
		doc: "Number of the connection, for the flag --conn; 9x stands for nine connections that are alike, whose sums the row has, and the medians of their round trips and lives. The flag --all lists each.",
	},
	{name: "TRANSPORT", fields: "transport", at: 180, doc: "RoCEv2, RoCEv1, InfiniBand or iWARP."},
	{
		name: "CLIENT", fields: "client.address client.port",
		doc: "Address of the end that opened the connection; of a TCP connection for callbacks of NFS 4.0, the NFS client.",
	},
	{
		name: "SERVER", fields: "server.address server.port",
		doc: "Address and port of the end that accepted the connection. For RoCE and InfiniBand, this is the port of the RDMA connection manager (RDMA CM) and not a UDP port.",
	},
	{
		name: "QPN", fields: "client.qpn server.qpn", wide: true,
		doc: "Queue pair numbers of the client and the server; iWARP has none. Shown only with --wide or --columns.",
	},
	{name: "PROTOCOL", fields: "upper_layer", at: 140, doc: "Upper-layer protocol: rpcrdma for NFS, nvme, iser, smbdirect or unknown."},
	{name: "RPCS", fields: "requests", right: true, doc: "Number of RPCs whose first Call was sent on the connection."},
	{
		name: "ATTEMPTS", fields: "attempts", right: true, at: 79,
		doc: "Number of Calls on the connection: clients send a Call again, usually on another connection, if its Reply does not come.",
	},
	{
		name: "MTU", fields: "path_mtu", right: true, wide: true,
		doc: "Path MTU: the number of bytes of data in a full packet or, if the capture contains none, that which the handshake negotiated; empty if the capture contains neither, and for iWARP. Shown only with --wide or --columns.",
	},
	{
		name: "INLINE TO SERVER/TO CLIENT", fields: "inline_threshold.client_to_server inline_threshold.server_to_client", right: true, wide: true,
		doc: "Inline thresholds in bytes: the longest Send from the client to the server, and from the server to the client. They are 1024 unless the capture contains private data that announce other values; empty on a connection that does not carry RPC-over-RDMA. Shown only with --wide or --columns.",
	},
	{
		name: "INVALIDATION ANNOUNCED BY", fields: "remote_invalidation", wide: true,
		doc: "The side that announced support for remote invalidation (RFC 8797): client, server, both or neither; empty on a connection that does not carry RPC-over-RDMA, and ? if the capture does not contain the handshake. Linux servers do not announce it, and use it nevertheless if the client announces it, so that handles are invalidated remotely although the column does not say both. Shown only with --wide or --columns.",
	},
	{
		name: "CREDITS USED", fields: "credits.forward.peak_in_flight credits.forward.granted", right: true, at: 140, foot: "most at once", signs: []sign{{"? of", "= not known, packets missing"}, {"of ?", "= no grant captured"}},
		doc: "Largest number of Calls of the client that were in flight at once, and number of credits that the server granted last; empty on a connection that does not carry RPCs.",
	},
	{
		name: "RTT SERVER", fields: "path.round_trips.to_server.p50_ns path.round_trips.to_server.max_ns", right: true, at: 100, foot: tripsFoot,
		doc: "Median of the round trips from the capture point to the server and back, of packets that were answered by exactly one response; only from 3 of them on. It may be up to 12% too large.",
	},
	{
		name: "RTT CLIENT", fields: "path.round_trips.to_client.p50_ns path.round_trips.to_client.max_ns", right: true, at: 120, foot: tripsFoot,
		doc: "Median of the round trips from the capture point to the client and back, as for RTT SERVER. At the client itself, it is the time that the client takes to answer.",
	},
	{name: "PACKETS", fields: "packets", right: true, at: 160, doc: "Number of packets of the connection."},
	{name: "REPEATED", fields: "retransmitted", right: true, at: 60, foot: repeatedFoot, doc: "Number of packets that were retransmitted."},
	{
		name: "OUT OF ORDER", fields: "out_of_order", right: true, at: 180,
		doc: "Number of packets that came after a packet with a later sequence number, because they were overtaken, or were lost and retransmitted. The column REORDERED of network counts only those that were overtaken.",
	},
	{
		name: "NOT CAPTURED", fields: "not_captured", right: true, at: 180,
		doc: "Number of packets that the receiver acknowledged, but that the capture does not contain.",
	},
	{name: "NAKS", fields: "naks", right: true, at: 78, foot: "of both sides, without RNR", doc: "Number of NAKs, without those of a receiver that is not ready."},
	{name: "RNR NAKS", fields: "rnr_naks", right: true, at: 140, doc: "Number of receiver-not-ready (RNR) NAKs."},
	{
		name: "LATE", fields: "path.late.client path.late.server", right: true, wide: true,
		doc: "Number of packets whose first copy came after later packets of the same side: they were lost or overtaken between this side and the capture point, which is then not at this side.",
	},
	{
		name: "CE MARKS/CNPS", fields: "ce_marks cnps", right: true, at: 200,
		doc: "Numbers of packets that a switch marked because of congestion (CE), and of congestion notification packets (CNP).",
	},
	{name: "LIFE", fields: "first=first last=last", right: true, at: 160, doc: "Time from the first to the last packet of the connection."},
	{
		name: "CLOSED", fields: "ended.how ended.by", flex: true, min: 15, usual: 16, signs: closedSigns,
		doc: "The side that ended the connection, and how: closed (a DREQ, or a FIN from both sides), reset (an RST), NAK (one that ends the connection), terminate (a Terminate), rejected, retries (it gave up after retransmissions), reused (its queue pair was used anew), silent (it never answered until the end of the capture); open if the capture does not show an end.",
	},
}

// These explain columns of several tables.
const (
	repeatedFoot = "retransmitted packets"
	tripsFoot    = "median round trip from the capture point, with delayed ACKs"
)

// closedSigns explain those words for ends of connections that do not explain themselves.
var closedSigns = []sign{
	{"NAK", "NAK = ended by a NAK"},
	{"retries", "retries = gave up after retransmissions"},
	{"reused", "reused = its queue pair was used anew"},
	{"silent", "silent = the capture has no answer"},
}

// otherColumns are those of connections that carry no RPCs: those about RPCs are for special questions.
var otherColumns = func() []column {
	list := slices.Clone(connectionColumns)
	for i := range list {
		switch c := &list[i]; c.name {
		case "RPCS", "ATTEMPTS", "CREDITS USED":
			c.wide = true
		case "PROTOCOL", "PACKETS":
			c.at = 80
		}
	}
	return list
}()

// Connection writes a row of the table of connections.
func (t *Text) Connection(r *record.Connection) error { return t.Connections([]*record.Connection{r}) }

// Connections writes a row for connections that are alike, with their sums and, of round trips and lives, the medians.
func (t *Text) Connections(list []*record.Connection) error {
	var sum record.Connection
	var trips [2][]int64
	var lives []int64
	for _, r := range list {
		sum.RPCs, sum.Transactions, sum.Packets, sum.Retransmitted = sum.RPCs+r.RPCs, sum.Transactions+r.Transactions, sum.Packets+r.Packets, sum.Retransmitted+r.Retransmitted
		sum.OutOfOrder, sum.NotCaptured, sum.Naks, sum.RNRNaks = sum.OutOfOrder+r.OutOfOrder, sum.NotCaptured+r.NotCaptured, sum.Naks+r.Naks, sum.RNRNaks+r.RNRNaks
		sum.CongestionMarks, sum.CNPs = sum.CongestionMarks+r.CongestionMarks, sum.CNPs+r.CNPs
		sum.Path.Late.FromClient += r.Path.Late.FromClient + r.Path.Late.FromServer
		lives = append(lives, r.Last.Sub(r.First))
		for i, way := range []record.Opt[record.RoundTrips]{r.Path.RoundTrips.ToServer, r.Path.RoundTrips.ToClient} {
			if trip, known := way.Get(); known && trip.Count >= query.LeastTrips {
				trips[i] = append(trips[i], trip.P50NS)
			}
		}
	}
	r := list[0]
	conn := strconv.Itoa(r.ID)
	if len(list) > 1 {
		conn = strconv.Itoa(len(list)) + "x"
	}
	middle := func(values []int64) cell {
		if len(values) == 0 {
			return cell{}
		}
		slices.Sort(values)
		return cell{text: field.Brief(values[(len(values)-1)/2])}
	}
	congestion := t.theme.number(0)
	if text := query.Congestion(&sum); text != "" {
		congestion = cell{text: text, ink: t.theme.warn}
	}
	closed := cell{text: r.EndWords(), ink: t.theme.dim}
	if how := r.State(); how != "open" && how != string(record.EndDisconnect) {
		closed.ink = t.theme.bad
	}
	t.cells = append(t.cells[:0],
		cell{text: conn},
		cell{text: r.Transport},
		cell{text: r.Client.Address.Or("?"), tail: true},
		cell{text: endpoint(r.Server), tail: true},
		cell{text: query.QPNs(r)},
		cell{text: r.UpperLayer, ink: t.theme.key},
		t.theme.number(sum.RPCs),
		t.theme.number(sum.Transactions),
		cell{text: known(r.PathMTU, "", strconv.Itoa)},
		cell{text: query.InlineThresholds(r)},
		cell{text: query.InvalidationAnnounced(r)},
		cell{text: query.InFlight(r)},
		middle(trips[0]), middle(trips[1]),
		t.theme.number(sum.Packets),
		t.theme.number(sum.Retransmitted).in(t.theme.warn),
		t.theme.number(sum.OutOfOrder).in(t.theme.warn),
		t.theme.number(sum.NotCaptured).in(t.theme.dim),
		t.theme.number(sum.Naks),
		t.theme.number(sum.RNRNaks),
		t.theme.number(sum.Path.Late.FromClient),
		congestion,
		middle(lives),
		closed,
	)
	if t.withoutRPCs {
		return t.row(otherColumns)
	}
	return t.row(connectionColumns)
}

// AlikeKey is what connections have in common that are one row: all that a row tells of them beside sums.
func AlikeKey(r *record.Connection) string {
	end, _ := r.Ended.Get()
	return fmt.Sprintln(r.Transport, r.Client.Address.Or("?"), endpoint(r.Server), r.UpperLayer, r.EndWords(), query.InFlight(r), end.OutstandingCalls > 0, r.RPCs > 0, r.Transactions > 0,
		r.Retransmitted > 0, r.NotCaptured > 0, r.Naks > 0, r.RNRNaks > 0, r.CongestionMarks+r.CNPs > 0)
}

// endpoint returns the address and port of an end of a connection.
func endpoint(e record.Endpoint) string {
	s := e.Address.Or("?")
	port, known := e.Port.Get()
	if !known {
		return s
	}
	if _, err := netip.ParseAddr(s); err == nil && strings.Contains(s, ":") {
		s = "[" + s + "]"
	}
	return s + ":" + strconv.Itoa(int(port))
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

func number(v uint32) string { return strconv.FormatUint(uint64(v), 10) }

// Selected sets the beginning of the summary, which says how many records are shown; it may be empty.
func (t *Text) Selected(words string) { t.selected = words }

// Summary writes one line: what was read, at how many capture points if there are several, what differs from a whole capture in which
// nothing is wrong, and hints. It writes nothing if nothing does, there is no hint, and the line is only wanted then.
func (t *Text) Summary(r *record.Summary, onlyWrong bool, points int, hints ...string) error {
	total := int64(0)
	for _, n := range r.Transactions {
		total += n
	}
	scope := field.Count(r.Requests) + " " + record.Noun(r.Requests, "RPC")
	scope += inAttempts(r.Requests, total)
	if total == 0 {
		scope = field.Count(r.Packets) + " " + record.Noun(r.Packets, "packet")
		if r.RDMA > 0 {
			scope += ", " + field.Count(r.RDMA) + " of RDMA"
		}
		if r.RDMA > 0 && r.RPC == 0 {
			scope += ", no RPC"
		}
	}
	if n := r.Unanswered; n > 0 {
		scope += ", " + field.Count(n) + " without Reply"
	}
	whole := ""
	if t.selected != "" {
		scope, whole = t.selected, " in the whole capture"
	}
	if points > 1 {
		scope += fmt.Sprintf("; %d capture points", points)
	}
	counts := func(list ...count) (parts []string) {
		for _, x := range list {
			if x.n > 0 {
				parts = append(parts, field.Count(x.n)+" "+x.words)
			}
		}
		return parts
	}
	errors, warnings := r.Findings[record.Error], r.Findings[record.Warning]
	parts := []string{scope}
	if found := counts(count{errors, record.Noun(errors, "error")}, count{warnings, record.Noun(warnings, "warning")}); found != nil {
		parts = append(parts, "findings"+whole+": "+strings.Join(found, ", ")+" (rdmadump check)")
	}
	skipped := counts(count{r.Fragments, record.Noun(r.Fragments, "fragment")}, count{r.Malformed, "malformed"}, count{r.UnknownLink, "of unknown link types"})
	if skipped != nil {
		parts = append(parts, "skipped: "+strings.Join(skipped, ", "))
	}
	parts = append(parts, counts(count{r.NotCaptured, record.Noun(r.NotCaptured, "packet") + " missing"}, count{int64(r.CaptureDrops), "dropped by the capture tool"},
		count{r.Truncated, "truncated"}, count{r.ICRCBad, record.Noun(r.ICRCBad, "packet") + " with a bad ICRC in all"})...)
	if n := len(r.LeftOut); n > 0 {
		parts = append(parts, "left out: "+Clean(strings.Join(r.LeftOut[:min(n, few)], ", ")))
		if n > few {
			parts[len(parts)-1] += fmt.Sprintf(" and %d more", n-few)
		}
	}
	for _, state := range slices.Sorted(maps.Keys(r.Evicted)) {
		parts = append(parts, "memory limit reached: "+state)
	}
	parts = append(parts, hints...)
	if onlyWrong && len(parts) == 1 && r.Transactions[record.NoReply] == 0 {
		return nil
	}
	line := textLine{parts: []part{{strings.Join(parts, "; "), t.theme.dim}}}
	var b strings.Builder
	line.write(&b, t.theme, cmp.Or(t.width, math.MaxInt32), Captures{})
	_, err := io.WriteString(t.w, b.String())
	return err
}

// count is a number of things, and the words after it.
type count struct {
	n     int64
	words string
}

// Finding writes the severity, rule and place of a finding and, on the next lines, its message.
func (t *Text) Finding(r *record.Finding) error {
	var where []string
	if at, known := r.Time.Get(); known {
		where = append(where, t.at(at))
	}
	if packet, known := r.Packet.Get(); known {
		where = append(where, "packet "+numbered(packet, r.Point))
	}
	if connection, known := r.Connection.Get(); known {
		where = append(where, fmt.Sprintf("connection %d", connection))
	}
	if xid, known := r.XID.Get(); known {
		where = append(where, fmt.Sprintf("XID %v", xid))
	}
	if side, known := r.AtFault.Get(); known {
		where = append(where, "at fault: "+string(side))
	}
	shade := t.theme.severity(r.Severity)
	var b strings.Builder
	b.WriteString(shade.of(fmt.Sprintf("%-7s", r.Severity)) + " " + t.theme.key.of(r.Rule))
	place := strings.Join(where, ", ")
	if t.width >= narrowest && len("warning ")+len(r.Rule)+2+wide(place) > t.width {
		place = "\n        " + strings.Join(packed(where, t.width-8), "\n        ")
	} else {
		place = "  " + place
	}
	b.WriteString(place + "\n")
	for _, line := range wrapped(fmt.Sprintf("%s (%s)", clean(r.Message), r.Section), t.width-8) {
		fmt.Fprintf(&b, "        %s\n", line)
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}

// packed returns items, with commas between them, in lines of at most width characters that end after an item.
func packed(items []string, width int) (lines []string) {
	for i, item := range items {
		if i < len(items)-1 {
			item += ","
		}
		if last := len(lines) - 1; last >= 0 && wide(lines[last])+1+wide(item) <= width {
			lines[last] += " " + item
		} else {
			lines = append(lines, item)
		}
	}
	return lines
}

// wrapped returns text in lines of at most width characters. If the width is unknown, or
// too small to read, it returns one line.
func wrapped(text string, width int) (lines []string) {
	if width < narrowest {
		return []string{text}
	}
	return Wrap(text, width)
}

// IsLive reports whether Live was called.
func (t *Text) IsLive() bool { return t.live }
