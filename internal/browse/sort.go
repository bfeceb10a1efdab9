package browse

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/internal/index"
	"github.com/rdmadump/rdmadump/internal/query"
)

// sorter is the order in which a list is shown.
type sorter struct {
	by         int // index in the orders of the source, or -1 for the usual order
	descending bool
	sorting    *job[ordering]
}

// sortsFirst says how to sort, when a list is to be reversed that is not sorted.
const sortsFirst = "> sorts by a column, then z reverses the order"

// status describes the order, if the list is sorted.
func (o *sorter) status(src *source) []part {
	if o.by < 0 {
		return nil
	}
	way := "smallest first"
	if o.descending {
		way = "largest first"
	}
	text := fmt.Sprintf("sorted by %s, %s", src.orders[o.by].heading, way)
	if o.sorting != nil {
		text += " (sorting"
		if done, _ := o.sorting.get(); done.of > 0 {
			text += fmt.Sprintf(", %d%%", int64(done.read)*100/int64(done.of))
		}
		text += ")"
	}
	return []part{{text: text}}
}

// key takes a key that changes the order: the next column to the left or right that the heading has, or its reverse. It
// reports false if there is no order to be reversed.
func (o *sorter) key(src *source, k, heading string, set func(by int, descending bool)) bool {
	if k == "z" {
		if o.by >= 0 {
			set(o.by, !o.descending)
		}
		return o.by >= 0
	}
	step, n := map[string]int{"<": -1, ">": 1}[k], len(src.orders)+1 // the last one is the usual order
	at := o.by
	for range n {
		at = (at+1+step+n)%n - 1
		if at < 0 || isColumn(heading, src.orders[at].heading) {
			break
		}
	}
	set(at, at >= 0 && src.orders[at].descending)
	return true
}

// isColumn reports whether a heading of columns has a name. Without rows there is no heading, and any column may come.
func isColumn(heading, name string) bool {
	return heading == "" || strings.Contains(" "+strip(heading)+" ", " "+name+" ")
}

// orderOf returns the order that a name of a field stands for, with a - in front for the largest first: its index in the
// orders of a source, which is a copy with one more if there was none.
func (src *source) orderOf(name string) (_ *source, by int, descending bool, err error) {
	if name == "" {
		return src, -1, false, nil
	}
	name, descending = strings.CutPrefix(name, "-")
	path, err := query.Resolve(name, src.fields)
	if err != nil {
		return nil, 0, false, err
	}
	if !query.Sortable(src.fields.Field(path)) {
		return nil, 0, false, fmt.Errorf("%s is an object and cannot be sorted", path)
	}
	if by = slices.IndexFunc(src.orders, func(o order) bool { return o.path == path }); by < 0 {
		copied := *src
		copied.orders = append(slices.Clone(src.orders), order{heading: path, path: path})
		src, by = &copied, len(src.orders)
	}
	return src, by, descending, nil
}

// ordering is the progress of sorting.
type ordering struct {
	numbers []int64 // the records in their order, when the work has ended
	read    int     // number of records whose keys were read
	of      int
}

// sorting is the work of sorting records.
type sorting struct {
	*source
	x          *index.Index
	by         order
	descending bool
	numbers    []int64        // of the records
	pass       func(ordering) // takes the progress; nil for none
}

// sorted returns the numbers of the records in their order.
func (s *sorting) sorted(ctx context.Context) ([]int64, error) {
	if s.by.row != nil || s.by.name != nil {
		return s.byRow(ctx)
	}
	return s.byRecord(ctx)
}

// step reports whether to go on, and passes the progress now and then.
func (s *sorting) step(ctx context.Context, read int) bool {
	if read%4096 != 0 {
		return true
	}
	if s.pass != nil {
		s.pass(ordering{read: read, of: len(s.numbers)})
	}
	return ctx.Err() == nil
}

// keyed is a record with the key that it is sorted by.
type keyed[K any] struct {
	key K
	n   int64 // number of the record
}

// inOrder returns the numbers of the records in the order of their keys. Records with the same key are in the order of
// the capture.
func inOrder[K any](ctx context.Context, s *sorting, key func(n int64) (K, error), compare func(a, b K) int) ([]int64, error) {
	list := make([]keyed[K], 0, len(s.numbers))
	for i, n := range s.numbers {
		if !s.step(ctx, i) {
			return nil, ctx.Err()
		}
		k, err := key(n)
		if err != nil {
			return nil, err
		}
		list = append(list, keyed[K]{k, n})
	}
	slices.SortFunc(list, func(a, b keyed[K]) int {
		if c := compare(a.key, b.key); c != 0 {
			return c
		}
		return cmp.Compare(a.n, b.n)
	})
	out := make([]int64, len(list))
	for i := range list {
		out[i] = list[i].n
	}
	return out, nil
}

// byRow sorts by numbers that rows have. A name counts as its rank among all names.
func (s *sorting) byRow(ctx context.Context) ([]int64, error) {
	r := s.x.Reader()
	defer r.Close()
	of := s.by.row
	if of == nil {
		ranks := ranked(s.x.Names())
		of = func(r *index.Row) int64 { return ranks[s.by.name(r)] }
	}
	key := func(n int64) (int64, error) {
		k := int64(null)
		if row, known := r.Row(n); known {
			k = of(&row)
		}
		switch {
		case k == null:
			k = -(null + 1) // the largest number
		case s.descending:
			k = -k
		}
		return k, nil
	}
	return inOrder(ctx, s, key, cmp.Compare[int64])
}

// ranked returns the rank of each name in the order of values; that of an empty name is null.
func ranked(names []string) []int64 {
	sorted := slices.Clone(names)
	slices.SortFunc(sorted, func(a, b string) int { return query.Order(a, b) })
	rank := make(map[string]int64, len(names))
	for i, name := range sorted {
		if i > 0 && query.Order(sorted[i-1], name) == 0 {
			rank[name] = rank[sorted[i-1]]
		} else {
			rank[name] = int64(i)
		}
	}
	ranks := make([]int64, len(names))
	for i, name := range names {
		if ranks[i] = rank[name]; name == "" {
			ranks[i] = null
		}
	}
	return ranks
}

// isEmpty reports whether a value is a list without elements.
func isEmpty(value any) bool {
	list, is := value.([]any)
	return is && len(list) == 0
}

// byRecord sorts by a field of the whole records.
func (s *sorting) byRecord(ctx context.Context) ([]int64, error) {
	r := s.x.Reader()
	defer r.Close()
	key := func(n int64) (any, error) {
		rec, err := s.get(r, n)
		if err != nil || rec == nil {
			return nil, err
		}
		k := query.SortKey(s.fields, rec, s.by.path)
		if isEmpty(k) {
			return nil, nil
		}
		return k, nil
	}
	return inOrder(ctx, s, key, func(a, b any) int {
		c := query.Order(a, b)
		if s.descending && a != nil && b != nil {
			return -c
		}
		return c
	})
}
