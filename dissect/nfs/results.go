package nfs

import "encoding/binary"

// Verifiers: the numbers by which a client and a server recognize that the other one restarted.

// The operations and procedures that have verifiers (RFC 1813, RFC 7530, RFC 8881), and the maximum length of a client's name.
const (
	procedureWrite  = 7
	procedureWrite2 = 8 // of NFSv2
	procedureCommit = 21
	opCommit        = 5
	opSetClientID   = 35
	opWrite         = 38
	opExchangeID    = 42
	opSequence      = 53
	opCopy          = 60
	maxOwner        = 1024
)

// ClientOwner returns the owner and the verifier with which a client names itself in the Call of a COMPOUND, of which body has
// the arguments without holes. The arguments of both operations that do that begin with the verifier and the owner. It returns
// false if there is none, or if it is not whole.
func (m *Message) ClientOwner(body []byte) (owner []byte, verifier uint64, known bool) {
	for i := range m.Ops {
		op := &m.Ops[i]
		if op.Number != opSetClientID && op.Number != opExchangeID || op.At < 0 || op.At > int64(len(body)) {
			continue
		}
		const fixed = 4 + 8 + 4 // number of the operation, verifier, length of the owner
		at := body[op.At:]
		if len(at) < fixed {
			return nil, 0, false
		}
		size := binary.BigEndian.Uint32(at[fixed-4:])
		if size == 0 || size > maxOwner || int(size) > len(at)-fixed {
			return nil, 0, false
		}
		return at[fixed : fixed+size], binary.BigEndian.Uint64(at[4:]), true
	}
	return nil, 0, false
}

// SlotUse returns the bytes of a COMPOUND Call that identify it in its session: the session, and which use of which slot it is.
// Body has the arguments. It returns nil if the COMPOUND is in no session, or is not whole.
func (m *Message) SlotUse(body []byte) []byte {
	const session, use = 16, 8
	if len(m.Ops) == 0 || m.Ops[0].Number != opSequence {
		return nil
	}
	from := m.Ops[0].At + 4 // number of the operation
	if from < 4 || from+session+use > int64(len(body)) {
		return nil
	}
	return body[from : from+session+use]
}

// WritesData reports whether the arguments of a procedure contain data of a file, which may change until they are encoded again.
func WritesData(program, version, procedure uint32) bool {
	return program == ProgramNFS && (version == 3 && procedure == procedureWrite || version == 2 && procedure == procedureWrite2)
}

// WriteVerifier returns the last verifier in the results of WRITE and COMMIT of a COMPOUND, of which body has the results without
// holes. It returns false if there is none.
func (m *Message) WriteVerifier(body []byte) (verifier uint64, known bool) {
	for i := range m.Ops {
		op := &m.Ops[i]
		at := op.At + 8 // number and status
		if op.Number == opWrite {
			at += 8 // bytes and stability
		} else if op.Number != opCommit {
			continue
		}
		if op.HasStatus && op.Status == 0 && at >= 0 && at <= int64(len(body))-8 {
			verifier, known = binary.BigEndian.Uint64(body[at:]), true
		}
	}
	return verifier, known
}

// SequenceFlags returns the status flags in the results of a COMPOUND that begins with a SEQUENCE that succeeded (RFC 8881 s.18.46), of which body has
// the beginning. They are 0 if there are none.
func SequenceFlags(body []byte) (flags uint32) {
	const before, results = 8, 8 + 16 + 16 // status and length of the tag; number, status, session, and four numbers
	if len(body) < before {
		return 0
	}
	tag := uint64(binary.BigEndian.Uint32(body[4:]))
	at := before + (tag+3)&^3 + 4 // number of the results
	if at+results+4 > uint64(len(body)) {
		return 0
	}
	if first := body[at:]; binary.BigEndian.Uint64(first) == opSequence<<32 {
		return binary.BigEndian.Uint32(first[results:])
	}
	return 0
}

// CopyPromised reports whether the results of a COMPOUND say that the server goes on with a COPY after its Reply (RFC 7862 s.15.2): they name a stateid
// for the callback. Body has the results without holes.
func (m *Message) CopyPromised(body []byte) bool {
	for i := range m.Ops {
		op := &m.Ops[i]
		if at := op.At + 8; op.Number == opCopy && op.HasStatus && op.Status == 0 && at >= 8 && at <= int64(len(body))-4 {
			return binary.BigEndian.Uint32(body[at:]) == 1
		}
	}
	return false
}

// WriteVerifier3 returns the verifier in the results of WRITE or COMMIT of NFSv3, and false for other procedures, and if the results
// are truncated. They begin with a status and the attributes of the file before and after the operation, each of which may be absent.
func WriteVerifier3(procedure uint32, body []byte) (verifier uint64, known bool) {
	if procedure != procedureWrite && procedure != procedureCommit {
		return 0, false
	}
	at := 4
	for _, size := range [...]int{24, 84} {
		if len(body) < at+4 {
			return 0, false
		}
		if at += 4; binary.BigEndian.Uint32(body[at-4:]) != 0 {
			at += size
		}
	}
	if procedure == procedureWrite {
		at += 8 // bytes and stability
	}
	if len(body) < at+8 || binary.BigEndian.Uint32(body) != 0 {
		return 0, false
	}
	return binary.BigEndian.Uint64(body[at:]), true
}

// Moved returns the number of bytes that the READs and WRITEs of an RPC moved, according to the
// results in body, which are decoded without values.
func (m *Message) Moved(body []byte) (read, written int64) {
	v4 := IsCompound(m.Program, m.Version, m.Procedure)
	for i := range m.Items {
		if item := &m.Items[i]; item.Name == "data" {
			read += item.Length
		}
	}
	for i := range m.Ops {
		o := &m.Ops[i]
		at := int64(-1) // offset of the count of a WRITE
		switch {
		case !o.HasStatus || o.Status != 0 || !m.Complete && i == len(m.Ops)-1:
		case v4 && o.Number == opWrite:
			at = o.At + 8
		case !v4 && m.Name == "WRITE" && m.Version == 3:
			at = o.End - 16 // count, committed, verifier
		}
		if at >= 0 && at+4 <= int64(len(body)) && (!v4 || at+4 <= o.End) {
			written += int64(binary.BigEndian.Uint32(body[at:]))
		}
	}
	return read, written
}
