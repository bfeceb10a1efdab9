// Package cause decides why requests were retransmitted. The cause belongs to a burst: a sender goes back to
// one request, and retransmits all requests from there on. What makes a sender retransmit, and what
// shows why it did, is passed to a [Sender], which writes nothing but that, and asks only whether responses show that a request is missing.
package cause

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// A Burst is a sequence of retransmitted requests of one side.
type Burst struct {
	Number int64 // position among the bursts of all connections, from 1; 0 for none
	Cause  record.WaitReason
	Idle   record.Time       // time since the sender's latest request and the latest new acknowledgement, whichever is later
	Timer  record.Opt[int64] // nanoseconds of the timer in the handshake
	First  uint64            // tag of the first retransmitted operation; 0 if it is not known
	At     record.Stamp      // its first packet
	Nak    record.Stamp      // the NAK that requested it, with or without effect; its packet number is 0 if there was none

	order.Run        // from its lowest sequence number to the one that continues it
	Latest    uint32 // sequence number of its latest request
	packets   int32  // number of its requests
	over      bool   // a new request followed after a while, so that what continues it is another burst
}

// continues reports whether a request continues the burst. Soon after the latest request, it may
// leave a gap.
func (b *Burst) continues(c order.Circle, r order.Run, soon bool) bool {
	gap := c.Delta(r.From, b.To)
	return !b.over && (gap == 0 || gap > 0 && soon)
}

// lacks reports whether a request comes before the end of the burst, and is not among those that
// the burst has.
func (b *Burst) lacks(c order.Circle, r order.Run) bool {
	return c.Delta(r.From, b.To) < 0 && (c.Delta(r.From, b.From) < 0 || b.packets < c.Delta(b.To, b.From))
}

// add adds a request to the burst.
func (b *Burst) add(c order.Circle, r order.Run) *Burst {
	if c.Delta(r.From, b.From) < 0 {
		b.From = r.From
	}
	if b.Latest = r.From; c.Delta(r.From, b.To) >= 0 {
		b.To = r.To
	}
	b.packets++
	return b
}

// followedBy notes a new request of the sender, which was idle before.
func (b *Burst) followedBy(c order.Circle, seq uint32, idle record.Time) {
	b.over = b.over || b.Number != 0 && idle >= continuesSoon && c.Delta(seq, b.To) >= 0
}

// Numbers numbers the bursts of all senders.
type Numbers struct{ latest int64 }

// next returns the number of the next burst.
func (n *Numbers) next() int64 {
	n.latest++
	return n.latest
}

// Nak is a NAK that requests a sequence number again.
type Nak struct {
	Seq   uint32
	At    record.Stamp
	RNR   bool
	Print uint32 // ICRC, by which network duplicates are recognized
}

// signal is a NAK, and whether no burst has followed it yet.
type signal struct {
	Nak
	open bool
}

// asks reports whether a NAK that no burst has followed yet requests a sequence number again.
func (n *signal) asks(c order.Circle, seq uint32) bool {
	return n.open && (!n.RNR && c.Delta(seq, n.Seq) >= 0 || n.Seq == seq)
}

// Request has the properties of a request by which a network duplicate of it is recognized.
type Request struct {
	Seq, Print uint32
	At         record.Time
}

// Evidence is what the capture shows about a request that may be missing.
type Evidence interface {
	// GapShown reports whether responses show that the request at a sequence number is missing.
	GapShown(seq uint32) bool
}

// Timer is when a sender without an acknowledgement retransmits.
type Timer struct {
	Announced record.Opt[record.Time] // in the handshake; 0 if there is no timer
	TCP       bool
}

// Idle times of a sender from which on its timer caused a retransmission.
const (
	timerShare   = 0.97               // share of the timer in the handshake
	timerUnknown = record.Time(100e6) // if the handshake was not captured
	timerTCP     = record.Time(195e6) // the shortest timeout of a TCP (Linux; RFC 6298 requires 1 s)
)

