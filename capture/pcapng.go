package capture

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The pcapng block types that are decoded (draft-ietf-opsawg-pcapng, section 4).
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacket    = 2 // obsolete, but still found in files
	blockSimple    = 3
	blockNames     = 4
	blockStats     = 5
	blockEnhanced  = 6
)

// The options that are decoded, and limits in bytes.
const (
	optEnd           = 0
	optComment       = 1
	optApplication   = 4 // option of a section
	optIfName        = 2
	optIfDescription = 3
	optIfTSResol     = 9
	optIfTimeZone    = 10 // of the times, which are UTC here
	optIfTSOffset    = 14
	optIsbIfDrop     = 5
	optIsbOSDrop     = 7
	optEpbFlags      = 2
	optEpbDrops      = 4 // since the packet before
	sectionMagic     = 0x1a2b3c4d
	maxInterfaces    = 1 << 16
	maxBlock         = MaxFrame + 1<<16 // a packet block: frame and options
	blockOverhead    = 12               // type, length, and the length again
	enhancedHeader   = 20
)

// pcapngReader reads pcapng. Each section has its own byte order and its own interfaces. Each
// interface has a link type, a time resolution and a time offset.
type pcapngReader struct {
	s          *stream
	order      order
	current    *Section
	interfaces []ngInterface
	described  int    // number of interfaces of all sections so far
	last       int64  // time of the last packet, used for blocks without a time
	drops      uint64 // packets that were dropped, as counters say
}

type ngInterface struct {
	link  LinkType
	snap  uint32
	clock clock
	drops uint64 // the higher one of what packets and statistics count
	lost  uint64 // what packets count
	from  *Origin
}

func newPcapngReader(s *stream) (*pcapngReader, error) {
	r := &pcapngReader{s: s}
	h, err := s.peek(12)
	if err != nil {
		return nil, truncatedAt("pcapng section header", 28, len(h), err)
	}
	if sectionOrder(h[8:]) == unknownOrder {
		return nil, fmt.Errorf("pcapng section header has byte-order magic %x: %w", h[8:12], ErrFormat)
	}
	return r, nil
}

func sectionOrder(magic []byte) order {
	for _, o := range []order{littleEndian, bigEndian} {
		if o.Uint32(magic) == sectionMagic {
			return o
		}
	}
	return unknownOrder
}

func (r *pcapngReader) next(f *Frame) error {
	for {
		h, err := r.s.peek(8)
		if err != nil {
			if err == io.EOF && len(h) == 0 {
				return io.EOF
			}
			return truncatedAt("block header", 8, len(h), err)
		}
		if binary.LittleEndian.Uint32(h) == blockSection { // reads the same in both byte orders
			if err := r.section(); err != nil {
				return err
			}
			continue
		}
		kind, size := r.order.Uint32(h), r.order.Uint32(h[4:])
		if size < blockOverhead || size%4 != 0 {
			return fmt.Errorf("block of type %d claims %d bytes", kind, size)
		}
		switch {
		case kind == blockInterface, kind == blockStats, kind == blockEnhanced, kind == blockSimple, kind == blockPacket, kind == blockNames && size <= maxBlock:
		default:
			if !r.s.available(int64(size)) {
				return errNotYet
			}
			if err := r.s.skip(int64(size)); err != nil {
				return truncatedAt(blockName(kind), int(size), 0, err)
			}
			continue
		}
		if size > maxBlock {
			return fmt.Errorf("block of type %d claims %d bytes, the limit is %d", kind, size, maxBlock)
		}
		block, err := r.s.peek(int(size))
		switch {
		case err == errNotYet:
			return err
		case err != nil:
			return truncatedAt(blockName(kind), int(size), len(block), err)
		}
		if trailer := r.order.Uint32(block[size-4:]); trailer != size {
			return fmt.Errorf("block of type %d has length %d at its start and %d at its end", kind, size, trailer)
		}
		found, err := r.block(f, kind, block[8:size-4])
		if err != nil {
			return err
		}
		r.s.discard(int(size))
		if found {
			return nil
		}
	}
}

