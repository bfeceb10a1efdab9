package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/disk"
)

// store keeps items and changes of counters in a temporary file, and returns them in order.
type store struct {
	file    *disk.File
	order   *disk.Sorter // of the items: time, number, position and length in the file
	changes *disk.Sorter // of the counters: connection, track, time, number and amount
	sorted  *disk.Table
	counted *disk.Table
	number  uint64
	blob    []byte
	broken  error
}

// The lengths of the records in the tables, and of their keys.
const (
	orderLen  = 8 + 8 + 8 + 4
	changeLen = 4 + 1 + 8 + 8 + 8
)

func newStore(temporary TempFile) *store {
	file := disk.NewFile(temporary)
	return &store{file: file, order: disk.NewSorter(file, orderLen), changes: disk.NewSorter(file, changeLen)}
}

// err returns the first error of the temporary file.
func (s *store) err() error {
	if err := errors.Join(s.file.Err(), s.broken); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

// sortable returns a time such that unsigned numbers have the order of the times.
func sortable(t record.Time) uint64 { return uint64(t) ^ 1<<63 }

// unsortable reverts sortable.
func unsortable(n uint64) record.Time { return record.Time(n ^ 1<<63) }

// add keeps an item.
func (s *store) add(v *item) {
	s.blob = v.encode(s.blob[:0])
	at := s.file.Append(s.blob)
	var entry [orderLen]byte
	s.number++
	binary.BigEndian.PutUint64(entry[0:], sortable(v.start))
	binary.BigEndian.PutUint64(entry[8:], s.number)
	binary.BigEndian.PutUint64(entry[16:], uint64(at))
	binary.BigEndian.PutUint32(entry[24:], uint32(len(s.blob)))
	s.order.Add(entry[:])
}

// change keeps a change of a counter.
func (s *store) change(connection int, t track, at record.Time, by int64) {
	var entry [changeLen]byte
	s.number++
	binary.BigEndian.PutUint32(entry[0:], uint32(connection+1))
	entry[4] = byte(t)
	binary.BigEndian.PutUint64(entry[5:], sortable(at))
	binary.BigEndian.PutUint64(entry[13:], s.number)
	binary.BigEndian.PutUint64(entry[21:], uint64(by))
	s.changes.Add(entry[:])
}

// first returns the time of the first item, 0 if there is none.
func (s *store) first() record.Time {
	if s.sorted.Len() == 0 {
		return 0
	}
	return unsortable(binary.BigEndian.Uint64(s.sorted.At(0)))
}

// items calls each for every item, in the order of their starts.
func (s *store) items(each func(*item)) {
	var v item
	for i := range s.sorted.Len() {
		entry := s.sorted.At(i)
		at, length := int64(binary.BigEndian.Uint64(entry[16:])), binary.BigEndian.Uint32(entry[24:])
		if s.file.Err() != nil {
			return
		}
		if cap(s.blob) < int(length) {
			s.blob = make([]byte, length)
		}
		s.blob = s.blob[:length]
		s.file.Read(s.blob, at)
		if s.file.Err() != nil {
			return
		}
		if !v.decode(s.blob) {
			s.broken = errors.New("the temporary file was changed")
			return
		}
		each(&v)
	}
}

// A rate has at most rateEvery intervals from the first item to the last. Their length in nanoseconds
// is a power of ten within these limits.
const (
	rateEvery   = 2000
	minInterval = 1e6
	maxInterval = 1e15
)

// counts calls each for every value of every counter, counter by counter. Fresh is set for the first
// value of a counter. last returns the time at which a connection ends.
func (s *store) counts(last func(connection int) record.Time, each func(p place, at record.Time, value int64, fresh bool)) {
	c := counter{interval: s.interval(), each: each}
	for i := range s.counted.Len() {
		entry := s.counted.At(i)
		p := place{connection: int(binary.BigEndian.Uint32(entry)) - 1, track: track(entry[4])}
		at, by := unsortable(binary.BigEndian.Uint64(entry[5:])), int64(binary.BigEndian.Uint64(entry[21:]))
		if s.file.Err() != nil || int(p.track) >= len(tracks) {
			return
		}
		if at == stillOpen {
			at = last(p.connection)
		}
		c.add(p, at, by)
	}
	c.flush()
}

// interval returns the length of the intervals of rates, in nanoseconds.
func (s *store) interval() int64 {
	n := s.sorted.Len()
	if n == 0 {
		return minInterval
	}
	least := int64(unsortable(binary.BigEndian.Uint64(s.sorted.At(n-1)))-s.first()) / rateEvery
	interval := int64(minInterval)
	for interval < least && interval < maxInterval {
		interval *= 10
	}
	return interval
}

// counter makes values of the changes of counters, which come counter by counter, in the order of
// their times.
type counter struct {
	each     func(p place, at record.Time, value int64, fresh bool)
	interval int64 // of rates, in nanoseconds

	place
	begun bool
	at    record.Time // of the value that is to be passed on; of rates, the start of the interval
	value int64
	ready bool // there is a value to be passed on
	fresh bool
}

// add adds a change. Changes at one time become one value.
func (c *counter) add(p place, at record.Time, by int64) {
	if !c.begun || p != c.place {
		c.flush()
		c.place, c.begun, c.fresh, c.value = p, true, true, 0
	}
	kind := tracks[p.track].kind
	if c.ready {
		at = max(at, c.at) // the end of a connection may come before, if the clock was set back
	}
	if kind == rate {
		at -= record.Time(int64(at) % c.interval)
	}
	if c.ready && at != c.at {
		c.pass()
		if kind == rate {
			if next := c.at + record.Time(c.interval); next < at { // nothing moved for a while
				c.value = 0
				c.at = next
				c.pass()
			}
			c.value = 0
		}
	}
	if kind == gauge {
		c.value = by
	} else {
		c.value += by
	}
	c.at, c.ready = at, true
}

// pass passes the value on.
func (c *counter) pass() {
	value := c.value
	if tracks[c.track].kind == rate {
		value = int64(float64(value) * 1e9 / float64(c.interval))
	}
	c.each(c.place, c.at, value, c.fresh)
	c.fresh, c.ready = false, false
}

// flush passes the last value of a counter on. A rate ends with 0.
func (c *counter) flush() {
	if !c.begun || !c.ready {
		return
	}
	c.pass()
	if tracks[c.track].kind == rate {
		c.value, c.at = 0, c.at+record.Time(c.interval)
		c.pass()
	}
}

// encode appends the item in the form in which the temporary file has it.
func (v *item) encode(b []byte) []byte {
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = append(b, byte(v.track))
	for _, n := range []int64{int64(v.connection), int64(v.start), int64(v.end), v.id} {
		b = binary.AppendVarint(b, n)
	}
	text(v.name)
	text(v.category)
	b = binary.AppendUvarint(b, uint64(len(v.args)))
	for _, a := range v.args {
		text(a.key)
		text(a.text)
		b = binary.AppendVarint(b, a.n)
	}
	b = binary.AppendUvarint(b, uint64(len(v.parts)))
	for _, p := range v.parts {
		text(p.name)
		b = binary.AppendVarint(b, int64(p.end))
	}
	b = binary.AppendUvarint(b, uint64(len(v.flows)))
	for _, f := range v.flows {
		b = binary.AppendUvarint(b, f)
	}
	return b
}

// decode reads what encode wrote. It returns false if the bytes are damaged.
func (v *item) decode(b []byte) bool {
	r := blobReader{b: b}
	*v = item{args: v.args[:0], parts: v.parts[:0], flows: v.flows[:0]}
	v.track = track(r.byte())
	v.connection, v.start, v.end, v.id = int(r.number()), record.Time(r.number()), record.Time(r.number()), r.number()
	v.name, v.category = r.text(), r.text()
	for n := r.count(); n > 0; n-- {
		v.args = append(v.args, arg{r.text(), r.text(), r.number()})
	}
	for n := r.count(); n > 0; n-- {
		v.parts = append(v.parts, part{r.text(), record.Time(r.number())})
	}
	for n := r.count(); n > 0; n-- {
		v.flows = append(v.flows, r.unsigned())
	}
	return !r.bad && len(r.b) == 0 && int(v.track) < len(tracks)
}

// blobReader reads an encoded item.
type blobReader struct {
	b   []byte
	bad bool
}

func (r *blobReader) byte() (v byte) {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	v, r.b = r.b[0], r.b[1:]
	return v
}

func (r *blobReader) unsigned() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *blobReader) number() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count returns the number of elements of a list, each of which has at least one byte.
func (r *blobReader) count() int {
	v := r.unsigned()
	if v > uint64(len(r.b)) || v > math.MaxInt32 {
		r.bad, r.b = true, nil
		return 0
	}
	return int(v)
}

func (r *blobReader) text() string {
	n := r.count()
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}
