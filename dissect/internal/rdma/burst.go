package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/cause"
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Why a request was retransmitted: package cause decides it. This is the only place that asks it.

// A Burst is a sequence of retransmitted requests of one side.
type Burst = cause.Burst

// burstOf returns the burst that a retransmitted request belongs to; r are its sequence
// numbers.
func (f *flow) burstOf(r order.Run, o *Operation, at record.Stamp) *Burst {
	again := cause.Again{Run: r, At: at, Sent: f.sent.Time(at), Timer: f.timer()}
	if o != nil {
		again.First = uint64(o.Tag)
	}
	return f.cause.Burst(&again, f.half)
}

// timer returns when the sender retransmits without an acknowledgement.
func (f *flow) timer() cause.Timer {
	return cause.Timer{Announced: f.conn.timer, TCP: f.stream != nil}
}

// GapShown reports whether there was a response to a later request than the one with this PSN, while the response to a
// Read or Atomic at or before it is incomplete, or the request is for the rest of a Read.
func (q *queuePair) GapShown(psn uint32) bool {
	return (q.flow.order.IsAcked(order.PSNs.Add(psn, 1)) || q.flow.cause.AnsweredBeyond(psn)) && (q.flow.ops.readOpenAt(psn) || q.flow.ops.readAgainAt(psn))
}

// GapShown reports whether acknowledgements had shown a gap when the current segment was sent.
func (w *stream) GapShown(uint32) bool {
	return w.flow.cause.KnewOfGap(w.flow.sent.Time(w.flow.conn.tracker.now))
}

// GapShown implements [cause.Evidence]; UDP has no responses.
func (d *datagramFlow) GapShown(uint32) bool { return false }

// readAgainAt reports whether a PSN is one of a Read, so that a request with it is for the rest of the Read. If the capture
// has all responses, then one of them was lost after it passed the capture point.
func (l *ledger) readAgainAt(psn uint32) bool {
	o := l.at(psn)
	return o != nil && o.Kind == Read && o.Side == l.side
}

// readOpenAt reports whether the response to a Read or Atomic at or before a PSN is
// incomplete.
func (l *ledger) readOpenAt(psn uint32) bool {
	i := l.find(psn)
	for n := 0; i >= l.head && n < 16; i, n = i-1, n+1 {
		if o := l.entries[i].op; o.Side == l.side && (o.Kind == Read && o.taken < int64(max(o.count, 1)) || o.Kind == Atomic && !o.done) {
			return true
		}
	}
	return false
}

// networkCopy reports whether a request is a duplicate that the network made of the
// request before it: no sender retransmits a single packet at once.
func (f *flow) networkCopy(d *Datagram) bool {
	last := f.cause.Sent
	return last.Seq == d.Packet.PSN && d.duplicates(last.Print, last.At)
}

// refusedAt notes a NAK that requests a PSN again. It returns false if the NAK is a
// network duplicate of the one before it.
func (f *flow) refusedAt(psn uint32, rnr bool, d *Datagram) bool {
	if last := f.cause.LastNak(); last.Seq == psn && d.duplicates(last.Print, last.At.Time) {
		return false
	}
	f.cause.Refused(cause.Nak{Seq: psn, At: d.At, RNR: rnr, Print: d.print})
	return true
}

// localTimer returns the timer of a Local ACK Timeout n in the handshake (IBTA volume 1, section
// 9.7.6.1.3: 4.096 us * 2^n; n = 0 is none).
func localTimer(n uint8) record.Time {
	if n == 0 {
		return 0
	}
	return record.Time(4096) << n
}

// responseWithin returns the time within which a response to a requester with a Local ACK Timeout n comes, 0 if the
// timeout does not show it.
func responseWithin(n uint8) record.Time { return max(0, min(4*localTimer(n), longestResponse)) }

// longestResponse is the time within which a response comes if the timer of the requester
// is not known.
const longestResponse = record.Time(4e9)
