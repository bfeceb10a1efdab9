package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Why a packet was retransmitted. The cause belongs to a burst: a sender goes back to
// one packet, and retransmits all packets from there on.

// A Burst is a sequence of retransmitted requests of one side.
type Burst struct {
	Number int64 // position among the bursts of all connections, from 1; 0 for none
	Cause  record.WaitReason
	Idle   record.Time       // time since the sender's latest request and the latest new acknowledgement, whichever is later
	Timer  record.Opt[int64] // nanoseconds of the timer in the handshake
	First  Tag               // tag of the first retransmitted operation; 0 if it is not known
	At     record.Stamp      // its first packet
	Nak    record.Stamp      // the NAK that requested it, with or without effect; its packet number is 0 if there was none
	from   uint32            // its lowest sequence number
	seq    uint32            // sequence number of its latest request
}

// burst is the latest burst of a flow, and the sequence numbers that it covers.
type burst struct {
	Burst
	order.Run       // from its lowest sequence number to the one that continues it
	packets   int32 // number of its requests
	over      bool  // a new request followed after a while, so that what continues it is another burst
}

// continues reports whether a request continues the burst. Soon after the latest request, it may
// leave a gap.
func (b *burst) continues(c order.Circle, r order.Run, soon bool) bool {
	gap := c.Delta(r.From, b.To)
	return !b.over && (gap == 0 || gap > 0 && soon)
}

// lacks reports whether a request comes before the end of the burst, and is not among those that
// the burst has.
func (b *burst) lacks(c order.Circle, r order.Run) bool {
	return c.Delta(r.From, b.To) < 0 && (c.Delta(r.From, b.Run.From) < 0 || b.packets < c.Delta(b.To, b.Run.From))
}

// add adds a request to the burst.
func (b *burst) add(c order.Circle, r order.Run) *Burst {
	if c.Delta(r.From, b.Run.From) < 0 {
		b.Run.From = r.From
	}
	b.Burst.from, b.seq = b.Run.From, r.From
	if c.Delta(r.From, b.To) >= 0 {
		b.To = r.To
	}
	b.packets++
	return &b.Burst
}

// followedBy notes a new request of the sender, which was idle before.
func (b *burst) followedBy(c order.Circle, seq uint32, idle record.Time) {
	b.over = b.over || b.Number != 0 && idle >= continuesSoon && c.Delta(seq, b.To) >= 0
}

// signals are the events that make a sender retransmit, or that show why it did: its
// requests, and the responses to them.
type signals struct {
	requested record.Time // its latest request
	progress  record.Time // the latest response that acknowledged something new
	nak       nakSignal   // the latest NAK
	before    nakSignal   // the NAK before it, if no burst had followed that yet
	farthest  uint32      // the highest PSN of a Read or Atomic response
	responded bool        // there was such a response
	sent      sentRequest // the latest request
	dupAcks   int         // iWARP: consecutive acknowledgements that acknowledged nothing new
}

// sentRequest contains the properties of a request by which a network duplicate of it is
// recognized.
type sentRequest struct {
	psn, print uint32
	at         record.Time
}

// networkCopy reports whether a request is a duplicate that the network made of the
// request before it: no sender retransmits a single packet at once.
func (s *signals) networkCopy(d *Datagram) bool {
	return s.sent.psn == d.Packet.PSN && d.duplicates(s.sent.print, s.sent.at)
}

// acknowledged notes an acknowledgement of something new, and duplicateACK one of nothing new.
func (s *signals) acknowledged(at record.Stamp) { s.progress, s.dupAcks = at.Time, 0 }
func (s *signals) duplicateACK()                { s.dupAcks++ }

// answered notes a Read or Atomic response.
func (s *signals) answered(psn uint32) {
	if !s.responded || order.PSNs.Delta(psn, s.farthest) > 0 {
		s.farthest, s.responded = psn, true
	}
}

// nakSignal is a NAK that requests a PSN again.
type nakSignal struct {
	psn   uint32
	at    record.Stamp
	rnr   bool
	open  bool   // no burst has followed it yet
	print uint32 // ICRC, by which network duplicates are recognized
}

// asks reports whether a NAK that no burst has followed yet requests a sequence number again.
func (n *nakSignal) asks(c order.Circle, seq uint32) bool {
	return n.open && (!n.rnr && c.Delta(seq, n.psn) >= 0 || n.psn == seq)
}

// Idle times of a sender from which on its timer caused a retransmission.
const (
	timerShare    = 0.97               // share of the timer in the handshake
	timerUnknown  = record.Time(100e6) // if the handshake was not captured
	timerTCP      = record.Time(195e6) // the shortest timeout of a TCP (Linux; RFC 6298 requires 1 s)
	continuesSoon = record.Time(10e6)  // a burst with missing packets continues within this time
	heededAfter   = record.Time(1e6)   // what follows a NAK sooner may have been sent before its sender received it
)

