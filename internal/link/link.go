// Package link decodes the headers of a frame below the RDMA transport: Ethernet, VLAN tags, Linux
// cooked captures, ERF, IP, tunnels (VXLAN, Geneve, GRE, ERSPAN, MPLS), or an InfiniBand link. It stops at the
// transport: UDP port 4791, RoCEv1, native InfiniBand, or TCP.
package link

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/rocev2"
)

// Carries is the kind of transport in a frame.
type Carries uint8

// The kinds of transport in a frame.
const (
	CarriesOther       Carries = iota // no transport that may carry RDMA
	CarriesRoCEv2                     // Transport is the packet from the BTH to the ICRC
	CarriesRoCEv1                     // the same, after a GRH
	CarriesInfiniBand                 // the same, after an LRH
	CarriesTCP                        // Transport is the TCP segment with its header
	CarriesUDP                        // Transport is the payload of a UDP datagram that is not RoCEv2
	CarriesFragment                   // an IP fragment other than the first
	CarriesMalformed                  // a header is truncated or has invalid lengths
	CarriesUnknownLink                // the link type is not supported
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
	HeaderGeneve
	HeaderGeneveOption
	HeaderGRE
	HeaderGREChecksum
	HeaderGREKey
	HeaderGRESequence
	HeaderERSPAN2
	HeaderERSPAN3
	HeaderERSPANPlatform
	HeaderMPLS
	HeaderControlWord
	HeaderLRH
	HeaderGRH
	HeaderUD
	HeaderIPoIB
	HeaderPFC
	HeaderPause

	HeaderKinds // number of kinds
)

var headerNames = [HeaderKinds]string{
	"ethernet", "vlan", "sll", "sll2", "erf", "erf_extension", "erf_ethernet", "ipv4", "ipv6", "ipv6_extension", "udp",
	"vxlan", "geneve", "geneve_option", "gre", "gre_checksum", "gre_key", "gre_sequence", "erspan", "erspan", "erspan_platform", "mpls", "control_word",
	"lrh", "grh", "ud", "ipoib", "pfc", "pause",
}

// String returns the name of the kind in JSON, such as "ethernet". Both types of ERSPAN header have one name.
func (k HeaderKind) String() string { return headerNames[k] }

// Header is the position of one header in a frame.
type Header struct {
	Kind   HeaderKind
	Offset int // offset in the frame in bytes
	Length int // in bytes
}

// maxHeaders limits the number of headers in a frame, including tags, tunnels and extension
// headers.
const maxHeaders = 24

// Decoder decodes the headers of a frame down to the InfiniBand transport or TCP. Slices in a
// Decoder alias the frame. The zero value is ready. Decoding into the same Decoder repeatedly
// allocates nothing.
type Decoder struct {
	Carries          Carries
	Src, Dst         netip.Addr // IP addresses or GIDs; invalid if the link has none
	SrcLID, DstLID   uint16     // LIDs of native InfiniBand
	SrcPort, DstPort uint16     // ports of UDP or TCP
	Transport        []byte     // captured bytes of the transport
	Offset           int        // offset of Transport in the frame
	Length           int        // length of the transport on the wire in bytes
	WireLength       int        // bytes of the packet on the wire, without the record header of ERF
	Captured         int        // captured bytes of the packet, without the record header of ERF
	Protocol         string     // name of a protocol that is not RDMA, such as "ARP" or "EtherType"
	Number           uint16     // number of a protocol whose name is not known, such as the EtherType; 0 if Protocol says it all
	Tunnels          []Tunnel   // UDP ports of tunnels; the caller sets it

	// PauseEnabled is the set of priorities that a priority flow control frame (IEEE 802.1Qbb), or a pause frame of Ethernet, is
	// about, priority 0 in bit 0, and PauseQuanta has their times in units of 512 bit times; 0 ends a pause. The set is empty for
	// all other frames. Paused is the set of priorities that the frame pauses.
	PauseEnabled, Paused uint8
	PauseQuanta          [8]uint16

	// SrcMAC is the source address of the innermost Ethernet header, or zero if there is none.
	SrcMAC [6]byte

	// ICRC is the buffer for computing invariant CRCs. Decoders of one goroutine may share it. If
	// it is nil, CheckICRC allocates it.
	ICRC *rocev2.ICRC

	ip, udp, grh, lrh []byte // headers that the ICRC covers
	ipEnd             int    // offset in the frame at which the IP packet ends according to its length field
	ipFirst           bool   // the packet is the first fragment of a datagram
	ipExtended        bool   // the packet has IPv6 extension headers, so its ICRC is not checked
	cut               bool   // a tunnel may have truncated the packet, so that it is longer than the tunnel's packet
	frame             []byte
	headers           [maxHeaders]Header
	depth             int
}

