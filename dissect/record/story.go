package record

import (
	"iter"
	"slices"
)

// PacketRef names a packet: by its number, and by the capture point whose number that is. Point is empty if there is only
// one point. The zero value names no packet.
type PacketRef struct {
	Packet int64
	Point  string
}

// refTo returns a reference to a packet of a point, which is nil if there is only one.
func refTo(packet int64, point *string) PacketRef { return PacketRef{packet, PointName(point)} }

// PointName returns the name of a capture point; it is empty if there is only one.
func PointName(point *string) string {
	if point == nil {
		return ""
	}
	return *point
}

// Known reports whether the reference names a packet.
func (p PacketRef) Known() bool { return p.Packet != 0 }

// First returns the packet that shows the event.
func (e *Event) First() PacketRef { return refTo(e.Packet, e.Point) }

// Last returns the last packet of the event. It is the first one if the event has no other.
func (e *Event) Last() PacketRef {
	if last, known := e.LastPacket.Get(); known {
		return refTo(last, e.LastPoint)
	}
	return e.First()
}

// First returns the first packet of the message.
func (m *Message) First() PacketRef { return refTo(m.Packet, m.Point) }

// Last returns the last packet of the message.
func (m *Message) Last() PacketRef { return refTo(m.LastPacket, m.LastPoint) }

// First returns the first of the packets that show the wait.
func (w *Wait) First() PacketRef {
	ref := PacketRef{}
	if len(w.Packets) > 0 {
		ref.Packet = w.Packets[0]
	}
	if len(w.Points) > 0 {
		ref.Point = w.Points[0]
	}
	return ref
}

// Is reports whether ref names the packet, by its number at any of the points that captured it.
func (p *Packet) Is(ref PacketRef) bool { return p.In(map[PacketRef]bool{ref: true}) }

// In reports whether a set contains a reference to the packet.
func (p *Packet) In(set map[PacketRef]bool) bool {
	if p.Path == nil {
		return set[PacketRef{Packet: p.Number}]
	}
	return set[PacketRef{p.Number, p.Path.Point}] ||
		slices.ContainsFunc(p.Path.Seen, func(s Sighting) bool { return set[PacketRef{s.Packet, s.Point}] })
}

// Phase is a part of the latency of a transaction. Each phase begins when the one before it ends.
type Phase uint8

// The phases, in their order. A transaction may stall in each of the others.
const (
	PhaseToRead  Phase = iota // until the first RDMA Read
	PhaseReads                // until the last RDMA Read is complete
	PhaseToWrite              // until the first RDMA Write
	PhaseWrites               // until the last RDMA Write is complete
	PhaseToReply              // until the last packet of the Reply
	PhaseStalled
	PhaseCount
)

// String returns the name of a phase. Each phase has the same name in sentences, in tables and on every screen.
func (p Phase) String() string {
	return [...]string{"waiting for the first RDMA Read", "in RDMA Reads", "waiting for the first RDMA Write", "in RDMA Writes", "waiting for the Reply", "stalled"}[p]
}

// Sides returns the side that sent the Call, and the side that executed it.
func (r *Transaction) Sides() (caller, other End) {
	if r.Direction == Backward {
		return Server, Client
	}
	return Client, Server
}

// HasNak reports whether a NAK is in the timeline of the transaction. Otherwise it rejected a packet of another RPC, or of
// none, and the sender retransmitted all packets from there on.
func (r *Transaction) HasNak(packet int64) bool {
	return slices.ContainsFunc(r.Timeline, func(e Event) bool { return e.Event == EventNak && e.Packet == packet })
}

// Title returns the protocol's name for an event: a "read_request" is an RDMA Read.
func (of EventKind) Title() string {
	switch of {
	case EventCall:
		return "Call"
	case EventReply:
		return "Reply"
	case EventRead:
		return "RDMA Read"
	case EventReadDone:
		return "Read response"
	case EventWrite:
		return "RDMA Write"
	case EventNak:
		return "NAK"
	case EventAck:
		return "ACK"
	}
	return string(of)
}

