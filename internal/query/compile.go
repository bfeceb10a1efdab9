package query

import (
	"cmp"
	"encoding/hex"
	"net/netip"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/nfs"
)

// compiler converts the nodes of an expression into functions that evaluate it: names become
// look-ups of fields, and comparisons become tests.
type compiler struct {
	source
	fields Fields
	filter *Filter
	scopes []string // lists that the enclosing any look at

	outcomes map[*Field]map[string]bool // for possible
	patterns int                        // size of the regular expressions
}

// value is a part of an expression that returns a value, and condition one that is true or false.
type (
	value     func(f *Filter) any
	condition func(f *Filter) bool
)

// operand is one side of a comparison.
type operand struct {
	*node
	path      string // of the field
	field     *Field
	otherCase bool // upper and lower case of the name differ from the field
	lit       *literal
	word      string // the name as it was typed
}

// ofElement reports whether the operand is a field of an element of a list.
func (o *operand) ofElement() bool { return o.kind == nodeElement }

// pathOf returns the path that a node stands for, or "" if it stands for none.
func (c *compiler) pathOf(n *node) string {
	switch {
	case n.kind == nodeName:
		return n.text
	case n.kind == nodeElement:
		return c.scopes[len(c.scopes)-1] + n.text
	}
	return ""
}

// classify determines whether a side of a comparison is a field, a literal or neither.
func (c *compiler) classify(n *node) operand {
	o := operand{node: n, lit: n.literal, word: c.pathOf(n)}
	if o.lit != nil && o.lit.kind == isWord {
		o.word = o.lit.text
	} else if real := find(o.word, c.fields); o.word != "" && real != "" {
		o.path, o.field, o.otherCase = real, c.fields.Field(real), !c.fields.Has(o.word) && c.fields.Alias(o.word) == ""
	}
	return o
}

// field returns a look-up of a field.
func (c *compiler) field(o *operand) value {
	if o.ofElement() {
		return elementOf(o.text)
	}
	get, many := c.fields.getter(o.path), o.field.List
	c.filter.paths = append(c.filter.paths, o.path)
	return func(f *Filter) any {
		if many {
			return list(get(f.record))
		}
		return get(f.record)
	}
}

// elementOf returns a look-up of the part of the element of the enclosing any that is at a path such as .segments.length.
func elementOf(path string) value {
	names := strings.Split(path, ".")[1:]
	return func(f *Filter) any {
		v := f.element
		for _, name := range names {
			v = member(v, name)
		}
		return v
	}
}

// list returns a value as a list, which is empty if there is no value.
func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return []any{}
	case []any:
		return v
	}
	return []any{v}
}

// condition compiles a node in the place of a condition. A field without a comparison is true
// if it is present, and not false, zero or empty.
func (c *compiler) condition(n *node) condition {
	switch n.kind {
	case nodeComparison:
		return c.comparison(n)
	case nodeNot:
		holds := c.condition(n.below[0])
		return func(f *Filter) bool { return !holds(f) }
	case nodeLogic:
		parts := make([]condition, len(n.below))
		for i := range parts {
			parts[i] = c.condition(n.below[i])
		}
		or := n.text == "or"
		return func(f *Filter) bool {
			for _, holds := range parts {
				if holds(f) == or {
					return or
				}
			}
			return !or
		}
	case nodeAny:
		return c.any(n)
	}
	o := c.classify(n)
	switch {
	case o.path == "rpc" && c.fields == Transactions: // the protocol, as in Wireshark's filters
		return func(*Filter) bool { return true }
	case o.field == nil && o.word != "":
		panic(c.unknown(&o))
	case o.lit != nil && o.lit.kind != isBool:
		panic(c.wrong(o.from, o.to, "%s is not a condition; compare it with a field", c.source[o.from:o.to]))
	case o.lit != nil:
		return func(*Filter) bool { return o.lit.value == true }
	}
	of := c.field(&o)
	return func(f *Filter) bool { return truth(of(f)) }
}

// isOperation reports whether a word is the name of an NFS operation or procedure, which RPCs have.
func isOperation(word string, fields Fields) bool {
	return fields == Transactions && principals()[strings.ToUpper(word)]
}

// principals has the names of everything that an RPC to NFS can be sent for.
var principals = sync.OnceValue(func() map[string]bool { return setOf(nfs.PrincipalWords()) })

