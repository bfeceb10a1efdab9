package synth

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
)

// WritePcap writes the frames as a classic pcap file, little-endian, with times in
// nanoseconds. It returns an error if the frames have several link types, or a time
// before 1970 or after 2106, because the format cannot represent them.
func (w *Wire) WritePcap(to io.Writer) error {
	out := bufio.NewWriter(to)
	link := LinkEthernet
	if len(w.Frames) > 0 {
		link = w.Frames[0].LinkType
	}
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b23c4d)
	b = le.AppendUint16(le.AppendUint16(b, 2), 4)
	b = append(b, make([]byte, 8)...) // time zone and accuracy
	b = le.AppendUint32(le.AppendUint32(b, snapLength), uint32(link))
	out.Write(b)
	for i, f := range w.Frames {
		seconds := f.Time / 1e9
		if f.LinkType != link {
			return fmt.Errorf("synth: frame %d has link type %d, but a pcap file has only one, %d", i+1, f.LinkType, link)
		}
		if f.Time < 0 || seconds > 1<<32-1 {
			return fmt.Errorf("synth: frame %d: a pcap file cannot represent the time %d ns", i+1, f.Time)
		}
		b = le.AppendUint32(le.AppendUint32(b[:0], uint32(seconds)), uint32(f.Time%1e9))
		b = le.AppendUint32(le.AppendUint32(b, uint32(len(f.Data))), uint32(f.Length))
		out.Write(b)
		out.Write(f.Data)
	}
	return out.Flush()
}

// snapLength is the snapshot length in the file headers. It is larger than any frame.
const snapLength = 262144

// Pcapng configures the times in a pcapng file.
type Pcapng struct {
	// TSResol is the value of the option if_tsresol: a tick is 10^-n seconds, or 2^-n if bit
	// 7 is set. 0 omits the option, so that a tick is a microsecond. Times are rounded down
	// to ticks.
	TSResol uint8
	// TSOffset is the value of the option if_tsoffset: seconds that readers add to each
	// time. 0 omits the option.
	TSOffset int64
}

// WritePcapng writes the frames as a pcapng file, little-endian, with one interface for
// each link type. It returns an error if the options cannot represent the time of a frame.
func (w *Wire) WritePcapng(to io.Writer, o Pcapng) error {
	out := bufio.NewWriter(to)
	le := binary.LittleEndian
	block := func(kind uint32, body []byte) {
		total := uint32(len(body) + 12)
		out.Write(le.AppendUint32(le.AppendUint32(nil, kind), total))
		out.Write(body)
		out.Write(le.AppendUint32(nil, total))
	}
	section := le.AppendUint32(nil, 0x1a2b3c4d)
	section = le.AppendUint16(le.AppendUint16(section, 1), 0)
	block(0x0a0d0d0a, le.AppendUint64(section, 1<<64-1))
	interfaces := map[uint16]uint32{}
	var b []byte
	for i, f := range w.Frames {
		number, known := interfaces[f.LinkType]
		if !known {
			number = uint32(len(interfaces))
			interfaces[f.LinkType] = number
			block(1, o.description(f.LinkType))
		}
		ticks, ok := o.ticks(f.Time)
		if !ok {
			return fmt.Errorf("synth: frame %d: the file cannot represent the time %d ns with if_tsresol 0x%02x and if_tsoffset %d", i+1, f.Time, o.TSResol, o.TSOffset)
		}
		b = le.AppendUint32(b[:0], number)
		b = le.AppendUint32(le.AppendUint32(b, uint32(ticks>>32)), uint32(ticks))
		b = le.AppendUint32(le.AppendUint32(b, uint32(len(f.Data))), uint32(f.Length))
		b = append(b, f.Data...)
		block(6, append(b, pad(len(f.Data))...))
	}
	return out.Flush()
}

// description returns the body of an interface description block.
func (o Pcapng) description(link uint16) []byte {
	le := binary.LittleEndian
	b := le.AppendUint16(le.AppendUint16(nil, link), 0)
	b = le.AppendUint32(b, snapLength)
	if o.TSResol != 0 {
		b = append(le.AppendUint16(le.AppendUint16(b, 9), 1), o.TSResol, 0, 0, 0)
	}
	if o.TSOffset != 0 {
		b = le.AppendUint64(le.AppendUint16(le.AppendUint16(b, 14), 8), uint64(o.TSOffset))
	}
	if o.TSResol != 0 || o.TSOffset != 0 {
		b = le.AppendUint32(b, 0) // end of options
	}
	return b
}

// ticks returns a time in ticks, or false if the file cannot represent it.
func (o Pcapng) ticks(ns int64) (uint64, bool) {
	seconds, rest := ns/1e9-o.TSOffset, uint64(ns%1e9)
	if ns < 0 || seconds < 0 {
		return 0, false
	}
	per := uint64(1e6) // ticks per second
	switch n := o.TSResol & 0x7f; {
	case o.TSResol == 0:
	case o.TSResol&0x80 != 0:
		if n > 63 {
			return 0, false
		}
		per = 1 << n
	default:
		if n > 19 {
			return 0, false
		}
		for per = 1; n > 0; n-- {
			per *= 10
		}
	}
	over, whole := bits.Mul64(uint64(seconds), per)
	high, low := bits.Mul64(rest, per)
	if over != 0 || high >= 1e9 {
		return 0, false
	}
	part, _ := bits.Div64(high, low, 1e9)
	ticks, carry := bits.Add64(whole, part, 0)
	return ticks, carry == 0
}
