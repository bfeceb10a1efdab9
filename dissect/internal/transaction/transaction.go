// Package transaction turns RDMA operations into RPCs: Calls and Replies, the memory that they
// expose and the bytes that move there, Payload streams, credits and invalidations. It does not
// depend on packets, PSNs, TCP or the transport.
//
// A [Table] creates a connState for every connection (connstate.go), which receives the events of
// the connection. message.go distinguishes Calls from Replies and starts and completes
// transactions, memory.go finds the transaction of an RDMA operation, events.go records
// acknowledgements, retransmissions and NAKs, payload.go decodes the RPC messages, check.go and
// check_*.go check the rules, and finish.go makes the record.
package transaction

import (
	"encoding/binary"
	"hash/maphash"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/memory"
	"github.com/rdmadump/rdmadump/dissect/internal/path"
	"github.com/rdmadump/rdmadump/dissect/internal/ports"
	"github.com/rdmadump/rdmadump/dissect/internal/queue"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/internal/shares"
	"github.com/rdmadump/rdmadump/dissect/internal/upper"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
)

var be = binary.BigEndian

// Options say which data is kept, and for how long.
type Options struct {
	// Rebuild keeps all data that moves, to rebuild complete Calls and Replies.
	Rebuild bool
	// XIDs are the XIDs of the transactions that Rebuild applies to; if empty, it applies to all.
	XIDs []record.Hex32
	// Tree keeps the Sends that a packet completes until [Table.CompletedSends] is called.
	Tree bool
	// Shown keeps the Replies of a packet under RPCSEC_GSS until [Table.Guarded] is called.
	Shown bool
	// Files resolves the files that transactions act on.
	Files bool
	// Shares is set if the fields Shares and Meanwhile of transactions are used, and Tasks if tasks and the field RetryOf are.
	Shares, Tasks bool
	// Connections is set if the records of connections are used.
	Connections bool
	// Linger is the time for which a transaction that has ended waits for later packets: an
	// acknowledgement, a retransmission, or a NAK that refuses its Reply.
	Linger record.Time
	// Ports says which ports carry RPC and which do not, in addition to the known ones.
	Ports []ports.Port
	// Unanswered is the time for which later Calls have to be answered before a Call without Reply
	// is reported.
	Unanswered record.Time
	// Position is where the capture was taken.
	Position record.Position
}

// Table contains the transactions of all connections.
type Table struct {
	// Transaction receives the record of each transaction when no later packet can change it.
	// Payload receives the rebuilt Payload streams just before.
	Transaction func(*record.Transaction)
	// Located, if not nil, returns where the packets between a client and a server were captured, as the capture says.
	Located func(client, server rdma.Address) record.Place
	// Task receives the record of each task that was put off or repeated, when nothing can repeat it any more.
	Task    func(*record.Task)
	Payload func(t *record.Transaction, call, reply *record.Payload)
	// Message, if not nil, receives the decoded messages.
	Message func(*wiremap.Message)
	// NotJudged counts violations that the capture does not prove, by rule and gap, in the order in
	// which they first occurred.
	NotJudged []record.NotJudged
	// Refuted counts the connections whose packets refute where the capture was taken, by place and source.
	Refuted []record.RefutedPosition
	// Ended counts transactions by status, in the order of [record.Statuses].
	Ended [len(record.Statuses)]int64
	// Requests is the number of requests, whose first attempts are among these transactions, and Unanswered that of requests without a Reply.
	Requests, Unanswered int64
	// Clock is the time by which transactions wait. It never goes back. The owner of the table sets
	// it before each packet.
	Clock record.Time
	// Undescribed means that the current packet is not described, so that its Sends need not be kept.
	// The owner of the table sets it before each packet.
	Undescribed bool

	*ports.Ports // which ports carry RPC
	options      Options
	budget       *budget.Budget

	unannounced  rule.Once // a capture gets the finding InvalidationUnannounced only once
	emptySegment rule.Once // and EmptySegment

	conns     []*connState // by tag; nil if the place is free
	freeConns []rdma.Tag

	slots  []*txn   // nil if the slot is free
	gens   []uint32 // number of times that each slot was used
	free   []uint32 // free slots
	unused queue.FreeList[txn]

	transfers memory.Transfers

	settling queue.Queue[*txn]
	due      record.Time // no transaction in settling is due before this time
	last     int64       // last id

	calls      map[callKey]*txn     // the latest Call with each XID whose record was not handed out
	unanswered map[callKey]pastCall // the same of Calls without a Reply, whose records were handed out
	tasks      tasks
	attempts   record.Attempts[struct{}]
	seed       maphash.Seed // of arguments

	sessions  map[sessionID]session // of NFSv4.1
	destroyed bool                  // sessions may have some that were destroyed

	protocols     upper.Protocols
	header        rpcrdma.Header // of the current Send
	plain         rpcrdma.Header // stands for the header of the current Send if it has none
	rpc           oncrpc.Header
	longRPC       oncrpc.Header // of a Long Call
	session       nfs.Message   // Reply to a CREATE_SESSION
	scratch       []byte
	body          rpcBody            // storage of the decoded body of the current message
	record        record.Transaction // the record that is handed out
	unkept        record.Event       // receives the events of a full timeline
	storage       storage            // of the record
	evidence      []int64            // the packet numbers of waits
	rebuild       rebuilder
	completed     []CompletedSend
	guarded       []Guarded
	completedData []byte // of completed
	mapped        wiremap.Message
	machines      machines
	files         *fileTable // nil if Options do not ask for files
}

