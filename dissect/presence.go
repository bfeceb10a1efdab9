package dissect

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// Which hosts sent packets to which other hosts, and when a host was silent although packets asked it for an answer.

// The limits of what is remembered about hosts, and the shortest silence.
const (
	maxWays       = 1 << 12
	maxSilences   = 64
	leastSilence  = int64(1e9) // between the first and the last packet that asks for an answer, in nanoseconds
	leastQuestion = 2          // packets that ask for an answer: a single answer may be missing from the capture
	maxAbsences   = 64
	leastDoubt    = int64(100e6) // without any packet, before a connection without a handshake, in nanoseconds
)

// wayKey identifies the packets from one host to another.
type wayKey struct{ src, dst rdma.Address }

// way is the packets from one host to another.
type way struct {
	key         wayKey
	back        *way         // the opposite way
	side        uint8        // see sideOf
	last        record.Stamp // latest packet; its number is 0 if there was none
	port        [6]byte      // MAC address that its latest packet came from; zero if there is none
	packets     int64        // packets of connections
	latest      record.Time  // the latest of them
	received    bool         // the capturing computer received packets of it
	sent        bool         // and sent packets of it
	taken       bool         // it has packets of connections, or messages that open them
	asked       int64        // packets since the latest packet of back that ask for an answer
	lost        int64        // asked packets that were lost between capture points
	arrived     int64        // asked packets that came to a point that may be at their receiver
	joined      bool         // there are several points
	late        int64        // those of them after which none was lost
	lateAt      record.Time  // of the first of these
	first, next record.Stamp // the first and the latest of these
	again       bool         // one of these is a retransmission, so its sender got no answer
	gap, began  record.Time  // of the first connection without a handshake that began a while after the latest packet of both ways: the times of that packet, and of its own first one
	open        record.Time  // the earliest time of the last packet of a connection that did not end
}

// presence is what the capture shows of each host.
type presence struct {
	ways     map[wayKey]*way
	latest   *way // of the latest packet
	silences []record.Silence
	absences []record.Absence
	headed   bool                   // the capture says which packets its computer sent
	hosts    map[[6]byte]netip.Addr // by port; of a port with packets of several hosts, which is a router's, no address
	full     bool                   // there were more ways or silences
	blind    bool                   // there were more absences, so that silences are not known
	starts   int64                  // connections whose handshake is not captured
	ends     int64                  // connections whose end is not captured
}

// sideOf returns 0 for the packets of one of two hosts to the other, and 1 for those of the other.
func sideOf(g *rdma.Datagram) uint8 {
	if g.Src.IP.Compare(g.Dst.IP) > 0 || g.Src.LID > g.Dst.LID {
		return 1
	}
	return 0
}

// find returns the way of a packet, which is created if that is wanted; nil if it is not remembered.
func (p *presence) find(g *rdma.Datagram, create bool) *way {
	if w := p.latest; w != nil {
		if w.key.src == g.Src && w.key.dst == g.Dst {
			return w
		}
		if w.key.src == g.Dst && w.key.dst == g.Src {
			p.latest = w.back
			return w.back
		}
	}
	k := wayKey{g.Src, g.Dst}
	w := p.ways[k]
	if w == nil && create {
		if p.full = p.full || len(p.ways) >= maxWays; p.full {
			return nil
		}
		if p.ways == nil {
			p.ways = map[wayKey]*way{}
		}
		w = &way{key: k, side: sideOf(g), back: &way{key: wayKey{k.dst, k.src}, side: 1 - sideOf(g)}}
		w.back.back = w
		p.ways[k], p.ways[w.back.key] = w, w.back
	}
	if w != nil {
		p.latest = w
	}
	return w
}

// question is what matters of a packet that may ask for an answer: also whether it is a retransmission, and how far it came.
type question struct {
	asks, again bool
	path        *rdma.Path
}

// took notes a packet that the tracker took.
func (p *presence) took(w *way, at record.Stamp, ofConnection bool, q question) {
	if w == nil {
		return
	}
	if w.taken = true; ofConnection {
		w.packets++
		w.latest = at.Time
	}
	p.sent(w, at)
	if q.asks {
		w.again = w.asked > 0 && (w.again || q.again)
		if w.next = at; w.asked == 0 {
			w.first, w.lost, w.arrived, w.late = at, 0, 0, 0
		}
		w.asked++
		w.joined = q.path.Joined
		switch {
		case q.path.Gone:
			w.lost++
			w.late = 0
		case q.path.Arrived:
			if w.arrived++; w.late == 0 {
				w.lateAt = at.Time
			}
			w.late++
		}
	}
}

// begins notes the first packet of a connection whose handshake is not captured, if the packet before it of both ways is not
// recent.
func (w *way) begins(s *rdma.Setup, latest, now record.Time) {
	if s.First == now && !s.Handshake && s.Transport != rdma.UDPTransport {
		w.gap, w.began = latest, now
		w.back.gap, w.back.began = latest, now
	}
}

