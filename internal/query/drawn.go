package query

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Expressions can use what tables show: a heading is a name of a field, and if a table shows
// something else than the value in the record, an expression can be compared with that, too.

// drawnField is a field that a table shows. If get is set, it is a field of its own;
// otherwise it adds names, or the values that tables show, to an existing field.
type drawnField struct {
	Field
	get func(record any) any
}

// synonyms maps the values that tables show for enumerations to those in the record.
var synonyms = map[string]string{"direction=fwd": "forward", "direction=back": "backward"}

// shown returns a drawnField with the value that a table shows for a field, and other names
// of the field.
func shown[T any](path string, show func(T) any, aliases ...string) drawnField {
	f := drawnField{Field: Field{Path: path, Aliases: aliases}}
	if show != nil {
		f.shown = func(r any) any { return show(r.(T)) }
	}
	return f
}

// added returns a drawnField that is a field of its own.
func added[T any](path, kind, doc string, get func(T) any, aliases ...string) drawnField {
	return drawnField{Field{Path: path, Type: kind, Doc: doc, Aliases: aliases}, func(r any) any { return get(r.(T)) }}
}

var ofTransactions = []drawnField{
	added("time", "time", "Time of the Call, or of the Reply if the capture does not contain the Call.", func(r *record.Transaction) any { return timeValue(r.Start()) }),
	added("end_time", "time", "Time of the end of the Reply, or of the Call if the capture does not contain the Reply; stats --every counts the RPC in the interval of this time.", func(r *record.Transaction) any { return timeValue(r.End()) }),
	added("directory", "text", "Folder of the file that the RPC acts on.", func(r *record.Transaction) any { return r.Folder().Any() }),
	{Field{Path: "size_class", Type: "text", Values: record.SizeClasses(), Doc: "Class of a READ or WRITE that succeeded, by the bytes that it moved."}, func(r any) any { return r.(*record.Transaction).SizeClass().Any() }},
	added("ip.src", "address", "Address that the Call came from.", func(r *record.Transaction) any { from, _ := ends(r); return from.Any() }),
	added("ip.dst", "address", "Address that the Call went to.", func(r *record.Transaction) any { _, to := ends(r); return to.Any() }),
	{Field{Path: "ip.addr", Type: "address", List: true, Doc: "Addresses of both ends."}, func(r any) any {
		t := r.(*record.Transaction)
		return []any{t.Client.Any(), t.Server.Any()}
	}},
	added("rdma_read_bytes", "number", "Number of bytes that RDMA Read moved out of the requester's memory.", func(r *record.Transaction) any { read, _ := Moved(r); return int(read) }, "rdma-read"),
	added("rdma_write_bytes", "number", "Number of bytes that RDMA Write moved into the requester's memory.", func(r *record.Transaction) any { _, written := Moved(r); return int(written) }, "rdma-write"),
	{Field{
		Path: "dscp", Type: "number", List: true, Aliases: []string{"ip.dsfield.dscp"}, Doc: "Differentiated services code points of the Call and of the Reply (call.dscp, reply.dscp). Groups of --by are named by the one number that both have, or by the one that is known; by both, such as 26>0, if they differ; and by - on RoCEv1 and InfiniBand, which have none.",
		raw: func(r any) any { return groupOfDSCP(r.(*record.Transaction)).Any() },
	}, func(r any) any {
		var list []any
		for _, v := range dscps(r.(*record.Transaction)) {
			list = append(list, v)
		}
		if list == nil {
			return nil
		}
		return list
	}},
	added("form", "text", "Forms of the Call and of the Reply, such as short/long, or TCP or UDP for a transaction without RDMA.", func(r *record.Transaction) any { return Forms(r) }),
	{Field: Field{Path: "cause", raw: func(r any) any {
		cause, known := r.(*record.Transaction).Cause.Get()
		return record.SomeIf(cause.Text, known).Any()
	}, shown: func(r any) any {
		cause, known := r.(*record.Transaction).Cause.Get()
		if !known {
			return nil
		}
		return []any{cause.ID, cause.Text}
	}}},
	shown[*record.Transaction]("id", nil, "rpc-id"),
	shown("status", func(r *record.Transaction) any { return Outcome(r) }).among(outcomes),
	shown[*record.Transaction]("nfs_status", nil).among(nfsStatuses),
	shown("program", func(r *record.Transaction) any { return r.ProgramName.Any() }).among(nfs.ProgramWords),
	shown[*record.Transaction]("program_name", nil).among(nfs.ProgramWords),
	shown[*record.Transaction]("procedure_name", nil).among(nfs.ProcedureWords),
	shown("operation", func(r *record.Transaction) any { return []any{r.Operation.Or(""), Deed(r)} }).among(nfs.PrincipalWords),
	shown[*record.Transaction]("operations", nil).among(nfs.OperationWords),
	shown("procedure", func(r *record.Transaction) any {
		names := []any{Procedure(r), Deed(r)}
		if r.Program.Known() {
			names = append(names, r.ProgramProcedure(), r.ProcedureName.Or(""), r.ProgramVersion()+" "+strings.Join(r.Operations, " "))
		}
		for _, op := range r.Operations {
			names = append(names, op)
		}
		return names
	}),
	added("repeats", "text", "What the RPC repeats, as the column REPEATS shows it: 2nd of #33 for the second attempt of the request that began with transaction 33, 5th try for the fifth RPC that asks for the same after the server had put it off; null if it repeats nothing.", func(r *record.Transaction) any {
		text := Repeats(r)
		return record.SomeIf(text, text != "").Any()
	}),
	shown("call", func(r *record.Transaction) any { return payloadOf(r.Call) }, "call-bytes"),
	shown("reply", func(r *record.Transaction) any { return payloadOf(r.Reply) }, "reply-bytes"),
	shown[*record.Transaction]("reply.credits", nil, "granted"),
	shown("call.credits", func(r *record.Transaction) any { return Credits(r) }, "credits", "credits-requested/granted"),
	shown[*record.Transaction]("invalidation.handle", nil, "invalidated"),
	added("not_invalidated_count", "number", "Number of handles that the Reply could have invalidated remotely and did not.", func(r *record.Transaction) any { return len(r.NotInvalidated) }, "not-invalidated"),
}

