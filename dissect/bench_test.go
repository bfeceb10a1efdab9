package dissect_test

import (
	"bytes"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// whole lists the captures that benchmarks read: data in large packets, and many small RPCs.
var whole = []string{"rocev2-long42.pcap.zst", "rocev2-nfs41.pcap.zst", "rocev2-loss42.pcap.zst"}

// overFrames measures a function over frames in memory: packets and bytes per second, and
// allocations.
func overFrames(b *testing.B, pass func(b *testing.B, frames []capture.Frame)) {
	for _, name := range whole {
		frames, size := testkit.Frames(b, captures+name)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				pass(b, frames)
			}
			b.ReportMetric(float64(len(frames))*float64(b.N)/b.Elapsed().Seconds(), "packets/s")
		})
	}
}

// BenchmarkDissector measures the dissection of frames into transactions.
func BenchmarkDissector(b *testing.B) {
	overFrames(b, func(b *testing.B, frames []capture.Frame) {
		transactions := 0
		d := dissect.New(dissect.Handler{Transaction: func(*record.Transaction) error {
			transactions++
			return nil
		}}, dissect.Options{})
		for i := range frames {
			d.Frame(&frames[i])
		}
		d.Finish()
		if transactions == 0 {
			b.Fatal("no transactions")
		}
	})
}

// BenchmarkDescribe measures the complete description of each packet.
func BenchmarkDescribe(b *testing.B) {
	overFrames(b, func(b *testing.B, frames []capture.Frame) {
		packets := 0
		d := dissect.New(dissect.Handler{Packet: func(*record.Packet) error {
			packets++
			return nil
		}}, dissect.Options{})
		for i := range frames {
			d.Frame(&frames[i])
		}
		if packets != len(frames) {
			b.Fatalf("%d packets of %d", packets, len(frames))
		}
	})
}

// BenchmarkFile measures reading and dissecting a whole file in memory.
func BenchmarkFile(b *testing.B) {
	for _, name := range whole {
		raw := testkit.Decompressed(b, captures+name)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			packets := int64(0)
			for b.Loop() {
				f, err := capture.NewFile(name, bytes.NewReader(raw))
				if err != nil {
					b.Fatal(err)
				}
				d := dissect.New(dissect.Handler{Transaction: func(*record.Transaction) error { return nil }}, dissect.Options{})
				s, err := d.Run(b.Context(), f)
				if err != nil {
					b.Fatal(err)
				}
				packets += s.Packets
			}
			b.ReportMetric(float64(packets)/b.Elapsed().Seconds(), "packets/s")
		})
	}
}
