package capture

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
)

// Writer writes frames as pcapng: one section, an interface description for each
// link type, times in nanoseconds, and nothing lost of what a [Frame] says but
// its number. See draft-ietf-opsawg-pcapng, section 4.
type Writer struct {
	w          *bufio.Writer
	interfaces map[ngKind]uint32
	size       int64
	begun      bool
	scratch    []byte
}

// ngKind is what the frames of one interface have in common.
type ngKind struct {
	link LinkType
	old  bool // before 1970, which ticks, that have no sign, cannot count from
}

// oldOffset is the second that times before 1970 are counted from.
var oldOffset int64 = math.MinInt64/1_000_000_000 - 1

// NewWriter writes to w, through a buffer.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: bufio.NewWriterSize(w, 64<<10), interfaces: map[ngKind]uint32{}}
}

// Write adds a frame.
func (w *Writer) Write(f *Frame) error {
	kind := ngKind{f.LinkType, f.Time < 0}
	id, known := w.interfaces[kind]
	if !known {
		id = w.describe(kind)
	}
	ticks := uint64(f.Time)
	if kind.old {
		ticks -= uint64(oldOffset) * 1e9
	}
	le := binary.LittleEndian
	b := le.AppendUint32(w.scratch[:0], blockEnhanced)
	size := uint32(blockOverhead + enhancedHeader + (len(f.Data)+3)&^3)
	b = le.AppendUint32(b, size)
	b = le.AppendUint32(b, id)
	b = le.AppendUint32(le.AppendUint32(b, uint32(ticks>>32)), uint32(ticks))
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(f.Data))), uint32(f.Length))
	w.scratch = b
	w.put(b)
	w.put(f.Data)
	b = append(w.scratch[:0], 0, 0, 0)[:-len(f.Data)&3]
	return w.put(le.AppendUint32(b, size))
}

// describe adds an interface, and the section's header before the first.
func (w *Writer) describe(kind ngKind) (id uint32) {
	le := binary.LittleEndian
	var b []byte
	if !w.begun {
		w.begun = true
		b = le.AppendUint32(le.AppendUint32(b, blockSection), 28)
		b = le.AppendUint16(le.AppendUint16(le.AppendUint32(b, sectionMagic), 1), 0)
		b = le.AppendUint64(b, math.MaxUint64) // of unknown length
		b = le.AppendUint32(b, 28)
	}
	size := uint32(32)
	if kind.old {
		size += 12
	}
	b = le.AppendUint32(le.AppendUint32(b, blockInterface), size)
	b = le.AppendUint16(le.AppendUint16(b, uint16(kind.link)), 0)
	b = le.AppendUint32(b, 0) // no snapshot length
	b = le.AppendUint16(le.AppendUint16(b, optIfTSResol), 1)
	b = append(b, 9, 0, 0, 0)
	if kind.old {
		b = le.AppendUint16(le.AppendUint16(b, optIfTSOffset), 8)
		b = le.AppendUint64(b, uint64(oldOffset))
	}
	b = le.AppendUint32(b, optEnd) // of length 0
	b = le.AppendUint32(b, size)
	w.put(b)
	id = uint32(len(w.interfaces))
	w.interfaces[kind] = id
	return id
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
	if !w.begun {
		w.describe(ngKind{link: LinkEthernet})
	}
	return w.w.Flush()
}
