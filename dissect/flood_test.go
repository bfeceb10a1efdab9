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
	"github.com/rdmadump/rdmadump/synth"
)

// pours has handlers like those of the views.
var pours = []dissect.Handler{
	{Connection: func(*record.Connection) error { return nil }, Transaction: func(*record.Transaction) error { return nil }},
	{Packet: func(*record.Packet) error { return nil }},
}

// pour dissects frames.
func pour(frames []*synth.Frame, h dissect.Handler, o dissect.Options) (s *record.Summary, took time.Duration) {
	d := dissect.New(h, o)
	began := cpu()
	for f := range testkit.Made(frames) {
		d.Frame(f)
	}
	s, _ = d.Finish()
	return s, cpu() - began
}

// TestFloods: no flood costs much more than it should. The benchmark measures the exact cost, and
// whether it grows, on an idle machine.
func TestFloods(t *testing.T) {
	for i := range floods.All {
		t.Run(floods.All[i].Name, func(t *testing.T) {
			n := 4000
			if testkit.All() {
				n = 20000
			}
			frames, segments := floods.All[i].Frames(n)
			_, took := pour(frames, pours[0], dissect.Options{})
			_, shown := pour(frames, pours[1], dissect.Options{})
			_, rebuilt := pour(frames, pours[0], dissect.Options{Rebuild: true})
			allowed := time.Duration(len(frames))*60*time.Microsecond + time.Duration(segments)*10*time.Microsecond
			if took > allowed || shown > allowed/2 || rebuilt > 2*allowed {
				t.Errorf("%d packets, %d segments took %v, %v as packets, and %v with rebuilding; %v is allowed", len(frames), segments, took, shown, rebuilt, allowed)
			}
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
					_, d := pour(frames, pours[0], dissect.Options{})
					took += d
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
