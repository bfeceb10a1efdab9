package parquet_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	reader "github.com/parquet-go/parquet-go"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/export/parquet"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// transaction, connection are rows, as this test reads them.
type (
	transaction struct {
		ID             int64   `parquet:"id"`
		XID            uint32  `parquet:"xid"`
		Status         string  `parquet:"status"`
		Procedure      *uint32 `parquet:"procedure,optional"`
		Operation      *string `parquet:"operation,optional"`
		Time           int64   `parquet:"time,timestamp(nanosecond)"`
		Packet         int64   `parquet:"packet"`
		LatencyNS      *int64  `parquet:"latency_ns,optional"`
		CallBytes      *int64  `parquet:"call_payload_bytes,optional"`
		ReadMovedBytes int64   `parquet:"rdma_read_bytes"`
		Client         *string `parquet:"client,optional"`
		Server         *string `parquet:"server,optional"`
		UID            *uint32 `parquet:"uid,optional"`
		GID            *uint32 `parquet:"gid,optional"`
		Machine        *string `parquet:"machine,optional"`
		Principal      *string `parquet:"principal,optional"`
		File           *string `parquet:"file,optional"`
		FileFrom       *string `parquet:"file_from,optional"`
		FileHandle     *string `parquet:"file_handle,optional"`
	}
	connection struct {
		Transport  string  `parquet:"transport"`
		UpperLayer string  `parquet:"upper_layer"`
		ClientQPN  *uint32 `parquet:"client_qpn,optional"`
		ServerPort *uint32 `parquet:"server_port,optional"`
	}
)

