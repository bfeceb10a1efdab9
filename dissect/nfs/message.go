package nfs

import (
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/field"
)

// ErrTruncated is wrapped by errors of messages that need more bytes than are
// there, ErrMalformed by those of messages that the protocol does not allow, and
// ErrUnknown by those about programs, procedures and operations that no table
// here has.
var (
	ErrTruncated = errors.New("truncated")
	ErrMalformed = errors.New("malformed")
	ErrUnknown   = errors.New("unknown")
)

// Kind says what a value is, and which fields of it are set.
type Kind uint8

// The kinds of a [Value]. An array of bytes that travelled in a chunk has its
// count in Uint and no Bytes.
const (
	Uint       Kind = iota // Uint
	Hex                    // Uint, of which nobody reads the number
	Octal                  // Uint
	Bool                   // Uint, 0 or 1
	Enum                   // Uint; Text, empty when the value has no name
	Flags                  // Uint; AppendText names the bits
	Opaque                 // Bytes; Uint is their number
	String                 // Bytes as they came, which may be anything; Uint is their number
	Handle                 // Bytes of a file handle; Uint is their number
	Data                   // Bytes of a file; Uint is their number
	Stateid                // Bytes: 16, of which Uint is the seqid
	Session                // Bytes: 16
	Bitmap                 // Bytes: words of a bitmap of attributes, see Attributes
	Operations             // Bytes: words of a bitmap of NFSv4 operations
	Bits                   // Bytes: words of another bitmap
	Time                   // Uint: seconds, of NFSv4 to be read as int64; Nanoseconds
	Group                  // what follows one deeper belongs to it. Of an element of a List, Uint is its index; of attributes of NFSv4, Bytes is their bitmap
	List                   // Uint elements follow, one deeper
)

