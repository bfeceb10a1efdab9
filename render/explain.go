package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// This file words how a transaction spent its time, and the packets that prove it. It
// only states what the capture shows.

// Explain returns one or two sentences about where the time of a transaction went. It
// returns nothing if the capture does not show a cause.
func Explain(r *record.Transaction) []string {
	sentences := explain(r)
	if s := lostPackets(r); s != "" {
		sentences = append(sentences, s)
	}
	return sentences
}

// mostLost is the number of lost packets that are named.
const mostLost = 3

// lostPackets names the packets that were lost or damaged between capture points and that made an RPC slow: its own, and
// those of other RPCs before which its sender could not go on.
func lostPackets(r *record.Transaction) string {
	var lost, damaged, others naming
	known := map[record.Sighting]bool{} // without times
	for i := range r.Timeline {
		e := &r.Timeline[i]
		if e.Point == nil || e.Event != record.EventLost && e.Event != record.EventDamaged || e.Of == record.EventAck { // without an ACK, nothing waits
			continue
		}
		at := record.Sighting{Point: *e.Point, Packet: e.Packet}
		if known[at] {
			continue
		}
		known[at] = true
		word := title(e.Of) + ", packet " + numbered(e.Packet, *e.Point)
		if e.Event == record.EventLost {
			lost.add(word)
		} else {
			damaged.add(word)
		}
	}
	for i := range r.Waits {
		for _, l := range r.Waits[i].Lost {
			at := record.Sighting{Point: l.Point, Packet: l.Packet}
			if known[at] {
				continue
			}
			known[at] = true
			word := "packet " + numbered(l.Packet, l.Point)
			if l.Event != "" {
				word = title(l.Event) + ", " + word
			}
			if xid, known := l.XID.Get(); known && xid != r.XID {
				others.add(fmt.Sprintf("%s, of XID %v%s", word, xid, ifDamaged(l.Damaged)))
			} else if l.Damaged {
				damaged.add(word)
			} else {
				lost.add(word)
			}
		}
	}
	return strings.TrimSpace(lost.sentence("Lost on the way") + damaged.sentence("Damaged on the way") + others.sentence("Held up by lost packets before it"))
}

// ifDamaged says that a packet was damaged and not lost.
func ifDamaged(is bool) string {
	if is {
		return " (damaged)"
	}
	return ""
}

// naming collects the first few things of a kind.
type naming struct {
	words []string
	n     int
}

func (l *naming) add(word string) {
	if l.n++; l.n <= mostLost {
		l.words = append(l.words, word)
	}
}

// sentence returns a sentence with the things, and a space before it, or nothing if there are none.
func (l *naming) sentence(begin string) string {
	if l.n == 0 {
		return ""
	}
	text := " " + begin + ": " + strings.Join(l.words, "; ")
	if l.n > mostLost {
		text += fmt.Sprintf("; and %d more", l.n-mostLost)
	}
	return text + "."
}

