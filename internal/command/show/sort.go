package show

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/disk"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// sorter sorts lines by their keys; lines with equal keys keep their order. It holds a limited
// number of bytes. Beyond the limit it writes sorted runs to a temporary file, which are merged at
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
	runs  disk.Runs[line]
	file  *os.File
}

// line is a line with its key.
type line struct {
	key    any // nil, int, uint64, float64, string, bool or time.Time
	text   []byte
	record any // the record, instead of text, unless the line has to be written to the file
	bytes  int // size of text or record
}

// sortMemory is the number of bytes that a sorter holds. It is small compared with the memory
// limit of the dissector.
const sortMemory = 96 << 20

// lineCost is the memory for a line in addition to its bytes.
const lineCost = 96

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

// take adds a line.
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
		s.runs = disk.Runs[line]{
			File:    disk.NewFile(file),
			Compare: func(a, b *line) int { return s.compare(a.key, b.key) },
			Read:    func(r *bufio.Reader, l *line) error { return l.read(r) },
		}
	}
	err := s.runs.Add(func(f *disk.File) {
		var b, text []byte
		for _, l := range s.held {
			if l.record != nil {
				text = render.AppendJSON(text[:0], l.record)
				l.text = text
			}
			b = append(binary.AppendUvarint(appendKey(b[:0], l.key), uint64(len(l.text))), l.text...)
			f.Append(b)
		}
	})
	if err != nil {
		return fmt.Errorf("sorting: %w", err)
	}
	clear(s.held)
	s.held, s.bytes = s.held[:0], 0
	return nil
}

// each passes the lines to take in order, until take returns an error. It passes the record if it
// is still in memory, or else the text, which is valid until take returns.
func (s *sorter) each(take func(text []byte, record any) error) error {
	if s.runs.Len() == 0 {
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
	n := 0
	err := s.runs.Merge(func(l *line) error {
		if s.Top > 0 && n == s.Top {
			return errTop
		}
		n++
		return take(l.text, nil)
	})
	if err == errTop {
		return nil
	}
	return err
}

// errTop ends merging when the top lines have been taken.
var errTop = errors.New("the top lines have been taken")

// close removes the file.
func (s *sorter) close() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
	}
}

// read reads the next line of a run. It returns io.EOF at the end of the run.
func (l *line) read(r *bufio.Reader) (err error) {
	if l.key, err = readKey(r); err != nil {
		return err
	}
	n, err := binary.ReadUvarint(r)
	if err == nil {
		l.text = slices.Grow(l.text[:0], int(n))[:n]
		_, err = io.ReadFull(r, l.text)
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
