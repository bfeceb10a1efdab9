package query

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error describes an error in an expression. From and To are the bytes of Source, the
// expression as it was typed, in which the error is.
type Error struct {
	Source   string
	From, To int
	Message  string
	NoField  bool // a name in it is that of no field
}

// Error returns the message, with the expression and a mark under the place in the lines
// below.
func (e *Error) Error() string {
	from := min(max(e.From, 0), len(e.Source))
	to := min(max(e.To, from), len(e.Source))
	line := visible(e.Source)
	before, under := len([]rune(e.Source[:from])), len([]rune(e.Source[from:to]))
	return fmt.Sprintf("-Y: %s\n  %s\n  %s^%s", e.Message, line, strings.Repeat(" ", before), strings.Repeat("~", max(under-1, 0)))
}

// source is an expression as it was typed.
type source string

// wrong returns an error about a part of the source. What reads and compiles expressions
// panics with it; [Compile] recovers.
func (s source) wrong(from, to int, format string, args ...any) *Error {
	return &Error{Source: string(s), From: from, To: to, Message: fmt.Sprintf(format, args...)}
}

// visible returns s with a printable character in place of each control character.
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

// near returns at most three words that are similar to word, the most similar first. At most
// half of the letters may differ; words that begin with word, or end with it after a dot,
// are always similar.
func near(word string, words []string) []string {
	type ranked struct {
		word            string
		distance, whole int // to the beginning of the word, and to all of it
	}
	var ranking []ranked
	typed := strings.ToLower(word[:min(len(word), nearLongest)])
	last := typed[strings.LastIndex(typed, ".")+1:]
	for _, w := range words {
		lower := strings.ToLower(w)
		all := distances(typed, lower)
		d := min(all[len(lower)], slices.Min(all)+1) // Units such as _ns are easily forgotten.
		if strings.HasSuffix(lower, "."+last) || strings.HasSuffix(lower, "err_"+typed) || strings.HasPrefix(lower, typed) {
			d = min(d, 2)
		}
		if d <= max(2, len(typed)/2) {
			ranking = append(ranking, ranked{w, d, all[len(lower)]})
		}
	}
	slices.SortStableFunc(ranking, func(a, b ranked) int { return cmp.Or(a.distance-b.distance, a.whole-b.whole) })
	offer := make([]string, 0, 3)
	for _, n := range ranking[:min(3, len(ranking))] {
		offer = append(offer, n.word)
	}
	return offer
}

// elsewhere has fields under the names that they have in the output of other programs, or of other commands.
var elsewhere = map[string]string{"path": "file", "filename": "file", "fh": "file_handle", "user": "uid", "group": "gid"}

// unknown returns the message for a field that does not exist, with similar fields and the records
// that have a field of this name.
func unknown(name string, fields Fields) string {
	if isOperation(name, fields) {
		return fmt.Sprintf("unknown field %q; for the RPCs of this operation: operation == %s", name, strings.ToUpper(name))
	}
	if hint := wiresharkColumn(name, fields); hint != "" {
		return fmt.Sprintf("unknown field %q; %s", visible(name), hint)
	}
	if meant := elsewhere[name]; meant != "" && find(meant, fields) != "" {
		return fmt.Sprintf("unknown field %q; write %s", visible(name), meant)
	}
	message := fmt.Sprintf("unknown field %q", visible(name)) + similar(near(name, append(fields.Names(), aliases(fields)...)))
	var have []string
	for _, other := range []Fields{Transactions, Connections, Packets, Findings} {
		if other.Of() != fields.Of() && find(name, other) != "" {
			have = append(have, other.Of())
		}
	}
	if len(have) > 0 {
		message += "; " + strings.Join(have, " and ") + " have this field"
	}
	return message
}

// wiresharkColumns has the fields that say what columns of Wireshark's list of packets say, by the names of the columns as fields.
var wiresharkColumns = map[string][]string{
	"info":     {"summary", "procedure"},
	"protocol": {"program_name", "transport"},
	"time":     {"time", "first"},
	"number":   {"number"},
	"no.":      {"number"},
	"length":   {"length", "call.bytes"},
	"source":   {"source", "client"}, "def_src": {"source", "client"},
	"destination": {"destination", "server"}, "def_dst": {"destination", "server"},
}

// wiresharkColumn says which field of these records says what a column of Wireshark's list of packets says, or nothing if the name does not name a column.
func wiresharkColumn(name string, fields Fields) string {
	column, is := strings.CutPrefix(strings.ToLower(name), "_ws.col.")
	if !is {
		return ""
	}
	for _, instead := range wiresharkColumns[column] {
		if fields.Has(instead) {
			return "use " + instead + " for this column of Wireshark"
		}
	}
	if list := wiresharkColumns[column]; list != nil {
		return "this column of Wireshark is " + list[0] + " of packets"
	}
	return "this column of Wireshark has no field here; rdmadump fields lists the fields"
}

// NearFirst returns words in their order, except that similar ones to a word come first.
func NearFirst(word string, words []string) []string {
	first := near(word, words)
	for _, w := range words {
		if !slices.Contains(first, w) {
			first = append(first, w)
		}
	}
	return first
}

// aliases returns the other names of fields that have only letters: the headings of tables.
func aliases(fields Fields) (names []string) {
	for _, f := range fields.List() {
		for _, a := range f.Aliases {
			if !strings.ContainsAny(a, "._") {
				names = append(names, a)
			}
		}
	}
	return names
}

// similar returns the end of a message that lists similar words, or "" if there are none.
func similar(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "; similar: " + strings.Join(words, ", ")
}

// distances returns the distances from a to the beginnings of b, by their lengths.
func distances(a, b string) []int {
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
	return row
}
