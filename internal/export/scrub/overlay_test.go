package scrub

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/wiremap"
)

// temporary returns an empty file.
func temporary(t testing.TB) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "learned"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestReaching verifies that a packet gets all overlays that contain some of its bytes,
// in order, and no others.
func TestReaching(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		s := newLearned(temporary(t))
		var naive []overlay
		for n := range 40 {
			g := wiremap.Segment{Handle: r.Uint32N(3), Offset: r.Uint64N(100) - 50, Length: r.Int64N(20)}
			s.addOverlay(7, []wiremap.Segment{g}, place(n+1))
			s.addOverlay(int64(6+2*r.IntN(2)), []wiremap.Segment{g}, 1000) // of other transactions
			naive = append(naive, overlay{Segment: g, at: place(n + 1)})
		}
		if err := s.finish(); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			handle, from := r.Uint32N(3), r.Int64N(120)-60
			to := from + r.Int64N(30)
			var want, got []place
			for _, o := range naive {
				if o.Handle == handle && max(int64(o.Offset), from) < min(int64(o.Offset)+o.Length, to) {
					want = append(want, o.at)
				}
			}
			for _, o := range s.reaching(7, handle, from, to) {
				if o.Length > 0 {
					got = append(got, o.at)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("bytes [%d, %d) of %d meet %v, want %v", from, to, handle, got, want)
			}
		}
	}
	many := newLearned(temporary(t))
	for n := range 30000 {
		many.addOverlay(7, []wiremap.Segment{{Handle: 1, Offset: uint64(n) * 8, Length: 4}}, 1)
	}
	if err := many.finish(); err != nil {
		t.Fatal(err)
	}
	if n := len(many.reaching(7, 1, 80000, 80004)); n != 1 {
		t.Errorf("a packet looks at %d overlays", n)
	}
}
