package dissect_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/floods"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
)

// pours has handlers like those of the views.
var pours = []dissect.Handler{
	{Connection: func(*record.Connection) error { return nil }, Transaction: func(*record.Transaction) error { return nil }},
	{Packet: func(*record.Packet) error { return nil }},
}

// TestFloods: the time to dissect a flood is proportional to its length. The benchmark measures the exact cost.
func TestFloods(t *testing.T) {
	n := 1000
	if testkit.All() {
		n = 20000
	}
	for i := range floods.All {
		t.Run(floods.All[i].Name, func(t *testing.T) {
			flood := func(h dissect.Handler, o dissect.Options) {
				t.Helper()
				testkit.Proportional(t, n, func(n int) func() {
					frames, _ := floods.All[i].Frames(n)
					return func() { look.Pour(frames, h, o) }
				})
			}
			flood(pours[0], dissect.Options{})
			flood(pours[1], dissect.Options{})
			flood(pours[0], dissect.Options{Rebuild: true})
		})
	}
}

// BenchmarkFloods reports the cost of a packet, or of a segment of a chunk list.
func BenchmarkFloods(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // This is the setting of the program.
	for i := range floods.All {
		for _, n := range []int{1000, 10000, 100000} {
			b.Run(fmt.Sprintf("%s/%d", floods.All[i].Name, n), func(b *testing.B) {
				frames, segments := floods.All[i].Frames(n)
				runtime.GC()
				var took time.Duration
				for b.Loop() {
					began := testkit.CPU()
					look.Pour(frames, pours[0], dissect.Options{})
					took += testkit.CPU() - began
				}
				ns := float64(took.Nanoseconds()) / float64(b.N)
				if segments > 0 {
					b.ReportMetric(ns/float64(segments), "ns/segment")
				} else {
					b.ReportMetric(ns/float64(len(frames)), "ns/packet")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
