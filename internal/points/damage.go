package points

import (
	"math/bits"
	"slices"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// A packet that was corrupted on the way may have another key, or may not look like RDMA any more. Its
// headers are compared with those of the packets that were lost. To remember the headers of each packet in
// eight bytes, the eight-byte words of the headers are combined with XOR. A damaged byte changes one byte
// of the result.

// maxMasked is the maximum number of bytes that are compared: IPv6 or GRH, UDP, BTH, and the bytes after it.
const maxMasked = 40 + 8 + 12 + 16

// maxDamaged is the maximum number of bytes in which a damaged packet differs from the original.
const maxDamaged = 3

// lanesOf returns the XOR of the words of a packet, which begins with its network header. Bytes that
// routers may change count as zero, as for the ICRC.
func (e *eye) lanesOf(packet []byte, v6 bool) (lanes uint64) {
	network, n := 20, maxMasked-20
	if v6 {
		network, n = 40, maxMasked
	}
	clear(e.masked[:])
	copy(e.masked[:n], packet)
	m := e.masked[:]
	if v6 {
		m[0] &= 0xf0
		m[1], m[2], m[3], m[7] = 0, 0, 0, 0
	} else {
		m[1], m[8], m[10], m[11] = 0, 0, 0, 0
	}
	m[network+6], m[network+7] = 0, 0 // UDP checksum
	m[network+8+4] = 0                // BTH
	for i := 0; i+8 <= len(m); i += 8 {
		lanes ^= bits.RotateLeft64(be.Uint64(m[i:]), i) // so that equal words do not cancel
	}
	return lanes
}

// hasHeaders reports whether all the bytes of a packet that are compared were captured. Otherwise it is truncated, and nothing
// shows that it is damaged.
func hasHeaders(packet []byte, v6 bool, length int) bool {
	n := maxMasked
	if !v6 {
		n -= 20
	}
	return len(packet) >= min(n, length)
}

// damaged reports whether two packets may be one that was damaged.
func damaged(a, b uint64) bool {
	n := 0
	for d := a ^ b; d != 0; d >>= 8 {
		if d&0xff != 0 {
			n++
		}
	}
	return n <= maxDamaged
}

// destination is the Ethernet address to which the packets of a direction go from a point.
type destination struct {
	usual, latest [6]byte
	same, others  int  // packets to the usual address, and to others
	several       bool // successive packets went to another address, so that it is not a damaged one
}

// ethernetDestination returns the destination of an Ethernet frame.
func ethernetDestination(f *capture.Frame) (to [6]byte, has bool) {
	return to, f.LinkType == capture.LinkEthernet && copy(to[:], f.Data) == len(to)
}

// with returns the destination with another packet.
func (d destination) with(to [6]byte) destination {
	switch {
	case to == d.usual:
		d.same++
	case d.others >= d.same:
		d.usual, d.same, d.others = to, 1, 0
	default:
		d.several = d.several || to == d.latest
		d.others++
	}
	d.latest = to
	return d
}

// isDamaged reports whether an address is the usual one with one or two bytes damaged.
func (d destination) isDamaged(to [6]byte) bool {
	differ := 0
	for i := range to {
		if to[i] != d.usual[i] {
			differ++
		}
	}
	return differ > 0 && differ <= 2 && !d.several && d.same > d.others
}

// suspect is an arrival that may be a damaged packet.
type suspect struct {
	at     uint64 // position of the frame, if waits is set
	waits  bool   // the frame is decided when a packet takes it
	time   int64
	lanes  uint64
	length int32
	point  uint16
	used   bool
}

// damage has the arrivals that may be damaged packets, by length.
type damage struct {
	suspects map[int32][]*suspect
	order    queue[*suspect]
}

// maxSuspects limits the number of arrivals of the same length that are compared with a lost packet, and
// that of all arrivals that are remembered.
const (
	maxSuspects = 64
	allSuspects = 1 << 16
)

// suspect remembers an arrival without a good checksum that no transmission explains.
func (m *matcher) suspect(at uint64, e *entry) {
	e.arriving = notYet
	m.damage.remember(&suspect{at: at, waits: true, time: e.time, lanes: e.lanes, length: e.length, point: e.point})
}

func (d *damage) remember(s *suspect) {
	if d.suspects == nil {
		d.suspects = map[int32][]*suspect{}
	}
	d.suspects[s.length] = append(d.suspects[s.length], s)
	d.order.push(s)
}

// lookAtDamaged remembers a frame that may have been a packet on a known path before it was damaged.
func (m *matcher) lookAtDamaged(src *source, f *capture.Frame, at uint64, e *entry) {
	v := &m.seen
	if v.icrc == rocev2.ICRCOk && e.ip != rocev2.ICRCBad && v.key != 0 { // It is another host's: the ICRC covers addresses.
		return
	}
	network, v6 := v.network, v.v6
	if network < 0 || v.carries != link.CarriesRoCEv2 {
		network, v6 = src.network, src.v6
	}
	if network < 0 || network >= len(f.Data) || v.cut || !hasHeaders(f.Data[network:], v6, m.eye.link.WireLength-network) {
		return
	}
	s := &suspect{time: e.time, lanes: m.eye.lanesOf(f.Data[network:], v6), length: int32(m.eye.link.WireLength - network), point: e.point}
	if v.key != 0 && e.icrc != rocev2.ICRCOk {
		s.at, s.waits = at, true
		e.arriving = notYet
	}
	m.damage.remember(s)
}

// take finds the damaged copy of a packet that did not arrive, and reports whether there is one.
func (d *damage) take(m *matcher, point int, e *entry, longest int64) bool {
	list := d.suspects[e.length]
	for _, s := range list[max(len(list)-maxSuspects, 0):] {
		if s.used || int(s.point) != point || s.time < e.time-m.slack || s.time > e.time+max(longest, minWindow/4) || !damaged(s.lanes, e.lanes) {
			continue
		}
		before := func(o *suspect) bool { // It was damaged before this hop.
			return o.point == e.point && o.lanes == s.lanes && o.time <= s.time+m.slack && o.time >= s.time-max(longest, minWindow/4)
		}
		if slices.ContainsFunc(list, before) {
			continue
		}
		s.used = true
		if s.waits {
			e.badSum = m.ring.has(s.at) && m.ring.at(s.at).icrc == rocev2.ICRCBad
			m.hide(s.at)
		}
		return true
	}
	return false
}

// expire forgets the arrivals before a time.
func (d *damage) expire(m *matcher, before int64) {
	for d.order.len() > 0 && ((*d.order.first()).time < before || d.order.len() > allSuspects) {
		s := d.order.pop()
		list := d.suspects[s.length]
		if list = list[1:]; len(list) == 0 {
			delete(d.suspects, s.length)
		} else {
			d.suspects[s.length] = list
		}
		if s.waits && !s.used && m.ring.has(s.at) {
			if e := m.ring.at(s.at); e.arriving == notYet {
				e.arriving = unexplained
			}
		}
	}
}
