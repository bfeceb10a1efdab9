package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/cause"
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/internal/path"
	"github.com/rdmadump/rdmadump/dissect/internal/sent"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// flow is one direction of a connection: the packets of one sender. Its requests
// (Sends, Writes, Read Requests) have their own sequence numbers. On InfiniBand, its
// responses carry the PSNs of the requests of the other direction.
type flow struct {
	half              // what depends on the transport: qp or stream
	qp     *queuePair // InfiniBand; nil otherwise
	stream *stream    // iWARP and RPC over TCP; nil otherwise

	conn        *Conn
	src, dst    *Host
	side        Side         // side of the sender
	refusals    int16        // number of fatal refusals
	refused     *Refusal     // first fatal refusal, after which nothing is accepted; nil if there was none
	seq         uint64       // number of operations so far
	seen        bool         // a packet of it was captured
	lateStart   bool         // its first packets were not captured
	way         path.Way     // of its packets to the capture point
	missing     bool         // packets of it are missing from the capture, or may be
	lackedAtEnd bool         // when the connection ended, its receiver lacked what is missing before the packets that wait
	stopped     bool         // what waited for packets that will not come was taken
	silent      bool         // it did not answer silentAfter requests that ask for a response
	unanswered  record.Time  // of its first request since the last packet of the peer, if it sent none of them once more; 0 if there is none
	wentOn      bool         // it sent further requests when it would have sent that one once more without an answer
	asked       int16        // number of such requests of the peer since the last packet of this flow
	cause       cause.Sender // why it retransmits
	burst       int64        // number of the latest burst with a packet of it
	again       record.Time  // its latest retransmission
	order       order.Order[held]
	applying    bool   // facts are being applied
	drains      bool   // they make requests that wait the next ones
	ops         ledger // operations, by sequence number
	heldCopies  int64  // retransmissions of requests that wait, or did not come to their receiver
	parts       assembly
	taken       record.Time  // of the latest request, or segment, that is in order
	offsets     *offsets     // nil if no positions are wanted
	sent        *sent.Sender // nil without several capture points
	absent      *window      // with several capture points: requests that left their sender, and of which no copy has come to the receiver
}

// taken is a packet of requests that is being taken: a *Datagram or a *TCP.
type taken interface {
	// accept takes what is next of the packet, again what came before, and wait keeps the packet, which came before one that it has to follow.
	accept(f *flow, fact *order.Fact[held], cur *currentPacket)
	again(f *flow, fact *order.Fact[held], cur *currentPacket)
	wait(f *flow, cur *currentPacket)
	// isRepeat reports whether the first captured copy, which comes after later ones, is a retransmission of a copy that was lost before
	// the capture, and takes it as one: its sender was idle for as long as its timer. Otherwise, the network or the capture may have
	// delayed the packet.
	isRepeat(f *flow, fact *order.Fact[held], cur *currentPacket) bool
}

// carry takes a packet of requests that came to its receiver.
func (f *flow) carry(p taken, r order.Request, path *Path, cur *currentPacket) {
	again := path.Joined && f.noteSent(f.order.Run(&r), *path) && f.order.IsNew(r.PSN)
	cur.fills = isOvertaken(path, f.waiting())
	f.apply(p, f.order.Take(r, f.conn.mtu), cur)
	f.settleAbsent()
	f.reportLost()
	if again && cur.Mark&record.Retransmitted == 0 {
		f.sentAgain(f.order.Run(&r), false, cur)
	}
	if !path.Copy {
		f.noteRequested(r.At)
	}
}

