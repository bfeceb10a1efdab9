package query

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// orders maps the operators that depend on the order of two values to their meaning.
var orders = map[string]func(order int) bool{
	"==": func(o int) bool { return o == 0 },
	"!=": func(o int) bool { return o == 0 }, // test.negated negates the result
	"<":  func(o int) bool { return o < 0 },
	"<=": func(o int) bool { return o <= 0 },
	">":  func(o int) bool { return o > 0 },
	">=": func(o int) bool { return o >= 0 },
}

// textTests maps the operators that search text to their meaning.
var textTests = map[string]func(text, wanted string) bool{"contains": strings.Contains, "startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix}

// test is a comparison of a field with a constant.
type test struct {
	accepts func(value any) bool // reports whether a single value passes
	negated bool

	path   string // this and the rest is for [Filter.Near]
	wanted string
	raw    func(record any) any // returns the values that may be similar
	near   Near
}

// holds reports whether a value passes. A list passes if any element does; != is the
// opposite of ==.
func (t *test) holds(v any) bool {
	if list, ok := v.([]any); ok {
		return slices.ContainsFunc(list, t.accepts) != t.negated
	}
	return t.accepts(v) != t.negated
}

// any returns the value of a literal for comparisons with values of any type.
func (l *literal) any() any {
	switch l.kind {
	case isNull, isBool, isNumber, isDuration, isSize, isTime:
		return l.value
	case isNet:
		return l.net.String()
	}
	return l.text
}

// compareAny compares two values. If one is a list, the comparison is true if it is true for
// any element; != is the opposite of ==. Null equals only null, and is neither less nor
// greater than any value.
func compareAny(op string, a, b any, p *patterns) (bool, error) {
	switch op {
	case "!=":
		equal, err := compareAny("==", a, b, p)
		return !equal, err
	case "in":
		list, ok := b.([]any)
		if !ok {
			return false, fmt.Errorf("in must be followed by a list: name in [1, 2]")
		}
		for _, element := range list {
			if equal, err := compareAny("==", a, element, p); equal || err != nil {
				return equal, err
			}
		}
		return false, nil
	}
	a, b = orNull(plainNFS(a)), orNull(plainNFS(b))
	if list, ok := a.([]any); ok {
		return slices.ContainsFunc(list, func(element any) bool { hit, _ := compareAny(op, element, b, p); return hit }), nil
	}
	if list, ok := b.([]any); ok {
		return slices.ContainsFunc(list, func(element any) bool { hit, _ := compareAny(op, a, element, p); return hit }), nil
	}
	if a == nil || b == nil {
		return op == "==" && a == nil && b == nil, nil
	}
	if holds := textTests[op]; holds != nil {
		return holds(textOf(a), textOf(b)), nil
	}
	if op == "matches" {
		pattern, err := p.compile(textOf(b))
		return err == nil && pattern.MatchString(textOf(a)), err
	}
	order, ok := compareOne(a, b)
	if !ok {
		return false, fmt.Errorf("%s and %s cannot be compared", visible(textOf(a)), visible(textOf(b)))
	}
	return orders[op](order), nil
}

// orNull returns null instead of an empty list.
func orNull(v any) any {
	if list, ok := v.([]any); ok && len(list) == 0 {
		return nil
	}
	return v
}

// IsObject reports whether a value is a composite value, which is printed as JSON.
func IsObject(v any) bool {
	switch reflect.ValueOf(v).Kind() {
	case reflect.Struct, reflect.Map, reflect.Pointer, reflect.Slice, reflect.Array:
		return true
	}
	return false
}

// textOf returns a value as JSON shows it, without quotes.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case encoding.TextMarshaler:
		if text, err := v.MarshalText(); err == nil {
			return string(text)
		}
	}
	if IsObject(v) {
		if text, err := json.Marshal(v); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(v)
}

// Order compares two values of a field for sorting. It returns a negative number if a comes
// first, a positive number if b does, and 0 otherwise. Null comes last, and a list counts as
// its first element.
func Order(a, b any) int {
	first := func(v any) any {
		if list, ok := v.([]any); ok {
			if len(list) == 0 {
				return nil
			}
			return list[0]
		}
		return v
	}
	a, b = first(a), first(b)
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	order, _ := compareOne(a, b)
	return order
}

