// Package transaction says what RPC made of what the RDMA layer did: Calls and
// Replies, the memory that they exposed and what moved there, Payload streams,
// credits, invalidations. It knows nothing of packets, PSNs, TCP, or which
// transport it was.
//
// The way through it: a [Table] gives every connection a follower (follower.go),
// which is told what happens there. message.go tells Calls from Replies, call.go
// and reply.go take them, memory.go finds whose an RDMA operation is, events.go
// what else became of it; payload.go reads what travelled, check.go holds all of
// it against the rules, finish.go makes the record.
package transaction

import (
	"encoding/binary"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/queue"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

var be = binary.BigEndian

// Options say what to keep, and for how long.
type Options struct {
	// Rebuild keeps all data that moves, to rebuild Calls and Replies whole.
	Rebuild bool
	// XIDs are those of the transactions that Rebuild is about; all when empty.
	XIDs []record.Hex32
	// Tree keeps the Sends that a packet ends until [Table.Said] is asked.
	Tree bool
	// Shown keeps what the Replies of a packet answer under RPCSEC_GSS until
	// [Table.Guarded] is asked.
	Shown bool
	// Linger is how long a transaction that has ended waits for what still
	// belongs to it: an acknowledgement, a repeat, the NAK that takes it back.
	Linger record.Time
	// Unanswered is how long later Calls have to be answered before one that
	// is not is reported.
	Unanswered record.Time
}

// Table has the transactions of all connections.
type Table struct {
	// Transaction gets each transaction's record when nothing can happen to it
	// any more. Payload gets the rebuilt Payload streams just before.
	Transaction func(*record.Transaction)
	Payload     func(t *record.Transaction, call, reply *record.Payload)
	// Stream, if not nil, gets the messages as they are read.
	Stream func(*record.Stream)
	// Ended counts transactions by how they ended, in the order of
	// [record.Statuses].
	Ended [len(record.Statuses)]int64
	// Clock is the time by which transactions wait, which never goes back. Whoever
	// owns the table sets it, before the packet whose time it is.
	Clock record.Time

	options Options
	budget  *budget.Budget

	// unannounced is set once the finding InvalidationUnannounced was reported, because a
	// capture gets it only once.
	unannounced bool

	slots    []*txn   // nil: free, and nothing kept for it
	gens     []uint32 // how often each was used
	free     []uint32 // slots
	settling queue.Queue[*txn]
	due      record.Time // nothing of settling is to be looked at up to then
	last     int64       // id

	unanswered map[callKey]int64

	header        rpcrdma.Header // of the Send at hand
	rpc           oncrpc.Header
	longRPC       oncrpc.Header // of a Long Call
	session       nfs.Message   // Reply to a CREATE_SESSION
	scratch       []byte
	binding       binding
	record        record.Transaction // that is handed out
	unkept        record.Event       // of a timeline that has too many
	storage       storage            // of that
	evidence      []int64            // what the packets of waits stand in
	rebuild       rebuilder
	completed     []CompletedSend
	guarded       []Guarded
	completedData []byte // of said
	stream        record.Stream
}

// NewTable makes a table that keeps to a budget.
func NewTable(o Options, b *budget.Budget) *Table {
	return &Table{options: o, budget: b, unanswered: map[callKey]int64{}, storage: newStorage(), binding: newBinding()}
}

// maxSettling bounds how many transactions wait at once for what may still
// happen.
const maxSettling = 1 << 12

// facts are what of a transaction's record is found out while it lasts; see
// [record.Transaction].
type facts struct {
	ID            int64
	XID           record.Hex32
	Retransmitted uint32
	RetransmitOf  int64 // 0 for none
	Status        record.Status
	Operations    []string
	Call          *record.Message
	Timeline      []record.Event
	Waits         []record.Wait
	Findings      []string
	HeldBackBy    int64 // 0 for none
}

// txn is a transaction under way.
type txn struct {
	rec facts
	cs  *connState

	side            rdma.Side // the caller's
	open            bool
	replied         bool // the Reply has come, and was not refused
	emitted         bool
	awaitsDelivery  bool // it is not known yet whether the Reply was accepted
	notDelivered    bool // it was not
	pendingFindings int8 // findings about it that are pending
	hasReply        bool // a Reply chunk
	listsIncomplete bool // the lists of the Call are not known to their end
	control         bool // RPCSEC_GSS makes or ends a context with it
	namedAll        bool // of a COMPOUND Call: all its operations

	prev, next *txn        // of the follower's open or settled ones, by age
	ended      record.Time // on the table's clock

	segments []segment
	kept     int64 // bytes of chunk data held
	charged  int64 // of the budget
	writes   int   // Write chunks, segments or not

	callSeq uint64       // of the Send that carried the Call
	active  record.Stamp // its latest packet

	call      record.Message
	*answered // never nil
	checks    txnChecks
	procedure procedure
	gss       oncrpc.Service
	inCall    inlineStream
	named     []string // what rec.Operations stands in
	slot      uint32
	gen       uint32 // counts the uses of the slot
}

// answered is what a Reply adds to a transaction.
type answered struct {
	answer         record.Message
	inReply        inlineStream
	sizes          []int64 // bytes in each Write chunk, by the Reply
	rpcStatus      record.Opt[string]
	nfsStatus      record.Opt[string]
	rdmaError      record.Opt[string]
	rdmaErrorRange record.Opt[record.VersionRange]
	invalidation   record.Opt[record.Invalidation]
	latency        record.Opt[int64]
	latencyMin     record.Opt[int64]
}

// noAnswer is that of transactions without Reply. Nobody writes to it.
var noAnswer answered

// procedure is which RPC it is.
type procedure struct {
	known                       bool
	flavor                      oncrpc.Flavor // of its credential
	program, version, procedure uint32
}

// name is that of the procedure, empty where it has none.
func (p *procedure) name() string {
	if !p.known {
		return ""
	}
	return nfs.ProcedureName(p.program, p.version, p.procedure)
}

// fill fills in the record's.
func (p *procedure) fill(r *record.Transaction) {
	if !p.known {
		return
	}
	r.Program, r.Version, r.Procedure = record.Some(p.program), record.Some(p.version), record.Some(p.procedure)
	r.Credential = record.Some(p.flavor.String())
	r.ProgramName, r.ProcedureName = named(nfs.ProgramName(p.program)), named(p.name())
}

// What things cost, in bytes of the budget.
const (
	txnCost     = 2048
	segmentCost = 288
	nameCost    = 16
	sizeCost    = 16
	eventCost   = 160
	spanCost    = 16
	waitCost    = 192
)

// maxEvents bounds the timeline of one transaction.
const maxEvents = 4096

// Of a tag: the slot of the transaction, what of it, and how often the slot was
// used, so that a tag of one that is gone is known.
const (
	slotBits = 24
	partBits = 20
	genBits  = 64 - slotBits - partBits

	partCall  = 1<<partBits - 1 // what is no segment's
	partReply = 1<<partBits - 2
)

func (x *txn) tag(part int) rdma.Tag {
	return rdma.Tag(uint64(x.gen)<<(slotBits+partBits) | uint64(part)<<slotBits | uint64(x.slot+1))
}

// tagged is what a tag names: nil when it is gone, or nobody's.
func (t *Table) tagged(tag rdma.Tag) (x *txn, part int) {
	slot := uint64(tag) & (1<<slotBits - 1)
	if slot == 0 || slot > uint64(len(t.slots)) {
		return nil, 0
	}
	x = t.slots[slot-1]
	if x == nil || uint64(x.gen) != uint64(tag)>>(slotBits+partBits) || x.cs == nil {
		return nil, 0
	}
	return x, int(uint64(tag)>>slotBits) & (1<<partBits - 1)
}

// Of says which transaction a tag belongs to, for who describes packets.
func (t *Table) Of(tag rdma.Tag) (id int64, xid record.Hex32, known bool) {
	x, _ := t.tagged(tag)
	if x == nil {
		return 0, 0, false
	}
	return x.rec.ID, x.rec.XID, true
}

// Part says what of its transaction a tag names, and where in it the range
// [from, to) of the memory lies.
func (t *Table) Part(tag rdma.Tag, from, to uint64) (p record.Part) {
	x, part := t.tagged(tag)
	switch {
	case x == nil:
	case part == partCall:
		p.Message = record.EventCall
	case part == partReply:
		p.Message = record.EventReply
	case part < len(x.segments):
		s := &x.segments[part]
		p.Chunk, p.Index = chunkNames[s.kind], int(s.chunk)
		p.Length = x.last(s).end()
		// One operation may go on to the segments behind: it is tagged with the
		// last that it moved.
		for n := 0; from < s.offset && s.index > 0 && x.segments[s.number-1].after() == s && n < lookAt; n++ {
			s = &x.segments[s.number-1]
		}
		before := s.at
		p.Segment = int(s.index)
		if from >= s.offset && to > from && to-s.offset <= uint64(p.Length-before) {
			p.From, p.To = before+int64(from-s.offset), before+int64(to-s.offset)
		}
	}
	return p
}

// begin starts a transaction that a side calls.
func (t *Table) begin(cs *connState, side rdma.Side, xid uint32) *txn {
	var x *txn
	slot := uint32(len(t.slots))
	if n := len(t.free); n > 0 {
		slot, t.free = t.free[n-1], t.free[:n-1]
		x = t.slots[slot]
	} else {
		t.slots, t.gens = append(t.slots, nil), append(t.gens, 0)
		t.free = slices.Grow(t.free, len(t.slots)) // a data packet may be what releases them
	}
	if x == nil { // written to before it is read: the kernel gives pages that are read first twice
		x = &txn{rec: facts{Findings: []string{}, Waits: []record.Wait{}}, answered: &noAnswer}
		t.slots[slot] = x
	} else {
		x.reset()
	}
	x.rec.XID, x.cs, x.side, x.slot, x.gen = record.Hex32(xid), cs, side, slot, t.gens[slot]
	t.last++
	x.rec.ID = t.last
	cs.transactions++
	x.charge(txnCost)
	return x
}

// reset makes an empty one of a transaction that is over. It keeps its storage.
func (x *txn) reset() {
	r := &x.rec
	timeline, findings, waits := r.Timeline[:0], r.Findings[:0], r.Waits[:0]
	segments, names, call := x.segments[:0], x.named[:0], x.inCall.data[:0]
	*x = txn{} // by itself, so that it is not made elsewhere and copied
	r.Timeline, r.Findings, r.Waits = timeline, findings, waits
	x.segments, x.named, x.inCall.data, x.answered = segments, names, call, &noAnswer
}

// charge adds to what a transaction holds of the budget.
func (x *txn) charge(bytes int64) {
	if x.emitted {
		return // all of it was given back
	}
	x.charged += bytes
	x.cs.conn.Share().Charge(bytes)
}

const (
	maxWarm = 256     // free transactions that keep their storage for the next
	maxFree = 1 << 12 // those that have little: Calls are given up in waves, connection after connection
)

// shed lets go of storage that only a large transaction needed.
func (x *txn) trim() {
	if cap(x.rec.Timeline) > 64 {
		x.rec.Timeline = nil
	}
	if cap(x.named) > 64 {
		x.named, x.rec.Operations = nil, nil
	}
	if cap(x.segments) > 16 {
		x.segments = nil
	}
	if cap(x.inCall.data) > 1<<14 {
		x.inCall.data = nil
	}
}

// little says that a transaction has no more storage than one of a few operations.
func (x *txn) isSmall() bool {
	return cap(x.rec.Timeline) <= 4 && cap(x.named) <= 4 && cap(x.segments) <= 2 && cap(x.inCall.data) <= 256
}

// release gives a transaction that was emitted back.
func (t *Table) release(x *txn) {
	t.gens[x.slot] = (x.gen + 1) & (1<<genBits - 1)
	x.cs = nil
	x.answered = &noAnswer
	if n := len(t.free); n >= maxFree || n >= maxWarm && !x.isSmall() {
		t.slots[x.slot] = nil
	}
	t.free = append(t.free, x.slot)
}

// event appends a step to the timeline, which the caller fills in with what else is
// known of it.
func (x *txn) event(at record.Stamp, what record.EventKind, from record.Role) *record.Event {
	t := x.cs.table
	e := &t.unkept
	if n := len(x.rec.Timeline); n < maxEvents {
		x.rec.Timeline = append(x.rec.Timeline, record.Event{})
		e = &x.rec.Timeline[n]
		x.charge(eventCost)
	} else {
		t.budget.Note(budget.Events)
	}
	e.Time, e.Packet, e.Event, e.From = at.Time, at.Packet, what, from
	return e
}

// found notes a rule that the transaction breaks.
func (x *txn) found(r *rule.Rule) {
	if !slices.Contains(x.rec.Findings, r.ID) {
		x.rec.Findings = append(x.rec.Findings, r.ID)
	}
}

// role is what a side is in the transaction.
func (x *txn) role(s rdma.Side) record.Role {
	if s == x.side {
		return record.Requester
	}
	return record.Responder
}

// end takes a transaction off the books. Its record goes out when nothing can
// happen to it any more.
func (t *Table) end(x *txn, status record.Status) {
	cs := x.cs
	x.rec.Status = status
	if x.open {
		cs.open[x.side].remove(x)
		unlinkTxn(cs, &cs.calls, x)
		x.open = false
		if x.checks.isDone {
			cs.checks.credits[x.side].dones--
		}
		if x.listsIncomplete {
			cs.incompleteLists[x.side]--
		}
	}
	t.longCall(x)
	unexpose(cs, x)
	x.ended = t.Clock
	if status == record.NoReply && !cs.conn.Closing() { // of one that is, they are remembered already
		t.rememberUnanswered(x)
	}
	linkTxn(cs, &cs.finished, x)
	t.settling.Push(x)
}

// Expire hands out what has waited long enough.
func (t *Table) Expire() {
	if t.Clock <= t.due && t.settling.Len() < maxSettling {
		return
	}
	for t.settling.Len() > 0 {
		x := t.settling.First()
		if !x.emitted {
			wait := t.options.Linger
			switch {
			case x.pendingFindings > 0:
				wait = max(wait, pendingWait)
			case x.awaitsDelivery:
				wait = max(wait, x.cs.conn.DecidesWithin())
			}
			if t.Clock-x.ended <= wait && t.settling.Len() < maxSettling {
				t.due = x.ended + t.options.Linger
				return
			}
			if _, decided := x.cs.conn.ID(); !decided {
				if t.settling.Len() < maxSettling {
					return
				}
				x.cs.conn.Decide()
			}
			t.emit(x)
		}
		t.settling.Pop()
		t.release(x)
	}
}

// pendingWait is how long the record of a transaction waits for findings about it
// that are pending.
const pendingWait = record.Time(4e9)

// Drain hands out all that has ended, whatever may still happen to it.
func (t *Table) Drain() {
	for ; t.settling.Len() > 0; t.settling.Pop() {
		x := t.settling.First()
		if !x.emitted {
			x.cs.conn.Decide()
			t.emit(x)
		}
		t.release(x)
	}
}

// repeatKey names a Call across connections.
type callKey struct {
	caller, responder *rdma.Host
	xid               uint32
}

func (k callKey) hold() {
	k.caller.Hold()
	k.responder.Hold()
}

func (k callKey) release() {
	k.caller.LetGo()
	k.responder.LetGo()
}

// maxUnanswered bounds how many Calls without Reply are remembered.
const maxUnanswered = 1 << 14

func (x *txn) callKey() callKey {
	c := x.cs.conn
	return callKey{c.Host(x.side), c.Host(x.side.Other()), uint32(x.rec.XID)}
}

// remember keeps the XID of a Call that got no Reply, to know its retransmission
// on another connection.
func (t *Table) rememberUnanswered(x *txn) {
	if x.rec.Call == nil {
		return
	}
	if len(t.unanswered) >= maxUnanswered {
		for k := range t.unanswered {
			k.release()
		}
		clear(t.unanswered)
	}
	k := x.callKey()
	before := len(t.unanswered)
	t.unanswered[k] = x.rec.ID
	if len(t.unanswered) > before {
		k.hold()
	}
}

// repeats notes which transaction a new Call retransmits, if any.
func (t *Table) findRetransmitted(x *txn) {
	if len(t.unanswered) == 0 {
		return
	}
	k := x.callKey()
	if id, known := t.unanswered[k]; known {
		delete(t.unanswered, k)
		k.release()
		x.rec.RetransmitOf = id
	}
}
