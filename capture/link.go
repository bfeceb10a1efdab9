package capture

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/rdmadump/rdmadump/rocev2"
)

// LinkType is what a frame starts with, numbered as in tcpdump's registry.
type LinkType uint16

// The link types that are read.
const (
	LinkEthernet   LinkType = 1
	LinkRaw        LinkType = 101
	LinkRawBSD     LinkType = 12
	LinkSLL        LinkType = 113
	LinkERF        LinkType = 197
	LinkIPv4       LinkType = 228
	LinkIPv6       LinkType = 229
	LinkInfiniBand LinkType = 247
	LinkSLL2       LinkType = 276
)

var linkNames = map[LinkType]string{
	LinkEthernet: "Ethernet", LinkRaw: "raw IP", LinkRawBSD: "raw IP", LinkSLL: "Linux cooked", LinkERF: "ERF",
	LinkIPv4: "raw IPv4", LinkIPv6: "raw IPv6", LinkInfiniBand: "InfiniBand", LinkSLL2: "Linux cooked v2",
}

// String is the name of the link type, or its number.
func (t LinkType) String() string {
	if name, known := linkNames[t]; known {
		return name
	}
	return fmt.Sprintf("link type %d", uint16(t))
}

// Known says whether [Link] can read frames of this type.
func (t LinkType) Known() bool { return linkNames[t] != "" }

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

// Link takes the headers of a frame apart, down to the InfiniBand transport or
// TCP. Its slices alias the frame. The zero value is ready; decoding into the
// same Link again allocates nothing.
type Link struct {
	Carries          Carries
	Src, Dst         netip.Addr // IP addresses or GIDs; invalid on a link without
	SrcLID, DstLID   uint16     // native InfiniBand
	SrcPort, DstPort uint16     // UDP or TCP
	Transport        []byte     // what was captured of the transport
	Offset           int        // of Transport in the frame
	Length           int        // bytes of the transport on the wire
	Protocol         string     // what a frame that carries no RDMA is, "ARP"

	ip, udp, grh, lrh []byte // for the ICRC
	ipExtended        bool   // IPv6 with extension headers: the ICRC is not checked
	frame             []byte
	icrc              rocev2.ICRC
	headers           [maxHeaders]Header
	depth             int
}

// Headers lists what was found on the way, outermost first.
func (l *Link) Headers() []Header { return l.headers[:l.depth] }

var be = binary.BigEndian

// Decode takes a frame apart and says what it carries. It never fails: what
// cannot be read is CarriesMalformed.
func (l *Link) Decode(f *Frame) Carries {
	l.Src, l.Dst, l.SrcLID, l.DstLID, l.SrcPort, l.DstPort = netip.Addr{}, netip.Addr{}, 0, 0, 0, 0
	l.Transport, l.Offset, l.Length, l.Protocol = nil, 0, 0, ""
	l.ip, l.udp, l.grh, l.lrh, l.ipExtended = nil, nil, nil, nil, false
	l.frame, l.depth = f.Data, 0
	l.Carries = l.link(f.LinkType, 0, f.Length)
	return l.Carries
}

// add notes a header of n bytes at offset at; false when it is not all there,
// or nested too deep.
func (l *Link) add(kind HeaderKind, at, n int) bool {
	if at+n > len(l.frame) || l.depth == maxHeaders {
		return false
	}
	l.headers[l.depth] = Header{kind, at, n}
	l.depth++
	return true
}

// link reads the frame's outermost header. Here as below, at is the offset in
// the frame and end the offset on the wire at which the data ends.
func (l *Link) link(t LinkType, at, end int) Carries {
	switch t {
	case LinkEthernet:
		return l.ethernet(at, end)
	case LinkRaw, LinkRawBSD, LinkIPv4, LinkIPv6:
		return l.ipAny(at, end)
	case LinkSLL:
		if !l.add(HeaderSLL, at, 16) {
			return CarriesMalformed
		}
		return l.etherType(be.Uint16(l.frame[at+14:]), at+16, end)
	case LinkSLL2:
		if !l.add(HeaderSLL2, at, 20) {
			return CarriesMalformed
		}
		return l.etherType(be.Uint16(l.frame[at:]), at+20, end)
	case LinkERF:
		return l.erf(at, end)
	case LinkInfiniBand:
		return l.infiniband(at, end)
	}
	return CarriesUnknownLink
}

// erf reads an Extensible Record Format header of 16 bytes and its extension
// headers of 8, each of which says in its top bit whether another follows.
func (l *Link) erf(at, end int) Carries {
	if !l.add(HeaderERF, at, 16) {
		return CarriesMalformed
	}
	h := l.frame[at:]
	more := h[8]&0x80 != 0
	kind, wire := h[8]&0x7f, int(be.Uint16(h[14:]))
	for at += 16; more; at += 8 {
		if !l.add(HeaderERFExtension, at, 8) {
			return CarriesMalformed
		}
		more = l.frame[at]&0x80 != 0
	}
	switch kind {
	case 2: // Ethernet, behind a byte of offset and one of pad
		if !l.add(HeaderERFEthernet, at, 2) {
			return CarriesMalformed
		}
		return l.ethernet(at+2, at+2+wire)
	case 21:
		return l.infiniband(at, at+wire)
	}
	l.Protocol = "ERF"
	return CarriesOther
}

