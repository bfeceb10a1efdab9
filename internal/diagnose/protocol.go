package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// The rules whose findings kinds explain.
var (
	inlineRules = []string{"inline-threshold-exceeded", "receive-too-small"}
	memoryRules = []string{"rdma-outside-exposed-memory", "rdma-wrong-direction", "invalidated-handle-used", "invalidated-unexposed-handle"}
	headerRules = []string{
		"header-truncated", "header-malformed", "rdma-version", "rdma-proc-unknown", "rdma-msgp", "rdma-done", "reply-chunk-missing", "write-chunk-too-short", "rpc-header-malformed",
		"nomsg-without-chunk", "nomsg-with-payload", "long-call-position", "reduced-ineligible-item", "read-position-invalid", "read-position-unaligned", "chunk-length-mismatch",
	}
	afterRules = []string{"remote-error-nak", "reply-not-delivered", "connection-lost", "call-not-answered", "terminate"} // what follows when a receiver refuses a packet
	errorRules = []string{"rdma-error", "error-not-answered", "error-wrong-code", "error-wrong-version", "error-unknown-xid", "error-answered"}
)

// find returns the first finding that is wanted, or nil.
func (d *diagnosis) find(wanted func(*finding) bool) *finding {
	if i := slices.IndexFunc(d.findings, wanted); i >= 0 {
		return d.findings[i]
	}
	return nil
}

// fact returns what a finding says, without what only explains it.
func fact(f *finding) string {
	text := f.Message
	for _, end := range [...]string{": see the finding", ": consequence of", ": it rejected", " (NAK of PSN", "; "} {
		text, _, _ = strings.Cut(text, end)
	}
	return text
}

// violated reports whether a finding says that memory was accessed wrongly on a connection, or the capture leaves open whether it was.
func (d *diagnosis) violated(on int) bool {
	return slices.ContainsFunc(d.summary.NotJudged, func(n record.NotJudged) bool { return slices.Contains(memoryRules, n.Rule) }) || d.find(func(f *finding) bool { return f.Connection == record.Some(on) && slices.Contains(memoryRules, f.Rule) }) != nil
}

// placeOf returns the places of a side at fault.
func placeOf(side record.Opt[record.End]) []record.ProblemPlace {
	switch by, known := side.Get(); {
	case !known:
		return []record.ProblemPlace{record.InClient, record.InServer}
	case by == record.Client:
		return []record.ProblemPlace{record.InClient}
	default:
		return []record.ProblemPlace{record.InServer}
	}
}

// bySide returns the findings of some rules that nothing explains, by the side at fault.
func (d *diagnosis) bySide(rules []string) (list [][]*finding) {
	for _, side := range [...]record.Opt[record.End]{record.Some(record.Client), record.Some(record.Server), {}} {
		var some []*finding
		for _, f := range d.findings {
			if f.by.free() && f.AtFault == side && slices.Contains(rules, f.Rule) {
				some = append(some, f)
			}
		}
		if len(some) > 0 {
			list = append(list, some)
		}
	}
	return list
}

// broken makes a problem of findings, with what followed from them: the refusal of a packet, the end of a connection, and RPCs that were lost with it.
func (d *diagnosis) broken(findings []*finding) *problem {
	p := d.begin(record.Error, placeOf(findings[0].AtFault)...)
	ended := 0
	for _, f := range findings {
		p.finding(f)
		p.proof(f.ref(), fact(f))
		if r := d.byID[f.Transaction.Or(0)]; r != nil {
			p.tasksOf(r)
		}
		if d.consequences(p, f) {
			ended++
		}
	}
	if ended > 0 {
		p.Effect = number(ended, "connection") + " lost"
	}
	p.tellWorst("")
	return p
}

// tasksOf claims the task of an attempt; a callback has none.
func (p *problem) tasksOf(r *rpc) {
	if r.of != nil {
		p.task(r.of)
	} else {
		p.all(r)
	}
}

