package dissect_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// otherTCP returns the frames of TCP connections that carry neither iWARP nor RPC.
func otherTCP(connections, segments int) (frames []capture.Frame) {
	r := rand.New(rand.NewPCG(1, 2))
	payload := make([]byte, 1400)
	for i := range payload {
		payload[i] = byte(r.Uint32())
	}
	w := synth.New()
	var all []*synth.Conn
	for i := range connections {
		port := []uint16{22, 80, 443, 3260, 8080}[i%5]
		client := netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
		c := w.IWARP(synth.Options{Client: synth.End{Addr: client}, Server: synth.End{Port: port}})
		c.Open()
		all = append(all, c)
	}
	for range segments {
		c := all[r.IntN(len(all))]
		from := []*synth.Side{c.Client, c.Server}[r.IntN(2)]
		from.TCP(0x18, payload[:[]int{0, 100, 512, 1400, 1400}[r.IntN(5)]])
	}
	for f := range testkit.Made(w.Frames) {
		frames = append(frames, *f)
	}
	return frames
}

// BenchmarkOtherTCP measures TCP traffic that is not RPC.
func BenchmarkOtherTCP(b *testing.B) {
	frames := otherTCP(2000, 50000)
	b.ReportAllocs()
	for b.Loop() {
		d := dissect.New(dissect.Handler{Transaction: func(*record.Transaction) error { return nil }}, dissect.Options{})
		for i := range frames {
			d.Frame(&frames[i])
		}
		d.Finish()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(frames)), "ns/packet")
}