// written returns a writer that has begun the tables of a capture.
func written(t testing.TB, folder string, partition ...string) *parquet.Writer {
	t.Helper()
	p, err := parquet.ParsePartition(partition)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.New(folder, p, parquet.Capture{Files: []string{"nfs.pcap"}, Program: "1.0"}, false)
	if err := w.Begin(&capture.Frame{Time: 1763712000e9, Data: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	return w
}

// export writes the tables of a capture file.
func export(t testing.TB, w *parquet.Writer, path string, each func(*record.Transaction)) {
	t.Helper()
	h := w.Handler()
	take := h.Transaction
	h.Transaction = func(r *record.Transaction) error {
		each(r)
		return take(r)
	}
	summary, err := dissect.New(h, dissect.Options{Files: true}).Run(t.Context(), testkit.Open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Finish(summary, nil, nil), w.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestTables compares the rows with the records.
func TestTables(t *testing.T) {
	folder := t.TempDir()
	var want []*record.Transaction
	export(t, written(t, folder, "host=a=b"), "../../../testdata/captures/lab-iwarpdata3.pcap.zst", func(r *record.Transaction) { want = append(want, r.Clone()) })
	slices.SortStableFunc(want, func(a, b *record.Transaction) int { return cmp.Compare(a.Start(), b.Start()) })
	got := rowsOf[transaction](t, folder, "transactions/host=a%3Db")
	if len(got) != len(want) || len(got) != 93 {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	moved, files := int64(0), 0
	for i, r := range want {
		g := &got[i]
		if want := rowOf(r, g); !reflect.DeepEqual(*g, want) {
			t.Errorf("row %d is\n%s, want\n%s", i, asText(t, *g), asText(t, want))
		}
		if g.File != nil && g.FileHandle != nil && g.UID != nil && g.Machine != nil {
			files++
		}
		moved += g.ReadMovedBytes
	}
	if moved < 500000 { // the files have 514025 bytes, and each was written once
		t.Errorf("%d bytes moved by RDMA Read", moved)
	}
	if files < 50 {
		t.Errorf("only %d rows have a file and a user", files)
	}
	connections := rowsOf[connection](t, folder, "connections/host=a%3Db")
	plain := slices.DeleteFunc(slices.Clone(connections), func(c connection) bool { return c.Transport != "TCP" })
	connections = slices.DeleteFunc(connections, func(c connection) bool { return c.Transport == "TCP" })
	if len(plain) != 10 || plain[0].UpperLayer != "rpc" || *plain[0].ServerPort != 111 || plain[0].ClientQPN != nil {
		t.Errorf("connections without RDMA: %s", asText(t, plain))
	}
	if len(connections) != 2 || connections[0].Transport != "iWARP" || *connections[0].ServerPort != 20049 || connections[0].ClientQPN != nil {
		t.Errorf("connections with RDMA: %s", asText(t, connections))
	}
}

// rowsOf returns the rows of a table, which has one file.
func rowsOf[R any](t *testing.T, folder, table string) []R {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, parquet.Version, table, "*.parquet"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%s has the files %q, %v; want one", table, paths, err)
	}
	rows, err := reader.ReadFile[R](paths[0])
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// rowsOfAll returns the rows of all files of a table.
func rowsOfAll[R any](t *testing.T, folder, table string) (rows []R) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, parquet.Version, table, "*.parquet"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s has the files %q, %v", table, paths, err)
	}
	for _, path := range paths {
		list, err := reader.ReadFile[R](path)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, list...)
	}
	return rows
}

// TestKeys: the captures of both ends have the same keys of connections and RPCs, each RPC has another one, and without handshakes
// nothing has the key that it has in another capture.
func TestKeys(t *testing.T) {
	type row struct {
		Connection string `parquet:"connection_key"`
		Certain    bool   `parquet:"connection_key_certain"`
		RPC        string `parquet:"rpc_key"`
	}
	for _, pair := range []string{"iw-twosided", "roce-oneway41"} {
		var ends [2]map[string]row
		for i, end := range []string{"client", "server"} {
			folder := t.TempDir()
			export(t, written(t, folder), "../../../testdata/ends/"+pair+"-"+end+".pcap.zst", func(*record.Transaction) {})
			ends[i] = map[string]row{}
			rows := rowsOf[row](t, folder, "transactions")
			for _, r := range rows {
				ends[i][r.RPC] = r
				if !r.Certain {
					t.Errorf("%s: an RPC with the key %s has a connection whose handshake is not known", pair, r.RPC)
				}
			}
			if len(ends[i]) != len(rows) || len(rows) < 100 {
				t.Errorf("%s: %d RPCs have %d keys", pair, len(rows), len(ends[i]))
			}
		}
		if !reflect.DeepEqual(ends[0], ends[1]) {
			t.Errorf("%s: the ends have different keys", pair)
		}
	}
}

// TestRole: the place of a capture is that of the flag --at, for each connection if it is an address.
func TestRole(t *testing.T) {
	type row struct {
		Role string `parquet:"point_role"`
	}
	for _, c := range []struct {
		of   parquet.Capture
		want string
	}{
		{parquet.Capture{}, "unknown"},
		{parquet.Capture{Both: true}, "both"},
		{parquet.Capture{At: record.Position{Place: record.Between}}, "between"},
		{parquet.Capture{At: record.Position{Address: netip.MustParseAddr("192.0.2.1")}}, "client"},
		{parquet.Capture{At: record.Position{Address: netip.MustParseAddr("192.0.2.2")}}, "server"},
		{parquet.Capture{At: record.Position{Address: netip.MustParseAddr("192.0.2.3")}}, "unknown"},
	} {
		folder := t.TempDir()
		w := parquet.New(folder, nil, c.of, false)
		if err := w.Begin(&capture.Frame{}); err != nil {
			t.Fatal(err)
		}
		r := &record.Transaction{Client: record.Some("192.0.2.1"), Server: record.Some("192.0.2.2"), Call: &record.Message{}}
		if err := errors.Join(w.Handler().Begin(0), w.Handler().Transaction(r), w.Close()); err != nil {
			t.Fatal(err)
		}
		if rows := rowsOf[row](t, folder, "transactions"); len(rows) != 1 || rows[0].Role != c.want {
			t.Errorf("%+v: the rows are %v, want the role %s", c.of.At, rows, c.want)
		}
	}
}

// TestKnownRole: what the capture itself says about its place, or refutes, holds for all rows of the connection.
func TestKnownRole(t *testing.T) {
	type row struct {
		Role string `parquet:"point_role"`
	}
	at := parquet.Capture{At: record.Position{Place: record.AtServer}}
	for _, c := range []struct {
		of    parquet.Capture
		place record.PointFacts
		want  string
		whole string // role of what is about no connection
	}{
		{parquet.Capture{}, record.PointFacts{At: record.Some(record.AtClient)}, "client", "unknown"},
		{parquet.Capture{}, record.PointFacts{}, "unknown", "unknown"},
		{at, record.PointFacts{Refuted: record.Some(record.AtServer)}, "unknown", "server"},
		{parquet.Capture{Both: true}, record.PointFacts{At: record.Some(record.AtClient)}, "both", "both"},
	} {
		folder := t.TempDir()
		w := parquet.New(folder, nil, c.of, false)
		if err := w.Begin(&capture.Frame{}); err != nil {
			t.Fatal(err)
		}
		shares := record.Some(record.Shares{Point: c.place.At.Or(record.PlaceUnknown)})
		h, r := w.Handler(), &record.Transaction{Connection: 7, Call: &record.Message{}, Shares: shares}
		connection, finding := &record.Connection{ID: 7}, &record.Finding{Connection: record.Some(7)}
		connection.Path.Point = c.place
		if err := errors.Join(h.Begin(0), h.Transaction(r), h.Finding(finding), h.Finding(&record.Finding{}), h.Connection(connection), w.Close()); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"transactions", "findings", "connections"} {
			rows := rowsOf[row](t, folder, table)
			if len(rows) == 0 || rows[0].Role != c.want {
				t.Errorf("%+v, %s: the rows are %v, want the role %s", c.place, table, rows, c.want)
			}
			if table == "findings" && (len(rows) != 2 || rows[1].Role != c.whole) {
				t.Errorf("%+v: a finding of no connection has the role %v", c.place, rows)
			}
		}
	}
}

// TestXIDs: how often a connection used an XID before is known as long as its XIDs are a few spans.
func TestXIDs(t *testing.T) {
	var x parquet.XIDs
	for i, c := range []struct {
		xid  uint32
		want int
	}{{7, 0}, {8, 0}, {5, 0}, {6, 0}, {7, 1}, {7, 2}, {0xffffffff, 0}, {0, 0}, {0xffffffff, 1}, {9, 0}, {5, 1}} {
		if got, known := x.Use(c.xid); got != c.want || !known {
			t.Errorf("use %d, of the XID %d: it was used %d times before (known: %t), want %d", i, c.xid, got, known, c.want)
		}
	}
	for i := range uint32(1 << 20) { // as a client counts, with some out of order
		if got, known := x.Use(1000 + i ^ 1); got != 0 || !known {
			t.Fatalf("XID %d was used %d times before (known: %t)", 1000+i^1, got, known)
		}
	}
	known := true
	for i := uint32(0); known && i < 1<<20; i++ {
		_, known = x.Use(i * 2654435761)
	}
	if known {
		t.Error("a million scattered XIDs are remembered")
	}
}

// TestParts: what a folder has is never overwritten, unless it is to be replaced, and an export that does not end leaves no file that engines read.
func TestParts(t *testing.T) {
	folder := t.TempDir()
	files := func() (list []string) {
		filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				list = append(list, filepath.Base(path))
			}
			return err
		})
		return list
	}
	first := &capture.Frame{Time: 1763712000e9, Data: []byte("a")}
	p := parquet.ByName("nfs.pcap")
	open := written(t, folder, "host=a")
	other := written(t, folder, "host=a")
	if err := errors.Join(open.Finish(new(record.Summary), nil, nil), open.Close()); err != nil {
		t.Fatal(err)
	}
	if list := files(); len(list) != 24 {
		t.Errorf("one export is complete, another is not; the files are %q", list)
	}
	if err := errors.Join(other.Finish(new(record.Summary), nil, nil), other.Close()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("two exports at once: the second returns %v", err)
	}
	for _, c := range []struct {
		partition parquet.Partition
		replace   bool
		want      string
	}{
		{parquet.Partition{{"host", "a"}}, false, "file already exists"},
		{parquet.Partition{{"host", "a"}}, true, ""},
		{parquet.Partition{{"host", "b"}}, false, ""},
		{p, false, "not a partition by capture"},
		{parquet.Partition{{"host", "b"}, {"day", "1"}}, false, "not a partition by day"},
		{parquet.Partition{{"host", "c"}, {"day", "1"}}, false, "another number of keys"},
	} {
		w := parquet.New(folder, c.partition, parquet.Capture{}, c.replace)
		err := w.Begin(first)
		if err == nil {
			err = errors.Join(w.Finish(new(record.Summary), nil, nil), w.Close())
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("partition %v, replace %t: %v, want %q", c.partition, c.replace, err, c.want)
		}
	}
	list := files()
	for _, name := range list {
		if name != "part-20251121T080000Z-"+strings.TrimPrefix(strings.TrimSuffix(list[0], ".parquet"), "part-20251121T080000Z-")+".parquet" {
			t.Errorf("%s is not the name of a part", name)
		}
	}
	if len(list) != 24 {
		t.Errorf("%d files, want those of twelve tables in two partitions", len(list))
	}
	if err := os.WriteFile(filepath.Join(folder, "v1", "transactions", "host=c"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := parquet.New(folder, parquet.Partition{{"host", "d"}}, parquet.Capture{}, false).Begin(first); err == nil {
		t.Error("a file in the place of a partition is no error")
	}
}

// TestOtherFiles: files that are no tables of this version are an error before anything is written.
func TestOtherFiles(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "v1", "transactions", "host=a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "v1", "transactions", "host=a", "part-0.parquet"), []byte("PAR1 no table PAR1"), 0o644); err != nil {
		t.Fatal(err)
	}
	w := parquet.New(folder, parquet.Partition{{"host", "a"}}, parquet.Capture{}, false)
	if err := w.Begin(&capture.Frame{}); err == nil || !strings.Contains(err.Error(), "not a file of a table") {
		t.Errorf("another file: %v", err)
	}
}

