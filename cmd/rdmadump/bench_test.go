package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/internal/testkit"
)

// benchedViews are command lines that people run on large captures.
var benchedViews = []struct{ name, args string }{
	{"transactions", "transactions"},
	{"transactions.json", "transactions -o json"},
	{"stats", "stats"},
	{"check", "check"},
	{"packets", "packets"},
	{"packets.json", "packets -o json"},
	{"packets.fields", "packets -e bth.opcode -e bth.dest_qpn -e bth.psn -e reth.r_key -e aeth.syndrome -e rpcrdma.xid -e rpcrdma.credits -e rpcordma.rdma_handle"},
}

// BenchmarkViews runs whole views over whole captures. Its profile is what builds
// of the program are optimized by: make profile.
func BenchmarkViews(b *testing.B) {
	for _, name := range []string{"rocev2-nfs41.pcap", "iwarp-nfs41.pcap", "rocev2-loss42.pcap"} {
		path := filepath.Join(b.TempDir(), name)
		testkit.Variants[0].Write(b, filepath.Join("../../testdata/captures", name+".zst"), path) // plain: views of large captures do not decompress
		for _, v := range benchedViews {
			b.Run(v.name+"/"+name, func(b *testing.B) {
				args := append(strings.Fields(v.args), "-q", path)
				for b.Loop() {
					if code := run(context.Background(), args, io.Discard, io.Discard); code > exitFound {
						b.Fatalf("%v: exit status %d", args, code)
					}
				}
			})
		}
	}
}
