package files

import "strings"

// ofHandle returns the file that has a handle, and remembers it if it is new. It returns nil if the
// handle is not valid.
func (s *Server) ofHandle(handle []byte) *File {
	if len(handle) == 0 || len(handle) > maxHandle {
		return nil
	}
	f := s.handles[string(handle)]
	if f == nil {
		f = &File{server: s, handle: string(handle)}
		s.handles[f.handle] = f
		s.resolver.remember(f)
	} else {
		s.resolver.touch(f)
	}
	return f
}

// at returns the file that has a name in a directory, or nil if there is none.
func (s *Server) at(directory *File, name string) *File {
	f := s.places[place{directory, name}]
	if f != nil {
		s.resolver.touch(f)
	}
	return f
}

// child returns the file that has a name in a directory, and remembers it if it is new. It returns
// nil if the directory is unknown or the name cannot be remembered.
func (s *Server) child(directory *File, name string) *File {
	if f := s.at(directory, name); f != nil {
		return f
	}
	return s.fresh(directory, name)
}

// fresh remembers a new file with a name in a directory, in place of any other.
func (s *Server) fresh(directory *File, name string) *File {
	if directory == nil || !isName(name) {
		return nil
	}
	f := &File{server: s}
	s.resolver.remember(f)
	s.put(f, directory, name)
	return f
}

// isName reports whether a name can be remembered.
func isName(name string) bool { return name != "" && len(name) <= maxName }

// isDots reports whether a name stands for the directory itself, or for the one above.
func isDots(name string) bool { return name == "." || name == ".." }

// put gives a file a name in a directory, instead of the name that it had.
func (s *Server) put(f, directory *File, name string) {
	if f == nil || directory == nil || f.root || !isName(name) || f.parent == directory && f.name == name && s.places[place{directory, name}] == f || !s.mayHold(directory, f) {
		return
	}
	s.unname(f)
	s.name(f, directory, strings.Clone(name))
}

// link gives a file another name, in addition to those that it has.
func (s *Server) link(f, directory *File, name string) {
	if f == nil || directory == nil || f.root || !isName(name) || !s.mayHold(directory, f) {
		return
	}
	if f.parent != nil {
		if len(f.links) == maxLinks {
			s.drop(f, f.links[0])
			f.links = f.links[1:]
		}
		f.links = append(f.links, place{f.parent, f.name})
		s.resolver.grow(f, linkCost)
	}
	s.name(f, directory, strings.Clone(name))
}

// name sets the name of a file that has none, or whose former names are in links.
func (s *Server) name(f, directory *File, name string) {
	s.resolver.grow(f, int64(len(name)))
	f.parent, f.name = directory, name
	directory.children++
	s.places[place{directory, name}] = f
	s.renamed(f)
}

// unname removes the name of a file. The names in links stay.
func (s *Server) unname(f *File) {
	if f.parent == nil {
		return
	}
	s.drop(f, place{f.parent, f.name})
	s.resolver.grow(f, -int64(len(f.name)))
	f.parent, f.name = nil, ""
}

// drop removes one name of a file.
func (s *Server) drop(f *File, p place) {
	if s.places[p] == f {
		delete(s.places, p)
	}
	s.left(p.parent)
}

// renamed makes paths that contain the name of a file invalid.
func (s *Server) renamed(f *File) {
	if f.pathAge = 0; f.children > 0 {
		s.age++
	}
}

// mayHold reports whether a file may be in a directory. It may not be in itself, and paths have a
// maximum length.
func (s *Server) mayHold(directory, f *File) bool {
	depth := 0
	for at := directory; at != nil; at = at.parent {
		if depth++; at == f || depth > maxDepth {
			return false
		}
	}
	return true
}

// remove records that a directory does not have a name any more, and returns the file that had it.
// The file keeps its last name, because the capture shows no other.
func (s *Server) remove(directory *File, name string) *File {
	p := place{directory, name}
	f := s.places[p]
	if f == nil {
		return nil
	}
	delete(s.places, p)
	for i, l := range f.links {
		if l == p {
			f.links = append(f.links[:i], f.links[i+1:]...)
			s.left(directory)
			s.resolver.grow(f, -linkCost)
			return f
		}
	}
	if n := len(f.links); n > 0 { // the file has another name
		l := f.links[n-1]
		f.links = f.links[:n-1]
		s.left(directory)
		s.resolver.grow(f, -linkCost-int64(len(f.name)))
		f.parent, f.name = l.parent, l.name
		s.renamed(f)
	}
	return f
}

// identify records that the object that was found as f has a handle. It returns the file of that
// object: f itself, if its handle was not known, or the file with that handle, which takes over the
// name of f. Two objects that have the same name one after the other are two files.
func (s *Server) identify(f *File, handle []byte) *File {
	if f == nil || len(handle) == 0 || len(handle) > maxHandle || f.handle == string(handle) {
		return f
	}
	known := s.handles[string(handle)]
	if known == nil && (f.handle == "" || f == s.top) { // the root of a server may get another handle
		s.setHandle(f, string(handle))
		return f
	}
	known = s.ofHandle(handle)
	if known.root || f.root {
		return known
	}
	directory, name := f.parent, f.name
	s.resolver.merge(f, known)
	if f.handle == "" { // f is the same object
		if s.resolver.Merged != nil {
			s.resolver.Merged(f, known)
		}
		if f.children == 0 && !f.held { // otherwise the paths of the files in it need its name
			s.resolver.forget(f)
		}
	}
	s.put(known, directory, name)
	return known
}

// setHandle sets the handle of a file.
func (s *Server) setHandle(f *File, handle string) {
	if f.handle != "" {
		delete(s.handles, f.handle)
	}
	s.resolver.grow(f, int64(len(handle)-len(f.handle)-len(f.hexHandle)))
	f.handle, f.hexHandle = handle, ""
	s.handles[handle] = f
	if f.children > 0 {
		s.age++ // paths may begin with the handle
	}
}

// merge replaces a file in the uses of the current RPC.
func (r *Resolver) merge(from, to *File) {
	for i := range r.uses {
		if r.uses[i].File == from {
			r.uses[i].File = to
		}
	}
}

// export makes a file the root of an export.
func (s *Server) export(f *File, path string) {
	if len(path) > maxPath || f == s.top {
		return
	}
	s.unname(f)
	for _, l := range f.links {
		s.drop(f, l)
	}
	s.resolver.grow(f, int64(len(path))-linkCost*int64(len(f.links)))
	f.links, f.root, f.name = nil, true, strings.Clone(path)
	s.renamed(f)
}
