package record

import (
	"encoding/json"
	"reflect"
)

// Opt is a value that may be unknown; its zero value is. In JSON it is null when
// unknown, or left out where the field's tag says omitzero.
type Opt[T any] struct {
	value T
	known bool
}

// Some is a value that is known.
func Some[T any](v T) Opt[T] { return Opt[T]{v, true} }

// SomeIf is v where known is set, and unknown else.
func SomeIf[T any](v T, known bool) Opt[T] {
	if !known {
		return Opt[T]{}
	}
	return Opt[T]{v, true}
}

// Get is the value, and whether it is known.
func (o Opt[T]) Get() (v T, known bool) { return o.value, o.known }

// Known says whether there is a value.
func (o Opt[T]) Known() bool { return o.known }

// Or is the value, or v where it is unknown.
func (o Opt[T]) Or(v T) T {
	if o.known {
		return o.value
	}
	return v
}

// IsZero says that the value is unknown; omitzero asks it.
func (o Opt[T]) IsZero() bool { return !o.known }

// MarshalJSON is for programs that use encoding/json; rdmadump's own encoder does
// not come here.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.known {
		return []byte("null"), nil
	}
	return json.Marshal(o.value)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (o *Opt[T]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*o = Opt[T]{}
		return nil
	}
	o.known = true
	return json.Unmarshal(data, &o.value)
}

// Pointer is a pointer to the value, a *T, nil where it is unknown. With Elem it
// is for code that walks records by reflection; it copies nothing.
func (o *Opt[T]) Pointer() any {
	if !o.known {
		return nil
	}
	return &o.value
}

// Elem is the type of the value.
func (*Opt[T]) Elem() reflect.Type { return reflect.TypeFor[T]() }

// Any is the value as an any, nil where it is unknown: for code that walks
// records by reflection.
func (o Opt[T]) Any() any {
	if !o.known {
		return nil
	}
	return o.value
}
