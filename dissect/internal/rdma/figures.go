package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/record"
)

// figures are the counters and times of a connection that its record reports; see
// [record.Connection].
type figures struct {
	established, closed record.Opt[record.Time]
	first, last         record.Time
	counts              record.PacketCounts // packets so far
	counted             record.PacketCounts // packets when the latest packet was assigned to a span of time
	selected            record.PacketCounts // packets in the time that is selected
	beforePairing       int64               // packets that were taken while the connection had no ID
	unassigned          int64               // retransmissions of no known transaction
	congested           record.Stamp        // the first packet that signals congestion
}

// packet counts a packet. The connection has an ID if identified is set.
func (r *figures) packet(identified bool) {
	r.counts.Packets++
	if !identified {
		r.beforePairing++
	}
}

// establish notes when the connection was established, the first time.
func (r *figures) establish(at record.Time) {
	if !r.established.Known() {
		r.established = record.Some(at)
	}
}

// identified notes that the connection gets its ID. If it is the connection of the current packet, that packet is
// shown with the ID.
func (r *figures) identified(current bool) {
	if current && r.beforePairing > 0 {
		r.beforePairing--
	}
}

// opens fills in what the handshake of a TCP connection shows.
func (r *figures) opens(h *opening) {
	r.counts.Packets += int64(h.packets)
	r.beforePairing += int64(h.packets)
	r.first = min(r.first, h.asked.Time)
	if h.again.Packet != 0 {
		r.last = h.again.Time
	}
	if h.answered.Packet != 0 {
		r.established = record.Some(h.answered.Time)
	}
}

// nak counts a NAK, or an RNR NAK.
func (r *figures) nak(rnr bool) {
	if rnr {
		r.counts.RNRNaks++
	} else {
		r.counts.Naks++
	}
}

// congestion counts a packet that signals congestion: a notification, or a packet with the mark of a switch.
func (r *figures) congestion(notification bool, at record.Stamp) {
	if r.counts.CNPs+r.counts.CongestionMarks == 0 {
		r.congested = at
	}
	if notification {
		r.counts.CNPs++
	} else {
		r.counts.CongestionMarks++
	}
}

// choose does what [Tracker.Select] says.
func (r *figures) choose(inside, damaged bool) {
	if damaged {
		r.counts.Damaged++
	}
	if inside {
		r.selected.AddSince(&r.counted, &r.counts)
	}
	r.counted = r.counts
}

// join adds the figures of another connection that became a part of this one.
func (r *figures) join(o *figures) {
	signals := func(f *figures) int64 { return f.counts.CNPs + f.counts.CongestionMarks }
	if signals(r) == 0 || signals(o) > 0 && o.congested.Before(r.congested) {
		r.congested = o.congested
	}
	r.first, r.last = min(r.first, o.first), max(r.last, o.last)
	r.beforePairing += o.beforePairing
	r.unassigned += o.unassigned
	var none record.PacketCounts
	r.counts.AddSince(&none, &o.counts)
	r.counted.AddSince(&none, &o.counted)
	r.selected.AddSince(&none, &o.selected)
}
