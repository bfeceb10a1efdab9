package query

import (
	"slices"
	"strings"
)

// node is a part of an expression, with the parts below it.
type node struct {
	kind     nodeKind
	text     string   // operator, function, or path of a name
	literal  *literal // of a literal, and of a list or range of literals
	below    []*node
	element  bool // whether it depends on the element of the enclosing predicate
	from, to int  // in the source
}

type nodeKind uint8

const (
	nodeLiteral    nodeKind = iota
	nodeName                // a path: reply.credits
	nodeElement             // # or .path: the element of the enclosing predicate, or a part of it
	nodeMember              // .name of any other value
	nodeLogic               // and, or: of two or more conditions
	nodeNot                 // of a condition
	nodeComparison          // of two values
	nodeArithmetic          // of two values
	nodeRange               // 16..17
	nodeList                // [16, 17] or {16 17}
	nodeIndex               // list[0]
	nodeSlice               // list[0:2]; the parts that are missing are nil
	nodeLength              // len(list)
	nodePredicate           // any(list, condition)
)

// These are the levels at which operators bind.
const (
	levelOr = iota
	levelAnd
	levelComparison
	levelRange
	levelSum
	levelProduct
	levelSign
)

// levelOps has the operators of a level.
type levelOps struct {
	kind nodeKind
	ops  []string
}

// levels has the operators between two operands, by how tightly they bind.
var levels = [...]levelOps{
	levelOr:         {nodeLogic, []string{"or"}},
	levelAnd:        {nodeLogic, []string{"and"}},
	levelComparison: {nodeComparison, []string{"==", "!=", "<", "<=", ">", ">=", "in", "matches", "contains", "startsWith", "endsWith"}},
	levelRange:      {nodeRange, []string{".."}},
	levelSum:        {nodeArithmetic, []string{"+", "-"}},
	levelProduct:    {nodeArithmetic, []string{"*", "/", "%"}},
}

// maxDepth is the number of levels, such as parentheses and not, that an expression may have
// inside each other. It bounds the recursion of the parser and of evaluation.
const maxDepth = 200

// parser makes nodes of tokens by precedence climbing.
type parser struct {
	source
	tokens []token // the first is the next one; the last is the end
	last   token   // the one before
	depth  int
	inside int // number of the enclosing predicates
}

// parse returns the node of a whole source.
func parse(s source, fields Fields) *node {
	p := &parser{source: s, tokens: lex(s, fields)}
	root := p.expression(levelOr)
	if p.tokens[0].kind != tokenEnd {
		panic(p.unexpected())
	}
	return root
}

// take returns the next token and passes over it. It does not pass over the end.
func (p *parser) take() token {
	if p.last = p.tokens[0]; p.last.kind != tokenEnd {
		p.tokens = p.tokens[1:]
	}
	return p.last
}

// takeIf passes over the next token if it is this operator or bracket, and reports whether it is.
func (p *parser) takeIf(text string) bool {
	t := &p.tokens[0]
	is := t.text == text && t.kind != tokenOperand && t.kind != tokenEnd
	if is {
		p.take()
	}
	return is
}

// need passes over the next token, which must be this operator or bracket.
func (p *parser) need(text string) {
	if !p.takeIf(text) {
		panic(p.unexpected())
	}
}

// unexpected returns the error that the next token cannot be where it is.
func (p *parser) unexpected() *Error {
	t := p.tokens[0]
	text := string(p.source[t.from:t.to])
	switch {
	case t.kind == tokenEnd && p.last.text == "%":
		text = "something is missing after %; a percentage that a table prints needs quotes, as in '5%'"
	case t.kind == tokenEnd:
		text = "something is missing at the end"
	case text == "|":
		text = "did you mean or?"
	case t.kind == tokenOperand && text != "#":
		text = "unexpected " + text + "; and, or, or an operator such as == must separate two operands"
	default:
		text = "unexpected " + text
	}
	return p.wrong(t.from, t.to, "%s", text)
}

// node returns a node that begins at from and ends after the last token.
func (p *parser) node(kind nodeKind, text string, from int, below ...*node) *node {
	return &node{
		kind: kind, text: text, below: below, from: from, to: p.last.to,
		element: slices.ContainsFunc(below, func(n *node) bool { return n != nil && n.element }),
	}
}

