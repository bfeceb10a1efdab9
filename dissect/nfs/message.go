package nfs

import (
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/field"
)

// Errors of this package wrap one of these. ErrTruncated means that a message needs
// more bytes than there are, ErrMalformed that the protocol does not allow the
// message, and ErrUnknown that no table of this package has the program, procedure
// or operation.
var (
	ErrTruncated = errors.New("truncated")
	ErrMalformed = errors.New("malformed")
	ErrUnknown   = errors.New("unknown")
)

// Kind is the type of a value. It determines which fields of a [Value] are set.
type Kind uint8

// The kinds of a [Value], and the fields that they set. An array of bytes that was
// transferred in a chunk has its count in Uint and no Bytes.
const (
	Uint       Kind = iota // Uint
	Hex                    // Uint, for example a verifier; shown in hex
	Octal                  // Uint
	Bool                   // Uint, 0 or 1
	Enum                   // Uint; Text, empty when the value has no name
	Flags                  // Uint; AppendText names the bits
	Opaque                 // Bytes; Uint is their number
	String                 // Bytes as they came, which may be anything; Uint is their number
	Handle                 // Bytes of a file handle; Uint is their number
	Data                   // Bytes of a file; Uint is their number
	Stateid                // Bytes: 16; Uint is the seqid in the first four
	Session                // Bytes: 16
	Bitmap                 // Bytes: 32-bit words of a bitmap of attributes, see Attributes
	Operations             // Bytes: words of a bitmap of NFSv4 operations
	Bits                   // Bytes: words of another bitmap
	Time                   // Uint: seconds (in NFSv4, convert them to int64); Nanoseconds
	Group                  // has as members the values that follow one level deeper. Uint is the index if it is an element of a List; Bytes is the bitmap if it holds attributes of NFSv4
	List                   // Uint is the number of elements, which follow one level deeper
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
	Name        string // from the tables, so it is safe to print
	Kind        Kind
	Depth       uint8  // how many groups and lists it is in
	Nanoseconds uint32 // Time only
	Uint        uint64
	Bytes       []byte // aliases the input, and is valid only as long as the input is
	Text        string // name of the value of an Enum, from the tables, so it is safe to print
	At, Len     int64  // offset and length in the unreduced stream, in bytes, with count word and padding

	item *item
}

// Time returns the time of a value of kind [Time], in UTC.
func (v *Value) Time() time.Time { return time.Unix(int64(v.Uint), int64(v.Nanoseconds)).UTC() }

// timeForm is RFC 3339 with all nine digits of the nanoseconds.
const timeForm = "2006-01-02T15:04:05.000000000Z07:00"

