package contrast

import (
	"fmt"
	"math"
	"strings"
)

// Line is a line of a report. Command is set if the line is a filter that selects the RPCs of the sentence before it.
type Line struct {
	Text  string
	Depth int
	// Filter selects the RPCs that the lines before are about; the line then has no text.
	Filter string
}

// title describes the RPCs of a set.
func (c *Collector) title(t *target) string {
	switch t.kind {
	case NoReply:
		return "without a Reply"
	case Status:
		return "with the status " + textValue(t.name).shown()
	case ByRule:
		return "with a finding of " + t.name
	case Ended:
		return "ended by " + t.name
	case Retransmitting:
		return "with retransmitted packets"
	case ByFilter:
		return "that match " + clean(c.options.Set.Text)
	}
	switch slow := c.options.Slow; {
	case slow.Limits != nil:
		return slow.Title
	case slow.NS > 0:
		return "slow (over " + duration(value{number: slow.NS}) + ")"
	case slow.Percentile > 0:
		return fmt.Sprintf("slow (over the %gth percentile of all latencies)", slow.Percentile*100)
	default:
		return fmt.Sprintf("slow (over %g times the median of their operation)", slow.Times)
	}
}

// clean returns text without control characters.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

// Head returns the first line: which RPCs are compared with how many.
func (s *Set) Head() string {
	text := fmt.Sprintf("%d of %s: %s", s.Bad, s.count(s.Bad+s.Others, ""), s.Title)
	if s.NotAsked > 0 {
		text += fmt.Sprintf(" (%s not asked)", s.count(s.NotAsked, "other "))
	}
	return text
}

// nouns are the names of what is compared.
var nouns = map[Subject]string{OfRPCs: "RPC", OfConnections: "connection"}

// count returns a number of RPCs or connections; other is "other " or empty.
func (s *Set) count(n int64, other string) string {
	if n == 1 {
		return "1 " + other + s.noun()
	}
	return fmt.Sprintf("%d %s%ss", n, other, s.noun())
}

func (s *Set) noun() string { return nouns[s.Subject] }

// Lines returns the report of the set, without its head.
func (s *Set) Lines() (list []Line) {
	add := func(depth int, format string, args ...any) {
		list = append(list, Line{Text: fmt.Sprintf(format, args...), Depth: depth})
	}
	switch s.Verdict {
	case None:
		add(1, "no %s is one of these", s.noun())
	case All:
		if s.Bad == 1 {
			add(1, "it is the only %s of which this can be said: there are no others to compare it with", s.noun())
			break
		}
		add(1, "all %s of which this can be said: there are no others to compare them with", s.count(s.Bad, ""))
	case TooFew:
		s.weak(add)
	case Nothing:
		add(1, "nothing separates them: the %d look like the other %d%s", s.Bad, s.Others, s.power())
		s.bursts(add)
		s.nearest(add)
	}
	if period, known := s.Period.Get(); known && s.Verdict != TooFew {
		add(2, "they follow each other at a distance of %d %ss: whether this rhythm matters, this capture cannot tell", period, s.noun())
	}
	for i := range s.Facts {
		f := &s.Facts[i]
		add(1, "%s", f.sentence(i > 0))
		if len(f.Same) > 0 {
			var texts []string
			for j := range f.Same {
				texts = append(texts, f.Same[j].Text)
			}
			add(2, "the same %ss %s: this capture cannot tell which matters", s.noun(), strings.Join(texts, "; "))
		}
		for j := range f.Nearly {
			add(2, "or %s: nearly the same %ss", f.nearly(j), s.noun())
		}
		list = append(list, Line{Depth: 1, Filter: f.Filter})
	}
	if len(s.Facts) == 0 {
		return list
	}
	if s.Subject == OfRPCs && s.onlyHandling() {
		if len(s.OfCalls) > 0 {
			add(1, "of what was asked: %s", s.OfCalls[0].sentence(false))
			list = append(list, Line{Depth: 1, Filter: s.OfCalls[0].Filter})
		} else {
			add(1, "nothing that the Calls asked separates them: not operation, file, user, size, chunks, connection or time%s", s.power())
		}
	}
	switch {
	case s.Unexplained == 1:
		add(1, "1 more: too few to tell")
	case s.Unexplained > 0:
		add(1, "nothing separates the other %d", s.Unexplained)
	}
	if sample, known := s.Sampled.Get(); known {
		add(1, "found in a sample of %d of them and %d others%s", sample.Bad, sample.Others, map[bool]string{true: "; the numbers are those of all RPCs", false: "; the numbers are those of the sample"}[s.exact])
	}
	return list
}

