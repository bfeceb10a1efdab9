// Package link takes the headers of a frame apart, down to what may carry RDMA:
// Ethernet, VLAN tags, Linux cooked captures, ERF, IP, VXLAN and GRE tunnels, or
// an InfiniBand link; then UDP port 4791, RoCEv1, InfiniBand's own transport, or
// TCP.
package link

import (
	"encoding/binary"
	"math"
	"net/netip"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/rocev2"
)

// Carries says what of interest a frame carries.
type Carries uint8

// What a frame may carry.
const (
	CarriesOther       Carries = iota // nothing that concerns RDMA
	CarriesRoCEv2                     // Transport is BTH ... ICRC
	CarriesRoCEv1                     // likewise, behind a GRH
	CarriesInfiniBand                 // likewise, behind an LRH
	CarriesTCP                        // Transport is the TCP header and what follows
	CarriesFragment                   // a later IP fragment
	CarriesMalformed                  // a header that lies, or is cut
	CarriesUnknownLink                // of a link type that nobody knows
)

// HeaderKind is a kind of header below the transport.
type HeaderKind uint8

// The kinds of header.
const (
	HeaderEthernet HeaderKind = iota
	HeaderVLAN
	HeaderSLL
	HeaderSLL2
	HeaderERF
	HeaderERFExtension
	HeaderERFEthernet
	HeaderIPv4
	HeaderIPv6
	HeaderIPv6Extension
	HeaderUDP
	HeaderVXLAN
	HeaderGRE
	HeaderLRH
	HeaderGRH

	HeaderKinds // how many there are
)

var headerNames = [HeaderKinds]string{
	"ethernet", "vlan", "sll", "sll2", "erf", "erf_extension", "erf_ethernet", "ipv4", "ipv6", "ipv6_extension", "udp", "vxlan", "gre", "lrh", "grh",
}

// String is the kind's name in JSON, "ethernet".
func (k HeaderKind) String() string { return headerNames[k] }

// Header says which header stands where in a frame, for those who show it.
type Header struct {
	Kind   HeaderKind
	Offset int // in the frame, bytes
	Length int // bytes
}

// maxHeaders bounds how deep headers nest: tags, tunnels, extension headers.
const maxHeaders = 24

// Decoder takes the headers of a frame apart, down to the InfiniBand transport or
// TCP. Its slices alias the frame. The zero value is ready; decoding into the
// same Decoder again allocates nothing.
type Decoder struct {
	Carries          Carries
	Src, Dst         netip.Addr // IP addresses or GIDs; invalid on a link without
	SrcLID, DstLID   uint16     // native InfiniBand
	SrcPort, DstPort uint16     // UDP or TCP
	Transport        []byte     // what was captured of the transport
	Offset           int        // of Transport in the frame
	Length           int        // bytes of the transport on the wire
	Protocol         string     // what a frame that carries no RDMA is, "ARP"

	// ICRC is room to compute invariant CRCs in, which decoders of one goroutine
	// may share; it is made at need.
	ICRC *rocev2.ICRC

	ip, udp, grh, lrh []byte // for the ICRC
	ipEnd             int    // offset in the frame at which the IP packet ends by its own account
	ipFirst           bool   // it is the first fragment of a datagram
	ipExtended        bool   // IPv6 with extension headers: the ICRC is not checked
	frame             []byte
	headers           [maxHeaders]Header
	depth             int
}

// Congested says that the packet was marked "congestion experienced" on its way
// (RFC 3168 s.5).
func (d *Decoder) Congested() bool {
	switch h := d.ip; {
	case len(h) >= 20 && h[0]>>4 == 4:
		return h[1]&3 == 3
	case len(h) >= 40:
		return h[1]>>4&3 == 3
	case len(d.grh) >= 40:
		return d.grh[1]>>4&3 == 3
	}
	return false
}

// Identification returns the Identification field of the innermost IPv4 header,
// or 0 if there is none.
func (d *Decoder) Identification() uint16 {
	if len(d.ip) < 20 || d.ip[0]>>4 != 4 {
		return 0
	}
	return be.Uint16(d.ip[4:])
}

// Headers lists what was found on the way, outermost first.
func (d *Decoder) Headers() []Header { return d.headers[:d.depth] }

var be = binary.BigEndian