var kindNames = [...]string{
	"uint", "hex", "octal", "bool", "enum", "flags", "opaque", "string", "handle", "data", "stateid", "session", "bitmap", "operations", "bits", "time", "group", "list",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// Value is one named item of arguments or results.
type Value struct {
	Name        string // of the table, not of the input
	Kind        Kind
	Depth       uint8  // how many groups and lists it is in
	Nanoseconds uint32 // of a Time
	Uint        uint64
	Bytes       []byte // part of the input: its owner's, and only good as long as that is
	Text        string // name of an Enum: of the table, not of the input
	At, Len     int64  // where it stands in the unreduced stream, bytes: with its count word and its padding

	item *item
}

// Time is the time of a [Time].
func (v *Value) Time() time.Time { return time.Unix(int64(v.Uint), int64(v.Nanoseconds)).UTC() }

// timeForm is RFC 3339 with nanoseconds, all nine digits.
const timeForm = "2006-01-02T15:04:05.000000000Z07:00"

// AppendText appends what a value says, without its name: one line that is safe
// to print. Groups and lists say how many they are, file data how long it is.
func (v *Value) AppendText(b []byte) []byte {
	switch v.Kind {
	case Uint:
		return strconv.AppendUint(b, v.Uint, 10)
	case Hex:
		b = append(b, "0x"...)
		for digits := int(v.Len)*2 - len(strconv.FormatUint(v.Uint, 16)); digits > 0; digits-- {
			b = append(b, '0')
		}
		return strconv.AppendUint(b, v.Uint, 16)
	case Octal:
		return strconv.AppendUint(append(b, '0'), v.Uint, 8)
	case Bool:
		return strconv.AppendBool(b, v.Uint != 0)
	case Enum:
		if v.Text != "" {
			return append(b, v.Text...)
		}
		return strconv.AppendUint(b, v.Uint, 10)
	case Flags:
		if v.Uint == 0 || v.item == nil {
			return strconv.AppendUint(b, v.Uint, 10)
		}
		return v.item.names.appendFlags(b, uint32(v.Uint))
	case String:
		if v.Bytes != nil || v.Uint == 0 {
			return strconv.AppendQuote(b, string(v.Bytes))
		}
	case Opaque, Handle, Session:
		if v.Bytes != nil || v.Uint == 0 {
			return hex.AppendEncode(b, v.Bytes)
		}
	case Stateid:
		b = strconv.AppendUint(b, v.Uint, 10)
		if len(v.Bytes) == 16 {
			b = hex.AppendEncode(append(b, ':'), v.Bytes[4:])
		}
		return b
	case Bitmap, Operations, Bits:
		return v.appendBits(b)
	case Time:
		if t := v.Time(); t.Year() <= 9999 && t.Year() >= 0 {
			return t.AppendFormat(b, timeForm)
		}
		b = strconv.AppendInt(b, int64(v.Uint), 10)
		return append(b, " s"...)
	case Group:
		return b
	case List:
		return strconv.AppendUint(b, v.Uint, 10)
	}
	b = strconv.AppendUint(b, v.Uint, 10)
	return append(b, " bytes"...)
}

func (v *Value) appendBits(b []byte) []byte {
	first := true
	for n := range setBits(v.Bytes) {
		if !first {
			b = append(b, ' ')
		}
		first = false
		name := ""
		switch v.Kind {
		case Bitmap:
			name = AttributeName(n)
		case Operations:
			if op := lookup(n, false); op != nil {
				name = op.name
			}
		}
		if name != "" {
			b = append(b, name...)
		} else {
			b = strconv.AppendUint(b, uint64(n), 10)
		}
	}
	return b
}

// String is what AppendText appends.
func (v *Value) String() string { return string(v.AppendText(nil)) }

// AppendJSON appends a value as JSON: numbers as numbers, names, handles, stateids
// and times as text, bitmaps as lists of names, and of file data how much it is.
// It is no value of a Group or List: what follows them is.
func (v *Value) AppendJSON(b []byte) []byte {
	switch v.Kind {
	case Uint:
		return strconv.AppendUint(b, v.Uint, 10)
	case Bool:
		return strconv.AppendBool(b, v.Uint != 0)
	case Enum:
		if v.Text == "" {
			return strconv.AppendUint(b, v.Uint, 10)
		}
	case String:
		return field.AppendJSON(b, v.Bytes)
	case Data:
		return append(strconv.AppendUint(append(b, `{"bytes":`...), v.Uint, 10), '}')
	case Bitmap, Operations, Bits:
		b = append(b, '[')
		for i, name := range v.Names() {
			if i > 0 {
				b = append(b, ',')
			}
			b = field.AppendJSON(b, name)
		}
		return append(b, ']')
	}
	return field.AppendJSON(b, v.String())
}

// Names are what the bits of a Bitmap, Operations or Bits are called, or their
// numbers.
func (v *Value) Names() []string { return strings.Fields(v.String()) }

// Key is what a value is called in an object that has all values of its group:
// its name, with "_2" behind it where a value before it in the group has the same.
func Key(values []Value, i int) string {
	v, before := &values[i], 1
	for j := i - 1; j >= 0 && values[j].Depth >= v.Depth; j-- {
		if values[j].Depth == v.Depth && values[j].Name == v.Name {
			before++
		}
	}
	if before == 1 {
		return v.Name
	}
	return v.Name + "_" + strconv.Itoa(before)
}

// setBits are the numbers of the bits that are set in a bitmap4.
func setBits(bitmap []byte) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i := 0; i+4 <= len(bitmap); i += 4 {
			for word, n := be.Uint32(bitmap[i:]), uint32(i)*8; word != 0; word, n = word>>1, n+1 {
				if word&1 != 0 && !yield(n) {
					return
				}
			}
		}
	}
}

// Op is one operation of a COMPOUND, or the one procedure that a message of
// another version or program is about.
type Op struct {
	Name   string // "OP_99" when it has none
	Number uint32

	Status    uint32 // Reply
	HasStatus bool

	// Call: the largest size, in bytes, of what the Reply carries of file data,
	// directory entries or other things whose size the Call bounds: count of
	// READ, maxcount of READDIR. 0 when the results are small by their nature,
	// Unbounded when the Call does not say (READLINK, GETXATTR, SECINFO).
	MaxResult int64
	// Call: its results have a data item that may be reduced, so that a Write
	// chunk can be meant for it: READ, READLINK.
	ReducibleResult bool

	First, Last int   // Values[First:Last] of its message are its
	At, End     int64 // where it stands in the unreduced stream, with number and status
}

