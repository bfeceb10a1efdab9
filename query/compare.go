package query

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// compareAny compares two values. Where one is a list, the comparison holds when
// it holds for any element; != is the opposite of ==. Null equals null alone,
// and is neither less nor more than anything.
func compareAny(op string, a, b any) (bool, error) {
	switch op {
	case "!=":
		equal, err := compareAny("==", a, b)
		return !equal, err
	case "in":
		list, ok := b.([]any)
		if !ok {
			return false, fmt.Errorf("in wants a list behind it: name in [1, 2]")
		}
		for _, element := range list {
			if equal, err := compareAny("==", a, element); equal || err != nil {
				return equal, err
			}
		}
		return false, nil
	}
	if list, ok := a.([]any); ok {
		return slices.ContainsFunc(list, func(element any) bool { hit, _ := compareAny(op, element, b); return hit }), nil
	}
	if list, ok := b.([]any); ok {
		return slices.ContainsFunc(list, func(element any) bool { hit, _ := compareAny(op, a, element); return hit }), nil
	}
	if a == nil || b == nil {
		return op == "==" && a == nil && b == nil, nil
	}
	switch op {
	case "matches", "contains", "startsWith", "endsWith":
		return compareText(op, fmt.Sprint(a), fmt.Sprint(b))
	}
	order, ok := compareOne(a, b)
	if !ok {
		return false, fmt.Errorf("%v (%T) and %v (%T) cannot be compared", a, a, b, b)
	}
	switch op {
	case "==":
		return order == 0, nil
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	}
	return order >= 0, nil
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

// compareOne orders two values of a kind.
func compareOne(a, b any) (int, bool) {
	switch a := a.(type) {
	case int:
		switch b := b.(type) {
		case int:
			return cmp.Compare(a, b), true
		case float64:
			return cmp.Compare(float64(a), b), true
		}
	case float64:
		switch b := b.(type) {
		case int:
			return cmp.Compare(a, float64(b)), true
		case float64:
			return cmp.Compare(a, b), true
		}
	case string:
		if b, ok := b.(string); ok {
			return cmp.Compare(a, b), true
		}
	case bool:
		if b, ok := b.(bool); ok {
			if a == b {
				return 0, true
			}
			return 1, true
		}
	case time.Time:
		switch b := b.(type) {
		case time.Time:
			return a.Compare(b), true
		case string:
			if t, err := time.Parse(time.RFC3339Nano, b); err == nil {
				return a.Compare(t), true
			}
		}
	}
	return 0, false
}

// patterns keeps compiled regular expressions.
var patterns sync.Map

func compareText(op, a, b string) (bool, error) {
	switch op {
	case "contains":
		return strings.Contains(a, b), nil
	case "startsWith":
		return strings.HasPrefix(a, b), nil
	case "endsWith":
		return strings.HasSuffix(a, b), nil
	}
	if known, ok := patterns.Load(b); ok {
		return known.(*regexp.Regexp).MatchString(a), nil
	}
	p, err := regexp.Compile(b)
	if err != nil {
		return false, err
	}
	patterns.Store(b, p)
	return p.MatchString(a), nil
}