// expired reports whether a sender that was idle for a time retransmitted because its timer expired.
func (t *Timer) expired(idle record.Time) bool {
	timer, announced := t.Announced.Get()
	switch {
	case t.TCP:
		return idle >= timerTCP
	case !announced:
		return idle >= timerUnknown
	}
	return timer > 0 && float64(idle) >= timerShare*float64(timer)
}

// nanoseconds returns the timer in the handshake.
func (t *Timer) nanoseconds() record.Opt[int64] {
	timer, announced := t.Announced.Get()
	return record.SomeIf(int64(timer), announced)
}

const (
	continuesSoon = record.Time(10e6) // a burst with missing packets continues within this time
	heededAfter   = record.Time(1e6)  // what follows a NAK sooner may have been sent before its sender received it
)

// Sender is what is known of the sender of one direction: its requests, and the responses to them.
type Sender struct {
	circle  order.Circle
	numbers *Numbers
	burst   Burst

	Busy record.Time // when it was not idle for the last time
	Sent Request     // its latest request that the network may have doubled

	progress  record.Time // the latest response that acknowledged something new
	nak       signal      // the latest NAK
	before    signal      // the NAK before it, if no burst had followed that yet
	farthest  uint32      // the highest PSN of a Read or Atomic response
	responded bool        // there was such a response
	gaps      [4]gapTime  // TCP: the latest first; with several capture points, segments come later than what followed them
	shown     record.Time // TCP: when the latest acknowledgement showed a gap, if there was one
	retries   retries
}

// NewSender returns what is known of a sender whose sequence numbers are on a circle: nothing.
func NewSender(c order.Circle, n *Numbers) Sender { return Sender{circle: c, numbers: n} }

// New notes that a new request left the sender at a time.
func (s *Sender) New(seq uint32, sent record.Time) {
	s.burst.followedBy(s.circle, seq, sent-s.Busy)
}

// gapTime is a time in which the sender of a TCP stream knew of a gap: from the acknowledgement that showed it until the next
// one of something new, which is 0 before that comes.
type gapTime struct{ from, until record.Time }

// end notes that the sender has an acknowledgement of something new.
func (g *gapTime) end(at record.Time) {
	if g.until == 0 {
		g.until = at
	}
}

// has reports whether a time is in the range.
func (g *gapTime) has(at record.Time) bool {
	return g.from != 0 && at >= g.from && (g.until == 0 || at < g.until)
}

// Progress notes an acknowledgement of something new.
func (s *Sender) Progress(at record.Time) {
	s.progress, s.retries = at, retries{}
	s.gaps[0].end(at)
}

// ShowsGap notes an acknowledgement in a TCP stream that shows a gap: it acknowledges nothing new, or names later bytes.
func (s *Sender) ShowsGap(at record.Time) {
	s.shown = at
	if latest := s.gaps[0]; latest.until != 0 || latest.from == 0 {
		copy(s.gaps[1:], s.gaps[:])
		s.gaps[0] = gapTime{from: at}
	}
}

// Lacked reports whether the receiver has said since a time that it lacks a sequence number, or one before it: with a NAK, or with
// the latest acknowledgement in a TCP stream, which shows a gap.
func (s *Sender) Lacked(seq uint32, since record.Time) bool {
	if latest := s.gaps[0]; latest.from != 0 && latest.until == 0 && s.shown >= since {
		return true
	}
	n := s.nak.Nak
	return n.At.Packet != 0 && !n.RNR && s.circle.Delta(n.Seq, seq) <= 0 && n.At.Time >= since
}

// KnewOfGap reports whether the sender knew of a gap when it sent a segment.
func (s *Sender) KnewOfGap(sent record.Time) bool {
	for i := range s.gaps {
		if s.gaps[i].has(sent) {
			return true
		}
	}
	return false
}

// Answered notes a Read or Atomic response.
func (s *Sender) Answered(seq uint32) {
	if !s.responded || s.circle.Delta(seq, s.farthest) > 0 {
		s.farthest, s.responded = seq, true
	}
}

// AnsweredBeyond reports whether there was a Read or Atomic response to a later request than the one with this sequence
// number.
func (s *Sender) AnsweredBeyond(seq uint32) bool {
	return s.responded && s.circle.Delta(s.farthest, seq) > 0
}

