package record_test

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestSub: two times may be further apart than a duration can represent.
func TestSub(t *testing.T) {
	const first, last = record.Time(math.MinInt64), record.Time(math.MaxInt64)
	for _, c := range []struct {
		a, b record.Time
		want int64
	}{
		{5, 3, 2},
		{3, 5, -2},
		{last, last, 0},
		{last, 0, math.MaxInt64},
		{last, -1, math.MaxInt64},
		{last, first, math.MaxInt64},
		{first, last, math.MinInt64},
		{first, 1, math.MinInt64},
		{first, 0, math.MinInt64},
		{0, first, math.MaxInt64},
		{-1, first, math.MaxInt64},
	} {
		if got := c.a.Sub(c.b); got != c.want {
			t.Errorf("%d less %d is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestTimeText(t *testing.T) {
	for _, ns := range []int64{0, 1, -1, 1795236900197912000, 1795236900999999999, -86400e9 - 1, 4102444800e9, 951782400e9} {
		want := time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000000Z")
		if got := record.Time(ns).String(); got != want {
			t.Errorf("%d is %s, want %s", ns, got, want)
		}
	}
}

// TestBytes: the size of a record includes its lists.
func TestBytes(t *testing.T) {
	bare := (&record.Transaction{}).CloneBytes()
	full := (&record.Transaction{
		Timeline: make([]record.Event, 3), Operations: make([]string, 2), ReplyChunk: &record.WriteChunk{Segments: make([]record.WriteSegment, 4)},
		Waits: []record.Wait{{Packets: make([]int64, 5)}},
	}).CloneBytes()
	want := 3*unsafe.Sizeof(record.Event{}) + 2*unsafe.Sizeof("") + unsafe.Sizeof(record.WriteChunk{}) + 4*unsafe.Sizeof(record.WriteSegment{}) + unsafe.Sizeof(record.Wait{}) + 5*8
	if full-bare != int(want) {
		t.Errorf("the lists take %d bytes, want %d", full-bare, want)
	}
	if n := (&record.Connection{Ended: record.Some(record.Ended{XIDs: make([]record.Hex32, 7)})}).CloneBytes() - (&record.Connection{}).CloneBytes(); n != 7*4 {
		t.Errorf("seven XIDs take %d bytes", n)
	}
}

// TestPlural: a number has its noun in the singular or in the plural.
func TestPlural(t *testing.T) {
	for _, c := range []struct {
		n          int64
		noun, want string
	}{
		{0, "packet", "0 packets"},
		{1, "packet", "1 packet"},
		{2, "packet", "2 packets"},
		{-1, "packet", "-1 packets"},
		{2, "Reply", "2 Replies"},
		{1, "Reply", "1 Reply"},
		{3, "latency", "3 latencies"},
		{2, "delay", "2 delays"},
		{2, "y", "2 ys"},
	} {
		if got := record.Plural(c.n, c.noun); got != c.want {
			t.Errorf("%d times %q is %q, want %q", c.n, c.noun, got, c.want)
		}
	}
}
