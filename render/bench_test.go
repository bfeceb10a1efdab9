package render_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/header"
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

// TestColumnsOfSeveralRows: a column of a field that Wireshark names, and that several headers have, has the values of the field,
// and is appended without allocation.
func TestColumnsOfSeveralRows(t *testing.T) {
	var packets []*record.Packet
	for _, name := range []string{"rocev2-callback41.pcap.zst", "lab-iwarpcallback41.pcap.zst", "rocev2-errors.pcap.zst"} {
		run(t, name, dissect.Handler{Packet: func(p *record.Packet) error {
			packets = append(packets, p.Clone())
			return nil
		}}, dissect.Options{})
	}
	values := 0
	for name := range header.Wireshark() {
		columns, err := render.NewColumns([]string{name}, query.Packets)
		if err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 0, 1<<16)
		for _, p := range packets {
			want := string(render.AppendValue(nil, query.Packets.Raw(p, name))) + "\n"
			if line = columns.Append(line[:0], p); decimal(string(line)) != want {
				t.Fatalf("the column %s of packet %d is %q, and the value of the field %q", name, p.Number, line, want)
			}
			if len(want) > 1 {
				values++
			}
		}
		if n := testing.AllocsPerRun(1, func() {
			for _, p := range packets {
				line = columns.Append(line[:0], p)
			}
		}); n != 0 {
			t.Errorf("the column %s: %v allocations in %d lines", name, n, len(packets))
		}
	}
	if values < 1000 {
		t.Errorf("the columns have %d values", values)
	}
}

// decimal returns the text of a column with decimal numbers in place of those in hex.
func decimal(line string) string {
	list := strings.Split(strings.TrimSuffix(line, "\n"), ",")
	for i, value := range list {
		if digits, hex := strings.CutPrefix(value, "0x"); hex {
			n, _ := strconv.ParseUint(digits, 16, 64)
			list[i] = strconv.FormatUint(n, 10)
		}
	}
	return strings.Join(list, ",") + "\n"
}
