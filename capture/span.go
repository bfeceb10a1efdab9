package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"os"
	"sync/atomic"
)

// Span is the time of the first and of the last frame of a file, in nanoseconds since 1970. Frames between them may be
// earlier or later if their times are not in order.
type Span struct{ First, Last int64 }

// headBytes and tailBytes are read at the beginning and at the end of a file to find its span.
const (
	headBytes = 2 << 10
	tailBytes = 16 << 10 // at first; more if the last frames are longer
	moreBytes = 512 << 10
)

// SpanOf returns the span of a plain pcap or pcapng file without reading all of it. It returns false for other files, such as
// compressed ones, and for those whose first or last frame is not found, because they are damaged or have no frames.
func SpanOf(path string) (s Span, known bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // Opening a pipe would wait.
		return s, false
	}
	f, err := os.Open(path)
	if err != nil {
		return s, false
	}
	defer f.Close()
	return spanOf(f, info.Size())
}

// spanOf returns the span of a file of a size.
func spanOf(f io.ReaderAt, size int64) (s Span, known bool) {
	head := readAt(f, 0, min(size, headBytes))
	if len(head) < pcapHeader {
		return s, false
	}
	if binary.LittleEndian.Uint32(head) == blockSection {
		return spanOfPcapng(f, size, head)
	}
	return spanOfPcap(f, size, head)
}

// ReadSpan reads a whole file, which may be compressed, to find its span; damage ends it. It returns the earliest and the latest time.
func ReadSpan(ctx context.Context, path string) (s Span, known bool) {
	f, err := Open(path)
	if err != nil {
		return s, false
	}
	defer f.Close()
	for frame, err := range All(ctx, f) {
		if err != nil {
			break
		}
		if !known {
			s, known = Span{frame.Time, frame.Time}, true
		}
		s.First, s.Last = min(s.First, frame.Time), max(s.Last, frame.Time)
	}
	return s, known
}

// firstOf returns the time of the first frame of a file, which may be compressed. It returns false if the file has none, or if its
// first bytes do not show the time.
func firstOf(path string) (first int64, known bool) {
	head := headOf(path, headBytes)
	if len(head) < pcapHeader {
		return 0, false
	}
	if binary.LittleEndian.Uint32(head) == blockSection {
		_, first, known = beginPcapng(head)
	} else {
		_, first, known = beginPcap(head)
	}
	return first, known
}

