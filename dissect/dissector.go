// Package dissect turns frames into records: connections, transactions, findings, packets, and
// a summary. See [Dissector].
//
// It connects the packages that do the work: link removes the headers below the transport,
// internal/rdma reconstructs RDMA operations, internal/transaction reconstructs RPCs,
// internal/describe describes packets, and internal/budget limits the memory for analysis
// state. Package record defines the records, and package rule the rules that findings refer to.
package dissect

import (
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/describe"
	"github.com/rdmadump/rdmadump/dissect/internal/ports"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/internal/transaction"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
	"github.com/rdmadump/rdmadump/internal/claim"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// Handler receives the records, in the order in which they become complete. Any field may be
// nil; this does not change the records that the others get. A record is valid until the
// function returns; Clone returns a copy that stays valid. After a function has returned an
// error, no function is called any more.
type Handler struct {
	Packet      func(*record.Packet) error
	Connection  func(*record.Connection) error
	Transaction func(*record.Transaction) error
	Finding     func(*record.Finding) error
	// Task gets the tasks that were put off, or whose Calls were sent more than once, each after the transactions of it.
	Task func(*record.Task) error
	// Operation gets the RDMA operations of all upper layers, each when nothing more can happen to
	// it. The operations of a connection come before the connection.
	Operation func(*record.RDMAOperation) error
	// Payload gets the rebuilt Payload streams of a transaction, just before its record.
	// Each is nil if there is none, or if its length is unknown. Both are valid until the
	// function returns. Payload requires [Options.Rebuild], [Options.Decode] or
	// [Options.RPC].
	Payload func(t *record.Transaction, call, reply *record.Payload) error

	// Why gets what decides about the packet of [Options.Why], each when a packet causes it, by: #12, or #12@server with several capture points.
	Why func(by, what, text string)
	// Signal gets the packets that show congestion.
	Signal func(record.Signal) error

	// Frame gets each frame with its description, just before Packet gets the description, and
	// the position of its payload.
	Frame func(*capture.Frame, *record.Packet, wiremap.StreamOffset) error
	// Observer gets what packets and messages contain. It is for callers that rewrite packets.
	Observer wiremap.Observer

	// Begin gets the time of the first frame, before all records.
	Begin func(first record.Time) error
	// Tick is called by [Dissector.Run] about forty times a second, between frames and while
	// no frame arrives. It can flush buffers or show progress.
	Tick func() error
}

// Options select the work that a Dissector does, and its limits.
type Options struct {
	// OtherOperations leaves the RDMA operations of RPC-over-RDMA out, once it is known that a
	// connection carries it.
	OtherOperations bool
	// Rebuild keeps all data that moves, to rebuild the Payload streams of Calls and Replies.
	Rebuild bool
	// RPC fills in the field RPC of [record.Transaction], the JSON form of decoded arguments
	// and results. It implies Decode.
	RPC bool
	// Decode fills in the field Decoded of [record.Transaction]. It implies Rebuild.
	Decode bool
	// XIDs limits Rebuild, Decode and RPC to transactions with these XIDs. For others, no
	// data is kept and Payload is not called. If it is empty, there is no such limit.
	XIDs []record.Hex32
	// Tree extends the trees of packets to credentials, arguments and results, and fills in
	// the field Messages of [record.Packet].
	Tree bool
	// Unused are fields of [record.Transaction] that the handlers do not use. They are left unknown.
	Unused Fields
	// Files fills in the fields File, FileFrom, FileHandle and FileUses of [record.Transaction].
	Files bool
	// Only is the set of the parts of a packet's description that the handlers use, in
	// addition to time, lengths, addresses, transport, ICRC and bytes. Other parts may be
	// left out. The function Where of package header returns the part that contains a field.
	// 0, or setting Tree, means all parts.
	Only field.Set
	// First and Last limit Packet and Frame of the handler to packets with these numbers, for
	// callers that want to see a few packets of a long capture. If Last is 0, there is no limit.
	First, Last int64
	// Why is the packet that Why of the handler explains.
	Why record.PacketRef
	// Linger is the capture time, in nanoseconds, for which a transaction that has ended waits
	// for packets that still belong to it: an acknowledgement, a retransmission, or a NAK
	// that refuses its Reply. 0 means one second.
	Linger record.Time
	// Unanswered is the capture time, in nanoseconds, after which a Call without a Reply is
	// reported if later Calls of the connection are answered. 0 means 30 seconds.
	Unanswered record.Time
	// Memory is the memory limit for analysis state, in bytes; 0 means 256 MiB. The summary
	// counts the state that was evicted because of the limit.
	Memory int64
	// Ahead lets [Dissector.Run] dissect ahead of the handlers, in another goroutine, if there
	// is more than one core. Handlers get the same records in the same order. But if a
	// handler returns an error, the summary also counts the packets that were dissected
	// ahead. Ahead is ignored if Live, Rebuild, Decode, RPC or Tree is set, or if the handler
	// has an Observer or explains a packet.
	Ahead bool
	// Live means that frames arrive while they are captured. While no frame arrives, capture
	// time advances with the clock of this computer, so that transactions that linger
	// become complete.
	Live bool
	// Points are the names of the capture points, if the frames have [capture.Seen].
	Points []string
	// Window, if not nil, returns the first and the last time of the span whose packets the field Selected of
	// [record.Connection] counts. It gets the time of the first frame.
	Window func(first record.Time) (from, to record.Time)
	// At is where the capture was taken. What the packets show refutes it.
	At record.Position
	// Ports says which TCP and UDP ports carry RPC and which do not, in addition to what the
	// packets show.
	Ports []Port
	// Tunnels are the UDP ports of VXLAN and Geneve, in addition to those that are known.
	Tunnels []Tunnel
}

// Fields is a set of fields of [record.Transaction] that take time to fill in.
type Fields uint8

// The fields.
const (
	Cause   Fields = 1 << iota
	Shares         // Shares and Meanwhile; Cause is made of them, and is left out with them
	Retries        // RetryOf
)

// Tunnel is a UDP port that carries a tunnel.
type Tunnel = link.Tunnel

// Port is a TCP or UDP port that carries RPC, or does not carry it if RPC is false.
type Port struct {
	UDP, RPC bool
	Number   uint16
}

// The defaults of Options.
const (
	defaultLinger     = record.Time(1e9)
	defaultUnanswered = record.Time(30e9)
	defaultMemory     = 256 << 20
)

// Dissector reads frames in order and passes records to its handlers. It is not safe for
// concurrent use. Its memory depends on the open connections, outstanding transactions and
// sequence gaps, and has a limit.
type Dissector struct {
	handler Handler
	options Options
	summary record.Summary
	number  int64           // number of the frame that is being dissected
	now     record.Stamp    // stamp of the current frame
	input   uint16          // that it was read from
	inputs  map[uint16]bool // those that frames were read from; nil until there is a second one
	err     error           // error that a handler returned

	link     link.Decoder
	drops    func() uint64 // the packets that a live source says it dropped; nil if it does not say
	layers   layers        // of a frame that was not decoded by the reader
	tcp      rdma.TCP
	budget   *budget.Budget
	tracker  *rdma.Tracker
	table    *transaction.Table
	describe describe.Describer
	current  packetRef              // the current frame
	causes   claim.Maker            // makes the sentences about transactions
	presence presence               // which hosts sent packets
	untaken  rdma.PacketVerdict     // of a packet that the tracker did not take
	doubles  *doubles               // which packets are in the capture twice; nil before the first packet
	others   others                 // packets that no view of RPCs and connections shows
	selects  func(record.Time) bool // whether Options.Window selects a time; nil without it
	ahead    *ahead                 // nil if handlers are called directly

	clock clock
	read  time.Time // time at which the last frames arrived

	unassignedBad int64 // packets of no connection with a bad ICRC
}

// New returns a Dissector that passes its records to h.
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
	if o.Unused&Shares != 0 {
		o.Unused |= Cause
	}
	d := &Dissector{handler: h, options: o, budget: budget.New(o.Memory)}
	if d.describe.Only = o.Only; o.Only == 0 || o.Tree {
		d.describe.Only = field.Everything
	}
	d.link.Tunnels = o.Tunnels
	shown := d.shown()
	d.table = transaction.NewTable(transaction.Options{
		Rebuild: o.Rebuild || o.Decode, XIDs: o.XIDs, Tree: o.Tree && shown, Shown: shown, Files: o.Files, Connections: h.Connection != nil,
		Shares: h.Transaction != nil && o.Unused&Shares == 0, Tasks: h.Task != nil || h.Transaction != nil && o.Unused&Retries == 0,
		Linger: o.Linger, Unanswered: o.Unanswered, Ports: portsOf(o.Ports), Position: o.At,
	}, d.budget)
	d.table.Located = d.presence.placeOf
	d.table.Transaction = handing(d, h.Transaction)
	d.table.Task = handing(d, h.Task)
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
	d.tracker.Operation = handing(d, h.Operation)
	d.tracker.Missing, d.tracker.Retired = d.presence.missing, d.presence.retired
	d.tracker.TransactionOf = func(tag rdma.Tag) record.Opt[int64] {
		id, _, known := d.table.Of(tag)
		return record.SomeIf(id, known)
	}
	d.tracker.Wanted = func(c *rdma.Conn) bool {
		if c.Setup().RPC { // not RDMA
			return false
		}
		rpc, _ := d.table.CarriesRPC(c)
		return !o.OtherOperations || !rpc
	}
	if h.Observer != nil {
		d.table.Message = h.Observer.Message
		d.tracker.Payload = func(p *wiremap.Payload, of rdma.Tag) {
			if id, _, known := d.table.Of(of); known {
				p.Transaction = record.Some(id)
			}
			h.Observer.Payload(p)
		}
	}
	if h.Why != nil {
		d.tracker.Why = &rdma.Why{Packet: o.Why.Packet, Name: d.nameOf, Line: h.Why}
	}
	d.tracker.KeepFPDUs, d.tracker.Offsets = shown, h.Frame != nil
	d.budget.OnFirst = d.limit
	d.summary = record.Summary{
		Type: "summary", Transactions: map[record.Status]int64{}, Findings: map[record.Severity]int64{}, Evicted: map[string]int64{}, NotJudged: []record.NotJudged{}, LeftOut: []string{}, OtherProtocols: []record.OtherProtocol{}, MissingFiles: []record.MissingFiles{},
	}
	return d
}

