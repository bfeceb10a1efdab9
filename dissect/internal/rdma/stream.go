package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/link"
)

// stream is one direction of a TCP connection that carries iWARP, or RPC. Package order puts the bytes of its segments in
// order, and its framer finds out what they carry.
type stream struct {
	flow    *flow
	key     streamKey
	order   order.Bytes[held]
	reached uint32 // the framer made operations of the bytes before it
	frames  framer

	acks  record.Opt[uint32] // the acknowledgement of the segment whose data is being taken; unknown if the segment had to wait
	early record.Opt[uint32] // the latest acknowledgement of bytes of the other direction, of which none was captured yet
}

// framer finds FPDUs or records in the bytes of a stream, and makes operations of them. If the stream has reached a sequence
// number before feed returns, the framer says so ([stream.reach]).
type framer interface {
	// feed takes the next bytes, which have the sequence numbers r; data was captured of them. offset is their position in
	// the frame, or -1.
	feed(data []byte, offset int, r order.Run, cur *currentPacket)
	// skip moves past missing bytes.
	skip(r order.Run)
	// early shows what is in a segment that has to wait for earlier ones, and returns the sequence numbers of that.
	early(s *TCP) order.Run
	// attribute finds the operation of a segment that brought only a part of an FPDU.
	attribute(cur *currentPacket)
	// end notes a segment with which the sender ended the stream.
	end(s *TCP)

	opening() bool // the first segment of the stream is its beginning: the handshake of iWARP is not complete, or that of TCP was captured
	given() bool   // the stream does not carry what it was taken for

	size() int64 // its memory, in bytes
	flush()      // reports what is incomplete, because no bytes follow
	evict() bool // frees what is incomplete, and reports whether there was anything
	release()    // gives back the storage
}

// reach notes the sequence number up to which the framer made operations of the bytes. While a segment is taken, the order
// of the stream is ahead of that: it has all bytes of the segment, and the follower does not know what they contain yet.
func (w *stream) reach(seq uint32) { w.reached = seq }

// carries makes the stream one of iWARP.
func (w *stream) carries(m *mpa) {
	m.of(w)
	w.frames = m
}

// expect sets the sequence number of the first byte of a stream of records, if the handshake shows
// it. A segment with the sequence number seq was captured.
func (w *stream) expect(h *opening, seq uint32, r *records) {
	if first, known := h.first(w.flow.side); known && order.Octets.Delta(seq, first) >= 0 {
		w.order.Announce(first)
		w.reach(first)
		r.found()
	}
}

// take takes a segment of the stream.
func (w *stream) take(s *TCP, cur *currentPacket) {
	f, c := w.flow, w.flow.conn
	f.seeWay(s)
	if s.Flags&link.TCPACK != 0 {
		if peer := f.peer(); peer == nil || !peer.stream.order.Known() {
			w.early = record.Some(s.Ack)
		} else {
			peer.answeredAt(s.Ack, cur.at)
			peer.stream.apply(s, peer.stream.order.Acknowledge(s.Ack), cur)
			if s.Length == 0 { // it has no other purpose
				cur.mark(peer.ops.at(s.Ack-1), 0)
			}
		}
	}
	if s.Length > 0 {
		w.carry(s, cur)
	}
	switch {
	case s.Flags&link.TCPRST != 0:
		c.close(Ending{How: record.EndReset, By: record.Some(f.side), At: s.At})
		c.bothClosed()
	case s.Flags&link.TCPFIN != 0:
		w.order.End(s.run().To)
		w.frames.end(s)
		peer := f.peer()
		by := record.Some(f.side)
		if peer != nil && peer.stream.order.Ended() && !peer.stream.order.EndIsAcked() && w.order.IsAcked(s.run().To) {
			by = record.Opt[Side]{} // this FIN was acknowledged before it was captured, and did not follow the other one
		}
		c.closedByFIN(by, peer == nil || peer.stream.order.Ended(), s.At)
	}
}

// run returns the sequence numbers of a segment.
func (s *TCP) run() order.Run { return order.Run{From: s.Seq, To: s.Seq + uint32(s.Length)} }

// request returns what the order of segments depends on.
func (s *TCP) request() order.Request {
	return order.Request{PSN: s.Seq, Size: uint32(s.Length), At: s.At}
}