var ofConnections = []drawnField{
	{Field{Path: "ip.addr", Type: "address", List: true, Doc: "Addresses of both ends."}, func(r any) any {
		c := r.(*record.Connection)
		return []any{c.Client.Address.Any(), c.Server.Address.Any()}
	}},
	{Field{Path: "qpn", Type: "hex", List: true, Doc: "Queue pair numbers of both ends.", shown: func(r any) any { return QPNs(r.(*record.Connection)) }}, func(r any) any {
		c := r.(*record.Connection)
		var list []any
		for _, e := range []record.Endpoint{c.Client, c.Server} {
			if q, known := e.QPN.Get(); known {
				list = append(list, int(q))
			}
		}
		return list
	}},
	shown("client", func(r *record.Connection) any { return endpointOf(r.Client) }),
	shown("server", func(r *record.Connection) any { return endpointOf(r.Server) }),
	shown("closed", func(r *record.Connection) any { return []any{r.State(), r.EndWords()} }),
	shown[*record.Connection]("requests", nil, "rpcs"),
	shown[*record.Connection]("upper_layer", nil, "upper", "protocol"),
	shown[*record.Connection]("retransmitted", nil, "repeated", "retr"),
	shown[*record.Connection]("out_of_order", nil, "ooo", "out-of-order"),
	shown[*record.Connection]("naks", nil, "nak"),
	shown[*record.Connection]("path.congestion.dscp", nil, "dscp", "ip.dsfield.dscp"),
	shown[*record.Connection]("rnr_naks", nil, "rnr", "rnr-naks"),
	shown("remote_invalidation", func(r *record.Connection) any { return InvalidationAnnounced(r) }, "remote-inv", "invalidation-announced-by"),
	shown("credits.forward.peak_in_flight", func(r *record.Connection) any { return InFlight(r) }, "credits-used"),
	shown("inline_threshold.client_to_server", func(r *record.Connection) any { return InlineThresholds(r) }, "inline", "inline-to-server/to-client"),
	shown("ce_marks", func(r *record.Connection) any { return Congestion(r) }, "ce-marks/cnps"),
	shown("path.late", func(r *record.Connection) any { return int(r.Path.Late.FromClient + r.Path.Late.FromServer) }, "late"),
	added("life", "duration", "Time from the first packet of the connection to its last one, in nanoseconds.", func(r *record.Connection) any { return int(r.Last.Sub(r.First)) }),
	shown("path.round_trips.to_server.p50_ns", func(r *record.Connection) any { return trip(r.Path.RoundTrips.ToServer) }, "rtt-server"),
	shown("path.round_trips.to_client.p50_ns", func(r *record.Connection) any { return trip(r.Path.RoundTrips.ToClient) }, "rtt-client"),
	shown[*record.Connection]("path_mtu", nil, "mtu"),
	shown[*record.Connection]("not_captured", nil, "missed", "not-captured"),
}

