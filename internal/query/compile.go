package query

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/nfs"
)

// compiler converts the tree that expr parsed into the tree that expr runs: names become
// look-ups of fields, and comparisons become tests. It reports only the first error.
type compiler struct {
	*lexed
	fields Fields
	filter *Filter
	err    error
	scopes []string // lists that the enclosing predicates run over; "" for a list that is not a field
	locals []string // names that let defines
}

// operand is one side of a comparison.
type operand struct {
	node      ast.Node
	path      string // of the field
	field     *Field
	element   bool // the field belongs to an element of a list, which expr passes
	otherCase bool // upper and lower case of the name differ from the field
	lit       *literal
	word      string // the name as it was typed
	from, to  int
}

// span returns the part of the source that a node represents.
func (c *compiler) span(n ast.Node) (from, to int) {
	least, most := -1, 0
	ast.Walk(&n, visitor(func(n *ast.Node) {
		at := (*n).Location()
		if least < 0 || at.From < least {
			least = at.From
		}
		most = max(most, at.To)
		if id, ok := (*n).(*ast.IdentifierNode); ok {
			if lit, ok := c.literalOf(id.Value); ok {
				from, to = lit.from, lit.to
			}
		}
	}))
	first, last := c.at[min(max(least, 0), len(c.at)-1)], c.at[min(most, len(c.at)-1)]
	if to > from && to-from >= last-first {
		return from, to
	}
	for last > first && c.source[last-1] == ' ' {
		last--
	}
	return first, last
}

// visitor is a function that expr's walk calls.
type visitor func(*ast.Node)

// Visit calls the function.
func (v visitor) Visit(n *ast.Node) { v(n) }

// wrong records an error at a part of the source.
func (c *compiler) wrong(from, to int, format string, args ...any) {
	if c.err == nil {
		c.err = &Error{c.source, from, to, fmt.Sprintf(format, args...)}
	}
}

// wrongAt records an error at the part of the source that a node represents.
func (c *compiler) wrongAt(n ast.Node, format string, args ...any) {
	from, to := c.span(n)
	c.wrong(from, to, format, args...)
}

// invoke returns a call of one of the functions of a filter.
func invoke(at file.Location, name string, index int, arguments ...ast.Node) ast.Node {
	call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: append([]ast.Node{&ast.IntegerNode{Value: index}}, arguments...)}
	call.SetLocation(at)
	return call
}

// pathOf returns the path that a chain of names represents. Element reports whether the path
// belongs to an element of the list that a predicate runs over.
func (c *compiler) pathOf(n ast.Node) (path string, element, ok bool) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return n.Value, false, !strings.HasPrefix(n.Value, "__") && n.Value != "null" && n.Value != "$env" && !slices.Contains(c.locals, n.Value)
	case *ast.PointerNode:
		if len(c.scopes) > 0 && n.Name == "" {
			if base := c.scopes[len(c.scopes)-1]; base != "" {
				return base, true, true
			}
		}
	case *ast.ChainNode:
		return c.pathOf(n.Node)
	case *ast.MemberNode:
		base, element, ok := c.pathOf(n.Node)
		if name, text := n.Property.(*ast.StringNode); ok && text {
			return base + "." + name.Value, element, true
		}
	}
	return "", false, false
}

// classify determines whether a side of a comparison is a field, a literal or neither.
func (c *compiler) classify(n ast.Node) operand {
	o := operand{node: n}
	o.from, o.to = c.span(n)
	if lit, ok := c.constant(n); ok {
		o.lit = &lit
		if lit.kind == isWord {
			o.word = lit.text
		}
		return o
	}
	if path, element, ok := c.pathOf(n); ok {
		if real := find(path, c.fields); real != "" {
			o.path, o.element, o.field, o.otherCase = real, element, c.fields.Field(real), !c.fields.Has(path) && c.fields.Alias(path) == ""
			o.word = path
		} else {
			o.word = path
		}
	}
	return o
}

