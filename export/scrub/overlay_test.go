package scrub

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestReaching verifies that a packet looks at all overlays that contain its bytes,
// in order, and at few others.
func TestReaching(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var all overlays
		for n := range 40 {
			g := record.StreamSegment{Handle: r.Uint32N(3), Offset: r.Uint64N(100) - 50, Length: r.Int64N(20)}
			all.list = append(all.list, overlay{StreamSegment: g, nth: n})
			all.most = max(all.most, g.Length)
		}
		naive := slices.Clone(all.list)
		all.sort()
		for range 50 {
			handle, from := r.Uint32N(3), r.Int64N(120)-60
			to := from + r.Int64N(30)
			meets := func(o overlay) bool {
				return o.Handle == handle && max(int64(o.Offset), from) < min(int64(o.Offset)+o.Length, to)
			}
			var want, got []int
			for _, o := range naive {
				if meets(o) {
					want = append(want, o.nth)
				}
			}
			for _, o := range all.reaching(handle, from, to) {
				if meets(o) {
					got = append(got, o.nth)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("bytes [%d, %d) of %d meet %v, want %v", from, to, handle, got, want)
			}
		}
	}
	var many overlays
	for n := range 30000 {
		many.list = append(many.list, overlay{StreamSegment: record.StreamSegment{Handle: 1, Offset: uint64(n) * 8, Length: 4}, nth: n})
	}
	many.most = 4
	many.sort()
	if n := len(many.reaching(1, 80000, 80004)); n != 1 {
		t.Errorf("a packet looks at %d overlays", n)
	}
}
