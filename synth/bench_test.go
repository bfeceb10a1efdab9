package synth_test

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/synth"
)

// BenchmarkFlood measures the parts of floods: connections, RPCs on one connection, segments
// in one Call.
func BenchmarkFlood(b *testing.B) {
	for transport, open := range map[string]func(*synth.Wire, synth.Options) *synth.Conn{"RoCE": (*synth.Wire).RoCE, "IWARP": (*synth.Wire).IWARP} {
		for name, flood := range map[string]func(w *synth.Wire, n int){
			"connections": func(w *synth.Wire, n int) {
				for range n {
					open(w, synth.Options{}).Connect()
				}
			},
			"calls": func(w *synth.Wire, n int) {
				c := open(w, synth.Options{})
				c.Connect()
				for range n {
					c.Client.Call(synth.Null())
				}
			},
			"reads": func(w *synth.Wire, n int) {
				c := open(w, synth.Options{})
				c.Connect()
				call, reply := synth.Read3(0, 8192).Offer(synth.Mem(0xa1, 8192)), synth.Read3Reply(data(8192))
				for range n {
					c.RPC(call, reply)
				}
			},
			"segments": func(w *synth.Wire, n int) {
				c := open(w, synth.Options{})
				c.Connect()
				segments := make([]rpcrdma.Segment, n)
				for i := range segments {
					segments[i] = synth.Mem(uint32(i), 4096)
				}
				c.Client.Call(synth.Null().Offer(segments...))
			},
		} {
			b.Run(transport+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				w := synth.New()
				frames := 0
				w.Sink = func(*synth.Frame) { frames++ }
				flood(w, b.N)
				b.ReportMetric(float64(frames)/b.Elapsed().Seconds(), "frames/s")
			})
		}
	}
}
