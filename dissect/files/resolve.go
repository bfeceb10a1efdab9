package files

import (
	"github.com/rdmadump/rdmadump/dissect/nfs"
)

// Change is what an operation did to the name of a file.
type Change uint8

// The changes.
const (
	Unchanged Change = iota
	Created
	Renamed
	Removed
)

// Use says which file an operation of an RPC acted on.
type Use struct {
	Op     int    // index of the operation in the Call
	File   *File  // nil if the capture does not show the file itself, but only its directory and name
	From   string // the path before the operation, if it renamed the file
	Change Change // what the Reply proves that the operation did
	Done   bool   // the Reply says that the operation succeeded

	directory *File // set if the operation named the file
	name      string
}

// Path returns the path of the file after the RPC, as [File.Path] does.
func (u *Use) Path() string {
	if u.directory != nil {
		if path, _ := u.directory.join(u.name, 0); path != "" {
			return path
		}
	}
	if u.File != nil {
		return u.File.Path()
	}
	return ""
}

// Apply learns names from an RPC and returns the files that its operations acted on, in the order of
// the operations. reply is nil if there is none, or if it has no results. The uses are valid until
// the next call.
func (r *Resolver) Apply(server string, call, reply *nfs.Message) []Use {
	f := follower{Server: r.Server(server), call: call, reply: reply}
	r.uses = r.uses[:0]
	switch {
	case call.Program == nfs.ProgramMount:
		f.mount()
	case nfs.IsCallback(call.Program):
		f.callback()
	case nfs.IsCompound(call.Program, call.Version, call.Procedure):
		f.compound()
	default:
		f.procedure()
	}
	return r.uses
}

// follower follows the operations of one RPC.
type follower struct {
	*Server
	call, reply *nfs.Message
	now, saved  *File // the current and the saved file handle of a COMPOUND
}

// use adds a use of a file.
func (f *follower) use(u Use) {
	if u.File != nil || u.directory != nil {
		f.resolver.uses = append(f.resolver.uses, u)
	}
}

// handleOf returns the file handle in the value called name of an operation, or nil.
func handleOf(m *nfs.Message, op int, name string) []byte {
	if m == nil {
		return nil
	}
	if v := m.Find(op, name); v != nil {
		return v.Bytes
	}
	return nil
}

// nameOf returns the string called name of an operation, and false if there is none.
func nameOf(m *nfs.Message, op int, name string) (string, bool) {
	v := m.Find(op, name)
	if v == nil || v.Kind != nfs.String || v.Bytes == nil {
		return "", false
	}
	return string(v.Bytes), true
}

// numberOf returns the number called name of an operation, or 0.
func numberOf(m *nfs.Message, op int, name string) uint64 {
	if v := m.Find(op, name); v != nil {
		return v.Uint
	}
	return 0
}

// mount learns the path of an export's root from MNT.
func (f *follower) mount() {
	c, a := f.call, f.reply
	if a == nil || len(c.Ops) != 1 || len(a.Ops) != 1 || c.Name != "MNT" || a.Status != 0 {
		return
	}
	path, named := nameOf(c, 0, "path")
	if root := f.ofHandle(handleOf(a, 0, "object_fh")); root != nil && named {
		f.export(root, path)
		f.use(Use{File: root, Done: true})
	}
}

// callback finds the file of a Call of the server, such as CB_RECALL.
func (f *follower) callback() {
	for i := range f.call.Ops {
		f.use(Use{Op: i, File: f.ofHandle(handleOf(f.call, i, "fh"))})
	}
}

// procedure follows an RPC of NFSv2 or NFSv3, or of another program whose arguments name a file.
func (f *follower) procedure() {
	c, a := f.call, f.reply
	if len(c.Ops) != 1 {
		return
	}
	done := a != nil && len(a.Ops) == 1 && a.Status == 0
	u := Use{Done: done, File: f.ofHandle(handleOf(c, 0, "fh"))}
	directory := f.ofHandle(handleOf(c, 0, "dir_fh"))
	name, _ := nameOf(c, 0, "name")
	switch c.Name {
	case "LOOKUP", "CREATE", "MKDIR", "SYMLINK", "MKNOD":
		u = f.lookup(directory, name, done, handleOf(a, 0, "object_fh"))
		if c.Name != "LOOKUP" && done && (c.Name != "CREATE" || f.created3()) {
			u.Change = Created
		}
	case "REMOVE", "RMDIR":
		u = f.remove(directory, name, done)
	case "RENAME":
		to, _ := nameOf(c, 0, "to_name")
		u = f.rename(directory, name, f.ofHandle(handleOf(c, 0, "to_dir_fh")), to, done)
	case "LINK":
		if u.directory, u.name = directory, name; done {
			f.link(u.File, directory, name)
		}
	case "READDIR", "READDIRPLUS":
		if u.File = directory; done {
			f.entries(directory, 0)
		}
	}
	f.use(u)
}

// lookup returns the use of a file by its name. If the operation succeeded, the file has the name
// from now on, and the handle, unless that is nil.
func (f *follower) lookup(directory *File, name string, done bool, handle []byte) Use {
	u := Use{Done: done, directory: directory, name: name}
	switch {
	case f.call.Version < 4 && isDots(name): // the directory itself, or the one above
		if u.directory = nil; done {
			u.File = f.ofHandle(handle)
		}
	case done && f.at(directory, name) == nil && len(handle) > 0:
		u.File = f.ofHandle(handle)
		f.put(u.File, directory, name)
	case done:
		u.File = f.identify(f.child(directory, name), handle)
	}
	if directory == nil {
		u.name = ""
	}
	return u
}

