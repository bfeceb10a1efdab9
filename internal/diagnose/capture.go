package diagnose

import (
	"fmt"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// captureGap finds what the capture lacks. It claims the RPCs whose Reply may be among that.
func captureGap(d *diagnosis) {
	s := d.summary
	if from := s.OnlyFrom(); from != "" {
		p := d.begin(record.Error, record.InCapture)
		p.doubtful = true
		p.Headline, p.Effect = "has only packets from "+from, "no latency is known"
		p.Command = []string{"connections"}
		p.everything(d)
		return
	}
	if s.Disordered > 0 || s.TimeBackwardsNS >= 1e9 {
		p := d.begin(record.Error, record.InCapture)
		p.doubtful = true
		p.Headline = fmt.Sprintf("has %s out of the order of time, by up to %s", number(max(s.Disordered, s.TimeBackwards), "packet"), field.Brief(s.TimeBackwardsNS))
		p.Effect = "nothing is said about losses, waits and answers; reordercap sorts the packets"
		p.proof(record.PacketRef{Packet: s.TimeBackwardsPacket.Or(0)}, "earlier than the packet before")
		p.Command, d.unordered = []string{"check"}, true
		for _, x := range d.stalls {
			x.by.take(p)
		}
		p.everything(d)
		for _, f := range d.findings {
			if f.Rule == "retransmission-timeout" || f.Rule == "call-not-answered" {
				p.finding(f)
			}
		}
		return
	}
	if early, unanswered := d.answeredEarly(); len(early) > 0 {
		p := d.begin(record.Error, record.InCapture)
		p.doubtful = true
		p.Headline = "has " + number(len(early), "Reply") + " before its Call"
		if len(early) > 1 {
			p.Headline = "has " + number(len(early), "Reply") + " before their Calls"
		}
		p.Effect = "one direction came late, or order is lost; these RPCs are not judged"
		p.Command, d.early, d.unordered = []string{"-Y", "status == no_call"}, true, 10*len(early) >= unanswered
		for _, r := range early {
			p.proof(r.call, "Call after its Reply")
			p.all(r)
		}
		if d.unordered {
			p.Effect = "one direction came late, or order is lost; losses, waits and answers are not judged"
			p.everything(d)
			return
		}
	}
	if s.RDMA+s.RPC == 0 && s.Malformed > 0 {
		p := d.begin(record.Error, record.InCapture)
		p.Headline, p.Command = fmt.Sprintf("none of %s could be decoded", number(s.Packets, "packet")), []string{"check"}
		return
	}
	d.missing()
	if s.EndsInPacket.Known() || s.InputError.Known() {
		p := d.begin(record.Note, record.InCapture)
		p.Headline, p.Command = "ends in the middle of a packet", []string{"check"}
		if !s.EndsInPacket.Known() {
			p.Headline = "could not be read to its end"
		}
	}
	for _, n := range s.Evicted {
		if n > 0 {
			p := d.begin(record.Warning, record.InCapture)
			p.Headline, p.Command = "needs more memory than the limit: some state was evicted", checks("memory-limit-reached")
			break
		}
	}
}

// answeredEarly returns the Calls that come soon after a Reply with their XID, which has no Call: no server answers before it is asked. It
// also returns how many Calls have no Reply.
func (d *diagnosis) answeredEarly() (early []*rpc, unanswered int) {
	for _, r := range d.rpcs {
		if r.status != record.NoReply {
			continue
		}
		unanswered++
		if slices.ContainsFunc(d.byXID[connXID{r.connection, r.xid}], func(o *rpc) bool {
			return o.status == record.NoCall && o.backward == r.backward && o.reply.Packet < r.call.Packet && r.sent.Sub(o.sent) < 1e9
		}) {
			early = append(early, r)
		}
	}
	return early, unanswered
}

// mayLackReplies reports whether Replies may have been sent of which the capture shows nothing, or shows them too late.
func (d *diagnosis) mayLackReplies() bool {
	s := d.summary
	return d.early || s.NotCaptured > 0 || s.CaptureDrops > 0 || s.Truncated > 0 || len(s.Silences) > 0
}

// missing finds packets that the capture lacks.
func (d *diagnosis) missing() {
	s := d.summary
	var packets, longest int64
	var all span
	for i := range s.Absences {
		if a := &s.Absences[i]; a.Packets.Known() {
			longest = max(longest, a.To.Sub(a.From))
			if all.to == 0 {
				all = span{a.From, a.To}
			}
			all = span{min(all.from, a.From), max(all.to, a.To)}
		}
	}
	for _, c := range d.connections {
		packets += c.Packets
	}
	var unknown []*rpc
	for _, r := range d.rpcs {
		if r.unanswered() && r.again == nil && d.doubtful(r) {
			unknown = append(unknown, r)
		}
	}
	lacks := max(s.NotCaptured, int64(s.CaptureDrops))
	if lacks == 0 && len(s.MissingFiles) == 0 && len(unknown) == 0 {
		return
	}
	severity := record.Note
	if lacks >= 10 && lacks*100 >= packets+lacks || longest >= 1e9 || len(s.MissingFiles) > 0 {
		severity = record.Warning
	}
	p := d.begin(severity, record.InCapture)
	d.gap, p.doubtful = p, true
	if p.Headline = "lacks " + number(lacks, "packet"); lacks == 0 && len(unknown) > 0 {
		p.Headline = fmt.Sprintf("lacks the end of connection %d, and the beginning of a later one", unknown[0].connection)
		p.Effect = number(len(unknown), "Call") + " perhaps answered meanwhile"
	}
	if all.to > 0 {
		p.Headline += ", " + d.span(all.from, all.to)
		p.during(all.from, all.to)
	}
	if s.CaptureDrops > 0 {
		p.Headline += ", says it dropped " + number(int64(s.CaptureDrops), "packet")
	}
	if n := len(s.MissingFiles); n > 0 {
		files := int64(0)
		for _, m := range s.MissingFiles {
			files += m.Count
		}
		p.Headline = "lacks " + number(files, "file") + " of the series"
	}
	rules := map[string]bool{}
	for _, n := range s.NotJudged {
		rules[n.Rule] = true
	}
	if len(rules) > 0 {
		p.Effect = join(p.Effect, number(len(rules), "rule")+" not judged, because packets are missing")
	}
	for _, r := range unknown {
		p.all(r)
		if r.of != nil {
			r.of.to, r.of.open = r.sent, false // what is proven is that it waited until then
		}
	}
	p.Command = []string{"connections"}
	if slices.ContainsFunc(d.notes, func(n *note) bool { return n.first.Rule == "capture-incomplete" }) { // or it is not of the window
		p.Command = checks("capture-incomplete")
	}
}

// lacks reports whether packets of a connection may have passed that the capture does not hold: some of it were missed, or the capture says that
// it dropped some.
func (d *diagnosis) lacks(c *connection) bool { return c.NotCaptured > 0 || d.summary.CaptureDrops > 0 }

// doubtful reports whether the Reply of an RPC may be among the packets that the capture lacks. A connection that ended otherwise than in order tells
// that something was wrong. After one that does not end in the capture, a connection that does not begin in it shows that some of both is not captured.
func (d *diagnosis) doubtful(r *rpc) bool {
	if c := d.byNumber[r.connection]; c != nil && d.lacks(c) {
		end, ended := c.Ended.Get()
		return !ended || end.How == record.EndDisconnect
	} else if c != nil && c.open() && slices.ContainsFunc(d.connections, func(o *connection) bool {
		return o.First > c.Last && o.are(c.client, c.server) && o.Handshake == "missed" && o.Transport != "UDP"
	}) {
		return true
	}
	for i := range d.summary.Absences {
		a := &d.summary.Absences[i]
		if a.Packets.Known() && a.To > r.sent && (a.Address == r.client && a.Peer == r.server || a.Address == r.server && a.Peer == r.client) {
			return true
		}
	}
	return false
}

// seenTo returns the time until which the capture goes on from a time on: the end of one of several recordings, or that of the capture.
func (d *diagnosis) seenTo(from record.Time) record.Time {
	for _, u := range d.summary.Unrecorded {
		if u.To > from {
			return u.From
		}
	}
	return d.last
}
