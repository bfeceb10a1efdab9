package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
	return []string{string(InNetwork), string(InClient), string(InServer), string(InConfiguration), string(Unproven), string(Clear)}
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

	line string
}

// Line returns the verdict as one line of text. It begins with the place if that is proven.
func (v *Verdict) Line() string { return v.line }

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
	Command string `json:"command" doc:"Arguments of rdmadump that show the fact; FILE stands for the capture."`
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

// role says how a sentence combines with others.
type role uint8

// The roles of sentences.
const (
	context role = iota // says what the capture lacks; comes first, and names a place only if nothing else is said
	trouble             // needs no introduction
	count               // one of several counts; "no fault proven" precedes it if no trouble does
	hint                // a count that is only said without a trouble
)

// sentence is a row of the table of what a verdict may say. To add a sentence, add a row and a function that returns what
// it says, or nothing if the capture does not show it; and a capture for which the sentence holds and one for
// which it does not to the tests.
type sentence struct {
	id    string
	role  role
	holds func(j *facts) said
}

// sentences lists what a verdict may say, in the order in which it is said. All that hold are said. The first one that is
// no context names the place of the trouble.
var sentences = []sentence{
	{"no-rdma", trouble, noRDMA},
	{"one-direction", context, oneDirection},
	{"missing-files", context, missingFiles},
	{"unordered", context, disorderedFile},
	{"not-captured", context, notCaptured},
	{"protocol-fault", trouble, harmfulFault},
	{"mount-refused", trouble, mountRefused},
	{"server-restarted", trouble, serverRestarted},
	{"client-restarted", trouble, clientRestarted},
	{"lost", trouble, lost},
	{"replies-lost", trouble, lostReplies},
	{"silent", trouble, silent},
	{"rejected", trouble, rejected},
	{"request-unanswered", trouble, unansweredRequest},
	{"no-buffers", trouble, noBuffers},
	{"few-credits", trouble, fewCredits},
	{"protocol-violated", trouble, harmlessFault},
	{"damaged", trouble, damaged},
	{"congested", trouble, congested},
	{"rejected-stale", trouble, rejectedStale},
	{"ended", trouble, endedConnections},
	{"unanswered", count, neverAnswered},
	{"late-answers", count, lateServer},
	{"retransmitted", count, retransmitted},
	{"traffic-stalled", count, trafficStalled},
	{"busy", count, busy},
	{"slow-server", count, slowServer},
	{"share-unknown", hint, shareUnknown},
	{"failed", count, failed},
	{"errors-found", count, errorsFound},
	{"out-of-order", count, outOfOrder},
	{"refused", count, refused},
	{"paused", count, paused},
	{"rejected-then-accepted", count, rejectedThenAccepted},
	{"answered-again", count, answeredAgain},
	{"ranges", count, ranges},
	{"outstanding", count, outstanding},
	{"no-call", count, noCall},
	{"reply-unknown", count, replyUnknown},
	{"reply-truncated", count, replyTruncated},
	{"incomplete", count, incomplete},
	{"doubled", count, doubled},
	{"part", hint, partOnly},
	{"cut", count, endsEarly},
}

// needOrder has the sentences about what the order of the packets shows. They are not said if the packets are not in the order
// of their times.
var needOrder = map[string]bool{
	"not-captured": true, "lost": true, "silent": true, "request-unanswered": true, "ended": true, "unanswered": true, "late-answers": true, "retransmitted": true,
	"traffic-stalled": true, "busy": true, "slow-server": true, "share-unknown": true, "out-of-order": true, "answered-again": true, "ranges": true, "outstanding": true, "no-call": true, "reply-unknown": true,
	"server-restarted": true, "client-restarted": true, "replies-lost": true, "few-credits": true, "reply-truncated": true, "part": true,
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
	var list []sentence
	var texts []said
	for _, x := range sentences {
		if j.unordered() && needOrder[x.id] {
			continue
		}
		switch t := x.holds(j); {
		case t.text == "" || x.role == hint && len(list) > 0 && list[0].role == trouble:
		case x.role == context:
			before += t.text + "; "
			v.Evidence = append(v.Evidence, t.evidence...)
			v.Where, v.ID, v.Possible = Unproven, x.id, t.possible
		default:
			list, texts = append(list, x), append(texts, t)
		}
	}
	for i, t := range texts {
		v.Evidence = append(v.Evidence, t.evidence...)
		if i == 0 {
			v.Where, v.ID, v.Possible = t.where, list[i].id, t.possible
			if t.where.proven() {
				v.Possible = []Place{t.where}
			}
		}
	}
	if v.Possible == nil {
		v.Possible = []Place{}
	}
	switch {
	case len(list) == 0 && before != "":
		v.Text = before + "no fault proven"
	case len(list) == 0 && j.o.Health.Packets == 0:
		v.Where, v.ID, v.Text = Unproven, "no-packets", "no fault proven: no packet of a connection is in this time"
	case len(list) == 0 && j.total() == 0:
		v.Where, v.ID = Unproven, "no-rpc"
		v.Text = "no fault proven: the capture contains no RPC; " + j.flawless()
	case len(list) == 0 || before == "" && len(list) == 1 && list[0].id == "failed" && j.ordinary():
		v.Where, v.ID, v.Text, v.Evidence = Clear, "clear", j.clear(), []Evidence{}
	default:
		if before == "" && list[0].id == "part" && j.sound() { // Everything that the capture has is as it should be.
			texts[0].text = j.captured() + "; " + texts[0].text
		}
		text := join(list, texts)
		if list[0].role != trouble && j.whole() && j.sound() && j.s.RDMA > 0 {
			text += "; no packet lost, repeated or refused"
		}
		if worst := j.worst(v.Clients); worst != "" {
			text += ". " + worst
		}
		v.Text, v.line = before+text, before+text
		if v.Where.proven() {
			v.line = before + string(v.Where) + ": " + text
		}
		return v
	}
	v.line = v.Text
	return v
}

