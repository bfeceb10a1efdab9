package query

import (
	"slices"
	"strings"
)

// node is a part of an expression, with the parts below it.
type node struct {
	kind     nodeKind
	text     string   // operator, or path of a name
	literal  *literal // of a literal
	below    []*node
	from, to int // in the source
}

type nodeKind uint8

const (
	nodeLiteral    nodeKind = iota // also a range, and a set
	nodeName                       // a path: reply.credits
	nodeElement                    // .path: a part of the element that any looks at
	nodeLogic                      // and, or: of two or more conditions
	nodeNot                        // of a condition
	nodeComparison                 // of two values
	nodeAny                        // any(list, condition)
)

// These are the operators that compare two values, those of them that can follow not, and those that can follow each other.
var (
	comparisons = []string{"==", "!=", "<", "<=", ">", ">=", "in", "matches", "contains", "startsWith", "endsWith"}
	searches    = []string{"in", "matches", "contains", "startsWith", "endsWith"}
	unequal     = []string{"<", "<=", ">", ">="}
)

// maxDepth is the number of levels, such as parentheses and not, that an expression may have
// inside each other. It bounds the recursion of the parser and of evaluation.
const maxDepth = 200

// parser makes nodes of tokens. Each kind of node has a method that reads it: or binds least, then and, not, and comparisons.
type parser struct {
	source
	tokens []token // the first is the next one; the last is the end
	last   token   // the one before
	depth  int
	inside int // number of the enclosing any
}

// parse returns the node of a whole source.
func parse(s source, fields Fields) *node {
	p := &parser{source: s, tokens: lex(s, fields)}
	root := p.or()
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

// next reports whether the next token is this operator or bracket.
func (p *parser) next(text string) bool {
	t := &p.tokens[0]
	return t.text == text && t.kind != tokenOperand && t.kind != tokenEnd
}

// takeIf passes over the next token if it is this operator or bracket, and reports whether it is.
func (p *parser) takeIf(text string) bool {
	is := p.next(text)
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
	case t.kind == tokenEnd:
		text = "something is missing at the end"
	case text == "%":
		text = "a percentage that a table prints needs quotes, as in '5%'"
	case text == "/":
		text = "a path needs quotes, as in \"/file\""
	case text == "|":
		text = "did you mean or?"
	case t.kind == tokenOperand:
		text = "unexpected " + text + "; and, or, or an operator such as == must separate two operands"
	default:
		text = "unexpected " + text
	}
	return p.wrong(t.from, t.to, "%s", text)
}

// node returns a node that begins at from and ends after the last token.
func (p *parser) node(kind nodeKind, text string, from int, below ...*node) *node {
	return &node{kind: kind, text: text, below: below, from: from, to: p.last.to}
}

// deeper counts a level of the expression. The caller decrements p.depth when it is read.
func (p *parser) deeper() {
	if p.depth++; p.depth > maxDepth {
		t := p.tokens[0]
		panic(p.wrong(t.from, t.to, "the expression is nested too deeply: it may have %d levels of parentheses, not, and any", maxDepth))
	}
}

// or reads conditions with or between them.
func (p *parser) or() *node {
	p.deeper()
	n := p.logic("or", func() *node { return p.logic("and", p.not) })
	p.depth--
	return n
}

// logic reads conditions with an operator between them.
func (p *parser) logic(op string, part func() *node) *node {
	n := part()
	parts := []*node{n}
	for p.takeIf(op) {
		parts = append(parts, part())
	}
	if len(parts) > 1 {
		return p.node(nodeLogic, op, n.from, parts...)
	}
	return n
}

// not reads a comparison, with not before it or without.
func (p *parser) not() *node {
	from := p.tokens[0].from
	if !p.takeIf("not") {
		return p.comparison()
	}
	p.deeper()
	n := p.not()
	p.depth--
	return p.node(nodeNot, "not", from, n)
}

// comparison reads a value, and what it is compared with if an operator follows. 1ms < latency < 5ms stands for 1ms < latency and latency < 5ms.
func (p *parser) comparison() *node {
	left := p.operand()
	not := p.takeIf("not") // as in "not in"
	if t := p.tokens[0]; not && (t.kind != tokenOperator || !slices.Contains(searches, t.text)) {
		panic(p.unexpected())
	}
	if t := p.tokens[0]; t.kind != tokenOperator || !slices.Contains(comparisons, t.text) {
		return left
	}
	op := p.take().text
	right := p.operand()
	n := p.node(nodeComparison, op, left.from, left, right)
	for slices.Contains(unequal, op) && p.tokens[0].kind == tokenOperator && slices.Contains(unequal, p.tokens[0].text) {
		op, left = p.take().text, right
		right = p.operand()
		n = p.node(nodeLogic, "and", n.from, n, p.node(nodeComparison, op, left.from, left, right))
	}
	if not {
		return p.node(nodeNot, "not", n.from, n)
	}
	return n
}