// TrafficClass returns the traffic class of the packet: a differentiated services code point, and in the lowest two bits
// whether routers can mark it, or have marked it, because of congestion (RFC 3168 s.5).
func (d *Decoder) TrafficClass() uint8 {
	switch h := d.ip; {
	case len(h) >= 20 && h[0]>>4 == 4:
		return h[1]
	case len(h) >= 40:
		return h[0]<<4 | h[1]>>4
	case len(d.grh) >= 40:
		return d.grh[0]<<4 | d.grh[1]>>4
	}
	return 0
}

// Congested reports whether a router marked the packet "congestion experienced" (RFC 3168 s.5).
func (d *Decoder) Congested() bool { return d.TrafficClass()&3 == 3 }

// Identification returns the Identification field of the innermost IPv4 header,
// or 0 if there is none.
func (d *Decoder) Identification() uint16 {
	if len(d.ip) < 20 || d.ip[0]>>4 != 4 {
		return 0
	}
	return be.Uint16(d.ip[4:])
}

// Truncated reports whether the frame, or a tunnel, has only the beginning of the packet: the switch that mirrored it left out the rest,
// or the rest is in other fragments of the tunnel's packet.
func (d *Decoder) Truncated() bool { return d.cut && len(d.Transport) < d.Length }

// Headers returns the decoded headers, outermost first.
func (d *Decoder) Headers() []Header { return d.headers[:d.depth] }

// AppendProtocol appends the name of a protocol, with its number if there is one: ports and small numbers as people know them,
// others as in the documents.
func AppendProtocol(b []byte, name string, number uint16) []byte {
	b = append(b, name...)
	switch {
	case strings.HasSuffix(name, " with protocol"): // the number of an EtherType
	case number == 0 && !strings.HasSuffix(name, " version") && !strings.HasSuffix(name, " protocol"):
		return b
	case number <= math.MaxUint8 || strings.HasSuffix(name, " port"):
		return strconv.AppendUint(append(b, ' '), uint64(number), 10)
	}
	return fmt.Appendf(b, " 0x%04x", number)
}

var be = binary.BigEndian

// Decode decodes the headers of a frame and returns what the frame carries. It never fails: for a
// frame that cannot be decoded it returns CarriesMalformed.
func (d *Decoder) Decode(f *capture.Frame) Carries {
	d.Src, d.Dst, d.SrcLID, d.DstLID, d.SrcPort, d.DstPort = netip.Addr{}, netip.Addr{}, 0, 0, 0, 0
	d.Transport, d.Offset, d.Length, d.Protocol, d.Number, d.cut = nil, 0, 0, "", 0, false
	d.ip, d.udp, d.grh, d.lrh = nil, nil, nil, nil
	d.frame, d.depth = f.Data, 0
	d.WireLength, d.Captured, d.Paused, d.PauseEnabled, d.SrcMAC = f.Length, len(f.Data), 0, 0, [6]byte{}
	d.Carries = d.link(f.LinkType, 0, f.Length)
	return d.Carries
}

