// Package files finds out which files the RPCs of NFS act on. A [Resolver] learns the names of file
// handles from LOOKUP, OPEN, CREATE, MKDIR, READDIR, READDIRPLUS, RENAME, REMOVE, LINK and MNT, in
// NFSv2, NFSv3 and NFSv4, and returns the path of the object that an operation acted on.
//
// tree.go has the files that a server is known to have, resolve.go follows the operations of an RPC,
// and fast.go finds the file handle of the RPCs that name nothing, such as READ and WRITE, without
// decoding all of their arguments.
package files

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// The limits of what the wire may contain. A longer handle violates the protocol (RFC 8881 s.3.1); a
// longer name or path is not remembered, so the path of the file is unknown.
const (
	maxHandle = 128
	maxName   = 1 << 10
	maxPath   = 1 << 12
	maxDepth  = 128 // elements of a path
	maxLinks  = 8   // names of a file besides its last one
)

// Costs in bytes, including the shares of maps.
const (
	fileCost   = 400 // without the bytes of handle, name and path
	linkCost   = 96
	serverCost = 1024
)

// File is a file or directory that the capture mentions. Its name is the last one that the capture
// shows.
type File struct {
	server   *Server
	parent   *File
	name     string
	handle   string // empty until the capture shows it
	root     bool   // the root of an export; its path is name, which may contain slashes
	held     bool   // it is not evicted
	links    []place
	children int

	path      string // cached; valid if pathAge is the age of the server's names
	pathAge   int
	named     bool   // path begins at a root
	hexHandle string // cached

	cost       int64
	prev, next *File // in the order of last use; nil if the resolver does not remember the file
}

// place is a name in a directory.
type place struct {
	parent *File
	name   string
}

// Server has the files of one server.
type Server struct {
	resolver *Resolver
	address  string
	handles  map[string]*File
	places   map[place]*File
	top      *File // the root; nil if it is not remembered
	age      int   // grows whenever the path of a directory changes
	files    int   // files that are remembered
}

// Resolver remembers the files of all servers, and forgets the least recently used ones if its owner
// calls [Resolver.Evict].
type Resolver struct {
	// Charge, if not nil, is called with the number of bytes that the resolver allocates; a negative
	// number frees them.
	Charge func(bytes int64)
	// Merged, if not nil, is called if two files turn out to be one: everything that was assigned to
	// from belongs to to.
	Merged func(from, to *File)

	servers map[string]*Server
	recent  File // head of the ring of files: next is the most recently used one
	files   int
	last    *Server
	uses    []Use
}

// New returns a Resolver that knows no names.
func New() *Resolver {
	r := &Resolver{servers: map[string]*Server{}}
	r.recent.prev, r.recent.next = &r.recent, &r.recent
	return r
}

func (r *Resolver) charge(bytes int64) {
	if r.Charge != nil {
		r.Charge(bytes)
	}
}

// Server returns the server with an address, whose file handles mean nothing to other servers.
func (r *Resolver) Server(address string) *Server {
	if r.last != nil && r.last.address == address {
		return r.last
	}
	s := r.servers[address]
	if s == nil { // it is remembered with its first file
		s = &Server{resolver: r, address: address, handles: map[string]*File{}, places: map[place]*File{}, age: 1}
	}
	r.last = s
	return s
}

// root returns the root of the server, which PUTROOTFH selects.
func (s *Server) root() *File {
	if s.top == nil {
		s.top = &File{server: s, root: true}
		s.resolver.remember(s.top)
	}
	s.resolver.touch(s.top)
	return s.top
}

// remember makes a new file the most recently used one.
func (r *Resolver) remember(f *File) {
	s := f.server
	if s.files == 0 {
		r.servers[s.address] = s
		r.charge(serverCost)
	}
	f.cost = fileCost + int64(len(f.handle))
	r.charge(f.cost)
	r.files++
	s.files++
	r.link(f)
}

func (r *Resolver) link(f *File) {
	f.prev, f.next = &r.recent, r.recent.next
	f.next.prev = f
	r.recent.next = f
}

// touch makes a file the most recently used one.
func (r *Resolver) touch(f *File) {
	if f.next == nil || r.recent.next == f {
		return
	}
	f.prev.next, f.next.prev = f.next, f.prev
	r.link(f)
}

