package rdma

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Why explains one packet, for users who doubt a mark and for people who mend what set it: it gets each fact of package order
// and each event of an operation that the packet causes, or that is about it.
type Why struct {
	Packet int64                       // its number
	Name   func(packet int64) string   // returns the name of a packet in text
	Line   func(by, what, text string) // by is the name of the packet that causes the fact or event
	again  bool                        // that its operation was retransmitted later was told
}

// facts says what the kinds of facts mean, for text about sequence numbers.
var facts = [...]struct{ name, means string }{
	order.Begun:      {"begun", "the first request in the capture"},
	order.Unordered:  {"unordered", "it cannot have been sent in the order of the capture"},
	order.Extended:   {"extended", "the Read has so many sequence numbers"},
	order.Accepted:   {"accepted", "next in the order of the capture"},
	order.Filled:     {"filled", "later ones came first, and waited for it"},
	order.Released:   {"released", "waits no longer"},
	order.Missing:    {"missing", "not in the capture"},
	order.Again:      {"again", "a further copy of a request"},
	order.Late:       {"late", "comes after later ones"},
	order.Waits:      {"waits", "an earlier one is missing"},
	order.AckedTo:    {"acked-to", "acknowledges all before it"},
	order.Covered:    {"covered", "acknowledges the operations before it"},
	order.AckedAgain: {"acked-again", "acknowledges the same once more"},
}

// fact tells a fact about the requests of a flow that the current packet causes.
func (w *Why) fact(f *flow, fact *order.Fact[held]) {
	by, about := f.conn.tracker.now, int64(0)
	if fact.Item != nil {
		about = fact.Item.stamp.Packet
	}
	if by.Packet != w.Packet && about != w.Packet {
		return
	}
	k := facts[fact.Kind]
	text := k.means
	switch {
	case fact.Kind == order.AckedTo || fact.Kind == order.AckedAgain || fact.Kind == order.Covered:
		text = fmt.Sprintf("%s %d: %s", f.sequence(), fact.To, text)
	case fact.To-fact.From == 1:
		text = fmt.Sprintf("%s %d: %s", f.sequence(), fact.From, text)
	case fact.Run != (order.Run{}):
		text = fmt.Sprintf("%s %d to %d: %s", f.sequence(), fact.From, fact.To-1, text)
	}
	if about != 0 && about != by.Packet {
		text += "; it is packet " + w.Name(about)
	}
	w.Line(w.Name(by.Packet), k.name, text)
}

// response tells which packet of the response to a Read the current packet is, and how much of the response came before it.
func (w *Why) response(f *flow, o *Operation, index int64) {
	if by := f.conn.tracker.now; by.Packet == w.Packet {
		text := fmt.Sprintf("packet %d of the response to operation %d", index+1, o.Number)
		switch {
		case index > o.taken:
			text += fmt.Sprintf("; packet %d was not captured before it", o.taken+1)
		case index < o.taken:
			text += ", which was captured before"
		}
		w.Line(w.Name(by.Packet), "response", text)
	}
}

// receives tells how a request of RoCE that is the current packet comes to its receiver, by what the capture has shown so far.
func (w *Why) receives(f *flow, psn uint32, comes arrival) {
	by := f.conn.tracker.now
	if w == nil || by.Packet != w.Packet {
		return
	}
	text := [...]string{
		inOrder: "in order: its receiver accepts it, if it came",
		ahead:   fmt.Sprintf("ahead: its receiver expects PSN %d, and drops it", f.ops.receiver.next),
		behind:  "behind: if an earlier copy came, its receiver does not execute it again; it answers a Read again",
	}[comes]
	w.Line(w.Name(by.Packet), "receiver", fmt.Sprintf("PSN %d: %s", psn, text))
}

// sequence returns the name of the sequence numbers of the flow.
func (f *flow) sequence() string {
	if f.stream != nil {
		return "byte"
	}
	return "PSN"
}

// dropped tells that the receiver of the current packet drops it.
func (w *Why) dropped(cur *currentPacket) {
	if cur.at.Packet == w.Packet && (cur.Offset.Dropped || cur.Mark&record.BadChecksum != 0) {
		w.Line(w.Name(cur.at.Packet), "dropped", "its checksum is wrong: its receiver drops it, and nothing in it is certain")
	}
}

