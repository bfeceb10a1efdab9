// Package query keeps the records that an expression matches: comparison, set
// membership, regular expressions, durations, sizes, addresses and networks over
// every field of a record, by its JSON name, by Wireshark's, or by the heading
// that tables show.
//
// The engine is expr-lang's (github.com/expr-lang/expr). Before it comes a pass
// over the words (lex.go), for what expr's grammar does not have; behind its
// parser each comparison is checked against the type of its field and compiled
// (compile.go), so that what is wrong is said before the first record, with a
// mark under what was typed. What expr runs, in the end, is and, or, not, the
// predicates, and calls of compiled comparisons.
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

// Fields is what an expression can name: the fields of one kind of record.
type Fields interface {
	// Of is the kind of record, in the plural: "transactions".
	Of() string
	// Has says whether there is a field of that path.
	Has(path string) bool
	// Names lists all paths, to offer near ones.
	Names() []string
	// List is all fields in the order of their paths, for those who show them.
	List() []Field
	// Field is that of a path, nil when there is none.
	Field(path string) *Field
	// Alias is the path that another name stands for, empty for none.
	Alias(name string) string
	// Renamed has the names that fields had before the first release, and the
	// paths that replaced them.
	Renamed() map[string]string
	// Get reads a field of a record: nil when it is null, a slice when the path
	// runs through a list.
	Get(record any, path string) any
	// Raw is Get with values that print themselves as the record does: hex
	// numbers are not plain ints.
	Raw(record any, path string) any
	// getter is Get of one path, with what can be done in advance done.
	getter(path string) func(record any) any
}

// Filter is a compiled expression. It is for one goroutine.
type Filter struct {
	source   string
	program  *vm.Program
	machine  vm.VM
	record   any
	getters  []func(any) any
	tests    []test
	paths    []string // of the fields that it looks at
	failed   *Error   // of comparing what only the record shows
	patterns patterns
}

// maxSource bounds the length of an expression: expr's parser recurses.
const maxSource = 1 << 15

// Compile compiles an expression over the fields of one kind of record. An error
// is an [Error], which says where in the source it is.
func Compile(source string, fields Fields) (*Filter, error) {
	if strings.TrimSpace(source) == "" {
		return nil, &Error{source, 0, 0, "the expression is empty"}
	}
	if len(source) > maxSource {
		return nil, &Error{source[:40], 0, 1, fmt.Sprintf("the expression has %d bytes, %d are the most", len(source), maxSource)}
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

// The names that compiled expressions use.
const (
	rootName    = "__root"
	funcField   = "__field"   // the value of a field
	funcTest    = "__test"    // a comparison of a field with a constant
	funcHolds   = "__holds"   // of any value with a constant
	funcCompare = "__compare" // of two values
	funcTruth   = "__truth"
	funcPlain   = "__plain" // an element of a field of the tables, as expr has values
	funcAt      = "__at"    // an element of a list
)

// transplant puts a tree in the place of the root's name, which is how a tree
// that was parsed and checked before gets into expr's compiler.
type transplant struct{ root ast.Node }

// Visit replaces a node; expr calls it.
func (t transplant) Visit(node *ast.Node) {
	if id, ok := (*node).(*ast.IdentifierNode); ok && id.Value == rootName {
		*node = t.root
	}
}

// Match says whether a record matches: a pointer to one of the kind that the filter
// was made for; of other kinds nothing is to be believed. An error is one of evaluating, such as a
// comparison of things that cannot be compared.
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

// Paths are the fields that the expression looks at; one may stand there twice.
func (f *Filter) Paths() []string { return f.paths }

// find is the path of a field by any of its names, empty when there is none. Case
// matters only where there is a field of just that name.
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

// Resolve is the path of a field by its name, Wireshark's, or its heading.
func Resolve(name string, fields Fields) (string, error) {
	if path := find(name, fields); path != "" {
		return path, nil
	}
	return "", Unknown(name, fields)
}

// wordsOf expr's messages.
var (
	unexpected = pattern(`^unexpected token (\w+)(?:\("(.*)"\))?`)
	leftBehind = map[string]string{"EOF": "something is missing at the end"}
)

// syntax is what expr's parser said, in words of what was typed.
func (l *lexed) syntax(err error) *Error {
	var e *file.Error
	if !errors.As(err, &e) {
		return &Error{l.source, 0, len(l.source), err.Error()}
	}
	from := l.at[min(max(e.From, 0), len(l.at)-1)]
	to := l.at[min(max(e.To, 0), len(l.at)-1)]
	message := e.Message
	if m := unexpected().FindStringSubmatch(message); m != nil {
		if message = leftBehind[m[1]]; message != "" {
			from, to = len(l.source), len(l.source)
		} else {
			word := m[2]
			if lit, ok := l.literalOf(word); ok {
				from, to = lit.from, lit.to
				word = l.source[from:to]
			}
			message = fmt.Sprintf("%s is not expected here", word)
			if m[1] == "Identifier" || strings.HasPrefix(m[2], "__") {
				message += "; and, or, or an operator such as == stands between two things"
			}
		}
	}
	return &Error{l.source, from, max(to, from), message}
}

// at is an element of a list, counted from its end where the index is negative; nil
// where it has none there.
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
		return nil, fmt.Errorf("[%s] wants a list before it, and a number in it", visible(textOf(index)))
	case i < 0:
		i += len(elements)
	}
	if i < 0 || i >= len(elements) {
		return nil, nil
	}
	return plainNFS(elements[i]), nil
}

// members says whether a value is an element that has fields.
func members(v any) bool {
	_, is := v.(map[string]any)
	return is
}

// truth is whether a value counts as true: it is there, and not false, zero or
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

// timeOf is a value as a time, for those that are one.
func timeOf(v any) (record.Time, bool) {
	t, ok := v.(interface{ UnixNano() int64 })
	if !ok {
		return 0, false
	}
	return record.Time(t.UnixNano()), true
}
