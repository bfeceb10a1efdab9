package analyze

import (
	"fmt"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// What RPCs waited for: buffers, credits, other transfers and the server.

// noBuffers is for a side that has no receive buffers.
func noBuffers(j *facts) said {
	if j.o.Health.RNRNaks == 0 {
		return said{}
	}
	for _, side := range []record.End{record.Server, record.Client} {
		if ns := j.rnr[side]; float64(ns) >= stalledShare*float64(max(j.o.Time.TotalNS, 1)) && ns > 0 {
			return said{
				Place(side), nil, fmt.Sprintf("it had no receive buffers: %s, and RPCs stalled for %s", plural(j.o.Health.RNRNaks, "RNR NAK"), field.Duration(ns)),
				[]Evidence{{plural(j.o.Health.RNRNaks, "RNR NAK"), "FILE -Y 'waits.reason == rnr_nak'"}},
			}
		}
	}
	return said{}
}

// fewCredits is for Calls that waited for credits. If Calls and Replies are missing, or not in the order in which they
// were sent, it is not known how many Calls were outstanding.
func fewCredits(j *facts) said {
	n := &j.o.RPCs
	i := slices.IndexFunc(j.o.Credits, func(c CreditUse) bool { return c.Peak <= int(c.Granted.Or(0)) })
	if i < 0 || j.o.Time.CreditsNS == 0 || float64(j.o.Time.CreditsNS) < creditShare*float64(j.o.Time.TotalNS) || 10*(n.NoReply+n.NoCall) > n.Complete {
		return said{}
	}
	c := j.o.Credits[i]
	text := fmt.Sprintf("few credits: %s of connection %d %s in use", record.Every(c.Granted.Or(0), "credit"), c.Connection, record.Were(c.Granted.Or(0)))
	if u, known := c.Usage.Get(); known {
		text += fmt.Sprintf(" for %s of the %s with Calls in flight", field.Duration(u.AllInUseNS), field.Duration(u.InFlightNS))
	}
	if w := slices.IndexFunc(j.o.Time.Waits, func(w WaitCount) bool { return w.Reason == record.CreditLimit }); w >= 0 {
		text += fmt.Sprintf(", and %s came within 100ms after a Reply had freed a credit", plural(j.o.Time.Waits[w].RPCs, "Call"))
	}
	return said{
		InConfiguration, nil, text,
		[]Evidence{{"all credits in use", fmt.Sprintf("connections FILE --conn %d --timeline", c.Connection)}, {"Calls came after a Reply had freed a credit", "FILE -Y 'waits.reason == credit_limit'"}},
	}
}

// lateServer counts the RPCs whose answer came late although the server had the Call.
func lateServer(j *facts) said {
	h, l := &j.o.Health, &j.late
	if l.count == 0 || !l.fine || l.disorder > l.count || h.Retransmitted+h.OutOfOrder+h.NotCaptured+h.Damaged+j.s.TimeBackwards > 0 {
		return said{}
	}
	return said{
		Unproven,
		[]Place{InServer, InNetwork},
		fmt.Sprintf("%s answered more than 1s after the server had the Call, the slowest %s after %s: the server, or the way back", plural(l.count, "RPC"), l.name, field.Duration(l.longest)),
		[]Evidence{{plural(l.count, "RPC") + " answered late", "FILE -Y 'latency > 1s' --top 5"}},
	}
}

// busy counts the RPCs that waited while their connection was busy.
func busy(j *facts) said {
	for _, w := range j.o.Time.Waits {
		if share := float64(w.TotalNS) / float64(max(j.o.Time.TotalNS, 1)); w.Reason == record.HeadOfLine && share >= stalledShare {
			return said{
				Unproven,
				[]Place{InConfiguration},
				fmt.Sprintf("%s waited %s for transfers on the same connection, %.0f%% of %s", plural(w.RPCs, "RPC"), field.Duration(w.TotalNS), share*100, j.total()),
				[]Evidence{{"RPCs waited while their connection was busy", "FILE -Y 'waits.reason == head_of_line'"}},
			}
		}
	}
	return said{}
}

// slowServer is for a server that took most of the latency, as the capture proves.
func slowServer(j *facts) said {
	return j.slow(InServer, record.AtServer, 0)
}

// slowClient is for a client that took most of the latency to respond to RDMA Reads.
func slowClient(j *facts) said {
	return j.slow(InClient, record.AtClient, 1)
}

// slowNetwork is for a network that took most of the latency. The time until a lost packet was retransmitted is part of that, and is
// said with the losses, whose cause may be a host that was down.
func slowNetwork(j *facts) said {
	if n := SumNetwork(j.o.Network); n.InQuiet() > 0 || j.stall() >= unknownShare {
		return said{}
	}
	return j.slow(InNetwork, record.PlaceUnknown, 2)
}

// slow says how much of the latency a side took at least, if that is most of it. i is its place among the shares.
func (j *facts) slow(side Place, at record.Place, i int) said {
	t := &j.o.Time
	ns := t.Shares.Sides()[i].NS.Min
	if j.longest < slowLatency || t.TotalNS == 0 || float64(ns) < unknownShare*float64(t.TotalNS) {
		return said{}
	}
	proof := "as the capture proves"
	switch {
	case j.o.Points != nil:
		proof = "seen at both ends"
	case slices.ContainsFunc(j.places, func(x placed) bool { return x.place == at && !x.refuted }):
		proof = "captured at the " + string(side)
		if slices.ContainsFunc(j.places, func(x placed) bool { return x.place == at && x.how == "option" }) {
			proof += ", as --at says"
		}
	}
	percent, least := t.Shares.Percents(t.TotalNS)[i], ""
	if percent.Min < percent.Max {
		least = "at least "
	}
	text := fmt.Sprintf("the %s took %s of the total latency (%s%s of %s; %s)", side, percents(percent), least, field.Duration(ns), j.sum(), proof)
	return said{side, nil, text, []Evidence{{"where the latency of each operation passed", "stats FILE"}}}
}

// shareUnknown says how much of the latency may be the server's or the network's, if that is most of it and no capture
// points tell the two apart.
func shareUnknown(j *facts) said {
	t := &j.o.Time
	ns, least := t.Shares.ServerMaxNS, t.Shares.ServerMinNS
	if j.o.Points != nil || slowServer(j).text != "" || j.longest < slowLatency || t.TotalNS == 0 || float64(ns) < unknownShare*float64(t.TotalNS) {
		return said{}
	}
	percent := t.Shares.Percents(t.TotalNS)[0]
	text := fmt.Sprintf("up to %d%% of the total latency (%s of %s) is the server's, or the network's", percent.Max, field.Duration(ns), j.sum())
	if percent.Min >= 1 {
		text = fmt.Sprintf("at least %d%% of the total latency (%s of %s) is the server's, and up to %d%% more of it (%s) the server's, or the network's", percent.Min, field.Duration(least), j.sum(), percent.Max-percent.Min, field.Duration(ns-least))
	}
	return said{Unproven, []Place{InServer, InNetwork}, text, []Evidence{{"where the latency of each operation passed", "stats FILE"}}}
}