// AppendText appends the value as one line of text that is safe to print, without
// its name. A List appends its number of elements, and file data its length.
func (v *Value) AppendText(b []byte) []byte {
	switch v.Kind {
	case Uint, List:
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

// String returns the text that AppendText appends.
func (v *Value) String() string { return string(v.AppendText(nil)) }

// AppendJSON appends a value as JSON: numbers as numbers, names, handles, stateids
// and times as strings, bitmaps as lists of names, and file data as its length in
// bytes. It must not be called for a Group or List, whose JSON is made of the values
// that follow.
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

// Names returns the names of the bits of a Bitmap, Operations or Bits. A bit without
// a name is represented by its number.
func (v *Value) Names() []string { return strings.Fields(v.String()) }

// Key returns the key of values[i] in a JSON object of all values of its group. It
// is the name of the value, followed by "_2", "_3" and so on if earlier values of
// the group have the same name.
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

// setBits returns the numbers of the bits that are set in a bitmap4.
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

// Op is one operation of a COMPOUND, or the procedure if the message is not a
// COMPOUND.
type Op struct {
	Name   string // "OP_99" if the operation is unknown
	Number uint32

	Status    uint32 // in a Reply
	HasStatus bool

	// MaxResult is set in a Call. It is the maximum size, in bytes, of the file data,
	// directory entries or other variable part of the Reply, if the Call limits it
	// (count of READ, maxcount of READDIR). It is 0 if the results are always small,
	// and Unbounded if the Call does not limit them (READLINK, GETXATTR, SECINFO).
	MaxResult int64
	// ReducibleResult is set in a Call whose results have a DDP-eligible data item,
	// so that a Write chunk can be meant for it: READ, READLINK.
	ReducibleResult bool

	First, Last int   // its values are Values[First:Last] of the message
	At, End     int64 // its range of bytes in the unreduced stream, including number and status
}

// Unbounded is the MaxResult of an [Op] whose arguments do not limit its results.
const Unbounded = -1

// Item is an opaque or string that is DDP-eligible by the NFS binding (RFC 8267), or
// that was reduced.
type Item struct {
	Op       int    // index in Ops of the operation that contains it; -1 for the tag of a COMPOUND
	Value    int    // index in Values; -1 if the value was dropped
	Name     string // name of the value
	Eligible bool   // it is DDP-eligible
	ReadPlus bool   // it is data of READ_PLUS, which the binding does not mention
	Reduced  bool   // it was removed from the stream
	Hole     int    // index of the hole, -1 if it was not removed
	Position int64  // offset of its first data byte in the unreduced stream, after the count word
	Length   int64  // value of the count word: bytes, without padding
}

// Message is the decoded Call or Reply of an NFS program. The next Call or Reply that
// is decoded into the same Message reuses its slices.
type Message struct {
	Program, Version, Procedure uint32
	Name                        string // name of the procedure, "" if it has none
	MinorVersion                uint32 // in the Call of a COMPOUND

	Status    uint32 // in a Reply: status of the procedure, or of the whole COMPOUND
	HasStatus bool

	Count  uint32  // COMPOUND: the number of operations that it claims to have
	Named  bool    // COMPOUND: AppendNames returns the names of all operations, and no hole is expected after the last decoded byte
	Ops    []Op    // the operations of a COMPOUND, at most the first 4096, or one for the procedure
	Values []Value // the values of all Ops; values of the COMPOUND itself, such as its tag, come first
	Items  []Item  // at most the first 65536

	// Complete reports whether the message was decoded to its end. Otherwise Err says
	// what stopped decoding and at which offset, and the parts before it are set.
	Complete bool
	Err      error
	Left     int64 // bytes after the last decoded byte
	Dropped  int   // number of values beyond Limit and of items beyond the maximum

	// Limit is the maximum number of values; 0 stands for 262144, which the next
	// Call or Reply writes here. If Limit is negative, no values are stored, attributes
	// are skipped, and Err is ErrTruncated, ErrMalformed or ErrUnknown itself. Callers
	// that only need the operations and items of every message set it.
	Limit int
	// Wanted, if not nil, has true for the numbers of the operations whose values are stored. The
	// values of other operations of a COMPOUND are skipped, which takes less time. A CB_COMPOUND,
	// whose operations have numbers of their own, is stored whole.
	Wanted []bool

	skip   bool // the current operation is not wanted
	reply  bool
	depth  uint8
	stream Stream // a field, because a local variable whose address is taken would be allocated on the heap
}

const (
	maxValues = 1 << 18
	maxOps    = 1 << 12
	maxItems  = 1 << 16
)

// Call decodes the arguments of a procedure. All positions, including those of the
// holes, count from the start of s. If s is truncated, the part before the end is
// decoded.
func (m *Message) Call(program, version, procedure uint32, s Stream) {
	m.decode(program, version, procedure, s, false)
}

// Reply decodes the results of a procedure in the same way. The RPC layer must have
// accepted the Call.
func (m *Message) Reply(program, version, procedure uint32, s Stream) {
	m.decode(program, version, procedure, s, true)
}

func (m *Message) decode(program, version, procedure uint32, s Stream, reply bool) {
	m.start(program, version, procedure, s)
	m.reply = reply
	if IsCompound(program, version, procedure) {
		m.compound(IsCallback(program))
	} else if op := m.procedure(); op != nil {
		o := m.operation(op, op.name, procedure, m.stream.position())
		m.Status, m.HasStatus = o.Status, o.HasStatus // of a Call, there is none
	}
	m.finish()
}

// mostInline is the number of results of which Results finds out whether they are in the stream.
const mostInline = 4

// Results decodes the results of a procedure, of which Write chunks contain some, like Reply. The positions of the holes are
// negative. If the results do not fit, because a result is in the stream although a chunk was left for it, Results finds
// out which of the first results it is. Whole reports whether body is complete.
func (m *Message) Results(program, version, procedure uint32, body []byte, holes []Hole, whole bool) {
	s := NewStream(body, holes)
	m.Reply(program, version, procedure, s)
	if len(holes) == 0 || m.fits() || !whole && errors.Is(m.Err, ErrTruncated) {
		return
	}
	for try := uint(1); try <= 1<<mostInline; try++ {
		for i := range holes {
			holes[i].Position = -1
		}
		s.inline = try % (1 << mostInline) // at last as before
		if m.Reply(program, version, procedure, s); m.fits() {
			return
		}
	}
}

// fits reports whether the message was decoded to the end of its stream, and has an item for each hole that is not empty.
func (m *Message) fits() bool {
	left := m.stream.holes[m.stream.next:]
	return m.Complete && m.Left == 0 && !slices.ContainsFunc(left, func(h Hole) bool { return h.Length > 0 })
}

// Whose returns the name of the operation that contains an item, or of the procedure
// if the item comes before all operations.
func (m *Message) Whose(i *Item) string {
	if i.Op < 0 {
		return m.Name
	}
	return m.Ops[i.Op].Name
}

// In returns the values of operation op.
func (m *Message) In(op int) []Value { return m.Values[m.Ops[op].First:m.Ops[op].Last] }

// Find returns the first value with that name in operation op, or nil if there is
// none.
func (m *Message) Find(op int, name string) *Value {
	values := m.In(op)
	for i := range values {
		if values[i].Name == name {
			return &values[i]
		}
	}
	return nil
}

// StatusName returns the name of the status of operation op, as its program calls it.
func (m *Message) StatusName(op int) string {
	version := m.Version
	switch {
	case m.Program == ProgramMount:
		if name := mountStatus[m.Ops[op].Status]; m.Version == 3 && name != "" {
			return name
		}
		version = 2 // the results of MOUNT 1 begin with a UNIX error number
	case IsCallback(m.Program):
		version = 4
	}
	return StatusName(version, m.Ops[op].Status)
}

func (m *Message) start(program, version, procedure uint32, s Stream) {
	ops, values, items, limit, wanted := m.Ops[:0], m.Values[:0], m.Items[:0], m.Limit, m.Wanted
	*m = Message{} // a statement of its own, so that the compiler clears m in place
	m.Program, m.Version, m.Procedure, m.Name = program, version, procedure, ProcedureName(program, version, procedure)
	m.Ops, m.Values, m.Items, m.Limit, m.Wanted, m.stream = ops, values, items, limit, wanted, s
	if m.Limit == 0 {
		m.Limit = maxValues
	}
}

// procedure returns the row of a procedure that is not a COMPOUND. If there is no
// row for it, decoding stops.
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

// The items before the operations of a COMPOUND.
var (
	compoundCall   = compiled("tag:t minorversion:u")
	callbackIdent  = compiled("callback_ident:u")
	compoundResult = compiled("tag:t")
)

// illegal is the operation that a server returns in place of an operation that it
// does not know (RFC 7530 s.16.14, RFC 8881 s.18.52).
var illegal = operation{name: "ILLEGAL"}

func (m *Message) compound(callback bool) {
	s := &m.stream
	if m.reply {
		m.Status = s.word()
		m.HasStatus = !s.failed
		m.walk(&compoundResult)
	} else if m.walk(&compoundCall); !s.failed {
		m.MinorVersion = be.Uint32(s.preceding(4))
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
				m.stop("operation %d of %d at offset %d follows a failed operation: %w", i+1, m.Count, at, ErrMalformed)
			}
			return
		}
		if i == maxOps {
			if !m.stopped(ErrMalformed) {
				m.stop("operation %d of %d at offset %d is beyond the maximum: %w", i+1, m.Count, at, ErrMalformed)
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
		m.Named = last && s.next == len(s.holes) // even if decoding fails after the name
		m.skip = m.Wanted != nil && !callback && (int64(number) >= int64(len(m.Wanted)) || !m.Wanted[number])
		o := m.operation(op, name, number, at)
		m.Named = m.Named || last && !s.failed
		if op == nil && o.Status == 0 {
			if !m.stopped(ErrUnknown) {
				m.stop("operation %d at offset %d: %w", number, at, ErrUnknown)
			}
			return // the length of an unknown operation is unknown
		}
	}
}

// maxNames is the maximum number of names that AppendNames appends.
const maxNames = 256

// AppendNames appends the names of the operations, at most of the first 256.
func (m *Message) AppendNames(names []string) []string {
	for i := range m.Ops[:min(len(m.Ops), maxNames)] {
		names = append(names, m.Ops[i].Name)
	}
	return names
}

// walk decodes the items that c describes.
func (m *Message) walk(c *content) {
	if m.Limit < 0 || m.skip {
		m.stream.skipSteps(c.steps, m)
	} else {
		m.stream.walk(c.items, m)
	}
}

// results decodes a status and the results after it. Nothing can follow the status of
// an unknown operation that failed.
func (m *Message) results(op *operation, o *Op) {
	s := &m.stream
	if op != nil && op.bare {
		m.walk(&op.compiled().results)
		return
	}
	o.Status = s.word()
	o.HasStatus = !s.failed
	switch {
	case s.failed || op == nil:
	case o.Status == 0:
		m.walk(&op.compiled().results)
	case op.on == 0 || op.on == o.Status:
		m.walk(&op.compiled().failure)
	}
}

// stopped stores why decoding without values stopped, and reports whether there are
// no values. With values, the caller stores a longer error by stop.
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

// operation decodes the arguments or results of an operation. op is nil if no table
// has the operation.
func (m *Message) operation(op *operation, name string, number uint32, at int64) *Op {
	m.Ops = append(m.Ops, Op{}) // filled in place, because copying an Op is expensive
	o := &m.Ops[len(m.Ops)-1]
	o.Name, o.Number, o.First, o.At = name, number, len(m.Values), at
	m.depth = 0
	switch {
	case m.reply:
		m.results(op, o)
	case op != nil:
		c := op.compiled()
		if o.ReducibleResult = c.reducible; c.unbounded {
			o.MaxResult = Unbounded
		}
		m.walk(&c.args)
	}
	o.Last, o.End = len(m.Values), m.stream.position()
	return o
}

// finish sets Left, Complete and, if the stream failed, Err.
func (m *Message) finish() {
	m.depth = 0
	if m.Left = m.stream.left(); m.stream.failed {
		m.failed(m.stream.left())
	}
	m.Complete = m.Err == nil
}

// Lacks returns the offset in the unreduced stream at which decoding stopped. If that is because too few bytes are left, lacks is true,
// and to is the end, without XDR padding, of those that are needed from there.
func (m *Message) Lacks() (from, to int64, lacks bool) {
	s := &m.stream
	from = s.position()
	return from, from + s.need - s.pad, s.failed && s.reason == truncated
}

// failed sets Err to the failure of the stream, unless Err is already set.
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
		m.stop("%s%s is %d at offset %d, which the protocol does not define: %w", name, field, s.need, s.position(), why)
	} else {
		m.stop("%s%s needs %d bytes at offset %d, %d left: %w", name, field, s.need, s.position(), left, why)
	}
}

