package nfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		program, version, procedure uint32
		name, procName              string
	}{
		{100003, 2, 17, "NFS", "STATFS"},
		{100003, 3, 6, "NFS", "READ"},
		{100003, 3, 21, "NFS", "COMMIT"},
		{100003, 3, 22, "NFS", ""},
		{100003, 4, 1, "NFS", "COMPOUND"},
		{100005, 3, 1, "MOUNT", "MNT"},
		{100021, 4, 2, "NLM", "LOCK"},
		{100021, 4, 23, "NLM", "FREE_ALL"},
		{100021, 1, 20, "NLM", ""},
		{100227, 3, 1, "NFSACL", "GETACL"},
		{0x40000000, 1, 1, "NFS_CB", "CB_COMPOUND"},
		{0x40000000, 4, 0, "NFS_CB", "CB_NULL"},
		{99, 1, 0, "", ""},
	} {
		if n, p := ProgramName(c.program), ProcedureName(c.program, c.version, c.procedure); n != c.name || p != c.procName {
			t.Errorf("program %d version %d procedure %d is %s %s", c.program, c.version, c.procedure, n, p)
		}
	}
	for _, c := range []struct {
		version, status uint32
		want            string
	}{
		{4, 0, "NFS4_OK"},
		{4, 10008, "NFS4ERR_DELAY"},
		{3, 10008, "NFS3ERR_JUKEBOX"},
		{3, 2, "NFS3ERR_NOENT"},
		{2, 70, "NFSERR_STALE"},
		{2, 0, "NFS_OK"},
		{4, 99999, "NFS4ERR_99999"},
	} {
		if got := StatusName(c.version, c.status); got != c.want {
			t.Errorf("version %d status %d is %s, want %s", c.version, c.status, got, c.want)
		}
	}
}

// bytesOf encodes its parts as XDR: an int as a 32-bit word, a string as an opaque.
func bytesOf(parts ...any) (b []byte) {
	for _, p := range parts {
		switch v := p.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case string:
			b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
			b = append(b, v...)
			b = append(b, make([]byte, -len(v)&3)...)
		case []byte:
			b = append(b, v...)
		}
	}
	return b
}

var (
	id   = make([]byte, 16)
	long = make([]byte, 8)
	info = make([]byte, 20)
	attr = bytesOf(2, 1, 2, string(bytesOf(1, 7, 0o644))) // supported_attrs, mode
)

// sample has the arguments and results of an operation.
type sample struct{ args, results []byte }

