package record

import (
	"encoding/json"
	"reflect"
)

// Opt is a value that may be unknown. The zero Opt is unknown. In JSON an unknown value is
// null, or left out if the tag of the field contains omitzero.
type Opt[T any] struct {
	value T
	known bool
}

// Some returns an Opt that holds v.
func Some[T any](v T) Opt[T] { return Opt[T]{v, true} }

// SomeIf returns an Opt that holds v if known is true, and an unknown Opt otherwise.
func SomeIf[T any](v T, known bool) Opt[T] {
	if !known {
		return Opt[T]{}
	}
	return Opt[T]{v, true}
}

// Get returns the value, and whether it is known.
func (o Opt[T]) Get() (v T, known bool) { return o.value, o.known }

// Known reports whether the value is known.
func (o Opt[T]) Known() bool { return o.known }

// Or returns the value, or v if it is unknown.
func (o Opt[T]) Or(v T) T {
	if o.known {
		return o.value
	}
	return v
}

// IsZero reports whether the value is unknown. The tag omitzero uses it.
func (o Opt[T]) IsZero() bool { return !o.known }

// MarshalJSON returns the value as JSON, or null. It is for programs that use encoding/json;
// the encoder of rdmadump does not call it.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.known {
		return []byte("null"), nil
	}
	return json.Marshal(o.value)
}

// UnmarshalJSON parses the output of MarshalJSON.
func (o *Opt[T]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*o = Opt[T]{}
		return nil
	}
	o.known = true
	return json.Unmarshal(data, &o.value)
}

// Pointer returns a pointer to the value, of type *T, or nil if it is unknown. Code that walks
// records by reflection uses it with Elem. It copies nothing.
func (o *Opt[T]) Pointer() any {
	if !o.known {
		return nil
	}
	return &o.value
}

// Elem returns the type of the value.
func (*Opt[T]) Elem() reflect.Type { return reflect.TypeFor[T]() }

// Any returns the value, or nil if it is unknown. It is for code that walks records by
// reflection.
func (o Opt[T]) Any() any {
	if !o.known {
		return nil
	}
	return o.value
}
