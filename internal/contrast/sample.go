package contrast

import (
	"encoding/binary"
	"slices"
	"strings"
)

// row is one subject: the answers to all questions, as numbers of entries of the columns.
type row struct {
	id, time int64
	of       int64 // number of the RPC that it is a retransmission of; 0 if it is none
	conn     int

	procedure int32 // number of the procedure, if the RPC has no operation; from 1
	hash      uint64
	entries   []uint32 // by column; a column that came later has no answer
	sampled   bool     // the reservoir of all subjects holds it
	sets      []int    // sets whose reservoirs hold it
	facets    facets
}

// entry is the answer of some subjects to one question.
type entry struct {
	values  []int32 // numbers of the values, each once; nil if the field is absent
	unknown bool
}

// column has the answers to one question.
type column struct {
	*question
	entries []entry
	values  []value
	byValue map[value]int32
	byEntry map[string]uint32
	replies bool // the field has values of Replies, too
}

func newColumn(q *question) *column {
	return &column{question: q, byValue: map[value]int32{}, byEntry: map[string]uint32{"": 0}, entries: []entry{{}}}
}

// These are the bytes that a value and an entry take in addition to the text of the value and the numbers of the entry.
const (
	valueBytes = 128
	entryBytes = 160
)

// memory is the number of bytes that the columns may still use.
type memory struct {
	left    int64
	scratch []byte
}

// enter returns the number of the entry with these values. If there is no memory for new ones, they are unknown.
func (c *column) enter(values []value, m *memory) uint32 {
	key := m.scratch[:0]
	defer func() { m.scratch = key }()
	if len(values) == 0 {
		return 0
	}
	var e entry
	for _, v := range values {
		n, known := c.byValue[v]
		if !known && v.kind != unknown && m.left > 0 {
			m.left -= valueBytes + int64(len(v.text))
			v.text = strings.Clone(v.text)
			n, known = int32(len(c.values)), true
			c.values = append(c.values, v)
			c.byValue[v] = n
		}
		if !known {
			e, key = entry{unknown: true}, append(key[:0], 0xff)
			break
		}
		key = binary.AppendUvarint(key, uint64(n))
	}
	if n, known := c.byEntry[string(key)]; known {
		return n
	}
	if !e.unknown && m.left <= 0 {
		return c.enter([]value{{kind: unknown}}, m)
	}
	m.left -= entryBytes + int64(len(key)) + 4*int64(len(values))
	if !e.unknown {
		for _, v := range values {
			if n := c.byValue[v]; !slices.Contains(e.values, n) {
				e.values = append(e.values, n)
			}
		}
	}
	n := uint32(len(c.entries))
	c.entries = append(c.entries, e)
	c.byEntry[string(key)] = n
	return n
}

// answer returns the entry of a row.
func (c *column) answer(r *row, index int) uint32 {
	if index < len(r.entries) {
		return r.entries[index]
	}
	return 0
}

// mix returns a hash of the number of a subject, which decides whether it is sampled. It depends on nothing else, so that
// the sample is the same in every run.
func mix(id int64) uint64 {
	x := uint64(id) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// reservoir holds the rows with the smallest hashes.
type reservoir struct {
	rows []*row // a heap, the largest hash first
	size int
	seen int64
}

// wants reports whether a row with this hash would be held.
func (v *reservoir) wants(hash uint64) bool { return len(v.rows) < v.size || hash < v.rows[0].hash }

// hold adds a row that is wanted, and passes the one that gives way to release.
func (v *reservoir) hold(r *row, release func(*row)) {
	v.rows = append(v.rows, r)
	for i := len(v.rows) - 1; i > 0; {
		up := (i - 1) / 2
		if v.rows[up].hash >= v.rows[i].hash {
			break
		}
		v.rows[up], v.rows[i] = v.rows[i], v.rows[up]
		i = up
	}
	v.shrink(v.size, release)
}

// shrink drops the rows with the largest hashes, until size are left.
func (v *reservoir) shrink(size int, release func(*row)) {
	v.size = size
	for len(v.rows) > size {
		last := len(v.rows) - 1
		dropped := v.rows[0]
		v.rows[0] = v.rows[last]
		v.rows = v.rows[:last]
		for i := 0; ; {
			largest := i
			for _, below := range [2]int{2*i + 1, 2*i + 2} {
				if below < last && v.rows[below].hash > v.rows[largest].hash {
					largest = below
				}
			}
			if largest == i {
				break
			}
			v.rows[i], v.rows[largest] = v.rows[largest], v.rows[i]
			i = largest
		}
		release(dropped)
	}
}