// grow charges bytes for a file that is remembered.
func (r *Resolver) grow(f *File, bytes int64) {
	if f.next != nil {
		f.cost += bytes
		r.charge(bytes)
	}
}

// Evict forgets the least recently used file that no other file needs, and returns false if there is
// none. A directory is needed as long as a file in it is remembered.
func (r *Resolver) Evict() bool {
	for range r.files { // rarely more than a few, because paths have few elements
		f := r.recent.prev
		if f.children == 0 && !f.held {
			r.forget(f)
			return true
		}
		r.touch(f)
	}
	return false
}

// forget forgets a file.
func (r *Resolver) forget(f *File) {
	s := f.server
	f.prev.next, f.next.prev = f.next, f.prev
	f.prev, f.next = nil, nil
	if f.handle != "" && s.handles[f.handle] == f {
		delete(s.handles, f.handle)
	}
	for _, p := range append(f.links, place{f.parent, f.name}) {
		if p.parent != nil && s.places[p] == f {
			delete(s.places, p)
		}
		s.left(p.parent)
	}
	f.links = nil
	if f == s.top {
		s.top = nil
	}
	r.charge(-f.cost)
	r.files--
	if s.files--; s.files == 0 {
		delete(r.servers, s.address)
		r.charge(-serverCost)
		if r.last == s {
			r.last = nil
		}
	}
}

// left records that a directory has a file less.
func (s *Server) left(directory *File) {
	if directory != nil {
		directory.children--
	}
}

// Hold prevents a file from being forgotten.
func (f *File) Hold() { f.held = true }

// Handle returns the file handle, or an empty string if the capture does not show it.
func (f *File) Handle() string { return f.handle }

// HexHandle returns the file handle in hex, or an empty string if the capture does not show it.
func (f *File) HexHandle() string {
	if f.hexHandle == "" && f.handle != "" {
		f.hexHandle = hex.EncodeToString([]byte(f.handle))
		f.server.resolver.grow(f, int64(len(f.hexHandle)))
	}
	return f.hexHandle
}

// Elements returns the names of the directories above the file and its own name. If the capture does
// not show the path of the topmost one, known is false, and the elements are those below it; top is
// its handle.
func (f *File) Elements() (elements []string, top string, known bool) {
	for at := f; ; at = at.parent {
		switch {
		case at.root:
			var above []string
			for e := range strings.SplitSeq(at.name, "/") {
				if e != "" {
					above = append(above, e)
				}
			}
			slices.Reverse(elements)
			return append(above, elements...), "", true
		case at.parent == nil || len(elements) > maxDepth:
			slices.Reverse(elements)
			return elements, at.handle, false
		}
		elements = append(elements, at.name)
	}
}

// Path returns the path of a file. If the capture does not show the whole path, it begins with the
// short form of the handle of the topmost directory that is known. The path is empty if no name is
// known.
func (f *File) Path() string {
	f.resolve(0)
	return f.path
}

// resolve computes the path of a file, unless it is known.
func (f *File) resolve(depth int) {
	s := f.server
	if f.pathAge == s.age {
		return
	}
	path := ""
	switch {
	case f.root:
		path = "/" + strings.Trim(f.name, "/")
		f.named = true
	case f.parent == nil:
		f.named = false
	default:
		path, f.named = f.parent.join(f.name, depth+1)
	}
	s.resolver.grow(f, int64(len(path)-len(f.path)))
	f.path, f.pathAge = path, s.age
}

// join returns the path of a name in a directory, and whether it begins at a root.
func (f *File) join(name string, depth int) (path string, named bool) {
	base := ""
	if len(name) > maxName {
		return "", false
	}
	if depth < maxDepth {
		f.resolve(depth)
		base, named = f.path, f.named
	}
	if base == "" || len(base)+1+len(name) > maxPath {
		base, named = record.ShortHandle([]byte(f.handle)), false
		if f.handle == "" {
			return "", false
		}
	}
	switch { // a name cannot contain a separator, nor stand for another directory
	case strings.Contains(name, "/"):
		name = strings.ReplaceAll(name, "/", "%2F")
	case isDots(name):
		name = strings.ReplaceAll(name, ".", "%2E")
	}
	if base == "/" {
		return base + name, named
	}
	return base + "/" + name, named
}
