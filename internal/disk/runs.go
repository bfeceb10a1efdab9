package disk

import (
	"bufio"
	"cmp"
	"io"
)

// Runs are sorted series of items in a File, which Merge passes in order.
type Runs[T any] struct {
	File    *File
	Compare func(a, b *T) int
	// Read decodes the next item, and may use the memory of the previous one again. It returns io.EOF at the end of a run.
	Read func(r *bufio.Reader, item *T) error
	list []run
}

// run is a part of the file.
type run struct{ at, length int64 }

// mergeBytes is the size of the buffers for reading all runs together.
const mergeBytes = 8 << 20

// Len returns the number of runs.
func (r *Runs[T]) Len() int { return len(r.list) }

// Add makes a run of what write appends to the file.
func (r *Runs[T]) Add(write func(*File)) error {
	at := r.File.Size()
	write(r.File)
	r.list = append(r.list, run{at, r.File.Size() - at})
	return r.File.err
}

// head is the next item of a run.
type head[T any] struct {
	item T
	run  int
	from *bufio.Reader
}

// Merge passes the items of all runs in order, until take returns an error. If items are equal, that of the earlier run comes first.
// An item is valid until take returns.
func (r *Runs[T]) Merge(take func(*T) error) error { return r.merge(r.list, take) }

func (r *Runs[T]) merge(runs []run, take func(*T) error) error {
	if err := r.File.Flush(); err != nil {
		return err
	}
	buffer := min(max(mergeBytes/max(len(runs), 1), 4<<10), 64<<10)
	var heads []*head[T]
	for i, one := range runs {
		h := &head[T]{run: i, from: bufio.NewReaderSize(io.NewSectionReader(r.File.raw, one.at, one.length), buffer)}
		if err := r.Read(h.from, &h.item); err == nil {
			heads = append(heads, h)
		} else if err != io.EOF {
			return err
		}
	}
	less := func(a, b *head[T]) bool { return cmp.Or(r.Compare(&a.item, &b.item), cmp.Compare(a.run, b.run)) < 0 }
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
	for len(heads) > 0 {
		h := heads[0]
		if err := take(&h.item); err != nil {
			return err
		}
		switch err := r.Read(h.from, &h.item); err {
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