// add appends a header of n bytes at offset at. It returns false if the frame has fewer bytes or
// too many headers.
func (d *Decoder) add(kind HeaderKind, at, n int) bool {
	if at+n > len(d.frame) || d.depth == maxHeaders {
		return false
	}
	d.headers[d.depth] = Header{kind, at, n}
	d.depth++
	return true
}

// link decodes the outermost header of the frame. In this and the following methods, at is an
// offset in the frame, and end is the offset on the wire at which the data ends.
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

// erf decodes an Extensible Record Format header of 16 bytes and its extension headers of 8 bytes.
// The top bit of the type, and of each extension header, tells if another extension header
// follows.
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
	if kind == 2 { // Ethernet follows one byte of offset and one byte of pad
		if !d.add(HeaderERFEthernet, at, 2) {
			return CarriesMalformed
		}
		at += 2
	}
	d.WireLength, d.Captured = wire, min(wire, len(d.frame)-at)
	switch kind {
	case 2:
		return d.ethernet(at, at+wire)
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
	stop := min(end, at+int(be.Uint16(h[4:])&0x7ff)*4) // from the LRH to the ICRC
	switch at += rocev2.LRHLen; h[1] & 3 {
	case rocev2.LNHLocal:
		return d.native(at, stop)
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
	stop := at + int(be.Uint16(h[4:]))
	switch {
	case d.cut:
	case c == CarriesInfiniBand:
		return d.native(at, min(end, stop))
	default:
		stop = min(end, stop)
	}
	return d.transport(c, at, stop)
}

// native stores the position of a transport packet of native InfiniBand, unless it is a datagram of IP over InfiniBand that carries TCP
// or UDP: that is decoded. Its ICRC is not verified, because TCP and UDP have checksums.
func (d *Decoder) native(at, end int) Carries {
	const udLen = rocev2.BTHLen + rocev2.DETHLen
	ip := at + udLen + ipoibLen
	if ip > len(d.frame) || !IsIPoIB(d.frame[at:], d.frame[at+udLen:]) {
		return d.transport(CarriesInfiniBand, at, end)
	}
	outer := *d
	if d.enter(); d.add(HeaderUD, at, udLen) && d.add(HeaderIPoIB, at+udLen, ipoibLen) {
		d.cut, d.SrcLID, d.DstLID = false, 0, 0
		switch c := d.etherType(be.Uint16(d.frame[at+udLen:]), ip, end-rocev2.ICRCLen); c {
		case CarriesTCP, CarriesUDP, CarriesFragment:
			return c
		}
	}
	*d = outer
	return d.transport(CarriesInfiniBand, at, end)
}

// InIPoIB reports whether the TCP segment or UDP datagram is inside a datagram of IP over InfiniBand.
func (d *Decoder) InIPoIB() bool {
	return d.lrh != nil && (d.Carries == CarriesTCP || d.Carries == CarriesUDP) // native InfiniBand carries neither in another way
}

const ipoibLen = 4

// IsIPoIB reports whether a packet with a BTH is a datagram of IP over InfiniBand (RFC 4391, section 6). The queue pairs of IPoIB have no
// fixed numbers, so the function checks the IPoIB header: a type that IPoIB carries, and two reserved bytes that are 0. Only native
// InfiniBand links carry IPoIB.
func IsIPoIB(bth, payload []byte) bool {
	const sendOnly = 0x64 // of UD
	if bth[0] != sendOnly || be.Uint32(bth[4:])&0xffffff <= 1 || len(payload) < ipoibLen {
		return false
	}
	switch be.Uint32(payload) {
	case etherIPv4 << 16, etherARP << 16, etherRARP << 16, etherIPv6 << 16:
		return true
	}
	return false
}

// address16 returns an IPv6 address or GID, or the IPv4 address that is mapped in it.
func address16(b []byte) netip.Addr { return netip.AddrFrom16([16]byte(b)).Unmap() }

func (d *Decoder) ethernet(at, end int) Carries {
	if !d.add(HeaderEthernet, at, 14) {
		return CarriesMalformed
	}
	d.SrcMAC = [6]byte(d.frame[at+6:])
	return d.etherType(be.Uint16(d.frame[at+12:]), at+14, end)
}

// The EtherTypes that are decoded or named.
const (
	etherIPv4    = 0x0800
	etherARP     = 0x0806
	etherRARP    = 0x8035
	etherVLAN    = 0x8100
	etherIPv6    = 0x86dd
	etherQinQ    = 0x88a8
	etherQinQOld = 0x9100
	etherBridged = 0x6558
	etherMPLS    = 0x8847
	etherMPLSUp  = 0x8848 // with labels that the upstream router assigned
	etherLLDP    = 0x88cc
	etherControl = 0x8808
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
	case etherMPLS, etherMPLSUp:
		return d.mpls(at, end)
	case etherARP:
		d.Protocol = "ARP"
	case etherLLDP:
		d.Protocol = "LLDP"
	case etherControl:
		d.macControl(at)
	default:
		if kind < leastEtherType {
			d.Protocol = "LLC"
			return CarriesOther
		}
		return d.unread(unknownEtherType, kind)
	}
	return CarriesOther
}

