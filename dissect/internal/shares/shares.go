// Package shares divides the latency of an RPC by what its capture proves: a host and its adapter can have worked for the RPC
// only while it was their turn, as packets show. What passed between the capture point and a host is not in the capture.
package shares

import (
	"github.com/rdmadump/rdmadump/dissect/record"
)

// RPC is what the division depends on.
type RPC struct {
	Call, Reply *record.Message
	Timeline    []record.Event // in the order of its packets
	Waits       []record.Wait
	Split       record.Opt[record.Split]
	Turn        *Turn
	Latency     int64
	Place       record.Place // where the capture was taken
	How         string       // source of the place, as in [record.PointFacts]
	Backward    bool         // the server sent the Call
	Certain     bool         // there is one latency
	Complete    bool         // the capture has all packets of the connection, and no XID that is used twice at a time
	Whole       bool         // the timeline has all events, and begins with the first copy of the Call
}

// Turn is what the sides did for an RPC, as far as the timeline does not show it.
type Turn struct {
	Begun   bool         // the other side sent a packet for the RPC
	After   Served       // the latest Call that it had before
	First   record.Stamp // its first packet, if the longest time of its way to the capture point is known
	WayBack int64        // this time, in nanoseconds
	ReadEnd record.Time  // the latest RDMA Read was answered completely
	answers int64        // time from requests of RDMA Reads to their first responses, in nanoseconds
}

// Answered notes the first response to an RDMA Read, and when the Read was requested. If the Read was requested while another one was being answered,
// its responses waited for those of the other one, which may still have been on their way.
func (u *Turn) Answered(requested, responded record.Time) {
	if requested >= u.ReadEnd {
		u.answers += max(0, int64(responded-requested))
	}
}

// Served is what shows that the other side had a later Call before it answered an earlier one: the latest Call of the RPCs
// that it has sent packets for.
type Served struct {
	At     record.Time
	Packet int64
	XID    record.Hex32
}

// Take takes the Call of an RPC, if it is later.
func (s *Served) Take(call *record.Message, xid record.Hex32) {
	if call.Packet != 0 && call.LastTime > s.At {
		*s = Served{call.LastTime, call.Packet, xid}
	}
}

// course is how the turns of the sides follow each other in the timeline of an RPC.
type course struct {
	at      record.Time
	open    int   // RDMA Reads that are not answered
	repeats int   // RDMA Reads that were answered, and will be requested again
	writing bool  // RDMA Writes have begun
	first   int64 // until the first packet of the side that executes the RPC, in nanoseconds
	begun   bool  // it sent a packet
	server  int64 // while only the side that executes the RPC could make progress
	reading int64 // while RDMA Reads were open
	sending int64 // from the first RDMA Write on
	again   bool  // the side that executes the RPC sent something again, or asked for it again
}

// begin sets the time from which it is the turn of the side that executes the RPC.
func (c *course) begin(at record.Time) { c.at = at }

// to ends the turn of the side that executes the RPC.
func (c *course) to(t record.Time) {
	ns := max(0, int64(t-c.at))
	switch {
	case c.open > 0:
		return
	case c.writing:
		c.sending += ns
	default:
		c.server += ns
		if !c.begun {
			c.first = ns
		}
	}
	c.begun, c.at = true, max(c.at, t)
}

// take takes an event of the timeline.
func (c *course) take(e *record.Event) {
	switch e.Event {
	case record.EventRead:
		c.to(e.Time)
		c.open++
		c.writing = false
	case record.EventReadDone, record.EventReadAgain:
		if c.open == 1 {
			c.reading += max(0, int64(e.Time-c.at))
			c.at = max(c.at, e.Time)
		}
		if c.open = max(0, c.open-1); e.Event == record.EventReadAgain {
			c.again = true
			c.repeats++
		}
	case record.EventWriteFirst:
		c.to(e.Time)
		c.writing = c.writing || c.open == 0
	case record.EventRetransmit, record.EventDamaged, record.EventLost:
		if c.repeats > 0 && e.Event == record.EventRetransmit && e.Of == record.EventRead { // it is the turn of the other side once more
			c.to(e.Time)
			c.open++
			c.repeats--
		}
		c.again = c.again || e.From == record.Responder && e.Of != record.EventReply && e.Of != record.EventAck ||
			e.From == record.Requester && e.Of == record.EventReadDone
	case record.EventNak, record.EventOutOfOrder:
		c.again = true
	}
}

// Divider divides latencies. Its zero value is ready for use.
type Divider struct {
	rpc    RPC
	proofs []record.Proof
}

// Divide returns the shares of a latency. The list of proofs is valid until the next call.
func (v *Divider) Divide(r RPC) record.Shares {
	v.rpc = r
	d := division{Shares: record.Shares{Point: r.Place, Proofs: v.proofs[:0]}, RPC: &v.rpc}
	if split, known := r.Split.Get(); known {
		d.take(&split)
	} else {
		d.bound()
	}
	d.stalls()
	v.proofs = d.Proofs
	return d.Shares
}

// division is the shares of an RPC, and how they are found.
type division struct {
	record.Shares
	*RPC
	course course
	proves bool // the capture proves the least time of a side
}

// prove adds a proof.
func (d *division) prove(p record.Proof) { d.Proofs = append(d.Proofs, p) }

// take takes the shares that captures at both ends show.
func (d *division) take(split *record.Split) {
	exactly := func(ns int64) record.Bounds { return record.Bounds{Min: ns, Max: ns} }
	d.Point = record.AtBothEnds
	d.ClientNS, d.ServerNS, d.NetworkNS = exactly(split.ClientNS), exactly(split.ServerNS), exactly(split.RequestNetworkNS+split.ReplyNetworkNS)
	d.ToServerNS, d.ToClientNS = exactly(split.RequestNetworkNS), exactly(split.ReplyNetworkNS)
	d.prove(record.Proof{Proof: record.ProofBothEnds})
}

