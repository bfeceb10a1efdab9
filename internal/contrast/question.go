package contrast

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// value is one value of a field of a subject, as filters compare it. A field of a list has several values.
type value struct {
	text   string
	number int64 // if numeric is set
	kind   valueKind
}

// valueKind is the type of a value.
type valueKind uint8

// The kinds of values. Of an unknown value, the capture does not show whether the subject has it.
const (
	textual valueKind = iota
	numeric
	unknown
)

func textValue(s string) value { return value{text: s} }

// numberValue returns a number. Numbers that an int64 cannot represent are unknown.
func numberValue[T ~int | ~int32 | ~int64 | ~uint16 | ~uint32 | ~uint64](n T) value {
	if n > 0 && uint64(n) > math.MaxInt64 {
		return value{kind: unknown}
	}
	return value{number: int64(n), kind: numeric}
}

// literal returns the value as a filter has it.
func (v value) literal() string {
	if v.kind == numeric {
		return strconv.FormatInt(v.number, 10)
	}
	return strconv.QuoteToASCII(v.text)
}

// maxShown is the number of characters of a value that a sentence shows.
const maxShown = 60

// shown returns the value as a sentence has it: without control characters, and not too long.
func (v value) shown() string {
	if v.kind == numeric {
		return strconv.FormatInt(v.number, 10)
	}
	s := v.text
	if quoted := strconv.Quote(s); quoted != `"`+s+`"` || strings.ContainsAny(s, " ;,") {
		s = quoted
	}
	if runes := []rune(s); len(runes) > maxShown {
		s = string(runes[:maxShown]) + "..."
	}
	return s
}

// about is what a question is about. It decides the price of the question, and which facts are reported before others.
type about int

// The classes of questions, in the order in which sentences prefer them.
const (
	ofCall     about = iota // what the Call asked, in fields that people know
	ofDetail                // what the Call asked, in other fields
	ofHandling              // how the transport and the responder handled it
	ofOutcome               // how it ended
	ofTime                  // when it was sent, and its place among the others
)

// words returns the name of the class in records.
func (a about) words() string {
	return [...]string{"call", "call", "handling", "outcome", "time"}[a]
}

// asks is a set of the forms in which a field is asked about.
type asks uint8

// The forms of questions.
const (
	asksValue    asks = 1 << iota // it has this value
	asksNot                       // it has another value than this
	asksPresence                  // it has a value, or none
	asksMore                      // it is more than a threshold, or at most that
	asksSet                       // it has one of two to four values
)

// question is a field, what facts about it are called, and the filters that select the subjects of a fact.
type question struct {
	path  string // of the field in filters
	field string // what the filter compares; empty for path
	about about
	rank  int // among facts about the same subjects, those of the lowest rank are reported
	asks  asks
	topic topic                     // what the field follows from
	each  func(r any, out *answers) // reports the values of a subject: none if it is absent

	// is and isNot phrase a value: "are READ", "are not READ". For a threshold, is gets the words more says.
	is, isNot func(v value) string
	// has and lacks phrase presence and absence.
	has, lacks string
	// more and atMost phrase thresholds; nil for numbers after the words of is.
	more, atMost func(v value) string
	// some and none phrase the thresholds above 0 and at most 0; empty for those of other numbers.
	some, none string
	// equal returns the filter for a value; nil for a comparison of the field with it.
	equal func(v value) string
	// presence is the filter for presence; empty for a comparison with null.
	presence string
}

// answers receives the values of one field of a subject.
type answers struct{ values []value }

// maxText is the length of the longest text that is compared, in bytes. Longer text is unknown.
const maxText = 256

func (a *answers) text(s string) {
	if len(s) > maxText {
		a.unknown()
		return
	}
	a.values = append(a.values, textValue(s))
}

func (a *answers) add(v value) { a.values = append(a.values, v) }

// unknown records that the capture does not show the value.
func (a *answers) unknown() { a.values = append(a.values[:0], value{kind: unknown}) }

// flag records a field that is true or false.
func (a *answers) flag(yes bool) {
	if yes {
		a.values = append(a.values, value{number: 1, kind: numeric})
	}
}

// name returns what filters compare.
func (q *question) name() string {
	if q.field != "" {
		return q.field
	}
	return q.path
}

// form is the form of a fact.
type form uint8

const (
	isValue form = iota
	isNotValue
	isPresent
	isAbsent
	isMore
	isAtMost
	isAmong
	isBetween // times
	isFrom
	isUntil
)