// tellWorst adds the task that the problem cost most to its effect.
func (p *problem) tellWorst(prefix string) {
	if r := p.worst(); r != nil && r.of != nil {
		p.Effect = join(p.Effect, prefix+taskText(r.of))
	}
}

// taskText says what a task waited.
func taskText(t *task) string {
	last := t.tries[len(t.tries)-1]
	switch {
	case last.unanswered():
		return last.name() + " never answered"
	case last.failed() && !putOff[last.failure]:
		return fmt.Sprintf("%s failed: %s", last.name(), failureText(last))
	case t.attempts() > 1:
		return fmt.Sprintf("%s took %s in %d tries", last.name(), field.Brief(t.blocked()), t.attempts())
	}
	return fmt.Sprintf("%s took %s", last.name(), field.Brief(t.blocked()))
}

// failureText returns the status of an RPC that failed.
func failureText(r *rpc) string {
	if r.failure == "" {
		return r.code
	}
	return r.failure
}

// join joins what was said with more.
func join(before, more string) string {
	if before == "" {
		return more
	}
	return before + ", " + more
}

// consequences claims what followed from a finding on its connection within 2 s, and reports whether the connection ended.
func (d *diagnosis) consequences(p *problem, f *finding) (ended bool) {
	on, known := f.Connection.Get()
	at := f.Time.Or(0)
	c := d.byNumber[on]
	if !known || c == nil {
		return false
	}
	near := func(t record.Time) bool { return t >= at && t.Sub(at) <= 2e9 }
	refused := false
	for _, o := range d.findings {
		if o.Connection == f.Connection && near(o.Time.Or(0)) && slices.Contains(afterRules, o.Rule) && p.finding(o) {
			p.proof(o.ref(), fact(o))
			refused = refused || o.Rule == "remote-error-nak" || o.Rule == "terminate"
		}
	}
	end, was := c.Ended.Get()
	if was && near(c.endedAt()) && (refused || end.How != record.EndDisconnect || end.OutstandingCalls > 0) && c.by.free() {
		p.lose(d, c)
		return true
	}
	return c.by.by == p
}

// inlineOverrun finds Sends that are longer than their receivers take.
func inlineOverrun(d *diagnosis) {
	for _, list := range append(d.bySide(inlineRules[:1]), d.bySide(inlineRules[1:])...) {
		p := d.broken(list)
		length, limit := sizes(list[0].Message)
		if list[0].Rule == "receive-too-small" {
			p.Headline = fmt.Sprintf("refused %s of %s, although it has to accept %s", number(len(list), "Send"), length, limit)
			continue
		}
		what := "Reply"
		if p.Places[0] == record.InClient {
			what = "Call"
		}
		p.Headline = fmt.Sprintf("sent %s", number(len(list), what))
		if length != "" {
			p.Headline += " of " + length
		}
		if limit != "" {
			p.Headline += ", inline limit " + limit
		}
		refused, receiver := p.rules["remote-error-nak"]+p.rules["terminate"], "client"
		if what == "Call" {
			receiver = "server"
		}
		if accepted := int64(len(list)) - refused; refused > 0 && accepted > 0 {
			p.Effect = join(fmt.Sprintf("%s refused %d, accepted %d", receiver, refused, accepted), p.Effect)
		} else if refused == 0 {
			p.Effect = join(p.Effect, "the receiver accepted all")
		}
	}
}

// sizes returns the first two numbers in a message.
func sizes(message string) (first, second string) {
	for _, word := range strings.FieldsFunc(message, func(r rune) bool { return r == ' ' || r == ',' || r == ';' || r == ':' || r == '.' }) {
		n, err := strconv.ParseInt(word, 10, 64)
		switch {
		case err != nil:
		case first == "":
			first = field.Size(n)
		case second == "":
			second = field.Size(n)
		}
	}
	return first, second
}