// TestForeignFiles: whatever is in the place of a table's file, in any table, is an error at once, and names that engines ignore
// are none.
func TestForeignFiles(t *testing.T) {
	for _, c := range []struct{ path, kind, want string }{
		{"transactions/host=a/part-0.parquet", "fifo", "not a file of a table"},
		{"waits/host=a/part-0.parquet", "fifo", "not a file of a table"},
		{"transactions/host=a/part-0.parquet", "link", "not a file of a table"},
		{"findings/host=a/part-0.parquet", "folder", "not a file of a table"},
		{"captures/day=1/part-0.parquet", "folder", "day=1: this is not a partition by host"},
		{"transactions/host=a/_SUCCESS", "file", ""},
		{"_delta_log/0.json", "file", ""},
		{"transactions/_temporary", "folder", ""},
	} {
		folder := t.TempDir()
		path := filepath.Join(folder, "v1", c.path)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case c.kind == "fifo":
			if exec.Command("mkfifo", path).Run() != nil {
				t.Log("there is no mkfifo")
				continue
			}
		case c.kind == "link":
			err = os.Symlink("missing", path)
		case c.kind == "folder":
			err = os.Mkdir(path, 0o755)
		default:
			err = os.WriteFile(path, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		w := parquet.New(folder, parquet.Partition{{"host", "a"}}, parquet.Capture{}, false)
		if err = w.Begin(&capture.Frame{}); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("a %s in the place of %s: %v, want %q", c.kind, c.path, err, c.want)
		}
		w.Abandon()
	}
}

