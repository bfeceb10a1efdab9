package records

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// check returns an error if the record that v points to cannot be one of rdmadump's.
func check(v reflect.Value) error {
	if err := checkRecord(v); err != nil {
		return err
	}
	return checkValue(v.Elem(), nil)
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

// checkValue returns an error if a text in a value, or in a part of it, is none that rdmadump writes: it is not one of these values or, if
// they are nil, has control characters, which a terminal may obey. An enumeration that is empty was absent: a version that had no such
// field yet wrote the record.
func checkValue(v reflect.Value, values []string) error {
	switch v.Kind() {
	case reflect.String:
		text := v.String()
		if values != nil && text != "" && !slices.Contains(values, text) {
			return fmt.Errorf("unknown value %.40q", text)
		}
		if values == nil && strings.ContainsFunc(text, func(c rune) bool { return unicode.IsControl(c) || c == unicode.ReplacementChar }) {
			return errors.New("the text contains control characters")
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if err := checkValue(key, record.ValuesOf(key.Type())); err != nil {
				return err
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return checkValue(v.Elem(), values)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			values = record.ValuesOf(v.Type().Elem())
		}
		for i := range v.Len() {
			if err := checkValue(v.Index(i), values); err != nil {
				return err
			}
		}
	case reflect.Struct:
		if opt, is := v.Addr().Interface().(interface{ Pointer() any }); is {
			if value := reflect.ValueOf(opt.Pointer()); value.IsValid() {
				return checkValue(value.Elem(), values)
			}
			return nil
		}
		for _, f := range record.FieldsOf(v.Type()) {
			if f.Values == nil && slices.Contains(quoted, f.Name) {
				continue
			}
			if err := checkValue(v.Field(f.Index), f.Values); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
	}
	return nil
}

// quoted has the fields whose text may come from the network, with any characters in it. Whatever
// draws them expects that. All other texts are names and sentences of rdmadump.
var quoted = []string{
	"created", "file", "file_from", "from", "group", "groups", "input_error", "machine", "message", "name", "principal", "reason", "removed", "renamed", "rpc",
}