// interfacesAhead returns the number of interfaces that the input describes before its first packet. It
// consumes nothing.
func (r *pcapngReader) interfacesAhead() (n int) {
	o := r.order
	for at := 0; at < maxPeek-blockOverhead; {
		h, err := r.s.peek(at + blockOverhead)
		if err != nil {
			return n
		}
		if h = h[at:]; binary.LittleEndian.Uint32(h) == blockSection {
			o = sectionOrder(h[8:])
		}
		size := o.Uint32(h[4:])
		switch o.Uint32(h) {
		case blockInterface:
			n++
		case blockPacket, blockSimple, blockEnhanced:
			return n
		}
		if size < blockOverhead || size > maxBlock {
			return n
		}
		at += int(size)
	}
	return n
}

func blockName(kind uint32) string { return fmt.Sprintf("block of type %d", kind) }

// section starts a new section and discards the interfaces of the last one.
func (r *pcapngReader) section() error {
	h, err := r.s.peek(12)
	if err != nil {
		return truncatedAt("section header", 12, len(h), err)
	}
	order := sectionOrder(h[8:])
	if order == unknownOrder {
		return fmt.Errorf("section header has byte-order magic %x", h[8:12])
	}
	size := order.Uint32(h[4:])
	if size < 28 || size%4 != 0 {
		return fmt.Errorf("section header claims %d bytes", size)
	}
	if !r.s.available(int64(size)) {
		return errNotYet
	}
	r.order, r.interfaces, r.current = order, r.interfaces[:0], &Section{order: order}
	if size > maxBlock {
		err = r.s.skip(int64(size))
	} else if h, err = r.s.peek(int(size)); err == nil {
		options, _ := convert(nil, h[24:size-4], order, nil)
		r.current.Options = string(options)
		r.s.discard(int(size))
	}
	if err != nil {
		return truncatedAt("section header", int(size), 0, err)
	}
	return nil
}

// block decodes the body of one block. It reports whether the block contained a frame.
func (r *pcapngReader) block(f *Frame, kind uint32, body []byte) (bool, error) {
	need := enhancedHeader
	switch kind {
	case blockInterface:
		need = 8
	case blockStats:
		need = 12
	case blockSimple:
		need = 4
	case blockNames:
		r.current.add(body)
		return false, nil
	}
	if len(body) < need {
		return false, fmt.Errorf("block of type %d needs %d bytes of body, has %d", kind, need, len(body))
	}
	switch kind {
	case blockInterface:
		if len(r.interfaces) == maxInterfaces {
			return false, fmt.Errorf("more than %d interfaces in one section", maxInterfaces)
		}
		r.interfaces = append(r.interfaces, r.describe(body))
		return false, nil
	case blockStats:
		if id := r.order.Uint32(body); int(id) < len(r.interfaces) {
			dropped := uint64(0) // since the start of the capture
			r.eachOption(body[12:], func(code uint16, value []byte) {
				if code == optIsbIfDrop || code == optIsbOSDrop {
					dropped += r.count(value)
				}
			})
			r.dropped(&r.interfaces[id], dropped)
		}
		return false, nil
	}
	id, ticks, length, data := uint32(0), uint64(0), uint32(0), body[4:]
	f.Options, f.Section, f.Heading = nil, r.current, HeadingUnknown
	switch kind {
	case blockEnhanced, blockPacket:
		id = r.order.Uint32(body)
		if kind == blockPacket {
			id = uint32(r.order.Uint16(body))
		}
		ticks = uint64(r.order.Uint32(body[4:]))<<32 | uint64(r.order.Uint32(body[8:]))
		captured := r.order.Uint32(body[12:])
		length, data = r.order.Uint32(body[16:]), body[enhancedHeader:]
		if int64(captured) > int64(len(data)) {
			return false, fmt.Errorf("packet block claims %d captured bytes, has %d", captured, len(data))
		}
		if end := (int(captured) + 3) &^ 3; end < len(data) {
			f.Options = data[end:len(data):len(data)]
			dropped := uint64(0)
			if f.Heading, dropped = r.heading(f.Options); dropped > 0 && int64(id) < int64(len(r.interfaces)) {
				i := &r.interfaces[id]
				i.lost = min(i.lost+dropped, maxDrops)
				r.dropped(i, i.lost)
			}
		}
		data = data[:captured]
	case blockSimple:
		length = r.order.Uint32(body)
	}
	if int64(id) >= int64(len(r.interfaces)) {
		return false, fmt.Errorf("packet block names interface %d, the section has %d", id, len(r.interfaces))
	}
	i := &r.interfaces[id]
	if kind == blockSimple { // the block has neither a time nor a captured length
		captured := length
		if i.snap != 0 {
			captured = min(captured, i.snap)
		}
		data = data[:min(int64(captured), int64(len(data)))]
	} else {
		r.last = i.clock.nanoseconds(ticks)
	}
	if len(data) > MaxFrame {
		return false, fmt.Errorf("packet block claims %d captured bytes, the limit is %d", len(data), MaxFrame)
	}
	f.From = i.from
	f.Time, f.LinkType, f.Data, f.Length = r.last, i.link, data[:len(data):len(data)], max(int(length), len(data))
	f.setERFTime()
	return true, nil
}