// NewTable returns a table whose memory is charged to a budget.
func NewTable(o Options, b *budget.Budget) *Table {
	t := &Table{
		options: o, budget: b, Ports: ports.New(o.Ports), calls: map[callKey]*txn{}, unanswered: map[callKey]pastCall{},
		attempts: record.Attempts[struct{}]{},
		tasks:    tasks{putOff: map[taskKey][]*chain{}, sessions: map[hostPair]record.Time{}, budget: budget.New(b.Limit / 8)},
		seed:     maphash.MakeSeed(), storage: newStorage(), body: rpcBody{message: nfs.Message{Limit: -1}},
	}
	if o.Files {
		t.files = newFileTable(b)
	}
	return t
}

// story is the part of a transaction's record that is filled in while it lasts; see
// [record.Transaction].
type story struct {
	ID            int64
	XID           record.Hex32
	Retransmitted [2]uint32 // packets, by side
	RetransmitOf  int64     // 0 for none
	Request       int64
	Attempt       int
	RetryOf       int64       // 0 for none
	Try           int         // 0 for the first, and for another attempt
	FirstTry      record.Time // when the first try was sent
	Status        record.Status
	Operations    []string
	Minor         record.Opt[uint32] // of the COMPOUND
	Call          *record.Message
	Timeline      []record.Event
	Waits         []record.Wait
	Findings      []string
	Malformed     record.Opt[string]
	HeldBackBy    int64 // 0 for none
	disordered    bool  // the timeline may not be in the order of its packets
}

// move moves an event to another packet.
func (s *story) move(e *record.Event, to record.Stamp) {
	e.Time, e.Packet = to.Time, to.Packet
	s.disordered = true
}

// endWaits removes the waits that began when the RPC was over.
func (s *story) endWaits(at record.Time) {
	s.Waits = slices.DeleteFunc(s.Waits, func(w record.Wait) bool { return w.From >= at })
}

// found notes that a finding is about the transaction, and about which of its messages.
func (s *story) found(r *rule.Rule, inCall bool) {
	if r.Malforms && r.Severity == record.Error && s.Malformed.Or("reply") == "reply" {
		s.Malformed = record.Some(map[bool]string{true: "call", false: "reply"}[inCall])
	}
	if !slices.Contains(s.Findings, r.ID) {
		s.Findings = append(s.Findings, r.ID)
	}
}

// progress is how far a transaction has come.
type progress struct {
	active     record.Stamp // its latest packet
	burst      int64        // number of the latest burst of retransmissions that it has a packet in
	replyAgain bool         // the Reply was retransmitted
}

// seen notes a packet of the transaction, and seenLate one that may have been sent before the latest.
func (p *progress) seen(at record.Stamp) { p.active = at }

func (p *progress) seenLate(at record.Stamp) {
	if p.active.Before(at) {
		p.active = at
	}
}