// sent notes a packet of a host, which ends its silence.
func (p *presence) sent(w *way, at record.Stamp) {
	if q := w.back; q.asked > 0 {
		if q.lost > 0 && q.arrived == q.late && at.Time.Sub(q.lateAt) < leastSilence { // The packet answers those that arrived, all of them at last.
			q.asked, q.arrived = q.asked-q.late, 0
		}
		if q.silent() && len(p.silences) < maxSilences {
			s := q.silence()
			s.To, s.Next = record.Some(at.Time), record.Some(at.Packet)
			p.silences = append(p.silences, s)
		}
		q.asked = 0
	}
	w.last = at
}

// silent reports whether the host that the packets of w go to is silent. If no packet of that host is in the capture, its
// packets were perhaps not captured, so that it is not known to be silent. The same holds if nothing was retransmitted.
func (w *way) silent() bool {
	return w.asked >= leastQuestion && w.again && w.next.Time.Sub(w.first.Time) >= leastSilence && w.back.taken
}

// silence returns the silence of the host that the packets of w go to.
func (w *way) silence() record.Silence {
	return record.Silence{
		Address: w.key.dst.String(), Peer: w.key.src.String(), From: w.first.Time, Packets: w.asked, Last: w.back.last.Packet, LastTime: w.back.last.Time,
		Lost: record.SomeIf(w.lost, w.joined), Arrived: record.SomeIf(w.arrived, w.joined),
	}
}

// all returns the silences, the earliest first; those that have not ended are among them. While packets of two hosts are
// missing from the capture, neither is known to be silent.
func (p *presence) all() []record.Silence {
	list := append([]record.Silence{}, p.silences...)
	for _, w := range p.ways {
		if w.silent() {
			list = append(list, w.silence())
		}
	}
	list = slices.DeleteFunc(list, func(s record.Silence) bool {
		return p.blind || slices.ContainsFunc(p.absences, func(a record.Absence) bool {
			return (a.Address == s.Address && a.Peer == s.Peer || a.Address == s.Peer && a.Peer == s.Address) && a.To >= s.From && a.From <= s.To.Or(a.From)
		})
	})
	slices.SortFunc(list, func(a, b record.Silence) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Last, b.Last), cmp.Compare(a.Next.Or(0), b.Next.Or(0)))
	})
	return list[:min(len(list), maxSilences)]
}

// missing notes packets from one host to another one that are missing from the capture. Times that overlap become one.
func (p *presence) missing(src, dst rdma.Address, n int64, from, to record.Time) {
	a := record.Absence{Address: src.String(), Peer: dst.String(), From: from, To: to, Packets: record.Some(n)}
	if a.Address > a.Peer {
		a.Address, a.Peer = a.Peer, a.Address
	}
	p.absences = slices.DeleteFunc(p.absences, func(x record.Absence) bool {
		overlap := x.Address == a.Address && x.Peer == a.Peer && x.To >= a.From && x.From <= a.To
		if overlap {
			a.From, a.To = min(x.From, a.From), max(x.To, a.To)
			a.Packets = record.Some(a.Packets.Or(0) + x.Packets.Or(0))
		}
		return overlap
	})
	if len(p.absences) == maxAbsences {
		p.blind = true
		return
	}
	p.absences = append(p.absences, a)
}

// retired notes whether the capture has the beginning and the end of a connection.
func (p *presence) retired(c rdma.Retired) {
	if c.Transport == rdma.UDPTransport || c.Asked {
		return
	}
	if !c.Handshake {
		p.starts++
	}
	if c.Ended {
		return
	}
	if p.ends++; c.Hosts[0] == nil || c.Hosts[1] == nil {
		return
	}
	if w := p.ways[wayKey{c.Hosts[0].Address, c.Hosts[1].Address}]; w != nil && (w.open == 0 || c.Last < w.open) {
		w.open, w.back.open = c.Last, c.Last
	}
}

// heads notes whether the capturing computer received or sent a packet.
func (p *presence) heads(w *way, h capture.Heading) {
	if w != nil {
		p.headed, w.received, w.sent = true, w.received || h == capture.Received, w.sent || h == capture.Sent
	}
}

// from notes the port that a packet came from.
func (p *presence) from(w *way, port [6]byte) {
	if w == nil || w.port == port {
		return
	}
	w.port = port
	p.hosts = nil
}

// hostOf returns the address of the host that a port is of. It is not valid if the port sent packets of no host, or of several.
func (p *presence) hostOf(port [6]byte) netip.Addr {
	if p.hosts == nil {
		p.hosts = map[[6]byte]netip.Addr{}
		for _, w := range p.ways {
			known, had := p.hosts[w.port]
			switch {
			case w.port == [6]byte{}:
			case !had:
				p.hosts[w.port] = w.key.src.IP
			case known != w.key.src.IP:
				p.hosts[w.port] = netip.Addr{}
			}
		}
	}
	return p.hosts[port]
}

