package analyze

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// What a verdict is based on, besides the sums of an overview.

// suspicion collects what the verdict is based on, besides the overview.
type suspicion struct {
	span     func(from, to record.Time) bool // whether a span of time overlaps the one that the overview is about; nil for all of it
	cutOff   bool                            // a handshake, or the end of a connection, is in the capture, and not in that span
	faults   map[faultKey]*fault
	refusals map[mountKey]*refusal    // attempts to mount that were refused
	served   map[mountKey]record.Time // latest RPCs that show that the server can be mounted
	late     lateAnswers
	rnr      map[record.End]int64
	repeats  int64 // RPCs whose answer proves that the server had answered them before
	ranges   int64 // latencies that are upper bounds

	congestedTo   map[record.End]int64 // marked packets to a side, and notifications of it
	congestedRPCs int64                // RPCs that lasted while there were some

	longest   int64 // latency
	clients   map[string]*tally
	restarted map[statusOf]*sent   // Replies with a status that a server sends after a restart
	places    []placed             // where the connections say that the capture was taken
	verifiers map[string][]written // of WRITE and COMMIT, by server, in the order of their first Replies
	boots     []boot               // Calls in which NFSv4 clients name themselves
	last      map[int]*lastRPCs    // by connection
	leaves    []handshake          // Calls and disconnects that take leave of the server

	pending  []pendingRPC    // RPCs without a Reply
	dropped  int64           // RPCs without a Reply that are not in pending, because there are too many
	retried  map[int64]retry // by the RPC on an earlier connection
	ended    map[int]connEnd // connections of pending RPCs
	rejected []handshake     // connections that the server rejected
	accepted []handshake     // connections that the server accepted
	closed   []handshake     // connections that ended
	nakEnds  int64           // connections that a NAK ended
}

// connEnd is what the capture shows of the end of a connection.
type connEnd uint8

// The ends.
const (
	open    connEnd = iota // it had not ended
	over                   // it ended
	partial                // it lacks packets, which may have been Replies
)

// pendingRPC is an RPC without a Reply.
type pendingRPC struct {
	id         int64
	connection int
	client     string
	server     string
	start      record.Time
	sent       bool // a Reply, which was not accepted
}

// retry is an RPC that was retransmitted on a new connection.
type retry struct {
	id       int64
	answered bool
}

// handshake is the acceptance or rejection of a connection, or its end.
type handshake struct {
	client, server string
	at             record.Time
	port           uint16 // of the server; 0 if it is not known
	reason         string // of a rejection
	connection     int
}

// faultKey is what the findings of a fault have in common.
type faultKey struct {
	rule string
	by   record.End
}

// fault counts the findings that prove which side broke a rule.
type fault struct {
	count   int64
	message string
	hosts   map[string]int64 // by address of the side
}

// refusal counts the times that a server refused an operation of mounting.
type refusal struct {
	count  int64
	status string
	first  record.Time
}

// mountKey says which operation of mounting a server refused or granted to a client. With an empty name it stands for what a
// client sends only after mounting.
type mountKey struct{ name, client, server string }

// lateAnswers counts the RPCs that were answered late although the server had the Call.
type lateAnswers struct {
	count    int64
	longest  int64
	name     string // of the RPC with the longest delay
	disorder int64  // RPCs whose times of delivery are unknown or out of order
	fine     bool   // the clock of the capture has more than whole seconds
}

// The limits of what is remembered for a verdict.
const (
	maxPending    = 1 << 16 // RPCs
	maxHandshakes = 1 << 12 // connections
	maxServed     = 1 << 12 // operations and pairs of hosts
	maxHosts      = 1 << 12 // clients, and servers
)

// newSuspicion returns an empty suspicion.
func newSuspicion() suspicion {
	return suspicion{
		faults: map[faultKey]*fault{}, refusals: map[mountKey]*refusal{}, served: map[mountKey]record.Time{}, rnr: map[record.End]int64{},
		congestedTo: map[record.End]int64{}, clients: map[string]*tally{}, restarted: map[statusOf]*sent{}, retried: map[int64]retry{}, ended: map[int]connEnd{},
		last: map[int]*lastRPCs{}, verifiers: map[string][]written{},
	}
}

