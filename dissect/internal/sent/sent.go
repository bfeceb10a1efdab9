// Package sent has what the sender of one direction did, as captures at several points show it: when each packet left it, and
// which copies did not come to their receiver. What the receiver got is known besides.
package sent

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Path is what a capture at several points shows of a packet.
type Path struct {
	Joined      bool         // there are several points
	Sent        record.Stamp // when it left its sender; the packet number is 0 if that was not captured
	Passing     bool         // the packet did not come to its receiver unharmed, and Sent is when it passed a point on its way
	Arrived     bool         // the packet was captured when it came to its receiver
	Lost        bool         // it did not come to its receiver, or came damaged
	Gone        bool         // nothing of it came to its receiver
	Missing     bool         // nothing shows whether it came to its receiver, at whose point the capture lacks it
	BadChecksum bool         // it came damaged, as a checksum of the transport shows
	Changed     bool         // its payload was changed on the way, and its checksum with it
	Early       bool         // it was captured only before it came to its receiver, so that it comes before packets that arrived sooner
	Copy        bool         // the network made this copy of a packet that its sender sent once
	Passed      record.Time  // when it passed the first point that captured it, if that is not at its sender; 0 otherwise
}

// LeftSender reports whether the packet was captured when it left its sender.
func (p *Path) LeftSender() bool { return p.Sent.Packet != 0 && !p.Passing }

// Left returns when the packet left its sender. The packet number is 0 if that was not captured.
func (p *Path) Left() (at record.Stamp) {
	if p.LeftSender() {
		at = p.Sent
	}
	return at
}

// Began returns when the packet passed the first point that captured it on its way; 0 if its receiver's is the only one that did.
func (p *Path) Began() record.Time { return p.FirstSeen(p.Sent.Time) }

// FirstSeen returns when the packet passed the first point that captured it on its way, or, if that is not known, a time.
func (p *Path) FirstSeen(otherwise record.Time) record.Time {
	if p.Passed != 0 {
		return p.Passed
	}
	return otherwise
}

// Time returns when the packet left its sender, if that was captured, and otherwise when it was captured.
func (p *Path) Time(at record.Stamp) record.Time {
	if p.Sent.Packet != 0 {
		return p.Sent.Time
	}
	return at.Time
}

// Undelivered reports whether nothing shows that the packet came unharmed to its receiver, whose point lacks it.
func (p *Path) Undelivered() bool { return p.Lost || p.Missing }

// Mark returns the marks of a packet that did not come to its receiver unharmed, or that the network made.
func (p *Path) Mark() (m record.Marks) {
	switch {
	case p.Gone:
		m = record.LostOnPath
	case p.Lost:
		m = record.DamagedOnPath
	}
	if p.Changed {
		m |= record.ChangedOnPath
	}
	if p.Copy {
		m |= record.Duplicated
	}
	return m
}

// Harmed returns the stamp of a loss: when the packet left its sender, or, if its damaged frame was captured, that frame.
func (p *Path) Harmed(at record.Stamp) record.Stamp {
	if p.Gone || p.Missing {
		return p.Sent
	}
	return at
}

// Packet is a packet that left its sender, and that its receiver has not accepted yet.
type Packet struct {
	order.Run
	At   record.Stamp
	Gone bool // the first copy was lost
	Hurt bool // the first copy was lost or damaged, as far as the capture shows
	lost bool // a copy of it was lost or damaged
	on   bool // it was captured on its way, and not when it left its sender
}

// lose notes that a copy was lost or damaged, or was not.
func (p *Packet) lose(is bool) { p.lost = p.lost || is }

// maxPackets limits the number of packets of a sender that are kept. Operations that begin with further ones begin when they
// came to the receiver.
const maxPackets = 1024

// message is a datagram that did not come to its receiver.
type message struct {
	xid uint32
	at  record.Stamp // when it left its sender
}

// maxMessages limits the number of lost datagrams that are kept.
const maxMessages = 64

// The memory of a sender, in bytes.
const (
	senderCost = 160
	packetCost = 56
	lossCost   = 40
)

// Sender is what the sender of one direction did. A nil Sender is that of a capture at one point, which shows it only as far as
// its packets came by there.
type Sender struct {
	circle   order.Circle
	packets  []Packet
	top      uint32 // the highest sequence number at which one of them begins
	current  Path   // of the current packet
	messages []message
	only     bool   // what is being accepted was sent, and did not come to its receiver
	passing  bool   // there was a packet that was captured only on its way
	losses   []Loss // requests of the sender, and responses to them
	open     int    // number of losses that are not reported
}

