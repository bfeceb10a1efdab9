package rdma

import (
	"net/netip"

	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/link"
)

// TCP streams that carry iWARP or RPC. A connection is followed from its MPA request or reply
// on, or, without these, from the first segment that consists of FPDUs with a correct
// CRC, or begins with a record. For other TCP traffic, a few bytes of each segment are inspected, and no memory
// is used, except for a limited number of handshakes (opened.go).

// tcpStreams finds the stream of each TCP segment. rpc.go has the part that recognizes RPC.
type tcpStreams struct {
	tracker     *Tracker
	connections *connections

	streams map[streamKey]*flow
	opened  openings // handshakes of connections that may carry RPC
	shared  decoders
}

// Segment takes a TCP segment, and returns the verdict on it. It returns false if the
// segment carries neither iWARP nor RPC.
func (t *Tracker) Segment(s *TCP) (verdict *PacketVerdict, known bool) {
	cur := t.begin(s.At, s.Class)
	cur.left, cur.early = s.Path.Left(), s.Path.Early
	cur.mark(nil, s.Path.Mark())
	if s.Path.Changed {
		if f := t.tcp.streams[streamKey{s.Src, s.Dst, s.SrcPort, s.DstPort}]; f != nil {
			f.conn.changed = true
		}
	}
	known = t.tcp.segment(s, cur)
	if t.Why != nil {
		t.Why.dropped(cur)
	}
	if s.Path.Joined {
		if f := t.tcp.streams[streamKey{s.Src, s.Dst, s.SrcPort, s.DstPort}]; f != nil {
			f.reportLost()
			if s.Path.Changed {
				f.conn.follower.Changed(cur.Op, s.At)
			}
		}
	}
	t.settle(cur)
	cur.FPDUs, cur.Records = t.tcp.shared.fpdus, t.tcp.shared.records
	return &cur.PacketVerdict, known
}

// TCP is a segment and its time.
type TCP struct {
	link.TCP
	At   record.Stamp
	Path Path // with several capture points

	Identification uint16 // of the IPv4 header; 0 if there is none
	Class          uint8  // traffic class
}

// streamKey identifies one direction of a TCP connection.
type streamKey struct {
	src, dst         netip.Addr
	srcPort, dstPort uint16
}

func (k streamKey) reversed() streamKey { return streamKey{k.dst, k.src, k.dstPort, k.srcPort} }

// decoders are the decoders and buffers that all streams share, and what was found in the current segment.
type decoders struct {
	mpa      iwarp.MPA
	segment  iwarp.Segment
	unmarked []byte // the current FPDU without its markers
	partial  []byte // an incomplete FPDU without its markers
	fpdus    []iwarp.Noted
	records  []RecordAt
}

// clear forgets what was found in the segment before.
func (d *decoders) clear() { d.fpdus, d.records = d.fpdus[:0], d.records[:0] }

// segment takes a TCP segment. It returns false if the segment carries no iWARP.
func (ts *tcpStreams) segment(s *TCP, cur *currentPacket) bool {
	ts.shared.clear()
	key := streamKey{s.Src, s.Dst, s.SrcPort, s.DstPort}
	f := ts.streams[key]
	isMPA := iwarp.IsMPA(s.Payload)
	if f == nil && !isMPA && !ts.mayCarryRPC(key, s) && !ts.mayStartStream(key, s) {
		return s.Flags&(link.TCPSYN|link.TCPRST) != 0 && ts.handshake(key, s, cur)
	}
	if f != nil && f.stream.outlived(s) {
		ts.opened.note(key, s)
		return false
	}
	if f != nil && f.stream.frames.given() {
		f.conn.took(f.conn.setup.Transport, cur)
		return true
	}
	if right, known := s.Checksum(); known {
		var from *Host
		if f != nil {
			from = f.src
		} else {
			from = ts.connections.hosts.get(&Address{IP: s.Src})
		}
		// An unfinished checksum is filled in after the capture point.
		if from.checked(right, right && s.Length > 0, !right && !s.Unfinished()) {
			if cur.mark(nil, record.BadChecksum); f != nil {
				f.conn.countPacket()
				cur.Conn = f.conn
			}
			ts.tracker.BadChecksum++
			return f != nil
		}
	}
	if isMPA && (f == nil || f.conn.closing || f.order.Known() && !f.stream.frames.opening() && order.Octets.Delta(s.Seq, f.order.Expected()) > 0) {
		f = ts.openStream(key, s)
	} else if f == nil {
		if f = ts.recognizeRPC(key, s); f == nil {
			f = ts.recognizeStream(key, s)
		}
	}
	if f == nil {
		return false
	}
	f.conn.took(f.conn.setup.Transport, cur)
	f.notePacket(s.Length > 0)
	f.stream.take(s, cur)
	return true
}

