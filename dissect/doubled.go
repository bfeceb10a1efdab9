package dissect

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// A capture of a mirror of both ports of a switch, or of several interfaces of a host, has each packet twice. The second copy is
// not taken: no sender sent it. A retransmission has the same bytes as the first copy, too, if the sender gives its packets
// no IP identification. But it comes later or after a NAK, never with the time of the first copy, and hardly any capture retransmits most of
// its packets.

// The limits by which packets that are in a capture twice are recognized.
const (
	doubledWithin = record.Time(5e6) // between both copies
	doubledOf     = 1 << 11          // packets before the second copy that are remembered
	doubledAfter  = 8                // packets of a direction, without those of the latest time, that show whether it is doubled
	doubledForget = 256              // packets after which the earlier ones count half
	doubledNear   = 64               // packets before a packet that are looked at if there are no earlier ones
)

// doubles recognizes packets that are in the capture twice.
type doubles struct {
	seed       maphash.Seed
	secret     [2]uint64
	slots      [doubledOf]uint16 // latest position in sent, by key
	sent       [doubledOf]single
	next, aged int64     // positions of the next packet, and of the first one that a copy may still follow; from 1
	nak        [2]int64  // position of the latest NAK, by the direction of the packets that it refuses
	latest     [2]int64  // position of the latest packet, by direction
	ways       [2]figure // by direction
}

// single is a packet without its copy. Positions are kept without their upper bits: what is in a place of sent shows which position it has.
type single struct {
	at      record.Time
	key     uint32
	before  uint16 // position of the packet before with the same slot
	way     uint8
	doubled bool // its copy was captured
}

// earlier returns the position before at that has these lower bits.
func earlier(at int64, low uint16) int64 { return at - 1 - int64(uint16(at)-1-low) }

// figure counts the packets of a direction, and the packets of which a copy was captured.
type figure struct{ packets, doubled int32 }

// note counts a packet after whose time no copy of it follows.
func (f *figure) note(p *single) {
	if f.packets++; p.doubled {
		f.doubled++
	}
	if f.packets >= doubledForget {
		f.packets, f.doubled = f.packets/2, f.doubled/2
	}
}

// most reports whether most packets are in the capture twice. Before there are enough of them, that may be so.
func (f *figure) most() bool { return f.packets < doubledAfter || 3*f.doubled >= 2*f.packets }

// copies reports whether a packet is the second copy of one that is in the capture already. Way is its direction.
func (d *doubles) copies(l *layers, way uint8, at record.Time) bool {
	key := d.key(l)
	for ; d.aged < d.next; d.aged++ {
		p := &d.sent[d.aged%doubledOf]
		if at-p.at <= doubledWithin && d.next-d.aged < doubledOf {
			break
		}
		d.ways[p.way].note(p)
	}
	slot := &d.slots[key%doubledOf]
	f := &d.ways[way]
	for i := earlier(d.next, *slot); i >= d.aged; {
		p := &d.sent[i%doubledOf]
		if p.key == uint32(key>>32) {
			if p.at == at && d.latest[1-way] < i && d.ticks(at) { // No sender sends a packet again before it can know anything.
				return true
			}
			if p.doubled { // so are the earlier ones with the same bytes, because each copy belongs to the latest
				break
			}
			p.doubled = true
			return f.most() && (f.packets >= doubledAfter || d.nak[way] < i && d.before(i, way))
		}
		i = earlier(i, p.before)
	}
	*slot, d.sent[d.next%doubledOf] = uint16(d.next), single{key: uint32(key >> 32), at: at, before: *slot, way: way}
	if isNak(l) {
		d.nak[1-way] = d.next
	}
	d.latest[way] = d.next
	d.next++
	return false
}

// ticks reports whether the clock of the capture is so fine that few packets have the latest time.
func (d *doubles) ticks(at record.Time) bool {
	return d.sent[max(d.next-doubledNear, 1)%doubledOf].at != at
}

