package records

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"unicode"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// A checker returns an error if a value cannot be part of a record.
type checker func(v reflect.Value) error

// checkers contains the checkers that were built, by type; nil for a type that has nothing to
// check.
var checkers sync.Map // map[reflect.Type]checker

// check returns an error if the record that v points to cannot be one of rdmadump's.
func check(v reflect.Value) error {
	if err := checkRecord(v); err != nil {
		return err
	}
	if c := checkerOf(v.Type().Elem()); c != nil {
		return c(v.Elem())
	}
	return nil
}

// checkRecord returns an error if a record contradicts itself in what its users rely on.
func checkRecord(v reflect.Value) error {
	r, is := v.Interface().(*record.Transaction)
	if !is {
		return nil
	}
	if r.Call == nil && r.Reply == nil {
		return errors.New("it has neither a Call nor a Reply")
	}
	if r.Call == nil && slices.ContainsFunc(r.Timeline, func(e record.Event) bool { return e.Event == record.EventCall }) {
		return errors.New("its timeline has a Call, and the record has none")
	}
	if r.LatencyNS.Known() && (r.Call == nil || r.Reply == nil) {
		return errors.New("it has a latency without a Call or without a Reply")
	}
	if r.Retransmitted < 0 || r.PersistentHandles < 0 {
		return errors.New("it has a negative count")
	}
	return nil
}

// checkerOf returns the checker of a type.
func checkerOf(t reflect.Type) checker {
	if known, ok := checkers.Load(t); ok {
		return known.(checker)
	}
	c := newChecker(t)
	checkers.Store(t, c)
	return c
}

// newChecker builds the checker of a type.
func newChecker(t reflect.Type) checker {
	if elem, is := record.OptOf(t); is {
		if inner := checkerOf(elem); inner != nil {
			return optional(inner)
		}
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		if values := record.ValuesOf(t); values != nil {
			return oneOf(values)
		}
		return noControls
	case reflect.Map:
		if inner := checkerOf(t.Key()); inner != nil {
			return func(v reflect.Value) error {
				for _, key := range v.MapKeys() {
					if err := inner(key); err != nil {
						return err
					}
				}
				return nil
			}
		}
	case reflect.Pointer:
		if inner := checkerOf(t.Elem()); inner != nil {
			return func(v reflect.Value) error {
				if v.IsNil() {
					return nil
				}
				return inner(v.Elem())
			}
		}
	case reflect.Slice:
		if inner := checkerOf(t.Elem()); inner != nil {
			return func(v reflect.Value) error {
				for i := range v.Len() {
					if err := inner(v.Index(i)); err != nil {
						return err
					}
				}
				return nil
			}
		}
	case reflect.Struct:
		return structChecker(t)
	}
	return nil
}

// structChecker returns the checker of a struct: that of its fields.
func structChecker(t reflect.Type) checker {
	type member struct {
		field record.Field
		check checker
	}
	var members []member
	for _, f := range record.FieldsOf(t) {
		if f.Values == nil && slices.Contains(quoted, f.Name) {
			continue
		}
		c := checkerOf(t.Field(f.Index).Type)
		if f.Values != nil && f.Type.Kind() == reflect.String {
			c = oneOf(f.Values)
			if f.Opt {
				c = optional(c)
			}
		}
		if c != nil {
			members = append(members, member{f, c})
		}
	}
	if members == nil {
		return nil
	}
	return func(v reflect.Value) error {
		for i := range members {
			m := &members[i]
			if err := m.check(v.Field(m.field.Index)); err != nil {
				return fmt.Errorf("%s: %w", m.field.Name, err)
			}
		}
		return nil
	}
}

// optional returns a checker that applies c to the value of an Opt.
func optional(c checker) checker {
	return func(v reflect.Value) error {
		value := reflect.ValueOf(v.Addr().Interface().(interface{ Pointer() any }).Pointer())
		if !value.IsValid() {
			return nil
		}
		return c(value.Elem())
	}
}

// quoted has the fields whose text may come from the network, with any characters in it. Whatever
// draws them expects that. All other texts are names and sentences of rdmadump.
var quoted = []string{
	"created", "file", "file_from", "from", "group", "groups", "input_error", "machine", "message", "name", "principal", "reason", "removed", "renamed", "rpc",
}

// noControls returns an error for a text with control characters, which a terminal may obey.
func noControls(v reflect.Value) error {
	for _, c := range v.String() {
		if unicode.IsControl(c) || c == unicode.ReplacementChar {
			return errors.New("the text contains control characters")
		}
	}
	return nil
}

// oneOf returns a checker for an enumeration, which may be absent: it is empty then. A version that
// had no such field yet wrote the record.
func oneOf(values []string) checker {
	return func(v reflect.Value) error {
		if text := v.String(); text != "" && !slices.Contains(values, text) {
			return fmt.Errorf("unknown value %.40q", text)
		}
		return nil
	}
}
