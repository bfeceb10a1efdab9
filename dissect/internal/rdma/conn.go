package rdma

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/evidence"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Conn is a connection: two halves and what goes on between them.
type Conn struct {
	tracker  *Tracker
	follower Follower
	share    budget.Share
	record   figures

	prev, next *Conn // of the tracker's list, by age
	flows      [2]*flow
	comms      [2]commID // under which the connection manager knows it, by side
	client     int8      // which side is the client, -1 when nobody knows yet

	decided            bool // it has an id
	handshake          bool
	wantSends          bool
	closing            bool
	retired            bool
	mtuReported        bool             // that the path MTU is not used up
	evicted            bool             // of what it held, some was given up for want of memory
	privateDataBadICRC [2]bool          // what a side said in the handshake came with a bad ICRC
	markers            bool             // iWARP: the client wants markers
	fin                record.Opt[Side] // iWARP: who ended its stream first
	since              record.Time      // on the tracker's clock: first seen; then, since when it is closing
	touched            record.Time
	closedAt           record.Time  // on the tracker's clock: when both sides had ended it
	last               record.Stamp // its last packet

	service    record.Opt[uint16]
	ackTimeout record.Opt[uint8]     // Local ACK Timeout of the REQ, as on the wire
	ports      [2]record.Opt[uint16] // by side
	mtu        int                   // in use, bytes; 0 while it is unknown
	asked      int                   // path MTU of the REQ, bytes
	cnps       int64                 // congestion notification packets
	marked     int64                 // packets that a switch marked
	first      record.Stamp          // of both
	learned    int                   // how often packets taught another
	starting   record.Opt[uint32]    // the PSN that the server starts with
	ending     *Ending               // nil while it goes on
	waiting    []*record.Finding     // of a connection without id
}

// figures are what of a connection's record is gathered while it lasts; see
// [record.Connection].
type figures struct {
	ID                  int
	Transport           string
	Established, Closed record.Opt[record.Time]
	ServiceID           record.Opt[record.Hex64]
	Packets             int64
	Retransmitted       int64
	RetransmittedOfNone int64
	OutOfOrder          int64
	Lost                int64
	Naks                int64
	RNRNaks             int64
	First, Last         record.Time
}

// ID is the connection's number; of one that is not decided, records wait.
func (c *Conn) ID() (id int, decided bool) { return c.record.ID, c.decided }

// Wanted says that somebody will get its record.
func (c *Conn) Wanted() bool { return c.tracker.Connection != nil }

// Hearsay says that what a side said of itself in the handshake came in a packet that
// its receiver drops: its ICRC is bad, and the side has shown since then that it fills
// ICRCs in.
func (c *Conn) Hearsay(s Side) bool {
	return c.privateDataBadICRC[s] && c.Fills(s)
}

// Fills says that a side has shown that it fills ICRCs in: its receiver drops what has a
// bad one.
func (c *Conn) Fills(s Side) bool {
	f := c.Host(s)
	return f != nil && f.good
}

// Handshake says that the beginning of the connection is in the capture.
func (c *Conn) Handshake() bool { return c.handshake }

// Lost is how many of its packets the capture has missed, as far as is known.
func (c *Conn) Lost() int64 { return c.record.Lost }

// Proves says that the capture has all of the connection so far: its handshake,
// and every packet that was acknowledged, and that nobody has begun to end it. Only then does something that is
// missing prove anything.
func (c *Conn) Proves() bool { return !c.closing && !c.fin.Known() && c.Whole() }

// Whole is Proves of a connection that may have ended.
func (c *Conn) Whole() bool {
	for _, f := range c.flows {
		if f == nil || f.stream == nil && !f.announced {
			return false
		}
	}
	return c.handshake && c.Complete()
}

// Complete says that no packet is known to be missing from the capture, on either
// half, since it was first seen, and that nothing was given up.
func (c *Conn) Complete() bool {
	return c.record.Lost == 0 && !c.evicted && !c.tracker.recentBadICRC() && !c.Doubtful()
}

// unsure says that a packet was dropped for its ICRC a moment ago: what it was,
// and of which connection, nobody knows. If its receiver has taken it after all,
// an acknowledgement will show that.
func (t *Tracker) recentBadICRC() bool { return t.sawBadICRC && t.Clock-t.lastBadICRC < lingerClose }

