package transaction

import (
	"encoding/binary"
	"hash/maphash"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Tasks: a request, and the requests that repeat it because the server put it off. The requests of a task form a chain. A request that was put
// off waits in a queue for the one that repeats it: the next one of the same client and user with the same operations and arguments.

// putOff is why a client has to ask again.
type putOff uint8

const (
	notPutOff    putOff = iota
	serverBusy          // the server asks to try again later
	lostState           // the session, or the client's state, is lost
	outOfStep           // the session, stateid or security context of the Call was not the current one
	noReply             // there was no Reply; only a new session shows that the client gave it up
	needsContext        // a new RPCSEC_GSS context is needed
)

// putOffBy has the statuses by which a server asks a client to try again, or makes it try again by the rules of the protocol.
var putOffBy = map[string]putOff{
	"NFS4ERR_DELAY": serverBusy, "NFS4ERR_GRACE": serverBusy, "NFS3ERR_JUKEBOX": serverBusy,
	"NFS4ERR_BADSESSION": lostState, "NFS4ERR_DEADSESSION": lostState, "NFS4ERR_STALE_CLIENTID": lostState, "NFS4ERR_STALE_STATEID": lostState,
	"NFS4ERR_EXPIRED": lostState, "NFS4ERR_ADMIN_REVOKED": lostState,
	"NFS4ERR_LAYOUTTRYLATER": outOfStep, "NFS4ERR_CONN_NOT_BOUND_TO_SESSION": outOfStep, "NFS4ERR_BAD_STATEID": outOfStep, "NFS4ERR_OLD_STATEID": outOfStep,
	"NFS4ERR_SEQ_MISORDERED": outOfStep, "NFS4ERR_SEQ_FALSE_RETRY": outOfStep, "NFS4ERR_RETRY_UNCACHED_REP": outOfStep,
	"RPCSEC_GSS_CREDPROBLEM": needsContext, "RPCSEC_GSS_CTXPROBLEM": needsContext,
}

// The longest pauses after which a request repeats an earlier one. Linux waits up to 15 s between tries; a client that found the server serverBusy
// asks again after a pause that grows.
const (
	firstPause      = record.Time(31e9)
	laterPause      = record.Time(1e9)
	pauseGrows      = 4
	statePause      = record.Time(120e9)
	otherPause      = record.Time(5e9)
	maxPutOff       = 16      // requests of one key that wait
	maxWaiting      = 1 << 12 // requests that wait
	chainCost       = 1024
	tryCost         = 48
	maxSessionsKept = 1 << 10 // pairs of hosts whose latest session is remembered
)

// chain is the requests of a task.
type chain struct {
	record.Task
	asked    wanted
	latest   *txn                    // its latest attempt; nil if the record of that was handed out
	why      putOff                  // why the latest try is to be repeated
	called   record.Time             // the Call of the latest try
	answered record.Opt[record.Time] // the Reply to it
	last     int64                   // the latest request
	longest  record.Time             // pause so far
	since    record.Time             // on the table's clock: the end of the latest try
	waits    bool                    // for a request that repeats it
	over     bool                    // nothing repeats it any more
	cost     int64
}

// wanted is what a Call asks for.
type wanted struct {
	key     taskKey // its arguments are 0 if they are not known, or if no application waits for them
	context uint64  // of RPCSEC_GSS; 0 for none
}

// taskKey is what the requests of a task have in common: the hosts, and a hash of the user and the arguments.
type taskKey struct {
	hostPair
	arguments uint64
}

// hostPair is a caller and the other side. Both are held while it is a part of a key of the table.
type hostPair struct{ client, server *rdma.Host }

func (p hostPair) hold() {
	p.client.Hold()
	p.server.Hold()
}

func (p hostPair) release() {
	p.client.LetGo()
	p.server.LetGo()
}

// tasks are the requests that may be repeated.
type tasks struct {
	putOff   map[taskKey][]*chain     // the oldest first
	waiting  []*chain                 // the same, in the order in which they ended
	due      record.Time              // on the table's clock: none of them is over before
	sessions map[hostPair]record.Time // when the client got its latest session or client id
	same     []byte                   // the arguments of the current Call
	budget   *budget.Budget           // of their own, so that other records are the same without them
	share    budget.Share
}

// noteTask finds the request that a Call repeats. Without [Options.Tasks], there are no chains.
func (t *Table) noteTask(x *txn) {
	if c := x.chain; c != nil { // another attempt of the same request
		if c.Attempts++; c.latest == nil || c.latest.call.Time <= x.call.Time { // otherwise a packet is missing before x, so that it is seen late
			c.latest = x
		}
		return
	}
	if x.wants.key.arguments == 0 || len(t.tasks.putOff) == 0 {
		return
	}
	for _, c := range t.tasks.putOff[x.wants.key] {
		if t.repeats(c, x) {
			t.tryAgain(c, x)
			return
		}
	}
}

// whatIsAsked returns what a Call asks for.
func (t *Table) whatIsAsked(x *txn, m *message) (a wanted) {
	p := &x.procedure
	if !p.known || m.rpcErr != nil || x.control || m.payload == nil || nfs.IsCallback(p.program) || nfs.ProgramName(p.program) == "" {
		return a
	}
	body, plain := x.gss.Plain(m.payload[m.rpc.Length:])
	if !plain {
		return a
	}
	b := t.tasks.same[:0]
	for _, v := range [...]uint32{uint32(x.side), uint32(p.flavor.Or(0)), x.identity.uid, p.program, p.version, p.procedure} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	is := false
	if x.isCompound() {
		if m.arguments != nil && m.arguments.bytes != nil {
			hole := int64(len(body))
			if holes := m.arguments.holes; len(holes) > 0 && holes[0].Position >= 0 {
				hole = holes[0].Position
			}
			b, is = m.arguments.message.AppendSame(b, body, hole, !m.captured())
		}
	} else {
		var same []byte
		same, is = nfs.SameProcedure(p.program, p.version, p.procedure, body, m.captured())
		b = append(b, same...)
	}
	if t.tasks.same = b; cap(b) > 1<<16 { // free memory that a large Call needed
		t.tasks.same = nil
	}
	if !is {
		return a
	}
	a.key = taskKey{x.hosts(), maphash.Bytes(t.seed, b) | 1}
	if p.flavor == record.Some(oncrpc.AuthRPCSECGSS) {
		a.context = maphash.Bytes(t.seed, m.rpc.Credential.Handle()) | 1
	}
	return a
}

// hosts returns the hosts of the caller and of the other side.
func (x *txn) hosts() hostPair {
	return hostPair{x.cs.link.Host(x.side), x.cs.link.Host(x.side.Other())}
}

// repeats reports whether a Call repeats the request of a chain that waits.
func (t *Table) repeats(c *chain, x *txn) bool {
	if c.why != needsContext && c.asked.context != x.wants.context {
		return false
	}
	pause := t.Clock - c.since
	if c.why == noReply {
		if made, known := t.tasks.sessions[c.asked.key.hostPair]; !known || made <= c.called {
			return false
		}
	} else {
		pause = x.call.Time - c.answered.Or(c.called)
	}
	return pause >= 0 && pause <= c.longestPause()
}

// longestPause returns the longest pause before the request is repeated.
func (c *chain) longestPause() record.Time {
	switch {
	case c.why == serverBusy && c.Tries == 1:
		return firstPause
	case c.why == serverBusy:
		return max(laterPause, pauseGrows*c.longest)
	case c.why == lostState || c.why == noReply:
		return statePause
	}
	return otherPause
}

// tryAgain adds a request to a chain that waits for it.
func (t *Table) tryAgain(c *chain, x *txn) {
	t.stopWaiting(c)
	if from, known := c.answered.Get(); known {
		pause := x.call.Time - from
		c.longest = max(c.longest, pause)
		c.PauseNS = record.Some(int64(pause))
	}
	x.rec.RetryOf = c.last
	c.addStatus()
	if c.Tries++; len(c.Requests) < record.MaxTries {
		c.Requests, c.XIDs = append(c.Requests, x.rec.ID), append(c.XIDs, x.rec.XID)
		t.chargeTask(c, tryCost)
	}
	c.Attempts++
	x.rec.Try, x.rec.FirstTry = c.Tries, c.From
	c.latest, c.last, c.called, c.why, x.chain = x, x.rec.ID, x.call.Time, notPutOff, c
}

// addStatus adds the status of a try that has ended.
func (c *chain) addStatus() {
	if len(c.Statuses) < record.MaxTries {
		c.Statuses = append(c.Statuses, c.Status.Or("no_reply"))
	}
}

// newChain returns the chain of a request, of which the first Call was sent at a time.
func (t *Table) newChain(request int64, xid record.Hex32, first record.Stamp, of wanted) *chain {
	c := &chain{asked: of, last: request, called: first.Time}
	c.Type, c.Request, c.From, c.Packet, c.Tries, c.Attempts = "task", request, first.Time, first.Packet, 1, 1
	c.Requests, c.XIDs, c.Statuses = []int64{request}, []record.Hex32{xid}, []string{}
	t.chargeTask(c, chainCost)
	return c
}

// anotherAttempt adds a Call to the chain of the earlier attempt of its request. The chain is nil if that had none.
func (t *Table) anotherAttempt(x *txn, c *chain, before *pastCall) {
	if !t.options.Tasks {
		return
	}
	if c == nil || c.over {
		c = t.newChain(before.request, x.rec.XID, before.earlier.sent, wanted{})
		c.Attempts = before.attempt
	}
	t.stopWaiting(c)
	c.why, x.chain = notPutOff, c
}

// endTask takes the end of a request. If it was put off, the next one may be a repetition.
func (t *Table) endTask(x *txn, status record.Status) {
	why, name := notPutOff, ""
	switch {
	case !t.options.Tasks || x.rec.Call == nil || x.chain != nil && x.chain.latest != x:
		return
	case status == record.NoReply:
		why = noReply
	case status == record.RDMAError:
		name = x.rdmaError.Or(string(status))
	case status.Replied():
		if name = x.nfsStatus.Or(x.rpcStatus.Or("")); name != "NFS4_OK" && name != "NFS3_OK" && name != "SUCCESS" {
			why = putOffBy[name]
		} else if len(x.named) > 0 && (x.named[0] == "CREATE_SESSION" || x.named[0] == "SETCLIENTID_CONFIRM") {
			t.noteSession(x)
		}
	}
	c := x.chain
	if c == nil {
		if why == notPutOff || x.wants.key.arguments == 0 {
			return
		}
		c = t.newChain(x.rec.ID, x.rec.XID, firstSent(x), x.wants)
		c.latest, x.chain = x, c
	}
	c.why, c.since, c.asked = why, t.Clock, x.wants
	c.Status, c.answered = named(name), record.SomeIf(x.answer.LastTime, x.answered != &noAnswer && name != "")
	if why != notPutOff && x.wants.key.arguments != 0 {
		t.wait(c)
	}
}

// noteSession notes that the client got a session or a client id.
func (t *Table) noteSession(x *txn) {
	k := x.hosts()
	if _, known := t.tasks.sessions[k]; !known {
		if len(t.tasks.sessions) >= maxSessionsKept {
			return
		}
		k.hold()
	}
	t.tasks.sessions[k] = x.answer.LastTime
}

// wait puts a chain into the queue of its key.
func (t *Table) wait(c *chain) {
	s := &t.tasks
	if same := s.putOff[c.asked.key]; len(same) >= maxPutOff {
		t.giveUp(same[0], record.Opt[record.Outcome]{})
	}
	if len(s.waiting) >= maxWaiting {
		t.giveUp(s.waiting[0], record.Opt[record.Outcome]{})
	}
	c.waits = true
	c.asked.key.hold()
	s.putOff[c.asked.key] = append(s.putOff[c.asked.key], c)
	if s.waiting = append(s.waiting, c); len(s.waiting) == 1 || c.until() < s.due {
		s.due = c.until()
	}
}

// until returns when, on the table's clock, the client has given a chain up that waits.
func (c *chain) until() record.Time { return c.since + c.longestPause() }

// stopWaiting removes a chain from its queue.
func (t *Table) stopWaiting(c *chain) {
	if !c.waits {
		return
	}
	s, is := &t.tasks, func(o *chain) bool { return o == c }
	c.waits = false
	if rest := slices.DeleteFunc(s.putOff[c.asked.key], is); len(rest) > 0 {
		s.putOff[c.asked.key] = rest
	} else {
		delete(s.putOff, c.asked.key)
	}
	c.asked.key.release()
	s.waiting = slices.DeleteFunc(s.waiting, is)
}

// expireTasks ends the tasks whose requests were not repeated in time.
func (t *Table) expireTasks() {
	s := &t.tasks
	s.budget.Enforce()
	if len(s.waiting) == 0 || t.Clock <= s.due {
		return
	}
	s.due = 1<<63 - 1
	for _, c := range slices.Clone(s.waiting) {
		if t.Clock > c.until() {
			t.giveUp(c, record.Some(record.OutcomeGivenUp))
		} else {
			s.due = min(s.due, c.until())
		}
	}
}

// giveUp ends a task whose request is not repeated any more.
func (t *Table) giveUp(c *chain, outcome record.Opt[record.Outcome]) {
	t.stopWaiting(c)
	c.over, c.Outcome = true, outcome
	if c.latest == nil {
		t.handOut(c)
	}
}

// EndTasks hands out the tasks that still wait at the end of the capture.
func (t *Table) EndTasks(end record.Time) {
	for len(t.tasks.waiting) > 0 {
		c := t.tasks.waiting[0]
		c.BlockedMinNS = record.Some(max(0, end.Sub(c.From)))
		t.giveUp(c, record.Some(record.OutcomeOpen))
	}
}

// noteTaskRecord takes the record of an RPC, with which a task may end.
func (t *Table) noteTaskRecord(x *txn, r *record.Transaction) {
	c := x.chain
	if c == nil || c.latest != x {
		return
	}
	c.latest = nil
	if c.why != noReply && r.Status == record.NoReply { // the Reply was refused
		c.why, c.answered, c.Status = noReply, record.Opt[record.Time]{}, record.Opt[string]{}
		if !c.waits && !c.over && x.wants.key.arguments != 0 {
			c.since = t.Clock
			t.wait(c)
		}
	}
	c.Connection, c.Client, c.Server, c.Direction = r.Connection, r.Client, r.Server, r.Direction
	c.ProgramName, c.Version, c.MinorVersion, c.Operation = r.ProgramName, r.Version, r.MinorVersion, r.Operation
	c.File, c.UID, c.Principal = r.File, r.UID, r.Principal
	c.To, c.LastPacket, c.BlockedNS, c.BlockedMinNS = record.Opt[record.Time]{}, record.Opt[int64]{}, record.Opt[int64]{}, record.Opt[int64]{}
	if latency, known := r.LatencyNS.Get(); known && r.Status.Replied() {
		to := r.Sent() + record.Time(latency)
		c.To, c.LastPacket, c.BlockedNS = record.Some(to), record.Some(r.Reply.LastPacket), record.Some(int64(to-c.From))
		if least, uncertain := r.LatencyMinNS.Get(); uncertain {
			c.BlockedMinNS = record.Some(int64(r.Sent() + record.Time(least) - c.From))
		}
	}
	switch {
	case c.waits:
		return
	case c.over:
	case r.Status == record.RDMAError, r.Status == record.Complete && r.Failed() && c.why == notPutOff:
		c.Outcome = record.Some(record.OutcomeStatus)
	case r.Status == record.Complete && !r.Failed():
		c.Outcome = record.Some(record.OutcomeOK)
	}
	t.handOut(c)
}

// handOut hands out the record of a task, unless it is a single request that was not put off.
func (t *Table) handOut(c *chain) {
	c.over = true
	c.addStatus()
	if cost := min(c.cost, t.tasks.share.Bytes()); cost > 0 {
		t.tasks.share.Charge(-cost)
	}
	if t.Task != nil && (c.Tries > 1 || c.Attempts > 1 || c.why != noReply) {
		t.Task(&c.Task)
	}
}

// chargeTask adds bytes to the budget that a chain uses.
func (t *Table) chargeTask(c *chain, bytes int64) {
	s := &t.tasks
	if s.share.Bytes() == 0 && bytes > 0 {
		s.budget.Close(&s.share) // if it was open
		s.budget.Open(&s.share, taskOwner{t})
	}
	c.cost += bytes
	s.share.Charge(bytes)
}

// taskOwner evicts requests that wait, the oldest first.
type taskOwner struct{ *Table }

// Evict implements [budget.Owner].
func (o taskOwner) Evict() (budget.Kind, bool) {
	if len(o.tasks.waiting) == 0 {
		return budget.Tasks, false
	}
	o.giveUp(o.tasks.waiting[0], record.Opt[record.Outcome]{})
	o.budget.Note(budget.Tasks)
	return budget.Tasks, true
}