// openStream starts a connection with an MPA frame, or completes the connection of the
// other direction.
func (ts *tcpStreams) openStream(key streamKey, s *TCP) *flow {
	if string(s.Payload[:len(iwarp.ReplyKey)]) == iwarp.ReplyKey {
		if back := ts.streams[key.reversed()]; back != nil && !back.conn.closing && back.conn.flows[1] == nil {
			f := ts.attachStream(back.conn, 1, key, ts.framing(true))
			if h, known := ts.opened.find(key.reversed()); known {
				h.setKey(f.conn)
			}
			return f
		}
		return ts.attachStream(ts.connections.open(key.reversed().setup(IWARP, true)), 1, key, ts.framing(true))
	}
	return ts.attachStream(ts.connections.open(key.setup(IWARP, true)), 0, key, ts.framing(true))
}

// framing returns the framing of a stream of iWARP, which begins with an MPA frame if handshake is set.
func (ts *tcpStreams) framing(handshake bool) *mpa {
	return &mpa{shared: &ts.shared, handshake: handshake}
}

// setup returns the setup of a connection whose client sends in the direction of the key.
func (k streamKey) setup(transport string, handshake bool) Setup {
	ports := [2]record.Opt[uint16]{record.Some(k.srcPort), record.Some(k.dstPort)}
	return Setup{
		Transport: transport, IWARP: transport == IWARP, RPC: transport != IWARP, Handshake: handshake,
		Client: record.Some(Side(0)), Service: ports[1], ports: ports,
	}
}

// attachStream adds a stream to a connection. An older connection between the same ports ends. Frames
// is its framing if it carries iWARP, otherwise nil.
func (ts *tcpStreams) attachStream(c *Conn, side Side, key streamKey, frames *mpa) *flow {
	if old := ts.streams[key]; old != nil && old.conn != c {
		old.conn.reuse()
	} else if old != nil {
		c.drop(old)
	}
	f := c.addFlow(side, ts.connections.hosts.ends(&Address{IP: key.src}, &Address{IP: key.dst}), ledger{circle: order.Octets, ordered: true})
	f.overStream(key, frames)
	ts.streams[key] = f
	if c.flows[side.Other()] != nil {
		c.identify()
	}
	return f
}

// mayStartStream reports whether a segment of an unknown stream may carry iWARP. It
// rejects most segments of other protocols quickly.
func (ts *tcpStreams) mayStartStream(key streamKey, s *TCP) bool {
	if len(s.Payload) < iwarp.FPDULen(iwarp.TaggedLen) || len(s.Payload) < s.Length {
		return false
	}
	if back := ts.streams[key.reversed()]; back != nil {
		return true
	}
	return plausibleFPDU(s.Payload, false)
}

// recognizeStream recognizes a stream without a captured handshake by its framing: the
// segment has to consist of FPDUs with a correct CRC. Which side is the client is
// decided later; until then, the server is the side with a known port, or with the
// lower one.
func (ts *tcpStreams) recognizeStream(key streamKey, s *TCP) *flow {
	if back := ts.streams[key.reversed()]; back != nil && !back.conn.closing {
		side := back.side.Other()
		if back.conn.flows[side] == nil && plausibleFPDU(s.Payload, true) {
			return ts.attachStream(back.conn, side, key, ts.framing(false))
		}
		return nil
	}
	if !plausibleFPDU(s.Payload, false) {
		return nil
	}
	side := Side(0)
	asks := key
	isServer := ts.tracker.upper.ServerPort
	if isServer(key.srcPort) || key.srcPort < key.dstPort && !isServer(key.dstPort) {
		side, asks = 1, key.reversed()
	}
	setup := asks.setup(IWARP, false)
	if !isServer(asks.dstPort) {
		setup.Client = record.Opt[Side]{}
	}
	c := ts.connections.open(setup)
	c.identify() // The ports say which segments are its other direction.
	return ts.attachStream(c, side, key, ts.framing(false))
}

// plausibleFPDU reports whether data begins with a complete FPDU that has a correct
// CRC. If CRCs are off, their field is zero; then all of data has to consist of such
// FPDUs. If the connection is not known to be iWARP, the first of them has to be
// untagged, because an untagged header has more bits that can be checked.
func plausibleFPDU(data []byte, known bool) bool {
	for first := true; len(data) > 0; first = false {
		if len(data) < iwarp.FPDULen(iwarp.TaggedLen) {
			return false
		}
		ulpdu := int(be.Uint16(data))
		size := iwarp.FPDULen(ulpdu)
		var s iwarp.Segment
		if size > len(data) || ulpdu < iwarp.TaggedLen || s.Decode(data[iwarp.LengthLen:iwarp.LengthLen+ulpdu]) != nil || !s.Plausible() {
			return false
		}
		switch iwarp.CheckCRC(data[:size]) {
		case iwarp.CRCBad:
			return false
		case iwarp.CRCOk:
			return true
		}
		if first && !known && s.Tagged {
			return false
		}
		data = data[size:]
	}
	return true
}