// placeOf returns the place at which the packets between a client and a server were captured, if the capture says which packets its
// computer sent: at a host, it sends all packets of this host and receives all others.
func (p *presence) placeOf(client, server rdma.Address) record.Place {
	w := p.ways[wayKey{client, server}]
	if w == nil || !p.headed || w.sent == w.received || w.back.sent == w.back.received || w.sent == w.back.sent {
		return record.PlaceUnknown
	}
	if w.sent {
		return record.AtClient
	}
	return record.AtServer
}

// doubtful returns the time after a packet of two hosts in which packets are perhaps missing from the capture: a connection
// did not end before it, and the connection of the next packet did not begin.
func (p *presence) doubtful() (list []record.Absence) {
	for _, w := range p.ways {
		if a, b := w.key.src.String(), w.key.dst.String(); a <= b && w.began != 0 && w.open != 0 && w.open <= w.gap {
			list = append(list, record.Absence{Address: a, Peer: b, From: w.gap, To: w.began})
		}
	}
	return list
}

// lacking returns the times in which packets are missing, the earliest first.
func (p *presence) lacking() []record.Absence {
	list := append([]record.Absence{}, p.absences...)
	for _, d := range p.doubtful() {
		if !slices.ContainsFunc(p.absences, func(x record.Absence) bool {
			return x.Address == d.Address && x.Peer == d.Peer && x.To >= d.From && x.From <= d.To
		}) {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b record.Absence) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Peer, b.Peer))
	})
	return list[:min(len(list), maxAbsences)]
}

// directions returns whether the capture has packets of connections in both directions. If it has them in one direction
// only, the result is the addresses of their senders. It is unknown without packets of connections.
func (p *presence) directions() record.Opt[string] {
	var senders []string
	for _, w := range p.ways {
		switch {
		case w.packets == 0:
		case w.back.packets > 0 || w.back.last.Packet > 0 || w.key.src == w.key.dst:
			return record.Some(record.BothDirections)
		default:
			senders = append(senders, w.key.src.String())
		}
	}
	slices.Sort(senders)
	senders = slices.Compact(senders)
	return record.SomeIf(strings.Join(senders, ", "), len(senders) > 0 && !p.full)
}

// oneWay returns the number of pairs of hosts with connections of which only one sent packets that are in the capture.
func (p *presence) oneWay() (n int64) {
	for _, w := range p.ways {
		if w.packets > 0 && w.back.packets == 0 && w.key.src != w.key.dst {
			n++
		}
	}
	return n
}

// watch notes the sender of the current frame, whose way is w, or nil if it has none yet. It reports whether the frame comes after a later packet of this sender, and has
// an earlier time.
func (d *Dissector) watch(l *layers, now record.Stamp, w *way, v *rdma.PacketVerdict, taken bool) (disordered bool) {
	g := &l.datagram
	if !g.Src.IP.IsValid() && g.Src.LID == 0 {
		return false
	}
	if !taken {
		if w != nil {
			d.presence.sent(w, now)
		}
		return false
	}
	ofConnection, asks, again := v.Conn != nil, false, v.Mark&record.Retransmitted != 0
	if v.Mark&(record.BadICRC|record.BadChecksum) == 0 && (!g.Path.Lost || g.Path.Gone) { // Otherwise its receiver has no reason to answer.
		switch l.carries {
		case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
			asks = asksForAnswer(g.Packet) && !d.tracker.Closing(v.Conn)
			again = again || g.Packet.Opcode.Transport() == rocev2.UD // one request to open a connection follows another one
			ofConnection = ofConnection && g.Packet.Opcode.Transport() != rocev2.UD
		case link.CarriesTCP:
			asks = d.tcp.Length > 0 && !d.tracker.Closing(v.Conn)
		}
	}
	if w == nil {
		w = d.presence.find(g, true)
	}
	if w != nil && ofConnection {
		if latest := max(w.latest, w.back.latest); latest != 0 && w.began == 0 && now.Time.Sub(latest) >= leastDoubt {
			w.begins(v.Conn.Setup(), latest, now.Time)
		}
	}
	const behind = record.OutOfOrder | record.Late | record.Retransmitted
	disordered = w != nil && now.Time < w.last.Time && v.Mark&behind != 0 && v.Mark&record.BadICRC == 0
	d.presence.from(w, l.pause.Port)
	d.presence.took(w, now, ofConnection, question{asks, again, &g.Path})
	return disordered
}

// asksForAnswer reports whether the receiver of a packet has to answer it at once: a request that asks for an
// acknowledgement or for a response, or a request to open a connection.
func asksForAnswer(p *rocev2.Packet) bool {
	info := p.Opcode.Info()
	switch p.Opcode.Transport() {
	case rocev2.RC:
		return info.Known && info.Request && (p.AckReq || info.Kind == rocev2.KindReadRequest || info.Kind == rocev2.KindAtomic)
	case rocev2.UD:
		const attribute = 16 // offset in the header of a management datagram
		return p.DestQPN == 1 && len(p.Payload) >= rocev2.MADLen && p.Payload[1] == rocev2.ClassCM &&
			rocev2.CMAttribute(binary.BigEndian.Uint16(p.Payload[attribute:])) == rocev2.CMReq
	}
	return false
}
