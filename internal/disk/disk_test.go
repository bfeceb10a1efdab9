package disk_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/internal/disk"
)

// create returns an empty temporary file.
func create(t testing.TB) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestTable verifies that records are sorted, with several runs and passes, and that
// Search finds the first record that is not less than a key.
func TestTable(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000, 200_000, 1_800_000} {
		const width = 20
		file := disk.NewFile(create(t))
		s := disk.NewSorter(file, width)
		r := rand.New(rand.NewPCG(1, uint64(n)))
		var keys []uint64
		record := make([]byte, width)
		for i := range n {
			key := r.Uint64N(uint64(n) * 2)
			keys = append(keys, key)
			binary.BigEndian.PutUint64(record, key)
			binary.BigEndian.PutUint64(record[8:], uint64(i))
			s.Add(record)
		}
		blob := file.Append([]byte("a blob"))
		slices.Sort(keys)
		count := int64(0)
		table := s.Table(func(record []byte) {
			binary.BigEndian.PutUint32(record[16:], uint32(count))
			count++
		})
		if err := file.Err(); err != nil || table.Len() != int64(n) || count != int64(n) {
			t.Fatalf("%d records of %d, %d, %v", table.Len(), n, count, err)
		}
		last := uint64(0)
		for i, key := range keys {
			b := table.At(int64(i))
			order := binary.BigEndian.Uint64(b[8:])
			if binary.BigEndian.Uint64(b) != key || binary.BigEndian.Uint32(b[16:]) != uint32(i) || i > 0 && keys[i-1] == key && order < last {
				t.Fatalf("record %d of %d: %x, want %x", i, n, b, key)
			}
			last = order
		}
		at := uint64(0)
		for try := range 2000 {
			if try%3 == 0 {
				at = r.Uint64N(uint64(n)*2 + 2)
			} else {
				at++
			}
			want, _ := slices.BinarySearch(keys, at)
			if got := table.Search(binary.BigEndian.AppendUint64(nil, at)); got != int64(want) {
				t.Fatalf("search %d of %d: %d, want %d", at, n, got, want)
			}
		}
		got := make([]byte, 6)
		if file.Read(got, blob); string(got) != "a blob" {
			t.Errorf("the blob is %q", got)
		}
	}
}

// TestFile verifies that blobs of all sizes can be read while others are appended.
func TestFile(t *testing.T) {
	file := disk.NewFile(create(t))
	r := rand.New(rand.NewPCG(1, 2))
	var whole []byte
	for range 3000 {
		b := make([]byte, r.IntN(1000))
		if r.IntN(100) == 0 {
			b = make([]byte, r.IntN(300_000))
		}
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if at := file.Append(b); at != int64(len(whole)) {
			t.Fatalf("appended at %d of %d", at, len(whole))
		}
		whole = append(whole, b...)
		from := r.IntN(len(whole) + 1)
		got := make([]byte, min(r.IntN(5000), len(whole)-from))
		if r.IntN(50) == 0 {
			got = make([]byte, len(whole)-from)
		}
		if file.Read(got, int64(from)); !bytes.Equal(got, whole[from:from+len(got)]) {
			t.Fatalf("%d bytes at %d are wrong", len(got), from)
		}
	}
	if err := file.Flush(); err != nil || file.Size() != int64(len(whole)) {
		t.Errorf("%d bytes, %v", file.Size(), err)
	}
	got := []byte("something")
	if file.Read(got, int64(len(whole))-3); file.Err() == nil || !bytes.Equal(got, make([]byte, 9)) {
		t.Errorf("beyond the end: %q, %v", got, file.Err())
	}
}

// full is a file that has no space.
type full struct{ *os.File }

var errFull = errors.New("no space")

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestFull verifies that an error of writing is kept.
func TestFull(t *testing.T) {
	file := disk.NewFile(full{create(t)})
	s := disk.NewSorter(file, 8)
	for i := range uint64(1 << 20) {
		s.Add(binary.BigEndian.AppendUint64(nil, i*7919%1e6))
	}
	s.Table(nil)
	if !errors.Is(file.Err(), errFull) {
		t.Error(file.Err())
	}
}

// TestMemory verifies that memory does not grow with the number of records.
func TestMemory(t *testing.T) {
	file := disk.NewFile(create(t))
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	s := disk.NewSorter(file, 64)
	record := make([]byte, 64)
	for i := range uint64(1_000_000) {
		binary.BigEndian.PutUint64(record, i*2654435761%1e9)
		s.Add(record)
	}
	table := s.Table(nil)
	for i := range int64(100_000) {
		table.At(i * 10)
	}
	if n := heap() - before; n > 12<<20 || file.Err() != nil {
		t.Errorf("%d bytes of memory for %d of records, %v", n, table.Len()*64, file.Err())
	}
	runtime.KeepAlive(table)
}