// constant returns the literal that a node represents, and whether it is one.
func (c *compiler) constant(n ast.Node) (literal, bool) {
	from, to := 0, 0
	switch n.(type) {
	case *ast.IdentifierNode, *ast.BoolNode, *ast.NilNode, *ast.UnaryNode, *ast.ArrayNode:
		from, to = c.span(n)
	}
	switch n := n.(type) {
	case *ast.IdentifierNode:
		if n.Value == "null" {
			return literal{kind: isNull, text: n.Value, from: from, to: to}, true
		}
		return c.literalOf(n.Value)
	case *ast.NilNode:
		return literal{kind: isNull, text: "nil", from: from, to: to}, true
	case *ast.BoolNode:
		return literal{kind: isBool, text: fmt.Sprint(n.Value), truth: n.Value, from: from, to: to}, true
	case *ast.UnaryNode:
		lit, ok := c.constant(n.Node)
		v, small := lit.number.(int)
		if !ok || !small || n.Operator != "-" {
			return literal{}, false
		}
		lit.number, lit.text, lit.from = -v, "-"+lit.text, from
		return lit, true
	case *ast.BinaryNode: // 1..5
		low, ok := c.constant(n.Left)
		high, ok2 := c.constant(n.Right)
		if n.Operator == ".." && ok && ok2 && low.number != nil && high.number != nil {
			return literal{kind: isList, text: "..", list: []literal{low, high}, from: low.from, to: high.to}, true
		}
	case *ast.ArrayNode:
		list := literal{kind: isList, from: from, to: to}
		for _, element := range n.Nodes {
			lit, ok := c.constant(element)
			if path, _, named := c.pathOf(element); !ok && named {
				from, to := c.span(element)
				lit, ok = literal{kind: isWord, text: path, from: from, to: to}, true
			}
			if !ok {
				return literal{}, false
			}
			list.list = append(list.list, lit)
		}
		return list, true
	}
	return literal{}, false
}

// field returns a look-up of a field.
func (c *compiler) field(o *operand) ast.Node {
	if o.element {
		if o.field.nfs != nil && o.path == o.field.Path {
			return invokePlain(o.node)
		}
		return o.node
	}
	c.filter.paths = append(c.filter.paths, o.path)
	get := c.fields.getter(o.path)
	if o.field.List {
		get = listed(get)
	}
	c.filter.getters = append(c.filter.getters, get)
	return invoke(o.node.Location(), funcField, len(c.filter.getters)-1)
}

// invokePlain returns a call that converts an element of an NFS field to a type of expr.
func invokePlain(element ast.Node) ast.Node {
	call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: funcPlain}, Arguments: []ast.Node{element}}
	call.SetLocation(element.Location())
	return call
}

// elements compiles the list that a predicate runs over. The elements of an NFS field are not
// converted, because the comparisons in the predicate need their types.
func (c *compiler) elements(n ast.Node) ast.Node {
	o := c.classify(n)
	if o.field == nil || o.field.nfs == nil || o.element {
		return c.value(n)
	}
	c.filter.paths = append(c.filter.paths, o.path)
	c.filter.getters = append(c.filter.getters, listed(o.field.nfs.whole))
	return invoke(n.Location(), funcField, len(c.filter.getters)-1)
}

// listed returns a look-up that always returns a list, which is empty if there is no value.
// Functions such as len and any need a list.
func listed(get func(any) any) func(any) any {
	return func(r any) any {
		switch v := get(r).(type) {
		case nil:
			return []any{}
		case []any:
			return v
		default:
			return []any{v}
		}
	}
}

// condition compiles a node in the place of a condition. A field without a comparison is true
// if it is present, and not false, zero or empty.
func (c *compiler) condition(n ast.Node) ast.Node {
	switch m := n.(type) {
	case *ast.BoolNode:
		return n
	case *ast.BinaryNode:
		if slices.Contains(comparisons, m.Operator) || isLogic(m.Operator) {
			return c.value(n)
		}
	case *ast.UnaryNode:
		if m.Operator == "not" || m.Operator == "!" {
			return c.value(n)
		}
	}
	if o := c.classify(n); o.field == nil && o.word != "" {
		c.unknown(&o)
	} else if o.field != nil && isOperation(o.word, c.fields) {
		c.wrong(o.from, o.to, "%s is the column %s, whose cells are numbers: write %s > 0, or, for the RPCs of this operation, operation == %s", o.word, strings.ToUpper(o.word), o.word, strings.ToUpper(o.word))
	} else if o.path == "rpc" && c.fields == Transactions { // the protocol, as in Wireshark's filters
		return &ast.BoolNode{Value: true}
	} else if o.lit != nil {
		c.wrong(o.from, o.to, "%s is not a condition; compare it with a field", c.source[o.from:o.to])
	}
	call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: funcTruth}, Arguments: []ast.Node{c.value(n)}}
	call.SetLocation(n.Location())
	return call
}

