// Package claim says what took most of the latency of an RPC, as far as the capture proves it. Its table of sentences is
// closed: every screen, page and file shows the sentence of this package, and makes none of its own. It reads nothing but
// the record of the RPC, and writes nothing.
//
// To add a sentence, add its row to All in the place where it is tried, and a function that returns it if it holds. Add a
// capture for which it holds and a similar one for which it does not to the test. The page docs/causes.md is generated from
// the rows (go test ./internal/claim -update).
package claim

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Sentence is a row of the table.
type Sentence struct {
	ID        string
	Brief     string // the same in a few words, for lists; {ns}, {caller} and {other} are replaced
	Like      string // an example
	Proves    string // what the capture has to prove
	Needs     string // what the capture has to contain; empty if nothing more
	Withdrawn string // what withdraws the sentence, and which one is said then; empty if nothing does
	says      func(f *facts) (said, bool)
}

// said is a sentence with what it is about. In its text, names in braces stand for what facts.fill appends.
type said struct {
	side   record.Opt[record.Side]
	ns     int64 // {ns}, and {part}: with the latency if that is longer
	text   string
	after  int64            // {after}
	packet record.PacketRef // {packet}
	xid    record.Hex32     // {xid}
}

// All lists the sentences. The first one that holds is said.
var All = [...]*Sentence{
	{
		ID: "range", Brief: "the copy of the Reply that was accepted is not known",
		Like:   "The Reply was accepted after 2.26 ms, or after 548.54 ms if its first copy (packet 271) was lost.",
		Proves: "Several copies of the Reply may be the one that the caller accepted.", Withdrawn: "An ACK between the copies, or a capture at the caller.", says: isRange,
	},
	{
		ID: "unanswered", Brief: "no Reply; {ns} stalled{again}", Like: "It has no Reply. For 2.112s there was no progress, until the client retransmitted the Call, in packet 12.",
		Proves: "The capture contains no Reply, and a sender stalled.", says: isUnanswered,
	},
	{
		ID: "busy", Brief: "{ns} waiting for the transfers of another RPC", Like: "For 97.86 ms of 99.10 ms there was no progress, until packet 63: on the same connection, the transfers of XID 0xce8b1a4e came first, up to packet 62.",
		Proves: "For a fifth of the latency or longer, the RPC waited while transfers of another RPC of the connection, which come first, were not complete.", says: reasoned("busy", record.HeadOfLine),
	},
	{
		ID: "receiver", Brief: "{ns} without a receive buffer", Like: "For 12.00 ms of 13.10 ms there was no progress, until the server retransmitted the Reply, in packet 9: the client had no receive buffer (RNR NAK in packet 8).",
		Proves: "An RNR NAK was captured, and took a fifth of the latency; the side is the receiver if it took half of it.", says: reasoned("receiver", record.RNRNak),
	},
	{
		ID: "server-or-pause", Brief: "{ns} at the {other}, or while a link was paused", Like: "The server, or a paused link, took 17.65 ms. 12 frames of another port, such as a switch's, paused a link meanwhile, for 1.01 ms to 17.65 ms (PFC).",
		Proves: "What server-proven needs, and frames that paused a link while the RPC lasted: a host whose link is paused cannot send.",
		Needs:  "As server-proven.", Withdrawn: "The proofs of server-proven, if no link was paused.", says: isServerOrPause,
	},
	{
		ID: "server-proven", Brief: "{ns} at the {other}", Like: "The server took 17.65 ms (captured at the server, as --at says).",
		Proves: "At least half of the latency, and 1 ms, passed at the server: the capture was taken at the server (--at, or the capture says which packets its computer sent), at both ends, it has TCP timestamps of the server, or the server answered a later Call first.",
		Needs:  "All packets of the connection, XIDs that are not used twice at a time, and one latency.", Withdrawn: "The server retransmitted something while it worked; then server-or-way-back.", says: isServer,
	},
	{
		ID: "client-proven", Brief: "{ns} at the {caller}", Like: "The client took 61.99 ms of 70.08 ms to answer RDMA Reads (captured at the client, as --at says).",
		Proves: "At least half of the latency, and 1 ms, passed at the client until the first responses to RDMA Reads: the capture was taken at the client (--at, or the capture says which packets its computer sent), or at both ends.",
		Needs:  "As server-proven.", Withdrawn: "Responses were retransmitted; then client-or-network.", says: isClient,
	},
	{
		ID: "stalled-timer", Brief: "{ns} stalled until a retransmission timeout", Like: "For 571.00 ms of 600.10 ms there was no progress, until the server retransmitted the Reply, in packet 12, when its timer expired: no packet of this RPC followed packet 11 until then. A packet was lost, damaged or delayed on the way: in the network, or in the adapter of a host.",
		Proves: "A sender retransmitted when its timer expired, after a fifth of the latency. The side is the network, which the adapters of the hosts are a part of here, if such stalls took half of the latency, and if the packet was no Call: a server may work on a Call whose ACK was lost.",
		Needs:  "For the side: all packets of the connection, and one latency.", Withdrawn: "The stall lies after the Reply, or a host took half of the latency.", says: reasoned("stalled-timer", record.RetransmitTimeout),
	},
	{
		ID: "stalled-nak", Brief: "{ns} stalled until a retransmission after a NAK", Like: "For 9.48 ms of 17.49 ms there was no progress, until the server retransmitted the Reply, in packet 956, because the NAK in packet 953 asked for it.",
		Proves: "A sender retransmitted as a NAK requested.", Needs: "As stalled-timer.", Withdrawn: "As stalled-timer.", says: reasoned("stalled-nak", record.RetransmitNak),
	},
	{
		ID: "stalled-gap", Brief: "{ns} stalled until a retransmission, after later packets showed a missing packet", Like: "For 23.10 ms of 40.20 ms there was no progress, until the server retransmitted its RDMA Read request, in packet 88: later packets had shown that an earlier packet had not been accepted.",
		Proves: "A sender retransmitted after later packets had shown a gap.", Needs: "As stalled-timer.", Withdrawn: "As stalled-timer.", says: reasoned("stalled-gap", record.RetransmitGap),
	},
	{
		ID: "stalled-unknown", Brief: "{ns} stalled until a retransmission, cause unknown", Like: "For 39.31 ms of 42.29 ms there was no progress, until the server retransmitted the Reply, in packet 1785, for a reason that the capture does not show.",
		Proves: "A sender retransmitted.", Withdrawn: "As stalled-timer.", says: reasoned("stalled-unknown", record.RetransmitUnknown),
	},
	{
		ID: "stalled-reconnect", Brief: "{ns} stalled until the Call was sent on a new connection", Like: "For 2.112s of 2.120s there was no progress, until the client retransmitted the Call on a new connection, in packet 40: on an earlier connection, it had sent the Call in packet 12, and had received no Reply.",
		Proves: "The Call was sent before on an earlier connection.", Needs: "Captures at several points.", says: reasoned("stalled-reconnect", record.NewConnection),
	},
	{
		ID: "network-proven", Brief: "{ns} in the network", Like: "420.46 ms of 482.30 ms passed in the network on the way to the client (seen at both ends).",
		Proves: "More than half of the latency, and 1 ms, passed between both ends.", Needs: "Captures at both ends.", says: isNetwork,
	},
	{
		ID: "client-or-network", Brief: "{ns} at the {caller} or in the network", Like: "The client, or the network, took 61.99 ms of 70.08 ms to answer RDMA Reads.",
		Proves: "RDMA Reads were open for more than half of the latency, and 1 ms.", Withdrawn: "The proofs of client-proven.", says: isClientOrNetwork,
	},
	{
		ID: "transfer", Brief: "{ns} in RDMA Writes", Like: "The RDMA Writes to the client's memory took 37.00 ms of 40.10 ms; the capture does not show what limited them.",
		Proves: "RDMA Writes took more than half of the latency, and 1 ms.", says: isTransfer,
	},
	{
		ID: "server-or-way-back", Brief: "{ns} at the {other} or on the way back", Like: "The server, or the way back, took at least 703.97 ms of 707.09 ms: the Call had arrived after at most 3.12 ms (ACK, packet 1071).",
		Proves: "It was the server's turn for more than half of the latency, and 1 ms, and a fifth of that time is enough for the ACK of the Call.", Withdrawn: "The proofs of server-proven.", says: isServerOrWayBack,
	},
	{
		ID: "server-or-network", Brief: "{ns} at the {other} or in the network", Like: "The server or the network took 184.35 ms; the ACK of the Call came after 155.09 ms (packet 618).",
		Proves: "It was the server's turn for more than half of the latency, and 1 ms.", Withdrawn: "The proofs of server-proven, and an early ACK of the Call.", says: isServerOrNetwork,
	},
	{
		ID: "mixed", Brief: "no part took more than half of the latency", Like: "No part took most of 12.34 ms: waiting for the first RDMA Read 3.10 ms, in RDMA Reads 5.20 ms, waiting for the Reply 4.04 ms.",
		Proves: "The latency is 1 ms or longer, and no other sentence holds.", says: isMixed,
	},
}

