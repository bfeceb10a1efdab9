package analyze

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Place is the place of the trouble that a capture shows.
type Place string

// The places.
const (
	InNetwork       Place = "network"
	InClient        Place = "client"
	InServer        Place = "server"
	InConfiguration Place = "configuration"
	Unproven        Place = "unproven"
	Clear           Place = "clear"
)

// Values returns all places.
func (Place) Values() []string {
	return record.Words(InNetwork, InClient, InServer, InConfiguration, Unproven, Clear)
}

// proven reports whether the place is that of a trouble.
func (p Place) proven() bool { return p != Unproven && p != Clear }

// Verdict says where the trouble is and why, as far as the capture proves it.
type Verdict struct {
	Where     Place            `json:"where" doc:"Place of the trouble: network, client, server or configuration if the capture proves it; unproven if the capture does not prove a fault of any of them; clear if all counts are 0 except for failed, all RPCs were answered, and the capture contains all packets completely and in both directions."`
	ID        string           `json:"id" doc:"Id of the sentence that names the place; sentence ids are stable."`
	Possible  []Place          `json:"possible" doc:"Places that the trouble may be at; only one if the capture proves it, and none if there is no trouble."`
	Text      string           `json:"text" doc:"What the capture shows, in one or more sentences."`
	Counts    Counts           `json:"counts" doc:"Numbers that the verdict is made from. They are about the time that --from and --to select, as are silences and restarts."`
	Silences  []record.Silence `json:"silences" doc:"Times in which a host sent no packet to another one although several packets of the other one asked for an answer."`
	Restarts  []Restart        `json:"restarts" doc:"Restarts of hosts that the capture shows."`
	Clients   []Client         `json:"clients" doc:"Clients with retransmitted packets, NAKs, failed RPCs or stalls, at most 64: first the one with the largest shares of them. They are numbers about the connections of a client, and do not say that the client is their cause."`
	NotJudged []string         `json:"not_judged" doc:"What the capture cannot show, as sentences."`
	Evidence  []Evidence       `json:"evidence" doc:"Facts that the verdict is based on, each with the command that shows it; empty if there is no trouble."`

	// Unordered is set if the packets are not in the order in which they were captured.
	Unordered bool `json:"-"`

	// Line is the verdict as one line of text. It begins with the place if a fault of it is proven.
	Line string `json:"-"`

	faults bool // something after the first sentence has a proven place
}

// Faultless reports whether the place of a verdict has no fault: hosts and networks take time for RPCs, and Calls that wait for a
// credit show a limit.
func (v *Verdict) Faultless() bool {
	return !v.faults && (strings.HasPrefix(v.ID, "slow-") || v.ID == "few-credits")
}