// isOperation reports whether a word is the name of an NFS operation or procedure, which RPCs have.
func isOperation(word string, fields Fields) bool {
	return fields == Transactions && slices.Contains(nfs.PrincipalWords(), strings.ToUpper(word))
}

// unknown records the error that a field does not exist.
func (c *compiler) unknown(o *operand) {
	c.wrong(o.from, o.to, "%s", unknown(o.word, c.fields))
}

// isLogic reports whether an operator combines conditions.
func isLogic(operator string) bool {
	return slices.Contains([]string{"and", "&&", "or", "||"}, operator)
}

// value compiles any node.
func (c *compiler) value(n ast.Node) ast.Node {
	if c.err != nil {
		return n
	}
	if lit, ok := c.constant(n); ok && lit.kind == isBytes {
		c.wrong(lit.from, lit.to, "%s", lit.why)
		return n
	} else if ok && lit.kind != isList {
		var node ast.Node = &ast.ConstantNode{Value: lit.value()}
		switch v := lit.value().(type) {
		case int:
			node = &ast.IntegerNode{Value: v}
		case string:
			node = &ast.StringNode{Value: v}
		case bool:
			node = &ast.BoolNode{Value: v}
		case float64:
			node = &ast.FloatNode{Value: v}
		case nil:
			node = &ast.NilNode{}
		}
		node.SetLocation(n.Location())
		return node
	}
	if path, element, ok := c.pathOf(n); ok {
		o := c.classify(n)
		if o.field == nil {
			if !element || path != "" {
				c.unknown(&o)
			}
			return n
		}
		return c.field(&o)
	}
	switch n := n.(type) {
	case *ast.UnaryNode:
		if n.Operator == "not" || n.Operator == "!" {
			n.Node = c.condition(n.Node)
		} else {
			n.Node = c.value(n.Node)
		}
	case *ast.BinaryNode:
		switch {
		case slices.Contains(comparisons, n.Operator):
			return c.comparison(n)
		case isLogic(n.Operator):
			n.Left, n.Right = c.condition(n.Left), c.condition(n.Right)
		default:
			n.Left, n.Right = c.value(n.Left), c.value(n.Right)
		}
	case *ast.ChainNode:
		n.Node = c.value(n.Node)
	case *ast.MemberNode:
		n.Node = c.value(n.Node)
		if _, name := n.Property.(*ast.StringNode); !name {
			call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: funcAt}, Arguments: []ast.Node{n.Node, c.value(n.Property)}}
			call.SetLocation(n.Location())
			return call
		}
	case *ast.SliceNode:
		n.Node = c.value(n.Node)
		if n.From != nil {
			n.From = c.value(n.From)
		}
		if n.To != nil {
			n.To = c.value(n.To)
		}
	case *ast.CallNode:
		if id, ok := n.Callee.(*ast.IdentifierNode); ok {
			c.wrongAt(n.Callee, "unknown function %s", id.Value)
		} else {
			c.wrongAt(n, "only functions can be called: len(...), any(...), all(...), none(...), count(...)")
		}
	case *ast.BuiltinNode:
		c.builtin(n)
	case *ast.PredicateNode:
		n.Node = c.value(n.Node)
	case *ast.ConditionalNode:
		n.Cond, n.Exp1, n.Exp2 = c.condition(n.Cond), c.value(n.Exp1), c.value(n.Exp2)
	case *ast.ArrayNode:
		for i := range n.Nodes {
			n.Nodes[i] = c.value(n.Nodes[i])
		}
	case *ast.SequenceNode:
		for i := range n.Nodes {
			n.Nodes[i] = c.value(n.Nodes[i])
		}
	case *ast.MapNode:
		for i := range n.Pairs {
			n.Pairs[i] = c.value(n.Pairs[i])
		}
	case *ast.PairNode:
		n.Value = c.value(n.Value)
	case *ast.VariableDeclaratorNode:
		n.Value = c.value(n.Value)
		c.locals = append(c.locals, n.Name)
		n.Expr = c.value(n.Expr)
		c.locals = c.locals[:len(c.locals)-1]
	}
	return n
}

