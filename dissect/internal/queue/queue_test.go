package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestQueue: elements leave a queue in the order in which they came. Its array does not grow while it is long enough, and nothing in
// it refers to what left.
func TestQueue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var q Queue[int]
	var model []int
	for i := range 5000 {
		if random.IntN(2) == 0 && len(model) > 0 || len(model) == 12 {
			q.Pop()
			model = model[1:]
		} else {
			head, full := q.head, len(q.items) == cap(q.items)
			if q.Push(i + 1); q.head != head && !full {
				t.Fatalf("step %d: elements move although there is room for another one", i)
			}
			model = append(model, i+1)
		}
		if q.Len() != len(model) || len(model) > 0 && q.First() != model[0] {
			t.Fatalf("step %d: %d elements, want %v", i, q.Len(), model)
		}
		all := q.items[:cap(q.items)]
		if !slices.Equal(all[q.head:len(q.items)], model) {
			t.Fatalf("step %d: the queue has %v, want %v", i, all[q.head:len(q.items)], model)
		}
		if rest := slices.Concat(all[:q.head], all[len(q.items):]); slices.ContainsFunc(rest, func(v int) bool { return v != 0 }) {
			t.Fatalf("step %d: what left is still in %v", i, rest)
		}
		if len(model) == 0 && q.head != 0 {
			t.Fatalf("step %d: an empty queue begins at %d", i, q.head)
		}
	}
	if cap(q.items) > 16 {
		t.Errorf("the array for 12 elements has %d", cap(q.items))
	}
}

// TestFreeList: the latest object that was kept is used next, and not twice.
func TestFreeList(t *testing.T) {
	var s FreeList[int]
	a, b, c := new(int), new(int), new(int)
	for _, v := range []*int{a, b, c} {
		s.Keep(v, 2)
	}
	for i, want := range []*int{b, a, nil, nil} {
		if got := s.Take(); got != want {
			t.Errorf("object %d is %p, want %p", i, got, want)
		}
	}
}

// TestRecent: the latest 64 XIDs are remembered.
func TestRecent(t *testing.T) {
	if (*Recent)(nil).Has(0) {
		t.Error("nothing has an XID")
	}
	r := new(Recent)
	for i := range uint32(100) {
		if r.Has(i) {
			t.Errorf("XID %d is there before it is added", i)
		}
		r.Add(i)
		if oldest := i - min(i, 63); !r.Has(i) || !r.Has(oldest) || oldest > 0 && r.Has(oldest-1) {
			t.Errorf("after XID %d: it is remembered: %t, XID %d: %t", i, r.Has(i), oldest, r.Has(oldest))
		}
	}
}

// TestBufferGrows: a buffer grows by half at least, up to a limit, and what it was is used again.
func TestBufferGrows(t *testing.T) {
	var b Buffers
	first := b.Add(nil, make([]byte, 1000))
	second := b.Add(first, make([]byte, 1000))
	if third := b.Take(1000); &third[:1][0] != &first[0] || &second[0] == &first[0] {
		t.Error("a buffer that was too short is not used again")
	}
	for _, c := range []struct{ has, more, want int }{
		{1024, 0, 1024}, {1024, 1, 1536}, {1024, 2000, 3072}, {2 << 20, 1, 3 << 20}, {6 << 20, 1, 8 << 20}, {9 << 20, 1, 9<<20 + 1},
	} {
		full := make([]byte, c.has)
		if got := cap(b.Add(full, make([]byte, c.more))); got != c.want {
			t.Errorf("%d bytes and %d more are in a buffer of %d, want %d", c.has, c.more, got, c.want)
		}
	}
}
