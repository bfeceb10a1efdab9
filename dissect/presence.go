package dissect

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

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
)

// wayKey identifies the packets from one host to another.
type wayKey struct{ src, dst rdma.Address }

// way is the packets from one host to another.
type way struct {
	key         wayKey
	back        *way         // the opposite way
	last        record.Stamp // latest packet; its number is 0 if there was none
	packets     int64        // packets of connections
	taken       bool         // it has packets of connections, or messages that open them
	asked       int64        // packets since the latest packet of back that ask for an answer
	first, next record.Stamp // the first and the latest of these
}

// presence is what the capture shows of each host.
type presence struct {
	ways     map[wayKey]*way
	latest   *way // of the latest packet
	silences []record.Silence
	full     bool // there were more ways or silences
}

// find returns the way of a packet, which is created if that is wanted; nil if it is not remembered.
func (p *presence) find(k wayKey, create bool) *way {
	if w := p.latest; w != nil {
		if w.key == k {
			return w
		}
		if w.back.key == k {
			p.latest = w.back
			return w.back
		}
	}
	w := p.ways[k]
	if w == nil && create {
		if p.full = p.full || len(p.ways) >= maxWays; p.full {
			return nil
		}
		if p.ways == nil {
			p.ways = map[wayKey]*way{}
		}
		w = &way{key: k, back: &way{key: wayKey{k.dst, k.src}}}
		w.back.back = w
		p.ways[k], p.ways[w.back.key] = w, w.back
	}
	if w != nil {
		p.latest = w
	}
	return w
}

// took notes a packet that the tracker took.
func (p *presence) took(w *way, at record.Stamp, ofConnection, asks bool) {
	if w == nil {
		return
	}
	if w.taken = true; ofConnection {
		w.packets++
	}
	p.sent(w, at)
	if asks {
		if w.next = at; w.asked == 0 {
			w.first = at
		}
		w.asked++
	}
}

// sent notes a packet of a host, which ends its silence.
func (p *presence) sent(w *way, at record.Stamp) {
	if s, silent := w.back.silence(); silent {
		s.To, s.Next = record.Some(at.Time), record.Some(at.Packet)
		if len(p.silences) < maxSilences {
			p.silences = append(p.silences, s)
		}
	}
	w.back.asked = 0
	w.last = at
}

// silence returns the silence of the host that the packets of w go to. If no packet of that host is in the capture, its
// packets were perhaps not captured, so that it is not known to be silent.
func (w *way) silence() (s record.Silence, silent bool) {
	if w.asked < leastQuestion || w.next.Time.Sub(w.first.Time) < leastSilence || !w.back.taken {
		return s, false
	}
	return record.Silence{
		Address: w.key.dst.String(), Peer: w.key.src.String(), From: w.first.Time, Packets: w.asked, Last: w.back.last.Packet,
	}, true
}

// all returns the silences, the earliest first; those that have not ended are among them.
func (p *presence) all() []record.Silence {
	list := append([]record.Silence{}, p.silences...)
	for _, w := range p.ways {
		if s, silent := w.silence(); silent {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b record.Silence) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Last, b.Last), cmp.Compare(a.Next.Or(0), b.Next.Or(0)))
	})
	return list[:min(len(list), maxSilences)]
}

// directions returns whether the capture has packets of connections in both directions. If it has them in one direction
// only, the result is the addresses of their senders. It is unknown without packets of connections.
func (p *presence) directions() record.Opt[string] {
	var senders []string
	for _, w := range p.ways {
		switch {
		case w.packets == 0:
		case w.back.packets > 0 || w.key.src == w.key.dst:
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

// watch notes the sender of the current frame.
func (d *Dissector) watch(l *layers, now record.Stamp, v *rdma.PacketVerdict, taken bool) {
	g := &l.datagram
	if !g.Src.IP.IsValid() && g.Src.LID == 0 {
		return
	}
	k := wayKey{g.Src, g.Dst}
	if !taken {
		if len(d.presence.ways) == 0 {
			return
		}
		if w := d.presence.find(k, false); w != nil {
			d.presence.sent(w, now)
		}
		return
	}
	ofConnection, asks := v.Conn != nil, false
	if v.Mark&(record.BadICRC|record.BadChecksum) == 0 && !g.Path.Lost { // Otherwise its receiver has no reason to answer.
		switch l.carries {
		case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
			asks = asksForAnswer(g.Packet) && !d.tracker.Closing(v.Conn)
			ofConnection = ofConnection && g.Packet.Opcode.Transport() != rocev2.UD
		case link.CarriesTCP:
			asks = d.tcp.Length > 0 && !d.tracker.Closing(v.Conn)
		}
	}
	d.presence.took(d.presence.find(k, true), now, ofConnection, asks)
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