// among returns the drawnField with all values that a table may show for it.
func (d drawnField) among(values func() []string) drawnField {
	d.outcomes = values
	return d
}

// outcomes returns all values of Outcome, except for numbers of unknown codes.
var outcomes = sync.OnceValue(func() []string {
	words := append([]string{"ok", malformed, "ERR_VERS", "ERR_CHUNK"}, record.Status("").Values()...)
	const accepted, rejected, mismatch, auth = 0, 1, 0, 1 // reply and reject states of RFC 5531
	for state := range uint32(16) {
		for _, h := range []oncrpc.Header{
			{ReplyState: accepted, AcceptState: state},
			{ReplyState: rejected, RejectState: mismatch},
			{ReplyState: rejected, RejectState: auth, AuthState: state},
		} {
			if name := h.Status(); !endsInDigit(name) && !slices.Contains(words, name) {
				words = append(words, name)
			}
		}
	}
	return append(words, nfsStatuses()...)
})

// nfsStatuses returns the names of the statuses of NFS, NFSACL and MOUNT.
func nfsStatuses() (words []string) {
	for version := uint32(2); version <= 4; version++ {
		words = append(words, nfs.StatusWords(version)...)
	}
	return append(words, nfs.MountStatusWords()...)
}

// malformed is the outcome of an RPC without an error status whose Call or Reply cannot be decoded.
const malformed = "malformed"

// Outcome returns how a transaction ended, as the column STATUS shows it: the outermost error,
// or "ok" if there was none.
func Outcome(r *record.Transaction) string {
	switch {
	case r.Status == record.RDMAError && r.RDMAError.Known():
		return r.RDMAError.Or("")
	case r.Status != record.Complete:
		return string(r.Status)
	case r.RPCFailed():
		return r.RPCStatus.Or("")
	case r.NFSFailed():
		return r.NFSStatus.Or("")
	case r.Malformed.Known():
		return malformed
	}
	return "ok"
}

// Procedure returns the program, version and procedure of a transaction. A COMPOUND is the operation that it was sent for, and in
// parentheses all of its operations if there are others.
func Procedure(r *record.Transaction) string {
	text := Deed(r)
	if len(r.Operations) > 1 {
		text += " (" + strings.Join(r.Operations, " ") + ")"
	}
	return text
}

// Deed returns the program, version and procedure of a transaction, or the operation that a COMPOUND was sent for. It tells an RPC that sets
// up or destroys an RPCSEC_GSS context, and one whose arguments are encrypted.
func Deed(r *record.Transaction) string {
	gss, secured := r.GSS.Get()
	text := record.NotDecoded
	switch operation, compound := r.Operation.Get(); {
	case compound && len(r.Operations) > 0:
		text = operation
	case len(r.Operations) > 0:
		text = r.Operations[0]
	case r.Program.Known():
		text = strings.TrimPrefix(r.ProgramProcedure(), r.ProgramVersion()+" ")
	}
	if r.Program.Known() {
		text = r.ProgramVersion() + " " + text
	}
	switch {
	case !secured:
	case gss.Procedure == "init" || gss.Procedure == "continue_init":
		text += " (GSS init)"
	case gss.Procedure == "destroy":
		text += " (GSS destroy)"
	case gss.Service.Or("") == "privacy" && len(r.Operations) == 0:
		text += " (krb5p)"
	}
	return text
}

// Repeats returns which attempt of a request, or which try, a transaction is: "2nd of #33", "5th try after 1.2 s". It returns nothing for one that
// repeats nothing.
func Repeats(r *record.Transaction) string {
	var parts []string
	if r.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("%s of #%d", record.Ordinal(r.Attempt), r.Request))
	}
	if of, known := r.RetryOf.Get(); known && r.Try > 1 && r.Call != nil {
		parts = append(parts, fmt.Sprintf("%s try after %s", record.Ordinal(r.Try), field.Brief(int64(r.Call.Time.Sub(r.FirstTry)))))
	} else if known {
		parts = append(parts, fmt.Sprintf("retry of #%d", of))
	}
	return strings.Join(parts, ", ")
}

// Moved returns the number of bytes that RDMA Reads moved out of the requester's memory, and
// the number that RDMA Writes moved into it.
func Moved(r *record.Transaction) (read, written int64) {
	for chunk, s := range r.Segments() {
		if chunk == record.ReadList {
			read += s.MovedBytes
		} else {
			written += s.MovedBytes
		}
	}
	return read, written
}

