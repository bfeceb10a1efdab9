package browse

import (
	"cmp"
	"context"
	"slices"

	"github.com/rdmadump/rdmadump/index"
	"github.com/rdmadump/rdmadump/query"
)

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

// numbered is a number that is the key of a record, and the number of the record.
type numbered struct{ key, n int64 }

// byRow sorts by numbers that rows have. A name counts as its rank among all names.
func (s *sorting) byRow(ctx context.Context) ([]int64, error) {
	r := s.x.Reader()
	defer r.Close()
	key := s.by.row
	if key == nil {
		ranks := ranked(s.x.Names())
		key = func(r *index.Row) int64 { return ranks[s.by.name(r)] }
	}
	keys := make([]numbered, 0, len(s.numbers))
	for i, n := range s.numbers {
		if !s.step(ctx, i) {
			return nil, ctx.Err()
		}
		k := int64(null)
		if row, known := r.Row(n); known {
			k = key(&row)
		}
		switch {
		case k == null:
			k = -(null + 1) // the largest number
		case s.descending:
			k = -k
		}
		keys = append(keys, numbered{k, n})
	}
	slices.SortFunc(keys, func(a, b numbered) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Compare(a.n, b.n)
	})
	out := make([]int64, len(keys))
	for i := range keys {
		out[i] = keys[i].n
	}
	return out, nil
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

// valued is a value that is the key of a record, and the number of the record.
type valued struct {
	value any
	n     int64
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
	keys := make([]valued, 0, len(s.numbers))
	for i, n := range s.numbers {
		if !s.step(ctx, i) {
			return nil, ctx.Err()
		}
		rec, err := s.get(r, n)
		if err != nil {
			return nil, err
		}
		k := valued{n: n}
		if rec != nil {
			if k.value = query.SortKey(s.fields, rec, s.by.path); isEmpty(k.value) {
				k.value = nil
			}
		}
		keys = append(keys, k)
	}
	sign := 1
	if s.descending {
		sign = -1
	}
	slices.SortFunc(keys, func(a, b valued) int {
		c := query.Order(a.value, b.value)
		if a.value != nil && b.value != nil {
			c *= sign
		}
		if c == 0 {
			c = cmp.Compare(a.n, b.n)
		}
		return c
	})
	out := make([]int64, len(keys))
	for i := range keys {
		out[i] = keys[i].n
	}
	return out, nil
}
