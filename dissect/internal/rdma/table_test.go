package rdma

import (
	"math/rand/v2"
	"testing"
)

// TestTable: a table says what a map says, whatever is put in and taken out.
func TestTable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, keys := range []uint64{3, 20, 1000, 1 << 40} {
		var table table[int]
		want := map[uint64]*int{}
		known := make([]uint64, 0, 1000)
		for i := range 200_000 {
			key := r.Uint64N(keys)
			if i%3 > 0 && len(known) > 0 { // one that may be there
				key = known[r.IntN(len(known))]
			} else if len(known) < cap(known) {
				known = append(known, key)
			} else {
				known[r.IntN(len(known))] = key
			}
			switch value := &i; r.IntN(5) {
			case 0, 1:
				table.put(key, value)
				want[key] = value
			case 2:
				table.remove(key, want[key])
				delete(want, key)
			case 3:
				table.remove(key, value) // it is not there
			}
			if got := table.find(key); got != want[key] {
				t.Fatalf("of %d keys, after %d steps: %d is %p, want %p", keys, i, key, got, want[key])
			}
			if table.used != len(want) {
				t.Fatalf("of %d keys, after %d steps: %d are in use, want %d", keys, i, table.used, len(want))
			}
		}
		for key, value := range want {
			if got := table.find(key); got != value {
				t.Errorf("of %d keys, at the end: %d is %p, want %p", keys, key, got, value)
			}
		}
	}
}

// TestTableSpread: numbers that follow each other, as queue pairs have them, or differ
// in high bits alone, are found with few looks.
func TestTableSpread(t *testing.T) {
	for name, key := range map[string]func(i uint64) uint64{
		"in a row":   func(i uint64) uint64 { return i },
		"routes":     func(i uint64) uint64 { return i << 24 },
		"far apart":  func(i uint64) uint64 { return i << 44 },
		"two in one": func(i uint64) uint64 { return i>>8<<32 | i&0xff },
	} {
		var table table[uint64]
		const n = 1 << 16
		for i := range uint64(n) {
			table.put(key(i), &i)
		}
		looks := 0
		for i := range uint64(n) {
			looks += (table.place(key(i))-table.home(key(i)))&(len(table.slots)-1) + 1
		}
		if looks > 4*n {
			t.Errorf("%s: %d looks for %d numbers", name, looks, n)
		}
	}
}
