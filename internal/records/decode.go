package records

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// A decoder decodes the value that begins at an offset of the line of r into p, which has the
// type of the decoder and its zero value. It returns the offset after the value, or -1 if
// rdmadump does not write the value like this: [Parse] then parses the line with encoding/json,
// which says what is wrong with the line, or accepts it. A decoder is built once for each type,
// from the same tags as the encoders of package render, and also checks the value. It neither
// uses reflection nor allocates for a field; encoding/json does both, and takes ten times as
// long.
type decoder func(r *reader, at int, p unsafe.Pointer) int

// reader is what decoders share while they decode a line.
type reader struct {
	line   []byte
	blocks []block // one for each list in the types of records

	// texts has short texts that were read lately: most texts of a record are those of the
	// record before it.
	texts [1 << 9]string
	// date is the day of the last time that was decoded, and midnight its beginning.
	date     [len(time.DateOnly)]byte
	midnight int64 // in seconds
}

// block is memory for the elements of lists of one type. Many lists share the memory that is
// allocated at once. What is used is never used again, so a record keeps its lists.
type block struct {
	list       reflect.Value
	start      unsafe.Pointer // of list
	used, size int            // number of elements
}

// blockBytes is the size of a block, unless the elements of one list need more.
const blockBytes = 4 << 10

// readers has readers that no line needs at the moment.
var readers = sync.Pool{New: func() any { return new(reader) }}

// decoders contains the decoders of records that were built, by type.
var decoders sync.Map // map[reflect.Type]decoder

// decode decodes a line into a record that v points to. It returns false if the line is not as
// rdmadump writes it; the record is undefined then.
func decode(line []byte, v reflect.Value) bool {
	t := v.Type().Elem()
	known, ok := decoders.Load(t)
	if !ok {
		known, _ = decoders.LoadOrStore(t, newDecoder(t, true, nil))
	}
	r := readers.Get().(*reader)
	r.line = line
	end := known.(decoder)(r, 0, v.UnsafePointer())
	r.line = nil
	readers.Put(r)
	return end == len(line)
}

// newDecoder builds the decoder of a type. Texts are checked like [check] does unless checked is
// false. values has the values of an enumeration that has others than its type.
func newDecoder(t reflect.Type, checked bool, values []string) decoder {
	if elem, is := record.OptOf(t); is {
		return optDecoder(t, newDecoder(elem, checked, values))
	}
	if d := plain[t]; d != nil {
		return d
	}
	pointer := reflect.PointerTo(t)
	if pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return otherDecoder(t, checked)
	}
	if d := numbers[t.Kind()]; d != nil {
		return d
	}
	switch t.Kind() {
	case reflect.String:
		if values == nil {
			values = record.ValuesOf(t)
		}
		if values != nil {
			return enumDecoder(values)
		}
		return textDecoder(checked)
	case reflect.Pointer:
		return pointerDecoder(t.Elem(), newDecoder(t.Elem(), checked, nil))
	case reflect.Slice:
		return listDecoder(t, newDecoder(t.Elem(), checked, nil))
	case reflect.Struct:
		return structDecoder(t, checked)
	}
	return otherDecoder(t, checked)
}

// plain contains the decoders of types that are text in JSON.
var plain = map[reflect.Type]decoder{
	reflect.TypeFor[record.Time]():  timeDecoder,
	reflect.TypeFor[record.Hex8]():  hexDecoder[record.Hex8](2),
	reflect.TypeFor[record.Hex24](): hexDecoder[record.Hex24](6),
	reflect.TypeFor[record.Hex32](): hexDecoder[record.Hex32](8),
	reflect.TypeFor[record.Hex64](): hexDecoder[record.Hex64](16),
}

// numbers contains the decoders of integers and booleans.
var numbers = map[reflect.Kind]decoder{
	reflect.Bool: boolDecoder,
	reflect.Int:  intDecoder[int], reflect.Int8: intDecoder[int8], reflect.Int16: intDecoder[int16],
	reflect.Int32: intDecoder[int32], reflect.Int64: intDecoder[int64],
	reflect.Uint: intDecoder[uint], reflect.Uint8: intDecoder[uint8], reflect.Uint16: intDecoder[uint16],
	reflect.Uint32: intDecoder[uint32], reflect.Uint64: intDecoder[uint64],
}

// literal returns the offset after a literal, or -1 if the line has something else at an offset.
func (r *reader) literal(at int, text string) int {
	if end := at + len(text); end <= len(r.line) && string(r.line[at:end]) == text {
		return end
	}
	return -1
}

func boolDecoder(r *reader, at int, p unsafe.Pointer) int {
	if end := r.literal(at, "true"); end > 0 {
		*(*bool)(p) = true
		return end
	}
	return r.literal(at, "false")
}