// isRegular reports whether a path is that of a regular file: opening a pipe would wait.
func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// headOf returns the first n bytes of a file, decompressed if it is compressed. They are fewer if the file is shorter or damaged,
// and there are none if it is no regular file.
func headOf(path string, n int) []byte {
	if !isRegular(path) {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	r, err := decompress(f, new(atomic.Bool))
	if err != nil {
		return nil
	}
	defer r.Close()
	head := make([]byte, n)
	n, _ = io.ReadFull(r, head)
	return head[:n]
}

// readAt returns the bytes of a file at an offset, or fewer if it cannot be read.
func readAt(f io.ReaderAt, at, n int64) []byte {
	b := make([]byte, n)
	got, _ := f.ReadAt(b, at)
	return b[:got]
}

// spanOfPcap returns the span of a pcap file. It finds the last record by looking for a chain of records that ends where
// the file ends.
func spanOfPcap(f io.ReaderAt, size int64, head []byte) (s Span, known bool) {
	r, first, known := beginPcap(head)
	if !known {
		return s, false
	}
	s.First = first
	for _, n := range [...]int64{tailBytes, moreBytes} {
		from := max(size-n, pcapHeader)
		tail := readAt(f, from, size-from)
		for start := range len(tail) {
			if last, whole := r.chain(tail[start:], s.First); whole {
				return Span{s.First, last}, true
			}
			if from == pcapHeader {
				return s, false
			}
		}
	}
	return s, false
}

// beginPcap returns a reader of a pcap file, and the time of its first frame.
func beginPcap(head []byte) (r pcapReader, first int64, known bool) {
	r = pcapReader{order: pcapOrder(head), fraction: 1000, record: 16}
	if r.order == unknownOrder {
		return r, 0, false
	}
	switch r.order.Uint32(head) {
	case pcapNano:
		r.fraction = 1
	case pcapModified:
		r.record = 24
	}
	if link := LinkType(r.order.Uint32(head[20:]) & 0xffff); link == LinkERF { // Its frames have times of their own.
		return r, 0, false
	}
	first, n := r.recordAt(head[pcapHeader:], math.MinInt64)
	return r, first, n > 0
}

// chain returns the time of the last of several records, and whether they are records up to the end of b.
func (r *pcapReader) chain(b []byte, first int64) (last int64, whole bool) {
	for len(b) > 0 {
		t, n := r.recordAt(b, first)
		if n == 0 || n > len(b) {
			return 0, false
		}
		last, whole, b = t, true, b[n:]
	}
	return last, whole
}

// recordAt returns the time and the length of the record at the beginning of b; the length is 0 if there is none that makes
// sense: its time must be near that of the first record, unless that is not known.
func (r *pcapReader) recordAt(b []byte, first int64) (t int64, n int) {
	const near = 3 * 366 * 86400 * int64(1e9)
	if len(b) < r.record {
		return 0, 0
	}
	fraction, captured, length := int64(r.order.Uint32(b[4:])), r.order.Uint32(b[8:]), r.order.Uint32(b[12:])
	t = int64(r.order.Uint32(b))*1e9 + fraction*r.fraction
	if fraction*r.fraction >= 1e9 || captured > MaxFrame || captured > length || length > 1<<24 || captured == 0 {
		return 0, 0
	}
	if first != math.MinInt64 && (t < first-near || t > first+near) {
		return 0, 0
	}
	return t, r.record + int(captured)
}

// spanOfPcapng returns the span of a pcapng file with one section. Each block ends with its length, so that the last one with
// a packet is found from the end of the file.
func spanOfPcapng(f io.ReaderAt, size int64, head []byte) (s Span, known bool) {
	r, first, found := beginPcapng(head)
	s.First = first
	from := max(size-tailBytes, 0)
	if found && r.endsLonger(f, size) {
		from = max(size-moreBytes, 0)
	}
	tail := readAt(f, from, size-from)
	for found && len(tail) >= blockOverhead {
		n := int(r.order.Uint32(tail[len(tail)-4:]))
		if n < blockOverhead || n > len(tail) {
			return s, false
		}
		block := tail[len(tail)-n:]
		if int(r.order.Uint32(block[4:])) != n {
			return s, false
		}
		switch r.order.Uint32(block) {
		case blockEnhanced:
			s.Last, known = r.timeOf(block)
			return s, known
		case blockSection, blockSimple, blockPacket:
			return s, false
		}
		tail = tail[:len(tail)-n]
	}
	return s, false
}

// beginPcapng returns a reader of a pcapng file that has the interfaces before its first frame, and the time of that frame.
func beginPcapng(head []byte) (r pcapngReader, first int64, known bool) {
	if r.order = sectionOrder(head[8:]); r.order == unknownOrder {
		return r, 0, false
	}
	for at := 0; at+blockOverhead <= len(head); {
		kind, n := r.order.Uint32(head[at:]), int(r.order.Uint32(head[at+4:]))
		if n < blockOverhead || n%4 != 0 {
			break
		}
		switch kind {
		case blockInterface:
			if at+n > len(head) || n < blockOverhead+8 {
				return r, 0, false
			}
			r.interfaces = append(r.interfaces, r.describe(head[at+8:at+n-4]))
		case blockEnhanced:
			first, known = r.timeOf(head[at:])
			return r, first, known
		case blockSimple, blockPacket:
			return r, 0, false
		}
		at += n
	}
	return r, 0, false
}

// endsLonger reports whether the last blocks of a file may be longer than tailBytes.
func (r *pcapngReader) endsLonger(f io.ReaderAt, size int64) bool {
	last := readAt(f, size-4, 4)
	return len(last) < 4 || r.order.Uint32(last) > tailBytes/4
}

// timeOf returns the time of a packet block.
func (r *pcapngReader) timeOf(block []byte) (t int64, known bool) {
	if len(block) < 8+enhancedHeader {
		return 0, false
	}
	id := r.order.Uint32(block[8:])
	if int64(id) >= int64(len(r.interfaces)) || r.interfaces[id].link == LinkERF {
		return 0, false
	}
	return r.interfaces[id].clock.nanoseconds(uint64(r.order.Uint32(block[12:]))<<32 | uint64(r.order.Uint32(block[16:]))), true
}

// resumed opens a plain pcap file at a record, whose offset is at and which has before records before it.
func resumed(path, name string, p *pool, at, before int64) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	head := readAt(f, 0, pcapHeader)
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		f.Close()
		return nil, err
	}
	file, err := newPipe(name, io.MultiReader(bytes.NewReader(head), f), p)
	if err != nil {
		f.Close()
		return nil, err
	}
	file.closer, file.frames = f, before
	file.stream.offset += at - pcapHeader
	file.raw.n.Add(at - pcapHeader)
	if info, err := f.Stat(); err == nil {
		file.size = info.Size()
	}
	return file, nil
}
