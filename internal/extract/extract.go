// Package extract writes the file data of NFS READs and WRITEs to files. Each NFS
// file becomes one file, which has the path that the capture shows, or is named
// after the file handle.
package extract

import (
	"encoding/hex"
	"math"
	"os"
	"path"
	"slices"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/files"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// An Extractor collects file data below one folder and writes nothing outside of
// it. Names from packets are escaped before they are used as file names, and
// existing files are never overwritten.
//
// The Extractor uses the data of all READs and WRITEs that succeeded, in the order
// of their Replies, and applies the sizes that SETATTR, CREATE and OPEN set. It
// learns the names of files from LOOKUP, OPEN, CREATE, READDIR, RENAME and MNT; a
// name may be learned before or after the data.
type Extractor struct {
	// Wants, if not nil, reports whether the data of a transaction is extracted; an
	// error ends the extraction. Names are learned from all transactions.
	Wants func(*record.Transaction) bool
	// MaxSize is the maximum size of a file in bytes; New sets it to DefaultMaxSize. Data,
	// holes and sizes beyond it are left out, because a capture can claim any offset.
	MaxSize int64
	// Report counts the files that were written and the data that was left out.
	Report Report

	staging     staging
	names       *files.Resolver
	nameBytes   int64 // memory of names
	err         error
	call, reply rpcMessage
}

// Report counts the files that were written and the data that was left out.
type Report struct {
	Files      int64 // files that were written
	Holes      int64 // bytes of the files that the capture does not show
	Missing    int64 // READs and WRITEs whose data was captured only in part, or not at all
	Unanswered int64 // WRITEs without a Reply that says how many bytes were written
	Unreadable int64 // Calls that could not be decoded as far as their data
	Secret     int64 // Calls that RPCSEC_GSS encrypts
	TooFar     int64 // ranges left out because they are beyond [Extractor.MaxSize]
	Refused    int64 // ranges left out because the file system does not accept files of that size
	Scattered  int64 // files with more ranges than the extractor tracks, see [File.Scattered]
	NamesFull  bool  // the capture has more names than the extractor remembers
}

// File describes one file that was written.
type File struct {
	Type      string             `json:"type" doc:"The record's type, always \"extracted_file\"." values:"extracted_file"`
	Path      string             `json:"path" doc:"Path of the file, relative to the output folder."`
	Named     bool               `json:"named" doc:"Whether the capture shows the whole path of the file."`
	Handle    record.Opt[string] `json:"handle" doc:"File handle in hex; null if the capture does not show it."`
	Size      int64              `json:"size" doc:"Size of the file in bytes, up to the last byte that was read or written."`
	Data      int64              `json:"data" doc:"Number of bytes of the file that were read or written."`
	Holes     int                `json:"holes" doc:"Number of ranges that were neither read nor written; they read as zeros."`
	HoleBytes int64              `json:"hole_bytes" doc:"Number of bytes in these ranges."`
	Renamed   bool               `json:"renamed" doc:"Whether the file's own name was taken, so that a number was appended to it."`
	Error     record.Opt[string] `json:"error" doc:"Reason why the file could not be written; null if it was written."`
	Scattered bool               `json:"scattered" doc:"Whether the file was read or written in more ranges than are tracked: data is then a lower bound, hole_bytes an upper bound."`
}

// rpcMessage is the Call or the Reply of the current transaction.
type rpcMessage struct {
	header  oncrpc.Header
	message nfs.Message
	payload *record.Payload
	base    int64 // offset of body in the Payload stream
	body    []byte
}

// New returns an Extractor that writes below root. The caller closes root after
// [Extractor.Finish] or [Extractor.Abandon].
//
// An Extractor writes no more bytes than the data in the capture: ranges without data
// become holes of sparse files.
func New(root *os.Root) (*Extractor, error) {
	e := &Extractor{MaxSize: DefaultMaxSize, staging: staging{root: root, taken: map[string]int{}, data: map[*files.File]*file{}}, names: files.New()}
	e.names.Charge = func(bytes int64) { e.nameBytes += bytes }
	e.names.Merged = e.staging.merge
	return e, e.staging.begin()
}

// Handler returns the handler for a dissector that runs with
// [dissect.Options.Rebuild].
func (e *Extractor) Handler() dissect.Handler {
	return dissect.Handler{Payload: func(r *record.Transaction, call, reply *record.Payload) error {
		e.payload(r, call, reply)
		return e.err
	}}
}

// decode decodes the RPC header of one message and reports whether that succeeded.
func (h *rpcMessage) decode(p *record.Payload) bool {
	if p == nil {
		return false
	}
	h.payload = p
	readable := p.Data[:p.Readable()]
	return h.header.Decode(readable) == nil
}

// plain sets h.body to the arguments or results, and reports false if s encrypts
// them.
func (h *rpcMessage) plain(s oncrpc.Service) bool {
	readable := h.payload.Data[:h.payload.Readable()]
	body, ok := s.Plain(readable[h.header.Length:])
	h.base, h.body = int64(len(readable)-len(body)), body
	return ok
}

func (e *Extractor) payload(r *record.Transaction, call, reply *record.Payload) {
	if e.err != nil || r.Direction == record.Backward {
		return
	}
	c, a := &e.call, &e.reply
	if !c.decode(call) || c.header.Type != oncrpc.Call {
		if call != nil {
			e.Report.Unreadable++
		}
		return
	}
	gss, _ := c.header.Credential.GSS()
	if !c.plain(gss.Service) {
		e.Report.Secret++
		return
	}
	program, version, procedure := c.header.Program, c.header.Version, c.header.Procedure
	if program != nfs.ProgramNFS && program != nfs.ProgramMount {
		return
	}
	c.message.Call(program, version, procedure, nfs.NewStream(c.body, nil))
	if !a.decode(reply) || !a.header.Succeeded() || !a.plain(gss.Service) {
		if slices.ContainsFunc(c.message.Ops, func(o nfs.Op) bool { return o.Name == "WRITE" }) {
			e.Report.Unanswered++
		}
		return
	}
	a.message.Reply(program, version, procedure, nfs.NewStream(a.body, nil))
	e.apply(r, e.Wants == nil || e.Wants(r))
}

// apply learns the names in an RPC and, if data is wanted, applies its data operations to the files
// that they acted on.
func (e *Extractor) apply(r *record.Transaction, data bool) {
	c := &e.call.message
	for _, u := range e.names.Apply(r.Server.Or(""), c, &e.reply.message) {
		if !u.Done || !data || u.File == nil {
			continue
		}
		switch c.Ops[u.Op].Name {
		case "OPEN", "CREATE", "SETATTR":
			e.setSize(u.File, c, u.Op)
		case "READ":
			e.read(u.File, u.Op)
		case "READ_PLUS":
			e.readPlus(u.File, u.Op)
		case "WRITE":
			e.write(u.File, u.Op)
		}
	}
	for e.nameBytes > maxNameBytes && e.names.Evict() {
		e.Report.NamesFull = true
	}
}

// maxNameBytes is the memory for names, because a capture can list any number of files.
const maxNameBytes = 128 << 20

// setSize applies the size that a Call sets.
func (e *Extractor) setSize(n *files.File, m *nfs.Message, op int) {
	v := m.Find(op, "size")
	if v == nil || v.Uint == 1<<32-1 && m.Version == 2 {
		return
	}
	if !e.inLimit(0, v.Uint) {
		return
	}
	e.fail(e.staging.resize(n, int64(v.Uint)))
}

// inLimit reports whether a range is within the maximum file size, and counts it if it
// is not.
func (e *Extractor) inLimit(offset, length uint64) bool {
	most := uint64(max(e.MaxSize, 0))
	if length > most || offset > most-length {
		e.Report.TooFar++
		return false
	}
	return true
}

// fail ends the extraction with an error.
func (e *Extractor) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// number returns the value called name of an operation, or 0 if there is none.
func number(m *nfs.Message, op int, name string) uint64 {
	if v := m.Find(op, name); v != nil {
		return v.Uint
	}
	return 0
}

// read writes the data of a READ.
func (e *Extractor) read(n *files.File, op int) {
	if v := e.reply.message.Find(op, "data"); v != nil {
		e.put(n, number(&e.call.message, op, "offset"), &e.reply, v, v.Uint)
	}
}

// readPlus writes the data and the holes of a READ_PLUS.
func (e *Extractor) readPlus(n *files.File, op int) {
	offset := uint64(0)
	values := e.reply.message.In(op)
	for i := range values {
		switch v := &values[i]; v.Name {
		case "offset":
			offset = v.Uint
		case "data":
			e.put(n, offset, &e.reply, v, v.Uint)
		case "length":
			length := v.Uint
			start, count := number(&e.call.message, op, "offset"), number(&e.call.message, op, "count")
			if end := start + min(count, math.MaxUint64-start); length > end-min(offset, end) {
				length = end - min(offset, end) // a hole may extend beyond the requested range
			}
			if length > 0 && e.inLimit(offset, length) {
				e.fail(e.staging.zero(n, int64(offset), int64(offset+length)))
			}
		}
	}
}

// write writes the data of a WRITE, limited to the count in its Reply.
func (e *Extractor) write(n *files.File, op int) {
	v := e.call.message.Find(op, "data")
	if v == nil {
		return
	}
	written := v.Uint
	if count := e.reply.message.Find(op, "count"); count != nil {
		written = min(written, count.Uint)
	}
	e.put(n, number(&e.call.message, op, "offset"), &e.call, v, written)
}

// put writes the first length bytes of v to a file at an offset, except those that
// were not captured.
func (e *Extractor) put(n *files.File, offset uint64, h *rpcMessage, v *nfs.Value, length uint64) {
	if length == 0 {
		return
	}
	if !e.inLimit(offset, length) {
		return
	}
	from := h.base + v.At + 4 // the data follows its length
	to := min(from+int64(length), int64(len(h.payload.Data)))
	at, missing := from, false
	piece := func(end int64) {
		if end = min(end, to); end > at {
			e.fail(e.staging.write(n, int64(offset)+at-from, h.payload.Data[at:end]))
		}
	}
	for _, hole := range h.payload.Holes {
		if hole.To <= at || hole.From >= to {
			continue
		}
		piece(hole.From)
		at, missing = hole.To, true
	}
	piece(to)
	if f := e.staging.of(n); missing {
		e.Report.Missing++
		f.size = max(f.size, int64(offset)+to-from)
	}
}

// Abandon removes all files that were not given a name yet.
func (e *Extractor) Abandon() error { return e.staging.away() }

// Finish gives the files their names and calls each for every file. The Extractor
// must not be used afterwards.
func (e *Extractor) Finish(each func(*File)) error {
	defer e.staging.away()
	e.fail(e.staging.end())
	e.Report.Refused = e.staging.refused
	if e.err != nil {
		return e.err
	}
	for _, f := range e.staging.files {
		elements, named := pathOf(f.node)
		out := File{
			Type: "extracted_file", Named: named, Size: f.size, Data: f.seen.total(), Scattered: f.seen.full,
			Handle: record.SomeIf(hex.EncodeToString([]byte(f.node.Handle())), f.node.Handle() != ""),
		}
		out.HoleBytes = out.Size - out.Data
		out.Holes = f.holes()
		if f.seen.full {
			e.Report.Scattered++
		}
		wanted := path.Join(elements...)
		name, err := e.staging.place(f, elements)
		if err != nil && len(elements) > 1 { // an existing file has the name of a folder
			name, err = e.staging.place(f, []string{label(f.node.Handle())})
		}
		if err != nil {
			out.Path, out.Error = wanted, record.Some(err.Error())
		} else {
			e.Report.Files++
			e.Report.Holes += out.HoleBytes
			out.Path, out.Renamed = name, name != wanted
		}
		each(&out)
	}
	return nil
}

// String returns the report as one line of text.
func (r *Report) String() string {
	s := record.Plural(r.Files, "file")
	for _, part := range []struct {
		n          int64
		noun, text string
	}{
		{r.Holes, "byte", "in holes"},
		{r.Missing, "READ or WRITE operation", "with data that was not fully captured"},
		{r.Unanswered, "WRITE", "left out for lack of a Reply"},
		{r.Unreadable, "Call", "that could not be decoded"},
		{r.Secret, "Call", "encrypted by RPCSEC_GSS"},
		{r.TooFar, "range", "left out because of the maximum file size"},
		{r.Refused, "range", "left out because the file system does not accept files of that size"},
		{r.Scattered, "file", "with so many ranges that some data counts as holes"},
	} {
		if part.n > 0 {
			s += "; " + record.Plural(part.n, part.noun) + " " + part.text
		}
	}
	if r.NamesFull {
		s += "; some files have no name because the capture has too many"
	}
	return s
}
