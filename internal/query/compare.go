package query

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
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
	ofNull  bool // the constant is null

	path   string // this and the rest is for [Filter.Near]
	wanted string
	raw    func(record any) any // returns the values that may be similar
	near   Near
}

// holds reports whether a value passes. A list passes if any element does, and is null if it is empty. != is the opposite of ==,
// but as in Wireshark and SQL a field without a value is not unlike a constant other than null.
func (t *test) holds(v any) bool {
	list, many := v.([]any)
	switch none := v == nil || v == "" || many && len(list) == 0; {
	case none && many && t.ofNull:
		return !t.negated
	case none && t.negated && !t.ofNull:
		return false
	case many:
		return slices.ContainsFunc(list, t.accepts) != t.negated
	}
	return t.accepts(v) != t.negated
}

// compareFields compares the values of two fields. If one is a list, the comparison is true if it is true for
// any element; != is the opposite of == for values that exist. Null equals only null, and is neither less nor
// greater than any value, nor unlike it.
func compareFields(op string, a, b any) bool {
	a, b = orNull(a), orNull(b)
	if op == "!=" {
		return a != nil && b != nil && !compareFields("==", a, b)
	}
	if list, ok := a.([]any); ok {
		return slices.ContainsFunc(list, func(element any) bool { return compareFields(op, element, b) })
	}
	if list, ok := b.([]any); ok {
		return slices.ContainsFunc(list, func(element any) bool { return compareFields(op, a, element) })
	}
	if a == nil || b == nil {
		return op == "==" && a == nil && b == nil
	}
	if holds := textTests[op]; holds != nil {
		return holds(textOf(a), textOf(b))
	}
	order, ok := compareOne(a, b)
	return ok && orders[op](order)
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
	i, small := a.(int)
	j, small2 := b.(int)
	u, large := a.(uint64)
	v, large2 := b.(uint64)
	switch {
	case small && small2:
		return cmp.Compare(i, j), true
	case large && large2:
		return cmp.Compare(u, v), true
	case small && large2:
		return -1, true
	case large && small2:
		return 1, true
	}
	x, known := asFloat(a)
	y, known2 := asFloat(b)
	return cmp.Compare(x, y), known && known2
}

// asFloat returns a number as a float64. It returns false for other values.
func asFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// compareOne compares two single values. It returns false if they cannot be compared.
func compareOne(a, b any) (int, bool) {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return cmp.Compare(a, b), ok
	case bool: // false before true
		b, ok := b.(bool)
		number := map[bool]int{true: 1}
		return cmp.Compare(number[a], number[b]), ok
	case time.Time:
		b, ok := b.(time.Time)
		return a.Compare(b), ok
	}
	return compareNumbers(a, b)
}
