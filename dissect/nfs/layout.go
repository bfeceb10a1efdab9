package nfs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// The tables of this package describe arguments and results in a notation that
// is compiled on first use. Items are separated by spaces:
//
//	name:T         one item
//	name!:T        in arguments: an item that limits the size of the results;
//	               in results: an item that the Call does not limit
//	@name          the items of a named type
//	name:@type     the items of a named type, as a group
//	name:(items)   a group
//	name:?T        optional-data: nothing, or T
//	name:[]T       counted array of T
//	name:*T        linked list of T: TRUE precedes each element, FALSE ends the list
//	name:T{a items | b,c items | * items}
//	               a union: T is the discriminant, followed by the items of the
//	               arm with its value; * is the default arm. Without a default,
//	               a value that no arm has is an error, as in XDR
//
// T is one of
//
//	u U  32 and 64 bits, a number       x X  32 and 64 bits, shown in hex
//	z    bool                           m    32 bits, shown in octal
//	o    opaque                         t    string
//	h    file handle                    H    file handle of NFSv2: 32 bytes
//	D L  opaque and string that are DDP-eligible by the NFS binding (RFC 8267 s.3 to 5)
//	P    opaque of READ_PLUS: not in the binding, but implementations reduce it
//	s    stateid                        S    session ID
//	d    opaque of 16 bytes             T    nfstime4
//	y Y  times of NFSv3 (nanoseconds) and NFSv2 (microseconds)
//	b    bitmap of attributes           O    bitmap of operations
//	B    other bitmap                   F    fattr4: bitmap of attributes, values
//
// or a longer name: the name of an enumeration or of a word of flags.

// shape selects how an item is decoded.
type shape uint8

const (
	fixed shape = iota
	variable
	bitmap
	attributes4
	group
	optional
	array
	list
	union // in steps only: an item that is a discriminant has arms
)

// item is one item of a description.
type item struct {
	name     string
	shape    shape
	kind     Kind
	size     int64  // bytes, if the size is fixed; else 0
	least    int64  // minimum size in bytes
	names    *names // names of an enumeration or of flags
	inner    []item // contents of a group, optional, array or list
	arms     []arm  // the arms of a union, if the item is its discriminant
	fraction uint32 // time: nanoseconds in one unit of its second word
	bound    bool
	eligible bool
	readPlus bool
}

// arm is one arm of a union.
type arm struct {
	values []uint32 // nil for the default arm
	items  []item
}

// arm returns the items that follow a discriminant with this value. It returns false
// if no arm has the value.
func (it *item) arm(value uint32) ([]item, bool) {
	for i := range it.arms {
		a := &it.arms[i]
		if a.values == nil || slices.Contains(a.values, value) {
			return a.items, true
		}
	}
	return nil, false
}

var basicTypes = map[string]item{
	"u": {kind: Uint, size: 4}, "U": {kind: Uint, size: 8}, "x": {kind: Hex, size: 4}, "X": {kind: Hex, size: 8},
	"z": {kind: Bool, size: 4}, "m": {kind: Octal, size: 4},
	"o": {kind: Opaque, shape: variable}, "t": {kind: String, shape: variable},
	"h": {kind: Handle, shape: variable}, "H": {kind: Handle, size: 32},
	"D": {kind: Data, shape: variable, eligible: true}, "L": {kind: String, shape: variable, eligible: true},
	"P": {kind: Data, shape: variable, readPlus: true},
	"s": {kind: Stateid, size: 16}, "S": {kind: Session, size: 16}, "d": {kind: Opaque, size: 16},
	"T": {kind: Time, size: 12, fraction: 1}, "y": {kind: Time, size: 8, fraction: 1}, "Y": {kind: Time, size: 8, fraction: 1000},
	"b": {kind: Bitmap, shape: bitmap}, "O": {kind: Operations, shape: bitmap}, "B": {kind: Bits, shape: bitmap},
	"F": {kind: Group, shape: attributes4},
}

// operation is a row of a table of operations or procedures.
type operation struct {
	name string
	args string
	// results are the results of a call that succeeded, failure those of a call that
	// failed with any other status, or only with status on if on is set.
	results, failure string
	on               uint32
	bare             bool // the results do not begin with a status
	unread           bool // only its name is known

	layouts atomic.Pointer[layouts] // args, results and failure, compiled; nil before their first use
}

// bare returns the row of a procedure whose results do not begin with a status.
func bare(name, args, results string) operation {
	return operation{name: name, args: args, results: results, bare: true}
}

// layouts are the compiled arguments and results of an operation.
type layouts struct {
	args, results, failure content
	unbounded              bool // the arguments do not limit the size of the results
	reducible              bool // the results have a DDP-eligible item
}

// content is a compiled description: items to decode with values, steps to decode
// without values.
type content struct {
	items []item
	steps []step
}

func compiled(text string) content {
	items := layout(text)
	return content{items, appendSteps(nil, items)}
}

// compiled returns the compiled arguments and results. They are compiled on first use,
// because most captures contain few of the operations.
func (op *operation) compiled() *layouts {
	if c := op.layouts.Load(); c != nil {
		return c
	}
	return op.compile()
}

// compiling serializes compilation, because operations share the named types.
var compiling sync.Mutex

