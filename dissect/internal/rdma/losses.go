package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/internal/sent"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/rocev2"
)

// Loss is a packet that was lost or damaged between capture points.
type Loss = sent.Loss

// lose notes a request of the flow that was lost or damaged, if its fate is known.
func (f *flow) lose(seq uint32, p *Path, at record.Stamp) {
	if p.Missing {
		return
	}
	f.sender().Lose(Loss{At: p.Harmed(at), Damaged: !p.Gone, BadChecksum: p.BadChecksum, Seq: seq})
}

// lostEarlier reports whether an earlier copy of a response to an operation of the flow was lost or damaged, so that the
// current packet is a retransmission.
func (f *flow) lostEarlier(o *Operation, d *Datagram) bool {
	return o != nil && !d.Path.Copy && d.Path.Sent.Packet != 0 && f.sent.LostResponse(d.Packet.PSN, o.First.Time, d.Path.Sent.Time)
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
	l := Loss{At: d.Path.Harmed(d.At), Damaged: !d.Path.Gone && !d.Path.Missing, BadChecksum: d.Path.BadChecksum, Seq: psn, Missing: d.Path.Missing}
	if d.Packet.Opcode.Info().Kind == rocev2.KindAcknowledge {
		l.Nak = d.Packet.AETH.Syndrome.IsNak() || d.Packet.AETH.Syndrome.IsRNR()
		l.Ack = !l.Nak
	} else {
		l.Response = true
	}
	if asker.sender().Lose(l); !l.Missing {
		asker.lost(asker.ops.at(psn), &l)
	}
}

// lost reports that a packet of an operation, or of its response, was lost or damaged after it left its sender.
func (f *flow) lost(o *Operation, l *Loss) {
	if o == nil || o.Tag == 0 {
		return
	}
	by := f.side
	if l.Answers() {
		by = by.Other()
	}
	f.conn.follower.Operation(Event{What: Lost, By: by, Op: o, At: l.At, Loss: l})
}

// reportLost reports the copies of requests that were lost, after later copies were accepted. The operation of a TCP
// segment is known when it is complete.
func (f *flow) reportLost() {
	if f.sent == nil { // with one capture point, for each request
		return
	}
	repaired := record.Time(0)
	if f.stream != nil {
		repaired = f.conn.tracker.now.Time
	}
	f.sent.Report(f.order.Expected(), repaired, func(l *Loss) bool {
		o := f.ops.at(l.Seq)
		if f.qp == nil && (o == nil || o.Tag == 0) {
			return false
		}
		f.lost(o, l)
		return true
	})
}

// LossesBefore returns the packets of a connection that were lost or damaged before a side retransmitted, the first ones. They are
// requests of the side, and responses to them.
func (c *Conn) LossesBefore(s Side, o sent.Before) []Loss {
	if f := c.flows[s]; f != nil {
		return f.sent.LossesBefore(o)
	}
	return nil
}

// LostOperation returns the operation to which a lost packet of a side's requests, or of their responses, belongs; it is
// nil if that is not known.
func (c *Conn) LostOperation(s Side, l *Loss) *Operation {
	if f := c.flows[s]; f != nil {
		return f.ops.at(l.Seq)
	}
	return nil
}
