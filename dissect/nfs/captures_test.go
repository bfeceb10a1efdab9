package nfs_test

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
)

const captures = "../../testdata/captures/"

// rpcs calls handle with the decoded arguments and, if the RPC succeeded, the decoded
// results of every RPC of a capture.
func rpcs(t testing.TB, name string, handle func(call, reply *nfs.Message)) {
	t.Helper()
	f, err := capture.Open(captures + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var call, reply nfs.Message
	var header, answer oncrpc.Header
	d := dissect.New(dissect.Handler{Payload: func(r *record.Transaction, made, got *record.Payload) error {
		if made == nil || got == nil || len(made.Holes)+len(got.Holes) > 0 {
			t.Errorf("%s: %v is not whole", name, r.XID)
			return nil
		}
		c, a := made.Data, got.Data
		if header.Decode(c) != nil || answer.Decode(a) != nil || !answer.Succeeded() {
			t.Errorf("%s: a Call of %d bytes, a Reply of %d", name, len(c), len(a))
			return nil
		}
		call.Call(header.Program, header.Version, header.Procedure, nfs.NewStream(c[header.Length:], nil))
		reply.Reply(header.Program, header.Version, header.Procedure, nfs.NewStream(a[answer.Length:], nil))
		handle(&call, &reply)

		return nil
	}}, dissect.Options{Rebuild: true})
	if _, err := d.Run(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// TestCaptures: all messages of real captures are decoded to their end, and the results
// in each Reply match the arguments of its Call.
func TestCaptures(t *testing.T) {
	for name, want := range map[string]struct {
		rpcs  int
		names string // names of files in the Calls
	}{
		"rocev2-nfs3.pcap.zst":       {349, "big hardlink link small"},
		"rocev2-nfs41.pcap.zst":      {319, "big hardlink link small"},
		"rocev2-ipv6-nfs42.pcap.zst": {323, "big hardlink link small"},
		"rocev2-callback41.pcap.zst": {64, ""},
		"rocev2-long42.pcap.zst":     {102, ""},
		"rocev2-data42.pcap.zst":     {107, "direct seq1000 seq5003 seq60000 seq7 seq999"},
		"lab-nfs40.pcap.zst":         {331, "big hardlink link small"},
	} {
		n, names := 0, map[string]bool{}
		rpcs(t, name, func(call, reply *nfs.Message) {
			n++
			for _, m := range []*nfs.Message{call, reply} {
				if !m.Complete || m.Left != 0 || m.Dropped != 0 {
					t.Errorf("%s: %s: %d bytes left: %v", name, m.Name, m.Left, m.Err)
				}
			}
			if len(reply.Ops) != len(call.Ops) && reply.Status == 0 || len(reply.Ops) > len(call.Ops) {
				t.Errorf("%s: %d operations, %d results", name, len(call.Ops), len(reply.Ops))
			}
			for i := range reply.Ops {
				if call.Ops[i].Name != reply.Ops[i].Name {
					t.Errorf("%s: %s is answered by %s", name, call.Ops[i].Name, reply.Ops[i].Name)
				}
				if v := call.Find(i, "name"); v != nil {
					names[string(v.Bytes)] = true
				}
				if data, count := reply.Find(i, "data"), call.Find(i, "count"); data != nil && (count == nil || data.Uint > count.Uint || call.Ops[i].MaxResult != int64(count.Uint)) {
					t.Errorf("%s: %s of %v has %d bytes of data", name, call.Ops[i].Name, count, data.Uint)
				}
				if written, data := reply.Find(i, "count"), call.Find(i, "data"); written != nil && data != nil && written.Uint != data.Uint {
					t.Errorf("%s: WRITE of %d bytes wrote %d", name, data.Uint, written.Uint)
				}
			}
		})
		for _, file := range strings.Fields(want.names) {
			if !names[file] {
				t.Errorf("%s: no Call names %s: %q", name, file, slices.Sorted(maps.Keys(names)))
			}
		}
		if n != want.rpcs {
			t.Errorf("%s: %d RPCs, want %d", name, n, want.rpcs)
		}
	}
}

// TestFilesByName maps file handles to names, collects the data written to each file,
// and compares its checksums with those that the client computed.
func TestFilesByName(t *testing.T) {
	sums, err := os.ReadFile(captures + "rocev2-data42.md5")
	if err != nil {
		t.Fatal(err)
	}
	names, files := map[string]string{}, map[string][]byte{} // by file handle
	rpcs(t, "rocev2-data42.pcap.zst", func(call, reply *nfs.Message) {
		current, name := "", ""
		for i := range reply.Ops {
			if v := call.Find(i, "fh"); v != nil {
				current = string(v.Bytes)
			}
			if v := call.Find(i, "name"); v != nil {
				name = string(v.Bytes)
			}
			if v := reply.Find(i, "object_fh"); v != nil && name != "" {
				names[string(v.Bytes)] = name
			}
			if data := call.Find(i, "data"); data != nil {
				end := call.Find(i, "offset").Uint + data.Uint
				if have := files[current]; uint64(len(have)) < end {
					files[current] = append(have, make([]byte, end-uint64(len(have)))...)
				}
				copy(files[current][end-data.Uint:], data.Bytes)
			}
		}
	})
	got := map[string]bool{}
	for handle, data := range files {
		sum := md5.Sum(data)
		got[fmt.Sprintf("%s  %s", hex.EncodeToString(sum[:]), names[handle])] = true
	}
	for line := range strings.Lines(string(sums)) {
		if !got[strings.TrimSpace(line)] {
			t.Errorf("no file %s: %q", strings.TrimSpace(line), slices.Sorted(maps.Keys(got)))
		}
	}
}

// TestExactValues compares a few RPCs with the commands that produced the captures.
func TestExactValues(t *testing.T) {
	find := func(name, procedure string, operation string, about func(call, reply *nfs.Message, op int) string, want string) {
		t.Helper()
		var got []string
		rpcs(t, name, func(call, reply *nfs.Message) {
			for i := range reply.Ops {
				if s := ""; call.Name == procedure && call.Ops[i].Name == operation {
					if s = about(call, reply, i); s != "" && !slices.Contains(got, s) {
						got = append(got, s)
					}
				}
			}
		})
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: %s: %s, want %s", name, operation, s, want)
		}
	}
	say := func(names ...string) func(call, reply *nfs.Message, op int) string {
		return func(call, reply *nfs.Message, op int) string {
			var out []string
			for _, name := range names {
				v := call.Find(op, name)
				if v == nil {
					v = reply.Find(op, name)
				}
				if v != nil {
					out = append(out, v.String())
				}
			}
			return strings.Join(out, " ")
		}
	}
	find("rocev2-nfs3.pcap.zst", "WRITE", "WRITE", say("offset", "count", "stable", "data", "committed"), `0 524288 FILE_SYNC 524288 bytes FILE_SYNC, 0 6 FILE_SYNC 6 bytes FILE_SYNC, 0 5130 FILE_SYNC 5130 bytes FILE_SYNC`)
	find("rocev2-nfs3.pcap.zst", "READ", "READ", say("offset", "count", "data", "eof"), `0 131072 131072 bytes false, 131072 131072 131072 bytes false, 262144 131072 131072 bytes false, 393216 131072 131072 bytes true, 0 4096 6 bytes true, 0 8192 5130 bytes true`)
	find("rocev2-nfs3.pcap.zst", "RENAME", "RENAME", say("dir_fh", "name", "to_dir_fh", "to_name"), `0100010000000000 "small" 0100010100000000a6534a424200000000000000 "small"`)
	find("rocev2-nfs3.pcap.zst", "FSINFO", "FSINFO", say("rtmax", "wtmax", "dtpref", "properties"), `524288 524288 524288 LINK|SYMLINK|HOMOGENEOUS|CANSETTIME`)
	find("rocev2-nfs41.pcap.zst", "COMPOUND", "WRITE", say("offset", "stable", "data"), `0 FILE_SYNC4 524288 bytes, 0 FILE_SYNC4 6 bytes, 0 FILE_SYNC4 5130 bytes`)
	find("rocev2-nfs41.pcap.zst", "COMPOUND", "READLINK", say("target"), `"/a/fairly/long/target/path/for/a/symlink/that/goes/on"`)
	find("rocev2-long42.pcap.zst", "COMPOUND", "GETXATTR", say("xattr_name"), `"big"`)
	find("rocev2-long42.pcap.zst", "COMPOUND", "COPY", say("src_offset", "dst_offset", "count", "synchronous", "source_servers"), `0 0 2097152 false 0`)
	find("rocev2-callback41.pcap.zst", "CB_COMPOUND", "CB_RECALL", say("stateid", "truncate", "fh"), `1:f829016b599f664302000000 false 0100010100000000009368ec0200000000000000, 1:f829016b599f664304000000 false 01000101000000003afdf7590300000000000000, 1:f829016b599f664306000000 false 0100010100000000e81c2c320400000000000000`)
	find("lab-nfs40.pcap.zst", "COMPOUND", "SETCLIENTID", say("cb_program", "netid", "addr", "callback_ident"), `0x40000000 "tcp" "192.168.77.2.141.51" 1, 0x40000000 "tcp" "192.168.77.2.148.127" 1`)
	find("lab-nfs40.pcap.zst", "COMPOUND", "LOOKUP", say("name"), `"small", "dir"`)
}