// intDecoder decodes a number of at most 18 digits. Larger ones are rare.
func intDecoder[T int | int8 | int16 | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64](r *reader, at int, p unsafe.Pointer) int {
	b := r.line
	negative := at < len(b) && b[at] == '-'
	if negative {
		at++
	}
	v, first := int64(0), at
	for ; at < len(b) && b[at]-'0' <= 9; at++ {
		v = v*10 + int64(b[at]-'0')
	}
	if n := at - first; n == 0 || n > 18 || n > 1 && b[first] == '0' {
		return -1
	}
	if negative {
		v = -v
	}
	to := T(v)
	if int64(to) != v || negative && to > 0 {
		return -1
	}
	*(*T)(p) = to
	return at
}

// hexDecoder returns a decoder for a number that has 0x and a number of digits in JSON.
func hexDecoder[T record.Hex8 | record.Hex24 | record.Hex32 | record.Hex64](digits int) decoder {
	return func(r *reader, at int, p unsafe.Pointer) int {
		b := r.line
		if at = r.literal(at, `"0x`); at < 0 || at+digits >= len(b) || b[at+digits] != '"' {
			return -1
		}
		v := T(0)
		for _, c := range b[at : at+digits] {
			switch {
			case c-'0' <= 9:
				v = v<<4 | T(c-'0')
			case c-'a' < 6:
				v = v<<4 | T(c-'a'+10)
			default:
				return -1
			}
		}
		*(*T)(p) = v
		return at + digits + 1
	}
}

// timeDecoder decodes the text of a [record.Time]. Most times are on the same day.
func timeDecoder(r *reader, at int, p unsafe.Pointer) int {
	const form = `"2006-01-02T15:04:05.000000000Z"`
	if at+len(form) > len(r.line) {
		return -1
	}
	b := r.line[at : at+len(form)]
	if b[0] != '"' || b[11] != 'T' || b[14] != ':' || b[17] != ':' || b[20] != '.' || b[30] != 'Z' || b[31] != '"' {
		return -1
	}
	hour, minute, second, ns := digits(b[12:14]), digits(b[15:17]), digits(b[18:20]), digits(b[21:30])
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 || ns < 0 {
		return -1
	}
	if !bytes.Equal(r.date[:], b[1:11]) {
		day, err := time.Parse(time.DateOnly, string(b[1:11]))
		if year := day.Year(); err != nil || year < 1678 || year > 2261 { // others have no number of nanoseconds
			return -1
		}
		copy(r.date[:], b[1:11])
		r.midnight = day.Unix()
	}
	*(*record.Time)(p) = record.Time((r.midnight+int64(hour*3600+minute*60+second))*1e9 + int64(ns))
	return at + len(form)
}

// digits returns the number that digits stand for, or -1 if there is another character.
func digits(b []byte) (v int) {
	for _, c := range b {
		if c-'0' > 9 {
			return -1
		}
		v = v*10 + int(c-'0')
	}
	return v
}

// quotes returns the text between the quotes of a string without escapes, of visible ASCII
// characters, and the offset after the string. The offset is -1 if this is no such string.
func (r *reader) quotes(at int) (text []byte, end int) {
	b := r.line
	if at >= len(b) || b[at] != '"' {
		return nil, -1
	}
	at++
	for i, c := range b[at:] {
		if c == '"' {
			return b[at : at+i], at + i + 1
		}
		if c == '\\' || c < 0x20 || c >= 0x7f {
			break
		}
	}
	return nil, -1
}

// enumDecoder returns a decoder for an enumeration. It does not allocate, because it has all values.
func enumDecoder(values []string) decoder {
	return func(r *reader, at int, p unsafe.Pointer) int {
		text, end := r.quotes(at)
		for i := range values {
			if values[i] == string(text) {
				*(*string)(p) = values[i]
				return end
			}
		}
		return -1
	}
}

// textDecoder returns a decoder for any other string.
func textDecoder(checked bool) decoder {
	other := otherDecoder(reflect.TypeFor[string](), checked)
	return func(r *reader, at int, p unsafe.Pointer) int {
		text, end := r.quotes(at)
		if end < 0 {
			return other(r, at, p)
		}
		*(*string)(p) = r.intern(text)
		return end
	}
}

// intern returns a text as a string, which is not allocated if the text was read lately.
func (r *reader) intern(text []byte) string {
	if len(text) > 64 {
		return string(text)
	}
	hash := uint32(len(text))
	for _, c := range text {
		hash = hash*31 + uint32(c)
	}
	known := &r.texts[(hash^hash>>16)%uint32(len(r.texts))]
	if *known != string(text) {
		*known = string(text)
	}
	return *known
}

func optDecoder(t reflect.Type, inner decoder) decoder {
	value, known := record.OptOffsets(t)
	return func(r *reader, at int, p unsafe.Pointer) int {
		if end := r.literal(at, "null"); end > 0 {
			return end
		}
		*(*bool)(unsafe.Add(p, known)) = true
		return inner(r, at, unsafe.Add(p, value))
	}
}

func pointerDecoder(elem reflect.Type, inner decoder) decoder {
	return func(r *reader, at int, p unsafe.Pointer) int {
		if end := r.literal(at, "null"); end > 0 {
			return end
		}
		to := reflect.New(elem).UnsafePointer()
		*(*unsafe.Pointer)(p) = to
		return inner(r, at, to)
	}
}

