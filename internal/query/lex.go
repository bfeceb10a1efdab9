package query

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// literalKind is the form in which a literal was written.
type literalKind uint8

const (
	isNull literalKind = iota
	isBool
	isNumber
	isDuration
	isSize
	isTime
	isAddress
	isNet
	isText  // quoted
	isWord  // not quoted
	isBytes // hex digits that are not a number
	isList
	isRange // 16..17; list has its ends
)

// literal is a value as it was typed.
type literal struct {
	kind     literalKind
	text     string       // as typed; for quoted text, the content
	value    any          // of numbers, durations (in ns) and sizes, an int, uint64 or float64; of times and truths
	net      netip.Prefix // for networks and addresses
	list     []literal
	why      string // for bytes: the error if the field is a number
	from, to int    // in the source
}

// token is a piece of the source.
type token struct {
	kind     tokenKind
	text     string   // of a name, its path; of an operator, the one that it stands for
	literal  *literal // nil for a token that is no literal
	from, to int      // bytes of the source
}

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenOperand
	tokenOperator
	tokenOpen
	tokenClose
)

// pattern returns a function that returns a regular expression. It is compiled at the first
// call, because most runs have no filter.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// These match the parts of an expression.
var (
	quoted   = pattern("^(?:\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`)")
	numeral  = pattern(`^(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)`)
	stray    = pattern(`^[\w.]+`)
	hyphened = pattern(`^[A-Za-z_]\w*(?:-[A-Za-z]\w*)+`) // a word such as xid-mismatch
	slashed  = pattern(`^[A-Za-z_]\w*(?:[/-]\w+)*`)      // perhaps a heading, such as ce-marks/cnps or would-fit-64k
)

// longestHeading is more than the number of bytes of any heading.
const longestHeading = 64

// A form is a way to write a literal. Match returns the literal at the beginning of a source,
// or "" if there is none; read returns its value.
type form struct {
	begins begins
	match  func(rest string) string
	read   func(text string) (v literal, ok bool)
	wrong  string // what is wrong with a literal that cannot be read
}

// begins says where a form is tried, because trying all of them everywhere takes time.
type begins uint8

const (
	withDigits begins = iota // at digits that are not a whole number
	withColon                // at a colon, or at the digits or letters before one
)

// forms returns the forms of literals that are not quoted. The first that matches counts;
// what begins with a digit and has none of these forms is a number.
var forms = sync.OnceValue(func() []form {
	match := func(expression string) func(string) string { return regexp.MustCompile(expression).FindString }
	bytes := func(why string) func(string) (literal, bool) {
		return func(string) (literal, bool) { return literal{kind: isBytes, why: why}, true }
	}
	return []form{
		{withDigits, stateidForm().FindString, bytes("a stateid is not a number"), ""},
		{withColon, bytePairs, bytes("bytes in hex are not a number"), ""},
		{withColon, match(`^[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}\b`), func(mac string) (literal, bool) {
			return literal{kind: isText, text: strings.ToLower(mac)}, true
		}, ""},
		{withDigits, match(`^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?\b`), func(text string) (literal, bool) {
			at, ok := parseTime(text)
			return literal{kind: isTime, value: at}, ok
		}, "is not a time; write 2026-11-21T05:20:00Z"},
		{
			withDigits, match(`^\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?\b`), parseNet,
			"is not an address; write an address such as 192.168.77.1 or a network such as 192.168.77.0/24",
		},
		{withColon, ipv6, parseNet, ""},
		{withDigits, match(`^(?:\d+(?:\.\d+)? ?(?:ns|us|µs|ms|s|min|m|h|d))+\b`), func(text string) (literal, bool) {
			d, ok := parseDuration(text)
			return literal{kind: isDuration, value: d}, ok
		}, "is too long for a duration"},
		{withDigits, sizes().FindString, func(text string) (literal, bool) {
			v, ok := parseSize(text)
			return literal{kind: isSize, value: v}, ok
		}, "is too large for a size"},
	}
})

