package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/render"
)

// fact is a sentence about what is wrong, or that something is not.
type fact struct {
	Class   string // bad, warn, note, info or good
	Word    string // the class in a word, because a color is not enough
	Text    string
	Link    string // anchor of the place with more
	Command string // that shows more
}

// factWords name the classes of facts.
var factWords = map[string]string{"bad": "error", "warn": "warning", "note": "note", "info": "info", "good": "ok"}

// factClasses are the classes of the severities.
var factClasses = map[record.Severity]string{record.Error: "bad", record.Warning: "warn", record.Note: "note"}

// mostFacts is the number of rules and waits that have sentences of their own.
const mostFacts = 5

// facts collects the sentences.
type facts struct {
	list []fact
	o    *analyze.Overview
	s    *record.Summary
	v    *page
}

// run returns a command.
func (f *facts) run(args ...string) string { return f.v.run(args...) }

// say adds a sentence.
func (f *facts) say(class, link, command, format string, args ...any) {
	f.list = append(f.list, fact{class, factWords[class], fmt.Sprintf(format, args...), link, command})
}

// verdictView is the verdict, with the commands that show what it is based on.
type verdictView struct {
	Class, Text, Command string
	Evidence             []analyze.Evidence
}

// placeClasses are the classes of the places of trouble.
var placeClasses = map[analyze.Place]string{analyze.Clear: "good", analyze.Unproven: "warn", analyze.InConfiguration: "warn"}

// verdict returns the verdict.
func (v *page) verdict() verdictView {
	d := &v.o.Verdict
	view := verdictView{Class: cmp.Or(placeClasses[d.Where], "bad"), Text: render.Clean(d.Line), Command: v.run("overview", "FILE")}
	if d.Faultless() {
		view.Class = placeClasses[analyze.Unproven]
	}
	for _, e := range d.Evidence {
		view.Evidence = append(view.Evidence, analyze.Evidence{Fact: render.Clean(e.Fact), Command: v.typed(e.Command)})
	}
	return view
}

// whatIsWrong returns what an overview found, the most severe first. Without any problem, it returns
// what was looked for.
func (v *page) whatIsWrong() []fact {
	f := &facts{o: v.o, s: v.summary, v: v}
	f.capture()
	f.findings()
	f.endings()
	f.outcomes()
	f.waits()
	f.transport()
	order := []string{"bad", "warn", "note", "good", "info"}
	slices.SortStableFunc(f.list, func(a, b fact) int { return slices.Index(order, a.Class) - slices.Index(order, b.Class) })
	if v.summary.RDMA+v.summary.RPC > 0 && !slices.ContainsFunc(f.list, func(x fact) bool { return x.Class != "good" && x.Class != "info" }) {
		f.say("good", "", v.run("check", "FILE"), "Nothing was found: every Call has a Reply, none has an error status, no packet was retransmitted or rejected, and none of %s has a finding.", record.Plural(int64(len(rule.All)), "rule"))
	}
	return f.list
}

// capture says what the capture lacks.
func (f *facts) capture() {
	s := f.s
	if s.RDMA+s.RPC == 0 {
		f.say("warn", "", f.run("packets", "FILE"), "The capture contains no RDMA: neither RoCE, nor iWARP, nor native InfiniBand.")
	}
	for _, sentence := range analyze.Unopened(s) {
		f.say("note", "", f.run("packets", "FILE"), "The capture contains something else: %s.", sentence)
	}
	if problem, known := s.InputError.Get(); known {
		f.say("bad", "", "", "The input is damaged; the page is about everything before that: %s", render.Clean(problem))
	}
	for _, x := range []struct {
		n    int64
		text string
	}{
		{s.NotCaptured, "that receivers acknowledged but that were not captured"},
		{int64(s.CaptureDrops), "dropped by the capturing program"},
		{s.Truncated, "truncated to the snapshot length"},
		{s.Malformed, "with headers that could not be decoded"},
		{s.UnknownLink, "with a link type that rdmadump does not read"},
		{s.TimeBackwards, "with a time stamp that is earlier than that of the packet before"},
	} {
		if x.n > 0 {
			f.say("note", "", "", "The capture is incomplete or unusual: %s %s.", record.Plural(x.n, "packet"), x.text)
		}
	}
	for _, kind := range sortedKeys(s.Evicted) {
		f.say("warn", "", "", "The memory limit was reached, and %s of the analysis were discarded; a larger --memory keeps them.", record.Plural(s.Evicted[kind], "object")+" ("+strings.ReplaceAll(kind, "_", " ")+")")
	}
	for _, n := range s.NotJudged {
		f.say("note", "", f.run("check", "FILE"), "Not reported: %d possible %s, because the capture does not prove it (%s).", n.Count, n.Rule, strings.ReplaceAll(n.Gap, "_", " "))
	}
}