func (l *Link) infiniband(at, end int) Carries {
	if !l.add(HeaderLRH, at, rocev2.LRHLen) {
		return CarriesMalformed
	}
	h := l.frame[at : at+rocev2.LRHLen]
	l.lrh, l.DstLID, l.SrcLID = h, be.Uint16(h[2:]), be.Uint16(h[6:])
	stop := at + int(be.Uint16(h[4:])&0x7ff)*4 // LRH through ICRC
	if stop > end {
		stop = end
	}
	switch at += rocev2.LRHLen; h[1] & 3 {
	case rocev2.LNHLocal:
		return l.transport(CarriesInfiniBand, at, stop)
	case rocev2.LNHGlobal:
		return l.globalRoute(CarriesInfiniBand, at, stop)
	}
	l.Protocol = "raw InfiniBand"
	return CarriesOther
}

func (l *Link) globalRoute(c Carries, at, end int) Carries {
	if !l.add(HeaderGRH, at, rocev2.GRHLen) {
		return CarriesMalformed
	}
	h := l.frame[at : at+rocev2.GRHLen]
	if h[6] != rocev2.NextHeaderIBA {
		l.Protocol = "GRH"
		return CarriesOther
	}
	l.grh = h
	l.Src, l.Dst = address16(h[8:24]), address16(h[24:40])
	at += rocev2.GRHLen
	return l.transport(c, at, min(end, at+int(be.Uint16(h[4:]))))
}

// address16 is an IPv6 address or GID; one that maps an IPv4 address is shown
// as that.
func address16(b []byte) netip.Addr { return netip.AddrFrom16([16]byte(b)).Unmap() }

