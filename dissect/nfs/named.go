package nfs

import (
	"maps"
	"slices"
)

// Named describes everything in the tables that has one name.
type Named struct {
	Name  string
	Kinds []Kind   // the kinds of the values with this name, without duplicates
	Words []string // the names of its values, if it is an Enum or Flags
	Of    []string // the operations and procedures that have it, such as "READ"; "attributes" for an attribute of NFSv4
}

// Names returns all names of values in the tables, sorted.
func Names() []Named {
	b := namer{found: map[string]*Named{}}
	for of, items := range map[string][]item{"COMPOUND": compoundCall.items, "CB_COMPOUND": slices.Concat(compoundCall.items, callbackIdent.items)} {
		b.items(of, items)
	}
	for _, items := range attributes() {
		b.items("attributes", items)
	}
	b.items("attributes", []item{unreadAttributes})
	b.operations(operations)
	b.operations(callbackOperations)
	for _, k := range slices.SortedFunc(maps.Keys(procedures), func(a, b key) int { return int(a.program) - int(b.program) + int(a.version) - int(b.version) }) {
		b.operations(procedures[k])
	}
	var list []Named
	for _, name := range slices.Sorted(maps.Keys(b.found)) {
		n := b.found[name]
		slices.Sort(n.Of)
		slices.Sort(n.Words)
		n.Words = slices.Compact(n.Words)
		list = append(list, *n)
	}
	return list
}

// namer collects names.
type namer struct{ found map[string]*Named }

func (b *namer) operations(table []operation) {
	for i := range table {
		op := &table[i]
		c := op.compiled()
		b.items(op.name, c.args.items)
		b.items(op.name, c.results.items)
		b.items(op.name, c.failure.items)
	}
}

func (b *namer) items(of string, items []item) {
	for i := range items {
		it := &items[i]
		kind := it.kind
		switch it.shape {
		case group, attributes4:
			kind = Group
		case array, list:
			kind = List
		}
		if it.shape != optional { // the item inside has the same name
			b.add(of, it, kind)
		}
		b.items(of, it.inner)
		for _, a := range it.arms {
			b.items(of, a.items)
		}
	}
}

func (b *namer) add(of string, it *item, kind Kind) {
	n := b.found[it.name]
	if n == nil {
		n = &Named{Name: it.name}
		b.found[it.name] = n
	}
	if !slices.Contains(n.Kinds, kind) {
		n.Kinds = append(n.Kinds, kind)
	}
	if !slices.Contains(n.Of, of) {
		n.Of = append(n.Of, of)
	}
	if it.names != nil {
		n.Words = append(n.Words, it.names.words()...)
	}
}

// words returns all names of a set.
func (n *names) words() (words []string) {
	for _, f := range n.bits {
		words = append(words, f.name)
	}
	words = append(words, n.list...)
	for _, name := range n.values {
		words = append(words, name)
	}
	if n.status != 0 {
		words = StatusWords(n.status)
	}
	return words
}

// StatusWords returns the names of all status codes of an NFS version, sorted.
func StatusWords(version uint32) (words []string) {
	for k, name := range statusTable() { // k is a version and a status
		if k.program == version {
			words = append(words, name)
		}
	}
	slices.Sort(words)
	return words
}

// MountStatusWords returns the names of all status codes of MOUNT version 3, sorted.
func MountStatusWords() []string { return slices.Sorted(maps.Values(mountStatus)) }

// ProcedureWords returns the names of all procedures of all programs and versions, sorted.
func ProcedureWords() []string {
	words := namesOf(callbackProcedures)
	for _, table := range procedures {
		words = append(words, namesOf(table)...)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// PrincipalWords returns the names of everything that an RPC to NFS can be sent for, sorted: the operations of
// COMPOUND and CB_COMPOUND, and the procedures of NFSv2 and NFSv3.
func PrincipalWords() []string {
	words := slices.Concat(OperationWords(), namesOf(nfs2), namesOf(nfs3))
	slices.Sort(words)
	return slices.Compact(words)
}

// ProgramWords returns the names of all programs, sorted.
func ProgramWords() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Values(programNames)), ProgramName(ProgramCallback))))
}

// namesOf returns the names in a table of procedures or operations.
func namesOf(table []operation) (names []string) {
	for i := range table {
		if table[i].name != "" {
			names = append(names, table[i].name)
		}
	}
	return names
}

// OperationWords returns the names of all operations of COMPOUND and CB_COMPOUND.
func OperationWords() []string {
	return slices.Concat(namesOf(operations), namesOf(callbackOperations), []string{operationName(nil, opIllegal)})
}
