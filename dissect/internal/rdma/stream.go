package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/link"
)

// stream is one direction of a TCP connection that carries iWARP, or RPC. It puts the bytes of its segments in order, and
// its framer finds out what they carry.
type stream struct {
	flow    *flow
	key     streamKey
	next    uint32 // the sequence number of the next byte
	known   bool   // next is known
	ackedTo uint32 // the other side has received all bytes before it
	acked   bool
	fin     bool
	window  *window // segments that came early; nil before the first
	gaps    order.Gaps
	frames  framer
}

// framer finds FPDUs or records in the bytes of a stream, and makes operations of them. It says when the stream has
// reached a sequence number ([stream.reach]).
type framer interface {
	// feed takes the next bytes: length bytes were sent, and data was captured of them. offset is their position in the
	// frame, or -1.
	feed(data []byte, offset, length int, cur *currentPacket)
	// skip moves past missing bytes, to the sequence number next.
	skip(next uint32, missing int)
	// early shows what is in a segment that has to wait for earlier ones, and returns the sequence numbers of that.
	early(s *TCP) order.Run
	// attribute finds the operation of a segment that brought only a part of an FPDU.
	attribute(cur *currentPacket)
	// end notes a segment with which the sender ended the stream.
	end(s *TCP)

	opening() bool // the first segment of the stream is its beginning: the handshake of iWARP is not complete, or that of TCP was captured
	given() bool   // the stream does not carry what it was taken for

	flush()      // reports what is incomplete, because no bytes follow
	evict() bool // frees what is incomplete, and reports whether there was anything
	release()    // gives back the storage
}

// reach notes the sequence number up to which the bytes of the stream were taken.
func (w *stream) reach(seq uint32) { w.next = seq }

// carries makes the stream one of iWARP.
func (w *stream) carries(m *mpa) {
	m.of(w)
	w.frames = m
}

// expect sets the sequence number of the first byte of a stream of records, if the handshake shows
// it. A segment with the sequence number seq was captured.
func (w *stream) expect(h *opening, seq uint32, r *records) {
	if first, known := h.first(w.flow.side); known && order.Octets.Delta(seq, first) >= 0 {
		w.known, w.next = true, first
		w.gaps.Begin(first)
		r.found()
	}
}

