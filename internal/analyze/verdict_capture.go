package analyze

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// What the capture is, and what it lacks.

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
	text := "by the numbers in the names, "
	switch {
	case n == 1:
		text += "1 file of the ring is missing, after " + list[0].After
	case len(list) == 1:
		text += plural(n, "file") + " of the ring are missing, after " + list[0].After
	default:
		text += plural(n, "file") + " of the ring are missing, the first after " + list[0].After
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
	fact := fmt.Sprintf("%s earlier than the packet before, by up to %s", plural(n, "packet"), field.Duration(j.s.TimeBackwardsNS))
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

// whole reports whether the capture contains all packets completely, in both directions, and of each connection from its
// beginning to its end.
func (j *facts) whole() bool {
	s, h := j.s, &j.o.Health
	return len(s.Absences)+len(s.MissingFiles) == 0 && h.StartsNotCaptured+h.EndsNotCaptured == 0 && j.o.Health.NotCaptured == 0 && s.Truncated+s.Malformed == 0 && s.CaptureDrops == 0 && !s.InputError.Known() && j.oneWay == "" && s.OneWay == 0 && s.TimeBackwards == 0
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
	text := fmt.Sprintf("second copies, as a mirror of both ports makes them, were left out: %d of %s", n, plural(j.s.Packets, "packet"))
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
		if name, several := j.s.EndsInFile.Get(); several {
			text = fmt.Sprintf("the file %s ends in the middle of a packet (byte %d): what came later in it is unknown", name, at)
		}
	}
	return said{Unproven, nil, text, []Evidence{{"packets before the damage", "packets FILE"}}}
}