// Sentence returns the report of the set in one sentence, and the flags with which the command common shows all of it.
func (s *Set) Sentence() (text, flags string) {
	switch name := s.Name.Or(""); s.Set {
	case NoReply:
		flags = "--no-reply"
	case Status:
		flags = "-Y '" + s.Filter + "'"
	case ByRule:
		flags = "--finding " + name
	}
	if len(s.Facts) == 0 {
		return fmt.Sprintf("nothing separates the %s %s from the %d others", s.count(s.Bad, ""), s.Title, s.Others), flags
	}
	f := &s.Facts[0]
	subject := fmt.Sprintf("%d of the %s %s %s", f.Bad, s.count(s.Bad, ""), s.Title, f.phrase.plural())
	if f.Bad == f.OfBad {
		subject = fmt.Sprintf("all %s %s %s", s.count(s.Bad, ""), s.Title, f.phrase.plural())
	}
	text = subject + f.ofOthers()
	if sample, known := s.Sampled.Get(); known && !s.exact {
		text += fmt.Sprintf(" (in a sample of %d of them and %d others)", sample.Bad, sample.Others)
	}
	return text, flags
}

// power says what would have been found.
func (s *Set) power() string {
	if n, known := s.Detectable.Get(); known {
		return fmt.Sprintf(" (one of them that is true of %d of the %d and of no other would show)", n, s.Bad)
	}
	return ""
}

// weak adds the sentences about a set that is too small.
func (s *Set) weak(add func(depth int, format string, args ...any)) {
	if s.Bad == 1 && len(s.Hints) > 0 && s.Hints[0].Others == 0 {
		var texts []string
		for i := range s.Hints {
			texts = append(texts, s.Hints[i].phrase.singular())
		}
		add(1, "1 of %d: proves little. Only this %s %s (%s)", s.Bad+s.Others, s.noun(), strings.Join(texts, ", "), s.Hints[0].odds("such sets"))
		return
	}
	add(1, "%d of %d: too few to tell what separates them", s.Bad, s.Bad+s.Others)
	s.nearest(add)
}

// bursts adds that a fact is not reported because bursts show as much.
func (s *Set) bursts(add func(depth int, format string, args ...any)) {
	b, known := s.Bursts.Get()
	if !known || b.AsGood == 0 || len(s.Hints) == 0 {
		return
	}
	add(2, "%s: but the %d come in bursts, and %d of %d sets of bursts at random times %s as much", s.Hints[0].sentence(false), s.Bad, b.AsGood, b.RandomSets, map[bool]string{true: "shows", false: "show"}[b.AsGood == 1])
}

// nearest adds the fact that comes nearest to separating the set.
func (s *Set) nearest(add func(depth int, format string, args ...any)) {
	b, _ := s.Bursts.Get()
	if len(s.Hints) == 0 || b.AsGood > 0 {
		return
	}
	f := &s.Hints[0]
	add(2, "nearest: %s (%s)", f.sentence(false), f.odds("such sets"))
}

// odds says how often chance by itself shows as much.
func (f *Fact) odds(of string) string {
	chance, known := f.Chance.Get()
	if !known || chance > 0.5 {
		return "chance by itself shows as much"
	}
	return fmt.Sprintf("chance by itself shows as much in 1 of %.0f %s", math.Min(1/chance, 1e6), of)
}

// sentence says of how many RPCs the fact is true; rest is set if earlier facts explain other RPCs.
func (f *Fact) sentence(rest bool) string {
	remain := ""
	if rest {
		remain = " that remain"
	}
	text := fmt.Sprintf("%d of the %d%s %s", f.Bad, f.OfBad, remain, f.phrase.plural())
	switch {
	case f.Bad == f.OfBad && f.Bad > 1:
		text = fmt.Sprintf("all %d%s %s", f.Bad, remain, f.phrase.plural())
	case f.Bad == 1:
		text = fmt.Sprintf("1 of the %d%s %s", f.OfBad, remain, f.phrase.singular())
	}
	return text + f.ofOthers()
}

// ofOthers says of how many others the fact is true.
func (f *Fact) ofOthers() string {
	switch f.Others {
	case 0:
		return fmt.Sprintf("; none of the %d others %s", f.OfOthers, f.phrase.echo(true))
	case 1:
		return fmt.Sprintf("; 1 of the %d others %s, too", f.OfOthers, f.phrase.echo(true))
	}
	return fmt.Sprintf("; %d of the %d others %s, too", f.Others, f.OfOthers, f.phrase.echo(false))
}

// nearly returns the sentence of a fact that is true of nearly the same RPCs.
func (f *Fact) nearly(i int) string {
	r := &f.Nearly[i]
	other := Fact{Bad: r.Bad, OfBad: f.OfBad, Others: r.Others, OfOthers: f.OfOthers, phrase: r.phrase}
	return other.sentence(false)
}
