package record

import "slices"

// PacketRef names a packet: by its number, and by the capture point whose number that is. Point is empty if there is only
// one point. The zero value names no packet.
type PacketRef struct {
	Packet int64
	Point  string
}

// refTo returns a reference to a packet of a point, which is nil if there is only one.
func refTo(packet int64, point *string) PacketRef {
	if point == nil {
		return PacketRef{Packet: packet}
	}
	return PacketRef{packet, *point}
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