// Counts are the numbers that a verdict is made from.
type Counts struct {
	Retransmitted        int64             `json:"retransmitted" doc:"Number of packets that are marked as retransmitted."`
	Late                 record.Opt[int64] `json:"late" doc:"Number of packets whose first captured copy comes after a later packet of the same sender; null if that is not known."`
	Repeated             record.Opt[int64] `json:"repeated" doc:"Number of packets that passed the capture point and were retransmitted nevertheless; null if that is not known."`
	OutOfOrder           int64             `json:"out_of_order" doc:"Number of packets that arrived after a packet with a higher sequence number."`
	Refused              int64             `json:"refused" doc:"Number of NAKs, including RNR NAKs."`
	Damaged              int64             `json:"damaged" doc:"Number of packets that their receivers drop because of a bad checksum."`
	CE                   int64             `json:"ce" doc:"Number of packets with a congestion mark of a switch (CE)."`
	CNP                  int64             `json:"cnp" doc:"Number of congestion notification packets."`
	Pauses               int64             `json:"pauses" doc:"Number of priority flow control (PFC) frames that pause at least one priority."`
	NotCaptured          int64             `json:"not_captured" doc:"Number of packets that receivers acknowledged but that are missing from the capture."`
	Unanswered           int64             `json:"unanswered" doc:"Number of RPCs that were never answered: their connection ended, and no copy of the Call on a later connection got a Reply. It is 0 if the Replies are not in the capture."`
	AnsweredAgain        int64             `json:"answered_again" doc:"Number of RPCs without a Reply whose Call got a Reply when it was retransmitted on a later connection."`
	Outstanding          int64             `json:"outstanding" doc:"Number of RPCs without a Reply on connections that had not ended when the capture ended."`
	Unknown              int64             `json:"unknown" doc:"Number of RPCs without a Reply on connections of which the capture lacks packets, so that the Reply may be missing."`
	Failed               map[string]int64  `json:"failed" doc:"Number of RPCs with an error status, by status."`
	StalledNS            int64             `json:"stalled_ns" doc:"Part of latency_ns for which RPCs stalled, in nanoseconds."`
	LatencyNS            int64             `json:"latency_ns" doc:"Sum of all latencies, in nanoseconds."`
	Ranges               int64             `json:"ranges" doc:"Number of latencies that are upper bounds, because it is not certain which copy of the Reply was accepted."`
	Rejected             int64             `json:"rejected" doc:"Number of connections that a server rejected, and did not accept afterwards from the same client."`
	RejectedThenAccepted int64             `json:"rejected_then_accepted" doc:"Number of connections that a server rejected before it accepted one of the same client, on any port."`
}

// Evidence is a fact that a verdict is based on.
type Evidence struct {
	Fact    string `json:"fact" doc:"Fact that the verdict follows from, as a sentence."`
	Command string `json:"command" doc:"Arguments of rdmadump that show the fact; FILE stands for the capture." secret:"filter"`
}

// The limits of the verdict. What is below them is counted, but explains no trouble.
const (
	stalledShare  = 0.05                    // of all latencies
	repeatedShare = 0.01                    // of all packets
	creditShare   = 0.02                    // of all latencies
	unknownShare  = 0.5                     // of all latencies
	slowLatency   = int64(time.Millisecond) // the longest latency of RPCs that are not slow
	missingShare  = 0.01                    // of all packets
	doubledShare  = 50                      // packets for each second copy
	leastStep     = int64(time.Second)      // back in time, which no adapter with several queues makes
	leastAbsence  = int64(time.Second)      // of the times in which packets are missing
)

// said is what a sentence says about a capture. It is empty if the sentence does not hold.
type said struct {
	where    Place
	possible []Place // if where is Unproven
	text     string
	evidence []Evidence
}

// beginning returns the words of beginnings for sentences.
func beginning(list []statement) string {
	proven := slices.ContainsFunc(list, func(t statement) bool { return t.role == small })
	return beginnings[proven]
}

// beginnings has the words before a verdict that begins with no trouble, by whether a sentence proves a fault that delayed little.
var beginnings = map[bool]string{false: "no fault proven: ", true: "no fault proven that delayed much: "}

// countOf says how many of something there are, which names no place; one and many are the words after the number. It says nothing
// if there are none.
func countOf(n int64, one, many, command string) said {
	if n == 0 {
		return said{}
	}
	text := fmt.Sprintf("%d %s", n, many)
	if n == 1 {
		text = "1 " + one
	}
	return said{Unproven, nil, text, []Evidence{{text, command}}}
}

// role says how a sentence combines with others.
type role uint8

// The roles of sentences.
const (
	context role = iota // says what the capture lacks; comes first, and names a place only if nothing else is said
	trouble             // needs no introduction
	count               // one of several counts; the words of beginnings precede it if no trouble does
	small               // a count of what is proven to be a fault, and delayed RPCs little
	hint                // a count that is only said without a trouble
)

// order tells the sentences about what the order of the packets shows from the others.
type order bool

// The values of order. What is ordered is not said if the packets are not in the order of their times.
const (
	anyOrder order = false
	ordered  order = true
)

