package rdma

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/rocev2"
)

// icrcTrust decides which packets with a bad ICRC their receivers drop.
type icrcTrust struct {
	tracker     *Tracker
	connections *connections

	sawBadICRC  bool        // a packet had a bad ICRC
	lastBadICRC record.Time // on the clock: the latest packet with a bad ICRC
	sawGoodICRC bool        // some sender has shown that it fills ICRCs in
}

// accepts reports whether the receiver accepts a packet, according to its ICRC. A packet
// with a bad ICRC is dropped if its sender has shown that it fills ICRCs in; some
// captures are taken before the adapter fills them in. A packet of an unknown sender
// with a bad ICRC is accepted only until some sender has shown it, because its address
// may be damaged, too. e contains the known ends of the packet.
func (ic *icrcTrust) accepts(d *Datagram, e *ends, cur *currentPacket) bool {
	switch d.ICRC {
	case rocev2.ICRCUnchecked:
		return true
	case rocev2.ICRCOk:
		ic.connections.endsOf(d, e)
		e.src.FillsICRC, e.src.known, e.dst.known = true, true, true
		ic.sawGoodICRC = true
		return true
	}
	cur.mark(nil, record.BadICRC)
	if d.Path.Sent.Packet == 0 { // otherwise the packet is known as it was sent
		ic.lastBadICRC, ic.sawBadICRC = ic.tracker.Clock, true
	}
	from := e.src
	if from == nil {
		from = ic.connections.hosts.find(&d.Src)
	}
	if from == nil || !from.known {
		return !ic.sawGoodICRC
	}
	return !from.FillsICRC
}

// SawGoodICRC reports whether any packet had a good ICRC.
func (t *Tracker) SawGoodICRC() bool { return t.icrcs.sawGoodICRC }

// recentBadICRC reports whether a packet with a bad ICRC was captured within the last 5 s, and not as it was sent.
// Its contents, and so its connection, are unknown. If its receiver did accept it, an
// acknowledgement will show that.
func (ic *icrcTrust) recentBadICRC() bool {
	return ic.sawBadICRC && ic.tracker.Clock-ic.lastBadICRC < lingerClose
}

// doubted is a packet with a bad ICRC of which the capture does not show yet whether its receiver dropped it: what captures a packet may
// change it, too. The queue pair of the requests keeps it.
type doubted struct {
	at       record.Stamp
	psn      uint32
	response bool // it answers requests up to this PSN
}

// maxDoubted is the number of such packets of a queue pair that are kept.
const maxDoubted = 8

// doubt keeps a packet with a bad ICRC. If it was captured as it was sent, too, or if its transport service repeats nothing, then
// its receiver dropped it.
func (f *flow) doubt(d *Datagram) {
	x := doubted{at: d.At, psn: d.Packet.PSN, response: !d.Packet.Opcode.Info().Request}
	if d.Path.Sent.Packet != 0 || d.Packet.Opcode.Transport() != rocev2.RC {
		f.dropped(x)
		return
	}
	if x.response {
		f = f.peer()
	}
	if f == nil || f.qp == nil {
		return
	}
	q := f.qp
	if !x.response {
		q.sends(x.psn)
	}
	if len(q.doubted) == maxDoubted {
		q.doubted = slices.Delete(q.doubted, 0, 1)
	}
	q.doubted = append(q.doubted, x)
}

// dropped reports a packet with a bad ICRC that its receiver dropped.
func (f *flow) dropped(x doubted) {
	f.conn.record.counts.Damaged++
	f.conn.Report(rule.ICRCBad, Where{At: x.at}, "the packet with PSN %d has a bad ICRC, so its receiver drops it", x.psn)
}

// sends notes a request: what it repeats was dropped, or the response to it was.
func (q *queuePair) sends(psn uint32) {
	q.decide(func(x doubted) bool { return x.psn == psn || x.response && order.PSNs.Delta(psn, x.psn) < 0 })
}

// lacks notes a NAK that asks for a request.
func (q *queuePair) lacks(psn uint32) {
	q.decide(func(x doubted) bool { return x.psn == psn && !x.response })
}

// decide reports the packets that were dropped.
func (q *queuePair) decide(dropped func(doubted) bool) {
	if len(q.doubted) == 0 {
		return
	}
	q.doubted = slices.DeleteFunc(q.doubted, func(x doubted) bool {
		is := dropped(x)
		if is {
			q.flow.dropped(x)
		}
		return is
	})
}

// trust notes that the receiver accepted all requests up to a PSN.
func (q *queuePair) trust(psn uint32) {
	if len(q.doubted) > 0 {
		q.doubted = slices.DeleteFunc(q.doubted, func(x doubted) bool { return !x.response && order.PSNs.Delta(x.psn, psn) <= 0 })
	}
}