// operand reads a literal, a range or a set of them, a name, or a condition in parentheses or of any.
func (p *parser) operand() *node {
	t := p.tokens[0]
	afterIn := p.last.kind == tokenOperator && p.last.text == "in"
	switch {
	case t.literal != nil || p.next("-"):
		low := p.value()
		if !p.takeIf("..") {
			return p.literal(t.from, low)
		}
		return p.literal(t.from, literal{kind: isRange, list: []literal{low, p.value()}})
	case t.kind == tokenOperand && t.text == "any" && p.tokens[1].text == "(":
		return p.any()
	case t.kind == tokenOperand:
		return p.path(p.node(nodeName, p.take().text, t.from))
	case p.inside > 0 && p.next("."):
		return p.path(&node{kind: nodeElement, from: t.from})
	case p.takeIf("("):
		n := p.or()
		p.need(")")
		return n
	case p.next("["):
		return p.set("]")
	case p.next("{") && afterIn:
		return p.set("}")
	}
	panic(p.unexpected())
}

// literal returns the node of a literal that begins at from and ends after the last token.
func (p *parser) literal(from int, v literal) *node {
	v.from, v.to = from, p.last.to
	return &node{kind: nodeLiteral, literal: &v, from: v.from, to: v.to}
}

// value reads one literal, which may be negative.
func (p *parser) value() literal {
	t := p.tokens[0]
	negative := p.takeIf("-")
	if p.tokens[0].literal == nil {
		panic(p.unexpected())
	}
	v := *p.take().literal
	if negative {
		number, small := v.value.(int)
		if !small {
			panic(p.wrong(t.from, p.last.to, "%s cannot be negative", v.text))
		}
		v.value, v.text, v.from = -number, "-"+v.text, t.from
	}
	return v
}

// path reads the names after dots that follow a name or an element.
func (p *parser) path(n *node) *node {
	names := []string{n.text}
	for p.takeIf(".") {
		t := p.tokens[0]
		if t.kind != tokenOperand || t.literal != nil {
			panic(p.unexpected())
		}
		names = append(names, p.take().text)
	}
	n.text = strings.Join(names, ".")
	if n.to = p.last.to; p.next("(") {
		panic(p.wrong(n.from, n.to, "the only function is any(list, condition), as in any(timeline, .event == nak)"))
	}
	return n
}

// set reads the literals of a set up to the bracket that closes it; names are words there. Those of a set in braces
// may be separated by spaces, as in Wireshark's filters.
func (p *parser) set(closing string) *node {
	set := literal{kind: isList}
	from := p.take().from
	for !p.takeIf(closing) {
		if t := p.tokens[0]; t.kind != tokenOperand && !p.next("-") {
			panic(p.unexpected())
		}
		element := p.operand()
		switch {
		case element.kind == nodeName:
			set.list = append(set.list, literal{kind: isWord, text: element.text, from: element.from, to: element.to})
		case element.kind == nodeLiteral:
			set.list = append(set.list, *element.literal)
		default:
			panic(p.wrong(element.from, element.to, "a set has values, such as [1, 2]"))
		}
		if next := p.tokens[0]; !p.takeIf(",") && next.text != closing && (closing == "]" || next.kind != tokenOperand) {
			panic(p.unexpected())
		}
	}
	return p.literal(from, set)
}

// any reads any(list, condition).
func (p *parser) any() *node {
	from := p.take().from
	p.need("(")
	list := p.operand()
	switch {
	case p.next(")"):
		panic(p.wrong(from, p.tokens[0].to, "any needs a list and a condition, as in any(timeline, .event == nak)"))
	case list.kind == nodeName && p.inside > 0: // Each element would look at all of the list, and each of these again.
		panic(p.wrong(list.from, list.to, "any inside any looks at a list of the element, as in any(read_chunks, any(.segments, .length > 1MiB))"))
	}
	p.need(",")
	p.inside++
	condition := p.or()
	p.inside--
	p.need(")")
	return p.node(nodeAny, "", from, list, condition)
}