// clone returns a copy to which opened may add connections.
func (s *suspicion) clone() suspicion {
	c := *s
	c.accepted, c.clients = slices.Clone(s.accepted), map[string]*tally{}
	for name, t := range s.clients {
		own := *t
		c.clients[name] = &own
	}
	return c
}

// transaction notes what a transaction proves.
func (s *suspicion) transaction(r *record.Transaction) {
	s.tally(r.Client).transaction(r)
	if r.LatencyMinNS.Known() {
		s.ranges++
	}
	if m, known := r.Meanwhile.Get(); known && m.CEToClient+m.CEToServer+m.CNPFromClient+m.CNPFromServer > 0 {
		s.congestedRPCs++
	}
	s.longest = max(s.longest, r.LatencyNS.Or(0))
	s.retry(r)
	s.clientCall(r)
	if r.Status == record.NoReply {
		if len(s.pending) < maxPending {
			s.pending = append(s.pending, pendingRPC{r.ID, r.Connection, r.Client.Or(""), r.Server.Or(""), r.Start(), r.ReplyLost})
			s.ended[r.Connection] = open
		} else {
			s.dropped++
		}
	}
	s.stateRejected(r)
	s.writes(r)
	if status := r.NFSStatus.Or(""); r.RetransmitOf.Known() && status == "NFS4ERR_RETRY_UNCACHED_REP" {
		s.repeats++
	}
	for i := range r.Waits {
		if w := &r.Waits[i]; w.Reason == record.RNRNak {
			side := record.Client
			if w.Waiting == record.Client {
				side = record.Server
			}
			s.rnr[side] += r.Waited(w)
		}
	}
	if ofMounting(r) {
		s.mounting(r)
		return
	}
	if r.Direction == record.Forward {
		s.late.add(r)
	}
	if len(s.refusals) > 0 && r.Direction == record.Forward && r.Succeeded() { // Earlier ones say nothing about a refusal.
		s.serves(r, mountKey{client: r.Client.Or(""), server: r.Server.Or("")})
	}
}

// retry notes that a transaction is a copy of one on an earlier connection.
func (s *suspicion) retry(r *record.Transaction) {
	if of, again := r.RetransmitOf.Get(); again && len(s.retried) < maxPending {
		s.retried[of] = retry{r.ID, r.Status != record.NoReply}
	}
}

// mounting notes whether the server refused an operation of mounting. The last operations of a mount say nothing
// about that.
func (s *suspicion) mounting(r *record.Transaction) {
	if r.Reply == nil || r.Direction != record.Forward || !r.Program.Known() || strings.HasPrefix(r.Operation.Or(""), "DESTROY_") || r.ProcedureName.Or("") == "UMNT" {
		return
	}
	key := mountKey{Name(r, ByOperation), r.Client.Or(""), r.Server.Or("")}
	status := r.NFSStatus.Or("")
	if r.RPCFailed() {
		status = r.RPCStatus.Or("")
	}
	if !r.RPCFailed() && !r.NFSFailed() {
		if r.Status != record.Answered {
			s.serves(r, key)
		}
		return
	}
	if s.refusals[key] == nil && len(s.refusals) < maxStatuses {
		s.refusals[key] = &refusal{status: status, first: r.Start()}
	}
	if f := s.refusals[key]; f != nil {
		f.count++
	}
}

// serves notes that an RPC succeeded. One of NFS other than NULL shows that the server can be mounted, perhaps in
// another version than the one that the client asked for first.
func (s *suspicion) serves(r *record.Transaction, key mountKey) {
	note := func(key mountKey) {
		if _, had := s.served[key]; had || len(s.served) < maxServed {
			s.served[key] = r.Start()
		}
	}
	note(key)
	if r.ProgramName.Or("") == "NFS" && r.ProcedureName.Or("") != "NULL" {
		note(mountKey{client: key.client, server: key.server})
	}
}

// lateAnswer is the shortest delay of a late answer, in nanoseconds.
const lateAnswer = int64(1e9)