// before reports whether most packets of a direction that precede the packet at a position are in the capture twice. If there are
// none, those of the other direction whose time is over show it. If there are none either, that may be so unless the other side
// sent something after the packet: a mirror is faster than an answer.
func (d *doubles) before(i int64, way uint8) bool {
	f := d.ways[way]
	for at := max(d.aged, i-doubledNear); at < i; at++ {
		if p := &d.sent[at%doubledOf]; p.way == way {
			f.note(p)
		}
	}
	if f.packets == 0 {
		if f = d.ways[1-way]; f.packets == 0 {
			return d.latest[1-way] < i
		}
	}
	return 3*f.doubled >= 2*f.packets
}

// The bytes at both ends of a packet that are hashed: its headers, and its ICRC. Packets of one sender that differ only between them
// have the same sequence number.
const (
	hashedHead = 96
	hashedTail = 16
)

// key returns a hash of what both copies of a packet have in common. An ICRC that is right is a hash of the packet already, but for the
// byte of the BTH that it does not cover.
func (d *doubles) key(l *layers) uint64 {
	g := &l.datagram
	about := uint64(g.Identification)<<32 | uint64(l.srcPort)<<16 | uint64(l.dstPort)
	if p := &l.packet; g.ICRC == rocev2.ICRCOk && l.carries != link.CarriesTCP && l.carries != link.CarriesUDP && l.err == nil && p.Opcode.Transport() != rocev2.UD {
		marks := uint64(p.Reserved6)
		if p.FECN {
			marks |= 0x80
		}
		if p.BECN {
			marks |= 0x40
		}
		return d.mix(d.mix(uint64(p.ICRC)<<32|uint64(p.PSN), marks<<56|uint64(p.DestQPN)<<32|uint64(g.Length)), uint64(p.Opcode)<<48|about)
	}
	key := maphash.Bytes(d.seed, g.Raw[:min(len(g.Raw), hashedHead)])
	if tail := g.Raw[max(len(g.Raw)-hashedTail, 0):]; len(tail) == hashedTail {
		key = d.mix(key^binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[8:]))
	}
	src, dst := g.Src.IP.As16(), g.Dst.IP.As16()
	key = d.mix(key^binary.LittleEndian.Uint64(src[8:]), binary.LittleEndian.Uint64(dst[8:]))
	key = d.mix(key^binary.LittleEndian.Uint64(src[:]), binary.LittleEndian.Uint64(dst[:]))
	return d.mix(key^about, uint64(g.Src.LID)<<48|uint64(g.Dst.LID)<<32|uint64(g.Length))
}

// mix returns a hash of two words. Nobody who does not know the secret can tell which words have the same one.
func (d *doubles) mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^d.secret[0], b^d.secret[1])
	return hi ^ lo
}

// isNak reports whether a packet is a NAK, after which a sender retransmits at once.
func isNak(l *layers) bool {
	if l.carries == link.CarriesTCP || l.carries == link.CarriesUDP || l.err != nil {
		return false
	}
	p := &l.packet
	return p.Opcode.Info().Kind == rocev2.KindAcknowledge && (p.AETH.Syndrome.IsNak() || p.AETH.Syndrome.IsRNR())
}

// doubled reports whether the current frame is the second copy of a packet. Several capture points have each packet several
// times for other reasons.
func (d *Dissector) doubled(l *layers, now record.Stamp, w *way) bool {
	switch l.carries {
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand, link.CarriesTCP, link.CarriesUDP:
	default:
		return false
	}
	if d.options.Points != nil {
		return false
	}
	if d.doubles == nil {
		d.doubles = &doubles{seed: maphash.MakeSeed(), secret: [2]uint64{rand.Uint64(), rand.Uint64()}, next: 1, aged: 1}
	}
	if w == nil {
		return d.doubles.copies(l, sideOf(&l.datagram), now.Time)
	}
	return d.doubles.copies(l, w.side, now.Time)
}
