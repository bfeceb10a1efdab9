package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
)

var compareColumns = slices.Concat([]column{
	{
		name: "NAME", fields: "kind name=name", flex: true, min: 20,
		doc: "Group of RPCs: the operation, or the values of what --by names, which is the heading.",
	},
	{
		name: "RPCS", fields: "before.count rpcs=after.count", right: true,
		doc: "Number of RPCs before and after the change; one number if it is the same.",
	},
	{
		name: "FAILED", fields: "before.failed errors=after.failed failed=after.failed", right: true,
		doc: "Number of RPCs that were answered with an error: RDMA_ERROR, or a Reply with an RPC or NFS error status, before and after.",
	},
	{
		name: "NO REPLY", fields: "before.no_reply no_reply=after.no_reply", right: true,
		doc: "Number of RPCs without a Reply (status no_reply), before and after. They are no errors: the Reply may have been sent later, or not captured.",
	},
	{
		name: "BYTES", fields: "before.bytes after.bytes", right: true, at: 140,
		doc: "Number of bytes in the Payload streams of Calls and Replies, before and after.",
	},
}, alike(
	latencyFoot, append(latencySigns, sign{"*", "= not by chance: p < 0.001 (permutation test)"}, sign{"?", "= not tested: fewer than 30 latencies, or an upper bound"}),
	column{
		name: "P50", fields: "before.latency.p50_ns after.latency.p50_ns p50=change.p50 p_values.p50", right: true,
		doc: "Median of the latency before and after, and its relative change, from 3 latencies on.",
	},
	column{
		name: "P90", fields: "before.latency.p90_ns after.latency.p90_ns p90=change.p90 p_values.p90", right: true, at: 100,
		doc: "90th percentile of the latency before and after, and its relative change, from 10 latencies on.",
	},
	column{
		name: "P99", fields: "before.latency.p99_ns after.latency.p99_ns p99=change.p99 p_values.p99 before.total_ns after.total_ns before.share after.share before.mean_ns.min before.mean_ns.max before.exact after.mean_ns.min after.mean_ns.max after.exact before.values after.values significant", right: true, at: 140,
		doc: "99th percentile of the latency before and after, and its relative change, from 100 latencies on or, with --fail-on p99, from 30 on.",
	},
))

