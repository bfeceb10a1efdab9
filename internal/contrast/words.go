package contrast

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
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

// sentence is a sentence of a report, as a format. The reports consist of these, and of the phrases of the questions.
type sentence string

// The sentences. The arguments of each are those that the functions below pass.
const (
	headSentence     sentence = "%d of %s: %s"
	notCompared      sentence = " (%s not compared: %s)"
	noneSentence     sentence = "no %s is one of these"
	onlyOne          sentence = "it is the only %s of which this can be said: there are no others to compare it with"
	allSentence      sentence = "all %s of which this can be said: there are no others to compare them with"
	weakSentence     sentence = "1 of %d: proves little. Only this %s %s (%s)"
	tooFewSentence   sentence = "%d of %d: too few to tell what separates them"
	nearestSentence  sentence = "nearest fact, not exact and only a hint: %s (%s)"
	onlyHint         sentence = "nearest fact, only a hint: %s (%s)"
	noNearest        sentence = "no fact is true of a larger share of them than of the others"
	tookSentence     sentence = "%sthey took %s or more, and the others at most %s"
	limitSentence    sentence = "the limit is %s: "
	limitsSentence   sentence = "the limits are %s"
	nothingSentence  sentence = "they have nothing in common that the others do not have: the %d look like the other %d%s"
	inBursts         sentence = "they have nothing in common for certain that the others do not have, because they come in %s"
	inRhythm         sentence = "they have nothing in common for certain that the others do not have, because every %s %s is one of them"
	burstsShow       sentence = "they come in %s; %s"
	rhythmSentence   sentence = "every %s %s is one of them, at least for some time: whether this rhythm matters, this capture cannot tell"
	copiesSentence   sentence = "the %d are %s and %s on later connections%s"
	mayHaveReply     sentence = "%s may have a Reply: the capture lacks packets of %s"
	sameSentence     sentence = "the same %ss %s: this capture cannot tell which matters"
	nearlySentence   sentence = "or %s: nearly the same %ss"
	ofAskedSentence  sentence = "of what was asked: %s"
	nothingAsked     sentence = "the Calls of the %d asked for nothing in common that the others do not have: not operation, file, user, size, chunks, connection or time%s"
	rulesSentence    sentence = "check has a finding of %s for %s, and for none of the %d others"
	oneMore          sentence = "1 more: too few to tell"
	remainSentence   sentence = "the %d that remain have nothing in common that the others do not have"
	sampledSentence  sentence = "found in a sample of %d of them and %d others%s"
	powerSentence    sentence = " (a fact would show if it were true of %d of the %d and of no other)"
	chanceSentence   sentence = "of sets of as many %ss picked at random, at most 1 in %.0f has a fact that separates it from the rest as well"
	noChanceSentence sentence = "sets of as many %ss picked at random often have a fact that separates them from the rest as well"
	burstsChance     sentence = "of %d sets of %ss in bursts of the same lengths at places picked at random, %d %s a fact that separates %s from the rest as well, or nearly"
	overviewNothing  sentence = "the %s %s have nothing in common that the %d others do not have"
)

// of returns the sentence with its arguments.
func (s sentence) of(args ...any) string { return fmt.Sprintf(string(s), args...) }

// Head returns the first line: which RPCs are compared with how many, and why not with more.
func (s *Set) Head() string {
	text := headSentence.of(s.Bad, s.count(s.Bad+s.Others, ""), s.Title)
	if why, known := s.NotAskedWhy.Get(); known && s.NotAsked > 0 {
		if len(s.NotAskedBy) > 1 {
			var list []string
			for _, r := range s.NotAskedBy {
				list = append(list, fmt.Sprintf("%d %s", r.Count, withWhat(r.Why)))
			}
			why = strings.Join(list, ", ")
		}
		text += notCompared.of(s.count(s.NotAsked, "other ")+map[bool]string{true: " is", false: " are"}[s.NotAsked == 1], why)
	}
	return text
}

