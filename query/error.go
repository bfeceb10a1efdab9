package query

import (
	"fmt"
	"slices"
	"strings"
)

// Error is what is wrong with an expression, and where: From and To are bytes of
// Source, which is what the person typed.
type Error struct {
	Source   string
	From, To int
	Message  string
}

// Error says it, with the expression below and a mark under the place.
func (e *Error) Error() string {
	from := min(max(e.From, 0), len(e.Source))
	to := min(max(e.To, from), len(e.Source))
	line := visible(e.Source)
	before, under := len([]rune(e.Source[:from])), len([]rune(e.Source[from:to]))
	return fmt.Sprintf("-Y: %s\n  %s\n  %s^%s", e.Message, line, strings.Repeat(" ", before), strings.Repeat("~", max(under-1, 0)))
}

// visible is text with one printable character for each of its own.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			return '?'
		}
		return r
	}, s)
}

// near are the words nearest to one, the nearest first, at most three; those
// that have it as a part count as near.
func near(word string, words []string) []string {
	type ranked struct {
		word     string
		distance int
	}
	var all []ranked
	typed := strings.ToLower(word[:min(len(word), nearLongest)])
	last := typed[strings.LastIndex(typed, ".")+1:]
	for _, w := range words {
		lower := strings.ToLower(w)
		d := distance(typed, lower)
		if strings.HasSuffix(lower, "."+last) || strings.HasSuffix(lower, "err_"+typed) || strings.HasPrefix(lower, typed) {
			d = min(d, 2)
		}
		all = append(all, ranked{w, d})
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return a.distance - b.distance })
	offer := make([]string, 0, 3)
	for _, n := range all[:min(3, len(all))] {
		offer = append(offer, n.word)
	}
	return offer
}

// Unknown is the error of a field that does not exist, with the nearest that do.
func Unknown(name string, fields Fields) error {
	return fmt.Errorf("%s", unknown(name, fields))
}

// unknown says that a field does not exist here, which are near, and which
// records have it.
func unknown(name string, fields Fields) string {
	if path := fields.Renamed()[name]; path != "" {
		return fmt.Sprintf("%s is now called %s", visible(name), path)
	}
	message := fmt.Sprintf("unknown field %q; similar: %s", visible(name), strings.Join(near(name, fields.Names()), ", "))
	var have []string
	for _, other := range []Fields{Transactions, Connections, Packets, Findings} {
		if other.Of() != fields.Of() && find(name, other) != "" {
			have = append(have, other.Of())
		}
	}
	if len(have) > 0 {
		message += "; " + strings.Join(have, " and ") + " have it"
	}
	return message
}

// distance is how many letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