// inBackward has the first words of ids for a Call in backward direction, which the server sends and the client executes: the nouns of
// RFC 8166 for the host that executes a Call and the one that sends it.
var inBackward = strings.NewReplacer("server-", "responder-", "client-", "requester-")

// idOf returns the id of the sentence about an RPC, which names no wrong host.
func (s *Sentence) idOf(r *record.Transaction) string {
	if r.Direction == record.Backward {
		return inBackward.Replace(s.ID)
	}
	return s.ID
}

// Find returns the sentence with an id, or nil.
func Find(id string) *Sentence {
	for _, s := range All {
		if s.ID == id || inBackward.Replace(s.ID) == id {
			return s
		}
	}
	return nil
}

// facts are what a record shows about the latency of an RPC.
type facts struct {
	*record.Transaction
	latency       int64 // 0 if it is not known
	certain       bool  // the latency is known exactly
	shares        record.Shares
	caller, other record.End // who sent the Call, and who executed it
	stall         *record.Wait
	stalls        int
	stalled       int64
	longest       int64 // the part of stall in the latency
}

// least is the shortest time that a sentence is about.
const least = 1e6

// Maker makes sentences. Its zero value is ready for use.
type Maker struct {
	text  []byte
	facts facts // about the current RPC
}

// Of returns the sentence about an RPC. It is unknown if none holds.
func Of(r *record.Transaction) record.Opt[record.Cause] { return new(Maker).Of(r) }