// completed is the interface of records that store the packet with which they became
// complete.
type completed[T any] interface {
	*T
	Complete(at record.Stamp, start record.Time)
}

// handing returns a function that calls a handler and stores its error in d.
func handing[T any, R completed[T]](d *Dissector, handler func(*T) error) func(*T) {
	if handler == nil {
		return nil
	}
	return func(r *T) {
		if d.err != nil {
			return
		}
		if d.options.Points != nil {
			localize(r, d.options.Points)
		}
		if t, is := any(r).(*record.Transaction); is && d.options.Unused&Cause == 0 { // when its packet numbers are those of the points
			t.Cause = d.causes.Of(t)
		}
		if R(r).Complete(d.now, d.summary.First.Or(0)); d.ahead != nil {
			d.err = d.ahead.put(r)
		} else {
			d.err = handler(r)
		}
	}
}

// limit reports that state was evicted because of the memory limit, once for each kind.
func (d *Dissector) limit(k budget.Kind) {
	d.tracker.Count(rule.MemoryLimitReached)
	if d.tracker.Finding != nil {
		d.tracker.Finding(&record.Finding{
			Type: "finding", Rule: rule.MemoryLimitReached.ID, Severity: rule.MemoryLimitReached.Severity, Section: rule.MemoryLimitReached.Section,
			Message: "the memory limit was reached, so state was evicted (" + k.String() + "), the least recently used first; the summary counts it",
		})
	}
}

