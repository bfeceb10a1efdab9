package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/link"
)

// Handshakes of TCP connections. Whether a connection carries RPC is known when its first
// data is captured, so the handshakes of all TCP connections are remembered for a while.

// maxOpened is the number of handshakes in one generation. The older generation is
// forgotten when the younger one is full.
const maxOpened = 2048

// opening is the handshake of a TCP connection, or its beginning.
type opening struct {
	client   streamKey // the direction in which the client sends
	asked    record.Stamp
	answered record.Stamp // the SYN of the server; its packet number is 0 if it was not captured
	seq      [2]uint32    // sequence numbers of the first bytes, by the client and by the server
	packets  int64
}

// openings contains the latest handshakes, by the direction in which the client sends.
type openings struct {
	young, old map[streamKey]opening
}

// note takes a segment with SYN.
func (o *openings) note(key streamKey, s *TCP) {
	if s.Flags&link.TCPACK == 0 {
		if before, known := o.find(key); known && before.seq[0] == s.Seq+1 { // a retransmission
			before.packets++
			o.put(key, before)
			return
		}
		o.put(key, opening{client: key, asked: s.At, seq: [2]uint32{s.Seq + 1}, packets: 1})
		return
	}
	key = key.reversed()
	if h, known := o.find(key); known && h.seq[0] == s.Ack {
		if h.answered.Packet == 0 {
			h.answered, h.seq[1] = s.At, s.Seq+1
		}
		h.packets++
		o.put(key, h)
	}
}

func (o *openings) put(key streamKey, h opening) {
	if o.young == nil || len(o.young) >= maxOpened {
		o.young, o.old = make(map[streamKey]opening), o.young
	}
	o.young[key] = h
}

func (o *openings) find(key streamKey) (h opening, known bool) {
	if h, known = o.young[key]; !known {
		h, known = o.old[key]
	}
	return h, known
}

// take removes and returns the handshake of a connection. The key is of either direction.
func (o *openings) take(key streamKey) (h opening, known bool) {
	if h, known = o.find(key); !known {
		key = key.reversed()
		h, known = o.find(key)
	}
	if known {
		delete(o.young, key)
		delete(o.old, key)
	}
	return h, known
}

// first returns the sequence number of the first byte of a direction.
func (h *opening) first(key streamKey) (seq uint32, known bool) {
	switch {
	case h.asked.Packet == 0:
		return 0, false
	case h.client == key:
		return h.seq[0], true
	}
	return h.seq[1], h.answered.Packet != 0
}

// describe fills in what the handshake shows about a connection.
func (h *opening) describe(c *Conn) {
	r := &c.record
	r.Packets += h.packets
	r.BeforePairing += h.packets
	r.First = min(r.First, h.asked.Time)
	if h.answered.Packet != 0 {
		r.Established = record.Some(h.answered.Time)
	}
	c.opened = h
}

// handshake takes a segment with SYN or RST of a stream that is not followed, and returns
// whether it shows the end of a connection to an RPC port: the server refused it.
func (rs *recordStreams) handshake(key streamKey, s *TCP, cur *currentPacket) (refused bool) {
	switch {
	case rs.tracker.OnlyRDMA:
	case s.Flags&link.TCPSYN != 0:
		rs.opened.note(key, s)
	case s.Flags&link.TCPRST != 0:
		h, known := rs.opened.take(key)
		if !known || h.client == key || h.answered.Packet != 0 || rs.tracker.upper.RPCPort(false, key.srcPort) != RPCPort {
			return false
		}
		c := rs.tcp.setPorts(rs.connections.newAnnouncedConn(), h.client)
		c.setup.IWARP, c.setup.RPC = false, true
		h.describe(c)
		rs.tcp.attachStream(c, 0, h.client)
		rs.connections.countFor(c, TCPTransport, cur)
		c.Report(rule.ConnectionRejected, Where{At: s.At}, "the server refused the TCP connection to its RPC port %d", key.srcPort)
		rs.connections.close(c, Ending{How: record.EndReset, By: record.Some(Side(1)), At: s.At, Reason: "connection refused"})
		rs.connections.markClosed(c)
		return true
	}
	return false
}