// events says what the kinds of events mean.
var events = [...]string{
	Began: "began", Done: "complete", Acked: "acknowledged", Retransmitted: "retransmitted", Damaged: "damaged", Lost: "lost", DamagedNak: "damaged-nak",
	Abandoned: "abandoned", Arrived: "arrived",
}

// causes says why packets were sent again.
var causes = map[record.WaitReason]string{
	record.RetransmitTimeout: "its sender's timer expired", record.RetransmitGap: "later packets showed a missing one", record.RetransmitNak: "its receiver asked for it", record.RNRNak: "its receiver was not ready",
	record.RetransmitUnknown: "not known",
}

// narrator is a follower that tells the events of a connection before it passes them on.
type narrator struct {
	Follower
	tracker *Tracker
}

// isAbout reports whether a packet is one of those that decide about an operation.
func (o *Operation) isAbout(packet int64) bool {
	if o == nil {
		return false
	}
	for _, at := range [...]record.Stamp{o.First, o.Last, o.copies.at[inOrder], o.copies.at[ahead], o.copies.at[behind], o.copies.newest} {
		if at.Packet == packet {
			return true
		}
	}
	return false
}

// tell tells an event of an operation.
func (n narrator) tell(what string, o *Operation, also bool, text string) {
	w, t := n.tracker.Why, n.tracker
	if t.now.Packet != w.Packet && !also {
		if !o.isAbout(w.Packet) || what == "moved" || what == events[Retransmitted] && w.again { // one of many
			return
		}
		w.again = w.again || what == events[Retransmitted]
	}
	of := "an operation that is not known"
	if o != nil {
		if of = o.Kind.String(); o.Number != 0 {
			of += fmt.Sprintf(", rdma ID %d", o.Number)
		}
		if t.TransactionOf != nil {
			if id, known := t.TransactionOf(o.Tag).Get(); known {
				of += fmt.Sprintf(", RPC #%d", id)
			}
		}
	}
	w.Line(w.Name(t.now.Packet), what, of+text)
}

// Operation implements [Follower].
func (n narrator) Operation(e Event) Standing {
	standing, text, also := n.Follower.Operation(e), "", e.At.Packet == n.tracker.Why.Packet // The follower knows afterwards to which RPC it belongs.
	if b := e.Burst; b != nil {
		also = also || b.Nak.Packet == n.tracker.Why.Packet
		text = "; cause: " + causes[b.Cause]
		if b.Nak.Packet != 0 {
			text += " (NAK in " + n.tracker.Why.Name(b.Nak.Packet) + ")"
		}
		if timer, known := b.Timer.Get(); b.At.Packet != e.At.Packet {
			text += "; one of those sent again since " + n.tracker.Why.Name(b.At.Packet)
		} else if text += "; its sender was idle for " + field.Duration(int64(b.Idle)); known {
			text += ", its timer is " + field.Duration(int64(timer))
		}
	}
	if e.What == Acked && e.Op != nil {
		if d, known := e.Op.Delivered(); known && d.At.Packet != 0 {
			if text += "; its receiver accepted the copy in " + n.tracker.Why.Name(d.At.Packet); !d.Certain {
				if text += " or an earlier one"; d.Earliest.Packet == 0 {
					text += ", which is not in the capture"
				}
			}
		}
	}
	n.tell(events[e.What], e.Op, also, text)
	return standing
}

// Refused implements [Follower].
func (n narrator) Refused(r *Refusal) {
	n.Follower.Refused(r)
	text := "; " + r.Reason
	if r.Later {
		text += " of an earlier one"
	}
	n.tell("refused", r.Op, r.At.Packet == n.tracker.Why.Packet, text)
}

// Moved implements [Follower].
func (n narrator) Moved(o *Operation, offset uint64, data []byte, size int) {
	n.Follower.Moved(o, offset, data, size)
	n.tell("moved", o, false, fmt.Sprintf("; %d bytes at offset %#x of handle 0x%08x", size, offset, o.Handle))
}