// add notes whether the server had a Call for long before anything of its answer was captured. Both times are those of
// packets that the server sent: its acknowledgement of the Call, and the first thing that it did for the Call. The second
// one may have been lost, or may have waited, on its way to the capture point.
func (l *lateAnswers) add(r *record.Transaction) {
	if r.Call == nil || r.Reply == nil || r.Call.Delivery != record.DeliveryCertain || r.Retransmitted > 0 || len(r.Waits) > 0 {
		return
	}
	had, known := r.Call.Delivered.Get()
	accepted, too := r.Reply.Delivered.Get()
	if !known || !too || r.Reply.Delivery != record.DeliveryCertain || accepted < r.Reply.Time || had < r.Call.Time { // The times would not be in order.
		l.disorder++
		return
	}
	began := r.Reply.Time
	for i := range r.Timeline {
		if e := &r.Timeline[i]; e.Time < began && (e.Event == record.EventRead || e.Event == record.EventWriteFirst) {
			began = e.Time
		}
	}
	ns := began.Sub(had)
	if l.fine = l.fine || had%1e9 != 0; ns < lateAnswer {
		return
	}
	if l.count++; ns > l.longest {
		l.longest, l.name = ns, Name(r, ByOperation)
	}
}

// lostBefore has the reasons of rejections that follow from messages that were lost before: the server waited in vain
// for the last message of the handshake, or still has the connection that the client abandoned.
var lostBefore = map[string]bool{
	"timeout": true, "stale connection": true, "invalid communication ID": true, "invalid communication instance": true,
	"duplicate local communication ID": true, "RNR retry count reject": true,
}

// connection notes how a connection began and ended.
func (s *suspicion) connection(r *record.Connection) {
	s.opened(r)
	s.located(r)
	if c := &r.Path.Congestion; r.ClientKnown {
		s.congestedTo[record.Server] += c.CEToServer + c.CNPFromServer
		s.congestedTo[record.Client] += c.CEToClient + c.CNPFromClient
	}
	s.leave(r)
	end, ended := r.Ended.Get()
	if _, pending := s.ended[r.ID]; pending && r.NotCaptured > 0 {
		s.ended[r.ID] = partial
	} else if pending && ended {
		s.ended[r.ID] = over
	}
	if !ended {
		return
	}
	at := r.Closed.Or(r.Last)
	if !s.overlaps(at, at) {
		return
	}
	h := handshakeOf(r, at)
	switch {
	case end.How == record.EndNak:
		s.nakEnds++
	case end.How == record.EndRejected && end.By.Or(record.Client) == record.Server:
		h.reason = end.Reason.Or("no reason given")
		s.rejected = appendFew(s.rejected, h)
		return
	case end.How == record.EndReused: // Nothing shows when the server lost the connection, or that it did.
		return
	}
	s.closed = appendFew(s.closed, h)
}

// leave notes that a client disconnected, which may have been because it unmounted everything.
func (s *suspicion) leave(r *record.Connection) {
	if end, ended := r.Ended.Get(); ended && (end.How == record.EndDisconnect || end.How == record.EndReset) && end.By.Or(record.Client) == record.Client {
		s.leaves = appendFew(s.leaves, handshakeOf(r, r.Closed.Or(r.Last)))
	}
}

// placed is a place at which a capture was taken, or seems to have been taken, as connections say.
type placed struct {
	place   record.Place
	how     string
	refuted bool
	late    int64 // packets of that side
}

// located notes where a connection was captured.
func (s *suspicion) located(r *record.Connection) {
	point := &r.Path.Point
	x := placed{point.At.Or(""), point.How.Or(""), point.Refuted.Known(), 0}
	if x.refuted {
		x.place = point.Refuted.Or("")
	}
	if howPlaced[x.how] == "" {
		return
	}
	i := slices.IndexFunc(s.places, func(y placed) bool { return y.place == x.place && y.how == x.how && y.refuted == x.refuted })
	if i < 0 {
		i, s.places = len(s.places), append(s.places, x)
	}
	if x.place == record.AtClient {
		s.places[i].late += r.Path.Late.FromClient
	} else if x.place == record.AtServer {
		s.places[i].late += r.Path.Late.FromServer
	}
}

// opened notes the packets of a connection, and that it was accepted.
func (s *suspicion) opened(r *record.Connection) {
	client := r.Client.Address
	if !r.ClientKnown {
		client = record.Opt[string]{}
	}
	t, n := s.tally(client), r.Counts()
	t.retransmitted += n.Retransmitted
	t.naks += n.Naks + n.RNRNaks
	s.accept(r)
}