// sentence is a row of the table of what a verdict may say. To add a sentence, add a row and a function that returns what
// it says, or nothing if the capture does not show it; and a capture for which the sentence holds and one for
// which it does not to the tests.
type sentence struct {
	id    string
	role  role
	order order
	holds func(j *facts) said
}

// sentences lists what a verdict may say, in the order in which it is said. All that hold are said. The first one that is
// no context names the place of the trouble. The functions are in the files verdict_*.go, by what they are about.
var sentences = []sentence{
	{"no-rdma", trouble, anyOrder, noRDMA},
	{"one-direction", context, anyOrder, oneDirection},
	{"missing-files", context, anyOrder, missingFiles},
	{"unordered", context, anyOrder, disorderedFile},
	{"not-captured", context, ordered, notCaptured},
	{"changed", trouble, anyOrder, changed},
	{"protocol-fault", trouble, anyOrder, harmfulFault},
	{"mount-refused", trouble, anyOrder, mountRefused},
	{"server-restarted", trouble, ordered, serverRestarted},
	{"client-restarted", trouble, ordered, clientRestarted},
	{"lost", trouble, ordered, lost},
	{"lost-or-down", trouble, ordered, lostInQuiet},
	{"replies-lost", trouble, ordered, lostReplies},
	{"silent", trouble, ordered, silent},
	{"rejected", trouble, anyOrder, rejected},
	{"request-unanswered", trouble, ordered, unansweredRequest},
	{"no-buffers", trouble, anyOrder, noBuffers},
	{"few-credits", trouble, ordered, fewCredits},
	{"protocol-violated", trouble, anyOrder, harmlessFault},
	{"damaged", trouble, anyOrder, damaged},
	{"congested", trouble, anyOrder, congested},
	{"rejected-stale", trouble, anyOrder, rejectedStale},
	{"ended", trouble, ordered, endedConnections},
	{"unanswered", count, ordered, neverAnswered},
	{"late-answers", count, ordered, lateServer},
	{"retransmitted", small, ordered, lostLittle},
	{"retransmitted", count, ordered, retransmitted},
	{"stalled", count, ordered, reconnected},
	{"traffic-stalled", count, ordered, trafficStalled},
	{"busy", count, ordered, busy},
	{"slow-server", count, ordered, slowServer},
	{"slow-network", count, ordered, slowNetwork},
	{"slow-client", count, ordered, slowClient},
	{"share-unknown", hint, ordered, shareUnknown},
	{"failed", count, anyOrder, failed},
	{"errors-found", count, anyOrder, errorsFound},
	{"lost-unnoticed", small, ordered, lostUnnoticed},
	{"network-copies", small, ordered, networkCopies},
	{"out-of-order", count, ordered, outOfOrder},
	{"refused", count, anyOrder, refused},
	{"paused", count, anyOrder, paused},
	{"rejected-then-accepted", count, anyOrder, rejectedThenAccepted},
	{"answered-again", count, ordered, answeredAgain},
	{"ranges", count, ordered, ranges},
	{"outstanding", count, ordered, outstanding},
	{"no-call", count, ordered, noCall},
	{"reply-unknown", count, ordered, replyUnknown},
	{"reply-truncated", count, ordered, replyTruncated},
	{"incomplete", count, anyOrder, incomplete},
	{"doubled", count, anyOrder, doubled},
	{"part", hint, ordered, partOnly},
	{"cut", count, anyOrder, endsEarly},
}

// statement is a sentence that holds, and what it says.
type statement struct {
	sentence
	said
}

// facts is what a verdict is decided from.
type facts struct {
	*suspicion
	o        *Overview
	s        *record.Summary
	counts   Counts
	outcomes outcomes
	repairs  repairs
	silences []record.Silence
	restarts []Restart
	oneWay   string // addresses of the only hosts whose packets are in the capture; empty if both directions are
	matters  bool   // retransmissions mattered
	part     bool   // the overview is about a part of the capture
	end      record.Time
}