// expression reads operands, and the operators between them that bind at least as tightly as
// a level.
func (p *parser) expression(least int) *node {
	if p.depth++; p.depth > maxDepth {
		t := p.tokens[0]
		panic(p.wrong(t.from, t.to, "the expression is nested too deeply: it may have %d levels of parentheses, not, and functions", maxDepth))
	}
	defer func() { p.depth-- }()
	left := p.operand()
	for {
		t := p.tokens[0]
		not := t.kind == tokenOperator && t.text == "not" // as in "not in"
		if not {
			if t = p.tokens[1]; !slices.Contains(searches, t.text) || t.kind != tokenOperator {
				p.take()
				panic(p.unexpected())
			}
		}
		level := slices.IndexFunc(levels[:], func(l levelOps) bool { return slices.Contains(l.ops, t.text) })
		if t.kind != tokenOperator || level < least {
			return left
		}
		if not {
			p.take()
		}
		p.take()
		right := p.expression(level + 1)
		if left.kind == nodeLogic && left.text == t.text {
			left.below, left.to, left.element = append(left.below, right), p.last.to, left.element || right.element
			continue
		}
		ends := []*node{left, right}
		left = p.node(levels[level].kind, t.text, left.from, left, right)
		if slices.Contains(unequal, t.text) {
			left = p.chain(left, right)
		} else if low, high := ends[0].literal, ends[1].literal; level == levelRange && low.number() && high.number() {
			left.constant(isRange, ends)
		}
		if not {
			left = p.node(nodeNot, "not", left.from, left)
		}
	}
}

// These are the comparisons that can follow not, and those that can follow each other.
var (
	searches = []string{"in", "matches", "contains", "startsWith", "endsWith"}
	unequal  = []string{"<", "<=", ">", ">="}
)

// chain reads the comparisons that follow another one, of which right is the right side:
// 1ms < latency < 5ms stands for 1ms < latency and latency < 5ms.
func (p *parser) chain(left, right *node) *node {
	for p.tokens[0].kind == tokenOperator && slices.Contains(unequal, p.tokens[0].text) {
		op, middle := p.take().text, right
		right = p.expression(levelComparison + 1)
		left = p.node(nodeLogic, "and", left.from, left, p.node(nodeComparison, op, middle.from, middle, right))
	}
	return left
}

// operand reads a value with the signs before it and the parts after it, or a condition after
// not, which ends before the next and or or.
func (p *parser) operand() *node {
	afterIn := p.last.kind == tokenOperator && p.last.text == "in"
	t := p.tokens[0]
	is := func(kind tokenKind, text string) bool { return t.kind == kind && t.text == text && t.literal == nil }
	switch {
	case is(tokenOperator, "not"):
		p.take()
		return p.node(nodeNot, "not", t.from, p.expression(levelComparison))
	case is(tokenOperator, "-"):
		p.take()
		return p.negative(t.from, p.expression(levelSign))
	case is(tokenOperator, "+"):
		p.take()
		return p.expression(levelSign)
	case p.inside > 0 && is(tokenOperand, "#"):
		p.take()
		return p.parts(&node{kind: nodeElement, element: true, from: t.from, to: t.to})
	case p.inside > 0 && is(tokenOperator, "."):
		return p.parts(&node{kind: nodeElement, element: true, from: t.from, to: t.to})
	case t.literal != nil:
		p.take()
		return &node{kind: nodeLiteral, literal: t.literal, from: t.from, to: t.to}
	case t.kind == tokenOperand && t.text != "#" && p.tokens[1].text == "(":
		return p.parts(p.call())
	case t.kind == tokenOperand && (t.text != "#" || p.inside == 0): // a heading
		p.take()
		return p.parts(&node{kind: nodeName, text: t.text, from: t.from, to: t.to})
	case is(tokenOpen, "("):
		p.take()
		n := p.expression(levelOr)
		p.need(")")
		return p.parts(n)
	case is(tokenOpen, "["):
		return p.parts(p.list("]"))
	case is(tokenOpen, "{") && afterIn:
		return p.list("}")
	}
	panic(p.unexpected())
}

