package show

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// sorter sorts lines by their keys; lines with equal keys keep their order. It holds a limited
// number of bytes. Beyond the limit it writes sorted runs to a temporary file, which it merges at
// the end.
//
// It is not a library such as lanrat/extsort, because these limit the number of records in memory
// and not their bytes, and one hostile record may have megabytes.
type sorter struct {
	flags.Order
	limit int  // number of bytes to hold
	worst any  // key of the last record among the top ones so far
	full  bool // worst is set
	held  []line
	bytes int
	runs  []sorted
	file  *os.File
	size  int64 // size of file, in bytes
}

// line is a line with its key.
type line struct {
	key    any // nil, int, uint64, float64, string, bool or time.Time
	text   []byte
	record any // the record, instead of text, unless the line has to be written to the file
	bytes  int // size of text or record
}

// sorted is a sorted run in the file.
type sorted struct{ offset, length int64 }

// sortMemory is the number of bytes that a sorter holds. It is small compared with the memory
// limit of the dissector.
const sortMemory = 96 << 20

// lineCost is the memory for a line in addition to its bytes, and mergeBytes the size of the
// buffers for reading all runs together.
const (
	lineCost   = 96
	mergeBytes = 8 << 20
)

func newSorter(o flags.Order) *sorter { return &sorter{Order: o, limit: sortMemory} }

// compare compares two keys; null comes last in either order.
func (s *sorter) compare(a, b any) int {
	if s.Descending && a != nil && b != nil {
		return query.Order(b, a)
	}
	return query.Order(a, b)
}

// hopeless reports whether a line with this key cannot be among the top ones.
func (s *sorter) hopeless(key any) bool {
	return s.full && s.compare(s.worst, sortKey(key)) <= 0
}

// add adds a line; it copies text.
func (s *sorter) add(key any, text []byte) error {
	return s.take(line{key: sortKey(key), text: slices.Clone(text), bytes: len(text)})
}

// keep adds a record of this size in bytes. The caller must not use the record afterwards.
func (s *sorter) keep(key any, record any, bytes int) error {
	return s.take(line{key: sortKey(key), record: record, bytes: bytes})
}

func (s *sorter) take(l line) error {
	s.held = append(s.held, l)
	s.bytes += l.cost()
	if s.Top > 0 && len(s.held)-s.Top >= s.Top { // From time to time, this drops records that cannot be among the top ones.
		s.trim()
	}
	if s.bytes > s.limit {
		return s.spill()
	}
	return nil
}

func (l *line) cost() int {
	n := lineCost + l.bytes
	if s, ok := l.key.(string); ok {
		n += len(s)
	}
	return n
}

// sortKey returns a value in a form that can be compared: the first element of a list, and nil
// for a value without an order.
func sortKey(v any) any {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			return sortKey(v[0])
		}
	case int, uint64, float64, string, bool, time.Time:
		return v
	}
	return nil
}

// trim sorts the lines in memory and drops those that are not among the top ones.
func (s *sorter) trim() {
	slices.SortStableFunc(s.held, func(a, b line) int { return s.compare(a.key, b.key) })
	if s.Top == 0 || len(s.held) < s.Top {
		return
	}
	s.worst, s.full = s.held[s.Top-1].key, true
	for i := s.Top; i < len(s.held); i++ {
		s.bytes -= s.held[i].cost()
	}
	clear(s.held[s.Top:])
	s.held = s.held[:s.Top]
}

// spill writes the lines in memory to the file as a sorted run.
func (s *sorter) spill() error {
	s.trim()
	if s.Top > 0 && s.bytes <= s.limit/2 {
		return nil
	}
	if s.file == nil {
		file, err := os.CreateTemp("", "rdmadump-sort-")
		if err != nil {
			return fmt.Errorf("sorting: %w", err)
		}
		s.file = file
		os.Remove(file.Name()) // Where an open file can be removed, it disappears with the process.
	}
	w := bufio.NewWriterSize(s.file, 1<<16)
	r := sorted{offset: s.size}
	var head, text []byte
	for _, l := range s.held {
		if l.record != nil {
			text = render.AppendJSON(text[:0], l.record)
			l.text = text
		}
		head = binary.AppendUvarint(appendKey(head[:0], l.key), uint64(len(l.text)))
		w.Write(head)
		w.Write(l.text)
		r.length += int64(len(head) + len(l.text))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("sorting: %w", err)
	}
	s.size += r.length
	s.runs = append(s.runs, r)
	clear(s.held)
	s.held, s.bytes = s.held[:0], 0
	return nil
}

