package parquet_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	reader "github.com/parquet-go/parquet-go"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/export/parquet"
	"github.com/rdmadump/rdmadump/internal/testkit"
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
	got, err := reader.ReadFile[parquet.Transaction](filepath.Join(folder, "transactions", "capture=nfs_1.pcap", "part-0.parquet"))
	if err != nil || len(got) != len(want) || len(got) != 93 {
		t.Fatalf("%d rows, want %d, %v", len(got), len(want), err)
	}
	moved, files := int64(0), 0
	for i, r := range want {
		g := &got[i]
		latency, known := r.LatencyNS.Get()
		if g.ID != r.ID || g.XID != uint32(r.XID) || g.Status != string(r.Status) || g.Time != int64(r.Call.Time) || g.Packet != r.Call.Packet ||
			known != (g.LatencyNS != nil) || known && *g.LatencyNS != latency || *g.CallBytes != r.Call.PayloadBytes.Or(-1) ||
			*g.Procedure != r.Procedure.Or(99) || (g.Operation != nil) != r.Operation.Known() {
			t.Errorf("row %d: %+v, want %+v", i, g, r)
		}
		if !same(g.Client, r.Client) || !same(g.Server, r.Server) || !same(g.UID, r.UID) || !same(g.GID, r.GID) || !same(g.Machine, r.Machine) ||
			!same(g.Principal, r.Principal) || !same(g.File, r.File) || !same(g.FileFrom, r.FileFrom) || !same(g.FileHandle, r.FileHandle) {
			t.Errorf("row %d: %+v, want %+v", i, g, r)
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
	connections, err := reader.ReadFile[parquet.Connection](filepath.Join(folder, "connections", "capture=nfs_1.pcap", "part-0.parquet"))
	plain := slices.DeleteFunc(slices.Clone(connections), func(c parquet.Connection) bool { return c.Transport != "TCP" })
	connections = slices.DeleteFunc(connections, func(c parquet.Connection) bool { return c.Transport == "TCP" })
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

// same reports whether a column has the value of a record, or is null if that is unknown.
func same[T comparable](column *T, value record.Opt[T]) bool {
	v, known := value.Get()
	return known == (column != nil) && (column == nil || *column == v)
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
