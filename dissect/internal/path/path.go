// Package path measures what the packets of one direction of a connection show about their way: round trips, packets that
// came late to the capture point or passed it again, marks of congestion, and the clock of the sender.
package path

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Way is what the packets of a sender show about their way to the capture point, and the round trips of its requests.
type Way struct {
	Signals
	Late          int64          // packets whose first copies came after later packets of the sender
	Repeated      int64          // packets that had passed before
	Again, Bursts int64          // packets that were retransmitted, and separate events of that
	classes       [classes]uint8 // traffic classes that were seen, without their ECN bits
	classesSeen   int
	trips         *RoundTrips
	clock         *SenderClock
}

// classes is the number of different traffic classes that are kept.
const classes = 4

// Signals counts the packets of a sender that are about congestion.
type Signals struct {
	Marked  int64 // a switch marked them (CE): there was congestion on their way before the capture point
	CNPs    int64 // the sender reported to the other side that it received marked packets
	Capable int64 // may be marked (ECT)
	Packets int64
}

// Packet counts a packet with a traffic class, of which marked is set if a switch marked it, and notifies if it is a
// congestion notification.
func (w *Way) Packet(class uint8, marked, notifies bool) {
	w.Packets++
	if marked {
		w.Marked++
	}
	if class&3 != 0 {
		w.Capable++
	}
	if notifies { // it has a class of its own
		w.CNPs++
		return
	}
	if class >>= 2; w.classesSeen == 0 || w.classes[w.classesSeen-1] != class {
		w.class(class)
	}
}

// class keeps a traffic class.
func (w *Way) class(class uint8) {
	if w.classesSeen < classes && !slices.Contains(w.Classes(), class) {
		w.classes[w.classesSeen] = class
		w.classesSeen++
	}
}

// Classes returns the differentiated services code points of the packets.
func (w *Way) Classes() []uint8 { return w.classes[:w.classesSeen] }

// Trips returns the round trips of the sender's requests. It is nil if none were measured.
func (w *Way) Trips() *RoundTrips { return w.trips }

// Sent notes a request that asks for an answer, which has a sequence number.
func (w *Way) Sent(c order.Circle, seq uint32, at record.Time) {
	if w.trips == nil {
		w.trips = &RoundTrips{circle: c}
	}
	w.trips.sent(seq, at)
}

// SentAgain notes that a request was retransmitted, so that its answer shows no round trip.
func (w *Way) SentAgain(seq uint32) {
	if w.trips != nil {
		w.trips.again(seq)
	}
}

// Answered notes an answer to the request with a sequence number, and to those before it. It returns the time of the round
// trip, if the answer shows one.
func (w *Way) Answered(seq uint32, at record.Stamp) (ns int64, measured bool) {
	if w.trips == nil {
		return 0, false
	}
	return w.trips.answered(seq, at)
}

// Clock returns the clock of the sender, or nil if it is not known.
func (w *Way) Clock() *SenderClock { return w.clock }

// See notes the clock of the sender in a TCP segment.
func (w *Way) See(at record.Stamp, value uint32, identification uint16) {
	if w.clock == nil {
		w.clock = &SenderClock{first: reading{at.Time, value}}
	}
	w.clock.see(at, value, identification)
}

// Bytes returns the memory of the round trips and of the clock.
func (w *Way) Bytes() (n int64) {
	if w.trips != nil {
		n += tripsCost
	}
	if w.clock != nil {
		n += clockCost
	}
	return n
}