// remove returns the use of a file whose name is removed.
func (f *follower) remove(directory *File, name string, done bool) Use {
	u := Use{Done: done, directory: directory, name: name}
	if directory == nil {
		return u
	}
	if u.File = f.at(directory, name); done {
		u.Change = Removed
		f.Server.remove(directory, name)
	}
	return u
}

// rename returns the use of a file that is renamed.
func (f *follower) rename(directory *File, name string, to *File, newName string, done bool) Use {
	u := Use{Done: done, directory: directory, name: name}
	if directory == nil || to == nil {
		return Use{Done: done}
	}
	if u.File = f.at(directory, name); !done {
		return u
	}
	u.From, _ = directory.join(name, 0)
	if u.File == nil {
		u.File = f.fresh(directory, name)
	}
	f.put(u.File, to, newName)
	u.directory, u.name, u.Change = to, newName, Renamed
	return u
}

// created3 reports whether the Reply to an NFSv3 CREATE proves that there was no such file before: the
// Call demanded it, or the directory changed.
func (f *follower) created3() bool {
	if v := f.call.Find(0, "createmode"); v == nil || v.Uint != 0 { // GUARDED or EXCLUSIVE
		return v != nil
	}
	before, after := -1, -1 // values that are the modification times of the directory
	values := f.reply.In(0)
	in := ""
	for i := range values {
		switch v := &values[i]; v.Name {
		case "dir_wcc", "before", "after":
			in = v.Name
		case "mtime":
			if in == "before" {
				before = i
			} else if in == "after" {
				after = i
			}
		}
	}
	return before >= 0 && after >= 0 && !values[before].Time().Equal(values[after].Time())
}

// compound follows a COMPOUND. Operations after one that failed, and all operations without a Reply,
// are followed as far as names are known, because they say what the COMPOUND was for.
func (f *follower) compound() {
	c, a := f.call, f.reply
	for i := range c.Ops {
		done := a != nil && i < len(a.Ops) && a.Ops[i].Number == c.Ops[i].Number && a.Ops[i].HasStatus && a.Ops[i].Status == 0
		if !done {
			a = nil
		}
		f.operation(i, done)
	}
}

// operation follows one operation of a COMPOUND.
func (f *follower) operation(i int, done bool) {
	c := f.call
	name, named := nameOf(c, i, "name")
	u := Use{Op: i, Done: done, File: f.now}
	switch c.Ops[i].Name {
	case "PUTROOTFH":
		f.now = f.root()
		u.File = f.now
	case "PUTPUBFH", "OPENATTR":
		f.now = nil
		return
	case "PUTFH":
		f.now = f.ofHandle(handleOf(c, i, "fh"))
		u.File = f.now
	case "SAVEFH":
		f.saved = f.now
	case "RESTOREFH":
		f.now = f.saved
		u.File = f.now
	case "LOOKUPP":
		if f.now != nil {
			f.now = f.now.parent
		}
		u.File = f.now
	case "LOOKUP":
		u = f.lookup(f.now, name, done, nil)
		f.now = f.after(&u)
	case "CREATE":
		if u = (Use{Done: done, directory: f.now, name: name}); done {
			u.File, u.Change = f.fresh(f.now, name), Created
		}
		f.now = f.after(&u)
	case "OPEN":
		if named { // otherwise the current file handle is the file
			u = f.lookup(f.now, name, done, nil)
			if done && f.created4(i) {
				u.Change = Created
			}
			f.now = f.after(&u)
		}
	case "SECINFO", "SECINFO_NO_NAME":
		if named {
			u = Use{Done: done, directory: f.now, name: name, File: f.at(f.now, name)}
		}
		if c.MinorVersion > 0 { // it consumes the current file handle (RFC 8881 s.2.6.3.1.1.8)
			f.now = nil
		}
	case "GETFH":
		if done {
			f.now = f.got(handleOf(f.reply, i, "object_fh"))
		}
		u.File = f.now
	case "REMOVE":
		u = f.remove(f.now, name, done)
	case "RENAME":
		to, _ := nameOf(c, i, "to_name")
		u = f.rename(f.saved, name, f.now, to, done)
	case "LINK":
		if u = (Use{Done: done, directory: f.now, name: name, File: f.saved}); done {
			f.link(f.saved, f.now, name)
		}
	case "READDIR":
		if done {
			f.entries(f.now, i)
		}
	}
	u.Op = i
	f.use(u)
}

// got returns the file with the handle that GETFH returned.
func (f *follower) got(handle []byte) *File {
	if f.now == nil {
		return f.ofHandle(handle)
	}
	return f.identify(f.now, handle)
}

// after returns the current file handle after an operation that names a file. If it was not done, it
// is the file that has the name as far as the capture shows.
func (f *follower) after(u *Use) *File {
	if u.File == nil && u.directory != nil {
		return f.at(u.directory, u.name)
	}
	return u.File
}

// created4 reports whether the Reply to OPEN proves that there was no such file before: the Call
// demanded it, or only this operation changed the directory.
func (f *follower) created4(i int) bool {
	const create, unchecked = 1, 0
	if numberOf(f.call, i, "opentype") != create {
		return false
	}
	if numberOf(f.call, i, "createmode") != unchecked {
		return true
	}
	return numberOf(f.reply, i, "atomic") != 0 && numberOf(f.reply, i, "before") != numberOf(f.reply, i, "after")
}

// entries learns names from a directory listing.
func (f *follower) entries(directory *File, op int) {
	name := ""
	values := f.reply.In(op)
	for i := range values {
		switch v := &values[i]; {
		case v.Kind == nfs.Group && v.Name == "entries":
			name = ""
		case v.Kind == nfs.String && v.Name == "name":
			name = string(v.Bytes)
		case v.Kind == nfs.Handle && directory != nil && !isDots(name):
			f.put(f.ofHandle(v.Bytes), directory, name)
		}
	}
}