// sizes matches a size.
var sizes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\d+(?:\.\d+)?) ?(B|[KMGT]i?B?|kB)\b`) })

// parseSize parses a size, in bytes, or a number.
func parseSize(s string) (any, bool) {
	m := sizes().FindStringSubmatch(s)
	if m == nil || m[0] != s {
		return parseNumber(s)
	}
	v, _ := strconv.ParseFloat(m[1], 64)
	v *= scales[m[2]]
	return int(v), v < 1<<63
}

// scales maps the units of sizes to bytes. Units with an i, and the single letters that
// rdmadump prints, are powers of 1024.
var scales = map[string]float64{
	"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}

// wordOperators maps operators that are words to those that they stand for. Some are Wireshark's.
var wordOperators = map[string]string{
	"and": "and", "or": "or", "not": "not", "in": "in", "matches": "matches", "contains": "contains", "startsWith": "startsWith", "endsWith": "endsWith",
	"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}

// signs maps operators that are signs to those that they stand for, if these are others.
var signs = map[string]string{"&&": "and", "||": "or", "!": "not", "~": "matches"}

// twoSigns has the operators of two signs.
var twoSigns = []string{"==", "!=", "<=", ">=", "&&", "||", ".."}

// lexer divides a source into tokens.
type lexer struct {
	source
	fields Fields
	tokens []token
	at     int  // byte of the source
	infix  bool // an operand, or an operand and not, comes before, so that an operator may follow
}

// lex returns the tokens of a source. The last one is the end.
func lex(s source, fields Fields) []token {
	l := &lexer{source: s, fields: fields}
	for l.at < len(s) {
		if strings.IndexByte(" \t\r\n", s[l.at]) >= 0 {
			l.at++
		} else {
			l.next(string(s[l.at:]))
		}
	}
	l.add(tokenEnd, "", 0)
	return l.tokens
}

// add appends a token of some bytes.
func (l *lexer) add(kind tokenKind, text string, length int) {
	l.tokens = append(l.tokens, token{kind: kind, text: text, from: l.at, to: l.at + length})
	l.at += length
	l.infix = kind == tokenOperand || kind == tokenClose || l.infix && kind == tokenOperator && text == "not"
}

// literal appends a literal of some bytes, which has the text that was typed unless it has
// another one.
func (l *lexer) literal(v literal, length int) {
	v.from, v.to = l.at, l.at+length
	if v.text == "" && v.kind != isText {
		v.text = string(l.source[v.from:v.to])
	}
	l.add(tokenOperand, "", length)
	l.tokens[len(l.tokens)-1].literal = &v
}

// fail stops at an error in the next bytes.
func (l *lexer) fail(length int, format string, args ...any) {
	panic(l.wrong(l.at, l.at+length, format, args...))
}

// next appends the token with which the rest of the source begins.
func (l *lexer) next(rest string) {
	member := l.at > 0 && l.source[l.at-1] == '.' && (l.at < 2 || l.source[l.at-2] != '.')
	digit := rest[0] >= '0' && rest[0] <= '9'
	tries := [...]bool{withDigits: digit && !endsNumber(rest), withColon: !member && beforeColon(rest)}
	for _, f := range forms() {
		if !tries[f.begins] {
			continue
		}
		if m := f.match(rest); m != "" {
			v, ok := f.read(m)
			if !ok {
				l.fail(len(m), "%s %s", m, f.wrong)
			}
			l.literal(v, len(m))
			return
		}
	}
	name := nameAt(rest)
	heading, word := "", ""
	if after := rest[len(name):]; name != "" && !member && after != "" && (after[0] == '-' || after[0] == '/') {
		typed := slashed().FindString(rest[:min(len(rest), longestHeading)])
		if heading = find(typed, l.fields); heading != "" {
			name = typed
		}
		word = hyphened().FindString(rest)
	}
	switch {
	case heading != "":
		l.add(tokenOperand, heading, len(name))
	case strings.IndexByte("\"'`", rest[0]) >= 0:
		l.quoted(rest)
	case strings.IndexByte("([{", rest[0]) >= 0:
		l.add(tokenOpen, rest[:1], 1)
	case strings.IndexByte(")]}", rest[0]) >= 0:
		l.add(tokenClose, rest[:1], 1)
	case digit:
		l.number(rest)
	case name == "":
		l.operator(rest)
	case word != "":
		l.literal(literal{kind: isWord}, len(word))
	default:
		l.name(name, member)
	}
}

