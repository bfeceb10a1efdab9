package rdma

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Conn is a connection: its two flows, and what they have in common.
type Conn struct {
	tracker  *Tracker
	tag      Tag // set by the upper layer
	follower Follower
	share    budget.Share
	charged  int64 // bytes that settle charged to it
	isNoted  bool  // it is among the charges to be made
	setup    Setup
	record   figures

	prev, next *Conn // the tracker's list, by age
	flows      [2]*flow
	comms      [2]commID // communication IDs of the connection manager, by side

	wantSends bool
	closing   bool
	flushed   bool // no packets follow, and the follower knows it
	retired   bool
	reported  struct {
		congestion rule.Once // that the network was congested
		mtu        rule.Once // that the path MTU is not used
		unfilled   rule.Once // that a packet is not filled
	}
	changed   bool             // the network changed what one side sent; see [Path]
	evicted   bool             // state of it was evicted because the memory limit was reached
	unordered bool             // its packets are in an order in which they cannot have been sent
	opened    *opening         // TCP: its handshake; nil if it is not known
	fin       record.Opt[Side] // iWARP: the side that ended its stream first
	since     record.Time      // on the tracker's clock: when it was first seen, or, if it is closing, when it began to close
	touched   record.Time
	closedAt  record.Time  // on the tracker's clock: when both sides had ended it
	last      record.Stamp // its last packet
	unpaused  int64        // frames that had paused a link when it began

	gap      [2]record.Time          // between which the packets passed that were last found missing
	trouble  trouble                 // the latest
	timer    record.Opt[record.Time] // Local ACK Timeout of the REQ; 0 if there is no timer
	reasked  int64                   // requests to open the connection after the first
	mtu      int                     // path MTU in use, bytes; 0 if it is not known
	asked    int                     // path MTU in the REQ, bytes
	learned  int                     // number of path MTUs that were derived from packets
	starting record.Opt[uint32]      // the PSN that the server starts with
	ending   *Ending                 // nil until the connection ends
	waiting  []*record.Finding       // findings that wait until the connection has an ID
	records  []waitingRecord         // records of operations that wait for it, too

	operations int64 // memory of the operations, in bytes
}

// Setup is what the capture shows about the beginning of a connection.
type Setup struct {
	ID             record.Opt[int]          // number of the connection; unknown until it is assigned
	Transport      string                   // as in the connection's record; empty before the first packet
	IWARP          bool                     // the transport is iWARP
	RPC            bool                     // the transport is TCP or UDP without RDMA: each Send is an RPC message
	Handshake      bool                     // the handshake was captured
	First          record.Time              // of the first packet
	Client         record.Opt[Side]         // the side that opened the connection, or of one for callbacks of NFS 4.0 the side that accepted it
	Service        record.Opt[uint16]       // the port that the client connected to
	ServiceID      record.Opt[record.Hex64] // the service ID in the client's REQ
	Key            record.Opt[record.Hex64] // as in the connection's record
	Overtaken      record.Opt[Side]         // the side whose first TCP segment was acknowledged before it was captured: what came first may have been sent later
	ResponseWithin record.Time              // a response to an operation comes within this time, on the clock of the capture

	ports  [2]record.Opt[uint16] // TCP or UDP ports, by side
	likely record.Opt[Side]      // the client, if it is not known
}

// Tag returns the tag that the upper layer set, and SetTag sets it.
func (c *Conn) Tag() Tag       { return c.tag }
func (c *Conn) SetTag(tag Tag) { c.tag = tag }

// Setup returns what the capture shows so far about the beginning of the connection. Only the connection changes it.
func (c *Conn) Setup() *Setup { return &c.setup }

// RoCE reports whether the transport is RoCEv2.
func (s *Setup) RoCE() bool { return !s.IWARP && !s.RPC }

// Opener returns the side that opened the connection. If it is not known, it is the side whose memory the other side was
// first to read or to write, as clients of storage let servers do, or otherwise side 0.
func (s *Setup) Opener() Side { return s.Client.Or(s.likely.Or(0)) }

// usesMemory notes that a side reads or writes memory of the other side.
func (s *Setup) usesMemory(by Side) {
	if !s.likely.Known() {
		s.likely = record.Some(by.Other())
	}
}