// clock advances with the times of the capture, and never goes back. Jumps in these times
// neither make anything wait forever nor end it too early.
type clock struct {
	last, now record.Time
	idled     record.Time // time by which the clock advanced since last, while no frame arrived
	started   bool
}

// maxStep is the longest time by which the clock advances from one frame to the next.
const maxStep = record.Time(60e9)

// at advances the clock to a time. It returns by how much the time is earlier than the
// previous one.
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
		if c.last-t < 0 { // The difference overflows.
			back = 1<<63 - 1
		}
	}
	c.last = t
	return back
}

// idle advances the clock to a time while no frame arrives.
func (c *clock) idle(t record.Time) {
	if step := t - c.last - c.idled; t > c.last && step > 0 {
		c.now += step
		c.idled += step
	}
}

// Now returns the capture time: that of the latest frame and, while no frame arrives from a live source,
// what has passed since. It is unknown before the first frame.
func (d *Dissector) Now() record.Opt[record.Time] {
	last, known := d.summary.Last.Get()
	return record.SomeIf(last+d.clock.idled, known)
}

// Open calls visit with the record so far of each open connection. A record is valid until visit
// returns. Only functions of the handler may call Open.
func (d *Dissector) Open(visit func(*record.Connection)) { d.tracker.Open(visit) }

