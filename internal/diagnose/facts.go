package diagnose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// The limits of what is remembered.
const (
	maxRPCs        = 1 << 15 // attempts that something happened to
	maxFindings    = 1 << 14
	maxConnections = 1 << 15
	maxStalls      = 1 << 12 // of RDMA operations of other upper layers
)

// slow is the time from which a wait, or a latency, has to be explained by a problem, in nanoseconds.
const slow = int64(100e6)

// facts is what a capture shows, as far as problems need it. Kinds read it and change nothing but claims.
type facts struct {
	rpcs        []*rpc                   // in the order of their Calls; only those that something happened to
	byID        map[int64]*rpc           // the same
	byXID       map[connXID][]*rpc       // the same
	tasks       []*task                  // of rpcs
	outcomes    map[int64]record.Outcome // of tasks that were put off or sent more than once, by their first request
	findings    []*finding               // errors and warnings, and the notes that kinds read
	connections []*connection            // in the order of their numbers
	byNumber    map[int]*connection      // the same
	stalls      []*stall                 // of RDMA operations of other upper layers than RPC-over-RDMA
	hosts       [2]map[string]bool       // clients, servers
	summary     *record.Summary          // never nil
	network     []*record.Network        // with several capture points
	servers     map[string]*serverOf     // by address
	totals      totals
	work        map[string]*hdrhistogram.Histogram // latency of requests for files without stalls, less the transfers, by server
	trips       map[pair]*trips
	promises    map[pair]*promises
	notes       []*note
	answers     map[pair]*answers   // Replies of servers over time
	boots       []boot              // Calls in which NFSv4 clients name themselves
	recalls     []recalled          // delegations and layouts that a server asked for
	leaves      []leave             // Calls that take leave of the server
	calledLast  map[int]record.Time // latest Calls, by connection
	mounts      map[pair]*mount     // what clients got from servers
	first, last record.Time         // of the capture, or of the window

	droppedRPCs, droppedFindings, droppedConnections int64 // beyond the limits
}

// connXID names an RPC by its connection.
type connXID struct {
	connection int
	xid        record.Hex32
}

// totals are sums of all RPCs.
type totals struct {
	requests int64
	others   int64 // of them without RDMA, or of servers
	latency  int64 // sum over all RPCs, in nanoseconds
	files    int64 // answered requests for files
}

// rpc is an attempt: one Call on one connection, and what answered it.
type rpc struct {
	id, request   int64 // request is the id of the first attempt
	retries       int64 // id of the request that it repeats because that was put off; 0 if there is none
	before, again *rpc  // the attempt before and the next one; nil if there is none
	of            *task // nil for callbacks, and Replies without a Call
	connection    int
	xid           record.Hex32
	pair
	operation      string // with the program, if that is not NFS
	file, handle   string
	backward       bool
	mounting       bool        // it belongs to mounting, unmounting or recovery
	sent, end      record.Time // sent is that of the first attempt
	called         record.Time // the Call
	call, reply    record.PacketRef
	delivered      bool  // the capture shows that the Call was delivered
	latency, least int64 // in nanoseconds, -1 if unknown; least is the shortest that the capture allows
	status         record.Status
	failure        string // status of the Reply; empty if it is no error
	code           string // ERR_VERS or ERR_CHUNK of an RDMA_ERROR
	replyLost      bool
	waits          []wait
	rules          []string
	repeated       record.FromPair // senders of packets that were sent again
	packets        int64           // that the data in chunks takes, about
	version        string          // of NFS
	serverMin      int64           // least time that the server took, in nanoseconds
	clientMin      int64
	networkMin     int64
	serverMax      int64
	clientMax      int64
	point          record.Place
	congested      bool
	exposed        bool // the Call exposed memory
	mute           span // the longest time in which it waited without a packet of the server, from muteFor on
	phases         record.Phases

	outcome claim // that it failed, or was not answered
	slowly  claim // that it took long
}

// muteFor is the time from which several RPCs that wait at once, while their server answers none, show an outage, in nanoseconds: shorter stalls of
// machines are common.
const muteFor = int64(5e9)

// answers counts the Replies of a server to a client in each second.
type answers struct {
	from    record.Time
	seconds []uint8 // at most 255 of each
}

// The limits of what is remembered of the answers of servers.
const (
	maxAnswers = 64      // pairs of hosts, and servers
	maxSeconds = 1 << 17 // of each
)

