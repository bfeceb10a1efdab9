package link

import (
	"math"
	"net/netip"

	"github.com/rdmadump/rdmadump/rocev2"
)

// Tunnels: VXLAN (RFC 7348), Geneve (RFC 8926), GRE (RFC 2784, RFC 2890), ERSPAN in GRE (draft-foschiano-erspan),
// and MPLS (RFC 3032) with Ethernet pseudowires (RFC 4448). Switches mirror packets through most of them.

// Tunnel is the destination port of UDP datagrams that carry a tunnel, in addition to the ports that are assigned.
type Tunnel struct {
	Port   uint16
	Geneve bool // otherwise VXLAN
}

// The UDP ports of tunnels.
const (
	portVXLAN      = 4789
	portVXLANLinux = 8472 // of Linux before the assignment, and still of flannel and Cilium; assigned to something else
	portGeneve     = 6081
)

// udpTunnel decodes what a UDP datagram carries at an offset, if that is a tunnel.
func (d *Decoder) udpTunnel(at, end int) (c Carries, is bool) {
	for i := range d.Tunnels {
		if t := &d.Tunnels[i]; t.Port == d.DstPort {
			if t.Geneve {
				return d.geneve(at, end), true
			}
			return d.vxlan(at, end), true
		}
	}
	switch d.DstPort {
	case portVXLAN:
		return d.vxlan(at, end), true
	case portVXLANLinux:
		if d.plausibleVXLAN(at) {
			return d.vxlan(at, end), true
		}
	case portGeneve:
		return d.geneve(at, end), true
	case rocev2.UDPPort: // no tunnel
	default:
		if d.plausibleVXLAN(at) { // The caller may name the port.
			d.Protocol, d.Number = VXLANPort, d.DstPort
		}
	}
	return 0, false
}

// enter notes that a tunnel begins, so that the addresses and ports so far are those of its ends, and that the packet inside may
// be longer than the tunnel's packet.
func (d *Decoder) enter() {
	d.cut = true // A switch may mirror only the beginning of a packet, or the rest is in other fragments.
	d.Src, d.Dst, d.SrcPort, d.DstPort, d.Protocol = netip.Addr{}, netip.Addr{}, 0, 0, ""
	d.ip, d.ipFirst, d.ipExtended, d.ipEnd = nil, false, false, math.MaxInt
}

// VXLANPort is the Protocol of datagrams to a port that is not known, whose content may be VXLAN.
const VXLANPort = "VXLAN on UDP port"

const vxlanLen = 8

func (d *Decoder) vxlan(at, end int) Carries {
	if !d.add(HeaderVXLAN, at, vxlanLen) {
		return CarriesMalformed
	}
	d.enter()
	return d.ethernet(at+vxlanLen, end)
}

// plausibleVXLAN reports whether a datagram is VXLAN by its content: only the flag of a valid network identifier is
// set, and those of a group policy (draft-smith-vxlan-group-policy), all reserved bits are 0, and an Ethernet frame follows.
func (d *Decoder) plausibleVXLAN(at int) bool {
	if at+vxlanLen > len(d.frame) {
		return false
	}
	h := d.frame[at : at+vxlanLen]
	const groupPolicy = 0x80<<24 | 0x48<<16 | 0xffff // the flags G, D and A, and the group
	flags := be.Uint32(h)
	if flags>>31 == 1 {
		flags &^= groupPolicy
	}
	return flags == 0x08000000 && h[7] == 0 && d.plausibleEthernet(at+vxlanLen)
}

// The lengths in a Geneve header, in bytes.
const (
	geneveLen       = 8
	geneveOptionLen = 4 // of an option without data
)

// maxOptions limits how many options of a Geneve header are listed.
const maxOptions = 6

