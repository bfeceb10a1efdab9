// Package extract writes the file data of NFS READs and WRITEs to files: one for
// each NFS file, by the path that the capture shows, or by its handle.
package extract

import (
	"encoding/hex"
	"os"
	"path"
	"slices"
	"strconv"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Extractor collects file data below a folder, and nowhere else: what packets call
// files is never taken for a path as it stands, and nothing that is there is
// written over.
//
// A file's data is that of READs and WRITEs that succeeded, in the order of their
// Replies; a size that was set, by SETATTR, CREATE or OPEN, is taken over. What a
// file was called is learned from LOOKUP, OPEN, CREATE, READDIR, RENAME and MNT,
// before or after. Handles are taken to be of one server.
type Extractor struct {
	// Wants, if not nil, says which transactions' data to take; an error ends it.
	// Names are learned from all.
	Wants func(*record.Transaction) (bool, error)
	// Report counts what was left out.
	Report Report

	staging     staging
	tree        *tree
	err         error
	call, reply half
}

// Report counts what is in no file.
type Report struct {
	Files      int64 // written
	Holes      int64 // bytes in files that the capture does not show
	Missing    int64 // READs and WRITEs of whose data something was not captured
	Unanswered int64 // WRITEs without a Reply that says how much was written
	Unreadable int64 // Calls that could not be read to where the data is
	Secret     int64 // Calls that RPCSEC_GSS keeps secret
	TooFar     int64 // data at offsets that no file system has
	Scattered  int64 // files with more ranges than are kept, see [File.Scattered]
	NamesFull  bool  // there were more names than are remembered
}

// File is one file that was written.
type File struct {
	Type      string             `json:"type" doc:"The record's type, always \"file\"." values:"file"`
	Path      string             `json:"path" doc:"where it was written, below the folder"`
	Named     bool               `json:"named" doc:"the capture shows its whole path"`
	Handle    record.Opt[string] `json:"handle" doc:"file handle, in hex; null where the capture does not show it"`
	Size      int64              `json:"size" doc:"bytes, up to the last that was read or written"`
	Data      int64              `json:"data" doc:"bytes of it that were read or written"`
	Holes     int                `json:"holes" doc:"ranges that were not, which are zeros"`
	HoleBytes int64              `json:"hole_bytes" doc:"bytes in these"`
	Renamed   bool               `json:"renamed" doc:"its own name was taken, so that it has a number behind it"`
	Error     record.Opt[string] `json:"error" doc:"why it could not be written"`
	Scattered bool               `json:"scattered" doc:"it was read or written in more ranges than are kept: data is at least as many bytes, hole_bytes at most"`
}

// half is a Call or Reply at hand.
type half struct {
	header  oncrpc.Header
	message nfs.Message
	payload *record.Payload
	base    int64 // where what was decoded begins in the Payload stream
	body    []byte
}

// New makes an extractor; root is the folder, which is the caller's to close.
func New(root *os.Root) (*Extractor, error) {
	e := &Extractor{staging: staging{root: root}, tree: newTree()}
	return e, e.staging.begin()
}

// Handler takes what a dissector with [dissect.Options.Rebuild] finds.
func (e *Extractor) Handler() dissect.Handler {
	return dissect.Handler{Payload: func(r *record.Transaction, call, reply *record.Payload) error {
		e.payload(r, call, reply)
		return e.err
	}}
}

// decode reads one message.
func (h *half) decode(p *record.Payload) bool {
	if p == nil {
		return false
	}
	h.payload = p
	readable := p.Data[:p.Readable()]
	return h.header.Decode(readable) == nil
}

// plain finds the body that a service protects.
func (h *half) plain(s oncrpc.Service) bool {
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
	data := true
	if e.Wants != nil {
		if data, e.err = e.Wants(r); e.err != nil {
			return
		}
	}
	switch {
	case program == nfs.ProgramMount:
		e.mount()
	case version == 4 && procedure == 1:
		e.compound(data)
	case version == 2 || version == 3:
		e.procedure(data)
	}
}

// handleOf is the handle in a value of a name, false when there is none.
func handleOf(m *nfs.Message, op int, name string) (string, bool) {
	v := m.Find(op, name)
	if v == nil || len(v.Bytes) == 0 {
		return "", false
	}
	return string(v.Bytes), true
}

// nameOf is a string.
func nameOf(m *nfs.Message, op int, name string) (string, bool) {
	v := m.Find(op, name)
	if v == nil || v.Kind != nfs.String || v.Bytes == nil {
		return "", false
	}
	return string(v.Bytes), true
}

// mount learns the path of an export's root.
func (e *Extractor) mount() {
	c, a := &e.call.message, &e.reply.message
	if len(c.Ops) != 1 || len(a.Ops) != 1 || c.Name != "MNT" || a.Status != 0 {
		return
	}
	where, named := nameOf(c, 0, "path")
	if handle, known := handleOf(a, 0, "object_fh"); named && known {
		n := e.tree.of(handle)
		n.root, n.name, n.parent = true, path.Clean("/"+where), nil
	}
}

// procedure takes an RPC of NFSv2 or v3.
func (e *Extractor) procedure(data bool) {
	c, a := &e.call.message, &e.reply.message
	if len(c.Ops) != 1 || len(a.Ops) != 1 || a.Status != 0 {
		return
	}
	var dir, at *node
	if handle, known := handleOf(c, 0, "dir_fh"); known {
		dir = e.tree.of(handle)
	}
	if handle, known := handleOf(c, 0, "fh"); known {
		at = e.tree.of(handle)
	}
	name, named := nameOf(c, 0, "name")
	switch c.Name {
	case "LOOKUP", "CREATE", "MKDIR", "SYMLINK", "MKNOD":
		if !named || name == "." || name == ".." {
			return
		}
		n := e.tree.child(dir, name)
		if handle, known := handleOf(a, 0, "object_fh"); known {
			n = e.tree.has(n, handle)
		}
		if c.Name == "CREATE" && data {
			e.setSize(n, c, 0)
		}
	case "REMOVE", "RMDIR":
		e.tree.remove(dir, name)
	case "RENAME":
		if handle, known := handleOf(c, 0, "to_dir_fh"); known {
			to, _ := nameOf(c, 0, "to_name")
			e.tree.put(e.tree.child(dir, name), e.tree.of(handle), to)
		}
	case "READDIRPLUS":
		e.entries(dir, a, 0)
	case "SETATTR":
		if data {
			e.setSize(at, c, 0)
		}
	case "READ":
		if data {
			e.read(at, 0, 0)
		}
	case "WRITE":
		if data {
			e.write(at, 0, 0)
		}
	}
}

// compound takes a COMPOUND: what the current file handle is tells what an
// operation is about.
func (e *Extractor) compound(data bool) {
	c, a := &e.call.message, &e.reply.message
	var at, saved *node
	for i := range min(len(c.Ops), len(a.Ops)) {
		if a.Ops[i].Number != c.Ops[i].Number || !a.Ops[i].HasStatus || a.Ops[i].Status != 0 {
			return
		}
		name, named := nameOf(c, i, "name")
		switch c.Ops[i].Name {
		case "PUTROOTFH", "PUTPUBFH":
			at = e.tree.top
		case "PUTFH":
			at = nil
			if handle, known := handleOf(c, i, "fh"); known {
				at = e.tree.of(handle)
			}
		case "SAVEFH":
			saved = at
		case "RESTOREFH":
			at = saved
		case "LOOKUPP":
			if at != nil {
				at = at.parent
			}
		case "LOOKUP", "CREATE":
			at = e.tree.child(at, name)
		case "OPEN":
			if named { // else it is the current one
				at = e.tree.child(at, name)
			}
			if data {
				e.setSize(at, c, i)
			}
		case "OPENATTR", "SECINFO", "SECINFO_NO_NAME":
			at = nil
		case "GETFH":
			handle, known := handleOf(a, i, "object_fh")
			switch {
			case !known:
			case at == nil:
				at = e.tree.of(handle)
			case at.root && at.handle == "":
				at.handle = handle
				e.tree.handles[handle] = at
			default:
				at = e.tree.has(at, handle)
			}
		case "REMOVE":
			e.tree.remove(at, name)
		case "RENAME":
			if to, known := nameOf(c, i, "to_name"); known && saved != nil {
				e.tree.put(e.tree.child(saved, name), at, to)
			}
		case "READDIR":
			e.entries(at, a, i)
		case "SETATTR":
			if data {
				e.setSize(at, c, i)
			}
		case "READ":
			if data {
				e.read(at, i, i)
			}
		case "READ_PLUS":
			if data {
				e.readPlus(at, i)
			}
		case "WRITE":
			if data {
				e.write(at, i, i)
			}
		}
	}
}

// entries learns from a listing.
func (e *Extractor) entries(dir *node, m *nfs.Message, op int) {
	name := ""
	for _, v := range m.In(op) {
		switch {
		case v.Kind == nfs.Group && v.Name == "entries":
			name = ""
		case v.Kind == nfs.String && v.Name == "name":
			name = string(v.Bytes)
		case v.Kind == nfs.Handle && len(v.Bytes) > 0 && name != "" && name != "." && name != "..":
			e.tree.put(e.tree.of(string(v.Bytes)), dir, name)
		}
	}
}

// setSize takes over a size that a Call sets.
func (e *Extractor) setSize(n *node, m *nfs.Message, op int) {
	v := m.Find(op, "size")
	if n == nil || v == nil || v.Uint == 1<<32-1 && m.Version == 2 {
		return
	}
	if v.Uint > maxSize {
		e.Report.TooFar++
		return
	}
	e.fail(e.staging.resize(n, int64(v.Uint)))
}

func (e *Extractor) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// number is a value's.
func number(m *nfs.Message, op int, name string) uint64 {
	if v := m.Find(op, name); v != nil {
		return v.Uint
	}
	return 0
}

// read takes the data of a READ.
func (e *Extractor) read(n *node, call, reply int) {
	if v := e.reply.message.Find(reply, "data"); v != nil {
		e.put(n, number(&e.call.message, call, "offset"), &e.reply, v, v.Uint)
	}
}

// readPlus takes the pieces of a READ_PLUS.
func (e *Extractor) readPlus(n *node, op int) {
	offset := uint64(0)
	values := e.reply.message.In(op)
	for i := range values {
		switch v := &values[i]; v.Name {
		case "offset":
			offset = v.Uint
		case "data":
			e.put(n, offset, &e.reply, v, v.Uint)
		case "length":
			if n == nil || v.Uint > maxSize || offset > maxSize-v.Uint {
				e.Report.TooFar++
				continue
			}
			if asked := number(&e.call.message, op, "offset") + number(&e.call.message, op, "count"); offset+v.Uint > asked {
				v.Uint = max(asked, offset) - offset // a hole may be told to its end
			}
			e.fail(e.staging.zero(n, int64(offset), int64(offset+v.Uint)))
		}
	}
}

// write takes the data of a WRITE, as much as its Reply says was written.
func (e *Extractor) write(n *node, call, reply int) {
	v := e.call.message.Find(call, "data")
	if v == nil {
		return
	}
	written := v.Uint
	if count := e.reply.message.Find(reply, "count"); count != nil {
		written = min(written, count.Uint)
	}
	e.put(n, number(&e.call.message, call, "offset"), &e.call, v, written)
}

// put writes the first bytes of a value to a file, but for what is missing.
func (e *Extractor) put(n *node, offset uint64, h *half, v *nfs.Value, length uint64) {
	if n == nil || length == 0 {
		return
	}
	if offset > maxSize {
		e.Report.TooFar++
		return
	}
	from := h.base + v.At + 4 // behind its count
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

// Abandon leaves nothing behind.
func (e *Extractor) Abandon() error { return e.staging.away() }

// Finish gives the files their names, and reports each. The extractor is not to
// be used any more.
func (e *Extractor) Finish(each func(*File)) error {
	defer e.staging.away()
	e.Report.NamesFull = e.tree.full
	e.fail(e.staging.end())
	if e.err != nil {
		return e.err
	}
	for _, f := range e.staging.files {
		elements, named := f.node.path()
		out := File{
			Type: "file", Named: named, Size: f.size, Data: f.covered(), Scattered: f.many,
			Handle: record.SomeIf(hex.EncodeToString([]byte(f.node.handle)), f.node.handle != ""),
		}
		out.HoleBytes = out.Size - out.Data
		out.Holes = f.holes()
		if f.many {
			e.Report.Scattered++
		}
		wanted := path.Join(elements...)
		name, err := e.staging.place(f, elements)
		if err != nil && len(elements) > 1 { // a file stands where a folder is to be
			name, err = e.staging.place(f, []string{label(f.node.handle)})
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

// String is a line for people.
func (r *Report) String() string {
	s := count(r.Files, "file")
	for _, part := range []struct {
		n    int64
		text string
	}{
		{r.Holes, " bytes in holes"},
		{r.Missing, " READs and WRITEs of whose data something was not captured"},
		{r.Unanswered, " WRITEs without an answer left out"},
		{r.Unreadable, " Calls that could not be read"},
		{r.Secret, " Calls that RPCSEC_GSS keeps secret"},
		{r.TooFar, " at offsets beyond what file systems take"},
		{r.Scattered, " files in so many ranges that some of their data counts as holes"},
	} {
		if part.n > 0 {
			s += "; " + strconv.FormatInt(part.n, 10) + part.text
		}
	}
	if r.NamesFull {
		s += "; more names than are remembered"
	}
	return s
}

func count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.FormatInt(n, 10) + " " + what
}
