package disk

import (
	"bytes"
	"slices"
	"sort"
)

const (
	runBytes = 1 << 20 // records that are sorted in memory
	fanIn    = 32      // runs that are merged at once
	feed     = 1 << 14 // bytes of each run that are in memory while it is merged
)

// A Sorter sorts records of one length by their bytes. Numbers in the key of a record,
// which comes first, are therefore big-endian.
type Sorter struct {
	file    *File
	width   int
	records []byte // records that are not in a run yet
	runs    []run
}

// run is a series of sorted records in the file.
type run struct{ at, n int64 }

// NewSorter returns a Sorter for records of width bytes.
func NewSorter(file *File, width int) *Sorter { return &Sorter{file: file, width: width} }

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
	s.runs = append(s.runs, run{s.file.Append(s.records), int64(len(s.records) / s.width)})
	s.records = s.records[:0]
}

// Table sorts all records and returns them as a table. If each is not nil, it is called
// for every record in order, and may change bytes of the record that are not in its key.
// The Sorter must not be used afterwards.
func (s *Sorter) Table(each func(record []byte)) *Table {
	s.flush()
	s.records = nil
	for len(s.runs) > fanIn {
		var merged []run
		for part := range slices.Chunk(s.runs, fanIn) {
			merged = append(merged, s.merge(part, nil))
		}
		s.runs = merged
	}
	t := &Table{file: s.file, width: s.width, record: make([]byte, s.width)}
	if len(s.runs) == 1 && each == nil {
		t.run = s.runs[0]
	} else if len(s.runs) > 0 {
		t.run = s.merge(s.runs, each)
	}
	return t
}

// source reads a run while it is merged.
type source struct {
	run
	records []byte
}

// next makes sure that the source has a record in memory, and reports whether there is
// one.
func (s *source) next(f *File, width int) bool {
	if len(s.records) == 0 && s.n > 0 {
		n := min(s.n, max(int64(feed/width), 1))
		s.records = slices.Grow(s.records[:0], int(n)*width)[:int(n)*width]
		f.readRaw(s.records, s.at)
		s.at, s.n = s.at+n*int64(width), s.n-n
	}
	return len(s.records) > 0
}

// merge merges runs into one.
func (s *Sorter) merge(runs []run, each func([]byte)) run {
	s.file.Flush()
	var sources []*source
	out := run{at: s.file.Size()}
	for _, r := range runs {
		sources = append(sources, &source{run: r})
	}
	sources = slices.DeleteFunc(sources, func(r *source) bool { return !r.next(s.file, s.width) })
	for len(sources) > 0 && s.file.err == nil {
		first := 0
		for i := 1; i < len(sources); i++ {
			if bytes.Compare(sources[i].records[:s.width], sources[first].records[:s.width]) < 0 {
				first = i
			}
		}
		from := sources[first]
		record := from.records[:s.width]
		if each != nil {
			each(record)
		}
		s.file.Append(record)
		out.n++
		if from.records = from.records[s.width:]; !from.next(s.file, s.width) {
			sources = slices.Delete(sources, first, first+1)
		}
	}
	return out
}

// A Table is a sorted series of records on disk.
type Table struct {
	file   *File
	width  int
	record []byte
	run
	hint int64 // result of the last Search
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