// withWhat returns what some RPCs lack, after their number.
func withWhat(why string) string {
	if strings.HasPrefix(why, "not ") {
		return why
	}
	return "with " + why
}

// nouns are the names of what is compared.
var nouns = map[Subject]string{OfRPCs: "RPC", OfConnections: "connection"}

// count returns a number of RPCs or connections; other is "other " or empty.
func (s *Set) count(n int64, other string) string {
	return count(n, other+s.noun())
}

func (s *Set) noun() string { return nouns[s.Subject] }

// report collects the lines of a report.
type report []Line

// say adds a sentence, and list adds the command that lists what a filter selects.
func (r *report) say(depth int, s sentence, args ...any) {
	*r = append(*r, Line{Text: s.of(args...), Depth: depth})
}

func (r *report) list(depth int, filter string) { *r = append(*r, Line{Depth: depth, Filter: filter}) }

// Lines returns the report of the set, without its head.
func (s *Set) Lines() []Line {
	var r report
	s.doubts(&r)
	s.latencies(&r)
	switch s.Verdict {
	case None:
		r.say(1, noneSentence, s.noun())
	case All:
		if s.Bad == 1 {
			r.say(1, onlyOne, s.noun())
		} else {
			r.say(1, allSentence, s.count(s.Bad, ""))
		}
	case TooFew:
		s.weak(&r)
	case Nothing:
		if b, bursts := s.Bursts.Get(); bursts && b.AsGood > 0 {
			r.say(1, inBursts, count(b.Runs, "burst"))
		} else if s.onlyRhythm() {
			r.say(1, inRhythm, ordinal(s.Period.Or(0)), s.noun())
		} else {
			r.say(1, nothingSentence, s.Bad, s.Others, s.power())
		}
		s.nearest(&r)
		r.list(1, s.Filter)
	}
	for i := range s.Facts {
		s.fact(&r, &s.Facts[i], i > 0)
	}
	if len(s.Facts) == 0 {
		s.rules(&r)
		return r
	}
	if s.Subject == OfRPCs && s.onlyHandling() {
		if len(s.OfCalls) > 0 {
			r.say(1, ofAskedSentence, s.OfCalls[0].sentence(false))
			r.list(1, s.OfCalls[0].Filter)
		} else {
			r.say(1, nothingAsked, s.Bad, s.power())
			s.nearest(&r)
		}
	}
	if s.Unexplained == 1 {
		r.say(1, oneMore)
	} else if s.Unexplained > 1 {
		r.say(1, remainSentence, s.Unexplained)
	}
	if s.Unexplained > 0 && s.Set != Slow { // The filter for slow RPCs has the limit of every operation.
		r.list(1, s.remaining())
	}
	s.rules(&r)
	if sample, known := s.Sampled.Get(); known {
		r.say(1, sampledSentence, sample.Bad, sample.Others, map[bool]string{true: "; the numbers are those of all RPCs", false: "; the numbers are those of the sample"}[s.exact])
	}
	return r
}

// rules adds the rules of check whose findings are those of the set, and the commands that list their RPCs.
func (s *Set) rules(r *report) {
	all := fmt.Sprintf("all %d", s.Bad)
	switch s.Bad {
	case 1:
		all = "it"
	case 2:
		all = "both"
	}
	for i := range s.Rules {
		r.say(1, rulesSentence, strings.TrimPrefix(s.Rules[i].Text, findingPhrase), all, s.Others)
		r.list(1, s.Rules[i].Filter)
	}
}

// doubts adds what limits the answer: Replies that the capture may lack, retransmissions that count as RPCs, and a rhythm.
func (s *Set) doubts(r *report) {
	if n, known := s.MayHave.Get(); known && n > 0 {
		if s.Bad == 1 {
			r.say(1, mayHaveReply, "it", "its connection or hosts")
		} else {
			r.say(1, mayHaveReply, fmt.Sprintf("%d of the %d", n, s.Bad), "their connections or hosts")
		}
	}
	if text := s.copies(); text != "" {
		r.say(1, copiesSentence, s.Bad, s.requests(), s.retransmissions(), strings.TrimSuffix(text, "."))
	}
	if period, known := s.Period.Get(); known && s.Verdict != TooFew && !s.onlyRhythm() {
		r.say(1, rhythmSentence, ordinal(period), s.noun())
	}
}

