package link

// UDPChecksum reports whether the checksum of the datagram is right (RFC 768). It is not known if the
// frame carries no UDP, if the capture truncated the datagram, or if its sender computed no checksum.
// A checksum that covers only the pseudo-header is not known either, because the adapter completes it
// after the capture point.
func (d *Decoder) UDPChecksum() (right, known bool) {
	if d.Carries != CarriesUDP || len(d.Transport) < d.Length || d.ipFirst {
		return false, false
	}
	stated := be.Uint16(d.udp[6:])
	src, dst := d.Src.As16(), d.Dst.As16()
	a, b := src[:], dst[:]
	if d.Src.Is4() {
		a, b = a[12:], b[12:]
	}
	pseudo := AddWords(AddWords(protoUDP+uint64(8+d.Length), a), b)
	if stated == 0 || stated == Fold(pseudo) {
		return false, false
	}
	return Fold(AddWords(AddWords(pseudo, d.udp), d.Transport)) == 0xffff, true
}