// TestAbandoned: files of processes that were killed are removed, and those of processes that write them stay.
func TestAbandoned(t *testing.T) {
	folder := t.TempDir()
	writes := written(t, folder, "host=a") // and goes on
	at := filepath.Join(folder, "v1", "waits", "host=a")
	for _, name := range []string{".part-1.tmp", ".part-new.tmp", ".other.tmp", ".part-3.bak"} {
		if err := os.WriteFile(filepath.Join(at, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := os.ReadDir(at)
	if err != nil || len(list) != 5 {
		t.Fatal(list, err)
	}
	for _, e := range list {
		if past := time.Now().Add(-time.Hour); e.Name() != ".part-new.tmp" {
			if err := os.Chtimes(filepath.Join(at, e.Name()), past, past); err != nil {
				t.Fatal(err)
			}
		}
	}
	written(t, folder, "host=a").Abandon()
	if _, err := os.Stat(filepath.Join(at, ".part-1.tmp")); runtime.GOOS == "linux" && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of a process that was killed: %v", err)
	}
	for _, name := range []string{".part-new.tmp", ".other.tmp", ".part-3.bak"} {
		if _, err := os.Stat(filepath.Join(at, name)); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(writes.Finish(new(record.Summary), nil, nil), writes.Close()); err != nil {
		t.Errorf("the process that goes on: %v", err)
	}
}

// TestInterrupted: whatever rename of an export fails, the partition has the old files of all tables, or the next run completes the new
// ones. The test counts the RPCs and findings of both exports: one of the old, two of the new.
func TestInterrupted(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("files of other processes are completed if files can be locked")
	}
	type row struct{}
	for _, replace := range []bool{true, false} {
		for after := range 23 {
			folder := t.TempDir()
			export := func(rows int, replace bool) (*parquet.Writer, error) {
				w := parquet.New(folder, parquet.Partition{{"host", "a"}}, parquet.Capture{}, replace)
				err := w.Begin(&capture.Frame{Time: 1763712000e9})
				for range rows {
					h := w.Handler()
					err = errors.Join(err, h.Begin(0), h.Transaction(&record.Transaction{Call: &record.Message{}}), h.Finding(&record.Finding{}))
				}
				return w, errors.Join(err, w.Finish(new(record.Summary), nil, nil))
			}
			if replace {
				old, err := export(1, false)
				if err = errors.Join(err, old.Close()); err != nil {
					t.Fatal(err)
				}
			}
			w, err := export(2, replace)
			if err != nil {
				t.Fatal(err)
			}
			end := parquet.FailRenames(after)
			err = w.Close()
			end()
			if links := 12; (err != nil) != (after < 24 && (replace || after < links)) {
				t.Errorf("%d renames succeed: %v", after, err)
			}
			w.Abandon()
			next := parquet.New(folder, parquet.Partition{{"host", "a"}}, parquet.Capture{}, true)
			if err := next.Begin(&capture.Frame{Time: 1763712001e9}); err != nil {
				t.Fatal(err)
			}
			next.Abandon()
			want := 2
			if after < 12 {
				want = map[bool]int{true: 1, false: 0}[replace]
			}
			for _, table := range []string{"transactions", "findings"} {
				rows := 0
				if paths, _ := filepath.Glob(filepath.Join(folder, "v1", table, "host=a", "*.parquet")); paths != nil {
					rows = len(rowsOf[row](t, folder, table+"/host=a"))
				}
				if rows != want {
					t.Errorf("replace %t, %d renames succeed: %s has %d rows after the next run, want %d", replace, after, table, rows, want)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(folder, "v1", "*", "*", ".*")); left != nil {
				t.Errorf("replace %t, %d renames succeed: %q are left", replace, after, left)
			}
		}
	}
}

// TestKilledBetweenNames: a process that is killed before the files of all tables are ready leaves the old ones, and its files are
// removed; after that, the next run completes the new ones, but not while the process may go on.
func TestKilledBetweenNames(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("files of other processes are completed if files can be locked")
	}
	tables := []string{"transactions", "waits", "rdma_operations", "tasks", "connections", "findings", "problems", "gaps", "points", "files", "rates", "captures"}
	for ready := range 13 { // so many tables have a file that is ready
		folder := t.TempDir()
		w := parquet.New(folder, parquet.Partition{{"host", "a"}}, parquet.Capture{}, false)
		if err := errors.Join(w.Begin(&capture.Frame{Time: 1763712000e9}), w.Finish(new(record.Summary), nil, nil), w.Close()); err != nil {
			t.Fatal(err)
		}
		past := time.Now().Add(-time.Hour)
		for _, table := range tables[:ready] {
			paths, _ := filepath.Glob(filepath.Join(folder, "v1", table, "host=a", "part-*.parquet"))
			at := filepath.Join(filepath.Dir(paths[0]), "."+filepath.Base(paths[0])+".123.ready")
			if err := errors.Join(os.Rename(paths[0], at), os.Chtimes(at, past, past)); err != nil {
				t.Fatal(err)
			}
		}
		next := parquet.New(folder, parquet.Partition{{"host", "a"}}, parquet.Capture{}, false)
		begin := func() { // the files of another capture
			if err := next.Begin(&capture.Frame{Time: 1763712001e9}); err != nil {
				t.Fatal(err)
			}
			next.Abandon()
		}
		files := func(pattern string) int {
			paths, _ := filepath.Glob(filepath.Join(folder, "v1", "*", "host=a", pattern))
			return len(paths)
		}
		if ready == 12 {
			paths, _ := filepath.Glob(filepath.Join(folder, "v1", "captures", "host=a", ".*"))
			unlock := parquet.Lock(t, paths[0])
			begin()
			if n := files(".part-*.ready"); n != 12 {
				t.Errorf("while its process goes on, %d files are ready, want 12", n)
			}
			unlock()
		}
		begin()
		if got, want := files("part-*.parquet"), 12-ready%12; got != want {
			t.Errorf("killed when %d tables were ready: %d tables have files, want %d", ready, got, want)
		}
		if n := files(".*"); n != 0 {
			t.Errorf("killed when %d tables were ready: %d files are left", ready, n)
		}
	}
}

// TestLongCaptures: a capture with more intervals than are in memory, because it lasts for months or because a clock was set, is
// written, and no RPC is missing from the rates.
func TestLongCaptures(t *testing.T) {
	const day = record.Time(24 * time.Hour)
	for _, times := range [][]record.Time{{0, day, 20 * day, 40 * day, 60 * day}, {0, 36500 * day, day, 36500 * day}, {0, 1, 2}} {
		folder := t.TempDir()
		w := written(t, folder)
		h := w.Handler()
		err := h.Begin(0)
		for i, at := range times {
			err = errors.Join(err, h.Transaction(&record.Transaction{
				Connection: i, Call: &record.Message{Time: at}, Reply: &record.Message{Time: at + 1000, LastTime: at + 1000}, LatencyNS: record.Some[int64](1000),
			}), h.Transaction(&record.Transaction{Connection: i, Call: &record.Message{Time: at}}), h.Connection(&record.Connection{ID: i, First: at, Last: 50 * day}))
		}
		if err = errors.Join(err, w.Finish(&record.Summary{First: record.Some[record.Time](0), Last: record.Some(70 * day)}, nil, nil), w.Close()); err != nil {
			t.Errorf("RPCs at %v: %v", times, err)
			continue
		}
		type row struct {
			Time int64 `parquet:"time,timestamp(nanosecond)"`
			RPCs int64 `parquet:"requests"`
		}
		rpcs := int64(0)
		for _, r := range rowsOf[row](t, folder, "rates") {
			if rpcs += r.RPCs; r.RPCs > 0 && !slices.Contains(times, record.Time(r.Time)) {
				t.Errorf("%d RPCs at %d", r.RPCs, r.Time)
			}
		}
		if rpcs != 2*int64(len(times)) {
			t.Errorf("RPCs at %v: the rates have %d RPCs, want %d", times, rpcs, 2*len(times))
		}
	}
}

// TestRolls: the parts of a capture that goes on add up to what its summary says at the end: no part repeats what an earlier one has.
func TestRolls(t *testing.T) {
	const a, b = "192.0.2.1", "192.0.2.2"
	at := func(n int64) record.Opt[record.Time] { return record.Some(record.Time(n)) }
	absence := func(from, to record.Time, packets int64) record.Absence {
		return record.Absence{Address: a, Peer: b, From: from, To: to, Packets: record.Some(packets)}
	}
	silence := record.Silence{Address: a, Peer: b, From: 50, Packets: 2}
	ended := silence
	ended.To = at(150)
	folder := t.TempDir()
	w := written(t, folder)
	base := time.Unix(1763712000, 0)
	err := w.Handler().Begin(0)
	for i, s := range []*record.Summary{
		{
			PFCPauses: 4, PausePorts: []record.PausePorts{{Address: record.Some(a), Frames: 4}}, PausedNS: record.Some(record.Bounds{Min: 5, Max: 200}),
			Packets: 10, First: at(1), Last: at(100), TimeBackwards: 1, TimeBackwardsNS: 7, CaptureDrops: 3, Evicted: map[string]int64{"send": 2},
			Absences: []record.Absence{absence(10, 20, 5)}, Silences: []record.Silence{silence}, Transactions: map[record.Status]int64{record.Complete: 4},
		},
		{
			PFCPauses: 4, PausePorts: []record.PausePorts{{Address: record.Some(a), Frames: 4}}, PausedNS: record.Some(record.Bounds{Min: 5, Max: 200}),
			Packets: 25, First: at(1), Last: at(200), TimeBackwards: 1, TimeBackwardsNS: 7, CaptureDrops: 3, Evicted: map[string]int64{"send": 2},
			Absences: []record.Absence{absence(2, 4, 1), absence(10, 20, 5)}, Silences: []record.Silence{ended}, Transactions: map[record.Status]int64{record.Complete: 9},
		},
		{
			PFCPauses: 7, PausePorts: []record.PausePorts{{Address: record.Some(a), Frames: 5}, {Frames: 2}}, PausedNS: record.Some(record.Bounds{Min: 9, Max: 350}),
			Packets: 30, First: at(1), Last: at(300), TimeBackwards: 2, TimeBackwardsNS: 7, CaptureDrops: 4, Evicted: map[string]int64{"send": 3},
			Absences: []record.Absence{absence(2, 4, 1), absence(10, 250, 8)}, Silences: []record.Silence{ended}, Transactions: map[record.Status]int64{record.Complete: 9},
		},
	} {
		if i < 2 {
			err = errors.Join(err, w.Roll(s, base.Add(time.Duration(i)*time.Minute)))
		} else {
			err = errors.Join(err, w.Finish(s, nil, nil), w.Close())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	type lack struct {
		Kind    string `parquet:"kind"`
		From    *int64 `parquet:"from,optional,timestamp(nanosecond)"`
		To      *int64 `parquet:"to,optional,timestamp(nanosecond)"`
		Packets *int64 `parquet:"packets,optional"`
	}
	text := func(v *int64) string {
		if v == nil {
			return "?"
		}
		return fmt.Sprint(*v)
	}
	var got []string
	for _, g := range rowsOfAll[lack](t, folder, "gaps") {
		got = append(got, fmt.Sprintf("%s %s-%s %s", g.Kind, text(g.From), text(g.To), text(g.Packets)))
	}
	slices.Sort(got)
	want := []string{
		"capture_drops 1-100 3", "capture_drops 200-300 1", "evicted 1-100 ?", "evicted 200-300 ?", "missing_packets 10-20 5", "missing_packets 10-250 3", "missing_packets 2-4 1",
		"silence 50-150 2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the gaps are\n%q, want\n%q", got, want)
	}
	type sum struct {
		Packets   int64 `parquet:"packets"`
		First     int64 `parquet:"first,optional,timestamp(nanosecond)"`
		Back      int64 `parquet:"time_backwards"`
		BackNS    int64 `parquet:"time_backwards_ns"`
		Completed int64 `parquet:"transactions_complete"`
	}
	type pauses struct {
		First  int64    `parquet:"first,optional,timestamp(nanosecond)"`
		Hosts  []string `parquet:"pause_hosts,list"`
		Frames []int64  `parquet:"pause_host_frames,list"`
		MaxNS  *int64   `parquet:"paused_ns_max,optional"`
	}
	paused := rowsOfAll[pauses](t, folder, "captures")
	slices.SortFunc(paused, func(x, y pauses) int { return cmp.Compare(x.First, y.First) })
	if got := asText(t, paused); got != `[{"First":1,"Hosts":["192.0.2.1"],"Frames":[4],"MaxNS":200},{"First":100,"Hosts":[],"Frames":[],"MaxNS":null},{"First":200,"Hosts":["192.0.2.1",""],"Frames":[1,2],"MaxNS":150}]` {
		t.Errorf("the pauses are %s", got)
	}
	sums := rowsOfAll[sum](t, folder, "captures")
	slices.SortFunc(sums, func(x, y sum) int { return cmp.Compare(x.First, y.First) })
	if want := []sum{{10, 1, 1, 7, 4}, {15, 100, 0, 0, 5}, {5, 200, 1, 7, 0}}; !slices.Equal(sums, want) {
		t.Errorf("the summaries are %v, want %v", sums, want)
	}
}

// TestRowGroups: with little memory, fewer rows are in memory at a time.
func TestRowGroups(t *testing.T) {
	for memory, want := range map[int64]int{0: 3, 1 << 20: 3, 32 << 20: 1} {
		folder := t.TempDir()
		w := parquet.New(folder, nil, parquet.Capture{Memory: memory}, false)
		err := w.Begin(&capture.Frame{})
		h := w.Handler()
		for range 10000 {
			err = errors.Join(err, h.Finding(&record.Finding{}))
		}
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		if got := len(open(t, folder, "findings").RowGroups()); got != want {
			t.Errorf("with %d bytes of memory, 10000 rows are %d groups, want %d", memory, got, want)
		}
	}
}

// TestNames: names on the wire may have any bytes, and engines refuse files with texts that are no UTF-8. Bytes that are none are as in
// JSON.
func TestNames(t *testing.T) {
	folder := t.TempDir()
	w := parquet.New(folder, nil, parquet.Capture{Files: []string{"a\xff.pcap"}, Options: []string{"-Y=\xff"}}, false)
	if err := w.Begin(&capture.Frame{}); err != nil {
		t.Fatal(err)
	}
	h := w.Handler()
	r := &record.Transaction{File: record.Some("/caf\xe9\xff/\x00\x1b[1m/é"), Machine: record.Some("\x80"), Call: &record.Message{Time: 7e9}}
	second := &record.Transaction{Call: &record.Message{Time: 3e9}}
	if err := errors.Join(h.Begin(0), h.Transaction(r), h.Transaction(second), w.Finish(new(record.Summary), nil, nil), w.Close()); err != nil {
		t.Fatal(err)
	}
	rows := rowsOf[transaction](t, folder, "transactions")
	if *rows[1].File != "/caf\ufffd\ufffd/\x00\x1b[1m/é" || *rows[1].Machine != "\ufffd" {
		t.Errorf("the file is %q and the machine %q", *rows[1].File, *rows[1].Machine)
	}
	type names struct {
		Files []string `parquet:"files,list"`
	}
	if rows := rowsOf[names](t, folder, "captures"); !slices.Equal(rows[0].Files, []string{"a\ufffd.pcap"}) {
		t.Errorf("the captures are %q", rows[0].Files)
	}
	file := open(t, folder, "transactions")
	for key, want := range map[string]string{"rdmadump.options": "-Y=\ufffd", "rdmadump.first": "1970-01-01T00:00:03.000000000Z", "rdmadump.last": "1970-01-01T00:00:07.000000000Z"} {
		if got, _ := file.Lookup(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

// TestSignals: the table rates counts packets that show congestion by their own times.
func TestSignals(t *testing.T) {
	folder := t.TempDir()
	w := written(t, folder)
	h := w.Handler()
	connection := &record.Connection{CongestionMarks: 2}
	err := errors.Join(h.Begin(0), h.Signal(record.Signal{Time: 1e9, Kind: record.SignalCE}), h.Signal(record.Signal{Time: 25e9, Kind: record.SignalCE}),
		h.Signal(record.Signal{Time: 26e9, Kind: record.SignalPause}), h.Connection(connection), w.Finish(&record.Summary{Last: record.Some[record.Time](26e9)}, nil, nil), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		CE     *int64 `parquet:"ce_marks,optional"`
		CNP    *int64 `parquet:"cnps,optional"`
		Pauses *int64 `parquet:"pauses,optional"`
	}
	if got := asText(t, rowsOf[row](t, folder, "rates")); got != `[{"CE":1,"CNP":0,"Pauses":0},{"CE":0,"CNP":0,"Pauses":0},{"CE":1,"CNP":0,"Pauses":1}]` {
		t.Errorf("the rates have %s", got)
	}
}

// rowOf returns the row of an RPC. The bytes that RDMA Read moved are those of the row that was read.
func rowOf(r *record.Transaction, g *transaction) transaction {
	return transaction{
		ID: r.ID, XID: uint32(r.XID), Status: string(r.Status), Procedure: pointer(r.Procedure), Operation: pointer(r.Operation), Time: int64(r.Call.Time), Packet: r.Call.Packet,
		LatencyNS: pointer(r.LatencyNS), CallBytes: pointer(r.Call.PayloadBytes), ReadMovedBytes: g.ReadMovedBytes, Client: pointer(r.Client), Server: pointer(r.Server),
		UID: pointer(r.UID), GID: pointer(r.GID), Machine: pointer(r.Machine), Principal: pointer(r.Principal), File: pointer(r.File), FileFrom: pointer(r.FileFrom), FileHandle: pointer(r.FileHandle),
	}
}

// asText returns a row as JSON, which has values in place of pointers.
func asText(t *testing.T, row any) string {
	t.Helper()
	text, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestColumns: the columns of a table have the names and the types that queries of users rely on, in this order.
func TestColumns(t *testing.T) {
	folder := t.TempDir()
	if err := written(t, folder).Close(); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, table := range []string{"transactions", "waits", "rdma_operations", "tasks", "connections", "findings", "problems", "gaps", "points", "files", "rates", "captures"} {
		schema := open(t, folder, table).Schema()
		fmt.Fprintln(&got, schema)
		names := map[string]bool{}
		for _, f := range schema.Fields() {
			if names[f.Name()] {
				t.Errorf("the table %s has two columns %s", table, f.Name())
			}
			names[f.Name()] = true
		}
	}
	if *update {
		if err := os.WriteFile("testdata/columns.txt", []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/columns.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the columns of the tables are\n%s\nwant those of testdata/columns.txt\n%s; columns may be added (-update), but not changed", got.String(), want)
	}
}

var update = flag.Bool("update", false, "write testdata/columns.txt")

// open opens the file of a table.
func open(t *testing.T, folder, table string) *reader.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, parquet.Version, table, "*.parquet"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%s has the files %q, %v; want one", table, paths, err)
	}
	f, err := os.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	file, err := reader.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestDictionaries: only texts that are the same in many rows are stored as indexes of a dictionary.
func TestDictionaries(t *testing.T) {
	folder := t.TempDir()
	w := written(t, folder)
	if err := w.Handler().Finding(&record.Finding{Rule: "a", Message: "b"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, c := range open(t, folder, "findings").Metadata().RowGroups[0].Columns {
		name := c.MetaData.PathInSchema[0]
		want, tested := map[string]bool{"rule": true, "message": false}[name]
		if got := c.MetaData.DictionaryPageOffset != 0; tested && got != want {
			t.Errorf("column %s has a dictionary: %t, want %t", name, got, want)
		}
		if tested {
			seen++
		}
	}
	if seen != 2 {
		t.Errorf("%d of the two columns exist", seen)
	}
}

// pointer returns a pointer to a value, or nil if it is unknown.
func pointer[T any](value record.Opt[T]) *T {
	if v, known := value.Get(); known {
		return &v
	}
	return nil
}

// TestPartition: names of files become values without characters that mean something to engines; values that were given keep theirs,
// in the form of Hive.
func TestPartition(t *testing.T) {
	for name, want := range map[string]string{"a/b.pcap": "b.pcap", "x=1 y": "x_1_y", "..": "_", "/": "_", "\u00fc": "_", "": "_"} {
		if got := parquet.ByName(name); got[0] != (parquet.Level{"capture", want}) {
			t.Errorf("%q: %v, want %q", name, got, want)
		}
	}
	for text, want := range map[string]string{
		"host=a=b/../c": "host=a%3Db%2F..%2Fc", "day=2026-11-23": "day=2026-11-23", "h=\u00fc %x\x01": "h=\u00fc %25x%01", "a=..": "a=..",
		"h=\u202eb": "h=%E2%80%AEb",
		"Host=a":    "", "host=": "", "=a": "", "host": "", "client=a": "", "capture_key=1": "", "tries=2": "", "1a=b": "", "a=\xff": "", "a=" + strings.Repeat("x", 254): "",
	} {
		p, err := parquet.ParsePartition([]string{text})
		if (err == nil) != (want != "") || err == nil && p.Path() != want {
			t.Errorf("%q: %v, %v; want %q", text, p, err, want)
		}
	}
	if p, err := parquet.ParsePartition([]string{"a=1", "a=2"}); err == nil {
		t.Errorf("a key that is given twice: %v", p)
	}
}

// BenchmarkTransactions writes the rows of RPCs.
func BenchmarkTransactions(b *testing.B) {
	w := written(b, b.TempDir())
	r := &record.Transaction{
		Status: record.Complete, Program: record.Some[uint32](100003), ProgramName: record.Some("NFS"), Version: record.Some[uint32](4),
		LatencyNS: record.Some[int64](1e6), Phases: record.Some(record.Phases{ToReplyNS: record.Some[int64](1e6)}), Client: record.Some("192.0.2.1"),
		Call: &record.Message{Form: record.Short}, Reply: &record.Message{Form: record.Chunked}, Operations: []string{"SEQUENCE", "READ"},
		WriteChunks: []record.WriteChunk{{Segments: make([]record.WriteSegment, 2)}},
	}
	h := w.Handler()
	b.ReportAllocs()
	for b.Loop() {
		r.ID++
		if err := h.Transaction(r); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}
