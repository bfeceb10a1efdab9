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

// An encoder appends the JSON of the value at p, which has the type of the encoder. It is
// built once for each type, from the tags and offsets of the type's fields, and then neither
// allocates nor uses reflection. encoding/json allocates for every Opt, time and hex number
// and uses reflection for every field, which would take most of the time of printing a record.
type encoder func(b []byte, p unsafe.Pointer) []byte

// jsonAppender is a value that appends its own JSON.
type jsonAppender interface {
	AppendJSON(b []byte) []byte
}

// encoders contains the encoders that were built, by type.
var encoders sync.Map // map[reflect.Type]encoder

// AppendJSON appends the record that r points to as one line of JSON. The record may be of
// any type except Packet. Strings are always valid UTF-8, and maps are in the order of their
// keys. An unknown value is null, or left out if the tag contains omitzero; a list is null only if its doc
// says when. AppendJSON panics
// if JSON cannot represent the type.
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

// plain contains the encoders of numbers, strings and booleans.
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

// common contains the encoders of the most frequent types of fields. They call the methods
// of the type directly instead of through an interface.
var common = map[reflect.Type]encoder{
	reflect.TypeFor[record.Time]():  textEncoder[record.Time],
	reflect.TypeFor[record.Hex24](): textEncoder[record.Hex24],
	reflect.TypeFor[record.Hex32](): textEncoder[record.Hex32],
	reflect.TypeFor[record.Hex64](): textEncoder[record.Hex64],
}

func textEncoder[T encoding.TextAppender](b []byte, p unsafe.Pointer) []byte {
	b, _ = (*(*T)(p)).AppendText(append(b, '"')) // it does not fail, and its text needs no escapes
	return append(b, '"')
}

func optEncoder(t, elem reflect.Type) encoder {
	inner := encoderOf(elem)
	value, known := record.OptOffsets(t)
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
		list := *(*[]struct{})(p) // the type of the elements is irrelevant for the start and length
		first := unsafe.Pointer(unsafe.SliceData(list))
		if first == nil {
			return append(b, "null"...)
		}
		return elements(b, first, len(list))
	}
}

// mapEncoder returns an encoder for maps of strings to integers. It allocates the sorted keys.
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
		key    string // including the comma before it, its quotes and the colon
		offset uintptr
		isZero func(unsafe.Pointer) bool // reports whether to leave the member out; nil if it never is
		encode encoder
	}
	var members []member
	for _, f := range record.FieldsOf(t) {
		of := t.Field(f.Index)
		m := member{"," + string(field.AppendJSON(nil, f.Name)) + ":", of.Offset, nil, encoderOf(of.Type)}
		if of.Type.Kind() == reflect.Slice && !f.Nullable() {
			list := m.encode
			m.encode = func(b []byte, p unsafe.Pointer) []byte {
				if unsafe.SliceData(*(*[]struct{})(p)) == nil {
					return append(b, "[]"...)
				}
				return list(b, p)
			}
		}
		switch {
		case f.OmitZero && f.Opt:
			_, known := record.OptOffsets(of.Type)
			m.isZero = func(p unsafe.Pointer) bool { return !*(*bool)(unsafe.Add(p, known)) }
		case f.OmitZero && of.Type.Kind() == reflect.String:
			m.isZero = func(p unsafe.Pointer) bool { return *(*string)(p) == "" }
		case f.OmitZero && of.Type.Kind() == reflect.Pointer:
			m.isZero = func(p unsafe.Pointer) bool { return *(*unsafe.Pointer)(p) == nil }
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

// appendText appends the text of a value as a string. Most texts need no escapes and are
// appended only once.
func appendText(b []byte, v encoding.TextAppender) []byte {
	at := len(b)
	b, err := v.AppendText(append(b, '"'))
	if err != nil {
		return append(b[:at], "null"...)
	}
	if text := b[at+1:]; field.PlainJSON(text) < len(text) {
		return field.AppendJSON(b[:at], slices.Clone(text))
	}
	return append(b, '"')
}

// appendFloat appends a number in the format of encoding/json. Infinity and NaN are null.
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