// builtin compiles a call of one of expr's functions. In the predicate of a function such as
// any, .name is a field of the elements of the list.
func (c *compiler) builtin(n *ast.BuiltinNode) {
	base := ""
	for i, argument := range n.Arguments {
		p, predicate := argument.(*ast.PredicateNode)
		if !predicate {
			if path, _, ok := c.pathOf(argument); ok && i == 0 {
				base = find(path, c.fields)
			}
			if i == 0 && len(n.Arguments) > 1 {
				if _, predicate := n.Arguments[1].(*ast.PredicateNode); predicate {
					n.Arguments[i] = c.elements(argument)
					continue
				}
			}
			n.Arguments[i] = c.value(argument)
			continue
		}
		c.scopes = append(c.scopes, base)
		switch n.Name {
		case "all", "any", "none", "one", "filter", "count", "find", "findIndex", "findLast", "findLastIndex":
			p.Node = c.condition(p.Node)
		default:
			p.Node = c.value(p.Node)
		}
		c.scopes = c.scopes[:len(c.scopes)-1]
	}
}

// mirrored maps the operators to those with the same meaning if both sides are exchanged.
var mirrored = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}

// comparison compiles a comparison. If it compares a field with a constant, the test is made
// for their types; any other test examines the types of the values in the record.
func (c *compiler) comparison(n *ast.BinaryNode) ast.Node {
	left, right := c.classify(n.Left), c.classify(n.Right)
	takeWord(&left, &right)
	takeWord(&right, &left)
	for _, o := range []*operand{&left, &right} {
		if o.field == nil && o.lit == nil && o.word != "" {
			c.unknown(o)
			return n
		}
	}
	if left.lit != nil && left.lit.kind == isWord && (right.lit != nil || isOperation(right.word, c.fields)) {
		c.wrong(left.from, left.to, "%s", unknown(left.word, c.fields))
		return n
	}
	op := n.Operator
	switch {
	case op == "in" && left.lit != nil && right.field != nil && right.field.List: // "READ" in operations
		return c.test(n, &right, "==", left.lit)
	case op == "in" && right.lit == nil && right.field == nil:
	case op == "in" && (right.lit == nil || right.lit.kind != isList && right.lit.kind != isNet):
		c.wrong(right.from, right.to, "in must be followed by a list, such as [1, 2], or a network, such as 192.168.77.0/24")
		return n
	case left.field != nil && right.lit != nil:
		return c.test(n, &left, op, right.lit)
	case right.field != nil && left.lit != nil && mirrored[op] != "":
		return c.test(n, &right, mirrored[op], left.lit)
	case right.lit != nil && right.lit.kind == isList && op != "in":
		c.wrong(right.from, right.to, "a list can follow only in, not %s", op)
		return n
	}
	if left.field != nil && right.field != nil && textual(left.field) != textual(right.field) && mirrored[op] != "" && op != "==" && op != "!=" {
		c.wrong(right.from, right.to, "%s is %s and %s is %s", left.path, article(left.field), right.path, article(right.field))
		return n
	}
	c.filter.tests = append(c.filter.tests, test{op: op, from: left.from, to: max(right.to, left.to)})
	return invoke(n.Location(), funcCompare, len(c.filter.tests)-1, c.value(n.Left), c.value(n.Right))
}

// takeWord turns a word on the opposite side of a text field into text if the word is not a
// field, if it is a field only in another case or of another type, or if it is one of the values
// that the text field can have: at_fault == client.
func takeWord(o, opposite *operand) {
	if o.word == "" || o.lit != nil || o.element {
		return
	}
	text := opposite.field != nil && (textual(opposite.field) || opposite.field.shown != nil || len(opposite.field.Values) > 0 || opposite.field.Type == "bool")
	other := opposite.field == nil && opposite.lit == nil && opposite.word == ""
	value := text && slices.Contains(opposite.field.Values, o.word)
	if value || o.field == nil && (opposite.field != nil || other) || text && o.field != nil && !opposite.otherCase && (o.otherCase || !textual(o.field) && textual(opposite.field)) {
		o.lit = &literal{kind: isWord, text: o.word, from: o.from, to: o.to}
		o.field, o.path = nil, ""
	}
}

