package scrub

import (
	"slices"

	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// All checksums are computed again. A checksum that was right is right again, a
// checksum of 0 remains 0, and one that an adapter had to complete remains such a
// checksum. A checksum that was wrong is replaced by a pseudorandom wrong value, and so
// is one that cannot be verified because the bytes it covers were not all captured or
// are not known. The difference between a wrong checksum and the right one must not
// survive: with the difference, a reader could find the original addresses by trying them.

// checksums writes the checksums of a frame, the innermost first, because each
// checksum covers those inside.
func (w *frame) checksums() {
	headers := w.link.Headers()
	switch w.link.Carries {
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
		w.invariant(headers)
	case link.CarriesTCP:
		w.ofTCP(headers)
	}
	for i := len(headers) - 1; i >= 0; i-- {
		switch h := headers[i]; h.Kind {
		case link.HeaderUDP:
			w.ofUDP(headers[:i], h.Offset)
		case link.HeaderIPv4:
			at, end := h.Offset, h.Offset+h.Length
			w.sum(at+10, func(b []byte) uint16 {
				return ^link.Fold(link.AddWords(0, b[at:at+10]) + link.AddWords(0, b[at+12:end]))
			}, nil, w.in[at:at+12])
		}
	}
}

// substitute returns a pseudorandom checksum of width bytes that ok accepts. It depends
// on the key and on parts of the original frame, but not on addresses: equal frames
// have equal checksums, and checksums tell nothing about the addresses.
func (w *frame) substitute(class string, width int, ok func(uint32) bool, parts ...[]byte) uint32 {
	value := append(slices.Concat(parts...), byte(w.try))
	for salt := byte(0); ; salt++ {
		sum := w.s.key.hash("wrong "+class, append(value, salt))
		if v := be.Uint32(sum[:]) >> (32 - 8*width); ok(v) {
			return v
		}
	}
}

// sum writes an internet checksum. right returns the correct one of a frame, and is nil
// if it cannot be computed. unfinished lists values that an adapter would have to
// complete, which a wrong checksum must not become. The parts are those of [substitute].
func (w *frame) sum(at int, right func(frame []byte) uint16, unfinished []uint16, parts ...[]byte) {
	old, now := be.Uint16(w.in[at:]), uint16(0)
	if old == 0 {
		return
	}
	if right != nil {
		before := right(w.in)
		if now = right(w.out); old == before || old == 0xffff && before == 0 { // 0 and 0xffff are the same number
			be.PutUint16(w.out[at:], now)
			return
		}
	}
	wrong := func(v uint32) bool {
		return v != 0 && v != uint32(now) && (v != 0xffff || now != 0) && !slices.Contains(unfinished, uint16(v))
	}
	be.PutUint16(w.out[at:], uint16(w.substitute("internet checksum", 2, wrong, parts...)))
}

// pseudo returns the range of the addresses of the innermost IP header, which the
// checksums of UDP and TCP cover. whole is false if the packet is a fragment.
func pseudo(headers []link.Header, frame []byte) (from, to int, whole bool) {
	whole = true
	for i := len(headers) - 1; i >= 0; i-- {
		switch h := headers[i]; h.Kind {
		case link.HeaderIPv4:
			return h.Offset + 12, h.Offset + 20, whole && be.Uint16(frame[h.Offset+6:])&0x3fff == 0
		case link.HeaderIPv6:
			return h.Offset + 8, h.Offset + 40, whole
		case link.HeaderIPv6Extension:
			whole = false
		}
	}
	return 0, 0, false
}

// partial returns the checksums that an adapter has to complete: they cover only the
// pseudo-header with the addresses at [from, to), with or without the length. If the
// checksum at an offset is one, partial writes that of the scrubbed frame, and done is
// true.
func (w *frame) partial(at, from, to int, rest ...uint64) (all []uint16, done bool) {
	old := be.Uint16(w.in[at:])
	for _, r := range rest {
		sum := link.Fold(link.AddWords(r, w.out[from:to]))
		if old == link.Fold(link.AddWords(r, w.in[from:to])) {
			be.PutUint16(w.out[at:], sum)
			return nil, true
		}
		all = append(all, sum)
	}
	return all, false
}

// ofUDP writes the checksum of the UDP header at an offset.
func (w *frame) ofUDP(headers []link.Header, at int) {
	from, to, whole := pseudo(headers, w.in)
	size := int(be.Uint16(w.in[at+4:]))
	end := at + size
	if be.Uint16(w.in[at+6:]) == 0 {
		return
	}
	var unfinished []uint16
	if to > 0 {
		var done bool
		if unfinished, done = w.partial(at+6, from, to, 17+uint64(size)); done {
			return
		}
	}
	var right func([]byte) uint16
	if to > 0 && whole && size >= 8 && end <= len(w.in) {
		right = func(b []byte) uint16 {
			sum := ^link.Fold(link.AddWords(link.AddWords(link.AddWords(17+uint64(size), b[from:to]), b[at:at+6]), b[at+8:end]))
			if sum == 0 { // 0 would mean that the datagram has no checksum
				sum = 0xffff
			}
			return sum
		}
	}
	w.sum(at+6, right, unfinished, w.in[at:])
}

// ofTCP writes the checksum of a TCP segment.
func (w *frame) ofTCP(headers []link.Header) {
	t, d := &w.tcp, &w.link
	t.Src, t.Dst = d.Src, d.Dst
	from, to, _ := pseudo(headers, w.in)
	at := d.Offset
	if len(d.Transport) < 18 || !t.Decode(d.Transport, d.Length, d.Offset) && be.Uint16(w.out[at+16:]) != be.Uint16(w.in[at+16:]) {
		return // the checksum was not captured, or it was not kept because the header is none
	}
	var unfinished []uint16
	right, known := false, false
	if t.Decode(d.Transport, d.Length, d.Offset) {
		right, known = t.Checksum()
	}
	if to > 0 && !right {
		var done bool
		if unfinished, done = w.partial(at+16, from, to, 6, 6+uint64(d.Length)); done {
			return
		}
	}
	var compute func([]byte) uint16
	if to > 0 && known {
		end := t.Offset + len(t.Payload)
		compute = func(b []byte) uint16 {
			return ^link.Fold(link.AddWords(link.AddWords(link.AddWords(6+uint64(d.Length), b[from:to]), b[at:at+16]), b[at+18:end]))
		}
	}
	w.sum(at+16, compute, unfinished, d.Transport)
}

// invariant writes the ICRC of a packet and, on an InfiniBand link, its VCRC.
func (w *frame) invariant(headers []link.Header) {
	d := &w.link
	end := d.Offset + d.Length
	if w.notRoCE || w.packet.Decode(d.Transport, d.Length) != nil || !w.packet.HasICRC {
		return
	}
	at := end - rocev2.ICRCLen
	covered := slices.Clone(d.Transport[:at-d.Offset])
	covered[4] = 0 // switches change this byte, and the ICRC does not cover it
	old := le.Uint32(w.in[at:])
	before, known := w.right(headers, w.in, at)
	now, _ := w.right(headers, w.out, at)
	switch {
	case known && old == before:
		old = now
	case old != 0:
		wrong := func(v uint32) bool { return v != 0 && (!known || v != now) }
		old = w.substitute("ICRC", rocev2.ICRCLen, wrong, covered, w.in[at:end])
	}
	le.PutUint32(w.out[at:], old)
	if d.Carries == link.CarriesInfiniBand && end+rocev2.VCRCLen <= len(w.in) {
		for _, h := range headers {
			if h.Kind == link.HeaderLRH {
				w.variant(h.Offset, end, covered)
			}
		}
	}
}

// variant writes the VCRC at an offset, which covers the bytes from the LRH on.
func (w *frame) variant(lrh, at int, covered []byte) {
	old, now := le.Uint16(w.in[at:]), rocev2.VCRC(w.out[lrh:at])
	switch {
	case old == rocev2.VCRC(w.in[lrh:at]):
		old = now
	case old != 0:
		wrong := func(v uint32) bool { return v != 0 && v != uint32(now) }
		old = uint16(w.substitute("VCRC", rocev2.VCRCLen, wrong, covered, w.in[at:at+rocev2.VCRCLen]))
	}
	le.PutUint16(w.out[at:], old)
}

// right returns the correct value of the ICRC at an offset of a frame. ok is false
// if the headers that the ICRC covers are not known.
func (w *frame) right(headers []link.Header, frame []byte, at int) (crc uint32, ok bool) {
	var lrh, grh, ip, udp []byte // the innermost header of each kind
	for _, h := range headers {
		switch b := frame[h.Offset : h.Offset+h.Length]; h.Kind {
		case link.HeaderLRH:
			lrh = b
		case link.HeaderGRH:
			grh = b
		case link.HeaderIPv4, link.HeaderIPv6:
			ip = b
		case link.HeaderIPv6Extension:
			ip = nil
		case link.HeaderUDP:
			udp = b
		}
	}
	covered := frame[w.link.Offset:at]
	switch w.link.Carries {
	case link.CarriesRoCEv1:
		return w.icrc.RoCEv1(grh, covered)
	case link.CarriesInfiniBand:
		return w.icrc.Native(lrh, grh, covered)
	}
	return w.icrc.RoCEv2(ip, udp, covered)
}
