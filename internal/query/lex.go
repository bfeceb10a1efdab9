package query

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// What people write in a filter is not all in expr's language: 5ms, 1GiB,
// 192.168.77.0/24, xid-mismatch. This pass takes such words out of the source and
// leaves names in their place, says what stands where, and makes "not" bind as in
// Wireshark; expr parses the rest.

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
)

// literal is a value as it was typed.
type literal struct {
	kind     literalKind
	text     string // as typed; for quoted text, the content
	number   any    // int, uint64 or float64; the value of numbers, durations (ns) and sizes
	truth    bool
	time     record.Time
	net      netip.Prefix // for networks and addresses
	list     []literal
	why      string // for bytes: the error if the field is a number
	from, to int    // in the source
}

// token is a piece of the source.
type token struct {
	kind     tokenKind
	text     string // as it is passed to expr
	from, to int    // bytes of the source
}

type tokenKind uint8

const (
	tokenSpace tokenKind = iota
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

// The forms of a literal or word, tried in this order.
var (
	quoted   = pattern("^(?:\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`)")
	mac      = pattern(`^[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}\b`)
	instant  = pattern(`^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?\b`)
	ipv4     = pattern(`^\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?\b`)
	ipv6     = pattern(`^[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?:\.\d{1,3}){0,3}(?:/\d{1,3})?`)
	duration = pattern(`^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+\b`)
	size     = pattern(`^(\d+(?:\.\d+)?)(B|[KMGT]i?B?|kB)\b`)
	numeral  = pattern(`^(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)`)
	name     = pattern(`^[\pL_][\pL\pN_]*`)
	hyphened = pattern(`^[A-Za-z_]\w*(?:-[A-Za-z]\w*)+`)
	stray    = pattern(`^[\w.]+`)
	operator = pattern(`^(?:==|!=|<=|>=|&&|\|\||\?\?|\?\.|\.\.|\*\*|[-+*/%<>!?:|.,;~^=#&$@])`)
)

// scales maps the units of sizes to bytes. Units with an i, and the single letters that
// rdmadump prints, are powers of 1024.
var scales = map[string]float64{
	"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}

// wordOperators maps operators that are words to those of expr. Some are Wireshark's.
var wordOperators = map[string]string{
	"and": "and", "or": "or", "not": "not", "in": "in", "matches": "matches", "contains": "contains", "startsWith": "startsWith", "endsWith": "endsWith",
	"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}

// lexed is an expression in the form that expr can parse.
type lexed struct {
	source   string
	expr     string
	at       []int // byte of the source for each rune of expr
	literals []literal
}

// placeholder returns the name that replaces a literal.
func placeholder(i int) string { return "__" + strconv.Itoa(i) }

// literalOf returns the literal that a name replaces, and whether it replaces one.
func (l *lexed) literalOf(name string) (literal, bool) {
	digits, ok := strings.CutPrefix(name, "__")
	i, err := strconv.Atoi(digits)
	if !ok || err != nil || i >= len(l.literals) {
		return literal{}, false
	}
	return l.literals[i], true
}

// lex prepares a source for expr.
func lex(source string, fields Fields) (*lexed, *Error) {
	l := &lexed{source: source}
	var tokens []token
	wrong := func(from, to int, format string, args ...any) *Error {
		return &Error{source, from, to, fmt.Sprintf(format, args...)}
	}
	for at := 0; at < len(source); {
		rest := source[at:]
		// Infix reports whether an operand comes before, so that an operator may follow.
		infix := false
		for i := len(tokens) - 1; i >= 0; i-- {
			if tokens[i].kind != tokenSpace {
				infix = tokens[i].kind == tokenOperand || tokens[i].kind == tokenClose
				break
			}
		}
		member := at > 0 && source[at-1] == '.' && (at < 2 || source[at-2] != '.')
		add := func(kind tokenKind, text string, length int) {
			tokens = append(tokens, token{kind, text, at, at + length})
			at += length
		}
		lit := func(v literal, length int) {
			v.text, v.from, v.to = cmp.Or(v.text, rest[:length]), at, at+length
			l.literals = append(l.literals, v)
			add(tokenOperand, placeholder(len(l.literals)-1), length)
		}
		digit := rest[0] >= '0' && rest[0] <= '9'
		switch {
		case strings.ContainsRune(" \t\r\n", rune(rest[0])):
			add(tokenSpace, " ", 1)
		case strings.ContainsRune("\"'`", rune(rest[0])):
			m := quoted().FindString(rest)
			if m == "" {
				return nil, wrong(at, len(source), "the closing quote is missing")
			}
			text := m[1 : len(m)-1]
			if rest[0] != '`' {
				text = unquote(text)
			}
			l.literals = append(l.literals, literal{kind: isText, text: text, from: at, to: at + len(m)})
			add(tokenOperand, placeholder(len(l.literals)-1), len(m))
		case strings.ContainsRune("([{", rune(rest[0])):
			add(tokenOpen, rest[:1], 1)
		case strings.ContainsRune(")]}", rune(rest[0])):
			add(tokenClose, rest[:1], 1)
		case digit && stateidForm().MatchString(rest):
			lit(literal{kind: isBytes, why: "a stateid is not a number"}, len(stateidForm().FindString(rest)))
		case !member && isBytePairs(rest):
			lit(literal{kind: isBytes, why: "bytes in hex are not a number"}, len(pairs().FindString(rest)))
		case !member && mac().MatchString(rest):
			m := mac().FindString(rest)
			lit(literal{kind: isText, text: strings.ToLower(m)}, len(m))
		case digit && instant().MatchString(rest):
			m := instant().FindString(rest)
			at64, ok := parseTime(m)
			if !ok {
				return nil, wrong(at, at+len(m), "%s is not a time; write 2026-11-21T05:20:00Z", m)
			}
			lit(literal{kind: isTime, time: at64}, len(m))
		case digit && ipv4().MatchString(rest):
			m := ipv4().FindString(rest)
			v, err := parseNet(m)
			if err != nil {
				return nil, wrong(at, at+len(m), "%s is not an address; write an address such as 192.168.77.1 or a network such as 192.168.77.0/24", m)
			}
			lit(v, len(m))
		case !member && isIPv6(rest):
			m := ipv6().FindString(rest)
			v, _ := parseNet(m)
			lit(v, len(m))
		case digit && duration().MatchString(rest):
			m := duration().FindString(rest)
			d, err := time.ParseDuration(m)
			if err != nil {
				return nil, wrong(at, at+len(m), "%s is too long for a duration", m)
			}
			lit(literal{kind: isDuration, number: int(d)}, len(m))
		case digit && size().MatchString(rest):
			m := size().FindStringSubmatch(rest)
			v, _ := strconv.ParseFloat(m[1], 64)
			if v *= scales[m[2]]; v >= 1<<63 {
				return nil, wrong(at, at+len(m[0]), "%s is too large for a size", m[0])
			}
			lit(literal{kind: isSize, number: int(v)}, len(m[0]))
		case digit:
			m := numeral().FindString(rest)
			if whole := stray().FindString(rest); len(whole) > len(m) && whole[len(m)] != '.' {
				why := fmt.Sprintf("%s is not a number; units are ns, us, ms, s, m and h for time, and B, KiB, MiB and GiB for sizes", whole)
				if !hexWord().MatchString(whole) {
					return nil, wrong(at, at+len(whole), "%s", why)
				}
				lit(literal{kind: isBytes, why: why}, len(whole))
				break
			}
			v, ok := parseNumber(m)
			if !ok {
				why := fmt.Sprintf("%s is too large; numbers have 64 bits", m)
				if !hexWord().MatchString(m) {
					return nil, wrong(at, at+len(m), "%s", why)
				}
				lit(literal{kind: isBytes, why: why}, len(m))
				break
			}
			lit(literal{kind: isNumber, number: v}, len(m))
		case !member && hyphened().MatchString(rest):
			m := hyphened().FindString(rest)
			parts := strings.Split(m, "-")
			fieldsAll := !slices.ContainsFunc(parts, func(p string) bool { return find(p, fields) == "" })
			next := rest[len(m):]
			switch path := find(m, fields); {
			case path != "" && !strings.HasPrefix(next, "."):
				add(tokenOperand, path, len(m))
			case fieldsAll || strings.HasPrefix(next, ".") || strings.HasPrefix(next, "("):
				add(tokenOperand, parts[0], len(parts[0]))
			default:
				lit(literal{kind: isWord}, len(m))
			}
		case name().MatchString(rest):
			m := name().FindString(rest)
			op, isOperator := wordOperators[m]
			if !isOperator || member {
				add(tokenOperand, m, len(m))
				break
			}
			if m != "not" && !infix {
				if len(m) > 2 || m == "in" || m == "or" {
					return nil, wrong(at, at+len(m), "an operand is missing before %s", m)
				}
				add(tokenOperand, m, len(m)) // Words such as eq may be text.
				break
			}
			if m == "not" && infix {
				op = "!in" // expr has not in, not contains and so on.
			}
			add(tokenOperator, op, len(m))
		case operator().MatchString(rest):
			m := operator().FindString(rest)
			switch {
			case m == "=" || m == "==" && strings.HasPrefix(rest, "==="):
				if m == "=" && strings.HasPrefix(rest, "=~") {
					return nil, wrong(at, at+2, "did you mean matches? It is followed by a regular expression")
				}
				return nil, wrong(at, at+1, "did you mean ==?")
			case (m == "<" && strings.HasPrefix(rest, "<>")):
				return nil, wrong(at, at+2, "did you mean !=?")
			case m == "&":
				return nil, wrong(at, at+1, "did you mean and?")
			case m == "#": // the current element
				add(tokenOperand, m, 1)
			case m == "~":
				add(tokenOperator, " matches ", 1)
			default:
				add(tokenOperator, m, len(m))
			}
		default:
			_, width := utf8.DecodeRuneInString(rest)
			return nil, wrong(at, at+width, "unexpected character %s", visible(rest[:width]))
		}
	}
	l.join(tokens)
	return l, nil
}

// join writes the tokens for expr. It puts the term that follows "not", up to the next "and"
// or "or", into parentheses, and turns a set in braces into a list.
func (l *lexed) join(tokens []token) {
	closes := map[int]int{} // number of parentheses to close before each token
	var b strings.Builder
	emit := func(text string, at int) {
		b.WriteString(text)
		for range []rune(text) {
			l.at = append(l.at, at)
		}
	}
	set := 0 // depth of braces that are sets
	for i, t := range tokens {
		for range closes[i] {
			emit(")", t.from)
		}
		if set > 0 && t.kind == tokenOperand && kindBefore(tokens, i) == tokenOperand { // Wireshark separates the elements of a set by spaces, too.
			emit(",", t.from)
		}
		switch {
		case t.kind == tokenOperator && t.text == "!in":
			emit(" not ", t.from)
		case t.kind == tokenOperator && (t.text == "not" || t.text == "!"):
			emit("not (", t.from)
			closes[endOfTerm(tokens, i+1)]++
		case t.text == "{" && previous(tokens, i) == "in":
			set++
			emit("[", t.from)
		case t.text == "}" && set > 0:
			set--
			emit("]", t.from)
		case t.kind == tokenOperator && name().MatchString(t.text):
			emit(" "+t.text+" ", t.from)
		default:
			emit(t.text, t.from)
		}
	}
	for range closes[len(tokens)] {
		emit(")", len(l.source))
	}
	l.at = append(l.at, len(l.source))
	l.expr = b.String()
}

// previous returns the text of the token before i, ignoring spaces.
func previous(tokens []token, i int) string {
	for i--; i >= 0; i-- {
		if tokens[i].kind != tokenSpace {
			return tokens[i].text
		}
	}
	return ""
}

// kindBefore returns the kind of the token before i, ignoring spaces.
func kindBefore(tokens []token, i int) tokenKind {
	for i--; i >= 0; i-- {
		if tokens[i].kind != tokenSpace {
			return tokens[i].kind
		}
	}
	return tokenSpace
}

// endOfTerm returns the token at which the term that begins at i ends: the next operator that
// binds less tightly than a comparison.
func endOfTerm(tokens []token, i int) int {
	for depth := 0; i < len(tokens); i++ {
		switch t := tokens[i]; t.kind {
		case tokenOpen:
			depth++
		case tokenClose:
			if depth--; depth < 0 {
				return i
			}
		case tokenOperator:
			if depth == 0 && slices.Contains([]string{"and", "&&", "or", "||", "?", ":", ",", ";", "|", "??"}, t.text) {
				return i
			}
		}
	}
	return i
}

var pairs = pattern(`^[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){1,127}`)

// isBytePairs reports whether s begins with bytes in hex that are separated by colons. Six
// bytes count as a MAC address instead, and eight as an IPv6 address.
func isBytePairs(s string) bool {
	n := (len(pairs().FindString(s)) + 1) / 3
	return n != 6 && n != 8 && hexPairs().MatchString(s)
}

// isIPv6 reports whether s begins with an IPv6 address or network.
func isIPv6(s string) bool {
	m := ipv6().FindString(s)
	if m == "" || strings.HasPrefix(m, ":") && !strings.HasPrefix(m, "::") {
		return false
	}
	_, err := parseNet(m)
	return err == nil
}

// parseNet parses an address or a network.
func parseNet(s string) (literal, error) {
	if strings.Contains(s, "/") {
		p, err := netip.ParsePrefix(s)
		return literal{kind: isNet, net: p.Masked()}, err
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return literal{}, err
	}
	return literal{kind: isAddress, text: a.String(), net: netip.PrefixFrom(a, a.BitLen())}, nil
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
func parseTime(s string) (record.Time, bool) {
	for _, form := range timeForms {
		if t, err := time.Parse(form, s); err == nil {
			return record.Time(t.UnixNano()), true
		}
	}
	return 0, false
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
