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

// node is a file or directory that a capture speaks of. Its name is what the
// capture called it last.
type node struct {
	parent *node
	name   string
	handle string // empty while the capture does not show it
	root   bool   // of an export: its path is name, which may have slashes
	file   *file  // its data
}

// place is a name in a directory.
type place struct {
	parent *node
	name   string
}

// maxNodes bounds how many files and directories are remembered by name: a
// capture can list any number.
const maxNodes = 1 << 20

// tree knows where files are.
type tree struct {
	handles map[string]*node
	places  map[place]*node
	top     *node // what PUTROOTFH names
	full    bool
}

func newTree() *tree {
	return &tree{handles: map[string]*node{}, places: map[place]*node{}, top: &node{root: true}}
}

// of is the node with a handle.
func (t *tree) of(handle string) *node {
	n := t.handles[handle]
	if n == nil {
		n = &node{handle: handle}
		if t.room() {
			t.handles[strings.Clone(handle)] = n
		}
	}
	return n
}

func (t *tree) room() bool {
	t.full = t.full || len(t.handles)+len(t.places) >= 2*maxNodes
	return !t.full
}

// child is what has a name in a directory; nil where either is not known.
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

// put says that a node has a name in a directory.
func (t *tree) put(n, parent *node, name string) {
	if parent == nil || n == nil || n == parent {
		return
	}
	name = strings.Clone(name)
	if n.parent != nil && t.places[place{n.parent, n.name}] == n {
		delete(t.places, place{n.parent, n.name})
	}
	n.parent, n.name = parent, name
	if t.room() {
		t.places[place{parent, name}] = n
	}
}

// remove says that a directory has a name no more. What had it keeps it, for
// whoever asks later what it was called.
func (t *tree) remove(parent *node, name string) { delete(t.places, place{parent, name}) }

// has says that a node has a handle; the node that is known by that takes over.
func (t *tree) has(n *node, handle string) *node {
	if n == nil || n.handle == handle {
		return n
	}
	known := t.of(handle)
	if n.parent != nil && !known.root {
		parent, name := n.parent, n.name
		if t.places[place{parent, name}] == n {
			delete(t.places, place{parent, name})
		}
		t.put(known, parent, name)
	}
	if n.file != nil && known.file == nil {
		known.file, n.file = n.file, nil
		known.file.node = known
	}
	return known
}

// deepest bounds the length of paths, and ends those that go round in circles.
const deepest = 128

// path is where a node is, by elements that are safe to be names of files; false
// when only a handle tells it, which the path then begins with.
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

// label stands for the path of what is known by its handle alone.
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

// element makes a name of a file of a name on the wire: no separators, no control
// characters, nothing that is not UTF-8, none of the names that mean something
// else; those bytes come as %XX.
func element(name string) string {
	if strings.Trim(name, ".") == "" { // "", ".", ".."
		return strings.Repeat("%2E", len(name)) + map[bool]string{true: "%"}[name == ""]
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && size <= 1 || r == '/' || r == '\\' || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || i == 0 && strings.HasPrefix(name, ownPrefix) {
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