// geneve decodes a Geneve header with its options. A packet of another version is not opened, nor one whose options
// are longer than the datagram.
func (d *Decoder) geneve(at, end int) Carries {
	if at+geneveLen > len(d.frame) {
		return CarriesMalformed
	}
	h := d.frame[at : at+geneveLen]
	if version := h[0] >> 6; version != 0 {
		return d.unread("Geneve version", uint16(version))
	}
	payload := at + geneveLen + int(h[0]&0x3f)*4
	if payload > end || !d.add(HeaderGeneve, at, geneveLen) {
		return CarriesMalformed
	}
	at += geneveLen
	for i := 0; i < maxOptions && at < payload; i++ {
		if at+geneveOptionLen > len(d.frame) {
			return CarriesMalformed
		}
		size := geneveOptionLen + int(d.frame[at+3]&0x1f)*4
		if at+size > payload {
			break // The length of the header says where the packet begins.
		}
		if !d.add(HeaderGeneveOption, at, size) {
			return CarriesMalformed
		}
		at += size
	}
	d.enter()
	return d.tunneled("Geneve with protocol", be.Uint16(h[2:]), payload, end)
}

// tunneled decodes a packet in a tunnel by its EtherType. Name becomes the Protocol if this type is not decoded. Numbers below the
// least EtherType are no lengths of LLC frames there.
func (d *Decoder) tunneled(name string, kind uint16, at, end int) Carries {
	if kind < leastEtherType {
		return d.unread(name, kind)
	}
	c := d.etherType(kind, at, end)
	if c == CarriesOther && d.Number == kind && d.Protocol == unknownEtherType {
		d.Protocol = name
	}
	return c
}

// unread says which protocol the frame carries, if it is not decoded.
func (d *Decoder) unread(name string, number uint16) Carries {
	d.Protocol, d.Number = name, number
	return CarriesOther
}

// The protocols in GRE that are no EtherTypes of other headers.
const (
	greERSPAN  = 0x88be // types I and II
	greERSPAN3 = 0x22eb
)

// The flags in the first byte of a GRE header.
const (
	greChecksum = 0x80
	greRouting  = 0x40 // of RFC 1701, deprecated
	greKey      = 0x20
	greSequence = 0x10
)

// gre decodes a GRE header with its optional words.
func (d *Decoder) gre(at, end int) Carries {
	if !d.add(HeaderGRE, at, 4) {
		return CarriesMalformed
	}
	flags, version, protocol := d.frame[at], d.frame[at+1]&7, be.Uint16(d.frame[at+2:])
	if version != 0 || flags&greRouting != 0 {
		return d.unread("GRE with protocol", protocol)
	}
	at += 4
	for _, word := range [...]struct {
		flag byte
		kind HeaderKind
	}{{greChecksum, HeaderGREChecksum}, {greKey, HeaderGREKey}, {greSequence, HeaderGRESequence}} {
		if flags&word.flag != 0 {
			if !d.add(word.kind, at, 4) {
				return CarriesMalformed
			}
			at += 4
		}
	}
	d.enter()
	if protocol == greERSPAN || protocol == greERSPAN3 {
		return d.erspan(at, end, flags&greSequence != 0 || protocol == greERSPAN3)
	}
	return d.tunneled("GRE with protocol", protocol, at, end)
}

// The lengths of ERSPAN headers in bytes.
const (
	erspan2Len     = 8
	erspan3Len     = 12
	erspanPlatform = 8 // the optional subheader of type III
)