// apply applies the facts that a packet shows about the order of the requests, or that the end of the connection shows. p is the
// packet of requests that is being taken, nil if there is none. No other function changes operations because of requests
// and acknowledgements.
func (f *flow) apply(p taken, facts []order.Fact[held], cur *currentPacket) {
	own := (*currentPacket)(nil) // is allocated for the first one that waited
	f.applying = true
	for i := range facts {
		fact := &facts[i]
		if why := f.conn.tracker.Why; why != nil {
			why.fact(f, fact)
		}
		switch fact.Kind {
		case order.Begun:
			f.begins(fact)
		case order.Unordered:
			f.conn.Disorder()
		case order.Extended:
			f.ops.last().extend(fact.N)
		case order.Accepted:
			if fact.Item == nil {
				p.accept(f, fact, cur)
				continue
			}
			if own == nil {
				own = new(currentPacket)
			}
			f.acceptHeld(fact, cur, cur.accepting(fact.Item, own))
		case order.Filled, order.Late: // the current packet came after those that wait, or after later ones
			if fact.Kind == order.Late && !fact.Known { // it comes before the first captured one
				continue
			}
			f.way.Late++
			switch {
			case p.isRepeat(f, fact, cur):
			case fact.Kind == order.Late:
				f.conn.record.counts.OutOfOrder++
				f.conn.Disorder()
				cur.mark(nil, record.Late)
			case cur.fills:
				f.conn.record.counts.OutOfOrder++
				cur.mark(nil, record.OutOfOrder)
			}
		case order.Released:
			f.settleHeld(fact.From, fact.Item)
		case order.Missing:
			f.misses(fact)
		case order.Again:
			p.again(f, fact, cur)
		case order.Waits:
			p.wait(f, cur)
		case order.AckedTo:
			f.ops.receiver.acceptedTo(fact.To)
			if f.cause.Progress(cur.at.Time); cur.shows {
				f.cause.ShowsGap(cur.at.Time)
			}
		case order.AckedAgain:
			if (cur.bare || cur.shows) && cur.Mark&record.Duplicated == 0 {
				f.cause.ShowsGap(cur.at.Time)
			}
		case order.Covered:
			f.covered(fact.To, cur)
		}
	}
	if f.applying = false; f.drains {
		f.drain(cur)
	}
}

// drain takes the requests that wait, and are next because the extent of a Read became known.
func (f *flow) drain(cur *currentPacket) {
	if f.drains = f.applying; !f.drains {
		f.apply(nil, f.order.Drain(f.conn.mtu), cur)
	}
}

// half is the part of a flow that depends on its transport.
type half interface {
	cause.Evidence
	// announcedFirst reports whether the handshake shows the first sequence number.
	announcedFirst() bool
	// awaited reports whether something was acknowledged that was not captured yet.
	awaited() bool
	// destination returns the queue pair that the packets go to.
	destination() record.Opt[record.Hex24]

	// begins takes the sequence number of the first request, acceptHeld one that waited and is next now, which is taken as a packet of its
	// own, and misses what is missing from the capture.
	begins(*order.Fact[held])
	acceptHeld(fact *order.Fact[held], cur, taking *currentPacket)
	misses(*order.Fact[held])
	// acceptSent accepts the earliest request that did not come to its receiver; see absent.go.
	acceptSent()
	// flush ends what is incomplete, because no packets follow.
	flush()
	// evict frees what is incomplete, and reports whether there was anything.
	evict() bool
	// size returns the memory of what depends on the transport, in bytes.
	size() int64
	// unlist removes the flow from the table by which its packets find it.
	unlist()
}

// overQueuePair makes the flow one of InfiniBand's transport.
func (f *flow) overQueuePair(r *route, qpn uint32, o *offsets) {
	f.qp, f.offsets = &queuePair{flow: f, route: r, qpn: qpn}, o
	f.half = f.qp
}

// overStream makes the flow one over TCP.
func (f *flow) overStream(key streamKey, frames *mpa) {
	w := &stream{flow: f, key: key}
	if frames != nil {
		w.carries(frames)
	}
	f.stream, f.half, f.offsets = w, w, f.conn.tracker.contents.newStreamOffsets()
}

// overDatagrams makes the flow one over UDP.
func (f *flow) overDatagrams(key streamKey) {
	f.half, f.offsets = &datagramFlow{flow: f, key: key}, f.conn.tracker.contents.newStreamOffsets()
}

// release frees what the flow of a finished connection holds. A timer queue may keep the connection for a while.
func (f *flow) release() {
	t := f.conn.tracker
	for f.ops.len() > 0 {
		if o := f.ops.pop(); o.ledgers == 0 {
			t.pool.free(o)
		}
	}
	f.parts.free(t.buffers)
	f.ops, f.parts = ledger{}, assembly{}
}

// queuePair is the half of InfiniBand's transport: the progress of one direction, in PSNs.
type queuePair struct {
	flow *flow
	qpn  uint32 // number of the destination queue pair

	route     *route // from src to dst
	full      int    // largest payload of a packet that is not the last of its message, bytes
	numbered  bool   // the sender gives its packets different IP identifications
	number    uint16 // the first one
	announced bool   // the handshake contained the PSN of its first request
	acksSeen  bool   // this side acknowledged a PSN before the other direction was known
	lastAck   uint32
	lastAckAt record.Stamp
	damaged   []damagedSend      // the latest Sends with a bad ICRC that belong to no known operation
	doubted   []doubted          // the latest packets with a bad ICRC, until the capture shows whether they were dropped
	broken    record.Opt[uint32] // PSN of the latest request that was lost or damaged and whose PSN was expected

	search
}

