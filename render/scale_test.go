package render

import (
	"math"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestScale: for any times, a column is within the drawing, and a later time is not further
// left.
func TestScale(t *testing.T) {
	const first, last = record.Time(math.MinInt64), record.Time(math.MaxInt64)
	for _, c := range []struct {
		name     string
		from, to record.Time
		columns  int
		at       map[record.Time]int
	}{
		{"plain", 100, 200, 10, map[record.Time]int{first: 0, 99: 0, 100: 0, 109: 0, 110: 1, 150: 5, 199: 9, 200: 9, 201: 9, last: 9}},
		{"equal", 7, 7, 10, map[record.Time]int{first: 0, 7: 0, 8: 9, last: 9}},
		{"backwards", 9, 5, 10, map[record.Time]int{5: 0, 9: 0, 10: 9}},
		{"584 years", first, last, 100, map[record.Time]int{first: 0, -1: 49, 0: 50, last - 1: 99, last: 99}},
		{"fewer nanoseconds than columns", 0, 3, 100, map[record.Time]int{0: 0, 1: 33, 2: 66, 3: 99}},
	} {
		s := newScale(c.from, c.to, c.columns)
		for at, want := range c.at {
			if got := s.column(at); got != want {
				t.Errorf("%s: %d is in column %d, want %d", c.name, at, got, want)
			}
		}
	}
}

func FuzzScale(f *testing.F) {
	f.Add(int64(0), int64(1), int64(2), int64(3), uint8(80))
	f.Fuzz(func(t *testing.T, from, to, a, b int64, columns uint8) {
		s := newScale(record.Time(from), record.Time(to), int(columns)+1)
		x, y := s.column(record.Time(min(a, b))), s.column(record.Time(max(a, b)))
		if x < 0 || x > y || y > int(columns) {
			t.Errorf("columns %d and %d of %d", x, y, int(columns)+1)
		}
	})
}

// TestNarrow: wrapping ends for any width, and a ladder can be narrower than its status.
func TestNarrow(t *testing.T) {
	for _, width := range []int{-5, 0, 1, 3} {
		lines := Wrap("a word", width)
		if got := strings.ReplaceAll(strings.Join(lines, ""), " ", ""); got != "aword" || len(lines) > 6 {
			t.Errorf("width %d: %q", width, lines)
		}
	}
	r := &record.Transaction{Status: record.Complete, Call: &record.Message{}, Reply: &record.Message{}, NFSStatus: record.Some("NFS4ERR_RECLAIM_CONFLICT"), LatencyNS: record.Some[int64](1500)}
	for width := narrowest; width <= 40; width++ {
		var b strings.Builder
		if err := Ladder(&b, NewTheme(false), width, r, true); err != nil || !strings.Contains(b.String(), "NFS4ERR_RECLAIM_CONFLICT") {
			t.Errorf("width %d: %v, %q", width, err, b.String())
		}
	}
}