// samples returns a sample of every operation and callback.
func samples() (forward, callback map[int]sample) {
	delegation := bytesOf(2, id, 0, 1, long, 0, 0, 0, "who")
	forward = map[int]sample{
		3: {bytesOf(1), bytesOf(1, 1)}, 4: {bytesOf(1, id), id}, 5: {bytesOf(long, 1), long},
		6: {bytesOf(5, "target", "name", attr), bytesOf(info, 1, 7)}, 7: {long, nil}, 8: {id, nil}, 9: {bytesOf(1, 7), attr}, 10: {nil, bytesOf("handle")},
		11: {bytesOf("name"), info}, 12: {bytesOf(1, 0, long, long, 1, 1, id, 1, long, "owner"), id}, 13: {bytesOf(1, long, long, long, "owner"), nil},
		14: {bytesOf(1, 1, id, long, long), id}, 15: {bytesOf("name"), nil}, 16: {nil, nil}, 17: {attr, nil},
		18: {bytesOf(1, 1, 0, long, "owner", 1, 3, long, attr, 0, "name"), bytesOf(id, info, 0, 1, 7, delegation)}, 19: {bytesOf(1), nil},
		20: {bytesOf(id, 1), id}, 21: {bytesOf(id, 1, 1, 1), id}, 22: {bytesOf("handle"), nil}, 23: {nil, nil}, 24: {nil, nil},
		25: {bytesOf(id, long, 7), bytesOf(1, "the data")}, 26: {bytesOf(long, long, 1, 1, 1, 7), bytesOf(long, 1, long, "a", attr, 1, long, "b", attr, 0, 1)},
		27: {nil, bytesOf("target")}, 28: {bytesOf("name"), info}, 29: {bytesOf("from", "to"), bytesOf(info, info)}, 30: {long, nil}, 31: {nil, nil}, 32: {nil, nil},
		33: {bytesOf("name"), bytesOf(2, 1, 6, "oid", 0, 1)}, 34: {bytesOf(id, attr), bytesOf(1, 7)}, 35: {bytesOf(long, "id", 1, "tcp", "address", 1), bytesOf(long, long)},
		36: {bytesOf(long, long), nil}, 37: {attr, nil}, 38: {bytesOf(id, long, 1, "the data"), bytesOf(8, 1, long)}, 39: {bytesOf(long, "owner"), nil},
		40: {bytesOf(1, 2, 0, 1, 5, "machine", 0, 0, 1, 7), nil}, 41: {bytesOf(id, 1, 0), bytesOf(id, 1, 0)},
		42: {bytesOf(long, "owner", 1, 1, 1, 7, 1, 8, 1, "domain", "name", info[:12]), bytesOf(long, 1, 1, 0, long, "major", "scope", 0)},
		43: {bytesOf(long, 1, 1, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 1, 9, 0x40000000, 1, 0), bytesOf(id, 1, 1, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 1, 9)},
		44: {id, nil}, 45: {id, nil}, 46: {bytesOf(0, 1, 7, info[:12], info[:12], 1, 7, 1, 7), bytesOf(0, long, id, 1, 7, 1, 7, 1, 7)},
		47: {bytesOf(id, 1, 1, 1, 7), bytesOf(1, "body", 1, 7)}, 48: {bytesOf(1, 1, long, long), bytesOf(long, long, 2, id, id, 1)},
		49: {bytesOf(long, long, 0, id, 1, long, 0, 1, "body"), bytesOf(1, long)}, 50: {bytesOf(0, 1, 1, long, long, long, id, 1), bytesOf(1, id, 1, long, long, 1, 1, "body")},
		51: {bytesOf(0, 1, 1, 1, long, long, id, "body"), bytesOf(1, id)}, 52: {bytesOf(0), bytesOf(1, 1)}, 53: {bytesOf(id, 1, 2, 3, 1), bytesOf(id, 1, 2, 3, 4, 0)},
		54: {bytesOf("ssv", "digest"), bytesOf("digest")}, 55: {bytesOf(2, id, id), bytesOf(2, 0, 0)}, 56: {bytesOf(1, 1, 0), bytesOf(0)}, 57: {long, nil}, 58: {bytesOf(1), nil},
		59: {bytesOf(id, long, long), nil}, 60: {bytesOf(id, id, long, long, long, 1, 1, 1, 1, "server"), bytesOf(1, id, long, 1, long, 1, 1)},
		61: {bytesOf(id, 3, "tcp", "address"), bytesOf(long, 0, id, 1, 2, "url")}, 62: {bytesOf(id, long, long), nil}, 63: {bytesOf(id, long, long, 1, 7), bytesOf(1, 7)},
		64: {bytesOf(long, long, id, 1, id, 1, 1), nil}, 65: {bytesOf(long, long, id, long, long, long, long, id, 1, "body"), nil}, 66: {id, nil}, 67: {id, bytesOf(long, 1, 0)},
		68: {bytesOf(id, long, 7), bytesOf(1, 2, 0, long, "the data", 1, long, long)}, 69: {bytesOf(id, long, 0), bytesOf(0, long)},
		70: {bytesOf(id, 1, long, long, long, long, 1, long, "pattern"), bytesOf(0, long, 1, long)}, 71: {bytesOf(id, id, long, long, long), nil},
		72: {bytesOf("name"), bytesOf("value")}, 73: {bytesOf(0, "name", "value"), info}, 74: {bytesOf(long, 1), bytesOf(long, 2, "a", "b", 1)}, 75: {bytesOf("name"), info},
	}
	callback = map[int]sample{
		3: {bytesOf("handle", 1, 7), attr}, 4: {bytesOf(id, 0, "handle"), nil}, 5: {bytesOf(1, 1, 0, 1, "handle", long, long, id), nil},
		6: {bytesOf(id, "handle", 1, 1, 7, "values"), nil}, 7: {bytesOf("handle", 1, id, 0, 0, 0, 0, "who"), nil}, 8: {bytesOf(1, 1, 7), nil}, 9: {bytesOf(1), nil}, 10: {bytesOf(1), nil},
		11: {bytesOf(id, 1, 2, 3, 0, 1, id, 1, 4, 5), bytesOf(id, 1, 2, 3, 4)}, 12: {bytesOf(1, 1), nil}, 13: {bytesOf("handle", long, "owner"), nil}, 14: {bytesOf(1, 1, 7, "change"), nil},
		15: {bytesOf("handle", id, 0, 0, long, 1, long), nil},
	}
	return forward, callback
}