// add counts a packet that shows that the server works.
func (a *answers) add(at record.Time) {
	n := at.Sub(a.from) / 1e9
	if n < 0 || n >= maxSeconds {
		return
	}
	for int64(len(a.seconds)) <= n {
		a.seconds = append(a.seconds, 0)
	}
	if a.seconds[n] < 255 {
		a.seconds[n]++
	}
}

// count returns the number of answers in a time, at least.
func (a *answers) count(in span) (n int64) {
	if a != nil {
		for i := max(in.from.Sub(a.from)/1e9, 0); i <= min(in.to.Sub(a.from)/1e9, int64(len(a.seconds))-1); i++ {
			n += int64(a.seconds[i])
		}
	}
	return n
}

// longestWithout returns the longest part of a time in which there was no answer. An answer in the first or last second is taken for one at its edge.
func (a *answers) longestWithout(in span) (longest span) {
	if a == nil || in.to.Sub(a.from)/1e9 >= maxSeconds {
		return longest
	}
	from := in.from
	for i := in.from.Sub(a.from)/1e9 + 1; i < in.to.Sub(a.from)/1e9; i++ {
		if i < 0 || i >= int64(len(a.seconds)) || a.seconds[i] == 0 {
			continue
		}
		begins := a.from + record.Time(i*1e9)
		if s := (span{from, begins}); s.ns() > longest.ns() {
			longest = s
		}
		from = begins + 1e9
	}
	if s := (span{from, in.to}); s.ns() > longest.ns() {
		longest = s
	}
	return longest
}

// wait is a stall of an RPC.
type wait struct {
	record.Wait // without lists
	packets     [2]record.PacketRef
	ns          int64 // inside the latency
	by          claim
}

// task is what an application waited for: a request, and the requests that repeat it because the server put it off.
type task struct {
	tries    []*rpc // the last attempt of each request, in the order of their Calls
	from, to record.Time
	open     bool // it had not ended when the capture ended
	gaveUp   bool // the client did not repeat it
}

// finding is a finding, without what only its text says.
type finding struct {
	record.Finding
	by claim
}

// note is the notes of a rule about a side.
type note struct {
	first finding
	count int64
}

// connection is a connection.
type connection struct {
	record.Connection
	pair
	by     claim // of its end
	accept bool  // it was accepted
}

// stall is a stall of an RDMA operation of another upper layer.
type stall struct {
	wait
	connection int
	operation  record.OperationKind
	side       record.End
}

// serverOf has what a server sent that a restart could explain.
type serverOf struct {
	verifiers []verifier
	lost      []stateLost
}

// boot is a Call in which an NFSv4 client names itself to a server. It sends another verifier after a restart.
type boot struct {
	pair
	owner      string
	verifier   record.Hex64
	connection int
	at         record.Time
	packet     record.PacketRef
}

// recalled is a CB_RECALL, and what became of it.
type recalled struct {
	pair
	file, handle string
	at           record.Time
	packet       record.PacketRef
	returned     record.Time // 0 if it was not
	back         record.PacketRef
}

// leave is a Call that takes leave of a server.
type leave struct {
	pair
	at record.Time
}

// pair is a client of a server.
type pair struct{ client, server string }

// pairOf returns the hosts of a transaction.
func pairOf(r *record.Transaction) pair { return pair{r.Client.Or(""), r.Server.Or("")} }

// are reports whether these are the two hosts.
func (p pair) are(a, b string) bool {
	return p.client == a && p.server == b || p.client == b && p.server == a
}

// mount is what a client got from a server. The zero value is nothing.
type mount struct {
	latest record.Time // latest request for a file that the server granted
	used   bool        // the client asked for more than names and attributes
}

// mounted returns what a client got from a server.
func (f *facts) mounted(p pair) (m mount) {
	if known := f.mounts[p]; known != nil {
		m = *known
	}
	return m
}

// entry returns what is remembered of a host or a pair of hosts, which is new and zero if there was none, or nil if there is no room.
func entry[K comparable, V any](all *map[K]*V, key K, most int) *V {
	known := (*all)[key]
	if known == nil && len(*all) < most {
		if *all == nil {
			*all = map[K]*V{}
		}
		known = new(V)
		(*all)[key] = known
	}
	return known
}