// Of returns what the function Of returns, with less work for further RPCs.
func (m *Maker) Of(r *record.Transaction) (c record.Opt[record.Cause]) {
	f := &m.facts
	*f = facts{Transaction: r}
	f.latency = r.LatencyNS.Or(0)
	if f.latency < least && !r.LatencyMinNS.Known() && (r.Status != record.NoReply || len(r.Waits) == 0) {
		return c
	}
	f.caller, f.other = r.Sides()
	f.certain, f.shares = !r.LatencyMinNS.Known(), r.Shares.Or(record.Shares{})
	if len(r.Waits) > 0 {
		f.stall = longest(r, false)
		f.stalls, f.stalled = waits(r)
		if f.stall != nil {
			f.longest = r.Waited(f.stall)
		}
	}
	for _, s := range All {
		if v, holds := s.says(f); holds {
			m.text = f.fill(m.text[:0], &v, v.text)
			if lost := lostPackets(r); lost != "" {
				m.text = append(append(m.text, ' '), lost...)
			}
			m.text = f.appendEndings(m.text, s.ID)
			return record.Some(record.Cause{ID: s.idOf(r), Side: v.side, NS: v.ns, Text: string(m.text)})
		}
	}
	return c
}

// fill appends a text, with the facts for which names in braces stand.
func (f *facts) fill(b []byte, v *said, text string) []byte {
	for {
		from := strings.IndexByte(text, '{')
		if from < 0 {
			return append(b, text...)
		}
		to := from + strings.IndexByte(text[from:], '}')
		if b = append(b, text[:from]...); to < from {
			return append(b, text[from:]...)
		}
		switch name := text[from+1 : to]; name {
		case "ns":
			b = field.AppendDuration(b, v.ns)
		case "part":
			b = f.partOf(b, v.ns)
		case "latency":
			b = field.AppendDuration(b, f.latency)
		case "after":
			b = field.AppendDuration(b, v.after)
		case "packet":
			if b = strconv.AppendInt(b, v.packet.Packet, 10); v.packet.Point != "" {
				b = append(append(b, " of "...), v.packet.Point...)
			}
		case "xid":
			b, _ = v.xid.AppendText(b)
		case "caller":
			b = append(b, f.caller...)
		case "other":
			b = append(b, f.other...)
		case "says":
			if p := f.shares.Find(record.ProofPosition); p != nil && p.How == "option" {
				b = append(b, ", as --at says"...)
			}
		case "again":
			b = f.appendAgain(b)
		default:
			b = append(b, text[from:to+1]...)
		}
		text = text[to+1:]
	}
}

