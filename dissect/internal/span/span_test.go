package span

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSpans(t *testing.T) {
	for _, c := range []struct {
		name   string
		add    [][2]int64
		fresh  []int64
		prefix int64
		total  int64
	}{
		{"in order", [][2]int64{{0, 10}, {10, 20}}, []int64{10, 10}, 20, 20},
		{"again", [][2]int64{{0, 10}, {0, 10}}, []int64{10, 0}, 10, 10},
		{"overlap", [][2]int64{{0, 10}, {5, 15}}, []int64{10, 5}, 15, 15},
		{"hole filled", [][2]int64{{0, 10}, {20, 30}, {10, 20}}, []int64{10, 10, 10}, 30, 30},
		{"before", [][2]int64{{20, 30}, {0, 10}}, []int64{10, 10}, 10, 20},
		{"over several", [][2]int64{{2, 4}, {6, 8}, {0, 10}}, []int64{2, 2, 6}, 10, 10},
		{"nothing", [][2]int64{{5, 5}, {7, 3}}, []int64{0, 0}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Set
			for i, r := range c.add {
				if got := s.Add(r[0], r[1]); got != c.fresh[i] {
					t.Errorf("adding %v gave %d new, want %d", r, got, c.fresh[i])
				}
			}
			if s.Prefix() != c.prefix || s.Total() != c.total {
				t.Errorf("prefix %d, total %d; want %d, %d", s.Prefix(), s.Total(), c.prefix, c.total)
			}
		})
	}
}

// TestSpansOfAModel: a set holds the numbers that were added and not removed, in as few ranges as possible.
func TestSpansOfAModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s Set
		var model [24]bool
		for range 30 {
			lo, hi, remove := random.Int64N(24), random.Int64N(24), random.IntN(3) == 0
			fresh := int64(0)
			for n := lo; n < hi; n++ {
				if !remove && !model[n] {
					fresh++
				}
				model[n] = !remove
			}
			before := slices.Clone(s)
			if remove {
				s.Remove(lo, hi)
			} else if got := s.Add(lo, hi); got != fresh {
				t.Fatalf("adding %d to %d to %v: %d are new, want %d", lo, hi, before, got, fresh)
			}
			var want Set
			for n, is := range model {
				if is && (n == 0 || !model[n-1]) {
					want = append(want, Span{Lo: int64(n)})
				}
				if is {
					want[len(want)-1].Hi = int64(n + 1)
				}
			}
			prefix := int64(0)
			if model[0] {
				prefix = want[0].Hi
			}
			if !slices.Equal(s, want) || s.Prefix() != prefix {
				t.Fatalf("%d to %d of %v, removed %t: %v with the prefix %d, want %v with %d", lo, hi, before, remove, s, s.Prefix(), want, prefix)
			}
		}
	}
}

// TestSpansAreLimited: a range that would be one too many is not added, and others still grow.
func TestSpansAreLimited(t *testing.T) {
	var s Set
	for i := range int64(Max + 1) {
		if got, want := s.Add(10*i, 10*i+4), int64(4); (got == want) != (i < Max) {
			t.Fatalf("range %d: %d are new", i, got)
		}
	}
	if last := s[len(s)-1]; len(s) != Max || last != (Span{10*Max - 10, 10*Max - 6}) {
		t.Errorf("%d ranges, the last one is %v", len(s), last)
	}
	if got := s.Add(2, 6); got != 2 {
		t.Errorf("a range that grows has %d new ones, want 2", got)
	}
	if s.Remove(1, 2); len(s) != Max || s.Total() != 4*Max-3 {
		t.Errorf("what is left of a range that is cut in two is not its lower part: %d ranges of %d in all", len(s), s.Total())
	}
}
