package render

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Where the time of a transaction went, in words, and on which evidence. What the
// capture does not show is not said.

// Explain says it in a sentence or two; nothing when there is nothing to say.
func Explain(r *record.Transaction) []string {
	var said []string
	if w := longest(r, true); w != nil {
		said = append(said, "Before the Call, "+Duration(w.NS)+" passed with all credits in use, from packet "+first(w)+" until the Reply in packet "+second(w)+".")
	}
	latency, known := r.LatencyNS.Get()
	if !known || latency <= 0 {
		if r.Status == record.NoReply && len(r.Waits) > 0 {
			w := longest(r, false)
			if w != nil {
				said = append(said, "It has no Reply; "+waitSentence(w, Duration(w.NS)+" passed before "))
			}
		}
		return said
	}
	total := Duration(latency)
	if w := longest(r, false); w != nil && r.Waited(w) >= latency/5 {
		said = append(said, waitSentence(w, Duration(r.Waited(w))+" of "+total+" passed before "))
		if n, ns := waits(r); n > 1 {
			said[len(said)-1] += fmt.Sprintf(" %s in all: %s.", plural(int64(n), "wait"), Duration(ns))
		}
		return said
	}
	if n, ns := waits(r); n > 1 && ns >= latency/5 {
		w := longest(r, false)
		return append(said, fmt.Sprintf("%s of %s passed in %d waits. In the longest, %s", Duration(ns), total, n, waitSentence(w, Duration(r.Waited(w))+" passed before ")))
	}
	if s := atWork(r, latency); s != "" {
		said = append(said, s)
	}
	return said
}

// longest is the longest wait, before the Call or of the latency; nil without.
func longest(r *record.Transaction, before bool) (w *record.Wait) {
	for i := range r.Waits {
		if x := &r.Waits[i]; (x.Reason == record.CreditLimit) == before && r.Waited(x) > 0 && (w == nil || r.Waited(x) > r.Waited(w)) {
			w = x
		}
	}
	return w
}

// waits counts the waits of the latency, and how long they were together.
func waits(r *record.Transaction) (n int, ns int64) {
	for i := range r.Waits {
		if x := &r.Waits[i]; x.Reason != record.CreditLimit && r.Waited(x) > 0 {
			n++
		}
	}
	return n, r.Phases.Or(record.Phases{}).WaitNS
}

func nth(list []int64, i int) string {
	if i < len(list) {
		return fmt.Sprint(list[i])
	}
	return "?"
}

func first(w *record.Wait) string  { return nth(w.Packets, 0) }
func second(w *record.Wait) string { return nth(w.Packets, 1) }
func last(w *record.Wait) string   { return nth(w.Packets, len(w.Packets)-1) }

// repeated words what was sent again.
func repeated(w *record.Wait) string {
	switch w.Event {
	case record.EventRead:
		if n, known := w.Bytes.Get(); known {
			return fmt.Sprintf("asked again for %s B of an RDMA Read", Bytes(n))
		}
		return "asked again for an RDMA Read"
	case record.EventWrite:
		return "sent an RDMA Write again"
	case record.EventCall, record.EventReply:
		return "sent the " + title(w.Event) + " again"
	}
	return "sent something again"
}

