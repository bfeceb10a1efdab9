package rdma

import (
	"encoding/binary"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/queue"
	"github.com/rdmadump/rdmadump/dissect/internal/span"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/rocev2"
)

var (
	be = binary.BigEndian
	le = binary.LittleEndian
)

var ruleLost = rule.CaptureLostPackets

const maxSpans = span.Max

// The transports of connections.
const (
	RoCEv2     = "RoCEv2"
	RoCEv1     = "RoCEv1"
	InfiniBand = "InfiniBand"
	IWARP      = "iWARP"
)

// Times on the tracker's clock for which connections wait.
const (
	lingerClose  = record.Time(5e9)   // a closing connection waits for late packets
	lingerClosed = record.Time(200e6) // a connection that both sides have closed waits for late packets
	decideAfter  = record.Time(1e9)   // a connection without an ID waits for its other direction
	decideAtMost = 256                // number of packets after which it waits no longer
)

// timerQueue is a queue of connections that wait for a time on the tracker's clock, the
// earliest first.
type timerQueue = queue.Queue[*Conn]

// Tracker takes packets and TCP segments one after the other, and follows their
// connections. It is not safe for concurrent use.
type Tracker struct {
	// Connection, if not nil, receives the record of each connection when it is
	// finished. Finding, if not nil, receives the findings.
	Connection func(*record.Connection)
	Finding    func(*record.Finding)
	// Findings counts the findings by severity, in the order of [record.Severities]. CM
	// counts management datagrams, Lost the packets that are missing from the capture,
	// and BadCRC the FPDUs with a bad CRC.
	Findings [len(record.Severities)]int64
	CM       int64
	Lost     int64
	BadCRC   int64
	// BadChecksum counts TCP segments of iWARP that their receiver drops because of
	// their checksum.
	BadChecksum int64
	// Carried, if not nil, receives the content of each packet and FPDU, and the tag of
	// the memory that it belongs to.
	Carried func(c *record.Carried, of Tag)
	// NotJudged counts violations that the capture does not prove, by rule and gap, in
	// the order in which they first occurred.
	NotJudged []record.NotJudged
	// KeepFPDUs makes the tracker keep the FPDUs that a segment completes, for
	// [Tracker.FPDUs].
	KeepFPDUs bool
	// Clock is the time that timers use. It never goes back. The caller sets it to the
	// time of a packet before it passes the packet.
	Clock record.Time

	upper   UpperLayer
	budget  *budget.Budget
	hosts   hosts
	routes  routes
	queues  map[queueKey]*flow
	streams map[streamKey]*flow
	comms   map[commID]*Conn

	conns     Conn // head of the list of all connections, by age
	ids       int
	retired   int
	live      int
	undecided timerQueue
	closing   timerQueue
	closed    timerQueue

	now         record.Stamp // of the current packet
	heldStamp   record.Stamp // when the held packet that is now accepted was captured; packet number 0 if the current one was not held
	verdict     PacketVerdict
	held        rocev2.Packet // a held packet, decoded again
	finished    record.Connection
	cm          cmMessages
	iwarp       decoders
	sawBadICRC  bool        // a packet had a bad ICRC
	lastBadICRC record.Time // on the clock: the latest packet with a bad ICRC
	sawGoodICRC bool        // some sender has shown that it fills ICRCs in
	buffers     buffers
	carried     record.Carried // content of the current packet or FPDU
	owner       Tag            // tag of that content
	number      int64          // of the latest operation
	bursts      int64          // number of bursts so far
	unordered   bool           // the order of the packets in the capture contradicts every order in which they can have been sent
	streamIDs   int64
}

// New returns a tracker that reports to an upper layer.
func New(upper UpperLayer, b *budget.Budget) *Tracker {
	t := &Tracker{
		upper: upper, budget: b, hosts: newHosts(), routes: routes{all: map[ends]*route{}},
		queues: map[queueKey]*flow{}, streams: map[streamKey]*flow{}, comms: map[commID]*Conn{},
	}
	t.conns.prev, t.conns.next = &t.conns, &t.conns
	return t
}

// countNotJudged counts a violation that the capture does not prove because of a gap.
func (t *Tracker) countNotJudged(id, gap string, at record.Stamp) {
	for i := range t.NotJudged {
		if n := &t.NotJudged[i]; n.Rule == id && n.Gap == gap {
			n.Count++
			return
		}
	}
	t.NotJudged = append(t.NotJudged, record.NotJudged{Rule: id, Gap: gap, Count: 1, Packet: record.SomeIf(at.Packet, at.Packet != 0)})
}

