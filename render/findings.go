package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

var findingColumns = []column{
	{name: "SEVERITY", fields: "severity"},
	{name: "TIME", fields: "time", right: true, usual: 11},
	{name: "PACKET", fields: "packet", right: true, rank: 3},
	{name: "POINT", fields: "point", some: true, rank: 3},
	{name: "CONN", fields: "connection client server", right: true, rank: 2},
	{name: "XID", fields: "xid operation", rank: 1},
	{name: "AT FAULT", fields: "at_fault", rank: 4},
	{name: "RULE", fields: "rule"},
	{name: "MESSAGE", fields: "message section", flex: true, min: 20, usual: 60},
}

// FindingGroup is the findings of one rule with the same side at fault.
type FindingGroup struct {
	First      record.Finding
	Count      int64
	LastPacket record.Opt[int64]
	LastTime   record.Opt[record.Time]
	LastPoint  string // the capture point whose number LastPacket is; empty if there is one

	// Hosts has the numbers of findings by the address of the side at fault or, if no side is, of the client. It is nil if the
	// capture has one client.
	Hosts map[string]int64
}

// shownHosts is the number of hosts that a group of findings names.
const shownHosts = 2

// hosts returns the hosts with the most findings of a group.
func (g *FindingGroup) hosts() string {
	list := slices.SortedFunc(maps.Keys(g.Hosts), func(a, b string) int {
		return cmp.Or(cmp.Compare(g.Hosts[b], g.Hosts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, address := range list[:min(len(list), shownHosts)] {
		parts = append(parts, fmt.Sprintf("%dx %s", g.Hosts[address], address))
	}
	if more := len(list) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

// sideAtFault returns the side at fault, or a sign that none is proven.
func (g *FindingGroup) sideAtFault() string {
	if g.First.Rule == "capture-incomplete" {
		return "capture"
	}
	return string(g.First.AtFault.Or("?"))
}

// packets returns the first and the last packet of a group, with the time of the first since the start of the capture.
func (g *FindingGroup) packets(start record.Time) string {
	first, has := g.First.Packet.Get()
	if !has {
		return ""
	}
	when := func(at record.Opt[record.Time]) string {
		return known(at, "", func(at record.Time) string { return fmt.Sprintf(" at %.2f s", float64(at.Sub(start))/1e9) })
	}
	last, several := g.LastPacket.Get()
	if several = several && g.Count > 1; !several || g.LastPoint != g.First.Point {
		text := "packet " + numbered(first, g.First.Point) + when(g.First.Time)
		if several {
			text += " to " + numbered(last, g.LastPoint) + when(g.LastTime)
		}
		return text
	}
	text := fmt.Sprintf("packet %d%s%s%d%s", first, when(g.First.Time), map[bool]string{true: ", ", false: " to "}[g.Count == 2], last, when(g.LastTime))
	if g.LastPoint != "" {
		text += " of " + clean(g.LastPoint)
	}
	return text
}

// Findings writes some lines for each group: the severity, the rule, the number of findings, the side at fault and the
// packets; the XID of the first finding, what happened, and the section. The last line counts them, or says that there is none; scope says which rules were not checked.
func Findings(to Screen, groups []*FindingGroup, start record.Time, rules int, scope string) error {
	width, t := cmp.Or(to.Width, wholeOverview), to.Theme
	slices.SortStableFunc(groups, func(a, b *FindingGroup) int {
		return cmp.Or(cmp.Compare(a.First.Severity.Rank(), b.First.Severity.Rank()), cmp.Compare(b.Count, a.Count), cmp.Compare(a.First.Packet.Or(0), b.First.Packet.Or(0)))
	})
	names, named := 0, map[string]bool{}
	for _, g := range groups {
		names = max(names, len(g.First.Rule))
		named[g.First.Rule] = true
	}
	counts, sides := map[record.Severity]int64{}, map[string]int64{}
	var b strings.Builder
	row := func(parts ...part) {
		line := textLine{parts: parts}
		line.write(&b, t, width, Captures{})
	}
	for _, g := range groups {
		counts[g.First.Severity] += g.Count
		sides[g.sideAtFault()] += g.Count
		packets, room := g.packets(start), width-len("ERROR  ")-names-len("     1x  capture  ")
		if wide(packets) > room {
			packets = ""
		}
		row(part{fmt.Sprintf("%-6s ", severityWords[g.First.Severity]), t.severity(g.First.Severity)}, part{fmt.Sprintf("%-*s", names, g.First.Rule), t.key},
			part{fmt.Sprintf("%6sx  %-8s %s", field.Count(g.Count), g.sideAtFault(), packets), ink{}})
		if packets == "" { // It does not fit.
			for _, line := range wrapped(g.packets(start), width-len("ERROR  ")) {
				row(part{"       " + line, ink{}})
			}
		}
		xid := known(g.First.XID, "", func(x record.Hex32) string { return "XID " + x.String() + ":" })
		if g.Count > 1 {
			xid = strings.TrimSpace("first: " + xid)
		}
		text := strings.Join(slices.DeleteFunc([]string{xid, g.hosts(), g.First.Message}, func(s string) bool { return s == "" }), " ")
		for _, line := range wrapped(clean(text)+" ("+g.First.Section+")", width-len("ERROR  ")) {
			row(part{"       ", ink{}}, part{line, t.dim})
		}
	}
	if len(groups) == 0 {
		row(part{"OK     ", t.good}, part{"no findings, " + record.Plural(int64(rules), "rule") + " checked", ink{}})
	} else {
		words, at := []string{}, []string{}
		for _, s := range record.Severities {
			if n := counts[s]; n > 0 {
				words = append(words, field.Count(n)+" "+record.Noun(n, string(s)))
			}
		}
		for _, side := range []string{"client", "server", "capture", "?"} {
			if n := sides[side]; n > 0 {
				at = append(at, map[bool]string{true: "not known (?)", false: side}[side == "?"]+" "+field.Count(n))
			}
		}
		b.WriteByte('\n')
		row(part{strings.Join(words, ", ") + " of " + record.Plural(int64(len(named)), "rule") + "; by side that broke the rule: " + strings.Join(at, ", "), ink{}})
	}
	if scope != "" {
		row(part{scope, t.dim})
	}
	_, err := io.WriteString(to.Out, b.String())
	return err
}