// stalls sets the time in which the RPC made no progress, and whether it proves a loss.
func (d *division) stalls() {
	isBusy := func(w *record.Wait) bool { return w.Reason == record.HeadOfLine }
	d.BusyNS, d.StalledNS = d.waited(isBusy), d.waited(func(w *record.Wait) bool { return !isBusy(w) })
	if lost := d.waited(isLoss); lost*2 >= d.Latency && lost > 0 && d.Certain && d.Complete {
		d.prove(record.Proof{Proof: record.ProofRetransmit, NS: record.Some(lost)})
	}
}

// waited returns how many nanoseconds of the latency the RPC waited, for reasons that count. Waits may overlap.
func (d *division) waited(counts func(*record.Wait) bool) int64 {
	return record.Waited(d.Waits, d.Call.FirstSent.Or(d.Call.Time), d.Reply.LastTime, counts)
}

// isLoss reports whether a wait shows that packets were lost or damaged on their way, or stopped there. A Call that is
// retransmitted by a timer does not: only its ACK may have been lost, while the other side worked.
func isLoss(w *record.Wait) bool {
	switch w.Reason {
	case record.RetransmitTimeout:
		return w.Event != record.EventCall
	case record.RetransmitNak, record.RetransmitGap:
		return true
	}
	return false
}

// bound sets the bounds that a single capture proves.
func (d *division) bound() {
	c := &d.course
	all := record.Bounds{Max: d.Latency}
	d.ClientNS, d.ServerNS, d.NetworkNS, d.ToServerNS, d.ToClientNS = all, all, all, all, all
	client := !d.Backward
	atCaller := d.Point == record.AtClient && client || d.Point == record.AtServer && !client
	atOther := d.Point == record.AtServer && client || d.Point == record.AtClient && !client
	c.begin(d.Call.LastTime)
	if atOther {
		c.begin(d.Call.Delivered.Or(d.Call.LastTime))
	}
	end := d.Reply.FirstSent.Or(d.Reply.Time)
	for i := range d.Timeline {
		if e := &d.Timeline[i]; e.Time <= end || e.Event == record.EventRetransmit {
			c.take(e)
		}
	}
	if c.open > 0 || !d.Whole {
		d.Point = record.PlaceUnknown
		return
	}
	c.to(end)
	d.proves = d.Certain && !c.again && d.Call.Delivery == record.DeliveryCertain && d.Complete
	d.ServerNS.Max, d.ClientNS.Max = c.server+c.sending, c.reading
	switch {
	case atOther:
		d.atOther()
	case atCaller && d.proves:
		d.ClientNS.Min = min(d.Turn.answers, c.reading)
		d.prove(record.Proof{Proof: record.ProofPosition, How: d.How})
		fallthrough
	default:
		d.ways()
	}
	d.NetworkNS.Max = min(d.NetworkNS.Max, d.Latency-d.ClientNS.Min-d.ServerNS.Min)
	d.ToClientNS.Max = min(d.ToClientNS.Max, d.NetworkNS.Max)
}

// atOther sets the bounds of a capture that was taken at the side that executes the RPC. Packets are there at the times at
// which they are sent and arrive, so that the way of the Call is no part of the latency.
func (d *division) atOther() {
	d.ToServerNS.Max = min(int64(d.Call.LastTime-d.Call.Time)+d.course.reading, d.ToServerNS.Max)
	if d.proves {
		d.ServerNS.Min = d.course.server
		d.prove(record.Proof{Proof: record.ProofPosition, How: d.How})
	}
}

// ways sets the bounds of the ways of the Call and of the Reply, and what they prove about the side that executes the RPC:
// the time between both.
func (d *division) ways() {
	c := &d.course
	left := d.Call.LastTime + record.Time(c.first) // at the latest, the first packet of the other side left it
	arrived := left                                // at the latest, the Call arrived
	for i := range d.Timeline {
		e := &d.Timeline[i]
		if e.Event != record.EventAck || e.Of != record.EventCall || e.From != record.Responder || e.Time < d.Call.LastTime {
			continue
		}
		if e.Time <= arrived {
			arrived = e.Time
			d.prove(record.Proof{Proof: record.ProofCallAck, Packet: record.Some(e.Packet), NS: record.Some(int64(arrived - d.Call.Time))})
		}
		break
	}
	d.ToServerNS.Max = int64(arrived - d.Call.Time)
	if c.reading > 0 { // no packet shows when the responses to RDMA Reads arrived
		d.ToServerNS.Max += c.reading + c.server - c.first
	}
	d.ToServerNS.Max = min(d.ToServerNS.Max, d.Latency)
	if later := d.Turn.After; d.proves && later.At > arrived && later.At <= left {
		d.ServerNS.Min = int64(later.At - arrived)
		d.prove(record.Proof{Proof: record.ProofLaterCall, Packet: record.Some(later.Packet), XID: record.Some(later.XID), NS: record.Some(int64(later.At - d.Call.Time))})
	}
	if u := d.Turn; d.proves && u.First.Packet != 0 && u.First.Time == left {
		if ns := int64(left-arrived) - u.WayBack; ns > d.ServerNS.Min {
			d.ServerNS.Min = ns
			d.prove(record.Proof{Proof: record.ProofTimestamp, Packet: record.Some(u.First.Packet), NS: record.Some(u.WayBack)})
		}
	}
	if c.reading == 0 { // one way back only
		d.ToClientNS.Max = d.ServerNS.Max - d.ServerNS.Min
	}
}
