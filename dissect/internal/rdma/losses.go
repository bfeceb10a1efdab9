package rdma

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/rocev2"
)

// With several capture points, the packets that did not come to their receivers unharmed are known. They explain why a
// sender retransmitted, also to the RPCs whose packets came after them.

// Loss is a packet that was lost or damaged between capture points.
type Loss struct {
	At       record.Stamp // when it left its sender; if it was damaged, and that frame was captured, when it came to its receiver
	By       Side         // its sender
	Damaged  bool
	Response bool // the packet is the response to an RDMA Read or an Atomic
	Nak, Ack bool // the packet is a NAK, or an acknowledgement
	Later    bool // it comes after the request that was retransmitted; see [LossesBefore]
	seq      uint32
	reported bool
	repaired record.Time // TCP: when a later copy was taken; 0 if that is not known
}

// repair notes that a later copy was taken.
func (l *Loss) repair(at record.Time) {
	if l.repaired == 0 {
		l.repaired = at
	}
}

// harmed returns the stamp of a loss: when the packet left its sender, or, if its damaged frame was captured, that frame.
func (p *Path) harmed(at record.Stamp) record.Stamp {
	if p.Gone {
		return p.Sent
	}
	return at
}

// maxLosses limits the number of losses of a flow that are kept.
const maxLosses = 128

// lossCost is the memory of a loss that is charged to the budget.
const lossCost = 40

// noteLoss notes a packet that was lost or damaged: a request of the flow, or a response to one.
func (f *flow) noteLoss(l Loss) {
	w := f.paths
	if w == nil {
		w = new(paths)
		f.paths = w
		f.conn.share.Charge(pathsCost)
	}
	if len(w.losses) == maxLosses {
		const half = maxLosses / 2
		for i := range w.losses[:half] {
			if !w.losses[i].reported {
				w.open--
			}
		}
		w.losses = w.losses[:copy(w.losses, w.losses[half:])]
	}
	had := cap(w.losses)
	if w.losses = append(w.losses, l); !l.reported {
		w.open++
	}
	f.conn.share.Charge(int64(cap(w.losses)-had) * lossCost)
}

// firstLoss returns the first loss of a packet that left its sender at a time, or, if it was damaged, the damaged packet.
func (w *paths) firstLoss(seq uint32, sent record.Stamp) record.Stamp {
	for i := range w.losses {
		if l := &w.losses[i]; l.seq == seq && l.At.Time >= sent.Time {
			return l.At
		}
	}
	return sent
}

// lostEarlier reports whether an earlier copy of a response to an operation of the flow was lost or damaged, so that the
// current packet is a retransmission.
func (f *flow) lostEarlier(o *Operation, d *Datagram) bool {
	if f.paths == nil || o == nil || d.Path.Copy || d.Path.Sent.Packet == 0 {
		return false
	}
	return slices.ContainsFunc(f.paths.losses, func(l Loss) bool {
		return l.Response && l.seq == d.Packet.PSN && l.At.Time < d.Path.Sent.Time && l.At.Time >= o.First.Time
	})
}

// missedResponse notes a response that its receiver, the peer of the flow, did not get unharmed.
func (f *flow) missedResponse(d *Datagram, cur *currentPacket) {
	asker := f.peer()
	if asker == nil || d.Path.Sent.Packet == 0 || d.Path.Copy {
		return
	}
	psn := d.Packet.PSN
	if o := asker.ops.at(psn); o != nil && o.Kind == Read && (asker.lostEarlier(o, d) || o.hasSeen(int64(order.PSNs.Delta(psn, o.from)))) {
		f.resentInVain(o, nil, cur)
	}
	l := Loss{At: d.Path.harmed(d.At), By: f.side, Damaged: !d.Path.Gone, seq: psn, reported: true}
	if d.Packet.Opcode.Info().Kind == rocev2.KindAcknowledge {
		l.Nak = d.Packet.AETH.Syndrome.IsNak() || d.Packet.AETH.Syndrome.IsRNR()
		l.Ack = !l.Nak
	} else {
		l.Response = true
	}
	asker.noteLoss(l)
	asker.lost(asker.ops.at(psn), &l)
}

// lost reports that a packet of an operation, or of its response, was lost or damaged after it left its sender.
func (f *flow) lost(o *Operation, l *Loss) {
	if o != nil && o.Tag != 0 {
		f.conn.follower.Operation(Event{What: Lost, By: l.By, Op: o, At: l.At, Loss: l})
	}
}

// reportLost reports the copies of requests that were lost, after later copies were accepted. The operation of a TCP
// segment is known when it is complete.
func (f *flow) reportLost() {
	if f.paths == nil || f.paths.open == 0 {
		return
	}
	c, expect := f.ops.circle, f.expected()
	for i := range f.paths.losses {
		l := &f.paths.losses[i]
		if l.reported || c.Delta(l.seq, expect) >= 0 {
			continue
		}
		if f.stream != nil {
			l.repair(f.conn.tracker.now.Time)
		}
		o := f.ops.at(l.seq)
		if f.qp == nil && (o == nil || o.Tag == 0) {
			continue
		}
		l.reported = true
		f.paths.open--
		f.lost(o, l)
	}
}

// LossesOf selects losses.
type LossesOf struct {
	Side  Side        // whose requests, and the responses to them
	Burst *Burst      // requests from the beginning of this burst on; if it is nil, those that were sent since then
	Since record.Time // when the wait began: what was repaired before did not cause it
	Until record.Time // when they were sent at the latest
	Most  int
}

// LossesBefore returns the packets of a connection that were lost or damaged before a side retransmitted, the first ones.
func (c *Conn) LossesBefore(o LossesOf) (list []Loss) {
	f := c.flows[o.Side]
	if f == nil || f.paths == nil {
		return nil
	}
	circle, b := f.ops.circle, o.Burst
	for _, l := range f.paths.losses {
		switch {
		case l.At.Time > o.Until || l.Ack || l.repaired != 0 && l.repaired < o.Since:
			continue
		case b == nil && l.At.Time < o.Since:
			continue
		case b != nil && circle.Delta(l.seq, b.From()) < 0:
			continue
		}
		l.Later = b != nil && circle.Delta(l.seq, b.Latest()) > 0
		if list = append(list, l); len(list) == o.Most {
			break
		}
	}
	return list
}

// LostOperation returns the operation to which a lost packet of a side's requests, or of their responses, belongs; it is
// nil if that is not known.
func (c *Conn) LostOperation(s Side, l *Loss) *Operation {
	if f := c.flows[s]; f != nil {
		return f.ops.at(l.seq)
	}
	return nil
}