// textual reports whether the values of a field are text.
func textual(f *Field) bool {
	return f.Type == "text" || f.Type == "address" || f.Type == "bytes"
}

// article returns the type of a field with its article, for a sentence.
func article(f *Field) string {
	switch f.Type {
	case "address", "object":
		return "an " + f.Type
	case "text":
		return "text"
	case "bytes":
		return "bytes in hex"
	case "time":
		return "a time"
	case "hex":
		return "a number"
	}
	return "a " + f.Type
}

// test compiles a comparison of a field with a constant.
func (c *compiler) test(n *ast.BinaryNode, o *operand, op string, lit *literal) ast.Node {
	c.filter.paths = append(c.filter.paths, o.path)
	t := test{op: op, from: o.from, to: max(lit.to, o.to)}
	t.path, t.wanted = o.path, lit.text
	shown := false
	t.accepts, shown = c.accepts(o, op, lit)
	if c.err != nil {
		return n
	}
	raw := op == "matches" || op == "contains" || op == "startsWith" || op == "endsWith"
	switch {
	case o.element:
		t.get = nil
	case o.field.nfs != nil && lit.kind != isNull:
		t.get = o.field.nfs.whole
	case shown:
		t.get = o.field.shown
	case raw && o.field.shown != nil && textual(o.field): // the value in the record, or the one in tables
		path, shown := o.path, o.field.shown
		t.get = func(r any) any { return []any{c.fields.Raw(r, path), shown(r)} }
	case raw:
		path := o.path
		t.get = func(r any) any { return c.fields.Raw(r, path) }
	default:
		t.get = c.fields.getter(o.path)
	}
	t.negated = op == "!="
	t.notes = (op == "==" || op == "in") && !o.element && (lit.kind == isText || lit.kind == isWord || lit.kind == isNumber && o.field.Type == "hex")
	if t.notes {
		path := o.path
		if shown && o.field.nfs == nil {
			t.raw = o.field.shown
		} else {
			t.raw = func(r any) any { return c.fields.Raw(r, path) }
		}
	}
	c.filter.tests = append(c.filter.tests, t)
	index := len(c.filter.tests) - 1
	if o.element {
		return invoke(n.Location(), funcHolds, index, o.node)
	}
	if t.notes {
		c.filter.tests[index].get = c.filter.noting(index, t.get)
	}
	return invoke(n.Location(), funcTest, index)
}

