package span

import "testing"

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
