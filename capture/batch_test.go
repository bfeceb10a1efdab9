package capture_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/rdmadump/rdmadump/capture"
)

// pcapOf returns a classic pcap of n frames, whose sizes cycle through the given ones.
func pcapOf(n int, sizes ...int) []byte {
	le := binary.LittleEndian
	b := pcap(le, 0xa1b23c4d, 1)
	for i := range n {
		size := sizes[i%len(sizes)]
		b = le.AppendUint32(le.AppendUint32(b, uint32(i)), 0)
		b = le.AppendUint32(le.AppendUint32(b, uint32(size)), uint32(size))
		b = append(b, pattern(i, size)...)
	}
	return b
}

// pcapngOf returns the same frames as pcapng, with blocks of other types between them.
func pcapngOf(n int, sizes ...int) []byte {
	le := binary.LittleEndian
	b := append(section(le), iface(le, 1, 0, option(le, 9, []byte{9}))...)
	for i := range n {
		if i%100 == 99 {
			b = append(b, block(le, 4, make([]byte, i%700))...)
		}
		size := sizes[i%len(sizes)]
		b = append(b, enhanced(le, 0, uint64(i)*1e9, string(pattern(i, size)), size)...)
	}
	return b
}

// pattern returns the contents of frame i.
func pattern(i, size int) []byte {
	b := make([]byte, size)
	for at := range b {
		b[at] = byte(i*7 + at*at>>4)
	}
	return b
}

func gzipped(raw []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(raw)
	w.Close()
	return b.Bytes()
}

func zstandard(raw []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(raw, nil)
}

// reads lists the ways in which an input may arrive.
var reads = []struct {
	name string
	of   func([]byte) io.Reader
}{
	{"at once", func(b []byte) io.Reader { return bytes.NewReader(b) }},
	{"in pieces", func(b []byte) io.Reader { return &pieces{b: b} }},
}

// pieces is a reader that returns a few bytes at a time, and sometimes none.
type pieces struct {
	b []byte
	n int
}

func (p *pieces) Read(to []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	p.n++
	n := copy(to[:min(len(to), p.n%1777)], p.b)
	p.b = p.b[n:]
	return n, nil
}

// TestBatches checks that frames keep their contents while several batches are in use and are
// released late, out of order and by another goroutine.
func TestBatches(t *testing.T) {
	defer capture.PoisonReleased()()
	const n = 700
	sizes := []int{60, 4200, 0, 1500, 9000, 64 << 10, 1}
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"pcap", pcapOf(n, sizes...)},
		{"pcapng", pcapngOf(n, sizes...)},
		{"gzip", gzipped(pcapOf(n, sizes...))},
		{"zstd", zstandard(pcapngOf(n, sizes...))},
		{"largest frames", pcapOf(40, capture.MaxFrame)},
	} {
		for _, r := range reads {
			t.Run(c.name+" "+r.name, func(t *testing.T) {
				f, err := capture.NewFile("x", r.of(c.data))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				want := n
				if c.name == "largest frames" {
					want, sizes = 40, []int{capture.MaxFrame}
					defer func(s []int) { sizes = s }(sizes)
				}
				checkInFlight(t, f, func(i int, f *capture.Frame) error {
					if f.Number != int64(i+1) || f.Time != int64(i)*1e9 || !bytes.Equal(f.Data, pattern(i, sizes[i%len(sizes)])) {
						return fmt.Errorf("frame %d is number %d at %d, %d bytes", i+1, f.Number, f.Time, len(f.Data))
					}
					return nil
				}, want)
			})
		}
	}
}

// checkInFlight reads a source with five batches in use at the same time, and checks each batch
// just before it is filled again.
func checkInFlight(t *testing.T, s capture.Source, check func(i int, f *capture.Frame) error, want int) {
	t.Helper()
	read, free := make(chan *capture.Batch, 5), make(chan *capture.Batch, 5)
	for range 5 {
		free <- new(capture.Batch)
	}
	failed := make(chan error, 1)
	go func() {
		defer close(read)
		for {
			b := <-free
			if err := s.ReadBatch(context.Background(), b); err != nil {
				if len(b.Frames) != 0 {
					err = fmt.Errorf("%d frames beside an error: %w", len(b.Frames), err)
				}
				failed <- err
				return
			}
			read <- b
		}
	}()
	i := 0
	var pending []*capture.Batch
	look := func(b *capture.Batch) {
		if len(b.Frames) == 0 || len(b.Frames) > capture.MaxBatch {
			t.Fatalf("a batch of %d frames", len(b.Frames))
		}
		for at := range b.Frames {
			if err := check(i, &b.Frames[at]); err != nil {
				t.Fatal(err)
			}
			i++
		}
		b.Release()
		free <- b
	}
	for b := range read {
		if pending = append(pending, b); len(pending) == 4 {
			look(pending[0])
			pending = pending[1:]
		}
	}
	for _, b := range pending {
		look(b)
	}
	if err := <-failed; err != io.EOF || i != want {
		t.Errorf("%d frames, want %d; error %v", i, want, err)
	}
}