// Decode takes a frame apart and says what it carries. It never fails: what
// cannot be read is CarriesMalformed.
func (d *Decoder) Decode(f *capture.Frame) Carries {
	d.Src, d.Dst, d.SrcLID, d.DstLID, d.SrcPort, d.DstPort = netip.Addr{}, netip.Addr{}, 0, 0, 0, 0
	d.Transport, d.Offset, d.Length, d.Protocol = nil, 0, 0, ""
	d.ip = nil
	d.ip, d.udp, d.grh, d.lrh = nil, nil, nil, nil
	d.frame, d.depth = f.Data, 0
	d.Carries = d.link(f.LinkType, 0, f.Length)
	return d.Carries
}

// add notes a header of n bytes at offset at; false when it is not all there,
// or nested too deep.
func (d *Decoder) add(kind HeaderKind, at, n int) bool {
	if at+n > len(d.frame) || d.depth == maxHeaders {
		return false
	}
	d.headers[d.depth] = Header{kind, at, n}
	d.depth++
	return true
}

// link reads the frame's outermost header. Here as below, at is the offset in
// the frame and end the offset on the wire at which the data ends.
func (d *Decoder) link(t capture.LinkType, at, end int) Carries {
	switch t {
	case capture.LinkEthernet:
		return d.ethernet(at, end)
	case capture.LinkRaw, capture.LinkRawBSD, capture.LinkIPv4, capture.LinkIPv6:
		return d.ipAny(at, end)
	case capture.LinkSLL:
		if !d.add(HeaderSLL, at, 16) {
			return CarriesMalformed
		}
		return d.etherType(be.Uint16(d.frame[at+14:]), at+16, end)
	case capture.LinkSLL2:
		if !d.add(HeaderSLL2, at, 20) {
			return CarriesMalformed
		}
		return d.etherType(be.Uint16(d.frame[at:]), at+20, end)
	case capture.LinkERF:
		return d.erf(at)
	case capture.LinkInfiniBand:
		return d.infiniband(at, end)
	}
	return CarriesUnknownLink
}

// erf reads an Extensible Record Format header of 16 bytes and its extension
// headers of 8, each of which says in its top bit whether another follows.
func (d *Decoder) erf(at int) Carries {
	if !d.add(HeaderERF, at, 16) {
		return CarriesMalformed
	}
	h := d.frame[at:]
	more := h[8]&0x80 != 0
	kind, wire := h[8]&0x7f, int(be.Uint16(h[14:]))
	for at += 16; more; at += 8 {
		if !d.add(HeaderERFExtension, at, 8) {
			return CarriesMalformed
		}
		more = d.frame[at]&0x80 != 0
	}
	switch kind {
	case 2: // Ethernet, behind a byte of offset and one of pad
		if !d.add(HeaderERFEthernet, at, 2) {
			return CarriesMalformed
		}
		return d.ethernet(at+2, at+2+wire)
	case 21:
		return d.infiniband(at, at+wire)
	}
	d.Protocol = "ERF"
	return CarriesOther
}

func (d *Decoder) infiniband(at, end int) Carries {
	if !d.add(HeaderLRH, at, rocev2.LRHLen) {
		return CarriesMalformed
	}
	h := d.frame[at : at+rocev2.LRHLen]
	d.lrh, d.DstLID, d.SrcLID = h, be.Uint16(h[2:]), be.Uint16(h[6:])
	stop := at + int(be.Uint16(h[4:])&0x7ff)*4 // LRH through ICRC
	if stop > end {
		stop = end
	}
	switch at += rocev2.LRHLen; h[1] & 3 {
	case rocev2.LNHLocal:
		return d.transport(CarriesInfiniBand, at, stop)
	case rocev2.LNHGlobal:
		return d.globalRoute(CarriesInfiniBand, at, stop)
	}
	d.Protocol = "raw InfiniBand"
	return CarriesOther
}

func (d *Decoder) globalRoute(c Carries, at, end int) Carries {
	if !d.add(HeaderGRH, at, rocev2.GRHLen) {
		return CarriesMalformed
	}
	h := d.frame[at : at+rocev2.GRHLen]
	if h[6] != rocev2.NextHeaderIBA {
		d.Protocol = "GRH"
		return CarriesOther
	}
	d.grh = h
	d.Src, d.Dst = address16(h[8:24]), address16(h[24:40])
	at += rocev2.GRHLen
	return d.transport(c, at, min(end, at+int(be.Uint16(h[4:]))))
}

// address16 is an IPv6 address or GID; one that maps an IPv4 address is shown
// as that.
func address16(b []byte) netip.Addr { return netip.AddrFrom16([16]byte(b)).Unmap() }

func (d *Decoder) ethernet(at, end int) Carries {
	if !d.add(HeaderEthernet, at, 14) {
		return CarriesMalformed
	}
	return d.etherType(be.Uint16(d.frame[at+12:]), at+14, end)
}