// memoryViolation finds RDMA operations on memory that was not exposed for them.
func memoryViolation(d *diagnosis) {
	for _, list := range d.bySide(memoryRules) {
		p := d.broken(list)
		p.Headline = fmt.Sprintf("%s %s", deeds[list[0].Rule], times(len(list)))
	}
}

// times returns a number of times.
func times[N int | int64](n N) string {
	if n == 1 {
		return "once"
	}
	return field.Count(int64(n)) + " times"
}

// noReceiveBuffer finds receivers that had posted no buffer.
func noReceiveBuffer(d *diagnosis) {
	for _, list := range d.bySide([]string{"receive-not-posted"}) {
		p := d.broken(list)
		p.Headline = "had no receive buffer " + times(len(list))
		for _, r := range d.rpcs {
			for i := range r.waits {
				if w := &r.waits[i]; w.Reason == record.RNRNak && p.isAbout(r.connection) {
					p.stalled(r, w)
				}
			}
		}
	}
}

// rdmaErrors finds RPCs that an RDMA_ERROR answered.
func rdmaErrors(d *diagnosis) {
	groups := map[string][]*rpc{} // by side and code
	blamed := map[*rpc]*finding{}
	for _, r := range d.rpcs {
		if r.status != record.RDMAError || !r.outcome.free() {
			continue
		}
		f := d.find(func(f *finding) bool {
			return f.Transaction == record.Some(r.id) && f.AtFault.Known() && f.Rule != "rdma-error" && (slices.Contains(headerRules, f.Rule) || f.Severity == record.Error && !slices.Contains(errorRules, f.Rule))
		})
		side := "server" // the one that sent the error
		if r.backward {
			side = "client"
		}
		if f != nil {
			side = string(f.AtFault.Or(""))
		}
		blamed[r] = f
		groups[side+" "+r.code] = append(groups[side+" "+r.code], r)
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		list := groups[key]
		side, code, _ := strings.Cut(key, " ")
		p := d.begin(record.Error, record.ProblemPlace(side))
		if !slices.ContainsFunc(list, func(r *rpc) bool { return blamed[r] != nil }) { // no message broke a rule that the capture shows
			p.Places = []record.ProblemPlace{record.InClient, record.InServer}
			if code == "ERR_VERS" {
				p.Places, p.Severity = []record.ProblemPlace{record.InConfig}, record.Warning
				if !slices.ContainsFunc(list, func(r *rpc) bool { return !d.fellBack(r) }) {
					p.Severity = record.Note
				}
			}
		}
		ops := map[string]int64{}
		why := map[string]int64{}
		for _, r := range list {
			ops[r.operation]++
			p.tasksOf(r)
			if f := blamed[r]; f != nil {
				p.finding(f)
				why[f.Rule]++
			}
			for _, f := range d.findings {
				if f.Transaction == record.Some(r.id) && (slices.Contains(errorRules, f.Rule) || slices.Contains(headerRules, f.Rule)) {
					p.finding(f)
				}
			}
			p.proof(r.call, r.itsCall())
			p.proof(r.reply, code)
		}
		name := byCount(ops)[0]
		if side == "client" && len(byCount(why)) > 0 {
			p.Headline = fmt.Sprintf("sent %s; server answered %s", number(ops[name], name), code)
			if n := why[byCount(why)[0]]; n == int64(len(list)) || len(why) == 1 {
				p.Headline = fmt.Sprintf("%s %s; server answered %s", cmp.Or(deeds[byCount(why)[0]], "broke a rule"), times(n), code)
			} else {
				p.Headline = fmt.Sprintf("sent %s that broke %s; server answered %s", number(len(list), "Call"), number(len(why), "rule"), code)
			}
		} else {
			p.Headline = fmt.Sprintf("answered %s to %s", code, number(ops[name], name))
		}
		p.Effect = fmt.Sprintf("%s failed", number(len(list), "RPC"))
	}
}