// End returns whether a side is the client or the server; see [Setup.Opener].
func (s *Setup) End(side Side) record.End {
	if side == s.Opener() {
		return record.Client
	}
	return record.Server
}

// Complete reports whether the capture has every packet that is known to have been sent
// since the first packet of each flow, and no state was evicted.
func (c *Conn) Complete() bool {
	return c.record.counts.NotCaptured == 0 && !c.lackedAtEnd() && !c.evicted && !c.tracker.icrcs.recentBadICRC() && !c.awaited()
}

// Retired is a connection that is finished.
type Retired struct {
	Setup
	Hosts [2]*Host    // by side; nil if it is not known
	Last  record.Time // of its last packet
	Asked bool        // it is only a request to open a connection, which got no answer
	Ended bool        // the capture shows its end, or does not show it only because state of the connection was evicted
}

// retiring returns what is passed to Retired of the tracker.
func (c *Conn) retiring() Retired {
	asked := c.setup.ServiceID.Known() && c.flows[0] == nil && !c.record.established.Known() && c.ending == nil
	return Retired{c.setup, [2]*Host{c.Host(0), c.Host(1)}, c.record.last, asked, c.ending != nil || c.evicted}
}

// awaited reports whether a packet or a byte was acknowledged that was not captured yet.
func (c *Conn) awaited() bool {
	for f := range c.known {
		if f.awaited() {
			return true
		}
	}
	return false
}

// Lacks reports whether packets are known to be missing from the capture, or state of the connection was evicted. Unlike
// Complete, it says nothing about packets with a bad ICRC.
func (c *Conn) Lacks() bool {
	return c.record.counts.NotCaptured > 0 || c.lackedAtEnd() || c.evicted || c.awaited()
}

// lackedAtEnd reports whether packets are missing that the network may have lost.
func (c *Conn) lackedAtEnd() bool {
	return slices.ContainsFunc(c.flows[:], func(f *flow) bool { return f != nil && f.lackedAtEnd })
}

// Host returns the host of a side, nil if it is not known.
func (c *Conn) Host(s Side) *Host {
	if f := c.flows[s]; f != nil {
		return f.src
	}
	if f := c.flows[s.Other()]; f != nil {
		return f.dst
	}
	return nil
}

// known passes the flows that are known to yield, until it returns false.
func (c *Conn) known(yield func(*flow) bool) {
	for _, f := range c.flows {
		if f != nil && !yield(f) {
			return
		}
	}
}

// SetClient sets the client, if the handshake was not captured, or if it opened the connection to call its client back.
func (c *Conn) SetClient(s Side) { c.setup.Client = record.Some(s) }

// WantSends sets whether the bytes of Sends are collected.
func (c *Conn) WantSends(yes bool) { c.wantSends = yes }

// Where is the subject of a finding.
type Where struct {
	XID         record.Opt[uint32]
	At          record.Stamp
	AtFault     record.Opt[Side]
	Transaction int64  // id of the RPC's transaction; 0 if it is about none
	Operation   string // name of the RPC's operation; empty if it is not known
}

// countMissing counts packets of a side that are missing from the capture. They passed after the first time, and before the
// packet at the second one.
func (c *Conn) countMissing(s Side, n int64, from, to record.Time) {
	t := c.tracker
	if f := c.flows[s]; f != nil {
		f.missing = true
		if t.Missing != nil {
			if from == 0 { // nothing of this side was captured before
				from = c.record.first
			}
			t.Missing(f.src.Address, f.dst.Address, n, min(from, to), to)
		}
	}
	c.gap = [2]record.Time{from, to}
	c.record.counts.NotCaptured += n
	t.Lost += n
}

// reportCongestion reports the congestion signals of a connection when it ends.
func (c *Conn) reportCongestion() {
	if n := &c.record.counts; n.CNPs+n.CongestionMarks > 0 && c.reported.congestion.First() {
		c.Report(rule.Congestion, Where{At: c.record.congested}, "the network was congested: receivers sent %d congestion notification packets, and switches marked %d packets", n.CNPs, n.CongestionMarks)
	}
}