// verdict decides where the trouble is. The summary may be nil.
func (c *Collector) verdict(s *record.Summary) Verdict {
	if s == nil {
		s = &record.Summary{RDMA: 1}
	}
	j := newFacts(c, s)
	c.o.Capture = j.capture()
	v := Verdict{Where: Clear, ID: "clear", Possible: []Place{}, Counts: j.counts, Silences: j.silences, Restarts: j.restarts, Clients: j.troubled(), NotJudged: j.notJudged(), Evidence: []Evidence{}, Unordered: j.unordered()}
	var before string // contexts
	var list []statement
	for _, x := range sentences {
		if j.unordered() && x.order == ordered {
			continue
		}
		switch t := x.holds(j); {
		case t.text == "" || x.role == hint && len(list) > 0 && list[0].role == trouble:
		case x.role == context:
			before += t.text + "; "
			v.Evidence = append(v.Evidence, t.evidence...)
			v.Where, v.ID, v.Possible = Unproven, x.id, t.possible
		default:
			list = append(list, statement{x, t})
		}
	}
	for i, t := range list {
		v.Evidence = append(v.Evidence, t.evidence...)
		if i == 0 {
			v.Where, v.ID, v.Possible = t.where, t.id, t.possible
			if t.where.proven() {
				v.Possible = []Place{t.where}
			}
		}
	}
	if v.Possible == nil {
		v.Possible = []Place{}
	}
	switch {
	case j.nothing(list):
		v.Where, v.ID, v.Evidence, v.Text = Unproven, "no-packets", []Evidence{}, "nothing is in this time: "+j.extent()
	case len(list) == 0 && before != "":
		v.Text = before + "no fault proven"
	case len(list) == 0 && j.o.Health.Packets == 0:
		v.Where, v.ID, v.Text = Unproven, "no-packets", beginnings[false]+"no packet of a connection is in the capture"
	case len(list) == 0 && j.o.RPCs.Total() == 0:
		v.Where, v.ID = Unproven, "no-rpc"
		v.Text = beginnings[false] + "the capture contains no RPC; " + j.flawless()
	case len(list) == 0 || before == "" && len(list) == 1 && list[0].id == "failed" && j.ordinary():
		v.Where, v.ID, v.Text, v.Evidence = Clear, "clear", j.clear(), []Evidence{}
	default:
		if before == "" && list[0].id == "part" && j.sound() { // Everything that the capture has is as it should be.
			list[0].text = j.captured() + "; " + list[0].text
		}
		text := join(list)
		if list[0].role != trouble && j.whole() && j.sound() && j.s.RDMA > 0 {
			text += "; no packet lost, repeated or refused"
		}
		if worst := j.worst(v.Clients); worst != "" {
			text += ". " + worst
		}
		v.Text, v.Line = before+text, before+text
		v.faults = slices.ContainsFunc(list[1:], func(t statement) bool { return t.where.proven() })
		switch {
		case v.Faultless():
			v.Line = before + beginning(list) + text
		case v.Where.proven():
			v.Line = before + string(v.Where) + ": " + text
		}
		return v
	}
	v.Line = v.Text
	return v
}