// Refused notes a NAK, and LastNak returns the latest one.
func (s *Sender) Refused(n Nak) { s.before, s.nak = s.nak, signal{n, true} }
func (s *Sender) LastNak() Nak  { return s.nak.Nak }

// Again is a retransmitted request.
type Again struct {
	order.Run              // its sequence numbers
	At        record.Stamp // when it was captured
	Sent      record.Time  // when it left its sender, as far as that is known
	First     uint64       // tag of its operation; 0 if it is not known
	Timer     Timer
}

// idle returns the time for which the sender was idle before it sent a request.
func (s *Sender) idle(sent record.Time) record.Time { return sent - max(s.Busy, s.progress) }

// Expired reports whether the sender was idle for as long as its timer before it sent a request.
func (s *Sender) Expired(sent record.Time, t Timer) bool { return t.expired(s.idle(sent)) }

// Burst returns the burst that a retransmitted request belongs to, valid until the next call. A request that does not
// belong to the latest burst begins a new one, whose
// cause is the first of these that applies: an RNR NAK of this PSN; a timeout, if the
// sender was idle as long as its timer; another NAK of this PSN or an earlier one; a
// gap, if a later request was answered while a Read is incomplete (TCP: duplicate
// or selective acknowledgements). Otherwise, the cause is unknown.
func (s *Sender) Burst(a *Again, shown Evidence) *Burst {
	seq, b := a.From, &s.burst
	idle := s.idle(a.Sent)
	expired := a.Timer.expired(idle)
	nak := &s.nak
	if !nak.asks(s.circle, seq) {
		nak = &s.before
	}
	asked := nak.asks(s.circle, seq)
	if b.Number != 0 && !expired && !(asked && idle >= heededAfter) {
		soon := idle < continuesSoon && !s.nak.open
		// The network may have delayed a request that the burst lacks, unless something else explains it.
		if b.continues(s.circle, a.Run, soon) || soon && b.lacks(s.circle, a.Run) && !shown.GapShown(seq) {
			return b.add(s.circle, a.Run)
		}
	}
	now := Burst{Number: s.numbers.next(), Cause: record.RetransmitUnknown, Idle: idle, Timer: a.Timer.nanoseconds(), First: a.First, At: a.At, Run: a.Run, Latest: seq, packets: 1}
	switch {
	case asked && nak.RNR:
		now.Cause = record.RNRNak
	case expired:
		now.Cause = record.RetransmitTimeout
	case asked:
		now.Cause = record.RetransmitNak
	case shown.GapShown(seq):
		now.Cause = record.RetransmitGap
	}
	if asked {
		now.Nak = nak.At
	}
	if asked || expired { // the sender goes back, as the NAK requested
		s.before.open = false
		s.nak.open = s.nak.open && !expired && nak != &s.nak
	}
	*b = now
	return b
}

// retries counts the retransmissions of one request that was never acknowledged. The sender stops after some of them.
type retries struct {
	seq     uint32
	repeats uint32
	at      record.Stamp
}

// exhaustedAfter is the number of consecutive retransmissions of one request, none of
// them acknowledged, after which the sender is taken to have got no more answers.
const exhaustedAfter = 3

// Retry counts a retransmission of a request that is not acknowledged yet, unless acked is set.
// Retransmissions of the oldest such request count.
func (s *Sender) Retry(seq uint32, acked bool, at record.Stamp) {
	switch r := &s.retries; {
	case acked:
		s.retries = retries{}
	case r.repeats == 0 || s.circle.Delta(seq, r.seq) < 0:
		s.retries = retries{seq, 1, at}
	case seq == r.seq:
		s.retries = retries{seq, max(r.repeats+1, r.repeats), at} // does not overflow
	}
}

// Exhausted returns how often the sender retransmitted a request without an acknowledgement, and the latest of these
// retransmissions, if there were so many that it has got no more answers.
func (s *Sender) Exhausted() (repeats int64, at record.Stamp, exhausted bool) {
	r := &s.retries
	return int64(r.repeats), r.at, r.repeats >= exhaustedAfter
}
