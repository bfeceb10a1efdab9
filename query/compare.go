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

// comparisons are the operators that are compiled.
var comparisons = []string{"==", "!=", "<", "<=", ">", ">=", "matches", "contains", "startsWith", "endsWith", "in"}

// orders are the operators that look at the order of two values.
var orders = map[string]func(order int) bool{
	"==": func(o int) bool { return o == 0 },
	"!=": func(o int) bool { return o == 0 }, // the test is negated as a whole
	"<":  func(o int) bool { return o < 0 },
	"<=": func(o int) bool { return o <= 0 },
	">":  func(o int) bool { return o > 0 },
	">=": func(o int) bool { return o >= 0 },
}

// textTests are the operators that look into text.
var textTests = map[string]func(text, wanted string) bool{"contains": strings.Contains, "startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix}

// test is a comparison. One with a constant has it in accepts.
type test struct {
	op       string
	get      func(record any) any // of a field
	accepts  func(value any) bool // one value, of a list each
	negated  bool
	from, to int // in the source

	notes  bool // whether near values are of interest
	path   string
	wanted string
	raw    func(record any) any
	near   Near
}

// holds says whether a value passes: of a list any element. != is the opposite
// of ==.
func (t *test) holds(v any) bool {
	if list, ok := v.([]any); ok {
		return slices.ContainsFunc(list, t.accepts) != t.negated
	}
	return t.accepts(v) != t.negated
}

// value is a literal as expr and compareAny have it.
func (l *literal) value() any {
	switch l.kind {
	case isNull:
		return nil
	case isBool:
		return l.truth
	case isNumber, isDuration, isSize:
		return l.number
	case isTime:
		return time.Unix(0, int64(l.time)).UTC()
	case isNet:
		return l.net.String()
	case isList:
		list := make([]any, len(l.list))
		for i := range l.list {
			list[i] = l.list[i].value()
		}
		return list
	}
	return l.text
}

// compare compares two values that only the record shows.
func (f *Filter) compare(t *test, a, b any) (bool, error) {
	hit, err := compareAny(t.op, a, b, &f.patterns)
	if err != nil {
		f.failed = &Error{f.source, t.from, t.to, err.Error()}
	}
	return hit, err
}

// compareAny compares two values. Where one is a list, the comparison holds when
// it holds for any element; != is the opposite of ==. Null equals null alone,
// and is neither less nor more than anything.
func compareAny(op string, a, b any, p *patterns) (bool, error) {
	switch op {
	case "!=":
		equal, err := compareAny("==", a, b, p)
		return !equal, err
	case "in":
		list, ok := b.([]any)
		if !ok {
			return false, fmt.Errorf("in wants a list behind it: name in [1, 2]")
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

// orNull is null in the place of a list that is empty.
func orNull(v any) any {
	if list, ok := v.([]any); ok && len(list) == 0 {
		return nil
	}
	return v
}

// IsObject says that a value has parts, and no text of its own but its JSON.
func IsObject(v any) bool {
	switch reflect.ValueOf(v).Kind() {
	case reflect.Struct, reflect.Map, reflect.Pointer, reflect.Slice, reflect.Array:
		return true
	}
	return false
}

// textOf is a value as JSON has it, without quotes.
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

// Order orders two values of a field, to sort by: null comes last, of a list its
// first element counts.
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

// compareNumbers orders two numbers: ints, unsigned ones of 64 bits that no int
// holds, and floats.
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

// compareOne orders two values of a kind.
func compareOne(a, b any) (int, bool) {
	if order, ok := compareNumbers(a, b); ok {
		return order, true
	}
	switch a := a.(type) {
	case int, uint64: // text that looks like a number
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
				return a.Compare(time.Unix(0, int64(t))), true
			}
		}
	}
	return 0, false
}

// maxPatterns bounds the regular expressions that are kept; those of constants
// are compiled with the filter, only what comes out of records gets here.
const maxPatterns = 64

// patterns keeps compiled regular expressions.
type patterns map[string]*regexp.Regexp

func (p *patterns) compile(s string) (*regexp.Regexp, error) {
	if known := (*p)[s]; known != nil {
		return known, nil
	}
	compiled, err := regexp.Compile(s)
	if err != nil {
		return nil, fmt.Errorf("no regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if *p == nil || len(*p) >= maxPatterns {
		*p = patterns{}
	}
	(*p)[s] = compiled
	return compiled, nil
}