// Doubtful says that something was acknowledged that the capture does not have
// yet.
func (c *Conn) Doubtful() bool {
	for _, f := range c.flows {
		if f != nil && f.awaited() {
			return true
		}
	}
	return false
}

// Ended says how the connection ended, if it did, or what was the end of it.
func (c *Conn) Ended() (e Ending, ended bool) {
	if c.ending == nil {
		return e, false
	}
	return *c.ending, true
}

// Closing says that its end has begun.
func (c *Conn) Closing() bool { return c.closing }

// Service is the port that the client asked for.
func (c *Conn) Service() (port uint16, known bool) { return c.service.Get() }

// ServiceID returns the service ID in the client's REQ.
func (c *Conn) ServiceID() record.Opt[record.Hex64] { return c.record.ServiceID }

// Host is that of a side, nil where it is not known.
func (c *Conn) Host(s Side) *Host {
	if f := c.flows[s]; f != nil {
		return f.src
	}
	if f := c.flows[s.Other()]; f != nil {
		return f.dst
	}
	return nil
}

// Client is the side that opened the connection.
func (c *Conn) Client() (s Side, known bool) { return Side(max(c.client, 0)), c.client >= 0 }

// SetClient says which side that is, where the handshake did not tell.
func (c *Conn) SetClient(s Side) { c.client = int8(s) }

// WantSends says whether the bytes of Sends are wanted.
func (c *Conn) WantSends(yes bool) { c.wantSends = yes }

// IsIWARP says which transport it is.
func (c *Conn) IsIWARP() bool { return c.record.Transport == IWARP }

// Share is what the connection holds of the budget.
func (c *Conn) Share() *budget.Share { return &c.share }

// Follower is who is told what happens.
func (c *Conn) Follower() Follower { return c.follower }

// Where says what a finding is about.
type Where struct {
	XID       record.Opt[uint32]
	At        record.Stamp
	Blames    record.Opt[Side]
	Operation string // what the RPC was; empty while that is not known
}

// End is what a side is called; where nobody knows, the one that was seen first is
// taken for the client.
func (c *Conn) End(s Side) record.End {
	if client, _ := c.Client(); s == client {
		return record.Client
	}
	return record.Server
}

// congested reports what a connection met of congestion, once it is over.
func (c *Conn) reportCongestion() {
	if c.cnps+c.marked > 0 {
		c.Report(rule.Congestion, Where{At: c.first}, "the network was congested: receivers sent %d congestion notification packets, and switches marked %d packets", c.cnps, c.marked)
	}
	c.cnps, c.marked = 0, 0
}

// meets counts a packet that tells of congestion.
func (c *Conn) countCongestion(n *int64, at record.Stamp) {
	if c.cnps+c.marked == 0 {
		c.first = at
	}
	*n++
}

// NotJudged counts a violation that the capture does not prove; see
// [Tracker.NotJudged].
func (c *Conn) NotJudged(r *rule.Rule, gap evidence.Gap, at record.Stamp) {
	c.tracker.countNotJudged(r.ID, gap.Name(), at)
}

// Report reports that a rule was broken. The message is only worded when somebody
// listens.
func (c *Conn) Report(r *rule.Rule, where Where, format string, args ...any) {
	c.tracker.Count(r)
	if c.tracker.Finding == nil {
		return
	}
	f := &record.Finding{Type: "finding", Rule: r.ID, Severity: r.Severity, Section: r.Section, Message: fmt.Sprintf(format, args...)}
	if r.TCP != "" && c.IsIWARP() {
		f.Section = r.TCP
	}
	f.Operation = record.SomeIf(where.Operation, where.Operation != "")
	if xid, known := where.XID.Get(); known {
		f.XID = record.Some(record.Hex32(xid))
	}
	if side, known := where.Blames.Get(); known && c.client >= 0 {
		f.AtFault = record.Some(c.End(side))
	}
	if where.At.Packet != 0 {
		f.Packet, f.Time = record.Some(where.At.Packet), record.Some(where.At.Time)
	}
	if !c.decided {
		if len(c.waiting) < maxWaiting {
			c.waiting = append(c.waiting, f)
			c.share.Charge(findingCost)
		}
		return
	}
	f.Connection = record.Some(c.record.ID)
	c.tracker.Finding(f)
}