// The EtherTypes that matter.
const (
	etherIPv4    = 0x0800
	etherARP     = 0x0806
	etherVLAN    = 0x8100
	etherIPv6    = 0x86dd
	etherQinQ    = 0x88a8
	etherQinQOld = 0x9100
	etherBridged = 0x6558
	etherLLDP    = 0x88cc
)

func (d *Decoder) etherType(kind uint16, at, end int) Carries {
	for kind == etherVLAN || kind == etherQinQ || kind == etherQinQOld {
		if !d.add(HeaderVLAN, at, 4) {
			return CarriesMalformed
		}
		kind = be.Uint16(d.frame[at+2:])
		at += 4
	}
	switch kind {
	case etherIPv4:
		return d.ipv4(at, end)
	case etherIPv6:
		return d.ipv6(at, end)
	case rocev2.EtherTypeRoCEv1:
		return d.globalRoute(CarriesRoCEv1, at, end)
	case etherBridged:
		return d.ethernet(at, end)
	case etherARP:
		d.Protocol = "ARP"
	case etherLLDP:
		d.Protocol = "LLDP"
	default:
		d.Protocol = "Ethernet"
	}
	return CarriesOther
}

func (d *Decoder) ipAny(at, end int) Carries {
	if at >= len(d.frame) {
		return CarriesMalformed
	}
	if d.frame[at]>>4 == 6 {
		return d.ipv6(at, end)
	}
	return d.ipv4(at, end)
}

func (d *Decoder) ipv4(at, end int) Carries {
	if at+20 > len(d.frame) || d.frame[at]>>4 != 4 {
		return CarriesMalformed
	}
	size := int(d.frame[at]&15) * 4
	if size < 20 || !d.add(HeaderIPv4, at, size) {
		return CarriesMalformed
	}
	h := d.frame[at : at+size]
	d.ip, d.ipExtended, d.ipEnd = h, false, math.MaxInt
	d.Src, d.Dst = netip.AddrFrom4([4]byte(h[12:16])), netip.AddrFrom4([4]byte(h[16:20]))
	total := int(be.Uint16(h[2:]))
	switch {
	case total == 0: // segmentation was left to the interface
	case total < size:
		return CarriesMalformed
	default:
		d.ipEnd = at + total
	}
	fragment := be.Uint16(h[6:])
	if fragment&0x1fff != 0 {
		d.Protocol = "IPv4 fragment"
		return CarriesFragment
	}
	d.ipFirst = fragment&0x2000 != 0
	end = min(end, d.ipEnd)
	return d.ipPayload(h[9], at+size, end)
}

// The IP protocols and extension headers that matter.
const (
	protoHopByHop = 0
	protoICMP     = 1
	protoIPv4     = 4
	protoTCP      = 6
	protoUDP      = 17
	protoIPv6     = 41
	protoRouting  = 43
	protoFragment = 44
	protoGRE      = 47
	protoAH       = 51
	protoICMPv6   = 58
	protoOptions  = 60
)

func (d *Decoder) ipv6(at, end int) Carries {
	if at+40 > len(d.frame) || d.frame[at]>>4 != 6 || !d.add(HeaderIPv6, at, 40) {
		return CarriesMalformed
	}
	h := d.frame[at : at+40]
	d.ip, d.ipExtended, d.ipFirst, d.ipEnd = h, false, false, math.MaxInt
	d.Src, d.Dst = netip.AddrFrom16([16]byte(h[8:24])), netip.AddrFrom16([16]byte(h[24:40]))
	if size := int(be.Uint16(h[4:])); size != 0 {
		d.ipEnd = at + 40 + size
		end = min(end, d.ipEnd)
	}
	next := h[6]
	for at += 40; ; {
		size := 0
		switch next {
		case protoHopByHop, protoRouting, protoOptions, protoAH, protoFragment:
			if at+8 > len(d.frame) {
				return CarriesMalformed
			}
			if size = 8 + int(d.frame[at+1])*8; next == protoAH {
				size = 8 + int(d.frame[at+1])*4
			} else if next == protoFragment {
				size = 8
			}
		default:
			return d.ipPayload(next, at, end)
		}
		if !d.add(HeaderIPv6Extension, at, size) {
			return CarriesMalformed
		}
		d.ipExtended = true
		if next == protoFragment {
			fragment := be.Uint16(d.frame[at+2:])
			if fragment&0xfff8 != 0 {
				d.Protocol = "IPv6 fragment"
				return CarriesFragment
			}
			d.ipFirst = fragment&1 != 0
		}
		next = d.frame[at]
		at += size
	}
}