// nameAt returns the name with which s begins, or "" if there is none.
func nameAt(s string) string {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsNumber(r)) {
			return s[:i]
		}
	}
	return s
}

// endsNumber reports whether the digits with which s begins end before a character that no
// literal has, and no unit follows.
func endsNumber(s string) bool {
	s = strings.TrimLeft(s, "0123456789")
	if len(s) > 1 && s[0] == ' ' && strings.IndexByte("nuµmshdBkKMGT", s[1]) >= 0 {
		return false
	}
	return s == "" || strings.IndexByte(" ,)]}+*%<>=!", s[0]) >= 0
}

// beforeColon reports whether s begins with a colon, or with at most four hex digits before one.
func beforeColon(s string) bool {
	i := strings.IndexByte(s[:min(len(s), 5)], ':')
	return i >= 0 && strings.Trim(s[:i], "0123456789abcdefABCDEF") == ""
}

// quoted appends text in quotes.
func (l *lexer) quoted(rest string) {
	m := quoted().FindString(rest)
	if m == "" {
		l.fail(len(rest), "the closing quote is missing")
	}
	text := m[1 : len(m)-1]
	if rest[0] != '`' {
		text = unquote(text)
	}
	l.literal(literal{kind: isText, text: text}, len(m))
}

// number appends a number, or bytes in hex that begin with a digit.
func (l *lexer) number(rest string) {
	m := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	if after := rest[len(m):]; after != "" && strings.IndexByte("_.eExXbBoO", after[0]) >= 0 {
		m = numeral().FindString(rest)
	}
	v, ok := parseNumber(m)
	why := fmt.Sprintf("%s is too large; numbers have 64 bits", m)
	if after := rest[len(m):]; after != "" && inWord(after[0]) && stray().MatchString(after) {
		m += stray().FindString(after)
		ok, why = false, fmt.Sprintf("%s is not a number; units are ns, us, ms, s, m and h for time, and B, KiB, MiB and GiB for sizes", m)
	}
	switch {
	case ok:
		l.literal(literal{kind: isNumber, value: v}, len(m))
	case hexWord().MatchString(m):
		l.literal(literal{kind: isBytes, why: why}, len(m))
	default:
		l.fail(len(m), "%s", why)
	}
}

// name appends a name, or an operator that is a word.
func (l *lexer) name(m string, member bool) {
	op, isOperator := wordOperators[m]
	constant := map[string]literalKind{"true": isBool, "false": isBool, "null": isNull, "nil": isNull}
	kind, isConstant := constant[m]
	switch {
	case isConstant && !member:
		l.literal(literal{kind: kind, value: map[string]any{"true": true, "false": false}[m]}, len(m))
	case !isOperator || member || m != "not" && !l.infix && len(m) == 2 && m != "in" && m != "or":
		l.add(tokenOperand, m, len(m)) // Words such as eq may be text.
	case m != "not" && !l.infix:
		l.fail(len(m), "an operand is missing before %s", m)
	default:
		l.add(tokenOperator, op, len(m))
	}
}

// operator appends an operator that is a sign.
func (l *lexer) operator(rest string) {
	m := rest[:1]
	if two := rest[:min(len(rest), 2)]; slices.Contains(twoSigns, two) {
		m = two
	}
	switch {
	case !strings.Contains("-+*/%<>!?:|.,;~^=#&$@", m[:1]):
		_, width := utf8.DecodeRuneInString(rest)
		l.fail(width, "unexpected character %s", visible(rest[:width]))
	case strings.HasPrefix(rest, "=~"):
		l.fail(2, "did you mean matches? It is followed by a regular expression")
	case m == "=" || strings.HasPrefix(rest, "==="):
		l.fail(1, "did you mean ==?")
	case strings.HasPrefix(rest, "<>"):
		l.fail(2, "did you mean !=?")
	case m == "&":
		l.fail(1, "did you mean and?")
	default:
		l.add(tokenOperator, cmp.Or(signs[m], m), len(m))
	}
}

