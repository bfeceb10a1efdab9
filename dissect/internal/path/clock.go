package path

import "github.com/rdmadump/rdmadump/dissect/record"

// SenderClock compares the clock of a sender, which its TCP segments have as timestamps (RFC 7323), with the clock of the
// capture. The way of a segment took as much longer than the way of another one as the difference of both clocks is larger.
//
// A segment that was lost before the capture point would be mistaken for one that was sent later. A missing identification
// of the IP header shows it: Linux counts the segments of a socket.
type SenderClock struct {
	first   reading
	now     record.Stamp // the current segment
	ahead   int64        // of the clock of the capture, in the current segment, in nanoseconds
	elapsed int64        // ticks since the first segment
	seconds [window]second

	identification uint16
	segments, odd  int64       // steps of the identification, and those that are not 1
	gap            record.Time // the latest segment before which an identification is missing
}

// reading is the clock of the sender in a segment.
type reading struct {
	at    record.Time
	value uint32
}

// second is the largest lower bound, in one second of the capture, of what ahead would be in a segment without a way: its
// value in a response, less the round trip that ended with the response.
type second struct {
	number int64
	ahead  int64
	known  bool
}

// The properties of the clocks: timestamps count milliseconds; clocks differ by 100 parts per million at most; and what is
// older than 10 s is not compared.
const (
	window    = 10
	tick      = int64(1e6)
	driftOver = 10_000     // the clocks differ by one part of this at most
	clockCost = 512        // bytes of the budget
	measured  = int64(200) // ticks that show that a tick is a millisecond
	oddShare  = 10         // one of this number of identifications may be odd
)

// see takes the clock of the sender in a segment.
func (c *SenderClock) see(at record.Stamp, value uint32, identification uint16) {
	if c.segments++; c.segments > 2 { // a SYN has an identification of its own
		if step := identification - c.identification; step != 1 {
			c.odd++
			c.gap = at.Time
		}
	}
	c.now, c.identification = at, identification
	c.elapsed = int64(int32(value - c.first.value))
	c.ahead = int64(at.Time-c.first.at) - c.elapsed*tick
}

// Trip notes that a round trip to the sender ended with the current segment.
func (c *SenderClock) Trip(ns int64) {
	if s := c.second(c.now.Time); !s.known || c.ahead-ns > s.ahead {
		s.ahead, s.known = c.ahead-ns, true
	}
}

// second returns the second of a time.
func (c *SenderClock) second(at record.Time) *second {
	n := int64(at) / 1e9
	s := &c.seconds[n%window]
	if s.number != n {
		*s = second{number: n}
	}
	return s
}

// WayBack returns the longest time that the current segment can have taken from its sender to the capture point. It is
// unknown if at is not the current segment, if the ticks are no milliseconds, or if a segment may have been lost since a time.
func (c *SenderClock) WayBack(at record.Stamp, since record.Time) (ns int64, known bool) {
	passed := int64(c.now.Time - c.first.at)
	ticks := c.elapsed * tick
	if c.now != at || c.gap >= since || c.odd*oddShare >= c.segments || c.elapsed < measured || 3*ticks < 2*passed || 2*ticks > 3*passed {
		return 0, false
	}
	base := int64(0)
	for i := range c.seconds {
		s := &c.seconds[i]
		if age := int64(at.Time)/1e9 - s.number; s.known && age >= 0 && age < window && (!known || s.ahead > base) {
			base, known = s.ahead, true
		}
	}
	return c.ahead - base + tick + window*1e9/driftOver, known
}