func (d *Decoder) ipPayload(proto uint8, at, end int) Carries {
	switch proto {
	case protoUDP:
		return d.datagram(at, end)
	case protoTCP:
		if at+20 > len(d.frame) {
			return CarriesMalformed
		}
		d.SrcPort, d.DstPort = be.Uint16(d.frame[at:]), be.Uint16(d.frame[at+2:])
		d.Protocol = "TCP"
		return d.transport(CarriesTCP, at, end)
	case protoGRE:
		return d.gre(at, end)
	case protoIPv4:
		return d.ipv4(at, end)
	case protoIPv6:
		return d.ipv6(at, end)
	case protoICMP, protoICMPv6:
		d.Protocol = "ICMP"
	default:
		d.Protocol = "IP"
	}
	return CarriesOther
}

const portVXLAN = 4789

// datagram reads a UDP header.
func (d *Decoder) datagram(at, end int) Carries {
	if !d.add(HeaderUDP, at, 8) {
		return CarriesMalformed
	}
	h := d.frame[at : at+8]
	d.SrcPort, d.DstPort = be.Uint16(h), be.Uint16(h[2:])
	d.Protocol = "UDP"
	size := int(be.Uint16(h[4:]))
	switch d.DstPort {
	case rocev2.UDPPort:
		if size < 8 {
			return CarriesMalformed
		}
		d.udp = h
		// Behind the IP packet a frame may have a trailer and its FCS: they
		// belong to nobody, whatever UDP claims. A first fragment has less
		// than UDP says, and reads as cut.
		stop := max(min(at+size, d.ipEnd), at+8)
		carries := d.transport(CarriesRoCEv2, at+8, stop)
		if d.ipFirst {
			d.Length = size - 8
		}
		return carries
	case portVXLAN:
		if !d.add(HeaderVXLAN, at+8, 8) {
			return CarriesMalformed
		}
		return d.ethernet(at+16, end)
	}
	return CarriesOther
}

// gre reads a GRE header (RFC 2784, RFC 2890) with its optional words.
func (d *Decoder) gre(at, end int) Carries {
	if at+4 > len(d.frame) {
		return CarriesMalformed
	}
	flags, size := d.frame[at], 4
	for _, optional := range []byte{0x80, 0x20, 0x10} { // checksum, key, sequence
		if flags&optional != 0 {
			size += 4
		}
	}
	if !d.add(HeaderGRE, at, size) {
		return CarriesMalformed
	}
	return d.etherType(be.Uint16(d.frame[at+2:]), at+size, end)
}

// transport notes where the transport begins and ends.
func (d *Decoder) transport(c Carries, at, end int) Carries {
	if end < at || at > len(d.frame) {
		return CarriesMalformed
	}
	d.Offset, d.Length = at, end-at
	d.Transport = d.frame[at:min(end, len(d.frame))]
	return c
}

// CheckICRC holds the invariant CRC of a decoded transport packet against the
// headers below it.
func (d *Decoder) CheckICRC(p *rocev2.Packet) rocev2.ICRCResult {
	if !p.HasICRC {
		return rocev2.ICRCUnchecked
	}
	if d.ICRC == nil {
		d.ICRC = new(rocev2.ICRC)
	}
	covered := d.Transport[:d.Length-rocev2.ICRCLen]
	var want uint32
	var ok bool
	switch d.Carries {
	case CarriesRoCEv2:
		if d.ipExtended {
			return rocev2.ICRCUnchecked
		}
		want, ok = d.ICRC.RoCEv2(d.ip, d.udp, covered)
	case CarriesRoCEv1:
		want, ok = d.ICRC.RoCEv1(d.grh, covered)
	case CarriesInfiniBand:
		want, ok = d.ICRC.Native(d.lrh, d.grh, covered)
	}
	switch {
	case !ok:
		return rocev2.ICRCUnchecked
	case want == p.ICRC:
		return rocev2.ICRCOk
	}
	return rocev2.ICRCBad
}

// CheckVCRC holds the variant CRC at the end of a native InfiniBand packet
// against its bytes. It is unchecked where the capture does not have it.
func (d *Decoder) CheckVCRC() rocev2.ICRCResult {
	end := d.Offset + d.Length
	if d.Carries != CarriesInfiniBand || len(d.frame) < end+rocev2.VCRCLen {
		return rocev2.ICRCUnchecked
	}
	first := d.Offset - len(d.grh) - len(d.lrh)
	if rocev2.VCRC(d.frame[first:end]) == binary.LittleEndian.Uint16(d.frame[end:]) {
		return rocev2.ICRCOk
	}
	return rocev2.ICRCBad
}
