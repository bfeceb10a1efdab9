package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// What happened to packets: losses, retransmissions, damage, congestion, NAKs and pauses.

// sound reports whether nothing happened to any packet.
func (j *facts) sound() bool {
	c, n := &j.counts, SumNetwork(j.o.Network)
	return n.Lost+n.InQuiet()+n.Corrupted+n.Changed+n.Duplicated == 0 && c.Retransmitted+c.OutOfOrder+c.Refused+c.Damaged+c.CE+c.CNP+c.Pauses == 0
}

// stall returns the share of the latencies that RPCs stalled because of retransmissions.
func (j *facts) stall() float64 {
	return float64(j.o.Time.StalledByRetransmission()) / float64(max(j.o.Time.TotalNS, 1))
}

// stalled says for which part of the total latency RPCs stalled because of retransmissions.
func (j *facts) stalled() string {
	return fmt.Sprintf("RPCs stalled for %.0f%% of %s until %s", j.stall()*100, j.total(), j.stallsEnd())
}

// total names what the shares of a verdict are shares of.
func (j *facts) total() string { return "the total latency (" + j.sum() + ")" }

// sum returns the sum of all latencies in words.
func (j *facts) sum() string {
	sum := field.Duration(j.o.Time.TotalNS)
	if j.o.Time.UpperBounds > 0 {
		return "at most " + sum
	}
	return sum
}

// stallsEnd says what ended the stalls because of retransmissions.
func (j *facts) stallsEnd() string {
	all, reconnected := j.o.Time.StalledByRetransmission(), int64(0)
	for _, w := range j.o.Time.Waits {
		if w.Reason == record.NewConnection {
			reconnected = w.TotalNS
		}
	}
	const copies = "Calls were retransmitted on a new connection"
	switch share := float64(reconnected) / float64(max(j.o.Time.TotalNS, 1)); {
	case reconnected == all && all > 0:
		return copies
	case share >= 0.005:
		return fmt.Sprintf("a retransmission, including %.0f%% until %s", share*100, copies)
	}
	return "a retransmission"
}

// reconnected is for RPCs that stalled until their Calls were retransmitted on a new connection, if no packet was retransmitted
// that is counted. It does not say why the client left the old connection.
func reconnected(j *facts) said {
	if j.o.Health.Retransmitted > 0 || j.stall() < stalledShare {
		return said{}
	}
	text := j.stalled()
	return said{Unproven, []Place{InNetwork, InClient, InServer}, text, []Evidence{{"RPCs stalled until a retransmission", "FILE -Y 'waits.reason == new_connection or waits.reason contains retransmit'"}}}
}

// retransmissionsMatter reports whether retransmissions delayed anything, or are many. Those in a silence delayed nothing
// that the silence did not delay.
func (j *facts) retransmissionsMatter() bool {
	h := &j.o.Health
	if slices.ContainsFunc(j.o.Traffic, func(t Traffic) bool { return t.Stalled > 0 }) {
		return true
	}
	share := j.stall()
	if slices.ContainsFunc(j.silences, func(x record.Silence) bool { return x.Lost.Or(0) < x.Packets }) {
		return share >= stalledShare
	}
	return share >= stalledShare || j.o.Time.Unanswered.Stalled > 0 || float64(h.Retransmitted) >= repeatedShare*float64(h.Packets) && h.Retransmitted > 1
}

