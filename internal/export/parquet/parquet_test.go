package parquet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	reader "github.com/parquet-go/parquet-go"

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
		CallBytes      *int64  `parquet:"call_bytes,optional"`
		ReadMovedBytes int64   `parquet:"read_moved_bytes"`
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

// TestTables compares the rows with the records.
func TestTables(t *testing.T) {
	folder := t.TempDir()
	w, err := parquet.Create(folder, "host 1/nfs=1.pcap")
	if err != nil {
		t.Fatal(err)
	}
	f := testkit.Open(t, "../../../testdata/captures/lab-iwarpdata3.pcap.zst")
	h := w.Handler()
	var want []*record.Transaction
	take := h.Transaction
	h.Transaction = func(r *record.Transaction) error {
		want = append(want, r.Clone())
		return take(r)
	}
	if _, err := dissect.New(h, dissect.Options{Files: true}).Run(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := reader.ReadFile[transaction](filepath.Join(folder, "transactions", "capture=nfs_1.pcap", "part-0.parquet"))
	if err != nil || len(got) != len(want) || len(got) != 93 {
		t.Fatalf("%d rows, want %d, %v", len(got), len(want), err)
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
	connections, err := reader.ReadFile[connection](filepath.Join(folder, "connections", "capture=nfs_1.pcap", "part-0.parquet"))
	plain := slices.DeleteFunc(slices.Clone(connections), func(c connection) bool { return c.Transport != "TCP" })
	connections = slices.DeleteFunc(connections, func(c connection) bool { return c.Transport == "TCP" })
	if len(plain) != 10 || plain[0].UpperLayer != "rpc" || *plain[0].ServerPort != 111 || plain[0].ClientQPN != nil {
		t.Errorf("connections without RDMA: %+v", plain)
	}
	if err != nil || len(connections) != 2 || connections[0].Transport != "iWARP" || *connections[0].ServerPort != 20049 || connections[0].ClientQPN != nil {
		t.Errorf("connections %+v, %v", connections, err)
	}
	if _, err := parquet.Create(folder, "nfs_1.pcap"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a partition that exists: %v", err)
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
func asText(t *testing.T, row transaction) string {
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
	w, err := parquet.Create(folder, "nfs.pcap")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, table := range []string{"transactions", "operations", "connections", "findings"} {
		fmt.Fprintln(&got, open(t, filepath.Join(folder, table, "capture=nfs.pcap", "part-0.parquet")).Schema())
	}
	want, err := os.ReadFile("testdata/columns.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the columns of the tables are\n%s\nwant those of testdata/columns.txt\n%s", got.String(), want)
	}
}

// open opens a file of a table.
func open(t *testing.T, path string) *reader.File {
	t.Helper()
	f, err := os.Open(path)
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
	w, err := parquet.Create(folder, "nfs.pcap")
	if err != nil {
		t.Fatal(err)
	}
	h := w.Handler()
	if err := h.Finding(&record.Finding{Rule: "a", Message: "b"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := open(t, filepath.Join(folder, "findings", "capture=nfs.pcap", "part-0.parquet"))
	for i, want := range map[int]bool{0: true, 4: false} { // rule and message
		chunk := file.Metadata().RowGroups[0].Columns[i].MetaData
		if got := chunk.DictionaryPageOffset != 0; got != want {
			t.Errorf("column %s has a dictionary: %t, want %t", chunk.PathInSchema, got, want)
		}
	}
}

// pointer returns a pointer to a value, or nil if it is unknown.
func pointer[T any](value record.Opt[T]) *T {
	if v, known := value.Get(); known {
		return &v
	}
	return nil
}

// TestPartition verifies that names of partitions have no characters with a meaning
// for query engines.
func TestPartition(t *testing.T) {
	for name, want := range map[string]string{"a/b.pcap": "b.pcap", "x=1 y": "x_1_y", "..": "_", "/": "_", "ü": "_", "": "_"} {
		if got := parquet.Partition(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// BenchmarkTransactions writes the rows of RPCs.
func BenchmarkTransactions(b *testing.B) {
	w, err := parquet.Create(b.TempDir(), "nfs.pcap")
	if err != nil {
		b.Fatal(err)
	}
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
