package render

import (
	"fmt"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// points shows the capture points, what happened between them, and at which end time passed.
func (v *overview) points() {
	label := "points"
	for _, p := range v.o.Points {
		v.row(label, part{text: pointLine(p)})
		label = ""
	}
	label = "network"
	for _, n := range v.o.Network {
		v.row(label, part{text: networkLine(n)})
		label = ""
	}
	e, known := v.o.Ends.Get()
	if all := e.ClientNS + e.NetworkNS + e.ServerNS; known && all > 0 {
		percent := func(ns int64) string { return fmt.Sprintf("%.0f%%", float64(ns)*100/float64(all)) }
		v.row("time", part{text: fmt.Sprintf("latency of all RPCs: %s client, %s network, %s server", percent(e.ClientNS), percent(e.NetworkNS), percent(e.ServerNS))})
	}
	if len(v.o.Network) > 0 {
		v.b.WriteString("\n")
	}
}

// networkLine describes what happened to the packets of one direction.
func networkLine(n *record.Network) string {
	words := []string{fmt.Sprintf("%d packets", n.Packets)}
	for _, c := range []struct {
		n    int64
		word string
	}{
		{n.Lost, "lost"}, {n.NotCaptured, "not captured"}, {n.Reordered, "reordered"}, {n.Corrupted, "corrupted"}, {n.Duplicated, "duplicated"}, {n.MirrorDuplicates, "mirror duplicates"},
	} {
		if c.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", c.n, c.word))
		}
	}
	line := clean(n.From) + " to " + clean(n.To) + ": " + strings.Join(words, ", ")
	if d, known := n.Delay.Get(); known {
		line += fmt.Sprintf("; one-way delay p50 %s, p99 %s", Duration(d.P50NS), Duration(d.P99NS))
	}
	return line
}