// Count counts a finding by its severity.
func (t *Tracker) Count(r *rule.Rule) { t.Findings[slices.Index(record.Severities[:], r.Severity)]++ }

// mark adds marks to the verdict on the current packet. The first operation that is
// named stays.
func (t *Tracker) mark(o *Operation, m record.Marks) {
	if t.verdict.Op == nil {
		t.verdict.Op = o
	}
	t.verdict.Mark |= m
}

// noteBytes notes the bytes of the operation's memory that the current packet moves or
// requests. Several adjacent ranges become one; otherwise the first counts.
func (t *Tracker) noteBytes(o *Operation, from uint64, n int64) {
	p := &t.verdict
	switch {
	case p.Op != nil && p.Op != o || n <= 0:
	case p.From == p.To:
		p.From, p.To = from, from+uint64(n)
	case p.To == from:
		p.To += uint64(n)
	}
}

// Verdict returns the result of the last packet that was taken. It is valid until the
// next one.
func (t *Tracker) Verdict() PacketVerdict { return t.verdict }

// Tick finishes the connections, and assigns the IDs, whose waiting time is over.
func (t *Tracker) Tick() {
	clock := t.Clock
	for t.undecided.Len() > 0 {
		c := t.undecided.First()
		if !c.decided && !c.retired && clock-c.since < decideAfter {
			break
		}
		t.undecided.Pop()
		t.assignID(c)
	}
	for t.closing.Len() > 0 && (t.closing.First().retired || clock-t.closing.First().since > lingerClose) {
		t.finish(t.closing.First())
		t.closing.Pop()
	}
	for t.closed.Len() > 0 && (t.closed.First().retired || clock-t.closed.First().closedAt > lingerClosed) {
		t.finish(t.closed.First())
		t.closed.Pop()
	}
}

// Connections returns the number of records, including those to come.
func (t *Tracker) Connections() int { return t.retired + t.live }

// Close ends the operations in progress on all connections, oldest connection first,
// and calls ended after each connection. [Tracker.Finish] passes the records
// afterwards.
func (t *Tracker) Close(ended func()) {
	for c := t.conns.next; c != &t.conns; c = c.next {
		t.assignID(c)
		t.flush(c)
		ended()
	}
}

// Finish passes the records of all connections to Connection, oldest first.
func (t *Tracker) Finish() {
	for t.conns.next != &t.conns {
		t.finish(t.conns.next)
	}
}

// accepts reports whether the receiver accepts a packet, according to its ICRC. A packet
// with a bad ICRC is dropped if its sender has shown that it fills ICRCs in; some
// captures are taken before the adapter fills them in. A packet of an unknown sender
// with a bad ICRC is accepted only until some sender has shown it, because its address
// may be damaged, too. e contains the known ends of the packet.
func (t *Tracker) accepts(d *Datagram, e *ends) bool {
	switch d.ICRC {
	case rocev2.ICRCUnchecked:
		return true
	case rocev2.ICRCOk:
		t.endsOf(d, e)
		e.src.good, e.src.known, e.dst.known = true, true, true
		t.sawGoodICRC = true
		return true
	}
	t.mark(nil, record.BadICRC)
	t.lastBadICRC, t.sawBadICRC = t.Clock, true
	from := e.src
	if from == nil {
		from = t.hosts.find(&d.Src)
	}
	if from == nil || !from.known {
		return !t.sawGoodICRC
	}
	return !from.good
}

// acceptedBadICRC reports whether the current packet has a bad ICRC and was accepted
// nevertheless.
func (t *Tracker) acceptedBadICRC() bool { return t.verdict.Mark&record.BadICRC != 0 }

// endsOf completes the ends of a datagram, and remembers those that are new.
func (t *Tracker) endsOf(d *Datagram, e *ends) {
	if e.src == nil || e.dst == nil {
		*e = t.hosts.ends(&d.Src, &d.Dst)
	}
}