// The methods below add values.

func (m *Message) add(v Value) int {
	if len(m.Values) >= m.Limit {
		m.Dropped++
		return -1
	}
	v.Depth = m.depth
	m.Values = append(m.Values, v)
	return len(m.Values) - 1
}

// open adds a group or list, and makes the following values its members. It returns
// the index of the value, or -1.
func (m *Message) open(it *item, kind Kind) int {
	i := m.add(Value{Name: it.name, Kind: kind, At: m.stream.position(), item: it})
	m.depth++
	return i
}

// close ends the group or list that open added. n is the number of elements of a list.
func (m *Message) close(i int, n int64) {
	if m.depth--; i >= 0 {
		m.Values[i].Len = m.stream.position() - m.Values[i].At
		m.Values[i].Uint = uint64(n)
	}
}

// element decodes one element of a list.
func (m *Message) element(it *item, index int64) {
	i := len(m.Values)
	if m.stream.walk(it.inner, m); i < len(m.Values) && m.Values[i].Kind == Group {
		m.Values[i].Uint = uint64(index)
	}
}

// fixed adds the value of an item of fixed size.
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

// bounds stores the limit that a Call sets for the results of the current operation.
func (m *Message) bounds(n uint64) {
	if !m.reply {
		m.Ops[len(m.Ops)-1].MaxResult = int64(min(n, 1<<62))
	}
}

