package claim

import (
	"fmt"
	"math"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Sentences about times in which an RPC made no progress, and about packets that were lost between capture points.

// reasoned returns the function of the sentence about stalls, which is said if the longest stall has a reason. It is said if the
// stalls took a fifth of the latency, and no host took half of it.
func reasoned(id string, reason record.WaitReason) func(*facts) (said, bool) {
	return func(f *facts) (v said, holds bool) {
		if f.stall == nil || f.stall.Reason != reason || !f.certain || f.latency <= 0 || f.longest < f.latency/5 && (f.stalls < 2 || f.stalled < f.latency/5) {
			return v, false
		}
		total := field.Duration(f.latency)
		if v.ns = f.longest; f.longest >= f.latency/5 {
			v.text = waitSentence(f.Transaction, f.stall, "For "+field.Duration(f.longest)+" of "+total+noProgress)
			if f.stalls > 1 {
				v.text += fmt.Sprintf(" %s in all: %s.", record.Plural(f.stalls, "stall"), field.Duration(f.stalled))
			}
		} else {
			v.ns = f.stalled
			v.text = fmt.Sprintf("%s of %s passed in %d stalls. %s", field.Duration(f.stalled), total, f.stalls, waitSentence(f.Transaction, f.stall, longestStall(f.longest)))
		}
		switch {
		case reason == record.RNRNak && 2*f.longest >= f.latency:
			v.side = sideOf(opposite(f.stall.Waiting))
		case reason == record.HeadOfLine || reason == record.RNRNak:
		case f.proven(f.shares.NetworkNS), f.shares.Find(record.ProofRetransmit) != nil:
			if v.side = record.Some(record.SideNetwork); f.shares.Point != record.AtBothEnds {
				v.text += onTheWay
			}
		}
		return v, true
	}
}

// onTheWay follows a stall that proves a loss. A single capture does not show whether a switch, or the adapter of a host, lost a packet.
const onTheWay = " A packet was lost, damaged or delayed on the way: in the network, or in the adapter of a host."

// opposite returns the other end.
func opposite(e record.End) record.End {
	if e == record.Client {
		return record.Server
	}
	return record.Client
}

func isRange(f *facts) (v said, holds bool) {
	least, uncertain := f.LatencyMinNS.Get()
	if !uncertain || f.latency == 0 {
		return v, false
	}
	text := "The Reply was accepted after at most " + field.Duration(f.latency)
	if copied := earlyCopy(f.Transaction); copied != "" {
		text = fmt.Sprintf("The Reply was accepted after %s, or after %s if %s was lost.", field.Duration(least), field.Duration(f.latency), copied)
	} else {
		if least > 0 {
			text = "The Reply was accepted after " + field.Duration(least) + " to " + field.Duration(f.latency)
		}
		text += "; the capture does not prove when it, and the packets before it, were accepted."
	}
	if stall := uncertainStall(f); stall != "" {
		text += " " + stall
	}
	return said{ns: f.latency, text: text}, true
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
			which = "earlier " // a copy before it was damaged or lost
		}
	}
	return fmt.Sprintf("its %scopy (packet %s)", which, numbered(packet, r.LatencyMinPoint))
}

func isUnanswered(f *facts) (v said, holds bool) {
	if f.Status != record.NoReply || f.latency > 0 || f.stall == nil {
		return v, false
	}
	text, ns := unanswered(f.Transaction, f.stall)
	return said{ns: ns, text: undelivered(f) + text}, true
}

// undelivered begins the sentence about an RPC without Reply. If the capture has a Reply that is not known to be accepted, it names its packet.
func undelivered(f *facts) string {
	if !f.ReplyLost {
		return "It has no Reply. "
	}
	var sent, nak int64
	for i := range f.Timeline {
		e := &f.Timeline[i]
		if e.Event == record.EventReply && sent == 0 && e.Point == nil {
			sent = e.Packet
		} else if e.Event == record.EventNak && e.Of == record.EventReply && sent != 0 && e.Point == nil {
			nak = e.Packet
		}
	}
	switch {
	case sent == 0:
		return "Nothing shows that its Reply was received. "
	case nak != 0:
		return fmt.Sprintf("The %s sent its Reply, in packet %d, but the %s rejected it (NAK in packet %d). ", f.other, sent, f.caller, nak)
	}
	return fmt.Sprintf("The %s sent its Reply, in packet %d, but nothing shows that the %s received it. ", f.other, sent, f.caller)
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
		word := e.Of.Title() + ", packet " + numbered(e.Packet, *e.Point)
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
				word = l.Event.Title() + ", " + word
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
	return fmt.Sprintf("%d of %s", n, point)
}

