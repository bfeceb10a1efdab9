package nfs

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// FuzzWriteVerifier: truncated and wrong results never give a verifier from beyond their end.
func FuzzWriteVerifier(f *testing.F) {
	commit := make([]byte, 4+4+4+8)
	binary.BigEndian.PutUint64(commit[12:], 7)
	f.Add(uint32(procedureCommit), commit)
	f.Add(uint32(procedureWrite), append(make([]byte, 12), 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7))
	f.Add(uint32(procedureWrite), []byte{0, 0, 0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, procedure uint32, body []byte) {
		if verifier, known := WriteVerifier3(procedure, body); known && len(body) < 20 {
			t.Errorf("%d from %x", verifier, body)
		}
		m := Message{Limit: -1}
		m.Reply(ProgramNFS, 4, ProcedureCompound, NewStream(body, nil))
		m.WriteVerifier(body)
		m.Moved(body)
		m.Call(ProgramNFS, 4, ProcedureCompound, NewStream(body, nil))
		m.ClientOwner(body)
		m.SlotUse(body)
	})
}

// TestSlotUse: the session, the sequence number and the slot are those of SEQUENCE, if that is the first operation.
func TestSlotUse(t *testing.T) {
	for _, c := range []struct {
		call []byte
		want []byte
	}{
		{compoundOf(53, id, 7, 2, 9, 1), bytesOf(id, 7, 2)},
		{compoundOf(53, id, 7, 2, 5, 0), bytesOf(id, 7, 2)},
		{compoundOf(53, id, 8, 2, 9, 1), bytesOf(id, 8, 2)},
		{compoundOf(53, id, 7), nil},
		{compoundOf(24), nil},
		{bytesOf("", 1, 0), nil},
	} {
		m := Message{Limit: -1}
		m.Call(ProgramNFS, 4, ProcedureCompound, NewStream(c.call, nil))
		if got := m.SlotUse(c.call); !bytes.Equal(got, c.want) {
			t.Errorf("%x, want %x", got, c.want)
		}
	}
}

// TestWriteVerifier3: the verifier follows the attributes, which may be absent, and is not in results of a failure.
func TestWriteVerifier3(t *testing.T) {
	words := func(list ...uint32) (b []byte) {
		for _, w := range list {
			b = binary.BigEndian.AppendUint32(b, w)
		}
		return b
	}
	before, after := make([]uint32, 6), make([]uint32, 21)
	full := append(append(append(append([]uint32{0, 1}, before...), 1), after...), 9, 2, 1, 2)
	for _, c := range []struct {
		procedure uint32
		body      []byte
		want      uint64
		known     bool
	}{
		{procedureWrite, words(0, 0, 0, 9, 2, 1, 2), 1<<32 | 2, true},
		{procedureCommit, words(0, 0, 0, 1, 2), 1<<32 | 2, true},
		{procedureWrite, words(full...), 1<<32 | 2, true},
		{procedureWrite, words(5, 0, 0, 9, 2, 1, 2), 0, false},
		{procedureWrite, words(0, 0, 0, 9, 2, 1), 0, false},
		{1, words(0, 0, 0, 9, 2, 1, 2), 0, false},
	} {
		if got, known := WriteVerifier3(c.procedure, c.body); got != c.want || known != c.known {
			t.Errorf("procedure %d: %x: %x %t", c.procedure, c.body, got, known)
		}
	}
}