// appendAgain appends how many packets of the RPC were retransmitted, and a verb.
func (f *facts) appendAgain(b []byte) []byte {
	b = strconv.AppendInt(b, int64(f.Retransmitted), 10)
	if f.Retransmitted == 1 {
		return append(b, " packet of this RPC was retransmitted"...)
	}
	return append(b, " packets of this RPC were retransmitted"...)
}

// partOf appends the length of a part of the latency, and the latency if it is longer.
func (f *facts) partOf(b []byte, ns int64) []byte {
	from := len(b)
	b = field.AppendDuration(b, ns)
	at := len(b)
	b = field.AppendDuration(append(b, " of "...), f.latency)
	if bytes.Equal(b[from:at], b[at+len(" of "):]) {
		return b[:at]
	}
	return b
}

// without returns the text of a sentence, or the other one if packets of the RPC were retransmitted.
func (f *facts) without(text, again string) string {
	if f.Retransmitted == 0 {
		return text
	}
	return again
}

// Lines returns the sentences about an RPC: what it waited for before the Call, and its cause.
func Lines(r *record.Transaction) (list []string) {
	if w := longest(r, true); w != nil {
		list = append(list, "Before the Call, the "+string(w.Waiting)+" waited "+field.Duration(w.NS)+" for credits, from packet "+first(w)+" until the Reply in packet "+second(w)+".")
	}
	if c, known := r.Cause.Get(); known {
		return append(list, c.Text)
	}
	if text := lostPackets(r); text != "" {
		list = append(list, text)
	}
	return list
}

// Brief returns the sentence about an RPC in a few words, or nothing if there is none.
func Brief(r *record.Transaction) string {
	c, known := r.Cause.Get()
	s := Find(c.ID)
	if !known || s == nil {
		return ""
	}
	caller, other := r.Sides()
	again := ""
	if n := r.Retransmitted; n > 0 {
		again = "; " + record.Plural(int64(n), "packet") + " sent again"
	}
	return strings.NewReplacer("{again}", again, "{ns}", field.Duration(c.NS), "{caller}", string(caller), "{other}", string(other)).Replace(s.Brief)
}

// None stands for the id of the sentence about an RPC in groups of RPCs, if no sentence is about it.
const None = "none"

// withoutSentence says which RPCs no sentence is about.
const withoutSentence = "latency under 1ms, or no Reply and no stall"

// Meaning says in a few words what the id of a sentence means, without the numbers of an RPC. It returns nothing for an unknown id.
func Meaning(id string) string {
	if id == None {
		return withoutSentence
	}
	s := Find(id)
	if s == nil {
		return ""
	}
	caller, other := record.Client, record.Server
	if s.ID != id {
		caller, other = other, caller
	}
	return strings.NewReplacer("{ns} ", "", "{caller}", string(caller), "{other}", string(other)).Replace(s.Brief)
}

// isMost reports whether a part of the latency is most of it, and long enough to be described.
func (f *facts) isMost(ns int64) bool { return 2*ns > f.latency && ns >= least }

// proven reports whether a side took at least half of the latency, and long enough to be described.
func (f *facts) proven(b record.Bounds) bool {
	return f.latency > 0 && 2*b.Min >= f.latency && b.Min >= least
}

// sideOf returns the side of an end.
func sideOf(e record.End) record.Opt[record.Side] { return record.Some(record.Side(e)) }

// isExact reports whether bounds are so close that a single number stands for both.
func isExact(b record.Bounds) bool { return b.Max-b.Min <= b.Min/1000 }

func isServerOrPause(f *facts) (v said, holds bool) {
	b := f.shares.ServerNS
	return said{ns: b.Min, text: "The {other}, or a paused link, took {part}."}, f.certain && f.proven(b) && f.paused()
}

// paused reports whether a link was paused while the RPC lasted.
func (f *facts) paused() bool {
	m, known := f.Meanwhile.Get()
	return known && m.WasPaused()
}