// Forms returns the forms of the Call and of the Reply, such as "short/long". A question mark stands
// for a Call that was not captured, and a dash for a Reply that is missing. For RPC over TCP and UDP,
// which has no forms, it returns the transport.
func Forms(r *record.Transaction) string {
	if isPlain(r.Transport) {
		return r.Transport
	}
	call, reply := "?", "-"
	if r.Call != nil {
		call = string(r.Call.Form)
	}
	if r.Reply != nil {
		reply = string(r.Reply.Form)
	}
	return call + "/" + reply
}

// dscps returns the differentiated services code points of the Call and of the Reply, as far as they are known.
func dscps(r *record.Transaction) (list []int) {
	for _, m := range [...]*record.Message{r.Call, r.Reply} {
		if m == nil {
			continue
		}
		if v, known := m.DSCP.Get(); known {
			list = append(list, int(v))
		}
	}
	return list
}

// groupOfDSCP returns the name of the group of a transaction by its differentiated services code points.
func groupOfDSCP(r *record.Transaction) record.Opt[string] {
	switch list := slices.Compact(dscps(r)); len(list) {
	case 0:
		return record.Opt[string]{}
	case 1:
		return record.Some(strconv.Itoa(list[0]))
	default:
		return record.Some(fmt.Sprintf("%d>%d", list[0], list[1]))
	}
}

// payloadOf returns the size of a message in bytes, or nil if it is unknown.
func payloadOf(m *record.Message) any {
	if m == nil {
		return nil
	}
	if size, known := m.PayloadBytes.Get(); known {
		return int(size)
	}
	return nil
}

// endpointOf returns the values that an end can be compared with: its address, with and
// without its port.
func endpointOf(e record.Endpoint) any {
	address, known := e.Address.Get()
	if !known {
		return nil
	}
	list := []any{address}
	if port, known := e.Port.Get(); known {
		list = append(list, net.JoinHostPort(address, strconv.Itoa(int(port))))
	}
	return list
}

// Credits returns the number of credits that the Call requested and the Reply granted.
func Credits(r *record.Transaction) string {
	requested, granted := "-", "-"
	if r.Call != nil {
		requested = textOr(r.Call.Credits, "-")
	}
	if r.Reply != nil {
		granted = textOr(r.Reply.Credits, "-")
	}
	return requested + "/" + granted
}

// textOr returns the text of a value, or another one if the value is unknown.
func textOr[T any](v record.Opt[T], otherwise string) string {
	if known, is := v.Get(); is {
		return fmt.Sprint(known)
	}
	return otherwise
}

// InvalidationAnnounced returns the sides of a connection that announced support for remote invalidation.
func InvalidationAnnounced(c *record.Connection) string {
	agreed, known := c.RemoteInvalidation.Get()
	client, server := c.PrivateData.Client, c.PrivateData.Server
	switch {
	case c.UpperLayer != "rpcrdma":
		return ""
	case !known:
		return "?"
	case agreed:
		return "both"
	case client != nil && client.RemoteInvalidation:
		return "client"
	case server != nil && server.RemoteInvalidation:
		return "server"
	}
	return "neither"
}

// Congestion returns the numbers of packets that signal congestion, or nothing if there are none.
func Congestion(r *record.Connection) string {
	if r.CongestionMarks+r.CNPs == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", r.CongestionMarks, r.CNPs)
}

// InlineThresholds returns the inline thresholds of a connection, or nothing if it has none.
func InlineThresholds(r *record.Connection) string {
	t, known := r.InlineThreshold.Get()
	if !known {
		return ""
	}
	return fmt.Sprintf("%d/%d", t.ClientToServer, t.ServerToClient)
}

// InFlight returns the largest number of Calls that were outstanding at once, and the credits that were granted.
func InFlight(r *record.Connection) string {
	credits, isRPC := r.Credits.Get()
	if !isRPC {
		return ""
	}
	peak := textOr(credits.Forward.PeakInFlight, "?")
	if isPlain(r.Transport) {
		return peak
	}
	return peak + " of " + textOr(credits.Forward.Granted, "?")
}

// QPNs returns the numbers of both queue pairs, or nothing for a transport that has none.
func QPNs(r *record.Connection) string {
	if r.Transport == "iWARP" || isPlain(r.Transport) {
		return ""
	}
	return textOr(r.Client.QPN, "?") + ">" + textOr(r.Server.QPN, "?")
}

// LeastTrips is the number of round trips from which on tables show their median.
const LeastTrips = 3

// trip returns the median of round trips, or nothing if they are too few.
func trip(v record.Opt[record.RoundTrips]) string {
	if trips, known := v.Get(); known && trips.Count >= LeastTrips {
		return field.Brief(trips.P50NS)
	}
	return ""
}