// verifier is a verifier of a server's Replies to WRITE and COMMIT.
type verifier struct {
	value       record.Hex64
	first, last record.Time
	packet      record.PacketRef
}

// stateLost is a Reply that says that the server does not know the state of a client.
type stateLost struct {
	at     record.Time
	status string
	packet record.PacketRef
	client string
}

// name returns what people call an RPC: its operation, and the file.
func (r *rpc) name() string {
	if r.file == "" {
		return r.operation
	}
	return r.operation + " " + r.file
}

// itsCall returns the words for the Call of an RPC; the operation of one that is not known is "RPC".
func (r *rpc) itsCall() string { return strings.TrimSuffix("Call of "+r.name(), " of RPC") }

// unanswered reports whether no Reply was delivered. An RDMA_ERROR answers the Call.
func (r *rpc) unanswered() bool { return r.status == record.NoReply }

// failed reports whether the responder answered with an error.
func (r *rpc) failed() bool { return r.failure != "" || r.status == record.RDMAError }

// first returns the first attempt of the request.
func (r *rpc) first() *rpc {
	for r.before != nil {
		r = r.before
	}
	return r
}

// until returns the time at which the RPC ended or, if the capture does not show that, at which its connection did.
func (r *rpc) until(f *facts) record.Time {
	if r.latency >= 0 {
		return r.end
	}
	if c := f.byNumber[r.connection]; c != nil && r.status == record.NoReply {
		if _, ended := c.Ended.Get(); ended {
			return max(r.sent, c.EndOfCalls())
		}
		return max(r.sent, f.last)
	}
	return max(r.sent, r.end)
}

// putOff has the statuses with which a server asks a client to try again, or to try again with other state.
var putOff = set(`
	NFS4ERR_GRACE NFS4ERR_DELAY NFS3ERR_JUKEBOX NFS4ERR_LAYOUTTRYLATER NFS4ERR_BADSESSION NFS4ERR_DEADSESSION NFS4ERR_STALE_CLIENTID
	NFS4ERR_CONN_NOT_BOUND_TO_SESSION NFS4ERR_STALE_STATEID NFS4ERR_BAD_STATEID NFS4ERR_OLD_STATEID NFS4ERR_EXPIRED
	NFS4ERR_ADMIN_REVOKED NFS4ERR_SEQ_MISORDERED NFS4ERR_SEQ_FALSE_RETRY NFS4ERR_RETRY_UNCACHED_REP`)

// longestPatience is the time, in nanoseconds, after which no request repeats one that was put off.
const longestPatience = int64(120e9)

// delayed has the statuses that say that the server itself asks for time.
var delayed = set(`
	NFS4ERR_GRACE NFS4ERR_DELAY NFS3ERR_JUKEBOX NFS4ERR_LAYOUTTRYLATER`)

// stateStatuses has the statuses that say that the server does not know the state of a client.
var stateStatuses = set(`
	NFS4ERR_BADSESSION NFS4ERR_STALE_CLIENTID NFS4ERR_STALE_STATEID NFS4ERR_GRACE NFS4ERR_DEADSESSION`)

// looks has the operations with which a client looks for what it is to mount.
var looks = set(`LOOKUP GETATTR ACCESS PUTROOTFH GETFH`)

// inGrace reports whether an RPC was put off because the server waited for clients to reclaim their state.
func inGrace(r *rpc) bool { return r.failure == "NFS4ERR_GRACE" }

// noTask has the operations that no application waits for.
var noTask = set(`
	NULL RENEW SEQUENCE FREE_STATEID TEST_STATEID BIND_CONN_TO_SESSION DESTROY_SESSION DESTROY_CLIENTID`)

// operationOf returns what people call the operation of a transaction.
func operationOf(r *record.Transaction) string {
	name := r.Operation.Or(r.ProcedureName.Or(""))
	switch program := r.ProgramName.Or(""); {
	case name == "" && !r.Program.Known():
		return "RPC"
	case name == "":
		return r.ProgramProcedure()
	case program == "NFS" || program == "NFS_CB" || program == "":
		return name
	default:
		return program + " " + name
	}
}

// failureOf returns the error status of a transaction, or "".
func failureOf(r *record.Transaction) string {
	switch {
	case r.Status == record.NoReply || r.Reply == nil:
		return ""
	case r.RPCFailed():
		return r.RPCStatus.Or("")
	case r.NFSFailed():
		return r.NFSStatus.Or("")
	}
	return ""
}

