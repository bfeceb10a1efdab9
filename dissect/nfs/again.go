package nfs

import "encoding/binary"

// What a client asks for again when it repeats a request: the same operations on the same files. Sessions, slots, sequence numbers,
// stateids, and the number by which a server knows the client, may be others by then (RFC 8881 s.8.2, s.8.4; RFC 7530 s.9.1).

// span is a range of the arguments of an operation, in bytes after its number.
type span struct{ from, to int64 }

// maxSame ends a span with the arguments.
const maxSame = 1 << 20

// changing has, by operation, the parts of the arguments that a repeated request may have otherwise.
var changing = map[uint32][]span{
	4:  {{0, 20}},           // CLOSE: seqid, stateid
	8:  {{0, 16}},           // DELEGRETURN
	12: {{28, 60}},          // LOCK: seqid, stateid, seqid and client of a new owner
	13: {{20, 28}},          // LOCKT: client of the owner
	14: {{4, 24}},           // LOCKU: seqid, stateid
	18: {{0, 4}, {12, 20}},  // OPEN: seqid, client of the owner
	20: {{0, 20}},           // OPEN_CONFIRM: stateid, seqid
	21: {{0, 20}},           // OPEN_DOWNGRADE: stateid, seqid
	25: {{0, 16}},           // READ: stateid
	30: {{0, 8}},            // RENEW: client
	34: {{0, 16}},           // SETATTR: stateid
	36: {{0, 8}},            // SETCLIENTID_CONFIRM: client
	38: {{0, 16}, {28, 32}}, // WRITE: stateid, how stable
	43: {{0, 12}},           // CREATE_SESSION: client, sequence number
	49: {{20, 36}},          // LAYOUTCOMMIT: stateid
	50: {{36, 52}},          // LAYOUTGET: stateid
	51: {{32, 48}},          // LAYOUTRETURN: stateid
	53: {{0, maxSame}},      // SEQUENCE
	59: {{0, 16}},           // ALLOCATE
	60: {{0, 32}},           // COPY: both stateids
	61: {{0, 16}},           // COPY_NOTIFY: stateid
	62: {{0, 16}},           // DEALLOCATE
	63: {{0, 16}},           // IO_ADVISE
	64: {{16, 32}},          // LAYOUTERROR: stateid
	65: {{16, 32}},          // LAYOUTSTATS: stateid
	68: {{0, 16}},           // READ_PLUS
	69: {{0, 16}},           // SEEK
	70: {{0, 16}},           // WRITE_SAME
	71: {{0, 32}},           // CLONE: both stateids
}

// WriteFixed is the number of bytes of the arguments of WRITE before its data: stateid, offset, stability and length.
const WriteFixed = 32

// noTasks are operations by which a client keeps or clears its state, and for which no application waits.
var noTasks = [128]bool{30: true, 41: true, 44: true, 45: true, 53: true, 55: true, 57: true}

// AppendSame appends what a repetition of a COMPOUND Call has, too. Body has the arguments, without the data that chunks carry; hole is the
// position of the first of these, or the length of the arguments. Cut arguments end in the last operation, of which only a WRITE has what
// is needed before its end. It returns false if the arguments are not whole, and if no application
// waits for any of the operations.
func (m *Message) AppendSame(b, body []byte, hole int64, cut bool) (same []byte, is bool) {
	hole = min(hole, int64(len(body)))
	if !m.Named {
		return b, false
	}
	waits := false
	for i := range m.Ops {
		op := &m.Ops[i]
		b = binary.BigEndian.AppendUint32(b, op.Number)
		if waits = waits || int64(op.Number) >= int64(len(noTasks)) || !noTasks[op.Number]; op.At > hole || op.At < 0 {
			continue
		}
		from, to := op.At+4, op.End
		if op.Number == opWrite {
			to = min(to, from+WriteFixed)
		}
		if cut && i == len(m.Ops)-1 && op.Number != opWrite && hole == int64(len(body)) {
			return b, false
		}
		if to > hole {
			if to = hole; op.Number == opWrite || hole == int64(len(body)) {
				return b, false
			}
		}
		b = appendSpans(b, body[min(from, to):to], changing[op.Number])
	}
	return b, waits
}

// appendSpans appends arguments without the parts of them that change.
func appendSpans(b, arguments []byte, without []span) []byte {
	at := int64(0)
	for _, s := range without {
		from, to := min(s.from, int64(len(arguments))), min(s.to, int64(len(arguments)))
		b, at = append(b, arguments[at:from]...), to
	}
	return append(b, arguments[at:]...)
}

// SameProcedure returns the part of the arguments of a procedure that is no COMPOUND that a repetition has, too: all but the data of a WRITE. It
// returns false if the arguments are not whole, and if no application waits for the procedure.
func SameProcedure(program, version, procedure uint32, body []byte, whole bool) (same []byte, is bool) {
	if procedure == 0 { // NULL
		return nil, false
	}
	if !WritesData(program, version, procedure) {
		return body, whole
	}
	fixed, handle := int64(12), int64(32) // NFSv2: two offsets and a length
	if version == 3 {
		if len(body) < 4 {
			return nil, false
		}
		handle = 4 + int64(binary.BigEndian.Uint32(body)+3)&^3 // of up to 64 bytes; offset and length follow
	}
	if handle < 0 || handle > 4+64 || handle+fixed > int64(len(body)) {
		return nil, false
	}
	return body[:handle+fixed], true
}