// setOf returns a set of words.
func setOf(words []string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, w := range words {
		set[w] = true
	}
	return set
}

// unknown returns the error that a field does not exist.
func (c *compiler) unknown(o *operand) *Error {
	e := c.wrong(o.from, o.to, "%s", unknown(o.word, c.fields))
	e.NoField = true
	return e
}

// any compiles any(list, condition). In the condition, .name is a field of an element of the list.
func (c *compiler) any(n *node) condition {
	o := c.classify(n.below[0])
	switch {
	case o.field == nil && o.word != "":
		panic(c.unknown(&o))
	case o.field == nil || o.field.Type != "object" || !o.field.List:
		panic(c.wrong(o.from, o.to, "any needs a list of objects, such as timeline"))
	}
	of := c.field(&o)
	c.scopes = append(c.scopes, o.path)
	holds := c.condition(n.below[1])
	c.scopes = c.scopes[:len(c.scopes)-1]
	return func(f *Filter) bool {
		outer := f.element
		hit := slices.ContainsFunc(list(of(f)), func(element any) bool {
			f.element = element
			return holds(f)
		})
		f.element = outer
		return hit
	}
}

// mirrored maps the operators to those with the same meaning if both sides are exchanged.
var mirrored = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}

// comparison compiles a comparison of a field with a constant, or with another field of the same type.
func (c *compiler) comparison(n *node) condition {
	left, right := c.classify(n.below[0]), c.classify(n.below[1])
	if right.field == nil || slices.Contains(right.field.Words(), left.word) { // otherwise a field that does not exist would be text
		takeWord(&left, &right)
	}
	takeWord(&right, &left)
	for _, o := range []*operand{&left, &right} {
		switch {
		case o.field != nil || o.lit != nil:
		case o.word != "":
			panic(c.unknown(o))
		default:
			panic(c.wrong(o.from, o.to, "a condition cannot be compared"))
		}
	}
	if left.lit != nil && left.lit.kind == isWord && (right.lit != nil || isOperation(right.word, c.fields)) {
		panic(c.unknown(&left))
	}
	op := n.text
	switch {
	case op == "in" && left.lit != nil && right.field != nil && right.field.List: // "READ" in operations
		return c.test(&right, "==", left.lit)
	case op == "in" && (right.lit == nil || right.lit.kind != isList && right.lit.kind != isRange && right.lit.kind != isNet):
		panic(c.wrong(right.from, right.to, "in must be followed by a list, such as [1, 2], or a network, such as 192.168.77.0/24"))
	case left.field != nil && right.lit != nil:
		return c.test(&left, op, right.lit)
	case right.field != nil && left.lit != nil && mirrored[op] != "":
		return c.test(&right, mirrored[op], left.lit)
	case left.lit != nil:
		panic(c.wrong(left.from, left.to, "the left side of %s must be a field", op))
	case op == "matches":
		panic(c.wrong(right.from, right.to, "matches must be followed by a regular expression in quotes"))
	case class(left.field) != class(right.field) || left.field.Type == "object":
		panic(c.wrong(right.from, right.to, "%s is %s and %s is %s", left.path, article(left.field), right.path, article(right.field)))
	}
	a, b := c.field(&left), c.field(&right)
	return func(f *Filter) bool { return compareFields(op, a(f), b(f)) }
}

// class returns what the types of fields whose values can be compared have in common.
func class(f *Field) string {
	switch {
	case textual(f):
		return "text"
	case f.Type == "hex" || f.Type == "duration":
		return "number"
	}
	return f.Type
}