func isServer(f *facts) (v said, holds bool) {
	b := f.shares.ServerNS
	if !f.certain || !f.proven(b) || f.paused() {
		return v, false
	}
	v = said{side: sideOf(f.other), ns: b.Min}
	switch later := f.shares.Find(record.ProofLaterCall); {
	case f.shares.Point == record.AtBothEnds:
		v.text = f.without("The {other} took {part} (seen at both ends).", "The {other} took {part} (seen at both ends); {again}.")
	case f.shares.Find(record.ProofPosition) != nil && string(f.shares.Point) == string(f.other) && isExact(b):
		v.text = f.without("The {other} took {part} (captured at the {other}{says}).", "The {other} took {part} (captured at the {other}{says}); {again}.")
	case f.shares.Find(record.ProofPosition) != nil && string(f.shares.Point) == string(f.other):
		v.text = f.without("The {other} took at least {part} (captured at the {other}{says}).", "The {other} took at least {part} (captured at the {other}{says}); {again}.")
	case f.shares.Find(record.ProofTimestamp) != nil:
		v.text = f.without("The {other} took at least {part} (its TCP timestamps).", "The {other} took at least {part} (its TCP timestamps); {again}.")
	case later != nil:
		v.xid, v.after = later.XID.Or(0), later.NS.Or(0)
		v.text = "The {other} took at least {part} (it had the Call of XID {xid}, sent {after} later, before it answered this one)."
	default:
		return v, false
	}
	return v, true
}

func isClient(f *facts) (v said, holds bool) {
	b := f.shares.ClientNS
	if !f.certain || !f.proven(b) || f.paused() {
		return v, false
	}
	v = said{side: sideOf(f.caller), ns: b.Min}
	switch {
	case f.shares.Point == record.AtBothEnds:
		v.text = f.without("The {caller} took {part} to answer RDMA Reads (seen at both ends).", "The {caller} took {part} to answer RDMA Reads (seen at both ends); {again}.")
	case isExact(b):
		v.text = "The {caller} took {part} to answer RDMA Reads (captured at the {caller}{says})."
	default:
		v.text = "The {caller} took at least {part} to answer RDMA Reads (captured at the {caller}{says})."
	}
	return v, true
}

func isNetwork(f *facts) (v said, holds bool) {
	if !f.certain || f.shares.Point != record.AtBothEnds || !f.proven(f.shares.NetworkNS) {
		return v, false
	}
	v = said{side: record.Some(record.SideNetwork), ns: f.shares.NetworkNS.Min, text: "{part} passed in the network (seen at both ends)"}
	if f.isMost(f.shares.ToServerNS.Min) {
		v.ns, v.text = f.shares.ToServerNS.Min, "{part} passed in the network on the way to the {other} (seen at both ends)"
	}
	if f.isMost(f.shares.ToClientNS.Min) {
		v.ns, v.text = f.shares.ToClientNS.Min, "{part} passed in the network on the way to the {caller} (seen at both ends)"
	}
	switch {
	case f.Retransmitted > 0:
		v.text += "; {again}."
	case lostPackets(f.Transaction) == "":
		v.text += "; none of its packets was lost."
	default:
		v.text += "."
	}
	return v, true
}

// phases returns the phases of the latency, if they are those of the copy of the Reply that was accepted.
func (f *facts) phases() (p record.Phases, known bool) {
	p, known = f.Phases.Get()
	return p, known && f.Call != nil && f.certain && f.latency > 0 && f.shares.Point != record.AtBothEnds
}

func isClientOrNetwork(f *facts) (v said, holds bool) {
	p, known := f.phases()
	v.ns = min(f.shares.ClientNS.Max, p.ReadNS.Or(0))
	v.text = f.without("The {caller}, or the network, took {part} to answer RDMA Reads.", "The {caller}, or the network, took {part} to answer RDMA Reads. {again}.")
	return v, known && f.shares.ClientNS.Max < f.latency && f.isMost(v.ns)
}

func isTransfer(f *facts) (v said, holds bool) {
	p, known := f.phases()
	v.ns = p.WriteNS.Or(0)
	v.text = f.without("The RDMA Writes to the {caller}'s memory took {part}; the capture does not show what limited them.",
		"The RDMA Writes to the {caller}'s memory took {part}; the capture does not show what limited them. {again}.")
	return v, known && f.isMost(v.ns)
}

