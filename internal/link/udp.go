package link

import "math"

// UDPChecksum reports whether the checksum of the datagram is right (RFC 768). It is not known if the
// frame carries no UDP, if the capture truncated the datagram, or if its sender computed no checksum.
// A checksum that covers only the pseudo-header is not known either, because the adapter completes it
// after the capture point.
func (d *Decoder) UDPChecksum() (right, known bool) {
	if d.Carries != CarriesUDP && d.Carries != CarriesRoCEv2 || len(d.Transport) < d.Length || d.ipFirst {
		return false, false
	}
	stated := d.StatedUDPChecksum()
	if stated == 0 {
		return false, false
	}
	src, dst := d.Src.As16(), d.Dst.As16()
	a, b := src[:], dst[:]
	if d.Src.Is4() {
		a, b = a[12:], b[12:]
	}
	pseudo := AddWords(AddWords(protoUDP+uint64(8+d.Length), a), b)
	if stated == Fold(pseudo) {
		return false, false
	}
	return Fold(AddWords(AddWords(pseudo, d.udp), d.Transport)) == 0xffff, true
}

// StatedUDPChecksum returns the checksum in the UDP header, or 0 if there is none.
func (d *Decoder) StatedUDPChecksum() uint16 {
	if len(d.udp) < 8 {
		return 0
	}
	return be.Uint16(d.udp[6:])
}

// IPv4Checksum reports whether the checksum of the innermost IPv4 header is right (RFC 791). It is not known if there is no such
// header, or if it is zero, because the adapter computes it after the capture point.
func (d *Decoder) IPv4Checksum() (right, known bool) {
	if len(d.ip) < 20 || d.ip[0]>>4 != 4 || be.Uint16(d.ip[10:]) == 0 {
		return false, false
	}
	return Fold(AddWords(0, d.ip)) == 0xffff, true
}

// LengthsDisagree reports whether the length of a datagram is not that of the IP packet that carries it.
func (d *Decoder) LengthsDisagree() bool {
	return len(d.udp) >= 8 && !d.ipFirst && d.ipEnd != math.MaxInt && d.Offset-8+int(be.Uint16(d.udp[4:])) != d.ipEnd
}