// Packet takes a packet of InfiniBand's transport.
func (t *Tracker) Packet(d *Datagram) {
	t.now, t.verdict = d.At, PacketVerdict{}
	p := d.Packet
	service := p.Opcode.Transport()
	var e ends // the known ends of the packet
	if service == rocev2.UD {
		if p.DestQPN != 1 {
			return // datagrams of other services, multicast
		}
		t.CM++
		if t.accepts(d, &e) {
			if c := t.handleMAD(d); c != nil {
				t.countFor(c, d.Transport)
			}
		} else {
			t.verdict.Place.Dropped = true
		}
		return
	}
	info := p.Opcode.Info()
	if !info.Known || service == rocev2.RD {
		return
	}
	known := t.toward(d, p.DestQPN, &e)
	if vouched := d.ICRC == rocev2.ICRCOk && known != nil && known.src.good && known.dst.known; !vouched && !t.accepts(d, &e) {
		if f := known; f != nil { // dropped: only the packet count changes
			t.verdict.Conn, t.verdict.Place = f.conn, f.placed(p)
			f.conn.record.Packets++
			f.conn.Report(rule.ICRCBad, Where{At: d.At}, "the packet with PSN %d has a bad ICRC, so its receiver drops it", p.PSN)
		}
		t.verdict.Place.Dropped = true
		return
	}
	f := t.flowOf(known, d, &e)
	c := f.conn
	f.notePacket(info.Request && p.AckReq)
	t.countFor(c, d.Transport)
	if t.wantsPlaces() {
		t.verdict.Place = f.placed(p)
	}
	if d.Congested || p.BTH.FECN {
		c.countCongestion(&c.marked, d.At)
	}
	switch {
	case info.Kind == rocev2.KindCongestion:
		c.countCongestion(&c.cnps, d.At)
	case service == rocev2.UC:
		t.unreliable(f, p, d.At)
	case info.Request:
		if c.handshake && !c.record.Established.Known() && f.side == 0 {
			t.establish(c, d.At)
		}
		t.request(f, d)
	default:
		t.response(f, d)
	}
	t.indexUnpaired(f)
}

// countFor counts the current packet for its connection.
func (t *Tracker) countFor(c *Conn, transport string) {
	t.verdict.Conn = c
	c.record.Transport = transport
	c.record.Packets++
	c.record.Last, c.last = t.now.Time, t.now
	if t.Clock-c.touched > touchEvery || c.touched == 0 {
		c.touched = t.Clock
		t.budget.Touch(&c.share)
	}
	if !c.decided && c.record.Packets >= decideAtMost {
		t.assignID(c)
	}
}

// touchEvery is the resolution of the order of last use. It prevents two connections
// that take turns from being moved in the list for every packet.
const touchEvery = record.Time(10e6)

// unreliable takes a packet of an unreliable connection: it has no retransmissions, and
// missing packets are not captured or lost.
func (t *Tracker) unreliable(f *flow, p *rocev2.Packet, at record.Stamp) {
	if f.started && psns.delta(p.PSN, f.expect) < 0 {
		f.conn.record.OutOfOrder++
		t.mark(nil, record.OutOfOrder)
		return
	}
	if f.started {
		t.skipTo(f, p.PSN, at)
	}
	f.started = true
	t.accept(f, p, at)
}

// newConn starts a connection.
func (t *Tracker) newConn() *Conn {
	c := &Conn{tracker: t, wantSends: true, since: t.Clock, client: -1}
	c.record.First, c.record.Last = t.now.Time, t.now.Time
	c.prev, c.next = t.conns.prev, &t.conns
	c.prev.next, c.next.prev = c, c
	t.live++
	t.budget.Open(&c.share, c)
	c.share.Charge(connCost)
	c.follower = t.upper.Follow(c)
	return c
}

// newAnnouncedConn starts a connection whose handshake was captured.
func (t *Tracker) newAnnouncedConn() *Conn {
	c := t.newConn()
	c.handshake = true
	t.assignID(c)
	return c
}

// assignID assigns a connection its ID, and reports the findings that waited for it.
func (t *Tracker) assignID(c *Conn) {
	if c.decided || c.retired {
		return
	}
	c.decided = true
	c.record.ID = t.ids
	t.ids++
	if t.Finding != nil {
		for _, f := range c.waiting {
			f.Connection = record.Some(c.record.ID)
			t.Finding(f)
		}
	}
	c.share.Charge(-findingCost * int64(len(c.waiting)))
	c.waiting = nil
}

// unlink removes a connection from all tables.
func (t *Tracker) unlink(c *Conn) {
	c.retired = true
	c.prev.next, c.next.prev = c.next, c.prev
	t.live--
	for _, f := range c.flows {
		if f != nil {
			t.removeFlow(f)
		}
	}
	for s := range Side(2) {
		t.removeCommID(c, s)
	}
	t.budget.Close(&c.share)
}