var groups = pattern(`^[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?:\.\d{1,3}){0,3}(?:/\d{1,3})?`)

// mostPairs is the number of bytes of the longest file handle.
const mostPairs = 128

// bytePairs returns the bytes in hex, separated by colons, with which s begins, or "" if it does not begin with three or
// more. Six bytes count as a MAC address instead, and eight as an IPv6 address.
func bytePairs(s string) string {
	n, end := 0, 0
	for n < mostPairs && len(s) >= 3*n+2 && isHex(s[3*n]) && isHex(s[3*n+1]) {
		n, end = n+1, 3*n+2
		if end == len(s) || s[end] != ':' {
			break
		}
	}
	if n < 3 || n == 6 || n == 8 || end < len(s) && (s[end] == ':' || inWord(s[end])) {
		return ""
	}
	return s[:end]
}

// isHex reports whether a character is a hex digit.
func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// inWord reports whether a character is an ASCII letter, a digit or an underscore.
func inWord(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_'
}

// ipv6 returns the IPv6 address or network with which s begins, or "" if it does not.
func ipv6(s string) string {
	if strings.HasPrefix(s, ":") && (!strings.HasPrefix(s, "::") || strings.HasPrefix(s, ":::")) {
		return ""
	}
	m := groups().FindString(s)
	if _, ok := parseNet(m); !ok {
		return ""
	}
	return m
}

// parseNet parses an address or a network.
func parseNet(s string) (literal, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return literal{kind: isNet, net: p.Masked()}, true
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return literal{}, false
	}
	return literal{kind: isAddress, text: a.String(), net: netip.PrefixFrom(a, a.BitLen())}, true
}

// parseNumber parses a number: an int if it fits, else a uint64, else a float64.
func parseNumber(s string) (any, bool) {
	s = strings.ReplaceAll(s, "_", "")
	base := 10
	if len(s) > 1 && s[0] == '0' && (s[1]|0x20 == 'x' || s[1]|0x20 == 'b' || s[1]|0x20 == 'o') {
		base = 0
	}
	if v, err := strconv.ParseInt(s, base, 64); err == nil {
		return int(v), true
	}
	if v, err := strconv.ParseUint(s, base, 64); err == nil {
		return v, true
	}
	if base == 10 && strings.ContainsAny(s, ".eE") {
		v, err := strconv.ParseFloat(s, 64)
		return v, err == nil
	}
	return nil, false
}

// timeForms lists the forms of a time. A time without a zone is UTC.
var timeForms = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02",
}

// parseTime parses a time in one of the forms.
func parseTime(s string) (any, bool) {
	for _, form := range timeForms {
		if t, err := time.Parse(form, s); err == nil {
			return timeValue(record.Time(t.UnixNano())), true
		}
	}
	return nil, false
}

// parseDuration parses a duration, in ns, with or without a space before its unit, and of one unit if that is min or d.
func parseDuration(s string) (any, bool) {
	s = strings.ReplaceAll(s, " ", "")
	if days, is := strings.CutSuffix(s, "d"); is {
		n, err := strconv.ParseFloat(days, 64)
		return int(n * 86400e9), err == nil && n < math.MaxInt64/86400e9
	}
	d, err := time.ParseDuration(strings.Replace(s, "min", "m", 1))
	return int(d), err == nil
}

// unquote returns quoted text with its escapes resolved.
func unquote(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for s != "" {
		if s[0] == '\\' && len(s) > 1 && (s[1] == '"' || s[1] == '\'' || s[1] == '`') {
			b.WriteByte(s[1])
			s = s[2:]
			continue
		}
		r, multibyte, rest, err := strconv.UnquoteChar(s, 0)
		if err != nil { // This is an escape of a regular expression, such as \d.
			b.WriteByte(s[0])
			s = s[1:]
			continue
		}
		if multibyte || r >= 0x80 && s[0] != '\\' {
			b.WriteRune(r)
		} else {
			b.WriteByte(byte(r))
		}
		s = rest
	}
	return b.String()
}
