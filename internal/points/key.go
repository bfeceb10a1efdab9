package points

import (
	"encoding/binary"
	"maps"
	"math/bits"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// The key of a packet is what it has at every capture point: addresses, destination QPN, opcode, PSN,
// length, and the bytes after the BTH. VLAN tags, hop limits and congestion marks change on the way. The
// ICRC and the end of the payload may be missing at a point with a short snapshot length.

var be = binary.BigEndian

// keyBytes is the number of bytes after the BTH that belong to the key. They contain the AETH, or the address in the RETH. A point
// that captures 64 bytes of each frame has them.
const keyBytes = 8

// datagramBytes is the same number for datagrams. They contain a DETH and the header of a MAD with the
// transaction ID and the attribute ID, in which the messages of one exchange differ.
const datagramBytes = 28

// rpcBytes is the number of bytes of an RPC message in a UDP datagram that belong to the key. They contain the XID and
// the procedure of a Call, or the status of a Reply.
const rpcBytes = 24

// udSendOnly is the opcode that stands for a UDP datagram.
const udSendOnly rocev2.Opcode = 0x64

// ends are the addresses of a packet.
type ends struct {
	src, dst       netip.Addr
	srcLID, dstLID uint16
}

func (e ends) reversed() ends { return ends{e.dst, e.src, e.dstLID, e.srcLID} }

// directions numbers the pairs of sender and receiver.
type directions struct {
	numbers map[ends]int32
	list    []ends
	last    ends // the latest one, which is often the next, too
	number  int32
}

// maxDirections limits the number of directions. Packets of further ones are not compared.
const maxDirections = 1 << 16

// of returns the number of a direction, or -1 if there are too many.
func (d *directions) of(e ends) int32 {
	if len(d.list) > 0 && e == d.last {
		return d.number
	}
	n, known := d.numbers[e]
	if !known {
		if n = int32(len(d.list)); n == maxDirections {
			return -1
		}
		if d.numbers == nil {
			d.numbers = map[ends]int32{}
		}
		d.numbers[e] = n
		d.list = append(d.list, e)
	}
	d.last, d.number = e, n
	return n
}

// clone returns a copy that may number further directions.
func (d *directions) clone() directions {
	return directions{numbers: maps.Clone(d.numbers), list: slices.Clone(d.list), last: d.last, number: d.number}
}

// find returns the number of a direction that is known already, or -1.
func (d *directions) find(e ends) int32 {
	if n, known := d.numbers[e]; known {
		return n
	}
	return -1
}

// sight is what one frame shows.
type sight struct {
	key     uint64 // of the packet; 0 if it has none
	base    uint64 // equal for all packets that repeat it; 0 if it has none
	dir     int32  // number of the direction; -1 if it has none
	length  int32  // of the packet on the wire, from the network header on, in bytes
	id      uint16 // IP identification; 0 if there is none
	carries link.Carries
	icrc    rocev2.ICRCResult
	sum     uint32            // ICRC that the packet should have; sum of the payload of a TCP segment
	summed  bool              // sum is known
	ip      rocev2.ICRCResult // of verifying the checksum of the IPv4 header
	check   uint16            // UDP checksum of a RoCEv2 packet; 0 if there is none
	opcode  rocev2.Opcode
	psn     uint32
	qpn     uint32          // destination queue pair
	aeth    rocev2.Syndrome // syndrome of the AETH
	hasAETH bool            // aeth is set
	cut     bool            // so few bytes of the packet were captured that it has no key
	tcp     link.TCP        // for TCP only
	network int             // offset of the network header in the frame, in bytes
	v6      bool            // the network header is that of IPv6
}

// eye decodes frames.
type eye struct {
	link   link.Decoder
	packet rocev2.Packet
	dirs   *directions
	masked [maxMasked]byte

	scrubbed scrubbed
}

// scrubbed knows whether the latest section of a file was scrubbed: the payloads of such packets prove nothing.
type scrubbed struct {
	section *capture.Section
	yes     bool
}

// is reports whether a section was scrubbed.
func (s *scrubbed) is(section *capture.Section) bool {
	if section != s.section {
		s.section, s.yes = section, section != nil && strings.Contains(section.Options, capture.Scrubbed)
	}
	return s.yes
}

// look decodes a frame. If verify is set, it also verifies the ICRC.
func (e *eye) look(f *capture.Frame, s *sight, verify bool) {
	*s = sight{dir: -1, network: -1, carries: e.link.Decode(f)}
	d := &e.link
	switch s.carries {
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
		e.place(s)
		if e.packet.Decode(d.Transport, d.Length) != nil {
			if len(d.Transport) > 0 && len(d.Transport) < d.Length { // The snapshot length is too short.
				s.cut, s.opcode = true, rocev2.Opcode(d.Transport[0])
				s.dir = e.dirs.of(ends{d.Src, d.Dst, d.SrcLID, d.DstLID})
			}
			return
		}
		s.dir = e.dirs.of(ends{d.Src, d.Dst, d.SrcLID, d.DstLID})
		e.roce(s)
		if verify {
			s.ip = checked(d.IPv4Checksum())
			s.check = d.StatedUDPChecksum()
			s.sum, s.summed = d.ComputeICRC()
			switch {
			case !s.summed || !e.packet.HasICRC:
			case s.sum == e.packet.ICRC:
				s.icrc = rocev2.ICRCOk
			default:
				s.icrc = rocev2.ICRCBad
			}
		}
	case link.CarriesUDP:
		if _, ok := oncrpc.Plausible(d.Transport, d.Length, len(d.Transport) < d.Length); !ok || len(d.Transport) < rpcBytes {
			return
		}
		e.place(s)
		s.dir = e.dirs.of(ends{src: d.Src, dst: d.Dst})
		e.datagram(s)
		if verify {
			s.icrc = checked(d.UDPChecksum())
		}
	case link.CarriesTCP:
		e.place(s)
		s.tcp.Src, s.tcp.Dst = d.Src, d.Dst
		if s.tcp.Decode(d.Transport, d.Length, d.Offset) {
			s.dir = e.dirs.of(ends{src: d.Src, dst: d.Dst})
			e.segment(s)
			if right, known := s.tcp.Checksum(); verify {
				s.icrc = checked(right, known && !s.tcp.Unfinished())
				if t := &s.tcp; t.Length > 0 && len(t.Payload) == t.Length {
					s.sum, s.summed = payloadSum(t.Payload), !e.scrubbed.is(f.Section)
				}
			}
		}
	}
}

// place finds the network header.
func (e *eye) place(s *sight) {
	for _, h := range e.link.Headers() {
		switch h.Kind {
		case link.HeaderIPv4, link.HeaderIPv6, link.HeaderGRH:
			s.network, s.v6 = h.Offset, h.Kind != link.HeaderIPv4
		case link.HeaderLRH:
			s.network = h.Offset
		}
	}
	s.length = int32(e.link.Offset + e.link.Length - max(s.network, 0))
	if s.carries == link.CarriesRoCEv2 && e.link.LengthsDisagree() { // One of them is damaged.
		s.length = int32(e.link.WireLength - max(s.network, 0))
	}
	s.id = e.link.Identification()
}

// roce sets the key of an InfiniBand transport packet.
func (e *eye) roce(s *sight) {
	d, p := &e.link, &e.packet
	s.opcode, s.psn, s.qpn = p.Opcode, p.PSN, p.DestQPN
	if p.Headers&rocev2.HasAETH != 0 {
		s.aeth, s.hasAETH = p.AETH.Syndrome, true
	}
	n := keyBytes
	if p.Opcode.Transport() == rocev2.UD {
		n = datagramBytes
	}
	end := min(rocev2.BTHLen+n, d.Length-rocev2.ICRCLen)
	if end > len(d.Transport) { // The snapshot length is too short.
		s.cut = true
		return
	}
	h := mix(addressHash(d), uint64(p.Opcode)<<32|uint64(p.DestQPN))
	h = mix(h, uint64(d.Length)<<16|uint64(d.Transport[1])<<8|uint64(d.Transport[8])) // pad count, AckReq
	h = hashBytes(h, d.Transport[rocev2.BTHLen:end])
	s.key = nonzero(mix(h, uint64(p.PSN)))
	if s.base = s.key; p.Opcode.Transport() == rocev2.UD { // A message that is sent again has another PSN.
		s.base = nonzero(h)
	}
}

// checkUDP verifies the UDP checksum of the RoCEv2 packet that was decoded last. One without a checksum is as good as one with the
// right one.
func (e *eye) checkUDP(s *sight) rocev2.ICRCResult {
	switch {
	case s.carries != link.CarriesRoCEv2:
		return rocev2.ICRCUnchecked
	case s.check == 0:
		return rocev2.ICRCOk
	}
	return checked(e.link.UDPChecksum())
}

// checked returns the result of verifying a checksum.
func checked(right, known bool) rocev2.ICRCResult {
	switch {
	case !known:
		return rocev2.ICRCUnchecked
	case right:
		return rocev2.ICRCOk
	}
	return rocev2.ICRCBad
}

// datagram sets the key of a UDP datagram with an RPC message.
func (e *eye) datagram(s *sight) {
	d := &e.link
	ports := uint64(d.SrcPort)<<16 | uint64(d.DstPort)
	h := mix(addressHash(d), ports|1<<41)
	s.opcode, s.qpn = udSendOnly, uint32(ports) // It is ordered among the datagrams between the two ports.
	s.key = nonzero(hashBytes(mix(h, uint64(d.Length)), d.Transport[:rpcBytes]))
	s.base = s.key
}

// segment sets the key of a TCP segment. The key of data is its byte range, so frames that a host has merged have
// other keys. ranges.go matches their bytes.
func (e *eye) segment(s *sight) {
	t := &s.tcp
	s.opcode = udSendOnly // Nothing but its bytes has an order.
	h := mix(addressHash(&e.link), uint64(t.SrcPort)<<16|uint64(t.DstPort)|1<<40)
	switch {
	case t.Flags&(link.TCPSYN|link.TCPRST) != 0 || t.Flags&link.TCPFIN != 0 && t.Length == 0:
		s.key = nonzero(mix(h, uint64(t.Seq)<<8|uint64(t.Flags)))
	case t.Length > 0:
		s.key = nonzero(mix(h, uint64(t.Seq)<<32|uint64(uint32(t.Length))))
	default:
		h = mix(h, uint64(t.Seq)<<32|uint64(t.Ack))
		h = mix(h, uint64(be.Uint16(t.Header[14:])))
		s.key = nonzero(hashBytes(h, t.Header[20:]))
	}
	s.base = s.key
}

// answersOf returns a hash of what a TCP segment acknowledges, and of its options. Copies that were sent at different times differ
// in it, and hosts merge only segments that are equal in it.
func answersOf(t *link.TCP) uint64 { return hashBytes(uint64(t.Ack), t.Header[20:]) }

// addressHash returns a hash of the addresses.
func addressHash(d *link.Decoder) uint64 {
	h := uint64(d.SrcLID)<<16 | uint64(d.DstLID)
	if d.Src.IsValid() {
		a, b := d.Src.As16(), d.Dst.As16()
		h = mix(h^be.Uint64(a[:]), be.Uint64(a[8:]))
		h = mix(h^be.Uint64(b[:]), be.Uint64(b[8:]))
	}
	return h
}

// mix combines two numbers to a hash.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd1b54a32d192ed03)
	return hi ^ lo ^ bits.RotateLeft64(a, 23)
}

// hashBytes adds bytes to a hash.
func hashBytes(h uint64, b []byte) uint64 {
	for ; len(b) >= 8; b = b[8:] {
		h = mix(h, be.Uint64(b))
	}
	var rest uint64
	for _, v := range b {
		rest = rest<<8 | uint64(v)
	}
	return mix(h, rest)
}

// kindOfCut returns the index in the counts of packets without a key: datagrams need more bytes.
func kindOfCut(op rocev2.Opcode) int {
	if op.Transport() == rocev2.UD {
		return 1
	}
	return 0
}

// nonzero returns a hash that is not 0.
func nonzero(h uint64) uint64 {
	if h == 0 {
		return 1
	}
	return h
}
