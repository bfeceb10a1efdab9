package query

import (
	"fmt"
	"slices"
	"strings"
)

// Near collects the values that are nearest to one that was asked for, until it
// is found: what to say when nothing matches.
type Near struct {
	Wanted string
	found  bool
	best   [nearMost]candidate
	n      int
	last   string
}

const nearMost = 3

// nearLongest is the longest text that is looked at; distances take time.
const nearLongest = 64

type candidate struct {
	text     string
	distance int
}

// See looks at a value.
func (n *Near) See(text string) {
	if n.found || len(text) > nearLongest || len(n.Wanted) > nearLongest || text == "" || text == n.last {
		return
	}
	n.last = text
	d := distance(strings.ToLower(n.Wanted), strings.ToLower(text))
	if d == 0 && text == n.Wanted {
		n.found = true
		return
	}
	if d > max(len(n.Wanted)/3, min(2, len(n.Wanted)-1)) || n.n == nearMost && d >= n.best[nearMost-1].distance {
		return
	}
	for i := range n.n {
		if n.best[i].text == text {
			return
		}
	}
	if n.n < nearMost {
		n.n++
	}
	n.best[n.n-1] = candidate{text, d}
	slices.SortStableFunc(n.best[:n.n], func(a, b candidate) int { return a.distance - b.distance })
}

// Values are the nearest values, the nearest first; none where it was found.
func (n *Near) Values() (values []string) {
	if n.found {
		return nil
	}
	for _, c := range n.best[:n.n] {
		values = append(values, c.text)
	}
	return values
}

// noting is a look-up that shows the values which it finds to the test's Near.
func (f *Filter) noting(index int, get func(any) any) func(any) any {
	f.tests[index].near.Wanted = f.tests[index].wanted
	return func(r any) any {
		t := &f.tests[index]
		v := get(r)
		if t.near.found {
			return v
		}
		if t.holds(v) {
			t.near.found = true
			return v
		}
		switch raw := t.raw(r).(type) {
		case nil:
		case []any:
			for _, element := range raw {
				t.near.See(t.typed(element))
			}
		default:
			t.near.See(t.typed(raw))
		}
		return v
	}
}

// typed is a value as it would be typed: a number in hex, where the one that was
// asked for is.
func (t *test) typed(v any) string {
	if strings.HasPrefix(t.wanted, "0x") {
		switch v.(type) {
		case int, uint64:
			return fmt.Sprintf("0x%0*x", len(t.wanted)-2, v)
		}
	}
	return textOf(v)
}

// Near says, of each comparison that nothing met, which values came nearest: "xid
// 0x4a5eb126 is not there; near it: 0x4a5eb127".
func (f *Filter) Near() (hints []string) {
	for i := range f.tests {
		t := &f.tests[i]
		if !t.notes || t.near.found {
			continue
		}
		if values := t.near.Values(); len(values) > 0 {
			hints = append(hints, fmt.Sprintf("no %s is %s; near it: %s", t.path, visible(t.wanted), visible(strings.Join(values, ", "))))
		}
	}
	return hints
}