// takeWord turns a word on the opposite side of a text field into text if the word is not a
// field, if it is a field only in another case or of another type, or if it is one of the values
// that the text field can have: at_fault == client.
func takeWord(o, opposite *operand) {
	if o.word == "" || o.lit != nil || o.ofElement() {
		return
	}
	text := opposite.field != nil && (textual(opposite.field) || opposite.field.shown != nil || len(opposite.field.Values) > 0 || opposite.field.Type == "bool")
	value := text && slices.Contains(opposite.field.Values, o.word)
	if value || o.field == nil && opposite.field != nil || text && o.field != nil && !opposite.otherCase && (o.otherCase || !textual(o.field) && textual(opposite.field) || o.field.Type == "bool" && opposite.field.Type != "bool") {
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
func (c *compiler) test(o *operand, op string, lit *literal) condition {
	c.filter.paths = append(c.filter.paths, o.path)
	t := &test{path: o.path, wanted: lit.text, negated: op == "!=", ofNull: lit.kind == isNull}
	shown := false
	t.accepts, shown = c.accepts(o, op, lit)
	if o.ofElement() {
		of := elementOf(o.text)
		return func(f *Filter) bool { return t.holds(of(f)) }
	}
	raw := func(r any) any { return c.fields.Raw(r, o.path) }
	get := c.fields.getter(o.path)
	switch searches := slices.Contains(searches, op) && op != "in"; {
	case o.field.nfs != nil && lit.kind != isNull:
		get = o.field.nfs.whole
	case shown:
		get = o.field.shown
	case searches && o.field.shown != nil && textual(o.field): // the value in the record, or the one in tables
		get = func(r any) any { return []any{raw(r), o.field.shown(r)} }
	case searches:
		get = raw
	}
	if (op == "==" || op == "in") && (lit.kind == isText || lit.kind == isWord || lit.kind == isNumber && o.field.Type == "hex") {
		if t.raw = raw; shown && o.field.nfs == nil {
			t.raw = o.field.shown
		}
		c.filter.noted = append(c.filter.noted, t)
		get = t.noting(get)
	}
	return func(f *Filter) bool { return t.holds(get(f.record)) }
}

// accepts returns the test of a single value: it reports whether the comparison is true for
// the value, or false in the case of !=. Shown reports whether the test is about the value
// that tables show for the field.
func (c *compiler) accepts(o *operand, op string, lit *literal) (accepts func(any) bool, shown bool) {
	f := o.field
	switch {
	case op == "in" && lit.kind != isNet:
		return c.acceptsOne(o, lit)
	case op == "in":
		op = "=="
	}
	if f.nfs != nil && lit.kind != isNull && lit.kind != isList {
		return c.acceptsNFS(o, op, lit), false
	}
	shownText := f.shown != nil && !textual(f) && f.Type != "hex"
	switch {
	case op == "matches":
		p := c.pattern(lit)
		return func(v any) bool { return v != nil && p.MatchString(textOf(v)) }, shownText
	case textTests[op] != nil:
		holds, wanted := textTests[op], lit.text
		return func(v any) bool { return v != nil && holds(textOf(v), wanted) }, shownText
	case lit.kind == isList || lit.kind == isRange:
		panic(c.wrong(lit.from, lit.to, "a list can follow only in, not %s", op))
	case lit.kind == isNull:
		if op != "==" && op != "!=" {
			panic(c.wrong(lit.from, lit.to, "null can be compared only with == and !="))
		}
		return func(v any) bool { return v == nil || f.Omitted && !truth(v) }, false
	case lit.kind == isBytes && f.Type != "bytes":
		panic(c.wrong(lit.from, lit.to, "%s", lit.why))
	}
	if lit.kind == isText && strings.Contains(". · - ?", lit.text) && len(lit.text) > 0 && (op == "==" || op == "!=") { // of cells: zero, none or unknown
		return func(v any) bool {
			return v == nil || v == "" || lit.text == v || strings.Contains(".·", lit.text) && v == 0
		}, f.shown != nil
	}
	return c.ofType(o, op, lit)
}

// maxPatterns is the size that the regular expressions of a filter may have together, because
// compiling them takes time: a{1000} has size 1000, and each byte counts as 8.
const maxPatterns = 1 << 16

// pattern compiles a regular expression.
func (c *compiler) pattern(lit *literal) *regexp.Regexp {
	if c.patterns += 8 * len(lit.text); c.patterns <= maxPatterns {
		if tree, err := syntax.Parse(lit.text, syntax.Perl); err == nil {
			c.patterns += sizeOf(tree)
		}
	}
	if c.patterns > maxPatterns {
		panic(c.wrong(lit.from, lit.to, "the regular expressions are too large"))
	}
	p, err := regexp.Compile(lit.text)
	if err != nil {
		panic(c.wrong(lit.from, lit.to, "invalid regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: ")))
	}
	return p
}

// sizeOf returns about the number of instructions of a regular expression.
func sizeOf(tree *syntax.Regexp) int {
	size := 1
	if tree.Op == syntax.OpLiteral {
		size = len(tree.Rune)
	}
	for _, part := range tree.Sub {
		size += sizeOf(part)
	}
	return size * max(tree.Min, tree.Max, 1)
}

// acceptsOne returns the test whether a single value is in a list or a range.
func (c *compiler) acceptsOne(o *operand, lit *literal) (accepts func(any) bool, shown bool) {
	elements := lit.list
	if lit.kind == isRange {
		elements = []literal{*lit}
	}
	var ones []func(any) bool
	for i := range elements {
		element := &elements[i]
		if element.kind == isRange {
			low, _ := c.accepts(o, ">=", &element.list[0])
			high, _ := c.accepts(o, "<=", &element.list[1])
			ones = append(ones, func(v any) bool { return low(v) && high(v) })
			continue
		}
		one, s := c.accepts(o, "==", element)
		if s != shown && i > 0 {
			panic(c.wrong(element.from, element.to, "the values of a list must have one type"))
		}
		shown = s
		ones = append(ones, one)
	}
	return func(v any) bool {
		return slices.ContainsFunc(ones, func(one func(any) bool) bool { return one(v) })
	}, shown
}

// fieldType says how fields of a type are compared: which literals have a value of the type,
// how such a value is read from text, and the messages about other literals, for the path of
// the field and the literal.
type fieldType struct {
	takes   []literalKind
	read    func(text string) (any, bool)
	wrong   string
	instead map[literalKind]string // for frequent mistakes
}

// fieldTypes has the types of fields that are compared by the order of their values.
var fieldTypes = map[string]fieldType{
	"number":   {[]literalKind{isNumber, isSize}, parseSize, "%[1]s is a number, such as 42; %[2]s is not", notDuration},
	"hex":      {[]literalKind{isNumber, isSize}, parseNumber, "%[1]s is a number, such as 0x4cc9dbf7; %[2]s is not", notDuration},
	"duration": {[]literalKind{isDuration, isNumber}, parseDuration, "%[1]s is a duration, such as 5ms, 20us or 1.5s; %[2]s is not", nil},
	"time":     {[]literalKind{isTime}, parseTime, "%[1]s is a time, such as 2026-11-21T05:20:00Z; frame.time_relative has the seconds since the start, as in frame.time_relative > 7.5", nil},
	"object":   {[]literalKind{isNumber, isSize}, parseSize, "", nil},
}

var notDuration = map[literalKind]string{isDuration: "%[2]s is a duration, but %[1]s is a number"}

// ofType returns the test of a single value, by the type of the field.
func (c *compiler) ofType(o *operand, op string, lit *literal) (accepts func(any) bool, shown bool) {
	f := o.field
	kind, known := fieldTypes[f.Type]
	ordered, typed := orders[op], c.source[lit.from:lit.to]
	words := lit.kind == isText || lit.kind == isWord
	wanted, ok := lit.value, slices.Contains(kind.takes, lit.kind)
	if words && kind.read != nil {
		wanted, ok = kind.read(strings.TrimLeft(lit.text, "<=≤~ "))
	}
	switch {
	case f.Type == "object" && f.shown == nil:
		panic(c.wrong(o.from, o.to, "%s is an object; use one of its fields, such as %s", o.path, strings.Join(c.below(o.path), ", ")))
	case f.Type == "duration" && lit.kind == isNumber && lit.value != 0 && !strings.HasSuffix(o.word, "_ns") && !strings.HasSuffix(o.word, ".ns"):
		panic(c.wrong(lit.from, lit.to, "%[1]s has no unit; write %[1]sms, %[1]sus or %[1]ss", typed))
	case ok:
		drawn := drawnAs(f, lit)
		return func(v any) bool {
			order, ok := compareOne(v, wanted)
			return ok && (ordered(order) || (op == "==" || op == "!=") && drawn(v))
		}, f.Type == "object"
	case f.Type == "bool":
		truths := map[string]bool{"true": true, "yes": true, "1": true, "false": false, "no": false, "0": false}
		wanted, ok := truths[strings.ToLower(lit.text)]
		if !ok && f.shown != nil && words {
			return c.asText(o, op, lit), true
		}
		if !ok || op != "==" && op != "!=" {
			panic(c.wrong(lit.from, lit.to, "%s is true or false", o.path))
		}
		return func(v any) bool { return v == wanted }, false
	case !known:
		return c.asText(o, op, lit), f.shown != nil && canonical(f, lit.text) == "" // The value that tables show counts if the field has no such value.
	case f.shown != nil && (words || f.Type == "object" || f.Type == "time" && lit.kind == isDuration):
		return c.asText(o, op, lit), true
	}
	wrong := cmp.Or(kind.instead[lit.kind], kind.wrong)
	if f.Type == "time" && !c.fields.Has("frame.time_relative") {
		wrong = "%[1]s is a time, such as 2026-11-21T05:20:00Z; --from and --to take seconds since the start"
	}
	panic(c.wrong(lit.from, lit.to, wrong, o.path, typed))
}

// drawnAs returns a function that reports whether tables show a duration or a number of bytes as the literal, which is rounded.
func drawnAs(f *Field, lit *literal) func(v any) bool {
	// without spaces, and without the marks of upper bounds and estimates
	typed := strings.TrimLeft(strings.ReplaceAll(lit.text, " ", ""), "<=≤~")
	draw := map[bool][]func(int64) string{true: {field.Duration, field.Brief}, false: {field.Size}}[f.Type == "duration"]
	if lit.kind == isNumber || f.Type == "hex" || f.Type == "time" {
		return func(any) bool { return false }
	}
	return func(v any) bool {
		n, is := v.(int)
		return is && slices.ContainsFunc(draw, func(draw func(int64) string) bool { return strings.ReplaceAll(draw(int64(n)), " ", "") == typed })
	}
}

// canonical returns the value of an enumeration that a word stands for, or "" if it stands
// for none.
func canonical(f *Field, word string) string {
	if real := synonyms[f.Path+"="+strings.ToLower(word)]; real != "" && slices.Contains(f.Values, real) {
		return real
	}
	for _, v := range f.Values {
		if strings.EqualFold(v, strings.ReplaceAll(word, " ", "_")) || strings.EqualFold(v, word) { // RDMA Read is rdma_read in records
			return v
		}
	}
	return ""
}

// asText returns the test of a single value of a text field.
func (c *compiler) asText(o *operand, op string, lit *literal) func(any) bool {
	f, ordered := o.field, orders[op]
	typed, wanted := string(c.source[lit.from:lit.to]), lit.text
	if f.outcomes != nil {
		wanted = strings.TrimSuffix(wanted, " !")               // the column STATUS marks findings
		if f.shown != nil && strings.HasSuffix(wanted, "_OK") { // NFS4_OK, MNT3_OK
			wanted = "ok"
		}
	}
	switch lit.kind {
	case isNet, isAddress:
		network := lit.net
		if lit.kind == isAddress && op != "==" && op != "!=" || lit.kind == isNet && op != "==" && op != "!=" {
			panic(c.wrong(lit.from, lit.to, "addresses can be compared only with ==, != and in"))
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
			panic(c.wrong(lit.from, lit.to, "%s is text: write \"%s\"", o.path, typed))
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
		if wanted = canonical(f, wanted); wanted == "" {
			c.unknownValue(o, lit, f.Values)
			return nil
		}
	} else if real := canonical(f, wanted); real != "" {
		wanted = real
	} else if f.outcomes != nil && equality && !endsInDigit(wanted) && !c.possible(f, wanted) {
		c.unknownValue(o, lit, f.outcomes())
		return nil
	}
	return func(v any) bool {
		text, ok := v.(string)
		return ok && ordered(strings.Compare(text, wanted))
	}
}

// possible reports whether a text may be one of the values that tables show for a field. All words of protocols are known, but not all texts of
// several words, such as NFS4 WRITE.
func (c *compiler) possible(f *Field, word string) bool {
	if strings.Contains(word, " ") {
		return true
	}
	if c.outcomes[f] == nil {
		c.outcomes[f] = setOf(f.outcomes())
	}
	return c.outcomes[f][word]
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
		panic(c.wrong(lit.from, lit.to, "unknown value %q for %s; did you mean %s?", lit.text, o.path, either(offers)))
	case len(values) <= maxListed:
		panic(c.wrong(lit.from, lit.to, "unknown value %q for %s (want %s)", lit.text, o.path, either(values)))
	default:
		panic(c.wrong(lit.from, lit.to, "unknown value %q for %s%s", lit.text, o.path, similar(near(lit.text, values))))
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
	n, whole := lit.value.(int)
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
