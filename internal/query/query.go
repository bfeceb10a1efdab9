// Package query selects the records that match an expression. Expressions have comparisons,
// set membership, regular expressions, durations, sizes, addresses and networks, over every
// field of a record. A field is named as in JSON, as in Wireshark, or by the heading of its
// table column.
//
// The engine is github.com/expr-lang/expr. Before expr parses an expression, lex.go replaces
// the literals and operators that expr's grammar does not have. After parsing, compile.go
// checks each comparison against the type of its field and compiles it, so that errors are
// reported before the first record, with a mark under the place. In the end, expr evaluates
// and, or, not, predicates such as any, and calls of compiled comparisons.
package query

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/rdmadump/rdmadump/dissect/record"
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
	source   string
	program  *vm.Program
	machine  vm.VM
	record   any
	getters  []func(any) any
	tests    []test
	paths    []string // of the fields that it uses
	failed   *Error   // error of a comparison whose types only the record shows
	patterns patterns
}

// maxSource is the length of the longest expression, in bytes. It bounds the recursion of
// expr's parser.
const maxSource = 1 << 15

// Compile compiles an expression over the fields of one record type. The error is an
// [Error], which has the place of the error in the source.
func Compile(source string, fields Fields) (*Filter, error) {
	if strings.TrimSpace(source) == "" {
		return nil, &Error{source, 0, 0, "the expression is empty"}
	}
	if len(source) > maxSource {
		return nil, &Error{source[:40], 0, 1, fmt.Sprintf("the expression has %d bytes; the limit is %d", len(source), maxSource)}
	}
	if !utf8.ValidString(source) {
		return nil, &Error{strings.ToValidUTF8(source, "?"), 0, 1, "the expression is not UTF-8"}
	}
	l, wrong := lex(source, fields)
	if wrong != nil {
		return nil, wrong
	}
	tree, err := parser.Parse(l.expr)
	if err != nil {
		return nil, l.syntax(err)
	}
	f := &Filter{source: source}
	c := &compiler{lexed: l, fields: fields, filter: f}
	root := c.condition(tree.Node)
	if c.err != nil {
		return nil, c.err
	}
	f.program, err = expr.Compile(rootName,
		expr.AllowUndefinedVariables(),
		expr.Patch(transplant{root}),
		expr.Function(funcField, func(p ...any) (any, error) { return f.getters[p[0].(int)](f.record), nil }, new(func(int) any)),
		expr.Function(funcTest, func(p ...any) (any, error) {
			t := &f.tests[p[0].(int)]
			return t.holds(t.get(f.record)), nil
		}, new(func(int) bool)),
		expr.Function(funcHolds, func(p ...any) (any, error) { return f.tests[p[0].(int)].holds(p[1]), nil }, new(func(int, any) bool)),
		expr.Function(funcCompare, func(p ...any) (any, error) { return f.compare(&f.tests[p[0].(int)], p[1], p[2]) }, new(func(int, any, any) bool)),
		expr.Function(funcPlain, func(p ...any) (any, error) { return plainNFS(p[0]), nil }, new(func(any) any)),
		expr.Function(funcAt, func(p ...any) (any, error) { return at(p[0], p[1]) }, new(func(any, any) any)),
		expr.Function(funcTruth, func(p ...any) (any, error) { return truth(p[0]), nil }, new(func(any) bool)),
		expr.AsBool(),
	)
	if err != nil {
		return nil, l.syntax(err)
	}
	return f, nil
}

// These functions and names are used by compiled expressions.
const (
	rootName    = "__root"
	funcField   = "__field"   // the value of a field
	funcTest    = "__test"    // a comparison of a field with a constant
	funcHolds   = "__holds"   // a comparison of any value with a constant
	funcCompare = "__compare" // a comparison of two values
	funcTruth   = "__truth"
	funcPlain   = "__plain" // the value of an element of an NFS field, in a type of expr
	funcAt      = "__at"    // an element of a list
)

// transplant replaces the name of the root by a tree. This passes a tree that is already
// parsed and checked to expr's compiler.
type transplant struct{ root ast.Node }

// Visit replaces a node; expr calls it.
func (t transplant) Visit(node *ast.Node) {
	if id, ok := (*node).(*ast.IdentifierNode); ok && id.Value == rootName {
		*node = t.root
	}
}

// Match reports whether a record matches. The record is a pointer to a record of the type
// that the filter was compiled for; the result is undefined for other types. The error is
// an evaluation error, such as a comparison of values that cannot be compared.
func (f *Filter) Match(record any) (bool, error) {
	f.record, f.failed = record, nil
	out, err := f.machine.Run(f.program, nil)
	if f.failed != nil {
		return false, f.failed
	}
	if err != nil {
		message := err.Error()
		var e *file.Error
		if errors.As(err, &e) {
			message = e.Message
		}
		return false, &Error{f.source, 0, len(f.source), message}
	}
	return out.(bool), nil
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
	return "", Unknown(name, fields)
}

// These translate the messages of expr's parser.
var (
	unexpected = pattern(`^unexpected token (\w+)(?:\("(.*)"\))?`)
	instead    = map[string]string{"EOF": "something is missing at the end"}
)

// syntax returns the error of expr's parser in terms of the expression as it was typed.
func (l *lexed) syntax(err error) *Error {
	var e *file.Error
	if !errors.As(err, &e) {
		return &Error{l.source, 0, len(l.source), err.Error()}
	}
	from := l.at[min(max(e.From, 0), len(l.at)-1)]
	to := l.at[min(max(e.To, 0), len(l.at)-1)]
	message := e.Message
	if m := unexpected().FindStringSubmatch(message); m != nil {
		if message = instead[m[1]]; message != "" {
			from, to = len(l.source), len(l.source)
		} else {
			word := m[2]
			if lit, ok := l.literalOf(word); ok {
				from, to = lit.from, lit.to
				word = l.source[from:to]
			}
			message = fmt.Sprintf("unexpected %s", word)
			if m[1] == "Identifier" || strings.HasPrefix(m[2], "__") {
				message += "; and, or, or an operator such as == must separate two operands"
			}
		}
	}
	return &Error{l.source, from, max(to, from), message}
}

// at returns an element of a list, or nil if the list is too short. A negative index counts
// from the end.
func at(list, index any) (any, error) {
	elements, isList := list.([]any)
	i, isNumber := index.(int)
	switch {
	case members(list) && !isNumber:
		name, _ := index.(string)
		return list.(map[string]any)[name], nil
	case list == nil:
		return nil, nil
	case !isList || !isNumber:
		return nil, fmt.Errorf("[%s] must follow a list and contain a number", visible(textOf(index)))
	case i < 0:
		i += len(elements)
	}
	if i < 0 || i >= len(elements) {
		return nil, nil
	}
	return plainNFS(elements[i]), nil
}

// members reports whether a value is an element that has fields.
func members(v any) bool {
	_, is := v.(map[string]any)
	return is
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
		for _, element := range v {
			if truth(element) {
				return true
			}
		}
		return false
	}
	return true
}

// timeOf returns a value as a time, and whether it is one.
func timeOf(v any) (record.Time, bool) {
	t, ok := v.(interface{ UnixNano() int64 })
	if !ok {
		return 0, false
	}
	return record.Time(t.UnixNano()), true
}
