package capture

import (
	"errors"
	"fmt"
	"io"
)

// The magic numbers of classic pcap, read in the byte order of the writer.
const (
	pcapMicro    = 0xa1b2c3d4
	pcapNano     = 0xa1b23c4d
	pcapModified = 0xa1b2cd34 // Kuznetsov's variant: record headers have 8 more bytes
	pcapHeader   = 24
)

// pcapReader reads classic pcap (draft-ietf-opsawg-pcap): a header of 24 bytes (magic, version,
// time zone, accuracy, snapshot length, link type), then records. A record has a header of 16 bytes
// (seconds, fraction, captured length, length on the wire) and the captured data. All numbers are
// in the byte order of the writer.
type pcapReader struct {
	s        *stream
	order    order
	fraction int64 // nanoseconds per unit of the fraction
	record   int   // length of a record header in bytes
	link     LinkType
	origin   *Origin
}

// pcapOrder returns the byte order of a file header that starts with magic.
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
		return nil, truncatedAt("pcap header", pcapHeader, len(h), err)
	}
	r := &pcapReader{s: s, order: pcapOrder(h), fraction: 1000, record: 16}
	switch r.order.Uint32(h) {
	case pcapNano:
		r.fraction = 1
	case pcapModified:
		r.record = 24
	}
	if major := r.order.Uint16(h[4:]); major != 2 {
		return nil, fmt.Errorf("unsupported pcap version %d.%d, only version 2 is supported: %w", major, r.order.Uint16(h[6:]), ErrFormat)
	}
	// The upper half of the word tells if frames end with their FCS.
	r.link = LinkType(r.order.Uint32(h[20:]) & 0xffff)
	r.origin = &Origin{LinkType: r.link, Snap: r.order.Uint32(h[16:]), Digits: 6}
	if r.fraction == 1 || r.link == LinkERF {
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
		return truncatedAt("record header", r.record, len(h), err)
	}
	if [16]byte(h) == ([16]byte{}) { // A host that crashes leaves blocks of zeros at the end of a file.
		return errors.New("record header is all zeros")
	}
	captured := int64(r.order.Uint32(h[8:]))
	if captured > MaxFrame {
		return fmt.Errorf("record claims %d captured bytes, the limit is %d", captured, MaxFrame)
	}
	f.Time = int64(r.order.Uint32(h))*1e9 + int64(r.order.Uint32(h[4:]))*r.fraction
	f.Length = int(r.order.Uint32(h[12:]))
	f.LinkType, f.From, f.Options, f.Section = r.link, r.origin, nil, nil
	total := r.record + int(captured)
	if h, err = r.s.peek(total); err != nil {
		return truncatedAt("record", total, len(h), err)
	}
	f.Data = h[r.record:total:total]
	f.Length = max(f.Length, len(f.Data))
	f.setERFTime()
	r.s.discard(total)
	return nil
}