// localTimer returns the timer of a Local ACK Timeout n in the handshake (IBTA volume 1, section
// 9.7.6.1.3: 4.096 us * 2^n; n = 0 is none).
func localTimer(n uint8) record.Time {
	if n == 0 {
		return 0
	}
	return record.Time(4096) << n
}

// responseWithin returns the time within which a response to a requester with a Local ACK Timeout n comes, 0 if the
// timeout does not show it.
func responseWithin(n uint8) record.Time { return max(0, min(4*localTimer(n), longestResponse)) }

// longestResponse is the time within which a response comes if the timer of the requester
// is not known.
const longestResponse = record.Time(4e9)

// burstOf returns the burst that a retransmitted request belongs to; r are its sequence
// numbers. A request that does not belong to the latest burst begins a new one, whose
// cause is the first of these that applies: an RNR NAK of this PSN; a timeout, if the
// sender was idle as long as its timer; another NAK of this PSN or an earlier one; a
// gap, if a later request was answered while a Read is incomplete (TCP: duplicate
// acknowledgements). Otherwise, the cause is unknown.
func (f *flow) burstOf(r order.Run, o *Operation, at record.Stamp) *Burst {
	c := f.ops.circle
	seq := r.From
	b, s := &f.burst, &f.signals
	idle := f.sentTime(at) - max(s.requested, s.progress)
	expired := f.expired(idle)
	nak := &s.nak
	if !nak.asks(c, seq) {
		nak = &s.before
	}
	asked := nak.asks(c, seq)
	if b.Number != 0 && !expired && !(asked && idle >= heededAfter) {
		soon := idle < continuesSoon && !s.nak.open
		// The network may have delayed a request that the burst lacks, unless something else explains it.
		if b.continues(c, r, soon) || soon && b.lacks(c, r) && !f.gapShown(seq) {
			return b.add(c, r)
		}
	}
	*b = burst{Burst: Burst{Number: f.conn.tracker.nextBurst(), Idle: idle, At: at, from: r.From, seq: r.From}, Run: r, packets: 1}
	if timer, announced := f.conn.timer.Get(); announced {
		b.Timer = record.Some(int64(timer))
	}
	if o != nil {
		b.First = o.Tag
	}
	if asked {
		b.Nak = nak.at
	}
	switch {
	case asked && nak.rnr:
		b.Cause = record.RNRNak
	case expired:
		b.Cause = record.RetransmitTimeout
	case asked:
		b.Cause = record.RetransmitNak
	case f.gapShown(seq):
		b.Cause = record.RetransmitGap
	default:
		b.Cause = record.RetransmitUnknown
	}
	if asked || expired { // the sender goes back, as the NAK requested
		nak.open, s.before.open, s.nak.open = false, false, s.nak.open && nak != &s.nak && !expired
	}
	return &b.Burst
}

// answeredBeyond reports whether there was a response to a later request than the one
// with this PSN.
func (q *queuePair) answeredBeyond(psn uint32) bool {
	f := q.flow
	return q.order.IsAcked(order.PSNs.Add(psn, 1)) || f.signals.responded && order.PSNs.Delta(f.signals.farthest, psn) > 0
}

// readAgainAt reports whether a PSN is one of a Read, so that a request with it is for the rest of the Read. If the capture
// has all responses, then one of them was lost after it passed the capture point.
func (q *queuePair) readAgainAt(psn uint32) bool {
	o := q.flow.ops.at(psn)
	return o != nil && o.Kind == Read && o.Side == q.flow.side
}

// readOpenAt reports whether the response to a Read or Atomic at or before a PSN is
// incomplete.
func (q *queuePair) readOpenAt(psn uint32) bool {
	f := q.flow
	i := f.ops.find(psn)
	for n := 0; i >= f.ops.head && n < 16; i, n = i-1, n+1 {
		if o := f.ops.entries[i].op; o.Side == f.side && (o.Kind == Read && o.taken < int64(max(o.count, 1)) || o.Kind == Atomic && !o.done) {
			return true
		}
	}
	return false
}

// refused notes a NAK that requests a PSN again. It returns false if the NAK is a
// network duplicate of the one before it.
func (s *signals) refused(psn uint32, rnr bool, d *Datagram) bool {
	if s.nak.psn == psn && d.duplicates(s.nak.print, s.nak.at.Time) {
		return false
	}
	s.before = s.nak
	s.nak = nakSignal{psn: psn, at: d.At, rnr: rnr, open: true, print: d.print}
	return true
}
