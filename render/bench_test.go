package render_test

import (
	"io"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/render"
)

func frames(b *testing.B, name string) (frames []capture.Frame, size int64) {
	b.Helper()
	f, err := capture.Open("../testdata/captures/" + name)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var frame capture.Frame
	for {
		if err := f.Next(&frame); err == io.EOF {
			return frames, size
		} else if err != nil {
			b.Fatal(err)
		}
		frame.Data = append([]byte(nil), frame.Data...)
		frames, size = append(frames, frame), size+int64(len(frame.Data))
	}
}

// BenchmarkPacketJSON makes a line of JSON of each packet.
func BenchmarkPacketJSON(b *testing.B) {
	all, size := frames(b, "rocev2-nfs41.pcap.zst")
	b.SetBytes(size)
	b.ReportAllocs()
	var line []byte
	for b.Loop() {
		d := dissect.New(dissect.Handler{Packet: func(p *dissect.Packet) { line = render.AppendPacketJSON(line[:0], p, false) }}, dissect.Options{})
		for i := range all {
			d.Frame(&all[i])
		}
	}
	b.ReportMetric(float64(len(all))*float64(b.N)/b.Elapsed().Seconds(), "packets/s")
}

// BenchmarkTransactionJSON makes a line of JSON of each transaction.
func BenchmarkTransactionJSON(b *testing.B) {
	all, size := frames(b, "rocev2-nfs41.pcap.zst")
	b.SetBytes(size)
	b.ReportAllocs()
	var line []byte
	records := 0
	for b.Loop() {
		d := dissect.New(dissect.Handler{Transaction: func(r *dissect.Transaction) {
			records++
			line, _ = render.AppendJSON(line[:0], r)
		}}, dissect.Options{})
		for i := range all {
			d.Frame(&all[i])
		}
		d.Finish()
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
}
