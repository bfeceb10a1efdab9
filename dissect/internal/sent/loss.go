package sent

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/cause"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// With several capture points, the packets that did not come to their receivers unharmed are known. They explain why a
// sender retransmitted, also to the RPCs whose packets came after them.

// Loss is a packet that was lost or damaged between capture points: a packet of the sender, or of the other side if it answers
// one of the sender.
type Loss struct {
	At          record.Stamp // when it left its sender; if it was damaged, and that frame was captured, when it came to its receiver
	Seq         uint32
	Damaged     bool
	BadChecksum bool // a checksum of the transport shows the damage
	Response    bool // the packet is the response to an RDMA Read or an Atomic
	Nak, Ack    bool // the packet is a NAK, or an acknowledgement
	Missing     bool // nothing shows whether the packet was lost, only that its sender sent it
	Later       bool // it comes after the request that was retransmitted; see [Sender.LossesBefore]
	reported    bool
	repaired    record.Time // TCP: when a later copy was taken; 0 if that is not known
}

// Answers reports whether the packet answers one of the sender.
func (l *Loss) Answers() bool { return l.Response || l.Nak || l.Ack }

// maxLosses limits the number of losses that are kept.
const maxLosses = 128

// Lose notes a packet that was lost or damaged. An answer is reported by its caller.
func (s *Sender) Lose(l Loss) {
	if len(s.losses) == maxLosses {
		const half = maxLosses / 2
		for i := range s.losses[:half] {
			if !s.losses[i].reported {
				s.open--
			}
		}
		s.losses = s.losses[:copy(s.losses, s.losses[half:])]
	}
	if l.Answers() {
		l.reported = true
	} else {
		s.open++
	}
	s.losses = append(s.losses, l)
}

// FirstLoss returns the first loss of a packet that left its sender at a time, or, if it was damaged, the damaged packet.
func (s *Sender) FirstLoss(seq uint32, sent record.Stamp) record.Stamp {
	for i := range s.losses {
		if l := &s.losses[i]; l.Seq == seq && l.At.Time >= sent.Time {
			return l.At
		}
	}
	return sent
}

// LostResponse reports whether a response with a sequence number was lost or damaged that left its sender at a time or
// later, and before another one.
func (s *Sender) LostResponse(seq uint32, from, before record.Time) bool {
	return s != nil && slices.ContainsFunc(s.losses, func(l Loss) bool {
		return l.Response && l.Seq == seq && l.At.Time >= from && l.At.Time < before
	})
}

// Report calls report with each loss before a sequence number that was not reported, until report returns true for it.
// A later copy of these was taken; at is when, or 0 if that does not matter.
func (s *Sender) Report(before uint32, at record.Time, report func(*Loss) bool) {
	if s == nil || s.open == 0 {
		return
	}
	for i := range s.losses {
		l := &s.losses[i]
		if l.reported || s.circle.Delta(l.Seq, before) >= 0 {
			continue
		}
		if l.repaired == 0 { // the first one counts
			l.repaired = at
		}
		if report(l) {
			l.reported = true
			s.open--
		}
	}
}

// Before selects losses.
type Before struct {
	Burst *cause.Burst // requests from the beginning of this burst on; if it is nil, those that were sent since then
	Since record.Time  // when the wait began: what was repaired before did not cause it
	Until record.Time  // when they were sent at the latest
	Most  int
}

// LossesBefore returns the packets that were lost or damaged before the sender retransmitted, the first ones.
func (s *Sender) LossesBefore(o Before) (list []Loss) {
	if s == nil {
		return nil
	}
	b := o.Burst
	for _, l := range s.losses {
		switch {
		case l.At.Time > o.Until || l.Ack || l.Missing || l.repaired != 0 && l.repaired < o.Since:
			continue
		case b == nil && l.At.Time < o.Since:
			continue
		case b != nil && s.circle.Delta(l.Seq, b.From) < 0:
			continue
		}
		l.Later = b != nil && s.circle.Delta(l.Seq, b.Latest) > 0
		if list = append(list, l); len(list) == o.Most {
			break
		}
	}
	return list
}
