package rdma

import (
	"encoding/binary"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/cause"
	"github.com/rdmadump/rdmadump/dissect/internal/path"
	"github.com/rdmadump/rdmadump/dissect/internal/queue"
	"github.com/rdmadump/rdmadump/dissect/internal/span"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
	"github.com/rdmadump/rdmadump/rocev2"
)

var (
	be = binary.BigEndian
	le = binary.LittleEndian
)

var ruleLost = rule.CaptureIncomplete

const maxSpans = span.Max

// The transports of connections.
const (
	RoCEv2     = "RoCEv2"
	RoCEv1     = "RoCEv1"
	InfiniBand = "InfiniBand"
	IWARP      = "iWARP"

	TCPTransport = "TCP" // RPC over TCP, without RDMA
	UDPTransport = "UDP"
)

// Tracker takes packets and TCP segments one after the other, and follows their
// connections. It is not safe for concurrent use.
type Tracker struct {
	// Connection, if not nil, receives the record of each connection when it is
	// finished. Finding, if not nil, receives the findings.
	Connection func(*record.Connection)
	Finding    func(*record.Finding)
	// Operation, if not nil, receives the record of each operation when it is finished, of the
	// connections for which Wanted returns true; nil wants all. TransactionOf returns the
	// transaction that a tag belongs to.
	Operation     func(*record.RDMAOperation)
	Wanted        func(*Conn) bool
	TransactionOf func(Tag) record.Opt[int64]
	// Findings counts the findings by severity, in the order of [record.Severities]. CM
	// counts management datagrams, Lost the packets that are missing from the capture,
	// and BadCRC the FPDUs with a bad CRC.
	Findings [len(record.Severities)]int64
	CM       int64
	Lost     int64
	BadCRC   int64
	// Missing, if not nil, receives the number of packets from one host to another one that are missing from the capture,
	// and the times between which they passed. Retired, if not nil, receives each connection when it is finished.
	Missing func(src, dst Address, n int64, from, to record.Time)
	Retired func(Retired)
	// BadChecksum counts TCP segments of iWARP that their receiver drops because of
	// their checksum.
	BadChecksum int64
	// Payload, if not nil, receives the payload of each packet and FPDU, and the tag of the
	// memory that it belongs to.
	Payload func(p *wiremap.Payload, of Tag)
	// Offsets makes the tracker determine the offset of each packet in its stream.
	Offsets bool
	// KeepFPDUs makes the tracker keep the FPDUs that a segment completes; see
	// [PacketVerdict].
	KeepFPDUs bool
	// Selects, if not nil, reports whether a time is in the span of time whose packets a connection's record counts
	// in Selected.
	Selects func(record.Time) bool
	// Why, if not nil, explains a packet.
	Why *Why
	// Pauses sums up the frames that paused a link. The caller passes them to it.
	Pauses path.Pauses
	// Clock is the time that timers use. It never goes back. The caller sets it to the
	// time of a packet before it passes the packet.
	Clock record.Time

	now       record.Stamp // the latest packet
	upper     UpperLayer
	budget    *budget.Budget
	unordered int // number of connections whose packets are in an order in which they cannot have been sent

	icrcs       *icrcTrust
	connections *connections
	handshakes  *handshakes
	held        decoded
	tcp         *tcpStreams
	current     currentPacket // storage of the current packet
	charges     charges
	udp         *datagrams
	pool        pool
	buffers     *queue.Buffers
	leaving     []*Conn              // are finished at the end of the packet
	finished    record.RDMAOperation // the latest record of an operation
	bursts      cause.Numbers
	contents    *contents
}

// New returns a tracker that reports to an upper layer.
func New(upper UpperLayer, b *budget.Budget) *Tracker {
	t := &Tracker{upper: upper, budget: b, buffers: new(queue.Buffers)}
	t.contents = &contents{tracker: t}
	t.connections = &connections{
		tracker: t, contents: t.contents,
		hosts: newHosts(), routes: routes{all: map[ends]*route{}}, queues: map[queueKey]*flow{},
	}
	head := &t.connections.conns
	head.prev, head.next = head, head
	t.handshakes = &handshakes{connections: t.connections, comms: map[commID]*Conn{}}
	t.tcp = &tcpStreams{tracker: t, connections: t.connections, streams: map[streamKey]*flow{}}
	t.udp = &datagrams{tracker: t, connections: t.connections, flows: map[streamKey]*flow{}}
	t.connections.handshakes = t.handshakes
	t.icrcs = &icrcTrust{tracker: t, connections: t.connections}
	return t
}

// Count counts a finding by its severity.
func (t *Tracker) Count(r *rule.Rule) { t.Findings[slices.Index(record.Severities[:], r.Severity)]++ }

// Unordered notes that the packets are not in the order in which they were sent.
func (t *Tracker) Unordered() { t.unordered = max(t.unordered, 2) }

// Select counts what was counted for a connection since the last call as packets in the time that is selected, if inside
// is set. Damaged is set if the current packet has a bad checksum.
func (t *Tracker) Select(c *Conn, inside, damaged bool) {
	c.record.choose(inside, damaged)
}

// Closing reports whether a side began to end a connection, which may be nil.
func (t *Tracker) Closing(c *Conn) bool { return c != nil && (c.closing || c.fin.Known()) }