// List returns the lengths of all phases.
func (p *Phases) List() [PhaseCount]Opt[int64] {
	return [PhaseCount]Opt[int64]{p.ToReadNS, p.ReadNS, p.ToWriteNS, p.WriteNS, p.ToReplyNS, Some(p.WaitNS)}
}

// PhaseEnds returns the times at which the phases of a latency end, if the latency itself ends at end. A phase that the
// timeline does not show has no end. Where a phase would end before it begins, because RDMA Reads and Writes overlap, it
// has no length.
func PhaseEnds(timeline []Event, end Time) (ends [PhaseStalled]Opt[Time]) {
	ends[PhaseToReply] = Some(end)
	for i := range timeline {
		e := &timeline[i]
		if e.Time > end { // not part of the latency
			continue
		}
		switch e.Event {
		case EventRead:
			begins(&ends[PhaseToRead], e)
		case EventReadDone:
			lasts(&ends[PhaseReads], e)
		case EventWriteFirst:
			begins(&ends[PhaseToWrite], e)
		case EventWriteLast:
			lasts(&ends[PhaseWrites], e)
		}
	}
	return ends
}

// begins sets the time of the first event of a kind.
func begins(first *Opt[Time], e *Event) {
	if !first.Known() {
		*first = Some(e.Time)
	}
}

// lasts sets the time of the latest event of a kind.
func lasts(last *Opt[Time], e *Event) { *last = Some(max(last.Or(e.Time), e.Time)) }

// Transfer is an RDMA Read or Write of a transaction: the event with which it began, and the one with which it was
// complete. One of them is nil if the capture does not show it.
type Transfer struct{ First, Last *Event }

// IsWrite reports whether the transfer is an RDMA Write.
func (t Transfer) IsWrite() bool {
	return t.First != nil && t.First.Event == EventWriteFirst || t.First == nil && t.Last.Event == EventWriteLast
}

// Transfers returns the RDMA Reads and Writes of the transaction: those that are complete in the order of their ends, and
// then the others in the order in which they began. If an operation began again, the earlier beginning is not listed.
func (r *Transaction) Transfers() (list []Transfer) {
	type place struct {
		write  bool
		handle Hex32
		offset Hex64
	}
	at := func(e *Event, write bool) place { return place{write, e.Handle.Or(0), e.Offset.Or(0)} }
	open := map[place]*Event{}
	for i := range r.Timeline {
		switch e := &r.Timeline[i]; e.Event {
		case EventRead, EventWriteFirst:
			open[at(e, e.Event == EventWriteFirst)] = e
		case EventReadDone, EventWriteLast:
			p := at(e, e.Event == EventWriteLast)
			list = append(list, Transfer{open[p], e})
			delete(open, p)
		}
	}
	if len(open) == 0 {
		return list
	}
	for i := range r.Timeline {
		e := &r.Timeline[i]
		if (e.Event == EventRead || e.Event == EventWriteFirst) && open[at(e, e.Event == EventWriteFirst)] == e {
			list = append(list, Transfer{First: e})
		}
	}
	return list
}

// Stalls returns the waits that delayed the Reply, each with the part of its length, in nanoseconds, that did. A wait for
// credits is not among them, because it ended before the latency began.
func (r *Transaction) Stalls() iter.Seq2[*Wait, int64] {
	return func(yield func(*Wait, int64) bool) {
		for i := range r.Waits {
			w := &r.Waits[i]
			if w.Reason == CreditLimit {
				continue
			}
			if ns := r.Waited(w); ns > 0 && !yield(w, ns) {
				return
			}
		}
	}
}