// carry takes a segment with data.
func (w *stream) carry(s *TCP, cur *currentPacket) {
	f, r, isNew := w.flow, s.run(), w.order.IsNew(s.Seq)
	again := s.Path.Joined && f.noteSent(r, s.Path) && isNew
	if !s.Path.Copy && isNew {
		f.cause.New(s.Seq, f.sent.Time(s.At))
	}
	cur.Offset = f.offsets.requests(order.Octets, s.Seq)
	f.asksWith(s, isNew)
	w.followsAcknowledgement(s)
	cur.fills = cur.isOvertaken(f.waiting())
	w.apply(s, w.order.Take(s.request()), cur)
	if f.settleAbsent(); again && cur.Mark&record.Retransmitted == 0 {
		f.sentAgain(r, false, cur)
	}
	if !s.Path.Copy {
		f.noteRequested(s.At)
	}
	if cur.Op == nil {
		w.frames.attribute(cur)
	}
	if cur.Mark&record.Retransmitted != 0 {
		f.way.Repeated++
	}
}

// followsAcknowledgement notes whether the other direction had acknowledged bytes of the first segment of this direction
// before it was captured. If the capture lacks the beginning, too, a Reply may be one to a Call that was not captured.
func (w *stream) followsAcknowledgement(s *TCP) {
	if peer := w.flow.peer(); peer != nil && peer.stream.acknowledgedBefore(s.Seq) {
		c := w.flow.conn
		if c.setup.overtook(w.flow.side); !c.setup.Handshake {
			c.Disorder()
		}
	}
}

// acknowledgedBefore reports whether the stream acknowledged a byte before any byte of the other direction was captured, and
// forgets that.
func (w *stream) acknowledgedBefore(seq uint32) bool {
	acked, known := w.early.Get()
	w.early = record.Opt[uint32]{}
	return known && order.Octets.Delta(acked, seq) > 0
}

// apply applies the facts that a segment shows about the order of the bytes, as [flow.apply] does for InfiniBand. s is the segment
// that is being taken, or one of the other side that acknowledges bytes of the stream, nil if there is none.
func (w *stream) apply(s *TCP, facts []order.Fact[held], cur *currentPacket) {
	f, own := w.flow, (*currentPacket)(nil) // own is allocated for the first segment that waited
	for i := range facts {
		fact := &facts[i]
		if why := f.conn.tracker.Why; why != nil {
			why.fact(f, fact)
		}
		switch fact.Kind {
		case order.Begun:
			w.reach(fact.From)
			f.start(!w.frames.opening())
		case order.Unordered:
			f.conn.Disorder()
		case order.Accepted:
			if item := fact.Item; item == nil {
				w.acks = record.SomeIf(s.Ack, s.Flags&link.TCPACK != 0)
				w.deliver(s.Payload, s.Offset, int(fact.From-s.Seq), fact.Run, cur)
			} else {
				if own == nil {
					own = new(currentPacket)
				}
				w.acks = record.Opt[uint32]{}
				w.deliver(item.data, -1, item.length-int(fact.To-fact.From), fact.Run, cur.accepting(item, own))
			}
		case order.Filled: // the current segment came after those that wait
			lost := w.firstCopyLost(s)
			if lost {
				o := f.ops.at(s.Seq)
				f.retransmitted(o, f.burstOf(fact.Run, o, s.At), cur)
			}
			f.filled(lost, cur)
		case order.Released:
			f.settleHeld(fact.From, fact.Item)
		case order.Missing:
			w.lacks(fact.Run, fact.At)
			w.reach(fact.To)
			w.frames.skip(fact.Run)
		case order.Late:
			if fact.Known { // otherwise it comes before the first captured one
				lost := w.firstCopyLost(s)
				if lost {
					w.takeAgain(s, fact.Run, cur)
				}
				f.late(lost, cur)
			}
		case order.Again:
			w.takeAgain(s, fact.Run, cur)
		case order.Waits:
			w.hold(s, cur)
			w.apply(s, w.order.Waited(), cur)
		case order.AckedTo:
			if f.cause.Progress(cur.at.Time); s.ReportsGap() {
				f.cause.ShowsGap(cur.at.Time)
			}
		case order.AckedAgain:
			if (s.Length == 0 || s.ReportsGap()) && !s.Path.Copy {
				f.cause.ShowsGap(cur.at.Time)
			}
		case order.Covered:
			w.covers(s, fact.To, cur)
		}
	}
}

// firstCopyLost reports whether a first captured copy of a segment is a retransmission of a copy that was lost before the
// capture; see [flow.firstCopyLost].
func (w *stream) firstCopyLost(s *TCP) bool { return w.flow.wasIdle(s.Path, s.At) }