// variable adds the value of a counted array of bytes.
func (m *Message) variable(it *item, n int64, hole int, at int64) {
	var data []byte
	if n > 0 && hole < 0 {
		data = m.stream.preceding((n + 3) &^ 3)[:n:n]
	}
	i := m.add(Value{Name: it.name, Kind: it.kind, Uint: uint64(n), Bytes: data, At: at, Len: m.stream.position() - at, item: it})
	m.item(it, n, hole, at, i)
}

// mayBeReduced reports whether a chunk may carry the item.
func (it *item) mayBeReduced() bool { return it.eligible || it.readPlus }

// item adds a counted array of bytes that may be or was reduced. value is its index in
// Values, or -1.
func (m *Message) item(it *item, n int64, hole int, at int64, value int) {
	if !it.mayBeReduced() && hole < 0 {
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

// attributes decodes a fattr4. The bytes from an unknown or malformed attribute on are
// stored as one value, "unread_attributes".
func (m *Message) attributes(it *item) {
	s := &m.stream
	g := m.open(it, Group)
	defer m.close(g, 0)
	words := s.count(4)
	s.skip(words * 4)
	if s.failed {
		return
	}
	mask := s.preceding(words * 4)
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
	// Decode inside of the opaque: no attribute reaches beyond its end.
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
		m.stop("%s of %s has %d bytes after its last attribute at offset %d: %w", it.name, m.Ops[len(m.Ops)-1].Name, len(rest), start, ErrMalformed)
	}
	s.data, s.at, s.sealed, s.failed, s.field = outer, end, sealed, false, nil
	if len(rest) > 0 {
		m.add(Value{Name: unreadAttributes.name, Kind: Opaque, Uint: uint64(len(rest)), Bytes: rest, At: start, Len: int64(len(rest)), item: &unreadAttributes})
	}
}

var unreadAttributes = item{name: "unread_attributes", shape: variable, kind: Opaque}
