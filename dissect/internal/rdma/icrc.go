package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/record"
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
