package main

import (
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/points"
	"github.com/rdmadump/rdmadump/render"
)

// lostView is the view of network with --lost and -e or -o csv, which print records of one type.
var lostView = &view{
	name: "network", fields: render.LostPacketFields, filters: "packets that were lost", flags: []string{"lost"}, without: []string{"count"}, open: lost, light: true,
}

// lost shows the packets that were lost between capture points, without anything else.
func lost(s *sink) (dissect.Handler, func()) {
	l := newLostPackets(s)
	return dissect.Handler{Packet: l.packet, Transaction: l.transaction}, l.finish
}

// network shows what happened to packets between capture points.
func network(s *sink) (dissect.Handler, func()) {
	l := newLostPackets(s)
	h := dissect.Handler{Packet: l.packet, Transaction: l.transaction}
	if !s.lost {
		h.Packet, h.Transaction = nil, nil
		h.Connection = func(*record.Connection) error { return nil }
	}
	return h, func() {
		if s.joined == nil {
			s.hint = "network compares captures of the same traffic at several points, and found only one point; name the files of all points"
		}
		all, hops := pointRecords(s.joined), networkRecords(s.joined)
		for _, p := range all {
			if s.columns == nil { // they have other fields
				s.emit(p, func(any) error { return nil })
			}
		}
		var shown []*record.Network
		for _, n := range hops {
			s.take(n, func(r any) error {
				shown = append(shown, r.(*record.Network))
				return nil
			})
		}
		s.release()
		if !s.json && s.columns == nil {
			s.fail(render.Network(render.Screen{Out: s.w, Theme: s.theme, Width: s.width}, s.start, all, shown))
		}
		if s.lost {
			l.finish()
		}
	}
}

// pointRecords returns the records of the capture points; there are none if joined is nil.
func pointRecords(joined *points.Source) (list []*record.Point) {
	if joined == nil {
		return nil
	}
	for _, p := range joined.Points() {
		r := &record.Point{
			Type: "point", Name: p.Name, Address: record.SomeIf(p.Address, p.Address != ""), Packets: p.Packets, Steps: []record.ClockStep{},
			OffsetNS: record.SomeIf(p.Offset, p.Known), DriftPPM: record.SomeIf(p.Drift, p.DriftKnown), ErrorNS: record.SomeIf(p.Error, p.Known),
			DriftErrorPPM: record.SomeIf(p.DriftError, p.Known && p.DriftError > 0),
		}
		for _, step := range p.Steps {
			r.Steps = append(r.Steps, record.ClockStep{Packet: step.Packet, Time: record.Time(step.Time), NS: step.By})
		}
		list = append(list, r)
	}
	return list
}

// networkRecords returns what happened between the capture points.
func networkRecords(joined *points.Source) (list []*record.Network) {
	if joined == nil {
		return nil
	}
	all := joined.Points()
	for _, h := range joined.Hops() {
		list = append(list, networkRecord(h, all))
	}
	return list
}

func networkRecord(h *points.Hop, all []points.Point) *record.Network {
	d := h.Delay()
	r := &record.Network{
		Type: "network", From: all[h.From].Name, To: all[h.To].Name, Packets: h.Packets, Lost: h.Lost, NotCaptured: h.NotCaptured, Unknown: h.Unknown,
		Reordered: h.Reordered, Corrupted: h.Corrupted, Duplicated: h.Duplicated, MirrorDuplicates: h.MirrorDuplicates,
		Bytes: record.SomeIf(h.Bytes, h.Bytes > 0), BytesLost: record.SomeIf(h.BytesLost, h.Bytes > 0), BytesDuplicated: record.SomeIf(h.BytesDuplicated, h.Bytes > 0),
		Delay:  record.SomeIf(record.DelayQuantiles{MinNS: d.Min, P50NS: d.P50, P90NS: d.P90, P99NS: d.P99, MaxNS: d.Max}, d.Count > 0),
		Course: []record.NetworkInterval{},
	}
	for _, i := range h.Course() {
		r.Course = append(r.Course, record.NetworkInterval{
			Start: record.Time(i.Start), Packets: i.Packets, Lost: i.Lost,
			P50NS: record.SomeIf(i.Delay.P50, i.Delay.Count > 0), MaxNS: record.SomeIf(i.Delay.Max, i.Delay.Count > 0),
		})
	}
	return r
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
	if v.LostTo == "" || !l.within(p.Time) {
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
		if l.wants(r.Connection, r.XID) && !l.done() && (l.view.fields == render.NetworkFields || l.matches(r)) {
			l.emit(r, func(any) error {
				shown = append(shown, r)
				return nil
			})
		}
	}
	if !l.json && l.columns == nil {
		l.fail(render.LostPackets(l.w, l.theme, l.width, l.start, shown))
	}
}