// accepts returns the test of a single value: it reports whether the comparison is true for
// the value, or false in the case of !=. Shown reports whether the test is about the value
// that tables show for the field.
func (c *compiler) accepts(o *operand, op string, lit *literal) (accepts func(any) bool, shown bool) {
	f := o.field
	switch op {
	case "in":
		if lit.kind == isNet {
			return c.accepts(o, "==", lit)
		}
		var ones []func(any) bool
		list := lit.list
		if lit.text == ".." { // This is a range without braces.
			list = []literal{*lit}
		}
		for i := range list {
			element := &list[i]
			if element.kind == isList && element.text == ".." {
				low, _ := c.accepts(o, ">=", &element.list[0])
				high, _ := c.accepts(o, "<=", &element.list[1])
				ones = append(ones, func(v any) bool { return low(v) && high(v) })
				continue
			}
			one, s := c.accepts(o, "==", element)
			if s != shown && i > 0 {
				c.wrong(element.from, element.to, "the values of a list must have one type")
			}
			shown = s
			ones = append(ones, one)
		}
		return func(v any) bool {
			for _, one := range ones {
				if one(v) {
					return true
				}
			}
			return false
		}, shown
	}
	if f.nfs != nil && lit.kind != isNull && lit.kind != isList {
		return c.acceptsNFS(o, op, lit), false
	}
	switch op {
	case "matches":
		p, err := regexp.Compile(lit.text)
		if err != nil {
			c.wrong(lit.from, lit.to, "invalid regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			return nil, false
		}
		return func(v any) bool { return v != nil && p.MatchString(textOf(v)) }, f.shown != nil && !textual(f) && f.Type != "hex"
	case "contains", "startsWith", "endsWith":
		holds, wanted := textTests[op], lit.text
		return func(v any) bool { return v != nil && holds(textOf(v), wanted) }, f.shown != nil && !textual(f) && f.Type != "hex"
	}
	if lit.kind == isList {
		c.wrong(lit.from, lit.to, "a list can follow only in, not %s", op)
		return nil, false
	}
	if lit.kind == isNull {
		if op != "==" && op != "!=" {
			c.wrong(lit.from, lit.to, "null can be compared only with == and !=")
		}
		return func(v any) bool { return v == nil }, false
	}
	if lit.kind == isBytes && f.Type != "bytes" {
		c.wrong(lit.from, lit.to, "%s", lit.why)
		return nil, false
	}
	ordered := orders[op]
	asNumber := func(n any) (func(any) bool, bool) {
		return func(v any) bool {
			order, ok := compareNumbers(v, n)
			return ok && ordered(order)
		}, false
	}
	typed := c.source[lit.from:lit.to]
	switch f.Type {
	case "number", "hex":
		switch lit.kind {
		case isNumber, isSize:
			return asNumber(lit.number)
		case isDuration:
			c.wrong(lit.from, lit.to, "%s is a duration, but %s is a number", typed, o.path)
			return nil, false
		case isText, isWord:
			if n, ok := parseNumber(lit.text); ok {
				return asNumber(n)
			}
			if f.shown != nil {
				return c.asText(o, op, lit), true
			}
		}
		example := "42"
		if f.Type == "hex" {
			example = "0x4cc9dbf7"
		}
		c.wrong(lit.from, lit.to, "%s is a number, such as %s; %s is not", o.path, example, typed)
	case "duration":
		switch {
		case lit.kind == isDuration, lit.kind == isNumber && (lit.number == 0 || strings.HasSuffix(o.word, "_ns") || strings.HasSuffix(o.word, ".ns")):
			return asNumber(lit.number)
		case lit.kind == isNumber:
			c.wrong(lit.from, lit.to, "%s has no unit; write %sms, %sus or %ss", typed, typed, typed, typed)
			return nil, false
		case lit.kind == isText:
			if d, err := time.ParseDuration(lit.text); err == nil {
				return asNumber(int(d))
			}
		}
		c.wrong(lit.from, lit.to, "%s is a duration, such as 5ms, 20us or 1.5s; %s is not", o.path, typed)
	case "time":
		at, ok := lit.time, lit.kind == isTime
		if !ok && lit.kind == isText {
			at, ok = parseTime(lit.text)
		}
		if ok {
			return func(v any) bool {
				t, ok := timeOf(v)
				return ok && ordered(cmp.Compare(int64(t), int64(at)))
			}, false
		}
		if f.shown != nil && (lit.kind == isText || lit.kind == isWord) {
			return c.asText(o, op, lit), true
		}
		c.wrong(lit.from, lit.to, "%s is a time, such as 2026-11-21T05:20:00Z; frame.time_relative has the seconds since the start, as in frame.time_relative > 7.5", o.path)
	case "bool":
		truths := map[string]bool{"true": true, "yes": true, "1": true, "false": false, "no": false, "0": false}
		wanted, ok := truths[strings.ToLower(lit.text)]
		if !ok || op != "==" && op != "!=" {
			c.wrong(lit.from, lit.to, "%s is true or false", o.path)
			return nil, false
		}
		return func(v any) bool { return v == wanted }, false
	case "object":
		if f.shown == nil {
			c.wrong(o.from, o.to, "%s is an object; use one of its fields, such as %s", o.path, strings.Join(c.below(o.path), ", "))
			return nil, false
		}
		if lit.kind == isNumber || lit.kind == isSize {
			accepts, _ := asNumber(lit.number)
			return accepts, true
		}
		return c.asText(o, op, lit), true
	default:
		return c.asText(o, op, lit), c.byShown(f, lit)
	}
	return nil, false
}

// byShown reports whether a text is compared with the value that tables show for a field,
// because it is not one of the field's own values.
func (c *compiler) byShown(f *Field, lit *literal) bool {
	return f.shown != nil && canonical(f, lit.text) == ""
}

// canonical returns the value of an enumeration that a word stands for, or "" if it stands
// for none.
func canonical(f *Field, word string) string {
	if real := synonyms[f.Path+"="+strings.ToLower(word)]; real != "" && slices.Contains(f.Values, real) {
		return real
	}
	for _, v := range f.Values {
		if strings.EqualFold(v, word) {
			return v
		}
	}
	return ""
}

// asText returns the test of a single value of a text field.
func (c *compiler) asText(o *operand, op string, lit *literal) func(any) bool {
	f, ordered := o.field, orders[op]
	typed, wanted := c.source[lit.from:lit.to], lit.text
	switch lit.kind {
	case isNet, isAddress:
		network := lit.net
		if lit.kind == isAddress && op != "==" && op != "!=" || lit.kind == isNet && op != "==" && op != "!=" {
			c.wrong(lit.from, lit.to, "addresses can be compared only with ==, != and in")
			return nil
		}
		return func(v any) bool {
			text, _ := v.(string)
			a, err := netip.ParseAddr(text)
			return err == nil && network.Contains(a.WithZone(""))
		}
	case isNumber, isSize, isDuration, isTime, isBool:
		if name := called(f, lit); name != "" && (op == "==" || op == "!=") {
			wanted = name
		} else if f.Type == "text" && lit.kind == isNumber {
			c.wrong(lit.from, lit.to, "%s is text: write \"%s\"", o.path, typed)
			return nil
		}
	}
	if f.Type == "bytes" && (op == "==" || op == "!=") {
		if lit.kind != isText {
			wanted = typed
		}
		if b := parseHex(wanted); b != nil {
			wanted = hex.EncodeToString(b)
		}
	}
	equality := op == "==" || op == "!="
	if f.shown == nil && len(f.Values) > 0 && equality {
		if wanted = canonical(f, lit.text); wanted == "" {
			c.unknownValue(o, lit, f.Values)
			return nil
		}
	} else if real := canonical(f, lit.text); real != "" {
		wanted = real
	} else if f.outcomes != nil && equality && !endsInDigit(wanted) && !slices.Contains(f.outcomes(), wanted) {
		c.unknownValue(o, lit, f.outcomes())
		return nil
	}
	return func(v any) bool {
		text, ok := v.(string)
		return ok && ordered(strings.Compare(text, wanted))
	}
}

// unknownValue records the error that a field never has a value. It offers similar values, or
// else all of them.
func (c *compiler) unknownValue(o *operand, lit *literal, values []string) {
	n := Near{Wanted: lit.text}
	for _, v := range values {
		n.See(v)
	}
	offers := n.Values()
	switch {
	case len(offers) > 0:
		for i := range offers {
			offers[i] = strconv.Quote(offers[i])
		}
		c.wrong(lit.from, lit.to, "unknown value %q for %s; did you mean %s?", lit.text, o.path, either(offers))
	case len(values) <= maxListed:
		c.wrong(lit.from, lit.to, "unknown value %q for %s (want %s)", lit.text, o.path, either(values))
	default:
		c.wrong(lit.from, lit.to, "unknown value %q for %s%s", lit.text, o.path, similar(near(lit.text, values)))
	}
}

// endsInDigit reports whether a word ends in a digit, as names of unknown codes do.
func endsInDigit(word string) bool {
	return word != "" && word[len(word)-1] >= '0' && word[len(word)-1] <= '9'
}

// maxListed is the largest number of values that an error message lists.
const maxListed = 20

// called returns the name of a number in a text field that is a number on the wire, because
// Wireshark's filters use the number. It returns "" for other fields.
func called(f *Field, lit *literal) string {
	n, whole := lit.number.(int)
	if lit.kind != isNumber || !whole || n < 0 {
		return ""
	}
	own := f.Path[strings.LastIndexByte(f.Path, '.')+1:]
	for _, h := range header.All {
		for i := range h.Fields {
			if row := &h.Fields[i]; row.Format == field.Enum && row.Name == own {
				return row.Names(uint64(n))
			}
		}
	}
	return ""
}

// either joins words with commas, and the last two with "or".
func either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// below returns the first fields of an object.
func (c *compiler) below(path string) (names []string) {
	for _, name := range c.fields.Names() {
		if strings.HasPrefix(name, path+".") && len(names) < 3 {
			names = append(names, name)
		}
	}
	return names
}