// New returns a sender that has sent nothing. Its sequence numbers are those of a circle.
func New(c order.Circle) *Sender { return &Sender{circle: c} }

// Bytes returns the memory that the sender takes.
func (s *Sender) Bytes() int64 {
	if s == nil {
		return 0
	}
	return senderCost + packetCost*int64(cap(s.packets)+cap(s.messages)) + lossCost*int64(cap(s.losses))
}

// Takes notes the path of the current packet.
func (s *Sender) Takes(p Path) { s.current = p }

// Sent notes when the current packet left its sender. It reports whether an earlier copy of the packet was lost.
func (s *Sender) Sent(r order.Run, p Path) (again bool) {
	if s.current = p; p.Copy {
		return false
	}
	s.passing = s.passing || p.Passing
	newer := len(s.packets) > 0 && s.circle.Delta(r.From, s.top) > 0
	for i := 0; i < len(s.packets) && !newer; i++ {
		if sent := &s.packets[i]; sent.From == r.From {
			again = sent.lost
			sent.lose(p.Lost)
			return again
		}
	}
	if p.Sent.Packet == 0 {
		return false
	}
	if len(s.packets) >= maxPackets {
		s.packets = s.packets[:copy(s.packets, s.packets[maxPackets/2:])]
	}
	if newer || len(s.packets) == 0 {
		s.top = r.From
	}
	s.packets = append(s.packets, Packet{Run: r, At: p.Sent, lost: p.Lost, Hurt: p.Lost && !p.Missing, Gone: p.Gone, on: p.Passing})
	return false
}

// First returns the packet with a sequence number, with the time at which it first left its sender, and whether that
// was captured. If not, the time is that at which the packet was first captured. The packets before it are forgotten.
func (s *Sender) First(seq uint32, captured record.Stamp) (first Packet, seen bool) {
	first = Packet{At: captured}
	found := false
	kept := s.packets[:0]
	for _, p := range s.packets {
		switch {
		case s.circle.Delta(seq, p.From) >= 0 && s.circle.Delta(seq, p.To) < 0:
			if !found || p.At.Time < first.At.Time {
				first, found = p, true
			}
		case s.circle.Delta(p.From, seq) < 0:
			continue
		}
		kept = append(kept, p)
	}
	s.packets = kept
	return first, found && !first.on
}

// Time returns when the current packet left its sender, if that was captured, and otherwise when it was captured. What was
// lost comes earlier than what its sender sent before it.
func (s *Sender) Time(at record.Stamp) record.Time {
	if s == nil {
		return at.Time
	}
	return s.current.Time(at)
}

// Arrived reports whether the current packet was captured when it came to its receiver.
func (s *Sender) Arrived() bool { return s != nil && s.current.Arrived }

// AcceptOnly notes that what is accepted until the next call was sent, and did not come to its receiver.
func (s *Sender) AcceptOnly(begins bool) {
	if s.only = begins; begins {
		s.current = Path{Joined: true}
	}
}

// Only reports whether what is being accepted was sent, and did not come to its receiver.
func (s *Sender) Only() bool { return s != nil && s.only }

// MayHaveLost reports whether what is missing before what is being accepted may have been lost before the point that captured it: it
// did not come to its receiver, either, and no capture shows what left the sender.
func (s *Sender) MayHaveLost() bool { return s.Only() && s.passing }

// LoseMessage notes a datagram that was lost. Of the copies of a message, the first counts.
func (s *Sender) LoseMessage(xid uint32, at record.Stamp) {
	for i := range s.messages {
		if s.messages[i].xid == xid {
			return
		}
	}
	if len(s.messages) == maxMessages {
		s.messages = s.messages[:copy(s.messages, s.messages[1:])]
	}
	s.messages = append(s.messages, message{xid, at})
}

// Message notes that the packet that left its sender last has a message. It returns when the message first left the
// sender: it may have been lost before.
func (s *Sender) Message(xid uint32) (first record.Stamp) {
	latest := &s.packets[len(s.packets)-1]
	for i, m := range s.messages {
		if m.xid == xid {
			s.messages = append(s.messages[:i], s.messages[i+1:]...)
			latest.At = m.at
			break
		}
	}
	return latest.At
}