// waitSentence says what a wait was for; opening ends in "before ".
func waitSentence(w *record.Wait, opening string) string {
	who := "the " + string(w.Waiting) + " "
	switch w.Reason {
	case record.HeadOfLine:
		return fmt.Sprintf("%s%swent on, in packet %s: until packet %s it was sending for transaction %d, on the same connection.", opening, who, last(w), second(w), w.BlockingTransaction.Or(0))
	case record.RNRNak:
		return fmt.Sprintf("%s%s%s, in packet %s: the other side had no receive buffer (RNR NAK in packet %s).", opening, who, repeated(w), last(w), first(w))
	case record.RetransmitNak:
		return fmt.Sprintf("%s%s%s, in packet %s, as the NAK in packet %s asked for.", opening, who, repeated(w), last(w), first(w))
	}
	s := fmt.Sprintf("%s%s%s, in packet %s", opening, who, repeated(w), last(w))
	early, known := w.OutOfOrderPacket.Get()
	filled, _ := w.GapFilledBy.Get()
	switch {
	case known && w.Event == record.EventRead:
		return fmt.Sprintf("%s: response packet %d had come before packet %d, out of order.", s, early, filled)
	case known:
		return fmt.Sprintf("%s: packet %d had come before packet %d, out of order.", s, early, filled)
	case w.Reason == record.RetransmitTimeout:
		return fmt.Sprintf("%s: after packet %s nothing of this RPC was seen, as after a retransmission timeout.", s, first(w))
	}
	return s + ": something before it was missing."
}

// pauseText is a wait in a line of the ladder.
func pauseText(w *record.Wait) string {
	if behind, known := w.BlockingTransaction.Get(); known && w.Reason == record.HeadOfLine {
		return fmt.Sprintf("... %s %s busy with transaction %d ...", Duration(w.NS), w.Waiting, behind)
	}
	return fmt.Sprintf("... %s %s waits: %s ...", Duration(w.NS), w.Waiting, waitText(w.Reason))
}

// atWork names the phase that took most of the time, where no wait did: whoever
// was to act next acted, and the capture does not show what for.
func atWork(r *record.Transaction, latency int64) string {
	p, known := r.Phases.Get()
	if !known {
		return ""
	}
	server, client := "server", "client"
	if r.Direction == record.Backward {
		server, client = client, server
	}
	for _, phase := range []struct {
		ns   record.Opt[int64]
		text string
	}{
		{p.ToReadNS, "before the " + server + " asked for the first data"},
		{p.ReadNS, "while the " + server + " read the " + client + "'s memory"},
		{p.ToWriteNS, "before the " + server + " wrote the first data"},
		{p.WriteNS, "while the " + server + " wrote the " + client + "'s memory"},
		{p.ToReplyNS, "before the " + server + " sent its Reply"},
	} {
		if ns, happened := phase.ns.Get(); happened && ns*2 > latency && ns >= 1e6 {
			odd := "no repeat, NAK or loss in it shows a reason"
			if r.Retransmitted > 0 {
				odd = plural(int64(r.Retransmitted), "packet") + " of it sent again"
			}
			return fmt.Sprintf("%s of %s passed %s; %s.", Duration(ns), Duration(latency), phase.text, odd)
		}
	}
	return ""
}

// Cause is why a transaction took its time, in a few words.
func Cause(r *record.Transaction) string {
	latency, known := r.LatencyNS.Get()
	if !known {
		return string(r.Status)
	}
	if w := longest(r, false); w != nil && r.Waited(w) >= latency/5 {
		ns := Duration(r.Waited(w))
		if behind, known := w.BlockingTransaction.Get(); known && w.Reason == record.HeadOfLine {
			return fmt.Sprintf("%s behind transaction %d", ns, behind)
		}
		return fmt.Sprintf("%s %s, by the %s", ns, waitText(w.Reason), w.Waiting)
	}
	if n, ns := waits(r); n > 1 && ns >= latency/5 {
		return fmt.Sprintf("%s in %d waits", Duration(ns), n)
	}
	p := r.Phases.Or(record.Phases{})
	longestPhase, name := int64(0), ""
	for _, phase := range []struct {
		ns   record.Opt[int64]
		name string
	}{
		{p.ToReadNS, "to the first RDMA Read"},
		{p.ReadNS, "in RDMA Reads"},
		{p.ToWriteNS, "to the first RDMA Write"},
		{p.WriteNS, "in RDMA Writes"},
		{p.ToReplyNS, "to the Reply"},
	} {
		if ns := phase.ns.Or(0); ns > longestPhase {
			longestPhase, name = ns, phase.name
		}
	}
	if name == "" {
		return ""
	}
	return Duration(longestPhase) + " " + name
}
