package nfs

import "testing"

// BenchmarkNames decodes the operation names of a COMPOUND of a real client. Every Call
// of NFSv4 costs that much in every view.
func BenchmarkNames(b *testing.B) {
	call := bytesOf("", 2, 7, 53, id, 1, 2, 3, 1, 22, "a file handle of 28 bytes...", 32,
		18, 1, 1, 0, long, "owner", 1, 3, long, attr, 0, "name", 10, 3, 31, 9, 2, 7, 7)
	results := bytesOf(0, "", 4, 53, 0, id, 1, 2, 3, 4, 0, 22, 0,
		26, 0, long, 1, long, "a", attr, 1, long, "b", attr, 1, long, "c", attr, 0, 1, 9, 0, attr)
	m := Message{Limit: -1}
	b.SetBytes(int64(len(call) + len(results)))
	b.ReportAllocs()
	for b.Loop() {
		if m.Call(ProgramNFS, 4, 1, NewStream(call, nil)); !m.Complete || len(m.Ops) != 7 {
			b.Fatal(m.Err)
		}
		if m.Reply(ProgramNFS, 4, 1, NewStream(results, nil)); !m.Complete || len(m.Ops) != 4 {
			b.Fatal(m.Err)
		}
	}
}

// BenchmarkMessage decodes a directory of 100 entries.
func BenchmarkMessage(b *testing.B) {
	results := []any{0, "", 1, 26, 0, long}
	for range 100 {
		results = append(results, 1, long, "the name of a file", attr)
	}
	data := bytesOf(append(results, 0, 1)...)
	var m Message
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if m.Reply(ProgramNFS, 4, 1, NewStream(data, nil)); !m.Complete || m.Left != 0 {
			b.Fatal(m.Err)
		}
	}
}

// TestNoAllocations: once the slices have grown, decoding allocates nothing, with or
// without values.
func TestNoAllocations(t *testing.T) {
	call := bytesOf("", 2, 3, 53, id, 1, 2, 3, 1, 22, "a file handle", 38, id, long, 1, "the data")
	results := bytesOf(0, "", 2, 26, 0, long, 1, long, "a", attr, 1, long, "b", attr, 0, 1, 9, 0, attr)
	var m Message
	quiet, names := Message{Limit: -1}, []string(nil)
	if n := testing.AllocsPerRun(100, func() {
		quiet.Call(ProgramNFS, 4, 1, NewStream(call, nil))
		names = quiet.AppendNames(names[:0])
		quiet.Reply(ProgramNFS, 4, 1, NewStream(results, nil))
		quiet.Reply(ProgramNFS, 4, 1, NewStream(results[:len(results)-2], nil)) // a truncated message
		m.Call(ProgramNFS, 4, 1, NewStream(call, nil))
		m.Reply(ProgramNFS, 4, 1, NewStream(results, nil))
		m.Find(0, "cookieverf")
	}); n != 0 || !m.Complete {
		t.Errorf("%v allocations: %v", n, m.Err)
	}
}
