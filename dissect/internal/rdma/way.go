package rdma

import (
	"net/netip"

	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/internal/path"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// What the packets of both sides of a connection show about their way; see package path.

// seeWay notes a TCP segment, and the clock of its sender.
func (f *flow) seeWay(s *TCP) {
	marked := s.Class&3 == 3
	if f.way.Packet(s.Class, marked, false); marked {
		f.conn.record.congestion(false, s.At)
	}
	if value, known := path.Timestamp(s.Header[20:]); known && !s.Path.Joined {
		f.way.See(s.At, value, s.Identification)
	}
}

// asksWith notes a segment with data, to measure its round trip. It may have been captured before unless it is new.
func (f *flow) asksWith(s *TCP) {
	switch end := s.Seq + uint32(s.Length); {
	case s.Path.Joined:
	case f.order.IsNew(s.Seq):
		f.way.Sent(order.Octets, end, s.At.Time)
	default:
		f.way.SentAgain(end)
	}
}

// answeredAt notes that the other side acknowledged the bytes of the flow before a sequence number.
func (f *flow) answeredAt(ack uint32, at record.Stamp) {
	ns, measured := f.way.Answered(ack, at)
	if peer := f.peer(); measured && peer != nil && peer.way.Clock() != nil {
		peer.way.Clock().Trip(ns)
	}
}

// WayBack returns the longest time that the first packet of an operation, which is the current one, can have taken to the
// capture point. It is unknown if a copy of the packet may have been lost since a time.
func (o *Operation) WayBack(since record.Time) (ns int64, known bool) {
	f := o.conn.flows[o.Side]
	if f == nil || f.way.Clock() == nil {
		return 0, false
	}
	return f.way.Clock().WayBack(o.First, since)
}

// noWay is what nothing shows. It is never written to.
var noWay path.Way

// WayOf returns what the packets of a side show about their way. It is not nil.
func (c *Conn) WayOf(s Side) *path.Way {
	if f := c.flows[s]; f != nil {
		return &f.way
	}
	return &noWay
}

// Counts returns the signals of congestion so far.
func (c *Conn) Counts() path.Counts {
	ways := c.Ways()
	return ways.Counts()
}

// Ways returns what the packets of both sides show, and the number of frames that have paused a link.
func (c *Conn) Ways() path.Ways {
	client := c.setup.Opener()
	return path.Ways{FromClient: c.WayOf(client), FromServer: c.WayOf(client.Other()), Pauses: c.pauses(client), PausesBefore: c.unpaused}
}

// pauses returns how often, and for how long, links were paused so far.
func (c *Conn) pauses(client Side) path.PauseCounts {
	return c.tracker.Pauses.Counts(addressOf(c.Host(client)), addressOf(c.Host(client.Other())), c.tracker.Clock)
}

// addressOf returns the IP address of a host; it is not valid if the host is not known.
func addressOf(h *Host) netip.Addr {
	if h == nil {
		return netip.Addr{}
	}
	return h.Address.IP
}
