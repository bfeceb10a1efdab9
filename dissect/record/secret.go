package record

import (
	"reflect"
	"strings"
	"sync"
)

// Secret is the tag secret of a field: whom or what its value identifies. Each field of text has this tag, unless its
// type or the tag values lists all its values. Numbers have it if they identify somebody. Times have none.
type Secret string

// The tags.
const (
	SecretAddress  Secret = "address"  // of a host
	SecretSenders  Secret = "senders"  // addresses of hosts with commas between them, or the word both
	SecretMachine  Secret = "machine"  // name of a host
	SecretUser     Secret = "user"     // name of a user
	SecretID       Secret = "id"       // number of a user or group
	SecretPath     Secret = "path"     // of a file
	SecretHandle   Secret = "handle"   // of a file, or another value in hex that a client or server chose
	SecretPoint    Secret = "point"    // name of a capture point, which is the name of a file
	SecretSentence Secret = "sentence" // words of rdmadump, which may contain names of captures
	SecretFilter   Secret = "filter"   // an expression or a command, which may contain anything and is left out
	SecretContent  Secret = "content"  // what a packet says, which may be anything: it has no pseudonym and is left out
	SecretNo       Secret = "no"       // it identifies nobody
)

// Pseudonyms replaces values that identify somebody or something.
type Pseudonyms interface {
	// Text returns the pseudonym of a text, which is not empty.
	Text(what Secret, text string) string
	// ID returns the pseudonym of the number of a user or group.
	ID(id uint32) uint32
}

// Hidden returns a copy of a record in which pseudonyms replace what the tags name. A field of text without a tag is
// left out: a new field is secret until its tag says otherwise. The record itself stays as it is, although the copy
// shares with it what is not replaced.
func Hidden[T any](r *T, by Pseudonyms) *T {
	c := *r
	hide(reflect.ValueOf(&c).Elem(), "", by)
	return &c
}

// hide replaces the secrets in a value, which has this tag. It copies all lists and pointers on the way to them.
func hide(v reflect.Value, what Secret, by Pseudonyms) {
	if _, keeps := by.(interface{ keepsContent() }); !keeps && (what == SecretContent || what == SecretFilter) {
		v.SetZero()
		return
	}
	switch v.Kind() {
	case reflect.String:
		switch {
		case v.Len() == 0:
		case what == SecretSenders:
			if v.String() != BothDirections {
				list := strings.Split(v.String(), ", ")
				for i := range list {
					list[i] = by.Text(SecretAddress, list[i])
				}
				v.SetString(strings.Join(list, ", "))
			}
		default:
			v.SetString(by.Text(what, v.String()))
		}
	case reflect.Uint32:
		v.SetUint(uint64(by.ID(uint32(v.Uint()))))
	case reflect.Pointer:
		if !v.IsNil() {
			own := reflect.New(v.Type().Elem())
			own.Elem().Set(v.Elem())
			hide(own.Elem(), what, by)
			v.Set(own)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(own, v)
			for i := range own.Len() {
				hide(own.Index(i), what, by)
			}
			v.Set(own)
		}
	case reflect.Struct:
		if opt, is := v.Addr().Interface().(interface{ Pointer() any }); is {
			if inside := opt.Pointer(); inside != nil {
				hide(reflect.ValueOf(inside).Elem(), what, by)
			}
			return
		}
		for _, f := range secretsOf(v.Type()) {
			hide(v.Field(f.index), f.what, by)
		}
	}
}

// secretField is a field that has, or contains, secrets.
type secretField struct {
	index int
	what  Secret // empty for a struct, which has fields with tags
}

// secretFields has the fields with secrets of each type of struct that was asked for.
var secretFields sync.Map

// secretsOf returns the fields with secrets of a struct.
func secretsOf(t reflect.Type) []secretField {
	if known, is := secretFields.Load(t); is {
		return known.([]secretField)
	}
	var list []secretField
	for i := range t.NumField() {
		f := t.Field(i)
		what := Secret(f.Tag.Get("secret"))
		if what == SecretNo || !f.IsExported() || f.Tag.Get("values") != "" {
			continue
		}
		if what == "" {
			switch isText, inside := secretKind(f.Type); {
			case isText:
				what = SecretContent
			case !inside:
				continue
			}
		}
		list = append(list, secretField{i, what})
	}
	secretFields.Store(t, list)
	return list
}

// secretKind reports whether a type is text of any value, by itself or in a list, and whether it is a struct that contains
// secrets.
func secretKind(t reflect.Type) (isText, inside bool) {
	if elem, opt := OptOf(t); opt {
		t = elem
	}
	switch t.Kind() {
	case reflect.String:
		return ValuesOf(t) == nil, false
	case reflect.Interface, reflect.UnsafePointer, reflect.Func, reflect.Chan:
		return true, false
	case reflect.Pointer, reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 { // bytes
			return true, false
		}
		return secretKind(t.Elem())
	case reflect.Map:
		key, inKey := secretKind(t.Key())
		value, inValue := secretKind(t.Elem())
		return key || inKey || value || inValue, false
	case reflect.Struct:
		return false, len(secretsOf(t)) > 0
	}
	return false, false
}