// TestEveryOperation: every operation is decoded to its exact end, because the operation
// after it is found.
func TestEveryOperation(t *testing.T) {
	forward, callbacks := samples()
	for _, kind := range []struct {
		name     string
		callback bool
		table    []operation
		samples  map[int]sample
		last     int
		lastName string
	}{
		{"forward", false, operations, forward, 16, "LOOKUPP"},
		{"callback", true, callbackOperations, callbacks, 10, "CB_RECALL_SLOT"},
	} {
		for number := range kind.table {
			op := &kind.table[number]
			if op.name == "" {
				continue
			}
			t.Run(op.name, func(t *testing.T) {
				sample, known := kind.samples[number]
				if !known {
					t.Fatal("no sample")
				}
				want := []string{op.name, kind.lastName}
				head := bytesOf("tag", 1)
				if kind.callback {
					head = bytesOf("tag", 1, 7)
				}
				var m Message
				quiet := Message{Limit: -1}
				program := uint32(ProgramNFS)
				if kind.callback {
					program = ProgramCallback
				}
				call := bytesOf(head, 2, number, sample.args, kind.last)
				if quiet.Call(program, 4, 1, NewStream(call, nil)); !slices.Equal(quiet.AppendNames(nil), want) || !quiet.Named {
					t.Errorf("arguments: %v, named %t", quiet.AppendNames(nil), quiet.Named)
				}
				if kind.last == 10 && kind.callback {
					call = bytesOf(call, 5) // CB_RECALL_SLOT has an argument
				}
				m.Call(program, 4, 1, NewStream(call, nil))
				if !m.Complete || m.Left != 0 || m.Err != nil || len(m.Ops) != 2 || m.MinorVersion != 1 {
					t.Errorf("arguments: %d operations, %d bytes left: %v", len(m.Ops), m.Left, m.Err)
				}
				results := bytesOf(0, "tag", 2, number, 0, sample.results, kind.last, 0)
				if quiet.Reply(program, 4, 1, NewStream(results, nil)); !slices.Equal(quiet.AppendNames(nil), want) || !quiet.Named || !quiet.HasStatus {
					t.Errorf("results: %v, named %t", quiet.AppendNames(nil), quiet.Named)
				}
				m.Reply(program, 4, 1, NewStream(results, nil))
				if !m.Complete || m.Left != 0 || m.Err != nil || len(m.Ops) != 2 || !m.HasStatus {
					t.Errorf("results: %d operations, %d bytes left: %v", len(m.Ops), m.Left, m.Err)
				}
			})
		}
	}
}