// txn is a transaction.
type txn struct {
	rec story
	cs  *connState

	side              rdma.Side // the caller
	state             state
	repeatedElsewhere bool // the requester sent the Call again on another connection
	form              callForm
	control           bool // the Call creates or destroys an RPCSEC_GSS context
	namedAll          bool // all operations of a COMPOUND Call are known

	prev, next *txn        // of the connection's open or finished transactions, by age
	ended      record.Time // on the table's clock

	memory  memory.Regions[txn] // that the Call exposes
	charged int64               // bytes of the budget

	callSeq  uint64 // of the Send that contains the Call
	progress progress
	signals  path.Counts // when the Call was captured
	turn     shares.Turn

	call       record.Message
	rendezvous *rendezvous // nil unless it is an RPC to rpcbind or mountd
	*answered              // never nil
	ownAnswer  *answered   // its storage, nil if it had no Reply yet
	checks     txnChecks
	procedure  procedure
	arguments  arguments
	callKey    callKey // in the table's calls
	wants      wanted
	chain      *chain       // nil unless it is one of several Calls of a task, or was put off
	identity   identity     // of the caller
	owner      *clientOwner // nil if the Call does not name the client

	writeVerifier record.Opt[record.Hex64] // of WRITE or COMMIT
	sequenceFlags uint32                   // status flags of SEQUENCE
	copyPromised  bool                     // the server goes on with a COPY
	bytesAsked    record.Opt[int64]        // by READs
	bytesRead     record.Opt[int64]        // by READs that succeeded
	bytesWritten  record.Opt[int64]        // by WRITEs that succeeded
	files         *fileState               // nil if there are none, or if Options do not ask for them
	gss           oncrpc.Service
	gssProcedure  record.Opt[uint32] // of an RPCSEC_GSS credential that was captured
	path          *pathTimes         // nil without several capture points
	behind        *behind            // nil if no RDMA Read of it stood behind those of others
	inCall        inlineStream
	named         []string // storage of rec.Operations
	slot          uint32
	gen           uint32 // number of times that the slot was used
}

// answered is the part of a transaction that its Reply adds.
type answered struct {
	answer         record.Message
	seq            uint64 // of the Send that contains the Reply
	inReply        inlineStream
	sizes          []int64 // number of bytes in each Write chunk, according to the Reply
	rpcStatus      record.Opt[string]
	nfsStatus      record.Opt[string]
	rdmaError      record.Opt[string]
	rdmaErrorRange record.Opt[record.VersionRange]
	invalidation   record.Opt[record.Invalidation]
	meanwhile      record.Opt[record.Meanwhile]
	latency        record.Opt[int64]
	latencyMin     record.Opt[int64]
	minPacket      int64 // of the copy of the Reply with which latencyMin ends; 0 if it is not another one
}

// noAnswer is shared by all transactions without Reply. It is never written to.
var noAnswer answered

// procedure identifies the procedure of an RPC.
type procedure struct {
	known                       bool
	flavor                      record.Opt[oncrpc.Flavor] // of its credential
	rpc                         uint32                    // version of RPC
	program, version, procedure uint32
}

// equal reports whether two known procedures are the same.
func (p *procedure) equal(o *procedure) bool {
	return p.program == o.program && p.version == o.version && p.procedure == o.procedure
}

// name returns the name of the procedure, or "" if it has none.
func (p *procedure) name() string {
	if !p.known {
		return ""
	}
	return nfs.ProcedureName(p.program, p.version, p.procedure)
}

// fill fills in the procedure in a record.
func (p *procedure) fill(r *record.Transaction) {
	if !p.known {
		return
	}
	r.Program, r.Version, r.Procedure = record.Some(p.program), record.Some(p.version), record.Some(p.procedure)
	if flavor, known := p.flavor.Get(); known {
		r.Credential = record.Some(flavor.String())
	}
	r.ProgramName, r.ProcedureName = named(nfs.ProgramName(p.program)), named(p.name())
}

// The costs in bytes of the budget.
const (
	txnCost     = 2048
	segmentCost = 288
	nameCost    = 16
	sizeCost    = 16
	eventCost   = 160
	spanCost    = 16
	waitCost    = 192
)

// maxEvents is the maximum length of the timeline of one transaction.
const maxEvents = 4096

// A tag contains the slot of the transaction, its part, and the number of times that the slot was
// used. The last of these shows that a tag belongs to a transaction that is gone.
const (
	slotBits = 24
	partBits = 20
	genBits  = 64 - slotBits - partBits

	partCall  = 1<<partBits - 1 // the parts that are not segments
	partReply = 1<<partBits - 2
)

func (x *txn) tag(part int) rdma.Tag {
	return rdma.Tag(uint64(x.gen)<<(slotBits+partBits) | uint64(part)<<slotBits | uint64(x.slot+1))
}

// tagged returns the transaction and the part that a tag names, or nil if the transaction is gone.
func (t *Table) tagged(tag rdma.Tag) (x *txn, part int) {
	slot := uint64(tag) & (1<<slotBits - 1)
	if slot == 0 || slot > uint64(len(t.slots)) {
		return nil, 0
	}
	x = t.slots[slot-1]
	if x == nil || uint64(x.gen) != uint64(tag)>>(slotBits+partBits) {
		return nil, 0
	}
	return x, int(uint64(tag)>>slotBits) & (1<<partBits - 1)
}