// each passes the lines to take in order, until take returns an error. It passes the record if it
// is still in memory, or else the text, which is valid until take returns.
func (s *sorter) each(take func(text []byte, record any) error) error {
	if len(s.runs) == 0 {
		s.trim()
		for i := range s.held {
			if err := take(s.held[i].text, s.held[i].record); err != nil {
				return err
			}
			s.held[i] = line{}
		}
		return nil
	}
	if err := s.spill(); err != nil {
		return err
	}
	if len(s.held) > 0 { // The top lines did not need the file so far.
		s.limit = 0
		if err := s.spill(); err != nil {
			return err
		}
	}
	return s.merge(take)
}

// merge merges the runs. If keys are equal, the line of the earlier run comes first.
func (s *sorter) merge(take func(text []byte, record any) error) error {
	buffer := min(max(mergeBytes/len(s.runs), 4<<10), 64<<10)
	var heads []*head
	for i, r := range s.runs {
		h := &head{run: i, r: bufio.NewReaderSize(io.NewSectionReader(s.file, r.offset, r.length), buffer)}
		if err := h.next(); err == nil {
			heads = append(heads, h)
		} else if err != io.EOF {
			return err
		}
	}
	less := func(a, b *head) bool { return cmp.Or(s.compare(a.key, b.key), cmp.Compare(a.run, b.run)) < 0 }
	sink := func(at int) {
		for {
			least := at
			for child := 2*at + 1; child <= 2*at+2 && child < len(heads); child++ {
				if less(heads[child], heads[least]) {
					least = child
				}
			}
			if least == at {
				return
			}
			heads[at], heads[least] = heads[least], heads[at]
			at = least
		}
	}
	for at := len(heads)/2 - 1; at >= 0; at-- {
		sink(at)
	}
	for n := 0; len(heads) > 0 && (s.Top == 0 || n < s.Top); n++ {
		h := heads[0]
		if err := take(h.text, nil); err != nil {
			return err
		}
		switch err := h.next(); err {
		case nil:
		case io.EOF:
			last := len(heads) - 1
			heads[0], heads = heads[last], heads[:last]
		default:
			return err
		}
		sink(0)
	}
	return nil
}

// close removes the file.
func (s *sorter) close() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
	}
}

// head is the next line of a run.
type head struct {
	line
	run int
	r   *bufio.Reader
}

// next reads the next line. It returns io.EOF at the end of the run.
func (h *head) next() (err error) {
	if h.key, err = readKey(h.r); err != nil {
		return err
	}
	n, err := binary.ReadUvarint(h.r)
	if err == nil {
		h.text = slices.Grow(h.text[:0], int(n))[:n]
		_, err = io.ReadFull(h.r, h.text)
	}
	if err != nil {
		return fmt.Errorf("sorting: %w", errors.Join(io.ErrUnexpectedEOF, err))
	}
	return nil
}

// The types of keys in the file.
const (
	keyNull byte = iota
	keyInt
	keyFloat
	keyText
	keyFalse
	keyTrue
	keyTime
	keyUint
)

// appendKey appends the encoding of a key.
func appendKey(b []byte, key any) []byte {
	switch v := key.(type) {
	case int:
		return binary.AppendVarint(append(b, keyInt), int64(v))
	case uint64:
		return binary.AppendUvarint(append(b, keyUint), v)
	case float64:
		return binary.LittleEndian.AppendUint64(append(b, keyFloat), math.Float64bits(v))
	case string:
		return append(binary.AppendUvarint(append(b, keyText), uint64(len(v))), v...)
	case bool:
		if v {
			return append(b, keyTrue)
		}
		return append(b, keyFalse)
	case time.Time:
		return binary.AppendVarint(append(b, keyTime), v.UnixNano())
	}
	return append(b, keyNull)
}

// readKey reads a key that appendKey encoded.
func readKey(r *bufio.Reader) (any, error) {
	kind, err := r.ReadByte()
	if err != nil {
		return nil, err
	}
	switch kind {
	case keyInt:
		v, err := binary.ReadVarint(r)
		return int(v), err
	case keyUint:
		v, err := binary.ReadUvarint(r)
		return v, err
	case keyFloat:
		var b [8]byte
		_, err := io.ReadFull(r, b[:])
		return math.Float64frombits(binary.LittleEndian.Uint64(b[:])), err
	case keyText:
		n, err := binary.ReadUvarint(r)
		if err != nil {
			return nil, err
		}
		b := make([]byte, n)
		_, err = io.ReadFull(r, b)
		return string(b), err
	case keyFalse, keyTrue:
		return kind == keyTrue, nil
	case keyTime:
		v, err := binary.ReadVarint(r)
		return time.Unix(0, v).UTC(), err
	}
	return nil, nil
}
