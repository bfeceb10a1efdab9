package show

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/query"
)

// TestSorter: records that do not fit in memory come back in the same order as those that do,
// with keys of every type; equal keys keep their order, and null comes last.
func TestSorter(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	random := rand.New(rand.NewPCG(1, 2))
	kinds := map[string]func() any{
		"int":   func() any { return random.IntN(500) - 250 },
		"float": func() any { return random.NormFloat64() },
		"uint":  func() any { return random.Uint64() | 1<<63 },
		"both": func() any { // This is a field whose values do not all fit in an int.
			if v := random.Uint64(); v > math.MaxInt64 {
				return v
			}
			return random.IntN(20)
		},
		"text": func() any { return strings.Repeat("x", random.IntN(4)) + fmt.Sprint(random.IntN(50)) },
		"bool": func() any { return random.IntN(2) == 0 },
		"time": func() any { return time.Unix(0, random.Int64N(1000)).UTC() },
		"list": func() any { return []any{random.IntN(10), 5} },
		"null": func() any { return nil },
		"mixed": func() any {
			if random.IntN(3) == 0 {
				return nil
			}
			return random.IntN(20)
		},
	}
	for name, key := range kinds {
		const n = 1200
		keys := make([]any, n)
		want := make([]int, n)
		for i := range keys {
			keys[i], want[i] = key(), i
		}
		for _, o := range []flags.Order{{Path: "x", Descending: false, Top: 0}, {Path: "x", Descending: true, Top: 0}, {Path: "x", Descending: false, Top: 7}, {Path: "x", Descending: true, Top: 1}, {Path: "x", Descending: false, Top: 1000}, {Path: "x", Descending: true, Top: n * 3}} {
			want := slices.Clone(want)
			slices.SortStableFunc(want, func(a, b int) int {
				if o.Descending && keys[a] != nil && keys[b] != nil {
					return query.Order(keys[b], keys[a])
				}
				return query.Order(keys[a], keys[b])
			})
			if o.Top > 0 {
				want = want[:min(o.Top, n)]
			}
			for _, limit := range []int{1 << 30, 20000, 1} {
				s := newSorter(o)
				s.limit = limit
				most := 0
				for i, key := range keys {
					if s.hopeless(key) {
						continue
					}
					if err := s.take(line{key: sortKey(key), text: fmt.Appendf(nil, "line %d", i)}); err != nil {
						t.Fatal(err)
					}
					most = max(most, s.bytes)
				}
				var got []string
				if err := s.each(func(text []byte, _ any) error {
					got = append(got, string(text))
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				s.close()
				if len(got) != len(want) {
					t.Fatalf("%s %+v, limit %d: %d lines, want %d", name, o, limit, len(got), len(want))
				}
				for i, n := range want {
					if got[i] != fmt.Sprintf("line %d", n) {
						t.Fatalf("%s %+v, limit %d: %s at %d, want line %d", name, o, limit, got[i], i, n)
					}
				}
				if most > limit {
					t.Errorf("%s %+v: %d bytes held, %d allowed", name, o, most, limit)
				}
			}
		}
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("%d temporary files are left", len(left))
	}
}