// describe decodes an interface description block.
func (r *pcapngReader) describe(body []byte) ngInterface {
	i := ngInterface{link: LinkType(r.order.Uint16(body)), snap: r.order.Uint32(body[4:]), clock: clock{digits: 6}}
	i.from = &Origin{LinkType: i.link, Snap: i.snap, Index: r.described}
	r.described++
	var others []byte
	r.eachOption(body[8:], func(code uint16, value []byte) {
		switch {
		case code == optIfName:
			i.from.Name = string(value)
		case code == optIfDescription:
			i.from.Description = string(value)
		case code == optIfTSResol && len(value) >= 1:
			i.clock.binary, i.clock.digits = value[0]&0x80 != 0, value[0]&0x7f
		case code == optIfTSOffset && len(value) >= 8:
			i.clock.offset = int64(r.order.Uint64(value))
		case code != optIfTSResol && code != optIfTSOffset && code != optIfTimeZone:
			others = r.order.appendOption(others, code, value, interfaceNumbers)
		}
	})
	i.from.Options, i.from.Digits = string(others), 9
	if !i.clock.binary && i.link != LinkERF {
		i.from.Digits = min(i.clock.digits, 9)
	}
	return i
}

// maxDrops is more packets than an interface can have dropped.
const maxDrops = 1 << 40

// count returns the number of dropped packets that an option holds. It is 0 if the number is impossible: all bits are set if it is not known.
func (r *pcapngReader) count(value []byte) uint64 {
	if len(value) == 8 {
		if n := r.order.Uint64(value); n < maxDrops {
			return n
		}
	}
	return 0
}

// dropped takes the number of packets that an interface has dropped.
func (r *pcapngReader) dropped(i *ngInterface, n uint64) {
	if n > i.drops {
		r.drops += n - i.drops
		i.drops = n
	}
}

// heading returns the direction in the options of a packet block, and how many packets were dropped before it.
func (r *pcapngReader) heading(options []byte) (h Heading, dropped uint64) {
	const inbound, outbound = 1, 2
	r.eachOption(options, func(code uint16, value []byte) {
		switch {
		case code == optEpbDrops:
			dropped = r.count(value)
		case code != optEpbFlags || len(value) != 4:
		case r.order.Uint32(value)&3 == inbound:
			h = Received
		case r.order.Uint32(value)&3 == outbound:
			h = Sent
		}
	})
	return h, dropped
}

// eachOption calls visit for each option in list, and stops at the first malformed one.
func (r *pcapngReader) eachOption(list []byte, visit func(code uint16, value []byte)) {
	for len(list) >= 4 {
		code, size := r.order.Uint16(list), int(r.order.Uint16(list[2:]))
		list = list[4:]
		if code == optEnd || size > len(list) {
			return
		}
		visit(code, list[:size])
		list = list[min((size+3)&^3, len(list)):]
	}
}