// Unbounded is the [Op] MaxResult of one whose arguments do not bound its results.
const Unbounded = -1

// Item is an opaque or string that the NFS binding (RFC 8267) lets be reduced,
// or one that was.
type Item struct {
	Op       int    // whose it is, index in Ops; -1 for the tag of a COMPOUND, which no operation has
	Value    int    // which, index in Values; -1 when that was dropped
	Name     string // of the value
	Eligible bool   // the binding lets it be reduced
	ReadPlus bool   // data of READ_PLUS, of which the binding says nothing
	Reduced  bool   // it was taken out of the stream
	Hole     int    // index of the hole, -1 when it was not
	Position int64  // of its first data byte in the unreduced stream, behind the count word
	Length   int64  // by that word, bytes, without padding
}

// Message is what a Call or Reply of an NFS program says. Its slices are used
// again by the next Call or Reply that it is made to hold.
type Message struct {
	Program, Version, Procedure uint32
	Name                        string // of the procedure, empty when it has none
	MinorVersion                uint32 // Call of a COMPOUND

	Status    uint32 // Reply: of the procedure, or of the whole COMPOUND
	HasStatus bool

	Count  uint32  // of a COMPOUND: how many operations there are, by its own word
	Named  bool    // of a COMPOUND: AppendNames names all of them, and no hole is looked for behind where it broke off
	Ops    []Op    // of a COMPOUND, as many as the first 4096
	Values []Value // of all of Ops; those of a COMPOUND itself (its tag) come first
	Items  []Item  // as many as the first 65536

	// Complete says that all of it was understood to its end. Where it is not,
	// Err says what stopped it, and where; all that comes before is there.
	Complete bool
	Err      error
	Left     int64 // bytes behind the end, or behind where it stopped
	Dropped  int   // values that were not kept for Limit, and items beyond what Items has

	// Limit is how many values are kept; 0 stands for 262144, which the next Call or
	// Reply writes here. When it is negative, none are kept, attributes are passed
	// over, and Err is ErrTruncated, ErrMalformed or ErrUnknown itself: for who looks
	// at operations and items alone, of every message that passes.
	Limit int

	reply  bool
	depth  uint8
	stream Stream // here and not on the stack, so that walks can take its address
}

const (
	maxValues = 1 << 18
	maxOps    = 1 << 12
	maxItems  = 1 << 16
)

// Call decodes the arguments of a procedure. Positions of holes, and all that it
// reports, count from the start of s. Where s ends early, what is there is kept.
func (m *Message) Call(program, version, procedure uint32, s Stream) {
	m.start(program, version, procedure, s)
	if IsCompound(program, version, procedure) {
		m.compound(IsCallback(program))
	} else if op := m.procedure(); op != nil {
		m.operation(op, op.name, procedure, m.stream.position())
	}
	m.finish()
}

// Reply decodes the results of a procedure likewise: of one that the RPC layer
// says was accepted.
func (m *Message) Reply(program, version, procedure uint32, s Stream) {
	m.start(program, version, procedure, s)
	m.reply = true
	if IsCompound(program, version, procedure) {
		m.compound(IsCallback(program))
	} else if op := m.procedure(); op != nil {
		o := m.operation(op, op.name, procedure, m.stream.position())
		m.Status, m.HasStatus = o.Status, o.HasStatus
	}
	m.finish()
}

// Whose is the name of what an item belongs to: of its operation or, where it stands
// before all of them, of the procedure.
func (m *Message) Whose(i *Item) string {
	if i.Op < 0 {
		return m.Name
	}
	return m.Ops[i.Op].Name
}

// In are the values of an operation.
func (m *Message) In(op int) []Value { return m.Values[m.Ops[op].First:m.Ops[op].Last] }

// Find is the first value of that name of an operation, nil when there is none.
func (m *Message) Find(op int, name string) *Value {
	values := m.In(op)
	for i := range values {
		if values[i].Name == name {
			return &values[i]
		}
	}
	return nil
}