// Frame dissects the next frame. It is for callers that do not use a [capture.Source]; see
// [Dissector.Run]. The frame may be changed after Frame has returned. The error is that of a
// handler.
func (d *Dissector) Frame(f *capture.Frame) error {
	d.number = f.Number
	d.layers.decode(f, &d.link)
	return d.take(f, &d.layers)
}

// take dissects the next frame, whose headers are decoded already.
func (d *Dissector) take(f *capture.Frame, l *layers) error {
	if d.err != nil {
		return d.err
	}
	if v := f.Seen; v != nil && v.Copy != capture.NoCopy {
		return d.copy(f, l)
	}
	if d.tracker.Why != nil && f.Seen != nil {
		d.explain(f)
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
		if d.options.Window != nil {
			from, to := d.options.Window(now.Time)
			d.selects = func(t record.Time) bool { return from <= t && t <= to }
			d.tracker.Selects = d.selects
			s.SelectedDamaged, s.SelectedPauses = record.Some[int64](0), record.Some[int64](0)
		}
		if d.begin(now.Time); d.err != nil {
			return d.err
		}
	}
	if f.Input != d.input && f.Seen == nil {
		d.nextFile(f.Input, now.Time)
	}
	s.Last = record.Some(now.Time)
	if len(f.Data) < f.Length || l.truncated {
		s.Truncated++
		s.SnapshotLength = record.Some(max(s.SnapshotLength.Or(0), int64(len(f.Data))))
	}
	d.table.Clock, d.tracker.Clock = d.clock.now, d.clock.now
	d.frame(f, l, now)
	d.expire()
	d.budget.Enforce()
	return d.err
}

// begin passes the time of the first frame to the handler.
func (d *Dissector) begin(first record.Time) {
	switch {
	case d.handler.Begin == nil:
	case d.ahead != nil:
		d.err = d.ahead.put(first)
	default:
		d.err = d.handler.Begin(first)
	}
}

// Number returns the number of the current or most recent frame, or 0 before the first.
func (d *Dissector) Number() int64 { return d.number }

