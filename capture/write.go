package capture

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// Writer writes a pcapng file (draft-ietf-opsawg-pcapng, section 4) with one little-endian section
// and one enhanced packet block per frame. Write writes frames. Interface and Packet do so as well,
// and also preserve the frames' interfaces and write comments. The first write error is returned by
// all later calls.
type Writer struct {
	w          *bufio.Writer
	interfaces []ngOut
	own        map[LinkType]uint32 // interfaces that Write added, as indexes of interfaces
	described  uint32              // number of interface descriptions in the file
	size       int64
	begun      bool
	scratch    []byte
	options    []byte // of a packet
}

// ngOut is an interface. The file describes it once for times since 1970 and once more for earlier
// times, because ticks are unsigned.
type ngOut struct {
	origin Origin
	tick   uint64    // length of a tick in nanoseconds
	number [2]uint32 // interface number in the file plus 1, or 0 if the description was not written yet
}

// oldOffset is the time in seconds from which times before 1970 are counted.
var oldOffset int64 = math.MinInt64/1_000_000_000 - 1

// NewWriter returns a Writer that writes to w through a buffer.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: bufio.NewWriterSize(w, 64<<10), own: map[LinkType]uint32{}}
}

// Begin writes the section header, with application as the name of the writing program. If Begin is
// not called, the section header is written before the first interface and without a name.
func (w *Writer) Begin(application string) error { return w.Section(application, "") }

// Section does what Begin does, and also writes options of the section of another file, but for the name of the program that
// wrote it.
func (w *Writer) Section(application, options string) error {
	if w.begun {
		return nil
	}
	w.begun = true
	b := w.block(blockSection)
	b = le.AppendUint32(b, sectionMagic)
	b = le.AppendUint16(le.AppendUint16(b, 1), 0)
	b = le.AppendUint64(b, math.MaxUint64) // length of the section: unknown
	at := len(b)
	new(pcapngReader).eachOption([]byte(options), func(code uint16, value []byte) {
		if code != optApplication || application == "" {
			b = appendOption(b, code, value)
		}
	})
	if application != "" {
		b = appendOption(b, optApplication, text(application))
	}
	if len(b) > at {
		b = appendOption(b, optEnd, nil)
	}
	return w.end(b)
}

// Names writes names of addresses, as Section.Names returns them.
func (w *Writer) Names(body string) error { return w.end(append(w.block(blockNames), body...)) }

// Interface adds an interface and returns its number, which Packet needs. The next call of Packet
// returns the error if writing fails.
func (w *Writer) Interface(i *Origin) (number uint32) {
	number = w.add(i)
	w.describe(&w.interfaces[number], 0)
	return number
}

// add adds an interface. Its description is written when it has a packet.
func (w *Writer) add(i *Origin) (number uint32) {
	out := ngOut{origin: *i, tick: 1}
	out.origin.Digits = min(i.Digits, 9)
	for d := out.origin.Digits; d < 9; d++ {
		out.tick *= 10
	}
	w.interfaces = append(w.interfaces, out)
	return uint32(len(w.interfaces) - 1)
}

// describe writes an interface description, with old = 1 for times before 1970 and 0 for times
// since then.
func (w *Writer) describe(i *ngOut, old int) {
	w.Begin("")
	b := w.block(blockInterface)
	b = le.AppendUint16(le.AppendUint16(b, uint16(i.origin.LinkType)), 0)
	b = le.AppendUint32(b, i.origin.Snap)
	if i.origin.Name != "" {
		b = appendOption(b, optIfName, text(i.origin.Name))
	}
	if i.origin.Description != "" {
		b = appendOption(b, optIfDescription, text(i.origin.Description))
	}
	b = append(b, i.origin.Options...)
	b = appendOption(b, optIfTSResol, []byte{i.origin.Digits})
	if old > 0 {
		b = appendOption(b, optIfTSOffset, le.AppendUint64(nil, uint64(oldOffset)))
	}
	w.end(appendOption(b, optEnd, nil))
	w.described++
	i.number[old] = w.described
}