// StatusName names the status of an operation, in the words of its program.
func (m *Message) StatusName(op int) string {
	version := m.Version
	switch {
	case m.Program == ProgramMount:
		if name := mountStatus[m.Ops[op].Status]; m.Version == 3 && name != "" {
			return name
		}
		version = 2 // what fhandle of MOUNT 1 begins with is a UNIX error
	case IsCallback(m.Program):
		version = 4
	}
	return StatusName(version, m.Ops[op].Status)
}

func (m *Message) start(program, version, procedure uint32, s Stream) {
	ops, values, items, limit := m.Ops[:0], m.Values[:0], m.Items[:0], m.Limit
	*m = Message{} // by itself, so that it is not made elsewhere and copied
	m.Program, m.Version, m.Procedure, m.Name = program, version, procedure, ProcedureName(program, version, procedure)
	m.Ops, m.Values, m.Items, m.Limit, m.stream = ops, values, items, limit, s
	if m.Limit == 0 {
		m.Limit = maxValues
	}
}

// procedure finds the row of a procedure of its own.
func (m *Message) procedure() *operation {
	table := procedureTable(m.Program, m.Version)
	if int64(m.Procedure) < int64(len(table)) && !table[m.Procedure].unread {
		return &table[m.Procedure]
	}
	if !m.stopped(ErrUnknown) {
		m.stop("program %d version %d procedure %d: %w", m.Program, m.Version, m.Procedure, ErrUnknown)
	}
	return nil
}

// What stands before the operations of a COMPOUND.
var (
	compoundCall   = compiled("tag:t minorversion:u")
	callbackIdent  = compiled("callback_ident:u")
	compoundResult = compiled("tag:t")
)

// illegal is the operation that a server names in place of one that it does not
// know (RFC 7530 s.16.14, RFC 8881 s.18.52).
var illegal = operation{name: "ILLEGAL"}

func (m *Message) compound(callback bool) {
	s := &m.stream
	if m.reply {
		m.Status = s.word()
		m.HasStatus = !s.failed
		m.walk(&compoundResult)
	} else if m.walk(&compoundCall); !s.failed {
		m.MinorVersion = be.Uint32(s.behind(4))
		if callback {
			m.walk(&callbackIdent)
		}
	}
	m.Count = s.word()
	m.Named = m.Count == 0 && !s.failed
	for i := uint32(0); i < m.Count && !s.failed; i++ {
		at := s.position()
		if n := len(m.Ops); m.reply && n > 0 && m.Ops[n-1].Status != 0 {
			if !m.stopped(ErrMalformed) {
				m.stop("operation %d of %d follows a failed one at offset %d: %w", i+1, m.Count, at, ErrMalformed)
			}
			return
		}
		if i == maxOps {
			if !m.stopped(ErrMalformed) {
				m.stop("operation %d of %d at offset %d is too many: %w", i+1, m.Count, at, ErrMalformed)
			}
			return
		}
		number := s.word()
		if s.failed {
			return
		}
		op := lookup(number, callback)
		name := operationName(op, number)
		if op == nil && number == opIllegal {
			op = &illegal
		}
		last := i+1 == m.Count && i < maxNames
		m.Named = last && s.next == len(s.holes) // whatever stands behind the name
		o := m.operation(op, name, number, at)
		m.Named = m.Named || last && !s.failed
		if op == nil && o.Status == 0 {
			if !m.stopped(ErrUnknown) {
				m.stop("operation %d at offset %d: %w", number, at, ErrUnknown)
			}
			return // nobody knows where it ends
		}
	}
}

// maxNames bounds how many operations AppendNames names.
const maxNames = 256

// AppendNames appends the names of the operations, of as many as the first 256.
func (m *Message) AppendNames(names []string) []string {
	for i := range m.Ops[:min(len(m.Ops), maxNames)] {
		names = append(names, m.Ops[i].Name)
	}
	return names
}