// numbered returns a packet number, with its capture point if there are several.
func numbered(n int64, point string) string {
	if point == "" {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d of %s", n, clean(point))
}

// explain describes the largest part of the time of an RPC.
func explain(r *record.Transaction) []string {
	var sentences []string
	if w := longest(r, true); w != nil {
		sentences = append(sentences, "Before the Call, the "+string(w.Waiting)+" waited "+Duration(w.NS)+" for credits, from packet "+first(w)+" until the Reply in packet "+second(w)+".")
	}
	latency, known := r.LatencyNS.Get()
	if !known || latency <= 0 {
		if r.Status == record.NoReply && len(r.Waits) > 0 {
			if w := longest(r, false); w != nil {
				sentences = append(sentences, "It has no Reply. "+unanswered(r, w))
			}
		}
		return sentences
	}
	total := Duration(latency)
	if r.LatencyMinNS.Known() {
		return append(sentences, uncertainStall(r)...)
	}
	if w := longest(r, false); w != nil && r.Waited(w) >= latency/5 {
		sentences = append(sentences, waitSentence(r, w, "For "+Duration(r.Waited(w))+" of "+total+noProgress))
		if n, ns := waits(r); n > 1 {
			sentences[len(sentences)-1] += fmt.Sprintf(" %s in all: %s.", record.Plural(int64(n), "stall"), Duration(ns))
		}
		return sentences
	}
	if n, ns := waits(r); n > 1 && ns >= latency/5 {
		w := longest(r, false)
		return append(sentences, fmt.Sprintf("%s of %s passed in %d stalls. %s", Duration(ns), total, n, waitSentence(r, w, longestStall(r.Waited(w)))))
	}
	if s := atWork(r, latency); s != "" {
		sentences = append(sentences, s)
	}
	return sentences
}

// uncertainStall describes the longest wait of a transaction of which it is uncertain when the Reply was accepted.
func uncertainStall(r *record.Transaction) []string {
	w := longest(r, false)
	if w == nil || r.Waited(w) < r.LatencyNS.Or(0)/5 {
		return nil
	}
	opening := "There was no progress for " + Duration(r.Waited(w)) + ", until "
	if int64(w.From-r.Sent()) >= r.LatencyMinNS.Or(0) { // not if the copy of the Reply before the wait was accepted
		if !r.LatencyMinPacket.Known() {
			return nil
		}
		opening = "If that copy was lost, there was no progress for " + Duration(r.Waited(w)) + ", until "
	}
	return []string{waitSentence(r, w, opening)}
}

// unanswered says how long a transaction without Reply stalled; w is its longest wait.
func unanswered(r *record.Transaction, w *record.Wait) string {
	n, ns := 0, int64(0)
	list := slices.Clone(r.Waits)
	slices.SortFunc(list, func(a, b record.Wait) int { return cmp.Compare(a.From, b.From) })
	at := r.Start()
	for i := range list { // They may overlap.
		if x := &list[i]; x.Reason != record.CreditLimit {
			n++
			if x.To > at {
				ns += int64(x.To - max(x.From, at))
				at = x.To
			}
		}
	}
	if n == 1 {
		return waitSentence(r, w, "For "+Duration(w.NS)+noProgress)
	}
	return fmt.Sprintf("It stalled %d times, for %s in total. %s", n, Duration(ns), waitSentence(r, w, longestStall(w.NS)))
}

// longestStall begins the sentence about the longest of several waits, which has this length. What ended the wait
// follows.
func longestStall(ns int64) string {
	return "In the longest stall, there was no progress for " + Duration(ns) + ", until "
}

// noProgress follows the length of a wait. What ended the wait follows it.
const noProgress = " there was no progress, until "

// longest returns the longest wait, either before the Call or within the latency, or nil
// if there is none.
func longest(r *record.Transaction, before bool) (w *record.Wait) {
	for i := range r.Waits {
		if x := &r.Waits[i]; (x.Reason == record.CreditLimit) == before && r.Waited(x) > 0 && (w == nil || r.Waited(x) > r.Waited(w)) {
			w = x
		}
	}
	return w
}

// waits returns the number of waits within the latency, and their total length.
func waits(r *record.Transaction) (n int, ns int64) {
	for range r.Stalls() {
		n++
	}
	return n, r.Phases.Or(record.Phases{}).WaitNS
}

// nth returns the nth packet number of a wait, or "?" if it has fewer.
func nth(w *record.Wait, i int) string {
	switch {
	case i < 0 || i >= len(w.Packets):
		return "?"
	case i < len(w.Points):
		return numbered(w.Packets[i], w.Points[i])
	}
	return fmt.Sprint(w.Packets[i])
}

func first(w *record.Wait) string  { return nth(w, 0) }
func second(w *record.Wait) string { return nth(w, 1) }
func last(w *record.Wait) string   { return nth(w, len(w.Packets)-1) }

// retransmitted says what a side retransmitted at the end of a wait.
func retransmitted(w *record.Wait) string {
	switch w.Event {
	case record.EventRead:
		if n, known := w.Bytes.Get(); known {
			return fmt.Sprintf("retransmitted its RDMA Read request for %s", Size(n))
		}
		return "retransmitted its RDMA Read request"
	case record.EventWrite:
		return "retransmitted an RDMA Write"
	case record.EventCall, record.EventReply:
		return "retransmitted the " + title(w.Event)
	}
	return "retransmitted a packet"
}

// waitSentence says what ended a wait, and the same reason as WaitText; opening ends in
// noProgress or is from longestStall.
func waitSentence(r *record.Transaction, w *record.Wait, opening string) string {
	side := "the " + string(w.Waiting) + " "
	switch w.Reason {
	case record.HeadOfLine:
		return fmt.Sprintf("%spacket %s: up to packet %s, %swas busy with the transfers of XID %v, on the same connection.", opening, last(w), second(w), side, w.BlockingXID.Or(0))
	case record.RNRNak:
		return fmt.Sprintf("%s%s%s, in packet %s: the other side had no receive buffer (RNR NAK in packet %s).", opening, side, retransmitted(w), last(w), first(w))
	case record.NewConnection:
		return fmt.Sprintf("%s%sretransmitted the Call on a new connection, in packet %s: on an earlier connection, it had sent the Call in packet %s, and had received no Reply.", opening, side, last(w), first(w))
	case record.RetransmitNak:
		reason := "because the NAK in packet %s asked for it"
		if nak, known := w.NakPacket.Get(); known && w.BlockingTransaction.Known() && !hasNak(r, nak) {
			reason = "because a packet of another RPC before it had been rejected (NAK in packet %s)"
		} else if w.BlockingTransaction.Known() || w.Points == nil && len(w.Packets) > 0 && r.Call != nil && w.Packets[0] < r.Call.Packet {
			reason = "because an earlier packet had been rejected (NAK in packet %s)"
		}
		return fmt.Sprintf("%s%s%s, in packet %s, "+reason+".", opening, side, retransmitted(w), last(w), first(w))
	}
	s := fmt.Sprintf("%s%s%s, in packet %s", opening, side, retransmitted(w), last(w))
	if w.Reason == record.RetransmitUnknown {
		s += ", for a reason that the capture does not show"
	}
	early, known := w.OutOfOrderPacket.Get()
	if known && w.Reason == record.RetransmitTimeout {
		s += ", when its timer expired"
	}
	filled, _ := w.GapFilledBy.Get()
	switch {
	case known && w.Event == record.EventRead:
		return fmt.Sprintf("%s: response packet %s came after a gap, which packet %s closed.", s, numbered(early, w.OutOfOrderPoint), numbered(filled, w.GapFilledPoint))
	case known:
		return fmt.Sprintf("%s: packet %s came after a gap, which packet %s closed.", s, numbered(early, w.OutOfOrderPoint), numbered(filled, w.GapFilledPoint))
	case w.Reason == record.RetransmitTimeout && w.NakPacket.Known():
		return fmt.Sprintf("%s, when its timer expired: it did not react to the NAK in packet %s, or did not receive it.", s, numbered(w.NakPacket.Or(0), w.NakPoint))
	case w.Reason == record.RetransmitTimeout:
		return fmt.Sprintf("%s, when its timer expired: no packet of this RPC followed packet %s until then.", s, first(w))
	case w.Reason == record.RetransmitGap:
		return s + ": later packets had shown that an earlier packet had not been accepted."
	}
	return s + "."
}

// pauseText returns the text of a wait in the ladder, and a shorter text; to follows its length.
func pauseText(r *record.Transaction, w *record.Wait, to string) (text, short string) {
	if xid, known := w.BlockingXID.Get(); known && w.Reason == record.HeadOfLine {
		short = fmt.Sprintf("%s%s: %s busy with XID %v", Duration(w.NS), to, w.Waiting, xid)
		return "... " + short + " ...", short
	}
	text = fmt.Sprintf("... %s%s: %s stalled %s ...", Duration(w.NS), to, w.Waiting, stalledUntil(r, w))
	return text, fmt.Sprintf("%s%s: %s stalled %s", Duration(w.NS), to, w.Waiting, shortlyUntil(w))
}

// atWork says what took most of the latency of a transaction without long waits. What passed between the point of a
// capture and a host is not in that capture, so that only captures at both ends tell a host's time from the network's.
func atWork(r *record.Transaction, latency int64) string {
	p, known := r.Phases.Get()
	if !known || r.Call == nil || r.LatencyMinNS.Known() { // the phases would be those of a copy of the Reply that may be a later one
		return ""
	}
	if split, known := r.Split.Get(); known {
		return atPlace(r, split, latency)
	}
	caller, _ := sides(r)
	text := serverOrNetwork(r, p, latency)
	if answering := min(timeInReads(r), p.ReadNS.Or(0)); text == "" && isMost(answering, latency) {
		text = fmt.Sprintf("The %s, or the network, took %s to answer RDMA Reads.", caller, partOf(answering, latency))
	}
	if writes := p.WriteNS.Or(0); text == "" && isMost(writes, latency) {
		text = fmt.Sprintf("The RDMA Writes to the %s's memory took %s; the capture does not show what limited them.", caller, partOf(writes, latency))
	}
	if text != "" && r.Retransmitted > 0 {
		text += fmt.Sprintf(" %s of this RPC %s retransmitted.", record.Plural(int64(r.Retransmitted), "packet"), wasWere(r.Retransmitted))
	}
	return text
}

// uncertainLatency returns the bounds of a latency of which it is uncertain when the Reply was accepted, and the reason.
// It returns nothing if the latency is known.
func uncertainLatency(r *record.Transaction) string {
	least, uncertain := r.LatencyMinNS.Get()
	if !uncertain {
		return ""
	}
	if copied := earlyCopy(r); copied != "" {
		return fmt.Sprintf("%s, or after %s if %s was lost", Duration(least), Duration(r.LatencyNS.Or(0)), copied)
	}
	bounds := "at most " + Duration(r.LatencyNS.Or(0))
	if least > 0 {
		bounds = Duration(least) + " to " + Duration(r.LatencyNS.Or(0))
	}
	return bounds + "; the capture does not prove when the Reply, and the packets before it, were accepted"
}

// earlyCopy names the copy of the Reply with which the shortest possible latency ends; it returns nothing if the capture
// shows no other copy than the one that counts.
func earlyCopy(r *record.Transaction) string {
	packet, known := r.LatencyMinPacket.Get()
	if !known {
		return ""
	}
	which := "first "
	for i := range r.Timeline {
		if e := &r.Timeline[i]; (e.Event == record.EventDamaged || e.Event == record.EventLost) && e.Of == record.EventReply {
			which = "" // a copy before it was damaged or lost
		}
	}
	return fmt.Sprintf("the %scopy of the Reply (packet %s)", which, numbered(packet, r.LatencyMinPoint))
}

// isMost reports whether a part of a latency is most of it, and long enough to be described.
func isMost(ns, latency int64) bool { return 2*ns > latency && ns >= 1e6 }

// partOf returns the length of a part of a latency, and the latency if it is longer.
func partOf(ns, latency int64) string {
	if part, whole := Duration(ns), Duration(latency); part != whole {
		return part + " of " + whole
	}
	return Duration(ns)
}

// serverOrNetwork says how much of the latency passed while only the server, or the network, could make progress: from
// the Call, or from the last response to an RDMA Read, to the next packet of the server. An ACK proves that the Call had
// arrived by then; no packet proves when a response to a Read arrived. The text is empty if another part is longer.
func serverOrNetwork(r *record.Transaction, p record.Phases, latency int64) string {
	_, other := sides(r)
	arriving, ns := p.ToReplyNS.Or(0), p.ToReadNS.Or(0)+p.ToWriteNS.Or(0)+p.ToReplyNS.Or(0)
	if p.ToReadNS.Known() {
		arriving = p.ToReadNS.Or(0)
	} else if p.ToWriteNS.Known() {
		arriving = p.ToWriteNS.Or(0)
	}
	if r.Call.LastPacket != r.Call.Packet { // the client was sending the Call
		sending := min(max(0, int64(r.Call.LastTime-r.Sent())), arriving)
		arriving, ns = arriving-sending, ns-sending
	}
	if !isMost(ns, latency) {
		return ""
	}
	ack := ackOfCall(r)
	switch {
	case p.ToReadNS.Known() && !isMost(arriving, latency):
		return fmt.Sprintf("The %s or the network took %s; no packet shows when the responses to its RDMA Reads arrived.", other, partOf(ns, latency))
	case ack == nil:
		return fmt.Sprintf("The %s or the network took %s; no ACK of the Call was captured.", other, partOf(ns, latency))
	}
	if p.ToReadNS.Known() {
		ns = arriving
	}
	after, packet := int64(ack.Time-r.Sent()), numbered(ack.Packet, record.PointName(ack.Point))
	if after*5 > ns { // The network may have taken so much of it that both have to be named.
		return fmt.Sprintf("The %s or the network took %s; the ACK of the Call came after %s (packet %s).", other, partOf(ns, latency), Duration(after), packet)
	}
	return fmt.Sprintf("The %s, or the way back, took at least %s: the Call had arrived after at most %s (ACK, packet %s).",
		other, partOf(ns-after, latency), Duration(after), packet)
}

// ackOfCall returns the first event that acknowledges the Call, or nil.
func ackOfCall(r *record.Transaction) *record.Event {
	for i := range r.Timeline {
		if e := &r.Timeline[i]; e.Event == record.EventAck && e.Of == record.EventCall && e.Time >= r.Sent() {
			return e
		}
	}
	return nil
}

// timeInReads returns the time for which at least one RDMA Read had been requested and not completely answered. The time
// between two Reads is not part of it.
func timeInReads(r *record.Transaction) (ns int64) {
	open, since := 0, record.Time(0)
	for i := range r.Timeline {
		switch e := &r.Timeline[i]; e.Event {
		case record.EventRead:
			if open == 0 {
				since = e.Time
			}
			open++
		case record.EventReadDone:
			if open == 1 {
				ns += int64(e.Time - since)
			}
			open = max(0, open-1)
		}
	}
	return ns
}

// atPlace names the place at which most of the time passed, if captures at both ends show that.
func atPlace(r *record.Transaction, split record.Split, latency int64) string {
	caller, other := sides(r)
	cause, delayed := "", ""
	switch {
	case r.Retransmitted > 0:
		cause = fmt.Sprintf("; %s of this RPC %s retransmitted", record.Plural(int64(r.Retransmitted), "packet"), wasWere(r.Retransmitted))
	case lostPackets(r) == "":
		cause = "; the captures show no retransmission, NAK or loss in that time"
		delayed = "; none of its packets was lost, so the network delayed packets"
	}
	for _, p := range []struct {
		ns          int64
		text, cause string
	}{
		{split.ClientNS, "The " + string(caller) + " took %s to answer RDMA Reads (seen at both ends)", cause},
		{split.RequestNetworkNS, "%s passed in the network on the way to the " + string(other) + " (seen at both ends)", cmp.Or(delayed, cause)},
		{split.ServerNS, "The " + string(other) + " took %s (seen at both ends)", cause},
		{split.ReplyNetworkNS, "%s passed in the network on the way to the " + string(caller) + " (seen at both ends)", cmp.Or(delayed, cause)},
	} {
		if isMost(p.ns, latency) {
			return fmt.Sprintf(p.text, partOf(p.ns, latency)) + p.cause + "."
		}
	}
	return ""
}

// wasWere returns the verb for a number of things.
func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// Cause returns the cause of a transaction's latency in a few words, or its status if it
// has no latency.
func Cause(r *record.Transaction) string {
	latency, known := r.LatencyNS.Get()
	if !known {
		return string(r.Status)
	}
	if least, uncertain := r.LatencyMinNS.Get(); uncertain {
		if copied := earlyCopy(r); copied != "" {
			return Duration(least) + " if " + copied + " was accepted"
		}
		if least == 0 {
			return "the capture does not prove when the Reply was accepted"
		}
		return "at least " + Duration(least) + ", depending on when the Reply was accepted"
	}
	n, ns := waits(r)
	if w := longest(r, false); w != nil && r.Waited(w) >= latency/5 {
		if ns-r.Waited(w) >= latency/5 { // so do the others
			return fmt.Sprintf("%s in %d stalls, the longest %s (%s) %s", Duration(ns), n, Duration(r.Waited(w)), w.Waiting, shortlyUntil(w)) + lostIn(r, w)
		}
		return fmt.Sprintf("%s %s stalled %s", Duration(r.Waited(w)), w.Waiting, stalledUntil(r, w)) + lostIn(r, w)
	}
	if n > 1 && ns >= latency/5 {
		return fmt.Sprintf("%s in %d stalls", Duration(ns), n)
	}
	var most phase
	if s, known := r.Split.Get(); known {
		caller, other := sides(r)
		for _, x := range []phase{{"in the network to the " + string(other), s.RequestNetworkNS}, {"in the network to the " + string(caller), s.ReplyNetworkNS}} {
			if x.ns > most.ns && 2*x.ns > latency && x.ns >= 1e6 {
				most = x
			}
		}
		if most.ns > 0 {
			return Duration(most.ns) + " " + most.name
		}
	}
	for _, x := range phasesOf(r) {
		if x.ns > most.ns {
			most = x
		}
	}
	if most.name == "" {
		return ""
	}
	return Duration(most.ns) + " " + most.name
}

// sides returns the side that sent the Call, and the side that executed it.
func sides(r *record.Transaction) (caller, other record.End) {
	if r.Direction == record.Backward {
		return record.Server, record.Client
	}
	return record.Client, record.Server
}

// lostIn names the first packet that was lost or damaged before a wait ended, if captures at several points show one.
func lostIn(r *record.Transaction, w *record.Wait) string {
	if len(w.Lost) == 0 {
		return ""
	}
	l := &w.Lost[0]
	what, of := "lost", ""
	if l.Damaged {
		what = "damaged"
	}
	if xid, known := l.XID.Get(); known && xid != r.XID {
		of = fmt.Sprintf(" of XID %v", xid)
	}
	name := "a packet"
	if l.Event != "" {
		name = title(l.Event)
	}
	return fmt.Sprintf(": %s%s was %s (packet %s)", name, of, what, numbered(l.Packet, l.Point))
}

// phase is one part of a latency, or of a sum of latencies.
type phase struct {
	name string
	ns   int64
}

// phasesOf returns the phases of a transaction that happened, without its waits.
func phasesOf(r *record.Transaction) (list []phase) {
	p := r.Phases.Or(record.Phases{})
	for i, ns := range p.List() {
		if ns, happened := ns.Get(); happened && record.Phase(i) != record.PhaseStalled {
			list = append(list, phase{PhaseNames[i], ns})
		}
	}
	return list
}