// leastEtherType is the least EtherType; smaller values are the length of an IEEE 802.3 frame.
const leastEtherType = 0x0600

// unknownEtherType is the Protocol of a frame whose EtherType is not decoded.
const unknownEtherType = "EtherType"

// The opcodes of MAC control frames that are decoded (IEEE 802.3, annex 31).
const (
	controlPause = 0x0001
	controlPFC   = 0x0101
)

// macControl decodes a MAC control frame. A pause frame pauses the link. A priority flow control frame
// has a vector of priorities, of which bit n enables the time of priority n. Times are in units of 512
// bit times; a time of 0 ends a pause.
func (d *Decoder) macControl(at int) {
	d.Protocol = "MAC control"
	if at+4 > len(d.frame) {
		return
	}
	switch be.Uint16(d.frame[at:]) {
	case controlPause:
		d.Protocol = "Ethernet pause"
		d.PauseEnabled = 0xff
		for i := range d.PauseQuanta {
			d.PauseQuanta[i] = be.Uint16(d.frame[at+2:])
		}
		if d.Paused = 0xff; d.PauseQuanta[0] == 0 {
			d.Protocol, d.Paused = "Ethernet pause end", 0
		}
		d.add(HeaderPause, at, 4)
	case controlPFC:
		d.Protocol = "PFC"
		if !d.add(HeaderPFC, at, 20) {
			return
		}
		d.PauseEnabled = d.frame[at+3]
		for i := range d.PauseQuanta {
			d.PauseQuanta[i] = be.Uint16(d.frame[at+4+2*i:])
			if d.PauseEnabled>>i&1 != 0 && d.PauseQuanta[i] != 0 {
				d.Paused |= 1 << i
			}
		}
		if d.Protocol = "PFC pause"; d.Paused == 0 {
			d.Protocol = "PFC pause end"
		}
	}
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
	case total == 0: // segmentation was left to the network adapter
	case total < size:
		return CarriesMalformed
	default:
		if d.ipEnd = at + total; d.ipEnd > end && !d.cut {
			right, known := d.IPv4Checksum()
			d.cut = right && known // Otherwise the length may be damaged.
		}
	}
	fragment := be.Uint16(h[6:])
	if fragment&0x1fff != 0 {
		d.Protocol = "IPv4 fragment"
		return CarriesFragment
	}
	d.ipFirst = fragment&0x2000 != 0
	return d.ipPayload(h[9], at+size, d.endOfIP(end))
}

// endOfIP returns the end of the IP packet whose header was decoded last, in data that ends at end. If a tunnel may have
// truncated the packet, its own length counts.
func (d *Decoder) endOfIP(end int) int {
	if d.cut && d.ipEnd != math.MaxInt {
		return d.ipEnd
	}
	return min(end, d.ipEnd)
}