// walk passes what a description describes.
func (m *Message) walk(c *content) {
	if m.Limit < 0 {
		m.stream.over(c.steps, m)
	} else {
		m.stream.walk(c.items, m)
	}
}

// results walks a status and what follows it. Of an operation that is not known
// nothing can follow, if it failed.
func (m *Message) results(op *operation, o *Op) {
	s := &m.stream
	if op != nil && op.bare {
		m.walk(&op.carries().results)
		return
	}
	o.Status = s.word()
	o.HasStatus = !s.failed
	switch {
	case s.failed || op == nil:
	case o.Status == 0:
		m.walk(&op.carries().results)
	case op.on == 0 || op.on == o.Status:
		m.walk(&op.carries().failure)
	}
}

// stopped notes why a walk without values stopped; of others, stop says more.
func (m *Message) stopped(why error) bool {
	if m.Limit < 0 && m.Err == nil {
		m.Err = why
	}
	return m.Limit < 0
}

func (m *Message) stop(format string, args ...any) {
	if m.Err == nil {
		m.Err = fmt.Errorf("nfs: "+format, args...)
	}
}

// operation walks what is asked of an operation, or what it answers. op is nil for
// one that no table has.
func (m *Message) operation(op *operation, name string, number uint32, at int64) *Op {
	m.Ops = append(m.Ops, Op{}) // and filled in there: it is not small
	o := &m.Ops[len(m.Ops)-1]
	o.Name, o.Number, o.First, o.At = name, number, len(m.Values), at
	m.depth = 0
	switch {
	case m.reply:
		m.results(op, o)
	case op != nil:
		c := op.carries()
		if o.ReducibleResult = c.reducible; c.unbounded {
			o.MaxResult = Unbounded
		}
		m.walk(&c.args)
	}
	o.Last, o.End = len(m.Values), m.stream.position()
	return o
}

// finish says how it ended.
func (m *Message) finish() {
	m.depth = 0
	if m.Left = m.stream.left(); m.stream.failed {
		m.failed(m.stream.left())
	}
	m.Complete = m.Err == nil
}

// failed makes an error of where the stream stopped, unless there is one that
// came before.
func (m *Message) failed(left int64) {
	s := &m.stream
	if m.Err != nil {
		return
	}
	why := ErrTruncated
	if s.reason == malformed {
		why = ErrMalformed
	}
	if m.stopped(why) {
		return
	}
	name, field := m.Name, ""
	if n := len(m.Ops); n > 0 {
		name = m.Ops[n-1].Name
	}
	if s.field != nil {
		field = " " + s.field.name
	}
	if s.reason == malformed {
		m.stop("%s%s is %d at offset %d, which has no meaning: %w", name, field, s.need, s.position(), why)
	} else {
		m.stop("%s%s needs %d bytes at offset %d, %d left: %w", name, field, s.need, s.position(), left, why)
	}
}

// What follows is how a walk makes values.

func (m *Message) add(v Value) int {
	if len(m.Values) >= m.Limit {
		m.Dropped++
		return -1
	}
	v.Depth = m.depth
	m.Values = append(m.Values, v)
	return len(m.Values) - 1
}

// open begins a group or list.
func (m *Message) open(it *item, kind Kind) int {
	i := m.add(Value{Name: it.name, Kind: kind, At: m.stream.position(), item: it})
	m.depth++
	return i
}

// close ends what open began; of a list, n is how many elements it had.
func (m *Message) close(i int, n int64) {
	if m.depth--; i >= 0 {
		m.Values[i].Len = m.stream.position() - m.Values[i].At
		m.Values[i].Uint = uint64(n)
	}
}

// element walks an element of a list.
func (m *Message) element(it *item, index int64) {
	i := len(m.Values)
	if m.stream.walk(it.inner, m); i < len(m.Values) && m.Values[i].Kind == Group {
		m.Values[i].Uint = uint64(index)
	}
}