// TestMergedBatches merges files whose times overlap, with several batches in use.
func TestMergedBatches(t *testing.T) {
	defer capture.PoisonReleased()()
	const files, n = 7, 4000
	le := binary.LittleEndian
	raw := make([][]byte, files)
	for i := range raw {
		raw[i] = pcap(le, 0xa1b23c4d, 1)
	}
	for i := range n {
		at := (i / 3 * 5) % files // three successive frames of each file
		size := 50 + i%3000
		b := le.AppendUint32(le.AppendUint32(raw[at], uint32(i)), 0)
		b = le.AppendUint32(le.AppendUint32(b, uint32(size)), uint32(size))
		raw[at] = append(b, pattern(i, size)...)
	}
	var open []*capture.File
	for i := range raw {
		f, err := capture.NewFile(fmt.Sprint(i), bytes.NewReader(raw[i]))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, f)
	}
	m := capture.Merge(open...)
	defer m.Close()
	checkInFlight(t, m, func(i int, f *capture.Frame) error {
		if f.Number != int64(i+1) || f.Time != int64(i)*1e9 || !bytes.Equal(f.Data, pattern(i, 50+i%3000)) {
			return fmt.Errorf("frame %d is number %d at %d, %d bytes", i+1, f.Number, f.Time, len(f.Data))
		}
		return nil
	}, n)
}

// TestBatchBroken checks that the frames before the damage are returned first, then the error, and
// that the error is returned again.
func TestBatchBroken(t *testing.T) {
	raw := pcapOf(10, 100)
	f, err := capture.NewFile("x", bytes.NewReader(raw[:len(raw)-7]))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b capture.Batch
	if err := f.ReadBatch(context.Background(), &b); err != nil || len(b.Frames) != 9 {
		t.Fatalf("%d frames, error %v", len(b.Frames), err)
	}
	for range 2 {
		var broken *capture.BrokenError
		if err := f.ReadBatch(context.Background(), &b); !errors.As(err, &broken) || broken.Frames != 9 || broken.Offset != 24+9*116 || len(b.Frames) != 0 {
			t.Errorf("%d frames, error %v", len(b.Frames), err)
		}
	}
}

// TestBatchOutlivesClose checks that the bytes of a batch stay valid after the file is closed.
func TestBatchOutlivesClose(t *testing.T) {
	defer capture.PoisonReleased()()
	f, err := capture.NewFile("x", bytes.NewReader(pcapOf(300, 100)))
	if err != nil {
		t.Fatal(err)
	}
	var b capture.Batch
	if err := f.ReadBatch(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for i := range b.Frames {
		if !bytes.Equal(b.Frames[i].Data, pattern(i, 100)) {
			t.Fatalf("frame %d changed", i+1)
		}
	}
	b.Release()
	b.Release()
}

// endless is a capture without end: one header, then the same records repeatedly.
type endless struct {
	header, records []byte
	at              int
}

func (e *endless) Read(p []byte) (n int, err error) {
	n = copy(p, e.header)
	e.header = e.header[n:]
	for n < len(p) {
		step := copy(p[n:], e.records[e.at:])
		e.at = (e.at + step) % len(e.records)
		n += step
	}
	return n, nil
}

// TestBatchAllocates checks that reading allocates nothing after the first batches.
func TestBatchAllocates(t *testing.T) {
	classic, ng := pcapOf(500, 60, 4200, 1500), pcapngOf(500, 60, 4200, 1500)
	ngHeader := len(section(binary.LittleEndian)) + len(iface(binary.LittleEndian, 1, 0, option(binary.LittleEndian, 9, []byte{9})))
	newFile := func(r io.Reader) *capture.File {
		f, err := capture.NewFile("x", r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	one := func() io.Reader { return &endless{header: classic[:24], records: classic[24:]} }
	for _, c := range []struct {
		name   string
		source capture.Source
	}{
		{"pcap", newFile(one())},
		{"pcapng", newFile(&endless{header: ng[:ngHeader], records: ng[ngHeader:]})},
		{"merged", capture.Merge(newFile(one()), newFile(one()), newFile(one()))},
	} {
		t.Run(c.name, func(t *testing.T) {
			batches := make([]capture.Batch, 4)
			at := 0
			read := func() {
				for range 50 {
					if err := c.source.ReadBatch(context.Background(), &batches[at%len(batches)]); err != nil {
						t.Fatal(err)
					}
					at++
				}
			}
			for range 10 {
				read()
			}
			if n := testing.AllocsPerRun(20, read); n != 0 {
				t.Errorf("%.2f allocations for 50 batches", n)
			}
		})
	}
}

// BenchmarkRead reads whole files from the page cache and reports bytes of capture per second.
func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	for _, size := range []struct {
		name  string
		n     int
		sizes []int
	}{{"jumbo", 30000, []int{4200, 4200, 4200, 66}}, {"small", 300000, []int{66, 110, 350}}} {
		classic, ng := pcapOf(size.n, size.sizes...), pcapngOf(size.n, size.sizes...)
		for _, format := range []struct {
			name   string
			packed []byte
			bytes  int
		}{
			{"pcap", classic, len(classic)},
			{"pcapng", ng, len(ng)},
			{"gzip", gzipped(classic), len(classic)},
			{"zstd", zstandard(classic), len(classic)},
		} {
			path := filepath.Join(dir, size.name+format.name)
			if err := os.WriteFile(path, format.packed, 0o600); err != nil {
				b.Fatal(err)
			}
			b.Run(size.name+"/"+format.name, func(b *testing.B) {
				b.SetBytes(int64(format.bytes))
				b.ReportAllocs()
				frames := 0
				for b.Loop() {
					f, err := capture.Open(path)
					if err != nil {
						b.Fatal(err)
					}
					var batch capture.Batch
					for {
						if err := f.ReadBatch(context.Background(), &batch); err != nil {
							if err != io.EOF {
								b.Fatal(err)
							}
							break
						}
						frames += len(batch.Frames)
					}
					f.Close()
				}
				b.ReportMetric(float64(frames)/b.Elapsed().Seconds(), "packets/s")
			})
		}
	}
}