// accept notes that a connection was accepted, if it was.
func (s *suspicion) accept(r *record.Connection) {
	if at, accepted := r.Established.Get(); accepted {
		s.accepted = appendFew(s.accepted, handshakeOf(r, at))
	}
}

// handshakeOf returns the ends of a connection.
func handshakeOf(r *record.Connection, at record.Time) handshake {
	return handshake{client: r.Client.Address.Or(""), server: r.Server.Address.Or(""), at: at, port: r.Server.Port.Or(0), connection: r.ID}
}

// appendFew appends to a list unless it is full.
func appendFew(list []handshake, h handshake) []handshake {
	if len(list) >= maxHandshakes {
		return list
	}
	return append(list, h)
}

// finding notes a finding of severity error that proves which side is at fault.
func (s *suspicion) finding(r *record.Finding) {
	by, known := r.AtFault.Get()
	if !known || r.Severity != record.Error {
		return
	}
	key := faultKey{r.Rule, by}
	if s.faults[key] == nil {
		s.faults[key] = &fault{message: r.Message, hosts: map[string]int64{}}
	}
	host := r.Server
	if by == record.Client {
		host = r.Client
	}
	f := s.faults[key]
	f.count++
	if name := host.Or(""); f.hosts[name] > 0 || len(f.hosts) < MaxPairs {
		f.hosts[name]++
	}
}

// outcomes sorts the RPCs without a Reply.
type outcomes struct {
	unanswered  int64 // their connection ended, and no copy of the Call got a Reply that was accepted
	sent        int64 // a Reply to the last copy of the Call of these was sent
	repaired    int64 // a copy of the Call on a later connection got a Reply
	outstanding int64 // their connection had not ended
	unknown     int64 // the capture lacks packets of their connection, or of their hosts at a later time
	since       record.Time
}

// outcomes returns what became of the RPCs without a Reply, and counts those that were never answered for their clients.
func (s *suspicion) outcomes(absences []record.Absence) (o outcomes) {
	for _, t := range s.clients {
		t.unanswered = 0
	}
	for _, p := range s.pending {
		again, answered := s.retried[p.id]
		for answered && !again.answered {
			again, answered = s.retried[again.id]
		}
		_, sentAgain := s.retried[p.id]
		switch {
		case answered:
			o.repaired++
		case sentAgain: // The latest copy of the Call counts.
		case s.ended[p.connection] == partial || slices.ContainsFunc(absences, func(a record.Absence) bool {
			return a.To > p.start && (a.Address == p.client && a.Peer == p.server || a.Address == p.server && a.Peer == p.client)
		}):
			o.unknown++
		case s.ended[p.connection] == over:
			if o.unanswered++; p.sent {
				o.sent++
			}
			s.tally(record.Some(p.client)).unanswered++
		default:
			if o.outstanding++; o.since == 0 || p.start < o.since {
				o.since = p.start
			}
		}
	}
	return o
}

// repairs is what later connections show about rejected ones.
type repairs struct {
	rejected    []handshake // rejected, and the server did not accept the client afterwards
	stale       []handshake // the same, because messages were lost before
	repaired    int64       // the server accepted the same client afterwards
	least, most int64       // time until then, in nanoseconds
	port        uint16      // to which that was, if it was another one; 0 otherwise
}

// repairs finds out which rejected connections a later one made good.
func (s *suspicion) repairs() (r repairs) {
	slices.SortFunc(s.accepted, func(a, b handshake) int { return cmp.Compare(a.at, b.at) })
	for _, h := range s.rejected {
		i := slices.IndexFunc(s.accepted, func(a handshake) bool { return a.client == h.client && a.server == h.server && a.at >= h.at })
		switch {
		case i >= 0:
			a := s.accepted[i]
			ns := a.at.Sub(h.at)
			if r.repaired++; r.repaired == 1 {
				r.least = ns
			}
			r.least, r.most = min(r.least, ns), max(r.most, ns)
			if a.port != h.port {
				r.port = a.port
			}
		case lostBefore[h.reason]:
			r.stale = append(r.stale, h)
		default:
			r.rejected = append(r.rejected, h)
		}
	}
	return r
}