// erspan decodes a mirrored packet and the ERSPAN header before it. Type I has no header; its GRE header has no
// sequence number. The version in the header is 1 for type II, and 2 for type III.
func (d *Decoder) erspan(at, end int, header bool) Carries {
	if at >= len(d.frame) {
		return CarriesMalformed
	}
	version := d.frame[at] >> 4
	if !header {
		if d.plausibleEthernet(at) || !d.plausibleEthernet(at+erspan2Len) {
			return d.ethernet(at, end)
		}
		if version != 1 {
			return d.unread("ERSPAN version", uint16(version))
		}
	}
	switch version {
	case 1:
		if !d.add(HeaderERSPAN2, at, erspan2Len) {
			return CarriesMalformed
		}
		return d.ethernet(at+erspan2Len, end)
	case 2:
		if !d.add(HeaderERSPAN3, at, erspan3Len) {
			return CarriesMalformed
		}
		word := be.Uint16(d.frame[at+10:])
		at += erspan3Len
		if word&1 != 0 {
			if !d.add(HeaderERSPANPlatform, at, erspanPlatform) {
				return CarriesMalformed
			}
			at += erspanPlatform
		}
		switch kind := word >> 10 & 0x1f; kind { // the type of the mirrored frame
		case 0:
			return d.ethernet(at, end)
		case 2:
			return d.ipAny(at, end)
		default:
			return d.unread("ERSPAN with frame type", kind)
		}
	}
	if d.plausibleEthernet(at) { // type I with a sequence number
		return d.ethernet(at, end)
	}
	return d.unread("ERSPAN version", uint16(version))
}

const mplsLen = 4

// mpls decodes a stack of labels and the packet after it. Labels do not say what they carry: an IP packet is known by its
// header, and an Ethernet frame may follow a control word.
func (d *Decoder) mpls(at, end int) Carries {
	for bottom := false; !bottom; at += mplsLen {
		if !d.add(HeaderMPLS, at, mplsLen) {
			return CarriesMalformed
		}
		bottom = d.frame[at+2]&1 != 0
	}
	if at >= len(d.frame) {
		return CarriesMalformed
	}
	switch version := d.frame[at] >> 4; { // The address of an Ethernet header may begin like any of them.
	case version == 4 && d.plausibleIP(etherIPv4, at):
		return d.ipv4(at, end)
	case version == 6 && d.plausibleIP(etherIPv6, at) && !d.plausibleEthernet(at):
		return d.ipv6(at, end)
	case version == 0 && d.plausibleEthernet(at+mplsLen):
		if !d.add(HeaderControlWord, at, mplsLen) {
			return CarriesMalformed
		}
		return d.ethernet(at+mplsLen, end)
	case d.plausibleEthernet(at):
		return d.ethernet(at, end)
	}
	d.Protocol = "MPLS"
	return CarriesOther
}

// plausibleEthernet reports whether an Ethernet header at an offset is followed by what its EtherType says.
func (d *Decoder) plausibleEthernet(at int) bool {
	const tags = 3
	at += 12
	for range 1 + tags {
		if at+2 > len(d.frame) {
			return false
		}
		switch kind := be.Uint16(d.frame[at:]); kind {
		case etherVLAN, etherQinQ, etherQinQOld:
			at += 4
		default:
			return d.plausibleIP(kind, at+2)
		}
	}
	return false
}

// plausibleIP reports whether the header at an offset is one of the protocol of an EtherType: of IP, a GRH, an ARP
// packet, or MPLS labels. An IPv4 header must have the right checksum, or none.
func (d *Decoder) plausibleIP(kind uint16, at int) bool {
	if at+20 > len(d.frame) {
		return false
	}
	h := d.frame[at:]
	switch kind {
	case etherIPv4:
		size, total := int(h[0]&15)*4, int(be.Uint16(h[2:]))
		return h[0]>>4 == 4 && size >= 20 && size <= len(h) && (total == 0 || total >= size) &&
			(be.Uint16(h[10:]) == 0 || Fold(AddWords(0, h[:size])) == 0xffff)
	case etherIPv6:
		return h[0]>>4 == 6 && len(h) >= 40
	case rocev2.EtherTypeRoCEv1:
		return h[0]>>4 == 6 && h[6] == rocev2.NextHeaderIBA
	case etherMPLS, etherMPLSUp:
		const labels = 5
		for ; len(h) >= mplsLen && len(d.frame)-at-len(h) < labels*mplsLen; h = h[mplsLen:] {
			if h[2]&1 != 0 {
				return true
			}
		}
	case etherARP:
		return be.Uint32(h) == 0x00010800 && be.Uint16(h[4:]) == 0x0604
	}
	return false
}
