package render

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// An encoder appends the JSON of the value of one type that stands at p. It is
// made once for the type, from the tags of its fields and where they stand, and
// then allocates nothing and asks for no types: encoding/json wants bytes of its
// own for every Opt, time and hex number, and reflection for every field, and
// would be most of the work of showing a record.
type encoder func(b []byte, p unsafe.Pointer) []byte

// jsonAppender is a value that is JSON already.
type jsonAppender interface {
	AppendJSON(b []byte) []byte
}

// encoders has those that were made, by type.
var encoders sync.Map // of reflect.Type to encoder

// AppendJSON appends the record of any type but Packet that r points to, as one
// line of JSON. Strings are always valid UTF-8, maps are in the order of their
// keys, what is unknown is null or, where the tag says so, left out. A type that
// JSON cannot have is a mistake of the program, and panics.
func AppendJSON(b []byte, r any) []byte {
	v := reflect.ValueOf(r)
	b = encoderOf(v.Type().Elem())(b, v.UnsafePointer())
	runtime.KeepAlive(r)
	return append(b, '\n')
}

func encoderOf(t reflect.Type) encoder {
	if known, ok := encoders.Load(t); ok {
		return known.(encoder)
	}
	e := newEncoder(t)
	encoders.Store(t, e)
	return e
}

func newEncoder(t reflect.Type) encoder {
	if elem, ok := record.OptOf(t); ok {
		return optEncoder(t, elem)
	}
	if e := common[t]; e != nil {
		return e
	}
	pointer := reflect.PointerTo(t)
	switch {
	case pointer.Implements(reflect.TypeFor[jsonAppender]()):
		return func(b []byte, p unsafe.Pointer) []byte {
			return reflect.NewAt(t, p).Interface().(jsonAppender).AppendJSON(b)
		}
	case pointer.Implements(reflect.TypeFor[encoding.TextAppender]()):
		return func(b []byte, p unsafe.Pointer) []byte {
			return appendText(b, reflect.NewAt(t, p).Interface().(encoding.TextAppender))
		}
	case pointer.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		panic(fmt.Sprintf("render: %v has MarshalText and no AppendText", t))
	}
	if e := plain[t.Kind()]; e != nil {
		return e
	}
	switch t.Kind() {
	case reflect.Pointer:
		return pointerEncoder(t)
	case reflect.Slice, reflect.Array:
		return listEncoder(t)
	case reflect.Map:
		return mapEncoder(t)
	case reflect.Struct:
		return structEncoder(t)
	}
	panic(fmt.Sprintf("render: there is no JSON for a %v", t))
}

// plain has the kinds that are a number, text or bool.
var plain = map[reflect.Kind]encoder{
	reflect.Bool: func(b []byte, p unsafe.Pointer) []byte { return strconv.AppendBool(b, *(*bool)(p)) },
	reflect.Int:  intEncoder[int], reflect.Int8: intEncoder[int8], reflect.Int16: intEncoder[int16],
	reflect.Int32: intEncoder[int32], reflect.Int64: intEncoder[int64],
	reflect.Uint: uintEncoder[uint], reflect.Uint8: uintEncoder[uint8], reflect.Uint16: uintEncoder[uint16],
	reflect.Uint32: uintEncoder[uint32], reflect.Uint64: uintEncoder[uint64],
	reflect.Float32: func(b []byte, p unsafe.Pointer) []byte { return appendFloat(b, float64(*(*float32)(p))) },
	reflect.Float64: func(b []byte, p unsafe.Pointer) []byte { return appendFloat(b, *(*float64)(p)) },
	reflect.String:  func(b []byte, p unsafe.Pointer) []byte { return field.AppendJSON(b, *(*string)(p)) },
}

func intEncoder[T int | int8 | int16 | int32 | int64](b []byte, p unsafe.Pointer) []byte {
	return strconv.AppendInt(b, int64(*(*T)(p)), 10)
}

func uintEncoder[T uint | uint8 | uint16 | uint32 | uint64](b []byte, p unsafe.Pointer) []byte {
	return strconv.AppendUint(b, uint64(*(*T)(p)), 10)
}

// common has the types of which records have many, each known by name instead of
// by what it implements.
var common = map[reflect.Type]encoder{
	reflect.TypeFor[record.Time]():  textEncoder[record.Time],
	reflect.TypeFor[record.Hex24](): textEncoder[record.Hex24],
	reflect.TypeFor[record.Hex32](): textEncoder[record.Hex32],
	reflect.TypeFor[record.Hex64](): textEncoder[record.Hex64],
}

func textEncoder[T encoding.TextAppender](b []byte, p unsafe.Pointer) []byte {
	b, _ = (*(*T)(p)).AppendText(append(b, '"')) // which does not fail, nor need escapes
	return append(b, '"')
}