// negative returns the negative of a value.
func (p *parser) negative(from int, n *node) *node {
	if n.kind == nodeLiteral {
		if v, small := n.literal.value.(int); small {
			n.literal.value, n.literal.text, n.literal.from, n.from = -v, "-"+n.literal.text, from, from
			return n
		}
	}
	zero := &node{kind: nodeLiteral, literal: &literal{kind: isNumber, value: 0}}
	return p.node(nodeArithmetic, "-", from, zero, n)
}

// number reports whether the literal, which may be nil, is a number of any kind.
func (l *literal) number() bool {
	return l != nil && (l.kind == isNumber || l.kind == isDuration || l.kind == isSize)
}

// constant makes the node a literal of a kind, too, if its parts are literals or names, which are words then.
func (n *node) constant(kind literalKind, parts []*node) {
	lit := &literal{kind: kind, from: n.from, to: n.to}
	for _, part := range parts {
		switch {
		case part.literal != nil:
			lit.list = append(lit.list, *part.literal)
		case part.kind == nodeName:
			lit.list = append(lit.list, literal{kind: isWord, text: part.text, from: part.from, to: part.to})
		default:
			return
		}
	}
	n.literal = lit
}

// parts reads the names and indexes that follow a value: .name, [0], [0:2].
func (p *parser) parts(n *node) *node {
	for {
		switch {
		case p.takeIf("."):
			names := []string{n.text, p.name()}
			if n.kind != nodeName && n.kind != nodeElement {
				n = p.node(nodeMember, names[1], n.from, n)
				continue
			}
			for p.takeIf(".") {
				names = append(names, p.name())
			}
			n.text, n.to = strings.Join(names, "."), p.last.to
		case p.takeIf("["):
			var low, high *node
			if p.tokens[0].text != ":" {
				low = p.expression(levelOr)
			}
			if !p.takeIf(":") {
				p.need("]")
				n = p.node(nodeIndex, "", n.from, n, low)
				continue
			}
			if p.tokens[0].text != "]" {
				high = p.expression(levelOr)
			}
			p.need("]")
			n = p.node(nodeSlice, "", n.from, n, low, high)
		case (n.kind == nodeName || n.kind == nodeElement || n.kind == nodeMember) && p.takeIf("("):
			panic(p.wrong(n.from, n.to, "only functions can be called: %s", functionForms))
		default:
			return n
		}
	}
}

// name reads a name after a dot.
func (p *parser) name() string {
	t := p.tokens[0]
	if t.kind != tokenOperand || t.literal != nil || t.text == "#" {
		panic(p.unexpected())
	}
	return p.take().text
}

// list reads the elements of a list up to the bracket that closes it. Those of a set in braces
// may be separated by spaces, as in Wireshark's filters.
func (p *parser) list(closing string) *node {
	n := &node{kind: nodeList, from: p.take().from}
	for !p.takeIf(closing) {
		element := p.expression(levelOr)
		n.below, n.element = append(n.below, element), n.element || element.element
		if next := p.tokens[0]; !p.takeIf(",") && next.text != closing && (closing == "]" || next.kind != tokenOperand) {
			panic(p.unexpected())
		}
	}
	n.to = p.last.to
	n.constant(isList, n.below)
	return n
}

// functionForms is the list of functions for messages.
const functionForms = "len(...), any(...), all(...), none(...), one(...), count(...)"

// call reads the arguments of a call.
func (p *parser) call() *node {
	name := p.take()
	p.need("(")
	n := &node{kind: nodePredicate, text: name.text, from: name.from}
	switch name.text {
	case "len":
		n.kind = nodeLength
	case "any", "all", "none", "one", "count":
	default:
		panic(p.wrong(name.from, name.to, "unknown function %s; there are %s", name.text, functionForms))
	}
	n.below = []*node{p.expression(levelOr)}
	n.element = n.below[0].element
	if n.kind == nodePredicate && p.takeIf(",") {
		p.inside++
		n.below = append(n.below, p.expression(levelOr))
		p.inside--
	} else if n.kind == nodePredicate && name.text != "count" && p.tokens[0].text == ")" {
		panic(p.wrong(name.from, p.tokens[0].to, "%s needs a list and a condition, as in %s(timeline, .event == nak)", name.text, name.text))
	}
	p.need(")")
	n.to = p.last.to
	return n
}