// Of returns the transaction that a tag belongs to.
func (t *Table) Of(tag rdma.Tag) (id int64, xid record.Hex32, known bool) {
	x, _ := t.tagged(tag)
	if x == nil {
		return 0, 0, false
	}
	return x.rec.ID, x.rec.XID, true
}

// Part returns the part of its transaction that a tag names, and the range of that part at the
// memory [from, to).
func (t *Table) Part(tag rdma.Tag, from, to uint64) (p record.Part) {
	x, part := t.tagged(tag)
	switch {
	case x == nil:
	case part == partCall:
		p.Message = record.EventCall
	case part == partReply:
		p.Message = record.EventReply
	case part < len(x.memory.Segments):
		p = x.memory.Part(&x.memory.Segments[part], from, to)
	}
	return p
}

// begin starts a transaction of a Call by a side.
func (t *Table) begin(cs *connState, side rdma.Side, xid uint32) *txn {
	slot := uint32(len(t.slots))
	if n := len(t.free); n > 0 {
		slot, t.free = t.free[n-1], t.free[:n-1]
	} else {
		t.slots, t.gens = append(t.slots, nil), append(t.gens, 0)
		t.free = slices.Grow(t.free, len(t.slots)) // a data packet must not allocate when it releases slots
	}
	x := t.unused.Take()
	if x == nil {
		x = &txn{rec: story{Findings: []string{}, Waits: []record.Wait{}}, named: []string{}}
	} else {
		reset(x)
	}
	x.rec.XID, x.cs, x.side, x.slot, x.gen, x.answered = record.Hex32(xid), cs, side, slot, t.gens[slot], &noAnswer
	t.slots[slot] = x
	t.last++
	x.rec.ID, x.rec.Request, x.rec.Attempt = t.last, t.last, 1
	cs.messages.begins()
	x.charge(txnCost)
	return x
}

// reset clears a transaction for reuse, but keeps its storage.
func reset(x *txn) {
	k := &x.rec
	timeline, findings, waits := k.Timeline[:0], k.Findings[:0], k.Waits[:0]
	exposed, names, answer := x.memory.Emptied(), x.named[:0], x.ownAnswer
	*x = txn{} // a statement of its own, so that the compiler clears it in place
	k.Timeline, k.Findings, k.Waits = timeline, findings, waits
	x.memory, x.named, x.ownAnswer = exposed, names, answer
}

// addAnswer gives the transaction an empty part for its Reply.
func addAnswer(x *txn) {
	if x.ownAnswer == nil {
		x.ownAnswer = new(answered)
	} else {
		sizes := x.ownAnswer.sizes[:0]
		*x.ownAnswer = answered{}
		x.ownAnswer.sizes = sizes
	}
	x.answered = x.ownAnswer
}

// charge adds bytes to the budget that a transaction uses.
func (x *txn) charge(bytes int64) {
	if x.state == emitted {
		return // its whole charge was returned
	}
	x.charged += bytes
	x.cs.share.Charge(bytes)
}

// trim frees the storage of an emitted transaction that only a large transaction needs.
func (x *txn) trim() {
	if cap(x.rec.Timeline) > 64 {
		x.rec.Timeline = nil
	}
	if cap(x.named) > 64 {
		x.named, x.rec.Operations = nil, nil
	}
	x.memory.Trim()
	x.inCall.data = nil
	if a := x.ownAnswer; a != nil {
		a.inReply.data = nil
		if cap(a.sizes) > 16 {
			a.sizes = nil
		}
	}
}

// maxUnused is the maximum number of emitted transactions whose storage is kept for the next ones.
var maxUnused = 256

// release frees the slot of an emitted transaction.
func (t *Table) release(x *txn) {
	t.gens[x.slot] = (x.gen + 1) & (1<<genBits - 1)
	t.slots[x.slot] = nil
	t.free = append(t.free, x.slot)
	t.unused.Keep(x, maxUnused)
}

// event appends an event to the timeline. The caller fills in its other fields.
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
	if n := len(x.rec.Timeline); n > 1 && compareEvents(&x.rec.Timeline[n-2], e) > 0 {
		x.rec.disordered = true
	}
	return e
}

// insertEvent inserts an event before the event at index i, if the timeline is not too long.
func insertEvent(x *txn, i int, e record.Event) {
	if len(x.rec.Timeline) >= maxEvents {
		x.cs.table.budget.Note(budget.Events)
		return
	}
	x.rec.Timeline = slices.Insert(x.rec.Timeline, i, e)
	x.charge(eventCost)
}

// role returns the role of a side in the transaction.
func (x *txn) role(s rdma.Side) record.Role {
	if s == x.side {
		return record.Requester
	}
	return record.Responder
}