// Compare draws the comparisons of two captures: the problems that came and went, the groups of RPCs that only one has, a table of the others, and
// a line for everything else. Of names the captures before and after, by what the RPCs are grouped by, and judged
// the percentiles that are shown in any case, because the exit status depends on them.
func Compare(to Screen, list []*analyze.Comparison, of [2]Captures, by string, judged []string) error {
	var head strings.Builder
	if !slices.ContainsFunc(list, (*analyze.Comparison).Changed) {
		return Labeled(to.Out, to.Width, "no change", same(list))
	}
	comparedProblems(&head, to, list, of)
	comparedOnly(&head, to.Width, list)
	if _, err := io.WriteString(to.Out, head.String()); err != nil {
		return err
	}
	columns := slices.Clone(compareColumns)
	columns[0].title = GroupHeading(by)
	for i := range columns {
		if slices.Contains(judged, strings.ToLower(columns[i].name)) {
			columns[i].at = 0
		}
	}
	t := newTable(to.Out, to.Theme, to.Width, columns)
	t.by = cmp.Or(t.by, "sum of latency")
	for _, c := range list {
		if came, went := c.Only(); c.Kind != analyze.ComparedGroup || came || went {
			continue
		}
		count := func(n func(*analyze.Measured) record.Opt[int64], text func(int64) string) cell {
			a, b := n(&c.Before).Or(0), n(&c.After).Or(0)
			if a == b {
				return to.Theme.amount(a, text)
			}
			return cell{text: pair(text(a), text(b))}
		}
		row := []cell{
			{text: clean(c.Name), ink: to.Theme.key},
			count(func(m *analyze.Measured) record.Opt[int64] { return m.Count }, whole),
			count(func(m *analyze.Measured) record.Opt[int64] { return m.Errors }, whole),
			count(func(m *analyze.Measured) record.Opt[int64] { return m.NoReply }, whole),
			count(func(m *analyze.Measured) record.Opt[int64] { return m.Bytes }, field.Size),
		}
		for i := range analyze.Percentiles {
			before, after, change, significant := analyze.Percentiles[i].Of(c)
			tested := significant.Known() && slices.Contains(judged, analyze.Percentiles[i].Name)
			if !tested && min(c.Before.Latency.Count(), c.After.Latency.Count()) < [...]int{leastP50, leastP90, leastP99}[i] {
				row = append(row, cell{})
				continue
			}
			text, shade := pair(to.Theme.quantile(&c.Before.Latency, before), to.Theme.quantile(&c.After.Latency, after)), ink{}
			if share, known := change.Get(); known && before != after {
				text += " " + field.Change(share)
				switch is, known := significant.Get(); {
				case !known:
					text += "?"
				case is && share > 0:
					text, shade = text+"*", to.Theme.bad
				case is:
					text, shade = text+"*", to.Theme.good
				}
			}
			row = append(row, cell{text: text, ink: shade})
		}
		if err := t.row(row); err != nil {
			return err
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(t.feet())
	for _, c := range list {
		if label, text := ComparisonText(c); label != "" && c.Kind != analyze.ComparedProblem {
			labeled(&b, to.Width, label, text)
		}
	}
	_, err := to.Out.Write([]byte(b.String()))
	return err
}

// pair returns a value before and after, or once if it is the same.
func pair(before, after string) string {
	if before == after {
		return before
	}
	return before + " -> " + after
}

// same says what two captures have that are equal.
func same(list []*analyze.Comparison) string {
	var rpcs, problems int64
	for _, c := range list {
		switch c.Kind {
		case analyze.ComparedGroup:
			rpcs += c.After.Count.Or(0)
		case analyze.ComparedProblem:
			problems++
		}
	}
	text := record.Plural(rpcs, "RPC") + ", all latencies, stalls and negotiated values"
	if problems > 0 {
		text += ", and " + record.Plural(problems, "problem")
	}
	return text
}

// comparedMost is the number of problems that came, or went, or that both have, and of groups of one capture, of which text tells more than the number.
const comparedMost = 10

// comparedProblems writes the problems that came, went, and that both captures have. Notes that both have are in JSON.
func comparedProblems(b *strings.Builder, to Screen, list []*analyze.Comparison, of [2]Captures) {
	width, shown := to.Width, map[string]int{}
	if width <= 0 {
		width = 100
	}
	for _, c := range list {
		label, _ := ComparisonText(c)
		if c.Kind != analyze.ComparedProblem || label == "" {
			continue
		}
		p, capture, until := c.After.Problem, of[1], effects
		if label == wentLabel {
			p, capture = c.Before.Problem, of[0]
		}
		if label == bothLabel || p.Severity == record.Note {
			until = headline
		}
		if shown[label]++; shown[label] > comparedMost {
			continue
		}
		lines := to.Theme.problem(p, until, false, false)
		if text := numbersChanged(c); text != "" {
			lines = append(lines, textLine{parts: []part{{indent + text, ink{}}}})
		}
		for i := range lines {
			lines[i].parts[0].text = fmt.Sprintf("%-10s", label) + lines[i].parts[0].text
			lines[i].write(b, to.Theme, width, capture)
			label = ""
		}
	}
	for _, label := range []string{cameLabel, wentLabel, bothLabel} {
		if n := shown[label] - comparedMost; n > 0 {
			labeled(b, to.Width, label, fmt.Sprintf("+ %d more", n))
		}
	}
}

// numbersChanged says how the severity and the rank of a problem that both captures have, and the time that tasks waited, changed. It returns nothing if they did not.
func numbersChanged(c *analyze.Comparison) string {
	b, a := c.Before.Problem, c.After.Problem
	if b == nil || a == nil {
		return ""
	}
	var list []string
	if b.Severity != a.Severity {
		list = append(list, pair(severityWords[b.Severity], severityWords[a.Severity]))
	}
	if before, after := field.Brief(b.BlockedNS), field.Brief(a.BlockedNS); before != after {
		list = append(list, "operations waited (overlaps counted once) "+pair(before, after))
	}
	if b.Rank != a.Rank {
		list = append(list, "rank "+pair(fmt.Sprint(b.Rank), fmt.Sprint(a.Rank)))
	}
	return strings.Join(list, ", ")
}

// comparedOnly writes which groups of RPCs only one of the captures has.
func comparedOnly(b *strings.Builder, width int, list []*analyze.Comparison) {
	only := map[string][]string{}
	for _, c := range list {
		if came, went := c.Only(); c.Kind == analyze.ComparedGroup && (came || went) {
			label, m := "new", &c.After
			if went {
				label, m = "gone", &c.Before
			}
			text := clean(c.Name) + " (" + record.Plural(m.Count.Or(0), "RPC")
			if n := m.Errors.Or(0); n > 0 {
				text += fmt.Sprintf(", %d failed", n)
			}
			only[label] = append(only[label], text+")")
		}
	}
	for _, label := range []string{"new", "gone"} {
		if names := only[label]; len(names) > comparedMost {
			only[label] = append(names[:comparedMost], fmt.Sprintf("%d more", len(names)-comparedMost))
		}
		if names := only[label]; names != nil {
			labeled(b, width, label, strings.Join(names, ", "))
		}
	}
}

// labeled writes lines with a label before the first.
func labeled(b *strings.Builder, width int, label, text string) {
	for _, line := range wrapped(text, width-10) {
		fmt.Fprintf(b, "%-10s%s\n", label, line)
		label = ""
	}
}

// Labeled writes text with a label, in the form of the lines below the table of [Compare].
func Labeled(to io.Writer, width int, label, text string) error {
	var b strings.Builder
	labeled(&b, width, label, clean(text))
	_, err := io.WriteString(to, b.String())
	return err
}

// The labels of problems of two captures.
const (
	cameLabel = "new"
	wentLabel = "gone"
	bothLabel = "both"
)

// ComparisonText describes a comparison that is no group: what it is about, and what changed. Both are empty for a group, for what did not change,
// and for a note that both captures have.
func ComparisonText(c *analyze.Comparison) (label, text string) {
	switch c.Kind {
	case analyze.ComparedProblem:
		label = bothLabel
		p := c.After.Problem
		switch came, went := c.Only(); {
		case came:
			label = cameLabel
		case went:
			label, p = wentLabel, c.Before.Problem
		case p.Severity == record.Note && c.Before.Problem.Severity == record.Note:
			return "", ""
		}
		text = severityWords[p.Severity] + " " + PlaceText(p, false) + p.Headline
		for _, more := range []string{EffectText(p), numbersChanged(c)} {
			if more != "" {
				text += "; " + more
			}
		}
	case analyze.ComparedWait:
		if !c.Changed() {
			break
		}
		label = "stalls"
		side := func(m *analyze.Measured) string {
			if m.Count.Or(0) == 0 {
				return "none"
			}
			text := fmt.Sprintf("%s, sum over RPCs %s", record.Plural(m.Count.Or(0), "stall"), Duration(m.TotalNS.Or(0)))
			if share, known := m.Share.Get(); known {
				text += fmt.Sprintf(" (%.1f%% of all latency)", share*100)
			}
			return text
		}
		text = WaitText(record.WaitReason(c.Name)) + ": " + pair(side(&c.Before), side(&c.After))
	case analyze.ComparedShare:
		if c.Proven() == 0 {
			break
		}
		label = "proven"
		side := func(m *analyze.Measured) string {
			mean := m.MeanNS.Or(record.Bounds{})
			return between(mean.Min, mean.Max)
		}
		text = c.Name + ": " + pair(side(&c.Before), side(&c.After)) + " for an RPC on average"
	case analyze.ComparedSetting:
		name := c.Name
		if unit := settingUnits[c.Name]; unit != "" {
			name += " (" + unit + ")"
		}
		label, text = "parameter", name+": "+strings.Join(c.Before.Values, ", ")+" -> "+strings.Join(c.After.Values, ", ")
	}
	return label, clean(text)
}

// between returns the least and the most that a time can have been.
func between(least, most int64) string {
	switch a, b := Duration(least), Duration(most); {
	case a == b:
		return a
	case least == 0:
		return "at most " + b
	default:
		return a + " to " + b
	}
}

// settingUnits has the units of negotiated values.
var settingUnits = map[string]string{
	"path_mtu": "bytes", "inline_threshold.client_to_server": "bytes", "inline_threshold.server_to_client": "bytes",
}
