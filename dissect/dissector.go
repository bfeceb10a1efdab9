// Package dissect turns frames into records: connections, transactions,
// findings, packets, and a summary. See [Dissector].
//
// It joins the rooms below: link takes a frame apart, internal/rdma makes
// operations of its packets, internal/transaction makes RPCs of those,
// internal/describe shows a packet, internal/budget bounds what is kept. Package
// record is what comes out, package rule what can be wrong.
package dissect

import (
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/describe"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/internal/transaction"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// Handler takes the records, in the order in which they are complete. Fields
// may be nil; which are makes no difference to what the others get. A record is
// good until the function returns; Clone keeps one. After a function has returned
// an error, none is called any more.
type Handler struct {
	Packet      func(*record.Packet) error
	Connection  func(*record.Connection) error
	Transaction func(*record.Transaction) error
	Finding     func(*record.Finding) error
	// Payload gets the rebuilt Payload streams of a transaction, just before
	// its record; either is nil when there is none, or when nobody can tell how
	// long it is. Both are good until the function returns. It needs
	// [Options.Rebuild] or [Options.RPC].
	Payload func(t *record.Transaction, call, reply *record.Payload) error

	// Frame gets each frame with its description, just before Packet gets that.
	Frame func(*capture.Frame, *record.Packet) error

	// Carried is told what packets and FPDUs carry, Stream of the messages that
	// Calls and Replies are, as they are read: for who rewrites packets.
	Carried func(*record.Carried)
	Stream  func(*record.Stream)

	// Begin gets the time of the first frame, before all records.
	Begin func(first record.Time) error
	// Tick is called by [Dissector.Run] some forty times a second, between
	// frames and while none comes: to flush what waits in buffers, or to say how
	// far it is.
	Tick func() error
}

// Options say what to keep.
type Options struct {
	// Rebuild keeps all data that moves, to rebuild Calls and Replies whole.
	Rebuild bool
	// RPC fills in what Calls ask and Replies say, the RPC of [record.Transaction].
	// It implies Decode.
	RPC bool
	// Decode fills in the Decoded of [record.Transaction]. It implies Rebuild.
	Decode bool
	// XIDs are those of the transactions that Rebuild, Decode and RPC are about: of
	// the others no data is kept, and Payload is not called. All when empty.
	XIDs []record.Hex32
	// Tree makes the trees of packets go down to credentials, arguments and
	// results: the Messages of [record.Packet].
	Tree bool
	// Only says what the handlers look at of packets, beside their time, lengths,
	// addresses, transport, ICRC and bytes: the rest may be left out. Where of package
	// header says it of a field. It is all when 0, or where Tree is set.
	Only field.Set
	// Linger is how long, in capture time, a transaction that has ended waits
	// for what still belongs to it: an acknowledgement, a repeat, the NAK that
	// takes it back; 0 is a second.
	Linger record.Time
	// Unanswered is how long, in capture time, later Calls of a connection have
	// to be answered before one that is not is reported; 0 is 30 s.
	Unanswered record.Time
	// Memory is how many bytes all that is kept may take; 0 is 256 MiB. What is
	// given up beyond it is counted in the summary.
	Memory int64
	// Ahead lets [Dissector.Run] dissect some batches ahead of its handlers, in
	// another goroutine, where there is more than one core. They get the same
	// records in the same order; but after one has returned an error, the summary
	// counts what was dissected by then. It is ignored where Live, Rebuild, Decode, RPC
	// or Tree is set, or a handler is Carried or Stream.
	Ahead bool
	// Live says that frames arrive as they happen: while none does, time goes on
	// by this computer's clock, so that what lingers is handed out.
	Live bool
}

// The defaults of Options.
const (
	defaultLinger     = record.Time(1e9)
	defaultUnanswered = record.Time(30e9)
	defaultMemory     = 256 << 20
)

// Dissector reads frames, one after the other, and hands out records. It is not
// safe for concurrent use. What it keeps depends on what is open: connections,
// transactions without Reply, gaps; all of it together is bounded.
type Dissector struct {
	handler Handler
	options Options
	summary record.Summary
	number  int64        // of the frame that is being dissected
	now     record.Stamp // of the frame at hand
	err     error        // that a handler returned

	link     link.Decoder
	layers   layers // of a frame that was not taken apart before
	tcp      rdma.TCP
	budget   *budget.Budget
	tracker  *rdma.Tracker
	table    *transaction.Table
	describe describe.Describer
	sight    sight  // the frame at hand
	ahead    *ahead // nil where handlers are called as records come

	clock clock
	read  time.Time // when the last frames came
}

// New returns a Dissector that hands its records to h.
func New(h Handler, o Options) *Dissector {
	if o.Linger == 0 {
		o.Linger = defaultLinger
	}
	if o.Unanswered == 0 {
		o.Unanswered = defaultUnanswered
	}
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	o.Decode = o.Decode || o.RPC
	d := &Dissector{handler: h, options: o, budget: budget.New(o.Memory)}
	if d.describe.Only = o.Only; o.Only == 0 || o.Tree {
		d.describe.Only = field.Everything
	}
	shown := d.shown()
	d.table = transaction.NewTable(transaction.Options{
		Rebuild: o.Rebuild || o.Decode, XIDs: o.XIDs, Tree: o.Tree && shown, Shown: shown,
		Linger: o.Linger, Unanswered: o.Unanswered,
	}, d.budget)
	d.table.Transaction = handing(d, h.Transaction)
	if h.Payload != nil || o.Decode {
		var reader rpcReader
		d.table.Payload = func(t *record.Transaction, call, reply *record.Payload) {
			if o.Decode {
				reader.read(t, call, reply)
			}
			if o.RPC {
				t.RPC = reader.record(&t.Decoded)
			}
			if h.Payload != nil && d.err == nil {
				d.err = h.Payload(t, call, reply)
			}
		}
	}
	d.tracker = rdma.New(d.table, d.budget)
	d.tracker.Connection, d.tracker.Finding = handing(d, h.Connection), handing(d, h.Finding)
	d.table.Stream = h.Stream
	if h.Carried != nil {
		d.tracker.Carried = func(c *record.Carried, of rdma.Tag) {
			if id, _, known := d.table.Of(of); known {
				c.Transaction = record.Some(id)
			}
			h.Carried(c)
		}
	}
	d.tracker.KeepFPDUs = shown
	d.budget.OnFirst = d.limit
	d.summary = record.Summary{
		Type: "summary", Transactions: map[record.Status]int64{}, Findings: map[record.Severity]int64{}, Evicted: map[string]int64{}, NotJudged: []record.NotJudged{},
	}
	return d
}

// released is a record that notes which event let it go.
type released[T any] interface {
	*T
	Complete(at record.Stamp)
}

// handing is a handler without its error, which d keeps.
func handing[T any, R released[T]](d *Dissector, handler func(*T) error) func(*T) {
	if handler == nil {
		return nil
	}
	return func(r *T) {
		if d.err != nil {
			return
		}
		if R(r).Complete(d.now); d.ahead != nil {
			d.err = d.ahead.put(r)
		} else {
			d.err = handler(r)
		}
	}
}

// limit reports that something was given up, once for each kind.
func (d *Dissector) limit(k budget.Kind) {
	d.tracker.Count(rule.MemoryLimitReached)
	if d.tracker.Finding != nil {
		d.tracker.Finding(&record.Finding{
			Type: "finding", Rule: rule.MemoryLimitReached.ID, Severity: rule.MemoryLimitReached.Severity, Section: rule.MemoryLimitReached.Section,
			Message: "the memory that may be used is full: " + k.String() + " are given up, the longest unused first; the summary counts them",
		})
	}
}

// clock goes on with the capture's times, and never back: times that jump do not
// make anything wait for ever, nor end before its time.
type clock struct {
	last, now record.Time
	idled     record.Time // how far it went on since last, while nothing came
	started   bool
}

// maxStep is the longest that the clock goes on from one frame to the next.
const maxStep = record.Time(60e9)

// at goes on to a time, and says by how much it lies before the one before it.
func (c *clock) at(t record.Time) (back record.Time) {
	if !c.started {
		c.last, c.started = t, true
		c.now = 1
		return 0
	}
	idled := c.idled
	c.idled = 0
	if step := t - c.last; t >= c.last && (step >= 0 && step < maxStep) {
		c.now += max(step-idled, 0)
	} else if t >= c.last {
		c.now += max(maxStep-idled, 0)
	} else {
		back = max(c.last-t, 0)
		if c.last-t < 0 { // further than can be said
			back = 1<<63 - 1
		}
	}
	c.last = t
	return back
}

// idle goes on to a time while nothing comes.
func (c *clock) idle(t record.Time) {
	if step := t - c.last - c.idled; t > c.last && step > 0 {
		c.now += step
		c.idled += step
	}
}

// Frame takes the next frame, for those who read no [capture.Source]; see
// [Dissector.Run]. It copies what it keeps. The error is a handler's.
func (d *Dissector) Frame(f *capture.Frame) error {
	d.number = f.Number
	d.layers.decode(f, &d.link)
	return d.take(f, &d.layers)
}

// take takes the next frame, which was taken apart.
func (d *Dissector) take(f *capture.Frame, l *layers) error {
	if d.err != nil {
		return d.err
	}
	s := &d.summary
	s.Packets++
	s.Bytes += int64(l.length)
	now := stamp(f)
	d.now = now
	if back := d.clock.at(now.Time); back > 0 {
		if s.TimeBackwards++; s.TimeBackwards == 1 {
			s.TimeBackwardsPacket = record.Some(f.Number)
		}
		s.TimeBackwardsNS = max(s.TimeBackwardsNS, int64(back))
	}
	if !s.First.Known() {
		s.First = record.Some(now.Time)
		if d.begin(now.Time); d.err != nil {
			return d.err
		}
	}
	s.Last = record.Some(now.Time)
	if len(f.Data) < f.Length {
		s.Truncated++
	}
	d.table.Clock, d.tracker.Clock = d.clock.now, d.clock.now
	d.frame(f, l, now)
	d.expire()
	d.budget.Enforce()
	return d.err
}

// begin hands out the time of the first frame.
func (d *Dissector) begin(first record.Time) {
	switch {
	case d.handler.Begin == nil:
	case d.ahead != nil:
		d.err = d.ahead.put(first)
	default:
		d.err = d.handler.Begin(first)
	}
}

// Number is that of the frame that is being dissected, or was last: 0 before the
// first.
func (d *Dissector) Number() int64 { return d.number }

// expire hands out what has waited long enough: transactions precede their
// connection. It follows a frame, which may still be about what has waited.
func (d *Dissector) expire() {
	d.table.Expire()
	d.tracker.Tick()
}

// Idle hands out what has waited long enough when no frame comes; now is the
// time on the clock that the capture uses. [Dissector.Run] does it of a live
// source. The error is a handler's.
func (d *Dissector) Idle(now record.Time) error {
	if d.err == nil {
		d.clock.idle(now)
		d.table.Clock, d.tracker.Clock = d.clock.now, d.clock.now
		d.expire()
	}
	return d.err
}

// Finish hands out everything that is still open and returns the summary, behind
// the last [Dissector.Frame]; Run does it itself. The Dissector is not to be used
// any more. The error is a handler's.
func (d *Dissector) Finish() (*record.Summary, error) {
	if d.err == nil {
		d.tracker.Close(d.table.Drain)
		d.tracker.Finish()
	}
	return d.Summary(), d.err
}

// Summary is the summary so far.
func (d *Dissector) Summary() *record.Summary {
	s, t := &d.summary, d.tracker
	s.Connections = t.Connections()
	s.CM, s.NotCaptured = t.CM, t.Lost
	s.NotJudged = append([]record.NotJudged{}, t.NotJudged...)
	for i, status := range record.Statuses {
		if n := d.table.Ended[i]; n > 0 {
			s.Transactions[status] = n
		}
	}
	for i, severity := range record.Severities {
		if n := t.Findings[i]; n > 0 {
			s.Findings[severity] = n
		}
	}
	for k, n := range d.budget.Evicted {
		if n > 0 {
			s.Evicted[budget.Kind(k).String()] = n
		}
	}
	return s
}

// frame takes one frame through link and transport.
func (d *Dissector) frame(f *capture.Frame, l *layers, now record.Stamp) {
	s := &d.summary
	in := &d.sight.input
	shown := d.shown()
	if shown {
		*in = describe.Input{Frame: f, Link: l.link, Packet: &l.packet, TCP: &d.tcp.TCP, Guarded: in.Guarded[:0]}
	}
	taken := false
	switch l.carries {
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
		s.RDMA++
		in.Transport = l.datagram.Transport
		if in.Err = l.err; in.Err != nil {
			s.Malformed++
			break
		}
		if in.ICRC = l.datagram.ICRC; in.ICRC == rocev2.ICRCBad {
			s.ICRCBad++
		}
		d.tracker.Packet(&l.datagram)
		taken = true
	case link.CarriesTCP:
		g := &l.datagram
		d.tcp.Src, d.tcp.Dst, d.tcp.At = g.Src.IP, g.Dst.IP, now
		bad := d.tracker.BadCRC
		if d.tcp.Decode(g.Raw, g.Length, l.offset) && d.tracker.Segment(&d.tcp) {
			s.RDMA++
			s.ICRCBad += d.tracker.BadCRC - bad
			in.Transport, in.FPDUs = rdma.IWARP, d.tracker.FPDUs()
			taken = true
		} else {
			s.Other++
		}
	case link.CarriesFragment:
		s.Fragments++
	case link.CarriesMalformed:
		s.Malformed++
	case link.CarriesUnknownLink:
		s.UnknownLink++
	default:
		s.Other++
		if l.paused != 0 {
			s.PFCPauses++
		}
	}
	if shown {
		d.show(taken)
	}
}

// shown says that somebody is shown packets.
func (d *Dissector) shown() bool { return d.handler.Packet != nil || d.handler.Frame != nil }

// transportName is what a frame's transport is called.
func transportName(c link.Carries) string {
	switch c {
	case link.CarriesRoCEv1:
		return rdma.RoCEv1
	case link.CarriesInfiniBand:
		return rdma.InfiniBand
	}
	return rdma.RoCEv2
}

// sight is a packet that is to be shown: what describes it, and what became of it.
type sight struct {
	input       describe.Input
	marks       record.Marks
	connection  record.Opt[int]
	operation   string
	transaction record.Opt[int64]
	xid         record.Opt[record.Hex32]
	part        record.Part
	place       record.Place
	nobodys     record.UnassignedReason
}

// show notes what became of the packet at hand, and hands out its record.
func (d *Dissector) show(taken bool) {
	s := &d.sight
	in := &s.input
	var happened rdma.Happened
	if taken {
		happened = d.tracker.Happened()
	}
	if happened.Conn != nil {
		in.RPC, in.NFS4 = transaction.Speaks(happened.Conn)
	}
	for _, g := range d.table.Guarded(happened.Op) {
		in.Guarded = append(in.Guarded, describe.Guarded{XID: g.XID, Asked: describe.Asked(g.Asked)})
	}
	if d.options.Tree {
		d.tree(in, happened)
	}
	if d.describe.Only.Has(field.Context) {
		d.whose(s, &happened, taken)
	}
	switch {
	case d.err != nil:
	case d.ahead != nil:
		d.err = d.ahead.put(s)
	default:
		d.err = d.packet(s)
	}
}

// whose notes what a packet belongs to.
func (d *Dissector) whose(s *sight, happened *rdma.Happened, taken bool) {
	s.connection, s.operation, s.transaction, s.xid = record.Opt[int]{}, "", record.Opt[int64]{}, record.Opt[record.Hex32]{}
	s.part, s.nobodys = record.Part{}, ""
	s.marks, s.place = happened.Mark, happened.Place
	c, o, in := happened.Conn, happened.Op, &s.input
	if c != nil {
		id, decided := c.ID()
		s.connection = record.SomeIf(id, decided)
	}
	if o != nil {
		s.operation = o.Kind.String()
		if id, xid, known := d.table.Of(o.Tag); known {
			s.transaction, s.xid = record.Some(id), record.Some(xid)
			s.part = d.table.Part(o.Tag, happened.From, happened.To)
		} else if word, known := o.Word.Get(); known && in.RPC && o.Tag == 0 { // a Send that is not whole yet
			s.xid = record.Some(record.Hex32(word))
		}
	} else if id, xid, known := d.table.Of(happened.Tag); known {
		s.transaction, s.xid = record.Some(id), record.Some(xid)
	}
	if !s.transaction.Known() {
		s.nobodys = nobodys(taken, in, happened)
	}
}

// packet hands out the record of a packet.
func (d *Dissector) packet(s *sight) (err error) {
	p := d.describe.Describe(&s.input)
	p.Marks, p.Connection, p.RDMAOperation, p.Transaction, p.XID = s.marks, s.connection, s.operation, s.transaction, s.xid
	p.Part, p.Place, p.NoTransactionReason = s.part, s.place, s.nobodys
	if d.handler.Frame != nil {
		err = d.handler.Frame(s.input.Frame, p)
	}
	if d.handler.Packet != nil && err == nil {
		err = d.handler.Packet(p)
	}
	return err
}

// tree notes what it takes to describe arguments and results.
func (d *Dissector) tree(in *describe.Input, h rdma.Happened) {
	in.Tree = true
	for _, s := range d.table.Said() {
		in.Said = append(in.Said, describe.Said{Data: s.Data, Length: s.Length, Asked: describe.Asked(s.Asked)})
	}
	in.Asked = func(xid uint32) describe.Asked {
		switch {
		case h.Op != nil && h.Op.Tag != 0 && h.Op.Word == record.Some(xid):
			return describe.Asked(d.table.AskedBy(h.Op.Tag))
		case h.Conn != nil:
			return describe.Asked(transaction.Open(h.Conn, xid))
		}
		return describe.Asked{}
	}
}

// nobodys says why a packet belongs to no transaction.
func nobodys(taken bool, in *describe.Input, h *rdma.Happened) record.UnassignedReason {
	switch {
	case !taken || h.Conn == nil && in.ICRC != rocev2.ICRCBad:
		if taken && in.Transport != "" {
			return record.Handshake
		}
		return record.NotRDMA
	case h.Mark&(record.BadICRC|record.BadChecksum) != 0 && h.Op == nil:
		return record.ReceiverDropped
	case !in.RPC:
		return record.OtherUpperLayer
	case h.Op != nil && h.Op.Tag != 0:
		return record.FinishedTransaction
	case h.Op != nil:
		return record.NoTransaction
	case in.Transport == rdma.IWARP && len(in.FPDUs) == 0, in.Transport != rdma.IWARP && in.Packet.DestQPN == 1:
		return record.Handshake
	}
	return record.UnknownOperation
}
