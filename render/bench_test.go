package render_test

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

// BenchmarkPacketJSON makes a line of JSON of each packet.
func BenchmarkPacketJSON(b *testing.B) {
	all, size := testkit.Frames(b, captures+"rocev2-nfs41.pcap.zst")
	b.SetBytes(size)
	b.ReportAllocs()
	var line []byte
	for b.Loop() {
		d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) { line = render.AppendPacketJSON(line[:0], p, false) }}, dissect.Options{})
		for i := range all {
			d.Frame(&all[i])
		}
	}
	b.ReportMetric(float64(len(all))*float64(b.N)/b.Elapsed().Seconds(), "packets/s")
}

// BenchmarkTransactionJSON makes a line of JSON of each transaction.
func BenchmarkTransactionJSON(b *testing.B) {
	all, size := testkit.Frames(b, captures+"rocev2-nfs41.pcap.zst")
	b.SetBytes(size)
	b.ReportAllocs()
	var line []byte
	records := 0
	for b.Loop() {
		d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) {
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
