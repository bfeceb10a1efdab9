package analyze

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// moving returns an RPC that moved bytes in chunks; if chunk is 0, the results say that it wrote 9.
func moving(client, operation string, call, reply record.Time, chunk uint32) *record.Transaction {
	r := &record.Transaction{
		Status: record.Complete, Operation: record.Some(operation), Client: record.Some(client), Server: record.Some("s"),
		Program: record.Some[uint32](programNFS), Procedure: record.Some[uint32](1), Version: record.Some[uint32](4), MinorVersion: record.Some[uint32](2), Credential: record.Some("AUTH_SYS"),
		NFSStatus: record.Some("NFS4_OK"), RPCStatus: record.Some("SUCCESS"),
		Call:  &record.Message{Time: call, PayloadBytes: record.Some[int64](200)},
		Reply: &record.Message{Time: reply, PayloadBytes: record.Some[int64](100)},
	}
	switch {
	case chunk == 0 && operation == "WRITE":
		r.BytesWritten = record.Some[int64](9)
	case chunk > 0 && operation == "READ":
		r.WriteChunks = []record.WriteChunk{{Segments: []record.WriteSegment{{Length: 2 * chunk, ReturnedLength: record.Some(chunk)}}}}
	case chunk > 0:
		r.ReadChunks = []record.ReadChunk{{Position: 180, Segments: []record.Segment{{Length: chunk}}}}
	}
	return r
}

// TestThroughput checks sums, the mean, and the busiest second and client.
func TestThroughput(t *testing.T) {
	c := NewCollector()
	if o := NewCollector().Finish(&record.Summary{}); o.Throughput.Known() || len(o.Mounted) != 0 {
		t.Errorf("without RPCs: %+v, %+v; want nothing", o.Throughput, o.Mounted)
	}
	failed := moving("a", "READ", 0, 1e9, 1<<20)
	failed.NFSStatus = record.Some("NFS4ERR_IO")
	asked := moving("a", "READ", 10e9, 10.5e9, 1000)
	asked.BytesAsked = record.Some[int64](4096)
	for i, r := range []*record.Transaction{
		asked, moving("a", "READ", 10e9, 10.6e9, 3000), moving("b", "WRITE", 11e9, 12e9, 2000), moving("b", "WRITE", 12e9, 14e9, 0), moving("b", "GETATTR", 12e9, 20e9, 0), failed,
	} {
		r.Connection = i % 2
		c.Transaction(r)
	}
	for id := range 2 {
		c.Connection(&record.Connection{ID: id, PathMTU: record.Some(4096), Credits: record.Some(record.CreditPair{Forward: record.Credits{Granted: record.Some(uint32(32 * (id + 1)))}})})
	}
	o := c.Finish(&record.Summary{})
	got, _ := o.Throughput.Get()
	want := Throughput{BytesRead: 4000, BytesWritten: 2009, MeanBytesPerS: 1502, PeakBytesPerS: 4000, PeakAt: 10e9, BusiestClient: record.Some("a"), BusiestBytes: 4000, SpanNS: 4e9}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if len(o.Mounted) != 2 {
		t.Fatalf("%d mounts, want those of two clients: %+v", len(o.Mounted), o.Mounted)
	}
	a, b := o.Mounted[0], o.Mounted[1]
	if a.Client != record.Some("a") || a.NFSVersion != "4.2" || a.Security != "AUTH_SYS" || a.ReadBytesMax != record.Some[int64](3000) || a.ReadCountMax != record.Some[int64](4096) || a.WriteBytesMax.Known() || a.Connections != 2 {
		t.Errorf("%+v, want NFS 4.2 of a with two connections and READs of 3000 bytes", a)
	}
	if b.WriteBytesMax != record.Some[int64](2000) || b.ReadBytesMax.Known() || b.ReadCountMax.Known() {
		t.Errorf("%+v, want WRITEs of 2000 bytes of b", b)
	}
}

// TestThroughputOfLongCaptures checks that the busiest second is found although only some seconds are remembered.
func TestThroughputOfLongCaptures(t *testing.T) {
	var all throughput
	for i := range record.Time(3 * maxSeconds) {
		size := uint32(100)
		if i == 17 {
			size = 5000
		}
		all.add(moving("a", "READ", i*1e9, i*1e9+1, size))
	}
	if got, _ := all.finish(0).Get(); got.PeakBytesPerS != 5000 || got.PeakAt != 17e9 || len(all.seconds) > maxSeconds {
		t.Errorf("%+v, %d seconds; want 5000 bytes in second 17", got, len(all.seconds))
	}
}

// TestBusiestSecond: the busiest second is the one that rates of one second have, whatever the clock shows.
func TestBusiestSecond(t *testing.T) {
	rpcs := []*record.Transaction{
		moving("a", "READ", 10.1e9, 10.6e9, 1000), moving("a", "READ", 10.7e9, 11.2e9, 3000), moving("a", "READ", 11.3e9, 11.7e9, 2000),
	}
	c := NewCollector()
	const begin = 10.4e9
	c.Begin(begin)
	for _, r := range rpcs {
		c.Transaction(r)
	}
	o := c.Finish(&record.Summary{})
	got, _ := o.Throughput.Get()
	if got.PeakBytesPerS != 4000 || got.PeakAt != begin {
		t.Errorf("%d bytes at %v, want 4000 in the second from %v", got.PeakBytesPerS, got.PeakAt, record.Time(begin))
	}
}