// newRPC returns what is remembered of a transaction.
func newRPC(r *record.Transaction) *rpc {
	x := &rpc{
		id: r.ID, request: r.Request, retries: r.RetryOf.Or(0), connection: r.Connection, xid: r.XID, pair: pairOf(r),
		operation: operationOf(r), file: r.File.Or(""), handle: r.FileHandle.Or(""), backward: r.Direction == record.Backward, mounting: r.OfMounting() && r.Direction == record.Forward,
		sent: r.Start(), status: r.Status, failure: failureOf(r), code: r.RDMAError.Or(""), replyLost: r.ReplyLost,
		latency: r.LatencyNS.Or(-1), repeated: r.RetransmittedFrom, rules: slices.Clone(r.Findings), phases: r.Phases.Or(record.Phases{}),
	}
	x.least = r.LatencyMinNS.Or(x.latency)
	if r.Call != nil {
		x.sent, x.called, x.call = r.Sent(), r.Call.Time, r.Call.First()
		x.delivered = r.Call.Delivered.Known()
	}
	x.end = r.End()
	if r.Reply != nil {
		x.reply = r.Reply.Last()
	}
	if m, known := r.Meanwhile.Get(); known {
		x.congested = m.Congested()
	}
	if s, known := r.Shares.Get(); known {
		x.serverMin, x.serverMax, x.clientMin, x.clientMax = s.ServerNS.Min, s.ServerNS.Max, s.ClientNS.Min, s.ClientNS.Max
		x.networkMin, x.point = s.NetworkNS.Min, s.Point
	}
	if v, known := r.Version.Get(); known {
		if x.version = text(v); v == 4 && r.MinorVersion.Known() {
			x.version += "." + text(int64(r.MinorVersion.Or(0)))
		}
	}
	for _, s := range r.Segments() {
		x.exposed = true
		x.packets += (s.MovedBytes + 1023) / 1024 // 1024: the smallest MTU of fast networks, so that there are rather too many
	}
	if x.latency >= muteFor {
		before := x.sent
		for i := range r.Timeline {
			if e := &r.Timeline[i]; e.From == record.Responder && e.Time > before {
				if s := (span{before, e.Time}); s.ns() > x.mute.ns() {
					x.mute = s
				}
				before = e.Time
			}
		}
	}
	for i := range r.Waits {
		x.waits = append(x.waits, newWait(&r.Waits[i], r.Waited(&r.Waits[i])))
	}
	return x
}

// newWait returns what is remembered of a wait.
func newWait(w *record.Wait, ns int64) wait {
	x := wait{Wait: *w, ns: ns}
	for i := range x.packets {
		n := i * (len(w.Packets) - 1)
		if n < 0 || n >= len(w.Packets) {
			continue
		}
		x.packets[i].Packet = w.Packets[n]
		if n < len(w.Points) {
			x.packets[i].Point = w.Points[n]
		}
	}
	x.Packets, x.Points, x.Lost = nil, nil, nil
	return x
}

// retransmission reports whether the wait ended with a retransmission.
func (w *wait) retransmission() bool {
	return strings.HasPrefix(string(w.Reason), "retransmit")
}