func (l *Link) ethernet(at, end int) Carries {
	if !l.add(HeaderEthernet, at, 14) {
		return CarriesMalformed
	}
	return l.etherType(be.Uint16(l.frame[at+12:]), at+14, end)
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

func (l *Link) etherType(kind uint16, at, end int) Carries {
	for kind == etherVLAN || kind == etherQinQ || kind == etherQinQOld {
		if !l.add(HeaderVLAN, at, 4) {
			return CarriesMalformed
		}
		kind = be.Uint16(l.frame[at+2:])
		at += 4
	}
	switch kind {
	case etherIPv4:
		return l.ipv4(at, end)
	case etherIPv6:
		return l.ipv6(at, end)
	case rocev2.EtherTypeRoCEv1:
		return l.globalRoute(CarriesRoCEv1, at, end)
	case etherBridged:
		return l.ethernet(at, end)
	case etherARP:
		l.Protocol = "ARP"
	case etherLLDP:
		l.Protocol = "LLDP"
	default:
		l.Protocol = "Ethernet"
	}
	return CarriesOther
}

func (l *Link) ipAny(at, end int) Carries {
	if at >= len(l.frame) {
		return CarriesMalformed
	}
	if l.frame[at]>>4 == 6 {
		return l.ipv6(at, end)
	}
	return l.ipv4(at, end)
}

func (l *Link) ipv4(at, end int) Carries {
	if at+20 > len(l.frame) || l.frame[at]>>4 != 4 {
		return CarriesMalformed
	}
	size := int(l.frame[at]&15) * 4
	if size < 20 || !l.add(HeaderIPv4, at, size) {
		return CarriesMalformed
	}
	h := l.frame[at : at+size]
	l.ip, l.ipExtended = h, false
	l.Src, l.Dst = netip.AddrFrom4([4]byte(h[12:16])), netip.AddrFrom4([4]byte(h[16:20]))
	total := int(be.Uint16(h[2:]))
	if total == 0 { // segmentation was left to the interface
		total = end - at
	}
	if total < size {
		return CarriesMalformed
	}
	end = min(end, at+total)
	if fragment := be.Uint16(h[6:]); fragment&0x1fff != 0 {
		l.Protocol = "IPv4 fragment"
		return CarriesFragment
	}
	return l.ipPayload(h[9], at+size, end)
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

func (l *Link) ipv6(at, end int) Carries {
	if at+40 > len(l.frame) || l.frame[at]>>4 != 6 || !l.add(HeaderIPv6, at, 40) {
		return CarriesMalformed
	}
	h := l.frame[at : at+40]
	l.ip, l.ipExtended = h, false
	l.Src, l.Dst = netip.AddrFrom16([16]byte(h[8:24])), netip.AddrFrom16([16]byte(h[24:40]))
	if size := int(be.Uint16(h[4:])); size != 0 {
		end = min(end, at+40+size)
	}
	next := h[6]
	for at += 40; ; {
		size := 0
		switch next {
		case protoHopByHop, protoRouting, protoOptions, protoAH, protoFragment:
			if at+8 > len(l.frame) {
				return CarriesMalformed
			}
			if size = 8 + int(l.frame[at+1])*8; next == protoAH {
				size = 8 + int(l.frame[at+1])*4
			} else if next == protoFragment {
				size = 8
			}
		default:
			return l.ipPayload(next, at, end)
		}
		if !l.add(HeaderIPv6Extension, at, size) {
			return CarriesMalformed
		}
		l.ipExtended = true
		if next == protoFragment && be.Uint16(l.frame[at+2:])&0xfff8 != 0 {
			l.Protocol = "IPv6 fragment"
			return CarriesFragment
		}
		next = l.frame[at]
		at += size
	}
}

func (l *Link) ipPayload(proto uint8, at, end int) Carries {
	switch proto {
	case protoUDP:
		return l.datagram(at, end)
	case protoTCP:
		if at+20 > len(l.frame) {
			return CarriesMalformed
		}
		l.SrcPort, l.DstPort = be.Uint16(l.frame[at:]), be.Uint16(l.frame[at+2:])
		l.Protocol = "TCP"
		return l.transport(CarriesTCP, at, end)
	case protoGRE:
		return l.gre(at, end)
	case protoIPv4:
		return l.ipv4(at, end)
	case protoIPv6:
		return l.ipv6(at, end)
	case protoICMP, protoICMPv6:
		l.Protocol = "ICMP"
	default:
		l.Protocol = "IP"
	}
	return CarriesOther
}

const portVXLAN = 4789

// datagram reads a UDP header.
func (l *Link) datagram(at, end int) Carries {
	if !l.add(HeaderUDP, at, 8) {
		return CarriesMalformed
	}
	h := l.frame[at : at+8]
	l.SrcPort, l.DstPort = be.Uint16(h), be.Uint16(h[2:])
	l.Protocol = "UDP"
	size := int(be.Uint16(h[4:]))
	switch l.DstPort {
	case rocev2.UDPPort:
		if size < 8 {
			return CarriesMalformed
		}
		l.udp = h
		// A first fragment, or a length that lies, leaves less than this:
		// the transport then reads as cut.
		return l.transport(CarriesRoCEv2, at+8, at+size)
	case portVXLAN:
		if !l.add(HeaderVXLAN, at+8, 8) {
			return CarriesMalformed
		}
		return l.ethernet(at+16, end)
	}
	return CarriesOther
}

// gre reads a GRE header (RFC 2784, RFC 2890) with its optional words.
func (l *Link) gre(at, end int) Carries {
	if at+4 > len(l.frame) {
		return CarriesMalformed
	}
	flags, size := l.frame[at], 4
	for _, optional := range []byte{0x80, 0x20, 0x10} { // checksum, key, sequence
		if flags&optional != 0 {
			size += 4
		}
	}
	if !l.add(HeaderGRE, at, size) {
		return CarriesMalformed
	}
	return l.etherType(be.Uint16(l.frame[at+2:]), at+size, end)
}

// transport notes where the transport begins and ends.
func (l *Link) transport(c Carries, at, end int) Carries {
	if end < at || at > len(l.frame) {
		return CarriesMalformed
	}
	l.Offset, l.Length = at, end-at
	l.Transport = l.frame[at:min(end, len(l.frame))]
	return c
}

// CheckICRC holds the invariant CRC of a decoded transport packet against the
// headers below it.
func (l *Link) CheckICRC(p *rocev2.Packet) rocev2.ICRCResult {
	if !p.HasICRC {
		return rocev2.ICRCUnchecked
	}
	covered := l.Transport[:l.Length-rocev2.ICRCLen]
	var want uint32
	var ok bool
	switch l.Carries {
	case CarriesRoCEv2:
		if l.ipExtended {
			return rocev2.ICRCUnchecked
		}
		want, ok = l.icrc.RoCEv2(l.ip, l.udp, covered)
	case CarriesRoCEv1:
		want, ok = l.icrc.RoCEv1(l.grh, covered)
	case CarriesInfiniBand:
		want, ok = l.icrc.Native(l.lrh, l.grh, covered)
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
func (l *Link) CheckVCRC() rocev2.ICRCResult {
	end := l.Offset + l.Length
	if l.Carries != CarriesInfiniBand || len(l.frame) < end+rocev2.VCRCLen {
		return rocev2.ICRCUnchecked
	}
	first := l.Offset - len(l.grh) - len(l.lrh)
	if rocev2.VCRC(l.frame[first:end]) == binary.LittleEndian.Uint16(l.frame[end:]) {
		return rocev2.ICRCOk
	}
	return rocev2.ICRCBad
}
