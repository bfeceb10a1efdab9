package analyze

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// of returns durations.
func of(ns ...int64) *durations { return &durations{exact: slices.Clone(ns)} }

// counted returns the p-value of the permutation test of a percentile by trying all ways to divide
// the durations.
func counted(before, after []int64, percent int) float64 {
	all := slices.Concat(before, after)
	at := func(set []int64) int64 {
		slices.Sort(set)
		return set[rankOf(len(set), percent)-1]
	}
	distance := func(a, b []int64) int64 { d := at(a) - at(b); return max(d, -d) }
	observed := distance(slices.Clone(before), slices.Clone(after))
	ways, far := 0, 0
	for chosen := range 1 << len(all) {
		if bits.OnesCount(uint(chosen)) != len(before) {
			continue
		}
		var a, b []int64
		for i, ns := range all {
			if chosen>>i&1 == 1 {
				a = append(a, ns)
			} else {
				b = append(b, ns)
			}
		}
		if ways++; distance(a, b) >= observed {
			far++
		}
	}
	return float64(far) / float64(ways)
}

// TestChance: the p-value is that of all permutations, also if durations are equal.
func TestChance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		draw := func() (list []int64) {
			for range 1 + r.IntN(6) {
				list = append(list, int64(1+r.IntN(9)))
			}
			return list
		}
		before, after := draw(), draw()
		for _, percent := range []int{50, 90, 99} {
			a, b := of(before...), of(after...)
			a.quantiles()
			b.quantiles()
			if got, want := pool(a, b).chance(percent), counted(before, after, percent); math.Abs(got-want) > 1e-9 {
				t.Fatalf("p%d of %v and %v: %v, want %v", percent, before, after, got, want)
			}
		}
	}
}

// TestChanceOften: sets with the same distribution differ significantly as rarely as the level of
// significance says, and large sets take little time.
func TestChanceOften(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	draw := func(n int, scale float64) *durations {
		d := new(durations)
		for range n {
			d.add(int64(scale * math.Exp(r.NormFloat64()) * 1e6))
		}
		d.quantiles()
		return d
	}
	for _, n := range []int{30, 300} {
		for _, percent := range []int{50, 90, 99} {
			rare := 0
			for range 1000 {
				if pool(draw(n, 1), draw(n+7, 1)).chance(percent) < 0.05 {
					rare++
				}
			}
			if rare > 75 {
				t.Errorf("%d sets of %d: p < 0.05 for %d of 1000 sets with the same p%d", n, n, rare, percent)
			}
		}
	}
	for _, percent := range []int{50, 90, 99} {
		if p := pool(draw(40, 1), draw(40, 20)).chance(percent); p > 1e-3 {
			t.Errorf("p%d: 20 times as long has p %v", percent, p)
		}
	}
	began := time.Now()
	a, b := draw(1e6, 1), draw(1e6, 1.01)
	s := pool(a, b)
	if p := s.chance(50); p > 1e-5 {
		t.Errorf("1 percent more of a million: %v", p)
	}
	s.chance(99)
	t.Log(time.Since(began))
	a.coarsen()
	b.coarsen()
	if p := pool(a, b).chance(90); p < 0 || p > 1 {
		t.Error(p)
	}
}

// TestChanceOutlier: one outlier among thirty is chance.
func TestChanceOutlier(t *testing.T) {
	usual := make([]int64, 30)
	for i := range usual {
		usual[i] = int64(1e6 + i*1000)
	}
	slow := slices.Clone(usual)
	slow[29] = 2e9
	if p := pool(of(usual...), of(slow...)).chance(99); p < 0.4 {
		t.Errorf("an outlier: %v", p)
	}
}
