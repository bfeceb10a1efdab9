package rdma

import "hash/maphash"

// table finds values by numbers, as a map does. It is for tables that every packet of a
// flood looks something up in, puts something into, and takes something out of, while
// no cache holds them: a number is next to its value, and in one cache line with
// those that it could have been taken for. Its zero value is empty and ready.
type table[V any] struct {
	slots []slot[V] // a power of two of them, at most half of them in use
	used  int
	seed  maphash.Seed // nobody can make up numbers that all go to the same place
}

// slot is free while it has no value. Numbers that go to the same place stand in those
// that follow it, without a gap.
type slot[V any] struct {
	key   uint64
	value *V
}

// home is where a number goes, if it can.
func (t *table[V]) home(key uint64) int {
	return int(maphash.Comparable(t.seed, key)) & (len(t.slots) - 1)
}

// find is the value of a number, nil for one that has none.
func (t *table[V]) find(key uint64) *V {
	if t.used == 0 {
		return nil
	}
	return t.slots[t.place(key)].value
}

// place is the slot of a number, or the free one that it would get. There are slots.
func (t *table[V]) place(key uint64) int {
	i := t.home(key)
	for t.slots[i].value != nil && t.slots[i].key != key {
		i = (i + 1) & (len(t.slots) - 1)
	}
	return i
}

// put gives a number a value, which is not nil, in place of any that it had.
func (t *table[V]) put(key uint64, value *V) {
	if 2*(t.used+1) > len(t.slots) {
		t.grow()
	}
	s := &t.slots[t.place(key)]
	if s.value == nil {
		t.used++
	}
	*s = slot[V]{key, value}
}

func (t *table[V]) grow() {
	old := t.slots
	if old == nil {
		t.seed = maphash.MakeSeed()
	}
	t.slots = make([]slot[V], max(2*len(old), 16))
	for i := range old {
		if old[i].value != nil {
			t.slots[t.place(old[i].key)] = old[i]
		}
	}
}

// remove takes a number out, if that is its value.
func (t *table[V]) remove(key uint64, value *V) {
	if value == nil || t.find(key) != value {
		return
	}
	t.used--
	mask := len(t.slots) - 1
	free := t.place(key)
	for i := (free + 1) & mask; t.slots[i].value != nil; i = (i + 1) & mask {
		// What stands between its home and here may stand in the free slot as well.
		if home := t.home(t.slots[i].key); (i-home)&mask >= (i-free)&mask {
			t.slots[free] = t.slots[i]
			free = i
		}
	}
	t.slots[free] = slot[V]{}
}
