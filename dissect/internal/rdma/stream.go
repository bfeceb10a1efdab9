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
		w.flow.order.Announce(first)
		w.reach(first)
		r.resync = false
	}
}

// take takes a segment of the stream.
func (w *stream) take(s *TCP, cur *currentPacket) {
	f, c := w.flow, w.flow.conn
	f.seeWay(s)
	if s.Flags&link.TCPACK != 0 {
		if peer := f.peer(); peer == nil || !peer.order.Known() {
			w.early = record.Some(s.Ack)
		} else {
			peer.answeredAt(s.Ack, cur.at)
			cur.bare, cur.shows = s.Length == 0, s.ReportsGap()
			peer.apply(nil, peer.order.Acknowledge(s.Ack, 0), cur)
			if cur.bare {
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
		w.flow.order.End(s.run().To)
		w.frames.end(s)
		peer := f.peer()
		by := record.Some(f.side)
		if peer != nil && peer.order.Ended() && !peer.order.EndIsAcked() && w.flow.order.IsAcked(s.run().To) {
			by = record.Opt[Side]{} // this FIN was acknowledged before it was captured, and did not follow the other one
		}
		c.closedByFIN(by, peer == nil || peer.order.Ended(), s.At)
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
	f := w.flow
	if f.order.IsNew(s.Seq) && !s.Path.Copy {
		f.cause.New(s.Seq, s.Path.Time(s.At))
	}
	cur.Offset = f.offsets.requests(order.Octets, s.Seq)
	f.asksWith(s)
	w.followsAcknowledgement(s)
	f.carry(s, s.request(), &s.Path, cur)
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
		if c.setup.Overtaken = record.Some(w.flow.side); !c.setup.Handshake {
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

// begins takes the sequence number of the first byte.
func (w *stream) begins(fact *order.Fact[held]) {
	w.reach(fact.From)
	w.flow.lateStart = !w.frames.opening()
}

// accept takes the new bytes of the current segment.
func (s *TCP) accept(f *flow, fact *order.Fact[held], cur *currentPacket) {
	f.stream.acks = record.SomeIf(s.Ack, s.Flags&link.TCPACK != 0)
	f.stream.deliver(s.Payload, s.Offset, int(fact.From-s.Seq), fact.Run, cur)
}

// acceptHeld takes the new bytes of a segment that waited.
func (w *stream) acceptHeld(fact *order.Fact[held], _, taking *currentPacket) {
	w.acks = record.Opt[uint32]{}
	w.deliver(fact.Item.data, -1, fact.Item.length-int(fact.To-fact.From), fact.Run, taking)
}

// isRepeat implements [taken].
func (s *TCP) isRepeat(f *flow, fact *order.Fact[held], cur *currentPacket) bool {
	is := f.wasIdle(s.Path, s.At)
	switch {
	case !is:
	case fact.Kind == order.Late:
		s.again(f, fact, cur)
	default:
		o := f.ops.at(s.Seq)
		f.retransmitted(o, f.burstOf(fact.Run, o, s.At), cur)
	}
	return is
}

// again takes bytes of a segment that were captured before: all of it, or its first ones.
func (s *TCP) again(f *flow, fact *order.Fact[held], cur *currentPacket) {
	if s.Length == 1 && f.order.IsAcked(s.Seq) && order.Octets.Add(s.Seq, 1) == f.order.Expected() { // a keep-alive with a byte of garbage (RFC 9293 s.3.8.4)
		return
	}
	o, all := f.ops.at(s.Seq), s.run()
	if s.Path.Copy {
		cur.mark(o, 0)
		return
	}
	if fact.Run == all {
		f.cause.Retry(s.Seq, !f.order.Acknowledged() || f.order.IsAcked(s.Seq), s.At)
	}
	f.ops.copiedTo(all.From, all.To, s.At)
	f.retransmitted(o, f.burstOf(all, o, s.At), cur)
}

// wait keeps a copy of a segment that came before one that it has to follow.
func (s *TCP) wait(f *flow, cur *currentPacket) {
	cur.markAfterGap(nil)
	buffers := f.conn.tracker.buffers
	if item := f.waiting().Item(order.Octets, s.Seq); item != nil {
		if !s.Path.Copy {
			f.noteHeldRetransmission(item, cur, nil)
		}
		if grown := len(s.Payload) - len(item.data); grown > 0 { // the longer copy is kept
			item.data, item.length = buffers.Add(item.data[:0], s.Payload), s.Length
			f.apply(nil, f.order.Lengthen(grown), cur)
		}
		return
	}
	cur.shown = f.stream.frames.early(s)
	copied := held{stamp: s.At, class: s.Class, data: buffers.Add(nil, s.Payload), length: s.Length, shown: cur.shown, early: cur.early, began: s.Path.Began()}
	f.apply(nil, f.order.Hold(len(copied.data), copied, 0), cur)
}

// misses counts bytes as not captured, and moves past them.
func (w *stream) misses(fact *order.Fact[held]) {
	w.lack(fact.Run, fact.At)
	w.reach(fact.To)
	w.frames.skip(fact.Run)
}

// lack counts bytes as not captured, unless the network may have lost them. A packet shows it.
func (w *stream) lack(r order.Run, at record.Stamp) {
	if w.flow.lackedAtEnd {
		w.flow.missing = true
		return
	}
	c := w.flow.conn
	c.countMissing(w.flow.side, 1, w.flow.taken, at.Time)
	c.Report(ruleLost, Where{At: at}, "%s of the TCP stream from sequence number %d %s not in the capture", record.Plural(r.To-r.From, "byte"), r.From, record.Are(r.To-r.From))
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
func (w *stream) awaited() bool        { return w.flow.order.AckedFrom(w.reached) > 0 }

func (w *stream) destination() (none record.Opt[record.Hex24]) { return none }

func (w *stream) flush() {
	if n := w.flow.order.AckedFrom(w.reached); n > 0 && w.flow.waiting().Empty() {
		w.lack(order.Run{From: w.reached, To: w.reached + uint32(n)}, w.flow.conn.last)
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
