package budget

import (
	"fmt"
	"strings"
	"testing"
)

// holder has pieces of state, the cheapest to lose first. It notes in evicted which of them are evicted.
type holder struct {
	Share
	name    string
	pieces  []int64 // bytes of each
	evicted *[]string
}

func (h *holder) Evict() (Kind, bool) {
	if len(h.pieces) == 0 {
		return 0, false
	}
	bytes := h.pieces[0]
	h.pieces = h.pieces[1:]
	h.Charge(-bytes)
	*h.evicted = append(*h.evicted, fmt.Sprint(h.name, bytes))
	return Calls, true
}

// TestEnforce: which state is evicted at a limit of 1000 bytes, and what is left. Each connection is opened in the order of its
// name, and then charged.
func TestEnforce(t *testing.T) {
	for _, c := range []struct {
		name          string
		a, b, c, d, e []int64
		then          func(b *Budget, of map[string]*holder)
		evicted       string
		left          int64
	}{
		{"below the limit", []int64{100}, []int64{250}, []int64{250}, []int64{250}, []int64{150}, nil, "", 1000},
		{"at the limit, the least recently used one", []int64{100, 50}, []int64{250}, []int64{250}, []int64{250}, []int64{101}, nil, "a100", 901},
		{"until it is enough", []int64{1, 49}, []int64{250}, []int64{250}, []int64{250}, []int64{1, 249}, nil, "a1 a49", 1000},
		{"then the next one", []int64{30}, []int64{40, 210}, []int64{250}, []int64{250}, []int64{250}, nil, "a30", 1000},
		{"more than a quarter", nil, []int64{50, 201}, nil, nil, nil, nil, "b50", 201},
		{"more than a quarter, twice", nil, []int64{1, 250, 20}, nil, nil, nil, nil, "b1 b250", 20},
		{"a quarter", nil, []int64{100, 150}, nil, nil, nil, nil, "", 250},
		{"used again", []int64{100}, []int64{250}, []int64{250}, []int64{250}, []int64{151}, func(b *Budget, of map[string]*holder) { b.Touch(&of["a"].Share) }, "b250", 751},
		{"the latest, used again", []int64{100}, []int64{250}, []int64{250}, []int64{250}, []int64{151}, func(b *Budget, of map[string]*holder) { b.Touch(&of["e"].Share) }, "a100", 901},
		{"in the middle, used again", []int64{1}, []int64{250}, []int64{250}, []int64{250}, []int64{250}, func(b *Budget, of map[string]*holder) {
			b.Touch(&of["b"].Share)
			b.Touch(&of["a"].Share)
		}, "c250", 751},
		{"all, after some were used again", []int64{1}, []int64{2}, []int64{3}, []int64{4}, []int64{5}, func(b *Budget, of map[string]*holder) {
			b.Touch(&of["c"].Share)
			b.Touch(&of["a"].Share)
			b.Limit = 0
		}, "b2 d4 e5 c3 a1", 0},
		{"all but a closed one", []int64{1}, []int64{2}, []int64{3}, []int64{4}, []int64{5}, func(b *Budget, of map[string]*holder) {
			b.Close(&of["c"].Share)
			b.Limit = 0
		}, "a1 b2 d4 e5", 0},
		{"closed", []int64{100}, []int64{250}, []int64{250}, []int64{250}, []int64{200}, func(b *Budget, of map[string]*holder) {
			b.Close(&of["b"].Share)
			b.Close(&of["b"].Share)
			b.Touch(&of["b"].Share)
		}, "", 800},
		{"closed with more than a quarter", nil, []int64{300}, nil, nil, []int64{100}, func(b *Budget, of map[string]*holder) { b.Close(&of["b"].Share) }, "", 100},
		{"another one closed", nil, []int64{300}, nil, nil, []int64{100}, func(b *Budget, of map[string]*holder) { b.Close(&of["e"].Share) }, "b300", 0},
		{"nothing to evict", []int64{100}, []int64{250}, []int64{250}, []int64{250}, []int64{250}, func(_ *Budget, of map[string]*holder) { of["a"].pieces = nil }, "", 1000},
		{"nothing left", []int64{100}, nil, nil, nil, nil, func(b *Budget, of map[string]*holder) {
			of["a"].pieces = nil
			of["a"].Charge(2000)
		}, "", 0},
	} {
		b := New(1000)
		var evicted []string
		var first []Kind
		b.OnFirst = func(k Kind) { first = append(first, k) }
		of := map[string]*holder{}
		for i, pieces := range [][]int64{c.a, c.b, c.c, c.d, c.e} {
			h := &holder{name: string(rune('a' + i)), pieces: pieces, evicted: &evicted}
			of[h.name] = h
			b.Open(&h.Share, h)
		}
		for _, name := range []string{"e", "d", "c", "b", "a"} {
			for _, bytes := range of[name].pieces {
				of[name].Charge(bytes)
			}
		}
		if c.then != nil {
			c.then(b, of)
		}
		b.Enforce()
		sum := int64(0)
		for _, h := range of {
			sum += h.Bytes()
		}
		if got := strings.Join(evicted, " "); got != c.evicted || b.used != c.left || sum != c.left {
			t.Errorf("%s: evicted %q, want %q; %d bytes are left, and %d of all connections, want %d", c.name, got, c.evicted, b.used, sum, c.left)
		}
		if n := int64(len(evicted)); b.Evicted[Calls] != n || len(first) != int(min(n, 1)) {
			t.Errorf("%s: %d evictions are counted, and %v told", c.name, b.Evicted[Calls], first)
		}
	}
}
