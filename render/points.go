package render

import (
	"fmt"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
)

// points shows the capture points, what happened between them, and at which end time passed.
func (v *overview) points() {
	label := "points"
	for _, p := range v.o.Points {
		v.line(label, pointLine(p), ink{})
		label = ""
	}
	label = "network"
	for _, n := range v.o.Network {
		v.line(label, networkLine(n), ink{})
		label = ""
	}
	if label == "" {
		v.suggest("network FILE")
	}
	e, known := v.o.Ends.Get()
	if all := e.ClientNS + e.NetworkNS + e.ServerNS; known && all > 0 {
		places := []phase{{"at the server", e.ServerNS}, {"in the network", e.NetworkNS}, {"at the client", e.ClientNS}}
		shares := analyze.Percents([]int64{e.ServerNS, e.NetworkNS, e.ClientNS})
		var words []string
		for i, p := range places {
			words = append(words, fmt.Sprintf("%d%% %s", shares[i], p.name))
		}
		v.line("places", fmt.Sprintf("latencies of %s that both ends captured: %s", record.Plural(e.Transactions, "RPC"), strings.Join(words, ", ")), ink{})
		v.line("", "The time until a lost packet was retransmitted is part of the network.", v.theme.dim)
	}
}

// networkLine describes what happened to the packets of one direction.
func networkLine(n *record.Network) string {
	words := []string{record.Plural(n.Packets, "packet")}
	for _, c := range []struct {
		n    int64
		word string
	}{
		{n.Lost, "lost"}, {n.NotCaptured, "not captured"}, {n.Reordered, "reordered"}, {n.Corrupted, "damaged"}, {n.Duplicated, "duplicated"}, {n.MirrorDuplicates, "mirror duplicates"},
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
