package trace

import (
	"cmp"
	"fmt"
	stdslices "slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// What a trace shows of each record.

// track is one of the tracks of a connection.
type track uint8

// The tracks, in the order in which a viewer shows them.
const (
	granted track = iota
	inFlight
	calls
	callbacks
	stalls
	reads
	writes
	handles
	exposedHandles
	exposedBytes
	moved
	transport
	findings
	delay
	lost
)

// trackKind is what a track shows.
type trackKind uint8

const (
	slices   trackKind = iota // spans of time, in rows
	instants                  // points in time
	level                     // a counter: the sum of changes
	gauge                     // a counter: the latest value
	rate                      // a counter: amounts per second
)

// tracks describes each track. Detail is set if a large trace leaves it out.
var tracks = [...]struct {
	name   string
	kind   trackKind
	unit   string // of a counter
	detail bool
}{
	granted:        {"credits granted", gauge, "credits", false},
	inFlight:       {"Calls in flight", level, "credits", false},
	calls:          {"RPC forward", slices, "", false},
	callbacks:      {"RPC backward", slices, "", false},
	stalls:         {"stalls", slices, "", false},
	reads:          {"RDMA Read", slices, "", true},
	writes:         {"RDMA Write", slices, "", true},
	handles:        {"exposed memory", slices, "", true},
	exposedHandles: {"handles exposed", level, "count", true},
	exposedBytes:   {"bytes exposed", level, "bytes", true},
	moved:          {"RDMA bytes per second", rate, "bytes", false},
	transport:      {"transport", instants, "", false},
	findings:       {"findings", instants, "", false},
	delay:          {"longest one-way delay", gauge, "ns", false},
	lost:           {"packets lost", gauge, "count", false},
}

// item is a slice or an instant.
type item struct {
	track      track
	connection int // -1 for none
	start, end record.Time
	name       string
	category   string
	id         int64 // of the transaction, 0 for none
	args       []arg
	parts      []part   // of a slice, one after the other from its start to its end
	flows      []uint64 // that begin or pass here; those of the last part end there
}

// arg is an argument of an item.
type arg struct {
	key  string
	text string // if it is not empty
	n    int64
}

// part is a part of a slice: it begins where the part before it ends.
type part struct {
	name string
	end  record.Time
}

// maxFlows is the maximum number of handles of an RPC that have a flow.
const maxFlows = 16

// adder adds items and counter values.
type adder interface {
	add(*item)
	change(connection int, t track, at record.Time, by int64)
}

// ending returns the time of the end of a transaction, which is not before its start.
func ending(r *record.Transaction) record.Time { return max(r.End(), r.Start()) }

// rpcName returns the name of a transaction: its operation, or its program and procedure.
func rpcName(r *record.Transaction) string {
	switch {
	case r.Operation.Known():
		return r.Operation.Or("")
	case r.Program.Known():
		return r.ProgramProcedure()
	}
	return "RPC"
}

// category returns the category of a transaction: its status, or "failed" if its Reply has an error
// status.
func category(r *record.Transaction) string {
	if r.Status.Replied() && r.Failed() {
		return "failed"
	}
	return string(r.Status)
}

// add adds the items of a transaction.
func add(to adder, r *record.Transaction) {
	s := item{track: calls, connection: r.Connection, start: r.Start(), end: ending(r), name: rpcName(r), category: category(r), id: r.ID, args: rpcArgs(r)}
	if r.Direction == record.Backward {
		s.track = callbacks
	}
	if r.Call != nil && (r.Reply == nil || r.ReplyLost) {
		s.end = stillOpen
	}
	s.parts = parts(r)
	flows := flowsOf(r)
	for i := range flows {
		s.flows = append(s.flows, flowID(r, i))
	}
	to.add(&s)
	if r.Direction == record.Forward && r.Call != nil {
		to.change(r.Connection, inFlight, s.start, 1)
		to.change(r.Connection, inFlight, s.end, -1)
		if r.Reply != nil && r.Reply.Credits.Or(0) > 0 {
			to.change(r.Connection, granted, ending(r), int64(r.Reply.Credits.Or(0)))
		}
	}
	addOperations(to, r, flows)
	addHandles(to, r, s.end)
	addStalls(to, r)
	addTransport(to, r)
}

// flowsOf returns the handles of a transaction that have a flow, in the order of their first
// operations.
func flowsOf(r *record.Transaction) (list []record.Hex32) {
	for i := range r.Timeline {
		e := &r.Timeline[i]
		handle, known := e.Handle.Get()
		if known && (e.Event == record.EventRead || e.Event == record.EventWriteFirst) && len(list) < maxFlows && !stdslices.Contains(list, handle) {
			list = append(list, handle)
		}
	}
	return list
}

// flowID returns the id of the flow of a handle.
func flowID(r *record.Transaction, handle int) uint64 {
	return uint64(r.ID)*maxFlows + uint64(handle) + 1
}

// rpcArgs returns the arguments of the slice of a transaction.
func rpcArgs(r *record.Transaction) (args []arg) {
	text := func(key, value string) {
		if value != "" {
			args = append(args, arg{key: key, text: value})
		}
	}
	number := func(key string, value int64) { args = append(args, arg{key: key, n: value}) }
	text("xid", fmt.Sprint(r.XID))
	number("id", r.ID)
	text("client", r.Client.Or(""))
	text("server", r.Server.Or(""))
	if uid, known := r.UID.Get(); known {
		number("uid", int64(uid))
	}
	text("machine", r.Machine.Or(""))
	text("principal", r.Principal.Or(""))
	text("file", r.FileText())
	text("file_from", r.FileFrom.Or(""))
	text("operations", strings.Join(r.Operations, " "))
	text("rpc_status", r.RPCStatus.Or(""))
	text("nfs_status", r.NFSStatus.Or(""))
	text("rdma_error", r.RDMAError.Or(""))
	for _, m := range []struct {
		name string
		*record.Message
	}{{"call", r.Call}, {"reply", r.Reply}} {
		if m.Message == nil {
			continue
		}
		number(m.name+"_packet", m.Packet)
		text(m.name+"_point", record.PointName(m.Point))
		text(m.name+"_form", string(m.Form))
		if n, known := m.Credits.Get(); known {
			number(m.name+"_credits", int64(n))
		}
		if n, known := m.SendBytes.Get(); known {
			number(m.name+"_send_bytes", int64(n))
		}
		if n, known := m.PayloadBytes.Get(); known {
			number(m.name+"_payload_bytes", n)
		}
	}
	if ns, known := r.LatencyNS.Get(); known {
		number("latency_ns", ns)
		if r.Call != nil && r.Sent() < r.Start() { // on an earlier connection, which has a slice of its own
			number("first_sent_before_ns", int64(r.Start()-r.Sent()))
		}
	}
	if v, known := r.Split.Get(); known {
		number("client_ns", v.ClientNS)
		number("request_network_ns", v.RequestNetworkNS)
		number("server_ns", v.ServerNS)
		number("server_send_ns", v.ServerSendNS)
		number("reply_network_ns", v.ReplyNetworkNS)
	}
	if r.Retransmitted > 0 {
		number("retransmitted", int64(r.Retransmitted))
	}
	text("findings", strings.Join(r.Findings, " "))
	return args
}

// parts divides a transaction with a latency as the field phases does, but with the stalls.
func parts(r *record.Transaction) (list []part) {
	if !r.LatencyNS.Known() || r.Call == nil || r.Reply == nil {
		return nil
	}
	at := r.Call.Time
	for i, end := range record.PhaseEnds(r.Timeline, ending(r)) {
		if to, known := end.Get(); known && to > at {
			list = append(list, part{partNames[i], to})
			at = to
		}
	}
	return list
}

// partNames are the names of the parts of a slice, by the phases in which they are.
var partNames = [...]string{
	record.PhaseToRead: "to read", record.PhaseReads: "read", record.PhaseToWrite: "to write", record.PhaseWrites: "write", record.PhaseToReply: "to reply",
}

// addOperations adds the RDMA Reads and Writes of a transaction.
func addOperations(to adder, r *record.Transaction, flows []record.Hex32) {
	for _, o := range r.Transfers() {
		t := reads
		if o.IsWrite() {
			t = writes
		}
		to.add(operationItem(r, t, flows, o))
		if o.Last != nil {
			to.change(r.Connection, moved, o.Last.Time, o.Last.Bytes.Or(0))
		}
	}
}

// operationItem returns the item of an RDMA operation, from its first event to its last.
func operationItem(r *record.Transaction, t track, flows []record.Hex32, o record.Transfer) *item {
	first, last, category := o.First, o.Last, "rdma"
	if first == nil {
		first = last
	}
	if last == nil {
		last, category = first, "incomplete"
	}
	s := &item{track: t, connection: r.Connection, start: first.Time, end: max(first.Time, last.Time), name: tracks[t].name, category: category, id: r.ID}
	s.args = []arg{
		{key: "xid", text: fmt.Sprint(r.XID)},
		{key: "handle", text: fmt.Sprint(last.Handle.Or(0))},
		{key: "offset", text: fmt.Sprint(last.Offset.Or(0))},
		{key: "bytes", n: last.Bytes.Or(0)},
		{key: "packet", n: first.Packet},
	}
	if point := record.PointName(first.Point); point != "" {
		s.args = append(s.args, arg{key: "point", text: point})
	}
	if n, known := last.Packets.Get(); known {
		s.args = append(s.args, arg{key: "packets", n: n})
	}
	if i := stdslices.Index(flows, last.Handle.Or(0)); i >= 0 {
		s.flows = []uint64{flowID(r, i)}
	}
	return s
}

// addHandles adds the memory that a transaction exposed, until end.
func addHandles(to adder, r *record.Transaction, end record.Time) {
	if r.Call == nil {
		return
	}
	invalidated, known := r.Invalidation.Get()
	for _, x := range r.Exposures(end) {
		by := "requester"
		switch {
		case known && invalidated.Handle == x.Handle:
			by = "Send With Invalidate"
		case end == stillOpen:
			by = "end of the connection"
		}
		to.add(&item{
			track: handles, connection: r.Connection, start: x.From, end: end, name: fmt.Sprint(x.Handle), category: string(x.Chunk), id: r.ID,
			args: []arg{{key: "xid", text: fmt.Sprint(r.XID)}, {key: "bytes", n: x.Bytes}, {key: "ended_by", text: by}},
		})
		to.change(r.Connection, exposedHandles, x.From, 1)
		to.change(r.Connection, exposedHandles, end, -1)
		to.change(r.Connection, exposedBytes, x.From, x.Bytes)
		to.change(r.Connection, exposedBytes, end, -x.Bytes)
	}
}

// addStalls adds the times in which a transaction made no progress.
func addStalls(to adder, r *record.Transaction) {
	for i := range r.Waits {
		v := &r.Waits[i]
		s := &item{track: stalls, connection: r.Connection, start: v.From, end: max(v.From, v.To), name: string(v.Reason), category: "stall", id: r.ID}
		s.args = []arg{{key: "xid", text: fmt.Sprint(r.XID)}, {key: "waiting", text: string(v.Waiting)}}
		if len(v.Packets) > 0 {
			s.args = append(s.args, arg{key: "packet", n: v.Packets[0]})
		}
		to.add(s)
	}
}

// transportEvents are the events of a timeline that are shown as instants.
var transportEvents = []record.EventKind{record.EventRetransmit, record.EventNak, record.EventOutOfOrder, record.EventDamaged}

// addTransport adds the events of the transport that concern a transaction.
func addTransport(to adder, r *record.Transaction) {
	for i := range r.Timeline {
		e := &r.Timeline[i]
		if !stdslices.Contains(transportEvents, e.Event) {
			continue
		}
		s := &item{track: transport, connection: r.Connection, start: e.Time, end: e.Time, name: string(e.Event), category: "transport", id: r.ID}
		s.args = []arg{{key: "xid", text: fmt.Sprint(r.XID)}, {key: "packet", n: e.Packet}}
		for _, a := range []arg{{key: "point", text: record.PointName(e.Point)}, {key: "of", text: string(e.Of)}, {key: "reason", text: e.Reason}} {
			if a.text != "" {
				s.args = append(s.args, a)
			}
		}
		to.add(s)
	}
}

// addFinding adds a finding. One without a time is not shown.
func addFinding(to adder, r *record.Finding) {
	at, known := r.Time.Get()
	if !known {
		return
	}
	s := &item{track: findings, connection: r.Connection.Or(-1), start: at, end: at, name: r.Rule, category: string(r.Severity)}
	s.args = []arg{{key: "message", text: r.Message}, {key: "section", text: r.Section}}
	if side, known := r.AtFault.Get(); known {
		s.args = append(s.args, arg{key: "at_fault", text: string(side)})
	}
	if xid, known := r.XID.Get(); known {
		s.args = append(s.args, arg{key: "xid", text: fmt.Sprint(xid)})
	}
	if packet, known := r.Packet.Get(); known {
		s.args = append(s.args, arg{key: "packet", n: packet})
	}
	to.add(s)
}

// addNetwork adds the course of the delays and losses between two capture points, as counters of a process of their own.
func addNetwork(to adder, number int, r *record.Network) {
	for i := range r.Course {
		s := &r.Course[i]
		to.change(number, delay, s.Start, s.MaxNS.Or(0))
		to.change(number, lost, s.Start, s.Lost)
	}
	if n := len(r.Course); n > 1 {
		end := r.Course[n-1].Start + r.Course[n-1].Start - r.Course[n-2].Start
		to.change(number, delay, end, 0)
		to.change(number, lost, end, 0)
	}
}

// connectionName returns the name of a connection's process.
func connectionName(r *record.Connection) string {
	end := func(e record.Endpoint) string {
		s := e.Address.Or("?")
		if port, known := e.Port.Get(); known {
			s += fmt.Sprintf(":%d", port)
		}
		return s
	}
	return fmt.Sprintf("conn %d %s > %s %s", r.ID, end(r.Client), end(r.Server), r.Transport)
}

// connectionDescription returns what a connection negotiated.
func connectionDescription(r *record.Connection) string {
	ended := "ended: " + cmp.Or(r.State(), "open")
	limits, known := r.InlineThreshold.Get()
	if !known {
		return "upper layer " + r.UpperLayer + "; " + ended
	}
	s := fmt.Sprintf("inline threshold %d bytes to the server, %d to the client (%s)", limits.ClientToServer, limits.ServerToClient, limits.Source)
	if n, known := r.Credits.Or(record.CreditPair{}).Forward.Granted.Get(); known {
		s += fmt.Sprintf("; %d credits granted", n)
	}
	return s + "; " + ended
}
