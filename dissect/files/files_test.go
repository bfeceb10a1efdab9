package files_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/files"
	"github.com/rdmadump/rdmadump/dissect/nfs"
)

// words appends numbers and strings in XDR.
func words(b []byte, values ...any) []byte {
	for _, v := range values {
		switch v := v.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case string:
			b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
			b = append(append(b, v...), make([]byte, -len(v)&3)...)
		}
	}
	return b
}

// apply applies an RPC of NFSv3 and returns the path of its last file.
func apply(r *files.Resolver, server string, procedure uint32, call, reply []byte) string {
	var c, a nfs.Message
	c.Call(nfs.ProgramNFS, 3, procedure, nfs.NewStream(call, nil))
	a.Reply(nfs.ProgramNFS, 3, procedure, nfs.NewStream(reply, nil))
	path := ""
	for _, u := range r.Apply(server, &c, &a) {
		path = u.Path()
	}
	return path
}

// lookup applies a LOOKUP and returns the path of the file.
func lookup(r *files.Resolver, server, directory, name, handle string) string {
	return apply(r, server, 3, words(nil, directory, name), words(nil, 0, handle, 0, 0))
}

// TestServers: handles of one server say nothing about those of another.
func TestServers(t *testing.T) {
	r := files.New()
	lookup(r, "1", "D", "one", "F")
	lookup(r, "2", "D", "two", "F")
	for server, want := range map[string]string{"1": "one", "2": "two"} {
		f, ok := r.Single(server, files.Procedure{Program: nfs.ProgramNFS, Version: 3, Procedure: 1}, nil, words(nil, "F"))
		if !ok || !strings.HasSuffix(f.Path(), "/"+want) {
			t.Errorf("server %s: %v %q, want %q", server, ok, f.Path(), want)
		}
	}
}

// TestEvict: all memory can be freed, the least recently used files are forgotten first, and the
// directories of files that are remembered stay.
func TestEvict(t *testing.T) {
	r := files.New()
	charged := int64(0)
	r.Charge = func(bytes int64) { charged += bytes }
	lookup(r, "1", "R", "dir", "D")
	for i := range 1000 {
		lookup(r, "1", "D", fmt.Sprint("f", i), fmt.Sprint("F", i))
	}
	full := charged
	if full < 1000*400 || full > 1000*700 {
		t.Errorf("%d bytes are charged", full)
	}
	for range 990 {
		r.Evict()
	}
	for i, want := range map[int]string{5: "", 995: "/dir/f995"} {
		f, _ := r.Single("1", files.Procedure{Program: nfs.ProgramNFS, Version: 3, Procedure: 1}, nil, words(nil, fmt.Sprint("F", i)))
		if got := f.Path(); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("file %d is %q, want %q", i, got, want)
		}
	}
	for r.Evict() {
	}
	if charged != 0 {
		t.Errorf("%d bytes are charged for nothing", charged)
	}
}

// TestBounds: long names and handles are not remembered, directories are not in themselves, and long
// paths begin with a handle.
func TestBounds(t *testing.T) {
	r := files.New()
	if got := lookup(r, "1", "D", strings.Repeat("n", 2000), "LONG"); got != "" {
		if len(got) > 5000 {
			t.Errorf("a long name gives a path of %d bytes", len(got))
		}
	}
	f, _ := r.Single("1", files.Procedure{Program: nfs.ProgramNFS, Version: 3, Procedure: 1}, nil, words(nil, "LONG"))
	if got := f.Path(); got != "" {
		t.Errorf("a long name was remembered: %.20q", got)
	}
	if f, _ := r.Single("1", files.Procedure{Program: nfs.ProgramNFS, Version: 3, Procedure: 1}, nil, words(nil, strings.Repeat("h", 200))); f != nil {
		t.Error("a handle of 200 bytes was remembered")
	}
	lookup(r, "1", "A", "b", "B")
	lookup(r, "1", "B", "a", "A") // a cycle
	if got := lookup(r, "1", "B", "c", "C"); !strings.HasSuffix(got, "/b/c") {
		t.Errorf("in a cycle: %q", got)
	}
	name := strings.Repeat("x", 1000)
	at := "deep0"
	for i := range 300 {
		next := fmt.Sprint("deep", i+1)
		if got := lookup(r, "1", at, name, next); len(got) > 4096 || !strings.HasPrefix(got, "fh:") {
			t.Fatalf("at depth %d, the path has %d bytes", i, len(got))
		}
		at = next
	}
}

// FuzzApply applies RPCs with any arguments and results. All memory can be freed after them.
func FuzzApply(f *testing.F) {
	f.Add(uint8(4), uint8(1), words(nil, "", 1, 3, 24, 15, "name", 10), words(nil, 0, "", 3, 24, 0, 15, 0, 10, 0, "HANDLE"))
	f.Add(uint8(4), uint8(1), words(nil, "", 1, 4, 22, "D", 32, 22, "E", 29, "a", "b"), words(nil, 0, "", 4, 22, 0, 32, 0, 22, 0, 29, 0, 1, 0, 1, 0, 2, 1, 0, 1, 0, 2))
	f.Add(uint8(4), uint8(1), words(nil, "", 1, 2, 22, "D", 28, "a"), words(nil, 0, "", 2, 22, 0, 28, 0, 1, 0, 1, 0, 2))
	f.Add(uint8(3), uint8(3), words(nil, "D", "f"), words(nil, 0, "F", 0, 0))
	f.Add(uint8(3), uint8(14), words(nil, "D", "f", "E", "g"), words(nil, 0, 0, 0, 0, 0))
	f.Add(uint8(3), uint8(15), words(nil, "F", "D", "l"), words(nil, 0, 0, 0, 0))
	f.Add(uint8(1), uint8(1), words(nil, "/export"), words(nil, 0, "D", 0))
	f.Fuzz(func(t *testing.T, version, procedure uint8, call, reply []byte) {
		program, v := uint32(nfs.ProgramNFS), uint32(version%5)
		if v == 1 {
			program, v = nfs.ProgramMount, 3
		}
		r := files.New()
		charged := int64(0)
		r.Charge = func(bytes int64) { charged += bytes }
		var c, a nfs.Message
		c.Wanted, a.Wanted = files.Wanted, files.Wanted
		light := nfs.Message{Limit: -1}
		for range 2 { // what the first one leaves is there for the second one
			c.Call(program, v, uint32(procedure), nfs.NewStream(call, nil))
			a.Reply(program, v, uint32(procedure), nfs.NewStream(reply, nil))
			light.Call(program, v, uint32(procedure), nfs.NewStream(call, nil))
			r.Single("s", files.Procedure{Program: program, Version: v, Procedure: uint32(procedure)}, &light, call)
			for _, answer := range []*nfs.Message{nil, &a} {
				for _, u := range r.Apply("s", &c, answer) {
					if path := u.Path(); len(path) > 3<<12 || u.Op >= len(c.Ops) {
						t.Fatalf("operation %d of %d acts on a path of %d bytes", u.Op, len(c.Ops), len(path))
					}
				}
			}
		}
		if charged < 0 {
			t.Fatalf("%d bytes are charged", charged)
		}
		for r.Evict() {
		}
		if charged != 0 {
			t.Fatalf("%d bytes are charged for nothing", charged)
		}
	})
}