func (op *operation) compile() *layouts {
	compiling.Lock()
	defer compiling.Unlock()
	if c := op.layouts.Load(); c != nil { // another goroutine was faster
		return c
	}
	c := &layouts{args: compiled(op.args), results: compiled(op.results), failure: compiled(op.failure)}
	c.unbounded = strings.Contains(op.results, "!:") && !strings.Contains(op.args, "!:")
	for _, it := range c.results.items {
		c.reducible = c.reducible || it.eligible
	}
	op.layouts.Store(c)
	return c
}

// layout compiles a description. It panics if the description is invalid, because all
// descriptions are constants of this package.
func layout(text string) []item {
	p := parser{text: text}
	items := p.items()
	if p.space(); p.at < len(text) {
		p.wrong("something")
	}
	return items
}

type parser struct {
	text string
	at   int
}

func (p *parser) wrong(what string) {
	panic(fmt.Sprintf("nfs: layout %q: %s at %d", p.text, what, p.at))
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \n\t", p.text[p.at]) >= 0 {
		p.at++
	}
}

// take consumes a piece of punctuation if it is next.
func (p *parser) take(what string) bool {
	found := strings.HasPrefix(p.text[p.at:], what)
	if found {
		p.at += len(what)
	}
	return found
}

func (p *parser) need(what string) {
	if p.space(); !p.take(what) {
		p.wrong("no " + what)
	}
}

func (p *parser) word() string {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte(" \n\t:!(){}|,", p.text[p.at]) < 0 {
		p.at++
	}
	if start == p.at {
		p.wrong("no name")
	}
	return p.text[start:p.at]
}

// items parses items up to a closing bracket or a bar.
func (p *parser) items() (items []item) {
	for {
		p.space()
		if p.at == len(p.text) || strings.IndexByte(")}|", p.text[p.at]) >= 0 {
			break
		}
		if p.take("@") {
			items = append(items, named(p.word())...)
			continue
		}
		name := p.word()
		bound := p.take("!")
		p.need(":")
		it := p.item(name)
		it.bound = bound
		items = append(items, it)
	}
	return items
}

func (p *parser) item(name string) item {
	switch {
	case p.take("?"):
		return item{name: name, shape: optional, least: 4, inner: []item{p.item(name)}}
	case p.take("[]"):
		return item{name: name, shape: array, least: 4, inner: []item{p.item(name)}}
	case p.take("*"):
		return item{name: name, shape: list, least: 4, inner: []item{p.item(name)}}
	case p.take("("):
		it := grouped(name, p.items())
		p.need(")")
		return it
	case p.take("@"):
		return grouped(name, named(p.word()))
	}
	kind := p.word()
	it, known := basicTypes[kind]
	if !known {
		set := sets()[kind]
		if set == nil {
			p.wrong("no type " + kind)
		}
		it = item{kind: Enum, size: 4, names: set}
		if set.bits != nil {
			it.kind = Flags
		}
	}
	it.name = name
	if it.least = it.size; it.least == 0 {
		it.least = 4
	}
	if p.take("{") {
		if it.size != 4 {
			p.wrong("no discriminant " + kind)
		}
		for more := true; more; more = p.take("|") {
			it.arms = append(it.arms, p.arm(&it))
		}
		p.need("}")
	}
	return it
}

func (p *parser) arm(it *item) (a arm) {
	p.space()
	if p.take("*") {
		a.items = p.items()
		return a
	}
	for more := true; more; more = p.take(",") {
		label := p.word()
		value, err := strconv.ParseUint(label, 0, 32)
		if err != nil {
			value = uint64(it.names.value(label))
		}
		a.values = append(a.values, uint32(value))
	}
	a.items = p.items()
	return a
}

// named returns the items of a named type, which all uses of the name share.
func named(name string) []item {
	if items, compiled := compiledTypes[name]; compiled {
		return items
	}
	text, known := types[name]
	if !known {
		panic("nfs: no type " + name)
	}
	items := layout(text)
	compiledTypes[name] = items
	return items
}

// compiledTypes caches the items of the named types that were used.
var compiledTypes = map[string][]item{}

func grouped(name string, items []item) item {
	g := item{name: name, shape: group, inner: items}
	for i := range items {
		g.least += items[i].least
	}
	return g
}

// step is a compiled item for decoding without values. Adjacent items of fixed size
// are one step, and a group is replaced by its members.
type step struct {
	shape shape
	bound bool  // a fixed step that limits the size of the results
	size  int64 // fixed: bytes
	least int64 // array: minimum size of an element in bytes
	item  *item // variable: the item
	inner []step
	arms  []stepArm
}

type stepArm struct {
	values []uint32
	steps  []step
}

func appendSteps(out []step, items []item) []step {
	for i := range items {
		it := &items[i]
		switch {
		case it.shape == group:
			out = appendSteps(out, it.inner)
		case it.shape == attributes4:
			out = append(out, step{shape: bitmap}, step{shape: variable, item: &unreadAttributes})
		case it.arms != nil:
			u := step{shape: union}
			for _, a := range it.arms {
				u.arms = append(u.arms, stepArm{a.values, appendSteps(nil, a.items)})
			}
			out = append(out, u)
		case it.shape == fixed:
			if n := len(out); n > 0 && out[n-1].shape == fixed && !out[n-1].bound && !it.bound {
				out[n-1].size += it.size
			} else {
				out = append(out, step{shape: fixed, bound: it.bound, size: it.size})
			}
		case it.shape == variable:
			out = append(out, step{shape: variable, item: it})
		default:
			st := step{shape: it.shape, inner: appendSteps(nil, it.inner)}
			if it.shape == array {
				st.least = it.inner[0].least
			}
			out = append(out, st)
		}
	}
	return out
}