// filter returns the expression that selects the subjects of a fact with one of these values.
func (q *question) filter(f form, values []value) string {
	switch f {
	case isValue:
		return q.equals(values[0])
	case isNotValue:
		return "not (" + q.equals(values[0]) + ")"
	case isPresent:
		return q.present()
	case isAbsent:
		return "not (" + q.present() + ")"
	case isMore:
		return q.name() + " > " + q.limit(values[0])
	case isAtMost:
		return q.name() + " <= " + q.limit(values[0])
	case isBetween:
		return q.name() + " >= " + values[0].text + " and " + q.name() + " <= " + values[1].text
	case isFrom:
		return q.name() + " >= " + values[0].text
	case isUntil:
		return q.name() + " <= " + values[0].text
	}
	var list []string
	if q.equal != nil {
		for _, v := range values {
			list = append(list, q.equals(v))
		}
		return strings.Join(list, " or ")
	}
	for _, v := range values {
		list = append(list, q.literal(v))
	}
	return q.name() + " in [" + strings.Join(list, ", ") + "]"
}

// limit returns a threshold as filters have it: durations need a unit.
func (q *question) limit(v value) string {
	if strings.HasSuffix(q.path, "_ns") {
		return duration(v)
	}
	return v.literal()
}

func (q *question) equals(v value) string {
	if q.equal != nil {
		return q.equal(v)
	}
	return q.name() + " == " + q.literal(v)
}

// word matches names of operations, statuses and rules that filters accept without quotes.
var word = regexp.MustCompile(`^([A-Z][A-Z0-9]*(_[A-Z0-9]+)+|[A-Z]{4,}|[a-z]+(-[a-z0-9]+)+)$`)

// literal returns the value of the field as people type it: names of operations, statuses and rules without quotes.
func (q *question) literal(v value) string {
	if slices.Contains([]string{"operation", "status", "findings"}, q.path) {
		return bare(v)
	}
	return v.literal()
}

// bare returns a name of an operation, a status or a rule.
func bare(v value) string {
	if v.kind == textual && v.text != "NULL" && v.text != "TRUE" && v.text != "FALSE" && word.MatchString(v.text) {
		return v.text
	}
	return v.literal()
}

func (q *question) present() string {
	if q.presence != "" {
		return q.presence
	}
	return q.name() + " != null"
}

// phrase returns what a fact says about several subjects, beginning with its verb.
func (q *question) phrase(f form, values []value) string {
	switch f {
	case isValue:
		return q.is(values[0])
	case isNotValue:
		if q.isNot != nil {
			return q.isNot(values[0])
		}
		return negated(q.is(values[0]))
	case isPresent:
		return q.has
	case isAbsent:
		if q.lacks != "" {
			return q.lacks
		}
		return negated(q.has)
	case isMore:
		if q.some != "" && values[0].number == 0 {
			return q.some
		}
		return q.more(values[0])
	case isAtMost:
		if q.none != "" && values[0].number == 0 {
			return q.none
		}
		return q.atMost(values[0])
	case isAmong:
		first := q.is(values[0])
		for _, v := range values[1:] {
			first += " or " + v.shown()
		}
		return first
	}
	return ""
}

// negated returns a phrase with "not" after its verb.
func negated(phrase string) string {
	verb, rest, _ := strings.Cut(phrase, " ")
	if verb == "are" || verb == "were" {
		return verb + " not " + rest
	}
	if base := pastOf[verb]; base != "" {
		return "did not " + base + " " + rest
	}
	return "do not " + phrase
}

// pastOf maps verbs in the past to their base.
var pastOf = map[string]string{"had": "have", "came": "come", "waited:": "wait:", "moved": "move"}

// phrase is what a fact says about several subjects. Each part begins with a verb; the parts of two facts are joined by "and".
type phrase []string

// plural and singular return the phrase about several subjects, and about one: "is READ" for "are READ".
func (p phrase) plural() string { return strings.Join(p, " and ") }

func (p phrase) singular() string {
	parts := make([]string, len(p))
	for i, part := range p {
		verb, rest, _ := strings.Cut(part, " ")
		parts[i] = strings.TrimSuffix(singularOf(verb)+" "+rest, " ")
	}
	return strings.Join(parts, " and ")
}

// singularOf returns the form of a verb for one subject.
func singularOf(verb string) string {
	switch verb {
	case "are":
		return "is"
	case "were":
		return "was"
	case "have":
		return "has"
	case "do", "go":
		return verb + "es"
	case "did":
		return verb
	}
	if pastOf[verb] != "" {
		return verb
	}
	return verb + "s"
}

// echo returns the verb that stands for the phrase, as in "none of the others is".
func (p phrase) echo(one bool) string {
	word := ""
	for _, part := range p {
		verb, _, _ := strings.Cut(part, " ")
		now := "do"
		switch {
		case verb == "are" || verb == "were":
			now = verb
		case verb == "did" || pastOf[verb] != "":
			now = "did"
		}
		if word != "" && word != now {
			now = "do"
		}
		word = now
	}
	if one {
		return singularOf(word)
	}
	return word
}

// ordinal returns a number such as 3rd.
func ordinal(n int64) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
