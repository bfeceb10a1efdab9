package query

import (
	"fmt"
	"slices"
	"strings"
)

// Near collects the values that are most similar to a wanted value, for a message if no
// record has that value. It stops collecting when it sees the wanted value itself.
type Near struct {
	Wanted string
	found  bool
	best   [nearMost]candidate
	n      int
	last   string
}

// nearMost is the number of similar values that Near keeps.
const nearMost = 3

// nearLongest is the length of the longest text that is compared, in bytes, because
// computing distances takes time.
const nearLongest = 64

type candidate struct {
	text     string
	distance int
}

// See adds text to the candidates if it is similar to the wanted value.
func (n *Near) See(text string) {
	if n.found || len(text) > nearLongest || len(n.Wanted) > nearLongest || text == "" || text == n.last {
		return
	}
	n.last = text
	lower := strings.ToLower(text)
	d := distances(strings.ToLower(n.Wanted), lower)[len(lower)]
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

// Values returns the most similar values, the most similar first. It returns none if the
// wanted value was seen.
func (n *Near) Values() (values []string) {
	if n.found {
		return nil
	}
	for _, c := range n.best[:n.n] {
		values = append(values, c.text)
	}
	return values
}

// noting returns a look-up that does what get does, and passes the values of the field to
// the Near of the test.
func (t *test) noting(get func(any) any) func(any) any {
	t.near.Wanted = t.wanted
	return func(r any) any {
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

// typed returns a value as a person would type it: a number is in hex if the wanted value
// is.
func (t *test) typed(v any) string {
	if strings.HasPrefix(t.wanted, "0x") {
		switch v.(type) {
		case int, uint64:
			return fmt.Sprintf("0x%0*x", len(t.wanted)-2, v)
		}
	}
	return textOf(v)
}

// Near returns a message for each comparison that no record met, with similar values: "no
// record has xid 0x4a5eb126; similar: 0x4a5eb127".
func (f *Filter) Near() (hints []string) {
	for _, t := range f.noted {
		if t.near.found {
			continue
		}
		if values := t.near.Values(); len(values) > 0 {
			hints = append(hints, fmt.Sprintf("no record has %s %s; similar: %s", t.path, visible(t.wanted), visible(strings.Join(values, ", "))))
		}
	}
	return hints
}
