package disk

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"sort"
)

const (
	runBytes = 1 << 20 // records that are sorted in memory
	fanIn    = 32      // runs that are merged at once
)

// A Sorter sorts records of one length by their bytes. Numbers in the key of a record,
// which comes first, are therefore big-endian.
type Sorter struct {
	file    *File
	width   int
	records []byte // records that are not in a run yet
	runs    Runs[[]byte]
}

// NewSorter returns a Sorter for records of width bytes.
func NewSorter(file *File, width int) *Sorter {
	return &Sorter{file: file, width: width, runs: Runs[[]byte]{
		File:    file,
		Compare: func(a, b *[]byte) int { return bytes.Compare(*a, *b) },
		Read: func(r *bufio.Reader, record *[]byte) error {
			if *record == nil {
				*record = make([]byte, width)
			}
			_, err := io.ReadFull(r, *record)
			return err
		},
	}}
}

// Add adds a record.
func (s *Sorter) Add(record []byte) {
	if s.records = append(s.records, record[:s.width]...); len(s.records) >= runBytes {
		s.flush()
	}
}

// rows sorts records of width bytes in place.
type rows struct {
	data, swap []byte
	width      int
}

func (r rows) row(i int) []byte   { return r.data[i*r.width : (i+1)*r.width] }
func (r rows) Len() int           { return len(r.data) / r.width }
func (r rows) Less(i, j int) bool { return bytes.Compare(r.row(i), r.row(j)) < 0 }
func (r rows) Swap(i, j int) {
	copy(r.swap, r.row(i))
	copy(r.row(i), r.row(j))
	copy(r.row(j), r.swap)
}

// flush makes a run of the records in memory.
func (s *Sorter) flush() {
	if len(s.records) == 0 {
		return
	}
	if r := (rows{s.records, make([]byte, s.width), s.width}); !sort.IsSorted(r) {
		sort.Sort(r)
	}
	s.runs.Add(func(f *File) { f.Append(s.records) }) // The file keeps the error.
	s.records = s.records[:0]
}

// Table sorts all records and returns them as a table. If each is not nil, it is called
// for every record in order, and may change bytes of the record that are not in its key.
// The Sorter must not be used afterwards.
func (s *Sorter) Table(each func(record []byte)) *Table {
	s.flush()
	s.records = nil
	for s.runs.Len() > fanIn {
		var merged []run
		for part := range slices.Chunk(s.runs.list, fanIn) {
			merged = append(merged, s.merge(part, nil))
		}
		s.runs.list = merged
	}
	var all run
	if s.runs.Len() == 1 && each == nil {
		all = s.runs.list[0]
	} else if s.runs.Len() > 0 {
		all = s.merge(s.runs.list, each)
	}
	return &Table{file: s.file, width: s.width, record: make([]byte, s.width), at: all.at, n: all.length / int64(s.width)}
}

// merge merges runs into one.
func (s *Sorter) merge(runs []run, each func([]byte)) run {
	at := s.file.Size()
	s.file.fail(s.runs.merge(runs, func(record *[]byte) error {
		if each != nil {
			each(*record)
		}
		s.file.Append(*record)
		return s.file.err
	}))
	return run{at, s.file.Size() - at}
}

// A Table is a sorted series of records on disk.
type Table struct {
	file   *File
	width  int
	record []byte
	at, n  int64 // where the records begin in the file, and how many they are
	hint   int64 // result of the last Search
}

// Len returns the number of records.
func (t *Table) Len() int64 { return t.n }

// At returns record i, which is valid until the next call of At or Search.
func (t *Table) At(i int64) []byte {
	t.file.Read(t.record, t.at+i*int64(t.width))
	return t.record
}

// nearby is the number of records after the last result that Search looks at first.
const nearby = 4

// Search returns the index of the first record that is not less than a key, or Len if
// there is none. It is fast if the result is near that of the last search.
func (t *Table) Search(key []byte) int64 {
	less := func(i int64) bool { return bytes.Compare(t.At(i)[:len(key)], key) < 0 }
	from, to := int64(0), t.n
	if at := t.hint; at < t.n {
		if at == 0 || less(at-1) {
			from = at
			for i := at; i < min(at+nearby, t.n); i++ {
				if !less(i) {
					t.hint = i
					return i
				}
				from = i + 1
			}
		} else {
			to = at - 1
		}
	}
	i := from + int64(sort.Search(int(to-from), func(i int) bool { return !less(from + int64(i)) }))
	t.hint = i
	return i
}
