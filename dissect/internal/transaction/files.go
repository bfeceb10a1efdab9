package transaction

import (
	"github.com/rdmadump/rdmadump/dissect/files"
	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// Which files a transaction acted on, if Options ask for it.

// maxKeptArguments is the maximum number of bytes of the arguments of a Call that are kept until the
// Reply. Longer arguments are those of a WRITE; names come before its data.
const maxKeptArguments = 16 << 10

// filesCost is the memory for the files of a transaction, in bytes of the budget.
const filesCost = 512

// fileTable resolves file handles for all connections.
type fileTable struct {
	*files.Resolver
	budget      *budget.Budget
	share       budget.Share
	limit       int64
	call, reply nfs.Message
	holes       []nfs.Hole
	free        []*fileState
}

// newFileTable returns a table whose memory is charged to a budget.
func newFileTable(b *budget.Budget) *fileTable {
	t := &fileTable{Resolver: files.New(), budget: b, limit: b.Limit / 8}
	t.call.Wanted, t.reply.Wanted = files.Wanted, files.Wanted
	t.Charge = func(bytes int64) {
		if t.share.Bytes() == 0 && bytes > 0 {
			b.Close(&t.share) // if it was open
			b.Open(&t.share, t)
		}
		t.share.Charge(bytes)
	}
	return t
}

// Evict forgets the least recently used file.
func (t *fileTable) Evict() (budget.Kind, bool) { return budget.FileNames, t.Resolver.Evict() }

// fileState is what is known about the files of a transaction. Between the Call and the end of the
// transaction it has either the only file, or the arguments of the Call.
type fileState struct {
	file      *files.File
	arguments []byte
	at        int64 // offset of the arguments in the Payload stream
	resolved  bool

	path, from, handle string // empty if they are unknown
	uses               []record.FileUse
}

// maxFree is the maximum number of states that are kept to be used again.
const maxFree = 256

// state returns an empty state.
func (t *fileTable) state() *fileState {
	n := len(t.free)
	if n == 0 {
		return new(fileState)
	}
	s := t.free[n-1]
	t.free = t.free[:n-1]
	return s
}

// release takes back the state of a transaction whose record was handed out.
func (t *fileTable) release(x *txn) {
	s := x.files
	if x.files = nil; s == nil || len(t.free) == maxFree || cap(s.arguments) > 1<<10 || cap(s.uses) > 8 {
		return
	}
	*s = fileState{arguments: s.arguments[:0], uses: s.uses[:0]}
	t.free = append(t.free, s)
}

// serverOf returns the address of the server of a connection.
func (cs *connState) serverOf() string {
	return cs.link.Host(cs.link.Setup().Opener().Other()).Known().Or("")
}

// note records which files a Call acts on. b is the Call decoded without values, or nil.
func (t *fileTable) note(x *txn, rpc *oncrpc.Header, payload []byte, b *rpcBody) {
	if t == nil || x.control {
		return
	}
	var m *nfs.Message
	body, plain := x.gss.Plain(payload[rpc.Length:])
	if b != nil {
		m = &b.message
	}
	if !plain {
		return
	}
	p := &x.procedure
	file, ok := t.Single(x.cs.serverOf(), files.Procedure{Program: p.program, Version: p.version, Procedure: p.procedure}, m, body)
	if ok && file == nil || !ok && nfs.ProgramName(p.program) == "" {
		return
	}
	x.files = t.state()
	x.files.file = file
	x.charge(filesCost)
	if !ok {
		x.files.arguments = append(x.files.arguments, body[:min(len(body), maxKeptArguments)]...)
		x.files.at = int64(len(payload) - len(body))
		x.charge(int64(len(x.files.arguments)))
	}
}

// answer resolves the files of a transaction with the results in its Reply.
func (t *fileTable) answer(x *txn, h *rpcrdma.Header, body []byte) {
	s := x.files
	if s == nil {
		return
	}
	if s.file != nil {
		t.single(x, record.FileUse{ReadBytes: x.bytesRead.Or(0), WrittenBytes: x.bytesWritten.Or(0)})
		return
	}
	p := &x.procedure
	t.holes = t.holes[:0]
	for i := range h.WriteEnds {
		t.holes = append(t.holes, nfs.Hole{Position: -1, Length: rpcrdma.Length(h.WriteChunk(i))})
	}
	t.reply.Results(p.program, p.version, p.procedure, body, t.holes, false)
	t.resolve(x, &t.reply)
}

// end resolves the files of a transaction whose Reply has no results, or is missing.
func (t *fileTable) end(x *txn) {
	switch s := x.files; {
	case s == nil || s.resolved:
	case s.file != nil:
		t.single(x, record.FileUse{})
	default:
		t.resolve(x, nil)
	}
}

// single fills in the only file of a transaction.
func (t *fileTable) single(x *txn, use record.FileUse) {
	s := x.files
	s.resolved = true
	s.path, s.handle = s.file.Path(), s.file.HexHandle()
	use.File, use.Handle = s.path, s.handle
	s.uses = append(s.uses[:0], use)
	t.limitMemory()
}

// resolve decodes the arguments of a Call, applies the RPC, and fills in the files of the
// transaction. The file of the record is that of the last operation that the RPC was sent for.
func (t *fileTable) resolve(x *txn, reply *nfs.Message) {
	s, p := x.files, &x.procedure
	s.resolved = true
	t.holes = x.memory.Holes(t.holes[:0])
	before := 0
	for i := range t.holes {
		if t.holes[i].Position -= s.at; t.holes[i].Position < 0 {
			before++
		}
	}
	t.call.Call(p.program, p.version, p.procedure, nfs.NewStream(s.arguments, t.holes[before:]))
	principal, last := nfs.PrincipalOperation(x.rec.Operations), record.FileUse{}
	for _, u := range t.Apply(x.cs.serverOf(), &t.call, reply) {
		use := record.FileUse{File: u.Path(), From: u.From, Change: changes[u.Change]}
		if u.File != nil {
			use.Handle = u.File.HexHandle()
		}
		if u.Done {
			use.ReadBytes, use.WrittenBytes = movedBy(&t.call, reply, u.Op)
		}
		if use.Change != "" || use.ReadBytes+use.WrittenBytes > 0 {
			s.add(use)
		}
		if op := t.call.Ops[u.Op].Name; principal == "" || op == principal {
			last = use
		}
	}
	s.path, s.from, s.handle = last.File, last.From, last.Handle
	last.ReadBytes, last.WrittenBytes = 0, 0 // they are counted
	if last.File != "" || last.Handle != "" {
		s.add(last)
	}
	t.limitMemory()
}

// changes maps the changes of names to the values in records.
var changes = [...]record.FileChange{files.Created: record.FileCreated, files.Renamed: record.FileRenamed, files.Removed: record.FileRemoved}

// maxUses is the maximum number of files of one transaction in its record.
const maxUses = 64

// add adds a use of a file. Operations that do the same to the same file are one use.
func (s *fileState) add(use record.FileUse) {
	for i := range s.uses {
		u := &s.uses[i]
		same := u.File == use.File && u.Handle == use.Handle || use.Handle != "" && u.Handle == use.Handle
		if same && (u.Change == use.Change || u.Change == "" || use.Change == "") {
			u.ReadBytes += use.ReadBytes
			u.WrittenBytes += use.WrittenBytes
			if use.Change != "" {
				u.File, u.From, u.Change = use.File, use.From, use.Change
			}
			return
		}
	}
	if len(s.uses) < maxUses {
		s.uses = append(s.uses, use)
	}
}

// limitMemory forgets files until the table is within its limit. It is not counted as evicted state,
// because the names of a file come again with its next LOOKUP or OPEN.
func (t *fileTable) limitMemory() {
	for t.share.Bytes() > t.limit && t.Resolver.Evict() {
		t.budget.Evicted[budget.FileNames]++
	}
	t.budget.Touch(&t.share)
}

// movedBy returns the number of bytes that a single operation moved.
func movedBy(call, reply *nfs.Message, op int) (read, written int64) {
	if reply == nil || op >= len(reply.Ops) {
		return 0, 0
	}
	switch call.Ops[op].Name {
	case "READ", "READ_PLUS":
		for _, v := range reply.In(op) {
			if v.Name == "data" {
				read += int64(v.Uint)
			}
		}
	case "WRITE":
		if v := reply.Find(op, "count"); v != nil {
			written = int64(v.Uint)
		}
	}
	return read, written
}

// fill fills in the files in a record.
func (s *fileState) fill(r *record.Transaction) {
	if s == nil {
		return
	}
	r.File, r.FileFrom, r.FileHandle, r.FileUses = named(s.path), named(s.from), named(s.handle), s.uses
}