// take takes a segment of the stream.
func (w *stream) take(s *TCP, cur *currentPacket) {
	f, c := w.flow, w.flow.conn
	f.seeWay(s)
	if s.Flags&link.TCPACK != 0 {
		if peer := f.peer(); peer != nil && peer.stream.known {
			pureACK := s.Length == 0 // it has no other purpose
			peer.stream.acknowledge(s, cur)
			if pureACK {
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
		w.fin = true
		w.frames.end(s)
		peer := f.peer()
		c.closedByFIN(f.side, peer == nil || peer.stream.fin, s.At)
	}
}

// carry takes a segment with data.
func (w *stream) carry(s *TCP, cur *currentPacket) {
	f := w.flow
	r := order.Run{From: s.Seq, To: s.Seq + uint32(s.Length)}
	again := s.Path.Joined && f.noteSent(r, s.Path) && order.Octets.Delta(s.Seq, w.next) >= 0
	if !s.Path.Copy && order.Octets.Delta(s.Seq, w.next) >= 0 {
		f.cause.New(s.Seq, f.sentTime(s.At))
	}
	cur.place(f.offsets.requests(order.Octets, s.Seq))
	w.takeData(s, cur)
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
		f.way.Repeated()
	}
}

// takeData takes the bytes of a segment.
func (w *stream) takeData(s *TCP, cur *currentPacket) {
	f, c := w.flow, w.flow.conn
	if !w.known {
		w.known, w.next = true, s.Seq
		f.start(!w.frames.opening())
		w.gaps.Begin(s.Seq)
	}
	w.gaps.Forget(order.Octets, w.next)
	data, delta := s.Payload, order.Octets.Delta(s.Seq, w.next)
	f.asksWith(s, delta >= 0)
	switch {
	case delta <= -int32(s.Length): // all of it was captured before
		if w.takeLate(s, order.Run{From: s.Seq, To: s.Seq + uint32(s.Length)}, cur) {
			return
		}
		if !s.Path.Copy {
			f.cause.Retry(s.Seq, !w.acked || order.Octets.Delta(s.Seq, w.ackedTo) < 0, s.At)
		}
		f.noteResentSegment(s, cur)
		return
	case delta < 0: // a part of it was captured before
		if !w.takeLate(s, order.Run{From: s.Seq, To: w.next}, cur) {
			f.noteResentSegment(s, cur)
		}
		skip := min(int(-delta), len(data))
		w.deliver(data[skip:], s.Offset+skip, s.Length+int(delta), cur)
	case delta == 0:
		if w.acked && order.Octets.Delta(w.ackedTo, s.Seq) > 0 { // the acknowledgement came first
			c.disorder()
		}
		resent := !w.window.Empty() && !s.Path.Joined && f.wasIdle(s.At) // the first copy was lost before the capture
		if !w.window.Empty() {
			f.way.Late()
		}
		if !resent && cur.isOvertaken(w.window) {
			c.record.outOfOrder()
			cur.mark(nil, record.OutOfOrder)
		}
		w.deliver(data, s.Offset, s.Length, cur)
		if resent {
			o := f.ops.at(s.Seq)
			f.retransmitted(o, f.burstOf(order.Run{From: s.Seq, To: w.next}, o, s.At), cur)
		}
	default:
		w.hold(s, cur)
		return
	}
	w.drain(cur)
}

// takeLate takes bytes of a segment that come before the next one. It reports whether the segment may be the first one
// that was sent with them, so that nothing shows that it was retransmitted.
func (w *stream) takeLate(s *TCP, r order.Run, cur *currentPacket) bool {
	f := w.flow
	late, counted := w.gaps.Late(order.Octets, r, f.isAcked(r.From), false)
	if counted {
		f.way.Late()
	}
	switch {
	case counted && !s.Path.Joined && f.wasIdle(s.At): // the first copy was lost before the capture
		return false
	case counted:
		f.conn.record.outOfOrder()
		f.conn.disorder()
		cur.mark(nil, record.Late)
	}
	return late
}

// hold keeps a copy of a segment that came before one that it has to follow.
func (w *stream) hold(s *TCP, cur *currentPacket) {
	cur.markAfterGap(nil)
	f := w.flow
	buffers := &f.conn.tracker.buffers
	if w.window == nil {
		w.window = new(window)
	}
	i, found := w.window.Find(order.Octets, s.Seq)
	if found {
		item := w.window.At(i)
		if !s.Path.Copy {
			f.noteHeldRetransmission(item, cur, nil)
		}
		if len(s.Payload) > len(item.data) { // the longer copy is kept
			grown := int64(len(s.Payload) - len(item.data))
			w.window.Grow(i, int(grown))
			f.conn.share.Charge(grown)
			item.lengthen(buffers, s.Payload, s.Length)
		}
	} else {
		cur.show(w.frames.early(s))
		copied := held{stamp: s.At, data: buffers.add(nil, s.Payload), length: s.Length, shown: cur.shown, early: cur.early}
		w.window.Insert(i, order.Request{PSN: s.Seq, At: s.At}, len(copied.data), copied)
		f.conn.share.Charge(int64(len(copied.data)) + heldCost)
	}
	for !w.window.Empty() && (w.window.Full() || w.acked && order.Octets.Delta(w.ackedTo, w.window.Seq(0)) > 0) {
		w.skip(cur)
	}
}

// drain takes held segments that are now in order. The current packet may be one of
// them.
func (w *stream) drain(cur *currentPacket) {
	f := w.flow
	if w.window.Empty() {
		return
	}
	taken, own := 0, currentPacket{}
	for ; taken < w.window.Len(); taken++ {
		seq := w.window.Seq(taken)
		item := w.window.At(taken)
		delta := order.Octets.Delta(seq, w.next)
		if delta > 0 {
			break
		}
		if skip := int(-delta); skip < item.length {
			w.deliver(item.data[min(skip, len(item.data)):], -1, item.length-skip, cur.accepting(item, &own))
		}
		f.reportHeldRetransmissions(f.ops.at(seq), item)
		f.unhold(item)
	}
	w.window.Remove(taken)
}

// skip counts the bytes before the first held segment as not captured, and
// takes the held segments.
func (w *stream) skip(cur *currentPacket) {
	if w.window.Empty() {
		return
	}
	seq, at := w.window.First()
	if missing := order.Octets.Delta(seq, w.next); missing > 0 {
		w.skipMissing(seq, missing, at)
	}
	w.drain(cur)
}

// skipMissing counts the bytes of a stream before a sequence number as not captured.
func (w *stream) skipMissing(seq uint32, missing int32, at record.Stamp) {
	f := w.flow
	f.conn.countMissing(f.side, 1, f.taken, at.Time)
	f.conn.Report(ruleLost, Where{At: at}, "%d bytes of the TCP stream from sequence number %d are not in the capture", missing, w.next)
	w.gaps.Missing(order.Run{From: w.next, To: seq})
	f.settle(w.gaps.Bytes())
	w.frames.skip(seq, int(missing))
}

// acknowledge notes that the receiver's TCP has received all bytes before ack. Its
// RDMAP may still refuse them with a Terminate, for example a Reply. A segment without data
// has no other purpose, and is a packet of the operations that it acknowledges.
func (w *stream) acknowledge(s *TCP, cur *currentPacket) {
	f, ack, pureACK := w.flow, s.Ack, s.Length == 0
	f.answeredAt(ack, cur.at)
	gap := s.ReportsGap()
	if w.acked && order.Octets.Delta(ack, w.ackedTo) <= 0 {
		if ack == w.ackedTo && (pureACK || gap) && !s.Path.Copy {
			f.cause.ShowsGap(cur.at.Time)
		}
		return
	}
	w.acked, w.ackedTo = true, ack
	f.progress(cur.at)
	if gap {
		f.cause.ShowsGap(cur.at.Time)
	}
	first := f.ops.unacked
	f.covered(ack, cur.at)
	for _, e := range f.ops.entries[min(first, f.ops.unacked):f.ops.unacked] {
		if pureACK && e.op.Side == f.side {
			cur.mark(e.op, 0)
		}
	}
	if !w.window.Empty() && order.Octets.Delta(ack, w.window.Seq(0)) > 0 {
		w.skip(cur)
	}
}

// deliver passes the next bytes of the stream to its framer.
func (w *stream) deliver(data []byte, offset, length int, cur *currentPacket) {
	w.flow.takes(cur.at)
	w.frames.feed(data, offset, length, cur)
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
func (w *stream) acknowledges() bool   { return w.acked }
func (w *stream) waiting() *window     { return w.window }

func (w *stream) awaited() bool {
	fin := int32(0)
	if w.fin { // a FIN takes a sequence number
		fin = 1
	}
	return w.known && w.acked && order.Octets.Delta(w.ackedTo, w.next) > fin
}

func (w *stream) destination() (none record.Opt[record.Hex24]) { return none }

func (w *stream) flush() {
	if w.awaited() && w.window.Empty() {
		c := w.flow.conn
		c.countMissing(w.flow.side, 1, w.flow.taken, c.last.Time)
		c.Report(ruleLost, Where{At: c.last}, "%d bytes of the TCP stream from sequence number %d are not in the capture", order.Octets.Delta(w.ackedTo, w.next), w.next)
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
