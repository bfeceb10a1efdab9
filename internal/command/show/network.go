package show

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/render"
)

// network shows what happened to packets between capture points.
func network(s *sink) (dissect.Handler, func()) {
	l := newLostPackets(s)
	h := dissect.Handler{Packet: l.packet, Transaction: l.transaction}
	if !s.Lost {
		h.Packet, h.Transaction = nil, nil
		h.Connection = func(*record.Connection) error { return nil }
	}
	return h, func() {
		if s.joined == nil {
			s.hint = "network compares captures of the same traffic at several points, and found only one point; name the files of all points"
		}
		all, hops := input.PointRecords(s.joined), input.NetworkRecords(s.joined)
		for _, p := range all {
			if s.Columns == nil { // they have other fields
				s.emit(p, func(any) error { return nil })
			}
		}
		shown := selected(s, hops)
		if !s.JSON && s.Columns == nil && s.summary != nil {
			for _, h := range s.summary.Silences {
				if !h.To.Known() {
					_, err := fmt.Fprintf(s.w, "last packet of %s, at any point: %s of %s\n", render.Clean(h.Address), field.Brief(h.LastTime.Sub(s.Start)), field.Brief(s.summary.Last.Or(h.From).Sub(s.Start)))
					s.fail(err)
				}
			}
			s.fail(render.Network(s.screen(s.w), s.Start, all, shown))
		}
		if s.Lost {
			l.finish()
		}
	}
}

// lostPackets collects the packets that were lost. The RPC of a packet may be known only when the packet was
// retransmitted, or, if no copy of it came to its receiver, when the connection has ended.
type lostPackets struct {
	*sink
	list   []*record.LostPacket
	open   map[uint64][]*record.LostPacket        // those whose RPC is not known, by the key of the packet
	places map[record.Sighting]*record.LostPacket // the same packets, by their numbers
	more   int64                                  // those that are not kept
}

func newLostPackets(s *sink) *lostPackets {
	return &lostPackets{sink: s, open: map[uint64][]*record.LostPacket{}, places: map[record.Sighting]*record.LostPacket{}}
}

// transaction takes the packets of a transaction that were lost.
func (l *lostPackets) transaction(r *record.Transaction) error {
	for i := range r.Timeline {
		e := &r.Timeline[i]
		if e.Event != record.EventLost || e.Point == nil {
			continue
		}
		at := record.Sighting{Point: *e.Point, Packet: e.Packet}
		if p := l.places[at]; p != nil && !p.XID.Known() {
			p.XID = record.Some(r.XID)
			delete(l.places, at)
		}
	}
	return nil
}

// maxLost limits the number of lost packets that are kept.
const maxLost = 1 << 20

// packet takes a packet of the merged capture.
func (l *lostPackets) packet(p *record.Packet) error {
	v := p.Path
	if v == nil {
		return l.status()
	}
	if list := l.open[v.Key]; list != nil && (p.XID.Known() || p.Connection.Known()) {
		for _, r := range list {
			r.Fill(p)
		}
		if p.XID.Known() {
			delete(l.open, v.Key)
		}
	}
	if v.LostTo == "" || !l.Within(p.Time) {
		return l.status()
	}
	if len(l.list) == maxLost {
		l.more++
		return l.status()
	}
	r := &record.LostPacket{Type: "lost_packet", From: v.Point, To: v.LostTo, Packet: p.Number, Time: p.Time, Summary: string(p.Summary)}
	l.list = append(l.list, r)
	if r.Fill(p); !r.XID.Known() && v.Key != 0 {
		l.open[v.Key] = append(l.open[v.Key], r)
		l.places[record.Sighting{Point: r.From, Packet: r.Packet}] = r
	}
	return l.status()
}

// finish shows the lost packets.
func (l *lostPackets) finish() {
	var shown []*record.LostPacket
	for _, r := range l.list {
		if l.Wants(r.Connection, r.XID) && !l.done() && (l.View.Fields == render.NetworkFields || l.matches(r)) {
			l.emit(r, func(any) error {
				shown = append(shown, r)
				return nil
			})
		}
	}
	if !l.JSON && l.Columns == nil {
		l.fail(render.LostPackets(l.w, l.theme, l.width, l.Start, shown))
	}
}