// TestHoles: decoding skips items that chunks carried, at their positions.
func TestHoles(t *testing.T) {
	for _, limit := range []int{-1, 0} {
		m := Message{Limit: limit}
		arguments := func(data []byte, holes ...Hole) string {
			m.Call(ProgramNFS, 4, 1, NewStream(data, holes))
			return fmt.Sprint(m.AppendNames(nil), m.Named)
		}
		results := func(data []byte, holes ...Hole) string {
			m.Reply(ProgramNFS, 4, 1, NewStream(data, holes))
			return fmt.Sprint(m.AppendNames(nil), m.Named)
		}
		// WRITE of 5 bytes in a Read chunk at its Position, then GETATTR.
		call := bytesOf("", 2, 2, 38, id, long, 1, 5, 9, 1, 7)
		if got := arguments(call, Hole{Position: int64(len(call) - 12), Length: 5}); got != "[WRITE GETATTR] true" || !m.Complete {
			t.Errorf("arguments: %s", got)
		}
		// READ and READLINK whose data went to two Write chunks.
		holes := []Hole{{Position: -1, Length: 6}, {Position: -1, Length: 8}}
		if got := results(bytesOf(0, "", 3, 25, 0, 1, 6, 27, 0, 8, 16, 0), holes...); got != "[READ READLINK LOOKUPP] true" || !m.Complete {
			t.Errorf("results: %s", got)
		}
		if holes[0].Position != 28 || holes[1].Position != 48 {
			t.Errorf("holes at %d and %d", holes[0].Position, holes[1].Position)
		}
		// The last operation is named although it has a hole or failed.
		for _, last := range [][]byte{bytesOf(25, 0, 1, 6), bytesOf(25, 70)} {
			if got := results(bytesOf(0, "", 2, 22, 0, last), Hole{Position: -1, Length: 6}); got != "[PUTFH READ] true" {
				t.Errorf("last: %s", got)
			}
		}
		// A failed operation ends the COMPOUND.
		if got := results(bytesOf(2, "", 2, 22, 0, 15, 2)); got != "[PUTFH LOOKUP] true" || m.Status != 2 {
			t.Errorf("failed: %s", got)
		}
		if got := results(bytesOf(2, "", 3, 22, 0, 15, 2, 9)); got != "[PUTFH LOOKUP] false" || !errors.Is(m.Err, ErrMalformed) {
			t.Errorf("behind a failed one: %s, %v", got, m.Err)
		}
		// Unknown operations, truncated streams, wrong counts.
		if got := arguments(bytesOf("", 2, 3, 22, "h", 99)); got != "[PUTFH OP_99] false" || !errors.Is(m.Err, ErrUnknown) {
			t.Errorf("unknown: %s, %v", got, m.Err)
		}
		if got := arguments(bytesOf("", 2, 1<<30, 9, 1<<30)); got != "[GETATTR] false" || !errors.Is(m.Err, ErrTruncated) {
			t.Errorf("lying: %s, %v", got, m.Err)
		}
		if got := arguments(bytesOf("", 2, 2, 9, 0, 9)); got != "[GETATTR GETATTR] true" || m.Complete { // all are named, the last is truncated
			t.Errorf("cut: %s, %v", got, m.Err)
		}
		if got := arguments(bytesOf("", 2, 1, 46, 7)); got != "[GET_DIR_DELEGATION] true" || m.Complete {
			t.Errorf("cut: %s, %v", got, m.Err)
		}
		if got := arguments(bytesOf("", 2, 1, 18, 1, 1, 0, long, "owner", 7)); got != "[OPEN] true" || m.Complete {
			t.Errorf("no such arm: %s, %v", got, m.Err)
		}
	}
}

func TestPrincipal(t *testing.T) {
	for operations, want := range map[string]string{
		"": "", "SEQUENCE": "SEQUENCE", "SEQUENCE PUTFH GETATTR": "GETATTR", "SEQUENCE PUTFH ACCESS GETATTR": "ACCESS",
		"SEQUENCE PUTFH OPEN GETFH ACCESS GETATTR": "OPEN", "SEQUENCE PUTFH GETATTR CLOSE": "CLOSE",
		"SEQUENCE PUTFH SAVEFH PUTFH RENAME": "RENAME", "SEQUENCE PUTROOTFH GETFH GETATTR": "GETATTR", "CB_SEQUENCE CB_RECALL": "CB_RECALL",
	} {
		if got := PrincipalOperation(strings.Fields(operations)); got != want {
			t.Errorf("%s is for %q, want %q", operations, got, want)
		}
	}
}

// TestRepeatedStateids: a repeated request may have other stateids, but for those that name what the request is about.
func TestRepeatedStateids(t *testing.T) {
	same := []string{"OPEN", "FREE_STATEID", "OFFLOAD_CANCEL", "OFFLOAD_STATUS"}
	for number := range operations {
		op := &operations[number]
		if _, changes := changing[uint32(number)]; strings.Contains(op.args, "stateid:s") && !changes && !slices.Contains(same, op.name) {
			t.Errorf("%s has a stateid, and changing (again.go) does not say where", op.name)
		}
	}
}