// A connection without id has at most so many findings to its name.
const maxWaiting = 1024

// What things cost, in bytes of the budget: what they take in memory, and their
// share of maps and pools.
const (
	connCost    = 4096
	flowCost    = 1024
	findingCost = 512
	opCost      = 360
	entryCost   = 40
	heldCost    = 96
	spanCost    = 16
)

// half is one direction of a connection: the packets that one end sends. Its
// requests (Sends, Writes, Read Requests) have sequence numbers of their own; on
// InfiniBand its responses carry the PSNs of the other direction's requests.
type flow struct {
	conn          *Conn
	src, dst      *Host
	side          Side        // of the sender
	sendTruncated bool        // buffer ends before the Send does
	refusals      int16       // fatal ones
	refused       *Refusal    // the first fatal one: nothing that comes later is accepted; nil if there was none
	qpn           uint32      // InfiniBand: of the queue pair that it goes to
	route         *route      // InfiniBand: from src to dst
	stream        *stream     // iWARP: the same, and where it stands
	seq           uint64      // operations so far
	seen          bool        // it has sent a packet
	lateStart     bool        // its first packets are not in the capture
	missing       bool        // packets of it are missing from the capture
	silent        bool        // it was not seen to answer requests that ask for it
	asked         int16       // such requests of the peer since its last packet
	receiver      receiver    // InfiniBand: how far the other end has come with its requests
	accepted      record.Time // when the latest operation of which that is known was accepted
	burst         burst
	signals       signals
	ops           ledger     // what its sequence numbers belong to
	window        *window    // requests, or segments, that came early; nil before the first
	send          *Operation // the Send that is being put together
	buffer        []byte     // what was captured of that, from its start
	write         *Operation // the RDMA Write that is going on
	retries       retries
	placement     *placement // nil when nobody asks for places

	// InfiniBand:
	started            bool
	announced          bool   // the handshake told the PSN that it starts with
	expect             uint32 // the PSN of the next request
	psnLowerBound      bool   // expect is a lower bound: a Read of unknown extent came last
	acked              uint32 // the last PSN that the other end acknowledged
	hasAck             bool
	ackedEarly         bool   // something was acknowledged before the first request was captured
	earlyAck           uint32 // the PSN of that
	gapFrom            uint32 // PSNs that were given up as lost: [gapFrom, gapTo)
	gapTo              uint32
	acksSeen           bool // this end acknowledged something while the other direction was unknown
	lastAck            uint32
	unmatchedResponses int32 // responses to a request that was not seen, in one run
	unmatchedPSN       uint32

	search
}

// peer is the half in the other direction, nil when it was never seen.
func (f *flow) peer() *flow { return f.conn.flows[f.side.Other()] }

// doubtful says that something was acknowledged that the capture does not have
// yet.
func (f *flow) awaited() bool {
	if w := f.stream; w != nil {
		fin := int32(0)
		if w.fin { // it takes a sequence number
			fin = 1
		}
		return w.known && w.acked && octets.delta(w.ackedTo, w.next) > fin
	}
	return f.started && f.hasAck && psns.delta(f.acked, f.expect) >= 0
}

// heard notes a packet of a half; asks is set if its receiver has to respond.
func (f *flow) notePacket(asks bool) {
	f.seen, f.asked = true, 0
	if peer := f.peer(); asks && peer != nil {
		if peer.asked++; peer.asked >= silentAfter {
			peer.silent = true
		}
	}
}

// silentAfter is how many requests that ask for a response a side may leave
// without any packet, before its packets are taken to be missing from the capture.
const silentAfter = 16

// Gaps returns what is missing of a side from the capture, as far as packets show
// it, and what is missing of the connection and of the capture.
func (c *Conn) Gaps(s Side) (g evidence.Gap) {
	set := func(is bool, gap evidence.Gap) {
		if is {
			g |= gap
		}
	}
	set(!c.handshake, evidence.NoHandshake)
	set(c.evicted, evidence.Evicted)
	set(c.closing || c.fin.Known(), evidence.Closing)
	set(c.tracker.unordered, evidence.Unordered)
	set(c.tracker.recentBadICRC(), evidence.Awaited)
	f := c.flows[s]
	if f == nil {
		return g | evidence.Late | evidence.Awaited
	}
	set(f.missing, evidence.Missing)
	set(f.awaited() || !f.seen, evidence.Awaited)
	set(f.stream == nil && !f.announced && f.seq < 2, evidence.Awaited) // nothing shows yet what it sent besides
	set(f.silent, evidence.Silent)
	set(f.lateStart || f.stream == nil && !f.announced, evidence.Late)
	return g
}

