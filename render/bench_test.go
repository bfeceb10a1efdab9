package render_test

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

// BenchmarkPacketJSON appends each packet as a line of JSON.
func BenchmarkPacketJSON(b *testing.B) {
	all, size := testkit.Frames(b, captures+"rocev2-nfs41.pcap.zst")
	b.SetBytes(size)
	b.ReportAllocs()
	var line []byte
	for b.Loop() {
		d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
			line = render.AppendPacketJSON(line[:0], p, false)
			return nil
		}}, dissect.Options{})
		for i := range all {
			d.Frame(&all[i])
		}
	}
	b.ReportMetric(float64(len(all))*float64(b.N)/b.Elapsed().Seconds(), "packets/s")
}

// BenchmarkTransactionJSON appends each transaction as a line of JSON.
func BenchmarkTransactionJSON(b *testing.B) {
	var records []*record.Transaction
	run(b, "rocev2-nfs41.pcap.zst", dissect.Handler{Transaction: func(r *record.Transaction) error {
		records = append(records, r.Clone())
		return nil
	}})
	size := 0
	var line []byte
	for _, r := range records {
		line = render.AppendJSON(line[:0], r)
		size += len(line)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for _, r := range records {
			line = render.AppendJSON(line[:0], r)
		}
	}
	b.ReportMetric(float64(len(records))*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// typicalColumns returns frequently used columns, and the packets of a capture with the parts
// that these columns need.
func typicalColumns(t testing.TB) (columns *render.Columns, packets []*record.Packet) {
	t.Helper()
	columns, err := render.NewColumns([]string{
		"bth.opcode", "bth.dest_qpn", "bth.psn", "reth.virtual_address", "reth.r_key", "reth.dma_length", "aeth.syndrome",
		"rpcrdma.xid", "rpcrdma.credits", "rpcrdma.rdma_proc", "segment.handle", "segment.length", "segment.offset",
	}, query.Packets)
	if err != nil {
		t.Fatal(err)
	}
	run(t, "rocev2-nfs41.pcap.zst", dissect.Handler{Packet: func(p *record.Packet) error {
		packets = append(packets, p.Clone())
		return nil
	}}, dissect.Options{Only: columns.Only()})
	return columns, packets
}

// BenchmarkColumns appends the columns of each packet.
func BenchmarkColumns(b *testing.B) {
	columns, packets := typicalColumns(b)
	b.ReportAllocs()
	var line []byte
	for b.Loop() {
		for _, p := range packets {
			line = columns.Append(line[:0], p)
		}
	}
	b.ReportMetric(float64(len(packets))*float64(b.N)/b.Elapsed().Seconds(), "packets/s")
}

// TestColumnsAllocateNothing: columns are appended without allocation, because they are
// appended for each packet.
func TestColumnsAllocateNothing(t *testing.T) {
	columns, packets := typicalColumns(t)
	line := make([]byte, 0, 1<<16)
	if n := testing.AllocsPerRun(1, func() {
		for _, p := range packets {
			line = columns.Append(line[:0], p)
		}
	}); n != 0 || len(packets) == 0 {
		t.Errorf("%v allocations in %d lines", n, len(packets))
	}
}