// finish passes the record of a connection to Connection, and forgets the connection. A
// connection is finished a while after it was closed (see Tick), when its queue pair or
// port is reused, when it is evicted, and at the end of the capture.
func (t *Tracker) finish(c *Conn) {
	if c.retired {
		return
	}
	t.assignID(c)
	t.flush(c)
	var r *record.Connection // nil if no record is wanted
	if t.Connection != nil {
		r = c.makeRecord()
	}
	c.follower.Finish(r)
	t.unlink(c)
	t.retired++
	if r != nil {
		t.Connection(r)
	}
	for _, f := range c.flows {
		if f == nil {
			continue
		}
		f.ops, f.window = ledger{}, nil // a timer queue may keep the connection for a while
		t.buffers.back(f.buffer)
		f.buffer = nil
		if f.stream != nil {
			t.buffers.back(f.stream.partial)
			f.stream.partial = nil
		}
	}
}

// flush ends the operations in progress on a connection: no packets follow.
func (t *Tracker) flush(c *Conn) {
	for _, f := range c.flows {
		if f == nil {
			continue
		}
		for !f.window.empty() {
			t.skip(f)
		}
		if f.started && f.hasAck {
			t.skipTo(f, psns.add(f.acked, 1), c.last)
		}
		if f.stream != nil {
			t.beginCarriedPartial(f, len(f.stream.partial))
			t.reportCarried()
		}
		t.breakSend(f)
	}
	for _, f := range c.flows {
		for i := 0; f != nil && i < f.ops.len(); i++ {
			if o := f.ops.entries[f.ops.head+i].op; o.Kind == Read && !o.done && o.Side == f.side {
				t.abandon(o)
			}
		}
	}
	c.follower.Closed(c.last)
	c.reportCongestion()
}

// skip moves past the packets that are missing before the first packet that a flow
// holds.
func (t *Tracker) skip(f *flow) {
	if f.stream != nil {
		t.skipSegments(f)
	} else {
		t.skipGap(f)
	}
}

// establish notes when a connection was established.
func (t *Tracker) establish(c *Conn, at record.Stamp) {
	if !c.record.Established.Known() && !c.closing {
		c.record.Established = record.Some(at.Time)
	}
}

// close notes that a connection ends. Later packets still belong to it, and its record
// follows later.
func (t *Tracker) close(c *Conn, e Ending) {
	if c.closing {
		return
	}
	at := e.At
	c.ends(e)
	c.closing, c.since = true, t.Clock
	c.record.Closed = record.Some(at.Time)
	c.follower.Closing(at)
	t.closing.Push(c)
}

// markClosed notes that both sides of a connection have ended it.
func (t *Tracker) markClosed(c *Conn) {
	if c.closedAt == 0 {
		c.closedAt = t.Clock
		t.closed.Push(c)
	}
}

// markSeen adds the range from lo to hi to the captured part of a Read's response, and
// returns the number of new packets or bytes. The budget counts ranges that the set
// cannot remember.
func (t *Tracker) markSeen(o *Operation, lo, hi int64) (fresh int64) {
	had := len(o.seen)
	if fresh = o.seen.Add(lo, hi); fresh == 0 && had >= maxSpans {
		t.budget.Note(budget.Spans)
	}
	if more := len(o.seen) - max(had, len(o.room)); more > 0 {
		o.conn.share.Charge(spanCost * int64(more))
		o.spans += int32(more)
	}
	return fresh
}

// Evict frees the state of the connection that costs least; see [budget.Owner].
func (c *Conn) Evict() (budget.Kind, bool) {
	t := c.tracker
	c.evicted = true
	if c.follower.Evict(budget.ChunkData) {
		return budget.ChunkData, true
	}
	for _, f := range c.flows {
		if f != nil && !f.window.empty() {
			t.skip(f)
			return budget.HeldPackets, true
		}
	}
	for _, f := range c.flows {
		if f == nil {
			continue
		}
		if cap(f.buffer) > 0 {
			f.sendTruncated = true
			t.dropBuffer(f)
			return budget.SendData, true
		}
		if f.stream != nil && cap(f.stream.partial) > 0 {
			t.dropPartial(f)
			return budget.SendData, true
		}
	}
	for _, f := range c.flows {
		if f != nil && f.ops.len() > 16 {
			t.forgetOldest(f)
			return budget.Operations, true
		}
	}
	if c.follower.Evict(budget.Calls) {
		return budget.Calls, true
	}
	if c.retired {
		return 0, false
	}
	t.finish(c)
	return budget.Connections, true
}

// Decide assigns the connection its ID before the usual time.
func (c *Conn) Decide() { c.tracker.assignID(c) }
