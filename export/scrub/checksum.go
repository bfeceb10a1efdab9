package scrub

import (
	"github.com/rdmadump/rdmadump/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// All checksums are computed again. A checksum that was right is right again, and
// one that was wrong is wrong in the same bits. A checksum that is absent, or that
// cannot be verified because the bytes it covers were not all captured, is kept.

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
			})
		}
	}
}

// sum writes an internet checksum; right returns the correct one of a frame.
func (w *frame) sum(at int, right func(frame []byte) uint16) {
	old := be.Uint16(w.in[at:])
	if old == 0 {
		return
	}
	wrong := old ^ right(w.in)
	if wrong == 0xffff && old == 0xffff { // 0 and 0xffff are the same number
		wrong = 0
	}
	be.PutUint16(w.out[at:], right(w.out)^wrong)
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

// partial writes a checksum that the adapter had to complete, and reports whether
// it is one: such a checksum covers only the pseudo-header, with or without the
// length.
func (w *frame) partial(at, from, to int, rest ...uint64) bool {
	old := be.Uint16(w.in[at:])
	for _, r := range rest {
		if old == link.Fold(link.AddWords(r, w.in[from:to])) {
			be.PutUint16(w.out[at:], link.Fold(link.AddWords(r, w.out[from:to])))
			return true
		}
	}
	return false
}

func (w *frame) ofUDP(headers []link.Header, at int) {
	from, to, whole := pseudo(headers, w.in)
	size := int(be.Uint16(w.in[at+4:]))
	end := at + size
	if to == 0 || be.Uint16(w.in[at+6:]) == 0 || w.partial(at+6, from, to, 17+uint64(size)) || !whole || size < 8 || end > len(w.in) {
		return
	}
	w.sum(at+6, func(b []byte) uint16 {
		sum := ^link.Fold(link.AddWords(link.AddWords(link.AddWords(17+uint64(size), b[from:to]), b[at:at+6]), b[at+8:end]))
		if sum == 0 { // 0 would mean that the datagram has no checksum
			sum = 0xffff
		}
		return sum
	})
}

func (w *frame) ofTCP(headers []link.Header) {
	t, d := &w.tcp, &w.link
	t.Src, t.Dst = d.Src, d.Dst
	from, to, _ := pseudo(headers, w.in)
	if to == 0 || !t.Decode(d.Transport, d.Length, d.Offset) {
		return
	}
	at, end := d.Offset, t.Offset+len(t.Payload)
	right, known := t.Checksum()
	if !right && w.partial(at+16, from, to, 6, 6+uint64(d.Length)) || !known {
		return
	}
	w.sum(at+16, func(b []byte) uint16 {
		return ^link.Fold(link.AddWords(link.AddWords(link.AddWords(6+uint64(d.Length), b[from:to]), b[at:at+16]), b[at+18:end]))
	})
	// A wrong checksum must not become one that an adapter had to complete.
	for i := uint16(1); !right && be.Uint16(w.in[at+16:]) != 0 && i < 16; i++ {
		stated := be.Uint16(w.out[at+16:])
		if stated != 0 && stated != link.Fold(link.AddWords(6, w.out[from:to])) && stated != link.Fold(link.AddWords(6+uint64(d.Length), w.out[from:to])) {
			break
		}
		be.PutUint16(w.out[at+16:], stated^i)
	}
}

// invariant writes the ICRC of a packet and, on an InfiniBand link, its VCRC.
func (w *frame) invariant(headers []link.Header) {
	d := &w.link
	end := d.Offset + d.Length
	if w.notRoCE || w.packet.Decode(d.Transport, d.Length) != nil || !w.packet.HasICRC {
		return
	}
	at := end - rocev2.ICRCLen
	w.keep(at, end)
	old, ok := w.right(headers, w.in, at)
	now, _ := w.right(headers, w.out, at)
	if ok {
		le.PutUint32(w.out[at:], le.Uint32(w.in[at:])^old^now)
	}
	if d.Carries == link.CarriesInfiniBand && end+rocev2.VCRCLen <= len(w.in) {
		for _, h := range headers {
			if h.Kind == link.HeaderLRH {
				le.PutUint16(w.out[end:], le.Uint16(w.in[end:])^rocev2.VCRC(w.in[h.Offset:end])^rocev2.VCRC(w.out[h.Offset:end]))
			}
		}
	}
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