// working returns how much of the latency passed while only the side that executes the RPC, or the network, could make
// progress: from the Call, or from the last response to an RDMA Read, to the next packet of that side. The first of these
// times, during which the Call arrived, is also returned by itself.
func (f *facts) working() (all, arriving int64, known bool) {
	p, known := f.phases()
	arriving, all = p.ToReplyNS.Or(0), p.ToReadNS.Or(0)+p.ToWriteNS.Or(0)+p.ToReplyNS.Or(0)
	if p.ToReadNS.Known() {
		arriving = p.ToReadNS.Or(0)
	} else if p.ToWriteNS.Known() {
		arriving = p.ToWriteNS.Or(0)
	}
	if known && f.Call.LastPacket != f.Call.Packet { // the caller was sending the Call
		sending := min(max(0, int64(f.Call.LastTime-f.Sent())), arriving)
		arriving, all = arriving-sending, all-sending
	}
	return all, arriving, known && f.isMost(all)
}

// callAck sets the time from the Call to its ACK, and the packet of the ACK. It reports whether the ACK says something about
// the time in which the RPC was executed: no packet shows when the responses to RDMA Reads arrived.
func (v *said) callAck(f *facts, arriving int64) bool {
	ack := ackOfCall(f.Transaction)
	if ack == nil || f.Phases.Or(record.Phases{}).ToReadNS.Known() && !f.isMost(arriving) {
		return false
	}
	v.after, v.packet = int64(ack.Time-f.Sent()), ack.First()
	return true
}

func isServerOrWayBack(f *facts) (v said, holds bool) {
	all, arriving, known := f.working()
	if f.Phases.Or(record.Phases{}).ToReadNS.Known() {
		all = arriving
	}
	if !known || !v.callAck(f, arriving) || v.after*5 > all { // The network may have taken so much of it that both have to be named.
		return v, false
	}
	v.ns = all - v.after
	v.text = f.without("The {other}, or the way back, took at least {part}: the Call had arrived after at most {after} (ACK, packet {packet}).",
		"The {other}, or the way back, took at least {part}: the Call had arrived after at most {after} (ACK, packet {packet}). {again}.")
	return v, true
}

func isServerOrNetwork(f *facts) (v said, holds bool) {
	all, arriving, known := f.working()
	if !known {
		return v, false
	}
	v.ns = all
	reads := f.Phases.Or(record.Phases{}).ToReadNS.Known()
	switch {
	case v.callAck(f, arriving):
		if reads {
			v.ns = arriving
		}
		v.text = f.without("The {other} or the network took {part}; the ACK of the Call came after {after} (packet {packet}).",
			"The {other} or the network took {part}; the ACK of the Call came after {after} (packet {packet}). {again}.")
	case reads && !f.isMost(arriving):
		v.text = f.without("The {other} or the network took {part}; no packet shows when the responses to its RDMA Reads arrived.",
			"The {other} or the network took {part}; no packet shows when the responses to its RDMA Reads arrived. {again}.")
	default:
		v.text = f.without("The {other} or the network took {part}; no ACK of the Call was captured.", "The {other} or the network took {part}; no ACK of the Call was captured. {again}.")
	}
	return v, true
}

func isMixed(f *facts) (v said, holds bool) {
	p, known := f.Phases.Get()
	if !known || f.Call == nil || f.latency < least {
		return v, false
	}
	b := []byte("No part took most of {latency}:")
	first := len(b)
	add := func(name string, ns int64) {
		if ns > 0 {
			if len(b) > first {
				b = append(b, ',')
			}
			b = field.AppendDuration(append(append(append(b, ' '), name...), ' '), ns)
		}
	}
	if f.shares.Point == record.AtBothEnds {
		add("at the "+string(f.other), f.shares.ServerNS.Min)
		add("at the "+string(f.caller), f.shares.ClientNS.Min)
		add("on the way to the "+string(f.other), f.shares.ToServerNS.Min)
		add("on the way to the "+string(f.caller), f.shares.ToClientNS.Min)
	} else {
		for i, ns := range p.List() {
			add(record.Phase(i).String(), ns.Or(0))
		}
	}
	return said{ns: f.latency, text: string(append(b, '.'))}, len(b) > first
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