// optOffsets are where an Opt has its value, and whether it is known.
func optOffsets(t reflect.Type) (value, known uintptr) {
	v, _ := t.FieldByName("value")
	k, _ := t.FieldByName("known")
	return v.Offset, k.Offset
}

func optEncoder(t, elem reflect.Type) encoder {
	inner := encoderOf(elem)
	value, known := optOffsets(t)
	return func(b []byte, p unsafe.Pointer) []byte {
		if !*(*bool)(unsafe.Add(p, known)) {
			return append(b, "null"...)
		}
		return inner(b, unsafe.Add(p, value))
	}
}

func pointerEncoder(t reflect.Type) encoder {
	inner := encoderOf(t.Elem())
	return func(b []byte, p unsafe.Pointer) []byte {
		to := *(*unsafe.Pointer)(p)
		if to == nil {
			return append(b, "null"...)
		}
		return inner(b, to)
	}
}

func listEncoder(t reflect.Type) encoder {
	inner, size := encoderOf(t.Elem()), t.Elem().Size()
	elements := func(b []byte, first unsafe.Pointer, n int) []byte {
		b = append(b, '[')
		for i := range n {
			if i > 0 {
				b = append(b, ',')
			}
			b = inner(b, unsafe.Add(first, uintptr(i)*size))
		}
		return append(b, ']')
	}
	if t.Kind() == reflect.Array {
		n := t.Len()
		return func(b []byte, p unsafe.Pointer) []byte { return elements(b, p, n) }
	}
	return func(b []byte, p unsafe.Pointer) []byte {
		list := *(*[]struct{})(p) // of whatever: only its start and length are looked at
		first := unsafe.Pointer(unsafe.SliceData(list))
		if first == nil {
			return append(b, "null"...)
		}
		return elements(b, first, len(list))
	}
}

// mapEncoder is for maps of words to integers; what it sorts by, it allocates.
func mapEncoder(t reflect.Type) encoder {
	if t.Key().Kind() != reflect.String || t.Elem().Kind() < reflect.Int || t.Elem().Kind() > reflect.Int64 {
		panic(fmt.Sprintf("render: there is no JSON for a %v", t))
	}
	return func(b []byte, p unsafe.Pointer) []byte {
		v := reflect.NewAt(t, p).Elem()
		if v.IsNil() {
			return append(b, "null"...)
		}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		b = append(b, '{')
		for i, key := range keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(field.AppendJSON(b, key.String()), ':')
			b = strconv.AppendInt(b, v.MapIndex(key).Int(), 10)
		}
		return append(b, '}')
	}
}

func structEncoder(t reflect.Type) encoder {
	type member struct {
		key    string // with a comma before it, its quotes and colon
		offset uintptr
		isZero func(unsafe.Pointer) bool // when to leave it out, nil for never
		encode encoder
	}
	var members []member
	for _, f := range record.FieldsOf(t) {
		of := t.Field(f.Index)
		m := member{"," + string(field.AppendJSON(nil, f.Name)) + ":", of.Offset, nil, encoderOf(of.Type)}
		switch {
		case f.OmitZero && f.Opt:
			_, known := optOffsets(of.Type)
			m.isZero = func(p unsafe.Pointer) bool { return !*(*bool)(unsafe.Add(p, known)) }
		case f.OmitZero && of.Type.Kind() == reflect.String:
			m.isZero = func(p unsafe.Pointer) bool { return *(*string)(p) == "" }
		case f.OmitZero:
			m.isZero = func(p unsafe.Pointer) bool { return reflect.NewAt(of.Type, p).Elem().IsZero() }
		}
		members = append(members, m)
	}
	return func(b []byte, p unsafe.Pointer) []byte {
		start := len(b)
		for i := range members {
			m := &members[i]
			if at := unsafe.Add(p, m.offset); m.isZero == nil || !m.isZero(at) {
				b = m.encode(append(b, m.key...), at)
			}
		}
		if len(b) == start {
			return append(b, "{}"...)
		}
		b[start] = '{' // in place of the first comma
		return append(b, '}')
	}
}

// appendText appends what a value says of itself, as a string. Most of it needs
// no escapes, and is then appended where it stays.
func appendText(b []byte, v encoding.TextAppender) []byte {
	at := len(b)
	b, err := v.AppendText(append(b, '"'))
	if err != nil {
		return append(b[:at], "null"...)
	}
	for _, c := range b[at+1:] {
		if c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return field.AppendJSON(b[:at], slices.Clone(b[at+1:]))
		}
	}
	return append(b, '"')
}

// appendFloat appends a number as encoding/json does; what is none is null.
func appendFloat(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	format := byte('f')
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	b = strconv.AppendFloat(b, v, format, -1, 64)
	if n := len(b); format == 'e' && n >= 4 && b[n-4] == 'e' && b[n-2] == '0' { // 1e-09 is 1e-9
		b = append(b[:n-2], b[n-1])
	}
	return b
}