// signals passes what a packet shows of congestion to the handler, with what the tracker counts for its connection.
func (d *Dissector) signals(l *layers, v *rdma.PacketVerdict, at record.Time) {
	pass := func(kind record.SignalKind, connection record.Opt[int]) {
		s := record.Signal{Time: at, Kind: kind, Connection: connection}
		switch {
		case d.err != nil:
		case d.ahead != nil:
			d.err = d.ahead.signal(s)
		default:
			d.err = d.handler.Signal(s)
		}
	}
	if l.pause.Paused() {
		pass(record.SignalPause, record.Opt[int]{})
	}
	if v.Conn == nil || v.Offset.Dropped || l.datagram.Path.Undelivered() {
		return
	}
	id, marked := v.Conn.Setup().ID, false
	switch l.carries {
	case link.CarriesTCP:
		marked = l.datagram.Class&3 == 3
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
		if l.packet.Opcode.Transport() == rocev2.UD { // a message that opens or closes the connection
			return
		}
		marked = l.datagram.Congested
		if l.packet.Opcode.Info().Kind == rocev2.KindCongestion {
			pass(record.SignalCNP, id)
		}
	}
	if marked {
		pass(record.SignalCE, id)
	}
}

// expire completes the transactions and connections that have waited long enough. Transactions
// precede their connection. It runs after each frame, because the frame may still belong to
// one of them.
func (d *Dissector) expire() {
	d.table.Expire()
	d.tracker.Tick()
}

// Idle completes the transactions and connections that have waited long enough while no frame
// arrives. Now is the current time of the clock that the capture uses. [Dissector.Run] calls
// it for a live source. The error is that of a handler.
func (d *Dissector) Idle(now record.Time) error {
	if d.err == nil {
		d.clock.idle(now)
		d.table.Clock, d.tracker.Clock = d.clock.now, d.clock.now
		d.expire()
	}
	return d.err
}

// Finish completes all open transactions and connections and returns the summary. Callers of
// [Dissector.Frame] call it after the last frame; Run calls it itself. The Dissector must not
// be used afterwards. The error is that of a handler.
func (d *Dissector) Finish() (*record.Summary, error) {
	if d.err == nil {
		d.tracker.Close(d.table.Drain)
		d.tracker.Finish()
		d.table.EndTasks(d.summary.Last.Or(0))
	}
	return d.Summary(), d.err
}