// lists is the number of list decoders that were built.
var lists atomic.Int64

func listDecoder(t reflect.Type, inner decoder) decoder {
	number, size := int(lists.Add(1)-1), t.Elem().Size()
	empty := reflect.MakeSlice(t, 0, 0).UnsafePointer()
	return func(r *reader, at int, p unsafe.Pointer) int {
		if end := r.literal(at, "null"); end > 0 {
			return end
		}
		if end := r.literal(at, "[]"); end > 0 {
			*(*[]struct{})(p) = unsafe.Slice((*struct{})(empty), 0) // the type of the elements is irrelevant for the start and length
			return end
		}
		if r.literal(at, "[") < 0 {
			return -1
		}
		if number >= len(r.blocks) {
			r.blocks = append(r.blocks, make([]block, number+1-len(r.blocks))...)
		}
		first := r.blocks[number].used
		for next := byte(','); next == ','; next = r.line[at] {
			m := &r.blocks[number]
			if m.used == m.size {
				first = m.grow(t, first)
			}
			m.used++
			if at = inner(r, at+1, unsafe.Add(m.start, uintptr(m.used-1)*size)); at < 0 || at >= len(r.line) {
				return -1
			}
		}
		if r.line[at] != ']' {
			return -1
		}
		m := &r.blocks[number]
		*(*[]struct{})(p) = unsafe.Slice((*struct{})(unsafe.Add(m.start, uintptr(first)*size)), m.used-first)
		return at + 1
	}
}

// grow allocates memory for more elements of a list that begins at an index. It returns the
// index at which the list begins now.
func (m *block) grow(t reflect.Type, first int) int {
	n := m.used - first
	size := max(2*n, blockBytes/int(t.Elem().Size()), 4)
	list := reflect.MakeSlice(t, size, size)
	if n > 0 {
		reflect.Copy(list, m.list.Slice(first, m.used))
	}
	*m = block{list, list.UnsafePointer(), n, size}
	return 0
}

func structDecoder(t reflect.Type, checked bool) decoder {
	type member struct {
		key    string // including its quotes and the colon
		offset uintptr
		decode decoder
	}
	var members []member
	var names []string
	for _, f := range record.FieldsOf(t) {
		of := t.Field(f.Index)
		inside := checked && (f.Values != nil || !slices.Contains(quoted, f.Name))
		members = append(members, member{`"` + f.Name + `":`, of.Offset, newDecoder(of.Type, inside, f.Values)})
		names = append(names, f.Name)
	}
	return func(r *reader, at int, p unsafe.Pointer) int {
		if end := r.literal(at, "{}"); end > 0 {
			return end
		}
		if r.literal(at, "{") < 0 {
			return -1
		}
		next := 0 // members are in their order, and some may be absent
		for after := byte(','); after == ','; after = r.line[at] {
			at++
			i, b := next, r.line[at:]
			for i < len(members) && (len(b) < len(members[i].key) || string(b[:len(members[i].key)]) != members[i].key) {
				i++
			}
			if i < len(members) {
				m := &members[i]
				next, at = i+1, m.decode(r, at+len(m.key), unsafe.Add(p, m.offset))
			} else {
				at = r.unknown(at, names)
			}
			if at < 0 || at >= len(r.line) {
				return -1
			}
		}
		if r.line[at] != '}' {
			return -1
		}
		return at + 1
	}
}

// unknown returns the offset after a member that has none of the names. It returns -1 if
// encoding/json could take its name for one of them, which it compares without regard to case.
func (r *reader) unknown(at int, names []string) int {
	name, end := r.quotes(at)
	for _, c := range name {
		if c-'a' >= 26 && c-'0' > 9 && c != '_' {
			return -1
		}
	}
	if end < 0 || slices.Contains(names, string(name)) {
		return -1
	}
	if at = r.literal(end, ":"); at < 0 {
		return -1
	}
	end = r.skip(at)
	if end < 0 || !json.Valid(r.line[at:end]) {
		return -1
	}
	return end
}

// maxDepth limits how many objects and lists contain each other in a value that no decoder knows.
const maxDepth = 100

// skip returns the offset after a value, or -1 if the value does not end or is too deep. It does not find out
// whether the value is valid.
func (r *reader) skip(at int) int {
	depth, inText := 0, false
	for ; at < len(r.line); at++ {
		c := r.line[at]
		switch {
		case inText && c == '\\':
			at++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return -1
			}
		case (c == ',' || c == '}' || c == ']') && depth == 0:
			return at
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

// otherDecoder returns a decoder for values that are rare: encoding/json decodes them.
func otherDecoder(t reflect.Type, checked bool) decoder {
	verify := checkerOf(t)
	return func(r *reader, at int, p unsafe.Pointer) int {
		end := r.skip(at)
		if end < 0 || r.line[at] <= ' ' { // after spaces there may be a null, which makes an Opt unknown
			return -1
		}
		v := reflect.NewAt(t, p)
		if json.Unmarshal(r.line[at:end], v.Interface()) != nil || checked && verify != nil && verify(v.Elem()) != nil {
			return -1
		}
		return end
	}
}