// mostLimits is the number of operations whose limit a report shows.
const mostLimits = 6

// latencies adds above which latencies RPCs are slow, and how long those of the set and the others took, so that both can be compared
// with the latencies that tables show.
func (s *Set) latencies(r *report) {
	took, known := s.Slow.Get()
	if !known {
		return
	}
	if took.Limits[0].Name.Known() {
		var list []string
		for _, l := range took.Limits[:min(len(took.Limits), mostLimits)] {
			list = append(list, duration(numberValue(l.NS))+" for "+textValue(l.Name.Or("")).shown())
		}
		if more := len(took.Limits) - len(list); more > 0 {
			list = append(list, fmt.Sprintf("others for %d more", more))
		}
		r.say(1, limitsSentence, strings.Join(list, ", "))
		return
	}
	limit, before := took.Limits[0].NS, ""
	if s.showsLimit {
		before = limitSentence.of(duration(numberValue(limit)))
	}
	least, has := took.LeastNS.Get()
	most, others := took.OthersMostNS.Get()
	switch {
	case has && others:
		r.say(1, tookSentence, before, beyond(least, limit), beyond(most, limit))
	case before != "":
		r.say(1, "%s", strings.TrimSuffix(before, ": "))
	}
}

// beyond returns a latency as tables show it, or all of its digits if it would then seem to be on the other side of a limit.
func beyond(ns, limit int64) string {
	text := field.Duration(ns)
	if shown, err := time.ParseDuration(text); err != nil || (int64(shown) > limit) != (ns > limit) {
		return duration(numberValue(ns))
	}
	return text
}

// onlyRhythm reports whether a fact would be reported if the RPCs did not come at a regular distance.
func (s *Set) onlyRhythm() bool {
	return s.Period.Known() && s.Verdict == Nothing && len(s.Hints) > 0 && s.Hints[0].Chance.Or(1) <= math.Exp2(-least)
}

// copies says what follows from the retransmissions of the set for what the facts prove. It is empty if there are none.
func (s *Set) copies() string {
	n, known := s.Requests.Get()
	switch {
	case !known || n == s.Bad || n == 0:
		return ""
	case n == 1:
		return ": a single request proves little"
	case !s.once && len(s.Facts) > 0:
		return ": the requests by themselves are too few to tell"
	}
	return "."
}

// requests and retransmissions return how many of the RPCs are one or the other.
func (s *Set) requests() string        { return count(s.Requests.Or(0), "request") }
func (s *Set) retransmissions() string { return count(s.Bad-s.Requests.Or(0), "retransmission") }

// fact adds a fact, those that are true of the same RPCs, or of nearly the same, and the commands that list them.
func (s *Set) fact(r *report, f *Fact, rest bool) {
	r.say(1, "%s", f.sentence(rest))
	if len(f.Same) > 0 {
		var texts []string
		for i := range f.Same {
			texts = append(texts, f.Same[i].Text)
		}
		r.say(2, sameSentence, s.noun(), strings.Join(texts, "; "))
	}
	if f.asGood > 0 {
		r.say(2, burstsShow, count(f.runs, "burst"), f.burstsOdds(s.noun()))
	}
	r.list(1, f.Filter)
	for i := range f.Nearly {
		r.say(2, nearlySentence, f.nearly(i), s.noun())
		r.list(2, f.Nearly[i].Filter)
	}
}

// remaining returns the filter for the RPCs that no fact explains.
func (s *Set) remaining() string {
	text := s.Filter
	for i := range s.Facts {
		text = join(text, "not ("+s.Facts[i].plain+")")
	}
	return text
}

// count returns a number of something.
func count(n int64, one string) string { return record.Plural(n, one) }

