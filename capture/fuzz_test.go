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

	"github.com/klauspost/compress/zstd"

	"github.com/rdmadump/rdmadump/capture"
)

// FuzzFile checks that any input gives frames that are within bounds, or an error with an offset.
// The frames and the error must be the same whether the bytes arrive at once or in pieces, and
// whether frames are read one by one or in batches that are released late.
func FuzzFile(f *testing.F) {
	defer capture.PoisonReleased()()
	le := binary.LittleEndian
	f.Add(pcap(le, 0xa1b2c3d4, 1, sample...))
	f.Add(pcap(binary.BigEndian, 0xa1b23c4d, 1, sample...))
	f.Add(pcap(le, 0xa1b2cd34, 1, sample...))
	f.Add(gzipped(pcap(le, 0xa1b2c3d4, 1, sample...)))
	f.Add(zstandard(pcap(le, 0xa1b2c3d4, 1, sample...)))
	f.Add(oneFrame(0xff, -1<<63, 1<<64-1))
	f.Add(bytes.Join([][]byte{
		section(le), iface(le, 1, 0, option(le, 9, []byte{0x83})), enhanced(le, 0, 1, "first", 5), block(le, 5, make([]byte, 24)),
		block(le, 3, append(le.AppendUint32(nil, 9), "simple"...)), block(le, 4, []byte("names")),
		section(binary.BigEndian), iface(binary.BigEndian, 1, 96), enhanced(binary.BigEndian, 0, 1, "again", 5),
	}, nil))
	paths, _ := filepath.Glob("../samples/*.pcap")
	more, _ := filepath.Glob("../testdata/captures/*.pcapng.zst")
	for _, path := range append(paths, more...) {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if filepath.Ext(path) == ".zst" {
			z, err := zstd.NewReader(bytes.NewReader(raw))
			if err != nil {
				f.Fatal(err)
			}
			raw, _ = io.ReadAll(io.LimitReader(z, 5000))
			z.Close()
		}
		f.Add(raw[:min(len(raw), 5000)])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		one := framesOf(t, bytes.NewReader(data), false)
		for _, other := range [][]string{framesOf(t, bytes.NewReader(data), true), framesOf(t, &pieces{b: data}, true)} {
			if len(one) != len(other) {
				t.Fatalf("%d lines one way, %d the other: %q and %q", len(one), len(other), one[len(one)-1], other[len(other)-1])
			}
			for i := range one {
				if one[i] != other[i] {
					t.Fatalf("%q one way, %q the other", one[i], other[i])
				}
			}
		}
	})
}

// framesOf reads all frames and the final error, one per line, and checks them against the contract
// of Source.
func framesOf(t *testing.T, r io.Reader, batches bool) (lines []string) {
	file, err := capture.NewFile("fuzz", r)
	if err != nil {
		return []string{err.Error()}
	}
	defer file.Close()
	add := func(f *capture.Frame) {
		if len(f.Data) > capture.MaxFrame || cap(f.Data) != len(f.Data) || f.Length < len(f.Data) || f.Number != int64(len(lines)+1) {
			t.Fatalf("frame %d of %d bytes, %d on the wire, after frame %d", f.Number, len(f.Data), f.Length, len(lines))
		}
		lines = append(lines, fmt.Sprint(f.Time, f.LinkType, f.Length, " ", string(f.Data)))
	}
	if batches {
		var flight [3]capture.Batch // each batch is checked just before it is filled again
		look := func(b *capture.Batch) {
			for i := range b.Frames {
				add(&b.Frames[i])
			}
			b.Release()
		}
		at := 0
		for ; err == nil; at++ {
			look(&flight[at%len(flight)])
			err = file.ReadBatch(context.Background(), &flight[at%len(flight)])
		}
		for i := range flight {
			look(&flight[(at+i)%len(flight)])
		}
	} else {
		err = io.EOF
		for f, broken := range capture.All(context.Background(), file) {
			if broken != nil {
				err = broken
				break
			}
			add(f)
		}
	}
	var broken *capture.BrokenError
	switch {
	case err == io.EOF:
	case !errors.As(err, &broken) || broken.Frames != int64(len(lines)) || broken.Offset < 0:
		t.Fatalf("after %d frames: %v", len(lines), err)
	}
	return append(lines, err.Error())
}

// FuzzSpan checks that the span of any content is found without a panic, and that of a sound file is right.
func FuzzSpan(f *testing.F) {
	f.Add(pcap(binary.LittleEndian, 0xa1b2c3d4, 1, sample...))
	f.Add(pcap(binary.BigEndian, 0xa1b23c4d, 113, sample...))
	f.Add([]byte("\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x1c\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		capture.SpanIn(raw)
		sound := append(pcap(binary.LittleEndian, 0xa1b23c4d, 1, frame{7, 1, "first", 5}), pcap(binary.LittleEndian, 0xa1b23c4d, 1, frame{9, 2, string(raw[:min(len(raw), 60000)]) + "!", 70000})[24:]...)
		if s, known := capture.SpanIn(sound); !known || s.First != 7e9+1 || s.Last != 9e9+2 {
			t.Errorf("%v, %v, want 7.000000001 s to 9.000000002 s", s, known)
		}
	})
}
