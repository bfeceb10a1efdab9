package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/floods"
	"github.com/rdmadump/rdmadump/synth"
)

// benchedViews lists command lines that people run on large captures.
var benchedViews = []struct{ name, args string }{
	{"transactions", "transactions"},
	{"transactions.json", "transactions -o json"},
	{"stats", "stats"},
	{"check", "check"},
	{"packets", "packets"},
	{"packets.json", "packets -o json"},
	{"packets.fields", "packets -e bth.opcode -e bth.dest_qpn -e bth.psn -e reth.r_key -e aeth.syndrome -e rpcrdma.xid -e rpcrdma.credits -e rpcordma.rdma_handle"},
}

// BenchmarkViews runs views over long captures: each consists of many copies of a capture of the
// tests. Its profile is the one that builds are optimized with (make profile).
func BenchmarkViews(b *testing.B) {
	for _, name := range []string{"rocev2-nfs41.pcap", "iwarp-nfs41.pcap", "rocev2-loss42.pcap"} {
		path := filepath.Join(b.TempDir(), name)
		long(b, filepath.Join("../../testdata/captures", name+".zst"), path)
		for _, v := range benchedViews {
			b.Run(v.name+"/"+name, func(b *testing.B) {
				args := append(strings.Fields(v.args), "-q", path)
				for b.Loop() {
					if code := run(context.Background(), args, io.Discard, io.Discard); code > command.ExitFound {
						b.Fatalf("%v: exit status %d", args, code)
					}
				}
			})
		}
	}
}

// BenchmarkFloods runs the program over captures with very many objects of one kind. It reports
// the time for a packet, or for a segment of a chunk list, from start to end of the program, in
// the fastest of the runs, because other processes slow down the others.
func BenchmarkFloods(b *testing.B) {
	dir := b.TempDir()
	binary := filepath.Join(dir, "rdmadump")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for i := range floods.All {
		b.Run(floods.All[i].Name, func(b *testing.B) {
			frames, segments := floods.All[i].Frames(100_000)
			n, unit := len(frames), "ns/packet"
			if segments > 0 { // There are few packets, and starting takes most of the time.
				frames, n = floods.All[i].Frames(1_000_000)
				unit = "ns/segment"
			}
			file := filepath.Join(dir, "flood.pcap")
			to, err := os.Create(file)
			if err != nil {
				b.Fatal(err)
			}
			if err := errors.Join((&synth.Wire{Frames: frames}).WritePcap(to), to.Close()); err != nil {
				b.Fatal(err)
			}
			quickest := time.Hour
			for b.Loop() {
				began := time.Now()
				if err := exec.Command(binary, "stats", "-q", file).Run(); err != nil {
					b.Fatal(err)
				}
				quickest = min(quickest, time.Since(began))
			}
			b.ReportMetric(float64(quickest.Nanoseconds())/float64(n), unit)
			b.ReportMetric(0, "ns/op")
		})
	}
}

// long writes 20 copies of a capture, one after another.
func long(b *testing.B, from, to string) {
	b.Helper()
	frames, _ := testkit.Frames(b, from)
	out, err := os.Create(to)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	w := capture.NewWriter(out)
	err = w.Begin("")
	span := frames[len(frames)-1].Time - frames[0].Time + int64(10*time.Second)
	for range 20 {
		for i := range frames {
			if err == nil {
				err = w.Write(&frames[i])
			}
			frames[i].Time += span
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		b.Fatal(err)
	}
}
