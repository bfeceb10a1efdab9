package capture

import (
	"fmt"
	"io"
)

// The magic numbers of classic pcap, as a reader of the writer's byte order
// sees them.
const (
	pcapMicro    = 0xa1b2c3d4
	pcapNano     = 0xa1b23c4d
	pcapModified = 0xa1b2cd34 // Kuznetsov's: records with 8 more bytes of header
	pcapHeader   = 24
)

// pcapReader reads classic pcap (draft-ietf-opsawg-pcap): a header of 24 bytes
// (magic, version, zone, accuracy, snapshot length, link type), then records of
// 16 bytes (seconds, fraction, captured, length on the wire) and data, all in
// the writer's byte order.
type pcapReader struct {
	s        *stream
	order    order
	fraction int64 // nanoseconds a unit of the fraction
	record   int   // bytes of a record's header
	link     LinkType
	origin   *Origin
}

// pcapOrder is the byte order of a header that starts with magic.
func pcapOrder(magic []byte) order {
	for _, o := range []order{littleEndian, bigEndian} {
		switch o.Uint32(magic) {
		case pcapMicro, pcapNano, pcapModified:
			return o
		}
	}
	return unknownOrder
}

func newPcapReader(s *stream) (*pcapReader, error) {
	h, err := s.peek(pcapHeader)
	if err != nil {
		return nil, cutShort("pcap header", pcapHeader, len(h), err)
	}
	r := &pcapReader{s: s, order: pcapOrder(h), fraction: 1000, record: 16}
	switch r.order.Uint32(h) {
	case pcapNano:
		r.fraction = 1
	case pcapModified:
		r.record = 24
	}
	if major := r.order.Uint16(h[4:]); major != 2 {
		return nil, fmt.Errorf("pcap version %d.%d, only 2 is known: %w", major, r.order.Uint16(h[6:]), ErrFormat)
	}
	// The upper half of the word tells whether frames end with their FCS.
	r.link = LinkType(r.order.Uint32(h[20:]) & 0xffff)
	r.origin = &Origin{LinkType: r.link, Snap: r.order.Uint32(h[16:]), Digits: 6}
	if r.fraction == 1 {
		r.origin.Digits = 9
	}
	s.discard(pcapHeader)
	return r, nil
}

func (r *pcapReader) next(f *Frame) error {
	h, err := r.s.peek(r.record)
	if err != nil {
		if err == io.EOF && len(h) == 0 {
			return io.EOF
		}
		return cutShort("record header", r.record, len(h), err)
	}
	captured := int64(r.order.Uint32(h[8:]))
	if captured > MaxFrame {
		return fmt.Errorf("record claims %d captured bytes, the limit is %d", captured, MaxFrame)
	}
	f.Time = int64(r.order.Uint32(h))*1e9 + int64(r.order.Uint32(h[4:]))*r.fraction
	f.Length = int(r.order.Uint32(h[12:]))
	f.LinkType, f.From = r.link, r.origin
	total := r.record + int(captured)
	if h, err = r.s.peek(total); err != nil {
		return cutShort("record", total, len(h), err)
	}
	f.Data = h[r.record:total:total]
	f.Length = max(f.Length, len(f.Data))
	r.s.discard(total)
	return nil
}