// takeAgain takes bytes of a segment that were captured before: all of it, or its first ones.
func (w *stream) takeAgain(s *TCP, r order.Run, cur *currentPacket) {
	f := w.flow
	if s.Length == 1 && w.order.IsAcked(s.Seq) && order.Octets.Add(s.Seq, 1) == f.expected() { // a keep-alive with a byte of garbage (RFC 9293 s.3.8.4)
		return
	}
	o, all := f.ops.at(s.Seq), s.run()
	if s.Path.Copy {
		cur.mark(o, 0)
		return
	}
	if r == all {
		f.cause.Retry(s.Seq, !w.order.Acknowledged() || w.order.IsAcked(s.Seq), s.At)
	}
	f.ops.copiedTo(all.From, all.To, s.At)
	f.retransmitted(o, f.burstOf(all, o, s.At), cur)
}

// hold keeps a copy of a segment that came before one that it has to follow.
func (w *stream) hold(s *TCP, cur *currentPacket) {
	cur.markAfterGap(nil)
	f := w.flow
	buffers := f.conn.tracker.buffers
	if item := w.order.Window().Item(order.Octets, s.Seq); item != nil {
		if !s.Path.Copy {
			f.noteHeldRetransmission(item, cur, nil)
		}
		if grown := len(s.Payload) - len(item.data); grown > 0 { // the longer copy is kept
			item.lengthen(buffers, s.Payload, s.Length)
			w.order.Lengthen(grown)
		}
		return
	}
	cur.shown = w.frames.early(s)
	copied := held{stamp: s.At, class: s.Class, data: buffers.Add(nil, s.Payload), length: s.Length, shown: cur.shown, early: cur.early}
	w.order.Hold(len(copied.data), copied)
}

// lacks counts bytes as not captured, unless the network may have lost them. A packet shows it.
func (w *stream) lacks(r order.Run, at record.Stamp) {
	if w.flow.lackedAtEnd {
		w.flow.noteMissing()
		return
	}
	c := w.flow.conn
	c.countMissing(w.flow.side, 1, w.flow.taken, at.Time)
	c.Report(ruleLost, Where{At: at}, "%s of the TCP stream from sequence number %d %s not in the capture", record.Plural(r.To-r.From, "byte"), r.From, record.Are(r.To-r.From))
}

// covers notes that the receiver's TCP has received all bytes before a sequence number. Its RDMAP may still refuse them
// with a Terminate, for example a Reply. A segment without data has no other purpose, and is a packet of the operations
// that it acknowledges.
func (w *stream) covers(s *TCP, next uint32, cur *currentPacket) {
	f, first := w.flow, w.flow.ops.unacked
	f.covered(next, cur)
	for _, e := range f.ops.entries[min(first, f.ops.unacked):f.ops.unacked] {
		if s.Length == 0 && e.op.Side == f.side {
			cur.mark(e.op, 0)
		}
	}
}

// deliver passes the new bytes of a segment, which has the sequence numbers r, to the framer. Its first skip bytes were
// taken before.
func (w *stream) deliver(data []byte, offset, skip int, r order.Run, cur *currentPacket) {
	w.flow.taken = cur.at.Time
	skipped := min(skip, len(data))
	w.frames.feed(data[skipped:], within(offset, skip), r, cur)
	w.reach(r.To)
}

// outlived reports whether a segment with SYN begins another connection between the ports
// of a followed one that carries RPC, and ends the followed one. A retransmitted SYN does not.
func (w *stream) outlived(s *TCP) bool {
	if _, rpc := w.frames.(*records); !rpc || s.Flags&link.TCPSYN == 0 {
		return false
	}
	c := w.flow.conn
	if h := c.opened; h != nil {
		if first, known := h.first(w.flow.side); !known || first == s.Seq+1 {
			return false
		}
	}
	c.reuse()
	return true
}

func (w *stream) announcedFirst() bool { return true }
func (w *stream) acknowledges() bool   { return w.order.Acknowledged() }
func (w *stream) waiting() *window     { return w.order.Window() }
func (w *stream) awaited() bool        { return w.order.AckedFrom(w.reached) > 0 }

func (w *stream) destination() (none record.Opt[record.Hex24]) { return none }

func (w *stream) skip(cur *currentPacket) {
	w.apply(nil, w.order.SkipGap(), cur)
}

func (w *stream) flush() {
	if n := w.order.AckedFrom(w.reached); n > 0 && w.waiting().Empty() {
		w.lacks(order.Run{From: w.reached, To: w.reached + uint32(n)}, w.flow.conn.last)
	}
	w.frames.flush()
}

func (w *stream) evict() bool { return w.frames.evict() }

func (w *stream) unlist() {
	t := w.flow.conn.tracker
	if t.tcp.streams[w.key] == w.flow {
		delete(t.tcp.streams, w.key)
	}
	w.frames.release()
}
