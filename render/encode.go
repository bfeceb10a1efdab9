package render

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// An encoder appends the JSON of a value of one type. It is made once for the
// type, from the tags of its fields, and then allocates nothing: encoding/json
// asks every Opt, time and hex number for bytes of its own, and would be most of
// the work of showing a record. A value that is no plain number, text or bool has
// an address.
type encoder func(b []byte, v reflect.Value) []byte

// jsonAppender is a value that is JSON already.
type jsonAppender interface {
	AppendJSON(b []byte) []byte
}

// encoders has those that were made, by type.
var encoders sync.Map // of reflect.Type to encoder

// AppendJSON appends a record of any type but Packet, which it is given a pointer
// to, as one line of JSON. Strings are always valid UTF-8, maps are in the order
// of their keys, what is unknown is null or, where the tag says so, left out. A
// type that JSON cannot have is a mistake of the program, and panics.
func AppendJSON(b []byte, r any) []byte {
	v := reflect.ValueOf(r)
	return append(encoderOf(v.Type())(b, v), '\n')
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
	pointer := reflect.PointerTo(t)
	switch {
	case t.Implements(reflect.TypeFor[jsonAppender]()):
		return func(b []byte, v reflect.Value) []byte { return v.Interface().(jsonAppender).AppendJSON(b) }
	case pointer.Implements(reflect.TypeFor[encoding.TextAppender]()):
		return func(b []byte, v reflect.Value) []byte {
			return appendText(b, v.Addr().Interface().(encoding.TextAppender))
		}
	case pointer.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		panic(fmt.Sprintf("render: %v has MarshalText and no AppendText", t))
	}
	switch t.Kind() {
	case reflect.Bool:
		return func(b []byte, v reflect.Value) []byte { return strconv.AppendBool(b, v.Bool()) }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(b []byte, v reflect.Value) []byte { return strconv.AppendInt(b, v.Int(), 10) }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(b []byte, v reflect.Value) []byte { return strconv.AppendUint(b, v.Uint(), 10) }
	case reflect.Float32, reflect.Float64:
		return func(b []byte, v reflect.Value) []byte { return appendFloat(b, v.Float()) }
	case reflect.String:
		return func(b []byte, v reflect.Value) []byte { return appendString(b, v.String()) }
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

// plain says whether a value of a type is appended by its kind alone: such a one
// needs no address, and may stand in a field that is not exported.
func plain(t reflect.Type) bool {
	return (t.Kind() <= reflect.Float64 || t.Kind() == reflect.String) && !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// knownField is which of the two fields of an Opt says whether it is known.
func knownField(t reflect.Type) int {
	f, _ := t.FieldByName("known")
	return f.Index[0]
}

func optEncoder(t, elem reflect.Type) encoder {
	inner := encoderOf(elem)
	if plain(elem) { // most are, and need no pointer
		known := knownField(t)
		return func(b []byte, v reflect.Value) []byte {
			if !v.Field(known).Bool() {
				return append(b, "null"...)
			}
			return inner(b, v.Field(1-known))
		}
	}
	return func(b []byte, v reflect.Value) []byte {
		p := v.Addr().Interface().(interface{ Pointer() any }).Pointer()
		if p == nil {
			return append(b, "null"...)
		}
		return inner(b, reflect.ValueOf(p).Elem())
	}
}

func pointerEncoder(t reflect.Type) encoder {
	inner := encoderOf(t.Elem())
	return func(b []byte, v reflect.Value) []byte {
		if v.IsNil() {
			return append(b, "null"...)
		}
		return inner(b, v.Elem())
	}
}

func listEncoder(t reflect.Type) encoder {
	inner := encoderOf(t.Elem())
	return func(b []byte, v reflect.Value) []byte {
		if v.Kind() == reflect.Slice && v.IsNil() {
			return append(b, "null"...)
		}
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			b = inner(b, v.Index(i))
		}
		return append(b, ']')
	}
}

// mapEncoder is for maps of words to numbers; what it sorts by, it allocates.
func mapEncoder(t reflect.Type) encoder {
	if t.Key().Kind() != reflect.String || !plain(t.Elem()) {
		panic(fmt.Sprintf("render: there is no JSON for a %v", t))
	}
	inner := encoderOf(t.Elem())
	return func(b []byte, v reflect.Value) []byte {
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
			b = append(appendString(b, key.String()), ':')
			b = inner(b, v.MapIndex(key))
		}
		return append(b, '}')
	}
}

func structEncoder(t reflect.Type) encoder {
	type member struct {
		key    string // with its quotes and colon
		index  int
		isZero func(reflect.Value) bool // when to leave it out, nil for never
		encode encoder
	}
	var members []member
	for _, f := range record.FieldsOf(t) {
		m := member{string(appendString(nil, f.Name)) + ":", f.Index, nil, encoderOf(t.Field(f.Index).Type)}
		switch {
		case f.OmitZero && f.Opt:
			known := knownField(t.Field(f.Index).Type)
			m.isZero = func(v reflect.Value) bool { return !v.Field(known).Bool() }
		case f.OmitZero:
			m.isZero = reflect.Value.IsZero
		}
		members = append(members, m)
	}
	return func(b []byte, v reflect.Value) []byte {
		b = append(b, '{')
		first := true
		for i := range members {
			m := &members[i]
			value := v.Field(m.index)
			if m.isZero != nil && m.isZero(value) {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = m.encode(append(b, m.key...), value)
		}
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
			return appendString(b[:at], slices.Clone(b[at+1:]))
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
