package export_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/export"
)

// heap returns the number of bytes on the heap.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// counter counts bytes.
type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}

// exported exports n RPCs of one connection, and returns the memory that the exporter
// takes at the end of the capture, and the number of bytes of output.
func exported(t testing.TB, n int64) (memory, written int64) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "messages"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	before := heap()
	e := export.NewRPCTCP(f)
	h := e.Handler()
	r := &record.Transaction{Call: &record.Message{}, Reply: &record.Message{}, Direction: record.Forward, Status: record.Complete}
	call, reply := &record.Payload{Data: make([]byte, 120)}, &record.Payload{Data: make([]byte, 80)}
	for i := range n {
		r.ID, r.XID = i+1, record.Hex32(i)
		r.Call.Packet, r.Call.Time = 4*i+1, record.Time(4000*i)
		r.Reply.LastPacket, r.Reply.LastTime = 4*i+300, record.Time(4000*i+300_000)
		if err := h.Payload(r, call, reply); err != nil {
			t.Fatal(err)
		}
	}
	memory = heap() - before
	var out counter
	report, err := e.Write(&out, "test")
	if err != nil || report.Calls != n || report.Replies != n || report.Connections != 1 {
		t.Fatalf("the report is %q, error %v; want %d Calls and Replies of one connection", report.String(), err, n)
	}
	memory = max(memory, heap()-before)
	runtime.KeepAlive(e)
	return memory, out.n
}

// TestRPCTCPMemory verifies that the export as TCP keeps nothing in memory for each RPC:
// 300,000 RPCs of one connection take some megabytes, as fewer do.
func TestRPCTCPMemory(t *testing.T) {
	few, _ := exported(t, 30_000)
	memory, written := exported(t, 300_000)
	if memory > 16<<20 || memory > few+8<<20 {
		t.Errorf("%d bytes of memory, %d for a tenth of the RPCs", memory, few)
	}
	if min := int64(300_000 * (120 + 80 + 2*4 + 2*54)); written < min {
		t.Errorf("%d bytes were written, want %d", written, min)
	}
}

// BenchmarkRPCTCP exports RPCs of one connection.
func BenchmarkRPCTCP(b *testing.B) {
	memory, _ := exported(b, int64(b.N))
	b.ReportMetric(float64(memory), "heap-bytes")
}