// fixed makes a value of an item whose size is fixed.
func (m *Message) fixed(it *item, data []byte, at int64) {
	v := Value{Name: it.name, Kind: it.kind, At: at, Len: it.size, item: it}
	switch it.kind {
	case Time:
		if it.size == 12 {
			v.Uint, v.Nanoseconds = be.Uint64(data), be.Uint32(data[8:])
		} else {
			v.Uint, v.Nanoseconds = uint64(be.Uint32(data)), be.Uint32(data[4:])*it.fraction
		}
	case Stateid:
		v.Uint, v.Bytes = uint64(be.Uint32(data)), data
	case Session, Opaque, Handle:
		v.Uint, v.Bytes = uint64(len(data)), data
	default:
		v.Uint = number(data)
		if it.kind == Enum {
			v.Text = it.names.of(uint32(v.Uint))
		}
	}
	if it.bound {
		m.bounds(v.Uint)
	}
	m.add(v)
}

// bounds notes how much the Reply to an operation may carry.
func (m *Message) bounds(n uint64) {
	if !m.reply {
		m.Ops[len(m.Ops)-1].MaxResult = int64(min(n, 1<<62))
	}
}

// variable makes a value of a counted array of bytes.
func (m *Message) variable(it *item, n int64, hole int, at int64) {
	var data []byte
	if n > 0 && hole < 0 {
		data = m.stream.behind((n + 3) &^ 3)[:n:n]
	}
	i := m.add(Value{Name: it.name, Kind: it.kind, Uint: uint64(n), Bytes: data, At: at, Len: m.stream.position() - at, item: it})
	m.item(it, n, hole, at, i)
}

// travels says that a chunk may carry it.
func (it *item) travels() bool { return it.eligible || it.readPlus }

// item notes a counted array of bytes that may be or was taken out; its value is that
// of an index, or -1.
func (m *Message) item(it *item, n int64, hole int, at int64, value int) {
	if !it.travels() && hole < 0 {
		return
	}
	if len(m.Items) == maxItems {
		m.Dropped++
		return
	}
	m.Items = append(m.Items, Item{
		Op: len(m.Ops) - 1, Value: value, Name: it.name, Eligible: it.eligible, ReadPlus: it.readPlus, Reduced: hole >= 0, Hole: hole,
		Position: at + 4, Length: n,
	})
}

// attributes walks a fattr4. What is behind an attribute that is not known, or
// does not fit its place, is passed over as "unread_attributes".
func (m *Message) attributes(it *item) {
	s := &m.stream
	g := m.open(it, Group)
	defer m.close(g, 0)
	words := s.count(4)
	s.skip(words * 4)
	if s.failed {
		return
	}
	mask := s.behind(words * 4)
	if g >= 0 {
		m.Values[g].Bytes = mask
	}
	at := s.position()
	n, hole := s.opaque(false)
	switch {
	case s.failed:
		return
	case hole >= 0:
		m.variable(&unreadAttributes, n, hole, at)
		return
	}
	// Walk inside of the opaque: nothing there reaches beyond its end.
	outer, end, sealed := s.data, s.at, s.sealed
	s.at -= int(n+3) &^ 3
	s.data, s.sealed = s.data[:s.at+int(n):s.at+int(n)], true
	start := s.position()
	known := true
	table := attributes()
	for number := range setBits(mask) {
		if known = int64(number) < int64(len(table)) && table[number] != nil; !known {
			break
		}
		start = s.position()
		if s.walk(table[number], m); s.failed {
			m.failed(s.left())
			break
		}
		start = s.position()
	}
	rest := s.data[s.at:]
	if s.failed {
		rest = s.data[start-s.moved:]
	} else if known && len(rest) > 0 {
		m.stop("%s of %s has %d bytes behind its last attribute at offset %d: %w", it.name, m.Ops[len(m.Ops)-1].Name, len(rest), start, ErrMalformed)
	}
	s.data, s.at, s.sealed, s.failed, s.field = outer, end, sealed, false, nil
	if len(rest) > 0 {
		m.add(Value{Name: unreadAttributes.name, Kind: Opaque, Uint: uint64(len(rest)), Bytes: rest, At: start, Len: int64(len(rest)), item: &unreadAttributes})
	}
}

var unreadAttributes = item{name: "unread_attributes", shape: variable, kind: Opaque}
