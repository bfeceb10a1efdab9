// Package export hands what a capture holds over to other tools: its RPCs as if
// TCP had carried them, or its own packets with comments, as pcapng files.
package export

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rdmadump/rdmadump/capture"
)

// Writer writes a pcapng file (draft-ietf-opsawg-pcapng), little-endian: one
// section, an enhanced packet block a frame. The first error stays, and Flush
// returns it.
type Writer struct {
	w          *bufio.Writer
	block      []byte
	interfaces []uint64 // nanoseconds of a tick
}

// The block types and options that are written.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacket    = 6

	optEnd         = 0
	optComment     = 1
	optApplication = 4 // of a section
	optName        = 2 // of an interface
	optDescription = 3
	optTSResol     = 9
)

var le = binary.LittleEndian

// NewWriter begins a file; application is who writes it.
func NewWriter(to io.Writer, application string) *Writer {
	w := &Writer{w: bufio.NewWriterSize(to, 1<<16)}
	b := w.begin(blockSection)
	b = le.AppendUint32(b, 0x1a2b3c4d)
	b = le.AppendUint16(le.AppendUint16(b, 1), 0)
	b = le.AppendUint64(b, 1<<64-1) // length of the section: nobody knows
	b = appendOption(b, optApplication, []byte(application))
	w.end(appendOption(b, optEnd, nil))
	return w
}

// Interface describes an interface and returns its number.
func (w *Writer) Interface(i *capture.Origin) (number uint32) {
	b := w.begin(blockInterface)
	b = le.AppendUint16(le.AppendUint16(b, uint16(i.LinkType)), 0)
	b = le.AppendUint32(b, i.Snap)
	if i.Name != "" {
		b = appendOption(b, optName, text(i.Name))
	}
	if i.Description != "" {
		b = appendOption(b, optDescription, text(i.Description))
	}
	digits := min(i.Digits, 9)
	b = appendOption(b, optTSResol, []byte{digits})
	w.end(appendOption(b, optEnd, nil))
	tick := uint64(1)
	for ; digits < 9; digits++ {
		tick *= 10
	}
	w.interfaces = append(w.interfaces, tick)
	return uint32(len(w.interfaces) - 1)
}

// Packet writes a frame that was length bytes long when it was captured, with a
// comment unless that is empty. Time is nanoseconds since 1970; what is finer than a
// tick of the interface is lost.
func (w *Writer) Packet(number uint32, time int64, data []byte, length int, comment string) error {
	if int64(number) >= int64(len(w.interfaces)) {
		return fmt.Errorf("export: interface %d, there are %d", number, len(w.interfaces))
	}
	if time < 0 {
		return fmt.Errorf("export: pcapng has no room for the time %d ns, before 1970", time)
	}
	b := w.begin(blockPacket)
	b = le.AppendUint32(b, number)
	ticks := uint64(time) / w.interfaces[number]
	b = le.AppendUint32(le.AppendUint32(b, uint32(ticks>>32)), uint32(ticks))
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(data))), uint32(length))
	b = append(b, data...)
	b = append(b, make([]byte, -len(data)&3)...)
	if comment != "" {
		b = appendOption(b, optComment, text(comment))
		b = appendOption(b, optEnd, nil)
	}
	return w.end(b)
}

// Flush writes what is held back. The error is the first that there was.
func (w *Writer) Flush() error { return w.w.Flush() }

// begin begins a block.
func (w *Writer) begin(kind uint32) []byte {
	return append(le.AppendUint32(w.block[:0], kind), 0, 0, 0, 0)
}

// end writes a block.
func (w *Writer) end(b []byte) error {
	le.PutUint32(b[4:], uint32(len(b)+4))
	w.block = le.AppendUint32(b, uint32(len(b)+4))
	_, err := w.w.Write(w.block)
	return err
}

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