// fellBack reports whether an RPC tried a version, which was refused, and its client fell back to another: the finding is only a note.
func (d *diagnosis) fellBack(r *rpc) bool {
	return slices.Contains(r.rules, "rdma-error") && d.find(func(f *finding) bool { return f.Transaction == record.Some(r.id) && f.Rule == "rdma-error" }) == nil
}

// terminates finds connections that a Terminate or a NAK ended.
func terminates(d *diagnosis) {
	for _, c := range d.connections {
		end, ended := c.Ended.Get()
		if !ended || !c.by.free() || end.How != record.EndTerminate && end.How != record.EndNak {
			continue
		}
		places := placeOf(record.Opt[record.End]{})
		cause := d.find(func(f *finding) bool {
			return f.on(c) && f.AtFault.Known() && f.Severity == record.Error && f.by.free() && c.endedAt().Sub(f.Time.Or(0)) <= 2e9 && f.Rule != "terminate-bits-reversed"
		})
		if cause != nil {
			places = placeOf(cause.AtFault)
		} else if nak, _ := d.refusesOwn(c); nak != nil {
			places = placeOf(record.Some(record.Client))
		}
		p := d.begin(record.Error, places...)
		reason := end.Reason.Or("no reason given")
		p.Headline = fmt.Sprintf("connection %d terminated: %s", c.ID, reason)
		if end.How == record.EndNak {
			what := "a request"
			if strings.Contains(reason, "access") {
				what = "an access to its memory"
			}
			p.Headline = fmt.Sprintf("connection %d lost: %s refused %s (NAK)", c.ID, end.By.Or("a host"), what)
		}
		refusal := reason
		if f := d.find(func(f *finding) bool {
			return f.on(c) && f.Rule == "terminate" && f.Packet == end.Packet
		}); f != nil {
			refusal, _, _ = strings.Cut(f.Message, ": ") // it names what was refused, and the headline says why
		}
		p.proof(refOf(c), refusal)
		p.during(c.endedAt(), c.endedAt())
		if cause != nil {
			p.finding(cause)
		}
		for _, f := range d.findings {
			if f.on(c) && slices.Contains(afterRules, f.Rule) {
				p.finding(f)
			}
		}
		p.lose(d, c)
		if n := int64(len(p.rpcs)); n > 0 {
			p.Effect = number(n, "Call") + " in flight"
		}
		p.tellWorst("")
	}
}

// protocolViolation finds the findings that no earlier kind explains, one problem for each rule and side.
func protocolViolation(d *diagnosis) {
	for _, f := range d.findings {
		if !f.by.free() || f.Rule == "retransmission-timeout" || aboutEnd[f.Rule] {
			continue
		}
		var same []*finding
		for _, o := range d.findings {
			if o.by.free() && o.Rule == f.Rule && o.AtFault == f.AtFault {
				same = append(same, o)
			}
		}
		p := d.begin(record.Warning, placeOf(f.AtFault)...)
		p.Headline = cmp.Or(deeds[f.Rule], "broke the rule "+f.Rule) + " " + times(len(same))
		broken, done := 0, 0
		for _, o := range same {
			p.finding(o)
			p.proof(o.ref(), fact(o))
			r := d.byID[o.Transaction.Or(0)]
			switch {
			case !o.Transaction.Known():
			case r == nil || r.latency >= 0 && !r.failed():
				done++
			case r.outcome.free() && (r.unanswered() || r.failed() && !ordinary[r.failure] && !putOff[r.failure]):
				p.tasksOf(r)
				broken++
			}
		}
		if broken > 0 {
			p.Severity = record.Error
		}
		if done+broken > 0 {
			p.Effect = fmt.Sprintf("%d of %s completed", done, number(int64(done+broken), "RPC"))
		}
		p.Effect = join(p.Effect, f.Section)
		p.Command = checks(f.Rule)
	}
}