// uncertainStall describes the longest wait of a transaction of which it is uncertain when the Reply was accepted.
func uncertainStall(f *facts) string {
	r, w := f.Transaction, f.stall
	if w == nil || f.longest < f.latency/5 {
		return ""
	}
	opening := "There was no progress for " + field.Duration(f.longest) + ", until "
	if int64(w.From-r.Sent()) >= r.LatencyMinNS.Or(0) { // not if the copy of the Reply before the wait was accepted
		if !r.LatencyMinPacket.Known() {
			return ""
		}
		opening = "If that copy was lost, there was no progress for " + field.Duration(f.longest) + ", until "
	}
	return waitSentence(r, w, opening)
}

// unanswered says how long a transaction without Reply stalled, and returns the time; w is its longest wait.
func unanswered(r *record.Transaction, w *record.Wait) (text string, ns int64) {
	isStall := func(x *record.Wait) bool { return x.Reason != record.CreditLimit }
	n := 0
	for i := range r.Waits {
		if isStall(&r.Waits[i]) {
			n++
		}
	}
	if n == 1 {
		return waitSentence(r, w, "For "+field.Duration(w.NS)+noProgress), w.NS
	}
	ns = record.Waited(r.Waits, r.Start(), math.MaxInt64, isStall)
	return fmt.Sprintf("It stalled %d times, for %s in total. %s", n, field.Duration(ns), waitSentence(r, w, longestStall(w.NS))), ns
}

// longestStall begins the sentence about the longest of several waits, which has this length. What ended the wait
// follows.
func longestStall(ns int64) string {
	return "In the longest stall, there was no progress for " + field.Duration(ns) + ", until "
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
			return fmt.Sprintf("retransmitted its RDMA Read request for %s", field.Size(n))
		}
		return "retransmitted its RDMA Read request"
	case record.EventWrite:
		return "retransmitted an RDMA Write"
	case record.EventCall, record.EventReply:
		return "retransmitted the " + w.Event.Title()
	}
	return "retransmitted a packet"
}

// waitSentence says what ended a wait, and the same reason as WaitText; opening ends in
// noProgress or is from longestStall.
func waitSentence(r *record.Transaction, w *record.Wait, opening string) string {
	side := "the " + string(w.Waiting) + " "
	switch w.Reason {
	case record.HeadOfLine:
		return fmt.Sprintf("%spacket %s: on the same connection, the transfers of XID %v came first, up to packet %s.", opening, last(w), w.BlockingXID.Or(0), second(w))
	case record.RNRNak:
		return fmt.Sprintf("%s%s%s, in packet %s: the %s had no receive buffer (RNR NAK in packet %s).", opening, side, retransmitted(w), last(w), opposite(w.Waiting), first(w))
	case record.NewConnection:
		return fmt.Sprintf("%s%sretransmitted the Call on a new connection, in packet %s: on an earlier connection, it had sent the Call in packet %s, and had received no Reply.", opening, side, last(w), first(w))
	case record.RetransmitNak:
		reason := "because the NAK in packet %s asked for it"
		if nak, known := w.NakPacket.Get(); known && w.BlockingTransaction.Known() && !r.HasNak(nak) {
			reason = "because a packet of another RPC before it had been rejected (NAK in packet %s)"
		} else if w.BlockingTransaction.Known() || w.Points == nil && len(w.Packets) > 0 && r.Call != nil && w.Packets[0] < r.Call.Packet {
			reason = "because an earlier packet had been rejected (NAK in packet %s)"
		}
		return fmt.Sprintf("%s%s%s, in packet %s, "+reason+".", opening, side, retransmitted(w), last(w), first(w))
	}
	s := fmt.Sprintf("%s%s%s, in packet %s", opening, side, retransmitted(w), last(w))
	if w.Acknowledged {
		return s + fmt.Sprintf(", although it was acknowledged in the capture: the ACK was lost after the capture point, or the %s did not accept it.", w.Waiting)
	}
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
