package synth

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/rdmadump/rdmadump/capture"
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

// snapLength is the snapshot length in the file header. It is larger than any frame.
const snapLength = 262144

// WritePcapng writes the frames as a pcapng file, with times in nanoseconds and one interface for each link type.
func (w *Wire) WritePcapng(to io.Writer) error {
	out := capture.NewWriter(to)
	for _, f := range w.Frames {
		out.Write(&capture.Frame{Time: f.Time, LinkType: capture.LinkType(f.LinkType), Length: f.Length, Data: f.Data})
	}
	return out.Finish() // it returns the first error
}
