package extract

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// node is a file or directory that the capture mentions. Its name is the last one
// that the capture shows.
type node struct {
	parent *node
	name   string
	handle string // empty until the capture shows it
	root   bool   // the node is the root of an export; its path is name, which may contain slashes
	file   *file  // data of the node, or nil
}

// place is a name in a directory.
type place struct {
	parent *node
	name   string
}

// maxNodes limits the number of files and directories that are remembered by name,
// because a capture can list any number of them.
const maxNodes = 1 << 20

// tree finds files and directories by handle and by name.
type tree struct {
	handles map[string]*node
	places  map[place]*node
	top     *node // the root of the server, which PUTROOTFH selects
	full    bool  // maxNodes was reached
}

func newTree() *tree {
	return &tree{handles: map[string]*node{}, places: map[place]*node{}, top: &node{root: true}}
}

// of returns the node that has the handle and creates it if there is none.
func (t *tree) of(handle string) *node {
	n := t.handles[handle]
	if n == nil {
		n = &node{handle: handle}
		if t.mayGrow() {
			t.handles[strings.Clone(handle)] = n
		}
	}
	return n
}

// mayGrow reports whether another handle or name may be remembered.
func (t *tree) mayGrow() bool {
	t.full = t.full || len(t.handles)+len(t.places) >= 2*maxNodes
	return !t.full
}

// child returns the node that has the name in a directory, and creates it if there
// is none. It returns nil if the directory is unknown.
func (t *tree) child(parent *node, name string) *node {
	if parent == nil {
		return nil
	}
	n := t.places[place{parent, name}]
	if n == nil {
		n = &node{}
		t.put(n, parent, name)
	}
	return n
}

// put records that n has the name in a directory.
func (t *tree) put(n, parent *node, name string) {
	if parent == nil || n == nil || n == parent {
		return
	}
	name = strings.Clone(name)
	if n.parent != nil && t.places[place{n.parent, n.name}] == n {
		delete(t.places, place{n.parent, n.name})
	}
	n.parent, n.name = parent, name
	if t.mayGrow() {
		t.places[place{parent, name}] = n
	}
}

// remove records that a directory does not have the name any more. The node that
// had the name keeps it, because its data is still written under that name.
func (t *tree) remove(parent *node, name string) { delete(t.places, place{parent, name}) }

// has records that the object that was found as n has the handle. It returns the node
// of that object: n itself, if its handle was not known, or the node with that handle,
// which takes over the name of n. Two objects that have the same name one after the
// other are two nodes.
func (t *tree) has(n *node, handle string) *node {
	if n == nil || n.handle == handle {
		return n
	}
	known := t.handles[handle]
	if known == nil && n.handle == "" {
		n.handle = strings.Clone(handle)
		if t.mayGrow() {
			t.handles[n.handle] = n
		}
		return n
	}
	known = t.of(handle)
	if n.parent != nil && !known.root {
		t.put(known, n.parent, n.name)
	}
	if n.handle == "" && n.file != nil && known.file == nil { // n is the same object
		known.file, n.file = n.file, nil
		known.file.node = known
	}
	return known
}

// deepest limits the number of elements of a path. It also ends paths that contain
// a cycle.
const deepest = 128

// path returns the path of n as elements that are safe to use as file names. If
// the capture does not show the whole path, named is false and the path begins
// with a label for the topmost known handle.
func (n *node) path() (elements []string, named bool) {
	for at := n; ; at = at.parent {
		if len(elements) > deepest {
			return []string{label(n.handle)}, false
		}
		switch {
		case at.root:
			for _, e := range slices.Backward(strings.Split(at.name, "/")) {
				if e != "" {
					elements = append(elements, element(e))
				}
			}
			slices.Reverse(elements)
			return elements, true
		case at.parent == nil:
			elements = append(elements, label(at.handle))
			slices.Reverse(elements)
			return elements, false
		}
		elements = append(elements, element(at.name))
	}
}

// label returns the name of a file or directory of which only the handle is known.
func label(handle string) string {
	if handle == "" {
		return "unknown"
	}
	if len(handle) <= 64 {
		return "fh-" + hex.EncodeToString([]byte(handle))
	}
	sum := sha256.Sum256([]byte(handle))
	return "fh-" + hex.EncodeToString(sum[:16])
}

// isOwn reports whether a name could be that of the staging folder, on a file system that
// ignores case, too.
func isOwn(name string) bool {
	return len(name) >= len(ownPrefix) && strings.EqualFold(name[:len(ownPrefix)], ownPrefix)
}

// element turns a name from the wire into a file name. It writes separators,
// line breaks, control characters and invalid UTF-8 as %XX, and also the names that have a
// special meaning, such as "..".
func element(name string) string {
	if strings.Trim(name, ".") == "" { // "", ".", ".."
		return strings.Repeat("%2E", len(name)) + map[bool]string{true: "%"}[name == ""]
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && size <= 1 || r == '/' || r == '\\' || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || i == 0 && isOwn(name) {
			for _, c := range []byte(name[i : i+size]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		} else {
			b.WriteString(name[i : i+size])
		}
		i += size
	}
	if s := b.String(); len(s) <= 240 { // most file systems take 255
		return s
	}
	sum := sha256.Sum256([]byte(name))
	s := b.String()[:200]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "~" + hex.EncodeToString(sum[:8])
}
