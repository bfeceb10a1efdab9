package rdma

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/link"
)

// Handshakes of TCP connections. Whether a connection carries RPC is known when its first
// data is captured, so the handshakes of all TCP connections are remembered for a while.

// maxOpened is the number of handshakes in one generation. The older generation is
// forgotten when the younger one is full.
const maxOpened = 1024

// opening is the handshake of a TCP connection, or its beginning.
type opening struct {
	asked    record.Stamp
	again    record.Stamp // the latest retransmission of the client's SYN; its packet number is 0 if there is none
	answered record.Stamp // the SYN of the server; its packet number is 0 if it was not captured
	seq      [2]uint32    // sequence numbers of the first bytes, by the client and by the server
	packets  int32
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
			before.again = s.At
			o.put(key, before)
			return
		}
		o.put(key, opening{asked: s.At, seq: [2]uint32{s.Seq + 1}, packets: 1})
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

// take removes and returns the handshake of a connection. The key is of the direction in
// which a side sends.
func (o *openings) take(key streamKey) (h opening, sender Side, known bool) {
	if h, known = o.find(key); !known {
		key, sender = key.reversed(), 1
		h, known = o.find(key)
	}
	if known {
		delete(o.young, key)
		delete(o.old, key)
	}
	return h, sender, known
}

// first returns the sequence number of the first byte that a side sends. Side 0 is the client.
func (h *opening) first(s Side) (seq uint32, known bool) {
	return h.seq[s], s == 0 || h.answered.Packet != 0
}

// opens notes the handshake of the connection.
func (c *Conn) opens(h *opening) {
	c.record.opens(h)
	c.opened = h
}

// setKey sets the key of the connection, if the server's answer was captured.
func (h *opening) setKey(c *Conn) {
	if h.answered.Packet != 0 {
		c.setKey(h.seq[0], h.seq[1])
	}
}

// portNFSRDMA is the port of NFS over RDMA (IANA's service name is nfsrdma), which is a TCP port for iWARP.
const portNFSRDMA = 20049

// awaitsRPC reports whether a TCP port is one of a server for RPC, with or without RDMA.
func (ts *tcpStreams) awaitsRPC(port uint16) bool {
	kind := ts.tracker.upper.RPCPort(false, port)
	return kind == RPCPort || kind == UnknownPort && port == portNFSRDMA
}

// unansweredAfter is the time between the first SYN and a retransmission of it after which the
// connection counts as unanswered. It is less than the first timeout (RFC 6298 s.2), and more than the
// distance of two copies of a packet in a capture.
const unansweredAfter = record.Time(500e6)

// unanswered starts a connection for each handshake with an RPC port that nothing answered, at the end of
// the capture.
func (ts *tcpStreams) unanswered() {
	var keys []streamKey
	for _, m := range []map[streamKey]opening{ts.opened.young, ts.opened.old} {
		for key, h := range m {
			if h.answered.Packet == 0 && h.again.Packet != 0 && h.again.Time-h.asked.Time >= unansweredAfter && ts.awaitsRPC(key.dstPort) {
				keys = append(keys, key)
			}
		}
	}
	asked := func(key streamKey) int64 {
		h, _ := ts.opened.find(key)
		return h.asked.Packet
	}
	slices.SortFunc(keys, func(a, b streamKey) int { return cmp.Compare(asked(a), asked(b)) })
	for _, key := range slices.Compact(keys) {
		if h, _, known := ts.opened.take(key); known {
			ts.announced(key, &h)
		}
	}
}

// announced starts a connection of which nothing but the client's SYN was captured. The key is the
// direction in which the client sends.
func (ts *tcpStreams) announced(key streamKey, h *opening) *Conn {
	c := ts.connections.open(key.setup(TCPTransport, true))
	c.opens(h)
	ts.attachStream(c, 0, key, ts.framing(true))
	return c
}

// handshake takes a segment with SYN or RST of a stream that is not followed, and returns
// whether it shows the end of a connection to an RPC port: the server refused it.
func (ts *tcpStreams) handshake(key streamKey, s *TCP, cur *currentPacket) (refused bool) {
	switch {
	case s.Flags&link.TCPSYN != 0:
		ts.opened.note(key, s)
	case s.Flags&link.TCPRST != 0:
		h, sender, known := ts.opened.take(key)
		if !known || sender == 0 || h.answered.Packet != 0 || s.Ack != h.seq[0] || !ts.awaitsRPC(key.srcPort) {
			return false
		}
		c := ts.announced(key.reversed(), &h)
		c.took(TCPTransport, cur)
		c.Report(rule.ConnectionRejected, Where{At: s.At}, "the server refused the TCP connection to its RPC port %d", key.srcPort)
		c.close(Ending{How: record.EndReset, By: record.Some(Side(1)), At: s.At, Reason: "connection refused"})
		c.bothClosed()
		return true
	}
	return false
}