// Summary returns the summary of the frames so far. It is valid until the next frame.
func (d *Dissector) Summary() *record.Summary {
	s, t := &d.summary, d.tracker
	s.Connections = t.Connections()
	s.CM, s.NotCaptured = t.CM, t.Lost
	if t.SawGoodICRC() { // otherwise adapters fill ICRCs in after the point of the capture
		s.ICRCBadUnassigned = d.unassignedBad
	}
	if d.drops != nil {
		s.CaptureDrops = d.drops()
	}
	s.OtherProtocols = d.others.list()
	s.NotJudged = append([]record.NotJudged{}, d.table.NotJudged...)
	s.PositionRefuted = append([]record.RefutedPosition{}, d.table.Refuted...)
	s.Directions, s.OneWay, s.Silences = d.presence.directions(), d.presence.oneWay(), d.presence.all()
	s.Absences, s.StartsNotCaptured, s.EndsNotCaptured = d.presence.lacking(), d.presence.starts, d.presence.ends
	s.PausePorts, s.PausedNS = t.Pauses.Summary(t.Clock)
	if d.options.Points != nil {
		s.Localize(d.options.Points)
	}
	s.Requests, s.Unanswered = d.table.Requests, d.table.Unanswered
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

// nextFile notes that a frame is not of the file of the frame before. The time between the two is perhaps that between two recordings if a file
// begins with the frame: files that were recorded at the same time show that a host was silent.
func (d *Dissector) nextFile(input uint16, at record.Time) {
	s := &d.summary
	last := s.Last.Or(at)
	if d.inputs == nil {
		d.inputs = map[uint16]bool{d.input: s.Last.Known()}
	}
	begins := !d.inputs[input]
	d.input, d.inputs[input] = input, true
	captured := last.Sub(s.First.Or(at))
	for _, u := range s.Unrecorded {
		captured -= u.To.Sub(u.From)
	}
	if pause := at.Sub(last); begins && pause >= 60e9 && pause > captured && len(s.Unrecorded) < 64 {
		s.Unrecorded = append(s.Unrecorded, record.Unrecorded{From: last, To: at})
	}
}

// frame passes one frame to the tracker of its transport.
func (d *Dissector) frame(f *capture.Frame, l *layers, now record.Stamp) {
	s := &d.summary
	in := &d.current.input
	shown := d.shown() && (d.options.Last == 0 || now.Packet >= d.options.First && now.Packet <= d.options.Last)
	d.table.Undescribed = !shown
	if shown {
		*in = describe.Input{Frame: f, Link: l.link, Packet: &l.packet, TCP: &d.tcp.TCP, Guarded: in.Guarded[:0], Records: in.Records[:0]}
	}
	badCRCs := d.tracker.BadCRC
	in.ICRC = rocev2.ICRCUnchecked
	verdict := &d.untaken
	verdict.Mark = 0
	taken := false // the tracker used the packet
	var segment *link.TCP
	w := d.presence.find(&l.datagram, false)
	if h := f.Heads(); h != capture.HeadingUnknown && f.Seen == nil {
		if w == nil && (l.carries == link.CarriesRoCEv2 || l.carries == link.CarriesRoCEv1) {
			w = d.presence.find(&l.datagram, true)
		}
		d.presence.heads(w, h)
	}
	if d.doubled(l, now, w) {
		if s.Doubled++; shown {
			if l.carries != link.CarriesTCP && l.carries != link.CarriesUDP { // What these carry is known only to the trackers, which do not get copies.
				in.Transport, in.Err = l.datagram.Transport, l.err
			}
			d.show(taken, &rdma.PacketVerdict{Mark: record.Duplicated})
		}
		return
	}
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
		verdict, taken = d.tracker.Packet(&l.datagram), true
		if in.ICRC == rocev2.ICRCBad && verdict.Conn == nil {
			d.unassignedBad++
		}
	case link.CarriesTCP:
		g := &l.datagram
		d.tcp.Src, d.tcp.Dst, d.tcp.At, d.tcp.Identification, d.tcp.Class = g.Src.IP, g.Dst.IP, now, g.Identification, g.Class
		bad := d.tracker.BadCRC
		d.tcp.Path = g.Path
		if d.tcp.Decode(g.Raw, g.Length, l.offset) {
			segment = &d.tcp.TCP
		}
		switch {
		case segment == nil:
		case g.Path.Undelivered():
			d.tracker.LostSegment(&d.tcp)
		default:
			verdict, taken = d.tracker.Segment(&d.tcp)
		}
		if taken {
			d.tookSegment(in, verdict, bad)
		} else {
			verdict = &d.untaken // the packet is not RDMA
			verdict.Mark = g.Path.Mark()
			s.Other++
		}
	case link.CarriesUDP:
		if u := (rdma.UDP{
			Src: l.datagram.Src.IP, Dst: l.datagram.Dst.IP, SrcPort: l.srcPort, DstPort: l.dstPort, Payload: l.datagram.Raw,
			Length: l.datagram.Length, BadChecksum: l.badUDP, Class: l.datagram.Class, At: now, Path: l.datagram.Path,
		}); u.Path.Undelivered() {
			verdict, taken = d.tracker.LostDatagram(&u)
		} else if l.plausible {
			verdict, taken = d.tracker.Datagram(&u)
		}
		if taken {
			s.RPC++
			in.Transport = rdma.UDPTransport
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
		if l.pause.Enabled != 0 {
			d.tracker.Pauses.Take(&l.pause, d.presence.hostOf(l.pause.Port), d.tracker.Clock)
		}
		if l.pause.Paused() {
			s.PFCPauses++
			if d.selects != nil {
				s.SelectedPauses = record.Some(s.SelectedPauses.Or(0) + d.selected(now.Time))
			}
		}
	}
	if d.handler.Signal != nil {
		d.signals(l, verdict, now.Time)
	}
	if d.watch(l, now, w, verdict, taken) {
		s.Disordered++
		d.tracker.Unordered()
	}
	d.unlisted(l, now, segment, taken)
	d.count(verdict, in.ICRC == rocev2.ICRCBad && verdict.Offset.Dropped && verdict.Conn == nil || d.tracker.BadCRC > badCRCs, now)
	if shown {
		d.show(taken, verdict)
	}
}

// selected returns 1 if a time is in the span of time whose packets are counted, and 0 otherwise.
func (d *Dissector) selected(t record.Time) int64 {
	if d.selects == nil || d.selects(t) {
		return 1
	}
	return 0
}

// count counts the current packet for the span of time that is selected. Damaged is set if its receiver drops it because
// its ICRC or a CRC in it is bad.
func (d *Dissector) count(v *rdma.PacketVerdict, damaged bool, now record.Stamp) {
	damaged = damaged || v.Mark&record.BadChecksum != 0
	if v.Conn == nil {
		if damaged && d.selects != nil && d.tracker.SawGoodICRC() {
			d.summary.SelectedDamaged = record.Some(d.summary.SelectedDamaged.Or(0) + d.selected(now.Time))
		}
		return
	}
	if damaged || d.selects != nil {
		d.tracker.Select(v.Conn, d.selected(now.Time) > 0, damaged)
	}
}

// copy passes a frame to the handler, for whose packet another frame stands.
func (d *Dissector) copy(f *capture.Frame, l *layers) error {
	if d.handler.Frame == nil {
		return nil
	}
	d.current.input = describe.Input{Frame: f, Link: l.link, Packet: &l.packet, TCP: &d.tcp.TCP}
	d.show(false, &rdma.PacketVerdict{})
	return d.err
}

// tookSegment counts a segment that the tracker used. BadBefore is the number of bad CRCs before it.
func (d *Dissector) tookSegment(in *describe.Input, v *rdma.PacketVerdict, badBefore int64) {
	s := &d.summary
	in.Transport = rdma.IWARP
	if v.Conn != nil {
		in.Transport = v.Conn.Setup().Transport
	}
	if in.Transport != rdma.IWARP {
		s.RPC++
		for _, r := range v.Records {
			in.Records = append(in.Records, describe.Record(r))
		}
		return
	}
	s.RDMA++
	s.ICRCBad += d.tracker.BadCRC - badBefore
	in.FPDUs = v.FPDUs
}

// portsOf returns the ports for the table of transactions.
func portsOf(named []Port) (all []ports.Port) {
	for _, p := range named {
		all = append(all, ports.Port(p))
	}
	return all
}

// shown reports whether a handler gets packets.
func (d *Dissector) shown() bool { return d.handler.Packet != nil || d.handler.Frame != nil }

// transportName returns the name of a frame's transport.
func transportName(c link.Carries) string {
	switch c {
	case link.CarriesRoCEv1:
		return rdma.RoCEv1
	case link.CarriesInfiniBand:
		return rdma.InfiniBand
	}
	return rdma.RoCEv2
}

// packetRef is a packet for the handlers: the input of its description, and the transaction
// that it belongs to.
type packetRef struct {
	input       describe.Input
	marks       record.Marks
	connection  record.Opt[int]
	operation   string
	transaction record.Opt[int64]
	xid         record.Opt[record.Hex32]
	program     record.Opt[uint32]
	part        record.Part
	offset      wiremap.StreamOffset
	unassigned  record.UnassignedReason
}

// show passes the record of the current packet to the handlers. Taken reports whether the
// tracker used the packet; verdict is zero if it did not.
func (d *Dissector) show(taken bool, verdict *rdma.PacketVerdict) {
	s := &d.current
	in := &s.input
	if verdict.Conn != nil {
		in.RPC, in.NFS4 = d.table.CarriesRPC(verdict.Conn)
	}
	for _, g := range d.table.Guarded(verdict.Op) {
		in.Guarded = append(in.Guarded, describe.Guarded{XID: g.XID, Asked: describe.Asked(g.Asked)})
	}
	if d.options.Tree {
		d.tree(in, *verdict)
	}
	if d.describe.Only.Has(field.Context) {
		d.assign(s, verdict, taken)
	}
	switch {
	case d.err != nil:
	case d.ahead != nil:
		d.err = d.ahead.put(s)
	default:
		d.err = d.packet(s)
	}
}

// assign determines the connection, operation and transaction that a packet belongs to.
func (d *Dissector) assign(s *packetRef, verdict *rdma.PacketVerdict, taken bool) {
	s.connection, s.operation, s.transaction, s.xid = record.Opt[int]{}, "", record.Opt[int64]{}, record.Opt[record.Hex32]{}
	s.part, s.unassigned, s.program = record.Part{}, "", record.Opt[uint32]{}
	s.marks, s.offset = verdict.Mark, verdict.Offset
	c, o, in := verdict.Conn, verdict.Op, &s.input
	if c != nil {
		s.connection = c.Setup().ID
	}
	if o != nil {
		if c == nil || !c.Setup().RPC { // RPC over TCP and UDP has no RDMA operations
			s.operation = o.Kind.String()
		}
		if id, xid, known := d.table.Of(o.Tag); known {
			s.transaction, s.xid = record.Some(id), record.Some(xid)
			s.part = d.table.Part(o.Tag, verdict.From, verdict.To)
			asked := d.table.AskedBy(o.Tag)
			s.program = record.SomeIf(asked.Program, asked.Known)
		} else if word, known := o.Word.Get(); known && in.RPC && o.Tag == 0 { // a Send that is not complete yet
			s.xid = record.Some(record.Hex32(word))
		}
	} else if id, xid, known := d.table.Of(verdict.Tag); known {
		s.transaction, s.xid = record.Some(id), record.Some(xid)
	}
	if !s.transaction.Known() {
		s.unassigned = unassignedReason(taken, in, verdict)
	}
}

// packet describes a packet and passes its record to the handlers.
func (d *Dissector) packet(s *packetRef) (err error) {
	p := d.describe.Describe(&s.input)
	p.Marks, p.Connection, p.RDMAOperation, p.Transaction, p.XID = s.marks, s.connection, s.operation, s.transaction, s.xid
	p.Part, p.NoTransactionReason = s.part, s.unassigned
	p.Program, p.Start = s.program, d.summary.First.Or(0)
	if p.Path = nil; s.input.Frame.Seen != nil {
		p.Path = d.seen(s.input.Frame)
	}
	if d.handler.Frame != nil {
		err = d.handler.Frame(s.input.Frame, p, s.offset)
	}
	if v := s.input.Frame.Seen; v != nil && v.Copy != capture.NoCopy {
		return err
	}
	if d.handler.Packet != nil && err == nil {
		err = d.handler.Packet(p)
	}
	return err
}

// tree adds to the input what describing arguments and results needs.
func (d *Dissector) tree(in *describe.Input, h rdma.PacketVerdict) {
	in.Tree = true
	for _, s := range d.table.CompletedSends() {
		in.Said = append(in.Said, describe.Said{Data: s.Data, Length: s.Length, Asked: describe.Asked(s.Asked)})
	}
	in.Asked = func(xid uint32) describe.Asked {
		switch {
		case h.Op != nil && h.Op.Tag != 0 && h.Op.Word == record.Some(xid):
			return describe.Asked(d.table.AskedBy(h.Op.Tag))
		case h.Conn != nil:
			return describe.Asked(d.table.Open(h.Conn, xid))
		}
		return describe.Asked{}
	}
}

// unassignedReason returns the reason why a packet belongs to no transaction.
func unassignedReason(taken bool, in *describe.Input, h *rdma.PacketVerdict) record.UnassignedReason {
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
	case in.Transport == rdma.TCPTransport && in.TCP.Length == 0:
		return record.Handshake
	case in.Transport == rdma.TCPTransport || in.Transport == rdma.UDPTransport:
	case in.Transport == rdma.IWARP && len(in.FPDUs) == 0, in.Transport != rdma.IWARP && in.Packet.DestQPN == 1:
		return record.Handshake
	}
	return record.UnknownOperation
}