// Write writes a frame with its time in nanoseconds. The frame's number and the name of its
// interface are not written.
func (w *Writer) Write(f *Frame) error {
	number, known := w.own[f.LinkType]
	if !known {
		number = w.add(&Origin{LinkType: f.LinkType, Digits: 9})
		w.own[f.LinkType] = number
	}
	return w.Packet(number, f, "")
}

// Packet writes a frame of an interface, with its options. If comment is not empty, it is written as another comment of the
// packet. The time is rounded down to the interface's resolution.
func (w *Writer) Packet(number uint32, f *Frame, comment string) error {
	time, data := f.Time, f.Data
	if int64(number) >= int64(len(w.interfaces)) {
		return fmt.Errorf("capture: there is no interface %d, only %d interfaces were added", number, len(w.interfaces))
	}
	i, old := &w.interfaces[number], 0
	ticks := uint64(time)
	if time < 0 {
		old = 1
		ticks -= uint64(oldOffset) * 1e9
	}
	if i.number[old] == 0 {
		w.describe(i, old)
	}
	ticks /= i.tick
	w.options = w.options[:0]
	if f.Section != nil {
		w.options, _ = convert(w.options, f.Options, f.Section.order, packetNumbers)
	}
	if comment != "" {
		w.options = appendOption(w.options, optComment, text(comment))
	}
	if len(w.options) > 0 {
		w.options = appendOption(w.options, optEnd, nil)
	}
	size := uint32(blockOverhead + enhancedHeader + (len(data)+3)&^3 + len(w.options))
	b := le.AppendUint32(le.AppendUint32(w.scratch[:0], blockEnhanced), size)
	b = le.AppendUint32(b, i.number[old]-1)
	b = le.AppendUint32(le.AppendUint32(b, uint32(ticks>>32)), uint32(ticks))
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(data))), uint32(f.Length))
	w.put(b)
	w.put(data)
	b = append(b[:0], 0, 0, 0)[:-len(data)&3]
	b = append(b, w.options...)
	w.scratch = le.AppendUint32(b, size)
	return w.put(w.scratch)
}

// block returns the start of a block.
func (w *Writer) block(kind uint32) []byte {
	return append(le.AppendUint32(w.scratch[:0], kind), 0, 0, 0, 0)
}

// end writes a block that block started.
func (w *Writer) end(b []byte) error {
	size := uint32(len(b) + 4)
	le.PutUint32(b[4:], size)
	w.scratch = le.AppendUint32(b, size)
	return w.put(w.scratch)
}

// put writes b. The buffered writer remembers an error and returns it again.
func (w *Writer) put(b []byte) error {
	n, err := w.w.Write(b)
	w.size += int64(n)
	return err
}

// Size returns the number of bytes written, including those in the buffer.
func (w *Writer) Size() int64 { return w.size }

// Flush writes the contents of the buffer.
func (w *Writer) Flush() error { return w.w.Flush() }

// Finish flushes the buffer. If no frame was written, it first writes the headers of an empty
// capture, so that the file is valid.
func (w *Writer) Finish() error {
	if w.described == 0 {
		w.Interface(&Origin{LinkType: LinkEthernet, Digits: 9})
	}
	return w.w.Flush()
}

var le = binary.LittleEndian

// maxText limits the text of an option in bytes. The format limits it to 16 bits.
const maxText = 4096

// text returns s as valid UTF-8 of at most maxText bytes.
func text(s string) []byte {
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) > maxText {
		for s = s[:maxText]; !utf8.ValidString(s); {
			s = s[:len(s)-1]
		}
	}
	return []byte(s)
}

func appendOption(b []byte, code uint16, value []byte) []byte {
	b = le.AppendUint16(le.AppendUint16(b, code), uint16(len(value)))
	return append(append(b, value...), make([]byte, -len(value)&3)...)
}
