package nfs

import "testing"

// BenchmarkCompound names the operations of a COMPOUND as a client sends them:
// what every Call of NFSv4 costs, asked for or not.
func BenchmarkCompound(b *testing.B) {
	call := bytesOf("", 2, 7, 53, id, 1, 2, 3, 1, 22, "a file handle of 28 bytes...", 32,
		18, 1, 1, 0, long, "owner", 1, 3, long, attr, 0, "name", 10, 3, 31, 9, 2, 7, 7)
	results := bytesOf(0, "", 4, 53, 0, id, 1, 2, 3, 4, 0, 22, 0,
		26, 0, long, 1, long, "a", attr, 1, long, "b", attr, 1, long, "c", attr, 0, 1, 9, 0, attr)
	var c Compound
	b.SetBytes(int64(len(call) + len(results)))
	b.ReportAllocs()
	for b.Loop() {
		if c.Arguments(NewStream(call, nil), false); !c.Complete || len(c.Operations) != 7 {
			b.Fatal(c.Operations)
		}
		if c.Results(NewStream(results, nil), false); !c.Complete || len(c.Operations) != 4 {
			b.Fatal(c.Operations)
		}
	}
}