// sortedKeys returns the keys of a map with a count that is not 0.
func sortedKeys[K ~string](m map[K]int64) (keys []K) {
	for key, n := range m {
		if n != 0 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// findings says which rules have findings.
func (f *facts) findings() {
	more := maps.Clone(f.v.severity) // A rule can have findings of several severities.
	for i, x := range f.o.Findings {
		if i >= mostFacts {
			break
		}
		for severity, n := range f.v.rules[x.Rule].counts {
			more[severity] -= n
		}
		title := x.Message
		if r := rule.Find(x.Rule); r != nil {
			title = r.Title()
		}
		f.say(factClasses[x.Severity], ruleAnchor(x.Rule), f.run("check", "FILE", "-Y", "rule == "+x.Rule), "%s of %s: %s.", record.Plural(x.Count, "finding"), x.Rule, render.Clean(title))
	}
	for _, severity := range record.Severities {
		if n := more[severity]; n > 0 {
			f.say(factClasses[severity], "findings", f.run("check", "FILE"), "%s of other rules with the severity %s.", record.Plural(n, "finding"), severity)
		}
	}
}

// endings says how connections ended that did not end in order.
func (f *facts) endings() {
	for i, e := range f.o.Ended {
		if i == mostFacts {
			f.say("warn", "connections", f.run("connections", "FILE"), "%s ended in other ways that are not an orderly disconnect.", record.Plural(f.rest(i), "connection"))
			break
		}
		text := fmt.Sprintf("%s ended: %s", record.Plural(e.Count, "connection"), render.EndingText(e.How, e.By))
		if e.OutstandingCalls > 0 {
			text += ", with " + record.CallsAtEnd(e.OutstandingCalls, e.NotAccepted)
		}
		link, command := connAnchor(e.First), f.run("connections", "FILE", "--conn", fmt.Sprint(e.First))
		if e.Count > 1 {
			link, command = "connections", f.run("connections", "FILE", "-Y", render.EndingFilter(e.How, e.By))
		}
		f.say("bad", link, command, "%s.", text)
	}
}

// rest returns the number of connections that the endings from i on count.
func (f *facts) rest(i int) (n int64) {
	for _, e := range f.o.Ended[i:] {
		n += e.Count
	}
	return n
}

// outcomes says which RPCs failed.
func (f *facts) outcomes() {
	r := &f.o.RPCs
	total := r.Total()
	class, text := "warn", "without a Reply"
	if f.s.OnlyFrom() != "" {
		class, text = "note", "whose Replies are not in the capture"
	}
	for _, x := range []struct {
		n     int64
		class string
		text  string
		value string
	}{
		{r.NoReply, class, text, "no_reply"},
		{r.RDMAError, "warn", "answered with RDMA_ERROR", "rdma_error"},
		{r.NoCall, "note", "without a Call in the capture", "no_call"},
		{r.Answered, "note", "of whose Reply too little was captured to say whether they succeeded", "answered"},
	} {
		if x.n > 0 {
			f.say(x.class, "rpcs", f.run("FILE", "-Y", "status == "+x.value), "RPCs %s: %d of %d.", x.text, x.n, total)
		}
	}
	if r.Failed > 0 {
		var words []string
		for i, x := range r.Statuses {
			if i == mostFacts {
				words = append(words, "and others")
				break
			}
			words = append(words, fmt.Sprintf("%d %s", x.Count, render.Clean(x.Status)))
		}
		f.say("note", "rpcs", f.run("FILE", "-Y", "status != ok"), "RPCs with an error status: %d of %d (%s).", r.Failed, total, strings.Join(words, ", "))
	}
	if n := r.RetransmittedOnNewConnection; n > 0 {
		f.say("warn", "rpcs", f.run("FILE", "-Y", "retransmit_of != null"), "RPCs that retransmit an RPC of an earlier connection: %d of %d.", n, total)
	}
}

// waits says where RPCs lost time.
func (f *facts) waits() {
	t := &f.o.Time
	if proven := render.ProvenParts(&t.Shares); proven != "" {
		f.say("info", "operations", f.run("stats", "FILE"), "Proven of the latencies of answered RPCs: %s.", proven)
	}
	for i, w := range t.Waits {
		if i == mostFacts {
			break
		}
		class, text := "warn", fmt.Sprintf("%s stalled for %s in total: %s", record.Plural(w.RPCs, "RPC"), render.Duration(w.TotalNS), render.WaitText(w.Reason))
		if w.Reason == record.CreditLimit {
			text = fmt.Sprintf("%s came after a Reply had freed a credit; before, all credits were in use for %s", record.Plural(w.RPCs, "Call"), render.Duration(w.TotalNS))
		} else if w.TotalNS*100 < t.TotalNS {
			class = "note" // less than one percent
		}
		f.say(class, "operations", f.run("FILE", "-Y", "waits.reason == "+string(w.Reason)), "%s.", text)
	}
	if u := &t.Unanswered; u.Stalled > 0 {
		f.say("warn", "rpcs", f.run("FILE", "-Y", "status == no_reply"), "RPCs without a Reply that stalled: %d, for %s.", u.Stalled, render.Duration(u.StalledNS))
	}
	for i, c := range f.o.Credits {
		if i == mostFacts {
			f.say("warn", "connections", f.run("connections", "FILE"), "%s more used all their credits.", record.Plural(int64(len(f.o.Credits)-i), "connection"))
			break
		}
		f.say("warn", connAnchor(c.Connection), f.run("connections", "FILE", "--conn", fmt.Sprint(c.Connection), "--timeline"), "On connection %d, %s %s in use.", c.Connection, record.Every(c.Granted.Or(0), "credit"), record.Were(c.Granted.Or(0)))
	}
	if len(f.o.Slowest) > 0 {
		r := f.o.Slowest[0].Transaction
		f.say("info", rpcAnchor(r.ID), f.run("FILE", "--conn", fmt.Sprint(r.Connection), "--xid", r.XID.String()), "The slowest RPC, without those of mounting, is XID %v, %s, with %s. %s.", r.XID, render.Clean(opName(r)),
			render.Latency(r), strings.TrimSuffix(render.Cause(r), "."))
	}
}

// transport says how well the transport worked.
func (f *facts) transport() {
	h := &f.o.Health
	var parts []string
	for _, x := range []struct {
		n    int64
		text string
	}{{h.Retransmitted, "retransmitted"}, {h.OutOfOrder, "out of order"}, {h.Naks, "NAKs"}, {h.RNRNaks, "RNR NAKs"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.text))
		}
	}
	if f.s.ICRCBad > 0 {
		parts = append(parts, fmt.Sprintf("%d with a bad checksum", f.s.ICRCBad))
	}
	if parts != nil {
		f.say("warn", "connections", f.run("packets", "FILE", "-Y", "marks in {retransmitted, out_of_order, refused, bad_icrc}"), "Of %s on connections: %s.", record.Plural(h.Packets, "packet"), strings.Join(parts, ", "))
	} else if h.Packets > 0 && h.NotCaptured == 0 {
		f.say("good", "", "", "Every packet of the connections was sent once and in order, and no NAK was sent.")
	}
	if f.s.PFCPauses > 0 {
		f.say("note", "", "", "The capture contains %s of priority flow control (PFC).", record.Plural(f.s.PFCPauses, "pause"))
	}
}