// fill makes the lists of facts that only the whole capture gives.
func (f *facts) fill() {
	slices.SortFunc(f.rpcs, func(a, b *rpc) int {
		return cmp.Or(cmp.Compare(a.sent, b.sent), cmp.Compare(a.called, b.called), cmp.Compare(a.id, b.id))
	})
	slices.SortFunc(f.connections, func(a, b *connection) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(f.findings, func(a, b *finding) int { return cmp.Compare(a.Time.Or(0), b.Time.Or(0)) })
	f.ends()
	f.byID, f.byXID, f.byNumber = map[int64]*rpc{}, map[connXID][]*rpc{}, map[int]*connection{}
	for _, c := range f.connections {
		f.byNumber[c.ID] = c
	}
	for _, r := range f.rpcs {
		f.byID[r.id] = r
		key := connXID{r.connection, r.xid}
		f.byXID[key] = append(f.byXID[key], r)
	}
	latest := map[int64]*rpc{} // attempts, by request: the dissector may have seen an earlier one later
	for _, r := range f.rpcs {
		if before := latest[r.request]; before != nil && r.request != 0 {
			before.again, r.before = r, before
		}
		latest[r.request] = r
	}
	f.chain()
}

// ends notes the clients and servers of NFS or, without it, of RPC. A host that is both, as with callbacks of NFSv4.0, is neither.
func (f *facts) ends() {
	for _, nfs := range [...]bool{true, false} {
		f.hosts = [2]map[string]bool{{}, {}}
		for _, c := range f.connections {
			if c.ofRPC() && c.ClientKnown && (!nfs || c.UpperLayer == "rpcrdma" || portsOfNFS[c.Server.Port.Or(0)]) {
				f.hosts[0][c.client], f.hosts[1][c.server] = true, true
			}
		}
		for host := range f.hosts[0] {
			if f.hosts[1][host] {
				delete(f.hosts[0], host)
				delete(f.hosts[1], host)
			}
		}
		if len(f.hosts[0]) > 0 {
			return
		}
	}
}

// chain joins the requests of each task, as the dissector joined them.
func (f *facts) chain() {
	for _, r := range f.rpcs {
		if r.again != nil || r.status == record.NoCall || r.backward {
			continue
		}
		first := r.first()
		var t *task
		if before := f.byID[first.retries]; before != nil && before.of != nil {
			t = before.of
		} else {
			t = &task{from: first.sent}
			f.tasks = append(f.tasks, t)
		}
		t.tries = append(t.tries, r)
		for x := r; x != nil; x = x.before {
			x.of = t
		}
		t.to = r.until(f)
	}
	for _, t := range f.tasks {
		end := t.tries[len(t.tries)-1]
		c := f.byNumber[end.connection]
		outcome := f.outcomes[t.tries[0].first().id]
		quiet := outcome == record.OutcomeOpen && !end.unanswered() && f.last.Sub(end.end) > longestPatience // no packets came in which the time could pass
		t.gaveUp = outcome == record.OutcomeGivenUp || quiet
		if t.open = outcome == record.OutcomeOpen && !quiet || end.unanswered() && (c == nil || c.open()); t.open {
			t.to = max(t.to, f.last)
		}
	}
}

// attempts returns the number of Calls of all tries.
func (t *task) attempts() (n int) {
	for _, r := range t.tries {
		for ; r != nil; r = r.before {
			n++
		}
	}
	return n
}

// pauses returns how long the client paused between the tries of a task, in nanoseconds.
func (t *task) pauses() (ns int64) {
	for i := 1; i < len(t.tries); i++ {
		ns += max(0, t.tries[i].first().sent.Sub(t.tries[i-1].end))
	}
	return ns
}

// blocked returns the time that the task took by what the capture proves, in nanoseconds.
func (t *task) blocked() int64 {
	ns := t.to.Sub(t.from)
	if last := t.tries[len(t.tries)-1]; last.latency > last.least && last.least >= 0 {
		ns -= last.latency - last.least
	}
	return ns
}

// open reports whether a connection had not ended when the capture ended.
func (c *connection) open() bool { return !c.Ended.Known() }

// ofRPC reports whether a connection carries RPC-over-RDMA.
func (c *connection) ofRPC() bool { return c.UpperLayer == "rpcrdma" || c.UpperLayer == "rpc" }

// rejected reports whether the server rejected the connection.
func (c *connection) rejected() bool {
	end, ended := c.Ended.Get()
	return ended && (end.How == record.EndRejected || end.How == record.EndReset && !c.accept && end.Reason.Known()) && end.By.Or(record.Server) == record.Server
}

// asks returns how many requests of the connection the capture has that got no answer.
func (c *connection) asks() int64 {
	switch {
	case c.accept || c.Transactions > 0 || c.Handshake != "seen" || !c.open():
		return 0
	case c.Transport == "TCP":
		return c.Packets
	case c.Transport == "iWARP":
		return 1 + c.Retransmitted
	case c.Packets > max(c.Requests, 1):
		return 0 // the client goes on, so it got an answer
	}
	return c.Packets
}

// closedBy reports whether an end closed the connection.
func (c *connection) closedBy(who record.End) bool {
	end, _ := c.Ended.Get()
	return end.How == record.EndDisconnect && end.By == record.Some(who)
}

// endedAt returns the time at which the connection began to end.
func (c *connection) endedAt() record.Time { return c.Closed.Or(c.Last) }