// join returns the sentences as one text. A proven place is named where it changes.
func join(list []sentence, texts []said) string {
	var b strings.Builder
	place := texts[0].where
	if list[0].role != trouble && !place.proven() {
		b.WriteString("no fault proven: ")
	}
	for i, t := range texts {
		switch {
		case i == 0:
		case t.where.proven() && t.where != place:
			b.WriteString(". " + string(t.where) + ": ")
			place = t.where
		case list[i-1].role == trouble:
			b.WriteString(". ")
		default:
			b.WriteString("; ")
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// capture says what the capture is, and what it lacks.
func (j *facts) capture() []string {
	list := []string{}
	for _, about := range []func(*facts) said{takenAt, oneDirection, onlyOneHost, missingFiles, notCaptured, partOnly, doubled, truncated} {
		if text := about(j).text; text != "" {
			list = append(list, text)
		}
	}
	return list
}

// howPlaced says how the place of a capture is known.
var howPlaced = map[string]string{"option": "--at", "interface": "its interface says which packets it sent"}

// takenAt says at which end the capture was taken, or that it was not taken where it seems to be.
func takenAt(j *facts) said {
	var parts []string
	for _, x := range j.places {
		where := "at the " + string(x.place)
		if x.place == record.Between {
			where = "between the client and the server"
		}
		switch {
		case x.refuted:
			parts = append(parts, fmt.Sprintf("not taken %s (%s): %s of it came late", where, howPlaced[x.how], plural(x.late, "packet")))
		case !slices.ContainsFunc(j.places, func(y placed) bool { return y.refuted && y.place == x.place }):
			parts = append(parts, fmt.Sprintf("taken %s (%s)", where, howPlaced[x.how]))
		}
	}
	return said{text: strings.Join(parts, ", ")}
}

// onlyOneHost is for a capture that has the packets of one host only of some pairs of hosts.
func onlyOneHost(j *facts) said {
	n := j.s.OneWay
	if n == 0 || j.oneWay != "" {
		return said{}
	}
	return said{text: "of " + plural(n, "pair") + " of hosts, the capture has the packets of only one of both"}
}

// truncated is for a capture with a snapshot length.
func truncated(j *facts) said {
	n := j.s.Truncated
	if n == 0 {
		return said{}
	}
	return said{text: fmt.Sprintf("%s captured only up to a length of %d bytes", plural(n, "packet"), j.s.SnapshotLength.Or(0))}
}

// newFacts computes what all sentences need.
func newFacts(c *Collector, s *record.Summary) *facts {
	o, h := &c.o, &c.o.Health
	j := &facts{suspicion: &c.suspicion, o: o, s: s, outcomes: c.suspicion.outcomes(s.Absences), repairs: c.suspicion.repairs(), end: s.Last.Or(0), silences: []record.Silence{}, oneWay: directionOf(s)}
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

// total returns the number of RPCs.
func (j *facts) total() int64 {
	n := &j.o.RPCs
	return n.Complete + n.NoReply + n.NoCall + n.RDMAError
}

// whole reports whether the capture contains all packets completely, in both directions, and of each connection from its
// beginning to its end.
func (j *facts) whole() bool {
	s, h := j.s, &j.o.Health
	return len(s.Absences)+len(s.MissingFiles) == 0 && h.StartsNotCaptured+h.EndsNotCaptured == 0 && j.o.Health.NotCaptured == 0 && s.Truncated+s.Malformed == 0 && s.CaptureDrops == 0 && !s.InputError.Known() && j.oneWay == "" && s.OneWay == 0 && s.TimeBackwards == 0
}

// sound reports whether nothing happened to any packet.
func (j *facts) sound() bool {
	c := &j.counts
	return c.Retransmitted+c.OutOfOrder+c.Refused+c.Damaged+c.CE+c.CNP+c.Pauses == 0
}

// clear returns the text for a capture without any trouble.
func (j *facts) clear() string {
	text := plural(j.total(), "RPC") + ", all answered; "
	if x := failed(j); x.text != "" {
		text += x.text + "; "
	}
	return text + j.flawless() + "; longest latency " + seconds(j.longest)
}

// captured says what a part of a capture without any trouble has.
func (j *facts) captured() string {
	text := "no retransmission and no NAK in " + plural(j.o.Health.Packets, "packet")
	if n := j.total(); n > 0 {
		text = plural(n, "RPC") + ", all answered; " + text + "; longest latency " + seconds(j.longest)
	}
	return text
}

// ordinaryStatuses are the statuses with which a server answers questions about files as it should.
var ordinaryStatuses = map[string]bool{"NOENT": true, "EXIST": true, "NOTDIR": true, "ISDIR": true, "NOTEMPTY": true, "NOTSUPP": true, "NOXATTR": true}

// isOrdinary reports whether a status is an ordinary answer.
func isOrdinary(status string) bool {
	_, name, _ := strings.Cut(status, "ERR_")
	return ordinaryStatuses[name]
}

// ordinary reports whether all RPCs with an error status have one that is an ordinary answer.
func (j *facts) ordinary() bool {
	return !slices.ContainsFunc(j.o.RPCs.Statuses, func(s StatusCount) bool { return !isOrdinary(s.Status) })
}

// flawless says that nothing happened to the packets.
func (j *facts) flawless() string {
	return plural(j.o.Health.Packets, "packet") + ", each once and in order, none refused or damaged"
}

// notJudged returns what the capture cannot show.
func (j *facts) notJudged() []string {
	list := []string{}
	add := func(is bool, text string) {
		if is {
			list = append(list, text)
		}
	}
	s := j.s
	add(j.oneWay != "", "Whether RPCs were answered, and whether the other hosts were silent, because only the packets of "+j.oneWay+" are in the capture.")
	add(s.Truncated > 0, "Whether packets were damaged, and the parts of messages, that the capture does not contain because of its snapshot length.")
	add(s.CaptureDrops > 0, "What happened to the packets that the capturing program dropped.")
	add(j.unordered(), "What was lost, and in which order packets were sent, because the packets are not in the order in which they were captured.")
	add(s.InputError.Known(), "What came after the place at which the input is damaged.")
	add(j.ranges > 0, "Which copies of some Replies were accepted.")
	add(j.dropped > 0, fmt.Sprintf("What became of %d RPCs without a Reply, because there were too many.", j.dropped))
	if len(s.Evicted) > 0 {
		list = append(list, "What needs the state that was evicted because of the memory limit.")
	}
	return list
}

// at returns a time as seconds since the start of the capture.
func (j *facts) at(t record.Time) string {
	return fmt.Sprintf("%.2fs", float64(t.Sub(j.s.First.Or(t)))/1e9)
}

// noRDMA is for a capture of something else.
func noRDMA(j *facts) said {
	if j.s.RDMA > 0 {
		return said{}
	}
	if j.s.RPC > 0 {
		return said{Unproven, nil, "the capture contains RPC over TCP or UDP, and no RDMA, which verdicts are about", []Evidence{
			{"the RPCs that took longest, and why", "--top 5 FILE"}, {"latencies by operation", "stats FILE"}, {"violations of RPC and NFS", "check FILE"},
		}}
	}
	text := "the capture contains no RDMA"
	if contents := Contents(j.s); contents != "" {
		text += " that rdmadump knows: " + contents
	}
	return said{Unproven, nil, text, []Evidence{{plural(j.s.Packets, "packet") + ", none of RDMA", "packets FILE"}}}
}

// oneDirection is for a capture of the packets of one side.
func oneDirection(j *facts) said {
	if j.oneWay == "" {
		return said{}
	}
	text := "only the packets of " + j.oneWay + " are in the capture"
	return said{Unproven, nil, text, []Evidence{{text, "packets FILE"}}}
}

// missingFiles is for a ring of files that is not complete.
func missingFiles(j *facts) said {
	list := j.s.MissingFiles
	if len(list) == 0 {
		return said{}
	}
	var n int64
	for _, m := range list {
		n += m.Count
	}
	text := plural(n, "file") + " of the ring are missing, after " + list[0].After
	if n == 1 {
		text = "1 file of the ring is missing, after " + list[0].After
	} else if len(list) > 1 {
		text = fmt.Sprintf("%s of the ring are missing, the first after %s", plural(n, "file"), list[0].After)
	}
	return said{Unproven, nil, text, []Evidence{{text, "overview FILE"}}}
}

// unordered reports whether the packets are not in the order in which they were captured. Small steps back of the time do not
// show that: adapters with several queues have them between connections.
func (j *facts) unordered() bool {
	return j.s.Disordered > 0 || j.s.TimeBackwardsNS >= leastStep
}

// disorderedFile is for a capture whose packets are not in the order of their times. What seems to be lost, or out of order, may
// only be elsewhere in the file.
func disorderedFile(j *facts) said {
	n := j.s.TimeBackwards
	if !j.unordered() {
		return said{}
	}
	fact := fmt.Sprintf("%s earlier than the packet before, by up to %s", plural(n, "packet"), short(j.s.TimeBackwardsNS))
	return said{Unproven, nil, "the packets are not in the order of their times (" + fact + "), so that nothing is said about losses and order; reordercap sorts them", []Evidence{{fact, "packets FILE"}}}
}

// notCaptured is for a capture that lacks many packets, or all packets of a while.
func notCaptured(j *facts) said {
	var longest *record.Absence
	for i := range j.s.Absences {
		if a := &j.s.Absences[i]; j.suspicion.overlaps(a.From, a.To) && (longest == nil || a.To.Sub(a.From) > longest.To.Sub(longest.From)) {
			longest = a
		}
	}
	n := j.o.Health.NotCaptured
	if longest == nil || longest.To.Sub(longest.From) < leastAbsence && float64(n) < missingShare*float64(j.o.Health.Packets) {
		return said{}
	}
	when := fmt.Sprintf("between %s and %s", j.at(longest.From), j.at(longest.To))
	if when == fmt.Sprintf("between %[1]s and %[1]s", j.at(longest.From)) {
		when = "at " + j.at(longest.From)
	}
	if n := len(j.s.Absences); n > 1 {
		when = fmt.Sprintf("at %d times, the longest %s", n, when)
	}
	text := fmt.Sprintf("%s not captured, %s", plural(n, "packet"), when)
	switch {
	case n == 0: // They are counted with a later packet than those of this time.
		text = "packets not captured, " + when
	case !longest.Packets.Known():
		text = "packets may not have been captured between " + j.at(longest.From) + " and " + j.at(longest.To)
	}
	return said{Unproven, nil, text, []Evidence{{text, "connections FILE"}}}
}

// harmfulFault is for a side that broke the protocol, so that RPCs failed or connections ended. If the capture is
// incomplete, a Reply that it does not contain proves no failure.
func harmfulFault(j *facts) said {
	if !j.harmed() {
		return said{}
	}
	return j.broken("RPCs or connections failed")
}

// harmed reports whether RPCs or connections failed because of the protocol.
func (j *facts) harmed() bool {
	failed := j.o.RPCs.RDMAError + j.nakEnds
	if j.o.Health.NotCaptured == 0 && j.s.Truncated == 0 && j.s.CaptureDrops == 0 && j.o.RPCs.NoCall == 0 && j.oneWay == "" {
		failed += j.o.RPCs.NoReply
	}
	return failed > 0
}

// harmlessFault is for a side that broke the protocol without visible consequences.
func harmlessFault(j *facts) said {
	if j.harmed() {
		return said{}
	}
	return j.broken("")
}

// broken returns the sentence about the side whose errors the findings prove.
func (j *facts) broken(consequence string) said {
	keys := slices.SortedFunc(maps.Keys(j.faults), func(a, b faultKey) int {
		return cmp.Or(cmp.Compare(j.faults[b].count, j.faults[a].count), cmp.Compare(a.rule, b.rule), cmp.Compare(a.by, b.by))
	})
	if len(keys) == 0 {
		return said{}
	}
	count := map[record.End]int64{}
	var evidence []Evidence
	for _, k := range keys {
		f := j.faults[k]
		count[k.by] += f.count
		if len(evidence) < 4 {
			evidence = append(evidence, Evidence{fmt.Sprintf("%s of the %s: %s", k.rule, k.by, plural(f.count, "finding")), "check FILE -Y 'rule == " + k.rule + "'"})
		}
	}
	where := Unproven
	switch {
	case count[record.Server] > count[record.Client]:
		where = InServer
	case count[record.Client] > count[record.Server]:
		where = InClient
	}
	first := slices.IndexFunc(keys, func(k faultKey) bool { return where == Unproven || string(k.by) == string(where) })
	f := j.faults[keys[first]]
	text := f.message
	if where != Unproven {
		n := count[record.End(where)]
		text = fmt.Sprintf("%s of the protocol (%s): %s", plural(n, "violation"), keys[first].rule, text)
		if n > f.count {
			text = fmt.Sprintf("%s of the protocol, most often %s: %s", plural(n, "violation"), keys[first].rule, f.message)
		}
	} else {
		text = fmt.Sprintf("both sides violate the protocol, %s each, such as %s: %s", plural(count[record.Server], "time"), keys[first].rule, text)
	}
	if hosts := slices.Sorted(maps.Keys(f.hosts)); j.severalClients() && len(hosts) > 0 && hosts[0] != "" {
		text += " (" + strings.Join(hosts[:min(len(hosts), 3)], ", ")
		if len(hosts) > 3 {
			text += fmt.Sprintf(" and %d others", len(hosts)-3)
		}
		text += ")"
	}
	if consequence != "" {
		text += "; " + consequence
	}
	return said{where, []Place{InClient, InServer}, text, evidence}
}

// refusalReasons explains the statuses of a refused mount.
var refusalReasons = map[string]string{
	"NFS4ERR_MINOR_VERS_MISMATCH": "the server does not serve the minor version that the client asks for",
	"PROG_MISMATCH":               "the server does not serve this version of the program",
	"PROG_UNAVAIL":                "the server does not serve this program",
}

// mountRefused is for a server that refuses to be mounted.
func mountRefused(j *facts) said {
	var keys []refusalKey
	for key, r := range j.refusals {
		any := refusalKey{client: key.client, server: key.server}
		if !strings.HasPrefix(key.name, "NFSACL") && j.served[served(key)] <= r.first && j.served[served(any)] <= r.first {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return said{}
	}
	slices.SortFunc(keys, func(a, b refusalKey) int {
		return cmp.Or(cmp.Compare(j.refusals[b].count, j.refusals[a].count), cmp.Compare(a.name, b.name), cmp.Compare(a.client, b.client), cmp.Compare(a.server, b.server))
	})
	name, r := keys[0].name, j.refusals[keys[0]]
	text := fmt.Sprintf("%s refused with %s", name, r.status)
	if j.severalClients() && keys[0].client != "" {
		text += " (client " + keys[0].client + ")"
	}
	if why := refusalReasons[r.status]; why != "" {
		text += ": " + why
	}
	return said{InServer, nil, text, []Evidence{{fmt.Sprintf("%s with %s", plural(r.count, name+" Reply"), r.status), "FILE -Y 'status == " + r.status + "'"}}}
}

// silent is for hosts that did not answer. A silence in which a host restarted is said already.
func silent(j *facts) said {
	list := slices.DeleteFunc(slices.Clone(j.silences), func(x record.Silence) bool {
		return slices.ContainsFunc(j.restarts, func(r Restart) bool {
			return r.Address == x.Address && x.From >= r.From && x.To.Or(j.end) <= r.To
		})
	})
	if len(list) == 0 {
		return said{}
	}
	longest := slices.MaxFunc(list, func(a, b record.Silence) int {
		return cmp.Compare(a.To.Or(j.end).Sub(a.From), b.To.Or(j.end).Sub(b.From))
	})
	until := "the end of the capture"
	if to, ended := longest.To.Get(); ended {
		until = j.at(to)
	}
	if len(list) > 1 {
		until += fmt.Sprintf(" (the longest of %d silences)", len(list))
	}
	text := fmt.Sprintf("%s silent from %s to %s: %d packets of %s asked for an answer", longest.Address, j.at(longest.From), until, longest.Packets, longest.Peer)
	host := Place("host")
	switch {
	case j.isServer(longest.Address) && !j.isClient(longest.Address):
		host = InServer
	case j.isClient(longest.Address) && !j.isServer(longest.Address):
		host = InClient
	}
	text += fmt.Sprintf("; the network or the %s", host)
	possible := []Place{InNetwork, host}
	if host == "host" {
		possible = []Place{InNetwork, InServer, InClient}
	}
	if j.s.CaptureDrops > 0 || j.o.Health.NotCaptured > 0 {
		text += ", or the capture, which lacks packets"
	}
	return said{Unproven, possible, text, []Evidence{
		{"Packets of " + longest.Peer + " got no answer", fmt.Sprintf("packets FILE --from %s --to %s", since(longest.From, j), since(longest.To.Or(j.end), j))},
	}}
}

// since returns a time as an argument of --from and --to.
func since(t record.Time, j *facts) string {
	return fmt.Sprintf("%.6f", float64(t.Sub(j.s.First.Or(t)))/1e9)
}

// isServer and isClient report whether a host is an end of a group of connections.
func (j *facts) isServer(address string) bool {
	return slices.ContainsFunc(j.o.Groups, func(g Group) bool { return g.ClientsKnown > 0 && g.Server.Or("") == address })
}

func (j *facts) isClient(address string) bool {
	return slices.ContainsFunc(j.o.Groups, func(g Group) bool { return g.ClientsKnown > 0 && g.Client.Or("") == address })
}

// lostReplies is for Replies that did not reach the client: the server had executed the Calls that the client retransmitted, and
// retransmissions were not acknowledged. That does not prove that the server had sent the Replies. A connection that a NAK ended
// lacks Replies for that reason.
func lostReplies(j *facts) said {
	if j.repeats == 0 || j.nakEnds > 0 || j.o.Time.Unanswered.Stalled == 0 {
		return said{}
	}
	return said{
		Unproven,
		[]Place{InNetwork, InServer},
		fmt.Sprintf("Replies did not reach the client, which retransmitted %s that the server had executed: the server or the network", plural(j.repeats, "Call")),
		[]Evidence{{plural(j.repeats, "RPC") + " that the server had executed before", "FILE -Y 'status == NFS4ERR_RETRY_UNCACHED_REP'"}},
	}
}

// rejectedEvidence shows the connections that servers rejected.
func rejectedEvidence(n int) []Evidence {
	return []Evidence{{plural(int64(n), "connection") + " rejected by the server", "connections FILE -Y 'ended.how == rejected'"}}
}

// rejected is for connections that the server rejected for good.
func rejected(j *facts) said {
	list := j.repairs.rejected
	if len(list) == 0 {
		return said{}
	}
	first := list[0]
	text := plural(int64(len(list)), "connection") + " rejected: " + first.reason
	if slices.ContainsFunc(list, func(h handshake) bool { return h.reason != first.reason }) {
		text += " and others"
	}
	text += "; none accepted afterwards"
	clients := map[string]bool{}
	for _, h := range list {
		clients[h.client] = true
	}
	if j.severalClients() && len(clients) == 1 && first.client != "" {
		text += " (client " + first.client + ")"
	}
	where := InServer
	if first.reason == "invalid service ID" && !slices.ContainsFunc(j.accepted, func(a handshake) bool { return a.server == first.server && a.port == first.port }) {
		where = InConfiguration // Nothing serves this port, and the capture does not show that anything ever did.
	}
	return said{where, nil, text, rejectedEvidence(len(list))}
}

// rejectedStale is for connections that the server rejected because earlier messages were lost. It does not say who lost
// them.
func rejectedStale(j *facts) said {
	n := len(j.repairs.stale)
	if n == 0 {
		return said{}
	}
	return said{
		Unproven,
		[]Place{InNetwork, InClient, InServer},
		fmt.Sprintf("%s rejected: %s, which follows from the loss of earlier messages; none accepted afterwards", plural(int64(n), "connection"), j.repairs.stale[0].reason), rejectedEvidence(n),
	}
}

// rejectedThenAccepted counts the rejections that were made good.
func rejectedThenAccepted(j *facts) said {
	if j.repairs.repaired == 0 || len(j.restarts) > 0 {
		return said{}
	}
	return said{Unproven, nil, j.acceptedLater(), rejectedEvidence(int(j.repairs.repaired))}
}

// acceptedLater says when the server accepted the clients that it had rejected.
func (j *facts) acceptedLater() string {
	r := &j.repairs
	text := plural(r.repaired, "connection") + " rejected, accepted " + short(r.most) + " later"
	if short(r.least) != short(r.most) {
		text = plural(r.repaired, "connection") + " rejected, accepted " + short(r.least) + " to " + short(r.most) + " later"
	}
	if r.port != 0 {
		text += fmt.Sprintf(" on port %d", r.port)
	}
	return text
}

// unansweredRequest is for requests to open a connection that got no answer.
func unansweredRequest(j *facts) said {
	n := j.o.Health.UnansweredRequests
	if n == 0 || j.oneWay != "" {
		return said{}
	}
	return said{
		Unproven,
		[]Place{InServer, InNetwork},
		plural(n, "connection request") + " without an answer in the capture; the server or the network",
		[]Evidence{{plural(n, "connection request") + " without an answer", "connections FILE -Y 'established == null and ended == null'"}},
	}
}

// stall returns the share of the latencies that RPCs stalled because of retransmissions.
func (j *facts) stall() float64 {
	return float64(j.o.Time.StalledByRetransmission()) / float64(max(j.o.Time.TotalNS, 1))
}

// retransmissionsMatter reports whether retransmissions delayed anything, or are many. Those in a silence delayed nothing
// that the silence did not delay.
func (j *facts) retransmissionsMatter() bool {
	h := &j.o.Health
	if slices.ContainsFunc(j.o.Traffic, func(t Traffic) bool { return t.Stalled > 0 }) {
		return true
	}
	share := j.stall()
	if len(j.silences) > 0 {
		return share >= stalledShare
	}
	return share >= stalledShare || j.o.Time.Unanswered.Stalled > 0 || float64(h.Retransmitted) >= repeatedShare*float64(h.Packets) && h.Retransmitted > 1
}

// networkLost reports whether the capture proves that the network, or an adapter, lost, damaged or reordered packets. A
// retransmission does not prove that: only a bad checksum, a gap that the capture or a NAK shows, or a second point does.
func (j *facts) networkLost() bool {
	n := sumNetwork(j.o.Network)
	if n.Lost+n.Corrupted > 0 {
		return true
	}
	h := &j.o.Health
	if j.o.Network != nil && n.Unknown == 0 { // All packets arrived, perhaps in another order.
		return n.Reordered > 0 && h.OutOfOrder+j.sequenceNaks() > 0
	}
	return h.Damaged+h.OutOfOrder+j.sequenceNaks() > 0
}

// sequenceNaks returns the number of NAKs that did not end a connection.
func (j *facts) sequenceNaks() int64 { return j.o.Health.Naks - min(j.o.Health.Naks, j.nakEnds) }

// lost is for a network that lost, reordered or corrupted packets, which were retransmitted.
func lost(j *facts) said {
	if !j.matters || j.o.Health.Retransmitted == 0 || !j.networkLost() {
		return said{}
	}
	return j.transport(InNetwork)
}

// retransmitted counts retransmissions without proof of loss, or without harm.
func retransmitted(j *facts) said {
	if j.o.Health.Retransmitted == 0 || j.matters && j.networkLost() {
		return said{}
	}
	x := j.transport(Unproven)
	x.possible = []Place{InNetwork, InClient, InServer}
	return x
}

// transport says what happened to packets.
func (j *facts) transport(where Place) said {
	h, n := &j.o.Health, sumNetwork(j.o.Network)
	var evidence []Evidence
	var parts []string
	if n.Lost+n.Corrupted > 0 {
		fact := fmt.Sprintf("%s lost and %d damaged between the capture points", plural(n.Lost, "packet"), n.Corrupted)
		switch {
		case n.Corrupted == 0:
			fact = plural(n.Lost, "packet") + " lost between the capture points"
		case n.Lost == 0:
			fact = plural(n.Corrupted, "packet") + " damaged between the capture points"
		}
		parts, evidence = append(parts, fact), append(evidence, Evidence{fact, "network FILE --lost"})
	}
	if n.Reordered > 0 {
		fact := plural(n.Reordered, "packet") + " reordered between the capture points"
		parts, evidence = append(parts, fact), append(evidence, Evidence{fact, "network FILE"})
	}
	again := fmt.Sprintf("%d of %s retransmitted", h.Retransmitted, plural(h.Packets, "packet"))
	parts = append(parts, again)
	evidence = append(evidence, Evidence{again, "packets FILE -Y 'marks == retransmitted'"})
	add := func(n int64, fact, mark string) {
		if n > 0 {
			parts = append(parts, fact)
			evidence = append(evidence, Evidence{fact, "packets FILE -Y 'marks == " + mark + "'"})
		}
	}
	add(j.sequenceNaks(), plural(j.sequenceNaks(), "NAK"), "refused")
	if n.Corrupted == 0 { // Otherwise the damaged packets are among those between the points.
		add(h.Damaged, fmt.Sprintf("%d damaged", h.Damaged), "bad_icrc")
	}
	add(h.OutOfOrder, fmt.Sprintf("%d out of order", h.OutOfOrder), "out_of_order")
	text := strings.Join(parts, ", ")
	if share := j.stall(); share >= 0.005 {
		text += fmt.Sprintf("; %.0f%% of the latency stalled until a retransmission", share*100)
		evidence = append(evidence, Evidence{"RPCs stalled until a retransmission", "FILE -Y 'waits.reason contains retransmit'"})
	}
	if x := trafficText(j); x.text != "" {
		text += "; " + x.text
		evidence = append(evidence, x.evidence...)
	}
	return said{where, nil, text, evidence}
}

// trafficStalled counts the operations of other upper layers that stalled without a retransmission that is counted.
func trafficStalled(j *facts) said {
	if j.o.Health.Retransmitted > 0 {
		return said{}
	}
	return trafficText(j)
}

// trafficText says how long operations of other upper layers stalled.
func trafficText(j *facts) (x said) {
	x.where = Unproven
	for _, t := range j.o.Traffic {
		if t.Stalled == 0 {
			continue
		}
		if x.text != "" {
			x.text += "; "
		}
		layer := t.UpperLayer
		if layer == "unknown" {
			layer = "an unknown upper layer"
		}
		x.text += fmt.Sprintf("%s of %s stalled for %s", plural(t.Stalled, "RDMA operation"), layer, seconds(t.TotalNS))
		if t.Stalled > 1 {
			x.text += " in total"
		}
		x.evidence = []Evidence{{"RDMA operations stalled until a retransmission", "rdma FILE -Y 'stalled > 0' --sort -stalled"}}
	}
	return x
}

// sumNetwork sums up what happened between capture points.
func sumNetwork(list []*record.Network) (sum record.Network) {
	for _, n := range list {
		sum.Lost += n.Lost
		sum.Corrupted += n.Corrupted
		sum.Unknown += n.Unknown
		sum.Reordered += n.Reordered
	}
	return sum
}

// noBuffers is for a side that has no receive buffers.
func noBuffers(j *facts) said {
	if j.o.Health.RNRNaks == 0 {
		return said{}
	}
	for _, side := range []record.End{record.Server, record.Client} {
		if ns := j.rnr[side]; float64(ns) >= stalledShare*float64(max(j.o.Time.TotalNS, 1)) && ns > 0 {
			return said{
				Place(side), nil, fmt.Sprintf("it had no receive buffers: %s, and RPCs stalled for %s", plural(j.o.Health.RNRNaks, "RNR NAK"), seconds(ns)),
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
	return said{
		InConfiguration, nil, fmt.Sprintf("few credits: all %d of connection %d were in use, and Calls waited for %s", c.Granted.Or(0), c.Connection, seconds(j.o.Time.CreditsNS)),
		[]Evidence{{"all credits in use", fmt.Sprintf("connections FILE --conn %d --timeline", c.Connection)}, {"Calls waited for a credit", "FILE -Y 'waits.reason == credit_limit'"}},
	}
}

// damaged is for damaged packets that are not counted with retransmissions.
func damaged(j *facts) said {
	if n := j.o.Health.Damaged; n > 0 && j.o.Health.Retransmitted == 0 {
		return said{InNetwork, nil, plural(n, "packet") + " damaged", []Evidence{{plural(n, "packet") + " with a bad checksum", "packets FILE -Y 'marks in {bad_icrc, bad_checksum}'"}}}
	}
	return said{}
}

// congested is for a network that marked packets.
func congested(j *facts) said {
	h := &j.o.Health
	if h.CongestionMarks+h.CNPs == 0 {
		return said{}
	}
	way := ""
	switch to, back := j.congestedTo[record.Server], j.congestedTo[record.Client]; {
	case to > 0 && back > 0:
		way = " on both ways"
	case to > 0:
		way = " on the way to the server"
	case back > 0:
		way = " on the way to the client"
	}
	var parts []string
	if h.CongestionMarks > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s marked (CE)", h.CongestionMarks, plural(h.Packets, "packet")))
	}
	if h.CNPs > 0 {
		parts = append(parts, plural(h.CNPs, "CNP"))
	}
	if n := j.congestedRPCs; n > 0 {
		parts = append(parts, "during "+plural(n, "RPC"))
	}
	return said{InNetwork, nil, "congestion" + way + ": " + strings.Join(parts, ", "), []Evidence{{"the network signalled congestion", "check FILE -Y 'rule == congestion'"}}}
}

// endings are the causes of the ends of connections.
var endings = map[record.Ending]string{
	record.EndDisconnect: "disconnect", record.EndReset: "reset", record.EndNak: "NAK", record.EndTerminate: "Terminate",
	record.EndRetries: "retransmissions never acknowledged", record.EndSilence: "retransmissions never acknowledged", record.EndReused: "queue pair used again",
}

// endedConnections counts the connections that ended with outstanding Calls, or not in an orderly way.
func endedConnections(j *facts) said {
	var parts []string
	calls, n := int64(0), int64(0)
	for _, e := range j.o.Ended {
		if e.How == record.EndRejected {
			continue
		}
		if n += e.Count; e.OutstandingCalls == 0 { // TCP connections of RPC without RDMA often end with a reset.
			n -= e.plain
		}
		if e.OutstandingCalls == 0 && e.plain == e.Count {
			continue
		}
		calls += e.OutstandingCalls
		if text := endings[e.How]; !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	if n == 0 {
		return said{}
	}
	text := fmt.Sprintf("%s ended (%s)", plural(n, "connection"), strings.Join(parts, ", "))
	if calls > 0 {
		text += " with " + plural(calls, "Call") + " in flight"
	}
	return said{Unproven, []Place{InNetwork, InClient, InServer}, text, []Evidence{{plural(n, "connection") + " ended", "connections FILE -Y 'ended != null'"}}}
}

// neverAnswered counts the RPCs that were never answered.
func neverAnswered(j *facts) said {
	n := j.counts.Unanswered
	if n == 0 {
		return said{}
	}
	text := plural(n, "RPC") + " never answered"
	switch sent := j.outcomes.sent; {
	case sent == n:
		text = plural(n, "RPC") + " whose Reply was sent, and is not known to be accepted"
	case sent > 0:
		text = fmt.Sprintf("%s without a Reply that is known to be accepted (that of %d was sent)", plural(n, "RPC"), sent)
	}
	return said{
		Unproven,
		[]Place{InNetwork, InClient, InServer},
		text + j.which(func(t *tally) int64 { return t.unanswered }),
		[]Evidence{{text, "FILE -Y 'status == no_reply'"}},
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
		fmt.Sprintf("%s answered more than 1s after the server had the Call, the slowest %s after %s: the server, or the way back", plural(l.count, "RPC"), l.name, seconds(l.longest)),
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
				fmt.Sprintf("%.0f%% of the latency: %s waited %s for transfers on the same connection", share*100, plural(w.RPCs, "RPC"), seconds(w.TotalNS)),
				[]Evidence{{"RPCs waited while their connection was busy", "FILE -Y 'waits.reason == head_of_line'"}},
			}
		}
	}
	return said{}
}

// slowServer is for a server that took most of the latency, as the capture proves.
func slowServer(j *facts) said {
	t := &j.o.Time
	if j.longest < slowLatency || t.TotalNS == 0 || float64(t.Shares.ServerMinNS) < unknownShare*float64(t.TotalNS) {
		return said{}
	}
	proof := "as the capture proves"
	switch {
	case j.o.Points != nil:
		proof = "seen at both ends"
	case slices.ContainsFunc(j.places, func(x placed) bool { return x.place == record.AtServer && !x.refuted }):
		proof = "captured at the server"
		if slices.ContainsFunc(j.places, func(x placed) bool { return x.place == record.AtServer && x.how == "option" }) {
			proof += ", as --at says"
		}
	}
	text := fmt.Sprintf("the server took at least %.0f%% of the latency (%s of %s; %s)", float64(t.Shares.ServerMinNS)*100/float64(t.TotalNS), seconds(t.Shares.ServerMinNS), seconds(t.TotalNS), proof)
	return said{InServer, nil, text, []Evidence{{"where the latency of each operation passed", "stats FILE"}}}
}

// shareUnknown says how much of the latency may be the server's or the network's, if that is most of it and no capture
// points tell the two apart.
func shareUnknown(j *facts) said {
	t := &j.o.Time
	ns, least := t.Shares.ServerMaxNS, t.Shares.ServerMinNS
	if j.o.Points != nil || slowServer(j).text != "" || j.longest < slowLatency || t.TotalNS == 0 || float64(ns) < unknownShare*float64(t.TotalNS) {
		return said{}
	}
	text := fmt.Sprintf("up to %.0f%% of the latency (%s) is the server's, or the network's", float64(ns)*100/float64(t.TotalNS), seconds(ns))
	if percent := float64(least) * 100 / float64(t.TotalNS); percent >= 1 {
		text += fmt.Sprintf("; at least %.0f%% (%s) the server's", percent, seconds(least))
	}
	return said{Unproven, []Place{InServer, InNetwork}, text, []Evidence{{"where the latency of each operation passed", "stats FILE"}}}
}

// failed counts the RPCs with an error status.
func failed(j *facts) said {
	n := &j.o.RPCs
	if n.Failed == 0 {
		return said{}
	}
	const shown = 4
	var parts []string
	for _, s := range n.Statuses[:min(len(n.Statuses), shown)] {
		parts = append(parts, fmt.Sprintf("%d %s", s.Count, s.Status))
	}
	if len(n.Statuses) > shown {
		parts = append(parts, "and others")
	}
	command := "FILE -Y 'status != ok'"
	if len(n.Statuses) == 1 {
		command = "FILE -Y 'status == " + n.Statuses[0].Status + "'"
		if n.NoCall > 0 && strings.HasPrefix(n.Statuses[0].Status, "NFS") { // The status of a Reply without a Call is no_call.
			command = "FILE -Y 'nfs_status == " + n.Statuses[0].Status + "'"
		}
	}
	return said{
		Unproven, nil, fmt.Sprintf("%d of %s failed (%s)%s", n.Failed, plural(j.total(), "RPC"), strings.Join(parts, ", "), j.which(func(t *tally) int64 { return t.failed })),
		[]Evidence{{plural(n.Failed, "RPC") + " with an error status", command}},
	}
}

// errorsFound counts the errors of the protocol that do not prove by themselves which side is at fault.
func errorsFound(j *facts) said {
	proven := map[string]bool{}
	for k := range j.faults {
		proven[k.rule] = true
	}
	n := int64(0)
	var rules []string
	for _, f := range j.o.Findings {
		if f.Severity == record.Error && !proven[f.Rule] {
			n += f.Count
			rules = append(rules, f.Rule)
		}
	}
	if n == 0 {
		return said{}
	}
	return said{Unproven, nil, fmt.Sprintf("%s without proof of which side is at fault (%s)", plural(n, "error"), strings.Join(rules[:min(len(rules), 3)], ", ")), []Evidence{{plural(n, "finding") + " of severity error", "check FILE -Y 'severity == error'"}}}
}

// outOfOrder counts packets that are not counted with retransmissions.
func outOfOrder(j *facts) said {
	if n := j.o.Health.OutOfOrder; n > 0 && j.o.Health.Retransmitted == 0 {
		return said{Unproven, []Place{InNetwork}, plural(n, "packet") + " out of order", []Evidence{{plural(n, "packet") + " out of order", "packets FILE -Y 'marks == out_of_order'"}}}
	}
	return said{}
}

// refused counts the NAKs that are not counted with retransmissions.
func refused(j *facts) said {
	h := &j.o.Health
	var parts []string
	if n := j.sequenceNaks(); n > 0 && h.Retransmitted == 0 {
		parts = append(parts, plural(n, "NAK"))
	}
	if h.RNRNaks > 0 && noBuffers(j).text == "" {
		parts = append(parts, plural(h.RNRNaks, "RNR NAK"))
	}
	if parts == nil {
		return said{}
	}
	text := strings.Join(parts, " and ")
	return said{Unproven, []Place{InNetwork, InClient, InServer}, text, []Evidence{{text, "packets FILE -Y 'marks == refused'"}}}
}

// paused counts PFC frames.
func paused(j *facts) said {
	n := j.counts.Pauses
	if n == 0 {
		return said{}
	}
	text, possible := plural(n, "PFC pause"), []Place{InNetwork, InClient, InServer}
	if len(j.s.PausePorts) == 1 {
		switch address, known := j.s.PausePorts[0].Address.Get(); {
		case !known:
			text += " of a port that is no known host's"
		case j.isServer(address) && !j.isClient(address):
			text, possible = text+" of the server "+address+", which could not receive more", []Place{InServer}
		case j.isClient(address) && !j.isServer(address):
			text, possible = text+" of the client "+address+", which could not receive more", []Place{InClient}
		}
	}
	if ns, known := j.s.PausedNS.Get(); known && j.suspicion.span == nil {
		text += fmt.Sprintf("; links were paused for %s to %s", short(ns.Min), short(ns.Max))
	}
	return said{Unproven, possible, text, []Evidence{{plural(n, "PFC pause"), "stats FILE --every 1s"}}}
}

// answeredAgain counts the Calls whose later copies were answered.
func answeredAgain(j *facts) said {
	n := j.outcomes.repaired
	if n == 0 {
		return said{}
	}
	text := fmt.Sprintf("%d copies of Calls got no Reply, another copy of each did", n)
	if n == 1 {
		text = "1 copy of a Call got no Reply, another copy of it did"
	}
	return said{Unproven, nil, text, []Evidence{{text, "FILE -Y 'status == no_reply'"}}}
}

// ranges counts the latencies that are upper bounds.
func ranges(j *facts) said {
	if j.ranges == 0 {
		return said{}
	}
	text := plural(j.ranges, "latency") + " are upper bounds"
	if j.ranges == 1 {
		text = "1 latency is an upper bound"
	}
	return said{Unproven, nil, text, []Evidence{{text, "FILE -Y 'latency_min_ns != null'"}}}
}

// outstanding counts the RPCs that had no Reply when the capture ended, which it did before their connections.
func outstanding(j *facts) said {
	n := j.outcomes.outstanding
	if n == 0 || j.oneWay != "" {
		return said{}
	}
	text := plural(n, "RPC") + " without a Reply up to the end of the capture"
	if ns := j.end.Sub(j.outcomes.since); j.end != 0 && ns >= int64(time.Second) {
		text += fmt.Sprintf(" (%s after the first)", seconds(ns))
	}
	return said{Unproven, nil, text, []Evidence{{text, "FILE -Y 'status == no_reply'"}}}
}

// replyUnknown counts the RPCs whose Replies the capture may lack.
func replyUnknown(j *facts) said {
	n := j.outcomes.unknown
	if n == 0 || j.oneWay != "" {
		return said{}
	}
	text := fmt.Sprintf("%s whose Replies may not have been captured", plural(n, "RPC"))
	if n == 1 {
		text = "1 RPC whose Reply may not have been captured"
	}
	return said{Unproven, nil, text, []Evidence{{text, "FILE -Y 'status == no_reply'"}}}
}

// replyTruncated counts the Replies that do not show whether the RPC succeeded.
func replyTruncated(j *facts) said {
	n := j.o.RPCs.Answered
	if n == 0 {
		return said{}
	}
	text := plural(n, "Reply") + " captured too short to say whether the RPC succeeded"
	return said{Unproven, nil, text, []Evidence{{text, "FILE -Y 'status == answered'"}}}
}

// noCall counts the Replies whose Calls are not in the capture.
func noCall(j *facts) said {
	n := j.o.RPCs.NoCall
	if n == 0 || j.oneWay != "" {
		return said{}
	}
	text := plural(n, "Reply") + " without a Call in the capture"
	return said{Unproven, nil, text, []Evidence{{text, "FILE -Y 'status == no_call'"}}}
}

// incomplete says what the capture lacks.
func incomplete(j *facts) said {
	var parts []string
	for _, x := range []struct {
		n    int64
		text string
	}{
		{j.missing(), " not captured"},
		{int64(j.s.CaptureDrops), " dropped by the capturing program"},
		{j.s.Truncated, " truncated"},
	} {
		if x.n > 0 {
			parts = append(parts, plural(x.n, "packet")+x.text)
		}
	}
	if n := j.s.OneWay; n > 0 && j.oneWay == "" {
		parts = append(parts, "the packets of only one of both hosts for "+plural(n, "pair")+" of hosts")
	}
	if n := j.s.TimeBackwards; n > 0 && !j.unordered() {
		parts = append(parts, plural(n, "packet")+" with a time before that of the packet before (reordercap sorts them)")
	}
	text := ""
	if parts != nil {
		text = "the capture is incomplete: " + strings.Join(parts, ", ")
	}
	if n := j.s.Malformed; n > 0 { // They are in the capture, but what they say is not known.
		if text != "" {
			text += "; "
		}
		text += plural(n, "packet") + " with headers that cannot be decoded"
	}
	return said{Unproven, nil, text, []Evidence{{"the capture is incomplete, or has damaged headers", "connections FILE"}}}
}

// missing returns the number of packets that are missing, or 0 if that is said first.
func (j *facts) missing() int64 {
	if j.unordered() || notCaptured(j).text != "" {
		return 0
	}
	return j.o.Health.NotCaptured
}

// doubled is for a capture that has packets twice.
func doubled(j *facts) said {
	n := j.s.Doubled
	if n == 0 || j.s.Packets == 0 || n*doubledShare < j.s.Packets {
		return said{}
	}
	text := fmt.Sprintf("%d of %s are second copies, as a mirror of both ports makes them, and were left out", n, plural(j.s.Packets, "packet"))
	return said{Unproven, nil, text, []Evidence{{text, "packets FILE -Y 'marks == duplicated'"}}}
}

// partOnly is for a capture that has only a part of its connections.
func partOnly(j *facts) said {
	starts, ends := j.o.Health.StartsNotCaptured, j.o.Health.EndsNotCaptured
	if j.s.RDMA+j.s.RPC == 0 || starts+ends == 0 {
		return said{}
	}
	of := func(part string, n int64) string {
		if n > 1 {
			part += "s"
		}
		return "the " + part + " of " + plural(n, "connection")
	}
	text, verb := of("handshake", starts), " are"
	switch {
	case starts > 0 && ends > 0:
		text += " and " + of("end", ends)
	case starts+ends == 1:
		verb = " is"
	}
	if starts == 0 {
		text = of("end", ends)
	}
	text += verb + " not in the capture"
	if j.cutOff {
		text += ", or not in this time"
	}
	return said{Unproven, nil, text, []Evidence{{text, "connections FILE"}}}
}

// endsEarly is for an input that could not be read to its end.
func endsEarly(j *facts) said {
	problem, known := j.s.InputError.Get()
	if !known || !j.suspicion.overlaps(j.end, j.end) {
		return said{}
	}
	text := "the input is damaged, and what came later is unknown: " + problem
	if at, inside := j.s.EndsInPacket.Get(); inside {
		text = fmt.Sprintf("the file ends in the middle of packet %d (byte %d): what came later is unknown", j.s.Packets+1, at)
	}
	return said{Unproven, nil, text, []Evidence{{"packets before the damage", "packets FILE"}}}
}

// plural returns a number with its noun.
var plural = record.Plural[int64]

// seconds returns a duration in words, with the same precision as tables.
func seconds(ns int64) string {
	precision := 10 * time.Microsecond
	if ns >= int64(time.Second) {
		precision = time.Millisecond
	}
	return time.Duration(ns).Round(precision).String()
}

// short returns a duration in words, with three digits.
func short(ns int64) string {
	precision := time.Microsecond
	switch {
	case ns >= int64(time.Second):
		precision = 10 * time.Millisecond
	case ns >= int64(time.Millisecond):
		precision = time.Millisecond
	}
	return time.Duration(ns).Round(precision).String()
}