// The IP protocols and extension headers that are decoded or named.
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
	}
	end = d.endOfIP(end)
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
	case protoICMP:
		d.Protocol = "ICMP"
	case protoICMPv6:
		d.Protocol = "ICMPv6"
	default:
		return d.unread("IP protocol", uint16(proto))
	}
	return CarriesOther
}

// datagram decodes a UDP header.
func (d *Decoder) datagram(at, end int) Carries {
	if !d.add(HeaderUDP, at, 8) {
		return CarriesMalformed
	}
	h := d.frame[at : at+8]
	d.SrcPort, d.DstPort = be.Uint16(h), be.Uint16(h[2:])
	d.Protocol = "UDP"
	size := int(be.Uint16(h[4:]))
	// Some implementations reply from port 4791 to the port from which the request came. The source
	// port by itself proves nothing, because any program may send from it, so the BTH is checked as well.
	toRoCE := d.DstPort == rocev2.UDPPort
	fromRoCE := d.SrcPort == rocev2.UDPPort && rocev2.Plausible(d.frame[at+8:], size-8)
	if c, is := d.udpTunnel(at+8, end); is {
		return c
	}
	if toRoCE || fromRoCE {
		if size < 8 {
			return CarriesMalformed
		}
		d.udp = h
		// The frame may have a trailer and an FCS after the IP packet, which are not part of the
		// transport, even if the UDP length includes them. A first fragment is shorter than the UDP
		// length and is treated as truncated.
		stop := max(min(at+size, d.ipEnd), at+8)
		carries := d.transport(CarriesRoCEv2, at+8, stop)
		if d.ipFirst {
			d.Length = size - 8
		}
		return carries
	}
	return d.plainDatagram(at+8, size)
}

// plainDatagram stores the position of a payload of a UDP datagram.
func (d *Decoder) plainDatagram(at, size int) Carries {
	if size < 8 || at > d.ipEnd {
		return CarriesOther
	}
	d.udp = d.frame[at-8 : at]
	carries := d.transport(CarriesUDP, at, max(min(at+size-8, d.ipEnd), at))
	if d.ipFirst {
		d.Length = size - 8
	}
	return carries
}

// transport stores the position of the transport.
func (d *Decoder) transport(c Carries, at, end int) Carries {
	if end < at || at > len(d.frame) {
		return CarriesMalformed
	}
	d.Offset, d.Length = at, end-at
	d.Transport = d.frame[at:min(end, len(d.frame))]
	return c
}

// CheckICRC verifies the invariant CRC of a decoded transport packet with the headers below it.
func (d *Decoder) CheckICRC(p *rocev2.Packet) rocev2.ICRCResult {
	if !p.HasICRC {
		return rocev2.ICRCUnchecked
	}
	want, ok := d.ComputeICRC()
	switch {
	case !ok:
		return rocev2.ICRCUnchecked
	case want == p.ICRC:
		return rocev2.ICRCOk
	}
	return rocev2.ICRCBad
}

// ComputeICRC computes the invariant CRC of the packet. It returns false if the packet was truncated, or if
// the headers below it are unknown.
func (d *Decoder) ComputeICRC() (crc uint32, ok bool) {
	end := d.Length - rocev2.ICRCLen
	if end < 0 || end > len(d.Transport) {
		return 0, false
	}
	if d.ICRC == nil {
		d.ICRC = new(rocev2.ICRC)
	}
	covered := d.Transport[:end]
	switch d.Carries {
	case CarriesRoCEv2:
		if d.ipExtended {
			return 0, false
		}
		return d.ICRC.RoCEv2(d.ip, d.udp, covered)
	case CarriesRoCEv1:
		return d.ICRC.RoCEv1(d.grh, covered)
	case CarriesInfiniBand:
		return d.ICRC.Native(d.lrh, d.grh, covered)
	}
	return 0, false
}

// CheckVCRC verifies the variant CRC at the end of a native InfiniBand packet. The result is
// ICRCUnchecked if the capture does not contain the VCRC.
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
