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

// Writer writes a pcapng file (draft-ietf-opsawg-pcapng, section 4): one section,
// little-endian, an enhanced packet block a frame. Frames are written with Write,
// or, where their interfaces are to be kept and packets to have comments, with
// Interface and Packet. The first error of writing stays, and comes again.
type Writer struct {
	w          *bufio.Writer
	interfaces []ngOut
	own        map[LinkType]uint32 // of Write, in interfaces
	described  uint32              // how many interfaces the file has
	size       int64
	begun      bool
	scratch    []byte
}

// ngOut is an interface: as the file has it for times from 1970 on, and for those
// before, which ticks, that have no sign, cannot count from there.
type ngOut struct {
	origin Origin
	tick   uint64    // nanoseconds
	number [2]uint32 // 1 and what the file calls it, 0 where it is not described yet
}

// oldOffset is the second that times before 1970 are counted from.
var oldOffset int64 = math.MinInt64/1_000_000_000 - 1

// NewWriter writes to w, through a buffer.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: bufio.NewWriterSize(w, 64<<10), own: map[LinkType]uint32{}}
}

// Begin writes the head of the section, which is otherwise written before the
// first interface and names nobody; application is who writes.
func (w *Writer) Begin(application string) error {
	if w.begun {
		return nil
	}
	w.begun = true
	b := w.block(blockSection)
	b = le.AppendUint32(b, sectionMagic)
	b = le.AppendUint16(le.AppendUint16(b, 1), 0)
	b = le.AppendUint64(b, math.MaxUint64) // of unknown length
	if application != "" {
		b = appendOption(b, optApplication, text(application))
		b = appendOption(b, optEnd, nil)
	}
	return w.end(b)
}

// Interface adds an interface, and returns the number that Packet knows it by. An
// error of writing comes with the next packet.
func (w *Writer) Interface(i *Origin) (number uint32) {
	number = w.add(i)
	w.describe(&w.interfaces[number], 0)
	return number
}

// add adds an interface that is described when it has a packet.
func (w *Writer) add(i *Origin) (number uint32) {
	out := ngOut{origin: *i, tick: 1}
	out.origin.Digits = min(i.Digits, 9)
	for d := out.origin.Digits; d < 9; d++ {
		out.tick *= 10
	}
	w.interfaces = append(w.interfaces, out)
	return uint32(len(w.interfaces) - 1)
}

// describe writes an interface, for times before 1970 or from then on.
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
	b = appendOption(b, optIfTSResol, []byte{i.origin.Digits})
	if old > 0 {
		b = appendOption(b, optIfTSOffset, le.AppendUint64(nil, uint64(oldOffset)))
	}
	w.end(appendOption(b, optEnd, nil))
	w.described++
	i.number[old] = w.described
}

// Write adds a frame, whose interface has a name no more: nothing else of what a
// [Frame] says is lost, but its number. Times are written in nanoseconds.
func (w *Writer) Write(f *Frame) error {
	number, known := w.own[f.LinkType]
	if !known {
		number = w.add(&Origin{LinkType: f.LinkType, Digits: 9})
		w.own[f.LinkType] = number
	}
	return w.Packet(number, f.Time, f.Data, f.Length, "")
}

// Packet adds a frame of an interface, of length bytes on the wire, with a comment
// unless that is empty. Time is nanoseconds since 1970 UTC; what is finer than the
// interface's times is lost.
func (w *Writer) Packet(number uint32, time int64, data []byte, length int, comment string) error {
	if int64(number) >= int64(len(w.interfaces)) {
		return fmt.Errorf("capture: no interface %d to write a packet of, there are %d", number, len(w.interfaces))
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
	note := text(comment)
	size := uint32(blockOverhead + enhancedHeader + (len(data)+3)&^3)
	if len(note) > 0 {
		size += uint32(8 + (len(note)+3)&^3)
	}
	b := le.AppendUint32(le.AppendUint32(w.scratch[:0], blockEnhanced), size)
	b = le.AppendUint32(b, i.number[old]-1)
	b = le.AppendUint32(le.AppendUint32(b, uint32(ticks>>32)), uint32(ticks))
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(data))), uint32(length))
	w.put(b)
	w.put(data)
	b = append(b[:0], 0, 0, 0)[:-len(data)&3]
	if len(note) > 0 {
		b = appendOption(appendOption(b, optComment, note), optEnd, nil)
	}
	w.scratch = le.AppendUint32(b, size)
	return w.put(w.scratch)
}

// block begins a block.
func (w *Writer) block(kind uint32) []byte {
	return append(le.AppendUint32(w.scratch[:0], kind), 0, 0, 0, 0)
}

// end writes a block that was begun.
func (w *Writer) end(b []byte) error {
	size := uint32(len(b) + 4)
	le.PutUint32(b[4:], size)
	w.scratch = le.AppendUint32(b, size)
	return w.put(w.scratch)
}

// put writes; an error stays with the buffer and comes again.
func (w *Writer) put(b []byte) error {
	n, err := w.w.Write(b)
	w.size += int64(n)
	return err
}

// Size is how many bytes were written, those in the buffer included.
func (w *Writer) Size() int64 { return w.size }

// Flush hands on what is in the buffer.
func (w *Writer) Flush() error { return w.w.Flush() }

// Finish flushes. Without a frame it writes the headers of a capture that has
// none, rather than a file that is no capture.
func (w *Writer) Finish() error {
	if w.described == 0 {
		w.Interface(&Origin{LinkType: LinkEthernet, Digits: 9})
	}
	return w.w.Flush()
}

var le = binary.LittleEndian

// maxText bounds the text of an option: its length has 16 bits, and nobody reads
// comments of pages.
const maxText = 4096

// text is valid UTF-8 of a length that options have room for.
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