// Report reports the violation of a rule. The message is formatted only if findings are
// wanted.
func (c *Conn) Report(r *rule.Rule, where Where, format string, args ...any) {
	c.tracker.Count(r)
	if c.tracker.Finding == nil {
		return
	}
	f := &record.Finding{Type: "finding", Rule: r.ID, Severity: r.Severity, Section: r.Section, Message: fmt.Sprintf(format, args...)}
	switch {
	case r.RPC != "" && c.setup.RPC:
		f.Section = r.RPC
	case r.TCP != "" && !c.setup.RoCE():
		f.Section = r.TCP
	}
	f.Operation, f.Transaction = record.SomeIf(where.Operation, where.Operation != ""), record.SomeIf(where.Transaction, where.Transaction != 0)
	if xid, known := where.XID.Get(); known {
		f.XID = record.Some(record.Hex32(xid))
	}
	if side, known := where.AtFault.Get(); known && c.setup.Client.Known() && !c.changed {
		f.AtFault = record.Some(c.setup.End(side))
	}
	if where.At.Packet != 0 {
		f.Packet, f.Time = record.Some(where.At.Packet), record.Some(where.At.Time)
	}
	if !c.setup.ID.Known() {
		if len(c.waiting) < maxWaiting {
			c.waiting = append(c.waiting, f)
		}
		return
	}
	c.hand(f)
}

// hand fills in the connection of a finding, and hands the finding out.
func (c *Conn) hand(f *record.Finding) {
	f.Connection, f.Key = c.setup.ID, c.setup.Key
	if client, known := c.setup.Client.Get(); known {
		f.Client, f.Server = c.Host(client).Known(), c.Host(client.Other()).Known()
	}
	c.tracker.Finding(f)
}

// maxWaiting is the maximum number of findings that a connection without an ID keeps.
const maxWaiting = 1024

// Gaps returns which packets of a side are known to be missing from the capture, and
// what is missing of the connection and of the capture as a whole.
func (c *Conn) Gaps(s Side) (g rule.Gap) {
	set := func(is bool, gap rule.Gap) {
		if is {
			g |= gap
		}
	}
	set(!c.setup.Handshake, rule.NoHandshake)
	set(c.evicted, rule.Evicted)
	set(c.closing || c.fin.Known(), rule.Closing)
	set(c.unordered || c.tracker.unordered > 1, rule.Unordered)
	set(c.tracker.icrcs.recentBadICRC(), rule.Awaited)
	f := c.flows[s]
	if f == nil {
		return g | rule.Late | rule.Awaited
	}
	set(f.missing, rule.Missing)
	set(f.awaited() || !f.seen, rule.Awaited)
	set(!f.announcedFirst() && f.seq < 2, rule.Awaited) // one request does not show whether others came before it
	set(f.silent, rule.Silent)
	set(f.lateStart || !f.announcedFirst(), rule.Late)
	return g
}

// Disorder notes that packets of a connection are in an order in which they cannot have been sent. If two
// connections show that, the whole capture counts as unordered. A single one may owe it to a host that breaks the rules,
// and must not silence them for others.
func (c *Conn) Disorder() {
	if !c.unordered {
		c.unordered = true
		c.tracker.unordered++
	}
}

// Ending is how a connection ended, as far as the transport shows it.
type Ending struct {
	How     record.Ending
	By      record.Opt[Side]
	At      record.Stamp
	Reason  string
	Repeats int64
}

// ends sets how the connection ended; the first call counts.
func (c *Conn) ends(e Ending) {
	if c.ending != nil {
		return
	}
	if f := c.exhausted(); f != nil && (e.How == record.EndDisconnect || e.How == record.EndReset || e.How == record.EndReused) {
		repeats, at, _ := f.cause.Exhausted()
		e = Ending{How: record.EndRetries, By: record.Some(f.side), At: at, Repeats: repeats}
	}
	ending := e
	c.ending = &ending
}

// trouble is something that went wrong: what its flow sent from a sequence number on was refused, or retransmitted.
type trouble struct {
	what record.Trouble
	at   record.Stamp
	flow *flow
	seq  uint32
}

// troubled notes what went wrong on the connection last before it ended.
func (c *Conn) troubled(by trouble) {
	if c.ending == nil {
		c.trouble = by
	}
}