// networkLost reports whether the capture proves that the network, or an adapter, lost, damaged or reordered packets. A
// retransmission does not prove that: only a bad checksum, a gap that the capture or a NAK shows, or a second point does.
func (j *facts) networkLost() bool {
	n := SumNetwork(j.o.Network)
	switch known := n.Lost + n.Corrupted; {
	case n.InQuiet() > known: // Most of what was retransmitted may be due to a host that was down.
		return false
	case known > 0:
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

// lostLittle counts retransmissions of packets that are proven to be lost, without harm.
func lostLittle(j *facts) said {
	if j.o.Health.Retransmitted == 0 || j.matters || !j.networkLost() {
		return said{}
	}
	x := j.transport(Unproven)
	x.possible = []Place{InNetwork, InClient, InServer}
	return x
}

// retransmitted counts retransmissions without proof of loss.
func retransmitted(j *facts) said {
	if j.o.Health.Retransmitted == 0 || j.networkLost() {
		return said{}
	}
	x := j.transport(Unproven)
	x.possible = []Place{InNetwork, InClient, InServer}
	return x
}

// lostUnnoticed counts packets that were lost between capture points, and that nobody had to retransmit.
func lostUnnoticed(j *facts) said {
	n := SumNetwork(j.o.Network)
	if j.o.Health.Damaged > 0 { // They are said to be damaged.
		n.Corrupted = 0
	}
	if j.o.Health.Retransmitted > 0 || n.Lost+n.Corrupted == 0 {
		return said{}
	}
	fact := j.lostBetween(&n)
	return said{Unproven, []Place{InNetwork}, fact, []Evidence{{fact, "network FILE --lost"}}}
}

// networkCopies counts the packets that arrived more often than they were sent.
func networkCopies(j *facts) said {
	n := SumNetwork(j.o.Network).Duplicated
	if n == 0 {
		return said{}
	}
	text := fmt.Sprintf("the network made %d additional copies of packets", n)
	if n == 1 {
		text = "the network made 1 additional copy of a packet"
	}
	return said{Unproven, []Place{InNetwork}, text, []Evidence{{text, "network FILE"}}}
}

// lostInQuiet is for packets to a host whose capture has no packet at all in that time: it was down, or the network lost them. If it
// restarted in that time, that explains them.
func lostInQuiet(j *facts) (x said) {
	restarted := true
	var lost int64
	for _, n := range j.o.Network {
		var times []record.QuietTime
		for _, t := range n.Quiet {
			if j.suspicion.overlaps(t.From, t.To) {
				times = append(times, t)
			}
		}
		if len(times) == 0 {
			continue
		}
		to := n.To
		if i := slices.IndexFunc(j.o.Points, func(p *record.Point) bool { return p.Name == n.To }); i >= 0 {
			to = j.o.Points[i].Address.Or(to)
		}
		of := record.Network{Quiet: times}
		longest := slices.MaxFunc(times, func(a, b record.QuietTime) int { return cmp.Compare(a.To.Sub(a.From), b.To.Sub(b.From)) })
		when := fmt.Sprintf("from %s to %s", j.at(longest.From), j.at(longest.To))
		if len(times) > 1 {
			when = fmt.Sprintf("at %d times, the longest %s", len(times), when)
		}
		restarted = restarted && !slices.ContainsFunc(times, func(t record.QuietTime) bool {
			return !slices.ContainsFunc(j.restarts, func(r Restart) bool { return r.Address == to && r.From <= t.To && r.To >= t.From })
		})
		if x.text != "" {
			x.text += "; "
		}
		lost += of.InQuiet()
		x.text += fmt.Sprintf("%s did not reach %s while its capture has no packet at all (%s)", plural(of.InQuiet(), "packet"), to, when)
	}
	switch {
	case x.text == "":
		return x
	case restarted:
		x.where = Place(j.restarts[0].Role)
	default:
		x.where, x.possible = Unproven, []Place{InNetwork, InServer, InClient}
		x.text += ": the network, or the host was down"
		if j.stall() >= 0.005 && j.networkLost() {
			x.text += "; " + j.stalled()
		}
	}
	x.evidence = []Evidence{{plural(lost, "packet") + " that did not arrive", "network FILE --lost"}}
	return x
}

// lostBetween says how many packets were lost or damaged between the capture points.
func (j *facts) lostBetween(n *record.Network) string {
	switch {
	case n.Corrupted == 0:
		return plural(n.Lost, "packet") + " lost" + j.between()
	case n.Lost == 0:
		return plural(n.Corrupted, "packet") + " damaged" + j.between()
	}
	return fmt.Sprintf("%s lost and %d damaged%s", plural(n.Lost, "packet"), n.Corrupted, j.between())
}

// between is where packets were lost. If the overview is about a part of the capture, they are not only those of the part.
func (j *facts) between() string {
	if j.part {
		return " between the capture points during the whole capture"
	}
	return " between the capture points"
}

// transport says what happened to packets.
func (j *facts) transport(where Place) said {
	h, n := &j.o.Health, SumNetwork(j.o.Network)
	var evidence []Evidence
	var parts []string
	add := func(n int64, fact, command string) {
		if n > 0 {
			parts, evidence = append(parts, fact), append(evidence, Evidence{fact, command})
		}
	}
	add(n.Lost+n.Corrupted, j.lostBetween(&n), "network FILE --lost")
	add(n.Reordered, plural(n.Reordered, "packet")+" reordered"+j.between(), "network FILE")
	add(h.Retransmitted, fmt.Sprintf("%d of %s retransmitted", h.Retransmitted, plural(h.Packets, "packet")), "packets FILE -Y 'marks == retransmitted'")
	add(j.sequenceNaks(), plural(j.sequenceNaks(), "NAK"), "packets FILE -Y 'marks == refused'")
	if n.Corrupted == 0 { // Otherwise the damaged packets are among those between the points.
		add(h.Damaged, fmt.Sprintf("%d damaged", h.Damaged), "packets FILE -Y 'marks == bad_icrc'")
	}
	add(h.OutOfOrder, fmt.Sprintf("%d out of order", h.OutOfOrder), "packets FILE -Y 'marks == out_of_order'")
	text := strings.Join(parts, ", ")
	if j.stall() >= 0.005 && (where != InNetwork || n.InQuiet() == 0) { // Otherwise a host that was down may be the reason.
		text += "; " + j.stalled()
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
		x.text += fmt.Sprintf("%s of %s stalled for %s", plural(t.Stalled, "RDMA operation"), layer, field.Duration(t.TotalNS))
		if t.Stalled > 1 {
			x.text += " in total"
		}
		x.evidence = []Evidence{{"RDMA operations stalled until a retransmission", "rdma FILE -Y 'stalled > 0' --sort -stalled"}}
	}
	return x
}

// SumNetwork sums up what happened between capture points. Packets that were lost in quiet times do not count as lost, because
// the host at the other point may have been down.
func SumNetwork(list []*record.Network) (sum record.Network) {
	for _, n := range list {
		sum.Lost += n.Lost - n.InQuiet()
		sum.Quiet = append(sum.Quiet, n.Quiet...)
		sum.Corrupted += n.Corrupted - n.Changed
		sum.Changed += n.Changed
		sum.Unknown += n.Unknown
		sum.Reordered += n.Reordered
		sum.Duplicated += n.Duplicated
		sum.NotCaptured += n.NotCaptured
	}
	return sum
}

// changedOnPath is the id of the rule about segments that were changed.
const changedOnPath = "changed-on-path"

// changed is for TCP segments whose payload and checksum were changed between the capture points.
func changed(j *facts) said {
	n := SumNetwork(j.o.Network).Changed
	if n == 0 {
		return said{}
	}
	text := fmt.Sprintf("%d TCP segments were changed between the capture points, and have right checksums, so that their receivers took them", n)
	if n == 1 {
		text = "1 TCP segment was changed between the capture points, and has a right checksum, so that its receiver took it"
	}
	return said{InNetwork, nil, text, []Evidence{{text, "FILE -Y 'findings == \"" + changedOnPath + "\"'"}}}
}

// damaged is for damaged packets that are not counted with retransmissions.
func damaged(j *facts) said {
	if n := j.o.Health.Damaged; n > SumNetwork(j.o.Network).Changed && j.o.Health.Retransmitted == 0 {
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
		address, known := j.s.PausePorts[0].Address.Get()
		if role := j.roleOf(address); !known {
			text += " of a port that is no known host's"
		} else if role != "" {
			text, possible = text+" of the "+string(role)+" "+address+", which could not receive more", []Place{role}
		}
	}
	if ns, known := j.s.PausedNS.Get(); known && j.suspicion.span == nil {
		text += fmt.Sprintf("; links were paused for %s to %s", field.Duration(ns.Min), field.Duration(ns.Max))
	}
	return said{Unproven, possible, text, []Evidence{{plural(n, "PFC pause"), "stats FILE --every 1s"}}}
}
