// Package query keeps the records that an expression matches: comparison, set
// membership, regular expressions and durations over every field of a record,
// by its JSON name or by Wireshark's.
//
// The language is expr-lang's (github.com/expr-lang/expr): it is well kept, has
// all operators that Wireshark users expect, and lets a program rewrite what was
// parsed. What is rewritten here: a path of names becomes one look-up that knows
// null; a path that runs through a list stands for all of its elements, and a
// comparison holds when it holds for any of them, as in Wireshark; durations
// such as 5ms are numbers of nanoseconds; strings that look like hex numbers are
// numbers.
package query

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"
)

// Fields is what an expression can name: the fields of one kind of record.
type Fields interface {
	// Has says whether there is a field of that path.
	Has(path string) bool
	// Names lists all paths, to offer near ones.
	Names() []string
	// List is all fields in the order of their paths, for those who show them.
	List() []Field
	// Alias is the path that another name stands for, empty for none.
	Alias(name string) string
	// Get reads a field of a record: nil when it is null, a slice when the path
	// runs through a list.
	Get(record any, path string) any
	// Raw is Get with values that print themselves as the record does: hex
	// numbers are not plain ints.
	Raw(record any, path string) any
}

// Filter is a compiled expression.
type Filter struct {
	program *vm.Program
	machine vm.VM
	fields  Fields
	record  any
}

// Compile compiles an expression over the fields of one kind of record. An
// unknown field is an error that offers the nearest ones.
func Compile(source string, fields Fields) (*Filter, error) {
	f := &Filter{fields: fields}
	check := &checker{fields: fields}
	program, err := expr.Compile("("+durations(source)+") and true", // so that a bare field is a condition, too
		expr.AllowUndefinedVariables(),
		expr.Patch(rewriter{}),
		expr.Patch(check),
		expr.Function(funcField, func(params ...any) (any, error) { return fields.Get(f.record, params[0].(string)), nil }, new(func(string) any)),
		expr.Function(funcCompare, func(params ...any) (any, error) { return compareAny(params[0].(string), params[1], params[2]) }, new(func(string, any, any) bool)),
		expr.Function(funcTruth, func(params ...any) (any, error) { return truth(params[0]), nil }, new(func(any) bool)),
		expr.AsBool(),
	)
	if check.err != nil {
		return nil, fmt.Errorf("-Y %s: %w", source, check.err)
	}
	if err != nil {
		return nil, fmt.Errorf("-Y %s: %s", source, strings.TrimSpace(err.Error()))
	}
	f.program = program
	return f, nil
}

// Resolve is the path of a field by its name or Wireshark's.
func Resolve(name string, fields Fields) (string, error) {
	if fields.Has(name) {
		return name, nil
	}
	if real := fields.Alias(name); real != "" {
		return real, nil
	}
	return "", Unknown(name, fields.Names())
}

// Match says whether a record matches. An error is one of evaluating, such as a
// comparison of things that cannot be compared.
func (f *Filter) Match(record any) (bool, error) {
	f.record = record
	out, err := f.machine.Run(f.program, nil)
	if err != nil {
		return false, err
	}
	return out.(bool), nil
}

// The functions that rewritten expressions call.
const (
	funcField   = "__field"
	funcCompare = "__compare"
	funcTruth   = "__truth"
)

// durationWord is a number with a unit of time, or a string to be left alone.
var durationWord = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`" + `|\b\d+(?:\.\d+)?(?:ns|us|ms|s|m|h)\b`)

// durations turns 5ms into 5000000.
func durations(source string) string {
	return durationWord.ReplaceAllStringFunc(source, func(word string) string {
		if d, err := time.ParseDuration(word); err == nil {
			return strconv.FormatInt(int64(d), 10)
		}
		return word
	})
}

// comparisons are the operators that are rewritten.
var comparisons = []string{"==", "!=", "<", "<=", ">", ">=", "matches", "contains", "startsWith", "endsWith", "in"}

// rewriter rewrites an expression, innermost nodes first.
type rewriter struct{}

// path is the path that a rewritten node looks up.
func path(n ast.Node) (string, bool) {
	if call, ok := n.(*ast.CallNode); ok {
		if id, ok := call.Callee.(*ast.IdentifierNode); ok && id.Value == funcField {
			return call.Arguments[0].(*ast.StringNode).Value, true
		}
	}
	return "", false
}

func call(name string, arguments ...ast.Node) ast.Node {
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: arguments}
}

// Visit rewrites one node; expr calls it.
func (r rewriter) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value == "null" { // as JSON calls it
			ast.Patch(node, &ast.NilNode{})
		} else if !strings.HasPrefix(n.Value, "__") && n.Value != "$env" && !functions[n.Value] {
			ast.Patch(node, call(funcField, &ast.StringNode{Value: n.Value}))
		}
	case *ast.MemberNode:
		if base, ok := path(n.Node); ok {
			if name, ok := n.Property.(*ast.StringNode); ok {
				ast.Patch(node, call(funcField, &ast.StringNode{Value: base + "." + name.Value}))
			}
		}
	case *ast.StringNode:
		if v, err := strconv.ParseUint(n.Value, 0, 64); err == nil && strings.HasPrefix(n.Value, "0x") {
			ast.Patch(node, &ast.IntegerNode{Value: int(v)})
		}
	case *ast.UnaryNode:
		if n.Operator == "not" || n.Operator == "!" {
			r.boolean(&n.Node)
		}
	case *ast.BinaryNode:
		switch {
		case slices.Contains(comparisons, n.Operator):
			ast.Patch(node, call(funcCompare, &ast.StringNode{Value: n.Operator}, n.Left, n.Right))
		case slices.Contains([]string{"and", "&&", "or", "||"}, n.Operator):
			r.boolean(&n.Left)
			r.boolean(&n.Right)
		}
	}
}

// functions are names that are no fields.
var functions = map[string]bool{"now": true, "duration": true, "date": true}

// boolean makes a bare field a condition: it is there, and not false.
func (r rewriter) boolean(node *ast.Node) {
	if _, ok := path(*node); ok {
		ast.Patch(node, call(funcTruth, *node))
	}
}

// checker checks the paths of look-ups, once all of an expression is rewritten,
// and replaces aliases by what they stand for.
type checker struct {
	fields Fields
	err    error
}

// Visit checks one node; expr calls it.
func (r *checker) Visit(node *ast.Node) {
	name, ok := path(*node)
	if !ok || r.err != nil {
		return
	}
	var real string
	if real, r.err = Resolve(name, r.fields); r.err == nil && real != name {
		ast.Patch(node, call(funcField, &ast.StringNode{Value: real}))
	}
}

// Unknown is the error of a field that does not exist, with the nearest that do.
func Unknown(name string, names []string) error {
	type near struct {
		name     string
		distance int
	}
	var all []near
	last := name[strings.LastIndex(name, ".")+1:]
	for _, n := range names {
		d := distance(name, n)
		if strings.HasSuffix(n, "."+last) || strings.HasPrefix(n, name) {
			d = min(d, 2)
		}
		all = append(all, near{n, d})
	}
	slices.SortStableFunc(all, func(a, b near) int { return a.distance - b.distance })
	offer := make([]string, 0, 3)
	for _, n := range all[:min(3, len(all))] {
		offer = append(offer, n.name)
	}
	return fmt.Errorf("there is no field %s here; near it: %s", name, strings.Join(offer, ", "))
}

// distance is how many letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
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
	case string:
		return v != ""
	case []any:
		return slices.ContainsFunc(v, truth)
	}
	return true
}