// Waited returns how many nanoseconds of [from, to) passed in those waits for which counts returns true. Waits may overlap.
func Waited(waits []Wait, from, to Time, counts func(*Wait) bool) (ns int64) {
	at := from
	for { // from one wait to the next, by their beginnings
		next, end := to, to
		for i := range waits {
			if w := &waits[i]; counts(w) && w.To > at && w.From < to && max(w.From, at) < next {
				next, end = max(w.From, at), min(w.To, to)
			}
		}
		if next >= to {
			return ns
		}
		ns += int64(end - next)
		at = end
	}
}

// Outstanding returns the time in which the transaction was outstanding: from its Call to the last
// packet of its Reply or, without a Reply, to end, which is the end of the connection's Calls.
func (r *Transaction) Outstanding(end Time) (from, to Time) {
	from, to = r.Call.Time, end
	if r.LatencyNS.Known() {
		to = r.End()
	}
	return from, to
}

// These values name the side that ended the exposure of a handle.
const (
	ByResponder = "responder" // by remote invalidation: Send With Invalidate
	ByRequester = "requester" // by local invalidation, after the Reply
	ByNobody    = "nobody"    // the capture contains no Reply
)

// Exposure is one exposure of a handle, from the Call that exposed it to the Reply.
type Exposure struct {
	Handle      Hex32     `json:"handle" doc:"Handle (STag or R_key) that was exposed."`
	Transaction int64     `json:"transaction" doc:"Transaction number (id): the transaction that exposed the handle."`
	XID         Hex32     `json:"xid" doc:"XID of the transaction that exposed the handle."`
	Chunk       Chunk     `json:"chunk" doc:"Chunk list that contains the handle."`
	From        Time      `json:"from" doc:"Time of the Call that exposed the handle."`
	To          Time      `json:"to" doc:"Time of the Reply, or of the connection's end."`
	EndedBy     string    `json:"ended_by" doc:"The side that ended the exposure: responder (remote invalidation by the Reply), requester (local invalidation after the Reply), or nobody (there was no Reply)." values:"responder,requester,nobody"`
	MovedBytes  int64     `json:"moved_bytes" doc:"Number of bytes that the capture shows being transferred."`
	MovedFrom   Opt[Time] `json:"moved_from" doc:"Time of the first data transfer; null if there was none."`
	MovedTo     Opt[Time] `json:"moved_to" doc:"Time of the last data transfer; null if there was none."`

	Bytes int64 `json:"-"` // length of the memory, in bytes
}

// Exposures returns the exposures of the transaction, in the order of its chunk lists. Segments
// with the same handle are one exposure. Without a Reply, the exposures end at end, which is [Connection.EndOfCalls].
func (r *Transaction) Exposures(end Time) []Exposure {
	if r.Call == nil {
		return nil
	}
	from, to := r.Outstanding(end)
	invalidation, invalidated := r.Invalidation.Get()
	var all []Exposure
	index := map[Hex32]int{} // index in all by handle; a Call may expose 65,000 handles
	for chunk, s := range r.Segments() {
		if i, shared := index[s.Handle]; shared {
			all[i].MovedBytes += s.MovedBytes
			all[i].Bytes += int64(s.Length)
			continue
		}
		index[s.Handle] = len(all)
		e := Exposure{Handle: s.Handle, Transaction: r.ID, XID: r.XID, Chunk: chunk, From: from, To: to, MovedBytes: s.MovedBytes, EndedBy: ByRequester, Bytes: int64(s.Length)}
		switch {
		case !r.LatencyNS.Known():
			e.EndedBy = ByNobody
		case invalidated && invalidation.Handle == s.Handle:
			e.EndedBy = ByResponder
		}
		all = append(all, e)
	}
	for i := range r.Timeline { // for the times of data transfers
		e := &r.Timeline[i]
		handle, known := e.Handle.Get()
		if !known || e.Event == EventInvalidate {
			continue
		}
		if j, exposed := index[handle]; exposed {
			x := &all[j]
			x.MovedFrom = Some(min(x.MovedFrom.Or(e.Time), e.Time))
			x.MovedTo = Some(max(x.MovedTo.Or(e.Time), e.Time))
		}
	}
	return all
}