// Sentence returns the report of the set in one sentence, and the flags with which the command common shows all of it.
func (s *Set) Sentence() (text, flags string) {
	switch name := s.Name.Or(""); s.Set {
	case NoReply:
		flags = "--no-reply"
	case Status:
		flags = "-Y 'status == " + bare(textValue(name)) + "'"
	case ByRule:
		flags = "--finding " + name
	}
	if len(s.Facts) == 0 {
		return overviewNothing.of(s.count(s.Bad, ""), s.Title, s.Others) + s.inShort(), flags
	}
	f := &s.Facts[0]
	subject := fmt.Sprintf("%d of the %s %s %s", f.Bad, s.count(s.Bad, ""), s.Title, f.phrase.plural())
	if f.Bad == f.OfBad {
		subject = fmt.Sprintf("all %s %s %s", s.count(s.Bad, ""), s.Title, f.phrase.plural())
	}
	text = subject + f.ofOthers() + s.inShort()
	if sample, known := s.Sampled.Get(); known && !s.exact {
		text += fmt.Sprintf(" (in a sample of %d of them and %d others)", sample.Bad, sample.Others)
	}
	return text, flags
}

// inShort says what doubts says, for a sentence about the set.
func (s *Set) inShort() string {
	var parts []string
	if s.copies() != "" {
		parts = append(parts, s.requests()+" and "+s.retransmissions())
	}
	if n, known := s.MayHave.Get(); known && n > 0 {
		parts = append(parts, fmt.Sprintf("%d may have a Reply that the capture lacks", n))
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// power says what would have been found.
func (s *Set) power() string {
	if n, known := s.Detectable.Get(); known {
		return powerSentence.of(n, s.Bad)
	}
	return ""
}

// weak adds the sentences about a set that is too small, and the command that lists it.
func (s *Set) weak(r *report) {
	defer func() { r.list(1, s.Filter) }()
	if s.Bad == 1 && len(s.Hints) > 0 && s.Hints[0].Others == 0 {
		var texts []string
		for i := range s.Hints {
			texts = append(texts, s.Hints[i].phrase.singular())
		}
		r.say(1, weakSentence, s.Bad+s.Others, s.noun(), strings.Join(texts, ", and only this one "), s.odds(&s.Hints[0]))
		return
	}
	r.say(1, tooFewSentence, s.Bad, s.Bad+s.Others)
	s.nearest(r)
}

// nearest adds the fact that comes nearest to separating the set, which is a hint only.
func (s *Set) nearest(r *report) {
	if len(s.Hints) == 0 {
		r.say(2, noNearest)
		return
	}
	f := &s.Hints[0]
	of := nearestSentence
	if f.Bad == f.OfBad && f.Others == 0 {
		of = onlyHint
	}
	r.say(2, of, f.sentence(false), s.odds(f))
}

// odds says how many random sets have a fact that separates them as well.
func (s *Set) odds(f *Fact) string {
	if f.asGood > 0 {
		return f.burstsOdds(s.noun())
	}
	chance, known := f.Chance.Get()
	if !known || chance > 0.5 {
		return noChanceSentence.of(s.noun())
	}
	return chanceSentence.of(s.noun(), math.Min(1/chance, 1e6))
}

// burstsOdds says how many of the random sets of bursts have a fact that separates them as well.
func (f *Fact) burstsOdds(noun string) string {
	if f.asGood == 1 {
		return burstsChance.of(draws, noun, f.asGood, "has", "it")
	}
	return burstsChance.of(draws, noun, f.asGood, "have", "them")
}

// sentence says of how many RPCs the fact is true; rest is set if earlier facts explain other RPCs.
func (f *Fact) sentence(rest bool) string {
	remain := ""
	if rest {
		remain = " that remain"
	}
	text := fmt.Sprintf("%d of the %d%s %s", f.Bad, f.OfBad, remain, f.phrase.plural())
	switch {
	case f.Bad == f.OfBad && f.Bad == 2:
		text = fmt.Sprintf("both%s %s", remain, f.phrase.plural())
	case f.Bad == f.OfBad && f.Bad == 1 && !rest:
		text = "it " + f.phrase.singular()
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
