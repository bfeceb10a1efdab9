// Package query selects the records that match an expression. Expressions have comparisons,
// set membership, regular expressions, durations, sizes, addresses and networks, over every
// field of a record. A field is named as in JSON, as in Wireshark, or by the heading of its
// table column.
//
// lex.go divides an expression into tokens, parse.go makes a tree of them, and compile.go
// checks each comparison in it against the type of its field, and makes functions of it. So
// errors are reported before the first record, with a mark under the place.
package query

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Fields are the fields of one record type, which an expression can name.
type Fields interface {
	// Of returns the name of the record type, in the plural: "transactions".
	Of() string
	// Has reports whether there is a field with this path.
	Has(path string) bool
	// Names returns the paths of all fields, sorted.
	Names() []string
	// List returns all fields, sorted by path.
	List() []Field
	// Field returns the field with this path, or nil if there is none.
	Field(path string) *Field
	// Alias returns the path that another name stands for, or "" if there is none.
	Alias(name string) string
	// Get returns the value of a field of a record: nil if it is null, a slice if the
	// path runs through a list.
	Get(record any, path string) any
	// Raw is like Get, but the values print as in the record: hex numbers keep their
	// type.
	Raw(record any, path string) any
	// getter returns a function that does what Get does for one path, but faster.
	getter(path string) func(record any) any
}

// Filter is a compiled expression. Only one goroutine may use it at a time.
type Filter struct {
	holds condition
	noted []*test  // comparisons for Near
	paths []string // of the fields that it uses

	record  any
	element any // of the list of the innermost any that is being evaluated
}

// maxSource is the length of the longest expression, in bytes: more than the longest argument
// that Linux passes to a program.
const maxSource = 1 << 17

// Compile compiles an expression over the fields of one record type. The error is an
// [Error], which has the place of the error in the source.
func Compile(text string, fields Fields) (filter *Filter, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, &Error{Source: text, Message: "the expression is empty"}
	}
	if len(text) > maxSource {
		return nil, &Error{Source: text[:40], To: 1, Message: fmt.Sprintf("the expression has %d bytes; the limit is %d", len(text), maxSource)}
	}
	if !utf8.ValidString(text) {
		return nil, &Error{Source: strings.ToValidUTF8(text, "?"), To: 1, Message: "the expression is not UTF-8"}
	}
	f := &Filter{}
	defer func() {
		if wrong, is := recover().(*Error); is {
			filter, err = nil, wrong
		}
	}()
	c := &compiler{source: source(text), fields: fields, filter: f, outcomes: map[*Field]map[string]bool{}}
	f.holds = c.condition(parse(c.source, fields))
	return f, nil
}

// Match reports whether a record matches. The record is a pointer to a record of the type
// that the filter was compiled for; the result is undefined for other types.
func (f *Filter) Match(record any) bool {
	f.record = record
	return f.holds(f)
}

// Paths returns the paths of the fields that the expression uses; it may contain a path
// twice.
func (f *Filter) Paths() []string { return f.paths }

// find returns the path of the field that has this name or alias, or "" if there is none.
// Upper and lower case are the same unless a field has exactly this name.
func find(name string, fields Fields) string {
	if fields.Has(name) {
		return name
	}
	if path := fields.Alias(name); path != "" {
		return path
	}
	lower := strings.ToLower(name)
	if fields.Has(lower) {
		return lower
	}
	if path := fields.Alias(lower); path != "" {
		return path
	}
	return fields.Alias(strings.ReplaceAll(lower, " ", "-")) // a heading of two words
}

// Resolve returns the path of a field from its name in JSON or Wireshark, or its heading.
func Resolve(name string, fields Fields) (string, error) {
	if path := find(name, fields); path != "" {
		return path, nil
	}
	return "", errors.New(unknown(name, fields))
}

// member returns the part of a value that has a name: the parts of all elements if it is a
// list, and nil if it has none of this name.
func member(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[name]
	case []any:
		parts := []any{}
		for _, element := range v {
			if part := member(element, name); part != nil {
				parts = append(parts, list(part)...)
			}
		}
		return parts
	}
	return nil
}

// truth reports whether a value counts as true: it is present, and not false, zero or
// empty.
func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case uint64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return slices.ContainsFunc(v, truth)
	}
	return true
}