// Disordered notes that the packets of the capture are not in the order in which
// they were sent.
func (c *Conn) Disordered() { c.tracker.unordered = true }

// Ending is how a connection ended, as far as this room knows.
type Ending struct {
	How     record.Ending
	By      record.Opt[Side]
	At      record.Stamp
	Reason  string
	Repeats int64
}

// stall is what a half repeats without ever being acknowledged.
type retries struct {
	seq     uint32
	repeats uint32
	at      record.Stamp
}

// gaveUp is the half that repeated something in vain, nil when none did.
func (c *Conn) exhausted() *flow {
	for _, f := range c.flows {
		if f != nil && f.retries.repeats >= exhaustedAfter {
			return f
		}
	}
	return nil
}

// stalls counts a repeat of what was not acknowledged yet: the same, again and
// again.
func (f *flow) noteRetry(c circle, seq uint32, unacked bool, at record.Stamp) {
	switch s := &f.retries; {
	case !unacked:
		*s = retries{}
	case s.repeats == 0 || c.delta(seq, s.seq) < 0:
		*s = retries{seq, 1, at}
	case seq == s.seq:
		s.repeats = max(s.repeats+1, s.repeats) // as many as can be counted
		s.at = at
	}
}

// inVain is how many repeats in a row, none acknowledged, are a side that got no
// answer any more.
const exhaustedAfter = 3

// ends notes what ends a connection; the first reason stays.
func (c *Conn) ends(e Ending) {
	if c.ending != nil {
		return
	}
	if f := c.exhausted(); f != nil && (e.How == record.EndDisconnect || e.How == record.EndReset || e.How == record.EndReused) {
		e = Ending{How: record.EndRetries, By: record.Some(f.side), At: f.retries.at, Repeats: int64(f.retries.repeats)}
	}
	ending := e
	c.ending = &ending
}

// ended is the record of that.
func (c *Conn) ended() (r record.Opt[record.Ended]) {
	e, known := c.Ended()
	if !known {
		f := c.exhausted()
		if f == nil {
			return r
		}
		e = Ending{How: record.EndSilence, At: f.retries.at, Repeats: int64(f.retries.repeats)}
	}
	end := record.Ended{
		How: e.How, Packet: record.SomeIf(e.At.Packet, e.At.Packet != 0), Reason: record.SomeIf(e.Reason, e.Reason != ""),
		Retransmissions: record.SomeIf(e.Repeats, e.Repeats > 0),
	}
	if by, told := e.By.Get(); told {
		end.By = record.Some(c.End(by))
	}
	return record.Some(end)
}

// makeRecord makes the record but for the follower's part. It is good until the next.
func (c *Conn) makeRecord() *record.Connection {
	r, f := &c.tracker.finished, &c.record
	client, _ := c.Client()
	*r = record.Connection{
		Type: "connection", ID: f.ID, Transport: f.Transport, Client: c.endpoint(client), Server: c.endpoint(client.Other()),
		Established: f.Established, Closed: f.Closed, Ended: c.ended(), Handshake: "missed",
		ServiceID: f.ServiceID, PathMTU: record.SomeIf(c.mtu, c.mtu != 0),
		Packets: f.Packets, Retransmitted: f.Retransmitted, RetransmittedUnassigned: f.RetransmittedOfNone, OutOfOrder: f.OutOfOrder,
		NotCaptured: f.Lost, Naks: f.Naks, RNRNaks: f.RNRNaks, First: f.First, Last: f.Last,
	}
	if c.handshake {
		r.Handshake = "seen"
	}
	return r
}

// endpoint is what is known of one side.
func (c *Conn) endpoint(s Side) (e record.Endpoint) {
	if a := c.Host(s); a != nil && a.Address != (Address{}) {
		e.Address = record.Some(a.String())
	}
	e.Port = c.ports[s]
	if f := c.flows[s.Other()]; f != nil && f.stream == nil { // the packets to it name its queue pair
		e.QPN = record.Some(record.Hex24(f.qpn))
	}
	return e
}