// identify forgets the IP identification of a packet of a sender that gives all its packets the same one: it distinguishes none
// (RFC 6864).
func (q *queuePair) identify(d *Datagram) {
	if q.number == 0 {
		q.number = d.Identification
	}
	if q.numbered = q.numbered || d.Identification != q.number; !q.numbered {
		d.Identification = 0
	}
}

func (q *queuePair) announcedFirst() bool { return q.announced }
func (q *queuePair) evict() bool          { return false }
func (q *queuePair) awaited() bool        { return q.flow.order.Awaits() }

// begins takes the PSN of the first request. If its acknowledgement came first, the packets are in disorder.
func (q *queuePair) begins(fact *order.Fact[held]) {
	f := q.flow
	f.lateStart = !fact.Known
	if f.ops.receiver.begin(fact.From); fact.N > 0 {
		f.conn.Disorder()
	}
}

// announce notes the PSN of the first request in the handshake.
func (q *queuePair) announce(psn uint32) {
	q.announced = true
	q.flow.order.Announce(psn)
}

func (q *queuePair) destination() record.Opt[record.Hex24] {
	return record.Some(record.Hex24(q.qpn))
}

// waiting returns the requests or segments that came early; it may be nil.
func (f *flow) waiting() *window { return f.order.Window() }

// skip moves past what is missing before the first of them.
func (f *flow) skip(cur *currentPacket) {
	f.apply(nil, f.order.SkipGap(f.conn.mtu), cur)
}

func (q *queuePair) flush() {
	q.flow.apply(nil, q.flow.order.SkipAcked(q.flow.conn.last), &currentPacket{at: q.flow.conn.last})
}

func (q *queuePair) unlist() {
	cs := q.flow.conn.tracker.connections
	if key := (queueKey{q.route, q.qpn}); cs.queues[key] == q.flow {
		delete(cs.queues, key)
	}
	q.unpaired.remove(q.flow)
	cs.routes.leave(q.route)
}

// peer returns the flow in the other direction, nil if no packet of it was captured.
func (f *flow) peer() *flow { return f.conn.flows[f.side.Other()] }

// notePacket notes a packet of the flow. asks is set if its receiver has to respond.
func (f *flow) notePacket(asks bool) {
	f.seen, f.asked = true, 0
	if asks {
		f.asks(f.conn.tracker.now.Time)
	}
	peer := f.peer()
	if peer == nil {
		return
	}
	peer.wasAnswered(false)
	if asks {
		if peer.asked++; peer.asked >= silentAfter {
			peer.silent = true
		}
	}
}

// asks notes a request that asks for a response. A requester without a response sends a request once more within four times its timer.
func (f *flow) asks(at record.Time) {
	if f.unanswered == 0 {
		f.unanswered = at
	}
	timer := f.conn.timer.Or(0)
	f.wentOn = timer > 0 && at-f.unanswered > 4*timer
}

// wasAnswered notes that the other side sends something, or ends. If the side went on for long without an answer, and sent nothing once
// more, it got answers that are not in the capture. If others of that side were captured before and after them, their sequence numbers count them.
func (f *flow) wasAnswered(ends bool) {
	if peer := f.peer(); f.wentOn && peer != nil && (ends || peer.taken == 0) {
		f.conn.countMissing(peer.side, 1, peer.taken, f.conn.tracker.now.Time)
	}
	f.repeats()
}

// repeats notes that the side sends something once more, so that it got no answer.
func (f *flow) repeats() { f.unanswered, f.wentOn = 0, false }

// lackedByReceiver reports whether the receiver's last word is that it lacks what is missing before the packets that wait: it said
// so after one of them was captured, and has acknowledged nothing of that since. The network may have lost what is missing. The receiver
// also lacks a request that was lost or has a bad ICRC, and that it did not acknowledge.
func (f *flow) lackedByReceiver() bool {
	w := f.waiting()
	return !w.Empty() && f.refused == nil && !f.order.IsAcked(f.order.Expected()) && (f.cause.Lacked(f.order.Expected(), w.Since()) || f.qp != nil && f.qp.broken == record.Some(f.order.Expected()))
}

// silentAfter is the number of requests that ask for a response. If a side sends no
// packet while the other side sends that many, the packets of the side are taken to be
// missing from the capture.
const silentAfter = 16