// Tick finishes the connections, and assigns the IDs, whose waiting time is over.
func (t *Tracker) Tick() {
	t.connections.expire()
	t.udp.expire()
}

// Connections returns the number of records, including those to come.
func (t *Tracker) Connections() int { return t.connections.retired + t.connections.live }

// Open calls visit with the record so far of each open connection that has an ID. A record is valid until
// visit returns.
func (t *Tracker) Open(visit func(*record.Connection)) {
	for c := t.connections.conns.next; c != &t.connections.conns; c = c.next {
		if c.setup.ID.Known() {
			r := c.makeRecord()
			c.follower.Describe(r)
			visit(r)
		}
	}
}

// Close ends the operations in progress on all connections, oldest connection first,
// and calls ended after each connection. [Tracker.Finish] passes the records
// afterwards.
func (t *Tracker) Close(ended func()) {
	t.tcp.unanswered()
	for c := t.connections.conns.next; c != &t.connections.conns; c = c.next {
		c.identify()
		c.flush()
		ended()
	}
}

// Finish passes the records of all connections to Connection, oldest first.
func (t *Tracker) Finish() {
	for t.connections.conns.next != &t.connections.conns {
		t.connections.conns.next.finish()
	}
}

// begin begins a packet.
func (t *Tracker) begin(at record.Stamp, class uint8) *currentPacket {
	cur := &t.current
	*cur = currentPacket{} // a statement of its own, so that the compiler clears it in place
	cur.at, cur.class = at, class
	t.now = at
	t.pool.reclaim()
	return cur
}

// Packet takes a packet of InfiniBand's transport, and returns the verdict on it, which is valid until the next packet.
func (t *Tracker) Packet(d *Datagram) *PacketVerdict {
	cur := t.begin(d.At, d.Class)
	cur.left, cur.early = d.Path.Left(), d.Path.Early
	if d.Path.Copy {
		cur.mark(nil, record.Duplicated)
	}
	t.packet(d, cur)
	if t.Why != nil {
		t.Why.dropped(cur)
	}
	t.settle(cur)
	return &cur.PacketVerdict
}

// leave makes a connection one that is finished at the end of the packet.
func (t *Tracker) leave(c *Conn) { t.leaving = append(t.leaving, c) }

// settle charges the memory of the connection of a packet that was applied to the end, and finishes the connections that ended in it.
func (t *Tracker) settle(cur *currentPacket) {
	if cur.Conn != nil {
		t.charges.note(cur.Conn)
	}
	for i, c := range t.leaving {
		c.finish()
		t.leaving[i] = nil
	}
	t.leaving = t.leaving[:0]
}

func (t *Tracker) packet(d *Datagram, cur *currentPacket) {
	p := d.Packet
	service := p.Opcode.Transport()
	var e ends // the known ends of the packet
	if service == rocev2.UD {
		if p.DestQPN != 1 {
			return // datagrams of other services, multicast
		}
		t.CM++
		if t.icrcs.accepts(d, &e, cur) {
			if c := t.handshakes.handleMAD(d); c != nil {
				c.took(d.Transport, cur)
			}
		} else {
			cur.Offset.Dropped = true
		}
		return
	}
	info := p.Opcode.Info()
	if !info.Known || service == rocev2.RD {
		return
	}
	known := t.connections.toward(d, p.DestQPN, &e)
	if vouched := d.ICRC == rocev2.ICRCOk && known != nil && known.src.FillsICRC && known.dst.known; !vouched && !t.icrcs.accepts(d, &e, cur) {
		if f := known; f != nil { // dropped by its receiver
			cur.Conn, cur.Offset = f.conn, f.offsetOf(p)
			f.conn.countPacket()
			f.doubt(d)
			switch {
			case service != rocev2.RC:
			case info.Request:
				f.missedRequest(d, cur)
			default:
				f.damagedResponse(d)
				f.missedResponse(d, cur)
			}
		}
		cur.Offset.Dropped = true
		return
	}
	f := t.connections.enter(t.connections.place(known, d, &e), d, &e)
	c := f.conn
	f.qp.identify(d)
	f.notePacket(info.Request && p.AckReq && !d.Path.Undelivered())
	c.took(d.Transport, cur)
	if t.contents.wantsOffsets() {
		cur.Offset = f.offsetOf(p)
	}
	if d.Path.Undelivered() {
		t.lostOnPath(f, d, cur)
		return
	}
	if d.Congested {
		c.record.congestion(false, d.At)
	}
	f.way.Packet(d.Class, d.Congested, info.Kind == rocev2.KindCongestion)
	switch {
	case info.Kind == rocev2.KindCongestion:
		c.record.congestion(true, d.At)
	case service == rocev2.UC:
		f.unreliable(d, cur)
	case info.Request:
		if c.setup.Handshake && f.side == 0 {
			c.establish(d.At)
		}
		f.request(d, cur)
	default:
		if d.Path.Joined {
			f.noteResponse(d, false)
		}
		f.response(d, cur)
	}
	f.qp.unpaired.update(f)
	if cur.Mark&record.Retransmitted != 0 {
		f.way.Repeated++
	}
}
