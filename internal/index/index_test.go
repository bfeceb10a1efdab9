package index

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// captures returns the captures of the project.
func captures(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../testdata/captures/*.pcap*")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	return testkit.Short(t, paths)
}

// indexed returns the index of a capture.
func indexed(t testing.TB, path string, o Options) *Index {
	t.Helper()
	x := New(o)
	t.Cleanup(func() { x.Close() })
	summary, err := x.Run(context.Background(), testkit.Open(t, path), dissect.Options{})
	if broken := (*capture.BrokenError)(nil); err != nil && !errors.As(err, &broken) {
		t.Fatal(err)
	}
	if s := x.State(); s.Err != err || s.Summary != summary {
		t.Errorf("%s: the state has %v, %v; want %v, %v", path, s.Err, s.Summary, err, summary)
	}
	return x
}

// TestRecords: each record that is read from the index is the one that the dissector passed on,
// with a large and with a small limit of its memory.
func TestRecords(t *testing.T) {
	for _, path := range captures(t) {
		for _, memory := range []int64{0, 1 << 10} {
			x := indexed(t, path, Options{Memory: memory, Folder: t.TempDir()})
			r := x.Reader()
			var rpcs, connections, findings int64
			check := func(n int64, got, want any) {
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%s: record %d is\n%+v\nwant\n%+v", path, n, got, want)
				}
			}
			h := dissect.Handler{
				Transaction: func(want *record.Transaction) error {
					got, err := r.Transaction(rpcs)
					if err != nil {
						return err
					}
					check(rpcs, got, want.Clone())
					row, known := r.Row(rpcs)
					if !known || row.ID != want.ID || row.XID != want.XID || row.Time != want.Start() || row.LatencyNS != want.LatencyNS.Or(Unknown) {
						t.Fatalf("%s: row %d is %+v", path, rpcs, row)
					}
					if name := x.Names()[row.Outcome]; name != query.Outcome(want) {
						t.Fatalf("%s: the outcome of row %d is %q, want %q", path, rpcs, name, query.Outcome(want))
					}
					if name := x.Names()[row.Status]; name != string(want.Status) {
						t.Fatalf("%s: the status of row %d is %q, want %q", path, rpcs, name, want.Status)
					}
					if name := x.Names()[row.Operation]; name != want.Operation.Or("") || row.Marks&Unnamed != 0 {
						t.Fatalf("%s: the operation of row %d is %q, want %q", path, rpcs, name, want.Operation.Or(""))
					}
					if failed := row.Marks&Failed != 0; failed != (want.Failed() || !want.Status.Replied()) {
						t.Fatalf("%s: row %d failed: %v", path, rpcs, failed)
					}
					rpcs++
					return nil
				},
				Connection: func(want *record.Connection) error {
					got, err := r.Connection(connections)
					check(connections, got, want.Clone())
					connections++
					return err
				},
				Finding: func(want *record.Finding) error {
					got, err := r.Finding(findings)
					check(findings, got, want.Clone())
					findings++
					return err
				},
			}
			summary, err := dissect.New(h, dissect.Options{}).Run(context.Background(), testkit.Open(t, path))
			if s := x.State(); (err == nil) != (s.Err == nil) {
				t.Errorf("%s: error %v, want %v", path, s.Err, err)
			}
			r.Close()
			s := x.State()
			if s.To != rpcs || s.Connections != connections || s.Findings != findings || !s.Done {
				t.Errorf("%s: the index has %+v, want %d RPCs, %d connections, %d findings", path, s, rpcs, connections, findings)
			}
			if s.Start != summary.First {
				t.Errorf("%s: starts at %v, want %v", path, s.Start, summary.First)
			}
			if many := rpcs > 200; memory > 0 && many && s.Spilled == 0 {
				t.Errorf("%s: nothing is in the temporary file", path)
			} else if memory == 0 && s.Spilled > 0 {
				t.Errorf("%s: %d bytes are in a temporary file", path, s.Spilled)
			}
			if x.space.used > max(memory, 1) && memory > 0 {
				t.Errorf("%s: %d bytes are in memory, limit %d", path, x.space.used, memory)
			}
		}
	}
}

// many returns an index with n copies of the RPCs of a capture.
func many(t testing.TB, n int, o Options) *Index {
	x := New(o)
	t.Cleanup(func() { x.Close() })
	h := x.Handler()
	var all []*record.Transaction
	d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		all = append(all, r.Clone())
		return nil
	}}, dissect.Options{})
	if _, err := d.Run(context.Background(), testkit.Open(t, "../../samples/rocev2-callback41.pcap")); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		r := all[i%len(all)]
		r.ID = int64(i) + 1
		h.Transaction(r)
	}
	return x
}

// TestKeep: only the newest RPCs are kept, with the numbers that they had.
func TestKeep(t *testing.T) {
	const n, keep = 50_000, 5_000
	x := many(t, n, Options{Keep: keep})
	from, to := x.Bounds()
	if to != n || to-from < keep || to-from > keep+perChunk {
		t.Fatalf("rows %d to %d are kept", from, to)
	}
	r := x.Reader()
	defer r.Close()
	if gone, err := r.Transaction(from - 1); gone != nil || err != nil {
		t.Errorf("RPC %d is %v, %v; want nothing", from-1, gone, err)
	}
	if _, known := r.Row(from - 1); known {
		t.Errorf("row %d is kept", from-1)
	}
	next := from
	err := r.Each(context.Background(), 0, n, func(i int64, got *record.Transaction) bool {
		row, known := r.Row(i)
		if i != next || got.ID != i+1 || !known || row.ID != i+1 {
			t.Fatalf("RPC %d has number %d, its row %+v (%v); want RPC %d", i, got.ID, row, known, next)
		}
		next++
		return true
	})
	if err != nil || next != n {
		t.Errorf("Each ended before %d: %v", next, err)
	}
	next = from
	if err := r.Rows(context.Background(), 0, n, func(i int64, row *Row) bool {
		if i != next || row.ID != i+1 {
			t.Fatalf("row %d is %+v", i, row)
		}
		next++
		return true
	}); err != nil || next != n {
		t.Errorf("Rows ended before %d: %v", next, err)
	}
}

// TestWhileAdding: records can be read while others are added.
func TestWhileAdding(t *testing.T) {
	x := New(Options{Memory: 1 << 16, Folder: t.TempDir(), Keep: 5_000})
	defer x.Close()
	var all []*record.Transaction
	d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		all = append(all, r.Clone())
		return nil
	}}, dissect.Options{})
	if _, err := d.Run(context.Background(), testkit.Open(t, "../../samples/rocev2-callback41.pcap")); err != nil {
		t.Fatal(err)
	}
	const n = 15_000
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			r := x.Reader()
			defer r.Close()
			for to := int64(0); to < n; {
				var from int64
				from, to = x.Bounds()
				for _, i := range []int64{from, (from + to) / 2, to - 1} {
					got, err := r.Transaction(i)
					if err != nil || got != nil && got.ID != i+1 {
						t.Errorf("RPC %d is %v, %v", i, got, err)
						return
					}
					if row, known := r.Row(i); known && row.ID != i+1 {
						t.Errorf("row %d is %+v", i, row)
						return
					}
				}
			}
		})
	}
	h := x.Handler()
	for i := range n {
		r := all[i%len(all)]
		r.ID = int64(i) + 1
		h.Transaction(r)
	}
	wait.Wait()
}

// TestDamagedStore: a block that another program changed is an error, and no wrong record.
func TestDamagedStore(t *testing.T) {
	x := many(t, 1000, Options{Memory: 1, Folder: t.TempDir()})
	if x.space.file == nil {
		t.Fatal("there is no temporary file")
	}
	if err := x.space.file.Truncate(100); err != nil {
		t.Fatal(err)
	}
	r := x.Reader()
	defer r.Close()
	if got, err := r.Transaction(500); err == nil {
		t.Errorf("RPC 500 is %v", got)
	}
}

// FuzzDecode: no bytes make reading a record panic.
func FuzzDecode(f *testing.F) {
	x := many(f, 100, Options{})
	f.Add(x.transactions.added.b)
	f.Fuzz(func(t *testing.T, b []byte) {
		read[record.Transaction](&decoder{words: x.transactions.words}, b)
		read[record.Connection](&decoder{words: x.transactions.words}, b)
		read[record.Finding](&decoder{words: x.transactions.words}, b)
	})
}

// TestLook: a second pass shows the packets and the decoded arguments of one RPC.
func TestLook(t *testing.T) {
	const path = "../../samples/rocev2-callback41.pcap"
	x := indexed(t, path, Options{})
	r := x.Reader()
	defer r.Close()
	want, err := r.Transaction(20)
	if err != nil {
		t.Fatal(err)
	}
	var numbers []int64
	decoded := false
	c := Closer{
		ID: want.ID, XIDs: []record.Hex32{want.XID}, First: want.Call.Packet, Last: want.Reply.LastPacket,
		Transaction: func(r *record.Transaction) { decoded = r.Decoded.Call.Message != nil && r.Decoded.Reply.Message != nil },
		Packet: func(p *record.Packet) {
			if len(p.Nodes) == 0 {
				t.Errorf("packet %d has no tree", p.Number)
			}
			numbers = append(numbers, p.Number)
		},
	}
	if err := c.Look(context.Background(), testkit.Open(t, path), dissect.Options{}); err != nil {
		t.Fatal(err)
	}
	var all []int64
	for n := want.Call.Packet; n <= want.Reply.LastPacket; n++ {
		all = append(all, n)
	}
	if !decoded || !slices.Equal(numbers, all) {
		t.Errorf("decoded %v, packets %v, want %v", decoded, numbers, all)
	}
}

// BenchmarkAdd measures adding the record of an RPC.
func BenchmarkAdd(b *testing.B) {
	b.ReportAllocs()
	x := many(b, b.N, Options{})
	b.ReportMetric(float64(x.space.used)/float64(b.N), "B/RPC")
}

// BenchmarkEach measures reading all records in their order.
func BenchmarkEach(b *testing.B) {
	x := many(b, b.N, Options{})
	r := x.Reader()
	b.ReportAllocs()
	b.ResetTimer()
	r.Each(context.Background(), 0, int64(b.N), func(int64, *record.Transaction) bool { return true })
}

// BenchmarkTransaction measures reading the record of an RPC that is in another block than the one
// before.
func BenchmarkTransaction(b *testing.B) {
	const n = 10_000
	x := many(b, n, Options{})
	r := x.Reader()
	b.ResetTimer()
	for i := range b.N {
		r.Transaction(int64(i) * 7919 % n)
	}
}
