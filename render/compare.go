package render

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
)

var compareColumns = []column{
	{name: "NAME", fields: "kind name=name", flex: true, min: 22},
	{name: "RPCS", fields: "before.count rpcs=after.count", right: true},
	{name: "ERRORS", former: "ERR", fields: "before.errors errors=after.errors err=after.errors", right: true, rank: 3},
	{name: "NO REPLY", fields: "before.no_reply no_reply=after.no_reply", right: true, quiet: true, some: true},
	{name: "BYTES", fields: "before.bytes after.bytes", right: true, rank: 4},
	{name: "P50", fields: "before.latency.p50_ns after.latency.p50_ns p50=change.p50 p_values.p50", right: true, rank: 1},
	{name: "P90", fields: "before.latency.p90_ns after.latency.p90_ns p90=change.p90 p_values.p90", right: true, rank: 2},
	{name: "P99", fields: "before.latency.p99_ns after.latency.p99_ns p99=change.p99 p_values.p99 before.total_ns after.total_ns before.share after.share before.mean_min_ns before.mean_max_ns before.exact after.mean_min_ns after.mean_max_ns after.exact before.values after.values significant", right: true},
}

// Compare draws the comparisons of two captures: a table of the groups of RPCs, and a line for
// everything else.
func Compare(to Screen, list []*analyze.Comparison) error {
	t := newTable(to.Out, to.Theme, to.Width, compareColumns)
	rows, ordered, last := 0, true, int64(math.MaxInt64)
	tested, chance, marked, changed, pairs, absent, bounds := false, false, false, false, false, false, false
	for _, c := range list {
		if c.Kind != analyze.ComparedGroup {
			changed = changed || c.Proven() != 0 || c.Kind != analyze.ComparedWait && c.Kind != analyze.ComparedShare || c.Before.Count != c.After.Count || c.Before.TotalNS != c.After.TotalNS
			continue
		}
		count := func(n func(*analyze.Measured) record.Opt[int64], text func(int64) string) cell {
			a, b := n(&c.Before).Or(0), n(&c.After).Or(0)
			changed, pairs = changed || a != b, pairs || text(a) != text(b)
			return cell{text: pair(text(a), text(b))}
		}
		plain := func(n int64) string { return fmt.Sprint(n) }
		total := c.Before.TotalNS.Or(0) + c.After.TotalNS.Or(0)
		rows, ordered, last = rows+1, ordered && total <= last, total
		row := []cell{
			{text: clean(c.Name), ink: to.Theme.key},
			count(func(m *analyze.Measured) record.Opt[int64] { return m.Count }, plain),
			count(func(m *analyze.Measured) record.Opt[int64] { return m.Errors }, plain),
			count(func(m *analyze.Measured) record.Opt[int64] { return m.NoReply }, plain),
			count(func(m *analyze.Measured) record.Opt[int64] { return m.Bytes }, Bytes),
		}
		for i := range analyze.Percentiles {
			before, after, change, significant := analyze.Percentiles[i].Of(c)
			text := pair(about(&c.Before.Latency, before), about(&c.After.Latency, after))
			bounds = bounds || strings.Contains(text, AtMost)
			if before.Known() != after.Known() { // A dash before or after ">" would look like an arrow.
				text, absent = strings.ReplaceAll(text, "-", "none"), true
			}
			shade := ink{}
			if share, known := change.Get(); known && before != after {
				changed = true
				text += " " + Change(share)
				switch is, known := significant.Get(); {
				case !known:
					text, marked = text+"?", true
				case is && share > 0:
					text, shade, tested = text+"!", to.Theme.bad, true
				case is:
					text, shade, tested = text+"!", to.Theme.good, true
				default:
					chance = true
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
	if rows > 1 && ordered {
		b.WriteString("rows  with the largest sums of latencies in both captures first\n")
	}
	if pairs {
		b.WriteString("a > b before > after; a single value is the same in both\n")
	}
	if absent {
		b.WriteString("none  no latency, because the capture has no such RPC with a Reply\n")
	}
	if tested {
		b.WriteString("!     more than chance explains: p < 0.001 in an exact permutation test\n")
	}
	if chance {
		b.WriteString("+1%   without a mark: tested, and chance explains it\n")
	}
	if marked {
		b.WriteString("?     may be chance, not tested: fewer than 30 latencies, or an upper bound\n")
	}
	if bounds {
		b.WriteString("<=    upper bound: it is not proven which copy of a Reply was accepted\n")
	}
	for _, c := range list {
		compared(&b, to.Width, c)
	}
	if !changed {
		b.WriteString("no change\n")
	}
	_, err := to.Out.Write([]byte(b.String()))
	return err
}

// pair returns a value before and after, or once if it is the same.
func pair(before, after string) string {
	if before == after {
		return before
	}
	return before + " > " + after
}

// compared writes a line for a comparison that is no group.
func compared(b *strings.Builder, width int, c *analyze.Comparison) {
	if label, text := ComparisonText(c); label != "" {
		labeled(b, width, label, text)
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

// ComparisonText describes a comparison that is no group: what it is about, and what changed. Both are empty for a group, and
// for the time of a side if the captures do not prove that it changed.
func ComparisonText(c *analyze.Comparison) (label, text string) {
	switch c.Kind {
	case analyze.ComparedWait:
		label = "stalls"
		side := func(m *analyze.Measured) string {
			if m.Count.Or(0) == 0 {
				return "none"
			}
			text := fmt.Sprintf("%s, %s in total", record.Plural(m.Count.Or(0), "stall"), Duration(m.TotalNS.Or(0)))
			if share, known := m.Share.Get(); known {
				text += fmt.Sprintf(" (%.1f%% of all latencies)", share*100)
			}
			return text
		}
		text = WaitText(record.WaitReason(c.Name)) + ": " + unlessSame(side(&c.Before), side(&c.After))
	case analyze.ComparedShare:
		if c.Proven() == 0 {
			break
		}
		label = "proven"
		side := func(m *analyze.Measured) string { return between(m.MinNS.Or(0), m.MaxNS.Or(0)) }
		text = c.Name + ": " + unlessSame(side(&c.Before), side(&c.After)) + " for an RPC on average"
	case analyze.ComparedFinding:
		label, text = "vanished", fmt.Sprintf("%s: %s", c.Name, record.Plural(c.Before.Count.Or(0), "finding"))
		if c.Before.Count.Or(0) == 0 {
			label, text = "new", fmt.Sprintf("%s: %s", c.Name, record.Plural(c.After.Count.Or(0), "finding"))
		}
	case analyze.ComparedSetting:
		name := c.Name
		if unit := settingUnits[c.Name]; unit != "" {
			name += " (" + unit + ")"
		}
		label, text = "parameter", name+": "+strings.Join(c.Before.Values, ", ")+" > "+strings.Join(c.After.Values, ", ")
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

// unlessSame returns what was before and what is after, or that it is the same.
func unlessSame(before, after string) string {
	if before == after {
		return before + " in both"
	}
	return before + " > " + after
}