// compareNumbers compares two numbers, of type int, uint64 (for values that exceed an int)
// or float64. It returns false if one is not a number.
func compareNumbers(a, b any) (int, bool) {
	switch a := a.(type) {
	case int:
		switch b := b.(type) {
		case int:
			return cmp.Compare(a, b), true
		case uint64:
			if a < 0 || b > math.MaxInt64 {
				return -1, true
			}
			return cmp.Compare(uint64(a), b), true
		case float64:
			return cmp.Compare(float64(a), b), true
		}
	case uint64:
		switch b := b.(type) {
		case uint64:
			return cmp.Compare(a, b), true
		case float64:
			return cmp.Compare(float64(a), b), true
		}
		order, ok := compareNumbers(b, a)
		return -order, ok
	case float64:
		switch b := b.(type) {
		case float64:
			return cmp.Compare(a, b), true
		case int, uint64:
			order, ok := compareNumbers(b, a)
			return -order, ok
		}
	}
	return 0, false
}

// compareOne compares two single values. It returns false if they cannot be compared.
func compareOne(a, b any) (int, bool) {
	if order, ok := compareNumbers(a, b); ok {
		return order, true
	}
	switch a := a.(type) {
	case int, uint64: // The other may be text that looks like a number.
		if text, ok := b.(string); ok {
			if n, ok := parseNumber(text); ok {
				return compareNumbers(a, n)
			}
		}
	case string:
		switch b := b.(type) {
		case string:
			return cmp.Compare(a, b), true
		case int, uint64:
			order, ok := compareOne(b, a)
			return -order, ok
		}
	case bool:
		if b, ok := b.(bool); ok {
			switch {
			case a == b:
				return 0, true
			case b:
				return -1, true // false before true
			}
			return 1, true
		}
	case time.Time:
		switch b := b.(type) {
		case time.Time:
			return a.Compare(b), true
		case string:
			if t, ok := parseTime(b); ok {
				return a.Compare(t.(time.Time)), true
			}
		}
	}
	return 0, false
}

// maxKept is the number of regular expressions that are kept compiled. They come from
// records; those that are constants are compiled with the filter.
const maxKept = 64

// patterns caches compiled regular expressions.
type patterns map[string]*regexp.Regexp

// compile returns the compiled form of a regular expression.
func (p *patterns) compile(s string) (*regexp.Regexp, error) {
	if known := (*p)[s]; known != nil {
		return known, nil
	}
	compiled, err := regexp.Compile(s)
	if err != nil {
		return nil, fmt.Errorf("invalid regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if *p == nil || len(*p) >= maxKept {
		*p = patterns{}
	}
	(*p)[s] = compiled
	return compiled, nil
}

// calculate returns the result of an arithmetic operation: nil if a value is unknown, or if
// the divisor is zero. Results that exceed 62 bits are rounded.
func calculate(op string, a, b any) (any, error) {
	var numbers [2]float64
	for i, v := range []any{a, b} {
		switch v := v.(type) {
		case int:
			numbers[i] = float64(v)
		case uint64:
			numbers[i] = float64(v)
		case float64:
			numbers[i] = v
		case nil:
			return nil, nil
		default:
			return nil, fmt.Errorf("%s is not a number", visible(textOf(v)))
		}
	}
	x, y := numbers[0], numbers[1]
	if y == 0 && (op == "/" || op == "%") {
		return nil, nil
	}
	result := map[string]float64{"+": x + y, "-": x - y, "*": x * y, "/": x / y, "%": math.Mod(x, y)}[op]
	i, whole := a.(int)
	j, whole2 := b.(int)
	if !whole || !whole2 || op == "/" || math.Abs(result) > 1<<62 {
		return result, nil
	}
	switch op {
	case "+":
		return i + j, nil
	case "-":
		return i - j, nil
	case "*":
		return i * j, nil
	}
	return i % j, nil
}