// record returns the trouble in the form of a record. That nothing acknowledged what was refused is proven only if the capture
// lacks nothing.
func (t *trouble) record(c *Conn) (r record.Opt[record.After]) {
	if t.flow == nil {
		return r
	}
	recovered := t.flow.order.IsAcked(t.seq)
	return record.Some(record.After{
		Event: t.what, Packet: t.at.Packet, Time: t.at.Time, Recovered: record.SomeIf(recovered, recovered || c.Complete()),
	})
}

// ended returns how the connection ended, in the form of its record.
func (c *Conn) ended() (r record.Opt[record.Ended]) {
	var e Ending
	if c.ending != nil {
		e = *c.ending
	} else {
		f := c.exhausted()
		if f == nil {
			return r
		}
		repeats, at, _ := f.cause.Exhausted()
		e = Ending{How: record.EndSilence, At: at, Repeats: repeats}
	}
	end := record.Ended{
		How: e.How, Packet: record.SomeIf(e.At.Packet, e.At.Packet != 0), Reason: record.SomeIf(e.Reason, e.Reason != ""),
		Retransmissions: record.SomeIf(e.Repeats, e.Repeats > 0), After: c.trouble.record(c),
	}
	if by, told := e.By.Get(); told {
		end.By = record.Some(c.setup.End(by))
	}
	return record.Some(end)
}

// makeRecord makes the connection's record except for the follower's part. The record
// is valid until the next call.
func (c *Conn) makeRecord() *record.Connection {
	r, f := &c.tracker.connections.finished, &c.record
	client := c.setup.Opener()
	f.choose(c.tracker.Selects == nil || c.tracker.Selects(f.last), false) // what was counted after the last packet
	n := &f.counts
	*r = record.Connection{
		Type: "connection", ID: c.setup.ID.Or(0), Transport: c.setup.Transport, Client: c.endpoint(client), Server: c.endpoint(client.Other()),
		ClientKnown: c.setup.Client.Known(), Requests: c.reasked + min(c.reasked, 1), Established: f.established, Closed: f.closed, Ended: c.ended(), Handshake: "missed",
		ServiceID: c.setup.ServiceID, Key: c.setup.Key, AckTimeoutNS: record.SomeIf(int64(c.timer.Or(0)), c.timer.Known()), PathMTU: record.SomeIf(c.mtu, c.mtu != 0),
		Packets: n.Packets, PacketsBeforePairing: f.beforePairing, Retransmitted: n.Retransmitted, RetransmittedUnassigned: f.unassigned, OutOfOrder: n.OutOfOrder,
		NotCaptured: n.NotCaptured, Naks: n.Naks, RNRNaks: n.RNRNaks, First: f.first, Last: f.last, Damaged: n.Damaged, CongestionMarks: n.CongestionMarks, CNPs: n.CNPs, Selected: record.SomeIf(f.selected, c.tracker.Selects != nil),
	}
	if c.setup.Handshake {
		r.Handshake = "seen"
	}
	ways := c.Ways()
	r.Path = ways.Record()
	return r
}

// setKey sets the key of a connection whose handshake shows with which sequence numbers the client and the server start.
func (c *Conn) setKey(client, server uint32) { // of an announced connection, side 0 is the client
	c.setup.setKey([2]record.Endpoint{c.endpoint(0), c.endpoint(1)}, [2]uint32{client, server})
}

// setKey sets the key of the connection between two ends, each of which starts with a sequence number.
func (s *Setup) setKey(ends [2]record.Endpoint, first [2]uint32) {
	if !ends[0].Address.Known() || !ends[1].Address.Known() {
		return
	}
	h := sha256.New()
	for i := range ends {
		e := &ends[i]
		if s.RoCE() { // the connection manager's ports are not those of the connection
			fmt.Fprintf(h, "%s qpn %d %d\n", e.Address.Or(""), e.QPN.Or(0), first[i])
		} else {
			fmt.Fprintf(h, "%s port %d %d\n", e.Address.Or(""), e.Port.Or(0), first[i])
		}
	}
	s.Key = record.Some(record.Hex64(be.Uint64(h.Sum(nil))))
}

// endpoint returns the known properties of one side.
func (c *Conn) endpoint(s Side) (e record.Endpoint) {
	e.Address = c.Host(s).Known()
	e.Port = c.setup.ports[s]
	if f := c.flows[s.Other()]; f != nil { // packets to a side name its queue pair
		e.QPN = f.destination()
	}
	return e
}