// join returns the sentences as one text. A proven place is named where it changes. The sentences about it end with a period, so that
// the next ones, which name no place, do not seem to be about it.
func join(list []statement) string {
	var b strings.Builder
	place := list[0].where
	if list[0].role != trouble && !place.proven() {
		b.WriteString(beginning(list))
	}
	for i, t := range list {
		switch {
		case i == 0:
		case t.where.proven() && t.where != place:
			b.WriteString(". " + string(t.where) + ": ")
			place = t.where
		case list[i-1].role == trouble || list[i-1].where.proven() && !t.where.proven():
			b.WriteString(". ")
		default:
			b.WriteString("; ")
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// newFacts computes what all sentences need.
func newFacts(c *Collector, s *record.Summary) *facts {
	o, h := &c.o, &c.o.Health
	j := &facts{suspicion: &c.suspicion, o: o, s: s, outcomes: c.suspicion.outcomes(s.Absences), repairs: c.suspicion.repairs(), end: s.Last.Or(0), part: c.mounts.partial, silences: []record.Silence{}, oneWay: s.OnlyFrom()}
	for _, x := range s.Silences {
		if c.suspicion.overlaps(x.From, x.To.Or(j.end)) {
			j.silences = append(j.silences, x)
		}
	}
	j.restarts = append([]Restart{}, c.suspicion.restarts(s.Silences)...)
	j.restarts = slices.DeleteFunc(j.restarts, func(r Restart) bool { return !c.suspicion.overlaps(r.From, r.To) })
	j.counts = Counts{
		Retransmitted: h.Retransmitted, OutOfOrder: h.OutOfOrder, Refused: h.Naks + h.RNRNaks, Damaged: h.Damaged, CE: h.CongestionMarks, CNP: h.CNPs, Pauses: h.Pauses,
		NotCaptured: h.NotCaptured, Unanswered: j.outcomes.unanswered, AnsweredAgain: j.outcomes.repaired, Outstanding: j.outcomes.outstanding, Unknown: j.outcomes.unknown,
		Failed: map[string]int64{}, StalledNS: min(o.Time.Phases.WaitNS, o.Time.TotalNS), LatencyNS: o.Time.TotalNS, Ranges: j.ranges,
		Rejected: int64(len(j.repairs.rejected) + len(j.repairs.stale)), RejectedThenAccepted: j.repairs.repaired,
	}
	if j.oneWay != "" {
		j.counts.Unanswered = 0
	}
	for _, status := range o.RPCs.Statuses {
		j.counts.Failed[status.Status] = status.Count
	}
	j.matters = j.retransmissionsMatter()
	return j
}

// overlaps reports whether a span of time overlaps the one that the overview is about.
func (s *suspicion) overlaps(from, to record.Time) bool {
	return s.span == nil || s.span(from, to)
}

// nothing reports whether the overview is about a time without packets that is before or after the capture, or in it if no sentence
// explains why there are none.
func (j *facts) nothing(list []statement) bool {
	first, last := j.s.First.Or(0), j.s.Last.Or(0)
	part := !j.overlaps(first, first) || !j.overlaps(last, last)
	return part && j.o.Health.Packets == 0 && j.o.RPCs.Total() == 0 && !slices.ContainsFunc(list, func(t statement) bool { return t.role == trouble && j.overlaps(first, last) })
}

// extent says from when to when the capture is.
func (j *facts) extent() string {
	first := j.s.First.Or(0)
	return fmt.Sprintf("the capture is from %s to %s, %s", first, j.end, field.Duration(j.end.Sub(first)))
}

// clear returns the text for a capture without any trouble.
func (j *facts) clear() string {
	text := plural(j.o.RPCs.Total(), "RPC") + ", all answered; "
	if x := failed(j); x.text != "" {
		text += x.text + "; "
	}
	return text + j.flawless() + "; longest latency " + field.Duration(j.longest)
}

// captured says what a part of a capture without any trouble has.
func (j *facts) captured() string {
	text := "no retransmission and no NAK in " + plural(j.o.Health.Packets, "packet")
	if n := j.o.RPCs.Total(); n > 0 {
		text = plural(n, "RPC") + ", all answered; " + text + "; longest latency " + field.Duration(j.longest)
	}
	return text
}

// flawless says that nothing happened to the packets.
func (j *facts) flawless() string {
	return plural(j.o.Health.Packets, "packet") + ", each once and in order, none refused or damaged"
}

// at returns a time as seconds since the start of the capture.
func (j *facts) at(t record.Time) string {
	return fmt.Sprintf("%.2fs", float64(t.Sub(j.s.First.Or(t)))/1e9)
}

// plural returns a number with its noun.
var plural = record.Plural[int64]
